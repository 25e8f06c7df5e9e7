"""The reasons of `kschedx reason` and of the documentation, as `reasons.toml` has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import Struct

KUBERNETES_DOCS = "https://kubernetes.io/docs/"
DOCUMENTATION = "https://kschedx.github.io/kschedx/"
"""Where `docs/` is published; `docs/mkdocs.yml` names it as well."""


class Reason(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reason explained. Its ID is that of a finding, or of a part of an event; the file says what the fields are."""

    plugins: tuple[str, ...] = ()
    means: str
    causes: tuple[str, ...]
    fixes: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@cache
def reasons() -> Mapping[str, Reason]:
    """By ID, in the order in which they are listed. Read when they are asked for, as most answers do without."""
    import tomllib
    from importlib.resources import files

    text = files("kschedx.render.words").joinpath("reasons.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Reason])


def reason_page(name: str) -> str:
    """The address of the page about a reason."""
    return f"{DOCUMENTATION}reference/reasons/{name}.html"

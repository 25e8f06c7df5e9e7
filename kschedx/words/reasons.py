"""The reasons of `kschedx reason` and of the documentation, from `reasons.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import Struct

from kschedx.wording import DOCUMENTATION

KUBERNETES_DOCS = "https://kubernetes.io/docs/"


class Reason(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The explanation of a reason. Its id is that of a finding, or of a part of an event; the file describes the
    fields."""

    plugins: tuple[str, ...] = ()
    means: str
    causes: tuple[str, ...]
    fixes: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@cache
def reasons() -> Mapping[str, Reason]:
    """Return reasons by id, in the order in which they are listed. They are read only when needed, because most answers
    use none."""
    import tomllib
    from importlib.resources import files

    text = files("kschedx.words").joinpath("reasons.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Reason])


def reason_page(name: str) -> str:
    return f"{DOCUMENTATION}reference/reasons/{name}.html"

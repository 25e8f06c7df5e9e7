"""Kinds that were not read, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.api.kinds import KINDS
from kschedx.explain.notes.missing import (
    KindsForbidden,
    KindsLacking,
    KindsNotServed,
    MissingNote,
    NamespacesOnly,
    PodsLacking,
)


def text(note: MissingNote) -> str:
    match note:
        case NamespacesOnly(namespaces=namespaces):
            listed = ", ".join(namespaces)
            return (
                f"only namespace {listed} is in this snapshot: what pods of others take from the nodes is not counted"
            )
        case PodsLacking(lacking=lacking):
            held = f"{_dumps(note.formats)} does not hold {lacking or 'any pod'}"
            return f"{held}: nodes may be fuller than they look (kschedx doctor tells more)"
        case KindsLacking():
            return f"not in {_dumps(note.formats)}, or not all of them: {_with_worth(note.kinds)}"
        case KindsForbidden(depends=False):
            return f"listing is forbidden for {_with_worth(note.kinds)}: this answer does not depend on it"
        case KindsForbidden():
            return f"listing is forbidden for {_names(note.kinds)}: a pod that depends on them cannot be decided"
        case KindsNotServed():
            return f"the API server serves no {_names(note.kinds)}: there are none"
        case _:
            assert_never(note)


def _names(kinds: Iterable[str]) -> str:
    return ", ".join(KINDS[kind].resource for kind in kinds)


def _with_worth(kinds: Iterable[str]) -> str:
    """With what is not known without them."""
    return ", ".join(f"{KINDS[kind].resource} ({KINDS[kind].leaves})" for kind in kinds)


def _dumps(formats: Iterable[str]) -> str:
    return " and ".join(map(with_article, formats)) or "the dump"


def with_article(dump: str) -> str:
    """`a must-gather`, `an oc adm inspect`."""
    return f"{'an' if dump[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {dump}"

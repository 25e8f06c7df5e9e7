"""Dumps that other tools make of a cluster: how they are recognized, and what they lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct


def _every(kind: str) -> str:
    """Return the description of a kind that is missing as a whole."""
    return f"every {kind}"


class Lack(Struct, frozen=True, kw_only=True):
    """Objects that the cluster may have, and that the dump lacks."""

    kind: str
    what: str  # "pods of namespaces that were not gathered"

    @property
    def is_whole(self) -> bool:
        """Whether everything of the kind is missing."""
        return self.what == _every(self.kind)


def lack(kind: str, what: str = "") -> Lack:
    """Return that `what` is missing; without it, everything of the kind."""
    return Lack(kind=kind, what=what or _every(kind))


class Dump(Struct, frozen=True, kw_only=True):
    format: str  # the usual name: "must-gather", "kubectl cluster-info dump"
    place: str  # the file, the folder, or the archive with the folder in it
    lacks: tuple[Lack, ...] = ()
    holds: tuple[str, ...] = ()  # other content than objects, which is not applied


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file in a folder or archive that holds no Kubernetes objects."""

    source: str
    why: str
    is_twin: bool = False  # whether another file holds the same objects


See: TypeAlias = Callable[[Dump | LeftOut], None]


def ignore(_: Dump | LeftOut) -> None:
    """Ignore what was found."""


# The layout of a tool's dump in a folder or an archive.

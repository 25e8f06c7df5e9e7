"""Dumps that other tools make of a cluster: what they are recognized by, and what they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from kschedx.kube.kinds import KINDS, key_of
from kschedx.sources import compression as compressed


def every(kind: str) -> str:
    """What a dump lacks that holds nothing of a kind."""
    return f"every {kind}"


class Lack(Struct, frozen=True, kw_only=True):
    """Objects that the cluster may have, and the dump has not."""

    kind: str
    what: str
    """"pods of namespaces that were not gathered"."""

    @property
    def is_whole(self) -> bool:
        """Nothing of the kind is there."""
        return self.what == every(self.kind)


def lack(kind: str, what: str = "") -> Lack:
    """`what` is missing; without it, everything of the kind is."""
    return Lack(kind=kind, what=what or every(kind))


def all_but(kinds: Iterable[str]) -> tuple[Lack, ...]:
    """The kinds of Kubernetes that answers depend on and a dump does not hold at all."""
    held = frozenset(kinds)
    return tuple(lack(key) for key, kind in KINDS.items() if kind.leaves and kind.is_of_kubernetes and key not in held)


class Dump(Struct, frozen=True, kw_only=True):
    """A dump that was recognized."""

    format: str
    """By the name that people know: "must-gather", "kubectl cluster-info dump"."""
    place: str
    """The file, the folder, or the archive and the folder in it."""
    lacks: tuple[Lack, ...] = ()
    holds: tuple[str, ...] = ()
    """What is in it besides objects, and is not applied."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file among others that holds no Kubernetes objects."""

    source: str
    why: str


See: TypeAlias = Callable[[Dump | LeftOut], None]


def ignore(_: Dump | LeftOut) -> None:
    """See nothing."""


# A tool's form, as it was found somewhere in a folder or an archive.


class Form(Struct, frozen=True, kw_only=True):
    """One dump among the files of a tree."""

    format: str
    top: str
    """The folder in the tree; empty if it is all of it."""
    files: Mapping[str, str] | None
    """Those to be read, to the kind of list that a file is ("v1 PodList"); None for all files."""
    lacks: tuple[Lack, ...]


def plain(name: str) -> str:
    """A file's name without the suffixes of compression."""
    for suffix in compressed.SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def listed_kind(list_kind: str) -> str:
    """`Pod`, where `v1 PodList` is given: the key in the table of kinds."""
    version, _, name = list_kind.partition(" ")
    return key_of(name.removesuffix("List"), version.rpartition("/")[0])

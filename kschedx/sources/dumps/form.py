"""A tool's form, as it was found somewhere in a folder or an archive."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.kinds import key_of
from kschedx.sources import compressed
from kschedx.sources.dumps import Lack


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

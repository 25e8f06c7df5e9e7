"""Many files in one place, a folder or an archive: their names first, then the content of those that are wanted."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.sources import compressed
from kschedx.sources.streams import Readable

SUFFIXES = (".yaml", ".yml", ".json")


class Member(Struct, frozen=True, kw_only=True):
    """A file of a tree, open."""

    name: str
    """With slashes, from the tree's root on."""
    source: str
    """What a person finds it by."""
    file: Readable
    path: Path | None = None
    """Where it can be read again; None for what is in an archive."""


class Tree(Protocol):
    """Nothing outside of it is ever read, whatever its names and links say, and nothing is written."""

    what: str
    """"a folder", "an archive"."""

    def names(self) -> Sequence[str]:
        """The files that may be manifests by their names, in order."""
        ...

    def open(self, wanted: Collection[str]) -> Iterator[Member]:
        """The files of these names, each to be read before the next one is taken."""
        ...


_OUTPUT = re.compile(r"(?:kubectl|oc)_[^/]*-o_?(?:json|yaml)[^/]*\Z")
"""Of a command, as sosreport names it: `kubectl_get_-o_json_--all-namespaces_pods`."""


def may_be_manifest(name: str) -> bool:
    """A *.yaml, *.yml or *.json, also compressed, that is not hidden; and what a command printed as one of them."""
    for suffix in compressed.SUFFIXES:
        name = name.removesuffix(suffix)
    is_named = name.endswith(SUFFIXES) or is_output(name)
    return is_named and not any(part.startswith(".") for part in name.split("/"))


def is_output(name: str) -> bool:
    """It holds what a command printed, which may be its error."""
    return _OUTPUT.match(name.rpartition("/")[2]) is not None


def unreadable(source: str, error: OSError) -> InputError:
    """What the operating system has against reading something."""
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=Place(source=source))


class Folder:
    """A folder with what is below it. Linked folders are left out; linked files have to stay inside."""

    what = "a folder"

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def names(self) -> Sequence[str]:
        return list(self._below(self._path, ""))

    def _below(self, folder: Path, prefix: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise unreadable(str(folder), error) from None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(folder / entry.name, f"{prefix}{entry.name}/")
            elif may_be_manifest(entry.name) and _is_file(entry):
                yield prefix + entry.name

    def open(self, wanted: Collection[str]) -> Iterator[Member]:
        root = self._path.resolve()
        for name in wanted:
            path = self._path / name
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                place = Place(source=str(path))
                raise InputError("a link that leads out of the folder", place=place, hint="name what it leads to")
            try:
                with path.open("rb", buffering=0) as file:
                    yield Member(name=name, source=str(path), file=cast(Readable, file), path=path)
            except OSError as error:
                raise unreadable(str(path), error) from None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """It is one, or leads to one."""
    try:
        return entry.is_file()
    except OSError:  # a link in a circle
        return False

"""The names in an archive, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kschedx.errors import InputError, Place
from kschedx.sources.tree import may_be_manifest

MAX_MEMBERS = 200_000
FOLDER = "a folder"
LINK = "a link, and no file"
DEVICE = "a device, and no file"


class Names:
    """The names of an archive's members, as they are told."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._manifests: dict[str, str] = {}
        """Name to why it cannot be read; empty if it can."""

    def add(self, written: str, kind: str) -> None:
        """`kind` is empty for a file, else says what the member is. Raises InputError for a name that leads out."""
        self._count += 1
        if self._count > MAX_MEMBERS:
            raise InputError(f"holds more than {MAX_MEMBERS:,} files", place=Place(source=self._source))
        name = tidy(written)
        if written.startswith(("/", "\\")) or ".." in name.split("/") or "\0" in written:
            place = Place(source=f"{self._source}: {written}")
            raise InputError("a name that leads out of the archive", place=place, hint="nothing of it is read")
        if kind != FOLDER and may_be_manifest(name):
            self._manifests[name] = "one of two files of this name" if name in self._manifests else kind

    def manifests(self) -> Sequence[str]:
        return sorted(self._manifests)

    def check(self, wanted: Collection[str]) -> None:
        """Raises InputError for a name that is not that of one file."""
        for name in wanted:
            if problem := self._manifests[name]:
                hint = "pack it with --dereference" if problem == LINK else ""
                raise InputError(problem, place=Place(source=f"{self._source}: {name}"), hint=hint)


def tidy(name: str) -> str:
    """A member's name without "./", and with slashes where it was written on Windows."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))

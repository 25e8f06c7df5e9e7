"""Zip archives, in files that can be sought in."""

from __future__ import annotations

import io
import stat
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from kschedx.errors import InputError, Place
from kschedx.sources.archives.names import DEVICE, FOLDER, LINK, Names, tidy
from kschedx.sources.compressed import Budget
from kschedx.sources.streams import Stream
from kschedx.sources.tree import Member

if TYPE_CHECKING:
    import zipfile

_LONGEST_READ = 32 << 20
"""Bytes; of the table of contents, which is read at once."""


def is_zip(head: bytes) -> bool:
    """Also of an archive without members."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


class Zip:
    """A zip archive in a file that can be sought in."""

    what = "an archive"

    def __init__(self, file: BinaryIO, source: str, budget: Budget) -> None:
        self._file = file
        self._source = source
        self._budget = budget
        self._names = Names(source)
        self._members: dict[str, zipfile.ZipInfo] = {}

    def names(self) -> Sequence[str]:
        for member in self._archive.infolist():
            self._names.add(member.orig_filename, _kind(member))
            self._members[tidy(member.orig_filename)] = member
        return self._names.manifests()

    def open(self, wanted: Collection[str]) -> Iterator[Member]:
        self._names.check(wanted)
        self._budget.packed = self._file.seek(0, io.SEEK_END)
        for name in wanted:
            member, source = self._members[name], f"{self._source}: {name}"
            if member.flag_bits & 1:
                raise InputError("is encrypted", place=Place(source=source), hint="unpack the archive first")
            with _damage_told(source):
                content = self._archive.open(member)
            yield Member(name=name, source=source, file=_Content(content, source, self._budget))

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        import zipfile

        with _damage_told(self._source):
            return zipfile.ZipFile(cast(IO[bytes], _Careful(self._file)))


@contextmanager
def _damage_told(source: str) -> Iterator[None]:
    """Everything that the standard library has against a zip archive, as an InputError."""
    import struct
    import zipfile

    try:
        yield
    except NotImplementedError:
        raise InputError("compressed in a way that is not known here", place=Place(source=source)) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError("a damaged zip archive", place=Place(source=source)) from None


class _Content(Stream):
    """A member of a zip archive. What it unpacks to is counted, and at its end its checksum is compared."""

    def __init__(self, content: IO[bytes], source: str, budget: Budget) -> None:
        self._content = content
        self._source = source
        self._budget = budget

    def _next(self, size: int) -> bytes:
        with _damage_told(self._source):
            block = self._content.read(size)
        self._budget.spend(len(block))
        return block


class _Careful(io.RawIOBase):
    """A file of which little is read at once, whatever is written in it about sizes."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        if size > _LONGEST_READ:
            raise ValueError("a table of contents that is too long")
        return self._file.read(size)


def _kind(member: zipfile.ZipInfo) -> str:
    if member.is_dir():
        return FOLDER
    mode = member.external_attr >> 16
    if stat.S_ISLNK(mode):
        return LINK
    return "" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else DEVICE

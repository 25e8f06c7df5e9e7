"""Tar and zip archives, read where they are: no member is ever written anywhere, and no link is followed.

A link or a device under a manifest's name is refused, and so is a name that leads out of the archive; among logs and
the like, links are left out with them. An archive inside of an archive is not opened.
"""

from __future__ import annotations

import io
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from kschedx.errors import InputError, Place
from kschedx.sources.compressed import Budget
from kschedx.sources.streams import Readable, Stream
from kschedx.sources.tree import MAX_FILES, Member, may_be_manifest

if TYPE_CHECKING:
    import tarfile
    import zipfile

_BLOCK = 512
_LONGEST_HEADER = 1 << 20
"""Bytes of the names and attributes that are written before a member."""
_SPARSE = "pack it without --sparse"
_LONGEST_READ = 32 << 20
"""Bytes; of a zip archive's table of contents, which is read at once."""


class _Names:
    """The names of an archive's members, as they are told."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._manifests: dict[str, str] = {}
        """Name to why it cannot be read; empty if it can."""

    def add(self, written: str, kind: str) -> None:
        """`kind` is empty for a file, else says what the member is. Raises InputError for a name that leads out."""
        self._count += 1
        if self._count > MAX_FILES:
            raise InputError(f"holds more than {MAX_FILES:,} files", place=Place(source=self._source))
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


class Tar:
    """A tar archive of any dialect, compressed or not. It is read twice: for the names, and for the content."""

    what = "an archive"

    def __init__(self, reopened: Callable[[], Readable], source: str) -> None:
        self._reopened = reopened
        """Makes a stream from the archive's first byte on."""
        self._source = source
        self._names = _Names(source)

    def names(self) -> Sequence[str]:
        for name, kind, _ in self._members():
            self._names.add(name, kind)
        return self._names.manifests()

    def open(self, wanted: Collection[str]) -> Iterator[Member]:
        self._names.check(wanted)
        for written, kind, file in self._members():
            name = tidy(written)
            if not kind and name in wanted:
                yield Member(name=name, source=f"{self._source}: {name}", file=file)

    def _members(self) -> Iterator[tuple[str, str, Readable]]:
        """Each member's name, what it is (empty for a file), and its content."""
        import tarfile

        stream = self._reopened()
        long_name: str | None = None
        long_size: int | None = None
        while True:
            block = self._exactly(stream, _BLOCK)
            if not any(block):
                break
            try:
                # not the module's own iteration: it reads headers of any size into memory, and seeks
                head = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
            except (tarfile.HeaderError, ValueError):
                raise self._damaged("a damaged tar archive") from None
            if head.type == tarfile.GNUTYPE_SPARSE:
                raise self._damaged("an archive with sparse files", hint=_SPARSE)
            if head.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
                long_name, long_size = self._attributes(self._header(stream, head))
            elif head.type == tarfile.GNUTYPE_LONGNAME:
                long_name = self._header(stream, head).split(b"\0")[0].decode(errors="backslashreplace")
            elif head.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
                self._header(stream, head)
            else:
                name = head.name if long_name is None else long_name
                kind = _kind(head)
                size = head.size if long_size is None else long_size
                if size < 0:
                    raise self._damaged("a damaged tar archive")
                file = _Part(stream, 0 if kind else size, lambda: self._damaged("cut short"))
                yield name, kind, file
                file.skip(-size % _BLOCK if not kind else 0)
                long_name = long_size = None
        while stream.read(1 << 20):  # so that a checksum at the end is looked at
            pass

    def _exactly(self, stream: Readable, size: int) -> bytes:
        blocks = []
        while size:
            block = stream.read(size)
            if not block:
                raise self._damaged("cut short: a tar archive ends with empty blocks")
            blocks.append(block)
            size -= len(block)
        return b"".join(blocks)

    def _header(self, stream: Readable, head: tarfile.TarInfo) -> bytes:
        if not 0 <= head.size <= _LONGEST_HEADER:
            raise self._damaged("a damaged tar archive: a name of more than a megabyte")
        return self._exactly(stream, head.size + -head.size % _BLOCK)[: head.size]

    def _attributes(self, text: bytes) -> tuple[str | None, int | None]:
        """Name and size out of a pax header: records of `LENGTH KEY=VALUE`, a line end after each."""
        name, size = None, None
        while text:
            digits, _, rest = text.partition(b" ")
            if not digits.isdigit() or len(digits) > 7 or not len(digits) + 3 <= int(digits) <= len(text):
                raise self._damaged("a damaged tar archive")
            key, _, value = rest[: int(digits) - len(digits) - 2].partition(b"=")
            if key == b"path":
                name = value.decode(errors="backslashreplace")
            elif key == b"size":
                if not value.isdigit() or len(value) > 15:
                    raise self._damaged("a damaged tar archive")
                size = int(value)
            elif key.startswith(b"GNU.sparse."):
                raise self._damaged("an archive with sparse files", hint=_SPARSE)
            text = text[int(digits) :]
        return name, size

    def _damaged(self, message: str, hint: str = "") -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


FOLDER = "a folder"
LINK = "a link, and no file"
DEVICE = "a device, and no file"


def _kind(head: tarfile.TarInfo) -> str:
    if head.isdir():
        return FOLDER
    if head.issym() or head.islnk():
        return LINK
    return "" if head.isreg() else DEVICE


def _kind_in_zip(member: zipfile.ZipInfo) -> str:
    if member.is_dir():
        return FOLDER
    mode = member.external_attr >> 16
    if stat.S_ISLNK(mode):
        return LINK
    return "" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else DEVICE


class _Part(Stream):
    """The next `size` bytes of a stream."""

    def __init__(self, stream: Readable, size: int, cut_short: Callable[[], InputError]) -> None:
        self._stream = stream
        self._left = size
        self._cut_short = cut_short

    def _next(self, size: int) -> bytes:
        if not self._left or not size:
            return b""
        block = self._stream.read(min(size, self._left))
        if not block:
            raise self._cut_short()
        self._left -= len(block)
        return block

    def skip(self, more: int) -> None:
        """Go on to what follows the part and `more` bytes after it."""
        self._left += more
        while self._left:
            self.read(1 << 20)


class Zip:
    """A zip archive in a file that can be sought in."""

    what = "an archive"

    def __init__(self, file: BinaryIO, source: str, budget: Budget) -> None:
        self._file = file
        self._source = source
        self._budget = budget
        self._names = _Names(source)
        self._members: dict[str, zipfile.ZipInfo] = {}

    def names(self) -> Sequence[str]:
        for member in self._archive.infolist():
            self._names.add(member.orig_filename, _kind_in_zip(member))
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

"""Tar archives of any dialect, from the first byte to the last."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import IO, TYPE_CHECKING, cast

from kschedx.errors import InputError, Place
from kschedx.sources.archives.names import DEVICE, FOLDER, LINK, Names, tidy
from kschedx.sources.streams import Readable, Stream
from kschedx.sources.tree import Member

if TYPE_CHECKING:
    import tarfile

_BLOCK = 512
_LONGEST_READ = 1 << 20
"""Bytes; of the names and attributes that are written before a member."""


def is_tar(head: bytes) -> bool:
    """`head` is the first block, or more."""
    return head[257:262] == b"ustar" and b"\0" in head[:_BLOCK]


class Tar:
    """A tar archive, compressed or not. It is read twice: for the names, and for the content."""

    what = "an archive"

    def __init__(self, reopened: Callable[[], Readable], source: str) -> None:
        self._reopened = reopened
        """Makes a stream from the archive's first byte on."""
        self._source = source
        self._names = Names(source)

    def names(self) -> Sequence[str]:
        for info, _ in self._members():
            self._names.add(info.name, _kind(info))
        return self._names.manifests()

    def open(self, wanted: Collection[str]) -> Iterator[Member]:
        self._names.check(wanted)
        for info, archive in self._members():
            name = tidy(info.name)
            if name in wanted and not _kind(info):
                content = archive.extractfile(info)
                assert content is not None
                yield Member(name=name, source=f"{self._source}: {name}", file=_Content(content, self._told))

    def _members(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        import tarfile

        forward = _Forward(self._reopened())
        with self._told():
            file = cast(IO[bytes], forward)
            archive = tarfile.TarFile(fileobj=file, encoding="utf-8", errors="backslashreplace")
        while True:
            with self._told():
                info = archive.next()
                archive.members.clear()  # type: ignore[attr-defined] # it would keep them all
            if info is None:
                break
            if info.issparse():
                raise self._error("an archive with sparse files", hint="pack it without --sparse")
            yield info, archive
        if not forward.ends_with_zeros:
            raise self._error("damaged or cut short: a tar archive ends with empty blocks")
        while forward.read(_LONGEST_READ):  # so that a checksum at the end is looked at
            pass

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Everything that the standard library has against a tar archive, as an InputError."""
        import tarfile

        try:
            yield
        except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError):
            raise self._error("a tar archive that is damaged or cut short") from None

    def _error(self, message: str, hint: str = "") -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


def _kind(info: tarfile.TarInfo) -> str:
    """What the member is; empty for a file."""
    if info.isdir() or info.name.endswith("/"):
        return FOLDER
    if info.issym() or info.islnk():
        return LINK
    return "" if info.isreg() else DEVICE


class _Content(Stream):
    """A member of an archive."""

    def __init__(self, content: IO[bytes], told: Callable[[], AbstractContextManager[None]]) -> None:
        self._content = content
        self._told = told

    def _next(self, size: int) -> bytes:
        with self._told():
            return self._content.read(min(size, _LONGEST_READ))


class _Forward(io.RawIOBase):
    """A stream as a file in which one can go forward, and back by no more than the last byte that was read.

    Little is read at once, whatever is written in the archive about sizes.
    """

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream
        self._at = 0
        self._last = b""
        """The last block that was read, or its end."""
        self._again = 0
        """How many of its bytes come again."""

    @property
    def ends_with_zeros(self) -> bool:
        """What was read last is an empty block."""
        return len(self._last) == _BLOCK and not any(self._last)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._at - 1 == offset and self._last and not self._again:
            self._at, self._again = offset, 1
        while self._at < offset and self.read(min(offset - self._at, _LONGEST_READ)):
            pass
        if self._at > offset:
            raise ValueError("a tar archive is read from the first byte to the last")
        return self._at

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise ValueError("more than a name takes")
        blocks = []
        if self._again and size:
            blocks.append(self._last[-1:])
            size, self._again = size - 1, 0
        while size and (block := self._stream.read(size)):
            blocks.append(block)
            size -= len(block)
        found = b"".join(blocks)
        self._at += len(found)
        if found:
            self._last = found[-_BLOCK:]
        return found

"""Tar archives, of the dialects v7, ustar, GNU and pax, from the first byte to the last.

The standard library's reader seeks, takes names of any length into memory, and needs three times as long for a header,
which is felt where there are 100,000 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.sources.archives import names
from kschedx.sources.archives.names import DEVICE, FOLDER, LINK, Names, tidy
from kschedx.sources.streams import Readable, Stream
from kschedx.sources.tree import Member

_BLOCK = 512
_LONGEST_EXTRA = 1 << 20
"""Bytes of the names and attributes that are written before a member."""
_SPARSE = "pack it without --sparse"


def is_tar(head: bytes) -> bool:
    """`head` is the first block, or more."""
    return head[257:262] == b"ustar" and b"\0" in head[:_BLOCK]


class Tar:
    """A tar archive of any dialect, compressed or not. It is read twice: for the names, and for the content."""

    what = "an archive"

    def __init__(self, reopened: Callable[[], Readable], source: str) -> None:
        self._reopened = reopened
        """Makes a stream from the archive's first byte on."""
        self._source = source
        self._names = Names(source)

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
        stream = self._reopened()
        name: str | None = None
        size: int | None = None
        headers = 0
        while any(block := self._exactly(stream, _BLOCK)):
            headers += 1
            if headers > 3 * names.MAX_MEMBERS:  # two may be about the member that follows
                raise self._damaged("more headers than members have")
            try:
                head = _Header.of(block)
            except ValueError:
                raise self._damaged("a damaged tar archive") from None
            match head.type:
                case b"x" | b"X":
                    name, size = self._attributes(self._extra(stream, head))
                case b"L":
                    name = _text(self._extra(stream, head))
                case b"K" | b"g":
                    self._extra(stream, head)
                case b"S":
                    raise self._damaged("an archive with sparse files", hint=_SPARSE)
                case _:
                    length = 0 if head.type in _WITHOUT_CONTENT else head.size if size is None else size
                    content = _Part(stream, length, lambda: self._damaged("cut short"))
                    yield head.name if name is None else name, head.kind, content
                    content.skip(-length % _BLOCK)
                    name = size = None
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

    def _extra(self, stream: Readable, head: _Header) -> bytes:
        """What is written before a member about it."""
        if head.size > _LONGEST_EXTRA:
            raise self._damaged("a damaged tar archive: a name of more than a megabyte")
        return self._exactly(stream, head.size + -head.size % _BLOCK)[: head.size]

    def _attributes(self, text: bytes) -> tuple[str | None, int | None]:
        """Name and size out of a pax header: records of `LENGTH KEY=VALUE`, a line end after each."""
        name, size = None, None
        at = 0
        while at < len(text):
            digits = text[at : text.find(b" ", at, at + 8)]
            end = at + int(digits) if digits.isdigit() else 0
            if not at + len(digits) + 3 <= end <= len(text):
                raise self._damaged("a damaged tar archive")
            key, _, value = text[at + len(digits) + 1 : end - 1].partition(b"=")
            if key == b"path":
                name = value.decode(errors="backslashreplace")
            elif key == b"size":
                if not value.isdigit() or len(value) > 15:
                    raise self._damaged("a damaged tar archive")
                size = int(value)
            elif key.startswith(b"GNU.sparse."):
                raise self._damaged("an archive with sparse files", hint=_SPARSE)
            at = end
        return name, size

    def _damaged(self, message: str, hint: str = "") -> InputError:
        return InputError(message, place=Place(source=self._source), hint=hint)


class _Header(Struct, frozen=True):
    """The block that a member begins with."""

    name: str
    size: int
    type: bytes

    @classmethod
    def of(cls, block: bytes) -> _Header:
        """Raises ValueError for what is no header."""
        # the checksum counts itself as blanks
        if _number(block[148:156]) != sum(block[:148]) + 8 * 0x20 + sum(block[156:]):
            raise ValueError
        name, prefix, size = _text(block[:100]), b"", _number(block[124:136])
        if block[257:263] == b"ustar\0":
            prefix = block[345:500]
        return cls(f"{_text(prefix)}/{name}" if any(prefix) else name, size, block[156:157])

    @property
    def kind(self) -> str:
        """What the member is; empty for a file."""
        if self.type in _FILES:
            return FOLDER if self.name.endswith("/") else ""
        if self.type == _FOLDER:
            return FOLDER
        return LINK if self.type in _LINKS else DEVICE


_FILES = (b"0", b"\0", b"7")
_LINKS = (b"1", b"2")
_FOLDER = b"5"
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")


def _number(field: bytes) -> int:
    """Octal digits or, after a byte with the highest bit, the bytes of a number."""
    if field[0] >= 0x80:
        if field[0] != 0x80:
            raise ValueError
        return int.from_bytes(field[1:])
    number = int(field.strip(b" \0") or b"0", 8)
    if number < 0:
        raise ValueError
    return number


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="backslashreplace")


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

"""JSON documents, one after the other, of any size.

A list of hundreds of megabytes is never in memory as a whole. It is cut where one item ends and the next begins, which
for everything but single-line JSON can be seen without parsing: a line end never occurs inside a JSON string, so
`},`, the line end and the indentation of the first item, and `{` is outside of one. Where that text also occurs deeper
inside an item, a cut there leaves brackets open; the piece is then no JSON array, and whoever decodes it notices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.snapshot_header import SnapshotHeader, of_list
from kschedx.errors import InputError, Place
from kschedx.sources.batch import RAWS, Batch, ChunkOrigin, ListedOrigin, Spot
from kschedx.sources.json_errors import (
    byte_of,
    explain_malformed,
    invalid_utf8_at,
    is_truncated,
    trailing_at,
    what_is_wrong,
)
from kschedx.sources.lists import Flat, ItemError, flatten, is_plain_object

CHUNK = 1 << 20
SMALL = 1 << 20
"""Bytes; a document that fits is read at once, and the place of every object is known."""

_NEAR = 16 << 20
"""Bytes; an item of a chunk is looked for so far behind its beginning."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[(\s*)\{')
_BETWEEN_ITEMS = re.compile(rb"[\s,]*")
_SPACE = re.compile(rb"\s*")
_RAW = msgspec.json.Decoder(msgspec.Raw)


class Readable(Protocol):
    """A binary file."""

    def read(self, size: int, /) -> bytes | None: ...


class _ListHead(Struct, frozen=True, kw_only=True):
    """The beginning of a list that can be cut."""

    prefix: bytes
    """The text up to and with the `[` of its items."""
    separator: bytes
    """What is between two items, with the braces of both."""
    nested_list: bytes
    """What an item that is a list itself would hold."""
    header: SnapshotHeader | None


class JsonStream:
    """Reads the documents of a file.

    What was read and not yet handed out is `_text` from `_at` on; `_text` begins at offset `_start` of the file.
    """

    def __init__(
        self, file: Readable, *, source: str, path: Path | None = None, chunk: int = CHUNK, small: int = SMALL
    ) -> None:
        self._file = file
        self._source = source
        self._path = path
        self._chunk = chunk
        self._small = small
        self._text = b""
        self._at = 0
        self._start = 0
        self._ended = False
        self._document = 0
        self._list: _ListHead | None = None
        self._known_line = (0, 1)
        """An offset and its line, from where lines are counted on."""

    def batches(self) -> Iterator[Batch]:
        """Raises InputError for what is not JSON, with line and column."""
        self._fill(self._small)
        if self._text.startswith(b"\xef\xbb\xbf"):
            self._at = 3
        while self._skip_space():
            self._document += 1
            self._fill(self._small)
            self._list = self._list_head()
            if self._list is None:
                yield self._whole_document()
            else:
                self._at += len(self._list.prefix)
                yield from self._chunks()

    # The text

    def _fill(self, size: int) -> None:
        """Reads until `size` bytes are at hand or the file ends."""
        more = self._read(size - (len(self._text) - self._at))
        if more:
            self._replace(b"".join((memoryview(self._text)[self._at :], more)), at=self._offset)

    def _read(self, size: int) -> bytes:
        """The next `size` bytes, less only at the end of the file."""
        blocks = []
        while size > 0 and not self._ended:
            block = self._file.read(size)
            if block:
                blocks.append(block)
                size -= len(block)
            else:
                self._ended = True
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def _replace(self, text: bytes, *, at: int) -> None:
        """`text`, which begins at offset `at` of the file, is what comes next."""
        self._text, self._at, self._start = text, 0, at

    @property
    def _offset(self) -> int:
        return self._start + self._at

    def _skip_space(self) -> bool:
        """Whether anything but white space is left."""
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._text):
                return True
            if self._ended:
                return False
            self._fill(self._small)

    def _grow(self) -> None:
        """Reads at least as much as is at hand, so that trying again costs no more than twice the work."""
        self._fill(max(2 * (len(self._text) - self._at), self._small))

    # A document that is read whole

    def _whole_document(self) -> Batch:
        first = self._line(self._offset)
        length = self._length_of(b"")
        document = memoryview(self._text)[self._at : self._at + length]
        small = length <= self._small
        broken = invalid_utf8_at(document) if small else None
        if broken is not None:
            raise self._error("not valid UTF-8", offset=self._offset + broken)
        flat = self._flat(document, self._place())
        lines = _lines_of_items(flat, document, first) if small and first is not None else {}
        spots = tuple(
            Spot(document=self._document, line=first if index is None else lines.get(index), index=index)
            for index in flat.indexes
        )
        self._at += length
        self._line(self._offset)
        return Batch(items=flat.items, origin=ListedOrigin(source=self._source, spots=spots), header=flat.header)

    def _flat(self, document: bytes | memoryview, place: Place) -> Flat:
        try:
            return flatten(document)
        except ItemError as error:
            item = "" if error.index is None else f"items[{error.index}]"
            raise error.at(replace(place, object=item)) from None
        except InputError as error:
            raise error.at(place) from None
        except RecursionError:
            raise InputError("not valid JSON: it is nested too deeply", place=place) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # in a name or kind; what is not looked at here is found by the batch's decoder
            raise explain_malformed(error, b"", place=place) from None

    def _length_of(self, opened: bytes) -> int:
        """The length of the JSON value at hand, where `opened` is what came before it."""
        while True:
            rest = memoryview(self._text)[self._at :]
            text = b"".join((opened, rest)) if opened else rest
            try:
                _RAW.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                trailing = trailing_at(error)
                if trailing is not None:
                    return trailing - len(opened)
                if self._ended or not is_truncated(error, text):
                    raise self._malformed(error, text, opened) from None
                self._grow()
            else:
                return len(text) - len(opened)

    # A list that is read in chunks

    def _list_head(self) -> _ListHead | None:
        """The head of a list, if the document is one that does not fit into memory at once and can be cut."""
        if self._ended:
            return None
        match = _ITEMS.search(self._text, self._at)
        if match is None or b"\n" not in match[1]:
            return None
        prefix = self._text[self._at : match.start(1)]
        separator = b"}," + match[1] + b"{"
        end = self._text.find(separator, match.end())
        try:
            # `items` inside of something else would leave that open
            envelope = msgspec.json.decode(prefix + b"]}", type=dict[str, msgspec.Raw])
            if end < 0 or list(envelope)[-1] != "items" or not is_plain_object(self._text[match.end() - 1 : end + 1]):
                return None
        except (msgspec.DecodeError, UnicodeDecodeError, InputError, RecursionError):
            return None
        spaced = b'"kind": "' in self._text[match.end() : end]
        return _ListHead(
            prefix=prefix,
            separator=separator,
            nested_list=b'"kind": "List"' if spaced else b'"kind":"List"',
            header=of_list(envelope.get("metadata", msgspec.Raw())),
        )

    def _chunks(self) -> Iterator[Batch]:
        header = self._list.header if self._list else None
        while self._list is not None:
            origin = ChunkOrigin(source=self._source, document=self._document, start=self._offset, file=self._path)
            items = self._cut(self._list.separator)
            batch = Batch(items=items or b"", origin=origin, settle=self._settle, header=header)
            header = None
            if items is None:
                self._rest_of_list(batch)
            elif self._list.nested_list in items:
                batch.decode(RAWS)
                self._flatten(batch)
            yield batch
            if batch.settle is not None:
                batch.decode(RAWS)

    def _cut(self, separator: bytes) -> bytes | None:
        """The next chunk of items in brackets; None if there is none to be seen, as where the list ends."""
        rest = memoryview(self._text)[self._at :]
        block = self._read(self._chunk)
        end = block.rfind(separator)
        if end >= 0:
            items = b"".join((b"[", rest, memoryview(block)[: end + 1], b"]"))
            self._replace(block[end + 2 :], at=self._offset + len(rest) + end + 2)
            return items
        # the cut may be where the two meet, or in what was there before
        self._replace(b"".join((rest, block)), at=self._offset)
        end = self._text.rfind(separator)
        if end < 0:
            return None
        self._at = end + 2
        return b"".join((b"[", memoryview(self._text)[: end + 1], b"]"))

    def _settle(self, batch: Batch) -> None:
        """The chunk is no array: the list ended in it, or it was cut inside an item, or it is not JSON."""
        chunk = bytes(batch.items[1:-1])
        self._replace(b",".join((chunk, self._text[self._at :])), at=self._offset - len(chunk) - 1)
        self._rest_of_list(batch)

    def _rest_of_list(self, batch: Batch) -> None:
        """Gives the batch all items to the end of the list, and goes on to what follows the list's document."""
        assert self._list is not None
        prefix, self._list = self._list.prefix, None
        length = self._length_of(b"[")
        batch.items = b"".join((b"[", memoryview(self._text)[self._at : self._at + length]))
        batch.settle = None
        self._at += length
        # not in one step: reading on moves `_at`
        length = self._length_of(prefix + b"]")
        self._at += length
        self._flatten(batch)

    def _flatten(self, batch: Batch) -> None:
        flat = self._flat(batch.items, replace(self._place(), line=None))
        assert isinstance(batch.origin, ChunkOrigin)
        batch.items, batch.origin = flat.items, replace(batch.origin, indexes=flat.indexes)

    # Errors

    def _place(self) -> Place:
        """Of the document, or the part of it, that is at hand."""
        return Place(source=self._source, document=self._document, line=self._line(self._offset))

    def _malformed(self, error: Exception, text: bytes | memoryview, opened: bytes) -> InputError:
        if isinstance(error, RecursionError):
            return InputError("not valid JSON: it is nested too deeply", place=self._place())
        byte = byte_of(error)
        inside = (len(text) if byte is None else byte) - len(opened)
        return self._error(f"not valid JSON: {what_is_wrong(error, text)}", offset=self._offset + inside)

    def _error(self, message: str, *, offset: int) -> InputError:
        line = self._line(offset)
        start = self._text.rfind(b"\n", 0, offset - self._start) + 1
        if start or not self._start:
            column = len(self._text[start : offset - self._start].decode(errors="replace").lstrip("\ufeff")) + 1
            message = f"{message}, at column {column}"
        return InputError(message, place=Place(source=self._source, document=self._document, line=line))

    def _line(self, offset: int) -> int | None:
        """The line that `offset` is in; None in a long stream, which cannot be read again."""
        known, line = self._known_line
        if known >= self._start:
            line += self._text.count(b"\n", known - self._start, offset - self._start)
        elif self._path is None:
            return None
        else:
            line = _count_lines(self._path, offset) + 1
        self._known_line = (offset, line)
        return line


def line_of_item(path: Path, start: int, index: int) -> int | None:
    """The line of the item number `index` of those that begin at offset `start`; None if that is not to be found."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            text = memoryview(file.read(_NEAR))
        at = 0
        for number in range(index + 1):
            match = _BETWEEN_ITEMS.match(text, at)
            at = match.end() if match else at
            if number < index:
                at += _length_of_first(text[at:])
        return _count_lines(path, start) + bytes(text[:at]).count(b"\n") + 1
    except (OSError, ValueError):
        return None


def _length_of_first(text: memoryview) -> int:
    """The length of the JSON value that `text` begins with; something follows it. Otherwise raises ValueError."""
    try:
        _RAW.decode(text)
    except msgspec.DecodeError as error:
        trailing = trailing_at(error)
        if trailing is not None:
            return trailing
    raise ValueError("one value and something else are expected")


def _lines_of_items(flat: Flat, document: memoryview, first: int) -> dict[int, int]:
    """The line of each item of the outermost list."""
    if flat.indexes in ((), (None,)):
        return {}
    text = bytes(document)
    raws = RAWS.decode(text if text[:1] == b"[" else msgspec.json.decode(text, type=_Items).items)
    lines, at, line = {}, 0, first
    for index, raw in enumerate(raws):
        found = text.find(bytes(raw), at)
        line += text.count(b"\n", at, found)
        lines[index], at = line, found
    return lines


class _Items(msgspec.Struct):
    items: msgspec.Raw


def _count_lines(path: Path, end: int) -> int:
    """The line ends before offset `end`."""
    lines = 0
    with path.open("rb") as file:
        while end > 0 and (block := file.read(min(end, CHUNK))):
            lines += block.count(b"\n")
            end -= len(block)
    return lines

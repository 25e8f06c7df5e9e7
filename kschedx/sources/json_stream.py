"""JSON documents, one after the other, of any size.

A list of hundreds of megabytes is never in memory as a whole. It is cut where one item ends and the next begins, which
can mostly be seen without parsing: a line end never occurs inside a JSON string, so `},`, the line end and the
indentation of the first item, and `{` is outside of one. Where that text also occurs deeper inside an item, a cut there
leaves brackets open; the piece is then no JSON array, and whoever decodes it notices. From there on, and in JSON of a
single line, the items are gone through one by one, which takes twice as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn, Protocol

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
from kschedx.sources.lists import Flat, ItemError, Peek, flatten, is_plain_object, peek_of_list

CHUNK = 1 << 20
SMALL = 1 << 20
"""Bytes; a document that fits is read at once, and the place of every object is known."""
MAX_ITEM = 32 << 20
"""Bytes of a list's item; an API server stores objects of less than 2 MB."""
MAX_WHOLE = 128 << 20
"""Bytes of a document that cannot be cut; reading one takes four times as much memory."""

_LISTS = "lists can be of any size, as `kubectl get -o json` and `kschedx snapshot` write them"
_NEAR = 16 << 20
"""Bytes; an item of a chunk is looked for so far behind its beginning."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[(\s*)\{')
_ARRAY = re.compile(rb"\[(\s*)\{")
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
    peek: Peek
    """What it says before its items."""
    separator: bytes
    """What is between two items, with the braces of both; empty where only reading them tells."""
    nested_list: bytes = b""
    """What an item that is a list itself would hold."""
    header: SnapshotHeader | None = None
    """What it says of itself, where it is a snapshot."""


class JsonStream:
    """Reads the documents of a file.

    What was read and not yet handed out is `_text` from `_at` on; `_text` begins at offset `_start` of the file.
    """

    def __init__(
        self,
        file: Readable,
        *,
        source: str,
        path: Path | None = None,
        chunk: int = CHUNK,
        small: int = SMALL,
        max_item: int = MAX_ITEM,
        max_whole: int = MAX_WHOLE,
    ) -> None:
        self._file = file
        self._source = source
        self._path = path
        self._chunk = chunk
        self._small = small
        self._max_item = max_item
        self._max_whole = max_whole
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
            if len(self._text) - self._at < self._small:
                self._fill(2 * self._small)  # not byte by byte, for many short documents
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

    def _grow(self, limit: int) -> bool:
        """Reads at least as much as is at hand, so that trying again costs no more than twice the work.

        Not so where that is more than `limit` bytes.
        """
        held = len(self._text) - self._at
        self._fill(min(max(2 * held, self._small), limit + 1))
        return held <= limit

    # A document that is read whole

    def _whole_document(self) -> Batch:
        first = self._line(self._offset)
        length = self._length_of(b"")
        document = memoryview(self._text)[self._at : self._at + length]
        small = length <= self._small
        broken = invalid_utf8_at(document) if small else None
        if broken is not None:
            raise self._error("not valid UTF-8", offset=self._offset + broken)
        flat = _flat(document, self._place_of_item)
        lines = _lines_of_items(flat, document, first) if small and first is not None else {}
        spots = tuple(
            Spot(document=self._document, line=first if index is None else lines.get(index), index=index)
            for index in flat.indexes
        )
        self._at += length
        self._line(self._offset)
        return Batch(items=flat.items, origin=ListedOrigin(source=self._source, spots=spots), header=flat.header)

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
                if not self._grow(self._max_whole):
                    message = f"a JSON document of more than {self._max_whole >> 20} MB that cannot be read in pieces"
                    raise InputError(message, place=self._place(), hint=_LISTS) from None
            else:
                return len(text) - len(opened)

    # A list that is read in chunks

    def _list_head(self) -> _ListHead | None:
        """The head of a list, if the document is one that does not fit into memory at once and can be cut."""
        if self._ended:
            return None
        match = _ARRAY.match(self._text, self._at) or _ITEMS.search(self._text, self._at)
        if match is None:
            return None
        prefix = self._text[self._at : match.start(1)]
        peek = peek_of_list(prefix)
        if peek is None:
            return None
        try:
            first = memoryview(self._text)[match.end() - 1 :]
            first = first[: _length_of_first(first)]
            plain = is_plain_object(first)
            kind_follows = not plain and peek.kind is None
        except ValueError:  # too long to be seen as a whole
            return _ListHead(prefix=prefix, peek=peek, separator=b"", header=of_list(peek.metadata))
        except (InputError, RecursionError):
            return None
        if kind_follows:
            return None
        separator = b"}," + match[1] + b"{"
        seen = plain and b"\n" in match[1] and self._text.startswith(separator, match.end() - 2 + len(first))
        spaced = b'"kind": "' in bytes(first)
        return _ListHead(
            prefix=prefix,
            peek=peek,
            separator=separator if seen else b"",
            nested_list=b'"kind": "List"' if spaced else b'"kind":"List"',
            header=of_list(peek.metadata),
        )

    def _chunks(self) -> Iterator[Batch]:
        header = self._list.header if self._list else None
        while self._list is not None:
            origin = ChunkOrigin(source=self._source, document=self._document, start=self._offset, file=self._path)
            items = self._cut(self._list.separator) if self._list.separator else None
            batch = Batch(items=items or b"", origin=origin, settle=self._settle, header=header)
            header = None
            if items is None:
                self._read_items(batch)
            elif self._list.nested_list in items:
                batch.decode(RAWS)
                self._flatten(batch, self._list.peek)
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
        self._read_items(batch)

    def _read_items(self, batch: Batch) -> None:
        """Gives the batch the items that are at hand, read one by one, and at least one.

        Where the list ends, goes on to what follows its document. Raises InputError for what is no list.
        """
        assert self._list is not None
        head = self._list = replace(self._list, separator=b"")
        self._fill(self._chunk)
        self._skip_space()
        end = following = 0
        last = False
        while not last:
            text = memoryview(self._text)[self._at + following :]
            length = self._length_of_item(text)
            if length is None:
                if end:
                    break
                if not self._grow(self._max_item):
                    message = f"an object of more than {self._max_item >> 20} MB"
                    raise InputError(message, place=self._place(), hint="API servers store less than 2 MB")
                continue
            end = following + length
            after = bytes(text[length : length + 1])
            last = after == b"]"
            if after not in (b",", b"]"):
                self._refuse_item(following)
            space = _SPACE.match(self._text, self._at + end + 1)
            assert space is not None
            following = space.end() - self._at
        batch.items = b"".join((b"[", memoryview(self._text)[self._at : self._at + end], b"]"))
        batch.settle = None
        self._at += end + 1
        if last:
            self._list = None
            # not in one step: reading on moves `_at`
            length = self._length_of(head.prefix + b"]")
            self._at += length
        self._flatten(batch, head.peek)

    def _length_of_item(self, text: memoryview) -> int | None:
        """Where something follows the JSON value that `text` begins with; None if the text must go on to tell."""
        try:
            _RAW.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            trailing = trailing_at(error)
            if trailing is not None:
                return trailing
            if self._ended or not is_truncated(error, text):
                self._refuse_item(len(self._text) - self._at - len(text))
        else:
            if self._ended:
                self._refuse_item(len(self._text) - self._at - len(text))
        return None

    def _refuse_item(self, inside: int) -> NoReturn:
        """Tells what is wrong with the list from an item on, which begins `inside` of what is at hand."""
        self._at += inside
        opened = b"[0,"
        text = b"".join((opened, memoryview(self._text)[self._at :]))
        try:
            _RAW.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._malformed(error, text, opened) from None
        raise AssertionError("the caller has found an error")

    def _flatten(self, batch: Batch, peek: Peek) -> None:
        origin = batch.origin
        assert isinstance(origin, ChunkOrigin)
        somewhere = Place(source=self._source, document=self._document)
        flat = _flat(batch.items, lambda index: somewhere if index is None else origin.place(index), peek)
        batch.items, batch.origin = flat.items, replace(origin, indexes=flat.indexes)

    # Errors

    def _place(self) -> Place:
        """Of the document, or the part of it, that is at hand."""
        return Place(source=self._source, document=self._document, line=self._line(self._offset))

    def _place_of_item(self, index: int | None) -> Place:
        """Of the document, or of one of its items."""
        return self._place() if index is None else replace(self._place(), object=f"items[{index}]")

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


def _flat(document: bytes | memoryview, place: Callable[[int | None], Place], peek: Peek | None = None) -> Flat:
    """`flatten` with the place, which `place` knows of each item, in its errors."""
    try:
        return flatten(document, peek)
    except ItemError as error:
        raise error.at(place(error.index)) from None
    except InputError as error:
        raise error.at(place(None)) from None
    except RecursionError:
        raise InputError("not valid JSON: it is nested too deeply", place=place(None)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # in a name or kind; what is not looked at here is found by the batch's decoder
        raise explain_malformed(error, b"", place=place(None)) from None


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
    listed = msgspec.json.decode(text, type=_Items) if text[:1] == b"{" else None
    raws = RAWS.decode(text if listed is None else listed.items or listed.Items)
    lines, end, counted, line = {}, 0, 0, first
    for index, raw in enumerate(raws):
        item = bytes(raw)
        found = text.find(item, end)
        line += text.count(b"\n", counted, found)
        lines[index], counted, end = line, found, found + len(item)
    return lines


class _Items(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"")
    Items: msgspec.Raw = msgspec.Raw(b"[]")
    """Of kubectl's own types (`internal_types`)."""


def _count_lines(path: Path, end: int) -> int:
    """The line ends before offset `end`."""
    lines = 0
    with path.open("rb") as file:
        while end > 0 and (block := file.read(min(end, CHUNK))):
            lines += block.count(b"\n")
            end -= len(block)
    return lines

"""Reads sequences of JSON documents of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.snapshot_header import SnapshotHeader, parse_list_header
from kschedx.patterns import lazy_pattern
from kschedx.sources.compression import Readable
from kschedx.sources.lists import (
    RAW,
    RAWS,
    Batch,
    ChunkOrigin,
    Flat,
    ItemError,
    LineCounter,
    ListedOrigin,
    Peek,
    Spot,
    byte_of,
    explain_malformed,
    flatten,
    invalid_utf8_at,
    is_plain_object,
    length_of_first,
    peek_of_list,
    trailing_at,
    what_is_wrong,
)

# A window on a long JSON text: what was read of a file, but not processed yet.

_SPACE = lazy_pattern(rb"\s*")
_DOCUMENT_MARK = lazy_pattern(rb"---[ \t\r]*(?:\n|\Z)")
"""The separator between documents of a YAML file, if each of them is JSON."""


class _JsonText:
    """A window on a file. `text` begins at offset `start` of the file, and its next byte to process is at `at`."""

    def __init__(self, file: Readable, *, lines: LineCounter | None, small: int) -> None:
        """`lines` reads the file again. White space is read in blocks of `small` bytes."""
        self._file = file
        self._lines = lines
        self._small = small
        self.text = b""
        self.at = 0
        self.start = 0
        self.ended = False
        self._known_line = (0, 1)  # a known offset and its line; counting starts there

    @property
    def rest(self) -> memoryview:
        """The bytes in the window that are not processed yet."""
        return memoryview(self.text)[self.at :]

    @property
    def held(self) -> int:
        """The number of bytes in `rest`."""
        return len(self.text) - self.at

    def fill(self, size: int) -> None:
        """Read until `rest` has `size` bytes or the file ends."""
        more = self.read(size - self.held)
        if more:
            self.replace(b"".join((self.rest, more)), at=self.offset)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes of the file, fewer only at its end."""
        blocks = []
        while size > 0 and not self.ended:
            block = self._file.read(size)
            if block:
                blocks.append(block)
                size -= len(block)
            else:
                self.ended = True
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def replace(self, text: bytes, *, at: int) -> None:
        """Replace the window's content by `text`, which begins at offset `at` of the file."""
        self.text, self.at, self.start = text, 0, at

    @property
    def offset(self) -> int:
        return self.start + self.at

    def skip_space(self) -> bool:
        """Skip white space, and return whether anything else is left."""
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.text):
                return True
            if self.ended:
                return False
            self.fill(self._small)

    def grow(self, limit: int) -> bool:
        """Double what is in the window, so that repeated attempts cost at most twice the work. Return whether the
        window held at most `limit` bytes."""
        held = self.held
        self.fill(min(max(2 * held, self._small), limit + 1))
        return held <= limit

    def line(self, offset: int) -> int | None:
        """Return the line of an offset; None in a long stream, which cannot be read again."""
        known, line = self._known_line
        if known >= self.start:
            line += self.text.count(b"\n", known - self.start, offset - self.start)
        elif self._lines is None:
            return None
        else:
            line = self._lines.before(offset) + 1
        self._known_line = (offset, line)
        return line


# A list of hundreds of megabytes is never in memory as a whole. It is cut where one item ends and the next begins,
# usually without parsing: a line end never occurs inside a JSON string. So `},`, the line end, the indentation of the
# first item, and `{` are outside of strings. If that text also occurs deeper inside an item, a cut there leaves
# brackets open. The piece is then no JSON array, which its decoder notices. From there on, and in JSON of a single
# line, items are parsed one by one, which takes twice as long.

_CHUNK = 1 << 18
"""Bytes that are cut at a time: few enough that a processor's cache keeps them until the objects are built."""
_SMALL = 1 << 20  # bytes; a smaller document is read at once, and the place of every object is known
_MAX_ITEM = 32 << 20  # bytes of a list's item; an API server stores objects of less than 2 MB
_MAX_WHOLE = 128 << 20  # bytes of a document that cannot be cut; reading one takes four times as much memory

_LISTS = "lists can be of any size, as `kubectl get -o json` and `kschedx snapshot` write them"

_ITEMS = lazy_pattern(rb'"items"\s*:\s*\[(\s*)\{')
_ARRAY = lazy_pattern(rb"\[(\s*)\{")


class _ListHead(Struct, frozen=True, kw_only=True):
    """The beginning of a list that can be cut."""

    prefix: bytes  # the text up to and including the `[` of its items
    peek: Peek  # the fields before its items
    separator: bytes
    """The text between two items, including the braces of both; empty if items must be parsed to find their ends."""
    nested_list: bytes = b""  # a text that occurs in every item that is a list itself
    header: SnapshotHeader | None = None


_LONGEST_TOKEN = len(r"\ud83d\ude00")


def _is_truncated(error: Exception, text: bytes | memoryview) -> bool:
    """Return whether the text may end before its value does: a word, a number, or an escape sequence may continue."""
    byte = byte_of(error)
    return "truncated" in str(error) or (byte is not None and byte >= len(text) - _LONGEST_TOKEN)


def _lines_of_items(flat: Flat, document: memoryview, first: int) -> dict[int, int]:
    """Return the line of each item of the outermost list, by its index."""
    if flat.indexes in ((), (None,)):
        return {}
    text = bytes(document)
    listed = msgspec.json.decode(text, type=_Items) if text[:1] == b"{" else None
    raws = RAWS.decode(text if listed is None else listed.items or listed.Items)
    lines, end, counted, line = {}, 0, 0, first
    for index, raw in enumerate(raws):
        item = bytes(raw)
        start = text.find(item, end)
        line += text.count(b"\n", counted, start)
        lines[index], counted, end = line, start, start + len(item)
    return lines


class _Items(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"")
    Items: msgspec.Raw = msgspec.Raw(b"[]")  # the items of a list in kubectl's internal types (`lists.as_api_list`)


class JsonStream:
    """Reads the documents of a file."""

    def __init__(
        self,
        file: Readable,
        *,
        source: str,
        path: Path | None = None,
        chunk: int = _CHUNK,
        small: int = _SMALL,
        max_item: int = _MAX_ITEM,
        max_whole: int = _MAX_WHOLE,
    ) -> None:
        self._lines = None if path is None else LineCounter(path)
        self._window = _JsonText(file, lines=self._lines, small=small)
        self._source = source
        self._chunk = chunk
        self._small = small
        self._max_item = max_item
        self._max_whole = max_whole
        self._document = 0
        self._list: _ListHead | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield the batches. Raises InputError for text that is not JSON, with line and column."""
        self._window.fill(self._small)
        if self._window.text.startswith(b"\xef\xbb\xbf"):
            self._window.at = 3
        while self._window.skip_space():
            if self._window.held < max(self._small, 8):
                self._window.fill(max(2 * self._small, 8))  # not byte by byte, for many short documents
            if self._document and (mark := _DOCUMENT_MARK.match(self._window.text, self._window.at)):
                self._window.at = mark.end()
                continue
            self._document += 1
            self._list = self._list_head()
            if self._list is None:
                yield self._whole_document()
            else:
                self._window.at += len(self._list.prefix)
                yield from self._chunks()

    # Documents that are read as a whole

    def _whole_document(self) -> Batch:
        first = self._window.line(self._window.offset)
        length = self._length_of(b"")
        document = memoryview(self._window.text)[self._window.at : self._window.at + length]
        small = length <= self._small
        broken = invalid_utf8_at(document) if small else None
        if broken is not None:
            raise self._error("not valid UTF-8", offset=self._window.offset + broken)
        flat = _flat(document, self._place_of_item)
        lines = _lines_of_items(flat, document, first) if small and first is not None else {}
        spots = tuple(
            Spot(document=self._document, line=first if index is None else lines.get(index), index=index)
            for index in flat.indexes
        )
        self._window.at += length
        self._window.line(self._window.offset)
        return Batch(items=flat.items, origin=ListedOrigin(source=self._source, spots=spots), header=flat.header)

    def _length_of(self, opened: bytes) -> int:
        """Return the length of the JSON value in the window; `opened` is the text before it."""
        while True:
            rest = self._window.rest
            text = b"".join((opened, rest)) if opened else rest
            try:
                RAW.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                trailing = trailing_at(error)
                if trailing is not None:
                    return trailing - len(opened)
                if self._window.ended or not _is_truncated(error, text):
                    raise self._syntax_error(error, text, opened) from None
                if not self._window.grow(self._max_whole):
                    message = f"a JSON document of more than {self._max_whole >> 20} MB that cannot be read in pieces"
                    raise InputError(message, place=self._place(), hint=_LISTS) from None
            else:
                return len(text) - len(opened)

    # Lists that are read in chunks

    def _list_head(self) -> _ListHead | None:
        """Return the head of a list, if the document is one that exceeds the window and can be cut."""
        if self._window.ended:
            return None
        match = _ARRAY.match(self._window.text, self._window.at) or _ITEMS.search(self._window.text, self._window.at)
        if match is None:
            return None
        prefix = self._window.text[self._window.at : match.start(1)]
        peek = peek_of_list(prefix)
        if peek is None:
            return None
        try:
            first = memoryview(self._window.text)[match.end() - 1 :]
            first = first[: length_of_first(first)]
            plain = is_plain_object(first)
            kind_follows = not plain and peek.kind is None
        except ValueError:  # too long to be read as a whole
            return _ListHead(prefix=prefix, peek=peek, separator=b"", header=parse_list_header(peek.metadata))
        except (InputError, RecursionError):
            return None
        if kind_follows:
            return None
        separator = b"}," + match[1] + b"{"
        seen = plain and b"\n" in match[1] and self._window.text.startswith(separator, match.end() - 2 + len(first))
        spaced = b'"kind": "' in bytes(first)
        return _ListHead(
            prefix=prefix,
            peek=peek,
            separator=separator if seen else b"",
            nested_list=b'"kind": "List"' if spaced else b'"kind":"List"',
            header=parse_list_header(peek.metadata),
        )

    def _chunks(self) -> Iterator[Batch]:
        header = self._list.header if self._list else None
        while self._list is not None:
            origin = ChunkOrigin(
                source=self._source, document=self._document, start=self._window.offset, lines=self._lines
            )
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
        """The next chunk of items in brackets; None if no separator is found, for example at the end of the list."""
        rest = self._window.rest
        block = self._window.read(self._chunk)
        end = block.rfind(separator)
        if end >= 0:
            items = b"".join((b"[", rest, memoryview(block)[: end + 1], b"]"))
            self._window.replace(block[end + 2 :], at=self._window.offset + len(rest) + end + 2)
            return items
        # the separator may span both blocks, or be in the first one
        self._window.replace(b"".join((rest, block)), at=self._window.offset)
        end = self._window.text.rfind(separator)
        if end < 0:
            return None
        self._window.at = end + 2
        return b"".join((b"[", memoryview(self._window.text)[: end + 1], b"]"))

    def _settle(self, batch: Batch) -> None:
        """Replace a chunk that is no array: the list ended in it, it was cut inside an item, or it is not JSON."""
        chunk = bytes(batch.items[1:-1])
        self._window.replace(b",".join((chunk, self._window.rest)), at=self._window.offset - len(chunk) - 1)
        self._read_items(batch)

    def _read_items(self, batch: Batch) -> None:
        """Fill the batch with the items in the window, at least one, which are read one by one.

        At the end of the list, continue after its document. Raises InputError for an invalid list.
        """
        assert self._list is not None
        head = self._list = replace(self._list, separator=b"")
        self._window.fill(self._chunk)
        self._window.skip_space()
        end = following = 0
        last = False
        while not last:
            text = memoryview(self._window.text)[self._window.at + following :]
            length = self._length_of_item(text)
            if length is None:
                if end:
                    break
                if not self._window.grow(self._max_item):
                    message = f"an object of more than {self._max_item >> 20} MB"
                    raise InputError(message, place=self._place(), hint="API servers store less than 2 MB")
                continue
            end = following + length
            after = bytes(text[length : length + 1])
            last = after == b"]"
            if after not in (b",", b"]"):
                self._refuse_item(following)
            space = _SPACE.match(self._window.text, self._window.at + end + 1)
            assert space is not None
            following = space.end() - self._window.at
        batch.items = b"".join((b"[", memoryview(self._window.text)[self._window.at : self._window.at + end], b"]"))
        batch.settle = None
        self._window.at += end + 1
        if last:
            self._list = None
            # not in one step: reading moves `at`
            length = self._length_of(head.prefix + b"]")
            self._window.at += length
        self._flatten(batch, head.peek)

    def _length_of_item(self, text: memoryview) -> int | None:
        """Return the length of the JSON value at the beginning of `text`, if something follows it; None if more text is
        needed."""
        try:
            RAW.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            trailing = trailing_at(error)
            if trailing is not None:
                return trailing
            if self._window.ended or not _is_truncated(error, text):
                self._refuse_item(self._window.held - len(text))
        else:
            if self._window.ended:
                self._refuse_item(self._window.held - len(text))
        return None

    def _refuse_item(self, inside: int) -> NoReturn:
        """Raise the error of the list from an item on, which begins at `inside` in the window."""
        self._window.at += inside
        opened = b"[0,"
        text = b"".join((opened, self._window.rest))
        try:
            RAW.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._syntax_error(error, text, opened) from None
        raise AssertionError("the caller has found an error")

    def _flatten(self, batch: Batch, peek: Peek) -> None:
        origin = batch.origin
        assert isinstance(origin, ChunkOrigin)
        somewhere = Place(source=self._source, document=self._document)
        flat = _flat(batch.items, lambda index: somewhere if index is None else origin.place(index), peek)
        batch.items, batch.origin = flat.items, replace(origin, indexes=flat.indexes)

    # Errors

    def _place(self) -> Place:
        """Return the place of the document, or of its part in the window."""
        return Place(source=self._source, document=self._document, line=self._window.line(self._window.offset))

    def _place_of_item(self, index: int | None) -> Place:
        return self._place() if index is None else replace(self._place(), object=f"items[{index}]")

    def _syntax_error(self, error: Exception, text: bytes | memoryview, opened: bytes) -> InputError:
        if isinstance(error, RecursionError):
            return InputError("not valid JSON: it is nested too deeply", place=self._place())
        byte = byte_of(error)
        inside = (len(text) if byte is None else byte) - len(opened)
        return self._error(f"not valid JSON: {what_is_wrong(error, text)}", offset=self._window.offset + inside)

    def _error(self, message: str, *, offset: int) -> InputError:
        line = self._window.line(offset)
        start = self._window.text.rfind(b"\n", 0, offset - self._window.start) + 1
        if start or not self._window.start:
            column = (
                len(self._window.text[start : offset - self._window.start].decode(errors="replace").lstrip("\ufeff"))
                + 1
            )
            message = f"{message}, at column {column}"
        return InputError(message, place=Place(source=self._source, document=self._document, line=line))


def _flat(document: bytes | memoryview, place: Callable[[int | None], Place], peek: Peek | None = None) -> Flat:
    """Call `flatten`, and add the place to its errors; `place` returns that of an item."""
    try:
        return flatten(document, peek)
    except ItemError as error:
        raise error.at(place(error.index)) from None
    except InputError as error:
        raise error.at(place(None)) from None
    except RecursionError:
        raise InputError("not valid JSON: it is nested too deeply", place=place(None)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # the error is in a name or kind; errors elsewhere are found by the batch's decoder
        raise explain_malformed(error, b"", place=place(None)) from None

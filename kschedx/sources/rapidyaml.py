"""YAML by rapidyaml, where its reading is known to be kubectl's."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import cast

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.sources.batch import Batch, ListedOrigin, Spot
from kschedx.sources.lists import Flat, ItemError, flatten
from kschedx.sources.yaml import MAX_DOCUMENT, Text, Value, as_number, load, mapping_key, resolve, split

# rapidyaml, which has no type hints: YAML to JSON text, as that library reads it.


def to_json(text: bytes) -> bytes:
    """One document's JSON. Raises ValueError for what rapidyaml cannot parse or not write as JSON.

    The JSON need not be valid, nor what kubectl reads: unquoted `+5` stays so, and an unquoted `0777` becomes a string.
    """
    import ryml

    with _silent_stderr():
        try:
            written = cast(str | None, ryml.emit_json(ryml.parse_in_arena(text)))
        except ryml.ExceptionBasic:
            raise ValueError("rapidyaml cannot read this") from None
        except UnicodeDecodeError:
            raise ValueError("not valid UTF-8") from None
    return (written or "null").encode()


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """rapidyaml writes its errors to the process's stderr, besides raising them."""
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


# YAML by rapidyaml, where its reading is known to be kubectl's.
#
# rapidyaml is many times as fast as pyyaml, but reads plain scalars by YAML 1.2, does not mind a key that is written
# twice, and writes JSON in which an unquoted `yes` looks like a quoted one. So every piece of text is examined: it is
# taken if nothing in it can be read in two ways, and otherwise read again by `yaml_text`, item by item.

SMALL = 256 << 10
"""Bytes of a list; below this pyyaml is quick enough, and knows the line of every item."""
PIECE = 1 << 20
MAX_BULK = 2 << 20
"""Bytes; rapidyaml takes three hundred times as much for a text that does nothing but open brackets."""
_MANY = 200
"""Ambiguous words; the text is searched for each of them."""

_ITEMS = re.compile(rb"^items:[ \t]*\n( *)- ", re.MULTILINE)
_MARKS = b"&*!@`?%"
_MARK = re.compile(
    rb"[&*!@`?%](?<![^\s\[{,:?-].)(?!(?<=[^\s\[{,:?-] &)[\s&]|(?<=!)=?\s)"  # not a shell's && and !=
)
"""Where an anchor, an alias, a tag, a key with a mark of its own or a reserved character may begin."""
_LONE_COLON = re.compile(rb":(?<=[\[{,].)(?<![^\s\[{,:?-]..)|:(?<=[\s,].)(?<=[\[{,:?-]..)")
"""Where an empty key may begin."""
_BEFORE_COLON = (b" :", b"\n:", b",:", b"[:", b"{:")
_SEEN_DIFFERENTLY = (b"\t", b"\r", b"\n...", b"\n%", b"<<")
"""Line ends and blanks, markers and merge keys, on which the two parsers differ; and those beyond ASCII."""
_SEEN_DIFFERENTLY_BEYOND = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09, 0x0A})
_FORBIDDEN = re.compile(rb"\xc2[\x80-\x9f]|\xed[\xa0-\xbf]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")
"""Characters beyond ASCII that YAML does not have: controls, halves of pairs, marks of byte order."""
_AMBIGUOUS = re.compile(
    rb'"(?=[-+.0-9~yYnNoOTF])('
    rb"y(?:es)?|Y(?:es|ES)?|no?|N(?:o|O|ull|ULL)?|on|O(?:n|N|ff|FF)|off|T(?:rue|RUE)|F(?:alse|ALSE)|~"
    rb"|[-+]?(?:0[0-9xXoObB_][0-9a-fA-F_]*+|[0-9.]++_[0-9_.eE+-]*+|\.(?:inf|Inf|INF|nan|NaN|NAN))"
    rb')"'
)
"""Strings in rapidyaml's JSON that may be no strings to kubectl, if they are not quoted in the YAML.

The order matters to speed: most strings are done with at the first character.
"""
_AMBIGUOUS_KEY = re.compile(rb'"([-+.0-9][^"\\]*|null|)":')
_CLOSING_FIRST = re.compile(rb'[\[{,:]"[\]}]')
"""Strings in rapidyaml's JSON with which no plain text may begin; it minds them only inside of brackets."""
_NOT_FINITE = re.compile(rb"[-+]?\.(?:inf|nan)", re.IGNORECASE)
"""What rapidyaml makes of plain texts such as `infinity`."""

_decoder = msgspec.json.Decoder(float_hook=lambda text: as_number(float(text)))


def read(data: bytes, *, source: str, refuse: Callable[[InputError], None] | None = None) -> Iterator[Batch]:
    """The objects of a YAML text, in a batch per document, or several for a long list.

    With `refuse`, a document that cannot be read is left out where there are others; `refuse` is called with the error.
    """
    refused: list[InputError] = []
    is_alone = True
    for document in split(data, source=source):
        try:
            for batch in _document(document, source):
                is_alone = False
                yield batch
        except InputError as error:
            if refuse is None:
                raise
            refused.append(error)
    if len(refused) == 1 and is_alone:
        raise refused[0]
    for one in refused:
        assert refuse is not None
        refuse(one)


def _document(document: Text, source: str) -> Iterator[Batch]:
    pieces = _Pieces.of(document, source) if len(document.text) > SMALL else None
    if pieces is not None:
        yield from _list(document, pieces, source)
        return
    value = _bulk(document.text)
    if isinstance(value, dict) and value.get("kind") and not str(value["kind"]).endswith("List"):
        spot = Spot(document=document.number, line=_first_line(document))
        origin = ListedOrigin(source=source, spots=(spot,))
        yield Batch(items=_flatten(value, (), document, spot, source).items, origin=origin)
    else:
        yield from _exactly(document, source)


def _exactly(document: Text, source: str, skip: int = 0) -> Iterator[Batch]:
    """The document by `yaml_text`, without the first `skip` items of its list."""
    read = load(document, source=source)
    if read is None:
        return
    value = read.value
    if skip and isinstance(value, dict):
        value = {**value, "items": cast(list[Value], value["items"])[skip:]}
    lines = read.item_lines[skip:]
    spot = Spot(document=document.number, line=read.line)
    if not isinstance(value, dict | list):
        raise ItemError(
            "text, not a Kubernetes object", place=Place(source=source, document=spot.document, line=spot.line)
        )
    flat = _flatten(value, lines, document, spot, source)
    yield _batch(flat, lines, document, spot, source, skip)


def _batch(flat: Flat, lines: tuple[int, ...], document: Text, spot: Spot, source: str, skip: int = 0) -> Batch:
    spots = tuple(
        spot if index is None else Spot(document=document.number, line=lines[index], index=index + skip)
        for index in flat.indexes
    )
    return Batch(items=flat.items, origin=ListedOrigin(source=source, spots=spots), header=flat.header)


def _flatten(value: Value, lines: tuple[int, ...], document: Text, spot: Spot, source: str) -> Flat:
    place = Place(source=source, document=document.number, line=spot.line)
    try:
        return flatten(msgspec.json.encode(value))
    except ItemError as error:
        index = error.index
        raise error.at(place if index is None else Place(source=source, line=lines[index])) from None
    except InputError as error:
        raise error.at(place) from None
    except RecursionError:
        raise InputError("nested too deeply", place=place) from None


def _first_line(document: Text) -> int:
    """The line of the first key."""
    match = re.match(rb"(?:[ \t]*+(?:#.*+)?\n)*+", document.text)
    return document.line + (document.text.count(b"\n", 0, match.end()) if match else 0)


class _Pieces(Struct, frozen=True, kw_only=True):
    """A document that is a list, cut between its items.

    In block style an item begins with a dash at the list's indentation, and nothing inside of it does but a line of a
    quoted text; a cut there leaves the quotes open, and the piece is no YAML.
    """

    head: dict[str, Value]
    """The document without its items."""
    start: int
    """Where the first item begins."""
    end: int
    """Where the last one ends."""
    dash: bytes
    """What is before an item's text, from the line end on."""

    @classmethod
    def of(cls, document: Text, source: str) -> _Pieces | None:
        text = document.text
        match = _ITEMS.search(text)
        if match is None:
            return None
        dash = b"\n" + match[1] + b"- "
        last = text.rfind(dash, match.start(1) - 1)
        indent = len(match[1])
        tail = re.compile(rb"\n {0,%d}[^\s#]" % (indent - 1) if indent else rb"\n[^\s#-]").search(text, last + 1)
        end = tail.start() + 1 if tail else len(text)
        around = b"".join((text[: match.start()], b"items: []\n", text[end:]))
        try:
            head = load(Text(text=around, number=document.number, line=document.line), source=source)
        except InputError:
            return None
        if head is None or not isinstance(head.value, dict) or head.value.get("items") != []:
            return None
        kind = head.value.get("kind")
        if not isinstance(kind, str) or not kind.endswith("List"):
            return None
        return cls(head=head.value, start=match.start(1), end=end, dash=dash)

    def cut(self, text: bytes) -> Iterator[tuple[int, ...]]:
        """Where each item of a piece of about `PIECE` bytes begins, and where the last one ends."""
        starts = [self.start]
        while starts[-1] < self.end:
            following = text.find(self.dash, starts[-1], self.end) + 1 or self.end
            if following - starts[0] > PIECE and len(starts) > 1:
                yield tuple(starts)
                del starts[:-1]
            starts.append(following)
        yield tuple(starts)


def _list(document: Text, pieces: _Pieces, source: str) -> Iterator[Batch]:
    """The items of a long list, about `PIECE` bytes at a time."""
    text = document.text
    spot = Spot(document=document.number, line=document.line)
    line, counted, done = document.line, 0, 0
    for starts in pieces.cut(text):
        lines = []
        for start in starts[:-1]:
            line += text.count(b"\n", counted, start)
            counted = start
            lines.append(line)
        try:
            items = _items(document, starts, lines, source)
        except InputError:
            if len(text) > MAX_DOCUMENT:
                raise
            # the text was cut at a wrong place, or an alias reaches further, or it is no YAML
            yield from _exactly(document, source, skip=done)
            return
        flat = _flatten({**pieces.head, "items": items}, tuple(lines), document, spot, source)
        yield _batch(flat, tuple(lines), document, spot, source)
        done += len(lines)


def _items(document: Text, starts: tuple[int, ...], lines: list[int], source: str) -> list[Value]:
    """The items that begin at these places of the text. Raises InputError if they are no items by themselves."""
    together = _bulk(document.text[starts[0] : starts[-1]])
    if isinstance(together, list) and len(together) == len(lines):
        return together
    items: list[Value] = []
    for (start, end), line in zip(itertools.pairwise(starts), lines, strict=True):
        text = document.text[start:end]
        item = _bulk(text)
        if not isinstance(item, list):
            read = load(Text(text=text, number=document.number, line=line), source=source)
            item = read.value if read else None
        if not isinstance(item, list) or len(item) != 1:
            raise InputError("no item of the list", place=Place(source=source, document=document.number, line=line))
        items += item
    return items


def _bulk(text: bytes) -> Value:
    """What rapidyaml reads; None where that may be something else than kubectl's reading."""
    if len(text) > MAX_BULK or not _is_read_alike(text):
        return None
    try:
        compact = msgspec.json.format(to_json(text), indent=-1)
        value = cast(Value, _decoder.decode(compact))
        # not so if a key is written twice, or a number is written as kubectl would not
        if msgspec.json.encode(value) != compact:
            return None
        closing = text.count(b"]") + text.count(b"}") - text.count(b"[]") - text.count(b"{}")
        if closing and _CLOSING_FIRST.search(compact):
            return None
    except (ValueError, RecursionError):
        return None
    words = {word for word in _AMBIGUOUS.findall(compact) if not _is_string(word)}
    words |= {word for word in _AMBIGUOUS_KEY.findall(compact) if not _is_same_key(word)}
    return None if len(words) > _MANY or any(_may_be_plain(word, text) for word in words) else value


def _is_read_alike(text: bytes) -> bool:
    """Whether nothing in the text is read in two ways, plain scalars aside. What most texts do not have is looked for
    in the fastest way first."""
    if any(mark in text for mark in _SEEN_DIFFERENTLY) or len(text.translate(None, _CONTROLS)) < len(text):
        return False
    if not text.isascii() and (_FORBIDDEN.search(text) or any(mark in text for mark in _SEEN_DIFFERENTLY_BEYOND)):
        return False
    if len(text.translate(None, _MARKS)) < len(text) and _MARK.search(text):
        return False
    return not (any(pair in text for pair in _BEFORE_COLON) and _LONE_COLON.search(text))


def _is_string(word: bytes) -> bool:
    """It is one also where it is not quoted."""
    return not _NOT_FINITE.fullmatch(word) and isinstance(resolve(word.decode()), str)


def _is_same_key(word: bytes) -> bool:
    """As a key it is the same text with and without quotes."""
    try:
        return mapping_key(resolve(word.decode())) == word.decode()
    except ValueError:
        return False


def _may_be_plain(word: bytes, text: bytes) -> bool:
    """The word stands somewhere in `text` without quotes, or is one that rapidyaml has written differently."""
    if _NOT_FINITE.fullmatch(word):
        return True
    # the pattern begins with the word, and only then looks back: so the search is fast
    literal = re.escape(word)
    return re.search(literal + rb"(?<![^\s\[{,]" + literal + rb")(?![^\s,\]}:])", text) is not None

"""Reads YAML as kubectl and kschedx write it, block by block; anything else is left to `kschedx.sources.yaml`."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import cast

import msgspec
from msgspec import Raw, Struct

from kschedx.errors import InputError, Place
from kschedx.patterns import lazy_pattern
from kschedx.sources.lists import Batch, Flat, ItemError, ListedOrigin, Spot, flatten, is_plain_object
from kschedx.sources.yaml import MAX_DOCUMENT, DocumentText, Value, load, resolve, split

# The subset of YAML that programs and people write: mappings and sequences by indentation, with a scalar, or brackets
# around scalars, on the line of its key or dash, and literals. A document without literals may have comments.
#
# An entry of a mapping is its line and all following lines with more indentation. So entries are found without parsing
# their content, and identical ones are parsed once: pods of a workload differ in few lines. A cut inside of quotes or
# brackets leaves them open, and the piece is no YAML. An entry in another form is read by `kschedx.sources.yaml`, which
# is exact and many times slower. Tests verify that both agree.

_MAX_KNOWN = 50_000  # per generation: entries of the previous generation move to the current one if they are read again
_MAX_DEPTH = 50
_MAX_INDENT = 400
_MAX_BRACKETS = 100
"""The maximum number of brackets in the JSON of an exactly read entry, since the depth of the surrounding document is
unknown there."""

_WORD = rb"[\w.,/@+=()%$~;<>^&*!-]"
_BEGIN = rb"(?:-{1,2}(?=[A-Za-z0-9])|\./|[A-Za-z0-9/])"
# `(?>(?:...)*)` where a repetition may fail in the middle: before Python 3.11.5, `(?:...)*+` then ends in the middle
_PLAIN = rb"%b(?>(?:%b++|:(?=%b)| +(?=%b))*)" % (_BEGIN, _WORD, _WORD, _WORD)
_DOUBLE_QUOTED = rb'"(?:[ !#-\[\]-~]|\\["\\/bfnrt])*+"'
_SINGLE_QUOTED = rb"'(?:[ -&(-~]|'')*+'"
_SCALAR = lazy_pattern(rb"(%b)|(%b)|(%b)" % (_DOUBLE_QUOTED, _PLAIN, _SINGLE_QUOTED))
_FLOW_SCALAR = lazy_pattern(
    rb"%b|%b|%b(?>(?:[\w./@+=()%%$~;<>^&*!-]++| +(?=[\w./@+=()%%$~;<>^]))*)" % (_DOUBLE_QUOTED, _SINGLE_QUOTED, _BEGIN)
)
_FLOW_KEY = lazy_pattern(rb'"([A-Za-z][\w./-]*+)": *+|([A-Za-z][\w./-]*+): ++')
_FLOW_COMMA = lazy_pattern(rb" *+, *+(?![\]}])| *+(?=[\]}])")
_ENTRY = lazy_pattern(rb" *+(\.|[A-Za-z](?:[\w./\"{},-]|:(?=[\w{.\"])){0,250}):(?: ([^\n]++))?(?:\n((?s:.*)))?")
"""An entry of a mapping: its key, the rest of its line, and the lines below."""
_AMBIGUOUS = frozenset(
    word.encode()
    for name in ("y", "n", "yes", "no", "true", "false", "on", "off", "null")
    for word in (name, name.capitalize(), name.upper())
)
"""Words that are not strings unless they are quoted."""
_CONSTANTS = {b"null": b"null", b"true": b"true", b"false": b"false"}
_fields = msgspec.json.Decoder(dict[str, Raw])
_BEGIN_KEYS = frozenset(b"%c" % character for character in b"\"'0123456789")
_BEYOND = lazy_pattern(rb"[&*]|<<|(?:^|\s)#")
"""Syntax that may affect other lines: anchors, aliases, merges, and comments, which can have any indentation."""
_COMMENTS = lazy_pattern(rb"(?>(?:[ \t]*+(?:#.*+)?\n)*)")
_LINE = lazy_pattern(rb"""((?>(?:[^"'#]|"(?>(?:[^"\\]|\\.)*)"|'[^']*+'|(?<=[^ ])#)*))(?:(?<![^ ])#.*+)?""")
"""A line on which all quotes are closed, and its comment."""
_LITERAL_MARK = lazy_pattern(rb"[|>][-+0-9]*+ *+$")
_BEFORE_VALUE = lazy_pattern(rb" *+(?>(?:- ++)*)(?:[A-Za-z][\w./-]*+: |(?<=- ))(?! )")
"""The text of a line before its value."""
_PLACEHOLDER = lazy_pattern(rb'"<[0-9]++>"')


class _UnsureError(ValueError):
    """The text is not in the subset, or no YAML."""


@cache
def _boundary_pattern(indent: int, begins: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"\n(?= {%d}%b)" % (indent, begins))


def _begin(text: bytes) -> int:
    """Return the offset of the first line that is neither empty nor a comment."""
    match = _COMMENTS.match(text)
    return match.end() if match else 0


class _Blocks:
    """Converts blocks of text, each without its last line end, to JSON. All blocks of a file share a cache of entries.

    A scalar that continues on a second line must not have a comment between its lines. So texts from which comments
    were removed are not `is_verbatim`, and must have each scalar on one line.
    """

    def __init__(self, *, is_verbatim: bool = True) -> None:
        self._known: dict[bytes, bytes] = {}
        self._former: dict[bytes, bytes] = {}
        self._is_verbatim = is_verbatim
        self._values: dict[bytes, bytes] = {}  # the JSON of the values of lines
        self._similar: dict[int, _Similar] = {}  # the pattern of the last object with this number of lines
        self._joined = 0
        """The number of entries that were not read line by line: a value can be more there than a scalar."""
        self._placeholders = 0
        """The number of the last one: no text with a placeholder is known from an earlier pattern."""

    @cached_property
    def _of_commented_texts(self) -> _Blocks:
        return _Blocks(is_verbatim=False)

    def json(self, text: bytes) -> bytes | None:
        """Return the JSON; None for text outside the subset."""
        if len(self._known) > _MAX_KNOWN:
            self._known, self._former = {}, self._known
        if len(self._values) > _MAX_KNOWN:
            self._values = {}
        block = text[_begin(text) :].removesuffix(b"\n")
        lines = block.split(b"\n")
        similar = self._similar.get(len(lines))
        written = similar and similar.json(lines, self._values)
        if written:
            return written
        try:
            written = self._block(block, -1, 0)
        except (_UnsureError, InputError):
            bare = _without_comments(text) if self._is_verbatim and b"#" in text else None
            return None if bare is None else self._of_commented_texts.json(bare)
        self._similar[len(lines)] = self._pattern(lines, similar, written)
        return written

    def _pattern(self, lines: list[bytes], similar: _Similar | None, written: bytes) -> _Similar:
        """Return the pattern of this object, whose JSON is `written`, and of those that `similar` matches."""
        before = similar.before_values(lines) if similar and b'>"' not in written else {}
        if before:
            marked = list(lines)
            for index, text in before.items():
                self._placeholders += 1
                marked[index] = b'%b"<%d>"' % (text, self._placeholders)
            joined = self._joined
            with contextlib.suppress(_UnsureError, InputError):
                # a line inside of a longer text has no placeholder of its own in the JSON
                pieces = _PLACEHOLDER.split(self._block(b"\n".join(marked), -1, 0))
                if len(pieces) == len(before) + 1 and self._joined == joined:
                    return _Similar(lines, before, pieces)
        return _Similar(lines, {}, ())

    def _block(self, text: bytes, outer: int, depth: int) -> bytes:
        """Return the mapping or sequence of these lines. A sequence may have the indentation of its key, `outer`."""
        indent = len(text) - len(text.lstrip(b" "))
        if depth > _MAX_DEPTH or not outer <= indent <= _MAX_INDENT:
            raise _UnsureError
        if text.startswith(b"- ", indent):
            return b"[%b]" % b",".join(
                self._all(_boundary_pattern(indent, b"- ").split(text), indent, depth, self._element)
            )
        if indent == outer:
            raise _UnsureError
        fields = self._all(_boundary_pattern(indent, rb"[^ \n-]").split(text), indent, depth, self._entry)
        written = b"{%b}" % b",".join(fields)
        if len(_fields.decode(written)) < len(fields):
            raise _UnsureError  # a duplicate key
        return written

    def _all(
        self, texts: list[bytes], indent: int, depth: int, read: Callable[[bytes, int, int], bytes]
    ) -> list[bytes]:
        known, blocks = self._known, []
        for text in texts:
            if depth < 2 and len(text) > 100:  # an object, or its spec: each has its own name or node
                blocks.append(read(text, indent, depth))
                continue
            value = known.get(text)
            if value is None:
                value = known[text] = self._former.get(text) or read(text, indent, depth)
            blocks.append(value)
        return blocks

    def _entry(self, text: bytes, indent: int, depth: int) -> bytes:
        match = _ENTRY.fullmatch(text)
        if match is None or match.start(1) != indent:
            if text[indent : indent + 1] not in _BEGIN_KEYS:
                raise _UnsureError
            return self._exact(text, dict)
        key, inline, below = match.groups()
        if key in _AMBIGUOUS:
            return self._exact(text, dict)
        try:
            if below is None:
                value = b"null" if inline is None else _inline(inline)
            elif inline is None:
                value = self._block(below, indent, depth + 1)
            elif not self._is_verbatim:
                raise _UnsureError
            elif inline in (b"|", b"|-"):
                value = _literal(below, inline, indent)
            else:
                self._joined += 1
                value = _unfold(inline, below, indent)
        except _UnsureError:
            return self._exact(text, dict)
        return b'"%b":%b' % (key.replace(b'"', b'\\"') if b'"' in key else key, value)

    def _element(self, text: bytes, indent: int, depth: int) -> bytes:
        rest = text[indent + 1 :]
        try:
            if b"\n" not in rest:
                with contextlib.suppress(_UnsureError):
                    return _inline(rest.lstrip(b" "))
            return self._block(b" " * (indent + 1) + rest, indent, depth + 1)
        except _UnsureError:
            return self._exact(text, list)

    def _exact(self, text: bytes, form: type[dict[str, Value]] | type[list[Value]]) -> bytes:
        """Return the JSON of a mapping's entry, without braces, or of a sequence's element. Raises InputError if it is
        invalid without the rest of the document."""
        self._joined += 1
        is_alone = not _BEYOND.search(text) and (self._is_verbatim or b"\n" not in text)
        document = load(DocumentText(text=text + b"\n", number=1, line=1), source="") if is_alone else None
        if document is None or not isinstance(document.value, form) or len(document.value) != 1:
            raise InputError("not by itself")
        written = msgspec.json.encode(document.value)
        if written.count(b"[") + written.count(b"{") > _MAX_BRACKETS:
            raise InputError("nested too deeply")
        return written[1:-1]


class _Similar:
    """The pattern of objects that differ only in the values of some lines, such as the pods of a workload."""

    def __init__(self, lines: Sequence[bytes], before: Mapping[int, bytes], pieces: Sequence[bytes]) -> None:
        self._lines = lines  # of one of the objects
        self._before = before
        """The text before the value, by the index of its line; empty if no object with other values was found yet."""
        self._others = [index for index in range(len(lines)) if index not in before]
        self._constant = [lines[index] for index in self._others]
        self._format = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)

    def json(self, lines: Sequence[bytes], known: dict[bytes, bytes]) -> bytes | None:
        """Return the JSON of an object with as many lines; None if it does not match. `known` has the JSON of lines'
        values."""
        if not self._before or [lines[index] for index in self._others] != self._constant:
            return None
        values = []
        for index, before in self._before.items():
            line = lines[index]
            if not line.startswith(before):
                return None
            value = known.get(line)
            if value is None:
                try:
                    value = known[line] = _scalar(line[len(before) :])
                except _UnsureError:
                    return None
            values.append(value)
        return self._format % tuple(values)

    def before_values(self, lines: Sequence[bytes]) -> dict[int, bytes]:
        """Return the text before the value of each line that differs between this object and those of the pattern;
        empty if they differ in more than values."""
        before = {}
        for index, (line, former) in enumerate(zip(lines, self._lines, strict=True)):
            if line != former or index in self._before:
                match = _BEFORE_VALUE.match(line)
                if match is None or not former.startswith(match[0]):
                    return {}
                before[index] = match[0]
        return before


def _without_comments(text: bytes) -> bytes | None:
    """Return the text without comments and empty lines; None if a scalar may continue beyond its line."""
    lines = []
    for line in text.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match is None or _LITERAL_MARK.search(match[1]):
            return None
        if match[1].strip(b" "):
            lines.append(match[1].rstrip(b" "))
    return b"\n".join(lines)


def _inline(text: bytes) -> bytes:
    """Return the JSON of a value that follows its key or dash."""
    if not text.startswith((b"[", b"{")):
        return _scalar(text)
    value, end = _flow(text, 0, 0)
    if end < len(text):
        raise _UnsureError
    return value


def _flow(text: bytes, start: int, depth: int) -> tuple[bytes, int]:
    """Return the JSON of the value in flow style that starts here, and its end."""
    is_mapping = text.startswith(b"{", start)
    if not is_mapping and not text.startswith(b"[", start):
        match = _FLOW_SCALAR.match(text, start)
        if match is None:
            raise _UnsureError
        return _scalar(match[0]), match.end()
    close = b"}" if is_mapping else b"]"
    end = start + 1
    while text.startswith(b" ", end):
        end += 1
    parts: list[bytes] = []
    while not text.startswith(close, end):
        name = b""
        if is_mapping:
            key = _FLOW_KEY.match(text, end)
            if key is None or key[2] in _AMBIGUOUS:
                raise _UnsureError
            name, end = b'"%b":' % (key[1] or key[2]), key.end()
        if depth > _MAX_DEPTH:
            raise _UnsureError
        value, end = _flow(text, end, depth + 1)
        parts.append(name + value)
        comma = _FLOW_COMMA.match(text, end)
        if comma is None:
            raise _UnsureError
        end = comma.end()
    written = (b"{%b}" if is_mapping else b"[%b]") % b",".join(parts)
    if is_mapping and len(_fields.decode(written)) < len(parts):
        raise _UnsureError  # a duplicate key
    return written, end + 1


def _scalar(text: bytes) -> bytes:
    constant = _CONSTANTS.get(text)
    if constant is not None:
        return constant
    match = _SCALAR.fullmatch(text)
    if match is None:
        raise _UnsureError
    if match.lastindex == 1:
        return text
    if match.lastindex == 3:
        return msgspec.json.encode(text[1:-1].replace(b"''", b"'").decode())
    try:
        is_text = text[0] > 0x39 and text not in _AMBIGUOUS
        return b'"%b"' % text if is_text else msgspec.json.encode(resolve(text.decode()))
    except ValueError:
        raise _UnsureError from None


@cache
def _literals(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb" {%d}[!-~][ -~]*+(?:\n {%d} *+[!-~][ -~]*+|\n)*+" % (indent, indent))


def _literal(text: bytes, style: bytes, outer: int) -> bytes:
    indent = len(text) - len(text.lstrip(b" "))
    if not outer < indent <= _MAX_INDENT or not _literals(indent).fullmatch(text):
        raise _UnsureError
    value = text[indent:].replace(b"\n" + b" " * indent, b"\n").rstrip(b"\n").decode()
    return msgspec.json.encode(value if style == b"|-" else value + "\n")


def _unfold(inline: bytes, below: bytes, outer: int) -> bytes:
    """Return a scalar that continues below its first line, as kubectl writes it beyond 80 characters."""
    lines = below.split(b"\n")
    if not all(line.startswith(b" " * (outer + 1)) for line in lines):
        raise _UnsureError
    words = [line.strip(b" ") for line in (inline, *lines)]
    if not all(words):
        raise _UnsureError
    return _inline(b" ".join(words))


# Documents, and lists that are cut between their items.

_PIECE = 1 << 20

_LIST = lazy_pattern(rb"^(?:kind: \w*List|items:)", re.MULTILINE)
_ITEMS = lazy_pattern(rb"^items:[ \t]*\n( *)- ", re.MULTILINE)


def read(data: bytes, *, source: str, refuse: Callable[[InputError], None] | None = None) -> Iterator[Batch]:
    """Yield the objects of a YAML text, in one batch per document, or several for a long list.

    With `refuse`, an unreadable document is skipped if there are others, and `refuse` is called with the error.
    """
    refused: list[InputError] = []
    is_alone = True
    blocks = _Blocks()
    for document in split(data, source=source):
        try:
            for batch in _document(document, source, blocks):
                is_alone = False
                yield batch
        except InputError as error:
            if refuse is None:
                raise
            refused.append(error)
    if len(refused) == 1 and is_alone:
        raise refused[0]
    for input_error in refused:
        assert refuse is not None
        refuse(input_error)


def _document(document: DocumentText, source: str, blocks: _Blocks) -> Iterator[Batch]:
    is_list = _LIST.search(document.text) is not None
    pieces = _Pieces.of(document, source, blocks) if is_list else None
    if pieces is not None:
        yield from _list(document, pieces, source, blocks)
        return
    text = None if is_list else blocks.json(document.text)
    if text is not None and text.startswith(b"{") and is_plain_object(text):
        spot = Spot(document=document.number, line=document.line + document.text.count(b"\n", 0, _begin(document.text)))
        origin = ListedOrigin(source=source, spots=(spot,))
        yield Batch(items=_flatten(text, (), document, spot, source).items, origin=origin)
    else:
        yield from _exactly(document, source)


def _exactly(document: DocumentText, source: str, skip: int = 0) -> Iterator[Batch]:
    """Yield the document as read by `kschedx.sources.yaml`, without the first `skip` items of its list."""
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
    flat = _flatten(msgspec.json.encode(value), lines, document, spot, source)
    yield _batch(flat, lines, document, spot, source, skip)


def _batch(flat: Flat, lines: tuple[int, ...], document: DocumentText, spot: Spot, source: str, skip: int = 0) -> Batch:
    spots = tuple(
        spot if index is None else Spot(document=document.number, line=lines[index], index=index + skip)
        for index in flat.indexes
    )
    return Batch(items=flat.items, origin=ListedOrigin(source=source, spots=spots), header=flat.header)


def _flatten(text: bytes, lines: tuple[int, ...], document: DocumentText, spot: Spot, source: str) -> Flat:
    place = Place(source=source, document=document.number, line=spot.line)
    try:
        return flatten(text)
    except ItemError as error:
        index = error.index
        raise error.at(place if index is None else Place(source=source, line=lines[index])) from None
    except InputError as error:
        raise error.at(place) from None
    except RecursionError:
        raise InputError("nested too deeply", place=place) from None


class _Pieces(Struct, frozen=True, kw_only=True):
    """A document that is a list, cut between its items.

    In block style, an item begins with a dash at the list's indentation. Inside items, only a line of a quoted text can
    begin so; a cut there leaves the quotes open, and the piece is no YAML.
    """

    head: dict[str, Raw]  # the document without its items
    start: int  # the offset of the first item
    end: int  # the offset of the end of the last item
    dash: bytes  # the text before an item, from the line end on

    @classmethod
    def of(cls, document: DocumentText, source: str, blocks: _Blocks) -> _Pieces | None:
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
        written = blocks.json(around)
        try:
            if written is None:
                read = load(DocumentText(text=around, number=document.number, line=document.line), source=source)
                written = msgspec.json.encode(read.value if read else None)
            head = _fields.decode(written)
        except (InputError, msgspec.ValidationError):
            return None
        if bytes(head.get("items", b"")) != b"[]" or not bytes(head.get("kind", b"")).endswith(b'List"'):
            return None
        return cls(head=head, start=match.start(1), end=end, dash=dash)

    def cut(self, text: bytes) -> Iterator[tuple[int, ...]]:
        """Yield pieces of about `_PIECE` bytes, as the offset of each item and that of the end."""
        starts = [self.start]
        while starts[-1] < self.end:
            following = text.find(self.dash, starts[-1], self.end) + 1 or self.end
            if following - starts[0] > _PIECE and len(starts) > 1:
                yield tuple(starts)
                del starts[:-1]
            starts.append(following)
        yield tuple(starts)


def _list(document: DocumentText, pieces: _Pieces, source: str, blocks: _Blocks) -> Iterator[Batch]:
    """Yield the items of a long list, about `_PIECE` bytes at a time."""
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
            items = _items(document, starts, lines, source, blocks)
        except InputError:
            if len(text) > MAX_DOCUMENT:
                raise
            # the text was cut at a wrong place, an alias refers to another piece, or it is no YAML
            yield from _exactly(document, source, skip=done)
            return
        listed = msgspec.json.encode({**pieces.head, "items": items})
        flat = _flatten(listed, tuple(lines), document, spot, source)
        yield _batch(flat, tuple(lines), document, spot, source)
        done += len(lines)


def _items(
    document: DocumentText, starts: tuple[int, ...], lines: list[int], source: str, blocks: _Blocks
) -> list[Raw]:
    """Return the items at these offsets of the text. Raises InputError if they are not valid separately."""
    items = []
    for (start, end), line in zip(itertools.pairwise(starts), lines, strict=True):
        text = document.text[start:end]
        item = blocks.json(text)
        if item is None:
            read = load(DocumentText(text=text, number=document.number, line=line), source=source)
            if read is None or not isinstance(read.value, list) or len(read.value) != 1:
                raise InputError("no item of the list", place=Place(source=source, document=document.number, line=line))
            item = msgspec.json.encode(read.value)
        items.append(Raw(item[1:-1]))
    return items

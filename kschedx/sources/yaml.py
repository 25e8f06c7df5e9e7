"""Reads YAML as kubectl does, with line numbers for errors."""

from __future__ import annotations

import binascii
import itertools
import math
import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn, cast

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.patterns import lazy_pattern

if TYPE_CHECKING:
    from yaml.error import Mark
    from yaml.events import CollectionStartEvent, ScalarEvent

# The values of YAML scalars in Kubernetes: those of go-yaml v2, which kubectl uses.
#
# They differ from pyyaml's (`12:30` is not 750, a date stays text, `1e3` and `0o17` are numbers) and from YAML 1.2's
# (`yes`, `on`, and `y` are true, `0777` is 511). kubectl converts YAML to JSON without knowing the types of fields. So
# a label's value `yes` becomes true and is refused; a string must be quoted. Upstream: `resolve` in
# go.yaml.in/yaml/v2, resolve.go; and sigs.k8s.io/yaml, yaml.go.

Scalar = str | int | float | bool | None

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_NOT_FINITE = frozenset(sign + name for sign in ("", "+", "-") for name in (".inf", ".Inf", ".INF")) | frozenset(
    (".nan", ".NaN", ".NAN")
)
_INTEGER = lazy_pattern(r"([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = lazy_pattern(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {  # by the tag's short name
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "null": (type(None),),
    "timestamp": (),
}


def resolve(text: str, tag: str | None = None) -> Scalar:
    """Return the value of an unquoted scalar, or of any scalar with an explicit tag.

    Raises ValueError for a tag that does not fit the text, and for numbers that JSON does not have.
    """
    kind = (tag or "").removeprefix(_TAG)
    if tag and kind == "binary":
        return _binary(text)
    if tag and kind not in _TYPES:
        return text
    value = _plain(text)
    if kind and kind != "timestamp" and type(value) not in _TYPES[kind]:
        raise ValueError(f'"{text}" is no !!{kind}')
    return value


def mapping_key(value: Scalar) -> str:
    """Return a mapping's key in JSON. Raises ValueError for null."""
    match value:
        case None:
            raise ValueError("null cannot be a key")
        case bool():
            return "true" if value else "false"
        case float():
            return _short_float(value)
        case _:
            return str(value)


def _plain(text: str) -> Scalar:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _NOT_FINITE:
        raise ValueError(f"{text} cannot be used: JSON has no such number")
    if text[0] in "+-0123456789":
        bare = text.replace("_", "")
        integer = _integer(bare)
        return integer if integer is not None else _float(bare, text)
    return _float(text, text) if text[0] == "." else text


def _integer(text: str) -> int | None:
    """Parse as Go's ParseInt with base 0, or ParseUint; None if 64 bits are too few."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, digits = match.groups()
    if digits[:2].lower() in ("0x", "0o", "0b"):
        value = int(digits, 0)
    elif digits.startswith("0"):
        value = int(digits, 8)
    elif len(digits) > 20:
        return None
    else:
        value = int(digits)
    if sign == "-":
        return -value if value <= 1 << 63 else None
    return value if value < 1 << (63 if sign else 64) else None


def _float(text: str, otherwise: str) -> int | float | str:
    if not _FLOAT.fullmatch(text):
        return otherwise
    value = float(text)
    return _as_number(value) if math.isfinite(value) else otherwise


def _as_number(value: float) -> int | float:
    """Return a float as Go's JSON has it: an integer if it has no fraction."""
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else value


def _binary(text: str) -> str:
    try:
        import base64

        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except binascii.Error:
        raise ValueError("!!binary is not valid base64") from None


def _short_float(value: float) -> str:
    """Return the shortest text that reads back as the same 32-bit float: Go's FormatFloat(value, 'g', -1, 32)."""
    narrow = struct.pack("f", value)
    (value,) = struct.unpack("f", narrow)
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    precision = next(digits for digits in range(9) if struct.pack("f", float(f"{value:.{digits}e}")) == narrow)
    text = f"{value:.{precision}e}"
    power = int(text.partition("e")[2])
    return f"{float(text):.{max(precision - power, 0)}f}" if -4 <= power < 6 else text


# pyyaml (libyaml) parses the structure, and `resolve` the scalars. If go-yaml v2 and the YAML specification differ,
# this follows go-yaml: a merge key (`<<`) takes effect at its position, so it overrides the keys before it, but not
# those after it. Unlike in kubectl, which takes the last one, a duplicate key is an error.

Value = Scalar | list["Value"] | dict[str, "Value"]

_MAX_DEPTH = 200
MAX_DOCUMENT = 8 << 20  # bytes: libyaml reads a megabyte per second, and an API server stores objects of less than 2 MB
_MAX_REPEATED = 32 << 20  # characters that aliases expand to

# the lookbehind comes last, so that the search for the dashes is fast
_SEPARATOR = lazy_pattern(rb"---(?<![^\n]---)(?:[ \t]*+\n---)*+(.*)")
_OBJECT = lazy_pattern(rb"(?<=\n)apiVersion: \S+[ \t]*\r?\n(?=[a-z])")
"""The beginning of `kubectl get -o yaml`; a file may contain two of them without `---` in between."""
_WHOLE = lazy_pattern(rb"^apiVersion:(?s:.*?)^(?:kind|items):", re.MULTILINE)
_NOTHING = lazy_pattern(rb"(?:[ \t]*+(?:#.*+)?\r?\n|%.*+\n)*+[ \t]*+(?:#.*)?")


class DocumentText(Struct, frozen=True, kw_only=True):
    """The text of one document of a file."""

    text: bytes
    number: int  # among the documents that are not empty, from 1
    line: int  # the line of the file at which the text begins


class YamlDocument(Struct, frozen=True, kw_only=True):
    value: Value
    number: int  # that of its text
    line: int  # the line of its first key
    item_lines: tuple[int, ...]  # the lines at which its `items` begin, or its elements if it is a sequence


def split(text: bytes, *, source: str) -> Iterator[DocumentText]:
    """Yield the documents between the `---` lines, except empty ones.

    As in kubectl, only a comment may follow `---` on its line (k8s.io/apimachinery/pkg/util/yaml/decoder.go).
    """
    text = text.removeprefix(b"\xef\xbb\xbf")
    number, start, line = 0, 0, 1
    # searching for a text first is many times as fast, and most files have neither
    separators = _SEPARATOR.finditer(text) if b"---" in text else ()
    for separator in itertools.chain(separators, (None,)):
        end = separator.start() if separator else len(text)
        begins = [start]
        objects = _OBJECT.finditer(text, start + 1, end) if text.find(b"\napiVersion: ", start, end) >= 0 else ()
        for match in objects:
            if _WHOLE.search(text, begins[-1], match.start()) and _WHOLE.match(text, match.start(), end):
                begins.append(match.start())
        for begin, until in zip(begins, [*begins[1:], end], strict=True):
            if not _NOTHING.fullmatch(text, begin, until):
                number += 1
                yield DocumentText(text=text[begin:until], number=number, line=line + text.count(b"\n", start, begin))
        if separator is None:
            return
        line += text.count(b"\n", start, separator.end())
        after = separator[1].strip()
        if after and not after.startswith(b"#"):
            shown = ascii(after.decode(errors="replace")[:30])
            message = f"{shown} on the line of a document separator: only a comment may follow ---"
            raise InputError(message, place=Place(source=source, line=line))
        start = separator.end()


def load(document: DocumentText, *, source: str) -> YamlDocument | None:
    """Parse a document; None if it is empty or null. Raises InputError with the line."""
    import yaml

    reader = _Reader(document, source)
    if len(document.text) > MAX_DOCUMENT:
        message = f"a YAML document of more than {MAX_DOCUMENT >> 20} MB that cannot be read in pieces"
        reader.fail(message, line=0, hint="lists can be longer, as `kubectl get -o yaml` writes them")
    try:
        return reader.read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        context = f" ({error.context})" if error.context else ""
        where = f", at column {mark.column + 1}" if mark else ""
        line = mark.line if mark else 0
        # libyaml reports the end of the text on the line after the last
        last = document.text.rstrip().count(b"\n")
        hint = "YAML is indented with spaces, not with tabs" if mark and _is_tab(document.text, mark) else ""
        reader.fail(f"not valid YAML: {error.problem}{context}{where}", line=min(line, last), hint=hint)
    except yaml.YAMLError as error:
        what = str(error).splitlines()[0]
        position = getattr(error, "position", 0)
        reader.fail(f"not valid YAML: {what}", line=document.text[:position].count(b"\n"))


def load_all(text: bytes, *, source: str) -> Iterator[YamlDocument]:
    """Yield the documents that are neither empty nor null. Raises InputError with the line."""
    return filter(None, (load(document, source=source) for document in split(text, source=source)))


def value_in(text: str) -> Value:
    """Return the YAML value in a field of an object, such as a ConfigMap's data; None if it is empty. Raises InputError
    with the line, also for several documents."""
    documents = [load(document, source="") for document in split(text.encode(), source="")]
    if len(documents) > 1:
        raise InputError(f"one YAML document is expected, not {len(documents)}")
    return documents[0].value if documents and documents[0] is not None else None


def _is_tab(text: bytes, mark: Mark) -> bool:
    line = text.split(b"\n")[mark.line : mark.line + 1]
    return b"".join(line)[: mark.column + 1].endswith(b"\t")


class _OpenCollection(Struct, kw_only=True):
    """A mapping or sequence that is being read."""

    value: dict[str, Value] | list[Value]
    line: int
    anchor: str | None
    first_node: int  # the number of nodes that were read before it
    first_character: int  # the number of characters in scalars that were read before it
    key: str | None = None  # the key of the next value
    merges: bool = False  # whether the next value is merged
    seen: dict[str, int] = {}  # the line of each key


class _Anchor(Struct, frozen=True, kw_only=True):
    value: Value
    nodes: int  # 0 while it is open
    length: int  # the number of characters in its scalars


class _Reader:
    """Builds a document's value from libyaml's events, without recursion, so that depth costs nothing."""

    def __init__(self, document: DocumentText, source: str) -> None:
        self._document = document
        self._source = source
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, _Anchor] = {}
        self._nodes = 0
        self._alias_nodes = 0
        self._characters = 0
        self._alias_characters = 0
        self._result: Value = None
        self._line = 0
        self._item_lines: list[int] = []

    def read(self) -> YamlDocument | None:
        import yaml
        from yaml import events

        try:
            text = self._document.text.decode()
        except UnicodeDecodeError as error:
            self.fail("not valid UTF-8", line=self._document.text.count(b"\n", 0, error.start))
        loader: yaml.SafeLoader | yaml.CSafeLoader
        loader = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
        documents = 0
        while not isinstance(event := cast(events.Event, loader.get_event()), events.StreamEndEvent):
            line = event.start_mark.line if event.start_mark else 0
            match event:
                case events.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self.fail("another document without a --- line before it", line=line)
                case events.ScalarEvent():
                    self._begin(line)
                    value = self._scalar(event, line)
                    self._characters += len(event.value)
                    self._keep(event.anchor, value, nodes=1, length=len(event.value))
                    self._add(value, line)
                case events.AliasEvent():
                    self._add(self._alias(str(event.anchor), line), line)
                case events.MappingStartEvent() | events.SequenceStartEvent():
                    self._begin(line)
                    self._start({} if isinstance(event, events.MappingStartEvent) else [], event, line)
                case events.MappingEndEvent() | events.SequenceEndEvent():
                    done = self._open.pop()
                    length = self._characters - done.first_character
                    self._keep(done.anchor, done.value, nodes=self._nodes - done.first_node + 1, length=length)
                    self._add(done.value, done.line)
                case _:
                    pass
        if self._result is None:
            return None
        first = self._document.line
        return YamlDocument(
            value=self._result,
            number=self._document.number,
            line=first + self._line,
            item_lines=tuple(first + line for line in self._item_lines),
        )

    def fail(self, message: str, *, line: int, hint: str = "") -> NoReturn:
        """Raise the error at `line` of the document, from 0."""
        place = Place(source=self._source, document=self._document.number, line=self._document.line + line)
        raise InputError(message, place=place, hint=hint)

    def _begin(self, line: int) -> None:
        self._nodes += 1
        if not self._open:
            self._line = line
        elif self._is_item():
            self._item_lines.append(line)

    def _is_item(self) -> bool:
        """Return whether the next value is an element of the document's `items`, or of the document."""
        match self._open:
            case [_OpenCollection(value=list())]:
                return True
            case [_OpenCollection(value=dict(), key="items"), _OpenCollection(value=list())]:
                return True
        return False

    def _start(self, value: dict[str, Value] | list[Value], event: CollectionStartEvent, line: int) -> None:
        if len(self._open) == _MAX_DEPTH:
            self.fail(f"nested more than {_MAX_DEPTH} deep", line=line)
        self._keep(event.anchor, value, nodes=0, length=0)
        first = self._nodes, self._characters
        self._open.append(
            _OpenCollection(value=value, line=line, anchor=event.anchor, first_node=first[0], first_character=first[1])
        )

    def _keep(self, anchor: str | None, value: Value, *, nodes: int, length: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = _Anchor(value=value, nodes=nodes, length=length)

    def _alias(self, name: str, line: int) -> Value:
        if self._open and self._is_item():
            self._item_lines.append(line)
        anchor = self._anchors.get(name)
        if anchor is None:
            self.fail(f"*{name} is used, but there is no &{name} before it", line=line)
        if not anchor.nodes:
            self.fail(f"&{name} contains itself", line=line)
        self._nodes += anchor.nodes + 1
        self._alias_nodes += anchor.nodes
        self._characters += anchor.length
        self._alias_characters += anchor.length
        if self._alias_characters > _MAX_REPEATED:
            self.fail(f"aliases repeat more than {_MAX_REPEATED >> 20} MB", line=line)
        if self._alias_nodes > 100 and self._nodes > 1000 and self._alias_nodes > self._nodes * self._alias_share():
            self.fail("aliases repeat too much of the document", line=line)
        return anchor.value

    def _alias_share(self) -> float:
        """Return the maximum share of aliases in a document. Upstream: `allowedAliasRatio` in go.yaml.in/yaml/v2,
        decode.go."""
        low, high = 400_000, 4_000_000
        return 0.99 - 0.89 * (min(max(self._nodes, low), high) - low) / (high - low)

    def _scalar(self, event: ScalarEvent, line: int) -> Value:
        plain, _ = event.implicit
        if event.tag is None and not plain:
            return event.value
        parent = self._open[-1] if self._open else None
        if event.value == "<<" and parent is not None and isinstance(parent.value, dict) and parent.key is None:
            parent.merges = True
        try:
            return resolve(event.value, event.tag)
        except ValueError as error:
            self.fail(str(error), line=line)

    def _add(self, value: Value, line: int) -> None:
        if not self._open:
            self._result = value
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.merges and parent.key is None:
            parent.key = "<<"
        elif parent.merges:
            self._merge(parent.value, value, line)
            parent.merges, parent.key = False, None
        elif parent.key is None:
            parent.key = self._key(parent, value, line)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _key(self, parent: _OpenCollection, value: Value, line: int) -> str:
        if isinstance(value, dict | list):
            hint = "quote it, if braces are part of the text" if isinstance(value, dict) else ""
            self.fail("a mapping or sequence cannot be a key", line=line, hint=hint)
        try:
            key = mapping_key(value)
        except ValueError as error:
            self.fail(str(error), line=line)
        if key in parent.seen:
            hint = f"first on line {self._document.line + parent.seen[key]}"
            self.fail(f'key "{key}" is written twice', line=line, hint=hint)
        parent.seen[key] = line
        return key

    def _merge(self, into: dict[str, Value], value: Value, line: int) -> None:
        sources = value if isinstance(value, list) else [value]
        for merged in reversed(sources):
            if not isinstance(merged, dict):
                self.fail("<< takes a mapping or a sequence of mappings", line=line)
            into.update(merged)

"""Reads the objects in one file of any format, and recognizes files of other tools."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.kube.typos import variables_hint
from kschedx.patterns import lazy_pattern
from kschedx.sources.compression import JoinedStream, Readable
from kschedx.sources.dumps import See, layouts
from kschedx.sources.lists import Batch, is_nameless

# Recognizes files of other tools, so that the error can name them.

_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"SQLite format 3", "an SQLite database"),
    (b"k8s\x00", "Kubernetes protobuf"),
)
_KUBECTL_ERROR = lazy_pattern(rb"\A(?:error: |Error from server|Unable to connect to the server)")
_EVENTS = "a table of events, not the output of `get -o yaml`"
DESCRIBED = "the output of `kubectl describe`, not of `get -o yaml`"
_TEXT = (
    (lazy_pattern(rb"\A(?:\s*+#.*+\n)*+\s*+(?:FROM|ARG)\s+\S", re.ASCII), "a Dockerfile"),
    (lazy_pattern(rb"\A#!"), "a script"),
    (lazy_pattern(rb"\A\s*+<[!?a-zA-Z]"), "XML or HTML"),
    (lazy_pattern(rb"\A-----BEGIN "), "a key or certificate"),
    (lazy_pattern(rb"\A\s*+(?:(?:terraform|resource|provider|variable|module)\b[^\n:]*\{)"), "a Terraform file"),
    (lazy_pattern(rb"\A(?:NAMESPACE {2,})?LAST SEEN {2,}TYPE "), _EVENTS),
    (lazy_pattern(rb"\A(?:NAME|NAMESPACE|LAST SEEN) {2,}[A-Z]"), "a table printed by kubectl without -o yaml"),
    (
        lazy_pattern(rb"\AName: {2,}+.*+\n"),
        DESCRIBED,
    ),
    (_KUBECTL_ERROR, "an error of kubectl"),
    (lazy_pattern(rb"^services:[ \t\r]*+$", re.MULTILINE), "a Docker Compose file"),
    (lazy_pattern(rb"\A(?:\s*+[#;].*+\n)*+\s*+\[[\w.\" -]++\][ \t\r]*+\n\s*+[\w.-]++ *="), "a TOML or INI file"),
)
_TEMPLATE = lazy_pattern(rb"\{\{-?\s*(?:[.$(\"/]|(?:if|end|else|range|with|include|template|define|toYaml)\b)")

_OTHER_TEMPLATE = lazy_pattern(rb"\{\{-?\s*\w|\{%-?\s*\w")

_HEAD = 64 << 10  # bytes of a text that are searched; the patterns read each byte once

_ANY_TEMPLATE = "looks like a template"
_HELM_TEMPLATE = "looks like a template of a Helm chart"
ALLOWED = "allowed are Kubernetes objects in YAML or JSON"


def _binary(head: bytes) -> str:
    """Return the apparent type of data that cannot be YAML or JSON; empty if it can be. `head` are at least the first
    512 bytes."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "a tar archive"
    return "binary data" if b"\0" in head else ""


def _foreign_text(content: bytes) -> str:
    """Return the apparent type of a text that is no manifest; empty if unknown."""
    head = content[:_HEAD]
    return next((name for pattern, name in _TEXT if pattern.search(head)), "")


def _foreign_template(content: bytes) -> tuple[str, str, int] | None:
    """Return the error and the hint for a template, of a Helm chart or another, and the first line with a template
    expression."""
    for pattern, message, hint in (
        (_TEMPLATE, _HELM_TEMPLATE, "render it first, with `helm template`"),
        (_OTHER_TEMPLATE, _ANY_TEMPLATE, "render it first"),
    ):
        if match := pattern.search(content):
            return message, hint, content.count(b"\n", 0, match.start()) + 1
    return None


Refuse: TypeAlias = Callable[[InputError], None]
HEAD = 64 << 10  # bytes by which a file is recognized
_LOG_LINES = lazy_pattern(rb"\A(?:\xef\xbb\xbf)?(?>(?:(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ |Warning: ).*+\n)+)")
"""kubectl's own log and warnings, if its standard error was redirected into the file."""
_MAX_TEXT = 512 << 20  # bytes of a text that is read as a whole: YAML, and text that only begins like JSON
_SAYS_ITS_KIND = lazy_pattern(rb'\{\s*"(?:kind|apiVersion)"')
_JSON_START = lazy_pattern(rb"(?:\xef\xbb\xbf)?\s*+\[?\s*+(?:\{\s*+[\"}]|\])")


class UnpackedFile(Struct, frozen=True, kw_only=True):
    """An unpacked file, of which only the beginning has been read."""

    head: bytes
    rest: Readable
    source: str
    path: Path | None = None  # the file, to read it again
    kind: str = ""  # the kind of its list ("v1 PodList"), if that is known from elsewhere

    @property
    def start(self) -> bytes:
        """The beginning, without byte order mark and white space."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()

    def all(self) -> JoinedStream:
        return JoinedStream(self.head, self.rest)


_KEY = rb"(?:pods|nodes|pvs|pvcs|storageClasses|priorityClasses|schedulerConfig|namespaces)"


_EXPORT_HEAD = lazy_pattern(rb'(?:\s*\{\s*"' + _KEY + rb'"\s*:|(?:---\s*\n)?' + _KEY + rb":(?:\s|$))")


def _may_be_export(head: bytes) -> bool:
    """Return whether the text begins with one of the arrays, as no Kubernetes object does."""
    return _EXPORT_HEAD.match(head) is not None


def read(text: UnpackedFile, see: See, refuse: Refuse | None = None) -> Iterator[Batch]:
    """Yield the objects in a file. With `refuse`, unreadable YAML documents are skipped if there are several. Raises
    InputError with the place."""
    if text.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = _from_utf16(text)
    if logged := _LOG_LINES.match(text.head):  # empty lines, so that later ones keep their numbers
        head = b"\n" * logged[0].count(b"\n") + text.head[logged.end() :]
        text = UnpackedFile(head=head, rest=text.rest, source=text.source, kind=text.kind)
    start = text.start
    with_logs = layouts.is_cluster_info(start)  # logs can contain anything
    if not with_logs and (looks := _binary(text.head)):
        raise _foreign(looks, text.source)
    if text.kind and (start.startswith(b"[") or start.rstrip() == b"null"):
        listed = layouts.as_list(text.kind, _read_all(text))
        yield from _json(io.BytesIO(listed), text.source)
    elif text.kind and start.startswith(b"{") and not _SAYS_ITS_KIND.match(start):
        whole = _read_all(text)
        listed = layouts.as_list(text.kind, b"[%b]" % whole) if is_nameless(whole) else whole
        yield from _any(text, listed, refuse)
    elif _may_be_export(start):
        whole = _read_all(text)
        export = layouts.export(whole, text.source)
        if export is None:
            yield from _any(text, whole, refuse)
        else:
            yield from export.batches()
            see(export.dump())
    elif with_logs:
        without = layouts.WithoutLogs(text.all(), text.source)
        if start.startswith(b"{"):
            yield from _json(without, text.source)
        else:
            yield from _yaml(_all_of(without, text.source), text.source, refuse)
        if dump := without.dump(text.source):
            see(dump)
    elif _has_braces(start) and len(text.head) >= HEAD:
        yield from _json(text.all(), text.source, text.path)
    else:
        yield from _any(text, _read_all(text), refuse)


def _from_utf16(text: UnpackedFile) -> UnpackedFile:
    """Decode a file from UTF-16, as PowerShell writes the output of a command. Raises InputError."""
    try:
        whole = _read_all(text).decode("utf-16").encode()
    except UnicodeError:
        raise InputError("not valid UTF-16", source=text.source) from None
    return UnpackedFile(head=whole, rest=io.BytesIO(), source=text.source, kind=text.kind)


def _read_all(text: UnpackedFile) -> bytes:
    return _all_of(text.all(), text.source)


def _all_of(file: Readable, source: str) -> bytes:
    """Return the rest of a file. Raises InputError if it exceeds _MAX_TEXT."""
    blocks, size = [], 0
    while block := file.read(1 << 20):
        blocks.append(block)
        size += len(block)
        if size > _MAX_TEXT:
            message = f"a text of more than {_MAX_TEXT >> 20} MB that cannot be read in pieces"
            raise InputError(message, source=source, hint="lists in JSON may be longer: kubectl get -o json")
    return b"".join(blocks)


def _has_braces(start: bytes) -> bool:
    """Return whether the text begins like JSON; two braces are a template's."""
    return start.startswith((b"{", b"[")) and not start.startswith(b"{{")


def _any(text: UnpackedFile, whole: bytes, refuse: Refuse | None) -> Iterator[Batch]:
    """Yield the objects of a text; `whole` is its complete content."""
    if _has_braces(text.start):
        yield from _braces(text, whole, refuse)
    else:
        yield from _yaml(whole, text.source, refuse)


def _braces(text: UnpackedFile, whole: bytes, refuse: Refuse | None) -> Iterator[Batch]:
    """Yield the objects of a short text that begins like JSON. It may be YAML in flow style, or begin with it."""
    try:
        batches = list(_json(io.BytesIO(whole), text.source, text.path))
    except InputError:
        if _JSON_START.match(whole) and b"\n---" not in whole:
            raise
        yield from _yaml(whole, text.source, refuse)
    else:
        yield from batches


def _json(file: Readable, source: str, path: Path | None = None) -> Iterator[Batch]:
    from kschedx.sources.json_stream import JsonStream

    return JsonStream(file, source=source, path=path).batches()


def _yaml(text: bytes, source: str, refuse: Refuse | None) -> Iterator[Batch]:
    from kschedx.sources import yaml_blocks

    try:
        yield from yaml_blocks.read(text, source=source, refuse=refuse)
    except InputError as error:
        if template := _foreign_template(text):
            message, hint, line = template
            raise InputError(message, place=Place(source=source, line=line), hint=hint) from None
        if looks := _foreign_text(text):
            raise _foreign(looks, source) from None
        rows, number = text.splitlines(), error.place.line or 0
        at = rows[number - 1] if 0 < number <= len(rows) else b""
        failed = "kubectl failed there, so the dump is not complete" if _KUBECTL_ERROR.match(at) else ""
        error.hint = failed or variables_hint(at.decode(errors="replace")) or error.hint
        raise error from None


def _foreign(looks: str, source: str) -> InputError:
    hint = "`kschedx reason - < FILE` explains the events in it" if looks in (DESCRIBED, _EVENTS) else ALLOWED
    return InputError(f"looks like {looks}", source=source, hint=hint)

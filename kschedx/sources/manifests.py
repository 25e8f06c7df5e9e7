"""The objects in one file, whatever it is written in, and what files of other tools look like."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.sources.batch import Batch
from kschedx.sources.compression import Joined, Readable
from kschedx.sources.dumps import See, cluster_info, simulator
from kschedx.sources.json_stream import JsonStream
from kschedx.sources.lists import is_nameless

# Files of other tools: what they look like, so that the error can say so.

_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"SQLite format 3", "an SQLite database"),
    (b"k8s\x00", "Kubernetes protobuf"),
)
_TEXT = (
    (re.compile(rb"\A(?:\s*+#.*+\n)*+\s*+(?:FROM|ARG)\s+\S", re.ASCII), "a Dockerfile"),
    (re.compile(rb"\A#!"), "a script"),
    (re.compile(rb"\A\s*+<[!?a-zA-Z]"), "XML or HTML"),
    (re.compile(rb"\A-----BEGIN "), "a key or certificate"),
    (re.compile(rb"\A\s*+(?:(?:terraform|resource|provider|variable|module)\b[^\n:]*\{)"), "a Terraform file"),
    (re.compile(rb"\A(?:NAME|NAMESPACE|LAST SEEN) {2,}[A-Z]"), "a table printed by kubectl without -o yaml"),
    (
        re.compile(rb"\AName: {2,}+.*+\n"),
        "the output of `kubectl describe`, not of `get -o yaml`",
    ),
    (re.compile(rb"\A(?:error: |Error from server|Unable to connect to the server)"), "an error of kubectl"),
    (re.compile(rb"^services:[ \t\r]*+$", re.MULTILINE), "a Docker Compose file"),
    (re.compile(rb"\A(?:\s*+[#;].*+\n)*+\s*+\[[\w.\" -]++\][ \t\r]*+\n\s*+[\w.-]++ *="), "a TOML or INI file"),
)
_TEMPLATE = re.compile(rb"\{\{-?\s*(?:[.$(\"/]|(?:if|end|else|range|with|include|template|define|toYaml)\b)")

_OTHER_TEMPLATE = re.compile(rb"\{\{-?\s*\w|\{%-?\s*\w")
_VARIABLE = re.compile(r"\$\{\w")

_HEAD = 64 << 10
"""Bytes of a text that are looked at; the patterns take each of them once, whatever they are."""

TEMPLATE = "looks like a template"
HELM_TEMPLATE = "looks like a template of a Helm chart"
FILL_IN = "replace the variables first, for example with `envsubst`"
ALLOWED = "allowed are Kubernetes objects in YAML or JSON"


def binary(head: bytes) -> str:
    """What data looks like that cannot be YAML or JSON; empty if it may be. `head`: the first 512 bytes or more."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "a tar archive"
    return "binary data" if b"\0" in head else ""


def foreign_text(content: bytes) -> str:
    """What a text looks like that is no manifest; empty if unknown."""
    head = content[:_HEAD]
    return next((name for pattern, name in _TEXT if pattern.search(head)), "")


def foreign_template(content: bytes) -> tuple[str, str, int] | None:
    """What to call a template, of a Helm chart or any other; what to do with it; the first line that makes it one."""
    for pattern, message, hint in (
        (_TEMPLATE, HELM_TEMPLATE, "render it first, with `helm template`"),
        (_OTHER_TEMPLATE, TEMPLATE, "render it first"),
    ):
        if match := pattern.search(content):
            return message, hint, content.count(b"\n", 0, match.start()) + 1
    return None


def variables_hint(found: str) -> str:
    """What to do about a value that cannot be, where a variable in it was not filled in."""
    return FILL_IN if _VARIABLE.search(found) and FILL_IN not in found else ""


# The text of one file: what it is written in, and the objects in it.

Refuse: TypeAlias = Callable[[InputError], None]
HEAD = 64 << 10
"""Bytes by which a file is recognized."""
MAX_TEXT = 512 << 20
"""Bytes of a text that is read as a whole: YAML, and what only begins as JSON does."""
_SAYS_ITS_KIND = re.compile(rb'\{\s*"(?:kind|apiVersion)"')
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[?\s*+(?:\{\s*+[\"}]|\])")


class Text(Struct, frozen=True, kw_only=True):
    """A file, unpacked, that has been read as far as it takes to recognize it."""

    head: bytes
    rest: Readable
    source: str
    path: Path | None = None
    """Where it can be read again."""
    kind: str = ""
    """What it is a list of ("v1 PodList"), where that is known otherwise."""

    @property
    def start(self) -> bytes:
        """How it begins, a byte order mark and white space aside."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()

    def all(self) -> Joined:
        return Joined(self.head, self.rest)


def read(text: Text, see: See, refuse: Refuse | None = None) -> Iterator[Batch]:
    """The objects in a file. With `refuse`, what cannot be read of several YAML documents is left out.

    Raises InputError with the place.
    """
    if text.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = _from_utf16(text)
    start = text.start
    with_logs = cluster_info.is_stdout(start)  # and in those may be anything
    if not with_logs and (looks := binary(text.head)):
        raise _foreign(looks, text.source)
    if text.kind and (start.startswith(b"[") or start.rstrip() == b"null"):
        listed = simulator.as_list(text.kind, _whole(text))
        yield from JsonStream(io.BytesIO(listed), source=text.source).batches()
    elif text.kind and start.startswith(b"{") and not _SAYS_ITS_KIND.match(start):
        whole = _whole(text)
        listed = simulator.as_list(text.kind, b"[%b]" % whole) if is_nameless(whole) else whole
        yield from _any(text, listed, refuse)
    elif simulator.may_be_export(start):
        whole = _whole(text)
        export = simulator.export(whole, text.source)
        if export is None:
            yield from _any(text, whole, refuse)
        else:
            yield from export.batches()
            see(export.dump())
    elif with_logs:
        without = cluster_info.WithoutLogs(text.all(), text.source)
        if start.startswith(b"{"):
            yield from JsonStream(without, source=text.source).batches()
        else:
            yield from _yaml(_all_of(without, text.source), text.source, refuse)
        if dump := without.dump(text.source):
            see(dump)
    elif _has_braces(start) and len(text.head) >= HEAD:
        yield from JsonStream(text.all(), source=text.source, path=text.path).batches()
    else:
        yield from _any(text, _whole(text), refuse)


def _from_utf16(text: Text) -> Text:
    """As PowerShell writes what a command prints. Raises InputError."""
    try:
        whole = _whole(text).decode("utf-16").encode()
    except UnicodeError:
        raise InputError("not valid UTF-16", place=Place(source=text.source)) from None
    return Text(head=whole, rest=io.BytesIO(), source=text.source, kind=text.kind)


def holds_nothing(source: str) -> InputError:
    """No object in all of it."""
    return InputError("holds no objects", place=Place(source=source), hint=ALLOWED)


def _whole(text: Text) -> bytes:
    return _all_of(text.all(), text.source)


def _all_of(file: Readable, source: str) -> bytes:
    """All that is left of a file. Raises InputError where that is more than fits."""
    blocks, size = [], 0
    while block := file.read(1 << 20):
        blocks.append(block)
        size += len(block)
        if size > MAX_TEXT:
            message = f"a text of more than {MAX_TEXT >> 20} MB that cannot be read in pieces"
            raise InputError(
                message, place=Place(source=source), hint="lists in JSON may be longer: kubectl get -o json"
            )
    return b"".join(blocks)


def _has_braces(start: bytes) -> bool:
    """It begins as JSON does; two braces are a template's."""
    return start.startswith((b"{", b"[")) and not start.startswith(b"{{")


def _any(text: Text, whole: bytes, refuse: Refuse | None) -> Iterator[Batch]:
    """`whole` is what the file says, all of it."""
    if _has_braces(text.start):
        yield from _braces(text, whole, refuse)
    else:
        yield from _yaml(whole, text.source, refuse)


def _braces(text: Text, whole: bytes, refuse: Refuse | None) -> Iterator[Batch]:
    """A short text that begins as JSON does: it may be YAML in flow style, or begin so."""
    try:
        batches = list(JsonStream(io.BytesIO(whole), source=text.source, path=text.path).batches())
    except InputError:
        if _JSON_START.match(whole) and b"\n---" not in whole:
            raise
        yield from _yaml(whole, text.source, refuse)
    else:
        yield from batches


def _yaml(text: bytes, source: str, refuse: Refuse | None) -> Iterator[Batch]:
    from kschedx.sources import yaml_blocks

    try:
        yield from yaml_blocks.read(text, source=source, refuse=refuse)
    except InputError as error:
        if template := foreign_template(text):
            message, hint, line = template
            raise InputError(message, place=Place(source=source, line=line), hint=hint) from None
        if looks := foreign_text(text):
            raise _foreign(looks, source) from None
        rows, number = text.splitlines(), error.place.line or 0
        at = rows[number - 1].decode(errors="replace") if 0 < number <= len(rows) else ""
        error.hint = variables_hint(at) or error.hint
        raise error from None


def _foreign(looks: str, source: str) -> InputError:
    return InputError(f"looks like {looks}", place=Place(source=source), hint=ALLOWED)

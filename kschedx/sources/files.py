"""Files, folders and standard input."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from kschedx.errors import InputError, Place, nearest
from kschedx.sources import foreign
from kschedx.sources.batch import Batch
from kschedx.sources.json_stream import JsonStream

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
_HEAD = 64 << 10
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[?\s*(?:\{\s*[\"}]|\])")


def read(path: str) -> Iterator[Batch]:
    """The Kubernetes objects of a file, of a folder's *.yaml, *.yml and *.json, or of standard input ("-").

    Folders are read with what is below them, in order of names; hidden files are left out. Any of it may be gzipped.
    Raises InputError with the place for what cannot be read, also midway.
    """
    if path == STDIN:
        yield from _checked(_open_stdin(), STDIN, None)
    elif Path(path).is_dir():
        files = list(_manifests(Path(path)))
        if not files:
            allowed = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
            raise InputError("a folder without manifests", place=Place(source=path), hint=f"allowed are {allowed}")
        empty = True
        for file in files:
            for batch in _file(file, may_be_empty=True):
                empty = False
                yield batch
        if empty:
            raise _holds_nothing(path)
    else:
        yield from _file(Path(path))


def _manifests(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(str(folder), error) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _manifests(folder / entry.name)
        elif entry.name.removesuffix(".gz").endswith(SUFFIXES) and entry.is_file():
            yield folder / entry.name


def _file(path: Path, *, may_be_empty: bool = False) -> Iterator[Batch]:
    source = str(path)
    try:
        with path.open("rb", buffering=0) as file:
            # a pipe with a name cannot be read twice
            again = path if path.is_file() else None
            yield from _checked(cast(BinaryIO, file), source, again, may_be_empty=may_be_empty)
    except FileNotFoundError:
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = nearest(path.name, beside)
        raise InputError("no such file or folder", place=Place(source=source), hint=hint) from None
    except OSError as error:
        raise _unreadable(source, error) from None


def _open_stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed", place=Place(source=STDIN))
    return sys.stdin.buffer


def _unreadable(source: str, error: OSError) -> InputError:
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=Place(source=source))


def _checked(file: BinaryIO, source: str, path: Path | None, *, may_be_empty: bool = False) -> Iterator[Batch]:
    """The file's batches; a file without any object is an error unless `may_be_empty`."""
    empty = True
    for batch in _batches(file, source, path):
        empty = False
        yield batch
    if empty and not may_be_empty:
        raise _holds_nothing(source)


def _holds_nothing(source: str) -> InputError:
    return InputError("holds no objects", place=Place(source=source), hint=foreign.ALLOWED)


def _batches(file: BinaryIO, source: str, path: Path | None) -> Iterator[Batch]:
    head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=_Joined(head, file)))
            yield from _batches_of(unpacked.read(_HEAD), unpacked, source, None)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InputError("damaged gzip data", place=Place(source=source)) from None
    else:
        yield from _batches_of(head, file, source, path)


def _batches_of(head: bytes, file: BinaryIO, source: str, path: Path | None) -> Iterator[Batch]:
    if head.startswith(b"\x1f\x8b"):
        raise _foreign("data compressed twice", source)
    if looks := foreign.binary(head):
        raise _foreign(looks, source)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    whole = _Joined(head, file)
    if not start.startswith((b"{", b"[")) or start.startswith(b"{{"):
        yield from _yaml(whole.read(), source)
    elif len(head) == _HEAD:
        yield from JsonStream(whole, source=source, path=path).batches()
    else:
        yield from _braces(whole.read(), source, path)


def _braces(text: bytes, source: str, path: Path | None) -> Iterator[Batch]:
    """A short text that begins as JSON does: it may be YAML in flow style, or begin so."""
    try:
        batches = list(JsonStream(io.BytesIO(text), source=source, path=path).batches())
    except InputError:
        if _JSON_START.match(text) and b"\n---" not in text:
            raise
        yield from _yaml(text, source)
    else:
        yield from batches


def _yaml(text: bytes, source: str) -> Iterator[Batch]:
    from kschedx.sources import yaml_bulk

    try:
        yield from yaml_bulk.read(text, source=source)
    except InputError as error:
        line = foreign.template_line(text)
        if line is not None:
            place = Place(source=source, line=line)
            message = "looks like a template of a Helm chart"
            raise InputError(message, place=place, hint="render it first, with `helm template`") from None
        if looks := foreign.text(text):
            raise _foreign(looks, source) from None
        raise error from None


def _foreign(looks: str, source: str) -> InputError:
    return InputError(f"looks like {looks}", place=Place(source=source), hint=foreign.ALLOWED)


class _Joined(io.RawIOBase):
    """What was read of a file already, then the rest of it."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            head, self._head = self._head, b""
            return head + b"".join(iter(lambda: self._rest.read(1 << 20), b""))
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size) or b""

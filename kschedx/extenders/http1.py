"""An answer of HTTP/1.x, read as Go's client reads it, with its words for what is wrong.

Upstream: ReadResponse and readTransfer in net/http, ReadMIMEHeader in net/textproto, internal/chunked.go in net/http.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.kube.field_errors import quoted

PIECE = 1 << 16
MOST_HEADERS = 10 << 20
"""Bytes of all headers of an answer."""

_LINE = 4096
"""Bytes of Go's buffer: of a line that begins a chunk, and of a trailer."""
_MOST_QUOTED = 80
_SLACK = 16 << 10
_SPACES = b" \t"
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z -]+")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
_BROKEN = "net/http: HTTP/1.x transport connection broken: "


class MalformedError(Exception):
    """No answer could be read; `str()` is the text of Go's error."""


class CutOffError(Exception):
    """A body ended before its end; `str()` is the text of Go's error."""


class Head(Struct, frozen=True, kw_only=True):
    status: int
    headers: Mapping[str, Sequence[bytes]]
    """By name in small letters."""
    is_chunked: bool
    length: int | None
    """Of the body; None where the end of the connection is its end."""

    def first(self, name: str) -> str:
        """A header's first value; empty where it is not there."""
        return text_of(self.headers.get(name, (b"",))[0])


class Wire:
    """What is read from a connection, with a buffer."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive
        self._held = bytearray()
        self._ended = False
        self._error: OSError | None = None
        self.taken = 0

    def peek(self, size: int) -> bytes:
        """Fewer bytes where there are no more, or none can be read."""
        while len(self._held) < size and self._fill():
            pass
        return bytes(self._held[:size])

    def take(self, size: int) -> bytes:
        """At most so many, at least one; nothing at the end. Raises `OSError`."""
        if not self._held and not self._fill() and self._error is not None:
            raise self._error
        return self._drop(min(size, len(self._held)))

    def line(self, limit: int | None = None) -> bytes | None:
        """With its end, which the last one may lack; of more than `limit` bytes, so many; None at the end.

        Raises `OSError` where there is nothing before it.
        """
        looked = 0
        while (end := self._held.find(b"\n", looked)) < 0:
            looked = len(self._held)
            if (limit is not None and looked >= limit) or not self._fill():
                break
        if not self._held:
            if self._error is not None:
                raise self._error
            return None
        return self._drop(len(self._held) if end < 0 else end + 1)

    def _fill(self) -> bool:
        if self._ended or self._error is not None:
            return False
        try:
            piece = self._receive(PIECE)
        except OSError as error:
            self._error = error
            return False
        self._held += piece
        self._ended = not piece
        return bool(piece)

    def _drop(self, size: int) -> bytes:
        piece = bytes(self._held[:size])
        del self._held[:size]
        self.taken += size
        return piece


def text_of(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _shown(value: bytes) -> str:
    """Go's %q of bytes: those that are no UTF-8 are escaped."""
    return re.sub("[\udc80-\udcff]", lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", _quoted_leniently(value))


def _quoted_leniently(value: bytes) -> str:
    parts = re.split("([\udc80-\udcff])", text_of(value))
    return '"' + "".join(part if at % 2 else quoted(part)[1:-1] for at, part in enumerate(parts)) + '"'


# --- the head


def read_head(wire: Wire) -> Head:
    """Of the answer itself: what only informs is passed over. Raises `MalformedError` and `OSError`."""
    if not wire.peek(1) and wire.line() is None:
        raise MalformedError("EOF")
    while True:
        try:
            head = _one_head(wire)
        except MalformedError as error:
            raise MalformedError(f"{_BROKEN}{error}") from None
        if not 100 <= head.status < 200 or head.status == 101:
            return head


def _one_head(wire: Wire) -> Head:
    line = _line(wire)
    if line is None:
        raise MalformedError("unexpected EOF")
    protocol, space, status = line.partition(b" ")
    if not space:
        raise MalformedError(f"malformed HTTP response {_shown(line)}")
    code = status.lstrip(b" ").partition(b" ")[0]
    if len(code) != 3 or not re.fullmatch(rb"\+?[0-9]+|-0+", code):
        raise MalformedError(f"malformed HTTP status code {_shown(code)}")
    version = re.fullmatch(rb"HTTP/([0-9])\.([0-9])", protocol)
    if version is None:
        raise MalformedError(f"malformed HTTP version {_shown(protocol)}")
    headers = _headers(wire)
    is_chunked = _is_chunked(headers, (int(version[1]), int(version[2])))
    length = _length(headers)
    _check_trailer(headers, is_chunked=is_chunked)
    return Head(status=int(code), headers=headers, is_chunked=is_chunked, length=length)


def _line(wire: Wire) -> bytes | None:
    line = wire.line()
    if wire.taken > MOST_HEADERS:
        raise MalformedError(f"net/http: server response headers exceeded {MOST_HEADERS} bytes; aborted")
    return None if line is None else re.sub(rb"\r?\n\Z", b"", line)


def _headers(wire: Wire) -> dict[str, list[bytes]]:
    """Up to the empty line. Raises `MalformedError` and `OSError`."""
    found: dict[str, list[bytes]] = {}
    if wire.peek(1) in (b" ", b"\t"):
        first = _line(wire) or b""
        if len(first) > _MOST_QUOTED:
            raise MalformedError("message too large")
        raise MalformedError(f"malformed MIME header initial line: {_shown(first)}")
    while (line := _line(wire)) != b"":
        if line is None:
            raise MalformedError("unexpected EOF")
        if b":" not in line:
            raise MalformedError(f"malformed MIME header: missing colon: {_shown(line)}")
        whole = line.strip(_SPACES)
        while wire.peek(1) in (b" ", b"\t"):
            whole += b" " + (_line(wire) or b"").strip(_SPACES)
        name, _, value = whole.partition(b":")
        if not _TOKEN.fullmatch(name):
            raise MalformedError(f"malformed MIME header line: {_shown(whole)}")
        if not _VALUE.fullmatch(value):
            raise MalformedError(f"malformed MIME header line: {_shown(_canonical(name) + b':' + value)}")
        found.setdefault(name.decode("ascii").lower(), []).append(value.lstrip(_SPACES))
    return found


def _canonical(name: bytes) -> bytes:
    return name if b" " in name else b"-".join(part.capitalize() for part in name.split(b"-"))


def _is_chunked(headers: Mapping[str, Sequence[bytes]], version: tuple[int, int]) -> bool:
    values = headers.get("transfer-encoding")
    if values is None or version < (1, 1):
        return False
    if len(values) > 1:
        raise MalformedError(f"too many transfer encodings: [{' '.join(map(_shown, values))}]")
    if values[0].lower() != b"chunked":
        raise MalformedError(f"unsupported transfer encoding: {_shown(values[0])}")
    return True


def _length(headers: Mapping[str, Sequence[bytes]]) -> int | None:
    values = [value.strip(b" \t\r\n") for value in headers.get("content-length", ())]
    if not values:
        return None
    if len(set(values)) > 1:
        shown = " ".join(map(_shown, headers["content-length"]))
        raise MalformedError(f"http: message cannot contain multiple Content-Length headers; got [{shown}]")
    if not values[0]:
        raise MalformedError('invalid empty Content-Length ""')
    if not re.fullmatch(rb"[0-9]+", values[0]) or int(values[0]) >= 1 << 63:
        raise MalformedError(f"bad Content-Length {_shown(values[0])}")
    return int(values[0])


def _check_trailer(headers: Mapping[str, Sequence[bytes]], *, is_chunked: bool) -> None:
    for value in headers.get("trailer", ()) if is_chunked else ():
        for name in value.split(b","):
            key = _canonical(name.strip(b" \t\r\n"))
            if key in (b"Transfer-Encoding", b"Trailer", b"Content-Length"):
                raise MalformedError(f"bad trailer key {_shown(key)}")


# --- the body


def body_of(wire: Wire, head: Head) -> Iterator[bytes]:
    """Piece by piece. Raises `CutOffError` and `OSError` where it does not end well."""
    if head.is_chunked:
        yield from _chunks(wire)
        _read_trailer(wire)
        return
    left = head.length
    while left is None or left > 0:
        piece = wire.take(PIECE if left is None else min(left, PIECE))
        if not piece:
            if left is not None:
                raise CutOffError("unexpected EOF")
            return
        yield piece
        left = None if left is None else left - len(piece)


def _chunks(wire: Wire) -> Iterator[bytes]:
    excess = 0
    while True:
        line = _chunk_line(wire)
        size = _hexadecimal(line.rstrip(_SPACES).partition(b";")[0])
        excess = max(excess + len(line) + 2 - 16 - 2 * size, 0)
        if excess > _SLACK:
            raise CutOffError("chunked encoding contains too much non-data")
        if size == 0:
            return
        while size:
            piece = wire.take(min(size, PIECE))
            if not piece:
                raise CutOffError("unexpected EOF")
            yield piece
            size -= len(piece)
        end = wire.take(1)
        end += wire.take(1) if end else b""
        if end != b"\r\n":
            raise CutOffError("malformed chunked encoding" if len(end) == 2 else "unexpected EOF")


def _chunk_line(wire: Wire) -> bytes:
    line = wire.line(_LINE)
    if line is None or (not line.endswith(b"\n") and len(line) < _LINE):
        raise CutOffError("unexpected EOF")
    if not line.endswith(b"\n") or len(line) > _LINE:
        raise CutOffError("header line too long")
    if b"\r" not in line:
        raise CutOffError("chunked line ends with bare LF")
    if line.index(b"\r") != len(line) - 2:
        raise CutOffError("invalid CR in chunked line")
    return line[:-2]


def _hexadecimal(digits: bytes) -> int:
    if not digits:
        raise CutOffError("empty hex number for chunk length")
    valid = re.match(rb"[0-9a-fA-F]*", digits)
    assert valid is not None
    if len(valid[0]) > 16:
        raise CutOffError("http chunk length too large")
    if valid[0] != digits:
        raise CutOffError("invalid byte in chunk length")
    return int(digits, 16)


def _read_trailer(wire: Wire) -> None:
    begins = wire.peek(2)
    if begins == b"\r\n":
        return
    if len(begins) < 2:
        raise CutOffError("http: unexpected EOF reading trailer")
    if b"\r\n\r\n" not in wire.peek(_LINE):
        raise CutOffError("http: suspiciously long trailer after chunked body")
    try:
        _headers(wire)
    except MalformedError as error:
        raise CutOffError(str(error)) from None

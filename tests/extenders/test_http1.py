"""Answers byte by byte. Every text is what kube-scheduler 1.36.2 said of the same bytes."""

from __future__ import annotations

import gzip
import zlib

import pytest

from kschedx.extenders.gzip_body import unpacked
from kschedx.extenders.http1 import CutOffError, MalformedError, Wire, body_of, read_head

BROKEN = "net/http: HTTP/1.x transport connection broken: "


def read(raw: bytes, *, piece: int = 1 << 16) -> tuple[int, bytes, str]:
    """Status, body, and how the body ended; raises what the head raises."""
    left = bytearray(raw)

    def receive(size: int) -> bytes:
        part = bytes(left[: min(size, piece)])
        del left[: len(part)]
        return part

    wire = Wire(receive)
    head = read_head(wire)
    pieces = body_of(wire, head)
    if head.first("content-encoding").lower() == "gzip":
        pieces = unpacked(pieces)
    found = b""
    try:
        for part in pieces:
            found += part
    except CutOffError as error:
        return head.status, found, str(error)
    return head.status, found, "EOF"


def answer(*headers: str, status: str = "200 OK", body: bytes = b"{}") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode("latin-1") + body


HEADS = [
    (b"", "EOF"),
    (b"\r\n", f'{BROKEN}malformed HTTP response ""'),
    (b"garbage", f'{BROKEN}malformed HTTP response "garbage"'),
    (b'say "hi" \\ x\r\n\r\n', f'{BROKEN}malformed HTTP status code "\\"hi\\""'),
    (b"\x15\x03\x01 \xff\r\n\r\n", f'{BROKEN}malformed HTTP status code "\\xff"'),
    (b"HTTP/1.1 200", f"{BROKEN}unexpected EOF"),
    (b"HTTP/1.1 200 OK\r\nFoo: bar", f"{BROKEN}unexpected EOF"),
    (b"HTTP/1.1 20 x\r\n\r\n", f'{BROKEN}malformed HTTP status code "20"'),
    (b"HTTP/1.1 2x0 OK\r\n\r\n", f'{BROKEN}malformed HTTP status code "2x0"'),
    (b"HTTP/1.10 200 OK\r\n\r\n", f'{BROKEN}malformed HTTP version "HTTP/1.10"'),
    (b"ICY 200 OK\r\n\r\n", f'{BROKEN}malformed HTTP version "ICY"'),
    (answer("NoColon"), f'{BROKEN}malformed MIME header: missing colon: "NoColon"'),
    (answer(" lead: x"), f'{BROKEN}malformed MIME header initial line: " lead: x"'),
    (answer("A: \x01"), f'{BROKEN}malformed MIME header line: "A: \\x01"'),
    (answer("a-b: \rc"), f'{BROKEN}malformed MIME header line: "A-B: \\rc"'),
    (answer("A(: b"), f'{BROKEN}malformed MIME header line: "A(: b"'),
    (answer("Content-Length: abc"), f'{BROKEN}bad Content-Length "abc"'),
    (answer("Content-Length: -1"), f'{BROKEN}bad Content-Length "-1"'),
    (answer("Content-Length:"), f'{BROKEN}invalid empty Content-Length ""'),
    (
        answer("Content-Length: 2", "Content-Length: 3"),
        f'{BROKEN}http: message cannot contain multiple Content-Length headers; got ["2" "3"]',
    ),
    (answer("Transfer-Encoding: gzip, chunked"), f'{BROKEN}unsupported transfer encoding: "gzip, chunked"'),
    (
        answer("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        f'{BROKEN}too many transfer encodings: ["chunked" "chunked"]',
    ),
    (answer("Transfer-Encoding: chunked", "Trailer: Trailer"), f'{BROKEN}bad trailer key "Trailer"'),
    (b"HTTP/1.1 100 Continue\r\n\r\n", f"{BROKEN}unexpected EOF"),
]


@pytest.mark.parametrize(("raw", "words"), HEADS, ids=[words[-40:] for _, words in HEADS])
def test_what_is_no_answer(raw: bytes, words: str) -> None:
    with pytest.raises(MalformedError) as refused:
        read(raw)
    assert str(refused.value) == words


def test_headers_without_end() -> None:
    raw = b"HTTP/1.1 200 OK\r\n" + b"A: %s\r\n" % (b"b" * 1000) * 11_000
    with pytest.raises(MalformedError, match="server response headers exceeded 10485760 bytes; aborted"):
        read(raw)


CHUNKED = "Transfer-Encoding: chunked"
BODIES = [
    (answer("Content-Length: 2"), (200, b"{}", "EOF")),
    (answer(), (200, b"{}", "EOF")),
    (answer("Content-Length: 9"), (200, b"{}", "unexpected EOF")),
    (answer("Content-Length: 0"), (200, b"", "EOF")),
    (answer("A: b", " c", "Content-Length: 2"), (200, b"{}", "EOF")),
    (b"HTTP/1.0 200 OK\nContent-Length: 2\n\n{}", (200, b"{}", "EOF")),
    (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + answer(), (200, b"{}", "EOF")),
    (answer(status="99"), None),
    (answer(status="099 x"), (99, b"{}", "EOF")),
    (answer(CHUNKED, body=b"2\r\n{}\r\n0\r\n\r\n"), (200, b"{}", "EOF")),
    (answer(CHUNKED, "Content-Length: 9", body=b"2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n"), (200, b"{}", "EOF")),
    (answer(CHUNKED, body=b"2\r\n{}\r\n"), (200, b"{}", "unexpected EOF")),
    (answer(CHUNKED, body=b"2\r\n{"), (200, b"{", "unexpected EOF")),
    (answer(CHUNKED, body=b"2\r\n{}XX"), (200, b"{}", "malformed chunked encoding")),
    (answer(CHUNKED, body=b"zz\r\n{}"), (200, b"", "invalid byte in chunk length")),
    (answer(CHUNKED, body=b"\r\n{}"), (200, b"", "empty hex number for chunk length")),
    (answer(CHUNKED, body=b"f" * 17 + b"\r\n{}"), (200, b"", "http chunk length too large")),
    (answer(CHUNKED, body=b"2\n{}"), (200, b"", "chunked line ends with bare LF")),
    (answer(CHUNKED, body=b"1\r2\r\n{}"), (200, b"", "invalid CR in chunked line")),
    (answer(CHUNKED, body=b"1" * 5000), (200, b"", "header line too long")),
    (answer(CHUNKED, body=b"0\r\n"), (200, b"", "http: unexpected EOF reading trailer")),
    (answer(CHUNKED, body=b"0\r\nFoo\r\n\r\n"), (200, b"", 'malformed MIME header: missing colon: "Foo"')),
    (answer(CHUNKED, body=b"0\r\nX: y\r\n"), (200, b"", "http: suspiciously long trailer after chunked body")),
    (
        answer(CHUNKED, body=b"1;%s\r\nx\r\n" % (b"a" * 4000) * 9),
        (200, b"xxxx", "chunked encoding contains too much non-data"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("piece", [1 << 16, 1])
@pytest.mark.parametrize(("raw", "told"), BODIES, ids=[str(raw[-30:]) for raw, _ in BODIES])
def test_bodies(raw: bytes, told: tuple[int, bytes, str] | None, piece: int) -> None:
    if told is None:
        with pytest.raises(MalformedError):
            read(raw, piece=piece)
    else:
        assert read(raw, piece=piece) == told


WHOLE = gzip.compress(b'{"NodeNames": []}', mtime=0)
WRONG_SUM = WHOLE[:-5] + bytes([WHOLE[-5] ^ 1]) + WHOLE[-4:]
GZIPPED = [
    (WHOLE, b'{"NodeNames": []}', "EOF"),
    (gzip.compress(b"{") + gzip.compress(b"}"), b"{}", "EOF"),
    (WHOLE[:20], None, "unexpected EOF"),
    (WHOLE[:9], b"", "unexpected EOF"),
    (WHOLE[:-4], b'{"NodeNames": []}', "unexpected EOF"),
    (WRONG_SUM, b'{"NodeNames": []}', "gzip: invalid checksum"),
    (WHOLE + b"junkjunkjunk", b'{"NodeNames": []}', "gzip: invalid header"),
    (WHOLE + b"junk", b'{"NodeNames": []}', "unexpected EOF"),
    (b'{"NodeNames": []}', b"", "gzip: invalid header"),
    (zlib.compress(b"{}" * 9), b"", "gzip: invalid header"),
    (WHOLE[:10] + b"\x07" + WHOLE[11:], b"", "flate: corrupt input before offset 1"),
    (WHOLE[:10] + b"\x01\x05\x00\x00\x00" + WHOLE[15:], b"", "flate: corrupt input before offset 5"),
]


@pytest.mark.parametrize(("raw", "found", "ended"), GZIPPED, ids=[ended for _, _, ended in GZIPPED])
def test_what_is_packed(raw: bytes, found: bytes | None, ended: str) -> None:
    status, body, how = read(answer("Content-Encoding: gzip", body=raw))
    assert (status, how) == (200, ended)
    assert found is None or body == found


def test_what_unpacks_to_much_more_comes_in_pieces() -> None:
    packed = gzip.compress(b" " * (64 << 20))
    assert max(len(piece) for piece in unpacked(iter([packed]))) <= 1 << 16

"""POSTs of JSON, as Go's HTTP client sends them, within a time and a size; what fails is told in that client's words.

Upstream: Client.do in net/http, as kube-scheduler sets it up (makeTransport and send in pkg/scheduler/extender.go).
Nothing is sent through a proxy, and what identifies the sender (a password in the URL, a client certificate) goes to no
other host than the configured one.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.extenders.gzip_body import unpacked
from kschedx.extenders.http1 import CutOffError, Head, MalformedError, Wire, body_of, read_head
from kschedx.extenders.tls import Identity, TLSError, refused, secured_socket
from kschedx.extenders.urls import LENIENT, URL, URLError, joined, parsed
from kschedx.kube.field_errors import quoted

MAX_ANSWER = 64 << 20
"""Bytes of an answer; kube-scheduler has no limit."""
MAX_REDIRECTS = 10

OK = 200

_GRACE = 0.5
"""Seconds that a request may need to notice that its time is over."""
_FOLLOWED = (301, 302, 303, 307, 308)
_WITH_BODY = (307, 308)
_LAST_PORT = 65535
_HEADERS_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BODY_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class Request(Struct, frozen=True, kw_only=True):
    url: str
    body: bytes
    seconds: float
    """For everything: name, connection, redirects and the body of the answer."""
    identity: Identity


class Response(Struct, frozen=True, kw_only=True):
    """The last answer, or why there is none."""

    status: int = 0
    body: bytes = b""
    """Read for status 200 only."""
    ended: str = "EOF"
    """The error with which the body ended; anything but EOF cut it off."""
    error: str = ""
    """Instead of an answer."""


def post(requests: Sequence[Request]) -> tuple[Response, ...]:
    """All at the same time. Raises `UndecidableError` for an answer of more than MAX_ANSWER, and `InputError` for
    certificates that cannot be read."""
    exchanges = [_Exchange(request) for request in requests]
    threads = [threading.Thread(target=exchange.run, daemon=True) for exchange in exchanges]
    for thread in threads:
        thread.start()
    return tuple(exchange.result(thread) for exchange, thread in zip(exchanges, threads, strict=True))


class _BrokenError(Exception):
    """No answer; `str()` is Go's word for it."""


class _Exchange:
    """One request with its redirects, in a thread of its own."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._deadline = time.monotonic() + request.seconds
        self._shown = request.url
        """The URL that an error names."""
        self._body: list[bytes] | None = None
        """What was read of the body, once there are headers."""
        self._socket: socket.socket | None = None
        self._ends = "?"
        self._response: Response | None = None
        self._raised: BaseException | None = None

    def run(self) -> None:
        try:
            self._response = self._answer()
        except URLError as error:
            self._response = Response(error=str(error))
        except (_BrokenError, MalformedError, CutOffError, TLSError, OSError) as error:
            self._response = self._failed(self._explained(error))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._raised = error
        finally:
            self._close()

    def result(self, thread: threading.Thread) -> Response:
        thread.join(max(self._deadline - time.monotonic(), 0))
        if thread.is_alive():
            self._interrupt()
            thread.join(_GRACE)
        if self._raised is not None:
            raise self._raised
        return self._response or self._late()

    def _interrupt(self) -> None:
        """Wake the thread, which closes what it has opened."""
        held = self._socket
        if held is not None:
            with contextlib.suppress(OSError):  # the other side was faster
                held.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    # --- the answer

    def _answer(self) -> Response:
        first = at = parsed(self._request.url).without_empty_port
        has_body, referer = True, ""
        for hop in range(MAX_REDIRECTS + 1):
            self._shown = str(at)
            wire = self._send(at, is_own=_origin(at) == _origin(first), has_body=has_body, referer=referer)
            head = read_head(wire)
            location = head.first("location") if head.status in _FOLLOWED else ""
            if not location:
                return self._read(wire, head)
            try:
                to = joined(at, location)
            except URLError as error:
                raise _BrokenError(f"failed to parse Location header {quoted(location)}: {error}") from None
            if hop + 1 == MAX_REDIRECTS:
                self._shown = location
                raise _BrokenError(f"stopped after {MAX_REDIRECTS} redirects")
            self._close()
            has_body = has_body and head.status in _WITH_BODY
            referer = "" if (at.scheme, to.scheme) == ("https", "http") else at.without_user
            at = to
        raise AssertionError("the last redirect raises")

    def _send(self, at: URL, *, is_own: bool, has_body: bool, referer: str) -> Wire:
        if at.scheme not in ("http", "https"):
            raise _BrokenError(f"unsupported protocol scheme {quoted(at.scheme)}")
        if not at.host:
            raise _BrokenError("http: no Host in request URL")
        held = self._socket = self._connected(at)
        if at.scheme == "https":
            identity = self._request.identity
            held = self._socket = secured_socket(
                held, at.hostname, identity if is_own else identity.without_certificate()
            )
        sent = self._request.body if has_body else b""
        headers = {"Host": at.host, "User-Agent": "kschedx"}
        if has_body:
            headers |= {"Content-Length": str(len(sent)), "Content-Type": "application/json"}
        headers |= _authorization(at)
        if referer:
            headers["Referer"] = referer
        headers |= {"Accept-Encoding": "gzip", "Connection": "close"}
        lines = [f"{'POST' if has_body else 'GET'} {at.target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        # an answer may be there all the same, and an alert
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            held.sendall("\r\n".join((*lines, "", "")).encode(errors=LENIENT) + sent)
        return Wire(held.recv)

    def _connected(self, at: URL) -> socket.socket:
        port = int(at.port or (443 if at.scheme == "https" else 80))
        if port > _LAST_PORT:
            raise _BrokenError(f"dial tcp: address {at.port}: invalid port")
        try:
            addresses = socket.getaddrinfo(_lookup(at.hostname), port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):
            raise _BrokenError(f"dial tcp: lookup {at.hostname}: no such host") from None
        first = ""
        for family, kind, protocol, _, address in addresses:
            held = socket.socket(family, kind, protocol)
            held.settimeout(max(self._deadline - time.monotonic(), 0.001))
            self._socket = held
            try:
                held.connect(address)
                self._ends = f"{_address(held.getsockname())}->{_address(address)}"
            except TimeoutError:
                raise
            except OSError as error:
                self._close()
                first = (
                    first or f"dial tcp {_address(address) if at.hostname else f':{port}'}: connect: {_words(error)}"
                )
            else:
                return held
        raise _BrokenError(first or f"dial tcp: lookup {at.hostname}: no such host")

    def _read(self, wire: Wire, head: Head) -> Response:
        if head.status != OK:
            return Response(status=head.status)
        parts = self._body = []
        size = 0
        for part in _body(wire, head):
            parts.append(part)
            size += len(part)
            if size > MAX_ANSWER:
                raise UndecidableError(
                    f"the extender at {self._shown} answers with more than {MAX_ANSWER >> 20} MB: "
                    "kschedx reads no further, and kube-scheduler has no limit"
                )
            if time.monotonic() > self._deadline:
                return self._late()
        if time.monotonic() >= self._deadline:  # the end may be where the connection was shut
            return self._late()
        return Response(status=head.status, body=b"".join(parts))

    # --- what went wrong

    def _explained(self, error: Exception) -> str:
        if time.monotonic() >= self._deadline or isinstance(error, TimeoutError):
            return _HEADERS_LATE if self._body is None else _BODY_LATE
        if isinstance(error, ssl.SSLError):
            return refused(error)
        if isinstance(error, OSError):
            return f"read tcp {self._ends}: read: {_words(error)}"
        return str(error)

    def _late(self) -> Response:
        return self._failed(_HEADERS_LATE if self._body is None else _BODY_LATE)

    def _failed(self, words: str) -> Response:
        """In the body it is where the body ended; before that, there is no answer."""
        if self._body is not None:
            return Response(status=OK, body=b"".join(self._body), ended=words)
        return Response(error=f"Post {quoted(self._shown)}: {words}")


def _body(wire: Wire, head: Head) -> Iterator[bytes]:
    pieces = body_of(wire, head)
    return unpacked(pieces) if head.first("content-encoding").lower() == "gzip" and head.length != 0 else pieces


def _lookup(host: str) -> str:
    """The name to ask for. Raises `gaierror` for what Go takes for a name and the C library for an address: `127.1`."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if re.fullmatch(r"[0-9.]+", host):
            raise socket.gaierror from None
    return host or "localhost"


def _origin(at: URL) -> tuple[str, str, str]:
    return at.scheme, at.hostname, at.port


def _authorization(at: URL) -> dict[str, str]:
    if at.user is None:
        return {}
    login = f"{at.username}:{at.password or ''}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _address(address: object) -> str:
    host, port = address[:2] if isinstance(address, tuple) else ("?", 0)
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _words(error: OSError) -> str:
    """As Go words an errno."""
    if isinstance(error, ssl.SSLError) or error.errno is None:
        return str(error)
    return os.strerror(error.errno).lower()

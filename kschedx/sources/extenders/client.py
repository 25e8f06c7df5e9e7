"""POSTs of JSON, as Go's HTTP client sends them, within a time and a size; what fails is told in that client's words.

Upstream: Client.do in net/http, as kube-scheduler sets it up (makeTransport and send in pkg/scheduler/extender.go).
Nothing is sent through a proxy, and what identifies the sender (a password in the URL, a client certificate) goes to no
other host than the configured one.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from msgspec import Struct

from kschedx.api.field_errors import quoted
from kschedx.api.urls import without_password
from kschedx.errors import UndecidableError
from kschedx.sources.extenders.tls import Identity, TLSError, secured

MAX_ANSWER = 64 << 20
"""Bytes of an answer; kube-scheduler has no limit."""
MAX_REDIRECTS = 10

_READ = 1 << 20
_GRACE = 0.5
"""Seconds that a request may need to notice that its time is over."""
_FOLLOWED = (301, 302, 303, 307, 308)
_WITH_BODY = (307, 308)
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
        self._url = request.url
        self._body: list[bytes] | None = None
        """What was read of the body, once there are headers."""
        self._socket: socket.socket | None = None
        self._held: http.client.HTTPResponse | None = None
        self._response: Response | None = None
        self._raised: BaseException | None = None

    def run(self) -> None:
        try:
            self._response = self._answer()
        except (_BrokenError, TLSError, http.client.HTTPException, OSError) as error:
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
        held, self._held = self._held, None
        if held is not None:
            held.close()
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    # --- the answer

    def _answer(self) -> Response:
        method, sent = "POST", self._request.body
        for hop in range(MAX_REDIRECTS + 1):
            response = self._send(method, sent)
            target = response.headers.get("Location") if response.status in _FOLLOWED else None
            if target is None:
                return self._read(response)
            if hop + 1 == MAX_REDIRECTS:
                self._url = target
                raise _BrokenError(f"stopped after {MAX_REDIRECTS} redirects")
            self._close()
            if response.status not in _WITH_BODY:
                method, sent = "GET", b""
            self._url = urljoin(self._url, target)
        raise AssertionError("the last redirect raises")

    def _send(self, method: str, sent: bytes) -> http.client.HTTPResponse:
        at = urlsplit(self._url)
        if at.scheme not in ("http", "https"):
            raise _BrokenError(f"unsupported protocol scheme {quoted(at.scheme)}")
        if not at.hostname:
            raise _BrokenError("http: no Host in request URL")
        is_own = _origin(at) == _origin(urlsplit(self._request.url))
        held = self._socket = self._connected(at)
        if at.scheme == "https":
            identity = self._request.identity
            held = self._socket = secured(held, at.hostname, identity if is_own else identity.without_certificate())
        connection = http.client.HTTPConnection(at.hostname, at.port)
        connection.sock = held
        headers = {"Host": at.netloc.rpartition("@")[2], "Content-Type": "application/json", "User-Agent": "kschedx"}
        headers |= _authorization(at)
        path = f"{at.path or '/'}{f'?{at.query}' if at.query else ''}"
        connection.request(method, path, body=sent if method == "POST" else None, headers=headers)
        self._held = connection.getresponse()
        return self._held

    def _connected(self, at: SplitResult) -> socket.socket:
        port = at.port or (443 if at.scheme == "https" else 80)
        try:
            addresses = socket.getaddrinfo(at.hostname, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):
            raise _BrokenError(f"dial tcp: lookup {at.hostname}: no such host") from None
        first = ""
        for family, kind, protocol, _, address in addresses:
            held = socket.socket(family, kind, protocol)
            held.settimeout(max(self._deadline - time.monotonic(), 0.001))
            self._socket = held
            try:
                held.connect(address)
            except TimeoutError:
                raise
            except OSError as error:
                self._close()
                first = first or f"dial tcp {_address(address)}: connect: {_words(error)}"
            else:
                return held
        raise _BrokenError(first or f"dial tcp: lookup {at.hostname}: no such host")

    def _read(self, response: http.client.HTTPResponse) -> Response:
        if response.status != http.client.OK:
            return Response(status=response.status)
        parts = self._body = []
        size = 0
        ended = "EOF"
        try:
            while part := response.read1(_READ):
                parts.append(part)
                size += len(part)
                if size > MAX_ANSWER:
                    raise UndecidableError(
                        f"the extender at {without_password(self._url)} answers with more than {MAX_ANSWER >> 20} MB: "
                        "kschedx reads no further, and kube-scheduler has no limit"
                    )
                if time.monotonic() > self._deadline:
                    return self._late()
            if response.length:
                ended = self._cut_off()
        except http.client.IncompleteRead as cut:
            parts.append(cut.partial)
            ended = self._cut_off()
        return Response(status=response.status, body=b"".join(parts), ended=ended)

    # --- what went wrong

    def _cut_off(self) -> str:
        """How a body ends before its end: it was late, or the other side closed the connection."""
        return _BODY_LATE if time.monotonic() >= self._deadline else "unexpected EOF"

    def _explained(self, error: Exception) -> str:
        if time.monotonic() >= self._deadline or isinstance(error, TimeoutError):
            return _HEADERS_LATE if self._body is None else _BODY_LATE
        match error:
            case http.client.RemoteDisconnected():
                return "EOF"
            case http.client.BadStatusLine():
                line = quoted(str(error.args[0]).strip() if error.args else "")
                return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {line}"
            case http.client.HTTPException():
                return f"net/http: HTTP/1.x transport connection broken: {error}"
            case _BrokenError() | TLSError():
                return str(error)
            case OSError():
                return f"read tcp {self._ends()}: read: {_words(error)}"
            case _:
                return str(error)

    def _ends(self) -> str:
        held = self._socket
        try:
            return f"{_address(held.getsockname())}->{_address(held.getpeername())}" if held is not None else "?"
        except OSError:
            return "?"

    def _late(self) -> Response:
        return self._failed(_HEADERS_LATE if self._body is None else _BODY_LATE)

    def _failed(self, words: str) -> Response:
        """In the body it is where the body ended; before that, there is no answer."""
        if self._body is not None:
            return Response(status=http.client.OK, body=b"".join(self._body), ended=words)
        return Response(error=f"Post {quoted(without_password(self._url))}: {words}")


def _origin(at: SplitResult) -> tuple[str, str | None, int | None]:
    return at.scheme, at.hostname, at.port


def _authorization(at: SplitResult) -> dict[str, str]:
    if at.username is None:
        return {}
    login = f"{unquote(at.username)}:{unquote(at.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _address(address: object) -> str:
    host, port = address[:2] if isinstance(address, tuple) else ("?", 0)
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _words(error: OSError) -> str:
    """As Go words an errno."""
    if isinstance(error, ssl.SSLError) or error.errno is None:
        return str(error)
    return os.strerror(error.errno).lower()

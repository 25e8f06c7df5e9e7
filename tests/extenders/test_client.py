"""The HTTP client of extenders: requests, timeouts, size limits, and errors in the words of Go's client."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kschedx.errors import InputError, UndecidableError
from kschedx.extenders import client
from kschedx.extenders.client import call
from kschedx.framework.config.decoding import Extender, ExtenderTLSConfig
from kschedx.framework.extenders import ExtenderAnswer, ExtenderFailure, ExtenderRequest, ExtenderVerb, Reply
from kschedx.kube.escaping import Url
from kschedx.kube.scalars import Duration

CERTIFICATE = Path(__file__).parent.parent / "certificates" / "server.pem"
"""A self-signed certificate of 127.0.0.1 with its key."""

HEADERS_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BODY_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class Server:
    """A server that answers with `respond` and stores its requests."""

    def __init__(
        self, respond: Callable[[BaseHTTPRequestHandler], None], *, tls: bool = False, wants_certificate: bool = False
    ) -> None:
        self.requests: list[tuple[str, str, str | None, bytes]] = []
        """Method, path, Authorization, and body."""
        self.stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                self.close_connection = True
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.requests.append((self.command, self.path, self.headers.get("Authorization"), body))
                respond(self)

            def do_GET(self) -> None:
                self.do_POST()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            if wants_certificate:
                context.load_verify_locations(CERTIFICATE)
                context.verify_mode = ssl.CERT_REQUIRED
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


Start = Callable[..., Server]


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[Server] = []

    def start_server(respond: Callable[[BaseHTTPRequestHandler], None], **options: bool) -> Server:
        servers.append(Server(respond, **options))
        return servers[-1]

    yield start_server
    for item in servers:
        item.stop()


def answer(
    body: bytes = b"{}", *, status: int = 200, length: int | None = None, location: str = ""
) -> Callable[..., None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        if location:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def request(
    url: str, *, seconds: float = 5, tls: ExtenderTLSConfig | None = None, body: bytes = b"{}"
) -> ExtenderRequest:
    extender = Extender(url_prefix=url, http_timeout=Duration(int(seconds * 1e9)), tls_config=tls)
    verb = ExtenderVerb.FILTER
    return ExtenderRequest(
        extender=extender, index=0, verb=verb, url=Url(url), pod="default/web", about=(), body=lambda: body
    )


def reply_to(url: str, *, seconds: float = 5, tls: ExtenderTLSConfig | None = None, body: bytes = b"{}") -> Reply:
    (reply,) = call((request(url, seconds=seconds, tls=tls, body=body),))
    return reply


def failure_text(reply: Reply) -> str:
    assert isinstance(reply, ExtenderFailure)
    return reply.text


def test_an_answer_has_status_and_body(start: Start) -> None:
    server = start(answer(b'{"NodeNames": []}'))
    assert reply_to(f"{server.url}/a/b?c=d", body=b'{"Pod": {}}') == ExtenderAnswer(
        status=200, body=b'{"NodeNames": []}'
    )
    assert server.requests == [("POST", "/a/b?c=d", None, b'{"Pod": {}}')]


def test_the_body_of_an_error_is_not_read(start: Start) -> None:
    server = start(answer(b"x" * 100, status=500))
    assert reply_to(server.url) == ExtenderAnswer(status=500)


def test_a_refused_connection() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        text = f'Post "http://{address}/filter": dial tcp {address}: connect: connection refused'
        assert failure_text(reply_to(f"http://{address}/filter")) == text


def test_a_closed_connection(start: Start) -> None:
    server = start(lambda handler: None)
    assert failure_text(reply_to(server.url)) == f'Post "{server.url}": EOF'


def test_a_timeout_of_headers(start: Start) -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        server.stopped.wait(10)

    server = start(silent)
    start_time = time.monotonic()
    assert failure_text(reply_to(server.url, seconds=0.3)) == f'Post "{server.url}": {HEADERS_LATE}'
    assert time.monotonic() - start_time < 5


def test_a_timeout_of_a_slow_body(start: Start) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        answer(b"{", length=1000)(handler)
        while not server.stopped.wait(0.05):
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                return

    server = start(drip)
    response = reply_to(server.url, seconds=0.5)
    assert isinstance(response, ExtenderAnswer)
    assert (response.status, response.ended) == (200, BODY_LATE)


def test_a_timeout_of_slow_headers(start: Start) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        while not server.stopped.wait(0.05):
            try:
                handler.wfile.write(b"H")
                handler.wfile.flush()
            except OSError:
                return

    server = start(drip)
    start_time = time.monotonic()
    assert failure_text(reply_to(server.url, seconds=0.5)) == f'Post "{server.url}": {HEADERS_LATE}'
    assert time.monotonic() - start_time < 5


def test_a_body_shorter_than_its_content_length(start: Start) -> None:
    server = start(answer(b'{"Nod', length=100))
    assert reply_to(server.url) == ExtenderAnswer(status=200, body=b'{"Nod', ended="unexpected EOF")


def test_an_answer_above_the_maximum_size(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 1 << 20)
    server = start(answer(b" " * (2 << 20)))
    with pytest.raises(UndecidableError, match="answers with more than 1 MB: kschedx reads no further"):
        reply_to(server.url)


def test_requests_are_sent_concurrently(start: Start) -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.4)
        answer(handler.path.encode())(handler)

    server = start(slow)
    start_time = time.monotonic()
    replies = call(tuple(request(f"{server.url}/{n}") for n in range(4)))
    assert [reply.body for reply in replies if isinstance(reply, ExtenderAnswer)] == [b"/0", b"/1", b"/2", b"/3"]
    assert time.monotonic() - start_time < 1.5


# --- redirects


def test_a_redirect_keeps_the_request_or_becomes_a_get(start: Start) -> None:
    target = start(answer(b"[]"))
    for status, method, body in ((307, "POST", b"{}"), (308, "POST", b"{}"), (302, "GET", b""), (303, "GET", b"")):
        target.requests.clear()
        server = start(answer(status=status, location=f"{target.url}/to"))
        assert reply_to(server.url) == ExtenderAnswer(status=200, body=b"[]")
        assert target.requests == [(method, "/to", None, body)]


def test_a_redirect_without_a_location(start: Start) -> None:
    assert reply_to(start(answer(status=302)).url) == ExtenderAnswer(status=302)


def test_endless_redirects(start: Start) -> None:
    server = start(answer(status=307, location="/again"))
    assert failure_text(reply_to(server.url)) == 'Post "/again": stopped after 10 redirects'
    assert len(server.requests) == 10


def test_a_password_is_sent_only_to_its_host_and_never_shown(start: Start) -> None:
    target = start(answer())
    server = start(answer(status=307, location=f"{target.url}/to"))
    url_with_login = server.url.replace("//", "//me:secret@")
    reply_to(url_with_login)
    assert [request_parts[2] for request_parts in server.requests] == ["Basic bWU6c2VjcmV0"]
    assert [request_parts[2] for request_parts in target.requests] == [None]
    unreachable = "http://me:secret@127.0.0.1:1/filter"
    assert failure_text(reply_to(unreachable)).startswith(
        'Post "http://***@127.0.0.1:1/filter": dial tcp 127.0.0.1:1: connect: '
    )


def test_a_login_in_an_answer_is_masked(start: Start) -> None:
    def repeat_login(handler: BaseHTTPRequestHandler) -> None:
        answer(f'{{"error": "who is {handler.headers["Authorization"]}"}}'.encode())(handler)

    server = start(repeat_login)
    reply = reply_to(server.url.replace("//", "//me:secret@"))
    assert isinstance(reply, ExtenderAnswer)
    assert reply.body == b'{"error": "who is Basic ***"}'
    assert [request_parts[2] for request_parts in server.requests] == ["Basic bWU6c2VjcmV0"]


# --- TLS


def test_a_certificate_of_a_known_authority(start: Start) -> None:
    server = start(answer(), tls=True)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(ca_file=str(CERTIFICATE))), ExtenderAnswer)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(ca_data=CERTIFICATE.read_bytes())), ExtenderAnswer)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(insecure=True)), ExtenderAnswer)


def test_a_certificate_of_an_unknown_authority(start: Start) -> None:
    server = start(answer(), tls=True)
    text = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert failure_text(reply_to(server.url)) == f'Post "{server.url}": {text}'
    assert not server.requests


def test_a_certificate_of_another_host(start: Start) -> None:
    server = start(answer(), tls=True)
    text = failure_text(
        reply_to(server.url, tls=ExtenderTLSConfig(ca_file=str(CERTIFICATE), server_name="gpu.example"))
    )
    assert text.startswith(f'Post "{server.url}": tls: failed to verify certificate: x509: ')
    assert "gpu.example" in text
    assert not server.requests


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (ExtenderTLSConfig(ca_data=b"no certificate"), "caFile: holds no certificate in PEM"),
        (ExtenderTLSConfig(ca_file="/no/such/file"), "caFile: /no/such/file: no such file or directory"),
        (ExtenderTLSConfig(cert_data=b"x", key_data=b"y"), "certificate and key do not fit"),
    ],
)
def test_invalid_certificates(start: Start, tls: ExtenderTLSConfig, message: str) -> None:
    server = start(answer(), tls=True)
    with pytest.raises(InputError) as error:
        reply_to(server.url, tls=tls)
    assert message in str(error.value)
    assert str(error.value).startswith("extenders[0].tlsConfig.")

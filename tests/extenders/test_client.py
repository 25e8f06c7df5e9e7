"""What goes over the network, and how what fails is worded: as Go's HTTP client does, within a time and a size."""

from __future__ import annotations

import contextlib
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
from kschedx.extenders.client import Request, Response, post
from kschedx.extenders.tls import Identity

CERTIFICATE = Path(__file__).parent.parent / "certificates" / "server.pem"
"""Of 127.0.0.1, signed by itself, with its key."""

HEADERS_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BODY_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class Extender:
    """A server that does what `behave` says, and remembers what it was sent."""

    def __init__(
        self, behave: Callable[[BaseHTTPRequestHandler], None], *, tls: bool = False, wants_certificate: bool = False
    ) -> None:
        self.seen: list[tuple[str, str, str | None, bytes]] = []
        """Method, path, Authorization and body."""
        self.stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                self.close_connection = True
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.command, self.path, self.headers.get("Authorization"), body))
                behave(self)

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


Start = Callable[..., Extender]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Extender] = []

    def begin(behave: Callable[[BaseHTTPRequestHandler], None], **options: bool) -> Extender:
        started.append(Extender(behave, **options))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


def answer(
    body: bytes = b"{}", *, status: int = 200, length: int | None = None, location: str = ""
) -> Callable[..., None]:
    def behave(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        if location:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def one(url: str, *, seconds: float = 5, identity: Identity | None = None, body: bytes = b"{}") -> Response:
    (response,) = post([Request(url=url, body=body, seconds=seconds, identity=identity or Identity())])
    return response


def test_an_answer(start: Start) -> None:
    server = start(answer(b'{"NodeNames": []}'))
    assert one(f"{server.url}/a/b?c=d", body=b'{"Pod": {}}') == Response(status=200, body=b'{"NodeNames": []}')
    assert server.seen == [("POST", "/a/b?c=d", None, b'{"Pod": {}}')]


def test_the_body_of_a_failure_is_not_read(start: Start) -> None:
    server = start(answer(b"x" * 100, status=500))
    assert one(server.url) == Response(status=500)


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{bound.getsockname()[1]}"
        words = f'Post "http://{at}/filter": dial tcp {at}: connect: connection refused'
        assert one(f"http://{at}/filter") == Response(error=words)


def test_the_connection_is_closed_without_an_answer(start: Start) -> None:
    server = start(lambda handler: None)
    assert one(server.url).error == f'Post "{server.url}": EOF'


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gopher://x/filter", 'Post "gopher://x/filter": unsupported protocol scheme "gopher"'),
        ("filter", 'Post "filter": unsupported protocol scheme ""'),
        ("http:///filter", 'Post "http:///filter": http: no Host in request URL'),
    ],
)
def test_urls_that_lead_nowhere(url: str, words: str) -> None:
    assert one(url).error == words


def test_no_answer_in_time(start: Start) -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        server.stopped.wait(10)

    server = start(silent)
    begun = time.monotonic()
    assert one(server.url, seconds=0.3).error == f'Post "{server.url}": {HEADERS_LATE}'
    assert time.monotonic() - begun < 5


def test_a_body_that_comes_drop_by_drop_ends_with_the_time(start: Start) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        answer(b"{", length=1000)(handler)
        while not server.stopped.wait(0.05):
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                return

    server = start(drip)
    response = one(server.url, seconds=0.5)
    assert (response.status, response.ended, response.error) == (200, BODY_LATE, "")


def test_headers_that_come_drop_by_drop_end_with_the_time(start: Start) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        while not server.stopped.wait(0.05):
            try:
                handler.wfile.write(b"H")
                handler.wfile.flush()
            except OSError:
                return

    server = start(drip)
    begun = time.monotonic()
    assert one(server.url, seconds=0.5).error == f'Post "{server.url}": {HEADERS_LATE}'
    assert time.monotonic() - begun < 5


def test_a_body_that_is_shorter_than_promised(start: Start) -> None:
    server = start(answer(b'{"Nod', length=100))
    assert one(server.url) == Response(status=200, body=b'{"Nod', ended="unexpected EOF")


def test_no_http_at_all(start: Start) -> None:
    server = start(lambda handler: handler.wfile.write(b"220 mail.example ESMTP\r\n") and None)
    words = 'net/http: HTTP/1.x transport connection broken: malformed HTTP status code "mail.example"'
    assert one(server.url).error == f'Post "{server.url}": {words}'


def test_an_answer_without_end_is_not_read_to_its_end(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 1 << 20)
    server = start(answer(b" " * (2 << 20)))
    with pytest.raises(UndecidableError, match="answers with more than 1 MB: kschedx reads no further"):
        one(server.url)


def test_many_are_asked_at_the_same_time(start: Start) -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.4)
        answer(handler.path.encode())(handler)

    server = start(slow)
    begun = time.monotonic()
    asked = [Request(url=f"{server.url}/{n}", body=b"", seconds=5, identity=Identity()) for n in range(4)]
    assert [response.body for response in post(asked)] == [b"/0", b"/1", b"/2", b"/3"]
    assert time.monotonic() - begun < 1.5


# --- redirects


def test_a_redirect_keeps_the_request_or_becomes_a_get(start: Start) -> None:
    target = start(answer(b"[]"))
    for status, method, body in ((307, "POST", b"{}"), (308, "POST", b"{}"), (302, "GET", b""), (303, "GET", b"")):
        target.seen.clear()
        server = start(answer(status=status, location=f"{target.url}/to"))
        assert one(server.url) == Response(status=200, body=b"[]")
        assert target.seen == [(method, "/to", None, body)]


def test_a_redirect_without_a_location_is_its_status(start: Start) -> None:
    assert one(start(answer(status=302)).url) == Response(status=302)


def test_a_redirect_to_nowhere(start: Start) -> None:
    server = start(answer(status=302, location="http://[::1"))
    words = """failed to parse Location header "http://[::1": parse "http://[::1": missing ']' in host"""
    assert one(server.url).error == f'Post "{server.url}": {words}'
    server = start(answer(status=302, location="http://127.0.0.1:99999/"))
    assert one(server.url).error == 'Post "http://127.0.0.1:99999/": dial tcp: address 99999: invalid port'


def test_redirects_without_end(start: Start) -> None:
    server = start(answer(status=307, location="/again"))
    assert one(server.url).error == 'Post "/again": stopped after 10 redirects'
    assert len(server.seen) == 10


def test_a_password_is_sent_to_its_host_alone_and_shown_nowhere(start: Start) -> None:
    target = start(answer())
    server = start(answer(status=307, location=f"{target.url}/to"))
    own = server.url.replace("//", "//me:secret@")
    one(own)
    assert [seen[2] for seen in server.seen] == ["Basic bWU6c2VjcmV0"]
    assert [seen[2] for seen in target.seen] == [None]
    down = "http://me:secret@127.0.0.1:1/filter"
    assert one(down).error.startswith('Post "http://me:***@127.0.0.1:1/filter": dial tcp 127.0.0.1:1: connect: ')


# --- TLS


def test_a_certificate_of_a_known_authority(start: Start) -> None:
    server = start(answer(), tls=True)
    assert one(server.url, identity=Identity(ca_file=str(CERTIFICATE))).status == 200
    assert one(server.url, identity=Identity(ca_data=CERTIFICATE.read_bytes())).status == 200
    assert one(server.url, identity=Identity(insecure=True)).status == 200


def test_a_certificate_of_nobody_known(start: Start) -> None:
    server = start(answer(), tls=True)
    words = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert one(server.url).error == f'Post "{server.url}": {words}'
    assert not server.seen


def test_a_certificate_of_another_host(start: Start) -> None:
    server = start(answer(), tls=True)
    response = one(server.url, identity=Identity(ca_file=str(CERTIFICATE), server_name="gpu.example"))
    assert response.error.startswith(f'Post "{server.url}": tls: failed to verify certificate: x509: certificate is ')
    assert response.error.endswith("gpu.example")
    assert not server.seen


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http: server gave HTTP response to HTTPS client"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "tls: first record does not look like a TLS handshake"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "remote error: tls: handshake failure"),
    ],
)
def test_no_tls_where_https_is_expected(said: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_once() -> None:
            held, _ = listening.accept()
            with held, contextlib.suppress(OSError):
                held.recv(1 << 16)
                held.sendall(said)
                held.shutdown(socket.SHUT_WR)
                held.recv(1 << 16)

        thread = threading.Thread(target=answer_once, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        assert one(url).error == f'Post "{url}": {words}'
        thread.join(5)


def test_a_server_that_wants_to_know_who_asks(start: Start) -> None:
    server = start(answer(), tls=True, wants_certificate=True)
    identity = Identity(ca_file=str(CERTIFICATE))
    assert one(server.url, identity=identity).error == f'Post "{server.url}": remote error: tls: certificate required'


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (Identity(ca_data=b"no certificate", place="extenders[0]"), "caData: holds no certificate in PEM"),
        (Identity(ca_file="/no/such/file", place="extenders[0]"), "caFile: /no/such/file: no such file or directory"),
        (Identity(cert_data=b"x", key_data=b"y", place="extenders[0]"), "hold no certificate with its key in PEM"),
    ],
)
def test_certificates_that_cannot_be_used(start: Start, identity: Identity, words: str) -> None:
    server = start(answer(), tls=True)
    with pytest.raises(InputError) as refused:
        one(server.url, identity=identity)
    assert words in str(refused.value)
    assert str(refused.value).startswith("extenders[0].tlsConfig.")


def test_a_client_certificate_goes_to_no_other_host() -> None:
    pair = CERTIFICATE.read_bytes()
    identity = Identity(cert_data=pair, key_data=pair, ca_data=pair, server_name="gpu.example")
    other = identity.without_certificate()
    assert (other.cert_data, other.key_data, other.ca_data) == (b"", b"", pair)

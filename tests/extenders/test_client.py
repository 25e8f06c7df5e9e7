"""What goes over the network, and how what fails is worded: as Go's HTTP client does, within a time and a size."""

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
"""Of 127.0.0.1, signed by itself, with its key."""

HEADERS_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BODY_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class Server:
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


Start = Callable[..., Server]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Server] = []

    def begin(behave: Callable[[BaseHTTPRequestHandler], None], **options: bool) -> Server:
        started.append(Server(behave, **options))
        return started[-1]

    yield begin
    for item in started:
        item.stop()


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


def words(reply: Reply) -> str:
    assert isinstance(reply, ExtenderFailure)
    return reply.text


def test_an_answer(start: Start) -> None:
    server = start(answer(b'{"NodeNames": []}'))
    assert reply_to(f"{server.url}/a/b?c=d", body=b'{"Pod": {}}') == ExtenderAnswer(
        status=200, body=b'{"NodeNames": []}'
    )
    assert server.seen == [("POST", "/a/b?c=d", None, b'{"Pod": {}}')]


def test_the_body_of_a_failure_is_not_read(start: Start) -> None:
    server = start(answer(b"x" * 100, status=500))
    assert reply_to(server.url) == ExtenderAnswer(status=500)


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{bound.getsockname()[1]}"
        text = f'Post "http://{at}/filter": dial tcp {at}: connect: connection refused'
        assert words(reply_to(f"http://{at}/filter")) == text


def test_the_connection_is_closed_without_an_answer(start: Start) -> None:
    server = start(lambda handler: None)
    assert words(reply_to(server.url)) == f'Post "{server.url}": EOF'


def test_no_answer_in_time(start: Start) -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        server.stopped.wait(10)

    server = start(silent)
    begun = time.monotonic()
    assert words(reply_to(server.url, seconds=0.3)) == f'Post "{server.url}": {HEADERS_LATE}'
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
    response = reply_to(server.url, seconds=0.5)
    assert isinstance(response, ExtenderAnswer)
    assert (response.status, response.ended) == (200, BODY_LATE)


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
    assert words(reply_to(server.url, seconds=0.5)) == f'Post "{server.url}": {HEADERS_LATE}'
    assert time.monotonic() - begun < 5


def test_a_body_that_is_shorter_than_promised(start: Start) -> None:
    server = start(answer(b'{"Nod', length=100))
    assert reply_to(server.url) == ExtenderAnswer(status=200, body=b'{"Nod', ended="unexpected EOF")


def test_an_answer_without_end_is_not_read_to_its_end(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 1 << 20)
    server = start(answer(b" " * (2 << 20)))
    with pytest.raises(UndecidableError, match="answers with more than 1 MB: kschedx reads no further"):
        reply_to(server.url)


def test_many_are_asked_at_the_same_time(start: Start) -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.4)
        answer(handler.path.encode())(handler)

    server = start(slow)
    begun = time.monotonic()
    replies = call(tuple(request(f"{server.url}/{n}") for n in range(4)))
    assert [reply.body for reply in replies if isinstance(reply, ExtenderAnswer)] == [b"/0", b"/1", b"/2", b"/3"]
    assert time.monotonic() - begun < 1.5


# --- redirects


def test_a_redirect_keeps_the_request_or_becomes_a_get(start: Start) -> None:
    target = start(answer(b"[]"))
    for status, method, body in ((307, "POST", b"{}"), (308, "POST", b"{}"), (302, "GET", b""), (303, "GET", b"")):
        target.seen.clear()
        server = start(answer(status=status, location=f"{target.url}/to"))
        assert reply_to(server.url) == ExtenderAnswer(status=200, body=b"[]")
        assert target.seen == [(method, "/to", None, body)]


def test_a_redirect_without_a_location_is_its_status(start: Start) -> None:
    assert reply_to(start(answer(status=302)).url) == ExtenderAnswer(status=302)


def test_redirects_without_end(start: Start) -> None:
    server = start(answer(status=307, location="/again"))
    assert words(reply_to(server.url)) == 'Post "/again": stopped after 10 redirects'
    assert len(server.seen) == 10


def test_a_password_is_sent_to_its_host_alone_and_shown_nowhere(start: Start) -> None:
    target = start(answer())
    server = start(answer(status=307, location=f"{target.url}/to"))
    own = server.url.replace("//", "//me:secret@")
    reply_to(own)
    assert [seen[2] for seen in server.seen] == ["Basic bWU6c2VjcmV0"]
    assert [seen[2] for seen in target.seen] == [None]
    down = "http://me:secret@127.0.0.1:1/filter"
    assert words(reply_to(down)).startswith('Post "http://***@127.0.0.1:1/filter": dial tcp 127.0.0.1:1: connect: ')


def test_a_login_that_an_extender_repeats_is_shown_nowhere(start: Start) -> None:
    def repeats(handler: BaseHTTPRequestHandler) -> None:
        answer(f'{{"error": "who is {handler.headers["Authorization"]}"}}'.encode())(handler)

    server = start(repeats)
    reply = reply_to(server.url.replace("//", "//me:secret@"))
    assert isinstance(reply, ExtenderAnswer)
    assert reply.body == b'{"error": "who is Basic ***"}'
    assert [seen[2] for seen in server.seen] == ["Basic bWU6c2VjcmV0"]


# --- TLS


def test_a_certificate_of_a_known_authority(start: Start) -> None:
    server = start(answer(), tls=True)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(ca_file=str(CERTIFICATE))), ExtenderAnswer)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(ca_data=CERTIFICATE.read_bytes())), ExtenderAnswer)
    assert isinstance(reply_to(server.url, tls=ExtenderTLSConfig(insecure=True)), ExtenderAnswer)


def test_a_certificate_of_nobody_known(start: Start) -> None:
    server = start(answer(), tls=True)
    text = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert words(reply_to(server.url)) == f'Post "{server.url}": {text}'
    assert not server.seen


def test_a_certificate_of_another_host(start: Start) -> None:
    server = start(answer(), tls=True)
    text = words(reply_to(server.url, tls=ExtenderTLSConfig(ca_file=str(CERTIFICATE), server_name="gpu.example")))
    assert text.startswith(f'Post "{server.url}": tls: failed to verify certificate: x509: ')
    assert "gpu.example" in text
    assert not server.seen


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (ExtenderTLSConfig(ca_data=b"no certificate"), "caFile: holds no certificate in PEM"),
        (ExtenderTLSConfig(ca_file="/no/such/file"), "caFile: /no/such/file: no such file or directory"),
        (ExtenderTLSConfig(cert_data=b"x", key_data=b"y"), "certificate and key do not fit"),
    ],
)
def test_certificates_that_cannot_be_used(start: Start, tls: ExtenderTLSConfig, message: str) -> None:
    server = start(answer(), tls=True)
    with pytest.raises(InputError) as refused:
        reply_to(server.url, tls=tls)
    assert message in str(refused.value)
    assert str(refused.value).startswith("extenders[0].tlsConfig.")

"""What others answer: a kubeconfig, login plugins, identity providers, API servers down to the bytes on the wire."""

from __future__ import annotations

import contextlib
import io
import json
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

import urllib3
import yaml
from urllib3.connection import HTTPConnection, HTTPSConnection

from kschedx.errors import InputError, KschedxError, Place
from kschedx.kube.kinds import KINDS
from kschedx.loading import load_live
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.sources.live import credentials, kubeconfig
from kschedx.sources.live import credentials as exec_plugins
from kschedx.sources.live.client import ApiServer
from kschedx.sources.live.cluster import discover, server_version
from kschedx.sources.live.kubeconfig import ExecPlugin, KubeconfigCluster, NamedEntry
from kschedx.sources.live.lists import ListPage, pages
from tests.api_server import FakeApiServer, Request
from tests.builders import node, pod

BETWEEN = b"\n8<\n"
"""Between the answers in an input."""
SECRET = "sesame"
_SECRET_KEYS = {"token", "password", "client-secret", "refresh-token", "id-token", "client-key-data", "env", "args"}
_TIMEOUT = 0.3
"""Seconds; nothing is slow here."""

KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: c
clusters:
- name: k
  cluster: {{server: "https://h:6443", insecure-skip-tls-verify: false, proxy-url: "http://p:1"}}
- name: other
  cluster: {{server: "https://[::1]:6443", tls-server-name: x, certificate-authority-data: aGFsbG8=}}
contexts:
- name: c
  context: {{cluster: k, user: u, namespace: n}}
users:
- name: u
  user:
    token: {SECRET}-token
- name: v
  user:
    username: me
    password: {SECRET}-password
    as: other
    as-groups: [a, b]
    as-user-extra: {{scopes: [x]}}
- name: w
  user:
    exec: {{apiVersion: client.authentication.k8s.io/v1, command: f, env: [{{name: A, value: b}}]}}
- name: x
  user:
    auth-provider: {{name: oidc, config: {{id-token: {SECRET}-id}}}}
- name: y
  user: {{tokenFile: /nope, client-certificate-data: aGFsbG8=, client-key-data: aGFsbG8=}}
"""


def kubeconfigs(data: bytes) -> None:
    """A kubeconfig file, and a login with each of its users. No error tells a secret."""
    text = data.decode(errors="replace")
    with (
        tempfile.NamedTemporaryFile() as file,
        patch.object(exec_plugins, "_plugin_output", return_value=b"{}"),
        _answering(lambda _: b""),
    ):
        file.write(data)
        file.flush()

        def log_in() -> str:
            choice = kubeconfig.load(file.name, {}).choose()
            return credentials.access(choice, {"HTTPS_PROXY": text[:40]}).authorization()

        _, result = _said(log_in)
        assert SECRET not in result or _tells_secrets(data), result


def _said(log_in: Callable[[], str]) -> tuple[str, str]:
    """What the header says that it sends, or the error, in a line."""
    try:
        header = log_in()
    except InputError as error:
        text = str(error)
    else:
        assert header.isascii()
        assert not header or header.isprintable()
        return header, ""
    assert len(text.splitlines()) <= 1, text
    return "", text


def _tells_secrets(data: bytes) -> bool:
    """The secret stands in a field that is none."""
    try:
        items = list(yaml.safe_load_all(data))
    except (yaml.YAMLError, ValueError, RecursionError):
        return True

    def tells(value: object, *, is_secret: bool) -> bool:
        if isinstance(value, dict):
            return any(
                SECRET in str(key) or tells(item, is_secret=is_secret or key in _SECRET_KEYS)
                for key, item in value.items()
            )
        if isinstance(value, list):
            return any(tells(item, is_secret=is_secret) for item in value)
        return SECRET in str(value) and not is_secret

    return tells(items, is_secret=False)


def kubeconfig_seeds() -> Iterator[bytes]:
    yield KUBECONFIG.encode()
    whole = yaml.safe_load(KUBECONFIG)
    for user in whole["users"]:
        chosen = {"cluster": "k", "user": user["name"]}
        yield json.dumps(whole | {"contexts": [{"name": "c", "context": chosen}]}).encode()


PLUGIN = ExecPlugin(command="sh", api_version="client.authentication.k8s.io/v1", interactive_mode="Never")
PLACE = Place(source="kubeconfig")


def plugin_answers(data: bytes) -> None:
    """What a login plugin prints."""
    choice = _choice(kubeconfig.KubeconfigUser(exec=PLUGIN))
    with patch.object(exec_plugins, "_plugin_output", return_value=data), _answering(lambda _: b""):
        _, text = _said(lambda: credentials.access(choice, {}).authorization())
    assert SECRET not in text, text


def _choice(user: kubeconfig.KubeconfigUser | None, server: str = "https://h") -> kubeconfig.ContextChoice:
    return kubeconfig.ContextChoice(
        context="c",
        namespace="",
        cluster=NamedEntry(name="k", entry=KubeconfigCluster(server=server), source="kubeconfig"),
        user=None if user is None else NamedEntry(name="u", entry=user, source="kubeconfig"),
    )


def plugin_seeds() -> Iterator[bytes]:
    for status in (
        {"token": f"{SECRET}-1", "expirationTimestamp": "2030-01-01T00:00:00Z"},
        {"clientCertificateData": "x", "clientKeyData": SECRET},
        {"token": f"{SECRET}\n"},
        None,
    ):
        yield json.dumps({"kind": "ExecCredential", "apiVersion": PLUGIN.api_version, "status": status}).encode()


PROVIDER = {
    "idp-issuer-url": "https://issuer",
    "client-id": "me",
    "client-secret": f"{SECRET}-1",
    "refresh-token": f"{SECRET}-2",
}


def provider_answers(data: bytes) -> None:
    """What an identity provider answers, and the ID token that is known."""
    token, *answers = data.split(BETWEEN)
    config = PROVIDER | {"id-token": token.decode(errors="replace")}
    provider = kubeconfig.AuthProvider(name="oidc", config=config)
    left = [_response(answer) for answer in answers]
    with _answering(lambda _: left.pop(0) if left else b""):
        _, text = _said(
            lambda: credentials.access(_choice(kubeconfig.KubeconfigUser(auth_provider=provider)), {}).authorization()
        )
    assert SECRET not in text, text


def provider_seeds() -> Iterator[bytes]:
    result = json.dumps({"issuer": "https://issuer", "token_endpoint": "https://issuer/token"}).encode()
    tokens = json.dumps({"id_token": "a.b.c", "refresh_token": "x", "expires_in": 5}).encode()
    for known in (b"", b"e30.eyJleHAiOiAxfQ.c2ln", b"e30.eyJleHAiOiA5OTk5OTk5OTk5fQ.c2ln"):
        yield BETWEEN.join((known, result, tokens))
    yield BETWEEN.join((b"", b"HTTP/1.1 302 Found\r\nLocation: https://x\r\n\r\n"))


def server_answers(data: bytes) -> None:
    """What an API server says to /version, to discovery and for a list, page by page."""
    left = [_response(answer) for answer in data.split(BETWEEN)]
    with _answering(lambda _: left.pop(0) if left else b""):
        server = _server()
        for ask in (server_version, discover):
            with _refused():
                ask(server)
        with _refused():
            builder = SnapshotBuilder()
            for event in pages(server, KINDS["Pod"]):
                if isinstance(event, ListPage):
                    for piece in event.pieces():
                        builder.add_page(piece)
                else:
                    builder.forget("Pod")
            builder.finish("fuzzed")


def server_seeds() -> Iterator[bytes]:
    version, groups = b'{"gitVersion": "v1.36.2"}', json.dumps(FakeApiServer().discovery).encode()
    yield BETWEEN.join((version, groups, _page("2"), _page("3"), _page("")))
    gone = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
    yield BETWEEN.join((version, b"{}", _page("2"), gone, _page("")))
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    late = b"HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\n{}"
    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"
    yield BETWEEN.join((chunked, late, packed, late, _page("")))
    yield BETWEEN.join((b"HTTP/1.1 403 Forbidden\r\n\r\n", b"HTTP/1.0 404 X\r\n\r\n<html>", b"null", b"[]", b"\xff"))


def _page(token: str) -> bytes:
    items = [{key: value for key, value in pod(name).items() if key not in ("kind", "apiVersion")} for name in "ab"]
    metadata = {"resourceVersion": "7", "continue": token, "remainingItemCount": 3}
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def whole_clusters(data: bytes) -> None:
    """A live cluster that answers some lists oddly: `path` in a line, then what it says, for each."""
    odd = {}
    for item in data.split(BETWEEN):
        path, _, body = item.partition(b"\n")
        odd[path.decode(errors="replace").strip()] = body
    api = FakeApiServer([node("n"), pod("a")])

    def answer(request: Request) -> bytes:
        name = request.path.rpartition("/")[2]
        if name in odd:
            return _response(odd[name])
        return _response(api.reply(request).body)

    with _answering(answer), _refused():
        load_live(_server(), "fuzzed")


def cluster_seeds() -> Iterator[bytes]:
    yield b"pods\n" + _page("")
    yield BETWEEN.join((b"nodes\n[]", b"version\n{}", b"apis\nHTTP/1.1 404 X\r\n\r\n"))
    yield BETWEEN.join((b"pods\n" + _page("0"), b"services\nHTTP/1.1 403 X\r\n\r\n", b"namespaces\nnull"))


# --- a wire without a network


class _Socket:
    """Answers what was sent to it."""

    def __init__(self, answer: Callable[[Request], bytes]) -> None:
        self._answer = answer
        self._sent = b""

    def sendall(self, data: bytes) -> None:
        self._sent += data

    def makefile(self, *_: object, **__: object) -> io.BufferedIOBase:
        method, _blank, rest = self._sent.decode(errors="replace").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        return io.BytesIO(self._answer(Request(method=method, path=path, query={}, headers={})))

    def settimeout(self, _: object) -> None:
        """There is nothing to wait for."""

    def setsockopt(self, *_: object) -> None:
        """Nor to set."""

    def shutdown(self, _: object) -> None:
        """Nor to end."""

    close = fileno = lambda self: None


@contextlib.contextmanager
def _answering(answer: Callable[[Request], bytes]) -> Iterator[None]:
    """Every connection within it is to somebody who answers like this."""

    class Plain(HTTPConnection):
        def connect(self) -> None:
            self.sock = _Socket(answer)

        @property
        def is_connected(self) -> bool:
            return False

    class Encrypted(HTTPSConnection):
        def connect(self) -> None:
            self.sock = _Socket(answer)
            self.is_verified = True

        @property
        def is_connected(self) -> bool:
            return False

    with (
        patch.object(urllib3.HTTPConnectionPool, "ConnectionCls", Plain),
        patch.object(urllib3.HTTPSConnectionPool, "ConnectionCls", Encrypted),
        # the system's certificates take longer than all the rest, and nobody shows one
        patch.object(ssl.SSLContext, "load_default_certs"),
    ):
        yield


def _response(written: bytes) -> bytes:
    """The bytes of an answer: as they are, or a body of which everything around it is right."""
    if written.startswith(b"HTTP/"):
        return written
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(written) + written


def _server() -> ApiServer:
    return ApiServer(credentials.access(_choice(None, "http://h"), {}), timeout=_TIMEOUT, place=PLACE)


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """In one line, and in time."""
    begun = time.monotonic()
    try:
        yield
    except KschedxError as error:
        text = str(error)
        assert len(text.splitlines()) <= 1, text
    assert time.monotonic() - begun < 10, "it does not end"

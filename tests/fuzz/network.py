"""Answers from outside: kubeconfigs, login plugins, identity providers, and API servers down to the bytes."""

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

SEPARATOR = b"\n8<\n"
"""Separator of the answers in an input."""
SECRET = "sesame"
_SECRET_KEYS = {"token", "password", "client-secret", "refresh-token", "id-token", "client-key-data", "env", "args"}
_TIMEOUT = 0.3
"""In seconds; no answer is slow."""

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
    """Load a kubeconfig and log in with each of its users; no error contains a secret."""
    text = data.decode(errors="replace")
    with (
        tempfile.NamedTemporaryFile() as file,
        patch.object(exec_plugins, "_plugin_output", return_value=b"{}"),
        _with_answers(lambda _: b""),
    ):
        file.write(data)
        file.flush()

        def log_in() -> str:
            choice = kubeconfig.load(file.name, {}).choose()
            return credentials.access(choice, {"HTTPS_PROXY": text[:40]}).authorization()

        _, result = _log_in_result(log_in)
        assert SECRET not in result or _has_public_secret(data), result


def _log_in_result(log_in: Callable[[], str]) -> tuple[str, str]:
    """Return the Authorization header, or the error in one line."""
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


def _has_public_secret(data: bytes) -> bool:
    """Tell whether the secret is in a field that is not secret."""
    try:
        items = list(yaml.safe_load_all(data))
    except (yaml.YAMLError, ValueError, RecursionError):
        return True

    def is_public(value: object, *, is_secret: bool) -> bool:
        if isinstance(value, dict):
            return any(
                SECRET in str(key) or is_public(item, is_secret=is_secret or key in _SECRET_KEYS)
                for key, item in value.items()
            )
        if isinstance(value, list):
            return any(is_public(item, is_secret=is_secret) for item in value)
        return SECRET in str(value) and not is_secret

    return is_public(items, is_secret=False)


def kubeconfig_seeds() -> Iterator[bytes]:
    yield KUBECONFIG.encode()
    document = yaml.safe_load(KUBECONFIG)
    for user in document["users"]:
        context = {"cluster": "k", "user": user["name"]}
        yield json.dumps(document | {"contexts": [{"name": "c", "context": context}]}).encode()


PLUGIN = ExecPlugin(command="sh", api_version="client.authentication.k8s.io/v1", interactive_mode="Never")
PLACE = Place(source="kubeconfig")


def plugin_answers(data: bytes) -> None:
    """Read the output of a login plugin."""
    choice = _choice(kubeconfig.KubeconfigUser(exec=PLUGIN))
    with patch.object(exec_plugins, "_plugin_output", return_value=data), _with_answers(lambda _: b""):
        _, text = _log_in_result(lambda: credentials.access(choice, {}).authorization())
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
    """Read the answers of an identity provider, with a stored ID token."""
    token, *answers = data.split(SEPARATOR)
    config = PROVIDER | {"id-token": token.decode(errors="replace")}
    provider = kubeconfig.AuthProvider(name="oidc", config=config)
    remaining = [_response(answer) for answer in answers]
    with _with_answers(lambda _: remaining.pop(0) if remaining else b""):
        _, text = _log_in_result(
            lambda: credentials.access(_choice(kubeconfig.KubeconfigUser(auth_provider=provider)), {}).authorization()
        )
    assert SECRET not in text, text


def provider_seeds() -> Iterator[bytes]:
    result = json.dumps({"issuer": "https://issuer", "token_endpoint": "https://issuer/token"}).encode()
    tokens = json.dumps({"id_token": "a.b.c", "refresh_token": "x", "expires_in": 5}).encode()
    for token in (b"", b"e30.eyJleHAiOiAxfQ.c2ln", b"e30.eyJleHAiOiA5OTk5OTk5OTk5fQ.c2ln"):
        yield SEPARATOR.join((token, result, tokens))
    yield SEPARATOR.join((b"", b"HTTP/1.1 302 Found\r\nLocation: https://x\r\n\r\n"))


def server_answers(data: bytes) -> None:
    """Read the answers of an API server to /version, discovery, and pages of a list."""
    remaining = [_response(answer) for answer in data.split(SEPARATOR)]
    with _with_answers(lambda _: remaining.pop(0) if remaining else b""):
        server = _server()
        for call in (server_version, discover):
            with _error_in_time():
                call(server)
        with _error_in_time():
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
    yield SEPARATOR.join((version, groups, _page("2"), _page("3"), _page("")))
    expired = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
    yield SEPARATOR.join((version, b"{}", _page("2"), expired, _page("")))
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    too_many_requests = b"HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\n{}"
    compressed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"
    yield SEPARATOR.join((chunked, too_many_requests, compressed, too_many_requests, _page("")))
    yield SEPARATOR.join((b"HTTP/1.1 403 Forbidden\r\n\r\n", b"HTTP/1.0 404 X\r\n\r\n<html>", b"null", b"[]", b"\xff"))


def _page(token: str) -> bytes:
    items = [{key: value for key, value in pod(name).items() if key not in ("kind", "apiVersion")} for name in "ab"]
    metadata = {"resourceVersion": "7", "continue": token, "remainingItemCount": 3}
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def whole_clusters(data: bytes) -> None:
    """Load a live cluster with odd answers: for each, its name in one line, and then the answer."""
    bodies_by_name = {}
    for item in data.split(SEPARATOR):
        path, _, body = item.partition(b"\n")
        bodies_by_name[path.decode(errors="replace").strip()] = body
    api = FakeApiServer([node("n"), pod("a")])

    def answer(request: Request) -> bytes:
        name = request.path.rpartition("/")[2]
        if name in bodies_by_name:
            return _response(bodies_by_name[name])
        return _response(api.reply(request).body)

    with _with_answers(answer), _error_in_time():
        load_live(_server(), "fuzzed")


def cluster_seeds() -> Iterator[bytes]:
    yield b"pods\n" + _page("")
    yield SEPARATOR.join((b"nodes\n[]", b"version\n{}", b"apis\nHTTP/1.1 404 X\r\n\r\n"))
    yield SEPARATOR.join((b"pods\n" + _page("0"), b"services\nHTTP/1.1 403 X\r\n\r\n", b"namespaces\nnull"))


# --- a wire without a network


class _Socket:
    """A socket that answers the sent request."""

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
        """Do nothing: there is no waiting."""

    def setsockopt(self, *_: object) -> None:
        """Do nothing."""

    def shutdown(self, _: object) -> None:
        """Do nothing."""

    close = fileno = lambda self: None


@contextlib.contextmanager
def _with_answers(answer: Callable[[Request], bytes]) -> Iterator[None]:
    """Answer every connection with these answers."""

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
        # loading the system's certificates is slow, and no server has one
        patch.object(ssl.SSLContext, "load_default_certs"),
    ):
        yield


def _response(content: bytes) -> bytes:
    """Return the bytes of an answer: as given, or the body with valid headers."""
    if content.startswith(b"HTTP/"):
        return content
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content


def _server() -> ApiServer:
    return ApiServer(credentials.access(_choice(None, "http://h"), {}), timeout=_TIMEOUT, place=PLACE)


@contextlib.contextmanager
def _error_in_time() -> Iterator[None]:
    """Check that an error has one line, and that the block ends in time."""
    start_time = time.monotonic()
    try:
        yield
    except KschedxError as error:
        text = str(error)
        assert len(text.splitlines()) <= 1, text
    assert time.monotonic() - start_time < 10, "it does not end"

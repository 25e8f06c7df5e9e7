"""Certificates, proxies, and login providers of a live connection, and who receives its secrets."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import CERTIFICATE, FakeApiServer, Reply, Request, kubeconfig, served
from tests.cli.manifests import NODE, POD
from tests.command import ROOT, CommandResult, kschedx

OTHER = CERTIFICATE.parent / "other.pem"
"""A self-signed certificate for 127.0.0.1 with its key, as well."""
TRUSTED: dict[str, Any] = {"certificate-authority": str(CERTIFICATE)}
SECRET = "sesame"
ZONE_FULL = ROOT / "fixtures" / "zone-full"


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer([NODE, POD])


def why(config: Path, *arguments: str, **environment: str) -> CommandResult:
    return kschedx("why", "web-0", "-n", "shop", "--kubeconfig", config, *arguments, env=environment)


def authorizations(api: FakeApiServer) -> set[str]:
    return {value for request in api.requests for value in request.headers.get("authorization", [])}


def by_proxy(url: str) -> dict[str, Any]:
    return {"proxy-url": url}


# --- whom to trust


@pytest.mark.parametrize("written", ["false", "true", "no", 0, 1, ["x"], {}])
def test_only_a_boolean_turns_checks_off(written: object, api: FakeApiServer, tmp_path: Path) -> None:
    with served(api, tls=True) as url:
        config = kubeconfig(tmp_path, url, user={"token": SECRET}, **{"insecure-skip-tls-verify": written})
        result = why(config)
    assert (result.code, result.out) == (2, "")
    assert "clusters[0].cluster.insecure-skip-tls-verify: expected true or false, found " in result.err
    assert not api.requests


@pytest.mark.parametrize(
    ("cluster", "code", "says"),
    [
        (TRUSTED, 0, ""),
        ({"certificate-authority-data": base64.b64encode(CERTIFICATE.read_bytes()).decode()}, 0, ""),
        ({"insecure-skip-tls-verify": True}, 0, ""),
        ({"insecure-skip-tls-verify": False}, 2, "no trusted connection: "),
        ({}, 2, "no trusted connection: "),
        ({"certificate-authority": str(OTHER)}, 2, "no trusted connection: "),
        ({**TRUSTED, "tls-server-name": "elsewhere"}, 2, "no trusted connection: "),
        ({**TRUSTED, "tls-server-name": "127.0.0.1"}, 0, ""),
    ],
)
def test_only_the_server_receives_the_token(
    cluster: dict[str, object], code: int, says: str, api: FakeApiServer, tmp_path: Path
) -> None:
    with served(api, tls=True) as url:
        result = why(kubeconfig(tmp_path, url, user={"token": SECRET}, **cluster))
    assert (result.code, says in result.err) == (code, True), result.err
    assert authorizations(api) == (set() if code else {f"Bearer {SECRET}"})
    assert SECRET not in result.out + result.err


def test_a_client_certificate_logs_in(api: FakeApiServer, tmp_path: Path) -> None:
    own = base64.b64encode(OTHER.read_bytes()).decode()
    with asking_for_certificates(api) as url:
        user = {"client-certificate-data": own, "client-key-data": own}
        assert why(kubeconfig(tmp_path, url, user=user, **TRUSTED)).code == 0
        files = {"client-certificate": str(OTHER), "client-key": str(OTHER)}
        assert why(kubeconfig(tmp_path, url, user=files, **TRUSTED)).code == 0
        assert why(kubeconfig(tmp_path, url, **TRUSTED)).code == 2


@contextlib.contextmanager
def asking_for_certificates(api: FakeApiServer) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.load_verify_locations(OTHER)
    context.verify_mode = ssl.CERT_REQUIRED
    with served(api, context=context) as url:
        yield url


# --- secrets stay where they belong


def test_a_user_in_a_servers_url_is_shown_nowhere(api: FakeApiServer, tmp_path: Path) -> None:
    with served(api, tls=True) as url:
        secret_url = url.replace("https://", f"https://me:{SECRET}@")
        config = kubeconfig(tmp_path, secret_url, **TRUSTED)
        result = why(config, "-o", "json")
        assert result.code == 0, result.err
        assert json.loads(result.out)["source"]["text"] == f"context test ({url})"
        to = tmp_path / "dump.json"
        assert kschedx("snapshot", "-o", to, "--kubeconfig", config).code == 0
        failing = why(kubeconfig(tmp_path, secret_url))
    assert authorizations(api) == {f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"}
    assert SECRET not in result.out + result.err + to.read_text() + failing.err
    assert failing.code == 2


SECRET_URLS = (
    f"https://me:{SECRET}@127.0.0.1:1/a?key={SECRET}#{SECRET}",
    f"https://me:{SECRET}@127.0.0.1:x",
    f"https://me:{SECRET}/1@127.0.0.1:1",
    f"https://127.0.0.1:1?{SECRET}",
    f"ftp://{SECRET}@127.0.0.1:1",
    f"me:{SECRET}@127.0.0.1:1",
    f":{SECRET}@127.0.0.1:1",
)


@pytest.mark.parametrize("url", SECRET_URLS)
@pytest.mark.parametrize("field", ["server", "proxy-url", "idp-issuer-url"])
def test_no_error_about_a_connection_shows_a_secret_of_a_url(field: str, url: str, tmp_path: Path) -> None:
    server = url if field == "server" else "https://127.0.0.1:1"
    user = provider(url) if field == "idp-issuer-url" else {}
    more = by_proxy(url) if field == "proxy-url" else {}
    result = why(kubeconfig(tmp_path, server, user=user, **more))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert SECRET not in result.err


@pytest.mark.parametrize("url", SECRET_URLS)
def test_a_redirect_shows_no_secret_of_a_url(url: str, api: FakeApiServer, tmp_path: Path) -> None:
    api.faults.append(lambda request: Reply(status=302, headers={"Location": url}))
    with served(api) as server:
        result = why(kubeconfig(tmp_path, server))
    assert "it sends on to " in result.err
    assert SECRET not in result.err


EXTENDERS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: %s, filterVerb: filter, enableHTTPS: true, httpTimeout: 1s, tlsConfig: {keyData: c2VzYW1l}}]
"""
PROMETHEUS = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: Prometheus, prometheus: {url: %s}}]
"""
ABOUT_FILES = (
    *(("profiles", "show", "config", "-o", form) for form in ("wide", "json", "yaml")),
    ("profiles", "check", "config"),
    *(("diff-profiles", "config", "default", "-o", form) for form in ("wide", "json", "html", "markdown")),
    *(("why", "--all-pending", "-s", "CLUSTER", "--config", "config", "-o", form) for form in ("json", "html")),
    ("why", "--all-pending", "-s", "CLUSTER", "--config", "config", "--extenders", "call", "-o", "wide"),
    ("deschedule", "-s", "CLUSTER", "--policy", "policy"),
)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("number", "url"), [*enumerate(SECRET_URLS)])
def test_no_answer_shows_a_secret_of_a_configured_url(number: int, url: str, tmp_path: Path) -> None:
    """Every answer is checked with some of the URLs, and every URL in a third of the answers."""
    (tmp_path / "config").write_text(EXTENDERS % json.dumps(url))
    (tmp_path / "policy").write_text(PROMETHEUS % json.dumps(url))
    for about_file in ABOUT_FILES[number % 3 :: 3]:
        result = kschedx(*(str(ZONE_FULL) if word == "CLUSTER" else word for word in about_file), cwd=tmp_path)
        assert "Usage" not in result.err
        assert SECRET not in result.out + result.err, about_file
        assert "c2VzYW1l" not in result.out, about_file


@pytest.mark.parametrize("form", ["wide", "html", "markdown", "svg", "sarif", "junit"])
def test_no_answer_shows_a_secret_of_a_quoted_url(form: str, tmp_path: Path) -> None:
    message = f'failed calling webhook "h.example": Post "{SECRET_URLS[0]}": dial tcp: connect: connection refused'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    refused = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        "status": {"conditions": [failure]},
    }
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"kind": "List", "items": [NODE, refused]}))
    result = kschedx("why", "rs/web", "-s", cluster, "-o", form, columns=400)
    assert "h.example" in result.out, result.err
    assert SECRET not in result.out + result.err


@pytest.mark.sample(2)
@pytest.mark.parametrize("user", [{"token": SECRET}, {"username": "me", "password": SECRET}], ids=["token", "password"])
@pytest.mark.parametrize("status", [302, 400, 401, 403, 500])
@pytest.mark.parametrize("path", ["/version", "/apis", "/pods"])
def test_a_server_that_echoes_the_secret(
    path: str, status: int, user: dict[str, object], api: FakeApiServer, tmp_path: Path
) -> None:
    """An error page of a proxy may show the request."""

    def echo(request: Request) -> Reply | None:
        if not request.path.endswith(path):
            return None
        sent = request.headers["authorization"][0]
        return Reply(status=status, body=f"bad header: {sent}".encode(), headers={"Location": f"https://x/{sent}"})

    api.faults.append(echo)
    with served(api, tls=True) as url:
        result = why(kubeconfig(tmp_path, url, user=user, **TRUSTED))
    assert len(api.requests) >= 1
    assert not {word.split()[-1] for word in authorizations(api)} & set(result.err.replace("/", " ").split())
    assert SECRET not in result.out + result.err


def test_a_token_file_may_end_with_a_newline(api: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    with served(api, tls=True) as url:
        assert why(kubeconfig(tmp_path, url, user={"tokenFile": "token"}, **TRUSTED)).code == 0
    assert authorizations(api) == {f"Bearer {SECRET}"}


# --- proxies


class Proxy:
    """A proxy that records its requests and connects to their addresses; with `socks`, a SOCKS5 proxy."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            taken, _ = self._listening.accept()
            threading.Thread(target=self._connect, args=(taken,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(1 << 16)
                if not part:
                    return
                head += part
            self.asked.append(head)
            client.sendall(self._answer)
            if b" 200 " not in self._answer:
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                threading.Thread(target=pour, args=(server, client), daemon=True).start()
                pour(client, server)


def pour(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(1 << 16):
            to.sendall(part)


@pytest.mark.parametrize("by", ["kubeconfig", "environment"])
def test_only_the_proxy_receives_its_password(by: str, api: FakeApiServer, tmp_path: Path) -> None:
    proxy = Proxy()
    proxy_url = f"http://me:{SECRET}@{proxy.address}"
    with served(api, tls=True) as url:
        if by == "kubeconfig":
            result = why(kubeconfig(tmp_path, url, **TRUSTED, **by_proxy(proxy_url)))
        else:
            # Go asks no proxy of the environment for a loopback address
            result = why(kubeconfig(tmp_path, url, **TRUSTED), HTTPS_PROXY=proxy_url)
    assert result.code == 0, result.err
    assert len(proxy.asked) > 0 if by == "kubeconfig" else not proxy.asked
    encoded = base64.b64encode(f"me:{SECRET}".encode())
    assert all(b"Basic " + encoded in head for head in proxy.asked)
    assert not any("proxy-authorization" in request.headers for request in api.requests)


def test_a_proxy_that_refuses(tmp_path: Path) -> None:
    proxy = Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    config = kubeconfig(tmp_path, "https://api.example:6443", **by_proxy(f"http://me:{SECRET}@{proxy.address}"))
    result = why(config)
    assert (result.code, result.out) == (2, "")
    assert "its proxy cannot be used: " in result.err
    assert "407" in result.err
    assert SECRET not in result.err


def test_a_socks_proxy_resolves_the_name(tmp_path: Path) -> None:
    """SOCKS5: the client sends the name, not an address."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            with contextlib.suppress(OSError):
                taken, _ = listening.accept()
                with taken:
                    taken.recv(16)
                    taken.sendall(b"\x05\x00")
                    heard.append(taken.recv(256))
                    taken.sendall(b"\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00")

        threading.Thread(target=greet, daemon=True).start()
        proxy = f"socks5://127.0.0.1:{listening.getsockname()[1]}"
        result = why(kubeconfig(tmp_path, "https://api.example:6443", **by_proxy(proxy)))
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert heard
    assert b"api.example" in heard[0]


# --- identity providers


def token(expires: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def provider(url: str, **more: str) -> dict[str, object]:
    config = {"idp-issuer-url": url, "client-id": "me", "client-secret": SECRET, "refresh-token": SECRET}
    return {"auth-provider": {"name": "oidc", "config": config | {"id-token": token(0)} | more}}


@pytest.fixture
def fresh() -> str:
    return token(time.time() + 3600)


@pytest.fixture
def issuer(fresh: str) -> FakeApiServer:
    result = FakeApiServer()

    def answer(request: Request) -> Reply | None:
        if request.path == "/.well-known/openid-configuration":
            return Reply(body=json.dumps({"token_endpoint": f"https://{request.headers['host'][0]}/token"}).encode())
        return Reply(body=json.dumps({"id_token": fresh}).encode()) if request.path == "/token" else None

    result.faults.append(answer)
    return result


def test_an_expired_token_is_renewed(api: FakeApiServer, issuer: FakeApiServer, fresh: str, tmp_path: Path) -> None:
    with served(api, tls=True) as url, served(issuer, tls=True) as issuer_url:
        user = provider(issuer_url, **{"idp-certificate-authority": str(CERTIFICATE)})
        result = why(kubeconfig(tmp_path, url, user=user, **TRUSTED))
    assert (result.code, result.err) == (0, "")
    assert authorizations(api) == {f"Bearer {fresh}"}
    assert [request.method for request in issuer.requests] == ["GET", "POST"]
    assert b"grant_type=refresh_token" in issuer.requests[1].body


def test_a_valid_token_needs_no_provider(api: FakeApiServer, fresh: str, tmp_path: Path) -> None:
    with served(api, tls=True) as url:
        user = provider("https://127.0.0.1:1", **{"id-token": fresh})
        assert why(kubeconfig(tmp_path, url, user=user, **TRUSTED)).code == 0
    assert authorizations(api) == {f"Bearer {fresh}"}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "has a certificate of an unknown authority (set idp-certificate-authority)"),
        ({"idp-certificate-authority": str(OTHER)}, "has a certificate of an unknown authority"),
        ({"idp-certificate-authority": "/no/ca.crt"}, "idp-certificate-authority cannot be used"),
        ({"idp-certificate-authority-data": "%"}, "idp-certificate-authority cannot be used"),
        ({"refresh-token": ""}, "the ID token has expired, and refresh-token is missing to renew it"),
    ],
)
def test_an_untrusted_provider_is_an_error(
    more: dict[str, str], says: str, issuer: FakeApiServer, tmp_path: Path
) -> None:
    with served(issuer, tls=True) as issuer_url:
        result = why(kubeconfig(tmp_path, "https://127.0.0.1:1", user=provider(issuer_url, **more)))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert says in result.err
    assert SECRET not in result.err
    assert not issuer.requests


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(body=b"<html>"), "returned an unknown answer"),
        (Reply(body=b"{}"), "has a token endpoint without https://"),
        (Reply(body=b'{"token_endpoint": "http://127.0.0.1/"}'), "has a token endpoint without https://"),
        (Reply(status=500), "answers 500"),
        (Reply(status=302, headers={"Location": "https://elsewhere"}), "answers 302"),
    ],
)
def test_a_failed_provider_is_an_error(reply: Reply, says: str, issuer: FakeApiServer, tmp_path: Path) -> None:
    issuer.faults.insert(0, lambda request: reply)
    with served(issuer, tls=True) as issuer_url:
        user = provider(issuer_url, **{"idp-certificate-authority": str(CERTIFICATE)})
        result = why(kubeconfig(tmp_path, "https://127.0.0.1:1", user=user))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert says in result.err
    assert SECRET not in result.err


# --- what a server says of itself


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=403, body=b"{}"),
        Reply(status=500, body=b"boom"),
        Reply(body=b'{"gitVersion": 5}'),
        Reply(body=b'{"gitVersion": "latest"}'),
        Reply(body=b"[]"),
        Reply(body=b"{}"),
    ],
    ids=["forbidden", "broken", "number", "no version", "list", "nothing"],
)
def test_the_version_of_the_kubelets_counts_without_that_of_the_server(
    reply: Reply, api: FakeApiServer, tmp_path: Path
) -> None:
    node = json.loads(json.dumps(NODE))
    node.setdefault("status", {})["nodeInfo"] = {"kubeletVersion": "v1.34.2"}
    api.replace([node, POD])
    api.fail("/version", reply, forever=True)
    with served(api) as url:
        result = why(kubeconfig(tmp_path, url), "-o", "json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["kubernetesVersion"] == "1.34"

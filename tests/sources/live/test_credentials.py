"""What certificates, tokens and logins may be, what an error about them names, and that none tells a secret."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kschedx.errors import InputError
from kschedx.sources.live import credentials
from kschedx.sources.live.client import Impersonation
from kschedx.sources.live.credentials import Access, access, proxy_of_environment, service_account_access
from kschedx.sources.live.kubeconfig import ContextChoice, KubeconfigCluster, KubeconfigUser, NamedEntry
from tests.api_server import CERTIFICATE
from tests.command import kschedx

HERE = "https://127.0.0.1:1"
SECRET = "secret"


def choice(cluster: Mapping[str, object], user: Mapping[str, object] | None = None) -> ContextChoice:
    return ContextChoice(
        context="c",
        namespace="default",
        cluster=NamedEntry(name="here", entry=msgspec.convert(cluster, KubeconfigCluster), source="config"),
        user=None
        if user is None
        else NamedEntry(name="me", entry=msgspec.convert(user, KubeconfigUser), source="config"),
    )


def logged_in(user: Mapping[str, object], **cluster: object) -> Access:
    return access(choice({"server": HERE, **cluster}, user), {})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        ({"server": "here:6443"}, None, "config: cluster here: server: expected a URL with https://"),
        ({"server": f"https://me:{SECRET}@"}, None, "server: expected a URL"),
        ({"server": HERE, "certificate-authority": "/no/ca.crt"}, None, "here: certificate-authority: no file"),
        ({"server": HERE, "certificate-authority-data": "%"}, None, "here: certificate-authority-data: not base64"),
        (
            {"server": HERE, "certificate-authority-data": encoded(SECRET)},
            None,
            "certificate-authority: holds no certificate that can be used",
        ),
        (
            {"server": HERE, "proxy-url": f"ftp://me:{SECRET}@p"},
            None,
            "proxy-url: expected a URL with http, https, socks5",
        ),
        ({"server": HERE}, {"client-certificate": "/no/me.crt"}, 'user me: client-certificate: no file "/no/me.crt"'),
        ({"server": HERE}, {"client-key-data": encoded(SECRET)}, "user me: client-certificate is missing"),
        (
            {"server": HERE},
            {"client-certificate-data": encoded(SECRET), "client-key-data": encoded(SECRET)},
            "user me: its certificates cannot be used",
        ),
        ({"server": HERE}, {"tokenFile": "/no/token"}, 'config: user me: tokenFile: no file "/no/token"'),
        ({"server": HERE}, {"token": f"{SECRET}\n"}, "user me: token: a token cannot have spaces, line ends"),
        ({"server": HERE}, {"token": f"{SECRET}é"}, "user me: token: a token cannot have spaces, line ends"),
        ({"server": HERE}, {"token": SECRET, "username": "me"}, "a token and a username cannot be used together"),
        ({"server": HERE}, {"exec": {}}, 'config: user me: exec: the login plugin "" has the apiVersion ""'),
        (
            {"server": HERE},
            {"auth-provider": {"name": "gcp"}},
            'user me: auth-provider: there is no auth-provider "gcp" (gke-gcloud-auth-plugin',
        ),
        ({"server": HERE}, {"auth-provider": {"name": "azure"}}, '"azure" (kubelogin, with exec'),
        ({"server": HERE}, {"auth-provider": {"name": "x"}}, 'there is no auth-provider "x"'),
        ({"server": HERE}, {"auth-provider": {"name": "oidc"}}, "idp-issuer-url is missing to renew it"),
        (
            {"server": HERE},
            {
                "auth-provider": {
                    "name": "oidc",
                    "config": {
                        "id-token": SECRET,
                        "refresh-token": SECRET,
                        "client-id": "me",
                        "idp-issuer-url": "http://insecure",
                    },
                }
            },
            "idp-issuer-url: expected a URL with https://",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_file_and_entry(
    cluster: Mapping[str, object], user: Mapping[str, object] | None, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        access(choice(cluster, user), {})
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_nearest_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with pytest.raises(InputError) as caught:
        access(choice({"server": HERE, "certificate-authority": str(tmp_path / "ca.cert")}), {})
    assert 'did you mean "ca.crt"?' in str(caught.value)


def context_of(value: Access) -> ssl.SSLContext:
    context = value.pool.connection_pool_kw["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


def test_trusting_anybody_looks_at_no_authority() -> None:
    result = access(choice({"server": HERE, "certificate-authority": "/no/ca.crt"}), {}, insecure=True)
    assert (context_of(result).verify_mode, context_of(result).check_hostname) == (ssl.CERT_NONE, False)


def test_data_wins_over_a_file_and_is_all_that_is_trusted() -> None:
    data = encoded(CERTIFICATE.read_text())
    result = logged_in({}, **{"certificate-authority": "/no/ca.crt", "certificate-authority-data": data})
    assert context_of(result).verify_mode == ssl.CERT_REQUIRED
    assert len(context_of(result).get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"token": "mine", "tokenFile": "/no/token", "exec": {"command": "nothing"}}, "Bearer mine"),
        ({"username": "me", "password": "a:b"}, f"Basic {encoded('me:a:b')}"),
        ({}, ""),
    ],
)
def test_what_the_header_says(user: Mapping[str, object], says: str) -> None:
    assert logged_in(user).authorization() == says


def test_a_file_of_a_token_is_trimmed_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text(" first\n")
    result = logged_in({"tokenFile": str(path)})
    assert result.authorization() == "Bearer first"
    path.write_text("second\n")
    assert result.authorization() == "Bearer first"
    monkeypatch.setattr(credentials, "_TOKEN_LASTS", -1.0)
    assert result.authorization() == "Bearer second"
    path.write_text(" \n")
    with pytest.raises(InputError, match="holds no token"):
        result.authorization()


def test_nobodys_secret_goes_over_a_connection_that_anybody_can_read() -> None:
    result = access(choice({"server": "http://me:secret@127.0.0.1:1"}, {"token": "mine"}), {})
    assert (str(result.url), result.authorization()) == ("http://127.0.0.1:1", "")


def test_a_user_in_the_url_of_a_server_is_no_part_of_its_name() -> None:
    result = access(choice({"server": "https://me:a%20b@127.0.0.1:1"}), {})
    assert (str(result.url), result.authorization()) == (HERE, f"Basic {encoded('me:a b')}")


def test_a_certificate_of_the_user_is_used_and_left_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = encoded(CERTIFICATE.read_text())
    logged_in({"client-certificate-data": data, "client-key-data": data})
    assert not list(tmp_path.iterdir())


def test_a_user_may_say_whom_to_impersonate() -> None:
    fields = {"as": "jane", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": {"why": ["audit"]}}
    built = Impersonation.of(NamedEntry(name="me", entry=msgspec.convert(fields, KubeconfigUser), source="config"))
    assert built == Impersonation(user="jane", groups=("dev",), uid="7", extra={"why": ("audit",)})


def test_a_pod_logs_in_with_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_SERVICE_ACCOUNT", tmp_path)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(InputError, match="no cluster is configured"):
        service_account_access(environment)
    (tmp_path / "token").write_text("mine\n")
    (tmp_path / "ca.crt").write_text(CERTIFICATE.read_text())
    (tmp_path / "namespace").write_text("shop\n")
    result = service_account_access(environment)
    assert (str(result.url), result.authorization()) == ("https://[fd00::1]:443", "Bearer mine")
    assert credentials.own_namespace() == "shop"


# --- proxies


@pytest.mark.parametrize(
    ("url", "excepted", "value"),
    [
        ("https://api.example", "", "http://p:1"),
        ("http://api.example", "", ""),
        ("https://localhost:1", "", ""),
        ("https://127.0.0.9:1", "", ""),
        ("https://api.example", "*", ""),
        ("https://api.example", "other, .example", ""),
        ("https://api.example", "example", ""),
        ("https://api.example", "*.example", ""),
        ("https://apiexample", "example", "http://p:1"),
        ("https://api.example:6443", "api.example:443", "http://p:1"),
        ("https://api.example:6443", "api.example:6443", ""),
        ("https://10.1.2.3", "10.0.0.0/8", ""),
        ("https://10.1.2.3", "10.1.2.4", "http://p:1"),
        ("https://[fd00::1]:6443", "fd00::/8", ""),
    ],
)
def test_the_environments_proxy(url: str, excepted: str, value: str) -> None:
    for spelled in (str.upper, str.lower):
        environment = {spelled("https_proxy"): "p:1", spelled("no_proxy"): excepted}
        assert proxy_of_environment(url, environment) == value


def test_a_proxys_credentials_are_for_the_proxy_alone() -> None:
    result = access(
        choice({"server": HERE, "proxy-url": "http://me:a%40b%E2%82%AC@127.0.0.1:2"}, {"token": "mine"}), {}
    )
    pool: Any = result.pool
    assert pool.proxy.url == "http://127.0.0.1:2"
    assert pool.proxy_headers == {"proxy-authorization": f"Basic {encoded('me:a@b€')}"}
    assert not pool.headers


@pytest.mark.parametrize(
    "written",
    [
        *(
            f"https://me:sesame@{host}"
            for host in ("a b", "[::1", "h:x", "h:0", "h:99999", "a\nb", "", "{a}", "a@b@ c")
        ),
        "https://me:sesame/1@h",
        "me:sesame@h",
        "https:me:sesame@h",
    ],
)
@pytest.mark.parametrize("field", ["server", "proxy-url"])
def test_what_is_no_url_tells_no_password(field: str, written: str) -> None:
    with pytest.raises(InputError) as caught:
        access(choice({"server": HERE} | {field: written}), {})
    text = str(caught.value)
    assert text.startswith(f"config: cluster here: {field}: expected a URL with ")
    assert "sesame" not in text
    assert len(text.splitlines()) == 1


def test_a_socks_proxy_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "urllib3.contrib.socks", None)
    with pytest.raises(InputError) as caught:
        access(choice({"server": HERE, "proxy-url": "socks5://me:secret@127.0.0.1:2"}), {})
    assert "the proxy socks5://***@127.0.0.1:2 needs the package PySocks (in a clone: pip install '.[socks]')" in str(
        caught.value
    )


def test_a_proxy_that_cannot_be_reached_is_named_without_objects(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://192.0.2.1', proxy-url: 'http://127.0.0.1:1'}}]\n"
    )
    result = kschedx("why", "p", "--kubeconfig", config)
    assert "its proxy cannot be used: Failed to establish a new connection" in result.err

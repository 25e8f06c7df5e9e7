"""Connections for a kubeconfig's cluster and user: proxies, certificates, tokens, and login plugins."""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import os
import re
import ssl
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.kube.escaping import Url
from kschedx.sources.live import logins as exec_plugins
from kschedx.sources.live import logins as oidc
from kschedx.sources.live.kubeconfig import ContextChoice, KubeconfigCluster, KubeconfigUser, NamedEntry

if TYPE_CHECKING:
    import urllib3

# Which proxy leads to a server, and how. Upstream: golang.org/x/net/http/httpproxy for the environment; clientcmd for
# `proxy-url`.

_SCHEMES = ("http", "https", "socks5")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f<>\"\\^`{|}]")


def proxy_of_environment(url: str, environment: Mapping[str, str]) -> str:
    """Return the proxy of HTTPS_PROXY, HTTP_PROXY, and NO_PROXY as Go reads them; empty if there is none for this
    server."""
    target = parts(url)
    if target is None:
        return ""
    name = "https_proxy" if target.scheme == "https" else "http_proxy"
    proxy_url = environment.get(name.upper()) or environment.get(name) or ""
    excepted = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy_url or _is_direct(target, excepted):
        return ""
    return proxy_url if "://" in proxy_url else f"http://{proxy_url}"


def _is_direct(target: SplitResult, excepted: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    port = str(target.port or {"https": 443}.get(target.scheme, 80))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_excepts(exception.strip().lower(), host, port, address) for exception in excepted.split(","))


def _excepts(text: str, host: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if not text:
        return False
    if text == "*":
        return True
    with contextlib.suppress(ValueError):
        network = ipaddress.ip_network(text, strict=False)
        return address is not None and address in network
    if text.count(":") == 1:
        text, _, only = text.partition(":")
        if only != port:
            return False
    if address is not None:
        return text == host
    if text.startswith("*."):
        text = text[1:]
    return host.endswith(text) if text.startswith(".") else host == text or host.endswith(f".{text}")


def parts(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if it is no URL of a host."""
    if _NOT_IN_URL.search(url):
        return None
    try:
        at = urlsplit(url)
        return at if at.hostname and (at.port is None or at.port) else None
    except ValueError:  # invalid addresses in brackets, invalid ports
        return None


def _pool_through(proxy: str, place: Place, settings: Mapping[str, Any]) -> urllib3.PoolManager:
    """Return connections through a proxy; only the proxy receives its user and password. Raises `InputError`."""
    import urllib3

    shown = Url(proxy)
    credentials, url = shown.credentials, shown.without_credentials
    at = parts(proxy)
    no_proxy = InputError(f'expected a URL with {", ".join(_SCHEMES)}, found "{shown}"', place=place)
    if at is None or at.scheme not in _SCHEMES:
        raise no_proxy
    scheme = at.scheme
    user, _, password = credentials.partition(":")
    if scheme != "socks5":
        headers = urllib3.make_headers(proxy_basic_auth=credentials) if credentials else None
        try:
            return urllib3.ProxyManager(url, proxy_headers=headers, **settings)
        except urllib3.exceptions.LocationParseError:
            raise no_proxy from None
    try:
        with warnings.catch_warnings(action="ignore"):  # about a missing package, which the error names
            from urllib3.contrib.socks import SOCKSProxyManager
    except ImportError:
        message = f"the proxy {shown} needs the package PySocks (in a clone: pip install '.[socks]')"
        raise InputError(message, place=place) from None
    # the proxy resolves names, as it does for Go
    return SOCKSProxyManager(
        url.replace("socks5://", "socks5h://", 1), username=user or None, password=password or None, **settings
    )


# A secret is sent only to its server, over an encrypted connection, and no error shows it. Upstream:
# k8s.io/client-go/tools/clientcmd and rest.

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LOGIN_TIMEOUT = 60.0
"""Seconds that a login plugin or an identity provider may take."""
_TOKEN_LASTS = 60.0
"""Seconds after which a token's file is read again, since its owner renews it."""
_CONNECTIONS = 8


class Access(Struct, frozen=True, kw_only=True):
    """One server and one identity."""

    url: Url
    """The URL without user and password."""
    pool: urllib3.PoolManager
    authorization: Callable[[], str]
    """Returns the header's value; empty without a login. Raises `InputError`."""


def in_cluster(environment: Mapping[str, str]) -> Access:
    """Return the access of a pod's own service account. Raises `InputError` outside of a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    token, authority = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if not (host and port and token.is_file() and authority.is_file()):
        hint = "name a kubeconfig with --kubeconfig or KUBECONFIG, or a dump with --snapshot"
        raise InputError("no cluster is configured", hint=hint)
    place = Place(source=str(SERVICE_ACCOUNT))
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = KubeconfigCluster(server=url, certificate_authority=str(authority))
    return Access(
        url=Url(url),
        pool=_pool("", place, {"ssl_context": _trust(cluster, place)}),
        authorization=_of_file(str(token), Place(source=str(token))),
    )


def own_namespace() -> str:
    """Return the namespace of the pod in which this process runs."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"


def access(choice: ContextChoice, environment: Mapping[str, str], *, insecure: bool = False) -> Access:
    """Log in. Raises `InputError` with the file and the entry."""
    place = choice.cluster.place("cluster")
    cluster = choice.cluster.entry
    if insecure:
        cluster = replace(cluster, insecure_skip_tls_verify=True)
    server = Url(cluster.server.rstrip("/"))
    url = server.without_credentials
    if not url.startswith(("http://", "https://")) or parts(cluster.server) is None:
        raise InputError(f'server: expected a URL with https://, found "{Url(url)}"', place=place)
    proxy = cluster.proxy_url or proxy_of_environment(url, environment)
    at = (
        Place(source=place.source, object=place.object, field="proxy-url")
        if cluster.proxy_url
        else Place(source="the environment's proxy")
    )
    if url.startswith("http://"):
        # like kubectl, send no secret over an unencrypted connection
        return Access(url=Url(url), pool=_pool(proxy, at, {}), authorization=str)
    context = _trust(cluster, place)
    authorization: Callable[[], str] = str
    if choice.user is not None:
        authorization = _log_in(choice.user, cluster, context)
    if server.credentials and authorization is str:
        authorization = _basic(server.credentials)
    settings: dict[str, Any] = {"ssl_context": context}
    if cluster.tls_server_name:
        settings["server_hostname"] = cluster.tls_server_name
    return Access(url=Url(url), pool=_pool(proxy, at, settings), authorization=authorization)


def _pool(proxy: str, place: Place, settings: Mapping[str, Any]) -> urllib3.PoolManager:
    import urllib3

    all_settings = {**settings, "maxsize": _CONNECTIONS}
    if proxy:
        return _pool_through(proxy, place, all_settings)
    return urllib3.PoolManager(**all_settings)


# --- trusted authorities


def _trust(cluster: KubeconfigCluster, place: Place) -> ssl.SSLContext:
    if cluster.insecure_skip_tls_verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    authority = _content(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority", place
    )
    try:
        context = ssl.create_default_context(cadata=None if authority is None else authority.decode("ascii"))
    except (ssl.SSLError, OSError, ValueError):
        where = Place(source=place.source, object=place.object, field="certificate-authority")
        raise InputError("holds no certificate that can be used", place=where) from None
    # authorities of old clusters lack extensions that only Python requires
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _content(data: str, path: str, field: str, place: Place) -> bytes | None:
    """Return the content of the data or else of the file; None if there is neither."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except binascii.Error as error:
            where = Place(source=place.source, object=place.object, field=f"{field}-data")
            raise InputError(f"not base64: {str(error).lower()}", place=where) from None
    return _file(path, _at(place, field)) if path else None


def _file(path: str, where: Place) -> bytes:
    if not Path(path).is_file():
        folder = Path(path).parent
        beside = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        raise InputError(f'no file "{path}"', place=where, hint=nearest(Path(path).name, beside))
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {(error.strerror or "").lower()}', place=where) from None


# --- identity


def _log_in(user: NamedEntry[KubeconfigUser], cluster: KubeconfigCluster, context: ssl.SSLContext) -> Callable[[], str]:
    """Load the certificate into `context`, and return the function for the header's value."""
    entry, place = user.entry, user.place("user")
    certificate = _content(entry.client_certificate_data, entry.client_certificate, "client-certificate", place)
    key = _content(entry.client_key_data, entry.client_key, "client-key", place)
    if (certificate is None) is not (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise InputError(f"{missing} is missing", place=place)
    if certificate is not None and key is not None:
        load_certificate(context, certificate, key, place)
    if entry.exec is not None and entry.auth_provider is not None:
        raise InputError("exec and auth-provider cannot be used together", place=place)
    if entry.username and (entry.token or entry.token_file):
        raise InputError("a token and a username cannot be used together", place=place)
    if entry.token:
        return _bearer(entry.token, _at(place, "token"))
    if entry.token_file:
        return _of_file(entry.token_file, _at(place, "tokenFile"))
    if entry.username:
        return _basic(f"{entry.username}:{entry.password}")
    if entry.exec is not None:
        at = _at(place, "exec")
        credential = exec_plugins.run(entry.exec, cluster, at, timeout=LOGIN_TIMEOUT)
        if credential.client_certificate_data:
            load_certificate(
                context, credential.client_certificate_data.encode(), credential.client_key_data.encode(), at
            )
        return _bearer(credential.token, at) if credential.token else str
    if entry.auth_provider is not None:
        return _of_provider(entry.auth_provider.name, entry.auth_provider.config, _at(place, "auth-provider"))
    return str


def _at(place: Place, field: str) -> Place:
    return Place(source=place.source, object=place.object, field=field)


_SENDABLE = re.compile(r"[\x21-\x7e]+")


def _bearer(token: str, place: Place) -> Callable[[], str]:
    if not _SENDABLE.fullmatch(token):
        raise InputError("a token cannot have spaces, line ends or other than ASCII letters in it", place=place)
    return lambda: f"Bearer {token}"


def _basic(credentials: str) -> Callable[[], str]:
    encoded = base64.b64encode(credentials.encode()).decode()
    return lambda: f"Basic {encoded}"


def _of_file(path: str, place: Place) -> Callable[[], str]:
    """Return a function for the token in a file, stripped of white space."""
    known: list[tuple[float, str]] = []

    def authorization() -> str:
        if not known or time.monotonic() - known[0][0] > _TOKEN_LASTS:
            text = _file(path, place).decode(errors="replace").strip()
            if not text:
                raise InputError(f'"{path}" holds no token', place=place)
            known[:] = [(time.monotonic(), _bearer(text, place)())]
        return known[0][1]

    authorization()
    return authorization


_REMOVED = {
    "gcp": "gke-gcloud-auth-plugin, with exec, takes its place",
    "azure": "kubelogin, with exec, takes its place",
}


def _of_provider(name: str, config: Mapping[str, str], place: Place) -> Callable[[], str]:
    if name != "oidc":
        raise InputError(f'there is no auth-provider "{name}"', place=place, hint=_REMOVED.get(name, "oidc is one"))
    return _bearer(oidc.id_token(config, place, timeout=LOGIN_TIMEOUT), place)


def load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes, place: Place) -> None:
    """Load certificate and key. OpenSSL reads them only from a file, so a temporary file is created that only this user
    can read."""
    handle, path = tempfile.mkstemp(prefix="kschedx-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        # without a password, OpenSSL would ask for one on the terminal
        context.load_cert_chain(path, password="")
    except (ssl.SSLError, OSError, ValueError):
        raise InputError("its certificates cannot be used: certificate and key do not fit", place=place) from None
    finally:
        Path(path).unlink(missing_ok=True)

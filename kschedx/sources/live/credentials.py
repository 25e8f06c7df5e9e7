"""Connections for a kubeconfig's cluster and user: proxies, certificates, tokens, and login plugins."""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import InputError, Place, system_reason
from kschedx.kube.escaping import Url
from kschedx.patterns import lazy_pattern
from kschedx.progress import Phase, report_progress
from kschedx.sources.compression import read_file
from kschedx.sources.live.kubeconfig import ContextChoice, ExecPlugin, KubeconfigCluster, KubeconfigUser, NamedEntry
from kschedx.sources.tree import nearest_beside

if TYPE_CHECKING:
    import urllib3

# Login plugins: programs in a kubeconfig that print an ExecCredential.
# A plugin's standard error goes to that of kschedx, as with kubectl, and nowhere else. Upstream: client-go's
# plugin/pkg/client/auth/exec.

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES = ("", "Never", "IfAvailable", "Always")
_LONGEST = 1 << 20  # bytes of an ExecCredential, and of an identity provider's response


class _Credential(Struct, frozen=True, kw_only=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Answer(Struct, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    kind: str = ""
    status: _Credential | None = None


def _run(plugin: ExecPlugin, cluster: KubeconfigCluster, place: Place, *, timeout: float) -> _Credential:
    """Return the status that the plugin prints. Raises `InputError`.

    After `timeout` seconds, the plugin and its children are ended. There is no limit if it is interactive, since the
    user can press Ctrl-C.
    """
    name = f'the login plugin "{plugin.command}"'
    if plugin.api_version not in _VERSIONS:
        allowed = " and ".join(_VERSIONS)
        raise InputError(f'{name} has the apiVersion "{plugin.api_version}", allowed are {allowed}', place=place)
    if not plugin.interactive_mode and plugin.api_version == _VERSIONS[0]:
        allowed = ", ".join(_MODES[1:])
        raise InputError(f"{name} has no interactiveMode, allowed are {allowed}", place=place)
    if plugin.interactive_mode not in _MODES:
        message = f'{name} has the interactiveMode "{plugin.interactive_mode}", allowed are {", ".join(_MODES[1:])}'
        raise InputError(message, place=place)
    if not plugin.command or shutil.which(plugin.command) is None:
        hint = plugin.install_hint.strip().partition("\n")[0]
        raise InputError(f"{name} is not installed", place=place, hint=hint)
    has_person = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not has_person:
        raise InputError(f"{name} needs a person, and standard input is not a terminal", place=place)
    is_interactive = has_person and plugin.interactive_mode != "Never"
    if is_interactive:
        report_progress(Phase.NOTHING)  # the terminal belongs to the plugin
    environment = _environment(plugin, cluster, is_interactive=is_interactive, place=place)
    try:
        printed = _plugin_output(plugin, environment, is_interactive=is_interactive, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise InputError(f"{name} took longer than {timeout:g} s", place=place) from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"{name} failed: its exit code is {error.returncode}", place=place) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be started"
        raise InputError(f"{name} cannot be started: {reason.lower()}", place=place) from None
    return _decode_credential(printed, plugin, name, place)


def _environment(
    plugin: ExecPlugin, cluster: KubeconfigCluster, *, is_interactive: bool, place: Place
) -> Mapping[str, str]:
    own: dict[str, str] = {}
    for variable in plugin.env:
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            raise InputError(f'"{variable.name}" is not a name of an environment variable', place=place)
        own[variable.name] = variable.value
    spec: dict[str, object] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        cluster_info = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": cluster.certificate_authority_data,
            "proxy-url": cluster.proxy_url,
        }
        spec["cluster"] = {key: value for key, value in cluster_info.items() if value}
    request = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return os.environ | own | {"KUBERNETES_EXEC_INFO": json.dumps(request)}


_UNTIL_WE_END = 'exec 3<&0; (read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'
"""A shell that becomes the plugin. Another process ends the process group as soon as our end of its input is closed."""


_UNTIL_WE_END_AT_A_TERMINAL = (
    'end() {{ for child in $(pgrep -P "$1"); do end "$child"; done; kill -TERM "$1"; }}; '
    "( (read -r _ </dev/fd/{end}; end $$; sleep 1; kill -KILL $$) >/dev/null 2>&1 & ); "
    'exec "$@"'
)
"""A shell for a plugin in our own process group: only the plugin and its children are ended."""


def _plugin_output(
    plugin: ExecPlugin, environment: Mapping[str, str], *, is_interactive: bool, timeout: float
) -> bytes:
    # a group of its own allows ending the plugin with its children, but only the foreground group can read from the
    # terminal
    its_end, our_end = os.pipe()
    script = _UNTIL_WE_END_AT_A_TERMINAL.format(end=its_end) if is_interactive else _UNTIL_WE_END
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", plugin.command, *plugin.args],
            stdin=None if is_interactive else its_end,
            stdout=subprocess.PIPE,
            env=dict(environment),
            start_new_session=not is_interactive,
            pass_fds=(its_end,) if is_interactive else (),
        )
    except BaseException:
        os.close(our_end)
        raise
    finally:
        os.close(its_end)
    with _ended_at_last(process, our_end, has_group=not is_interactive):
        printed = _read_within(process, None if is_interactive else timeout)
        if len(printed) <= _LONGEST and process.wait():
            raise subprocess.CalledProcessError(process.returncode, plugin.command)
    return printed


@contextlib.contextmanager
def _ended_at_last(process: subprocess.Popen[bytes], our_end: int, *, has_group: bool) -> Iterator[None]:
    try:
        yield
    finally:
        children = _descendants(process.pid)
        if has_group:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(our_end)
        if process.stdout is not None:
            process.stdout.close()


def _descendants(process: int) -> list[int]:
    """Return the descendants of a process, if the system lists them. Orphaned processes are missing."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    processes = [process]
    for ancestor in processes:
        processes += [child for child, parent in parents.items() if parent == ancestor]
    return processes[1:]


def _read_within(process: subprocess.Popen[bytes], timeout: float | None) -> bytes:
    """Read until the output is closed. A child may keep it open, but no longer than the plugin's timeout."""
    assert process.stdout is not None
    stream = process.stdout
    parts: list[bytes] = []

    def read() -> None:
        size = 0
        with contextlib.suppress(OSError, ValueError):
            while size <= _LONGEST and (part := os.read(stream.fileno(), 1 << 16)):
                parts.append(part)
                size += len(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout)
    if reader.is_alive():
        raise subprocess.TimeoutExpired(process.args, timeout or 0)
    printed = b"".join(parts)
    if len(printed) <= _LONGEST:
        process.wait(timeout)
    return printed


def _decode_credential(printed: bytes, plugin: ExecPlugin, name: str, place: Place) -> _Credential:
    try:
        answer = msgspec.json.decode(printed[:_LONGEST], type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        # the output is never shown: it may be a secret
        raise InputError(f"{name} prints no ExecCredential", place=place) from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise InputError(f'{name} prints no ExecCredential of "{plugin.api_version}"', place=place)
    status = answer.status
    if status is None:
        raise InputError(f"{name} returns no status", place=place)
    if bool(status.client_certificate_data) is not bool(status.client_key_data):
        raise InputError(f"{name} returns a certificate or a key without the other", place=place)
    if not status.token and not status.client_certificate_data:
        message = f"{name} returns neither a token nor clientCertificateData and clientKeyData"
        raise InputError(message, place=place)
    return status


# The login of `auth-provider: oidc`: an ID token, which the identity provider renews after it expires. New tokens are
# not written back, since kschedx changes no kubeconfig. Upstream: client-go's plugin/pkg/client/auth/oidc.

_EARLY = 10.0  # seconds before its expiry from which a token is no longer used


class _Claims(Struct, frozen=True):
    exp: float = 0.0


class _Discovery(Struct, frozen=True):
    token_endpoint: str = ""


class _Tokens(Struct, frozen=True):
    id_token: str = ""


def _id_token(config: Mapping[str, str], place: Place, *, timeout: float) -> str:
    """Return the token for the API server. Raises `InputError`."""
    token = config.get("id-token", "")
    if token and _is_fresh(token):
        return token
    for needed in ("idp-issuer-url", "client-id", "refresh-token"):
        if not config.get(needed):
            raise InputError(f"the ID token has expired, and {needed} is missing to renew it", place=place)
    return _renew_token(config, place, timeout)


def _is_fresh(token: str) -> bool:
    parts = token.split(".")
    if len(parts) != 3:
        return False
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="), type=_Claims)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return False
    return claims.exp - _EARLY > time.time()


def _renew_token(config: Mapping[str, str], place: Place, timeout: float) -> str:
    import urllib3

    issuer = config["idp-issuer-url"].rstrip("/")
    shown = Url(issuer)
    if not issuer.startswith("https://"):
        raise InputError("idp-issuer-url: expected a URL with https://", place=place)
    pool = urllib3.PoolManager(ssl_context=_provider_trust(config, place))

    def answer(method: str, url: str, body: str | None = None) -> bytes:
        if not url.startswith("https://"):
            raise InputError(f"the identity provider {shown} has a token endpoint without https://", place=place)
        try:
            response = pool.request(
                method,
                url,
                body=body,
                headers={"Content-Type": "application/x-www-form-urlencoded"} if body else {},
                preload_content=False,
                redirect=False,
                retries=False,
                timeout=timeout,
            )
            with response:
                read = response.read(_LONGEST)
        except urllib3.exceptions.SSLError:
            message = f"the identity provider {shown} has a certificate of an unknown authority"
            hint = "set idp-certificate-authority"
            raise InputError(message, place=place, hint=hint) from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            raise InputError(f"the identity provider {shown} cannot be reached", place=place) from None
        if response.status != 200:
            message = f"the identity provider {shown} answers {response.status} {response.reason or ''}".rstrip()
            raise InputError(message, place=place, hint="log in again")
        return read

    try:
        discovery = msgspec.json.decode(answer("GET", f"{issuer}/.well-known/openid-configuration"), type=_Discovery)
        form = {
            "grant_type": "refresh_token",
            "refresh_token": config["refresh-token"],
            "client_id": config["client-id"],
            "client_secret": config.get("client-secret", ""),
        }
        tokens = msgspec.json.decode(answer("POST", discovery.token_endpoint, urlencode(form)), type=_Tokens)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"the identity provider {shown} returned an unknown answer", place=place) from None
    if not tokens.id_token:
        raise InputError(f"the identity provider {shown} returns no ID token", place=place, hint="log in again")
    return tokens.id_token


def _provider_trust(config: Mapping[str, str], place: Place) -> ssl.SSLContext:
    try:
        data = config.get("idp-certificate-authority-data", "")
        if data:
            return ssl.create_default_context(cadata=base64.b64decode(data, validate=True).decode("ascii"))
        return ssl.create_default_context(cafile=config.get("idp-certificate-authority") or None)
    except (binascii.Error, OSError, ValueError):
        raise InputError("idp-certificate-authority cannot be used", place=place) from None


# Which proxy leads to a server, and how. Upstream: golang.org/x/net/http/httpproxy for the environment; clientcmd for
# `proxy-url`.

_SCHEMES = ("http", "https", "socks5")
_NOT_IN_URL = lazy_pattern(r"[\x00-\x20\x7f<>\"\\^`{|}]")


def proxy_of_environment(url: str, environment: Mapping[str, str]) -> str:
    """The proxy of HTTPS_PROXY, HTTP_PROXY, and NO_PROXY as Go reads them; empty if there is none for this server."""
    target = _parts(url)
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


def _parts(url: str) -> SplitResult | None:
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
    at = _parts(proxy)
    no_proxy = InputError(f'expected a URL with {", ".join(_SCHEMES)}, found "{shown}"', place=place)
    if at is None or at.scheme not in _SCHEMES:
        raise no_proxy
    scheme = at.scheme
    user, _, password = credentials.partition(":")
    if scheme != "socks5":
        headers = {"proxy-authorization": _basic(credentials)()} if credentials else None
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

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOGIN_TIMEOUT = 60.0  # seconds that a login plugin or an identity provider may take
_TOKEN_LASTS = 60.0  # seconds after which a token's file is read again, since its owner renews it
_CONNECTIONS = 8


class Access(Struct, frozen=True, kw_only=True):
    """One server and one identity."""

    url: Url  # the URL without user and password
    pool: urllib3.PoolManager
    authorization: Callable[[], str]  # returns the header's value; empty without a login. Raises `InputError`


def service_account_access(environment: Mapping[str, str]) -> Access:
    """Return the access of a pod's own service account. Raises `InputError` outside of a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    token, authority = _SERVICE_ACCOUNT / "token", _SERVICE_ACCOUNT / "ca.crt"
    if not (host and port and token.is_file() and authority.is_file()):
        hint = "name a kubeconfig with --kubeconfig or KUBECONFIG, or a dump with --snapshot"
        raise InputError("no cluster is configured", hint=hint)
    place = Place(source=str(_SERVICE_ACCOUNT))
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = KubeconfigCluster(server=url, certificate_authority=str(authority))
    return Access(
        url=Url(url),
        pool=_pool("", place, {"ssl_context": _trust(cluster, place)}),
        authorization=_file_authorization(str(token), Place(source=str(token))),
    )


def own_namespace() -> str:
    """Return the namespace of the pod in which this process runs."""
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
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
    if not url.startswith(("http://", "https://")) or _parts(cluster.server) is None:
        raise InputError(f'server: expected a URL with https://, found "{Url(url)}"', place=place)
    proxy = cluster.proxy_url or proxy_of_environment(url, environment)
    at = _field_place(place, "proxy-url") if cluster.proxy_url else Place(source="the environment's proxy")
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
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without authorities, which take 40 ms to load
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    authority = _content(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority", place
    )
    try:
        context = ssl.create_default_context(cadata=None if authority is None else authority.decode("ascii"))
    except (ssl.SSLError, OSError, ValueError):
        where = _field_place(place, "certificate-authority")
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
            where = _field_place(place, f"{field}-data")
            raise InputError(f"not base64: {str(error).lower()}", place=where) from None
    return _file(path, _field_place(place, field)) if path else None


def _file(path: str, where: Place) -> bytes:
    if not Path(path).is_file():
        raise InputError(f'no file "{path}"', place=where, hint=nearest_beside(Path(path)))
    try:
        return read_file(path)
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {system_reason(error)}', place=where) from None


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
        return _bearer(entry.token, _field_place(place, "token"))
    if entry.token_file:
        return _file_authorization(entry.token_file, _field_place(place, "tokenFile"))
    if entry.username:
        return _basic(f"{entry.username}:{entry.password}")
    if entry.exec is not None:
        at = _field_place(place, "exec")
        credential = _run(entry.exec, cluster, at, timeout=_LOGIN_TIMEOUT)
        if credential.client_certificate_data:
            load_certificate(
                context, credential.client_certificate_data.encode(), credential.client_key_data.encode(), at
            )
        return _bearer(credential.token, at) if credential.token else str
    if entry.auth_provider is not None:
        return _provider_authorization(
            entry.auth_provider.name, entry.auth_provider.config, _field_place(place, "auth-provider")
        )
    return str


def _field_place(place: Place, field: str) -> Place:
    return replace(place, field=field)


_SENDABLE = lazy_pattern(r"[\x21-\x7e]+")


def _bearer(token: str, place: Place) -> Callable[[], str]:
    if not _SENDABLE.fullmatch(token):
        raise InputError("a token cannot have spaces, line ends or other than ASCII letters in it", place=place)
    return lambda: f"Bearer {token}"


def _basic(credentials: str) -> Callable[[], str]:
    encoded = base64.b64encode(credentials.encode()).decode()
    return lambda: f"Basic {encoded}"


def _file_authorization(path: str, place: Place) -> Callable[[], str]:
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


def _provider_authorization(name: str, config: Mapping[str, str], place: Place) -> Callable[[], str]:
    if name != "oidc":
        raise InputError(f'there is no auth-provider "{name}"', place=place, hint=_REMOVED.get(name, "oidc is one"))
    return _bearer(_id_token(config, place, timeout=_LOGIN_TIMEOUT), place)


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

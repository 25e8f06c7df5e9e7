"""Login plugins: programs in a kubeconfig that print an ExecCredential.

A plugin's standard error goes to that of kschedx, as with kubectl, and nowhere else. Upstream: client-go's
plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, field

from kschedx.errors import InputError, Place
from kschedx.kube.escaping import Url
from kschedx.progress import Phase, say
from kschedx.sources.live.kubeconfig import ExecPlugin, KubeconfigCluster

GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_MODES = ("", "Never", "IfAvailable", "Always")
LONGEST = 1 << 20
"""Bytes of an ExecCredential."""


class Credential(Struct, frozen=True, kw_only=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Answer(Struct, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    kind: str = ""
    status: Credential | None = None


def run(plugin: ExecPlugin, cluster: KubeconfigCluster, place: Place, *, timeout: float) -> Credential:
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
        say(Phase.NOTHING)  # the terminal belongs to the plugin
    environment = _environment(plugin, cluster, is_interactive=is_interactive, place=place)
    try:
        printed = _printed(plugin, environment, is_interactive=is_interactive, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise InputError(f"{name} took longer than {timeout:g} s", place=place) from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"{name} failed: its exit code is {error.returncode}", place=place) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be started"
        raise InputError(f"{name} cannot be started: {reason.lower()}", place=place) from None
    return _decoded(printed, plugin, name, place)


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


def _printed(plugin: ExecPlugin, environment: Mapping[str, str], *, is_interactive: bool, timeout: float) -> bytes:
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
        if len(printed) <= LONGEST and process.wait():
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
            while size <= LONGEST and (part := os.read(stream.fileno(), 1 << 16)):
                parts.append(part)
                size += len(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout)
    if reader.is_alive():
        raise subprocess.TimeoutExpired(process.args, timeout or 0)
    printed = b"".join(parts)
    if len(printed) <= LONGEST:
        process.wait(timeout)
    return printed


def _decoded(printed: bytes, plugin: ExecPlugin, name: str, place: Place) -> Credential:
    try:
        answer = msgspec.json.decode(printed[:LONGEST], type=_Answer)
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

_EARLY = 10.0
"""Seconds before its expiry from which a token is no longer used."""
_LONGEST = 1 << 20
"""Bytes of a response."""


class _Claims(Struct, frozen=True):
    exp: float = 0.0


class _Discovery(Struct, frozen=True):
    token_endpoint: str = ""


class _Tokens(Struct, frozen=True):
    id_token: str = ""


def id_token(config: Mapping[str, str], place: Place, *, timeout: float) -> str:
    """Return the token for the API server. Raises `InputError`."""
    token = config.get("id-token", "")
    if token and _is_fresh(token):
        return token
    for needed in ("idp-issuer-url", "client-id", "refresh-token"):
        if not config.get(needed):
            raise InputError(f"the ID token has expired, and {needed} is missing to renew it", place=place)
    return _renewed(config, place, timeout)


def _is_fresh(token: str) -> bool:
    parts = token.split(".")
    if len(parts) != 3:
        return False
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="), type=_Claims)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return False
    return claims.exp - _EARLY > time.time()


def _renewed(config: Mapping[str, str], place: Place, timeout: float) -> str:
    import urllib3

    issuer = config["idp-issuer-url"].rstrip("/")
    shown = Url(issuer)
    if not issuer.startswith("https://"):
        raise InputError("idp-issuer-url: expected a URL with https://", place=place)
    pool = urllib3.PoolManager(ssl_context=_trust(config, place))

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


def _trust(config: Mapping[str, str], place: Place) -> ssl.SSLContext:
    try:
        data = config.get("idp-certificate-authority-data", "")
        if data:
            return ssl.create_default_context(cadata=base64.b64decode(data, validate=True).decode("ascii"))
        return ssl.create_default_context(cafile=config.get("idp-certificate-authority") or None)
    except (binascii.Error, OSError, ValueError):
        raise InputError("idp-certificate-authority cannot be used", place=place) from None

"""From a kubeconfig's cluster and user to connections: certificates, tokens and login plugins.

The kubernetes client brings the logins. What it would only log, or what kubectl does otherwise, is settled here first.
"""

from __future__ import annotations

import base64
import binascii
import shutil
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kschedx.errors import InputError, Place, nearest
from kschedx.sources.live.kubeconfig import Choice, Entry, Named

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_FILES = {
    "cluster": (("certificate-authority", True),),
    "user": (("client-certificate", True), ("client-key", True), ("tokenFile", False)),
}
"""Fields that name a file, and whether a field of the same name with `-data` takes its place."""

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

NAME = "chosen"


def in_cluster() -> ApiClient:
    """A pod's own service account. Raises `InputError` outside of a pod."""
    from kubernetes import config
    from kubernetes.client import ApiClient, Configuration

    configuration = Configuration()
    try:
        config.load_incluster_config(configuration)
    except config.ConfigException:
        hint = "name a kubeconfig with --kubeconfig or KUBECONFIG, or a dump with --snapshot"
        raise InputError("no cluster is configured", hint=hint) from None
    return ApiClient(configuration)


def client_of(choice: Choice, *, insecure: bool = False) -> ApiClient:
    """A client that is logged in. Raises `InputError` naming the file and the entry."""
    from kubernetes import config

    cluster, user = dict(choice.cluster.fields), dict(choice.user.fields if choice.user else {})
    place = choice.cluster.place("cluster")
    if insecure:
        cluster["insecure-skip-tls-verify"] = True
    if cluster.get("insecure-skip-tls-verify"):
        cluster.pop("certificate-authority", None)
        cluster.pop("certificate-authority-data", None)
    _check_files(cluster, "cluster", place)
    if not choice.server.startswith(("http://", "https://")):
        raise InputError(f'server: expected a URL with https://, found "{choice.server}"', place=place)
    if choice.server.startswith("http://"):
        user = {}  # as kubectl: nobody's secret goes over a connection that anybody can read
    elif choice.user is not None:
        _check_files(user, "user", choice.place)
        user = dict(_logged_in(choice.user, user, cluster))
    document = {
        "current-context": NAME,
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
    }
    try:
        client: ApiClient = config.new_client_from_config_dict(document)
    except (config.ConfigException, binascii.Error, ValueError, KeyError) as error:
        raise InputError(f"cannot be used: {error}", place=choice.place) from None
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"its certificates cannot be used: {reason}", place=place) from None
    return client


def own_namespace() -> str:
    """That of the pod which this process runs in."""
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _check_files(fields: dict[str, object], what: str, place: Place) -> None:
    for field, has_data in _FILES[what]:
        where = Place(source=place.source, object=place.object, field=field)
        data = fields.get(f"{field}-data") if has_data else fields.get("token")
        if data:
            fields.pop(field, None)
            if has_data:
                _check_base64(data, Place(source=place.source, object=place.object, field=f"{field}-data"))
            continue
        path = fields.get(field)
        if not path:
            fields.pop(field, None)
            continue
        if not isinstance(path, str):
            raise InputError("not a string", place=where)
        if not Path(path).is_file():
            folder = Path(path).parent
            beside = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
            raise InputError(f'no file "{path}"', place=where, hint=nearest(Path(path).name, beside))


def _check_base64(data: object, place: Place) -> None:
    try:
        base64.b64decode("".join(str(data).split()), validate=True)
    except binascii.Error as error:
        raise InputError(f"not base64: {str(error).lower()}", place=place) from None


def _logged_in(user: Named, fields: Entry, cluster: Entry) -> Entry:
    """The same user with what its login plugin gives; the client itself would go on as nobody where one fails."""
    plugin = fields.get("exec")
    if plugin is None or fields.get("token") or fields.get("tokenFile"):
        return fields
    place = Place(source=user.source, object=f"user {user.name}", field="exec")
    if not isinstance(plugin, dict):
        raise InputError("not a mapping", place=place)
    status = _credential(plugin, cluster, place)
    found = {key: value for key, value in fields.items() if key != "exec"}
    token, certificate, key = (status.get(k) for k in ("token", "clientCertificateData", "clientKeyData"))
    if token:
        found["token"] = token
    if certificate and key:
        found["client-certificate-data"] = base64.b64encode(str(certificate).encode()).decode()
        found["client-key-data"] = base64.b64encode(str(key).encode()).decode()
    if not token and not (certificate and key):
        raise InputError(
            f'"{plugin.get("command")}" gives neither a token nor clientCertificateData and clientKeyData', place=place
        )
    return found


def _credential(plugin: Entry, cluster: Entry, place: Place) -> Mapping[str, object]:
    """What a plugin's ExecCredential says in its status."""
    from kubernetes.config import ConfigException
    from kubernetes.config.exec_provider import ExecProvider
    from kubernetes.config.kube_config import ConfigNode

    command = str(plugin.get("command") or "")
    if command and shutil.which(command) is None:
        hint = str(plugin.get("installHint") or "").strip().partition("\n")[0]
        raise InputError(f'the login plugin "{command}" is not installed', place=place, hint=hint)
    try:
        status = ExecProvider(ConfigNode("exec", dict(plugin)), None, ConfigNode("cluster", dict(cluster))).run()
    except (ConfigException, OSError, TypeError, KeyError) as error:
        text = " ".join(str(error).removeprefix("exec: ").split())
        raise InputError(f'the login plugin "{command}" failed: {text}', place=place) from None
    if not isinstance(status, dict):
        raise InputError(f'the login plugin "{command}" gives no status', place=place)
    return status

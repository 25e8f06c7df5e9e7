"""The cluster and user that kubectl would choose (k8s.io/client-go/tools/clientcmd).

`load` merges the files; `Kubeconfig.choose` selects one of their contexts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.kube.decoding import decode
from kschedx.sources.tree import nearest_beside, unreadable

_LARGEST = 10 << 20  # bytes


# --- entries with Kubernetes' types (k8s.io/client-go/tools/clientcmd/api/v1)


class KubeconfigCluster(Struct, frozen=True, kw_only=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _Variable(Struct, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class ExecPlugin(Struct, frozen=True, kw_only=True, rename="camel"):
    """A program that logs in."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(Struct, frozen=True, kw_only=True):
    name: str = ""
    config: dict[str, str] = field(default_factory=dict)


class KubeconfigUser(Struct, frozen=True, kw_only=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    auth_provider: AuthProvider | None = None
    exec: ExecPlugin | None = None


class _Context(Struct, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


_KubeconfigEntry = TypeVar("_KubeconfigEntry", KubeconfigCluster, KubeconfigUser, _Context)


class _Element(Struct, frozen=True, kw_only=True):
    """An element of a list: a name, and an entry of the list's type."""

    name: str = ""
    cluster: KubeconfigCluster = KubeconfigCluster()
    user: KubeconfigUser = KubeconfigUser()
    context: _Context = _Context()


class _Document(Struct, frozen=True, kw_only=True):
    kind: str = ""
    current_context: str = field(default="", name="current-context")
    clusters: tuple[msgspec.Raw, ...] = ()
    users: tuple[msgspec.Raw, ...] = ()
    contexts: tuple[msgspec.Raw, ...] = ()


# --- the files, and the choice among their entries


class NamedEntry(Struct, Generic[_KubeconfigEntry], frozen=True, kw_only=True):
    """An entry, and the file that defines it."""

    name: str
    entry: _KubeconfigEntry
    source: str

    def place(self, what: str) -> Place:
        return Place(source=self.source, object=f"{what} {self.name}")


class ContextChoice(Struct, frozen=True, kw_only=True):
    """A cluster and a user. Without a user, requests are anonymous."""

    context: str  # empty if --cluster and --user replace it
    namespace: str
    cluster: NamedEntry[KubeconfigCluster]
    user: NamedEntry[KubeconfigUser] | None

    @property
    def place(self) -> Place:
        """The place of the user, or of the cluster without a login."""
        return self.cluster.place("cluster") if self.user is None else self.user.place("user")


class Kubeconfig(Struct, frozen=True, kw_only=True):
    """The merged files."""

    sources: tuple[str, ...]
    current_context: str
    clusters: Mapping[str, NamedEntry[KubeconfigCluster]]
    users: Mapping[str, NamedEntry[KubeconfigUser]]
    contexts: Mapping[str, NamedEntry[_Context]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is configured; then a pod's own service account may be used."""
        return not (self.clusters or self.users or self.contexts or self.current_context)

    @property
    def place(self) -> Place:
        return Place(source=os.pathsep.join(self.sources))

    def choose(self, *, context: str = "", cluster: str = "", user: str = "") -> ContextChoice:
        """Return the choice of --context, --cluster, and --user, or the current context. Raises `InputError`."""
        name = context or self.current_context
        entry = _Context()
        place = self.place
        if name:
            chosen = _find(self.contexts, "context", name, self.place)
            entry, place = chosen.entry, Place(source=chosen.source, object=f"context {name}")
        elif not cluster:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise InputError("no current-context is set", place=place, hint=f"--context takes one of: {known}")
        cluster_name = cluster or entry.cluster
        if not cluster_name:
            raise InputError("names no cluster", place=place)
        named = _find(self.clusters, "cluster", cluster_name, self.place if cluster else place)
        if not named.entry.server:
            raise InputError("no server", place=named.place("cluster"))
        user_name = user or entry.user
        return ContextChoice(
            context=name,
            namespace=entry.namespace or "default",
            cluster=named,
            user=_find(self.users, "user", user_name, self.place if user else place) if user_name else None,
        )


def _find(
    entries: Mapping[str, NamedEntry[_KubeconfigEntry]], what: str, name: str, place: Place
) -> NamedEntry[_KubeconfigEntry]:
    if name not in entries:
        known = f"known: {', '.join(sorted(entries))}" if entries else f"there is no {what}"
        raise InputError(f'{what} "{name}" does not exist', place=place, hint=nearest(name, entries) or known)
    return entries[name]


def load(explicit: str | None, environment: Mapping[str, str]) -> Kubeconfig:
    """Load only `explicit`, else the files of KUBECONFIG, else the one in the home folder. Missing files are skipped.

    The first file that defines an entry or the current context takes precedence. Raises `InputError` for a missing
    `explicit` file, for unreadable files, and for fields of another type than in Kubernetes.
    """
    if explicit:
        files = [Path(explicit)]
        if not files[0].exists():
            raise InputError("no such file", source=explicit, hint=nearest_beside(files[0]))
    else:
        files = [path for path in _files(environment) if path.exists()]
    documents = [(path, _read(path)) for path in files]
    return Kubeconfig(
        sources=tuple(map(str, files)),
        current_context=next((document.current_context for _, document in documents if document.current_context), ""),
        clusters=_entries(
            documents, "cluster", lambda item, path: _resolve_paths(item.cluster, path, "certificate_authority")
        ),
        users=_entries(documents, "user", _user),
        contexts=_entries(documents, "context", lambda item, _: item.context),
    )


def _entries(
    documents: Sequence[tuple[Path, _Document]],
    what: str,
    entry_of: Callable[[_Element, Path], _KubeconfigEntry],
) -> dict[str, NamedEntry[_KubeconfigEntry]]:
    entries: dict[str, NamedEntry[_KubeconfigEntry]] = {}
    for path, document in documents:
        for element in _elements(getattr(document, f"{what}s"), what, path):
            entry = NamedEntry(name=element.name, entry=entry_of(element, path), source=str(path))
            entries.setdefault(element.name, entry)
    return entries


def _files(environment: Mapping[str, str]) -> Sequence[Path]:
    """Return the files; an empty KUBECONFIG equals an unset one."""
    listed = environment.get("KUBECONFIG", "")
    if listed:
        return [Path(name) for name in dict.fromkeys(listed.split(os.pathsep)) if name]
    home = environment.get("HOME", "")
    return [Path(home, ".kube", "config")] if home else []


def _read(path: Path) -> _Document:
    from kschedx.sources import yaml as yaml_text

    source = str(path)
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise unreadable(source, error) from None
    if len(text) > _LARGEST:
        raise InputError("too large for a kubeconfig", source=source)
    values = [document.value for document in yaml_text.load_all(text, source=source)]
    if not values:
        return _Document()
    if len(values) > 1 or not isinstance(values[0], dict):
        raise InputError("not a kubeconfig: expected one mapping", source=source)
    with Place(source=source):
        document = decode(msgspec.json.encode(values[0]), _Document)
    if document.kind not in ("", "Config"):
        raise InputError(f"not a kubeconfig: its kind is {document.kind}, expected Config", source=source)
    return document


def _elements(listed: Sequence[msgspec.Raw], what: str, path: Path) -> Iterator[_Element]:
    seen: set[str] = set()
    for index, raw in enumerate(listed):
        with Place(source=str(path), field=f"{what}s[{index}]"):
            element = decode(raw, _Element)
        if element.name in seen:
            raise InputError(f'{what} "{element.name}" is defined twice', source=str(path))
        seen.add(element.name)
        yield element


def _resolve_paths(entry: _KubeconfigEntry, path: Path, *names: str) -> _KubeconfigEntry:
    """Resolve relative paths against the folder of the file."""
    return replace(entry, **{name: str(_folder(path) / value) for name in names if (value := getattr(entry, name))})


def _user(element: _Element, path: Path) -> KubeconfigUser:
    """Return the user with resolved paths; the plugin's command is a path only if it contains a slash."""
    user = _resolve_paths(element.user, path, "client_certificate", "client_key", "token_file")
    plugin = user.exec
    if plugin is None or os.sep not in plugin.command:
        return user
    return replace(user, exec=replace(plugin, command=str(_folder(path) / plugin.command)))


def _folder(path: Path) -> Path:
    return Path(os.path.abspath(path.parent))  # noqa: PTH100 - links in the path stay, as kubectl keeps them

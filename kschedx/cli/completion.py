"""Completion of names for the shell: pods, workloads, nodes, and namespaces of the cluster on the command line;
reasons."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec
import typer

from kschedx.patterns import lazy_pattern

if TYPE_CHECKING:
    from kschedx.kube.kinds import ResourceKind
    from kschedx.snapshot.snapshot import Snapshot

_LARGEST = 100 << 20  # bytes of a snapshot; with a larger one, completion would take more than a second
_SHRUNK = 20  # the assumed compression factor of a snapshot

_NAME = lazy_pattern(r"(?:[a-z]+[/=])?[A-Za-z0-9][A-Za-z0-9.-]*")
"""A possible name or `kind/name`: other text in a snapshot is no name, and a shell might run it."""

_ENTRY = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9@._:/+-]*")  # a possible name in a kubeconfig

_TIMEOUT = "2s"
_CONNECTION = ("kubeconfig", "context", "cluster", "user", "as_user", "as_groups", "insecure")
_TARGETS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Node")
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class _Metadata(msgspec.Struct):
    name: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: tuple[_Item, ...] = ()


def _snapshot(context: typer.Context) -> Snapshot | None:
    """Return the snapshot that the command line names so far; None if it is too large or cannot be read."""
    from kschedx.errors import KschedxError
    from kschedx.loading import load

    paths = [path for path in context.params.get("snapshot") or [] if path != "-"]
    if not paths or sum(_size(Path(path)) for path in paths) > _LARGEST:
        return None
    try:
        return load(paths)
    except KschedxError:
        return None


def _size(path: Path) -> int:
    """Return the bytes of a file or a folder; for a compressed file, about those of its content."""
    from kschedx.sources.compression import format_of
    from kschedx.sources.tree import is_zip

    if path.is_dir():
        files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        return sum(file.lstat().st_size for file in files)
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        head = file.read(8)
    return path.stat().st_size * (_SHRUNK if format_of(head) or is_zip(head) else 1)


def _matching_names(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete) and _NAME.fullmatch(name)})


def _objects(context: typer.Context, *keys: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the objects of these kinds, in the namespace of the command line."""
    from kschedx.kube.kinds import name_of
    from kschedx.simulate.object_changes import objects_of

    if not context.params.get("snapshot"):
        yield from ((key, metadata.name) for key, metadata in _live(context, keys))
        return
    snapshot = _snapshot(context)
    if snapshot is None:
        return
    namespace = context.params.get("namespace") or "default"
    pods = snapshot.pods
    yield from (("Pod", name) for row, name in enumerate(pods.names) if pods.namespaces[row] == namespace)
    yield from ((kind, name) for kind, space, name in snapshot.workloads if space == namespace)
    yield from (("Node", name) for name in snapshot.cluster.names)
    yield from (("Namespace", name) for name in snapshot.known_namespaces)
    for kind in _subjects():
        stored = map(name_of, objects_of(snapshot, kind))
        yield from ((kind.key, name) for space, name in stored if not space or space == namespace)


def _subjects() -> list[ResourceKind]:
    """Return the kinds of objects that `why` explains although they create no pods."""
    from kschedx.kube.kinds import KINDS

    return [kind for kind in KINDS.values() if kind.is_subject]


def _live(context: typer.Context, keys: Iterable[str]) -> Iterator[tuple[str, _Metadata]]:
    """Yield kind and metadata of the live cluster's objects; nothing if the cluster does not answer in time."""
    from kschedx.cli.connection import Connection, connect
    from kschedx.errors import KschedxError
    from kschedx.kube.kinds import KINDS
    from kschedx.sources.live.lists import LIMIT, path_of

    typed = {name: value for name in _CONNECTION if (value := context.params.get(name))}
    try:
        server, _, namespace = connect(Connection(**typed, request_timeout=_TIMEOUT))
    except KschedxError:
        return
    namespace = context.params.get("namespace") or namespace
    for key in keys:
        path = path_of(KINDS[key], KINDS[key].versions[0], namespace if KINDS[key].is_namespaced else "")
        with contextlib.suppress(KschedxError, msgspec.DecodeError):  # a cluster may not serve the kind
            body = server.get(path, {"limit": str(LIMIT)}, accept=_METADATA)
            yield from ((key, item.metadata) for item in msgspec.json.decode(body, type=_List).items)


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """Return `pod/NAME` for every pod, and the workloads, of the namespace; `node/NAME`; pods by the begun name; and
    objects that create no pods, such as `pvc/NAME`, by their begun kind."""
    from kschedx.kube.workloads import SHORT_NAMES

    short: dict[str, str] = {"Pod": "pod", "Node": "node"}
    for abbreviation, kind in SHORT_NAMES.items():
        short.setdefault(kind, abbreviation)
    written, slash, _ = incomplete.partition("/")
    others = {kind.key: next(iter((*kind.short_names, kind.name.lower()))) for kind in _subjects() if written}
    short |= others
    keys = [
        key for key in (*_TARGETS, *others) if short[key] == written or (not slash and short[key].startswith(written))
    ]
    keys += ["Pod"] if written and not slash and "Pod" not in keys else []
    known = [(key, name) for key, name in _objects(context, *keys) if key in short]
    bare = (name for key, name in known if key == "Pod" and written and not slash)
    return _matching_names(incomplete, (*(f"{short[key]}/{name}" for key, name in known), *bare))


def nodes(context: typer.Context, incomplete: str) -> list[str]:
    return _matching_names(incomplete, (name for key, name in _objects(context, "Node") if key == "Node"))


def failures(context: typer.Context, incomplete: str) -> list[str]:
    """Return the nodes, and their zones and node pools as `zone=NAME` and `nodepool=NAME`."""
    from kschedx.inquiry.survive import LABELS
    from kschedx.kube.names import first_label

    if not context.params.get("snapshot"):
        known = [(metadata.name, metadata.labels) for _, metadata in _live(context, ("Node",))]
    else:
        snapshot = _snapshot(context)
        known = [] if snapshot is None else [(node.name, node.metadata.labels) for node in snapshot.cluster.nodes]
    parts = (f"{key}={first_label(labels, keys)}" for _, labels in known for key, keys in LABELS.items())
    return _matching_names(incomplete, (*parts, *(name for name, _ in known)))


def namespaces(context: typer.Context, incomplete: str) -> list[str]:
    return _matching_names(incomplete, (name for key, name in _objects(context, "Namespace") if key == "Namespace"))


def entries(section: str) -> Callable[[typer.Context, str], list[str]]:
    """Return the completion of the names in a section of the kubeconfig: contexts, clusters, or users."""

    def offered(context: typer.Context, incomplete: str) -> list[str]:
        from kschedx.errors import KschedxError
        from kschedx.sources.live.kubeconfig import load

        try:
            names: Iterable[str] = getattr(load(context.params.get("kubeconfig"), os.environ), section)
        except KschedxError:
            return []
        return sorted(name for name in names if name.startswith(incomplete) and _ENTRY.fullmatch(name))

    return offered


def words(*known: str) -> Callable[[str], list[str]]:
    def offered(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return offered


def reasons(incomplete: str) -> list[str]:
    """Return the ids that `kschedx reason` has, and the plugins."""
    from kschedx.framework.registry import IN_TREE
    from kschedx.words.reasons import reasons

    return _matching_names(incomplete, [*reasons(), *IN_TREE])


def profiles(incomplete: str) -> list[str]:
    """Return the names that `kschedx profiles` lists."""
    from kschedx.cli.files import names

    return _matching_names(incomplete, names())


def releases(incomplete: str) -> list[str]:
    """Return the Kubernetes versions that can be emulated."""
    from kschedx.releases import EMULATED

    return [version for version in EMULATED if version.startswith(incomplete)]


def scheduler_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the schedulerNames of the profiles in the configuration of the command line."""
    from kschedx.cli.files import configuration
    from kschedx.errors import KschedxError

    try:
        config = configuration(context.params.get("config") or "default")
    except KschedxError:
        return []
    profiles = None if config is None else config.get("profiles")
    named = [it.get("schedulerName") for it in profiles if isinstance(it, dict)] if isinstance(profiles, list) else []
    return _matching_names(incomplete, [str(name or "default-scheduler") for name in named] or ["default-scheduler"])


def documents(incomplete: str) -> list[str]:
    """Return the kinds of documents that have a schema."""
    from kschedx.schemas import NAMES

    return [name for name in NAMES if name.lower().startswith(incomplete.lower())]


# kschedx as a plugin of kubectl's: `kubectl kschedx why ...`.
#
# kubectl runs `kubectl-kschedx` for it, and asks `kubectl_complete-kschedx` for the words that can follow; both are
# kschedx under another name (pkg/cmd/plugin/plugin_completion.go in kubectl).

PLUGIN = "kubectl-kschedx"

_NO_FILES = ":4"  # cobra's ShellCompDirectiveNoFileComp, which kubectl reads from the last line


def called_as(path: str) -> str:
    """Return the name under which kschedx's program was run, given its path."""
    return PurePath(path).name.removesuffix(".exe")


def program_name(path: str) -> str:
    """Return what the user types, for usage lines."""
    return "kubectl kschedx" if called_as(path) == PLUGIN else "kschedx"


def candidates(app: typer.Typer, words: Sequence[str]) -> Iterator[str]:
    """Yield the lines for kubectl: completions of the last of `words`, each with a description behind a tab. If there
    are none, kubectl completes names of files."""
    from typer._completion_classes import FishComplete
    from typer.main import get_command

    *before, incomplete = words or [""]
    offered = FishComplete(get_command(app), {}, "kschedx", "").get_completions(before, incomplete)
    for item in offered:
        description = " ".join((item.help or "").split())
        yield f"{item.value}\t{description}" if description else item.value
    if offered:
        yield _NO_FILES

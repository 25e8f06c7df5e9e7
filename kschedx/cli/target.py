"""What the user wants explained: a manifest, a pod of the snapshot, or the pod that a workload would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kschedx.answer.subject import Subject, admitted
from kschedx.api.types import Pod
from kschedx.api.workloads import MAKING_PODS, SHORT_NAMES, newest_replica_set, pod_from_workload
from kschedx.errors import InputError, Place, nearest
from kschedx.explain.missing import refuse
from kschedx.explain.setup import Setup
from kschedx.snapshot.snapshot import Missing, Snapshot

Manifest = dict[str, object]

POD_KINDS = ("Pod", *MAKING_PODS)


class Written(Struct, frozen=True, kw_only=True):
    """A pod that is not in the cluster: its manifest, or the one that a workload's template makes."""

    manifest: Manifest
    title: str = ""
    """What errors call it, where that is not the pod: the workload of the file."""
    place: Place = Place()
    """Of the file that it is from."""

    def admitted(self, snapshot: Snapshot, setup: Setup, manifest: Manifest | None = None) -> Subject:
        """As the API server would store it, or `manifest` in its place. Raises `InputError` with the place."""
        try:
            return admitted(snapshot, manifest or self.manifest, setup, title=self.title)
        except InputError as error:
            raise error.at(self.place) from None


def find_target(
    snapshot: Snapshot, target: str, namespace: str | None, *, default_namespace: str = "default"
) -> Pod | Written:
    """The pod to explain, from `pod/NAME`, `deploy/NAME`, a file, `-`, or the bare name of a pod.

    Raises `InputError` for what does not exist, with the nearest name.
    """
    kind = referred_kind(target)
    if kind is not None:
        return _named(snapshot, kind, target.partition("/")[2], namespace or default_namespace)
    if target != "-" and not Path(target).exists() and not target.endswith((".yaml", ".yml", ".json")):
        return _by_bare_name(snapshot, target, namespace or default_namespace)
    return _from_file(snapshot, target, namespace, default_namespace)


def referred_kind(target: str) -> str | None:
    """The kind in `pod/NAME` or `deploy/NAME`; None for anything else, and for a file of that name."""
    kind, slash, name = target.partition("/")
    if not slash or "/" in name or Path(target).exists():
        return None
    return SHORT_NAMES.get(kind.lower().partition(".")[0])


def _named(snapshot: Snapshot, kind: str, name: str, namespace: str) -> Pod | Written:
    if kind == "Pod":
        row = snapshot.pods.rows.get(f"{namespace}/{name}")
        if row is None:
            raise InputError(
                f'no pod "{name}" in namespace "{namespace}"', hint=_nearest_pod(snapshot, name, namespace)
            )
        return snapshot.pods[row]
    manifest = snapshot.workloads.get((kind, namespace, name))
    if manifest is None:
        if kind in snapshot.source.missing:
            refuse(snapshot, kind, f'{kind} "{name}" in namespace "{namespace}"')
        known = [n for k, ns, n in snapshot.workloads if k == kind and ns == namespace]
        elsewhere = [ns for k, ns, n in snapshot.workloads if k == kind and n == name]
        hint = f"there is one in namespace {elsewhere[0]}: -n {elsewhere[0]}" if elsewhere else nearest(name, known)
        raise InputError(f'no {kind} "{name}" in namespace "{namespace}"', hint=hint)
    workload: Manifest = msgspec.json.decode(manifest)
    return Written(manifest=_pod_of(snapshot, workload))


def _nearest_pod(snapshot: Snapshot, name: str, namespace: str) -> str:
    """Another namespace that has a pod of this name, or the nearest name in this one."""
    pods = snapshot.pods
    elsewhere = next((pods.namespaces[row] for row, other in enumerate(pods.names) if other == name), None)
    if elsewhere is not None:
        return f"there is one in namespace {elsewhere}: -n {elsewhere}"
    here = [other for row, other in enumerate(pods.names) if pods.namespaces[row] == namespace]
    if not here and namespace not in snapshot.namespaces:
        return _nearest_namespace(snapshot, namespace)
    return nearest(name, here)


def _nearest_namespace(snapshot: Snapshot, namespace: str) -> str:
    known = {*snapshot.namespaces, *snapshot.pods.namespaces.values}
    close = nearest(namespace, known)
    return f'there is no namespace "{namespace}", {close}' if close else f'no pod is in namespace "{namespace}"'


def _by_bare_name(snapshot: Snapshot, target: str, namespace: str) -> Pod:
    """`web-0` or `shop/web-0`, as a shorthand for `pod/web-0`."""
    space, slash, name = target.partition("/")
    key = target if slash else f"{namespace}/{target}"
    row = snapshot.pods.rows.get(key)
    if row is not None:
        return snapshot.pods[row]
    hint = _nearest_pod(snapshot, name, space) if slash else _nearest_pod(snapshot, target, namespace)
    if slash and not hint and SHORT_NAMES.get(space.lower()) is None:
        hint = nearest(space.lower(), SHORT_NAMES) or hint
    raise InputError(f'no file "{target}", and no pod "{key}" in the snapshot', hint=hint)


def _from_file(snapshot: Snapshot, path: str, namespace: str | None, default_namespace: str) -> Written:
    from kschedx.sources.text import load_documents

    documents = load_documents(path)
    found = [(document, place) for document, place in documents if document.get("kind") in POD_KINDS]
    if not found:
        kinds = ", ".join(sorted({str(document.get("kind") or "nothing") for document, _ in documents})) or "nothing"
        raise InputError(f"holds no pod and nothing that makes one, but {kinds}", place=Place(source=path))
    if len(found) > 1:
        names = ", ".join(_reference(document) for document, _ in found[:3]) + (", …" if len(found) > 3 else "")
        raise InputError(
            f"holds {len(found)} pods and workloads",
            place=Place(source=path),
            hint=f"name one of {names} and give the file with --snapshot",
        )
    document, place = found[0]
    metadata = document.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError("expected an object", place=place).at(Place(field="metadata"))
    own = metadata.get("namespace")
    if namespace and own and own != namespace:
        raise InputError(
            f'the namespace "{own}" does not match the namespace of the request: "{namespace}"', place=place
        )
    if not own:
        metadata["namespace"] = namespace or default_namespace
    title = _title(document)
    try:
        manifest = _pod_of(snapshot, document)
    except InputError as error:
        raise error.at(Place(object=title)).at(place) from None
    return Written(manifest=manifest, title=title, place=place)


def _pod_of(snapshot: Snapshot, document: Manifest) -> Manifest:
    if document.get("kind") == "Pod":
        return document
    metadata = document.get("metadata")
    namespace = (metadata.get("namespace") if isinstance(metadata, dict) else None) or "default"
    replica_set = None
    if document.get("kind") == "Deployment":
        if snapshot.source.missing.get("ReplicaSet") is Missing.FORBIDDEN:
            refuse(snapshot, "ReplicaSet", f"which ReplicaSet makes the pods of {_title(document)}")
        replica_sets: list[Manifest] = [
            msgspec.json.decode(raw)
            for (kind, space, _), raw in snapshot.workloads.items()
            if kind == "ReplicaSet" and space == namespace
        ]
        replica_set = newest_replica_set(document, replica_sets)
    return pod_from_workload(document, replica_set=replica_set)


def _name(document: Mapping[str, object]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name") or metadata.get("generateName") or "") if isinstance(metadata, dict) else ""


def _reference(document: Mapping[str, object]) -> str:
    return f"{str(document.get('kind')).lower()}/{_name(document)}"


def _title(document: Mapping[str, object]) -> str:
    return f"{document.get('kind')} {_name(document)}"


def node_names(snapshot: Snapshot, wanted: Sequence[str]) -> tuple[str, ...]:
    """The nodes named with --node. Raises `InputError` for one that is not there."""
    for name in wanted:
        if name not in snapshot.cluster.index:
            raise InputError(f'no node "{name}" in the snapshot', hint=nearest(name, snapshot.cluster.index))
    return tuple(dict.fromkeys(wanted))

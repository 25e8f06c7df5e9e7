"""Requests to an extender, with whole pods and nodes as kube-scheduler stores them.

Objects are the manifests as read, with the API server's defaults, and without the fields that kube-scheduler's cache
drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import NODEFAULT, Struct

from kschedx.errors import UndecidableError
from kschedx.framework.extenders import Victims
from kschedx.kube.types import Node, Pod
from kschedx.snapshot.snapshot import StoredManifests

Json = dict[str, object]

_AS_ADMITTED = frozenset({"tolerations", "nodeSelector"})
"""Fields of a pod that scheduling reads as a whole: admission can change any part of them."""


class Objects:
    """A cluster's pods and nodes as JSON for requests."""

    def __init__(self, manifests: StoredManifests | None) -> None:
        self._manifests = manifests

    def incoming(self, pod: Pod) -> Json:
        manifest = self.pod(pod)
        spec, status = _part(manifest, "spec"), _part(manifest, "status")
        if not pod.spec.node_name:
            spec.pop("nodeName", None)
        status.setdefault("phase", "Pending")
        return manifest | {"spec": spec, "status": status}

    def pod(self, pod: Pod) -> Json:
        return _merged(_kept(self._known("Pod", pod.key)), _plain(pod))

    def node(self, node: Node) -> Json:
        known = self._known("Node", node.name)
        manifest = _kept(known) if known else _merged({}, _plain(node))
        status = _part(manifest, "status")
        if not status.get("allocatable") and node.status.allocatable:
            status["allocatable"] = dict(node.status.allocatable)
        return manifest | {"status": status}

    def _known(self, kind: str, name: str) -> Mapping[str, object]:
        if self._manifests is None:
            raise UndecidableError(
                f"{kind} {name}: the extenders of the configuration get whole objects, and this snapshot keeps only "
                "what scheduling reads (load it with whole=True)"
            )
        return self._manifests.get(kind, name) or {}  # a simulated object has only its typed record


def filter_request(pod: Json, names: Sequence[str], nodes: Sequence[Mapping[str, object]] | None) -> bytes:
    """Return ExtenderArgs for filter and prioritize; `nodes` is None for an extender that caches nodes."""
    whole = None if nodes is None else {"metadata": {}, "items": nodes}
    return msgspec.json.encode({"Pod": pod, "Nodes": whole, "NodeNames": list(names) if nodes is None else None})


def preempt_request(
    pod: Json, victims: Mapping[str, Victims], pods: Mapping[str, Json] | None, uids: Mapping[str, str]
) -> bytes:
    """Return ExtenderPreemptionArgs; `pods` is None for an extender that knows pods by UID."""

    def each(pods_of: object, violations: int) -> Json:
        return {"Pods": pods_of, "NumPDBViolations": violations}

    whole, meta = None, None
    if pods is None:
        meta = {n: each([{"UID": uids[key]} for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    else:
        whole = {n: each([pods[key] for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta})


def _kept(manifest: Mapping[str, object]) -> Json:
    """Return the manifest without its kind, which a typed client omits, and without managedFields, which its cache
    drops."""
    kept = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return kept


def _part(manifest: Json, field: str) -> Json:
    part = manifest.get(field)
    return dict(part) if isinstance(part, Mapping) else {}


def _plain(value: object) -> object:
    """Convert a typed record to JSON, without fields that have their defaults."""
    match value:
        case Struct():
            document: Json = {}
            for info in msgspec.structs.fields(value):
                held = getattr(value, info.name)
                if held != (info.default if info.default_factory is NODEFAULT else info.default_factory()):
                    document[info.encode_name] = _plain(held)
            return document
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


def _merged(written: Mapping[str, object], typed: object) -> Json:
    """Return the written fields, and those that only the typed record has."""
    merged = dict(written)
    for key, value in typed.items() if isinstance(typed, Mapping) else ():
        before = merged.get(key)
        if before is None or key in _AS_ADMITTED:
            merged[key] = value
        elif isinstance(before, Mapping):
            merged[key] = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = _side_by_side(before, value)
    return merged


def _side_by_side(written: list[object], typed: list[object]) -> list[object]:
    """Merge two lists of the same items in the same order; the typed one may have more at its end."""
    pairs = zip(written, typed, strict=False)
    both = [_merged(item, other) if isinstance(item, Mapping) else item for item, other in pairs]
    return [*both, *written[len(both) :], *typed[len(both) :]]

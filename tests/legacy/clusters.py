"""Decisions of schedulers with predicates and priorities, on small clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import kschedx
from tests.builders import Manifest

Document = dict[str, Any]


def policy(
    predicates: Iterable[str | Manifest] | None = None,
    priorities: Iterable[str | Manifest] | None = None,
    **settings: object,
) -> Manifest:
    """Return a Policy; a name alone means a predicate, or a priority with weight 1."""
    policy_document: Manifest = {"apiVersion": "v1", "kind": "Policy", **settings}
    if predicates is not None:
        policy_document["predicates"] = [
            {"name": predicate} if isinstance(predicate, str) else predicate for predicate in predicates
        ]
    if priorities is not None:
        policy_document["priorities"] = [
            {"name": predicate, "weight": 1} if isinstance(predicate, str) else predicate for predicate in priorities
        ]
    return policy_document


def decide(
    objects: Iterable[Mapping[str, object]],
    version: str = "1.13",
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
    key: str = "default/web",
) -> Document:
    """Return the document of the explanation of the pod `key`, which is among the objects."""
    snapshot = kschedx.Snapshot.from_objects(list(objects))
    document: Document = kschedx.explain(
        snapshot, key, config=config, kube_version=version, feature_gates=gates
    ).to_dict()
    return document


def rejections(
    objects: Iterable[Mapping[str, object]],
    predicate: str,
    version: str = "1.13",
    gates: Mapping[str, bool] | None = None,
    argument: Manifest | None = None,
) -> dict[str, list[str]]:
    """Return the reasons of one predicate for each node that it rejects."""
    predicate_entry: Manifest = {"name": predicate} | ({"argument": argument} if argument else {})
    document = decide(objects, version, policy([predicate_entry], []), gates)
    return {
        node: text["rejectedBy"][predicate]["reasons"]
        for node, text in document["filter"]["nodes"].items()
        if predicate in text["rejectedBy"]
    }


def scores(
    objects: Iterable[Mapping[str, object]],
    priority: str,
    version: str = "1.13",
    argument: Manifest | None = None,
    **settings: object,
) -> dict[str, int]:
    """Return the scores of one priority by node."""
    priority_entry: Manifest = {"name": priority, "weight": 1} | ({"argument": argument} if argument else {})
    document = decide(objects, version, policy([], [priority_entry], **settings))
    return {node: text["normalized"][priority] for node, text in document["score"]["nodes"].items()}


def claim(name: str, volume: str = "", storage_class: str = "", **annotations: str) -> Manifest:
    """Return a claim, bound if it has a volume."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": {**bound, **annotations}},
        "spec": {
            "volumeName": volume,
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name: str, labels: Mapping[str, str] | None = None, **spec: object) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec},
        "status": {"phase": "Available"},
    }


def claim_volumes(*claims: str) -> list[Manifest]:
    """Return the volumes of a pod with these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def late_binding_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }

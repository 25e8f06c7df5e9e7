"""Short ways to ask what a scheduler of predicates and priorities decides."""

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
    """A Policy; a name alone is a predicate, or a priority of weight 1."""
    written: Manifest = {"apiVersion": "v1", "kind": "Policy", **settings}
    if predicates is not None:
        written["predicates"] = [
            {"name": predicate} if isinstance(predicate, str) else predicate for predicate in predicates
        ]
    if priorities is not None:
        written["priorities"] = [
            {"name": predicate, "weight": 1} if isinstance(predicate, str) else predicate for predicate in priorities
        ]
    return written


def decide(
    objects: Iterable[Mapping[str, object]],
    version: str = "1.13",
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
    key: str = "default/web",
) -> Document:
    """The Explanation document of the pod `key`, which is among the objects."""
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
    """Node to the reasons of one predicate, for the nodes that it rejects."""
    written: Manifest = {"name": predicate} | ({"argument": argument} if argument else {})
    document = decide(objects, version, policy([written], []), gates)
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
    """Node to the score of one priority."""
    written: Manifest = {"name": priority, "weight": 1} | ({"argument": argument} if argument else {})
    document = decide(objects, version, policy([], [written], **settings))
    return {node: text["normalized"][priority] for node, text in document["score"]["nodes"].items()}


def claim(name: str, volume: str = "", storage_class: str = "", **annotations: str) -> Manifest:
    """A claim; bound where it names its volume."""
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


def uses(*claims: str) -> list[Manifest]:
    """A pod's volumes with these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def waiting_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }

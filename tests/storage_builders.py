"""Builders of volumes, claims, classes, and the objects of CSI drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.builders import Manifest, pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
DRIVER = "csi.example.com"
STORAGE_GROUP = "storage.k8s.io/v1"


def claim(
    name: str,
    *,
    size: str | None = "10Gi",
    storage_class: str | None = "waits",
    modes: Iterable[str] = ("ReadWriteOnce",),
    volume: str = "",
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, object] | None = None,
    phase: str | None = None,
    **spec: object,
) -> Manifest:
    """Return a claim in the namespace `default`, bound to `volume` if it is given."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    named: Manifest = {"volumeName": volume} if volume else {}
    if storage_class is not None:
        named["storageClassName"] = storage_class
    if size is not None:
        named["resources"] = {"requests": {"storage": size}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {**bound, **(annotations or {})},
            **(metadata or {}),
        },
        "spec": {"accessModes": list(modes), **named, **spec},
        "status": {"phase": phase or ("Bound" if volume else "Pending")},
    }


def in_term(key: str, *values: str) -> Manifest:
    """Return a node affinity of one expression."""
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume(
    name: str,
    *,
    size: str = "10Gi",
    storage_class: str = "waits",
    modes: Iterable[str] = ("ReadWriteOnce",),
    claim_ref: str = "",
    uid: str | None = None,
    node_affinity: Manifest | None = None,
    labels: Mapping[str, str] | None = None,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    csi: bool = False,
    **spec: object,
) -> Manifest:
    """Return a PersistentVolume; `claim_ref` is the name of its claim."""
    more: Manifest = {}
    if claim_ref:
        more["claimRef"] = {
            "namespace": "default",
            "name": claim_ref,
            "uid": f"uid-{claim_ref}" if uid is None else uid,
        }
    if node_affinity is not None:
        more["nodeAffinity"] = node_affinity
    if csi:
        more["csi"] = {"driver": DRIVER, "volumeHandle": name}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "storageClassName": storage_class,
            **more,
            **spec,
        },
        "status": {"phase": phase or ("Bound" if claim_ref else "Available")},
    }


def storage_class(
    name: str = "waits",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    waits: bool = True,
    zones: Iterable[str] = (),
    metadata: Mapping[str, object] | None = None,
) -> Manifest:
    """Return a StorageClass; `zones` are its allowedTopologies."""
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return {
        "apiVersion": STORAGE_GROUP,
        "kind": "StorageClass",
        "metadata": {"name": name, **(metadata or {})},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **({"allowedTopologies": allowed} if zones else {}),
    }


def csi_node(name: str, *, limit: int | None = None, driver: str = DRIVER, migrated: str = "") -> Manifest:
    allocatable = {} if limit is None else {"allocatable": {"count": limit}}
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {
        "apiVersion": STORAGE_GROUP,
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"drivers": [{"name": driver, "nodeID": name, **allocatable}]},
    }


def csi_driver(name: str = DRIVER, **spec: object) -> Manifest:
    return {"apiVersion": STORAGE_GROUP, "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(
    name: str,
    size: str | None,
    *,
    zone: str | None = None,
    storage_class: str = "waits",
    topology: Manifest | None = None,
    **more: object,
) -> Manifest:
    """Return the CSIStorageCapacity of a zone, or of all nodes."""
    labels = {"matchLabels": {ZONE: zone}} if zone is not None else {}
    return {
        "apiVersion": STORAGE_GROUP,
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": storage_class,
        "nodeTopology": labels if topology is None else topology,
        **({} if size is None else {"capacity": size}),
        **more,
    }


def attachment(name: str, volume: str, node: str, *, attacher: str = DRIVER) -> Manifest:
    return {
        "apiVersion": STORAGE_GROUP,
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}},
    }


def using(
    name: str,
    *claims: str,
    on: str | None = None,
    volumes: Iterable[Manifest] = (),
    metadata: Mapping[str, object] | None = None,
    status: Mapping[str, object] | None = None,
    **spec: object,
) -> Manifest:
    """Return a pod that uses claims, and other volumes by their fields."""
    named: list[Manifest] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": item}} for number, item in enumerate(claims)
    ]
    inline = [{"name": f"i{number}", **item} for number, item in enumerate(volumes)]
    return pod(name, on=on, metadata=metadata, status=status, spec={"volumes": named + inline, **spec})

"""Templates of groups that Cluster API tells: annotations with what a machine has to offer.

Upstream: TemplateNodeInfo in cloudprovider/clusterapi/clusterapi_nodegroup.go, InstanceCapacity, Labels and Taints in
clusterapi_unstructured.go. What a machine template's own status says is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.api import cluster_api as capi
from kschedx.api.types import Taint
from kschedx.snapshot.snapshot import Snapshot

MOST_PODS = "110"
_MANAGED = ("node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""Domains of the labels that machines pass on to their nodes."""

Manifest = dict[str, object]


def machine_templates(snapshot: Snapshot) -> dict[str, Manifest]:
    """Group to `{"Node": manifest, "Pods": [manifest]}`, of those that say how much cpu and memory there is."""
    found: dict[str, Manifest] = {}
    for kind, records in capi.RECORDS.items():
        for record in records:
            for one in snapshot.of(record):
                capacity = _capacity(one.metadata.annotations)
                if {"cpu", "memory"} <= capacity.keys():
                    group = f"{kind}/{one.metadata.namespace}/{one.metadata.name}"
                    found[group] = {"Node": _node(one, capacity), "Pods": [_kube_proxy(one.metadata.name)]}
    return found


def _capacity(written: Mapping[str, str]) -> dict[str, str]:
    named = {"cpu": capi.CPU, "memory": capi.MEMORY, "ephemeral-storage": capi.DISK}
    found = {resource: written[key] for resource, key in named.items() if written.get(key)}
    if written.get(capi.GPU_TYPE) and written.get(capi.GPU_COUNT, "0") != "0":
        found[written[capi.GPU_TYPE]] = written[capi.GPU_COUNT]
    most = written.get(capi.MAX_PODS, "")
    found["pods"] = MOST_PODS if most in ("", "0") else most
    return found


def _node(one: capi.Scalable, capacity: Mapping[str, str]) -> Manifest:
    name = f"{one.metadata.name}-asg"
    generic = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
    passed_on = {key: value for key, value in one.spec.template.spec.metadata.labels.items() if _is_managed(key)}
    told = dict(_pairs(one.metadata.annotations.get(capi.LABELS, "")))
    return {
        "metadata": {"name": name, "labels": {**generic, **passed_on, **told}},
        "spec": {"taints": [_manifest(taint) for taint in _taints(one)]},
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _is_managed(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _MANAGED)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            yield key, value


def _taints(one: capi.Scalable) -> tuple[Taint, ...]:
    """Those of the spec, and over them those of the annotation, by key and effect."""
    found = {(taint.key, taint.effect): taint for taint in one.spec.template.spec.taints}
    for text in filter(None, one.metadata.annotations.get(capi.TAINTS, "").split(",")):
        named, _, effect = text.partition(":")
        key, _, value = named.partition("=")
        found[key, effect] = Taint(key=key, value=value, effect=effect)
    return tuple(found.values())


def _manifest(taint: Taint) -> Manifest:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def _kube_proxy(group: str) -> Manifest:
    """The autoscaler takes one for granted on every new node; it asks for nothing."""
    return {
        "metadata": {"name": f"kube-proxy-{group}", "namespace": "kube-system", "labels": {"component": "kube-proxy"}},
        "spec": {"containers": [{"name": "kube-proxy", "image": "kube-proxy"}]},
    }

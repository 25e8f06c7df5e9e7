"""Builders of clusters, and functions that evaluate pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kschedx.explain.setup import Setup, stored_subject
from kschedx.framework.config import load_profiles
from kschedx.framework.cycle import Cycle
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import schedule
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.pod import explain
from kschedx.inquiry.target import new_pod
from kschedx.kube.types import Pod
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot

Manifest = dict[str, object]


def at(manifest: Mapping[str, object], path: str) -> Any:
    """Return the value of a manifest at `spec.containers`; nested maps of a manifest have no types."""
    result: Any = manifest
    for name in path.split("."):
        result = result[name]
    return result


def taint(text: str) -> Manifest:
    """Return the taint `key=value:effect` or `key:effect`, as kubectl writes it."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    allocatable: Mapping[str, str] | None = None,
    **spec: object,
) -> Manifest:
    """Return a node, with much room unless `allocatable` is given."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": [taint(text) for text in taints], **spec},
        "status": {"allocatable": dict(allocatable or {"cpu": "64", "memory": "256Gi", "pods": "110"})},
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    on: str | None = None,
    metadata: Mapping[str, object] | None = None,
    status: Mapping[str, object] | None = None,
    spec: Mapping[str, object] | None = None,
    **more_spec: object,
) -> Manifest:
    """Return a pod, pending unless it runs `on` a node; other keywords are fields of its spec."""
    placed: Manifest = {"nodeName": on} if on is not None else {}
    # a manifest has no uid; claims and Workloads refer to their pods by it
    is_stored = "creationTimestamp" in (metadata or {}) or {"resourceClaims", "schedulingGates"} & {
        *(spec or {}),
        *more_spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            **({"uid": f"{namespace}/{name}"} if is_stored else {}),
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": {"containers": [{"name": "main"}], **placed, **(spec or {}), **more_spec},
        "status": dict(status or {}),
    }


def config_map(name: str, data: Mapping[str, str], *, namespace: str = "default") -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def autoscaler_status(text: str) -> Manifest:
    """Return the ConfigMap in which cluster-autoscaler writes its status."""
    return config_map("cluster-autoscaler-status", {"status": text}, namespace="kube-system")


def reported(component: str, reason: str, message: str, *, pod: str, **more: object) -> Manifest:
    """Return a component's event about a pod, `namespace/name`; other keywords are fields of the event."""
    namespace, _, name = pod.partition("/")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": namespace},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": name},
        "reason": reason,
        "message": message,
        "source": {"component": component},
        **more,
    }


def disruption_budget(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, object] | None = None,
    **spec: object,
) -> Manifest:
    """Return a PodDisruptionBudget for the pods with `labels`, or for all pods of its namespace."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": dict(labels or {})}, **spec},
        "status": dict(status or {}),
    }


def only(plugin: str, args: Mapping[str, object] | None = None) -> Manifest:
    """Return a configuration with a single plugin."""
    enabled = [{"name": name} for name in ("PrioritySort", plugin, "DefaultBinder")]
    profile: Manifest = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": dict(args)}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def framework(
    objects: Iterable[Mapping[str, object]],
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
    scheduler_name: str = "default-scheduler",
) -> Framework:
    """Return the framework of a cluster, to call single plugins."""
    release = resolve(feature_gates=gates)
    loaded = load_profiles(config, release)
    return Framework(loaded.profile_for(scheduler_name), loaded, Snapshot.from_objects(list(objects)), release)


def evaluate(
    objects: Iterable[Mapping[str, object]],
    pod_key: str,
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Cycle:
    """Run the scheduling cycle of the pod `namespace/name`, which is among the objects."""
    objects = list(objects)
    pods = Snapshot.from_objects(objects).pods
    chosen = pods[pods.rows[pod_key]]
    return schedule(framework(objects, config, gates, chosen.spec.scheduler_name), chosen)


def explain_pod(snapshot: Snapshot, pod: str | Mapping[str, object] | Pod, **setup: Any) -> Explanation:
    """Explain a pod with the options of `Setup.of_cluster`."""
    its_setup = Setup.of_cluster(snapshot, **setup)
    subject = stored_subject(snapshot, pod) if isinstance(pod, Pod) else new_pod(snapshot, pod, its_setup).subject
    return explain(subject, its_setup)

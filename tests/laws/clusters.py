"""Small random clusters on which every plugin for nodes and pods can reject or score a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.builders import Manifest, node, pod

TARGET = "default/target"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

_apps = st.sampled_from(["web", "db"])
_zones = st.sampled_from(["a", "b", "c"])
_taints = st.sampled_from(
    [
        "dedicated=gpu:NoSchedule",
        "dedicated=db:NoExecute",
        "spot:PreferNoSchedule",
        "old:NoSchedule",
        "node.kubernetes.io/not-ready:NoSchedule",
        "node-role.kubernetes.io/control-plane:NoSchedule",
    ]
)
_cpus = st.sampled_from(["0", "250m", "500m", "1", "1500m", "2"])
_memory = st.sampled_from(["0", "100Mi", "1Gi", "2Gi"])


@dataclass(frozen=True)
class Cluster:
    """Manifests; the pod to explain, `default/target`, is one of them."""

    nodes: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    target: Manifest

    @property
    def objects(self) -> list[Manifest]:
        return [*self.nodes, *self.pods, self.target]


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Manifest:
    labels = {HOSTNAME: name}
    if (zone := draw(st.one_of(st.none(), _zones, _zones, _zones))) is not None:
        labels[ZONE] = zone
    if (disk := draw(st.sampled_from([None, "ssd", "nvme"]))) is not None:
        labels["disk"] = disk
    allocatable = {"cpu": draw(st.sampled_from(["1", "2", "4"])), "memory": draw(st.sampled_from(["1Gi", "4Gi"]))}
    allocatable["pods"] = draw(st.sampled_from(["1", "3", "110"]))
    taints = draw(st.lists(_taints, max_size=2, unique=True))
    return node(name, labels=labels, taints=taints, allocatable=allocatable, unschedulable=draw(st.integers(0, 7)) == 0)


@st.composite
def _containers(draw: st.DrawFn) -> list[Manifest]:
    container: Manifest = {
        "name": "main",
        "image": draw(st.sampled_from(["app:v1", "app:v2"])),
        "resources": {"requests": {"cpu": draw(_cpus), "memory": draw(_memory)}},
    }
    if (port := draw(st.sampled_from([None, None, None, 80, 443]))) is not None:
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    return [container]


@st.composite
def _selectors(draw: st.DrawFn) -> Manifest:
    return {"matchLabels": {"app": draw(_apps)}}


@st.composite
def _pod_terms(draw: st.DrawFn) -> Manifest:
    return {"labelSelector": draw(_selectors()), "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME]))}


@st.composite
def _pod_affinity(draw: st.DrawFn) -> Manifest:
    affinity: Manifest = {}
    if draw(st.booleans()):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [draw(_pod_terms())]
    if draw(st.booleans()):
        weighted = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": draw(_pod_terms())}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
    return affinity


@st.composite
def _node_affinity(draw: st.DrawFn) -> Manifest:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(st.sampled_from(["ssd", "nvme"]), min_size=1, unique=True))
    expression: Manifest = {"key": "disk", "operator": operator}
    expression |= {"values": values} if operator in ("In", "NotIn") else {}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    }


@st.composite
def _specs(draw: st.DrawFn, chances: int) -> dict[str, Any]:
    """Return fields of a spec; each rule occurs with a probability of 1 in `chances`."""

    def rare() -> bool:
        return draw(st.integers(1, chances)) == 1

    spec: dict[str, Any] = {"containers": draw(_containers()), "priority": draw(st.sampled_from([0, 0, 10, 100]))}
    affinity: Manifest = {}
    if rare():
        affinity["podAffinity"] = draw(_pod_affinity())
    if rare():
        affinity["podAntiAffinity"] = draw(_pod_affinity())
    if rare():
        affinity["nodeAffinity"] = draw(_node_affinity())
    if affinity:
        spec["affinity"] = affinity
    if rare():
        spec["nodeSelector"] = {ZONE: draw(_zones)}
    if rare():
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rare():
        constraint: Manifest = {
            "maxSkew": draw(st.integers(1, 2)),
            "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME])),
            "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
            "labelSelector": draw(_selectors()),
        }
        spec["topologySpreadConstraints"] = [constraint]
    return spec


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Return up to five nodes with up to eight pods, no two of which have the same host port on one node."""
    names = [f"node-{number}" for number in range(draw(st.integers(1, 5)))]
    running: list[Manifest] = []
    for number in range(draw(st.integers(0, 8))):
        node_name, spec = draw(st.sampled_from(names)), draw(_specs(chances=6))
        result = pod(f"pod-{number}", labels={"app": draw(_apps)}, on=node_name, spec=spec)
        if not any(node_of(other) == node_name and ports_of(other) & ports_of(result) for other in running):
            running.append(result)
    target = pod("target", labels={"app": draw(_apps)}, spec=draw(_specs(chances=2)))
    return Cluster(tuple(draw(_nodes(name)) for name in names), tuple(running), target)


def node_of(manifest: Manifest) -> str:
    """Return the node that a pod of these clusters runs on."""
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    return str(spec["nodeName"])


def ports_of(manifest: Manifest) -> frozenset[int]:
    """Return the host ports of a pod of these clusters."""
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    return frozenset(port["hostPort"] for container in spec["containers"] for port in container.get("ports", ()))

"""Labels of nodes that agents set: the kubelet, node-feature-discovery, a vendor's agent, and KubeVirt's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from kschedx.explain.hardware import INSTANCE_TYPES, VENDOR_LABELS
from kschedx.grouping import group_pairs
from kschedx.kube.names import ARCH_LABELS, INSTANCE_TYPE_LABELS, first_label
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.nodes import ClusterNodes


class LostLabel(Struct, frozen=True):
    """A label that a node lacks and that an agent on it sets."""

    value: str
    agent: str = ""  # the name of the agent; empty for the kubelet
    pods: tuple[str, ...] = ()  # parts of the names of the agent's pods
    where: str = "on nodes of its instance type"  # on which nodes, or when, the agent sets it
    setting: str = ""  # the setting of the node's kubelet after which the agent sets it


_LABELS_OF_KUBELET = ("kubernetes.io/os", ARCH_LABELS[0])
_VIRT_HANDLER = "virt-handler"
_LABELS_OF_KUBEVIRT: Mapping[str, LostLabel] = {
    "kubevirt.io/schedulable": LostLabel("true", _VIRT_HANDLER, (_VIRT_HANDLER,), where="while it runs on a node"),
    "cpumanager": LostLabel(
        "true",
        _VIRT_HANDLER,
        where="on nodes whose kubelet assigns whole CPUs",
        setting="cpuManagerPolicy: static",
    ),
}
"""Labels to the value that KubeVirt's virtual machines select; virt-handler sets another one on nodes without it."""
_NFD = "node-feature-discovery", ("node-feature-discovery", "nfd-worker")
_GFD = "gpu-feature-discovery", ("gpu-feature-discovery", *_NFD[1])
_LABELED_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "nvidia.com/gpu.present": ("", ()),
    "nvidia.com/gpu.deploy.": ("", ()),
    "nvidia.com/gpu.workload.": ("", ()),
    "nvidia.com/gpu.": _GFD,
    "nvidia.com/cuda.": _GFD,
    "nvidia.com/mig.capable": _GFD,
    "amd.com/gpu.": ("AMD's node labeller", ("node-labeller",)),
    "gpu.intel.com/": _NFD,
    "intel.feature.node.kubernetes.io/": _NFD,
    "feature.node.kubernetes.io/": _NFD,
}
"""Prefixes of labels to the agent that sets them on each node with the hardware, and to parts of its pods' names. The
first one counts; without a name, no agent on the node sets the label."""


@cache
def _labeler(key: str) -> tuple[str, tuple[str, ...]]:
    """Return the agent that sets a label of hardware, and parts of its pods' names."""
    return next((by for prefix, by in _LABELED_BY.items() if key.startswith(prefix)), ("", ()))


_LOST = Memo[Mapping[str, LostLabel]]()


def lost_labels(cluster: ClusterNodes, key: str) -> Mapping[str, LostLabel]:
    """Return the nodes that lack a label which an agent sets on them, computed once for a cluster."""
    lost = _lost_of_hardware
    if key in _LABELS_OF_KUBELET:
        lost = _lost_of_kubelet
    elif key in _LABELS_OF_KUBEVIRT:
        lost = _lost_of_kubevirt
    return _LOST.of(cluster.derived, lambda: dict(lost(cluster, key)), key)


def _lost_of_kubelet(cluster: ClusterNodes, key: str) -> Iterator[tuple[str, LostLabel]]:
    """Yield the nodes without a label that the kubelet sets when it starts (updateDefaultLabels in
    pkg/kubelet/kubelet_node_status.go)."""
    for node in cluster.nodes:
        info = node.status.node_info
        value = info.architecture if key == ARCH_LABELS[0] else info.operating_system or "linux"
        if value and key not in node.metadata.labels:
            yield node.name, LostLabel(value)


def _lost_of_kubevirt(cluster: ClusterNodes, key: str) -> Iterator[tuple[str, LostLabel]]:
    """Yield the nodes on which KubeVirt's agent has set a label to `false`."""
    labels = ((node.name, node.metadata.labels) for node in cluster.nodes)
    return ((name, _LABELS_OF_KUBEVIRT[key]) for name, its in labels if its.get(key) == "false")


def _lost_of_hardware(cluster: ClusterNodes, key: str) -> Iterator[tuple[str, LostLabel]]:
    """Yield the nodes without a label of hardware that has one value on the other nodes of the same instance type. A
    node with other labels of the agent lacks only the feature, such as a setting."""
    agent, pods = _labeler(key)
    if not agent:
        return
    by_type = group_pairs((first_label(node.metadata.labels, INSTANCE_TYPE_LABELS), node) for node in cluster.nodes)
    for name, nodes in by_type.items():
        known = {value for node in nodes if (value := node.metadata.labels.get(key)) is not None}
        if name and len(known) == 1:
            label = LostLabel(known.pop(), agent, pods)
            unlabeled = (node for node in nodes if all(_labeler(its)[0] != agent for its in node.metadata.labels))
            yield from ((node.name, label) for node in unlabeled)


def lacks_feature_labels(cluster: ClusterNodes, key: str) -> bool:
    """Whether node-feature-discovery, which labels all nodes on which it runs, sets a label and has labeled none."""
    return _labeler(key) == _NFD and all(_labeler(its) != _NFD for its in cluster.label_keys)


def is_of_kubevirt(key: str) -> bool:
    """Whether KubeVirt's agent sets a label, and its controller lets the pods of virtual machines select it."""
    return key in _LABELS_OF_KUBEVIRT or key.partition("/")[0].endswith("kubevirt.io")


def unlabeled_hardware(cluster: ClusterNodes, key: str) -> list[str]:
    """Return the nodes whose instance type has the hardware of a label that agents set, if no node has the label."""
    vendor = next((domain for domain, prefixes in VENDOR_LABELS.items() if key.startswith(prefixes)), "")
    is_set = key.startswith((*_LABELED_BY,)) and key not in cluster.label_keys
    types = INSTANCE_TYPES.get(vendor) if is_set else None
    by_type = ((node.name, first_label(node.metadata.labels, INSTANCE_TYPE_LABELS)) for node in cluster.nodes)
    return [] if types is None else [name for name, kind in by_type if types.fullmatch(kind)]

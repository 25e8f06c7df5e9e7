"""What each kind is needed for: which plugins ask for it, and what is unknown without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kschedx.doctor.findings import Weakness
from kschedx.explain.missing import RULES

_STORAGE = ("VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions")

PLUGINS: Mapping[str, tuple[str, ...]] = {
    "PersistentVolumeClaim": _STORAGE,
    "PersistentVolume": _STORAGE[:3],
    "StorageClass": ("VolumeBinding",),
    "CSIStorageCapacity": ("VolumeBinding",),
    "CSINode": ("NodeVolumeLimits",),
    "CSIDriver": ("VolumeBinding", "NodeVolumeLimits"),
    "VolumeAttachment": ("NodeVolumeLimits",),
    "Namespace": ("InterPodAffinity",),
    "Service": ("PodTopologySpread",),
    "ReplicationController": ("PodTopologySpread",),
    "ReplicaSet": ("PodTopologySpread",),
    "StatefulSet": ("PodTopologySpread",),
    "PodDisruptionBudget": ("DefaultPreemption",),
    "PodGroup": ("GangScheduling",),
    "DeviceClass": ("DynamicResources",),
    "ResourceClaim": ("DynamicResources",),
    "ResourceSlice": ("DynamicResources",),
    "DeviceTaintRule": ("DynamicResources",),
}
"""The plugins that read a kind, those first whose verdict depends on it most."""

_OTHERS: Mapping[str, str] = {
    "Node": "where a pod could go",
    "Pod": "what the nodes have left",
    "PriorityClass": "the priority of a manifest that names a class, or none",
    "LimitRange": "what a manifest's containers ask for that do not say so",
    "RuntimeClass": "what a manifest's runtime class adds to its pods",
}
"""What every answer reads, and what is read only to admit a manifest."""

UNKNOWN_PODS = (
    Weakness(plugins=("NodeResourcesFit", "NodePorts"), effect="optimistic: unknown pods hold nothing"),
    Weakness(plugins=("InterPodAffinity", "PodTopologySpread"), effect="unknown pods do not count"),
    Weakness(plugins=("DefaultPreemption",), effect="unknown pods are no victims"),
)
"""What is weaker where pods are missing."""


def leaves(kind: str) -> str:
    """What is unknown without a kind; empty for one that no answer depends on."""
    rule = RULES.get(kind)
    return rule.leaves if rule else _OTHERS.get(kind, "")


def weakness(kind: str) -> tuple[Weakness, ...]:
    """Of what depends on a kind that is missing."""
    if kind == "Pod":
        return UNKNOWN_PODS
    return (Weakness(plugins=PLUGINS.get(kind, ()), effect=f"unknown: {leaves(kind)}"),)


def weakness_without(kinds: Iterable[str]) -> tuple[Weakness, ...]:
    """Of what depends on several kinds of which not everything is there: a line for the plugins that need the same."""
    found: list[Weakness] = []
    needing: dict[tuple[str, ...], list[str]] = {}
    for kind in dict.fromkeys(kinds):
        if kind == "Pod":
            found += UNKNOWN_PODS
        else:
            needing.setdefault(PLUGINS.get(kind, ()), []).append(kind)
    for plugins, needed in sorted(needing.items(), key=lambda item: not item[0]):
        without = f"without {', '.join(needed)}"
        found.append(
            Weakness(plugins=plugins, effect=without if plugins else f"what admission makes of manifests, {without}")
        )
    return tuple(found)

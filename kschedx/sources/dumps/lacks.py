"""What is weakened where a dump lacks objects of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kschedx.sources.dumps import Lack, every

_DEFAULT_SPREADING = "pods without constraints of their own may be spread differently: their scores cannot be relied on"
_VOLUMES = "verdicts on pods with volume claims cannot be relied on"
_VOLUME_LIMITS = "how many more volumes a node takes is not known: its verdict is optimistic"
_BEFORE_ADMISSION = "what admission makes of a manifest is not known; stored pods have been through it"
_DEVICES = "verdicts on pods with device claims cannot be relied on"

_WEAKENS: Mapping[str, str] = {
    "Pod": "every verdict on resources, ports, spreading and pod affinity is optimistic: nodes look too empty",
    "Node": "nodes that are missing cannot be chosen",
    "Namespace": "namespace selectors in pod affinity match no namespace that is missing",
    "Service": _DEFAULT_SPREADING,
    "ReplicationController": _DEFAULT_SPREADING,
    "ReplicaSet": _DEFAULT_SPREADING,
    "StatefulSet": _DEFAULT_SPREADING,
    "PersistentVolume": _VOLUMES,
    "PersistentVolumeClaim": _VOLUMES,
    "StorageClass": _VOLUMES,
    "CSIDriver": _VOLUMES,
    "CSIStorageCapacity": "whether storage has room for a new volume is not known: its verdict is optimistic",
    "CSINode": _VOLUME_LIMITS,
    "VolumeAttachment": _VOLUME_LIMITS,
    "PodDisruptionBudget": "preemption takes pods that a budget protects as if they were not",
    "PriorityClass": "a manifest's priorityClassName cannot be resolved; stored pods carry their priority",
    "LimitRange": _BEFORE_ADMISSION,
    "RuntimeClass": _BEFORE_ADMISSION,
    "ResourceSlice": _DEVICES,
    "ResourceClaim": _DEVICES,
    "DeviceClass": _DEVICES,
}


def lack(kind: str, what: str = "") -> Lack:
    """`what` is missing; without it, everything of the kind is."""
    return Lack(kind=kind, what=what or every(kind), weakens=_WEAKENS[kind])


def is_read(kind: str) -> bool:
    """Answers depend on objects of the kind."""
    return kind in _WEAKENS


def all_but(kinds: Iterable[str]) -> tuple[Lack, ...]:
    """The kinds that scheduling reads and a dump does not hold at all."""
    held = frozenset(kinds)
    return tuple(lack(kind) for kind in _WEAKENS if kind not in held)

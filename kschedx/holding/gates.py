"""Whose a scheduling gate is, by its prefix, and what of theirs to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.api import kueue
from kschedx.api.types import Pod
from kschedx.holding.model import Gate

OWNERS: Mapping[str, tuple[str, str]] = {
    "kueue.x-k8s.io/": ("Kueue", "kubectl describe workloads.kueue.x-k8s.io"),
    "scheduling.volcano.sh/": ("Volcano", "kubectl describe podgroups.scheduling.volcano.sh"),
    "karpenter.sh/": ("Karpenter", "kubectl describe nodeclaims.karpenter.sh"),
    "jobset.x-k8s.io/": ("JobSet", "kubectl describe jobsets.jobset.x-k8s.io"),
    "gke.io/": ("Google Kubernetes Engine", "the events of the pod"),
    "cloud.google.com/": ("Google Kubernetes Engine", "the events of the pod"),
    "multiarch.openshift.io/": ("the Multiarch Tuning Operator", "kubectl describe clusterpodplacementconfigs"),
}
"""Prefix to who sets such gates, and what tells why."""


def gates_of_others(pod: Pod) -> Iterator[Gate]:
    """The pod's gates; Kueue's own two are told with its Workload."""
    for gate in pod.spec.scheduling_gates:
        if gate.name in (kueue.ADMISSION_GATE, kueue.TOPOLOGY_GATE):
            continue
        owner, look_at = next((told for prefix, told in OWNERS.items() if gate.name.startswith(prefix)), ("", ""))
        yield Gate(name=gate.name, owner=owner, look_at=look_at)

"""The pods of DaemonSets that a node will have: what they leave of it for others.

Upstream: getDaemonSetPods in provisioner.go, isDaemonPodCompatible and getDaemonOverhead in scheduler.go. A DaemonSet
whose first required terms meet no pool loses them for every later look, as upstream's shared pods do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.decode import decode
from kschedx.api.selectors import NodeSelector
from kschedx.api.types import Labels, ObjectMeta, Pod, PodTemplateSpec, Taint
from kschedx.karpenter.labels import NORMALIZED
from kschedx.karpenter.nodes import is_of_daemon_set
from kschedx.karpenter.pod_data import asks_for_devices
from kschedx.karpenter.preferences import (
    requirements_of,
    tolerating_preferred_taints,
    with_required_terms,
    without_first_required_term,
)
from kschedx.karpenter.requirements import Requirements
from kschedx.karpenter.tolerations import tolerates_all
from kschedx.snapshot.snapshot import Snapshot


class DaemonSets:
    """The pods that stand for the cluster's DaemonSets."""

    def __init__(self, pods: Sequence[Pod], *, leaves_out_devices: bool = True) -> None:
        self._pods = [pod for pod in pods if not (leaves_out_devices and asks_for_devices(pod))]
        self._seen: dict[tuple[object, ...], bool] = {}

    def for_pool(self, taints: Sequence[Taint], requirements: Requirements, allowed: frozenset[str]) -> tuple[Pod, ...]:
        """Those that run on new nodes of a pool."""
        return tuple(
            self._pods[index]
            for index in range(len(self._pods))
            if self._runs_in_pool(index, taints, requirements, allowed)
        )

    def _runs_in_pool(
        self, index: int, taints: Sequence[Taint], requirements: Requirements, allowed: frozenset[str]
    ) -> bool:
        self._pods[index] = tolerating_preferred_taints(self._pods[index]) or self._pods[index]
        if not tolerates_all(self._pods[index].spec.tolerations, taints):
            return False
        while True:
            if requirements.is_compatible(requirements_of(self._pods[index], prefers=False), allowed):
                return True
            fewer = without_first_required_term(self._pods[index])
            if fewer is None:
                return False
            self._pods[index] = fewer

    def for_node(self, taints: Sequence[Taint], labels: Labels) -> tuple[Pod, ...]:
        """Those that run on a node; asked after all pools."""
        return tuple(pod for index, pod in enumerate(self._pods) if self._runs_on(index, pod, taints, labels))

    def _runs_on(self, index: int, pod: Pod, taints: Sequence[Taint], labels: Labels) -> bool:
        """Nodes that are equal in what the pod asks for get one answer."""
        strict = requirements_of(pod, prefers=False)
        key = (index, tuple(taints), tuple((name, labels.get(name)) for name in strict))
        if key not in self._seen:
            named = {name: labels[name] for name in strict if name in labels}
            own = Requirements.of_labels({**named, **{name: labels[name] for name in labels if name in NORMALIZED}})
            self._seen[key] = tolerates_all(pod.spec.tolerations, taints) and own.is_compatible(strict)
        return self._seen[key]


class _Template(Struct, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class _DaemonSet(Struct, frozen=True, kw_only=True):
    spec: _Template = _Template()


def daemon_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """For each DaemonSet its newest pod, or what its template makes; the template says which nodes it wants."""
    newest = _newest_pods(snapshot)
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind == "DaemonSet":
            template = decode(raw, _DaemonSet).spec.template
            made = Pod(metadata=ObjectMeta(namespace=namespace, labels=template.metadata.labels), spec=template.spec)
            pod = newest.get((namespace, name), made)
            yield pod if (terms := _required(made)) is None else with_required_terms(pod, terms)


def _newest_pods(snapshot: Snapshot) -> dict[tuple[str, str], Pod]:
    """By namespace and name of the DaemonSet."""
    pods = snapshot.pods
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for row in np.flatnonzero(pods.owners.where(is_of_daemon_set)).tolist():
        owner = next((one for one in pods.owners[row] if one.controller), None)
        if owner is None:
            continue
        key, time = (pods.namespaces[row], owner.name), pods.creation_timestamps[row] or ""
        if key not in found or time > found[key][0]:
            found[key] = time, row
    return {key: pods[row] for key, (_, row) in found.items()}


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None

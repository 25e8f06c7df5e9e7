"""The DaemonSets whose pods run on a new node before any other pod, and their requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct, json
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod
from kschedx.errors import InputError
from kschedx.kube.decoding import decode
from kschedx.kube.quantity import Unit, format_quantity, resource_amount
from kschedx.kube.resources import RequestOptions, pod_request
from kschedx.kube.types import Node, OwnerReference, Pod, PodSpec
from kschedx.kube.workloads import pod_from_workload, runs_on, without_node_names
from kschedx.snapshot.snapshot import Snapshot


class DaemonPod(Struct, frozen=True, kw_only=True):
    """A DaemonSet's pod for any node."""

    pod: Pod
    amounts: Mapping[str, int]

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec


def daemon_pods(snapshot: Snapshot, options: RequestOptions, *, but: Pod | None = None) -> tuple[DaemonPod, ...]:
    """Return one pod of each DaemonSet except that of the pod `but`: a running one, or one from the template."""
    pods = pods_of_daemon_sets(snapshot)
    own = _daemon_set(but.metadata.owner_references) if but is not None else None
    if but is not None and own is not None:
        pods.pop((but.metadata.namespace, own.name), None)
    return tuple(
        DaemonPod(pod=pod, amounts=pod_request(pod.spec, pod.status, options).amounts) for pod in pods.values()
    )


def pods_of_daemon_sets(snapshot: Snapshot) -> dict[tuple[str, str], Pod]:
    """Return a pod of each DaemonSet, by namespace and name."""
    templates = {
        (namespace, name): template
        for (kind, namespace, name), raw in snapshot.workloads.items()
        if kind == "DaemonSet" and (template := _template_pod(raw)) is not None
    }
    return templates | {key: _with_rules(pod, templates.get(key)) for key, pod in _running_pods(snapshot)}


def overhead(daemons: Iterable[DaemonPod], node: Node, *, comparison: bool) -> Mapping[str, int]:
    """Return the requests of the DaemonSets' pods on the node by resource, with their number under "pods"."""
    total: Counter[str] = Counter()
    for daemon in daemons:
        if runs_on(daemon.spec, node, comparison=comparison):
            total.update({**daemon.amounts, "pods": 1})
    return total


def with_less_allocatable(node: Node, amounts: Mapping[str, int]) -> Node:
    """Return the node with reduced allocatable."""
    left = dict(node.status.allocatable)
    for resource, taken in amounts.items():
        unit = Unit.of(resource)
        left[resource] = format_quantity(max(resource_amount(resource, left.get(resource)) - taken, 0), unit)
    return replace(node, status=replace(node.status, allocatable=left)) if amounts else node


def _running_pods(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], Pod]]:
    pods = snapshot.pods
    for code, owners in enumerate(pods.owners.values):
        owner = _daemon_set(owners)
        rows = np.flatnonzero(pods.owners.codes == code) if owner is not None else ()
        placed = next((int(row) for row in rows if pods.node_names[int(row)]), None)
        if owner is not None and placed is not None:
            pod = without_node_names(pods[placed])
            yield (pods.namespaces[placed], owner.name), replace(pod, spec=replace(pod.spec, node_name=""))


def _with_rules(pod: Pod, template: Pod | None) -> Pod:
    """Restore the template's node affinity, which the controller replaced with the node's name in the pod."""
    if template is None:
        return pod
    rules, own = template.spec.affinity, pod.spec.affinity
    node_affinity = rules.node_affinity if rules is not None else None
    if node_affinity is None:
        return pod
    affinity = rules if own is None else replace(own, node_affinity=node_affinity)
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def _daemon_set(owners: Iterable[OwnerReference]) -> OwnerReference | None:
    return next((owner for owner in owners if owner.controller and owner.kind == "DaemonSet"), None)


def _template_pod(raw: bytes) -> Pod | None:
    """Return the pod of a template, or None if it is invalid."""
    try:
        manifest = pod_from_workload(json.decode(raw, type=dict[str, object]))
        return default_pod(decode(json.encode(manifest), Pod))
    except InputError:
        return None

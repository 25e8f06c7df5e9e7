"""The DaemonSets whose pods run on a new node before any other pod does, and what they take of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct, json
from msgspec.structs import replace

from kschedx.api.decode import decode
from kschedx.api.defaulting import default_pod
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.selectors import required_node_affinity
from kschedx.api.tolerations import DO_NOT_SCHEDULE, untolerated
from kschedx.api.types import Node, OwnerReference, Pod, PodSpec
from kschedx.api.workloads import pod_from_workload
from kschedx.errors import InputError
from kschedx.fixes.pod_edits import without_node_names
from kschedx.snapshot.snapshot import Snapshot

POD = "pods"
"""Under which name the number of pods stands among the amounts."""


class DaemonPod(Struct, frozen=True, kw_only=True):
    """A DaemonSet's pod, for any node."""

    spec: PodSpec
    amounts: Mapping[str, int]


def daemon_pods(snapshot: Snapshot, pod: Pod, options: RequestOptions) -> tuple[DaemonPod, ...]:
    """One of each DaemonSet but that of `pod`: as it runs, or else as its template has it."""
    found = dict(_running(snapshot))
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind == "DaemonSet" and (namespace, name) not in found:
            made = _of_template(raw)
            if made is not None:
                found[namespace, name] = made
    own = _daemon_set(pod.metadata.owner_references)
    if own is not None:
        found.pop((pod.metadata.namespace, own.name), None)
    return tuple(
        DaemonPod(spec=one.spec, amounts=pod_request(one.spec, one.status, options).amounts) for one in found.values()
    )


def overhead(daemons: Iterable[DaemonPod], node: Node, *, comparison: bool) -> Mapping[str, int]:
    """What the DaemonSets' pods ask of the node, resource by resource, and how many they are."""
    total: Counter[str] = Counter()
    for one in daemons:
        if _runs_on(one.spec, node, comparison=comparison):
            total.update({**one.amounts, POD: 1})
    return total


def _running(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], Pod]]:
    pods = snapshot.pods
    for code, owners in enumerate(pods.owners.values):
        owner = _daemon_set(owners)
        rows = np.flatnonzero(pods.owners.codes == code) if owner is not None else ()
        placed = next((int(row) for row in rows if pods.node_names[int(row)]), None)
        if owner is not None and placed is not None:
            pod = without_node_names(pods[placed])
            yield (pods.namespaces[placed], owner.name), replace(pod, spec=replace(pod.spec, node_name=""))


def _daemon_set(owners: Iterable[OwnerReference]) -> OwnerReference | None:
    return next((one for one in owners if one.controller and one.kind == "DaemonSet"), None)


def _of_template(raw: bytes) -> Pod | None:
    """None where the template cannot be read."""
    try:
        manifest = pod_from_workload(json.decode(raw, type=dict[str, object]))
        return default_pod(decode(json.encode(manifest), Pod))
    except InputError:
        return None


def _runs_on(spec: PodSpec, node: Node, *, comparison: bool) -> bool:
    """As the DaemonSet controller sees it (NodeShouldRunDaemonPod): by affinity and taints, not by room."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if not required_node_affinity(spec.node_selector, required).matches(node.metadata.labels, node.name):
        return False
    return untolerated(node.spec.taints, spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=comparison) is None

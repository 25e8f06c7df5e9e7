"""What could be done about the findings on a node. Whether it helps is for the trial to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kschedx import findings as f
from kschedx.api.tolerations import DO_NOT_SCHEDULE, tolerates
from kschedx.api.types import Node, Taint
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.affinity_remedies import affinity_remedies
from kschedx.fixes.device_remedies import free_devices
from kschedx.fixes.remedy import Cost, Place, Remedy, change_pod, delete_pods
from kschedx.fixes.resource_remedies import resource_remedies
from kschedx.fixes.storage_remedies import claim_from_template, fewer_volumes, smaller_claim
from kschedx.fixes.topology_remedies import existing_rule_remedies, own_rule_remedies, spread_remedies
from kschedx.plugins.node_unschedulable import UNSCHEDULABLE_TAINT

SYSTEM_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
)
"""Taints of nodes that are unwell, about to go, or for the control plane: neither to tolerate nor to remove them is a
fix."""


def remedies(found: Sequence[f.Finding], place: Place) -> tuple[tuple[Remedy, ...], ...]:
    """For each thing that has to be mended on the node, the ways to do it. A thing without any makes the node
    hopeless."""
    groups: list[tuple[Remedy, ...]] = []
    short = [x for x in found if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    if short:
        groups.append(tuple(resource_remedies(short, place)))
    groups.extend(tuple(_for_one(x, place)) for x in found if not isinstance(x, f.InsufficientResource | f.TooManyPods))
    return tuple(groups)


def _for_one(finding: f.Finding, place: Place) -> Iterator[Remedy]:
    match finding:
        case f.NodeUnschedulable():
            yield _uncordon(place)
        case f.UntoleratedTaint():
            yield from _taints(place)
        case f.NodeAffinityMismatch():
            yield from affinity_remedies(finding, place)
        case f.NodeNameMismatch():
            yield Remedy(
                title=f"drop spec.nodeName {finding.wanted}",
                cost=Cost.POD,
                step=change_pod(lambda pod: edit.with_spec(pod, replace(pod.spec, node_name=""))),
            )
        case f.HostPortConflict():
            yield from _host_port(finding, place)
        case f.TopologySpreadSkew() | f.TopologyLabelMissing():
            yield from spread_remedies(finding, place)
        case f.PodAffinityUnsatisfied() | f.PodAntiAffinityConflict():
            yield from own_rule_remedies(finding, place)
        case f.ExistingAntiAffinityConflict():
            yield from existing_rule_remedies(finding, place)
        case f.ClaimInUse():
            yield from _delete_named(finding.holder, place)
        case f.ClaimNotFound():
            yield from claim_from_template(finding, place)
        case f.NoMatchingVolume() | f.InsufficientStorageCapacity():
            yield from smaller_claim(finding, place)
        case f.VolumeLimitExceeded():
            yield from fewer_volumes(finding, place)
        case f.InsufficientDevices():
            yield from free_devices(finding, place)
        case _:
            return  # nothing that a change of the pod, its neighbours or its node would mend


def _uncordon(place: Place) -> Remedy:
    def uncordoned(node: Node) -> Node:
        taints = tuple(t for t in node.spec.taints if t.key != UNSCHEDULABLE_TAINT.key)
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))

    return Remedy(title=f"uncordon {place.node.name}", cost=Cost.NODE, step=place.change_node(uncordoned))


MOST_TAINTS = 50
"""A sentence that names more of them is no advice."""


def _taints(place: Place) -> Iterator[Remedy]:
    """All taints of the node that the pod does not tolerate: to mend only the first helps nobody."""
    comparison = place.cycle.release.enabled("TaintTolerationComparisonOperators")
    tolerations = place.pod.spec.tolerations
    missing = [
        taint
        for taint in place.node.spec.taints
        if taint.effect in DO_NOT_SCHEDULE and not any(tolerates(t, taint, comparison=comparison) for t in tolerations)
    ]
    if place.node.spec.unschedulable and any(taint.key == UNSCHEDULABLE_TAINT.key for taint in missing):
        yield _uncordon(place)
        return
    if len(missing) > MOST_TAINTS or any(taint.key.startswith(SYSTEM_TAINTS) for taint in missing):
        return
    text = " and ".join(str(taint) for taint in missing)
    yield Remedy(title=f"tolerate {text}", cost=Cost.POD, step=change_pod(lambda pod: edit.tolerating(pod, missing)))
    yield Remedy(
        title=f"remove taint {text} from {place.node.name}",
        cost=Cost.NODE,
        step=place.change_node(lambda node: _without_taints(node, missing)),
    )


def _without_taints(node: Node, taints: Sequence[Taint]) -> Node:
    gone = frozenset(taints)
    return replace(node, spec=replace(node.spec, taints=tuple(t for t in node.spec.taints if t not in gone)))


def _host_port(finding: f.HostPortConflict, place: Place) -> Iterator[Remedy]:
    port = edit.HostPort(port=finding.port, protocol=finding.protocol)
    pods = place.cycle.snapshot.pods
    taken = {p.host_port for row in pods.with_host_ports for c in pods.specs[int(row)].containers for p in c.ports}
    taken |= {p.host_port for c in place.pod.spec.containers for p in c.ports}
    free = next((number for number in range(finding.port + 1, 65536) if number not in taken), None)
    if free is not None:
        yield Remedy(
            title=f"use host port {free} instead of {finding.port}",
            cost=Cost.LESS,
            step=change_pod(lambda pod: edit.with_host_port(pod, port, free)),
        )
    if not place.pod.spec.host_network:
        yield Remedy(
            title=f"give up host port {finding.port}",
            cost=Cost.LESS,
            step=change_pod(lambda pod: edit.with_host_port(pod, port, 0)),
        )
    yield from _delete_named(finding.holder, place)


def _delete_named(key: str, place: Place) -> Iterator[Remedy]:
    row = place.cycle.snapshot.pods.rows.get(key)
    if row is not None:
        yield Remedy(title=f"delete {key}", cost=Cost.OTHER_PODS, step=delete_pods((row,)))

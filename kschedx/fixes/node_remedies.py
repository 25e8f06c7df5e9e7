"""Remedies for what a node itself says (cordon, taints) and for its host ports."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.resources import pod_request
from kschedx.api.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.api.types import Taint
from kschedx.findings import HostPortConflict
from kschedx.findings.node import CORDON_TAINT
from kschedx.fixes import steps as s
from kschedx.fixes.node_taints import OF_CONTROL_PLANE, are_all_of_control_plane, is_kept, taken_away_by
from kschedx.fixes.situation import Place
from kschedx.fixes.victims import delete_named

MOST_TAINTS = 50
"""A sentence that names more of them is no advice."""


def uncordon(place: Place) -> s.Step:
    return s.Uncordon(row=place.node_row, node=place.node.name)


def taint_remedies(place: Place) -> Iterator[s.Step]:
    """For all the taints of the node that the pod does not tolerate: to mend only the first helps nobody."""
    missing = _untolerated(place)
    if place.node.spec.unschedulable and any(taint.key == CORDON_TAINT for taint in missing):
        yield uncordon(place)
        missing = tuple(taint for taint in missing if taint.key != CORDON_TAINT)
        if not missing:
            return
    if len(missing) > MOST_TAINTS:
        return
    if all(map(taken_away_by, missing)):
        faults = tuple(s.NodeFault(taint=taint, by=taken_away_by(taint)) for taint in missing)
        yield s.RepairNode(row=place.node_row, node=place.node.name, faults=faults)
        return
    requested = pod_request(place.pod.spec, place.pod.status, place.situation.scheduler.nodes.options).amounts
    nobody_else = are_all_of_control_plane(iter(place.snapshot.cluster.nodes))
    open_ = [one for one in missing if not (nobody_else and one.key in OF_CONTROL_PLANE)]
    if any(is_kept(taint, place.node, place.pod, requested) for taint in open_):
        return
    if len(open_) == len(missing):
        yield s.Tolerate(taints=missing)
    if nobody_else or not any(taint.key in OF_CONTROL_PLANE for taint in missing):
        yield s.RemoveTaints(row=place.node_row, node=place.node.name, taints=missing)


def _untolerated(place: Place) -> tuple[Taint, ...]:
    comparison = place.situation.scheduler.release.enabled("TaintTolerationComparisonOperators")
    tolerations = Tolerations(place.pod.spec.tolerations, comparison=comparison)
    return tuple(
        taint for taint in place.node.spec.taints if taint.effect in DO_NOT_SCHEDULE and not tolerations.cover(taint)
    )


def host_port_remedies(finding: HostPortConflict, place: Place) -> Iterator[s.Step]:
    pods = place.snapshot.pods
    taken = {p.host_port for row in pods.with_host_ports for c in pods.specs[int(row)].containers for p in c.ports}
    taken |= {p.host_port for c in place.pod.spec.containers for p in c.ports}
    free = next((number for number in range(finding.port + 1, 65536) if number not in taken), None)
    if free is not None:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=free)
    if not place.pod.spec.host_network:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=0)
    yield from delete_named(finding.holder, place)

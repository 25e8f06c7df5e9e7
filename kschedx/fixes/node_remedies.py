"""Remedies for what a node itself says (cordon, taints) and for its host ports."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.findings import HostPortConflict
from kschedx.findings.node import CORDON_TAINT
from kschedx.fixes import steps as s
from kschedx.fixes.situation import Place
from kschedx.fixes.victims import delete_named

SYSTEM_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
)
"""Taints of nodes that are unwell, about to go, or for the control plane: neither to tolerate nor to remove them is a
fix."""

MOST_TAINTS = 50
"""A sentence that names more of them is no advice."""


def uncordon(place: Place) -> s.Step:
    return s.Uncordon(row=place.node_row, node=place.node.name)


def taint_remedies(place: Place) -> Iterator[s.Step]:
    """All taints of the node that the pod does not tolerate: to mend only the first helps nobody."""
    comparison = place.situation.scheduler.release.enabled("TaintTolerationComparisonOperators")
    tolerations = Tolerations(place.pod.spec.tolerations, comparison=comparison)
    missing = tuple(
        taint for taint in place.node.spec.taints if taint.effect in DO_NOT_SCHEDULE and not tolerations.cover(taint)
    )
    if place.node.spec.unschedulable and any(taint.key == CORDON_TAINT for taint in missing):
        yield uncordon(place)
        missing = tuple(taint for taint in missing if taint.key != CORDON_TAINT)
        if not missing:
            return
    if len(missing) > MOST_TAINTS or any(taint.key.startswith(SYSTEM_TAINTS) for taint in missing):
        return
    yield s.Tolerate(taints=missing)
    yield s.RemoveTaints(row=place.node_row, node=place.node.name, taints=missing)


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

"""Why nothing that was tried lets the pod in, as far as that can be said."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.findings import (
    ClaimInUse,
    ClaimNotFound,
    ClaimNotOwned,
    DeviceClaimNotCreated,
    Finding,
    GangTooSmall,
    PodGroupIncomplete,
)
from kschedx.fixes.node_requirements import contradiction
from kschedx.fixes.trial import Situation, after_attempt, try_proposal
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.selectors import NodeSelectorRequirement
from kschedx.kube.types import PodSpec

NOTHING_TO_FIX = (Outcome.SCHEDULED, Outcome.UNDECIDED, Outcome.ERROR)
MOST_RULES = 2000
"""Conditions of a pod above which nothing is tried: they are generated, and each trial evaluates all."""

CONTROLLERS: Mapping[str, str] = {
    "kueue.x-k8s.io/": "Kueue",
    "scheduling.volcano.sh/": "Volcano",
    "karpenter.sh/": "Karpenter",
    "jobset.x-k8s.io/": "JobSet",
}
"""Prefixes of gates that a controller lifts when the pod's turn has come: to remove one is to jump a queue."""


class GateOfController(Struct, frozen=True, kw_only=True):
    gate: str
    controller: str


class Contradiction(Struct, frozen=True, kw_only=True):
    """No node can satisfy both: what the pod, its volumes or the profile ask of one label."""

    first: NodeSelectorRequirement
    second: NodeSelectorRequirement


class OfController(Struct, frozen=True, kw_only=True):
    """kube-controller-manager has to create or recreate a claim for the pod."""

    claim: str


class HeldByOther(Struct, frozen=True, kw_only=True):
    """What one pod at a time may have is in the hands of a pod that may not go."""

    claim: str
    holder: str


class HeldByPlugin(Struct, frozen=True, kw_only=True):
    """A PreEnqueue plugin keeps the pod out of the queue, whatever the nodes have."""

    plugin: str
    findings: tuple[Finding, ...] = ()


class RefusedByExtender(Struct, frozen=True, kw_only=True):
    nodes: int
    """That every plugin lets the pod have."""


class GroupIncomplete(Struct, frozen=True, kw_only=True):
    group: str
    missing: int


class NotSearched(Struct, frozen=True, kw_only=True):
    """The pod has more conditions than anything is tried for."""

    conditions: int
    most: int


class Untold(Struct, frozen=True, kw_only=True):
    """Every change that was tried leaves something that rejects the pod."""


DeadEnd = (
    GateOfController
    | Contradiction
    | OfController
    | HeldByOther
    | HeldByPlugin
    | RefusedByExtender
    | GroupIncomplete
    | NotSearched
    | Untold
)


def gate_of_controller(gates: tuple[str, ...]) -> GateOfController | None:
    for gate in gates:
        for prefix, controller in CONTROLLERS.items():
            if gate.startswith(prefix):
                return GateOfController(gate=gate, controller=controller)
    return None


def why_no_fix(scheduler: Scheduler, cycle: Cycle) -> DeadEnd | None:
    """Where `find_fixes` found none that is verified; None where there is nothing to fix, or nothing can be said."""
    if cycle.outcome in NOTHING_TO_FIX:
        return None
    rules = conditions_of(cycle.pod.spec)
    if rules > MOST_RULES:
        return NotSearched(conditions=rules, most=MOST_RULES)
    gate = gate_of_controller(tuple(gate.name for gate in cycle.pod.spec.scheduling_gates))
    if gate is not None:
        return gate
    held = [status for status in cycle.pre_enqueue if not (status.is_success or status.is_skip)]
    try:
        found = find_dead_end(try_proposal(scheduler, cycle.profile, after_attempt(cycle), cycle.refused))
    except UndecidableError:
        return None
    is_untold = isinstance(found, Untold) and held and not cycle.pod.spec.scheduling_gates
    return HeldByPlugin(plugin=held[0].plugin, findings=held[0].findings) if is_untold else found


def conditions_of(spec: PodSpec) -> int:
    """How many conditions a pod has on where it goes."""
    affinity = spec.affinity
    count = len(spec.node_selector) + len(spec.tolerations) + len(spec.topology_spread_constraints)
    if affinity is None:
        return count
    nodes = affinity.node_affinity and affinity.node_affinity.required_during_scheduling_ignored_during_execution
    terms = nodes.node_selector_terms if nodes else ()
    count += len(terms) + sum(len(term.match_expressions) for term in terms)
    for pods in (affinity.pod_affinity, affinity.pod_anti_affinity):
        for one in pods.required_during_scheduling_ignored_during_execution if pods else ():
            count += 1
            if one.label_selector:
                count += len(one.label_selector.match_labels) + len(one.label_selector.match_expressions)
    return count


def find_dead_end(situation: Situation) -> DeadEnd:
    """`situation` is where the pod stands as it is."""
    for finding in _findings(situation):
        match finding:
            case ClaimNotFound(ephemeral=True) | ClaimNotOwned():
                return OfController(claim=finding.claim)
            case DeviceClaimNotCreated():
                return OfController(claim=finding.pod_claim)
            case PodGroupIncomplete():
                return GroupIncomplete(group=finding.group, missing=max(finding.min_count - finding.pods, 0))
            case GangTooSmall(gated=0):
                return GroupIncomplete(group=finding.group, missing=max(finding.min_member - finding.pods, 0))
            case ClaimInUse():
                return HeldByOther(claim=finding.claim, holder=finding.holder)
            case _:
                pass
    if situation.refused:
        return RefusedByExtender(nodes=len(situation.refused))
    apart = contradiction(situation)
    return Untold() if apart is None else Contradiction(first=apart[0], second=apart[1])


def _findings(situation: Situation) -> tuple[Finding, ...]:
    told = tuple(finding for group in situation.groups for finding in group.exemplar.findings)
    return (*situation.status.findings, *told)

"""Why no change that was tried makes the pod schedulable, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kschedx import findings as f
from kschedx.errors import UndecidableError
from kschedx.fixes.node_requirements import contradiction
from kschedx.fixes.phrases import requirement_text
from kschedx.fixes.trial import Situation, state_after_attempt, try_proposal
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.selectors import terms_of
from kschedx.kube.types import PodSpec
from kschedx.wording import count

NOTHING_TO_FIX = (Outcome.SCHEDULED, Outcome.UNDECIDED, Outcome.ERROR)
MOST_RULES = 2000  # programs generate pods with more conditions, and each trial evaluates all of them

_CONTROLLERS: Mapping[str, str] = {
    "kueue.x-k8s.io/": "Kueue",
    "scheduling.volcano.sh/": "Volcano",
    "karpenter.sh/": "Karpenter",
    "jobset.x-k8s.io/": "JobSet",
}
"""Prefixes of gates that a controller removes when it admits the pod: removing one by hand bypasses a queue."""


class _DeadEnd(Struct, frozen=True, kw_only=True):
    text: str
    findings: tuple[f.Finding, ...] = ()  # their headlines complete the text
    is_untold: bool = False
    """Whether the cause is unknown: after every change that was tried, something still rejects the pod."""


def gate_of_controller(gates: Iterable[str]) -> tuple[str, str] | None:
    """Return the first gate that a controller removes, and the controller."""
    for gate in gates:
        for prefix, controller in _CONTROLLERS.items():
            if gate.startswith(prefix):
                return gate, controller
    return None


def why_no_fix(scheduler: Scheduler, cycle: Cycle) -> _DeadEnd | None:
    """Why `find_fixes` found no verified fix; None if there is nothing to fix, or if the cause is undecidable."""
    if cycle.outcome in NOTHING_TO_FIX:
        return None
    rules = conditions_of(cycle.pod.spec)
    if rules > MOST_RULES:
        has = f"the pod has {rules:,} placement conditions"
        return _DeadEnd(text=f"{has}; kschedx tries fixes for at most {MOST_RULES:,}")
    kept = gate_of_controller(gate.name for gate in cycle.pod.spec.scheduling_gates)
    if kept is not None:
        return _DeadEnd(text=f"{kept[1]} removes the gate {kept[0]} once it admits the pod")
    held = [status for status in cycle.pre_enqueue if not (status.is_success or status.is_skip)]
    try:
        end = _find_dead_end(try_proposal(scheduler, cycle.profile, state_after_attempt(cycle), cycle.refused))
    except UndecidableError:
        return None
    if not (end.is_untold and held) or cycle.pod.spec.scheduling_gates:
        return end
    findings = held[0].findings
    why = "" if findings else ": its condition is not met"
    return _DeadEnd(text=f"{held[0].plugin} keeps the pod pending{why}", findings=findings)


def conditions_of(spec: PodSpec) -> int:
    """Return the number of conditions that a pod sets on its placement."""
    count = len(spec.node_selector) + len(spec.tolerations) + len(spec.topology_spread_constraints)
    terms = terms_of(spec.required_node_affinity)
    count += len(terms) + sum(len(term.match_expressions) for term in terms)
    for pod_term in (*spec.required_pod_affinity, *spec.required_anti_affinity):
        count += 1
        if pod_term.label_selector:
            count += len(pod_term.label_selector.match_labels) + len(pod_term.label_selector.match_expressions)
    return count


def _find_dead_end(situation: Situation) -> _DeadEnd:
    """Return why no fix helps; `situation` is that of the pod without changes."""
    for finding in (*situation.status.findings, *situation.findings):
        match finding:
            case f.ClaimNotFound(ephemeral=True) | f.ClaimNotOwned():
                return _claim_dead_end(finding.claim)
            case f.DeviceClaimNotCreated(template=template, template_exists=exists) if not exists:
                lacks = (
                    "is not in the snapshot: if it does not exist, create it" if exists is None else "does not exist"
                )
                return _DeadEnd(
                    text=f"ResourceClaimTemplate {template}, the source of claim {finding.pod_claim}, {lacks}"
                )
            case f.DeviceClaimNotCreated():
                return _claim_dead_end(finding.pod_claim)
            case f.PodGroupIncomplete():
                return _incomplete(finding.group, finding.min_count - finding.pods)
            case f.GangTooSmall(gated=0):
                return _incomplete(finding.group, finding.min_member - finding.pods)
            case f.GangResourcesShort(group=group):
                return _DeadEnd(text=f"add nodes, or lower minResources of pod group {group}")
            case f.ClaimInUse():
                one_pod = f"one pod at a time may use the claim {finding.claim}"
                return _DeadEnd(text=f"{one_pod}, and {finding.holder} uses it")
            case _:
                pass
    if situation.refused:
        nodes = count(len(situation.refused), "node")
        return _DeadEnd(text=f"an extender rejects {nodes} that every plugin accepts")
    apart = contradiction(situation)
    if apart is None:
        return _DeadEnd(text="the pod stays unschedulable after every change tried", is_untold=True)
    matches = (f.RequirementMatch.unmatched(each.key, each.operator, each.values) for each in apart)
    return _DeadEnd(text=f"no node can have both {' and '.join(map(requirement_text, matches))}")


def _claim_dead_end(claim: str) -> _DeadEnd:
    return _DeadEnd(text=f"kube-controller-manager has to create the claim {claim} for this pod")


def _incomplete(group: str, missing: int) -> _DeadEnd:
    return _DeadEnd(text=f"pod group {group} needs {count(max(missing, 0), 'more pod')}")

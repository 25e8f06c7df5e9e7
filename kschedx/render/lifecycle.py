"""The screen of a pod or workload that no decision of kube-scheduler explains: state, causes, fixes, event."""

from __future__ import annotations

from kschedx.controllers import states
from kschedx.controllers.deployment import NoRollout, StatefulSetUpdate
from kschedx.controllers.rollouts import Rollout
from kschedx.controllers.state_causes import causes, own_event
from kschedx.controllers.state_facts import Running
from kschedx.explain.cycle_notes import CANNOT_START
from kschedx.explain.notes import ROUTINE
from kschedx.explain.ranking import rank_nodes
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.escaping import why_command
from kschedx.render.fixes import fix_views
from kschedx.render.holding import holding_facts, kueue_reason
from kschedx.render.outcome import then_text
from kschedx.render.view import Tone, View
from kschedx.wording import count, list_names

_WAITING = (
    states.WaitingForKubelet,
    states.ScaledToZero,
    states.RolloutStalled,
    states.NotAvailable,
    states.UpdateHeld,
    states.NotScaled,
    states.OnLostNode,
    states.ResizeHeld,
    states.KeptBySidecar,
    states.ObjectState,
)
"""States that kube-scheduler does not decide and that need attention."""
_HIDDEN = frozenset({CANNOT_START, "runs-already", "single-feasible-node", "tie", "not-measured", ROUTINE})
"""Ids of notes about the node that the pod would be assigned to."""
_TONES = {
    states.ExitCode.SCHEDULABLE: Tone.GOOD,
    states.ExitCode.UNSCHEDULABLE: Tone.BAD,
    states.ExitCode.UNDECIDED: Tone.OPEN,
}


def state_tone(lifecycle: states.Lifecycle) -> Tone:
    return Tone.HELD if type(lifecycle) in _WAITING else _TONES[states.row_of(lifecycle).exit_code]


def lifecycle_view(explanation: Explanation, lifecycle: states.Lifecycle, *, with_fixes: bool = True) -> View:
    """Return a view with the headline, its causes, the fixes, the cluster's event, and notes."""
    lead = "; otherwise "
    if isinstance(lifecycle, states.Contradicted | states.NotBound):
        lead = "; according to the cluster's objects "
    elif isinstance(lifecycle, states.Refused):
        lead = "; once admitted, "
    then = ""
    is_elsewhere = isinstance(lifecycle, states.Suspended) and lifecycle.is_dispatched
    is_open = lifecycle.is_open or isinstance(lifecycle, states.Refused)
    if is_open and explanation.is_run and not is_elsewhere:
        whose = "it" if lifecycle.subject == explanation.cycle.pod.key else "its pod"
        then = f"{lead}{then_text(explanation.diagnosis, rank_nodes(explanation.cycle, 1), whose)}"
    is_quoted = isinstance(lifecycle, states.NotBound | states.NoScheduler)
    hidden = _HIDDEN | {"recorded-event"} if is_quoted else _HIDDEN
    if not explanation.is_run:
        hidden |= {"bound-by-hand"}  # whether another scheduler has assigned it is not known
    if isinstance(lifecycle, states.RolloutStalled):
        hidden |= {"progress-deadline-exceeded"}
    if isinstance(lifecycle, states.NotRead | Running):
        hidden |= {"recorded-event", "unread-kind", "orphans", "other-namespaces"}  # they are about a decision
    texts = (note.text for note in explanation.notes if note.id not in hidden)
    is_queued = isinstance(lifecycle, states.Suspended) and lifecycle.queue and explanation.is_run
    reasons = tuple(causes(lifecycle))
    if is_queued and not reasons:
        reasons = tuple(kueue_reason(explanation.holding))
    return View(
        command="kschedx why",
        subject=lifecycle.subject,
        headline=f"{states.headline(lifecycle)}{then}",
        tone=state_tone(lifecycle),
        roots=reasons,
        facts=tuple(holding_facts(explanation.holding, explanation.cycle, known=reasons)) if is_queued else (),
        fixes=fix_views(explanation) if with_fixes else (),
        event=own_event(lifecycle),
        notes=(*texts, *_lifecycle_notes(lifecycle, is_run=explanation.is_run)),
    )


def _lifecycle_notes(lifecycle: states.Lifecycle, *, is_run: bool) -> tuple[str, ...]:
    """Return how to find out more, and who ends the state."""
    if isinstance(lifecycle, states.Suspended) and (lifecycle.queue or lifecycle.waits):
        if lifecycle.is_dispatched:
            return ("MultiKueue runs its pods in a worker cluster: it stays suspended here",)
        return ("Kueue sets spec.suspend to false when it admits the Workload",)
    if isinstance(lifecycle, states.NoScheduler):
        return ("--config FILE gives the configuration of that scheduler; --profile NAME answers for another profile",)
    if isinstance(lifecycle, Running):
        why = f"where another pod would be assigned is not known: {lifecycle.because}"
        return (why, lifecycle.command) if lifecycle.command else (why,)
    if isinstance(lifecycle, states.StillActive) and lifecycle.pod:
        return (f"about that pod: {why_command(lifecycle.pod)}",)
    if isinstance(lifecycle, states.WaitingForKubelet) and lifecycle.is_static:
        return ("kube-scheduler does not assign static pods: change the manifest file on the node, not the pod",)
    if isinstance(lifecycle, states.WaitingForKubelet) and is_run:
        return ("kube-scheduler does not decide this; -o wide shows where it would assign the pod now",)
    if isinstance(lifecycle, states.Contradicted):
        return ("`kschedx snapshot -o cluster.json` keeps everything that scheduling reads",)
    return ()


# Rollouts.


def rollout_text(rollout: Rollout) -> str:
    """Return the progress of the rollout, and its bounds."""
    name = rollout.workload.reference
    if isinstance(rollout.strategy, NoRollout):
        return f"{name}: {rollout.strategy}"
    if rollout.is_done:
        return f"rollout of {name} completes: {count(rollout.old, 'pod')} replaced ({rollout.strategy})"
    waits = f"{count(rollout.waiting, 'new pod')} {'stays' if rollout.waiting == 1 else 'stay'} pending"
    if rollout.refusal:
        waits = f"the API server refuses the next pod: {rollout.refusal}"
    elif rollout.kept:
        waits = f"no kubelet confirms the deletion of {list_names(rollout.kept, 2)}"
    elif not rollout.waiting:
        waits = f"{rollout.unready or 'a pod'} is not ready"
        if rollout.lost_node:
            waits = f"{waits}; repair {rollout.lost_node}, or delete the node if its machine is gone"
        elif isinstance(rollout.strategy, StatefulSetUpdate):  # which replaces a pod only once it is ready
            waits = f"{waits}; delete it first"
    replaced = f"{rollout.replaced:,} of {count(rollout.old, 'pod')} replaced"
    return f"rollout of {name} stalls: {replaced}, {waits} ({rollout.strategy})"

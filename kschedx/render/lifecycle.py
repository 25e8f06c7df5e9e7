"""The screen of a pod or workload that no decision of kube-scheduler explains: state, causes, fixes, event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.notes import ROUTINE, DeadlineExceeded
from kschedx.explain.ranking import ranking
from kschedx.inquiry.explanation import Explanation
from kschedx.render import states
from kschedx.render.fixes import fix_views
from kschedx.render.holding import holding_facts
from kschedx.render.outcome import then_text
from kschedx.render.view import Tone, View
from kschedx.render.wording import count, listed

_MOST_PODS = 3
"""Of a rollout that stalls, with what each lacks."""
DEPENDENTS_FIRST = "foregroundDeletion"
UNTOLD = frozenset({"runs-already", "single-feasible-node", "tie", "not-measured", ROUTINE})
"""Notes about where the pod would go."""
_TONES = {
    states.ExitCode.SCHEDULABLE: Tone.GOOD,
    states.ExitCode.UNSCHEDULABLE: Tone.BAD,
    states.ExitCode.UNDECIDED: Tone.OPEN,
}


def state_tone(lifecycle: states.Lifecycle) -> Tone:
    if isinstance(lifecycle, states.WaitingForKubelet | states.ScaledToZero | states.RolloutStalled):
        return Tone.HELD
    return _TONES[states.row_of(lifecycle).exit_code]


def lifecycle_view(explanation: Explanation, lifecycle: states.Lifecycle, *, with_fixes: bool = True) -> View:
    """The headline, its causes, the fixes, what the cluster reports, notes."""
    lead = "; otherwise "
    if isinstance(lifecycle, states.Contradicted | states.NotBound):
        lead = "; according to the dump "
    then = ""
    if lifecycle.is_open and explanation.is_run:
        then = f"{lead}{then_text(Diagnosis(explanation.cycle), ranking(explanation.cycle, 1))}"
    untold = UNTOLD | {"recorded-event"} if isinstance(lifecycle, states.NotBound) else UNTOLD
    if isinstance(lifecycle, states.RolloutStalled):
        untold |= {DeadlineExceeded.id}
    told = (note.text for note in explanation.notes if note.id not in untold)
    is_queued = isinstance(lifecycle, states.Suspended) and lifecycle.queue and explanation.is_run
    return View(
        command="kschedx why",
        subject=lifecycle.subject,
        headline=f"{states.headline(lifecycle)}{then}",
        tone=state_tone(lifecycle),
        roots=tuple(causes(lifecycle)),
        facts=tuple(holding_facts(explanation.holding, explanation.cycle)) if is_queued else (),
        fixes=fix_views(explanation) if with_fixes else (),
        event=_event(lifecycle),
        notes=(*told, *lifecycle_notes(lifecycle)),
    )


def _event(lifecycle: states.Lifecycle) -> str:
    """What the cluster itself reports, whole, so that a search finds it."""
    match lifecycle:
        case states.WaitingForKubelet(event=event):
            return event
        case states.Contradicted(message=event) | states.NotBound(message=event):
            return event
        case _:
            return ""


def causes(lifecycle: states.Lifecycle) -> Iterator[str]:
    """One sentence for each cause."""
    match lifecycle:
        case states.NamespaceTerminating(remaining=remaining, is_pod=is_pod):
            if is_pod:
                yield "the namespace controller deletes every pod of the namespace"
            else:
                yield "the API server creates nothing in a namespace that is being deleted"
            yield from remaining
        case states.BeingDeleted():
            yield from _deletion(lifecycle)
        case states.Finished(message=message):
            if message:
                yield message
        case states.Failed(message=message, owner=owner):
            if message:
                yield message
            if owner:
                yield f"a failed pod does not start again; {owner} creates another"
        case states.ScaledToZero() | states.NoScheduler(others=0, profiles=()):
            return
        case states.Suspended(kind=kind, queue=queue, message=message):
            if message:
                yield message
            if queue:
                yield "Kueue sets spec.suspend to false when it admits the Workload"
            else:
                yield f"a suspended {kind} creates no {'Jobs' if kind == 'CronJob' else 'pods'}"
        case states.Paused():
            yield "a paused Deployment creates no ReplicaSet for its pod template"
        case states.Refused(message=message, source=source, hint=hint):
            yield message
            if source or hint:
                yield ", ".join(filter(None, (source, hint)))
        case states.WaitingForOrdinal(predecessor=predecessor, node=node, container=container, is_node_lost=is_lost):
            where = f" on {node}" if node else ""
            yield f"podManagementPolicy OrderedReady: a pod is created after {predecessor}{where} is ready"
            if is_lost:
                yield f"the kubelet of node {node} does not answer, so nothing confirms that {predecessor} has stopped"
            if container:
                yield f"{predecessor}: {container}"
        case states.WaitingForKubelet():
            yield from _start(lifecycle)
        case states.NoScheduler():
            yield from _unknown(lifecycle)
        case states.RolloutStalled():
            yield from _stall(lifecycle)
        case states.UnknownPods(kind=kind):
            yield f"only the controller of {kind} knows its pods; ask about the pods that it created"
        case states.NotBound(report=report, provisioner=provisioner):
            if report:
                yield f"{provisioner or 'the storage driver'} reports: {report}"
        case states.ComponentDown(component=component, pods=pods, state=state):
            yield f"{listed(pods, 3)} {'is' if len(pods) == 1 else 'are'} not ready, and no other {component} is there"
            if state:
                yield f"{pods[0]} {state}"
        case states.StillActive(pod=pod, message=message):
            yield f"its pod {pod} is pending{': ' if message else ''}{message}"
        case states.Contradicted():
            yield "pods, nodes or other objects that decide are not in the dump"
        case _:
            assert_never(lifecycle)


def _stall(rollout: states.RolloutStalled) -> Iterator[str]:
    yield f"condition Progressing is False (ProgressDeadlineExceeded): {rollout.message}"
    yield from rollout.pods[:_MOST_PODS]
    if len(rollout.pods) > _MOST_PODS:
        yield f"{len(rollout.pods) - _MOST_PODS:,} more"


def _unknown(pod: states.NoScheduler) -> Iterator[str]:
    if pod.others:
        yield f"{count(pod.others, 'pod')} with this schedulerName {'has a node' if pod.others == 1 else 'have nodes'}"
    else:
        yield f"no pod with this schedulerName has a node; the configuration has {listed(pod.profiles, 4)}"
    if pod.hint:
        yield f'did you mean "{pod.hint}"?'


def _start(pod: states.WaitingForKubelet) -> Iterator[str]:
    """Why the kubelet does not run the pod's containers."""
    if pod.is_node_gone:
        yield f"the pod names node {pod.node}, and no node has that name"
    elif pod.is_node_lost:
        yield f"node {pod.node} is NotReady, or not in the cluster"
    if pod.outdated:
        yield f"{pod.outdated} has a newer revision, and replaces this pod only once it is ready (OrderedReady)"
    if pod.last:
        yield f"the container ended with {pod.last}"
    if pod.message:
        yield pod.message
    yield from pod.conditions


def _deletion(pod: states.BeingDeleted) -> Iterator[str]:
    """What keeps a pod or workload that is being deleted."""
    if pod.node and pod.is_node_lost:
        yield f"the kubelet of node {pod.node} does not answer, so the deletion is not confirmed"
    if DEPENDENTS_FIRST in pod.finalizers:
        yield f"finalizer {DEPENDENTS_FIRST}: what it owns is deleted first"
    others = [one for one in pod.finalizers if one != DEPENDENTS_FIRST]
    if others:
        which, it = ("finalizers", "them") if len(others) > 1 else ("finalizer", "it")
        yield f"{which} {listed(others, 4)}: the object stays until the controller behind {it} is done"
    elif pod.node and not pod.is_node_lost:
        yield f"its containers are stopping on node {pod.node}"
    elif not pod.node and not pod.is_workload:
        yield "kube-scheduler skips pods that are being deleted"
    if pod.owner and pod.node and pod.is_node_lost:
        until = f"{pod.owner} creates no other pod for {pod.node} while {pod.barrier}"
        yield until if pod.barrier else f"{pod.owner} creates the pod again once it is gone"


def lifecycle_notes(lifecycle: states.Lifecycle) -> tuple[str, ...]:
    """What a reader can do to know more."""
    if isinstance(lifecycle, states.NoScheduler):
        return ("--config FILE gives the configuration of that scheduler; --profile NAME answers for another profile",)
    if isinstance(lifecycle, states.StillActive):
        namespace, _, name = lifecycle.pod.partition("/")
        return (f"about that pod: kschedx why pod/{name} -n {namespace}",)
    if isinstance(lifecycle, states.WaitingForKubelet):
        return ("kube-scheduler does not decide this; -o wide shows where it would assign the pod now",)
    if isinstance(lifecycle, states.Contradicted):
        return ("`kschedx snapshot -o cluster.json` keeps everything that scheduling reads",)
    return ()

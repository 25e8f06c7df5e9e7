"""Why a pod or workload is in its state, one sentence for each cause, and the cluster's own message about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from kschedx.controllers import states
from kschedx.controllers.container_states import RESTARTING_PROBE
from kschedx.controllers.state_facts import Running
from kschedx.kube.kinds import KINDS
from kschedx.kube.kubectl import add_to_dump
from kschedx.kube.kueue import MULTIKUEUE
from kschedx.kube.types import JOB_TRACKING
from kschedx.kube.workloads import MAKING_PODS
from kschedx.snapshot.events import REPORTERS_OF_CLAIMS
from kschedx.wording import count, list_names

_MOST_PODS = 3  # pods of a rollout that stalls, each with what it lacks
_DEPENDENTS_FIRST = "foregroundDeletion"


def predicate(lifecycle: states.Lifecycle) -> str:
    """Return the headline without its subject: `is being deleted (since 2026-01-02T00:00:00Z)`."""
    return states.row_of(lifecycle).reads.removeprefix("{s.subject}").lstrip(": ").format(s=lifecycle)


def own_event(lifecycle: states.Lifecycle) -> str:
    """Return the cluster's own message, whole, so that a search finds it."""
    match lifecycle:
        case states.WaitingForKubelet(event=event):
            return event
        case (
            states.Contradicted(message=event)
            | states.NotBound(message=event)
            | states.NotRead(message=event)
            | states.WithoutNode(message=event)
        ):
            return event
        case _:
            return ""


def causes(lifecycle: states.Lifecycle) -> Iterator[str]:
    match lifecycle:
        case states.NamespaceTerminating(remaining=remaining, kept=kept, is_pod=is_pod):
            goes = "the namespace controller deletes every pod of the namespace"
            yield goes if is_pod else "the API server creates nothing in a namespace that is being deleted"
            yield from (*remaining, *(each.text for each in kept))
        case states.BeingDeleted():
            yield from _deletion(lifecycle)
        case states.Failed():
            yield from _failure(lifecycle)
        case states.OfEndedJob() | states.RejectedByKubelet():
            yield from filter(None, (lifecycle.message, _next(lifecycle)))
        case states.UpdateHeld(pods=pods):
            when = "when it is deleted" if lifecycle.is_on_delete else "if its ordinal is the partition or higher"
            yield f"{list_names(pods, _MOST_PODS)}: a pod gets the new template only {when}"
        case states.OnLostNode():
            yield from _eviction(lifecycle)
        case (
            states.Finished(message=message) | states.NoJobStarted(message=message) | states.ResizeHeld(message=message)
        ):
            yield from filter(None, (message,))
        case states.NotScaled(message=message, down=down):
            yield from filter(None, (down and down.report, message))
        case states.CannotStart(driver=driver):
            if driver:
                yield f"without {driver} there, its volumes are not provisioned or attached"
        case states.ScaledToZero() | Running() | states.NoScheduler(others=0, profiles=()):
            return
        case states.Suspended() | states.Paused():
            yield from _suspension(lifecycle)
        case states.Refused(message=message, source=source, hint=hint):
            is_name = hint.startswith("did you mean")  # and not about the source
            yield f"{message} ({hint})" if is_name else message
            if source or (hint and not is_name):
                yield ", ".join(filter(None, (source, "" if is_name else hint)))
        case states.WaitingForOrdinal() | states.WaitingForOldPods():
            yield from _order(lifecycle)
        case states.WaitingForKubelet():
            yield from _start(lifecycle)
        case states.NoScheduler():
            yield from _unknown(lifecycle)
        case states.RolloutStalled():
            yield from _stall(lifecycle)
        case states.NotAvailable(pods=pods):
            yield from _unready(pods)
        case states.UnknownPods() | states.PodsLeftOut() | states.NotObserved() | states.NotRead():
            yield from _open_pods(lifecycle)
        case states.ObjectState(facts=facts):
            yield from facts
        case states.NotBound():
            yield from _claim_report(lifecycle)
        case states.ComponentDown():
            yield from _component_facts(lifecycle)
        case states.StillActive() | states.ManagedElsewhere() | states.KeptBySidecar():
            yield from _job_facts(lifecycle)
        case states.Contradicted():
            yield from _difference(lifecycle)
        case _:
            assert_never(lifecycle)


def _failure(state: states.Failed) -> Iterator[str]:
    """Yield how a pod or Job ended, and what its controller does then."""
    ends = state.ends.text
    yield from filter(None, (ends, state.message) if state.is_retried else (state.message, ends))
    if state.surplus:
        yield f"{state.owner} {state.surplus}, and creates no other pod"
    elif state.owner:
        creates = "creates another" if state.owner.partition(" ")[0] in MAKING_PODS else "may create another"
        then = "has replaced it" if state.is_replaced else creates
        yield f"a failed pod does not start again; {state.owner} {then}"


def _claim_report(state: states.NotBound) -> Iterator[str]:
    """Yield what the driver reports about a claim without a volume, or kube-controller-manager, which waits for the
    driver."""
    is_of_class = "storageclass.storage.k8s.io" in state.report  # which a driver is asked for only if it exists
    by = "kube-controller-manager" if is_of_class else state.provisioner or "the storage driver"
    by = REPORTERS_OF_CLAIMS.get(state.report.partition(":")[0], by)
    if state.claim and state.because:
        yield state.because
    if state.report:
        yield f"{by} reports: {state.report}"


def _suspension(state: states.Suspended | states.Paused) -> Iterator[str]:
    """Yield what a suspended or paused workload does not do, and who suspended it."""
    if isinstance(state, states.Paused):
        if state.reason:
            yield f"its controller stopped it: {state.reason}"
        is_under_way = state.updated or state.reason
        does = "replaces no pods of the previous" if is_under_way else "creates no ReplicaSet for its pod"
        yield f"a paused {state.kind} {does} template"
        return
    yield from filter(None, (state.message,))
    of_user = f"a suspended {state.kind} creates no {'Jobs' if state.kind == 'CronJob' else 'pods'}"
    if not (state.queue or state.waits):
        yield of_user
    if state.may_be_of_kueue:
        yield "it has no queue: its user suspended it, or Kueue did with manageJobsWithoutQueueName"


def _next(lifecycle: states.OfEndedJob | states.RejectedByKubelet) -> str:
    """Return what a controller does about such pods."""
    if isinstance(lifecycle, states.OfEndedJob):
        return f"the Job controller deletes the unfinished pods of Job {lifecycle.job}"
    each = "it" if lifecycle.pods == 1 else "each"
    again = "" if lifecycle.is_bound_by_hand else ", and kube-scheduler assigns the next as before"
    return f"{count(lifecycle.pods, 'pod')} failed so; {each} is replaced{again}"


def _job_facts(lifecycle: states.StillActive | states.ManagedElsewhere | states.KeptBySidecar) -> Iterator[str]:
    if isinstance(lifecycle, states.KeptBySidecar):
        yield "a pod of a Job succeeds only when all of its containers have ended"
    elif isinstance(lifecycle, states.ManagedElsewhere):
        where = (
            "in a worker cluster: ask there" if lifecycle.manager == MULTIKUEUE else "by that controller, if it runs"
        )
        yield f"its pods are created {where}"
    elif lifecycle.pod or lifecycle.message:
        message = f": {lifecycle.message}" if lifecycle.message else ""
        state = f"its pod {lifecycle.pod} {lifecycle.state or 'is pending'}" if lifecycle.pod else "it gets no pods"
        yield f"{state}{message}"


def _component_facts(state: states.ComponentDown) -> Iterator[str]:
    if state.sibling or state.renewed:
        yield state.shown
        return
    if state.scaled or state.unready:
        yield f"{state.shown}, and no other {state.component} is there"
        return
    pods, is_one = state.pods, len(state.pods) == 1
    lacks = f"{'has' if is_one else 'have'} no node" if state.is_pending else f"{'is' if is_one else 'are'} not ready"
    yield f"{list_names(pods, 3)} {lacks}, and no other {state.component} is there"
    if state.state:
        yield f"{pods[0]} {state.state}"


def _difference(pod: states.Contradicted) -> Iterator[str]:
    """Yield why the cluster's event may differ."""
    if pod.counted > pod.known:
        has = "has" if pod.known == 1 else "have"
        yield f"the event is about {count(pod.counted, 'node')}, of which {pod.known:,} {has} been dumped"
        yield add_to_dump("Node")
    elif 0 < pod.counted < pod.known < pod.counted + pod.feasible:
        joined = count(pod.known - pod.counted, "node")
        yield f"the event is about {count(pod.counted, 'node')}: it fits more than the {joined} that joined since"
    elif pod.kinds:
        plurals = [KINDS[kind].plural for kind in pod.kinds]
        yield f"the dump holds no {list_names(plurals, 4, conjunction='or')}, on which this event depends"
        yield add_to_dump(*pod.kinds)
    elif pod.finished:
        have = "has" if len(pod.finished) == 1 else "have"
        yield f"{list_names(pod.finished, 3)} {have} finished, perhaps after the event, and made room there"
    elif pod.namespaces:
        spaces = "namespace" if len(pod.namespaces) == 1 else "namespaces"
        yield f"the dump has pods of {spaces} {list_names(pod.namespaces, 3)} only; those of others use the nodes too"
        yield add_to_dump("Pod")
    else:
        yield "objects that decide are missing here, or changed since the event"


def _eviction(pod: states.OnLostNode) -> Iterator[str]:
    yield from filter(None, (pod.message,))
    if pod.seconds is None:
        yield "it tolerates that the node is unreachable, so that it is not evicted"
    else:
        then = f"; {pod.loss}" if pod.loss else ""
        if pod.owner and pod.is_replaced:
            then = f", and {pod.owner} then creates another"
        elif pod.owner.partition(" ")[0] in MAKING_PODS:
            then = f", and {pod.owner} creates another once the node is back or removed"
        yield f"it is deleted {pod.seconds} s after its node became unreachable{then}"


def _order(waiting: states.WaitingForOrdinal | states.WaitingForOldPods) -> Iterator[str]:
    """Yield why a workload waits for its earlier pods, and what is known about them."""
    if isinstance(waiting, states.WaitingForOldPods):
        yield "strategy Recreate: its new pods are created once the old ones are gone"
        nodes, pods = list_names(waiting.nodes, 2, conjunction="or"), list_names(waiting.pods, 2, conjunction="and")
        has = "has" if len(waiting.pods) == 1 else "have"
        yield f"no kubelet answers for {nodes}, so nothing confirms that {pods} {has} stopped"
        return
    where, before = f" on {waiting.node}" if waiting.node else "", waiting.predecessor
    after = f"has been ready for minReadySeconds {waiting.seconds}" if waiting.seconds else "is ready"
    yield f"podManagementPolicy OrderedReady: a pod is created after {before}{where} {after}"
    if waiting.is_node_lost:
        yield f"no kubelet answers for node {waiting.node}, so nothing confirms that {before} has stopped"
    if waiting.container:
        yield f"{before}: {waiting.container}"


def _open_pods(
    lifecycle: states.UnknownPods | states.PodsLeftOut | states.NotObserved | states.NotRead,
) -> Iterator[str]:
    if isinstance(lifecycle, states.NotObserved):
        empty = f"its status is empty: the controller of {lifecycle.kind} has not run since"
        yield lifecycle.message or lifecycle.generations or empty
    elif isinstance(lifecycle, states.NotRead):
        yield from filter(None, (lifecycle.because, lifecycle.command, *lifecycle.reports))
    elif isinstance(lifecycle, states.PodsLeftOut):
        held = f", and the dump has {lifecycle.held:,}" if lifecycle.held else ""
        yield f"its status counts {count(lifecycle.pods, 'pod')}{held}: dump all pods (kubectl get pods -A -o yaml)"
    elif lifecycle.template:
        yield f"its pod template is that of {lifecycle.template} (spec.workloadRef): ask about that workload"
    else:
        yield f"only the controller of {lifecycle.kind} knows its pods; ask about the pods that it created"


def _stall(rollout: states.RolloutStalled) -> Iterator[str]:
    if rollout.message:
        yield f"condition Progressing is False (ProgressDeadlineExceeded): {rollout.message}"
    elif rollout.seconds:
        yield "a pod counts as available once it has been ready for that long; an old pod stays until then"
    yield from _unready(rollout.pods)


def _unready(pods: Sequence[str]) -> Iterator[str]:
    yield from pods[:_MOST_PODS]
    if len(pods) > _MOST_PODS:
        yield f"{len(pods) - _MOST_PODS:,} more"


def _unknown(pod: states.NoScheduler) -> Iterator[str]:
    if pod.others:
        yield f"{count(pod.others, 'pod')} with this schedulerName {'has a node' if pod.others == 1 else 'have nodes'}"
    elif pod.running:
        yield f"{pod.running} runs it, and has reported nothing about the pod"
    elif not pod.message and not pod.is_managed:
        yield f"no pod with this schedulerName has a node; the configuration has {list_names(pod.profiles, 4)}"
    if pod.message:
        yield f"it reports: {pod.message}"
    if pod.hint:
        yield f'did you mean "{pod.hint}"?'


def _start(pod: states.WaitingForKubelet) -> Iterator[str]:
    """Yield why the kubelet does not run the pod's containers."""
    if isinstance(pod, states.BoundToMissingNode):
        yield f"the pod names node {pod.node}, and no node has that name"
    elif pod.is_node_lost and not pod.message:
        yield f"node {pod.node} is NotReady, or not in the cluster"
    if pod.outdated:
        yield f"{pod.outdated} has a newer revision, and replaces this pod only once it is ready (OrderedReady)"
    if pod.is_static:
        yield f"the kubelet of {pod.node} runs this static pod from a manifest file"
    if pod.last:
        yield f"the container ended with {pod.last}"
    if pod.message:
        yield pod.message
    if pod.waits is states.Waits.CRASH and RESTARTING_PROBE.search(pod.event):
        yield pod.event
    yield from pod.conditions


def _deletion(pod: states.BeingDeleted) -> Iterator[str]:
    """Yield why a pod or workload is deleted, and what blocks the deletion."""
    yield from filter(None, (pod.why, *pod.facts, *(each.text for each in pod.kept)))
    if pod.node and pod.is_node_lost:
        yield f"no kubelet answers for node {pod.node}, so the deletion is not confirmed"
    if _DEPENDENTS_FIRST in pod.finalizers:
        yield f"finalizer {_DEPENDENTS_FIRST}: what it owns is deleted first"
    others = [finalizer for finalizer in pod.finalizers if finalizer != _DEPENDENTS_FIRST]
    if others:
        which, it = ("finalizers", "them") if len(others) > 1 else ("finalizer", "it")
        behind = "the Job controller" if others == [JOB_TRACKING] else f"the controller behind {it}"
        yield f"{which} {list_names(others, 4)}: the object stays until {behind} is done"
        yield from filter(None, (pod.down,))
    elif pod.node and pod.is_overdue and not pod.is_node_lost:
        yield f"the kubelet of {pod.node} has not confirmed its end, which was due by {pod.until or pod.since}"
    elif pod.node and not pod.is_node_lost:
        limit = f", by {pod.until} at the latest" if pod.until else ""
        yield f"its containers are stopping on node {pod.node}{limit}"
    elif not (pod.node or pod.is_workload or pod.why):
        yield "kube-scheduler skips pods that are being deleted"
    if pod.successor:
        yield f"{pod.successor} creates its new pods once the old ones are gone (strategy Recreate)"
    elif pod.owner.startswith("Job ") and not (pod.is_replaced or pod.is_node_lost):
        yield f"{pod.owner} creates another pod once it has terminated (podReplacementPolicy Failed)"
    elif pod.owner and pod.node and pod.is_node_lost:
        if pod.barrier:
            yield f"{pod.owner} creates no other pod for {pod.node} while {pod.barrier}"
        elif pod.is_replaced:
            yield f"{pod.owner} does not count it, and replaces it at once"
        else:
            yield f"{pod.owner} creates the pod again once it is gone"

"""Why a Workload is pending, which Workloads block it, and which changes would admit it, all verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum, unique
from functools import partial
from itertools import islice
from typing import TypeVar, assert_never

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kschedx.errors import nearest
from kschedx.kube import kueue
from kschedx.kube.conditions import TimedCondition
from kschedx.kube.documents import Json, Target, pointer, set_field, with_spec
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import ObjectMeta, PodTemplateSpec, Toleration
from kschedx.kube.typos import nearest_name
from kschedx.kueue.controllers import PREEMPTED, check_repairs
from kschedx.kueue.document import PreemptedWorkload, QueueHead
from kschedx.kueue.first_decisions import FirstDecisions
from kschedx.kueue.flavors import Shortage, selector_conflict, untolerated_taint
from kschedx.kueue.multikueue import repairs_of_workers, unusable_workers
from kschedx.kueue.queues import PROVISIONING
from kschedx.kueue.quota import (
    QUOTA_FIELDS,
    FlavorResource,
    display_amount,
    divide,
    exact,
    plus,
    quota_amount,
    with_quota,
)
from kschedx.kueue.run import AdmissionRun, Memory
from kschedx.kueue.scheduler import NAMESPACE_MISMATCH
from kschedx.kueue.settings import PODS_NOT_READY, settings_of
from kschedx.kueue.topology import taint_text
from kschedx.kueue.workloads import READY, Job, timestamp
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_REMEDIES = 4
_MOST_FINISHING = 8  # the maximum number of Workloads whose completion is tried
_MOST_QUEUED = 3  # the maximum number of trials of one kind on a whole run

_HAS_QUOTA = ("Admitted", "QuotaReserved")
_PREEMPTING = "Preempting"

_T = TypeVar("_T", bound=Struct)
_Specified = TypeVar("_Specified", bound=kueue.Workload | kueue.ClusterQueue | kueue.LocalQueue | PodTemplateSpec)


@unique
class RemedyKind(StrEnum):
    LESS = "less"
    QUEUE = "queue"
    FLAVOR = "flavor"
    PRIORITY = "priority"
    QUOTA = "quota"
    PREEMPTION = "preemption"
    TOPOLOGY = "topology"
    ORDER = "order"
    NAMESPACE = "namespace"
    RESUME = "resume"
    WAIT = "wait"


@unique
class Wait(StrEnum):
    """Why a Workload is pending."""

    QUOTA = "quota"
    FLAVOR = "flavor"  # no flavor of its queue is usable for its pods
    TOPOLOGY = "topology"  # quota suffices, and no domain fits its pods
    HEAD = "head"  # the Workload at the head of its StrictFIFO queue is not admitted yet
    NAMESPACE = "namespace"  # the ClusterQueue does not select its namespace
    REQUESTS = "requests"  # its requests are refused
    QUEUE = "queue"  # its queue is stopped, inactive, or missing
    PODS_READY = "podsReady"
    """Kueue admits nothing before the pods of other Workloads are ready (waitForPodsReady.blockAdmission)."""
    CHECKS = "checks"
    BACKOFF = "backoff"  # it was evicted, and Kueue queues it again at a set time
    TURN = "turn"  # Kueue admits it in one of its next cycles


class _Remedy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change after which Kueue reserves quota for the Workload, verified in a whole run."""

    kind: RemedyKind
    title: str
    victims: tuple[str, ...] = ()  # Workloads that are preempted for it then
    target: Target | None = None  # the queue or namespace that is changed; None for other changes
    patch: tuple[Json, ...] = ()  # the JSON patch of the target


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Kueue's decision about a Workload in the state of the snapshot."""

    workload: str
    state: str  # `Pending`, `QuotaReserved`, `Admitted`, or `Finished`
    cluster_queue: str = ""
    head: QueueHead | None = None  # the decision; None if Kueue does not evaluate it
    wait: Wait | None = None  # None for a Workload that is not pending
    behind: str = ""  # the head of its StrictFIFO queue, which blocks it
    is_head_too_large: bool = False
    """Whether that head requests more than its queue can ever have, so that it blocks the queue for good."""
    not_ready: tuple[str, ...] = ()  # the Workloads with pods that are not ready, which block admission
    checks: tuple[str, ...] = ()  # admission checks that are not ready
    requeue_at: str = ""  # the end of its backoff
    blocked: str = ""  # why it is not evaluated, as Kueue's message
    equal_to: str = ""  # the equal Workload whose decision also applies to this one
    position: int | None = None  # the position among pending Workloads of the ClusterQueue, from 1
    waiting: int = 0
    ahead: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()  # the pod sets of which Kueue admits only a part: `4 of 8 pods in pod set main`
    lacking: str = ""
    """The queue that the snapshot does not have: `LocalQueue team`, or `ClusterQueue cq` of its LocalQueue."""
    unseen: tuple[tuple[FlavorResource, int], ...] = ()
    """Quota of its ClusterQueue that is reserved by Workloads outside the snapshot."""
    remedies: tuple[_Remedy, ...] = ()
    preempted_by: str = ""
    """The Workload for which it was last preempted, or `another Workload`; empty if it was not preempted."""
    inactive: str = ""
    """Why its queue admits nothing: `ClusterQueue cq has stopPolicy Hold`; or why its topology has no domains."""
    repairs: tuple[str, ...] = ()  # what makes its ClusterQueue active or its topology usable, if no run can verify it

    @property
    def state_text(self) -> str:
        """The state of the Workload, as a predicate."""
        return f"was preempted by {self.preempted_by} and {self._wait_text}" if self.preempted_by else self._wait_text

    @property
    def _wait_text(self) -> str:
        match self.wait:
            case Wait.FLAVOR:
                return "matches no flavor in Kueue"
            case Wait.TOPOLOGY if self.inactive:
                return f"waits in Kueue because {self.inactive}"
            case Wait.TOPOLOGY:
                return "waits for room in a topology in Kueue"
            case Wait.HEAD:
                never = ", which can never fit its queue" if self.is_head_too_large else ""
                return f"waits behind {self.behind} in Kueue{never}"
            case Wait.NAMESPACE:
                return f"waits in Kueue because ClusterQueue {self.cluster_queue} does not select its namespace"
            case Wait.REQUESTS:
                return "waits in Kueue because its requests are refused"
            case Wait.QUEUE if self.inactive:
                return f"waits in Kueue because {self.inactive}"
            case Wait.QUEUE if self.cluster_queue:
                return f"waits in Kueue because ClusterQueue {self.cluster_queue} is inactive"
            case Wait.QUEUE if self.lacking:
                return f"waits in Kueue, whose {self.lacking} is not in this snapshot"
            case Wait.QUEUE:
                return "waits in Kueue because its LocalQueue is stopped or missing"
            case Wait.PODS_READY:
                others = list_names(self.not_ready, 2, conjunction="and")
                return f"waits in Kueue until the pods of {others} are ready"
            case Wait.CHECKS:
                noun = "admission check" if len(self.checks) == 1 else "admission checks"
                return f"has quota in Kueue and waits for the {noun} {list_names(self.checks, 3, conjunction='and')}"
            case Wait.BACKOFF:
                return f"waits in Kueue for its backoff, until {self.requeue_at}"
            case Wait.TURN:
                return "waits for Kueue's next cycle"
            case Wait.QUOTA if self.is_preempting:
                names = [victim.workload for victim in self.victims]
                return f"preempts {list_names(names, 2, conjunction='and')} in Kueue"
            case Wait.QUOTA | None:
                return "waits for quota in Kueue"
            case _:
                assert_never(self.wait)

    @property
    def has_quota_now(self) -> bool:
        """Whether Kueue admits it in the current state."""
        return self.head is not None and self.head.outcome in _HAS_QUOTA

    @property
    def is_preempting(self) -> bool:
        """Whether Kueue preempts other Workloads for it in the current state."""
        return self.head is not None and self.head.outcome == _PREEMPTING and bool(self.head.targets)

    @property
    def partial_text(self) -> str:
        return f", with {list_names(self.partial, 3, conjunction='and')}" if self.partial else ""

    @property
    def victims(self) -> tuple[PreemptedWorkload, ...]:
        return self.head.targets if self.head is not None else ()

    @property
    def shortages(self) -> tuple[Shortage, ...]:
        return self.head.shortages if self.head is not None else ()


_MEMORY = Memo[Memory]()
_FIRST_DECISIONS = Memo[FirstDecisions]()
_DECISIONS = Memo[Verdict | None]()


def judge(snapshot: Snapshot, key: str, *, now: int = 0, with_remedies: bool = True) -> Verdict | None:
    """Return the verdict about a Workload, `namespace/name`; None if it is not in the snapshot."""
    memory = _MEMORY.of(snapshot.derived, Memory)
    begin = partial(AdmissionRun, snapshot, settings_of(snapshot), now, memory)
    known = _FIRST_DECISIONS.of(snapshot.derived, lambda: FirstDecisions(begin), now)
    if key not in known.begun.jobs:
        return None
    verdict = _verdict(known, key)
    if not with_remedies or verdict.wait in (None, Wait.CHECKS) or verdict.has_quota_now:
        return verdict
    trials = _Trials(snapshot, known.begun, verdict, memory)
    return replace(verdict, remedies=tuple(trials.remedies())[:_MOST_REMEDIES])


def _verdict(decisions: FirstDecisions, key: str) -> Verdict:
    run = decisions.begun
    job = run.jobs[key]
    queue = run.queue_of(job)
    order = decisions.order(queue) if queue is not None else ()
    position = order.index(key) if key in order else None
    verdict = Verdict(
        workload=key,
        state=job.state,
        cluster_queue=queue.queue.metadata.name if queue is not None else "",
        position=None if position is None else position + 1,
        waiting=len(order),
        ahead=tuple(order[:position]) if position is not None else (),
        unseen=tuple(run.unseen[queue.queue.metadata.name].items()) if queue is not None else (),
    )
    if job.state == "QuotaReserved":
        checks = tuple(check.name for check in job.checks if check.state != READY)
        return replace(verdict, wait=Wait.CHECKS, checks=checks, repairs=tuple(_unready_checks(run, job, checks)))
    if job.state != "Pending":
        workers = filter(None, (job.workload.status.cluster_name,))
        return replace(verdict, repairs=tuple(it.repair for it in unusable_workers(run.snapshot, workers)))
    verdict = replace(verdict, preempted_by=_preemptor(run, job))
    requeue_state = job.workload.status.requeue_state if job.is_in_backoff else None
    decision, run = decisions.of(key)
    head, job = decision.head, run.jobs[key]
    verdict = replace(verdict, head=head, equal_to=decision.equal_to, partial=_partial(head, job))
    if decision.has_stopped and (head is None or head.message == PODS_NOT_READY):
        return replace(verdict, wait=Wait.PODS_READY, not_ready=tuple(run.unready_workloads), blocked=PODS_NOT_READY)
    if head is None:
        return _unevaluated_verdict(verdict, run, job)
    wait = _wait_of(head)
    if wait is Wait.TURN and requeue_state is not None:
        return replace(verdict, wait=Wait.BACKOFF, requeue_at=requeue_state.requeue_at or "")
    if wait is Wait.TOPOLOGY and queue is not None:
        obstacles = (topology.obstacle for topology in run.cache.topologies_of(queue.queue).values())
        why, repair = next(filter(None, obstacles), ("", ""))
        return replace(verdict, wait=wait, inactive=why, repairs=(repair,) if repair else ())
    if wait is Wait.FLAVOR and queue is not None:
        return replace(verdict, wait=wait, repairs=tuple(islice(_other_selectors(run, job, queue.queue), 1)))
    return replace(verdict, wait=wait)


def _unready_checks(run: AdmissionRun, job: Job, checks: Collection[str]) -> Iterator[str]:
    """Yield where to look for what admission checks wait for."""
    for check in (run.cache.checks[name] for name in checks if name in run.cache.checks):
        is_down = any(it.type == "Active" and it.status == "False" for it in check.status.conditions)
        yield from check_repairs(run.snapshot, check) if is_down else repairs_of_workers(run.snapshot, check, job.key)
        if check.spec.controller_name == PROVISIONING:
            yield f"check the ProvisioningRequest of Workload {job.key}, for which cluster-autoscaler adds nodes"


def _preemptor(run: AdmissionRun, job: Job) -> str:
    """Return the Workload in the message of a preemption (preemptionMessage in pkg/scheduler/preemption)."""
    evicted = job.conditions.get("Evicted")
    if not job.is_evicted or evicted is None or evicted.reason != PREEMPTED:
        return ""
    return next((it.key for it in run.jobs.values() if f"(UID: {it.uid}," in evicted.message), "another Workload")


def _other_selectors(run: AdmissionRun, job: Job, queue: kueue.ClusterQueue) -> Iterator[str]:
    """Yield what helps a Workload whose node selector no flavor of its queue has."""
    for pod_set in job.workload.spec.pod_sets:
        flavors = [run.cache.flavors[name] for name in queue.flavors if name in run.cache.flavors]
        pairs = [selector_conflict(pod_set.template.spec, flavor) for flavor in flavors]
        if pairs and all(wanted for _, wanted in pairs):
            own, wanted = pairs[0]
            yield f"add a flavor for {wanted} to ClusterQueue {queue.metadata.name}, or select {own}"


def decision_of(snapshot: Snapshot, key: str) -> Verdict | None:
    """Return the verdict without remedies, computed once for a snapshot."""
    now = timestamp(snapshot.source.taken)
    return _DECISIONS.of(snapshot.derived, lambda: judge(snapshot, key, now=now, with_remedies=False), key)


def _partial(head: QueueHead | None, job: Job) -> tuple[str, ...]:
    counts = {pod_set.name: pod_set.count for pod_set in job.workload.spec.pod_sets}
    admitted = () if head is None or head.outcome not in _HAS_QUOTA else head.pod_sets
    return tuple(
        f"{each.count:,} of {count(counts[each.name], 'pod')} in pod set {each.name}"
        for each in admitted
        if each.count < counts.get(each.name, 0)
    )


def _without_cluster_queue(verdict: Verdict, local: kueue.LocalQueue, known: Sequence[str]) -> Verdict:
    """Explain that the ClusterQueue of a LocalQueue is missing: from the cluster, if it has others."""
    name, queue = local.spec.cluster_queue, local.metadata.name
    if not known:
        return replace(verdict, lacking=f"ClusterQueue {name}")
    meant = nearest_name(name, known)
    recreate = f"delete and recreate LocalQueue {queue} with clusterQueue {meant} instead of {name}"
    repair = recreate if meant else f"create ClusterQueue {name}, or recreate LocalQueue {queue} with another"
    return replace(verdict, inactive=f"ClusterQueue {name} does not exist", repairs=(repair,))


def _unevaluated_verdict(verdict: Verdict, run: AdmissionRun, job: Job) -> Verdict:
    """Explain why no cycle evaluates a Workload."""
    queue = run.queue_of(job)
    if queue is None or not run.is_active(verdict.cluster_queue):
        phrase, local = job.pending_message, run.local_queue(job)
        if queue is not None:
            why = run.readiness[verdict.cluster_queue].message
            phrase = f"{phrase}: {why}" if phrase else "ClusterQueue is inactive"
        if queue is None and local is not None and local.spec.cluster_queue not in run.queues:
            verdict = _without_cluster_queue(verdict, local, sorted(run.queues))
        elif local is None and not run.has_local_queues:
            verdict = replace(verdict, lacking=f"LocalQueue {job.workload.spec.queue_name}")
        elif local is not None and local.spec.is_stopped:
            stopped = f"LocalQueue {local.metadata.name} has stopPolicy {local.spec.stop_policy}"
            verdict = replace(verdict, inactive=stopped)
        elif queue is not None and (ready := run.readiness[verdict.cluster_queue]).why:
            why = f"ClusterQueue {verdict.cluster_queue} {ready.why}"
            verdict = replace(verdict, inactive=why, repairs=ready.repairs)
        return replace(verdict, wait=Wait.QUEUE, blocked=phrase)
    first = next((other_job for other_job in queue.sorted_jobs if other_job.key != job.key), None)
    if queue.is_strict and first is not None and job.key in queue.waiting:
        entry, blocked = run.evaluate(first), f"behind {first.key} (StrictFIFO)"
        if entry is None or not _is_too_large(entry.assignment.shortages):
            return replace(verdict, wait=Wait.HEAD, behind=first.key, blocked=blocked)
        blocked = f"{blocked}: {entry.message}"
        return replace(verdict, wait=Wait.HEAD, behind=first.key, is_head_too_large=True, blocked=blocked)
    return replace(verdict, wait=Wait.QUOTA, blocked=job.pending_message)


def _is_too_large(shortages: Sequence[Shortage]) -> bool:
    """Return whether the request exceeds the maximum of a resource in every flavor that was tried."""
    exceeded = {shortage.flavor for shortage in shortages if shortage.exceeds_maximum}
    return bool(exceeded) and exceeded == {shortage.flavor for shortage in shortages}


def _wait_of(head: QueueHead) -> Wait:
    if head.outcome in _HAS_QUOTA:
        return Wait.TURN
    if head.outcome == "Inadmissible":
        return Wait.NAMESPACE if head.message == NAMESPACE_MISMATCH else Wait.REQUESTS
    if head.shortages or head.targets:
        return Wait.QUOTA
    is_of_topology = any(words in head.message for words in ('topology "', "no topology domains"))
    return Wait.TOPOLOGY if is_of_topology else Wait.FLAVOR


# --- trials


class _Trials:
    def __init__(self, snapshot: Snapshot, run: AdmissionRun, verdict: Verdict, memory: Memory) -> None:
        self._snapshot = snapshot
        self._run = run
        self._memory = memory
        self._verdict = verdict
        self._job = run.jobs[verdict.workload]
        self._workload = next(workload for workload in snapshot.of(kueue.Workload) if workload.key == verdict.workload)

    def remedies(self) -> Iterator[_Remedy]:
        others = [self._other_queues, self._other_flavors, self._more_quota, self._await_completion, self._priorities]
        match self._verdict.wait:
            case Wait.QUEUE:
                yield from self._resume()
                yield from islice(self._other_queues(), 1)
                return
            case Wait.HEAD:
                yield from self._raise_priority()
                yield from islice(self._other_queues(), 1)
                return
            case Wait.PODS_READY:
                yield from self._others_ready()
                return
            case Wait.NAMESPACE:
                yield from self._label_namespace()
                yield from islice(self._other_queues(), 1)
                return
            case Wait.TOPOLOGY:
                yield from self._other_topology()
            case _:
                yield from self._await_preemption()
                yield from self._cover_resources()
                yield from islice(self._more_borrowed(), 1)
                yield from islice(self._more_lent(), 1)
                yield from self._preempting()
                others = [self._less, *others]
                if self._is_pod_group and sum(pod_set.count for pod_set in self._workload.spec.pod_sets) > 1:
                    others.remove(self._more_quota)  # else, each of the pods has to be recreated
                    others.insert(0, self._more_quota)
        for remedies in others:
            yield from islice(remedies(), None if remedies == self._less else 1)

    def _try(
        self, kind: RemedyKind, title: str, snapshot: Snapshot, target: Target | None = None, patch: Sequence[Json] = ()
    ) -> Iterator[_Remedy]:
        """Yield the remedy if it helps, or makes the queue active. Evaluate the Workload alone first, because earlier
        ones leave it less."""
        then = FirstDecisions(partial(AdmissionRun, snapshot, self._run.settings, self._run.now, self._memory))
        entry = then.begun.evaluate(then.begun.jobs[self._verdict.workload])
        may_preempt = kind is not RemedyKind.WAIT and self._verdict.head is not None and not self._verdict.victims
        if entry is None or not (entry.is_admitted or (entry.issues_preemption and may_preempt)):
            if entry is not None and kind is RemedyKind.RESUME:
                yield _Remedy(kind=kind, title=f"{title}; it then waits for quota", target=target, patch=tuple(patch))
            return
        head = then.of(self._verdict.workload)[0].head
        if head is not None and head.outcome in _HAS_QUOTA:
            yield _Remedy(kind=kind, title=title, target=target, patch=tuple(patch))
        elif head is not None and head.outcome == _PREEMPTING and may_preempt:
            victims = tuple(victim.workload for victim in head.targets)
            yield _Remedy(kind=kind, title=title, victims=victims, target=target, patch=tuple(patch))

    def _replace_object(self, before: _T, after: _T) -> Snapshot:
        kind = type(before)
        records = [after if record is before else record for record in self._snapshot.of(kind)]
        return self._snapshot.with_records(kind, records)

    def _change(self, record: _Specified, **fields: object) -> Snapshot:
        """Return the cluster with fields of an object's spec replaced."""
        return self._replace_object(record, with_spec(record, **fields))

    # --- smaller requests

    def _less(self) -> Iterator[_Remedy]:
        pod_sets = self._workload.spec.pod_sets
        by_flavor: dict[tuple[str, str], list[Shortage]] = {}
        for shortage in self._verdict.shortages:
            by_flavor.setdefault((shortage.pod_set, shortage.flavor), []).append(shortage)
        for (name, _), shortages in by_flavor.items():
            index = next((i for i, pod_set in enumerate(pod_sets) if pod_set.name == name), None)
            if index is None or pod_sets[index].count < 1:
                continue
            pod_set = pod_sets[index]
            remedies = [*self._fewer_pods(index, pod_set, shortages), *self._smaller_pods(index, pod_set, shortages)]
            if remedies:
                yield from remedies
                return

    def _fewer_pods(self, index: int, pod_set: kueue.PodSet, shortages: Sequence[Shortage]) -> Iterator[_Remedy]:
        count = min(
            divide(min(shortage.available, shortage.maximum), max(1, divide(shortage.requested, pod_set.count)))
            for shortage in shortages
        )
        if 0 < count < pod_set.count and not self._is_pod_group:
            yield from self._run_pods(index, pod_set, count)

    def _run_pods(self, index: int, pod_set: kueue.PodSet, count: int) -> Iterator[_Remedy]:
        title = f"run {count} of {pod_set.count} pods at a time in pod set {pod_set.name}"
        if {owner.kind for owner in self._workload.metadata.owner_references} - {"Job"}:
            title = f"lower the pods of pod set {pod_set.name} from {pod_set.count} to {count}"
        yield from self._try(RemedyKind.LESS, title, self._with_pod_set(index, replace(pod_set, count=count)))

    @property
    def _is_pod_group(self) -> bool:
        """Whether the Workload is a group of plain pods, whose number they all state."""
        return any(owner.kind == "Pod" for owner in self._workload.metadata.owner_references)

    def _smaller_pods(self, index: int, pod_set: kueue.PodSet, shortages: Sequence[Shortage]) -> Iterator[_Remedy]:
        spec = pod_set.template.spec
        if len(spec.containers) != 1 or spec.init_containers:
            return
        container = spec.containers[0]
        requests, phrases = dict(container.resources.requests), list[str]()
        for shortage in shortages:
            each = divide(min(shortage.available, shortage.maximum), pod_set.count)
            if shortage.resource not in requests or each <= 0:
                return
            before = quota_amount(shortage.resource, requests[shortage.resource])
            after = display_amount(shortage.resource, each)
            phrases.append(f"requests.{shortage.resource} from {display_amount(shortage.resource, before)} to {after}")
            requests[shortage.resource] = after
        limits = {
            name: min(written, requests.get(name, written), key=exact)
            for name, written in container.resources.limits.items()
        }
        smaller = replace(container, resources=replace(container.resources, requests=requests, limits=limits))
        title = f"lower {' and '.join(phrases)} per pod"
        yield from self._try(RemedyKind.LESS, title, self._with_pod_spec(index, containers=(smaller,)))

    def _with_pod_spec(self, index: int, **fields: object) -> Snapshot:
        """Return the cluster with fields of the pod template of a pod set replaced."""
        pod_set = self._workload.spec.pod_sets[index]
        return self._with_pod_set(index, replace(pod_set, template=with_spec(pod_set.template, **fields)))

    def _with_pod_set(self, index: int, pod_set: kueue.PodSet) -> Snapshot:
        sets = list(self._workload.spec.pod_sets)
        sets[index] = pod_set
        return self._change(self._workload, pod_sets=tuple(sets))

    # --- other queues and flavors

    def _other_queues(self) -> Iterator[_Remedy]:
        namespace, own = self._workload.metadata.namespace, self._verdict.cluster_queue
        others = {
            local_queue.spec.cluster_queue: local_queue
            for local_queue in self._snapshot.of(kueue.LocalQueue)
            if local_queue.metadata.namespace == namespace and local_queue.spec.cluster_queue != own
        }
        fewest = sorted(others.items(), key=lambda item: len(self._pending_in(item[0])))
        for _, emptiest in fewest[:_MOST_QUEUED]:
            title = f"use LocalQueue {emptiest.metadata.name} (ClusterQueue {emptiest.spec.cluster_queue})"
            yield from self._try(
                RemedyKind.QUEUE, title, self._change(self._workload, queue_name=emptiest.metadata.name)
            )

    def _pending_in(self, queue: str) -> Sequence[Job]:
        return self._run.queues[queue].everyone if queue in self._run.queues else ()

    def _other_flavors(self) -> Iterator[_Remedy]:
        queue = self._run.queues[self._verdict.cluster_queue].queue
        flavors = self._run.cache.flavors
        for name in (name for name in queue.flavors if name in flavors):
            for index, pod_set in enumerate(self._workload.spec.pod_sets):
                spec = pod_set.template.spec
                taint = untolerated_taint(spec, flavors[name])
                if taint is None:
                    continue
                toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
                changed = self._with_pod_spec(index, tolerations=(*spec.tolerations, toleration))
                title = f"tolerate {taint_text(taint)} to use flavor {name}"
                yield from self._try(RemedyKind.FLAVOR, title, changed)

    def _priorities(self) -> Iterator[_Remedy]:
        own = self._job.priority
        held = {job.priority for jobs in self._run.cache.jobs.values() for job in jobs.values()}
        for priority in sorted(priority for priority in held if priority >= own):
            title = f"raise the priority from {own} to {priority + 1} or more"
            yield from self._try(RemedyKind.PRIORITY, title, self._change(self._workload, priority=priority + 1))

    def _more_quota(self) -> Iterator[_Remedy]:
        yield from self._raise_quota(self._verdict.cluster_queue, "nominalQuota", self._missing_amounts())

    def _more_borrowed(self) -> Iterator[_Remedy]:
        """Raise the borrowingLimit that keeps the queue from unused quota of its cohort."""
        yield from self._raise_limit(self._verdict.cluster_queue, "borrowingLimit")

    def _more_lent(self) -> Iterator[_Remedy]:
        """Raise the lendingLimit that keeps unused quota of another queue from the cohort."""
        own = self._run.queues[self._verdict.cluster_queue].queue
        for queue in self._snapshot.of(kueue.ClusterQueue):
            name = queue.metadata.name
            if queue is own or not own.cohort or queue.cohort != own.cohort:
                continue
            yield from self._raise_limit(name, "lendingLimit")

    def _raise_limit(self, name: str, field: str) -> Iterator[_Remedy]:
        """Raise a limit in the flavors in which it is set for all missing resources."""
        node = self._run.cache.tree.queues[name]
        limited = {
            flavor: missing
            for flavor, missing in self._missing_amounts().items()
            if None
            not in [
                getattr(node.quota(FlavorResource(flavor, resource)), QUOTA_FIELDS[field][0]) for resource in missing
            ]
        }
        yield from self._raise_quota(name, field, limited)

    def _missing_amounts(self) -> dict[str, dict[str, int]]:
        by_flavor: dict[str, dict[str, int]] = {}
        for shortage in self._verdict.shortages:
            missing = by_flavor.setdefault(shortage.flavor, {})
            missing[shortage.resource] = max(missing.get(shortage.resource, 0), shortage.missing_amount)
        return by_flavor

    def _raise_quota(self, name: str, field: str, by_flavor: Mapping[str, Mapping[str, int]]) -> Iterator[_Remedy]:
        """Raise `nominalQuota`, `borrowingLimit`, or `lendingLimit` of a queue's flavor by the missing amounts."""
        queue, node = self._run.queues[name].queue, self._run.cache.tree.queues[name]
        for flavor, missing in by_flavor.items():
            phrases, raised = [], {}
            for resource, amount in missing.items():
                quota = node.quota(FlavorResource(flavor, resource))
                before = getattr(quota, QUOTA_FIELDS[field][0]) or 0
                raised[resource] = display_amount(resource, plus(before, amount))
                phrases.append(f"{resource} from {display_amount(resource, before)} to {raised[resource]}")
            what = "the nominal quota" if field == "nominalQuota" else field
            title = f"raise {what} of flavor {flavor} in ClusterQueue {queue.metadata.name}: {', '.join(phrases)}"
            changed, patch = with_quota(queue, flavor, field, raised)
            yield from self._try(RemedyKind.QUOTA, title, self._replace_object(queue, changed), _target(queue), patch)

    def _cover_resources(self) -> Iterator[_Remedy]:
        """Give the queue quota for resources that none of its resource groups covers, in its first one."""
        queue = self._run.queues[self._verdict.cluster_queue].queue
        covered = {name for group in queue.spec.resource_groups for name in group.covered_resources}
        missing: Counter[str] = Counter()
        for pod_set in self._job.counted_pod_sets:
            missing.update({name: amount for name, amount in pod_set.requests.items() if name not in covered})
        if not +missing or not covered:
            return
        more = tuple(
            kueue.QueueResourceQuota(name=name, nominal_quota=display_amount(name, amount))
            for name, amount in (+missing).items()
        )
        first, *others = queue.spec.resource_groups
        flavors = tuple(replace(flavor, resources=(*flavor.resources, *more)) for flavor in first.flavors)
        group = replace(first, covered_resources=(*first.covered_resources, *missing), flavors=flavors)
        patch = [set_field("/spec/resourceGroups/0/coveredResources/-", quota.name) for quota in more]
        patch += [
            set_field(f"/spec/resourceGroups/0/flavors/{index}/resources/-", to_builtins(quota))
            for index in range(len(flavors))
            for quota in more
        ]
        quotas = " and ".join(f"{quota.name} with a quota of {quota.nominal_quota}" for quota in more)
        title = f"cover {quotas} in ClusterQueue {queue.metadata.name}"
        changed = self._change(queue, resource_groups=(group, *others))
        yield from self._try(RemedyKind.QUOTA, title, changed, _target(queue), patch)

    def _preempting(self) -> Iterator[_Remedy]:
        """Let the queue take back the quota that others of its cohort have borrowed, or preempt its own Workloads of
        lower priority."""
        queue = self._run.queues[self._verdict.cluster_queue].queue
        preemption = queue.preemption
        ways = []
        if queue.cohort and not preemption.is_in_cohort:
            ways.append(("reclaimWithinCohort", "Any", replace(preemption, reclaim_within_cohort="Any")))
        if not preemption.is_in_queue:
            own = replace(preemption, within_cluster_queue="LowerPriority")
            ways.append(("withinClusterQueue", "LowerPriority", own))
        for field, value, changed in ways:
            path = f"/spec/preemption/{field}"
            patch = set_field(path, value) if queue.spec.preemption else set_field("/spec/preemption", {field: value})
            title = f"set {field} of ClusterQueue {queue.metadata.name} to {value}"
            snapshot = self._change(queue, preemption=changed)
            yield from self._try(RemedyKind.PREEMPTION, title, snapshot, _target(queue), [patch])

    # --- the order of the queue, topology, and namespaces

    def _raise_priority(self) -> Iterator[_Remedy]:
        first = self._run.jobs[self._verdict.behind]
        if self._verdict.is_head_too_large:
            title = f"lower what {first.key} requests, or delete its owner: it can never fit its queue"
            yield from self._try(RemedyKind.LESS, title, self._with_condition([first.key], "Finished"))
        title = f"raise the priority from {self._job.priority} to {first.priority + 1} or more"
        yield from self._try(RemedyKind.PRIORITY, title, self._change(self._workload, priority=first.priority + 1))
        queue = self._run.queues[self._verdict.cluster_queue].queue
        title = f"set queueingStrategy of ClusterQueue {queue.metadata.name} to BestEffortFIFO"
        changed = self._change(queue, queueing_strategy="BestEffortFIFO")
        yield from self._try(RemedyKind.ORDER, title, changed)

    def _other_topology(self) -> Iterator[_Remedy]:
        """Prefer a topology instead of requiring it, or reduce the number of pods."""
        for index, pod_set in enumerate(self._workload.spec.pod_sets):
            request = pod_set.topology_request
            if request is None:
                continue
            if request.required is not None:
                title = f"make {request.required} preferred instead of required for pod set {pod_set.name}"
                wish = replace(request, required=None, preferred=request.required)
                changed = self._with_pod_set(index, replace(pod_set, topology_request=wish))
                yield from self._try(RemedyKind.TOPOLOGY, title, changed)
            least, most, best = 1, 0 if self._is_pod_group else pod_set.count - 1, None
            while least <= most:
                count = (least + most) // 2
                remedy = next(self._run_pods(index, pod_set, count), None)
                best = remedy or best
                least, most = (least, count - 1) if remedy is None else (count + 1, most)
            if best is not None:
                yield best

    def _label_namespace(self) -> Iterator[_Remedy]:
        """Labels for the ClusterQueue's namespace selector, which selects no namespace if it is missing."""
        queue = self._run.queues[self._verdict.cluster_queue].queue
        selector = queue.spec.namespace_selector
        if selector is None:
            title = f"set namespaceSelector of ClusterQueue {queue.metadata.name} to {{}}, which selects all namespaces"
            changed = self._change(queue, namespace_selector=LabelSelector())
            patch = [set_field("/spec/namespaceSelector", {})]
            yield from self._try(RemedyKind.NAMESPACE, title, changed, _target(queue), patch)
            return
        wanted = selector.match_labels
        if not wanted:
            return
        name = self._workload.metadata.namespace
        title = f"label namespace {name} with {', '.join(f'{key}={value}' for key, value in sorted(wanted.items()))}"
        namespaces = self._snapshot.namespaces
        changed = replace(self._snapshot, namespaces={**namespaces, name: {**namespaces.get(name, {}), **wanted}})
        target = Target("v1", "Namespace", name)
        patch = [set_field(f"/metadata/labels/{pointer(key)}", value) for key, value in sorted(wanted.items())]
        yield from self._try(RemedyKind.NAMESPACE, title, changed, target, patch)

    # --- completion of others

    def _others_ready(self) -> Iterator[_Remedy]:
        names = self._verdict.not_ready
        title = f"wait until the pods of {', '.join(names[:_MOST_FINISHING])} are ready"
        yield from self._try(RemedyKind.WAIT, title, self._with_condition(names, "PodsReady"))

    def _await_preemption(self) -> Iterator[_Remedy]:
        """Yield the wait for the Workloads that Kueue preempts by itself."""
        if self._verdict.is_preempting:
            names = [victim.workload for victim in self._verdict.victims]
            title = f"wait until the pods of {list_names(names, 3, conjunction='and')} have stopped"
            yield from self._try(RemedyKind.WAIT, title, self._with_condition(names, "Finished"))

    def _await_completion(self) -> Iterator[_Remedy]:
        """The Workload whose completion suffices, or the smallest set, largest first."""
        wanted = {FlavorResource(shortage.flavor, shortage.resource) for shortage in self._verdict.shortages}
        if not wanted or self._verdict.is_preempting:
            return
        jobs = (job for jobs in self._run.cache.jobs.values() for job in jobs.values() if not job.never_finishes)
        held = [job for job in jobs if job.uses_any(wanted)]
        held.sort(key=lambda job: (-max(job.usage.get(fr, 0) for fr in wanted), job.key))
        groups = [[job] for job in held[:_MOST_FINISHING]]
        groups += [held[:number] for number in range(2, min(len(held), _MOST_FINISHING) + 1)]
        enough = [group for group in groups if self._fits_without(group)]
        for group in enough[:_MOST_QUEUED]:
            names = [job.key for job in group]
            verb = "finish" if names[1:] else "finishes"
            title = f"wait until {list_names(names, len(names), conjunction='and')} {verb}"
            yield from self._try(RemedyKind.WAIT, title, self._with_condition(names, "Finished"))

    def _fits_without(self, jobs: Sequence[Job]) -> bool:
        """Return whether it fits if others finish and nothing comes before it."""
        run, mine = self._run, self._job
        held = [job for job in jobs if job.key in run.cache.jobs[run.cache.queue_of(job).name]]
        with run.cache.without(held):
            entry = run.evaluate(mine, is_known=False)
        return entry is not None and entry.is_admitted

    def _with_condition(self, keys: Collection[str], kind: str) -> Snapshot:
        """Return the cluster with a condition set on Workloads."""
        added = TimedCondition(type=kind, status="True", reason="Succeeded")
        workloads = []
        for workload in self._snapshot.of(kueue.Workload):
            if workload.key in keys:
                status = replace(workload.status, conditions=(*workload.status.conditions, added))
                workload = replace(workload, status=status)
            workloads.append(workload)
        return self._snapshot.with_records(kueue.Workload, workloads)

    # --- inactive queues

    def _resume(self) -> Iterator[_Remedy]:
        local = self._run.local_queue(self._job)
        waiting = self._run.queues.get(local.spec.cluster_queue) if local is not None else None
        queues = (local, waiting.queue if waiting is not None else None)
        for stopped in (queue for queue in queues if queue is not None and queue.spec.is_stopped):
            title = f"set stopPolicy of {type(stopped).__name__} {stopped.metadata.name} to None"
            changed = self._change(stopped, stop_policy=None)
            patch = [set_field("/spec/stopPolicy", "None")]
            yield from self._try(RemedyKind.RESUME, title, changed, _target(stopped), patch)
        known = self._run.cache.flavors
        missing = [name for name in (waiting.queue.flavors if waiting is not None else ()) if name not in known]
        if missing:
            missing_flavors = [kueue.ResourceFlavor(metadata=ObjectMeta(name=name)) for name in missing]
            flavors = [*self._snapshot.of(kueue.ResourceFlavor), *missing_flavors]
            near = [hint for name in missing if (hint := nearest(name, known))]
            title = f"create ResourceFlavor {', '.join(missing)}{f' ({near[0]})' if near else ''}"
            yield from self._try(RemedyKind.RESUME, title, self._snapshot.with_records(kueue.ResourceFlavor, flavors))


def _target(queue: kueue.ClusterQueue | kueue.LocalQueue) -> Target:
    return Target(kueue.KUEUE_API, type(queue).__name__, queue.metadata.name, queue.metadata.namespace)

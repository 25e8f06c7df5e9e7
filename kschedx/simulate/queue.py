"""A queue of pods and gangs, one decision after the other, each on the cluster that the earlier decisions left."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import compress, islice, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, assert_never

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.workloads import create, ends_job, evict, has_ephemeral_claims, is_recreated, ordinal_of
from kschedx.errors import InputError, UndecidableError
from kschedx.framework.cycle import Outcome
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.moving import Decision, Run, shares_columns
from kschedx.framework.replicas import Pick
from kschedx.framework.scheduler import queue_order
from kschedx.kube import other_schedulers as scheduler_plugins
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.documents import Document
from kschedx.kube.types import Pod, PodGroup, controller_of
from kschedx.progress import Phase, report_progress
from kschedx.simulate.unknown_facts import UnknownFacts
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray, cluster_rows, each_cluster_row
from kschedx.snapshot.pods import PodTable, find_group, group_name, group_priority, members_of
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import StorageChange

if TYPE_CHECKING:
    from kschedx.framework.moving.pod_groups import GroupTrial

# Pods that are placed together or not at all: the pod groups of scheduling.k8s.io with a gang policy, and those of
# Coscheduling. kube-scheduler takes all pending members from its queue when it reaches one of them, tries them one
# after the other, and binds them if at least minCount have a node then. A member that preempts pods is tried as placed,
# and the victims, which several members may share, are evicted after the cycle. Without enough members, or with
# victims, all are returned to the queue (pkg/scheduler/schedule_one_podgroup.go). Before 1.36, and with Coscheduling,
# members on their nodes wait for each other and time out in the end. Coscheduling rejects them as soon as one is
# unschedulable.

_GANG_SCHEDULING = "GangScheduling"
_COSCHEDULING = "Coscheduling"
_WAITS_FOR_PREEMPTION = "pod group is unschedulable, pod group is waiting for preemption to complete"


class _QueuedGang(Struct, frozen=True):
    """A gang by namespace and name; equal for all members."""

    namespace: str
    name: str
    min_count: int  # 0 for a group whose pods need not start together
    is_of_label: bool = False  # whether it is a gang of Coscheduling, whose members name it in a label

    def missing_count(self, run: Run) -> int:
        """Return how many more members need a node."""
        pods = run.cluster.pods
        placed = self._members(pods) & (pods.node >= 0)
        return self.min_count - int(np.count_nonzero(placed))

    def _members(self, pods: PodTable) -> BoolArray:
        if not self.is_of_label:
            return members_of(pods, self.namespace, self.name)
        label = scheduler_plugins.POD_GROUP_LABEL
        mine = pods.labels.where(lambda labels: labels.get(label) == self.name)
        return mine & pods.in_namespace(self.namespace)

    def pending_rows(self, run: Run) -> list[int]:
        """Return the rows of members without a node."""
        pods = run.cluster.pods
        return [int(row) for row in np.flatnonzero(self._members(pods) & (pods.node < 0))]

    def group(self, run: Run) -> PodGroup | None:
        """Return the PodGroup; None for a gang of Coscheduling."""
        return None if self.is_of_label else find_group(run.snapshot.pod_groups, self.namespace, self.name)

    def message(self, run: Run, fits: Iterable[bool]) -> str:
        """The message of a member that fits a node if too few others do. `fits`: whether each member fits one."""
        if self.is_of_label:
            from kschedx.plugins.coscheduling import SENT_AWAY

            return SENT_AWAY
        from kschedx.framework.moving.pod_groups import shortfall

        running = self.min_count - self.missing_count(run)
        scheduled, remaining = shortfall(fits, self.min_count, running)
        text = run.scheduler.release.messages.gang_lacks_members
        return text.format(minimum=self.min_count, scheduled=scheduled, remaining=remaining)


def _gang_of(run: Run, row: int) -> _QueuedGang | None:
    """Return the gang with which a pod is scheduled; None if it has none, or if its pods are scheduled one by one."""
    pods, namespace = run.cluster.pods, run.cluster.pods.namespaces[row]
    if run.snapshot.pod_groups:
        release = run.scheduler.release
        name = group_name(pods.specs[row], of_workloads=release.behavior.gangs_are_of_workloads)
        group = None if name is None else find_group(run.snapshot.pod_groups, namespace, name)
        if name is not None and group is not None:
            gang = group.spec.scheduling_policy.gang
            if gang is not None and run.runs_permit(row, _GANG_SCHEDULING):
                return _QueuedGang(namespace, name, gang.min_count)
            if gang is None and release.enabled("GenericWorkload") and not release.behavior.gangs_are_of_workloads:
                return _QueuedGang(namespace, name, 0)
    label = pods.labels[row].get(scheduler_plugins.POD_GROUP_LABEL)
    if label and run.runs_permit(row, _COSCHEDULING):
        for own_gang in run.snapshot.of(scheduler_plugins.Gang):
            if (own_gang.metadata.namespace, own_gang.metadata.name) == (namespace, label):
                return _QueuedGang(namespace, label, own_gang.spec.min_member, is_of_label=True)
    return None


# A queue of pods, one decision after the other, each on the cluster that the earlier decisions left. The order is that
# of the configuration's QueueSort plugin, with a pod's creation as its time in the queue. A pod that no API server has
# stored comes before stored ones, and a recreated pod comes last. A pod that preempts others is decided again at once.
# Pending pods are tried again as long as a round changes something. A gang is decided with its first member.

MOST_ROUNDS = 1000
"""The largest number of rounds. A round that changes nothing is the last. Since evictions only go down in priority,
queues end long before this; a queue that does not is an error."""

MANY_IDENTICAL = 10_000  # the number of identical pods in a row from which they are one step
_FEW_IDENTICAL = 256  # the number of identical pods in the first batch: most often one of them does not fit any more

_QueuePlace = tuple[tuple[object, ...], int]
"""A pod's position in the queue: the lowest comes first, and the number is its row."""

_SCHEDULED = Outcome.SCHEDULED  # member lookup is slow
_LAST = "~"  # sorts after every timestamp


class IdenticalPodsDocument(Document, frozen=True):
    """Identical pods that were decided in a row after the one of a step."""

    pods: int
    first: str
    last: str
    nodes: Mapping[str, int]  # the number of pods on each node; the others stay pending with the step's message


class StepDocument(Document, frozen=True, omit_defaults=True):
    """One decision."""

    pod: str
    outcome: Outcome
    best_nodes: tuple[str, ...] = ()
    node: str = ""
    message: str | None = None
    nominated_node: str | None = None
    tied_candidates: tuple[str, ...] | None = None
    victims: tuple[str, ...] | None = None
    more: IdenticalPodsDocument | None = None


class _IdenticalPods(Struct, frozen=True):
    """Identical pods that were decided in a row after another one."""

    pods: IntArray
    nodes: IntArray  # `(pod,)`, -1 for pods that stay pending

    @classmethod
    def of(cls, pods: IntArray, nodes: IntArray) -> _IdenticalPods:
        return cls(pods.astype(np.int32), nodes.astype(np.int32))


class QueueStep(Struct, frozen=True, kw_only=True, gc=False):
    """One decision. Nodes and pods are rows of the run."""

    run: Run
    pod: int
    key: str  # `namespace/name`
    decision: Decision | None  # None if kschedx cannot decide
    undecided: str = ""  # what kschedx would need to decide
    node: ClusterRow | None = None
    nominated: ClusterRow | None = None
    tied: tuple[ClusterRow, ...] = ()  # the nodes among which kube-scheduler would pick one for preemption
    victims: tuple[int, ...] = ()
    victim_keys: tuple[str, ...] = ()
    released: Mapping[str, ResourceClaim | None] = {}
    """Device claims that were deallocated from the pod, in their new state."""
    more: _IdenticalPods | None = None

    @property
    def preempts(self) -> bool:
        """Whether preemption makes room for the pod, or for its group, whose pods need not all be nominated."""
        return self.nominated is not None or bool(self.victims)

    @property
    def message(self) -> str:
        """kube-scheduler's message; if kschedx cannot decide, what it would need to."""
        return self.undecided if self.decision is None else self.decision.message

    def names(self, nodes: Iterable[ClusterRow]) -> list[str]:
        names = self.run.cluster.node_names
        return [names[row] for row in nodes]

    @property
    def outcome(self) -> Outcome:
        return Outcome.UNDECIDED if self.decision is None else self.decision.outcome

    @property
    def more_nodes(self) -> dict[str, int]:
        """Nodes to the number of pods of `more` on each."""
        counts = np.bincount([] if self.more is None else self.more.nodes[self.more.nodes >= 0])
        rows = np.flatnonzero(counts)
        return dict(zip(self.names(each_cluster_row(ClusterRows(rows))), counts[rows].tolist(), strict=True))

    @property
    def document(self) -> StepDocument:
        more, key = None, self.run.cluster.pods.key
        if self.more is not None:
            pods = self.more.pods
            more = IdenticalPodsDocument(len(pods), key(int(pods[0])), key(int(pods[-1])), self.more_nodes)
        if self.decision is not None and self.outcome is Outcome.SCHEDULED:
            assert self.node is not None, "a scheduled pod has a node"
            best = tuple(sorted(self.names(each_cluster_row(self.decision.best))))
            return StepDocument(self.key, self.outcome, best_nodes=best, node=self.names([self.node])[0], more=more)
        return StepDocument(
            self.key,
            self.outcome,
            message=self.message,
            nominated_node=None if self.nominated is None else self.names([self.nominated])[0],
            tied_candidates=tuple(sorted(self.names(self.tied))) if self.nominated is not None else None,
            victims=tuple(sorted(self.victim_keys)) if self.preempts else None,
            more=more,
        )


class _Departure(Struct, frozen=True, kw_only=True):
    """A pod that lost its node after so many steps, but not by preemption."""

    steps: int
    pod: int
    waits: bool  # whether its replacement is pending


class _Deletion(Struct, frozen=True, kw_only=True):
    """A pod that a controller deleted after so many steps."""

    steps: int
    pod: int


class _Creation(Struct, frozen=True, kw_only=True):
    """Pods that a controller created after so many steps, with the objects that it created for them."""

    steps: int
    claims: StorageChange
    contents: Mapping[str, object]
    pods: Sequence[Pod]


_QueueEvent: TypeAlias = _Departure | _Deletion | _Creation


def replay(run: Run, event: _QueueEvent) -> None:
    """Repeat an event on a cluster in the state from before the event."""
    match event:
        case _Departure():
            evict(run, event.pod, waits=event.waits)
        case _Deletion():
            run.delete(event.pod)
        case _Creation():
            run.cluster.set_storage(event.claims)
            run.cluster.set_contents(event.contents)
            if event.pods:
                create(run, event.pods)
        case _:
            assert_never(event)


class QueueMark(Struct, frozen=True, kw_only=True):
    """The length of a queue's record at one moment."""

    steps: int
    between: int
    evicted: Mapping[int, int]
    recreated: Mapping[int, int]
    gated: Mapping[int, None]
    of_others: Mapping[int, None]
    queued: Mapping[int, None]


class Queue:
    """Decides about pods until nothing changes any more."""

    def __init__(
        self, run: Run, pick: Pick, *, recreate: bool = True, joins: bool = False, known: Callable[[str], bool]
    ) -> None:
        """`recreate`: controllers recreate evicted pods. `joins`: identical pods that are assigned in a row are one
        step, however few. `known`: whether pods of a schedulerName are scheduled."""
        self.move_to(run)
        self._joins = joins
        self._pick = pick
        self._recreate = recreate
        self._known = known
        self.delays: Callable[[int], bool] = lambda _: False
        """Whether the controller of an evicted pod of a StatefulSet recreates it only once others are ready."""
        self._created: dict[int, str] = {}
        self._unknown = UnknownFacts(run.snapshot)
        self._is_open = False  # whether the last decision depends on unknown facts
        self.steps: list[QueueStep] = []
        self.between: list[_QueueEvent] = []  # events of drains and controllers between the steps
        self.evicted: dict[int, int] = {}  # pods that were preempted and not recreated, to the step of their preemptor
        self.recreated: dict[int, int] = {}  # pods that were preempted and recreated, to the step of their preemptor
        self.gated: dict[int, None] = {}
        self.of_others: dict[int, None] = {}
        """Pods that are pending for a scheduler which the configuration does not have."""
        self._trial: GroupTrial | None = None  # the placement of the group that is being decided
        self._latest = (Decision(outcome=Outcome.UNDECIDED),) * 2  # the last shortened decision, before and after
        self._given_up: set[_QueuedGang] = set()
        """Gangs that preempted pods and still stayed pending; they would repeat it forever."""
        self.queued: dict[int, None] = {}  # every pod that was ever in the queue, in the order of arrival

    def order(self, rows: Iterable[int]) -> list[int]:
        """Return the pods that a scheduler of the configuration would take, in its order."""
        pods = self._run.cluster.pods
        waiting = [row for row in rows if not pods.deletion_timestamps[row]]
        codes, specs = pods.specs.codes, pods.specs.values
        is_known = {code: self._known(specs[code].scheduler_name) for code in {int(codes[row]) for row in waiting}}
        taken = [row for row in waiting if is_known[codes[row]]]
        self.of_others |= {row: None for row in waiting if not is_known[codes[row]]}
        gated = pods.specs.take(np.array(taken, dtype=np.int64)).where(lambda spec: bool(spec.scheduling_gates))
        self.gated |= dict.fromkeys(compress(taken, gated))
        return [row for _, row in self._places(compress(taken, ~gated))]

    @property
    def created(self) -> Collection[int]:
        """Rows of the pods that were created or recreated while the cluster moved."""
        return self._created.keys()

    def forget(self, kept: Collection[int]) -> None:
        """Treat all pods except these as existing from the start."""
        self._created = {row: created for row, created in self._created.items() if row in kept}

    def is_last(self, rows: Iterable[int]) -> None:
        """Treat these pods as created only now."""
        for row in rows:
            self._created[row] = _LAST

    def is_first(self, row: int) -> None:
        """Treat this pod as pending for longer than any other of its priority."""
        self._created[row] = ""

    def mark(self) -> QueueMark:
        """Return the length of the record, for `rewind`."""
        return QueueMark(
            steps=len(self.steps),
            between=len(self.between),
            evicted=dict(self.evicted),
            recreated=dict(self.recreated),
            gated=dict(self.gated),
            of_others=dict(self.of_others),
            queued=dict(self.queued),
        )

    def rewind(self, mark: QueueMark) -> None:
        """Forget the decisions since the mark; the cluster is as it was then."""
        del self.steps[mark.steps :]
        del self.between[mark.between :]
        self.evicted, self.recreated = dict(mark.evicted), dict(mark.recreated)
        self.gated, self.of_others, self.queued = dict(mark.gated), dict(mark.of_others), dict(mark.queued)

    def _places(self, rows: Iterable[int]) -> list[_QueuePlace]:
        """Return the positions of these pods, in the order in which the scheduler takes them."""
        run = self._run
        has_groups = bool(run.snapshot.pod_groups) and run.scheduler.release.behavior.groups_are_queued
        if self._sort_key is not None or has_groups:
            return sorted(map(self._place, rows))
        pods, created, some = run.cluster.pods, self._created, [*rows]
        ranks, stamps = (-pods.priorities[some]).tolist() if some else [], pods.creation_timestamps
        return sorted(((rank, created.get(row, stamps[row] or "")), row) for rank, row in zip(ranks, some, strict=True))

    def _own_place(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, since) if self._sort_key is None else self._sort_key(pod, since)

    def _place(self, row: int) -> _QueuePlace:
        pods = self._run.cluster.pods
        since = self._created.get(row, pods.creation_timestamps[row] or "")
        own = self._own_place(pods[row], since)
        queues_groups = self._run.snapshot.pod_groups and self._run.scheduler.release.behavior.groups_are_queued
        gang = _gang_of(self._run, row) if queues_groups else None
        if gang is None or (group := gang.group(self._run)) is None:
            return own, row
        priority = group_priority(group, self._run.snapshot.priority_classes)
        first = min(self._created.get(row, pods.creation_timestamps[row] or "") for row in gang.pending_rows(self._run))
        of_group = replace(pods[row], spec=replace(pods.specs[row], priority=priority))
        return (*self._own_place(of_group, first), *own), row

    def move_to(self, run: Run) -> None:
        """Continue with the cluster after a manual change; the rows of its pods are the same."""
        self._run, self._sort_key = run, queue_order(run.scheduler)

    def evict_many(self, rows: Sequence[int]) -> None:
        """Evict many pods without preemption; their replacements are pending."""
        if not rows:
            return
        run = self._run
        self.between += [_Departure(steps=len(self.steps), pod=row, waits=True) for row in rows]
        own_claims = run.cluster.pods.specs.take(np.array(rows, dtype=np.int64)).where(has_ephemeral_claims)
        if not run.snapshot.devices.claims and not own_claims.any():
            run.cluster.remove_many(rows)
            return
        for row in rows:
            evict(run, row, waits=True)

    def delete(self, row: int) -> None:
        """Delete a running or pending pod, as a controller does."""
        self.between.append(_Deletion(steps=len(self.steps), pod=row))
        self._run.delete(row)

    def create(self, cluster: Snapshot, pods: Sequence[Pod]) -> list[int]:
        """Create pods, as a controller does; `cluster` is the current cluster with the objects that are created for
        them. Without pods, only objects other than pods, nodes, and storage are replaced."""
        known, new = self._run.snapshot.storage, cluster.storage
        claims = {key: claim for key, claim in new.claims.items() if known.claims.get(key) is not claim}
        names = sorted({claim.spec.volume_name for claim in claims.values()} & new.volumes.keys())
        volumes = {name: new.volumes[name] for name in names if known.volumes.get(name) is not new.volumes[name]}
        event = _Creation(
            steps=len(self.steps),
            claims=StorageChange(claims=claims, volumes=volumes),
            contents=self._run.cluster.other_contents(cluster),
            pods=pods,
        )
        self.between.append(event)
        before = len(self._run.cluster.pods)
        replay(self._run, event)
        rows = [*range(before, before + len(pods))]
        self.is_last(rows)
        return rows

    def run(self, rows: Iterable[int], *, joins: bool = False) -> None:
        """Schedule these pods in queue order, together with the recreated victims of their preemption. `joins`: many
        identical pods in a row are one step. Raises `InputError` if the queue does not end."""
        self._given_up.clear()
        waiting = self._places(rows)
        for _, row in waiting:
            self.queued[row] = None
        decided = 0
        for _ in range(MOST_ROUNDS):
            behind, moved = list[_QueuePlace](), False
            at, identical = 0, self._identical(waiting)
            while at < len(waiting):
                place, at = waiting[at], at + 1
                report_progress(Phase.SCHEDULING, decided := decided + 1, decided + len(waiting) - at, "pods")
                gang = _gang_of(self._run, place[1])
                if gang is None and (known := self._place_known(waiting, at - 1, identical, decided, joins=joins)):
                    at, decided, moved = at + known - 1, decided + known - 1, True
                    continue
                if gang is None:
                    placed, again = self._decide(place[1], waiting[at][1] if at < len(waiting) else None)
                    left = [] if placed else [place]
                    if again is None and joins:
                        more = self._join_identical(waiting, at, identical, decided)
                        left += () if placed else waiting[at : at + more]
                        at, decided = at + more, decided + more
                else:
                    its, others = [place], list[_QueuePlace]()
                    for other in waiting[at:]:
                        (its if _gang_of(self._run, other[1]) == gang else others).append(other)
                    waiting, at = others, 0
                    left, again = self._decide_gang(gang, its)
                    placed = len(left) < len(its)
                moved |= placed or again is not None
                for other in map(self._place, again or ()):
                    insort(waiting, other, lo=at)
                    self.queued[other[1]] = None
                behind += left
            if not moved:
                return
            waiting = sorted(behind)
        restless = ", ".join(self._run.cluster.pods.key(row) for _, row in waiting[:3])
        phrase = f"the queue does not end: pods are still created and deleted after {MOST_ROUNDS:,} rounds"
        raise InputError(phrase, hint=f"waiting: {restless}")

    def decide_without_preemption(self, row: int) -> None:
        """Decide one pod, which may stay pending, and preempt nothing for it."""
        self.queued[row] = None
        self._decide(row, preempts=False)

    def _identical(self, places: Sequence[_QueuePlace]) -> Mapping[int, int]:
        """Return a number for each of these pods, equal for identical ones; pods that are identical to no other may be
        left out."""
        pods, rows = self._run.cluster.pods, np.array([row for _, row in places], dtype=np.int64)
        if len(places) < 2 or self._run.snapshot.devices.extended_resource_claims:
            return {}
        numbers = zip(
            rows.tolist(), pods.class_numbers(rows).tolist(), pods.specs.take(rows).where(shares_columns), strict=True
        )
        return {row: number for row, number, shares in numbers if shares and not pods.deletion_timestamps[row]}

    def _place_known(
        self, waiting: Sequence[_QueuePlace], at: int, identical: Mapping[int, int], decided: int, *, joins: bool
    ) -> int:
        """Assign identical pods from this place of the queue on, as long as their nodes are known from earlier pods.
        Returns how many these are: 0 if there are so many that they are one step (`joins`)."""
        row, pods = waiting[at][1], self._run.cluster.pods
        self._is_open = self._unknown.may_matter(self._run, row)
        if row not in identical or self._is_open or pods.nominations or (joins and _are_many(waiting, at, identical)):
            return 0
        ties = list[ClusterRows]()
        first, same = self._run.known_decision(row) if self._joins else None, _identical_rows(waiting, at, identical)
        rows, nodes = self._bind_identical(same, decided, len(waiting) - at, ties if first is None else None)
        placed, small = rows.tolist(), self._row_type
        if first is not None and placed:
            step = self._step(row, first, ClusterRow(int(nodes[0])))
            self.steps.append(replace(step, more=_IdenticalPods.of(rows[1:], nodes[1:]) if len(placed) > 1 else None))
            return len(placed)
        for place, key, best, node in zip(placed, pods.keys(placed), ties, each_cluster_row(nodes), strict=True):
            decision = Decision(outcome=_SCHEDULED, best=ClusterRows(best.astype(small)))
            self.steps.append(QueueStep(run=self._run, pod=place, key=key, decision=decision, node=node))
        return len(placed)

    def _join_identical(
        self, waiting: Sequence[_QueuePlace], at: int, identical: Mapping[int, int], decided: int
    ) -> int:
        """Make the next pods in the queue a part of the last step, if many are identical to its pod and placed like it.
        Returns how many these are."""
        run, step = self._run, self.steps[-1]
        if self._is_open or step.decision is None or step.released or run.cluster.pods.nominations:
            return 0
        if not _are_many(waiting, at - 1, identical) or run.known_decision(waiting[at][1]) is None:
            return 0
        rows = np.array([*_identical_rows(waiting, at, identical)], dtype=np.int64)
        nodes = ClusterRows(np.full(len(rows), -1))
        if step.node is not None:
            rows, nodes = self._bind_identical(iter(rows.tolist()), decided, len(waiting) - at, None)
        self.steps[-1] = replace(step, more=_IdenticalPods.of(rows, nodes)) if len(rows) else step
        return len(rows)

    def _bind_identical(
        self, same: Iterator[int], decided: int, left: int, ties: list[ClusterRows] | None
    ) -> tuple[IntArray, ClusterRows]:
        """Return the first of some identical pods, which `Run.bind_identical` assigns, and their nodes. `decided` and
        `left` are the numbers of pods for the progress."""
        rows, nodes, size = np.zeros(0, dtype=np.int64), cluster_rows([]), _FEW_IDENTICAL

        def seen(more: int) -> None:
            report_progress(Phase.SCHEDULING, decided + len(nodes) + more, decided + left, "pods")

        while size:
            batch = np.array([*islice(same, size)], dtype=np.int64)
            more = self._run.bind_identical(batch, self._pick, ties, seen, ends=len(batch) < size)
            rows, nodes = np.concatenate([rows, batch[: len(more)]]), ClusterRows(np.concatenate([nodes, more]))
            size = 2 * size if len(more) == size else 0
        return rows, nodes

    def _decide_gang(self, gang: _QueuedGang, places: list[_QueuePlace]) -> tuple[list[_QueuePlace], list[int] | None]:
        """The members that stay pending (all if too few fit a node), and the recreated pods as `_decide` does."""
        if gang in self._given_up:
            return places, None
        members = [row for _, row in places]
        again: list[int] | None = None
        has_preempted = False
        behavior = self._run.scheduler.release.behavior
        is_by_pod = gang.is_of_label or behavior.gangs_are_of_workloads
        preempts = is_by_pod or behavior.group_members_preempt
        while True:
            mark, first = self._run.cluster.mark(), len(self.steps)
            try:
                chosen = self._placement_of(gang, members)
            except UndecidableError as error:
                self.steps += [self._undecided_step(row, str(error)) for row in members]
                return places, again
            if isinstance(chosen, Decision):
                self.steps += [self._step(row, chosen) for row in members]
                return places, again
            self._trial = chosen
            left: list[_QueuePlace] = []
            with nullcontext() if gang.is_of_label else self._run.group_cycle():
                for place in places:
                    placed, back = self._decide(place[1], preempts=preempts, is_member=not is_by_pod)
                    if back is not None:
                        again = [*(again or ()), *back]
                    if not placed:
                        left.append(place)
            self._trial = None
            steps = self.steps[first:]
            awaits_victims = any(step.node is not None and step.nominated is not None for step in steps)
            fits = len(left) < len(places) and gang.missing_count(self._run) <= 0
            if fits and not awaits_victims:
                return left, again
            del self.steps[first:]
            self._run.cluster.revert(mark)
            message = gang.message(self._run, [step.node is not None for step in steps])
            if awaits_victims:
                message = _WAITS_FOR_PREEMPTION if fits else message
                again = [*(again or ()), *self._take_back(steps, message, is_nominated=fits)]
                continue
            try:
                preempted = None if has_preempted else self._preempt_for_gang(gang, members, steps)
            except UndecidableError as error:
                self.steps += [self._undecided_step(row, str(error)) for row in members]
                return places, again
            if preempted is None:
                break
            has_preempted, again = True, [*(again or ()), *preempted]
        self._take_back(steps, message, is_nominated=False)
        if again is not None:
            self._given_up.add(gang)
        return places, again

    def _placement_of(self, gang: _QueuedGang, members: Sequence[int]) -> GroupTrial | Decision | None:
        """Return the placement of the group: None if nothing limits it, and a decision if there is none. Raises
        `UndecidableError`."""
        group = gang.group(self._run)
        if group is None or group.spec.scheduling_constraints is None:
            return None
        from kschedx.framework.moving.pod_groups import choose_placement

        profile = self._run.profile_of(members[0])
        missing = gang.missing_count(self._run)
        chosen = choose_placement(self._run, group, members, missing, profile, self._pick)
        if chosen.placements.problem is not None:
            return chosen.placements.problem
        if len(chosen.best) < 2:
            return chosen.shown
        # a node identifies its placement
        by_node = {ClusterRow(int(it.placement.nodes[0])): it for it in chosen.best if it.placement.nodes is not None}
        return by_node[self._pick(cluster_rows(sorted(by_node)))]

    def _preempt_for_gang(self, gang: _QueuedGang, members: list[int], steps: list[QueueStep]) -> list[int] | None:
        """Preempt pods for the group as a whole. Returns the recreated victims; None if preemption does not help."""
        group = gang.group(self._run)
        if group is None:
            return None
        from kschedx.framework.moving.pod_groups import preempt_for_group

        run, missing = self._run, gang.missing_count(self._run)
        preemption = preempt_for_group(run, group, members, missing, run.profile_of(members[0]), self._pick)
        if not preemption.victims:
            return None
        keys = tuple(run.cluster.pods.keys(preemption.victims))
        first = replace(steps[0], victims=preemption.victims, victim_keys=keys)
        return self._take_back([first, *steps[1:]], preemption.message, is_nominated=True)

    def _take_back(self, steps: Sequence[QueueStep], message: str, *, is_nominated: bool) -> list[int]:
        """Record the decisions of a group that is not placed: its victims are gone, and no member has a node. If it
        fits then, its members are nominated. Returns the recreated victims."""
        waits, again = Decision(outcome=Outcome.UNSCHEDULABLE, message=message), list[int]()
        for step in steps:
            again += self._evict([victim for victim in step.victims if self._run.cluster.pods.node[victim] >= 0])
            self._run.release(step.released)
            if step.nominated is not None:
                self._clear_lower_nominations(step.pod, step.nominated)
            if step.node is None:
                self.steps.append(step)
                continue
            decision = step.decision if is_nominated and step.nominated is not None else waits
            nominated = step.node if is_nominated else None
            self.steps.append(replace(step, decision=decision, node=None, nominated=nominated))
        for step in steps:
            self._run.cluster.nominate(step.pod, step.node if is_nominated else None)
        return again

    def _undecided_step(self, row: int, why: str) -> QueueStep:
        return QueueStep(run=self._run, pod=row, key=self._run.cluster.pods.key(row), decision=None, undecided=why)

    def _step(self, row: int, decision: Decision, node: ClusterRow | None = None) -> QueueStep:
        return QueueStep(
            run=self._run, pod=row, key=self._run.cluster.pods.key(row), decision=self._short(decision), node=node
        )

    def _decide(
        self, row: int, then: int | None = None, *, preempts: bool = True, is_member: bool = False
    ) -> tuple[bool, list[int] | None]:
        """Return whether the pod is placed, and the recreated victims; None if there are no victims and no deallocated
        devices. `then` is the next pod in the queue; `preempts`: the pod may preempt others. `is_member`: its group
        is decided as a whole, so the pod is placed beside its victims, which are evicted later."""
        again: list[int] | None = None
        while True:
            try:
                decision = self._decision(row)
            except UndecidableError as error:
                self.steps.append(self._undecided_step(row, str(error)))
                return False, again
            if decision.outcome is _SCHEDULED:
                tried = None if self._trial is None else self._trial.nodes.get(row)
                node = self._pick(decision.choice) if tried is None else tried
                self._run.bind(row, node, None if self._is_open else then)
                self.steps.append(self._step(row, decision, node))
                return True, again
            filter_result = decision.post_filter if preempts else None
            released = filter_result.released if filter_result is not None else {}
            if self._run.release(released):
                again = again or []
            if filter_result is None or not filter_result.status.is_success or not filter_result.best:
                self._run.cluster.nominate(row, None)
                self.steps.append(replace(self._step(row, decision), released=released))
                return False, again
            node, step = self._preempting_step(row, decision, filter_result)
            if is_member:
                self._run.cluster.place(row, node)
                self.steps.append(replace(step, node=node))
                return True, again
            cluster = self._run.cluster
            waits = cluster.pods.nominated_node_names[row] == cluster.node_names[node]
            if waits and any(map(cluster.pods.finalizers_of_others, step.victims)):  # which do not leave
                self.steps.append(self._step(row, decision))
                return False, again
            again = [*(again or ()), *self._evict(step.victims)]
            self._clear_lower_nominations(row, node)
            self._run.nominate(row, node)
            self.steps.append(step)

    def _decision(self, row: int) -> Decision:
        """Return the decision about a pod. Raises `UndecidableError` if unknown facts could reject the pod."""
        run, placement = self._run, None if self._trial is None else self._trial.placement.nodes
        self._is_open = self._unknown.may_matter(self._run, row)
        if not self._is_open and placement is None and (known := run.known_decision(row)) is not None:
            return known
        decision = None if self._is_open else run.decide(row, placement)
        if decision is None or decision.outcome is Outcome.UNDECIDED:
            whole = self._unknown.decide(run, row)
            if decision is None:
                return whole if placement is None else run.decide(row, placement)
        return decision

    def _preempting_step(
        self, row: int, decision: Decision, filter_result: PostFilterResult
    ) -> tuple[ClusterRow, QueueStep]:
        """Return the nominated node of a pod that preempts others, and its decision with the victims there."""
        node = self._pick(cluster_rows(filter_result.best))
        candidates = filter_result.candidates
        victims = candidates[bisect_left(candidates, node, key=attrgetter("node"))].victims
        return node, replace(
            self._step(row, decision),
            nominated=node,
            tied=filter_result.best,
            victims=victims,
            victim_keys=tuple(self._run.cluster.pods.keys(victims)),
            released=filter_result.released,
        )

    def _clear_lower_nominations(self, row: int, node: ClusterRow) -> None:
        """Clear the nomination of pods with a lower priority for the node that a pod preempts."""
        cluster = self._run.cluster
        priorities, name = cluster.pods.priorities, cluster.node_names[node]
        for other, nominated in list(cluster.pods.nominations.items()):
            if nominated == name and priorities[other] < priorities[row]:
                cluster.nominate(other, None)

    def _evict(self, victims: Sequence[int]) -> list[int]:
        """Evict the victims of the next step at once. Returns the recreated ones."""
        number, pods = len(self.steps), self._run.cluster.pods
        again = [victim for victim in victims if self._recreate and is_recreated(pods, victim)]
        again = [victim for victim in again if not ends_job(self._run.snapshot, pods, victim)]
        owners = ((victim, controller_of(pods.owners[victim])) for victim in again)
        ordered = [victim for victim, owner in owners if owner is not None and owner.kind == "StatefulSet"]
        ordered.sort(key=lambda row: ordinal_of(pods.names[row]))
        for victim in (*(victim for victim in victims if victim not in ordered), *ordered):
            if victim in ordered and self.delays(victim):
                again.remove(victim)
            comes_back = victim in again
            evict(self._run, victim, waits=comes_back)
            (self.recreated if comes_back else self.evicted)[victim] = number
        self.is_last(again)
        return again

    @property
    def _row_type(self) -> np.dtype[np.unsignedinteger]:
        return np.dtype(np.uint16 if len(self._run.cluster.node_names) < 1 << 16 else np.uint32)

    def _short(self, decision: Decision) -> Decision:
        """Return the decision in a form that takes little memory: without the dry run, with a tie's rows in few bytes,
        and shared by consecutive identical pods."""
        if decision is not self._latest[0]:
            best = ClusterRows(decision.best.astype(self._row_type))
            self._latest = decision, replace(decision, best=best, post_filter=None)
        return self._latest[1]


def _identical_rows(waiting: Sequence[_QueuePlace], at: int, identical: Mapping[int, int]) -> Iterator[int]:
    """Yield the pod at this place of the queue and those that follow it, as long as they are identical."""
    number = identical[waiting[at][1]]
    rows = (waiting[place][1] for place in range(at, len(waiting)))
    return takewhile(lambda row: identical.get(row) == number, rows)


def _are_many(waiting: Sequence[_QueuePlace], at: int, identical: Mapping[int, int]) -> bool:
    """Return whether so many identical pods follow the one at this place that they are one step."""
    number, last = identical.get(waiting[at][1]), at + MANY_IDENTICAL
    return number is not None and last < len(waiting) and identical.get(waiting[last][1]) == number

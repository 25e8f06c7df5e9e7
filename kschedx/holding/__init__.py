"""Everything that holds a pod before kube-scheduler sees it, or schedules it in kube-scheduler's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.holding.model import Attempt, GangMember, GangStatus, Gate, Holding, Kueue, ReportedPool
from kschedx.kube.devices import ResourcePoolStatusRequest
from kschedx.kube.kueue import ADMISSION_GATE, TOPOLOGY_GATE, Workload
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, Gang
from kschedx.kube.types import FINISHED, Pod, PodGroup
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.pods import PodTable, find_group, group_name
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.moving import Run
    from kschedx.framework.moving.run import EquivalenceKey

# A pod group of Kubernetes itself as a whole: which pods have a node, and what each of the others lacks.
# Upstream: scheduling.k8s.io, behind the gate GenericWorkload since 1.35; the group's own cycle is
# pkg/scheduler/schedule_one_podgroup.go of 1.36.

_MOST_MEMBERS = 2_000  # the maximum number of a group's pods that are each evaluated


class _GangKey(Struct, frozen=True, kw_only=True):
    """A group of which at least `min_count` pods start together, or none."""

    namespace: str
    name: str
    min_count: int  # 0 for a group whose pods can start separately
    group: PodGroup | None = None
    """The PodGroup of Kubernetes itself; None for one of Coscheduling, which its members name in a label."""

    @property
    def plugin(self) -> str:
        return "Coscheduling" if self.group is None else "GangScheduling"

    def has(self, pods: PodTable, row: int) -> bool:
        """Return whether a pod is an unfinished member."""
        if pods.namespaces[row] != self.namespace or pods.phases[row] in FINISHED:
            return False
        if self.group is None:
            return pods.labels[row].get(POD_GROUP_LABEL) == self.name
        return group_name(pods.specs[row], of_workloads="/" in self.name) == self.name


def _gang_of(cycle: Cycle) -> _GangKey | None:
    """Return the pod's group; None if the pod has none, the snapshot lacks it, or this version ignores it."""
    pod, namespace, release = cycle.pod, cycle.pod.metadata.namespace, cycle.release
    if (name := group_name(pod.spec, of_workloads=release.behavior.gangs_are_of_workloads)) is not None:
        group = find_group(cycle.snapshot.pod_groups, namespace, name)
        if group is None:
            return None
        gang = group.spec.scheduling_policy.gang
        if gang is None and not release.enabled("TopologyAwareWorkloadScheduling"):
            return None
        return _GangKey(namespace=namespace, name=name, min_count=0 if gang is None else gang.min_count, group=group)
    label = pod.metadata.labels.get(POD_GROUP_LABEL)
    if label:
        for candidate in cycle.snapshot.of(Gang):
            if (candidate.metadata.namespace, candidate.metadata.name) == (namespace, label):
                return _GangKey(namespace=namespace, name=label, min_count=candidate.spec.min_member)
    return None


def _pod_group_of(scheduler: Scheduler, cycle: Cycle, attempt: Attempt) -> GangStatus | None:
    """The pod's group as a whole; None if the pod has none, the snapshot lacks it, or the pod already has a node."""
    pod, gang = cycle.pod, _gang_of(cycle)
    if gang is None or pod.spec.node_name:
        return None
    snapshot = _with_pod(cycle.snapshot, pod)
    pods = snapshot.pods
    mine = [row for row in range(len(pods)) if gang.has(pods, row)]
    rows = sorted((row for row in mine if not pods.node_names[row]), key=lambda row: _turn(pods[row]))
    is_heeded = not gang.min_count or gang.plugin in cycle.profile.points["permit"]
    members = tuple(_alone(scheduler.on(snapshot), cycle, rows[:_MOST_MEMBERS], attempt))
    gang_status = GangStatus(
        name=f"{gang.namespace}/{gang.name}",
        min_count=gang.min_count,
        pods=len(mine),
        placed=len(mine) - len(rows),
        is_heeded=is_heeded,
        plugin=gang.plugin,
        waiting=members,
        more=len(rows) - len(members),
    )
    if not is_heeded or gang_status.more:
        return gang_status
    is_constrained = gang.group is None or gang.group.spec.scheduling_constraints is not None
    if gang_status.pods < gang_status.min_count and is_constrained:
        return gang_status
    try:
        return _decide_group(scheduler.on(snapshot), cycle, gang, gang_status, rows)
    except UndecidableError as error:
        return replace(gang_status, undecided=str(error))


def _decide_group(
    scheduler: Scheduler, cycle: Cycle, gang: _GangKey, gang_status: GangStatus, rows: list[int]
) -> GangStatus:
    """Return what kube-scheduler decides about the group. Raises `UndecidableError`."""
    from kschedx.framework.moving import Run  # few pods are members of a gang
    from kschedx.framework.moving.pod_groups import choose_placement, preempt_for_group, shortfall
    from kschedx.plugins.coscheduling import SENT_AWAY

    def begin() -> Run:
        return Run(scheduler, cycle.profile)

    queued = [row for row, member in zip(rows, gang_status.waiting, strict=True) if not member.gates]
    missing, nodes = gang_status.min_count - gang_status.placed, None
    if gang.group is not None and queued:
        chosen = choose_placement(begin(), gang.group, queued, missing, cycle.profile, _first)
        gang_status = replace(
            gang_status,
            topology_key=chosen.placements.key,
            domains=len(chosen.placements.each),
            fitting_domains=sum(trial.is_feasible for trial in chosen.trials),
        )
        if chosen.placements.problem is not None:
            return replace(gang_status, together=0, message=chosen.message)
        if chosen.placements.key and chosen.shown is not None:
            nodes = chosen.shown.placement.nodes
            gang_status = replace(gang_status, domain=chosen.shown.placement.domain)

    def together(run: Run, draw: int) -> GangStatus:
        with nullcontext() if gang.group is None else run.group_cycle():
            return _together(gang_status, run, rows, nodes, draw)

    first = together(begin(), draw=0)
    if first.lacks_room and first.has_ties:
        last = together(begin(), draw=-1)
        first = first if last.lacks_room else replace(last, is_by_draw=True)
    if not first.lacks_room:
        return first
    mine_placed = any(member.pod == cycle.pod.key and member.node for member in first.waiting)
    if gang.group is not None and queued:
        run = begin()
        preempted = preempt_for_group(run, gang.group, queued, missing, cycle.profile, _first)
        if preempted.victims:
            pods = run.cluster.pods
            victims = tuple(f"{pods.key(row)} on {pods.node_names[row]}" for row in preempted.victims)
            for victim in preempted.victims:
                run.evict(victim, waits=False)
            message = preempted.message if mine_placed else ""
            return replace(together(run, draw=0), preempted=victims, message=message)
        first = replace(first, preemption=preempted.reason)
    text = SENT_AWAY
    if gang.group is not None:
        fits = (bool(member.node) for member in first.waiting if not member.gates)
        scheduled, remaining = shortfall(fits, first.min_count, first.placed)
        text = scheduler.release.messages.gang_lacks_members.format(
            minimum=first.min_count, scheduled=scheduled, remaining=remaining
        )
    return replace(first, message=text if mine_placed else "")


def _first(nodes: ClusterRows) -> ClusterRow:
    return ClusterRow(int(nodes[0]))


def _with_pod(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """Return the cluster with the pod as the question gives it."""
    pods = snapshot.pods
    row = pods.rows.get(pod.key)
    if row is None:
        return with_pods(snapshot, [pod])
    if pods.node_names[row] or pods[row] == pod:
        return snapshot
    others = np.array([other for other in range(len(pods)) if other != row], dtype=np.int64)
    return with_pods(with_only_pods(snapshot, others), [pod])


def _turn(pod: Pod) -> tuple[int, str, str]:
    """Return the sort key of a group's cycle: priority, then the time of creation."""
    return -pod.priority, str(pod.metadata.creation_timestamp or "~"), pod.metadata.name


def _alone(scheduler: Scheduler, cycle: Cycle, rows: Iterable[int], attempt: Attempt) -> Iterator[GangMember]:
    """Yield the result of each pod by itself; identical pods are evaluated once."""
    from kschedx.framework.moving import Run

    run = Run(scheduler, cycle.profile)
    known: dict[EquivalenceKey, tuple[str, int, tuple[str, ...]]] = {}
    for row in rows:
        pod, kind = run.cluster.pods[row], run.equivalence_key(row)
        facts = None if kind is None else known.get(kind)
        if facts is None:
            feasible, reasons = attempt(pod, None)
            facts = pod.metadata.name, len(feasible), reasons
        if kind is not None:
            known[kind] = facts
        gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
        equal, feasible_count, texts = facts
        reasons = tuple(text.replace(f" pod {equal} ", f" pod {pod.metadata.name} ") for text in texts)
        yield GangMember(pod=pod.key, gates=gates, feasible=feasible_count, reasons=reasons)


def _together(group: GangStatus, run: Run, rows: list[int], nodes: ClusterRows | None, draw: int) -> GangStatus:
    """Place the pending members one after another, each with the earlier ones on their nodes, as in a cycle of the
    group.

    `nodes` are the only ones to evaluate; None for all. `draw` is which of the nodes with the highest score is chosen,
    of which kube-scheduler picks any. Raises `UndecidableError`.
    """
    members: dict[int, GangMember] = dict(zip(rows, group.waiting, strict=True))
    has_ties = False
    refused: dict[EquivalenceKey, tuple[str, ...]] = {}
    preempted, behavior = set[int](), run.scheduler.release.behavior
    for row, member in members.items():
        if member.gates:
            continue  # it is not in the queue
        kind = run.equivalence_key(row)
        if kind in refused:
            members[row] = replace(member, reasons=refused[kind])
            continue
        decision = run.decide(row, nodes)
        if decision.outcome is Outcome.UNDECIDED:
            raise UndecidableError(f"whether {member.pod} fits is undecided, and so is its group")
        choice = tuple(decision.choice)
        evicted: Mapping[int, tuple[int, ...]] = {}
        filter_result = decision.post_filter if behavior.group_members_preempt else None
        if not choice and filter_result is not None and filter_result.status.is_success:
            evicted = {candidate.node: candidate.victims for candidate in filter_result.candidates}
            choice = filter_result.best
        if not choice:
            cycle = run.cycle(row)
            lacks = {} if cycle.filter is None else cycle.filter.count_reasons(_evaluated_nodes(cycle, nodes))
            lacking = tuple(sorted(f"{count} {reason}" for reason, count in lacks.items())) or member.reasons
            members[row] = replace(member, reasons=lacking)
            if kind is not None:
                refused[kind] = lacking
            continue
        refused.clear()
        has_ties |= len(choice) > 1
        node = choice[draw]
        victims = set(evicted.get(node, ())) - preempted
        preempted |= victims
        if behavior.gangs_are_of_workloads:
            for victim in victims:
                run.evict(victim, waits=False)
        if evicted:  # of a group that is decided as a whole, the victims stay until all members are decided
            run.cluster.place(row, node)
        else:
            run.bind(row, node)
        members[row] = replace(member, node=run.cluster.node_names[node], evicts=len(victims))
    waiting = tuple(members.values())
    return replace(group, waiting=waiting, together=sum(bool(member.node) for member in waiting), has_ties=has_ties)


def _evaluated_nodes(cycle: Cycle, nodes: ClusterRows | None) -> BoolArray | None:
    """Return (node,) which of the cycle's nodes are evaluated; None for all."""
    return None if nodes is None or cycle.nodes is None else np.isin(cycle.nodes.rows, nodes)


_OWNERS: Mapping[str, tuple[str, str]] = {
    "kueue.x-k8s.io/": ("Kueue", "kubectl describe workloads.kueue.x-k8s.io"),
    "scheduling.volcano.sh/": ("Volcano", "kubectl describe podgroups.scheduling.volcano.sh"),
    "karpenter.sh/": ("Karpenter", "kubectl describe nodeclaims.karpenter.sh"),
    "jobset.x-k8s.io/": ("JobSet", "kubectl describe jobsets.jobset.x-k8s.io"),
    "gke.io/": ("Google Kubernetes Engine", "the events of the pod"),
    "cloud.google.com/": ("Google Kubernetes Engine", "the events of the pod"),
    "multiarch.openshift.io/": ("the Multiarch Tuning Operator", "kubectl describe clusterpodplacementconfigs"),
}
"""Prefix to the owner of such gates, and the command or place that shows the cause."""


def _gates_of_others(pod: Pod) -> Iterator[Gate]:
    """Yield the pod's gates, without Kueue's own two: these are reported with its Workload."""
    for gate in pod.spec.scheduling_gates:
        if gate.name in (ADMISSION_GATE, TOPOLOGY_GATE):
            continue
        owner, look_at = next((known for prefix, known in _OWNERS.items() if gate.name.startswith(prefix)), ("", ""))
        yield Gate(name=gate.name, owner=owner, look_at=look_at)


def find_holding(scheduler: Scheduler, cycle: Cycle) -> Holding:
    """Return what holds the pod of a finished cycle. Extenders are not called."""

    def attempt(pod: Pod, names: frozenset[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            filtered = scheduler.filter(pod, cycle.profile)
        except UndecidableError as unknown:
            return (), (str(unknown),)
        nodes, outcome = filtered.nodes, filtered.outcome
        if not filtered.status.is_success:
            return (), filtered.status.reasons
        among = np.array([names is None or name in names for name in nodes.names], dtype=np.bool_)
        feasible = nodes.names_where(outcome.passed & among)
        reasons = outcome.count_reasons(among)
        return feasible, () if feasible else tuple(sorted(f"{count} {reason}" for reason, count in reasons.items()))

    pod, snapshot, other = cycle.pod, cycle.snapshot, None
    if pod.spec.scheduler_name not in {profile.scheduler_name for profile in scheduler.config.profiles}:
        from kschedx.holding.schedulers import other_scheduler

        other = other_scheduler(snapshot, pod)
    return Holding(
        kueue=_held_by_kueue(snapshot, pod, attempt),
        gates=tuple(_gates_of_others(pod)),
        scheduler=other,
        group=_pod_group_of(scheduler, cycle, attempt),
        pools=tuple(_device_pools(snapshot, pod)),
    )


def _device_pools(snapshot: Snapshot, pod: Pod) -> Iterator[ReportedPool]:
    """Yield each pool of the newest ResourcePoolStatusRequest with it, for a pod with claims and without a node."""
    if not pod.spec.resource_claims or pod.spec.node_name:
        return
    seen: set[tuple[str, str]] = set()
    reports = sorted(snapshot.of(ResourcePoolStatusRequest), key=lambda request: request.metadata.name)
    for report in sorted(reports, key=lambda request: request.metadata.creation_timestamp or "", reverse=True):
        for pool in report.status.pools:
            if (pool.driver, pool.pool_name) in seen:
                continue
            seen.add((pool.driver, pool.pool_name))
            yield ReportedPool(
                request=report.metadata.name,
                driver=pool.driver,
                pool=pool.pool_name,
                node=pool.node_name or "",
                total=pool.total_devices,
                allocated=pool.allocated_devices,
                available=pool.available_devices,
                unavailable=pool.unavailable_devices,
                error=pool.validation_error or "",
            )


def _held_by_kueue(snapshot: Snapshot, pod: Pod, attempt: Attempt) -> Kueue | None:
    """Load Kueue's rules only for a cluster that has Workloads, or a pod with a gate of Kueue."""
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    if not snapshot.of(Workload) and not gates & {ADMISSION_GATE, TOPOLOGY_GATE}:
        return None
    from kschedx.holding.kueue import held_by_kueue

    return held_by_kueue(snapshot, pod, attempt)


__all__ = ["Holding", "find_holding"]

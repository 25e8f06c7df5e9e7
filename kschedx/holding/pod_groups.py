"""A pod group of Kubernetes' own as a whole: who has a node, and what each of the others lacks.

Upstream: scheduling.k8s.io, behind the gate GenericWorkload since 1.35; the group's own cycle is
pkg/scheduler/schedule_one_podgroup.go of 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.preemption import may_evict_for
from kschedx.framework.scheduler import Scheduler
from kschedx.holding.model import Attempt, GangMember, GangStatus
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, Gang
from kschedx.kube.types import Pod, PodGroup
from kschedx.plugins.coscheduling import SENT_AWAY
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.moving import Run

MOST_MEMBERS = 50
"""Pods of a group that are each tried."""


class _GangKey(Struct, frozen=True, kw_only=True):
    """A group of which as many as `min_count` pods start together, or none."""

    namespace: str
    name: str
    min_count: int
    group: PodGroup | None = None
    """Kubernetes' own; None for one of Coscheduling, whose members name it in a label."""

    @property
    def plugin(self) -> str:
        return "Coscheduling" if self.group is None else "GangScheduling"

    def has(self, pods: PodTable, row: int) -> bool:
        """Whether a pod is a member that has not finished."""
        if pods.namespaces[row] != self.namespace or pods.phases[row] in ("Succeeded", "Failed"):
            return False
        if self.group is None:
            return pods.labels[row].get(POD_GROUP_LABEL) == self.name
        named = pods.specs[row].scheduling_group
        return named is not None and named.pod_group_name == self.name


def _gang_of(cycle: Cycle) -> _GangKey | None:
    """None for a pod without a group, or whose group is not in the snapshot or no gang."""
    pod, namespace = cycle.pod, cycle.pod.metadata.namespace
    if (named := pod.spec.scheduling_group) is not None:
        group = cycle.snapshot.pod_groups.get(f"{namespace}/{named.pod_group_name}")
        gang = group.spec.scheduling_policy.gang if group is not None else None
        if named.pod_group_name is None or gang is None:
            return None
        return _GangKey(namespace=namespace, name=named.pod_group_name, min_count=gang.min_count, group=group)
    label = pod.metadata.labels.get(POD_GROUP_LABEL)
    if label and "Coscheduling" in cycle.profile.points.get("permit", ()):
        for one in cycle.snapshot.of(Gang):
            if (one.metadata.namespace, one.metadata.name) == (namespace, label):
                return _GangKey(namespace=namespace, name=label, min_count=one.spec.min_member)
    return None


def pod_group_of(scheduler: Scheduler, cycle: Cycle, attempt: Attempt) -> GangStatus | None:
    """The pod's group as a whole; None for a pod without one, or whose group is not in the snapshot or no gang."""
    pod, gang = cycle.pod, _gang_of(cycle)
    if gang is None or pod.spec.node_name:
        return None
    snapshot = _with(cycle.snapshot, pod)
    pods = snapshot.pods
    mine = [row for row in range(len(pods)) if gang.has(pods, row)]
    rows = sorted((row for row in mine if not pods.node_names[row]), key=lambda row: _turn(pods[row]))
    is_heeded = gang.plugin in cycle.profile.points["permit"]
    members = tuple(_alone(pods[row], attempt) for row in rows[:MOST_MEMBERS])
    found = GangStatus(
        name=f"{gang.namespace}/{gang.name}",
        min_count=gang.min_count,
        pods=len(mine),
        placed=len(mine) - len(rows),
        is_heeded=is_heeded,
        waiting=members,
        more=len(rows) - len(members),
    )
    if not is_heeded or found.more or _is_for_others(scheduler, cycle, gang.group):
        return found
    from kschedx.framework.moving import Run  # few pods are members of a gang

    try:
        first = _together(found, Run(scheduler.on(snapshot), cycle.profile), rows, draw=0)
        if first.lacks_room and first.has_ties:
            last = _together(found, Run(scheduler.on(snapshot), cycle.profile), rows, draw=-1)
            first = first if last.lacks_room else replace(last, is_by_draw=True)
    except UndecidableError:
        return found
    if not first.lacks_room:
        return first
    if gang.group is not None and may_evict_for(gang.group, rows, pods, scheduler.release):
        return replace(found, may_evict_as_a_whole=True)
    mine_placed = any(one.pod == pod.key and one.node for one in first.waiting)
    text = SENT_AWAY if gang.group is None else scheduler.release.messages.gang_lacks_members
    return replace(first, message=text if mine_placed else "")


def _with(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """The cluster with the pod as it is asked about."""
    pods = snapshot.pods
    row = pods.rows.get(pod.key)
    if row is None:
        return with_pods(snapshot, [pod])
    if pods.node_names[row] or pods[row] == pod:
        return snapshot
    others = np.array([other for other in range(len(pods)) if other != row], dtype=np.int64)
    return with_pods(with_only_pods(snapshot, others), [pod])


def _turn(pod: Pod) -> tuple[int, str, str]:
    """In a group's cycle the pods come by priority, then by when they came to the queue."""
    return -pod.priority, str(pod.metadata.creation_timestamp or "~"), pod.metadata.name


def _alone(pod: Pod, attempt: Attempt) -> GangMember:
    gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
    feasible, reasons = attempt(pod, None)
    return GangMember(pod=pod.key, gates=gates, feasible=len(feasible), reasons=reasons)


def _is_for_others(scheduler: Scheduler, cycle: Cycle, group: PodGroup | None) -> bool:
    """Somebody who is not asked here decides too: extenders, unknown plugins, placements by topology."""
    return bool(
        scheduler.config.extenders or cycle.profile.unknown or (group is not None and group.spec.scheduling_constraints)
    )


def _together(group: GangStatus, run: Run, rows: list[int], draw: int) -> GangStatus:
    """Those that wait placed one after another, each with those before it on their nodes, as in a cycle of the group.

    `draw`: which of the nodes that tie is taken, where kube-scheduler takes any.
    """
    members: dict[int, GangMember] = dict(zip(rows, group.waiting, strict=True))
    has_ties = False
    for row, member in members.items():
        if member.gates:
            continue  # it is not in the queue
        decision = run.decide(row)
        if decision.outcome is Outcome.UNDECIDED:
            return group
        choice = tuple(decision.choice)
        evicted: Mapping[int, tuple[int, ...]] = {}
        if not choice and decision.post_filter is not None and decision.post_filter.status.is_success:
            evicted = {one.node: one.victims for one in decision.post_filter.candidates}
            choice = decision.post_filter.best
        if not choice:
            filtered = run.cycle(row).filter
            lacks = {} if filtered is None else filtered.count_reasons()
            told = tuple(sorted(f"{count} {reason}" for reason, count in lacks.items())) or member.reasons
            members[row] = replace(member, reasons=told)
            continue
        has_ties |= len(choice) > 1
        node = choice[draw]
        victims = evicted.get(node, ())
        for victim in victims:
            run.evict(victim, waits=False)
        run.bind(row, node)
        members[row] = replace(member, node=run.cluster.node_names[node], evicts=len(victims))
    waiting = tuple(members.values())
    return replace(group, waiting=waiting, together=sum(bool(one.node) for one in waiting), has_ties=has_ties)

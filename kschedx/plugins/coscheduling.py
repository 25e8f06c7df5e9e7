"""Coscheduling of scheduler-plugins, and quantities in the form that its messages print."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from msgspec import Struct

from kschedx.findings import GangResourcesShort, GangTooSmall, ResourceGap
from kschedx.framework.args import CoschedulingArgs, args_of_another_project
from kschedx.framework.interface import (
    CycleState,
    Handle,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    QueueSortPlugin,
    Texts,
)
from kschedx.framework.status import SUCCESS, Code, FilterOutcome, Status, unresolvable, unschedulable
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, Gang
from kschedx.kube.quantity import DECIMAL_SUFFIXES, milli_value, value
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRow, IntArray
from kschedx.snapshot.nodes import NodeTable

# Quantities as Go prints the struct, for plugins whose messages format one with %v.

_NO_GROUP = "can not find pod group"
_GROUP_NOT_FOUND = "PodGroup not found"


class GoQuantity(Struct, frozen=True, kw_only=True):
    """`value` times ten to the `scale`: int64Amount in k8s.io/apimachinery/pkg/api/resource."""

    value: int
    scale: int
    form: str = "DecimalSI"

    @classmethod
    def parse(cls, written: str | int | float) -> Self:
        """Parse a quantity as a manifest writes it. Raises `InputError` if it is not a quantity."""
        text = str(written)
        whole = value(text)
        if text.endswith("i"):
            return cls(value=whole, scale=0, form="BinarySI")
        digits, _, fraction = text.rstrip("numkMGTPE").partition(".")
        suffix = text[len(text.rstrip("numkMGTPE")) :]
        if not (digits + fraction).lstrip("+-").isdigit():
            return cls(value=milli_value(text), scale=-3)
        return cls(value=int(digits + fraction), scale=DECIMAL_SUFFIXES[suffix] - len(fraction))

    def minus(self, amount: int, *, scale: int) -> Self:
        """Subtract an amount of another scale. The result has the finer scale."""
        if not amount:
            return self
        finest = min(self.scale, scale) if self.value else scale
        own = self.value * 10 ** max(self.scale - finest, 0)
        return type(self)(value=own - amount * 10 ** max(scale - finest, 0), scale=finest, form=self.form)

    @property
    def go_text(self) -> str:
        return f"{{{{{self.value} {self.scale}}} {{<nil>}}  {self.form}}}"

    def rounded_up(self, resource: str) -> int:
        """Return milli-units of cpu, and units of every other resource."""
        places = self.scale + (3 if resource == "cpu" else 0)
        return self.value * int(10**places) if places >= 0 else -(-self.value // int(10**-places))


# Coscheduling of scheduler-plugins (pkg/coscheduling), as of August 2026 with Kubernetes 1.35.4. A snapshot has neither
# the groups that failed recently nor the pods that wait at Permit, so each decision is made as for a new group.

_PODS = "pods"
SENT_AWAY = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
"""kube-scheduler's message for a member that fits, while too few members of its group fit."""


class Coscheduling(QueueSortPlugin, PreFilterPlugin, PostFilterPlugin, PermitPlugin):
    """Schedules all pods of a PodGroup or none. Pods wait until minMember of them exist, and again until minMember of
    them have a node."""

    name = "Coscheduling"
    texts: ClassVar[Texts] = {
        "gang-too-small": (
            "pre-filter pod {pod} cannot find enough sibling pods, current pods number: {counts}",
            "pre-filter pod {pod} cannot proceed due to gated pods in the same PodGroup",
        ),
        "gang-resources-short": ("resource gap: map[{subject}]",),
        "plugin-message": (
            _NO_GROUP,
            _GROUP_NOT_FOUND,
            "PodGroup {subject} gets rejected due to Pod {pod} is unschedulable even after PostFilter",
        ),
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args_of_another_project(args, CoschedulingArgs, self.name)
        groups = handle.snapshot.of(Gang)
        self._groups = {group.key: group for group in groups}

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        """A member sorts by the creation time of its group, so that the group stays together."""
        group = self._groups.get(_key(pod))
        start = since if group is None else group.metadata.creation_timestamp or ""
        return (-pod.priority, start, pod.key)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        group = self._groups.get(_key(pod))
        if group is None:
            return PreFilterResult()
        members = self._members(pod)
        count = len(members) + (pod.key not in self.handle.snapshot.pods.rows)
        needed = group.spec.min_member
        if needed > count:
            text = (
                f"pre-filter pod {pod.metadata.name} cannot find enough sibling pods, current pods number: {count}, "
                f"minMember of group: {needed}"
            )
            return _rejection(text, GangTooSmall(group=_key(pod), pods=count, min_member=needed, gated=0))
        gated = sum(1 for row in members if self.handle.snapshot.pods.specs[int(row)].scheduling_gates)
        if needed > count - gated:
            text = f"pre-filter pod {pod.metadata.name} cannot proceed due to gated pods in the same PodGroup"
            return _rejection(text, GangTooSmall(group=_key(pod), pods=count, min_member=needed, gated=gated))
        return self._resources(group, members, nodes) if group.spec.min_resources is not None else PreFilterResult()

    def _resources(self, group: Gang, members: IntArray, nodes: NodeTable) -> PreFilterResult:
        """Compare the group's minimum resources with the free resources of all nodes, without the group's own pods."""
        needed = {name: GoQuantity.parse(written) for name, written in (group.spec.min_resources or {}).items()}
        needed[_PODS] = GoQuantity(value=group.spec.min_member, scale=0)
        own = self.handle.snapshot.pods.node[members]
        for row in nodes.each():
            mine = members[own == nodes.cluster_row(row)]
            left = nodes.allocatable[row] - nodes.requested[row] + nodes.requests.matrix[mine].sum(axis=0)
            room = dict(zip(nodes.resources.names, left.tolist(), strict=True))
            room[_PODS] = int(nodes.allowed_pods[row] - nodes.pod_count[row]) + len(mine)
            for name in list(needed):
                needed[name] = needed[name].minus(room.get(name, 0), scale=-3 if name == "cpu" else 0)
                if needed[name].value <= 0:
                    del needed[name]
            if not needed:
                return PreFilterResult()
        shown = " ".join(f"{name}:{needed[name].go_text}" for name in sorted(needed))
        gaps = tuple(ResourceGap(resource=name, short_by=needed[name].rounded_up(name)) for name in sorted(needed))
        return _rejection(f"resource gap: map[{shown}]", GangResourcesShort(group=group.key, gaps=gaps))

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        group = self._groups.get(_key(pod))
        if group is None:
            return PostFilterResult(status=unschedulable(_NO_GROUP))
        needed, placed = group.spec.min_member, self._placed_count(pod)
        if placed >= needed or (needed - placed) / needed <= self._args.pod_group_reject_percentage / 100.0:
            return PostFilterResult(status=Status(code=Code.UNSCHEDULABLE))
        text = (
            f"PodGroup {_key(pod)} gets rejected due to Pod {pod.metadata.name} is unschedulable even after PostFilter"
        )
        return PostFilterResult(status=unschedulable(text))

    def permit(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        key = _key(pod)
        if not key:
            return SUCCESS
        group = self._groups.get(key)
        if group is None:
            return unschedulable(_GROUP_NOT_FOUND)
        placed = self._placed_count(pod) + 1  # this pod is already assumed on its node
        if placed >= group.spec.min_member:
            return SUCCESS
        finding = GangTooSmall(group=key, pods=placed, min_member=group.spec.min_member, gated=0)
        return Status(code=Code.WAIT, findings=(finding,))

    def _members(self, pod: Pod) -> IntArray:
        """Rows of the group's pods that have not finished."""
        pods = self.handle.snapshot.pods
        name = pod.metadata.labels.get(POD_GROUP_LABEL)
        mine = pods.labels.where(lambda labels: labels.get(POD_GROUP_LABEL) == name)
        mine &= pods.in_namespace(pod.metadata.namespace)
        mine &= ~pods.finished
        return np.flatnonzero(mine).astype(np.int64)

    def _placed_count(self, pod: Pod) -> int:
        """Count the other pods of the group that have a node."""
        pods = self.handle.snapshot.pods
        return sum(1 for row in self._members(pod) if pods.node_names[int(row)] and pods.key(int(row)) != pod.key)


def _key(pod: Pod) -> str:
    """Return the `namespace/name` of the group in the pod's label, or an empty string."""
    name = pod.metadata.labels.get(POD_GROUP_LABEL, "")
    return f"{pod.metadata.namespace}/{name}" if name else ""


def _rejection(text: str, finding: GangTooSmall | GangResourcesShort) -> PreFilterResult:
    return PreFilterResult(status=unresolvable(text, finding))

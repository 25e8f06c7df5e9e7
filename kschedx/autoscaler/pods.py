"""Which pending pods the cluster-autoscaler evaluates, one of each equivalence class."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum

import msgspec
from msgspec import Struct

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.sandbox import Sandbox
from kschedx.autoscaler.templates import has_daemon_set_annotation
from kschedx.kube.autoscalers import SCALE_UP_DELAY
from kschedx.kube.duration import Duration
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.scalars import nanoseconds
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import PodTable

# Identical pods: the cluster-autoscaler evaluates one of them for all.
#
# Upstream: core/scaleup/equivalence/groups.go, simulator/scheduling/similar_pods.go.

MOST_KINDS_OF_A_CONTROLLER = 10

_ENCODER = msgspec.json.Encoder()


class PodEquivalence:
    """What makes the pods of a table equivalent."""

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._specs: dict[int, bytes] = {}
        self._labels: dict[int, Hashable] = {}

    def controller(self, row: int) -> str | None:
        """The uid of the pod's controller."""
        return next((owner.uid for owner in self._pods.owners[row] if owner.controller), None)

    def template(self, row: int) -> Hashable:
        """What two pods of a controller have in common where they are equivalent: labels and spec."""
        labels, spec = int(self._pods.labels.codes[row]), int(self._pods.specs.codes[row])
        if labels not in self._labels:
            self._labels[labels] = tuple(sorted(self._pods.labels.values[labels].items()))
        if spec not in self._specs:
            self._specs[spec] = _ENCODER.encode(self._pods.specs.values[spec])
        return self._labels[labels], self._specs[spec]

    def identity(self, row: int) -> Hashable:
        """What decides about a pod on a node; claims of its own name are a part of that."""
        pods = self._pods
        spec = pods.specs[row]
        named = pods.names[row] if any(volume.ephemeral is not None for volume in spec.volumes) else ""
        return (
            int(pods.namespaces.codes[row]),
            int(pods.labels.codes[row]),
            int(pods.specs.codes[row]),
            named,
        )

    def is_of_daemon_set(self, row: int) -> bool:
        owner = next((owner for owner in self._pods.owners[row] if owner.controller), None)
        is_owned = owner is not None and owner.kind == "DaemonSet"
        return is_owned or has_daemon_set_annotation(self._pods.annotations[row])

    def groups(self, rows: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """Pods that are judged together, each in the order of `rows`.

        A pod without controller is alone, and so is each pod of a controller beyond its first ten kinds.
        """
        groups: list[list[int]] = []
        of_controller: dict[str, dict[Hashable, int]] = {}
        for row in rows:
            controller = self.controller(row)
            if controller is None or self.is_of_daemon_set(row):
                groups.append([row])
                continue
            known = of_controller.setdefault(controller, {})
            kind = self.template(row)
            if kind in known:
                groups[known[kind]].append(row)
                continue
            if len(known) < MOST_KINDS_OF_A_CONTROLLER:
                known[kind] = len(groups)
            groups.append([row])
        return tuple(tuple(group) for group in groups)

    def remembering(self) -> Remembered:
        return Remembered(self)


class Remembered:
    """Kinds that found no place, so that their likes are not tried."""

    def __init__(self, kinds: PodEquivalence) -> None:
        self._kinds = kinds
        self._of_controller: dict[str, set[Hashable]] = {}

    def knows(self, row: int) -> bool:
        controller = self._kinds.controller(row)
        if controller is None or controller not in self._of_controller:
            return False
        return self._kinds.template(row) in self._of_controller[controller]

    def remember(self, row: int) -> None:
        controller = self._kinds.controller(row)
        if controller is None or self._kinds.is_of_daemon_set(row):
            return
        known = self._of_controller.setdefault(controller, set())
        if len(known) < MOST_KINDS_OF_A_CONTROLLER:
            known.add(self._kinds.template(row))


# Which pending pods the cluster-autoscaler looks at, and why it passes over the others.
#
# Upstream: utils/kubernetes/listers.go, core/podlistprocessor, simulator/scheduling, filterOutYoungPods and
# allPodsAreNew in core/static_autoscaler.go.

ALL_NEW = Duration.seconds(2)
ALL_NEW_WITH_GPU = Duration.seconds(30)
"""How old the oldest pod has to be before anything is done."""

UNSCHEDULABLE = "Unschedulable"


class PodOutcome(StrEnum):
    """What the loop does with a pending pod."""

    CONSIDERED = "considered"
    EXPENDABLE = "expendable"
    SCHEDULABLE = "schedulable"
    DAEMON_SET = "daemonset"
    TOO_YOUNG = "too-young"
    ALL_NEW = "all-new"
    NOT_MARKED = "not-marked-unschedulable"
    NOMINATED = "nominated"
    DELETING = "deleting"
    NOT_LOOKED_AT = "not-looked-at"


class Arranged(Struct, frozen=True, kw_only=True):
    """The pending pods before any node is evaluated; rows of the PodTable in list order."""

    passed_over: dict[int, PodOutcome]
    nominated: tuple[int, ...]
    """To be put on the nodes that they are nominated for."""
    unschedulable: tuple[int, ...]


def arrange(pods: PodTable, has_node: Callable[[str], bool], flags: Flags, behaviour: AutoscalerBehaviour) -> Arranged:
    """`has_node`: whether a node of this name is listed."""
    passed_over: dict[int, PodOutcome] = {}
    nominated: list[int] = []
    unschedulable: list[int] = []
    for row in pods.pending:
        if not is_allowed(pods, row, flags):
            passed_over[row] = PodOutcome.NOT_LOOKED_AT
        elif pods.deletion_timestamps[row]:
            passed_over[row] = PodOutcome.DELETING
        elif behaviour.nominated_pods_are_placed and pods.nominated_node_names[row]:
            passed_over[row] = PodOutcome.NOMINATED
            nominated.append(row)
        elif not (_is_marked(pods, row) or _is_bypassed(pods, row, flags)):
            passed_over[row] = PodOutcome.NOT_MARKED
        elif is_expendable(pods, row, flags):
            passed_over[row] = PodOutcome.EXPENDABLE
        elif not behaviour.nominated_pods_are_placed and has_node(pods.nominated_node_names[row]):
            passed_over[row] = PodOutcome.NOMINATED
            nominated.append(row)
        else:
            unschedulable.append(row)
    return Arranged(passed_over=passed_over, nominated=tuple(nominated), unschedulable=tuple(unschedulable))


def is_allowed(pods: PodTable, row: int, flags: Flags) -> bool:
    """Pods of other schedulers than the allowed ones are not there at all."""
    return not flags.allowed_schedulers or pods.specs[row].scheduler_name in flags.allowed_schedulers


def _is_marked(pods: PodTable, row: int) -> bool:
    """kube-scheduler has said that the pod is unschedulable."""
    for condition in pods.statuses[row].conditions:
        if condition.type == "PodScheduled":
            return condition.status == "False" and condition.reason == UNSCHEDULABLE
    return False


def _is_bypassed(pods: PodTable, row: int, flags: Flags) -> bool:
    """No scheduler has said anything yet, and the autoscaler does not wait for the pod's one."""
    if pods.specs[row].scheduler_name not in flags.bypassed_schedulers:
        return False
    said = next((one for one in pods.statuses[row].conditions if one.type == "PodScheduled"), None)
    return said is None or (said.status == "False" and not said.reason)


def is_expendable(pods: PodTable, row: int, flags: Flags) -> bool:
    """Of low priority; a pod that no API server has given one is not."""
    code = int(pods.specs.codes[row])
    return code not in pods.without_priority and int(pods.priorities[row]) < flags.expendable_pods_priority_cutoff


def without_place(
    world: Sandbox, pods: PodTable, rows: Iterable[int], kinds: PodEquivalence
) -> tuple[tuple[int, ...], dict[int, ClusterRow]]:
    """Put each pod on the first node that takes it, the most important ones first.

    Returns the pods that found no place, in the order in which they were tried, and the nodes of the others.
    """
    waiting = list(rows)
    priorities = pods.priorities
    sort_slice(waiting, lambda a, b: bool(priorities[a] > priorities[b]))
    placed: dict[int, ClusterRow] = {}
    left: list[int] = []
    failed = kinds.remembering()
    for row in waiting:
        if not failed.knows(row):
            node = world.find(row)
            if node is not None:
                world.place(row, node)
                placed[row] = node
                continue
            failed.remember(row)
        left.append(row)
    return tuple(left), placed


def old_enough(pods: PodTable, row: int, flags: Flags, now: int) -> bool:
    """Older than the delay of the flag, or of the pod's own annotation where that is longer."""
    delay = flags.new_pod_scale_up_delay
    written = pods.annotations[row].get(SCALE_UP_DELAY)
    if written is not None:
        with suppress(ValueError):  # what cannot be read is logged and counts for nothing
            delay = max(delay, Duration.parse(written))
    return now - created(pods, row) > delay


def are_all_new(pods: PodTable, rows: Sequence[int], requests_gpu: Callable[[int], bool], now: int) -> bool:
    """The oldest pod, or the oldest that asks for a GPU, is so young that others may follow."""
    if min((created(pods, row) for row in rows), default=now) + ALL_NEW > now:
        return True
    with_gpu = [created(pods, row) for row in rows if requests_gpu(row)]
    return bool(with_gpu) and min(with_gpu) + ALL_NEW_WITH_GPU > now


def created(pods: PodTable, row: int) -> int:
    """Nanoseconds since 1970; long ago where the pod does not say."""
    text = pods.creation_timestamps[row]
    return nanoseconds(text) if text else -(2**62)

"""The pending pods that cluster-autoscaler evaluates, one of each equivalence class."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from enum import StrEnum

import msgspec
from msgspec import Struct

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.sandbox import Sandbox
from kschedx.autoscaler.templates import is_of_daemon_set
from kschedx.kube.autoscalers import CONSUMED_REQUESTS, SCALE_UP_DELAY
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.scalars import Duration
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import PodTable

# Equivalence classes: cluster-autoscaler evaluates one pod of each. Upstream: core/scaleup/equivalence/groups.go,
# simulator/scheduling/similar_pods.go.

_MOST_CLASSES_OF_CONTROLLER = 10

_ENCODER = msgspec.json.Encoder()


class PodEquivalence:
    """Decides which pods of a table are equivalent."""

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._specs: dict[int, bytes] = {}
        self._labels: dict[int, Hashable] = {}

    def controller(self, row: int) -> str | None:
        """Return the uid of the pod's controller."""
        return next((owner.uid for owner in self._pods.owners[row] if owner.controller), None)

    def template(self, row: int) -> Hashable:
        """Return labels and spec, which are equal for equivalent pods of a controller."""
        labels, spec = int(self._pods.labels.codes[row]), int(self._pods.specs.codes[row])
        if labels not in self._labels:
            self._labels[labels] = tuple(sorted(self._pods.labels.values[labels].items()))
        if spec not in self._specs:
            self._specs[spec] = _ENCODER.encode(self._pods.specs.values[spec])
        return self._labels[labels], self._specs[spec]

    def identity(self, row: int) -> Hashable:
        """Return everything that affects the pod's placement, including its own claims."""
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
        return is_of_daemon_set(self._pods.owners[row], self._pods.annotations[row])

    def groups(self, rows: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """Return the equivalence classes, each in the order of `rows`. A pod without a controller is alone, and so is
        each pod beyond the first ten classes of a controller."""
        groups: list[list[int]] = []
        of_controller: dict[str, dict[Hashable, int]] = {}
        for row in rows:
            controller = self.controller(row)
            if controller is None or self.is_of_daemon_set(row):
                groups.append([row])
                continue
            known = of_controller.setdefault(controller, {})
            template = self.template(row)
            if template in known:
                groups[known[template]].append(row)
                continue
            if len(known) < _MOST_CLASSES_OF_CONTROLLER:
                known[template] = len(groups)
            groups.append([row])
        return tuple(tuple(group) for group in groups)


class _RejectedClasses:
    """Classes that fit nowhere, so that their other pods are not tried."""

    def __init__(self, equivalence: PodEquivalence) -> None:
        self._equivalence = equivalence
        self._of_controller: dict[str, set[Hashable]] = {}

    def knows(self, row: int) -> bool:
        controller = self._equivalence.controller(row)
        if controller is None or controller not in self._of_controller:
            return False
        return self._equivalence.template(row) in self._of_controller[controller]

    def remember(self, row: int) -> None:
        controller = self._equivalence.controller(row)
        if controller is None or self._equivalence.is_of_daemon_set(row):
            return
        known = self._of_controller.setdefault(controller, set())
        if len(known) < _MOST_CLASSES_OF_CONTROLLER:
            known.add(self._equivalence.template(row))


# The pending pods that cluster-autoscaler considers, and why it skips the others. Upstream:
# utils/kubernetes/listers.go, core/podlistprocessor, simulator/scheduling, filterOutYoungPods and allPodsAreNew in
# core/static_autoscaler.go.

_ALL_NEW = Duration.seconds(2)
_ALL_NEW_WITH_GPU = Duration.seconds(30)  # the minimum age of the oldest pod


class PodOutcome(StrEnum):
    """The loop's decision about a pending pod."""

    CONSIDERED = "considered"
    EXPENDABLE = "expendable"
    SCHEDULABLE = "schedulable"
    DAEMON_SET = "daemonset"
    CONSUMES_REQUEST = "consumes-provisioning-request"
    TOO_YOUNG = "too-young"
    ALL_NEW = "all-new"
    NOT_MARKED = "not-marked-unschedulable"
    NOMINATED = "nominated"
    DELETING = "deleting"
    NOT_LOOKED_AT = "not-looked-at"


class PendingOrder(Struct, frozen=True, kw_only=True):
    """The pending pods before any node is evaluated; rows of the PodTable in list order."""

    passed_over: dict[int, PodOutcome]
    nominated: tuple[int, ...]  # pods that count on the nodes they are nominated for
    unschedulable: tuple[int, ...]


def consumed_request(annotations: Mapping[str, str]) -> str | None:
    """Return the name of the ProvisioningRequest that a pod consumes; None if it consumes none. Upstream:
    processors/provreq/pods_filter.go."""
    return next((annotations[key] for key in CONSUMED_REQUESTS if key in annotations), None)


class Placements(Struct, frozen=True, kw_only=True):
    """Where pending pods have room before any node is added."""

    nodes: Mapping[int, ClusterRow | None]
    """Pods to their nodes, in the order in which they were tried; None for those without room."""
    skipped: Set[int] = frozenset()  # pods that were not tried because an equal one of their controller had no room

    @property
    def left(self) -> tuple[int, ...]:
        return tuple(row for row, node in self.nodes.items() if node is None)

    @property
    def placed(self) -> dict[int, ClusterRow]:
        return {row: node for row, node in self.nodes.items() if node is not None}

    def decided(self, changed: Set[int]) -> Iterator[tuple[int, ClusterRow | None]]:
        """Yield the pods with other specs than `changed` as long as none of these had room."""
        for row, node in self.nodes.items():
            if row not in changed:
                yield row, node
            elif node is not None:
                return


def place_pods(
    sandbox: Sandbox,
    pods: PodTable,
    rows: Iterable[int],
    equivalence: PodEquivalence,
    earlier: Placements | None = None,
    changed: Set[int] = frozenset(),
) -> Placements:
    """Place each pod on the first node that fits, the most important ones first. `earlier` are the placements in the
    same cluster with other specs of the `changed` pods; they are repeated as long as the pods before are placed alike.
    """
    waiting = list(rows)
    priorities = pods.priorities
    sort_slice(waiting, lambda a, b: bool(priorities[a] > priorities[b]))
    nodes: dict[int, ClusterRow | None] = {}
    skipped: set[int] = set()
    earlier = earlier or Placements(nodes={})
    before, is_alike = earlier.decided(changed), True
    repeated: dict[int, ClusterRow] = {}  # placed like before, and not yet in the sandbox
    failed = _RejectedClasses(equivalence)
    failed_since: set[Hashable] = set()  # identities of pods without room since the last pod was placed

    def place_repeated() -> None:
        if repeated:
            sandbox.place_each(repeated)
            sandbox.last = [*repeated.values()][-1]
            repeated.clear()

    for row in waiting:
        node: ClusterRow | None = None
        if is_known := is_alike and row not in changed:
            same, node = next(before, (-1, None))
            is_known = is_alike = same == row
        if failed.knows(row):
            is_alike = is_alike and node is None
            nodes[row] = None
            skipped.add(row)
            continue
        if is_known and row not in earlier.skipped:
            if node is not None:
                repeated[row] = node
        else:
            place_repeated()
            identity = equivalence.identity(row)
            node = None if identity in failed_since else sandbox.find(row)
            if node is None:
                failed_since.add(identity)
            else:
                is_alike = False
                sandbox.place(row, node)
        nodes[row] = node
        if node is None:
            failed.remember(row)
        else:
            failed_since.clear()
    place_repeated()
    return Placements(nodes=nodes, skipped=skipped)


def old_enough(pods: PodTable, row: int, flags: Flags, now: int) -> bool:
    """Return whether the pod is older than the flag's delay, or than its own annotation's if that is longer."""
    delay = flags.new_pod_scale_up_delay
    written = pods.annotations[row].get(SCALE_UP_DELAY)
    if written is not None:
        with suppress(ValueError):  # an invalid annotation is ignored
            delay = max(delay, Duration.parse(written))
    return now - _creation_time(pods, row) > delay


def are_all_new(pods: PodTable, rows: Sequence[int], requests_gpu: Callable[[int], bool], now: int) -> bool:
    """Return whether the oldest pod, or the oldest with a GPU request, is so young that more may follow."""
    if min((_creation_time(pods, row) for row in rows), default=now) + _ALL_NEW > now:
        return True
    with_gpu = [_creation_time(pods, row) for row in rows if requests_gpu(row)]
    return bool(with_gpu) and min(with_gpu) + _ALL_NEW_WITH_GPU > now


def _creation_time(pods: PodTable, row: int) -> int:
    """Return nanoseconds since 1970, before all others for a pod without a creation time."""
    created = pods.creation_time(row)
    return -(2**62) if created is None else created

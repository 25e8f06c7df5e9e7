"""What remains of a cluster when nodes are gone: a zone, a node pool, a rack, or some nodes.

Each failure is tried by itself, in the current cluster. In an outage, the pods of its nodes are lost at once, and the
nodes stay in the cluster as unreachable. In a drain, their pods are evicted as far as budgets allow it. Controllers
recreate lost pods, and kube-scheduler places them on the other nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from kschedx.controllers.node_lifecycle import GRACE, GRACE_BEFORE, NodeZones, ZoneEvictions, ZoneEvictionsDocument
from kschedx.controllers.workloads import (
    OfWorkload,
    Workload,
    loss_reason,
    may_be_lost,
    staying_with_nodes,
    stays_with_node,
)
from kschedx.errors import InputError, nearest
from kschedx.explain.missing_kinds import require_pods
from kschedx.explain.setup import Setup
from kschedx.grouping import group_pairs
from kschedx.inquiry.simulation import ClusterDocument, Simulation
from kschedx.inquiry.what_if import settle
from kschedx.kube.documents import Document, Json, camel, document, with_spec
from kschedx.kube.names import CPU, MEMORY, POOL_LABELS, ZONE_LABELS, first_label
from kschedx.kube.selectors import required_node_affinity
from kschedx.kube.tolerations import stay_seconds
from kschedx.kube.types import LOST_TAINTS, UNREACHABLE, Node, NodeCondition, Taint
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.simulate.added_nodes import AddedNodes, nodes_for
from kschedx.simulate.changes import SimulatedChange
from kschedx.simulate.drain import MOST_SCENES, STAYS, DrainDocument, DrainOutcome, DrainResult, drain
from kschedx.simulate.queue import QueueStep
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import BoolArray, ClusterRow
from kschedx.snapshot.nodes import ClusterNodes, NodeTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

ZONE, _NODE_POOL, _NODE = "zone", "nodepool", "node"
_LOST = tuple(Taint(key=UNREACHABLE, effect=effect) for effect in ("NoSchedule", "NoExecute"))
"""The taints of a node that stops reporting."""
LABELS: Mapping[str, tuple[str, ...]] = {ZONE: ZONE_LABELS, _NODE_POOL: POOL_LABELS}
_MOST_ADVISED = 12  # the number of failures for which nodes are added until every pod has one
_SPREAD = "pod topology spread constraints"  # part of kube-scheduler's message if such a constraint rejects a node


# --- failures


class Failure(Struct, frozen=True, kw_only=True):
    """Nodes that fail together."""

    name: str  # `zone eu-1a`, `node-7`
    nodes: tuple[str, ...]
    is_of_nodes: bool = False  # whether nodes fail by themselves, so that others can be added where they were


def each_failure(snapshot: Snapshot, key: str) -> tuple[Failure, ...]:
    """Return a failure for each zone, node pool, node, or value of a label. Raises `InputError` if no node has one."""
    nodes = snapshot.cluster.nodes
    if key == _NODE:
        return tuple(Failure(name=node.name, nodes=(node.name,), is_of_nodes=True) for node in nodes)
    labels = LABELS.get(key, (key,))
    values = ((first_label(node.metadata.labels, labels), node.name) for node in nodes)
    by_value = group_pairs((value, name) for value, name in values if value)
    if not by_value:
        what = f"a label of a {key}" if key in LABELS else f'the label "{key}"'
        known = () if key in LABELS else (*LABELS, _NODE, *sorted(snapshot.cluster.label_keys))
        raise InputError(f"--each {key}: no node has {what}", hint=nearest(key, known) or "--each node needs no label")
    return tuple(Failure(name=f"{key} {value}", nodes=tuple(by_value[value])) for value in sorted(by_value))


_MOST_NAMED = 3  # the maximum number of the busiest nodes that a title names


def failure_of(nodes: NodeTable, targets: Sequence[str], busiest: int = 0) -> Failure:
    """Return one failure of all targets: nodes, `zone=eu-1a`, `nodepool=spot`, `LABEL=VALUE`, and the busiest nodes.
    Raises `InputError` for a target that matches no node."""
    names: dict[str, None] = {}
    for target in targets:
        names.update(dict.fromkeys(_nodes_of(nodes.cluster, target)))
    titles = [target.replace("=", " ", 1) if "=" in target else target.removeprefix("node/") for target in targets]
    if busiest:
        at = [nodes.resources.index[name] for name in (CPU, MEMORY)]  # a node is as busy as the fuller of both
        shares = (nodes.requested[:, at] / np.maximum(nodes.allocatable[:, at], 1)).max(axis=1)
        order = sorted(range(len(nodes)), key=lambda row: (-shares[row], nodes.names[row]))
        fullest = [nodes.names[row] for row in order[:busiest]]
        names.update(dict.fromkeys(fullest))
        these = f" ({', '.join(fullest)})" if len(fullest) <= _MOST_NAMED else ""
        titles.append(f"the busiest {f'{len(fullest):,} nodes' if len(fullest) > 1 else 'node'}{these}")
    is_of_nodes = not any("=" in target for target in targets)
    return Failure(name=" and ".join(titles), nodes=tuple(names), is_of_nodes=is_of_nodes)


def _nodes_of(cluster: ClusterNodes, target: str) -> list[str]:
    key, equals, value = target.partition("=")
    if not equals:
        return [cluster.known_name(target.removeprefix("node/"), "or name zone=NAME, nodepool=NAME, LABEL=VALUE")]
    values = {node.name: first_label(node.metadata.labels, LABELS.get(key, (key,))) for node in cluster.nodes}
    names = [name for name, its in values.items() if its == value and its]
    if not names:
        known = sorted({*values.values()} - {""})
        hint = nearest(value, known) or (f"known: {list_names(known, _MOST_NAMED)}" if known else "")
        raise InputError(f"no node has {target}", hint=hint)
    return names


# --- outcomes


class OutageMode(StrEnum):
    OUTAGE = "outage"  # pods are lost at once, and so are volumes that only lost nodes reach
    DRAIN = "drain"  # pods are evicted within their budgets


class OutageOutcome(StrEnum):
    RESCHEDULED = "rescheduled"
    PENDING = "pending"
    NOT_CREATED = "not created"  # the controller does not create the replacement yet, or the API server refuses it
    NOT_RECREATED = "not recreated"  # the pod has no controller
    BLOCKED = "blocked"  # a budget does not allow the eviction
    UNDECIDED = "undecided"


_RESCHEDULED = OutageOutcome.RESCHEDULED  # member lookup is slow


class LostPodDocument(Document, frozen=True):
    """A pod that loses its node, or should."""

    pod: str  # `namespace/name`
    node: str
    outcome: OutageOutcome
    to: str  # the node of the replacement
    message: str  # kube-scheduler's message about the replacement, or why there is none
    by_preemption: bool  # whether its node is not gone, and a pod that lost its own node preempts it


class LostPod(LostPodDocument, frozen=True, gc=False):
    is_ready: bool


class WorkloadImpact(StrEnum):
    """What a failure does to a workload, the worst first."""

    DOWN = "down"  # it had ready replicas, and has none now
    PENDING = "pending"  # it runs with fewer replicas
    BLOCKED = "blocked"  # a budget keeps pods on nodes that should be drained
    UNDECIDED = "undecided"
    INTERRUPTED = "interrupted"  # all ready replicas are lost at once, and run again on other nodes
    RESCHEDULED = "rescheduled"


BROKEN = frozenset({WorkloadImpact.DOWN, WorkloadImpact.PENDING, WorkloadImpact.BLOCKED})
_FAILS = frozenset({OutageOutcome.PENDING, OutageOutcome.NOT_CREATED, OutageOutcome.NOT_RECREATED})


class WorkloadLossDocument(Document, frozen=True):
    """A workload that loses pods."""

    kind: str
    namespace: str
    name: str
    state: WorkloadImpact
    replicas: int  # pods that had a node before the failure
    ready: int  # ready pods before the failure
    lost: int
    left: int  # pods that keep their nodes
    after: int  # pods with a node in the end
    pods: tuple[LostPodDocument, ...]


class WorkloadLoss(OfWorkload, Struct, frozen=True, kw_only=True, dict=True):
    workload: Workload
    replicas: int
    ready: int
    pods: tuple[LostPod, ...]
    is_outage: bool = True

    @cached_property
    def numbers(self) -> Counter[OutageOutcome]:
        return Counter(pod.outcome for pod in self.pods)

    def number(self, *outcomes: OutageOutcome) -> int:
        return sum(self.numbers[outcome] for outcome in outcomes)

    @property
    def lost(self) -> int:
        return len(self.pods) - self.number(OutageOutcome.BLOCKED)

    @property
    def left(self) -> int:
        return self.replicas - self.lost

    @property
    def after(self) -> int:
        return self.left + self.number(OutageOutcome.RESCHEDULED)

    @cached_property
    def state(self) -> WorkloadImpact:
        ready = self.ready - sum(pod.is_ready and pod.outcome is not OutageOutcome.BLOCKED for pod in self.pods)
        if self.number(*_FAILS):
            ends = self.ready and ready + self.number(OutageOutcome.RESCHEDULED, OutageOutcome.UNDECIDED) <= 0
            return WorkloadImpact.DOWN if ends else WorkloadImpact.PENDING
        if self.number(OutageOutcome.BLOCKED):
            return WorkloadImpact.BLOCKED
        if self.number(OutageOutcome.UNDECIDED):
            return WorkloadImpact.UNDECIDED
        is_stopped = self.is_outage and self.ready and ready <= 0
        return WorkloadImpact.INTERRUPTED if is_stopped else WorkloadImpact.RESCHEDULED


class NodeEviction(Document, frozen=True):
    """When the pods of one lost node are deleted, in seconds from the outage."""

    node: str
    taint_after: int | None = field(name="taintAfterSeconds")  # None if the controller stops tainting
    pods: Mapping[str, int | None]
    """Pods, `namespace/name`, to the time; None for those that tolerate the taint forever."""


class FailureDocument(Document, frozen=True):
    """What one failure does."""

    name: str = field(name="failure")
    nodes: tuple[str, ...]
    survives: bool
    lost: int
    counts: Mapping[str, int] = field(name="pods")
    workloads: tuple[WorkloadLossDocument, ...]  # those that lose pods, the worst first
    volumes: tuple[str, ...]  # PersistentVolumes of pods that stay pending, which only lost nodes reach
    freed_by_deletion: int = field(name="freedByNodeDeletion")
    """Pending pods that fit a node once the Node objects are deleted, since a spread constraint counts these nodes."""
    needed: AddedNodes | None  # None if nothing is needed, or if it was not tried
    zones: tuple[ZoneEvictionsDocument, ...]  # the zones of an outage
    evictions: tuple[NodeEviction, ...]  # the evictions of an outage, in order
    drained: tuple[DrainDocument, ...] = field(name="drains")


class FailureResult(Failure, frozen=True, kw_only=True):
    workloads: tuple[WorkloadLoss, ...]
    zones: tuple[ZoneEvictions, ...] = ()
    evictions: tuple[NodeEviction, ...] = ()
    volumes: tuple[str, ...] = ()
    freed_by_deletion: int = 0
    needed: AddedNodes | None = None
    drained: tuple[DrainResult, ...] = ()
    scene: Snapshot | None = None  # the final cluster; kept for the first few failures with pending pods

    def pods(self, *outcomes: OutageOutcome) -> tuple[LostPod, ...]:
        return tuple(pod for workload in self.workloads for pod in workload.pods if pod.outcome in outcomes)

    def of(self, *states: WorkloadImpact) -> tuple[WorkloadLoss, ...]:
        return tuple(workload for workload in self.workloads if workload.state in states)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of pods with each outcome."""
        return {
            camel(outcome.name.lower()): sum(loss.numbers[outcome] for loss in self.workloads)
            for outcome in OutageOutcome
        }

    @property
    def lost(self) -> int:
        return sum(workload.lost for workload in self.workloads)

    @property
    def survives(self) -> bool:
        """Whether every workload that ran has as many replicas as before."""
        return not self.of(*BROKEN)

    @property
    def is_undecided(self) -> bool:
        return bool(self.of(WorkloadImpact.UNDECIDED)) and self.survives


class SurvivalDocument(ClusterDocument, frozen=True):
    mode: OutageMode
    survives: bool
    results: tuple[FailureDocument, ...] = field(name="failures")


class Survival(Shown, Struct, frozen=True, kw_only=True):
    """The effects of failures, each by itself."""

    simulation: Simulation  # the cluster after the changes, before any failure
    mode: OutageMode
    results: tuple[FailureResult, ...]

    def __repr__(self) -> str:
        failing = sum(not result.survives for result in self.results)
        return f"<Survival: {failing:,} of {len(self.results):,} failures leave workloads short>"

    @property
    def survives(self) -> bool:
        return all(result.survives for result in self.results)

    @property
    def is_undecided(self) -> bool:
        return self.survives and any(result.is_undecided for result in self.results)

    def records(self) -> list[dict[str, object]]:
        """Return a row per failure and workload that loses pods."""
        return [
            {
                "failure": result.name,
                "kind": loss.workload.kind,
                "namespace": loss.workload.namespace,
                "name": loss.workload.name,
                "state": loss.state.value,
                "replicas": loss.replicas,
                "lost": loss.lost,
                "after": loss.after,
            }
            for result in self.results
            for loss in result.workloads
        ]

    def to_dict(self) -> Json:
        return document("Survival", SurvivalDocument, self, **self.simulation.cluster_fields)


def survive(
    snapshot: Snapshot,
    setup: Setup,
    failures: Sequence[Failure],
    wanted: Sequence[SimulatedChange] = (),
    *,
    mode: OutageMode = OutageMode.OUTAGE,
    namespace: str = "default",
) -> Survival:
    """Try failures one by one, in the cluster after the changes. A drain has `--force` and `--delete-emptydir-data`.
    Raises `InputError`, and `NotReadError` for a dump without pods."""
    require_pods(snapshot)
    options = SimulationOptions(force=True, delete_emptydir_data=True, joins=True)
    changed = settle(snapshot, setup, wanted, options, namespace)
    trial = _Trial(changed.simulator, mode)
    each = count_items(failures, Phase.TUNING, len(failures), "failures") if len(failures) > 1 else failures
    results = tuple(map(trial.result, each))
    return Survival(simulation=changed.simulation(), mode=mode, results=results)


class _Trial:
    """A cluster in which failures are tried and reverted."""

    def __init__(self, simulator: Simulator, mode: OutageMode) -> None:
        self._simulator = simulator
        self._mode = mode
        self._advised = 0
        self._scenes = 0
        self._mark = simulator.mark()
        self._comparison = simulator.setup.release.compares_taints
        pods = simulator.run.cluster.pods
        self._is_available = simulator.available()
        self._is_movable = ~(pods.terminating | staying_with_nodes(pods))
        """Pods that are not terminating and do not belong to their node."""
        self._replicas, self._ready = self._counts()
        self._zones = NodeZones(simulator.run.snapshot.cluster.nodes)

    def _counts(self) -> tuple[Counter[Workload], Counter[Workload]]:
        """Return the number of each workload's pods with a node, and of its ready pods."""
        pods, owners = self._simulator.run.cluster.pods, self._simulator.manager.owners
        running = owners.rows_by_workload(pods, np.flatnonzero(self._is_movable & (pods.node >= 0)))
        replicas = Counter({workload: len(rows) for workload, rows in running.items()})
        is_ready = self._is_available
        ready = Counter({workload: int(np.count_nonzero(is_ready[rows])) for workload, rows in running.items()})
        return replicas, ready

    def result(self, failure: Failure) -> FailureResult:
        """Let the nodes fail, return the effects, and revert the cluster."""
        cluster = self._simulator.run.cluster
        places = [place for name in failure.nodes if (place := cluster.snapshot.cluster.index.get(name)) is not None]
        if len(places) < len(failure.nodes):
            raise InputError(f"{failure.name}: a change removes its nodes")
        pods = cluster.pods
        nodes = {
            name: [row for row in pods.on_node(place).tolist() if self._is_movable[row]]
            for name, place in zip(failure.nodes, places, strict=True)
        }
        rows = {row: name for name, its in nodes.items() for row in its}
        specs = pods.specs.take(np.array([*rows], dtype=np.int64))
        keys = dict(zip(rows, pods.keys([*rows]), strict=True))
        failure_result = self._failure_result(failure, places, rows, keys)
        if self._mode is OutageMode.OUTAGE:
            stays = {
                code: stay_seconds(_LOST, specs.values[code].tolerations, comparison=self._comparison)
                for code in {*specs.codes.tolist()}
            }
            seconds = {row: stays[code] for row, code in zip(rows, specs.codes.tolist(), strict=True)}
            failure_result = replace(failure_result, **self._lifecycle(failure, nodes, keys, seconds))
        self._simulator.revert(self._mark)
        return failure_result

    # --- the failure itself

    def _failure_result(
        self, failure: Failure, places: Sequence[ClusterRow], rows: Mapping[int, str], keys: Mapping[int, str]
    ) -> FailureResult:
        simulator, drained = self._simulator, tuple[DrainResult, ...]()
        first_row = len(simulator.pods)
        if self._mode is OutageMode.OUTAGE:
            self._fail(places, rows)
        else:
            drained = tuple(drain(simulator, failure.nodes, uncordons=False))
        account = _Account(simulator, failure, first_row, self._mark.record.steps)
        ready = self._is_available
        fates = {pod.pod: (pod.fate, pod.budget) for drain_result in drained for pod in drain_result.pods}
        lost = [(row, account.lost(row, keys[row], rows[row], bool(ready[row]), fates)) for row in sorted(rows)]
        workloads = self._workload_losses([*lost, *account.preempted_pods({*rows}, ready)])
        failure_result = FailureResult(**asdict(failure), workloads=workloads, drained=drained)
        return failure_result if failure_result.survives else self._with_remedies(failure_result, account)

    def _fail(self, places: Iterable[ClusterRow], rows: Iterable[int]) -> None:
        """Delete all pods and make the nodes unreachable: controllers' new pods are placed on other nodes."""
        simulator, cluster = self._simulator, self._simulator.run.cluster
        for place in places:
            cluster.replace_node(place, _unreachable(cluster.snapshot.cluster.nodes[place]))
        lost = np.array([*rows], dtype=np.int64)
        doubtful = lost[cluster.pods.owners.take(lost).where(may_be_lost)].tolist()
        stays_lost = [row for row in doubtful if loss_reason(cluster.snapshot, cluster.pods, row)]
        for row in stays_lost:
            simulator.delete(row)
        simulator.react(simulator.evict({*lost.tolist()}.difference(stays_lost)))

    def _workload_losses(self, lost: Iterable[tuple[int, LostPod]]) -> tuple[WorkloadLoss, ...]:
        owners, pods = self._simulator.manager.owners, self._simulator.run.cluster.pods
        pod_of = dict(lost)
        losses = [
            WorkloadLoss(
                workload=workload,
                replicas=self._replicas[workload],
                ready=self._ready[workload],
                pods=tuple(map(pod_of.__getitem__, rows.tolist())),
                is_outage=self._mode is OutageMode.OUTAGE,
            )
            for workload, rows in owners.rows_by_workload(pods, np.array([*pod_of], dtype=np.int64)).items()
        ]
        order = list(WorkloadImpact)
        return tuple(sorted(losses, key=lambda loss: (order.index(loss.state), -loss.lost, loss.workload.reference)))

    # --- remedies

    def _with_remedies(self, failure_result: FailureResult, account: _Account) -> FailureResult:
        simulator = self._simulator
        scene = None
        if self._scenes < MOST_SCENES:
            self._scenes += 1
            scene = simulator.run.cluster.frozen()
        waiting = account.pending_rows([*failure_result.pods(OutageOutcome.PENDING)])
        if not waiting or self._advised >= _MOST_ADVISED:
            return replace(failure_result, scene=scene)
        self._advised += 1
        volumes = tuple(dict.fromkeys(name for row in waiting for name in self._lost_volumes(row, failure_result)))
        spread = [row for row in waiting if _SPREAD in account.message(row)]
        freed = self._without_node_objects(spread, failure_result) if spread else 0
        keeps_zones = failure_result.is_of_nodes
        needed = nodes_for(simulator, waiting, failure_result.nodes, keeps_labels=not freed, keeps_zones=keeps_zones)
        return replace(failure_result, scene=scene, volumes=volumes, freed_by_deletion=freed, needed=needed)

    def _lost_volumes(self, row: int, failure: Failure) -> Iterator[str]:
        """Yield the volumes of a pod that only lost nodes reach."""
        snapshot, pods = self._simulator.run.snapshot, self._simulator.run.cluster.pods
        gone = {*failure.nodes}
        for volume in pods.specs[row].volumes:
            claimed = volume.persistent_volume_claim
            claim = None if claimed is None else snapshot.storage.claim(pods.namespaces[row], claimed.claim_name)
            known = None if claim is None else snapshot.storage.volumes.get(claim.spec.volume_name)
            if known is None or known.required_node_affinity is None:
                continue
            reaches = required_node_affinity({}, known.required_node_affinity)
            nodes = [node for node in snapshot.cluster.nodes if reaches.matches(node.metadata.labels, node.name)]
            if nodes and all(node.name in gone for node in nodes):
                yield known.name

    def _without_node_objects(self, rows: Sequence[int], failure: Failure) -> int:
        """Return how many of these pods fit a node once no topology counts the lost nodes."""
        simulator, cluster = self._simulator, self._simulator.run.cluster
        mark = cluster.mark()
        index = cluster.snapshot.cluster.index
        for name in failure.nodes:
            node = cluster.snapshot.cluster.nodes[index[name]]
            cluster.replace_node(index[name], replace(node, metadata=replace(node.metadata, labels={})))
        steps = len(simulator.queue.steps)
        simulator.queue.run(simulator.queue.order(rows))
        del simulator.queue.steps[steps:]
        freed = sum(bool(cluster.pods.node[row] >= 0) for row in rows)
        cluster.revert(mark)
        return freed

    # --- the node lifecycle controller

    def _lifecycle(
        self,
        failure: Failure,
        nodes: Mapping[str, Sequence[int]],
        keys: Mapping[int, str],
        seconds: Mapping[int, int | None],
    ) -> dict[str, object]:
        """Return the fields about evictions. `nodes` are the earlier pods of each lost node; `seconds` is how long each
        pod tolerates the taint."""
        is_longer = self._simulator.setup.release.behavior.nodes_may_be_silent_longer
        zones = self._zones.evictions(failure.nodes, GRACE if is_longer else GRACE_BEFORE)
        evictions = []
        for zone in zones:
            for place, name in enumerate(zone.lost):
                taint = zone.tainted_after(place)
                times = {
                    keys[row]: None if taint is None or (stays := seconds[row]) is None else taint + stays
                    for row in nodes[name]
                }
                evictions.append(NodeEviction(node=name, taint_after=taint, pods=times))
        evictions.sort(key=lambda eviction: (eviction.taint_after is None, eviction.taint_after or 0, eviction.node))
        return {"zones": zones, "evictions": tuple(evictions)}


def _unreachable(node: Node) -> Node:
    """Return the node with the taints and the condition that the node lifecycle controller sets once the node stops
    reporting."""
    taints = (*(taint for taint in node.spec.taints if taint.key not in LOST_TAINTS), *_LOST)
    conditions = tuple(
        NodeCondition(type="Ready", status="Unknown") if condition.type == "Ready" else condition
        for condition in node.status.conditions
    )
    return replace(with_spec(node, taints=taints), status=replace(node.status, conditions=conditions))


class _Account:
    """The outcomes of the pods that lost their nodes."""

    def __init__(self, simulator: Simulator, failure: Failure, first_row: int, first_step: int) -> None:
        self._simulator = simulator
        self._pods = simulator.pods
        self._may_be_lost = self._pods.owners.where(may_be_lost)
        self._gone = {*failure.nodes}
        self._steps: Sequence[QueueStep] = simulator.queue.steps[first_step:]
        self._last = {step.pod: step for step in self._steps}
        self._first_row = first_row
        self._deleted = simulator.deleted
        self._row_of: dict[str, int] = {}  # lost pods with a pending replacement, to the row of the replacement

    @cached_property
    def _successors(self) -> dict[Workload, list[int]]:
        """New pods under new names, by workload, which replace deleted ones."""
        pods, owners, new = self._pods, self._simulator.manager.owners, range(self._first_row, len(self._pods))
        rows = (row for row in new if row not in self._deleted and not stays_with_node(pods, row))
        return group_pairs((owners.of(pods, row), row) for row in rows)

    def lost(
        self,
        row: int,
        key: str,
        node: str,
        is_ready: bool,
        fates: Mapping[str, tuple[DrainOutcome, str]],
        *,
        preempted: bool = False,
    ) -> LostPod:
        simulator, pods = self._simulator, self._pods

        def ends(outcome: OutageOutcome, message: str = "", to: str = "") -> LostPod:
            return LostPod(key, node, outcome, to, message, preempted, is_ready)

        fate, budget = fates.get(key, (None, ""))
        if fate in STAYS:
            return ends(OutageOutcome.BLOCKED, budget)
        if self._may_be_lost[row] and (why := loss_reason(simulator.run.snapshot, pods, row)):
            return ends(OutageOutcome.NOT_RECREATED, why)
        now = pods.rows[key]
        if now in self._deleted:
            workload = simulator.manager.owners.of(pods, row)
            others = self._successors.get(workload)
            if not others:
                refused = simulator.manager.refused.get(workload)
                why = "its controller waits for other pods first" if refused is None else refused.refusal
                return ends(OutageOutcome.NOT_CREATED, why)
            now = others.pop(0)
        elif now >= self._first_row:
            its = self._successors.get(simulator.manager.owners.of(pods, now), [])
            if now in its:
                its.remove(now)
        if pods.node[now] >= 0:
            name = pods.node_names[now]
            if name not in self._gone:
                return ends(_RESCHEDULED, to=name)
            message = f"its tolerations let kube-scheduler assign it to {name}, which is gone"
            return ends(OutageOutcome.PENDING, message)
        self._row_of[key] = now
        step = self._last.get(now)
        if step is not None and step.decision is None:
            return ends(OutageOutcome.UNDECIDED, step.undecided)
        return ends(OutageOutcome.PENDING, self.message(now))

    def message(self, row: int) -> str:
        """Return kube-scheduler's message, or why kube-scheduler does not look at the pod."""
        step, spec = self._last.get(row), self._pods.specs[row]
        if step is not None:
            return step.message
        if spec.scheduling_gates:
            return f"it has the scheduling gate {spec.scheduling_gates[0].name}"
        return f'no profile of the configuration has the schedulerName "{spec.scheduler_name}"'

    def preempted_pods(self, known: Collection[int], ready: BoolArray) -> Iterator[tuple[int, LostPod]]:
        """Yield the pods that kept their nodes and are preempted by pods that lost theirs. `ready` is by row."""
        seen = set(known)
        for step in self._steps:
            for row in step.victims:
                if row in seen or row >= self._first_row:
                    continue
                seen.add(row)
                key = self._pods.key(row)
                yield row, self.lost(row, key, self._node_of(row, step), bool(ready[row]), {}, preempted=True)

    def _node_of(self, victim: int, step: QueueStep) -> str:
        """Return the node of a victim. A victim of a pod group may run on any node."""
        if step.nominated is None:
            return self._simulator.base.pods.node_names[victim]
        return step.names([step.nominated])[0]

    def pending_rows(self, lost: Iterable[LostPod]) -> list[int]:
        """Return the rows of the pending replacements of these pods, in queue order."""
        rows = [row for pod in lost if (row := self._row_of.get(pod.pod)) is not None]
        return self._simulator.queue.order(rows)

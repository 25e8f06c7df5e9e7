"""All nodes with what is free, and one node: its resources, the pods that use them, and kube-scheduler's result there
for each pending pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.controllers.disruption_budgets import BudgetStatus, budgets_of, is_healthy
from kschedx.controllers.due_deletions import rows_to_be_deleted
from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.state_causes import predicate
from kschedx.controllers.states import ExitCode, KeptBySidecar, Lifecycle, OnLostNode, StateDocument, state_document
from kschedx.controllers.workloads import stays_with_node
from kschedx.errors import InputError, UndecidableError, nearest
from kschedx.explain.advice import FixGroup
from kschedx.explain.causes import answer_keys, rows_in_queue_order
from kschedx.explain.diagnosis import Diagnosis, Holder, holder
from kschedx.explain.events import recorded_event
from kschedx.explain.missing_kinds import cycle_of
from kschedx.explain.node_groups import account
from kschedx.explain.setup import Setup, stored_subject
from kschedx.findings import Finding
from kschedx.findings.facts import FindingDocument
from kschedx.fixes.node_remedies import node_repairs
from kschedx.fixes.phrases import budgets_by_drain
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.grouping import group_pairs
from kschedx.inquiry.document import FixDocument
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.pod import contradiction, explain, no_scheduler
from kschedx.kube.autoscalers import CAPACITY_TYPE, DO_NOT_DISRUPT, NODE_POOL
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.documents import Document, Json, document, part_of
from kschedx.kube.names import INSTANCE_TYPE_LABELS, PODS, POOL_LABELS, ZONE_LABELS, first_label
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.selectors import Selector
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, TO_BE_DELETED
from kschedx.kube.types import LOST_TAINTS, Labels, Node, Pod
from kschedx.parallel import processors, results
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.snapshot.columns import each_cluster_row
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.words.constraints import fault_text
from kschedx.words.pod import could_reject

_SET_BY_KARPENTER = ("karpenter.sh/disrupted", "karpenter.sh/disruption")
"""The taint of a node that Karpenter empties, in its present version and before 1.0."""
_EVICTED = "Evicted"  # the reason in the status of a pod that its kubelet evicted


class ResourceUse(Struct, frozen=True, kw_only=True):
    """One resource of the node, in the integers of plugins."""

    resource: str
    unit: Unit
    allocatable: int
    requested: int
    holders: tuple[Holder, ...]  # largest first

    @property
    def free(self) -> int:
        return self.allocatable - self.requested


class PendingPodVerdict(Struct, frozen=True, kw_only=True):
    """The result of one pending pod on the node."""

    pod: str
    priority: int
    findings: tuple[Finding, ...] = ()  # empty if the pod fits
    plugins: tuple[str, ...] = ()
    is_excluded: bool = False  # whether the pod names other nodes, so that this one is not evaluated
    undecided: str = ""  # what is unknown and could change the result
    state: StateDocument | None = None  # why kube-scheduler does not assign the pod, although the pod fits the node
    standing: str = ""  # the text of `state`, without its subject

    @property
    def fits(self) -> bool:
        return not (self.plugins or self.undecided or self.state)


class NodeAnswer(Shown):
    """The answer about one node of a cluster, for one scheduler setup."""

    def __init__(self, setup: Setup, snapshot: Snapshot, name: str) -> None:
        self._setup = setup
        self.snapshot = snapshot
        self._scheduler = setup.scheduler_on(snapshot)
        self.name = name
        self.row = snapshot.cluster.index[name]

    @property
    def node(self) -> Node:
        return self._scheduler.snapshot.cluster.nodes[self.row]

    @property
    def _table(self) -> NodeTable:
        return self._scheduler.nodes

    @property
    def pods(self) -> int:
        return int(self._table.pod_count[self.row])

    @property
    def is_unused(self) -> bool:
        """Whether all pods on it belong to it, although nothing is known that keeps others off."""
        pods, spec = self._scheduler.snapshot.pods, self.node.spec
        is_open = not spec.unschedulable and not any(taint.effect in DO_NOT_SCHEDULE for taint in spec.taints)
        return is_open and all(stays_with_node(pods, row) for row in pods.on_node(self.row).tolist())

    @property
    def most_pods(self) -> int:
        return int(self._table.allowed_pods[self.row])

    @cached_property
    def offers(self) -> tuple[ResourceUse, ...]:
        """The node's resources, without those that it lacks and no pod requests."""
        table, pods = self._table, self._scheduler.snapshot.pods
        rows, uses = pods.on_node(self.row), []
        for column, resource in enumerate(table.resources.names):
            allocatable, requested = (int(it[self.row, column]) for it in (table.allocatable, table.requested))
            if not allocatable and not requested:
                continue
            amounts = table.requests.matrix[rows, column]
            order = (i for i in np.argsort(-amounts, kind="stable") if amounts[i] > 0)
            holders = tuple(holder(pods, int(rows[i]), int(amounts[i])) for i in order)
            unit = Unit.of(resource)
            use = ResourceUse(
                resource=resource, unit=unit, allocatable=allocatable, requested=requested, holders=holders
            )
            uses.append(use)
        return tuple(uses)

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What makes the node fit for pods again, and what lets it be emptied, which comes first if no pod is pending
        that may be for the node."""
        steps = node_repairs(self.row, self.node, self._scheduler.snapshot)
        fixes = [Fix.untried(step.title, *step.commands(), of_group=FixGroup.CAPACITY) for step in steps]
        if self.blocking_budgets:
            freed = Fix.of_advice(budgets_by_drain(self.name, [*self.blocking_budgets]))
            fixes.insert(len(fixes) if self.verdicts else 0, freed)
        return tuple(fixes)

    @property
    def is_to_be_emptied(self) -> bool:
        """Whether it is cordoned, being deleted, or being removed by an autoscaler."""
        taints = any(taint.key.startswith((TO_BE_DELETED, *_SET_BY_KARPENTER)) for taint in self.node.spec.taints)
        return taints or self.node.spec.unschedulable or bool(self.node.metadata.deletion_timestamp)

    @cached_property
    def guarded_pods(self) -> tuple[str, ...]:
        """The pods that an annotation keeps on a node that Karpenter empties."""
        pods, metadata = self._scheduler.snapshot.pods, self.node.metadata
        is_tainted = any(taint.key.startswith(_SET_BY_KARPENTER) for taint in self.node.spec.taints)
        if NODE_POOL not in metadata.labels or not (is_tainted or metadata.deletion_timestamp):
            return ()
        rows = (int(row) for row in pods.on_node(self.row) if not pods.terminating[row])
        return tuple(pods.key(row) for row in rows if pods.annotations[row].get(DO_NOT_DISRUPT) == "true")

    @cached_property
    def evicted_pods(self) -> Sequence[Pod]:
        """The pods that its kubelet evicted and whose objects remain, the newest first."""
        pods = self._scheduler.snapshot.pods
        failed = pods.node_names.where(self.name.__eq__) & pods.phases.where(lambda phase: phase == "Failed")
        evicted = (pod for pod in map(pods.__getitem__, failed.nonzero()[0].tolist()) if pod.status.reason == _EVICTED)
        return sorted(evicted, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)

    @cached_property
    def blocking_budgets(self) -> Mapping[str, BudgetStatus]:
        """The PodDisruptionBudgets that allow no eviction of its pods, with their status, if the node is to be
        emptied."""
        snapshot, blocking = self._scheduler.snapshot, {}
        if not self.is_to_be_emptied:
            return {}
        rows = [row for row in snapshot.pods.on_node(self.row) if not snapshot.pods.terminating[row]]
        for budget in budgets_of(snapshot, snapshot):
            covered = [row for row in rows if budget.covers(snapshot.pods, row)]
            status = budget.current_status(snapshot, snapshot.pods, ()) if covered else None
            is_free = budget.frees_unhealthy and not any(is_healthy(snapshot.pods, row, ()) for row in covered)
            if status is not None and status.allowed <= 0 and not is_free:
                blocking[budget.name] = status
        return blocking

    @cached_property
    def states(self) -> tuple[Lifecycle, ...]:
        """The states of the pods on the node that are not simply running."""
        snapshot = self._scheduler.snapshot
        rows = snapshot.pods.on_node(self.row)
        held = (pod_lifecycle(snapshot, snapshot.pods[int(row)]) for row in rows)
        return tuple(state for state in held if state is not None and not isinstance(state, OnLostNode | KeptBySidecar))

    @cached_property
    def verdicts(self) -> Sequence[PendingPodVerdict]:
        """The result of each pending pod on the node, in queue order."""
        snapshot, pods = self.snapshot, self.snapshot.pods
        gone = rows_to_be_deleted(snapshot, pods.pending)
        queued = [row for row in rows_in_queue_order(snapshot, self._setup.scheduler) if row not in gone]
        kinds = answer_keys(snapshot, queued)
        firsts = {kinds.get(row, row): row for row in reversed(queued)}
        each = results(self._verdict, [*firsts.values()], processors())
        by_kind = dict(zip(firsts, count_items(each, Phase.DECIDING, len(firsts), "pods"), strict=True))

        def verdict_of(row: int) -> PendingPodVerdict:
            """Return the verdict of an identical pod, unless this pod's own state or event may decide."""
            verdict, pod = by_kind[kinds.get(row, row)], pods[row]
            if verdict.pod == pod.key:
                return verdict
            is_own = verdict.state or (verdict.fits and (recorded_event(snapshot, pod) or pod_lifecycle(snapshot, pod)))
            return self._verdict(row) if is_own else replace(verdict, pod=pod.key)

        return [verdict_of(row) for row in queued]

    def _verdict(self, row: int) -> PendingPodVerdict:
        pods = self.snapshot.pods
        verdict = PendingPodVerdict(pod=pods.key(row), priority=int(pods.priorities[row]))
        try:
            return self._decide(self._scheduler.snapshot.pods[row], verdict)
        except UndecidableError as error:
            return replace(verdict, undecided=str(error))

    def _decide(self, pod: Pod, verdict: PendingPodVerdict) -> PendingPodVerdict:
        """Return the `verdict` about a pod with its result. Raises `UndecidableError`."""
        if (unknown := no_scheduler(self._scheduler.snapshot, pod, self._setup)) is not None:
            by_another = explain(stored_subject(self._scheduler.snapshot, pod), self._setup).cycle.unevaluated
            return replace(verdict, undecided=could_reject(by_another) or unknown.known)
        cycle = cycle_of(self._scheduler, pod, self._setup.profile_of(pod))
        diagnosis = Diagnosis(cycle)
        if diagnosis.stops:
            stops = [stop.status for stop in diagnosis.stops]
            findings = tuple(finding for status in stops for finding in status.findings)
            return replace(verdict, findings=findings, plugins=tuple(status.plugin for status in stops))
        here = None if cycle.nodes is None else cycle.nodes.row_named(self.name)
        if here is None:
            left_out = diagnosis.excluded.plugins if diagnosis.excluded is not None else ()
            return replace(verdict, plugins=left_out or ("PreFilter",), is_excluded=True)
        node_account = account(cycle, here)
        is_open = not node_account.blockers and cycle.outcome is Outcome.UNDECIDED
        verdict = replace(
            verdict,
            findings=node_account.findings,
            plugins=tuple(blocker.plugin for blocker in node_account.blockers),
            undecided=could_reject(cycle.unevaluated) if is_open else "",
        )
        return self._add_state(verdict, cycle) if verdict.fits else verdict

    def _add_state(self, verdict: PendingPodVerdict, cycle: Cycle) -> PendingPodVerdict:
        """The result with the state of a pod that fits the node, if the state keeps the pod from being assigned."""
        subject = stored_subject(self._scheduler.snapshot, cycle.pod)
        lifecycle = pod_lifecycle(subject.snapshot, cycle.pod) or contradiction(cycle, subject, self._setup)
        explanation = Explanation(cycle, self._scheduler, lifecycle=lifecycle)
        if lifecycle is None and (explanation.gang is None or explanation.overall is Outcome.SCHEDULED):
            return verdict
        phrase = f"fits alone, but not with its group {explanation.gang.name}" if explanation.gang is not None else ""
        if lifecycle is not None:
            phrase = predicate(lifecycle)
        is_open = explanation.state.exit_code is ExitCode.UNDECIDED
        return replace(verdict, state=explanation.state_document, standing=phrase, undecided=phrase if is_open else "")

    def to_dict(self) -> Json:
        return document(
            "NodeReport",
            NodeReportDocument,
            name=self.name,
            trouble=fault_text(self.node, self.snapshot.taken),
            unschedulable=self.node.spec.unschedulable,
            taints=tuple(map(str, self.node.spec.taints)),
            blocked_by=tuple(self.blocking_budgets),
            evicted=tuple(pod.key for pod in self.evicted_pods),
            pods=PodCount(self.pods, self.most_pods),
            resources={offer.resource: offer for offer in self.offers},
            states=tuple(map(state_document, self.states)),
            pending=tuple(
                part_of(PendingDocument, verdict, findings=tuple(finding.to_dict() for finding in verdict.findings))
                for verdict in self.verdicts
            ),
            fixes=tuple(fix.document() for fix in self.fixes),
        )


class PodCount(Document, frozen=True):
    running: int
    allowed: int


class ResourceDocument(Document, frozen=True):
    allocatable: int
    requested: int
    free: int
    unit: Unit
    holders: tuple[Holder, ...]


class PendingDocument(Document, frozen=True, omit_defaults=True):
    pod: str
    fits: bool
    plugins: tuple[str, ...] = field(name="rejectedBy")
    findings: tuple[FindingDocument, ...]
    undecided: str = ""
    state: StateDocument | None = None


class NodeReportDocument(Document, frozen=True):
    name: str
    trouble: str
    """What keeps pods off the node, such as `not ready: cni plugin not initialized`; empty for a healthy node."""
    unschedulable: bool
    taints: tuple[str, ...]
    blocked_by: tuple[str, ...]
    """PodDisruptionBudgets that allow no eviction of its pods, if it is cordoned or being deleted or removed."""
    evicted: tuple[str, ...]  # pods that its kubelet evicted and whose objects remain, the newest first
    pods: PodCount
    resources: Mapping[str, ResourceDocument]
    states: tuple[StateDocument, ...]
    pending: tuple[PendingDocument, ...]
    fixes: tuple[FixDocument, ...]


# All nodes side by side: requests of their pods, free resources, and the largest pod that still fits.

_CAPACITY_TYPES = (CAPACITY_TYPE, "eks.amazonaws.com/capacityType", "kubernetes.azure.com/scalesetpriority")
_SPOT = "cloud.google.com/gke-spot"


class Use(Struct, frozen=True, kw_only=True):
    """One resource of one or several nodes: cpu in millicores, memory in bytes."""

    requested: int = 0
    allocatable: int = 0

    @property
    def free(self) -> int:
        """The free amount; negative if the pods request more than is allocatable."""
        return self.allocatable - self.requested

    @property
    def percent(self) -> int:
        """The requested share; 0 if nothing is allocatable."""
        return 100 * self.requested // self.allocatable if self.allocatable > 0 else 0


class NodeRow(Struct, frozen=True, kw_only=True):
    name: str
    status: str  # the status as `kubectl get nodes` prints it: `Ready,SchedulingDisabled`
    zone: str = ""
    pool: str = ""
    type: str = ""
    capacity_type: str = ""  # `on-demand` or `spot`; empty if no label has it
    price: float | None = None  # the price per hour; None without a catalog of instance types
    taints: tuple[str, ...] = ()
    pods: Use
    resources: Mapping[str, Use]

    @property
    def is_open(self) -> bool:
        """Whether a pod that tolerates the node's taints can be assigned to it. Nearly no pod tolerates the taints of a
        node that is not ready, even if they are left over."""
        is_lost = any(taint.startswith(tuple(LOST_TAINTS)) for taint in self.taints)
        return self.status == "Ready" and not is_lost and self.pods.free > 0

    def largest(self, resource: str) -> int:
        """Return the largest request of one more pod that fits."""
        use = self.resources.get(resource)
        return max(use.free, 0) if use is not None and self.is_open else 0


PriceOf = Callable[[str, str, str], float | None]  # returns the price for an instance type, a zone, and a capacity type


def node_rows(table: NodeTable, labels: Selector | None = None, price_of: PriceOf | None = None) -> tuple[NodeRow, ...]:
    """Return the nodes of a table that `labels` select, sorted by name."""
    rows = []
    for at, row in enumerate(each_cluster_row(table.rows)):
        node = table.cluster.nodes[row]
        if labels is not None and not labels.matches(node.metadata.labels):
            continue
        requested, offered = table.requested[at].tolist(), table.allocatable[at].tolist()
        amounts = zip(table.resources.names, requested, offered, strict=True)
        uses = {name: Use(requested=used, allocatable=has) for name, used, has in amounts if used or has}
        labels_of = partial(first_label, node.metadata.labels)
        zone, pool, type_ = map(labels_of, (ZONE_LABELS, POOL_LABELS, INSTANCE_TYPE_LABELS))
        bought = _capacity_type(node.metadata.labels)
        rows.append(
            NodeRow(
                name=node.name,
                status=_status_of(node),
                zone=zone,
                pool=pool,
                type=type_,
                capacity_type=bought,
                price=price_of(type_, zone, bought or "on-demand") if price_of is not None and type_ else None,
                taints=tuple(map(str, node.spec.taints)),
                pods=Use(requested=int(table.pod_count[at]), allocatable=int(table.allowed_pods[at])),
                resources=uses,
            )
        )
    return tuple(sorted(rows, key=lambda node_row: node_row.name))


def _capacity_type(labels: Labels) -> str:
    if labels.get(_SPOT) == "true":
        return "spot"
    return first_label(labels, _CAPACITY_TYPES).lower().replace("_", "-").replace("regular", "on-demand")


def _status_of(node: Node) -> str:
    """Return the status as `kubectl get nodes` prints it. A node without the condition Ready, as in handwritten
    manifests, counts as ready unless its taints contradict."""
    is_ready = reports_ready(node.status.conditions)
    if condition_of(node.status.conditions, "Ready") is None:
        is_ready = not any(taint.key in LOST_TAINTS for taint in node.spec.taints)
    status = "Ready" if is_ready else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def total(rows: Sequence[NodeRow]) -> Mapping[str, Use]:
    """Return the resources of all nodes together, including the number of pods."""
    uses = group_pairs((name, use) for row in rows for name, use in (*row.resources.items(), (PODS, row.pods)))
    return {
        name: Use(requested=sum(it.requested for it in every), allocatable=sum(it.allocatable for it in every))
        for name, every in uses.items()
    }


class Sort(StrEnum):
    """Columns to sort by, besides resources. A resource sorts by the requested share, largest first."""

    NAME = "name"
    STATUS = "status"
    ZONE = "zone"
    POOL = "pool"
    TYPE = "type"
    PRICE = "price"
    PODS = "pods"
    FREE = "free"  # sorts by the largest pod that fits


def sorted_rows(rows: Sequence[NodeRow], column: str) -> tuple[NodeRow, ...]:
    """Return the rows sorted by a column. Raises `InputError` for an unknown column."""
    match column:
        case Sort.NAME:
            return tuple(rows)
        case Sort.STATUS | Sort.ZONE | Sort.POOL | Sort.TYPE:
            return tuple(sorted(rows, key=lambda node_row: getattr(node_row, column)))
        case Sort.PRICE:
            return tuple(sorted(rows, key=lambda node_row: -(node_row.price or 0)))
        case Sort.PODS:
            return tuple(sorted(rows, key=lambda node_row: -node_row.pods.percent))
        case Sort.FREE:
            return tuple(sorted(rows, key=lambda node_row: (-node_row.largest("cpu"), -node_row.largest("memory"))))
    resources = sorted({name for row in rows for name in row.resources})
    if column not in resources:
        known = (*map(str, Sort), *resources)
        hint = nearest(column, known) or f"known: {', '.join(known)}"
        raise InputError(f'--sort: no column is called "{column}"', hint=hint)
    return tuple(sorted(rows, key=lambda node_row: -node_row.resources.get(column, Use()).percent))


# The document, with quantities as Kubernetes formats them.


class UseDocument(Document, frozen=True):
    requested: str
    free: str
    allocatable: str


class NodeDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    status: str
    zone: str = ""
    pool: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    price: float | None = None
    taints: tuple[str, ...] = ()
    resources: Mapping[str, UseDocument]
    largest_pod: Mapping[str, str] = {}
    """The largest request of each resource that one more pod can have; empty if no pod fits."""


class NodesDocument(Document, frozen=True):
    nodes: tuple[NodeDocument, ...]
    total: Mapping[str, UseDocument]


def nodes_document(rows: Sequence[NodeRow]) -> Json:
    return document("Nodes", NodesDocument, nodes=tuple(map(_node_document, rows)), total=dict(_uses(total(rows))))


def _node_document(row: NodeRow) -> NodeDocument:
    return part_of(
        NodeDocument,
        row,
        instance_type=row.type,
        resources=dict(_uses({**row.resources, PODS: row.pods})),
        largest_pod={
            name: format_quantity(row.largest(name), Unit.of(name)) for name in row.resources if row.largest(name)
        },
    )


def _uses(uses: Mapping[str, Use]) -> Iterator[tuple[str, UseDocument]]:
    for name, use in uses.items():
        requested, free, allocatable = (
            format_quantity(number, Unit.of(name)) for number in (use.requested, use.free, use.allocatable)
        )
        yield name, UseDocument(requested=requested, free=free, allocatable=allocatable)

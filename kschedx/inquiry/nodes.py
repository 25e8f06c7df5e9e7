"""All nodes side by side: requests of their pods, free resources, and the largest pod that still fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.errors import InputError, nearest
from kschedx.kube.autoscalers import CAPACITY_TYPE
from kschedx.kube.conditions import reports_ready
from kschedx.kube.documents import Document, Json, document, part_of
from kschedx.kube.names import INSTANCE_TYPE_LABELS, PODS, POOL_LABELS, ZONE_LABELS, first_label
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.selectors import Selector
from kschedx.kube.types import LOST_TAINTS, Labels, Node
from kschedx.snapshot.columns import each_cluster_row
from kschedx.snapshot.nodes import NodeTable

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

    def and_(self, other: Use) -> Use:
        return Use(requested=self.requested + other.requested, allocatable=self.allocatable + other.allocatable)


class NodeRow(Struct, frozen=True, kw_only=True):
    name: str
    status: str
    """The status as `kubectl get nodes` prints it: `Ready,SchedulingDisabled`."""
    zone: str = ""
    pool: str = ""
    type: str = ""
    capacity_type: str = ""
    """`on-demand` or `spot`; empty if no label has it."""
    price: float | None = None
    """Per hour; None without a catalog of instance types."""
    taints: tuple[str, ...] = ()
    pods: Use
    resources: Mapping[str, Use]

    @property
    def is_open(self) -> bool:
        """Whether a pod that tolerates the node's taints can be assigned to it."""
        return self.status == "Ready" and self.pods.free > 0

    def largest(self, resource: str) -> int:
        """Return the largest request of one more pod that fits."""
        use = self.resources.get(resource)
        return max(use.free, 0) if use is not None and self.is_open else 0


PriceOf = Callable[[str, str, str], float | None]
"""Returns the price for an instance type, a zone, and a capacity type."""


def node_rows(table: NodeTable, labels: Selector | None = None, price_of: PriceOf | None = None) -> tuple[NodeRow, ...]:
    """Return the nodes of a table that `labels` select, sorted by name."""
    rows = []
    for at, row in enumerate(each_cluster_row(table.rows)):
        node = table.cluster.nodes[row]
        if labels is not None and not labels.matches(node.metadata.labels):
            continue
        requested, offered = table.requested[at].tolist(), table.allocatable[at].tolist()
        uses = {
            name: Use(requested=requested_amount, allocatable=has)
            for name, requested_amount, has in zip(table.resources.names, requested, offered, strict=True)
            if requested_amount or has
        }
        of_node = node.metadata.labels
        zone, type_, bought = (
            first_label(of_node, ZONE_LABELS),
            first_label(of_node, INSTANCE_TYPE_LABELS),
            _capacity_type(of_node),
        )
        rows.append(
            NodeRow(
                name=node.name,
                status=_status_of(node),
                zone=zone,
                pool=first_label(of_node, POOL_LABELS),
                type=type_,
                capacity_type=bought,
                price=price_of(type_, zone, bought or "on-demand") if price_of is not None and type_ else None,
                taints=tuple(
                    f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                    for taint in node.spec.taints
                ),
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
    """Return the status as `kubectl get nodes` prints it. A node without conditions, as in handwritten manifests,
    counts as ready."""
    tainted = any(taint.key in LOST_TAINTS for taint in node.spec.taints)
    status = "Ready" if reports_ready(node.status.conditions) and not tainted else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def total(rows: Sequence[NodeRow]) -> Mapping[str, Use]:
    """Return the resources of all nodes together, including the number of pods."""
    uses: dict[str, Use] = {}
    for row in rows:
        for name, use in (*row.resources.items(), (PODS, row.pods)):
            uses[name] = uses.get(name, Use()).and_(use)
    return uses


class Sort(StrEnum):
    """Columns to sort by, besides resources. A resource sorts by the requested share, largest first."""

    NAME = "name"
    STATUS = "status"
    ZONE = "zone"
    POOL = "pool"
    TYPE = "type"
    PRICE = "price"
    PODS = "pods"
    FREE = "free"
    """Sorts by the largest pod that fits."""


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

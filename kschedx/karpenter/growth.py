"""The cluster after Karpenter has added all nodes that it can, with known types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import field
from msgspec.structs import replace

from kschedx.autoscaler.growth import with_new_nodes
from kschedx.karpenter.amounts import Amounts
from kschedx.karpenter.cluster import Karpenter, PoolVerdict
from kschedx.karpenter.devices import published_by
from kschedx.karpenter.instance_types import InstanceType
from kschedx.karpenter.node_claims import NewNodeClaim
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.scheduler import RoundResult
from kschedx.kube.autoscalers import CAPACITY_TYPE, INITIALIZED, NODE_POOL, REGISTERED
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import HOSTNAME, ZONE
from kschedx.kube.types import Node, NodeCondition, NodeSpec, NodeStatus, ObjectMeta
from kschedx.snapshot.snapshot import Snapshot


class KarpenterGrowthStep(Document, frozen=True):
    """New nodes of one type in a pool."""

    pool: str
    instance_type: str
    """The cheapest or smallest possible type."""
    nodes: int
    choices: int
    """The number of possible types of the first node."""


class KarpenterGrowthDocument(Document, frozen=True, kw_only=True, tag_field="kind", tag="karpenter"):
    """What Karpenter adds, as the value of the key `autoscaler` of a Simulation document."""

    follows: str
    grown: tuple[KarpenterGrowthStep, ...] = field(name="nodes")
    helped: int
    """The number of pods that get a new node."""
    expected: int
    """The number of pods that it expects on existing or launching nodes."""
    left: int
    """The number of pods that no pool accepts, with the known types."""
    types_are_known: bool
    by_chance: bool


class KarpenterGrowth(KarpenterGrowthDocument, frozen=True, kw_only=True):
    """What Karpenter adds for all pending pods."""

    snapshot: Snapshot
    """The cluster with the new nodes and the pods of DaemonSets on them."""
    rejected: tuple[tuple[PoolVerdict, ...], int]
    """The pools' verdicts about most of the pods that are left, and their number."""
    passed_over: Mapping[PodEligibility, int]

    @property
    def document(self) -> KarpenterGrowthDocument:
        return part_of(KarpenterGrowthDocument, self)


def grow_by_karpenter(karpenter: Karpenter) -> KarpenterGrowth:
    """Add all new nodes as ready. Each has its cheapest possible type, or the smallest if no price is known."""
    waiting = Counter(looked.outcome for looked in karpenter.waiting().values())
    considered = waiting.pop(PodEligibility.CONSIDERED, 0)
    result = karpenter.own if considered else RoundResult()
    nodes = list(_nodes(result))
    rows = karpenter.snapshot.pods.rows  # without virtual pods
    grown = Counter((new.template.name, instance_type.name) for new, instance_type, _ in nodes)
    choices = {(new.template.name, instance_type.name): len(new.types) for new, instance_type, _ in reversed(nodes)}
    grown_snapshot = with_new_nodes(
        karpenter.snapshot,
        [(node, new.template.overhead(instance_type.name).pods) for new, instance_type, node in nodes],
    )
    slices = [
        each
        for _, instance_type, node in nodes
        for each in published_by(node.name, instance_type.resource_slices or ())
    ]
    if slices:
        devices = grown_snapshot.devices
        devices = replace(devices, slices=(*devices.slices, *slices), derived_from_slices={})
        grown_snapshot = replace(grown_snapshot, devices=devices)
    return KarpenterGrowth(
        snapshot=grown_snapshot,
        grown=tuple(
            KarpenterGrowthStep(pool=pool, instance_type=name, nodes=number, choices=choices[pool, name])
            for (pool, name), number in grown.items()
        ),
        helped=sum(key in rows for new in result.new for key in new.pods),
        expected=sum(key in rows for keys in result.existing.values() for key in keys),
        left=sum(key in rows for key in result.failures),
        rejected=_most_rejected(karpenter, result),
        passed_over=dict(waiting),
        by_chance=result.by_chance,
        types_are_known=karpenter.types_are_known,
        follows=karpenter.settings.followed,
    )


def _most_rejected(karpenter: Karpenter, result: RoundResult) -> tuple[tuple[PoolVerdict, ...], int]:
    rows = karpenter.snapshot.pods.rows
    said = Counter(failure.text for key, failure in result.failures.items() if key in rows)
    if not said:
        return (), 0
    text, number = said.most_common(1)[0]
    failures = ((key, failure) for key, failure in result.failures.items() if key in rows)
    key, failure = next((key, failure) for key, failure in failures if failure.text == text)
    pods = karpenter.snapshot.pods
    return karpenter.verdicts(pods[pods.rows[key]], failure), number


def _nodes(result: RoundResult) -> Iterator[tuple[NewNodeClaim, InstanceType, Node]]:
    for number, new in enumerate(result.new, start=1):
        instance_type = new.cheapest_first[0]
        yield new, instance_type, _node(f"{new.template.name}-new-{number}", new, instance_type)


def _node(name: str, new: NewNodeClaim, instance_type: InstanceType) -> Node:
    """Build the node from its pool, pods, and type. If several zones are possible, take the first."""
    labels = {
        key: min(requirement.values)
        for key, requirement in new.requirements.together(instance_type.requirements.values()).items()
        if requirement.operator == "In"
    }
    offering = next(
        (
            offering
            for offering in sorted(instance_type.offerings, key=lambda offering: (offering.price or 0.0, offering.zone))
            if offering.is_available and new.requirements.is_compatible(offering.requirements, new.template.allowed)
        ),
        None,
    )
    if offering is not None:
        labels |= {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    labels |= {HOSTNAME: name, NODE_POOL: new.template.name, REGISTERED: "true", INITIALIZED: "true"}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=new.template.taints),
        status=NodeStatus(
            capacity=_resources(instance_type.capacity),
            allocatable=_resources(instance_type.allocatable),
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


def _resources(amounts: Amounts) -> dict[str, str | int | float]:
    return {name: str(amount) for name, amount in amounts.items()}

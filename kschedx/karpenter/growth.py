"""The cluster as it is when Karpenter has done what it can, with nodes of types that are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kschedx.api.karpenter import CAPACITY_TYPE, INITIALIZED, NODE_POOL, REGISTERED
from kschedx.api.types import Node, NodeCondition, NodeSpec, NodeStatus, ObjectMeta, Pod
from kschedx.autoscaler.growth import with_new_nodes
from kschedx.karpenter.amounts import Amounts
from kschedx.karpenter.claims import NewNode
from kschedx.karpenter.cluster import Karpenter, PoolVerdict
from kschedx.karpenter.instance_types import InstanceType
from kschedx.karpenter.labels import HOSTNAME, ZONE
from kschedx.karpenter.pods import Outcome
from kschedx.karpenter.scheduler import Result
from kschedx.snapshot.snapshot import Snapshot


class Grown(Struct, frozen=True, kw_only=True):
    """New nodes of one type in a pool."""

    pool: str
    instance_type: str
    """The cheapest or smallest of those that it can be of."""
    nodes: int
    choices: int
    """How many types the first of them can be of."""


class Growth(Struct, frozen=True, kw_only=True):
    """What Karpenter adds for all pods that wait."""

    snapshot: Snapshot
    """With the new nodes, and the pods of DaemonSets on them."""
    grown: tuple[Grown, ...]
    helped: int
    """Pods that get a new node."""
    expected: int
    """Pods that it expects on nodes that are there or under way."""
    left: int
    """Pods that no pool takes, as far as types are known."""
    rejected: tuple[tuple[PoolVerdict, ...], int]
    """What the pools say to most of these, and how many they are."""
    passed_over: Mapping[Outcome, int]
    by_chance: bool
    types_are_known: bool


def grow(karpenter: Karpenter) -> Growth:
    """New nodes are there and ready; each is of the cheapest type that it can be of, or of the smallest where no price
    is known."""
    waiting = Counter(looked.outcome for looked in karpenter.waiting().values())
    considered = waiting.pop(Outcome.CONSIDERED, 0)
    result = karpenter.own if considered else Result()
    nodes = list(_nodes(result))
    grown = Counter((new.template.name, one.name) for new, one, _ in nodes)
    choices = {(new.template.name, one.name): len(new.types) for new, one, _ in reversed(nodes)}
    return Growth(
        snapshot=with_new_nodes(karpenter.snapshot, [(node, _daemons(new)) for new, _, node in nodes]),
        grown=tuple(
            Grown(pool=pool, instance_type=name, nodes=number, choices=choices[pool, name])
            for (pool, name), number in grown.items()
        ),
        helped=sum(len(new.pods) for new in result.new),
        expected=sum(map(len, result.existing.values())),
        left=len(result.failures),
        rejected=_most_rejected(karpenter, result),
        passed_over=dict(waiting),
        by_chance=result.by_chance,
        types_are_known=karpenter.types_are_known,
    )


def _most_rejected(karpenter: Karpenter, result: Result) -> tuple[tuple[PoolVerdict, ...], int]:
    said = Counter(failure.text for failure in result.failures.values())
    if not said:
        return (), 0
    text, number = said.most_common(1)[0]
    key, failure = next((key, failure) for key, failure in result.failures.items() if failure.text == text)
    pods = karpenter.snapshot.pods
    return karpenter.verdicts(pods[pods.rows[key]], failure), number


def _nodes(result: Result) -> Iterator[tuple[NewNode, InstanceType, Node]]:
    for number, new in enumerate(result.new, start=1):
        one = new.cheapest_first[0]
        yield new, one, _node(f"{new.template.name}-new-{number}", new, one)


def _node(name: str, new: NewNode, one: InstanceType) -> Node:
    """With what the pool, the pods and the type say of it; of several zones and the like the first."""
    labels = {
        key: min(requirement.values)
        for key, requirement in new.requirements.together(one.requirements.values()).items()
        if requirement.operator == "In"
    }
    offering = next(
        (
            offering
            for offering in sorted(one.offerings, key=lambda offering: (offering.price or 0.0, offering.zone))
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
            capacity=_resources(one.capacity),
            allocatable=_resources(one.allocatable),
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


def _resources(amounts: Amounts) -> dict[str, str | int | float]:
    return {name: str(amount) for name, amount in amounts.items()}


def _daemons(new: NewNode) -> tuple[Pod, ...]:
    return new.template.daemon_pods

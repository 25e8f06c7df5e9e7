"""Which node belongs to which group, found out from what clouds write on nodes.

The autoscaler asks its cloud; kschedx has only the nodes. What it goes by is told beside every answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.api.annotations import NODE_POOL_ID
from kschedx.api.types import Node

_POOL_LABELS: Mapping[str, str] = {
    "eks.amazonaws.com/nodegroup": r"eks-{}-[0-9a-f-]+",
    "alpha.eksctl.io/nodegroup-name": r"eksctl-.+-nodegroup-{}-NodeGroup-.+",
    "kops.k8s.io/instancegroup": r"{}\..+",
    "cloud.google.com/gke-nodepool": r".*/instanceGroups/gke-.+-{}-[0-9a-z]+-grp",
    "kubernetes.azure.com/agentpool": r"aks-{}-\d+-vmss",
    "agentpool": r"aks-{}-\d+-vmss",
    "worker.gardener.cloud/pool": r".*-{}(-z\d+)?",
    "cluster.x-k8s.io/deployment-name": r"MachineDeployment/[^/]+/{}",
    "node.openshift.io/machineset": r"MachineSet/[^/]+/{}",
}
"""A label that names a node's pool, and the names that clouds make of it for the pool's groups."""


_OWNER_KIND, _OWNER_NAME = "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name"
_OWNER_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"

Found = tuple[str, str]
"""A group's name and what told it."""


class Membership(Struct, frozen=True, kw_only=True):
    """The groups of the nodes, and how they were found out."""

    groups: Mapping[str, str]
    """Node to group; nodes of no group are left out."""
    told_by: tuple[str, ...]
    """Labels and the like that told, the most frequent first."""
    ambiguous: tuple[str, ...] = ()
    """Nodes for which several groups were found, which count for none."""

    def group_of(self, node: Node) -> str | None:
        return self.groups.get(node.name)


def membership(
    nodes: Sequence[Node], names: Sequence[str], *, label: str = "", told: Mapping[str, str] | None = None
) -> Membership:
    """`names` are the groups'. `label` is a label whose value is the group's name, `told` node to group as somebody
    said; without them the clouds' habits are tried, the surest first."""
    known = frozenset(names)
    if label or told:
        given = told or {}
        groups = {
            node.name: name
            for node in nodes
            if (name := given.get(node.name) or node.metadata.labels.get(label, "")) in known
        }
        return Membership(groups=groups, told_by=(f"label {label}",) if label else ("the file of groups",))
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    ambiguous: list[str] = []
    rules = [*_by_value(known), _by_provider_id(names), _by_owner(known), _by_pool(names), _by_name(names)]
    for node in nodes:
        for rule in rules:
            matches = dict(rule(node))
            if len(matches) == 1:
                ((name, why),) = matches.items()
                found[node.name] = name
                counts[why] = counts.get(why, 0) + 1
                break
            if matches:
                ambiguous.append(node.name)
                break
    told_by = sorted(counts, key=lambda why: -counts[why])
    return Membership(groups=found, told_by=tuple(told_by), ambiguous=tuple(ambiguous))


Rule = Callable[[Node], Iterator[Found]]


def _by_value(known: frozenset[str]) -> tuple[Rule, ...]:
    """A label of a pool, or an annotation, that is the group's name itself."""

    def by_label(node: Node) -> Iterator[Found]:
        for label in _POOL_LABELS:
            value = node.metadata.labels.get(label)
            if value in known:
                yield value, f"label {label}"

    def by_annotation(node: Node) -> Iterator[Found]:
        value = node.metadata.annotations.get(NODE_POOL_ID)
        if value in known:
            yield value, f"annotation {NODE_POOL_ID}"

    return by_label, by_annotation


def _by_provider_id(names: Sequence[str]) -> Rule:
    """The group is a part of the instance's path: `.../virtualMachineScaleSets/NAME/virtualMachines/0`."""
    by_lower = {name.lower(): name for name in names}

    def rule(node: Node) -> Iterator[Found]:
        for part in node.spec.provider_id.lower().split("/")[:-1]:
            if part in by_lower:
                yield by_lower[part], "spec.providerID"

    return rule


def _by_owner(known: frozenset[str]) -> Rule:
    """Cluster API: the MachineSet, or the MachineDeployment whose name it begins with."""

    def rule(node: Node) -> Iterator[Found]:
        written = node.metadata.annotations
        owner, namespace = written.get(_OWNER_NAME, ""), written.get(_OWNER_NAMESPACE, "")
        if not owner:
            return
        for name in (
            f"{written.get(_OWNER_KIND)}/{namespace}/{owner}",
            f"MachineDeployment/{namespace}/{owner.rpartition('-')[0]}",
        ):
            if name in known:
                yield name, f"annotation {_OWNER_NAME}"
                return

    return rule


def _by_pool(names: Sequence[str]) -> Rule:
    """The name that the cloud makes of the pool; a pool with a group in each zone is told apart by the node's name."""
    cache: dict[tuple[str, str], tuple[str, ...]] = {}

    def groups_of(label: str, value: str) -> tuple[str, ...]:
        if (label, value) not in cache:
            pattern = re.compile(_POOL_LABELS[label].format(re.escape(value)))
            cache[label, value] = tuple(name for name in names if pattern.fullmatch(name))
        return cache[label, value]

    def rule(node: Node) -> Iterator[Found]:
        for label in _POOL_LABELS:
            value = node.metadata.labels.get(label)
            if value is None:
                continue
            groups = groups_of(label, value)
            named = [name for name in groups if node.name.startswith(_base(name) + "-")]
            for name in named if len(named) == 1 else groups:
                yield name, f"label {label}"
            if groups:
                return

    return rule


def _base(name: str) -> str:
    """What the names of a group's instances begin with."""
    return name.rpartition("/")[2].rpartition(".")[2].removesuffix("-grp")


def _by_name(names: Sequence[str]) -> Rule:
    """Instances are called after their group; the longest name counts."""
    bases = sorted(((_base(name) + "-", name) for name in names), key=lambda pair: -len(pair[0]))

    def rule(node: Node) -> Iterator[Found]:
        for base, name in bases:
            if len(base) > 1 and node.name.startswith(base):
                yield name, "the nodes' names"
                return

    return rule

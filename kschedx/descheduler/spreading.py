"""Plugins that evict surplus pods of one workload or one spread constraint.

Upstream: pkg/framework/plugins/removeduplicates and removepodsviolatingtopologyspreadconstraint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from kschedx.descheduler.arguments import RemoveDuplicatesArgs, TopologySpreadArgs
from kschedx.descheduler.cluster import Cluster, FitCheck, PodFacts, group_by_namespace, select_pods, shuffle
from kschedx.descheduler.evictor import EvictionOutcome, EvictorHandle, is_in_namespaces
from kschedx.descheduler.violations import pod_filter
from kschedx.errors import InputError
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.selectors import Operator, Requirement, Selector, compile_selector
from kschedx.kube.types import Node, Toleration, TopologySpreadConstraint


class _Owner(NamedTuple):
    """An owner of pods with the same images."""

    namespace: str
    kind: str
    name: str
    images: str


_Duplicates: TypeAlias = "dict[_Owner, dict[str, list[PodFacts]]]"
"""Owner to node to the duplicates on it: all pods but the first one listed."""


def remove_duplicates(handle: EvictorHandle, args: RemoveDuplicatesArgs) -> None:
    """Evict the pods by which a node exceeds the average of an owner; the pods listed last are evicted."""
    duplicates, count = _find_duplicates(handle, args)
    for owner, on_node in duplicates.items():
        targets = _target_nodes(handle.cluster, handle.nodes, [pod for pods in on_node.values() for pod in pods])
        if targets < 2:
            continue
        most = math.ceil(count[owner] / targets)
        for node, pods in on_node.items():
            if len(pods) + 1 <= most:
                continue
            because = f"{node} runs {len(pods) + 1} pods of {owner.kind} {owner.name}, {most} on average"
            if not handle.evict_each([(pod, because) for pod in pods[most - 1 :]]):
                return


def _find_duplicates(handle: EvictorHandle, args: RemoveDuplicatesArgs) -> tuple[_Duplicates, Mapping[_Owner, int]]:
    duplicates: _Duplicates = {}
    count: dict[_Owner, int] = {}
    identities: dict[tuple[int, int, str], tuple[list[_Owner], tuple[str, ...]]] = {}
    for node in handle.each(handle.nodes):
        seen: set[tuple[str, ...]] = set()
        pods = [
            pod
            for pod in handle.cluster.unfinished_on(node.name)
            if is_in_namespaces(args.namespaces, pod) and handle.evictor.both(pod)
        ]
        for pod in pods:
            if not pod.owners or any(owner.kind in args.exclude_owner_kinds for owner in pod.owners):
                continue
            template = (pod.template, id(pod.owners), pod.namespace)
            if template not in identities:
                identities[template] = _identity(pod)
            owners, keys = identities[template]
            for owner in owners:
                count[owner] = count.get(owner, 0) + 1
            if keys in seen:
                for owner in owners:
                    duplicates.setdefault(owner, {}).setdefault(node.name, []).append(pod)
            seen.add(keys)
    return duplicates, count


def _identity(pod: PodFacts) -> tuple[list[_Owner], tuple[str, ...]]:
    """Return the pod's owners with its images, and the keys that duplicates share."""
    images = sorted(container.image for container in pod.spec.containers)
    owners = [_Owner(pod.namespace, owner.kind, owner.name, "#".join(images)) for owner in pod.owners]
    keys = sorted(f"{owner.namespace}/{owner.kind}/{owner.name}/{image}" for owner in owners for image in images)
    return owners, tuple(keys)


def _target_nodes(cluster: Cluster, nodes: Sequence[Node], pods: Sequence[PodFacts]) -> int:
    """Return the number of nodes that the pods tolerate and select, even full ones. The nodes of a pod with a single
    such node do not count."""
    targets: set[str] = set()
    for pod in {pod.template: pod for pod in pods}.values():
        candidates = cluster.static_fit.matching_nodes(pod, cluster.static_fit.tolerated_nodes(pod, nodes))
        if len(candidates) > 1:
            targets.update(node.metadata.name for node in candidates)
    return len(targets)


class _Constraint(Struct, frozen=True, kw_only=True):
    """A spread constraint as the descheduler reads it; `identity` is equal for constraints that count once."""

    max_skew: int
    topology_key: str
    selector: Selector
    honors_affinity: bool
    honors_taints: bool
    pod: PodFacts  # the first pod with the constraint; its affinity and tolerations count if the constraint honors them
    identity: tuple[object, ...]


class _Domain(Struct, kw_only=True):
    value: str
    pods: list[PodFacts]


def topology_spread(handle: EvictorHandle, args: TopologySpreadArgs) -> None:
    """Evict from the largest domains of every spread constraint until no two differ by more than its maxSkew."""
    is_concerned = pod_filter(args)

    def is_listed(pod: PodFacts) -> bool:
        return is_concerned(pod) and handle.evictor.filter(pod)

    listed = [pod for node in handle.nodes for pod in handle.cluster.unfinished_on(node.name) if is_listed(pod)]
    kinds = args.constraints or ("DoNotSchedule",)
    topology = _Topology(handle.cluster, handle.nodes)
    due: dict[str, tuple[PodFacts, str]] = {}
    for pods in handle.each(group_by_namespace(listed).values()):
        for constraint in _constraints(handle.cluster, pods, kinds):
            eligible = topology.eligible(constraint)
            domains, total = _domains(topology.values(constraint.topology_key), eligible, constraint, pods)
            if _is_balanced(domains, constraint):
                continue
            because = f"{constraint.topology_key} is skewed by more than {constraint.max_skew}: " + ", ".join(
                f"{domain.value} {len(domain.pods)}" for domain in sorted(domains, key=lambda domain: -len(domain.pods))
            )
            for pod in _pods_to_move(handle, args, constraint, domains, total, eligible):
                due.setdefault(pod.key, (pod, because))
    ended: set[str] = set()
    for pod, because in shuffle(due.values(), handle.cluster.seed):
        if pod.node in ended or not is_listed(pod) or not handle.evictor.pre_eviction(pod):
            continue
        outcome = handle.evict(pod, because)
        if outcome is EvictionOutcome.TOTAL_LIMIT:
            return
        if outcome is EvictionOutcome.NODE_LIMIT:
            ended.add(pod.node)


def _constraints(cluster: Cluster, pods: Sequence[PodFacts], kinds: Sequence[str]) -> list[_Constraint]:
    """Return the distinct constraints of some pods of a namespace."""
    constraints: dict[tuple[object, ...], _Constraint] = {}
    seen: set[tuple[int, tuple[str | None, ...]]] = set()
    for pod in pods:
        if not pod.spec.topology_spread_constraints:
            continue
        keys = {key for constraint in pod.spec.topology_spread_constraints for key in constraint.match_label_keys}
        template = (pod.template, tuple(pod.labels.get(key) for key in sorted(keys)))
        if template in seen:
            continue
        seen.add(template)
        for written in pod.spec.topology_spread_constraints:
            if written.when_unsatisfiable not in kinds:
                continue
            try:
                constraint = _constraint(cluster, written, pod)
            except InputError:
                continue
            constraints.setdefault(constraint.identity, constraint)
    return list(constraints.values())


def _constraint(cluster: Cluster, written: TopologySpreadConstraint, pod: PodFacts) -> _Constraint:
    """Return the constraint. Raises `InputError` for an invalid selector."""
    selector = compile_selector(written.label_selector)
    own = sorted(key for key in written.match_label_keys if key in pod.labels)
    if own and selector.selectable:
        more = tuple(Requirement(key=key, operator=Operator.EQUALS, values=(pod.labels[key],)) for key in own)
        selector = Selector(requirements=(*more, *selector.requirements))
    honors_affinity = (written.node_affinity_policy or "Honor") == "Honor"
    honors_taints = (written.node_taints_policy or "Ignore") == "Honor"
    identity = (
        written.max_skew,
        written.topology_key,
        selector.selectable,
        _sort_by_key(selector.requirements),
        written.node_affinity_policy or "Honor",
        written.node_taints_policy or "Ignore",
        _affinity_identity(cluster, pod) if honors_affinity else None,
        tuple(map(_toleration_identity, pod.spec.tolerations)) if honors_taints else None,
    )
    return _Constraint(
        max_skew=written.max_skew,
        topology_key=written.topology_key,
        selector=selector,
        honors_affinity=honors_affinity,
        honors_taints=honors_taints,
        pod=pod,
        identity=identity,
    )


def _sort_by_key(requirements: Sequence[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def _affinity_identity(cluster: Cluster, pod: PodFacts) -> tuple[object, ...]:
    affinity = cluster.static_fit.affinity(pod)
    labels, terms = affinity.label_selector, affinity.node_selector
    return (
        None if labels is None else _sort_by_key(labels.requirements),
        None if terms is None else tuple((_sort_by_key(term.expressions), term.fields) for term in terms.terms),
    )


def _toleration_identity(toleration: Toleration) -> tuple[object, ...]:
    return (toleration.key, toleration.operator, toleration.value, toleration.effect, toleration.toleration_seconds)


class _Topology:
    """The nodes of a run by the values of their labels."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._values: dict[str, dict[str, str]] = {}
        self._with_key: dict[str, list[Node]] = {}

    def values(self, key: str) -> Mapping[str, str]:
        """Return node to its value of a topology key, for nodes that have one."""
        label_values = self._values.get(key)
        if label_values is None:
            label_values = self._values[key] = {
                node.name: value for node in self._nodes if (value := node.metadata.labels.get(key)) is not None
            }
        return label_values

    def eligible(self, constraint: _Constraint) -> list[Node]:
        """Return the nodes with the constraint's key that its policies allow."""
        fit, pod, key = self._cluster.static_fit, constraint.pod, constraint.topology_key
        if key not in self._with_key:
            self._with_key[key] = [node for node in self._nodes if key in node.metadata.labels]
        nodes = self._with_key[key]
        if constraint.honors_affinity:
            nodes = fit.matching_nodes(pod, nodes)
        if constraint.honors_taints:
            nodes = fit.tolerated_nodes(pod, nodes)
        return nodes


def _domains(
    values: Mapping[str, str], eligible: Sequence[Node], constraint: _Constraint, pods: Sequence[PodFacts]
) -> tuple[list[_Domain], int]:
    pods_by_domain: dict[str, list[PodFacts]] = {values[node.metadata.name]: [] for node in eligible}
    total = 0
    for pod in select_pods(pods, constraint.selector):
        value = values.get(pod.node)
        if value is not None and not pod.is_terminating:
            pods_by_domain.setdefault(value, []).append(pod)
            total += 1
    return [_Domain(value=value, pods=pods) for value, pods in pods_by_domain.items()], total


def _is_balanced(domains: Sequence[_Domain], constraint: _Constraint) -> bool:
    sizes = [len(domain.pods) for domain in domains]
    return not sizes or max(sizes) - min(sizes) <= constraint.max_skew


def _pods_to_move(
    handle: EvictorHandle,
    args: TopologySpreadArgs,
    constraint: _Constraint,
    domains: list[_Domain],
    total: int,
    eligible: Sequence[Node],
) -> list[PodFacts]:
    """Return the pods to move from larger domains to smaller ones, without pods that fit nowhere there.

    Changes the order of the domains and of the pods in them.
    """
    average = total / len(domains)
    for domain in domains:
        sort_slice(domain.pods, _comes_first)
    sort_slice(domains, lambda domain, other: len(domain.pods) < len(other.pods))
    small = {domain.value for domain in domains if len(domain.pods) < average}
    below = [node for node in eligible if node.metadata.labels[constraint.topology_key] in small]
    fit = FitCheck(handle.cluster, below)
    fits: dict[str, bool] = {}

    def has_a_place(pod: PodFacts) -> bool:
        if pod.key not in fits:
            fits[pod.key] = fit.other(pod)
        return fits[pod.key]

    moved = []
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high].pods) <= average:
            high -= 1
        skew = len(domains[high].pods) - len(domains[low].pods)
        if skew <= constraint.max_skew:
            low += 1
            continue
        above = math.ceil(len(domains[high].pods) - average)
        missing = math.ceil(average - len(domains[low].pods))
        number = min(above, missing, math.ceil((skew - constraint.max_skew) / 2))
        if number <= 0:
            low += 1
            continue
        pods = domains[high].pods
        pods.sort(key=has_a_place)
        going = pods[-number:]
        for pod in going:
            if args.topology_balance_node_fit and not has_a_place(pod):
                handle.say(pod, "ignoring pod for eviction as it does not fit on any other node")
            else:
                moved.append(pod)
        del pods[-number:]
        domains[low].pods.extend(going)
    return moved


def _comes_first(pod: PodFacts, other: PodFacts) -> bool:
    """Return whether a pod sorts first: pods with a nodeSelector or node affinity, then by rising priority. The last
    pods are evicted first."""
    mine, its = _is_bound(pod), _is_bound(other)
    if mine != its:
        return mine
    if pod.priority is not None and other.priority is not None:
        return pod.priority <= other.priority
    return pod.priority is None and other.priority is not None


def _is_bound(pod: PodFacts) -> bool:
    affinity = pod.spec.affinity
    return bool(pod.spec.node_selector) or (affinity is not None and affinity.node_affinity is not None)

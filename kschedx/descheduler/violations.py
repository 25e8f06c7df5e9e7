"""Plugins that evict pods that violate rules on their node, or that prefer another node.

Upstream: pkg/framework/plugins/removepodsviolatinginterpodantiaffinity, removepodsviolatingnodeaffinity, and
removepodsviolatingnodetaints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from kschedx.descheduler.arguments import InterPodAntiAffinityArgs, NodeAffinityArgs, NodeTaintsArgs
from kschedx.descheduler.cluster import Cluster, FitCheck, PodFacts, by_namespace, matching
from kschedx.descheduler.evictor import EvictionOutcome, EvictorHandle
from kschedx.descheduler.lifetime import concerned
from kschedx.descheduler.policy import PREFERRED, REQUIRED
from kschedx.errors import InputError
from kschedx.kube.descheduling import PREFER_NO_EVICTION
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.selectors import PreferredSchedulingTerm, Selector, compile_preferred_terms
from kschedx.kube.tolerations import NO_SCHEDULE, PREFER_NO_SCHEDULE, Tolerations
from kschedx.kube.types import Node, PodAffinityTerm, Taint

_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def sort_by_priority(pods: list[PodFacts]) -> None:
    """Sort pods without a priority first, then by rising priority, then by QoS class, those with `prefer-no-eviction`
    last.

    Equal pods are less than each other both ways, as upstream, so a short list comes out in reverse.
    """

    ranked = [
        (pod.priority is not None, pod.priority or 0, _QOS.get(pod.qos, 3), PREFER_NO_EVICTION in pod.annotations, pod)
        for pod in pods
    ]
    sort_slice(ranked, _comes_before)
    pods[:] = [item[-1] for item in ranked]


_Ranked: TypeAlias = tuple[bool, int, int, bool, PodFacts]
"""Whether the pod has a priority, the priority, its QoS class, and whether it prefers not to be evicted."""


def _comes_before(item: _Ranked, other: _Ranked) -> bool:
    if item[0] != other[0]:
        return other[0]
    if item[1] != other[1]:
        return item[1] < other[1]
    mine, its = item[2], other[2]
    if mine == its < 3:
        return not item[3] or other[3]
    return mine == 0 or (mine == 1 and its == 2)


def inter_pod_anti_affinity(handle: EvictorHandle, args: InterPodAntiAffinityArgs) -> None:
    """Evict pods whose own required anti-affinity another pod violates; an evicted pod no longer violates any."""
    is_concerned = concerned(args)
    on_node = {
        node.name: [pod for pod in handle.cluster.unfinished_on(node.name) if is_concerned(pod)]
        for node in handle.nodes
    }
    others = _Others(handle.cluster, handle.nodes, [pod for pods in on_node.values() for pod in pods])
    for node in handle.each(handle.nodes):
        pods = on_node[node.name]
        sort_by_priority(pods)
        for pod in pods:
            other = others.violating(pod, node)
            if other is None or not handle.evictor.both(pod):
                continue
            outcome = handle.evict(pod, f"its anti-affinity excludes {other.key}")
            if outcome is EvictionOutcome.EVICTED:
                others.remove(pod)
            elif outcome is EvictionOutcome.TOTAL_LIMIT:
                return
            elif outcome is EvictionOutcome.NODE_LIMIT:
                break


class _Others:
    """The pods that anti-affinity terms can select, by domain."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], pods: Sequence[PodFacts]) -> None:
        self._cluster = cluster
        self._labels: Mapping[str, Mapping[str, str]] = {node.name: node.metadata.labels for node in nodes}
        self._pods = by_namespace(pods)
        self._gone: set[str] = set()
        self._known: dict[tuple[int, str], _Domains] = {}
        self._terms: list[PodAffinityTerm] = []
        """Kept alive, because a term's identity is a key."""

    def violating(self, pod: PodFacts, node: Node) -> PodFacts | None:
        """Return a pod that violates this pod's anti-affinity."""
        for term in pod.spec.required_anti_affinity:
            try:
                selector = self._cluster.static_fit.selector(term)
            except InputError:
                return None
            domains = self._domains(pod, term, selector)
            value = node.metadata.labels.get(term.topology_key)
            in_domain = domains.in_domain[value] if value is not None else {}
            for other in chain(domains.on_node[node.name].values(), in_domain.values()):
                if other.name != pod.name:
                    return other
        return None

    def _domains(self, pod: PodFacts, term: PodAffinityTerm, selector: Selector) -> _Domains:
        key = (id(term), "" if term.namespaces else pod.namespace)
        domains = self._known.get(key)
        if domains is None:
            self._terms.append(term)
            namespaces = term.namespaces or (pod.namespace,)
            domains = self._known[key] = _Domains(term.topology_key)
            for other in matching(chain(*(self._pods.get(name, ()) for name in dict.fromkeys(namespaces))), selector):
                if other.key in self._gone:
                    continue
                domains.on_node[other.node][other.key] = other
                value = self._labels[other.node].get(term.topology_key)
                if value is not None:
                    domains.in_domain[value][other.key] = other
        return domains

    def remove(self, pod: PodFacts) -> None:
        self._gone.add(pod.key)
        for domains in self._known.values():
            domains.on_node[pod.node].pop(pod.key, None)
            value = self._labels[pod.node].get(domains.topology_key)
            if value is not None:
                domains.in_domain[value].pop(pod.key, None)


class _Domains:
    """The pods that one term selects, by node and by value of its topology key."""

    def __init__(self, topology_key: str) -> None:
        self.topology_key = topology_key
        self.on_node: dict[str, dict[str, PodFacts]] = defaultdict(dict)
        self.in_domain: dict[str, dict[str, PodFacts]] = defaultdict(dict)


def node_affinity(handle: EvictorHandle, args: NodeAffinityArgs) -> None:
    """Evict pods whose node no longer matches their required node affinity, or that prefer another node."""
    is_concerned = concerned(args)
    fit = FitCheck(handle.cluster, handle.nodes)
    preferences = _Preferences(handle.nodes)

    def has_left(pod: PodFacts, node: Node) -> bool:
        required = pod.spec.required_node_affinity
        return required is not None and fit.any(pod) and not handle.cluster.static_fit.matches(pod, node)

    def likes_another(pod: PodFacts, node: Node) -> bool:
        terms = _preferred(pod)
        return bool(terms) and preferences.best(pod) > preferences.weight(pod, node) and fit.any(pod)

    for kind in args.node_affinity_type:
        if kind not in (REQUIRED, PREFERRED):
            continue  # the descheduler logs it and continues
        is_due = has_left if kind == REQUIRED else likes_another
        because = (
            "its node no longer matches its required node affinity"
            if kind == REQUIRED
            else "another node matches its preferred node affinity better"
        )
        for node in handle.each(handle.nodes):
            pods = [
                pod
                for pod in handle.cluster.unfinished_on(node.name)
                if is_concerned(pod) and handle.evictor.both(pod) and is_due(pod, node)
            ]
            if not handle.evict_each([(pod, because) for pod in pods]):
                break


def _preferred(pod: PodFacts) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()


class _Preferences:
    """The weights of nodes for pods."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._weights: dict[int, dict[str, int]] = {}

    def best(self, pod: PodFacts) -> int:
        return max((0, *self._of(pod).values()))

    def weight(self, pod: PodFacts, node: Node) -> int:
        return self._of(pod)[node.name]

    def _of(self, pod: PodFacts) -> Mapping[str, int]:
        weights = self._weights.get(pod.template)
        if weights is None:
            terms = []
            for term in _preferred(pod):
                try:
                    terms.append(compile_preferred_terms([term]))
                except InputError:
                    continue  # it adds nothing
            weights = self._weights[pod.template] = {
                node.name: sum(term.score(node.metadata.labels, node.name) for term in terms) for node in self._nodes
            }
        return weights


def node_taints(handle: EvictorHandle, args: NodeTaintsArgs) -> None:
    """Evict pods that do not tolerate a taint of their node; never for NoExecute, which Kubernetes itself enforces."""
    is_concerned = concerned(args)
    effects = (NO_SCHEDULE, PREFER_NO_SCHEDULE) if args.include_prefer_no_schedule else (NO_SCHEDULE,)
    tolerations: dict[int, Tolerations] = {}

    def untolerated(pod: PodFacts, taints: Iterable[Taint]) -> Taint | None:
        if pod.template not in tolerations:
            tolerations[pod.template] = Tolerations(pod.spec.tolerations, comparison=True)
        return tolerations[pod.template].uncovered(taints, effects)

    for node in handle.each(handle.nodes):
        taints = [taint for taint in node.spec.taints if _counts(taint, args)]
        listed = [
            pod for pod in handle.cluster.unfinished_on(node.name) if is_concerned(pod) and handle.evictor.both(pod)
        ]
        due = [(pod, untolerated(pod, taints)) for pod in listed]
        if not handle.evict_each([(pod, f"it does not tolerate the taint {taint}") for pod, taint in due if taint]):
            return


def _counts(taint: Taint, args: NodeTaintsArgs) -> bool:
    names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
    if names.intersection(args.excluded_taints):
        return False
    return args.included_taints is None or bool(names.intersection(args.included_taints))

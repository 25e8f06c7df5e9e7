"""Plugins that evict pods that violate rules on their node, or that prefer another node.

Upstream: pkg/framework/plugins/removepodsviolatinginterpodantiaffinity, removepodsviolatingnodeaffinity, and
removepodsviolatingnodetaints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field

from kschedx.descheduler.arguments import (
    InterPodAntiAffinityArgs,
    NodeTaintsArgs,
    PodArgs,
    PodConditionFilter,
    PodLifeTimeArgs,
    RemoveFailedPodsArgs,
    RemovePodsViolatingNodeAffinityArgs,
    TooManyRestartsArgs,
)
from kschedx.descheduler.cluster import NANO, Cluster, FitCheck, PodFacts, group_by_namespace, select_pods
from kschedx.descheduler.evictor import EvictionOutcome, EvictorHandle, is_in_namespaces
from kschedx.descheduler.policy import PREFERRED, REQUIRED
from kschedx.errors import InputError
from kschedx.kube.descheduling import PREFER_NO_EVICTION, ConditionFacts, ContainerFacts
from kschedx.kube.field_errors import aggregate_texts
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import PreferredSchedulingTerm, Selector, compile_preferred_terms, compile_selector
from kschedx.kube.tolerations import NO_SCHEDULE, PREFER_NO_SCHEDULE
from kschedx.kube.types import Node, PodAffinityTerm, Taint

# Plugins that evict pods because of their age, state, or restarts.
# Upstream: pkg/framework/plugins/podlifetime, removefailedpods, and removepodshavingtoomanyrestarts.

_LONGEST_AGE = 2**63 - 1  # Go's longest duration in nanoseconds: the age of a pod without a creation timestamp


def pod_filter(args: PodArgs) -> Callable[[PodFacts], bool]:
    """Return a test for whether a pod is in the plugin's namespaces and has its labels."""
    selector = None if args.label_selector is None else compile_selector(args.label_selector)
    namespaces = args.namespaces
    return lambda pod: is_in_namespaces(namespaces, pod) and (selector is None or selector.matches(pod.labels))


def _candidates(
    handle: EvictorHandle, pods: Iterable[PodFacts], is_concerned: Callable[[PodFacts], bool]
) -> Iterator[PodFacts]:
    """Yield the pods that the plugin selects and the evictor allows."""
    return (pod for pod in pods if is_concerned(pod) and handle.evictor.both(pod))


def _age(handle: EvictorHandle, pod: PodFacts) -> int:
    """Return the nanoseconds since the pod was created."""
    return _LONGEST_AGE if pod.created is None else handle.now - pod.created


def _seconds(nanoseconds: int) -> int:
    """Return whole seconds, rounded toward zero."""
    return nanoseconds // NANO if nanoseconds >= 0 else -(-nanoseconds // NANO)


def pod_life_time(handle: EvictorHandle, args: PodLifeTimeArgs) -> None:
    """Evict pods that meet every condition of the args, the oldest first, over all nodes."""
    is_concerned = pod_filter(args)
    facts = [
        pod
        for node in handle.each(handle.nodes)
        for pod in _candidates(handle, handle.cluster.pods_on(node.name), is_concerned)
        if _is_due(handle, args, pod)
    ]
    sort_slice(
        facts, lambda pod, other: other.created is not None and (pod.created is None or pod.created < other.created)
    )
    for pod in facts:
        if handle.evict(pod, _why_due(handle, args, pod)) is EvictionOutcome.TOTAL_LIMIT:
            return


def _is_due(handle: EvictorHandle, args: PodLifeTimeArgs, pod: PodFacts) -> bool:
    most = args.max_pod_life_time_seconds
    if most is not None:
        age = _age(handle, pod)
        if age < 0 or _seconds(age) <= most:
            return False
    if args.states and not any(state in args.states for state in _states(args, pod)):
        return False
    if args.owner_kinds is not None:
        kinds = {owner.kind for owner in pod.owners}
        if args.owner_kinds.include:
            if not kinds.intersection(args.owner_kinds.include):
                return False
        elif kinds.intersection(args.owner_kinds.exclude):
            return False
    if args.conditions and not any(
        _meets(handle, condition, wanted) for wanted in args.conditions for condition in pod.status.conditions
    ):
        return False
    return not args.exit_codes or _has_exit_code(pod, args)


def _has_exit_code(pod: PodFacts, args: PodLifeTimeArgs | RemoveFailedPodsArgs) -> bool:
    ended = (container.state.terminated for container in _containers(pod, args.including_init_containers))
    return any(state is not None and state.exit_code in args.exit_codes for state in ended)


def _states(args: PodLifeTimeArgs, pod: PodFacts) -> Iterator[str]:
    """Yield the phase, the reason, and the reasons of containers that wait or have terminated."""
    yield pod.phase
    yield pod.status.reason
    containers = [*_containers(pod, args.including_init_containers)]
    if args.including_ephemeral_containers:
        containers += pod.status.ephemeral_container_statuses
    yield from _reasons(containers)


def _containers(pod: PodFacts, including_init: bool) -> tuple[ContainerFacts, ...]:
    init = pod.status.init_container_statuses if including_init else ()
    return (*pod.status.container_statuses, *init)


def _meets(handle: EvictorHandle, condition: ConditionFacts, wanted: PodConditionFilter) -> bool:
    if wanted.type not in ("", condition.type) or wanted.status not in ("", condition.status):
        return False
    if wanted.reason not in ("", condition.reason):
        return False
    least = wanted.min_time_since_last_transition_seconds
    if least is None:
        return True
    if not condition.last_transition_time:
        return False
    since = handle.now - nanoseconds(condition.last_transition_time)
    return since >= 0 and _seconds(since) >= least


def _why_due(handle: EvictorHandle, args: PodLifeTimeArgs, pod: PodFacts) -> str:
    parts = []
    if args.max_pod_life_time_seconds is not None:
        parts.append(f"it is {_duration(_seconds(_age(handle, pod)))} old, above maxPodLifeTimeSeconds")
    if args.states:
        state = next(state for state in _states(args, pod) if state in args.states)
        parts.append(f"its state {state} is in states")
    if args.conditions:
        parts.append("its conditions match")
    if args.exit_codes:
        parts.append("an exit code is in exitCodes")
    return " and ".join(parts)


def _duration(seconds: int) -> str:
    """Return an age as kubectl prints it: `3d`, `5h`, `12m`, `40s`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit == "d" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def remove_failed_pods(handle: EvictorHandle, args: RemoveFailedPodsArgs) -> None:
    """Evict pods that have failed, node by node."""
    is_selected = pod_filter(args)

    def is_concerned(pod: PodFacts) -> bool:
        return pod.phase == "Failed" and is_selected(pod)

    def is_due(pod: PodFacts) -> bool:
        faults = list(_failed_faults(handle, args, pod))
        if faults:
            handle.say(pod, f"ignoring pod for eviction due to: {aggregate_texts(faults)}")
        return not faults

    for node in handle.each(handle.nodes):
        pods = [pod for pod in _candidates(handle, handle.cluster.pods_on(node.name), is_concerned) if is_due(pod)]
        if not handle.evict_each([(pod, _why_failed(pod)) for pod in pods]):
            return


def _failed_faults(handle: EvictorHandle, args: RemoveFailedPodsArgs, pod: PodFacts) -> Iterator[str]:
    age = _seconds(_age(handle, pod))
    # the age of a pod from the future is a very large unsigned number
    if 0 <= age < args.min_pod_lifetime_seconds:
        yield f"pod does not exceed the min age seconds of {args.min_pod_lifetime_seconds}"
    for owner in pod.owners:
        if owner.kind in args.exclude_owner_kinds:
            yield f"pod's owner kind of {owner.kind} is excluded"
    containers = _containers(pod, args.including_init_containers)
    if args.reasons:
        reasons = {pod.status.reason, *_reasons(containers)} - {""}
        if not reasons.intersection(args.reasons):
            yield "pod does not match any of the reasons"
    if args.exit_codes and not _has_exit_code(pod, args):
        yield "pod does not match any of the exitCodes"


def _reasons(containers: Iterable[ContainerFacts]) -> Iterator[str]:
    for container in containers:
        if container.state.waiting is not None:
            yield container.state.waiting.reason
        if container.state.terminated is not None:
            yield container.state.terminated.reason


def _why_failed(pod: PodFacts) -> str:
    reason = next((reason for reason in (pod.status.reason, *_reasons(_containers(pod, True))) if reason), "")
    return f"it has failed ({reason})" if reason else "it has failed"


def too_many_restarts(handle: EvictorHandle, args: TooManyRestartsArgs) -> None:
    """Evict pods whose containers restarted too often, on each node the pods with the most restarts first."""
    is_concerned = pod_filter(args)

    def restarts(pod: PodFacts) -> int:
        return sum(container.restart_count for container in _containers(pod, args.including_init_containers))

    def is_due(pod: PodFacts) -> bool:
        count = restarts(pod)
        if count < args.pod_restart_threshold:
            fault = f"number of container restarts ({count}) not exceeding the threshold"
            handle.say(pod, f"ignoring pod for eviction due to: {fault}")
            return False
        return not args.states or pod.phase in args.states or _waits_in(args, pod)

    for node in handle.each(handle.nodes):
        pods = [pod for pod in _candidates(handle, handle.cluster.pods_on(node.name), is_concerned) if is_due(pod)]
        sort_slice(pods, lambda pod, other: restarts(pod) > restarts(other))
        because = f"its containers restarted {{}} times, threshold {args.pod_restart_threshold}"
        if not handle.evict_each([(pod, because.format(restarts(pod))) for pod in pods]):
            return


def _waits_in(args: TooManyRestartsArgs, pod: PodFacts) -> bool:
    return any(
        container.state.waiting is not None and container.state.waiting.reason in args.states
        for container in _containers(pod, args.including_init_containers)
    )


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
    is_concerned = pod_filter(args)
    on_node = {
        node.name: [pod for pod in handle.cluster.unfinished_on(node.name) if is_concerned(pod)]
        for node in handle.nodes
    }
    others = _Others(handle.cluster, handle.nodes, [pod for pods in on_node.values() for pod in pods])
    for node in handle.each(handle.nodes):
        pods = on_node[node.name]
        sort_by_priority(pods)
        for pod in pods:
            other = others.violating_pod(pod, node)
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
        self._pods = group_by_namespace(pods)
        self._gone: set[str] = set()
        self._known: dict[tuple[int, str], _Domains] = {}
        self._terms: list[PodAffinityTerm] = []  # kept alive, because a term's identity is a key

    def violating_pod(self, pod: PodFacts, node: Node) -> PodFacts | None:
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
            for other in select_pods(
                chain(*(self._pods.get(name, ()) for name in dict.fromkeys(namespaces))), selector
            ):
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


class _Domains(Struct):
    """The pods that one term selects, by node and by value of its topology key."""

    topology_key: str
    on_node: dict[str, dict[str, PodFacts]] = field(default_factory=lambda: defaultdict(dict))
    in_domain: dict[str, dict[str, PodFacts]] = field(default_factory=lambda: defaultdict(dict))


def node_affinity(handle: EvictorHandle, args: RemovePodsViolatingNodeAffinityArgs) -> None:
    """Evict pods whose node no longer matches their required node affinity, or that prefer another node."""
    is_concerned = pod_filter(args)
    fit = FitCheck(handle.cluster, handle.nodes)
    weights: dict[int, Mapping[str, int]] = {}

    def has_left(pod: PodFacts, node: Node) -> bool:
        required = pod.spec.required_node_affinity
        return required is not None and fit.any(pod) and not handle.cluster.static_fit.matches(pod, node)

    def likes_another(pod: PodFacts, node: Node) -> bool:
        if not _preferred_terms(pod):
            return False
        own = weights[pod.template] = weights.get(pod.template) or _weights(pod, handle.nodes)
        return max((0, *own.values())) > own[node.name] and fit.any(pod)

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
            candidates = _candidates(handle, handle.cluster.unfinished_on(node.name), is_concerned)
            pods = [pod for pod in candidates if is_due(pod, node)]
            if not handle.evict_each([(pod, because) for pod in pods]):
                break


def _preferred_terms(pod: PodFacts) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()


def _weights(pod: PodFacts, nodes: Sequence[Node]) -> Mapping[str, int]:
    """Return how much the pod prefers each node, by its name; an invalid term adds nothing."""
    terms = []
    for term in _preferred_terms(pod):
        with suppress(InputError):
            terms.append(compile_preferred_terms([term]))
    return {node.name: sum(term.score(node.metadata.labels, node.name) for term in terms) for node in nodes}


def node_taints(handle: EvictorHandle, args: NodeTaintsArgs) -> None:
    """Evict pods that do not tolerate a taint of their node; never for NoExecute, which Kubernetes itself enforces."""
    is_concerned = pod_filter(args)
    effects = (NO_SCHEDULE, PREFER_NO_SCHEDULE) if args.include_prefer_no_schedule else (NO_SCHEDULE,)
    tolerations = handle.cluster.static_fit.tolerations
    for node in handle.each(handle.nodes):
        taints = [taint for taint in node.spec.taints if _counts(taint, args)]
        listed = _candidates(handle, handle.cluster.unfinished_on(node.name), is_concerned)
        due = [(pod, tolerations(pod).uncovered_taint(taints, effects)) for pod in listed]
        if not handle.evict_each([(pod, f"it does not tolerate the taint {taint}") for pod, taint in due if taint]):
            return


def _counts(taint: Taint, args: NodeTaintsArgs) -> bool:
    names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
    if names.intersection(args.excluded_taints):
        return False
    return args.included_taints is None or bool(names.intersection(args.included_taints))

"""What a pod asks of its node, preferences first taken as demands, and the order in which they are given up.

Upstream: scheduling/preferences.go, newPodRequirements in pkg/scheduling/requirements.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from msgspec.structs import replace

from kschedx.api.selectors import NodeSelector
from kschedx.api.types import Affinity, NodeAffinity, Pod, PodAffinity, Toleration
from kschedx.karpenter.requirements import Requirements

PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect="PreferNoSchedule")


class _Weighted(Protocol):
    @property
    def weight(self) -> int: ...


W = TypeVar("W", bound=_Weighted)


def requirements_of(pod: Pod, *, prefers: bool) -> Requirements:
    """Of the node selector, the first required term and, with `prefers`, the heaviest preferred one."""
    made = Requirements.of_labels(pod.spec.node_selector)
    affinity = _node_affinity(pod)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if prefers and preferred:
        heaviest = _heaviest_first(preferred)[0].preference
        made = made.together(Requirements.of_expressions(heaviest.match_expressions).values())
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None and required.node_selector_terms:
        first = required.node_selector_terms[0]
        made = made.together(Requirements.of_expressions(first.match_expressions).values())
    return made


def relaxed(pod: Pod, *, tolerates_preferred_taints: bool) -> Pod | None:
    """The pod with one demand less; None where there is nothing to give up."""
    steps: tuple[Callable[[Pod], Pod | None], ...] = (
        without_first_required_term,
        _without_pod_affinity,
        _without_pod_anti_affinity,
        _without_node_preference,
        _without_soft_spread,
    )
    for step in (*steps, tolerating_preferred_taints) if tolerates_preferred_taints else steps:
        changed = step(pod)
        if changed is not None:
            return changed
    return None


def without_first_required_term(pod: Pod) -> Pod | None:
    """One of the terms has to hold, so that the last one stays."""
    affinity = _node_affinity(pod)
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is None or len(required.node_selector_terms) < 2:
        return None
    rest = NodeSelector(node_selector_terms=required.node_selector_terms[1:])
    return _with_node_affinity(pod, replace(affinity, required_during_scheduling_ignored_during_execution=rest))


def tolerating_preferred_taints(pod: Pod) -> Pod | None:
    if any(_is_like(one, PREFER_NO_SCHEDULE) for one in pod.spec.tolerations):
        return None
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, PREFER_NO_SCHEDULE)))


def _is_like(one: Toleration, other: Toleration) -> bool:
    """MatchToleration: how long it holds does not count."""
    return replace(one, toleration_seconds=None) == replace(other, toleration_seconds=None)


def _without_node_preference(pod: Pod) -> Pod | None:
    affinity = _node_affinity(pod)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if not preferred:
        return None
    rest = _heaviest_first(preferred)[1:]
    return _with_node_affinity(pod, replace(affinity, preferred_during_scheduling_ignored_during_execution=rest))


def _without_pod_affinity(pod: Pod) -> Pod | None:
    affinity = pod.spec.affinity
    rest = _without_heaviest(affinity.pod_affinity if affinity else None)
    if affinity is None or rest is None:
        return None
    return _with_affinity(pod, replace(affinity, pod_affinity=rest))


def _without_pod_anti_affinity(pod: Pod) -> Pod | None:
    affinity = pod.spec.affinity
    rest = _without_heaviest(affinity.pod_anti_affinity if affinity else None)
    if affinity is None or rest is None:
        return None
    return _with_affinity(pod, replace(affinity, pod_anti_affinity=rest))


def _without_heaviest(affinity: PodAffinity | None) -> PodAffinity | None:
    if affinity is None or not affinity.preferred_during_scheduling_ignored_during_execution:
        return None
    rest = _heaviest_first(affinity.preferred_during_scheduling_ignored_during_execution)[1:]
    return replace(affinity, preferred_during_scheduling_ignored_during_execution=rest)


def _without_soft_spread(pod: Pod) -> Pod | None:
    """The last constraint takes the place of the first soft one."""
    constraints = list(pod.spec.topology_spread_constraints)
    for index, one in enumerate(constraints):
        if one.when_unsatisfiable == "ScheduleAnyway":
            constraints[index] = constraints[-1]
            return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints[:-1])))
    return None


def _heaviest_first(terms: tuple[W, ...]) -> tuple[W, ...]:
    return tuple(sorted(terms, key=lambda term: -term.weight))


def _node_affinity(pod: Pod) -> NodeAffinity:
    return (pod.spec.affinity and pod.spec.affinity.node_affinity) or NodeAffinity()


def with_required_terms(pod: Pod, required: NodeSelector) -> Pod:
    affinity = replace(_node_affinity(pod), required_during_scheduling_ignored_during_execution=required)
    return _with_node_affinity(pod, affinity)


def _with_node_affinity(pod: Pod, affinity: NodeAffinity) -> Pod:
    return _with_affinity(pod, replace(pod.spec.affinity or Affinity(), node_affinity=affinity))


def _with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    return replace(pod, spec=replace(pod.spec, affinity=affinity))

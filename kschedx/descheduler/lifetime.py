"""Plugins that evict pods because of their age, state, or restarts.

Upstream: pkg/framework/plugins/podlifetime, removefailedpods, and removepodshavingtoomanyrestarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kschedx.descheduler.arguments import (
    PodArgs,
    PodConditionFilter,
    PodLifeTimeArgs,
    RemoveFailedPodsArgs,
    TooManyRestartsArgs,
)
from kschedx.descheduler.cluster import NANO, PodFacts
from kschedx.descheduler.evictor import EvictionOutcome, EvictorHandle, in_namespaces
from kschedx.descheduler.policy import aggregate
from kschedx.kube.descheduling import ConditionFacts, ContainerFacts
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import compile_selector

_LONGEST_AGE = 2**63 - 1
"""Go's longest duration in nanoseconds: the age of a pod without a creation timestamp."""


def concerned(args: PodArgs) -> Callable[[PodFacts], bool]:
    """Return a test for whether a pod is in the plugin's namespaces and has its labels."""
    selector = None if args.label_selector is None else compile_selector(args.label_selector)
    namespaces = args.namespaces
    return lambda pod: in_namespaces(namespaces, pod) and (selector is None or selector.matches(pod.labels))


def _age(handle: EvictorHandle, pod: PodFacts) -> int:
    """Return the nanoseconds since the pod was created."""
    return _LONGEST_AGE if pod.created is None else handle.now - pod.created


def _seconds(nanoseconds: int) -> int:
    """Return whole seconds, rounded toward zero."""
    return nanoseconds // NANO if nanoseconds >= 0 else -(-nanoseconds // NANO)


def pod_life_time(handle: EvictorHandle, args: PodLifeTimeArgs) -> None:
    """Evict pods that meet every condition of the args, the oldest first, over all nodes."""
    is_concerned = concerned(args)
    facts = [
        pod
        for node in handle.each(handle.nodes)
        for pod in handle.cluster.on(node.name)
        if is_concerned(pod) and handle.evictor.both(pod) and _is_due(handle, args, pod)
    ]
    sort_slice(facts, lambda pod_facts, other: _is_before(pod_facts.created, other.created))
    for pod in facts:
        if handle.evict(pod, _why_due(handle, args, pod)) is EvictionOutcome.TOTAL_LIMIT:
            return


def _is_before(item: int | None, other: int | None) -> bool:
    return other is not None and (item is None or item < other)


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
    codes = {
        container.state.terminated.exit_code
        for container in _containers(pod, args.including_init_containers)
        if container.state.terminated is not None
    }
    return not args.exit_codes or bool(codes.intersection(args.exit_codes))


def _states(args: PodLifeTimeArgs, pod: PodFacts) -> Iterator[str]:
    """Yield the phase, the reason, and the reasons of containers that wait or have terminated."""
    yield pod.phase
    yield pod.status.reason
    containers = [*_containers(pod, args.including_init_containers)]
    if args.including_ephemeral_containers:
        containers += pod.status.ephemeral_container_statuses
    for container in containers:
        if container.state.waiting is not None:
            yield container.state.waiting.reason
        if container.state.terminated is not None:
            yield container.state.terminated.reason


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
    is_concerned = concerned(args)

    def is_due(pod: PodFacts) -> bool:
        if pod.phase != "Failed" or not is_concerned(pod) or not handle.evictor.both(pod):
            return False
        faults = list(_failed_faults(handle, args, pod))
        if faults:
            handle.say(pod, f"ignoring pod for eviction due to: {aggregate(faults)}")
        return not faults

    for node in handle.each(handle.nodes):
        pods = [pod for pod in handle.cluster.on(node.name) if is_due(pod)]
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
    if args.exit_codes:
        codes = {
            container.state.terminated.exit_code for container in containers if container.state.terminated is not None
        }
        if not codes.intersection(args.exit_codes):
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
    is_concerned = concerned(args)

    def restarts(pod: PodFacts) -> int:
        return sum(container.restart_count for container in _containers(pod, args.including_init_containers))

    def is_due(pod: PodFacts) -> bool:
        if not is_concerned(pod) or not handle.evictor.both(pod):
            return False
        count = restarts(pod)
        if count < args.pod_restart_threshold:
            fault = f"number of container restarts ({count}) not exceeding the threshold"
            handle.say(pod, f"ignoring pod for eviction due to: {fault}")
            return False
        return not args.states or pod.phase in args.states or _waits_in(args, pod)

    for node in handle.each(handle.nodes):
        pods = [pod for pod in handle.cluster.on(node.name) if is_due(pod)]
        sort_slice(pods, lambda pod_facts, other: restarts(pod_facts) > restarts(other))
        because = f"its containers restarted {{}} times, threshold {args.pod_restart_threshold}"
        if not handle.evict_each([(pod, because.format(restarts(pod))) for pod in pods]):
            return


def _waits_in(args: TooManyRestartsArgs, pod: PodFacts) -> bool:
    return any(
        container.state.waiting is not None and container.state.waiting.reason in args.states
        for container in _containers(pod, args.including_init_containers)
    )

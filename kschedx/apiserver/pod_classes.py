"""What a pod's PriorityClass and RuntimeClass add on admission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import exact_amounts
from kschedx.kube.tolerations import merge_tolerations
from kschedx.kube.types import ObjectMeta, PodSpec, PriorityClass, RuntimeClass

# Built-in admission of a pod's priority. Upstream: plugin/pkg/admission/priority/admission.go.

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPT_NEVER = "Never"

SYSTEM_CRITICAL = 2_000_000_000  # the lowest priority of pods that kubelets and controllers treat as critical
BUILT_IN_CLASSES: Mapping[str, PriorityClass] = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=PREEMPT_LOWER_PRIORITY)
    for name, value in (("system-cluster-critical", SYSTEM_CRITICAL), ("system-node-critical", 2_000_001_000))
}
"""Every cluster has them, even if a dump lacks them."""


def resolve_priority(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> PodSpec:
    """Set the priority and preemption policy of the pod's PriorityClass.

    `classes` are by name; the built-in ones may be absent. A pod without a class gets the global default, or priority
    0. A pod with a priority was admitted before and is unchanged; `priority_conflicts` validates it. Raises InputError
    with the place `spec.priorityClassName` or `spec.preemptionPolicy`.
    """
    if spec.priority is not None:
        return spec
    chosen = _class_of(spec, classes)
    conflict = _policy_conflict(spec, chosen)
    if conflict is not None:
        raise conflict
    return replace(
        spec, priority_class_name=chosen.metadata.name, priority=chosen.value, preemption_policy=_policy(chosen)
    )


def stored_priority(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> PodSpec:
    """Set the priority of a pod in a snapshot, as `resolve_priority` does. If its class is missing, it is unknown."""
    name = spec.priority_class_name
    is_known = not name or name in classes or name in BUILT_IN_CLASSES
    return resolve_priority(spec, classes) if is_known else spec


def priority_conflicts(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> Iterator[InputError]:
    """Yield why admission would refuse a new pod: an unknown class, or another priority or policy than its class's."""
    try:
        chosen = _class_of(spec, classes)
    except InputError as error:
        yield error
        return
    if spec.priority is not None and spec.priority != chosen.value:
        yield InputError(
            f"the integer value of priority ({spec.priority}) must not be provided in pod spec; priority admission "
            f"controller computed {chosen.value} from the given PriorityClass name",
            place=Place(field="spec.priority"),
        )
        return
    conflict = _policy_conflict(spec, chosen)
    if conflict is not None:
        yield conflict


def names_no_priority(spec: PodSpec) -> bool:
    """Return whether it has neither a priority nor a class."""
    return spec.priority is None and not spec.priority_class_name


def global_default(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """Return the class of pods without one; of several, which only a race can create, the one with the lowest value."""
    return min(
        (priority_class for priority_class in classes.values() if priority_class.global_default),
        key=lambda priority_class: priority_class.value,
        default=None,
    )


def _class_of(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> PriorityClass:
    name = spec.priority_class_name
    if not name:
        return global_default(classes) or PriorityClass(preemption_policy=PREEMPT_LOWER_PRIORITY)
    chosen = classes.get(name) or BUILT_IN_CLASSES.get(name)
    if chosen is None:
        raise InputError(
            f"no PriorityClass with name {name} was found",
            place=Place(field="spec.priorityClassName"),
            hint=nearest(name, [*classes, *BUILT_IN_CLASSES]),
        )
    return chosen


def _policy(chosen: PriorityClass) -> str:
    return chosen.preemption_policy or PREEMPT_LOWER_PRIORITY


def _policy_conflict(spec: PodSpec, chosen: PriorityClass) -> InputError | None:
    if spec.preemption_policy in (None, _policy(chosen)):
        return None
    return InputError(
        f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
        f"priority admission controller computed {_policy(chosen)} from the given PriorityClass name",
        place=Place(field="spec.preemptionPolicy"),
    )


# What a RuntimeClass adds to its pods. Upstream: plugin/pkg/admission/runtimeclass/admission.go.


def check_runtime_class(runtime_class: RuntimeClass) -> RuntimeClass:
    """Return it unchanged. Raises InputError with the field's path for an invalid quantity in its overhead."""
    if runtime_class.overhead is not None:
        with Place(field="overhead.podFixed"):
            exact_amounts(runtime_class.overhead.pod_fixed)
    return runtime_class


def find_runtime_class(spec: PodSpec, classes: Mapping[str, RuntimeClass]) -> RuntimeClass | None:
    """Return the pod's class, or None if it has none. Raises InputError at `spec.runtimeClassName`."""
    name = spec.runtime_class_name
    if name is None:
        return None
    if name not in classes:
        raise InputError(
            f'pod rejected: RuntimeClass "{name}" not found',
            place=Place(field="spec.runtimeClassName"),
            hint=nearest(name, classes),
        )
    return classes[name]


def apply_runtime_class(spec: PodSpec, runtime_class: RuntimeClass) -> PodSpec:
    """Add the class's overhead, node selector, and tolerations. Raises InputError at `spec.overhead` or
    `spec.nodeSelector[key]` if the pod has other values."""
    if runtime_class.overhead is not None:
        overhead = runtime_class.overhead.pod_fixed
        if spec.overhead and not _same(overhead, spec.overhead):
            raise _other_overhead()
        spec = replace(spec, overhead=overhead)
    if runtime_class.scheduling is None:
        return spec
    wanted = runtime_class.scheduling.node_selector
    for key, value in sorted(wanted.items()):
        own = spec.node_selector.get(key, value)
        if own != value:
            ours, theirs = f"pod.spec.nodeSelector[{key}]", f"runtimeClass.scheduling.nodeSelector[{key}]"
            raise InputError(
                f"conflict: {theirs} = {value}; {ours} = {own}", place=Place(field=f"spec.nodeSelector[{key}]")
            )
    return replace(
        spec,
        node_selector=spec.node_selector | wanted,
        tolerations=merge_tolerations(spec.tolerations, runtime_class.scheduling.tolerations),
    )


def check_overhead(spec: PodSpec, runtime_class: RuntimeClass | None) -> None:
    """Refuse an overhead that differs from the pod's class, with an InputError at `spec.overhead`."""
    if runtime_class is not None and runtime_class.overhead is not None:
        if not _same(runtime_class.overhead.pod_fixed, spec.overhead):
            raise _other_overhead()
    elif spec.overhead:
        raise InputError(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            place=Place(field="spec.overhead"),
        )


def _same(item: ResourceList, other: ResourceList) -> bool:
    return exact_amounts(item) == exact_amounts(other)


def _other_overhead() -> InputError:
    return InputError(
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead", place=Place(field="spec.overhead")
    )

"""What a RuntimeClass adds to the pods that name it. Upstream: plugin/pkg/admission/runtimeclass/admission.go."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kschedx.api.quantity import ResourceList
from kschedx.api.resources import exact_amounts
from kschedx.api.tolerations import merge_tolerations
from kschedx.api.types import PodSpec, RuntimeClass
from kschedx.errors import InputError, Place, nearest


def check_runtime_class(runtime_class: RuntimeClass) -> RuntimeClass:
    """The same one. Raises InputError with the field's path where a quantity of its overhead is none."""
    if runtime_class.overhead is not None:
        try:
            exact_amounts(runtime_class.overhead.pod_fixed)
        except InputError as error:
            raise error.at(Place(field="overhead.podFixed")) from None
    return runtime_class


def find_runtime_class(spec: PodSpec, classes: Mapping[str, RuntimeClass]) -> RuntimeClass | None:
    """The class that a pod names, None where it names none. Raises InputError at `spec.runtimeClassName`."""
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
    """The spec with the class's overhead, node selector and tolerations.

    Raises InputError at `spec.overhead` or `spec.nodeSelector[key]` where the pod says something else.
    """
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
    """Refuse an overhead that does not come from the pod's class, by an InputError at `spec.overhead`."""
    if runtime_class is not None and runtime_class.overhead is not None:
        if not _same(runtime_class.overhead.pod_fixed, spec.overhead):
            raise _other_overhead()
    elif spec.overhead:
        raise InputError(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            place=Place(field="spec.overhead"),
        )


def _same(one: ResourceList, other: ResourceList) -> bool:
    return exact_amounts(one) == exact_amounts(other)


def _other_overhead() -> InputError:
    return InputError(
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead", place=Place(field="spec.overhead")
    )

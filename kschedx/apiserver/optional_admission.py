"""Mutating admission plugins that are not enabled by default.

They read a namespace's annotations; the API server's admission configuration is unknown. Upstream:
plugin/pkg/admission/{podnodeselector,podtolerationrestriction,extendedresourcetoleration}.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.decoding import decode
from kschedx.kube.names import CPU, MEMORY, is_extended_resource, label_key_errors, label_value_errors
from kschedx.kube.resources import nano_units
from kschedx.kube.tolerations import NO_SCHEDULE, covers, merge_tolerations
from kschedx.kube.types import Labels, PodSpec, Toleration

POD_NODE_SELECTOR = "PodNodeSelector"
POD_TOLERATION_RESTRICTION = "PodTolerationRestriction"
EXTENDED_RESOURCE_TOLERATION = "ExtendedResourceToleration"
OPTIONAL_PLUGINS = (POD_NODE_SELECTOR, POD_TOLERATION_RESTRICTION, EXTENDED_RESOURCE_TOLERATION)

NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
TOLERATIONS_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

PROJECT_NODE_SELECTOR = "openshift.io/node-selector"
PROJECT_NODE_ENVIRONMENT = "scheduling.openshift.io/OriginPodNodeEnvironment"
"""OpenShift's own plugin, which runs wherever such annotations exist."""
SELECTOR_ANNOTATIONS = (NODE_SELECTOR, PROJECT_NODE_SELECTOR)

PLUGIN_OF_ANNOTATION: Mapping[str, str] = {
    NODE_SELECTOR: POD_NODE_SELECTOR,
    DEFAULT_TOLERATIONS: POD_TOLERATION_RESTRICTION,
    TOLERATIONS_WHITELIST: POD_TOLERATION_RESTRICTION,
}
READ_ANNOTATIONS = frozenset({*PLUGIN_OF_ANNOTATION, PROJECT_NODE_SELECTOR})


def project_selector(annotations: Labels, default: str) -> str:
    """Return the node selector that OriginPodNodeEnvironment adds to a project's pods: the project's own, even if
    empty, otherwise the cluster's `default`; none if PodNodeSelector's annotation is set."""
    return "" if NODE_SELECTOR in annotations else annotations.get(PROJECT_NODE_SELECTOR, default)


def apply_node_selector(spec: PodSpec, selector: str, field: str, whose: str = "namespace") -> PodSpec:
    """Add the node selector in `field`. Raises InputError if the two conflict."""
    wanted = _labels(selector, field)
    for key, value in sorted(wanted.items()):
        if spec.node_selector.get(key, value) != value:
            raise InputError(
                f"pod node label selector conflicts with its {whose} node label selector",
                place=Place(field=f"spec.nodeSelector[{key}]"),
                hint=f"the {whose} says {key}={value}",
            )
    return replace(spec, node_selector=wanted | spec.node_selector)


def apply_default_tolerations(spec: PodSpec, annotations: Labels) -> PodSpec:
    """Add the namespace's tolerations, and one for memory pressure unless the pod is BestEffort. Raises InputError if
    the namespace's whitelist does not cover a toleration."""
    extra = _tolerations(annotations, DEFAULT_TOLERATIONS)
    if not is_best_effort(spec):
        pressure = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect=NO_SCHEDULE)
        extra = (*extra, pressure)
    tolerations = merge_tolerations(spec.tolerations, extra) if extra else spec.tolerations
    whitelist = _tolerations(annotations, TOLERATIONS_WHITELIST)
    for index, toleration in enumerate(tolerations if whitelist else ()):
        if not any(covers(allowed, toleration) for allowed in whitelist):
            raise InputError(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace "
                "whitelist",
                place=Place(field=f"spec.tolerations[{index}]"),
            )
    return replace(spec, tolerations=tolerations)


def tolerate_extended_resources(spec: PodSpec) -> PodSpec:
    """Tolerate taints that are named after an extended resource which the pod requests."""
    requested = {
        name
        for container in (*spec.containers, *spec.init_containers)
        for name in container.resources.requests
        if is_extended_resource(name)
    }
    tolerations = spec.tolerations
    for name in sorted(requested):
        added = Toleration(key=name, operator="Exists", effect=NO_SCHEDULE)
        same = [replace(toleration, toleration_seconds=None) == added for toleration in tolerations]
        tolerations = tuple(
            added if is_same else toleration for toleration, is_same in zip(tolerations, same, strict=True)
        )
        if not any(same):
            tolerations = (*tolerations, added)
    return replace(spec, tolerations=tolerations)


def _labels(selector: str, field: str) -> Labels:
    """Parse `key=value,other=value` (ConvertSelectorToLabelsMap)."""
    labels: Labels = {}
    for part in selector.split(",") if selector else ():
        pair = part.split("=")
        key, value = pair[0].strip(), pair[-1].strip()
        if len(pair) != 2 or any(label_key_errors(key)) or any(label_value_errors(value)):
            raise InputError(f'the node selector is not of the form key=value: "{part}"', place=Place(field=field))
        labels[key] = value
    return labels


def _tolerations(annotations: Labels, key: str) -> tuple[Toleration, ...]:
    written = annotations.get(key, "")
    if not written:
        return ()
    try:
        return decode(written.encode(), tuple[Toleration, ...])
    except InputError as error:
        raise error.at(Place(field=f"metadata.annotations[{key}]")) from None


def is_best_effort(spec: PodSpec) -> bool:
    """Return whether it has neither requests nor limits of cpu and memory (pkg/apis/core/helper/qos)."""
    own = [spec.resources] if spec.resources is not None else []
    every = own or [container.resources for container in (*spec.containers, *spec.init_containers)]
    return not any(
        nano_units(amounts[name]) > 0
        for resources in every
        for amounts in (resources.requests, resources.limits)
        for name in (CPU, MEMORY)
        if name in amounts
    )

"""Admission of a manifest: defaults, then every built-in admission plugin that affects scheduling.

The order is the API server's: defaults, mutating plugins (AllOrderedPlugins in pkg/kubeapiserver/options/plugins.go),
label keys (pkg/registry/core/pod/strategy.go), validation, validating plugins. A pod from a cluster has been admitted
already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod, merge_spread_label_keys, rounded_resources
from kschedx.apiserver.pod_classes import (
    apply_runtime_class,
    check_overhead,
    find_runtime_class,
    priority_conflicts,
    resolve_priority,
)
from kschedx.apiserver.pod_security import (
    KubeletSpec,
    LevelVersion,
    Standards,
    Violation,
    security_view,
    violations,
    violations_text,
)
from kschedx.apiserver.validation import validate_kubelet_fields, validate_pod
from kschedx.errors import InputError, NotAdmittedError, Place, nearest
from kschedx.kube import types
from kschedx.kube.autoscalers import LIMIT_RANGER as LIMIT_RANGER_ANNOTATION
from kschedx.kube.decoding import decode
from kschedx.kube.field_errors import DEFAULT_OPTIONS, ValidationOptions, aggregate
from kschedx.kube.names import CPU, MEMORY, is_extended_resource, label_key_errors, label_value_errors
from kschedx.kube.quantity import Quantity, ResourceList, parse_quantity
from kschedx.kube.resources import QOS, container_limits, container_requests, parse_resources, qos_of
from kschedx.kube.scalars import MAX_INT64
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.tolerations import NO_EXECUTE, NO_SCHEDULE, covers, merge_tolerations, toleration_text
from kschedx.kube.types import (
    Container,
    EmptyDirVolumeSource,
    Labels,
    LimitRange,
    LimitRangeItem,
    Pod,
    PodSpec,
    PriorityClass,
    RuntimeClass,
    Toleration,
)

# LimitRanges: the defaults that they set on the containers of a new pod, and their refusals.
# Upstream: plugin/pkg/admission/limitranger/admission.go and, for a LimitRange's own defaults,
# pkg/apis/core/v1/defaults.go. Resources are in alphabetical order, which is random in Go.

_CONTAINER = "Container"
_POD = "Pod"
_CLAIM = "PersistentVolumeClaim"
_MAX_MILLI_VALUE = MAX_INT64 // 1000
_OF_POD_LEVEL = (CPU, MEMORY)  # LimitRanger does not support pod-level hugepages

_ResourceAmounts = Mapping[str, Quantity]


# --- defaults


def default_limit_range(limit_range: LimitRange) -> LimitRange:
    """A LimitRange as the API server stores it. Raises InputError with the field's path for an invalid quantity."""
    limits = tuple(_default_item(item, f"spec.limits[{i}]") for i, item in enumerate(limit_range.spec.limits))
    return replace(limit_range, spec=replace(limit_range.spec, limits=limits))


def _default_item(item: LimitRangeItem, field: str) -> LimitRangeItem:
    default, default_request = item.default, item.default_request
    if item.type == _CONTAINER:
        default = item.max | default
        default_request = item.min | default | default_request
    return LimitRangeItem(
        type=item.type,
        max=rounded_resources(item.max, f"{field}.max"),
        min=rounded_resources(item.min, f"{field}.min"),
        default=rounded_resources(default, f"{field}.default"),
        default_request=rounded_resources(default_request, f"{field}.defaultRequest"),
        max_limit_request_ratio=rounded_resources(item.max_limit_request_ratio, f"{field}.maxLimitRequestRatio"),
    )


def apply_limit_range(spec: PodSpec, limit_range: LimitRange) -> PodSpec:
    """Set the requests and limits that the containers lack. `limit_range` has its defaults. Of several items for
    containers, the last one counts for a resource."""
    limits: ResourceList = {}
    requests: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == _CONTAINER:
            limits |= item.default
            requests |= item.default_request
    if not limits and not requests:
        return spec

    def filled(container: Container) -> Container:
        own = container.resources
        resources = replace(own, requests=requests | own.requests, limits=limits | own.limits)
        return container if resources == own else replace(container, resources=resources)

    return replace(
        spec, containers=tuple(map(filled, spec.containers)), init_containers=tuple(map(filled, spec.init_containers))
    )


# --- refusals


class _Violation(Struct, frozen=True, kw_only=True):
    field: str
    sentence: str


_Rule = Callable[[str, Quantity], _Violation | None]


def limit_range_refusal(spec: PodSpec, limit_range: LimitRange) -> InputError | None:
    """Return why the LimitRange refuses a pod, in the API server's words, or None. The hint names the LimitRange.
    `spec` and `limit_range` have their defaults. The place is the field, or the common part of several fields, which
    the hint then lists."""
    violations = list(_violations(spec, limit_range))
    refusal = aggregate(InputError(violation.sentence) for violation in violations)
    if refusal is None:
        return None
    fields = list(dict.fromkeys(violation.field for violation in violations))
    title = f"LimitRange {limit_range.key}"
    hint = title if len(fields) == 1 else f"{title} refuses {', '.join(fields)}"
    return InputError(refusal.message, place=Place(field=fields[0] if len(fields) == 1 else "spec"), hint=hint)


def limit_range_refusal_of_claim(claim: PersistentVolumeClaim, limit_range: LimitRange) -> str | None:
    """Return why the LimitRange refuses a claim, in the API server's words, or None. `limit_range` has its defaults."""
    requests = parse_resources(claim.spec.resources.requests)
    used = (
        _Usage(item=item, requests=requests, limits={}, field="")
        for item in limit_range.spec.limits
        if item.type == _CLAIM
    )
    refusal = aggregate(InputError(violation.sentence) for it in used for violation in it.violations_of_requests())
    return None if refusal is None else refusal.message


def _violations(spec: PodSpec, limit_range: LimitRange) -> Iterator[_Violation]:
    for item in limit_range.spec.limits:
        if item.type == _CONTAINER:
            for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
                for index, container in enumerate(containers):
                    resources = container.resources
                    yield from _Usage(
                        item=item,
                        requests=parse_resources(resources.requests),
                        limits=parse_resources(resources.limits),
                        field=f"spec.{field}[{index}].resources",
                    ).violations()
        elif item.type == _POD:
            yield from _pod_usage(spec, item).violations()


def _pod_usage(spec: PodSpec, item: LimitRangeItem) -> _Usage:
    requests, limits = container_requests(spec), container_limits(spec)
    if spec.resources is not None:
        requests |= {name: q for name, q in parse_resources(spec.resources.requests).items() if name in _OF_POD_LEVEL}
        limits |= {name: q for name, q in parse_resources(spec.resources.limits).items() if name in _OF_POD_LEVEL}
    return _Usage(item=item, requests=requests, limits=limits, field="")


class _Usage(Struct, frozen=True, kw_only=True):
    """The requests and limits of a container or a whole pod, with one item of a LimitRange."""

    item: LimitRangeItem
    requests: _ResourceAmounts
    limits: _ResourceAmounts
    field: str  # the path of requests and limits; empty for a pod, which is the sum of its containers

    def violations(self) -> Iterator[_Violation]:
        return self._violations(
            (self._minimum, self.item.min),
            (self._maximum, self.item.max),
            (self._ratio, self.item.max_limit_request_ratio),
        )

    def violations_of_requests(self) -> Iterator[_Violation]:
        """Yield violations for an object with requests only."""
        return self._violations((self._minimum, self.item.min), (self._most_requested, self.item.max))

    def _violations(self, *rules: tuple[_Rule, ResourceList]) -> Iterator[_Violation]:
        for rule, bounds in rules:
            for name, bound in sorted(parse_resources(bounds).items()):
                violation = rule(name, bound)
                if violation is not None:
                    yield violation

    def _minimum(self, name: str, bound: Quantity) -> _Violation | None:
        request, limit = self.requests.get(name), self.limits.get(name)
        request_amount, allowed, least = _comparable(request, limit, bound)
        rule = f"minimum {name} usage per {self.item.type} is {bound}"
        if request is None:
            return self.violation("requests", name, f"{rule}.  No request is specified")
        if request_amount < least:
            return self.violation("requests", name, f"{rule}, but request is {request}")
        if limit is not None and allowed < least:
            return self.violation("limits", name, f"{rule}, but limit is {limit}")
        return None

    def _maximum(self, name: str, bound: Quantity) -> _Violation | None:
        request, limit = self.requests.get(name), self.limits.get(name)
        request_amount, allowed, most = _comparable(request, limit, bound)
        rule = f"maximum {name} usage per {self.item.type} is {bound}"
        if limit is None:
            return self.violation("limits", name, f"{rule}.  No limit is specified")
        if allowed > most:
            return self.violation("limits", name, f"{rule}, but limit is {limit}")
        if request is not None and request_amount > most:
            return self.violation("requests", name, f"{rule}, but request is {request}")
        return None

    def _most_requested(self, name: str, bound: Quantity) -> _Violation | None:
        request = self.requests.get(name)
        request_amount, _, most = _comparable(request, None, bound)
        rule = f"maximum {name} usage per {self.item.type} is {bound}"
        if request is None:
            return self.violation("requests", name, f"{rule}.  No request is specified")
        return self.violation("requests", name, f"{rule}, but request is {request}") if request_amount > most else None

    def _ratio(self, name: str, bound: Quantity) -> _Violation | None:
        request_amount, allowed, _ = _comparable(self.requests.get(name), self.limits.get(name), bound)
        rule = f"{name} max limit to request ratio per {self.item.type} is {bound}"
        if not request_amount:
            return self.violation("requests", name, f"{rule}, but no request is specified or request is 0")
        if not allowed:
            return self.violation("limits", name, f"{rule}, but no limit is specified or limit is 0")
        ratio = allowed / request_amount
        if bound.value() <= _MAX_MILLI_VALUE:
            exceeds = ratio * 1000 > float(bound.milli_value())
        else:
            exceeds = ratio > float(bound.value())
        return self.violation("limits", name, f"{rule}, but provided ratio is {ratio:f}") if exceeds else None

    def violation(self, side: str, name: str, sentence: str) -> _Violation:
        return _Violation(field=f"{self.field}.{side}[{name}]" if self.field else "spec.containers", sentence=sentence)


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """Return the three in thousandths, or in whole units if one of them is too large; 0 for absent ones."""
    units = tuple(0 if quantity is None else quantity.value() for quantity in (request, limit, bound))
    if max(units) > _MAX_MILLI_VALUE:
        return units[0], units[1], units[2]
    milli = tuple(0 if quantity is None else quantity.milli_value() for quantity in (request, limit, bound))
    return milli[0], milli[1], milli[2]


# Mutating admission plugins that are not enabled by default.
# They read a namespace's annotations; the API server's admission configuration is unknown. Upstream:
# plugin/pkg/admission/{podnodeselector,podtolerationrestriction,extendedresourcetoleration}.

_POD_NODE_SELECTOR = "PodNodeSelector"
_POD_TOLERATION_RESTRICTION = "PodTolerationRestriction"
_EXTENDED_RESOURCE_TOLERATION = "ExtendedResourceToleration"
OPTIONAL_PLUGINS = (_POD_NODE_SELECTOR, _POD_TOLERATION_RESTRICTION, _EXTENDED_RESOURCE_TOLERATION)

NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
TOLERATIONS_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

PROJECT_NODE_SELECTOR = "openshift.io/node-selector"
_PROJECT_NODE_ENVIRONMENT = "scheduling.openshift.io/OriginPodNodeEnvironment"
"""OpenShift's own plugin, which runs wherever such annotations exist."""
SELECTOR_ANNOTATIONS = (NODE_SELECTOR, PROJECT_NODE_SELECTOR)

PLUGIN_OF_ANNOTATION: Mapping[str, str] = {
    NODE_SELECTOR: _POD_NODE_SELECTOR,
    DEFAULT_TOLERATIONS: _POD_TOLERATION_RESTRICTION,
    TOLERATIONS_WHITELIST: _POD_TOLERATION_RESTRICTION,
}
READ_ANNOTATIONS = frozenset({*PLUGIN_OF_ANNOTATION, PROJECT_NODE_SELECTOR})


def project_selector(annotations: Mapping[str, str], default: str) -> str:
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
    """Add the namespace's tolerations, and one for memory pressure unless the pod is BestEffort. Raises
    NotAdmittedError, which names no pod, if the namespace's whitelist does not cover a toleration."""
    extra = _tolerations(annotations, DEFAULT_TOLERATIONS)
    if not is_best_effort(spec):
        pressure = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect=NO_SCHEDULE)
        extra = (*extra, pressure)
    tolerations = merge_tolerations(spec.tolerations, extra) if extra else spec.tolerations
    for index in refused_tolerations(tolerations, annotations):
        raise NotAdmittedError(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace "
            "whitelist",
            place=Place(field=f"spec.tolerations[{index}]"),
        )
    return replace(spec, tolerations=tolerations)


def refused_tolerations(tolerations: Sequence[Toleration], annotations: Mapping[str, str]) -> Iterator[int]:
    """Yield the indexes of the tolerations that a namespace's whitelist, if it has any, does not cover."""
    whitelist = _tolerations(annotations, TOLERATIONS_WHITELIST)
    for index, toleration in enumerate(tolerations if whitelist else ()):
        if not any(covers(allowed, toleration) for allowed in whitelist):
            yield index


def conflicting_selectors(
    node_selector: Labels, annotations: Mapping[str, str], default: str
) -> Iterator[tuple[str, str]]:
    """Yield the labels, key and value, that a namespace's node selector demands and the pod's own contradicts."""
    for selector in (annotations.get(NODE_SELECTOR, ""), project_selector(annotations, default)):
        for key, value in _labels(selector, "").items():
            if node_selector.get(key, value) != value:
                yield key, value


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


def _tolerations(annotations: Mapping[str, str], key: str) -> tuple[Toleration, ...]:
    written = annotations.get(key, "")
    if not written:
        return ()
    with Place(field=f"metadata.annotations[{key}]"):
        return decode(written.encode(), tuple[Toleration, ...])


def is_best_effort(spec: PodSpec) -> bool:
    """Return whether it has neither requests nor limits of cpu and memory (pkg/apis/core/helper/qos)."""
    own = [spec.resources] if spec.resources is not None else []
    every = own or [container.resources for container in (*spec.containers, *spec.init_containers)]
    return qos_of(every) is QOS.BEST_EFFORT


_LIMIT_RANGER = "LimitRanger"
PRIORITY = "Priority"
DEFAULT_TOLERATION_SECONDS = "DefaultTolerationSeconds"
_RUNTIME_CLASS = "RuntimeClass"

_TOLERATED_FOR_A_WHILE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300


class PodSecurity(Struct, frozen=True, kw_only=True):
    """The levels that a namespace enforces and warns about, and the API server's version of the standards."""

    wanted: LevelVersion
    standards: Standards

    def violations(self, pod: Pod, kubelet: KubeletSpec) -> tuple[Violation, ...]:
        return violations(security_view(pod, kubelet), self.wanted, self.standards)

    def refusal(self, pod: Pod, kubelet: KubeletSpec) -> str | None:
        """Return why the pod is refused, or None."""
        violated = self.violations(pod, kubelet)
        return f'violates PodSecurity "{self.wanted}": {violations_text(violated)}' if violated else None

    def warning(self, pod: Pod, kubelet: KubeletSpec, *, is_template: bool) -> str:
        """Return the warning that kubectl prints for the namespace's warn level, or an empty string."""
        violated = violations(security_view(pod, kubelet, is_template=is_template), self.wanted, self.standards)
        return f'would violate PodSecurity "{self.wanted}": {violations_text(violated)}' if violated else ""


class AdmissionContext(Struct, frozen=True, kw_only=True):
    """What admission reads: objects of the cluster, and options of the API server."""

    limit_ranges: Mapping[str, Sequence[LimitRange]] = {}
    """By namespace, with defaults (`limit_range.default_limit_range`)."""
    runtime_classes: Mapping[str, RuntimeClass] = {}  # by name
    priority_classes: Mapping[str, PriorityClass] = {}  # by name, with defaults; the built-in classes may be absent
    namespace_annotations: Mapping[str, Labels] = {}  # for optional plugins
    default_node_selector: str = ""  # OpenShift's default for projects without their own
    enabled_plugins: Sequence[str] = ()
    """Names from `optional_admission.OPTIONAL_PLUGINS`, as in --enable-admission-plugins."""
    pod_security: PodSecurity | None = None
    """The Pod Security levels of the pod's namespace; None if every pod is admitted or it is not evaluated."""
    validation: ValidationOptions = DEFAULT_OPTIONS
    merges_spread_label_keys: bool = True  # MatchLabelKeysInPodTopologySpreadSelectorMerge


class AdmissionChange(Struct, frozen=True, kw_only=True):
    """A change of a pod by an admission plugin."""

    plugin: str
    source: str  # the object that causes it, such as `LimitRange shop/defaults`; empty without one
    container: str  # empty for the whole pod
    item: str
    """`requests.cpu`, `limits.memory`, `overhead.cpu`, `nodeSelector.disk`, `toleration`, `priority`, and others."""
    before: str  # empty if it was absent
    after: str


class AdmittedPod(Struct, frozen=True, kw_only=True):
    pod: Pod
    changes: tuple[AdmissionChange, ...] = ()  # in order. Defaults that every API server sets are not included


def _with_canonical_amounts(spec: types.PodSpec) -> types.PodSpec:
    """Return the spec with requests, limits, and overhead in canonical form: 500m for 0.5."""
    return replace(
        spec,
        containers=tuple(_canonical_container(container) for container in spec.containers),
        init_containers=tuple(_canonical_container(container) for container in spec.init_containers),
        overhead=_canonical(spec.overhead),
        resources=None if spec.resources is None else _canonical_requirements(spec.resources),
    )


def _canonical_container(container: types.Container) -> types.Container:
    return replace(container, resources=_canonical_requirements(container.resources))


def _canonical_requirements(resources: types.ResourceRequirements) -> types.ResourceRequirements:
    return replace(resources, requests=_canonical(resources.requests), limits=_canonical(resources.limits))


def _canonical(amounts: ResourceList) -> ResourceList:
    return {name: str(parse_quantity(written)) for name, written in amounts.items()}


def admit(pod: Pod, context: AdmissionContext, kubelet: KubeletSpec | None = None) -> AdmittedPod:
    """Return a manifest as it would be stored; `kubelet` has its fields that scheduling does not read.

    Raises InputError with the API server's message and the field if it is refused; several validation errors become one
    `[first, second]`. It is a NotAdmittedError if the refusal depends on the cluster's objects.
    """
    given = default_pod(pod)
    if kubelet is not None:
        given = replace(given, spec=_with_empty_dirs(given.spec, kubelet))
    spec = given.spec
    changes: list[AdmissionChange] = []
    try:
        for step in _steps(given, context):
            changed = step.change(spec)
            changes += _differences(spec, changed, step)
            spec = changed
        if context.merges_spread_label_keys:
            spec = merge_spread_label_keys(spec, given.metadata.labels)
    except NotAdmittedError:
        raise
    except InputError as error:
        raise _forbidden_error(given, error) from None
    metadata, phrase = given.metadata, "; ".join(_set_by_limit_ranges(changes))
    if phrase:
        annotations = {**metadata.annotations, LIMIT_RANGER_ANNOTATION: f"LimitRanger plugin set: {phrase}"}
        metadata = replace(metadata, annotations=annotations)
    pod = replace(given, metadata=metadata, spec=_with_canonical_amounts(spec))
    admitted = AdmittedPod(pod=pod, changes=tuple(changes))
    _refuse(given, admitted, context, kubelet)
    return admitted


def _set_by_limit_ranges(changes: Iterable[AdmissionChange]) -> Iterator[str]:
    """Yield `cpu, memory request for container app`, the text of the plugin's annotation on the pod."""
    limits_by_kind: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        side, _, resource = change.item.partition(".")
        if change.plugin == _LIMIT_RANGER:
            limits_by_kind.setdefault((change.container, side.removesuffix("s")), []).append(resource)
    for (container, side), resources in limits_by_kind.items():
        yield f"{', '.join(sorted(resources))} {side} for container {container}"


def check_plugins(names: Sequence[str]) -> None:
    """Raise InputError for a name that is not in OPTIONAL_PLUGINS."""
    for name in names:
        if name not in OPTIONAL_PLUGINS:
            hint = nearest(name, OPTIONAL_PLUGINS) or f"known are {', '.join(OPTIONAL_PLUGINS)}"
            raise InputError(f'there is no optional admission plugin "{name}"', hint=hint)


# --- mutating plugins


class _Step(Struct, frozen=True, kw_only=True):
    plugin: str
    source: str
    change: Callable[[PodSpec], PodSpec]  # raises InputError to refuse the pod


def _steps(pod: Pod, context: AdmissionContext) -> Iterator[_Step]:
    namespace = pod.metadata.namespace
    annotations = context.namespace_annotations.get(namespace, {})
    for limit_range in context.limit_ranges.get(namespace, ()):
        yield _Step(
            plugin=_LIMIT_RANGER,
            source=f"LimitRange {namespace}/{limit_range.metadata.name}",
            change=partial(apply_limit_range, limit_range=limit_range),
        )
    if _POD_NODE_SELECTOR in context.enabled_plugins:
        yield _Step(
            plugin=_POD_NODE_SELECTOR,
            source=f"Namespace {namespace}",
            change=lambda spec: apply_node_selector(
                spec, annotations.get(NODE_SELECTOR, ""), f"metadata.annotations[{NODE_SELECTOR}]"
            ),
        )
    default = context.default_node_selector if namespace in context.namespace_annotations else ""
    if selector := project_selector(annotations, default):
        is_own = PROJECT_NODE_SELECTOR in annotations
        field = f"metadata.annotations[{PROJECT_NODE_SELECTOR}]" if is_own else "spec.defaultNodeSelector"
        yield _Step(
            plugin=_PROJECT_NODE_ENVIRONMENT,
            source=f"Namespace {namespace}" if is_own else "Scheduler cluster",
            change=lambda spec: apply_node_selector(spec, selector, field, "project"),
        )
    yield _Step(plugin=PRIORITY, source="", change=lambda spec: _set_priority(spec, context.priority_classes))
    yield _Step(plugin=DEFAULT_TOLERATION_SECONDS, source="", change=_with_default_tolerations)
    if _POD_TOLERATION_RESTRICTION in context.enabled_plugins:
        yield _Step(
            plugin=_POD_TOLERATION_RESTRICTION,
            source=f"Namespace {namespace}",
            change=lambda spec: apply_default_tolerations(spec, annotations),
        )
    if _EXTENDED_RESOURCE_TOLERATION in context.enabled_plugins:
        yield _Step(plugin=_EXTENDED_RESOURCE_TOLERATION, source="", change=tolerate_extended_resources)
    runtime_class = find_runtime_class(pod.spec, context.runtime_classes)
    if runtime_class is not None:
        yield _Step(
            plugin=_RUNTIME_CLASS,
            source=f"RuntimeClass {runtime_class.metadata.name}",
            change=lambda spec: apply_runtime_class(spec, runtime_class),
        )


def _set_priority(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> PodSpec:
    for conflict in priority_conflicts(spec, classes):
        raise conflict
    return resolve_priority(replace(spec, priority=None), classes)


def _with_default_tolerations(spec: PodSpec) -> PodSpec:
    """Pods tolerate temporary failures of their node (plugin/pkg/admission/defaulttolerationseconds)."""
    added = tuple(
        Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=_SECONDS)
        for key in _TOLERATED_FOR_A_WHILE
        if not any(it.key in ("", key) and it.effect in ("", NO_EXECUTE) for it in spec.tolerations)
    )
    return replace(spec, tolerations=spec.tolerations + added)


def _with_empty_dirs(spec: PodSpec, kubelet: KubeletSpec) -> PodSpec:
    """A volume without a source is an emptyDir (SetDefaults_Volume); only the manifest shows which have none."""
    without = {it.get("name") for it in kubelet.volumes if all(it[key] is None for key in it if key != "name")}
    if not without:
        return spec
    volumes = tuple(replace(it, empty_dir=EmptyDirVolumeSource()) if it.name in without else it for it in spec.volumes)
    return replace(spec, volumes=volumes)


# --- validation


def _refuse(given: Pod, admitted: AdmittedPod, context: AdmissionContext, kubelet: KubeletSpec | None) -> None:
    pod = admitted.pod
    for_kubelet = () if kubelet is None else tuple(validate_kubelet_fields(pod, kubelet))
    invalid = aggregate((*validate_pod(pod, context.validation), *for_kubelet))
    if invalid is not None:
        is_own = bool(for_kubelet) or aggregate(validate_pod(given, context.validation)) is not None
        raise invalid if is_own else _invalid_after_admission(invalid, admitted)
    for limit_range in context.limit_ranges.get(pod.metadata.namespace, ()):
        refusal = limit_range_refusal(pod.spec, limit_range)
        if refusal is not None:
            raise _forbidden_error(pod, refusal)
    violation = None if context.pod_security is None else context.pod_security.refusal(pod, kubelet or KubeletSpec())
    if violation is not None:
        raise _forbidden_error(pod, InputError(violation))
    try:
        check_overhead(pod.spec, find_runtime_class(pod.spec, context.runtime_classes))
    except InputError as error:
        raise _forbidden_error(pod, error) from None


def _forbidden_error(pod: Pod, refusal: InputError) -> NotAdmittedError:
    named = pod.metadata.name or pod.metadata.generate_name
    text = f'pods "{named}" is forbidden: {refusal.message}'
    return NotAdmittedError(text, place=refusal.place, hint=refusal.hint)


def _invalid_after_admission(invalid: InputError, admitted: AdmittedPod) -> NotAdmittedError:
    """Return the error of a valid manifest that admission makes invalid: a LimitRange's default limit may be below a
    container's request."""
    field, message = invalid.place.field, invalid.message
    text = f'Pod "{admitted.pod.metadata.name}" is invalid: {f"{field}: " if field else ""}{message}'
    sources = dict.fromkeys(change.source for change in admitted.changes if change.source)
    return NotAdmittedError(text, place=invalid.place, hint=f"after the changes of {', '.join(sources)}")


# --- changes


def _differences(before: PodSpec, after: PodSpec, step: _Step) -> Iterator[AdmissionChange]:
    old, new = _values(before), _values(after)
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            container, item = key
            yield AdmissionChange(
                plugin=step.plugin,
                source=step.source,
                container=container,
                item=item,
                before=old.get(key, ""),
                after=new.get(key, ""),
            )
    old_tolerations, new_tolerations = frozenset(before.tolerations), frozenset(after.tolerations)
    tolerations = [
        *((toleration_text(toleration), "") for toleration in before.tolerations if toleration not in new_tolerations),
        *(("", toleration_text(toleration)) for toleration in after.tolerations if toleration not in old_tolerations),
    ]
    for dropped, added in tolerations:
        yield AdmissionChange(
            plugin=step.plugin, source=step.source, container="", item="toleration", before=dropped, after=added
        )


def _values(spec: PodSpec) -> dict[tuple[str, str], str]:
    """(container, item) to value, for everything that a plugin may set, except tolerations."""
    values: dict[tuple[str, str], str] = {}
    for container in (*spec.init_containers, *spec.containers):
        for side, amounts in (("requests", container.resources.requests), ("limits", container.resources.limits)):
            values |= {(container.name, f"{side}.{name}"): str(amount) for name, amount in amounts.items()}
    values |= {("", f"overhead.{name}"): str(amount) for name, amount in spec.overhead.items()}
    values |= {("", f"nodeSelector.{key}"): value for key, value in spec.node_selector.items()}
    values["", "priorityClassName"] = spec.priority_class_name
    values["", "priority"] = "" if spec.priority is None else str(spec.priority)
    values["", "preemptionPolicy"] = spec.preemption_policy or ""
    return values

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

from kschedx.apiserver.defaulting import default_pod, merge_spread_label_keys, with_canonical_amounts
from kschedx.apiserver.limit_range import apply_limit_range, limit_range_refusal
from kschedx.apiserver.optional_admission import (
    EXTENDED_RESOURCE_TOLERATION,
    NODE_SELECTOR,
    OPTIONAL_PLUGINS,
    POD_NODE_SELECTOR,
    POD_TOLERATION_RESTRICTION,
    PROJECT_NODE_ENVIRONMENT,
    PROJECT_NODE_SELECTOR,
    apply_default_tolerations,
    apply_node_selector,
    project_selector,
    tolerate_extended_resources,
)
from kschedx.apiserver.pod_classes import (
    apply_runtime_class,
    check_overhead,
    find_runtime_class,
    priority_conflicts,
    resolve_priority,
)
from kschedx.apiserver.pod_security import LevelVersion, Standards, Violation, violations, violations_text
from kschedx.apiserver.security_context import KubeletSpec, judged
from kschedx.apiserver.validation import validate_pod
from kschedx.errors import InputError, NotAdmittedError, nearest
from kschedx.kube.autoscalers import LIMIT_RANGER as LIMIT_RANGER_ANNOTATION
from kschedx.kube.field_errors import DEFAULT_OPTIONS, ValidationOptions, aggregate
from kschedx.kube.tolerations import NO_EXECUTE, toleration_text
from kschedx.kube.types import (
    EmptyDirVolumeSource,
    Labels,
    LimitRange,
    ObjectMeta,
    Pod,
    PodSpec,
    PriorityClass,
    RuntimeClass,
    Toleration,
)

LIMIT_RANGER = "LimitRanger"
PRIORITY = "Priority"
DEFAULT_TOLERATION_SECONDS = "DefaultTolerationSeconds"
RUNTIME_CLASS = "RuntimeClass"

_TOLERATED_FOR_A_WHILE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300


class PodSecurity(Struct, frozen=True, kw_only=True):
    """The levels that a namespace enforces and warns about, and the API server's version of the standards."""

    wanted: LevelVersion
    standards: Standards

    def violations(self, pod: Pod, kubelet: KubeletSpec) -> tuple[Violation, ...]:
        return violations(judged(pod, kubelet), self.wanted, self.standards)

    def refusal(self, pod: Pod, kubelet: KubeletSpec) -> str | None:
        """Return why the pod is refused, or None."""
        violated = self.violations(pod, kubelet)
        return f'violates PodSecurity "{self.wanted}": {violations_text(violated)}' if violated else None

    def warning(self, pod: Pod, kubelet: KubeletSpec, *, is_template: bool) -> str:
        """Return the warning that kubectl prints for the namespace's warn level, or an empty string."""
        violated = violations(judged(pod, kubelet, is_template=is_template), self.wanted, self.standards)
        return f'would violate PodSecurity "{self.wanted}": {violations_text(violated)}' if violated else ""


class AdmissionContext(Struct, frozen=True, kw_only=True):
    """What admission reads: objects of the cluster, and options of the API server."""

    limit_ranges: Mapping[str, Sequence[LimitRange]] = {}
    """By namespace, with defaults (`limit_range.default_limit_range`)."""
    runtime_classes: Mapping[str, RuntimeClass] | None = {}
    """By name; None if unknown: then none is applied and a missing one is not an error."""
    priority_classes: Mapping[str, PriorityClass] = {}
    """By name, with defaults; the built-in classes may be absent."""
    namespace_annotations: Mapping[str, Labels] = {}
    """For optional plugins."""
    default_node_selector: str = ""
    """OpenShift's default for projects without their own."""
    enabled_plugins: Sequence[str] = ()
    """Names from `optional_admission.OPTIONAL_PLUGINS`, as in --enable-admission-plugins."""
    pod_security: PodSecurity | None = None
    """The Pod Security levels of the pod's namespace; None if every pod is admitted or it is not evaluated."""
    validation: ValidationOptions = DEFAULT_OPTIONS
    merges_spread_label_keys: bool = True
    """MatchLabelKeysInPodTopologySpreadSelectorMerge."""


class AdmissionChange(Struct, frozen=True, kw_only=True):
    """A change of a pod by an admission plugin."""

    plugin: str
    source: str
    """The object that causes it, such as `LimitRange shop/defaults`; empty without one."""
    container: str
    """Empty for the whole pod."""
    item: str
    """`requests.cpu`, `limits.memory`, `overhead.cpu`, `nodeSelector.disk`, `toleration`, `priority`, and others."""
    before: str
    """Empty if it was absent."""
    after: str


class Admitted(Struct, frozen=True, kw_only=True):
    pod: Pod
    changes: tuple[AdmissionChange, ...] = ()
    """In order. Defaults that every API server sets are not included."""


def admit(pod: Pod, context: AdmissionContext, kubelet: KubeletSpec | None = None) -> Admitted:
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
    except InputError as error:
        raise _forbidden(given, error) from None
    metadata, phrase = given.metadata, "; ".join(_set_by_limit_ranges(changes))
    if phrase:
        annotations = {**metadata.annotations, LIMIT_RANGER_ANNOTATION: f"LimitRanger plugin set: {phrase}"}
        metadata = replace(metadata, annotations=annotations)
    pod = replace(given, metadata=metadata, spec=with_canonical_amounts(spec))
    admitted = Admitted(pod=pod, changes=tuple(changes))
    _refuse(given, admitted, context, kubelet)
    return admitted


def _set_by_limit_ranges(changes: Iterable[AdmissionChange]) -> Iterator[str]:
    """Yield `cpu, memory request for container app`, the text of the plugin's annotation on the pod."""
    limits_by_kind: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        side, _, resource = change.item.partition(".")
        if change.plugin == LIMIT_RANGER:
            limits_by_kind.setdefault((change.container, side.removesuffix("s")), []).append(resource)
    for (container, side), resources in limits_by_kind.items():
        yield f"{', '.join(sorted(resources))} {side} for container {container}"


def terminating_refusal(pod: ObjectMeta, namespace: str) -> str:
    """Return the refusal for a namespace that is being deleted (NamespaceLifecycle)."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return f'pods "{pod.name or pod.generate_name}" is forbidden: {why}'


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
    change: Callable[[PodSpec], PodSpec]
    """Raises InputError to refuse the pod."""


def _steps(pod: Pod, context: AdmissionContext) -> Iterator[_Step]:
    namespace = pod.metadata.namespace
    annotations = context.namespace_annotations.get(namespace, {})
    for limit_range in context.limit_ranges.get(namespace, ()):
        yield _Step(
            plugin=LIMIT_RANGER,
            source=f"LimitRange {namespace}/{limit_range.metadata.name}",
            change=partial(apply_limit_range, limit_range=limit_range),
        )
    if POD_NODE_SELECTOR in context.enabled_plugins:
        yield _Step(
            plugin=POD_NODE_SELECTOR,
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
            plugin=PROJECT_NODE_ENVIRONMENT,
            source=f"Namespace {namespace}" if is_own else "Scheduler cluster",
            change=lambda spec: apply_node_selector(spec, selector, field, "project"),
        )
    yield _Step(plugin=PRIORITY, source="", change=lambda spec: _prioritized(spec, context.priority_classes))
    yield _Step(plugin=DEFAULT_TOLERATION_SECONDS, source="", change=_with_default_tolerations)
    if POD_TOLERATION_RESTRICTION in context.enabled_plugins:
        yield _Step(
            plugin=POD_TOLERATION_RESTRICTION,
            source=f"Namespace {namespace}",
            change=lambda spec: apply_default_tolerations(spec, annotations),
        )
    if EXTENDED_RESOURCE_TOLERATION in context.enabled_plugins:
        yield _Step(plugin=EXTENDED_RESOURCE_TOLERATION, source="", change=tolerate_extended_resources)
    if context.runtime_classes is not None:
        runtime_class = find_runtime_class(pod.spec, context.runtime_classes)
        if runtime_class is not None:
            yield _Step(
                plugin=RUNTIME_CLASS,
                source=f"RuntimeClass {runtime_class.metadata.name}",
                change=lambda spec: apply_runtime_class(spec, runtime_class),
            )


def _prioritized(spec: PodSpec, classes: Mapping[str, PriorityClass]) -> PodSpec:
    for conflict in priority_conflicts(spec, classes):
        raise conflict
    return resolve_priority(replace(spec, priority=None), classes)


def _with_default_tolerations(spec: PodSpec) -> PodSpec:
    """Pods tolerate temporary failures of their node (plugin/pkg/admission/defaulttolerationseconds)."""
    added = tuple(
        Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=_SECONDS)
        for key in _TOLERATED_FOR_A_WHILE
        if not any(
            toleration.key in ("", key) and toleration.effect in ("", NO_EXECUTE) for toleration in spec.tolerations
        )
    )
    return replace(spec, tolerations=spec.tolerations + added)


def _with_empty_dirs(spec: PodSpec, kubelet: KubeletSpec) -> PodSpec:
    """A volume without a source is an emptyDir (SetDefaults_Volume); only the manifest shows which volumes have
    none."""
    without = {
        volume.get("name") for volume in kubelet.volumes if all(volume[key] is None for key in volume if key != "name")
    }
    if not without:
        return spec
    volumes = tuple(
        replace(volume, empty_dir=EmptyDirVolumeSource()) if volume.name in without else volume
        for volume in spec.volumes
    )
    return replace(spec, volumes=volumes)


# --- validation


def _refuse(given: Pod, admitted: Admitted, context: AdmissionContext, kubelet: KubeletSpec | None) -> None:
    pod = admitted.pod
    invalid = aggregate(validate_pod(pod, context.validation))
    if invalid is not None:
        raise (invalid if aggregate(validate_pod(given, context.validation)) else _made_invalid(invalid, admitted))
    for limit_range in context.limit_ranges.get(pod.metadata.namespace, ()):
        refusal = limit_range_refusal(pod.spec, limit_range)
        if refusal is not None:
            raise _forbidden(pod, refusal)
    violation = None if context.pod_security is None else context.pod_security.refusal(pod, kubelet or KubeletSpec())
    if violation is not None:
        raise _forbidden(pod, InputError(violation))
    try:
        if context.runtime_classes is not None:
            check_overhead(pod.spec, find_runtime_class(pod.spec, context.runtime_classes))
        elif pod.spec.runtime_class_name is None:
            check_overhead(pod.spec, None)
    except InputError as error:
        raise _forbidden(pod, error) from None


def _forbidden(pod: Pod, refusal: InputError) -> NotAdmittedError:
    text = f'pods "{pod.metadata.name}" is forbidden: {refusal.message}'
    return NotAdmittedError(text, place=refusal.place, hint=refusal.hint)


def _made_invalid(invalid: InputError, admitted: Admitted) -> NotAdmittedError:
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

"""A Policy file: the predicates and priorities of a scheduler.

Upstream: pkg/scheduler/api/v1/types.go and validation.go, CreateFromConfig in pkg/scheduler/factory/factory.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import fields, replace

from kschedx.errors import ConfigError
from kschedx.framework.config.decoding import BaseExtender, ExtenderTLSConfig, decode, nearest_or_all, refuse, shown
from kschedx.kube import names
from kschedx.kube.names import is_extended_resource
from kschedx.kube.scalars import Int64
from kschedx.legacy.affinity_predicates import CheckServiceAffinity, ServiceAffinityArgument
from kschedx.legacy.interface import MAX_PRIORITY, Predicate, Priority, Provider
from kschedx.legacy.node_predicates import CheckNodeLabelPresence, LabelsPresence
from kschedx.legacy.priorities import (
    LabelPreference,
    NodeLabelPriority,
    RequestedToCapacityRatio,
    ServiceAntiAffinityArgument,
    Shape,
)
from kschedx.patterns import lazy_pattern

KIND = "Policy"
VERSION = "v1"
_DEFAULT_HARD_POD_AFFINITY_WEIGHT = 1
_NAME = lazy_pattern(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])")

TLS_FIELDS = {
    name[0].upper() + name[1:]: name for name in (field_info.encode_name for field_info in fields(ExtenderTLSConfig))
}
TLS_FIELDS["CAFile"], TLS_FIELDS["CAData"] = TLS_FIELDS.pop("CaFile"), TLS_FIELDS.pop("CaData")
"""Field names of rest.TLSClientConfig, which has none for JSON, with their names in later versions."""

_T = TypeVar("_T")


# --- the file as written


class _PredicateArgument(Struct, frozen=True, kw_only=True, rename="camel"):
    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresence | None = None


class _PredicatePolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    order: Int64 = 0  # files have it, and nothing reads it: the order is the scheduler's own
    argument: _PredicateArgument | None = None


class _PriorityArgument(Struct, frozen=True, kw_only=True, rename="camel"):
    service_anti_affinity: ServiceAntiAffinityArgument | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: Shape | None = None


class _PriorityPolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    weight: Int64 = 0
    argument: _PriorityArgument | None = None


class PolicyExtender(BaseExtender, frozen=True, kw_only=True, rename="camel"):
    enable_https: bool = False
    tls_config: Mapping[str, object] | None = None
    http_timeout: Int64 = 0  # nanoseconds


class PolicyDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str = KIND
    api_version: str = VERSION
    predicates: tuple[_PredicatePolicy, ...] | None = None
    priorities: tuple[_PriorityPolicy, ...] | None = None
    extenders: tuple[PolicyExtender, ...] = field(default=())
    hard_pod_affinity_symmetric_weight: Int64 = 0
    always_check_all_predicates: bool = False


# --- the resulting configuration


class SchedulingPolicy(Struct, frozen=True, kw_only=True):
    """A scheduler's configuration, with the default provider's part if the file omits that."""

    predicates: Mapping[str, tuple[type[Predicate], object]]  # name to class and argument, in the order of evaluation
    never_run: tuple[str, ...]  # predicates that the file names and that are missing from the order of evaluation
    priorities: Mapping[str, tuple[type[Priority], object]]
    weights: Mapping[str, int]
    extenders: tuple[PolicyExtender, ...]
    hard_pod_affinity_weight: int
    stops_at_first: bool  # whether a node's first failed predicate decides; otherwise all are reported


def load_policy(config: Mapping[str, object] | None, provider: Provider) -> SchedulingPolicy:
    """Return the configuration of `config`, a Policy as parsed from YAML or JSON; None is the default provider.

    Raises `ConfigError` with the field's path for what kube-scheduler would refuse.
    """
    document = _decode(config)
    if config is None or provider.fills_in_lists:
        document = _with_provider(document, provider)
    for error in _errors(document, provider):
        raise error
    weight = document.hard_pod_affinity_symmetric_weight if provider.reads_policy_settings else 0
    predicates = _predicates(document, provider)
    ordered = sorted(predicates) if provider.order is None else [name for name in provider.order if name in predicates]
    priorities, weights = _priorities(document, provider)
    return SchedulingPolicy(
        predicates={name: predicates[name] for name in ordered},
        never_run=tuple(sorted(predicates.keys() - set(ordered))),
        priorities=priorities,
        weights=weights,
        extenders=document.extenders,
        hard_pod_affinity_weight=weight or _DEFAULT_HARD_POD_AFFINITY_WEIGHT,
        stops_at_first=provider.order is not None
        and not (provider.reads_policy_settings and document.always_check_all_predicates),
    )


def _decode(config: Mapping[str, object] | None) -> PolicyDocument:
    if config is None:
        return PolicyDocument()
    if not isinstance(config, Mapping):
        raise refuse("", f"expected a {KIND}, found {shown(config)}")
    for path, wanted in (("kind", KIND), ("apiVersion", VERSION)):
        value = config.get(path)
        if value is not None and value != wanted:
            hint = "before the framework, a scheduler is configured by a Policy" if path == "kind" else ""
            raise refuse(path, f"expected {wanted}, found {shown(value)}", hint)
    return decode(config, PolicyDocument, "")


def _errors(document: PolicyDocument, provider: Provider) -> Iterator[ConfigError]:
    for i, priority in enumerate(document.priorities or ()):
        path = f"priorities[{i}].weight"
        if priority.weight <= 0:
            yield refuse(path, f"expected a positive weight, found {priority.weight}")
        if priority.weight >= provider.maximum_weight:
            yield refuse(path, f"expected a weight below {provider.maximum_weight}, found {priority.weight}")
    yield from _extender_errors(document)
    weight = document.hard_pod_affinity_symmetric_weight
    if provider.reads_policy_settings and not 0 <= weight <= 100:
        yield refuse(
            "hardPodAffinitySymmetricWeight",
            f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100",
        )


def _extender_errors(document: PolicyDocument) -> Iterator[ConfigError]:
    binders: list[int] = []
    managed: set[str] = set()
    for i, extender in enumerate(document.extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield refuse(f"{path}.weight", f"expected a positive weight, found {extender.weight}")
        yield from _tls_errors(extender.tls_config or {}, f"{path}.tlsConfig")
        if extender.bind_verb:
            binders.append(i)
        for j, resource in enumerate(extender.managed_resources):
            at = f"{path}.managedResources[{j}].name"
            if any(names.label_key_errors(resource.name)) or not is_extended_resource(resource.name):
                yield refuse(at, f"expected an extended resource, found {shown(resource.name)}")
            if resource.name in managed:
                yield refuse(at, f"duplicate extender managed resource name {shown(resource.name)}")
            managed.add(resource.name)
    if len(binders) > 1:
        yield refuse(f"extenders[{binders[1]}].bindVerb", f"only one extender can implement bind, found {len(binders)}")


def _tls_errors(config: Mapping[str, object], path: str) -> Iterator[ConfigError]:
    """Yield errors; a field may have Go's name or the later one."""
    for key, value in config.items():
        name = TLS_FIELDS.get(key, key)
        if name not in TLS_FIELDS.values():
            known = (*TLS_FIELDS, *TLS_FIELDS.values())
            yield refuse(f"{path}.{key}", f"unknown field {shown(key)}", nearest_or_all(key, known))
            continue
        try:
            decode({name: value}, ExtenderTLSConfig, path)
        except ConfigError as error:
            yield refuse(f"{path}.{key}", error.message)


# --- predicates and priorities by name


def _with_provider(document: PolicyDocument, provider: Provider) -> PolicyDocument:
    """Replace absent lists with those of the default provider."""
    if document.predicates is None:
        document = replace(
            document, predicates=tuple(_PredicatePolicy(name=name) for name in provider.default_predicates)
        )
    if document.priorities is None:
        weights = provider.default_priorities.items()
        document = replace(
            document, priorities=tuple(_PriorityPolicy(name=name, weight=weight) for name, weight in weights)
        )
    return document


def _predicates(document: PolicyDocument, provider: Provider) -> dict[str, tuple[type[Predicate], object]]:
    chosen: dict[str, tuple[type[Predicate], object]] = {}
    for i, written in enumerate(document.predicates or ()):
        chosen[written.name] = _predicate(written, f"predicates[{i}]", provider)
    for name in provider.mandatory_predicates:
        chosen.setdefault(name, (provider.predicates[name], None))
    return chosen


def _predicate(written: _PredicatePolicy, path: str, provider: Provider) -> tuple[type[Predicate], object]:
    if written.argument is None:
        return _registered_class(written.name, provider.predicates, "predicate", path), None
    _check_name(written.name, path)
    affinity, presence = written.argument.service_affinity, written.argument.labels_presence
    if (affinity is None) == (presence is None):
        raise refuse(f"{path}.argument", "expected exactly one of serviceAffinity and labelsPresence")
    return (CheckServiceAffinity, affinity) if affinity is not None else (CheckNodeLabelPresence, presence)


def _priorities(
    document: PolicyDocument, provider: Provider
) -> tuple[dict[str, tuple[type[Priority], object]], dict[str, int]]:
    """Return the priorities and their weights, in the order of their names."""
    chosen: dict[str, tuple[type[Priority], object]] = {}
    weights: dict[str, int] = {}
    for i, written in enumerate(document.priorities or ()):
        chosen[written.name] = _priority(written, f"priorities[{i}]", provider)
        weights[written.name] = written.weight
    return {name: chosen[name] for name in sorted(chosen)}, {name: weights[name] for name in sorted(chosen)}


def _priority(written: _PriorityPolicy, path: str, provider: Provider) -> tuple[type[Priority], object]:
    argument = written.argument
    if argument is None:
        return _registered_class(written.name, provider.priorities, "priority", path), None
    _check_name(written.name, path)
    shape = argument.requested_to_capacity_ratio_arguments
    if shape is not None and not provider.has_ratio_argument:
        raise refuse(f"{path}.argument", 'unknown field "requestedToCapacityRatioArguments"')
    given = [item for item in (argument.service_anti_affinity, argument.label_preference, shape) if item is not None]
    if len(given) != 1:
        known = "serviceAntiAffinity, labelPreference" + (
            ", requestedToCapacityRatioArguments" * provider.has_ratio_argument
        )
        raise refuse(f"{path}.argument", f"expected exactly one of {known}")
    if shape is not None:
        for error in _shape_errors(shape, f"{path}.argument.requestedToCapacityRatioArguments.shape"):
            raise error
        return RequestedToCapacityRatio, shape
    if argument.label_preference is not None:
        return NodeLabelPriority, argument.label_preference
    return provider.service_anti_affinity, argument.service_anti_affinity


def _registered_class(name: str, known: Mapping[str, type[_T]], what: str, path: str) -> type[_T]:
    known_class = known.get(name)
    if known_class is None:
        raise refuse(f"{path}.name", f"{what} {shown(name)} does not exist", nearest_or_all(name, known))
    return known_class


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise refuse(f"{path}.name", f"expected letters, digits and inner hyphens, at least two, found {shown(name)}")


def _shape_errors(shape: Shape, path: str) -> Iterator[ConfigError]:
    if not shape.shape:
        yield refuse(path, "at least one point must be specified")
    for i, point in enumerate(shape.shape):
        if i and shape.shape[i - 1].utilization >= point.utilization:
            yield refuse(f"{path}[{i}].utilization", "utilization values must be sorted and differ")
        if not 0 <= point.utilization <= 100:
            yield refuse(f"{path}[{i}].utilization", f"expected 0 to 100, found {point.utilization}")
        if not 0 <= point.score <= MAX_PRIORITY:
            yield refuse(f"{path}[{i}].score", f"expected 0 to {MAX_PRIORITY}, found {point.score}")

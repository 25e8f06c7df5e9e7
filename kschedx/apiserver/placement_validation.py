"""The API server's validation of fields about placement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kschedx.errors import InputError, join_fields
from kschedx.kube.field_errors import (
    DEFAULT_OPTIONS,
    Errors,
    ValidationOptions,
    as_json,
    duplicate,
    forbidden_error,
    invalid,
    not_supported_error,
    one_of,
    quote_go,
    required_error,
    syntax,
)
from kschedx.kube.names import dns_label_errors, dns_subdomain_errors, label_key_errors, label_value_errors
from kschedx.kube.scalars import parse_int64
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    SelectorRequirement,
)
from kschedx.kube.types import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    Toleration,
    TopologySpreadConstraint,
)

# The API server's validation of selectors: each function yields errors in its order and words. Upstream:
# apimachinery/pkg/apis/meta/v1/validation and pkg/apis/core/validation. A valid selector compiles.

_VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"


def validate_labels(labels: Mapping[str, str], field: str) -> Iterator[InputError]:
    """Validate an object's labels, matchLabels, or spec.nodeSelector."""
    for key, value in sorted(labels.items()):
        yield from _label_key(key, field)
        for message in label_value_errors(value):
            yield invalid(field, quote_go(value), message)


def validate_label_selector(selector: LabelSelector | None, field: str) -> Iterator[InputError]:
    """An absent selector is valid."""
    if selector is None:
        return
    yield from validate_labels(selector.match_labels, join_fields(field, "matchLabels"))
    for index, requirement in enumerate(selector.match_expressions):
        where = join_fields(field, f"matchExpressions[{index}]")
        yield from _operator_and_count(requirement, where, allows_comparison=False)
        yield from _label_key(requirement.key, f"{where}.key")
        yield from _label_values(requirement.values, f"{where}.values")


def validate_node_selector(selector: NodeSelector, field: str) -> Iterator[InputError]:
    """Validate required node affinity or a volume's node affinity: at least one term, each of which may be empty."""
    terms_field = join_fields(field, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        yield required_error(terms_field, "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from _node_selector_term(term, f"{terms_field}[{index}]", checks_values=True)


def validate_preferred_terms(terms: Iterable[PreferredSchedulingTerm], field: str) -> Iterator[InputError]:
    """Validate preferred node affinity. As in the API server, label values are not validated here; compiling does."""
    for index, term in enumerate(terms):
        where = f"{field}[{index}]"
        if not 0 < term.weight <= 100:
            yield invalid(f"{where}.weight", str(term.weight), "must be in the range 1-100")
        yield from _node_selector_term(term.preference, f"{where}.preference", checks_values=False)


def _node_selector_term(term: NodeSelectorTerm, field: str, *, checks_values: bool) -> Iterator[InputError]:
    for index, requirement in enumerate(term.match_expressions):
        where = f"{field}.matchExpressions[{index}]"
        yield from _operator_and_count(requirement, where, allows_comparison=True)
        yield from _label_key(requirement.key, f"{where}.key")
        if checks_values:
            yield from _label_values(requirement.values, f"{where}.values")
    for index, requirement in enumerate(term.match_fields):
        yield from _node_field_requirement(requirement, f"{field}.matchFields[{index}]")


def _node_field_requirement(requirement: SelectorRequirement, field: str) -> Iterator[InputError]:
    match requirement.operator:
        case "In" | "NotIn":
            if len(requirement.values) != 1:
                detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                yield required_error(f"{field}.values", detail)
        case unknown:
            yield invalid(f"{field}.operator", quote_go(unknown), _BAD_OPERATOR)
    if requirement.key != NODE_NAME_FIELD:
        yield invalid(f"{field}.key", quote_go(requirement.key), "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for message in dns_subdomain_errors(value):
            yield invalid(f"{field}.values[{index}]", quote_go(value), message)


def _operator_and_count(
    requirement: SelectorRequirement, field: str, *, allows_comparison: bool
) -> Iterator[InputError]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required_error(f"{field}.values", _VALUES_NEEDED)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden_error(f"{field}.values", _NO_VALUES)
        case "Gt" | "Lt" if allows_comparison:
            if len(requirement.values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required_error(f"{field}.values", detail)
        case unknown:
            yield invalid(f"{field}.operator", quote_go(unknown), _BAD_OPERATOR)


def _label_key(key: str, field: str) -> Iterator[InputError]:
    for message in label_key_errors(key):
        yield invalid(field, quote_go(key), message)


def _label_values(values: tuple[str, ...], field: str) -> Iterator[InputError]:
    for index, value in enumerate(values):
        for message in label_value_errors(value):
            yield invalid(f"{field}[{index}]", quote_go(value), message)


# The API server's validation of fields about placement; `validation` has the rest of a pod.

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS = ("Equal", "Exists", "Lt", "Gt")
SPREAD_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
NODE_POLICIES = ("Honor", "Ignore")


def validate_affinity_selectors(affinity: Affinity, field: str) -> Errors:
    yield from _node_affinity(affinity.node_affinity, f"{field}.nodeAffinity")
    for name, side in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if side is None:
            continue
        for index, term in enumerate(side.required_during_scheduling_ignored_during_execution):
            yield from _term_selectors(term, f"{field}.{name}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
        for index, weighted in enumerate(side.preferred_during_scheduling_ignored_during_execution):
            where = f"{field}.{name}.preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm"
            yield from _term_selectors(weighted.pod_affinity_term, where)


def validate_affinity(affinity: Affinity, field: str) -> Errors:
    yield from _node_affinity(affinity.node_affinity, f"{field}.nodeAffinity")
    yield from _pod_affinity(affinity.pod_affinity, f"{field}.podAffinity")
    yield from _pod_affinity(affinity.pod_anti_affinity, f"{field}.podAntiAffinity")


def _node_affinity(affinity: NodeAffinity | None, field: str) -> Errors:
    if affinity is None:
        return
    terms = affinity.required_during_scheduling_ignored_during_execution
    if terms is not None:
        yield from validate_node_selector(terms, f"{field}.requiredDuringSchedulingIgnoredDuringExecution")
    yield from validate_preferred_terms(
        affinity.preferred_during_scheduling_ignored_during_execution,
        f"{field}.preferredDuringSchedulingIgnoredDuringExecution",
    )


def _pod_affinity(affinity: PodAffinity | None, field: str) -> Errors:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _pod_affinity_term(term, f"{field}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{field}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 0 < weighted.weight <= 100:
            yield invalid(f"{where}.weight", str(weighted.weight), "must be in the range 1-100")
        yield from _pod_affinity_term(weighted.pod_affinity_term, f"{where}.podAffinityTerm")


def _term_selectors(term: PodAffinityTerm, field: str) -> Errors:
    yield from validate_label_selector(term.label_selector, f"{field}.labelSelector")
    yield from validate_label_selector(term.namespace_selector, f"{field}.namespaceSelector")


def _pod_affinity_term(term: PodAffinityTerm, field: str) -> Errors:
    yield from _term_selectors(term, field)
    for namespace in term.namespaces:
        yield from syntax(dns_label_errors, namespace, f"{field}.namespace")
    yield from _label_keys(field, term.match_label_keys, term.mismatch_label_keys, term.label_selector)
    if not term.topology_key:
        yield required_error(f"{field}.topologyKey", "can not be empty")
    yield from syntax(label_key_errors, term.topology_key, f"{field}.topologyKey")


def _label_keys(
    field: str, match: tuple[str, ...], mismatch: tuple[str, ...], selector: LabelSelector | None
) -> Errors:
    """Validate matchLabelKeys and mismatchLabelKeys of a term after they are merged into its selector."""
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden_error(f"{field}.{name}", "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from syntax(label_key_errors, key, f"{field}.{name}[{index}]")
    if selector is not None:
        places = {key: index for index, key in enumerate(match)}
        seen = set(selector.match_labels)
        for requirement in selector.match_expressions:
            key = requirement.key
            if key in places and key in seen:
                # one occurrence is the merged key itself; a second one is the user's
                yield invalid(
                    f"{field}[{places[key]}]", quote_go(key), "exists in both matchLabelKeys and labelSelector"
                )
            seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{field}.matchLabelKeys[{index}]", quote_go(key), detail)


def validate_spread_constraints(constraints: tuple[TopologySpreadConstraint, ...], field: str) -> Errors:
    last = {
        (constraint.topology_key, constraint.when_unsatisfiable): index for index, constraint in enumerate(constraints)
    }
    for index, constraint in enumerate(constraints):
        where = f"{field}[{index}]"
        action = constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield invalid(f"{where}.maxSkew", str(constraint.max_skew), "must be greater than zero")
        if not constraint.topology_key:
            yield required_error(f"{where}.topologyKey", "can not be empty")
        if action not in SPREAD_ACTIONS:
            yield not_supported_error(f"{where}.whenUnsatisfiable", as_json(action), SPREAD_ACTIONS)
        if last[constraint.topology_key, action] > index:
            pair = f"{{{constraint.topology_key}, {action}}}"
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", quote_go(pair))
        if constraint.min_domains is not None:
            shown = str(constraint.min_domains)
            if constraint.min_domains <= 0:
                yield invalid(f"{where}.minDomains", shown, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(f"{where}.minDomains", shown, detail)
        for name, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None and policy not in NODE_POLICIES:
                yield not_supported_error(f"{where}.{name}", as_json(policy), NODE_POLICIES)
        yield from _label_keys(where, constraint.match_label_keys, (), constraint.label_selector)
        yield from validate_label_selector(constraint.label_selector, f"{where}.labelSelector")


def validate_scheduling_gates(gates: tuple[PodSchedulingGate, ...], field: str) -> Errors:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        yield from syntax(label_key_errors, gate.name, f"{field}[{index}]")
        if gate.name in seen:
            yield duplicate(f"{field}[{index}]", quote_go(gate.name))
        seen.add(gate.name)


def validate_tolerations(
    tolerations: tuple[Toleration, ...], field: str, options: ValidationOptions = DEFAULT_OPTIONS
) -> Errors:
    """Validate the tolerations of a pod or a RuntimeClass."""
    for index, toleration in enumerate(tolerations):
        where = f"{field}[{index}]"
        if toleration.key:
            yield from syntax(label_key_errors, toleration.key, f"{where}.key")
        elif toleration.operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", as_json(toleration.operator), detail)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", as_json(toleration.effect), detail)
        yield from _toleration_value(toleration, where, options)
        if toleration.effect:
            yield from one_of(toleration.effect, EFFECTS, f"{where}.effect")


def _toleration_value(toleration: Toleration, field: str, options: ValidationOptions) -> Errors:
    value = toleration.value
    match toleration.operator:
        case "Equal" | "":
            if messages := list(label_value_errors(value)):
                yield invalid(f"{field}.operator", quote_go(value), ";".join(messages))
        case "Exists":
            if value:
                yield invalid(f"{field}.operator", quote_go(value), "value must be empty when `operator` is 'Exists'")
        case ("Lt" | "Gt") as operator:
            if not options.toleration_comparison_operators:
                yield not_supported_error(f"{field}.operator", as_json(operator), OPERATORS)
                return
            if not value:
                yield invalid(f"{field}.value", quote_go(value), "must be non-empty")
            elif not re.fullmatch("0|-?[1-9][0-9]*", value):
                yield invalid(f"{field}.value", quote_go(value), "must be a valid decimal integer in canonical form")
            if parse_int64(value) is None:
                reason = "value out of range" if re.fullmatch("[+-]?[0-9]+", value) else "invalid syntax"
                yield invalid(
                    f"{field}.value", quote_go(value), f"strconv.ParseInt: parsing {quote_go(value)}: {reason}"
                )
        case unknown:
            yield not_supported_error(f"{field}.operator", as_json(unknown), ("Equal", "Exists"))

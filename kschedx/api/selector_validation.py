"""What the API server refuses in selectors: each function yields errors in its order and words, none if all is well.

Upstream: apimachinery/pkg/apis/meta/v1/validation and pkg/apis/core/validation. A selector that passes here compiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kschedx.api.field_errors import forbidden, invalid, quoted, required
from kschedx.api.names import dns_subdomain_errors, label_key_errors, label_value_errors
from kschedx.api.selectors import (
    NODE_NAME_FIELD,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kschedx.errors import InputError, join_fields

_VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"


def validate_labels(labels: Mapping[str, str], field: str) -> Iterator[InputError]:
    """Labels of an object, matchLabels and spec.nodeSelector."""
    for key, value in sorted(labels.items()):
        yield from _label_key(key, field)
        for message in label_value_errors(value):
            yield invalid(field, quoted(value), message)


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
    """Required node affinity and a volume's node affinity: at least one term, each of which may be empty."""
    terms_field = join_fields(field, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        yield required(terms_field, "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from _node_selector_term(term, f"{terms_field}[{index}]", checks_values=True)


def validate_preferred_terms(terms: Iterable[PreferredSchedulingTerm], field: str) -> Iterator[InputError]:
    """Preferred node affinity. Label values are left unchecked here, as in the API server; compiling checks them."""
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


def _node_field_requirement(requirement: NodeSelectorRequirement, field: str) -> Iterator[InputError]:
    match requirement.operator:
        case "In" | "NotIn":
            if len(requirement.values) != 1:
                detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                yield required(f"{field}.values", detail)
        case unknown:
            yield invalid(f"{field}.operator", quoted(unknown), _BAD_OPERATOR)
    if requirement.key != NODE_NAME_FIELD:
        yield invalid(f"{field}.key", quoted(requirement.key), "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for message in dns_subdomain_errors(value):
            yield invalid(f"{field}.values[{index}]", quoted(value), message)


def _operator_and_count(
    requirement: LabelSelectorRequirement | NodeSelectorRequirement, field: str, *, allows_comparison: bool
) -> Iterator[InputError]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(f"{field}.values", _VALUES_NEEDED)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(f"{field}.values", _NO_VALUES)
        case "Gt" | "Lt" if allows_comparison:
            if len(requirement.values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{field}.values", detail)
        case unknown:
            yield invalid(f"{field}.operator", quoted(unknown), _BAD_OPERATOR)


def _label_key(key: str, field: str) -> Iterator[InputError]:
    for message in label_key_errors(key):
        yield invalid(field, quoted(key), message)


def _label_values(values: tuple[str, ...], field: str) -> Iterator[InputError]:
    for index, value in enumerate(values):
        for message in label_value_errors(value):
            yield invalid(f"{field}[{index}]", quoted(value), message)

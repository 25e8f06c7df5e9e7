"""Label selectors and node selectors: the records, and their compiled forms that match and explain.

Upstream: metav1.LabelSelectorAsSelector, apimachinery/pkg/labels/selector.go, and
component-helpers/scheduling/corev1/nodeaffinity. The API server's validation is in `apiserver/placement_validation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum, unique
from typing import assert_never

from msgspec import Struct

from kschedx.errors import InputError, Place, join_fields
from kschedx.kube.field_errors import aggregate, as_json, invalid, not_supported_error, quote_go
from kschedx.kube.names import label_key_errors, label_value_errors
from kschedx.kube.scalars import Int32, parse_int64
from kschedx.patterns import lazy_pattern

NODE_NAME_FIELD = "metadata.name"  # the only node field that matchFields supports


# --- records


class SelectorRequirement(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A requirement of a LabelSelector, or of a NodeSelectorTerm."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[SelectorRequirement, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the term is empty, so that it matches no node."""
        return not self.match_expressions and not self.match_fields


class NodeSelector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, cache_hash=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


# --- requirements


@unique
class Operator(StrEnum):
    EQUALS = "="  # the operator of a map of labels
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


_FIELD_OPERATORS = (Operator.IN, Operator.NOT_IN)
_LABEL_OPERATORS = (*_FIELD_OPERATORS, Operator.EXISTS, Operator.DOES_NOT_EXIST)
NODE_OPERATORS = (*_LABEL_OPERATORS, Operator.GT, Operator.LT)


class Requirement(Struct, frozen=True, kw_only=True):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        actual = labels.get(self.key)
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return actual is not None and actual in self.values
            case Operator.NOT_IN:
                return actual is None or actual not in self.values
            case Operator.EXISTS:
                return actual is not None
            case Operator.DOES_NOT_EXIST:
                return actual is None
            case Operator.GT | Operator.LT:
                number = None if actual is None else parse_int64(actual)
                bound = parse_int64(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator is Operator.GT else number < bound
            case _:
                assert_never(self.operator)

    def explain(self, labels: Mapping[str, str]) -> RequirementResult:
        return RequirementResult(requirement=self, matched=self.matches(labels), actual=labels.get(self.key))

    def __str__(self) -> str:
        """`zone In [eu-1a, eu-1b]`, `zone=eu-1a`, `zone Exists`, `cores Gt 8`."""
        match self.operator:
            case Operator.EQUALS:
                return f"{self.key}={self.values[0]}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator} [{', '.join(self.values)}]"
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                return f"{self.key} {self.operator}"
            case Operator.GT | Operator.LT:
                return f"{self.key} {self.operator} {self.values[0]}"
            case _:
                assert_never(self.operator)


class RequirementResult(Struct, frozen=True, kw_only=True):
    """The result of a requirement for one set of labels."""

    requirement: Requirement
    matched: bool
    actual: str | None  # None if the label is absent


def _requirement_errors(requirement: Requirement, field: str) -> Iterator[InputError]:
    """Yield the errors of labels.NewRequirement."""
    key, values = requirement.key, requirement.values
    values_field = join_fields(field, "values")
    if key_errors := list(label_key_errors(key)):
        yield invalid(join_fields(field, "key"), quote_go(key), "; ".join(key_errors))
    match requirement.operator:
        case Operator.EQUALS:
            pass
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield invalid(values_field, as_json(values), "for 'in', 'notin' operators, values set can't be empty")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield invalid(values_field, as_json(values), "values set must be empty for exists and does not exist")
        case Operator.GT | Operator.LT:
            if len(values) != 1:
                detail = "for 'Gt', 'Lt' operators, exactly one value is required"
                yield invalid(values_field, as_json(values), detail)
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield invalid(f"{values_field}[{index}]", quote_go(value), detail)
        case _:
            assert_never(requirement.operator)
    for index, value in enumerate(values):
        if value_errors := list(label_value_errors(value)):
            yield invalid(f"{values_field}[{index}][{key}]", quote_go(value), "; ".join(value_errors))


# --- label selectors


class Selector(Struct, frozen=True, kw_only=True):
    """A compiled label selector: all requirements must match. `EVERYTHING` has none; `NOTHING` matches no labels."""

    requirements: tuple[Requirement, ...] = ()
    selectable: bool = True  # False only for `NOTHING`

    @property
    def empty(self) -> bool:
        """Whether it restricts nothing."""
        return self.selectable and not self.requirements

    @property
    def one_of_labels(self) -> tuple[tuple[str, str], ...]:
        """Labels of which matching labels have one; empty if no requirement lists any."""
        for requirement in self.requirements:
            if requirement.operator in (Operator.IN, Operator.EQUALS):
                return tuple((requirement.key, value) for value in requirement.values)
        return ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.selectable and all(requirement.matches(labels) for requirement in self.requirements)

    def explain(self, labels: Mapping[str, str]) -> tuple[RequirementResult, ...]:
        return tuple(requirement.explain(labels) for requirement in self.requirements)

    def add(self, requirements: Iterable[Requirement]) -> Selector:
        """Return this selector with more requirements; `NOTHING` is unchanged."""
        if not self.selectable:
            return self
        return Selector(requirements=(*self.requirements, *requirements))

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector(selectable=False)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """metav1.LabelSelectorAsSelector: an absent selector matches nothing, an empty one everything. Raises InputError
    with upstream's text for the first invalid requirement."""
    if selector is None:
        return NOTHING
    requirements = [_check(requirement) for requirement in _equalities(selector.match_labels)]
    for expression in selector.match_expressions:
        if expression.operator not in _LABEL_OPERATORS:
            raise InputError(f"{quote_go(expression.operator)} is not a valid label selector operator")
        operator = Operator(expression.operator)
        requirements.append(_check(Requirement(key=expression.key, operator=operator, values=expression.values)))
    return Selector(requirements=tuple(requirements))


def _check(requirement: Requirement) -> Requirement:
    if error := aggregate(_requirement_errors(requirement, "")):
        raise error
    return requirement


def selector_from_set(labels: Mapping[str, str] | None) -> Selector:
    """labels.SelectorFromSet and its "validated" variants: every label must be equal; nothing is validated. No labels
    match everything. A Service or ReplicationController without a selector selects nothing, so callers have to skip
    it."""
    return Selector(requirements=tuple(_equalities(labels or {})))


def _equalities(labels: Mapping[str, str]) -> Iterator[Requirement]:
    for key in sorted(labels):
        yield Requirement(key=key, operator=Operator.EQUALS, values=(labels[key],))


# --- node selectors


def terms_of(selector: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    """Return the terms of a node selector, any of which suffices."""
    return () if selector is None else selector.node_selector_terms


class CompiledTerm(Struct, frozen=True, kw_only=True):
    """A node selector term that is not empty. With errors, it matches no node."""

    index: int  # the position among all terms, from 0
    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    errors: tuple[InputError, ...]  # upstream's errors; a requirement with an error is in neither list

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return whether all expressions match the labels and all fields the name. A node without a name matches every
        field."""
        return (
            not self.errors
            and all(requirement.matches(labels) for requirement in self.expressions)
            and (not node_name or all(_evaluate_field(field, node_name).matched for field in self.fields))
        )

    def explain(self, labels: Mapping[str, str], node_name: str) -> tuple[RequirementResult, ...]:
        """Return every valid requirement, expressions first, with the node's value."""
        expressions = tuple(requirement.explain(labels) for requirement in self.expressions)
        return expressions + tuple(_evaluate_field(field, node_name) for field in self.fields)


def _evaluate_field(requirement: Requirement, node_name: str) -> RequirementResult:
    """Evaluate a requirement on a node's field. Fields other than the name have the empty value."""
    return requirement.explain({requirement.key: node_name if requirement.key == NODE_NAME_FIELD else ""})


class CompiledNodeSelector(Struct, frozen=True, kw_only=True):
    """Terms of which one must match, without the empty terms.

    Errors are lazy, as in upstream's LazyErrorNodeSelector: their own term matches nothing, and a caller may read them
    if no term matches. kube-scheduler's NodeAffinity and PodTopologySpread ignore them.
    """

    terms: tuple[CompiledTerm, ...]

    @property
    def errors(self) -> tuple[InputError, ...]:
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        return any(term.matches(labels, node_name) for term in self.terms)

    def check(self) -> CompiledNodeSelector:
        """Return the selector as NewNodeSelector does. Raises InputError with the aggregate of all errors."""
        if error := aggregate(self.errors):
            raise error
        return self


class _WeightedTerm(Struct, frozen=True, kw_only=True):
    weight: int
    term: CompiledTerm


class PreferredSchedulingTerms(Struct, frozen=True, kw_only=True):
    """Terms that add their weight if they match."""

    terms: tuple[_WeightedTerm, ...]

    def score(self, labels: Mapping[str, str], node_name: str) -> int:
        return sum(weighted.weight for weighted in self.terms if weighted.term.matches(labels, node_name))


class RequiredNodeAffinity(Struct, frozen=True, kw_only=True):
    """A pod's nodeSelector and required node affinity; both must match, and an absent one matches."""

    label_selector: Selector | None
    node_selector: CompiledNodeSelector | None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        if self.label_selector is not None and not self.label_selector.matches(labels):
            return False
        return self.node_selector is None or self.node_selector.matches(labels, node_name)


def compile_node_selector(selector: NodeSelector, *, field: str = "") -> CompiledNodeSelector:
    """NewLazyErrorNodeSelector; `.check()` for NewNodeSelector. `field` is the selector's own path, for errors."""
    path = join_fields(field, "nodeSelectorTerms")
    return CompiledNodeSelector(
        terms=tuple(
            _compile_term(term, index, f"{path}[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not term.is_empty
        )
    )


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm], *, field: str = "") -> PreferredSchedulingTerms:
    """NewPreferredSchedulingTerms: empty terms and terms with weight 0 are skipped without validation. Raises
    InputError with the aggregate of the others' errors, whose paths lack "preference" as upstream's do."""
    compiled = tuple(
        _WeightedTerm(weight=term.weight, term=_compile_term(term.preference, index, f"{field}[{index}]"))
        for index, term in enumerate(terms)
        if term.weight != 0 and not term.preference.is_empty
    )
    if error := aggregate(error for weighted in compiled for error in weighted.term.errors):
        raise error
    return PreferredSchedulingTerms(terms=compiled)


def required_node_affinity(
    node_selector: Mapping[str, str] | None, affinity_required: NodeSelector | None
) -> RequiredNodeAffinity:
    """GetRequiredNodeAffinity of spec.nodeSelector and requiredDuringSchedulingIgnoredDuringExecution."""
    return RequiredNodeAffinity(
        label_selector=selector_from_set(node_selector) if node_selector else None,
        node_selector=compile_node_selector(affinity_required) if affinity_required is not None else None,
    )


def _compile_term(term: NodeSelectorTerm, index: int, path: str) -> CompiledTerm:
    errors: list[InputError] = []
    expressions: list[Requirement] = []
    for position, expression in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{position}]"
        if expression.operator not in NODE_OPERATORS:
            errors.append(not_supported_error(f"{where}.operator", as_json(expression.operator), NODE_OPERATORS))
            continue
        operator = Operator(expression.operator)
        requirement = Requirement(key=expression.key, operator=operator, values=expression.values)
        wrong = list(_requirement_errors(requirement, where))
        errors += wrong
        if not wrong:
            expressions.append(requirement)
    fields: list[Requirement] = []
    for position, expression in enumerate(term.match_fields):
        where = f"{path}.matchFields[{position}]"
        if expression.operator not in _FIELD_OPERATORS:
            errors.append(not_supported_error(f"{where}.operator", as_json(expression.operator), _FIELD_OPERATORS))
        elif len(expression.values) != 1:
            errors.append(invalid(f"{where}.values", as_json(expression.values), "must have one element"))
        else:
            operator = Operator(expression.operator)
            fields.append(Requirement(key=expression.key, operator=operator, values=expression.values))
    return CompiledTerm(index=index, expressions=tuple(expressions), fields=tuple(fields), errors=tuple(errors))


# --- label selectors in the syntax of kubectl's -l: `app=web,tier in (front, back),!canary`

_TOKEN = lazy_pattern(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)")
_QUERY_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.EQUALS,
    "!=": Operator.NOT_IN,
    ">": Operator.GT,
    "<": Operator.LT,
}
_ALLOWED = "allowed: key, !key, key=value, key!=value, key in (a, b), key notin (a, b), key>1, key<1"


def parse_label_query(text: str) -> Selector:
    """Parse requirements, all of which must match. Raises `InputError` with the message of labels.Parse."""
    try:
        return Selector(requirements=tuple(_QueryParser(text).requirements()))
    except InputError as error:
        raise InputError(str(error), place=Place(object=f'label selector "{text}"'), hint=_ALLOWED) from None


class _QueryParser:
    """Parse of staging/src/k8s.io/apimachinery/pkg/labels/selector.go, with its error texts."""

    def __init__(self, text: str) -> None:
        self._tokens = iter(_TOKEN.findall(text))
        self._token: str = next(self._tokens, "")  # the next token; empty at the end

    def requirements(self) -> Iterator[Requirement]:
        self._expect(self._is_start or not self._token, "!, identifier, or 'end of string'")
        while self._token:
            try:
                requirement = self._requirement()
            except InputError as error:
                raise InputError(f"unable to parse requirement: {error}") from None
            yield requirement
            self._expect(self._token in (",", ""), "',' or 'end of string'")
            if self._take():
                self._expect(self._is_start, "identifier after ','")

    @property
    def _is_identifier(self) -> bool:
        """Whether the next token is a key or a value; `in` can be one too."""
        return bool(self._token) and not set(self._token) & set("=!(),<>")

    @property
    def _is_start(self) -> bool:
        return self._is_identifier or self._token == "!"

    def _take(self) -> str:
        token, self._token = self._token, next(self._tokens, "")
        return token

    def _expect(self, is_expected: bool, expected: str) -> None:
        if not is_expected:
            raise InputError(f"found '{self._token}', expected: {expected}")

    def _requirement(self) -> Requirement:
        is_negated = self._token == "!"
        if is_negated:
            self._take()
        self._expect(self._is_identifier, "identifier")
        key = self._take()
        if errors := list(label_key_errors(key)):
            raise invalid("<nil>", quote_go(key), "; ".join(errors))
        if is_negated or self._token in ("", ","):
            return Requirement(key=key, operator=Operator.DOES_NOT_EXIST if is_negated else Operator.EXISTS)
        self._expect(self._token in _QUERY_OPERATORS, "in, notin, =, ==, !=, gt, lt")
        symbol = self._take()
        values = self._values() if symbol in ("in", "notin") else [self._value()]
        return _check(Requirement(key=key, operator=_QUERY_OPERATORS[symbol], values=tuple(sorted(set(values)))))

    def _value(self) -> str:
        if self._token in ("", ","):
            return ""
        self._expect(self._is_identifier, "identifier")
        return self._take()

    def _values(self) -> list[str]:
        if self._token != "(":
            raise InputError(f"found '{self._token}' expected: '('")
        self._take()
        self._expect(self._is_identifier or self._token in (",", ")"), "',', ')' or identifier")
        values: list[str] = []
        while self._token != ")":
            if self._is_identifier:
                values.append(self._take())
                self._expect(self._token in (",", ")"), "',' or ')'")
                continue
            self._expect(self._token == ",", "',', or identifier")
            self._take()
            if not values or self._token in (",", ")"):
                values.append("")
            if self._token == ",":
                self._take()
                self._expect(self._token != ")", "',', or identifier")
        self._take()
        return values or [""]

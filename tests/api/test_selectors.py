"""Label and node selectors: matches, explanations, and errors with upstream's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.apiserver.placement_validation import (
    validate_label_selector,
    validate_labels,
    validate_node_selector,
    validate_preferred_terms,
)
from kschedx.errors import InputError
from kschedx.kube.names import dns_label_errors, dns_subdomain_errors, label_key_errors, label_value_errors
from kschedx.kube.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PreferredSchedulingTerm,
    Requirement,
    SelectorRequirement,
    compile_node_selector,
    compile_preferred_terms,
    compile_selector,
    required_node_affinity,
    selector_from_set,
)

LABEL_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def label_term(key: str, operator: str, *values: str) -> SelectorRequirement:
    return SelectorRequirement(key=key, operator=operator, values=values)


def node_term(key: str, operator: str, *values: str) -> SelectorRequirement:
    return SelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: SelectorRequirement, fields: tuple[SelectorRequirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def node_selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


# --- requirements


@pytest.mark.parametrize(
    ("operator", "values", "actual", "matched"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a", "b"), "c", False),
        ("In", ("a",), None, False),
        ("In", ("",), "", True),
        ("In", ("",), None, False),
        ("NotIn", ("a", "b"), "c", True),
        ("NotIn", ("a", "b"), "a", False),
        ("NotIn", ("a",), None, True),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "", False),
        ("Gt", ("8",), "9", True),
        ("Gt", ("8",), "8", False),
        ("Gt", ("8",), "10", True),
        ("Gt", ("8",), "+9", True),
        ("Gt", ("8",), "009", True),
        ("Gt", ("8",), None, False),
        ("Gt", ("8",), "", False),
        ("Gt", ("8",), "many", False),
        ("Gt", ("8",), "9.5", False),
        ("Gt", ("8",), " 9", False),
        ("Gt", ("8",), "1_000", False),
        ("Gt", ("8",), "9223372036854775807", True),
        ("Gt", ("8",), "9223372036854775808", False),
        ("Lt", ("8",), "-1", True),
        ("Lt", ("8",), "7", True),
        ("Lt", ("8",), "8", False),
        ("Lt", ("8",), None, False),
        ("Lt", ("8",), "-9223372036854775809", False),
    ],
)
def test_matches_of_operators(operator: str, values: tuple[str, ...], actual: str | None, matched: bool) -> None:
    labels = {"other": "x"} if actual is None else {"other": "x", "key": actual}
    requirement = Requirement(key="key", operator=Operator(operator), values=values)
    assert requirement.matches(labels) is matched
    result = requirement.explain(labels)
    assert (result.matched, result.actual) == (matched, actual)


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (Requirement(key="zone", operator=Operator.IN, values=("a", "b")), "zone In [a, b]"),
        (Requirement(key="zone", operator=Operator.EQUALS, values=("a",)), "zone=a"),
        (Requirement(key="zone", operator=Operator.DOES_NOT_EXIST), "zone DoesNotExist"),
        (Requirement(key="cores", operator=Operator.GT, values=("8",)), "cores Gt 8"),
    ],
)
def test_the_text_of_a_requirement(requirement: Requirement, text: str) -> None:
    assert str(requirement) == text


words = st.sampled_from(["", "a", "b", "c", "1", "2", "10", "-3"])
label_maps = st.dictionaries(st.sampled_from(["k", "l", "m"]), words)
value_lists = st.lists(words, min_size=1, max_size=3).map(tuple)


@given(label_maps, value_lists)
def test_not_in_and_does_not_exist_are_complements(labels: dict[str, str], values: tuple[str, ...]) -> None:
    in_values = Requirement(key="k", operator=Operator.IN, values=values)
    not_in_values = Requirement(key="k", operator=Operator.NOT_IN, values=values)
    exists = Requirement(key="k", operator=Operator.EXISTS)
    absent = Requirement(key="k", operator=Operator.DOES_NOT_EXIST)
    assert in_values.matches(labels) is not not_in_values.matches(labels)
    assert exists.matches(labels) is not absent.matches(labels)
    if in_values.matches(labels):
        assert exists.matches(labels)


@given(st.integers(-(2**64), 2**64), st.integers(-(2**63), 2**63 - 1))
def test_gt_and_lt_compare_integers(number: int, bound: int) -> None:
    greater, less = (
        Requirement(key="k", operator=operator, values=(str(bound),)).matches({"k": str(number)})
        for operator in (Operator.GT, Operator.LT)
    )
    in_range = -(2**63) <= number < 2**63
    assert (greater, less) == (in_range and number > bound, in_range and number < bound)


# --- label selectors


def test_a_missing_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) == NOTHING
    assert compile_selector(LabelSelector()) == EVERYTHING
    assert not NOTHING.matches({})
    assert not NOTHING.empty
    assert EVERYTHING.matches({})
    assert EVERYTHING.empty


def test_labels_and_expressions_must_all_match() -> None:
    selector = compile_selector(
        LabelSelector(match_labels={"app": "web"}, match_expressions=(label_term("tier", "NotIn", "test"),))
    )
    assert selector.matches({"app": "web"})
    assert selector.matches({"app": "web", "tier": "live", "more": "x"})
    assert not selector.matches({"app": "web", "tier": "test"})
    assert not selector.matches({"tier": "live"})
    assert not selector.empty
    assert str(selector) == "app=web, tier NotIn [test]"


def test_an_explanation_has_every_requirement_and_the_actual_value() -> None:
    selector = compile_selector(
        LabelSelector(match_labels={"app": "web"}, match_expressions=(label_term("tier", "Exists"),))
    )
    items = [(str(result.requirement), result.matched, result.actual) for result in selector.explain({"app": "db"})]
    assert items == [("app=web", False, "db"), ("tier Exists", False, None)]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (
            LabelSelector(match_expressions=(label_term("a", "Like", "x"),)),
            '"Like" is not a valid label selector operator',
        ),
        (LabelSelector(match_expressions=(label_term("a", "Gt", "1"),)), '"Gt" is not a valid label selector operator'),
        (LabelSelector(match_expressions=(label_term("a", "="),)), '"=" is not a valid label selector operator'),
        (
            LabelSelector(match_expressions=(label_term("a", "In"), label_term("b", "Like"))),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            LabelSelector(match_expressions=(label_term("a", "Exists", "x", "<y>"),)),
            (
                '[values: Invalid value: ["x","\\u003cy\\u003e"]: '
                "values set must be empty for exists and does not exist, "
                f'values[1][a]: Invalid value: "<y>": {LABEL_VALUE_TEXT}]'
            ),
        ),
        (LabelSelector(match_labels={"a": "-"}), f'values[0][a]: Invalid value: "-": {LABEL_VALUE_TEXT}'),
        (LabelSelector(match_labels={"-": "a"}), f'key: Invalid value: "-": {LABEL_KEY_TEXT}'),
    ],
)
def test_errors_of_label_selectors_have_upstreams_text(selector: LabelSelector, text: str) -> None:
    with pytest.raises(InputError) as error:
        compile_selector(selector)
    assert str(error.value) == text


def test_selector_from_set_does_not_validate() -> None:
    assert selector_from_set({"-": "!"}).matches({"-": "!", "a": "b"})
    assert not selector_from_set({"a": "b"}).matches({})
    assert selector_from_set({}).empty
    assert selector_from_set(None).matches({})


def test_added_requirements_narrow_a_selector() -> None:
    requirements = compile_selector(LabelSelector(match_expressions=(label_term("b", "Exists"),))).requirements
    narrowed = selector_from_set({"a": "1"}).add(requirements)
    assert narrowed.matches({"a": "1", "b": ""})
    assert not narrowed.matches({"a": "1"})
    assert NOTHING.add(requirements) == NOTHING


expressions = st.builds(
    SelectorRequirement,
    key=st.sampled_from(["k", "l"]),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=2).map(tuple),
) | st.builds(
    SelectorRequirement,
    key=st.sampled_from(["k", "l"]),
    operator=st.sampled_from(["Exists", "DoesNotExist"]),
)
OPPOSITE = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}


@given(st.lists(expressions, min_size=1, max_size=4), label_maps)
def test_de_morgan(parts: list[SelectorRequirement], labels: dict[str, str]) -> None:
    """All parts match as a label selector, unless a node selector of their opposites matches."""
    selector = compile_selector(LabelSelector(match_expressions=tuple(parts)))
    opposites = (term(node_term(part.key, OPPOSITE[part.operator], *part.values)) for part in parts)
    negated = compile_node_selector(node_selector(*opposites)).check()
    assert selector.matches(labels) is not negated.matches(labels, "node")
    assert selector.matches(labels) is all(result.matched for result in selector.explain(labels))


# --- node selectors

ON_NODE_A = node_term("metadata.name", "In", "node-a")
NOT_NODE_A = node_term("metadata.name", "NotIn", "node-a")


@pytest.mark.parametrize(
    ("selector", "labels", "name", "matched"),
    [
        pytest.param(node_selector(), {"a": "1"}, "node-a", False, id="no-terms"),
        pytest.param(node_selector(term()), {"a": "1"}, "node-a", False, id="empty-term"),
        pytest.param(node_selector(term(), term(node_term("a", "Exists"))), {"a": "1"}, "node-a", True, id="one-empty"),
        pytest.param(
            node_selector(term(node_term("a", "In", "2")), term(node_term("a", "In", "1"))),
            {"a": "1"}, "node-a", True, id="terms-are-ored",
        ),
        pytest.param(
            node_selector(term(node_term("a", "In", "1"), node_term("b", "Exists"))),
            {"a": "1"}, "node-a", False, id="requirements-are-anded",
        ),
        pytest.param(node_selector(term(node_term("a", "Gt", "3"))), {"a": "4"}, "node-a", True, id="gt"),
        pytest.param(node_selector(term(node_term("a", "Lt", "3"))), {"a": "4"}, "node-a", False, id="lt"),
        pytest.param(node_selector(term(fields=(ON_NODE_A,))), {}, "node-a", True, id="name"),
        pytest.param(node_selector(term(fields=(ON_NODE_A,))), {}, "node-b", False, id="other-name"),
        pytest.param(node_selector(term(fields=(NOT_NODE_A,))), {}, "node-a", False, id="not-name"),
        pytest.param(node_selector(term(fields=(NOT_NODE_A,))), {}, "node-b", True, id="not-other-name"),
        pytest.param(node_selector(term(fields=(ON_NODE_A,))), {}, "", True, id="a-nameless-node-passes-fields"),
        pytest.param(
            node_selector(term(node_term("a", "Exists"), fields=(ON_NODE_A,))), {}, "node-a", False, id="labels-too"
        ),
        pytest.param(
            node_selector(term(fields=(node_term("spec.x", "In", ""),))), {}, "node-a", True, id="other-field-is-empty"
        ),
        pytest.param(
            node_selector(term(fields=(node_term("spec.x", "NotIn", ""),))), {}, "node-a", False, id="not-empty"
        ),
        pytest.param(
            node_selector(term(node_term("a", "Like", "1")), term(node_term("a", "Exists"))),
            {"a": "1"}, "node-a", True, id="a-term-in-error-does-not-spoil-another",
        ),
        pytest.param(
            node_selector(term(node_term("a", "Exists"), node_term("b", "Like"))),
            {"a": "1"}, "node-a", False, id="an-error-spoils-its-own-term",
        ),
    ],
)  # fmt: skip
def test_matches_of_node_selectors(selector: NodeSelector, labels: Mapping[str, str], name: str, matched: bool) -> None:
    assert compile_node_selector(selector).matches(labels, name) is matched


@pytest.mark.parametrize(
    ("invalid", "text"),
    [
        (
            term(node_term("a", "Like<")),
            (
                'nodeSelectorTerms[1].matchExpressions[0].operator: Unsupported value: "Like\\u003c": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (
            term(node_term("a", "In")),
            (
                "nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: null: "
                "for 'in', 'notin' operators, values set can't be empty"
            ),
        ),
        (
            term(node_term("a", "Exists", "x")),
            (
                'nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: ["x"]: '
                "values set must be empty for exists and does not exist"
            ),
        ),
        (
            term(node_term("a", "Gt", "1", "2")),
            (
                'nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: ["1","2"]: '
                "for 'Gt', 'Lt' operators, exactly one value is required"
            ),
        ),
        (
            term(node_term("a", "Lt", "1.5")),
            (
                'nodeSelectorTerms[1].matchExpressions[0].values[0]: Invalid value: "1.5": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            term(node_term("a", "Gt", "-5")),
            f'nodeSelectorTerms[1].matchExpressions[0].values[0][a]: Invalid value: "-5": {LABEL_VALUE_TEXT}',
        ),
        (
            term(node_term("", "In")),
            (
                '[nodeSelectorTerms[1].matchExpressions[0].key: Invalid value: "": '
                f"name part must be non-empty; {LABEL_KEY_TEXT}, "
                "nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: null: "
                "for 'in', 'notin' operators, values set can't be empty]"
            ),
        ),
        (
            term(fields=(node_term("metadata.name", "In", "a", "b"),)),
            'nodeSelectorTerms[1].matchFields[0].values: Invalid value: ["a","b"]: must have one element',
        ),
        (
            term(fields=(node_term("metadata.name", "Exists"),)),
            (
                'nodeSelectorTerms[1].matchFields[0].operator: Unsupported value: "Exists": '
                'supported values: "In", "NotIn"'
            ),
        ),
    ],
)
def test_errors_of_node_selectors_have_upstreams_text_and_path(invalid: NodeSelectorTerm, text: str) -> None:
    compiled = compile_node_selector(node_selector(term(), invalid))
    assert [parsed.index for parsed in compiled.terms] == [1]
    with pytest.raises(InputError) as error:
        compiled.check()
    assert str(error.value) == text


def test_errors_begin_with_the_given_field() -> None:
    compiled = compile_node_selector(node_selector(term(node_term("a", "Like"))), field="spec.required")
    assert [error.place.field for error in compiled.errors] == [
        "spec.required.nodeSelectorTerms[0].matchExpressions[0].operator"
    ]


def test_a_term_explains_every_requirement() -> None:
    selector = node_selector(term(node_term("zone", "In", "a"), node_term("gpu", "DoesNotExist"), fields=(ON_NODE_A,)))
    (compiled,) = compile_node_selector(selector).terms
    items = [
        (str(result.requirement), result.matched, result.actual) for result in compiled.explain({"zone": "b"}, "node-a")
    ]
    assert items == [
        ("zone In [a]", False, "b"),
        ("gpu DoesNotExist", True, None),
        ("metadata.name In [node-a]", True, "node-a"),
    ]


@pytest.mark.parametrize(
    ("pod_selector", "affinity", "matched"),
    [
        (None, None, True),
        ({}, None, True),
        ({"a": "1"}, None, True),
        ({"a": "2"}, None, False),
        (None, node_selector(), False),
        (None, node_selector(term(ON_NODE_A)), False),
        ({"a": "1"}, node_selector(term(node_term("b", "Exists"))), False),
        ({"a": "1"}, node_selector(term(node_term("a", "Exists"))), True),
        ({"a": "2"}, node_selector(term(node_term("a", "Exists"))), False),
    ],
)
def test_required_node_affinity_includes_the_node_selector(
    pod_selector: dict[str, str] | None, affinity: NodeSelector | None, matched: bool
) -> None:
    assert required_node_affinity(pod_selector, affinity).matches({"a": "1"}, "node-a") is matched


def preferred_term(weight: int, preference: NodeSelectorTerm) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=preference)


def test_preferred_terms_sum_the_weights_of_matches() -> None:
    terms = compile_preferred_terms(
        [
            preferred_term(5, term(node_term("a", "Exists"))),
            preferred_term(7, term(node_term("b", "Exists"))),
            preferred_term(3, term(fields=(ON_NODE_A,))),
            preferred_term(90, term()),
            preferred_term(0, term(node_term("a", "Like"))),
        ]
    )
    assert terms.score({"a": ""}, "node-a") == 8
    assert terms.score({"a": "", "b": ""}, "node-b") == 12
    assert [weighted.term.index for weighted in terms.terms] == [0, 1, 2]


def test_errors_of_preferred_terms_are_joined() -> None:
    with pytest.raises(InputError) as error:
        compile_preferred_terms(
            [preferred_term(1, term(node_term("a", "In"))), preferred_term(1, term(fields=(node_term("x", "In"),)))]
        )
    assert str(error.value) == (
        "[[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty, "
        "[1].matchFields[0].values: Invalid value: null: must have one element]"
    )


# --- records


def test_selectors_are_decoded_from_json() -> None:
    text = b"""{"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}],
                "matchFields": []}}"""
    decoded = msgspec.json.decode(text, type=PreferredSchedulingTerm)
    assert decoded == preferred_term(5, term(node_term("a", "In", "1")))
    assert msgspec.json.encode(decoded.preference) == (
        b'{"matchExpressions":[{"key":"a","operator":"In","values":["1"]}]}'
    )


# --- validation


def texts(errors: Iterable[InputError]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        (None, []),
        (LabelSelector(), []),
        (LabelSelector(match_labels={"a": "1"}, match_expressions=(label_term("b/c", "In", ""),)), []),
        (
            LabelSelector(match_expressions=(label_term("a", "In"), label_term("a", "Exists", "x"))),
            [
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                (
                    "s.matchExpressions[1].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                ),
            ],
        ),
        (
            LabelSelector(match_expressions=(label_term("a", "Gt", "1"),)),
            ['s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator'],
        ),
        (
            LabelSelector(match_labels={"-": "+"}),
            [
                f's.matchLabels: Invalid value: "-": {LABEL_KEY_TEXT}',
                f's.matchLabels: Invalid value: "+": {LABEL_VALUE_TEXT}',
            ],
        ),
        (
            LabelSelector(match_expressions=(label_term("-", "In", "+"),)),
            [
                f's.matchExpressions[0].key: Invalid value: "-": {LABEL_KEY_TEXT}',
                f's.matchExpressions[0].values[0]: Invalid value: "+": {LABEL_VALUE_TEXT}',
            ],
        ),
    ],
)
def test_validation_of_label_selectors(selector: LabelSelector | None, errors: list[str]) -> None:
    assert texts(validate_label_selector(selector, "s")) == errors


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        (node_selector(), ["s.nodeSelectorTerms: Required value: must have at least one node selector term"]),
        (node_selector(term()), []),
        (node_selector(term(node_term("a", "Gt", "1"), fields=(ON_NODE_A,))), []),
        (
            node_selector(term(node_term("a", "Gt"))),
            [
                (
                    "s.nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
                    "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
            ],
        ),
        (
            node_selector(term(node_term("a", "Gt", "-5"))),
            [f's.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-5": {LABEL_VALUE_TEXT}'],
        ),
        (
            node_selector(term(fields=(node_term("metadata.uid", "In"), node_term("metadata.name", ">", "a.b-")))),
            [
                (
                    "s.nodeSelectorTerms[0].matchFields[0].values: Required value: "
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                ),
                (
                    's.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid": '
                    "not a valid field selector key"
                ),
                's.nodeSelectorTerms[0].matchFields[1].operator: Invalid value: ">": not a valid selector operator',
                (
                    's.nodeSelectorTerms[0].matchFields[1].values[0]: Invalid value: "a.b-": '
                    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                    "validation is "
                    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
        ),
    ],
)
def test_validation_of_node_selectors(selector: NodeSelector, errors: list[str]) -> None:
    assert texts(validate_node_selector(selector, "s")) == errors


def test_validation_of_preferred_terms_skips_values() -> None:
    terms = [preferred_term(101, term()), preferred_term(1, term(node_term("a", "In", "-"), node_term("a", "Eq")))]
    assert texts(validate_preferred_terms(terms, "p")) == [
        "p[0].weight: Invalid value: 101: must be in the range 1-100",
        'p[1].preference.matchExpressions[1].operator: Invalid value: "Eq": not a valid selector operator',
    ]


@given(st.lists(expressions | st.builds(SelectorRequirement, key=words, operator=words, values=value_lists)))
def test_valid_selectors_compile(parts: list[SelectorRequirement]) -> None:
    selector = LabelSelector(match_expressions=tuple(parts))
    if not list(validate_label_selector(selector, "")):
        assert compile_selector(selector).selectable


# --- names


@pytest.mark.parametrize(
    ("key", "error_count"),
    [
        ("a", 0),
        ("example.com/Some_name.x-y", 0),
        ("a" * 63, 0),
        ("a" * 64, 1),
        ("", 2),
        ("/a", 1),
        ("a/", 2),
        ("/", 3),
        ("Example.com/a", 1),
        ("x" * 254 + "/a", 1),
        ("a/b/c", 1),
        ("a-", 1),
        ("a\n", 1),
        ("é" * 32, 2),
    ],
)
def test_errors_of_label_keys(key: str, error_count: int) -> None:
    assert len(list(label_key_errors(key))) == error_count


@pytest.mark.parametrize(("value", "error_count"), [("", 0), ("A.b_c-1", 0), ("_a", 1), ("a" * 64, 1), ("-" * 64, 2)])
def test_errors_of_label_values(value: str, error_count: int) -> None:
    assert len(list(label_value_errors(value))) == error_count
    assert len(list(validate_labels({"k": value}, "labels"))) == error_count


def test_errors_of_dns_names() -> None:
    assert list(dns_label_errors("my-name")) == []
    assert list(dns_label_errors("my.name")) == ["must not contain dots"]
    assert list(dns_label_errors("a" * 64)) == ["must be no more than 63 characters"]
    assert next(iter(dns_label_errors("My-name"))).startswith("a lowercase RFC 1123 label must consist of")
    assert list(dns_subdomain_errors("my.name")) == []
    assert len(list(dns_subdomain_errors("my..name"))) == 1
    assert list(dns_subdomain_errors("a" * 254)) == ["must be no more than 253 characters"]
    assert list(label_key_errors("a" * 254 + "/b")) == ["prefix part must be no more than 253 bytes"]


@pytest.mark.parametrize("text", ["a" * 200_000 + "!", "a-" * 100_000, "a." * 100_000, "-" * 200_000])
def test_long_names_are_rejected(text: str) -> None:
    assert list(label_key_errors(text))
    assert list(label_value_errors(text))
    assert list(dns_subdomain_errors(text))


def test_hostile_text_is_quoted() -> None:
    (error,) = validate_labels({"a": '\x1b[31m"\u202e'}, "labels")
    assert str(error).startswith('labels: Invalid value: "\\x1b[31m\\"\\u202e": a valid label must be')

"""Answers are decoded as by Go's encoding/json, with its errors."""

from __future__ import annotations

import pytest

from kschedx.extenders.answers import ExtenderError, filter_answer, preemption_answer, priorities
from kschedx.framework.config.decoding import Extender
from kschedx.framework.extenders import ExtenderAnswer, ExtenderRequest, ExtenderVerb
from kschedx.kube.escaping import Url

REQUEST = ExtenderRequest(
    extender=Extender(filter_verb="filter"),
    index=0,
    verb=ExtenderVerb.FILTER,
    url=Url("http://127.0.0.1/filter"),
    pod="default/web",
    about=(),
    body=bytes,
)


def answer(text: str | bytes, ended: str = "EOF") -> ExtenderAnswer:
    return ExtenderAnswer(status=200, body=text.encode() if isinstance(text, str) else text, ended=ended)


@pytest.mark.parametrize(
    ("text", "names", "failed"),
    [
        ('{"NodeNames": ["a"], "FailedNodes": {"b": "full"}}', ("a",), {"b": "full"}),
        ('{"nodenames": ["a"], "FAILEDNODES": {"b": null}}', ("a",), {"b": ""}),
        ('{"NodeNames": [null], "unknown": [1.5, {"x": true}]}', ("",), {}),
        ("{}", None, {}),
        ("null", None, {}),
        ('{"NodeNames": null} and trailing text', None, {}),
        ('{"NodeNames": ["\\ud800x\\ud83d\\ude00"]}', ("\ufffdx\U0001f600",), {}),
    ],
)
def test_remaining_nodes_of_a_filter_answer(text: str, names: tuple[str, ...] | None, failed: dict[str, str]) -> None:
    result = filter_answer(REQUEST, answer(text))
    assert (result.node_names, dict(result.failed_nodes)) == (names, failed)


def test_invalid_unicode_is_replaced() -> None:
    assert filter_answer(REQUEST, answer(b'{"NodeNames": ["\xe2x"]}')).node_names == ("\ufffdx",)


def test_a_node_in_an_answer_has_no_images() -> None:
    text = """{"Nodes": {"items": [{"metadata": {"name": "a", "labels": null},
        "status": {"allocatable": {"cpu": 0.5}, "images": [{"names": ["x"]}]}}]}}"""
    (result,) = filter_answer(REQUEST, answer(text)).whole_nodes()
    assert (result.node.name, result.node.status.images) == ("a", ())


INVALID = [
    ("", "EOF"),
    ("  \n", "EOF"),
    ("{", "unexpected EOF"),
    ('{"NodeNames": "a', "unexpected EOF"),
    ("tru", "unexpected EOF"),
    ("oops", "invalid character 'o' looking for beginning of value"),
    ("<html>", "invalid character '<' looking for beginning of value"),
    ("\ufeff{}", "invalid character '\\ufeff' looking for beginning of value"),
    ("'a'", "invalid character '\\'' looking for beginning of value"),
    ("[1, ]", "invalid character ']' looking for beginning of value"),
    ("NaN", "invalid character 'N' looking for beginning of value"),
    ("nulo", "invalid character 'o' in literal null (expecting 'l')"),
    ("{1: 2}", "invalid character '1' looking for beginning of object key string"),
    ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
    ('{"a" 1}', "invalid character '1' after object key"),
    ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
    ('{"a": [1 2]}', "invalid character '2' after array element"),
    ('["\t"]', "invalid character '\\t' in string"),
    (r'["\o"]', r"invalid escape sequence `\o` in string"),
    (r'["\u12 3"]', r'invalid escape sequence "\\u12 3" in string'),
    ('["\\u1', "unexpected EOF"),
    ("[-x]", "invalid character 'x' in numeric literal"),
    ("[-Infinity]", "invalid character 'I' in numeric literal"),
    ('{"a" é}', "invalid character 'é' after object key"),
    ('{"NodeNames": ["a", 1]}', "json: cannot unmarshal number into ExtenderFilterResult.NodeNames.1 of type string"),
    (
        '{"failedNodes": {"1": 1}}',
        "json: cannot unmarshal number into Go struct field ExtenderFilterResult.failedNodes.1 of type string",
    ),
    ("[" * 200_000, "exceeded max depth"),
    ("[]", "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult"),
    ("42", "json: cannot unmarshal number into Go value of type v1.ExtenderFilterResult"),
    ('"x"', "json: cannot unmarshal string into Go value of type v1.ExtenderFilterResult"),
    ("true", "json: cannot unmarshal bool into Go value of type v1.ExtenderFilterResult"),
    ('{"Error": 1}', "json: cannot unmarshal number into Go struct field ExtenderFilterResult.Error of type string"),
    (
        '{"NodeNames": {}}',
        "json: cannot unmarshal object into Go struct field ExtenderFilterResult.NodeNames of type []string",
    ),
    (
        '{"FailedNodes": []}',
        "json: cannot unmarshal array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
    ),
]


@pytest.mark.parametrize(("text", "expected"), INVALID, ids=[text[:30] for text, _ in INVALID])
def test_invalid_answers(text: str, expected: str) -> None:
    with pytest.raises(ExtenderError) as error:
        filter_answer(REQUEST, answer(text))
    assert str(error.value) == expected


@pytest.mark.parametrize("number", ["1.5", "1e3", "9223372036854775808"])
def test_scores_are_64_bit_integers(number: str) -> None:
    expected = f"json: cannot unmarshal number {number} into Go struct field HostPriorityList.1.Score of type int64"
    with pytest.raises(ExtenderError) as error:
        priorities(REQUEST, answer(f'[{{"Host": "a", "Score": 1}}, {{"host": "b", "Score": {number}}}]'))
    assert str(error.value) == expected


def test_victims_are_identified_by_uid() -> None:
    text = '{"NodeNameToMetaVictims": {"a": {"Pods": [{"uid": "1"}, {}], "NumPDBViolations": 2}}}'
    (result,) = preemption_answer(REQUEST, answer(text)).values()
    assert (result.uids, result.pdb_violations) == (("1", ""), 2)


def test_a_truncated_body_reports_the_network_error() -> None:
    for text in ("", '{"Error": "a"'):
        with pytest.raises(ExtenderError, match="read: connection reset by peer"):
            filter_answer(REQUEST, answer(text, "read: connection reset by peer"))
    assert filter_answer(REQUEST, answer('{"NodeNames": []}', "unexpected EOF")).node_names == ()


def test_an_invalid_node_is_an_error() -> None:
    for invalid in ('"metadata": {"creationTimestamp": "x"}', '"status": {"capacity": {"cpu": "x"}}', '"spec": 1'):
        with pytest.raises(ExtenderError):
            filter_answer(REQUEST, answer(f'{{"Nodes": {{"items": [{{{invalid}}}]}}}}')).whole_nodes()

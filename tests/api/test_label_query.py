"""Label queries of the option -l, as in kubectl."""

from __future__ import annotations

import pytest

from kschedx.errors import InputError
from kschedx.kube.selectors import parse_label_query

LABELS = {"app": "web", "tier": "front", "cores": "8", "acme.io/team": "shop", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=api", False),
        ("app!=api", True),
        ("app!=web", False),
        ("absent!=web", True),
        ("empty=", True),
        ("app in (web, api)", True),
        ("app in (api)", False),
        ("empty in ()", True),
        ("empty in (web,)", True),
        ("in in (web)", False),
        ("tier notin (front,back)", False),
        ("absent notin (front)", True),
        ("cores>4", True),
        ("cores<4", False),
        ("acme.io/team=shop,app in (web,api),!absent", True),
        ("acme.io/team=shop,app in (api),!absent", False),
    ],
)
def test_matches_of_a_label_query(text: str, matches: bool) -> None:
    assert parse_label_query(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["app in web", "app=web=x", "=web", "app,,tier", "app in (a", "cores>many", "-app=x"])
def test_an_invalid_label_query_lists_the_allowed_forms(text: str) -> None:
    with pytest.raises(InputError, match=r"^label selector \".*\": .*allowed: key, !key"):
        parse_label_query(text)


UNPARSED = "unable to parse requirement:"
NOT_A_KEY = "name part must consist of alphanumeric characters"
NO_INTEGER = "Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a b", f"{UNPARSED} found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", f"{UNPARSED} found 'b' expected: '('"),
        ("a in (=)", f"{UNPARSED} found '=', expected: ',', ')' or identifier"),
        ("a in (b c)", f"{UNPARSED} found 'c', expected: ',' or ')'"),
        ("a in (b,", f"{UNPARSED} found '', expected: ',', or identifier"),
        ("a in (b,,)", f"{UNPARSED} found ')', expected: ',', or identifier"),
        ("a==!", f"{UNPARSED} found '!', expected: identifier"),
        ("!,a", f"{UNPARSED} found ',', expected: identifier"),
        ("a>x", f"{UNPARSED} values[0]: {NO_INTEGER}"),
        ("-a", f'{UNPARSED} <nil>: Invalid value: "-a": {NOT_A_KEY}'),
        ("a=-b", f'{UNPARSED} values[0][a]: Invalid value: "-b": '),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
    ],
)
def test_errors_of_label_queries_are_those_of_kubectl(text: str, error: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_label_query(text)
    assert raised.value.message.startswith(error)

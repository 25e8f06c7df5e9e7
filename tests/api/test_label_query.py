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
def test_invalid_label_queries(text: str) -> None:
    with pytest.raises(InputError, match="label selector"):
        parse_label_query(text)

"""A lookup of nodes by label finds the matching nodes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.selectors import NodeSelector, compile_node_selector
from kschedx.snapshot.nodes import NodeLookup
from tests.builders import Manifest, framework, node

VALUES = ["a", "b", "3", "12"]

labels = st.dictionaries(st.sampled_from(["zone", "host", "cores"]), st.sampled_from(VALUES))


@st.composite
def expressions(draw: st.DrawFn) -> Manifest:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]))
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = draw(st.lists(st.sampled_from(VALUES), max_size=3))
    elif operator in ("Gt", "Lt"):
        values = [draw(st.sampled_from(["2", "5", "x"]))]
    return {"key": draw(st.sampled_from(["zone", "host", "cores", "-bad"])), "operator": operator, "values": values}


terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(expressions(), max_size=3),
        # a field is never looked at, since a volume is held against a node's labels alone
        "matchFields": st.lists(st.just({"key": "metadata.name", "operator": "In", "values": ["nowhere"]}), max_size=1),
    }
)


@given(st.lists(labels, max_size=8), st.lists(terms, max_size=3))
def test_a_lookup_equals_the_rule(on_nodes: list[dict[str, str]], written: list[Manifest]) -> None:
    nodes = framework([node(f"n{i}", labels=item) for i, item in enumerate(on_nodes)]).nodes
    selector = msgspec.convert({"nodeSelectorTerms": written}, NodeSelector)
    rule = compile_node_selector(selector)
    expected = [row for row, item in enumerate(on_nodes) if rule.matches(item, "")]
    lookup = NodeLookup(nodes)
    assert lookup.selector(selector).tolist() == expected
    assert lookup.selector(selector).tolist() == expected  # remembered
    assert lookup.selector(None).tolist() == list(range(len(on_nodes)))

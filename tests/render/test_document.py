"""Documents that are printed as JSON and YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.render.manifests import json_parts, to_json, to_yaml
from kschedx.sources.yaml import value_in

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a\n\u202e\x7f"é', max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("k\u202e", max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("ab\u202e", max_size=2), VALUES, min_size=1, max_size=4))
def test_a_document_in_pieces_equals_the_whole(document: dict[str, object]) -> None:
    entries = [(key, iter(value) if isinstance(value, list) else value) for key, value in document.items()]

    assert "".join(json_parts(entries)) == to_json(document)


@pytest.mark.parametrize(
    "text", ["y", "N", "1e3", "5e10", "0o17", "0777", "0x1f", "1_0", ".5", "+1", "12:30", "yes", "~", ""]
)
def test_kubectl_reads_text_in_yaml_as_text(text: str) -> None:
    """It converts YAML to JSON as go-yaml does, to which more unquoted texts are numbers or booleans than to pyyaml."""
    assert value_in(to_yaml({text: [text]})) == {text: [text]}

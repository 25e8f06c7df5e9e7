"""Documents that are printed in pieces while they are built."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedx.render.manifests import json_parts, to_json

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a\n\u202e\x7f"é', max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("k\u202e", max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("ab\u202e", max_size=2), VALUES, min_size=1, max_size=4))
def test_a_document_in_pieces_equals_the_whole(document: dict[str, object]) -> None:
    entries = [(key, iter(value) if isinstance(value, list) else value) for key, value in document.items()]

    assert "".join(json_parts(entries)) == to_json(document)

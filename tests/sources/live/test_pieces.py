"""A page of a list in pieces is the page, wherever it is cut."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import InputError
from kschedx.kube.kinds import KINDS
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.sources.live import lists
from kschedx.sources.live.client import ApiServer
from kschedx.sources.live.lists import ListPage, pages

OBJECTS = msgspec.json.Decoder(list)


class Answering(ApiServer):
    """Has one page."""

    def __init__(self, body: bytes) -> None:
        self.url = "http://here"
        self.timeout = 1.0
        self._body_of_page = body

    def get(self, path: str, query: object = None, *, accept: str = "") -> bytes:
        return self._body_of_page


def page_of(body: bytes) -> ListPage:
    (result,) = pages(Answering(body), KINDS["Pod"])
    assert isinstance(result, ListPage)
    return result


def body_of(objects: list[Any], more: str = "") -> bytes:
    head = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":'
    return f"{head}{json.dumps(objects, separators=(',', ':'))}{more}}}\n".encode()


def read(page: ListPage) -> list[Any]:
    result: list[Any] = []
    for piece in page.pieces():
        assert piece.origin.place(0).object == f"items[{len(result)}]"
        part: list[Any] = piece.decode(OBJECTS)
        result += part
    return result


OBJECT = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.text(max_size=9)}),
        "spec": st.lists(st.fixed_dictionaries({"metadata": st.just({"a": "},{"})}), max_size=3),
    }
)
"""Inside of one, lists look like the list itself."""


@given(st.lists(OBJECT, max_size=9), st.integers(0, 200), st.sampled_from(["", ',"more":[7]']))
def test_the_pieces_are_the_page(objects: list[Any], size: int, more: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "_PIECE", size)
        assert read(page_of(body_of(objects, more))) == objects


def test_a_page_is_cut_between_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_PIECE", 100)
    objects = [{"metadata": {"name": f"web-{number}"}} for number in range(20)]
    items = list(page_of(body_of(objects)).pieces())
    assert 3 < len(items) < 10
    assert [item for piece in items for item in piece.decode(OBJECTS)] == objects


def test_a_piece_that_is_no_json_is_told_as_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_PIECE", 10)
    objects = [{"metadata": {"name": f"web-{number}"}} for number in range(5)]
    broken = body_of(objects).replace(b'"web-3"', b'"web-3')
    with pytest.raises(InputError, match=r"http://here/api/v1/pods.*: not valid JSON"):
        read(page_of(broken))


def test_a_valid_page_is_decoded_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing every object anew with its kind, as for an error's place, would take as long as decoding it."""
    page = page_of(body_of([{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}}]))
    monkeypatch.setattr(ListPage, "with_kinds", None)
    builder = SnapshotBuilder()
    builder.add_page(page)
    assert builder.finish("here").source.kinds == {"Pod": 1}

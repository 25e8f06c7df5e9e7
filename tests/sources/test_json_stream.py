"""JSON of any size and layout gives the same objects, and errors have their place."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedx.errors import InputError
from kschedx.sources.json_stream import JsonStream
from kschedx.sources.lists import Batch

OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])


def one_per_line(objects: list[dict[str, Any]]) -> str:
    items = ",\n".join(json.dumps(item) for item in objects)
    return f'{{"apiVersion":"v1","kind":"List","metadata":{{}},"items":[\n{items}\n]}}\n'


def indented(width: int) -> Callable[[list[dict[str, Any]]], str]:
    def write(objects: list[dict[str, Any]]) -> str:
        return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}}, indent=width)

    return write


def compact(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}, separators=(",", ":"))


def concatenated(objects: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(item) for item in objects)


def between_marks(objects: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(item, indent=1)}\n---\n" for item in objects)


def array(objects: list[dict[str, Any]]) -> str:
    return json.dumps(objects)


def two_lists(objects: list[dict[str, Any]]) -> str:
    half = len(objects) // 2
    return indented(4)(objects[:half]) + "\n" + one_per_line(objects[half:]) + json.dumps([])


def with_carriage_returns(objects: list[dict[str, Any]]) -> str:
    return indented(2)(objects).replace("\n", "\r\n")


LAYOUTS = [
    one_per_line, indented(4), indented(2), indented(1), indented(0), compact, concatenated, array, two_lists,
    with_carriage_returns, between_marks,
]  # fmt: skip

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "},\n{", '"items": [\n{', "[{", 'é\\"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
ITEMS = st.lists(st.fixed_dictionaries({"kind": st.sampled_from(["Pod", "Node"]), "spec": VALUES}), max_size=12)
NESTED = [{"kind": "Pod", "spec": [{"a": 1}, {"a": 2}, {"a": 3}]}] * 9


def batches(text: str | bytes, *, chunk: int = 8 << 20, small: int = 1 << 20) -> list[Batch]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(JsonStream(io.BytesIO(data), source="a.json", chunk=chunk, small=small).batches())


def objects_of(text: str | bytes, *, chunk: int = 8 << 20, small: int = 1 << 20) -> list[dict[str, Any]]:
    data = text if isinstance(text, bytes) else text.encode()
    stream = JsonStream(io.BytesIO(data), source="a.json", chunk=chunk, small=small)
    return [item for batch in stream.batches() for item in batch.decode(OBJECTS)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("write", LAYOUTS)
@given(objects=ITEMS, chunk=st.integers(1, 300), small=st.integers(1, 400))
@example(objects=NESTED, chunk=40, small=150)
@example(objects=NESTED, chunk=1, small=150)
def test_chunks_do_not_change_the_objects(
    write: Callable[[list[dict[str, Any]]], str], objects: list[dict[str, Any]], chunk: int, small: int
) -> None:
    assert objects_of(write(objects), chunk=chunk, small=small) == objects


@given(objects=ITEMS, chunk=st.integers(1, 300))
def test_a_consumer_may_decode_later(objects: list[dict[str, Any]], chunk: int) -> None:
    later = batches(indented(0)(objects), chunk=chunk, small=60)
    assert [item for batch in later for item in batch.decode(OBJECTS)] == objects


@given(
    objects=ITEMS, cut=st.integers(0, 2000), junk=st.sampled_from([b"", b"]", b"}", b"\xff", b'"', b"\n{", b"},\n{"])
)
def test_damage_is_an_input_error_or_harmless(objects: list[dict[str, Any]], cut: int, junk: bytes) -> None:
    text = one_per_line(objects).encode()
    damaged = text[:cut] + junk + text[cut + 1 :]
    try:
        objects_read = objects_of(damaged, chunk=50, small=80)
    except (InputError, msgspec.ValidationError):
        return
    # in a long file, what nobody reads of the head is not checked, and the kind may follow the items
    expected = json.loads(damaged.decode(errors="replace"))
    assert objects_read == (expected.get("items", []) if expected.get("kind", "List").endswith("List") else [expected])


@pytest.mark.parametrize("write", [one_per_line, indented(4), indented(2)])
def test_a_long_list_comes_in_chunks(write: Callable[[list[dict[str, Any]]], str]) -> None:
    text = write([{"kind": "Pod", "metadata": {"name": f"p{number}"}} for number in range(500)])
    sizes = [len(batch.items) for batch in batches(text, chunk=1000, small=500)]
    assert len(sizes) > 10
    assert max(sizes) < 2500


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_text(one_per_line([{"kind": "Pod", "metadata": {"name": "x" * 200}}] * 20_000))
    tracemalloc.start()
    with path.open("rb") as file:
        count = sum(
            len(batch.decode(OBJECTS))
            for batch in JsonStream(file, source="big.json", chunk=1 << 16, small=1 << 16).batches()
        )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < path.stat().st_size / 4


def typed(objects: list[dict[str, Any]]) -> str:
    """Return a list as an API server writes it: on one line, the kind before the items, which do not repeat it."""
    items = [{key: value for key, value in item.items() if key != "kind"} for item in objects]
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}, separators=(",", ":"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("write", [compact, typed, json.dumps, indented(0)])
def test_memory_does_not_grow_without_newlines(write: Callable[[list[dict[str, Any]]], str]) -> None:
    objects = [{"kind": "Pod", "spec": [{"a": 1}, {"a": "},{"}, {"a": "x" * 200}]}] * 5_000
    text = write(objects).encode()
    tracemalloc.start()
    stream = JsonStream(io.BytesIO(text), source="big.json", chunk=1 << 14, small=1 << 14)
    count = sum(len(batch.decode(OBJECTS)) for batch in stream.batches())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000
    assert peak < len(text) / 4


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_typed_list_on_a_single_line(separators: tuple[str, str]) -> None:
    items = [{"metadata": {"name": f"p{number}"}, "spec": [{}, {}]} for number in range(50)]
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}, separators=separators)
    objects_read = objects_of(text, chunk=200, small=200)
    assert objects_read == [{"apiVersion": "v1", "kind": "Pod", **item} for item in items]


@pytest.mark.parametrize(
    ("head", "unit", "problem"),
    [
        ('{"kind":"List","items":[', " ", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ("{", " ", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ("{", "\n", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ("[", "1,", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ('{"kind":"Pod","a":', "1", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ('{"kind":"Pod","a":"', "\\n", "a JSON document of more than 1 MB that cannot be read in pieces"),
        ('{"kind":"List","items":[{"kind":"Pod","a":"', "x", "an object of more than 2 MB"),
        ('{"kind":"List","items":[{"kind":"Pod"}, {"kind":"Pod","a":[', "1,", "an object of more than 2 MB"),
        ('[{"kind":"Pod","a":"', "x", "an object of more than 2 MB"),
        ('[{"kind":"Pod"}', " ", "an object of more than 2 MB"),
        ("", "[", "not valid JSON: it is nested too deeply"),
        ("", '{"a":', "not valid JSON: it is nested too deeply"),
        ('[{"kind":"Pod","a":', '[{"a":', "not valid JSON: it is nested too deeply"),
    ],
)
def test_endless_input_is_refused_early(head: str, unit: str, problem: str) -> None:
    class Endless(io.RawIOBase):
        """Gigabytes."""

        given = 0

        def read(self, size: int = -1) -> bytes:
            begin, self.given = self.given, self.given + size
            assert self.given < 16 << 20, "it was refused too late"
            if begin < len(head):
                return (head[begin:] + unit * size)[:size].encode()
            within = (begin - len(head)) % len(unit)
            return (unit * (size // len(unit) + 2))[within : within + size].encode()

    with pytest.raises(InputError, match=re.escape(problem)):
        list(JsonStream(Endless(), source="-", chunk=1000, small=1000, max_item=2 << 20, max_whole=1 << 20).batches())


@pytest.mark.parametrize("write", [one_per_line, compact, typed, json.dumps])
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("[1,]", "not valid JSON: trailing comma in array"),
        ("NaN", "not valid JSON: JSON has no NaN and no Infinity"),
        ("[1 2]", "not valid JSON: expected ',' or ']'"),
        ("1} {", "not valid JSON: expected ',' or ']'"),
        ("1}]]", "not valid JSON"),
        ("1},,{", "not valid JSON: invalid character ','"),
    ],
)
def test_damage_in_a_long_list(write: Callable[[list[dict[str, Any]]], str], bad: str, problem: str) -> None:
    text = write([{"kind": "Pod", "a": 1}] * 50 + [{"kind": "Pod", "a": "HERE"}] + [{"kind": "Pod", "a": 1}] * 50)
    with pytest.raises(InputError) as caught:
        objects_of(text.replace('"HERE"', bad), chunk=100, small=100)
    assert problem in str(caught.value)


def test_an_object_without_a_kind_in_a_long_list_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(one_per_line([{"kind": "List", "items": []}, *[{"kind": "Pod"}] * 100, {"name": "a"}]))
    with path.open("rb") as file, pytest.raises(InputError) as caught:
        list(JsonStream(file, source="a.json", path=path, chunk=300, small=300).batches())
    assert str(caught.value) == 'a.json:103: no "kind", so this is not a Kubernetes object'


def test_lists_in_a_long_list_are_flattened() -> None:
    inner = {"kind": "List", "items": [{"kind": "Node", "n": 1}, {"kind": "Node", "n": 2}]}
    objects = [{"kind": "Pod", "n": 0}] * 20 + [inner] + [{"kind": "Pod", "n": 3}] * 20
    objects_read = objects_of(indented(4)(objects), chunk=200, small=200)
    assert [item["n"] for item in objects_read] == [0] * 20 + [1, 2] + [3] * 20


def test_items_of_a_typed_list_get_its_kind_even_if_it_comes_last() -> None:
    items = [{"metadata": {"name": f"p{number}"}} for number in range(50)]
    text = json.dumps({"items": items, "apiVersion": "v1", "kind": "PodList"}, indent=4)
    objects_read = objects_of(text, chunk=200, small=200)
    assert objects_read == [{"apiVersion": "v1", "kind": "Pod", **item} for item in items]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"kind": "Pod",\n "a": NaN}', "2: not valid JSON: JSON has no NaN and no Infinity, at column 7"),
        (b'{"kind": "Pod",\n "a": -Infinity}', "2: not valid JSON: JSON has no NaN and no Infinity, at column 8"),
        (b'{"kind": "Pod",\n "a": [1,]}', "2: not valid JSON: trailing comma in array, at column 10"),
        (b'{"kind": "Pod",\n}', "2: not valid JSON: trailing comma in object, at column 1"),
        (b'{"kind": "Pod"\n "a": 1}', "2: not valid JSON: expected ',' or '}', at column 2"),
        (b'{"kind": "Pod",\n "a": [1', "2: not valid JSON: it ends in the middle of a value, at column 9"),
        (b"{'kind': 1}", "1: not valid JSON: strings are written in double quotes, at column 2"),
        (b'{"kind": "P\nod"}', "1: not valid JSON: a string holds a raw control character or line end, at column 12"),
        (b'{"kind": "Pod", "a": "\xc3\xa9\xff"}', "1: not valid UTF-8, at column 24"),
        (b'{"kind": "A"}\n{"kind": "B"}\n\n{"kind": tru}', "4: not valid JSON: invalid character 'r', at column 11"),
        (
            b'{"kind": "List", "items": [{"kind": "Pod"},{}]}',
            '1: items[1]: no "kind", so this is not a Kubernetes object',
        ),
        (b'{"kind": "List", "items": 5}', "1: items: not an array"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "1: not valid JSON: it is nested too deeply"),
        (b"[1]", "1: items[0]: not an object, so this is not a Kubernetes object"),
        (b'{"kind": 5}', "1: kind and apiVersion are strings, so this is not a Kubernetes object"),
    ],
)  # fmt: skip
def test_errors(text: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        objects_of(text)
    assert str(caught.value) == f"a.json:{message}"


@pytest.mark.parametrize(
    ("bad", "what"), [("NaN", "JSON has no NaN and no Infinity"), ("[1,]", "trailing comma in array")]
)
def test_errors_in_a_long_list_name_the_line(tmp_path: Path, bad: str, what: str) -> None:
    text = one_per_line([{"kind": "Pod", "a": number} for number in range(300)])
    path = tmp_path / "a.json"
    path.write_text(text.replace('"a": 200}', f'"a": {bad}}}'))
    with path.open("rb") as file, pytest.raises(InputError) as caught:
        list(JsonStream(file, source="a.json", path=path, chunk=500, small=300).batches())
    assert caught.value.place.line == 202
    assert what in str(caught.value)


def test_every_object_of_a_long_list_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(indented(4)([{"kind": "Pod", "a": {"b": number}} for number in range(60)]))
    with path.open("rb") as file:
        stream = JsonStream(file, source="a.json", path=path, chunk=400, small=300)
        items = []
        for batch in stream.batches():
            objects = batch.decode(OBJECTS)
            items += [(item["a"]["b"], batch.origin.place(index).line) for index, item in enumerate(objects)]
    assert items == [(number, 4 + 6 * number) for number in range(60)]


def test_an_object_of_the_wrong_shape_is_named() -> None:
    class Pod(msgspec.Struct):
        replicas: int

    (batch,) = batches('{"kind": "Pod", "metadata": {"name": "a", "namespace": "b"},\n "replicas": "3"}')
    with pytest.raises(msgspec.ValidationError) as caught:
        batch.decode(msgspec.json.Decoder(list[Pod]))
    assert str(batch.invalid(caught.value)) == "a.json:1: Pod b/a: replicas: expected a whole number, found a string"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000])
def test_an_endless_number_is_an_error_with_its_field(number: str) -> None:
    text = f'{{"kind":"Pod","metadata":{{"name":"a"}},"spec":{{"hosts":[1,{{"x":{number}}},{number}]}}}}'.encode()
    (batch,) = JsonStream(io.BytesIO(text), source="a.json").batches()
    with pytest.raises(msgspec.ValidationError) as caught:
        batch.decode(msgspec.json.Decoder(list[object]))
    result = str(batch.invalid(caught.value))
    assert result.startswith("a.json:1: Pod a: spec.hosts[1].x: ")
    assert result.endswith(" out of range")

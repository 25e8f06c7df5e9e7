"""YAML documents: structure as in kubectl, line numbers, and attacks that are refused quickly."""

from __future__ import annotations

import time
import tracemalloc
from functools import partial

import pytest

from kschedx.errors import InputError
from kschedx.sources import yaml as yaml_text
from kschedx.sources.yaml import Value, load, split


def values(text: str) -> list[Value]:
    documents = [load(document, source="a.yaml") for document in split(text.encode(), source="a.yaml")]
    return [document.value for document in documents if document is not None]


def value(text: str) -> Value:
    (only,) = values(text)
    return only


def message(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(InputError) as caught:
        list(map(partial(load, source="a.yaml"), split(data, source="a.yaml")))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a: "8080"', {"a": "8080"}),
        ("a: '0777'", {"a": "0777"}),
        ('a: "yes"\nb: "null"\nc: ""', {"a": "yes", "b": "null", "c": ""}),
        ("a:\nb: ~", {"a": None, "b": None}),
        ("a: |\n  yes\n  # no comment\nb: >-\n  x\n  y", {"a": "yes\n# no comment\n", "b": "x y"}),
        ("a: x # comment", {"a": "x"}),
        ("a: é 日本 😀", {"a": "é 日本 😀"}),
        ("yes: 1\n8080: 2\n'on': 3\n1.50: 4", {"true": 1, "8080": 2, "on": 3, "1.5": 4}),
        ("- 1\n- [a, {b: c}]", [1, ["a", {"b": "c"}]]),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x 0777\nb: *x\n*x : c", {"a": 511, "b": 511, "511": "c"}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("a: !!str 0777\nb: !!map {c: d}\ne: !custom 5", {"a": "0777", "b": {"c": "d"}, "e": "5"}),
        ("a: !!python/object/apply:os.system [ls]", {"a": ["ls"]}),
        ("a: 1\r\nb: |\r\n  x\r\n", {"a": 1, "b": "x\n"}),
        ("\ufeffa: 1", {"a": 1}),
        ("? a\n: b", {"a": "b"}),
        ("a: -b", {"a": "-b"}),
    ],
)  # fmt: skip
def test_readings(text: str, expected: Value) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x {k: 1, l: 1}\nb: {<<: *x, k: 2}", {"k": 2, "l": 1}),
        # go-yaml v2 merges where the key stands, so that what follows wins, whatever YAML says
        ("a: &x {k: 1, l: 1}\nb: {k: 2, <<: *x}", {"k": 1, "l": 1}),
        ("a: &x {k: 1}\nb: {<<: [*x, {k: 3, m: 3}]}", {"k": 1, "m": 3}),
        ("a: 0\nb: {<<: {k: 1}}", {"k": 1}),
        ("a: 0\nb: {'<<': {k: 1}}", {"<<": {"k": 1}}),
    ],
)
def test_merge_keys(text: str, expected: Value) -> None:
    result = value(text)
    assert isinstance(result, dict)
    assert result["b"] == expected


def test_documents_and_their_lines() -> None:
    text = "# a comment\n---\n\nkind: A\n--- # another\n---\n# nothing\n---\nnull\n---\n# x\nkind: List\n"
    text += "items:\n- 1\n\n- a:\n    2\n"
    documents = [load(document, source="a.yaml") for document in split(text.encode(), source="a.yaml")]
    items = [(document.value, document.line, document.item_lines) for document in documents if document is not None]
    assert items == [({"kind": "A"}, 4, ()), ({"kind": "List", "items": [1, {"a": 2}]}, 12, (14, 16))]


def test_separators_with_carriage_returns_and_directives() -> None:
    assert values("%YAML 1.1\r\n---\r\na: 1\r\n---\r\nb: 2\r\n---\r\n") == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", ["", "\n", "# x", "---\n", "---\n---\n# x\n  \n", "null\n"])
def test_empty_documents(text: str) -> None:
    assert values(text) == []


NO_TOKEN = "found character that cannot start any token (while scanning for the next token)"
NO_QUOTE = "found unexpected end of stream (while scanning a quoted scalar)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  b: 1\n  c: 2\n  b: 3", '4: key "b" is written twice (first on line 2)'),
        ("x: 1\n---\n\na: {b: 1, b: 2}", '4: key "b" is written twice (first on line 4)'),
        ("1: a\n'1': b", '2: key "1" is written twice (first on line 1)'),
        ("yes: a\non: b", '2: key "true" is written twice (first on line 1)'),
        ("a: 1\n b: 2", "2: not valid YAML: mapping values are not allowed in this context, at column 3"),
        ("a:\n\tb: 1", f"2: not valid YAML: {NO_TOKEN}, at column 1 (YAML is indented with spaces, not with tabs)"),
        ("a: @b", f"1: not valid YAML: {NO_TOKEN}, at column 4"),
        ("a: 'b\nc: d\n", f"2: not valid YAML: {NO_QUOTE}, at column 1"),
        ("a: 1\n...\nb: 2", "3: not valid YAML: did not find expected <document start>, at column 1"),
        ("a: 1\n--- b\nc: 2", "2: 'b' on the line of a document separator: only a comment may follow ---"),
        ("a: *b", "1: *b is used, but there is no &b before it"),
        ("a: &b\n  c: *b", "2: &b contains itself"),
        ("{a: 1}: b", "1: a mapping or sequence cannot be a key (quote it, if braces are part of the text)"),
        ("a: 1\n~: b", "2: null cannot be a key"),
        ("a: 1\nb: .inf", "2: .inf cannot be used: JSON has no such number"),
        ("a: 1\nb: !!int x", '2: "x" is no !!int'),
        ("a:\n  <<: 5", "2: << takes a mapping or a sequence of mappings"),
        (b"a: 1\nb: \xff", "2: not valid UTF-8"),
        (b"a: 1\nb: \x01", "2: not valid YAML: unacceptable character #x0001: control characters are not allowed"),
    ],
)  # fmt: skip
def test_errors(text: str | bytes, expected: str) -> None:
    assert message(text) == f"a.yaml:{expected}"


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LINES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LAUGHS, "aliases repeat too much of the document"),
        (LINES, "aliases repeat too much of the document"),
        ("a: " + "[" * 200_000, "nested more than 200 deep"),
        ("a: " + "{a: " * 200_000, "nested more than 200 deep"),
        ("- " * 200_000, "nested more than 200 deep"),
        ("".join(" " * n + "a:\n" for n in range(500)), "nested more than 200 deep"),
    ],
    ids=["laughs", "lines", "brackets", "braces", "dashes", "indents"],
)
def test_attacks_are_refused_quickly(text: str, expected: str) -> None:
    start = time.monotonic()
    assert expected in message(text)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\na: &a [" + "x" * 3000 + "]\nb: [" + "*a, " * 400 + "]\n",
        "kind: Pod\na: &a {b: " + "x" * 3000 + "}\nb:\n" + "- <<: *a\n" * 400,
        "kind: Pod\na: &a " + "x" * 30_000 + "\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b]\n",
    ],
)
def test_repeated_aliases_of_a_long_text_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert value(text)
    monkeypatch.setattr(yaml_text, "_MAX_REPEATED", 900_000)
    assert "aliases repeat more than" in message(text)


def test_a_long_document_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MAX_DOCUMENT", 2 << 20)
    assert value("a: " + "b" * (1 << 20))
    assert message("a: b\n---\nc: " + "d" * (3 << 20)) == (
        "a.yaml:2: a YAML document of more than 2 MB that cannot be read in pieces "
        "(lists can be longer, as `kubectl get -o yaml` writes them)"
    )


@pytest.mark.parametrize("between", ["\n" * 500_000, "---\n" * 125_000, "# a\n" * 125_000, " " * 500_000])
def test_long_empty_input_needs_no_memory(between: str) -> None:
    text = f"a: 1\n---\n{between}\n---\nb: 2\n".encode()
    tracemalloc.start()
    items = [(document.number, document.line) for document in split(text, source="a.yaml")]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert items[0] == (1, 1)
    assert items[1] == (2, 4 + between.count("\n"))
    assert peak < 3 * len(text)


def test_ordinary_aliases_are_no_attack() -> None:
    text = "base: &base {a: 1, b: {c: 2}}\nitems:\n" + "- <<: *base\n" * 300
    result = value(text)
    assert isinstance(result, dict)
    assert result["items"] == [{"a": 1, "b": {"c": 2}}] * 300

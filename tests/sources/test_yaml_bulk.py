"""YAML is read block by block if that is safe, with the same result as PyYAML."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import InputError, Place
from kschedx.sources import yaml as yaml_text
from kschedx.sources import yaml_blocks
from kschedx.sources.yaml_blocks import read

OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
Found = list[tuple[dict[str, Any], Place]] | str


def read_all(text: str | bytes) -> Found:
    """Return the objects with their places, or the error."""
    data = text if isinstance(text, bytes) else text.encode()
    try:
        batches = [(batch.origin, batch.decode(OBJECTS)) for batch in read(data, source="a.yaml")]
    except InputError as error:
        return str(error)
    return [(result, origin.place(index)) for origin, objects in batches for index, result in enumerate(objects)]


def both(text: str | bytes) -> tuple[Found, Found]:
    """Return the results of reading by blocks, in small pieces, and by PyYAML alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_blocks, "_PIECE", 200)
        fast = read_all(text)
        patch.setattr(yaml_blocks, "_document", lambda document, source, _: yaml_blocks._exactly(document, source))
        return fast, read_all(text)


WORDS = [
    "yes", "no", "on", "off", "y", "n", "Y", "N", "true", "True", "TRUE", "false", "False", "null", "Null", "NULL", "~",
    "0777", "0o777", "0x1F", "0b11", "-0x1F", "+5", "-0", "00", "08", "1_000", "1e3", "1E3", "1e400", ".5", "5.", "-.5",
    "1.0", "0.10", "+.5", ".inf", "-.INF", ".nan", "inf", "nan", "NaN", "infinity", "-inf", "12:30", "1:2:3",
    "2001-01-01", "1.2.3", "100m", "1Gi", "8080", "18446744073709551615", "a", "a:b", "a#b", "-a", "?a", "[]", "{}",
    "a,b", "<<", "-c", "--a", "--1", "---", "./a",
]  # fmt: skip
VALUES_IN_YAML = [
    "", "&x y\n  b: *x", "*nowhere", "!!binary aGk=", "@a", "`a", "a\tb", "\u2028x", "x\u0085y", "é 日本 😀",
    '"\\u2028"', '"a\\tb\\x01\\0\\e"', '"a\n    b"', "a\n    b", "'it''s'", '"', "{a: 1, a: 2}", "{<<: {a: 1}}",
    "{b: [c, {d: e}]}",
    "[a", "|+\n    a\n\n", "|2-\n     a\n    b", "|\n    - kind: Pod\n    ---x", "? c\n    : d", "a: b", "- b",
    "|\n    a\n\n      b\n    c\n", "|-\n    a\n   b", "|\n   \n    a", "a b\n    c: d", "'a\n    ''b: c'",
    "a\n    # b\n    c", "\n    b: 1\n   c: 2", "\n    - b\n   - c", "\n  - b\n  - c: d\n    e:\n    - f\n    -   g: h",
    "\n    b: 1\n    b: 2", "\n  - - a\n    - b", "\n  -\n  - b", "\n    b:\n    - c\n  d: e", "\n  # b\n    c: d",
    "\n    .: {}\n    k:{\"a\":\"b\"}: {}\n    k:{\"a\":\"c\"}: {}", "\n    - b: c\n    #   d: e\n      f: g",
    '"- kind: Pod\n\n- x"', '"\n- kind: Pod"', "12345678901234567890",
]  # fmt: skip


@pytest.mark.parametrize(
    "form", ["{}", '"{}"', "'{}'", "{} # c", "\n    {}", "[{}]", "[ {} , 1]", "|\n    {}", ">-\n    {}", "!!str {}"]
)
def test_a_word_at_any_place(form: str) -> None:
    for word in WORDS:
        spec = form.replace("{}", word, 1)
        fast, exact = both(
            f"kind: List\nitems:\n- kind: Pod\n  a: {spec}\n- kind: Node\n  {word.strip('[]{}') or 'k'}: x\n"
        )
        assert fast == exact, word


@pytest.mark.parametrize("value", VALUES_IN_YAML)
@pytest.mark.parametrize("indent", ["", "  "])
def test_a_value_of_any_style(value: str, indent: str) -> None:
    item = f"- kind: Pod\n  a: {value}\n".replace("\n", "\n" + indent).rstrip(" ")
    fast, exact = both(f"items:\n{indent}- kind: Node\n{indent}{item}{indent}- kind: Pod\nkind: List\n")
    assert fast == exact


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\na: 1\n---\n# c\nkind: Pod\na: yes\n---\nkind: Node\nb: 1\nb: 2\n",
        "kind: PodList\napiVersion: v1\nitems:\n- a: 1\n- a: 2\n---\nkind: Node\n",
        "kind: List\nitems:\n- kind: List\n  items:\n  - kind: Pod\n  - kind: Node\n- kind: Pod\n",
        "kind: List\nitems:\n- kind: Pod\n- metadata: {}\n",
        "kind: List\nitems:\n- kind: Pod\n- 5\n",
        "kind: List\nitems:\n- kind: &k Pod\n- kind: *k\n",
        "kind: List\nitems:\n- kind: Pod\nitems:\n- kind: Node\n",
        "kind: List\nitems:\n- kind: Pod\nother:\n- kind: Node\n",
        "kind: List\nitems:\n# comment\n- kind: Pod\n\n# comment\n- kind: Node\n# comment\n",
        "kind: ConfigMap\nitems:\n- kind: Pod\n",
        "kind: List\nitems:\n- kind: Pod\n  b: 1\n...\n",
        "kind: List\r\nitems:\r\n- kind: Pod\r\n- kind: Node\r\n",
        b"kind: List\nitems:\n- kind: Pod\n  a: \xff\n",
        "kind: List\nitems:\n- kind: Pod\n- kind: Node\n\tb: 1\n",
        "kind: List\nitems:\n" + "- kind: Pod\n  a: " + "[" * 100 + "]" * 100 + "\n",
        "kind: List\nitems:\n" + "- kind: Pod\n  a: " + "[" * 300 + "]" * 300 + "\n",
        "- kind: Pod\n- kind: Node\n  a: 0777\n",
        *(f"kind: List\nitems:\n- kind: Pod\n  a: {mark}b\n" for mark in "]}"),
        *(f"kind: List\nitems:\n- kind: Pod\n  {mark}a: b\n" for mark in "]}"),
        *(f"kind: List\nitems:\n- kind: Pod\n  a:\n  - '{mark}b'\n  - c\n    {mark}d\n" for mark in "]}"),
        "kind: List\nmetadata: &m {a: 1}\nitems:\n- kind: Pod\n- kind: Node\n  m: *m\n",
    ],
)
def test_documents(text: str | bytes) -> None:
    fast, exact = both(text)
    assert fast == exact


TEXTS = st.one_of(
    st.sampled_from(WORDS),
    st.text(st.sampled_from("ab:-#'\"\\ \n,[]{}&*!|>%@`é\t0.~"), max_size=12),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def dumps() -> Iterator[Any]:
    for style in (None, '"', "'", "|", ">"):
        for flow in (False, None):
            yield style, flow


@given(
    items=st.lists(st.fixed_dictionaries({"kind": st.just("Pod"), "spec": VALUES}), min_size=1, max_size=5),
    style=st.sampled_from(list(dumps())),
    width=st.sampled_from([20, 1000]),
)
def test_output_of_pyyaml(items: list[dict[str, Any]], style: Any, width: int) -> None:
    scalar, flow = style
    text = yaml.dump(
        {"items": items, "kind": "List"}, Dumper=_Dumper, default_style=scalar, default_flow_style=flow, width=width,
        allow_unicode=True,
    )  # fmt: skip
    fast, exact = both(text)
    assert fast == exact


ENTRIES = """\
  metadata:
    annotations:
      applied: |
        {"a": 1}

    name: web-0
    uid: 12e45678
  spec:
    containers:
    - name: app
      args:
      - -c
      - 'it''s: a text
        that goes on'
      command: ["sh", -c, 'it''s', 5, on]
      ports:
      - containerPort: 8080
    tolerations: []
    nodeSelector: {disk: ssd, "zone": "a", list: [1, {b: 2}]}
    priority: -10
  status:
    message: a text
      that goes on
    startTime: "2026-11-10T00:00:12Z"
"""
TOKENS = [
    *"\"'|>[]{}~\t#\\",
    "&a ",
    "*a",
    "- ",
    "  ",
    "\n",
    ": ",
    " #",
    "é",
    "0777",
    "<<: ",
    "!!str ",
    "? ",
    "---",
    "yes",
]


COMMENTED = """\
  metadata:
    # a comment: it's here
    name: web-0  # "and here
  spec:
  # outside
    containers:  # two
    - name: app#1 # x
      image: "nginx # 1"  # y

      command: [sh, "-c # d"] # z
      # last
    # less
    tolerations:
    # before
    - key: a
      # inside
      value: 'b # c' # d
"""


@pytest.mark.parametrize("entries", [ENTRIES, COMMENTED])
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(ENTRIES)), st.integers(0, 4), st.sampled_from(["", *TOKENS])), max_size=4
    ),
    start=st.integers(0, 12),
)
def test_malformed_blocks(entries: str, edits: list[tuple[int, int, str]], start: int) -> None:
    """After any replacement, removal, or insertion the result equals that of PyYAML, errors included."""
    text = "".join(entries.splitlines(keepends=True)[start:])
    for at, length, inserted in edits:
        text = text[:at] + inserted + text[at + length :]
    fast, exact = both(f"kind: List\nitems:\n- kind: Pod\n{text}\n- kind: Node\n")
    # of two errors, any may be reported; after a comment behind its dash, an item has the comment's line
    assert isinstance(fast, str) == isinstance(exact, str)
    if not isinstance(fast, str) and not isinstance(exact, str):
        assert [value for value, _ in fast] == [value for value, _ in exact]


OTHER_LINES = ["x", "y", "x,z", "yes", '"<0>"', "'a>'", "[x]", "z: x", "- x"]
"""The value of a line, or its key and value."""
ENTRIES_OF_SOME_LINES = [
    ENTRIES,
    COMMENTED,
    "  a: {b: c,\n    d: e\n    }\n",
    "  a: {b: c,\n    d: e}\n",
    "  a: [{b: c},\n    d: e\n    ]\n",
    "  a: b\n    c\n    - d\n  e: f\n",
    "  'a': \"b\n    c: d\n    e\"\n  f: g\n",
    "  a: |\n    c: d\n    - e\n  b: '<0>'\n",
    "  a: &c\n    d: e\n  b: *c\n  f: g\n",
    "  - - a\n    - b: c\n      d: e\n",
    "  ? a\n  : b\n  c: d\n",
]


@pytest.mark.parametrize("entries", ENTRIES_OF_SOME_LINES)
@given(
    start=st.integers(0, 12),
    changed=st.lists(st.integers(0, 20), min_size=1, max_size=2),
    objects=st.lists(st.tuples(*[st.sampled_from(OTHER_LINES)] * 2), min_size=3, max_size=8),
)
def test_similar_objects(entries: str, start: int, changed: list[int], objects: list[tuple[str, str]]) -> None:
    """Objects that differ in the values of some lines are read as if each was alone."""
    text = entries.splitlines()
    text = text[start % len(text) :]
    written = "kind: List\nitems:\n"
    for values in objects:
        lines = ["- kind: Pod", *text]
        for index, value in zip(changed, values, strict=False):
            line = text[index % len(text)]
            indent = len(line) - len(line.lstrip())
            kept = indent if value.startswith(("z", "-")) else max(line.rfind(": "), line.rfind("- "), indent - 2) + 2
            lines[1 + index % len(text)] = line[:kept] + value
        written += "\n".join(lines) + "\n"
    fast, exact = both(written)
    assert isinstance(fast, str) == isinstance(exact, str)
    if not isinstance(fast, str) and not isinstance(exact, str):
        assert [value for value, _ in fast] == [value for value, _ in exact]


def test_similar_objects_with_fields_in_another_order() -> None:
    fields = ["a: 1\n  b: 2", "a: 3\n  b: 4", "a: 5\n  b: 6", "b: 6\n  a: 5"]
    fast, exact = both("kind: List\nitems:\n" + "".join(f"- kind: Pod\n  {field}\n" for field in fields))
    assert fast == exact


def test_dumps_are_read_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump of kubectl and a sequence of documents are read without PyYAML."""
    item = (
        '- apiVersion: v1\n  kind: Pod\n  metadata:\n    labels:\n      a: "8080"\n      b: "yes"\n      c: "0777"\n'
        '    name: x\n  status:\n    conditions:\n    - status: "True"\n    startTime: "2024-01-01T00:00:00Z"\n'
    )
    read_by_pyyaml: list[bytes] = []

    def load(text: yaml_text.DocumentText, *, source: str) -> yaml_text.YamlDocument | None:
        read_by_pyyaml.append(text.text)
        return yaml_text.load(text, source=source)

    monkeypatch.setattr(yaml_blocks, "load", load)
    for count in (3, 3000):
        text = "apiVersion: v1\nitems:\n" + item * count + 'kind: List\nmetadata:\n  resourceVersion: ""\n'
        assert len(read_all(text)) == count
    assert len(read_all("# pods\nkind: Pod\n---\nkind: Pod\n---\n\n# one more\nkind: Pod\n")) == 3
    assert len(read_all("kind: Pod\n" + COMMENTED.replace("\n  ", "\n").replace("app#1", "app")[2:])) == 1
    assert not read_by_pyyaml


def test_lines_of_items() -> None:
    text = "items:\n" + "- kind: Pod\n  a: 1\n" * 20_000 + "kind: List\n"
    objects_read = read_all(text)
    assert not isinstance(objects_read, str)
    assert [place.line for _, place in objects_read] == list(range(2, 40_002, 2))


MARKS = [
    "@ b", "@b", "`", "% b", "? b", "?", "*", "* b", "*= b", "*&", "&", "& b", "&&", "&& b", "&=", "!", "! b", "!=",
    "!= b", "!&", ":", ": b", ":b", ":=", "x && b", "x & b", "x * b", "x != b", "x : b", "[::]:80", "a=[::]", "\b",
    "\x7f", "\x85", "\x9f", "\ufeff", "\ufffe",
]  # fmt: skip
FORMS = [
    "a: {}\nc: d\n", "a:\n- {}\n", "{}: d\n", "a: [{}]\n", "a: [x, {}, y]\n", "a: {{b: {}}}\n", "a: x {}\n",
    "a:\n  b\n  {}\n", "? {}\n: d\n", "a: {{{}: d}}\n", "a: {{? {}, e: f}}\n", 'a: "x" {}\n', "a:{}\n", "a: |\n  {}\n",
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("before", ["kind: Pod\n", ""])
def test_a_special_character_at_any_place(mark: str, before: str) -> None:
    for form in FORMS:
        fast, exact = both(before + form.format(mark))
        assert fast == exact


ITEM = "- kind: Pod\n  metadata: {name: a}\n"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("- kind: Pod\n  a: [1\n", "not valid YAML: did not find expected"),
        ("- kind: Pod\n  a: *b\n", "*b is used, but there is no &b before it"),
        ("- kind: Pod\n  a: " + "[" * 300 + "]" * 300 + "\n", "nested more than 200 deep"),
        ("- 5\n", "not an object, so this is not a Kubernetes object"),
    ],
)
def test_an_error_in_a_list_that_is_too_long_to_be_read_at_once(
    monkeypatch: pytest.MonkeyPatch, item: str, problem: str
) -> None:
    monkeypatch.setattr(yaml_blocks, "_PIECE", 1000)
    monkeypatch.setattr(yaml_blocks, "MAX_DOCUMENT", 2000)
    objects_read = read_all("kind: List\nitems:\n" + ITEM * 100 + item + ITEM * 100)
    assert isinstance(objects_read, str)
    assert problem in objects_read
    assert objects_read.startswith(("a.yaml:203", "a.yaml:204", "a.yaml:205"))


@pytest.mark.parametrize("unit", ["1_", "0_", "_", "12:", "0x", "1.", "'01'\n-\t"])
def test_a_long_scalar_is_read_quickly(unit: str) -> None:
    started = time.monotonic()
    objects_read = read_all(f"kind: Pod\na: {unit * 150_000}x\nb: c\n")
    assert time.monotonic() - started < 5
    assert isinstance(objects_read, str) or objects_read[0][0]["a"] == unit * 150_000 + "x"


def test_many_ambiguous_words() -> None:
    words = "\n".join(f'- "0{number:o}"' for number in range(30_000))
    started = time.monotonic()
    objects_read = read_all(f"kind: Pod\na:\n{words}\n")
    assert time.monotonic() - started < 5
    assert not isinstance(objects_read, str)
    assert objects_read[0][0]["a"][:3] == ["00", "01", "02"]

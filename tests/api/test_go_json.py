"""JSON is read as Go's encoding/json reads it, and refused in its words."""

from __future__ import annotations

import pytest

from kschedx.kube.go_json import BOOL, INT64, STRING, GoJSONError, Map, Record, Slice, Text, decode_first

INNER = Record("v1.Inner", {"count": INT64, "flag": BOOL, "kind": Text("v1.Kind")})
OUTER = Record(
    "v1.Outer",
    {
        "Name": STRING,
        "Names": Slice(STRING),
        "Inner": INNER,
        "Many": Slice(INNER),
        "Map": Map(STRING, "v1.StringMap"),
        "kind": STRING,
    },
    embedded={"kind": "TypeMeta"},
)

READ = [
    ("{}", {}),
    ("null", None),
    ('{"Name": "a", "unknown": [1, {"x": NaN0}]}'.replace("NaN0", "0"), {"Name": "a"}),
    ('{"name": "a", "NAMES": ["b"]}', {"Name": "a", "Names": ["b"]}),
    ('{"Name": "a", "name": "b"}', {"Name": "b"}),
    ('{"\u017fame": "no", "Name\u212a": "no"}', {}),
    ('{"Map": {"a": "1"}, "map": {"b": "2"}}', {"Map": {"a": "1", "b": "2"}}),
    ('{"Inner": {"count": 1}, "inner": {"flag": true}}', {"Inner": {"count": 1, "flag": True}}),
    ('{"Names": ["a"], "names": null}', {"Names": None}),
    ('{"Name": "a", "name": null}', {"Name": "a"}),
    ('{"Name": "a"} and what follows', {"Name": "a"}),
    ('{"Names": ["a", "b"], "names": [null]}', {"Names": ["a"]}),
    ('{"Many": [{"count": 1}, {"count": 2}], "many": [{"flag": true}]}', {"Many": [{"count": 1, "flag": True}]}),
    ('{"Name": "\\ud800x\\ud83d\\ude00"}', {"Name": "\ufffdx\U0001f600"}),
]


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_values(text: str, value: object) -> None:
    assert decode_first(text.encode(), OUTER) == value


def test_bytes_that_are_no_utf8_are_replaced_one_by_one() -> None:
    assert decode_first(b'{"Name": "\xe2\x82x"}', OUTER) == {"Name": "\ufffd\ufffdx"}


REFUSED = [
    ("", "EOF"),
    ("  \n", "EOF"),
    ("{", "unexpected EOF"),
    ('{"Name": "a', "unexpected EOF"),
    ("tru", "unexpected EOF"),
    ("oops", "invalid character 'o' looking for beginning of value"),
    ("<html>", "invalid character '<' looking for beginning of value"),
    ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
    ("'a'", "invalid character '\\'' looking for beginning of value"),
    ("[1, ]", "invalid character ']' looking for beginning of value"),
    ("NaN", "invalid character 'N' looking for beginning of value"),
    ("nul", "unexpected EOF"),
    ("nulo", "invalid character 'o' in literal null (expecting 'l')"),
    ("[truth]", "invalid character 't' in literal true (expecting 'e')"),
    ("{1: 2}", "invalid character '1' looking for beginning of object key string"),
    ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
    ('{"a" 1}', "invalid character '1' after object key"),
    ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
    ("[1 2]", "invalid character '2' after array element"),
    ("[01]", "invalid character '1' after array element"),
    ("[-]", "invalid character ']' in numeric literal"),
    ("[1.]", "invalid character ']' after decimal point in numeric literal"),
    ("1.", "unexpected EOF"),
    ("1. ", "invalid character ' ' after decimal point in numeric literal"),
    ("[1ex]", "invalid character 'x' in exponent of numeric literal"),
    ('["\t"]', "invalid character '\\t' in string literal"),
    ('["\x01"]', "invalid character '\\x01' in string literal"),
    ('["\\x"]', "invalid character 'x' in string escape code"),
    ('["\\u12g4"]', "invalid character 'g' in \\u hexadecimal character escape"),
    ("[" * 20_000, "exceeded max depth"),
    ("[]", "json: cannot unmarshal array into Go value of type v1.Outer"),
    ("42", "json: cannot unmarshal number into Go value of type v1.Outer"),
    ("1.5.", "json: cannot unmarshal number into Go value of type v1.Outer"),
    ('"x"', "json: cannot unmarshal string into Go value of type v1.Outer"),
    ("true", "json: cannot unmarshal bool into Go value of type v1.Outer"),
    ('{"Name": 1}', "json: cannot unmarshal number into Go struct field Outer.Name of type string"),
    ('{"Names": {}}', "json: cannot unmarshal object into Go struct field Outer.Names of type []string"),
    ('{"Names": ["a", 1]}', "json: cannot unmarshal number into Go struct field Outer.Names of type string"),
    ('{"Map": []}', "json: cannot unmarshal array into Go struct field Outer.Map of type v1.StringMap"),
    (
        '{"Inner": {"count": 1.5}}',
        "json: cannot unmarshal number 1.5 into Go struct field Inner.Inner.count of type int64",
    ),
    (
        '{"Inner": {"count": 9223372036854775808}}',
        "json: cannot unmarshal number 9223372036854775808 into Go struct field Inner.Inner.count of type int64",
    ),
    ('{"Many": [{"kind": []}]}', "json: cannot unmarshal array into Go struct field Inner.Many.kind of type v1.Kind"),
    ('{"kind": 1}', "json: cannot unmarshal number into Go struct field Outer.TypeMeta.kind of type string"),
    ('{"Name": 1, "Names": 2}', "json: cannot unmarshal number into Go struct field Outer.Name of type string"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(GoJSONError) as refused:
        decode_first(text.encode(), OUTER)
    assert str(refused.value) == words


def test_a_text_that_was_cut_off_says_what_cut_it() -> None:
    for text in (b"", b'{"Name": "a"', b"42"):
        with pytest.raises(GoJSONError, match="read: connection reset by peer"):
            decode_first(text, INT64, ended="read: connection reset by peer")
    assert decode_first(b'{"Name": "a"}', OUTER, ended="unexpected EOF") == {"Name": "a"}

"""JSON as Go's encoding/json reads it into typed values, with the words of its errors.

`syntax` finds the first value of a text, `types` says what it is read into, and `decoding` reads it. Upstream: Decoder
in encoding/json (stream.go, scanner.go, decode.go).
"""

from kschedx.api.go_json.decoding import decode_first
from kschedx.api.go_json.syntax import GoJSONError
from kschedx.api.go_json.types import BOOL, INT32, INT64, STRING, Custom, Go, Integer, Map, Record, Slice, Text

__all__ = [
    "BOOL",
    "INT32",
    "INT64",
    "STRING",
    "Custom",
    "Go",
    "GoJSONError",
    "Integer",
    "Map",
    "Record",
    "Slice",
    "Text",
    "decode_first",
]

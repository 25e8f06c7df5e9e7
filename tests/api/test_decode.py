"""Decoding of JSON to records: every mismatch is an error of the input."""

from __future__ import annotations

import pytest

from kschedx.errors import InputError
from kschedx.kube.decoding import decode
from kschedx.kube.devices import ResourceSliceSpec
from kschedx.kube.types import PodSpec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"priority": "5"}', "priority: expected a whole number, found a string"),
        (b'{"affinity": {"nodeAffinity": 5}}', "affinity.nodeAffinity: expected a mapping, found a whole number"),
        (b'{"priority": 5', "not valid JSON: Input data was truncated"),
        (b'{"priority": 9223372036854775808}', "priority: expected a whole number <= 2147483647"),
        (b'{"schedulerName": "\xff"}', "not valid UTF-8"),
        (b'{"affinity": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b'{"affinity": ' + b'{"a":[' * 300 + b"]}" * 300 + b', "priority": "a"}', "nested too deeply"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
    ],
)
def test_errors_of_decoding(text: bytes, message: str) -> None:
    with pytest.raises(InputError) as error:
        decode(text, PodSpec)
    assert message in str(error.value)


def test_an_error_in_a_list_of_a_map_names_its_key() -> None:
    data = b'{"devices": [{"capacity": {"a": {"requestPolicy": {"validValues": []}}, "b": {"requestPolicy": '
    data += b'{"validValues": ["1", {}]}}}}]}'
    with pytest.raises(InputError, match=r"^devices\[0\]\.capacity\.b\.requestPolicy\.validValues\[1\]: expected"):
        decode(data, ResourceSliceSpec)


def test_null_equals_a_missing_field() -> None:
    assert decode(b'{"schedulerName": null, "tolerations": [{"key": null}, null]}', PodSpec) == decode(
        b'{"tolerations": [{}, {}]}', PodSpec
    )

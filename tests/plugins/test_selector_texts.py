"""kube-scheduler's errors for selectors with strings of several parts; `selector_texts.json` records those of 1.36."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kschedx.cel.devices import DeviceProgram
from kschedx.kube.decoding import decode
from kschedx.kube.devices import CompileError, Device, EvaluationError, Features

FEATURES = Features(multiple_allocations=False, reads_multiple_allocations=False, includes=False, list_attributes=False)
DEVICE = decode(
    b"""{"name": "d", "attributes": {"a": {"string": "x"}, "b": {"int": 4}, "v": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "40Gi"}}}""",
    Device,
)
RECORDED = [
    (item["expression"], item["says"])
    for item in json.loads((Path(__file__).parent / "selector_texts.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("expression", "expected"), RECORDED, ids=[expression for expression, _ in RECORDED])
def test_an_error_has_kube_schedulers_text(expression: str, expected: str) -> None:
    with pytest.raises((CompileError, EvaluationError)) as error:
        DeviceProgram(expression, FEATURES).matches(DEVICE, "gpu.example.com")
    text = str(error.value)
    kind = "compile" if isinstance(error.value, CompileError) else "runtime"
    assert f"CEL {kind} error: {text}".startswith(expected), text

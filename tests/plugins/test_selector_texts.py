"""What kube-scheduler says of selectors that build, read or mix texts: `selector_texts.json` is what 1.36 said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kschedx.cel.devices import DeviceProgram
from kschedx.kube.decoding import decode
from kschedx.kube.devices import CompileError, Device, EvaluationError, Features

FEATURES = Features(consumable_capacity=False, list_attributes=False)
DEVICE = decode(
    b"""{"name": "d", "attributes": {"a": {"string": "x"}, "b": {"int": 4}, "v": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "40Gi"}}}""",
    Device,
)
SAID = [
    (item["expression"], item["says"])
    for item in json.loads((Path(__file__).parent / "selector_texts.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("expression", "says"), SAID, ids=[expression for expression, _ in SAID])
def test_it_is_said_as_kube_scheduler_says_it(expression: str, says: str) -> None:
    with pytest.raises((CompileError, EvaluationError)) as caught:
        DeviceProgram(expression, FEATURES).matches(DEVICE, "gpu.example.com")
    text = str(caught.value)
    kind = "compile" if isinstance(caught.value, CompileError) else "runtime"
    assert f"CEL {kind} error: {text}".startswith(says), text

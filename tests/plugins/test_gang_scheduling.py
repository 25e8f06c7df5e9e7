"""Pods of 1.35 that name a Workload: who decides about them looks at objects that are not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import node, pod
from tests.command import kschedx

ON = {"GenericWorkload": True, "GangScheduling": True}


@pytest.mark.parametrize("command", [("why", "me"), ("simulate",)], ids=["why", "simulate"])
@pytest.mark.parametrize(
    ("version", "gates", "code"),
    [("1.35", ON, 3), ("1.35", {}, 0), ("1.36", ON, 0), ("1.36", {}, 0)],
    ids=["1.35 with the gates", "1.35", "1.36 with the gates", "1.36"],
)
def test_a_pod_that_names_a_workload(
    tmp_path: Path, command: tuple[str, ...], version: str, gates: Mapping[str, bool], code: int
) -> None:
    file = tmp_path / "cluster.json"
    me = pod("me", workloadRef={"name": "train", "podGroup": "workers"})
    file.write_text(json.dumps({"kind": "List", "items": [node("n"), me]}))
    given = [f"--feature-gate={gate}={str(on).lower()}" for gate, on in gates.items()]
    ran = kschedx(*command, "--snapshot", str(file), f"--kube-version={version}", *given)
    assert ran.code == code
    if command[0] == "why":
        assert ('pod group "workers" of Workload "train", which kschedx does not read' in ran.err) is (code == 3)

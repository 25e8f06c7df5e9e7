"""For every incomplete, duplicated, or broken dump, doctor has a screen, a document, and an exit code."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.builders import Manifest
from tests.command import kschedx
from tests.doctor.dumps import save, whole

TITLES = sorted(whole())
JUNK = st.sampled_from([None, 7, "", "x", [], {}, [None], {"a": None}, "2026-01-01T00:00:00Z", "v1.2.3"])
PATHS = st.sampled_from([
    "kind",
    "apiVersion",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.ownerReferences",
    "spec",
    "spec.nodeName",
    "spec.providerID",
    "spec.volumes",
    "spec.volumeName",
    "spec.priorityClassName",
    "status",
    "status.phase",
    "status.replicas",
    "status.startTime",
    "status.conditions",
    "status.nodeInfo",
])  # fmt: skip


@st.composite
def dumps(draw: st.DrawFn) -> list[list[Manifest]]:
    """Draw two files with parts of a cluster, with some fields of a wrong value."""
    cluster = whole()
    files = [[copy.deepcopy(cluster[title]) for title in draw(st.sets(st.sampled_from(TITLES)))] for _ in range(2)]
    for _ in range(draw(st.integers(0, 5))):
        file = draw(st.sampled_from(files))
        if file:
            at: Any = draw(st.sampled_from(file))
            *parents, last = draw(PATHS).split(".")
            for parent in parents:
                at = at.get(parent) if isinstance(at, dict) else None
            if isinstance(at, dict):
                at[last] = copy.deepcopy(draw(JUNK))
    return files


@given(dumps())
def test_every_dump_has_an_answer(files: list[list[Manifest]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = []
        for number, file in enumerate(files):
            save(Path(folder) / f"{number}.json", file)
            named += ["-s", f"{number}.json"]
        screen = kschedx("doctor", *named, columns=80, cwd=Path(folder))
        document = kschedx("doctor", *named, "-o", "json", cwd=Path(folder))
        wide = kschedx("doctor", *named, "-o", "wide", cwd=Path(folder))
    assert screen.code == document.code == wide.code
    if screen.code == 2:
        assert screen.err.count("\n") == 1
        assert "internal error" not in screen.err
        return
    assert (screen.code, screen.err) in ((0, ""), (1, ""))
    rows = sum(max(-(-cell_len(splitline) // 80), 1) for splitline in screen.out.splitlines())
    assert rows <= 40
    findings = json.loads(document.out)["findings"]
    assert (screen.code == 1) == any(finding["id"] not in ("perhaps-none", "secrets") for finding in findings)


@given(st.sets(st.sampled_from(TITLES), min_size=1))
def test_a_file_given_twice_is_a_copy_of_all_objects(titles: set[str]) -> None:
    cluster = whole()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.json", "b.json"):
            save(Path(folder) / name, [cluster[title] for title in titles])
        outcome = kschedx("doctor", "-s", "a.json", "-s", "b.json", "-o", "json", cwd=Path(folder))
    (result,) = [finding for finding in json.loads(outcome.out)["findings"] if finding["id"] == "copies"]
    assert (result["difference"], sum(result["kinds"].values())) == ("none", len(titles))

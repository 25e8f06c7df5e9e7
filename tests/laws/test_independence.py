"""An answer depends on the cluster alone: not on the format of its file, the number of workers, the hash seed, the
locale or the time zone."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.builders import Manifest, node, pod
from tests.command import ROOT

ANSWER = """
import sys
from kschedx.cli import main
from kschedx.cli import parallel
workers = int(sys.argv.pop(1))
parallel.processors = lambda: workers
parallel.FEW = 8
main()
"""
QUESTIONS = (
    ("why", "--all-pending", "-o", "json"),
    ("simulate", "--seed", "1", "-o", "json"),
    ("diff-profiles", "default", "binpack", "--all-pending", "-o", "json"),
    ("doctor", "-o", "json"),
)


def asks(cpu: str) -> Manifest:
    return {"containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}]}


def cluster(seed: int) -> list[Manifest]:
    chance = random.Random(seed)
    nodes = [
        node(
            f"n{number}",
            labels={"topology.kubernetes.io/zone": chance.choice("abc")},
            allocatable={"cpu": str(chance.randint(1, 8)), "memory": "8Gi", "pods": "110"},
        )
        for number in range(8)
    ]
    running = [pod(f"r{number}", on=f"n{chance.randrange(8)}", spec=asks("250m")) for number in range(12)]
    pending = [
        pod(f"p{number}", spec=asks(chance.choice(["100m", "1", "4", "64"])), priority=chance.choice([0, 0, 10]))
        for number in range(24)
    ]
    return [*nodes, *running, *pending]


def answer(folder: Path, objects: list[Manifest], question: tuple[str, ...], *, form: str, **changes: str) -> str:
    folder.mkdir()
    written = {"apiVersion": "v1", "kind": "List", "items": objects}
    (folder / "cluster").write_text(json.dumps(written) if form == "json" else yaml.safe_dump(written))
    workers = changes.pop("workers", "1")
    ran = subprocess.run(
        [sys.executable, "-c", ANSWER, workers, *question, "-s", "cluster"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
def test_an_answer_depends_on_the_cluster_alone(question: tuple[str, ...], tmp_path: Path) -> None:
    objects = cluster(7)
    first = answer(tmp_path / "first", objects, question, form="json", PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C.UTF-8")
    other = {"PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8"}
    assert answer(tmp_path / "other", objects, question, form="yaml", workers="3", **other) == first

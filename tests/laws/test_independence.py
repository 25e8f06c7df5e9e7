"""An answer depends on the cluster alone: not on the order of the objects in its file, the file's format, the number of
workers, the hash seed, the locale or the time zone."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.builders import Manifest, at, node, pod
from tests.command import ROOT, kschedx
from tests.fuzz import hostile
from tests.laws.moving_clusters import Dealer

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


DESCHEDULER = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 30, memory: 30, pods: 30}, targetThresholds: {cpu: 40, memory: 40, pods: 40}}
  - name: RemovePodsViolatingTopologySpreadConstraint
    args: {constraints: [DoNotSchedule, ScheduleAnyway]}
  plugins:
    balance: {enabled: [LowNodeUtilization, RemoveDuplicates, RemovePodsViolatingTopologySpreadConstraint]}
    deschedule: {enabled: [RemovePodsViolatingInterPodAntiAffinity, RemovePodsViolatingNodeTaints]}
"""
ABOUT_ALL = (
    ("why", "--all-pending"),
    ("simulate",),
    ("drain", "--each"),
    ("drain", "NODE"),
    ("fit", "POD"),
    ("why", "POD"),
    ("why", "POD", "-o", "html"),
    ("scale-down",),
    ("doctor",),
    ("kueue", "--now", "2026-11-01T00:00:00Z"),
    ("deschedule", "--config", "policy.yaml"),
    ("diff-profiles", "default", "binpack", "--all"),
)
CLUSTERS = 4
"""Random ones, beside one in eight of the stories; `ORDERS=1000 pytest` tries so many and all stories."""


def answers(folder: Path, objects: list[Manifest]) -> list[str]:
    """What is said of a file with these objects in this order."""
    (folder / "cluster.json").write_bytes(hostile.as_json(objects))
    (folder / "policy.yaml").write_text(DESCHEDULER)
    pending = sorted(
        (str(at(one, "metadata").get("namespace", "default")), f"pod/{at(one, 'metadata.name')}")
        for one in objects
        if one["kind"] == "Pod" and not at(one, "spec").get("nodeName")
    )
    nodes = sorted(str(at(one, "metadata.name")) for one in objects if one["kind"] == "Node")
    namespace, name = pending[0] if pending else ("default", "none")
    words = {"POD": name, "NODE": nodes[0] if nodes else "none"}
    found = []
    for asked in ABOUT_ALL:
        form = () if "-o" in asked else ("-o", "json")
        scope = ("-n", namespace) if "POD" in asked else ()
        ran = kschedx(
            *(words.get(word, word) for word in asked), *scope, "-s", "cluster.json", *form, cwd=folder, columns=80
        )
        found.append(f"{asked} {ran.code}\n{ran.out}{ran.err if ran.code != 2 else ''}")
    return found


def of_orders() -> list[tuple[str, list[Manifest]]]:
    number = int(os.environ.get("ORDERS", CLUSTERS))
    stories = [(f"story {at}", story) for at, story in enumerate(hostile.stories())]
    chosen = stories if number > CLUSTERS else stories[::8]
    return [*chosen, *((f"cluster {seed}", Dealer(random.Random(seed)).deal()) for seed in range(number))]


@pytest.mark.parametrize(("name", "objects"), of_orders(), ids=lambda given: given if isinstance(given, str) else "")
def test_the_order_of_a_file_says_nothing(name: str, objects: list[Manifest], tmp_path: Path) -> None:
    shuffled = random.Random(name).sample(objects, len(objects))
    assert answers(tmp_path, shuffled) == answers(tmp_path, objects)

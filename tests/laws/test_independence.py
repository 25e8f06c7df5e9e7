"""An answer depends on the cluster alone.

It is the same to the byte for any order of objects, file format, number of workers, hash seed, locale, and time zone.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
import yaml
import zstandard

from kschedx.controllers.states import ExitCode
from tests.builders import Manifest, at, node, pod
from tests.command import ROOT
from tests.fuzz import hostile
from tests.laws.moving_clusters import Dealer

DESCHEDULER = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - {name: RemoveDuplicates, args: {}}
  - {name: RemovePodsViolatingInterPodAntiAffinity, args: {}}
  - {name: RemovePodsViolatingNodeTaints, args: {}}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 30, memory: 30, pods: 30}, targetThresholds: {cpu: 40, memory: 40, pods: 40}}
  - name: RemovePodsViolatingTopologySpreadConstraint
    args: {constraints: [DoNotSchedule, ScheduleAnyway]}
  plugins:
    balance: {enabled: [LowNodeUtilization, RemoveDuplicates, RemovePodsViolatingTopologySpreadConstraint]}
    deschedule: {enabled: [RemovePodsViolatingInterPodAntiAffinity, RemovePodsViolatingNodeTaints]}
"""
QUESTIONS = (
    ("why", "--all-pending", "-o", "json"),
    ("why", "--all-pending"),
    ("why", "POD", "-o", "json"),
    ("why", "POD", "-o", "html"),
    ("fit", "POD", "-o", "json"),
    ("simulate", "-o", "json"),
    ("simulate", "--seed", "1", "-o", "json"),
    ("drain", "--each", "-o", "json"),
    ("drain", "NODE", "-o", "json"),
    ("survive", "NODE", "-o", "json"),
    ("survive", "--each", "zone"),
    ("nodes", "-o", "json"),
    ("scale-down", "-o", "json"),
    ("deschedule", "--policy", "policy.yaml", "-o", "json"),
    ("descheduler-policy", "advise", "--rounds", "1", "--now", "2026-11-01T00:00:00Z", "-o", "json"),
    ("profiles", "tune", "--candidates", "6", "--seconds", "600", "-o", "json"),
    ("why", "hpa/scaler", "-o", "json"),
    ("why", "workload/held-1", "-o", "json"),
    ("why", "jobset/held"),
    ("doctor", "-o", "json"),
    ("kueue", "--now", "2026-11-01T00:00:00Z", "-o", "json"),
    ("diff-profiles", "default", "binpack", "--all", "-o", "json"),
    ("diff-profiles", "default", "binpack", "--all-pending", "-o", "json"),
    ("diff-profiles", "default", "binpack", "--all", "-o", "html"),
    ("diff-profiles", "default", "binpack", "--all", "--shard", "1/2", "-o", "json"),
    ("why", "--all-pending", "--shard", "2/2", "-o", "json"),
    ("why", "--all-pending", "-o", "sarif"),
    ("why", "node/NODE", "-o", "json"),
    ("simulate", "--drain", "NODE", "-o", "html"),
    ("drain", "--each", "-o", "html"),
    ("survive", "--each", "node", "-o", "html"),
    ("scale-down", "-o", "wide"),
    ("kueue", "--now", "2026-11-01T00:00:00Z", "-o", "html"),
    ("nodes", "-o", "wide"),
    ("doctor", "-o", "html"),
    ("fleet", "-s", "cluster", "why", "--all-pending"),  # its page and JSON document contain durations
)
DIGEST = re.compile(r"""(?:input|page) sha256(?:</b> |",")[0-9a-f]{16}""")
"""The digest of the input files in a page, and the page's own digest in its footer."""
ANSWERS = """
import json, os, sys
from kschedx import parallel
from tests.command import kschedx
workers = int(sys.argv[1])
parallel.processors, parallel.FEW, parallel._CHUNK = lambda: workers, 8, 4
for folder, questions in json.load(sys.stdin):
        lines = [words if "-s" in words else [*words, "-s", "cluster"] for words in questions]
        answers = [kschedx(*line, columns=80, env=os.environ, cwd=folder) for line in lines]
        print(json.dumps([(answer.code, answer.out, answer.err) for answer in answers]))
"""


SCALED = """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: scaled, namespace: default, uid: d}
  spec:
    replicas: 3
    selector: {matchLabels: {app: scaled}}
    template: &template
      metadata: {labels: {app: scaled}}
      spec: {containers: [{name: main, image: main, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: scaler, namespace: default}
  spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: LocalQueue
  metadata: {name: jobs, namespace: default}
  spec: {clusterQueue: all}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: ClusterQueue
  metadata: {name: all}
  spec:
    namespaceSelector: {}
    resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 1}]}]
- {apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: plain}}
- &workload
  apiVersion: kueue.x-k8s.io/v1beta1
  kind: Workload
  metadata: &metadata
    name: held-1
    namespace: default
    creationTimestamp: "2026-10-31T00:00:00Z"
    ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: held, uid: h, controller: true}]
  spec: {queueName: jobs, podSets: [{name: main, count: 2, template: *template}]}
- <<: *workload
  metadata: {<<: *metadata, name: held-2}
  spec:
    queueName: jobs
    podSets: [{name: other, count: 1, template: {spec: {containers: [{name: main, image: main}]}}}]
- apiVersion: batch/v1
  kind: Job
  metadata: {name: suspended, namespace: default, uid: j, labels: {kueue.x-k8s.io/queue-name: jobs}}
  spec: {suspend: true, template: *template}
- <<: *workload
  metadata:
    <<: *metadata
    name: job-suspended
    ownerReferences: [{apiVersion: batch/v1, kind: Job, name: suspended, uid: j, controller: true}]
"""
"""A workload with a HorizontalPodAutoscaler, two Workloads of one owner pending in Kueue, and a suspended Job."""
AUTOSCALER: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
    "data": {"status": "autoscalerStatus: Running"},
}


def without_aliases(objects: list[Manifest]) -> list[Manifest]:
    """Return copies that share no values, so that YAML contains no aliases."""
    items: list[Manifest] = json.loads(hostile.as_json(objects))["items"]
    return items


FORMS: Mapping[str, Callable[[list[Manifest]], bytes]] = {
    "yaml": lambda objects: yaml.safe_dump(
        {"apiVersion": "v1", "kind": "List", "items": without_aliases(objects)}
    ).encode(),
    "documents": lambda objects: yaml.safe_dump_all(without_aliases(objects)).encode(),
    "lines": lambda objects: "\n".join(map(json.dumps, objects)).encode(),
    "zstd": lambda objects: zstandard.ZstdCompressor().compress(hostile.as_json(objects)),
}
CLUSTERS = 2
"""How many random clusters are tried, half of them moving clusters, with every other question.
`ORDERS=1000 pytest -m ""` tries 1000, all stories, and all questions."""


def cluster(seed: int) -> list[Manifest]:
    """Return nodes and pods without workloads, with so many identical pods that several workers share them."""
    chance = random.Random(seed)

    def pod_spec(cpu: str) -> Manifest:
        return {"containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}]}

    nodes = [
        node(
            f"n{number}",
            labels={"topology.kubernetes.io/zone": chance.choice("abc")},
            allocatable={"cpu": str(chance.randint(1, 8)), "memory": "8Gi", "pods": "110"},
        )
        for number in range(8)
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    running = [
        pod(f"r{number}", on=f"n{chance.randrange(8)}", spec=pod_spec("250m"), metadata={"ownerReferences": [owner]})
        for number in range(12)
    ]
    pending = [
        pod(f"p{number}", spec=pod_spec(chance.choice(["100m", "1", "4", "64"])), priority=chance.choice([0, 0, 10]))
        for number in range(24)
    ]
    return [*nodes, *running, *pending]


Clusters = list[tuple[str, list[Manifest]]]


def clusters() -> Clusters:
    number = int(os.environ.get("ORDERS", CLUSTERS))
    moving = ((f"moving cluster {seed}", Dealer(random.Random(seed)).deal()) for seed in range(number // 2))
    random_clusters = ((f"cluster {seed}", cluster(seed)) for seed in range(number // 2))
    return completed([*moving, *random_clusters])


def stories() -> Clusters:
    every = [(f"story {number}", story) for number, story in enumerate(hostile.stories())]
    return completed(every if "ORDERS" in os.environ else every[:1])


def completed(clusters: Clusters) -> Clusters:
    """Add the objects of controllers and queues to each cluster."""
    scaled = yaml.safe_load(SCALED)["items"]
    return [(name, without_duplicates([*objects, *scaled, AUTOSCALER])) for name, objects in clusters]


def without_duplicates(objects: list[Manifest]) -> list[Manifest]:
    """Return the objects without a second object of a name; the files of a story may have one."""
    by_name: dict[tuple[object, ...], Manifest] = {}
    for item in objects:
        metadata = item.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        by_name.setdefault((item["kind"], named.get("namespace", "default"), named.get("name")), item)
    return list(by_name.values())


def questions(objects: list[Manifest]) -> list[list[str]]:
    pending = sorted(
        (str(at(item, "metadata").get("namespace", "default")), f"pod/{at(item, 'metadata.name')}")
        for item in objects
        if item["kind"] == "Pod" and not at(item, "spec").get("nodeName")
    )
    nodes = sorted(str(at(item, "metadata.name")) for item in objects if item["kind"] == "Node")
    namespace, name = pending[0] if pending else ("default", "none")
    words = {"POD": name, "NODE": nodes[0] if nodes else "none"}
    words["node/NODE"] = f"node/{words['NODE']}"
    return [
        [*(words.get(word, word) for word in question), *(("-n", namespace) if "POD" in question else ())]
        for question in QUESTIONS
    ]


Answers = list[tuple[int, str, str]]


def start_answers(workers: int, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", ANSWERS, str(workers)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@dataclass(frozen=True)
class QuestionSet:
    """The questions about a cluster, and the two folders with its files."""

    name: str
    questions: list[list[str]]
    folders: tuple[Path, Path]

    @classmethod
    def of(cls, name: str, objects: list[Manifest], folder: Path) -> Self:
        chance = random.Random(name)
        shuffled = chance.sample(objects, len(objects))
        form = FORMS[chance.choice(sorted(FORMS))]
        selected = questions(objects)
        if "ORDERS" not in os.environ:
            selected = selected[name.startswith("cluster") :: 2]
        folders = folder / "first", folder / "second"
        for path, content in zip(folders, (hostile.as_json(objects), form(shuffled)), strict=True):
            path.mkdir(parents=True)
            (path / "cluster").write_bytes(content)
            (path / "policy.yaml").write_text(DESCHEDULER)
        return cls(name, selected, folders)


Answered = Mapping[str, tuple[QuestionSet, Answers, Answers]]


def answered(clusters: Clusters, folder: Path) -> Answered:
    """Return what two processes answer about every cluster, each from its own file and in its own environment."""
    question_sets = [
        QuestionSet.of(name, objects, folder / str(number)) for number, (name, objects) in enumerate(clusters)
    ]
    processes = (
        start_answers(1, PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C.UTF-8"),
        start_answers(3, PYTHONHASHSEED="4711", TZ="Asia/Kathmandu", LC_ALL="tr_TR.UTF-8", LANG="de_DE.UTF-8"),
    )
    inputs = ([(str(item.folders[side]), item.questions) for item in question_sets] for side in range(2))
    outputs = [
        process.communicate(json.dumps(lines).encode())[0].splitlines()
        for process, lines in zip(processes, inputs, strict=True)
    ]
    return {
        item.name: (item, json.loads(first), json.loads(second))
        for item, first, second in zip(question_sets, *outputs, strict=True)
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    return answered(ALL_CLUSTERS, tmp_path_factory.mktemp("clusters"))


ALL_CLUSTERS = clusters()


@pytest.mark.parametrize("name", [name for name, _ in ALL_CLUSTERS])
def test_an_answer_depends_on_the_cluster_alone(name: str, answers: Answered) -> None:
    check(name, answers)


@pytest.mark.long
def test_an_answer_about_a_story_depends_on_it_alone(tmp_path: Path) -> None:
    for name in (result := answered(stories(), tmp_path)):
        check(name, result)


def check(name: str, answers: Answered) -> None:
    question_set, *both_answers = answers[name]
    for question, first, second in zip(question_set.questions, *both_answers, strict=True):
        assert "Usage" not in first[2], question
        assert first[0] != ExitCode.INTERNAL, (question, first[2])
        assert "--help" not in first[2], question
        assert first[0] != 2 or name.startswith("story"), (question, first[2])
        texts = ([DIGEST.sub("", str(part)) for part in answer] for answer in (first, second))
        assert next(texts) == next(texts), question

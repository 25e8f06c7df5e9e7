"""Objects of the maximum size of an API server are explained within seconds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kschedx import explain
from kschedx.explain import events
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod
from tests.command import kschedx

MANY = 5000
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("place", "spec"),
    [
        (node("n", taints=[f"t{number}:NoSchedule" for number in range(MANY)]), {}),
        (node("n"), {"containers": [{"name": "c", "ports": [{"hostPort": number + 1} for number in range(MANY)]}]}),
        (node("n"), {"topologySpreadConstraints": [{**SPREAD, "topologyKey": f"z{n}"} for n in range(MANY)]}),
        (node("n"), {"schedulingGates": [{"name": f"g{number}"} for number in range(MANY)]}),
        (node("n"), {"nodeSelector": {f"k{number}": "v" for number in range(MANY)}}),
    ],
    ids=["taints", "ports", "constraints", "gates", "labels"],
)
def test_an_object_of_many_parts(place: Manifest, spec: Manifest) -> None:
    builder = SnapshotBuilder()
    builder.add_objects([place, pod("x", spec=spec), pod("y", on="n", spec=spec)])
    started = time.process_time()
    assert explain(Snapshot.of_contents(builder.finish()), "default/x").to_dict()["outcome"]
    assert time.process_time() - started < 10


def terms(count: int, kind: str) -> Manifest:
    """Return an affinity to pods with any of many labels."""
    selectors = [{"matchLabels": {f"a{number}": "b"}} for number in range(count)]
    listed = [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"} for selector in selectors]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": listed}}}


def node_terms(terms: int, expressions: int) -> Manifest:
    keys = [[f"k{term}-{number}" for number in range(expressions)] for term in range(terms)]
    listed = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["v"]} for key in of]} for of in keys]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}
    }


TAINTS = [{"key": f"t{number}", "operator": "Exists"} for number in range(10_000)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("place", "spec"),
    [
        (node("n", taints=[f"t{number}:NoSchedule" for number in range(10_000)]), {"tolerations": TAINTS[1:]}),
        (node("n"), terms(3_000, "podAffinity")),
        (node("n"), terms(3_000, "podAntiAffinity")),
        (node("n"), node_terms(3_000, 1)),
        (node("n"), node_terms(1, 10_000)),
        (node("n"), {"nodeSelector": {f"k{number}": "v" for number in range(10_000)}}),
        (node("n"), {"topologySpreadConstraints": [{**SPREAD, "topologyKey": f"z{n}"} for n in range(5_000)]}),
    ],
    ids=["tolerations", "affinity", "anti-affinity", "terms", "expressions", "labels", "constraints"],
)
def test_a_screen_about_a_new_pod_of_many_parts(place: Manifest, spec: Manifest, tmp_path: Path) -> None:
    """The screen includes admission, validation, fixes, and every line."""
    asking = pod("x", spec={"containers": [{"name": "c", "image": "i"}], **spec})
    for name, manifest in (("cluster.json", place), ("pod.json", asking)):
        (tmp_path / name).write_text(json.dumps(manifest))
    started = time.process_time()
    result = kschedx("why", tmp_path / "pod.json", "-s", tmp_path / "cluster.json")
    assert result.code in (0, 1), result.err
    assert len(result.out.splitlines()) < 32
    assert time.process_time() - started < 5
    if result.code:
        assert "placement conditions; kschedx tries fixes for at most 2,000" in " ".join(result.out.split())


def test_why_no_fix_is_tried_is_in_the_document() -> None:
    asking = pod("x", spec={"nodeSelector": {f"k{number}": "v" for number in range(2001)}})
    document = explain(Snapshot.from_objects([node("n"), asking]), "default/x").to_dict()
    assert document["fixes"] == []
    text = "the pod has 2,001 placement conditions; kschedx tries fixes for at most 2,000"
    assert document["notes"] == [{"id": "no-fix", "text": text}]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: " + ", ".join(f"{number} x" for number in range(40_000)),
        "failed to fit in any node fit failure summary on nodes : " + "a (" * 60_000,
        "failed to fit in any node fit failure summary on nodes : " + "a (1), " * 40_000,
        "9" * 200_000 + "/1 nodes are available: 1 a.",
        "0/1 nodes are available: " + "9" * 5000 + " Insufficient cpu.",
        "0/1 nodes are available: 1 node(s) had untolerated taint {" + "a: " * 60_000,
        'PersistentVolumeClaim is not bound: "' * 10_000,
        ". 1 " * 60_000,
    ],
)
def test_a_very_long_message(message: str) -> None:
    started = time.process_time()
    events.parse(message)
    assert time.process_time() - started < 10  # each position of the text again would take many minutes


def test_requests_whose_sum_exceeds_int64(tmp_path: Path) -> None:
    """The sum of requests becomes negative, and the free amount of kube-scheduler overflows as well."""

    def requesting(cpu: str) -> list[Manifest]:
        return [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}]

    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    objects = [
        node("n1", allocatable=room),
        node("n2", allocatable=room),
        pod("most", on="n1", containers=requesting("9223372036854775")),
        pod("more", on="n1", containers=requesting("900m")),
        pod("full", on="n2", containers=requesting("4")),
        pod("x", containers=requesting("1")),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("why", "x", "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("✗ default/x is unschedulable: 0 of 2 nodes fit")

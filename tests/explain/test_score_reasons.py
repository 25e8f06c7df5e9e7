"""Why the plugin that decides between two feasible nodes prefers one of them, in plain words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.explain.ranking import rank_nodes
from kschedx.explain.score_reasons import deciding_reason
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, explain_pod, node, only, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "9"}
PREFERRED, REQUIRED = (f"{way}DuringSchedulingIgnoredDuringExecution" for way in ("preferred", "required"))


def requests(cpu: str, memory: str) -> list[Manifest]:
    return [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]


SMALL = requests("400m", "800Mi")
HALF = pod("half", on="a", containers=requests("2", "4Gi"))
DISK: Manifest = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
NEAR: Manifest = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
CHEAP = "spot=true:PreferNoSchedule"
IMAGE = [{"names": ["x:1"], "sizeBytes": 900 * 1024 * 1024}]


def prefers(kind: str, weight: int = 10) -> Manifest:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": NEAR}]}}


def spread(key: str) -> Manifest:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    constraint = {**rule, "labelSelector": NEAR["labelSelector"]}
    return pod("me", labels={"app": "web"}, topologySpreadConstraints=[constraint])


def fit(kind: str, **more: object) -> Manifest:
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    return {"scoringStrategy": {"type": kind, "resources": resources, **more}}


def web(name: str, on: str) -> Manifest:
    return pod(name, on=on, labels={"app": "web"})


SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
TWO = [node(name, labels={HOST: name}, allocatable=ROOM) for name in "ab"]
ME = pod("me", labels={"app": "web"}, containers=SMALL)


@pytest.mark.parametrize(
    ("plugin", "args", "objects", "me", "expected"),
    [
        # a requests 2.4 of 4 CPU and 4.8 of 8 GiB with the pod, b 0.4 of 4 and 0.8 of 8
        ("NodeResourcesFit", fit("LeastAllocated"), [HALF], ME, "b is emptier: CPU 10%, memory 9% requested with the"),
        ("NodeResourcesFit", fit("MostAllocated"), [HALF], ME, "a is fuller: CPU 60%, memory 59% requested with the"),
        (
            "NodeResourcesFit",
            fit("RequestedToCapacityRatio", requestedToCapacityRatio=SHAPE),
            [HALF],
            ME,
            "the configured shape prefers a: CPU 60%, memory 59% requested with the pod (b: 10%, 9%)",
        ),
        (
            "NodeResourcesFit",
            None,
            [pod(f"bare-{number}", on="a") for number in range(3)],
            pod("me"),
            "b is emptier: CPU 2%, memory 2% requested with the pod (a: 10%, 9%); containers without requests count as",
        ),
        (
            "PodTopologySpread",
            None,
            [web("one", "a"), web("two", "a")],
            spread(HOST),
            f"spread over {HOST}: b has 0 matching pods, a 2",
        ),
        (
            "PodTopologySpread",
            None,
            [node("c", labels={ZONE: "x"})],
            spread(ZONE),
            f"a lacks the label {ZONE} of a spread constraint: it gets no points",
        ),
        (
            "NodeAffinity",
            None,
            [node("c", labels={"disk": "ssd"})],
            pod("me", affinity={"nodeAffinity": {PREFERRED: [{"weight": 3, "preference": DISK}]}}),
            "c matches the preferred disk In [ssd] (weight 3), a does not",
        ),
        (
            "InterPodAffinity",
            None,
            [web("one", "b")],
            pod("me", affinity=prefers("podAffinity")),
            "preferred pod affinity app=web (weight 10): b has 1 matching pod, a 0",
        ),
        (
            "InterPodAffinity",
            None,
            [web("one", "a")],
            pod("me", affinity=prefers("podAntiAffinity")),
            "preferred pod anti-affinity app=web (weight 10): b has 0 matching pods, a 1",
        ),
        (
            "InterPodAffinity",
            None,
            [pod("noisy", on="a", affinity=prefers("podAntiAffinity"))],
            ME,
            "this pod matches the pod anti-affinity of default/noisy on a",
        ),
        (
            "InterPodAffinity",
            None,
            [pod("side", on="b", affinity={"podAffinity": {REQUIRED: [NEAR]}})],
            ME,
            "this pod matches the pod affinity of default/side on b",
        ),
        (
            "TaintToleration",
            None,
            [node("c", taints=[CHEAP]), pod("half", on="a", containers=SMALL)],
            pod("me", tolerations=[{"key": "other", "operator": "Exists"}]),
            "c has the taint spot=true:PreferNoSchedule, which the pod does not tolerate",
        ),
        (
            "ImageLocality",
            None,
            [{**node("c"), "status": {"allocatable": ROOM, "images": IMAGE}}],
            pod("me", containers=[{"name": "main", "image": "x:1"}]),
            "c has the image x:1 already",
        ),
        (
            "NodeResourcesBalancedAllocation",
            None,
            [pod("wide", on="a", containers=requests("1", "4Gi"))],
            pod("me", containers=requests("1", "100Mi")),
            "the pod makes the use of cpu and memory more balanced on a than on b",
        ),
        ("NodeResourcesFit", None, [], ME, ""),
    ],
)
def test_the_reason_of_the_plugin_that_decides(
    plugin: str, args: Mapping[str, object] | None, objects: list[Manifest], me: Manifest, expected: str
) -> None:
    assert reason(*TWO, *objects, me, plugin=plugin, args=args).startswith(expected)
    assert expected or not reason(*TWO, *objects, me, plugin=plugin, args=args)


def reason(*objects: Manifest, plugin: str, args: Mapping[str, object] | None = None, other: str = "") -> str:
    snapshot = Snapshot.from_objects([*objects])
    me = snapshot.pods[snapshot.pods.rows["default/me"]]
    found = explain_pod(snapshot, me, config=only(plugin, args))
    return deciding_reason(found.cycle, found.scheduler, rank_nodes(found.cycle), other)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("", "b is emptier: CPU 10%, memory 9% requested with the pod (a: 60%, 59%)"),
        ("b", "b is emptier: CPU 10%, memory 9% requested with the pod (a: 60%, 59%)"),
        ("c", "b is emptier: CPU 10%, memory 9% requested with the pod (c: 85%, 84%)"),
    ],
)
def test_the_best_node_is_compared_with_the_runner_up_or_another(other: str, expected: str) -> None:
    fuller = pod("fuller", on="c", containers=requests("3", "6Gi"))
    objects = [*TWO, node("c", allocatable=ROOM), HALF, fuller, ME]
    assert reason(*objects, plugin="NodeResourcesFit", other=other) == expected

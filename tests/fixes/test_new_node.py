"""The node that would do: where nothing else helps, the labels, amounts and devices of a smallest new node."""

from __future__ import annotations

import pytest

import kschedx
from tests.builders import Manifest, node, pod
from tests.storage_builders import ZONE, claim, in_term, volume

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "110"}


def titles(*objects: Manifest) -> list[str]:
    return [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]


def asking(**requests: str) -> list[Manifest]:
    return [{"name": "main", "resources": {"requests": requests}}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": asking(cpu="64", memory="100Gi")}, "add a node with cpu 64, memory 100Gi"),
        (
            {"containers": asking(cpu="64"), "nodeSelector": {"disk": "ssd"}},
            "add a node with cpu 64, label disk=ssd",
        ),
        ({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, "add a node with label kubernetes.io/arch=arm64"),
    ],
)
def test_what_the_pod_asks_of_a_node(spec: Manifest, expected: str) -> None:
    tainted = node("a", labels={"kubernetes.io/arch": "amd64"}, allocatable=SMALL)
    assert titles(tainted, pod("me", spec=spec)) == [expected]


def test_the_zone_of_a_volume() -> None:
    data = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    objects = [claim("data", volume="pv"), volume("pv", holder="data", reach=in_term(ZONE, "b"))]
    assert titles(node("a", labels={ZONE: "a"}), *objects, pod("me", spec=data)) == [f"add a node with label {ZONE}=b"]


def test_a_domain_in_which_the_rules_hold() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [node(zone, labels={ZONE: zone}, allocatable=SMALL) for zone in "ab"]
    running = pod("web", labels={"app": "web"}, on="a")
    me = pod("me", labels={"app": "web"}, containers=asking(cpu="64"), topologySpreadConstraints=[spread])
    assert titles(*nodes, running, me) == [f"add a node with cpu 64, label {ZONE}=b"]


def test_what_contradicts_itself_has_no_node() -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    me = pod("me", nodeSelector={"disk": "ssd"}, affinity=affinity)
    assert not [title for title in titles(node("a"), me) if title.startswith("add")]


def test_a_pod_that_no_node_is_large_enough_for_gets_the_node_beside_the_sacrifice() -> None:
    me = pod("me", containers=asking(cpu="2"))
    assert titles(node("a", allocatable=SMALL), me) == ["request at most 1 cpu", "add a node with cpu 2"]

"""An estimate by counting comes to the same as one that places each pod on a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kschedx.autoscaler.loop import Loop, best_for_fast_path
from kschedx.autoscaler.run import loop_document, setup_of
from kschedx.snapshot.snapshot import Snapshot
from tests.autoscaler.loops import Json, cases
from tests.autoscaler.small import autoscale, group, node, pod, status


@pytest.mark.parametrize(
    "case", [item for item in cases() if item["expect"].get("options")], ids=lambda case: case["name"]
)
def test_counting_comes_to_the_same_as_placing(case: Json) -> None:
    setup = setup_of(
        Snapshot.from_objects(case["objects"]),
        group_label=case["groups"]["label"],
        templates=case.get("templates"),
        flags=case["flags"],
        config=case.get("config"),
        kube_version=case["kubeVersion"],
        now=case["now"],
    )
    pods = setup.framework.snapshot.pods
    counted, placed = (loop_document(Loop(replace(setup, counts=way)).result, pods) for way in (True, False))
    assert counted == placed


def test_a_pod_that_keeps_away_from_another_gets_a_new_node_of_its_own() -> None:
    """The other pod has no term, so that nothing but the pod's own keeps them apart."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    other = pod("db", cpu="1")
    other["metadata"]["labels"] = {"app": "db"}
    full = pod("full", cpu="2", nodeName="workers-0")
    document = autoscale([status(group()), node(), full, other, pod("web", cpu="500m", affinity=apart)])
    assert [(option["group"], option["nodes"]) for option in document["options"]] == [("workers", 2)]


def test_the_fast_path_is_for_pods_that_keep_away_from_themselves() -> None:
    """Each of them needs a node of its own, so arithmetic saves more than for pods of which two share a node."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    alone = pod("db", cpu="500m", affinity=apart)
    alone["metadata"]["labels"] = {"app": "db"}
    snapshot = Snapshot.from_objects([node(), alone, pod("web")])
    pods, workers = snapshot.pods, snapshot.cluster.nodes[0]
    assert best_for_fast_path([(pods[0], 4), (pods[1], 4)], workers) == 0
    assert best_for_fast_path([(pods[1], 4), (pods[0], 4)], workers) == 1

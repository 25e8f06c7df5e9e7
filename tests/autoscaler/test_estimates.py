"""An estimate by counting equals an estimate that places each pod on a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kschedx.autoscaler.loop import Loop, best_for_fast_path
from kschedx.autoscaler.run import Autoscaling
from kschedx.snapshot.snapshot import Snapshot
from tests.autoscaler.loops import Json, cases, state_of
from tests.autoscaler.single_group import autoscale, device_cluster, group, node, outcome, pod, status
from tests.device_builders import device, device_class, resource_slice


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "case", [item for item in cases() if item["expect"].get("options")], ids=lambda case: case["name"]
)
def test_counting_and_placing_have_equal_documents(case: Json) -> None:
    setup = state_of(case)
    pods = setup.framework.snapshot.pods
    by_count, by_placement = (
        Autoscaling(answer=Loop(replace(setup, counts=uses_counts)).result, pods=pods).to_dict()
        for uses_counts in (True, False)
    )
    assert by_count == by_placement


def test_a_pod_with_anti_affinity_to_another_gets_its_own_new_node() -> None:
    """The other pod has no term, so only the term of the pod separates them."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    other = pod("db", cpu="1")
    other["metadata"]["labels"] = {"app": "db"}
    full = pod("full", cpu="2", nodeName="workers-0")
    document = autoscale([status(group()), node(), full, other, pod("web", cpu="500m", affinity=anti_affinity)])
    assert [(option["group"], option["nodes"]) for option in document["options"]] == [("workers", 2)]


@pytest.mark.parametrize(("release", "nodes"), [("1.36", [2]), ("1.34", [])])
def test_new_nodes_have_devices_like_those_of_the_example(release: str, nodes: list[int]) -> None:
    """The node has devices for two of five pods, and so has each new node."""
    assert [option["nodes"] for option in autoscale(device_cluster(), release=release)["options"]] == nodes


def test_devices_of_extended_resources_are_not_used_up() -> None:
    """The autoscaler allocates devices to claims alone."""
    amounts = {"example.com/gpu": "1"}
    containers = [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]
    pods = [pod(name, containers=containers) for name in ("a", "b")]
    devices = [device_class(resource="example.com/gpu"), resource_slice("workers-0", device("d0"))]
    document = autoscale([status(group()), node(), *devices, *pods])
    assert [outcome(document, name) for name in ("a", "b")] == ["schedulable", "schedulable"]


def test_the_fast_path_is_for_pods_with_anti_affinity_to_replicas() -> None:
    """Each of them needs its own node, so arithmetic saves more than for pods that share a node."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    separate = pod("db", cpu="500m", affinity=anti_affinity)
    separate["metadata"]["labels"] = {"app": "db"}
    snapshot = Snapshot.from_objects([node(), separate, pod("web")])
    pods, workers = snapshot.pods, snapshot.cluster.nodes[0]
    assert best_for_fast_path([(pods[0], 4), (pods[1], 4)], workers) == 0
    assert best_for_fast_path([(pods[1], 4), (pods[0], 4)], workers) == 1

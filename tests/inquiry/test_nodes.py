"""`kschedx nodes`: free resources, and the largest pod that fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.node import NodeRow, node_rows, sorted_rows
from kschedx.render.nodes import nodes_lines
from kschedx.snapshot.snapshot import Snapshot
from tests.command import check_document
from tests.command import kschedx as command

CLUSTER = "fixtures/gpu-pool-taints/cluster.yaml"


def rows_of(snapshot: Snapshot) -> tuple[NodeRow, ...]:
    return node_rows(Setup.of_cluster(snapshot).scheduler_on(snapshot).nodes)


def node(name: str, **changes: object) -> dict[str, object]:
    created: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    return created | changes


LEFT_OVER: dict[str, object] = {
    "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("changes", "status", "is_open"),
    [
        ({}, "Ready", True),
        ({"spec": {"unschedulable": True}}, "Ready,SchedulingDisabled", False),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}, "NotReady", False),
        ({"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}, "Ready", True),
        ({"status": {"allocatable": {"cpu": "4", "pods": "0"}}}, "Ready", False),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "NotReady", False),
        (LEFT_OVER, "Ready", False),
        ({**LEFT_OVER, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "NotReady", False),
    ],
)
def test_the_status_equals_that_of_kubectl(changes: dict[str, object], status: str, is_open: bool) -> None:
    (row,) = rows_of(Snapshot.from_objects([node("a", **changes)]))
    assert (row.status, row.is_open) == (status, is_open)


@pytest.mark.parametrize("resource", ["cpu", "memory", "nvidia.com/gpu"])
def test_the_largest_pod_fits_and_a_larger_one_does_not(resource: str) -> None:
    snapshot = kschedx.load(CLUSTER)
    best = max(rows_of(snapshot), key=lambda row: row.largest(resource))

    def outcome(amount: int) -> str:
        quantity = f"{amount}m" if resource == "cpu" else str(amount)
        resources = {"requests": {resource: quantity}, "limits": {resource: quantity}}
        spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
        spec["tolerations"] = [{"operator": "Exists"}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
        return str(kschedx.explain(snapshot, pod).outcome)

    assert outcome(best.largest(resource)) == "Scheduled"
    assert outcome(best.largest(resource) + 1) == "Unschedulable"


def test_columns_sort_and_an_unknown_one_is_named() -> None:
    rows = rows_of(kschedx.load(CLUSTER))
    shares = [row.resources["cpu"].percent for row in sorted_rows(rows, "cpu")]
    assert shares == sorted(shares, reverse=True)
    with pytest.raises(InputError, match='no column is called "memroy"') as error:
        sorted_rows(rows, "memroy")
    assert "memory" in str(error.value.hint)


@pytest.mark.parametrize(("sort", "label"), [("type", "type"), ("free", "largest pod"), ("name", "node")])
def test_the_column_of_the_order_stays_and_no_row_is_cut(sort: str, label: str) -> None:
    lines = [line.plain for line in nodes_lines(rows_of(kschedx.load(CLUSTER)), 80, sort=sort)]
    assert any(line.startswith("  node ") and label in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_the_numbers_of_the_document_add_up() -> None:
    result = command("nodes", "-s", CLUSTER, "-o", "json")
    document = json.loads(result.out)
    check_document(document)
    assert document["total"]["nvidia.com/gpu"] == {"requested": "3", "free": "3", "allocatable": "6"}
    assert [row["largestPod"].get("nvidia.com/gpu", "0") for row in document["nodes"]] == ["0", "3", "0", "0", "0"]


def test_prices_are_added_up(tmp_path: Path) -> None:
    offerings = [{"zone": "eu-west-1a", "price": 3.5}, {"zone": "eu-west-1b", "price": 4}]
    capacity = {"cpu": "48", "memory": "192Gi", "pods": "110"}
    types = [{"name": "g5.12xlarge", "capacity": capacity, "offerings": offerings}]
    catalogue = tmp_path / "types.json"
    catalogue.write_text(json.dumps({"kind": "InstanceTypes", "apiVersion": "kschedx/v1", "instanceTypes": types}))
    result = command("nodes", "-s", CLUSTER, "--instance-types", str(catalogue))
    assert "price     $3.50 an hour for 1 of 5 nodes" in result.out

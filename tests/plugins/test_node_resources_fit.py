"""NodeResourcesFit: tables, and columns compared with the rule for one node and one resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.findings import InsufficientResource, PluginMessage, TooManyPods
from kschedx.framework.args import UtilizationShapePoint
from kschedx.framework.config import load_profiles
from kschedx.framework.cycle import Outcome
from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, Status
from kschedx.kube.scalars import truncated_quotient, wrap_int64
from kschedx.plugins.node_resources_fit import NodeResourcesFit
from kschedx.plugins.resource_allocation import shape_score
from kschedx.releases import resolve
from kschedx.snapshot.columns import ClusterRow, TableRow, cluster_rows
from kschedx.snapshot.nodes import PodRows
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, framework, node, only, pod

GPU = "example.com/gpu"
NIC = "example.com/nic"
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "10"}


def requesting(name: str, requests: Mapping[str, str], *, on: str | None = None) -> Manifest:
    """Return a pod of one container with these requests."""
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": dict(requests)}}])


def plugin(work: Framework) -> NodeResourcesFit:
    return next(item for item in work.plugins("filter", NodeResourcesFit))


def statuses(work: Framework, key: str = "default/new") -> list[Status]:
    """Return Filter's status on each node."""
    pods, fit, state = work.snapshot.pods, plugin(work), CycleState()
    incoming = pods[pods.rows[key]]
    fit.pre_filter(state, incoming, work.nodes)
    verdicts = fit.filter(state, incoming, work.nodes)
    return [verdicts.status(TableRow(row)) for row in range(len(verdicts))]


def fit(
    requests: Mapping[str, str],
    *,
    running: Sequence[Mapping[str, str]] = (),
    allocatable: Mapping[str, str] | None = None,
    args: Mapping[str, object] | None = None,
    others: Sequence[Manifest] = (),
    gates: Mapping[str, bool] | None = None,
) -> Status:
    """Return Filter's status on a node with these pods."""
    objects = [
        node("n", allocatable=allocatable or ALLOCATABLE),
        *(requesting(f"p{i}", item, on="n") for i, item in enumerate(running)),
        requesting("new", requests),
        *others,
    ]
    return statuses(framework(objects, only("NodeResourcesFit", args), gates))[0]


UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE

INSUFFICIENT_CPU_GPU_NIC = ("Insufficient cpu", f"Insufficient {GPU}", f"Insufficient {NIC}")


@pytest.mark.parametrize(
    ("requests", "running", "code", "reasons"),
    [
        ({}, [{"cpu": "4", "memory": "8Gi"}], Code.SUCCESS, ()),
        ({"cpu": "1"}, [{"cpu": "3"}], Code.SUCCESS, ()),
        ({"cpu": "1001m"}, [{"cpu": "3"}], UNSCHEDULABLE, ("Insufficient cpu",)),
        ({"cpu": "4001m"}, [], UNRESOLVABLE, ("Insufficient cpu",)),
        ({"memory": "1"}, [{"memory": "8Gi"}], UNSCHEDULABLE, ("Insufficient memory",)),
        ({"ephemeral-storage": "11Gi"}, [], UNRESOLVABLE, ("Insufficient ephemeral-storage",)),
        # one resource above allocatable makes the rejection unresolvable
        ({"cpu": "2", "memory": "9Gi"}, [{"cpu": "3"}], UNRESOLVABLE, ("Insufficient cpu", "Insufficient memory")),
        # no resource is free, and none is requested
        ({"cpu": "0", "memory": "0", GPU: "0"}, [{"cpu": "5", "memory": "9Gi"}], Code.SUCCESS, ()),
        ({GPU: "1"}, [], UNRESOLVABLE, (f"Insufficient {GPU}",)),
        ({NIC: "1", GPU: "1", "cpu": "5"}, [], UNRESOLVABLE, INSUFFICIENT_CPU_GPU_NIC),
        # amounts are rounded up: half a milli-unit counts as one
        ({"cpu": "500u"}, [{"cpu": "3999500u"}], UNSCHEDULABLE, ("Insufficient cpu",)),
    ],
)  # fmt: skip
def test_insufficient_resources(
    requests: Mapping[str, str], running: Sequence[Mapping[str, str]], code: Code, reasons: tuple[str, ...]
) -> None:
    status = fit(requests, running=running)
    assert (status.code, status.reasons) == (code, reasons)


def test_too_many_pods_precedes_insufficient_resources() -> None:
    status = fit({"cpu": "1"}, running=[{"cpu": "1"}], allocatable={"cpu": "1", "pods": "1"})
    assert status.code is UNSCHEDULABLE
    assert status.reasons == ("Too many pods", "Insufficient cpu")
    assert status.findings == (
        TooManyPods(pods=1, allowed=1),
        InsufficientResource(resource="cpu", requested=1000, used=1000, allocatable=1000, unit="m"),
    )


def test_a_node_without_allocatable_pods_rejects_every_pod() -> None:
    status = fit({}, allocatable={"cpu": "1"})
    assert (status.code, status.reasons) == (UNSCHEDULABLE, ("Too many pods",))


def test_the_finding_of_a_resource_that_no_node_has() -> None:
    status = fit({GPU: "2"}, running=[{GPU: "3"}])
    short = InsufficientResource(resource=GPU, requested=2, used=3, allocatable=0, unit="", offered_nowhere=True)
    assert status.findings == (short,)


@pytest.mark.parametrize(
    ("args", "passes"),
    [
        ({}, False),
        ({"ignoredResources": [GPU]}, True),
        ({"ignoredResources": ["example.com/other"]}, False),
        ({"ignoredResourceGroups": ["example.com"]}, True),
        ({"ignoredResourceGroups": ["example"]}, False),
    ],
)
def test_ignored_resources(args: Mapping[str, object], passes: bool) -> None:
    assert fit({GPU: "1"}, args=args).is_success is passes


@pytest.mark.parametrize("ignored", ["cpu", "hugepages-2Mi"])
def test_only_extended_resources_can_be_ignored(ignored: str) -> None:
    requests = {"cpu": "5", "memory": "1Mi", "hugepages-2Mi": "2Mi"}
    assert f"Insufficient {ignored}" in fit(requests, args={"ignoredResources": [ignored]}).reasons


DEVICE_CLASS: Manifest = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpus"},
    "spec": {"extendedResourceName": GPU},
}


@pytest.mark.parametrize(
    ("device_plugin_amount", "gate", "passes"),
    [
        (None, True, True),  # DynamicResources looks for a device
        ("0", True, True),
        ("1", True, False),  # the device plugin of the node provides it, and it is used
        (None, False, False),
    ],
)
def test_a_device_class_provides_an_extended_resource(
    device_plugin_amount: str | None, gate: bool, passes: bool
) -> None:
    allocatable = ALLOCATABLE if device_plugin_amount is None else ALLOCATABLE | {GPU: device_plugin_amount}
    status = fit(
        {GPU: "1"},
        running=[{GPU: "1"}],
        allocatable=allocatable,
        others=[DEVICE_CLASS],
        gates={"DRAExtendedResource": gate},
    )
    assert status.is_success is passes


def test_claim_statuses_of_an_earlier_attempt_do_not_count() -> None:
    claim_statuses = [{"resourceClaimName": "claim", "containers": ["main"], "resources": {"cpu": "1"}}]
    target = pod("new", status={"nodeAllocatableResourceClaimStatuses": claim_statuses})
    small_node = node("n", allocatable={"memory": "1Gi", "pods": "110"})
    gates = {"DRANodeAllocatableResources": True}
    assert evaluate([small_node, target], "default/new", only("NodeResourcesFit"), gates).outcome is Outcome.SCHEDULED


@pytest.mark.parametrize(("version", "point"), [("1.28", "filter"), ("1.29", "filter"), ("1.30", "preFilter")])
def test_a_disabled_gate_rejects_sidecars(version: str, point: str) -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    snapshot = Snapshot.from_objects([node("n"), pod("new", initContainers=[sidecar])])
    release = resolve(version, {"SidecarContainers": False})
    config = load_profiles(only("NodeResourcesFit"), release)
    work = Framework(config.profiles[0], config, snapshot, release)
    incoming, state = work.snapshot.pods[0], CycleState()
    pre_filter_status = plugin(work).pre_filter(state, incoming, work.nodes).status
    status = (
        pre_filter_status
        if point == "preFilter"
        else plugin(work).filter(state, incoming, work.nodes).status(TableRow(0))
    )
    assert pre_filter_status.is_success is (point == "filter")
    assert status.code is UNRESOLVABLE
    assert status.findings == (PluginMessage(text=status.message),)
    assert status.message == "Pod has a restartable init container and the SidecarContainers feature is disabled"


def test_removed_pods_free_resources_until_they_are_added_again() -> None:
    objects = [
        node("n", allocatable=ALLOCATABLE),
        requesting("old", {"cpu": "3"}, on="n"),
        requesting("new", {"cpu": "2"}),
    ]
    work = framework(objects, only("NodeResourcesFit"))
    incoming, state, item = work.snapshot.pods[1], CycleState(), plugin(work)
    change = PodRows(pods=np.array([0]), nodes=cluster_rows([ClusterRow(0)]))
    item.pre_filter(state, incoming, work.nodes)
    removed = work.remove_pods(state, incoming, work.nodes, change)
    restored = work.add_pods(state, incoming, removed, change)
    codes = [int(item.filter(state, incoming, table).codes[0]) for table in (work.nodes, removed, restored)]
    assert codes == [Code.UNSCHEDULABLE, Code.SUCCESS, Code.UNSCHEDULABLE]


AMOUNT = st.integers(0, 6)
AMOUNTS = st.fixed_dictionaries({}, optional=dict.fromkeys(("cpu", "memory", "ephemeral-storage", GPU, NIC), AMOUNT))


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


@given(
    clusters=st.lists(st.tuples(AMOUNTS, st.integers(0, 3), st.lists(AMOUNTS, max_size=3)), min_size=1, max_size=5),
    request=AMOUNTS,
)
def test_columns_equal_the_rule_for_one_node(
    clusters: list[tuple[dict[str, int], int, list[dict[str, int]]]], request: dict[str, int]
) -> None:
    objects = [requesting("new", quantities(request))]
    for i, (offer, allowed, running) in enumerate(clusters):
        objects.append(node(f"n{i}", allocatable={**quantities(offer), "pods": str(allowed)}))
        objects += [requesting(f"p{i}-{j}", quantities(item), on=f"n{i}") for j, item in enumerate(running)]
    result = statuses(framework(objects, only("NodeResourcesFit")))
    for status, (offer, allowed, running) in zip(result, clusters, strict=True):
        used = {name: sum(item.get(name, 0) for item in running) for name in request}
        shortages = [
            name for name, amount in request.items() if amount > 0 and amount > offer.get(name, 0) - used[name]
        ]
        is_crowded = len(running) + 1 > allowed
        is_unresolvable = any(request[name] > offer.get(name, 0) for name in shortages)
        expected = UNRESOLVABLE if is_unresolvable else UNSCHEDULABLE if is_crowded or shortages else Code.SUCCESS
        assert status.code is expected
        assert set(status.reasons) == {f"Insufficient {name}" for name in shortages} | (
            {"Too many pods"} if is_crowded else set()
        )
        assert len(status.findings) == len(status.reasons)


# --- scores


def scores(
    strategy: Mapping[str, object] | None,
    nodes: Sequence[Mapping[str, str]],
    requests: Mapping[str, str],
    running: Sequence[Mapping[str, str]] = (),
) -> list[int]:
    """Return the score of each node; the first node has the running pods."""
    args = None if strategy is None else {"scoringStrategy": dict(strategy)}
    objects = [node(f"n{i}", allocatable=offer) for i, offer in enumerate(nodes)]
    objects += [requesting(f"p{i}", item, on="n0") for i, item in enumerate(running)]
    work = framework([*objects, requesting("new", requests)], only("NodeResourcesFit", args))
    pods = work.snapshot.pods
    return cast(list[int], plugin(work).score(CycleState(), pods[pods.rows["default/new"]], work.nodes).tolist())


def strategy(kind: str, *resources: tuple[str, int], shape: Sequence[tuple[int, int]] = ()) -> Manifest:
    result: Manifest = {"type": kind, "resources": [{"name": name, "weight": weight} for name, weight in resources]}
    if shape:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        result["requestedToCapacityRatio"] = {"shape": points}
    return result


BOTH = (("cpu", 1), ("memory", 1))


@pytest.mark.parametrize(
    ("rule", "requests", "running", "expected"),
    [
        # cpu 3/4 and memory 1/8 used: the mean of 25 and 87
        (strategy("LeastAllocated", *BOTH), {"cpu": "1", "memory": "1Gi"}, [{"cpu": "2", "memory": "0"}], 56),
        (strategy("LeastAllocated", ("cpu", 3), ("memory", 1)), {"cpu": "3", "memory": "1Gi"}, [], (3 * 25 + 87) // 4),
        (strategy("MostAllocated", *BOTH), {"cpu": "3", "memory": "1Gi"}, [], (75 + 12) // 2),
        # missing requests count as 100m and 200Mi: 100*100/4000, 100*200Mi/8Gi
        (strategy("MostAllocated", *BOTH), {}, [], (2 + 2) // 2),
        (strategy("MostAllocated", *BOTH), {}, [{}, {}], (7 + 7) // 2),
        # requests above allocatable
        (strategy("LeastAllocated", *BOTH), {"cpu": "5", "memory": "8Gi"}, [], 0),
        (strategy("MostAllocated", *BOTH), {"cpu": "5", "memory": "8Gi"}, [], 100),
        # ephemeral-storage has no default
        (strategy("LeastAllocated", ("ephemeral-storage", 1)), {}, [{"ephemeral-storage": "4Gi"}], 60),
        # extended resources count if the pod requests them and the node has them
        (strategy("MostAllocated", ("cpu", 1), (GPU, 1)), {"cpu": "2"}, [], 50),
        (strategy("MostAllocated", ("cpu", 1), (GPU, 1)), {"cpu": "2", GPU: "1"}, [], (50 + 25) // 2),
        (strategy("MostAllocated", (NIC, 1)), {NIC: "1"}, [], 0),
        # 62.5 is rounded up; a resource that scores 0 does not count
        (strategy("RequestedToCapacityRatio", *BOTH, shape=((0, 0), (100, 10))), {"cpu": "3", "memory": "4Gi"}, [], 63),
        (strategy("RequestedToCapacityRatio", *BOTH, shape=((90, 0), (100, 10))), {"cpu": "4", "memory": "1"}, [], 100),
        (strategy("RequestedToCapacityRatio", *BOTH, shape=((0, 10), (100, 0))), {"cpu": "9", "memory": "9Gi"}, [], 0),
    ],
)  # fmt: skip
def test_scores_of_strategies(
    rule: Mapping[str, object], requests: Mapping[str, str], running: Sequence[Mapping[str, str]], expected: int
) -> None:
    assert scores(rule, [ALLOCATABLE | {GPU: "4"}], requests, running) == [expected]


def test_least_allocated_is_the_default() -> None:
    assert scores(None, [ALLOCATABLE, {"cpu": "2"}, {"pods": "1"}], {"cpu": "1", "memory": "4Gi"}) == [
        (75 + 50) // 2,
        50,
        0,
    ]


@pytest.mark.parametrize(
    ("capacity", "request_bytes", "running"),
    [
        (2**60, 2**10, []),
        # the sum of the requests overflows, and so does the difference
        (2**30, 2**10, [{"memory": "8Ei"}, {"memory": "1Ki"}]),
    ],
)
def test_large_amounts_overflow_like_int64(
    capacity: int, request_bytes: int, running: Sequence[Mapping[str, str]]
) -> None:
    used = 2**63 - 1 + 2**10 if running else 0
    requested = wrap_int64(used + request_bytes)
    wrapped_score = wrap_int64(wrap_int64(capacity - requested) * 100)
    rule = strategy("LeastAllocated", ("memory", 1))
    expected = truncated_quotient(wrapped_score, capacity)
    nodes = [{"memory": str(capacity), "pods": "9"}]
    assert scores(rule, nodes, {"memory": str(request_bytes)}, running) == [expected]


@pytest.mark.parametrize(
    ("utilization", "score"), [(0, 20), (10, 20), (15, 30), (20, 40), (33, 37), (60, 30), (99, 0), (100, 0)]
)
def test_the_score_of_a_shape(utilization: int, score: int) -> None:
    points = [(10, 2), (20, 4), (60, 3), (90, 0)]
    shape = [UtilizationShapePoint(utilization=at, score=value) for at, value in points]
    # between 20 and 60 the line falls by 10: at 33 by 3.25, of which the fraction is dropped towards zero
    assert shape_score(shape, utilization) == score

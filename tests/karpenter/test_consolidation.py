"""The nodes that Karpenter removes: emptiness, drift, multi-node and single-node consolidation, and Balanced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.karpenter.catalogue import InstanceTypes
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions
from kschedx.karpenter.consolidation import PRICES_UNKNOWN, Command, Consolidation, Consolidator, Method
from kschedx.karpenter.scheduler import KarpenterSettings
from kschedx.kube.decoding import decode
from kschedx.snapshot.snapshot import Snapshot
from tests.command import check_document, kschedx

Json = dict[str, Any]
SIZES = {"small": (2, 0.1), "medium": (4, 0.2), "large": (8, 0.4)}
ZONE = "eu-1a"


def catalogue() -> Json:
    types = [
        {
            "name": name,
            "capacity": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
            "offerings": [
                {"zone": ZONE, "capacityType": "on-demand", "price": price},
                {"zone": ZONE, "capacityType": "spot", "price": price / 2},
            ],
        }
        for name, (cpu, price) in SIZES.items()
    ]
    return {"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": types}


def node(name: str, size: str, *conditions: str, capacity_type: str = "on-demand") -> list[Json]:
    cpu, _ = SIZES[size]
    amounts = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    labels = {
        "karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": size, "kubernetes.io/hostname": name,
        "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true",
        "karpenter.sh/capacity-type": capacity_type,
        "topology.kubernetes.io/zone": ZONE, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    }  # fmt: skip
    texts = [{"type": item, "status": "True"} for item in conditions or ("Consolidatable",)]
    return [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": f"aws:///{name}"}, "status": {"capacity": amounts, "allocatable": amounts},
        },
        {
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": f"claim-{name}", "labels": {"karpenter.sh/nodepool": "general"}},
            "status": {"providerID": f"aws:///{name}", "conditions": texts},
        },
    ]  # fmt: skip


def pool(*capacity_types: str, **disruption: Any) -> Json:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity_types or ("on-demand",))}
    ]
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
        "spec": {
            "template": {"spec": {"requirements": requirements}},
            "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "100%"}], **disruption},
        },
    }  # fmt: skip


def pod(name: str, on: str, cpu: str, **metadata: Any) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner], **metadata},
        "spec": {"nodeName": on, "containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Running", "startTime": "2026-06-20T11:00:00Z"},
    }  # fmt: skip


def consolidation(
    *objects: Json | list[Json], types: Json | None = None, prices: bool = True, flags: tuple[str, ...] = ()
) -> Consolidation:
    flat = [item for part in objects for item in (part if isinstance(part, list) else [part])]
    catalogue_of_types = decode(json.dumps(types or catalogue()).encode(), InstanceTypes) if prices else None
    options = KarpenterOptions(catalogue=catalogue_of_types, settings=KarpenterSettings.read(["version=1.13", *flags]))
    karpenter = Karpenter.of(Snapshot.from_objects(flat), options)
    assert karpenter is not None
    return Consolidator(karpenter).run()


def commands_of(consolidation: Consolidation, method: Method) -> list[Command]:
    return [command for command in consolidation.commands if command.method is method]


def test_empty_nodes_are_deleted_together() -> None:
    result = consolidation(pool(), node("a", "small"), node("b", "large"), node("c", "small"), pod("web", "c", "1500m"))
    (empty,) = commands_of(result, Method.EMPTINESS)
    assert ({*empty.nodes}, empty.savings) == ({"a", "b"}, 0.5)
    assert [item.nodes for item in commands_of(result, Method.SINGLE_NODE)] == [("c",)]


def test_a_budget_limits_the_number_of_deleted_nodes() -> None:
    nodes = [item for name in "abcdefghij" for item in node(name, "small")]
    (empty,) = commands_of(consolidation(pool(budgets=[{"nodes": "20%"}]), nodes), Method.EMPTINESS)
    assert len(empty.nodes) == 2


def test_a_node_whose_pods_fit_the_others_is_deleted() -> None:
    result = consolidation(pool(), node("a", "medium"), node("b", "medium"), pod("x", "a", "1"), pod("y", "b", "2"))
    assert [item.nodes for item in commands_of(result, Method.SINGLE_NODE)] == [("a",), ("b",)]
    assert commands_of(result, Method.SINGLE_NODE)[0].savings == 0.2


def test_a_large_node_is_replaced_with_a_cheaper_one() -> None:
    result = consolidation(pool(), node("a", "large"), pod("x", "a", "1500m"))
    (replacement,) = commands_of(result, Method.SINGLE_NODE)
    assert (replacement.types, replacement.price, replacement.new_price) == (("small", "medium"), 0.4, 0.1)


def test_several_nodes_are_replaced_with_one() -> None:
    result = consolidation(
        pool(),
        node("a", "medium"), node("b", "medium"), node("c", "medium"),
        pod("x", "a", "1500m"), pod("y", "b", "1500m"), pod("z", "c", "1500m"),
    )  # fmt: skip
    (replacement,) = commands_of(result, Method.MULTI_NODE)
    assert ({*replacement.nodes}, replacement.types) == ({"a", "b", "c"}, ("large",))
    assert replacement.savings == pytest.approx(0.2)
    assert result.kept == {}


def test_obstacles_of_consolidation() -> None:
    assert consolidation(pool(), node("a", "small"), pod("x", "a", "1500m")).kept == {
        "a": "Can't replace with a cheaper node"
    }
    spot = consolidation(pool("spot"), node("a", "large", capacity_type="spot"), pod("x", "a", "1"))
    assert spot.kept == {"a": "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"}
    protected = pod("x", "a", "1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    assert consolidation(pool(), node("a", "large"), protected).kept == {
        "a": 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/x)'
    }
    assert consolidation(pool(), node("a", "large"), pod("x", "a", "1"), prices=False).kept == {
        "a": "prices are not known: add them with --instance-types"
    }
    initializing = consolidation(pool(), node("a", "large", "Ready"), pod("x", "a", "1"))
    assert (initializing.commands, initializing.kept) == ((), {"a": "its NodeClaim is not Consolidatable"})


def many_types(number: int) -> Json:
    """Return the catalogue with this many more types of 2 CPU, all cheaper than the others."""
    document = catalogue()
    template = document["instanceTypes"][0]
    cheaper_types = [
        {
            **template,
            "name": f"tiny-{index}",
            "offerings": [{**offering, "price": index / 1000} for offering in template["offerings"]],
        }
        for index in range(1, number + 1)
    ]
    return {**document, "instanceTypes": [*document["instanceTypes"], *cheaper_types]}


def test_a_spot_node_is_replaced_with_the_cheapest_of_fifteen_types() -> None:
    flags = ("feature-gates=CapacityBuffer=true,SpotToSpotConsolidation=true",)
    objects = (pool("spot"), node("a", "large", capacity_type="spot"), pod("x", "a", "1"))
    few = consolidation(*objects, flags=flags)
    assert few.kept == {
        "a": "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to "
        "consolidate, got 2"
    }
    (replacement,) = commands_of(consolidation(*objects, types=many_types(20), flags=flags), Method.SINGLE_NODE)
    assert replacement.types == tuple(f"tiny-{number}" for number in range(1, 16))


def test_the_cheaper_types_have_to_meet_min_values() -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3}
    strict_pool = pool()
    strict_pool["spec"]["template"]["spec"]["requirements"].append(requirement)
    kept = consolidation(strict_pool, node("a", "large"), pod("x", "a", "1")).kept
    text = "minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])"
    assert kept == {"a": f"Filtering by price: {text}"}
    assert commands_of(
        consolidation(strict_pool, node("a", "large"), pod("x", "a", "1"), types=many_types(1)), Method.SINGLE_NODE
    )


def test_a_drifted_node_is_replaced_at_any_cost() -> None:
    result = consolidation(pool(), node("a", "small", "Drifted"), pod("x", "a", "1500m"))
    (drift,) = commands_of(result, Method.DRIFT)
    assert (drift.nodes, drift.replacements) == (("a",), 1)


def test_a_termination_grace_period_lets_a_drifted_node_go_with_its_pods() -> None:
    guarded = pod("x", "a", "1500m", annotations={"karpenter.sh/do-not-disrupt": "true"})
    drifted = node("a", "small", "Drifted", "Consolidatable")
    assert consolidation(pool(), drifted, guarded).commands == ()
    drifted[1]["spec"] = {"terminationGracePeriod": "1h"}
    (drift,) = consolidation(pool(), drifted, guarded).commands
    assert (drift.method, drift.nodes, drift.replacements) == (Method.DRIFT, ("a",), 1)
    drifted[1]["status"]["conditions"].pop(0)
    assert consolidation(pool(), drifted, guarded).commands == ()


def test_drift_tries_every_node_while_a_budget_allows_one() -> None:
    result = consolidation(
        pool(budgets=[{"nodes": "1"}]),
        *(node("a", "small", "Drifted"), pod("x", "a", "100")),
        *(node("b", "small", "Drifted"), pod("y", "b", "1")),
    )
    assert [command.nodes for command in result.commands] == [("b",)]


@pytest.mark.parametrize(
    ("budgets", "disruption", "cpu", "kept"),
    [
        ([{"nodes": "100%"}], {"consolidateAfter": "Never"}, "1", {}),
        ([{"nodes": "100%"}], {"consolidateAfter": "Never"}, "100", {"a": "Not all pods would schedule, shop/x => "}),
        ([{"nodes": "0", "reasons": ["Drifted"]}], {"consolidateAfter": "Never"}, "1", {"a": "No allowed disruptions"}),
        ([{"nodes": "0", "reasons": ["Drifted"]}], {}, "100", {"a": "Not all pods would schedule, shop/x => "}),
    ],
)
def test_what_keeps_a_drifted_node(
    budgets: list[dict[str, object]], disruption: dict[str, str], cpu: str, kept: dict[str, str]
) -> None:
    """Without drift, for which a budget may allow none, the node is consolidated as any other."""
    drifted = (node("a", "small", "Drifted", "Consolidatable"), pod("x", "a", cpu))
    its_pool = pool(budgets=budgets, **disruption)
    result = consolidation(its_pool, *drifted)
    assert {name: text[: len(kept[name])] for name, text in result.kept.items()} == kept
    allows_drift = "reasons" not in budgets[0]
    assert [command.method for command in result.commands] == ([Method.DRIFT] if allows_drift and not kept else [])


def test_nodes_that_are_not_ready_use_up_a_budget() -> None:
    lost = node("b", "small")
    lost[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    for pods in ([], [pod("x", "a", "1500m"), pod("y", "b", "1500m")]):
        result = consolidation(pool(budgets=[{"nodes": "1"}]), node("a", "small"), *pods, lost)
        assert (result.commands, {*result.kept.values()}) == ((), {"No allowed disruptions due to blocking budget"})
    for budget, number in (({"nodes": "2"}, 1), ({"nodes": "0", "reasons": ["Drifted"]}, 2)):
        (empty,) = consolidation(pool(budgets=[budget]), node("a", "small"), lost).commands
        assert len(empty.nodes) == number


def test_a_new_node_is_in_the_zone_of_the_lowest_known_price() -> None:
    types = catalogue()
    prices: list[tuple[str, dict[str, float]]] = [(ZONE, {}), ("eu-1b", {"price": 0.2}), ("eu-1c", {"price": 0.1})]
    for item in types["instanceTypes"]:
        item["offerings"] = [{"zone": zone, "capacityType": "on-demand", **price} for zone, price in prices]
    waiting = pod("x", "", "1")
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting["status"] = {"phase": "Pending", "conditions": [unschedulable]}
    options = KarpenterOptions(catalogue=decode(json.dumps(types).encode(), InstanceTypes))
    karpenter = Karpenter.of(Snapshot.from_objects([pool(), waiting]), options)
    assert karpenter is not None
    (added,) = karpenter.grow().snapshot.cluster.nodes
    assert added.metadata.labels["topology.kubernetes.io/zone"] == "eu-1c"


def test_balanced_compares_savings_with_disruption() -> None:
    small_pods = [pod(f"p{number}", "a", "100m") for number in range(15)]
    nodes = (node("a", "medium"), node("b", "large"), pod("big", "b", "7"))
    greedy = consolidation(pool(), *nodes, *small_pods)
    balanced = consolidation(pool(consolidationPolicy="Balanced"), *nodes, *small_pods, flags=("version=1.14",))
    assert [item.nodes for item in commands_of(greedy, Method.SINGLE_NODE)] == [("a",)]
    # saves half of the node, 0.1 of 0.6 an hour, and disrupts 16 of 18
    assert (commands_of(balanced, Method.SINGLE_NODE), balanced.follows) == ([], "1.14")
    assert balanced.kept["a"] == "score 0.19 is below 0.50 (Balanced)"


def test_balanced_needs_prices_for_different_types() -> None:
    """Equal types have equal prices, and deletions need no price of a new node."""
    other_objects = (node("b", "medium"), pod("x", "a", "1"), pod("y", "b", "2"))
    equal_prices, different_prices = (
        consolidation(
            pool(consolidationPolicy="Balanced"), node("a", size), *other_objects, prices=False, flags=("version=1.14",)
        )
        for size in ("medium", "large")
    )
    assert [item.nodes for item in commands_of(equal_prices, Method.SINGLE_NODE)] == [("a",), ("b",)]
    assert [*commands_of(equal_prices, Method.SINGLE_NODE)[0].scores.values()] == [1.0]
    assert commands_of(different_prices, Method.SINGLE_NODE) == []
    assert {*different_prices.kept.values()} == {PRICES_UNKNOWN}


@pytest.mark.parametrize("is_on", [True, False])
def test_capacity_that_a_buffer_keeps_free_is_not_removed(is_on: bool) -> None:
    """Only the empty node has room for a virtual pod of 3 CPU; then it has no room for the other node's pod."""
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "3"}}}
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "shop", "uid": "spare"},
        "spec": {"podTemplateRef": {"name": "chunk"}, "replicas": 1},
        "status": {"replicas": 1, "conditions": [{"type": "ReadyForProvisioning", "status": "True"}]},
    }  # fmt: skip
    pod_template = {
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "chunk", "namespace": "shop"},
        "template": {"spec": {"containers": [container]}},
    }  # fmt: skip
    flags = ("version=1.14", f"feature-gates=CapacityBuffer={str(is_on).lower()}")
    nodes = (node("a", "medium"), node("b", "small"), pod("x", "b", "1500m"))
    result = consolidation(pool(), *nodes, buffer, pod_template, flags=flags)
    assert [item.nodes for item in commands_of(result, Method.EMPTINESS)] == ([] if is_on else [("a",)])
    assert [item.nodes for item in commands_of(result, Method.SINGLE_NODE)] == ([] if is_on else [("b",)])
    assert result.kept.get("a") == ('Node "a" has buffer pods' if is_on else None)


def test_scale_down_prints_the_consolidation(tmp_path: Path) -> None:
    cluster, types = tmp_path / "cluster.json", tmp_path / "types.json"
    objects = [pool(), *node("a", "large"), pod("x", "a", "1500m")]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    types.write_text(json.dumps(catalogue()))
    answer = kschedx("scale-down", "-s", cluster, "--instance-types", types)
    assert "single-node: replaces a with a node of small, medium, saves $0.30 of $0.40 an hour" in answer.out
    answer = kschedx("scale-down", "-s", cluster, "--instance-types", types, "-o", "json")
    document = json.loads(answer.out)
    check_document(document)
    assert document["consolidation"]["commands"][0]["savings"] == "0.3000"

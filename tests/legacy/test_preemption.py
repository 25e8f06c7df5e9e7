"""Preemption in 1.13, the two passes with nominated pods, and that 1.5 has neither."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import decide, policy

HOST = "kubernetes.io/hostname"
ONE = {"cpu": "4", "memory": "8Gi", "pods": "9"}


def asks(cpu: str, priority: int, **more: object) -> Manifest:
    """A pod's spec."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], "priority": priority, **more}


def runs(
    name: str, on: str, priority: int = 0, cpu: str = "2", app: str = "", status: Manifest | None = None, **spec: object
) -> Manifest:
    return pod(name, on=on, labels={"app": app} if app else {}, status=status, spec=asks(cpu, priority, **spec))


def web(cpu: str = "3", priority: int = 10, nominated_for: str = "", **spec: object) -> Manifest:
    status: Manifest = {"nominatedNodeName": nominated_for} if nominated_for else {}
    return pod("web", labels={"app": "web"}, status=status, spec=asks(cpu, priority, **spec))


def budget(app: str, allowed: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def candidates(*objects: Manifest, config: Manifest | None = None) -> dict[str, tuple[list[str], int]]:
    """Node to victims and violated budgets."""
    decision = decide(objects, config=config)["postFilter"]["candidates"]
    return {
        item["node"]: ([key.removeprefix("default/") for key in item["victims"]], item["pdbViolations"])
        for item in decision
    }


def best(*objects: Manifest) -> list[str]:
    chosen: list[str] = decide(objects)["postFilter"]["bestCandidates"]
    return chosen


def test_the_least_important_pods_that_make_room_go() -> None:
    cluster = [
        node("a", allocatable=ONE),
        runs("low", "a", 1),
        runs("lower", "a", 0, cpu="1"),
        runs("tiny", "a", 0, cpu="1"),
    ]
    assert candidates(*cluster, web(cpu="2")) == {"a": (["lower", "tiny"], 0)}
    assert candidates(*cluster, web(cpu="1")) == {"a": (["tiny"], 0)}
    document = decide([*cluster, web(cpu="1")])
    assert document["postFilter"]["nominatedNode"] == "a"
    assert document["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_of_the_same_priority_stay() -> None:
    cluster = [node("a", allocatable=ONE), runs("equal", "a", 10)]
    assert candidates(*cluster, web()) == {}
    assert decide([*cluster, web()])["postFilter"]["code"] == "Unschedulable"


@pytest.mark.parametrize(("allowed", "victims"), [(0, (["free"], 0)), (1, (["kept"], 0))])
def test_a_budget_that_is_used_up_protects(allowed: int, victims: tuple[list[str], int]) -> None:
    kept = runs("kept", "a", 0, app="db")
    assert candidates(node("a", allocatable=ONE), kept, runs("free", "a", 1), budget("db", allowed), web(cpu="2")) == {
        "a": victims
    }


def test_a_budget_is_not_counted_down() -> None:
    both = [runs(name, "a", app="db") for name in ("one", "two")]
    assert candidates(node("a", allocatable=ONE), *both, budget("db", 1), web(cpu="4")) == {"a": (["one", "two"], 0)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([runs("v", "a", 5)], [runs("w", "b", 4)]),  # the highest priority
        (
            [runs("v1", "a", 4, "1500m"), runs("v2", "a", 3, "1500m")],
            [runs("w1", "b", 4, "1500m"), runs("w2", "b", 2, "1500m")],
        ),
        ([runs("v1", "a", -1, "1500m"), runs("v2", "a", -(2**31), "1500m")], [runs("w", "b", -1)]),  # fewer of them
    ],
)
def test_the_node_where_it_hurts_least(first: list[Manifest], second: list[Manifest]) -> None:
    nodes = [node("a", allocatable=ONE), node("b", allocatable=ONE)]
    assert best(*nodes, *first, *second, web(cpu="4")) == ["b"]


def test_the_start_of_a_pod_tells_nothing_apart() -> None:
    nodes = [node("a", allocatable=ONE), node("b", allocatable=ONE)]
    early = runs("v", "a", status={"startTime": "2020-01-01T00:00:00Z"})
    late = runs("w", "b", status={"startTime": "2021-01-01T00:00:00Z"})
    assert best(*nodes, early, late, web()) == ["a", "b"]


@pytest.mark.parametrize(
    "where",
    [
        node("a", allocatable=ONE, taints=["k:NoSchedule"]),
        node("a", allocatable=ONE, unschedulable=True),
        node("a", allocatable=ONE, labels={"pool": "other"}),
    ],
)
def test_nodes_on_which_no_eviction_helps_are_not_tried(where: Manifest) -> None:
    assert candidates(where, runs("low", "a"), web(nodeSelector={"pool": "mine"})) == {}


def test_all_reasons_count_where_all_are_asked_for() -> None:
    cluster = [node("a", allocatable=ONE, taints=["k:NoSchedule"]), runs("low", "a"), web()]
    assert decide(cluster)["filter"]["nodes"]["a"]["verdict"]["code"] == "Unschedulable"
    everything = policy(alwaysCheckAllPredicates=True)
    assert (
        decide(cluster, config=everything)["filter"]["nodes"]["a"]["verdict"]["code"] == "UnschedulableAndUnresolvable"
    )
    # without that, the taint is found out only by trying
    assert candidates(*cluster) == candidates(*cluster, config=everything) == {}


def away(*terms: tuple[str, str]) -> Manifest:
    written = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} for app, key in terms]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": written}}


def test_a_pod_that_is_put_back_counts_under_every_key() -> None:
    """The node lacks the label of the rule that matches "beside", which is no obstacle until it is put back."""
    there = node("a", labels={HOST: "a"}, allocatable=ONE)
    near, beside = runs("near", "a", app="near"), runs("beside", "a", 5, cpu="1", app="far")
    mine = web(cpu="1", affinity=away(("near", HOST), ("far", "rack")))
    assert decide([there, beside, mine])["outcome"] == "Scheduled"
    assert candidates(there, near, beside, mine) == {"a": (["beside", "near"], 0)}


def test_whoever_repels_the_pod_can_go() -> None:
    repelling = runs("alone", "a", cpu="1", affinity=away(("web", HOST)))
    cluster = [node("a", labels={HOST: "a"}, allocatable=ONE), repelling, runs("other", "a", cpu="1")]
    assert candidates(*cluster, web(cpu="1")) == {"a": (["alone"], 0)}


# --- nominated pods


def nominated(name: str, priority: int) -> Manifest:
    return pod(name, labels={"app": name}, status={"nominatedNodeName": "a"}, spec=asks("2", priority))


@pytest.mark.parametrize(("priority", "fits"), [(20, False), (10, False), (9, True)])
def test_pods_nominated_for_a_node_hold_their_place(priority: int, fits: bool) -> None:
    cluster = [node("a", allocatable=ONE), nominated("next", priority), web()]
    assert (decide(cluster)["outcome"] == "Scheduled") is fits
    assert decide(cluster, gates={"PodPriority": False})["outcome"] == "Scheduled"
    assert decide(cluster, "1.5")["outcome"] == "Scheduled"


def test_a_nominated_pod_is_no_company_yet() -> None:
    """A node must do without the nominated pods as well; to the pod's own rules they are not there at all."""
    near: Manifest = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "next"}}}
            ]
        }
    }
    cluster = [node("a", labels={HOST: "a"}, allocatable=ONE), nominated("next", 20)]
    assert decide([*cluster, web(cpu="1", affinity=near)])["outcome"] == "Unschedulable"
    assert decide([*cluster, web(cpu="1", affinity=away(("next", HOST)))])["outcome"] == "Scheduled"


def test_its_own_nomination_is_waited_for_while_victims_leave() -> None:
    going: Manifest = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    leaving = pod("leaving", on="a", metadata=going, spec=asks("2", 0))
    cluster = [node("a", allocatable=ONE), leaving, node("b", allocatable=ONE), runs("low", "b")]
    waiting = decide([*cluster, web(nominated_for="a")])["postFilter"]
    assert (waiting["code"], waiting["candidates"]) == ("Unschedulable", [])
    assert best(*cluster, web()) == ["a", "b"]


# --- who does not preempt


def test_preemption_policy_is_of_a_later_time() -> None:
    assert best(node("a", allocatable=ONE), runs("low", "a"), web(preemptionPolicy="Never")) == ["a"]


@pytest.mark.parametrize(("version", "gates"), [("1.13", {"PodPriority": False}), ("1.5", {})])
def test_nobody_is_evicted(version: str, gates: dict[str, bool]) -> None:
    decision = decide([node("a", allocatable=ONE), runs("low", "a"), web()], version, gates=gates)
    assert (decision["outcome"], decision["postFilter"]) == ("Unschedulable", None)


def test_fixes_are_tried_with_predicates_too() -> None:
    cluster = [node("a", allocatable=ONE), runs("equal", "a", 10), web()]
    for version in ("1.13", "1.5"):
        titles = {(fix["title"], fix["certainty"]) for fix in decide(cluster, version)["fixes"]}
        assert ("lower requests.cpu of container main from 3 to 2", "verified") in titles

"""Preemption in 1.13, and filtering with and without nominated pods; 1.5 has neither."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import decide, policy

HOST = "kubernetes.io/hostname"
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "9"}


def spec_with_request(cpu: str, priority: int, **fields: object) -> Manifest:
    """Return the spec of a pod with this request and priority."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], "priority": priority, **fields}


def running_pod(
    name: str, on: str, priority: int = 0, cpu: str = "2", app: str = "", status: Manifest | None = None, **spec: object
) -> Manifest:
    return pod(
        name, on=on, labels={"app": app} if app else {}, status=status, spec=spec_with_request(cpu, priority, **spec)
    )


def web(cpu: str = "3", priority: int = 10, nominated_for: str = "", **spec: object) -> Manifest:
    status: Manifest = {"nominatedNodeName": nominated_for} if nominated_for else {}
    return pod("web", labels={"app": "web"}, status=status, spec=spec_with_request(cpu, priority, **spec))


def budget(app: str, allowed: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def candidates(*objects: Manifest, config: Manifest | None = None) -> dict[str, tuple[list[str], int]]:
    """Return the victims and the number of violated budgets of each candidate node."""
    decision = decide(objects, config=config)["postFilter"]["candidates"]
    return {
        item["node"]: ([key.removeprefix("default/") for key in item["victims"]], item["pdbViolations"])
        for item in decision
    }


def best(*objects: Manifest) -> list[str]:
    nodes: list[str] = decide(objects)["postFilter"]["bestCandidates"]
    return nodes


def test_the_least_important_pods_are_victims() -> None:
    cluster = [
        node("a", allocatable=ALLOCATABLE),
        running_pod("low", "a", 1),
        running_pod("lower", "a", 0, cpu="1"),
        running_pod("tiny", "a", 0, cpu="1"),
    ]
    assert candidates(*cluster, web(cpu="2")) == {"a": (["lower", "tiny"], 0)}
    assert candidates(*cluster, web(cpu="1")) == {"a": (["tiny"], 0)}
    document = decide([*cluster, web(cpu="1")])
    assert document["postFilter"]["nominatedNode"] == "a"
    assert document["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_of_the_same_priority_stay() -> None:
    cluster = [node("a", allocatable=ALLOCATABLE), running_pod("equal", "a", 10)]
    assert candidates(*cluster, web()) == {}
    assert decide([*cluster, web()])["postFilter"]["code"] == "Unschedulable"


@pytest.mark.parametrize(("allowed", "victims"), [(0, (["free"], 0)), (1, (["kept"], 0))])
def test_an_exhausted_budget_protects_its_pods(allowed: int, victims: tuple[list[str], int]) -> None:
    protected = running_pod("kept", "a", 0, app="db")
    assert candidates(
        node("a", allocatable=ALLOCATABLE), protected, running_pod("free", "a", 1), budget("db", allowed), web(cpu="2")
    ) == {"a": victims}


def test_a_budget_is_not_counted_down() -> None:
    pods = [running_pod(name, "a", app="db") for name in ("one", "two")]
    assert candidates(node("a", allocatable=ALLOCATABLE), *pods, budget("db", 1), web(cpu="4")) == {
        "a": (["one", "two"], 0)
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([running_pod("v", "a", 5)], [running_pod("w", "b", 4)]),  # the highest priority of its victims is lowest
        (
            [running_pod("v1", "a", 4, "1500m"), running_pod("v2", "a", 3, "1500m")],
            [running_pod("w1", "b", 4, "1500m"), running_pod("w2", "b", 2, "1500m")],
        ),
        (
            [running_pod("v1", "a", -1, "1500m"), running_pod("v2", "a", -(2**31), "1500m")],
            [running_pod("w", "b", -1)],
        ),  # fewer victims
    ],
)
def test_the_best_candidate_has_the_least_important_victims(first: list[Manifest], second: list[Manifest]) -> None:
    nodes = [node("a", allocatable=ALLOCATABLE), node("b", allocatable=ALLOCATABLE)]
    assert best(*nodes, *first, *second, web(cpu="4")) == ["b"]


def test_the_start_time_does_not_rank_candidates() -> None:
    nodes = [node("a", allocatable=ALLOCATABLE), node("b", allocatable=ALLOCATABLE)]
    early = running_pod("v", "a", status={"startTime": "2020-01-01T00:00:00Z"})
    late = running_pod("w", "b", status={"startTime": "2021-01-01T00:00:00Z"})
    assert best(*nodes, early, late, web()) == ["a", "b"]


@pytest.mark.parametrize(
    "target_node",
    [
        node("a", allocatable=ALLOCATABLE, taints=["k:NoSchedule"]),
        node("a", allocatable=ALLOCATABLE, unschedulable=True),
        node("a", allocatable=ALLOCATABLE, labels={"pool": "other"}),
    ],
)
def test_nodes_with_unresolvable_rejections_are_not_tried(target_node: Manifest) -> None:
    assert candidates(target_node, running_pod("low", "a"), web(nodeSelector={"pool": "mine"})) == {}


def test_always_check_all_predicates_finds_unresolvable_reasons() -> None:
    cluster = [node("a", allocatable=ALLOCATABLE, taints=["k:NoSchedule"]), running_pod("low", "a"), web()]
    assert decide(cluster)["filter"]["nodes"]["a"]["verdict"]["code"] == "Unschedulable"
    all_reasons = policy(alwaysCheckAllPredicates=True)
    assert (
        decide(cluster, config=all_reasons)["filter"]["nodes"]["a"]["verdict"]["code"] == "UnschedulableAndUnresolvable"
    )
    # otherwise only the dry run finds the taint
    assert candidates(*cluster) == candidates(*cluster, config=all_reasons) == {}


def anti_affinity(*terms: tuple[str, str]) -> Manifest:
    anti_affinity_terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} for app, key in terms]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti_affinity_terms}}


def test_a_reprieved_pod_counts_under_every_topology_key() -> None:
    """The node lacks the label of the term that matches "beside", which matters only when the pod is added again."""
    node_a = node("a", labels={HOST: "a"}, allocatable=ALLOCATABLE)
    near_pod, readded = running_pod("near", "a", app="near"), running_pod("beside", "a", 5, cpu="1", app="far")
    target = web(cpu="1", affinity=anti_affinity(("near", HOST), ("far", "rack")))
    assert decide([node_a, readded, target])["outcome"] == "Scheduled"
    assert candidates(node_a, near_pod, readded, target) == {"a": (["beside", "near"], 0)}


def test_a_pod_with_anti_affinity_can_be_a_victim() -> None:
    pod_with_anti_affinity = running_pod("alone", "a", cpu="1", affinity=anti_affinity(("web", HOST)))
    cluster = [
        node("a", labels={HOST: "a"}, allocatable=ALLOCATABLE),
        pod_with_anti_affinity,
        running_pod("other", "a", cpu="1"),
    ]
    assert candidates(*cluster, web(cpu="1")) == {"a": (["alone"], 0)}


# --- nominated pods


def nominated_pod(name: str, priority: int) -> Manifest:
    return pod(name, labels={"app": name}, status={"nominatedNodeName": "a"}, spec=spec_with_request("2", priority))


@pytest.mark.parametrize(("priority", "fits"), [(20, False), (10, False), (9, True)])
def test_nominated_pods_use_resources(priority: int, fits: bool) -> None:
    cluster = [node("a", allocatable=ALLOCATABLE), nominated_pod("next", priority), web()]
    assert (decide(cluster)["outcome"] == "Scheduled") is fits
    assert decide(cluster, gates={"PodPriority": False})["outcome"] == "Scheduled"
    assert decide(cluster, "1.5")["outcome"] == "Scheduled"


def test_a_nominated_pod_does_not_satisfy_affinity() -> None:
    """A pod must also fit without the nominated pods, and its own terms ignore them."""
    pod_affinity: Manifest = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "next"}}}
            ]
        }
    }
    cluster = [node("a", labels={HOST: "a"}, allocatable=ALLOCATABLE), nominated_pod("next", 20)]
    assert decide([*cluster, web(cpu="1", affinity=pod_affinity)])["outcome"] == "Unschedulable"
    assert decide([*cluster, web(cpu="1", affinity=anti_affinity(("next", HOST)))])["outcome"] == "Scheduled"


def test_a_pod_waits_for_terminating_victims_on_its_nominated_node() -> None:
    deleted: Manifest = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    terminating = pod("leaving", on="a", metadata=deleted, spec=spec_with_request("2", 0))
    cluster = [
        node("a", allocatable=ALLOCATABLE),
        terminating,
        node("b", allocatable=ALLOCATABLE),
        running_pod("low", "b"),
    ]
    post_filter = decide([*cluster, web(nominated_for="a")])["postFilter"]
    assert (post_filter["code"], post_filter["candidates"]) == ("Unschedulable", [])
    assert best(*cluster, web()) == ["a", "b"]


# --- no preemption


def test_preemption_policy_is_ignored() -> None:
    assert best(node("a", allocatable=ALLOCATABLE), running_pod("low", "a"), web(preemptionPolicy="Never")) == ["a"]


@pytest.mark.parametrize(("version", "gates"), [("1.13", {"PodPriority": False}), ("1.5", {})])
def test_versions_without_preemption(version: str, gates: dict[str, bool]) -> None:
    decision = decide([node("a", allocatable=ALLOCATABLE), running_pod("low", "a"), web()], version, gates=gates)
    assert (decision["outcome"], decision["postFilter"]) == ("Unschedulable", None)


def test_fixes_are_verified_with_predicates() -> None:
    cluster = [node("a", allocatable=ALLOCATABLE), running_pod("equal", "a", 10), web()]
    for version in ("1.13", "1.5"):
        titles = {(fix["title"], fix["certainty"]) for fix in decide(cluster, version)["fixes"]}
        assert ("lower requests.cpu of container main from 3 to 2", "verified") in titles

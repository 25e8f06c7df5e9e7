"""Policy files: their effect and their errors."""

from __future__ import annotations

import re

import pytest
import yaml

from kschedx.errors import ConfigError, UndecidableError
from tests.builders import Manifest, node, pod
from tests.command import ROOT
from tests.legacy.clusters import decide, policy

CLUSTER = [node("a"), node("b"), pod("web")]


def points(config: Manifest | None, version: str = "1.13", **gates: bool) -> dict[str, list[object]]:
    result: dict[str, list[object]] = decide(CLUSTER, version, config, gates)["profile"]["extensionPoints"]
    return result


# --- effects of a policy


def test_the_policy_of_1_13_is_the_default() -> None:
    policy_document = yaml.safe_load((ROOT / "profiles" / "policy-1.13.yaml").read_text(encoding="utf-8"))
    assert points(policy_document) == points(None)


def test_the_policy_of_1_0() -> None:
    policy_document = yaml.safe_load((ROOT / "profiles" / "policy-1.0.yaml").read_text(encoding="utf-8"))
    assert points(policy_document, "1.5") == {
        "predicates": ["HostName", "MatchNodeSelector", "NoDiskConflict", "PodFitsHostPorts", "PodFitsResources"],
        "predicatesNeverRun": [],
        "priorities": [
            {"name": "BalancedResourceAllocation", "weight": 1},
            {"name": "LeastRequestedPriority", "weight": 1},
            {"name": "SelectorSpreadPriority", "weight": 1},
        ],
    }


def test_the_order_in_a_policy_is_ignored() -> None:
    policy_document = policy([{"name": "MatchInterPodAffinity", "order": 1}, {"name": "HostName", "order": 2}], [])
    assert points(policy_document)["predicates"] == [
        "CheckNodeUnschedulable",
        "HostName",
        "PodToleratesNodeTaints",
        "MatchInterPodAffinity",
    ]


def test_a_predicate_outside_the_order_never_runs() -> None:
    argument: Manifest = {"labelsPresence": {"labels": ["retiring"], "presence": False}}
    policy_document = policy([{"name": "Retiring", "argument": argument}, "PodFitsPorts"], [])
    decision = decide([node("a", labels={"retiring": "2020"}), pod("web")], config=policy_document)
    assert decision["profile"]["extensionPoints"]["predicatesNeverRun"] == ["PodFitsPorts", "Retiring"]
    assert decision["outcome"] == "Scheduled"


def test_1_5_runs_predicates_of_any_name() -> None:
    argument: Manifest = {"labelsPresence": {"labels": ["retiring"], "presence": False}}
    decision = decide(
        [node("a", labels={"retiring": "2020"}), pod("web")],
        "1.5",
        policy([{"name": "Retiring", "argument": argument}], []),
    )
    assert decision["message"].endswith("fit failure summary on nodes : CheckNodeLabelPresence (1)")


def test_a_missing_list_is_that_of_the_default_provider() -> None:
    default_points = points(None)
    assert points(policy(priorities=[]))["predicates"] == default_points["predicates"]
    assert points(policy(predicates=[]))["priorities"] == default_points["priorities"]


def test_a_missing_list_is_empty_in_1_5() -> None:
    assert points(policy(priorities=["EqualPriority"]), "1.5")["predicates"] == []


def test_without_priorities_every_node_scores_1() -> None:
    decision = decide(CLUSTER, config=policy([], []))["score"]["nodes"]
    assert {name: text["total"] for name, text in decision.items()} == {"a": 1, "b": 1}


def test_the_last_weight_of_a_priority_counts() -> None:
    two_weights = policy([], [{"name": "EqualPriority", "weight": 2}, {"name": "EqualPriority", "weight": 5}])
    assert points(two_weights)["priorities"] == [{"name": "EqualPriority", "weight": 5}]


def test_gates_choose_between_taints_and_conditions() -> None:
    result = points(None, TaintNodesByCondition=False)["predicates"]
    assert result[0] == "CheckNodeCondition"
    assert "CheckNodeUnschedulable" not in result
    assert {"CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"} <= set(result)
    assert "ResourceLimitsPriority" in str(points(None, ResourceLimitsPriorityFunction=True)["priorities"])


# --- short circuit and all reasons

SHORT = [node("a", taints=["k:NoSchedule"], allocatable={"cpu": "0", "pods": "0"}), pod("web")]


def test_the_first_predicate_that_fails_is_the_verdict() -> None:
    assert decide(SHORT)["message"] == "0/1 nodes are available: 1 Insufficient pods."


def test_always_check_all_predicates_reports_all_reasons() -> None:
    policy_document = policy(["PodFitsResources", "GeneralPredicates"], [], alwaysCheckAllPredicates=True)
    decision = decide(SHORT, config=policy_document)
    assert decision["filter"]["nodes"]["a"]["verdict"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "GeneralPredicates",
        "reasons": ["Insufficient pods", "Insufficient pods", "node(s) had taints that the pod didn't tolerate"],
    }
    # a reason of several predicates counts several times for one node
    assert decision["message"] == (
        "0/1 nodes are available: 1 node(s) had taints that the pod didn't tolerate, 2 Insufficient pods."
    )


# --- extenders


def extender(**fields: object) -> Manifest:
    return policy([], [], extenders=[{"urlPrefix": "http://extender", **fields}])


GPU: Manifest = {"containers": [{"name": "main", "resources": {"requests": {"acme.io/gpu": "1"}}}]}
MANAGES_GPU = [{"name": "acme.io/gpu", "ignoredByScheduler": True}]


@pytest.mark.parametrize("verb", [{"filterVerb": "filter"}, {"prioritizeVerb": "prioritize", "weight": 1}])
@pytest.mark.parametrize("version", ["1.13", "1.5"])
def test_a_decision_of_an_extender_is_undecided(verb: Manifest, version: str) -> None:
    with pytest.raises(UndecidableError, match="the extender at http://extender also decides about default/web"):
        decide(CLUSTER, version, extender(**verb))


@pytest.mark.parametrize("fields", [{"bindVerb": "bind"}, {"filterVerb": "filter", "managedResources": MANAGES_GPU}])
def test_an_extender_without_a_decision_is_ignored(fields: Manifest) -> None:
    assert decide(CLUSTER, config=extender(**fields))["outcome"] == "Scheduled"


def test_an_extender_is_not_called_for_rejected_nodes() -> None:
    config = extender(filterVerb="filter") | {"predicates": [{"name": "PodFitsResources"}]}
    assert decide(SHORT, config=config)["message"] == "0/1 nodes are available: 1 Insufficient pods."


def test_an_extender_does_not_score_a_single_node() -> None:
    config = extender(prioritizeVerb="prioritize", weight=1)
    assert decide([node("a"), pod("web")], config=config)["bestNodes"] == ["a"]
    with pytest.raises(UndecidableError):
        decide([node("a"), pod("web")], "1.5", config)


@pytest.mark.parametrize("verb", [{"preemptVerb": "preempt"}, {"filterVerb": "filter"}])
def test_an_extender_can_choose_victims(verb: Manifest) -> None:
    victim = pod("low", on="a", spec=GPU, priority=0)
    cluster = [
        node("a", allocatable={"cpu": "4", "pods": "9", "acme.io/gpu": "1"}),
        victim,
        pod("web", spec=GPU, priority=9),
    ]
    config = policy(extenders=[{"urlPrefix": "http://extender", **verb}])
    if "preemptVerb" in verb:
        with pytest.raises(UndecidableError, match="chooses victims too"):
            decide(cluster, config=config)
    else:
        assert decide(cluster, config=config)["postFilter"]["bestCandidates"] == ["a"]


def test_a_resource_of_an_extender_is_not_checked() -> None:
    config = extender(bindVerb="bind", managedResources=MANAGES_GPU) | {"predicates": [{"name": "PodFitsResources"}]}
    cluster = [node("a"), pod("web", spec=GPU)]
    assert decide(cluster, config=config)["outcome"] == "Scheduled"
    assert decide(cluster)["message"] == "0/1 nodes are available: 1 Insufficient acme.io/gpu."


# --- errors


def shape(*points_of: tuple[int, int]) -> Manifest:
    shape_points = [{"utilization": utilization, "score": score} for utilization, score in points_of]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape_points}}
    return policy([], [{"name": "Ratio", "weight": 1, "argument": argument}])


RATIO = "priorities[0].argument.requestedToCapacityRatioArguments.shape"

INVALID: list[tuple[Manifest, str]] = [
    (
        policy(["PodFitsResource"]),
        'predicates[0].name: predicate "PodFitsResource" does not exist (did you mean "PodFitsResources"?)',
    ),
    (policy(["CheckNodeMemoryPressure"]), 'predicates[0].name: predicate "CheckNodeMemoryPressure" does not exist'),
    (
        policy(priorities=["LeastRequested"]),
        'priorities[0].name: priority "LeastRequested" does not exist (did you mean "LeastRequestedPriority"?)',
    ),
    (
        policy(priorities=["Zzz"]),
        'priorities[0].name: priority "Zzz" does not exist (known: BalancedResourceAllocation',
    ),
    (
        policy(priorities=[{"name": "EqualPriority"}]),
        "priorities[0].weight: expected a positive weight, found 0",
    ),
    (
        policy(priorities=[{"name": "EqualPriority", "weight": "1"}]),
        'priorities[0].weight: expected a whole number, found "1"',
    ),
    (
        policy(priorities=[{"name": "EqualPriority", "weight": 2**63 // 10}]),
        "priorities[0].weight: expected a weight below 922337203685477580, found 922337203685477580",
    ),
    (policy(["HostName"], predicate=[]), 'predicate: unknown field "predicate" (did you mean "predicates"?)'),
    (
        policy([{"name": "Mine", "argument": {}}]),
        "predicates[0].argument: expected exactly one of serviceAffinity and labelsPresence",
    ),
    (
        policy([{"name": "Mine", "argument": {"labelsPresence": {"label": "x"}}}]),
        'predicates[0].argument.labelsPresence.label: unknown field "label" (did you mean "labels"?)',
    ),
    (
        policy([{"name": "my_own", "argument": {"labelsPresence": {"labels": ["x"]}}}]),
        'predicates[0].name: expected letters, digits and inner hyphens, at least two, found "my_own"',
    ),
    (
        policy(priorities=[{"name": "Mine", "weight": 1, "argument": {}}]),
        "priorities[0].argument: expected exactly one of serviceAntiAffinity, labelPreference, requested",
    ),
    (shape(), f"{RATIO}: at least one point must be specified"),
    (shape((50, 1), (50, 2)), f"{RATIO}[1].utilization: utilization values must be sorted and differ"),
    (shape((0, 11)), f"{RATIO}[0].score: expected 0 to 10, found 11"),
    (shape((101, 1)), f"{RATIO}[0].utilization: expected 0 to 100, found 101"),
    (
        policy(hardPodAffinitySymmetricWeight=101),
        "hardPodAffinitySymmetricWeight: invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
    ),
    (extender(prioritizeVerb="p"), "extenders[0].weight: expected a positive weight, found 0"),
    (
        extender(managedResources=[{"name": "cpu"}]),
        'extenders[0].managedResources[0].name: expected an extended resource, found "cpu"',
    ),
    (
        extender(managedResources=[{"name": "a.io/b"}, {"name": "a.io/b"}]),
        'extenders[0].managedResources[1].name: duplicate extender managed resource name "a.io/b"',
    ),
    (
        policy(extenders=[{"bindVerb": "x"}, {"bindVerb": "y"}]),
        "extenders[1].bindVerb: only one extender can implement bind, found 2",
    ),
    ({"kind": "KubeSchedulerConfiguration"}, 'kind: expected Policy, found "KubeSchedulerConfiguration"'),
    ({"kind": "Policy", "apiVersion": "v2"}, 'apiVersion: expected v1, found "v2"'),
]


@pytest.mark.parametrize(("config", "message"), INVALID, ids=[message for _, message in INVALID])
def test_an_error_names_the_invalid_field_of_a_policy(config: Manifest, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        decide(CLUSTER, config=config)


def test_1_5_rejects_predicates_and_fields_of_later_versions() -> None:
    with pytest.raises(ConfigError, match='predicate "CheckVolumeBinding" does not exist'):
        decide(CLUSTER, "1.5", policy(["CheckVolumeBinding"]))
    with pytest.raises(ConfigError, match=re.escape('unknown field "requestedToCapacityRatioArguments"')):
        decide(CLUSTER, "1.5", shape((0, 1)))


def test_a_gate_without_effect_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r'feature gate "PodPriorities" has no effect .*did you mean "PodPriority"'):
        decide(CLUSTER, gates={"PodPriorities": True})
    with pytest.raises(ConfigError, match=r"gates that do: none"):
        decide(CLUSTER, "1.5", gates={"PodPriority": True})


def test_a_pod_of_another_scheduler_is_undecided() -> None:
    decision = decide([node("a"), pod("web", schedulerName="mine")])
    assert (decision["outcome"], decision["state"]["name"]) == ("Undecided", "NoScheduler")


@pytest.mark.parametrize(("version", "release"), [("1.13", "1.13"), ("v1.13.4", "1.13"), ("1.5.2", "1.5")])
def test_a_version_selects_its_minor_version(version: str, release: str) -> None:
    assert decide(CLUSTER, version)["kubernetesVersion"] == release


def test_other_versions_before_the_framework_are_unknown() -> None:
    with pytest.raises(ConfigError, match=r'unknown Kubernetes version "1\.9".*1\.13, 1\.5'):
        decide(CLUSTER, "1.9")

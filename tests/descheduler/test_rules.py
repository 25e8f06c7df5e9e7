"""Rules of the descheduler: the pods that each evicts, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import kschedx
from kschedx.render.descheduling import descheduling_lines
from tests.builders import Manifest
from tests.descheduler.clusters import NOW, OLD, budget, deschedule, evicted_names, node, pod, policy, restarted_status

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINTS = policy("RemovePodsViolatingNodeTaints")
TWO_NODES = (node("a"), node("b"))
LIFETIME = policy("PodLifeTime", {"maxPodLifeTimeSeconds": 3600})
NO_SCHEDULE: Manifest = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
PREFER_NO_SCHEDULE: Manifest = {**NO_SCHEDULE, "effect": "PreferNoSchedule"}
NO_EXECUTE: Manifest = {**NO_SCHEDULE, "effect": "NoExecute"}
SSD = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
]}}}}  # fmt: skip
ANTI_AFFINITY = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
]}}}  # fmt: skip
SPREAD = {"topologySpreadConstraints": [{
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}]}  # fmt: skip
ZONES = (node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}))
AFFINITY = policy("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [REQUIRED]})
FAST_ONLY = {"podProtections": {
    "extraEnabled": ["PodsWithPVC"],
    "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}},
}}  # fmt: skip
OTHER_BUDGET = budget("web", 2) | {"metadata": {"name": "other", "namespace": "default"}}
TOO_HIGH = "pod has higher priority than specified priority class threshold"
LOW = policy("LowNodeUtilization", {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}})
HIGH = policy("HighNodeUtilization", {"thresholds": {"cpu": 20}})


def web(count: int, on: str, **fields: object) -> list[Manifest]:
    return [pod(f"{on}{number}", on, **fields) for number in range(count)]  # type: ignore[arg-type] # of any field


@pytest.mark.parametrize(
    ("objects", "policy_manifest", "expected"),
    [
        # the nodes of a loop
        ([node("a"), pod("one", "a")], LIFETIME, []),
        ([*TWO_NODES, node("c", ready=False), pod("one", "a"), pod("two", "c")], LIFETIME, ["one"]),
        ([*TWO_NODES, node("c", cordoned=True), pod("one", "c")], LIFETIME, ["one"]),
        # PodLifeTime
        ([*TWO_NODES, pod("new", "a", creationTimestamp="2026-06-01T11:00:00Z"), pod("old", "b")], LIFETIME, ["old"]),
        (
            [*TWO_NODES, pod("new", "a", creationTimestamp="2026-06-01T00:00:00Z"), pod("old", "b")],
            LIFETIME,
            ["old", "new"],
        ),
        # RemoveFailedPods: by default at least an hour old
        ([*TWO_NODES, pod("one", "a", status={"phase": "Failed"})], policy("RemoveFailedPods"), ["one"]),
        (
            [*TWO_NODES, pod("one", "a", status={"phase": "Failed"}, creationTimestamp="2026-06-01T11:30:00Z")],
            policy("RemoveFailedPods"),
            [],
        ),
        (
            [*TWO_NODES, pod("one", "a", status={"phase": "Failed", "reason": "Evicted"})],
            policy("RemoveFailedPods", {"reasons": ["OOMKilled"]}),
            [],
        ),
        # RemovePodsHavingTooManyRestarts: on each node the most restarts first
        (
            [*TWO_NODES, *(pod(f"p{count}", "a", status=restarted_status(count)) for count in (3, 7, 5))],
            policy("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5}),
            ["p7", "p5"],
        ),
        # RemovePodsViolatingNodeTaints: never for NoExecute, for PreferNoSchedule if the argument is set
        ([node("a", taints=[NO_SCHEDULE]), node("b"), pod("one", "a")], TAINTS, ["one"]),
        ([node("a", taints=[NO_EXECUTE]), node("b"), pod("one", "a")], TAINTS, []),
        (
            [node("a", taints=[PREFER_NO_SCHEDULE]), node("b"), pod("one", "a")],
            policy("RemovePodsViolatingNodeTaints", {"includePreferNoSchedule": True}),
            ["one"],
        ),
        (
            [node("a", taints=[NO_SCHEDULE]), node("b"), pod("one", "a")],
            policy("RemovePodsViolatingNodeTaints", {"excludedTaints": ["dedicated=gpu"]}),
            [],
        ),
        (
            [node("a", taints=[NO_SCHEDULE]), node("b"), pod("one", "a")],
            policy("RemovePodsViolatingNodeTaints", {"includedTaints": []}),
            [],
        ),
        # RemovePodsViolatingNodeAffinity: only if the pod fits another node
        (
            [node("a"), node("b", labels={"disk": "ssd"}), pod("one", "a", spec=SSD)],
            AFFINITY,
            ["one"],
        ),
        (
            [node("a"), node("b", "100m", labels={"disk": "ssd"}), pod("one", "a", spec=SSD)],
            AFFINITY,
            [],
        ),
        # RemovePodsViolatingInterPodAntiAffinity: the second pod stays once the first is evicted
        ([*ZONES, *web(2, "a", spec=ANTI_AFFINITY)], policy("RemovePodsViolatingInterPodAntiAffinity"), ["a1"]),
        # RemoveDuplicates: the first listed stays
        ([*TWO_NODES, *web(3, "a")], policy("RemoveDuplicates"), ["a2"]),
        ([*TWO_NODES, *web(2, "a"), *web(2, "b")], policy("RemoveDuplicates"), []),
        # topology spread: the highest priority is evicted first
        ([*ZONES, *web(4, "a", spec=SPREAD)], policy("RemovePodsViolatingTopologySpreadConstraint"), ["a2", "a3"]),
        (
            [
                *ZONES,
                *(pod(f"p{rank}", "a", spec={**SPREAD, "priority": rank}) for rank in (5, 9, 1)),
                pod("b0", "b", spec=SPREAD),
            ],
            policy("RemovePodsViolatingTopologySpreadConstraint"),
            ["p9"],
        ),
        # LowNodeUtilization: until the node is at its target
        ([*TWO_NODES, *web(6, "a")], LOW, ["a5", "a4"]),
        ([node("a"), node("b", cordoned=True), *web(6, "a")], LOW, []),
        ([node("a"), node("b", taints=[PREFER_NO_SCHEDULE]), *web(6, "a")], LOW, []),
        # HighNodeUtilization: everything from an underutilized node
        ([*TWO_NODES, *web(1, "a"), *web(4, "b")], HIGH, ["a0"]),
        ([node("a"), node("b", cordoned=True), *web(1, "a"), *web(4, "b")], HIGH, []),
    ],
)  # fmt: skip
def test_evicted_pods(objects: Sequence[Mapping[str, object]], policy_manifest: Manifest, expected: list[str]) -> None:
    assert evicted_names(deschedule(objects, policy_manifest)) == expected


@pytest.mark.parametrize(
    ("changes", "args", "reason"),
    [
        ({}, {}, ""),
        ({"kind": "DaemonSet"}, {}, "daemonset pods are protected against eviction"),
        ({"kind": "DaemonSet"}, {"evictDaemonSetPods": True}, ""),
        ({"owner": ""}, {}, "pod does not have any ownerRefs"),
        ({"owner": ""}, {"evictFailedBarePods": True}, "pod does not have any ownerRefs and is not in failed phase"),
        ({"deletionTimestamp": OLD}, {}, "pod is terminating"),
        (
            {"deletionTimestamp": OLD, "annotations": {"descheduler.alpha.kubernetes.io/evict": "false"}},
            {},
            "",
        ),
        (
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {},
            "pod has local storage and is protected against eviction",
        ),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, {"evictLocalStoragePods": True}, ""),
        (
            {"spec": {"priority": 2_000_000_000}},
            {},
            f"[pod has system critical priority and is protected against eviction, {TOO_HIGH}]",
        ),
        ({"spec": {"priority": 2_000_000_000}}, {"evictSystemCriticalPods": True}, ""),
        (
            {"spec": {"priority": 10}},
            {"priorityThreshold": {"value": 10}},
            TOO_HIGH,
        ),
        ({}, {"priorityThreshold": {"value": -5}}, ""),
        ({}, {"minReplicas": 2}, "owner has 1 replicas which is less than minReplicas of 2"),
        ({}, {"minReplicas": 1}, ""),
        ({}, {"minPodAge": "48h"}, "pod age is not older than MinPodAge: &Duration{Duration:48h0m0s,} seconds"),
        (
            {},
            {"ignorePodsWithoutPDB": True},
            "pod does not have a PodDisruptionBudget and is protected against eviction",
        ),
        (
            {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}},
            FAST_ONLY,
            'failed to get persistent volume claim "default"/"gone": persistentvolumeclaim "gone" not found',
        ),
    ],
)  # fmt: skip
def test_protected_pods(changes: dict[str, object], args: Mapping[str, object], reason: str) -> None:
    objects = [*TWO_NODES, pod("one", "a", **changes)]  # type: ignore[arg-type] # of any field
    document = deschedule(objects, policy("PodLifeTime", {"maxPodLifeTimeSeconds": 1}, args))
    pods = document.get("pods", {})
    assert isinstance(pods, dict)
    assert pods.get("default/one", {}).get("main", {}).get("checks", "") == reason
    assert evicted_names(document) == ([] if reason else ["one"])


@pytest.mark.parametrize(
    ("limit", "expected", "errors"),
    [
        ({"maxNoOfPodsToEvictTotal": 1}, ["a0"], ["maximum number of evicted pods per a descheduling cycle reached"]),
        ({"maxNoOfPodsToEvictPerNode": 1}, ["a0", "b0"], ["maximum number of evicted pods per node reached"] * 2),
        (
            {"maxNoOfPodsToEvictPerNamespace": 3},
            ["a0", "a1", "b0"],
            ["maximum number of evicted pods per namespace reached"],
        ),
        ({"maxNoOfPodsToEvictTotal": 0}, [], ["maximum number of evicted pods per a descheduling cycle reached"]),
    ],
)
def test_limits_of_evictions(limit: Mapping[str, object], expected: list[str], errors: list[str]) -> None:
    document = deschedule([*TWO_NODES, *web(2, "a"), *web(2, "b")], LIFETIME | dict(limit))
    refused = document.get("refused", [])
    assert isinstance(refused, list)
    assert (evicted_names(document), [item["error"] for item in refused]) == (expected, errors)


VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.mark.parametrize(
    ("budgets", "unready", "evictions", "expected"),
    [
        ([budget("web", 1)], False, "api", ["a0"]),
        ([budget("web", 0)], False, "dry-run", ["a0", "a1"]),
        ([budget("web", 1, observedGeneration=0)], False, "api", []),
        ([budget("web", 0)], True, "api", ["a0", "a1"]),  # unready pods are not counted while enough are healthy
        ([budget("web", 0, currentHealthy=1)], True, "api", []),
        ([budget("web", 2), OTHER_BUDGET], False, "api", []),
    ],
)  # fmt: skip
def test_budgets_limit_evictions(budgets: list[Manifest], unready: bool, evictions: str, expected: list[str]) -> None:
    status = {"conditions": [{"type": "Ready", "status": "False"}]} if unready else {}
    assert (
        evicted_names(deschedule([*TWO_NODES, *web(2, "a", status=status), *budgets], LIFETIME, evictions=evictions))
        == expected
    )


def test_a_plugin_does_not_see_pods_that_earlier_plugins_evicted() -> None:
    """Deschedule plugins of every profile run before balance plugins, and an evicted pod is gone at once."""
    duplicates, lifetime = policy("RemoveDuplicates"), policy("PodLifeTime", {"maxPodLifeTimeSeconds": 50_000})
    profiles = [duplicates["profiles"][0], {**lifetime["profiles"][0], "name": "second"}]  # type: ignore[index] # a list
    new_time = "2026-06-01T00:00:00Z"
    newer_pods = [pod(name, "a", creationTimestamp=new_time) for name in ("one", "two")]
    objects = [*TWO_NODES, pod("old", "a"), *newer_pods]
    document = deschedule(objects, duplicates | {"profiles": profiles})
    rows = document["evicted"]
    assert isinstance(rows, list)
    assert [(row["pod"], row["profile"], row["plugin"]) for row in rows] == [
        ("default/old", "second", "PodLifeTime"),
        ("default/two", "main", "RemoveDuplicates"),
    ]


def test_of_pods_of_several_domains_any_may_be_evicted_first() -> None:
    """The descheduler walks a Go map of the pods due, so the largest domain is not always the first."""
    pods = [
        pod(f"{on}-{rank}", on, spec=SPREAD | {"priority": rank})
        for on, size in (("a", 5), ("b", 6))
        for rank in range(size)
    ]
    spread = policy("RemovePodsViolatingTopologySpreadConstraint", {}, maxNoOfPodsToEvictTotal=1)
    snapshot = kschedx.Snapshot.from_objects([*ZONES, node("c", labels={"zone": "c"}), *pods])
    document = kschedx.deschedule(snapshot, spread, rounds=1, now=NOW).to_dict()
    assert (document["chance"], document["total"]) == ("which", 1)


def test_the_thresholds_of_an_average() -> None:
    args = {"useDeviationThresholds": True, "thresholds": {"pods": 10}, "targetThresholds": {"pods": 10}}
    snapshot = kschedx.Snapshot.from_objects([*TWO_NODES, *web(6, "a")])
    result = kschedx.deschedule(snapshot, policy("LowNodeUtilization", args), rounds=1, now=NOW)
    lines = [line.plain.split() for line in descheduling_lines(result, 80)]
    assert [line[0] for line in lines if line[1:2] == ["pods"]] == ["below", "above"]

"""The rules by which Kueue admits, one small cluster each. Recorded runs of Kueue itself: ../shared/kueue."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kschedx
from kschedx.errors import UndecidableError
from kschedx.export.anonymous import Anonymous
from kschedx.kueue.settings import settings_of
from tests.builders import node, pod
from tests.kueue.objects import (
    KUEUE,
    TAINT,
    Json,
    admit,
    check,
    cohort,
    flavor,
    local,
    message,
    outcomes,
    queue,
    quota,
    snapshot,
    workload,
)

HOST = "kubernetes.io/hostname"
LEVELS = [{"nodeLabel": "rack"}, {"nodeLabel": HOST}]
RACKS = [
    {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": LEVELS}},
    flavor("f", topologyName="t", nodeLabels={"pool": "gpu"}),
]
AT_N = [{"individual": {"roots": ["n"]}}]

QUEUE = [queue("q"), local("q")]
LOWER = {"withinClusterQueue": "LowerPriority"}
RECLAIM = {"reclaimWithinCohort": "Any"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([*QUEUE, workload("a", cpu="4")], [("a", "Admitted")], id="exactly the quota"),
        pytest.param([*QUEUE, workload("a", cpu="1", count=5)], [("a", "Waiting")], id="all pods count"),
        pytest.param(
            [*QUEUE, workload("a", count=6, minimum=2)], [("a", "Admitted")], id="fewer pods, down to the minimum"
        ),
        pytest.param(
            [*QUEUE, workload("late", minute=2), workload("first", minute=1)],
            [("first", "Admitted"), ("late", "Admitted")],
            id="oldest first",
        ),
        pytest.param(
            [*QUEUE, workload("low", minute=1), workload("high", priority=1, minute=2)],
            [("high", "Admitted"), ("low", "Admitted")],
            id="highest priority first",
        ),
        pytest.param(
            [*QUEUE, workload("big", cpu="9"), workload("small", minute=1)],
            [("big", "Waiting"), ("small", "Admitted")],
            id="best effort goes past what doesn't fit",
        ),
        pytest.param(
            [
                queue("q", quota("f", "4", borrowingLimit="1"), cohortName="c"),
                queue("p", quota("f", "4"), cohortName="c"),
                local("q"),
                workload("a", cpu="5"),
                workload("b", cpu="1", minute=1),
            ],
            [("a", "Admitted"), ("b", "Waiting")],
            id="borrows up to the limit",
        ),
        pytest.param(
            [
                queue("q", quota("f", "4"), cohortName="c"),
                queue("p", quota("f", "4", lendingLimit="1"), cohortName="c"),
                local("q"),
                workload("a", cpu="6"),
            ],
            [("a", "Waiting")],
            id="lends up to the limit",
        ),
        pytest.param(
            [
                queue("q", quota("f", "0"), cohortName="team"),
                cohort("team", parentName="all"),
                queue("p", quota("f", "4"), cohortName="all"),
                local("q"),
                workload("a", cpu="3"),
            ],
            [("a", "Admitted")],
            id="borrows from the parent's queues",
        ),
    ],
)
def test_quota_and_order(objects: list[Json], expected: list[tuple[str, str]]) -> None:
    assert outcomes(admit(*objects)) == expected


def test_strict_fifo_keeps_the_rest_behind_its_head() -> None:
    strict = queue("q", queueingStrategy="StrictFIFO")
    admission = admit(strict, local("q"), workload("big", cpu="9"), workload("small", minute=1))
    assert "small" not in dict(outcomes(admission))


SPOT = [flavor("f"), flavor("spot", nodeTaints=[TAINT], nodeLabels={"pool": "spot"})]
BOTH = [*SPOT, queue("q", quota("spot", "4"), quota("f", "4")), local("q")]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, "f"),
        ({"tolerations": [{"key": "spot", "operator": "Exists"}]}, "spot"),
        ({"nodeSelector": {"pool": "spot"}, "tolerations": [{"operator": "Exists"}]}, "spot"),
        ({"nodeSelector": {"pool": "other"}, "tolerations": [{"operator": "Exists"}]}, "f"),
    ],
)
def test_the_first_flavor_that_the_pod_matches(pod: Json, expected: str) -> None:
    admission = admit(*BOTH, workload("a", pod=pod))
    assert admission.workloads["ml/a"].pod_sets[0].flavors == {"cpu": expected}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([*QUEUE, workload("a", cpu="9")], "insufficient quota for cpu in flavor f"),
        ([*QUEUE, workload("z", cpu="3", held="f"), workload("a", cpu="3")], "2 more needed"),
        ([SPOT[1], queue("q", quota("spot", "4")), local("q"), workload("a")], "untolerated taint {spot true"),
        ([*QUEUE, workload("a", pod={"overhead": {"example.com/gpu": "1"}})], "example.com/gpu"),
        (
            [queue("q", namespaceSelector={"matchLabels": {"team": "web"}}), local("q"), workload("a")],
            "namespace doesn't match",
        ),
    ],
)
def test_kueue_says_why(objects: list[Json], words: str) -> None:
    assert words in message(admit(*objects), "a")


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([queue("q", stopPolicy="Hold")], "Stopped"),
        ([queue("q", quota("gone", "4"))], "FlavorNotFound"),
        ([queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "none"}]})], "AdmissionCheckNotFound"),
        (
            [check("c", is_active=False), queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})],
            "AdmissionCheckInactive",
        ),
    ],
)
def test_a_queue_that_admits_nothing(objects: list[Json], reason: str) -> None:
    admission = admit(*objects, local("q"), workload("a"))
    assert outcomes(admission) == []
    assert (admission.cluster_queues["q"].active, admission.cluster_queues["q"].reason) == (False, reason)


def test_a_check_comes_after_the_quota() -> None:
    checked = queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
    admission = admit(check("c"), checked, local("q"), workload("a"))
    assert outcomes(admission) == [("a", "QuotaReserved")]
    assert admission.workloads["ml/a"].checks == {"c": "Pending"}


@pytest.mark.parametrize(
    ("policy", "running", "victims"),
    [
        (LOWER, [("low", 0), ("same", 10)], ["low"]),
        ({}, [("low", 0)], []),
        ({"withinClusterQueue": "LowerOrNewerEqualPriority"}, [("newer", 10)], ["newer"]),
    ],
)
def test_preemption_within_a_queue(policy: Json, running: list[tuple[str, int]], victims: list[str]) -> None:
    share = str(4 // len(running))
    held = [workload(name, cpu=share, priority=priority, minute=9, held="f") for name, priority in running]
    admission = admit(queue("q", preemption=policy), local("q"), *held, workload("a", cpu=share, priority=10))
    targets = [target.workload for target in admission.cycles[0].heads["ml/a"].targets]
    assert targets == [f"ml/{name}" for name in victims]


def test_what_was_lent_is_reclaimed_whatever_its_priority() -> None:
    admission = admit(
        queue("q", cohortName="c", preemption=RECLAIM),
        queue("p", cohortName="c"),
        local("q"),
        local("p"),
        workload("borrower", "p", "8", priority=100, held="f"),
        workload("a", cpu="4"),
    )
    first = admission.cycles[0].heads["ml/a"]
    assert (first.outcome, [(target.workload, target.reason) for target in first.targets]) == (
        "Preempting",
        [("ml/borrower", "InCohortReclamation")],
    )
    assert ("a", "Admitted") in outcomes(admission)


def test_only_as_many_are_preempted_as_needed() -> None:
    held = [workload(f"v{number}", cpu="1", minute=number, held="f") for number in range(4)]
    admission = admit(queue("q", preemption=LOWER), local("q"), *held, workload("a", cpu="2", priority=1))
    assert {target.workload for target in admission.cycles[0].heads["ml/a"].targets} == {"ml/v3", "ml/v2"}


def test_fair_sharing_serves_the_lower_share_first() -> None:
    queues = [queue(name, quota("f", "2"), cohortName="c") for name in ("q", "p", "r")]
    objects = [*queues, local("q"), local("p"), workload("q0", "q", "3", held="f")]
    late = [workload("q1", "q", "1", minute=1), workload("p1", "p", "3", minute=2)]
    admission = admit(*objects, *late, config={"fairSharing": {}})
    assert outcomes(admission)[0] == ("p1", "Admitted")


BY_USAGE = {"config": {"admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"}}}


def used(name: str, cpu: str) -> Json:
    """A LocalQueue of `q` that used CPU."""
    sharing = {"consumedResources": {"cpu": cpu}, "lastUpdate": "2026-06-01T08:59:00Z"}
    return local(name, "q") | {"status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": sharing}}}


def by_usage(**spec: Any) -> Json:
    return queue("q", quota("f", "9"), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"}, **spec)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        pytest.param([], ["q1", "q2", "b1"], id="admitted: the order of before holds for the next one"),
        pytest.param(["c"], ["q1", "b1", "q2"], id="not yet admitted: its penalty orders the queue anew"),
    ],
)
def test_usage_orders_a_queue_where_workloads_move(checks: list[str], expected: list[str]) -> None:
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name} for name in checks]}} if checks else {}
    jobs = [workload("q1", cpu="4"), workload("q2", minute=1), workload("b1", "b", minute=2)]
    admission = admit(by_usage(**strategy), *map(check, checks), used("q", "1"), used("b", "2"), *jobs, **BY_USAGE)
    assert [name for name, _ in outcomes(admission)] == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        pytest.param("5m", ["w0", "w1", "w2", "w3"], id="between two samples usage stays as it is"),
        pytest.param("1s", ["w0", "w1", "w3", "w2"], id="a sample decays the usage of all LocalQueues"),
    ],
)
def test_usage_is_sampled_at_its_interval(interval: str, expected: list[str]) -> None:
    sharing = {"usageHalfLifeTime": "1s", "usageSamplingInterval": interval}
    jobs = [("w0", "q", "4"), ("w1", "b", "8"), ("w2", "b", "4"), ("w3", "q", "4")]
    submitted = [workload(*job, minute=minute) for minute, job in enumerate(jobs)]
    whole = queue("q", quota("f", "19"), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    admission = admit(whole, used("q", "2"), used("b", "2"), *submitted, config={"admissionFairSharing": sharing})
    assert [name for name, _ in outcomes(admission)] == expected


BACKOFF = "The workload backoff was finished"


@pytest.mark.parametrize(
    ("second", "is_limit", "heads", "requeued"),
    [
        pytest.param(0, False, ["first", "late"], BACKOFF, id="over before the first cycle"),
        pytest.param(1, False, ["first", "late"], BACKOFF, id="over in the cycle that evaluates it"),
        pytest.param(2, False, ["first", "late"], BACKOFF, id="over after it: bypassed as its equal"),
        pytest.param(2, True, ["first", "late"], BACKOFF, id="queued again without the requests of its limits"),
        pytest.param(9, False, ["first", "late"], "gone", id="later: a queue that starts evaluates it once"),
    ],
)
def test_a_workload_waits_for_its_backoff(second: int, is_limit: bool, heads: list[str], requeued: str) -> None:
    """`is_limit`: its container has limits alone, from which Kueue takes its requests."""
    state = {"count": 1, "requeueAt": f"2026-06-01T09:00:0{second}Z"}
    late = workload("late", cpu="8", minute=1, requeueState=state)
    if is_limit:
        late["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}}
    else:
        gone = {"status": "False", "reason": "PodsReadyTimeout", "message": "gone", "lastTransitionTime": None}
        late["status"]["conditions"] = [{"type": "Requeued", **gone}]
    admission = admit(*QUEUE, workload("first", cpu="9"), late)
    assert [name for name, _ in outcomes(admission)] == heads
    condition = admission.workloads["ml/late"].requeued
    assert is_limit or (condition is not None and condition.message == requeued)


def test_usage_does_not_order_a_stopped_queue() -> None:
    jobs = [workload("b1", "b"), workload("q1", minute=1)]
    admission = admit(by_usage(stopPolicy="Hold"), used("q", "1"), used("b", "2"), *jobs, **BY_USAGE)
    assert admission.cluster_queues["q"].queue == ("ml/b1", "ml/q1")


def test_the_search_for_flavors_begins_again_once_its_queue_admits_another_workload() -> None:
    driver, workers = (workload("x", cpu=cpu)["spec"]["podSets"][0] for cpu in ("1", "99"))
    late = workload("x", "b", minute=1)
    late["spec"]["podSets"] = [driver | {"name": "driver"}, workers]
    flavors = [quota("f", "9"), quota("g", "9")]
    whole = queue("q", *flavors, admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    jobs = [workload("b1", "b", cpu="4"), late, workload("q1", minute=2)]
    admission = admit(flavor("f"), flavor("g"), whole, used("b", "1"), used("q", "2"), *jobs, **BY_USAGE)
    assert [(name, head.more_flavors) for cycle in admission.cycles for name, head in cycle.heads.items()][:4] == [
        ("ml/b1", False),
        ("ml/x", True),
        ("ml/q1", False),
        ("ml/x", True),
    ]


def test_victims_of_another_preemptor_are_no_candidates_of_a_second_attempt() -> None:
    queues = [queue(name, quota("f", "2"), cohortName="c", preemption=RECLAIM) for name in ("q", "p")]
    victims = [workload(f"v{number}", "r", "2", minute=number, held="f") for number in range(2)]
    admission = admit(
        *queues,
        queue("r", quota("f", "0"), cohortName="c"),
        *(local(name) for name in "qpr"),
        *victims,
        *(workload(f"{name}1", name, "2", minute=5 + number) for number, name in enumerate("qp")),
        feature_gates={"RecomputeAssignmentUponPreemptionTargetsOverlap": True},
    )
    heads = admission.cycles[0].heads
    assert {key: [target.workload for target in head.targets] for key, head in heads.items()} == {
        "ml/q1": ["ml/v1"],
        "ml/p1": ["ml/v0"],
    }


@pytest.mark.parametrize(
    ("is_observed", "condition"),
    [
        (False, ("Pending", "resources validation failed: ")),
        (True, ("PendingEvaluation", "Workload is pending evaluation in the scheduling queue")),
    ],
)
def test_the_controller_validates_without_limit_range_defaults(is_observed: bool, condition: tuple[str, str]) -> None:
    limits = [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]
    meta = {"name": "defaults", "namespace": "ml"}
    defaults = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}
    gates = {"UnadmittedWorkloadsObservability": is_observed}
    admission = admit(*QUEUE, defaults, workload("a", cpu="2"), feature_gates=gates).workloads["ml/a"].quota_reserved
    assert admission is not None
    assert (admission.reason, admission.message.startswith(condition[1])) == (condition[0], True)


def test_pods_that_must_be_together_need_one_rack_with_room() -> None:
    nodes = [machine(f"n{number}", rack) for number, rack in enumerate(("r1", "r2", "r2"))]
    objects = [*RACKS, *nodes]
    objects += [queue("q", quota("f", "9")), local("q")]
    fits, never = workload("fits", cpu="1", count=4), workload("never", cpu="1", count=5, minute=1)
    for fit in (fits, never):
        fit["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    admission = admit(*objects, fits, never)
    (placed,) = admission.workloads["ml/fits"].pod_sets
    assert placed.topology is not None
    assert [(fit.values, fit.count) for fit in placed.topology.domains] == [(("n1",), 2), (("n2",), 2)]
    assert admission.workloads["ml/never"].state == "Pending"
    assert 'topology "t"' in message(admission, "never")


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        ("1", {"lead": [(("n0",), 1)], "main": [(("n0",), 1), (("n1",), 2)]}),
        ("2", {"lead": [(("n2",), 1)], "main": [(("n3",), 2), (("n4",), 1)]}),
    ],
    ids=["beside a worker", "on a node of its own"],
)
def test_a_leader_shares_the_rack_of_its_workers(leader: str, expected: Json) -> None:
    nodes = [machine(f"n{number}", rack) for number, rack in enumerate(("r1", "r1", "r2", "r2", "r2"))]
    both = workload("a", count=3)
    group = {"required": "rack", "podSetGroupName": "g"}
    (workers,) = both["spec"]["podSets"]
    workers["topologyRequest"] = group
    lead = workload("lead", cpu=leader)["spec"]["podSets"][0] | {"name": "lead", "topologyRequest": group}
    both["spec"]["podSets"] = [lead, workers]
    admission = admit(*RACKS, *nodes, queue("q", quota("f", "9")), local("q"), both)
    placed = {pod_set.name: pod_set.topology for pod_set in admission.workloads["ml/a"].pod_sets}
    assert {
        name: [(pod_set.values, pod_set.count) for pod_set in topology.domains]
        for name, topology in placed.items()
        if topology
    } == expected


@pytest.mark.parametrize(
    ("api", "wait", "outcome"),
    [
        ("v1beta2", {"blockAdmission": True}, "Waiting"),
        ("v1beta2", {"timeout": "5m"}, "Admitted"),
        ("v1beta1", {"enable": True}, "Waiting"),
        ("v1beta1", {"blockAdmission": True}, "Admitted"),
    ],
)
def test_admission_waits_for_pods_of_others(api: str, wait: Json, outcome: str) -> None:
    """In v1beta1 it is switched on by `enable`, and blocks unless it is told not to."""
    config = {"apiVersion": f"config.kueue.x-k8s.io/{api}", "kind": "Configuration", "waitForPodsReady": wait}
    objects = [*QUEUE, workload("z", held="f"), workload("a", minute=1), workload("b", minute=2)]
    assert outcomes(admit(*objects, config=config))[0] == ("a", outcome)
    written = {"controller_manager_config.yaml": json.dumps(config)}
    meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    cluster = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": written}
    assert outcomes(admit(*objects, cluster))[0] == ("a", outcome)
    objects[2]["status"]["conditions"].append({"type": "PodsReady", "status": "True"})
    assert [outcome for _, outcome in outcomes(admit(*objects, cluster))] == ["Admitted", "Admitted"]


def test_an_anonymous_configuration_decides_the_same() -> None:
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "clientConnection": {"host": "private.example"},
        "fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "private words"]},
        "featureGates": {"PartialAdmission": False},
        "waitForPodsReady": {"blockAdmission": True, "timeout": "5m"},
    }
    meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    cluster = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"config.yaml": json.dumps(config)}}
    shared = Anonymous.of([cluster]).anonymize(cluster)
    assert shared is not None
    assert "private" not in json.dumps(shared)
    settings = settings_of(snapshot(shared))
    assert (settings.blocks_admission, settings.enabled("PartialAdmission")) == (True, False)
    assert settings.strategies == ("LessThanInitialShare",)


def machine(name: str, rack: str) -> Json:
    labels = {"kubernetes.io/hostname": name, "rack": rack, "pool": "gpu"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "2", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": ready}


def test_pods_that_kueue_placed_count_once() -> None:
    """Their Workload holds the place; other pods on the node take of it beside that."""
    meta = {"name": "t"}
    topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": meta, "spec": {"levels": [{"nodeLabel": HOST}]}}
    host: Json = node("n", labels={HOST: "n"}, allocatable={"cpu": "4", "pods": "10"})
    ready = host | {"status": host["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
    held = workload("z", cpu="2", held="f")
    place = {"levels": [HOST], "slices": [{"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": AT_N}]}
    held["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = place
    annotations = {"kueue.x-k8s.io/workload": "z", "kueue.x-k8s.io/podset-required-topology": HOST}
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}]
    running = pod("z-0", namespace="ml", on="n", metadata={"annotations": annotations}, containers=containers)
    wanted = workload("a", cpu="2")
    wanted["spec"]["podSets"][0]["topologyRequest"] = {"required": HOST}
    fixed = (flavor("f", topologyName="t"), topology, queue("q"), local("q"), held, wanted, ready)
    assert outcomes(admit(*fixed, running)) == [("a", "Admitted")]
    other = pod("daemon", namespace="ml", on="n", containers=containers)
    assert outcomes(admit(*fixed, running, other)) == [("a", "Waiting")]


def _with_claim(built: Json) -> Json:
    built["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimTemplateName": "t"}
    ]
    return built


def _replacing(built: Json, other: str) -> Json:
    built["metadata"].setdefault("annotations", {})["kueue.x-k8s.io/workload-slice-replacement-for"] = other
    return built


def _preferring(built: Json, **topology: str) -> Json:
    """Prefers a rack, or nodes."""
    (pods,) = built["spec"]["podSets"]
    pods["topologyRequest"] = topology or {"required": "rack"}
    preference = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    terms = [{"weight": 1, "preference": preference}]
    pods["template"]["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return built


@pytest.mark.parametrize(
    ("objects", "gates", "expected"),
    [
        ([*QUEUE, _with_claim(workload("a"))], {}, "devices of Dynamic Resource Allocation"),
        ([*QUEUE, workload("old", held="f"), _replacing(workload("a"), "ml/old")], {}, "it replaces ml/old"),
        (
            [queue("q", concurrentAdmissionPolicy={"migration": {}}), local("q"), workload("a")],
            {"ConcurrentAdmission": True},
            "the feature gate ConcurrentAdmission",
        ),
        (
            [*RACKS, *QUEUE, _preferring(workload("a"), preferred="rack")],
            {"TASBalancedPlacement": True},
            "the feature gate TASBalancedPlacement",
        ),
        (
            [*RACKS, *QUEUE, _preferring(workload("a"))],
            {"TASRespectNodeAffinityPreferred": True},
            "the feature gate TASRespectNodeAffinityPreferred",
        ),
    ],
    ids=["devices", "elastic", "concurrent", "balanced", "preferred nodes"],
)
def test_what_is_not_evaluated_is_named(objects: list[Json], gates: dict[str, bool], expected: str) -> None:
    with pytest.raises(UndecidableError, match=expected):
        kschedx.kueue(snapshot(*objects), feature_gates=gates)


def test_a_check_of_all_flavors_is_dropped_after_admission_without_any() -> None:
    """A Workload without requests gets no flavor: its quota is reserved, and the controller then admits it."""
    strategy = {"admissionChecks": [{"name": "budget"}]}
    whole = queue("q", admissionChecksStrategy=strategy)
    empty = workload("a")
    empty["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {}
    result = kschedx.kueue(snapshot(whole, local("q"), check("budget"), empty))
    assert result.cycles[0].heads["ml/a"].outcome == "QuotaReserved"
    assert result.workloads["ml/a"].state == "Admitted"

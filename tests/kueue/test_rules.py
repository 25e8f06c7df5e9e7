"""Kueue's rules of admission, one small cluster each."""

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
    deleted,
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
HOSTS = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
ASSIGNMENT_TO_N = [{"individual": {"roots": ["n"]}}]

QUEUE = [queue("q"), local("q")]
MEMORY = {
    "coveredResources": ["memory"],
    "flavors": [{"name": "f", "resources": [{"name": "memory", "nominalQuota": "1500M"}]}],
}
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
            id="BestEffortFIFO skips a head that doesn't fit",
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


def test_strict_fifo_blocks_the_queue_behind_its_head() -> None:
    strict = queue("q", queueingStrategy="StrictFIFO")
    admission = admit(strict, local("q"), workload("big", cpu="9"), workload("small", minute=1))
    assert "small" not in dict(outcomes(admission))


SPOT = [flavor("f"), flavor("spot", nodeTaints=[TAINT], nodeLabels={"pool": "spot"})]
TWO_FLAVORS = [*SPOT, queue("q", quota("spot", "4"), quota("f", "4")), local("q")]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, "f"),
        ({"tolerations": [{"key": "spot", "operator": "Exists"}]}, "spot"),
        ({"nodeSelector": {"pool": "spot"}, "tolerations": [{"operator": "Exists"}]}, "spot"),
        ({"nodeSelector": {"pool": "other"}, "tolerations": [{"operator": "Exists"}]}, "f"),
    ],
)
def test_a_workload_gets_the_first_matching_flavor(pod: Json, expected: str) -> None:
    admission = admit(*TWO_FLAVORS, workload("a", pod=pod))
    assert admission.workloads["ml/a"].pod_sets[0].flavors == {"cpu": expected}


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([*QUEUE, workload("a", cpu="9")], "insufficient quota for cpu in flavor f"),
        (
            [queue("q", quota("f", "1000")), local("q"), workload("a", cpu="2000")],
            "request (2k) > maximum capacity (1k)",
        ),
        ([*QUEUE, workload("a", cpu="9E")], "request (9223372036854775807m) > maximum capacity (4)"),
        (
            [
                queue("q", resourceGroups=[MEMORY]),
                local("q"),
                workload("a", cpu="0", pod={"overhead": {"memory": "2Gi"}}),
            ],
            "request (2Gi) > maximum capacity (1500M)",
        ),
        ([*QUEUE, workload("z", cpu="3", reserved_flavor="f"), workload("a", cpu="3")], "2 more needed"),
        ([SPOT[1], queue("q", quota("spot", "4")), local("q"), workload("a")], "untolerated taint {spot true"),
        ([*QUEUE, workload("a", pod={"overhead": {"example.com/gpu": "1"}})], "example.com/gpu"),
        (
            [queue("q", namespaceSelector={"matchLabels": {"team": "web"}}), local("q"), workload("a")],
            "namespace doesn't match",
        ),
    ],
)
def test_the_message_names_the_cause(objects: list[Json], text: str) -> None:
    assert text in message(admit(*objects), "a")


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([queue("q", stopPolicy="Hold")], "Stopped"),
        ([deleted(queue("q"))], "Terminating"),
        ([queue("q", quota("gone", "4"))], "FlavorNotFound"),
        ([queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "none"}]})], "AdmissionCheckNotFound"),
        (
            [check("c", is_active=False), queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})],
            "AdmissionCheckInactive",
        ),
    ],
)
def test_an_inactive_queue_admits_nothing(objects: list[Json], reason: str) -> None:
    admission = admit(*objects, local("q"), workload("a"))
    assert outcomes(admission) == []
    assert (admission.cluster_queues["q"].active, admission.cluster_queues["q"].reason) == (False, reason)


def test_an_admission_check_follows_quota_reservation() -> None:
    cluster_queue = queue("q", admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
    admission = admit(check("c"), cluster_queue, local("q"), workload("a"))
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
    reserved = [
        workload(name, cpu=share, priority=priority, minute=9, reserved_flavor="f") for name, priority in running
    ]
    admission = admit(queue("q", preemption=policy), local("q"), *reserved, workload("a", cpu=share, priority=10))
    targets = [target.workload for target in admission.cycles[0].heads["ml/a"].targets]
    assert targets == [f"ml/{name}" for name in victims]


def test_lent_quota_is_reclaimed_at_any_priority() -> None:
    admission = admit(
        queue("q", cohortName="c", preemption=RECLAIM),
        queue("p", cohortName="c"),
        local("q"),
        local("p"),
        workload("borrower", "p", "8", priority=100, reserved_flavor="f"),
        workload("a", cpu="4"),
    )
    head = admission.cycles[0].heads["ml/a"]
    assert (head.outcome, [(target.workload, target.reason) for target in head.targets]) == (
        "Preempting",
        [("ml/borrower", "InCohortReclamation")],
    )
    assert ("a", "Admitted") in outcomes(admission)


def test_preemption_evicts_no_more_workloads_than_needed() -> None:
    victims = [workload(f"v{number}", cpu="1", minute=number, reserved_flavor="f") for number in range(4)]
    admission = admit(queue("q", preemption=LOWER), local("q"), *victims, workload("a", cpu="2", priority=1))
    assert {target.workload for target in admission.cycles[0].heads["ml/a"].targets} == {"ml/v3", "ml/v2"}


def test_fair_sharing_serves_the_lower_share_first() -> None:
    queues = [queue(name, quota("f", "2"), cohortName="c") for name in ("q", "p", "r")]
    objects = [*queues, local("q"), local("p"), workload("q0", "q", "3", reserved_flavor="f")]
    pending = [workload("q1", "q", "1", minute=1), workload("p1", "p", "3", minute=2)]
    admission = admit(*objects, *pending, config={"fairSharing": {}})
    assert outcomes(admission)[0] == ("p1", "Admitted")


BY_USAGE = {"config": {"admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"}}}


def used_queue(name: str, cpu: str) -> Json:
    """Return a LocalQueue of `q` with this used CPU."""
    sharing = {"consumedResources": {"cpu": cpu}, "lastUpdate": "2026-06-01T08:59:00Z"}
    return local(name, "q") | {"status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": sharing}}}


def queue_by_usage(**spec: Any) -> Json:
    return queue("q", quota("f", "9"), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"}, **spec)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        pytest.param([], ["q1", "q2", "b1"], id="admitted: the next cycle keeps the old order"),
        pytest.param(["c"], ["q1", "b1", "q2"], id="not yet admitted: its penalty reorders the queue"),
    ],
)
def test_usage_orders_a_queue(checks: list[str], expected: list[str]) -> None:
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name} for name in checks]}} if checks else {}
    jobs = [workload("q1", cpu="4"), workload("q2", minute=1), workload("b1", "b", minute=2)]
    admission = admit(
        queue_by_usage(**strategy), *map(check, checks), used_queue("q", "1"), used_queue("b", "2"), *jobs, **BY_USAGE
    )
    assert [name for name, _ in outcomes(admission)] == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        pytest.param("5m", ["w0", "w1", "w2", "w3"], id="usage is constant between two samples"),
        pytest.param("1s", ["w0", "w1", "w3", "w2"], id="a sample decays the usage of all LocalQueues"),
    ],
)
def test_usage_is_sampled_at_its_interval(interval: str, expected: list[str]) -> None:
    sharing = {"usageHalfLifeTime": "1s", "usageSamplingInterval": interval}
    jobs = [("w0", "q", "4"), ("w1", "b", "8"), ("w2", "b", "4"), ("w3", "q", "4")]
    workloads = [workload(*job, minute=minute) for minute, job in enumerate(jobs)]
    cluster_queue = queue("q", quota("f", "19"), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    admission = admit(
        cluster_queue, used_queue("q", "2"), used_queue("b", "2"), *workloads, config={"admissionFairSharing": sharing}
    )
    assert [name for name, _ in outcomes(admission)] == expected


BACKOFF = "The workload backoff was finished"


@pytest.mark.parametrize(
    ("second", "is_limit", "heads", "requeued"),
    [
        pytest.param(0, False, ["first", "late"], BACKOFF, id="over before the first cycle"),
        pytest.param(1, False, ["first", "late"], BACKOFF, id="over in the cycle that evaluates it"),
        pytest.param(2, False, ["first", "late"], BACKOFF, id="over after it: bypassed as an equal workload"),
        pytest.param(2, True, ["first", "late"], BACKOFF, id="requeued without requests from its limits"),
        pytest.param(9, False, ["first", "late"], "gone", id="later: the initial queue evaluates it once"),
    ],
)
def test_a_workload_waits_for_its_backoff(second: int, is_limit: bool, heads: list[str], requeued: str) -> None:
    """With `is_limit`, the container has only limits, from which Kueue derives its requests."""
    state = {"count": 1, "requeueAt": f"2026-06-01T09:00:0{second}Z"}
    late = workload("late", cpu="8", minute=1, requeueState=state)
    if is_limit:
        late["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}}
    else:
        evicted = {"status": "False", "reason": "PodsReadyTimeout", "message": "gone", "lastTransitionTime": None}
        late["status"]["conditions"] = [{"type": "Requeued", **evicted}]
    admission = admit(*QUEUE, workload("first", cpu="9"), late)
    assert [name for name, _ in outcomes(admission)] == heads
    condition = admission.workloads["ml/late"].requeued
    assert is_limit or (condition is not None and condition.message == requeued)


def test_usage_ends_a_preemption_that_repeats() -> None:
    """The victim comes back first until its LocalQueue has used more than the preemptor's."""
    jobs = [workload("v", cpu="9", reserved_flavor="f"), workload("p", "b", cpu="9", priority=1, minute=1)]
    admission = admit(queue_by_usage(preemption=LOWER), used_queue("q", "0"), used_queue("b", "1"), *jobs, **BY_USAGE)
    assert outcomes(admission) == [
        ("p", "Preempting"),
        ("v", "Admitted"),
        ("p", "Preempting"),
        ("p", "Admitted"),
        ("v", "Waiting"),
    ]


def test_usage_does_not_order_a_stopped_queue() -> None:
    jobs = [workload("b1", "b"), workload("q1", minute=1)]
    admission = admit(queue_by_usage(stopPolicy="Hold"), used_queue("q", "1"), used_queue("b", "2"), *jobs, **BY_USAGE)
    assert admission.cluster_queues["q"].queue == ("ml/b1", "ml/q1")


def test_an_admission_restarts_the_search_for_flavors() -> None:
    driver, workers = (workload("x", cpu=cpu)["spec"]["podSets"][0] for cpu in ("1", "99"))
    late = workload("x", "b", minute=1)
    late["spec"]["podSets"] = [driver | {"name": "driver"}, workers]
    flavors = [quota("f", "9"), quota("g", "9")]
    cluster_queue = queue("q", *flavors, admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    jobs = [workload("b1", "b", cpu="4"), late, workload("q1", minute=2)]
    admission = admit(
        flavor("f"), flavor("g"), cluster_queue, used_queue("b", "1"), used_queue("q", "2"), *jobs, **BY_USAGE
    )
    assert [(name, head.more_flavors) for cycle in admission.cycles for name, head in cycle.heads.items()][:4] == [
        ("ml/b1", False),
        ("ml/x", True),
        ("ml/q1", False),
        ("ml/x", True),
    ]


def test_a_second_attempt_skips_victims_of_another_preemptor() -> None:
    queues = [queue(name, quota("f", "2"), cohortName="c", preemption=RECLAIM) for name in ("q", "p")]
    victims = [workload(f"v{number}", "r", "2", minute=number, reserved_flavor="f") for number in range(2)]
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


def test_a_required_topology_needs_one_rack_with_capacity() -> None:
    nodes = [ready_node(f"n{number}", rack) for number, rack in enumerate(("r1", "r2", "r2"))]
    objects = [*RACKS, *nodes]
    objects += [queue("q", quota("f", "9")), local("q")]
    fits, never = workload("fits", cpu="1", count=4), workload("never", cpu="1", count=5, minute=1)
    for workload_of_rack in (fits, never):
        workload_of_rack["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    admission = admit(*objects, fits, never)
    (pod_set,) = admission.workloads["ml/fits"].pod_sets
    assert pod_set.topology is not None
    assert [(domain.values, domain.count) for domain in pod_set.topology.domains] == [(("n1",), 2), (("n2",), 2)]
    assert admission.workloads["ml/never"].state == "Pending"
    assert 'topology "t"' in message(admission, "never")


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        ("1", {"lead": [(("n0",), 1)], "main": [(("n0",), 1), (("n1",), 2)]}),
        ("2", {"lead": [(("n2",), 1)], "main": [(("n3",), 2), (("n4",), 1)]}),
    ],
    ids=["with a worker", "on a node of its own"],
)
def test_a_leader_shares_the_rack_of_its_workers(leader: str, expected: Json) -> None:
    nodes = [ready_node(f"n{number}", rack) for number, rack in enumerate(("r1", "r1", "r2", "r2", "r2"))]
    target = workload("a", count=3)
    group = {"required": "rack", "podSetGroupName": "g"}
    (workers,) = target["spec"]["podSets"]
    workers["topologyRequest"] = group
    lead = workload("lead", cpu=leader)["spec"]["podSets"][0] | {"name": "lead", "topologyRequest": group}
    target["spec"]["podSets"] = [lead, workers]
    admission = admit(*RACKS, *nodes, queue("q", quota("f", "9")), local("q"), target)
    topologies = {pod_set.name: pod_set.topology for pod_set in admission.workloads["ml/a"].pod_sets}
    assert {
        name: [(pod_set.values, pod_set.count) for pod_set in topology.domains]
        for name, topology in topologies.items()
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
def test_admission_waits_for_ready_pods_of_other_workloads(api: str, wait: Json, outcome: str) -> None:
    """In v1beta1, `enable` turns it on, and it blocks unless `blockAdmission` is false."""
    config = {"apiVersion": f"config.kueue.x-k8s.io/{api}", "kind": "Configuration", "waitForPodsReady": wait}
    objects = [*QUEUE, workload("z", reserved_flavor="f"), workload("a", minute=1), workload("b", minute=2)]
    assert outcomes(admit(*objects, config=config))[0] == ("a", outcome)
    data = {"controller_manager_config.yaml": json.dumps(config)}
    meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    cluster = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    assert outcomes(admit(*objects, cluster))[0] == ("a", outcome)
    objects[2]["status"]["conditions"].append({"type": "PodsReady", "status": "True"})
    assert [outcome for _, outcome in outcomes(admit(*objects, cluster))] == ["Admitted", "Admitted"]


def test_an_anonymized_configuration_keeps_the_settings() -> None:
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
    anonymized = Anonymous.of([cluster]).anonymize(cluster)
    assert anonymized is not None
    assert "private" not in json.dumps(anonymized)
    settings = settings_of(snapshot(anonymized))
    assert (settings.blocks_admission, settings.enabled("PartialAdmission")) == (True, False)
    assert settings.strategies == ("LessThanInitialShare",)


def ready_node(name: str, rack: str) -> Json:
    labels = {"kubernetes.io/hostname": name, "rack": rack, "pool": "gpu"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "2", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": ready}


def placed(manifest: Json) -> Json:
    """Place the Workload, which has quota, on host `n`."""
    slices = [{"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": ASSIGNMENT_TO_N}]
    assignment = {"levels": [HOST], "slices": slices}
    manifest["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = assignment
    return manifest


def test_no_victim_frees_hosts_of_a_flavor_that_its_queue_lost() -> None:
    target = workload("a", cpu="2", minute=1)
    target["spec"]["podSets"][0]["topologyRequest"] = {"required": HOST}
    queues = [
        queue("q", quota("f", "2"), cohortName="c", preemption=RECLAIM),
        queue("r", quota("g", "4"), cohortName="c"),
    ]
    victim = placed(workload("v", "r", cpu="2", reserved_flavor="f"))
    others = [HOSTS, RACKS[1], flavor("g"), ready_node("n", "r1"), *queues, local("q"), local("r")]
    assert outcomes(admit(*others, victim, target)) == [("a", "Waiting")]


@pytest.mark.parametrize("annotation", ["podset-required-topology", "podset-slice-required-topology-constraints"])
def test_pods_in_a_topology_are_counted_once(annotation: str) -> None:
    """Their Workload holds their resources; other pods on the node reduce the free capacity."""
    host: Json = node("n", labels={HOST: "n"}, allocatable={"cpu": "4", "pods": "10"})
    ready = host | {"status": host["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
    reserved = placed(workload("z", cpu="2", reserved_flavor="f"))
    annotations = {"kueue.x-k8s.io/workload": "z", f"kueue.x-k8s.io/{annotation}": HOST}
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}]
    running = pod("z-0", namespace="ml", on="n", metadata={"annotations": annotations}, containers=containers)
    target = workload("a", cpu="2")
    target["spec"]["podSets"][0]["topologyRequest"] = {"required": HOST}
    objects = (flavor("f", topologyName="t"), HOSTS, queue("q"), local("q"), reserved, target, ready)
    assert outcomes(admit(*objects, running)) == [("a", "Admitted")]
    other = pod("daemon", namespace="ml", on="n", containers=containers)
    assert outcomes(admit(*objects, running, other)) == [("a", "Waiting")]


def _with_claim(manifest: Json) -> Json:
    manifest["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimTemplateName": "t"}
    ]
    return manifest


def _with_replacement(manifest: Json, other: str) -> Json:
    manifest["metadata"].setdefault("annotations", {})["kueue.x-k8s.io/workload-slice-replacement-for"] = other
    return manifest


def _with_preference(manifest: Json, **topology: str) -> Json:
    """Return the Workload with a preferred node affinity and a topology request, by default of a rack."""
    (pods,) = manifest["spec"]["podSets"]
    pods["topologyRequest"] = topology or {"required": "rack"}
    preference = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    terms = [{"weight": 1, "preference": preference}]
    pods["template"]["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return manifest


@pytest.mark.parametrize(
    ("objects", "gates", "expected"),
    [
        ([*QUEUE, _with_claim(workload("a"))], {}, "devices of Dynamic Resource Allocation"),
        (
            [*QUEUE, workload("old", reserved_flavor="f"), _with_replacement(workload("a"), "ml/old")],
            {},
            "it replaces ml/old",
        ),
        (
            [queue("q", concurrentAdmissionPolicy={"migration": {}}), local("q"), workload("a")],
            {"ConcurrentAdmission": True},
            "the feature gate ConcurrentAdmission",
        ),
        (
            [*RACKS, *QUEUE, _with_preference(workload("a"), preferred="rack")],
            {"TASBalancedPlacement": True},
            "the feature gate TASBalancedPlacement",
        ),
        (
            [*RACKS, *QUEUE, _with_preference(workload("a"))],
            {"TASRespectNodeAffinityPreferred": True},
            "the feature gate TASRespectNodeAffinityPreferred",
        ),
    ],
    ids=["devices", "elastic", "concurrent", "balanced", "preferred nodes"],
)
def test_an_error_names_what_is_not_evaluated(objects: list[Json], gates: dict[str, bool], expected: str) -> None:
    with pytest.raises(UndecidableError, match=expected):
        kschedx.kueue(snapshot(*objects), feature_gates=gates)


def test_a_workload_without_flavors_is_admitted_without_its_check() -> None:
    """A Workload without requests gets no flavor: its quota is reserved, and the controller then admits it."""
    strategy = {"admissionChecks": [{"name": "budget"}]}
    cluster_queue = queue("q", admissionChecksStrategy=strategy)
    target = workload("a")
    target["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {}
    result = kschedx.kueue(snapshot(cluster_queue, local("q"), check("budget"), target))
    assert result.cycles[0].heads["ml/a"].outcome == "QuotaReserved"
    assert result.workloads["ml/a"].state == "Admitted"

"""The verdict about one Workload: Kueue's decision, and the changes that get it quota."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from kschedx.kueue.overview import overview
from kschedx.kueue.settings import KueueSettings
from kschedx.kueue.verdict import RemedyKind, Verdict, Wait, judge
from kschedx.kueue.workloads import timestamp
from tests.builders import at, node, pod
from tests.command import kschedx
from tests.kueue.objects import (
    KUEUE,
    NAMESPACE,
    TAINT,
    Json,
    check,
    deleted,
    flavor,
    local,
    queue,
    quota,
    snapshot,
    workload,
)

FULL = [queue("q"), local("q"), workload("z", cpu="3", reserved_flavor="f")]
GATES = [{"name": "kueue.x-k8s.io/admission"}]
SMALL = {"cpu": "2", "memory": "8Gi", "pods": "10"}
INVALID_RESOURCES = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]
LIMITED = queue("q", quota("f", "4", borrowingLimit="0"), cohortName="c")
IN_COHORT = [queue("q", cohortName="c"), queue("r", cohortName="c"), local("q"), local("r")]
LOWER = queue("q", preemption={"withinClusterQueue": "LowerPriority"})


def inactive(message: str) -> Json:
    conditions = [{"type": "Active", "status": "False", "reason": "BadParametersRef", "message": message}]
    return {**check("prov"), "status": {"conditions": conditions}}


def verdict(*objects: Json) -> Verdict:
    result = judge(snapshot(*objects), "ml/a")
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("is_dump", "active", "is_missing"),
    [(False, "", True), (True, "", False), (True, "True", False), (True, "False", True)],
)
def test_checks_that_a_dump_lacks_are_not_taken_to_be_missing(
    tmp_path: Path, active: str, *, is_dump: bool, is_missing: bool
) -> None:
    stored = {"resourceVersion": "7", "creationTimestamp": "2026-06-01T08:00:00Z"} if is_dump else {}
    checked = queue("q", admissionChecks=["c"])
    if active:
        checked["status"] = {"conditions": [{"type": "Active", "status": active}]}
    gated = pod("a", namespace="ml", labels={"kueue.x-k8s.io/queue-name": "q"}, spec={"schedulingGates": GATES})
    waiting = workload("a", cpu="5")
    owner = {"kind": "Pod", "name": "a", "uid": at(gated, "metadata").pop("uid")}
    waiting["metadata"]["ownerReferences"] = [owner]
    objects = [NAMESPACE, node("n", allocatable=SMALL), flavor(), checked, local("q"), gated, waiting]
    items = [{**item, "metadata": {**item["metadata"], **stored}} for item in objects]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    out = " ".join(kschedx("why", "a", "-n", "ml", "-s", "cluster.json", cwd=tmp_path).out.split())
    assert ("ClusterQueue q names AdmissionCheck c, which does not exist" in out) is is_missing
    assert ("create AdmissionCheck c, or remove it from ClusterQueue q" in out) is is_missing


@pytest.mark.parametrize(("free", "is_enough"), [("8", True), ("2", False)])
def test_more_quota_is_not_enough_for_a_pod_that_fits_no_node(tmp_path: Path, free: str, *, is_enough: bool) -> None:
    waiting, container = workload("a", cpu="5"), {"name": "c", "resources": {"requests": {"cpu": "5"}}}
    spec = {"schedulingGates": GATES, "containers": [container]}
    gated = pod("a", namespace="ml", labels={"kueue.x-k8s.io/queue-name": "q"}, spec=spec)
    waiting["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "a", "uid": at(gated, "metadata.uid")}]
    there = node("n", allocatable={**SMALL, "cpu": free})
    items = [NAMESPACE, there, flavor(), queue("q"), local("q"), gated, waiting]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    out = kschedx("why", "a", "-n", "ml", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    (title,) = (line for line in out.splitlines() if "raise the nominal quota" in line)
    assert ("then it fits no node" not in title) is is_enough


def test_a_workload_that_preempts_waits_for_its_victims() -> None:
    low = workload("z", cpu="3", reserved_flavor="f")
    result = verdict(LOWER, local("q"), flavor(), low, workload("a", cpu="3", priority=5))
    assert result.state_text == "preempts ml/z in Kueue"
    first, *others = result.remedies
    assert (first.kind, first.title) == (RemedyKind.WAIT, "wait until the pods of ml/z have stopped")
    assert not [remedy for remedy in others if remedy.kind is RemedyKind.WAIT]


@pytest.mark.parametrize(
    ("objects", "kind", "title", "victims"),
    [
        ([*FULL, workload("a", count=2)], RemedyKind.LESS, "run 1 of 2 pods at a time in pod set main", ()),
        ([*FULL, workload("a", cpu="2")], RemedyKind.LESS, "lower requests.cpu from 2 to 1 per pod", ()),
        (
            [*FULL, queue("p"), local("p"), workload("a", cpu="4")],
            RemedyKind.QUEUE,
            "p",
            (),
        ),
        (
            [LOWER, *FULL[1:], workload("a", cpu="4")],
            RemedyKind.PRIORITY,
            "raise the priority from 0 to 1 or more",
            ("ml/z",),
        ),
        ([*FULL, workload("a", cpu="4")], RemedyKind.QUOTA, "cpu from 4 to 7", ()),
        ([*FULL, workload("a", cpu="4")], RemedyKind.WAIT, "ml/z", ()),
        (
            [LIMITED, *IN_COHORT[1:3], FULL[2], workload("a", cpu="4")],
            RemedyKind.QUOTA,
            "raise borrowingLimit of flavor f in ClusterQueue q: cpu from 0 to 3",
            (),
        ),
        (
            [
                IN_COHORT[0],
                queue("r", quota("f", "4", lendingLimit="0"), cohortName="c"),
                *IN_COHORT[2:],
                workload("a", cpu="6"),
            ],
            RemedyKind.QUOTA,
            "raise lendingLimit of flavor f in ClusterQueue r: cpu from 0 to 2",
            (),
        ),
        (
            [*IN_COHORT, workload("z", "r", cpu="6", reserved_flavor="f"), workload("a", cpu="4")],
            RemedyKind.PREEMPTION,
            "set reclaimWithinCohort of ClusterQueue q to Any",
            ("ml/z",),
        ),
        (
            [*FULL, workload("a", cpu="4", priority=1)],
            RemedyKind.PREEMPTION,
            "set withinClusterQueue of ClusterQueue q to LowerPriority",
            ("ml/z",),
        ),
    ],
)
def test_a_remedy_and_its_victims(objects: list[Json], kind: RemedyKind, title: str, victims: tuple[str, ...]) -> None:
    result = [item for item in verdict(*objects).remedies if item.kind is kind]
    assert [(title in item.title, item.victims) for item in result[:1]] == [(True, victims)]


@pytest.mark.parametrize(
    ("cpu", "minimum", "partial"),
    [("3", 1, ("1 of 4 pods in pod set main",)), ("1", 1, ()), ("3", None, ())],
)
def test_a_part_of_the_pods_that_kueue_admits(cpu: str, minimum: int | None, partial: tuple[str, ...]) -> None:
    result = verdict(queue("q"), local("q"), workload("a", cpu=cpu, count=4, minimum=minimum))
    assert result.partial == partial
    assert result.partial_text == (", with 1 of 4 pods in pod set main" if partial else "")


TOPOLOGY: Json = {
    "apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "dc"},
    "spec": {"levels": [{"nodeLabel": "rack"}]},
}  # fmt: skip


def test_a_topology_without_levels_equals_a_missing_one() -> None:
    flavor_of_topology = flavor(nodeLabels={"pool": "a"}, topologyName="dc")
    objects = (queue("q"), local("q"), workload("a"), flavor_of_topology, node("n", labels={"pool": "a"}))
    without_levels = {**TOPOLOGY, "spec": {"levels": []}}
    assert verdict(*objects, without_levels) == verdict(*objects)


def test_a_topology_without_domains_reports_the_missing_labels() -> None:
    target = workload("a")
    target["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [{**node(name, labels={key: "a"}), "status": ready} for name, key in (("n", "pool"), ("other", "rack"))]
    flavors = flavor(nodeLabels={"pool": "a"}, topologyName="dc")
    result = verdict(queue("q"), local("q"), target, flavors, TOPOLOGY, *nodes)
    assert result.wait is Wait.TOPOLOGY
    assert result.inactive == "no node of flavor f is labeled rack, as Topology dc requires"
    assert result.repairs == ("label the nodes of flavor f with rack, or correct the levels of Topology dc",)


def test_a_topology_that_does_not_exist_is_named() -> None:
    result = verdict(flavor(nodeLabels={"pool": "a"}, topologyName="gone"), queue("q"), local("q"), workload("a"))
    assert result.inactive == "ClusterQueue q has ResourceFlavor f, whose Topology gone does not exist"
    assert result.repairs == ("create Topology gone, or correct topologyName of ResourceFlavor f",)


def test_a_topology_whose_flavor_no_node_matches_names_the_labels_of_the_flavor() -> None:
    target = workload("a")
    target["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    other = {**node("n", labels={"rack": "a"}), "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    flavors = flavor(nodeLabels={"pool": "a"}, topologyName="dc")
    result = verdict(queue("q"), local("q"), target, flavors, TOPOLOGY, other)
    assert result.inactive == "no node has pool=a of flavor f"
    assert result.repairs == ("add nodes with pool=a, or correct nodeLabels of ResourceFlavor f",)


def test_a_repair_names_the_node_selector_and_the_flavor() -> None:
    target = workload("a", pod={"nodeSelector": {"gpu": "h100"}})
    result = verdict(queue("q"), local("q"), flavor(nodeLabels={"gpu": "a100"}), target)
    assert result.wait is Wait.FLAVOR
    assert result.repairs == ("add a flavor for gpu=h100 to ClusterQueue q, or select gpu=a100",)


def test_a_change_of_quota_patches_the_limit_of_its_flavor() -> None:
    spot, path = quota("spot", "1", borrowingLimit="0"), "/spec/resourceGroups/0/flavors/1/resources/0"
    queues = [queue("q", quota("f", "1"), spot, cohortName="c"), queue("r", quota("spot", "8"), cohortName="c")]
    remedies = verdict(*queues, local("q"), flavor("spot"), flavor(), workload("a", cpu="4")).remedies
    [result] = [item for item in remedies if item.kind is RemedyKind.QUOTA and "spot" in item.title]
    assert result.target is not None
    assert (result.target.kind, result.target.name) == ("ClusterQueue", "q")
    assert [item["path"] for item in result.patch] == [f"{path}/borrowingLimit"]


def test_an_uncovered_resource_gets_quota() -> None:
    requests = {"cpu": "1", "example.com/gpu": "2"}
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": requests}}
    [result] = verdict(queue("q"), local("q"), workload("a", count=2, pod={"containers": [container]})).remedies
    assert result.title == "cover example.com/gpu with a quota of 4 in ClusterQueue q"
    assert [item["path"] for item in result.patch] == [
        "/spec/resourceGroups/0/coveredResources/-",
        "/spec/resourceGroups/0/flavors/0/resources/-",
    ]


def test_quota_of_a_finishing_workload_becomes_free() -> None:
    cluster_queue = queue("q")
    used = {"name": "cpu", "total": "3"}
    cluster_queue["status"] = {"flavorsReservation": [{"name": "f", "resources": [used]}]}
    result = verdict(cluster_queue, *FULL[1:], workload("a", cpu="4"))
    assert result.unseen == ()
    assert "wait until ml/z finishes" in [item.title for item in result.remedies]


def test_kueue_waits_for_pods_of_another_workload() -> None:
    config = '{"kind": "Configuration", "waitForPodsReady": {"blockAdmission": true}}'
    meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    cluster = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"config.yaml": config}}
    reporting = workload("a")
    message = "waiting for all admitted workloads to be in PodsReady condition"
    reporting["status"] = {"conditions": [{"type": "QuotaReserved", "status": "False", "message": message}]}
    assert verdict(*FULL, reporting).wait is Wait.PODS_READY  # as Kueue's own message tells
    result = verdict(*FULL, workload("a"), cluster)
    assert (result.wait, result.not_ready) == (Wait.PODS_READY, ("ml/z",))
    assert [item.title for item in result.remedies] == ["wait until the pods of ml/z are ready"]


def test_a_toleration_opens_another_flavor() -> None:
    flavors = [flavor("f"), flavor("spot", nodeTaints=[TAINT])]
    cluster_queue = queue("q", quota("f", "1"), quota("spot", "8"))
    result = verdict(*flavors, cluster_queue, local("q"), workload("a", cpu="4"))
    assert [item.kind for item in result.remedies if "spot" in item.title][:1] == [RemedyKind.FLAVOR]


def test_a_verdict_has_position_and_shortages() -> None:
    result = verdict(*FULL, workload("a", cpu="2"))
    assert (result.state, result.position, result.waiting) == ("Pending", 1, 1)
    assert [(shortage.resource, shortage.flavor, shortage.missing_amount) for shortage in result.shortages] == [
        ("cpu", "f", 1000)
    ]


def test_a_workload_with_enough_quota_needs_no_remedy() -> None:
    result = verdict(*FULL, workload("a", cpu="1"))
    assert result.has_quota_now
    assert result.remedies == ()


def test_an_equal_workload_is_decided_with_the_first() -> None:
    result = verdict(*FULL, workload("first", cpu="2"), workload("a", cpu="2", minute=1))
    assert result.position == 2
    assert result.ahead == ("ml/first",)
    assert result.head is not None


def test_a_stopped_queue_is_resumed() -> None:
    result = verdict(queue("q", stopPolicy="Hold"), local("q"), workload("a"))
    assert result.blocked == "ClusterQueue q is inactive: Can't admit new workloads: is stopped."
    assert [item.kind for item in result.remedies] == [RemedyKind.RESUME]


def test_a_stopped_queue_is_resumed_before_there_is_quota() -> None:
    result = verdict(queue("q"), local("q", stopPolicy="Hold"), workload("a", cpu="99"))
    assert [item.title for item in result.remedies] == [
        "set stopPolicy of LocalQueue q to None; it then waits for quota"
    ]


@pytest.mark.parametrize(
    ("objects", "state", "repairs"),
    [
        ([queue("q", stopPolicy="Hold"), local("q")], "ClusterQueue q has stopPolicy Hold", ()),
        (
            [deleted(queue("q")), local("q")],
            "ClusterQueue q is being deleted",
            ("create ClusterQueue q again after its Workloads with quota have finished",),
        ),
        ([queue("q"), local("q", stopPolicy="HoldAndDrain")], "LocalQueue q has stopPolicy HoldAndDrain", ()),
        (
            [
                queue("q", admissionChecks=["prov"]),
                local("q"),
                inactive('ProvisioningRequestConfig.x "conf" not found'),
            ],
            "ClusterQueue q has the inactive AdmissionCheck prov",
            ("create ProvisioningRequestConfig conf, which AdmissionCheck prov names",),
        ),
        (
            [queue("q", admissionChecks=["prov"]), local("q"), inactive("no controller")],
            "ClusterQueue q has the inactive AdmissionCheck prov",
            ("repair AdmissionCheck prov: no controller",),
        ),
    ],
)
def test_the_state_contains_the_cause_of_an_inactive_queue(
    objects: list[Json], state: str, repairs: tuple[str, ...]
) -> None:
    result = verdict(*objects, workload("a"))
    assert result.state_text == f"waits in Kueue because {state}"
    assert result.repairs == repairs


def test_another_queue_replaces_an_inactive_one() -> None:
    result = verdict(deleted(queue("q")), local("q"), queue("p"), local("p"), workload("a"))
    assert [item.title for item in result.remedies] == ["use LocalQueue p (ClusterQueue p)"]


def test_a_missing_workload_has_no_verdict() -> None:
    assert judge(snapshot(*FULL), "ml/none") is None


def test_the_overview_of_queues() -> None:
    unqueued = workload("lost", "none")
    result = overview(snapshot(*FULL, workload("a", cpu="2"), unqueued), KueueSettings(), now="2026-01-01T00:00:00Z")
    (cluster_queue,) = result.queues
    assert (cluster_queue.name, cluster_queue.holding, [item.workload for item in cluster_queue.waiting]) == (
        "q",
        1,
        ["ml/a"],
    )
    assert [(row.flavor, row.used, row.nominal, row.available) for row in cluster_queue.rows] == [
        ("f", 3000, 4000, 1000)
    ]
    assert [item.workload for item in result.unqueued] == ["ml/lost"]


STRICT_FIFO = [queue("q", queueingStrategy="StrictFIFO"), local("q"), workload("z", cpu="3", reserved_flavor="f")]
OTHER_NAMESPACE = queue("q", namespaceSelector={"matchLabels": {"team": "web"}})


@pytest.mark.parametrize(
    ("objects", "wait", "remedies"),
    [
        ([*FULL, workload("a", cpu="2")], Wait.QUOTA, [RemedyKind.LESS, RemedyKind.QUOTA, RemedyKind.WAIT]),
        ([*FULL, workload("a")], Wait.TURN, []),
        (
            [*STRICT_FIFO, workload("y", cpu="2"), workload("a", minute=1)],
            Wait.HEAD,
            [RemedyKind.PRIORITY, RemedyKind.ORDER],
        ),
        ([OTHER_NAMESPACE, local("q"), workload("a")], Wait.NAMESPACE, [RemedyKind.NAMESPACE]),
        ([queue("q", namespaceSelector=None), local("q"), workload("a")], Wait.NAMESPACE, [RemedyKind.NAMESPACE]),
        ([queue("q", stopPolicy="Hold"), local("q"), workload("a")], Wait.QUEUE, [RemedyKind.RESUME]),
        ([queue("q"), local("q", stopPolicy="Hold"), workload("a")], Wait.QUEUE, [RemedyKind.RESUME]),
        (
            [flavor("f", nodeTaints=[TAINT]), queue("q"), local("q"), workload("a")],
            Wait.FLAVOR,
            [RemedyKind.FLAVOR],
        ),
        (
            [queue("q"), local("q"), workload("a", pod={"containers": INVALID_RESOURCES})],
            Wait.REQUESTS,
            [],
        ),
        ([*FULL[:2], workload("a", reserved_flavor="f")], None, []),
    ],
)
def test_why_a_workload_is_pending(objects: list[Json], wait: Wait | None, remedies: list[RemedyKind]) -> None:
    result = verdict(*objects)
    assert result.wait is wait
    assert [item.kind for item in result.remedies if item.kind in remedies] == remedies


@pytest.mark.parametrize(
    ("cpu", "state"),
    [("2", "waits behind ml/y in Kueue"), ("9", "waits behind ml/y in Kueue, which can never fit its queue")],
)
def test_a_head_that_never_fits_blocks_its_queue(cpu: str, state: str) -> None:
    result = verdict(*STRICT_FIFO, workload("y", cpu=cpu), workload("a", minute=1))
    title = "lower what ml/y requests, or delete its owner: it can never fit its queue"
    assert (result.state_text, result.remedies[0].title == title) == (state, cpu == "9")


def test_a_workload_with_quota_waits_for_its_checks() -> None:
    item = workload("a", reserved_flavor="f", admissionChecks=[{"name": "budget", "state": "Pending"}])
    item["status"]["conditions"] = item["status"]["conditions"][:1]
    result = verdict(check("budget"), queue("q", admissionChecks=["budget"]), local("q"), item)
    assert (result.wait, result.checks, result.repairs) == (Wait.CHECKS, ("budget",), ())
    provisioning = check("budget") | {"spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"}}
    result = verdict(provisioning, queue("q", admissionChecks=["budget"]), local("q"), item)
    assert result.repairs == (
        "check the ProvisioningRequest of Workload ml/a, for which cluster-autoscaler adds nodes",
    )


@pytest.mark.parametrize(
    ("reason", "uid", "state"),
    [
        ("Preempted", "z", "was preempted by ml/z and waits for quota in Kueue"),
        ("Preempted", "UNKNOWN", "was preempted by another Workload and waits for quota in Kueue"),
        ("PodsReadyTimeout", "z", "waits for quota in Kueue"),
    ],
)
def test_a_preempted_workload_names_its_preemptor(reason: str, uid: str, state: str) -> None:
    message = f"Preempted to accommodate a workload (UID: {uid}, JobUID: j) due to prioritization in the ClusterQueue"
    condition = {"type": "Evicted", "status": "True", "reason": reason, "message": message}
    assert verdict(*FULL, workload("a", cpu="2", conditions=[condition])).state_text == state


@pytest.mark.parametrize(("now", "wait"), [("2026-06-01T09:00:00Z", Wait.BACKOFF), ("2026-06-01T09:06:00Z", Wait.TURN)])
def test_an_evicted_workload_waits_for_its_backoff(now: str, wait: Wait) -> None:
    condition = {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout", "message": "gone"}
    item = workload("a", requeueState={"requeueAt": "2026-06-01T09:05:00Z"}, conditions=[condition])
    result = judge(snapshot(*FULL, item), "ml/a", now=timestamp(now))
    assert result is not None
    assert result.wait is wait


def test_a_preferred_topology_replaces_a_required_one() -> None:
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": levels}}
    nodes = [
        node(f"n{item}", labels={"rack": f"r{item}", "kubernetes.io/hostname": f"n{item}"}, allocatable=SMALL)
        | {"status": {"allocatable": SMALL, "conditions": [{"type": "Ready", "status": "True"}]}}
        for item in (1, 2)
    ]
    target = workload("a", count=3)
    target["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    result = verdict(flavor("f", topologyName="t"), topology, *nodes, queue("q"), local("q"), target)
    assert result.wait is Wait.TOPOLOGY
    assert [item.title for item in result.remedies] == [
        "make rack preferred instead of required for pod set main",
        "run 2 of 3 pods at a time in pod set main",
    ]


def test_a_training_job_runs_with_fewer_pods() -> None:
    training = workload("a", count=2)
    training["metadata"]["ownerReferences"] = [{"kind": "PyTorchJob", "name": "a", "uid": "a"}]
    titles = [item.title for item in verdict(*FULL, training).remedies if item.kind is RemedyKind.LESS]
    assert titles[0] == "lower the pods of pod set main from 2 to 1"


@pytest.mark.parametrize(
    ("kind", "policy", "expected"),
    [("Pod", "Always", []), ("Pod", "Never", ["wait until ml/z finishes"]), ("RayCluster", "", [])],
)
def test_a_workload_that_serves_does_not_finish(kind: str, policy: str, expected: list[str]) -> None:
    running = workload("z", cpu="3", reserved_flavor="f")
    running["metadata"]["ownerReferences"] = [{"kind": kind, "name": "z", "uid": "z"}]
    running["spec"]["podSets"][0]["template"]["spec"]["restartPolicy"] = policy
    others = [item for item in FULL if at(item, "metadata.name") != "z"]
    found = verdict(*others, running, workload("a", cpu="2")).remedies
    assert [item.title for item in found if item.kind is RemedyKind.WAIT] == expected


def test_a_workload_without_an_owner_is_explained() -> None:
    """`why workload/NAME` prints the cause with its numbers and verified fixes, even without an owner."""
    objects = [node("n"), *FULL, workload("a", cpu="2")]
    document = {"apiVersion": "v1", "kind": "List", "items": [{**NAMESPACE}, flavor(), *objects]}
    answer = kschedx("why", "workload/a", "-n", "ml", "-s", "-", stdin=json.dumps(document))
    assert answer.code == 1
    assert "waits for quota in Kueue" in answer.out
    assert "lower requests.cpu from 2 to 1 per pod" in answer.out


def test_a_missing_flavor_has_a_suggested_name() -> None:
    result = verdict(queue("q", quota("gpu-a1OO", "4")), flavor("gpu-a100"), local("q"), workload("a"))
    assert [remedy.title for remedy in result.remedies] == ['create ResourceFlavor gpu-a1OO (did you mean "gpu-a100"?)']


@pytest.mark.parametrize(
    ("kind", "first"), [("Pod", RemedyKind.QUOTA), ("Job", RemedyKind.LESS)], ids=["pod group", "job"]
)
def test_a_group_of_pods_gets_quota_before_its_pods_are_recreated(kind: str, first: RemedyKind) -> None:
    group = workload("a", cpu="2", count=3)
    owner = {"apiVersion": "v1", "kind": kind, "name": "a-0", "uid": "u"}
    group["metadata"]["ownerReferences"] = [owner]
    result = [remedy.kind for remedy in verdict(queue("q"), local("q"), flavor(), group).remedies]
    assert next(kind for kind in result if kind in (RemedyKind.QUOTA, RemedyKind.LESS)) is first


@pytest.mark.parametrize("is_dump", [False, True], ids=["written", "dumped"])
def test_flavors_that_a_dump_lacks_are_not_taken_to_be_missing(tmp_path: Path, *, is_dump: bool) -> None:
    stored = {"resourceVersion": "7", "creationTimestamp": "2026-06-01T08:00:00Z"} if is_dump else {}
    gated = pod("a", namespace="ml", labels={"kueue.x-k8s.io/queue-name": "q"}, spec={"schedulingGates": GATES})
    waiting = workload("a", cpu="5")
    waiting["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "a", "uid": at(gated, "metadata").pop("uid")}]
    objects = [NAMESPACE, node("n", allocatable=SMALL), queue("q"), local("q"), gated, waiting]
    items = [{**item, "metadata": {**item["metadata"], **stored}} for item in objects]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    out = kschedx("why", "a", "-n", "ml", "-s", "cluster.json", cwd=tmp_path).out
    assert ("create ResourceFlavor f" in out) is not is_dump
    assert ("the dump has no ResourceFlavors" in out) is is_dump
    assert ("ClusterQueue q names ResourceFlavor f, which does not exist" in out) is not is_dump
    (tmp_path / "other.json").write_text(json.dumps({**flavor("other"), "metadata": {"name": "other", **stored}}))
    out = kschedx("why", "a", "-n", "ml", "-s", "cluster.json", "-s", "other.json", cwd=tmp_path).out
    assert "create ResourceFlavor f" in out
    assert "the dump has no ResourceFlavors" not in out


@pytest.mark.parametrize("seed", range(8))
def test_verdicts_do_not_depend_on_the_questions_before(seed: int) -> None:
    dice = random.Random(seed)
    preempts = dice.choice([{}, {"withinClusterQueue": "LowerPriority"}])
    cohorts = [{"cohortName": dice.choice("cd")} if dice.random() < 0.7 else {} for _ in range(3)]
    queues = [queue(f"q{at}", preemption=preempts, **cohort) for at, cohort in enumerate(cohorts)]
    workloads = [
        workload(
            f"w{at}",
            f"q{dice.randrange(3)}",
            cpu=str(dice.randint(1, 5)),
            priority=dice.randint(0, 2),
            minute=dice.randrange(50),
            reserved_flavor="f" if dice.random() < 0.2 else "",
        )
        for at in range(12)
    ]
    objects = [*queues, *(local(f"q{at}") for at in range(3)), *workloads]
    shared, keys = snapshot(*objects), [f"ml/w{at}" for at in range(12)]
    dice.shuffle(keys)
    for key in keys:
        alone = judge(snapshot(*objects), key, with_remedies=False)
        assert judge(shared, key, with_remedies=False) == alone


def test_the_overview_says_why_a_workload_is_not_evaluated() -> None:
    deactivated = workload("off")
    deactivated["spec"]["active"] = False
    waiting = [workload("head", cpu="9"), workload("small", minute=1)]
    strict = queue("q", quota("f", "4"), queueingStrategy="StrictFIFO")
    result = overview(snapshot(flavor(), strict, local("q"), *waiting, deactivated), KueueSettings())
    messages = {item.workload: item.message for item in (*result.queues[0].waiting, *result.unqueued)}
    assert messages["ml/small"] == "behind ml/head (StrictFIFO)"
    assert messages["ml/off"] == "it is deactivated (spec.active is false)"


@pytest.mark.parametrize(
    ("queue", "gpus", "code", "says"),
    [
        ("team-a", "4", 1, "it waits for quota in Kueue (queue team-a)"),
        ("team-a", "1", 0, "✓ ml/train-new would be assigned to a100-2"),
        ("team-x", "1", 1, "it waits in Kueue because its LocalQueue does not exist (queue team-x)"),
        ("", "4", 0, "✓ ml/train-new would be assigned to t4-1"),
    ],
)
def test_kueue_suspends_a_new_job_of_a_queue(tmp_path: Path, queue: str, gpus: str, code: int, says: str) -> None:
    requests = {"cpu": "1", "nvidia.com/gpu": gpus}
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": requests}}
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train-new", "namespace": "ml", "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    files = ("-s", Path(__file__).parents[2] / "fixtures" / "kueue-over-quota" / "cluster.yaml")
    answer = kschedx("why", tmp_path / "job.json", *files, columns=200)
    assert (answer.code, says in answer.out) == (code, True)
    if queue:
        simulated = json.loads(kschedx("simulate", "-f", tmp_path / "job.json", *files, "-o", "json").out)
        assert ("ml/job-train-new" in simulated["kueue"]["pending"]) == bool(code)
        assert [state.get("subject") for state in simulated["states"]].count("ml/job/train-new") == code


@pytest.mark.parametrize("has_room", [True, False])
def test_an_admitted_job_has_the_labels_and_tolerations_of_its_flavor(tmp_path: Path, *, has_room: bool) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}
    metadata = {"name": "sleep", "namespace": "ml", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    spot = flavor(nodeLabels={"pool": "spot"}, tolerations=[{"key": "spot", "operator": "Exists"}])
    room = {"cpu": "4" if has_room else "1", "pods": "9"}
    nodes = [node("n"), node("s", labels={"pool": "spot"}, taints=["spot=:NoSchedule"], allocatable=room)]
    objects = [*nodes, NAMESPACE, spot, queue("q", quota("f", "4")), local("q")]
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    files = ("-s", tmp_path / "cluster.json")
    answer = kschedx("why", tmp_path / "job.json", *files, columns=200)
    assert (answer.code, "assigned to s" in answer.out) == (int(not has_room), has_room)
    assert "Kueue adds node labels and tolerations of ResourceFlavor f to the template of Job sleep" in answer.out
    simulated = json.loads(kschedx("simulate", "-f", tmp_path / "job.json", *files, "-o", "json").out)
    assert [*simulated["placed"].values()] == ["s"] * has_room


@pytest.mark.parametrize(("cpu", "code", "admitted"), [("9", 0, 9), ("4", 1, 0), ("20", 0, 20)])
def test_kueue_admits_a_part_of_a_new_job(tmp_path: Path, cpu: str, code: int, admitted: int) -> None:
    """It runs with at least `job-min-parallelism` pods; Kueue's documentation has Jobs that are suspended already."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    metadata = {
        "name": "sleep",
        "namespace": "ml",
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
        "annotations": {"kueue.x-k8s.io/job-min-parallelism": "5"},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": 20, "completions": 20, "suspend": True, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    objects = [node("n"), NAMESPACE, flavor(), queue("q", quota("f", cpu)), local("q")]
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    files = ("-s", tmp_path / "cluster.json")
    answer = kschedx("why", tmp_path / "job.json", *files)
    assert (answer.code, f"all {admitted} pods can be scheduled" in answer.out) == (code, bool(admitted))
    assert ("Kueue admits 9 of 20 pods in pod set main of Job sleep" in answer.out) == (admitted == 9)
    simulated = json.loads(kschedx("simulate", "-f", tmp_path / "job.json", *files, "-o", "json").out)
    assert len(simulated["placed"]) == admitted

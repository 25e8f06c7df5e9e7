"""Kueue's state of a pod: its queue, quotas, and flavors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kschedx import Snapshot, explain
from kschedx.holding.headlines import holder_text
from tests.command import ROOT, kschedx
from tests.holding.objects import KUEUE, Json, holding_of, node, pod


def workload(
    name: str, owner: str, *, cpu: str = "4", priority: int = 0, created: str = "2026-01-01T00:00:00Z", **status: Any
) -> Json:
    return {
        "apiVersion": f"{KUEUE}/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": created,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner}],
        },
        "spec": {
            "queueName": "lq",
            "priority": priority,
            "podSets": [
                {
                    "name": "main",
                    "count": 1,
                    "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": cpu}}}]}},
                }
            ],
        },
        "status": status,
    }


def reservation(cpu: str, flavor: str = "f", queue: str = "cq", **condition_types: str) -> Json:
    conditions = [{"type": kind, "status": "True"} for kind in ("QuotaReserved", *condition_types)]
    assignment = {"name": "main", "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": cpu}, "count": 1}
    return {"admission": {"clusterQueue": queue, "podSetAssignments": [assignment]}, "conditions": conditions}


def cluster_queue(name: str = "cq", nominal: str = "8", cohort: str = "", **fields: Any) -> Json:
    quota = {"name": "cpu", "nominalQuota": nominal, **fields}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
    spec: Json = {"resourceGroups": [group]} | ({"cohort": cohort} if cohort else {})
    return {"apiVersion": f"{KUEUE}/v1beta1", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


LOCAL = {
    "apiVersion": f"{KUEUE}/v1beta1",
    "kind": "LocalQueue",
    "metadata": {"name": "lq", "namespace": "ml"},
    "spec": {"clusterQueue": "cq"},
}


DEACTIVATED = workload("w", "p")["spec"] | {"active": False}
STOPPED = LOCAL | {"spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}


FLAVOR = {
    "apiVersion": f"{KUEUE}/v1beta1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "f"},
    "spec": {"nodeLabels": {"pool": "f"}, "tolerations": [{"key": "pool", "operator": "Exists"}]},
}


def test_a_pod_without_kueues_gate() -> None:
    assert "kueue" not in holding_of(node("n"), target=pod(gates=(), labels={}))
    assert "kueue" not in holding_of(node("n"), target=pod(gates=()))


@pytest.mark.parametrize(
    ("objects", "state"),
    [
        ((), "no-workload"),
        ((workload("w", "p"),), "no-queue"),
        ((workload("w", "p"), LOCAL), "no-queue"),
        ((workload("w", "p"), LOCAL, cluster_queue()), "waiting"),
        ((workload("w", "p", **reservation("4")), LOCAL, cluster_queue()), "checking"),
        ((workload("w", "p", **reservation("4", Admitted="")), LOCAL, cluster_queue()), "admitted"),
        ((workload("w", "p", conditions=[{"type": "Finished", "status": "True"}]), LOCAL, cluster_queue()), "finished"),
        (
            (workload("w", "p"), {**LOCAL, "spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}, cluster_queue()),
            "stopped",
        ),
        ((workload("w", "p") | {"spec": DEACTIVATED}, LOCAL, cluster_queue()), "deactivated"),
    ],
)
def test_the_state_of_a_workload(objects: tuple[Json, ...], state: str) -> None:
    texts = holding_of(node("n", pool="f"), FLAVOR, *objects)
    assert texts["kueue"]["state"] == state
    assert texts["outcome"] == "Gated"
    assert not [fix for fix in texts["fixes"] if "gate" in fix["title"]]


@pytest.mark.parametrize(
    ("known", "titles"),
    [
        ("cqs", ["delete and recreate LocalQueue lq with clusterQueue cqs instead of cq"]),
        ("research", ["create ClusterQueue cq, or recreate LocalQueue lq with another"]),
        ("", []),
    ],
)
def test_a_local_queue_of_no_cluster_queue(known: str, titles: list[str]) -> None:
    others = [cluster_queue(known)] if known else []
    objects = [node("n", pool="f"), FLAVOR, workload("w", "p"), LOCAL, *others]
    result = explain(Snapshot.from_objects(objects), pod())
    assert [fix.title for fix in result.fixes] == titles
    assert ("ClusterQueue cq does not exist" in holder_text(result.holding, "ml/p")) == bool(known)


@pytest.mark.parametrize(
    ("namespaces", "expected", "fix"),
    [
        (("other",), "does not exist in its namespace, only in other", ", as other has it"),
        (("a", "b"), "does not exist in its namespace, only in a, b", ", as a, b have it"),
        ((), "its Workload is not in this snapshot", ""),
    ],
)
def test_a_queue_of_another_namespace(tmp_path: Path, namespaces: tuple[str, ...], expected: str, fix: str) -> None:
    queues = [{**LOCAL, "metadata": {"name": "lq", "namespace": namespace}} for namespace in namespaces]
    objects = [node("n"), *queues, pod()]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", "p", "-n", "ml", "-s", file)
    assert expected in " ".join(result.out.split())
    assert (f"create LocalQueue lq in namespace ml{fix}" in result.out) is bool(fix)


def test_a_similar_queue_comes_instead_of_a_new_one() -> None:
    message = "LocalQueue lqs doesn't exist"
    waits = workload("w", "p", conditions=[{"type": "QuotaReserved", "status": "False", "message": message}])
    waits["spec"]["queueName"] = "lqs"
    texts = holding_of(node("n"), LOCAL, waits, target=pod(labels={f"{KUEUE}/queue-name": "lqs"}))
    titles = [fix["title"] for fix in texts["fixes"]]
    assert titles == [f"recreate the pod with label {KUEUE}/queue-name=lq instead of lqs"]


def test_quotas_and_their_users() -> None:
    reserving = (
        workload("a", "a", cpu="3", priority=7, **reservation("3")),
        workload("b", "b", cpu="4", **reservation("4")),
        workload("elsewhere", "e", **reservation("2", queue="other")),
    )
    texts = holding_of(
        node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p", cpu="6"), *reserving,
        cluster_queue(cohort="all", borrowingLimit="4"), cluster_queue("other", "4", cohort="all"),
    )  # fmt: skip
    (quota,) = texts["kueue"]["quotas"]
    assert quota == {
        "resource": "cpu", "flavor": "f", "asked": 6000, "nominal": 8000, "used": 7000, "borrowingLimit": 4000,
        "cohortNominal": 12000, "cohortUsed": 9000, "available": 3000,
        "pools": [{"cohort": "all", "quota": 12000, "used": 9000}],
        "users": [
            {"workload": "ml/b", "priority": 0, "amount": 4000},
            {"workload": "ml/a", "priority": 7, "amount": 3000},
        ],
    }  # fmt: skip


def test_the_queues_that_borrow_its_quota() -> None:
    queues = [cluster_queue(cohort="all"), *(cluster_queue(name, "4", cohort="all") for name in ("other", "third"))]
    held = workload("a", "a", cpu="12", **reservation("12", queue="other"))
    texts = holding_of(node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p", cpu="6"), held, *queues)
    (quota,) = texts["kueue"]["quotas"]
    assert quota["borrowers"] == ["other"]


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        ({"pool": "F"}, "pool=F instead of pool=f"),
        ({"pools": "f"}, "pools=f instead of pool=f"),
        ({"zone": "a"}, ""),
        ({"pool": "f"}, ""),
    ],
)
def test_a_flavor_whose_labels_no_node_has(labels: dict[str, str], wrong: str) -> None:
    admitted = workload("w", "p", **reservation("4", Admitted=""))
    target = pod(gates=(), nodeSelector={"pool": "f"})
    fixes = holding_of(node("n", **labels), FLAVOR, LOCAL, cluster_queue(), admitted, target=target)["fixes"]
    title = f"set {wrong} in nodeLabels of ResourceFlavor f, and recreate the workload"
    assert [fix["title"] for fix in fixes if "nodeLabels" in fix["title"]] == ([title] if wrong else [])


def cohort(name: str, parent: str = "", nominal: str = "", **limits: str) -> Json:
    quota = {"name": "cpu", "nominalQuota": nominal, **limits}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
    spec: Json = ({"parentName": parent} if parent else {}) | ({"resourceGroups": [group]} if nominal else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


OTHER = cluster_queue("other", "4", cohort="all")


ORG = cohort("org", nominal="10")


@pytest.mark.parametrize(
    ("objects", "used", "available", "cohorts"),
    [
        # no cohort
        ((cluster_queue(),), {}, 8, []),
        ((cluster_queue(),), {"cq": 9}, -1, []),
        # its own quota is lent while others use it
        ((cluster_queue(cohort="all"), OTHER), {"other": 12}, 0, ["all"]),
        ((cluster_queue(cohort="all", lendingLimit="3"), OTHER), {"other": 7}, 5, ["all"]),
        ((cluster_queue(cohort="all"), cluster_queue("other", "4", cohort="all", lendingLimit="1")), {}, 9, ["all"]),
        ((cluster_queue(cohort="all", borrowingLimit="1"), OTHER), {"cq": 2}, 7, ["all"]),
        # nested cohorts with their own quota and limits
        ((cluster_queue(cohort="team"), cohort("team", "org"), ORG), {"cq": 2}, 16, ["team", "org"]),
        (
            (cluster_queue(cohort="team"), cohort("team", "org", "1", borrowingLimit="2"), ORG),
            {"cq": 2},
            9,
            ["team", "org"],
        ),
        (
            (
                cluster_queue(cohort="team"), cohort("team", "org"), cohort("next", "org", "6", lendingLimit="2"),
                cluster_queue("other", "4", cohort="next"), cohort("org"),
            ),
            {"cq": 3, "other": 9},
            6,
            ["team", "org"],
        ),
        ((cluster_queue(cohort="a"), cohort("a", "b"), cohort("b", "a")), {}, None, ["a", "b"]),
    ],
)  # fmt: skip
def test_cohorts_share_their_quota(
    objects: tuple[Json, ...], used: dict[str, int], available: int | None, cohorts: list[str]
) -> None:
    reserving = [workload(f"on-{queue}", queue, **reservation(str(cpu), queue=queue)) for queue, cpu in used.items()]
    texts = holding_of(node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p"), *objects, *reserving)["kueue"]
    assert texts.get("cohorts", []) == cohorts
    assert texts.get("circle", []) == (cohorts if available is None else [])
    if available is not None:
        (quota,) = texts["quotas"]
        assert quota["available"] == available * 1000


def test_the_position_in_the_queue() -> None:
    others = (
        workload("older", "x", created="2025-01-01T00:00:00Z"),
        workload("younger", "y", created="2027-01-01T00:00:00Z"),
        workload("higher", "z", priority=5, created="2027-01-01T00:00:00Z"),
        workload("admitted", "q", **reservation("1")),
    )
    texts = holding_of(node("n", pool="f"), FLAVOR, LOCAL, cluster_queue(), workload("w", "p"), *others)["kueue"]
    assert (texts["position"], texts["waiting"], texts["ahead"]) == (3, 4, ["ml/higher", "ml/older"])


def test_nodes_for_the_admitted_pod() -> None:
    tainted = node("in", pool="f") | {"spec": {"taints": [{"key": "pool", "value": "f", "effect": "NoSchedule"}]}}
    objects = (tainted, node("out"), LOCAL, cluster_queue(), workload("w", "p"))
    (fit,) = holding_of(*objects, FLAVOR)["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": True, "nodes": 1, "feasible": ["in"]}
    (fit,) = holding_of(*objects, FLAVOR, target=pod(cpu="9"))["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": True, "nodes": 1, "reasons": ["1 Insufficient cpu"]}
    (fit,) = holding_of(*objects)["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": False, "nodes": 0}


def test_the_workload_of_a_pod_group_and_of_a_job() -> None:
    objects = (node("n", pool="f"), FLAVOR, LOCAL, cluster_queue())
    target = pod(labels={f"{KUEUE}/pod-group-name": "w"})
    assert holding_of(*objects, workload("w", "another"), target=target)["kueue"]["workload"] == "ml/w"
    target = pod()
    target["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1"}]
    job_workload = workload("w", "j")
    job_workload["metadata"]["ownerReferences"][0]["kind"] = "Job"
    assert holding_of(*objects, job_workload, target=target)["kueue"]["workload"] == "ml/w"


def flavor(name: str = "f", **spec: Any) -> Json:
    return {**FLAVOR, "metadata": {"name": name}, "spec": {"nodeLabels": {"pool": name}, **spec}}


def term(key: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def required(*terms: Json) -> Json:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


TAINTED = {"nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("spec", "fields", "refused"),
    [
        (TAINTED, {}, "untolerated taint spot=yes:NoSchedule"),
        ({**TAINTED, "tolerations": [{"key": "spot", "operator": "Exists"}]}, {}, None),
        (TAINTED, {"tolerations": [{"operator": "Exists"}]}, None),
        ({"nodeTaints": [{"key": "spot", "effect": "PreferNoSchedule"}]}, {}, None),
        ({}, {"nodeSelector": {"pool": "g"}}, "its nodes have pool=f, and the pod selects pool=g"),
        ({}, {"nodeSelector": {"another": "g"}}, None),
        ({}, required(term("pool", "g"), term("pool", "h")), "its labels do not match the pod's node affinity"),
        ({}, required(term("pool", "g"), term("another", "h")), None),
    ],
)
def test_flavors_that_kueue_rejects(spec: Json, fields: Json, refused: str | None) -> None:
    objects = node("n", pool="f", another="h"), cluster_queue(), LOCAL, flavor(**spec), workload("w", "p")
    (fit,) = holding_of(*objects, target=pod(**fields))["kueue"]["fits"]
    assert fit.get("refused") == refused


@pytest.mark.parametrize(
    ("assignment", "feasible"),
    [
        ({"levels": ["rack"], "domains": [{"values": ["r1"], "count": 1}]}, ["a"]),
        ({"levels": ["rack"], "slices": [{"domainCount": 1, "valuesPerLevel": [{"universal": "r2"}]}]}, ["b"]),
        (
            {
                "levels": ["rack"],
                "slices": [
                    {"domainCount": 2, "valuesPerLevel": [{"individual": {"prefix": "r", "roots": ["1", "2"]}}]},
                ],
            },
            ["a", "b"],
        ),
        ({"levels": ["rack"], "domains": [{"values": ["r9"], "count": 1}]}, None),
    ],
)
def test_only_nodes_of_the_assigned_topology_count(assignment: Json, feasible: list[str] | None) -> None:
    status = reservation("4", Admitted="")
    status["admission"]["podSetAssignments"][0]["topologyAssignment"] = assignment
    nodes = node("a", pool="f", rack="r1"), node("b", pool="f", rack="r2"), node("c", pool="f", rack="r3")
    (fit,) = holding_of(*nodes, cluster_queue(), LOCAL, FLAVOR, workload("w", "p", **status))["kueue"]["fits"]
    assert fit.get("feasible") == feasible


def test_updates_of_an_admission_check_count() -> None:
    status = reservation("4", Admitted="")
    update = {"name": "main", "nodeSelector": {"provisioned": "for-w"}}
    status["admissionChecks"] = [{"name": "provision", "state": "Ready", "podSetUpdates": [update]}]
    nodes = node("a", pool="f"), node("b", pool="f", provisioned="for-w")
    (fit,) = holding_of(*nodes, cluster_queue(), LOCAL, FLAVOR, workload("w", "p", **status))["kueue"]["fits"]
    assert fit["feasible"] == ["b"]


def test_fair_sharing_and_preemption() -> None:
    queue = cluster_queue(cohort="all")
    queue["spec"] |= {
        "fairSharing": {"weight": "2"},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    }
    queue["status"] = {"fairSharing": {"weightedShare": 125}}
    texts = holding_of(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"))["kueue"]
    assert (texts["weightedShare"], texts["fairWeight"]) == (125, "2")
    assert (texts["withinQueue"], texts["withinCohort"]) == ("LowerPriority", "Any")
    assert texts["position"] == 1


def test_usage_based_queues_have_no_position() -> None:
    queue = cluster_queue()
    queue["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    texts = holding_of(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"), workload("v", "q"))["kueue"]
    assert (texts["isByUsage"], texts["waiting"], texts.get("position"), texts.get("ahead")) == (True, 2, None, None)


@pytest.mark.parametrize(("reason", "position"), [("PodsReadyTimeout", 2), ("AdmissionCheck", 2), ("Preempted", 1)])
def test_an_evicted_workload_is_ordered_by_its_eviction(reason: str, position: int) -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": reason, "lastTransitionTime": "2026-01-03T00:00:00Z"}
    target = workload("w", "p", conditions=[evicted], requeueState={"count": 1, "requeueAt": "2026-01-03T01:00:00Z"})
    other = workload("v", "q", created="2026-01-02T00:00:00Z")
    texts = holding_of(node("n", pool="f"), cluster_queue(), LOCAL, FLAVOR, target, other)["kueue"]
    assert (texts["position"], texts["requeueAt"]) == (position, "2026-01-03T01:00:00Z")


@pytest.mark.parametrize(
    "target", ["workload/job-train", "ml/workload/job-train", "workloads.kueue.x-k8s.io/job-train"]
)
def test_why_explains_a_workload_by_its_name(target: str) -> None:
    answer = kschedx("why", target, "-n", "ml", "-s", "fixtures/kueue-job/cluster.yaml")
    assert answer.out.startswith("‖ ml/train-main waits for quota in Kueue (queue research")
    assert answer.code == 1


def test_why_explains_a_suspended_custom_resource(tmp_path: Path) -> None:
    text = (ROOT / "fixtures/kueue-job/cluster.yaml").read_text(encoding="utf-8")
    jobs = text.replace("batch/v1, kind: Job, name: train", "jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train")
    path = tmp_path / "cluster.yaml"
    path.write_text(jobs, encoding="utf-8")
    answer = kschedx("why", "jobset/train", "-n", "ml", "-s", str(path))
    assert "ClusterQueue research" in answer.out
    assert answer.out.startswith("‖ ml/train-main waits for quota in Kueue")
    assert "no pod" in kschedx("why", "jobset/other", "-n", "ml", "-s", str(path)).err

"""Whether Kueue holds a pod, and what it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command import ROOT, kschedx
from tests.holding.objects import KUEUE, Json, node, pod, told


def workload(
    name: str, owner: str, *, cpu: str = "4", priority: int = 0, made: str = "2026-01-01T00:00:00Z", **status: Any
) -> Json:
    return {
        "apiVersion": f"{KUEUE}/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": made,
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


def reserved(cpu: str, flavor: str = "f", queue: str = "cq", **more: str) -> Json:
    conditions = [{"type": kind, "status": "True"} for kind in ("QuotaReserved", *more)]
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
HELD = LOCAL | {"spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}


FLAVOR = {
    "apiVersion": f"{KUEUE}/v1beta1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "f"},
    "spec": {"nodeLabels": {"pool": "f"}, "tolerations": [{"key": "pool", "operator": "Exists"}]},
}


def test_a_pod_that_nobody_holds() -> None:
    assert "kueue" not in told(node("n"), about=pod(gates=(), labels={}))
    assert "kueue" not in told(node("n"), about=pod(gates=()))


@pytest.mark.parametrize(
    ("objects", "state"),
    [
        ((), "no-workload"),
        ((workload("w", "p"),), "no-queue"),
        ((workload("w", "p"), LOCAL), "no-queue"),
        ((workload("w", "p"), LOCAL, cluster_queue()), "waiting"),
        ((workload("w", "p", **reserved("4")), LOCAL, cluster_queue()), "checking"),
        ((workload("w", "p", **reserved("4", Admitted="")), LOCAL, cluster_queue()), "admitted"),
        ((workload("w", "p", conditions=[{"type": "Finished", "status": "True"}]), LOCAL, cluster_queue()), "finished"),
        (
            (workload("w", "p"), {**LOCAL, "spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}, cluster_queue()),
            "stopped",
        ),
        ((workload("w", "p") | {"spec": DEACTIVATED}, LOCAL, cluster_queue()), "deactivated"),
    ],
)
def test_how_it_stands(objects: tuple[Json, ...], state: str) -> None:
    texts = told(node("n", pool="f"), FLAVOR, *objects)
    assert texts["kueue"]["state"] == state
    assert texts["outcome"] == "Gated"
    assert not [fix for fix in texts["fixes"] if "gate" in fix["title"]]


def test_the_quota_and_who_uses_it() -> None:
    holders = (
        workload("a", "a", cpu="3", priority=7, **reserved("3")),
        workload("b", "b", cpu="4", **reserved("4")),
        workload("elsewhere", "e", **reserved("2", queue="other")),
    )
    texts = told(
        node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p", cpu="6"), *holders,
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
        # alone
        ((cluster_queue(),), {}, 8, []),
        ((cluster_queue(),), {"cq": 9}, -1, []),
        # its own is lent as long as others use it
        ((cluster_queue(cohort="all"), OTHER), {"other": 12}, 0, ["all"]),
        ((cluster_queue(cohort="all", lendingLimit="3"), OTHER), {"other": 7}, 5, ["all"]),
        ((cluster_queue(cohort="all"), cluster_queue("other", "4", cohort="all", lendingLimit="1")), {}, 9, ["all"]),
        ((cluster_queue(cohort="all", borrowingLimit="1"), OTHER), {"cq": 2}, 7, ["all"]),
        # cohorts above cohorts, which have quota of their own and limits too
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
def test_cohorts_pool_what_they_have(
    objects: tuple[Json, ...], used: dict[str, int], available: int | None, cohorts: list[str]
) -> None:
    holders = [workload(f"on-{queue}", queue, **reserved(str(cpu), queue=queue)) for queue, cpu in used.items()]
    texts = told(node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p"), *objects, *holders)["kueue"]
    assert texts.get("cohorts", []) == cohorts
    assert texts.get("circle", []) == (cohorts if available is None else [])
    if available is not None:
        (quota,) = texts["quotas"]
        assert quota["available"] == available * 1000


def test_the_place_in_the_queue_is_by_priority_and_age() -> None:
    others = (
        workload("older", "x", made="2025-01-01T00:00:00Z"),
        workload("younger", "y", made="2027-01-01T00:00:00Z"),
        workload("higher", "z", priority=5, made="2027-01-01T00:00:00Z"),
        workload("admitted", "q", **reserved("1")),
    )
    texts = told(node("n", pool="f"), FLAVOR, LOCAL, cluster_queue(), workload("w", "p"), *others)["kueue"]
    assert (texts["position"], texts["waiting"], texts["ahead"]) == (3, 4, ["ml/higher", "ml/older"])


def test_the_pod_as_if_it_were_admitted() -> None:
    tainted = node("in", pool="f") | {"spec": {"taints": [{"key": "pool", "value": "f", "effect": "NoSchedule"}]}}
    objects = (tainted, node("out"), LOCAL, cluster_queue(), workload("w", "p"))
    (fit,) = told(*objects, FLAVOR)["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": True, "nodes": 1, "feasible": ["in"]}
    (fit,) = told(*objects, FLAVOR, about=pod(cpu="9"))["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": True, "nodes": 1, "reasons": ["1 Insufficient cpu"]}
    (fit,) = told(*objects)["kueue"]["fits"]
    assert fit == {"flavor": "f", "exists": False, "nodes": 0}


def test_the_workload_of_a_group_and_of_an_owner() -> None:
    rest = (node("n", pool="f"), FLAVOR, LOCAL, cluster_queue())
    grouped = pod(labels={f"{KUEUE}/pod-group-name": "w"})
    assert told(*rest, workload("w", "another"), about=grouped)["kueue"]["workload"] == "ml/w"
    owned = pod()
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1"}]
    of_job = workload("w", "j")
    of_job["metadata"]["ownerReferences"][0]["kind"] = "Job"
    assert told(*rest, of_job, about=owned)["kueue"]["workload"] == "ml/w"


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
def test_flavors_that_kueue_does_not_give_to_a_pod(spec: Json, fields: Json, refused: str | None) -> None:
    rest = node("n", pool="f", another="h"), cluster_queue(), LOCAL, flavor(**spec), workload("w", "p")
    (fit,) = told(*rest, about=pod(**fields))["kueue"]["fits"]
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
def test_nodes_of_an_assigned_topology_alone_count(assignment: Json, feasible: list[str] | None) -> None:
    given = reserved("4", Admitted="")
    given["admission"]["podSetAssignments"][0]["topologyAssignment"] = assignment
    nodes = node("a", pool="f", rack="r1"), node("b", pool="f", rack="r2"), node("c", pool="f", rack="r3")
    (fit,) = told(*nodes, cluster_queue(), LOCAL, FLAVOR, workload("w", "p", **given))["kueue"]["fits"]
    assert fit.get("feasible") == feasible


def test_what_an_admission_check_adds_counts() -> None:
    given = reserved("4", Admitted="")
    update = {"name": "main", "nodeSelector": {"made": "for-w"}}
    given["admissionChecks"] = [{"name": "provision", "state": "Ready", "podSetUpdates": [update]}]
    nodes = node("a", pool="f"), node("b", pool="f", made="for-w")
    (fit,) = told(*nodes, cluster_queue(), LOCAL, FLAVOR, workload("w", "p", **given))["kueue"]["fits"]
    assert fit["feasible"] == ["b"]


def test_fair_sharing_and_preemption() -> None:
    queue = cluster_queue(cohort="all")
    queue["spec"] |= {
        "fairSharing": {"weight": "2"},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    }
    queue["status"] = {"fairSharing": {"weightedShare": 125}}
    texts = told(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"))["kueue"]
    assert (texts["weightedShare"], texts["fairWeight"]) == (125, "2")
    assert (texts["withinQueue"], texts["withinCohort"]) == ("LowerPriority", "Any")
    assert texts["position"] == 1


def test_where_use_decides_no_place_in_the_queue_is_told() -> None:
    queue = cluster_queue()
    queue["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    texts = told(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"), workload("v", "q"))["kueue"]
    assert (texts["isByUsage"], texts["waiting"], texts.get("position"), texts.get("ahead")) == (True, 2, None, None)


@pytest.mark.parametrize(("reason", "position"), [("PodsReadyTimeout", 2), ("AdmissionCheck", 2), ("Preempted", 1)])
def test_who_was_put_back_waits_since_then(reason: str, position: int) -> None:
    put_back = {"type": "Evicted", "status": "True", "reason": reason, "lastTransitionTime": "2026-01-03T00:00:00Z"}
    mine = workload("w", "p", conditions=[put_back], requeueState={"count": 1, "requeueAt": "2026-01-03T01:00:00Z"})
    other = workload("v", "q", made="2026-01-02T00:00:00Z")
    texts = told(node("n", pool="f"), cluster_queue(), LOCAL, FLAVOR, mine, other)["kueue"]
    assert (texts["position"], texts["requeueAt"]) == (position, "2026-01-03T01:00:00Z")


@pytest.mark.parametrize(
    "target", ["workload/job-train", "ml/workload/job-train", "workloads.kueue.x-k8s.io/job-train"]
)
def test_a_workload_of_kueue_is_asked_about_by_its_name(target: str) -> None:
    ran = kschedx("why", target, "-n", "ml", "-s", "fixtures/kueue-job/cluster.yaml")
    assert ran.out.startswith("‖ ml/train-main waits for quota in Kueue (queue research")
    assert ran.code == 1


def test_a_custom_resource_that_kueue_suspends_is_asked_about_by_its_kind(tmp_path: Path) -> None:
    text = (ROOT / "fixtures/kueue-job/cluster.yaml").read_text(encoding="utf-8")
    jobs = text.replace("batch/v1, kind: Job, name: train", "jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train")
    path = tmp_path / "cluster.yaml"
    path.write_text(jobs, encoding="utf-8")
    ran = kschedx("why", "jobset/train", "-n", "ml", "-s", str(path))
    assert "ClusterQueue research" in ran.out
    assert ran.out.startswith("‖ ml/train-main waits for quota in Kueue")
    assert "no pod" in kschedx("why", "jobset/other", "-n", "ml", "-s", str(path)).err

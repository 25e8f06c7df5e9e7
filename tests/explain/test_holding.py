"""Who holds a pod before kube-scheduler sees it."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from kschedx.errors import ConfigError

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io"


def node(name: str, cpu: str = "8", **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
    }


def pod(name: str = "p", *, cpu: str = "4", gates: tuple[str, ...] = (f"{KUEUE}/admission",), **fields: Any) -> Json:
    labels = fields.pop("labels", {f"{KUEUE}/queue-name": "lq"})
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        "schedulingGates": [{"name": gate} for gate in gates],
        **fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels},
        "spec": spec,
    }


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
HELD = LOCAL | {"spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}
FLAVOR = {
    "apiVersion": f"{KUEUE}/v1beta1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "f"},
    "spec": {"nodeLabels": {"pool": "f"}, "tolerations": [{"key": "pool", "operator": "Exists"}]},
}


def told(*objects: Json, about: Json | None = None, **options: Any) -> Json:
    found = kschedx.explain(kschedx.Snapshot.from_objects(objects), about or pod(), **options).to_dict()
    holding: Any = found.get("holding", {})
    return {"outcome": found["outcome"], "fixes": found["fixes"], **holding}


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
    ],
)
def test_how_it_stands(objects: tuple[Json, ...], state: str) -> None:
    found = told(node("n", pool="f"), FLAVOR, *objects)
    assert found["kueue"]["state"] == state
    assert found["outcome"] == "Gated"
    assert not [fix for fix in found["fixes"] if "gate" in fix["title"]]


def test_the_quota_and_who_uses_it() -> None:
    holders = (
        workload("a", "a", cpu="3", priority=7, **reserved("3")),
        workload("b", "b", cpu="4", **reserved("4")),
        workload("elsewhere", "e", **reserved("2", queue="other")),
    )
    found = told(
        node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p", cpu="6"), *holders,
        cluster_queue(cohort="all", borrowingLimit="4"), cluster_queue("other", "4", cohort="all"),
    )  # fmt: skip
    (quota,) = found["kueue"]["quotas"]
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
    found = told(node("n", pool="f"), FLAVOR, LOCAL, workload("w", "p"), *objects, *holders)["kueue"]
    assert found.get("cohorts", []) == cohorts
    assert found.get("circle", []) == (cohorts if available is None else [])
    if available is not None:
        (quota,) = found["quotas"]
        assert quota["available"] == available * 1000


def test_the_place_in_the_queue_is_by_priority_and_age() -> None:
    others = (
        workload("older", "x", made="2025-01-01T00:00:00Z"),
        workload("younger", "y", made="2027-01-01T00:00:00Z"),
        workload("higher", "z", priority=5, made="2027-01-01T00:00:00Z"),
        workload("admitted", "q", **reserved("1")),
    )
    found = told(node("n", pool="f"), FLAVOR, LOCAL, cluster_queue(), workload("w", "p"), *others)["kueue"]
    assert (found["position"], found["waiting"], found["ahead"]) == (3, 4, ["ml/higher", "ml/older"])


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


def test_whose_a_gate_is() -> None:
    found = told(node("n"), about=pod(gates=("scheduling.volcano.sh/queue", "acme.io/license"), labels={}))
    assert [(gate["name"], gate.get("owner")) for gate in found["gates"]] == [
        ("scheduling.volcano.sh/queue", "Volcano"),
        ("acme.io/license", None),
    ]


# --- other schedulers


@pytest.mark.parametrize(
    ("name", "labels", "queue", "application"),
    [
        ("yunikorn", {"applicationId": "spark-1", "queue": "root.ml"}, "root.ml", "spark-1"),
        ("yunikorn", {"yunikorn.apache.org/app-id": "spark-2", "applicationId": "old"}, "", "spark-2"),
        ("koord-scheduler", {"quota.scheduling.koordinator.sh/name": "team"}, "team", ""),
        ("kai-scheduler", {"kai.scheduler/queue": "research"}, "research", ""),
        ("volcano", {"queue": "mine"}, "", ""),
    ],
)
def test_what_a_pods_labels_say_to_its_scheduler(name: str, labels: Json, queue: str, application: str) -> None:
    found = told(node("n"), about=pod(gates=(), labels=labels, schedulerName=name))["scheduler"]
    assert (found.get("queue", ""), found.get("application", "")) == (queue, application)


def volcano_group(**status: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
        "spec": {"minMember": 3, "queue": "q"},
        "status": status,
    }


def test_a_pod_of_volcano() -> None:
    about = pod(gates=(), labels={}, schedulerName="volcano")
    about["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    found = told(node("n"), volcano_group(phase="Inqueue"), about=about)
    assert found["outcome"] == "Undecided"
    assert found["scheduler"]["group"] == "ml/g"
    assert (found["scheduler"]["phase"], found["scheduler"]["minMember"]) == ("Inqueue", 3)


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
        ({}, {"nodeSelector": {"pool": "g"}}, "its labels do not match the pod's node affinity"),
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
    found = told(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"))["kueue"]
    assert (found["weightedShare"], found["fairWeight"]) == (125, "2")
    assert (found["withinQueue"], found["withinCohort"]) == ("LowerPriority", "Any")
    assert found["position"] == 1


def test_where_use_decides_no_place_in_the_queue_is_told() -> None:
    queue = cluster_queue()
    queue["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    found = told(node("n", pool="f"), queue, LOCAL, FLAVOR, workload("w", "p"), workload("v", "q"))["kueue"]
    assert (found["isByUsage"], found["waiting"], found.get("position"), found.get("ahead")) == (True, 2, None, None)


@pytest.mark.parametrize(("reason", "position"), [("PodsReadyTimeout", 2), ("AdmissionCheck", 2), ("Preempted", 1)])
def test_who_was_put_back_waits_since_then(reason: str, position: int) -> None:
    put_back = {"type": "Evicted", "status": "True", "reason": reason, "lastTransitionTime": "2026-01-03T00:00:00Z"}
    mine = workload("w", "p", conditions=[put_back], requeueState={"count": 1, "requeueAt": "2026-01-03T01:00:00Z"})
    other = workload("v", "q", made="2026-01-02T00:00:00Z")
    found = told(node("n", pool="f"), cluster_queue(), LOCAL, FLAVOR, mine, other)["kueue"]
    assert (found["position"], found["requeueAt"]) == (position, "2026-01-03T01:00:00Z")


KAI = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}


def kai_queue(name: str, parent: str = "", **resources: Json) -> Json:
    status = {"allocated": {"cpu": "3500m", "memory": "1Gi", "nvidia.com/gpu": "1500m"}, "requested": {"cpu": "4"}}
    spec = {"parentQueue": parent, "resources": resources}
    return {**KAI, "metadata": {"name": name}, "spec": spec, "status": status}


def test_kais_queues_up_to_the_root() -> None:
    child = kai_queue("q", "top", cpu={"quota": 2500, "limit": -1}, gpu={"quota": 0.5, "limit": 2})
    about = pod(gates=(), labels={"kai.scheduler/queue": "q"}, schedulerName="kai-scheduler")
    found = told(node("n"), child, kai_queue("top", "q", memory={"quota": 1, "limit": 2}), about=about)["scheduler"]
    assert found["queueShares"] == [
        {"resource": "cpu", "allocated": 3500, "requested": 4000, "deserved": 2500, "isInThousandths": False},
        {
            "resource": "nvidia.com/gpu", "allocated": 1500, "requested": 0, "capability": 2000, "deserved": 500,
            "isInThousandths": True,
        },
    ]  # fmt: skip
    above = found["queuesAbove"]
    assert [queue["name"] for queue in above[:2]] == ["top", "q"], "a circle ends"
    assert above[0]["shares"][0]["capability"] == 2_000_000
    assert len(above) < 20


def test_why_kai_finds_no_place() -> None:
    group = volcano_group(
        phase="Pending",
        schedulingConditions=[
            {
                "type": "UnschedulableOnNodePool",
                "nodePool": "a",
                "status": "True",
                "reasons": [{"reason": "OverLimit"}],
            },
            {"type": "UnschedulableOnNodePool", "status": "True", "message": "no room"},
        ],
    )
    about = pod(gates=(), labels={}, schedulerName="kai-scheduler")
    about["metadata"]["annotations"] = {"pod-group-name": "g"}
    found = told(node("n"), {**group, "apiVersion": "scheduling.run.ai/v2alpha2"}, about=about)["scheduler"]
    assert [(said["type"], said.get("reason"), said.get("message")) for said in found["said"]] == [
        ("UnschedulableOnNodePool a", "OverLimit", None),
        ("UnschedulableOnNodePool", None, "no room"),
    ]


QUOTA = "quota.scheduling.koordinator.sh"


def quota(name: str, *, namespace: str = "kube-system", parent: str = "", **annotations: str) -> Json:
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {f"{QUOTA}/parent": parent},
        "annotations": {f"{QUOTA}/{key}": value for key, value in annotations.items()},
    }
    spec, status = {"max": {"cpu": "8"}}, {"used": {"cpu": "3"}}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": metadata, "spec": spec, "status": status,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "quotas", "chain"),
    [
        ({f"{QUOTA}/name": "a"}, [quota("a", parent="b"), quota("b")], ["a", "b"]),
        ({}, [quota("a", namespace="ml"), quota("b")], ["a"]),
        ({}, [quota("a"), quota("b", namespaces='["x", "ml"]')], ["b"]),
        ({}, [quota("a", namespaces="no json"), quota("koordinator-default-quota")], ["koordinator-default-quota"]),
        ({f"{QUOTA}/name": "gone"}, [quota("a")], []),
    ],
)
def test_whose_quota_of_koordinator_a_pod_is(labels: Json, quotas: list[Json], chain: list[str]) -> None:
    about = pod(gates=(), labels=labels, schedulerName="koord-scheduler")
    found = told(node("n"), *quotas, about=about)["scheduler"]
    above = [queue["name"] for queue in found.get("queuesAbove", [])]
    assert [name for name in (found.get("queue") if found.get("queueShares") else None, *above) if name] == chain


def test_what_a_quota_of_koordinator_has_for_now() -> None:
    about = pod(gates=(), labels={f"{QUOTA}/name": "a"}, schedulerName="koord-scheduler")
    (share,) = told(node("n"), quota("a", runtime='{"cpu": "5"}'), about=about)["scheduler"]["queueShares"]
    assert share == {
        "resource": "cpu", "allocated": 3000, "capability": 8000, "deserved": 5000, "isInThousandths": False
    }  # fmt: skip


def test_rooms_and_moves_of_koordinator() -> None:
    base = {"apiVersion": "scheduling.koordinator.sh/v1alpha1"}

    def reservation(name: str, *owners: Json) -> Json:
        status = {"phase": "Available", "nodeName": "n"}
        return {**base, "kind": "Reservation", "metadata": {"name": name}, "spec": {"owners": owners}, "status": status}

    about = pod("w", gates=(), labels={"app": "w"}, schedulerName="koord-scheduler")
    about["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "7", "controller": True}]
    move = {
        **base, "kind": "PodMigrationJob", "metadata": {"name": "m"},
        "spec": {"podRef": {"namespace": "ml", "name": "w"}},
        "status": {"phase": "Running", "reason": "Evicting", "message": "soon"},
    }  # fmt: skip
    found = told(
        node("n"),
        reservation("by-label", {"labelSelector": {"matchLabels": {"app": "w"}}}),
        reservation("by-name", {"object": {"namespace": "ml", "name": "w"}}),
        reservation("by-controller", {"controller": {"kind": "Job", "name": "j"}}),
        reservation("of-another", {"object": {"name": "v"}}, {"labelSelector": {"matchLabels": {"app": "v"}}}, {}),
        reservation("not-all", {"object": {"name": "w"}, "controller": {"name": "k"}}),
        move,
        about=about,
    )["scheduler"]
    assert [room["name"] for room in found["rooms"]] == ["by-controller", "by-label", "by-name"]
    assert found["said"] == [
        {"type": "PodMigrationJob m", "status": "Running", "reason": "Evicting", "message": "soon"}
    ]


@pytest.mark.parametrize(
    "written", ["- 1", "a: [", "partitions: 7", "partitions: [{queues: [{name: root, queues: 1}]}]"]
)
def test_queues_of_yunikorn_that_cannot_be_read(written: str) -> None:
    config = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs", "namespace": "y"},
        "data": {"queues.yaml": written},
    }  # fmt: skip
    about = pod(gates=(), labels={"queue": "root.a"}, schedulerName="yunikorn")
    found = told(node("n"), config, about=about)["scheduler"]
    assert "queueShares" not in found


def test_kube_schedulers_view_is_told_where_somebody_asks_for_it() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("n")])
    about = pod(gates=(), labels={}, schedulerName="volcano")
    from kschedx.answer.run import explain_pod

    found = explain_pod(snapshot, about, profile="default-scheduler")
    assert found.outcome == "Scheduled"
    assert found.holding.scheduler is not None


def test_a_scheduler_that_nobody_knows() -> None:
    with pytest.raises(ConfigError, match="profile not found"):
        told(node("n"), about=pod(gates=(), labels={}, schedulerName="defualt-scheduler"))


GANGS = {"GenericWorkload": True, "GangScheduling": True}


def pod_group(min_count: int, **fields: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}, **fields}
    metadata = {"name": "g", "namespace": "ml"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, *, gates: tuple[str, ...] = (), **fields: Any) -> Json:
    return pod(name, gates=gates, schedulingGroup={"podGroupName": "g"}, **fields)


@pytest.mark.parametrize(
    ("objects", "together", "lacking"),
    [
        ((node("a"), node("b")), 3, {}),
        ((node("a"),), 2, {"ml/m-2": ["1 Insufficient cpu"]}),
        ((node("a", cpu="4"),), 1, {"ml/m-1": ["1 Insufficient cpu"], "ml/m-2": ["1 Insufficient cpu"]}),
    ],
    ids=["room for all", "none for one", "room for one"],
)
def test_a_group_is_placed_as_a_whole(objects: tuple[Json, ...], together: int, lacking: Json) -> None:
    about, *others = (member(f"m-{number}") for number in range(3))
    snapshot = kschedx.Snapshot.from_objects([*objects, *others, pod_group(3)])
    found = kschedx.explain(snapshot, about, feature_gates=GANGS)
    group = found.holding.group
    assert group is not None
    assert (group.pods, group.together, group.lacks_room) == (3, together, bool(lacking))
    assert {one.pod: list(one.reasons) for one in group.waiting if not one.node} == lacking
    assert found.outcome == "Scheduled"
    assert found.overall == ("Unschedulable" if lacking else "Scheduled")
    words = (
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked "
    )
    assert group.message == (f"{words}to wait and no plugin rejected pod" if lacking else "")


@pytest.mark.parametrize(("priority", "is_open"), [(0, True), (100, False)])
def test_whether_pods_go_for_a_group_as_a_whole_is_not_known(priority: int, is_open: bool) -> None:
    gates = {**GANGS, "WorkloadAwarePreemption": True}
    other = pod("other", cpu="4", gates=(), labels={}, nodeName="a", priority=priority)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), other, *members, pod_group(2)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=gates).holding.group
    assert group is not None
    assert (group.may_evict_as_a_whole, group.together) == (is_open, None if is_open else 1)


def test_room_that_depends_on_the_draw_among_nodes_that_tie() -> None:
    """The first pod fits both nodes alike, the second, which can use the first node alone, not beside it."""
    nodes = node("a", cpu="4", zone="z"), node("b", cpu="4", zone="y")
    about, other = member("m-0"), member("m-1", nodeSelector={"zone": "z"})
    snapshot = kschedx.Snapshot.from_objects([*nodes, other, pod_group(2)])
    found = kschedx.explain(snapshot, about, feature_gates=GANGS)
    group = found.holding.group
    assert group is not None
    assert (group.together, group.is_by_draw, group.lacks_room) == (2, True, False)
    assert found.overall == "Scheduled"


@pytest.mark.parametrize(("taken", "evicts"), [("4", [0, 1]), ("6", [1, 0])])
def test_a_group_that_needs_preemption_has_room(taken: str, evicts: list[int]) -> None:
    victim = pod("low", cpu=taken, gates=(), labels={}, nodeName="a", priority=0)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), victim, *members, pod_group(2)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=GANGS).holding.group
    assert group is not None
    assert ([one.evicts for one in group.waiting], group.lacks_room) == (evicts, False)


def test_who_is_gated_or_missing_is_told_before_room() -> None:
    others = [member("m-1"), member("m-2", gates=("example.com/quota",))]
    group = told(node("a"), *others, pod_group(4), about=member("m-0"), feature_gates=GANGS)["group"]
    assert (group["pods"], group["minCount"], group["together"]) == (3, 4, 2)
    assert group["waiting"][2]["gates"] == ["example.com/quota"]


@pytest.mark.parametrize(
    "fields",
    [{"gates": None}, {"constraints": {"topology": [{"key": "zone"}]}}],
    ids=["gates off", "placements by topology"],
)
def test_a_group_that_is_not_known_as_a_whole(fields: Json) -> None:
    constraints = {"schedulingConstraints": fields["constraints"]} if "constraints" in fields else {}
    options: Json = {} if "gates" in fields else {"feature_gates": GANGS}
    snapshot = kschedx.Snapshot.from_objects([node("a"), member("m-1"), member("m-2"), pod_group(3, **constraints)])
    found = kschedx.explain(snapshot, member("m-0"), **options)
    group = found.holding.group
    assert group is not None
    assert (group.is_heeded, group.together) == ("gates" not in fields, None)
    assert found.overall == "Scheduled"
    assert [one.feasible for one in group.waiting] == [1, 1, 1]

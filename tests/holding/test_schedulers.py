"""Whose gates a pod has, and what other schedulers say of theirs."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from tests import command
from tests.holding.objects import Json, node, pod, reported, told


def test_whose_a_gate_is() -> None:
    texts = told(node("n"), about=pod(gates=("scheduling.volcano.sh/queue", "acme.io/license"), labels={}))
    assert [(gate["name"], gate.get("owner")) for gate in texts["gates"]] == [
        ("scheduling.volcano.sh/queue", "Volcano"),
        ("acme.io/license", None),
    ]


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
    texts = told(node("n"), about=pod(gates=(), labels=labels, schedulerName=name))["scheduler"]
    assert (texts.get("queue", ""), texts.get("application", "")) == (queue, application)


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
    texts = told(node("n"), volcano_group(phase="Inqueue"), about=about)
    assert texts["outcome"] == "Undecided"
    assert texts["scheduler"]["group"] == "ml/g"
    assert (texts["scheduler"]["phase"], texts["scheduler"]["minMember"]) == ("Inqueue", 3)


def test_why_volcano_does_not_enqueue_a_group_is_in_its_event() -> None:
    about = pod(gates=(), labels={}, schedulerName="volcano")
    about["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    text = "queue resource quota insufficient"
    event = reported("PodGroup", "g", "Unschedulable", text, by="volcano")
    for phase, expected in (("Pending", [text]), ("Running", [])):
        scheduler = told(node("n"), volcano_group(phase=phase), event, about=about)["scheduler"]
        assert [said["message"] for said in scheduler.get("said", ())] == expected


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        (
            "Pod not supported on Fargate: invalid SecurityContext fields: Privileged",
            [
                (
                    "run the pod on EC2 nodes (annotation eks.amazonaws.com/compute-type: ec2 in its template), "
                    "or remove what Fargate does not support"
                )
            ],
        ),
        ("Your AWS account is currently blocked from launching new Fargate pods", []),
    ],
)
def test_a_fargate_profile_has_selected_a_pod_with_its_scheduler(text: str, fixes: list[str]) -> None:
    virtual = node("n", **{"eks.amazonaws.com/compute-type": "fargate"})
    about = pod(gates=(), labels={}, schedulerName="fargate-scheduler")
    event = reported("Pod", "p", "FailedScheduling", text, by="fargate-scheduler")
    assert [fix["title"] for fix in told(virtual, event, about, about=about)["fixes"]] == fixes


@pytest.mark.parametrize(
    ("cpu", "text", "outcome"),
    [
        ("9", "0/1 nodes are available: 1 Insufficient cpu.", "Unschedulable"),
        ("1", "0/1 nodes are available: 1 Insufficient cpu.", "Undecided"),
        ("9", "no room in the queue", "Undecided"),
    ],
)
def test_a_second_kube_scheduler_has_the_filters_of_the_first(cpu: str, text: str, outcome: str) -> None:
    about = pod(cpu=cpu, gates=(), labels={}, schedulerName="gke.io/optimize-utilization-scheduler")
    event = reported("Pod", "p", "FailedScheduling", text, by="gke.io/optimize-utilization-scheduler")
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), about, event]), "ml/p")
    assert explanation.outcome == outcome
    assert any(note.id == "second-scheduler" for note in explanation.notes) is (outcome == "Unschedulable")


@pytest.mark.parametrize(
    ("state", "capability", "fix"),
    [
        ("Open", {"cpu": "4"}, "raise spec.capability.cpu of Queue q from 4 to 7"),
        ("Open", {"cpu": "40"}, None),
        ("Closed", {}, "open Queue q"),
    ],
)
def test_a_queue_of_volcano_that_is_full_or_closed(state: str, capability: Json, fix: str | None) -> None:
    about = pod(gates=(), labels={}, schedulerName="volcano")
    about["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"capability": capability},
        "status": {"state": state, "allocated": {"cpu": "3"}},
    }
    texts = told(node("n"), volcano_group(phase="Pending"), queue, about=about)
    assert [item["title"] for item in texts["fixes"]] == ([] if fix is None else [fix])


@pytest.mark.parametrize(
    ("known", "fix"),
    [
        ("research", "use Queue research instead of reserach in PodGroup ml/g and its owner"),
        ("batch", "create Queue reserach, or use batch"),
    ],
)
def test_a_queue_of_volcano_that_does_not_exist(known: str, fix: str) -> None:
    about = pod(gates=(), labels={}, schedulerName="volcano")
    about["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": known}}
    group = volcano_group(phase="Pending")
    group["spec"] = {**group["spec"], "queue": "reserach"}
    texts = told(node("n"), group, queue, about=about)
    assert [item["title"] for item in texts["fixes"]] == [fix]
    assert texts["scheduler"]["knownQueues"] == [known]


KAI = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}


def kai_queue(name: str, parent: str = "", **resources: Json) -> Json:
    status = {"allocated": {"cpu": "3500m", "memory": "1Gi", "nvidia.com/gpu": "1500m"}, "requested": {"cpu": "4"}}
    spec = {"parentQueue": parent, "resources": resources}
    return {**KAI, "metadata": {"name": name}, "spec": spec, "status": status}


def test_kais_queues_up_to_the_root() -> None:
    child = kai_queue("q", "top", cpu={"quota": 2500, "limit": -1}, gpu={"quota": 0.5, "limit": 2})
    about = pod(gates=(), labels={"kai.scheduler/queue": "q"}, schedulerName="kai-scheduler")
    texts = told(node("n"), child, kai_queue("top", "q", memory={"quota": 1, "limit": 2}), about=about)["scheduler"]
    assert texts["queueShares"] == [
        {"resource": "cpu", "allocated": 3500, "requested": 4000, "deserved": 2500, "isInThousandths": False},
        {
            "resource": "nvidia.com/gpu", "allocated": 1500, "requested": 0, "capability": 2000, "deserved": 500,
            "isInThousandths": True,
        },
    ]  # fmt: skip
    above = texts["queuesAbove"]
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
    texts = told(node("n"), {**group, "apiVersion": "scheduling.run.ai/v2alpha2"}, about=about)["scheduler"]
    assert [(said["type"], said.get("reason"), said.get("message")) for said in texts["said"]] == [
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
    texts = told(node("n"), *quotas, about=about)["scheduler"]
    above = [queue["name"] for queue in texts.get("queuesAbove", [])]
    assert [name for name in (texts.get("queue") if texts.get("queueShares") else None, *above) if name] == chain


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
    texts = told(
        node("n"),
        reservation("by-label", {"labelSelector": {"matchLabels": {"app": "w"}}}),
        reservation("by-name", {"object": {"namespace": "ml", "name": "w"}}),
        reservation("by-controller", {"controller": {"kind": "Job", "name": "j"}}),
        reservation("of-another", {"object": {"name": "v"}}, {"labelSelector": {"matchLabels": {"app": "v"}}}, {}),
        reservation("not-all", {"object": {"name": "w"}, "controller": {"name": "k"}}),
        move,
        about=about,
    )["scheduler"]
    assert [room["name"] for room in texts["rooms"]] == ["by-controller", "by-label", "by-name"]
    assert texts["said"] == [
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
    texts = told(node("n"), config, about=about)["scheduler"]
    assert "queueShares" not in texts


def test_kube_schedulers_view_is_told_where_somebody_asks_for_it() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("n")])
    about = pod(gates=(), labels={}, schedulerName="volcano")
    from tests.builders import explain_pod

    explanation = explain_pod(snapshot, about, profile="default-scheduler")
    assert explanation.outcome == "Scheduled"
    assert explanation.holding.scheduler is not None


def test_a_scheduler_that_nobody_knows() -> None:
    about = pod(gates=(), labels={}, schedulerName="defualt-scheduler")
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n")]), about)
    assert (explanation.state.name, explanation.exit_code, explanation.fixes[0].title) == (
        "NoScheduler",
        3,
        "set schedulerName to default-scheduler",
    )


@pytest.mark.parametrize(
    "register",
    [
        "GPU-1,10,24576,100,NVIDIA-A10,0,true:GPU-2,10,24576,100,NVIDIA-A10,0,false:",
        '[{"id":"GPU-1","count":10,"devmem":24576,"devcore":100,"health":true},{"id":"GPU-2","devmem":24576}]',
    ],
)
def test_a_pod_of_hami(register: str) -> None:
    about = pod(gates=(), labels={}, schedulerName="hami-scheduler")
    about["metadata"]["annotations"] = {"hami.io/bind-phase": "failed", "hami.io/other": "x"}
    about["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "30000"}}
    host = node("n")
    host["metadata"]["annotations"] = {"hami.io/node-nvidia-register": register, "hami.io/node-mlu-register": "broken"}
    texts = told(host, about=about)["scheduler"]
    assert texts["title"] == "HAMi"
    assert ("hami.io/bind-phase", "failed") in [(item["type"], item["status"]) for item in texts["said"]]
    memory = {"memory": 24576, "requested": 30000, "fitting": 0}
    assert texts["shared"] == [{"node": "n", "kind": "nvidia", "devices": 2, "healthy": 1, **memory}]


@pytest.mark.parametrize(("limits", "fitting"), [({"gpumem": "8192"}, 2), ({"gpumem": "8193"}, 1), ({}, 1)])
def test_memory_that_hami_gave_to_other_pods_is_not_free(limits: Json, fitting: int) -> None:
    """A pod without `gpumem` takes all memory of its devices."""
    about = pod(gates=(), labels={}, schedulerName="hami-scheduler")
    amounts = {"gpu": "2", **limits}
    about["spec"]["containers"][0]["resources"] = {
        "limits": {f"nvidia.com/{key}": item for key, item in amounts.items()}
    }
    host = node("n")
    register = "GPU-1,10,16384,100,T4,0,true:GPU-2,10,16384,100,T4,0,true:"
    host["metadata"]["annotations"] = {"hami.io/node-nvidia-register": register}
    running = [pod(f"old-{phase}", gates=(), labels={}, nodeName="n") for phase in ("Running", "Succeeded")]
    for item, phase in zip(running, ("Running", "Succeeded"), strict=True):
        item["metadata"]["annotations"] = {
            "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,4096,30:;GPU-1,NVIDIA,4096,30:;"
        }
        item["status"] = {"phase": phase}
    (result,) = told(host, *running, about=about)["scheduler"]["shared"]
    assert result["fitting"] == fitting


def test_the_status_of_a_volcano_group_is_quoted_for_all_pending_pods() -> None:
    cluster = command.ROOT / "fixtures" / "volcano-job" / "cluster.yaml"
    ran = command.kschedx("why", "--all-pending", "-s", cluster, columns=400)
    assert ran.code == 3
    assert "its group hpc/mpi-run-1 is Inqueue: 4/4 tasks in gang unschedulable" in ran.out

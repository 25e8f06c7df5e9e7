"""Owners of scheduling gates, and what other schedulers report about their pods."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from kschedx.controllers.states import NoScheduler
from kschedx.holding.headlines import scheduler_report
from tests import command
from tests.holding.objects import Json, event_about, holding_of, node, pod


def test_the_owner_of_a_scheduling_gate() -> None:
    texts = holding_of(node("n"), target=pod(gates=("scheduling.volcano.sh/queue", "acme.io/license"), labels={}))
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
def test_labels_for_other_schedulers(name: str, labels: Json, queue: str, application: str) -> None:
    texts = holding_of(node("n"), target=pod(gates=(), labels=labels, schedulerName=name))["scheduler"]
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
    target = pod(gates=(), labels={}, schedulerName="volcano")
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    texts = holding_of(node("n"), volcano_group(phase="Inqueue"), target=target)
    assert texts["outcome"] == "Undecided"
    assert texts["scheduler"]["group"] == "ml/g"
    assert (texts["scheduler"]["phase"], texts["scheduler"]["minMember"]) == ("Inqueue", 3)


@pytest.mark.parametrize(("name", "is_ignored"), [("default-scheduler", True), ("volcano", False)])
def test_a_group_of_volcano_with_another_scheduler_is_ignored(name: str, is_ignored: bool) -> None:
    target = pod(gates=(), labels={}, schedulerName=name)
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    answer = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), volcano_group()]), target)
    ignored = f"PodGroup g has no effect with schedulerName {name}: each pod is scheduled alone"
    assert (ignored in [note.text for note in answer.notes]) is is_ignored


def test_the_event_of_a_group_that_volcano_does_not_enqueue() -> None:
    target = pod(gates=(), labels={}, schedulerName="volcano")
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    text = "queue resource quota insufficient"
    event = event_about("PodGroup", "g", "Unschedulable", text, component="volcano")
    for phase, expected in (("Pending", [text]), ("Running", [])):
        scheduler = holding_of(node("n"), volcano_group(phase=phase), event, target=target)["scheduler"]
        assert [message["message"] for message in scheduler.get("said", ())] == expected


@pytest.mark.parametrize(
    ("name", "others", "is_absent"),
    [
        ("volcano", ("kube-proxy",), True),
        ("volcano", (), False),
        ("volcano", ("kube-proxy", "volcano-scheduler-1"), False),
        ("volcano", ("kube-proxy", "namespace"), False),
        ("fargate-scheduler", ("kube-proxy",), False),
    ],
)
def test_a_scheduler_that_is_not_installed(name: str, others: tuple[str, ...], *, is_absent: bool) -> None:
    """Without a pod of the system, the snapshot may hold one namespace. A namespace may have pods that a dump lacks."""
    system = [pod(other, gates=(), labels={}, nodeName="n") for other in others if other != "namespace"]
    for each in system:
        each["metadata"]["namespace"] = "kube-system"
    if "namespace" in others:
        system.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}})
    texts = holding_of(node("n"), *system, target=pod(gates=(), labels={}, schedulerName=name))
    assert texts["scheduler"].get("isAbsent", False) == is_absent
    title = "install Volcano, or create the pod with schedulerName default-scheduler"
    assert [fix["title"] for fix in texts["fixes"]] == ([title] if is_absent else [])


def test_a_scheduler_that_reports_about_the_pod_is_installed() -> None:
    target = pod(gates=(), labels={}, schedulerName="kai-scheduler")
    system = pod("kube-proxy", gates=(), labels={}, nodeName="n")
    system["metadata"]["namespace"] = "kube-system"
    text = "OverLimit: team has reached the allowable limit of CPU"
    event = event_about("Pod", target["metadata"]["name"], "Unschedulable", text, component="kai-scheduler")
    scheduler = holding_of(node("n"), system, target, event, target=target)["scheduler"]
    assert ([each["message"] for each in scheduler["said"]], scheduler.get("isAbsent", False)) == ([text], False)


@pytest.mark.parametrize(
    ("pods", "phase", "has_fix"), [(2, "Inqueue", True), (2, "Pending", False), (3, "Inqueue", False)]
)
def test_a_group_of_volcano_that_never_has_all_pods(pods: int, phase: str, *, has_fix: bool) -> None:
    """Volcano creates the pods of a Job once its group is no longer Pending."""
    members = [pod(f"p{number}", gates=(), labels={}, schedulerName="volcano") for number in range(pods)]
    for member in members:
        member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    fixes = holding_of(node("n"), volcano_group(phase=phase), *members, target=members[0])["fixes"]
    title = "create 1 more pod of group ml/g, or lower its minMember from 3 to 2"
    assert [fix["title"] for fix in fixes] == ([title] if has_fix else [])


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
def test_a_pod_of_a_fargate_profile(text: str, fixes: list[str]) -> None:
    fargate_node = node("n", **{"eks.amazonaws.com/compute-type": "fargate"})
    target = pod(gates=(), labels={}, schedulerName="fargate-scheduler")
    event = event_about("Pod", "p", "FailedScheduling", text, component="fargate-scheduler")
    assert [fix["title"] for fix in holding_of(fargate_node, event, target, target=target)["fixes"]] == fixes


@pytest.mark.parametrize(
    ("name", "cpu", "text", "outcome"),
    [
        ("second", "9", "0/1 nodes are available: 1 Insufficient cpu.", "Unschedulable"),
        ("second", "1", "0/1 nodes are available: 1 Insufficient cpu.", "Undecided"),
        ("second", "9", "no room in the queue", "Undecided"),
        ("gke.io/optimize-utilization-scheduler", "9", "no room in the queue", "Unschedulable"),
        ("gke.io/optimize-utilization-scheduler", "1", "no room in the queue", "Undecided"),
    ],
)
def test_a_second_kube_scheduler_is_answered_by_its_event(name: str, cpu: str, text: str, outcome: str) -> None:
    target = pod(cpu=cpu, gates=(), labels={}, schedulerName=name)
    event = event_about("Pod", "p", "FailedScheduling", text, component=name)
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), target, event]), "ml/p")
    assert explanation.outcome == outcome
    assert any(note.id == "second-scheduler" for note in explanation.notes) is (outcome == "Unschedulable")


@pytest.mark.parametrize(
    ("cpu", "text", "outcome"),
    [
        ("9", "0/1 nodes are available: 1 Insufficient cpu.", "Unschedulable"),
        ("1", "0/1 nodes are available: 1 Insufficient cpu.", "Undecided"),
        ("9", "no room in the queue", "Undecided"),
    ],
)
def test_a_daemon_set_of_a_second_kube_scheduler_is_answered_by_an_event_of_its_pods(
    cpu: str, text: str, outcome: str
) -> None:
    target = pod(cpu=cpu, gates=(), labels={"app": "agent"}, schedulerName="second")
    target["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": dict(target["spec"])}
    target["spec"] = {**target["spec"], "affinity": {"nodeAffinity": required}}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "ml", "uid": "u"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
    event = event_about("Pod", "p", "FailedScheduling", text, component="second")
    cluster = kschedx.Snapshot.from_objects([node("n"), daemon_set, target, event])
    answer = kschedx.explain_daemon_set(cluster, "ml/ds/agent")
    assert answer.outcome == outcome
    assert ("its filters are taken from profile" in str(answer)) is (outcome == "Unschedulable")


@pytest.mark.parametrize(
    ("state", "capability", "fix"),
    [
        ("Open", {"cpu": "4"}, "raise spec.capability.cpu of Queue q from 4 to 15"),
        ("Open", {"cpu": "40"}, None),
        ("Closed", {}, "open Queue q"),
    ],
)
def test_a_full_or_closed_volcano_queue(state: str, capability: Json, fix: str | None) -> None:
    target = pod(gates=(), labels={}, schedulerName="volcano")
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"capability": capability},
        "status": {"state": state, "allocated": {"cpu": "3"}},
    }
    texts = holding_of(node("n"), volcano_group(phase="Pending"), queue, target=target)
    assert [item["title"] for item in texts["fixes"]] == ([] if fix is None else [fix])


@pytest.mark.parametrize(
    ("phase", "queue", "own", "fixes"),
    [
        ("Inqueue", "q", "Pending", ["let ml/big run, or delete what made it: Queue q counts 12 cpu", "raise"]),
        ("Inqueue", "q", "Inqueue", []),
        ("Running", "q", "Pending", []),
        ("Inqueue", "other", "Pending", []),
    ],
)
def test_volcano_counts_groups_that_are_enqueued_and_do_not_run(
    phase: str, queue: str, own: str, fixes: list[str]
) -> None:
    target = pod(gates=(), labels={}, schedulerName="volcano")
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    full = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"capability": {"cpu": "20"}},
        "status": {"state": "Open", "allocated": {"cpu": "3"}},
    }
    big = {
        **volcano_group(phase=phase),
        "metadata": {"name": "big", "namespace": "ml"},
        "spec": {"minMember": 1, "queue": queue, "minResources": {"cpu": "12", "pods": "1"}},
    }
    texts = holding_of(node("n"), volcano_group(phase=own), big, full, target=target)
    titles = [item["title"] for item in texts["fixes"]]
    assert len(titles) == len(fixes)
    assert all(map(str.startswith, titles, fixes))


@pytest.mark.parametrize(
    ("known", "fix"),
    [
        ("research", "use Queue research instead of reserach in PodGroup ml/g and its owner"),
        ("batch", "create Queue reserach, or use batch"),
    ],
)
def test_a_missing_volcano_queue(known: str, fix: str) -> None:
    target = pod(gates=(), labels={}, schedulerName="volcano")
    target["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": known}}
    group = volcano_group(phase="Pending")
    group["spec"] = {**group["spec"], "queue": "reserach"}
    texts = holding_of(node("n"), group, queue, target=target)
    assert [item["title"] for item in texts["fixes"]] == [fix]
    assert texts["scheduler"]["knownQueues"] == [known]


KAI = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}


def kai_queue(name: str, parent: str = "", **resources: Json) -> Json:
    status = {"allocated": {"cpu": "3500m", "memory": "1Gi", "nvidia.com/gpu": "1500m"}, "requested": {"cpu": "4"}}
    spec = {"parentQueue": parent, "resources": resources}
    return {**KAI, "metadata": {"name": name}, "spec": spec, "status": status}


def test_kai_queues_up_to_the_root() -> None:
    child = kai_queue("q", "top", cpu={"quota": 2500, "limit": -1}, gpu={"quota": 0.5, "limit": 2})
    target = pod(gates=(), labels={"kai.scheduler/queue": "q"}, schedulerName="kai-scheduler")
    texts = holding_of(node("n"), child, kai_queue("top", "q", memory={"quota": 1, "limit": 2}), target=target)[
        "scheduler"
    ]
    assert texts["queueShares"] == [
        {"resource": "cpu", "allocated": 3500, "requested": 4000, "deserved": 2500, "isInThousandths": False},
        {
            "resource": "nvidia.com/gpu", "allocated": 1500, "requested": 0, "capability": 2000, "deserved": 500,
            "isInThousandths": True,
        },
    ]  # fmt: skip
    parents = texts["queuesAbove"]
    assert [queue["name"] for queue in parents[:2]] == ["top", "q"], "a cycle ends"
    assert parents[0]["shares"][0]["capability"] == 2_000_000
    assert len(parents) < 20


def test_reasons_of_kai() -> None:
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
    target = pod(gates=(), labels={}, schedulerName="kai-scheduler")
    target["metadata"]["annotations"] = {"pod-group-name": "g"}
    texts = holding_of(node("n"), {**group, "apiVersion": "scheduling.run.ai/v2alpha2"}, target=target)["scheduler"]
    assert [(message["type"], message.get("reason"), message.get("message")) for message in texts["said"]] == [
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
def test_the_koordinator_quota_of_a_pod(labels: Json, quotas: list[Json], chain: list[str]) -> None:
    target = pod(gates=(), labels=labels, schedulerName="koord-scheduler")
    texts = holding_of(node("n"), *quotas, target=target)["scheduler"]
    parents = [queue["name"] for queue in texts.get("queuesAbove", [])]
    assert [name for name in (texts.get("queue") if texts.get("queueShares") else None, *parents) if name] == chain


def test_the_runtime_of_a_koordinator_quota() -> None:
    target = pod(gates=(), labels={f"{QUOTA}/name": "a"}, schedulerName="koord-scheduler")
    (share,) = holding_of(node("n"), quota("a", runtime='{"cpu": "5"}'), target=target)["scheduler"]["queueShares"]
    assert share == {
        "resource": "cpu", "allocated": 3000, "capability": 8000, "deserved": 5000, "isInThousandths": False
    }  # fmt: skip


def test_reservations_and_migrations_of_koordinator() -> None:
    base = {"apiVersion": "scheduling.koordinator.sh/v1alpha1"}

    def reservation(name: str, *owners: Json) -> Json:
        status = {"phase": "Available", "nodeName": "n"}
        return {**base, "kind": "Reservation", "metadata": {"name": name}, "spec": {"owners": owners}, "status": status}

    target = pod("w", gates=(), labels={"app": "w"}, schedulerName="koord-scheduler")
    target["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "7", "controller": True}]
    migration = {
        **base, "kind": "PodMigrationJob", "metadata": {"name": "m"},
        "spec": {"podRef": {"namespace": "ml", "name": "w"}},
        "status": {"phase": "Running", "reason": "Evicting", "message": "soon"},
    }  # fmt: skip
    texts = holding_of(
        node("n"),
        reservation("by-label", {"labelSelector": {"matchLabels": {"app": "w"}}}),
        reservation("by-name", {"object": {"namespace": "ml", "name": "w"}}),
        reservation("by-controller", {"controller": {"kind": "Job", "name": "j"}}),
        reservation("of-another", {"object": {"name": "v"}}, {"labelSelector": {"matchLabels": {"app": "v"}}}, {}),
        reservation("not-all", {"object": {"name": "w"}, "controller": {"name": "k"}}),
        migration,
        target=target,
    )["scheduler"]
    assert [reservation["name"] for reservation in texts["rooms"]] == ["by-controller", "by-label", "by-name"]
    assert texts["said"] == [
        {"type": "PodMigrationJob m", "status": "Running", "reason": "Evicting", "message": "soon"}
    ]


@pytest.mark.parametrize(
    "queues", ["- 1", "a: [", "partitions: 7", "partitions: [{queues: [{name: root, queues: 1}]}]"]
)
def test_invalid_yunikorn_queues(queues: str) -> None:
    config = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs", "namespace": "y"},
        "data": {"queues.yaml": queues},
    }  # fmt: skip
    target = pod(gates=(), labels={"queue": "root.a"}, schedulerName="yunikorn")
    texts = holding_of(node("n"), config, target=target)["scheduler"]
    assert "queueShares" not in texts


@pytest.mark.parametrize(
    ("labels", "used", "fixes"),
    [
        (
            [{"queue": "root.a"}, {"queue": "root.ab"}],
            [5000, 10000],
            ["raise resources.max.vcore of queue root.a from 6 to 9 in ConfigMap yunikorn-configs"],
        ),
        ([{"queue": "a.b"}, {"queue": "other"}], [5000, 10000], ["raise resources.max.vcore of queue root.a from 6"]),
        ([{"queue": "other"}, {"queue": "root.c"}], [0, 10000], []),
        ([{"queue": "root.a"}, {}], [None, None], []),
    ],
)
def test_pods_on_nodes_use_the_queues_of_yunikorn(labels: list[Json], used: list[int | None], fixes: list[str]) -> None:
    of_a = "queues: [{name: a, resources: {max: {vcore: 6}}}]"
    queues = f"partitions: [{{queues: [{{name: root, resources: {{max: {{vcore: 40}}}}, {of_a}}}]}}]"
    config = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs", "namespace": "y"},
        "data": {"queues.yaml": queues},
    }  # fmt: skip
    target = pod(gates=(), labels={"queue": "root.a"}, schedulerName="yunikorn")
    cpu = {"requests": {"cpu": "5"}}
    running = [
        pod(f"r{number}", gates=(), labels=marks, schedulerName="yunikorn", nodeName="n")
        for number, marks in enumerate(labels)
    ]
    for each in running:
        each["spec"]["containers"][0]["resources"] = cpu
    answer = holding_of(node("n"), config, *running, target=target)
    scheduler = answer["scheduler"]
    shares = [scheduler["queueShares"], *(queue["shares"] for queue in scheduler["queuesAbove"])]
    assert [share[0].get("allocated") for share in shares] == used
    titles = [item["title"] for item in answer["fixes"]]
    assert len(titles) == len(fixes)
    assert all(map(str.startswith, titles, fixes))


@pytest.mark.parametrize(("by", "is_shown"), [("yunikorn", True), ("other", False)])
def test_events_of_yunikorn(by: str, is_shown: bool) -> None:
    target = pod(gates=(), labels={"applicationId": "a"}, schedulerName="yunikorn")
    about = {"kind": "Pod", **{key: target["metadata"][key] for key in ("name", "namespace")}}
    message = "Request 'x' does not fit in queue 'root.a' (requested map[vcore:2000], available map[vcore:1000])"
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": about["namespace"]},
        "reason": "Informational", "involvedObject": about, "message": message, "source": {"component": by},
    }  # fmt: skip
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), target, event]), f"ml/{about['name']}")
    assert (f"Informational: {message}" in " ".join(str(explanation).split())) == is_shown


def test_the_option_profile_shows_kube_schedulers_answer() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("n")])
    target = pod(gates=(), labels={}, schedulerName="volcano")
    from tests.builders import explain_pod

    explanation = explain_pod(snapshot, target, profile="default-scheduler")
    assert explanation.outcome == "Scheduled"
    assert explanation.holding.scheduler is not None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("defualt-scheduler", "default-scheduler"),
        ("vocalno", "volcano"),
        ("volcano-scheduler", "volcano"),
        ("mine", "default-scheduler"),
    ],
)
def test_an_unknown_scheduler(name: str, meant: str) -> None:
    target = pod(gates=(), labels={}, schedulerName=name)
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n")]), target)
    assert (explanation.state.name, explanation.exit_code, explanation.fixes[0].title) == (
        "NoScheduler",
        3,
        f"set schedulerName to {meant}",
    )


def test_a_list_says_that_no_pod_of_the_scheduler_is_known() -> None:
    control_plane = pod(gates=(), labels={}, nodeName="n") | {"metadata": {"name": "x", "namespace": "kube-system"}}
    target = pod(gates=(), labels={}, schedulerName="volcano")
    answer = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), control_plane]), target)
    assert scheduler_report(answer.holding) == ", and no pod of Volcano is known"


def test_a_name_that_only_ends_like_another_scheduler_is_not_taken_for_it() -> None:
    target = pod(gates=(), labels={}, schedulerName="batch-scheduler")
    state = kschedx.explain(kschedx.Snapshot.from_objects([node("n")]), target).lifecycle
    assert isinstance(state, NoScheduler)
    assert state.hint == ""


REJECTED = {"phase": "Failed", "reason": "ApplicationRejected", "message": "no placement rule matched"}
PULLING = {"name": "c", "image": "i", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}


@pytest.mark.parametrize("scheduler", ["yunikorn", "mine"])
@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"status": REJECTED}, "Failed"),
        ({"status": {"phase": "Pending", "containerStatuses": [PULLING]}, "on": "n"}, "WaitingForKubelet"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}, "BeingDeleted"),
        ({"status": {"phase": "Pending"}}, ""),
    ],
    ids=["failed", "pulling its image", "being deleted", "pending"],
)
def test_a_pod_of_another_scheduler_that_waits_for_something_else(scheduler: str, fields: Json, state: str) -> None:
    target = pod(gates=(), labels={}, schedulerName=scheduler) | {"status": fields.get("status", {})}
    target["metadata"] |= fields.get("metadata", {})
    target["spec"] |= {"nodeName": fields["on"]} if "on" in fields else {}
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), target]), "ml/p")
    assert explanation.state.name == state or not state
    assert (explanation.exit_code == 3) is (not state)
    assert "delete Job" not in " ".join(fix.title for fix in explanation.fixes)


@pytest.mark.parametrize(
    "registration",
    [
        "GPU-1,10,24576,100,NVIDIA-A10,0,true:GPU-2,10,24576,100,NVIDIA-A10,0,false:",
        '[{"id":"GPU-1","count":10,"devmem":24576,"devcore":100,"health":true},{"id":"GPU-2","devmem":24576}]',
    ],
)
def test_a_pod_of_hami(registration: str) -> None:
    target = pod(gates=(), labels={}, schedulerName="hami-scheduler")
    target["metadata"]["annotations"] = {"hami.io/bind-phase": "failed", "hami.io/other": "x"}
    target["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "30000"}}
    gpu_node = node("n")
    gpu_node["metadata"]["annotations"] = {
        "hami.io/node-nvidia-register": registration,
        "hami.io/node-mlu-register": "broken",
    }
    texts = holding_of(gpu_node, target=target)["scheduler"]
    assert texts["title"] == "HAMi"
    assert ("hami.io/bind-phase", "failed") in [(item["type"], item["status"]) for item in texts["said"]]
    memory = {"memory": 24576, "requested": 30000, "fitting": 0}
    assert texts["shared"] == [{"node": "n", "kind": "nvidia", "devices": 2, "healthy": 1, **memory}]


@pytest.mark.parametrize(("limits", "fitting"), [({"gpumem": "8192"}, 2), ({"gpumem": "8193"}, 1), ({}, 1)])
def test_hami_memory_of_other_pods_is_not_free(limits: Json, fitting: int) -> None:
    """A pod without `gpumem` gets all memory of its devices."""
    target = pod(gates=(), labels={}, schedulerName="hami-scheduler")
    amounts = {"gpu": "2", **limits}
    target["spec"]["containers"][0]["resources"] = {
        "limits": {f"nvidia.com/{key}": item for key, item in amounts.items()}
    }
    gpu_node = node("n")
    registration = "GPU-1,10,16384,100,T4,0,true:GPU-2,10,16384,100,T4,0,true:"
    gpu_node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": registration}
    running = [pod(f"old-{phase}", gates=(), labels={}, nodeName="n") for phase in ("Running", "Succeeded")]
    for item, phase in zip(running, ("Running", "Succeeded"), strict=True):
        item["metadata"]["annotations"] = {
            "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,4096,30:;GPU-1,NVIDIA,4096,30:;"
        }
        item["status"] = {"phase": phase}
    (result,) = holding_of(gpu_node, *running, target=target)["scheduler"]["shared"]
    assert result["fitting"] == fitting


def test_why_all_pending_quotes_the_status_of_a_volcano_group() -> None:
    cluster = command.ROOT / "fixtures" / "volcano-job" / "cluster.yaml"
    answer = command.kschedx("why", "--all-pending", "-s", cluster, columns=400)
    assert answer.code == 3
    assert "its group hpc/mpi-run-1 is Inqueue: 4/4 tasks in gang unschedulable" in answer.out

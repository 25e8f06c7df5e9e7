"""`simulate` reports the same states as `why` if kube-scheduler does not decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, at, node, pod
from tests.command import kschedx

HOST = "kubernetes.io/hostname"
NODES = [node(name, labels={HOST: name}, allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}) for name in "ab"]
STRICT: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}
CONTAINERS = [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]


def workload(kind: str, version: str = "apps/v1", /, **spec: object) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": {"template": template, **spec}}


def cron_job(**spec: object) -> Manifest:
    job_template = {"spec": job()["spec"]}
    written = {"schedule": "* * * * *", "jobTemplate": job_template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"}, "spec": written}


def job(**spec: object) -> Manifest:
    return workload("Job", "batch/v1", template={"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}, **spec)


SELECTOR = {"matchLabels": {"app": "web"}}
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
NOWHERE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": CONTAINERS, "nodeSelector": {"disk": "ssd"}},
}
USES_A_CLAIM = pod("other", on="a", spec={"volumes": CLAIM}, status={"phase": "Running"})


@pytest.mark.parametrize(
    ("manifest", "code", "expected"),
    [
        (
            workload("Deployment", replicas=3, paused=True, selector=SELECTOR),
            1,
            "✗ default/deploy/web is paused: it has no ReplicaSet yet",
        ),
        (job(suspend=True, parallelism=3), 1, "✗ default/job/web is suspended: spec.suspend is true"),
        (cron_job(suspend=True), 1, "✗ default/cj/web is suspended: spec.suspend is true"),
        (
            pod("bare", namespace="strict", spec={"containers": CONTAINERS}),
            1,
            "✗ strict/bare is not created: Pod Security refuses the pod",
        ),
        (
            workload("CloneSet", "apps.kruise.io/v1alpha1", selector=SELECTOR)
            | {"metadata": {"name": "web", "namespace": "strict"}},
            1,
            "✗ strict/web-new is not created: Pod Security refuses the pod",
        ),
        (
            workload("DaemonSet", selector=SELECTOR) | {"metadata": {"name": "web", "namespace": "strict"}},
            1,
            "✗ strict/ds/web  0 of 2 assigned · 2 refused: ",
        ),
        (
            pod("alone", spec={"containers": CONTAINERS, "schedulerName": "default-schedulr"}),
            3,
            '? default/alone: no scheduler with the schedulerName "default-schedulr" is known',
        ),
        (
            pod("gated", spec={"containers": CONTAINERS, "schedulingGates": [{"name": "a.b/c"}]}),
            1,
            "‖ default/gated is gated by scheduling gate a.b/c",
        ),
        (
            workload("DaemonSet", selector=SELECTOR, template=NOWHERE),
            1,
            "✗ no pod is pending; 1 DaemonSet without an eligible node",
        ),
        (
            workload("DaemonSet", selector=SELECTOR, template=NOWHERE),
            1,
            "✗ default/ds/web selects no node\n  fix       stop requiring disk=ssd · fits a, b",
        ),
        (pod("claims", spec={"containers": CONTAINERS, "volumes": CLAIM}), 3, "? the pod is undecided"),
        (
            workload("Deployment", replicas=0, selector=SELECTOR),
            0,
            "‖ default/deploy/web is scaled to zero: spec.replicas is 0",
        ),
    ],
)  # fmt: skip
def test_a_state_has_the_headline_and_exit_code_of_why(
    manifest: Manifest, code: int, expected: str, tmp_path: Path
) -> None:
    cluster = {"kind": "List", "items": [*NODES, STRICT, USES_A_CLAIM]}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    where = ("-s", tmp_path / "cluster.json")
    simulated = kschedx("simulate", "--apply", tmp_path / "app.json", *where, columns=200)
    assert simulated.code == code, simulated.out + simulated.err
    assert expected in simulated.out
    assert kschedx("why", tmp_path / "app.json", *where).code == code
    document = json.loads(kschedx("simulate", "--apply", tmp_path / "app.json", *where, "-o", "json").out)
    headlines = [state["headline"] for state in document["states"]]
    assert all(headline in simulated.out for headline in headlines)


def test_a_stateful_set_whose_first_pod_is_pending_has_no_second_one(tmp_path: Path) -> None:
    big = [{"name": "main", "image": "db:1", "resources": {"requests": {"cpu": "9"}}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": big}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    manifest = workload("StatefulSet", replicas=3, selector=SELECTOR, template=template)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    result = kschedx("simulate", "-f", tmp_path / "app.json", "-s", tmp_path / "cluster.json", columns=200)
    assert (
        "✗ default/sts/web  pending: 2 nodes lack 5 CPU each · 2 not created before the others are ready" in result.out
    )
    assert "add 3 nodes each with at least 9 CPU free · for all 3" in " ".join(result.out.split())


@pytest.mark.parametrize(("cpu", "code"), [("2", 0), ("3", 1)])
def test_a_node_name_in_the_template_binds_every_replica(cpu: str, code: int, tmp_path: Path) -> None:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, "nodeName": "a"}}
    manifest = workload("Deployment", replicas=2, selector=SELECTOR, template=template)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    result = kschedx("simulate", "-f", tmp_path / "app.json", "-s", tmp_path / "cluster.json", columns=200)
    assert (result.code, "the kubelet of a rejects them: OutOfcpu" in result.out) == (code, bool(code))
    assert ("remove nodeName from the pod template" in result.out) == bool(code)


def test_a_kubelet_runs_pods_whatever_their_scheduler(tmp_path: Path) -> None:
    spec = {"containers": CONTAINERS, "nodeName": "a", "schedulerName": "mine"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    manifest = workload("Deployment", replicas=5, selector=SELECTOR, template=template)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    result = kschedx("simulate", "-f", tmp_path / "app.json", "-s", tmp_path / "cluster.json", columns=200)
    assert (result.code, "the kubelet of a rejects them: OutOfcpu" in result.out) == (1, True), result


@pytest.mark.parametrize(("field", "name"), [("priorityClassName", "gone"), ("runtimeClassName", "gone")])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_the_pods_of_every_kind_are_admitted(kind: str, field: str, name: str, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS, field: name}}
    more = {"serviceName": "web"} if kind == "StatefulSet" else {}
    manifest = workload(kind, replicas=2, selector=SELECTOR, template=template, **more)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    result = kschedx("simulate", "-f", tmp_path / "app.json", "-s", tmp_path / "cluster.json", columns=200)
    assert (result.code, result.out.splitlines()[0]) == (1, "✗ 2 replicas refused by the API server")


@pytest.mark.parametrize(
    ("kind", "changes", "fix"),
    [
        ("Deployment", (), "remove spec.nodeName gone from the pod template of Deployment web"),
        ("Pod", (), "delete the pod, and create it without spec.nodeName gone"),
        ("Pod", ("--drain", "a"), "delete the pod, and create it without spec.nodeName gone"),
    ],
)
def test_a_pod_that_names_a_missing_node_gets_no_other(
    kind: str, changes: tuple[str, ...], fix: str, tmp_path: Path
) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS, "nodeName": "gone"}}
    manifest = pod("web", spec=at(template, "spec"))
    if kind != "Pod":
        manifest = workload(kind, replicas=2, selector=SELECTOR, template=template)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    where = ("-s", tmp_path / "cluster.json")
    result = kschedx("simulate", *changes, "-f", tmp_path / "app.json", *where, columns=200)
    assert (result.code, "is bound to gone and cannot start: the node does not exist" in result.out) == (1, True)
    assert fix in result.out


def test_kubelets_reject_pods_from_the_first_without_room(tmp_path: Path) -> None:
    """A smaller pod after them is not, and rejected pods do not count in the usage of the node."""

    def manifest(name: str, replicas: int, cpu: str) -> Manifest:
        containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, "nodeName": "a"}}
        made = workload("Deployment", replicas=replicas, selector={"matchLabels": {"app": name}}, template=template)
        return {**made, "metadata": {"name": name, "namespace": "default"}}

    few, many, big, small = ("few", 2, "1"), ("many", 7, "500m"), ("big", 1, "3"), ("small", 2, "0")
    apps = {"kind": "List", "apiVersion": "v1", "items": [manifest(*app) for app in (few, many, big, small)]}
    (tmp_path / "apps.json").write_text(json.dumps(apps))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    result = kschedx("simulate", "-f", tmp_path / "apps.json", "-s", tmp_path / "cluster.json", "-o", "json")
    document = json.loads(result.out)
    assert [(state["subject"], state["pods"], state["reason"]) for state in document["states"]] == [
        ("default/deploy/many", 3, "OutOfcpu"),
        ("default/deploy/big", 1, "OutOfcpu"),
    ]
    assert document["nodes"]["a"]["after"]["requested"] == {"cpu": 4000, "memory": 0, "pods": 8}


def test_replicas_that_depend_on_what_a_dump_lacks_are_undecided_in_every_form(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS, "volumes": CLAIM}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, USES_A_CLAIM]}))
    manifest = workload("Deployment", replicas=3, selector=SELECTOR, template=template)
    (tmp_path / "app.json").write_text(json.dumps(manifest))
    question = ("why", tmp_path / "app.json", "-s", tmp_path / "cluster.json")
    text = "default/deploy/web: 3 replicas are undecided"
    for output in (None, "markdown", "html", "svg", "junit"):
        result = kschedx(*question, *(("-o", output) if output else ()))
        assert result.code == 3
        assert text in result.out, output
    assert kschedx(*question).out.startswith(f"? {text}")
    simulated = kschedx("simulate", "--apply", *question[1:])
    assert simulated.code == 3
    assert "does not exist" not in simulated.out


def test_a_deployment_known_by_its_replica_set_is_scaled(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-abc", "namespace": "default", "uid": "r", "ownerReferences": [owner]},
        "spec": {"replicas": 0, "selector": SELECTOR, "template": template},
    }
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, replica_set]}))
    where = ("-s", tmp_path / "cluster.json")
    scaled = kschedx("simulate", "--scale", "deploy/web=3", *where)
    assert (scaled.code, scaled.out.splitlines()[0]) == (0, "✓ all 3 pods are scheduled")
    refused = kschedx("simulate", "--scale", "rs/web-abc=3", *where)
    assert refused.code == 2
    assert "ReplicaSet default/web-abc belongs to deploy/web, which sets its replicas" in refused.err


def test_a_pod_that_an_event_names_unschedulable_counts_once(tmp_path: Path) -> None:
    message = "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    refused = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    pods = [pod(name, spec={"containers": CONTAINERS}, status={"conditions": refused}) for name in ("x", "y")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, *pods]}))
    result = kschedx("simulate", "-s", tmp_path / "cluster.json", columns=200)
    assert (result.code, result.out.splitlines()[0]) == (3, "? 2 pods undecided")


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        ("--add-nodes=1=a", 1, "default/deploy/web has 1 of 3 pods and gets no others: ResourceQuota refuses them"),
        ("--scale=deploy/web=3", 1, "✗ 2 replicas refused by the API server"),
        ("--set=resourcequota/few:spec.hard.pods=2", 1, "1 pod is scheduled; 1 replica refused by the API server"),
        ("--set=resourcequota/few:spec.hard.pods=3", 0, "3 of 3 assigned · 2 new on a, b"),
        ("--delete=resourcequota/few", 0, "3 of 3 assigned · 2 new on a, b"),
    ],
)
def test_pods_that_a_quota_refuses_stay_refused_until_it_allows_them(
    change: str, code: int, expected: str, tmp_path: Path
) -> None:
    message = 'pods "web-1-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1'
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    labels = {"app": "web", "pod-template-hash": "1"}
    deployment = workload("Deployment", replicas=3, selector=SELECTOR)
    deployment["metadata"] = {"name": "web", "uid": "d"}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    template = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}}
    replica_set: Manifest = {
        **workload("ReplicaSet", replicas=3, selector={"matchLabels": labels}, template=template),
        "metadata": {"name": "web-1", "uid": "r", "labels": labels, "ownerReferences": [owner]},
        "status": {"replicas": 1, "conditions": [failed]},
    }
    maker = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
    first = pod(
        "web-1-a", on="a", labels=labels, metadata={"ownerReferences": [maker]}, spec={"containers": CONTAINERS}
    )
    few = {"pods": "1"}
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": few},
        "status": {"hard": few, "used": few},
    }
    cluster = {"kind": "List", "items": [*NODES, quota, deployment, replica_set, first]}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    result = kschedx("simulate", change, "-s", tmp_path / "cluster.json", columns=200)
    assert (result.code, expected in result.out) == (code, True), result.out


@pytest.mark.parametrize("change", ["--cordon=a", "--label=a:x=y"])
def test_a_change_does_not_complete_a_dump_that_its_event_contradicts(change: str, tmp_path: Path) -> None:
    message = (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting = pod("web", containers=CONTAINERS, status={"phase": "Pending", "conditions": [condition]})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, waiting]}))
    assert kschedx("simulate", change, "-s", tmp_path / "cluster.json").code == 3


def test_a_deleted_pod_is_not_pending_for_another_scheduler(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    other = pod("web-1", metadata={"ownerReferences": [owner]}, schedulerName="volcano")
    cluster = [*NODES, pod("web-0", labels={"app": "web"}), other]
    paths = tmp_path / "cluster.json", tmp_path / "app.json"
    paths[0].write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster}))
    stopped = workload("StatefulSet", replicas=0, selector=SELECTOR, serviceName="web")
    paths[1].write_text(json.dumps(stopped))
    result = kschedx("simulate", "--apply", paths[1], "-s", paths[0])
    assert "‖ default/sts/web is scaled to zero: spec.replicas is 0" in result.out
    assert "volcano" not in result.out


def test_a_workload_that_the_question_scales_to_zero_is_no_finding(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    web = workload("ReplicaSet", replicas=1, selector=SELECTOR)
    web = {**web, "metadata": {"name": "web", "namespace": "default", "uid": "web"}, "status": {"replicas": 1}}
    its = pod("web-x", on="a", labels={"app": "web"}, metadata={"ownerReferences": [owner]})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, web, its]}))
    result = kschedx("simulate", "--scale", "rs/web=0", "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, result.out.splitlines()[0]) == (0, "✓ no pod is pending")
    assert "web is" not in result.out


@pytest.mark.parametrize("change", ["--delete=pod/web-x", "--taint=a:x=y:NoExecute", "--remove-node=a"])
def test_a_job_that_loses_its_only_try_is_named(change: str, tmp_path: Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u", "controller": True}
    runs: Manifest = {**job(parallelism=1, backoffLimit=0), "status": {"active": 1}}
    runs["metadata"] = {"name": "web", "namespace": "default", "uid": "u"}
    its = pod("web-x", on="a", metadata={"ownerReferences": [owner]}, containers=CONTAINERS)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, runs, its]}))
    result = kschedx("simulate", change, "-s", "cluster.json", cwd=tmp_path)
    told = "effect default/web-x will not be recreated: its Job exceeds its backoffLimit, and fails"
    assert told in " ".join(result.out.split())


@pytest.mark.parametrize("change", ["--set=job/web:spec.suspend=true", "--scale=job/web=0"])
def test_a_job_that_the_question_stops_is_no_finding(change: str, tmp_path: Path) -> None:
    """Its status still counts the pods that the change deletes."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u", "controller": True}
    runs: Manifest = {**job(parallelism=1), "status": {"active": 1}}
    runs["metadata"] = {"name": "web", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    its = pod("web-x", on="a", metadata={"ownerReferences": [owner]}, containers=CONTAINERS)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, runs, its]}))
    result = kschedx("simulate", change, "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, result.out.splitlines()[0]) == (0, "✓ no pod is pending")
    assert "empty after: a" in result.out


def test_a_pod_that_an_ended_job_leaves_is_reported(tmp_path: Path) -> None:
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active too long"}
    ended = {**job(activeDeadlineSeconds=60), "status": {"conditions": [failed]}}
    ended["metadata"] = {"name": "web", "namespace": "default"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u", "controller": True}
    left = pod("web-x", metadata={"ownerReferences": [owner]}, spec={"containers": CONTAINERS})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, ended, left]}))
    for question in (("simulate",), ("why", "pod/web-x")):
        result = kschedx(*question, "-s", "cluster.json", cwd=tmp_path)
        assert "✗ default/web-x is pending, and its Job has ended: DeadlineExceeded" in result.out
        assert result.code == 1

"""New pods that a ResourceQuota refuses: the screen, and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, node, pod
from tests.command import CommandResult, kschedx

HARD = {"cpu": "10", "requests.storage": "10Gi"}
QUOTA: Manifest = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": HARD},
    "status": {"hard": HARD, "used": {"cpu": "9500m", "requests.storage": "5Gi"}},
}
POD_SPEC: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]}
SMALL: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "100m"}}}]}
DATA: Manifest = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}},
}
REFUSAL = "exceeded quota: q, requested: cpu=1, used: cpu=9500m, limited: cpu=10"


def workload(kind: str, spec: Manifest, **more: object) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}
    own: Manifest = {"template": template} if kind == "Job" else {"template": template, "selector": selector}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "web"}, "spec": {**own, **more}}


def bare(spec: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def run_why(tmp_path: Path, manifest: Manifest, *more: Manifest) -> tuple[int, str]:
    cluster, file = tmp_path / "cluster.json", tmp_path / "new.json"
    cluster.write_text(
        json.dumps({"kind": "List", "items": [node("n", allocatable={"cpu": "64", "pods": "9"}), *more]})
    )
    file.write_text(json.dumps(manifest))
    result = kschedx("why", str(file), "--snapshot", str(cluster), columns=400)
    return result.code, result.out


@pytest.mark.parametrize(
    ("cpu", "replicas", "expected"),
    [("12", 1, "lower requests.cpu of container c to 500m"), ("12", 2, "to 250m"), ("1", 1, None)],
)
def test_a_pod_that_exceeds_the_whole_quota(tmp_path: Path, cpu: str, replicas: int, expected: str | None) -> None:
    """Of a smaller pod, other pods have to give way, or the quota is raised."""
    spec: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}]}
    code, out = run_why(tmp_path, workload("Deployment", spec, replicas=replicas), QUOTA)
    assert code == 1
    assert f"raise cpu from 10 to {9500 + replicas * int(cpu) * 1000}m in ResourceQuota q" in out
    assert expected in out if expected else "lower requests.cpu" not in out


def test_a_limit_range_that_sets_what_exceeds_the_quota(tmp_path: Path) -> None:
    """The manifest does not show the default. The second container has its own request."""
    own = {"name": "d", "image": "d", "resources": {"requests": {"cpu": "100m"}}}
    spec: Manifest = {"containers": [{"name": "c", "image": "c"}, own]}
    limits = [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]
    defaults: Manifest = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "lr"},
        "spec": {"limits": limits},
    }
    code, out = run_why(tmp_path, bare(spec), QUOTA, defaults)
    assert code == 1
    assert "set requests.cpu of container c to 100m: LimitRange lr has a larger default" in out
    _, out = run_why(tmp_path, bare(POD_SPEC), QUOTA, defaults)
    assert "larger default" not in out
    _, out = run_why(tmp_path, bare(spec), QUOTA, defaults, {**defaults, "metadata": {"name": "more"}})
    assert "LimitRange lr and more have larger defaults" in out


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (bare(POD_SPEC), f'pods "x" is forbidden: {REFUSAL}'),
        (workload("Deployment", POD_SPEC), "Error creating: pods "),
        (workload("Job", {**POD_SPEC, "restartPolicy": "Never"}), "Error creating: pods "),
        (
            workload("StatefulSet", POD_SPEC, serviceName="web"),
            f'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: {REFUSAL}',
        ),
        (
            workload("StatefulSet", SMALL, serviceName="web", volumeClaimTemplates=[DATA]),
            "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: persistentvolumeclaims ",
        ),
    ],
    ids=["pod", "deployment", "job", "stateful-set", "claim"],
)
def test_the_refusal(tmp_path: Path, manifest: Manifest, words: str) -> None:
    code, message = run_why(tmp_path, manifest, QUOTA)
    assert code == 1
    assert words in message
    assert "exceeded quota: q" in message


def test_pods_within_the_quota_are_placed(tmp_path: Path) -> None:
    assert run_why(tmp_path, bare(SMALL), QUOTA)[0] == 0
    elsewhere = {**QUOTA, "metadata": {"name": "q", "namespace": "other"}}
    assert run_why(tmp_path, bare(POD_SPEC), elsewhere)[0] == 0


def test_existing_pods_of_a_workload_count_once(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    there = pod("web-0", on="n", metadata={"ownerReferences": [owner]}, spec=POD_SPEC)
    assert run_why(tmp_path, workload("StatefulSet", POD_SPEC, serviceName="web"), QUOTA, there)[0] == 0


def test_a_refusal_is_a_group_beside_the_others(tmp_path: Path) -> None:
    """Three replicas that a quota refuses, a pod that a LimitRange refuses, and one that fits."""
    limits: Manifest = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "tight"},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "1"}}]},
    }
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [node("n", allocatable={"cpu": "64", "pods": "9"}), limits, QUOTA]})
    )
    big = {**bare(SMALL), "metadata": {"name": "big", "namespace": "tight"}}
    items = [workload("Deployment", POD_SPEC, replicas=3), big, bare(SMALL)]
    (tmp_path / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asking = ("why", "-f", "new.json", "--snapshot", "cluster.json")

    result = kschedx(*asking, cwd=tmp_path, columns=200)
    headline, *blocks = result.out.split("\n\n")
    assert (result.code, result.err) == (1, "")
    assert headline == "✗ 5 pods: 4 not created, 1 can be scheduled"
    refused, limited, fits = blocks
    assert refused.startswith("✗ 3 pods: Error creating: pods ")
    assert REFUSAL in refused
    assert "default/web (Deployment) × 3" in refused
    assert limited.startswith('✗ pods "big" is forbidden: ')
    assert "default/x → n" in fits

    document = json.loads(kschedx(*asking, "-o", "json", cwd=tmp_path).out)
    assert [item["pod"]["name"] for item in document["items"]] == ["x"]
    assert [item["pod"] for item in document["refused"]] == ["default/web-new", "tight/big"]
    assert document["undecided"] == []

    alone = kschedx(*asking, "--alone", cwd=tmp_path, columns=200)
    assert alone.code == 1
    assert alone.out.startswith("✗ 3 pods: 2 not created, 1 can be scheduled\n")


# --- several new pods


def cluster(tmp_path: Path, *more: Manifest) -> None:
    """Write cluster.json with a node that has room for all pods."""
    items = [node("n", allocatable={"cpu": "64", "memory": "64Gi", "pods": "99"}), *more]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))


def written(tmp_path: Path, *items: Manifest) -> None:
    (tmp_path / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def why(tmp_path: Path, *more: str) -> CommandResult:
    return kschedx("why", "-f", "new.json", "--snapshot", "cluster.json", *more, cwd=tmp_path, columns=200)


def quota(used: dict[str, str], **hard: str) -> Manifest:
    return {**QUOTA, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}


def named(manifest: Manifest, name: str) -> Manifest:
    return {**manifest, "metadata": {"name": name}}


@pytest.mark.parametrize(("cpu", "lacks_room"), [("99", True), ("50", False)])
def test_a_refused_pod_that_would_stay_pending_has_both_causes(tmp_path: Path, cpu: str, lacks_room: bool) -> None:
    cluster(tmp_path, quota({"pods": "1"}, pods="1"))
    spec: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}]}
    written(tmp_path, workload("Deployment", spec))
    first, *others = why(tmp_path).out.splitlines()
    assert first.startswith("✗ default/deploy/web gets no pods: ResourceQuota refuses them")
    assert first.endswith("; once admitted, its pod is unschedulable: 0 of 1 node fits") is lacks_room
    assert ("            1 node lacks 35 CPU" in others) is lacks_room
    document = json.loads(why(tmp_path, "-o", "json").out)
    assert (document["outcome"], document["state"]["name"]) == ("Unschedulable", "Refused")


def test_refused_and_pending_replicas_have_a_fix_each(tmp_path: Path) -> None:
    cluster(tmp_path, quota({"pods": "1"}, pods="3"))
    spec: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "99"}}}]}
    written(tmp_path, workload("Deployment", {**spec, "nodeSelector": {"a": "b"}}, replicas=4))
    titles = [fix["title"] for fix in json.loads(why(tmp_path, "-o", "json").out)["fixes"]]
    assert titles[-1].startswith("raise pods from 3 to 5 in ResourceQuota q; then ")
    assert titles[0].startswith("add a node with ")


def test_replicas_above_the_quota(tmp_path: Path) -> None:
    cluster(tmp_path, quota({"cpu": "7"}, cpu="10"))
    written(tmp_path, workload("Deployment", POD_SPEC, replicas=5))
    result = why(tmp_path)
    assert (result.code, result.err) == (1, "")
    first, second, *_ = result.out.splitlines()
    assert first == "✗ default/deploy/web: 3 of 5 replicas can be scheduled; the API server refuses 2"
    assert second.split() == [
        *["refused", "Error", "creating:", "pods", '"web-new4"', "is", "forbidden:", "exceeded", "quota:", "q,"],
        *["requested:", "cpu=1,", "used:", "cpu=10,", "limited:", "cpu=10"],
    ]
    replicas = json.loads(why(tmp_path, "-o", "json").out)["replicas"]
    assert (list(replicas["placed"]), replicas["refused"]) == (
        [f"default/web-new{number}" for number in (1, 2, 3)],
        ["default/web-new4", "default/web-new5"],
    )
    assert why(tmp_path, "-o", "name").out.split()[-2:] == replicas["refused"]


def test_workloads_that_exceed_a_quota_only_together(tmp_path: Path) -> None:
    cluster(tmp_path, quota({"cpu": "0"}, cpu="5"))
    item, other = (named(workload("Deployment", POD_SPEC, replicas=3), name) for name in ("one", "other"))
    written(tmp_path, item, other, bare(SMALL))
    result = why(tmp_path)
    assert result.code == 1
    assert result.out.splitlines()[0] == "✗ 7 pods: 5 can be scheduled, 2 not created"
    assert (
        '✗ Error creating: pods "other-new3" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=5'
        in result.out
    )
    assert '✗ pods "x" is forbidden: exceeded quota: q, requested: cpu=100m, used: cpu=5, limited: cpu=5' in result.out
    assert "raise cpu from 5 to 6 in ResourceQuota q" in result.out
    assert why(tmp_path, "--alone").code == 0


def test_a_quota_is_raised_for_what_comes_first_as_well(tmp_path: Path) -> None:
    once = {**POD_SPEC, "restartPolicy": "Never"}
    cluster(tmp_path, quota({"cpu": "0"}, cpu="3"))
    written(tmp_path, named(workload("Deployment", POD_SPEC, replicas=3), "one"), named(workload("Job", once), "j"))
    assert "raise cpu from 3 to 4 in ResourceQuota q" in why(tmp_path).out


def test_existing_and_replaced_replicas_count_once(tmp_path: Path) -> None:
    """Two of four replicas run and one is pending; the quota allows one more."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    there = [
        pod(f"web-{number}", on=on, metadata={"ownerReferences": [owner]}, spec=POD_SPEC)
        for number, on in enumerate(("n", "n", None))
    ]
    template: Manifest = {**workload("StatefulSet", POD_SPEC, serviceName="web", replicas=4)}
    for limit, code in (("4", 0), ("3", 1)):
        cluster(tmp_path, quota({"cpu": "3"}, cpu=limit), *there, template)
        written(tmp_path, template)
        assert why(tmp_path).code == code
        result = kschedx("why", "sts/web", "--snapshot", "cluster.json", cwd=tmp_path, columns=200)
        assert result.code == code
        assert ("create Pod web-3 in StatefulSet web failed error" in result.out) is bool(code)


@pytest.mark.parametrize(
    ("limit", "strategy", "code"),
    [("3", {}, 1), ("4", {}, 0), ("3", {"type": "Recreate"}, 0), ("3", {"rollingUpdate": {"maxUnavailable": 1}}, 0)],
    ids=["no room for one more", "room", "recreate", "one may be missing"],
)
def test_surge_pods_of_a_rollout_count(tmp_path: Path, limit: str, strategy: Manifest, code: int) -> None:
    replica_set, *pods = existing_replicas(3)
    old = workload("Deployment", POD_SPEC, replicas=3)
    cluster(tmp_path, quota({"pods": "3"}, pods=limit), old, replica_set, *pods)
    written(tmp_path, workload("Deployment", SMALL, replicas=3, strategy=strategy))
    result = why(tmp_path)
    assert result.code == code, result.out
    if code:
        assert 'Error creating: pods "web-new1" is forbidden: exceeded quota: q' in result.out
        assert "the rollout stalls, and the pods of the previous template stay" in result.out


def existing_replicas(number: int) -> list[Manifest]:
    """Return the ReplicaSet of a Deployment, and its pods."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "r", "controller": True}
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-abc", "ownerReferences": [deployment]},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD_SPEC}},
    }
    pods = (
        pod(f"web-abc-{i}", on="n", metadata={"ownerReferences": [owner], "labels": labels}, spec=POD_SPEC)
        for i in range(number)
    )
    return [replica_set, *pods]


# --- what is no pod


CLAIM: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "8Gi"}},
    },
}
CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}
OF_CLASS = "fast.storageclass.storage.k8s.io/requests.storage"
WITH_CLAIM: Manifest = {**SMALL, "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("used", "hard"),
    [
        ("persistentvolumeclaims", "0"),
        ("count/persistentvolumeclaims", "0"),
        ("requests.storage", "5Gi"),
        (OF_CLASS, "7Gi"),
    ],
)
def test_a_claim_that_a_quota_refuses_blocks_its_pods(tmp_path: Path, used: str, hard: str) -> None:
    cluster(tmp_path, CLASS, quota({used: "0"}, **{used: hard}))
    written(tmp_path, CLAIM, bare(WITH_CLAIM), named(bare(SMALL), "other"))
    result = why(tmp_path)
    assert result.code == 1
    assert result.out.startswith("✗ 2 pods: 1 not created, 1 can be scheduled\n")
    assert '✗ persistentvolumeclaims "data" is forbidden: exceeded quota: q, requested: ' in result.out


def test_a_claim_that_a_limit_range_refuses(tmp_path: Path) -> None:
    limits: Manifest = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}]},
    }
    cluster(tmp_path, CLASS, limits)
    written(tmp_path, CLAIM, bare(WITH_CLAIM))
    message = "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 8Gi"
    assert f'because   persistentvolumeclaims "data" is forbidden: {message}\n' in why(tmp_path).out


def test_a_refused_claim_without_pods_is_left_out(tmp_path: Path) -> None:
    cluster(tmp_path, CLASS, quota({"persistentvolumeclaims": "0"}, persistentvolumeclaims="0"))
    written(tmp_path, CLAIM, bare(SMALL))
    result = why(tmp_path)
    assert result.code == 0
    assert "PersistentVolumeClaim data is ignored, the API server refuses it: persistentvolume" in result.out


def test_claims_of_a_stateful_set_add_up(tmp_path: Path) -> None:
    cluster(tmp_path, CLASS, quota({"requests.storage": "0"}, **{"requests.storage": "20Gi"}))
    template = {"metadata": {"name": "data"}, "spec": CLAIM["spec"]}
    written(tmp_path, workload("StatefulSet", SMALL, serviceName="web", replicas=4, volumeClaimTemplates=[template]))
    result = why(tmp_path)
    assert result.code == 1
    assert "2 of 4 replicas can be scheduled; the API server refuses 2" in result.out
    message = (
        'create Claim data-web-2 for Pod web-2 in StatefulSet web failed error: persistentvolumeclaims "data-web-2"'
    )
    assert message in result.out


def test_a_quota_counts_workloads(tmp_path: Path) -> None:
    cluster(tmp_path, quota({"count/deployments.apps": "1"}, **{"count/deployments.apps": "2"}))
    written(tmp_path, *(named(workload("Deployment", SMALL), name) for name in ("one", "other")))
    result = why(tmp_path)
    assert result.code == 1
    assert (
        '✗ deployments.apps "other" is forbidden: exceeded quota: q, requested: count/deployments.apps=1' in result.out
    )
    assert result.out.startswith("✗ 2 pods: 1 can be scheduled, 1 not created\n")


@pytest.mark.parametrize(
    ("kind", "counted", "message"),
    [
        (
            "Deployment",
            "replicasets.apps",
            'Failed to create new replica set "web-new": replicasets.apps "web-',
        ),
        ("CronJob", "jobs.batch", 'Error creating job: jobs.batch "web-new" is forbidden: exceeded quota: q'),
    ],
)
def test_a_quota_that_refuses_an_intermediate_object(tmp_path: Path, kind: str, counted: str, message: str) -> None:
    cluster(tmp_path, quota({f"count/{counted}": "1"}, **{f"count/{counted}": "1"}))
    job = workload("Job", {**SMALL, "restartPolicy": "Never"})
    manifest = workload("Deployment", SMALL)
    if kind == "CronJob":
        manifest = {**job, "kind": kind, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}}
    written(tmp_path, manifest)
    result = why(tmp_path)
    assert result.code == 1
    assert message in result.out


@pytest.mark.parametrize(("replicas", "room"), [(1, "0"), (3, "2")])
def test_a_refused_claim_of_an_ephemeral_volume(tmp_path: Path, replicas: int, room: str) -> None:
    """The pod exists, and kube-scheduler reports the missing claim; a note names the quota."""
    cluster(tmp_path, CLASS, quota({"persistentvolumeclaims": "0"}, persistentvolumeclaims=room))
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM["spec"]}}}
    written(tmp_path, workload("Deployment", {**SMALL, "volumes": [volume]}, replicas=replicas))
    document = json.loads(why(tmp_path, "-o", "json").out)
    name = f"web-new{replicas}" if replicas > 1 else "web-new"
    assert document["pod"]["name"] == name
    assert (
        f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}-scratch"'
        in document["message"]
    )
    (note,) = (note for note in document["notes"] if note["id"] == "claim-not-made")
    message = (
        f'persistentvolumeclaims "{name}-scratch" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1'
    )
    assert note["refusal"].startswith(message)
    assert message in why(tmp_path).out.replace("\n            ", " ")


def test_pods_of_a_daemon_set_add_up(tmp_path: Path) -> None:
    """One of three nodes has its pod, which counts; the quota allows one more."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "u", "controller": True}
    there = pod("web-x", on="n", metadata={"ownerReferences": [owner]}, spec=SMALL)
    for limit, code in (("3", 0), ("2", 1)):
        cluster(tmp_path, node("o"), node("p"), there, quota({"pods": "1"}, pods=limit))
        written(tmp_path, workload("DaemonSet", SMALL))
        result = why(tmp_path)
        assert result.code == code
        is_told = (
            "✗ 1 node: the API server refuses the pod, which node depends on the order\n  refused   Error" in result.out
        )
        assert is_told is bool(code)
        assert json.loads(why(tmp_path, "-o", "json").out)["daemonSet"].get("refused", 0) == code
    written(tmp_path, workload("DaemonSet", SMALL), named(bare(SMALL), "y"))
    assert why(tmp_path).out.startswith("✗ 4 pods: ")

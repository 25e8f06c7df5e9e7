"""Changes of a template that its controller does not apply to the pod, with the additional commands."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.explain.creators import configured_in
from kschedx.inquiry.fix import Fix
from kschedx.kube.types import OwnerReference
from kschedx.render.manifests import kubectl_commands
from tests.builders import Manifest, at, node, pod
from tests.storage_builders import ZONE, claim, in_term, volume

ASKS = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
HELD = pod("other", on="n", containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}])
METADATA: Manifest = {"name": "x", "namespace": "default", "uid": "u"}
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "10"}


def lowered(kind: str, spec: Manifest, name: str = "x-0", metadata: Manifest = METADATA) -> Fix:
    """Return the fix that lowers the request."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": ASKS}}
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner: Manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec},
    }
    reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    mine = pod(name, labels={"app": "x"}, containers=ASKS, metadata={"ownerReferences": [reference]})
    objects = [node("n", allocatable=ROOM), HELD, owner, mine]
    if name != "x-0":
        first = pod("x-0", on="o", labels={"app": "x"}, containers=ASKS, metadata={"ownerReferences": [reference]})
        objects += [node("o", allocatable=ROOM), first]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), f"default/{name}").fixes
    return next(fix for fix in fixes if fix.title.startswith("lower requests.cpu"))


def script(kind: str, spec: Manifest, name: str = "x-0") -> tuple[str, list[str]]:
    """Return the title and the kubectl commands of a fix."""
    lower = lowered(kind, spec, name)
    return lower.title, kubectl_commands(lower.apply).splitlines()


def test_pods_that_keep_the_rule_of_a_stateful_set_are_deleted_together() -> None:
    """Both volumes are in one zone, where the pods may not run together. The one that runs keeps the other away."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": ASKS, "affinity": apart}}
    made = {"name": "data"}
    spec: Manifest = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    spec["volumeClaimTemplates"] = [{"metadata": made, "spec": at(claim("data"), "spec")}]
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "u", "controller": True}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": METADATA, "spec": spec}
    objects: list[Manifest] = [owner, *(node(name, labels={ZONE: "1"}, allocatable=ROOM) for name in "ab")]
    for number, on in enumerate(("a", "")):
        name, own = f"x-{number}", f"data-x-{number}"
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": own}}]
        uses = {"containers": ASKS, "volumes": volumes, "affinity": apart, **({"nodeName": on} if on else {})}
        meta = {"ownerReferences": [reference]}
        objects.append(pod(name, labels={"app": "x"}, metadata=meta, spec=uses))
        objects += [
            claim(own, volume=f"v{number}"),
            volume(f"v{number}", claim_ref=own, node_affinity=in_term(ZONE, "1")),
        ]
    first, *_ = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/x-1").fixes
    assert (first.certainty, "then delete all pods of StatefulSet x" in first.title) == ("verified", True)
    assert kubectl_commands(first.apply).splitlines()[1:] == [
        "kubectl delete pod x-0 -n default",
        "kubectl delete pod x-1 -n default",
    ]


@pytest.mark.parametrize(("ran", "scaled"), [(0, True), (1, False)])
def test_a_stateful_set_that_keeps_apart_has_fewer_nodes_than_replicas(ran: int, *, scaled: bool) -> None:
    """It is scaled by its last ordinals, so that a first one that is pending stays so."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    uses: Manifest = {"containers": [{"name": "main", "image": "i"}], "affinity": apart}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": uses}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    parallel: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": METADATA, "spec": spec}
    at(parallel, "spec")["podManagementPolicy"] = "Parallel"
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "u", "controller": True}
    pods = [
        pod(f"x-{number}", on="a" if number == ran else None, labels={"app": "x"}, spec=uses) for number in range(2)
    ]
    for each in pods:
        at(each, "metadata")["ownerReferences"] = [reference]
    hosts = node("a", labels={"kubernetes.io/hostname": "a"}, allocatable=ROOM)
    snapshot = kschedx.Snapshot.from_objects([parallel, hosts, *pods])
    titles = [fix.title for fix in kschedx.explain(snapshot, f"default/x-{1 - ran}").fixes]
    assert [title.split(", then")[0] for title in titles] == [
        "add a node like a",
        "make podAntiAffinity term 1 (app=x) preferred instead of required",
        *(["scale to 1 replica: its required anti-affinity has no node for more"] if scaled else []),
    ]


@pytest.mark.parametrize(
    ("strategy", "then"),
    [
        ({}, ", then set maxUnavailable: 2 on Deployment x, whose rollout would stall"),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}, ""),
        ({"type": "Recreate"}, ""),
    ],
)
def test_a_rollout_that_running_pods_keep_apart_deletes_one_first(strategy: Manifest, then: str) -> None:
    """The default strategy of three replicas, of which one is pending, deletes no running pod."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    uses: Manifest = {"containers": [{"name": "main", "image": "i"}], "affinity": apart}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": uses}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template, "strategy": strategy}
    apps = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": METADATA, "spec": spec}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "u", "controller": True}
    of_hash = {"metadata": {"labels": {"app": "x", "pod-template-hash": "1"}}, "spec": uses}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**METADATA, "name": "x-1", "ownerReferences": [owner]},
        "spec": {"replicas": 3, "selector": {"matchLabels": at(of_hash, "metadata.labels")}, "template": of_hash},
    }
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x-1", "uid": "r", "controller": True}
    pods = [
        pod(
            f"x-1-{number}",
            on=on,
            labels=at(of_hash, "metadata.labels"),
            spec=uses,
            metadata={"ownerReferences": [reference]},
        )
        for number, on in enumerate(("a", "b", None))
    ]
    hosts = [node(name, labels={"kubernetes.io/hostname": name}, allocatable=ROOM) for name in "ab"]
    snapshot = kschedx.Snapshot.from_objects([apps, replica_set, *hosts, *pods])
    softened = "make podAntiAffinity term 1 (app=x) preferred instead of required"
    fixes = kschedx.explain(snapshot, "default/x-1-2").fixes
    assert [(fix.title, fix.certainty) for fix in fixes if softened in fix.title] == [(softened + then, "verified")]


DELETED = "kubectl delete pod x-0 -n default"
PARTITIONED: Manifest = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}


@pytest.mark.parametrize(
    ("kind", "spec", "deleted"),
    [
        ("StatefulSet", {}, True),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}, False),
        ("StatefulSet", {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}, True),
        ("StatefulSet", {"podManagementPolicy": "Parallel", **PARTITIONED}, True),
        ("ReplicaSet", {}, True),
        ("ReplicationController", {"selector": {"app": "x"}}, True),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, True),
        ("DaemonSet", {"updateStrategy": {"type": "RollingUpdate"}}, False),
        ("Deployment", {}, False),
    ],
)
def test_the_pod_is_deleted_if_its_controller_keeps_it(kind: str, spec: Manifest, deleted: bool) -> None:
    title, commands = script(kind, spec)
    assert (DELETED in commands) is deleted
    assert ("delete pod x-0" in title) is deleted
    assert commands[0].startswith("kubectl patch ")


def test_a_partition_is_lowered_to_the_pod() -> None:
    _, commands = script("StatefulSet", {"replicas": 2, **PARTITIONED}, name="x-1")
    assert any('"path": "/spec/updateStrategy/rollingUpdate/partition", "value": 1' in command for command in commands)
    _, commands = script("StatefulSet", {"replicas": 1, "ordinals": {"start": 1}, **PARTITIONED}, name="x-1")
    assert any('"path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0' in command for command in commands)


def test_a_paused_deployment_is_resumed() -> None:
    title, commands = script("Deployment", {"paused": True})
    assert title.endswith("then resume Deployment x, which is paused")
    assert '"path": "/spec/paused", "value": false' in commands[0]


@pytest.mark.parametrize(
    ("kind", "costs"), [("amd64", ()), ("arm64", ("check that the image of default/db-0 runs on arm64",))]
)
def test_moving_a_pod_cordons_its_node_until_its_replacement_runs_elsewhere(kind: str, costs: tuple[str, ...]) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    there = {**HELD, "metadata": {**at(HELD, "metadata"), "name": "db-0", "ownerReferences": [reference]}}
    nodes = [
        node("n", labels={"kubernetes.io/arch": "amd64"}, allocatable=ROOM),
        node("small", labels={"kubernetes.io/arch": kind}, allocatable={**ROOM, "cpu": "1"}),
    ]
    snapshot = kschedx.Snapshot.from_objects([*nodes, there, pod("me", containers=ASKS)])
    move = next(fix for fix in kschedx.explain(snapshot, "default/me").fixes if fix.title.startswith("move"))
    assert move.title == "move default/db-0 from n to small"
    assert move.costs == costs
    assert move.commands == (
        "kubectl cordon n",
        "kubectl delete pod db-0 -n default",
        "kubectl wait pod db-0 -n default --for=condition=PodScheduled",
        "kubectl uncordon n",
    )
    assert [line.split()[1] for line in kubectl_commands(move.apply).splitlines()] == ["cordon", "delete", "uncordon"]
    assert move.feasible_nodes == ("n",)


def test_a_pod_without_a_controller_is_not_moved() -> None:
    nodes = [node("n", allocatable=ROOM), node("small", allocatable={**ROOM, "cpu": "1"})]
    snapshot = kschedx.Snapshot.from_objects([*nodes, HELD, pod("me", containers=ASKS)])
    assert not [fix for fix in kschedx.explain(snapshot, "default/me").fixes if fix.title.startswith("move")]


def test_a_template_of_an_owner_is_changed_in_the_owner() -> None:
    above = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "d", "controller": True}
    for more, place in (
        ({"ownerReferences": [above]}, "Database db"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "db"}}, "Git for Flux"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "db"}}, "Git for Argo CD"),
        ({}, ""),
    ):
        costs = (f"change it in {place}, which may revert StatefulSet x",) if place else ()
        assert lowered("StatefulSet", {}, metadata={**METADATA, **more}).costs == costs


def test_owners_that_refer_to_each_other_end_the_search() -> None:
    def reference(kind: str) -> Manifest:
        return {"apiVersion": "serving.knative.dev/v1", "kind": kind, "name": "x", "uid": kind, "controller": True}

    resources: list[Manifest] = [
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": kind,
            "metadata": {**METADATA, "ownerReferences": [reference(owner)]},
            "spec": {"template": {"spec": {"containers": ASKS}}},
        }
        for kind, owner in (("Service", "Configuration"), ("Configuration", "Service"))
    ]
    snapshot = kschedx.Snapshot.from_objects(resources)
    owner = OwnerReference(api_version="serving.knative.dev/v1", kind="Service", name="x", uid="Service")
    assert configured_in(snapshot, "default", owner, {}) in ("Service x", "Configuration x")


@pytest.mark.parametrize("stored", [("x-0", "x-1"), ("x-1",)], ids=["all of them", "those that exist"])
def test_all_pending_pods_of_a_replica_set_are_deleted(stored: tuple[str, ...]) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": ASKS}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": METADATA, "spec": spec}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
    stamps = {name: {"creationTimestamp": "2026-06-01T08:00:00Z"} for name in stored}
    mine = [
        pod(
            name,
            labels={"app": "x"},
            containers=ASKS,
            metadata={"ownerReferences": [reference], **stamps.get(name, {})},
        )
        for name in ("x-0", "x-1")
    ]
    objects = [node("n", allocatable={**ROOM, "cpu": "3"}, taints=["team=a:NoSchedule"]), owner, *mine]
    [fix, *_] = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/x-1").fixes
    pods = f"pod{'s' if len(stored) > 1 else ''} {' and '.join(stored)}"
    assert fix.title.startswith(f"tolerate team=a:NoSchedule, then delete {pods} (ReplicaSet x")
    assert kubectl_commands(fix.apply).splitlines()[1:] == [f"kubectl delete pod {name} -n default" for name in stored]


def test_a_cron_job_is_changed_for_its_next_jobs_and_its_job_is_recreated() -> None:
    spec: Manifest = {"containers": ASKS, "nodeSelector": {"pool": "ab"}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    cron: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "x", "namespace": "default", "uid": "c"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    by = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "x", "uid": "c", "controller": True}
    job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x-1", "namespace": "default", "uid": "j", "ownerReferences": [by]},
        "spec": {"template": template},
    }
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "x-1", "uid": "j", "controller": True}
    mine = pod("x-1-a", labels={"app": "x"}, metadata={"ownerReferences": [reference]}, spec=spec)
    objects = [node("n", allocatable=ROOM, labels={"pool": "abc"}), cron, job, mine]
    [fix, *_] = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/x-1-a").fixes
    assert [(change.target.kind, change.target.name) for change in fix.apply] == [("Job", "x-1"), ("CronJob", "x")]


@pytest.mark.parametrize("number", [0, 1])
def test_a_new_node_helps_whichever_replica_is_explained(number: int) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
    spec: Manifest = {"replicas": 2, "template": {"spec": {"containers": ASKS}}}
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": METADATA, "spec": spec}
    pods = [pod(f"x-{item}", containers=ASKS, metadata={"ownerReferences": [reference]}) for item in range(2)]
    snapshot = kschedx.Snapshot.from_objects([node("n", allocatable=ROOM), HELD, replica_set, *pods])
    first = kschedx.explain(snapshot, f"default/x-{number}").fixes[0]
    assert first.title == "add a node like n"
    assert first.costs == ("1 pod of the workload stays pending",)


def test_a_rollout_that_waits_for_another_pod_keeps_a_gate() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "u", "controller": True}
    gated: Manifest = {"containers": ASKS, "schedulingGates": [{"name": "example.com/gate"}]}
    newer: Manifest = {**gated, "nodeSelector": {"disk": "ssd"}}
    stateful_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": METADATA,
        "spec": {
            "replicas": 2,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": newer},
        },
        "status": {"currentRevision": "x-1", "updateRevision": "x-2", "replicas": 2},
    }
    pods = [
        pod(name, labels={"app": "x", "controller-revision-hash": revision}, metadata={"ownerReferences": [reference]})
        for name, revision in (("x-0", "x-1"), ("x-1", "x-2"))
    ]
    pods = [{**each, "spec": spec} for each, spec in zip(pods, (gated, newer), strict=True)]
    snapshot = kschedx.Snapshot.from_objects([node("n", allocatable=ROOM), stateful_set, *pods])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/x-0").fixes]
    assert "remove scheduling gate example.com/gate (then 2 pods of the workload stay pending)" in titles

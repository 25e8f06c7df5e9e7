"""Manifests as users have them: several workloads, other objects beside them, folders, and custom resources."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kschedx.releases.api_versions import is_served
from kschedx.releases.dates import minor
from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import BIG_POD, NODE, POD, changed, small_pod, write
from tests.command import CommandResult, kschedx


def workload(kind: str, name: str = "web", *, api_version: str = "apps/v1", **spec: object) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": POD["spec"]}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": template, **spec},
    }


def run_why(
    folder: Path, *manifests: Manifest, cluster: tuple[Manifest, ...] = (NODE,), options: str = ""
) -> CommandResult:
    path = write(folder, *manifests, name="app.yaml")
    return kschedx("why", path, "-s", write(folder, *cluster), *options.split())


def document(result: CommandResult) -> Any:
    return json.loads(result.out)


def test_several_workloads_are_one_answer(tmp_path: Path) -> None:
    big = workload("StatefulSet", "db")
    big["spec"]["template"]["spec"] = BIG_POD["spec"]
    result = run_why(tmp_path, workload("Deployment"), workload("Deployment", "api"), big)
    assert result.code == 1
    assert result.out.splitlines()[0] == "✗ 3 pods: 2 can be scheduled, 1 unschedulable"
    assert "default/db (StatefulSet)" in result.out
    in_one_line = " ".join(result.out.replace("\\\n", " ").split())
    assert f"kschedx why sts/db -n default -f {tmp_path}/app.yaml" in in_one_line
    assert "looked at alone" not in result.out
    alone = run_why(tmp_path, workload("Deployment"), workload("Deployment", "api"), options="--alone")
    assert "each pod is evaluated alone" in alone.out


def test_a_name_selects_one_of_several_workloads(tmp_path: Path) -> None:
    path = write(tmp_path, workload("Deployment"), workload("Deployment", "api"), name="app.yaml")
    result = kschedx("why", "deploy", "api", "-f", path, "-s", write(tmp_path, NODE), "-o", "json")
    assert document(result)["pod"]["name"] == "api-new"


def test_manifests_of_a_folder_and_of_standard_input(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    write(folder, workload("Deployment"), name="a.yaml")
    write(folder, workload("Deployment", "api"), name="b.yaml")
    cluster = write(tmp_path, NODE)
    assert kschedx("why", folder, "-s", cluster).out.startswith("✓ 2 pods can be scheduled")
    piped = kschedx("why", "-f", "-", "-s", cluster, stdin=json.dumps(workload("Deployment")))
    assert (piped.code, piped.err) == (0, "")


CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "csi.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIM: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": CLAIM_SPEC,
}
VOLUMES: list[Manifest] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
USING = changed(changed(POD, "metadata", {"name": "web-0"}), "spec.volumes", VOLUMES)


def test_other_objects_of_the_file_count_as_applied(tmp_path: Path) -> None:
    assert run_why(tmp_path, USING).code != 0
    result = run_why(tmp_path, CLASS, CLAIM, USING, options="-o json")
    assert document(result)["outcome"] == "Scheduled"
    (note,) = (note for note in document(result)["notes"] if note["id"] == "applied-together")
    assert note["objects"] == ["StorageClass fast", "PersistentVolumeClaim data"]


def _autoscaler(least: int, most: int) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}


@pytest.mark.parametrize(
    ("replicas", "becomes"),
    [({}, 3), ({"replicas": 2}, 3), ({"replicas": 9}, 8), ({"replicas": 5}, None), ({"replicas": 0}, None)],
)
def test_a_horizontal_pod_autoscaler_bounds_the_replicas(
    replicas: dict[str, Any], becomes: int | None, tmp_path: Path
) -> None:
    app, autoscaler = workload("Deployment", **replicas), _autoscaler(3, 8)
    both, alone = (write(tmp_path, *items, name=f"{len(items)}.yaml") for items in ([app, autoscaler], [autoscaler]))
    empty, stored = (write(tmp_path, NODE, *items, name=f"cluster{len(items)}.yaml") for items in ([], [app]))
    for command in (
        ("why", both, "-s", empty),
        ("simulate", "-f", both, "-s", empty),
        ("simulate", "-f", alone, "-s", stored),
    ):
        result = kschedx(*command, columns=200)
        assert (f"scales default/deploy/web to {becomes}: its m" in result.out) == (becomes is not None)


def test_a_priority_class_beside_the_pod_counts(tmp_path: Path) -> None:
    kind: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    result = run_why(tmp_path, kind, changed(POD, "spec.priorityClassName", "high"), options="-o json")
    assert document(result)["pod"]["priority"] == 1000


def test_a_new_stateful_set_counts_with_its_claims(tmp_path: Path) -> None:
    claims = [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]
    result = run_why(tmp_path, CLASS, workload("StatefulSet", serviceName="web", volumeClaimTemplates=claims))
    assert (result.code, result.err) == (0, "")
    assert "claim default/data-web-0" in " ".join(result.out.split())


@pytest.mark.parametrize(
    ("kind", "modes", "nodes", "is_told"),
    [
        ("Deployment", ["ReadWriteOnce"], 2, True),
        ("Deployment", ["ReadWriteMany"], 2, False),
        ("Deployment", ["ReadWriteOnce"], 1, False),
        ("StatefulSet", ["ReadWriteOnce"], 2, False),
        ("CloneSet", ["ReadWriteOnce"], 2, False),
    ],
)
def test_replicas_on_several_nodes_that_share_a_claim(
    kind: str, modes: list[str], nodes: int, is_told: bool, tmp_path: Path
) -> None:
    spec = {**CLAIM_SPEC, "accessModes": modes}
    cluster = tuple(changed(NODE, "metadata.name", f"n{number}") for number in range(nodes))
    group = "apps.kruise.io/v1alpha1" if kind == "CloneSet" else "apps/v1"
    own = workload(kind, api_version=group, replicas=2)
    if kind == "StatefulSet":
        own["spec"] |= {"serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}
    else:
        own = dict(changed(own, "spec.template.spec.volumes", VOLUMES))
    result = run_why(tmp_path, CLASS, changed(CLAIM, "spec", spec), own, cluster=cluster)
    assert result.code == 0
    assert ("the replicas share claim default/data (ReadWriteOnce)" in result.out) is is_told


@pytest.mark.parametrize("of_pod", [{}, {"scratch": CLAIM_SPEC}], ids=["its own", "ephemeral ones too"])
def test_an_attempt_before_the_claim_stays_in_the_document(tmp_path: Path, of_pod: Manifest) -> None:
    """If a claim comes after its pod, kube-scheduler tries the pod before the claim exists."""
    claims = [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]
    stateful = workload("StatefulSet", serviceName="web", volumeClaimTemplates=claims)
    volumes = [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}} for name, spec in of_pod.items()]
    stateful = dict(changed(stateful, "spec.template.spec.volumes", volumes))
    result = document(run_why(tmp_path, CLASS, stateful, options="-o json"))
    message = {note["firstAttempt"] for note in result["notes"] if note["id"] == "claims-from-templates"}
    waits = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-0-scratch"'
    expected = waits if of_pod else 'persistentvolumeclaim "data-web-0" not found'
    assert result["outcome"] == "Scheduled"
    assert message == {f"0/1 nodes are available: {expected}. not found"}


def test_an_ephemeral_volume_counts_with_its_claim(tmp_path: Path) -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}}
    result = run_why(tmp_path, CLASS, changed(POD, "spec.volumes", [volume]), options="-o json")
    (note,) = (note for note in document(result)["notes"] if note["id"] == "claims-from-templates")
    assert document(result)["outcome"] == "Scheduled"
    assert note["claims"] == ["shop/web-0-scratch"]
    assert "waiting for ephemeral volume controller" in note["firstAttempt"]


SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
]


@pytest.mark.parametrize(("image", "fits"), [("registry.example/app:v1", False), ("registry.example/app:v2", True)])
def test_a_changed_template_has_a_new_hash(image: str, fits: bool, tmp_path: Path) -> None:
    """Old pods are all on the second node, which is full. Pods of the same template push new ones to the first, where
    they do not fit."""
    deployment = workload("Deployment")
    deployment = dict(changed(deployment, "spec.template.spec.topologySpreadConstraints", SPREAD))
    replica_set = json.loads(json.dumps(deployment)) | {"kind": "ReplicaSet"}
    replica_set["metadata"] = {
        "name": "web-1",
        "namespace": "default",
        "ownerReferences": [{"kind": "Deployment", "name": "web", "apiVersion": "apps/v1", "controller": True}],
    }
    labels = {"app": "web", "pod-template-hash": "bcdf"}
    replica_set["spec"]["template"]["metadata"]["labels"] = labels
    old = changed(changed(POD, "metadata", {"name": "web-1-a", "labels": labels}), "spec.nodeName", "big")
    hosts = [{"kubernetes.io/hostname": name} for name in ("big", "small")]
    nodes = [
        node("big", labels=hosts[0], allocatable={"cpu": "8", "memory": "8Gi", "pods": "110"}),
        node("small", labels=hosts[1], allocatable={"cpu": "100m", "memory": "8Gi", "pods": "110"}),
    ]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image
    result = run_why(tmp_path, deployment, cluster=(*nodes, replica_set, old), options="-o json")
    assert (document(result)["outcome"] == "Scheduled") is fits


ROLLOUT = workload("Rollout", api_version="argoproj.io/v1alpha1")
JOB: Manifest = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": POD["spec"]}},
            "Worker": {"replicas": 4, "template": {"spec": POD["spec"]}},
        }
    },
}


def test_a_custom_resource_is_explained_by_its_template(tmp_path: Path) -> None:
    result = run_why(tmp_path, ROLLOUT, options="-o json")
    (note,) = (note for note in document(result)["notes"] if note["id"] == "foreign-workload")
    assert note["path"] == "spec.template"
    assert "Rollout (argoproj.io)" in note["text"]


def test_each_template_of_a_custom_resource_is_a_pod(tmp_path: Path) -> None:
    result = run_why(tmp_path, JOB, options="-o name").out.split()
    placed = ["default/train-master-new", *(f"default/train-worker-new{number}" for number in (1, 2, 3))]
    assert result == [word for pod in placed for word in (pod, "node/node-01")] + ["default/train-worker-new4"]


@pytest.mark.parametrize(
    ("manifest", "code", "expected"),
    [
        (
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "r"}},
            2,
            "(render its chart with its values first: helm template | kschedx why -)",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
            2,
            "no pods or workloads in this file: ConfigMap",
        ),
        (
            {"apiVersion": "kind.x-k8s.io/v1alpha4", "kind": "Cluster", "nodes": [{"role": "control-plane"}]},
            2,
            "no pods or workloads in this file: Cluster (kind.x-k8s.io) (it is not an object of a cluster)",
        ),
        (
            {"apiVersion": "tekton.dev/v1", "kind": "StepAction", "metadata": {"name": "s"}},
            2,
            "StepAction (tekton.dev) (ask about the pods that its controller creates)",
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "$patch": "delete"},
            2,
            "[$patch]: unknown field (it looks like a kustomize patch",
        ),
        (
            {"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "web"}},
            2,
            'there is no "Deployment" in apiVersion v1 (Deployment is in apps/v1)',
        ),
        (
            {"apiVersion": "v1", "kind": "ScheduleAnyway", "metadata": {"name": "web"}},
            2,
            'there is no "ScheduleAnyway" in apiVersion v1 (did you mean "Scheduler" of config.openshift.io/v1?)',
        ),
        (
            {"apiVersion": "v1", "kind": "Policy", "predicates": []},
            2,
            ': Policy: kind: there is no "Policy" in apiVersion v1',
        ),
        (
            {"apiVersion": "v1", "kind": "Status", "metadata": {}, "message": "nodes is forbidden"},
            2,
            "Status: this is an error of the API server: nodes is forbidden",
        ),
    ],
)
def test_a_manifest_without_pods_is_named(manifest: Manifest, code: int, expected: str, tmp_path: Path) -> None:
    result = run_why(tmp_path, manifest)
    assert (result.code, result.out) == (code, "")
    assert expected in result.err


TRAIN_JOB: Manifest = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "t"},
    "spec": {"runtimeRef": {"name": "torch"}},
}


@pytest.mark.parametrize("command", ["why", "fit"])
def test_a_custom_resource_that_hides_its_pods_is_undecided(command: str, tmp_path: Path) -> None:
    manifest = write(tmp_path, TRAIN_JOB, name="app.yaml")
    cluster = write(tmp_path, NODE)
    outcome = kschedx(command, manifest, "-s", cluster)
    headline = "? default/trainjob/t is undecided: its manifest does not say which pods it creates"
    assert (outcome.code, outcome.out.splitlines()[0]) == (3, headline)
    result = document(kschedx(command, manifest, "-s", cluster, "-o", "json"))
    assert (result["state"]["name"], result["outcome"]) == ("UnknownPods", "Undecided")


def test_a_custom_resource_that_hides_its_pods_waits_for_its_queue(tmp_path: Path) -> None:
    metadata = {"name": "t", "labels": {"kueue.x-k8s.io/queue-name": "training"}}
    result = run_why(tmp_path, {**TRAIN_JOB, "metadata": metadata, "spec": {**at(TRAIN_JOB, "spec"), "suspend": True}})
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("✗ default/trainjob/t is suspended: it waits for Kueue")


@pytest.mark.parametrize(
    ("namespace", "phrase"),
    [
        ("shp", 'namespaces "shp" not found (did you mean "shop"?)'),
        ("other", 'namespaces "other" not found\n'),
        ("${SPACE}", "Deployment web, replace the variables first, for example with `envsubst`"),
    ],
)
def test_a_namespace_that_does_not_exist_has_a_hint_if_its_name_is_wrong(
    namespace: str, phrase: str, tmp_path: Path
) -> None:
    names = ("default", "shop")
    spaces: list[Manifest] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it}} for it in names]
    manifest = workload("Deployment")
    manifest["metadata"]["namespace"] = namespace
    path = write(tmp_path, manifest, name="app.yaml")
    dump = write(tmp_path, changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z"), *spaces)
    result = kschedx("why", path, "-s", dump, columns=200)
    assert (result.code, phrase in result.out) == (1, True), result.out


def test_it_is_undecided_beside_other_manifests(tmp_path: Path) -> None:
    result = run_why(tmp_path, TRAIN_JOB, workload("Deployment"))
    assert (result.code, result.out.splitlines()[0]) == (3, "? 2 pods: 1 can be scheduled, 1 undecided")


def test_every_workload_of_a_file_counts(tmp_path: Path) -> None:
    big = workload("StatefulSet", "db")
    big["spec"]["template"]["spec"] = BIG_POD["spec"]
    manifests, cluster = write(tmp_path, workload("Deployment"), big, TRAIN_JOB, name="app.yaml"), write(tmp_path, NODE)
    outcome = kschedx("fit", manifests, "-s", cluster)
    assert [line for line in outcome.out.splitlines() if line[:1] in "✓✗?" and line] == [
        "✓ default/deploy/web: 4 more fit",
        "✗ default/sts/db: no more fit",
        "? default/trainjob/t is undecided: its manifest does not say which pods it creates",
    ]
    assert outcome.code == 3
    result = document(kschedx("fit", manifests, "-s", cluster, "-o", "json"))
    assert (result["kind"], [item.get("fits") for item in result["items"]]) == ("FitList", [4, 0, None])


def _job(**fields: object) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", **at(POD, "spec"), **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}}


SELECTING_TIER: dict[str, Any] = {"selector": {"matchLabels": {"app": "web", "tier": "a"}}}


@pytest.mark.parametrize(
    ("stored", "written", "expected", "deletion"),
    [
        (
            workload("Deployment"),
            changed(workload("Deployment", **SELECTING_TIER), "spec.template.metadata.labels.tier", "a"),
            'spec.selector: Invalid value: {"matchLabels":{"app":"web","tier":"a"}}: field is immutable',
            "kubectl delete deployment/web -n default",
        ),
        (
            workload("StatefulSet", serviceName="web"),
            workload("StatefulSet", serviceName="other"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template'",
            "kubectl delete statefulset/web -n default --cascade=orphan",
        ),
        (
            _job(),
            _job(nodeSelector={"disk": "ssd"}),
            "spec.template: Invalid value: ",
            "kubectl delete job/web -n default",
        ),
    ],
)
def test_a_refused_update_is_an_answer(
    stored: Manifest, written: Manifest, expected: str, deletion: str, tmp_path: Path
) -> None:
    path, cluster = write(tmp_path, written, name="app.yaml"), write(tmp_path, NODE, stored)
    outcome = kschedx("why", path, "-s", cluster, columns=300)  # the command holds a path of any length
    named = {"Deployment": "deploy", "StatefulSet": "sts", "Job": "job"}[str(stored["kind"])]
    headline = f"✗ default/{named}/web is not changed: the API server refuses the update"
    assert (outcome.code, outcome.out.splitlines()[0]) == (1, headline)
    assert deletion in outcome.out
    for command in (("why", path), ("why", f"{named}/web", "-f", path), ("fit", path)):
        result = document(kschedx(*command, "-s", cluster, "-o", "json"))
        assert result["state"]["name"] == "NotChanged"
        assert expected in result["state"]["message"]
    simulated = kschedx("simulate", "--apply", path, "-s", cluster, "-o", "json")
    assert (simulated.code, [state["name"] for state in document(simulated)["states"]]) == (1, ["NotChanged"])


@pytest.mark.parametrize("manifest", [workload("Deployment"), workload("StatefulSet", serviceName="web"), _job()])
def test_an_unchanged_manifest_is_not_a_refused_update(manifest: Manifest, tmp_path: Path) -> None:
    stored = changed(manifest, "spec.template.metadata.labels.job-name", "web")
    path, cluster = write(tmp_path, manifest, name="app.yaml"), write(tmp_path, NODE, stored)
    result = document(kschedx("why", path, "-s", cluster, "-o", "json"))
    assert result["outcome"] == "Scheduled"


def test_an_unchanged_manifest_has_its_pods(tmp_path: Path) -> None:
    manifest, owner = workload("ReplicaSet", replicas=1), {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    own = pod("web-a", on="node-01", metadata={"ownerReferences": [{**owner, "uid": "u", "controller": True}]})
    path, cluster = write(tmp_path, manifest, name="app.yaml"), write(tmp_path, NODE, manifest, own)
    assert "its only replica has a node" in kschedx("why", path, "-s", cluster).out


def test_an_error_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeselector: {a: b}\n  containers:\n"
        "  - name: main\n    image: x\n    resource: {}\n"
    )
    result = kschedx("why", path, "-s", write(tmp_path, NODE))
    assert result.code == 2
    assert result.err.splitlines() == [
        f'error: {path}:5: Pod a: spec.nodeselector: unknown field (did you mean "nodeSelector"?)',
        f'error: {path}:9: Pod a: spec.containers[0].resource: unknown field (did you mean "resources"?)',
    ]


@pytest.mark.parametrize("listed", [False, True])
def test_a_json_manifest_with_a_key_twice_is_refused(tmp_path: Path, *, listed: bool) -> None:
    text = json.dumps(POD).replace('"containers"', '"nodeName": "a", "nodeName": "b", "containers"', 1)
    (tmp_path / "pod.json").write_text(f'{{"kind": "List", "items": [{text}]}}' if listed else text)
    result = kschedx("why", "pod.json", "-s", write(tmp_path, NODE), cwd=tmp_path)
    assert (result.code, result.err) == (2, 'error: pod.json:1: key "nodeName" is written twice\n')


def test_a_selector_that_does_not_match_the_template_is_refused(tmp_path: Path) -> None:
    result = run_why(tmp_path, changed(workload("Deployment"), "spec.selector.matchLabels.app", "other"))
    assert result.code == 2
    text = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
    assert text in result.err


@pytest.mark.parametrize(
    ("name", "hint"), [("kustomization.yaml", "kubectl kustomize"), ("Chart.yaml", "helm template")]
)
@pytest.mark.parametrize("folder_name", ["app", "a; touch x"])
def test_a_folder_with_templates_is_an_error(folder_name: str, name: str, hint: str, tmp_path: Path) -> None:
    folder = tmp_path / folder_name
    folder.mkdir()
    (folder / name).write_text("resources: []\n")
    result = kschedx("why", folder, "-s", write(tmp_path, NODE))
    assert result.code == 2
    assert f"({hint} {shlex.quote(str(folder))} | kschedx why -)" in result.err


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    (tmp_path / "app").mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    result = kschedx("why", tmp_path / "app", "-s", write(tmp_path, NODE))
    assert (result.code, result.err) == (2, f"error: {tmp_path / 'app'}: permission denied\n")


def test_too_many_manifests_are_refused(tmp_path: Path) -> None:
    item = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    (tmp_path / "all.json").write_text("\n".join([item] * 10_001))
    result = kschedx("why", "-f", tmp_path / "all.json", "-s", write(tmp_path, NODE))
    assert (result.code, result.out) == (2, "")
    assert "all.json: more than 10,000 objects, too many for manifests (pass a dump of a cluster with -s)" in result.err


def test_a_pod_is_found_by_the_prefix_of_its_name(tmp_path: Path) -> None:
    cluster = write(tmp_path, NODE, POD)
    assert kschedx("why", "pod", "web", "-n", "shop", "-s", cluster).out.startswith("✓ shop/web-0")
    both = write(tmp_path, NODE, POD, changed(POD, "metadata.name", "web-1"), name="both.yaml")
    result = kschedx("why", "pod/web", "-n", "shop", "-s", both)
    assert result.code == 2
    assert "2 that start with it (web-0, web-1)" in result.err


def test_pods_of_daemon_sets_use_room(tmp_path: Path) -> None:
    """All manifests share one queue, whether one or all of them are explained."""
    daemons = workload("DaemonSet", "agent")
    daemons["spec"]["template"]["spec"] = at(small_pod("agent", "1"), "spec")
    replicas = workload("Deployment", replicas=3)
    replicas["spec"]["template"]["spec"] = at(small_pod("web", "1"), "spec")
    cluster = tuple(node(name, allocatable={"cpu": "2", "memory": "8Gi", "pods": "9"}) for name in ("a", "b"))
    together = run_why(tmp_path, daemons, replicas, cluster=cluster)
    assert together.code == 1
    assert together.out.splitlines()[0] == "✗ 5 pods: 4 can be scheduled, 1 unschedulable"
    story = run_why(tmp_path, daemons, replicas, cluster=cluster, options="deploy/web")
    assert story.out.splitlines()[0] == "✗ default/deploy/web: 2 of 3 replicas can be scheduled, 1 stays pending"
    alone = run_why(tmp_path, daemons, replicas, cluster=cluster, options="deploy/web --alone")
    assert alone.code == 0


def test_affinity_of_a_daemon_set_matches_pods_beside_it(tmp_path: Path) -> None:
    """In any order of the files: pending pods are retried after other pods are assigned."""
    agent, proxy = workload("DaemonSet", "agent"), workload("DaemonSet", "proxy")
    term = {"labelSelector": {"matchLabels": {"app": "agent"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    proxy["spec"]["template"]["spec"] = {**at(POD, "spec"), "affinity": affinity}
    named = [changed(item, "metadata.namespace", "infra") for item in (proxy, agent)]
    pod_of_default = changed(POD, "metadata.namespace", "default")
    cluster = tuple(node(name, labels={"kubernetes.io/hostname": name}) for name in ("a", "b"))
    together = run_why(tmp_path, *named, pod_of_default, cluster=cluster)
    assert together.out.startswith("✓ 5 pods can be scheduled")
    story = run_why(tmp_path, *named, pod_of_default, cluster=cluster, options="ds/proxy -n infra")
    assert story.out.startswith("✓ DaemonSet infra/proxy fits 2 eligible nodes")


@pytest.mark.parametrize(
    ("kind", "version", "current"),
    [
        ("DaemonSet", "extensions/v1beta1", "apps/v1"),
        ("Deployment", "apps/v1beta1", "apps/v1"),
        ("StatefulSet", "apps/v1beta2", "apps/v1"),
        ("CronJob", "batch/v1beta1", "batch/v1"),
    ],
)
def test_a_version_that_is_no_longer_served_is_refused(tmp_path: Path, kind: str, version: str, current: str) -> None:
    job = {"spec": {"template": {"spec": {**at(POD, "spec"), "restartPolicy": "Never"}}}}
    spec = {"schedule": "0 0 * * *", "jobTemplate": job} if kind == "CronJob" else at(workload(kind), "spec")
    old = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    result = run_why(tmp_path, old)
    assert result.code == 1
    text = " ".join(result.out.split())
    assert f'is not created: the API server refuses it because no matches for kind "{kind}" in version' in text
    assert f"fix set its apiVersion to {current}" in text
    assert run_why(tmp_path, old, options="--kube-version 1.13").code == 0
    path = write(tmp_path, old, name="old.yaml")
    result = kschedx("simulate", "-f", path, "-s", write(tmp_path, NODE))
    text = " ".join(result.out.split())
    assert (result.code, "web is not created: the API server refuses it because no matches for kind" in text) == (
        1,
        True,
    )
    assert f"fix set its apiVersion to {current}" in text


@pytest.mark.parametrize("version", ["apps/v2", "apps/v1beta3"])
def test_a_version_that_never_existed_is_refused(tmp_path: Path, version: str) -> None:
    result = run_why(tmp_path, changed(workload("Deployment"), "apiVersion", version))
    text = " ".join(result.out.split())
    assert f'refuses it because no matches for kind "Deployment" in version "{version}"' in text
    assert "fix set its apiVersion to apps/v1" in text


@pytest.mark.parametrize(
    ("kind", "version", "current", "last", "subject"),
    [
        ("PodDisruptionBudget", "policy/v1beta1", "policy/v1", "1.24", "default/pdb/high"),
        ("PriorityClass", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", "1.21", "pc/high"),
        ("StorageClass", "storage.k8s.io/v1beta1", "storage.k8s.io/v1", "1.21", "sc/high"),
        (
            "CSIStorageCapacity",
            "storage.k8s.io/v1beta1",
            "storage.k8s.io/v1",
            "1.26",
            "default/csistoragecapacity/high",
        ),
        ("DeviceClass", "resource.k8s.io/v1alpha2", "resource.k8s.io/v1", "1.30", "deviceclass/high"),
        (
            "ClusterRole",
            "rbac.authorization.k8s.io/v1beta1",
            "rbac.authorization.k8s.io/v1",
            "1.21",
            "clusterrole/high",
        ),
        ("Ingress", "extensions/v1beta1", "networking.k8s.io/v1", "1.21", "default/ingress/high"),
    ],
)
def test_an_object_of_a_version_that_is_not_served_is_not_applied(
    tmp_path: Path, kind: str, version: str, current: str, last: str, subject: str
) -> None:
    old: Manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "high"}}
    if kind in ("StorageClass", "PriorityClass"):
        old |= {"provisioner": "x.example.com"} if kind == "StorageClass" else {"value": 5}
    refusal = f'no matches for kind "{kind}" in version "{version}"'
    user = changed(POD, "spec.priorityClassName", "high") if kind == "PriorityClass" else POD
    result = run_why(tmp_path, old, user)
    assert result.code == (1 if kind == "PriorityClass" else 0)
    assert f"{kind} high is ignored, the API server refuses it: {refusal} (use {current})" in " ".join(
        result.out.split()
    )
    assert is_served(minor(last), version, kind)
    path = write(tmp_path, old, name="old.yaml")
    simulated = kschedx("simulate", "-f", path, "-s", write(tmp_path, NODE))
    assert (simulated.code, refusal in " ".join(simulated.out.split())) == (1, True)
    assert simulated.out.startswith("✗ 1 object not created")
    assert f"✗ {subject} is not created: the API server refuses it" in simulated.out
    converts = kind in ("DeviceClass", "Ingress")
    fix = f"convert it to {current}, which has other fields" if converts else f"set its apiVersion to {current}"
    assert f"fix       {fix}\n" in simulated.out


@pytest.mark.parametrize(("kind", "current"), [("Deployment", "apps/v1"), ("Pod", "v1")])
def test_a_manifest_without_an_api_version_is_an_error(tmp_path: Path, kind: str, current: str) -> None:
    written = {**(POD if kind == "Pod" else workload(kind))}
    del written["apiVersion"]
    result = run_why(tmp_path, written)
    assert result.code == 2
    assert f"apiVersion not set ({kind} is in {current})" in result.err


def test_an_applied_workload_that_is_refused_is_not_called_a_pod(tmp_path: Path) -> None:
    path = write(tmp_path, changed(workload("Deployment"), "apiVersion", "extensions/v1beta1"), name="old.yaml")
    result = kschedx("why", "deploy/web", "--apply", path, "-s", write(tmp_path, NODE))
    assert result.out.startswith("✗ default/deploy/web is not created: the API server refuses it")


def test_a_job_of_a_version_that_is_no_longer_served_keeps_its_selector(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**at(POD, "spec"), "restartPolicy": "Never"}}
    job: Manifest = {
        "apiVersion": "batch/v1beta1",
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {"template": template},
    }
    out = run_why(tmp_path, job).out
    assert "set its apiVersion to batch/v1" in out
    assert "selector" not in out


def test_a_pod_that_cannot_be_updated_has_a_note(tmp_path: Path) -> None:
    cluster = write(tmp_path, NODE, small_pod("web"))
    path = write(tmp_path, changed(small_pod("web", "2"), "spec.nodeSelector", {"disk": "ssd"}), name="pod.yaml")
    refused = "the API server refuses to change spec.nodeSelector, requests.cpu of container main"
    out = kschedx("why", path, "-s", cluster, columns=200).out
    assert f"pod default/web exists, and {refused}: delete the pod first" in out
    same = write(tmp_path, small_pod("web", "1000m"), name="same.yaml")
    assert "delete the pod first" not in kschedx("why", same, "-s", cluster).out


def test_pods_of_helm_tests_are_left_out(tmp_path: Path) -> None:
    test = changed(BIG_POD, "metadata.annotations", {"helm.sh/hook": "test"})
    result = run_why(tmp_path, workload("Deployment"), test)
    assert (result.code, "big-0, which only `helm test` creates" in result.out) == (0, True)
    assert run_why(tmp_path, test).code == 1


@pytest.mark.parametrize(("selector", "code"), [({}, 3), ({"disk": "ssd"}, 1)])
def test_an_exported_pod_is_answered_as_the_pod_of_the_cluster(
    selector: dict[str, str], code: int, tmp_path: Path
) -> None:
    """Its event contradicts the dump. With an edited spec, it is a new pod."""
    message = "0/1 nodes are available: 1 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    admitted = pod("web", priority=0, preemptionPolicy="PreemptLowerPriority")
    stored = {**admitted, "status": {"phase": "Pending", "conditions": [condition]}}
    at(stored, "metadata")["creationTimestamp"] = created = "2026-11-01T00:00:00Z"
    cluster = write(tmp_path, node("n"), stored, name="cluster.yaml")
    exported = write(tmp_path, changed(stored, "spec.nodeSelector", selector), name="exported.yaml")
    assert kschedx("why", "pod/web", "-s", cluster).code == 3
    assert kschedx("why", exported, "-s", cluster).code == code
    nodes = write(tmp_path, changed(node("n"), "metadata.creationTimestamp", created), name="nodes.yaml")
    identified = write(tmp_path, changed(stored, "metadata.uid", "u"), name="pod.yaml")
    assert kschedx("why", identified, "-s", nodes).code == 3


def test_pods_of_a_rollout_that_are_yet_to_come_do_not_hide_those_that_run(tmp_path: Path) -> None:
    """The pods that a stalled rollout has yet to replace exist twice, and moves free the host ports of those that
    run."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "w", "controller": True}
    labels = {"app": "w"}

    def spec(cpu: str, memory: str, *, on: str = "", **more: object) -> Manifest:
        requests = {"requests": {"cpu": cpu, "memory": memory}}
        return {"containers": [{"name": "c", "image": "x", "resources": requests, **more}], "nodeName": on}

    def stateful_set(template: Manifest) -> Manifest:
        return {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "w", "namespace": "default", "uid": "w"},
            "spec": {
                "replicas": 5,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template},
            },
            "status": {"replicas": 5, "currentRevision": "w-1", "updateRevision": "w-2"},
        }

    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    pods = list[Manifest]()
    for ordinal, (node_name, revision) in enumerate((("a", 1), ("c", 1), ("", 2), ("c", 2), ("a", 2))):
        metadata = {"name": f"w-{ordinal}", "namespace": "default", "uid": f"w-{ordinal}", "ownerReferences": [owner]}
        hashed = {"labels": {**labels, "controller-revision-hash": f"w-{revision}"}}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]} if node_name else {}
        own = spec("200m", "3000Mi", on=node_name, **(port if revision == 1 else {}))
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata | hashed, "spec": own, "status": status})
    nodes = [
        node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}),
        node("b", allocatable={"cpu": "2", "memory": "8Gi", "pods": "110"}, unschedulable=True),
        node("c", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}),
    ]
    cluster = write(tmp_path, *nodes, stateful_set(spec("200m", "3000Mi")), *pods)
    larger = write(tmp_path, stateful_set(spec("2000m", "64Mi")), name="larger.yaml")
    result = kschedx("why", larger, "-s", cluster)
    assert (result.code, "2 of 5 replicas can be scheduled" in result.out) == (1, True), result.err


@pytest.mark.parametrize(
    ("kind", "more"), [("ReplicaSet", {}), ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}})]
)
def test_pending_pods_keep_the_previous_template(kind: str, more: Manifest, tmp_path: Path) -> None:
    """A new template that fits helps only pods that are created later."""
    template: Manifest = {"metadata": {"labels": {"app": "web"}}, "spec": at(small_pod("web", "9"), "spec")}
    old: Manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template, **more},
    }
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "1", "controller": True}
    pods = [
        {**small_pod(f"web-{number}", "9"), "metadata": {"name": f"web-{number}", "namespace": "default"}}
        for number in range(2)
    ]
    pods = [
        changed(changed(each, "metadata.ownerReferences", [owner]), "metadata.labels", {"app": "web"}) for each in pods
    ]
    cluster = write(tmp_path, NODE, old, *pods)
    smaller = changed(old, "spec.template.spec", at(small_pod("web", "1"), "spec"))
    result = kschedx("why", write(tmp_path, smaller, name="web.yaml"), "-s", cluster)
    text = " ".join(result.out.split())
    assert result.code == 1
    assert "is unschedulable" in text
    assert (
        f"2 pods of default/{'rs' if kind == 'ReplicaSet' else 'sts'}/web keep the previous template until deleted"
        in text
    )

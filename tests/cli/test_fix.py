"""`why --fix N` prints a fix, and `--try` tries a change of the pod. Nothing is sent."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from kschedx.errors import InputError
from kschedx.render.manifests import patched_manifests
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx

KEPT = {"key": "old", "operator": "Exists"}
DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "d"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "tolerations": [{"key": "own", "operator": "Exists"}],
                "containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "4"}}}],
            },
        },
    },
}
REPLICA_SET: Manifest = {
    **DEPLOYMENT,
    "kind": "ReplicaSet",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "uid": "r",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
        ],
    },
}
OF_REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
INJECTED = {"name": "proxy", "image": "proxy:1"}
WAITING = pod(
    "web-1-x",
    namespace="shop",
    labels={"app": "web"},
    metadata={"ownerReferences": [OF_REPLICA_SET]},
    containers=[
        INJECTED,
        {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "4"}}},
    ],
    tolerations=[
        {"key": "own", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ],
)
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "110"}


def cluster(tmp_path: Path, *objects: Manifest) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def patch_of(command: str) -> list[dict[str, object]]:
    """The JSON patch in a kubectl command."""
    (text,) = (word for word in shlex.split(command) if word.startswith("--patch="))
    result: list[dict[str, object]] = json.loads(text.removeprefix("--patch="))
    return result


@pytest.mark.parametrize("owners", [[DEPLOYMENT, REPLICA_SET], [REPLICA_SET]], ids=["all", "without the Deployment"])
def test_a_fix_changes_the_owners_template(tmp_path: Path, owners: list[Manifest]) -> None:
    path = cluster(tmp_path, node("a", allocatable=ROOM), *owners, WAITING)
    result = kschedx("why", "pod/web-1-x", "-n", "shop", "-s", path, "--fix", "2", "-o", "patch")
    assert result.out.startswith("kubectl patch deployment.apps web -n shop --type=json --patch=")
    (operation,) = patch_of(result.out)
    # the template has one container less than the pod, to which admission has added one
    assert operation["path"] == "/spec/template/spec/containers/0/resources"
    assert operation["value"] == {"requests": {"cpu": "2"}}


def test_a_fix_changes_the_template_of_a_rollout(tmp_path: Path) -> None:
    """The controller creates a new ReplicaSet from it."""
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "o", "controller": True}
    replica_set = {**REPLICA_SET, "metadata": {**at(REPLICA_SET, "metadata"), "ownerReferences": [owner]}}
    path = cluster(tmp_path, node("a", allocatable=ROOM), replica_set, WAITING)
    result = kschedx("why", "pod/web-1-x", "-n", "shop", "-s", path, "--fix", "2", "-o", "patch")
    assert result.out.startswith("kubectl patch rollout.argoproj.io web -n shop --type=json --patch=")
    (operation,) = patch_of(result.out)
    assert operation["path"] == "/spec/template/spec/containers/0/resources"


@pytest.mark.parametrize(
    ("owners", "changed"), [([OF_REPLICA_SET], "/spec/template/spec/affinity"), ([], "/spec/affinity")]
)
def test_a_patch_has_no_labels_that_controllers_set(owners: list[Manifest], changed: str, tmp_path: Path) -> None:
    """Such as pod-template-hash: the next pod of a changed template has another hash."""
    labels = {"app": "web", "pod-template-hash": "1"}
    wanted = {"key": "app", "operator": "In", "values": ["db"]}
    added = {"key": "pod-template-hash", "operator": "In", "values": ["1"]}
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchExpressions": [wanted, added]},
        "matchLabelKeys": ["pod-template-hash"],
    }
    waiting = pod(
        "web-1-x",
        namespace="shop",
        labels=labels,
        metadata={"ownerReferences": owners},
        containers=[{"name": "web", "image": "web:1"}],
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    there = node("a", labels={"kubernetes.io/hostname": "a"})
    path = cluster(tmp_path, there, DEPLOYMENT, REPLICA_SET, waiting)
    result = kschedx("why", "pod/web-1-x", "-n", "shop", "-s", path, "--fix", "1", "-o", "patch")
    (operation,) = patch_of(result.out)
    assert operation["path"] == changed
    (preferred,) = at(operation, "value.podAffinity.preferredDuringSchedulingIgnoredDuringExecution")
    assert preferred["podAffinityTerm"]["labelSelector"] == {"matchExpressions": [wanted]}


def test_a_toleration_is_added_to_those_of_the_template(tmp_path: Path) -> None:
    tainted = node("a", taints=["team=a:NoSchedule"])
    path = cluster(tmp_path, tainted, DEPLOYMENT, REPLICA_SET, WAITING)
    result = kschedx("why", "pod/web-1-x", "-n", "shop", "-s", path, "--fix", "1", "-o", "patch")
    (operation,) = patch_of(result.out)
    added = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    assert operation["value"] == [{"key": "own", "operator": "Exists"}, added]


LOAD: Manifest = {"name": "load", "image": "load:1", "resources": {"requests": {"cpu": "4"}}}


def job(more: Manifest) -> Manifest:
    """A Job as the API server stores it; `more` goes into its metadata."""
    uid = {"batch.kubernetes.io/controller-uid": "j", "controller-uid": "j"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "load", "namespace": "shop", "uid": "j", **more},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "j"}},
            "template": {
                "metadata": {"labels": {"job-name": "load", **uid}},
                "spec": {"restartPolicy": "Never", "containers": [LOAD]},
            },
        },
    }


def owned(kind: str, name: str) -> Manifest:
    return {"ownerReferences": [{"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "u", "controller": True}]}


OF_JOB = pod(
    "load-x",
    namespace="shop",
    metadata=owned("Job", "load"),
    containers=[INJECTED, LOAD],
)


def test_a_job_is_deleted_and_recreated(tmp_path: Path) -> None:
    """Its template is immutable, and fields that the API server sets cannot be created."""
    path = cluster(tmp_path, node("a", allocatable=ROOM), job({}), OF_JOB)
    result = kschedx("why", "pod/load-x", "-n", "shop", "-s", path, "--fix", "2", "-o", "patch")
    comment, command = result.out.splitlines()
    assert comment.startswith("# the template of a Job cannot be changed: this deletes the Job with its pods")
    assert command.startswith("kubectl get job.batch load -n shop -o json | kubectl patch --local -f - --type=json ")
    assert command.endswith(" -o json | kubectl replace --force -f -")
    resources, *removed = patch_of(command)
    assert resources["path"] == "/spec/template/spec/containers/0/resources"
    assert [item["path"] for item in removed] == [
        "/spec/selector",
        "/spec/template/metadata/labels/controller-uid",
        "/spec/template/metadata/labels/batch.kubernetes.io~1controller-uid",
    ]


def test_a_fix_of_a_cron_jobs_pod_changes_job_and_cron_job(tmp_path: Path) -> None:
    nightly: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "shop", "uid": "u"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": job({})["spec"]}},
    }
    of_cron_job = job(owned("CronJob", "nightly"))
    path = cluster(tmp_path, node("a", allocatable=ROOM), nightly, of_cron_job, OF_JOB)
    result = kschedx("why", "pod/load-x", "-n", "shop", "-s", path, "--fix", "2", "-o", "patch")
    deletes, replaced, comment, command = result.out.splitlines()
    assert deletes.startswith("# the template of a Job cannot be changed: this deletes the Job with its pods")
    assert replaced.endswith(" -o json | kubectl replace --force -f -")
    assert comment == "# for future Jobs: an existing Job keeps its template"
    assert command.startswith("kubectl patch cronjob.batch nightly -n shop --type=json --patch=")
    (operation,) = patch_of(command)
    assert operation["path"] == "/spec/jobTemplate/spec/template/spec/containers/0/resources"


def test_the_changed_manifest_of_a_job_is_printed(tmp_path: Path) -> None:
    path = cluster(tmp_path, node("a", allocatable=ROOM))
    template = {"spec": {"restartPolicy": "Never", "containers": [LOAD]}}
    written = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load"}, "spec": {"template": template}}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(written))
    result = kschedx("why", str(file), "-s", path, "--fix", "2", "-o", "yaml")
    assert yaml.safe_load(result.out)["kind"] == "Job"
    file.write_text(result.out)
    assert kschedx("why", str(file), "-s", path).code == 0


def test_a_bare_pod_is_deleted_and_recreated(tmp_path: Path) -> None:
    path = cluster(tmp_path, node("a", taints=["team=a:NoSchedule"]), pod("me"))
    result = kschedx("why", "pod/me", "-s", path, "--fix", "1", "-o", "patch")
    assert result.out.startswith("kubectl get pod me -n default -o json | kubectl patch --local -f - --type=json ")
    assert result.out.endswith(" -o json | kubectl replace --force -f -\n")


def test_a_fix_shows_its_kubectl_command(tmp_path: Path) -> None:
    path = cluster(tmp_path, node("a", unschedulable=True), pod("me"))
    assert "$ kubectl uncordon a" in kschedx("why", "pod/me", "-s", path).out
    assert kschedx("why", "pod/me", "-s", path, "--fix", "1", "-o", "patch").out == "kubectl uncordon a\n"


def test_a_taint_is_removed_as_the_screen_says(tmp_path: Path) -> None:
    """A patch of the whole list would also remove a taint that was added since."""
    path = cluster(tmp_path, node("a", taints=["team=a:NoSchedule", "old=b:NoSchedule"]), pod("me", tolerations=[KEPT]))
    command = "kubectl taint node a team=a:NoSchedule-"
    assert f"$ {command}\n" in kschedx("why", "pod/me", "-s", path).out
    assert kschedx("why", "pod/me", "-s", path, "--fix", "2", "-o", "patch").out == f"{command}\n"


def test_the_changed_manifest_is_printed(tmp_path: Path) -> None:
    path = cluster(tmp_path, node("a", allocatable=ROOM))
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(DEPLOYMENT))
    outcome = kschedx("why", str(file), "-s", path, "--fix", "2", "-o", "yaml")
    result = yaml.safe_load(outcome.out)
    assert result["kind"] == "Deployment"
    assert result["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    file.write_text(outcome.out)
    assert kschedx("why", str(file), "-s", path).code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("spec.containers[0].resources.requests.cpu=500m", 0),
        ("spec.containers[0].resources.requests.cpu=3", 1),
        ("spec.template.spec.containers[0].resources.requests.cpu=2", 0),
        ("spec.containers[0].resources.requests.cpu-", 0),
        ("spec.nodeSelector['a.b/c']=d", 1),
    ],
)
def test_a_change_is_tried(tmp_path: Path, change: str, code: int) -> None:
    asks = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "4"}}}
    path = cluster(tmp_path, node("a", allocatable=ROOM), pod("me", containers=[asks]))
    result = kschedx("why", "pod/me", "-s", path, "--try", change)
    assert result.code == code
    assert f"tried with {change}; without it: Unschedulable" in " ".join(result.out.split())


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "1"}],
        {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}},
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": None}}]}}}},
    ],
)
def test_a_patch_is_tried(tmp_path: Path, patch: object) -> None:
    asks = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "4"}}}
    path = cluster(tmp_path, node("a", allocatable=ROOM), pod("me", containers=[asks]))
    file = tmp_path / "patch.yaml"
    file.write_text(yaml.safe_dump(patch))
    assert kschedx("why", "pod/me", "-s", path, "--try", str(file)).code == 0


def test_a_fix_without_a_manifest_is_printed_as_a_command_only() -> None:
    with pytest.raises(InputError, match="the fix changes no manifest") as raised:
        patched_manifests((), lambda _: None)
    assert raised.value.hint == "-o patch prints it"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fix", "9", "-o", "patch"], "no fix 9: there is 1"),
        (["--fix", "1"], "--fix prints a fix to apply (-o patch or -o yaml)"),
        (["-o", "patch"], "-o patch prints a fix (name one with --fix N)"),
        (["--try", "spec"], '--try spec: found "spec" (PATH=VALUE, PATH- to remove, or a file with a patch)'),
        (
            ["--try", "status.phase=Running"],
            '--try status.phase=Running: "status.phase" starts with neither spec nor metadata',
        ),
        (
            ["--try", "spec.containers[7].name=x"],
            '--try spec.containers[7].name=x: spec.containers[7].name: there is no "7" (there are main)',
        ),
        (
            ["--try", "spec.nodeSelektor.disk=ssd"],
            '--try spec.nodeSelektor.disk=ssd: spec.nodeSelektor: unknown field (did you mean "nodeSelector"?)',
        ),
        (["--try", "spec.hostname-"], '--try spec.hostname-: spec.hostname: there is no "hostname"'),
    ],
)
def test_an_impossible_change_is_a_one_line_error(tmp_path: Path, options: list[str], message: str) -> None:
    path = cluster(tmp_path, node("a", unschedulable=True), pod("me"))
    result = kschedx("why", "pod/me", "-s", path, *options)
    assert (result.code, result.err.strip()) == (2, f"error: {message}")


# --- what is only in a file


def of_file(tmp_path: Path, manifest: Manifest, *there: Manifest, output: str = "patch", number: int = 2) -> str:
    file = tmp_path / "new.json"
    file.write_text(json.dumps(manifest))
    path = cluster(tmp_path, node("a", allocatable=ROOM), *there)
    result = kschedx("why", str(file), "-s", path, "--fix", str(number), "-o", output)
    assert result.err == ""
    return result.out


def applied(script: str) -> Manifest:
    """Return the only manifest that a script applies."""
    head, _, rest = script.partition("kubectl apply --server-side -f - <<'EOF'\n")
    assert head.startswith("# "), script
    assert rest.endswith("EOF\n"), script
    result: Manifest = yaml.safe_load(rest.removesuffix("EOF\n"))
    return result


def cpu_of(template: object) -> str:
    assert isinstance(template, dict)
    return str(template["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_a_new_object_is_applied(tmp_path: Path) -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    metadata = {**at(DEPLOYMENT, "metadata"), "annotations": annotations}
    script = of_file(tmp_path, {**DEPLOYMENT, "metadata": metadata})
    assert script.startswith("# Deployment web is not in the cluster in this form")
    result = applied(script)
    spec = result["spec"]
    assert isinstance(spec, dict)
    assert cpu_of(spec["template"]) == "2"
    assert result["metadata"] == {
        "name": "web",
        "namespace": "shop",
    }  # no uid, which is of nothing that is there, and not what kubectl last sent
    assert cpu_of(yaml.safe_load(of_file(tmp_path, DEPLOYMENT, output="yaml"))["spec"]["template"]) == "2"


def test_an_unchanged_object_is_patched(tmp_path: Path) -> None:
    assert of_file(tmp_path, DEPLOYMENT, DEPLOYMENT, REPLICA_SET).startswith(
        "kubectl patch deployment.apps web -n shop"
    )


def test_an_object_with_a_changed_template_is_applied(tmp_path: Path) -> None:
    old = json.loads(json.dumps(DEPLOYMENT).replace("web:1", "web:0"))
    spec = applied(of_file(tmp_path, DEPLOYMENT, old))["spec"]
    assert isinstance(spec, dict)
    assert cpu_of(spec["template"]) == "2"


def test_a_bare_pod_of_a_file(tmp_path: Path) -> None:
    asks = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "4"}}}]
    bare: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me"}, "spec": {"containers": asks}}
    assert cpu_of(applied(of_file(tmp_path, bare))) == "2"
    generated = {**bare, "metadata": {"generateName": "me-"}}
    script = of_file(tmp_path, generated)
    assert "\nkubectl create -f - <<'EOF'\n" in script
    assert "  generateName: me-\n  namespace: default\n" in script


def test_the_template_of_a_custom_resource(tmp_path: Path) -> None:
    rollout = {**DEPLOYMENT, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    result = applied(of_file(tmp_path, rollout))
    spec = result["spec"]
    assert isinstance(spec, dict)
    assert (result["kind"], cpu_of(spec["template"])) == ("Rollout", "2")


def test_a_new_claim_is_not_deleted_first(tmp_path: Path) -> None:
    """The claim does not exist yet. No fix guesses where its volume is."""
    claim: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "labels": {"keep": "me"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "c", "image": "c"}], "volumes": [volume]}
    bare: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me"}, "spec": spec}
    by_hand: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "by-hand"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",
    }
    script = of_file(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [claim, bare]}, by_hand, number=1)
    title, head, first, *_ = script.splitlines()
    assert title == "# create a volume of 1Gi ReadWriteOnce of class by-hand for claim default/data"
    assert (head, first) == ("# a volume like this, with its source (csi, nfs, local, ...):", "#   apiVersion: v1")
    assert all(line.startswith("#") for line in script.splitlines())
    assert "status:" not in script
    assert "bind-completed" not in script, "a claim that carries the mark of a binding is Lost for good"
    assert script.endswith(
        "# kube-controller-manager binds PersistentVolumeClaim default/data to its volume by itself\n"
    )


def test_an_autoscaler_adds_the_node() -> None:
    story = Path(__file__).parents[2] / "fixtures/karpenter-taint-not-tolerated"
    question = ("why", str(story / "pod.yaml"), "-s", str(story / "cluster.yaml"))
    fix, *_ = json.loads(kschedx(*question, "-o", "json").out)["fixes"]
    assert (fix["certainty"], fix["feasibleNodes"]) == ("verified", ["gpu-new"])
    assert [change.get("by") for change in fix["changes"]] == [None, "Karpenter"]
    script = kschedx(*question, "--fix", "1", "-o", "patch").out.splitlines()
    assert script[0].startswith("kubectl get pod trainer-5f6d -n shop -o json | kubectl patch --local ")
    assert script[1:] == ["# Karpenter adds the node by itself"]


def test_a_fix_has_the_number_of_replicas_that_it_helps(tmp_path: Path) -> None:
    wanted = {**DEPLOYMENT, "spec": {**at(DEPLOYMENT, "spec"), "replicas": 3}}
    small = node("n", allocatable={"cpu": "6", "memory": "8Gi", "pods": "9"})
    gpu = node("g", allocatable={"cpu": "8", "memory": "8Gi", "pods": "9"}, taints=["dedicated=gpu:NoSchedule"])
    path, manifest = cluster(tmp_path, small, gpu), tmp_path / "web.json"
    manifest.write_text(json.dumps(wanted))
    screen = kschedx("why", str(manifest), "-s", path).out
    assert "add 2 nodes like n · for all 2" in screen
    assert "lower requests.cpu of container web from 4 to 2 · for all 2" in screen, (
        "the first replica has the new request"
    )
    script = kschedx("why", str(manifest), "-s", path, "--fix", "1", "-o", "patch").out
    assert script.startswith("# add 2 nodes like n\n")
    document = json.loads(kschedx("why", str(manifest), "-s", path, "-o", "json").out)
    assert document["fixes"][0]["replicas"] == {"title": "add 2 nodes like n", "pods": 2, "of": 2}


def test_a_fix_does_not_help_replicas_that_are_not_created(tmp_path: Path) -> None:
    """A StatefulSet in order creates no replica after one that stays pending."""
    asks = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "3"}}}]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": asks}}
    database: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "db"}}, "template": template},
    }
    metadata = {**owned("StatefulSet", "db"), "labels": {"app": "db"}}
    first = pod("db-0", on="n", containers=asks, metadata=metadata, status={"phase": "Running"})
    second = pod("db-1", containers=asks, metadata=metadata, status={"phase": "Pending"})
    small = node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"})
    result = kschedx("why", "sts/db", "-s", cluster(tmp_path, small, database, first, second), "-o", "json")
    lower = next(fix for fix in json.loads(result.out)["fixes"] if fix["title"].startswith("lower requests.cpu"))
    assert (lower["replicas"]["pods"], lower["replicas"]["of"]) == (1, 4)


def test_a_fix_does_not_help_pods_that_its_rollout_removes(tmp_path: Path) -> None:
    """Of the pending pods of both templates, one of a third template gets a node."""
    asks = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "3"}}}]
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    old, new = (
        {**spec, "template": {"metadata": {"labels": {"app": "web", "v": v}}, "spec": {"containers": asks}}}
        for v in "ab"
    )
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}}

    def made(kind: str, name: str, spec: Manifest, **metadata: object) -> Manifest:
        named = {"name": name, "namespace": "default", "uid": name, **metadata}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": named, "spec": spec}

    def of(kind: str, name: str) -> Manifest:
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
        return {"ownerReferences": [owner], "labels": {"app": "web", "v": name[-1]}}

    sets = [made("ReplicaSet", f"web-{v}", its, **of("Deployment", "web")) for v, its in (("a", old), ("b", new))]
    pods = [pod(f"web-{v}-{n}", containers=asks, metadata=of("ReplicaSet", f"web-{v}")) for v in "ab" for n in "01"]
    tainted = node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}, taints=["t:NoSchedule"])
    path = cluster(tmp_path, tainted, made("Deployment", "web", {**new, **rolling}), *sets, *pods)
    fixes = json.loads(kschedx("why", "deploy/web", "-s", path, "-o", "json").out)["fixes"]
    tolerate = next(fix for fix in fixes if fix["title"].startswith("tolerate"))
    assert (tolerate["replicas"]["pods"], tolerate["replicas"]["of"]) == (1, 4)


def test_a_new_node_is_described_by_its_allocatable(tmp_path: Path) -> None:
    asks = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "40"}}}]
    path = cluster(tmp_path, node("a", allocatable=ROOM), pod("me", containers=asks))
    script = kschedx("why", "pod/me", "-s", path, "--fix", "1", "-o", "patch").out
    title, head, *lines = script.splitlines()
    assert title == "# add a node with at least 40 CPU free"
    assert head == "# create a node like this with the tool that creates the cluster's nodes:"
    described = yaml.safe_load("\n".join(line.removeprefix("#") for line in lines))
    assert described["status"]["allocatable"]["cpu"] == "40"

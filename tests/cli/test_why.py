"""`kschedx why`: its target, its input, its output, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kschedx as library
from tests import storage_builders as storage
from tests.builders import Manifest, node, pod
from tests.cli.manifests import BIG_POD, NODE, POD, changed, configuration, small_pod, write
from tests.command import kschedx
from tests.device_builders import claim, device, device_class, request, resource_slice

CLAIMING = changed(POD, "spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}])
UNKNOWN = "lists.range(1000000000).size() > 1"
"""A device selector with a CEL library that kschedx lacks."""
DEVICES = [
    NODE,
    device_class(),
    resource_slice("node-01", device("gpu-0")),
    changed(claim("gpu", request(select=[UNKNOWN])), "metadata.namespace", "shop"),
]
GATED = changed(POD, "spec.schedulingGates", [{"name": "acme.io/quota"}])


@pytest.mark.parametrize(
    ("manifest", "code"),
    [(POD, 0), (BIG_POD, 1), (GATED, 1), (CLAIMING, 3)],
    ids=["fits", "too big", "gated", "devices"],
)
@pytest.mark.parametrize("output", [(), ("-o", "wide"), ("-o", "json"), ("-o", "yaml"), ("-o", "name")], ids=" ".join)
def test_the_exit_code_is_that_of_the_verdict(
    manifest: Manifest, code: int, output: tuple[str, ...], tmp_path: Path
) -> None:
    result = kschedx("why", write(tmp_path, manifest, name="pod.yaml"), "-s", write(tmp_path, *DEVICES), *output)
    assert result.code == code
    assert bool(result.err) == (code == 3)


def test_an_undecided_answer_has_its_reason(tmp_path: Path) -> None:
    result = kschedx("why", write(tmp_path, CLAIMING, name="pod.yaml"), "-s", write(tmp_path, *DEVICES))
    (line,) = result.err.splitlines()
    assert result.out == ""
    assert "shop/web-0" in line
    assert UNKNOWN in line


def named(*arguments: str | Path, stdin: str = "") -> str:
    """Return the pod that a command explains."""
    result = kschedx("why", *arguments, "-o", "json", stdin=stdin)
    assert result.code == 0, result.err
    texts = json.loads(result.out)["pod"]
    return f"{texts['namespace']}/{texts['name']}"


@pytest.mark.parametrize("target", ["pod/web-0", "po/web-0", "pods/web-0", "web-0"])
def test_a_pod_of_the_snapshot(target: str, tmp_path: Path) -> None:
    assert named(target, "-n", "shop", "-s", write(tmp_path, NODE, POD)) == "shop/web-0"


def test_a_pod_by_namespace_and_name(tmp_path: Path) -> None:
    assert named("shop/web-0", "-s", write(tmp_path, NODE, POD)) == "shop/web-0"


def test_a_manifest_without_a_namespace_has_that_of_the_option(tmp_path: Path) -> None:
    bare = changed(POD, "metadata", {"name": "web-0"})
    path = write(tmp_path, bare, name="pod.yaml")
    cluster = write(tmp_path, NODE)
    assert named(path, "-s", cluster) == "default/web-0"
    assert named(path, "-n", "shop", "-s", cluster) == "shop/web-0"


def test_standard_input_as_the_pod(tmp_path: Path) -> None:
    assert named("-", "-s", write(tmp_path, NODE), stdin=json.dumps(POD)) == "shop/web-0"


def test_standard_input_as_the_cluster(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}
    assert named("pod/web-0", "-n", "shop", "-s", "-", stdin=json.dumps(listed)) == "shop/web-0"


def test_several_snapshots_are_one_cluster(tmp_path: Path) -> None:
    files = [write(tmp_path, item, name=name) for name, item in (("a.yaml", NODE), ("b.json", node("node-02")))]
    result = kschedx("why", write(tmp_path, POD, name="pod.yaml"), "-s", files[0], "-s", files[1], "-o", "json")
    assert sorted(json.loads(result.out)["filter"]["nodes"]) == ["node-01", "node-02"]


WORKLOADS = {
    "deploy": ("apps/v1", "Deployment"),
    "rs": ("apps/v1", "ReplicaSet"),
    "sts": ("apps/v1", "StatefulSet"),
    "ds": ("apps/v1", "DaemonSet"),
    "job": ("batch/v1", "Job"),
    "rc": ("v1", "ReplicationController"),
}


@pytest.mark.parametrize("short", WORKLOADS)
def test_a_workload_is_explained_by_its_next_pod(short: str, tmp_path: Path) -> None:
    version, kind = WORKLOADS[short]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    spec: Manifest = {"selector": {"app": "web"} if short == "rc" else {"matchLabels": {"app": "web"}}}
    spec["template"] = template
    if short == "job":  # which gets its selector from the API server
        spec = {
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": changed(POD, "spec.restartPolicy", "Never")["spec"],
            }
        }
    workload: Manifest = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    cluster = write(tmp_path, NODE, workload)
    for spelled in (f"{short}/web", f"{kind}/web", f"{kind.lower()}s/web"):
        assert named(spelled, "-n", "shop", "-s", cluster).startswith("shop/web")
    assert named(write(tmp_path, workload, name="workload.yaml"), "-s", cluster).startswith("shop/web")


def test_a_replica_set_of_a_deployment_that_lacks_pods(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    metadata = {"namespace": "shop", "name": "web"}
    of_deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata, "uid": "d"},
        "spec": spec,
    }
    its = {"namespace": "shop", "name": "web-1", "uid": "r", "ownerReferences": [owner]}
    replica_set: Manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": its, "spec": spec}
    cluster = write(tmp_path, NODE, of_deployment, replica_set)
    assert named("rs/web-1", "-n", "shop", "-s", cluster).startswith("shop/web-1")


def test_a_running_pod_is_explained_without_itself(tmp_path: Path) -> None:
    """The pod uses all of the node and would not fit beside itself."""
    running = changed(changed(POD, "spec.containers.0.resources.requests.cpu", "4"), "spec.nodeName", "node-01")
    result = kschedx("why", "pod/web-0", "-n", "shop", "-s", write(tmp_path, NODE, running), "-o", "name")
    assert (result.code, result.out) == (0, "node/node-01\n")


def test_the_pod_selects_the_profile(tmp_path: Path) -> None:
    packing: Manifest = {"schedulerName": "packing", "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}
    config = write(tmp_path, configuration({"schedulerName": "default-scheduler"}, packing), name="config.yaml")
    files = (write(tmp_path, POD, name="pod.yaml"), "-s", write(tmp_path, NODE), "--config", config, "-o", "json")
    plain, packed = (json.loads(kschedx("why", *files, *more).out) for more in ((), ("--profile", "packing")))
    assert plain["profile"]["schedulerName"] == "default-scheduler"
    assert packed["profile"]["schedulerName"] == "packing"
    names = [{plugin["name"] for plugin in item["profile"]["extensionPoints"]["score"]} for item in (plain, packed)]
    assert names[0] - names[1] == {"ImageLocality"}


def test_details_of_a_node_name_no_other_node(tmp_path: Path) -> None:
    cluster = write(tmp_path, NODE, node("node-02"), node("node-03"))
    files = (write(tmp_path, BIG_POD, name="pod.yaml"), "-s", cluster)
    texts = kschedx("why", *files, "--node", "node-01").out
    assert "node-01" in texts
    assert "node-03" not in texts
    both = kschedx("why", *files, "--node", "node-01", "--node", "node-02").out
    assert both.index("node-01") < both.index("node-02")


def test_nodes_all_has_a_row_for_every_node(tmp_path: Path) -> None:
    names = [f"node-{number:02}" for number in range(60)]
    result = kschedx(
        "why", write(tmp_path, BIG_POD, name="pod.yaml"), "-s", write(tmp_path, *map(node, names)), "--nodes", "all"
    )
    assert not [name for name in names if name not in result.out]


def test_orphans_can_be_ignored(tmp_path: Path) -> None:
    cluster = write(tmp_path, NODE, pod("lost", on="gone"))
    files = (write(tmp_path, POD, name="pod.yaml"), "-s", cluster)
    assert kschedx("why", *files).code == 2
    assert kschedx("why", *files, "--ignore-orphans").code == 0


def test_the_version_is_printed() -> None:
    assert kschedx("--version").out == f"kschedx {library.__version__}\n"


# --- colour

ESCAPE = "\x1b["


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=["a pipe", "forced", "forbidden"],
)
def test_color_follows_the_terminal_and_the_environment(env: dict[str, str], coloured: bool, tmp_path: Path) -> None:
    files = (write(tmp_path, BIG_POD, name="pod.yaml"), "-s", write(tmp_path, NODE))
    assert (ESCAPE in kschedx("why", *files, env=env).out) == coloured


# --- processes


def process(*arguments: str | Path, more: str = "") -> subprocess.CompletedProcess[bytes]:
    words = " ".join(f"'{word}'" for word in (Path(sys.executable).parent / "kschedx", *arguments))
    shell = ["bash", "-o", "pipefail", "-c", f"{words} {more}"]
    return subprocess.run(shell, capture_output=True, check=False, env=os.environ | {"COLUMNS": "100"})


@pytest.mark.parametrize("output", ["wide", "json"])
def test_a_closed_pipe_is_no_error(output: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [node(f"node-{i}") for i in range(400)]})
    files = (write(tmp_path, BIG_POD, name="pod.yaml"), "-s", cluster)
    result = process("why", *files, "-o", output, more="| head -c 10")
    assert (len(result.stdout), result.stderr) == (10, b"")


def test_the_installed_command_answers_the_same(tmp_path: Path) -> None:
    files = (write(tmp_path, BIG_POD, name="pod.yaml"), "-s", write(tmp_path, NODE))
    result, here = process("why", *files), kschedx("why", *files)
    assert (result.returncode, result.stdout.decode(), result.stderr.decode()) == (here.code, here.out, here.err)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "hugepages-1Gi"])
@pytest.mark.parametrize("release", ["1.26", "1.33", "1.36"])
def test_a_resource_without_nodes_has_no_users(tmp_path: Path, resource: str, release: str) -> None:
    answer = changed(POD, "spec.containers.0.resources", {"limits": {resource: "1Gi", "memory": "1Gi"}})
    files = write(tmp_path, answer, name="pod.yaml"), "-s", write(tmp_path, NODE)
    result = kschedx("why", *files, "--kube-version", release)
    assert (result.code, result.err) == (1, "")
    assert f"no node has {resource}" in result.out


def test_a_pod_on_a_missing_node_is_left_out(tmp_path: Path) -> None:
    lost = changed(small_pod("lost"), "spec.nodeName", "node-99")
    stored = changed(lost, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    pod = write(tmp_path, POD, name="pod.yaml")
    result = kschedx("why", pod, "-s", write(tmp_path, NODE, stored), "-o", "json")
    (note,) = (item for item in json.loads(result.out)["notes"] if item["id"] == "orphans")
    assert (result.code, note["nodes"]) == (0, ["node-99"])
    assert note["text"] == "1 pod runs on nodes that do not exist and is ignored: node-99"
    assert "there is no node" in kschedx("why", pod, "-s", write(tmp_path, NODE, stored), "--refuse-orphans").err
    assert "there is no node" in kschedx("why", pod, "-s", write(tmp_path, NODE, lost)).err


@pytest.mark.parametrize(
    ("objects", "answer"),
    [
        ([], "? shop/web is undecided: where the pod fits is not known"),
        ([NODE], "? shop/web is undecided: PersistentVolumeClaim data is not in this dump"),
    ],
)
def test_a_uid_alone_shows_that_an_api_server_has_stored_a_pod(
    objects: list[Manifest], answer: str, tmp_path: Path
) -> None:
    """Dumps without creation timestamps are dumps: what they lack is not taken to be missing."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = changed(changed(small_pod("web", namespace="shop"), "spec.volumes", volumes), "metadata.uid", "u")
    result = kschedx("why", "pod/web", "-n", "shop", "-s", write(tmp_path, *objects, pod))
    assert (result.code, result.out.startswith(answer)) == (3, True)


def test_a_running_pod_shows_that_its_node_was_left_out(tmp_path: Path) -> None:
    node = changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    running = changed(changed(small_pod("web"), "spec.nodeName", "node-99"), "status.phase", "Running")
    stored = changed(running, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    result = kschedx("why", "web", "-s", write(tmp_path, node, stored))
    assert (result.code, "does not exist" in result.out) == (3, False)
    assert "undecided: node node-99 is not known" in result.out


def test_a_pod_in_a_missing_namespace_is_refused(tmp_path: Path) -> None:
    stored = changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "store"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "shop"}
    workload: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    for manifest in (POD, workload):
        result = kschedx("why", write(tmp_path, manifest, name="new.yaml"), "-s", write(tmp_path, stored, space))
        assert (result.code, result.err) == (1, "")
        assert 'namespaces "shop" not found' in result.out


def budget(name: str, **labels: str) -> Manifest:
    spec = {"selector": {"matchLabels": labels}, "minAvailable": 1}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        ("pvc/data", 1, "shop/db-0 is unschedulable"),
        ("persistentvolumeclaim/unused", 1, "no pod uses claim shop/unused: this is what a pod with it would meet"),
        ("persistentvolumeclaim/unused", 1, "a pod that uses claim shop/unused is unschedulable"),
        ("pvc/waiting", 0, "shop/pvc/waiting is pending until a pod uses it"),
        ("pvc/bound", 0, "shop/pvc/bound is bound to volume pv"),
        ("pvc/bound", 0, "it is being expanded to 2Gi, FileSystemResizePending"),
        ("pvc/failing", 1, "x.io/disks reports: ProvisioningFailed: disk full"),
        ("pvc/lost", 1, "shop/pvc/lost has failed: Lost"),
        ("pvc/leaves", 1, "shop/pvc/leaves is being deleted (since 2026-01-01T00:00:00Z)"),
        ("pvc/date", 2, 'there is no PersistentVolumeClaim "date" in namespace "shop" (did you mean "data"?)'),
        ("pdb/db", 0, "shop/pdb/db allows no eviction: it needs 1 healthy pod and has 0: shop/db-0 is pending"),
        ("pdb/none", 0, "shop/pdb/none protects no pods: its selector matches none"),
        ("pdb/none", 0, "no pod in namespace shop has app=none\n"),
        ("pdb/near", 0, "no pod in namespace shop has app=dbb (did you mean app=db?)"),
        ("pdb/web", 2, 'there is no PodDisruptionBudget "web" in namespace "shop"'),
        ("hpa/web", 2, 'there is no HorizontalPodAutoscaler "web" in namespace "shop"'),
        ("nodepool/general", 2, 'there is no NodePool "general"'),
        ("quota/team", 2, 'there is no ResourceQuota "team" in namespace "shop"'),
        ("sc/disks", 2, "`kschedx why` explains pods, workloads, nodes, namespaces, Services, "),
    ],
)
def test_a_claim_is_answered_by_its_pods(target: str, code: int, text: str, tmp_path: Path) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claims: list[Manifest] = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "shop"}}
        for name in ("data", "unused")
    ]
    status = {"phase": "Bound", "conditions": [{"type": "FileSystemResizePending", "status": "True"}]}
    shop, gone = {"namespace": "shop"}, {"namespace": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    claims += [
        storage.storage_class(),
        storage.volume("pv"),
        storage.claim("waiting", metadata=shop),
        storage.storage_class("disks", provisioner="x.io/disks"),
        storage.claim("failing", storage_class="disks", metadata=shop),
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "shop"},
            "involvedObject": {"kind": "PersistentVolumeClaim", "name": "failing", "namespace": "shop"},
            "reason": "ProvisioningFailed",
            "message": "disk full",
        },
        {**storage.claim("bound", volume="pv", size="2Gi", metadata=shop), "status": status},
        storage.claim("lost", volume="lost", phase="Lost", metadata=shop),
        storage.claim("leaves", volume="pv", metadata=gone),
        budget("db"),
        budget("none", app="none"),
        budget("near", app="dbb"),
    ]
    db = changed(changed(BIG_POD, "metadata.name", "db-0"), "spec.volumes", volumes)
    db = changed(db, "metadata.labels", {"app": "db"})
    result = kschedx("why", target, "-n", "shop", "-s", write(tmp_path, NODE, db, *claims))
    assert result.code == code
    assert text in result.out + result.err


def test_a_budget_whose_labels_no_pod_has_together(tmp_path: Path) -> None:
    labels: dict[str, Manifest] = {"db-0": {"app": "db", "zone": "a"}, "web": {"tier": "back"}}
    pods = [
        changed(changed(changed(BIG_POD, "metadata.name", name), "metadata.labels", own), "metadata.namespace", "shop")
        for name, own in labels.items()
    ]
    both = budget("both", app="db", zone="a", tier="back")
    result = kschedx("why", "pdb/both", "-n", "shop", "-s", write(tmp_path, NODE, *pods, both))
    assert "no pod meets all of app=db, tier=back, zone=a: shop/db-0 lacks tier=back\n" in result.out


def test_a_budget_allows_what_the_api_server_allows(tmp_path: Path) -> None:
    """It evicts no pod that several budgets cover, and none while a status is that of an earlier generation."""
    web = changed(changed(small_pod("web"), "spec.nodeName", "node-01"), "metadata.namespace", "shop")
    running = changed(web, "status", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    free = changed(budget("db"), "spec.minAvailable", 0)
    objects = (NODE, running, free, changed(free, "metadata.name", "second"))
    result = kschedx("why", "pdb/db", "-n", "shop", "-s", write(tmp_path, *objects), columns=200)
    assert "shop/pdb/db allows no eviction: other PDBs cover its pods as well" in result.out
    assert "delete PDB shop/second, since another PDB covers the same pod" in result.out
    status = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0}
    behind = changed(changed(free, "metadata.generation", 2), "status", status)
    result = kschedx("why", "pdb/db", "-n", "shop", "-s", write(tmp_path, NODE, running, behind), columns=200)
    assert "allows no eviction until kube-controller-manager updates its status (generation 1 of 2)" in result.out


def test_a_budget_in_the_way_of_a_drain_has_fixes(tmp_path: Path) -> None:
    web = changed(changed(small_pod("web"), "spec.nodeName", "node-01"), "metadata.namespace", "shop")
    running = changed(web, "status", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    result = kschedx("why", "pdb/db", "-n", "shop", "-s", write(tmp_path, NODE, running, budget("db")))
    assert "shop/pdb/db allows no eviction: it needs 1 healthy pod and has 1" in result.out
    assert "lower minAvailable of PDB shop/db from 1 to 0, then its pods on node-01 can be evicted" in result.out
    other = budget("other", app="x")
    guarded = changed(changed(running, "metadata.name", "x"), "metadata.labels", {"app": "x"})
    both = kschedx("why", "pdb/db", "-n", "shop", "-s", write(tmp_path, NODE, running, guarded, budget("db"), other))
    assert "PDB shop/other" not in both.out


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("payment", "did you mean shop/deploy/payments?"),
        ("payments-5d-x", "did you mean shop/deploy/payments, which has such pods?"),
        ("payments", "did you mean shop/deploy/payments? payments-6c-a, payments-6c-b"),
        ("payments-6c-x", 'did you mean "payments-6c-'),
        ("payments-6c-new2", "it is not created yet: ask about shop/deploy/payments, which creates such pods"),
        ("other-new", "and no pod"),
        ("node-01", "did you mean node/node-01?"),
        ("node/NODE-01", 'did you mean "node-01"?'),
        ("deploy/payments/", "did you mean deploy/payments?"),
        ("deploy/payments-6c-a", "did you mean pod/payments-6c-a?"),
        ("sts/payments", "did you mean shop/deploy/payments?"),
        ("db-2", 'no pod "db-2" in namespace "shop" (StatefulSet db has 2 replicas: db-0 to db-1)'),
    ],
)
def test_a_name_without_a_pod_may_mean_another_object(target: str, hint: str, tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "payments-6c", "uid": "u", "controller": True}
    named = {"labels": {"pod-template-hash": "6c"}, "ownerReferences": [owner]}
    pods = [
        pod(f"payments-6c-{letter}", namespace="shop", on="node-01", metadata={"namespace": "shop", **named})
        for letter in "ab"
    ]
    db: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"}}
    db["spec"] = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": {"spec": BIG_POD["spec"]}}
    result = kschedx("why", target, "-n", "shop", "-s", write(tmp_path, NODE, *pods, db))
    assert (result.code, hint in result.err) == (2, True), result.err


def test_a_cron_job_with_too_short_a_deadline_has_a_note(tmp_path: Path) -> None:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}}
    spec = {"schedule": "* * * * *", "startingDeadlineSeconds": 5, "jobTemplate": template}
    cron: Manifest = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": spec}
    out = kschedx("why", "cronjob/report", "-s", write(tmp_path, NODE, cron)).out
    assert "startingDeadlineSeconds 5 is too short" in out

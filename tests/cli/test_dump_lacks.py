"""`why`, `doctor`, and snapshots of a dump that lacks objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Manifest, at, node, reported
from tests.cli.manifests import write
from tests.command import kschedx
from tests.sources.dumps import forms
from tests.storage_builders import claim, csi_node, storage_class

SPEC: Manifest = {"containers": [{"name": "app", "image": "app"}]}
STORED_NODE: Manifest = {**node("n1"), "metadata": {"name": "n1", "creationTimestamp": "2026-01-01T00:00:00Z"}}
LACK = "pods of namespaces that were not gathered"


def dump(folder: Path) -> Path:
    (folder / "must-gather.tar").write_bytes(forms.tar(forms.must_gather()))
    return folder / "must-gather.tar"


def document(*arguments: str | Path) -> dict[str, Any]:
    outcome = kschedx("why", *arguments, "-o", "json")
    assert outcome.code in (0, 1, 3), outcome.err
    result: dict[str, Any] = json.loads(outcome.out)
    return result


def notes(value: dict[str, Any]) -> list[str]:
    return [note["text"] for note in value["notes"] if note["id"] == "dump"]


def pod(name: str = "p", **spec: object) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [], **spec}}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(tmp_path, pod(containers=[{"name": "main", "image": "app:v1"}]), name="pod.yaml")


def test_why_notes_that_nodes_may_be_fuller(manifest: Path, tmp_path: Path) -> None:
    (first, *_) = notes(document(manifest, "-s", dump(tmp_path)))
    assert first == f"a must-gather does not hold {LACK}: nodes may be fuller than shown (details: kschedx doctor)"


def test_a_snapshot_of_the_dump_has_the_same_note(manifest: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    assert kschedx("snapshot", "-s", dump(tmp_path), "-o", small).code == 0
    before, after = document(manifest, "-s", dump(tmp_path)), document(manifest, "-s", small)
    assert notes(after) == notes(before)
    result = kschedx("doctor", "-s", small).out
    assert "must-gather" in result
    assert LACK in " ".join(result.split())


@pytest.mark.parametrize("question", [("why", "pod/web-0"), ("why", "--all-pending"), ("simulate",)])
def test_nodes_without_allocatable_leave_a_pod_undecided(question: Sequence[str], tmp_path: Path) -> None:
    unsized = {**STORED_NODE, "status": {"conditions": []}}
    cluster = write(tmp_path, unsized, pod("web-0", **SPEC), name="cluster.yaml")
    assert kschedx(*question, "-s", cluster).code == 3
    assert kschedx(*question, "-s", write(tmp_path, STORED_NODE, pod("web-0", **SPEC), name="sized.yaml")).code == 0


@pytest.mark.parametrize(
    ("others", "lacking"),
    [((), "holds no pods and no nodes"), ((STORED_NODE,), "holds no pods\n")],
)
def test_events_without_their_pods_leave_them_undecided(
    others: Sequence[Manifest], lacking: str, tmp_path: Path
) -> None:
    message = "0/5 nodes are available: 5 Insufficient cpu."
    event: Manifest = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-0"}, "reason": "FailedScheduling",
        "message": message, "source": {"component": "default-scheduler"}, "lastTimestamp": "2026-01-02T00:00:00Z",
    }  # fmt: skip
    cluster = write(tmp_path, event, *others, name="events.yaml")
    result = kschedx("why", "web-0", "-n", "shop", "-s", cluster)
    assert (result.code, message in result.out, lacking in result.out) == (3, True, True)
    small = tmp_path / "small.json"
    assert kschedx("snapshot", "-s", cluster, "-o", small).code == 0
    of_snapshot = kschedx("why", "web-0", "-n", "shop", "-s", small)
    assert (of_snapshot.code, of_snapshot.out) == (3, result.out)
    pending = kschedx("why", "--all-pending", "-s", cluster)
    assert (pending.code, "1 pod is undecided" in pending.out) == (3, True)
    assert kschedx("simulate", "-s", cluster).code == 3
    assert kschedx("nodes", "-s", cluster).code == (0 if others else 3)
    written = write(tmp_path, {**pod("web-0", **SPEC), "metadata": {"name": "web-0", "namespace": "shop"}})
    assert "exists" not in kschedx("why", written, "-s", cluster).out


@pytest.mark.parametrize(
    ("options", "code"), [((), 3), (("--cordon", "a"), 3), (("-f", "new.json"), 0)], ids=["as it is", "cordon", "apply"]
)
def test_a_dump_without_pods_does_not_say_that_none_is_pending(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    item = {**node("a"), "metadata": {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"}}
    new = {**pod("new"), "spec": {"containers": [{"name": "main", "image": "new:1"}]}}
    write(tmp_path, new, name="new.json")
    result = kschedx("simulate", *options, "-s", write(tmp_path, item), cwd=tmp_path)
    unknown = "? the dump does not hold any pod, so whether one is pending is unknown"
    assert (result.code, result.out.splitlines()[0] == unknown) == (code, code == 3)


@pytest.mark.parametrize("owner", ["ReplicaSet", "DaemonSet"])
def test_a_dump_without_budgets_may_lack_those_that_stop_a_drain(owner: str, tmp_path: Path) -> None:
    item = {**node("a"), "metadata": {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"}}
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "web", "controller": True}
    running = pod("web", nodeName="a")
    at(running, "metadata")["ownerReferences"] = [reference]
    result = kschedx("drain", "a", "-s", write(tmp_path, item, running))
    note = "note: the dump holds no PodDisruptionBudgets: those of the cluster may stop a drain"
    assert (note in result.err) is (owner == "ReplicaSet")


def test_an_event_that_contradicts_a_dump_of_one_namespace(tmp_path: Path) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: full"}
    created = {"creationTimestamp": "2026-01-02T00:00:00Z"}
    item = {**node("a"), "metadata": {"name": "a", **created}}
    waits = {**pod("x"), "status": {"phase": "Pending", "conditions": [condition]}}
    waits["metadata"] = {"name": "x", "namespace": "shop", **created}
    dump = write(tmp_path, item, waits, name="dump.yaml")
    for question in (("why", "x", "-n", "shop"), ("simulate",)):
        result = kschedx(*question, "-s", dump)
        assert (result.code, "the dump has pods of namespace shop only" in result.out) == (3, True)
        assert "event     0/1 nodes: full" in result.out


def test_an_event_that_contradicts_that_the_pods_of_a_daemon_set_fit(tmp_path: Path) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: full"}
    labels, created = {"app": "x"}, {"creationTimestamp": "2026-01-02T00:00:00Z"}
    daemon_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "x", "namespace": "shop", **created},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": SPEC}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "x", "controller": True}
    metadata = {"namespace": "shop", "labels": labels, "ownerReferences": [owner], **created}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}}
    runs: Manifest = {**pod("x-1"), "metadata": {"name": "x-1", **metadata}, "spec": {**SPEC, "nodeName": "a"}}
    waits: Manifest = {**runs, "metadata": {"name": "x-2", **metadata}, "spec": {**SPEC, "affinity": pinned}}
    waits["status"] = {"phase": "Pending", "conditions": [condition]}
    nodes = [{**node(name), "metadata": {"name": name, **created}} for name in ("a", "b")]
    dump = write(tmp_path, *nodes, daemon_set, {**runs, "status": {"phase": "Running"}}, waits, name="dump.yaml")
    whole = kschedx("why", "ds/x", "-n", "shop", "-s", dump)
    assert (whole.code, "? DaemonSet shop/x fits 1 of 2 eligible nodes; 1 pod undecided" in whole.out) == (3, True)
    assert "because   the dump has pods of namespace shop only" in whole.out
    assert kschedx("why", "ds/x", "-n", "shop", "-s", dump, "--node", "b").code == 3
    assert kschedx("why", "ds/x", "-n", "shop", "-s", dump, "--node", "a").code == 0


def test_an_event_about_kinds_that_the_dump_lacks(tmp_path: Path) -> None:
    message = "0/1 nodes are available: 1 node(s) did not have enough free storage."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    named = {"name": "n", "creationTimestamp": "2026-01-02T00:00:00Z"}
    attached = csi_node("n", driver="topolvm.io")
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    waits = {**pod("x", volumes=claims), "status": {"phase": "Pending", "conditions": [condition]}}
    waits["metadata"] = {"name": "x", "namespace": "default", "creationTimestamp": "2026-01-02T00:00:00Z"}
    late = storage_class(provisioner="topolvm.io")
    source = write(tmp_path, {**node("n"), "metadata": named}, attached, late, claim("data"), waits)
    result = kschedx("why", "x", "-s", source)
    assert result.code == 3
    assert "no persistentvolumes, csistoragecapacities or csidrivers, on which this event depends" in " ".join(
        result.out.split()
    )


def test_a_driver_reports_about_a_claim_of_a_dump_without_classes_and_nodes(tmp_path: Path) -> None:
    named = {"name": "data", "namespace": "default", "creationTimestamp": "2026-01-02T00:00:00Z"}
    event = reported("x.io/disks", "ProvisioningFailed", "UnauthorizedOperation", pod="default/data")
    event["involvedObject"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    result = kschedx("why", "pvc/data", "-s", write(tmp_path, {**claim("data"), "metadata": named}, event))
    assert (result.code, "ProvisioningFailed: UnauthorizedOperation" in " ".join(result.out.split())) == (1, True)
    assert "does not exist" not in result.out


NOT_TRIGGERED = "pod didn't trigger scale-up: 1 max node group size reached"


def test_an_autoscaler_reports_what_a_dump_without_nodes_does_not_show(tmp_path: Path) -> None:
    event = reported("cluster-autoscaler", "NotTriggerScaleUp", NOT_TRIGGERED, pod="default/x")
    named = {"name": "x", "namespace": "default", "creationTimestamp": "2026-01-02T00:00:00Z"}
    result = kschedx("why", "x", "-s", write(tmp_path, {**pod("x"), "metadata": named}, event))
    out = " ".join(result.out.split())
    assert (result.code, f"cluster-autoscaler reports: {NOT_TRIGGERED}" in out) == (3, True)
    assert "fix raise the maximum of the node group" in out


@pytest.mark.parametrize("arguments", [("drain", "n"), ("drain", "--each"), ("survive", "--each", "node")])
def test_the_outcome_is_unknown_in_a_dump_without_pods(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    stored = {**node("n"), "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    write(tmp_path, stored)
    result = kschedx(*arguments, "-s", "cluster.yaml", cwd=tmp_path)
    assert (result.code, result.out) == (3, "")
    assert "error: which pods the nodes run is not known: the dump holds no pods" in result.err


def test_a_kind_in_another_file_is_present(tmp_path: Path) -> None:
    gathered = tmp_path / "dump"
    forms.folder(gathered, forms.cluster_info())
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    uses = pod(containers=[{"name": "main", "image": "app:v1"}], volumes=claims)
    target = write(tmp_path, uses, name="pod.yaml")
    volume: Manifest = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {}}
    more = write(tmp_path, volume, name="more.yaml")
    (without,) = document(target, "-s", gathered)["unheard"]
    (with_it,) = document(target, "-s", gathered, "-s", more)["unheard"]
    assert (without["kind"], without["objects"]) == ("PersistentVolumeClaim", ["data"])
    assert "persistentvolumes," in without["completedBy"]
    assert "persistentvolumes," not in with_it["completedBy"]
    assert "storageclasses," in with_it["completedBy"]


def test_a_list_of_pods_has_the_note_once(tmp_path: Path) -> None:
    result = kschedx("why", "--all-pending", "-s", dump(tmp_path))
    assert result.err.startswith(f"note: a must-gather does not hold {LACK}")
    assert result.err.count("must-gather") == 1


NOT_REACHED = "0/1 nodes are available: 1 node(s) had volume node affinity conflict."


@pytest.mark.parametrize(
    ("message", "code"),
    [(NOT_REACHED, 3), ('0/1 nodes are available: persistentvolumeclaim "data" not found.', 1)],
)
def test_an_event_about_nodes_proves_that_the_claim_exists(tmp_path: Path, message: str, code: int) -> None:
    """The dump has no claims, and none of its running pods uses one."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "default"},
        "spec": {"containers": [{"name": "c"}], "volumes": volumes},
        "status": {"phase": "Pending", "conditions": [refused]},
    }
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), pod]}))
    result = kschedx("why", "db-0", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert result.code == code
    assert message in result.out
    assert ("create claim" in result.out) == (code == 1)
    assert ("about its cause: kschedx reason volume-node-affinity-mismatch" in result.out) == (code == 3)
    many = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=tmp_path, columns=400)
    fits = kschedx("fit", "db-0", "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert (many.code, fits.code) == (code, code)


def test_a_class_whose_kind_the_dump_lacks_leaves_every_answer_undecided(tmp_path: Path) -> None:
    stored = node("n1")
    at(stored, "metadata")["creationTimestamp"] = "2026-11-20T08:00:00Z"
    cluster = write(tmp_path, stored)
    manifest = write(tmp_path, pod("new", priorityClassName="high"), name="pod.yaml")
    for command in (("why", manifest), ("fit", manifest), ("simulate", "-f", manifest)):
        result = kschedx(*command, "-s", cluster)
        assert result.code == 3
        assert "? default/new is undecided: the priority of high is not known" in result.out
        assert "the dump holds no priorityclasses" in result.out
    assert document(manifest, "-s", cluster)["state"]["name"] == "NotRead"


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}, {"priorityClassName": "own"}),
        ({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "own"}, {"runtimeClassName": "own"}),
    ],
    ids=["PriorityClass", "RuntimeClass"],
)
def test_a_class_in_the_manifests_is_known(tmp_path: Path, given: Manifest, spec: Manifest) -> None:
    stored = node("n1")
    at(stored, "metadata")["creationTimestamp"] = "2026-11-20T08:00:00Z"
    new = pod("new", containers=[{"name": "c", "image": "x"}], **spec)
    manifests = write(tmp_path, {**given, "metadata": {"name": "own"}}, new, name="new.yaml")
    for command in (("why", manifests), ("simulate", "-f", manifests)):
        assert kschedx(*command, "-s", write(tmp_path, stored)).code == 0


_NODE = node("n1", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"})
GOLD = "PriorityClass gold is not in this dump: it has no priorityclasses"


def test_a_workload_that_runs_is_fine_whatever_the_dump_lacks(tmp_path: Path) -> None:
    """Where its pod would go now depends on it."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "s", "controller": True}
    template: Manifest = {"metadata": {"labels": {"app": "db"}}, "spec": SPEC}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    metadata: Manifest = {"name": "db-0", "uid": "p", "labels": {"app": "db"}, "ownerReferences": [owner]}
    runs = {
        **pod(volumes=volumes, nodeName="n1", **at(template, "spec")),
        "metadata": metadata,
        "status": {"phase": "Running"},
    }
    spec: Manifest = {"replicas": 1, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    spec = {**spec, "serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}
    stateful: dict[str, object] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "uid": "s"},
        "spec": spec,
    }
    for nodes, of_pod, of_set in (
        ((), ": where it would be assigned now is not known", "sts/db runs its only pod: db-0 on n1"),
        ((STORED_NODE,), "", "sts/db: it needs no more pods, 1 of 1 exist"),
    ):
        write(tmp_path, runs, stateful, *nodes, name="cluster.yaml")
        for target, code, says in (
            ("db-0", 3, f"? default/db-0 runs on n1{of_pod}"),
            ("sts/db", 0, f"✓ default/{of_set}"),
            ("--all-pending", 0, "✓ no pod is pending"),
        ):
            result = kschedx("why", target, "-s", "cluster.yaml", cwd=tmp_path, columns=400)
            assert (result.code, result.out.partition("\n")[0]) == (code, says)


@pytest.mark.parametrize(
    ("desired", "code", "says"),
    [(1, 0, "✓ default/ds/agent runs its only pod: agent-x on n1"), (2, 3, "? default/ds/agent is undecided: ")],
)
def test_a_daemon_set_of_a_dump_without_nodes(desired: int, code: int, says: str, tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}
    metadata: Manifest = {"name": "agent-x", "uid": "p", "labels": {"app": "agent"}, "ownerReferences": [owner]}
    template: Manifest = {"metadata": {"labels": {"app": "agent"}}, "spec": SPEC}
    runs = {
        **pod(nodeName="n1", containers=at(template, "spec")["containers"]),
        "metadata": metadata,
        "status": {"phase": "Running"},
    }
    named = {"name": "agent", "uid": "d"}
    daemon_set: dict[str, object] = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": named}
    daemon_set |= {"spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}}
    write(tmp_path, runs, {**daemon_set, "status": {"desiredNumberScheduled": desired}}, name="cluster.yaml")
    result = kschedx("why", "ds/agent", "-s", "cluster.yaml", cwd=tmp_path, columns=200)
    assert (result.code, result.out.startswith(says)) == (code, True)


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("why runs", 3, f"? default/runs runs on n1 scheduled now, it is undecided: {GOLD}"),
        ("why gold", 3, f"default/gold is undecided: {GOLD}"),
        ("why large", 3, f"default/large is undecided: {GOLD}"),
        ("why never", 1, "default/never is unschedulable: 0 of 1 node fits"),
        ("why small", 0, "default/small would be assigned to n1"),
        ("why --all-pending", 3, f"? 2 pods: {GOLD}"),
        ("simulate", 3, f"? 2 pods undecided: default/gold, default/large {GOLD}"),
        ("fit gold", 3, f"default/gold is undecided: {GOLD}"),
        ("fit small", 0, "small: 3 more fit"),
        ("drain n1 --force", 0, "can be drained"),
        ("why node n1", 0, f"? default/gold {GOLD}"),
        ("nodes", 0, "1 node, 1 can take a pod"),
    ],
)
def test_a_stored_pod_whose_class_the_dump_lacks_has_an_unknown_priority(
    tmp_path: Path, command: str, code: int, says: str
) -> None:
    """It may be a victim, and it may be nominated first: only answers that depend on this are undecided."""
    write(tmp_path, _NODE, *_pods_of_gold(), name="cluster.yaml")
    result = kschedx(*command.split(), "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert result.code == code, result.out
    assert says in " ".join(result.out.split()), result.out
    assert "PriorityClass gold does not exist" not in result.out
    assert "create PriorityClass" not in result.out


def test_a_priority_class_in_another_file_counts(tmp_path: Path) -> None:
    cluster = write(tmp_path, _NODE, *_pods_of_gold(), name="cluster.yaml")
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": -1}
    added = write(tmp_path, gold, name="missing.yaml")
    result = kschedx("why", "large", "-s", cluster, "-s", added)
    assert (result.code, "preemption makes room on n1" in result.out) == (1, True)


def test_an_unknown_priority_is_shown_as_unknown(tmp_path: Path) -> None:
    cluster = write(tmp_path, node("n1", allocatable={"cpu": "2", "memory": "8Gi", "pods": "9"}), *_pods_of_gold())
    assert "default/runs (priority unknown)" in kschedx("why", "large", "-s", cluster, columns=200).out


def test_a_drain_that_depends_on_missing_objects_is_undecided(tmp_path: Path) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "db"}}]
    running = pod("db-0", nodeName="n1", volumes=volumes)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db", "uid": "u", "controller": True}
    at(running, "metadata").update(ownerReferences=[owner], creationTimestamp="2026-11-20T08:00:00Z")
    cluster = write(tmp_path, node("n1"), node("n2"), {**running, "status": {"phase": "Running"}})
    result = kschedx("drain", "n1", "-s", cluster, columns=200)
    assert (result.code, "whether 1 evicted pod can be rescheduled is undecided" in result.out) == (3, True)
    assert ("fits no other node" in result.out, "default/db-0 → undecided" in result.out) == (False, True)


@pytest.mark.parametrize(("other", "is_noted"), [("shop", True), ("kube-system", False)])
def test_a_dump_of_one_namespace_has_a_note(tmp_path: Path, other: str, is_noted: bool) -> None:
    pods = [pod("a", nodeName="n1"), pod("b", nodeName="n1")]
    stored = node("n1")
    at(stored, "metadata")["creationTimestamp"] = "2026-11-20T08:00:00Z"
    at(pods[0], "metadata")["namespace"] = "shop"
    at(pods[1], "metadata").update(namespace=other)
    result = kschedx("drain", "n1", "--force", "-s", write(tmp_path, stored, *pods))
    assert ("the dump has pods of namespace shop only" in result.err) == is_noted


def _pods_of_gold() -> list[Manifest]:
    """A running and a pending pod of the class, and pods of known priority."""
    pods = []
    for name, cpu, spec in (
        ("runs", "1", {"priorityClassName": "gold", "nodeName": "n1"}),
        ("gold", "100m", {"priorityClassName": "gold"}),
        ("large", "1500m", {}),
        ("never", "1500m", {"preemptionPolicy": "Never", "priority": 0}),
        ("small", "300m", {}),
    ):
        manifest = pod(name, containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec)
        pods.append({**manifest, "status": {"phase": "Running" if "nodeName" in spec else "Pending"}})
    return pods


def test_a_claim_in_deletion_needs_no_class_and_no_volume_by_hand(tmp_path: Path) -> None:
    stored = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    deleted = {"name": "data", "namespace": "default", "deletionTimestamp": "2026-01-02T00:00:00Z", **stored}
    claim: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": deleted, "spec": spec}
    user = pod("web", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    only = node("a") | {"metadata": {"name": "a", **stored}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [only, claim, user]}))
    result = kschedx("why", "pod/web", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert (result.code, "claim default/data is being deleted" in result.out) == (1, True)
    assert "fix       delete and recreate claim default/data, create storage class slow, if it does not" in result.out


def test_a_file_that_is_named_after_its_kinds_shows_that_there_are_none(tmp_path: Path) -> None:
    """kubectl writes a list without a kind if the cluster has no such objects."""
    stored = {"creationTimestamp": "2026-11-20T08:00:00Z"}
    machine = node("n1")
    at(machine, "metadata").update(stored)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "db"}}]
    cluster = write(tmp_path, machine, pod("db-0", metadata=stored, volumes=volumes), name="cluster.yaml")
    before = kschedx("why", "db-0", "-s", cluster, columns=400)
    file = before.out.partition(" -o yaml > ")[2].split()[0]
    (tmp_path / file).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    after = kschedx("why", "db-0", "-s", cluster, "-s", tmp_path / file, columns=400)
    assert (before.code, after.code, 'persistentvolumeclaim "db" not found' in after.out) == (3, 1, True), after.out
    assert kschedx("why", "db-0", "-s", tmp_path, columns=400).code == 1

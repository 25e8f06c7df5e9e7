"""`kschedx why node/NAME`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, disruption_budget, node
from tests.cli.manifests import changed, small_pod, write
from tests.command import kschedx

TAKEN = "2026-01-02T00:00:00Z"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}
CLUSTER = (
    node("n1", allocatable=ROOM, taints=["team=a:NoSchedule"]),
    node("n2", allocatable=ROOM),
    changed(changed(small_pod("runs", "3"), "spec.nodeName", "n1"), "spec.priority", 7),
    changed(small_pod("fits"), "spec.tolerations", [{"operator": "Exists"}]),
    small_pod("big", "2"),
    changed(small_pod("gated"), "spec.schedulingGates", [{"name": "acme.io/wait"}]),
)


def test_the_screen_has_allocatable_pods_and_pending_pods_that_fit(tmp_path: Path) -> None:
    result = kschedx("why", "node", "n1", "-s", write(tmp_path, *CLUSTER))
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "✓ node n1: 1 of 10 pods, fits 1 of 3 pending pods",
        "  taints team=a:NoSchedule",
        "",
        "  resource  allocatable  requested  free",
        "  cpu                 4          3     1",
        "  memory            8Gi          0   8Gi",
        "  cpu used by  3 default/runs (priority 7)",
        "",
        "✓ default/fits fits",
        "✗ default/big does not fit: untolerated taint team=a:NoSchedule · insufficient cpu, short by 1 CPU",
        "✗ default/gated does not fit: scheduling gate acme.io/wait",
        "",
        "each pod is evaluated alone",
    ]


def test_the_document_and_the_output_of_names(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    document = json.loads(kschedx("why", "node/n1", "-s", cluster, "-o", "json").out)
    assert document["resources"]["cpu"]["holders"] == [{"pod": "default/runs", "priority": 7, "amount": 3000}]
    assert [(item["pod"], item["fits"], item["rejectedBy"]) for item in document["pending"]] == [
        ("default/big", False, ["TaintToleration", "NodeResourcesFit"]),
        ("default/fits", True, []),
        ("default/gated", False, ["SchedulingGates"]),
    ]
    assert kschedx("why", "no/n1", "-s", cluster, "-o", "name").out == "default/fits\n"


@pytest.mark.parametrize(("allocatable", "is_named"), [("0", True), ("7", True), ("8", False)])
def test_devices_that_a_plugin_reports_unhealthy_are_named(tmp_path: Path, allocatable: str, is_named: bool) -> None:
    gpus = node("n", allocatable={"cpu": "4", "pods": "9", "nvidia.com/gpu": allocatable})
    gpus = changed(gpus, "status.capacity", {"cpu": "5", "nvidia.com/gpu": "8"})
    out = kschedx("why", "node/n", "-s", write(tmp_path, gpus)).out
    assert (f"capacity 8 nvidia.com/gpu, allocatable {allocatable}; its device plugin" in out) is is_named


def test_the_document_has_the_trouble_of_the_node(tmp_path: Path) -> None:
    lost = node("n", taints=["node.kubernetes.io/network-unavailable:NoSchedule"], unschedulable=True)
    document = json.loads(kschedx("why", "node/n", "-s", write(tmp_path, lost), "-o", "json").out)
    assert (document["trouble"], document["unschedulable"]) == ("no network", True)
    assert document["taints"] == ["node.kubernetes.io/network-unavailable:NoSchedule"]


def test_a_missing_node_and_invalid_options_are_errors(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    result = kschedx("why", "node/n3", "-s", cluster)
    assert (result.code, 'no node "n3"' in result.err) == (2, True)
    assert kschedx("why", "node/n1", "-s", cluster, "--watch").code == 2


def test_pods_that_are_not_running_are_listed_with_their_state(tmp_path: Path) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    status = {"phase": "Pending", "containerStatuses": [waiting]}
    stuck = changed(changed(small_pod("stuck"), "spec.nodeName", "n1"), "status", status)
    other = changed(small_pod("other"), "spec.schedulerName", "volcano")
    where = ("-s", write(tmp_path, *CLUSTER, stuck, other))
    result = kschedx("why", "node/n1", *where)
    assert result.out.startswith("✗ node n1: 2 of 10 pods, 1 not running, fits 0 of 4 pending pods")
    assert "‖ default/stuck is scheduled to n1 and cannot pull the image of container main: ErrImagePull" in result.out
    assert "? default/other the scheduler volcano decides, not kube-scheduler" in result.out
    [state] = json.loads(kschedx("why", "node/n1", *where, "-o", "json").out)["states"]
    assert (state["name"], state["reason"]) == ("WaitingForKubelet", "ErrImagePull")


REMOVED: Manifest = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "leaving",
    [
        {"spec.unschedulable": True},
        {"metadata.deletionTimestamp": TAKEN},
        {"spec.taints": [REMOVED]},
        {"spec.taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
        {"spec.taints": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}]},
        {},
    ],
)
def test_budgets_that_keep_a_node_from_being_emptied(tmp_path: Path, leaving: dict[str, object]) -> None:
    """They are named if the node is cordoned, being deleted, or being removed; pods that are being deleted do not
    count."""
    machine = node("n1", allocatable=ROOM)
    for path, value in leaving.items():
        machine = changed(machine, path, value)
    runs = changed(changed(small_pod("web-0"), "spec.nodeName", "n1"), "metadata.labels", {"app": "web"})
    goes = changed(changed(small_pod("db-0"), "spec.nodeName", "n1"), "metadata.labels", {"app": "db"})
    budgets = [disruption_budget(name, labels={"app": name}, minAvailable=1) for name in ("web", "db")]
    cluster = write(tmp_path, machine, runs, changed(goes, "metadata.deletionTimestamp", TAKEN), *budgets)
    blocked = json.loads(kschedx("why", "node/n1", "-s", cluster, "-o", "json").out)["blockedBy"]
    is_named = bool(leaving) and "Candidate" not in str(leaving)
    assert blocked == (["default/web"] if is_named else [])
    text = "PDB default/web allows no eviction: it needs 1 healthy pod and has 1"
    assert (text in " ".join(kschedx("why", "node/n1", "-s", cluster).out.split())) == is_named


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        ({"spec.taints": [REMOVED]}, True),
        ({"metadata.deletionTimestamp": TAKEN}, True),
        ({"spec.unschedulable": True}, False),
        ({"metadata.deletionTimestamp": TAKEN, "metadata.labels": {}}, False),
    ],
)
def test_pods_that_karpenter_does_not_evict(tmp_path: Path, changes: dict[str, object], is_kept: bool) -> None:
    machine = changed(node("n1", allocatable=ROOM), "metadata.labels", {"karpenter.sh/nodepool": "default"})
    for path, value in changes.items():
        machine = changed(machine, path, value)
    runs = changed(small_pod("job-0"), "spec.nodeName", "n1")
    guarded = changed(runs, "metadata.annotations", {"karpenter.sh/do-not-disrupt": "true"})
    result = kschedx("why", "node/n1", "-s", write(tmp_path, machine, guarded))
    text = "Karpenter does not evict default/job-0 (karpenter.sh/do-not-disrupt)"
    assert (text in " ".join(result.out.split())) == is_kept


def test_a_node_out_of_service_that_is_ready_again(tmp_path: Path) -> None:
    back = node("n", taints=["node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"], allocatable=ROOM)
    fix = "  fix       remove taint node.kubernetes.io/out-of-service"
    for status, is_back in (("True", True), ("Unknown", False)):
        each = changed(back, "status.conditions", [{"type": "Ready", "status": status}])
        out = kschedx("why", "node/n", "-s", write(tmp_path, each)).out
        assert (fix in out, "remove taint" in out) == (is_back, is_back)


OVERUSE = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. "
    "Container app was using 9Gi, request is 128Mi, has larger consumption of memory. "
)


def evicted(name: str, created: str) -> Manifest:
    status = {"phase": "Failed", "reason": "Evicted", "message": OVERUSE}
    pod = changed(changed(small_pod(name), "spec.nodeName", "n1"), "status", status)
    return changed(pod, "metadata.creationTimestamp", created)


def test_pods_that_the_kubelet_evicted_are_named_with_what_they_used(tmp_path: Path) -> None:
    pods = evicted("first", "2026-01-01T00:00:00Z"), evicted("last", "2026-01-01T01:00:00Z")
    cluster = write(tmp_path, *CLUSTER, *pods)
    why = "the kubelet evicted default/last and 1 earlier pod: container app used 9Gi memory and requests 128Mi"
    assert why in " ".join(kschedx("why", "node/n1", "-s", cluster).out.split())
    assert json.loads(kschedx("why", "node/n1", "-s", cluster, "-o", "json").out)["evicted"] == [
        "default/last",
        "default/first",
    ]


def test_a_drain_shows_what_frees_a_cordoned_node(tmp_path: Path) -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    runs = changed(changed(small_pod("runs"), "spec.nodeName", "n"), "status", ready)
    cluster = (node("n", allocatable=ROOM, unschedulable=True), disruption_budget("all", minAvailable=1), runs)
    let, uncordon = "let PDB default/all allow a disruption: a drain shows how", "uncordon n"
    for waiting, order in (((), [let, uncordon]), ((small_pod("waits"),), [uncordon, let])):
        where = write(tmp_path, *cluster, *waiting)
        document = json.loads(kschedx("why", "node/n", "-s", where, "-o", "json").out)
        assert [fix["title"] for fix in document["fixes"]] == order
        assert f"fix 1     {order[0]}" in kschedx("why", "node/n", "-s", where).out


@pytest.mark.parametrize(
    ("objects", "is_said"),
    [
        ([node("n2")], True),
        ([node("n2"), changed(small_pod("runs"), "spec.nodeName", "n2")], False),
        ([node("n2"), small_pod("pending")], False),
        ([node("n2", taints=["team=a:NoSchedule"])], False),
        ([node("n2", taints=["team=a:PreferNoSchedule"])], True),
        ([node("n2", unschedulable=True)], False),
    ],
)
def test_why_no_pod_runs_on_a_new_node(tmp_path: Path, objects: list[Manifest], *, is_said: bool) -> None:
    result = kschedx("why", "node/n2", "-s", write(tmp_path, *objects))
    assert ("kube-scheduler moves no running pods here" in result.out) is is_said

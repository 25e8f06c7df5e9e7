"""Findings of `kschedx doctor`: a case for each one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kschedx.doctor.contents import contents_of
from kschedx.doctor.diagnosis import DumpDiagnosis, diagnose
from kschedx.kube.kinds import KINDS
from kschedx.kube.kubectl import listed_kinds
from kschedx.kube.snapshot_header import SnapshotHeader
from kschedx.render.manifests import to_json
from kschedx.sources.dumps import Dump, lack
from tests.builders import Manifest
from tests.doctor.dumps import TAKEN, Cluster, add_node, add_pod, save, whole


def diagnosed(folder: Path, *dumps: Iterable[Manifest]) -> DumpDiagnosis:
    """Return the diagnosis of files `0.json`, `1.json`, ..."""
    paths = [str(save(folder / f"{number}.json", dump)) for number, dump in enumerate(dumps)]
    return diagnose(contents_of(paths), paths)


def findings(diagnosis: DumpDiagnosis) -> list[dict[str, Any]]:
    """Return the findings of the document, without those for information only."""
    return [document for document in _documents(diagnosis) if document["id"] not in ("perhaps-none", "secrets")]


def _documents(diagnosis: DumpDiagnosis) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(to_json(diagnosis.to_dict()))["findings"]
    return result


def without(*titles: str) -> Callable[[Cluster], None]:
    def change(cluster: Cluster) -> None:
        for title in titles:
            del cluster[title]

    return change


def without_kind(*kinds: str) -> Callable[[Cluster], None]:
    def change(cluster: Cluster) -> None:
        for title in [title for title in cluster if title.split(" ")[0] in kinds]:
            del cluster[title]

    return change


def with_value(title: str, path: str, value: object) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.change(title, path, value)


def missing(kind: str, certainty: str, **facts: object) -> dict[str, object]:
    return {"id": "missing-kind", "kind": kind, "certainty": certainty, **facts}


def _named_class(cluster: Cluster) -> None:
    cluster.change("Pod shop/db-0", "spec.priorityClassName", "gold")


def _named_runtime(cluster: Cluster) -> None:
    cluster.change("Pod shop/db-0", "spec.runtimeClassName", "gvisor")


def _unbound(cluster: Cluster) -> None:
    size = {"requests": {"storage": "1Gi"}}
    cluster.put("v1", "PersistentVolumeClaim", "shop/new", spec={"storageClassName": "slow", "resources": size})


def _devices(cluster: Cluster) -> None:
    cluster.change("Pod shop/db-0", "spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}])


def _orphan(cluster: Cluster) -> None:
    add_pod(cluster, "shop/lost", "ReplicaSet web-5d7b9", "node-33")


def _written_orphan(cluster: Cluster) -> None:
    _orphan(cluster)
    for field, value in (("metadata.uid", ""), ("metadata.creationTimestamp", ""), ("status", {"phase": "Running"})):
        cluster.change("Pod shop/lost", field, value)


def _finished_orphan(cluster: Cluster) -> None:
    add_pod(cluster, "shop/done", "ReplicaSet web-5d7b9", "node-33", phase="Succeeded")


def _no_status(cluster: Cluster) -> None:
    cluster["Pod shop/db-0"]["status"] = {}


def _one_old_node(cluster: Cluster) -> None:
    cluster.change("Node node-2", "status.conditions.0.lastHeartbeatTime", "2026-11-20T07:45:00Z")


def _dead_node(cluster: Cluster) -> None:
    _one_old_node(cluster)
    cluster.change("Node node-2", "status.conditions.0.status", "Unknown")


def _newer_pod(cluster: Cluster) -> None:
    cluster.change("Pod shop/db-0", "status.conditions.0.lastTransitionTime", "2026-11-20T09:00:00Z")


def _static_pod(cluster: Cluster) -> None:
    add_pod(cluster, "kube-system/etcd-node-1", "Node node-1", "node-1")
    cluster.change("Node node-1", "metadata.creationTimestamp", "2026-11-19T10:00:30Z")
    cluster.change("Pod kube-system/etcd-node-1", "status.startTime", "2026-11-19T09:00:00Z")


def _empty_node(cluster: Cluster) -> None:
    add_node(cluster, "node-4")


def _older_kubelet(version: str) -> Callable[[Cluster], None]:
    return with_value("Node node-3", "status.nodeInfo.kubeletVersion", version)


def _user_only(cluster: Cluster) -> None:
    for number in range(3):
        del cluster[f"Pod kube-system/kube-proxy-{number}"]
    del cluster["DaemonSet kube-system/kube-proxy"]


def _system_only(cluster: Cluster) -> None:
    without_kind("ReplicaSet", "StatefulSet")(cluster)
    for title in [title for title in cluster if title.startswith("Pod shop/")]:
        del cluster[title]


CASES: dict[str, tuple[Callable[[Cluster], None], dict[str, object] | None]] = {
    "a whole cluster": (lambda _: None, None),
    "no nodes": (without_kind("Node", "CSINode"), missing("Node", "certain", reaction="refuses", missing=0)),
    "no pods": (without_kind("Pod"), missing("Pod", "certain", reaction="silent")),
    "no namespaces": (without_kind("Namespace"), missing("Namespace", "certain", present=0)),
    "no services": (without_kind("Service"), missing("Service", "certain")),
    "no priority classes": (without_kind("PriorityClass"), missing("PriorityClass", "certain")),
    "a namespace of objects": (
        without("Namespace shop"),
        missing("Namespace", "certain", present=2, missing=1, names=["shop"]),
    ),
    "a claim of a pod": (
        without("PersistentVolumeClaim shop/data-db-0"),
        missing("PersistentVolumeClaim", "certain", names=["shop/data-db-0"], reaction="shows"),
    ),
    "the volume of a bound claim": (
        without("PersistentVolume pv-1"),
        missing("PersistentVolume", "certain", names=["pv-1"], namedBy="claims"),
    ),
    "the class of a bound claim is not needed": (without_kind("StorageClass"), None),
    "the class of an unbound claim": (_unbound, missing("StorageClass", "likely", present=1, names=["slow"])),
    "a CSINode": (without("CSINode node-2"), missing("CSINode", "certain", present=2, missing=1, names=["node-2"])),
    "the owner of pods": (without_kind("ReplicaSet"), missing("ReplicaSet", "likely", names=["shop/web-5d7b9"])),
    "the owner of a stateful pod": (without_kind("StatefulSet"), missing("StatefulSet", "likely", names=["shop/db"])),
    "a priority class that a pod names": (_named_class, missing("PriorityClass", "likely", names=["gold"], present=2)),
    "a runtime class that a pod names": (_named_runtime, missing("RuntimeClass", "likely", names=["gvisor"])),
    "one pod of a workload": (
        without("Pod shop/web-5d7b9-1"),
        {"id": "workload-pods", "pods": 1, "workloads": ["ReplicaSet shop/web-5d7b9"], "certainty": "likely", "of": 6},
    ),
    "pods of a namespace with workloads": (
        without("Pod shop/web-5d7b9-0", "Pod shop/web-5d7b9-1", "Pod shop/db-0"),
        {
            "id": "pods-of-namespaces",
            "absent": ["shop"],
            "present": ["kube-system"],
            "evidence": "ReplicaSet shop/web-5d7b9 has 2",
            "pods": 3,
            "certainty": "certain",
        },
    ),
    "pods of one namespace only": (
        _user_only,
        {"id": "pods-of-namespaces", "absent": ["kube-system"], "present": ["shop"], "certainty": "likely"},
    ),
    "pods of the cluster's own namespaces only": (
        _system_only,
        {"id": "pods-of-namespaces", "absent": [], "present": ["kube-system"], "certainty": "possible"},
    ),
    "a node that nothing runs on": (
        _empty_node,
        {"id": "empty-nodes", "nodes": ["node-4"], "empty": 1, "total": 4, "certainty": "likely"},
    ),
    "a pod on an unknown node": (_orphan, {"id": "orphans", "pods": 1, "total": 1, "reaction": "shows"}),
    "a written pod on an unknown node": (_written_orphan, {"id": "orphans", "pods": 1, "reaction": "refuses"}),
    "a finished pod on an unknown node": (_finished_orphan, None),
    "a pod without status": (_no_status, {"id": "no-status", "pods": 1, "examples": ["shop/db-0"]}),
    "an owner of another uid": (
        with_value("ReplicaSet shop/web-5d7b9", "metadata.uid", "another"),
        {"id": "other-owner", "objects": 2, "owner": "ReplicaSet shop/web-5d7b9", "foundUid": "another"},
    ),
    "an owner of another group": (
        with_value("Pod shop/web-5d7b9-0", "metadata.ownerReferences.0.apiVersion", "example.org/v1"),
        {"id": "workload-pods", "pods": 1},
    ),
    "nodes of two clouds": (
        with_value("Node node-3", "spec.providerID", "gce://project/zone/node-3"),
        {"id": "clouds", "nodes": {"aws": 2, "gce": 1}, "certainty": "likely"},
    ),
    "nodes of a cloud and beside it": (with_value("Node node-3", "spec.providerID", "eks-hybrid:///x"), None),
    "a kubelet that is too old": (
        _older_kubelet("v1.32.9"),
        {"id": "skew", "oldest": "v1.32.9", "oldestNode": "node-3", "allowed": 3, "certainty": "possible"},
    ),
    "a kubelet that is as old as it may be": (_older_kubelet("v1.33.0"), None),
    "a kubelet of no version": (_older_kubelet("devel"), None),
    "a ready node that was seen long before": (
        _one_old_node,
        {"id": "nodes-of-two-times", "older": 1, "oldestNode": "node-2", "oldest": "2026-11-20T07:45:00Z"},
    ),
    "a node that does not report any more": (_dead_node, None),
    "a pod that was seen long after": (
        _newer_pod,
        {"id": "pods-after-nodes", "pod": "shop/db-0", "podTime": "2026-11-20T09:00:00Z", "certainty": "likely"},
    ),
    "a node younger than its pods": (
        with_value("Node node-3", "metadata.creationTimestamp", "2026-11-19T10:02:00Z"),
        {"id": "young-nodes", "nodes": 1, "pods": 2, "node": "node-3", "started": "2026-11-19T10:00:00Z"},
    ),
    "a static pod older than its node": (_static_pod, None),
    "a time that is none": (with_value("Node node-3", "metadata.creationTimestamp", "yesterday"), None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_dump_has_a_single_finding(name: str, tmp_path: Path) -> None:
    change, expected = CASES[name]
    cluster = whole()
    change(cluster)
    texts = findings(diagnosed(tmp_path, cluster.values()))
    if expected is None:
        assert texts == []
    else:
        (item,) = texts
        assert {key: item[key] for key in expected} == expected


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceSlice", "DeviceClass"])
def test_pods_with_device_claims_need_three_kinds(kind: str, tmp_path: Path) -> None:
    cluster = whole()
    _devices(cluster)
    texts = findings(diagnosed(tmp_path, cluster.values()))
    assert kind in [item.get("kind") for item in texts]
    cluster.put("resource.k8s.io/v1", kind, "x", spec={})
    assert kind not in [item.get("kind") for item in findings(diagnosed(tmp_path, cluster.values()))]


# --- two dumps at once


def _pods_of(cluster: Cluster) -> list[Manifest]:
    return cluster.of("Pod")


def test_copies_in_the_same_state(tmp_path: Path) -> None:
    cluster = whole()
    (item,) = findings(diagnosed(tmp_path, cluster.values(), _pods_of(cluster)))
    assert (item["id"], item["difference"], item["kinds"], item["reaction"]) == (
        "copies",
        "none",
        {"Pod": 6},
        "refuses",
    )
    assert (item["first"]["source"], item["second"]["source"]) == (str(tmp_path / "0.json"), str(tmp_path / "1.json"))


@pytest.mark.parametrize(
    ("field", "value", "difference", "certainty"),
    [
        ("resourceVersion", "101", "state", "certain"),
        ("uid", "another", "object", "likely"),
        ("uid", "", "unknown", "certain"),
    ],
)
def test_copies_that_differ(field: str, value: str, difference: str, certainty: str, tmp_path: Path) -> None:
    cluster, later = whole(), whole()
    later.change("Pod shop/db-0", f"metadata.{field}", value)
    texts = findings(diagnosed(tmp_path, cluster.values(), [later["Pod shop/db-0"]]))
    (item,) = [each for each in texts if each["id"] == "copies"]
    assert (item["difference"], item["certainty"], item["example"]) == (difference, certainty, "Pod shop/db-0")


def test_copies_in_many_files_are_one_finding(tmp_path: Path) -> None:
    cluster = whole()
    pods = _pods_of(cluster)
    (item,) = findings(diagnosed(tmp_path, cluster.values(), pods[:3], pods[3:5], pods[5:]))
    assert (item["id"], item["pairs"], item["kinds"]) == ("copies", 3, {"Pod": 6})


def test_two_uids_of_kube_system_are_two_clusters(tmp_path: Path) -> None:
    item, other = whole(), whole()
    other.change("Namespace kube-system", "metadata.uid", "other")
    texts = findings(diagnosed(tmp_path, item.values(), other.of("Namespace")))
    assert (texts[0]["id"], texts[0]["certainty"]) == ("two-clusters", "certain")
    assert (texts[0]["firstUid"], texts[0]["secondUid"]) == ("Namespace-kube-system-uid", "other")


# --- snapshots, which say of themselves what they hold


def header(cluster: Cluster, **facts: Any) -> SnapshotHeader:
    kinds = dict(Counter(title.split(" ")[0] for title in cluster))
    every_kind = {kind: kinds.get(kind, 0) for kind in KINDS}
    return SnapshotHeader(**{"taken": TAKEN, "complete": every_kind, "server_version": "v1.36.2", **facts})


def of_snapshots(folder: Path, *snapshots: tuple[Cluster, SnapshotHeader]) -> DumpDiagnosis:
    paths = [
        str(save(folder / f"{n}.json", cluster.values(), message)) for n, (cluster, message) in enumerate(snapshots)
    ]
    return diagnose(contents_of(paths), paths)


def test_a_snapshot_of_every_kind_lacks_nothing(tmp_path: Path) -> None:
    cluster = whole()
    _user_only(cluster)
    without_kind("Service", "StorageClass", "PersistentVolume")(cluster)
    diagnosis = of_snapshots(tmp_path, (cluster, header(cluster)))
    assert (diagnosis.findings, diagnosis.inventory.taken) == ((), TAKEN)
    assert diagnosis.inventory.server_version == "v1.36.2"


def test_a_pod_of_a_just_deleted_node_is_no_orphan(tmp_path: Path) -> None:
    cluster = whole()
    _orphan(cluster)
    assert of_snapshots(tmp_path, (cluster, header(cluster))).findings == ()


def test_forbidden_kinds_are_missing_in_the_snapshot(tmp_path: Path) -> None:
    cluster = whole()
    without_kind("Service")(cluster)
    kinds = {kind: number for kind, number in header(cluster).complete.items() if kind not in ("Service", "PodGroup")}
    message = header(cluster, complete=kinds, missing={"Service": "forbidden", "PodGroup": "absent"})
    (item,) = findings(of_snapshots(tmp_path, (cluster, message)))
    assert (item["kind"], item["isForbidden"], item["reaction"]) == ("Service", True, "shows")


def test_a_snapshot_of_a_namespace(tmp_path: Path) -> None:
    cluster = whole()
    _user_only(cluster)
    without_kind("Service")(cluster)
    (item,) = findings(of_snapshots(tmp_path, (cluster, header(cluster, namespaces=("shop",)))))
    assert (item["id"], item["namespaces"], item["certainty"]) == ("namespaces-only", ["shop"], "certain")


def test_a_snapshot_that_was_edited(tmp_path: Path) -> None:
    cluster = whole()
    message = header(cluster)
    del cluster["Pod shop/db-0"], cluster["Pod shop/web-5d7b9-0"]
    (item,) = findings(of_snapshots(tmp_path, (cluster, message)))
    assert (item["id"], item["kinds"], item["there"]) == ("cut", {"Pod": 6}, {"Pod": 4})


def test_snapshots_of_two_times(tmp_path: Path) -> None:
    first, second = whole(), Cluster()
    second.put("v1", "Namespace", "late")
    message = header(first), SnapshotHeader(taken="2026-11-21T08:00:00Z", source="prod")
    (item,) = findings(of_snapshots(tmp_path, (first, message[0]), (second, message[1])))
    assert (item["id"], item["first"], item["second"], item["secondSource"]) == (
        "taken-twice",
        TAKEN,
        "2026-11-21T08:00:00Z",
        "prod",
    )


def test_a_server_that_is_older_than_its_kubelets(tmp_path: Path) -> None:
    cluster = whole()
    (item,) = findings(of_snapshots(tmp_path, (cluster, header(cluster, server_version="v1.35.9"))))
    assert (item["id"], item["server"], item["newest"]) == ("skew", "v1.35.9", "v1.36.2")


# --- the rest of the document


def test_present_objects_are_counted(tmp_path: Path) -> None:
    cluster = whole()
    add_pod(cluster, "shop/waits", "ReplicaSet web-5d7b9")
    _finished_orphan(cluster)
    cluster.put("v1", "ConfigMap", "shop/settings")
    cluster.put("example.org/v1", "Widget", "shop/one")
    cluster.put("example.org/v1", "Pod", "shop/somebody-elses")
    diagnosis = diagnosed(tmp_path, cluster.values()).inventory
    assert (diagnosis.running, diagnosis.pending, diagnosis.finished, diagnosis.namespaces) == (6, 1, 1, 2)
    assert (diagnosis.kinds["Node"], diagnosis.kinds["Pod"], diagnosis.newest) == (3, 8, "2026-11-20T08:00:00Z")
    assert diagnosis.not_read == {"ConfigMap": 1, "Widget.example.org": 1, "Pod.example.org": 1}
    assert (diagnosis.oldest_kubelet, diagnosis.newest_kubelet) == ("v1.36.2", "v1.36.2")


def test_secrets_are_named_without_their_content(tmp_path: Path) -> None:
    cluster = whole()
    cluster.put("v1", "Secret", "shop/token", data={"password": "aHVudGVyMg=="})
    diagnosis = diagnosed(tmp_path, cluster.values())
    assert diagnosis.weakening == ()
    (item,) = [document for document in _documents(diagnosis) if document["id"] == "secrets"]
    assert (item["secrets"], item["files"]) == (1, [str(tmp_path / "0.json")])
    assert "token" not in str(item)


def test_missing_kinds_are_added_to_the_dump(tmp_path: Path) -> None:
    cluster = whole()
    without_kind("Service", "CSINode")(cluster)
    diagnosis = diagnosed(tmp_path, cluster.values()).completion
    assert diagnosis is not None
    assert (diagnosis.way, diagnosis.snapshots[0]) == ("add", str(tmp_path / "0.json"))
    assert listed_kinds(diagnosis.snapshots[1]) >= {"Service", "CSINode"}
    assert diagnosis.command.startswith("kubectl get services,csinodes,")
    assert "podgroups" not in diagnosis.command


def test_incomplete_kinds_need_a_new_dump(tmp_path: Path) -> None:
    cluster = whole()
    del cluster["CSINode node-2"]
    diagnosis = diagnosed(tmp_path, cluster.values()).completion
    assert diagnosis is not None
    assert (diagnosis.way, diagnosis.snapshots) == ("anew", ("cluster.yaml",))
    assert " pods," in diagnosis.command
    assert "configmaps" not in diagnosis.command


def test_a_complete_dump_needs_no_command(tmp_path: Path) -> None:
    assert diagnosed(tmp_path, whole().values()).completion is None


# --- dumps of other tools


def test_kinds_that_a_recognized_dump_never_holds(tmp_path: Path) -> None:
    contents = contents_of([str(save(tmp_path / "0.json", whole().values()))])
    pods = "pods of namespaces that were not gathered"
    lacks = (lack("Pod", pods), lack("LimitRange"), lack("Node"))
    holds = ("a KubeSchedulerConfiguration",)
    contents.record(Dump(format="must-gather", place="dump/", lacks=lacks, holds=holds))
    diagnosis = diagnose(contents, ["0.json"])
    (item,) = findings(diagnosis)
    assert (item["id"], item["what"], item["kinds"]) == ("lacking", [pods], ["LimitRange"])
    assert item["reaction"] == "shows"
    assert "NodeResourcesFit" in item["weakens"][0]["plugins"]
    assert diagnosis.inventory.formats == ("must-gather",)
    assert diagnosis.inventory.not_applied == ("a KubeSchedulerConfiguration",)
    (perhaps,) = [document for document in _documents(diagnosis) if document["id"] == "perhaps-none"]
    assert "LimitRange" not in perhaps["kinds"]


@pytest.mark.parametrize(
    ("field", "value", "kinds"),
    [
        (
            "schedulingGates",
            [{"name": "kueue.x-k8s.io/admission"}],
            {"Workload", "LocalQueue", "ClusterQueue", "ResourceFlavor", "AdmissionCheck", "Topology"},
        ),
        ("schedulerName", "volcano", {"PodGroup", "Queue"}),
        ("schedulerName", "kai-scheduler", {"PodGroup", "Queue"}),
        ("schedulerName", "koord-scheduler", {"PodGroup", "ElasticQuota"}),
        ("schedulingGates", [{"name": "acme.io/later"}], set()),
    ],
)
def test_kinds_of_other_queues_are_missing_if_they_hold_pods(
    field: str, value: object, kinds: set[str], tmp_path: Path
) -> None:
    cluster = whole()
    cluster.change("Pod shop/db-0", f"spec.{field}", value)
    texts = findings(diagnosed(tmp_path, cluster.values()))
    assert {str(item["kind"]).partition(".")[0] for item in texts if item["id"] == "missing-kind"} == kinds


def test_missing_data_of_the_autoscaler(tmp_path: Path) -> None:
    cluster = whole()
    add_pod(cluster, "kube-system/cluster-autoscaler-6d8f", "DaemonSet kube-proxy", "node-1")
    entries = {item["id"]: item for item in findings(diagnosed(tmp_path, cluster.values()))}
    assert entries["no-autoscaler-status"]["pod"] == "kube-system/cluster-autoscaler-6d8f"
    cluster.put("v1", "ConfigMap", "kube-system/cluster-autoscaler-status")
    entries = {item["id"]: item for item in findings(diagnosed(tmp_path, cluster.values()))}
    assert "no-autoscaler-status" not in entries
    assert "autoscaler-flags" in entries
    cluster.put("apps/v1", "Deployment", "kube-system/eks-cluster-autoscaler")
    assert "autoscaler-flags" not in {item["id"] for item in findings(diagnosed(tmp_path, cluster.values()))}


def test_missing_node_pools_of_karpenter(tmp_path: Path) -> None:
    cluster = whole()
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "general-x", "uid": "u", "controller": True}
    cluster.change("Node node-1", "metadata.ownerReferences", [owner])
    entries = {item["id"]: item for item in findings(diagnosed(tmp_path, cluster.values()))}
    assert (entries["no-node-pools"]["nodes"], entries["no-node-pools"]["example"]) == (1, "node-1")
    cluster.put("karpenter.sh/v1", "NodePool", "general")
    assert "no-node-pools" not in {item["id"] for item in findings(diagnosed(tmp_path, cluster.values()))}

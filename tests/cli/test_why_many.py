"""`kschedx why` for many pods."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from kschedx.kube.autoscalers import SAFE_TO_EVICT
from tests.builders import Manifest, node, pod
from tests.command import kschedx
from tests.device_builders import claim as device_claim
from tests.device_builders import device, device_class, request, resource_slice
from tests.kueue.objects import flavor, local, queue, quota, workload

BIG = [{"name": "main", "image": "big", "resources": {"requests": {"cpu": "100"}}}]
SMALL = [{"name": "main", "image": "small"}]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    objects: list[Manifest] = [
        node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
        pod("runs", on="n1", containers=SMALL),
        pod("first", containers=BIG, priority=10, labels={"app": "big"}),
        pod("second", containers=BIG, labels={"app": "big"}),
        pod("fits", containers=SMALL),
        pod("gated", containers=SMALL, schedulingGates=[{"name": "acme.io/wait"}]),
        pod("elsewhere", namespace="other", containers=BIG),
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def test_a_cause_is_shown_once_with_its_pods_in_queue_order(cluster: str) -> None:
    result = kschedx("why", "--all-pending", "-s", cluster)

    assert result.code == 1
    assert result.out.splitlines()[0] == "✗ 5 pods: 3 unschedulable, 1 can be scheduled, 1 gated"
    assert (
        result.out.index("default/first (priority 10)")
        < result.out.index("default/second")
        < result.out.index("other/elsewhere")
    )
    assert result.out.count("0/1 nodes are available: 1 Insufficient cpu") == 1


def test_identical_pods_have_a_node_each(tmp_path: Path) -> None:
    own = {
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "u", "controller": True}
        ]
    }
    whole = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "3"}}}]}
    nodes = [node(name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}) for name in ("n1", "n2")]
    objects = [*nodes, pod("a", spec=whole, metadata=own), pod("b", spec=whole, metadata=own)]
    (tmp_path / "cluster.json").write_bytes(msgspec.json.encode({"kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", "cluster.json", "-o", "name", cwd=tmp_path)
    assert sorted(result.out.split()) == ["default/a", "default/b", "node/n1", "node/n2"]


@pytest.mark.parametrize(
    ("arguments", "pods"),
    [
        pytest.param(["--all-pending", "-n", "other"], ["other/elsewhere"], id="a namespace"),
        pytest.param(["-l", "app=big"], ["default/first", "default/second"], id="labels"),
        pytest.param(
            ["--all-pending", "-l", "app!=big", "-n", "default"],
            ["default/fits node/n1", "default/gated node/n1"],
            id="both",
        ),
    ],
)
def test_options_select_pods(cluster: str, arguments: list[str], pods: list[str]) -> None:
    assert kschedx("why", *arguments, "-o", "name", "-s", cluster).out.splitlines() == pods


def test_the_document_holds_every_explanation(cluster: str) -> None:
    result = kschedx("why", "--all-pending", "-o", "json", "-s", cluster)

    assert [item["pod"]["name"] for item in json.loads(result.out)["items"]] == [
        "first",
        "fits",
        "gated",
        "second",
        "elsewhere",
    ]


def test_a_list_of_pods_that_all_fit(cluster: str) -> None:
    assert kschedx("why", "--all-pending", "-l", "!app,!other", "-n", "default", "-s", cluster).code == 1
    assert kschedx("why", "-l", "app=nothing", "-s", cluster).code == 0


def test_a_target_and_all_pods_exclude_each_other(cluster: str) -> None:
    result = kschedx("why", "pod/fits", "--all-pending", "-s", cluster)

    assert (result.code, result.err) == (
        2,
        "error: name a TARGET or a file with -f, or select pods with --all-pending or -l\n",
    )


def test_an_undecided_pod_leaves_the_other_documents(tmp_path: Path) -> None:
    claiming = pod("claims", containers=SMALL, resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu-0"}])
    path = tmp_path / "cluster.json"
    claim = device_claim("gpu-0", request(select=["lists.range(1000000000).size() > 1"]))
    items = [
        node("n1"),
        device_class(),
        resource_slice("n1", device("gpu-0")),
        claim,
        claiming,
        pod("fits", containers=SMALL),
    ]
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    outcome = kschedx("why", "--all-pending", "-o", "json", "-s", str(path))
    document = json.loads(outcome.out)

    assert outcome.code == 3
    assert [item["pod"]["name"] for item in document["items"]] == ["fits"]
    assert [result["pod"] for result in document["undecided"]] == ["default/claims"]


def test_a_heading_about_devices_holds_for_all_its_pods(tmp_path: Path) -> None:
    items = [node("n1"), device_class(), resource_slice("n1")]
    for name, requested in (("a", request()), ("b", request()), ("typo", request(device_class="gpuu"))):
        claims = [{"name": "gpu", "resourceClaimName": name}]
        items += [device_claim(name, requested), pod(name, containers=SMALL, resourceClaims=claims)]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    result = kschedx("why", "--all-pending", "-s", str(path))
    assert "✗ 2 pods: no devices of class gpu within reach\n" in result.out
    assert '✗ device class gpuu does not exist (did you mean "gpu"?)\n' in result.out


@pytest.mark.parametrize("more", [[], ["--alone"]])
def test_pods_are_in_the_order_of_the_configured_queue(cluster: str, tmp_path: Path, more: list[str]) -> None:
    objects = json.loads(Path(cluster).read_text())["items"]
    guaranteed = [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]
    objects.append(pod("third", containers=guaranteed, namespace="queue"))
    objects.append(pod("fourth", containers=SMALL, namespace="queue"))
    path = tmp_path / "two.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    config = tmp_path / "scheduler.yaml"
    queue_sort = {"disabled": [{"name": "*"}], "enabled": [{"name": "QOSSort"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"queueSort": queue_sort}}
    version = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps(version | {"profiles": [profile]}))
    questions = ["why", "--all-pending", "-n", "queue", "-o", "json", "-s", str(path), *more]

    def names(*options: str) -> list[str]:
        return [item["pod"]["name"] for item in json.loads(kschedx(*questions, *options).out)["items"]]

    assert names() == ["fourth", "third"]
    assert names("--config", str(config)) == ["third", "fourth"]


@pytest.mark.parametrize("more", [[], ["--alone"]])
def test_identical_pods_have_equal_answers(tmp_path: Path, more: list[str]) -> None:
    """Identical pods share one explanation, with or without a nominated node, under their own names."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": True}
    path = tmp_path / "alike.json"

    def web(number: int, *, alike: bool) -> Manifest:
        annotations = {} if alike else {SAFE_TO_EVICT: str(number)}
        metadata = {"ownerReferences": [owner], "annotations": annotations}
        status = {"phase": "Pending", "nominatedNodeName": "n1" if number == 0 else ""}
        return pod(f"web-{number}", containers=BIG, priority=number // 2, metadata=metadata, status=status)

    def texts(*, alike: bool) -> dict[str, tuple[str, str | None]]:
        objects = [
            node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
            *(web(number, alike=alike) for number in range(4)),
        ]
        path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
        report = kschedx("why", "--all-pending", "-o", "junit", "-s", str(path), *more)
        cases = ElementTree.fromstring(report.out).iter("testcase")
        return {case.attrib["name"]: (case[0].attrib["message"], case[0].text) for case in cases}

    shared = texts(alike=True)
    assert len(shared) == 4
    assert shared == texts(alike=False)


def test_a_report_of_another_controller_is_the_headline(tmp_path: Path) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "grp"}
    total = {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"}}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    report = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no sibling pods"}
    objects: list[Manifest] = [
        node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
        *(pod(name, containers=SMALL, labels=labels, metadata=total, schedulingGates=gates) for name in ("a", "b")),
        pod(
            "mpi-0",
            containers=SMALL,
            labels={"scheduling.x-k8s.io/pod-group": "mpi"},
            schedulerName="scheduler-plugins-scheduler",
            status={"phase": "Pending", "conditions": [report]},
        ),
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", str(path), columns=200)
    assert result.code == 3
    assert "gated by Kueue (queue q), which waits for all pods of group grp: 2 of 3 pods exist" in result.out
    assert "the scheduler scheduler-plugins-scheduler decides, not kube-scheduler: no sibling pods" in result.out


def test_jobs_with_missing_pods_and_workloads_of_kueue_are_listed(tmp_path: Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "fan", "uid": "j", "controller": True}
    template = {"metadata": {}, "spec": {"containers": SMALL, "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "fan", "namespace": "default", "uid": "j"}}
    quota = {"hard": {"pods": "1"}}
    about = {"kind": "Job", "namespace": "default", "name": "fan", "uid": "j"}
    refused = {"reason": "FailedCreate", "message": "Error creating: exceeded quota: q", "involvedObject": about}
    held = {"podSets": [{"name": "w", "count": 2, "template": template}], "queueName": "q"}
    trains = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "bert", "uid": "b", "controller": True}
    objects: list[Manifest] = [
        node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
        {**job, "spec": {"parallelism": 3, "completions": 3, "template": template}},
        pod("fan-0", on="n1", containers=SMALL, metadata={"ownerReferences": [owner]}),
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "default"},
            "spec": quota,
            "status": {**quota, "used": {"pods": "1"}},
        },
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, **refused},
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": "ml", "ownerReferences": [trains]},
            "spec": held,
        },
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", str(path), columns=200)
    assert (result.code, result.out.splitlines()[0]) == (1, "✗ 4 pods: 2 not created, 2 gated")
    assert "ml/bert (PyTorchJob) × 2" in result.out
    assert kschedx("simulate", "-s", str(path)).code == 1


def test_a_fix_of_a_workload_of_kueue_serves_all_pods_of_its_group(tmp_path: Path) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "grp"}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    held = workload("grp", cpu="1", count=2)
    held["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in "ab"
    ]
    objects: list[Manifest] = [
        node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
        *(pod(name, namespace="ml", containers=SMALL, labels=labels, schedulingGates=gates) for name in "ab"),
        *(flavor(), queue("q", quota("f", "1")), local("q"), held),
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", str(path), columns=200)
    assert "2 pods wait for quota in Kueue (queue q)" in result.out
    assert "raise the nominal quota of flavor f in ClusterQueue q: cpu from 1 to 2\n" in result.out


def test_a_workload_whose_pods_need_several_cordoned_nodes_names_those_that_help(tmp_path: Path) -> None:
    """Each zone has room for one replica; the other cordoned node of zone b helps no pod."""
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    rule = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": SMALL, "topologySpreadConstraints": [rule]},
    }
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    zones = {"a1": "a", "b1": "b", "b2": "b", "c1": "c"}
    nodes = [
        node(
            name,
            labels={"zone": zone},
            allocatable={"cpu": "4", "memory": "8Gi", "pods": "1"},
            unschedulable=zone != "a",
        )
        for name, zone in zones.items()
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [*nodes, deployment]}))
    result = kschedx("why", "deploy/web", "-s", path)
    assert "uncordon b1, uncordon c1 · for all 2" in result.out
    patches = kschedx("why", "deploy/web", "-s", path, "--fix", "1", "-o", "patch").out
    assert patches == "kubectl uncordon b1\nkubectl uncordon c1\n"


STORED = {"creationTimestamp": "2026-03-03T09:12:00Z", "uid": "u", "resourceVersion": "1"}
NODES_ALONE: Manifest = {**node("n1"), "metadata": {"name": "n1", **STORED}}
REPORTED: Manifest = {**node("n1"), "status": {"nodeInfo": {"kubeletVersion": "v1.36.1"}}}
TEAM: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}


@pytest.mark.parametrize(
    ("objects", "arguments", "code", "text"),
    [
        ([NODES_ALONE], (), 3, "? the dump does not hold any pod, so whether one is pending is unknown"),
        ([REPORTED], (), 3, "? the dump does not hold any pod, so whether one is pending is unknown"),
        ([REPORTED, TEAM], (), 0, "✓ no pod is pending"),
        ([node("n1")], (), 0, "✓ no pod is pending"),
        ([node("n1"), TEAM], ("-n", "team"), 0, "✓ no pod is pending in namespace team"),
        ([node("n1"), TEAM], ("-n", "taem"), 2, 'error: no namespace "taem" (did you mean "team"?)'),
        ([node("n1"), TEAM, pod("x", namespace="a", on="n1")], ("-n", "a"), 0, "✓ no pod is pending in namespace a"),
    ],
)
def test_no_pending_pod_is_an_answer_if_pods_and_namespace_are_known(
    tmp_path: Path, objects: list[Manifest], arguments: tuple[str, ...], code: int, text: str
) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", *arguments, "-s", path)
    assert (result.code, text) == (code, (result.out or result.err).strip())

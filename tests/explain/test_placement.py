"""Why a pod is on its node, and fields that do not decide although a reader may expect it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import kschedx
from kschedx.explain.ranking import indecisive
from kschedx.render.outcome import MOST_ROOT_CAUSES
from tests.builders import Manifest, evaluate, node, only, pod

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "9"}
GPUS = {**ROOM, "cpu": "64", "nvidia.com/gpu": "8"}
ML = "dedicated=ml:NoSchedule"
TOLERATES: Manifest = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
REQUESTS = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]


REQUIRED, PREFERRED = (f"{way}DuringSchedulingIgnoredDuringExecution" for way in ("required", "preferred"))
ZONE_X, SSD = (
    {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    for key, value in (("zone", "x"), ("disk", "ssd"))
)
SPREAD: Manifest = {
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


PER_HOST = {**SPREAD, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"app": "x"}},
}


def prefers(*terms: tuple[int, Mapping[str, object]]) -> Manifest:
    preferred = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"nodeAffinity": {PREFERRED: preferred}}


def apart(app: str, **term: object) -> Manifest:
    rule = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname", **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}


@pytest.mark.parametrize(
    ("objects", "me", "expected"),
    [
        (
            [node("a", allocatable=ROOM), node("b", taints=[ML], allocatable={**ROOM, "cpu": "2"})],
            pod("me", spec=TOLERATES, containers=REQUESTS),
            "the toleration of dedicated=ml:NoSchedule allows b and does not prefer it",
        ),
        (
            [node("a", labels={"pool": "a"}), node("b", taints=[ML])],
            pod("me", spec=TOLERATES, nodeSelector={"pool": "a"}),
            None,
        ),
        ([node("a", taints=[ML])], pod("me", spec=TOLERATES), None),
        (
            [node("a", taints=[ML]), node("b")],
            pod("me", spec=TOLERATES),
            "the toleration of dedicated=ml:NoSchedule allows a",
        ),
        ([node("a")], pod("me", affinity=apart("x")), "podAntiAffinity term 1 (app=x) matches no pod, this pod incl"),
        ([node("a")], pod("me", labels={"app": "x"}, affinity=apart("x")), None),
        ([node("a"), pod("x", labels={"app": "x"})], pod("me", affinity=apart("x")), None),
        (
            [node("a"), pod("x", on="a", namespace="infra", labels={"app": "x"})],
            pod("me", affinity=apart("x")),
            "podAntiAffinity term 1 (app=x) matches no pod of default, only of infra (see its namespaces): it has no",
        ),
        ([node("a")], pod("me", affinity=apart("x", namespaceSelector={})), None),
        (
            [node("a")],
            pod("me", labels={"app": "x"}, affinity=apart("x", topologyKey="kubernetes.io/hostnam")),
            "podAntiAffinity term 1 has no effect: no node has the label kubernetes.io/hostnam",
        ),
        ([node("a", taints=["s:PreferNoSchedule"])], pod("me"), "the taint s:PreferNoSchedule of a only lowers"),
        ([node("a", allocatable=GPUS), node("b", allocatable=ROOM)], pod("me", containers=REQUESTS), "a has nvidia"),
        ([node("a", allocatable=GPUS, taints=[ML])], pod("me", spec=TOLERATES), None),
        ([node("a", allocatable=GPUS)], pod("me"), None),
        (
            [
                node("a", allocatable=ROOM),
                node("b", allocatable={**ROOM, "cpu": "2"}),
                *(pod(f"bare-{at}", on="a") for at in range(3)),
                pod("asks", on="b", containers=REQUESTS),
            ],
            pod("me", containers=REQUESTS),
            "3 of 3 pods on a request no CPU and no memory: kube-scheduler counts requests, not usage",
        ),
        (
            [node("a", labels={"zone": "x"})],
            pod("me", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE_X, SSD]}}}),
            "one of the 2 nodeSelectorTerms is enough: a matches term 1, not all of them",
        ),
        (
            [
                *(node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in ("ax", "bx", "cy")),
                *(pod(f"web-{host}", on=host, labels={"app": "x"}) for host in "ab"),
                SERVICE,
            ],
            pod("me", labels={"app": "x"}, topologySpreadConstraints=[{**PER_HOST, "maxSkew": 1}]),
            "its own spread constraints replace the default one over zones: both matching pods are in x",
        ),
        (
            [
                *(node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in ("ax", "bx", "cy")),
                *(pod(f"web-{host}", on=host, labels={"app": "x"}) for host in "ab"),
            ],
            pod("me", labels={"app": "x"}, topologySpreadConstraints=[{**PER_HOST, "maxSkew": 1}]),
            None,  # without a Service and a controller, no default constraint applies
        ),
        (
            [
                *(node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in ("ax", "bx", "cy")),
                *(pod(f"web-{host}", on=host, labels={"app": "x"}) for host in "ac"),
                SERVICE,
            ],
            pod("me", labels={"app": "x"}, topologySpreadConstraints=[{**PER_HOST, "maxSkew": 1}]),
            None,
        ),
        (
            [node("a", labels={"zone": "x"})],
            pod("me", topologySpreadConstraints=[{**PER_HOST, "topologyKey": "zonee", "maxSkew": 1}]),
            "the spread constraint over zonee has no effect: no node has the label; did you mean zone?",
        ),
        (
            [node("a", labels={"disks": "ssd"}), node("b")],
            pod("me", affinity=prefers((1, SSD))),
            "preferred node affinity (disk In [ssd]) matches no node: it has no effect; did you mean disks?",
        ),
        (
            [node("a", labels={"disk": "sssd"}), node("b")],
            pod("me", affinity=prefers((1, SSD))),
            "preferred node affinity (disk In [ssd]) matches no node: it has no effect; did you mean sssd?",
        ),
        (
            [node("a", labels={"disk": "ssd"}, allocatable={"pods": "0"}), node("b", labels={"zone": "x"})],
            pod("me", affinity=prefers((1, ZONE_X), (2, SSD))),
            "preferred node affinity (disk In [ssd]) matches a, which does not fit",
        ),
        ([node("a", labels={"zone": "x"})], pod("me", affinity=prefers((2, ZONE_X), (2, SSD))), None),
        (
            [node("a", labels={"disk": "ssd"}), node("b", labels={"zone": "x"})],
            pod("me", affinity=prefers((1, SSD), (100, ZONE_X))),
            None,
        ),
        (
            [
                node("a", labels={"zone": "x"}),
                node("b", labels={"zone": "y"}, allocatable=ROOM),
                pod("one", on="a", labels={"app": "x"}),
            ],
            pod("me", labels={"app": "x"}, containers=REQUESTS, topologySpreadConstraints=[{**SPREAD, "maxSkew": 2}]),
            "maxSkew 2 over zone allows one more in x: x has 1 matching pod, another domain has 0",
        ),
        (
            [node("a", labels={"zone": "x", "disk": "ssd"}), node("b", labels={"zone": "y"})],
            pod(
                "me",
                labels={"app": "x"},
                nodeSelector={"disk": "ssd"},
                topologySpreadConstraints=[{**SPREAD, "maxSkew": 1}],
            ),
            "the spread constraint over zone has one domain, x: the pod selects nodes of no other",
        ),
        (
            [node("a", labels={"zone": "x", "disk": "ssd"}), node("b", labels={"zone": "y"})],
            pod(
                "me",
                labels={"app": "x"},
                nodeSelector={"disk": "ssd"},
                topologySpreadConstraints=[{**SPREAD, "maxSkew": 1, "nodeAffinityPolicy": "Ignore"}],
            ),
            None,
        ),
        (
            [node("a", labels={"node-role.kubernetes.io/control-plane": ""}), node("b", allocatable=ROOM)],
            pod("me", containers=REQUESTS),
            "a is a control plane node, and no taint keeps pods off the node",
        ),
        ([node("a", labels={"node-role.kubernetes.io/control-plane": ""})], pod("me"), None),
        (
            [node("a", taints=[ML])],
            pod("me", tolerations=[{"operator": "Exists"}]),
            "a toleration without a key covers the taint dedicated=ml:NoSchedule of a",
        ),
    ],
)
def test_fields_that_do_not_decide(objects: list[Manifest], me: Manifest, expected: str | None) -> None:
    texts = list(indecisive(evaluate([*objects, me], "default/me")))
    assert len(texts) == (expected is not None), texts
    assert not expected or texts[0].startswith(expected)
    assert len(texts) <= MOST_ROOT_CAUSES


def test_a_profile_without_filters_and_an_unused_profile() -> None:
    cycle = evaluate([node("a"), pod("me")], "default/me", only("NodeResourcesFit"))
    first, other = indecisive(cycle, ("default-scheduler", "packing"))
    assert first == "the pod's schedulerName is default-scheduler, so that profile packing is not used"
    assert other.startswith("profile default-scheduler disables a filter of the default profile: NodeUnschedulable")


def undecided_fields(*objects: Manifest) -> list[str]:
    text = str(kschedx.explain(kschedx.Snapshot.from_objects([*objects]), "default/me"))
    return [line.strip() for line in text.splitlines()]


RUNS: Manifest = {"phase": "Running", "startTime": "2026-01-02T00:00:00Z"}
OWNED: Manifest = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}]
}


def at(manifest: Manifest, created: str, **status: object) -> Manifest:
    metadata, own = manifest["metadata"], manifest["status"]
    assert isinstance(metadata, dict)
    assert isinstance(own, dict)
    return {**manifest, "metadata": {**metadata, "creationTimestamp": created}, "status": {**own, **status}}


READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-03T00:00:00Z"}]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (
            at(node("b"), "2026-01-03T00:00:00Z"),
            "b joined after the pod was assigned; kube-scheduler does not",
        ),
        (
            at(node("b"), "2026-01-01T00:00:00Z", conditions=READY),
            "b became ready after the pod was assigned; kube",
        ),
        (at(node("b"), "2026-01-01T00:00:00Z"), "a is "),
    ],
)
def test_why_a_running_pod_is_on_its_node(other: Manifest, expected: str) -> None:
    full = pod("full", on="a", containers=[{"name": "main", "resources": {"requests": {"cpu": "60"}}}])
    lines = undecided_fields(
        node("a"), other, full, pod("me", on="a", status=RUNS, metadata=OWNED, containers=REQUESTS)
    )
    start = lines.index("it runs on a; this shows what scheduling it now would give")
    assert lines[start + 1].startswith(expected)
    assert "to move it, delete it; ReplicaSet web creates it again:" in lines
    assert "kubectl delete pod me -n default" in lines


def test_a_node_that_would_reject_its_pod() -> None:
    lines = undecided_fields(node("a", taints=[ML]), node("b"), pod("me", on="a", status=RUNS))
    start = lines.index("it runs on a; this shows what scheduling it now would give")
    text = " ".join(lines[start + 1 : start + 3])
    assert text.startswith("a would reject it now: untolerated taint dedicated=ml:NoSchedule; the cluster has changed")
    assert not any("kubectl" in line for line in lines)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], "the taint gone:NoExecute evicts it at once; ReplicaSet web creates it again"),
        ([{"tolerationSeconds": 9}], "the taint gone:NoExecute evicts it 9 s after a got the taint; ReplicaSet web"),
        ([{}], None),
    ],
)
def test_a_taint_that_evicts_a_running_pod(tolerations: list[Manifest], expected: str | None) -> None:
    its = [{"key": "gone", "operator": "Exists", "effect": "NoExecute", **each} for each in tolerations]
    me = pod("me", on="a", status=RUNS, metadata=OWNED, tolerations=its)
    text = " ".join(undecided_fields(node("a", taints=["gone:NoSchedule", "gone:NoExecute"]), node("b"), me))
    assert (expected or "") in text
    assert ("a NoSchedule taint evicts no running pods" in text) is (expected is None)
    assert ("evicts it" in text, "to move it, delete it" in text) == (bool(expected), expected is None)


def spread(*keys: str) -> Manifest:
    selector = {"matchLabels": {"app": "web"}}
    hosts = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {**hosts, "labelSelector": selector, **({"matchLabelKeys": [*keys]} if keys else {})}


@pytest.mark.parametrize(
    ("spec", "taints", "rule"),
    [
        ({}, [ML], "a NoSchedule taint evicts no running pods"),
        ({"nodeSelector": {"disk": "ssd"}}, [], "a pod that runs stays when the labels of its node change"),
        ({"topologySpreadConstraints": [spread()]}, [], "a rollout counts the pods of the former template as well"),
        ({"topologySpreadConstraints": [spread("pod-template-hash")]}, [], ""),
        ({"containers": [{"name": "main", "resources": {"requests": {"cpu": "99"}}}]}, [], ""),
    ],
)
def test_the_rule_that_lets_a_running_pod_stay(spec: Manifest, taints: list[str], rule: str) -> None:
    labels = {"app": "web", "pod-template-hash": "1"}
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    first = node("a", labels={"kubernetes.io/hostname": "a"}, taints=taints)
    others = [pod(f"web-{number}", on="a", status=RUNS, labels=labels) for number in range(2)]
    me = pod("me", on="a", status=RUNS, labels=labels, spec=spec)
    text = " ".join(undecided_fields(first, hosts[1], *others, me))
    assert "a would reject it now" in text
    rules = ("evicts no running pods", "stays when the labels", "counts the pods of the former")
    assert [phrase in text for phrase in rules] == [bool(rule) and phrase in rule for phrase in rules]


def test_a_node_that_is_still_the_best() -> None:
    lines = undecided_fields(node("a"), pod("me", on="a", status=RUNS, metadata=OWNED))
    assert not any("does not move" in line or "kubectl" in line for line in lines)


def test_a_static_pod_is_not_what_kube_scheduler_decides() -> None:
    metadata: Manifest = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    lines = undecided_fields(node("a", taints=[ML]), node("b"), pod("me", on="a", status=RUNS, metadata=metadata))
    assert lines[0].endswith("default/me is a static pod, which the kubelet of a runs without kube-scheduler")
    assert lines[1].startswith("scheduled now, it would be assigned to b")
    assert not any("would reject it now" in line or "evicts no running pods" in line for line in lines)


def test_a_static_pod_that_fits_no_node_needs_no_fix() -> None:
    """kubeadm's static pods do not tolerate the NoSchedule taint of the control plane."""
    me = pod("me", on="a", status=RUNS, metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a", taints=[ML]), me]), "default/me")
    assert (result.exit_code, result.fixes) == (0, ())
    assert result.message


def test_a_large_cluster_is_sampled() -> None:
    incoming = pod("me", containers=[{"name": "main", "image": "main"}])
    nodes = [node(f"n{number}") for number in range(120)]
    notes = {note.id: note for note in kschedx.explain(kschedx.Snapshot.from_objects(nodes), incoming).notes}
    assert notes["sampling"].facts == {"nodesToFind": 100, "feasible": 120}


@pytest.mark.parametrize("kind", ["DaemonSet", "ReplicaSet"])
def test_a_pod_that_its_daemon_set_deletes_has_no_fix(kind: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "r", "controller": True}
    me = pod("me", on="a", status=RUNS, metadata={"ownerReferences": [owner]}, nodeSelector={"disk": "ssd"})
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), me]), "default/me")
    lines = [line.strip() for line in str(explanation).splitlines()]
    deletes = "its DaemonSet's controller deletes a pod on a node that the DaemonSet does not select"
    assert (deletes in lines, bool(explanation.fixes), explanation.no_fix) == (
        kind == "DaemonSet",
        kind != "DaemonSet",
        "",
    )

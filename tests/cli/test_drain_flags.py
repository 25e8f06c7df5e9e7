"""A drain that kubectl refuses shows the outcome with the flags that kubectl asks for."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.builders import Manifest, at, disruption_budget, pod
from tests.cli.manifests import BIG_POD, NODE, POD, changed, write
from tests.command import kschedx
from tests.simulate.clusters import deployment, nodes

DATA = {"volumes": [{"name": "data", "emptyDir": {}}]}
FORCE, EMPTYDIR = "--force", "--delete-emptydir-data"


def bare(spec: Manifest | None = None) -> Manifest:
    return pod("bare", namespace="shop", on="node-1", spec=spec or {})


def test_pods_that_are_not_evicted_are_listed_once(tmp_path: Path) -> None:
    bares = [pod(f"bare-{number}", namespace="shop", on="node-1") for number in range(5)]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes(("4", "4")), *bares]}))
    text = " ".join(kschedx("drain", "node-1", "-s", path).out.split())
    assert "shop/bare-0, shop/bare-1, shop/bare-2 and 2 more are not evicted" in text


@pytest.mark.parametrize(
    ("spec", "given", "expected"),
    [
        ({}, (), f"with {FORCE}: can be drained, 1 evicted pod fits on other nodes, 1 pod deleted and not"),
        (DATA, (), f"with {FORCE} {EMPTYDIR}: can be drained, 1 evicted pod fits on other nodes, 1 pod deleted"),
        (DATA, (FORCE,), f"with {FORCE} {EMPTYDIR}: can be drained"),
        (DATA, (FORCE, EMPTYDIR), ""),
    ],
    ids=["no controller", "data as well", "one is given", "both are"],
)
def test_the_next_line_has_the_outcome_with_the_flags(
    spec: Manifest, given: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(
        json.dumps({"kind": "List", "items": [*nodes(("4", "4")), *deployment("web", "1", ["node-1"]), bare(spec)]})
    )
    result = kschedx("drain", "node-1", *given, "-s", path)
    assert expected in " ".join(result.out.split())
    assert ("with --" in result.out) is bool(expected)
    assert result.code == (1 if expected else 0)
    each = kschedx("drain", "--each", *given, "-s", path)
    assert each.out.splitlines()[0] == f"{'✗ 1' if expected else '✓ 2'} of 2 nodes can be drained"
    assert (": 2 of 2 nodes" in each.out) is bool(expected)


OF_EVICTIONS = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods/eviction"]}
OF_KAFKA = {"matchLabels": {"kubernetes.io/metadata.name": "kafka"}}


@pytest.mark.parametrize(
    ("rule", "fields", "flags", "is_told"),
    [
        ({}, {}, (), True),
        ({"resources": ["*/*"], "apiGroups": ["*"], "operations": ["*"]}, {}, (), True),
        ({"resources": ["pods/*"]}, {"namespaceSelector": {}, "objectSelector": {}}, (), True),
        ({}, {}, ("--disable-eviction",), False),
        ({"resources": ["pods", "*"]}, {}, (), False),
        ({"operations": ["DELETE"]}, {}, (), False),
        ({"apiGroups": ["apps"]}, {}, (), False),
        ({}, {"namespaceSelector": OF_KAFKA}, (), False),
        ({}, {"objectSelector": {"matchLabels": {"app": "web"}}}, (), False),
    ],
)
def test_a_webhook_may_refuse_evictions(
    rule: Manifest, fields: Manifest, flags: tuple[str, ...], is_told: bool, tmp_path: Path
) -> None:
    webhook = {"name": "drain.example.com", "rules": [{**OF_EVICTIONS, **rule}], **fields}
    configuration: Manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "drain"},
        "webhooks": [webhook],
    }
    shop: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    cluster = write(tmp_path, *nodes(("4", "4")), *deployment("web", "1", ["node-1"]), shop, configuration)
    result = kschedx("drain", "node-1", *flags, "-s", cluster)
    assert result.code == 0
    assert ("note: webhook drain.example.com decides about evictions too" in result.err) is is_told
    assert "drain.example.com" not in kschedx("drain", "node-2", "-s", cluster).err


def test_a_drain_without_evictions_names_the_budgets_that_it_bypasses(tmp_path: Path) -> None:
    budget = disruption_budget("all", namespace="shop", maxUnavailable=0)
    path = write(tmp_path, *nodes(("4", "4")), *deployment("web", "1", ["node-1"]), budget)
    result = kschedx("drain", "node-1", "--disable-eviction", "-s", path, columns=200)
    bypassed = "PDB shop/all needs 1 healthy pod (maxUnavailable 0) and has 1"
    assert (result.code, f"{bypassed}; --disable-eviction ignores it" in result.out) == (0, True)


@pytest.mark.parametrize(("observed", "is_behind"), [(1, True), (2, False), (0, False)])
def test_a_budget_whose_status_is_behind_delays_a_drain(tmp_path: Path, observed: int, *, is_behind: bool) -> None:
    budget = disruption_budget("all", namespace="shop", maxUnavailable=1)
    status = {"observedGeneration": observed, "disruptionsAllowed": 1, "currentHealthy": 1}
    budget = {**budget, "metadata": {**at(budget, "metadata"), "generation": 2}, "status": status}
    path = write(tmp_path, *nodes(("4", "4")), *deployment("web", "1", ["node-1"]), budget)
    result = kschedx("drain", "node-1", "-s", path, columns=200)
    delay = "evictions are refused until kube-controller-manager updates the status of PDB shop/all (generation 1 of 2)"
    assert (result.code, delay in result.out) == (0, is_behind)


@pytest.mark.parametrize(("limit", "fails"), [(0, True), (1, False)])
def test_a_drain_may_end_a_job(limit: int, fails: bool, tmp_path: Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "etl", "uid": "u", "controller": True}
    template: Manifest = {"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}]}}
    job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "etl", "namespace": "shop"},
        "spec": {"backoffLimit": limit, "template": template},
    }
    own = pod("etl-x", namespace="shop", on="node-1", metadata={"namespace": "shop", "ownerReferences": [owner]})
    result = kschedx("drain", "node-1", "-s", write(tmp_path, *nodes(("4", "4")), job, own))
    says = "not recreated: shop/etl-x: the eviction exceeds the backoffLimit of its Job, which then fails: raise it"
    assert (result.code, says in " ".join(result.out.split())) == (0, fails)


def test_a_note_names_a_drain_of_minutes_per_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": nodes(("4", "4"))}))
    assert kschedx("drain", "--each", "-s", path).err == ""
    monkeypatch.setattr("kschedx.cli.drain.MANY", 1)
    text = "note: --each drains 2 nodes by themselves, which takes minutes; for an answer sooner, "
    assert kschedx("drain", "--each", "-s", path).err == f"{text}name the nodes of one pool or zone\n"
    assert kschedx("drain", "--each", "node-1", "-s", path).err == ""


@pytest.mark.parametrize(
    ("flags", "code", "expected"),
    [
        (("--ignore-daemonsets", "--grace-period=30", "--timeout=60s", "--chunk-size=500"), 1, "block the eviction"),
        (("--disable-eviction",), 0, "✓ node-1: can be drained"),
        (("--pod-selector", "app=other"), 0, "✓ node-1: nothing to evict"),
    ],
    ids=["what changes nothing", "without budgets", "other pods only"],
)
def test_kubectls_other_flags_mean_the_same(flags: tuple[str, ...], code: int, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    budget = disruption_budget("web", namespace="shop", labels={"app": "web"}, minAvailable=1)
    items = [*nodes(("4", "4")), *deployment("web", "1", ["node-1"]), budget]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    result = kschedx("drain", "node-1", *flags, "-s", path)
    assert (result.code, expected in result.out) == (code, True), result.out


def test_nodes_are_selected_by_labels(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": nodes(("4", "4"))}))
    assert "✓ node-2:" in kschedx("drain", "-l", "kubernetes.io/hostname=node-2", "-s", path).out
    assert kschedx("drain", "-l", "gone=1", "-s", path).err.startswith("error: no node has the labels gone=1")


def test_the_command_for_a_pending_pod_has_the_same_input(tmp_path: Path) -> None:
    labels = {"app": "web"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    metadata: dict[str, object] = {"namespace": "shop", "labels": labels, "ownerReferences": [owner]}
    running = changed(POD, "metadata", {**metadata, "name": "web-0"})
    running = changed(running, "status", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    pending = changed(BIG_POD, "metadata", {**metadata, "name": "web-1"})
    status = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 0}
    budget = disruption_budget("web", namespace="shop", labels=labels, status=status, minAvailable=1)
    node = changed(NODE, "metadata.name", "node-01")
    snapshot = write(tmp_path, node, changed(running, "spec.nodeName", "node-01"), pending, budget)
    result = kschedx("drain", "node-01", "-s", snapshot, "-o", "html")
    (line,) = re.findall(r'"copy":"kschedx (why [^"]*)"', result.out)
    assert kschedx(*shlex.split(line)).out.startswith("✗ shop/web-1 is unschedulable")


def test_pods_that_match_only_the_drained_node_need_a_copy_of_it(tmp_path: Path) -> None:
    first, *others = nodes(("4", "4"))
    labeled = changed(first, "metadata.labels", {"pool": "db"})
    selecting = deployment("db", "1", ["node-1"], node_selector={"pool": "db"})
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [labeled, *others, *selecting]}))
    result = kschedx("drain", "node-1", "-s", path)
    assert result.code == 1
    assert re.search(r"^ +fix +add a node like node-1$", result.out, re.MULTILINE)


def test_another_cordoned_node_is_uncordoned_before_a_node_is_added(tmp_path: Path) -> None:
    first, second, *_ = nodes(("4", "4"))
    path = tmp_path / "cluster.json"
    cordoned = changed(second, "spec.unschedulable", True)
    path.write_text(json.dumps({"kind": "List", "items": [first, cordoned, *deployment("web", "1", ["node-1"])]}))
    result = kschedx("drain", "node-1", "-s", path)
    assert re.search(r"^ +fix +uncordon node-2", result.out, re.MULTILINE)


def test_a_pod_that_an_evicted_pod_preempts_counts_as_pending(tmp_path: Path) -> None:
    important = [
        changed(item, "spec.priority", 1000) for item in deployment("api", "3", ["node-1"]) if item["kind"] == "Pod"
    ]
    batch = deployment("batch", "3", ["node-2"])
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes(("4", "4")), *important, *batch]}))
    result = kschedx("drain", "node-1", "-s", path, "--force")
    assert "1 pod pending: " in result.out
    assert result.code == 1


def test_a_pod_bound_to_its_node_is_pending_until_the_uncordon(tmp_path: Path) -> None:
    bound = deployment("osd", "1", ["node-1"], node_selector={"kubernetes.io/hostname": "node-1"})
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes(("4", "4")), *bound]}))
    result = kschedx("drain", "node-1", "-s", path)
    assert "fix       uncordon node-1 after its maintenance: shop/osd-" in result.out
    assert "stop requiring" not in result.out


def test_a_pod_that_may_terminate_for_hours_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    slow = bare({"terminationGracePeriodSeconds": 86400})
    path.write_text(json.dumps({"kind": "List", "items": [*nodes(("4", "4")), slow]}))
    result = kschedx("drain", "node-1", FORCE, "-s", path)
    assert "slow      shop/bare: up to 86,400 s to terminate (terminationGracePeriodSeconds)" in result.out

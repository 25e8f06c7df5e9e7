"""`kschedx scale-down`: the choice of the autoscaler, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.autoscaler import single_group
from tests.command import ROOT, check_document, kschedx

KARPENTER = ROOT / "fixtures" / "karpenter-grows" / "cluster.yaml"
NODE = "ip-10-0-2-31.ec2.internal"


def test_nodes_of_karpenter_have_its_messages(tmp_path: Path) -> None:
    objects = [item for item in yaml.safe_load_all(KARPENTER.read_text()) if item]
    for item in objects:
        if (item["kind"], item["metadata"]["name"]) == ("Node", NODE):
            item["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
        if item["kind"] == "NodeClaim":
            item.setdefault("status", {}).setdefault("conditions", []).append(
                {"type": "Consolidatable", "status": "True"}
            )
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(objects))
    result = kschedx("scale-down", NODE, "-s", cluster)
    assert result.code == 1
    words = 'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation'
    assert f"{NODE.partition('.')[0]}: Karpenter keeps it, {words}" in " ".join(result.out.split())
    document = json.loads(kschedx("scale-down", "-s", cluster, "-o", "json").out)
    check_document(document)
    assert document["karpenter"][NODE]["obstacles"][0] == {"reason": "DisruptionBlocked", "text": words}
    going = kschedx("scale-down", "-s", cluster, "-o", "name")
    assert (going.code, going.out) == (3, "")  # consolidation of the others is not decided without prices


def test_a_cluster_without_an_autoscaler_is_undecided() -> None:
    result = kschedx("scale-down", "-s", "fixtures/tie/cluster.yaml")
    assert result.code == 3
    assert "the snapshot has no ConfigMap kube-system/cluster-autoscaler-status" in result.err


def test_without_an_autoscaler_the_annotation_that_keeps_a_node_is_named(tmp_path: Path) -> None:
    disabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    idle = single_group.node("idle")
    idle["metadata"]["annotations"] = {disabled: "true"}
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"kind": "List", "items": [idle]}), encoding="utf-8")
    result = kschedx("scale-down", "idle", "-s", cluster)
    assert (result.code, f"annotation {disabled}=true keeps idle in any case" in result.err) == (3, True)


def test_a_missing_node_has_the_nearest_name() -> None:
    result = kschedx("scale-down", "ip-10-0-1-2.ec2.internal", "-s", "fixtures/scale-down-blocked/cluster.yaml")
    assert result.code == 2
    assert 'did you mean "ip-10-0-1-2' in result.err


def test_an_invalid_flag_is_named() -> None:
    flag = ("--autoscaler-flag", "scale-down-unneeded-time=soon")
    result = kschedx("scale-down", "-s", "fixtures/scale-down-blocked/cluster.yaml", *flag)
    assert result.code == 2
    assert "--scale-down-unneeded-time" in result.err


@pytest.mark.parametrize("minimum", [1, 2])
def test_a_setting_that_keeps_a_node_has_a_fix(tmp_path: Path, minimum: int) -> None:
    disabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    idle = single_group.node("workers-1")
    idle["metadata"]["annotations"] = {disabled: "true"}
    group = single_group.group(target=2)
    group["health"]["minSize"] = minimum
    cluster = tmp_path / "cluster.json"
    cluster.write_text(
        json.dumps({"kind": "List", "items": [single_group.node(), idle, single_group.status(group)]}), encoding="utf-8"
    )
    out = kschedx("scale-down", "workers-1", "-s", cluster, columns=200).out
    assert f"$ kubectl annotate node workers-1 {disabled}-" in out
    assert ("lower the minimum of node group workers from 2 to 1 · not enough" in out) is (minimum == 2)
    assert ("nothing else keeps the node" in out) is (minimum == 1)


def test_the_table_names_what_keeps_a_node_and_a_protected_pod_has_a_fix(tmp_path: Path) -> None:
    result = kschedx("scale-down", "-s", "fixtures/scale-down-blocked/cluster.yaml", columns=200)
    assert not any(code in result.out for code in ("NotReplicated", "LocalStorageRequested", "NotSafeToEvict"))
    objects = [item for item in yaml.safe_load_all(KARPENTER.read_text()) if item]
    annotated = [item for item in objects if item["kind"] == "Pod" and item["spec"].get("nodeName") == NODE][:1]
    for item in annotated:
        item["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(objects))
    result = kschedx("scale-down", NODE, "-s", cluster, columns=300)
    name = annotated[0]["metadata"]["name"]
    assert f"$ kubectl annotate pod {name} -n" in result.out
    assert "karpenter.sh/do-not-disrupt-" in result.out


def test_a_claim_whose_node_has_not_registered_is_no_candidate(tmp_path: Path) -> None:
    folder = ROOT / "fixtures" / "karpenter-consolidates"
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-17", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
        "status": {"providerID": "aws:///eu-west-1a/i-0100117"},
    }
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{(folder / 'cluster.yaml').read_text()}\n---\n{json.dumps(claim)}\n", encoding="utf-8")
    result = kschedx("scale-down", "--instance-types", folder / "types.yaml", "-s", cluster)
    assert "ip-10-0-1-12" in result.out, result.err
    assert "general-17" not in result.out


@pytest.mark.parametrize(
    ("target", "minimum", "phrase", "fix"),
    [
        (1, 1, "at its minimum of 1", "from 1 to 0 · nothing else keeps the node"),
        (1, 3, "below its minimum of 3", "from 3 to 0 · nothing else keeps the node"),
        (0, 0, "at its minimum of 0", ""),
    ],
)
def test_a_lower_minimum_lets_a_node_go(target: int, minimum: int, phrase: str, fix: str, tmp_path: Path) -> None:
    group = single_group.group(target=target)
    group["health"]["minSize"] = minimum
    items = [single_group.node(), single_group.status(group)]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    out = kschedx("scale-down", "workers-0", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    assert phrase in out
    fixes = [line.partition("node group workers ")[2] for line in out.splitlines() if "lower the minimum" in line]
    assert fixes == [fix] * bool(fix)


@pytest.mark.parametrize(("cpu", "phrase"), [("1", "50% of its cpu"), ("1001m", "more than 50% of its cpu")])
def test_a_node_at_the_threshold_stays_before_1_31(cpu: str, phrase: str, tmp_path: Path) -> None:
    full = single_group.pod("full", cpu=cpu, nodeName="workers-0")
    items = [
        single_group.node(),
        single_group.node("workers-1"),
        full,
        single_group.status(single_group.group(target=2)),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    asking = ("scale-down", "workers-0", "-s", "cluster.json", "--kube-version", "1.28")
    out = kschedx(*asking, cwd=tmp_path, columns=200).out
    assert f"cluster-autoscaler keeps it, {phrase} is requested (--scale-down-utilization-threshold)" in out

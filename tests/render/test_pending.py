"""The common cause of several pending pods in the title, and their common fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import changed
from tests.command import kschedx

OFFERS = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def listed(folder: Path, *objects: Manifest) -> list[str]:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("why", "--all-pending", "-s", "cluster.json", cwd=folder, columns=200)
    assert result.code == 1
    return result.out.splitlines()


def wanting(name: str, cpu: str, on: str | None = None) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


def test_cordoned_nodes_are_counted(tmp_path: Path) -> None:
    nodes = [{**node(name, allocatable=OFFERS), "spec": {"unschedulable": True}} for name in "ab"]
    lines = listed(tmp_path, *nodes, wanting("x", "1"), wanting("y", "1"))
    assert lines[2] == "✗ 2 pods: 2 nodes are cordoned"


def test_a_lost_node_is_named_and_repaired_before_nodes_are_added(tmp_path: Path) -> None:
    lost = node("b", allocatable=OFFERS, taints=["node.kubernetes.io/unreachable:NoSchedule"])
    pods = [wanting(name, "2") for name in "xyz"]
    lines = listed(tmp_path, node("a", allocatable=OFFERS), lost, wanting("busy", "3", on="a"), *pods)
    assert lines[2] == "✗ 3 pods: insufficient cpu, short by 1 CPU; other nodes: b is unreachable"
    assert "  fix       repair b: it is unreachable · for 2 of 3" in lines


def test_what_rejects_a_gated_pod_without_its_gate(tmp_path: Path) -> None:
    gated = changed(wanting("x", "1"), "spec.schedulingGates", [{"name": "acme.io/quota"}])
    claiming = changed(gated, "spec.volumes", [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    other: Manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "b"}, "spec": {}}
    lines = listed(tmp_path, node("a", allocatable=OFFERS), claiming, other)
    assert lines[2] == "✗ scheduling gate acme.io/quota; without the gate: claim default/data does not exist"


def urgent(name: str) -> Manifest:
    manifest = wanting(name, "3")
    return {**manifest, "spec": {**at(manifest, "spec"), "priority": 100}}


def test_pods_that_preempt_others_are_apart_from_those_that_do_not(tmp_path: Path) -> None:
    """Each node has room for one of the urgent pods once its own pod is evicted."""
    nodes = [node(name, allocatable=OFFERS) for name in "ab"]
    low = [wanting(f"low-{name}", "3", on=name) for name in "ab"]
    lines = listed(tmp_path, *nodes, *low, *map(urgent, "xyz"))
    assert lines[2] == "✗ 2 pods: insufficient cpu, short by 2 CPU; preemption makes room"
    assert lines[4] == "  fix       wait for preemption: it makes room for all 2"
    alone = lines[lines.index("✗ insufficient cpu, short by 2 CPU") :]
    assert alone[1:3] == ["  pod       default/z (priority 100)", "  fix       add a node like a"]


def test_a_pod_without_a_report_of_its_kubelet_does_not_run(tmp_path: Path) -> None:
    waiting = {**wanting("x", "1", on="a"), "status": {"phase": "Pending"}}
    cluster = {"kind": "List", "items": [node("a", allocatable=OFFERS), waiting]}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    result = kschedx("why", "pod/x", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert "it is assigned to a; this shows what scheduling it now would give" in result.out


def test_an_equal_shortage_is_given_per_node(tmp_path: Path) -> None:
    busy = [wanting(f"busy-{name}", "3", on=name) for name in "ab"]
    nodes = [node(name, allocatable=OFFERS) for name in "ab"]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *busy, wanting("x", "2")]}))
    result = kschedx("why", "pod/x", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert "because   2 nodes lack 1 CPU each" in result.out


def test_what_lies_behind_a_cause_is_named_for_many_pods_as_for_one(tmp_path: Path) -> None:
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**rule, "labelSelector": {"matchLabels": {"app": "other"}}}]
    nodes = [node(name, labels={"zone": name}, allocatable=OFFERS) for name in "ab"]
    full = [wanting("hog", "4", on="b"), *(pod(f"other-{n}", labels={"app": "other"}, on="a") for n in "xy")]
    web = pod("web", labels={"app": "web"}, topologySpreadConstraints=spread, spec=at(wanting("", "1"), "spec"))
    lines = listed(tmp_path, *nodes, *full, web)
    root = "the labelSelector of the spread constraint over zone does not match the pod itself: it counts other pods"
    assert "skew 2 > maxSkew 1 over zone" in lines[2]
    assert f"  because   {root}" in lines
    simulated = kschedx("simulate", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    assert f"  because   {root}\n" in simulated


def test_where_every_group_has_room_fixes_are_tried_for_the_largest_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedx.render.pending._MOST_TRIED", 2)
    names = {"one": "d1", "two-a": "d2", "two-b": "d2", "three": "d3"}
    tied = [{**wanting(name, "1"), "spec": {"nodeSelector": {"disk": disk}}} for name, disk in names.items()]
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [node("a", allocatable=OFFERS), *tied]})
    )
    lines = kschedx("why", "--all-pending", "-o", "wide", "-s", "cluster.json", cwd=tmp_path, columns=200).out
    assert lines.count("\n  fix ") == 2
    assert "fixes were tried for the 2 largest groups; the command of a group tries them for it" in lines
    assert lines.index("two-") < lines.index("\n  fix ")


def test_a_cause_that_is_shown_in_one_line_names_a_pod(tmp_path: Path) -> None:
    tied = [{**wanting(f"x{number}", "1"), "spec": {"nodeSelector": {f"disk{number}": "ssd"}}} for number in range(12)]
    lines = listed(tmp_path, node("a", allocatable=OFFERS), *tied)
    brief = [line for line in lines if line.startswith("✗ ") and " · default/x" in line]
    assert len(brief) > 1
    assert len({line.rpartition(" · ")[2] for line in brief}) == len(brief)

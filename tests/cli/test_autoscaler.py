"""The autoscaler on the command line: options, what cannot be read, all pods, and the cluster that has grown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import ROOT, kschedx

GROWS = str(ROOT / "fixtures/autoscaler-grows/cluster.yaml")
MAXIMUM = str(ROOT / "fixtures/autoscaler-at-maximum/cluster.yaml")
NAME = "eks-general-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6"


def scaling(*options: str, cluster: str = GROWS, pod: str = "search-0") -> dict[str, object]:
    ran = kschedx("why", f"pod/{pod}", "-n", "shop", "-s", cluster, "-o", "json", *options)
    found: dict[str, object] = json.loads(ran.out)["autoscaler"]
    return found


def test_the_document_has_what_is_added() -> None:
    found = scaling()
    assert found["result"] == "ScaleUpSuccessful"
    assert found["scaleUps"] == [{"group": NAME, "from": 2, "to": 5, "max": 10}]
    assert found["event"] == f"pod triggered scale-up: [{{{NAME} 2->5 (max: 10)}}]"


def test_a_flag_changes_the_answer() -> None:
    assert scaling("--autoscaler-flag", "max-nodes-per-scaleup=1")["scaleUps"] == [
        {"group": NAME, "from": 2, "to": 3, "max": 10}
    ]
    assert scaling("--autoscaler-flag", "max-nodes-total=3")["result"] == "ScaleUpLimitedByMaxNodesTotal"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--autoscaler-flag", "max-node-total=3"), "max-nodes-total"),
        (("--autoscaler-flag", "max-nodes-total=many"), "max-nodes-total"),
        (("--node-groups", "missing.yaml"), "missing.yaml"),
    ],
)
def test_a_wrong_option_is_told(options: tuple[str, ...], told: str) -> None:
    ran = kschedx("why", "pod/search-0", "-n", "shop", "-s", GROWS, *options)
    assert (ran.code, told in ran.err) == (2, True)


def test_a_label_that_names_no_group_leaves_templates_unknown() -> None:
    found = scaling("--node-group-label", "nobody")
    groups = found["groups"]
    assert isinstance(groups, dict)
    assert {group["template"] for group in groups.values()} == {None}


def test_a_garbled_status_is_a_note_and_no_error(tmp_path: Path) -> None:
    text = Path(GROWS).read_text(encoding="utf-8").replace("nodeGroups:", "nodeGroups: 3 #")
    (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")
    ran = kschedx("why", "pod/search-0", "-n", "shop", "-s", str(tmp_path / "cluster.yaml"), "-o", "json")
    document = json.loads(ran.out)
    assert ran.code == 1
    assert "autoscaler" not in document
    assert "autoscaler-unreadable" in [note["id"] for note in document["notes"]]


def test_many_pods_end_with_what_is_added_for_all() -> None:
    ran = kschedx("why", "--all-pending", "-s", GROWS)
    assert "cluster-autoscaler adds 3 nodes to" in ran.out
    assert "for 5 pods" in ran.out
    assert "adds no node; no group helps 1 pod" in kschedx("why", "--all-pending", "-s", MAXIMUM).out


def test_the_queue_runs_on_the_cluster_that_has_grown() -> None:
    ran = kschedx("simulate", "--autoscale", "-s", GROWS, "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["pending"]) == (0, [])
    assert document["autoscaler"]["groups"] == {NAME: {"from": 2, "to": 5, "max": 10}}
    without = str(ROOT / "fixtures/fragmentation")
    refused = kschedx("simulate", "--autoscale", "-s", without)
    assert (refused.code, "cluster-autoscaler-status" in refused.err) == (2, True)


def test_a_snapshot_and_an_anonymized_one_say_the_same(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.json")
    assert kschedx("snapshot", "-s", GROWS, "-o", kept).code == 0
    ours, theirs = scaling(), scaling(cluster=kept)
    assert ours == theirs
    hidden = str(tmp_path / "hidden.json")
    assert kschedx("snapshot", "--anonymize", "-s", GROWS, "-o", hidden).code == 0
    assert "cluster-autoscaler adds 3 nodes to" in kschedx("why", "--all-pending", "-s", hidden).out


@pytest.mark.parametrize(
    ("story", "pod", "title"),
    [
        ("autoscaler-at-maximum", "checkout-7c9d", f"raise the maximum of {NAME} from 3 to 4"),
        ("autoscaler-daemonsets-fill-template", "report-5f4b", "request at most 830m cpu"),
        ("autoscaler-below-cutoff", "placeholder-3a7f", "give it a priority of at least -10"),
    ],
)
def test_what_would_help_was_tried(story: str, pod: str, title: str) -> None:
    fixes = scaling(cluster=str(ROOT / f"fixtures/{story}/cluster.yaml"), pod=pod)["fixes"]
    assert isinstance(fixes, list)
    assert [(fix["title"], fix["nodes"]) for fix in fixes] == [(title, 1)]


def test_a_group_without_a_node_is_known_by_a_file(tmp_path: Path) -> None:
    groups = {"groups": {NAME: {"nodes": [], "capacity": {"cpu": "4", "memory": "14Gi"}, "labels": {"pool": "x"}}}}
    (tmp_path / "groups.yaml").write_text(json.dumps(groups), encoding="utf-8")
    found = scaling("--node-group-label", "nobody", "--node-groups", str(tmp_path / "groups.yaml"))
    assert found["scaleUps"] == [{"group": NAME, "from": 2, "to": 5, "max": 10}]

"""A chosen node that is not ready, where nobody has tainted it."""

from __future__ import annotations

import pytest

import kschedx
from tests.builders import Manifest, node, pod

NOT_READY = "node.kubernetes.io/not-ready"


def a_node(status: str, *taints: str) -> Manifest:
    ready = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": status}]}
    return {**node("a", taints=[f"{key}:NoSchedule" for key in taints]), "status": ready}


@pytest.mark.parametrize(
    ("manifest", "is_told"),
    [(a_node("True"), False), (a_node("False"), True), (a_node("Unknown"), True), (node("a"), False)],
    ids=["ready", "not-ready", "unknown", "unsaid"],
)
def test_it_is_told(manifest: Manifest, is_told: bool) -> None:
    notes = kschedx.explain(kschedx.Snapshot.from_objects([manifest, pod("p")]), "default/p").notes
    texts = [note.text for note in notes if note.id == "not-ready-node"]
    assert texts == (["a is not ready but not tainted: kube-scheduler checks only taints"] if is_told else [])


def test_who_tolerates_the_taint_knows() -> None:
    me = pod("p", spec={"tolerations": [{"key": NOT_READY, "operator": "Exists"}]})
    notes = kschedx.explain(kschedx.Snapshot.from_objects([a_node("False", NOT_READY), me]), "default/p").notes
    assert "not-ready-node" not in {note.id for note in notes}


@pytest.mark.parametrize(
    ("architectures", "spec", "expected"),
    [
        (("amd64", "amd64"), {}, []),
        (("amd64", "arm64"), {}, ["mixed-architectures"]),
        (("amd64", "arm64"), {"nodeSelector": {"kubernetes.io/arch": "arm64"}}, []),
        (("amd64", "amd64"), {"os": {"name": "windows"}}, ["other-operating-system"]),
        (("amd64", "amd64"), {"os": {"name": "linux"}}, []),
    ],
)
def test_what_only_the_kubelet_checks(architectures: tuple[str, ...], spec: Manifest, expected: list[str]) -> None:
    nodes = [
        node(f"n{number}", labels={"kubernetes.io/os": "linux", "kubernetes.io/arch": architecture})
        for number, architecture in enumerate(architectures)
    ]
    notes = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, pod("p", spec=spec)]), "default/p").notes
    assert [note.id for note in notes if note.id in ("mixed-architectures", "other-operating-system")] == expected

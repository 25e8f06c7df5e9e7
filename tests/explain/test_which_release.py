"""The emulated version without an option."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.releases import EMULATED
from tests.builders import Manifest, node, pod


def with_kubelet(name: str, version: str) -> Manifest:
    result = node(name)
    result["status"] = {"allocatable": {"cpu": "4", "pods": "10"}, "nodeInfo": {"kubeletVersion": version}}
    return result


@pytest.mark.parametrize(
    ("kubelets", "emulated", "note"),
    [
        ([], "1.36", None),
        (["", ""], "1.36", None),
        (["no version"], "1.36", None),
        (["v1.36.1"], "1.36", None),
        (["v1.31.4-eks-1"], "1.31", "the kubelets are v1.31.4-eks-1: kschedx emulates kube-scheduler 1.31"),
        (["v1.30.1", "v1.31.0", "v1.31.2"], "1.31", "most kubelets are v1.31.2: kschedx emulates kube-scheduler 1.31"),
        (["v1.30.1", "v1.31.0"], "1.31", "most kubelets are v1.31.0: kschedx emulates kube-scheduler 1.31"),
        (
            ["v1.99.0"],
            EMULATED[0],
            (
                "the kubelets are v1.99.0, which kschedx does not support: kschedx emulates kube-scheduler "
                f"{EMULATED[0]}, as published and not measured"
            ),
        ),
        (
            ["v1.37.0"],
            "1.37",
            "the kubelets are v1.37.0: kschedx emulates kube-scheduler 1.37, as published and not measured",
        ),
        (["v0.0.0-master+8e16b12"], "1.36", None),
        (
            ["v1.24.9"],
            "1.26",
            "the kubelets are v1.24.9, which kschedx does not support: kschedx emulates kube-scheduler 1.26",
        ),
    ],
)
def test_kubelets_decide_the_version(kubelets: list[str], emulated: str, note: str | None) -> None:
    nodes = [with_kubelet(f"n{i}", version) for i, version in enumerate(kubelets)] or [node("n")]
    result = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, pod("new")]), "default/new")
    assert result.to_dict()["kubernetesVersion"] == emulated
    texts = [item.text.partition(" (")[0] for item in result.notes if item.id == "release"]
    assert texts == ([] if note is None else [note])


def test_a_given_version_precedes_the_kubelets() -> None:
    snapshot = kschedx.Snapshot.from_objects([with_kubelet("n", "v1.31.0"), pod("new")])
    result = kschedx.explain(snapshot, "default/new", kube_version="1.29")
    assert result.to_dict()["kubernetesVersion"] == "1.29"
    assert "release" not in [note.id for note in result.notes]

"""Notes about changes by admission, and about unknown objects that it reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import kschedx as library
from kschedx.inquiry.explanation import Explanation
from tests.builders import Manifest, node

LIMITS: Manifest = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "defaults", "namespace": "shop"},
    "spec": {
        "limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "4", "memory": "1Gi"}}]
    },
}
KATA: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {
        "nodeSelector": {"runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    },
}
USUAL: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "usual"},
    "value": 10,
    "globalDefault": True,
}
SHOP: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "annotations": {"scheduler.alpha.kubernetes.io/node-selector": "team=shop"}},
}
NODES = (
    node("small", allocatable={"cpu": "2", "memory": "8Gi", "pods": "110"}),
    node("kata", labels={"runtime": "kata"}, taints=["kata:NoSchedule"]),
    node("team", labels={"team": "shop"}),
)


def pod(*names: str, created: bool = False, **spec: object) -> Manifest:
    containers = [{"name": name, "image": "app"} for name in names or ("web",)]
    metadata = {"name": "web-0", "namespace": "shop"}
    if created:
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def explained(manifest: Manifest, *objects: Manifest, plugins: Sequence[str] = ()) -> Explanation:
    return library.explain(library.Snapshot.from_objects([*NODES, *objects]), manifest, admission_plugins=plugins)


ADMISSION_IDS = ("admission", "admission-plugin-off", "missing-kind")


def texts(manifest: Manifest, *objects: Manifest, plugins: Sequence[str] = ()) -> list[str]:
    notes = explained(manifest, *objects, plugins=plugins).notes
    return [note.text for note in notes if note.id in ADMISSION_IDS]


@pytest.mark.parametrize(
    ("manifest", "objects", "expected"),
    [
        pytest.param(pod(), (), [], id="nothing"),
        pytest.param(
            pod("web", "log"),
            (LIMITS,),
            [
                (
                    "LimitRange shop/defaults set requests.cpu 3, requests.memory 1Gi, limits.cpu 4, "
                    "limits.memory 1Gi on containers web, log"
                )
            ],
            id="a LimitRange",
        ),
        pytest.param(
            pod(runtimeClassName="kata"),
            (KATA,),
            [
                (
                    "RuntimeClass kata set overhead.cpu 250m, nodeSelector.runtime kata; "
                    "added toleration kata:NoSchedule op=Exists"
                )
            ],
            id="a RuntimeClass",
        ),
        pytest.param(
            pod(), (USUAL,), ["PriorityClass usual, the global default, set priority 10"], id="a default class"
        ),
        pytest.param(pod(priorityClassName="usual"), (USUAL,), [], id="a class that the manifest names"),
        pytest.param(
            pod(),
            (SHOP,),
            [
                (
                    "namespace shop has the annotation scheduler.alpha.kubernetes.io/node-selector: it applies only "
                    "if the API server runs PodNodeSelector, which is off by default"
                )
            ],
            id="an annotation that may count",
        ),
    ],
)
def test_notes(manifest: Manifest, objects: tuple[Manifest, ...], expected: list[str]) -> None:
    assert texts(manifest, *objects) == expected


def test_changes_of_every_pod_are_separate() -> None:
    (note,) = (note.document for note in explained(pod()).notes if note.id == "admission-routine")
    assert (note["plugin"], note["source"]) == ("DefaultTolerationSeconds", "")
    assert note["changes"] == [
        {
            "container": "",
            "item": "toleration",
            "before": "",
            "after": f"node.kubernetes.io/{trouble}:NoExecute op=Exists",
        }
        for trouble in ("not-ready", "unreachable")
    ]


def test_fields_that_admission_adds_decide() -> None:
    assert set(explained(pod()).best_nodes) <= {"small", "team"}
    assert explained(pod(), LIMITS).best_nodes == ("team",)
    assert explained(pod(runtimeClassName="kata"), KATA).best_nodes == ("kata",)
    assert explained(pod(), SHOP, plugins=["PodNodeSelector"]).best_nodes == ("team",)


def test_an_enabled_plugin_has_a_note() -> None:
    assert texts(pod(), SHOP, plugins=["PodNodeSelector"]) == ["Namespace shop set nodeSelector.team shop"]


def test_a_pod_that_was_stored_is_not_admitted_again() -> None:
    assert texts(pod(created=True), LIMITS, USUAL) == []
    stored = library.Snapshot.from_objects([*NODES, LIMITS, pod()])
    assert {note.id for note in library.explain(stored, "shop/web-0").notes}.isdisjoint(ADMISSION_IDS)

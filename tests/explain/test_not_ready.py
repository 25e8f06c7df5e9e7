"""A chosen node on which the pod cannot start, or that is NotReady without a taint."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.controllers.states import CannotStart
from tests.builders import Manifest, node, pod
from tests.storage_builders import claim, csi_node, storage_class

USING: Manifest = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
NOT_READY = "node.kubernetes.io/not-ready"


def a_node(status: str, *taints: str) -> Manifest:
    ready = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": status}]}
    return {**node("a", taints=[f"{key}:NoSchedule" for key in taints]), "status": ready}


@pytest.mark.parametrize(
    ("manifest", "is_told"),
    [(a_node("True"), False), (a_node("False"), True), (a_node("Unknown"), True), (node("a"), False)],
    ids=["ready", "not-ready", "unknown", "unsaid"],
)
def test_a_note_names_the_node(manifest: Manifest, is_told: bool) -> None:
    notes = kschedx.explain(kschedx.Snapshot.from_objects([manifest, pod("p")]), "default/p").notes
    texts = [note.text for note in notes if note.id == "not-ready-node"]
    assert texts == (["a is not ready but not tainted: kube-scheduler checks only taints"] if is_told else [])


def test_a_pod_that_tolerates_the_taint_has_no_note() -> None:
    me = pod("p", spec={"tolerations": [{"key": NOT_READY, "operator": "Exists"}]})
    notes = kschedx.explain(kschedx.Snapshot.from_objects([a_node("False", NOT_READY), me]), "default/p").notes
    assert "not-ready-node" not in {note.id for note in notes}


FOREVER: Manifest = {"key": "team", "operator": "Exists"}
A_MINUTE: Manifest = {**FOREVER, "effect": "NoExecute", "tolerationSeconds": 60}


@pytest.mark.parametrize(
    ("taints", "tolerations", "seconds"),
    [
        (["team=x:NoExecute"], [A_MINUTE], 60),
        (["team=x:NoExecute"], [FOREVER, A_MINUTE], None),
        (["team=x:NoExecute"], [{**A_MINUTE, "tolerationSeconds": -1}], 0),
        (["team=x:NoExecute", "disk=y:NoExecute"], [{**A_MINUTE, "key": "disk", "tolerationSeconds": 9}, A_MINUTE], 9),
        (["team=x:NoSchedule"], [FOREVER, A_MINUTE], None),
        ([], [A_MINUTE], None),
    ],
    ids=["a minute", "the first toleration decides", "at once", "the shortest time", "no eviction", "no taint"],
)
def test_a_pod_that_is_evicted_later(taints: list[str], tolerations: list[Manifest], seconds: int | None) -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a", taints=taints), pod("p", tolerations=tolerations)])
    texts = [note.text for note in kschedx.explain(snapshot, "default/p").notes if note.id == "limited-stay"]
    text = f"the pod is evicted after {seconds} s (tolerationSeconds), because of a NoExecute taint of its node"
    assert texts == ([] if seconds is None else [text])


def test_a_pod_that_may_stay_on_another_chosen_node_has_no_note_about_eviction() -> None:
    nodes = [node("a", taints=["team=x:NoExecute"]), node("b")]
    result = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, pod("p", tolerations=[A_MINUTE])]), "default/p")
    assert sorted(result.best_nodes) == ["a", "b"]
    assert "limited-stay" not in {note.id for note in result.notes}


IMAGE = {"name": "c", "image": "registry/arm64v8/nginx:1.25"}
SERVERCORE = "mcr.microsoft.com/windows/servercore:ltsc2022"
HOST_PROCESS: Manifest = {"windowsOptions": {"hostProcess": True}}
LINUX = [("linux", "amd64"), ("linux", "amd64")]


@pytest.mark.parametrize(
    ("platforms", "spec", "expected"),
    [
        (LINUX, {}, ""),
        ([("linux", "amd64"), ("linux", "arm64")], {}, "mixed-architectures"),
        ([("linux", "amd64"), ("windows", "amd64")], {}, "mixed-systems"),
        ([("linux", "amd64"), ("linux", "arm64")], {"nodeSelector": {"kubernetes.io/arch": "arm64"}}, ""),
        (LINUX, {"os": {"name": "linux"}}, ""),
        (LINUX, {"os": {"name": "windows"}}, "n0 n1 kubernetes.io/os=windows"),
        ([("linux", "amd64"), ("windows", "amd64")], {"os": {"name": "windows"}}, "n0 kubernetes.io/os=windows"),
        ([("linux", "amd64"), ("windows", "amd64")], {"securityContext": HOST_PROCESS}, "n0 kubernetes.io/os=windows"),
        (LINUX, {"containers": [{"name": "c", "securityContext": HOST_PROCESS}]}, "n0 n1 kubernetes.io/os=windows"),
        (LINUX, {"securityContext": {"windowsOptions": {"hostProcess": False}}}, ""),
        ([("windows", "amd64")], {"securityContext": HOST_PROCESS}, ""),
        (LINUX, {"containers": [IMAGE]}, "n0 n1 kubernetes.io/arch=arm64"),
        (LINUX, {"containers": [{**IMAGE, "image": "app:1.2-arm64"}]}, "n0 n1 kubernetes.io/arch=arm64"),
        (LINUX, {"containers": [{**IMAGE, "image": "app-amd64:1.2"}]}, ""),
        (LINUX, {"containers": [{**IMAGE, "image": SERVERCORE}]}, "n0 n1 kubernetes.io/os=windows"),
        (LINUX, {"containers": [{**IMAGE, "image": "app:1-nanoserver"}]}, "n0 n1 kubernetes.io/os=windows"),
        ([("windows", "amd64")], {"containers": [{**IMAGE, "image": SERVERCORE}]}, ""),
        (LINUX, {"containers": [{**IMAGE, "image": "mcr.microsoft.com/dotnet/runtime:9.0"}]}, ""),
    ],
)
def test_conditions_that_only_the_kubelet_checks(
    platforms: list[tuple[str, str]], spec: Manifest, expected: str
) -> None:
    nodes = [
        node(f"n{number}", labels={"kubernetes.io/os": os, "kubernetes.io/arch": architecture})
        for number, (os, architecture) in enumerate(platforms)
    ]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, pod("p", spec=spec)]), "default/p")
    state = explanation.lifecycle
    notes = [note.id for note in explanation.notes if note.id.startswith("mixed-")]
    if isinstance(state, CannotStart):
        assert (" ".join((*state.nodes, state.label)), notes) == (expected, notes)
    else:
        assert notes == expected.split()


@pytest.mark.parametrize(
    ("installed", "provisioner", "expected"),
    [
        (["a", "b"], "disk.csi.example.com", None),
        ([], "disk.csi.example.com", "no CSINode lists driver disk.csi.example.com"),
        ([], "driver.longhorn.io", "no CSINode lists driver driver.longhorn.io"),
        (["a"], "disk.csi.example.com", "on b, it cannot start: CSINode b does not list driver disk.csi.example.com"),
        ([], "example.com/local-path", None),
    ],
    ids=["everywhere", "nowhere", "another-name", "on-one", "not-a-csi-driver"],
)
def test_a_driver_that_nodes_lack(installed: list[str], provisioner: str, expected: str | None) -> None:
    drivers = [csi_node(name, driver=provisioner if name in installed else "other.example.com") for name in "ab"]
    claims = [claim("d", storage_class="fast"), storage_class("fast", provisioner=provisioner)]
    objects = [node("a"), node("b"), *drivers, *claims, pod("p", spec=USING)]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/p")
    state = explanation.lifecycle
    message = [state.why] if isinstance(state, CannotStart) else []
    message += [note.text for note in explanation.notes if note.id == "cannot-start" and state is None]
    assert message == ([expected] if expected else [])

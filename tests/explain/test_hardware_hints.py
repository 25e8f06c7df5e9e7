"""A resource that no node has, and the nodes that have its hardware."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.root_causes import root_causes
from kschedx.words import headline
from kschedx.words.resources import hardware_text
from tests.builders import Manifest, at, evaluate, node, pod

OFFERS = {"cpu": "8", "memory": "8Gi", "pods": "110"}


def diagnosed(*nodes: Manifest, resource: str = "nvidia.com/gpu") -> Diagnosis:
    asks = [{"name": "main", "resources": {"requests": {resource: "1"}, "limits": {resource: "1"}}}]
    return Diagnosis(evaluate([*nodes, pod("me", containers=asks)], "default/me"))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"nvidia.com/gpu.present": "true"}, ["nvidia.com/gpu.present=true"]),
        ({"feature.node.kubernetes.io/pci-10de.present": "true"}, ["feature.node.kubernetes.io/pci-10de.present=true"]),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, ["cloud.google.com/gke-accelerator=nvidia-l4"]),
        ({"nvidia.com/gpu.present": "false"}, []),
        ({"disk": "ssd"}, []),
    ],
)
def test_labels_of_the_hardware(labels: dict[str, str], expected: list[str]) -> None:
    diagnosis = diagnosed(node("a", labels=labels), node("b"))
    assert [label for hint in diagnosis.hardware for _, label in hint.nodes] == expected
    assert headline(diagnosis.groups[0].exemplar.findings[0]) == "no node has nvidia.com/gpu"


@pytest.mark.parametrize(
    ("kind", "resource", "names"),
    [
        ("inf2.xlarge", "aws.amazon.com/neuron", ["a"]),
        ("g5.2xlarge", "nvidia.com/gpu", ["a"]),
        ("g4ad.xlarge", "nvidia.com/gpu", []),
        ("g4ad.xlarge", "amd.com/gpu", ["a"]),
        ("m6i.xlarge", "nvidia.com/gpu", []),
    ],
)
def test_instance_types_with_the_hardware(kind: str, resource: str, names: list[str]) -> None:
    labels = {"node.kubernetes.io/instance-type": kind}
    hints = diagnosed(node("a", labels=labels), node("b"), resource=resource).hardware
    assert [name for hint in hints for name, _ in hint.nodes] == names


@pytest.mark.parametrize(
    ("capacity", "title"),
    [
        ("0", "enable hardware virtualization (/dev/kvm) in the machine or hypervisor of a"),
        (
            "1k",
            "repair the device plugin for devices.kubevirt.io/kvm on a, or the devices that it reports unhealthy",
        ),
    ],
)
def test_a_node_without_virtualization_is_not_copied(capacity: str, title: str) -> None:
    resource = "devices.kubevirt.io/kvm"
    asks = [{"name": "main", "resources": {"requests": {resource: "1"}, "limits": {resource: "1"}}}]
    objects = [
        node("a", allocatable={**OFFERS, resource: "0"}),
        node("b", allocatable=OFFERS),
        pod("me", containers=asks),
    ]
    at(objects[0], "status")["capacity"] = {**OFFERS, resource: capacity}
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert explanation.fixes[0].title == title


def test_a_device_of_another_kind_does_not_replace_the_requested_one() -> None:
    offers = {**OFFERS, "devices.kubevirt.io/kvm": "0", "devices.kubevirt.io/tun": "1k"}
    asks = [{"name": "main", "resources": {"limits": {"devices.kubevirt.io/kvm": "1"}}}]
    objects = [node("a", allocatable=offers), pod("me", containers=asks)]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert not [cause for cause in root_causes(explanation.diagnosis) if "instead of" in cause.text]


def test_the_hint_in_words() -> None:
    (hint,) = diagnosed(node("a", labels={"nvidia.com/gpu.count": "8"})).hardware
    assert hardware_text(hint) == (
        "a (nvidia.com/gpu.count=8) has the hardware but reports no nvidia.com/gpu: its device plugin does not run "
        "or registers none"
    )


def test_a_resource_of_another_node_has_no_hint() -> None:
    diagnosis = diagnosed(
        node("a", labels={"nvidia.com/gpu.present": "true"}),
        node("b", taints=["gpu:NoSchedule"], allocatable={**OFFERS, "nvidia.com/gpu": "1"}),
    )
    assert not diagnosis.hardware
    assert {headline(finding) for group in diagnosis.groups for finding in group.exemplar.findings} == {
        "insufficient nvidia.com/gpu, short by 1, more than the node's allocatable",
        "untolerated taint gpu:NoSchedule",
    }


def test_the_document_has_a_hint_only_if_it_applies() -> None:
    (finding,) = diagnosed(node("a")).groups[0].exemplar.findings
    assert finding.to_dict()["offeredNowhere"] is True


def test_a_running_plugin_with_other_resources() -> None:
    """Such as GPU memory, which another scheduler counts, and MIG devices that are not configured."""
    labels = {"nvidia.com/gpu.present": "true"}
    offers = node("a", labels=labels, allocatable={**OFFERS, "nvidia.com/gpu": "8"})
    has_none = node("b", labels=labels, allocatable={**OFFERS, "nvidia.com/gpu": "0"})
    hints = diagnosed(offers, has_none, resource="nvidia.com/gpumem").hardware
    assert [name for hint in hints for name, _ in hint.nodes] == ["b"]


PLUGIN = "nvidia-device-plugin"
CRASHES = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def plugin_pod(status: Manifest, on: str) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": PLUGIN, "uid": "d", "controller": True}
    return pod(f"{PLUGIN}-x", metadata={"name": f"{PLUGIN}-x", "ownerReferences": [owner]}, status=status, on=on)


def test_a_device_plugin_without_its_driver() -> None:
    initializing = {"state": {"waiting": {"reason": "PodInitializing"}}}
    waits = {
        "initContainerStatuses": [{"name": "check", "state": {"running": {}}}],
        "containerStatuses": [initializing],
    }
    driver = pod("driver", on="a", status={"phase": "Running", "containerStatuses": [CRASHES]})
    hardware = node("a", labels={"nvidia.com/gpu.present": "true"})
    me = pod("me", containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])
    for others, why, fix in (
        ([driver], "it waits for default/driver: CrashLoopBackOff", "repair default/driver, for which"),
        ([], "init container check has not ended", "repair device plugin default/nvidia-device-plugin-x"),
    ):
        cluster = [hardware, plugin_pod({"phase": "Pending", **waits}, on="a"), *others, me]
        explanation = kschedx.explain(kschedx.Snapshot.from_objects(cluster), "default/me")
        assert root_causes(Diagnosis(explanation.cycle))[0].text.endswith(f" on a does not run: {why}")
        assert explanation.fixes[0].title.startswith(fix)


@pytest.mark.parametrize(
    ("resource", "name", "is_plugin"),
    [
        ("gpu.intel.com/i915", "intel-gpu-plugin", True),
        ("devices.kubevirt.io/kvm", "virt-handler", True),
        ("rdma/hca_a", "rdma-shared-dp-ds", True),
        ("nvidia.com/gpu", "nvidia-dra-driver-gpu-kubelet-plugin", False),
        ("nvidia.com/gpu", "virt-handler", False),
    ],
)
def test_names_of_device_plugins(resource: str, name: str, *, is_plugin: bool) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "d", "controller": True}
    status = {"phase": "Running", "containerStatuses": [CRASHES]}
    machine = node("a", allocatable={**OFFERS, resource: "0"})
    at(machine, "status")["capacity"] = {**OFFERS, resource: "1"}
    me = pod("me", containers=[{"name": "main", "resources": {"limits": {resource: "1"}}}])
    objects = [machine, pod(f"{name}-x", metadata={"ownerReferences": [owner]}, status=status, on="a"), me]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    repair = f"repair device plugin default/{name}-x on a"
    assert (repair in [fix.title for fix in explanation.fixes]) is is_plugin


@pytest.mark.parametrize(
    ("taints", "plugin", "expected", "fix"),
    [
        (
            (),
            plugin_pod(
                {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
                on="a",
            ),
            "its device plugin default/nvidia-device-plugin-x on a does not run: CrashLoopBackOff",
            "repair device plugin default/nvidia-device-plugin-x on a",
        ),
        (
            (),
            plugin_pod({"phase": "Running"}, on="a"),
            "its device plugin default/nvidia-device-plugin-x on a runs, but registers no nvidia.com/gpu",
            "repair the driver or container runtime of a, so that default/nvidia-device-plugin-x registers its devices",
        ),
        (
            ("team=ml:NoSchedule",),
            plugin_pod({"phase": "Running"}, on="b"),
            "DaemonSet default/nvidia-device-plugin creates no device plugin pod for a: it does not tolerate team",
            "let DaemonSet default/nvidia-device-plugin, the device plugin, tolerate team=ml:NoSchedule",
        ),
    ],
)
def test_a_device_plugin_that_does_not_run(taints: tuple[str, ...], plugin: Manifest, expected: str, fix: str) -> None:
    asks = [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]
    hardware = node("a", labels={"nvidia.com/gpu.present": "true"}, taints=taints)
    me = pod("me", containers=asks, tolerations=[{"key": "team", "operator": "Exists"}])
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([hardware, node("b"), plugin, me]), "default/me")
    texts = [root_cause.text for root_cause in root_causes(Diagnosis(explanation.cycle))]
    assert texts[0].startswith(expected)
    assert explanation.fixes[0].title.startswith(fix)


def test_a_device_plugin_that_tolerates_no_node_without_a_label_of_hardware() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    plugin = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    asks = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    me = pod("me", containers=asks, tolerations=[{"key": "team", "operator": "Exists"}])
    nodes = [node("a", taints=("boss=me:NoSchedule",)), node("b", taints=("team=ml:NoSchedule",))]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, plugin, me]), "default/me")
    tolerate = "let DaemonSet default/nvidia-device-plugin, the device plugin, tolerate team=ml:NoSchedule"
    assert explanation.fixes[0].title == tolerate


def test_a_plugin_without_virtualization_is_not_repaired() -> None:
    host = node("a", allocatable={**OFFERS, "devices.kubevirt.io/kvm": "0"})
    running = pod(
        "virt-handler-x", on="a", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    )
    me = pod("me", containers=[{"name": "main", "resources": {"limits": {"devices.kubevirt.io/kvm": "1"}}}])
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([host, running, me]), "default/me")
    enable = "enable hardware virtualization (/dev/kvm) in the machine or hypervisor of a"
    assert [fix.title for fix in explanation.fixes][:1] == [enable]
    assert not any("repair" in fix.title for fix in explanation.fixes)


def test_a_device_plugin_on_a_node_that_may_lack_the_hardware() -> None:
    """Nothing but the plugin, which runs on all nodes, speaks of devices."""
    me = pod("me", containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])
    running = plugin_pod({"phase": "Running"}, on="a")
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), running, me]), "default/me")
    [cause] = root_causes(Diagnosis(explanation.cycle))
    assert cause.text == "device plugin default/nvidia-device-plugin-x runs on a, and registers no nvidia.com/gpu"
    assert explanation.fixes[0].title == (
        "if a has devices for nvidia.com/gpu, repair its driver or container runtime: its device plugin registers none"
    )
    explanation = kschedx.explain(
        kschedx.Snapshot.from_objects([node("a", unschedulable=True), running, me]), "default/me"
    )
    assert "container runtime, and uncordon a: its device plugin registers none" in explanation.fixes[0].title
    offers = node("b", taints=["gpu:NoSchedule"], allocatable={**OFFERS, "nvidia.com/gpu": "1"})
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), offers, running, me]), "default/me")
    assert not root_causes(Diagnosis(explanation.cycle))

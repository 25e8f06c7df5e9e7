"""Differences between Karpenter 1.13 and 1.14, as derived from the source of 1.14, which was not run."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kschedx.errors import ConfigError
from kschedx.karpenter.catalogue import InstanceTypes, WrittenOffering, WrittenType
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions, virtual_pods
from kschedx.karpenter.disruption import disruptions, eviction_cost
from kschedx.karpenter.scheduler import ONLY_DEVICES, KarpenterSettings, RoundResult, karpenter_version
from kschedx.kube.types import ObjectMeta, Pod, PodSpec
from kschedx.snapshot.snapshot import Snapshot
from tests.karpenter.test_cluster import pod, pool
from tests.karpenter.test_disruption import LABELS, NOW, cluster

Json = dict[str, Any]
BOTH_VERSIONS = pytest.mark.parametrize("version", ["1.13", "1.14"])


def catalogue(**cpu_of_type: str) -> InstanceTypes:
    offerings = (WrittenOffering(zone="eu-1a", capacity_type="on-demand"),)
    return InstanceTypes(
        instance_types=tuple(
            WrittenType(name=name, capacity={"cpu": cpu, "memory": "16Gi", "pods": "50"}, offerings=offerings)
            for name, cpu in cpu_of_type.items()
        )
    )


def daemon_set(cpu: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "agent", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }


def deployment_of(image: str) -> Json:
    template = {"spec": {"containers": [{"name": "controller", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "karpenter", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "k"}}, "template": template},
    }


def decide_round(*objects: Json, version: str, types: InstanceTypes | None = None, ignores: bool = True) -> RoundResult:
    settings = KarpenterSettings(version=version, ignores_devices=ignores)
    snapshot = Snapshot.from_objects(deepcopy(objects))
    options = KarpenterOptions(catalogue=types or catalogue(small="4", large="8"), settings=settings)
    provisioner = Karpenter.of(snapshot, options)
    assert provisioner is not None
    return provisioner.own


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("public.ecr.aws/karpenter/controller:1.14.0@sha256:aa", "1.14"),
        ("public.ecr.aws/karpenter/controller:v1.15.2", "1.14"),
        ("public.ecr.aws/karpenter/controller:1.9.0", "1.13"),
        ("example.org/other:1.14", "1.13"),
    ],
)
def test_the_version_comes_from_the_image_of_the_deployment(image: str, version: str) -> None:
    assert karpenter_version(Snapshot.from_objects([deployment_of(image)])) == version


def test_an_option_sets_the_version() -> None:
    assert KarpenterSettings.read(["version=1.14", "preference-policy=Ignore"]) == KarpenterSettings(
        version="1.14", prefers=False
    )
    with pytest.raises(ConfigError, match=r"cannot be \"1.2\""):
        KarpenterSettings.read(["version=1.2"])


@pytest.mark.parametrize(
    ("version", "ignores", "reason"),
    [
        ("1.13", True, ""),
        ("1.14", True, ONLY_DEVICES),
        ("1.14", False, 'resourceclaim "default/gpu" not found'),
        ("1.13", False, ""),
    ],
)
def test_a_resource_claim_makes_a_pod_unsupported_since_1_14(version: str, ignores: bool, reason: str) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    decision = decide_round(pool(), pod(resourceClaims=claims), version=version, ignores=ignores)
    assert [failure.text for failure in decision.failures.values()] == ([reason] if reason else [])
    assert len(decision.new) == (0 if reason else 1)


@BOTH_VERSIONS
def test_a_daemon_set_of_one_type_adds_no_overhead_to_others(version: str) -> None:
    """The small type with 4 CPU fits a pod with 3 CPU; the DaemonSet with 2 CPU runs on the large type only."""
    large_only = daemon_set("2", nodeSelector={"node.kubernetes.io/instance-type": "large"})
    decision = decide_round(pool(), large_only, pod("3"), version=version)
    assert [item.name for item in decision.new[0].types] == (["small", "large"] if version == "1.14" else ["large"])


@BOTH_VERSIONS
def test_a_text_has_the_range_of_daemon_set_overhead(version: str) -> None:
    daemon_set_of_all_types = daemon_set("1")
    large_only = daemon_set("3", nodeSelector={"node.kubernetes.io/instance-type": "large"})
    large_only["metadata"]["name"] = "more"
    text = next(
        iter(decide_round(pool(), daemon_set_of_all_types, large_only, pod("9"), version=version).failures.values())
    ).text
    result = 'resources=min={"cpu":"10","pods":"2"}, max={"cpu":"13","pods":"3"}'
    assert (result in text) is (version == "1.14")
    assert ('resources={"cpu":"13","pods":"3"}' in text) is (version == "1.13")


@BOTH_VERSIONS
def test_a_host_port_of_a_daemon_set_excludes_its_types(version: str) -> None:
    port = {"name": "main", "image": "agent", "ports": [{"containerPort": 80, "hostPort": 80}]}
    agent = daemon_set("1", nodeSelector={"node.kubernetes.io/instance-type": "large"})
    agent["spec"]["template"]["spec"]["containers"] = [port]
    target = pod("1")
    target["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    decision = decide_round(pool(), agent, target, version=version)
    assert [[item.name for item in new.types] for new in decision.new] == ([["small"]] if version == "1.14" else [])


@BOTH_VERSIONS
def test_a_daemon_set_of_initialized_nodes_counts(version: str) -> None:
    initialized_only = daemon_set("3", nodeSelector={"karpenter.sh/initialized": "true"})
    decision = decide_round(pool(), initialized_only, pod("2"), version=version)
    assert [item.name for item in decision.new[0].types] == (["large"] if version == "1.14" else ["small", "large"])


def buffer(replicas: int, status: str = "True") -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "shop", "uid": "b"},
        "spec": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}},
        "status": {"replicas": replicas, "conditions": [{"type": "ReadyForProvisioning", "status": status}]},
    }


def test_a_buffer_of_a_pod_template_keeps_capacity_free() -> None:
    """A pod with 3 CPU and a virtual pod with 3 CPU need two nodes of 4; the virtual pod has its template's labels."""
    capacity_buffer = buffer(1)
    capacity_buffer["spec"] = {"podTemplateRef": {"name": "chunk"}, "replicas": 1}
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "3"}}}
    pod_template = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "chunk", "namespace": "shop"},
        "template": {"metadata": {"labels": {"app": "chunk"}}, "spec": {"containers": [container]}},
    }
    snapshot = Snapshot.from_objects([pool(), pod("3"), pod_template, capacity_buffer])
    assert [virtual_pod.metadata.labels for virtual_pod in virtual_pods(snapshot)] == [{"app": "chunk"}]
    flags = ["version=1.14", "feature-gates=CapacityBuffer=true"]
    provisioner = Karpenter.of(
        snapshot, KarpenterOptions(catalogue=catalogue(small="4"), settings=KarpenterSettings.read(flags))
    )
    assert provisioner is not None
    assert len(provisioner.own.new) == 2


@pytest.mark.parametrize(
    ("version", "gate", "status", "nodes"),
    [("1.14", True, "True", 2), ("1.14", False, "True", 1), ("1.14", True, "False", 1), ("1.13", True, "True", 1)],
)
def test_a_buffer_keeps_capacity_free(version: str, gate: bool, status: str, nodes: int) -> None:
    """A pod with 3 CPU and two virtual pods with 3 CPU each run on nodes of 8."""
    deployment = deployment_of("web")
    deployment["metadata"] = {"name": "web", "namespace": "shop"}
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    snapshot = Snapshot.from_objects([pool(), pod("3"), deployment, buffer(2, status)])
    flags = [f"version={version}", f"feature-gates=NodeRepair=true,CapacityBuffer={str(gate).lower()}"]
    options = KarpenterOptions(catalogue=catalogue(large="8"), settings=KarpenterSettings.read(flags))
    provisioner = Karpenter.of(snapshot, options)
    assert provisioner is not None
    assert len(provisioner.own.new) == nodes
    assert provisioner.grow().helped == 1


# --- disruption


def karpenter_at(version: str) -> Json:
    return deployment_of(f"public.ecr.aws/karpenter/controller:{version}.0")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.13", 'NodePool "general" has non-empty consolidation disabled'),
        ("1.14", 'NodePool "general" has consolidation policy WhenEmpty, but node is not empty'),
    ],
)
def test_the_text_of_the_policy_when_empty(version: str, expected: str) -> None:
    [result] = disruptions(cluster(karpenter_at(version), consolidationPolicy="WhenEmpty"), ["one"], NOW)
    assert [obstacle.text for obstacle in result.obstacles] == [expected]


@BOTH_VERSIONS
def test_a_node_with_only_free_evictions_is_empty(version: str) -> None:
    free_eviction = {"controller.kubernetes.io/pod-deletion-cost": "-2147483647"}
    [result] = disruptions(cluster(karpenter_at(version), on_pod=free_eviction), ["one"], NOW)
    assert result.is_empty is (version == "1.14")


@pytest.mark.parametrize(
    ("deletion", "priority", "cost"),
    [
        ("", 0, 1.0),
        ("often", 0, 1.0),
        ("134217728", 0, 2.0),
        ("", 2**25, 2.0),
        ("", 2**30, 10.0),
        ("", -(2**31), -10.0),
    ],
)
def test_eviction_cost(deletion: str, priority: int, cost: float) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": deletion} if deletion else {}
    item = Pod(metadata=ObjectMeta(annotations=annotations), spec=PodSpec(priority=priority))
    assert eviction_cost(item) == cost


@pytest.mark.parametrize(("pods", "rejects"), [(0, False), (2, False), (3, True)], ids=["1/2", "2/3", "5/7"])
def test_balanced_compares_savings_with_disruption(pods: int, rejects: bool) -> None:
    """Each of three nodes saves a third of the cost, which justifies two thirds of the disruption."""
    others = (*_node("two"), *_node("three"), *map(_pod, range(pods)))
    snapshot = cluster(karpenter_at("1.14"), *others, consolidationPolicy="Balanced")
    disrupted = disruptions(snapshot, ["one"], NOW)[0].balance
    assert disrupted is not None
    assert disrupted.disruption == pytest.approx((2 + pods) / (4 + pods))
    assert disrupted.savings == pytest.approx(1 / 3)
    assert disrupted.rejects is rejects
    assert disruptions(cluster(karpenter_at("1.13"), consolidationPolicy="Balanced"), ["one"], NOW)[0].balance is None


def _pod(number: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"more-{number}", "namespace": "shop"},
        "spec": {"nodeName": "one", "containers": [{"name": "main", "image": "web"}]},
        "status": {"phase": "Running"},
    }


def _node(name: str) -> tuple[Json, Json]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"providerID": f"aws:///{name}"},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "pods": "10"}},
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"general-{name}", "labels": {"karpenter.sh/nodepool": "general"}},
        "status": {"providerID": f"aws:///{name}"},
    }
    return node, claim

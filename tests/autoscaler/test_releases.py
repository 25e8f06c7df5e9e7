"""Differences between versions of cluster-autoscaler, on a cluster of one group."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import TaintRules
from kschedx.autoscaler.sizes import Similarity
from kschedx.autoscaler.templates import Template
from kschedx.kube.resources import RequestOptions
from kschedx.kube.types import Node, ObjectMeta
from kschedx.releases.autoscaler import autoscaler_behavior
from tests.autoscaler.single_group import autoscale, group, node, outcome, pod, status

OPTIONS = RequestOptions(use_status_resources=False, pod_level_resources=True, pod_level_in_place=False)


@pytest.mark.parametrize(
    ("release", "key", "is_startup"),
    [
        ("1.36", "startup-taint.cluster-autoscaler.kubernetes.io/net", True),
        ("1.29", "startup-taint.cluster-autoscaler.kubernetes.io/net", True),
        ("1.28", "startup-taint.cluster-autoscaler.kubernetes.io/net", False),
        ("1.28", "ignore-taint.cluster-autoscaler.kubernetes.io/net", True),
        ("1.29", "a", True),
        ("1.28", "a", False),
        ("1.28", "b", True),
    ],
)
def test_startup_taint_prefixes(release: str, key: str, is_startup: bool) -> None:
    behavior = autoscaler_behavior(release)
    flags = Flags.read({"startup-taint": "a", "ignore-taint": "b"}, behavior)
    assert TaintRules.of(flags, behavior).is_startup(key) is is_startup


@pytest.mark.parametrize(
    ("cloud", "label", "release", "are_similar"),
    [
        ("aws", "topology.k8s.aws/zone-id", "1.35", True),
        ("aws", "topology.k8s.aws/zone-id", "1.34", False),
        ("azure", "kubernetes.azure.com/node-image-version", "1.31", True),
        ("azure", "kubernetes.azure.com/node-image-version", "1.30", False),
        ("gce", "topology.gke.io/zone", "1.26", True),
    ],
)
def test_labels_that_similarity_ignores(cloud: str, label: str, release: str, are_similar: bool) -> None:
    def template(value: str) -> Template:
        node_of_group = Node(metadata=ObjectMeta(name=value, labels={label: value}))
        return Template(group=value, source="template", node=node_of_group, pods=(), milli_cpu=0, memory=0)

    behavior = autoscaler_behavior(release)
    templates = {name: template(name) for name in ("one", "two")}
    similarity = Similarity(templates, Flags.read({"cloud-provider": cloud}, behavior), OPTIONS, behavior)
    assert similarity.are_similar("one", "two") is are_similar


@pytest.mark.parametrize(
    ("resource", "release", "expected"),
    [
        ("nvidia.com/gpu", "1.33", "all-new"),
        ("amd.com/gpu", "1.33", "considered"),
        ("amd.com/gpu", "1.35", "all-new"),
    ],
)
def test_the_scale_up_delay_of_pods_with_gpus(resource: str, release: str, expected: str) -> None:
    target: dict[str, Any] = pod("web")
    target["metadata"]["creationTimestamp"] = "2026-06-01T11:59:45Z"
    target["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    objects = [status(group()), node(), target]
    assert outcome(autoscale(objects, release=release), "web") == expected


@pytest.mark.parametrize(
    ("release", "policy", "pods"),
    [
        ("1.33", None, ["DaemonSet kube-system/agent"]),
        ("1.33", "PreemptLowerPriority", ["DaemonSet kube-system/agent"]),
        ("1.33", "Never", []),
        ("1.32", None, []),
    ],
)
def test_critical_daemon_sets_on_templates(release: str, policy: str | None, pods: list[str]) -> None:
    spec = {"priorityClassName": "system-node-critical", "preemptionPolicy": policy, "containers": [{"name": "c"}]}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": spec}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": "agent", "uid": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
    document = autoscale([status(group()), node(), agent, pod("web", cpu="64")], release=release)
    assert list(document["groups"]["workers"]["template"].get("pods") or ()) == pods


@pytest.mark.parametrize(("release", "has_event"), [("1.36", True), ("1.33", True), ("1.32", False), ("1.26", False)])
def test_events_of_a_cluster_at_its_maximum(release: str, has_event: bool) -> None:
    objects = [status(group()), node(), pod("web", cpu="2500m")]
    document = autoscale(objects, flags={"max-nodes-total": "1"}, release=release)
    assert bool(document["clusterEvents"]) is has_event
    assert bool(document["pods"]["shop/web"]["outcomes"][0].get("event")) is has_event

"""What the autoscaler's releases do differently, on a cluster of one group."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import TaintRules
from kschedx.autoscaler.sizes import Similarity
from kschedx.autoscaler.templates import Template
from kschedx.kube.resources import RequestOptions
from kschedx.kube.types import Node, ObjectMeta
from kschedx.releases.autoscaler import autoscaler_behaviour
from tests.autoscaler.small import autoscale, group, node, outcome, pod, status

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
def test_startup_taints_have_names_since_1_29(release: str, key: str, is_startup: bool) -> None:
    behaviour = autoscaler_behaviour(release)
    flags = Flags.read({"startup-taint": "a", "ignore-taint": "b"}, behaviour)
    assert TaintRules.of(flags, behaviour).is_startup(key) is is_startup


@pytest.mark.parametrize(
    ("cloud", "label", "release", "alike"),
    [
        ("aws", "topology.k8s.aws/zone-id", "1.35", True),
        ("aws", "topology.k8s.aws/zone-id", "1.34", False),
        ("azure", "kubernetes.azure.com/node-image-version", "1.31", True),
        ("azure", "kubernetes.azure.com/node-image-version", "1.30", False),
        ("gce", "topology.gke.io/zone", "1.26", True),
    ],
)
def test_labels_that_do_not_count_became_more(cloud: str, label: str, release: str, alike: bool) -> None:
    def template(value: str) -> Template:
        built = Node(metadata=ObjectMeta(name=value, labels={label: value}))
        return Template(group=value, source="template", node=built, pods=(), milli_cpu=0, memory=0)

    behaviour = autoscaler_behaviour(release)
    templates = {name: template(name) for name in ("one", "two")}
    similarity = Similarity(templates, Flags.read({"cloud-provider": cloud}, behaviour), OPTIONS, behaviour)
    assert similarity.are_similar("one", "two") is alike


@pytest.mark.parametrize(
    ("resource", "release", "expected"),
    [
        ("nvidia.com/gpu", "1.33", "all-new"),
        ("amd.com/gpu", "1.33", "considered"),
        ("amd.com/gpu", "1.35", "all-new"),
    ],
)
def test_pods_with_gpus_are_waited_for(resource: str, release: str, expected: str) -> None:
    young: dict[str, Any] = pod("web")
    young["metadata"]["creationTimestamp"] = "2026-06-01T11:59:45Z"
    young["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    objects = [status(group()), node(), young]
    assert outcome(autoscale(objects, release=release), "web") == expected


@pytest.mark.parametrize(("release", "pods"), [("1.33", ["DaemonSet kube-system/agent"]), ("1.32", [])])
def test_a_critical_daemon_set_is_on_every_template_since_1_33(release: str, pods: list[str]) -> None:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"priorityClassName": "system-node-critical", "containers": [{"name": "c"}]},
    }
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": "agent", "uid": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
    document = autoscale([status(group()), node(), agent, pod("web", cpu="64")], release=release)
    assert list(document["groups"]["workers"]["template"].get("pods") or ()) == pods


@pytest.mark.parametrize(("release", "is_told"), [("1.36", True), ("1.33", True), ("1.32", False), ("1.26", False)])
def test_a_cluster_at_its_maximum_is_told_of_since_1_33(release: str, is_told: bool) -> None:
    objects = [status(group()), node(), pod("web", cpu="2500m")]
    document = autoscale(objects, flags={"max-nodes-total": "1"}, release=release)
    assert bool(document["clusterEvents"]) is is_told
    assert bool(document["pods"]["shop/web"]["outcomes"][0].get("event")) is is_told

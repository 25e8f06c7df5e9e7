"""Plugins of kubernetes-sigs/scheduler-plugins that a configuration enables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import kschedx
from kschedx.errors import ConfigError, UndecidableError
from kschedx.framework.config import load_profiles
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import CycleState, QueueSortPlugin
from kschedx.framework.status import Code
from kschedx.plugins.coscheduling import GoQuantity
from kschedx.plugins.node_resource_topology_match import NodeResourceTopologyMatch
from kschedx.plugins.queue_sort import QOSSort
from kschedx.releases import resolve
from kschedx.snapshot.columns import TableRow
from tests.builders import Manifest, at, evaluate, framework, node, pod

GROUP = {"scheduling.x-k8s.io/pod-group": "train"}


def config_with(*plugins: str, args: Mapping[str, object] | None = None, without: tuple[str, ...] = ()) -> Manifest:
    """Return the default profile with these plugins; the arguments are those of the first."""
    points: Manifest = {"multiPoint": {"enabled": [{"name": name} for name in plugins if name != "QOSSort"]}}
    if set(plugins) & {"Coscheduling", "QOSSort"}:
        points["queueSort"] = {"disabled": [{"name": "*"}], "enabled": [{"name": plugins[0]}]}
    if without:
        points["postFilter"] = {"disabled": [{"name": name} for name in without]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": points, "pluginConfig": [{"name": plugins[0], "args": dict(args or {})}]}],
    }


def containers(**requests: str) -> Manifest:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def custom_resource(name: str, spec: Mapping[str, object], *, object_name: str, namespace: str = "default") -> Manifest:
    metadata = {"name": object_name, "namespace": namespace}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": name, "metadata": metadata, "spec": dict(spec)}


def group(**spec: object) -> Manifest:
    return custom_resource("PodGroup", spec, object_name="train")


# --- plugins with the same name


@pytest.mark.parametrize(
    ("plugins", "unknown"),
    [
        (("Coscheduling",), {}),
        (("Coscheduling", "LoadAwareScheduling"), {"Coscheduling": ("multiPoint", "queueSort")}),
        (("CapacityScheduling", "NodeResourceTopologyMatch"), {}),
    ],
)
def test_plugins_of_scheduler_plugins_are_known(plugins: tuple[str, ...], unknown: Mapping[str, object]) -> None:
    (profile,) = load_profiles(config_with(*plugins), resolve()).profiles
    assert {name: where for name, where in profile.unknown.items() if name != "LoadAwareScheduling"} == unknown
    assert ("Coscheduling" in profile.points["permit"]) == (plugins == ("Coscheduling",))


@pytest.mark.parametrize(
    ("point", "is_known"), [("filter", True), ("score", True), ("preFilter", False), ("preBind", False)]
)
def test_a_plugin_at_an_unexpected_point_is_unknown(point: str, is_known: bool) -> None:
    """Crane has a plugin NodeResourceTopologyMatch as well."""
    enabled = {"enabled": [{"name": "NodeResourceTopologyMatch"}]}
    plugins = dict.fromkeys(("filter", point), enabled)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    (profile,) = load_profiles(config, resolve()).profiles
    assert ("NodeResourceTopologyMatch" not in profile.unknown) == is_known


# --- QOSSort


@pytest.mark.parametrize(
    ("requests", "limits", "rank"),
    [
        ({}, {}, 2),
        ({"cpu": "0"}, {}, 2),
        ({"cpu": "1"}, {}, 1),
        ({}, {"memory": "1Gi"}, 1),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, 0),
        ({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "1", "memory": "1Gi"}, 0),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, 1),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, 2),
    ],
)
def test_the_queue_sorts_by_qos_class(requests: Mapping[str, str], limits: Mapping[str, str], rank: int) -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]}
    work = framework([node("a"), pod("web", spec=spec)], config_with("QOSSort"))
    key = QOSSort(None, work).sort_key(work.snapshot.pods[0], "")
    assert key[:2] == (0, rank)


# --- NodeResourcesAllocatable


@pytest.mark.parametrize(
    ("args", "raw", "normalized"),
    [
        # (4000 * 2**20 + 8Gi) / (2**20 + 1), regardless of requested resources
        ({}, (-12191, -24383), (100, 0)),
        ({"mode": "Most"}, (12191, 24383), (0, 100)),
        ({"resources": [{"name": "cpu", "weight": 3}]}, (-4000, -8000), (100, 0)),
        ({"resources": [{"name": "nvidia.com/gpu", "weight": 3}]}, (0, 0), (0, 0)),
    ],
)
def test_scores_by_allocatable(args: Mapping[str, object], raw: tuple[int, ...], normalized: tuple[int, ...]) -> None:
    nodes = [
        node("small", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}),
        node("large", allocatable={"cpu": "8", "memory": "16Gi", "pods": "9"}),
    ]
    cycle = evaluate([*nodes, pod("web")], "default/web", config_with("NodeResourcesAllocatable", args=args))
    assert cycle.scores is not None
    assert tuple(cycle.scores.raw["NodeResourcesAllocatable"]) == raw
    assert tuple(cycle.scores.normalized["NodeResourcesAllocatable"]) == normalized


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"mode": "Middle"}, "NodeResourcesAllocatable: mode"),
        ({"resources": [{"name": "cpu", "weight": 0}]}, "NodeResourcesAllocatable: the weight of cpu"),
        ({"resources": "cpu"}, "args.resources: expected a list"),
    ],
)
def test_invalid_arguments_are_errors(args: Mapping[str, object], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        evaluate([node("a"), pod("web")], "default/web", config_with("NodeResourcesAllocatable", args=args))


# --- Coscheduling


def gang_cycle(*, members: int, spec: Mapping[str, object] | None, gated: int = 0, bound: int = 0) -> Cycle:
    """Return the cycle of the first pod of a group on two nodes with 4 CPU each."""
    small = {"cpu": "4", "memory": "8Gi", "pods": "3"}
    objects = [node("a", allocatable=small), node("b", allocatable=small)]
    for number in range(members):
        gates: Manifest = {"schedulingGates": [{"name": "wait"}]} if 0 < number <= gated else {}
        on = "a" if members - number <= bound else None
        objects.append(pod(f"w-{number}", labels=GROUP, on=on, spec={**containers(cpu="1"), **gates}))
    if spec is not None:
        objects.append(group(**spec))
    return evaluate(objects, "default/w-0", config_with("Coscheduling"))


@pytest.mark.parametrize(
    ("members", "spec", "gated", "reason"),
    [
        (2, {"minMember": 3}, 0, "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"),
        (3, {"minMember": 3}, 0, ""),
        (3, {"minMember": 3}, 1, "pre-filter pod w-0 cannot proceed due to gated pods in the same PodGroup"),
        (4, {"minMember": 3}, 1, ""),
        (1, None, 0, ""),
        (2, {"minMember": 2, "minResources": {"cpu": "8"}}, 0, ""),
        (
            2,
            {"minMember": 2, "minResources": {"cpu": "9500m", "memory": "1Gi"}},
            0,
            "resource gap: map[cpu:{{1500 -3} {<nil>}  DecimalSI}]",
        ),
        (
            2,
            {"minMember": 2, "minResources": {"memory": "17Gi", "nvidia.com/gpu": "2"}},
            0,
            ("resource gap: map[memory:{{1073741824 0} {<nil>}  BinarySI} nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}]"),
        ),
    ],
)
def test_pre_filter_rejects_an_incomplete_group(
    members: int, spec: Mapping[str, object] | None, gated: int, reason: str
) -> None:
    cycle = gang_cycle(members=members, spec=spec, gated=gated)
    status = next(step.status for step in cycle.pre_filter if step.status.plugin == "Coscheduling")
    assert status.code is (Code.UNSCHEDULABLE_AND_UNRESOLVABLE if reason else Code.SUCCESS)
    assert reason in "".join(status.reasons)
    assert bool(status.findings) == bool(reason)


def test_resources_of_its_own_pods_count_as_free_for_a_group() -> None:
    assert (
        gang_cycle(members=3, bound=1, spec={"minMember": 3, "minResources": {"cpu": "8"}}).outcome is Outcome.SCHEDULED
    )


def test_a_pod_of_a_manifest_counts_for_its_group() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), pod("w-1", labels=GROUP), group(minMember=2)])
    target = pod("w-0", labels=GROUP, containers=[{"name": "main", "image": "train:1"}])
    explanation = kschedx.explain(snapshot, target, config=config_with("Coscheduling"))
    assert explanation.outcome == "Scheduled"


def test_pods_of_a_group_are_adjacent_in_the_queue() -> None:
    timestamp = "2026-01-0{}T00:00:00Z".format
    other = {
        **group(minMember=2),
        "metadata": {"name": "infer", "namespace": "default", "creationTimestamp": timestamp(2)},
    }
    train = {
        **group(minMember=2),
        "metadata": {"name": "train", "namespace": "default", "creationTimestamp": timestamp(1)},
    }
    infer_labels = dict.fromkeys(GROUP, "infer")
    pods = [
        pod("c", labels=infer_labels, metadata={"creationTimestamp": timestamp(1)}),
        pod("b", labels=GROUP, metadata={"creationTimestamp": timestamp(3)}),
        pod("a", labels=GROUP, metadata={"creationTimestamp": timestamp(4)}),
        pod("alone", metadata={"creationTimestamp": timestamp(2)}),
        pod("late", priority=5, metadata={"creationTimestamp": timestamp(9)}),
    ]
    work = framework([train, other, *pods], config_with("Coscheduling"))
    (plugin,) = work.plugins("queueSort", QueueSortPlugin)
    table = work.snapshot.pods
    keys = {table.key(row): plugin.sort_key(table[row], table.creation_timestamps[row] or "") for row in range(5)}
    names = [key.partition("/")[2] for key in sorted(keys, key=keys.__getitem__)]
    assert names == ["late", "a", "b", "alone", "c"]


@pytest.mark.parametrize(("bound", "is_rejected"), [(8, True), (9, False)])
def test_a_group_with_nine_tenths_of_its_members_is_not_rejected(bound: int, is_rejected: bool) -> None:
    others = [pod(f"w-{number}", labels=GROUP, on="a") for number in range(1, bound + 1)]
    pending = [pod("v", labels=GROUP)] if bound == 8 else []
    target = pod("w-0", labels=GROUP, nodeSelector={"disk": "nvme"})
    cycle = evaluate(
        [node("a"), target, *others, *pending, group(minMember=10)], "default/w-0", config_with("Coscheduling")
    )
    assert ("gets rejected" in cycle.message) == is_rejected


@pytest.mark.parametrize(
    ("bound", "spec", "code"),
    [
        (1, {"minMember": 3}, Code.WAIT),
        (2, {"minMember": 3}, Code.SUCCESS),
        (2, None, Code.UNSCHEDULABLE),
    ],
)
def test_permit_waits_for_the_other_members(bound: int, spec: Mapping[str, object] | None, code: Code) -> None:
    cycle = gang_cycle(members=3, spec=spec, bound=bound)
    assert [status.code for point, status in cycle.dry_steps if point == "permit"] == [code]


@pytest.mark.parametrize(
    ("labels", "spec", "expected"),
    [
        ({}, {"minMember": 1}, "can not find pod group"),
        (GROUP, {"minMember": 1}, "PodGroup default/train gets rejected due to Pod w-0 is unschedulable even after"),
        (GROUP, None, "can not find pod group"),
    ],
)
def test_post_filter_adds_a_message(
    labels: Mapping[str, str], spec: Mapping[str, object] | None, expected: str
) -> None:
    objects = [node("a"), pod("w-0", labels=labels, nodeSelector={"disk": "nvme"})]
    if spec is not None:
        objects.append(group(**spec))
    cycle = evaluate(objects, "default/w-0", config_with("Coscheduling"))
    assert f"Preemption is not helpful for scheduling., {expected}" in cycle.message


@pytest.mark.parametrize(
    ("quantity", "subtrahend", "printed"),
    [
        ("10", (4000, -3), "{{6000 -3} {<nil>}  DecimalSI}"),
        ("1500m", (0, -3), "{{1500 -3} {<nil>}  DecimalSI}"),
        ("1Gi", (1, 0), "{{1073741823 0} {<nil>}  BinarySI}"),
        ("2k", (1, 0), "{{1999 0} {<nil>}  DecimalSI}"),
        ("1.5", (1000, -3), "{{500 -3} {<nil>}  DecimalSI}"),
    ],
)
def test_quantities_have_gos_text(quantity: str, subtrahend: tuple[int, int], printed: str) -> None:
    assert GoQuantity.parse(quantity).minus(subtrahend[0], scale=subtrahend[1]).go_text == printed


# --- CapacityScheduling


def quota(namespace: str, minimum: str | None, maximum: str | None) -> Manifest:
    bounds = {"min": minimum, "max": maximum}
    spec = {name: {"cpu": cpu, "memory": "64Gi", "pods": "99"} for name, cpu in bounds.items() if cpu is not None}
    return custom_resource("ElasticQuota", spec, object_name="quota", namespace=namespace)


@pytest.mark.parametrize(
    ("quotas", "running", "reason"),
    [
        ([], {"shop": 4}, ""),
        ([quota("shop", "4", "6")], {"shop": 1}, ""),
        ([quota("shop", "4", "6")], {"shop": 5}, "because ElasticQuota shop is more than Max"),
        ([quota("shop", "4", "6")], {"shop": 3}, "because total ElasticQuota used is more than min"),
        ([quota("shop", "4", "9"), quota("lab", "4", "9")], {"shop": 4, "lab": 1}, ""),
        (
            [quota("shop", "4", "9"), quota("lab", "4", "9")],
            {"shop": 4, "lab": 3},
            "because total ElasticQuota used is more than min",
        ),
        ([quota("shop", "4", None)], {"shop": 2}, ""),
        ([quota("lab", "1", "1")], {"lab": 5}, ""),
    ],
)
def test_an_elastic_quota_limits_its_namespace(quotas: list[Manifest], running: Mapping[str, int], reason: str) -> None:
    objects = [node("a"), *quotas, pod("web", namespace="shop", spec=containers(cpu="2"))]
    for namespace, cpu in running.items():
        objects += [pod(f"r-{i}", namespace=namespace, on="a", spec=containers(cpu="1")) for i in range(cpu)]
    cycle = evaluate(objects, "shop/web", config_with("CapacityScheduling"))
    text = f"Pod shop/web is rejected in PreFilter {reason}" if reason else ""
    assert (cycle.outcome is Outcome.SCHEDULED) == (not reason)
    assert text in cycle.message
    assert not cycle.unevaluated


@pytest.mark.parametrize(
    ("minimum", "maximum", "running", "bounds", "cpu"),
    [("4", "6", "5", ("min", "max"), "7"), ("8", "6", "5", ("max",), "7"), ("4", "9", "3", ("min",), "5")],
)
def test_the_bounds_of_an_elastic_quota_are_raised(
    minimum: str, maximum: str, running: str, bounds: tuple[str, ...], cpu: str
) -> None:
    mine, config = pod("web", namespace="shop", spec=containers(cpu="2")), config_with("CapacityScheduling")
    objects = [node("a"), pod("r", namespace="shop", on="a", spec=containers(cpu=running)), mine]
    limited = quota("shop", minimum, maximum)
    answer = kschedx.explain(kschedx.Snapshot.from_objects([*objects, limited]), "shop/web", config=config)
    expected = f"raise {' and '.join(bounds)} of ElasticQuota shop/quota: cpu to {cpu}"
    assert [fix.title for fix in answer.fixes] == [expected]
    for name in bounds:
        at(limited, f"spec.{name}")["cpu"] = cpu
    raised = kschedx.explain(kschedx.Snapshot.from_objects([*objects, limited]), "shop/web", config=config)
    assert raised.outcome is Outcome.SCHEDULED


def test_quotas_count_sidecars_as_init_containers_and_no_pod_level_requests() -> None:
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    spec = {**containers(cpu="2"), "initContainers": [sidecar], "resources": {"requests": {"cpu": "9"}}}
    objects = [node("a", allocatable={"cpu": "32", "memory": "64Gi", "pods": "9"}), pod("web", spec=spec)]
    objects.append(quota("default", "2", "2"))
    assert evaluate(objects, "default/web", config_with("CapacityScheduling")).outcome is Outcome.SCHEDULED


@pytest.mark.parametrize(
    ("quotas", "running", "incoming", "victims"),
    [
        # shop is below its min: lab loses only what it borrowed
        (("shop 2 9", "lab 2 9"), ("lab 0", "lab 5", "lab 5", "lab 9"), "shop 0", ("lab-0",)),
        # priorities do not matter between namespaces
        (("shop 2 9", "lab 2 9"), ("lab 90", "lab 90", "lab 90", "lab 91"), "shop 0", ("lab-0",)),
        (("shop 2 9", "lab 4 9"), ("lab 0", "lab 0", "lab 0", "lab 0"), "shop 9", ()),
        # above its min, a namespace evicts its own pods
        (("shop 1 9", "lab 3 9"), ("shop 1", "shop 5", "lab 0", "lab 0"), "shop 3", ("shop-0",)),
        (("shop 1 9", "lab 3 9"), ("shop 3", "shop 5", "lab 0", "lab 0"), "shop 3", ()),
        # a namespace without a quota evicts pods of namespaces without one
        (("lab 4 9",), ("lab 0", "free 0", "free 1", "lab 0"), "shop 3", ("free-1",)),
        (("lab 4 9",), ("lab 0", "lab 0", "lab 0", "lab 0"), "shop 3", ()),
    ],
)
def test_quotas_determine_the_victims(
    quotas: tuple[str, ...], running: tuple[str, ...], incoming: str, victims: tuple[str, ...]
) -> None:
    objects = [node("a", allocatable={"cpu": "4", "memory": "64Gi", "pods": "99"})]
    objects += [quota(*item.split()) for item in quotas]
    for number, item in enumerate(running):
        namespace, priority = item.split()
        spec = {**containers(cpu="1"), "priority": int(priority)}
        objects.append(pod(f"{namespace}-{number}", namespace=namespace, on="a", spec=spec))
    namespace, priority = incoming.split()
    objects.append(pod("new", namespace=namespace, spec={**containers(cpu="1"), "priority": int(priority)}))
    cycle = evaluate(objects, f"{namespace}/new", config_with("CapacityScheduling", without=("DefaultPreemption",)))
    assert cycle.post_filter is not None
    items = [tuple(cycle.snapshot.pods.names[row] for row in item.victims) for item in cycle.post_filter.candidates]
    assert items == ([victims] if victims else [])
    if not victims:
        assert "preemption:" not in cycle.message


def test_a_pod_that_filters_and_quotas_evict_is_an_error() -> None:
    """Upstream removes the pod from the node a second time."""
    objects = [
        node("a", allocatable={"cpu": "2", "memory": "64Gi", "pods": "99"}),
        quota("shop", "2", "2"),
        pod("old", namespace="shop", on="a", spec=containers(cpu="2")),
        pod("next", namespace="shop", spec={**containers(cpu="2"), "priority": 9}, status={"nominatedNodeName": "b"}),
        node("b", allocatable={"cpu": "2", "memory": "64Gi", "pods": "99"}),
        pod("new", namespace="shop", spec={**containers(cpu="1"), "priority": 5}),
    ]
    cycle = evaluate(objects, "shop/new", config_with("CapacityScheduling", without=("DefaultPreemption",)))
    assert cycle.post_filter is not None
    assert cycle.post_filter.status.reasons == ("no corresponding pod old in pods of node a",)


# --- PreemptionToleration


@pytest.mark.parametrize(
    ("annotations", "victims"),
    [
        ({}, 1),
        ({"minimum-preemptable-priority": "500", "toleration-seconds": "-1"}, 0),
        ({"minimum-preemptable-priority": "+500", "toleration-seconds": "-1"}, 0),
        ({"minimum-preemptable-priority": "100", "toleration-seconds": "-1"}, 1),
        ({"minimum-preemptable-priority": "500"}, 1),
        ({"minimum-preemptable-priority": "many", "toleration-seconds": "-1"}, 1),
    ],
)
def test_a_priority_class_tolerates_preemption(annotations: Mapping[str, str], victims: int) -> None:
    prefix = "preemption-toleration.scheduling.x-k8s.io/"
    tolerating_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "lasting", "annotations": {prefix + key: text for key, text in annotations.items()}},
        "value": 10,
    }
    spec = {**containers(cpu="2"), "priority": 10, "priorityClassName": "lasting"}
    objects = [
        node("a", allocatable={"cpu": "2", "memory": "8Gi", "pods": "9"}),
        tolerating_class,
        pod("old", on="a", spec=spec),
        pod("new", spec={**containers(cpu="1"), "priority": 100}),
    ]
    config = config_with("PreemptionToleration", without=("DefaultPreemption",))
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/new", config=config)
    assert result.cycle.post_filter is not None
    assert len(result.cycle.post_filter.candidates) == victims
    no_victims = "0/1 nodes are available: 1 No victims found on node a for preemptor pod new."
    assert (no_victims in result.message) == (not victims)


def test_a_toleration_of_limited_time_is_undecided() -> None:
    tolerating_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {
            "name": "lasting",
            "annotations": {
                "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority": "500",
                "preemption-toleration.scheduling.x-k8s.io/toleration-seconds": "3600",
            },
        },
        "value": 10,
    }
    objects = [
        node("a", allocatable={"cpu": "2", "memory": "8Gi", "pods": "9"}),
        tolerating_class,
        pod("old", on="a", spec={**containers(cpu="2"), "priority": 10, "priorityClassName": "lasting"}),
        pod("new", spec={**containers(cpu="1"), "priority": 100}),
    ]
    config = config_with("PreemptionToleration", without=("DefaultPreemption",))
    with pytest.raises(UndecidableError, match="3600 seconds"):
        evaluate(objects, "default/new", config)


# --- NodeResourceTopologyMatch


def topology(*zones: Mapping[str, str], scope: str = "container", policy: str = "single-numa-node") -> Manifest:
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "a"},
        "attributes": [
            {"name": "topologyManagerScope", "value": scope},
            {"name": "topologyManagerPolicy", "value": policy},
        ],
        "zones": [
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [{"name": name, "capacity": "64", "available": text} for name, text in zone.items()],
            }
            for number, zone in enumerate(zones)
        ],
    }


def guaranteed_pod(*cpus: str, **extended: str) -> Manifest:
    amounts_by_container = [{"cpu": cpu, "memory": "1Gi", **extended} for cpu in cpus]
    resources = [{"requests": amounts, "limits": amounts} for amounts in amounts_by_container]
    return {"containers": [{"name": f"c{i}", "resources": item} for i, item in enumerate(resources)]}


TWO_ZONES = ({"cpu": "4", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("spec", "zones", "options", "reason"),
    [
        (guaranteed_pod("4"), TWO_ZONES, {}, ""),
        (guaranteed_pod("5"), TWO_ZONES, {}, "cannot align container"),
        (guaranteed_pod("4", "2"), TWO_ZONES, {}, ""),
        (guaranteed_pod("3", "3"), TWO_ZONES, {}, "cannot align container"),
        (guaranteed_pod("3", "3"), TWO_ZONES, {"scope": "pod"}, "cannot align pod"),
        (guaranteed_pod("2", "2"), TWO_ZONES, {"scope": "pod"}, ""),
        (guaranteed_pod("5"), TWO_ZONES, {"policy": "restricted"}, ""),
        (containers(cpu="5"), TWO_ZONES, {}, ""),
        ({"containers": [{"name": "main"}]}, TWO_ZONES, {}, ""),
        (guaranteed_pod("1", **{"example.com/nic": "1"}), TWO_ZONES, {}, ""),
        (
            guaranteed_pod("3", **{"example.com/nic": "1"}),
            (TWO_ZONES[0], {**TWO_ZONES[1], "example.com/nic": "2"}),
            {},
            "cannot align container",
        ),
        (
            {**guaranteed_pod("1"), "initContainers": guaranteed_pod("5")["containers"]},
            TWO_ZONES,
            {},
            "cannot align init container",
        ),
    ],
)
def test_a_pod_needs_one_numa_node(
    spec: Manifest, zones: tuple[Mapping[str, str], ...], options: Mapping[str, str], reason: str
) -> None:
    large_node = node("a", allocatable={"cpu": "8", "memory": "32Gi", "pods": "9", "example.com/nic": "4"})
    objects = [large_node, topology(*zones, **options), pod("web", spec=spec)]
    cycle = evaluate(objects, "default/web", config_with("NodeResourceTopologyMatch"))
    assert cycle.filter is not None
    assert cycle.filter.status(TableRow(0)).reasons == ((reason,) if reason else ())
    assert not cycle.unevaluated


THREE_ZONES = ({"cpu": "4", "memory": "8Gi"}, {"cpu": "4", "memory": "8Gi"}, {"cpu": "4", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("strategy", "spec", "zones", "options", "score"),
    [
        ("LeastAllocated", guaranteed_pod("1"), TWO_ZONES, {}, 68),  # (50 + 87) // 2 of the second NUMA node
        ("MostAllocated", guaranteed_pod("1"), TWO_ZONES, {}, 18),  # (25 + 12) // 2 of the first
        ("BalancedAllocation", guaranteed_pod("1"), TWO_ZONES, {}, 92),
        ("LeastAllocated", guaranteed_pod("1", "2"), TWO_ZONES, {}, 55),  # the mean of 68 and 43
        ("LeastAllocated", guaranteed_pod("1", "1"), TWO_ZONES, {"scope": "pod"}, 37),  # (0 + 75) // 2
        ("LeastAllocated", guaranteed_pod("1"), TWO_ZONES, {"policy": "restricted"}, 0),
        ("LeastAllocated", containers(cpu="1"), TWO_ZONES, {}, 100),
        ("LeastNUMANodes", guaranteed_pod("1"), TWO_ZONES, {"policy": "none"}, 94),  # 100 - 12, and 6 for the distance
        ("LeastNUMANodes", guaranteed_pod("5"), TWO_ZONES, {"policy": "none"}, 82),
        ("LeastNUMANodes", guaranteed_pod("3", "3"), TWO_ZONES, {"policy": "none"}, 82),
        ("LeastNUMANodes", guaranteed_pod("9"), TWO_ZONES, {"policy": "none"}, 0),
        ("LeastNUMANodes", guaranteed_pod("6"), THREE_ZONES, {"policy": "none", "scope": "pod"}, 82),
        ("LeastNUMANodes", guaranteed_pod("2", **{"example.com/nic": "1"}), TWO_ZONES, {"policy": "none"}, 0),
    ],
)
def test_scores_of_numa_nodes(
    strategy: str, spec: Manifest, zones: tuple[Mapping[str, str], ...], options: Mapping[str, str], score: int
) -> None:
    large_node = node("a", allocatable={"cpu": "16", "memory": "32Gi", "pods": "9", "example.com/nic": "4"})
    objects = [large_node, topology(*zones, **options), pod("web", spec=spec)]
    work = framework(objects, config_with("NodeResourceTopologyMatch"))
    plugin = NodeResourceTopologyMatch({"scoringStrategy": {"type": strategy}}, work)
    assert plugin.score(CycleState(), work.snapshot.pods[0], work.nodes).tolist() == [score]


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ConfigError, match="LeastNUMANodes"):
        evaluate(
            [node("a"), pod("web")],
            "default/web",
            config_with("NodeResourceTopologyMatch", args={"scoringStrategy": {"type": "Least"}}),
        )


@pytest.mark.parametrize(
    ("args", "setting"),
    [
        ({}, None),
        ({"cacheResyncPeriodSeconds": 0}, None),
        ({"cacheResyncPeriodSeconds": 5}, "cacheResyncPeriodSeconds"),
        ({"cacheResyncPeriodSeconds": 5, "discardReservedNodes": True}, "discardReservedNodes"),
    ],
)
def test_a_note_reports_the_cache_of_the_plugin(args: Mapping[str, object], setting: str | None) -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), topology(*TWO_ZONES), pod("web", spec=guaranteed_pod("1"))])
    config = config_with("NodeResourceTopologyMatch", args=args)
    notes: Any = kschedx.explain(snapshot, "default/web", config=config).to_dict()["notes"]
    assert [note["setting"] for note in notes if note["id"] == "plugin-keeps-account"] == ([setting] if setting else [])

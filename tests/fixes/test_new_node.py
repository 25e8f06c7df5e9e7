"""The smallest new node that runs the pod: its labels, resources, and devices."""

from __future__ import annotations

import pytest

import kschedx
from tests.builders import Manifest, at, node, pod
from tests.storage_builders import ZONE, claim, in_term, volume

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "110"}


def titles(*objects: Manifest) -> list[str]:
    return [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]


def asking(**requests: str) -> list[Manifest]:
    return [{"name": "main", "resources": {"requests": requests}}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": asking(cpu="64", memory="100Gi")}, "add a node with at least 64 CPU and 100Gi memory free"),
        (
            {"containers": asking(cpu="64"), "nodeSelector": {"disk": "ssd"}},
            "add a node with label disk=ssd and at least 64 CPU free",
        ),
        ({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, "add a node with label kubernetes.io/arch=arm64"),
    ],
)
def test_requirements_of_the_pod(spec: Manifest, expected: str) -> None:
    tainted = node("a", labels={"kubernetes.io/arch": "amd64"}, allocatable=SMALL)
    assert titles(tainted, pod("me", spec=spec)) == [expected]


@pytest.mark.parametrize(
    ("operator", "values", "expected"), [("DoesNotExist", [], "gpu"), ("NotIn", ["no", "yes"], "gpu=no")]
)
def test_labels_that_the_node_must_not_have(operator: str, values: list[str], expected: str) -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": operator, "values": values}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    me = pod("me", affinity=affinity, containers=asking(cpu="500m"))
    added = f"add a node without label {expected} with at least 500m CPU free"
    assert added in titles(node("a", labels={"gpu": "no"}, allocatable=SMALL), me)


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        (["CriticalAddonsOnly=true:NoSchedule"], " without taint CriticalAddonsOnly"),
        (["node.kubernetes.io/not-ready:NoSchedule"], ""),
        (["node-role.kubernetes.io/control-plane:NoSchedule"], ""),
        ([], ""),
    ],
    ids=["reserved", "not ready", "of the control plane", "free of taints"],
)
def test_a_taint_of_all_nodes_that_the_node_must_not_have(taints: list[str], expected: str) -> None:
    small = node("a", taints=taints, allocatable=SMALL)
    added = f"add a node{expected} with at least 64 CPU free"
    assert added in titles(small, pod("me", containers=asking(cpu="64")))


def test_the_zone_of_a_volume() -> None:
    data = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    objects = [claim("data", volume="pv"), volume("pv", claim_ref="data", node_affinity=in_term(ZONE, "b"))]
    assert titles(node("a", labels={ZONE: "a"}), *objects, pod("me", spec=data)) == ["add a node in zone b"]
    reserved = node("b", labels={ZONE: "b"}, taints=["dedicated=ml:NoSchedule"])
    assert titles(node("a", labels={ZONE: "a"}), reserved, *objects, pod("me", spec=data))[0] == "add a node in zone b"


def test_a_domain_that_satisfies_the_rules() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [node(zone, labels={ZONE: zone}, allocatable=SMALL) for zone in "ab"]
    running = pod("web", labels={"app": "web"}, on="a")
    me = pod("me", labels={"app": "web"}, containers=asking(cpu="64"), topologySpreadConstraints=[spread])
    assert titles(*nodes, running, me) == ["add a node in zone b with at least 64 CPU free"]


def test_a_new_node_has_a_zone_if_no_node_has_one() -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert "add a node in a new zone" in titles(node("a"), pod("me", affinity={"nodeAffinity": rules}))


@pytest.mark.parametrize(("zones", "where"), [("ab", " in a new zone"), ("a", "")])
def test_a_new_node_has_the_zone_label_of_most_nodes(zones: str, where: str) -> None:
    """The anti-affinity does not apply to a node without the label, such as a control plane."""
    term = {"labelSelector": {"matchLabels": {"app": "me"}}, "topologyKey": ZONE}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node(zone, labels={ZONE: zone}) for zone in zones]
    running = [pod(zone, on=zone, labels={"app": "me"}) for zone in zones]
    control_plane = node("cp", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])
    me = pod("me", labels={"app": "me"}, affinity=rule, containers=asking(cpu="1"))
    assert f"add a node{where} with at least 1 CPU free" in titles(*nodes, control_plane, *running, me)


def test_the_zones_of_a_node_agree() -> None:
    """The volume is in the zone with most pods, which no node leaves by having another zone for the driver."""
    driver = "topology.ebs.csi.aws.com/zone"
    data = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    objects = [claim("data", volume="pv"), volume("pv", claim_ref="data", node_affinity=in_term(driver, "a"))]
    nodes = [node(zone, labels={ZONE: zone, driver: zone}, allocatable=SMALL) for zone in "ab"]
    running = [pod(f"web-{number}", labels={"app": "web"}, on="a") for number in range(2)]
    me = pod("me", labels={"app": "web"}, spec={**data, "topologySpreadConstraints": [spread]})
    assert not [title for title in titles(*nodes, *objects, *running, me) if title.startswith("add")]
    assert "add a node in zone a" in titles(nodes[1], *objects, pod("me", labels={"app": "web"}, spec=data))
    assert titles(nodes[1], *objects, me)[0] == "add a node in zone a"


def test_contradicting_requirements_have_no_node() -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    me = pod("me", nodeSelector={"disk": "ssd"}, affinity=affinity)
    assert not [title for title in titles(node("a"), me) if title.startswith("add")]


def test_a_too_large_pod_gets_a_larger_node_beside_lower_requests() -> None:
    me = pod("me", containers=asking(cpu="2"))
    assert titles(node("a", allocatable=SMALL), me) == [
        "add a node with at least 2 CPU free",
        "lower requests.cpu of container main from 2 to 1",
    ]


def daemon(name: str, on: str = "", **spec: object) -> Manifest:
    """Return the pod of a DaemonSet if it is `on` a node, otherwise the DaemonSet."""
    template = {"containers": asking(cpu="150m", memory="200Mi"), **spec}
    if not on:
        selector = {"matchLabels": {"app": name}}
        manifest = {"selector": selector, "template": {"metadata": {"labels": {"app": name}}, "spec": template}}
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": manifest}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name, "controller": True}
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    pinned = {"affinity": {"nodeAffinity": required}}
    return pod(f"{name}-1", on=on, metadata={"ownerReferences": [owner]}, spec={**template, **pinned})


@pytest.mark.parametrize("on", ["a", ""], ids=["running", "template alone"])
def test_daemon_sets_run_on_a_new_node(on: str) -> None:
    here, elsewhere = daemon("agent", on), daemon("other", nodeSelector={"disk": "ssd"})
    me = pod("me", containers=asking(cpu="64"))
    expected = "add a node with at least 64 CPU free; 1 DaemonSet takes another 150m CPU and 200Mi memory"
    assert titles(node("a", allocatable=SMALL), here, elsewhere, me) == [expected]


def test_a_copy_of_a_node_that_daemon_sets_fill() -> None:
    """A copy of the node has room for the pod only if DaemonSet pods leave it."""
    busy = pod("busy", on="a", priority=9, containers=asking(cpu="100m"))
    nearly = pod("me", containers=asking(cpu="900m"))
    machine = node("a", allocatable={**SMALL, "pods": "110"})
    large = pod("large", on="a", priority=9, containers=asking(cpu="900m"))
    assert "add a node like a" in titles(machine, large, nearly)
    assert "add a node like a" not in titles(machine, daemon("agent", "a"), busy, nearly)


def test_a_larger_node_is_in_the_domain_whose_node_daemon_sets_fill() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [node(zone, labels={ZONE: zone}, allocatable={**SMALL, "cpu": cpu}) for zone, cpu in ("a8", "b1")]
    old = pod("web-0", on="a", labels={"app": "web", "pod-template-hash": "old"})
    labels = {"app": "web", "pod-template-hash": "new"}
    me = pod("me", labels=labels, containers=asking(cpu="900m"), topologySpreadConstraints=[spread])
    assert titles(*nodes, daemon("agent", "b"), old, me)[0].startswith("add a node in zone b with at least 900m CPU")


def test_a_new_node_for_a_pod_that_contradicts_itself() -> None:
    """The pod is also too large for every existing node, regardless of labels."""
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]}]
    hdd = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    large = [{"name": "main", "resources": {"requests": {"cpu": "40"}}}]
    me = pod("me", nodeSelector={"disk": "ssd"}, affinity=hdd, containers=large)
    there = node("n", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"})
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([there, me]), "default/me").fixes
    assert [fix.title for fix in fixes if fix.certainty == "verified"] == [
        "stop requiring disk=hdd, add a node with label disk=ssd and at least 40 CPU free"
    ]


def test_a_new_node_is_in_one_zone_by_all_labels() -> None:
    """No node has the label of the volume's driver, so that only the names of the zones tell that two differ."""
    own = "topology.ebs.csi.aws.com/zone"
    nodes = [node(name, labels={ZONE: f"eu-1{name}"}) for name in "ab"]
    disk = volume("disk", claim_ref="data", node_affinity=in_term(own, "eu-1a"))
    data = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    me = pod("me", nodeSelector={ZONE: "eu-1b"}, volumes=data)
    (first, *_) = titles(*nodes, claim("data", volume="disk"), disk, me)
    assert first == f"stop requiring {ZONE}=eu-1b, add a node in zone eu-1a"


def test_a_new_node_has_a_new_name() -> None:
    there = [node(name, allocatable=SMALL) for name in ("a", "a-new")]
    full = [pod(f"on-{name}", on=name, containers=asking(cpu="1"), priority=9) for name in ("a", "a-new")]
    snapshot = kschedx.Snapshot.from_objects([*there, *full, pod("me", containers=asking(cpu="1"))])
    (fix,) = kschedx.explain(snapshot, "default/me").fixes
    assert [change.target.name for change in fix.changes] == ["a-new-1"]


def test_a_fix_that_adds_several_nodes_creates_each_of_them() -> None:
    full = pod("full", on="a", containers=asking(cpu="1"), priority=9)
    urgent, me = (pod(name, containers=asking(cpu="1"), priority=priority) for name, priority in (("u", 9), ("me", 0)))
    snapshot = kschedx.Snapshot.from_objects([node("a", allocatable=SMALL), full, urgent, me])
    (fix,) = kschedx.explain(snapshot, "default/me").fixes
    assert (fix.title, fix.costs) == ("add 2 nodes like a", ("default/u, with a higher priority, needs room too",))
    created = [at(change.create or {}, "metadata") for change in fix.changes]
    assert [metadata["name"] for metadata in created] == ["a-new", "a-new-2"]
    assert not any("uid" in metadata for metadata in created)


def test_no_new_node_where_a_daemon_set_has_the_host_port_on_every_node() -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "lb", "uid": "u-lb", "controller": True}
    held = [pod(f"lb-{name}", on=name, containers=ports, metadata={"ownerReferences": [owner]}) for name in "ab"]
    snapshot = kschedx.Snapshot.from_objects([node("a"), node("b"), *held, pod("me", containers=ports)])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert titles == ["use host port 81 instead of 80", "remove host port 80"]


def test_a_new_node_is_not_described_by_a_byte_of_memory() -> None:
    tiny = [{"name": "main", "resources": {"requests": {"cpu": "64", "memory": "512m"}}}]
    small = node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    snapshot = kschedx.Snapshot.from_objects([small, pod("me", containers=tiny)])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert "add a node with at least 64 CPU free" in titles

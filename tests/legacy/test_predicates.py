"""Each predicate in both releases: which nodes it rejects, and with what words."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import claim, decide, policy, rejections, uses, volume, waiting_class

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def reporting(name: str, **conditions: str) -> Manifest:
    written = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return node(name) | {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}, "conditions": written}}


def asks(amounts: dict[str, str], init: dict[str, str] | None = None) -> Manifest:
    """A pod's spec."""
    spec: Manifest = {"containers": [{"name": "main", "resources": {"requests": amounts}}]}
    if init is not None:
        spec["initContainers"] = [{"name": "first", "resources": {"requests": init}}]
    return spec


# --- resources

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "2", "acme.io/gpu": "1"}
FULL = pod("busy", on="a", spec=asks({"cpu": "1500m"}))


@pytest.mark.parametrize(
    ("spec", "version", "reasons"),
    [
        (asks({"cpu": "2"}), "1.13", ["Insufficient cpu"]),
        (asks({"cpu": "2", "memory": "2Gi"}), "1.13", ["Insufficient cpu", "Insufficient memory"]),
        (asks({"cpu": "1"}, init={"cpu": "2"}), "1.13", ["Insufficient cpu"]),
        (asks({"cpu": "1"}, init={"cpu": "2"}), "1.5", None),  # init containers were an annotation
        (asks({"acme.io/gpu": "2"}), "1.13", ["Insufficient acme.io/gpu"]),
        (asks({"acme.io/gpu": "2"}), "1.5", None),  # and this resource was not counted
        (asks({"alpha.kubernetes.io/nvidia-gpu": "1"}), "1.5", ["Insufficient alpha.kubernetes.io/nvidia-gpu"]),
        (asks({"ephemeral-storage": "1Gi"}), "1.13", ["Insufficient ephemeral-storage"]),
        (asks({"ephemeral-storage": "1Gi"}), "1.5", None),
        (asks({}) | {"overhead": {"cpu": "2"}}, "1.13", None),
        (asks({"cpu": "1"}), "1.13", None),
    ],
)
def test_what_a_pod_asks_for(spec: Manifest, version: str, reasons: list[str] | None) -> None:
    rejected = rejections([node("a", allocatable=SMALL), pod("web", spec=spec)], "PodFitsResources", version)
    assert rejected.get("a") == reasons


@pytest.mark.parametrize("version", ["1.13", "1.5"])
def test_who_asks_for_anything_is_held_against_all_resources(version: str) -> None:
    overcommitted = [node("a", allocatable=SMALL), FULL]
    asking = [*overcommitted, pod("web", spec=asks({"memory": "1"}))]
    assert rejections(asking, "PodFitsResources", version) == {"a": ["Insufficient cpu"]}
    assert rejections([*overcommitted, pod("web")], "PodFitsResources", version) == {}


def test_a_pod_that_runs_counts_without_its_init_containers() -> None:
    busy = pod("busy", on="a", spec=asks({"cpu": "100m"}, init={"cpu": "1"}))
    cluster = [node("a", allocatable=SMALL), busy, pod("web", spec=asks({"cpu": "900m"}))]
    assert rejections(cluster, "PodFitsResources") == {}


def test_finished_pods_count_in_1_13_alone() -> None:
    done = pod("done", on="a", status={"phase": "Succeeded"}, spec=asks({"cpu": "1"}))
    cluster = [node("a", allocatable=SMALL), done, pod("web", spec=asks({"cpu": "1"}))]
    assert rejections(cluster, "PodFitsResources", "1.13") == {"a": ["Insufficient cpu"]}
    assert rejections(cluster, "PodFitsResources", "1.5") == {}


# --- the node itself


def test_the_name_and_the_labels() -> None:
    cluster = [node("a"), node("b", labels={"disk": "ssd"})]
    named = [*cluster, pod("web", nodeName="gone")]
    assert rejections(named, "HostName")["a"] == ["node(s) didn't match the requested hostname"]
    assert rejections(named, "HostName", "1.5")["a"] == ["HostName"]
    selecting = [*cluster, pod("web", nodeSelector={"disk": "ssd"})]
    assert rejections(selecting, "MatchNodeSelector") == {"a": ["node(s) didn't match node selector"]}
    assert rejections(selecting, "MatchNodeSelector", "1.5") == {"a": ["MatchNodeSelector"]}


def required(*terms: Manifest) -> Manifest:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


HAS_DISK: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
WRONG: Manifest = {"matchExpressions": [{"key": "disk", "operator": "In"}]}
NAMED: Manifest = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("terms", "version", "rejected"),
    [
        ([WRONG, HAS_DISK], "1.13", set()),
        ([WRONG, HAS_DISK], "1.5", {"a"}),  # what follows a wrong term is not looked at
        ([HAS_DISK, WRONG], "1.5", set()),
        ([NAMED], "1.13", set()),
        ([NAMED], "1.5", {"a"}),  # fields are unknown, and an empty term matches nothing
        ([HAS_DISK | NAMED], "1.5", set()),
    ],
)
def test_terms_of_node_affinity(terms: list[Manifest], version: str, rejected: set[str]) -> None:
    cluster = [node("a", labels={"disk": "ssd"}), pod("web", affinity=required(*terms))]
    assert rejections(cluster, "MatchNodeSelector", version).keys() == rejected


@pytest.mark.parametrize(("presence", "rejected"), [(True, {"b"}), (False, {"a"})])
def test_labels_that_a_policy_asks_for_or_forbids(presence: bool, rejected: set[str]) -> None:
    cluster = [node("a", labels={"rack": "1", "x": "y"}), node("b"), pod("web")]
    argument: Manifest = {"labelsPresence": {"labels": ["rack"], "presence": presence}}
    result = rejections(cluster, "CheckNodeLabelPresence", argument=argument)
    assert result == {key: ["node(s) didn't have the requested labels"] for key in rejected}


CORDONED = node("a", unschedulable=True)
TOLERATES_CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


def test_cordoned_nodes() -> None:
    assert rejections([CORDONED, pod("web")], "HostName") == {}
    assert decide([CORDONED, pod("web")])["message"] == "0/1 nodes are available: 1 node(s) were unschedulable."
    assert decide([CORDONED, pod("web", tolerations=TOLERATES_CORDON)])["outcome"] == "Scheduled"


@pytest.mark.parametrize(
    "unusable",
    [
        CORDONED,
        reporting("a", Ready="False"),
        reporting("a", Ready="Unknown"),
        reporting("a", OutOfDisk="True"),
        reporting("a", NetworkUnavailable="Unknown"),
    ],
)
def test_1_5_does_not_list_nodes_that_cannot_be_used(unusable: Manifest) -> None:
    alone = decide([unusable, pod("web")], "1.5")
    assert (alone["outcome"], alone["message"]) == ("Unschedulable", "no nodes available to schedule pods")
    beside = decide([unusable, node("b"), pod("web", nodeSelector={"no": "where"})], "1.5")
    assert beside["filter"]["nodes"].keys() == {"b"}
    assert beside["preFilter"][0]["nodes"] == ["b"]


CONDITIONS = {"TaintNodesByCondition": False}


@pytest.mark.parametrize(
    ("reported", "reasons"),
    [
        ({"Ready": "False"}, ["node(s) were not ready"]),
        ({"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}, None),
        ({"OutOfDisk": "Unknown"}, ["node(s) were out of disk space"]),
        (
            {"NetworkUnavailable": "True", "Ready": "Unknown"},
            ["node(s) were not ready", "node(s) had unavailable network"],
        ),
    ],
)
def test_conditions_in_1_13_without_taints_for_them(reported: dict[str, str], reasons: list[str] | None) -> None:
    rejected = rejections([reporting("a", **reported), pod("web")], "CheckNodeCondition", gates=CONDITIONS)
    assert rejected.get("a") == reasons


def test_a_cordon_is_a_condition_without_taints_for_them() -> None:
    assert rejections([CORDONED, pod("web")], "CheckNodeCondition", gates=CONDITIONS) == {
        "a": ["node(s) were unschedulable"]
    }


@pytest.mark.parametrize(
    ("predicate", "condition", "reason", "early"),
    [
        ("CheckNodeDiskPressure", "DiskPressure", "node(s) had disk pressure", "NodeUnderDiskPressure"),
        ("CheckNodeMemoryPressure", "MemoryPressure", "node(s) had memory pressure", "NodeUnderMemoryPressure"),
        ("CheckNodePIDPressure", "PIDPressure", "node(s) had pid pressure", None),
    ],
)
def test_pressure(predicate: str, condition: str, reason: str, early: str | None) -> None:
    cluster = [reporting("a", **{condition: "True"}), reporting("b", **{condition: "Unknown"}), pod("web")]
    assert rejections(cluster, predicate, gates=CONDITIONS) == {"a": [reason]}
    if early:
        assert rejections(cluster, predicate, "1.5") == {"a": [early]}


def test_memory_pressure_is_for_pods_without_requests() -> None:
    cluster = [reporting("a", MemoryPressure="True")]
    assert rejections([*cluster, pod("web", spec=asks({"cpu": "1m"}))], "CheckNodeMemoryPressure", "1.5") == {}
    nothing = [*cluster, pod("web", spec=asks({"cpu": "0"}))]
    assert rejections(nothing, "CheckNodeMemoryPressure", "1.5").keys() == {"a"}


# --- taints


@pytest.mark.parametrize(
    ("taint", "tolerations", "in_1_13", "in_1_5"),
    [
        ("k=v:NoSchedule", [], True, True),
        ("k=v:PreferNoSchedule", [], False, True),
        ("k=v:PreferNoSchedule", [{"key": "other"}], False, False),
        ("k=v:NoSchedule", [{"operator": "Exists"}], False, True),
        ("k=v:NoSchedule", [{"key": "k", "operator": "Exists"}], False, False),
        ("k=v:NoSchedule", [{"key": "k", "value": "v"}], False, False),
        ("k=v:NoSchedule", [{"key": "k", "value": "w"}], True, True),
        ("k=v:NoExecute", [{"key": "k", "value": "v", "effect": "NoSchedule"}], True, True),
    ],
)
def test_taints(taint: str, tolerations: list[Manifest], in_1_13: bool, in_1_5: bool) -> None:
    cluster = [node("a", taints=[taint]), pod("web", tolerations=tolerations)]
    text = "node(s) had taints that the pod didn't tolerate"
    assert rejections(cluster, "PodToleratesNodeTaints") == ({"a": [text]} if in_1_13 else {})
    assert rejections(cluster, "PodToleratesNodeTaints", "1.5") == ({"a": ["PodToleratesNodeTaints"]} if in_1_5 else {})


# --- what pods on the node have


def with_port(**port: object) -> Manifest:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80, **port}]}]}


@pytest.mark.parametrize(
    ("port", "version", "reasons"),
    [
        ({}, "1.13", ["node(s) didn't have free ports for the requested pod ports"]),
        ({"protocol": "UDP"}, "1.13", None),
        ({"protocol": "UDP"}, "1.5", ["PodFitsHostPorts"]),  # the number is all that counts
        ({"hostIP": "10.0.0.2"}, "1.13", None),
        ({"hostIP": "10.0.0.2"}, "1.5", ["PodFitsHostPorts"]),
        ({"hostPort": 81}, "1.5", None),
    ],
)
def test_host_ports(port: Manifest, version: str, reasons: list[str] | None) -> None:
    holder = pod("holder", on="a", spec=with_port(hostIP="10.0.0.1"))
    cluster = [node("a"), holder, pod("web", spec=with_port(**port))]
    assert rejections(cluster, "PodFitsHostPorts", version).get("a") == reasons


def disk(kind: str, **fields: object) -> list[Manifest]:
    return [{"name": "data", kind: fields}]


@pytest.mark.parametrize(
    ("volumes", "version", "reasons"),
    [
        (disk("gcePersistentDisk", pdName="d"), "1.13", ["node(s) had no available disk"]),
        (disk("gcePersistentDisk", pdName="d"), "1.5", ["NoDiskConflict"]),
        (disk("gcePersistentDisk", pdName="e"), "1.13", None),
        (disk("iscsi", iqn="i"), "1.13", ["node(s) had no available disk"]),
        (disk("iscsi", iqn="i"), "1.5", None),
    ],
)
def test_disks(volumes: list[Manifest], version: str, reasons: list[str] | None) -> None:
    both = [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}, {"name": "i", "iscsi": {"iqn": "i"}}]
    cluster = [node("a"), pod("holder", on="a", volumes=both), pod("web", volumes=volumes)]
    assert rejections(cluster, "NoDiskConflict", version).get("a") == reasons


def test_a_claim_of_a_single_pod_is_no_disk() -> None:
    shared = claim("data", "pv") | {"spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}}
    holder = pod("holder", on="a", volumes=uses("data"))
    cluster = [node("a"), holder, shared, volume("pv"), pod("web", volumes=uses("data"))]
    assert rejections(cluster, "NoDiskConflict") == {}


# --- general predicates


def test_general_predicates_tell_all_that_is_wrong() -> None:
    cluster = [
        node("a", allocatable={"cpu": "1", "pods": "0"}),
        pod("web", spec=asks({"cpu": "2"}), nodeSelector={"x": "y"}),
    ]
    assert rejections(cluster, "GeneralPredicates") == {
        "a": ["Insufficient pods", "Insufficient cpu", "node(s) didn't match node selector"]
    }
    verdict = decide(cluster)["filter"]["nodes"]["a"]["verdict"]
    assert verdict["code"] == "UnschedulableAndUnresolvable"  # one reason that cannot be lifted is enough


# --- volumes of a node


def holding(kind: str, field: str, count: int) -> Manifest:
    return pod("holder", on="a", volumes=[{"name": f"v{i}", kind: {field: f"disk-{i}"}} for i in range(count)])


@pytest.mark.parametrize(
    ("predicate", "kind", "field", "limit", "version"),
    [
        ("MaxEBSVolumeCount", "awsElasticBlockStore", "volumeID", 39, "1.13"),
        ("MaxEBSVolumeCount", "awsElasticBlockStore", "volumeID", 39, "1.5"),
        ("MaxGCEPDVolumeCount", "gcePersistentDisk", "pdName", 16, "1.13"),
        ("MaxGCEPDVolumeCount", "gcePersistentDisk", "pdName", 16, "1.5"),
        ("MaxAzureDiskVolumeCount", "azureDisk", "diskName", 16, "1.13"),
    ],
)
def test_disks_that_a_node_can_attach(predicate: str, kind: str, field: str, limit: int, version: str) -> None:
    mine = pod("web", volumes=[{"name": "new", kind: {field: "new"}}])
    again = pod("web", volumes=[{"name": "new", kind: {field: "disk-0"}}])
    text = "node(s) exceed max volume count" if version == "1.13" else "MaxVolumeCount"
    assert rejections([node("a"), holding(kind, field, limit - 1), mine], predicate, version) == {}
    assert rejections([node("a"), holding(kind, field, limit), mine], predicate, version) == {"a": [text]}
    assert rejections([node("a"), holding(kind, field, limit), again], predicate, version) == {}
    assert rejections([node("a"), holding(kind, field, limit + 1), again], predicate, version) == {"a": [text]}


def test_a_node_can_say_how_many_disks_it_attaches() -> None:
    mine = pod("web", volumes=disk("awsElasticBlockStore", volumeID="new"))
    small = node("a", allocatable={"cpu": "1", "pods": "9", "attachable-volumes-aws-ebs": "1"})
    nitro = node("a", labels={"beta.kubernetes.io/instance-type": "m5.large"})
    item, many = holding("awsElasticBlockStore", "volumeID", 1), holding("awsElasticBlockStore", "volumeID", 25)
    assert rejections([small, item, mine], "MaxEBSVolumeCount").keys() == {"a"}
    assert rejections([small, item, mine], "MaxEBSVolumeCount", "1.5") == {}
    assert rejections([nitro, many, mine], "MaxEBSVolumeCount").keys() == {"a"}
    assert rejections([nitro, many, mine], "MaxEBSVolumeCount", "1.5") == {}


def test_claims_of_which_nobody_knows_what_is_behind_them_count() -> None:
    small = node("a", allocatable={"cpu": "1", "pods": "9", "attachable-volumes-gce-pd": "1"})
    unbound = [small, claim("one"), claim("two"), pod("holder", on="a", volumes=uses("one"))]
    assert rejections([*unbound, pod("web", volumes=uses("two"))], "MaxGCEPDVolumeCount").keys() == {"a"}
    assert rejections([*unbound, pod("web", volumes=uses("one"))], "MaxGCEPDVolumeCount") == {}


def test_an_unbound_claim_is_an_error_to_1_5() -> None:
    written = policy(["MaxGCEPDVolumeCount"], [])
    unbound = [node("a"), node("b"), claim("data"), pod("web", volumes=uses("data"))]
    decision = decide(unbound, "1.5", written)
    once = 'SchedulerPredicates failed due to PersistentVolumeClaim is not bound: "data", which is unexpected.'
    assert (decision["outcome"], decision["message"]) == ("Error", f"[{once}, {once}]")
    missing = [node("a"), pod("web", volumes=uses("gone"))]
    assert decide(missing, "1.5", written)["outcome"] == "Scheduled"  # one that is missing counts as one disk


CSI: Manifest = {"driver": "csi.acme.io", "volumeHandle": "h"}


def test_csi_volumes_that_a_node_can_attach() -> None:
    limited = {"cpu": "1", "pods": "9", "attachable-volumes-csi-csi.acme.io": "0"}
    cluster = [claim("data", "pv"), volume("pv", csi=CSI), pod("web", volumes=uses("data"))]
    text = ["node(s) exceed max volume count"]
    assert rejections([node("a", allocatable=limited), *cluster], "MaxCSIVolumeCountPred") == {"a": text}
    assert rejections([node("a"), *cluster], "MaxCSIVolumeCountPred") == {}
    holder = pod("holder", on="a", volumes=uses("data"))
    assert rejections([node("a", allocatable=limited), holder, *cluster], "MaxCSIVolumeCountPred") == {}


# --- volumes and topology


@pytest.mark.parametrize(
    ("zone", "version", "rejected"),
    [
        ("z1", "1.13", {"far"}),
        ("z1__z2", "1.13", set()),
        ("z1__z2", "1.5", {"near", "far"}),  # a label is one zone
        ("z1____z2", "1.13", set()),  # what cannot be read does not count
    ],
)
def test_the_zone_of_a_volume(zone: str, version: str, rejected: set[str]) -> None:
    nodes = [node("near", labels={BETA_ZONE: "z1"}), node("far", labels={BETA_ZONE: "z2"}), node("nowhere")]
    cluster = [*nodes, claim("data", "pv"), volume("pv", {BETA_ZONE: zone}), pod("web", volumes=uses("data"))]
    assert rejections(cluster, "NoVolumeZoneConflict", version).keys() == rejected


def test_the_newer_zone_label_is_not_known() -> None:
    nodes = [node("a", labels={"topology.kubernetes.io/zone": "z1"})]
    cluster = [*nodes, claim("data", "pv"), volume("pv", {BETA_ZONE: "z2"}), pod("web", volumes=uses("data"))]
    assert rejections(cluster, "NoVolumeZoneConflict") == {}


@pytest.mark.parametrize("version", ["1.13", "1.5"])
def test_an_unbound_claim_is_an_error_where_there_are_zones(version: str) -> None:
    written = policy(["NoVolumeZoneConflict"], [])
    cluster = [claim("data"), pod("web", volumes=uses("data"))]
    zoned = decide([node("a", labels={BETA_ZONE: "z1"}), *cluster], version, written)
    assert zoned["outcome"] == "Error"
    assert 'PersistentVolumeClaim is not bound: "data"' in zoned["message"]
    assert decide([node("a"), *cluster], version, written)["outcome"] == "Scheduled"


def test_a_claim_that_waits_has_no_zone_yet() -> None:
    waiting = [claim("data", storage_class="local"), waiting_class("local"), pod("web", volumes=uses("data"))]
    written = policy(["NoVolumeZoneConflict"], [])
    zoned = node("a", labels={BETA_ZONE: "z1"})
    assert decide([zoned, *waiting], config=written)["outcome"] == "Scheduled"
    assert decide([zoned, *waiting], "1.5", written)["outcome"] == "Error"


LOCAL: Manifest = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["a"]}]}]}
}


def test_volumes_that_a_node_reaches_or_gets() -> None:
    nodes = [node("a", labels={HOST: "a"}), node("b", labels={HOST: "b"})]
    bound = [*nodes, claim("data", "pv"), volume("pv", nodeAffinity=LOCAL), pod("web", volumes=uses("data"))]
    assert rejections(bound, "CheckVolumeBinding") == {"b": ["node(s) had volume node affinity conflict"]}
    local = volume("pv", nodeAffinity=LOCAL, storageClassName="local")
    waiting = [*nodes, claim("data", storage_class="local"), waiting_class("local"), local]
    assert rejections([*waiting, pod("web", volumes=uses("data"))], "CheckVolumeBinding") == {
        "b": ["node(s) didn't find available persistent volumes to bind"]
    }


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim("data")], "pod has unbound immediate PersistentVolumeClaims (repeated 2 times)"),
        ([claim("data", "gone")], 'could not find v1.PersistentVolume "gone" (repeated 2 times)'),
        (
            [
                claim("data", storage_class="local", **{"volume.kubernetes.io/selected-node": "a"}),
                waiting_class("local"),
            ],
            "pod has unbound immediate PersistentVolumeClaims (repeated 2 times)",
        ),
    ],
)
def test_claims_that_are_errors(storage: list[Manifest], message: str) -> None:
    decision = decide([node("a"), node("b"), *storage, pod("web", volumes=uses("data"))])
    assert (decision["outcome"], decision["message"]) == ("Error", message)


def test_a_claim_that_is_being_deleted_is_an_error() -> None:
    going = claim("data", "pv")
    going["metadata"] = {"name": "data", "namespace": "default", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    decision = decide([node("a"), going, volume("pv"), pod("web", volumes=uses("data"))])
    assert (decision["outcome"], decision["message"]) == ("Error", 'persistentvolumeclaim "data" is being deleted')


# --- the pods of a service


def test_the_pods_of_a_service_stay_together() -> None:
    nodes = [node("a", labels={"rack": "1"}), node("b", labels={"rack": "2"}), node("c", labels={"rack": "1"})]
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    labels = {"app": "web"}
    first = pod("first", on="a", labels=labels)
    argument: Manifest = {"serviceAffinity": {"labels": ["rack"]}}
    cluster = [*nodes, service, first]
    stays = rejections([*cluster, pod("web", labels=labels)], "CheckServiceAffinity", argument=argument)
    assert stays == {"b": ["node(s) didn't match service affinity"]}
    chosen = pod("web", labels=labels, nodeSelector={"rack": "2"})
    assert rejections([*cluster, chosen], "CheckServiceAffinity", argument=argument).keys() == {"a", "c"}
    assert rejections([*nodes, first, pod("web", labels=labels)], "CheckServiceAffinity", argument=argument) == {}


# --- pod affinity


def term(app: str, key: str = HOST, **more: object) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def requiring(kind: str, terms: list[Manifest]) -> Manifest:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def near(*apps: str, key: str = HOST) -> Manifest:
    return requiring("podAffinity", [term(app, key) for app in apps])


def away(*apps: str, key: str = HOST) -> Manifest:
    return requiring("podAntiAffinity", [term(app, key) for app in apps])


NODES = [node("a", labels={HOST: "a", "zone": "1"}), node("b", labels={HOST: "b", "zone": "1"}), node("bare")]
CACHE = pod("cache", on="a", labels={"app": "cache"})
DB = pod("db", on="b", labels={"app": "db"})
NOT_MATCH = "node(s) didn't match pod affinity/anti-affinity"


@pytest.mark.parametrize(
    ("affinity", "second", "rejected"),
    [
        (near("cache"), "node(s) didn't match pod affinity rules", {"b", "bare"}),
        (near("cache", "db"), "node(s) didn't match pod affinity rules", {"a", "b", "bare"}),
        (away("cache"), "node(s) didn't match pod anti-affinity rules", {"a"}),
        (near("web"), "", set()),  # it is the first of its kind, and may go where the label is missing
        (near("web", "cache"), "node(s) didn't match pod affinity rules", {"a", "b", "bare"}),
    ],
)
def test_pod_affinity_in_1_13(affinity: Manifest, second: str, rejected: set[str]) -> None:
    result = rejections(
        [*NODES, CACHE, DB, pod("web", labels={"app": "web"}, affinity=affinity)], "MatchInterPodAffinity"
    )
    assert result == {key: [NOT_MATCH, second] for key in rejected}


def test_rules_of_pods_that_run_come_first() -> None:
    repelling = pod("alone", on="a", affinity=away("web", key="zone"))
    rejected = rejections(
        [*NODES, repelling, pod("web", labels={"app": "web"}, affinity=near("x"))], "MatchInterPodAffinity"
    )
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert rejected["a"] == rejected["b"] == [NOT_MATCH, existing]


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        (near("cache"), {"b", "bare"}),
        (near("cache", "db"), {"a", "b", "bare"}),
        (near("cache", "db", key="zone"), {"bare"}),  # each term finds a pod of its own
        (near("web", "cache"), {"b", "bare"}),  # and each may be the first of its kind
        (away("cache"), {"a"}),
    ],
)
def test_pod_affinity_in_1_5(affinity: Manifest, rejected: set[str]) -> None:
    web = pod("web", labels={"app": "web"}, affinity=affinity)
    result = rejections([*NODES, CACHE, DB, web], "MatchInterPodAffinity", "1.5")
    assert result == {key: ["MatchInterPodAffinity"] for key in rejected}


def test_in_1_5_a_rule_is_about_all_namespaces_and_the_last_key_counts() -> None:
    elsewhere = pod("alone", namespace="other", on="a", affinity=away("web", key="zone"))
    web = pod("web", labels={"app": "web"})
    assert rejections([*NODES, elsewhere, web], "MatchInterPodAffinity", "1.5").keys() == {"a", "b"}
    assert rejections([*NODES, elsewhere, web], "MatchInterPodAffinity") == {}
    rules = requiring("podAntiAffinity", [term("web", "zone"), term("nobody", HOST)])
    two = pod("two", on="a", affinity=rules)
    assert rejections([*NODES, two, web], "MatchInterPodAffinity", "1.5").keys() == {"a"}
    assert rejections([*NODES, two, web], "MatchInterPodAffinity").keys() == {"a", "b"}


def test_later_fields_of_a_term_are_not_read() -> None:
    everywhere = requiring("podAntiAffinity", [term("cache", namespaceSelector={})])
    other = pod("cache", namespace="other", on="a", labels={"app": "cache"})
    for version in ("1.13", "1.5"):
        rejected = rejections([*NODES, other, pod("web", affinity=everywhere)], "MatchInterPodAffinity", version)
        assert rejected == {}

"""Each predicate in both versions: the nodes that it rejects, and its messages."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import claim, claim_volumes, decide, late_binding_class, policy, rejections, volume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def node_with_conditions(name: str, **conditions: str) -> Manifest:
    conditions_of_node = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return node(name) | {
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}, "conditions": conditions_of_node}
    }


def spec_with_requests(amounts: dict[str, str], init: dict[str, str] | None = None) -> Manifest:
    """Return the spec of a pod with these requests."""
    spec: Manifest = {"containers": [{"name": "main", "resources": {"requests": amounts}}]}
    if init is not None:
        spec["initContainers"] = [{"name": "first", "resources": {"requests": init}}]
    return spec


# --- resources

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "2", "acme.io/gpu": "1"}
FULL = pod("busy", on="a", spec=spec_with_requests({"cpu": "1500m"}))


@pytest.mark.parametrize(
    ("spec", "version", "reasons"),
    [
        (spec_with_requests({"cpu": "2"}), "1.13", ["Insufficient cpu"]),
        (spec_with_requests({"cpu": "2", "memory": "2Gi"}), "1.13", ["Insufficient cpu", "Insufficient memory"]),
        (spec_with_requests({"cpu": "1"}, init={"cpu": "2"}), "1.13", ["Insufficient cpu"]),
        (spec_with_requests({"cpu": "1"}, init={"cpu": "2"}), "1.5", None),  # init containers were in an annotation
        (spec_with_requests({"acme.io/gpu": "2"}), "1.13", ["Insufficient acme.io/gpu"]),
        (spec_with_requests({"acme.io/gpu": "2"}), "1.5", None),  # extended resources were not counted
        (
            spec_with_requests({"alpha.kubernetes.io/nvidia-gpu": "1"}),
            "1.5",
            ["Insufficient alpha.kubernetes.io/nvidia-gpu"],
        ),
        (spec_with_requests({"ephemeral-storage": "1Gi"}), "1.13", ["Insufficient ephemeral-storage"]),
        (spec_with_requests({"ephemeral-storage": "1Gi"}), "1.5", None),
        (spec_with_requests({}) | {"overhead": {"cpu": "2"}}, "1.13", None),
        (spec_with_requests({"cpu": "1"}), "1.13", None),
    ],
)
def test_resources_that_a_pod_requests(spec: Manifest, version: str, reasons: list[str] | None) -> None:
    reasons_by_node = rejections([node("a", allocatable=SMALL), pod("web", spec=spec)], "PodFitsResources", version)
    assert reasons_by_node.get("a") == reasons


@pytest.mark.parametrize("version", ["1.13", "1.5"])
def test_a_request_is_compared_with_all_resources(version: str) -> None:
    overcommitted = [node("a", allocatable=SMALL), FULL]
    requesting = [*overcommitted, pod("web", spec=spec_with_requests({"memory": "1"}))]
    assert rejections(requesting, "PodFitsResources", version) == {"a": ["Insufficient cpu"]}
    assert rejections([*overcommitted, pod("web")], "PodFitsResources", version) == {}


def test_a_running_pod_counts_without_its_init_containers() -> None:
    running = pod("busy", on="a", spec=spec_with_requests({"cpu": "100m"}, init={"cpu": "1"}))
    cluster = [node("a", allocatable=SMALL), running, pod("web", spec=spec_with_requests({"cpu": "900m"}))]
    assert rejections(cluster, "PodFitsResources") == {}


def test_finished_pods_count_only_in_1_13() -> None:
    finished = pod("done", on="a", status={"phase": "Succeeded"}, spec=spec_with_requests({"cpu": "1"}))
    cluster = [node("a", allocatable=SMALL), finished, pod("web", spec=spec_with_requests({"cpu": "1"}))]
    assert rejections(cluster, "PodFitsResources", "1.13") == {"a": ["Insufficient cpu"]}
    assert rejections(cluster, "PodFitsResources", "1.5") == {}


# --- the node itself


def test_node_names_and_node_selectors() -> None:
    cluster = [node("a"), node("b", labels={"disk": "ssd"})]
    with_name = [*cluster, pod("web", nodeName="gone")]
    assert rejections(with_name, "HostName")["a"] == ["node(s) didn't match the requested hostname"]
    assert rejections(with_name, "HostName", "1.5")["a"] == ["HostName"]
    with_selector = [*cluster, pod("web", nodeSelector={"disk": "ssd"})]
    assert rejections(with_selector, "MatchNodeSelector") == {"a": ["node(s) didn't match node selector"]}
    assert rejections(with_selector, "MatchNodeSelector", "1.5") == {"a": ["MatchNodeSelector"]}


def required(*terms: Manifest) -> Manifest:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


HAS_DISK: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
INVALID_TERM: Manifest = {"matchExpressions": [{"key": "disk", "operator": "In"}]}
NAMED: Manifest = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("terms", "version", "rejected"),
    [
        ([INVALID_TERM, HAS_DISK], "1.13", set()),
        ([INVALID_TERM, HAS_DISK], "1.5", {"a"}),  # terms after an invalid one are ignored
        ([HAS_DISK, INVALID_TERM], "1.5", set()),
        ([NAMED], "1.13", set()),
        ([NAMED], "1.5", {"a"}),  # matchFields is unknown, and an empty term matches no node
        ([HAS_DISK | NAMED], "1.5", set()),
    ],
)
def test_terms_of_node_affinity(terms: list[Manifest], version: str, rejected: set[str]) -> None:
    cluster = [node("a", labels={"disk": "ssd"}), pod("web", affinity=required(*terms))]
    assert rejections(cluster, "MatchNodeSelector", version).keys() == rejected


@pytest.mark.parametrize(("presence", "rejected"), [(True, {"b"}), (False, {"a"})])
def test_labels_that_a_policy_requires_or_forbids(presence: bool, rejected: set[str]) -> None:
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
        node_with_conditions("a", Ready="False"),
        node_with_conditions("a", Ready="Unknown"),
        node_with_conditions("a", OutOfDisk="True"),
        node_with_conditions("a", NetworkUnavailable="Unknown"),
    ],
)
def test_1_5_excludes_unusable_nodes(unusable: Manifest) -> None:
    only_unusable = decide([unusable, pod("web")], "1.5")
    assert (only_unusable["outcome"], only_unusable["message"]) == (
        "Unschedulable",
        "no nodes available to schedule pods",
    )
    with_second_node = decide([unusable, node("b"), pod("web", nodeSelector={"no": "where"})], "1.5")
    assert with_second_node["filter"]["nodes"].keys() == {"b"}
    assert with_second_node["preFilter"][0]["nodes"] == ["b"]


CONDITIONS = {"TaintNodesByCondition": False}


@pytest.mark.parametrize(
    ("conditions", "reasons"),
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
def test_conditions_without_the_taint_gate(conditions: dict[str, str], reasons: list[str] | None) -> None:
    reasons_by_node = rejections(
        [node_with_conditions("a", **conditions), pod("web")], "CheckNodeCondition", gates=CONDITIONS
    )
    assert reasons_by_node.get("a") == reasons


def test_a_cordoned_node_without_the_taint_gate() -> None:
    assert rejections([CORDONED, pod("web")], "CheckNodeCondition", gates=CONDITIONS) == {
        "a": ["node(s) were unschedulable"]
    }


@pytest.mark.parametrize(
    ("predicate", "condition", "reason", "reason_in_1_5"),
    [
        ("CheckNodeDiskPressure", "DiskPressure", "node(s) had disk pressure", "NodeUnderDiskPressure"),
        ("CheckNodeMemoryPressure", "MemoryPressure", "node(s) had memory pressure", "NodeUnderMemoryPressure"),
        ("CheckNodePIDPressure", "PIDPressure", "node(s) had pid pressure", None),
    ],
)
def test_pressure_conditions(predicate: str, condition: str, reason: str, reason_in_1_5: str | None) -> None:
    cluster = [
        node_with_conditions("a", **{condition: "True"}),
        node_with_conditions("b", **{condition: "Unknown"}),
        pod("web"),
    ]
    assert rejections(cluster, predicate, gates=CONDITIONS) == {"a": [reason]}
    if reason_in_1_5:
        assert rejections(cluster, predicate, "1.5") == {"a": [reason_in_1_5]}


def test_memory_pressure_rejects_pods_without_requests() -> None:
    cluster = [node_with_conditions("a", MemoryPressure="True")]
    assert (
        rejections([*cluster, pod("web", spec=spec_with_requests({"cpu": "1m"}))], "CheckNodeMemoryPressure", "1.5")
        == {}
    )
    without_requests = [*cluster, pod("web", spec=spec_with_requests({"cpu": "0"}))]
    assert rejections(without_requests, "CheckNodeMemoryPressure", "1.5").keys() == {"a"}


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


# --- pods on the node


def with_port(**port: object) -> Manifest:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80, **port}]}]}


@pytest.mark.parametrize(
    ("port", "version", "reasons"),
    [
        ({}, "1.13", ["node(s) didn't have free ports for the requested pod ports"]),
        ({"protocol": "UDP"}, "1.13", None),
        ({"protocol": "UDP"}, "1.5", ["PodFitsHostPorts"]),  # only the port number counts
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
def test_disks_in_use(volumes: list[Manifest], version: str, reasons: list[str] | None) -> None:
    volumes_of_holder = [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}, {"name": "i", "iscsi": {"iqn": "i"}}]
    cluster = [node("a"), pod("holder", on="a", volumes=volumes_of_holder), pod("web", volumes=volumes)]
    assert rejections(cluster, "NoDiskConflict", version).get("a") == reasons


def test_a_read_write_once_pod_claim_is_no_disk_conflict() -> None:
    shared = claim("data", "pv") | {"spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}}
    holder = pod("holder", on="a", volumes=claim_volumes("data"))
    cluster = [node("a"), holder, shared, volume("pv"), pod("web", volumes=claim_volumes("data"))]
    assert rejections(cluster, "NoDiskConflict") == {}


# --- general predicates


def test_general_predicates_report_all_reasons() -> None:
    cluster = [
        node("a", allocatable={"cpu": "1", "pods": "0"}),
        pod("web", spec=spec_with_requests({"cpu": "2"}), nodeSelector={"x": "y"}),
    ]
    assert rejections(cluster, "GeneralPredicates") == {
        "a": ["Insufficient pods", "Insufficient cpu", "node(s) didn't match node selector"]
    }
    verdict = decide(cluster)["filter"]["nodes"]["a"]["verdict"]
    assert verdict["code"] == "UnschedulableAndUnresolvable"  # one unresolvable reason is enough


# --- volumes of a node


def holder_of_volumes(kind: str, field: str, count: int) -> Manifest:
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
def test_the_default_limit_of_attached_disks(predicate: str, kind: str, field: str, limit: int, version: str) -> None:
    target = pod("web", volumes=[{"name": "new", kind: {field: "new"}}])
    sharing = pod("web", volumes=[{"name": "new", kind: {field: "disk-0"}}])
    text = "node(s) exceed max volume count" if version == "1.13" else "MaxVolumeCount"
    assert rejections([node("a"), holder_of_volumes(kind, field, limit - 1), target], predicate, version) == {}
    assert rejections([node("a"), holder_of_volumes(kind, field, limit), target], predicate, version) == {"a": [text]}
    assert rejections([node("a"), holder_of_volumes(kind, field, limit), sharing], predicate, version) == {}
    assert rejections([node("a"), holder_of_volumes(kind, field, limit + 1), sharing], predicate, version) == {
        "a": [text]
    }


def test_the_limit_of_attached_disks_of_a_node() -> None:
    target = pod("web", volumes=disk("awsElasticBlockStore", volumeID="new"))
    small = node("a", allocatable={"cpu": "1", "pods": "9", "attachable-volumes-aws-ebs": "1"})
    nitro_node = node("a", labels={"beta.kubernetes.io/instance-type": "m5.large"})
    holder, full_holder = (
        holder_of_volumes("awsElasticBlockStore", "volumeID", 1),
        holder_of_volumes("awsElasticBlockStore", "volumeID", 25),
    )
    assert rejections([small, holder, target], "MaxEBSVolumeCount").keys() == {"a"}
    assert rejections([small, holder, target], "MaxEBSVolumeCount", "1.5") == {}
    assert rejections([nitro_node, full_holder, target], "MaxEBSVolumeCount").keys() == {"a"}
    assert rejections([nitro_node, full_holder, target], "MaxEBSVolumeCount", "1.5") == {}


def test_unbound_claims_count_as_disks() -> None:
    small = node("a", allocatable={"cpu": "1", "pods": "9", "attachable-volumes-gce-pd": "1"})
    unbound = [small, claim("one"), claim("two"), pod("holder", on="a", volumes=claim_volumes("one"))]
    assert rejections([*unbound, pod("web", volumes=claim_volumes("two"))], "MaxGCEPDVolumeCount").keys() == {"a"}
    assert rejections([*unbound, pod("web", volumes=claim_volumes("one"))], "MaxGCEPDVolumeCount") == {}


def test_an_unbound_claim_is_an_error_in_1_5() -> None:
    single_policy = policy(["MaxGCEPDVolumeCount"], [])
    unbound = [node("a"), node("b"), claim("data"), pod("web", volumes=claim_volumes("data"))]
    decision = decide(unbound, "1.5", single_policy)
    text = 'SchedulerPredicates failed due to PersistentVolumeClaim is not bound: "data", which is unexpected.'
    assert (decision["outcome"], decision["message"]) == ("Error", f"[{text}, {text}]")
    missing = [node("a"), pod("web", volumes=claim_volumes("gone"))]
    assert decide(missing, "1.5", single_policy)["outcome"] == "Scheduled"  # a missing claim counts as one disk


CSI: Manifest = {"driver": "csi.acme.io", "volumeHandle": "h"}


def test_the_limit_of_csi_volumes() -> None:
    limited = {"cpu": "1", "pods": "9", "attachable-volumes-csi-csi.acme.io": "0"}
    cluster = [claim("data", "pv"), volume("pv", csi=CSI), pod("web", volumes=claim_volumes("data"))]
    text = ["node(s) exceed max volume count"]
    assert rejections([node("a", allocatable=limited), *cluster], "MaxCSIVolumeCountPred") == {"a": text}
    assert rejections([node("a"), *cluster], "MaxCSIVolumeCountPred") == {}
    holder = pod("holder", on="a", volumes=claim_volumes("data"))
    assert rejections([node("a", allocatable=limited), holder, *cluster], "MaxCSIVolumeCountPred") == {}


# --- volumes and topology


@pytest.mark.parametrize(
    ("zone", "version", "rejected"),
    [
        ("z1", "1.13", {"far"}),
        ("z1__z2", "1.13", set()),
        ("z1__z2", "1.5", {"near", "far"}),  # a label has one zone
        ("z1____z2", "1.13", set()),  # an invalid label does not count
    ],
)
def test_the_zone_of_a_volume(zone: str, version: str, rejected: set[str]) -> None:
    nodes = [node("near", labels={BETA_ZONE: "z1"}), node("far", labels={BETA_ZONE: "z2"}), node("nowhere")]
    cluster = [*nodes, claim("data", "pv"), volume("pv", {BETA_ZONE: zone}), pod("web", volumes=claim_volumes("data"))]
    assert rejections(cluster, "NoVolumeZoneConflict", version).keys() == rejected


def test_the_newer_zone_label_is_ignored() -> None:
    nodes = [node("a", labels={"topology.kubernetes.io/zone": "z1"})]
    cluster = [*nodes, claim("data", "pv"), volume("pv", {BETA_ZONE: "z2"}), pod("web", volumes=claim_volumes("data"))]
    assert rejections(cluster, "NoVolumeZoneConflict") == {}


@pytest.mark.parametrize("version", ["1.13", "1.5"])
def test_an_unbound_claim_is_an_error_on_nodes_with_zones(version: str) -> None:
    single_policy = policy(["NoVolumeZoneConflict"], [])
    cluster = [claim("data"), pod("web", volumes=claim_volumes("data"))]
    zoned = decide([node("a", labels={BETA_ZONE: "z1"}), *cluster], version, single_policy)
    assert zoned["outcome"] == "Error"
    assert 'PersistentVolumeClaim is not bound: "data"' in zoned["message"]
    assert decide([node("a"), *cluster], version, single_policy)["outcome"] == "Scheduled"


def test_a_claim_with_late_binding_has_no_zone() -> None:
    waiting_objects = [
        claim("data", storage_class="local"),
        late_binding_class("local"),
        pod("web", volumes=claim_volumes("data")),
    ]
    single_policy = policy(["NoVolumeZoneConflict"], [])
    zoned = node("a", labels={BETA_ZONE: "z1"})
    assert decide([zoned, *waiting_objects], config=single_policy)["outcome"] == "Scheduled"
    assert decide([zoned, *waiting_objects], "1.5", single_policy)["outcome"] == "Error"


LOCAL: Manifest = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["a"]}]}]}
}


def test_check_volume_binding() -> None:
    nodes = [node("a", labels={HOST: "a"}), node("b", labels={HOST: "b"})]
    bound = [*nodes, claim("data", "pv"), volume("pv", nodeAffinity=LOCAL), pod("web", volumes=claim_volumes("data"))]
    assert rejections(bound, "CheckVolumeBinding") == {"b": ["node(s) had volume node affinity conflict"]}
    local = volume("pv", nodeAffinity=LOCAL, storageClassName="local")
    waiting_objects = [*nodes, claim("data", storage_class="local"), late_binding_class("local"), local]
    assert rejections([*waiting_objects, pod("web", volumes=claim_volumes("data"))], "CheckVolumeBinding") == {
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
                late_binding_class("local"),
            ],
            "pod has unbound immediate PersistentVolumeClaims (repeated 2 times)",
        ),
    ],
)
def test_unusable_claims_are_errors(storage: list[Manifest], message: str) -> None:
    decision = decide([node("a"), node("b"), *storage, pod("web", volumes=claim_volumes("data"))])
    assert (decision["outcome"], decision["message"]) == ("Error", message)


def test_a_terminating_claim_is_an_error() -> None:
    deleted = claim("data", "pv")
    deleted["metadata"] = {"name": "data", "namespace": "default", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    decision = decide([node("a"), deleted, volume("pv"), pod("web", volumes=claim_volumes("data"))])
    assert (decision["outcome"], decision["message"]) == ("Error", 'persistentvolumeclaim "data" is being deleted')


# --- service affinity


def test_service_affinity() -> None:
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
    rejected = rejections([*cluster, pod("web", labels=labels)], "CheckServiceAffinity", argument=argument)
    assert rejected == {"b": ["node(s) didn't match service affinity"]}
    selecting_pod = pod("web", labels=labels, nodeSelector={"rack": "2"})
    assert rejections([*cluster, selecting_pod], "CheckServiceAffinity", argument=argument).keys() == {"a", "c"}
    assert rejections([*nodes, first, pod("web", labels=labels)], "CheckServiceAffinity", argument=argument) == {}


# --- pod affinity


def term(app: str, key: str = HOST, **fields: object) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def pod_rules(kind: str, terms: list[Manifest]) -> Manifest:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def affinity_to(*apps: str, key: str = HOST) -> Manifest:
    return pod_rules("podAffinity", [term(app, key) for app in apps])


def anti_affinity_to(*apps: str, key: str = HOST) -> Manifest:
    return pod_rules("podAntiAffinity", [term(app, key) for app in apps])


NODES = [node("a", labels={HOST: "a", "zone": "1"}), node("b", labels={HOST: "b", "zone": "1"}), node("bare")]
CACHE = pod("cache", on="a", labels={"app": "cache"})
DB = pod("db", on="b", labels={"app": "db"})
NOT_MATCH = "node(s) didn't match pod affinity/anti-affinity"


@pytest.mark.parametrize(
    ("affinity", "second", "rejected"),
    [
        (affinity_to("cache"), "node(s) didn't match pod affinity rules", {"b", "bare"}),
        (affinity_to("cache", "db"), "node(s) didn't match pod affinity rules", {"a", "b", "bare"}),
        (anti_affinity_to("cache"), "node(s) didn't match pod anti-affinity rules", {"a"}),
        (affinity_to("web"), "", set()),  # the first pod of its group also fits a node without the label
        (affinity_to("web", "cache"), "node(s) didn't match pod affinity rules", {"a", "b", "bare"}),
    ],
)
def test_pod_affinity_in_1_13(affinity: Manifest, second: str, rejected: set[str]) -> None:
    result = rejections(
        [*NODES, CACHE, DB, pod("web", labels={"app": "web"}, affinity=affinity)], "MatchInterPodAffinity"
    )
    assert result == {key: [NOT_MATCH, second] for key in rejected}


def test_anti_affinity_of_running_pods_is_checked_first() -> None:
    pod_with_anti_affinity = pod("alone", on="a", affinity=anti_affinity_to("web", key="zone"))
    reasons_by_node = rejections(
        [*NODES, pod_with_anti_affinity, pod("web", labels={"app": "web"}, affinity=affinity_to("x"))],
        "MatchInterPodAffinity",
    )
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert reasons_by_node["a"] == reasons_by_node["b"] == [NOT_MATCH, existing]


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        (affinity_to("cache"), {"b", "bare"}),
        (affinity_to("cache", "db"), {"a", "b", "bare"}),
        (affinity_to("cache", "db", key="zone"), {"bare"}),  # each term may match another pod
        (affinity_to("web", "cache"), {"b", "bare"}),  # and each may be the pod's own group
        (anti_affinity_to("cache"), {"a"}),
    ],
)
def test_pod_affinity_in_1_5(affinity: Manifest, rejected: set[str]) -> None:
    web = pod("web", labels={"app": "web"}, affinity=affinity)
    result = rejections([*NODES, CACHE, DB, web], "MatchInterPodAffinity", "1.5")
    assert result == {key: ["MatchInterPodAffinity"] for key in rejected}


def test_anti_affinity_of_running_pods_in_1_5() -> None:
    pod_elsewhere = pod("alone", namespace="other", on="a", affinity=anti_affinity_to("web", key="zone"))
    web = pod("web", labels={"app": "web"})
    assert rejections([*NODES, pod_elsewhere, web], "MatchInterPodAffinity", "1.5").keys() == {"a", "b"}
    assert rejections([*NODES, pod_elsewhere, web], "MatchInterPodAffinity") == {}
    anti_affinity_rules = pod_rules("podAntiAffinity", [term("web", "zone"), term("nobody", HOST)])
    pod_with_two_terms = pod("two", on="a", affinity=anti_affinity_rules)
    assert rejections([*NODES, pod_with_two_terms, web], "MatchInterPodAffinity", "1.5").keys() == {"a"}
    assert rejections([*NODES, pod_with_two_terms, web], "MatchInterPodAffinity").keys() == {"a", "b"}


def test_fields_of_terms_from_later_versions_are_ignored() -> None:
    affinity_rules = pod_rules("podAntiAffinity", [term("cache", namespaceSelector={})])
    other = pod("cache", namespace="other", on="a", labels={"app": "cache"})
    for version in ("1.13", "1.5"):
        reasons_by_node = rejections(
            [*NODES, other, pod("web", affinity=affinity_rules)], "MatchInterPodAffinity", version
        )
        assert reasons_by_node == {}

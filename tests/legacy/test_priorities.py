"""Each priority in both releases: what nodes are worth, from 0 to 10."""

from __future__ import annotations

import json

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import decide, policy, scores

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
RELEASES = ("1.13", "1.5")


def asks(cpu: str, memory: str) -> Manifest:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}


# --- how full a node would be

TEN = {"cpu": "10", "memory": "10Gi", "pods": "9"}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("priority", "request_", "worth"),
    [
        ("LeastRequestedPriority", ("1", "3Gi"), (9 + 7) // 2),
        ("LeastRequestedPriority", ("15", "3Gi"), (0 + 7) // 2),
        ("MostRequestedPriority", ("1", "3Gi"), (1 + 3) // 2),
        ("MostRequestedPriority", ("4", "15Gi"), (4 + 0) // 2),
        ("BalancedResourceAllocation", ("1", "3Gi"), 8),  # 10 - |0.1 - 0.3| * 10
        ("BalancedResourceAllocation", ("10", "10Gi"), 0),  # nothing is left
        ("EqualPriority", ("1", "1Gi"), 1),
    ],
)
def test_how_full_a_node_would_be(version: str, priority: str, request_: tuple[str, str], worth: int) -> None:
    assert scores([node("a", allocatable=TEN), pod("web", spec=asks(*request_))], priority, version) == {"a": worth}


def test_containers_without_requests_are_not_free() -> None:
    tight = {"cpu": "200m", "memory": "400Mi", "pods": "9"}
    assert scores([node("a", allocatable=tight), pod("web")], "LeastRequestedPriority") == {"a": 5}
    both = [node("a", allocatable=tight), pod("other", on="a"), pod("web")]
    assert scores(both, "LeastRequestedPriority") == {"a": 0}


@pytest.mark.parametrize(
    ("shape", "worth"),
    [
        (None, 9),
        ([(0, 0), (100, 10)], 1),
        ([(0, 2), (50, 6)], 2),
        ([(20, 8), (30, 2)], 8),
    ],
)
def test_the_requested_share_on_a_shape(shape: list[tuple[int, int]] | None, worth: int) -> None:
    cluster = [node("a", allocatable=TEN), pod("web", spec=asks("1", "1Gi"))]
    if shape is None:
        assert scores(cluster, "RequestedToCapacityRatioPriority") == {"a": worth}
        return
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    argument: Manifest = {"requestedToCapacityRatioArguments": {"shape": points}}
    assert scores(cluster, "Mine", argument=argument) == {"a": worth}


def test_nodes_that_can_hold_the_limits() -> None:
    limits: Manifest = {"containers": [{"name": "main", "resources": {"limits": {"cpu": "5", "memory": "20Gi"}}}]}
    small = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    cluster = [node("a", allocatable=TEN), node("b", allocatable=small), pod("web", spec=limits)]
    written = policy([], ["ResourceLimitsPriority"])
    decision = decide(cluster, config=written, gates={"ResourceLimitsPriorityFunction": True})["score"]["nodes"]
    assert {name: text["total"] for name, text in decision.items()} == {"a": 1, "b": 0}


# --- preferences


def preferring(*terms: tuple[int, Manifest]) -> Manifest:
    written = [{"weight": weight, "preference": preference} for weight, preference in terms]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": written}}


HAS_DISK: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
FIELD: Manifest = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}


@pytest.mark.parametrize("version", RELEASES)
def test_node_affinity(version: str) -> None:
    zone: Manifest = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    nodes = [node("a", labels={"disk": "1", "zone": "1"}), node("b", labels={"disk": "1"}), node("c")]
    web = pod("web", affinity=preferring((2, HAS_DISK), (1, zone), (9, FIELD)))
    # 2 of 3 tenths and a rest; fields count for nothing
    assert scores([*nodes, web], "NodeAffinityPriority", version) == {"a": 10, "b": 6, "c": 0}
    assert scores([*nodes, pod("web")], "NodeAffinityPriority", version) == {"a": 0, "b": 0, "c": 0}


def test_a_preference_that_cannot_be_read_is_an_error() -> None:
    wrong: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["much"]}]}
    decision = decide(
        [node("a"), node("b"), pod("web", affinity=preferring((1, wrong)))],
        config=policy([], ["NodeAffinityPriority"]),
    )
    assert decision["outcome"] == "Error"


@pytest.mark.parametrize(
    ("tolerations", "version", "worth"),
    [
        ([], "1.13", {"a": 0, "b": 5, "c": 10}),
        ([], "1.5", {"a": 0, "b": 5, "c": 10}),
        ([{"operator": "Exists"}], "1.13", {"a": 10, "b": 10, "c": 10}),
        ([{"operator": "Exists"}], "1.5", {"a": 0, "b": 5, "c": 10}),  # tolerations must name the key
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "1.13", {"a": 0, "b": 5, "c": 10}),
        ([{"key": "k", "operator": "Exists"}], "1.13", {"a": 0, "b": 10, "c": 10}),
    ],
)
def test_taints(tolerations: list[Manifest], version: str, worth: dict[str, int]) -> None:
    nodes = [
        node("a", taints=["k=v:PreferNoSchedule", "l=v:PreferNoSchedule"]),
        node("b", taints=["k=v:PreferNoSchedule"]),
        node("c"),
    ]
    assert scores([*nodes, pod("web", tolerations=tolerations)], "TaintTolerationPriority", version) == worth


@pytest.mark.parametrize(("presence", "worth"), [(True, {"a": 10, "b": 0}), (False, {"a": 0, "b": 10})])
def test_a_label_of_the_policys_choice(presence: bool, worth: dict[str, int]) -> None:
    argument: Manifest = {"labelPreference": {"label": "ssd", "presence": presence}}
    cluster = [node("a", labels={"ssd": ""}), node("b"), pod("web")]
    assert scores(cluster, "Mine", argument=argument) == worth


@pytest.mark.parametrize(("kind", "worth"), [("ReplicaSet", 0), ("Job", 10)])
def test_pods_that_a_node_would_rather_not_have(kind: str, worth: int) -> None:
    avoided = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": kind, "uid": "u"}}}]}
    reluctant, broken = node("a"), node("b")
    annotation = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    reluctant["metadata"] = {"name": "a", "annotations": {annotation: json.dumps(avoided)}}
    broken["metadata"] = {"name": "b", "annotations": {annotation: "{"}}
    owner = {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    cluster = [reluctant, broken, pod("web", metadata={"ownerReferences": [owner]})]
    assert scores(cluster, "NodePreferAvoidPodsPriority") == {"a": worth, "b": 10}


# --- spreading

LABELS = {"app": "web"}


def service(name: str, selector: dict[str, str]) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}


def workload(kind: str, api_version: str = "apps/v1") -> Manifest:
    selector: Manifest = dict(LABELS) if kind == "ReplicationController" else {"matchLabels": LABELS}
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}


def peers(**counts: int) -> list[Manifest]:
    return [pod(f"{name}-{i}", on=name, labels=LABELS) for name, count in counts.items() for i in range(count)]


WEB = pod("web", labels=LABELS)
BARE = [node("a"), node("b"), node("c")]


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    "owner",
    [
        service("s", LABELS),
        workload("ReplicationController", "v1"),
        workload("ReplicaSet"),
        workload("StatefulSet"),
    ],
    ids=lambda owner: str(owner["kind"]),
)
def test_pods_of_a_service_or_controller_are_spread(owner: Manifest, version: str) -> None:
    counted = version == "1.13" or owner["kind"] != "StatefulSet"
    worth = {"a": 0, "b": 7, "c": 10} if counted else {"a": 10, "b": 10, "c": 10}
    assert scores([*BARE, owner, *peers(a=4, b=1), WEB], "SelectorSpreadPriority", version) == worth
    is_service = owner["kind"] == "Service"
    worth = {"a": 0, "b": 7, "c": 10} if is_service else {"a": 10, "b": 10, "c": 10}
    assert scores([*BARE, owner, *peers(a=4, b=1), WEB], "ServiceSpreadingPriority", version) == worth


def test_pods_that_are_being_deleted_do_not_count() -> None:
    going = pod("going", on="a", labels=LABELS, metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})
    assert scores([*BARE, service("s", LABELS), going, *peers(b=1), WEB], "SelectorSpreadPriority")["a"] == 10


ZONED = [
    node("a", labels={BETA_ZONE: "1"}),
    node("b", labels={BETA_ZONE: "1"}),
    node("c", labels={BETA_ZONE: "2"}),
    node("d"),
]


@pytest.mark.parametrize("version", RELEASES)
def test_a_zone_weighs_twice_what_a_node_does(version: str) -> None:
    result = scores([*ZONED, service("s", LABELS), *peers(a=2), WEB], "SelectorSpreadPriority", version)
    # b: a third of 10 for the node, nothing for the zone
    assert result == {"a": 0, "b": 3, "c": 10, "d": 10}


def test_zones_without_any_pod_are_divided_by_zero_in_1_5() -> None:
    cluster = [*ZONED, service("s", LABELS), WEB]
    assert scores(cluster, "SelectorSpreadPriority") == {"a": 10, "b": 10, "c": 10, "d": 10}
    smallest = -(2**63)
    assert scores(cluster, "SelectorSpreadPriority", "1.5") == {"a": smallest, "b": smallest, "c": smallest, "d": 10}


@pytest.mark.parametrize("version", RELEASES)
def test_a_service_is_spread_over_a_label_of_the_policys_choice(version: str) -> None:
    argument: Manifest = {"serviceAntiAffinity": {"label": BETA_ZONE}}
    cluster = [*ZONED, service("s", LABELS), *peers(a=2, b=1, c=1), WEB]
    assert scores(cluster, "Mine", version, argument) == {"a": 2, "b": 2, "c": 7, "d": 0}


def test_in_1_5_a_services_pods_count_wherever_they_run() -> None:
    argument: Manifest = {"serviceAntiAffinity": {"label": BETA_ZONE}}
    cluster = [*ZONED, service("s", LABELS), *peers(a=1, d=1), WEB]
    # the pod on d has no zone: it is one of two all the same
    assert scores(cluster, "Mine", "1.5", argument) == {"a": 5, "b": 5, "c": 10, "d": 0}


# --- pod affinity


def towards(app: str, weight: int, key: str = HOST, kind: str = "podAffinity") -> Manifest:
    written = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": written}]}}


def must_be_near(app: str) -> Manifest:
    written = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [written]}}


HOSTS = [node(name, labels={HOST: name}) for name in "abc"]


@pytest.mark.parametrize("version", RELEASES)
def test_pods_that_it_would_rather_be_near_or_far_from(version: str) -> None:
    cluster = [*HOSTS, pod("x", on="a", labels={"app": "x"}), pod("y", on="b", labels={"app": "y"})]
    near, far = towards("x", 2), towards("y", 2, kind="podAntiAffinity")
    both = pod("web", affinity=near | far)
    assert scores([*cluster, both], "InterPodAffinityPriority", version) == {"a": 10, "b": 0, "c": 5}


def test_the_range_begins_at_zero() -> None:
    everywhere = [pod(f"x{name}", on=name, labels={"app": "x"}) for name in "abc"]
    web = pod("web", affinity=towards("x", 5))
    assert scores([*HOSTS, *everywhere, web], "InterPodAffinityPriority") == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize(
    ("version", "weight", "worth"),
    [
        ("1.13", 0, {"a": 3, "b": 10, "c": 0}),
        ("1.13", 6, {"a": 10, "b": 5, "c": 0}),
        ("1.5", 6, {"a": 3, "b": 10, "c": 0}),
    ],
)
def test_the_weight_of_a_required_rule_of_a_pod_that_runs(version: str, weight: int, worth: dict[str, int]) -> None:
    """1.5 takes it from the command line alone, so the default is 1."""
    bound = pod("bound", on="a", affinity=must_be_near("web"))
    drawn = pod("drawn", on="b", affinity=towards("web", 3))
    cluster = [*HOSTS, bound, drawn, WEB]
    result = scores(cluster, "InterPodAffinityPriority", version, hardPodAffinitySymmetricWeight=weight)
    assert result == worth


# --- images

MIB = 1024 * 1024


def with_images(name: str, **sizes: int) -> Manifest:
    written = node(name)
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}
    images = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in sizes.items()]
    written["status"] = {**status, "images": images}
    return written


def running(*images: str) -> Manifest:
    return {"containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]}


@pytest.mark.parametrize(
    ("images", "version", "worth"),
    [
        (("big",), "1.13", {"a": 4, "b": 0}),  # half of the nodes have it, so half of its size counts
        (("big:latest",), "1.5", {"a": 10, "b": 0}),
        (("big",), "1.5", {"a": 0, "b": 0}),  # the name is taken as written
        (("small",), "1.13", {"a": 0, "b": 0}),
        (("mid:latest",), "1.5", {"a": 3, "b": 1}),  # every node says for itself how large it is
        (("big", "big"), "1.13", {"a": 10, "b": 0}),
    ],
)
def test_images(images: tuple[str, ...], version: str, worth: dict[str, int]) -> None:
    nodes = [with_images("a", big=1000, small=30, mid=250), with_images("b", mid=30)]
    assert scores([*nodes, pod("web", spec=running(*images))], "ImageLocalityPriority", version) == worth


# --- the choice


def test_a_single_node_is_scored_in_1_5_alone() -> None:
    wrong: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["much"]}]}
    cluster = [node("a"), pod("web", affinity=preferring((1, wrong)))]
    written = policy([], ["NodeAffinityPriority"])
    assert decide(cluster, "1.13", written)["outcome"] == "Scheduled"
    assert decide(cluster, "1.5", written)["outcome"] == "Error"


def test_weights_make_the_total() -> None:
    written = policy([], [{"name": "EqualPriority", "weight": 7}, {"name": "LeastRequestedPriority", "weight": 2}])
    cluster = [node("a", allocatable=TEN), node("b", allocatable=TEN), pod("x", on="b", spec=asks("5", "5Gi"))]
    decision = decide([*cluster, pod("web", spec=asks("1", "1Gi"))], config=written)
    assert {name: text["total"] for name, text in decision["score"]["nodes"].items()} == {"a": 25, "b": 15}
    assert decision["bestNodes"] == ["a"]


@pytest.mark.parametrize(("version", "notes"), [("1.13", ["single-feasible-node"]), ("1.5", []), ("1.36", None)])
def test_what_is_said_about_the_choice(version: str, notes: list[str] | None) -> None:
    config = policy([], ["EqualPriority"]) if notes is not None else None
    if notes is not None:
        assert [note["id"] for note in decide([node("a"), pod("web")], version, config)["notes"]] == notes
    (tie,) = [
        note for note in decide([node("a"), node("b"), pod("web")], version, config)["notes"] if note["id"] == "tie"
    ]
    assert tie["text"].endswith(
        "kube-scheduler alternates between them" if notes is not None else "kube-scheduler selects one at random"
    )

"""Each priority in both versions: scores of nodes from 0 to 10."""

from __future__ import annotations

import json

import pytest

from tests.builders import Manifest, node, pod
from tests.legacy.clusters import decide, policy, scores

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
RELEASES = ("1.13", "1.5")


def spec_with_requests(cpu: str, memory: str) -> Manifest:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}


# --- utilization

ALLOCATABLE_10 = {"cpu": "10", "memory": "10Gi", "pods": "9"}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("priority", "request_", "score"),
    [
        ("LeastRequestedPriority", ("1", "3Gi"), (9 + 7) // 2),
        ("LeastRequestedPriority", ("15", "3Gi"), (0 + 7) // 2),
        ("MostRequestedPriority", ("1", "3Gi"), (1 + 3) // 2),
        ("MostRequestedPriority", ("4", "15Gi"), (4 + 0) // 2),
        ("BalancedResourceAllocation", ("1", "3Gi"), 8),  # 10 - |0.1 - 0.3| * 10
        ("BalancedResourceAllocation", ("10", "10Gi"), 0),  # no resources remain
        ("EqualPriority", ("1", "1Gi"), 1),
    ],
)
def test_scores_of_utilization(version: str, priority: str, request_: tuple[str, str], score: int) -> None:
    assert scores(
        [node("a", allocatable=ALLOCATABLE_10), pod("web", spec=spec_with_requests(*request_))], priority, version
    ) == {"a": score}


def test_containers_without_requests_are_not_free() -> None:
    small_node_resources = {"cpu": "200m", "memory": "400Mi", "pods": "9"}
    assert scores([node("a", allocatable=small_node_resources), pod("web")], "LeastRequestedPriority") == {"a": 5}
    objects = [node("a", allocatable=small_node_resources), pod("other", on="a"), pod("web")]
    assert scores(objects, "LeastRequestedPriority") == {"a": 0}


@pytest.mark.parametrize(
    ("shape", "score"),
    [
        (None, 9),
        ([(0, 0), (100, 10)], 1),
        ([(0, 2), (50, 6)], 2),
        ([(20, 8), (30, 2)], 8),
    ],
)
def test_the_score_of_a_shape(shape: list[tuple[int, int]] | None, score: int) -> None:
    cluster = [node("a", allocatable=ALLOCATABLE_10), pod("web", spec=spec_with_requests("1", "1Gi"))]
    if shape is None:
        assert scores(cluster, "RequestedToCapacityRatioPriority") == {"a": score}
        return
    points = [{"utilization": utilization, "score": value} for utilization, value in shape]
    argument: Manifest = {"requestedToCapacityRatioArguments": {"shape": points}}
    assert scores(cluster, "Mine", argument=argument) == {"a": score}


def test_nodes_with_capacity_for_the_limits() -> None:
    limits: Manifest = {"containers": [{"name": "main", "resources": {"limits": {"cpu": "5", "memory": "20Gi"}}}]}
    small = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    cluster = [node("a", allocatable=ALLOCATABLE_10), node("b", allocatable=small), pod("web", spec=limits)]
    config = policy([], ["ResourceLimitsPriority"])
    decision = decide(cluster, config=config, gates={"ResourceLimitsPriorityFunction": True})["score"]["nodes"]
    assert {name: text["total"] for name, text in decision.items()} == {"a": 1, "b": 0}


# --- preferences


def node_preferences(*terms: tuple[int, Manifest]) -> Manifest:
    terms_of_affinity = [{"weight": weight, "preference": preference} for weight, preference in terms]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms_of_affinity}}


HAS_DISK: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
FIELD: Manifest = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}


@pytest.mark.parametrize("version", RELEASES)
def test_preferred_node_affinity(version: str) -> None:
    zone: Manifest = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    nodes = [node("a", labels={"disk": "1", "zone": "1"}), node("b", labels={"disk": "1"}), node("c")]
    web = pod("web", affinity=node_preferences((2, HAS_DISK), (1, zone), (9, FIELD)))
    # 2/3 of 10, rounded down; matchFields do not count
    assert scores([*nodes, web], "NodeAffinityPriority", version) == {"a": 10, "b": 6, "c": 0}
    assert scores([*nodes, pod("web")], "NodeAffinityPriority", version) == {"a": 0, "b": 0, "c": 0}


def test_an_invalid_preference_is_an_error() -> None:
    invalid_preference: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["much"]}]}
    decision = decide(
        [node("a"), node("b"), pod("web", affinity=node_preferences((1, invalid_preference)))],
        config=policy([], ["NodeAffinityPriority"]),
    )
    assert decision["outcome"] == "Error"


@pytest.mark.parametrize(
    ("tolerations", "version", "score"),
    [
        ([], "1.13", {"a": 0, "b": 5, "c": 10}),
        ([], "1.5", {"a": 0, "b": 5, "c": 10}),
        ([{"operator": "Exists"}], "1.13", {"a": 10, "b": 10, "c": 10}),
        ([{"operator": "Exists"}], "1.5", {"a": 0, "b": 5, "c": 10}),  # tolerations must name the key
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "1.13", {"a": 0, "b": 5, "c": 10}),
        ([{"key": "k", "operator": "Exists"}], "1.13", {"a": 0, "b": 10, "c": 10}),
    ],
)
def test_untolerated_preferred_taints(tolerations: list[Manifest], version: str, score: dict[str, int]) -> None:
    nodes = [
        node("a", taints=["k=v:PreferNoSchedule", "l=v:PreferNoSchedule"]),
        node("b", taints=["k=v:PreferNoSchedule"]),
        node("c"),
    ]
    assert scores([*nodes, pod("web", tolerations=tolerations)], "TaintTolerationPriority", version) == score


@pytest.mark.parametrize(("presence", "score"), [(True, {"a": 10, "b": 0}), (False, {"a": 0, "b": 10})])
def test_a_label_preference_of_a_policy(presence: bool, score: dict[str, int]) -> None:
    argument: Manifest = {"labelPreference": {"label": "ssd", "presence": presence}}
    cluster = [node("a", labels={"ssd": ""}), node("b"), pod("web")]
    assert scores(cluster, "Mine", argument=argument) == score


@pytest.mark.parametrize(("kind", "score"), [("ReplicaSet", 0), ("Job", 10)])
def test_the_annotation_prefer_avoid_pods(kind: str, score: int) -> None:
    avoid_annotation = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": kind, "uid": "u"}}}]}
    avoiding_node, invalid_node = node("a"), node("b")
    annotation = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    avoiding_node["metadata"] = {"name": "a", "annotations": {annotation: json.dumps(avoid_annotation)}}
    invalid_node["metadata"] = {"name": "b", "annotations": {annotation: "{"}}
    owner = {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    cluster = [avoiding_node, invalid_node, pod("web", metadata={"ownerReferences": [owner]})]
    assert scores(cluster, "NodePreferAvoidPodsPriority") == {"a": score, "b": 10}


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
    is_counted = version == "1.13" or owner["kind"] != "StatefulSet"
    score = {"a": 0, "b": 7, "c": 10} if is_counted else {"a": 10, "b": 10, "c": 10}
    assert scores([*BARE, owner, *peers(a=4, b=1), WEB], "SelectorSpreadPriority", version) == score
    is_service = owner["kind"] == "Service"
    score = {"a": 0, "b": 7, "c": 10} if is_service else {"a": 10, "b": 10, "c": 10}
    assert scores([*BARE, owner, *peers(a=4, b=1), WEB], "ServiceSpreadingPriority", version) == score


def test_terminating_pods_do_not_count() -> None:
    terminating = pod("going", on="a", labels=LABELS, metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})
    assert scores([*BARE, service("s", LABELS), terminating, *peers(b=1), WEB], "SelectorSpreadPriority")["a"] == 10


ZONED = [
    node("a", labels={BETA_ZONE: "1"}),
    node("b", labels={BETA_ZONE: "1"}),
    node("c", labels={BETA_ZONE: "2"}),
    node("d"),
]


@pytest.mark.parametrize("version", RELEASES)
def test_a_zone_has_twice_the_weight_of_a_node(version: str) -> None:
    result = scores([*ZONED, service("s", LABELS), *peers(a=2), WEB], "SelectorSpreadPriority", version)
    # b: a third of 10 for the node, 0 for the zone
    assert result == {"a": 0, "b": 3, "c": 10, "d": 10}


def test_1_5_divides_by_zero_in_zones_without_pods() -> None:
    cluster = [*ZONED, service("s", LABELS), WEB]
    assert scores(cluster, "SelectorSpreadPriority") == {"a": 10, "b": 10, "c": 10, "d": 10}
    smallest = -(2**63)
    assert scores(cluster, "SelectorSpreadPriority", "1.5") == {"a": smallest, "b": smallest, "c": smallest, "d": 10}


@pytest.mark.parametrize("version", RELEASES)
def test_service_anti_affinity_of_a_policy(version: str) -> None:
    argument: Manifest = {"serviceAntiAffinity": {"label": BETA_ZONE}}
    cluster = [*ZONED, service("s", LABELS), *peers(a=2, b=1, c=1), WEB]
    assert scores(cluster, "Mine", version, argument) == {"a": 2, "b": 2, "c": 7, "d": 0}


def test_1_5_counts_pods_on_nodes_without_the_label() -> None:
    argument: Manifest = {"serviceAntiAffinity": {"label": BETA_ZONE}}
    cluster = [*ZONED, service("s", LABELS), *peers(a=1, d=1), WEB]
    # the pod on d has no zone but still counts
    assert scores(cluster, "Mine", "1.5", argument) == {"a": 5, "b": 5, "c": 10, "d": 0}


# --- pod affinity


def pod_preference(app: str, weight: int, key: str = HOST, kind: str = "podAffinity") -> Manifest:
    affinity_term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": affinity_term}]
        }
    }


def required_affinity(app: str) -> Manifest:
    affinity_term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term]}}


HOSTS = [node(name, labels={HOST: name}) for name in "abc"]


@pytest.mark.parametrize("version", RELEASES)
def test_preferred_pod_affinity(version: str) -> None:
    cluster = [*HOSTS, pod("x", on="a", labels={"app": "x"}), pod("y", on="b", labels={"app": "y"})]
    affinity, anti_affinity = pod_preference("x", 2), pod_preference("y", 2, kind="podAntiAffinity")
    target = pod("web", affinity=affinity | anti_affinity)
    assert scores([*cluster, target], "InterPodAffinityPriority", version) == {"a": 10, "b": 0, "c": 5}


def test_normalization_starts_at_zero() -> None:
    pods_on_all_nodes = [pod(f"x{name}", on=name, labels={"app": "x"}) for name in "abc"]
    web = pod("web", affinity=pod_preference("x", 5))
    assert scores([*HOSTS, *pods_on_all_nodes, web], "InterPodAffinityPriority") == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize(
    ("version", "weight", "score"),
    [
        ("1.13", 0, {"a": 3, "b": 10, "c": 0}),
        ("1.13", 6, {"a": 10, "b": 5, "c": 0}),
        ("1.5", 6, {"a": 3, "b": 10, "c": 0}),
    ],
)
def test_the_weight_of_required_affinity_of_running_pods(version: str, weight: int, score: dict[str, int]) -> None:
    """1.5 reads the weight only from the command line, where the default is 1."""
    required_pod = pod("bound", on="a", affinity=required_affinity("web"))
    preferring_pod = pod("drawn", on="b", affinity=pod_preference("web", 3))
    cluster = [*HOSTS, required_pod, preferring_pod, WEB]
    result = scores(cluster, "InterPodAffinityPriority", version, hardPodAffinitySymmetricWeight=weight)
    assert result == score


# --- images

MIB = 1024 * 1024


def with_images(name: str, **sizes: int) -> Manifest:
    manifest = node(name)
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}
    images = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in sizes.items()]
    manifest["status"] = {**status, "images": images}
    return manifest


def spec_with_images(*images: str) -> Manifest:
    return {"containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]}


@pytest.mark.parametrize(
    ("images", "version", "score"),
    [
        (("big",), "1.13", {"a": 4, "b": 0}),  # half of the nodes have the image, so half of its size counts
        (("big:latest",), "1.5", {"a": 10, "b": 0}),
        (("big",), "1.5", {"a": 0, "b": 0}),  # the name is compared as written
        (("small",), "1.13", {"a": 0, "b": 0}),
        (("mid:latest",), "1.5", {"a": 3, "b": 1}),  # each node reports its own size
        (("big", "big"), "1.13", {"a": 10, "b": 0}),
    ],
)
def test_image_locality(images: tuple[str, ...], version: str, score: dict[str, int]) -> None:
    nodes = [with_images("a", big=1000, small=30, mid=250), with_images("b", mid=30)]
    assert scores([*nodes, pod("web", spec=spec_with_images(*images))], "ImageLocalityPriority", version) == score


# --- the choice


def test_only_1_5_scores_a_single_node() -> None:
    invalid_preference: Manifest = {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["much"]}]}
    cluster = [node("a"), pod("web", affinity=node_preferences((1, invalid_preference)))]
    config = policy([], ["NodeAffinityPriority"])
    assert decide(cluster, "1.13", config)["outcome"] == "Scheduled"
    assert decide(cluster, "1.5", config)["outcome"] == "Error"


def test_totals_are_weighted_sums() -> None:
    config = policy([], [{"name": "EqualPriority", "weight": 7}, {"name": "LeastRequestedPriority", "weight": 2}])
    cluster = [
        node("a", allocatable=ALLOCATABLE_10),
        node("b", allocatable=ALLOCATABLE_10),
        pod("x", on="b", spec=spec_with_requests("5", "5Gi")),
    ]
    decision = decide([*cluster, pod("web", spec=spec_with_requests("1", "1Gi"))], config=config)
    assert {name: text["total"] for name, text in decision["score"]["nodes"].items()} == {"a": 25, "b": 15}
    assert decision["bestNodes"] == ["a"]


@pytest.mark.parametrize(("version", "notes"), [("1.13", ["single-feasible-node"]), ("1.5", []), ("1.36", None)])
def test_notes_about_a_tie(version: str, notes: list[str] | None) -> None:
    config = policy([], ["EqualPriority"]) if notes is not None else None
    if notes is not None:
        assert [note["id"] for note in decide([node("a"), pod("web")], version, config)["notes"]] == notes
    (tie,) = [
        note for note in decide([node("a"), node("b"), pod("web")], version, config)["notes"] if note["id"] == "tie"
    ]
    assert tie["text"].endswith(
        "kube-scheduler alternates between them" if notes is not None else "kube-scheduler selects one at random"
    )

"""Kinds that a dump lacks: a fit is undecided, and a rejection is decided."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kschedx import explain as explain_pod
from kschedx.errors import NotAdmittedError, UndecidableError
from kschedx.framework.cycle import Outcome, Stake
from kschedx.kube.kubectl import listed_kinds
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.device_builders import claim as device_claim
from tests.device_builders import claiming, device_class, resource_slice
from tests.device_builders import device as made
from tests.storage_builders import claim, storage_class, using, volume

NODES = [node("n1"), node("n2")]
CLASS = storage_class("fast", provisioner="x.io/disks")
IMMEDIATE = storage_class("local", waits=False)
ON_EACH = [
    each
    for number in (1, 2)
    for each in (
        claim(f"its-{number}", volume=f"disk-{number}"),
        volume(f"disk-{number}"),
        using(f"it-{number}", f"its-{number}", on=f"n{number}"),
    )
]
"""Nodes with a pod and its volume, whose volume limit is unknown."""


def selecting(side: str) -> Manifest:
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    return pod("me", spec={"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})


CASES: list[tuple[str, list[str], Manifest, list[Manifest]]] = [
    ("PersistentVolumeClaim", ["data"], using("me", "data"), []),
    ("PersistentVolume", ["disk"], using("me", "data"), [claim("data", volume="disk")]),
    ("PersistentVolume", [], using("me", "data"), [claim("data", storage_class="local"), IMMEDIATE]),
    ("StorageClass", ["fast"], using("me", "data"), [claim("data", storage_class="fast")]),
    ("CSINode", [], using("me", "data"), [claim("data", volume="disk"), volume("disk"), *ON_EACH]),
    ("ResourceClaim", ["gpu"], claiming("gpu"), [device_class(), resource_slice("n1", made("gpu-0"))]),
    ("DeviceClass", ["gpu"], claiming("gpu"), [device_claim("gpu"), resource_slice("n1", made("gpu-0"))]),
    ("ResourceSlice", [], claiming("gpu"), [device_claim("gpu"), device_class()]),
    ("PodGroup", ["trainers"], pod("me", spec={"schedulingGroup": {"podGroupName": "trainers"}}), []),
    ("Namespace", [], selecting("podAffinity"), []),
    ("Namespace", [], selecting("podAntiAffinity"), []),
]


def raw_nodes() -> list[Manifest]:
    """Return nodes as an API server returns them."""
    nodes = [node("n1"), node("n2")]
    at(nodes[0], "metadata")["creationTimestamp"] = "2026-01-31T12:00:00Z"
    return nodes


def dump(objects: Sequence[Manifest], *, is_dump: bool = True, **lacks: str) -> Snapshot:
    snapshot = Snapshot.from_objects(list(objects))
    return replace(snapshot, source=replace(snapshot.source, is_dump=is_dump, lacks=lacks))


@pytest.mark.parametrize(("kind", "names", "me", "others"), CASES)
def test_a_fit_without_a_kind_is_undecided(kind: str, names: list[str], me: Manifest, others: list[Manifest]) -> None:
    gates = {"GangScheduling": True, "GenericWorkload": True} if kind == "PodGroup" else None
    explanation = explain_pod(dump([*raw_nodes(), *others, me]), "default/me", feature_gates=gates)
    assert explanation.outcome is Outcome.UNDECIDED
    texts = {item.name: item for item in explanation.cycle.unevaluated}
    assert list(texts[kind].objects) == names
    assert explanation.to_dict()["bestNodes"]
    command, _, file = texts[kind].completed_by.partition(" -o yaml > ")
    assert command.startswith("kubectl get ")
    assert kind in listed_kinds(file)


def test_a_device_class_that_is_not_among_the_others_is_missing_without_slices() -> None:
    me = [claiming("gpu"), device_claim("gpu"), device_class("other")]
    answer = explain_pod(dump([*NODES, *me]), "default/me")
    assert (answer.outcome, answer.cycle.message) == (Outcome.UNSCHEDULABLE, answer.message)
    assert "device class" in answer.message


@pytest.mark.parametrize(("attached", "stake"), [([], None), (ON_EACH[:3], Stake.NODE), (ON_EACH, Stake.FIT)])
def test_the_first_volume_of_a_node_is_within_every_limit(attached: list[Manifest], stake: Stake | None) -> None:
    objects = [*NODES, using("me", "data"), claim("data", volume="disk"), volume("disk"), *attached]
    explanation = explain_pod(dump(objects), "default/me")
    assert [item.stake for item in explanation.cycle.unevaluated if item.name == "CSINode"] == (
        [] if stake is None else [stake]
    )
    assert (explanation.outcome is Outcome.UNDECIDED) == (stake is Stake.FIT)
    cordoned = [node("n1", unschedulable=True), *objects[2:]]
    (fix, *_) = (item for item in explain_pod(dump(cordoned), "default/me").fixes if "uncordon" in item.title)
    assert fix.certainty == ("partial" if attached else "verified")


@pytest.mark.parametrize(("kind", "names", "me", "others"), CASES[:1] + CASES[5:7])
def test_a_rejection_by_other_plugins_is_decided(
    kind: str, names: list[str], me: Manifest, others: list[Manifest]
) -> None:
    tainted = [node("n1", taints=["team=a:NoSchedule"])]
    explanation = explain_pod(dump([*tainted, *others, me]), "default/me")
    assert explanation.outcome is Outcome.UNSCHEDULABLE
    assert {item.name for item in explanation.cycle.unevaluated} >= {kind}
    assert "untolerated taint" in explanation.message


def test_namespaces_with_pods_exist() -> None:
    others = pod("cache", namespace="prod", labels={"app": "web"}, on="n1")
    explanation = explain_pod(dump([*NODES, selecting("podAffinity"), others], is_dump=False), "default/me")
    assert explanation.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("kind", "names", "me", "others"), CASES[:1] + CASES[5:7])
def test_input_that_is_no_dump_is_complete(kind: str, names: list[str], me: Manifest, others: list[Manifest]) -> None:
    explanation = explain_pod(dump([*NODES, *others, me], is_dump=False), "default/me")
    assert explanation.outcome in (Outcome.UNSCHEDULABLE, Outcome.GATED)
    assert not explanation.cycle.unevaluated


def test_a_claim_is_missing_if_the_dump_has_others() -> None:
    objects = [*NODES, using("me", "data"), claim("logs")]
    assert explain_pod(dump(objects), "default/me").outcome is Outcome.UNSCHEDULABLE
    partly = explain_pod(dump(objects, PersistentVolumeClaim="claims of other namespaces"), "default/me")
    assert partly.outcome is Outcome.UNDECIDED
    (item,) = partly.cycle.unevaluated
    assert (item.lacking, item.completed_by) == ("claims of other namespaces", "kschedx snapshot -o cluster.json")


@pytest.mark.parametrize("is_dump", [True, False])
def test_a_dump_may_lack_the_class_that_could_be_the_default(*, is_dump: bool) -> None:
    reason = "pod has unbound immediate PersistentVolumeClaims. not found"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    me = using("me", "data")
    me["status"] = {"conditions": [{**condition, "message": f"0/2 nodes are available: {reason}"}]}
    stored = claim("data", storage_class=None)
    stored["metadata"] = {**at(stored, "metadata"), "creationTimestamp": "2026-06-01T08:00:00Z"}
    fixes = explain_pod(dump([*NODES, me, stored], is_dump=is_dump), "default/me").fixes
    install = "install a storage driver, with a default StorageClass that the claim then gets"
    assert fixes[0].title == (f"make a StorageClass the default, or {install}" if is_dump else install)


def test_a_lost_claim_shows_that_its_volume_is_gone() -> None:
    objects = [*NODES, using("me", "data"), claim("data", volume="disk", phase="Lost")]
    assert explain_pod(dump(objects), "default/me").outcome is Outcome.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("spec", "leaves"),
    [
        ({"priorityClassName": "gold"}, "the priority of gold"),
        ({"runtimeClassName": "kata"}, "what RuntimeClass kata adds"),
    ],
)
def test_a_manifest_that_names_a_class(spec: Manifest, leaves: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me", "namespace": "default"}}
    manifest["spec"] = {"containers": [{"name": "c", "image": "x"}], **spec}
    with pytest.raises(UndecidableError, match=f"pod default/me: {leaves}.* the dump holds no .*kubectl get"):
        explain_pod(dump(raw_nodes()), manifest)
    with pytest.raises(NotAdmittedError):  # a dump that was cut down by hand holds what matters
        explain_pod(dump(NODES), manifest)


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("objects", "is_dump", "is_refused"),
    [
        ([namespace("shop")], True, True),
        ([namespace("shop"), namespace("shpo")], True, False),
        ([namespace("shop"), pod("other", namespace="shpo")], True, False),
        ([], True, False),
        ([namespace("shop")], False, False),
    ],
)
def test_a_namespace_that_does_not_exist(objects: list[Manifest], is_dump: bool, is_refused: bool) -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me", "namespace": "shpo"}}
    manifest["spec"] = {"containers": [{"name": "c", "image": "x"}]}
    snapshot = dump([*NODES, *objects], is_dump=is_dump)
    if not is_refused:
        assert explain_pod(snapshot, manifest).outcome is Outcome.SCHEDULED
        return
    with pytest.raises(NotAdmittedError) as caught:
        explain_pod(snapshot, manifest)
    assert str(caught.value) == 'Pod shpo/me: namespaces "shpo" not found (did you mean "shop"?)'
    other = {**manifest, "metadata": {"name": "me", "namespace": "shared"}}
    with pytest.raises(NotAdmittedError) as caught:
        explain_pod(snapshot, other)
    assert str(caught.value) == 'Pod shared/me: namespaces "shared" not found', "no other namespace has a similar name"


@pytest.mark.parametrize(
    ("accounts", "refusal"),
    [
        (["default"], 'error looking up service account default/api: serviceaccount "api" not found'),
        (["default", "api"], ""),
        (["builder"], ""),  # not every account of the namespace
        ([], ""),
    ],
)
def test_a_service_account_that_does_not_exist(accounts: list[str], refusal: str) -> None:
    objects: list[Manifest] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
        for name in accounts
    ]
    spec = {"containers": [{"name": "c", "image": "x"}], "serviceAccountName": "api"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me"}, "spec": spec}
    if not refusal:
        assert explain_pod(dump([*NODES, *objects]), manifest).outcome is Outcome.SCHEDULED
        return
    with pytest.raises(NotAdmittedError, match=f'pods "me" is forbidden: {refusal}'):
        explain_pod(dump([*NODES, *objects]), manifest)


@pytest.mark.parametrize(
    ("is_dump", "taint", "is_open"), [(True, "", True), (True, "x:NoSchedule", False), (False, "", False)]
)
def test_a_node_whose_size_the_dump_lacks(is_dump: bool, taint: str, is_open: bool) -> None:
    small = node("n1", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"})
    empty = node("n2", taints=[taint] if taint else [])
    empty["status"] = {}
    snapshot = dump(
        [small, empty, pod("me", containers=[{"name": "c", "resources": {"requests": {"cpu": "2"}}}])], is_dump=is_dump
    )
    if not is_open:
        assert explain_pod(snapshot, "default/me").outcome is Outcome.UNSCHEDULABLE
        return
    with pytest.raises(UndecidableError, match=r"no status\.allocatable of n2"):
        explain_pod(snapshot, "default/me")


@pytest.mark.parametrize(
    ("spaces", "is_dump", "requests", "is_told"),
    [
        (["shop"], True, "1", True),
        (["shop", "kube-system"], True, "1", False),
        (["shop"], False, "1", False),
        (["shop"], True, "1k", False),
    ],
)
def test_a_dump_of_one_namespace(spaces: list[str], is_dump: bool, requests: str, is_told: bool) -> None:
    """What other pods request may only take room, so that a rejection does not depend on it."""
    others = [pod("other", namespace=space, on="n1") for space in spaces]
    me = pod("me", namespace="shop", containers=[{"name": "c", "resources": {"requests": {"cpu": requests}}}])
    result = explain_pod(dump([*raw_nodes(), *others, me], is_dump=is_dump), "shop/me")
    assert ("other-namespaces" in {note.id for note in result.notes}) is is_told


def _near_cache(**term: object) -> Manifest:
    rule = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname", **term}
    return pod("me", spec={"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}})


@pytest.mark.parametrize(
    ("me", "others", "unread"),
    [
        (_near_cache(namespaces=["prod"]), [], ("prod",)),
        (_near_cache(namespaceSelector={}), [], ()),
        (_near_cache(namespaces=["prod"]), [pod("dns", namespace="kube-system", on="n1")], None),
        (_near_cache(namespaces=["default", "prod"]), [pod("cache", labels={"app": "cache"}, on="n1")], None),
        (_near_cache(namespaces=["prod"]), [namespace("default")], None),
        (_near_cache(), [], None),
    ],
)
def test_pods_of_a_namespace_that_a_dump_lacks(
    me: Manifest, others: list[Manifest], unread: tuple[str, ...] | None
) -> None:
    explanation = explain_pod(dump([*NODES, me, *others]), "default/me")
    texts = {item.name: item.objects for item in explanation.cycle.unevaluated}
    assert texts == ({} if unread is None else {"Pod": unread})
    assert (explanation.outcome is Outcome.UNDECIDED) == (unread is not None)

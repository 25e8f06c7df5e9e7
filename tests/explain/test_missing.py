"""Answers that depend on a forbidden kind: each rule with and without an effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

import kschedx
from kschedx import explain as explain_pod
from kschedx.errors import UndecidableError
from kschedx.kube.kinds import KINDS
from kschedx.snapshot.snapshot import MissingCause, Snapshot
from tests.builders import Manifest, node, pod
from tests.cli.manifests import changed
from tests.device_builders import allocated, device_class
from tests.device_builders import claim as device_claim

ROOMY = [node("node-01"), node("node-02")]
FULL = [node("node-01", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"})]


def asks(cpu: str) -> list[Manifest]:
    return [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}]


def running(name: str, cpu: str, *, priority: int = 0, affinity: Manifest | None = None) -> Manifest:
    result = pod(name, on="node-01", labels={"app": name}, priority=priority, affinity=affinity, containers=asks(cpu))
    return changed(result, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")


WEB = pod("web", labels={"app": "web"}, priority=100, containers=asks("500m"))
WITH_GPU = changed(WEB, "spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}])
CLAIMING = changed(WEB, "spec.volumes", [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
INLINE = changed(WEB, "spec.volumes", [{"name": "data", "csi": {"driver": "ebs.csi.aws.com"}}])
ON_DISK = changed(WEB, "spec.volumes", [{"name": "data", "emptyDir": {}}])
OWN_CONSTRAINT = changed(
    WEB,
    "spec.topologySpreadConstraints",
    [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}],
)


def claim(volume: str) -> Manifest:
    spec = {"volumeName": volume, "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
    metadata = {"name": "data", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def keeps_away(selector: Mapping[str, object] | None) -> Manifest:
    """Return an anti-affinity to pods of `app: web`."""
    term: Manifest = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    if selector is not None:
        term["namespaceSelector"] = dict(selector)
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def owned_by(kind: str, version: str = "apps/v1") -> Manifest:
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "1", "controller": True}
    return changed(WEB, "metadata.ownerReferences", [owner])


def without(kind: str, objects: Iterable[Manifest], cause: MissingCause = MissingCause.FORBIDDEN) -> Snapshot:
    snapshot = Snapshot.from_objects(list(objects))
    return replace(snapshot, source=replace(snapshot.source, missing={kind: cause}))


LABELLED = {"matchLabels": {"team": "a"}}
PREEMPTED = [*FULL, running("a", "400m"), running("b", "400m")]

CASES: list[tuple[str, Manifest, list[Manifest], bool]] = [
    ("PersistentVolumeClaim", CLAIMING, ROOMY, True),
    ("PersistentVolumeClaim", ON_DISK, ROOMY, False),
    ("PersistentVolume", CLAIMING, [*ROOMY, claim("disk")], True),
    ("PersistentVolume", WEB, [*ROOMY, claim("disk")], False),
    ("StorageClass", CLAIMING, [*ROOMY, claim("")], True),
    ("StorageClass", CLAIMING, [*ROOMY, claim("disk")], False),
    ("CSIStorageCapacity", CLAIMING, [*ROOMY, claim("")], True),
    ("CSIStorageCapacity", CLAIMING, [*ROOMY, claim("disk")], False),
    *((kind, CLAIMING, [*ROOMY, claim("disk")], True) for kind in ("CSINode", "CSIDriver", "VolumeAttachment")),
    *((kind, ON_DISK, ROOMY, False) for kind in ("CSINode", "CSIDriver", "VolumeAttachment")),
    ("ResourceClaim", WITH_GPU, ROOMY, True),
    ("ResourceClaim", WEB, ROOMY, False),
    ("ResourceSlice", WITH_GPU, [*ROOMY, device_claim("gpu"), device_class()], True),
    ("ResourceSlice", WITH_GPU, [*ROOMY, allocated("gpu", "n1", "gpu-0")], False),
    ("ResourceSlice", WEB, [*ROOMY, device_claim("gpu"), device_class()], False),
    ("DeviceClass", WITH_GPU, ROOMY, True),
    ("DeviceTaintRule", WITH_GPU, [*ROOMY, device_claim("gpu"), device_class()], False),
    ("Namespace", changed(WEB, "spec.affinity", keeps_away(LABELLED)), ROOMY, True),
    ("Namespace", changed(WEB, "spec.affinity", keeps_away({})), ROOMY, False),
    ("Namespace", changed(WEB, "spec.affinity", keeps_away(None)), ROOMY, False),
    ("Namespace", WEB, [*ROOMY, running("db", "1", affinity=keeps_away(LABELLED))], True),
    (
        "Namespace",
        changed(WEB, "metadata.labels", {}),
        [*ROOMY, running("db", "1", affinity=keeps_away(LABELLED))],
        False,
    ),
    ("Service", WEB, ROOMY, True),
    ("Service", WEB, ROOMY[:1], False),
    ("Service", WEB, [*FULL, running("db", "900m", priority=100)], False),
    ("Service", OWN_CONSTRAINT, ROOMY, False),
    ("ReplicaSet", owned_by("ReplicaSet"), ROOMY, True),
    ("ReplicaSet", owned_by("StatefulSet"), ROOMY, False),
    ("StatefulSet", owned_by("StatefulSet"), ROOMY, True),
    ("ReplicationController", owned_by("ReplicationController", "v1"), ROOMY, True),
    ("ReplicationController", owned_by("ReplicationController", "v1"), ROOMY[:1], False),
    ("PodDisruptionBudget", changed(WEB, "spec.containers", asks("900m")), PREEMPTED, True),
    ("PodDisruptionBudget", changed(WEB, "spec.containers", asks("600m")), PREEMPTED, True),
    ("PodDisruptionBudget", changed(WEB, "spec.containers", asks("2")), PREEMPTED, False),
    ("PodDisruptionBudget", WEB, ROOMY, False),
]


@pytest.mark.parametrize(
    ("kind", "manifest", "objects", "matters"),
    CASES,
    ids=[f"{number}-{case[0]}-{case[3]}" for number, case in enumerate(CASES)],
)
def test_a_kind_is_missing_if_the_answer_depends_on_it(
    kind: str, manifest: Manifest, objects: list[Manifest], matters: bool
) -> None:
    waiting = changed(manifest, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    snapshot = without(kind, [*objects, waiting])
    if matters:
        with pytest.raises(UndecidableError) as caught:
            explain_pod(snapshot, "default/web")
        assert str(caught.value).startswith(f"pod default/web: {KINDS[kind].leaves} is not known: listing ")
    else:
        notes = {note.id: note for note in explain_pod(snapshot, "default/web").notes}
        assert notes["unread-kind"].facts == {"kinds": [kind], "cause": "forbidden"}


def test_a_kind_that_is_not_served_is_named_if_it_matters() -> None:
    waiting = changed(WEB, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    texts = {
        note.id: note for note in explain_pod(without("Service", [*ROOMY, waiting], MissingCause.ABSENT), "web").notes
    }
    assert texts["unread-kind"].text == "the API server serves no services, so there are none"
    quiet = explain_pod(without("PodGroup", [*ROOMY, waiting], MissingCause.ABSENT), "web").notes
    assert "unread-kind" not in {note.id for note in quiet}


@pytest.mark.parametrize(
    ("kind", "path", "value", "leaves"),
    [
        ("PriorityClass", "spec.priorityClassName", "gold", "the priority of gold"),
        ("PriorityClass", "metadata.labels", {}, "the default priority"),
        ("PriorityClass", "spec.priorityClassName", "system-node-critical", None),
        ("RuntimeClass", "spec.runtimeClassName", "kata", "what RuntimeClass kata adds to its pods"),
        ("RuntimeClass", "metadata.labels", {}, None),
        (
            "ResourceClaimTemplate",
            "spec.resourceClaims",
            [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
            "what a new pod's claims request",
        ),
        ("ResourceClaimTemplate", "metadata.labels", {}, None),
        ("LimitRange", "metadata.labels", {}, "default requests and limits of containers"),
        (
            "LimitRange",
            "spec.containers.0.resources",
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            None,
        ),
    ],
)
def test_admission_depends_on_kinds(kind: str, path: str, value: object, leaves: str | None) -> None:
    manifest = pod("new", namespace="kube-system", containers=asks("1"))
    snapshot = without(kind, ROOMY[:1])
    if leaves is None:
        explain_pod(snapshot, changed(manifest, path, value))
        return
    with pytest.raises(UndecidableError, match=f"pod kube-system/new: {leaves} is not known: listing "):
        explain_pod(snapshot, changed(manifest, path, value))


@pytest.mark.parametrize(("created", "outcome"), [("", "Undecided"), ("2026-01-01T00:00:00Z", "Unschedulable")])
def test_a_new_claim_may_get_a_default_class_that_a_dump_left_out(created: str, outcome: str) -> None:
    """An existing claim has no class and needs none."""
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "default", "creationTimestamp": created or None}
    claimed = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    snapshot = Snapshot.from_objects([*ROOMY, claimed])
    dump = replace(snapshot, source=replace(snapshot.source, is_dump=True))

    assert explain_pod(dump, changed(CLAIMING, "spec.priority", None)).outcome.value == outcome


@pytest.mark.parametrize(("is_dump", "outcome"), [(False, "Unschedulable"), (True, "Undecided")])
def test_a_dump_may_lack_the_volume_of_a_bound_claim(is_dump: bool, outcome: str) -> None:
    """Objects that are given to the library are the whole cluster."""
    bound = changed(changed(claim("gone"), "metadata.uid", "u"), "status", {"phase": "Bound"})
    snapshot = Snapshot.from_objects([*ROOMY, bound])
    snapshot = replace(snapshot, source=replace(snapshot.source, is_dump=is_dump))
    assert explain_pod(snapshot, changed(CLAIMING, "spec.priority", 0)).outcome.value == outcome


@pytest.mark.parametrize("is_dump", [False, True])
def test_a_dump_of_nodes_alone_says_that_pods_are_unknown(is_dump: bool) -> None:
    me = {**pod("new"), "spec": {"containers": [{"name": "main", "image": "main:1"}]}}
    snapshot = Snapshot.from_objects([node("a")])
    snapshot = replace(snapshot, source=replace(snapshot.source, is_dump=is_dump))
    texts = {note.id: note.text for note in kschedx.explain(snapshot, me).notes}
    expected = "the dump does not hold any pod: nodes may be fuller than shown (details: kschedx doctor)"
    assert texts.get("dump") == (expected if is_dump else None)


@pytest.mark.parametrize(
    ("message", "is_open"),
    [
        ("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", True),
        ("0/2 nodes are available: 2 Insufficient cpu.", True),
        ('0/2 nodes are available: persistentvolumeclaim "data" is being deleted. not found', True),
        ('running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded', True),
        ('0/2 nodes are available: persistentvolumeclaim "data" not found. not found', False),
    ],
)
def test_an_event_shows_that_a_claim_was_left_out(message: str, is_open: bool) -> None:
    text = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting = changed(CLAIMING, "status", {"phase": "Pending", "conditions": [text]})
    result = explain_pod(Snapshot.from_objects([*ROOMY, waiting]), "default/web")
    assert (result.outcome == "Undecided") is is_open


NO_VOLUME = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."


@pytest.mark.parametrize(
    ("created", "message", "outcome"),
    [
        ("2026-01-31T12:00:00Z", "0/1 nodes are available: 1 Insufficient cpu.", "Undecided"),
        ("2026-01-31T12:00:00Z", NO_VOLUME, "Unschedulable"),
        (None, "", "Unschedulable"),
    ],
    ids=["raw", "reported", "cut down by hand"],
)
def test_a_class_without_provisioner_needs_volumes(created: str | None, message: str, outcome: str) -> None:
    reported = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting = changed(CLAIMING, "status", {"phase": "Pending", "conditions": [reported] if message else []})
    api = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    mode = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    nodes = [changed(ROOMY[0], "metadata.creationTimestamp", created)]
    snapshot = Snapshot.from_objects([*nodes, changed(waiting, "spec.priority", 0), claim(""), {**api, **mode}])
    result = explain_pod(replace(snapshot, source=replace(snapshot.source, is_dump=True)), "default/web")
    texts = [note.text for note in result.notes if note.id == "dump"]
    lacking = [unread.lacking for unread in result.cycle.unevaluated if unread.name == "PersistentVolume"]
    of_class = ["volumes of class fast, which provisions none"]
    assert (result.outcome.value, lacking) == (outcome, of_class if outcome == "Undecided" else [])
    assert (outcome == "Unschedulable") is (
        "the dump holds no PersistentVolumes: those that do not match are not shown" in texts
    )

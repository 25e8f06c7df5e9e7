"""Changes of claims, classes, budgets, and other objects without pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import kschedx
from kschedx.controllers.states import NotChanged
from kschedx.controllers.workloads import Owners
from kschedx.errors import InputError
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.simulation import Simulation
from kschedx.simulate.drain import DrainOutcome
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as kschedx_command
from tests.device_builders import allocated, device_class
from tests.simulate.clusters import deployment, nodes
from tests.storage_builders import claim, storage_class, using, volume

GROWS: Manifest = {**storage_class("waits"), "allowVolumeExpansion": True}
STORAGE: list[Manifest] = [
    *(node("a"), GROWS, storage_class("other"), claim("data"), claim("spare"), claim("old")),
    *(volume("disk", claim_ref="kept"), claim("kept", volume="disk"), volume("free", storage_class="other")),
    *(claim("used"), claim("classless", storage_class=None)),
    pod("db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
    pod(
        "done",
        on="a",
        status={"phase": "Succeeded"},
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "used"}}],
    ),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    *(allocated("gpu", "a", "gpu-0"), device_class()),
]


def simulated(*changes: Mapping[str, object]) -> Simulation:
    return kschedx.simulate(Snapshot.from_objects(STORAGE), changes=changes)


def test_a_volume_of_another_class_binds_the_claim() -> None:
    assert simulated().pending == ("default/db",)
    after = simulated({"set": "pv/free:spec.storageClassName=waits"})
    assert after.placed == {"default/db": "a"}
    assert after.after.storage.claims["default/data"].spec.volume_name == "free"


@pytest.mark.parametrize("change", ["pv/free:spec.claimRef=null", "pv/free:spec.claimRef.uid=null"])
def test_a_released_volume_without_its_old_claim_is_available(change: str) -> None:
    released = volume("free", claim_ref="data", phase="Released", storage_class="waits")
    claimed = {
        **released,
        "spec": {**at(released, "spec"), "claimRef": {"namespace": "default", "name": "data", "uid": "old"}},
    }
    objects = [claimed if at(item, "metadata").get("name") == "free" else item for item in STORAGE]
    snapshot = Snapshot.from_objects(objects)
    assert kschedx.simulate(snapshot).pending == ("default/db",)
    assert kschedx.simulate(snapshot, changes=[{"set": change}]).placed == {"default/db": "a"}


@pytest.mark.parametrize(
    "target",
    ["pvc/spare", "persistentvolumeclaims/spare", "default/pvc/spare", "sc/other", "storageclass.storage.k8s.io/other"],
)
def test_an_unused_object_is_removed(target: str) -> None:
    after = simulated({"delete": target}).after
    left = {*after.storage.claims, *after.storage.classes}
    gone = {"default/spare", "default/data", "default/old", "default/kept", "waits", "other"} - left
    assert gone == {"default/spare" if "spare" in target else "other"}


def test_applying_an_immutable_field_is_refused_as_the_api_server_does(tmp_path: Path) -> None:
    written = tmp_path / "claim.json"
    written.write_bytes(msgspec.json.encode(claim("data", storage_class="other")))
    simulation = simulated({"apply": str(written)})
    (state,) = (item.lifecycle for item in simulation.states)
    assert isinstance(state, NotChanged)
    assert "spec is immutable after creation except" in state.message
    assert (simulation.overall, tuple(simulation.pending)) == (Outcome.UNSCHEDULABLE, ("default/db",))
    written.write_bytes(msgspec.json.encode(claim("data", storage_class=None)))
    assert simulated({"apply": str(written)}).pending == ("default/db",)


@pytest.mark.parametrize(
    ("expands", "size", "is_refused"), [(None, "20Gi", True), (True, "20Gi", False), (None, "10Gi", False)]
)
def test_a_claim_grows_only_if_its_class_allows_it(
    tmp_path: Path, expands: bool | None, size: str, is_refused: bool
) -> None:
    written = tmp_path / "claim.json"
    written.write_bytes(msgspec.json.encode(claim("kept", size=size)))
    change = {"set": "pvc/kept:spec.resources.requests.storage=20Gi"}
    waits = {**storage_class("waits"), **({} if expands is None else {"allowVolumeExpansion": expands})}
    bound = {**claim("kept", volume="disk"), "status": {"phase": "Bound"}}
    snapshot = Snapshot.from_objects([node("a"), waits, bound, volume("disk", claim_ref="kept")])
    simulation = kschedx.simulate(snapshot, changes=[{"apply": str(written)}])
    messages = [state.lifecycle.message for state in simulation.states if isinstance(state.lifecycle, NotChanged)]
    assert [" ".join(state.split()[-4:]) for state in messages] == ["pvc must support resize"] * is_refused
    if is_refused:
        with pytest.raises(InputError, match="must support resize"):
            kschedx.simulate(snapshot, changes=[change])


def test_a_custom_resource_with_unknown_pods_is_undecided(tmp_path: Path) -> None:
    written = tmp_path / "job.json"
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}}
    written.write_bytes(msgspec.json.encode({**job, "spec": {"runtimeRef": {"name": "torch"}}}))
    open_counts = simulated({"apply": str(written)}).open_counts
    assert [*open_counts.values()] == ["its manifest does not say which pods it creates"]


def test_a_pending_pod_does_not_protect_its_claim() -> None:
    after = simulated({"delete": "pvc/data"})
    assert 'persistentvolumeclaim "data" not found' in after.messages["default/db"]


@pytest.mark.parametrize(
    "change",
    [
        "pvc/classless:spec.storageClassName=other",
        "pvc/data:spec.storageClassName=waits",
        "pvc/data:spec.volumeName=free",
        "pvc/kept:spec.resources.requests.storage=20Gi",
    ],
)
def test_an_absent_field_can_be_set(change: str) -> None:
    target, _, message = change.partition(":spec.")
    path, _, value = message.partition("=")
    spec = simulated({"set": change}).after.storage.claims[f"default/{target.partition('/')[2]}"].spec
    entries = {"storageClassName": spec.storage_class_name, "volumeName": spec.volume_name}
    assert entries.get(path, str(spec.resources.requests.get("storage"))) == value


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"delete": "pvc/dat"}, 'no PersistentVolumeClaim "dat" in namespace "default" (did you mean "data"?)'),
        ({"delete": "shop/pvc/data"}, 'no PersistentVolumeClaim "data" in namespace "shop" (there is one in namespace'),
        ({"delete": "sc/wait"}, 'no StorageClass "wait" (did you mean "waits"?)'),
        ({"delete": "pvc/used"}, "stays as long as it is used: by pod default/done"),
        ({"delete": "pv/disk"}, 'PersistentVolume "disk" stays as long as it is used: by claim default/kept'),
        ({"delete": "resourceclaim/gpu"}, "stays as long as it is used: by pods/somebody"),
        ({"delete": "pod/dc"}, 'no pod "dc" in namespace "default"'),
        ({"delete": "thing/x"}, '"thing/x" is not KIND/NAME'),
        ({"set": "sc/waits:volumeBindingMode=Immediate"}, "volumeBindingMode of a StorageClass cannot be changed"),
        ({"set": "pvc/data:spec.storageClassName=other"}, "spec.storageClassName of a PersistentVolumeClaim cannot be"),
        (
            {"set": 'pvc/data:spec={"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}'},
            "cannot",
        ),
        ({"set": "pvc/data:spec.resources.requests.storage=1Gi"}, "spec.resources of a PersistentVolumeClaim cannot"),
        ({"set": "sc/waits:reclaimPolice=x"}, 'reclaimPolice: unknown field (did you mean "reclaimPolicy"?)'),
        ({"set": "pv/free:metadata.name=other"}, "metadata.name and metadata.namespace cannot be changed"),
        ({"set": "pv/free:spec.accessModes=x"}, "spec.accessModes: expected a list"),
    ],
)
def test_an_impossible_change_is_an_error(change: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        simulated(change)
    assert expected in str(raised.value)


def test_an_object_deleted_by_an_earlier_change_is_named_as_such() -> None:
    with pytest.raises(InputError, match="an earlier change has deleted it"):
        simulated({"delete": "pod/db"}, {"delete": "pod/db"})


@pytest.mark.parametrize(("users", "is_known"), [(("kept",), True), (("kept", "away"), False)])
def test_a_deleted_object_is_not_missing_from_the_dump(tmp_path: Path, users: Sequence[str], is_known: bool) -> None:
    """A running pod whose claim is not in the dump shows that the dump lacks claims."""
    running = [using(f"user-{name}", name, on="a", status={"phase": "Running"}) for name in users]
    kept = [claim("kept", volume="disk"), volume("disk", claim_ref="kept")]
    snapshot = Snapshot.from_objects([node("a"), storage_class("waits"), *kept, claim("data"), *running])
    snapshot = replace(snapshot, source=replace(snapshot.source, is_dump=True))
    written, main = tmp_path / "new.json", [{"name": "main", "image": "app"}]
    written.write_bytes(
        msgspec.json.encode({"kind": "List", "items": [claim("new"), using("uses", "new", containers=main)]})
    )
    simulation = kschedx.simulate(snapshot, changes=[{"delete": "sc/waits"}, {"apply": str(written)}])
    assert (*simulation.pending, *simulation.undecided) == ("default/uses",)
    written.write_bytes(msgspec.json.encode(using("uses", "data", containers=main)))
    simulation = kschedx.simulate(snapshot, changes=[{"delete": "pvc/data"}, {"apply": str(written)}])
    assert bool(simulation.undecided) != is_known


def test_a_namespace_is_removed_with_its_objects() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    snapshot = Snapshot.from_objects(
        [*nodes(), space, budget(minAvailable=1), *deployment("web", "1", ["node-1", None])]
    )
    after = kschedx.simulate(snapshot, changes=[{"delete": "ns/shop"}]).after
    assert (len(after.pods), [*after.workloads], [*after.namespaces]) == (0, [], [])
    assert not after.disruption_budgets


@pytest.mark.parametrize("deleted", ["pvc/old", "ns/default"])
@pytest.mark.parametrize(("policy", "left"), [("Delete", {}), ("Retain", {"disk": "Released"})])
def test_the_volume_of_a_deleted_claim_follows_its_reclaim_policy(
    deleted: str, policy: str, left: dict[str, str]
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    disk = volume("disk", claim_ref="old", phase="Bound", persistentVolumeReclaimPolicy=policy)
    snapshot = Snapshot.from_objects([node("a"), space, GROWS, disk, claim("old", volume="disk")])
    changes = [{"delete": deleted}, {"set": "sc/waits:allowVolumeExpansion=false"}]
    storage = kschedx.simulate(snapshot, changes=changes).after.storage
    assert not storage.claims
    assert {name: item.status.phase for name, item in storage.volumes.items()} == left


def budget(**spec: object) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2},
    }


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({"set": "pdb/web:spec.minAvailable=2"}, 2),
        ({"set": "pdb/web:spec.minAvailable=1"}, 0),
        ({"set": 'pdb/web:spec.minAvailable="50%"'}, 0),
        ({"delete": "pdb/web"}, 0),
        ({"apply": [budget(maxUnavailable=1) | {"status": {}}]}, 0),
        ({"apply": [budget(minAvailable=2) | {"metadata": {"name": "more", "namespace": "shop"}}]}, 2),
    ],
)
def test_a_drain_uses_the_changed_budgets(change: dict[str, object], stays: int) -> None:
    web = deployment("web", "1", ["node-1", "node-1"])
    snapshot = Snapshot.from_objects([*nodes(), *web, budget(minAvailable=2)])
    simulation = kschedx.simulate(snapshot, changes=[change, {"drain": "node-1"}], namespace="shop")
    (item,) = simulation.drained
    assert len(item.of(DrainOutcome.BUDGET, DrainOutcome.BUDGETS)) == stays


CONTROLLED = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "batch", "uid": "batch", "controller": True}


@pytest.mark.parametrize(
    ("owners", "has_deployment", "kind"),
    [
        ([], True, "Deployment"),
        ([], False, "ReplicaSet"),
        ([CONTROLLED], True, "ReplicaSet"),
        ([CONTROLLED], False, "ReplicaSet"),
    ],
    ids=["adopted", "orphan", "another controller", "another controller alone"],
)
def test_pods_of_a_replica_set_belong_to_its_controller(
    owners: list[Manifest], has_deployment: bool, kind: str, tmp_path: Path
) -> None:
    """A name with the hash of a template does not show that a ReplicaSet has a Deployment."""
    objects = [*nodes(("1", "1")), *deployment("batch", "2", [None, None])]
    for item in objects:
        if item["kind"] == "ReplicaSet":
            at(item, "metadata")["ownerReferences"] = owners
    kept = [item for item in objects if has_deployment or item["kind"] != "Deployment"]
    snapshot = Snapshot.from_objects(kept)
    assert Owners(snapshot).of(snapshot.pods, 0).kind == kind
    (tmp_path / "pods.json").write_bytes(msgspec.json.encode({"kind": "List", "items": kept[-2:]}))
    (tmp_path / "cluster.json").write_bytes(msgspec.json.encode({"kind": "List", "items": kept}))
    result = kschedx_command("why", "-f", tmp_path / "pods.json", "-s", tmp_path / "cluster.json", "-o", "json")
    assert (result.code, result.err) == (1, "")

"""Claims and volumes that change in place, and are restored."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kschedx.kube.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kschedx.snapshot.storage import MovingStorage, Storage, StorageChange
from tests.storage_builders import claim, volume

CLAIM = msgspec.convert(claim("data", storage_class="local"), PersistentVolumeClaim)
VOLUMES = msgspec.convert(
    [volume(name, storage_class="local") for name in ("c", "a", "b")]
    + [volume("other", storage_class="else"), volume("named", storage_class="local", claim_ref="data", uid="")],
    list[PersistentVolume],
)


def names(storage: Storage) -> list[str]:
    return [item.name for item in storage.candidates.of(CLAIM)]


def test_candidates_are_volumes_of_the_class_without_a_claim_or_with_this_one() -> None:
    assert names(Storage(volumes={item.name: item for item in VOLUMES})) == ["named", "c", "a", "b"]


def test_an_undone_change_restores_the_order() -> None:
    volumes = {item.name: item for item in VOLUMES}
    storage = MovingStorage.moving(Storage(volumes=volumes, claims={CLAIM.key: CLAIM}))
    version, elsewhere = storage.candidates.version("local"), storage.candidates.version("else")
    taken = replace(volumes["c"], spec=replace(volumes["c"].spec, claim_ref=ObjectReference(name="x", namespace="y")))
    result = replace(taken, metadata=replace(taken.metadata, name="made"))
    other = replace(CLAIM, metadata=replace(CLAIM.metadata, name="other"))
    change = StorageChange(claims={CLAIM.key: None, other.key: other}, volumes={"c": taken, "made": result})
    undo = storage.put(change)
    assert names(storage) == ["named", "a", "b"]
    assert [*storage.claims] == [other.key]
    assert "made" in storage.volumes
    assert storage.candidates.version("local") != version
    assert storage.candidates.version("else") == elsewhere
    assert storage.changed == [CLAIM.key, other.key]
    storage.put(undo)
    assert names(storage) == ["named", "c", "a", "b"]
    assert storage.frozen() == Storage(volumes=volumes, claims={CLAIM.key: CLAIM})
    assert [*storage.volumes] == [*volumes]


def test_a_class_without_free_volumes_is_unchanged() -> None:
    storage = MovingStorage.moving(Storage())
    storage.put(StorageChange(volumes={"named": VOLUMES[-1]}))
    assert storage.candidates.version("local") == 0

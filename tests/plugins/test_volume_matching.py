"""Volumes matched on all nodes at once equal those matched on each node alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kschedx.kube.selectors import compile_node_selector
from kschedx.kube.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim, is_bound_to
from kschedx.plugins.volume_binding.matching import VolumeSearch, find_matches
from kschedx.snapshot.columns import each_cluster_row
from kschedx.snapshot.nodes import NodeLookup
from kschedx.snapshot.storage import MovingStorage, Storage, StorageChange
from tests.builders import Manifest, framework, node
from tests.storage_builders import HOSTNAME, ZONE, claim, in_term, volume

NODES = [node(f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: "abc"[i % 3]}) for i in range(6)]

reaches = st.one_of(
    st.none(),
    st.sampled_from("abc").map(lambda zone: in_term(ZONE, zone)),
    st.integers(0, 5).map(lambda i: in_term(HOSTNAME, f"n{i}")),
    st.sets(st.sampled_from("abc"), min_size=1).map(lambda zones: in_term(ZONE, *sorted(zones))),
)
sizes = st.sampled_from(["1Gi", "2Gi", "3Gi", "2147483648"])


@st.composite
def volumes(draw: st.DrawFn) -> list[Manifest]:
    return [
        volume(
            f"pv{i}",
            size=draw(sizes),
            node_affinity=draw(reaches),
            claim_ref=draw(st.sampled_from(["", "", "", "c0", "c1", "other"])),
            phase=draw(st.sampled_from(["Available", "Available", "Released"])),
            modes=draw(st.sampled_from([("ReadWriteOnce",), ("ReadOnlyMany",)])),
        )
        for i in range(draw(st.integers(0, 8)))
    ]


def match_on_node(
    claims: Sequence[PersistentVolumeClaim], volumes: Sequence[PersistentVolume], labels: dict[str, str]
) -> list[tuple[str, str | None]]:
    """Return the volume of each claim on one node, straight from the rule."""
    used: set[str] = set()
    result: list[tuple[str, str | None]] = []
    for item in sorted(claims, key=lambda claim: claim.size):
        best: PersistentVolume | None = None
        for candidate in volumes:
            is_mine = is_bound_to(candidate, item)
            is_others = candidate.spec.claim_ref is not None and not is_mine
            if candidate.name in used or is_others or candidate.size < item.size:
                continue
            required = candidate.required_node_affinity
            in_reach = required is None or compile_node_selector(required).matches(labels, "")
            if is_mine:
                best = candidate if in_reach else None
                break
            usable = candidate.status.phase == "Available" and {*item.spec.access_modes} <= {
                *candidate.spec.access_modes
            }
            if in_reach and usable and (best is None or candidate.size < best.size):
                best = candidate
        if best is not None:
            used.add(best.name)
        result.append((item.key, best.name if best else None))
    return result


@given(volumes(), st.lists(sizes, min_size=1, max_size=3))
def test_matches_equal_those_of_each_node(manifests: list[Manifest], claim_sizes: list[str]) -> None:
    claims = msgspec.convert(
        [claim(f"c{i}", size=size) for i, size in enumerate(claim_sizes)], list[PersistentVolumeClaim]
    )
    all_volumes = msgspec.convert(manifests, list[PersistentVolume])
    nodes = framework(NODES).nodes
    storage = Storage(volumes={item.name: item for item in all_volumes})
    searches = [VolumeSearch(item, storage, attributes_classes=True) for item in claims]
    matches = find_matches(searches, NodeLookup(nodes), len(nodes))
    for row in each_cluster_row(nodes.rows):
        matched = []
        for number, search in enumerate(matches.searches):
            result = matches.chosen_volume(number, row)
            matched.append((search.claim.key, result.name if result else None))
            if result is None:
                # every volume of the class is excluded for a cause
                assert sum(item.volumes for item in search.lost_counts(matches.earlier_volumes(number, row))) == len(
                    all_volumes
                )
        assert matched == match_on_node(claims, all_volumes, nodes.cluster.nodes[row].metadata.labels)


@given(volumes(), st.lists(sizes, min_size=1, max_size=3), st.data())
def test_matches_follow_changes_of_the_storage(
    manifests: list[Manifest], claim_sizes: list[str], data: st.DataObject
) -> None:
    claims = msgspec.convert(
        [claim(f"c{i}", size=size) for i, size in enumerate(claim_sizes)], list[PersistentVolumeClaim]
    )
    all_volumes = msgspec.convert(manifests, list[PersistentVolume])
    nodes = framework(NODES).nodes
    lookup = NodeLookup(nodes)
    storage = MovingStorage.moving(Storage(volumes={item.name: item for item in all_volumes}))
    undo: list[StorageChange] = []
    for _ in range(8):
        moved_searches = [VolumeSearch(item, storage, attributes_classes=True) for item in claims]
        fresh_searches = [VolumeSearch(item, storage.frozen(), attributes_classes=True) for item in claims]
        result, expected = (find_matches(searches, lookup, len(nodes)) for searches in (moved_searches, fresh_searches))
        for row in each_cluster_row(nodes.rows):
            for number in range(len(claims)):
                assert result.chosen_volume(number, row) == expected.chosen_volume(number, row)
                earlier = result.earlier_volumes(number, row)
                assert result.searches[number].lost_counts(earlier) == expected.searches[number].lost_counts(earlier)
                assert result.searches[number].nearest(earlier) == expected.searches[number].nearest(earlier)
        match data.draw(st.sampled_from(["take", "take", "give back", "free", "come"])):
            case "give back" if undo:
                storage.put(undo.pop())
            case "come":
                new_volume = msgspec.convert(
                    volume("new", size=data.draw(sizes), node_affinity=data.draw(reaches)), PersistentVolume
                )
                undo.append(storage.put(StorageChange(volumes={new_volume.name: new_volume})))
            case change if storage.volumes:
                item = storage.volumes[data.draw(st.sampled_from(sorted(storage.volumes)))]
                holder = ObjectReference(namespace="default", name="c0") if change == "take" else None
                changed_volume = replace(item, spec=replace(item.spec, claim_ref=holder))
                undo.append(storage.put(StorageChange(volumes={item.name: changed_volume})))

"""Volumes of new claims that a driver provisions before their pod is scheduled, and the places that it may choose."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from kschedx.framework.cycle import Stake, Unevaluated, UnevaluatedKind
from kschedx.kube.storage import PersistentVolumeClaim, Segment, is_csi_name, segments_of
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot


def claims_in_one_of_several_places(snapshot: Snapshot, pod: Pod) -> tuple[PersistentVolumeClaim, ...]:
    """Return the pod's new claims whose volumes a driver provisions first, in a place that it chooses."""
    return tuple(claim for claim in snapshot.storage.claims_of(pod) if len(_places(snapshot, claim)) > 1)


def _places(snapshot: Snapshot, claim: PersistentVolumeClaim) -> tuple[Segment, ...]:
    """Return the places that a driver may choose for the volume of a new claim; empty if they are unknown. A volume
    that is yet to be provisioned has the uid of its claim."""
    volume = snapshot.storage.volumes.get(claim.spec.volume_name) if claim.is_new else None
    affinity = None if volume is None or volume.metadata.uid != claim.metadata.uid else volume.spec.node_affinity
    return () if affinity is None else segments_of(affinity)


def open_places(
    snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim], names: Collection[str]
) -> Iterator[Unevaluated]:
    """Yield what the volumes of new claims leave open for a pod that fits these nodes. A volume decides only the node
    if the pod fits in each place that the driver may choose; several volumes may get different places."""
    listing = [node.spec.drivers for node in snapshot.storage.csi_nodes.values()] if claims else []
    for claim in claims:
        of_class = snapshot.storage.classes[claim.storage_class]
        is_listed = not listing or any(driver.name == of_class.driver for driver in chain(*listing))
        places = _places(snapshot, claim) if len(claims) == 1 else ()
        without = _places_without_node(snapshot, places, names)
        is_settled = bool(places) and not without
        deciding = places if is_settled else without if names else ()
        yield Unevaluated(
            kind=UnevaluatedKind.VOLUME,
            name=claim.key,
            where=(of_class.provisioner,),
            lacking="CSINode" if is_csi_name(of_class.driver) and not is_listed else "",
            stake=Stake.NODE if is_settled else Stake.FIT,
            objects=tuple(" and ".join(f"{key.rpartition('/')[2]} {value}" for key, value in it) for it in deciding),
        )


def _places_without_node(snapshot: Snapshot, places: Sequence[Segment], names: Collection[str]) -> list[Segment]:
    """Return the topology segments that include none of these nodes."""
    cluster = snapshot.cluster
    labels = [cluster.nodes[cluster.index[name]].metadata.labels for name in names]
    reached = {
        keys: {tuple((key, its.get(key, "")) for key in keys) for its in labels}
        for keys in {tuple(key for key, _ in place) for place in places}
    }
    return [place for place in places if place not in reached[tuple(key for key, _ in place)]]

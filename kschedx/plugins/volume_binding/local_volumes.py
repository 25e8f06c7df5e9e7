"""Nodes that local volumes name: PreFilter left only these from 1.27 to 1.31.

Upstream: GetEligibleNodes in volumebinding/binder.go, GetLocalPersistentVolumeNodeNames in pkg/volume/util/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.snapshot.storage import Storage

HOSTNAME = "kubernetes.io/hostname"


def local_nodes(bound: Iterable[PersistentVolumeClaim], storage: Storage) -> frozenset[str] | None:
    """The names on which all volumes agree that name any; None where none does, or a volume is missing."""
    volumes = [storage.volumes.get(claim.spec.volume_name) for claim in bound]
    named = [names for volume in volumes if volume is not None and (names := _named(volume))]
    if not named or None in volumes:
        return None
    return frozenset.intersection(*named)


def _named(volume: PersistentVolume) -> frozenset[str]:
    """The hostnames of all terms; those of one term must agree. They are taken for names of nodes."""
    affinity = volume.required_node_affinity
    terms = affinity.node_selector_terms if affinity is not None else ()
    named: frozenset[str] = frozenset()
    for term in terms:
        hosts = [frozenset(e.values) for e in term.match_expressions if e.key == HOSTNAME and e.operator == "In"]
        if hosts:
            named |= frozenset.intersection(*hosts)
    return named

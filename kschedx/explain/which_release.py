"""The release to emulate where nobody names one: the API server's own, else that of the kubelets."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct

from kschedx.errors import ConfigError
from kschedx.explain.notes.cluster import ReleaseEmulated, Teller
from kschedx.releases import EMULATED, VERSIONS, resolve
from kschedx.snapshot.snapshot import Snapshot


class _Told(Struct, frozen=True, kw_only=True):
    """A version that the cluster tells of itself."""

    teller: Teller
    version: str

    @property
    def is_known(self) -> bool:
        try:
            resolve(self.version)
        except ConfigError:
            return False
        return True

    @property
    def emulated(self) -> str | None:
        """The release itself, else the nearest: the oldest one, or the newest; None for what is no release."""
        if self.is_known:
            return self.version
        if _minor(self.version) < _minor(VERSIONS[-1]):
            return VERSIONS[-1]
        return EMULATED[0] if _minor(self.version) > _minor(EMULATED[0]) else None


def release_to_emulate(snapshot: Snapshot, asked: str | None) -> str | None:
    """What --kube-version says, else the cluster's release or the one that is nearest to it; None for the newest."""
    if asked is not None:
        return asked
    told = _told(snapshot)
    return told.emulated if told is not None else None


def release_note(snapshot: Snapshot, asked: str | None) -> ReleaseEmulated | None:
    """A note about a release that the cluster, and nobody else, named."""
    told = _told(snapshot) if asked is None else None
    if told is None:
        return None
    found = resolve(told.emulated)
    if told.is_known and told.teller is not Teller.SERVER and found.version == VERSIONS[0]:
        return None  # what would be emulated anyway
    return ReleaseEmulated(
        teller=told.teller,
        version=told.version,
        is_known=told.is_known,
        emulated=found.title,
        is_measured=found.is_measured,
    )


def _told(snapshot: Snapshot) -> _Told | None:
    server = snapshot.source.server_version
    if server:
        return _Told(teller=Teller.SERVER, version=server)
    kubelets = Counter(node.status.node_info.kubelet_version for node in snapshot.cluster.nodes)
    releases: Counter[tuple[int, int]] = Counter()
    for version, count in kubelets.items():
        if _minor(version) != _NONE:
            releases[_minor(version)] += count
    if not releases:
        return None
    most = max(releases, key=lambda release: (releases[release], release))
    version = max(version for version in kubelets if _minor(version) == most)
    return _Told(teller=Teller.KUBELETS if len(releases) == 1 else Teller.MOST_KUBELETS, version=version)


_NONE = (0, 0)


def _minor(version: str) -> tuple[int, int]:
    """(1, 36) of `v1.36.2-gke.100`; `_NONE` for what is no version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-]|$)", version, re.ASCII)
    return (int(found[1]), int(found[2])) if found else _NONE

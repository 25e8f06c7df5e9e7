"""The version to emulate where none is given: the API server's own, else that of the kubelets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, Place
from kschedx.explain.notes import Note, note
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Unevaluated, UnevaluatedDocument, unknown_plugins
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.types import Pod
from kschedx.releases import EMULATED, VERSIONS, Release, resolve
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Ask


_SERVER = "the API server is"


class _Told(Struct, frozen=True, kw_only=True):
    """A version that the cluster reports."""

    teller: str
    """`most kubelets are`."""
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


def release_note(snapshot: Snapshot, asked: str | None) -> Note | None:
    """A note about a version that only the cluster named."""
    told = _told(snapshot) if asked is None else None
    if told is None:
        return None
    found = resolve(told.emulated)
    if told.is_known and told.teller != _SERVER and found.version == VERSIONS[0]:
        return None  # what would be emulated anyway
    text = f"{told.teller} {told.version}"
    text += "" if told.is_known else ", which kschedx does not support"
    text += f": kschedx emulates kube-scheduler {found.title}"
    text += "" if told.is_known else " (--kube-version selects another)"
    key = "server_version" if told.teller == _SERVER else "kubelet_version"
    return note("release", text, **{key: told.version})


def _told(snapshot: Snapshot) -> _Told | None:
    server = snapshot.source.server_version
    if server:
        return _Told(teller=_SERVER, version=server)
    kubelets = Counter(node.status.node_info.kubelet_version for node in snapshot.cluster.nodes)
    releases: Counter[tuple[int, int]] = Counter()
    for version, count in kubelets.items():
        if _minor(version) != _NONE:
            releases[_minor(version)] += count
    if not releases:
        return None
    most = max(releases, key=lambda release: (releases[release], release))
    version = max(version for version in kubelets if _minor(version) == most)
    return _Told(teller="the kubelets are" if len(releases) == 1 else "most kubelets are", version=version)


_NONE = (0, 0)


def _minor(version: str) -> tuple[int, int]:
    """(1, 36) of `v1.36.2-gke.100`; `_NONE` for what is no version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-]|$)", version, re.ASCII)
    return (int(found[1]), int(found[2])) if found else _NONE


# How a scheduler is set up: its release, and the profiles of its configuration. Put together once for a question.


class Setup(Struct, frozen=True, kw_only=True):
    """A scheduler, and what the API server does to a manifest before the scheduler sees it."""

    name: str = ""
    """Its name where several are compared."""
    scheduler: Scheduler
    """On `snapshot`."""
    snapshot: Snapshot | None = None
    """The cluster as it was loaded; None for an empty one."""
    forced_profile: str | None = None
    """The profile for every pod, whatever its `spec.schedulerName` says."""
    admission_plugins: tuple[str, ...] = ()
    """What the API server runs beyond its default ones."""
    notes: tuple[Note, ...] = ()
    """How the release was found out."""

    @classmethod
    def of(
        cls,
        name: str,
        config: Mapping[str, object] | None,
        release: Release,
        ask: Ask | None = None,
        *,
        without_unknown_plugins: bool = False,
    ) -> Setup:
        """To be compared with another, on any cluster. Raises `ConfigError` for what kube-scheduler would refuse."""
        scheduler = scheduler_of(config, release, ask=ask)
        return cls(name=name, scheduler=scheduler.without_unknown_plugins() if without_unknown_plugins else scheduler)

    @classmethod
    def for_cluster(
        cls,
        snapshot: Snapshot,
        *,
        config: Mapping[str, object] | None = None,
        profile: str | None = None,
        kube_version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        admission_plugins: Sequence[str] = (),
        without_unknown_plugins: bool = False,
        ask: Ask | None = None,
    ) -> Setup:
        """In the release that is named, else the cluster's. Raises `ConfigError`. `ask` asks the extenders."""
        release = resolve(release_to_emulate(snapshot, kube_version), feature_gates)
        found = release_note(snapshot, kube_version)
        scheduler = scheduler_of(config, release, snapshot, ask)
        return cls(
            scheduler=scheduler.without_unknown_plugins() if without_unknown_plugins else scheduler,
            snapshot=snapshot,
            forced_profile=profile,
            admission_plugins=tuple(admission_plugins),
            notes=() if found is None else (found,),
        )

    def configured(self, config: Mapping[str, object], snapshot: Snapshot) -> Setup:
        """The same with another configuration, without its unknown plugins. Raises `ConfigError`."""
        scheduler = scheduler_of(config, self.release, snapshot).without_unknown_plugins()
        return replace(self, scheduler=scheduler, snapshot=snapshot)

    def scheduler_on(self, snapshot: Snapshot) -> Scheduler:
        """The scheduler on a cluster as it was loaded, or as it is after that."""
        return self.scheduler if snapshot is self.snapshot else self.scheduler.on_cluster(snapshot)

    @property
    def release(self) -> Release:
        return self.scheduler.release

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return self.scheduler.config.profiles

    @property
    def unknown_plugins(self) -> tuple[Unevaluated, ...]:
        """The plugins of all profiles that kschedx does not have, each once."""
        config = self.scheduler.config
        found = (one for profile in config.profiles for one in unknown_plugins(profile, config))
        return tuple({one.name: one for one in found}.values())

    @property
    def unknown_plugin_documents(self) -> tuple[UnevaluatedDocument, ...]:
        return tuple(one.document for one in self.unknown_plugins)

    @property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(profile.scheduler_name for profile in self.profiles)

    def profile_of(self, pod: Pod) -> Profile:
        """The profile that schedules a pod. Raises `ConfigError` where there is none."""
        if self.forced_profile is not None:
            return self.scheduler.config.profile_for(self.forced_profile)
        try:
            return self.scheduler.config.profile_for(pod.spec.scheduler_name)
        except ConfigError as error:
            raise error.at(Place(object=f"Pod {pod.key}", field="spec.schedulerName")) from None

    def profile_compared(self, scheduler_name: str) -> Profile | None:
        """The profile that one side of a comparison has for a pod's `spec.schedulerName`.

        A configuration with a single profile stands for whatever the other side calls it: who compares two files wants
        to know what the pods of one would do under the other.
        """
        named = (profile for profile in self.profiles if profile.scheduler_name == scheduler_name)
        only = self.profiles[0] if len(self.profiles) == 1 else None
        return next(named, only)

"""The version to emulate by default: the API server's, else the kubelets'."""

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
from kschedx.releases.gates import specs
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Ask


_SERVER = "the API server is"


class _Told(Struct, frozen=True, kw_only=True):
    """A version that the cluster reports."""

    teller: str
    """The source: `most kubelets are`."""
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
        """The version itself, else the nearest supported one; None if it is not a version."""
        if self.is_known:
            return self.version
        if _minor(self.version) < _minor(VERSIONS[-1]):
            return VERSIONS[-1]
        return EMULATED[0] if _minor(self.version) > _minor(EMULATED[0]) else None


def release_to_emulate(snapshot: Snapshot, requested: str | None) -> str | None:
    """Return the version of --kube-version, else the cluster's or the nearest supported one; None for the newest."""
    if requested is not None:
        return requested
    release = _told(snapshot)
    return release.emulated if release is not None else None


GROUP_CONDITIONS = ("PodGroupScheduled", "PodGroupInitiallyScheduled")
"""What kube-scheduler reports about a PodGroup if the gate GenericWorkload is on."""


def _gates_that_show(snapshot: Snapshot, version: str | None) -> Mapping[str, bool]:
    """Return the feature gates that must be on, because kube-scheduler reports about PodGroups."""
    conditions = (condition for group in snapshot.pod_groups.values() for condition in group.status.conditions)
    if not any(condition.type in GROUP_CONDITIONS for condition in conditions):
        return {}
    known = specs(resolve(version).version)
    return {name: True for name in ("GenericWorkload", "GangScheduling") if name in known}


def _release_note(snapshot: Snapshot, requested: str | None) -> Note | None:
    """Return a note about a version that only the cluster reports."""
    emulated = _told(snapshot) if requested is None else None
    if emulated is None:
        return None
    release = resolve(emulated.emulated)
    if emulated.is_known and emulated.teller != _SERVER and release.version == VERSIONS[0]:
        return None  # the default version
    text = f"{emulated.teller} {emulated.version}"
    text += "" if emulated.is_known else ", which kschedx does not support"
    text += f": kschedx emulates kube-scheduler {release.title}"
    text += "" if emulated.is_known else " (--kube-version selects another)"
    key = "server_version" if emulated.teller == _SERVER else "kubelet_version"
    return note("release", text, **{key: emulated.version})


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
    """Return (1, 36) for `v1.36.2-gke.100`, and `_NONE` if it is not a version."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-]|$)", version, re.ASCII)
    return (int(match[1]), int(match[2])) if match else _NONE


# A scheduler setup: its version and the profiles of its configuration, built once for a question.


class Setup(Struct, frozen=True, kw_only=True):
    """A scheduler, and how the API server admits a manifest."""

    name: str = ""
    """Its name in comparisons."""
    scheduler: Scheduler
    snapshot: Snapshot | None = None
    """As it was loaded; None for an empty cluster."""
    forced_profile: str | None = None
    """The profile for every pod, whatever its `spec.schedulerName`."""
    admission_plugins: tuple[str, ...] = ()
    """The API server's enabled plugins besides the default ones."""
    notes: tuple[Note, ...] = ()
    """How the version was determined."""

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
        """Return a setup for comparisons on any cluster. Raises `ConfigError` for a configuration that kube-scheduler
        would refuse."""
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
        """Use the given version, else the cluster's. Raises `ConfigError`. `ask` calls the extenders."""
        version = release_to_emulate(snapshot, kube_version)
        release = resolve(version, {**_gates_that_show(snapshot, version), **(feature_gates or {})})
        version_note = _release_note(snapshot, kube_version)
        scheduler = scheduler_of(config, release, snapshot, ask)
        return cls(
            scheduler=scheduler.without_unknown_plugins() if without_unknown_plugins else scheduler,
            snapshot=snapshot,
            forced_profile=profile,
            admission_plugins=tuple(admission_plugins),
            notes=() if version_note is None else (version_note,),
        )

    def configured(self, config: Mapping[str, object], snapshot: Snapshot) -> Setup:
        """Replace the configuration, without its unknown plugins. Raises `ConfigError`."""
        scheduler = scheduler_of(config, self.release, snapshot).without_unknown_plugins()
        return replace(self, scheduler=scheduler, snapshot=snapshot)

    def scheduler_on(self, snapshot: Snapshot) -> Scheduler:
        """Return the scheduler on the loaded cluster, or on a changed one."""
        return self.scheduler if snapshot is self.snapshot else self.scheduler.on_cluster(snapshot)

    @property
    def release(self) -> Release:
        return self.scheduler.release

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return self.scheduler.config.profiles

    @property
    def unknown_plugins(self) -> tuple[Unevaluated, ...]:
        """The distinct plugins in all profiles that kschedx does not have."""
        config = self.scheduler.config
        unknown = (unknown_plugin for profile in config.profiles for unknown_plugin in unknown_plugins(profile, config))
        return tuple({unevaluated.name: unevaluated for unevaluated in unknown}.values())

    @property
    def unknown_plugin_documents(self) -> tuple[UnevaluatedDocument, ...]:
        return tuple(unknown_plugin.document for unknown_plugin in self.unknown_plugins)

    @property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(profile.scheduler_name for profile in self.profiles)

    def profile_of(self, pod: Pod) -> Profile:
        """Return the profile that schedules a pod. Raises `ConfigError` if there is none."""
        if self.forced_profile is not None:
            return self.scheduler.config.profile_for(self.forced_profile)
        try:
            return self.scheduler.config.profile_for(pod.spec.scheduler_name)
        except ConfigError as error:
            raise error.at(Place(object=f"Pod {pod.key}", field="spec.schedulerName")) from None

    def profile_compared(self, scheduler_name: str) -> Profile | None:
        """Return the profile for a pod's `spec.schedulerName` in a comparison. A configuration with a single profile is
        used for any name, to show what the pods of the other side would do."""
        named = (profile for profile in self.profiles if profile.scheduler_name == scheduler_name)
        only = self.profiles[0] if len(self.profiles) == 1 else None
        return next(named, only)

"""Profiles of further kube-schedulers, whose configurations the ConfigMaps of the cluster hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import Struct

from kschedx.errors import ConfigError, InputError
from kschedx.explain.notes import Note, note
from kschedx.kube.decoding import list_at, map_at
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.types import SCHEDULER_CONFIGURATION, ConfigMap
from kschedx.releases import Release
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.snapshot import Snapshot

_Json = Mapping[str, object]
_OPENSHIFT = "openshift-kube-scheduler/config"
"""The ConfigMap with the configuration of OpenShift's kube-scheduler."""


class FoundProfiles(Struct, frozen=True, kw_only=True):
    """A configuration with the default profile and those of other schedulers."""

    config: _Json
    config_maps: Mapping[str, str]  # schedulerName to `namespace/name`

    def notes_about(self, scheduler: str) -> tuple[Note, ...]:
        if (where := self.config_maps.get(scheduler)) is None:
            return ()
        text = f"profile {scheduler} is that of ConfigMap {where}; --config FILE replaces it"
        return (note("found-profile", text, scheduler=scheduler, config_map=where),)


def found_profiles(snapshot: Snapshot, release: Release) -> FoundProfiles | None:
    """Return the profiles that exactly one configuration of the ConfigMaps gives to their schedulerName; None without
    any. Only OpenShift's ConfigMap is that of the cluster's own kube-scheduler. A scheduler with extenders is left out,
    because they would see the pods of all profiles."""
    configs = [(config_map, config) for config_map in snapshot.of(ConfigMap) for config in _configurations(config_map)]
    found: dict[str, list[tuple[ConfigMap, _Json, _Json]]] = {}
    for config_map, config in configs:
        for profile in map(map_at, list_at(config, "profiles")):
            found.setdefault(str(profile.get("schedulerName") or DEFAULT_SCHEDULER), []).append(
                (config_map, config, profile)
            )
    single = {
        name: several[0]
        for name, every in found.items()
        for several in ([it for it in every if it[0].key == _OPENSHIFT] if name == DEFAULT_SCHEDULER else every,)
        if len(several) == 1 and not list_at(several[0][1], "extenders")
    }
    if not single:
        return None
    version = next(iter(single.values()))[1].get("apiVersion")
    single = {name: each for name, each in single.items() if each[1].get("apiVersion") == version}
    profiles = [profile for _, _, profile in single.values()]
    # one process has one queue: that of the other scheduler sorts pods without a group like the default one
    sorts = next((own for profile in profiles if (own := map_at(profile, "plugins", "queueSort"))), None)
    if DEFAULT_SCHEDULER not in single:
        plugins = {"plugins": {"queueSort": sorts}} if sorts else {}
        profiles = [{"schedulerName": DEFAULT_SCHEDULER, **plugins}, *profiles]
    config = {"apiVersion": version, "kind": SCHEDULER_CONFIGURATION, "profiles": profiles}
    with suppress(ConfigError):
        scheduler_of(config, release)
        return FoundProfiles(config=config, config_maps={name: each[0].key for name, each in single.items()})
    return None


def unread_configuration(snapshot: Snapshot) -> Note | None:
    """Return a note about the configuration of the cluster's own kube-scheduler, a file on its node."""
    file, is_known = snapshot.source.scheduler_config, any(it.key == _OPENSHIFT for it in snapshot.of(ConfigMap))
    if not file or is_known:
        return None
    runs = f"kube-scheduler runs with --config={file}"
    text = f"{runs}, which was not read: the default profile is assumed (--config FILE)"
    return note("unread-configuration", text, file=file)


def _configurations(config_map: ConfigMap) -> Iterator[_Json]:
    for text in config_map.data.values():
        if SCHEDULER_CONFIGURATION not in text:
            continue
        from kschedx.sources import yaml  # few clusters have such a ConfigMap

        with suppress(InputError):
            documents = [document.value for document in yaml.load_all(text.encode(), source="")]
            yield from (it for it in documents if isinstance(it, dict) and it.get("kind") == SCHEDULER_CONFIGURATION)

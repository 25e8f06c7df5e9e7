"""Equivalence classes of pods: pods that are equal in all that plugins read of them, so that they share columns.

Every plugin returns what it reads (`Plugin.reads`, and `Plugin.tells_apart` for pods with claims). If it is the whole
pod, some parts are left out: names and uids, the names of claims, and the labels that number the pods of a workload,
unless a selector names these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.interface import WHOLE, Plugin, PreEnqueuePlugin, Touch
from kschedx.framework.runtime import Framework
from kschedx.kube.types import Pod, PodSpec
from kschedx.snapshot.snapshot import Snapshot

NUMBERING = (
    "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "batch.kubernetes.io/job-completion-index"
)  # fmt: skip
"""Labels that distinguish the pods of one workload."""

_READING_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")
_ENCODER = msgspec.json.Encoder(order="sorted")


class EquivalenceKey(NamedTuple):
    """A key that is equal for the pods of a class."""

    likeness: tuple[int, ...]
    """What pods have in common, apart from the objects behind their claims and from the other pods that affect them."""
    apart: tuple[Hashable, ...]
    """The values by which each of `EquivalenceClasses.plugins` distinguishes such pods."""
    fit: int | None = None
    """A number that is equal for pods that fit the same nodes with the same scores, apart from `apart`: their
    priorities may differ. None for pods with claims."""


def shares_columns(spec: PodSpec) -> bool:
    """Return whether pods of this spec can share columns: nothing about them depends on their name."""
    return not (spec.mounts_storage or spec.resource_claims or spec.scheduling_group)


class _Readers(Struct):
    """The plugins of a profile that read pods and nodes, and their keys of pods without claims."""

    framework: Framework
    entering: tuple[PreEnqueuePlugin, ...]
    plugins: list[Plugin]
    fits: list[bool]
    """Whether each of `plugins` reads pods for more than PostFilter."""
    keys: dict[tuple[int, ...], EquivalenceKey]
    """By everything that is equal except names."""
    of_rows: dict[int, EquivalenceKey]
    """By row of the pod."""


class EquivalenceClasses:
    """The equivalence classes of the pods of a moving cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pods = pods = snapshot.pods
        self._rest = (pods.namespaces, pods.owners, pods.annotations)
        self._templates: dict[int, tuple[int, bool]] = {}
        self._template_codes: dict[bytes, int] = {}
        self._statuses: dict[int, int] = {}
        self._status_codes: dict[bytes, int] = {}
        self._labels: dict[int, int] = {}
        self._label_codes: dict[bytes, int] = {}
        self._left_out = frozenset(NUMBERING) - frozenset(_named(snapshot))
        self._readers: dict[str, _Readers] = {}
        self._read_codes: dict[Hashable, int] = {}

    def key(self, row: int, framework: Framework) -> EquivalenceKey:
        """Return a key that is equal for the pods of a class in the current cluster."""
        pods, readers = self._pods, self._readers_of(framework)
        known = readers.of_rows.get(row)
        if known is not None:
            return known
        template = self._template(int(pods.specs.codes[row]))
        rest = (int(column.codes[row]) for column in self._rest)
        status = self._stated(int(pods.statuses.codes[row]))
        likeness = (template[0], self._labelled(int(pods.labels.codes[row])), status, *rest)
        if template[1]:
            pod = pods[row]
            return EquivalenceKey(likeness, tuple(plugin.tells_apart(pod) for plugin in self.plugins(framework)))
        if likeness not in readers.keys:
            readers.keys[likeness] = self._read(framework, pods[row], likeness)
        class_key = readers.of_rows[row] = readers.keys[likeness]
        return class_key

    def _read(self, framework: Framework, pod: Pod, likeness: tuple[int, ...]) -> EquivalenceKey:
        """Return the key of a pod without claims; `apart` has what the plugins that every move affects read."""

        def read(plugin: Plugin) -> Hashable:
            value = plugin.reads(pod)
            return likeness if value is WHOLE else value

        readers, name = self._readers_of(framework), framework.profile.scheduler_name
        values = {plugin: read(plugin) for plugin in (*readers.plugins, *readers.entering)}
        touches = {plugin: plugin.touches(pod) for plugin in values}
        apart = [values[plugin] if touches[plugin] is Touch.CLUSTER else None for plugin in readers.plugins]
        alike = [
            values[plugin] if other is None else None for plugin, other in zip(readers.plugins, apart, strict=True)
        ]
        enters = (
            plugin.pre_enqueue(pod).is_success if touches[plugin] is Touch.NOTHING else values[plugin]
            for plugin in readers.entering
        )
        number, fit = (
            self._read_codes.setdefault((name, *read_values), len(self._read_codes))
            for read_values in (
                (*(values[plugin] for plugin in readers.entering), *alike),
                (*enters, *(value for value, fits in zip(alike, readers.fits, strict=True) if fits)),
            )
        )
        return EquivalenceKey((number,), tuple(apart), fit)

    def _template(self, code: int) -> tuple[int, bool]:
        """Return a number that is equal for specs that differ only in the names of claims, and whether the spec has
        claims or mounts storage."""
        if code not in self._templates:
            spec = self._pods.specs.values[code]
            written = _ENCODER.encode(_without_names(spec))
            number = self._template_codes.setdefault(written, len(self._template_codes))
            self._templates[code] = number, spec.mounts_storage or bool(spec.resource_claims)
        return self._templates[code]

    def _stated(self, code: int) -> int:
        """Return a number that is equal for statuses that differ only in the names of claims."""
        if code not in self._statuses:
            status = self._pods.statuses.values[code]
            written = _ENCODER.encode(replace(status, resource_claim_statuses=()))
            self._statuses[code] = self._status_codes.setdefault(written, len(self._status_codes))
        return self._statuses[code]

    def _labelled(self, code: int) -> int:
        """Return a number that is equal for labels that differ only in those that no plugin reads."""
        if code not in self._labels:
            labels = self._pods.labels.values[code]
            written = _ENCODER.encode({key: value for key, value in labels.items() if key not in self._left_out})
            self._labels[code] = self._label_codes.setdefault(written, len(self._label_codes))
        return self._labels[code]

    def plugins(self, framework: Framework) -> list[Plugin]:
        """Return the plugins that read pods and nodes."""
        return self._readers_of(framework).plugins

    def _readers_of(self, framework: Framework) -> _Readers:
        name = framework.profile.scheduler_name
        known = self._readers.get(name)
        if known is None or known.framework is not framework:
            by_point = {point: framework.plugins(point, Plugin) for point in _READING_POINTS}
            every = list(dict.fromkeys(plugin for plugins in by_point.values() for plugin in plugins))
            fitting = {plugin for point, plugins in by_point.items() if point != "postFilter" for plugin in plugins}
            entering = framework.plugins("preEnqueue", PreEnqueuePlugin)
            fits = [plugin in fitting for plugin in every]
            known = self._readers[name] = _Readers(framework, entering, every, fits, {}, {})
        return known


def _without_names(spec: PodSpec) -> PodSpec:
    volumes = tuple(
        volume
        if volume.persistent_volume_claim is None
        else replace(volume, persistent_volume_claim=replace(volume.persistent_volume_claim, claim_name=""))
        for volume in spec.volumes
    )
    claims = tuple(
        claim if claim.resource_claim_name is None else replace(claim, resource_claim_name="")
        for claim in spec.resource_claims
    )
    return replace(spec, volumes=volumes, resource_claims=claims)


def _named(snapshot: Snapshot) -> Iterator[str]:
    """Yield the labels that number pods and that a selector for pods names."""
    pods = snapshot.pods
    concerned = [spec for spec in pods.specs.values if spec.affinity is not None or spec.topology_spread_constraints]
    written = [_ENCODER.encode((spec.affinity, spec.topology_spread_constraints)) for spec in concerned]
    controllers = (snapshot.services, snapshot.replication_controllers, snapshot.replica_sets, snapshot.stateful_sets)
    written += [_ENCODER.encode([item.spec.selector for item in some]) for some in controllers]
    yield from (key for key in NUMBERING if any(key.encode() in text for text in written))

"""Kueue's Configuration and feature gates, resolved once.

Upstream: apis/config/v1beta2, pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import msgspec
from msgspec import Struct, field

from kschedx.errors import InputError
from kschedx.kube.kueue import MANAGER_CONFIG, Workload
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import exact_amounts
from kschedx.kube.types import ConfigMap, ObjectMeta
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot

PODS_NOT_READY = "waiting for all admitted workloads to be in PodsReady condition"

_GATES: Mapping[str, bool] = {
    "AdmissionFairSharing": True,
    "AdmissionGatedBy": True,
    "ConcurrentAdmission": False,
    "ElasticJobsViaWorkloadSlices": True,
    "FairSharingPreemptWithinNominal": True,
    "FairSharingPrioritizeNonBorrowing": True,
    "FlavorFungibility": True,
    "FlavorFungibilityPreserveScanProgress": True,
    "PartialAdmission": True,
    "PrioritizePreemptorWorkloads": False,
    "PriorityBoost": False,
    "PrioritySortingWithinCohort": True,
    "QuotaCheckStrategy": True,
    "ReclaimablePods": True,
    "RecomputeAssignmentUponPreemptionTargetsOverlap": False,
    "SchedulerTimestampPreemptionBuffer": False,
    "SchedulingEquivalenceHashing": True,
    "TASBalancedPlacement": False,
    "TASHandleOverlappingFlavors": True,
    "TASProfileMixed": True,
    "TASRecomputeAssignmentWithinSchedulingCycle": True,
    "TASRespectNodeAffinityPreferred": False,
    "TopologyAwareScheduling": True,
    "UnadmittedWorkloadsExplicitStatus": False,
    "UnadmittedWorkloadsObservability": False,
}
"""The supported gates with the defaults of 0.19."""


class Transformation(Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource that counts as other resources (`resources.transformations`)."""

    input: str = ""
    strategy: str = "Retain"
    outputs: ResourceList = {}
    multiply_by: str = ""

    @property
    def factors(self) -> dict[str, Fraction]:
        return {name: Fraction(nano, 10**9) for name, nano in exact_amounts(self.outputs).items()}


class _Resources(Struct, frozen=True, kw_only=True, rename="camel"):
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    quota_check_strategy: str = ""


class _FairSharingSettings(Struct, frozen=True, kw_only=True, rename="camel"):
    enable: bool | None = None  # in v1beta1, false disables it
    preemption_strategies: tuple[str, ...] = ()


class AdmissionFairSharing(Struct, frozen=True, kw_only=True, rename="camel"):
    usage_half_life_time: str = "168h"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, float] = {}


class _RequeuingStrategy(Struct, frozen=True, kw_only=True, rename="camel"):
    timestamp: str = ""


class _WaitForPodsReady(Struct, frozen=True, kw_only=True, rename="camel"):
    """The timeouts are not evaluated."""

    enable: bool | None = None  # only in v1beta1
    block_admission: bool | None = None
    requeuing_strategy: _RequeuingStrategy = _RequeuingStrategy()


class _Configuration(Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of `config.kueue.x-k8s.io` that admission reads."""

    api_version: str = ""
    fair_sharing: _FairSharingSettings | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: _Resources = _Resources()
    feature_gates: dict[str, bool] = {}
    wait_for_pods_ready: _WaitForPodsReady | None = None
    manage_jobs_without_queue_name: bool = False

    @property
    def is_old(self) -> bool:
        return self.api_version.endswith("/v1beta1")


class KueueSettings(Struct, frozen=True, kw_only=True):
    configuration: _Configuration = _Configuration()
    gates: Mapping[str, bool] = field(default_factory=lambda: dict(_GATES))

    def enabled(self, gate: str) -> bool:
        return self.gates[gate]

    @property
    def fair_sharing(self) -> _FairSharingSettings | None:
        sharing = self.configuration.fair_sharing
        if sharing is None or not (sharing.enable or (sharing.enable is None and not self.configuration.is_old)):
            return None
        return sharing

    @property
    def strategies(self) -> tuple[str, ...]:
        given = self.fair_sharing.preemption_strategies if self.fair_sharing else ()
        return given or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")

    @property
    def blocks_admission(self) -> bool:
        """Whether nothing is admitted while the pods of an admitted Workload are not ready."""
        wait = self.configuration.wait_for_pods_ready
        if wait is None:
            return False
        if self.configuration.is_old:
            return bool(wait.enable and wait.block_admission is not False)
        return bool(wait.block_admission)

    @property
    def keeps_place_of_creation(self) -> bool:
        """Whether a Workload whose pods were not ready in time is queued by its creation instead of its eviction."""
        wait = self.configuration.wait_for_pods_ready
        return wait is not None and wait.requeuing_strategy.timestamp == "Creation"

    @property
    def usage_based(self) -> AdmissionFairSharing | None:
        return self.configuration.admission_fair_sharing if self.enabled("AdmissionFairSharing") else None

    def pending_reason(self, granular: str, plain: str) -> str:
        """Return the reason of a condition: the granular one only behind its gate."""
        return granular if self.enabled("UnadmittedWorkloadsObservability") else plain

    @property
    def ignores_undeclared(self) -> bool:
        strategy = self.configuration.resources.quota_check_strategy
        return self.enabled("QuotaCheckStrategy") and strategy == "IgnoreUndeclared"


def _resolve(config: Mapping[str, object] | None) -> KueueSettings:
    """Raises `InputError` for an invalid configuration; unknown gates are ignored."""
    try:
        configuration = msgspec.convert(config or {}, _Configuration, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"Kueue configuration: {error}") from None
    known = {name: on for name, on in configuration.feature_gates.items() if name in _GATES}
    return KueueSettings(configuration=configuration, gates={**_GATES, **known})


# --- a cluster's settings


_SETTINGS = Memo[KueueSettings]()


def settings_of(snapshot: Snapshot) -> KueueSettings:
    """The settings in the cluster's ConfigMap, or the defaults; read once for a snapshot. Raises `InputError`."""
    return _SETTINGS.of(snapshot.derived, lambda: _read_settings(snapshot))


def _read_settings(snapshot: Snapshot) -> KueueSettings:
    name = MANAGER_CONFIG.rpartition("/")[2]
    maps = [config_map for config_map in snapshot.of(ConfigMap) if config_map.metadata.name == name]
    place = f"ConfigMap {maps[0].metadata.namespace}/{name}" if maps else ""
    written: object = {"kind": "ConfigMap", "data": maps[0].data} if maps else None
    return _resolve(next(_configurations(written, place), _evident_settings(snapshot)))


def _evident_settings(snapshot: Snapshot) -> Mapping[str, object] | None:
    """Return what Kueue's own messages tell of a Configuration that is not in the dump."""
    conditions = (workload.condition("QuotaReserved") for workload in snapshot.of(Workload))
    blocks = any(each is not None and each.message == PODS_NOT_READY for each in conditions)
    return {"waitForPodsReady": {"blockAdmission": True}} if blocks else None


def with_configuration(
    snapshot: Snapshot, config: Mapping[str, object] | None, feature_gates: Mapping[str, bool]
) -> Snapshot:
    """Replace the Configuration (None keeps it) and feature gates. Raises `InputError`."""
    known = settings_of(snapshot) if config is None else _resolve(config)
    gates = {**known.configuration.feature_gates, **feature_gates}
    settings = msgspec.structs.replace(known.configuration, feature_gates=gates)
    written = msgspec.json.encode({"kind": "Configuration", **msgspec.to_builtins(settings)})
    namespace, _, name = MANAGER_CONFIG.partition("/")
    settings_map = ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data={"config": written.decode()})
    others = (config_map for config_map in snapshot.of(ConfigMap) if config_map.metadata.name != name)
    return snapshot.with_records(ConfigMap, [settings_map, *others])


def configuration_in(document: object, source: str) -> Mapping[str, object]:
    """Return the Configuration in a file, or in the ConfigMap in it. Raises `InputError`."""
    configurations = list(_configurations(document, source))
    if len(configurations) != 1:
        raise InputError("expected one Kueue Configuration", source=source)
    return configurations[0]


def _configurations(document: object, source: str) -> Iterator[Mapping[str, object]]:
    from kschedx.sources import yaml

    if not isinstance(document, Mapping):
        return
    data = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, Mapping):
        for key, text in data.items():
            place = f"{source}: data[{key}]"
            for read in yaml.load_all(str(text).encode(), source=place):
                yield from _configurations(read.value, place)
    elif document.get("kind") == "Configuration":
        yield document

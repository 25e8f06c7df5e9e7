"""Kueue's Configuration and feature gates, resolved once.

Upstream: apis/config/v1beta2, pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec
from msgspec import Struct, field

from kschedx.errors import InputError
from kschedx.kube.duration import Duration
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import exact_amounts

VERSION = "0.19.2"
"""The version whose decisions were recorded and compared."""

GATES: Mapping[str, bool] = {
    "AdmissionFairSharing": True,
    "AdmissionGatedBy": True,
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
    "TASHandleOverlappingFlavors": True,
    "TASProfileMixed": True,
    "TASRecomputeAssignmentWithinSchedulingCycle": True,
    "TopologyAwareScheduling": True,
    "UnadmittedWorkloadsExplicitStatus": False,
    "UnadmittedWorkloadsObservability": False,
}
"""The gates that decide something here, with the defaults of 0.19."""


class Transformation(Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource that counts as others (`resources.transformations`)."""

    input: str = ""
    strategy: str = "Retain"
    outputs: ResourceList = {}
    multiply_by: str = ""

    @property
    def factors(self) -> dict[str, Fraction]:
        return {name: Fraction(nano, 10**9) for name, nano in exact_amounts(self.outputs).items()}


class Resources(Struct, frozen=True, kw_only=True, rename="camel"):
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    quota_check_strategy: str = ""


class FairSharing(Struct, frozen=True, kw_only=True, rename="camel"):
    enable: bool | None = None
    """Of v1beta1, where false switches it off."""
    preemption_strategies: tuple[str, ...] = ()


class AdmissionFairSharing(Struct, frozen=True, kw_only=True, rename="camel"):
    usage_half_life_time: str = "168h"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, float] = {}


class WaitForPodsReady(Struct, frozen=True, kw_only=True, rename="camel"):
    """Not evaluated, apart from what it says of the order of evicted Workloads."""

    requeuing_strategy: dict[str, object] = {}


class Configuration(Struct, frozen=True, kw_only=True, rename="camel"):
    """`config.kueue.x-k8s.io`, as far as admission reads it."""

    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources = Resources()
    feature_gates: dict[str, bool] = {}
    wait_for_pods_ready: WaitForPodsReady | None = None


class Settings(Struct, frozen=True, kw_only=True):
    configuration: Configuration = Configuration()
    gates: Mapping[str, bool] = field(default_factory=lambda: dict(GATES))

    def enabled(self, gate: str) -> bool:
        return self.gates[gate]

    @property
    def fair_sharing(self) -> FairSharing | None:
        sharing = self.configuration.fair_sharing
        return None if sharing is None or sharing.enable is False else sharing

    @property
    def strategies(self) -> tuple[str, ...]:
        given = self.fair_sharing.preemption_strategies if self.fair_sharing else ()
        return given or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")

    @property
    def usage_based(self) -> AdmissionFairSharing | None:
        return self.configuration.admission_fair_sharing if self.enabled("AdmissionFairSharing") else None

    @property
    def ignores_undeclared(self) -> bool:
        strategy = self.configuration.resources.quota_check_strategy
        return self.enabled("QuotaCheckStrategy") and strategy == "IgnoreUndeclared"


def resolve(config: Mapping[str, object] | None, feature_gates: Mapping[str, bool] | None) -> Settings:
    """Raises `InputError` for a configuration that cannot be read; unknown gates decide nothing here."""
    try:
        configuration = msgspec.convert(config or {}, Configuration, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"Kueue configuration: {error}") from None
    asked = {**configuration.feature_gates, **(feature_gates or {})}
    return Settings(
        configuration=configuration, gates={**GATES, **{name: on for name, on in asked.items() if name in GATES}}
    )


def seconds(duration: str) -> float:
    return Duration.parse(duration) / 1e9

"""KubeSchedulerConfiguration by Kubernetes version: its API versions, their fields, and the defaults and checks of
arguments.

Upstream: staging/src/k8s.io/kube-scheduler/config, pkg/scheduler/apis/config and its validation.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx.releases.dates import DatedFacts, Minor, dated, holds, since

V1 = "kubescheduler.config.k8s.io/v1"
V1BETA3 = "kubescheduler.config.k8s.io/v1beta3"
V1BETA2 = "kubescheduler.config.k8s.io/v1beta2"

_VERSIONS = ((V1, ""), (V1BETA3, "1.28"), (V1BETA2, "1.27"))
"""Each apiVersion with the last Kubernetes version that reads it, newest first."""

CONFIG_VERSIONS = tuple(version for version, _ in _VERSIONS)


def last_to_read(api_version: object) -> str:
    """Return the last Kubernetes version that reads this apiVersion. It is empty if the newest version reads it, or if
    it is unknown."""
    return dict(_VERSIONS).get(str(api_version), "")


class Field(Struct, frozen=True, kw_only=True):
    path: str
    """`[]` stands for every element of a list, and `{Plugin}` for the element of pluginConfig with that name."""
    first: str = ""
    """The first Kubernetes version with the field."""
    versions: tuple[str, ...] = (V1, V1BETA3, V1BETA2)

    def is_in(self, api_version: str, release: Minor) -> bool:
        return api_version in self.versions and holds(release, first=self.first)


FIELDS = (
    Field(path="delayCacheUntilActive", first="1.28", versions=(V1,)),
    Field(path="profiles[].percentageOfNodesToScore", versions=(V1,)),
    Field(path="profiles[].plugins.multiPoint", versions=(V1, V1BETA3)),
    Field(path="profiles[].plugins.placementGenerate", first="1.36"),
    Field(path="profiles[].plugins.placementScore", first="1.36"),
    Field(path="profiles[].pluginConfig[]{InterPodAffinity}.args.ignorePreferredTermsOfExistingPods", first="1.27"),
    Field(path="profiles[].pluginConfig[]{DynamicResources}.args.bindingTimeout", first="1.35"),
    Field(path="healthzBindAddress", versions=(V1BETA2,)),
    Field(path="metricsBindAddress", versions=(V1BETA2,)),
)


class Arguments(DatedFacts):
    """Defaults and checks of plugin arguments in one version."""

    storage_scoring_gate: str = dated({"1.26": "VolumeCapacityPriority", "1.33": "StorageCapacityScoring"})
    """The feature gate without which VolumeBindingArgs has no `shape`."""
    storage_scoring_shape: tuple[tuple[int, int], ...] = dated(
        {"1.26": ((0, 0), (100, 10)), "1.33": ((0, 10), (100, 0))}
    )
    """The default `shape`: utilization and score of each point."""
    dynamic_resources_take_arguments: bool = since("1.34")
    ratio_must_fit_strategy: bool = since("1.36")
    """Only a scoring strategy of type RequestedToCapacityRatio may have `requestedToCapacityRatio`."""
    unsorted_shape: str = dated(
        {
            "1.26": "utilization values must be sorted in increasing order",
            "1.34": "values must be sorted in increasing order",
        }
    )
    different_queue_sort: str = dated(
        {
            "1.26": "has to match for all profiles",
            "1.30": "queueSort must be the same for all profiles",
            "1.34": "must be the same for all profiles",
        }
    )


def versions_in(release: Minor) -> tuple[str, ...]:
    return tuple(version for version, last in _VERSIONS if holds(release, last=last))


def missing_fields(api_version: str, release: Minor) -> Iterator[str]:
    """Yield the paths of the fields that an apiVersion lacks in this Kubernetes version, but has in an earlier or later
    one."""
    return (field.path for field in FIELDS if not field.is_in(api_version, release))

"""The properties of one Kubernetes version, as a frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kschedx.releases.behavior import Behavior
from kschedx.releases.dates import DatedFacts, Minor, dated, holds, since, values_of
from kschedx.releases.gates import specs
from kschedx.releases.plugins import DefaultPlugin

# KubeSchedulerConfiguration by Kubernetes version: its API versions, their fields, and the defaults and checks of
# arguments.
# Upstream: staging/src/k8s.io/kube-scheduler/config, pkg/scheduler/apis/config and its validation.

V1 = "kubescheduler.config.k8s.io/v1"
_V1BETA3 = "kubescheduler.config.k8s.io/v1beta3"
V1BETA2 = "kubescheduler.config.k8s.io/v1beta2"

_VERSIONS = ((V1, ""), (_V1BETA3, "1.28"), (V1BETA2, "1.27"))
"""Each apiVersion with the last Kubernetes version that reads it, newest first."""

CONFIG_VERSIONS = tuple(version for version, _ in _VERSIONS)


def last_to_read(api_version: object) -> str:
    """Return the last Kubernetes version that reads this apiVersion. It is empty if the newest version reads it, or if
    it is unknown."""
    return dict(_VERSIONS).get(str(api_version), "")


class _Field(Struct, frozen=True, kw_only=True):
    path: str  # `[]` stands for every element of a list, and `{Plugin}` for the element of pluginConfig with that name
    first: str = ""  # the first Kubernetes version with the field
    versions: tuple[str, ...] = (V1, _V1BETA3, V1BETA2)

    def is_in(self, api_version: str, release: Minor) -> bool:
        return api_version in self.versions and holds(release, first=self.first)


_FIELDS = (
    _Field(path="delayCacheUntilActive", first="1.28", versions=(V1,)),
    _Field(path="profiles[].percentageOfNodesToScore", versions=(V1,)),
    _Field(path="profiles[].plugins.multiPoint", versions=(V1, _V1BETA3)),
    _Field(path="profiles[].plugins.placementGenerate", first="1.36"),
    _Field(path="profiles[].plugins.placementScore", first="1.36"),
    _Field(path="profiles[].pluginConfig[]{InterPodAffinity}.args.ignorePreferredTermsOfExistingPods", first="1.27"),
    _Field(path="profiles[].pluginConfig[]{DynamicResources}.args.bindingTimeout", first="1.35"),
    _Field(path="healthzBindAddress", versions=(V1BETA2,)),
    _Field(path="metricsBindAddress", versions=(V1BETA2,)),
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
    return (field.path for field in _FIELDS if not field.is_in(api_version, release))


# Texts of kube-scheduler that differ between versions. Texts that never changed are next to their plugins.


class Messages(DatedFacts):
    """The texts of one version. Names in braces are filled in with `format`."""

    node_left_out: str = dated(
        {
            "1.26": "",
            "1.30": "node is filtered out by the prefilter result",
            "1.31": "",
            "1.32": "node(s) didn't satisfy plugin(s) [{plugins}]",
        }
    )
    """The reason of a node that PreFilter plugins did not name. If it is empty, the node has no status and is not
    reported."""
    untolerated_taint: str = dated(
        {"1.26": "node(s) had untolerated taint {{{key}: {value}}}", "1.34.2": "node(s) had untolerated taint(s)"}
    )
    volume_node_affinity_conflict: str = dated(
        {
            "1.26": "node(s) had volume node affinity conflict",
            "1.33": "node(s) didn't match PersistentVolume's node affinity",
        }
    )
    read_write_once_pod_in_use: str = dated(
        {
            "1.26": "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            "1.34": "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod",
        }
    )
    unmatched_declared_features: str = dated(
        {
            "1.26": "node declared features check failed - unsatisfied requirements: {missing}",
            "1.36": "node(s) didn't match Pod's required features",
        }
    )
    hard_constraints_unreadable: str = dated(
        {
            "1.26": "obtaining pod's hard topology spread constraints: {error}",
            "1.30": "get constraints from pod: obtaining pod's hard topology spread constraints: {error}",
        }
    )
    gang_waits_on_permit: str = dated(
        {
            "1.26": "waiting for minCount pods from a gang to be waiting on permit",
            "1.36": "waiting for minCount pods from a gang to be scheduled",
        }
    )
    gang_lacks_members: str = dated(
        {
            "1.26": "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling.",
            "1.36": "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more "
            "plugins asked to wait and no plugin rejected pod",
            "1.37": "pod group is unschedulable, pod group is unschedulable, minCount ({minimum}) cannot be satisfied: "
            "{scheduled} scheduled, {remaining} remaining",
        }
    )
    """The message of a gang member that found a node while too few others did."""


def texts_of_all_releases(name: str) -> tuple[str, ...]:
    """Return all values of a text of `Messages`, oldest first."""
    return tuple(str(text) for text in values_of(Messages, name) if text)


POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
"""The extension points that a pod passes, in the framework's order, as a configuration spells them."""

PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""The extension points that only a pod group passes; a configuration may name them."""


class Release(Struct, frozen=True, kw_only=True, eq=False):
    """A Kubernetes version with its feature gates resolved. Plugins never compare versions: they call `enabled(gate)`,
    take a text from `messages`, or read a fact of `behavior`."""

    version: str  # the minor version: `1.36`
    gates: Mapping[str, bool]
    """Every gate that kube-scheduler knows in this version, and removed gates with their final values."""
    default_plugins: tuple[DefaultPlugin, ...]
    """The default profile's MultiPoint list in order, without the entries of gates that are off."""
    v1beta2_default_plugins: Mapping[str, tuple[DefaultPlugin, ...]]
    """The default profile of v1beta2, one list for each extension point; empty if the version does not read v1beta2."""
    plugin_points: Mapping[str, frozenset[str]]
    """Each in-tree plugin with the extension points that it implements, from `POINTS` and `PLACEMENT_POINTS`."""
    never_skips_filter: frozenset[str]
    """Plugins whose Filter runs for every pod, because their PreFilter cannot return Skip yet."""
    never_skips_score: frozenset[str]  # plugins that score every pod, because their PreScore cannot return Skip yet
    removed_plugins: tuple[str, ...]  # plugins of earlier versions that a v1 configuration may no longer name
    config_versions: tuple[str, ...]  # apiVersions that kube-scheduler reads, newest first
    missing_fields: Mapping[str, tuple[str, ...]]
    """Each of these apiVersions with the fields of others that it lacks here, in the form of
    `configuration.Field.path`."""
    arguments: Arguments
    messages: Messages
    behavior: Behavior
    is_measured: bool = True  # kschedx was tested against this version; otherwise, it emulates what was published
    has_framework: bool = True  # False for the schedulers with predicates and priorities (`legacy`)

    @property
    def title(self) -> str:
        """The version as a title, such as `1.37, as published and not measured`."""
        return self.version if self.is_measured else f"{self.version}, as published and not measured"

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate is on. A gate of a later version is off; a removed gate has its final value."""
        return self.gates.get(gate, False)

    @property
    def compares_taints(self) -> bool:
        """Whether taints and tolerations support `Lt` and `Gt`."""
        return self.enabled("TaintTolerationComparisonOperators")

    def has_gate(self, gate: str) -> bool:
        """Return whether a feature gate exists in this version."""
        return gate in specs(self.version)

    def shares_facts_with(self, other: Release) -> bool:
        """Return whether gates, texts, and behaviors can be compared one by one. A scheduler before the framework
        shares hardly any of them with others."""
        return self.has_framework and other.has_framework

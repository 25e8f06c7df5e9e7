"""What one Kubernetes release does differently, as a frozen value."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.releases.behavior import Behaviour
from kschedx.releases.configuration import Arguments
from kschedx.releases.messages import Messages
from kschedx.releases.plugins import DefaultPlugin

POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
"""The extension points that a pod passes, in the order of the framework, as a configuration spells them."""

PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""The extension points that only a pod group passes; a configuration may name them."""


class Release(Struct, frozen=True, kw_only=True):
    """A Kubernetes release with its feature gates resolved.

    Plugins never compare versions: they ask `enabled(gate)`, take a text from `messages`, or read a claim of
    `behaviour`.
    """

    version: str
    """Minor release: `1.36`."""
    gates: Mapping[str, bool]
    """Every gate that kube-scheduler knows in this release, and those that were removed with what they had become."""
    default_plugins: tuple[DefaultPlugin, ...]
    """The default profile's MultiPoint list in order; entries of gates that are off are left out."""
    v1beta2_default_plugins: Mapping[str, tuple[DefaultPlugin, ...]]
    """The default profile of v1beta2, a list for each extension point; empty where v1beta2 is not read."""
    plugin_points: Mapping[str, frozenset[str]]
    """In-tree plugin to the extension points that it implements, of `POINTS` and `PLACEMENT_POINTS`."""
    never_skips_filter: frozenset[str]
    """Plugins whose Filter is called for every pod: their PreFilter cannot say Skip yet."""
    never_skips_score: frozenset[str]
    """Plugins that score every pod: their PreScore cannot say Skip yet."""
    removed_plugins: tuple[str, ...]
    """Plugins of earlier releases that a v1 configuration may no longer name."""
    config_versions: tuple[str, ...]
    """The apiVersions of KubeSchedulerConfiguration that the release reads, newest first."""
    missing_fields: Mapping[str, tuple[str, ...]]
    """Each of these versions to the fields of others that it lacks here, as `configuration.Field.path` writes them."""
    arguments: Arguments
    messages: Messages
    behaviour: Behaviour
    is_measured: bool = True
    """kschedx was held against the release; otherwise it is emulated as it was published."""
    has_framework: bool = True
    """False for the schedulers of predicates and priorities (`legacy`)."""

    @property
    def title(self) -> str:
        """`1.37, as published and not measured`."""
        return self.version if self.is_measured else f"{self.version}, as published and not measured"

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on. A gate that came later is off, one that was removed is what it had become."""
        return self.gates.get(gate, False)

    def shares_facts_with(self, other: Release) -> bool:
        """Whether gates, texts and behaviours can be compared one by one: a scheduler before the framework has hardly
        one in common with any other."""
        return self.has_framework and other.has_framework

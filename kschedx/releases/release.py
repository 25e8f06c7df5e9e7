"""The properties of one Kubernetes version, as a frozen value."""

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
"""The extension points that a pod passes, in the framework's order, as a configuration spells them."""

PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""The extension points that only a pod group passes; a configuration may name them."""


class Release(Struct, frozen=True, kw_only=True):
    """A Kubernetes version with its feature gates resolved. Plugins never compare versions: they call `enabled(gate)`,
    take a text from `messages`, or read a fact of `behaviour`."""

    version: str
    """The minor version: `1.36`."""
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
    never_skips_score: frozenset[str]
    """Plugins that score every pod, because their PreScore cannot return Skip yet."""
    removed_plugins: tuple[str, ...]
    """Plugins of earlier versions that a v1 configuration may no longer name."""
    config_versions: tuple[str, ...]
    """apiVersions that kube-scheduler reads, newest first."""
    missing_fields: Mapping[str, tuple[str, ...]]
    """Each of these apiVersions with the fields of others that it lacks here, in the form of
    `configuration.Field.path`."""
    arguments: Arguments
    messages: Messages
    behaviour: Behaviour
    is_measured: bool = True
    """kschedx was tested against this version; otherwise, it emulates what was published."""
    has_framework: bool = True
    """False for the schedulers with predicates and priorities (`legacy`)."""

    @property
    def title(self) -> str:
        """The version as a title, such as `1.37, as published and not measured`."""
        return self.version if self.is_measured else f"{self.version}, as published and not measured"

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate is on. A gate of a later version is off; a removed gate has its final value."""
        return self.gates.get(gate, False)

    def shares_facts_with(self, other: Release) -> bool:
        """Return whether gates, texts, and behaviors can be compared one by one. A scheduler before the framework
        shares hardly any of them with others."""
        return self.has_framework and other.has_framework

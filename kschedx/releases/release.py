"""What one Kubernetes release does differently, as a frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
"""The extension points that a pod passes, in the order of the framework, as a configuration spells them."""

PLACEMENT_POINTS = ("placementGenerate", "placementScore")
"""The extension points that only a pod group passes; a configuration may name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPlugin:
    """An entry of the default profile's MultiPoint list."""

    name: str
    weight: int = 0
    """0 where upstream sets none; a score plugin then counts once."""
    gate: str | None = None
    """The feature gate without which the entry is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Reason texts that differ between releases; a text that never changed stays beside its plugin."""

    untolerated_taint: str
    volume_node_affinity_conflict: str
    read_write_once_pod_in_use: str
    unmatched_declared_features: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A Kubernetes release with its feature gates resolved.

    Plugins never compare versions: they ask `enabled(gate)`, take a text from `messages`, or read a boolean field of
    this class that claims one behaviour.
    """

    version: str
    """Minor release: `1.36`."""
    gates: Mapping[str, bool]
    """Every gate that kube-scheduler knows in this release."""
    default_plugins: tuple[DefaultPlugin, ...]
    """The default profile's MultiPoint list in order; entries of gates that are off are left out."""
    plugin_points: Mapping[str, frozenset[str]]
    """In-tree plugin to the extension points that it implements, of `POINTS` and `PLACEMENT_POINTS`."""
    removed_plugins: tuple[str, ...]
    """Plugins of earlier releases that a configuration may no longer name."""
    config_versions: tuple[str, ...]
    """The apiVersions of KubeSchedulerConfiguration that the release reads, newest first."""
    messages: Messages

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on; a KeyError for a gate that the release does not know."""
        return self.gates[gate]

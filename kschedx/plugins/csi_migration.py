"""In-tree volume plugins that scheduling leaves to the CSI drivers which replaced them.

Upstream: isCSIMigrationOn in pkg/scheduler/framework/plugins/nodevolumelimits/utils.go; a sister in volumebinding.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.api.csi_translation import IN_TREE_PLUGINS
from kschedx.releases import Release

_GATES: Mapping[str, str] = {"kubernetes.io/portworx-volume": "CSIMigrationPortworx"}
"""Plugin to the feature gate that some release needed; the others were migrated before."""


def migrated_plugins(release: Release) -> frozenset[str]:
    """Names of the plugins whose volumes count as their driver's, on nodes where that is so."""
    return frozenset(
        plugin.name
        for plugin in IN_TREE_PLUGINS
        if plugin.is_migrated and (plugin.name not in _GATES or release.enabled(_GATES[plugin.name]))
    )

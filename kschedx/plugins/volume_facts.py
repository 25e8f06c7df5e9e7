"""Facts about claims for the volume plugins, and the in-tree volumes that CSI drivers replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kschedx.errors import InputError
from kschedx.findings import ClaimFacts, ClaimUnbound
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.storage import IN_TREE_PLUGINS, CSINode, PersistentVolumeClaim
from kschedx.releases import Release
from kschedx.snapshot.storage import Storage

# In-tree volume plugins that scheduling treats as their CSI drivers. Upstream: isCSIMigrationOn in
# pkg/scheduler/framework/plugins/nodevolumelimits/utils.go, and a similar function in volumebinding.

_GATES: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "CSIMigrationAWS",
    "kubernetes.io/azure-disk": "CSIMigrationAzureDisk",
    "kubernetes.io/gce-pd": "CSIMigrationGCE",
    "kubernetes.io/portworx-volume": "CSIMigrationPortworx",
}
"""Plugin to the feature gate of its migration in some version."""


def migrated_plugins(release: Release) -> frozenset[str]:
    """Names of the plugins whose volumes count as their CSI driver's, on nodes that support it."""
    return frozenset(
        plugin.name
        for plugin in IN_TREE_PLUGINS
        if plugin.is_migrated and (plugin.name not in _GATES or release.enabled(_GATES[plugin.name]))
    )


def migrated_on(csi_nodes: Iterable[CSINode | None], release: Release) -> Iterator[frozenset[str]]:
    """Yield for each node the plugins whose volumes NodeVolumeLimits counts as their CSI driver's. As long as a version
    has the gate of a plugin, the CSINode has to list the plugin."""
    migrated = migrated_plugins(release)
    everywhere = frozenset(name for name in migrated if not release.has_gate(_GATES.get(name, "")))
    for csi_node in csi_nodes:
        yield frozenset() if csi_node is None else everywhere | (migrated & csi_node.migrated_plugins)


def claim_facts(claim: PersistentVolumeClaim) -> ClaimFacts:
    return ClaimFacts(
        claim=claim.key,
        storage_class=claim.storage_class,
        requested=claim.size_in_bytes,
        access_modes=claim.spec.access_modes,
        volume_mode=claim.spec.volume_mode,
        selector="" if claim.spec.selector is None else selector_text(claim.spec.selector),
    )


def claim_unbound(claim: PersistentVolumeClaim, storage: Storage) -> ClaimUnbound:
    """Return why the claim has to be bound before its pod is scheduled."""
    storage_class = storage.classes.get(claim.storage_class)
    if claim.spec.volume_name:
        cause = "prebound"
    elif not claim.storage_class:
        cause = "no-class"
    else:
        missing = "static" if storage.is_static(claim.storage_class) else "class-missing"
        provisions = storage_class is not None and storage_class.can_provision
        cause = missing if storage_class is None else "new" if claim.is_new and provisions else "immediate"
    return ClaimUnbound(
        claim=claim_facts(claim),
        cause=cause,
        provisioner=storage_class.provisioner if storage_class else "",
        persistent_volume=claim.spec.volume_name,
    )


def selector_text(selector: LabelSelector) -> str:
    """Format as `zone In [a, b], tier=hot`; for an invalid selector, return the error."""
    try:
        return str(compile_selector(selector))
    except InputError as error:
        return f"<{error}>"

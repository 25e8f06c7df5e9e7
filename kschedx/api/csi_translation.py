"""In-tree volumes as the CSI volumes that replace them: what of the translation scheduling can see.

That is the driver's name, the volume handle, and node affinity under the driver's own topology key. Upstream:
staging/src/k8s.io/csi-translation-lib, and isCSIMigrationOn in the plugins that use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.pod_volumes import AzureDiskVolumeSource, InTreeVolumeSources, Volume
from kschedx.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kschedx.api.storage import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    ZONE_DELIMITER,
    CSIPersistentVolumeSource,
    PersistentVolume,
    VolumeNodeAffinity,
)

_UNSPECIFIED = "UNSPECIFIED"


class TranslationError(Exception):
    """A volume that cannot be translated, in upstream's words; a plugin makes a status of it."""


class InTreePlugin(Struct, frozen=True, kw_only=True):
    """An in-tree volume plugin and the CSI driver that replaced it."""

    name: str
    driver: str
    source: str
    """The field of InTreeVolumeSources that holds its volumes."""
    topology_key: str = ""
    """The driver's zone label; empty where the translation leaves topology alone."""
    is_migrated: bool = True
    """Scheduling treats its volumes as the driver's (isCSIMigrationOn); otherwise it only knows them."""


IN_TREE_PLUGINS = (
    InTreePlugin(
        name="kubernetes.io/gce-pd",
        driver="pd.csi.storage.gke.io",
        source="gce_persistent_disk",
        topology_key="topology.gke.io/zone",
    ),
    InTreePlugin(
        name="kubernetes.io/aws-ebs",
        driver="ebs.csi.aws.com",
        source="aws_elastic_block_store",
        topology_key="topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        name="kubernetes.io/cinder",
        driver="cinder.csi.openstack.org",
        source="cinder",
        topology_key="topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin(name="kubernetes.io/azure-disk", driver="disk.csi.azure.com", source="azure_disk"),
    InTreePlugin(name="kubernetes.io/portworx-volume", driver="pxd.portworx.com", source="portworx_volume"),
    InTreePlugin(name="kubernetes.io/azure-file", driver="file.csi.azure.com", source="azure_file", is_migrated=False),
    InTreePlugin(
        name="kubernetes.io/vsphere-volume", driver="csi.vsphere.vmware.com", source="vsphere_volume", is_migrated=False
    ),
)

_BY_NAME = {plugin.name: plugin for plugin in IN_TREE_PLUGINS}


def plugin_named(name: str) -> InTreePlugin | None:
    """The in-tree plugin of a name, such as a StorageClass has for a provisioner."""
    return _BY_NAME.get(name)


def plugin_of(volume: InTreeVolumeSources) -> InTreePlugin | None:
    """The in-tree plugin of a pod's volume, or of a PersistentVolume's spec."""
    return next((plugin for plugin in IN_TREE_PLUGINS if getattr(volume, plugin.source) is not None), None)


def inline_handle(volume: Volume) -> str:
    """The handle of a pod's own volume of a migrated plugin. Raises `TranslationError`."""
    return _handle(volume, volume.name, {})


def translated(volume: PersistentVolume) -> PersistentVolume:
    """A PersistentVolume of a migrated plugin as its driver's. Raises `TranslationError`."""
    spec = volume.spec
    handle = _handle(spec, volume.name, volume.metadata.labels)
    plugin = next(plugin for plugin in IN_TREE_PLUGINS if getattr(spec, plugin.source) is not None)
    required = volume.required_node_affinity
    if plugin.topology_key:
        required = _translated_topology(volume, required, plugin.topology_key)
    return replace(
        volume,
        spec=replace(
            spec,
            csi=CSIPersistentVolumeSource(driver=plugin.driver, volume_handle=handle),
            node_affinity=VolumeNodeAffinity(required=required),
            **{plugin.source: None},
        ),
    )


# --- handles


def _handle(source: InTreeVolumeSources, name: str, labels: Mapping[str, str]) -> str:
    """`name` and `labels` are those of the volume that `source` is of."""
    if source.gce_persistent_disk is not None:
        return _gce_handle(source.gce_persistent_disk.pd_name, labels)
    if source.aws_elastic_block_store is not None:
        return _ebs_volume_id(source.aws_elastic_block_store.volume_id)
    if source.cinder is not None:
        return source.cinder.volume_id
    if source.azure_disk is not None:
        return _azure_disk(source.azure_disk)
    if source.portworx_volume is not None:
        return source.portworx_volume.volume_id
    raise TranslationError(f'could not find in-tree plugin translation logic for "{name}"')


def _gce_handle(name: str, labels: Mapping[str, str]) -> str:
    """A disk of one zone, or of the region that several zones share, as the volume's labels say."""
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{name}"


def _gce_region(zones: Iterable[str]) -> str:
    """`us-central1` of `us-central1-a` and its neighbours."""
    regions: set[str] = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            problem = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise TranslationError(f"failed to get region from zones: {problem}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


def _ebs_volume_id(written: str) -> str:
    """`vol-1` of `aws://zone/vol-1`, `aws:///vol-1` and `vol-1`; an id without the scheme is taken as it is."""
    if not written.startswith("aws://"):
        return written
    found = unquote(urlsplit(written).path).strip("/")
    if not re.fullmatch(r"vol-[^/]*", found):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({written})"
        )
    return found


def _azure_disk(source: AzureDiskVolumeSource) -> str:
    """Only managed disks were migrated; a source that names no kind is Shared by default."""
    kind = source.kind or "Shared"
    if kind.lower() != "managed":
        raise TranslationError(f"kind({kind}) is not supported in csi migration")
    return source.disk_uri


# --- topology


def _translated_topology(
    volume: PersistentVolume, required: NodeSelector | None, topology_key: str
) -> NodeSelector | None:
    """Node affinity under the driver's zone label; where it names no zone, the volume's zone label is added."""
    labels = volume.metadata.labels
    zone_key, region_key = _topology_labels(volume, required)
    if _values(required, zone_key):
        required = _renamed(required, zone_key, topology_key)
    elif zone_key in labels:
        required = _narrowed(required, topology_key, labels[zone_key].split(ZONE_DELIMITER))
    if region_key == BETA_REGION and _values(required, region_key):
        required = _renamed(required, region_key, REGION)
    return required


def _topology_labels(volume: PersistentVolume, required: NodeSelector | None) -> tuple[str, str]:
    """The generation of zone and region labels that a volume uses, its node affinity looked at before its labels."""
    in_affinity = {
        expression.key
        for term in (required.node_selector_terms if required else ())
        for expression in term.match_expressions
    }
    for present in (in_affinity, volume.metadata.labels):
        if ZONE in present:
            return ZONE, REGION
        if BETA_ZONE in present:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(selector: NodeSelector | None, key: str) -> set[str]:
    return {
        value
        for term in (selector.node_selector_terms if selector else ())
        for expression in term.match_expressions
        if expression.key == key
        for value in expression.values
    }


def _renamed(selector: NodeSelector | None, old: str, new: str) -> NodeSelector:
    """The selector with one key replaced by another in every expression."""
    return NodeSelector(
        node_selector_terms=tuple(
            replace(
                term,
                match_expressions=tuple(
                    replace(expression, key=new) if expression.key == old else expression
                    for expression in term.match_expressions
                ),
            )
            for term in (selector.node_selector_terms if selector else ())
        )
    )


def _narrowed(selector: NodeSelector | None, key: str, zones: Iterable[str]) -> NodeSelector | None:
    """The selector with every term narrowed to some zones; unchanged where none of them has a name."""
    named = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not named:
        return selector
    expression = NodeSelectorRequirement(key=key, operator="In", values=named)
    terms = (selector.node_selector_terms if selector else ()) or (NodeSelectorTerm(),)
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=(*term.match_expressions, expression)) for term in terms
        )
    )

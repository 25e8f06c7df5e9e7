"""A pod's volumes and where they come from, as typed slim records of core/v1: the fields that scheduling reads.

Persistent volumes, claims and their classes are in `api/storage.py`.
"""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.api.integers import Int32
from kschedx.api.quantity import ResourceList
from kschedx.api.selectors import LabelSelector

FILESYSTEM = "Filesystem"


class PersistentVolumeClaimVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool | None = None


class AzureFileVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    share_name: str = ""
    secret_name: str = ""
    secret_namespace: str | None = None


class CinderVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_path: str = ""


class PortworxVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CSIVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    driver: str = ""
    read_only: bool | None = None


class VolumeResourceRequirements(Struct, frozen=True, kw_only=True):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    """None asks for the default class, empty for none."""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""


class PersistentVolumeClaimTemplate(Struct, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    """A generic ephemeral volume; the claim is named after the pod and the volume."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    reference: str = ""


class EmptyDirVolumeSource(Struct, frozen=True, kw_only=True):
    """No plugin reads it: a drain asks whether there is one."""

    medium: str = ""
    """`Memory`: nothing of it is on the node's disk."""


class HostPathVolumeSource(Struct, frozen=True, kw_only=True):
    """No plugin reads it: cluster-autoscaler asks whether there is one."""


class InTreeVolumeSources(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod's volume and a persistent volume can both be: one of an in-tree plugin that a CSI driver replaced."""

    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class Volume(InTreeVolumeSources, frozen=True, kw_only=True, rename="camel"):
    """A pod's volume; sources that nobody reads (configMap, secret, ...) leave every field unset."""

    name: str = ""
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None

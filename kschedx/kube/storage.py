"""Typed records of volumes, claims, and storage.k8s.io: the fields that scheduling reads.

The defaults are the API server's. Quantities keep their text; `check_*` refuse invalid ones, so that no rule has to.
Upstream: staging/src/k8s.io/api/core/v1, storage/v1, and component-helpers/storage.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import assert_never
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import Place
from kschedx.kube.names import REGION, ZONE
from kschedx.kube.quantity import ResourceList, Unit, Written, format_quantity, parse_quantity
from kschedx.kube.quantity import value as quantity_value
from kschedx.kube.resources import nano_units
from kschedx.kube.scalars import MIN_INT64, Int32, nanoseconds
from kschedx.kube.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, SelectorRequirement, terms_of
from kschedx.kube.types import (
    FILESYSTEM,
    NEW,
    AzureDiskVolumeSource,
    InTreeVolumeSources,
    KubernetesObject,
    ObjectMeta,
    PersistentVolumeClaimSpec,
    Pod,
    Volume,
)

STORAGE = "storage"  # the resource name of a volume's size

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
_READ_WRITE_MANY = "ReadWriteMany"

IMMEDIATE = "Immediate"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"  # the provisioner of a class with manually created volumes

_DISKS = frozenset({"disk.csi.azure.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io"})
"""Drivers that refuse to create a volume with a file system for ReadWriteMany (validateVolumeCapabilit* in each; their
in-tree plugins refuse it too). Other drivers may create it: Cinder does, and local-path may have a shared path."""

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

ZONE_DELIMITER = "__"  # the delimiter in a volume's label with several zones

DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class ObjectReference(Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


# --- volumes


class CSIPersistentVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True, kw_only=True, rename="camel"):
    required: NodeSelector | None = None


Segment = tuple[tuple[str, str], ...]
"""A topology segment: the labels, as keys and values, of the nodes that reach a volume; empty if all nodes do."""


def segments_of(affinity: VolumeNodeAffinity) -> tuple[Segment, ...]:
    """Return the segments of an affinity that `affinity_of` returned."""
    if affinity.required is None:
        return ((),)
    return tuple(_segments(term.match_expressions for term in affinity.required.node_selector_terms))


class _NodePathSource(Struct, frozen=True, kw_only=True):
    """A path on a node's own disk; only its presence counts."""


class PersistentVolumeSpec(InTreeVolumeSources, frozen=True, kw_only=True, rename="camel"):
    """Sources that kschedx does not read (nfs, ...) leave all fields unset."""

    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    volume_mode: str = FILESYSTEM
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: _NodePathSource | None = None
    host_path: _NodePathSource | None = None

    @property
    def is_on_node(self) -> bool:
        return self.local is not None or self.host_path is not None


class PersistentVolumeStatus(Struct, frozen=True, kw_only=True):
    phase: str = "Pending"


class PersistentVolume(KubernetesObject, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class(self) -> str:
        """GetPersistentVolumeClass: the beta annotation takes precedence."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name)

    @property
    def size(self) -> int:
        """The exact capacity in nano-bytes; 0 if the volume has none."""
        return nano_units(self.spec.capacity.get(STORAGE, "0"))

    @property
    def size_in_bytes(self) -> int:
        return quantity_value(self.spec.capacity.get(STORAGE, "0"))

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The nodes that can reach the volume; None for all."""
        return self.spec.node_affinity.required if self.spec.node_affinity else None


# --- claims


class _ClaimCondition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True):
    phase: str = "Pending"
    conditions: tuple[_ClaimCondition, ...] = ()


class PersistentVolumeClaim(KubernetesObject, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def names_class(self) -> bool:
        """PersistentVolumeClaimHasClass: an empty name counts."""
        return BETA_STORAGE_CLASS in self.metadata.annotations or self.spec.storage_class_name is not None

    @property
    def storage_class(self) -> str:
        """GetPersistentVolumeClaimClass: the beta annotation takes precedence; empty without a class."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name or "")

    @property
    def size(self) -> int:
        """The exact request in nano-bytes; 0 if the claim has none."""
        return nano_units(self.spec.resources.requests.get(STORAGE, "0"))

    @property
    def size_in_bytes(self) -> int:
        return quantity_value(self.spec.resources.requests.get(STORAGE, "0"))

    @property
    def is_new(self) -> bool:
        """Whether the cluster does not have the claim yet."""
        return self.metadata.is_new

    @property
    def is_fully_bound(self) -> bool:
        """Whether the volume controller has completed the binding."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def selected_node(self) -> str | None:
        """The node for which the volume is being provisioned, or None."""
        return self.metadata.annotations.get(SELECTED_NODE)

    @property
    def provisioner(self) -> str:
        """The driver that kube-controller-manager asks for the volume, by the claim's class; empty if unknown."""
        return next(filter(None, map(self.metadata.annotations.get, _PROVISIONERS)), "")


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """IsVolumeBoundToClaim: the volume's claimRef names the claim, with the same uid if it has one."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def not_found_text(resource: str, name: str) -> str:
    """Return the API's message: `persistentvolumeclaim "data" not found`."""
    return f'{resource} "{name}" not found'


# --- classes and drivers


class TopologySelectorLabelRequirement(Struct, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True, kw_only=True, rename="camel"):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


def _segments(
    terms: Iterable[Iterable[SelectorRequirement | TopologySelectorLabelRequirement]],
) -> Iterator[Segment]:
    """Yield each combination of the values in a term."""
    for term in terms:
        yield from product(*([(label.key, value) for value in label.values] for label in term))


class StorageClass(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    allow_volume_expansion: bool | None = None

    @property
    def waits_for_first_consumer(self) -> bool:
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def can_provision(self) -> bool:
        return self.provisioner not in ("", NO_PROVISIONER)

    @property
    def provisions_first(self) -> bool:
        """Whether the driver creates the volume of a claim, in a place that it chooses, before a pod is scheduled."""
        return self.can_provision and not self.waits_for_first_consumer

    @property
    def driver(self) -> str:
        """The CSI driver that provisions, also for the name of an in-tree plugin."""
        plugin = plugin_named(self.provisioner)
        return self.provisioner if plugin is None else plugin.driver

    @property
    def allowed_segments(self) -> tuple[Segment, ...]:
        """Each combination of values that a term of allowedTopologies allows."""
        return tuple(dict.fromkeys(_segments(term.match_label_expressions for term in self.allowed_topologies)))

    def refuses_modes(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the provisioner is known to refuse the claim's access modes."""
        spec = claim.spec
        return self.driver in _DISKS and _READ_WRITE_MANY in spec.access_modes and spec.volume_mode == FILESYSTEM

    @property
    def is_default(self) -> bool:
        return any(self.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS)


class VolumeAttributesClass(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    driver_name: str = ""


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """GetDefaultClass: the newest of several; among equally new ones, the first by name."""

    def created(storage_class: StorageClass) -> int:
        if storage_class.metadata.creation_timestamp:
            return nanoseconds(storage_class.metadata.creation_timestamp)
        return MIN_INT64

    defaults = sorted((it for it in classes if it.is_default), key=lambda storage_class: storage_class.name)
    return max(defaults, key=created, default=None)


def with_default_class(claim: PersistentVolumeClaim, default: StorageClass | None) -> PersistentVolumeClaim:
    """Set the default class on an unbound claim without a class, as admission and the volume controller do."""
    if default is None or claim.names_class or claim.spec.volume_name:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default.name))


def new_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Return a claim that is yet to be created."""
    uid = claim.metadata.uid or f"{NEW}{claim.name}"
    return replace(claim, metadata=replace(claim.metadata, uid=uid))


def bound_claim(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    """Return the claim as the volume controller binds it."""
    metadata = replace(claim.metadata, annotations={**claim.metadata.annotations, BIND_COMPLETED: "yes"})
    return replace(claim, metadata=metadata, spec=replace(claim.spec, volume_name=volume))


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume as the volume controller binds it."""
    metadata = claim.metadata
    uid = "" if claim.is_new else metadata.uid
    reference = ObjectReference(namespace=metadata.namespace, name=metadata.name, uid=uid)
    return replace(volume, spec=replace(volume.spec, claim_ref=reference), status=PersistentVolumeStatus(phase="Bound"))


_DEFAULT_SIZE = 1 << 30
_IN_TREE = "kubernetes.io/"  # the prefix of provisioners that are not CSI drivers


def volume_for(
    claim: PersistentVolumeClaim, name: str, storage_class: StorageClass | None, *, bound: bool
) -> PersistentVolume:
    """Return a volume that satisfies the claim and that every node can reach. The user adds its source."""
    spec = claim.spec
    driver = storage_class.provisioner if storage_class and storage_class.can_provision else ""
    size = claim.size_in_bytes or _DEFAULT_SIZE
    uid = "" if claim.is_new else claim.metadata.uid
    reference = ObjectReference(namespace=claim.metadata.namespace, name=claim.name, uid=uid)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=_labels_for(spec.selector)),
        spec=PersistentVolumeSpec(
            capacity={"storage": format_quantity(size, Unit.BYTE)},
            access_modes=spec.access_modes or ("ReadWriteOnce",),
            volume_mode=spec.volume_mode,
            storage_class_name=claim.storage_class,
            volume_attributes_class_name=spec.volume_attributes_class_name,
            claim_ref=reference if bound else None,
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name)
            if driver and not driver.startswith(_IN_TREE)
            else None,
        ),
        status=PersistentVolumeStatus(phase="Bound" if bound else "Available"),
    )


def _labels_for(selector: LabelSelector | None) -> dict[str, str]:
    """Return labels that a selector matches, without the labels that it excludes."""
    if selector is None:
        return {}
    wanted = {
        expression.key: expression.values[0] if expression.values else "true"
        for expression in selector.match_expressions
        if expression.operator in ("In", "Exists")
    }
    return {**wanted, **(selector.match_labels or {})}


class _CSINodeResources(Struct, frozen=True, kw_only=True):
    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: _CSINodeResources | None = None


class CSINodeSpec(Struct, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesObject, frozen=True, kw_only=True):
    """It has the name of its node."""

    spec: CSINodeSpec = CSINodeSpec()

    @property
    def limits(self) -> dict[str, int]:
        """Driver to the number of attachable volumes; a driver without a limit is absent."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """In-tree plugins whose volumes the node's kubelet leaves to CSI drivers."""
        return frozenset(self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")) - {""}


class _CSIDriverSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(KubernetesObject, frozen=True, kw_only=True):
    spec: _CSIDriverSpec = _CSIDriverSpec()


class CSIStorageCapacity(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Written | None = None
    maximum_volume_size: Written | None = None

    @property
    def limit(self) -> int | None:
        """The largest volume that can be provisioned, in bytes: maximumVolumeSize takes precedence over capacity."""
        written = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return None if written is None else quantity_value(written)

    @property
    def free(self) -> int:
        """What all new volumes may have together, in bytes; 0 if that is not published."""
        return 0 if self.capacity is None else quantity_value(self.capacity)


class _VolumeAttachmentSource(Struct, frozen=True, kw_only=True, rename="camel"):
    persistent_volume_name: str | None = None


class _VolumeAttachmentSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: _VolumeAttachmentSource = field(default_factory=_VolumeAttachmentSource)


class _VolumeError(Struct, frozen=True, kw_only=True):
    message: str = ""


class _VolumeAttachmentStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    detach_error: _VolumeError | None = None


class VolumeAttachment(KubernetesObject, frozen=True, kw_only=True):
    spec: _VolumeAttachmentSpec = _VolumeAttachmentSpec()
    status: _VolumeAttachmentStatus = _VolumeAttachmentStatus()


# --- checks


def check_quantities(item: PersistentVolume | PersistentVolumeClaim | CSIStorageCapacity) -> None:
    """Raises `InputError` with the field's path for an invalid size."""
    sizes: dict[str, Written | None]
    match item:
        case PersistentVolume():
            sizes = {"spec.capacity[storage]": item.spec.capacity.get(STORAGE)}
        case PersistentVolumeClaim():
            sizes = {"spec.resources.requests[storage]": item.spec.resources.requests.get(STORAGE)}
        case CSIStorageCapacity():
            sizes = {"capacity": item.capacity, "maximumVolumeSize": item.maximum_volume_size}
        case _:
            assert_never(item)
    for path, written in sizes.items():
        if written is None:
            continue
        with Place(field=path):
            parse_quantity(written)


# The claims of a pod's volumes: their names and owners. Upstream: component-helpers/storage/ephemeral.


def ephemeral_claim_name(pod_name: str, volume: Volume) -> str:
    return f"{pod_name}-{volume.name}"


def claim_name(pod_name: str, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return ephemeral_claim_name(pod_name, volume) if volume.ephemeral is not None else None


def own_claims(pod: Pod) -> Mapping[str, bool]:
    """Return the claims that a pod names as `namespace/name`, with whether each is for a generic ephemeral volume."""
    named = ((claim_name(pod.metadata.name, volume), volume.ephemeral is not None) for volume in pod.spec.volumes)
    return {f"{pod.metadata.namespace}/{name}": is_ephemeral for name, is_ephemeral in named if name is not None}


def ownership_error(claim: PersistentVolumeClaim, pod: ObjectMeta) -> str | None:
    """VolumeIsForPod: return why the claim does not belong to the pod's ephemeral volume, or None. A pod without a uid
    does not exist yet, so it has no claim."""
    owner = claim.metadata.controller
    is_owner = owner is not None and owner.uid != "" and owner.uid == pod.uid
    if is_owner and claim.metadata.namespace == pod.namespace:
        return None
    return f"PVC {claim.key} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


# The allocatable resources that limit attached volumes until Kubernetes 1.31. Upstream:
# pkg/volume/util/attach_limit.go.

PREFIX = "attachable-volumes-"
CSI_PREFIX = f"{PREFIX}csi-"
_LONGEST = 63  # the exclusive maximum length of a resource name


def csi_limit_key(driver: str) -> str:
    """Return the resource that limits a CSI driver's volumes. A long name is shortened and gets a hash."""
    key = f"{CSI_PREFIX}{driver}"
    if len(key.encode()) < _LONGEST:
        return key
    import hashlib  # rarely needed

    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_PREFIX}{driver[:23]}{digest[:16]}"


# In-tree volumes as CSI volumes: the part of the translation that affects scheduling. These are the driver's name, the
# volume handle, and node affinity with the driver's topology key. Upstream: staging/src/k8s.io/csi-translation-lib, and
# isCSIMigrationOn in the plugins that use it.

_UNSPECIFIED = "UNSPECIFIED"


class TranslationError(Exception):
    """A volume that cannot be translated, with upstream's message; plugins return it as a status."""


class InTreePlugin(Struct, frozen=True, kw_only=True):
    """An in-tree volume plugin and the CSI driver that replaces it."""

    name: str
    driver: str
    source: str  # the field of InTreeVolumeSources with its volumes
    topology_key: str = ""  # the driver's zone label; empty if the translation does not change topology
    is_migrated: bool = True  # whether scheduling treats its volumes as the driver's (isCSIMigrationOn)


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


_CSI_DRIVERS = frozenset({"driver.harvesterhci.io", "driver.longhorn.io", "pxd.portworx.com", "topolvm.io"})
"""CSI drivers without `csi` in their name."""


def is_csi_name(provisioner: str) -> bool:
    """Return whether a provisioner is a CSI driver by its name."""
    return "csi" in provisioner or provisioner in _CSI_DRIVERS


_GENERAL_PARTS = frozenset({
    "cluster", "com", "controller", "csi", "driver", "external", "io", "k8s", "kubernetes", "local", "org",
    "provisioner", "storage",
})  # fmt: skip
"""Parts of a provisioner's name that do not identify it."""


def identifying_parts(provisioner: str) -> frozenset[str]:
    """Return the parts of a provisioner's name that the names of its own pods contain, such as `ebs`."""
    return frozenset(re.split("[./-]", provisioner)) - _GENERAL_PARTS


def plugin_named(name: str) -> InTreePlugin | None:
    """Find the in-tree plugin with a name, such as a StorageClass's provisioner."""
    return _BY_NAME.get(name)


def plugin_of(volume: InTreeVolumeSources) -> InTreePlugin | None:
    """Find the in-tree plugin of a pod's volume or of a PersistentVolume's spec."""
    return next((plugin for plugin in IN_TREE_PLUGINS if getattr(volume, plugin.source) is not None), None)


def inline_handle(volume: Volume) -> str:
    """Return the handle of an inline volume of a migrated plugin. Raises `TranslationError`."""
    return _handle(volume, volume.name, {})


def translate(volume: PersistentVolume) -> PersistentVolume:
    """Translate a PersistentVolume of a migrated plugin to its CSI driver's. Raises `TranslationError`."""
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
    """`name` and `labels` belong to the volume with this `source`."""
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
    """Return the handle of a zonal disk, or of a regional one if the volume's labels have several zones."""
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{name}"


def _gce_region(zones: Iterable[str]) -> str:
    """Return `us-central1` for `us-central1-a` and its neighbors."""
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
    """Return `vol-1` for `aws://zone/vol-1`, `aws:///vol-1`, and `vol-1`; an id without the scheme is unchanged."""
    if not written.startswith("aws://"):
        return written
    volume_id = unquote(urlsplit(written).path).strip("/")
    if not re.fullmatch(r"vol-[^/]*", volume_id):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({written})"
        )
    return volume_id


def _azure_disk(source: AzureDiskVolumeSource) -> str:
    """Only managed disks are migrated; the default kind is Shared."""
    kind = source.kind or "Shared"
    if kind.lower() != "managed":
        raise TranslationError(f"kind({kind}) is not supported in csi migration")
    return source.disk_uri


# --- topology


def _translated_topology(
    volume: PersistentVolume, required: NodeSelector | None, topology_key: str
) -> NodeSelector | None:
    """Return the node affinity with the driver's zone label. If it has no zone, the volume's zone label is added."""
    labels = volume.metadata.labels
    zone_key, region_key = _topology_labels(volume, required)
    if _values(required, zone_key):
        required = _rename_key(required, zone_key, topology_key)
    elif zone_key in labels:
        required = _restrict_zones(required, topology_key, labels[zone_key].split(ZONE_DELIMITER))
    if region_key == BETA_REGION and _values(required, region_key):
        required = _rename_key(required, region_key, REGION)
    return required


def _topology_labels(volume: PersistentVolume, required: NodeSelector | None) -> tuple[str, str]:
    """Return the zone and region label keys that a volume uses: first from its node affinity, then from its labels."""
    in_affinity = {expression.key for term in terms_of(required) for expression in term.match_expressions}
    for present in (in_affinity, volume.metadata.labels):
        if ZONE in present:
            return ZONE, REGION
        if BETA_ZONE in present:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(selector: NodeSelector | None, key: str) -> set[str]:
    return {
        value
        for term in terms_of(selector)
        for expression in term.match_expressions
        if expression.key == key
        for value in expression.values
    }


def _rename_key(selector: NodeSelector | None, old: str, new: str) -> NodeSelector:
    """Replace one key with another in every expression."""
    return NodeSelector(
        node_selector_terms=tuple(
            replace(
                term,
                match_expressions=tuple(
                    replace(expression, key=new) if expression.key == old else expression
                    for expression in term.match_expressions
                ),
            )
            for term in terms_of(selector)
        )
    )


def _restrict_zones(selector: NodeSelector | None, key: str, zones: Iterable[str]) -> NodeSelector | None:
    """Restrict every term to some zones; without zone names, the selector is unchanged."""
    named = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not named:
        return selector
    expression = SelectorRequirement(key=key, operator="In", values=named)
    terms = terms_of(selector) or (NodeSelectorTerm(),)
    return NodeSelector(
        node_selector_terms=tuple(replace(it, match_expressions=(*it.match_expressions, expression)) for it in terms)
    )

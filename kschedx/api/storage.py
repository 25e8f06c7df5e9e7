"""Typed slim records of volumes, claims and what storage.k8s.io says about drivers: the fields that scheduling reads.

The defaults are those of the API server. Quantities keep their text; `check_*` refuse what cannot be read, so that no
rule has to. Upstream: staging/src/k8s.io/api/core/v1, storage/v1, and component-helpers/storage.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.integers import MIN_INT64, Int32
from kschedx.api.pod_volumes import (
    FILESYSTEM,
    InTreeVolumeSources,
    PersistentVolumeClaimSpec,
)
from kschedx.api.quantity import ResourceList, Written, parse_quantity
from kschedx.api.quantity import value as quantity_value
from kschedx.api.resources import nano_units
from kschedx.api.selectors import LabelSelector, NodeSelector
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import ObjectMeta
from kschedx.errors import InputError, Place

STORAGE = "storage"
"""The resource name of a volume's size."""

READ_WRITE_ONCE_POD = "ReadWriteOncePod"

IMMEDIATE = "Immediate"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes are made by hand."""

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

ZONE_DELIMITER = "__"
"""Between the zones of a volume's label that names several."""

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


class NodePathSource(Struct, frozen=True, kw_only=True):
    """A place on a node's own disk; that there is one is all that counts."""


class PersistentVolumeSpec(InTreeVolumeSources, frozen=True, kw_only=True, rename="camel"):
    """Sources that nobody reads (nfs, ...) leave every source unset."""

    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    volume_mode: str = FILESYSTEM
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: NodePathSource | None = None
    host_path: NodePathSource | None = None

    @property
    def is_on_node(self) -> bool:
        return self.local is not None or self.host_path is not None


class PersistentVolumeStatus(Struct, frozen=True, kw_only=True):
    phase: str = "Pending"


class PersistentVolume(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def storage_class(self) -> str:
        """GetPersistentVolumeClass: the beta annotation comes first."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name)

    @property
    def size(self) -> int:
        """Exact, in nano-bytes; 0 where the volume names none."""
        return nano_units(self.spec.capacity.get(STORAGE, "0"))

    @property
    def size_in_bytes(self) -> int:
        return quantity_value(self.spec.capacity.get(STORAGE, "0"))

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The nodes that can reach the volume; None for all."""
        return self.spec.node_affinity.required if self.spec.node_affinity else None


# --- claims


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True):
    phase: str = "Pending"


class PersistentVolumeClaim(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def names_class(self) -> bool:
        """PersistentVolumeClaimHasClass: the empty name counts."""
        return BETA_STORAGE_CLASS in self.metadata.annotations or self.spec.storage_class_name is not None

    @property
    def storage_class(self) -> str:
        """GetPersistentVolumeClaimClass: the beta annotation comes first; empty where there is none."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name or "")

    @property
    def size(self) -> int:
        """Exact, in nano-bytes; 0 where the claim asks for none."""
        return nano_units(self.spec.resources.requests.get(STORAGE, "0"))

    @property
    def size_in_bytes(self) -> int:
        return quantity_value(self.spec.resources.requests.get(STORAGE, "0"))

    @property
    def is_fully_bound(self) -> bool:
        """The volume controller has finished, not only begun."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def selected_node(self) -> str | None:
        """The node for which the volume is being provisioned; None where nothing was chosen."""
        return self.metadata.annotations.get(SELECTED_NODE)


class Ordinals(Struct, frozen=True):
    start: int = 0


class OfStatefulSetSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: Int32 | None = None
    ordinals: Ordinals | None = None
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


class OfStatefulSet(Struct, frozen=True, kw_only=True):
    """How many pods a StatefulSet wants, and what it gives them beside the template."""

    spec: OfStatefulSetSpec = OfStatefulSetSpec()


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """IsVolumeBoundToClaim: the volume names the claim, and the claim's uid where it names one."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def not_found(resource: str, name: str) -> str:
    """The API's own words: `persistentvolumeclaim "data" not found`."""
    return f'{resource} "{name}" not found'


# --- classes and drivers


class TopologySelectorLabelRequirement(Struct, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True, kw_only=True, rename="camel"):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def waits_for_first_consumer(self) -> bool:
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def can_provision(self) -> bool:
        return self.provisioner not in ("", NO_PROVISIONER)

    @property
    def is_default(self) -> bool:
        return any(self.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS)


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """GetDefaultClass: of several the newest, of equally new ones the first by name."""

    def created(one: StorageClass) -> int:
        return nanoseconds(one.metadata.creation_timestamp) if one.metadata.creation_timestamp else MIN_INT64

    defaults = sorted((one for one in classes if one.is_default), key=lambda one: one.name)
    return max(defaults, key=created, default=None)


def with_default_class(claim: PersistentVolumeClaim, default: StorageClass | None) -> PersistentVolumeClaim:
    """The claim as admission and the volume controller leave it: an unbound one without a class gets the default."""
    if default is None or claim.names_class or claim.spec.volume_name:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default.name))


class CSINodeResources(Struct, frozen=True, kw_only=True):
    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: CSINodeResources | None = None


class CSINodeSpec(Struct, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Struct, frozen=True, kw_only=True):
    """Named after the node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()

    @property
    def limits(self) -> dict[str, int]:
        """Driver to the number of volumes that can be attached; a driver without a limit is absent."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """In-tree plugins whose volumes the node's kubelet leaves to CSI drivers."""
        return frozenset(self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")) - {""}


class CSIDriverSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Written | None = None
    maximum_volume_size: Written | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def limit(self) -> int | None:
        """The largest volume that can be made, in bytes: maximumVolumeSize is more precise than capacity."""
        written = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return None if written is None else quantity_value(written)

    @property
    def free(self) -> int:
        """Capacity in bytes, 0 where unknown."""
        return 0 if self.capacity is None else quantity_value(self.capacity)


class VolumeAttachmentSource(Struct, frozen=True, kw_only=True, rename="camel"):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


# --- checks


def check_quantities(item: PersistentVolume | PersistentVolumeClaim | CSIStorageCapacity) -> None:
    """Raises `InputError` with the field's path for a size that is no quantity."""
    sizes: dict[str, Written | None]
    match item:
        case PersistentVolume():
            sizes = {"spec.capacity[storage]": item.spec.capacity.get(STORAGE)}
        case PersistentVolumeClaim():
            sizes = {"spec.resources.requests[storage]": item.spec.resources.requests.get(STORAGE)}
        case CSIStorageCapacity():
            sizes = {"capacity": item.capacity, "maximumVolumeSize": item.maximum_volume_size}
    for path, written in sizes.items():
        if written is None:
            continue
        try:
            parse_quantity(written)
        except InputError as error:
            raise error.at(Place(field=path)) from None

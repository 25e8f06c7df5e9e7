"""What doctor reads and keeps of an object of any kind."""

from __future__ import annotations

import re
import sys

from msgspec import Raw, Struct, field

from kschedx.doctor.findings import ObjectDifference
from kschedx.errors import Place
from kschedx.kube.kinds import KINDS
from kschedx.sources.batch import Origin

# Kubernetes versions as kubelets and API servers report them.

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?", re.ASCII)


def minor_of(version: str) -> tuple[int, int]:
    """Return (1, 36) for `v1.36.2-gke.7`; (0, 0) for an invalid version."""
    return key_of(version)[:2]


def key_of(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version; (0, 0, 0) for an invalid one."""
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


# The shape in which doctor reads objects of every kind: references and times. One shape serves all kinds, so that a
# mixed list is decoded at once. If an object has fields of other types, only its head is read.


class RawOwner(Struct, rename="camel", gc=False):
    api_version: str | None = ""
    kind: str | None = ""
    name: str | None = ""
    uid: str | None = ""
    controller: bool | None = False

    @property
    def group(self) -> str:
        return (self.api_version or "").rpartition("/")[0]


class RawMetadata(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    generate_name: str | None = ""
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    creation_timestamp: str | None = ""
    owner_references: list[RawOwner] | None = None


class RawHead(Struct, kw_only=True, rename="camel", gc=False):
    """The fields that every object has."""

    kind: str | None = ""
    api_version: str | None = ""
    metadata: RawMetadata | None = None


class ClaimVolume(Struct, rename="camel", gc=False):
    claim_name: str | None = ""


class RawVolume(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: Raw | None = None


class RawSpec(Struct, kw_only=True, rename="camel", gc=False):
    """The spec of pods, nodes, volumes, and claims in one."""

    node_name: str | None = ""
    volumes: list[RawVolume] | None = None
    priority_class_name: str | None = ""
    runtime_class_name: str | None = ""
    resource_claims: list[Raw] | None = None
    scheduling_group: dict[str, object] | None = None
    scheduling_gates: list[dict[str, object]] | None = None
    scheduler_name: str | None = ""
    storage_class_name: str | None = ""
    volume_name: str | None = ""
    provider_id: str | None = field(default="", name="providerID")


class RawCondition(Struct, kw_only=True, rename="camel", gc=False):
    type: str | None = ""
    status: str | None = ""
    last_heartbeat_time: str | None = ""
    last_transition_time: str | None = ""


class RawNodeInfo(Struct, rename="camel", gc=False):
    kubelet_version: str | None = ""


class RawStatus(Struct, kw_only=True, rename="camel", gc=False):
    """The status of pods, nodes, and workloads in one."""

    phase: str | None = ""
    start_time: str | None = ""
    conditions: list[RawCondition] | None = None
    node_info: RawNodeInfo | None = None
    replicas: int | None = 0
    current_number_scheduled: int | None = 0
    active: int | list[Raw] | None = 0
    """The number of a Job's active pods; for a CronJob, the list of its Jobs."""


class RawItem(RawHead, kw_only=True, rename="camel", gc=False):
    spec: RawSpec | None = None
    status: RawStatus | None = None


COUNTED_BY = {
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "DaemonSet": "current_number_scheduled",
    "Job": "active",
}
"""Kinds that create pods themselves, and the status field that counts these."""

_NOBODY = RawOwner()
_NO_SPEC, _NO_STATUS, _NO_CONDITION = RawSpec(), RawStatus(), RawCondition()
_FINISHED = ("Succeeded", "Failed")


class DumpObject(Struct, gc=False):
    """An object that scheduling reads."""

    kind: str
    namespace: str
    """Empty for cluster-scoped objects."""
    metadata: RawMetadata
    origin: Origin
    index: int

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def version(self) -> str:
        return self.metadata.resource_version or ""

    @property
    def created(self) -> str:
        return self.metadata.creation_timestamp or ""

    @property
    def owner(self) -> RawOwner:
        """The controller, else the first owner; an owner without a kind if there is none."""
        owners = self.metadata.owner_references
        if not owners:
            return _NOBODY
        return owners[0] if len(owners) == 1 else next((owner for owner in owners if owner.controller), owners[0])

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def place(self) -> Place:
        return self.origin.place(self.index)


class DumpPod(DumpObject, gc=False):
    node: str
    phase: str
    started: str
    seen: str
    """The newest time in the pod."""
    claims: tuple[str, ...]
    """PersistentVolumeClaims."""
    priority_class: str
    runtime_class: str
    has_device_claims: bool
    is_in_group: bool
    addon: str
    """The project that gates or schedules it instead of kube-scheduler, as named in `api.kinds`: `Kueue`, `Volcano`.
    Empty if there is none, or if the project's objects are not read."""

    @property
    def is_finished(self) -> bool:
        return self.phase in _FINISHED

    @property
    def is_static(self) -> bool:
        """Whether a kubelet runs it from a file and creates a mirror pod for it."""
        return self.owner.kind == "Node"


class DumpNode(DumpObject, gc=False):
    cloud: str
    """The prefix of its providerID: `aws`, `gce`."""
    kubelet: str
    """`v1.36.2`."""
    is_ready: bool
    heartbeat: str
    """The last heartbeat of the condition Ready."""


class DumpClaim(DumpObject, gc=False):
    """A PersistentVolumeClaim or a PersistentVolume."""

    storage_class: str
    volume: str


class DumpWorkload(DumpObject, gc=False):
    pods: int
    """The number of pods in its status."""


def remember(item: RawItem, kind: str, origin: Origin, index: int) -> DumpObject:
    """Return the facts of an object of a kind that is read."""
    metadata, spec, status = item.metadata or RawMetadata(), item.spec or _NO_SPEC, item.status or _NO_STATUS
    namespace = sys.intern(metadata.namespace or "default") if KINDS[kind].is_namespaced else ""
    common = kind, namespace, metadata, origin, index
    match kind:
        case "Pod":
            return _pod(common, metadata, spec, status)
        case "Node":
            ready = next(
                (condition for condition in status.conditions or () if condition.type == "Ready"), _NO_CONDITION
            )
            return DumpNode(
                *common,
                cloud=_cloud(spec.provider_id or ""),
                kubelet=(status.node_info.kubelet_version if status.node_info else "") or "",
                is_ready=ready.status == "True",
                heartbeat=ready.last_heartbeat_time or "",
            )
        case "PersistentVolumeClaim" | "PersistentVolume":
            return DumpClaim(*common, storage_class=spec.storage_class_name or "", volume=spec.volume_name or "")
        case _ if kind in COUNTED_BY:
            pods = getattr(status, COUNTED_BY[kind])
            return DumpWorkload(*common, pods=pods if isinstance(pods, int) else 0)
    return DumpObject(*common)


def _cloud(provider_id: str) -> str:
    """Return `aws` and the like; Oracle's nodes have bare identifiers. Empty for a value that no cloud writes."""
    scheme, separator, _ = provider_id.partition("://")
    return scheme if separator else "oci" if provider_id.startswith("ocid1.") else ""


def _pod(
    common: tuple[str, str, RawMetadata, Origin, int], metadata: RawMetadata, spec: RawSpec, status: RawStatus
) -> DumpPod:
    times = [condition.last_transition_time or "" for condition in status.conditions or ()]
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name or "")
        elif volume.ephemeral is not None:
            claims.append(f"{metadata.name}-{volume.name}")
    return DumpPod(
        *common,
        node=sys.intern(spec.node_name or ""),
        phase=sys.intern(status.phase or ""),
        started=status.start_time or "",
        seen=max(*times, status.start_time or "", metadata.creation_timestamp or ""),
        claims=tuple(filter(None, claims)),
        priority_class=sys.intern(spec.priority_class_name or ""),
        runtime_class=sys.intern(spec.runtime_class_name or ""),
        has_device_claims=bool(spec.resource_claims),
        is_in_group=spec.scheduling_group is not None,
        addon=_addon(spec),
    )


def difference(first: DumpObject, second: DumpObject) -> ObjectDifference:
    """Return the difference between two objects of one name."""
    if first.uid and second.uid and first.uid != second.uid:
        return ObjectDifference.OBJECT
    if not (first.uid and second.uid and first.version and second.version):
        return ObjectDifference.UNKNOWN
    return ObjectDifference.NONE if first.version == second.version else ObjectDifference.STATE


_SCHEDULERS = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "runai-scheduler": "KAI",
    "koord-scheduler": "Koordinator",
}


def _addon(spec: RawSpec) -> str:
    gates = [str(gate.get("name") or "") for gate in spec.scheduling_gates or ()]
    if any(gate.startswith("kueue.x-k8s.io/") for gate in gates):
        return "Kueue"
    return _SCHEDULERS.get(spec.scheduler_name or "", "")

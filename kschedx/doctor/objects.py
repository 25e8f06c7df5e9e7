"""The facts that doctor remembers of an object."""

from __future__ import annotations

import sys

from msgspec import Struct

from kschedx.api.kinds import KINDS
from kschedx.doctor.findings import Difference
from kschedx.doctor.wire import Condition, Item, Metadata, Owner, Spec, Status
from kschedx.errors import Place
from kschedx.sources.batch import Origin

COUNTED_BY = {
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "DaemonSet": "current_number_scheduled",
    "Job": "active",
}
"""What makes pods itself, and the field of its status that counts them."""

_NOBODY = Owner()
_NO_SPEC, _NO_STATUS, _NO_CONDITION = Spec(), Status(), Condition()
_FINISHED = ("Succeeded", "Failed")


class Object(Struct, gc=False):
    """An object that scheduling reads."""

    kind: str
    namespace: str
    """Empty for what is in none."""
    metadata: Metadata
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
    def owner(self) -> Owner:
        """Its controller, else its first owner; of no kind where it has none."""
        owners = self.metadata.owner_references
        if not owners:
            return _NOBODY
        return owners[0] if len(owners) == 1 else next((one for one in owners if one.controller), owners[0])

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def place(self) -> Place:
        return self.origin.place(self.index)


class Pod(Object, gc=False):
    node: str
    phase: str
    started: str
    seen: str
    """The newest time that it tells."""
    claims: tuple[str, ...]
    """Names of its PersistentVolumeClaims."""
    priority_class: str
    runtime_class: str
    has_device_claims: bool
    is_in_group: bool
    addon: str
    """Who holds or schedules it instead of kube-scheduler, as `api.kinds` calls that: `Kueue`, `Volcano`; empty for
    nobody whose objects are read."""

    @property
    def is_finished(self) -> bool:
        return self.phase in _FINISHED

    @property
    def is_static(self) -> bool:
        """A kubelet runs it from a file and shows it to the API server (a mirror pod)."""
        return self.owner.kind == "Node"


class Node(Object, gc=False):
    cloud: str
    """What its providerID begins with: `aws`, `gce`."""
    kubelet: str
    """`v1.36.2`."""
    is_ready: bool
    heartbeat: str
    """Of the condition Ready."""


class Claim(Object, gc=False):
    """A PersistentVolumeClaim or a PersistentVolume."""

    storage_class: str
    volume: str


class Workload(Object, gc=False):
    pods: int
    """How many it says it has."""


def remember(item: Item, kind: str, origin: Origin, index: int) -> Object:
    """The facts of an object of a kind that is read."""
    metadata, spec, status = item.metadata or Metadata(), item.spec or _NO_SPEC, item.status or _NO_STATUS
    namespace = sys.intern(metadata.namespace or "default") if KINDS[kind].is_namespaced else ""
    common = kind, namespace, metadata, origin, index
    match kind:
        case "Pod":
            return _pod(common, metadata, spec, status)
        case "Node":
            ready = next((one for one in status.conditions or () if one.type == "Ready"), _NO_CONDITION)
            return Node(
                *common,
                cloud=_cloud(spec.provider_id or ""),
                kubelet=(status.node_info.kubelet_version if status.node_info else "") or "",
                is_ready=ready.status == "True",
                heartbeat=ready.last_heartbeat_time or "",
            )
        case "PersistentVolumeClaim" | "PersistentVolume":
            return Claim(*common, storage_class=spec.storage_class_name or "", volume=spec.volume_name or "")
        case _ if kind in COUNTED_BY:
            pods = getattr(status, COUNTED_BY[kind])
            return Workload(*common, pods=pods if isinstance(pods, int) else 0)
    return Object(*common)


def _cloud(provider_id: str) -> str:
    """`aws`; Oracle's nodes have bare identifiers. Empty for what nobody's cloud would write."""
    scheme, separator, _ = provider_id.partition("://")
    return scheme if separator else "oci" if provider_id.startswith("ocid1.") else ""


def _pod(common: tuple[str, str, Metadata, Origin, int], metadata: Metadata, spec: Spec, status: Status) -> Pod:
    times = [one.last_transition_time or "" for one in status.conditions or ()]
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name or "")
        elif volume.ephemeral is not None:
            claims.append(f"{metadata.name}-{volume.name}")
    return Pod(
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


def difference(first: Object, second: Object) -> Difference:
    """Of two objects of one name."""
    if first.uid and second.uid and first.uid != second.uid:
        return Difference.OBJECT
    if not (first.uid and second.uid and first.version and second.version):
        return Difference.UNKNOWN
    return Difference.NONE if first.version == second.version else Difference.STATE


_SCHEDULERS = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "runai-scheduler": "KAI",
    "koord-scheduler": "Koordinator",
}


def _addon(spec: Spec) -> str:
    gates = [str(gate.get("name") or "") for gate in spec.scheduling_gates or ()]
    if any(gate.startswith("kueue.x-k8s.io/") for gate in gates):
        return "Kueue"
    return _SCHEDULERS.get(spec.scheduler_name or "", "")

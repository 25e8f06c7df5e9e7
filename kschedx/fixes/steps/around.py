"""Steps that change what is around the pod: claims, volumes, devices, other pods."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.api.devices import ResourceClaim
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kschedx.api.types import PodResourceClaimStatus
from kschedx.fixes.cost import Cost


class CreateClaim(Struct, frozen=True, kw_only=True):
    """A claim that the pod names and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    template_of: str = ""
    """The StatefulSet whose template says what the claim asks for."""
    is_ephemeral: bool = False
    """As kube-controller-manager makes it for the pod's ephemeral volume."""


class ShrinkClaim(Struct, frozen=True, kw_only=True):
    """A claim goes and comes again, asking for less: an unbound claim's spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: PersistentVolumeClaim
    size: str


class RecreateClaim(Struct, frozen=True, kw_only=True):
    """A claim goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    storage_class: str = ""
    """The class that it names now, where that is different."""


class GiveUpVolume(Struct, frozen=True, kw_only=True):
    """A claim that is bound goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.DATA
    claim: PersistentVolumeClaim
    volume: str


class CreateStorageClass(Struct, frozen=True, kw_only=True):
    """The class that a claim names, as one whose volumes are made once a pod that wants them is scheduled."""

    cost: ClassVar[Cost] = Cost.AROUND
    storage_class: StorageClass


class BindClaim(Struct, frozen=True, kw_only=True):
    """An existing volume that nobody has is bound to the claim."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    volume: str


class ReleaseVolume(Struct, frozen=True, kw_only=True):
    """A volume that is kept for a claim that is gone may be bound again; what is on it stays."""

    volume: PersistentVolume
    """As it is then."""
    holder: str
    """The claim that it was bound to."""
    is_its_own: bool
    """It was bound to a claim of the same name: the claim was made anew."""

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if self.is_its_own else Cost.AROUND


class CreateVolume(Struct, frozen=True, kw_only=True):
    """A volume for a claim; `claim` is set where the two are bound to each other beforehand."""

    volume: PersistentVolume
    claim_key: str
    claim: PersistentVolumeClaim | None
    provisioner: str = ""
    """Who should have made it."""
    is_restored: bool = False
    """The claim names it already."""

    @property
    def cost(self) -> Cost:
        by_hand = self.provisioner and self.claim is None
        return Cost.STOPGAP if by_hand else Cost.AROUND


class CreateDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim that the pod needs and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    template: str = ""
    status: PodResourceClaimStatus | None = None
    """What the controller writes to the pod's status."""


class AskForFewerDevices(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again with a request for less: its spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str
    count: int


class WidenDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again without selectors, without the share that it wants of a device, or without
    what its devices must have in common."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str = ""
    """Whose selectors go; empty where the constraints go."""
    capacity: bool = False
    """It is the request's capacity that goes."""


class NextAttempt(Struct, frozen=True, kw_only=True):
    """kube-scheduler takes device claims back when the pod fits nowhere, and tries again."""

    cost: ClassVar[Cost] = Cost.WAITING
    released: tuple[tuple[str, ResourceClaim | None], ...]
    """`namespace/name`, and the claim as it is left; None where it is deleted."""


class RecreateDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again: it is allocated anew."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    device_class: str = ""
    """The class that the request names now, where that is different."""


class CreateDeviceClass(Struct, frozen=True, kw_only=True):
    """A DeviceClass that every device is of."""

    cost: ClassVar[Cost] = Cost.AROUND
    name: str


class Victim(Struct, frozen=True, kw_only=True):
    row: int
    pod: str
    """`namespace/name`."""
    priority: int


class TakeOldFirst(Struct, frozen=True, kw_only=True):
    """A Deployment takes an old pod away before it makes a new one: `maxSurge: 0`, or `Recreate` where it wants one."""

    cost: ClassVar[Cost] = Cost.POD
    deployment: str
    old: Victim
    is_single: bool = False
    """The Deployment wants a single pod."""


class DeletePods(Struct, frozen=True, kw_only=True):
    victims: tuple[Victim, ...]
    node: str = ""
    """The node on which room is made; empty where it does not matter where they run."""
    by_preemption: bool = False
    """kube-scheduler is about to do it by itself."""
    or_elsewhere: int = 0
    """Further nodes among which preemption picks by chance."""
    protected: int = 0
    """Of them, pods that preemption evicts against a PodDisruptionBudget."""

    @property
    def cost(self) -> Cost:
        return Cost.WAITING if self.by_preemption else Cost.OTHER_PODS


class AwaitTermination(Struct, frozen=True, kw_only=True):
    """Pods that are being deleted already are gone."""

    cost: ClassVar[Cost] = Cost.WAITING
    victims: tuple[Victim, ...]
    node: str = ""
    """The node on which that makes room; empty where it does not matter where they run."""


class StopWorkload(Struct, frozen=True, kw_only=True):
    """A Job goes, or what makes pods makes none any more: a pod alone would come again, and want the same."""

    cost: ClassVar[Cost] = Cost.OTHER_PODS
    api_version: str
    kind: str
    namespace: str
    name: str
    victims: tuple[Victim, ...]
    """All the pods that it has."""

    @property
    def is_deleted(self) -> bool:
        return self.kind == "Job"

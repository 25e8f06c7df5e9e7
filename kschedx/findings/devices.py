"""Findings about devices and their claims."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts


class DeviceClaimNotFound(Facts, frozen=True, kw_only=True):
    """A ResourceClaim `namespace/name` that the pod names does not exist."""

    reason: ClassVar[str] = "device-claim-not-found"
    claim: str
    pod_claim: str
    """The claim's name in the pod."""


class DeviceClaimNotCreated(Facts, frozen=True, kw_only=True):
    """The ResourceClaim for one of the pod's templates does not exist yet."""

    reason: ClassVar[str] = "device-claim-not-created"
    pod_claim: str
    template: str
    template_exists: bool | None
    """None if it is unknown: the snapshot lacks the template, but may not list all of them."""


class DeviceClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-claim-being-deleted"
    claim: str
    since: str


class DeviceClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A ResourceClaim created from a template belongs to another object (`owner` is empty if there is none)."""

    reason: ClassVar[str] = "device-claim-not-owned"
    claim: str
    owner: str


class DeviceClassNotFound(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-class-not-found"
    claim: str
    request: str
    device_class: str
    classes: tuple[str, ...]


class DeviceSelectorFailed(Facts, frozen=True, kw_only=True):
    """A CEL expression cannot be evaluated on a device, which ends the attempt to schedule the pod."""

    reason: ClassVar[str] = "device-selector-failed"
    owner: str
    """`class NAME` or `claim NAMESPACE/NAME`."""
    expression: str
    device: str
    """`driver/pool/device`."""
    error: str


class DeviceClaimOutOfReach(Facts, frozen=True, kw_only=True):
    """The claim is allocated, but the node cannot use its devices.

    `cause` is `elsewhere` (the allocation is for other nodes), `binding-failed`, or `binding-late` (the driver did not
    get the devices ready).
    """

    reason: ClassVar[str] = "device-claim-out-of-reach"
    claim: str
    cause: str
    devices: tuple[str, ...]
    """`driver/pool/device`."""
    where: str
    """The node selector of the allocation."""
    consumers: tuple[str, ...]
    """The consumers for which the claim is reserved, such as `pods/name`."""

    @property
    def distance(self) -> float:
        return 2.0  # a device does not move


class DeviceHolder(Struct, frozen=True, kw_only=True):
    device: str
    """`pool/device`."""
    claim: str
    consumers: tuple[str, ...]


class CounterShortage(Struct, frozen=True, kw_only=True):
    """A counter shared by partitions of one device has too little left. Amounts are quantities."""

    pool: str
    counter: str
    """`set/counter`."""
    needed: str
    left: str


class DeviceShortage(Struct, frozen=True, kw_only=True):
    """A request for which a node has too few devices: of those in reach, some match, and of these, some are free."""

    claim: str
    request: str
    device_class: str
    wanted: int | None
    """None for all matching devices."""
    in_reach: int
    of_class: int
    matching: int
    """The devices of the class that the request's own selectors match."""
    free: int
    selectors: tuple[str, ...]
    """The expressions that are false for some device: those of the class if no device matches it, otherwise those of
    the request."""
    values: tuple[str, ...]
    """The devices' values of the attributes and capacities in these expressions: `model=a100 on 2`."""
    holders: tuple[DeviceHolder, ...]
    taints: tuple[str, ...]
    """Untolerated ones, with the number of devices that have them."""
    counters: tuple[CounterShortage, ...]
    capacity: tuple[str, ...]
    """Devices with too little free capacity for the request."""
    updating: tuple[str, ...]
    """Pools with incomplete slices."""

    @property
    def stage(self) -> str:
        """The first check that too few of the node's devices pass: `none`, `other-class`, `no-match`, or `taken`."""
        if not self.in_reach:
            return "none"
        if not self.of_class:
            return "other-class"
        return "taken" if self.matching else "no-match"

    @property
    def missing(self) -> float:
        """How far the node is from satisfying the request: below 2 if some device matches, 2 or more otherwise."""
        stages = {"none": 4.0, "other-class": 3.0, "no-match": 2.0}
        if self.stage != "taken":
            return stages[self.stage]
        wanted = self.matching if self.wanted is None else self.wanted
        lacking = max(wanted - self.matching, 0) / max(wanted, 1)
        return lacking + max(wanted - self.free, 0) / max(wanted, 1)


class InsufficientDevices(Facts, frozen=True, kw_only=True):
    """The node cannot allocate devices for the claims. Without shortages, each request could be allocated on its own,
    but not all of them together."""

    reason: ClassVar[str] = "insufficient-devices"
    shortages: tuple[DeviceShortage, ...]
    claims: tuple[str, ...]
    constraints: tuple[str, ...]
    """The attributes in which devices must have the same or distinct values."""

    @property
    def same_as(self) -> Hashable:
        return self.claims, tuple((shortage.claim, shortage.request, shortage.stage) for shortage in self.shortages)

    @property
    def distance(self) -> float:
        return sum((shortage.missing for shortage in self.shortages), 0.0) or 0.25


class DevicesToAllocate(Facts, frozen=True, kw_only=True):
    """The devices that a claim would get on the chosen node."""

    reason: ClassVar[str] = "devices-to-allocate"
    claim: str
    devices: tuple[str, ...]
    """`driver/pool/device`."""
    requests: tuple[str, ...]
    """For each device, the request that it satisfies: `request`, or `request/alternative`."""


DeviceFinding = (
    DeviceClaimNotFound
    | DeviceClaimNotCreated
    | DeviceClaimBeingDeleted
    | DeviceClaimNotOwned
    | DeviceClassNotFound
    | DeviceSelectorFailed
    | DeviceClaimOutOfReach
    | InsufficientDevices
    | DevicesToAllocate
)

"""Devices and their claims."""

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
    """The name that the pod has for it."""


class DeviceClaimNotCreated(Facts, frozen=True, kw_only=True):
    """The ResourceClaim for one of the pod's templates has not been made yet."""

    reason: ClassVar[str] = "device-claim-not-created"
    pod_claim: str
    template: str
    template_exists: bool | None
    """None where it is not in a snapshot that need not hold all of them."""


class DeviceClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-claim-being-deleted"
    claim: str
    since: str


class DeviceClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A ResourceClaim that was made from a template belongs to another object (`owner` is empty for none)."""

    reason: ClassVar[str] = "device-claim-not-owned"
    claim: str
    owner: str


class DeviceClassNotFound(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-class-not-found"
    claim: str
    request: str
    device_class: str
    classes: tuple[str, ...]
    """Those that exist."""


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
    """The claim is allocated, and the node cannot use its devices.

    `cause` is `elsewhere` (the allocation is for other nodes), `binding-failed` or `binding-late` (the driver did not
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
    """For whom it is reserved, such as `pods/name`."""

    @property
    def distance(self) -> float:
        return 2.0  # a device does not move


class DeviceHolder(Struct, frozen=True, kw_only=True):
    device: str
    """`pool/device`."""
    claim: str
    consumers: tuple[str, ...]


class CounterShortage(Struct, frozen=True, kw_only=True):
    """What partitions of one piece of hardware share does not suffice. Amounts are quantities."""

    pool: str
    counter: str
    """`set/counter`."""
    needed: str
    left: str


class DeviceShortage(Struct, frozen=True, kw_only=True):
    """A request that gets too few devices of a node: of those in reach some match, and of these some are free."""

    claim: str
    request: str
    device_class: str
    wanted: int | None
    """None for all that match."""
    in_reach: int
    of_class: int
    matching: int
    """Of the class, and what the request's own selectors pick."""
    free: int
    selectors: tuple[str, ...]
    """The expressions that some device fails: of the class where none is of it, otherwise of the request."""
    values: tuple[str, ...]
    """What the devices have of the attributes and capacities that these name: `model=a100 on 2`."""
    holders: tuple[DeviceHolder, ...]
    taints: tuple[str, ...]
    """Untolerated ones, with the number of devices that have them."""
    counters: tuple[CounterShortage, ...]
    capacity: tuple[str, ...]
    """Devices that have too little left of what is asked for."""
    updating: tuple[str, ...]
    """Pools whose slices are not complete."""

    @property
    def stage(self) -> str:
        """How far the node's devices come: `none`, `other-class`, `no-match` or `taken`."""
        if not self.in_reach:
            return "none"
        if not self.of_class:
            return "other-class"
        return "taken" if self.matching else "no-match"

    @property
    def missing(self) -> float:
        """How far the node is from what is asked for: 0..1 for devices that are taken, more where there are none."""
        stages = {"none": 4.0, "other-class": 3.0, "no-match": 2.0}
        if self.stage != "taken":
            return stages[self.stage]
        wanted = self.matching if self.wanted is None else self.wanted
        lacking = max(wanted - self.matching, 0) / max(wanted, 1)
        return lacking + max(wanted - self.free, 0) / max(wanted, 1)


class InsufficientDevices(Facts, frozen=True, kw_only=True):
    """The node cannot give the claims their devices. No shortage: each request alone could be met, all together not."""

    reason: ClassVar[str] = "insufficient-devices"
    shortages: tuple[DeviceShortage, ...]
    claims: tuple[str, ...]
    constraints: tuple[str, ...]
    """What devices must have in common, or must differ in."""

    @property
    def same_as(self) -> Hashable:
        return self.claims, tuple((one.claim, one.request, one.stage) for one in self.shortages)

    @property
    def distance(self) -> float:
        return sum((one.missing for one in self.shortages), 0.0) or 0.25


class DevicesToAllocate(Facts, frozen=True, kw_only=True):
    """What a claim would get on the chosen node."""

    reason: ClassVar[str] = "devices-to-allocate"
    claim: str
    devices: tuple[str, ...]
    """`driver/pool/device`."""
    requests: tuple[str, ...]
    """By device, what it is for: `request`, or `request/alternative`."""


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

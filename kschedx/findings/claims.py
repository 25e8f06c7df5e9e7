"""The claims of a pod."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts


class ClaimFacts(Struct, frozen=True, kw_only=True):
    """What a claim asks for."""

    claim: str
    """`namespace/name`."""
    storage_class: str
    """Empty where it names none."""
    requested: int
    """Bytes; 0 where it asks for no size."""
    access_modes: tuple[str, ...]
    volume_mode: str
    selector: str = ""
    """Its label selector, `tier=hot, zone In [a, b]`; empty where it has none."""


class ClaimNotFound(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-not-found"
    claim: str
    volume: str
    """The pod's volume that needs it."""
    ephemeral: bool
    """kube-controller-manager is to create it, from the pod's own template."""


class ClaimLost(Facts, frozen=True, kw_only=True):
    """The claim was bound to a volume that is gone."""

    reason: ClassVar[str] = "claim-lost"
    claim: str
    persistent_volume: str


class ClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-being-deleted"
    claim: str
    since: str
    """The deletion timestamp."""


class ClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A claim that has the name of an ephemeral volume's claim was made for somebody else."""

    reason: ClassVar[str] = "claim-not-owned"
    claim: str
    owner: str
    """`Kind/name` of its controller; empty where it has none."""


class ClaimUnbound(Facts, frozen=True, kw_only=True):
    """The claim must be bound before its pod is scheduled, and is not.

    `cause` is `no-class`, `class-missing`, `immediate` (the class binds at once) or `prebound` (the claim names a
    volume that the volume controller has not finished binding).
    """

    reason: ClassVar[str] = "claim-unbound"
    claim: ClaimFacts
    cause: str
    provisioner: str
    persistent_volume: str


class VolumeNotFound(Facts, frozen=True, kw_only=True):
    """A claim is bound to a PersistentVolume that does not exist."""

    reason: ClassVar[str] = "volume-not-found"
    claim: str
    persistent_volume: str


ClaimFinding = ClaimNotFound | ClaimLost | ClaimBeingDeleted | ClaimNotOwned | ClaimUnbound | VolumeNotFound

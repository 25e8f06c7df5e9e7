"""What other pods hold: amounts, places for pods, host ports."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from kschedx.findings.facts import Facts


class HostPortConflict(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "host-port-conflict"
    port: int
    protocol: str
    host_ip: str
    holder: str
    """`namespace/name` of the pod that has it."""
    holder_host_ip: str

    @property
    def same_as(self) -> Hashable:
        return self.port, self.protocol


class InsufficientResource(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "insufficient-resource"
    resource: str
    requested: int
    used: int
    allocatable: int
    unit: str
    """`m` for cpu, empty for everything else."""
    offered_nowhere: bool = False
    """No node of the cluster has any of it."""

    @property
    def free(self) -> int:
        return self.allocatable - self.used

    @property
    def short_by(self) -> int:
        return self.requested - self.free

    @property
    def never_fits(self) -> bool:
        """Not even on the empty node."""
        return self.requested > self.allocatable

    def to_dict(self) -> dict[str, object]:
        told = super().to_dict()
        return told if self.offered_nowhere else {key: value for key, value in told.items() if key != "offeredNowhere"}

    @property
    def same_as(self) -> Hashable:
        return self.resource, self.never_fits, self.allocatable == 0

    @property
    def distance(self) -> float:
        """What is missing as a share of what is asked."""
        return max(self.short_by, 0) / self.requested if self.requested > 0 else 1.0


class TooManyPods(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "too-many-pods"
    pods: int
    allowed: int

    @property
    def same_as(self) -> Hashable:
        return self.reason


ResourceFinding = HostPortConflict | InsufficientResource | TooManyPods

"""How a pod names the group that it is placed with."""

from __future__ import annotations

from msgspec import Struct


class PodSchedulingGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_group_name: str | None = None


class WorkloadReference(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of 1.35 alone, behind the gate GenericWorkload; a PodSchedulingGroup took its place."""

    name: str = ""
    pod_group: str = ""

"""The shape in which doctor reads objects of every kind: what names something, and what was when.

One shape serves all kinds, so that a mixed list is decoded at once. It is not that of any kind: an object whose fields
are of other types is read again by its head alone.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field


class Owner(Struct, rename="camel", gc=False):
    api_version: str | None = ""
    kind: str | None = ""
    name: str | None = ""
    uid: str | None = ""
    controller: bool | None = False

    @property
    def group(self) -> str:
        return (self.api_version or "").rpartition("/")[0]


class Metadata(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    generate_name: str | None = ""
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    creation_timestamp: str | None = ""
    owner_references: list[Owner] | None = None


class Head(Struct, kw_only=True, rename="camel", gc=False):
    """What every object has."""

    kind: str | None = ""
    api_version: str | None = ""
    metadata: Metadata | None = None


class ClaimVolume(Struct, rename="camel", gc=False):
    claim_name: str | None = ""


class Volume(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: Raw | None = None


class Spec(Struct, kw_only=True, rename="camel", gc=False):
    """Of pods, nodes, volumes and claims together."""

    node_name: str | None = ""
    volumes: list[Volume] | None = None
    priority_class_name: str | None = ""
    runtime_class_name: str | None = ""
    resource_claims: list[Raw] | None = None
    scheduling_group: dict[str, object] | None = None
    scheduling_gates: list[dict[str, object]] | None = None
    scheduler_name: str | None = ""
    storage_class_name: str | None = ""
    volume_name: str | None = ""
    provider_id: str | None = field(default="", name="providerID")


class Condition(Struct, kw_only=True, rename="camel", gc=False):
    type: str | None = ""
    status: str | None = ""
    last_heartbeat_time: str | None = ""
    last_transition_time: str | None = ""


class NodeInfo(Struct, rename="camel", gc=False):
    kubelet_version: str | None = ""


class Status(Struct, kw_only=True, rename="camel", gc=False):
    """Of pods, nodes and of what makes pods."""

    phase: str | None = ""
    start_time: str | None = ""
    conditions: list[Condition] | None = None
    node_info: NodeInfo | None = None
    replicas: int | None = 0
    current_number_scheduled: int | None = 0
    active: int | list[Raw] | None = 0
    """Pods of a Job; a CronJob lists its Jobs here."""


class Item(Head, kw_only=True, rename="camel", gc=False):
    spec: Spec | None = None
    status: Status | None = None

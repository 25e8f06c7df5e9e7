"""What is read of what makes pods, beside the template: how many it wants, and how it replaces them."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32


class RollingUpdate(Struct, frozen=True, kw_only=True, rename="camel"):
    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class Strategy(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class OfReplicasSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: Int32 | None = None
    strategy: Strategy | None = None


class OfReplicas(Struct, frozen=True, kw_only=True):
    """Of a Deployment, a ReplicaSet and a ReplicationController."""

    spec: OfReplicasSpec = OfReplicasSpec()


class OfJobSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parallelism: Int32 | None = None
    completions: Int32 | None = None


class OfJob(Struct, frozen=True, kw_only=True):
    spec: OfJobSpec = OfJobSpec()


class OfCronJobSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    job_template: OfJob = OfJob()


class OfCronJob(Struct, frozen=True, kw_only=True):
    spec: OfCronJobSpec = OfCronJobSpec()

"""What is read of a workload besides its pod template. A snapshot keeps these fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.conditions import ObjectStatus
from kschedx.kube.decoding import decode, encode
from kschedx.kube.scalars import Int32, Int64
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import ObjectMeta


class _ControllerMeta(ObjectMeta, frozen=True, kw_only=True, rename="camel"):
    generation: Int64 = 0


class _Ordinals(Struct, frozen=True):
    start: Int32 = 0


class _RollingUpdate(Struct, frozen=True, kw_only=True, rename="camel"):
    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    partition: Int32 = 0  # of a StatefulSet


class _Strategy(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    rolling_update: _RollingUpdate = _RollingUpdate()


class _ControllerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None  # immutable, so that an applied manifest is compared with it
    strategy: _Strategy | None = None  # of a Deployment
    update_strategy: _Strategy = _Strategy()  # of a StatefulSet or DaemonSet
    paused: bool | None = None
    min_ready_seconds: Int32 = 0
    ordinals: _Ordinals | None = None
    pod_management_policy: str | None = None
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    # of a Job
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    backoff_limit: Int32 | None = None
    active_deadline_seconds: Int64 | None = None

    @property
    def first_ordinal(self) -> int:
        return 0 if self.ordinals is None else self.ordinals.start


class ControllerStatus(ObjectStatus, frozen=True, kw_only=True, rename="camel"):
    """Its conditions are `ReplicaFailure` of a ReplicaSet, `Complete` and `Failed` of a Job."""

    observed_generation: Int64 | None = None
    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    update_revision: str = ""  # of a StatefulSet
    desired_number_scheduled: Int32 = 0
    updated_number_scheduled: Int32 = 0
    active: Int32 = 0
    succeeded: Int32 = 0
    start_time: str | None = None  # of a Job: when its controller first observed it
    completion_time: str | None = None
    failed_indexes: str = ""  # of a Job with `backoffLimitPerIndex`: `3,9`


class Controller(Struct, frozen=True, kw_only=True):
    """A Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, or Job."""

    metadata: _ControllerMeta = _ControllerMeta()
    spec: _ControllerSpec = _ControllerSpec()
    status: ControllerStatus = ControllerStatus()

    @property
    def is_behind(self) -> bool:
        """Whether the controller has not observed the newest change."""
        observed = self.status.observed_generation
        return observed is not None and observed < self.metadata.generation

    @property
    def wants_pods(self) -> bool:
        return self.status.completion_time is None and self.spec.replicas != 0

    @property
    def wanted_pods(self) -> int:
        """How many pods it should have now, by its kind's field: for a DaemonSet as its status counts nodes."""
        replicas, parallelism, completions = self.spec.replicas, self.spec.parallelism, self.spec.completions
        if parallelism is not None:
            left = completions - self.status.succeeded if completions is not None else parallelism
            return min(parallelism, left)
        return self.status.desired_number_scheduled or (1 if replicas is None else replicas)


class _CronJobControllerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    job_template: Controller = Controller()
    suspend: bool | None = None
    concurrency_policy: str = ""
    schedule: str = ""


class _ActiveJob(Struct, frozen=True, kw_only=True):
    name: str = ""


class _CronJobControllerStatus(Struct, frozen=True, kw_only=True):
    active: tuple[_ActiveJob, ...] = ()


class CronJobController(Struct, frozen=True, kw_only=True):
    metadata: _ControllerMeta = _ControllerMeta()
    spec: _CronJobControllerSpec = _CronJobControllerSpec()
    status: _CronJobControllerStatus = _CronJobControllerStatus()


class _Object(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_R = TypeVar("_R", bound=Struct)


@lru_cache(maxsize=4096)
def stored_controller(raw: bytes) -> Controller:
    """Return a workload of the cluster that is no CronJob."""
    return decode(raw, Controller)


@lru_cache(maxsize=4096)
def stored_metadata(raw: bytes) -> ObjectMeta:
    return decode(raw, _Object).metadata


def convert(manifest: Mapping[str, object], record: type[_R]) -> _R:
    """Return what a record reads of a manifest; nothing if a field has another type, which the API server refuses."""
    try:
        return msgspec.convert(manifest, record)
    except msgspec.ValidationError:
        pass
    try:
        return decode(encode(manifest, "the workload"), record)  # without nulls
    except InputError:
        return record()

"""What other schedulers keep of the pods that are theirs: pod groups and queues, as far as they say how it stands.

Volcano (scheduling.volcano.sh/v1beta1), scheduler-plugins and Koordinator (scheduling.x-k8s.io and
scheduling.sigs.k8s.io, v1alpha1), KAI (scheduling.run.ai, v2alpha2 and v2).
"""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32
from kschedx.api.kueue import Condition
from kschedx.api.quantity import ResourceList
from kschedx.api.types import ObjectMeta


class GroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 | None = None
    queue: str = ""
    min_resources: ResourceList = {}


class GroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    running: Int32 = 0
    scheduled: Int32 = 0


class VolcanoPodGroup(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class KaiPodGroup(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class QueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent: str = ""
    weight: Int32 | None = None
    capability: ResourceList = {}
    deserved: ResourceList = {}


class VolcanoQueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    state: str = ""
    allocated: ResourceList = {}


class VolcanoQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


Group = VolcanoPodGroup | KaiPodGroup

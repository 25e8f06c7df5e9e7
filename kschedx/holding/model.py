"""Facts about what holds a pod, or schedules it in kube-scheduler's place."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.kube.conditions import Condition
from kschedx.kube.types import Pod

if TYPE_CHECKING:
    from kschedx.kueue.verdict import Verdict


class WorkloadState(StrEnum):
    """How a pod stands with Kueue."""

    NO_WORKLOAD = "no-workload"
    NO_QUEUE = "no-queue"
    """The LocalQueue, or the ClusterQueue behind it, does not exist."""
    DEACTIVATED = "deactivated"
    STOPPED = "stopped"
    """Its queue takes nothing."""
    WAITING = "waiting"
    """In its queue, without quota."""
    CHECKING = "checking"
    """It has its quota, and waits for admission checks."""
    ADMITTED = "admitted"
    FINISHED = "finished"


class QuotaUser(Struct, frozen=True, kw_only=True):
    workload: str
    """`namespace/name`."""
    priority: int
    amount: int


class FlavorPool(Struct, frozen=True, kw_only=True):
    """A cohort, and what queues and cohorts below it have given to it and taken from it."""

    cohort: str
    quota: int
    used: int


class FlavorQuota(Struct, frozen=True, kw_only=True):
    """A resource of a flavor in a ClusterQueue; amounts are milli-cpu, and units of everything else."""

    resource: str
    flavor: str
    asked: int
    """By the whole Workload."""
    nominal: int
    used: int
    borrowing_limit: int | None
    cohort_nominal: int | None
    """What the queue's cohort pools: that of its queues and of cohorts below it, but for what they do not lend, and its
    own; None without a cohort."""
    cohort_used: int | None
    available: int
    """What Kueue would give now, lent and borrowed as it stands; negative where more is used than there is."""
    lending_limit: int | None = None
    pools: tuple[FlavorPool, ...] = ()
    """Above the queue, the nearest first."""
    users: tuple[QuotaUser, ...] = ()
    """In this queue, the largest first."""

    @property
    def free(self) -> int:
        return max(self.nominal - self.used, 0)

    @property
    def borrowed(self) -> int:
        return max(self.used - self.nominal, 0)

    @property
    def to_borrow(self) -> int:
        """The amount that the cohorts have left beyond the queue's own quota."""
        return max(self.available - self.free, 0)

    @property
    def lent(self) -> int:
        """The queue's own unused quota that other queues of the cohort use."""
        return max(self.free - max(self.available, 0), 0)

    @property
    def short(self) -> int:
        """The missing amount; 0 if the quota suffices."""
        return max(self.asked - self.available, 0)


class FlavorFit(Struct, frozen=True, kw_only=True):
    """The pod as if it were admitted with a flavor: its gates lifted, with the flavor's labels and tolerations."""

    flavor: str
    exists: bool
    nodes: int
    """With the flavor's labels."""
    feasible: tuple[str, ...]
    """Those on which the pod would pass every filter."""
    reasons: tuple[str, ...] = ()
    """Why it would pass on none: `2 Insufficient cpu`, as kube-scheduler counts."""
    refused: str = ""
    """Why Kueue gives no quota of it to this pod, which is not tried then."""
    topology: str = ""
    """Kueue picks among the nodes itself, by this Topology."""


class Kueue(Struct, frozen=True, kw_only=True, dict=True):
    """A pod and its Workload."""

    state: WorkloadState
    queue: str = ""
    known_queues: tuple[str, ...] = ()
    """The LocalQueues of the namespace, if `queue` is not one of them."""
    workload: str = ""
    """`namespace/name`."""
    cluster_queue: str = ""
    cohort: str = ""
    cohorts: tuple[str, ...] = ()
    """That one and those above it."""
    circle: tuple[str, ...] = ()
    """The cohorts, where one is above itself: Kueue admits nothing to their queues."""
    cluster: str = ""
    """Where MultiKueue sent it."""
    priority: int = 0
    said: tuple[Condition, ...] = ()
    """The conditions that explain it, of the Workload, then of its queues."""
    checks: tuple[Condition, ...] = ()
    """Those that are not ready."""
    quotas: tuple[FlavorQuota, ...] = ()
    position: int | None = None
    """In the ClusterQueue, from 1, by priority and age; None where it does not wait."""
    waiting: int = 0
    """In the ClusterQueue."""
    ahead: tuple[str, ...] = ()
    """In order."""
    fits: tuple[FlavorFit, ...] = ()
    is_gated: bool = False
    weighted_share: int | None = None
    """How far its ClusterQueue is beyond its own quota, for fair sharing in the cohort: who has the least comes first,
    who has the most is preempted first. None without fair sharing."""
    fair_weight: str = ""
    is_by_usage: bool = False
    """The LocalQueue that used the least comes first, before priority and age."""
    within_queue: str = ""
    within_cohort: str = ""
    """Whose quota it may take, by Kueue's names: `Never`, `LowerPriority`, `LowerOrNewerEqualPriority`, `Any`."""
    requeue_at: str = ""
    group: str = ""
    """The group of plain pods, for which Kueue creates a Workload once all of them exist."""
    group_pods: int = 0
    group_total: int = 0

    decide: Callable[[], Verdict | None] | None = None
    """Asks Kueue's own rules what the Workload waits for."""
    judge: Callable[[], Verdict | None] | None = None
    """Asks Kueue's own rules for the decision, and tries fixes, which takes longer than the rest."""

    @cached_property
    def decision(self) -> Verdict | None:
        return None if self.decide is None else self.decide()

    @cached_property
    def verdict(self) -> Verdict | None:
        return None if self.judge is None else self.judge()

    @property
    def fits_nowhere(self) -> bool:
        """Whether the pod would be unschedulable even if it were admitted."""
        return any(fit.exists for fit in self.fits) and not any(fit.feasible for fit in self.fits)


class Gate(Struct, frozen=True, kw_only=True):
    """A scheduling gate of a known controller."""

    name: str
    owner: str = ""
    look_at: str = ""
    """What of that owner's says how it stands."""


class QueueShare(Struct, frozen=True, kw_only=True):
    """A resource of another scheduler's queue; milli-cpu, and units of everything else."""

    resource: str
    allocated: int | None
    """None where no object says it."""
    capability: int | None = None
    """At most; None without a limit."""
    deserved: int | None = None
    """What the queue is sure of, or has for now: Volcano's deserved, KAI's quota, Koordinator's runtime."""
    requested: int | None = None
    """By all of its pods, those that wait among them."""
    is_in_thousandths: bool = False
    """All of these numbers are, though the resource is not cpu."""


class SchedulerQueue(Struct, frozen=True, kw_only=True):
    name: str
    state: str = ""
    shares: tuple[QueueShare, ...] = ()
    said: tuple[Condition, ...] = ()


class ReservedRoom(Struct, frozen=True, kw_only=True):
    """A Reservation of Koordinator, which keeps room for the pod."""

    name: str
    phase: str = ""
    node: str = ""
    said: tuple[Condition, ...] = ()
    """Conditions that are not met."""


class SharedDevices(Struct, frozen=True, kw_only=True):
    """The devices of a node that HAMi shares among pods."""

    node: str
    kind: str
    """`nvidia`, `mlu`."""
    devices: int
    healthy: int
    memory: int
    """Of the largest device, in MiB."""
    requested: int = 0
    """Of one device, by the pod, in MiB; 0 for all of it."""
    fitting: int = 0
    """Healthy devices with that much memory that no other pod has."""


class OtherScheduler(Struct, frozen=True, kw_only=True):
    """A scheduler that is not kube-scheduler, or another configuration of it that kschedx was not given."""

    name: str
    """spec.schedulerName."""
    title: str = ""
    """Empty for an unknown one."""
    group: str = ""
    """`namespace/name` of the pod's group there."""
    phase: str = ""
    said: tuple[Condition, ...] = ()
    """By the scheduler of the pod itself, then of the group and the queue."""
    queue: str = ""
    queue_state: str = ""
    known_queues: tuple[str, ...] = ()
    """The queues that exist, if `queue` is not one of them."""
    queue_shares: tuple[QueueShare, ...] = ()
    queues_above: tuple[SchedulerQueue, ...] = ()
    """The nearest first."""
    rooms: tuple[ReservedRoom, ...] = ()
    shared: tuple[SharedDevices, ...] = ()
    application: str = ""
    """What YuniKorn schedules together."""
    task_group: str = ""
    min_member: int | None = None
    members: int = 0
    """Pods of the group, or task group, in the snapshot."""
    running: int = 0
    look_at: str = ""


class GangMember(Struct, frozen=True, kw_only=True):
    """A pod of a group that has no node."""

    pod: str
    gates: tuple[str, ...] = ()
    feasible: int
    """Nodes on which it would fit alone."""
    node: str = ""
    """Where it would go with those of the group that come before it; empty where it finds none, or was not tried."""
    evicts: int = 0
    reasons: tuple[str, ...] = ()
    """Why it has no node, then or alone: `2 Insufficient cpu`, as kube-scheduler counts."""


class GangStatus(Struct, frozen=True, kw_only=True):
    """A pod group of Kubernetes itself (scheduling.k8s.io) or of Coscheduling, as a whole."""

    name: str
    min_count: int
    pods: int
    """Those that exist, including the one that is asked about."""
    placed: int
    plugin: str
    """`GangScheduling` or `Coscheduling`."""
    is_heeded: bool
    """Whether the profile has the plugin; without it, each pod is scheduled alone."""
    waiting: tuple[GangMember, ...] = ()
    """In the order in which they are tried."""
    more: int = 0
    together: int | None = None
    """How many of those that wait find a node together; None where that is not known."""
    has_ties: bool = False
    """Nodes shared the highest total on the way. Where room is lacking, the first and the last were each tried."""
    topology_key: str = ""
    """All pods of the group go to nodes that share a value of this label; empty where that is not asked for."""
    domain: str = ""
    """The value that kube-scheduler takes; where the group fits in none, the one in which most members find a node."""
    domains: int = 0
    fitting_domains: int = 0
    preempted: tuple[str, ...] = ()
    """Pods that are preempted for the group as a whole, `namespace/name on node`; the members' nodes are those after
    that."""
    preemption: str = ""
    """Why no pods are preempted for the group as a whole, in kube-scheduler's words; empty where it does not look for
    any."""
    undecided: str = ""
    message: str = ""
    """What kube-scheduler says of the pod that is asked about: it finds a node, and the group lacks room."""
    is_by_draw: bool = False
    """With the first of the tied nodes the group does not fit; with the last, as shown here, it does."""

    @property
    def is_short(self) -> bool:
        """Whether too few members exist, or too few of them fit together."""
        return self.pods < self.min_count or self.lacks_room

    @property
    def lacks_room(self) -> bool:
        """Whether enough members exist, and too few of them fit together before pods are preempted."""
        return bool(self.preempted) or (
            self.together is not None
            and self.pods >= self.min_count
            and not any(member.gates for member in self.waiting)
            and self.placed + self.together < max(self.min_count, 1)
        )


class ReportedPool(Struct, frozen=True, kw_only=True):
    """A pool of devices as a ResourcePoolStatusRequest reports it; None where it has no number."""

    request: str
    driver: str
    pool: str
    node: str = ""
    total: int | None = None
    allocated: int | None = None
    available: int | None = None
    unavailable: int | None = None
    error: str = ""


class Holding(Struct, frozen=True, kw_only=True):
    """Everything that holds a pod, or schedules it, and what the cluster reports of devices that its claims wait
    for."""

    kueue: Kueue | None = None
    gates: tuple[Gate, ...] = ()
    scheduler: OtherScheduler | None = None
    group: GangStatus | None = None
    pools: tuple[ReportedPool, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kueue or self.gates or self.scheduler or self.group or self.pools)


# How a pod is evaluated as its holder would release it.

Attempt = Callable[[Pod, frozenset[str] | None], tuple[tuple[str, ...], tuple[str, ...]]]
"""Takes a pod and the names of the nodes to evaluate (None for all). Returns the nodes on which it passes every filter
and, if there are none, the reasons with their counts."""

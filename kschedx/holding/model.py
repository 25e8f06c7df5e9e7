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
    """The state of a pod in Kueue."""

    NO_WORKLOAD = "no-workload"
    NO_QUEUE = "no-queue"  # the LocalQueue, or the ClusterQueue behind it, does not exist
    DEACTIVATED = "deactivated"
    STOPPED = "stopped"  # its queue is stopped or inactive
    WAITING = "waiting"  # it is pending in its queue, without quota
    CHECKING = "checking"  # its quota is reserved, and its admission checks are not ready
    ADMITTED = "admitted"
    FINISHED = "finished"


class QuotaUser(Struct, frozen=True, kw_only=True):
    workload: str  # `namespace/name`
    priority: int
    amount: int


class FlavorPool(Struct, frozen=True, kw_only=True):
    """The quota of a cohort, and what the queues and cohorts below it use of it."""

    cohort: str
    quota: int
    used: int


class FlavorQuota(Struct, frozen=True, kw_only=True):
    """A resource of a flavor in a ClusterQueue; amounts are milli-cpu, and units of everything else."""

    resource: str
    flavor: str
    asked: int  # what the whole Workload requests
    nominal: int
    used: int
    borrowing_limit: int | None
    cohort_nominal: int | None
    """The quota that the queue's cohort pools: its own, and what the queues and cohorts below it lend; None without a
    cohort."""
    cohort_used: int | None
    available: int
    """What Kueue could give now, with the present lending and borrowing; negative if more is used than exists."""
    lending_limit: int | None = None
    pools: tuple[FlavorPool, ...] = ()  # the cohorts above the queue, the nearest first
    users: tuple[QuotaUser, ...] = ()  # the Workloads of this queue that use the quota, the largest first
    borrowers: tuple[str, ...] = ()  # the ClusterQueues of the cohort that use more than their own quota

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
    nodes: int  # the number of nodes with the flavor's labels
    feasible: tuple[str, ...]  # the nodes on which the pod would pass every filter
    reasons: tuple[str, ...] = ()  # why it would pass on no node: `2 Insufficient cpu`, as kube-scheduler counts
    refused: str = ""  # why Kueue gives this pod no quota of the flavor; the pod is then not tried on its nodes
    topology: str = ""  # the Topology by which Kueue itself selects among the nodes


class Kueue(Struct, frozen=True, kw_only=True, dict=True):
    """A pod and its Workload."""

    state: WorkloadState
    queue: str = ""
    known_queues: tuple[str, ...] = ()  # the LocalQueues of the namespace, if `queue` is not one of them
    namespaces_of_queue: tuple[str, ...] = ()
    """The namespaces that have a LocalQueue named `queue`, if the pod's own has none."""
    workload: str = ""  # `namespace/name`
    cluster_queue: str = ""
    cohort: str = ""
    cohorts: tuple[str, ...] = ()  # `cohort` and the cohorts above it
    circle: tuple[str, ...] = ()  # the cohorts, if they form a cycle: Kueue then admits nothing to their queues
    cluster: str = ""  # the cluster to which MultiKueue sent the Workload
    is_dispatched: bool = False  # whether MultiKueue dispatches it, so that its pods run in a worker cluster
    workers: tuple[str, ...] = ()
    """The worker clusters of MultiKueue that cannot run it: `w1 is not active (ClientConnectionFailed): timeout`."""
    priority: int = 0
    said: tuple[Condition, ...] = ()
    """The conditions that explain the state: those of the Workload, then those of its queues."""
    checks: tuple[Condition, ...] = ()  # the admission checks that are not ready
    quotas: tuple[FlavorQuota, ...] = ()
    position: int | None = None
    """Its position in the ClusterQueue by priority and age, from 1; None if it is not pending."""
    waiting: int = 0  # the number of pending Workloads in the ClusterQueue
    ahead: tuple[str, ...] = ()  # the Workloads before it in the queue, in order
    fits: tuple[FlavorFit, ...] = ()
    is_gated: bool = False
    weighted_share: int | None = None
    """How far its ClusterQueue exceeds its own quota, for fair sharing in the cohort. The queue with the lowest share
    comes first; the one with the highest is preempted first. None without fair sharing."""
    fair_weight: str = ""
    is_by_usage: bool = False  # whether the LocalQueue with the least usage comes first, before priority and age
    within_queue: str = ""
    within_cohort: str = ""
    """The Workloads that it may preempt: `Never`, `LowerPriority`, `LowerOrNewerEqualPriority`, or `Any`."""
    requeue_at: str = ""
    group: str = ""  # the group of plain pods, for which Kueue creates a Workload once all of them exist
    group_pods: int = 0
    group_total: int = 0

    decide: Callable[[], Verdict | None] | None = None  # returns what the Workload waits for by Kueue's rules
    judge: Callable[[], Verdict | None] | None = None
    """Returns the decision by Kueue's rules, and fixes that were tried, which takes longer than the rest."""

    @cached_property
    def decision(self) -> Verdict | None:
        return None if self.decide is None else self.decide()

    @cached_property
    def verdict(self) -> Verdict | None:
        return None if self.judge is None else self.judge()

    @property
    def reports_no_queue(self) -> bool:
        """Whether Kueue reports that the LocalQueue does not exist."""
        return any(said.message.endswith(f"LocalQueue {self.queue} doesn't exist") for said in self.said)

    @property
    def fits_nowhere(self) -> bool:
        """Whether the pod would be unschedulable even if it were admitted."""
        return any(fit.exists for fit in self.fits) and not any(fit.feasible for fit in self.fits)


class Gate(Struct, frozen=True, kw_only=True):
    """A scheduling gate of a known controller."""

    name: str
    owner: str = ""
    look_at: str = ""  # the command or place that shows the state of the gate


class QueueShare(Struct, frozen=True, kw_only=True):
    """A resource of another scheduler's queue; milli-cpu, and units of everything else."""

    resource: str
    allocated: int | None  # None if no object reports it
    capability: int | None = None  # the limit; None without one
    deserved: int | None = None
    """The share that the scheduler guarantees to the queue: Volcano's deserved, KAI's quota, Koordinator's runtime."""
    requested: int | None = None  # what all pods of the queue request, including pending ones
    held: int | None = None  # what Volcano counts for groups that are Inqueue
    is_in_thousandths: bool = False  # whether the numbers are in thousandths, although the resource is not cpu


class SchedulerQueue(Struct, frozen=True, kw_only=True):
    name: str
    state: str = ""
    shares: tuple[QueueShare, ...] = ()
    said: tuple[Condition, ...] = ()
    holders: tuple[str, ...] = ()  # the groups, `namespace/name`, that hold shares before they run


class ReservedRoom(Struct, frozen=True, kw_only=True):
    """A Reservation of Koordinator for the pod."""

    name: str
    phase: str = ""
    node: str = ""
    said: tuple[Condition, ...] = ()  # conditions that are not met


class SharedDevices(Struct, frozen=True, kw_only=True):
    """The devices of a node that HAMi shares among pods."""

    node: str
    kind: str  # `nvidia`, `mlu`
    devices: int
    healthy: int
    memory: int  # the memory of the largest device, in MiB
    requested: int = 0  # the memory of one device that the pod requests, in MiB; 0 for all of it
    fitting: int = 0  # the number of healthy devices with that much unused memory


class OtherScheduler(Struct, frozen=True, kw_only=True):
    """A scheduler other than kube-scheduler, or a kube-scheduler whose configuration kschedx does not have."""

    name: str  # spec.schedulerName
    title: str = ""  # its name in sentences; empty for an unknown scheduler
    group: str = ""  # the pod's group in that scheduler, `namespace/name`
    phase: str = ""
    said: tuple[Condition, ...] = ()  # what the scheduler reports about the pod, then about its group and its queue
    queue: str = ""
    queue_state: str = ""
    known_queues: tuple[str, ...] = ()  # the queues that exist, if `queue` is not one of them
    queue_shares: tuple[QueueShare, ...] = ()
    queue_holders: tuple[str, ...] = ()  # the groups, `namespace/name`, that hold shares before they run
    queues_above: tuple[SchedulerQueue, ...] = ()  # the nearest first
    rooms: tuple[ReservedRoom, ...] = ()
    shared: tuple[SharedDevices, ...] = ()
    application: str = ""  # the application, whose pods YuniKorn schedules together
    task_group: str = ""
    min_member: int | None = None
    members: int = 0  # pods of the group, or task group, in the snapshot
    running: int = 0
    look_at: str = ""
    is_absent: bool = False  # whether the snapshot has the pods of all namespaces, and nothing of this scheduler


class GangMember(Struct, frozen=True, kw_only=True):
    """A pod of a group that has no node."""

    pod: str
    gates: tuple[str, ...] = ()
    feasible: int  # the number of nodes on which it would fit alone
    node: str = ""  # the node assigned to it together with the earlier members; empty if it fits none or was not tried
    evicts: int = 0
    reasons: tuple[str, ...] = ()
    """Why it fits no node, with the earlier members or alone: `2 Insufficient cpu`, as kube-scheduler counts."""


class GangStatus(Struct, frozen=True, kw_only=True):
    """A pod group of Kubernetes itself (scheduling.k8s.io) or of Coscheduling, as a whole."""

    name: str
    min_count: int
    pods: int  # the number of existing members, including the pod in question
    placed: int
    plugin: str  # `GangScheduling` or `Coscheduling`
    is_heeded: bool  # whether the profile has the plugin; without the plugin, each pod is scheduled alone
    waiting: tuple[GangMember, ...] = ()  # the members without a node, in the order in which they are tried
    more: int = 0
    together: int | None = None  # how many of the pending members fit together; None if that is not known
    has_ties: bool = False
    """Whether nodes had equal scores. If the group lacks room, the first and the last of them were each tried."""
    topology_key: str = ""  # the label whose value the nodes of all members must share; empty without that constraint
    domain: str = ""
    """The value that kube-scheduler selects; if the group fits in no domain, the domain in which most members fit."""
    domains: int = 0
    fitting_domains: int = 0
    preempted: tuple[str, ...] = ()
    """Pods that are preempted for the group as a whole, `namespace/name on node`. The nodes of the members are those
    after preemption."""
    preemption: str = ""
    """Why no pods are preempted for the whole group, in kube-scheduler's words; empty if it tries no preemption."""
    undecided: str = ""
    message: str = ""
    """kube-scheduler's message about the pod in question, if the pod fits a node and its group lacks room."""
    is_by_draw: bool = False
    """Whether the group fits only with the last of the tied nodes, as shown here, and not with the first."""

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
    """A pool of devices as a ResourcePoolStatusRequest reports it; a number that it lacks is None."""

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
    """Everything that holds a pod or schedules it, and the reported pools of the devices that its claims request."""

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

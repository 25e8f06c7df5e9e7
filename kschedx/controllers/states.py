"""The states that a pod or workload can be in: the only table of headlines and exit codes.

`why` first determines the state, then answers what the state raises. `STATES` is in the order of precedence.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import asdict

from kschedx.controllers.state_facts import CommonEnd, KeptPods, Running, StateFacts
from kschedx.kube.documents import Json
from kschedx.kube.kueue import MULTIKUEUE
from kschedx.wording import count, list_names

if TYPE_CHECKING:
    from kschedx.framework.cycle import Outcome


class ExitCode(IntEnum):
    """What the exit code of a command means to a script."""

    SCHEDULABLE = 0
    UNSCHEDULABLE = 1
    USAGE = 2  # usage or input error
    UNDECIDED = 3  # kschedx cannot decide, and names what it needs
    INTERNAL = 70  # a defect of kschedx, without any answer (EX_SOFTWARE of sysexits.h)


class NamespaceTerminating(StateFacts, frozen=True, kw_only=True):
    namespace: str
    since: str = ""
    remaining: tuple[str, ...] = ()  # what blocks the deletion of the namespace, in the words of its conditions
    kept: tuple[KeptPods, ...] = ()
    is_pod: bool = False

    @property
    def effect(self) -> str:
        return "is pending" if self.is_pod else "gets no pods"


class BeingDeleted(StateFacts, frozen=True, kw_only=True):
    since: str
    node: str = ""
    finalizers: tuple[str, ...] = ()
    is_workload: bool = False
    is_node_lost: bool = False  # whether the node is NotReady or gone, so that no kubelet confirms the deletion
    owner: str = ""  # `StatefulSet db`
    is_replaced: bool = False  # whether the owner creates another pod before this one is gone
    barrier: str = ""  # why the DaemonSet creates no other pod there: `the node has the taint ...`
    successor: str = ""  # the Deployment with strategy Recreate that creates its new pods once this old one is gone
    why: str = ""  # who evicted it, according to its condition DisruptionTarget
    until: str = ""  # when its grace period ends
    is_overdue: bool = False  # whether its kubelet should have confirmed the deletion long ago
    down: str = ""  # why the controller behind its finalizers does not run
    facts: tuple[str, ...] = ()  # what its deletion waits for
    kept: tuple[KeptPods, ...] = ()


class Finished(StateFacts, frozen=True, kw_only=True):
    phase: str  # the phase of a pod, or the condition of a Job
    message: str = ""


class Failed(StateFacts, frozen=True, kw_only=True):
    reason: str = ""  # `OutOfcpu`, `Evicted`, or, for a Job, `BackoffLimitExceeded`
    message: str = ""
    node: str = ""
    owner: str = ""  # the controller that creates another pod, such as `ReplicaSet web-1`
    surplus: str = ""  # why the controller creates none: `is scaled to 0`
    is_replaced: bool = False  # whether the controller already has all its pods without this one
    pods: tuple[str, ...] = ()  # the failed pods of a Job
    ends: CommonEnd = CommonEnd()
    container: str = ""  # the container of a pod that ended with an error
    is_retried: bool = False  # whether the Job's controller creates another pod after its back-off

    @property
    def detail(self) -> str:
        if self.is_retried:
            return f" {count(len(self.pods), 'time')}, and creates its next pod after a back-off"
        return (f" on {self.node}" if self.node else "") + (f": {self.reason}" if self.reason else "")


class RejectedByKubelet(StateFacts, frozen=True, kw_only=True):
    """A workload whose pods kubelets reject after kube-scheduler assigns them, or the next of these pods."""

    reason: str
    message: str
    nodes: tuple[str, ...]
    pods: int  # that failed for this reason
    owner: str = ""  # the controller of the next pod
    is_bound_by_hand: bool = False  # whether spec.nodeName of the pod template binds them

    @property
    def effect(self) -> str:
        kubelets, verb = ("kubelet", "rejects") if len(self.nodes) == 1 else ("kubelets", "reject")
        where = list_names(self.nodes, 3, conjunction="and")
        lacks = f"lacks pods: the {kubelets} of {where} {verb} them: {self.reason}"
        return f"fits {where}, whose {kubelets} {verb} pods of {self.owner}: {self.reason}" if self.owner else lacks


class OfEndedJob(StateFacts, frozen=True, kw_only=True):
    """A pending pod whose Job has ended."""

    job: str
    reason: str  # `DeadlineExceeded`, or the condition if it has no reason
    message: str = ""


class KeptBySidecar(StateFacts, frozen=True, kw_only=True):
    """A running pod of a Job in which some containers have ended without an error and others still run."""

    node: str
    running: str  # `proxy and agent`
    ended: str


class ScaledToZero(StateFacts, frozen=True, kw_only=True):
    is_open: ClassVar[bool] = True

    field: str  # `spec.replicas` or `spec.parallelism`
    autoscaler: str = ""  # the autoscaler that scaled it to zero, such as `ScaledObject web`
    why: str = ""  # the field of the autoscaler that causes it
    idle: str = ""  # the field or annotation of the autoscaler, if it is not the minimum of replicas alone
    down: ComponentDown | None = None  # the autoscaler's controller, if it does not run
    is_unready: bool = False  # whether the autoscaler cannot work: `why` is its message
    owner: str = ""  # the object whose controller sets the replicas, such as `Revision web-1`
    disabled: str = ""  # the HorizontalPodAutoscaler that is disabled while there are none
    value: str = ""  # the value of `field` that stops a custom resource

    @property
    def detail(self) -> str:
        if self.value:
            return f"stopped: {self.field} is {self.value}"
        return f"scaled to zero{self._cause}"

    @property
    def _cause(self) -> str:
        if self.autoscaler:
            return f" by {self.autoscaler}: {self.why}"
        if self.owner:
            return f" by {self.owner}, which owns it"
        return f": {self.field} is 0" + (f", which disables {self.disabled}" if self.disabled else "")


class Suspended(StateFacts, frozen=True, kw_only=True):
    is_open: ClassVar[bool] = True

    kind: str
    field: str = "spec.suspend"
    queue: str = ""  # the LocalQueue of Kueue, which resumes the workload when it admits it
    message: str = ""  # Kueue's message about its quota
    waits: str = ""  # the state in Kueue, as a predicate
    meant: str = ""  # the LocalQueue that is probably meant, if `queue` does not exist
    inactive: str = ""  # its Workload, if that is deactivated, so that Kueue ignores it
    owner: str = ""  # the owner that is suspended, such as `JobSet train`
    may_be_of_kueue: bool = False  # whether Kueue may have suspended it, which has no queue
    is_dispatched: bool = False  # whether MultiKueue runs its pods in a worker cluster

    @property
    def by(self) -> str:
        if self.waits and not self.queue:
            return f"it {self.waits}"
        if not self.queue:
            return f"{self.owner} is suspended" if self.owner else f"{self.field} is true"
        return f"it {self.waits or 'waits for quota in Kueue'} (queue {self.queue})"


class Paused(StateFacts, frozen=True, kw_only=True):
    is_open: ClassVar[bool] = True

    kind: str
    has_pods: bool  # whether pods of an earlier template exist
    updated: int = 0  # pods of the present template, in a rollout that is paused
    wanted: int = 0
    reason: str = ""  # `CanaryPauseStep`, if its controller pauses it

    @property
    def effect(self) -> str:
        if self.updated or self.reason:
            return f"its rollout stops with {self.updated:,} of {count(self.wanted, 'pod')} updated"
        return "its changed pod template is not rolled out" if self.has_pods else "it has no ReplicaSet yet"


class Refused(StateFacts, frozen=True, kw_only=True):
    message: str  # of the API server, or of the controller that tried
    by: str  # `LimitRange`, `ResourceQuota`, `the API server`
    source: str = ""  # the file, object, and field that is refused, or the condition that reports it
    hint: str = ""  # the object with the rule, the event that reports it, or what follows
    is_workload: bool = False
    has_pods: bool = False
    numbers: str = ""  # `8 of 12`, for a workload that has some of its pods
    past: str = ""  # the rule in the cluster that no longer refuses the pods, such as `ResourceQuota team`

    @property
    def of_update(self) -> NotChanged:
        """The state if an update is refused: the object stays as it is."""
        return NotChanged(**{**asdict(self), "hint": ""})

    @property
    def effect(self) -> str:
        if self.message.startswith("ResourceClaim"):
            stays = "has pods that stay pending" if self.is_workload else "stays pending"
            return f"{stays}: {self.by} refuses its {self.message.partition('.')[0]}"
        if not self.is_workload:
            return f"is not created: {self.by} refuses the pod"
        if self.is_itself_refused:
            return f"is not created: {self.by} refuses it"
        no_longer = f"the API server refused them because of {self.past}, and no longer does"
        refuses = no_longer if self.past else f"{self.by} refuses them"
        if self.numbers:
            return f"has {self.numbers} pods and gets no others: {refuses}"
        return f"gets no {'other ' if self.has_pods else ''}pods: {refuses}"

    @property
    def is_itself_refused(self) -> bool:
        """Whether the workload is refused, not its pods: `deployments.apps "web" is forbidden`."""
        resource, _, rest = self.message.partition(" ")
        namespace, name = self.subject.partition("/")[0], self.subject.rpartition("/")[2]
        is_of_workload = "." in resource or resource == "replicationcontrollers"
        if is_of_workload and rest.startswith(f'"{name}" is forbidden'):
            return True
        return self.message.startswith((f'namespaces "{namespace}" not found', "no matches for kind "))


class NotChanged(Refused, frozen=True, kw_only=True):
    """An update of an immutable field. The object stays as it is."""

    @property
    def effect(self) -> str:
        return f"is not changed: {self.by} refuses the update"


class NotSynced(Refused, frozen=True, kw_only=True):
    """A pod of a virtual cluster that the host cluster refuses."""

    @property
    def effect(self) -> str:
        return f"is not created in the host cluster: {self.by} refuses it there"


class WaitingForOrdinal(StateFacts, frozen=True, kw_only=True):
    pod: str  # the pod that is not created yet
    predecessor: str
    because: str  # the predecessor's state: `is not ready`, `is being deleted`, `is Pending`
    seconds: int = 0  # minReadySeconds, if the predecessor is ready and not available
    node: str = ""
    is_node_lost: bool = False  # whether no kubelet confirms that the predecessor is gone
    container: str = ""  # why the predecessor's container does not run, or the kubelet's newest warning


class WaitingForOldPods(StateFacts, frozen=True, kw_only=True):
    """A Deployment with strategy Recreate whose old pods are on lost nodes: no kubelet confirms that they are gone."""

    pods: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def blocker(self) -> str:
        pods = list_names(self.pods, 2, conjunction="and")
        return f"{pods} on unreachable {list_names(self.nodes, 2, conjunction='and')}"


class Waits(IntEnum):
    """What a scheduled pod waits for."""

    KUBELET = 0
    SANDBOX = 1
    INIT = 2
    IMAGE = 3
    CONFIGURATION = 4
    CRASH = 5
    CONTAINER = 6
    VOLUMES = 7
    NETWORK = 8
    DEVICES = 9


_WAITS = {
    Waits.KUBELET: "waits for its kubelet",
    Waits.SANDBOX: "waits for its volumes or network",
    Waits.INIT: "waits for init {}",
    Waits.IMAGE: "cannot pull the image of {}",
    Waits.CONFIGURATION: "cannot start {}",
    Waits.CRASH: "restarts {}, which fails",
    Waits.CONTAINER: "waits for {}",
    Waits.VOLUMES: "waits for its volumes",
    Waits.NETWORK: "waits for its network sandbox",
    Waits.DEVICES: "waits for its devices",
}


class WaitingForKubelet(StateFacts, frozen=True, kw_only=True):
    node: str
    waits: Waits
    container: str = ""
    volume: str = ""  # the image volume whose image cannot be pulled
    reason: str = ""
    message: str = ""
    conditions: tuple[str, ...] = ()
    """Conditions that are False, as `kubectl describe` shows them: `Initialized=False (ContainersNotInitialized)`."""
    event: str = ""  # the newest warning
    last: str = ""  # how the container last ended: `OOMKilled, exit code 137`
    is_node_lost: bool = False
    claim: str = ""  # the claim that stays unbound because kube-scheduler selects no node for it, such as `shop/data`
    outdated: str = ""  # the StatefulSet with a newer revision, which replaces the pod only once it is ready
    is_static: bool = False  # whether a kubelet runs the pod from a manifest file of its node

    @property
    def detail(self) -> str:
        what = _WAITS[self.waits].format(f"volume {self.volume}" if self.volume else f"container {self.container}")
        if self.waits is Waits.KUBELET and self.is_node_lost:
            return f"{what}, which does not answer"
        return f"{what}: {self.reason}" if self.reason else what


class BoundToMissingNode(WaitingForKubelet, frozen=True, kw_only=True):
    """A pod whose spec.nodeName no node has; no kubelet ever sees it."""


class RolloutStalled(StateFacts, frozen=True, kw_only=True):
    """A Deployment or DaemonSet whose pods all have nodes, and whose rollout waits for some of them."""

    message: str  # of the condition Progressing with the reason ProgressDeadlineExceeded; empty before the deadline
    pods: tuple[str, ...] = ()  # that are not ready, each with its report: `web-1 on w0: Readiness probe failed`
    seconds: int = 0  # minReadySeconds, if all new pods are ready
    nodes: tuple[str, ...] = ()  # the lost nodes of a DaemonSet's pods
    updated: int = 0
    wanted: int = 0  # pods of the DaemonSet

    @property
    def detail(self) -> str:
        many = len(self.pods)
        if self.nodes:
            where = list_names(self.nodes, 3, conjunction="and")
            verb = "is" if len(self.nodes) == 1 else "are"
            return f"stalls in its rollout ({self.updated} of {self.wanted} pods updated): {where} {verb} unreachable"
        unready = f": {many} {'pod is' if many == 1 else 'pods are'} not ready" if many else ""
        if self.message:
            return f"exceeded its progress deadline{unready}"
        if self.seconds:
            return f"waits in its rollout until its new pods have been ready for minReadySeconds {self.seconds}"
        return f"waits in its rollout{unready}"


class NotAvailable(StateFacts, frozen=True, kw_only=True):
    """A workload whose pods all have nodes, and whose status reports too few available pods."""

    wanted: int
    pods: tuple[str, ...]  # those that are not ready, each with its kubelet's report, as in RolloutStalled
    first: str  # the name of the first of these pods
    nodes: tuple[str, ...] = ()  # their nodes, if no kubelet responds for any of them
    degree: str = ""  # `fully ` if it has ready pods and, unlike a Deployment, no minimum of them

    @property
    def detail(self) -> str:
        many = len(self.pods)
        own = f"{many:,} of its {self.wanted:,} pods {'is' if many == 1 else 'are'} not ready"
        verb = "is" if len(self.nodes) == 1 else "are"
        lost = f", because {list_names(self.nodes, 3, conjunction='and')} {verb} not ready" if self.nodes else ""
        return f"{own if self.wanted > 1 else 'its only pod is not ready'}{lost}"


class UpdateHeld(StateFacts, frozen=True, kw_only=True):
    """Pods that keep an earlier template because of the update strategy."""

    pods: tuple[str, ...]
    why: str  # `updateStrategy is OnDelete`, `partition is 3`
    is_on_delete: bool

    @property
    def detail(self) -> str:
        return count(len(self.pods), "pod")


class NotScaled(StateFacts, frozen=True, kw_only=True):
    """A workload that has its replicas, and whose autoscaler adds none."""

    replicas: int
    autoscaler: str  # `HorizontalPodAutoscaler web`
    why: str  # `is at maxReplicas 4`, `gets no metrics`
    message: str = ""  # the message of the autoscaler's condition
    most: int = 0  # its maxReplicas, if that is reached
    down: ComponentDown | None = None  # what serves its metrics, if it does not run

    @property
    def detail(self) -> str:
        return f"{self.replicas:,} {'replica' if self.replicas == 1 else 'replicas'}"


class OnLostNode(StateFacts, frozen=True, kw_only=True):
    """A pod that ran when its node became unreachable."""

    node: str
    message: str = ""  # the message of the node's condition
    seconds: int | None = None  # until the pod is deleted; None if it tolerates the taint without a limit
    owner: str = ""  # the controller that creates another pod
    is_replaced: bool = False  # whether the owner creates another pod before this one is gone
    loss: str = ""  # why no controller creates another


class ResizeHeld(StateFacts, frozen=True, kw_only=True):
    """A running pod whose in-place resize the kubelet does not carry out."""

    node: str
    reason: str  # `Deferred`, `Infeasible`, or `failing`
    message: str = ""


class NoJobStarted(StateFacts, frozen=True, kw_only=True):
    """A CronJob that starts no Job, according to its schedule or its controller's event."""

    reason: str  # `UnknownTimeZone`
    message: str


class UnknownPods(StateFacts, frozen=True, kw_only=True):
    """A custom resource whose pods only its controller knows."""

    kind: str
    template: str = ""  # `Deployment web`, which has its pod template


class PodsLeftOut(StateFacts, frozen=True, kw_only=True):
    """A workload whose status counts pods, while the dump has none, or fewer."""

    pods: int
    held: int = 0  # by the dump


class NotObserved(StateFacts, frozen=True, kw_only=True):
    """A stored workload for which no controller has created a pod."""

    is_open: ClassVar[bool] = True

    kind: str
    message: str = ""  # why, as its status reports it; empty if it reports nothing
    generations: str = ""  # `metadata.generation is 3, status.observedGeneration 2`

    @property
    def why(self) -> str:
        change = "its newest change" if self.generations else "it"
        return "its controller reports a problem" if self.message else f"no controller has observed {change}"


class ObjectState(StateFacts, frozen=True, kw_only=True):
    """An object that creates no pods, such as a PersistentVolumeClaim that no pending pod uses, or a budget."""

    does: str  # `is bound to volume pv-1`, `is pending until a pod uses it`, `allows 1 eviction`
    facts: tuple[str, ...] = ()  # its pods, and the expansion of a claim
    node: str = ""  # a node whose drain the budget stops


class WithoutNode(ObjectState, frozen=True, kw_only=True):
    """A NodePool that adds no node, or a NodeClaim or machine without a ready node."""

    message: str = ""  # the autoscaler's event about it


class NotRead(StateFacts, frozen=True, kw_only=True):
    """A pod that depends on what was not read, such as a kind, or the pod itself after its assignment."""

    unknown: str
    because: str
    command: str = ""
    message: str = ""
    reports: tuple[str, ...] = ()  # what autoscalers report about the pod
    does: str = "is undecided"


class NoScheduler(StateFacts, frozen=True, kw_only=True):
    scheduler: str
    profiles: tuple[str, ...]  # the schedulerNames in the configuration
    others: int = 0  # the number of pods with this schedulerName that have a node
    message: str = ""  # what a scheduler of this name reports about the pod
    running: str = ""  # a pod that runs the scheduler by its name, such as `kube-system/my-scheduler-x`
    hint: str = ""  # the schedulerName that is probably meant
    is_managed: bool = False  # whether it is the kube-scheduler of a provider, which sets the schedulerName

    @property
    def known(self) -> str:
        if self.others or self.message or self.running or self.is_managed:
            return f"scheduler {self.scheduler} decides about it, and its configuration is not known"
        return f'no scheduler with the schedulerName "{self.scheduler}" is known'


class Contradicted(StateFacts, frozen=True, kw_only=True):
    """A pod for which kschedx finds a node, while the cluster's own event reports that no node fits."""

    is_open: ClassVar[bool] = True

    message: str  # the message of the event or condition
    nodes: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()  # pods of these nodes that have finished, possibly since then
    kinds: tuple[str, ...] = ()  # kinds that the dump lacks and the plugins that the event names read
    namespaces: tuple[str, ...] = ()  # of the dump's pods, if it has none of a system namespace
    counted: int = 0  # nodes according to the event
    known: int = 0  # nodes of the dump
    feasible: int = 0  # nodes of the dump that the pod fits


class NotBound(StateFacts, frozen=True, kw_only=True):
    """A pod for which kube-scheduler finds a node, while a step before binding fails there."""

    is_open: ClassVar[bool] = True

    message: str  # the event's message; empty if only the claim's driver reports
    claim: str = ""  # the claim that waits for its volume, such as `shop/data`
    provisioner: str = ""
    report: str = ""  # the driver's message about the claim
    because: str = ""  # why the driver provisions no volume or makes no device ready, from the cluster's objects
    group: str = ""  # the PodGroup that the pod names and that does not exist, such as `shop/train`
    extender: str = ""
    """The extender whose request failed, and how: `http://gpu.kube-system.svc/filter answers with HTTP status 500`."""

    @property
    def why(self) -> str:
        if self.extender:
            return f"the scheduler's extender {self.extender}"
        if self.group:
            return f"PodGroup {self.group} does not exist, and Coscheduling permits no pod without its group"
        waits = f"claim {self.claim} waits for its volume"
        return waits if self.claim else self.because or "kube-scheduler selects a node and fails there"


class CannotStart(StateFacts, frozen=True, kw_only=True):
    """A pod that kube-scheduler assigns to a node on which it cannot start."""

    nodes: tuple[str, ...]
    why: str
    label: str = ""  # of the nodes that the pod needs, such as `kubernetes.io/os=windows`
    driver: str = ""  # the CSI driver that the nodes lack
    claim: str = ""  # the claim whose volume is attached to another node
    pressure: str = ""  # the condition of the nodes for which their kubelets reject the pod

    @property
    def where(self) -> str:
        return list_names(self.nodes, 3, conjunction="and")


class ComponentDown(StateFacts, frozen=True, kw_only=True):
    """A control plane component that acts next and of which no instance runs."""

    is_open: ClassVar[bool] = True

    component: str  # `kube-scheduler`
    pods: tuple[str, ...]
    state: str = ""  # of the first pod: `is scheduled to cp0 and restarts container kube-scheduler, which fails`
    is_pending: bool = False
    is_workload: bool = False
    scaled: str = ""  # the workload without replicas that would run it: `kube-system/deploy/batch-scheduler`
    unready: str = ""  # the workload that would run it, of which no replica is ready and the dump has no pods
    sibling: str = ""  # a static pod of the control plane on whose node the component has none
    renewed: str = ""  # when the lease with which an instance leads was last renewed, if that is too long ago

    @property
    def absence(self) -> str:
        return "has no leader" if self.renewed else "does not run"

    @property
    def shown(self) -> str:
        if self.renewed:
            return f"lease kube-system/{self.component} was last renewed at {self.renewed}"
        if self.sibling:
            return f"{self.sibling} exists, and no pod of {self.component} does"
        if self.unready:
            return f"{self.unready} has no ready replica"
        state = f"{''.join(self.pods[:1])} {self.state or ('has no node' if self.is_pending else 'is not ready')}"
        return f"{self.scaled} is scaled to zero" if self.scaled else state

    @property
    def report(self) -> str:
        return f"{self.component} does not run: {self.shown}"

    @property
    def effect(self) -> str:
        return "gets no new pods" if self.is_workload else "is not scheduled"


class StillActive(StateFacts, frozen=True, kw_only=True):
    """A CronJob that skips its runs."""

    job: str
    pod: str = ""  # a pod of the Job that does not run, such as `shop/backup-1-x`
    message: str = ""  # why it is pending or, without a pod, why the Job has none, as the cluster reports it
    state: str = ""  # the headline of a pod that has a node


class ManagedElsewhere(StateFacts, frozen=True, kw_only=True):
    """A Job that the Job controller of this cluster ignores."""

    manager: str  # the value of spec.managedBy

    @property
    def by(self) -> str:
        return "MultiKueue" if self.manager == MULTIKUEUE else self.manager


Lifecycle: TypeAlias = (
    NamespaceTerminating
    | BeingDeleted
    | Finished
    | Failed
    | RejectedByKubelet
    | OfEndedJob
    | KeptBySidecar
    | ScaledToZero
    | Suspended
    | Paused
    | Refused
    | NotChanged
    | NotSynced
    | WaitingForOrdinal
    | WaitingForOldPods
    | WaitingForKubelet
    | BoundToMissingNode
    | RolloutStalled
    | NotAvailable
    | UpdateHeld
    | NotScaled
    | OnLostNode
    | ResizeHeld
    | NoJobStarted
    | UnknownPods
    | PodsLeftOut
    | NotObserved
    | ObjectState
    | WithoutNode
    | Running
    | NotRead
    | NoScheduler
    | Contradicted
    | NotBound
    | CannotStart
    | ComponentDown
    | StillActive
    | ManagedElsewhere
)
"""States in which no decision of kube-scheduler answers the question."""


class StateRow(Struct, frozen=True, kw_only=True):
    name: str  # the name in documents
    reads: str  # the headline, a template over the facts `s`
    counted: str  # the text that follows the number of pods or workloads in this state
    exit_code: ExitCode


def _row(exit_code: ExitCode, counted: str, reads: str, facts: type[StateFacts]) -> StateRow:
    return StateRow(name=facts.__name__, reads=reads, exit_code=exit_code, counted=counted)


def _decision(name: str, exit_code: ExitCode, counted: str) -> StateRow:
    """Return the state of a pod that reaches kube-scheduler or another scheduler; its verdict ends the headline."""
    return StateRow(name=name, reads="{s.subject} {s.verdict}", exit_code=exit_code, counted=counted)


_FITS, _NOT, _OPEN = ExitCode.SCHEDULABLE, ExitCode.UNSCHEDULABLE, ExitCode.UNDECIDED

STATES: tuple[StateRow, ...] = (
    _row(
        _NOT,
        "in a namespace that is being deleted",
        "{s.subject} {s.effect}: namespace {s.namespace} is being deleted",
        NamespaceTerminating,
    ),
    _row(_NOT, "being deleted", "{s.subject} is being deleted (since {s.since})", BeingDeleted),
    _row(_FITS, "finished", "{s.subject} has finished: {s.phase}", Finished),
    _row(_NOT, "failed", "{s.subject} has failed{s.detail}", Failed),
    _row(_NOT, "rejected by a kubelet", "{s.subject} {s.effect}", RejectedByKubelet),
    _row(_NOT, "left by a Job that has ended", "{s.subject} is pending, and its Job has ended: {s.reason}", OfEndedJob),
    _row(_FITS, "scheduled and not running", "{s.subject} is scheduled to {s.node} and {s.detail}", WaitingForKubelet),
    _row(
        _NOT,
        "bound to a missing node",
        "{s.subject} is bound to {s.node} and cannot start: the node does not exist",
        BoundToMissingNode,
    ),
    _row(
        _FITS,
        "kept running by a container",
        "{s.subject} still runs on {s.node} (ended: {s.ended}; running: {s.running})",
        KeptBySidecar,
    ),
    _row(_FITS, "scaled to zero", "{s.subject} is {s.detail}", ScaledToZero),
    _row(_NOT, "suspended", "{s.subject} is suspended: {s.by}", Suspended),
    _row(_NOT, "paused", "{s.subject} is paused: {s.effect}", Paused),
    _row(_NOT, "not created", "{s.subject} {s.effect}", Refused),
    _row(_NOT, "not changed", "{s.subject} {s.effect}", NotChanged),
    _row(_NOT, "refused by the host cluster", "{s.subject} {s.effect}", NotSynced),
    _row(
        _NOT,
        "waiting for an earlier Job",
        "{s.subject} starts no Job: {s.job} is still active, and concurrencyPolicy is Forbid",
        StillActive,
    ),
    _row(
        _OPEN,
        "managed by another controller",
        "{s.subject} gets no pods from this cluster's Job controller: {s.by} manages it (spec.managedBy)",
        ManagedElsewhere,
    ),
    _row(_NOT, "waiting for the control plane", "{s.subject} {s.effect}: {s.component} {s.absence}", ComponentDown),
    _row(
        _NOT,
        "waiting for an earlier ordinal",
        "{s.subject}: {s.pod} is not created, because {s.predecessor} {s.because}",
        WaitingForOrdinal,
    ),
    _row(
        _NOT,
        "waiting for old pods",
        "{s.subject} gets no new pods: its rollout waits for {s.blocker}",
        WaitingForOldPods,
    ),
    _row(_FITS, "stalled in a rollout", "{s.subject} {s.detail}", RolloutStalled),
    _row(_FITS, "with too few available pods", "{s.subject} is not {s.degree}available: {s.detail}", NotAvailable),
    _row(
        _FITS, "kept at an earlier template", "{s.subject} keeps {s.detail} of an earlier template: {s.why}", UpdateHeld
    ),
    _row(_FITS, "not scaled", "{s.subject} has its {s.detail}: {s.autoscaler} {s.why}", NotScaled),
    _row(_FITS, "on unreachable nodes", "{s.subject} is on {s.node}, which is unreachable", OnLostNode),
    _row(_FITS, "not resized", "{s.subject} runs on {s.node}, and its resize is {s.reason}", ResizeHeld),
    _row(_NOT, "without Jobs", "{s.subject} starts no Job: {s.reason}", NoJobStarted),
    _row(_OPEN, "undecided", "{s.subject} is undecided: its manifest does not say which pods it creates", UnknownPods),
    _row(_OPEN, "undecided", "{s.subject} is undecided: the dump lacks pods of it", PodsLeftOut),
    _row(_NOT, "without new pods", "{s.subject} gets no new pods: {s.why}", NotObserved),
    _row(_FITS, "without a pending pod", "{s.subject} {s.does}", ObjectState),
    _row(_NOT, "without a node", "{s.subject} {s.does}", WithoutNode),
    _row(_FITS, "running", "{s.subject} {s.does}", Running),
    _row(_OPEN, "undecided", "{s.subject} {s.does}: {s.unknown} is not known", NotRead),
    _row(_OPEN, "undecided", "{s.subject}: {s.known}", NoScheduler),
    _row(
        _OPEN, "undecided", "{s.subject} is undecided: the cluster's own event contradicts that it fits", Contradicted
    ),
    _row(_NOT, "not bound", "{s.subject} is not bound: {s.why}", NotBound),
    _row(_NOT, "cannot start", "{s.subject} fits {s.where}, but cannot start there: {s.why}", CannotStart),
    _decision("OtherScheduler", _OPEN, "undecided"),
    _decision("Gated", _NOT, "gated"),
    _decision("WaitingForGang", _NOT, "unschedulable"),
    _decision("Nominated", _NOT, "unschedulable"),
    _decision("Error", _NOT, "fail with an internal error of kube-scheduler"),
    _decision("Undecided", _OPEN, "undecided"),
    _decision("ScaleUp", _NOT, "unschedulable"),
    _decision("Unschedulable", _NOT, "unschedulable"),
    _decision("Schedulable", _FITS, "can be scheduled"),
)

_BY_NAME = {row.name: row for row in STATES}


def decision_name(outcome: Outcome | None) -> str:
    """Return the name of the row of an outcome about which nothing more is known."""
    name = "Undecided" if outcome is None else outcome.value
    return "Schedulable" if name == "Scheduled" else name


def row_of(facts: Lifecycle) -> StateRow:
    return _BY_NAME[type(facts).__name__]


def row_named(name: str) -> StateRow:
    """Return the row with this name. Raises `KeyError`."""
    return _BY_NAME[name]


def headline(facts: Lifecycle) -> str:
    """Return `shop/web-0 is being deleted (since 2026-01-02T00:00:00Z)`."""
    return row_of(facts).reads.format(s=facts)


StateDocument = Annotated[
    Json,
    Meta(
        extra_json_schema={
            "required": ["name"],
            "properties": {
                "name": {"enum": [row.name for row in STATES]},
                "subject": {"type": "string"},
                "headline": {"type": "string"},
            },
        }
    ),
]


def state_document(facts: Lifecycle) -> StateDocument:
    """Return the document of a state, without empty fields."""
    known = {key: value for key, value in to_builtins(facts).items() if value}
    return {"name": row_of(facts).name, "headline": headline(facts), **known}

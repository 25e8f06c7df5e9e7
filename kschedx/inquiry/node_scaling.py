"""Changes after which an autoscaler adds a node, and its fixes, which are the first fixes of an answer: a node that is
being added, or a limit to raise.

Each was tried in a loop of the autoscaler. Its other changes of the pod are reported with the autoscaler's decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from kschedx.autoscaler.sizes import AT_MAX_NODES_TOTAL, AT_MAXIMUM
from kschedx.fixes import FixCertainty, find_fix_by_autoscaler
from kschedx.fixes.owners import Owner
from kschedx.fixes.steps import FixGroup
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.inquiry.fix import Fix, FixedCluster
from kschedx.kube.autoscalers import INITIALIZED, NODE_POOL, NodeClaim, NodePool
from kschedx.kube.conditions import TimedCondition, condition_of
from kschedx.kube.scalars import elapsed
from kschedx.kube.types import Node, Pod
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.events import BACKED_OFF, FAILED_SCALE_UP, NOMINATED, TRIGGERED_SCALE_UP, RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_OF_QUOTA = lazy_pattern(r"quota|limit ?exceeded|limit of \d", re.IGNORECASE)
_OF_ADDRESSES = lazy_pattern(
    r"ip[ _]?space|free[ _]?(ip[ _]?)?address|InsufficientFreeAddresses|subnet ?(is ?)?full|\d ip addresses",
    re.IGNORECASE,
)
_NOT_REGISTERED = "failed to register"  # of a node group's new machines
_OTHER_WAYS = "use other instance types or zones, or add another"
_MIN_VALUES = lazy_pattern(r"minValues requirement is not met for label\(s\) \(label\(s\)=\[(?P<keys>[^\]]+)\]")
OTHER_TYPES = "use other instance types, zones, or capacity types"
NO_CAPACITY = lazy_pattern(
    r"insufficient ?(instance ?)?capacity|UnfulfillableCapacity|ZonalAllocationFailed|stockout", re.IGNORECASE
)
_UNKNOWN_LABEL = lazy_pattern(r'label \\?"(?P<key>[^"\\]+)\\?" does not have known values')
_INCOMPATIBLE = lazy_pattern(r"incompatible requirements, key (?P<key>\S+), \S+ In \[(?P<values>[^]]*)\] not in")
_UNMET_RESOURCE = lazy_pattern(r'no instance type satisfied resources \{[^}]*"(?P<name>[^"/]+/[^"]+)":')
_NOMINATION = lazy_pattern(r"should schedule on:? (?P<place>[^\s,]+)")
_OF_POOL = lazy_pattern(r"(?:node ?pool:? |NodePool=)\W{0,3}(?P<name>[a-z0-9][a-z0-9.-]*)")
_CLUSTER_LIMIT = lazy_pattern(r'(?:max cluster |exceeded quota: "cluster-wide", resources: )(?P<resource>[^\s,]+)')
"""MaxResourceLimitReached. Upstream: cluster-autoscaler's core/scaleup/orchestrator/skippedreasons.go."""


def limit_flag(resource: str) -> str:
    """Return the flag of cluster-autoscaler that limits a resource, or a type of GPU, of the whole cluster."""
    return {"cpu": "--cores-total", "memory": "--memory-total"}.get(resource, "--gpu-total")


class StepKind(Enum):
    OF_POD = auto()  # the pod tolerates taints or requests less
    ROOM = auto()
    """A larger group or pool, or a pod that the autoscaler considers: ranked before other changes of the pod."""
    CORRECTION = auto()  # the pod says what it probably means: it comes first too
    RESHAPED = auto()
    """A NodePool for other nodes than now, ranked after more nodes of a pool that needs no such change."""
    NEW_GROUP = auto()
    OTHER = auto()


class NodeRemedy(Struct, frozen=True, kw_only=True):
    """A change and the autoscaler's reaction to it."""

    title: str  # `raise the maximum of node group workers from 3 to 4`
    kind: StepKind
    place: str  # the node group or NodePool that gets nodes
    pod: Pod
    node: Node | None
    """The template of a group's new nodes, or what a NodePool gives a new node for the pod; its size is open."""
    nodes: int = 1
    """The number of nodes added to the group; 0 if the pod fits the group, but nodes for other pods come first."""
    types: tuple[str, ...] = ()  # possible instance types of a NodePool's node; empty if unknown
    changed: NodePool | None = None
    helps: frozenset[str] = frozenset()  # the pending pods, `namespace/name`, for which the nodes are added
    is_likely: bool = False  # whether nodes are added only if the place has an instance type that is not known

    @property
    def is_of_pod(self) -> bool:
        return self.kind in (StepKind.OF_POD, StepKind.CORRECTION)

    @property
    def makes_room(self) -> bool:
        """Whether it comes before other changes of the pod: a larger or reshaped group or NodePool, or a correction of
        the pod."""
        return self.kind in (StepKind.ROOM, StepKind.RESHAPED, StepKind.CORRECTION)


class ScalingTrial(Struct, frozen=True, kw_only=True):
    """A change of the pod, or of what the autoscaler reads."""

    title: str
    kind: StepKind = StepKind.OTHER
    pod: Pod
    limited: str = ""  # the node group or NodePool whose limit it raises

    def run(self) -> NodeRemedy | None:
        """Return the autoscaler's reaction; None if it adds no node."""
        raise NotImplementedError


_MOST_TRIALS = 8
_MOST_REMEDIES = 3


def find_remedies(trials: Iterable[ScalingTrial], most: int = _MOST_REMEDIES) -> tuple[NodeRemedy, ...]:
    """Return the first `most` remedies, one for each raised limit; likely ones come last."""
    sure: dict[str, NodeRemedy] = {}
    likely: list[NodeRemedy] = []
    raised: set[str] = set()
    for trial in islice(trials, _MOST_TRIALS):
        remedy = None if trial.limited in raised else trial.run()
        if remedy is not None and remedy.is_likely:
            likely.append(remedy)
        elif remedy is not None:
            sure.setdefault(remedy.title, remedy)
            raised |= {trial.limited} - {""}
        if len(sure) == most:
            break
    return (*sure.values(), *likely)[:most]


LEAST_SHARE = 2  # a request is never lowered to less than half, so that an autoscaler adds a node


class NodeTrial(Struct, frozen=True, kw_only=True):
    """Tries kube-scheduler on the node that an autoscaler adds for a pod."""

    scheduler: Scheduler
    cycle: Cycle
    owner: Owner | None
    stored_in: Snapshot | None  # the cluster, if it has the pod
    autoscaler: str  # `cluster-autoscaler` or `Karpenter`
    event: RecordedEvent | None  # the event of the cluster's own cluster-autoscaler about the pod

    def fix(
        self,
        title: str,
        node: Node | None,
        pod: Pod | None = None,
        *,
        group: FixGroup | None = FixGroup.CAPACITY,
        helps: frozenset[str] | None = None,
    ) -> Fix:
        """Return the fix, tried with the changed `pod`, if there is one. It is untried if the node is unknown, or if
        the pod may not fit the node. `helps` are the pods for which the autoscaler then adds nodes."""
        own = self.cycle.pod
        tried = None
        if node is not None:
            tried = find_fix_by_autoscaler(self.scheduler, self.cycle, pod or own, node, self.autoscaler)
        if tried is None:
            return replace(autoscaler_fix(title, group=group), helps=helps)
        fix, then = tried
        if fix.certainty is not FixCertainty.VERIFIED:
            return replace(autoscaler_fix(fix.qualified(title), group=group), helps=helps)
        answer_fix = Fix.of(fix, self.owner, own, stored_in=self.stored_in, title=title)
        return replace(
            answer_fix,
            steps=(),
            of_group=group or FixGroup.CAPACITY,
            then=FixedCluster(then.scheduler, then.pod, then.profile),
            helps=helps,
        )

    def remedy_fix(self, remedy: NodeRemedy, place: str) -> Fix:
        """Return the fix by a remedy; `place` is `to workers` or `of general`."""
        then = f", then {self.autoscaler} adds a node {place}" if remedy.is_of_pod else ""
        group = FixGroup.WORKLOAD if remedy.kind is StepKind.CORRECTION else FixGroup.CAPACITY
        return self.fix(f"{remedy.title}{then}", remedy.node, remedy.pod, group=group, helps=remedy.helps)


def other_ways(group: str, error: str) -> str:
    """Return what helps against the cloud's refusal of a node."""
    if _OF_QUOTA.search(error):
        return _MORE_QUOTA
    if _OF_ADDRESSES.search(error):
        return f"give {group} a larger IP range, or another subnet"
    if _NOT_REGISTERED in error:
        return f"find out why new machines of {group} do not join the cluster, or let it {_OTHER_WAYS}"
    if not error:
        return f"look up in cluster-autoscaler's log why {group} did not grow, or {_OTHER_WAYS}"
    return f"let {group} {_OTHER_WAYS}"


_MORE_QUOTA = "raise the quota of the cloud account, or use instance types or zones with quota left"


def launch_failure(claim: NodeClaim) -> TimedCondition | None:
    """Return the condition of a NodeClaim that Karpenter cannot launch; None before it has tried."""
    launched = condition_of(claim.status.conditions, "Launched", "False", "Unknown")
    is_tried = launched is not None and launched.message and launched.reason != "AwaitingReconciliation"
    return launched if is_tried else None


def launch_repair(claim: str, error: str) -> str:
    """Return what lets the cloud launch the machine of a NodeClaim."""
    return f"{_MORE_QUOTA if _OF_QUOTA.search(error) else f'repair what keeps {claim} from launching'}: {error}"


def fixes_of_reports(snapshot: Snapshot, pod: str) -> Iterator[Fix]:
    """Yield fixes according to the autoscalers' own events about a pod."""
    event, karpenter_event = snapshot.autoscaler_events.get(pod), snapshot.karpenter_events.get(pod)
    if event is not None:
        yield from reported_fixes(event)
    if karpenter_event is not None and holds(karpenter_event, snapshot):
        yield from reported_by_karpenter(karpenter_event.message)


def reported_fixes(event: RecordedEvent) -> Iterator[Fix]:
    """Yield fixes according to the autoscaler's own event, if the cluster's objects do not show its groups."""
    if event.reason == TRIGGERED_SCALE_UP:
        yield autoscaler_fix("wait for cluster-autoscaler: it reports that it adds a node for the pod")
    elif event.reason == FAILED_SCALE_UP:
        ways, is_refused = other_ways("the node group", event.message), _NOT_REGISTERED not in event.message
        why = ": cluster-autoscaler reports that the cloud refuses the node" if is_refused else ""
        yield autoscaler_fix(f"{ways}{why}", group=None)
    elif match := _CLUSTER_LIMIT.search(event.message):
        flag, resource = limit_flag(match["resource"]), match["resource"]
        limit = f"the limit of {resource} for the whole cluster ({flag}, or that of node auto-provisioning)"
        yield autoscaler_fix(f"raise {limit}, which cluster-autoscaler reports as reached")
    elif AT_MAX_NODES_TOTAL in event.message:
        yield autoscaler_fix("raise --max-nodes-total of cluster-autoscaler, which it reports as reached")
    elif AT_MAXIMUM in event.message:
        yield autoscaler_fix("raise the maximum of the node group, which cluster-autoscaler reports as reached")
    elif BACKED_OFF in event.message:
        why = "it is in backoff after a failed scale-up, whose error is in the autoscaler's log"
        yield autoscaler_fix(f"let the node group {_OTHER_WAYS}: {why}", group=None)
    elif "not ready for scale-up" in event.message:
        why = "cluster-autoscaler reports that it is not ready for scale-up"
        yield autoscaler_fix(f"repair the nodes of the node group that do not join or are not ready: {why}", group=None)


def refusal_now(event: RecordedEvent | None, snapshot: Snapshot) -> str:
    """Return the message of an autoscaler's recent event that it adds no node for a pod; else empty."""
    is_refusal = event is not None and event.reason not in (TRIGGERED_SCALE_UP, NOMINATED)
    return event.message if event is not None and is_refusal and _is_recent(event, snapshot) else ""


def holds(event: RecordedEvent, snapshot: Snapshot) -> bool:
    """Return whether Karpenter's event about a pod still holds: a nomination that is not recent led to no node, and
    kube-scheduler has rejected one of a node that is initialized."""
    if event.reason != NOMINATED:
        return True
    named = re.split(r"[\s,/]+", event.message)
    labels = (node.metadata.labels for node in snapshot.cluster.nodes if node.name in named)
    is_placed = any(it.get(INITIALIZED) == "true" or NODE_POOL not in it for it in labels)
    return _is_recent(event, snapshot) and not is_placed


def _is_recent(event: RecordedEvent, snapshot: Snapshot) -> bool:
    """Whether an autoscaler's event is not older than it lets such an event become while the pod stays pending."""
    age = elapsed(event.last_seen, snapshot.taken)
    return age is not None and age < _REPEATED_WITHIN


_REPEATED_WITHIN = 10 * 60 * 10**9


def is_of_limits(message: str) -> bool:
    """Return whether Karpenter reports that the limits of a NodePool are reached."""
    return "exceed limits" in message


def reported_by_karpenter(message: str, pool: str = "", limits: str = "") -> Iterator[Fix]:
    """Yield fixes according to Karpenter's own event, if the cluster's objects do not show its NodePools or their
    instance types. `limits` is `cpu 4 of 35 in use` for the limits of the NodePool, if they are known."""
    match = _OF_POOL.search(message)
    name = pool or (match["name"] if match else "")
    pool = f"NodePool {name}" if name else "a NodePool"
    if match := _NOMINATION.search(message):
        yield autoscaler_fix(f"wait for Karpenter: it reports that the pod should schedule on {match['place']}")
    elif NO_CAPACITY.search(message):
        yield autoscaler_fix(f"let {pool} {OTHER_TYPES}: the cloud has no capacity for its NodeClaim")
    elif is_of_limits(message):
        shares = f" ({limits})" if limits else ""
        yield autoscaler_fix(f"raise the limits of {pool}{shares}, which Karpenter reports as reached")
    elif match := _MIN_VALUES.search(message):
        yield autoscaler_fix(f"lower minValues of {match['keys']} in {pool}, or allow more values of it")
    elif match := _UNMET_RESOURCE.search(message):
        yield autoscaler_fix(f"allow instance types with {match['name']} in {pool}: Karpenter reports that none fits")
    elif "no instance type" in message or "filtered out all" in message:
        yield autoscaler_fix(f"allow larger or other instance types in {pool}: Karpenter reports that none fits")
    elif match := _INCOMPATIBLE.search(message):
        wanted = f"{match['key']} {list_names(match['values'].split(), 2, conjunction='or')}"
        yield autoscaler_fix(f"allow {wanted} in {pool}: Karpenter reports that it excludes the pod")
    elif match := _UNKNOWN_LABEL.search(message):
        yield autoscaler_fix(f"add label {match['key']} to {pool}: Karpenter reports that it sets none")
    elif "incompatible requirements" in message:
        yield autoscaler_fix(f"allow in {pool} what the pod requires, which Karpenter reports as incompatible")


def autoscaler_fix(title: str, *commands: str, group: FixGroup | None = FixGroup.CAPACITY) -> Fix:
    """Return an untried fix: the cluster has no such node yet on which the pod could be tried."""
    return Fix.untried(title, *commands, of_group=group, by_default=FixGroup.CAPACITY)

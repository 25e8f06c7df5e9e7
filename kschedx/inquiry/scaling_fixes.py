"""Fixes by an autoscaler, which are the first fixes of an answer: a node that is being added, or a limit to raise.

Each was tried in a loop of the autoscaler. Its other changes of the pod are reported with the autoscaler's decision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.autoscaler.remedies import AutoscalerRemedy, StepKind
from kschedx.autoscaler.sizes import AT_MAXIMUM, BACKED_OFF
from kschedx.fixes import Change, Target, find_fix_by_autoscaler
from kschedx.fixes.changes import pool_patch
from kschedx.fixes.owners import Owner
from kschedx.fixes.steps import Group
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.inquiry.autoscaler_remedies import helped_pods
from kschedx.inquiry.fix import Fix
from kschedx.karpenter.cluster import KarpenterRemedy
from kschedx.karpenter.pods import PodEligibility
from kschedx.kube.autoscalers import NODE_POOL, NODE_POOL_API, NodeClaim, NodePool
from kschedx.kube.escaping import shell_command
from kschedx.kube.types import Node, NodeCondition, Pod
from kschedx.render.states import ComponentDown
from kschedx.render.wording import count
from kschedx.snapshot.events import FAILED_SCALE_UP, ScaleUpEvent

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import Autoscaler, PodScaling
    from kschedx.inquiry.explanation import Explanation
    from kschedx.karpenter.cluster import Karpenter, PodProvisioning

_UPCOMING = re.compile(r"template-node-for-(?P<group>.+)-upcoming-\d+")


_NO_CAPACITY = re.compile(r"insufficient ?capacity|UnfulfillableCapacity|ZonalAllocationFailed|stockout", re.IGNORECASE)


_OF_QUOTA = re.compile(r"quota|limit ?exceeded", re.IGNORECASE)
_OTHER_WAYS = "use other instance types or zones, or add another"
_OF_POOL = re.compile(r"(?:node ?pool:? |NodePool=)\W{0,3}(?P<name>[a-z0-9][a-z0-9.-]*)")
_CLUSTER_LIMIT = re.compile(r"max cluster (?P<resource>\S+) limit reached")
"""MaxResourceLimitReached. Upstream: cluster-autoscaler's core/scaleup/orchestrator/skippedreasons.go."""
_LIMITS = {"cpu": "--cores-total", "memory": "--memory-total"}


def makes_room(remedy: AutoscalerRemedy | KarpenterRemedy) -> bool:
    """Return whether the remedy comes before other changes of the pod: a larger or reshaped group or NodePool, or a
    correction of the pod."""
    return remedy.step.kind in (StepKind.ROOM, StepKind.RESHAPED, StepKind.CORRECTION)


class NodeTrial(Struct, frozen=True, kw_only=True):
    """Tries kube-scheduler on the node that an autoscaler adds for a pod."""

    scheduler: Scheduler
    cycle: Cycle
    owner: Owner | None
    is_stored: bool
    """Whether the cluster has the pod."""
    autoscaler: str
    explain: Callable[[Cycle, Scheduler], Explanation]

    def fix(
        self,
        title: str,
        node: Node | None,
        pod: Pod | None = None,
        *,
        group: Group | None = Group.CAPACITY,
        helps: frozenset[str] | None = None,
    ) -> Fix:
        """Return the fix, tried with the changed `pod`, if there is one. It is untried if the node is unknown, or if
        the pod may not fit the node. `helps` are the pods for which the autoscaler then adds nodes."""
        own = self.cycle.pod
        tried = None
        if node is not None:
            tried = find_fix_by_autoscaler(self.scheduler, self.cycle, pod or own, node, self.autoscaler)
        if tried is None:
            return replace(_fix(title, group=group), helps=helps)
        found, then = tried
        made = Fix.of(found, self.owner, own, is_stored=self.is_stored, title=title)

        def answer() -> Explanation:
            return self.explain(then.scheduler.schedule(then.pod, then.profile), then.scheduler)

        return replace(made, steps=(), of_group=group or Group.CAPACITY, answer=answer, helps=helps)


def autoscaler_fixes(
    trial: NodeTrial,
    autoscaler: Autoscaler,
    scaling: PodScaling,
    remedies: Iterable[AutoscalerRemedy],
    event: ScaleUpEvent | None = None,
) -> Iterator[Fix]:
    """Yield the fixes by cluster-autoscaler. `event` is the event of the cluster's own autoscaler about the pod."""
    if scaling.choice is not None and not scaling.choice.error:
        for resize in scaling.choice.resizes[:1]:
            adds = f"it adds nodes to node group {resize.group} ({resize.before} → {resize.after})"
            helps = helped_pods(autoscaler, scaling)
            yield trial.fix(f"wait for cluster-autoscaler: {adds}", scaling.node_of(resize.group), helps=helps)
    elif scaling.pod.is_on_upcoming:
        group_name = upcoming_group(scaling)
        title = f"wait for the node of node group {group_name} that is starting"
        yield trial.fix(title, scaling.node_of(group_name))
    for remedy in remedies:
        of_pod = remedy.step.kind is StepKind.OF_POD
        then = f", then cluster-autoscaler adds a node to {remedy.group}" if of_pod else ""
        yield trial.fix(f"{remedy.step.title}{then}", remedy.node, remedy.pod, helps=remedy.helps)
    for group in scaling.groups:
        reason = group.detail.partition(":")[0]
        is_unknown = group.template is None and event is not None and BACKED_OFF in event.message and reason
        if (group.fits and group.skipped == (BACKED_OFF,)) or is_unknown:
            why = f": {reason}" if reason else ""
            title = f"let node group {group.name} {_OTHER_WAYS}{why}"
            yield trial.fix(title, None if group.template is None else group.template.node, group=None)


def upcoming_group(scaling: PodScaling) -> str:
    """Return the group of the starting node for which the pod waits; empty if there is none."""
    match = _UPCOMING.fullmatch(scaling.pod.node) if scaling.pod.is_on_upcoming else None
    return "" if match is None else match["group"]


def karpenter_fixes(
    trial: NodeTrial, karpenter: Karpenter, found: PodProvisioning, remedies: Iterable[KarpenterRemedy]
) -> Iterator[Fix]:
    pod = trial.cycle.pod
    yield from _repaired_pools(karpenter, found, pod)
    yield from _claims_under_way(trial, karpenter, found)
    if found.pool:
        title = f"wait for Karpenter: it adds a node to NodePool {found.pool}, if the cloud has capacity"
        is_own = pod.key in karpenter.snapshot.pods.rows
        helps = frozenset(key for new in karpenter.own.new for key in new.pods) if is_own else None
        yield trial.fix(title, karpenter.node_of(found.pool, pod), helps=helps)
    for remedy in remedies:
        of_pod = remedy.step.kind in (StepKind.OF_POD, StepKind.CORRECTION)
        then = f", then Karpenter adds a node of {remedy.pool}" if of_pod else ""
        group = Group.WORKLOAD if remedy.step.kind is StepKind.CORRECTION else Group.CAPACITY
        fix = trial.fix(f"{remedy.step.title}{then}", remedy.node, remedy.pod, group=group, helps=remedy.helps)
        fix = fix if remedy.changed is None else _with_pool(fix, karpenter, remedy.changed)
        yield replace(fix, reshapes_pool=remedy.step.kind is StepKind.RESHAPED)


def _with_pool(fix: Fix, karpenter: Karpenter, changed: NodePool) -> Fix:
    """Return the fix with the change of the NodePool, and whether its nodes drift."""
    before = next(pool for pool in karpenter.pools if pool.name == changed.name)
    change = Change(target=Target(NODE_POOL_API, "NodePool", changed.name), patch=tuple(pool_patch(before, changed)))
    costs = fix.costs
    if before.spec.template.metadata != changed.spec.template.metadata:
        nodes = sum(node.metadata.labels.get(NODE_POOL) == changed.name for node in karpenter.snapshot.cluster.nodes)
        phrase = f"{count(nodes, 'existing node')} of the NodePool {'drifts' if nodes == 1 else 'drift'}"
        costs = (*costs, f"{phrase}: Karpenter replaces {'it' if nodes == 1 else 'them'}") if nodes else costs
    return replace(fix, changes=(change, *fix.changes), apply=(change, *fix.apply), costs=costs)


def _claims_under_way(trial: NodeTrial, karpenter: Karpenter, provisioning: PodProvisioning) -> Iterator[Fix]:
    """Yield fixes according to the conditions of the NodeClaims for which the pod waits."""
    is_waiting = provisioning.looked.outcome is PodEligibility.WAITING
    names = karpenter.cluster.not_launched if is_waiting else (provisioning.existing,) if provisioning.is_claim else ()
    for claim in karpenter.snapshot.of(NodeClaim):
        if claim.name not in names:
            continue
        named, command = f"NodeClaim {claim.name}", shell_command("kubectl describe nodeclaim {}", claim.name)
        said = next(
            (condition for condition in claim.status.conditions if condition.status != "True" and condition.message),
            None,
        )
        if not is_waiting:
            yield _fix(f"wait for the node of {named}; if it does not register, find out why", command)
        elif said is not None and _NO_CAPACITY.search(f"{said.reason} {said.message}"):
            ways = "other instance types, zones, or capacity types"
            pool = claim.metadata.labels.get(NODE_POOL, "")
            title = f"let NodePool {pool} use {ways}: the cloud has no capacity for {named}"
            yield trial.fix(title, karpenter.node_of(pool, trial.cycle.pod), group=None)
        elif said is not None:
            yield _fix(f"repair what keeps {named} from launching: {said.message}", command, group=None)


def _repaired_pools(karpenter: Karpenter, provisioning: PodProvisioning, pod: Pod) -> Iterator[Fix]:
    """Yield repairs of NodePools that are not ready, but would help if they were."""
    from kschedx.render.words.karpenter import skipped_pool_text

    for pool in karpenter.skipped if not provisioning.pool and not provisioning.existing else ():
        conditions = (NodeCondition(type="Ready", status="True"),)
        ready = replace(pool.pool, status=replace(pool.pool.status, conditions=conditions))
        if pool.why != "not-ready":
            continue
        then = karpenter.with_pools({pool.pool.name: ready}).about(pod)
        if then is not None and (then.pool == pool.pool.name or pool.pool.name in then.open_pools):
            reference = pool.pool.spec.template.spec.node_class_ref
            why = skipped_pool_text(pool, karpenter).removeprefix("is not ready").removeprefix(": ")
            why = why.rpartition("; ")[2].removeprefix(f"{reference.kind} ")
            phrase = f"repair {reference.kind} {reference.name}, so that NodePool {pool.pool.name} is ready"
            yield _fix(f"{phrase}: {why}" if why else phrase)


def reported_fixes(event: ScaleUpEvent) -> Iterator[Fix]:
    """Yield fixes according to the autoscaler's own event, if the cluster's objects do not show its groups."""
    if event.reason == "TriggeredScaleUp":
        yield _fix("wait for cluster-autoscaler: it reports that it adds a node for the pod")
    elif event.reason == FAILED_SCALE_UP:
        ways = f"let the node group {_OTHER_WAYS}"
        if _OF_QUOTA.search(event.message):
            ways = "raise the quota of the cloud account, or use instance types or zones with quota left"
        yield _fix(f"{ways}: cluster-autoscaler reports that the cloud refuses the node", group=None)
    elif match := _CLUSTER_LIMIT.search(event.message):
        flag = _LIMITS.get(match["resource"], "--gpu-total")
        limit = f"the limit of {match['resource']} for the whole cluster ({flag}, or that of node auto-provisioning)"
        yield _fix(f"raise {limit}, which cluster-autoscaler reports as reached")
    elif AT_MAXIMUM in event.message:
        yield _fix("raise the maximum of the node group, which cluster-autoscaler reports as reached")
    elif BACKED_OFF in event.message:
        why = "it is in backoff after a failed scale-up, whose error is in the autoscaler's log"
        yield _fix(f"let the node group {_OTHER_WAYS}: {why}", group=None)


def reported_by_karpenter(message: str) -> Iterator[Fix]:
    """Yield fixes according to Karpenter's own event, if the cluster's objects do not show its NodePools."""
    match = _OF_POOL.search(message)
    pool = f"NodePool {match['name']}" if match else "a NodePool"
    if "exceed limits" in message:
        yield _fix(f"raise the limits of {pool}, which Karpenter reports as reached")
    elif "no instance type" in message or "filtered out all" in message:
        yield _fix(f"allow larger or other instance types in {pool}: Karpenter reports that none fits")
    elif "incompatible requirements" in message:
        yield _fix(f"allow in {pool} what the pod requires, which Karpenter reports as incompatible")


def autoscaler_repair(down: ComponentDown) -> Fix:
    namespace, _, name = down.pods[0].partition("/")
    command = shell_command("kubectl logs {} -n {}", name, namespace)
    return _fix(f"repair {down.component}, which does not run", command, group=None)


def _fix(title: str, *commands: str, group: Group | None = Group.CAPACITY) -> Fix:
    """Return an untried fix: the cluster has no such node yet on which the pod could be tried."""
    return Fix.untried(title, of_group=group, commands=commands)

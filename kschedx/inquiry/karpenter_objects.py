"""Why a NodePool adds no node, and why a NodeClaim has no node: Karpenter's own objects as the subject of a question.

Upstream: controllers/nodeclaim/lifecycle, controllers/nodepool, and controllers/node/termination of Karpenter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial

from kschedx.controllers import states
from kschedx.explain.advice import FixGroup
from kschedx.fixes.node_remedies import node_repairs
from kschedx.fixes.phrases import budgets_by_drain, open_pool_budget, unguard_pod
from kschedx.grouping import group_pairs
from kschedx.inquiry.fix import Fix, component_repair
from kschedx.inquiry.node import NodeAnswer
from kschedx.inquiry.node_scaling import (
    NO_CAPACITY,
    autoscaler_fix,
    launch_failure,
    launch_repair,
    reported_by_karpenter,
)
from kschedx.inquiry.object_answer import ObjectAnswer, ObjectQuestion, drain_facts, drain_fixes
from kschedx.inquiry.pool_scaling import PoolScaling, limits_text, missing_class, requirement_fixes, with_pool
from kschedx.karpenter.catalogue import node_class_faults, unmet_requirements
from kschedx.karpenter.cluster import Karpenter, LaunchCertainty, PoolVerdict
from kschedx.karpenter.disruption import NodeDisruption, disruptions
from kschedx.karpenter.headlines import pool_headline, untried_text
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import LimitReached, NodeLimitReached
from kschedx.karpenter.scheduler import SchedulingFailure
from kschedx.kube.autoscalers import DO_NOT_DISRUPT, KARPENTER_GROUP, NODE_POOL, NodeClaim, NodePool
from kschedx.kube.conditions import TimedCondition, condition_of, condition_text
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import KINDS
from kschedx.kube.kubectl import add_to_dump, merge_patch
from kschedx.kube.quantity import value
from kschedx.kube.storage import VolumeAttachment, own_claims
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names
from kschedx.words.constraints import fault_text
from kschedx.words.growth import OUTCOMES

_MOST = 3
_OF_VOLUMES = ("PersistentVolumeClaim", "PersistentVolume")
_NAMESPACE_OF_EVENTS = "default"  # of events about objects without a namespace
_TERMINATION_TIMESTAMP = f"{KARPENTER_GROUP}/nodeclaim-termination-timestamp"
"""The annotation with the time at which Karpenter deletes all pods of a node in deletion."""


# Why a NodePool adds no node.


def explain_karpenter(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return why Karpenter adds no node to a NodePool, or for which pods it does; or at which stage a NodeClaim is, and
    what it waits for. None for an object that does not exist."""
    match asked.object:
        case NodePool() as pool:
            return _PoolAnswer(asked, pool).answer
        case NodeClaim() as claim:
            return _ClaimAnswer(asked, claim).answer
        case _:
            return None


class _PoolAnswer:
    """The question about one NodePool, in the order in which Karpenter checks it."""

    def __init__(self, asked: ObjectQuestion, pool: NodePool) -> None:
        self._asked, self._pool = asked, pool
        self._subject = f"nodepool/{pool.name}"

    @property
    def answer(self) -> ObjectAnswer:
        pool = self._pool
        if deleted := pool.metadata.deletion_timestamp:
            number = max(len(self._claims), self._node_count)
            does = f"drains its {count(number, 'node')} and adds no others to it" if number else "adds no node to it"
            why = f"Karpenter {does}"
            state = states.BeingDeleted(subject=self._subject, since=deleted, is_workload=True, why=why)
            title = f"create a NodePool to replace {pool.name}, if its pods still need one"
            return ObjectAnswer(state=state, fixes=lambda: (autoscaler_fix(title),))
        if pool.unready_condition is not None:
            return self._unready
        if (down := self._asked.karpenter_down) is not None:
            return self._no_node("Karpenter does not run", (down.shown,), component_repair(down))
        if pool.spec.replicas is not None:
            return self._static
        return self._decision

    def _no_node(self, because: str, facts: Iterable[str], *fixes: Fix, message: str = "") -> ObjectAnswer:
        does = f"adds no node: {because}"
        state = states.WithoutNode(subject=self._subject, does=does, facts=tuple(facts), message=message)
        return ObjectAnswer(state=state, fixes=lambda: fixes)

    def _is_fine(self, does: str, facts: Iterable[str]) -> ObjectAnswer:
        every = (*facts, *self._standing)
        return ObjectAnswer(state=states.ObjectState(subject=self._subject, does=does, facts=every))

    @property
    def _claims(self) -> list[NodeClaim]:
        every = self._asked.snapshot.of(NodeClaim)
        return [claim for claim in every if claim.metadata.labels.get(NODE_POOL) == self._pool.name]

    @property
    def _unfinished(self) -> list[NodeClaim]:
        """Its claims that are no nodes."""
        return [it for it in self._claims if condition_of(it.status.conditions, "Initialized", "True") is None]

    @property
    def _node_count(self) -> int:
        """The number of its nodes, also in a dump without NodeClaims."""
        nodes = self._asked.snapshot.cluster.nodes
        labeled = sum(node.metadata.labels.get(NODE_POOL) == self._pool.name for node in nodes)
        if not nodes and not self._claims:
            return value(self._pool.status.resources.get("nodes", "0"))
        return max(len(self._claims) - len(self._unfinished), labeled - len(self._unfinished))

    @property
    def _standing(self) -> Iterator[str]:
        """Yield the pool's nodes with its limits, its claims that are no nodes, and failures of its last nodes."""
        text = limits_text(self._asked.karpenter, self._pool.name) if self._asked.karpenter is not None else ""
        yield f"it has {count(self._node_count, 'node')}{f', limits: {text}' if text else ''}"
        yield from self._claim_facts(self._unfinished)
        fault = condition_of(self._pool.status.conditions, "NodeRegistrationHealthy", "False")
        if fault is not None:
            yield f"its last nodes did not register: {condition_text(fault)}"

    @property
    def _unready(self) -> ObjectAnswer:
        """Return why the NodePool is not ready: the conditions of its node class, or its own."""
        pool, snapshot = self._pool, self._asked.snapshot
        reference = pool.spec.template.spec.node_class_ref
        named = f"{reference.kind} {reference.name}"
        unready = pool.unready_condition or TimedCondition()
        own = pool.unready_details or tuple(it for it in pool.status.conditions if it == unready)
        is_of_class = any(it.type == "NodeClassReady" for it in own)
        faults = node_class_faults(snapshot, pool) if is_of_class or not own else ()
        others = [it for it in own if not (faults and it.type == "NodeClassReady")]
        facts = [*(f"{named}: {condition_text(fault)}" for fault in faults), *map(condition_text, others)]
        if not facts:
            facts = ["it has no condition Ready: Karpenter has not checked it"]
        describe = shell_command("kubectl describe {} {}", reference.kind.lower(), reference.name)
        fix = autoscaler_fix(f"correct NodePool {pool.name}: {(others or [unready])[0].message}")
        missing = missing_class(snapshot, pool) if is_of_class and not faults else None
        if missing is not None:
            facts, fix = [missing[0], *facts], missing[1]
        elif faults:
            fix = autoscaler_fix(f"repair {named}: {condition_text(faults[0])}", describe)
        elif is_of_class:
            fix = autoscaler_fix(f"repair {named}, or its reference: {own[0].message}", describe)
        elif not own:
            fix = autoscaler_fix("see in the logs of Karpenter why it does not check the NodePool")
        down = self._asked.karpenter_down
        if down is not None:
            facts, fix = [*facts, f"Karpenter does not run: {down.shown}"], component_repair(down)
        return self._no_node("it is not ready", facts, fix)

    @property
    def _static(self) -> ObjectAnswer:
        """Return the answer about a NodePool with a fixed number of nodes."""
        wanted, claims = self._pool.spec.replicas or 0, self._unfinished
        missing = wanted - self._node_count
        fixed = f"it is static: pending pods do not change its {count(wanted, 'replica')}"
        if missing <= 0:
            return self._is_fine("adds no node for pending pods", (fixed,))
        does, absent = f"lacks {missing:,} of its {count(wanted, 'node')}", missing - len(claims)
        refused, most = self._no_capacity(), self._pool.spec.limits.get("nodes")
        facts, is_known = [fixed, *self._standing], not self._asked.snapshot.source.may_lack("NodeClaim.karpenter.sh")
        if absent > 0 and is_known:
            facts.append(f"Karpenter has created no NodeClaim for {count(absent, 'node')}")
        message = "" if refused is None else refused.message
        state = states.WithoutNode(subject=self._subject, does=does, facts=tuple(facts), message=message)

        def fixes() -> Iterator[Fix]:
            yield from self._claim_fixes(claims)
            if refused is not None:
                yield from reported_by_karpenter(refused.message, self._pool.name)
            elif absent > 0 and most is not None and value(most) < wanted:
                patch = {"spec": {"limits": {"nodes": str(wanted)}}}
                title = f"raise the limit of NodePool {self._pool.name} from {most} to {count(wanted, 'node')}"
                yield autoscaler_fix(title, merge_patch("nodepool", "", self._pool.name, patch))
            elif not is_known:
                title = "find out which of its NodeClaims exist"
                yield autoscaler_fix(
                    title, shell_command("kubectl get nodeclaims -l {}={}", NODE_POOL, self._pool.name)
                )
            elif absent == wanted:
                yield autoscaler_fix(
                    "set feature gate StaticCapacity=true of Karpenter: it ignores replicas without it"
                )
            elif absent > 0:
                yield autoscaler_fix("see in the logs of Karpenter why it creates no NodeClaim")

        return ObjectAnswer(state=state, fixes=fixes)

    def _claim_facts(self, claims: Sequence[NodeClaim]) -> Iterator[str]:
        yield from (f"NodeClaim {claim.name} {_ClaimAnswer(self._asked, claim).does}" for claim in claims[:_MOST])
        if len(claims) > _MOST:
            yield count(len(claims) - _MOST, "more NodeClaim")

    def _claim_fixes(self, claims: Iterable[NodeClaim]) -> Iterator[Fix]:
        """Yield the fixes of claims without an initialized node; of those that wait for the same, of the first."""
        answers = (_ClaimAnswer(self._asked, claim) for claim in claims)
        alike = group_pairs((answer.awaited, answer) for answer in answers if answer.awaited)
        for first, *_ in [*alike.values()][:_MOST]:
            yield from first.answer.fixes()

    @property
    def _decision(self) -> ObjectAnswer:
        """Return what Karpenter decides about the pending pods, as far as this NodePool is concerned."""
        karpenter, pool = self._asked.karpenter, self._pool
        if karpenter is None:
            text = "NodePools that Karpenter cannot read"
            return ObjectAnswer(state=states.NotRead(subject=self._subject, unknown="its use", because=text))
        if any(each.pool.name == pool.name and each.why == "no-types" for each in karpenter.skipped):
            return self._without_types
        if karpenter.cluster.not_launched:
            return self._waiting(karpenter)
        own = karpenter.own
        helped = [new for new in own.new if new.template.name == pool.name]
        if (refused := self._no_capacity()) is not None and karpenter.considered:
            fixes = reported_by_karpenter(refused.message, pool.name)
            return self._no_node("the cloud has no capacity for it", self._standing, *fixes, message=refused.message)
        if helped:
            pods = [key for new in helped for key in new.pods]
            does = f"adds {count(len(helped), 'node')} for {count(len(pods), 'pending pod')}"
            return self._is_fine(does, (f"if the cloud has capacity: {list_names(pods, _MOST)}",))
        if own.failures:
            return self._rejects(karpenter)
        elsewhere = {new.template.name for new in own.new}
        if elsewhere:
            weights = {it.name: it.spec.weight or 0 for it in karpenter.pools}
            first = max(elsewhere, key=lambda name: (weights[name], name))
            does = f"adds no node: the pending pods get nodes of NodePool {list_names(sorted(elsewhere), _MOST)}"
            return self._is_fine(does, self._order(weights, first))
        if own.existing:
            names = list_names(own.existing, _MOST)
            return self._is_fine(
                "adds no node: the pending pods fit existing ones", (f"Karpenter expects them on {names}",)
            )
        return self._idle(karpenter)

    def _idle(self, karpenter: Karpenter) -> ObjectAnswer:
        """Return that no pod needs a node, or why Karpenter ignores those that are pending."""
        looked, source = karpenter.pending_pods(), self._asked.snapshot.source
        ignored = group_pairs((each.reason or OUTCOMES[each.outcome][0], key) for key, each in looked.items())
        facts = [f"{_pods_text(keys)}: {why}" for why, keys in ignored.items()]
        lacking = ["Pod"] if not looked and source.may_lack("Pod") else []
        pods = karpenter.snapshot.pods
        refused = (key for key, each in looked.items() if each.outcome is PodEligibility.REFUSED)
        if any(own_claims(pods[pods.rows[key]]) for key in refused):  # a pod of a cluster has its claims
            lacking = [kind for kind in _OF_VOLUMES if not (source.is_complete(kind) or source.kinds.get(kind))]
        if lacking:
            because = f"the dump holds no {list_names((KINDS[kind].several for kind in lacking), 2, conjunction='and')}"
            unknown = "which pods need its nodes"
            command = add_to_dump(*lacking)
            state = states.NotRead(subject=self._subject, unknown=unknown, because=because, command=command)
            return ObjectAnswer(state=state)
        why = "Karpenter ignores all pending pods" if looked else "no pod is pending"
        return self._is_fine(f"adds no node: {why}", facts[:_MOST])

    def _order(self, weights: dict[str, int], first: str) -> Iterator[str]:
        own = weights[self._pool.name]
        if weights[first] > own:
            yield f"Karpenter tries {first} first: its weight is {weights[first]}, that of {self._pool.name} is {own}"
        elif weights[first] == own:
            yield f"Karpenter tries {first} first: of NodePools with the same weight, the last by name"

    @property
    def _without_types(self) -> ObjectAnswer:
        """Return why no instance type meets the requirements of the NodePool."""
        unmet = unmet_requirements(self._asked.snapshot, self._pool)
        fixes = requirement_fixes(self._pool, unmet)
        return self._no_node("no instance type meets all of its requirements", unmet.values(), *fixes)

    def _waiting(self, karpenter: Karpenter) -> ObjectAnswer:
        """Return that Karpenter decides nothing until the cloud has launched each NodeClaim."""
        names = karpenter.cluster.not_launched
        claims = [claim for claim in self._asked.snapshot.of(NodeClaim) if claim.name in names]
        facts, plural = self._claim_facts(claims), "NodeClaims are" if len(names) > 1 else "a NodeClaim is"
        return self._no_node(f"Karpenter waits until {plural} launched", facts, *self._claim_fixes(claims))

    def _no_capacity(self) -> RecordedEvent | None:
        """Return Karpenter's event about a NodeClaim of the pool for which the cloud had no capacity."""
        events = self._asked.snapshot.failed_creates.items()
        named = f"{self._pool.name}-"
        of_pool = (
            it for (kind, _, name), it in events if kind == "NodeClaim" and name.rpartition("-")[0] + "-" == named
        )
        return next(of_pool, None)

    def _rejects(self, karpenter: Karpenter) -> ObjectAnswer:
        """Return why the NodePool accepts none of the pending pods, with changes after which it would."""
        rows, name = karpenter.snapshot.pods.rows, self._pool.name
        verdicts: dict[str, PoolVerdict | None] = {}
        groups: dict[str, list[str]] = {}
        for key, failure in karpenter.own.failures.items():
            if key in rows:
                of_pod = karpenter.verdicts(karpenter.snapshot.pods[rows[key]], failure)
                verdicts[key] = own = next((verdict for verdict in of_pod if verdict.name == name), None)
                text = _untried_text(failure, of_pod, karpenter) if own is None else pool_headline(own)
                groups.setdefault(text, []).append(key)
        facts = [f"{_pods_text(keys)}: {text}" for text, keys in groups.items()]
        firsts = [keys[0] for keys in groups.values()][:_MOST]
        rejections = [verdict and verdict.rejection for verdict in verdicts.values()]
        of_limits = all(isinstance(it, LimitReached | NodeLimitReached) for it in rejections)
        is_open = all(it is not None and it.certainty is LaunchCertainty.UNKNOWN for it in verdicts.values())
        if is_open and not of_limits:
            unknown = f"whether an instance type fits {count(len(verdicts), 'pending pod')}"
            state = states.NotRead(subject=self._subject, unknown=unknown, because="; ".join(facts[:_MOST]))
            return ObjectAnswer(state=state)
        number = len(verdicts)
        because = "it does not accept the pending pod" if number == 1 else f"it accepts none of {number:,} pending pods"
        if not any(verdicts.values()):
            because = "Karpenter tries it for no pending pod"
        if of_limits:
            limits = "limits leave" if len(self._pool.spec.limits) > 1 else "limit leaves"
            because = f"its {limits} no room for another node"
        answer = self._no_node(because, (*facts[:_MOST], *self._standing))
        fixes = partial(self._remedies, karpenter, firsts, is_of_limits=of_limits)
        return ObjectAnswer(state=answer.state, fixes=fixes)

    def _remedies(self, karpenter: Karpenter, pods: Iterable[str], *, is_of_limits: bool) -> Iterator[Fix]:
        """Yield the changes after which Karpenter adds a node to the pool for one of these pods."""
        done = set[str]()
        for key in pods:
            pod = karpenter.snapshot.pods[karpenter.snapshot.pods.rows[key]]
            decision = karpenter.explain(pod)
            if decision is None:
                continue
            for remedy in PoolScaling(autoscaler=karpenter, decision=decision, pod=pod).remedies:
                if remedy.place == self._pool.name and remedy.title not in done:
                    done.add(remedy.title)
                    title = f"{key}: {remedy.title}" if remedy.is_of_pod else remedy.title
                    fix = autoscaler_fix(title, group=FixGroup.WORKLOAD if remedy.is_of_pod else FixGroup.CAPACITY)
                    yield fix if remedy.changed is None else with_pool(fix, karpenter, remedy.changed)
        if is_of_limits and not done:
            yield autoscaler_fix(
                f"raise the limits of NodePool {self._pool.name} ({limits_text(karpenter, self._pool.name)})"
            )


def _untried_text(failure: SchedulingFailure, others: Iterable[PoolVerdict], karpenter: Karpenter) -> str:
    """Return why Karpenter does not try a NodePool for a pod: it chose another one first, or it tries none."""
    first = next(iter(others), None)
    if first is None:
        return untried_text(failure.reason, karpenter)
    return f"Karpenter tries NodePool {first.name} first: {pool_headline(first)}"


def _pods_text(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{count(len(keys), 'pending pod')}, such as {keys[0]}"


# Why a NodeClaim has no node.


class _ClaimAnswer:
    """The question about one NodeClaim: its stages are launched, registered, and initialized."""

    def __init__(self, asked: ObjectQuestion, claim: NodeClaim) -> None:
        self._asked, self._claim = asked, claim
        self._subject = f"nodeclaim/{claim.name}"
        self._pool = claim.metadata.labels.get(NODE_POOL, "")

    @property
    def _snapshot(self) -> Snapshot:
        return self._asked.snapshot

    @property
    def _node(self) -> str:
        """The name of its node; empty if the cluster has none."""
        claim = self._claim
        for node in self._snapshot.cluster.nodes:
            if claim.status.provider_id and node.spec.provider_id == claim.status.provider_id:
                return node.name
        return claim.status.node_name if claim.status.node_name in self._snapshot.cluster.index else ""

    def _untrue(self, kind: str) -> TimedCondition | None:
        """Return the condition of a stage that it has not reached."""
        conditions = self._claim.status.conditions
        if condition_of(conditions, kind, "True"):
            return None
        return condition_of(conditions, kind) or TimedCondition(type=kind)

    @property
    def awaited(self) -> tuple[str, ...]:
        """What it waits for, equal for claims that wait for the same; empty for one with an initialized node."""
        if self._claim.metadata.deletion_timestamp:
            return (self._claim.name,)
        untrue = next(filter(None, map(self._untrue, ("Launched", "Registered", "Initialized"))), None)
        return () if untrue is None else (untrue.type, untrue.reason, untrue.message)

    @property
    def does(self) -> str:
        """What it is or lacks, after its name."""
        claim, node = self._claim, self._node
        if claim.metadata.deletion_timestamp:
            return "is being deleted"
        if self._untrue("Launched") is not None:
            return "has no node: its instance is not launched"
        if self._untrue("Registered") is not None:
            return "has no node: its instance has not joined the cluster"
        if not node:
            return f"has no node: {claim.status.node_name or 'its node'} does not exist"
        if (lacking := self._untrue("Initialized")) is not None:
            return f"has node {node}, which is not initialized: {self._uninitialized(lacking)}"
        return f"has node {node}"

    @property
    def answer(self) -> ObjectAnswer:
        claim, conditions = self._claim, self._claim.status.conditions
        if claim.metadata.deletion_timestamp:
            return self._deletion
        if condition_of(conditions, "Initialized", "True") and self._node:
            return self._standing
        facts, fixes = tuple(self._stage_facts()), partial(self._stage_fixes)
        event = self._no_capacity
        message = "" if event is None else event.message
        state = states.WithoutNode(subject=self._subject, does=self.does, facts=facts, message=message)
        return ObjectAnswer(state=state, fixes=fixes)

    @property
    def _no_capacity(self) -> RecordedEvent | None:
        return self._snapshot.failed_creates.get(("NodeClaim", _NAMESPACE_OF_EVENTS, self._claim.name))

    def _uninitialized(self, lacking: TimedCondition) -> str:
        """Return what Karpenter waits for before it counts the node as initialized."""
        row = self._snapshot.cluster.index[self._node]
        fault = fault_text(self._snapshot.cluster.nodes[row], self._snapshot.taken)
        if lacking.reason == "NodeNotReady" and fault:
            return fault
        return lacking.message or lacking.reason or "Karpenter has not checked it"

    def _stage_facts(self) -> Iterator[str]:
        down = self._asked.karpenter_down
        launched, registered = self._untrue("Launched"), self._untrue("Registered")
        if down is not None:
            yield f"Karpenter does not run: {down.shown}"
        if launched is not None:
            yield from (condition_text(launched),) if launched.message or launched.reason else ()
            yield "Karpenter deletes it if it is not launched after 5 minutes, and creates another"
        elif registered is not None:
            since = condition_of(self._claim.status.conditions, "Launched")
            at = since.last_transition_time if since is not None else None
            yield f"instance {self._claim.status.provider_id or 'unknown'} is launched{f' since {at}' if at else ''}"
            yield from (condition_text(registered),) if registered.message or registered.reason else ()
            yield "Karpenter deletes it if it has not joined after 15 minutes, and creates another"
        elif self._node:
            yield "until then, Karpenter expects pods on it, but neither consolidates nor replaces it"

    def _stage_fixes(self) -> Iterator[Fix]:
        claim, snapshot, down = self._claim, self._snapshot, self._asked.karpenter_down
        named, node = f"NodeClaim {claim.name}", self._node
        describe = shell_command("kubectl describe nodeclaim {}", claim.name)
        if down is not None:
            yield component_repair(down)
        launched, registered, initialized = map(self._untrue, ("Launched", "Registered", "Initialized"))
        if launched is not None:
            event = self._no_capacity
            text = event.message if event is not None else f"{launched.reason} {launched.message}"
            if NO_CAPACITY.search(text):
                yield from reported_by_karpenter(text, self._pool)
            elif launch_failure(claim) is not None:
                yield autoscaler_fix(launch_repair(named, launched.message), describe)
            elif down is None:
                title = f"wait until Karpenter launches {named}, or see in its logs why it does not"
                yield autoscaler_fix(title, describe)
        elif registered is not None and registered.reason == "MultipleNodesFound":
            same = [it.name for it in snapshot.cluster.nodes if it.spec.provider_id == claim.status.provider_id]
            which = f": {list_names(same, _MOST)}" if len(same) > 1 else ""
            yield autoscaler_fix(f"delete the node of an earlier name, so that one node has its provider ID{which}")
        elif registered is not None:
            instance = claim.status.provider_id.rpartition("/")[2]
            command = shell_command("aws ec2 get-console-output --latest --instance-id {}", instance)
            commands = (command,) if instance.startswith("i-") else (describe,)
            what = "its bootstrap, its role's access to the cluster, and the network to the API server"
            yield autoscaler_fix(f"find out why the kubelet of {instance or named} does not join: {what}", *commands)
        elif not node:
            command = shell_command("kubectl delete nodeclaim {}", claim.name)
            yield autoscaler_fix(f"delete {named}, if Karpenter does not: its node no longer exists", command)
        elif initialized is not None:
            yield from self._initialization_fixes(initialized)

    def _initialization_fixes(self, lacking: TimedCondition) -> Iterator[Fix]:
        row = self._snapshot.cluster.index[self._node]
        repairs = [*node_repairs(row, self._snapshot.cluster.nodes[row], self._snapshot)]
        for step in repairs:
            yield Fix.untried(step.title, *step.commands(), of_group=FixGroup.CAPACITY)
        if not repairs:
            of_node = shell_command("kubectl get pods -A --field-selector spec.nodeName={}", self._node)
            verb = (
                "repair what registers it"
                if lacking.reason.endswith(("Registered", "Published"))
                else "repair the node"
            )
            yield autoscaler_fix(f"{verb}: {lacking.message or lacking.reason}", of_node)

    # A NodeClaim with a node: what Karpenter wants to do with it, and what keeps it from that.

    @property
    def _standing(self) -> ObjectAnswer:
        """Return that it is a node, and why Karpenter has not replaced it yet if it is drifted."""
        claim, node, does = self._claim, self._node, self.does
        drifted = condition_of(claim.status.conditions, "Drifted", "True")
        disruption = next(iter(disruptions(self._snapshot, [node])), None)
        facts = []
        if drifted is not None:
            does += f", and is drifted ({drifted.reason})"
            obstacles = disruption.obstacles if disruption is not None and disruption.is_blocked else ()
            facts += [f"Karpenter does not replace it: {obstacle.text}" for obstacle in obstacles[:1]]
            facts += [] if obstacles else ["Karpenter replaces it as the disruption budgets of its NodePool permit"]
        pools = {pool.name for pool in self._snapshot.of(NodePool)}
        if pools and self._pool and self._pool not in pools:
            facts.append(f"its NodePool {self._pool} does not exist: Karpenter does not replace or consolidate it")
        if self._expires:
            facts.append(self._expires)
        is_kept = drifted is not None and disruption is not None and disruption.is_blocked
        fixes = partial(_disruption_fixes, disruption) if is_kept and disruption is not None else tuple
        return ObjectAnswer(state=states.ObjectState(subject=self._subject, does=does, facts=tuple(facts)), fixes=fixes)

    @property
    def _expires(self) -> str:
        """When its expireAfter ends, if that is known."""
        after, created = self._claim.spec.expire_after, self._claim.metadata.creation_timestamp
        return (
            f"Karpenter deletes it {after} after its creation at {created} (expireAfter)" if after and created else ""
        )

    @property
    def _deletion(self) -> ObjectAnswer:
        """Return what the deletion of the NodeClaim waits for: pods, volumes, or the cloud."""
        claim = self._claim
        state = states.BeingDeleted(
            subject=self._subject,
            since=claim.metadata.deletion_timestamp or "",
            is_workload=True,
            facts=tuple(self._deletion_facts()),
        )
        return ObjectAnswer(state=state, fixes=self._deletion_fixes)

    @cached_property
    def _drained(self) -> NodeAnswer | None:
        """Its node, if that is still drained."""
        is_drained = condition_of(self._claim.status.conditions, "Drained", "True") is not None
        return None if is_drained or not self._node else NodeAnswer(self._asked.setup, self._snapshot, self._node)

    @cached_property
    def _attachments(self) -> list[VolumeAttachment]:
        awaits = condition_of(self._claim.status.conditions, "VolumesDetached", "Unknown") is not None
        every = self._snapshot.of(VolumeAttachment) if awaits else ()
        return [it for it in every if it.spec.node_name in (self._node, self._claim.status.node_name)]

    def _deletion_facts(self) -> Iterator[str]:
        claim, node = self._claim, self._drained
        down, event = self._asked.karpenter_down, self._no_capacity
        if down is not None:
            yield f"Karpenter does not run: {down.shown}"
        if event is not None:
            yield event.message
        if condition_of(claim.status.conditions, "InstanceTerminating", "True"):
            yield "its node is drained, and the cloud terminates its instance"
        elif condition_of(claim.status.conditions, "VolumesDetached", "Unknown"):
            yield "its node is drained, and Karpenter waits until its volumes are detached"
            for it in self._attachments[:_MOST]:
                error = it.status.detach_error
                text = f": {error.message}" if error is not None and error.message else ""
                yield f"{it.spec.attacher} has not detached volume {it.spec.source.persistent_volume_name}{text}"
        elif node is not None:
            yield from drain_facts(node)
            if node.guarded_pods:
                yield f"{DO_NOT_DISRUPT} keeps {list_names(node.guarded_pods, _MOST)} from being evicted"
            until = claim.metadata.annotations.get(_TERMINATION_TIMESTAMP)
            is_kept = node.blocking_budgets or node.guarded_pods
            if until:
                yield f"it deletes all pods by {until} (terminationGracePeriod)"
            elif is_kept and claim.spec.termination_grace_period is None:
                yield "no terminationGracePeriod ends this"
        elif claim.status.provider_id:
            yield "Karpenter deletes its instance"

    def _deletion_fixes(self) -> Iterator[Fix]:
        down, node = self._asked.karpenter_down, self._drained
        event = self._no_capacity
        if down is not None:
            yield component_repair(down)
        if event is not None:
            yield from reported_by_karpenter(event.message, self._pool)
        for it in self._attachments[:1]:
            command = shell_command("kubectl describe volumeattachment {}", it.name)
            yield autoscaler_fix(f"repair the CSI driver {it.spec.attacher}, which detaches the volume", command)
        if node is not None and not self._attachments:
            yield from drain_fixes(node)
            for key in node.guarded_pods[:_MOST]:
                yield Fix.of_advice(unguard_pod(key))


def _disruption_fixes(disruption: NodeDisruption) -> Iterator[Fix]:
    """Yield what lets Karpenter replace a node."""
    if disruption.guarded:
        yield Fix.of_advice(unguard_pod(disruption.guarded))
    elif disruption.is_guarded:
        command = shell_command(f"kubectl annotate node {{}} {DO_NOT_DISRUPT}-", disruption.node)
        yield autoscaler_fix(f"remove {DO_NOT_DISRUPT} from node {disruption.node}", command)
    if disruption.protected:
        yield Fix.of_advice(budgets_by_drain(disruption.node, disruption.protected))
    yield from (Fix.of_advice(open_pool_budget(disruption.pool, place)) for place in disruption.blocking)

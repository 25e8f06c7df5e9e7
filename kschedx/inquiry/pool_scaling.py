"""Karpenter's decision about a pod that fits no node, and the changes after which it would add one. Each is tried in
its own round before it is proposed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.findings import RequirementMatch
from kschedx.fixes.changes import pool_patch
from kschedx.fixes.node_remedies import is_of_provider
from kschedx.fixes.node_requirements import AGENT_NOT_READY, OF_ROLES, REMOVED_BY
from kschedx.fixes.pod_edits import rounded_down
from kschedx.fixes.steps import DropRequirements, LowerRequests, PodStep, SelectInstead, Tolerate
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.node_scaling import (
    LEAST_SHARE,
    NO_CAPACITY,
    OTHER_TYPES,
    NodeRemedy,
    NodeTrial,
    ScalingTrial,
    StepKind,
    autoscaler_fix,
    find_remedies,
    holds,
    is_of_limits,
    launch_failure,
    launch_repair,
    refusal_now,
    reported_by_karpenter,
)
from kschedx.karpenter.catalogue import node_class_of, unmet_requirements, unready_text
from kschedx.karpenter.cluster import Karpenter, LaunchCertainty, PodProvisioning, PoolVerdict, matching_types
from kschedx.karpenter.instance_types import InstanceType, NoInstanceType
from kschedx.karpenter.node_claims import pool_requirements
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import Incompatible, LimitReached, NodeLimitReached, NotTolerated
from kschedx.karpenter.requirements import (
    CAPACITY_TYPES,
    NODES,
    OS,
    RESERVED,
    ZERO,
    Amount,
    Amounts,
    LabelRequirement,
    NothingInCommon,
    UnknownLabel,
    class_label,
    is_reserved_label,
    merge_amounts,
    pod_requests,
    well_known,
)
from kschedx.kube.autoscalers import (
    CAPACITY_TYPE,
    EKS_AUTO_MODE,
    KARPENTER_GROUP,
    NODE_CLASSES,
    NODE_POOL,
    NodeClaim,
    NodeClaimTemplate,
    NodeOverlay,
    NodePool,
    NodeSelectorRequirementWithMinValues,
)
from kschedx.kube.conditions import TimedCondition, condition_of, condition_text
from kschedx.kube.documents import Change, Document, Target, part_of, with_spec
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import merge_patch
from kschedx.kube.names import NVIDIA_GPU, ZONE
from kschedx.kube.quantity import QuantityFormat, Unit
from kschedx.kube.resources import SPEC_ALONE
from kschedx.kube.types import NodeCondition, Pod, Taint
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_TYPES = 4  # instance types for which a limit is raised, smallest first
_OF_TYPES = lazy_pattern(r"/(instance-|sku-)")  # keys of requirements that restrict the instance types of a NodePool
_NODE_POOL_API = f"{KARPENTER_GROUP}/v1"  # the label with the name of a node's pool


class PoolScaling(Struct, frozen=True, kw_only=True, dict=True):
    """The decision about the NodePools."""

    autoscaler: Karpenter
    decision: PodProvisioning
    pod: Pod
    is_changed: bool = False  # whether the question changes the cluster

    @property
    def adds_node(self) -> bool:
        return bool(self.decision.pool) and not self.denial

    @property
    def progress(self) -> str:
        """What is in progress for the pod; empty if nothing is."""
        return f"Karpenter adds a node of NodePool {self.decision.pool}" if self.adds_node else ""

    @cached_property
    def denial(self) -> str:
        """Karpenter's own recent message that it adds no node for the pod, although it would by what the dump holds:
        availability, for one, is not in it."""
        if self.is_changed or not self.decision.pool:
            return ""
        snapshot = self.autoscaler.snapshot
        return refusal_now(snapshot.karpenter_events.get(self.pod.key), snapshot)

    @cached_property
    def reports(self) -> dict[str, str]:
        """Karpenter's own words, by the NodePool that might get a node for the pod: the cloud has no capacity, or the
        pod does not match. An empty name stands for several NodePools."""
        snapshot, provisioning = self.autoscaler.snapshot, self.decision
        of_pod = snapshot.karpenter_events.get(self.pod.key)
        unsure = [pool.name for pool in provisioning.pools if pool.certainty is LaunchCertainty.UNKNOWN]
        reports: dict[str, str] = {}
        if self.denial:
            reports[""] = self.denial
        elif of_pod is not None and unsure and not provisioning.pool and holds(of_pod, snapshot):
            reports[unsure[0] if len(unsure) == 1 else ""] = of_pod.message
        for (kind, _, name), event in snapshot.failed_creates.items():
            pool = name.rpartition("-")[0]  # NodeClaims are named after their NodePool
            if kind == "NodeClaim" and pool in (provisioning.pool, *unsure):
                reports[pool] = event.message
        if (fault := self._registration_fault) is not None:
            reports.setdefault(provisioning.pool, f"{fault.type}={fault.status} ({fault.reason}): {fault.message}")
        return reports

    def _undeclared_taints(self, name: str) -> tuple[Taint, ...]:
        """Return the taints that an agent sets and removes on new nodes of a NodePool, and that it does not declare:
        Karpenter counts such nodes as unusable and adds others."""
        spec = self.autoscaler.by_name[name].spec.template.spec
        declared = (*spec.taints, *spec.startup_taints)
        keys = {taint.key for taint in declared}
        nodes = self.autoscaler.snapshot.cluster.nodes
        taints = (taint for node in nodes if node.metadata.labels.get(NODE_POOL) == name for taint in node.spec.taints)
        undeclared = (it for it in taints if it.key.endswith(AGENT_NOT_READY) and it.key not in (*keys, *REMOVED_BY))
        return tuple(dict.fromkeys(undeclared))

    @property
    def _registration_fault(self) -> TimedCondition | None:
        """The condition of the NodePool that gets a node for the pod, if its last nodes did not register."""
        pool = self.autoscaler.by_name.get(self.decision.pool)
        return None if pool is None else condition_of(pool.status.conditions, "NodeRegistrationHealthy", "False")

    @property
    def document(self) -> ProvisioningDocument:
        karpenter, provisioning = self.autoscaler, self.decision
        types = tuple(instance_type.name for instance_type in provisioning.types)
        return part_of(
            ProvisioningDocument,
            provisioning,
            follows=karpenter.settings.rules_version,
            outcome=provisioning.looked.outcome,
            pools={pool.name: _pool(pool) for pool in provisioning.pools},
            skipped_pools={pool.pool.name: pool.why for pool in karpenter.skipped},
            types_are_known=karpenter.types_are_known,
            adds=LaunchDocument(provisioning.pool, types) if provisioning.pool else None,
            fixes=tuple(PoolRemedyDocument(remedy.title, remedy.place, remedy.types) for remedy in self.remedies),
        )

    @cached_property
    def remedies(self) -> tuple[NodeRemedy, ...]:
        """The remedies for a pod for which nothing is added; changes of the pod come first.

        If not all instance types of a NodePool are known, the trials after which it could lack only an instance type
        come last and name no type.
        """
        provisioning = self.decision
        if provisioning.pool or provisioning.existing:
            return ()
        trials = sorted(_trials(self), key=_PoolTrial.order)
        return find_remedies(trials)

    def fixes(self, trial: NodeTrial, *, with_changes_of_pod: bool) -> Iterator[Fix]:
        """Yield what Karpenter does, or would do with other settings."""
        karpenter, provisioning = self.autoscaler, self.decision
        yield from self._repaired_pools()
        yield from self._claims_under_way(trial)
        raised = {remedy.place for remedy in self.remedies if remedy.kind is StepKind.ROOM}
        reported = [
            fix
            for pool, message in self.reports.items()
            if not (pool in raised and is_of_limits(message))
            for fix in reported_by_karpenter(message, pool, limits_text(self.autoscaler, pool))
        ]
        if provisioning.pool:
            yield from reported
            if self._registration_fault is not None:
                command = shell_command("kubectl get nodeclaims -l karpenter.sh/nodepool={}", provisioning.pool)
                yield autoscaler_fix(f"repair how nodes of NodePool {provisioning.pool} join the cluster", command)
        if self.adds_node:
            title = f"wait for Karpenter: it adds a node to NodePool {provisioning.pool}, if the cloud has capacity"
            is_own = self.pod.key in karpenter.snapshot.pods.rows
            found = (*(new.pods for new in karpenter.own.new), *karpenter.own.existing.values())
            helps = frozenset(key for pods in found for key in pods) if is_own else None
            fix = trial.fix(title, karpenter.node_of(provisioning.pool, self.pod), helps=helps)
            yield replace(fix, costs=(*fix.costs, *self._limit_for_others(provisioning.pool)))
            for taint in self._undeclared_taints(provisioning.pool):
                phrase = f"add taint {taint} to startupTaints of NodePool {provisioning.pool}"
                yield autoscaler_fix(f"{phrase}: Karpenter then waits until its agent removes it")
        yield from self._ignored_overlays()
        yield from [*self._other_types()] or chain.from_iterable(map(_without_offering, self._failing_pools))
        yield from self._other_systems()
        yield from self._missing_pool()
        yield from self._unreserved()
        yield from self._reached_limits(raised)
        for remedy in self.remedies:
            # room where the pod may go comes first
            if remedy.is_of_pod and not provisioning.pool and not self._tolerates_devices(remedy):
                yield from reported
                reported = []
            if with_changes_of_pod or remedy.makes_room:
                fix = trial.remedy_fix(remedy, f"of {remedy.place}")
                fix = fix if remedy.changed is None else with_pool(fix, karpenter, remedy.changed)
                yield replace(fix, reshapes_pool=remedy.kind is StepKind.RESHAPED)
        if not provisioning.pool:
            yield from reported

    def _tolerates_devices(self, remedy: NodeRemedy) -> bool:
        """Return whether a remedy adds only tolerations for devices that the pod requests, such as nvidia.com/gpu."""
        before, after = ({toleration.key for toleration in pod.spec.tolerations} for pod in (self.pod, remedy.pod))
        amounts = [container.resources for container in (*self.pod.spec.init_containers, *self.pod.spec.containers)]
        requested = {name for each in amounts for name in (*each.requests, *each.limits)}
        return bool(after - before) and after - before <= requested

    def _limit_for_others(self, name: str) -> Iterator[str]:
        """Yield the limits of a NodePool that keep it from adding nodes for all pending pods."""
        refused = (pool.rejection for failure in self.autoscaler.own.failures.values() for pool in failure.pools)
        if any(isinstance(it, LimitReached | NodeLimitReached) and it.pool == name for it in refused):
            yield f"its limit allows no node for the others: {limits_text(self.autoscaler, name)}"

    @property
    def _failing_pools(self) -> Sequence[PoolVerdict]:
        """The NodePools if none adds a node and no remedy is known."""
        return () if self.decision.pool or self.remedies else self.decision.pools

    def _other_types(self) -> Iterator[Fix]:
        """Yield untried fixes of NodePools whose instance types do not suffice: other types or zones, none of which the
        cluster shows. It must show a type of each NodePool that may help."""
        shows_types = all(it.known for it in self.decision.pools if it.certainty is LaunchCertainty.UNKNOWN)
        for verdict in self._failing_pools:
            if (
                verdict.name in self.reports
                or not isinstance(verdict.rejection, NoInstanceType)
                or verdict.rejection.too_few
            ):
                continue
            template = verdict.pool.spec.template.spec
            wanted = verdict.rejection.requirements.requirement(ZONE)
            if verdict.zones and wanted.values and not any(map(wanted.has, verdict.zones)):
                reference = template.node_class_ref
                where = list_names(sorted(wanted.values), 2, conjunction="or")
                yield autoscaler_fix(f"add a subnet in {where} to {reference.kind} {reference.name}")
            elif verdict.rejection.without_gpus is not None:
                yield autoscaler_fix(
                    f"create a NodePool whose instance types have {NVIDIA_GPU} (instance category g or p)"
                )
                return
            elif shows_types and any(_OF_TYPES.search(requirement.key) for requirement in template.requirements):
                yield autoscaler_fix(f"allow larger or other instance types in NodePool {verdict.name}")

    def _ignored_overlays(self) -> Iterator[Fix]:
        """Yield the repair of NodeOverlays that are not ready, with a resource that the pod requests."""
        rejections = (verdict.rejection for verdict in self.decision.pools if not self.decision.pool)
        requests = {it for each in rejections if isinstance(each, NoInstanceType) for it in each.pod_requests}
        for overlay in self.autoscaler.snapshot.of(NodeOverlay):
            fault = condition_of(overlay.status.conditions, "Ready", "False")
            if fault is not None and {*overlay.spec.capacity} & requests:
                yield autoscaler_fix(f"correct NodeOverlay {overlay.name}: {condition_text(fault)}")

    def _other_systems(self) -> Iterator[Fix]:
        """Yield the NodePool that the pod needs if it requires an operating system which the images of none have."""
        rejections = [verdict.rejection for verdict in self.decision.pools if not self.decision.pool]
        wanted: set[str] = set()
        for rejection in rejections:
            conflicts = rejection.conflicts if isinstance(rejection, Incompatible) else ()
            lacking = [it for it in conflicts if isinstance(it, NothingInCommon) and it.key == OS]
            if not lacking or lacking[0].incoming.operator != "In":
                return
            wanted |= lacking[0].incoming.values
        if wanted:
            system = list_names(sorted(wanted), 2, conjunction="or")
            yield autoscaler_fix(f"create a NodePool for {system}, with a node class whose image is for it")

    def _missing_pool(self) -> Iterator[Fix]:
        """Yield the NodePool that the pod requires by name, if there is none."""
        rejections = (verdict.rejection for verdict in self._failing_pools)
        conflicts = (conflict for it in rejections if isinstance(it, Incompatible) for conflict in it.conflicts)
        named = (it.incoming for it in conflicts if isinstance(it, NothingInCommon) and it.key == NODE_POOL)
        wanted = {name for requirement in named if requirement.operator == "In" for name in requirement.values}
        if wanted and wanted.isdisjoint(self.autoscaler.by_name):
            yield autoscaler_fix(f"create NodePool {list_names(sorted(wanted), 2, conjunction='or')}")

    def _unreserved(self) -> Iterator[Fix]:
        """Yield another NodePool if all are reserved for the provider's own pods."""
        pools = () if self.decision.pool else self.decision.pools
        taints = [rejection.taints for pool in pools if isinstance(rejection := pool.rejection, NotTolerated)]
        if not taints or len(taints) < len(pools) or not all(any(map(_is_of_role, each)) for each in taints):
            return
        classes = (pool.spec.template.spec.node_class_ref for pool in self.autoscaler.pools)
        built_in = "; EKS Auto Mode has one: enable general-purpose"
        is_eks = any(reference.group == EKS_AUTO_MODE for reference in classes)
        named = next(taint.key for taint in taints[0] if _is_of_role(taint))
        yield autoscaler_fix(f"create a NodePool without taint {named}{built_in if is_eks else ''}")

    def _reached_limits(self, raised: Collection[str]) -> Iterator[Fix]:
        """Yield larger limits of NodePools of which no instance type is known, beside those that are raised already."""
        for verdict in self.decision.pools if not self.decision.pool else ():
            if isinstance(verdict.rejection, LimitReached) and not verdict.known and verdict.name not in raised:
                plural = "limits" if len(verdict.rejection.limits) > 1 else "limit"
                text = limits_text(self.autoscaler, verdict.name)
                yield autoscaler_fix(f"raise the {plural} of NodePool {verdict.name}{text and f' ({text})'}")

    def _claims_under_way(self, trial: NodeTrial) -> Iterator[Fix]:
        """Yield fixes according to the conditions of the NodeClaims for which the pod waits."""
        karpenter, provisioning = self.autoscaler, self.decision
        is_waiting = provisioning.looked.outcome is PodEligibility.WAITING
        of_pod = (provisioning.existing,) if provisioning.is_claim else ()
        names = karpenter.cluster.not_launched if is_waiting else of_pod
        for claim in karpenter.snapshot.of(NodeClaim):
            if claim.name not in names:
                continue
            named, command = f"NodeClaim {claim.name}", shell_command("kubectl describe nodeclaim {}", claim.name)
            failing = launch_failure(claim)
            if failing is None and not is_waiting:
                yield autoscaler_fix(f"wait for the node of {named}; if it does not register, find out why", command)
            elif failing is not None and NO_CAPACITY.search(f"{failing.reason} {failing.message}"):
                pool = claim.metadata.labels.get(NODE_POOL, "")
                which = f"NodePool {pool}" if pool else "a NodePool"
                title = f"let {which} {OTHER_TYPES}: the cloud has no capacity for {named}"
                yield trial.fix(title, karpenter.node_of(pool, self.pod), group=None)
            elif failing is not None:
                yield autoscaler_fix(launch_repair(named, failing.message), command, group=None)

    def _repaired_pools(self) -> Iterator[Fix]:
        """Yield repairs of node classes whose NodePools are not ready, replacements of NodePools that are being
        deleted, and larger static NodePools, if these would help otherwise."""
        karpenter, names, deleted = self.autoscaler, dict[tuple[str, str], list[str]](), list[str]()
        for skipped in karpenter.skipped if not self.decision.pool and not self.decision.existing else ():
            pool, conditions = skipped.pool, (NodeCondition(type="Ready", status="True"),)
            unmet = unmet_requirements(karpenter.snapshot, pool)
            usable = replace(
                pool,
                spec=replace(pool.spec, replicas=None, template=_without_requirements(pool, unmet)),
                status=replace(pool.status, conditions=conditions),
                metadata=replace(pool.metadata, deletion_timestamp=None),
            )
            if skipped.why == "no-types" and not unmet:
                continue
            then = karpenter.with_pools({pool.name: usable}).explain(self.pod)
            is_open = then is not None and pool.name in then.open_pools and skipped.why != "static"
            if then is not None and (then.pool == pool.name or is_open):
                if skipped.why == "no-types":
                    yield from requirement_fixes(pool, unmet)
                    continue
                if pool.metadata.deletion_timestamp:
                    deleted.append(pool.name)
                    continue
                if skipped.why == "static" and pool.unready_condition is None:
                    size = pool.spec.replicas or 0
                    command = shell_command("kubectl scale nodepool {} --replicas={}", pool.name, str(size + 1))
                    yield autoscaler_fix(f"raise replicas of NodePool {pool.name} from {size} to {size + 1}", command)
                    continue
                if (details := pool.unready_details) and all(it.type != "NodeClassReady" for it in details):
                    yield autoscaler_fix(f"correct NodePool {pool.name}: {details[0].message}")
                    continue
                if (missing := missing_class(karpenter.snapshot, pool)) is not None:
                    yield missing[1]
                    continue
                reference = pool.spec.template.spec.node_class_ref
                why = unready_text(karpenter.snapshot, pool).rpartition("; ")[2].removeprefix(f"{reference.kind} ")
                names.setdefault((f"{reference.kind} {reference.name}", why), []).append(pool.name)
        for (node_class, why), pools in names.items():
            ready_text = (
                f"NodePool {pools[0]} is ready" if len(pools) == 1 else f"NodePools {list_names(pools, 2)} are ready"
            )
            phrase = f"repair {node_class}, so that {ready_text}"
            yield autoscaler_fix(f"{phrase}: {why}" if why else phrase)
        if deleted:
            verb = "is" if len(deleted) == 1 else "are"
            yield autoscaler_fix(f"create a NodePool to replace {list_names(deleted, 2)}, which {verb} being deleted")


def missing_class(snapshot: Snapshot, pool: NodePool) -> tuple[str, Fix] | None:
    """Return that there is no node class of a NodePool's reference, and what to do; None if it may be there."""
    reference = pool.spec.template.spec.node_class_ref
    named, record = f"{reference.kind} {reference.name}", NODE_CLASSES.get((reference.api_group, reference.kind))
    known = sorted(it.name for it in snapshot.of(record)) if record is not None else []
    if not known or node_class_of(snapshot, pool) is not None:
        return None
    near = nearest_name(reference.name, known)
    if not near:
        fix = autoscaler_fix(f"create {named}, or name another one in spec.template.spec.nodeClassRef")
        return f"there is no {named}", fix
    patch = {"spec": {"template": {"spec": {"nodeClassRef": {"name": near}}}}}
    title = f"set nodeClassRef.name of NodePool {pool.name} to {near} instead of {reference.name}"
    fix = autoscaler_fix(title, merge_patch("nodepool", "", pool.name, patch))
    return f"there is no {named} (did you mean {near}?)", fix


def requirement_fixes(pool: NodePool, unmet: Collection[str]) -> Iterator[Fix]:
    """Yield corrections of a NodePool whose requirements of these keys no instance type can meet."""
    keys = f" ({list_names(unmet, 2)})" if unmet else ""
    yield autoscaler_fix(f"correct the requirements of NodePool {pool.name}{keys}")
    wanted, reference = pool_requirements(pool).requirement(ZONE), pool.spec.template.spec.node_class_ref
    if [*unmet] == [ZONE] and wanted.operator == "In":
        where = list_names(sorted(wanted.values), 2, conjunction="or")
        yield autoscaler_fix(f"add a subnet in {where} to {reference.kind} {reference.name}")


def _without_requirements(pool: NodePool, keys: Collection[str]) -> NodeClaimTemplate:
    template = pool.spec.template
    kept = tuple(it for it in template.spec.requirements if LabelRequirement.of(it.key, "Exists").key not in keys)
    return with_spec(template, requirements=kept)


def limits_text(karpenter: Karpenter, name: str) -> str:
    """Return `cpu 4 of 35 in use` for the limits of a NodePool, according to its status; without one, `cpu 35`."""
    pool = karpenter.by_name.get(name)
    limits = {} if pool is None else pool.spec.limits
    used = {} if pool is None else pool.status.resources
    parts = {resource: f"{used[resource]} of " if resource in used else "" for resource in sorted(limits)}
    text = ", ".join(f"{resource} {part}{limits[resource]}" for resource, part in parts.items())
    return f"{text} in use" if any(parts.values()) else text


def with_pool(fix: Fix, karpenter: Karpenter, changed: NodePool) -> Fix:
    """Return the fix with the change of the NodePool, and whether its nodes drift."""
    before = karpenter.by_name[changed.name]
    change = Change(target=Target(_NODE_POOL_API, "NodePool", changed.name), patch=tuple(pool_patch(before, changed)))
    costs = fix.costs
    was, now = before.spec.template, changed.spec.template
    if was.metadata != now.metadata or was.spec.taints != now.spec.taints:
        nodes = sum(node.metadata.labels.get(NODE_POOL) == changed.name for node in karpenter.snapshot.cluster.nodes)
        phrase = f"{count(nodes, 'existing node')} of the NodePool {'drifts' if nodes == 1 else 'drift'}"
        costs = (*costs, f"{phrase}: Karpenter replaces {'it' if nodes == 1 else 'them'}") if nodes else costs
    return replace(fix, changes=(change, *fix.changes), apply=(change, *fix.apply), costs=costs)


class _PoolTrial(ScalingTrial, frozen=True, kw_only=True):
    scaling: PoolScaling
    pool: NodePool | None = None  # the changed NodePool
    is_evident: bool = False  # whether the NodePool has the missing value in another field

    def order(self) -> tuple[bool, bool]:
        return self.pool is not None, not self.is_evident

    @classmethod
    def of_pod(cls, scaling: PoolScaling, change: PodStep, kind: StepKind = StepKind.OF_POD) -> _PoolTrial:
        return cls(title=change.title, kind=kind, pod=change.edit(scaling.pod), scaling=scaling)

    @classmethod
    def of_pool(cls, scaling: PoolScaling, pool: NodePool, title: str, kind: StepKind) -> _PoolTrial:
        return cls(title=title, kind=kind, pod=scaling.pod, scaling=scaling, pool=pool)

    def run(self) -> NodeRemedy | None:
        """A remedy is likely if a NodePool then lacks at most an instance type, and not all of them are known."""
        karpenter = self.scaling.autoscaler
        changed = karpenter if self.pool is None else karpenter.with_pools({self.pool.name: self.pool})
        then, remedy = changed.explain(self.pod), None
        if then is not None and (place := then.pool or self._opened(then)):
            helps = {self.pod.key}
            if then.pool and self.pool is not None and self.pod.key in karpenter.snapshot.pods.rows:
                helps |= {key for new in changed.own.new if new.template.name == place for key in new.pods}
            remedy = NodeRemedy(
                title=self.title,
                kind=self.kind,
                place=place,
                types=tuple(instance_type.name for instance_type in then.types),
                pod=self.pod,
                node=changed.node_of(place, self.pod),
                changed=self.pool,
                helps=frozenset(helps),
                is_likely=not then.pool,
            )
        return remedy

    def _opened(self, then: PodProvisioning) -> str:
        before = self.scaling.decision.open_pools
        return next((pool for pool in then.open_pools if pool not in before), "")


class _LimitTrial(_PoolTrial, frozen=True, kw_only=True):
    def run(self) -> NodeRemedy | None:
        """Raise the limits for all pending pods that are identical to the pod. The limits for one more node may help
        only another of these pods."""
        remedy, scaling, pod = super().run(), self.scaling, self.pod
        pods = scaling.autoscaler.snapshot.pods
        failed = scaling.autoscaler.own.failures if pod.key in pods.rows else ()
        identical = {key for key in failed if key in pods.rows and pods.specs[pods.rows[key]] == pod.spec}
        is_sure = remedy is not None and not remedy.is_likely
        helped = remedy.helps & identical if remedy is not None and is_sure else identical
        number = -(-len(identical) // max(len(helped), 1)) if is_sure else len(identical)
        for verdict in scaling.decision.pools if number > 1 else ():
            trials = _limit_trials(scaling, verdict, number) if verdict.name == self.limited else ()
            for trial in islice(trials, _MOST_TYPES):
                larger = super(_LimitTrial, trial).run()
                if larger is not None and not larger.is_likely and larger.helps >= identical:
                    return larger
        return remedy


def _trials(scaling: PoolScaling) -> Iterator[_PoolTrial]:
    group, outcome = scaling.autoscaler.group, scaling.decision.looked.outcome
    if outcome is PodEligibility.REFUSED:
        yield from _without_reserved(scaling, group)
    for verdict in scaling.decision.pools:
        match verdict.rejection:
            case NotTolerated(taints=taints) if all(taint.key.endswith(AGENT_NOT_READY) for taint in taints):
                yield _startup_trial(scaling, verdict.pool)
            case NotTolerated(taints=taints) if not any(map(_is_of_role, taints)):
                yield _PoolTrial.of_pod(scaling, Tolerate(taints=taints))
            case LimitReached() | NodeLimitReached():
                yield from _limit_trials(scaling, verdict)
            case NoInstanceType():
                yield from _smaller(scaling, verdict, verdict.rejection)
            case Incompatible():
                yield from _correction_trials(scaling, verdict.rejection, group)
                yield from _label_trials(scaling, verdict, verdict.rejection)
            case _:
                pass


def _startup_trial(scaling: PoolScaling, pool: NodePool) -> _PoolTrial:
    """Return the NodePool with the taints that an agent removes from each new node as startupTaints, which Karpenter
    expects to be removed."""
    spec = pool.spec.template.spec
    removed = tuple(taint for taint in spec.taints if taint.key.endswith(AGENT_NOT_READY))
    kept = tuple(taint for taint in spec.taints if taint not in removed)
    changed = replace(spec, taints=kept, startup_taints=(*spec.startup_taints, *removed))
    moved = list_names(map(str, removed), 2)
    title = f"NodePool {pool.name}: move {moved} from taints to startupTaints"
    pool = with_spec(pool, template=replace(pool.spec.template, spec=changed))
    return replace(_PoolTrial.of_pool(scaling, pool, title, StepKind.ROOM), is_evident=True)


def _is_of_role(taint: Taint) -> bool:
    """Whether the taint reserves nodes for the provider's own pods, so that tolerating it is no fix."""
    return taint.key.startswith(OF_ROLES)


def _correction_trials(scaling: PoolScaling, rejection: Incompatible, group: str) -> Iterator[_PoolTrial]:
    """Yield corrections of a NodePool's name, or of a label value that is no property of machines, if the pod requires
    nearly the right one."""
    names = well_known(group) - {NODE_POOL}
    for conflict in rejection.conflicts:
        if isinstance(conflict, NothingInCommon) and conflict.key not in names and conflict.existing.operator == "In":
            yield from _selector_trials(scaling, conflict.key, conflict.existing.values)


def _without_reserved(scaling: PoolScaling, group: str) -> Iterator[_PoolTrial]:
    """Yield the pod with the capacity type or the label that was probably meant, or without labels that Karpenter
    reserves."""
    yield from _selector_trials(scaling, CAPACITY_TYPE, CAPACITY_TYPES)
    for key, value in scaling.pod.spec.node_selector.items():
        if is_reserved_label(key, group):
            if meant := nearest_name(key, sorted(well_known(group))):
                wrong, right = _label_match(key, value), _label_match(meant, value)
                selected = SelectInstead(source="nodeSelector", term=0, wrong=wrong, meant=right)
                yield _PoolTrial.of_pod(scaling, selected, StepKind.CORRECTION)
            dropped = DropRequirements(source="nodeSelector", term=0, requirements=(_label_match(key, value),))
            yield _PoolTrial.of_pod(scaling, dropped, StepKind.CORRECTION)


def _label_match(key: str, value: str) -> RequirementMatch:
    return RequirementMatch.unmatched(key, "=", (value,))


def _selector_trials(scaling: PoolScaling, key: str, values: Iterable[str]) -> Iterator[_PoolTrial]:
    """Yield the pod with the value that resembles the one in its nodeSelector."""
    wrong = scaling.pod.spec.node_selector.get(key, "")
    if meant := nearest_name(wrong, sorted(values)):
        selected = SelectInstead(
            source="nodeSelector", term=0, wrong=_label_match(key, wrong), meant=_label_match(key, meant)
        )
        yield _PoolTrial.of_pod(scaling, selected, StepKind.CORRECTION)


def _limit_trials(scaling: PoolScaling, verdict: PoolVerdict, nodes: int = 1) -> Iterator[_LimitTrial]:
    """Yield limits raised for so many nodes of the smallest known instance types that would fit the pod without the
    limits, or of unknown types as large as the pod."""
    rejection, requests = verdict.rejection, pod_requests((scaling.pod,))
    if isinstance(rejection, NodeLimitReached):
        yield _with_limits(scaling, verdict.pool, {NODES: (str(rejection.limit), str(rejection.limit + nodes))})
    if not isinstance(rejection, LimitReached):
        return
    limits = rejection.limits
    for instance_type in sorted(verdict.known, key=attrgetter("size"))[:_MOST_TYPES]:
        needed = {
            name: _rounded_up(name, limits[name].nano - rejection.remaining[name].nano + amount, limits[name].format)
            for name in limits
            if (amount := max(each.get(name, ZERO).nano for each in (instance_type.capacity, requests)) * nodes)
            > rejection.remaining[name].nano
        }
        yield _with_limits(
            scaling, verdict.pool, {name: (str(limits[name]), str(amount)) for name, amount in needed.items()}
        )


def _rounded_up(resource: str, nano: int, format_: QuantityFormat) -> Amount:
    """Return an amount that people write: memory in whole Gi, and whole processors."""
    unit = (2**30 if Unit.of(resource) is Unit.BYTE else 1) * 10**9
    return Amount(-(-nano // unit) * unit, format_)


def _with_limits(scaling: PoolScaling, pool: NodePool, limits: Mapping[str, tuple[str, str]]) -> _LimitTrial:
    """Return a trial that raises all limits that prevent another node, because raising a single one would not help.
    `limits` has each limit before and after."""
    raised = " and ".join(f"from {before} to {after} {name}" for name, (before, after) in limits.items())
    title = f"raise the {'limit' if len(limits) == 1 else 'limits'} of NodePool {pool.name} {raised}"
    after = {**pool.spec.limits, **{name: after for name, (_, after) in limits.items()}}
    pool = with_spec(pool, limits=after)
    return _LimitTrial(title=title, kind=StepKind.ROOM, pod=scaling.pod, scaling=scaling, pool=pool, limited=pool.name)


def _smaller(scaling: PoolScaling, verdict: PoolVerdict, rejection: NoInstanceType) -> Iterator[_PoolTrial]:
    """Yield smaller requests: those for which the largest otherwise suitable type has enough."""
    if verdict.template is None or rejection.too_few:
        return
    for instance_type in matching_types(verdict.template, rejection)[:1]:
        daemons = verdict.template.overhead(instance_type.name).requests
        short = _short(rejection.pod_requests, daemons, instance_type)
        amounts: dict[str, int] = {}
        for name, (amount, wanted) in short.items():
            if amount <= 0 or amount * LEAST_SHARE < wanted or name == "pods":
                return
            amounts[name] = amount
        lowered = LowerRequests.of(scaling.pod, amounts, SPEC_ALONE) if amounts else None
        if lowered is not None:
            yield _PoolTrial.of_pod(scaling, lowered)


def _short(requests: Amounts, daemons: Amounts, instance_type: InstanceType) -> dict[str, tuple[int, int]]:
    """Return each resource with what the type has left and what the pod requests, if that is more; in the integers of
    plugins."""
    shortage: dict[str, tuple[int, int]] = {}
    for name, amount in requests.items():
        left = instance_type.allocatable.get(name, ZERO) - daemons.get(name, ZERO)
        if merge_amounts({name: amount})[name].nano > left.nano:
            unit = 10**6 if name == "cpu" else 10**9
            shortage[name] = rounded_down(name, left.nano // unit), amount.nano // unit
    return shortage


def _label_trials(scaling: PoolScaling, verdict: PoolVerdict, rejection: Incompatible) -> Iterator[_PoolTrial]:
    """Yield NodePools with the label that the pod requires, unless another provisioner sets it, or with one more
    allowed value."""
    for conflict in rejection.conflicts:
        if isinstance(conflict, UnknownLabel) and not is_of_provider(conflict.key):
            requirement = verdict.requirements.requirement(conflict.key)
            wanted = min(requirement.values) if requirement.operator == "In" else None
            if wanted is not None:
                label, place = f"{conflict.key}={wanted}", "spec.template.metadata.labels"
                is_misplaced = verdict.pool.metadata.labels.get(conflict.key) == wanted
                title, kind = f"add the label {label} to NodePool {verdict.name}", StepKind.RESHAPED
                if is_misplaced:  # nodes get the labels of the template alone
                    title = f"NodePool {verdict.name}: move the label {label} from metadata.labels to {place}"
                    kind = StepKind.ROOM
                template = verdict.pool.spec.template
                labels = {**template.metadata.labels, conflict.key: wanted}
                changed = replace(template, metadata=replace(template.metadata, labels=labels))
                pool = with_spec(verdict.pool, template=changed)
                yield replace(_PoolTrial.of_pool(scaling, pool, title, kind), is_evident=is_misplaced)
        elif isinstance(conflict, NothingInCommon):
            values = _addable(verdict.pool, conflict)
            if values:
                title = f"allow {conflict.key} {', '.join(values)} in NodePool {verdict.name}"
                pool = _with_values(verdict.pool, conflict.key, values)
                yield _PoolTrial.of_pool(scaling, pool, title, StepKind.RESHAPED)


def _without_offering(verdict: PoolVerdict) -> Iterator[Fix]:
    """Yield zones, or reserved capacity, that neither a NodePool's requirements nor its node class allows."""
    for conflict in verdict.rejection.conflicts if isinstance(verdict.rejection, Incompatible) else ():
        values = _addable(verdict.pool, conflict) if isinstance(conflict, NothingInCommon) else ()
        if conflict.key == ZONE and verdict.zones and not {*values} & {*verdict.zones}:
            also = "add a subnet there to"
        elif conflict.key == CAPACITY_TYPE and values == (RESERVED,):
            also = "select capacity reservations in"
        else:
            continue
        if values:
            reference = verdict.pool.spec.template.spec.node_class_ref
            allow = f"allow {conflict.key} {list_names(values, 2, conjunction='or')} in NodePool {verdict.name}"
            yield autoscaler_fix(f"{allow}, and {also} {reference.kind} {reference.name}")


def _addable(pool: NodePool, conflict: NothingInCommon) -> tuple[str, ...]:
    """The values that the pod accepts; none if the NodePool has the key in a label, or no requirement with it."""
    incoming = conflict.incoming
    named = any(
        LabelRequirement.of(requirement.key, requirement.operator, requirement.values).key == conflict.key
        and requirement.operator == "In"
        for requirement in pool.spec.template.spec.requirements
    )
    is_label = conflict.key in pool.spec.template.metadata.labels
    is_class = conflict.key in (OS, class_label(pool.spec.template.spec.node_class_ref))  # the image decides the OS
    return tuple(sorted(incoming.values)) if named and not (is_label or is_class) and incoming.operator == "In" else ()


def _with_values(pool: NodePool, key: str, values: tuple[str, ...]) -> NodePool:
    def changed(requirement: NodeSelectorRequirementWithMinValues) -> NodeSelectorRequirementWithMinValues:
        is_it = LabelRequirement.of(requirement.key, "Exists").key == key and requirement.operator == "In"
        return replace(requirement, values=(*requirement.values, *values)) if is_it else requirement

    template = pool.spec.template
    requirements = tuple(map(changed, template.spec.requirements))
    return with_spec(pool, template=with_spec(template, requirements=requirements))


# What Karpenter does about one pod, as the value of the key `autoscaler` of the Explanation document.


class PoolDocument(Document, frozen=True, omit_defaults=True):
    certainty: LaunchCertainty
    reason: str = ""
    text: str | None = None


class LaunchDocument(Document, frozen=True):
    pool: str
    instance_types: tuple[str, ...]


class PoolRemedyDocument(Document, frozen=True):
    title: str
    pool: str
    instance_types: tuple[str, ...]


class ProvisioningDocument(Document, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="karpenter"):
    follows: str
    outcome: PodEligibility
    pools: Mapping[str, PoolDocument]
    skipped_pools: Mapping[str, str]
    event: str
    types_are_known: bool
    by_chance: bool
    adds: LaunchDocument | None = None
    existing: str = field(name="expectedOn", default="")
    has_relaxed: bool = field(name="gaveUpPreference", default=False)
    fixes: tuple[PoolRemedyDocument, ...] = ()


def _pool(verdict: PoolVerdict) -> PoolDocument:
    return PoolDocument(verdict.certainty, verdict.reason, verdict.rejection.text if verdict.text_is_known else None)

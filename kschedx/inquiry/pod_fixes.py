"""What helps a pod that gets no node: the fixes of an answer, in the order in which they are shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from kschedx.controllers.daemon_set import agents_down
from kschedx.controllers.pod_autoscaling import rescaled
from kschedx.controllers.pod_lifecycle import is_ready
from kschedx.controllers.workload_lifecycle import refusal_state
from kschedx.controllers.workloads import SCALED, Workload, member_rows, ordinal_of, wanted_replicas
from kschedx.errors import UndecidableError
from kschedx.explain.advice import FixGroup
from kschedx.explain.claim_causes import SharedClaim
from kschedx.explain.creators import MembersNotCreated
from kschedx.explain.node_groups import NodeGroup
from kschedx.explain.pod_selectors import MatchingPodCordoned, misses_pod
from kschedx.explain.root_causes import (
    DriverNotRegistered,
    SelectorOfNamespace,
    balanced_service,
    newer_template,
    root_causes,
    superseding,
)
from kschedx.explain.setup import unassign
from kschedx.findings import (
    HostPortConflict,
    InsufficientResource,
    PodAntiAffinityConflict,
    PodGroupIncomplete,
    TooManyPods,
)
from kschedx.fixes import FixCertainty, find_fixes
from kschedx.fixes.cluster_trial import ClusterTrial
from kschedx.fixes.dead_end import gate_of_controller
from kschedx.fixes.owners import Owner, template_owner
from kschedx.fixes.ranking import ClusterTest, TrialOutcome, TriedFix, adding_nodes
from kschedx.fixes.steps import AddNode
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.holding.model import GangStatus, QueueShare, WorkloadState
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import (
    Fix,
    FixedCluster,
    activation,
    component_repair,
    kueue_fixes,
    queue_creation,
    uncordoning_more,
)
from kschedx.inquiry.manifests import pod_manifest
from kschedx.kube.autoscalers import COMPUTE_TYPE, FARGATE_SCHEDULER, GROUP_LABELS, GROUP_SIZE
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Change, Target, remove_field, with_spec
from kschedx.kube.escaping import add_cluster_options, shell_command
from kschedx.kube.kubectl import delete_pod, merge_patch, pod_logs, scale_workload
from kschedx.kube.kueue import QUEUE_LABEL, ResourceFlavor
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, QUEUES_OF_YUNIKORN
from kschedx.kube.quantity import Unit, format_quantities, format_quantity, resource_amount
from kschedx.kube.resources import container_requests, pod_request
from kschedx.kube.types import FINISHED, GroupedWorkload, Pod
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.simulate.changes import another_like
from kschedx.snapshot.daemon_sets import with_less_allocatable
from kschedx.snapshot.edits import with_changed_pods, with_only_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_SCALED_DOWN = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds whose controllers delete pods without nodes first, or the last ordinals."""
_MOST_GATED = 2
_MOST_OLD = 4  # old pods of a rollout of which one has to go first
_MOST_CREATED = 1_000  # the maximum number of missing pods of a group that are tried
_MOST_QUEUES = 3  # the maximum number of pods of a group with scheduling gates that a title names
_NOT_FOR_FARGATE = "Pod not supported on Fargate: "
"""The start of its event about a pod that a Fargate profile selects and Fargate cannot run."""


def _one_pod_at_a_time(snapshot: Snapshot, pod: Pod, claim: str) -> Iterator[Fix]:
    """Yield untried fixes for replicas of one template that share a claim, `claim` if it is one with
    ReadWriteOncePod."""
    owner = template_owner(snapshot, pod)
    if claim and owner is not None and owner.kind in ("Deployment", "ReplicaSet", "ReplicationController"):
        command = scale_workload(owner.kind, pod.metadata.namespace, owner.name, 1)
        title = f"scale {owner.kind} {owner.name} to 1 replica: one pod at a time may use claim {claim}"
        yield Fix.untried(title, command)
    yield Fix.untried("give each replica a claim of its own with a StatefulSet, or share one with ReadWriteMany")


def _with_bound_pods(snapshot: Snapshot, nodes: Mapping[str, str]) -> Snapshot:
    """Assign pods without a node, by `namespace/name`, to these nodes."""
    rows = {snapshot.pods.rows[key]: node for key, node in nodes.items() if key in snapshot.pods.rows}
    if not rows:
        return snapshot
    bound = [
        replace(pod, spec=replace(pod.spec, node_name=node))
        for row, node in rows.items()
        for pod in (snapshot.pods[row],)
    ]
    others = np.array([row for row in range(len(snapshot.pods)) if row not in rows], dtype=np.int64)
    return with_pods(with_only_pods(snapshot, others), bound)


class PodFixes:
    """The fixes of the answer about one pod: what lets Kueue or an autoscaler help, and what `find_fixes` tried."""

    def __init__(self, answer: Explanation) -> None:
        self.answer = answer
        self.cycle = answer.cycle
        self.scheduler = answer.scheduler

    def __iter__(self) -> Iterator[Fix]:
        kueue = self.answer.holding.kueue
        if kueue is not None and kueue.verdict is not None:
            yield from kueue_fixes(kueue.verdict, is_full=kueue.fits_nowhere and not self._may_be_scaled)
        if kueue is not None and kueue.state is WorkloadState.DEACTIVATED and self.answer.lifecycle is None:
            yield activation(*kueue.workload.split("/"))
        queues, queue = ((), "") if kueue is None else (kueue.known_queues, kueue.queue)
        meant = queues[0] if len(queues) == 1 else nearest_name(queue, queues)
        if kueue is not None and (kueue.namespaces_of_queue or (kueue.reports_no_queue and not meant)):
            yield queue_creation(kueue.queue, self.cycle.pod.metadata.namespace, kueue.namespaces_of_queue)
        if kueue is not None and kueue.known_queues and self.answer.lifecycle is None:
            meant = meant or list_names(kueue.known_queues, _MOST_QUEUES, conjunction="or")
            yield Fix.untried(f"recreate the pod with label {QUEUE_LABEL}={meant} instead of {kueue.queue}")
        if kueue is not None and kueue.state is WorkloadState.ADMITTED:
            yield from self._flavor_fixes(frozenset(fit.flavor for fit in kueue.fits if not fit.nodes))
        yield from self._scheduler_fixes()
        yield from self._volcano_fixes()
        yield from self._kai_fixes()
        yield from self._yunikorn_fixes()
        yield from self._fargate_fixes()
        yield from self._own_fixes()
        if self.answer.lifecycle is None and self.answer.remedies is not None:
            yield from self.answer.remedies()

    def _flavor_fixes(self, without_nodes: Collection[str]) -> Iterator[Fix]:
        """Yield the labels of nodes that flavors without any node probably misspell."""
        snapshot = self.scheduler.snapshot
        for flavor in (each for each in snapshot.of(ResourceFlavor) if each.metadata.name in without_nodes):
            for key, value in flavor.spec.node_labels.items():
                values = snapshot.cluster.label_values(key)
                if value in values:
                    continue
                named = key if values else nearest_name(key, snapshot.cluster.label_keys)
                meant = named, nearest_name(value, values) if values else value
                if all(meant):
                    wrong = f"{'='.join(meant)} instead of {key}={value}"
                    title = f"set {wrong} in nodeLabels of ResourceFlavor {flavor.metadata.name}"
                    yield Fix.untried(f"{title}, and recreate the workload", of_group=FixGroup.CLUSTER)

    def _scheduler_fixes(self) -> Iterator[Fix]:
        """Yield what lets another scheduler see the pod: the scheduler itself, or the rest of an incomplete group."""
        scheduler, group = self.answer.holding.scheduler, self.answer.holding.group
        if scheduler is None:
            return
        if scheduler.is_absent:
            instead = "create the pod" if self._stored_in is None else "recreate the pod"
            title = f"install {scheduler.title}, or {instead} with schedulerName default-scheduler"
            yield Fix.untried(title, of_group=FixGroup.CLUSTER)
        if group is not None and not group.is_heeded and group.pods < group.min_count:
            more = f"create {count(group.min_count - group.pods, 'more pod')} of group {group.name}"
            yield Fix.untried(f"{more}, or lower its minMember from {group.min_count:,} to {group.pods:,}")
        cluster, requests = self.cycle.snapshot.cluster, container_requests(self.cycle.pod.spec)
        for name in (it for it in requests if it.endswith("/gpu") and cluster.nodes):  # others may be known to it alone
            if not any(resource_amount(name, node.status.allocatable.get(name)) for node in cluster.nodes):
                plugin = f"repair its device plugin: no node has {name} in its allocatable"
                yield Fix.untried(f"add a node with {name}, or {plugin}", of_group=FixGroup.CAPACITY)

    def _kai_fixes(self) -> Iterator[Fix]:
        """Yield what lets KAI schedule a workload beyond the quota or limit of its queue."""
        scheduler = self.answer.holding.scheduler
        if scheduler is None or scheduler.title != "KAI" or not scheduler.queue:
            return
        reasons = {said.reason for said in scheduler.said}
        for reason, field, instead in (
            ("NonPreemptibleOverQuota", "quota", ", or give the workload a priority class that is preemptible"),
            ("OverLimit", "limit", ""),
        ):
            if reason in reasons:
                title = f"raise the {field} in spec.resources of Queue {scheduler.queue}{instead}"
                yield Fix.untried(title, of_group=FixGroup.CLUSTER)

    def _volcano_fixes(self) -> Iterator[Fix]:
        """Yield what lets Volcano schedule the pods of a group whose queue is closed or has too little capability."""
        scheduler = self.answer.holding.scheduler
        if scheduler is None or scheduler.title != "Volcano" or not scheduler.queue:
            return
        name = scheduler.queue
        if scheduler.known_queues:
            meant = nearest_name(name, scheduler.known_queues)
            instead = f"use Queue {meant} instead of {name}" if meant else f"create Queue {name}"
            exist = "" if meant else f", or use {list_names(scheduler.known_queues, _MOST_QUEUES, conjunction='or')}"
            where = f" in PodGroup {scheduler.group} and its owner" if meant and scheduler.group else ""
            yield Fix.untried(f"{instead}{where}{exist}", of_group=FixGroup.WORKLOAD if meant else FixGroup.CLUSTER)
        if scheduler.queue_state == "Closed":
            command = shell_command("vcctl queue operate --action open --name {}", name)
            yield Fix.untried(f"open Queue {name}", command, of_group=FixGroup.CLUSTER)
        members, least = scheduler.members, scheduler.min_member or 0
        if scheduler.group and self._stored_in is not None and scheduler.phase != "Pending" and members < least:
            more = f"create {count(least - members, 'more pod')} of group {scheduler.group}"
            yield Fix.untried(f"{more}, or lower its minMember from {least:,} to {members:,}")
        for share, needed in self._shares_beyond(scheduler.queue_shares):
            held = share.held or 0
            if needed - held <= (share.capability or 0):
                names = list_names(scheduler.queue_holders, _MOST_QUEUES, conjunction="and")
                amount = f"{format_quantity(held, Unit.of(share.resource))} {share.resource}"
                made = "let {} run, or delete what made {}".format(names, "it" if names.count("/") == 1 else "them")
                yield Fix.untried(f"{made}: Queue {name} counts {amount} for groups that are Inqueue")
            before, after = format_quantities((share.capability or 0, needed), Unit.of(share.resource))
            title = f"raise spec.capability.{share.resource} of Queue {name} from {before} to {after}"
            patch = {"spec": {"capability": {share.resource: after}}}
            command = merge_patch("queues.scheduling.volcano.sh", "", name, patch)
            yield Fix.untried(title, command, of_group=FixGroup.CLUSTER)

    def _yunikorn_fixes(self) -> Iterator[Fix]:
        """Yield what lets YuniKorn schedule a pod beyond the limit of its queue, or of one above it."""
        scheduler = self.answer.holding.scheduler
        if scheduler is None or scheduler.title != "YuniKorn":
            return
        for name, shares in (
            (scheduler.queue, scheduler.queue_shares),
            *((queue.name, queue.shares) for queue in scheduler.queues_above),
        ):
            for share, needed in self._shares_beyond(shares):
                before, after = format_quantities((share.capability or 0, needed), Unit.of(share.resource))
                written = "vcore" if share.resource == "cpu" else share.resource
                least = "" if share.allocated is not None else "at least "
                title = f"raise resources.max.{written} of queue {name} from {before} to {least}{after}"
                yield Fix.untried(f"{title} in ConfigMap {QUEUES_OF_YUNIKORN}", of_group=FixGroup.CLUSTER)

    def _shares_beyond(self, shares: Iterable[QueueShare]) -> Iterator[tuple[QueueShare, int]]:
        """Yield the shares of a queue whose limit the pod or the rest of its group exceeds, and what it then needs."""
        scheduler = self.answer.holding.scheduler
        own = container_requests(self.cycle.pod.spec)
        requests = {each: resource_amount(each, amount) for each, amount in own.items()}
        if scheduler is None:
            return
        pods = max(max(scheduler.members, scheduler.min_member or 0) - scheduler.running, 1)
        for share in shares:
            used = (share.allocated or 0) + (share.held or 0)
            needed = used + pods * requests.get(share.resource, 0)
            if share.capability is not None and needed > share.capability and share.resource in requests:
                yield share, needed

    def _fargate_fixes(self) -> Iterator[Fix]:
        """Yield what helps a pod that a Fargate profile selects, and that Fargate cannot run."""
        scheduler = self.answer.holding.scheduler
        if scheduler is None or scheduler.name != FARGATE_SCHEDULER:
            return
        if any(said.message.startswith(_NOT_FOR_FARGATE) for said in scheduler.said):
            kept_off = f"annotation {COMPUTE_TYPE}: ec2 in its template"
            yield Fix.untried(f"run the pod on EC2 nodes ({kept_off}), or remove what Fargate does not support")

    def _own_fixes(self) -> Iterator[Fix]:
        answer = self.answer
        gang = answer.gang if answer.lifecycle is None and answer.outcome is Outcome.SCHEDULED else None
        if gang is not None and answer.overall is Outcome.UNSCHEDULABLE:
            yield from self._gang_fixes(gang)
            return
        if answer.lifecycle is not None and answer.remedies is not None:
            yield from answer.remedies()
        if answer.lifecycle is not None or answer.becomes is Outcome.SCHEDULED:
            return
        pod = self.cycle.pod
        owner = template_owner(self.cycle.snapshot, pod)
        template = None if self._stored_in is None else newer_template(self.cycle.snapshot, pod)
        if self._stored_in is not None and answer.outcome is Outcome.UNSCHEDULABLE:
            from kschedx.inquiry.lifecycle_remedies import with_newer_template, with_present_admission

            recreated = None if template is None else with_newer_template(answer, pod, template)
            if (recreated := recreated or with_present_admission(answer, pod)) is not None:
                yield recreated
                return
        if self._stored_in is not None and (name := superseding(self.cycle.snapshot, pod)):
            command = add_cluster_options(shell_command("kschedx why deploy/{} -n {}", name, pod.metadata.namespace))
            title = f"let the rollout of Deployment {name} go on, which deletes this pod"
            yield Fix.untried(title, command)
            return
        yield from self._missing_group()
        yield from self._missing_members()
        if answer.outcome is Outcome.GATED:
            yield from _gate_keepers(answer)
        is_selected = any(map(self._lacks_only_room, self.answer.diagnosis.groups))
        yield from self._cause_fixes()
        if not is_selected:
            yield from self._selector_fixes()
        if any(cause.leaves_no_node for cause in root_causes(self.answer.diagnosis)):
            return
        is_overwritten = balanced_service(
            pod.metadata.labels, pod.metadata.namespace
        )  # its controller overwrites the pod template
        fixes = self._tried_fixes(owner)
        if self._may_be_scaled:
            room, fixes = self._split_by_autoscalers(owner, tuple(fixes))
            yield from room
        if not is_overwritten:
            yield from self._old_pod_first(owner)
            yield from fixes
            if is_selected:
                yield from self._selector_fixes()
            yield from self._fewer_replicas(owner)
            yield from self._moved_match()
        every = (advice for cause in root_causes(answer.diagnosis) for advice in cause.advice)
        yield from (Fix.of_advice(advice) for advice in every if advice.is_second_to_nodes)

    def _tried_fixes(self, owner: Owner | None) -> Iterator[Fix]:
        pod, stored_in = self.cycle.pod, self._stored_in
        before = self.answer.before or (None if self.answer.setup is None else self.answer.setup.snapshot)
        for found_fix in find_fixes(self.scheduler, self.cycle, self._cluster_test(owner), self.answer.drained):
            if self.answer.gang is None or not any(map(self._deletes_member, found_fix.changes)):
                trial = found_fix.trial
                if self.answer.covering is not None:  # reported for all pods then
                    found_fix = replace(found_fix, trial=replace(trial, left=0))
                fix = Fix.of(found_fix, owner, pod, stored_in=stored_in)
                if trial.is_tried and any(change.target.kind in SCALED for change in fix.apply):
                    fix = replace(fix, left=trial.left)
                fix = self._scale_to_group(fix)
                if (replicas := self.answer.replicas) is not None:
                    most = len(replicas.pending)
                    fix = uncordoning_more(fix, self.cycle.snapshot, self.answer.drained, self._helped_count, most)
                yield fix.with_claims_of(owner, pod, before, self.cycle.snapshot)

    def _helped_count(self, fix: Fix) -> int:
        """Return the number of pending replicas that a fix helps; 1 if that is not tried."""
        covered = self.answer.coverage(fix)
        return 1 if covered is None else covered.pods

    def _fewer_replicas(self, owner: Owner | None) -> Iterator[Fix]:
        """Yield the scaling to the replicas that have nodes, if the required anti-affinity or a host port of the
        template excludes more, and no rollout or autoscaler changes their number."""
        pod, snapshot = self.cycle.pod, self.cycle.snapshot
        if owner is None or owner.kind not in _SCALED_DOWN or owner.above:
            return
        findings = self.answer.diagnosis.findings
        terms = {finding.term for finding in findings if isinstance(finding, PodAntiAffinityConflict)}
        is_full = any(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings)
        conflicts = (finding for finding in findings if isinstance(finding, HostPortConflict) and not is_full)
        ports = sorted({finding.port for finding in conflicts})
        if all(misses_pod(pod, term) for term in terms) and not ports:
            return
        workload = Workload(owner.kind, pod.metadata.namespace, owner.name)
        rows = member_rows(snapshot, workload)
        fit = sum(snapshot.pods.node[row] >= 0 and not snapshot.pods.deletion_timestamps[row] for row in rows)
        by_ordinal = sorted(rows, key=lambda row: ordinal_of(snapshot.pods.names[row]))
        if owner.kind == "StatefulSet" and any(snapshot.pods.node[row] < 0 for row in by_ordinal[:fit]):
            return
        is_rollout = len({snapshot.pods.owners[row] for row in rows}) > 1
        if 0 < fit < wanted_replicas(owner.manifest) and not is_rollout and not rescaled(snapshot, workload, fit):
            command = scale_workload(owner.kind, pod.metadata.namespace, owner.name, fit)
            rule = f"host port {list_names(map(str, ports), 3)}" if ports else "required anti-affinity"
            title = f"scale to {count(fit, 'replica')}: its {rule} has no node for more"
            fix = Fix.untried(title, command, of_group=FixGroup.WORKLOAD)
            yield replace(fix, costs=owner.cost_of_scaling)

    def _old_pod_first(self, owner: Owner | None) -> Iterator[Fix]:
        """Yield `maxSurge: 0` of an Argo Rollout, or a Deployment with another scheduler, whose new pod fits once an
        old one is gone. It is not tried further: no trial knows the steps of a canary, or what other schedulers do."""
        own, snapshot = self.cycle.pod, self.cycle.snapshot
        new, is_of_other = own.metadata.controller, self.answer.holding.scheduler is not None
        if owner is None or new is None or owner.kind != ("Deployment" if is_of_other else "Rollout"):
            return
        namespace, profile = own.metadata.namespace, self.cycle.profile
        raw = snapshot.custom_resources.get(("Rollout.argoproj.io", namespace, owner.name), b"{}")
        manifest, field, kind = msgspec.json.decode(raw), "canary", "rollouts.argoproj.io"
        if is_of_other:
            manifest, field, kind = owner.manifest, "rollingUpdate", "deployment"
            profile = self.scheduler.config.profiles[0]
        strategy = map_at(manifest, "spec", "strategy")
        if field not in strategy or map_at(strategy, field).get("maxSurge") in (0, "0", "0%"):
            return
        old = [
            row
            for (kind, space, name), replica_set in snapshot.workloads.items()
            if (kind, space) == ("ReplicaSet", namespace) and name != new.name
            if any(
                (it.kind, it.name) == (owner.kind, owner.name) for it in stored_metadata(replica_set).owner_references
            )
            for row in member_rows(snapshot, Workload(kind, space, name))
            if snapshot.pods.node[row] >= 0
        ]
        for row in old[:_MOST_OLD]:
            scheduler = self.scheduler.on(snapshot.without_pods([row]))
            if Explanation(scheduler.schedule(own, profile), scheduler).alone is Outcome.SCHEDULED:
                title = f"set maxSurge: 0, maxUnavailable: 1 on {owner.kind} {owner.name}"
                patch = {"spec": {"strategy": {field: {"maxSurge": 0, "maxUnavailable": 1}}}}
                command = merge_patch(kind, namespace, owner.name, patch)
                old_pod = f"an old pod such as {snapshot.pods.key(row)} goes first"
                yield Fix.untried(f"{title}: {old_pod}", command, of_group=FixGroup.WORKLOAD)
                return

    def _moved_match(self) -> Iterator[Fix]:
        """Yield the deletion of the pod that this pod follows and that is on a cordoned node, if the pod that its
        controller creates instead fits elsewhere, and then this pod as well."""
        own, profile = self.cycle.pod, self.cycle.profile
        for cause in root_causes(self.answer.diagnosis):
            if not isinstance(cause, MatchingPodCordoned) or not cause.controller:
                continue
            pods = self.cycle.snapshot.pods
            without, moved = unassign(self.cycle.snapshot, pods[pods.rows[cause.pod]])
            if moved.spec.scheduler_name != own.spec.scheduler_name:
                continue
            try:
                first = Explanation(self.scheduler.on(without).schedule(moved, profile), self.scheduler)
                placed = [with_spec(moved, node_name=name) for name in first.chosen_nodes[:1]]
                after = self.scheduler.on(with_pods(without, placed))
                then = Explanation(after.schedule(own, profile), after)
            except UndecidableError:
                continue
            if placed and then.alone is Outcome.SCHEDULED:
                target = Target.pod(cause.pod)
                created = Change(target=target, create=pod_manifest(moved), by=cause.controller)
                yield Fix(
                    title=f"delete {cause.pod}: {cause.controller} recreates it off {cause.node}, and this pod follows",
                    certainty=FixCertainty.VERIFIED,
                    changes=(target.deletion, created),
                    feasible_nodes=then.chosen_nodes,
                    steps=(),
                    commands=(delete_pod(cause.pod),),
                    apply=(target.deletion,),
                    then=FixedCluster(after, own, profile),
                )

    @property
    def _may_be_scaled(self) -> bool:
        """Whether an autoscaler decides about the pod, or an event reports that."""
        snapshot, key = self.cycle.snapshot, self.cycle.pod.key
        return bool(self.answer.scalings) or key in snapshot.autoscaler_events or key in snapshot.karpenter_events

    def _split_by_autoscalers(
        self, owner: Owner | None, fixes: tuple[Fix, ...]
    ) -> tuple[tuple[Fix, ...], Iterator[Fix]]:
        """Return the fixes that make room, and the others: if an autoscaler adds nodes, none is added by hand. It adds
        no node with the host name of a lost one, but others if the pod no longer selects that name."""
        if any(isinstance(step, AddNode) and step.restores for fix in fixes for step in fix.steps):
            room = self._room(owner, with_changes_of_pod=True)
            return tuple(fix for fix in room if fix.certainty is FixCertainty.VERIFIED), iter(fixes)
        room = self._room(owner)
        if all(fix.adds_node for fix in fixes) and all(fix.certainty is FixCertainty.UNTRIED for fix in room):
            room = self._room(owner, with_changes_of_pod=True)
        if not room or self._has_named_maximum(fixes):
            return (), iter(fixes)
        by_hand_first = (
            () if not all(fix.reshapes_pool for fix in room) else (fix for fix in fixes if fix.is_without_karpenter)
        )
        adds = any(scaling.adds_node for scaling in self.answer.scalings)
        repairs = [fix for fix in fixes if fix.repairs_what_exists(is_of_pool=adds)]
        others = (fix for fix in fixes if not fix.adds_node and fix not in repairs)
        return (*repairs, *by_hand_first, *room), others

    def _has_named_maximum(self, fixes: Sequence[Fix]) -> bool:
        """Whether a fix raises the maximum of a group of which cluster-autoscaler only reports that it is reached."""
        from kschedx.autoscaler.sizes import AT_MAXIMUM

        event = self.cycle.snapshot.autoscaler_events.get(self.cycle.pod.key)
        if self.answer.scalings or event is None or AT_MAXIMUM not in event.message:
            return False
        return any(isinstance(step, AddNode) and step.is_at_maximum for fix in fixes for step in fix.steps)

    def _deletes_member(self, change: Change) -> bool:
        """Return whether a change deletes a pod of this pod's own gang."""
        pods, own = self.cycle.snapshot.pods, self.cycle.pod
        row = pods.rows.get(change.target.key) if change.delete else None
        if row is None or pods.namespaces[row] != own.metadata.namespace:
            return False
        label, spec = own.metadata.labels.get(POD_GROUP_LABEL), pods.specs[row]
        if label:
            return pods.labels[row].get(POD_GROUP_LABEL) == label
        return (spec.scheduling_group, spec.workload_ref) == (own.spec.scheduling_group, own.spec.workload_ref)

    def _scale_to_group(self, fix: Fix) -> Fix:
        """Return the fix. If it adds a node for a LeaderWorkerSet's group, state how many nodes all pods without a node
        need, if all of them request as much."""
        pod, pods = self.cycle.pod, self.cycle.snapshot.pods
        size = self._group_size() if fix.adds_node else 0
        if not size:
            return fix
        shared = {key: pod.metadata.labels.get(key, "") for key in GROUP_LABELS}
        is_member = pods.labels.where(lambda labels: all(labels.get(key) == value for key, value in shared.items()))
        is_member &= pods.in_namespace(pod.metadata.namespace) & (pods.node >= 0)
        left = size - int(is_member.sum())
        step = fix.steps[-1]
        if left < 2 or not isinstance(step, AddNode):
            return fix
        offered = {name: resource_amount(name, text) for name, text in step.node.status.allocatable.items()}
        for name, amount in step.taken.items():
            offered[name] = offered.get(name, 0) - amount
        requested = pod_request(pod.spec, pod.status, self.scheduler.nodes.options).amounts
        each = max(
            1, min((offered.get(name, 0) // amount for name, amount in requested.items() if amount), default=left)
        )
        number = -(-left // each)
        phrase = f"for the whole group: {number:,} nodes, if its pods request as much"
        return replace(fix, costs=(*fix.costs, phrase)) if number > 1 else fix

    def _group_size(self) -> int:
        """Return the number of pods in the group of a LeaderWorkerSet; 0 for other pods. Without the annotation, it is
        read from the workers' StatefulSet, which has the leader's name."""
        pod, snapshot = self.cycle.pod.metadata, self.cycle.snapshot
        if re.fullmatch(r"[0-9]{1,6}", written := pod.annotations.get(GROUP_SIZE, "")):
            return int(written)
        group = "-".join(pod.labels.get(key, "") for key in GROUP_LABELS)
        manifest = snapshot.manifest_of(("StatefulSet", pod.namespace, group))
        replicas = map_at(manifest or {}, "spec").get("replicas")
        return replicas + 1 if isinstance(replicas, int) else 0

    def _missing_group(self) -> Iterator[Fix]:
        """Yield a fix for a group that GangScheduling does not find."""
        findings = [finding for status in self.cycle.pre_enqueue for finding in status.findings]
        if not any(isinstance(finding, PodGroupIncomplete) and not finding.exists for finding in findings):
            return
        pod = self.cycle.pod
        namespace, reference = pod.metadata.namespace, pod.spec.workload_ref
        if pod.spec.scheduling_group is not None:
            name = f"PodGroup {namespace}/{pod.spec.scheduling_group.pod_group_name}"
            yield Fix.untried(f"create {name}, or correct spec.schedulingGroup of the pod")
        elif reference is not None:
            workloads = self.cycle.snapshot.of(GroupedWorkload)
            key = namespace, reference.name
            exists = any((each.metadata.namespace, each.metadata.name) == key for each in workloads)
            start = "recreate" if exists else "create"
            name = f"Workload {namespace}/{reference.name} with pod group {reference.pod_group}"
            yield Fix.untried(f"{start} {name}, or correct spec.workloadRef of the pod")

    def _missing_members(self) -> Iterator[Fix]:
        """Yield fixes for the missing pods of a group, tried with copies of the pod. If the API server refuses the
        pods, the fixes let it admit them."""
        kueue, gang = self.answer.holding.kueue, self.answer.gang
        name, lacking = "", 0
        if kueue is not None and kueue.group:
            name, lacking = kueue.group, kueue.group_total - kueue.group_pods
        elif gang is not None and gang.pods < gang.min_count:
            name, lacking = gang.name.rpartition("/")[2], gang.min_count - gang.pods
        if not lacking:
            return
        causes = root_causes(self.answer.diagnosis)
        if messages := [cause.message for cause in causes if isinstance(cause, MembersNotCreated)]:
            yield from self._refused_members(messages[0], min(lacking, _MOST_CREATED))
            return
        owner = self.cycle.pod.metadata.controller
        by = f": {owner.kind} {owner.name} creates too few" if owner is not None else ""
        title = f"create {count(lacking, 'more pod')} of group {name}{by}"
        if lacking > _MOST_CREATED:
            yield Fix.untried(title)
            return
        named, (members, then) = title, self._with_members(lacking)
        gated = [member.pod for member in gang.waiting if member.gates] if gang is not None else []
        if gated and then.alone is not Outcome.SCHEDULED:
            members, then = self._with_members(lacking, ungated=gated)
            title = f"{title}, and remove the scheduling gates of {list_names(gated, _MOST_GATED)}"
        else:
            gated = []
        if then.alone is not Outcome.SCHEDULED:
            yield Fix.untried(named)
            return

        maker = "" if owner is None else f"{owner.kind} {owner.name}"
        targets = (Target("v1", "Pod", member.metadata.name, member.metadata.namespace) for member in members)
        target_members = zip(targets, members, strict=True)
        created = tuple(Change(target=target, create=pod_manifest(pod), by=maker) for target, pod in target_members)
        opened = tuple(Target.pod(key).patched(remove_field("/spec/schedulingGates")) for key in gated)
        yield Fix(
            title=title,
            certainty=FixCertainty.VERIFIED,
            changes=(*created, *opened),
            feasible_nodes=then.chosen_nodes,
            steps=(),
            apply=opened if maker else (*created, *opened),
            then=FixedCluster(then.scheduler, then.cycle.pod, then.cycle.profile),
        )

    def _with_members(self, number: int, *, ungated: Sequence[str] = ()) -> tuple[tuple[Pod, ...], Explanation]:
        """Return further members of the pod's group, identical to the pod, and the pod's answer with them. The pods in
        `ungated` lose their scheduling gates."""
        pod, snapshot = self.cycle.pod, self.cycle.snapshot
        names = (f"{pod.metadata.name}-{index}" for index in itertools.count(2))
        free = (name for name in names if f"{pod.metadata.namespace}/{name}" not in snapshot.pods.rows)
        metadata = (replace(pod.metadata, name=name, uid="") for name in itertools.islice(free, number))
        members = tuple(replace(pod, metadata=meta, status=type(pod.status)()) for meta in metadata)
        opened = [snapshot.pods[snapshot.pods.rows[key]] for key in ungated]
        opened = [with_spec(pod, scheduling_gates=()) for pod in opened]
        snapshot = snapshot.without_pods(snapshot.pods.rows[key] for key in ungated) if opened else snapshot
        scheduler = self.scheduler.on(with_pods(snapshot, [*opened, *members]))
        return members, Explanation(scheduler.schedule(pod, self.cycle.profile), scheduler, fix_search=PodFixes)

    def _refused_members(self, message: str, number: int) -> tuple[Fix, ...]:
        if self.answer.setup is None:
            return ()
        from kschedx.inquiry.lifecycle_remedies import LifecycleRemedies

        pod, (members, then) = self.cycle.pod, self._with_members(number)
        stopped = LifecycleRemedies(
            snapshot=self.cycle.snapshot,
            setup=self.answer.setup,
            explain=lambda subject, setup: then,
            pod=members[0],
            manifest=pod_manifest(members[0]),
            count=number,
        )
        return stopped.fixes(refusal_state(pod.key, message, is_workload=False))

    @staticmethod
    def _lacks_only_room(group: NodeGroup) -> bool:
        """Whether nodes meet every constraint of the pod and only lack room for it."""
        findings = group.exemplar.findings
        return bool(findings) and all(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings)

    def _selector_fixes(self) -> Iterator[Fix]:
        """Yield untried fixes for a node selector that admission adds to all pods of the namespace. They come last if
        nodes with these labels only lack room."""
        for cause in root_causes(self.answer.diagnosis):
            yield from map(Fix.of_advice, cause.advice if isinstance(cause, SelectorOfNamespace) else ())

    def _cause_fixes(self) -> Iterator[Fix]:
        """Yield untried fixes for a cause outside the pod, its nodes, and their pods."""
        for cause in root_causes(self.answer.diagnosis):
            match cause:
                case SelectorOfNamespace():
                    continue
                case SharedClaim(claim=claim, is_of_node=is_of_node):
                    yield from _one_pod_at_a_time(self.cycle.snapshot, self.cycle.pod, "" if is_of_node else claim)
                case DriverNotRegistered(driver=driver, node=node):
                    agents = agents_down(self.cycle.snapshot, node)
                    down = f" ({list_names(agents, 2)})" if agents else ""
                    repair = f"repair the node plugin of {driver} on {node}{down}, which then registers it"
                    yield Fix.untried(f"{repair}{self._uncordoning(node)}", by_default=FixGroup.CLUSTER)
                case _:
                    for advice in (it for it in cause.advice if not it.is_second_to_nodes):
                        title = f"{advice.title}{self._uncordoning(advice.node)}{advice.why}"
                        yield Fix.of_advice(replace(advice, title=title))

    def _uncordoning(self, name: str) -> str:
        """Return `, and uncordon gpu-1` for a cordoned node, without which an untried repair does not help."""
        cluster = self.cycle.snapshot.cluster
        row = cluster.index.get(name)
        is_cordoned = row is not None and cluster.nodes[row].spec.unschedulable and name not in self.answer.drained
        return f", and uncordon {name}" if is_cordoned else ""

    def _room(self, owner: Owner | None, *, with_changes_of_pod: bool = False) -> tuple[Fix, ...]:
        """Return what an autoscaler does, or would do with other settings. With `with_changes_of_pod`, include fixes
        that change the pod."""
        snapshot, key = self.cycle.snapshot, self.cycle.pod.key
        event = snapshot.autoscaler_events.get(key)
        from kschedx.inquiry.node_scaling import NodeTrial, fixes_of_reports, reported_fixes

        down = self.answer.autoscaler_down
        repair = None if down is None else component_repair(down)
        if repair is not None and any(scaling.adds_node for scaling in self.answer.scalings):
            return (repair,)
        if not self.answer.scalings:
            return tuple(fixes_of_reports(snapshot, key))
        trial = NodeTrial(
            scheduler=self.scheduler,
            cycle=self.cycle,
            owner=owner,
            stored_in=self._stored_in,
            autoscaler="",
            event=event,
        )
        known: list[Fix] = []
        for scaling in sorted(self.answer.scalings, key=lambda scaling: not scaling.adds_node):
            trial = replace(trial, autoscaler=scaling.autoscaler.name)
            known += scaling.fixes(trial, with_changes_of_pod=with_changes_of_pod)
        if repair is not None:
            known = [replace(fix, title=f"{fix.title}, and {repair.title}") for fix in known if not fix.adds_node]
        return tuple(known) or (() if event is None else tuple(reported_fixes(event)))

    @property
    def _stored_in(self) -> Snapshot | None:
        """The cluster, if it has the pod."""
        return self.cycle.snapshot if self.cycle.pod.key in self.cycle.snapshot.pods.rows else None

    def _cluster_test(self, owner: Owner | None) -> ClusterTest:
        """Return a test for problems of a fix on the whole cluster. A gang is not tested, because its fix changes all
        of its pods."""
        if self.answer.setup is None or self.answer.gang is not None:
            return lambda fix: TrialOutcome()
        pod, before = self.cycle.pod, self.answer.before
        trial = ClusterTrial(self.cycle.snapshot, self.answer.setup, pod, before)

        def test(fix: TriedFix) -> TrialOutcome:
            alone, whole = (Fix.of(fix, owner, pod, stored_in=stored).apply for stored in (None, self._stored_in))
            if alone != whole and owner is not None and owner.kind != "Deployment":  # a paused workload creates no pods
                outcome = trial.outcome(fix.steps, alone)
                if outcome.is_tried and outcome.shortfall is None:
                    return replace(outcome, is_delivered=True)
            return trial.outcome(fix.steps, whole)

        return test

    def _gang_fixes(self, gang: GangStatus) -> tuple[Fix, ...]:
        """Return fixes that give nodes to the members that the gang lacks, with the others on their nodes. For several
        members, only new nodes are tried."""
        lacking = [member.pod for member in gang.waiting if not member.node and not member.gates]
        lacking = lacking[: gang.min_count - gang.placed - (gang.together or 0)]
        if not lacking:
            return ()

        placed, snapshot = {member.pod: member.node for member in gang.waiting if member.node}, self.cycle.snapshot
        snapshot = snapshot if self.cycle.pod.key in snapshot.pods.rows else with_pods(snapshot, [self.cycle.pod])
        anywhere = snapshot = _with_bound_pods(snapshot, placed)
        if gang.topology_key:  # then only its domain counts
            rows = [snapshot.pods.rows[key] for key in lacking]
            within = ((np.array([row]), self._in_domain(snapshot.pods[row], gang)) for row in rows)
            snapshot = with_changed_pods(snapshot, within)
        pod = snapshot.pods[snapshot.pods.rows[lacking[0]]]
        scheduler = self.scheduler.on(snapshot)
        owner, members = template_owner(snapshot, pod), {member.pod for member in gang.waiting}
        fixes = [
            fix
            for fix in find_fixes(scheduler, scheduler.schedule(pod, self.cycle.profile))
            if not any(change.delete and change.target.key in members for change in fix.changes)
        ]
        if len(lacking) == 1 and not gang.topology_key:
            return tuple(Fix.of(fix, owner, pod) for fix in fixes)
        whole = []
        if gang.topology_key and not gang.domain:
            title = f"set label {gang.topology_key} on the nodes for PodGroup {gang.name}: no node has it"
            whole, fixes = [Fix.untried(title, of_group=FixGroup.CLUSTER)], []
        for fix in fixes:
            adds = fix.steps[0] if len(fix.steps) == 1 else None
            number = self._nodes_for(adds, snapshot, lacking) if isinstance(adds, AddNode) else None
            if number:
                whole.append(Fix.of(adding_nodes(fix, number), owner, pod))
        if gang.topology_key and self._nodes_for(None, anywhere, lacking) == 0:
            title = f"remove the topology constraint {gang.topology_key} of PodGroup {gang.name}"
            whole.append(Fix.untried(title, of_group=FixGroup.WORKLOAD))
        return tuple(whole)

    @staticmethod
    def _in_domain(pod: Pod, gang: GangStatus) -> Pod:
        return with_spec(pod, node_selector={**pod.spec.node_selector, gang.topology_key: gang.domain})

    def _nodes_for(self, step: AddNode | None, snapshot: Snapshot, lacking: Iterable[str]) -> int | None:
        """Return how many such nodes these pods need, one after the other; None if new nodes are not enough."""
        run, number = Run(self.scheduler.on(snapshot), self.cycle.profile), 0
        for key in lacking:
            row = snapshot.pods.rows[key]
            decision = run.decide(row)
            if not len(decision.choice) and step is not None:
                number += 1
                offered = with_less_allocatable(step.node, step.taken)
                run.cluster.add_node(another_like(offered, f"{offered.name}-{number}"))
                decision = run.decide(row)
            if not len(decision.choice):
                return None
            run.bind(row, decision.choice[0])
        return number


_NO_OWNER = frozenset({"com", "dev", "example", "io", "k8s", "kubernetes", "net", "org", "sh", "svc", "x"})
"""Parts of a gate's domain that do not identify its controller."""
_CONTROLS = lazy_pattern("controller|manager|operator|scheduler|webhook")


def _gate_keepers(explanation: Explanation) -> Iterator[Fix]:
    """Yield what to ask first about a gate that is not of a known controller: the one that is likely to remove it, by
    the names of its pods and their namespace."""
    every = [gate.name for gate in explanation.cycle.pod.spec.scheduling_gates]
    if (kept := gate_of_controller(every)) and not explanation.cycle.snapshot.may_run(kept[1].lower()):
        yield Fix.untried(f"install {kept[1]}, of which no pod runs, or recreate the pod without gate {kept[0]}")
    if not (gates := [gate for gate in every if gate_of_controller([gate]) is None]):
        return
    pods, words = explanation.cycle.snapshot.pods, set(re.split("[.-]", gates[0].partition("/")[0])) - _NO_OWNER
    alike = {
        row: len(words & set(re.split("[.-]", f"{pods.namespaces[row]}-{name}")))
        for row, name in enumerate(pods.names)
        if _CONTROLS.search(name) and pods.phases[row] not in FINISHED
    }
    row = max(alike, key=lambda row: alike[row], default=None)
    removes = f"removes gate {gates[0]}"
    if row is None or not alike[row]:
        yield Fix.untried(f"check why the controller that {removes} has not: its logs, the pod's events")
        return
    command = pod_logs(pods.key(row))
    if is_ready(pods[row]):
        yield Fix.untried(f"check why {pods.key(row)}, which likely {removes}, has not", command)
    else:
        yield Fix.untried(f"repair {pods.key(row)}, which is not ready and likely {removes}", command)

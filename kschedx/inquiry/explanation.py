"""The answer about one pod, its notes, and the outcome of the other replicas."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.cycle_notes import RECORDED, bound_by_hand
from kschedx.explain.cycle_notes import notes as notes_of_cycle
from kschedx.explain.notes import Note
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.inquiry.autoscalers import autoscaler_document, scalings_of
from kschedx.inquiry.document import Covered
from kschedx.kube.autoscalers import GROUP_LABELS, GROUP_SIZE, HAMI_SCHEDULER
from kschedx.kube.documents import Document, part_of, to_json
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.render.states import (
    ComponentDown,
    ExitCode,
    Lifecycle,
    StateRow,
    decision_name,
    row_named,
    row_of,
    state_document,
)
from kschedx.results import Shown
from kschedx.snapshot.events import TRIGGERED_SCALE_UP

if TYPE_CHECKING:
    from kschedx.explain.root_causes import VirtualNode
    from kschedx.explain.setup import Setup
    from kschedx.fixes.changes import Change
    from kschedx.fixes.owners import Owner
    from kschedx.fixes.ranking import ClusterTest, TriedFix
    from kschedx.fixes.steps import AddNode
    from kschedx.holding import Holding
    from kschedx.holding.model import GangStatus
    from kschedx.inquiry.autoscalers import NodeAutoscaler, NodeScaling
    from kschedx.inquiry.fix import Fix
    from kschedx.kube.types import Pod
    from kschedx.snapshot.snapshot import Snapshot

MOST_GATED = 2
"""The maximum number of pods of a group with scheduling gates that a title names."""

# The outcome of the replicas that a workload lacks, placed one after the other.


class ReplicasDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    workload: str
    """`shop/deploy/web`."""
    wanted: int
    running: int
    """The number of its pods that already had a node."""
    placed: Mapping[str, str]
    """`namespace/name` to node, in the order of the queue."""
    pending: tuple[str, ...]
    """Replicas that get no node; if a rollout stalls, also those that are not created."""
    evicted: tuple[str, ...]
    """Preemption evicts them."""
    replaced: int
    """The number of pods of the previous template that run until a rollout deletes them."""
    kubelet: str = ""
    """The node in spec.nodeName, whose kubelet admits or rejects them; empty if kube-scheduler decides."""
    undecided: str = ""
    """Why there may be more pods than these, or pods with larger requests."""
    refused: tuple[str, ...] = ()
    """Replicas that the API server refuses, so that kube-scheduler never sees them."""
    refusal: str = ""
    """As the event about the first of `refused` reports it."""


class Replicas(ReplicasDocument, frozen=True, kw_only=True):
    """The outcome of all replicas, in addition to the explanation of one of them: the first without a node, else the
    first that evicts others, else the first."""

    evicted: tuple[str, ...] = ()
    replaced: int = 0
    outdated: int = 0
    """The number of replaced pods that still exist."""

    @property
    def total(self) -> int:
        """The number of replicas in question."""
        return len(self.placed) + len(self.pending) + len(self.refused)

    @property
    def fits(self) -> bool:
        return not self.pending and not self.refused


# The answer about one pod, as the library returns it and as `-o json` prints it.

_OVERALL = {
    ExitCode.SCHEDULABLE: Outcome.SCHEDULED,
    ExitCode.UNSCHEDULABLE: Outcome.UNSCHEDULABLE,
    ExitCode.UNDECIDED: Outcome.UNDECIDED,
}


def _on_fargate(cause: VirtualNode, namespace: str) -> str:
    """Return what lets EKS Fargate run a pod."""
    if cause.kept_off:
        selects = f"a Fargate profile selects namespace {namespace} and its labels"
        return f"remove annotation {cause.key} from the pod's template, if {selects}"
    return f"create a Fargate profile that selects namespace {namespace} and the pod's labels, and recreate the pod"


class Explanation(Shown, Struct, frozen=True, dict=True):
    """Why kube-scheduler assigns a pod to a node, or to none. Everything is read from `cycle`; fixes are tried on
    request."""

    cycle: Cycle
    scheduler: Scheduler
    first_notes: tuple[Note, ...] = ()
    """How the question was understood, and how the API server would change the pod's manifest."""
    autoscalers: tuple[NodeAutoscaler, ...] = ()
    """Those of the cluster that are known and have a decision to make."""
    replicas: Replicas | None = None
    """The outcome of the workload's other replicas, if there were several in question."""
    covering: Callable[[Explanation, Fix], Covered | None] | None = None
    """Tries a fix of this pod for the other pending replicas; None for a single pod."""
    lifecycle: Lifecycle | None = None
    """Why no decision of kube-scheduler answers the question. If a cycle was run, it shows what kube-scheduler would
    decide."""
    remedies: Callable[[], tuple[Fix, ...]] | None = None
    """Return the fixes of a `lifecycle`, or of replicas that the API server refuses while others fit."""
    setup: Setup | None = None
    """With a setup, fixes may create pods, and are tried on the whole cluster."""
    before: Snapshot | None = None
    """The cluster without the manifests in question; None if there are none."""
    drained: frozenset[str] = frozenset()
    """Nodes that the question drains or cordons, which no fix uncordons."""

    @property
    def is_run(self) -> bool:
        """Whether the pod went through a scheduling cycle."""
        return bool(self.cycle.pre_enqueue or self.cycle.pre_filter or self.cycle.nodes or self.cycle.message)

    @cached_property
    def state(self) -> StateRow:
        """The row of the table of states that answers the question."""
        if self.lifecycle is not None:
            return row_of(self.lifecycle)
        return row_named(self._decision())

    def _decision(self) -> str:
        outcome = self.overall
        if self.holding.scheduler is not None:
            return "OtherScheduler"
        if outcome is Outcome.UNSCHEDULABLE and self.gang is not None and self.gang.is_short:
            return "WaitingForGang"
        if outcome is Outcome.UNSCHEDULABLE and self.is_nominated:
            return "Nominated"
        return "ScaleUp" if outcome is Outcome.UNSCHEDULABLE and self.is_scaled_up else decision_name(outcome)

    @property
    def exit_code(self) -> ExitCode:
        return self.state.exit_code

    @property
    def gang(self) -> GangStatus | None:
        """The pod's group, if the profile starts all of its pods or none."""
        pod = self.cycle.pod
        spec = pod.spec
        if not (spec.scheduling_group or spec.workload_ref or POD_GROUP_LABEL in pod.metadata.labels):
            return None
        group = self.holding.group
        return group if group is not None and group.is_heeded else None

    @property
    def is_nominated(self) -> bool:
        """Whether victims of the pod are still terminating on its nominated node."""
        return bool(self.victims)

    @cached_property
    def victims(self) -> tuple[str, ...]:
        return terminating_victims(self.cycle.snapshot, self.cycle.pod)

    @property
    def is_scaled_up(self) -> bool:
        """Whether an autoscaler adds a node for the pod, or reports that it does."""
        event = None if self.autoscalers else self.cycle.snapshot.autoscaler_events.get(self.cycle.pod.key)
        is_reported = event is not None and event.reason == TRIGGERED_SCALE_UP
        return (is_reported or any(scaling.adds_node for scaling in self.scalings)) and self.autoscaler_down is None

    @cached_property
    def autoscaler_down(self) -> ComponentDown | None:
        """The autoscaler that would help, if the cluster shows its pods but none of them runs."""
        from kschedx.controllers.pod_lifecycle import autoscaler_down

        if not self.scalings:
            return None
        return autoscaler_down(self.cycle.snapshot, self.cycle.pod.key, self.scalings[0].autoscaler.name)

    def __repr__(self) -> str:
        return f"<Explanation of {self.cycle.pod.key}: {self.outcome.value}>"

    @property
    def outcome(self) -> Outcome:
        return self.cycle.outcome

    @cached_property
    def becomes(self) -> Outcome:
        """The pod's outcome. If spec.nodeName has bound it already, the known checks of the kubelet decide."""
        if (bound := bound_by_hand(self.cycle)) is None:
            return self.outcome
        return Outcome.SCHEDULED if bound.is_taken else Outcome.UNSCHEDULABLE

    @property
    def alone(self) -> Outcome:
        """The outcome of the pod without its replicas, but with its gang."""
        if self.outcome is Outcome.SCHEDULED and self.gang is not None and self.gang.lacks_room:
            return Outcome.UNSCHEDULABLE
        return self.becomes

    @property
    def overall(self) -> Outcome:
        """The outcome of everything in question: of all replicas, and of a pod's group. A pod with victims is
        unschedulable until they are gone."""
        if self.lifecycle is not None:
            return _OVERALL[row_of(self.lifecycle).exit_code]
        if self.replicas is None:
            return self.alone
        if self.replicas.fits:
            now = Outcome.UNSCHEDULABLE if self.replicas.evicted else Outcome.SCHEDULED
            return Outcome.UNDECIDED if self.replicas.undecided else now
        return Outcome.UNSCHEDULABLE if self.becomes is Outcome.SCHEDULED else self.becomes

    @property
    def best_nodes(self) -> tuple[str, ...]:
        """The nodes with the highest total."""
        return tuple(self.cycle.all_nodes.cluster.names[row] for row in self.cycle.best)

    @property
    def chosen_nodes(self) -> tuple[str, ...]:
        """The nodes from which kube-scheduler chooses: `best_nodes`, unless the pod's nominated node fits."""
        return tuple(self.cycle.all_nodes.cluster.names[row] for row in self.cycle.choice)

    @property
    def message(self) -> str:
        """kube-scheduler's FailedScheduling text; empty if the pod can be scheduled."""
        return self.cycle.message

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """Changes that were tried on an overlay of the snapshot, cheapest first; first those after which Kueue admits
        the pod's Workload."""
        return tuple(self.each_fix())

    def each_fix(self) -> Iterator[Fix]:
        """Yield the fixes. Most are tried on the whole cluster only when they are needed, and the clusters in which
        they are tried are freed with the iterator."""
        if "fixes" in self.__dict__:
            yield from self.fixes
            return
        fixes: list[Fix] = []
        for fix in itertools.chain(self._kueue_fixes(), self._own_fixes()):
            fixes.append(fix)
            yield fix
        self.__dict__["fixes"] = tuple(fixes)

    def _kueue_fixes(self) -> Iterator[Fix]:
        kueue = self.holding.kueue
        if kueue is not None and kueue.verdict is not None:
            from kschedx.inquiry.fix import kueue_fixes

            yield from kueue_fixes(kueue.verdict)

    def _own_fixes(self) -> Iterator[Fix]:
        gang = self.gang if self.lifecycle is None and self.outcome is Outcome.SCHEDULED else None
        if gang is not None and self.overall is Outcome.UNSCHEDULABLE:
            yield from self._gang_fixes(gang)
            return
        if self.lifecycle is not None or self.becomes is Outcome.SCHEDULED:
            yield from () if self.remedies is None else self.remedies()
            return
        from kschedx.explain.diagnosis import Diagnosis
        from kschedx.explain.root_causes import balanced_service, root_causes
        from kschedx.fixes.owners import template_owner
        from kschedx.inquiry.lifecycle_remedies import gate_keepers, with_newer_template

        pod = self.cycle.pod
        owner = template_owner(self.cycle.snapshot, pod)
        if self._stored_in is not None and (recreated := with_newer_template(self, pod)) is not None:
            yield recreated
            return
        yield from self._missing_members()
        yield from gate_keepers(self)
        yield from self._of_causes()
        if any(cause.leaves_no_node for cause in root_causes(Diagnosis(self.cycle))):
            return
        is_overwritten = balanced_service(pod.metadata.labels)  # its controller overwrites the pod template
        fixes = self._tried_fixes(owner)
        if self._may_be_scaled:
            room, fixes = self._beside_autoscalers(owner, tuple(fixes))
            yield from room
        if not is_overwritten:
            yield from fixes

    def _tried_fixes(self, owner: Owner | None) -> Iterator[Fix]:
        from kschedx.fixes import find_fixes
        from kschedx.inquiry.fix import Fix

        pod, stored_in = self.cycle.pod, self._stored_in
        before = self.before or (None if self.setup is None else self.setup.snapshot)
        for found_fix in find_fixes(self.scheduler, self.cycle, self._cluster_test(owner), self.drained):
            if self.gang is None or not any(map(self._deletes_member, found_fix.changes)):
                fix = self._for_group(Fix.of(found_fix, owner, pod, stored_in=stored_in))
                yield fix.with_claims_of(owner, pod, before, self.cycle.snapshot)

    @property
    def _may_be_scaled(self) -> bool:
        """Whether an autoscaler decides about the pod, or an event reports that."""
        snapshot, key = self.cycle.snapshot, self.cycle.pod.key
        return bool(self.scalings) or key in snapshot.autoscaler_events or key in snapshot.karpenter_events

    def _beside_autoscalers(self, owner: Owner | None, fixes: tuple[Fix, ...]) -> tuple[tuple[Fix, ...], Iterator[Fix]]:
        """Return the fixes that make room, and the others: if an autoscaler adds nodes, none is added by hand."""
        from kschedx.fixes import FixCertainty

        room = self._room(owner)
        if all(fix.adds_node for fix in fixes) and all(fix.certainty is FixCertainty.UNTRIED for fix in room):
            room = self._room(owner, with_changes_of_pod=True)
        if not room:
            return (), iter(fixes)
        by_hand_first = (
            () if not all(fix.reshapes_pool for fix in room) else (fix for fix in fixes if fix.is_without_karpenter)
        )
        adds = any(scaling.adds_node for scaling in self.scalings)
        repairs = [fix for fix in fixes if fix.repairs_what_exists(is_of_pool=adds)]
        others = (fix for fix in fixes if not fix.adds_node and fix not in repairs)
        return (*repairs, *by_hand_first, *room), others

    def _deletes_member(self, change: Change) -> bool:
        """Return whether a change deletes a pod of this pod's own gang."""
        pods, own = self.cycle.snapshot.pods, self.cycle.pod
        row = pods.rows.get(f"{change.target.namespace}/{change.target.name}") if change.delete else None
        if row is None or pods.namespaces[row] != own.metadata.namespace:
            return False
        label, spec = own.metadata.labels.get(POD_GROUP_LABEL), pods.specs[row]
        if label:
            return pods.labels[row].get(POD_GROUP_LABEL) == label
        return (spec.scheduling_group, spec.workload_ref) == (own.spec.scheduling_group, own.spec.workload_ref)

    def _for_group(self, fix: Fix) -> Fix:
        """Return the fix. If it adds a node for a LeaderWorkerSet's group, state how many nodes all pods without a node
        need, if all of them request as much."""
        pod, pods = self.cycle.pod, self.cycle.snapshot.pods
        size = self._group_size() if fix.adds_node else 0
        if not size:
            return fix
        from kschedx.fixes.pod_edits import amount_of
        from kschedx.fixes.steps import AddNode
        from kschedx.kube.resources import pod_request

        shared = {key: pod.metadata.labels.get(key, "") for key in GROUP_LABELS}
        is_member = pods.labels.where(lambda labels: all(labels.get(key) == value for key, value in shared.items()))
        is_member &= pods.namespaces.where(lambda name: name == pod.metadata.namespace) & (pods.node >= 0)
        left = size - int(is_member.sum())
        (step,) = fix.steps
        if left < 2 or not isinstance(step, AddNode):
            return fix
        offered = {name: amount_of(name, text) for name, text in step.node.status.allocatable.items()}
        for resource_amount in step.taken:
            offered[resource_amount.resource] = offered.get(resource_amount.resource, 0) - resource_amount.amount
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
        raw = snapshot.workloads.get(("StatefulSet", pod.namespace, group))
        replicas = msgspec.json.decode(raw)["spec"].get("replicas") if raw else None
        return replicas + 1 if isinstance(replicas, int) else 0

    def _missing_members(self) -> Iterator[Fix]:
        """Yield fixes for the missing pods of a group, tried with copies of the pod. If the API server refuses the
        pods, the fixes let it admit them."""
        from kschedx.explain.diagnosis import Diagnosis
        from kschedx.explain.root_causes import MembersNotCreated, root_causes
        from kschedx.fixes import Change, FixCertainty, Target
        from kschedx.inquiry.fix import Fix
        from kschedx.inquiry.manifest_edit import as_manifest
        from kschedx.render.wording import count, listed

        kueue, gang = self.holding.kueue, self.gang
        name, lacking = "", 0
        if kueue is not None and kueue.group:
            name, lacking = kueue.group, kueue.group_total - kueue.group_pods
        elif gang is not None and gang.pods < gang.min_count:
            name, lacking = gang.name.rpartition("/")[2], gang.min_count - gang.pods
        if not lacking:
            return
        causes = root_causes(Diagnosis(self.cycle))
        if refused := [cause.message for cause in causes if isinstance(cause, MembersNotCreated)]:
            yield from self._refused_members(refused[0], lacking)
            return
        owner = self.cycle.pod.metadata.controller
        by = f": {owner.kind} {owner.name} creates too few" if owner is not None else ""
        title = f"create {count(lacking, 'more pod')} of group {name}{by}"
        members, then = self._with_members(lacking)
        gated = [member.pod for member in gang.waiting if member.gates] if gang is not None else []
        if gated and then.alone is not Outcome.SCHEDULED:
            members, then = self._with_members(lacking, ungated=gated)
            title = f"{title}, and remove the scheduling gates of {listed(gated, MOST_GATED)}"
        else:
            gated = []
        if then.alone is not Outcome.SCHEDULED:
            yield Fix.untried(title.partition(", and ")[0])
            return
        maker = "" if owner is None else f"{owner.kind} {owner.name}"
        targets = (Target("v1", "Pod", member.metadata.name, member.metadata.namespace) for member in members)
        target_members = zip(targets, members, strict=True)
        created = tuple(Change(target=target, create=as_manifest(pod), by=maker) for target, pod in target_members)
        opened = tuple(
            Change(
                target=Target("v1", "Pod", key.partition("/")[2], key.partition("/")[0]),
                patch=({"op": "remove", "path": "/spec/schedulingGates"},),
            )
            for key in gated
        )
        yield Fix(
            title=title,
            certainty=FixCertainty.VERIFIED,
            changes=(*created, *opened),
            feasible_nodes=then.chosen_nodes,
            steps=(),
            apply=opened if maker else (*created, *opened),
            answer=lambda: then,
        )

    def _with_members(self, number: int, *, ungated: Sequence[str] = ()) -> tuple[tuple[Pod, ...], Explanation]:
        """Return further members of the pod's group, identical to the pod, and the pod's answer with them. The pods in
        `ungated` lose their scheduling gates."""
        from kschedx.snapshot.edits import with_pods

        pod, snapshot = self.cycle.pod, self.cycle.snapshot
        names = (f"{pod.metadata.name}-{index}" for index in itertools.count(2))
        free = (name for name in names if f"{pod.metadata.namespace}/{name}" not in snapshot.pods.rows)
        metadata = (replace(pod.metadata, name=name, uid="") for name in itertools.islice(free, number))
        members = tuple(replace(pod, metadata=meta, status=type(pod.status)()) for meta in metadata)
        opened = [snapshot.pods[snapshot.pods.rows[key]] for key in ungated]
        opened = [replace(pod, spec=replace(pod.spec, scheduling_gates=())) for pod in opened]
        snapshot = snapshot.without_pods(snapshot.pods.rows[key] for key in ungated) if opened else snapshot
        scheduler = self.scheduler.on(with_pods(snapshot, [*opened, *members]))
        return members, Explanation(scheduler.schedule(pod, self.cycle.profile), scheduler, ())

    def _refused_members(self, message: str, number: int) -> tuple[Fix, ...]:
        from kschedx.controllers.workload_lifecycle import refused
        from kschedx.inquiry.lifecycle_remedies import Stopped
        from kschedx.inquiry.manifest_edit import as_manifest

        if self.setup is None:
            return ()
        pod, (members, then) = self.cycle.pod, self._with_members(number)
        stopped = Stopped(
            snapshot=self.cycle.snapshot,
            setup=self.setup,
            explain=lambda subject, setup: then,
            pod=members[0],
            manifest=as_manifest(members[0]),
            count=number,
        )
        return stopped.fixes(refused(pod.key, message, is_workload=False))

    def _of_causes(self) -> Iterator[Fix]:
        """Yield untried fixes for a cause outside the pod, its nodes, and their pods."""
        from kschedx.controllers.daemon_set import agents_down
        from kschedx.explain.diagnosis import Diagnosis
        from kschedx.explain.hardware import DeviceClaimRefused, SharedByHami
        from kschedx.explain.root_causes import (
            CapacityNotPublished,
            DriverNotRegistered,
            MatchingPodPending,
            NodeGone,
            PortOfService,
            SelectorOfNamespace,
            SharedClaim,
            VirtualNode,
            root_causes,
        )
        from kschedx.inquiry.fix import Fix, admin_access, free_port, one_pod_at_a_time
        from kschedx.kube.escaping import shell_command, why_command
        from kschedx.render.wording import listed

        pod = self.cycle.pod.metadata
        for cause in root_causes(Diagnosis(self.cycle)):
            match cause:
                case NodeGone(node=node, daemon_set=name) if name:
                    yield Fix.untried(f"restore node {node}; if it is gone for good, DaemonSet {name} deletes the pod")
                case MatchingPodPending():
                    title = f"make room for {cause.pod} first, which this pod follows"
                    yield Fix.untried(title, commands=(why_command(cause.pod),))
                case SelectorOfNamespace(namespace=namespace, annotation=annotation):
                    emptied = f"kubectl annotate namespace {{}} {annotation}= --overwrite"
                    commands = [shell_command(emptied, namespace)]
                    if pod.controller is not None and self.cycle.pod.key in self.cycle.snapshot.pods.rows:
                        commands.append(shell_command("kubectl delete pod {} -n {}", pod.name, namespace))
                    title = f"empty annotation {annotation} of namespace {namespace}, and recreate the pod"
                    yield Fix.untried(title, commands=tuple(commands))
                case SharedClaim(claim=claim):
                    yield from one_pod_at_a_time(self.cycle.snapshot, self.cycle.pod, claim)
                case DeviceClaimRefused(lacks_admin_label=lacks):
                    yield admin_access(pod.namespace) if lacks else Fix.untried("correct the ResourceClaimTemplate")
                case PortOfService(ports=ports, service=service, own_service=own):
                    yield free_port(ports, service, own)
                case VirtualNode(node=node, key=key, value=value) if node and pod.controller is not None:
                    named = f"DaemonSet {pod.controller.name} off nodes of {cause.provider}"
                    yield Fix.untried(f"keep {named}: require {key} NotIn [{value}] in its nodeAffinity")
                case VirtualNode(provider="EKS Fargate"):
                    yield Fix.untried(_on_fargate(cause, pod.namespace))
                case CapacityNotPublished(driver=driver, storage_class=name):
                    where = f"the parameters of class {name}, and the driver's controller"
                    yield Fix.untried(f"repair {driver}, so that it publishes capacity for class {name}: check {where}")
                case DriverNotRegistered(driver=driver, node=node):
                    agents = agents_down(self.cycle.snapshot, node)
                    down = f" ({listed(agents, 2)})" if agents else ""
                    yield Fix.untried(f"repair the node plugin of {driver} on {node}{down}, which then registers it")
                case SharedByHami():
                    how = f"recreate the pod with schedulerName {HAMI_SCHEDULER}"
                    yield Fix.untried(f"{how}: HAMi's webhook, which sets it, was ignored or did not run")
                case _:
                    pass

    def _room(self, owner: Owner | None, *, with_changes_of_pod: bool = False) -> tuple[Fix, ...]:
        """Return what an autoscaler does, or would do with other settings. With `with_changes_of_pod`, include fixes
        that change the pod."""
        snapshot, key = self.cycle.snapshot, self.cycle.pod.key
        event, karpenter_event = snapshot.autoscaler_events.get(key), snapshot.karpenter_events.get(key)
        from kschedx.inquiry.node_scaling import NodeTrial, autoscaler_repair, reported_by_karpenter, reported_fixes

        if self.autoscaler_down is not None:
            return (autoscaler_repair(self.autoscaler_down),)
        reported = () if event is None else tuple(reported_fixes(event))
        if not self.scalings:
            return (*reported, *(() if karpenter_event is None else reported_by_karpenter(karpenter_event.message)))
        trial = NodeTrial(
            scheduler=self.scheduler,
            cycle=self.cycle,
            owner=owner,
            stored_in=self._stored_in,
            autoscaler="",
            event=event,
            explain=lambda cycle, scheduler: Explanation(cycle, scheduler, self.first_notes),
        )
        known: list[Fix] = []
        for scaling in self.scalings:
            trial = replace(trial, autoscaler=scaling.autoscaler.name)
            known += scaling.fixes(trial, with_changes_of_pod=with_changes_of_pod)
        return tuple(known) or reported

    @property
    def _stored_in(self) -> Snapshot | None:
        """The cluster, if it has the pod."""
        return self.cycle.snapshot if self.cycle.pod.key in self.cycle.snapshot.pods.rows else None

    def _cluster_test(self, owner: Owner | None) -> ClusterTest:
        """Return a test for problems of a fix on the whole cluster. A gang is not tested, because its fix changes all
        of its pods."""
        from kschedx.fixes.cluster_trial import ClusterTrial
        from kschedx.fixes.ranking import TrialOutcome
        from kschedx.inquiry.fix import Fix

        if self.setup is None or self.gang is not None:
            return lambda fix: TrialOutcome()
        pod, trial = self.cycle.pod, ClusterTrial(self.cycle.snapshot, self.setup, self.cycle.pod)

        def test(fix: TriedFix) -> TrialOutcome:
            outcome = tried(fix)
            return outcome if self.covering is None else replace(outcome, left=0)  # tried for all pods then

        def tried(fix: TriedFix) -> TrialOutcome:
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
        from kschedx.fixes import find_fixes
        from kschedx.fixes.owners import template_owner
        from kschedx.fixes.steps import AddNode
        from kschedx.inquiry.fix import Fix
        from kschedx.render.words.fixes import with_nodes
        from kschedx.snapshot.edits import with_bound_pods, with_pods

        placed, snapshot = {member.pod: member.node for member in gang.waiting if member.node}, self.cycle.snapshot
        snapshot = snapshot if self.cycle.pod.key in snapshot.pods.rows else with_pods(snapshot, [self.cycle.pod])
        snapshot = with_bound_pods(snapshot, placed)
        pod = snapshot.pods[snapshot.pods.rows[lacking[0]]]
        scheduler = self.scheduler.on(snapshot)
        owner, members = template_owner(snapshot, pod), {member.pod for member in gang.waiting}
        fixes = [
            fix
            for fix in find_fixes(scheduler, scheduler.schedule(pod, self.cycle.profile))
            if not any(
                change.delete and f"{change.target.namespace}/{change.target.name}" in members for change in fix.changes
            )
        ]
        if len(lacking) == 1:
            return tuple(Fix.of(fix, owner, pod) for fix in fixes)
        whole = []
        for fix in fixes:
            adds = fix.steps[0] if len(fix.steps) == 1 else None
            number = self._nodes_for(adds, snapshot, lacking) if isinstance(adds, AddNode) else 0
            if number:
                whole.append(replace(Fix.of(fix, owner, pod), title=with_nodes(fix.steps, number)))
        return tuple(whole)

    def _nodes_for(self, step: AddNode, snapshot: Snapshot, lacking: Iterable[str]) -> int:
        """Return how many such nodes these pods need, one after the other; 0 if new nodes are not enough."""
        from kschedx.framework.moving import Run
        from kschedx.simulate.changes import another_like
        from kschedx.snapshot.daemon_sets import less

        run, number = Run(self.scheduler.on(snapshot), self.cycle.profile), 0
        offered = less(step.node, {resource_amount.resource: resource_amount.amount for resource_amount in step.taken})
        for key in lacking:
            row = snapshot.pods.rows[key]
            decision = run.decide(row)
            if not len(decision.choice):
                number += 1
                run.cluster.add_node(another_like(offered, f"{offered.name}-{number}"))
                decision = run.decide(row)
            if not len(decision.choice):
                return 0
            run.bind(row, decision.choice[0])
        return number

    def covered(self, fix: Fix) -> Covered | None:
        """Return the number of pending replicas that a fix helps; None if that was not tried."""
        if fix.helps is not None and self.replicas is not None and len(pending := self.replicas.pending) > 1:
            return Covered(title=fix.title, pods=sum(key in fix.helps for key in pending), of=len(pending))
        return None if self.covering is None else self.covering(self, fix)

    @cached_property
    def scalings(self) -> tuple[NodeScaling, ...]:
        """The decision of each autoscaler about a pod that fits no node; none if the pod fits."""
        return tuple(scalings_of(self.autoscalers, self.cycle.pod))

    @cached_property
    def no_fix(self) -> str:
        """Why there is no fix; empty if there is a complete fix, or nothing to fix."""
        if self.becomes is Outcome.SCHEDULED or self.lifecycle is not None:
            return ""
        from kschedx.fixes import FixCertainty, why_no_fix
        from kschedx.render.words import headline

        if any(fix.certainty is not FixCertainty.PARTIAL or fix.of_group is not None for fix in self.fixes):
            return ""
        end = why_no_fix(self.scheduler, self.cycle)
        if end is None or (end.is_untold and any(fix.feasible_nodes for fix in self.fixes)):
            return ""  # another component decides about the tried changes
        return ": ".join(filter(None, (end.text, "; ".join(map(headline, end.findings)))))

    @cached_property
    def holding(self) -> Holding:
        """The component that holds the pod before kube-scheduler sees it, or decides about it instead of
        kube-scheduler."""
        from kschedx.holding import find_holding

        return find_holding(self.scheduler, self.cycle)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the limits of the answer, such as sampling, ties, and missing objects."""
        of_cycle = notes_of_cycle(self.cycle)
        if self.holding.scheduler is not None:  # the pod's message is from that scheduler, and shown as such
            of_cycle = tuple(note for note in of_cycle if note.id != RECORDED)
        return (*self.first_notes, *of_cycle)

    def after(self, fix: Fix) -> Explanation:
        """Return the answer about the same pod after a fix of this answer. Raises `UndecidableError`."""
        if fix.answer is not None:
            return fix.answer()
        from kschedx.fixes.proposal import Proposal, apply_steps

        before = self.cycle.snapshot
        proposal = apply_steps(fix.steps, Proposal(pod=self.cycle.pod), before)
        snapshot = proposal.cluster(before)
        scheduler = self.scheduler if snapshot is before else self.scheduler.on(snapshot)
        cycle = scheduler.schedule(proposal.pod, self.cycle.profile)
        return Explanation(cycle, scheduler, self.first_notes, autoscalers=self.autoscalers)

    def records(self) -> list[dict[str, object]]:
        """Return a row for each node that reached Filter, with its total if the pod fits. Nodes with a total come
        first, since polars infers a column's type from its first rows."""
        cycle = self.cycle
        if cycle.filter is None or cycle.nodes is None:
            return []
        scores = cycle.scores
        totals = {} if scores is None else dict(zip(scores.nodes.names, scores.totals.tolist(), strict=True))
        all_records: list[dict[str, object]] = []
        for row, name in zip(cycle.nodes.each(), cycle.nodes.names, strict=True):
            status = cycle.filter.status(row)
            all_records.append(
                {
                    "node": name,
                    "code": status.code.text,
                    "plugin": status.plugin,
                    "reasons": "; ".join(status.reasons),
                    "total": totals.get(name),
                }
            )
        return sorted(all_records, key=lambda record: record["total"] is None)

    def to_dict(self) -> dict[str, object]:
        """Return the Explanation document as plain dicts, lists, strings, and integers."""
        from kschedx.inquiry.document import KubeletDocument, explanation_document

        hopeless = (Note(id="no-fix", text=self.no_fix),) if self.no_fix else ()
        fixes = [fix.document(self.covered(fix) if self.covering is not None else None) for fix in self.fixes]
        document = explanation_document(self.cycle, fixes, [item.document for item in (*self.notes, *hopeless)])
        scaled = autoscaler_document(scaling.document for scaling in self.scalings)
        if scaled.get("kind") == "cluster-autoscaler":  # it stands before the state, Karpenter's behind
            document["autoscaler"] = scaled
        if (bound := bound_by_hand(self.cycle)) is not None:
            document["kubelet"] = to_json(part_of(KubeletDocument, bound))
        document["state"] = self.state_document
        if self.overall is not self.outcome:
            document["overall"] = self.overall.value
        if self.replicas is not None:
            document["replicas"] = to_json(part_of(ReplicasDocument, self.replicas))
        if scaled:
            document["autoscaler"] = scaled
        if self.holding:
            from kschedx.inquiry.document import holding_document

            document["holding"] = holding_document(self.holding)
        return document

    @property
    def state_document(self) -> dict[str, object]:
        return {"name": self.state.name} if self.lifecycle is None else state_document(self.lifecycle)


def terminating_victims(snapshot: Snapshot, pod: Pod) -> tuple[str, ...]:
    """Return the pods with a lower priority that are terminating on the pod's nominated node."""
    node = snapshot.cluster.index.get(pod.status.nominated_node_name)
    if node is None:
        return ()
    pods = snapshot.pods
    rows = map(int, pods.on_node(node))
    return tuple(pods.key(row) for row in rows if pods.terminating[row] and pods.priorities[row] < pod.priority)

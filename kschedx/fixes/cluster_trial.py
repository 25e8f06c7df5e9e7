"""Trials of a fix on the whole cluster: the changes that are sent, the reactions of all controllers, and the nodes of
the pods afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice, takewhile

import numpy as np
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.controllers.workloads import Workload, owners_in
from kschedx.errors import InputError, NotAdmittedError, Place, UndecidableError
from kschedx.explain.setup import Setup
from kschedx.fixes.changes import PatchError, apply_patch
from kschedx.fixes.owners import template_owner
from kschedx.fixes.proposal import Proposal, apply_steps
from kschedx.fixes.ranking import BudgetUse, ReplacementNodes, Shortfall, TrialOutcome
from kschedx.fixes.steps import AddNode, DeletePods, FixStep, MovePods, TakeOldFirst, awaits_preemption
from kschedx.grouping import group_pairs
from kschedx.kube.decoding import Manifest
from kschedx.kube.documents import Change, with_spec
from kschedx.kube.types import Pod
from kschedx.simulate.apply import ClusterChanges
from kschedx.simulate.changes import ChangeVerb, another_like
from kschedx.simulate.changes import SimulatedChange as ClusterChange
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.daemon_sets import with_less_allocatable
from kschedx.snapshot.edits import with_only_pods
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

_MOST_REPLICAS = 500  # a larger rollout takes longer than an answer may
_MOST_AHEAD = 200  # pending pods of a higher priority that are scheduled in each trial
_MOST_COMPETING = 10  # pending pods of an equal priority, or later in the queue, that are scheduled in each trial


class ClusterTrial:
    """Trials of the fixes of one pod, in the cluster in which they were found."""

    def __init__(self, snapshot: Snapshot, setup: Setup, pod: Pod, before: Snapshot | None = None) -> None:
        """`before` is the cluster without the manifests in question, if there are any."""
        self._setup = setup
        self._before = before or setup.snapshot
        self._pod = pod
        self._snapshot = snapshot
        owners, row = owners_in(snapshot), snapshot.pods.rows.get(pod.key)
        self._workload = workload = _workload_of(snapshot, pod) if row is None else owners.of(snapshot.pods, row)
        self._own = frozenset(owners.members(snapshot.pods, workload) if workload.kind != "Pod" else ())
        """Rows of the workload's pods."""

    @cached_property
    def _template_deployment(self) -> Workload | None:
        """The Deployment whose template the pod's Argo Rollout uses (spec.workloadRef)."""
        owner = template_owner(self._snapshot, self._pod)
        if owner is None or owner.kind != "Deployment":
            return None
        workload = Workload(owner.kind, self._pod.metadata.namespace, owner.name)
        return None if workload == self._workload else workload

    @cached_property
    def _before_question(self) -> tuple[Snapshot, dict[Workload, Manifest]]:
        """The cluster without the pods that the question created, and the manifest that the workload had before the
        question. If a fix changes the template, these pods are created again from it."""
        known, snapshot = self._before, self._snapshot
        if known is None:
            return snapshot, {}
        created = [row for row in self._own if snapshot.pods.key(row) not in known.pods.rows]
        if created:
            kept = np.setdiff1d(np.arange(len(snapshot.pods)), created)
            snapshot = with_only_pods(snapshot, kept)
        if len(created) == len(self._own):
            return replace(snapshot, workloads=self._others(snapshot, known)), {}
        is_asked = bool(created) or self._pod.key not in snapshot.pods.rows
        before = workloads.stored_manifest(known, self._workload) if is_asked else None
        return snapshot, {} if before is None else {self._workload: before}

    def _others(self, snapshot: Snapshot, known: Snapshot) -> dict[tuple[str, str, str], bytes]:
        """Return the workloads without the pod's own, of which the cluster had no pod before the question: the trial
        creates it with the template that a fix changes."""
        return {
            key: manifest
            for key, manifest in snapshot.workloads.items()
            if key != self._workload and (key in known.workloads or key[0] != "ReplicaSet")
        }

    @cached_property
    def _is_small(self) -> bool:
        manifest = self._snapshot.manifest_of(self._workload)
        return manifest is None or workloads.wanted_replicas(manifest) <= _MOST_REPLICAS

    def outcome(self, steps: Sequence[FixStep], sent: Sequence[Change]) -> TrialOutcome:
        """Return the outcome of a fix on the whole cluster.

        `sent` are the changes that you make, none for preemption; `steps` also hold what components do by themselves.
        There is no shortfall if the pod, or one in its place, gets a node and no other pod loses its own. There is none
        either if the fix cannot be tried.
        """
        tries = bool(sent) or awaits_preemption(steps)
        if not tries or not self._is_small or self._setup.scheduler.config.extenders:
            return TrialOutcome()  # extenders are asked only about the pod itself, never about a trial
        try:
            followers = self._followers  # before the simulator moves
            equals = self._competing_pods(sent)
            outcome = self._try(steps, sent, {**self._pods_ahead, **equals}, followers)
            first = () if outcome.shortfall is None else outcome.shortfall.higher_priority
            competing = tuple(filter(equals.__contains__, first))
            if not competing:
                return outcome
            return replace(self._try(steps, sent, self._pods_ahead, followers), competing=competing)
        except NotAdmittedError as error:
            self.__dict__.pop("_simulator", None)
            return TrialOutcome(shortfall=Shortfall(refusal=error.message))
        except (InputError, UndecidableError, PatchError):
            self.__dict__.pop("_simulator", None)
            return TrialOutcome()

    def _try(
        self, steps: Sequence[FixStep], sent: Sequence[Change], ahead: Mapping[str, None], followers: Sequence[str]
    ) -> TrialOutcome:
        """`ahead` are the pending pods of other workloads that are scheduled too, `followers` those that come later."""
        is_patched = self._patches(sent)
        before, known = self._before_question if is_patched else (self._snapshot, {})
        proposal = apply_steps(steps, Proposal(pod=self._pod), before)
        before = Proposal(pod=self._pod, resized=proposal.resized).cluster(before)
        around = Proposal(
            pod=self._pod,
            objects=proposal.objects,
            untainted=proposal.untainted,
            deallocated_claims=proposal.deallocated_claims,
        )
        cluster = around.cluster(before)
        is_shared = cluster is self._snapshot and not known
        simulator = self._simulator if is_shared else Simulator(cluster, self._setup, SimulationOptions(), known=known)
        mark = simulator.mark()
        self._change_nodes(proposal, steps, simulator)
        by_hand = ClusterChanges(simulator, self._pod.metadata.namespace)
        by_hand.follow([(before.cluster.nodes[row], node) for row, node in proposal.nodes.items()])
        self._move(steps, simulator)
        of_others = replace(proposal.pod, spec=self._pod.spec)  # what an API server and controllers write
        if of_others != self._pod and not is_patched:
            self._put(of_others, simulator)
        for change in sent:
            if change.target.key not in {*proposal.moved, *proposal.resized}:
                self._send(change, proposal.pod, simulator, by_hand)
        is_created = self._workload.kind == "DaemonSet" and proposal.added is None  # by its controller
        if not is_patched and simulator.row(self._pod.key) is None and not is_created:
            self._put(proposal.pod, simulator)
        simulator.settle([*self._own_pending_pods(simulator), *ahead])
        decisions = simulator.queue.steps[mark.record.steps :]
        gone = {*proposal.deleted, *(key for step in decisions if step.key in ahead for key in step.victim_keys)}
        preempted: set[str] = set()
        if awaits_preemption(steps):  # it is meant to evict pods, for each pod of its own
            preempted = {key for step in decisions for key in step.victim_keys} - gone
        outcome = TrialOutcome(
            is_tried=True,
            shortfall=self._shortfall(simulator, before.pods, steps, sent, gone | preempted, ahead),
            preempted=len(preempted),
            replacements=tuple(self._replacements(simulator, before, steps)),
            budgets=tuple(self._budgets(before, steps)),
            left=self._without_node(simulator, before.pods),
        )
        if followers and outcome.shortfall is None:
            simulator.settle(followers)
            outcome = replace(outcome, deprived=tuple(key for key in followers if not _has_node(simulator, key)))
        simulator.revert(mark)
        return outcome

    @cached_property
    def _pods_ahead(self) -> Mapping[str, None]:
        """Pending pods of other workloads with a higher priority, which take the room of a fix first."""
        pods, own = self._snapshot.pods, self._own
        rows = [row for row in pods.pending if row not in own and int(pods.priorities[row]) > self._pod.priority]
        rows.sort(key=lambda row: -int(pods.priorities[row]))
        return dict.fromkeys(map(pods.key, rows[:_MOST_AHEAD]))

    def _competing_pods(self, sent: Sequence[Change]) -> Mapping[str, None]:
        """Return the pending pods of other workloads with the same priority that are in the queue for longer: all of
        them if the pod's Job is deleted and created again."""
        pods, own = self._snapshot.pods, self._own
        is_recreated = self._workload.kind == "Job" and self._patches(sent)
        own_row = None if is_recreated else pods.rows.get(self._pod.key)
        before = takewhile(lambda row: row != own_row, self._queue_of_equals)
        return dict.fromkeys(map(pods.key, islice((row for row in before if row not in own), _MOST_COMPETING)))

    @cached_property
    def _queue_of_equals(self) -> Sequence[int]:
        """The rows of the pending pods with the same priority, in the order in which the scheduler takes them."""
        pods, priority = self._snapshot.pods, self._pod.priority
        return self._simulator.queue.order(row for row in pods.pending if int(pods.priorities[row]) == priority)

    @cached_property
    def _followers(self) -> tuple[str, ...]:
        """Pending pods of other workloads that come later in the queue and get a node without a fix."""
        pods, own = self._snapshot.pods, self._own
        own_row, priority, simulator = pods.rows.get(self._pod.key), self._pod.priority, self._simulator
        least = priority if own_row is None else priority + 1  # a new pod is the last of its priority
        waiting = [row for row in pods.pending if int(pods.priorities[row]) < least]
        queue = simulator.queue.order(waiting)
        later = queue if own_row is None else queue[queue.index(own_row) + 1 :] if own_row in queue else []
        others: dict[int, list[str]] = {}
        for row in later:
            if row not in own:
                others.setdefault(int(pods.specs.codes[row]), []).append(pods.key(row))
        fitting = self._placed([keys[0] for keys in islice(others.values(), _MOST_COMPETING)])
        alike = (key for keys in others.values() if keys[0] in fitting for key in keys)
        return self._placed([*islice(alike, _MOST_COMPETING)])

    def _placed(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return those of the pending pods that get a node in the unchanged cluster, after the pods that come first."""
        if not keys:
            return ()
        simulator = self._simulator
        mark = simulator.mark()
        try:
            simulator.settle([*self._own_pending_pods(simulator), *self._pods_ahead, *keys])
        except (InputError, UndecidableError):
            self.__dict__.pop("_simulator")
            return ()
        placed = tuple(key for key in keys if _has_node(simulator, key))
        simulator.revert(mark)
        return placed

    @cached_property
    def _simulator(self) -> Simulator:
        """The simulator of all trials that change only nodes, pods, and workloads."""
        return Simulator(self._snapshot, self._setup, SimulationOptions())

    def _change_nodes(self, proposal: Proposal, steps: Sequence[FixStep], simulator: Simulator) -> None:
        cluster = simulator.run.cluster
        for row, node in proposal.nodes.items():
            cluster.replace_node(row, node)
        if proposal.added is None:
            return
        node = with_less_allocatable(proposal.added, proposal.taken)
        cluster.add_node(node)
        number = next((step.number for step in steps if isinstance(step, AddNode)), 1)
        for copy in range(2, number + 1):
            cluster.add_node(another_like(node, f"{node.name}-{copy}"))

    def _move(self, steps: Sequence[FixStep], simulator: Simulator) -> None:
        index, rows = simulator.run.cluster.snapshot.cluster.index, simulator.run.cluster.pods.rows
        for step in steps:
            if isinstance(step, MovePods):
                simulator.move(
                    (index[node], [rows[move.victim.pod] for move in moves])
                    for node, moves in step.moves_by_node().items()
                )

    # --- sending changes

    def _send(self, change: Change, pod: Pod, simulator: Simulator, by_hand: ClusterChanges) -> None:
        target = change.target
        workload = Workload(target.kind, target.namespace, target.name)
        if workload.kind == "Pod" and change.delete:
            if simulator.row(workload.key) is not None:
                by_hand.apply(_deletion(workload))
        elif workload.kind == "Pod":
            self._put(pod, simulator)
        elif workload.kind in workloads.SCALED and change.delete:
            by_hand.apply(_deletion(workload))
        elif workload == self._template_deployment:
            self._put(pod, simulator)
        elif workload == self._workload or workload.kind in workloads.SCALED:
            self._patch(workload, change, by_hand)
        elif target.kind not in _OF_THE_CLUSTER:
            self._put(pod, simulator)  # a custom resource, whose controller creates such a pod

    def _put(self, pod: Pod, simulator: Simulator) -> None:
        """Replace the existing pod by the pod as the fix changes it."""
        [row] = simulator.create(simulator.free_name(pod), [with_spec(pod, node_name="")])
        simulator.queue.is_first(row)

    def _patch(self, workload: Workload, change: Change, by_hand: ClusterChanges) -> None:
        stored = workloads.stored_manifest(by_hand.snapshot, workload)
        if stored is None and workload == self._workload:
            stored = workloads.stored_manifest(self._snapshot, workload)
        if stored is None:
            raise InputError(f"the cluster has no {workload.title}")
        manifest = apply_patch(dict(stored), change.patch)
        if workload.kind == "Job":  # what controls it creates it again with the change
            by_hand.discard(workload)
        self._apply(by_hand, manifest)

    def _apply(self, by_hand: ClusterChanges, manifest: Manifest | None) -> None:
        if manifest is not None:
            by_hand.apply(ClusterChange(verb=ChangeVerb.APPLY, text="", objects=((manifest, Place()),)))

    def _patches(self, sent: Sequence[Change]) -> bool:
        own = self._workload
        return own.kind != "Pod" and any((it.target.kind, it.target.name) == (own.kind, own.name) for it in sent)

    # --- outcomes of the pods

    def _own_pending_pods(self, simulator: Simulator) -> Iterator[str]:
        """Yield the keys of the pending pods of the pod's own workload."""
        pods = simulator.pods
        yield from (pods.key(row) for row in self._members(simulator) if pods.node[row] < 0)

    def _without_node(self, simulator: Simulator, before: PodTable) -> int:
        """Return how many of the workload's pods have no node, with those that a StatefulSet has not created yet, and
        pending pods that a rollout removes."""
        members, manifest = self._members(simulator), simulator.snapshot.manifest_of(self._workload)
        placed = [row for row in members if simulator.pods.node_names[row]]
        new = sum(row >= len(before) or bool(before.node[row] < 0) for row in placed)
        left = len(members) - len(placed)
        if manifest is not None and self._workload.kind == "Deployment":
            wanted, outdated = workloads.wanted_replicas(manifest), {*simulator.manager.outdated_rows(self._workload)}
            if len({*placed} - outdated) >= wanted:
                return 0  # also after a rollback, which removes the pending pods
            left = min(left, max(wanted - len(placed), 0))
        if manifest is not None and self._workload.kind == "StatefulSet":
            left += max(workloads.wanted_replicas(manifest) - len(members), 0)
        waited = sum(bool(self._snapshot.pods.node[row] < 0) for row in self._own)
        return max(left, waited - new)

    def _members(self, simulator: Simulator) -> list[int]:
        if self._workload.kind == "Pod":
            row = simulator.row(self._pod.key)
            return [] if row is None else [row]
        deleted = simulator.deleted
        return [row for row in simulator.manager.members(self._workload) if row not in deleted]

    @staticmethod
    def _replacements(simulator: Simulator, before: Snapshot, steps: Sequence[FixStep]) -> Iterator[ReplacementNodes]:
        """Yield the nodes of pods that controllers create. The pod that replaces an evicted one keeps its row."""
        owners, pods, rows = owners_in(before), simulator.pods, before.pods.rows
        by_controller = group_pairs(
            (victim.controller, rows[victim.pod])
            for step in steps
            if isinstance(step, DeletePods)
            for victim in step.victims
            if victim.controller
        )
        for controller, victims in by_controller.items():
            members = simulator.manager.members(owners.of(before.pods, victims[0]))
            its = (*victims, *(row for row in members if row >= len(before.pods)))
            created = [row for row in its if row not in simulator.deleted]
            nodes = tuple(pods.node_names[row] for row in created if pods.node[row] >= 0)
            if created:
                kind, _, name = controller.partition(" ")
                is_known = (kind, before.pods.namespaces[victims[0]], name) in before.workloads
                left = len(created) - len(nodes)
                yield ReplacementNodes(controller=controller, nodes=nodes, pending=left, is_assumed=not is_known)

    @staticmethod
    def _budgets(before: Snapshot, steps: Sequence[FixStep]) -> Iterator[BudgetUse]:
        """Yield the budgets of the pods that you delete: `kubectl delete` does not check budgets."""
        gone = {key for step in steps for key in _deleted_by_you(step)}
        rows = [row for key in gone if (row := before.pods.rows.get(key)) is not None]
        for budget in budgets_of(before, before) if rows else ():
            if any(budget.covers(before.pods, row) for row in rows):
                allowed = budget.current_status(before, before.pods, ()).allowed
                yield BudgetUse(budget=budget.name, allowed=max(allowed, 0))

    def _shortfall(
        self,
        simulator: Simulator,
        before: PodTable,
        steps: Sequence[FixStep],
        sent: Sequence[Change],
        expected: Set[str],
        ahead: Mapping[str, None],
    ) -> Shortfall | None:
        """`expected` are other pods that lose their nodes as the fix says, or whatever it does."""
        pods, workload, manager = simulator.pods, self._workload, simulator.manager
        members = self._members(simulator)
        pending = sum(bool(pods.node[row] < 0) for row in members)
        rollout, refused = manager.rollout_of(workload), manager.refused.get(workload)
        row = simulator.row(self._pod.key)
        if row is not None and row not in {*simulator.queue.queued, *simulator.queue.gated} and pods.node[row] < 0:
            return None  # no scheduler of the configuration schedules it
        its_own = [before.rows[key] for key in map(self._snapshot.pods.key, self._own) if key in before.rows]
        is_placed = row is not None and not self._patches(sent) and bool(pods.node[row] >= 0)
        if not is_placed and members:  # another pod of the workload may come first
            waited = sum(bool(before.node[row] < 0) for row in its_own)
            ran, runs = len(its_own) - waited, len(members) - pending
            is_new = not ran and workload.kind == "Deployment"  # whose rollout adds pending pods
            has_more = runs > ran and (is_new or len(its_own) < len(self._own))
            is_placed = pending < waited + (self._pod.key not in before.rows) or has_more
        if any(isinstance(step, TakeOldFirst) for step in steps):
            is_placed = is_placed and (rollout is None or not rollout.stalls)
        gone = np.flatnonzero((before.node >= 0) & (pods.node[: len(before)] < 0))
        own = {*members, *its_own}
        lost = tuple(
            key
            for row in gone.tolist()
            if row not in own and not before.deletion_timestamps[row] and (key := before.key(row)) not in expected
        )
        refusal = "" if rollout is None else rollout.refusal
        if refused is not None and self._patches(sent):
            refusal = refused.refusal
        if is_placed and not lost and not refusal:
            return None
        rows = () if is_placed else [row for key in ahead if (row := simulator.row(key)) is not None]
        first = tuple(pods.key(row) for row in rows if pods.node[row] >= 0)
        return Shortfall(pending=max(pending, 1), lost=lost, refusal=refusal, higher_priority=first)


def _has_node(simulator: Simulator, key: str) -> bool:
    row = simulator.row(key)
    return row is not None and bool(simulator.pods.node[row] >= 0)


def _deleted_by_you(step: FixStep) -> Iterator[str]:
    yield from (pod for pod, by in step.deletions() if not by)
    if isinstance(step, MovePods):
        yield from (move.victim.pod for move in step.moves)


_OF_THE_CLUSTER = (
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "DeviceClass",
    "DeviceTaintRule",
)


def _deletion(workload: Workload) -> ClusterChange:
    return ClusterChange(verb=ChangeVerb.DELETE, text=workload.reference)


def _workload_of(snapshot: Snapshot, pod: Pod) -> Workload:
    """Return the workload of a pod that the cluster does not have."""
    owner, metadata = template_owner(snapshot, pod), pod.metadata
    if owner is None:
        return Workload("Pod", metadata.namespace, metadata.name)
    return Workload(owner.kind, metadata.namespace, owner.name)

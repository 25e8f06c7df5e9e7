"""The search for fixes: the nodes to examine, the remedies to combine, and the successful ones to report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from operator import length_hint

from msgspec.structs import replace

from kschedx import findings as f
from kschedx.controllers.workloads import is_of_daemon_set
from kschedx.errors import UndecidableError
from kschedx.explain.kubelet import attached_elsewhere
from kschedx.explain.node_groups import account_of
from kschedx.fixes import steps as s
from kschedx.fixes.dead_end import MOST_RULES, NOTHING_TO_FIX, conditions_of, gate_of_controller
from kschedx.fixes.device_remedies import rows_of_drivers
from kschedx.fixes.eviction import moves, preemption, preemption_after_raise, taking_old_first
from kschedx.fixes.new_node import (
    copies_of_full_nodes,
    is_only_full,
    machines_without_nodes,
    nodes_of_a_pool,
    nodes_that_would_do,
    reserving_taints,
)
from kschedx.fixes.node_remedies import without_contradiction
from kschedx.fixes.node_requirements import are_all_of_control_plane
from kschedx.fixes.proposal import Proposal, apply_step, apply_steps
from kschedx.fixes.ranking import ClusterTest, TrialOutcome, TriedFix, fix_by, partial_fixes, verified_fixes
from kschedx.fixes.remedies import last_remedies, remedies
from kschedx.fixes.resource_remedies import rows_of_interest
from kschedx.fixes.trial import RemedyCandidate, Situation, state_after_attempt, try_proposal
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.grouping import group_pairs
from kschedx.kube.names import HOSTNAME
from kschedx.kube.selectors import terms_of
from kschedx.kube.types import UNREACHABLE, Node, Pod
from kschedx.progress import Phase, report_progress
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.daemon_sets import daemon_pods

_MOST_PLACES = 16  # groups of nodes in which a fix is tried, the nearest first
_MOST_TRIALS = 32
_FEWER_TRIALS = 12  # the most trials in a cluster of a thousand nodes or more, where each takes longer
_MOST_NEW_NODES = 12  # they are tried only if no other fix helps
_MOST_STARTS = 8  # situations for which a new node is tried
_OF_THE_NODE = plugins_with(Trait.ABOUT_THE_NODE)
"""Plugins that reject a node for its properties or its free resources: a new node may differ."""
_MOST_THROUGH = 3  # the most ways past PreFilter from which the search continues
_MOST_LARGER = 4  # the most nodes on which the last remedies are tried
_MOST_DEPTH = 5  # the most rounds of further steps before only a new node is tried
_MOST_WRONG = 50  # findings on a node for which remedies are tried
_SHARES = 1000  # parts in which progress is reported
_OPENS_NODES = s.DropRequirements | s.SelectInstead | s.SelectEither | s.Tolerate | s.TolerateInstead
"""Changes of the pod after which it may run on nodes whose labels or taints excluded it."""
_MOST_PREEMPTING = 2  # changes after which preemption is tried
_MOST_COMBINED = 24  # combinations of remedies that are tried on a node


def find_fixes(
    scheduler: Scheduler, cycle: Cycle, test: ClusterTest = lambda fix: TrialOutcome(), drained: Collection[str] = ()
) -> Iterator[TriedFix]:
    """Yield the fixes, cheapest first: changes of the pod, then of its surroundings, then of nodes. Every fix was
    tried. `test` tries a fix on the whole cluster, with every controller, once the fix is needed. No fix uncordons a
    drained node. A drained node that the cluster lacks was removed while the pod ran there."""
    may_be_fixed = cycle.outcome not in NOTHING_TO_FIX or cycle.outcome is Outcome.ERROR
    if may_be_fixed and conditions_of(cycle.pod.spec) <= MOST_RULES:
        yield from _Search(scheduler, cycle, test, drained).fixes()


def find_fix_by_autoscaler(
    scheduler: Scheduler, cycle: Cycle, pod: Pod, node: Node, autoscaler: str
) -> tuple[TriedFix, Situation] | None:
    """Return the fix in which an autoscaler adds a node like `node`, and the situation afterwards; None if the pod does
    not fit it. The pod then has the spec of `pod`."""
    daemons = daemon_pods(scheduler.snapshot, scheduler.nodes.options, but=cycle.pod)
    base = replace(state_after_attempt(cycle), pod=pod)
    try:
        start = try_proposal(scheduler, cycle.profile, base, cycle.refused, daemons)
        for step in nodes_of_a_pool(start, node):
            proposal = apply_step(step, base, start.snapshot)
            situation = try_proposal(scheduler, cycle.profile, proposal, cycle.refused, daemons)
            if step.node.name in situation.feasible:
                return fix_by(autoscaler, situation, cycle), situation
    except UndecidableError:
        pass
    return None


def _fewer_devices(step: s.AddNode) -> Iterator[s.AddNode]:
    """Yield the node without one kind of device, or with one device fewer of a kind."""
    for position, resource_slice in enumerate(step.slices):
        spec = resource_slice.spec
        kinds = group_pairs((repr(replace(device, name="")), device) for device in spec.devices)
        for kind, devices in kinds.items():
            others = [device for device in spec.devices if repr(replace(device, name="")) != kind]
            for kept in dict.fromkeys((0, len(devices) - 1)):
                left = (*others, *devices[:kept])
                slices = [replace(resource_slice, spec=replace(spec, devices=left))] if left else []
                yield replace(step, slices=(*step.slices[:position], *slices, *step.slices[position + 1 :]))


class _Search:
    """The trials of one pod: each proposal is tried once, and their number is limited."""

    def __init__(self, scheduler: Scheduler, cycle: Cycle, test: ClusterTest, drained: Collection[str]) -> None:
        self._test = test
        self._drained = [name for name in drained if name in scheduler.snapshot.cluster.index]
        self._is_node_removed = len(self._drained) < len(drained)
        self._scheduler = scheduler
        self._cycle = cycle
        self._most = _MOST_TRIALS if len(scheduler.nodes) < 1000 else _FEWER_TRIALS
        self._left = self._most
        self._daemons = daemon_pods(scheduler.snapshot, scheduler.nodes.options, but=cycle.pod)
        self._share = 0.0  # how far the search is, as far as that is known
        self._seen: set[str] = set()
        """The steps of all tried proposals, sorted, as text: some steps hold maps, which cannot be hashed."""

    def fixes(self) -> Iterator[TriedFix]:
        start = self._try(_without_gates(self._cycle))
        if start is None or (self._cycle.outcome is Outcome.ERROR and not _fails_on_a_device(start)):
            return
        if start.feasible:
            if any(
                isinstance(step, s.RemoveGates | s.NextAttempt) for step in start.proposal.steps
            ) and self._is_let_in(start):
                yield from verified_fixes([start], self._cycle, self._test, is_full=False)
            return
        situations = [start]
        starts = [start] if start.status.is_success else self._let_through(start)
        for situation in starts:
            situations += [situation] if situation is not start else []
            situations += [] if situation.feasible else self._alternatives(situation)
        starts += (corrected := [situation for situation in situations if _lacks_room_if_corrected(situation)])
        situations += [other for situation in corrected for other in self._alternatives(situation)]
        situations += self._preempting(situations)
        verified = [situation for situation in situations if situation.feasible]
        if not verified:
            deeper = list(self._deeper(situations))
            situations += deeper
            verified = [situation for situation in deeper if situation.feasible]
        if _needs_new_node(start, verified):
            verified += self._new_nodes(situations)
        if not verified or all(map(_replaces_lost_node, verified)) or _may_give_up_volume(start, verified):
            verified += self._last_resorts(situations)
        verified = [situation for situation in verified if self._is_let_in(situation)]
        if self._drained:  # the node with the data, or the one that the pod names, comes back
            verified = [situation for situation in verified if not self._gives_up_node(situation.proposal)]
        if verified:
            is_full = any(map(_lacks_room_alone, starts)) or self._is_for_drained(starts, verified)
            is_full = is_full and any(map(self._makes_room, verified))
            yield from verified_fixes(verified, self._cycle, self._test, is_full=is_full)
        else:
            partial = [situation for situation in situations[1:] if not self._gives_up_node(situation.proposal)]
            yield from partial_fixes(partial if self._drained else situations[1:], start, self._cycle)

    def _is_for_drained(self, starts: Sequence[Situation], verified: Sequence[Situation]) -> bool:
        """Whether a drained node meets every constraint of the pod, or its node was removed, and no other one is
        cordoned: the pod needs another node like it."""
        if self._is_node_removed:
            return True
        if any(isinstance(step, s.Uncordon) for step in _steps(verified)):
            return False
        return any(
            all(map(_is_of_cordon, group.exemplar.findings))
            and any(situation.nodes.names[row] in self._drained for row in group.rows)
            for situation in starts
            for group in situation.groups
        )

    def _gives_up_node(self, proposal: Proposal) -> bool:
        """Whether the proposal gives up data on a drained node, or lets the pod run on another node than it names."""
        dropped = (step for step in proposal.steps if isinstance(step, s.DropRequirements))
        return proposal.cost is s.Cost.DATA or any(
            requirement.key == HOSTNAME and self._drained_hosts.issuperset(requirement.values)
            for step in dropped
            for requirement in step.requirements
        )

    @cached_property
    def _drained_hosts(self) -> frozenset[str]:
        nodes = (node for node in self._scheduler.snapshot.cluster.nodes if node.name in self._drained)
        return frozenset(node.metadata.labels.get(HOSTNAME, node.name) for node in nodes)

    def _makes_room(self, situation: Situation) -> bool:
        """Whether the fix makes room: it adds a node, or moves other pods for a pod that its volume ties to a node.
        Moving does not count for a DaemonSet's pod, which outranks the pods on its node."""
        is_agent = is_of_daemon_set(self._cycle.pod.metadata.owner_references)
        return situation.proposal.added is not None or (bool(situation.proposal.moved) and not is_agent)

    def _is_let_in(self, situation: Situation) -> bool:
        """Whether PreEnqueue admits a pod to the queue that it kept out before: filters alone do not show that."""
        if self._cycle.outcome is not Outcome.GATED:
            return True
        return situation.is_admitted_to_queue()

    def _try(self, proposal: Proposal) -> Situation | None:
        """Return the situation after the proposal. None if it was tried already, is undecidable, takes back a drain, or
        changes a node that does not exist yet."""
        if any(row >= len(self._scheduler.nodes) for row in proposal.nodes):
            return None
        if any(isinstance(step, s.Uncordon) and step.node in self._drained for step in proposal.steps):
            return None
        key = repr(sorted(map(repr, proposal.steps)))
        if key in self._seen:
            return None
        self._seen.add(key)
        try:
            situation = try_proposal(self._scheduler, self._cycle.profile, proposal, self._cycle.refused, self._daemons)
        except UndecidableError:
            return None
        if situation.feasible and all(
            any(attached_elsewhere(situation.snapshot, situation.pod, name)) for name in situation.feasible
        ):
            return None
        return situation if _fits_its_nodes(situation) else None

    def _all(self, proposals: Iterable[Proposal]) -> Iterator[Situation]:
        before, expected = self._share, max(min(length_hint(proposals, self._left), self._left), 1)
        for number, proposal in enumerate(proposals):
            if self._left <= 0:
                return
            # other proposals may follow, so these fill half of the rest
            self._share = before + (1 - before) * min(number / expected, 1) / 2
            report_progress(Phase.TRYING_FIXES, int(_SHARES * self._share), _SHARES)
            situation = self._try(proposal)
            if situation is not None:
                self._left -= 1
                yield situation

    def _let_through(self, start: Situation) -> list[Situation]:
        """Situations in which PreFilter no longer rejects the pod before its nodes are filtered, cheapest first."""
        waiting = [start]
        for _ in range(_MOST_DEPTH):
            proposals = [
                proposal
                for situation in waiting
                for place, findings in _places(situation)
                for proposal in islice(_node_proposals(_ways(findings, place), situation), _MOST_THROUGH)
            ]
            waiting = list(self._all(sorted(proposals, key=lambda it: it.cost)))
            if through := [situation for situation in waiting if situation.status.is_success]:
                return through[:_MOST_THROUGH]
        return [start]

    def _alternatives(self, start: Situation) -> Iterator[Situation]:
        """Yield every way to fix all problems on one node, cheapest first; then single steps."""
        self._left = self._most
        rollout = (apply_steps(steps, start.proposal, start.snapshot) for steps in taking_old_first(start))
        more = [*copies_of_full_nodes(start)] or machines_without_nodes(start)
        room = (apply_step(step, start.proposal, start.snapshot) for step in (*more, *moves(start)))
        first = (*preemption(self._cycle, start), *preemption_after_raise(self._cycle, start), *rollout, *room)
        whole = [((-1, len(proposal.steps), -1), proposal) for proposal in first]
        single: list[Proposal] = []
        for number, (place, findings) in enumerate(_places(start, self._drained)):
            groups = _ways(findings, place)
            whole += [((it.cost, len(it.steps), number), it) for it in _node_proposals(groups, start)]
            if len(groups) > 1:
                single += [apply_step(step, start.proposal, start.snapshot) for group in groups for step in group]
            if number < _MOST_LARGER and not all(groups):
                # these problems would have to be fixed on any other node too
                single.append(apply_steps((group[0] for group in groups if group), start.proposal, start.snapshot))
        yield from self._all([proposal for _, proposal in sorted(whole, key=lambda item: item[0])])
        yield from self._all(single)

    def _preempting(self, situations: Sequence[Situation]) -> Iterator[Situation]:
        """Yield situations in which a pod that may run on other nodes, where it lacks only room, preempts pods of lower
        priorities there."""
        if not (self._scheduler.snapshot.pods.priorities < self._cycle.pod.priority).any():
            return
        opened = (
            situation
            for situation in situations
            if (steps := situation.proposal.steps)
            and all(isinstance(step, _OPENS_NODES) for step in steps)
            and _lacks_room_if_changed(situation)
        )
        for situation in islice(opened, _MOST_PREEMPTING):
            if (then := situation.decide()) is not None:
                yield from self._all([*preemption(then, situation)])

    def _deeper(self, situations: Sequence[Situation]) -> Iterator[Situation]:
        """Yield situations with remedies for problems that a step revealed as well: a claim that now exists needs a
        volume."""
        self._left = max(self._left, _MOST_TRIALS // 2)
        waiting = list(situations[1:])
        for _ in range(_MOST_DEPTH):
            following: list[Situation] = []
            for closest in sorted(waiting, key=lambda it: (len(it.rejections_by_plugin), it.proposal.cost))[:4]:
                proposals = [
                    proposal
                    for place, findings in islice(_places(closest), 3)
                    for proposal in islice(_node_proposals(_ways(findings, place), closest), 6)
                ]
                for situation in self._all(sorted(proposals, key=lambda it: it.cost)):
                    yield situation
                    if situation.feasible:
                        return
                    following.append(situation)
            waiting = following

    def _new_nodes(self, situations: Sequence[Situation]) -> Iterator[Situation]:
        """Yield the node that would fit, for the pod as it is or with the fewest changes after which nodes are
        filtered."""
        first = situations[0]
        ready = [situation for situation in situations[1:] if situation.status.is_success]
        ready.sort(
            key=lambda situation: (
                len(situation.rejections_by_plugin.keys() - _OF_THE_NODE),
                situation.proposal.cost,
                len(situation.proposal.steps),
            )
        )
        freer = [
            apply_step(step, situation.proposal, situation.snapshot)
            for situation in (first, *ready[:1])
            for step in (*_nameless(situation.pod), *without_contradiction(situation))
        ]
        if (in_pool := self._in_pool_of_devices(ready)) is not None:
            yield in_pool
            return
        ready = [*self._all(freer), *ready]
        for start in (first, *ready)[:_MOST_STARTS]:
            self._left = _MOST_NEW_NODES
            proposals = (apply_step(step, start.proposal, start.snapshot) for step in nodes_that_would_do(start))
            seen: list[Situation] = []
            for one_more in self._all(proposals):
                seen.append(one_more)
                if one_more.feasible:
                    yield self._with_fewer_devices(one_more, start)
                    return
            for shown in seen[:2]:
                self._left = _MOST_NEW_NODES
                situation = self._with_new_node(shown)
                if situation is not None:
                    yield self._with_fewer_devices(situation, start)
                    return

    def _in_pool_of_devices(self, opened: Iterable[Situation]) -> Situation | None:
        """Return the situation with another node like a full one whose taint has the name of a resource that the pod
        requests, and is meant to be tolerated by such pods."""
        for start in opened:
            taints = [taint for step in start.proposal.steps if isinstance(step, s.Tolerate) for taint in step.taints]
            if taints and len(start.proposal.steps) == 1 and all(taint.key in start.requested for taint in taints):
                self._left = _MOST_NEW_NODES
                copies = (apply_step(step, start.proposal, start.snapshot) for step in copies_of_full_nodes(start))
                return next((situation for situation in self._all(copies) if situation.feasible), None)
        return None

    def _with_new_node(self, start: Situation) -> Situation | None:
        """Return the situation with what the new node needs besides, step by step: a claim for the pod, and a volume
        that the node can reach."""
        waiting = [start]
        for _ in range(_MOST_DEPTH):
            following: list[Situation] = []
            for waiting_situation in waiting:
                for situation in self._all(_added_node_proposals(waiting_situation)):
                    if situation.feasible:
                        return situation
                    following.append(situation)
            waiting = sorted(following, key=lambda it: (len(it.rejections_by_plugin), it.proposal.cost))[:2]
        return None

    def _last_resorts(self, situations: Sequence[Situation]) -> Iterator[Situation]:
        """Yield a last fix, if no other node would fit: an existing node enlarged, or a claim without its data."""
        cheapest = sorted(situations, key=lambda situation: (situation.proposal.cost, len(situation.proposal.steps)))
        for start in cheapest[:_MOST_STARTS]:
            self._left = _MOST_NEW_NODES
            proposals = [
                proposal
                for place, findings in islice(_places(start), _MOST_LARGER)
                for proposal in _node_proposals(last_remedies(findings, place), start)
            ]
            seen = list(self._all(sorted(proposals, key=lambda proposal: proposal.cost)))
            found = [*islice((it for it in (*seen, *self._deeper([start, *seen])) if it.feasible), 1)]
            if found:
                yield from found
                return

    def _with_fewer_devices(self, situation: Situation, start: Situation) -> Situation:
        """Return the same situation with the fewest devices on the new node that suffice."""
        at = len(start.proposal.steps)
        for _ in range(_MOST_NEW_NODES):
            step, *after = situation.proposal.steps[at:]
            if not isinstance(step, s.AddNode) or not step.slices:
                break
            self._left = _MOST_NEW_NODES
            less = (apply_steps((device, *after), start.proposal, start.snapshot) for device in _fewer_devices(step))
            smaller = next((situation for situation in self._all(less) if situation.feasible), None)
            if smaller is None:
                break
            situation = smaller
        return situation


def _replaces_lost_node(situation: Situation) -> bool:
    """Whether the fix adds a node under the host name of one that is gone: its data may be gone too."""
    added = situation.proposal.added
    return added is not None and added.metadata.labels.get(HOSTNAME, added.name) not in (added.name, "")


def _nameless(pod: Pod) -> Iterator[s.FixStep]:
    """Yield steps that remove node names from the pod, which no new node has."""
    names_nodes = any(term.match_fields for term in terms_of(pod.spec.required_node_affinity))
    if names_nodes and not is_of_daemon_set(pod.metadata.owner_references):
        yield s.DropNodeNames()
    if (name := pod.spec.node_selector.get(HOSTNAME)) is not None:
        wanted = f.RequirementMatch.unmatched(HOSTNAME, "=", (name,))
        yield s.DropRequirements(source="nodeSelector", term=0, requirements=(wanted,))


def _without_gates(cycle: Cycle) -> Proposal:
    """Return the proposal from which the search starts: the pod without gates."""
    base = state_after_attempt(cycle)
    gates = tuple(gate.name for gate in cycle.pod.spec.scheduling_gates)
    if cycle.outcome is not Outcome.GATED or not gates:
        return base
    kept = gate_of_controller(gates)
    step = s.RemoveGates(gates=gates) if kept is None else s.AwaitController(gates=gates, controller=kept[1])
    return apply_step(step, base, cycle.snapshot)


def _fits_its_nodes(situation: Situation) -> bool:
    """Whether the pod fits all nodes that the steps name, if it fits at all: otherwise it fits for another reason."""
    named = frozenset[str]().union(*(step.nodes for step in situation.proposal.steps))
    return not situation.feasible or named <= set(situation.feasible)


# --- nodes to examine


def _places(
    situation: Situation, drained: Collection[str] = ()
) -> Iterator[tuple[RemedyCandidate, tuple[f.Finding, ...]]]:
    """Yield the nearest node of each group with all its findings, nearest group first; a drained node only if its
    group has no other."""
    if situation.status.is_success:
        nodes = situation.nodes
        for group in situation.groups[:_MOST_PLACES]:
            row, findings = group.exemplar.row, group.exemplar.findings
            if nodes.names[row] in drained:
                row = next((other for other in group.rows if nodes.names[other] not in drained), row)
                findings = account_of(nodes, situation.outcome, row).findings
            yield RemedyCandidate(situation=situation, nodes=nodes, row=row), findings
        yield from _distinct_nodes(situation)
    elif len(situation.scheduler.nodes):
        # rejected before any node was filtered: the fix for a finding about the pod is the same on every node
        place = RemedyCandidate(situation=situation, nodes=situation.scheduler.nodes, row=TableRow(0))
        yield place, tuple(dict.fromkeys(situation.status.findings))


def _distinct_nodes(situation: Situation) -> Iterator[tuple[RemedyCandidate, tuple[f.Finding, ...]]]:
    """Yield nodes that differ from others of their group."""
    nodes = situation.nodes
    for of_cluster in (*rows_of_interest(situation), *rows_of_drivers(situation)):
        row = nodes.row_of(of_cluster)
        if row is not None:
            place = RemedyCandidate(situation=situation, nodes=nodes, row=row)
            yield place, account_of(nodes, situation.outcome, row).findings


def _ways(findings: Sequence[f.Finding], place: RemedyCandidate) -> tuple[tuple[s.FixStep, ...], ...]:
    return () if len(findings) > _MOST_WRONG else remedies(findings, place)


def _node_proposals(groups: Sequence[Sequence[s.FixStep]], situation: Situation) -> Iterator[Proposal]:
    """Yield proposals that fix all problems of a node."""
    if not groups or not all(groups):
        return
    for steps in islice(product(*groups), _MOST_COMBINED):
        done = apply_steps(steps, situation.proposal, situation.snapshot)
        if done.added is None or len(done.steps) == 1:  # a new node with other steps is not like the old one
            yield done


def _lacks_room_alone(situation: Situation) -> bool:
    """Whether some node meets every constraint of the pod and is only full or too small, or away from the zone of its
    volume, where another such node helps."""
    return any(
        is_only_full(finding for finding in group.exemplar.findings if not _is_in_other_zone(finding))
        for group in situation.groups
    )


def _lacks_room_if_corrected(situation: Situation) -> bool:
    """Whether the proposal only corrects a misspelling, after which the pod lacks nothing but room."""
    is_correction = {step.cost for step in situation.proposal.steps} == {s.Cost.TYPO}
    return is_correction and _lacks_room_if_changed(situation)


def _lacks_room_if_changed(situation: Situation) -> bool:
    """Whether the pod lacks nothing but room after the proposal."""
    return situation.status.is_success and not situation.feasible and _lacks_room_alone(situation)


def _fails_on_a_device(situation: Situation) -> bool:
    """Whether the attempt ends with an error because of a selector for devices, which can be corrected."""
    return any(isinstance(finding, f.DeviceSelectorFailed) for finding in situation.findings)


def _is_of_cordon(finding: f.Finding) -> bool:
    is_taint = isinstance(finding, f.UntoleratedTaint) and finding.comes_with_cordon
    return is_taint or isinstance(finding, f.NodeUnschedulable)


def _is_in_other_zone(finding: f.Finding) -> bool:
    """Whether the node is not in the zone or region of the pod's volume, rather than not the node of its disk."""
    required = (
        finding.terms[0].requirements if isinstance(finding, f.VolumeNodeAffinityMismatch) and finding.terms else ()
    )
    return bool(required) and all(requirement.key != HOSTNAME for requirement in required)


def _needs_new_node(start: Situation, verified: Sequence[Situation]) -> bool:
    """Whether to try new nodes: no better fix is known, the nearest node is too small for the pod even when it is
    empty, or no node is meant for workloads."""
    costs = [situation.proposal.cost for situation in verified]
    if s.Cost.NEW_NODE in costs:
        return False
    if are_all_of_control_plane(iter(start.snapshot.cluster.nodes)) or _is_tied_to_reserved_nodes(start, verified):
        return True
    short = (finding for group in start.groups[:1] for finding in group.exemplar.findings)
    never = any(isinstance(finding, f.InsufficientResource) and finding.never_fits for finding in short)
    cheapest = min(costs, default=s.Cost.DATA)
    if cheapest is s.Cost.REPAIR and any(map(_repairs_unreachable, verified)):
        return True  # a node that is gone for good is replaced
    if cheapest is s.Cost.POD and next(reserving_taints(start), ""):
        return True  # the pod may not be meant for any of these nodes
    if cheapest is s.Cost.LABEL and any(isinstance(it, s.LabelNode) and it.pool for it in _steps(verified)):
        return True  # the pod's own node pool may be at zero, or does not exist
    return never or cheapest in (s.Cost.REQUEST, s.Cost.CONSTRAINT) or cheapest > s.Cost.NEW_NODE


def _repairs_unreachable(situation: Situation) -> bool:
    repaired = (step for step in situation.proposal.steps if isinstance(step, s.RepairNode))
    return any(fault.taint.key == UNREACHABLE for step in repaired for fault in step.faults)


def _is_tied_to_volume(start: Situation) -> bool:
    return any(isinstance(finding, f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch) for finding in start.findings)


def _is_tied_to_reserved_nodes(start: Situation, verified: Sequence[Situation]) -> bool:
    """Whether the pod's volume is accessible only from nodes whose taints the pod does not tolerate."""
    steps = _steps(verified)
    return _is_tied_to_volume(start) and all(isinstance(step, s.Tolerate | s.RemoveTaints) for step in steps)


def _steps(situations: Iterable[Situation]) -> Iterator[s.FixStep]:
    return (step for situation in situations for step in situation.proposal.steps)


def _may_give_up_volume(start: Situation, verified: Sequence[Situation]) -> bool:
    """Whether each fix gives up a constraint of the pod that contradicts the place of its volume, or adds a node
    although the class of the volume chose its place without the pod."""
    storage = start.snapshot.storage
    tied = (it.claim for it in start.findings if isinstance(it, f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch))
    classes = (storage.classes.get(claim.storage_class) for it in tied if (claim := storage.claims.get(it)))
    is_early = any(it is not None and it.provisions_first for it in classes)
    given_up = (s.Cost.CONSTRAINT, s.Cost.NEW_NODE) if is_early else (s.Cost.CONSTRAINT,)
    return _is_tied_to_volume(start) and all(it.proposal.cost in given_up for it in verified)


def _added_node_proposals(situation: Situation) -> Iterator[Proposal]:
    """Yield proposals with remedies for everything that keeps the pod off the new node."""
    added = situation.proposal.added
    is_about_pod = not situation.status.is_success
    nodes = situation.scheduler.nodes if is_about_pod else situation.nodes
    if added is None or added.name not in nodes.names:
        return
    row = TableRow(nodes.names.index(added.name))
    findings = situation.status.findings if is_about_pod else account_of(nodes, situation.outcome, row).findings
    place = RemedyCandidate(situation=situation, nodes=nodes, row=row)
    for steps in islice(product(*_ways(tuple(dict.fromkeys(findings)), place)), _MOST_COMBINED):
        if steps and not any(isinstance(step, s.AddNode) for step in steps):
            yield apply_steps(steps, situation.proposal, situation.snapshot)

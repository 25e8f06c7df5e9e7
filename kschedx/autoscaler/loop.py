"""One loop of the cluster-autoscaler over a snapshot: what it would do, and why.

Upstream: RunOnce in core/static_autoscaler.go, ScaleUp in core/scaleup/orchestrator/orchestrator.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.types import AUTOSCALER_PRIORITIES, Node, Pod
from kschedx.autoscaler import events
from kschedx.autoscaler.counted import is_countable, verdict_alone
from kschedx.autoscaler.estimate import (
    NOTHING,
    CountingBins,
    Estimate,
    Estimator,
    WorldBins,
    node_limit,
    ordered_kinds,
    renamed,
)
from kschedx.autoscaler.expanders import Option, choose
from kschedx.autoscaler.fast_path import best_for_fast_path
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.groups import (
    Group,
    GroupOfNode,
    NodeState,
    cluster_is_healthy,
    groups_of,
    node_states,
)
from kschedx.autoscaler.kinds import PodKinds
from kschedx.autoscaler.limits import Limits, LoopError, Machines, skip_reasons
from kschedx.autoscaler.pods import (
    Arranged,
    Outcome,
    are_all_new,
    arrange,
    asks_for_gpu,
    is_expendable,
    old_enough,
    without_place,
)
from kschedx.autoscaler.sizes import Resize, Similarity, resized, similar_groups
from kschedx.autoscaler.status import AutoscalerStatus
from kschedx.autoscaler.templates import CloudTemplate, Template, TemplateMaker, choose_templates, daemon_sets
from kschedx.autoscaler.world import NewNode, Seen, Verdict, World, world_of
from kschedx.framework.runtime import Framework, request_options
from kschedx.framework.status import Status
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow


class Result(StrEnum):
    """How the loop ends."""

    SUCCESSFUL = "ScaleUpSuccessful"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    AT_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"
    IN_COOLDOWN = "ScaleUpInCooldown"
    ERROR = "ScaleUpError"
    NOT_TRIED = "ScaleUpNotTried"


class GroupAnswer(Struct, frozen=True, kw_only=True):
    """A group, the template of its nodes, and why it is left out, if it is."""

    group: Group
    template: Template | None
    skipped: tuple[str, ...] = ()


class PodAnswer(Struct, frozen=True, kw_only=True):
    """What the loop makes of a pending pod."""

    row: int
    outcome: Outcome
    node: str = ""
    """Where a schedulable pod fits."""
    is_on_upcoming: bool = False
    verdicts: Mapping[str, Verdict] = {}
    """Of a considered pod, each group with a template to the check of the pod on it."""
    remains: bool = False
    """The autoscaler counts it among those that it cannot help."""
    parts: tuple[str, ...] = ()
    """What follows `pod didn't trigger scale-up: `."""
    is_told: bool = False
    """The event NotTriggerScaleUp is really sent."""


class Choice(Struct, frozen=True, kw_only=True):
    """What follows when an option is taken."""

    option: Option
    result: Result
    resizes: tuple[Resize, ...] = ()
    triggered: tuple[int, ...] = ()
    """Rows of the pods of the option, which get the event TriggeredScaleUp."""
    awaiting: tuple[int, ...] = ()
    """Pods that fit other groups only: the next loop is theirs."""
    event: str = ""
    error: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """The whole loop."""

    result: Result
    groups: tuple[GroupAnswer, ...]
    pods: tuple[PodAnswer, ...]
    """Every pending pod in list order."""
    error: str = ""
    options: tuple[Option, ...] = ()
    choices: tuple[Choice, ...] = ()
    """One for each option that is left after the expanders; of several one is taken at random."""
    events: tuple[str, ...] = ()
    """About the autoscaler itself."""
    unknown_expanders: tuple[str, ...] = ()


class Setup(Struct, frozen=True, kw_only=True):
    """What a loop goes by."""

    framework: Framework
    """The scheduler's one profile on the cluster's snapshot."""
    group_of: GroupOfNode
    status: AutoscalerStatus
    cloud: Mapping[str, CloudTemplate]
    flags: Flags
    behaviour: AutoscalerBehaviour
    now: int
    """Nanoseconds since 1970."""
    counts: bool = True
    """Estimates are made by counting, where that comes to the same."""


class Loop:
    """Runs once; afterwards it can be asked about its pods."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._flags = setup.flags
        self._behaviour = setup.behaviour
        self._snapshot = setup.framework.snapshot
        self._pods: PodTable = self._snapshot.pods
        self._nodes: Sequence[Node] = self._snapshot.cluster.nodes
        self._options = request_options(setup.framework.release)
        self._kinds = PodKinds(self._pods)
        self._answers: dict[int, PodAnswer] = {}
        self._events: list[str] = []
        self._skipped: dict[str, tuple[str, ...]] = {}
        self._seen: dict[int, dict[str, Seen]] = {}
        """Of a considered pod, what was found on the template of each group."""

    # --- the state at the beginning

    @property
    def now(self) -> int:
        """Nanoseconds since 1970."""
        return self._setup.now

    @cached_property
    def states(self) -> tuple[NodeState, ...]:
        """Every node of the snapshot as the autoscaler sees it."""
        return node_states(self._nodes, self._setup.group_of, self._flags, self._behaviour, self._setup.now)

    @cached_property
    def _arranged(self) -> Arranged:
        return arrange(self._pods, self._snapshot.cluster.index.__contains__, self._flags, self._behaviour)

    @cached_property
    def _expendable(self) -> list[int]:
        """Rows of pods on nodes that count as free room."""
        low = self._pods.priorities < self._flags.expendable_pods_priority_cutoff
        rows = np.flatnonzero(low & (self._pods.node >= 0)).tolist()
        return [row for row in rows if is_expendable(self._pods, row, self._flags)]

    @cached_property
    def _nominations(self) -> dict[int, ClusterRow]:
        """Nominated pods to the nodes that they take room on."""
        index = self._snapshot.cluster.index
        return {
            row: index[self._pods.nominated_node_names[row]]
            for row in self._arranged.nominated
            if self._pods.nominated_node_names[row] in index and not is_expendable(self._pods, row, self._flags)
        }

    @cached_property
    def _templates(self) -> dict[str, Template]:
        release = self._setup.framework.release
        maker = TemplateMaker(
            flags=self._flags,
            behaviour=self._behaviour,
            daemon_sets=daemon_sets(self._snapshot),
            options=self._options,
            compares_taints=release.enabled("TaintTolerationComparisonOperators"),
        )
        names = [status.name for status in self._setup.status.groups]
        wanted = set(names)
        examples = [
            (state, node) for state, node in zip(self.states, self._nodes, strict=True) if state.group in wanted
        ]
        return choose_templates(maker, names, examples, self._pods_on, self._setup.cloud, self._setup.now)

    def rows_on(self, node: ClusterRow) -> list[int]:
        """Rows of the pods that count on a node of the snapshot."""
        gone = set(self._expendable)
        rows = [int(row) for row in self._pods.on_node(node) if int(row) not in gone]
        if self._behaviour.nominated_pods_are_placed:
            rows += [row for row, place in self._nominations.items() if place == node]
        return rows

    def _pods_on(self, node: ClusterRow) -> list[Pod]:
        return [self._pods[row] for row in self.rows_on(node)]

    @cached_property
    def _groups(self) -> tuple[Group, ...]:
        return groups_of(self._setup.status.groups, self.states, self._templates.__contains__, self._behaviour)

    @cached_property
    def _by_name(self) -> dict[str, Group]:
        return {group.name: group for group in self._groups}

    # --- the loop

    def run(self) -> Answer:
        if not self._flags.scale_up_from_zero and not any(state.is_usable for state in self.states):
            what = "ready nodes" if self._nodes else "nodes"
            return self._not_tried(f"Warning ClusterUnhealthy: Cluster has no {what}.")
        if not cluster_is_healthy(self.states, self._flags):
            return self._not_tried(events.CLUSTER_UNHEALTHY)
        self._world = world = self._begin()
        waiting = self._waiting(world)
        for row in waiting:
            self._answers[row] = PodAnswer(row=row, outcome=Outcome.CONSIDERED)
        if not waiting:
            return self._ended(Result.NOT_NEEDED)
        usable = sum(state.is_usable for state in self.states)
        if 0 < self._flags.max_nodes_total <= usable:
            self._events.append(events.max_nodes_total_reached(self._flags.max_nodes_total))
            if self._behaviour.max_nodes_total_is_told:
                for row in waiting:
                    self._tell(row, (events.AT_MAX_NODES_TOTAL,), is_told=True)
            return self._ended(Result.AT_MAX_NODES_TOTAL)
        if not self._flags.bypassed_schedulers and are_all_new(
            self._pods, waiting, self._asks_for_gpu, self._setup.now
        ):
            for row in waiting:
                self._answers[row] = PodAnswer(row=row, outcome=Outcome.ALL_NEW)
            return self._ended(Result.IN_COOLDOWN)
        for row, verdicts in self._checked(world, waiting).items():
            self._answers[row] = PodAnswer(row=row, outcome=Outcome.CONSIDERED, verdicts=verdicts)
        return self._scale_up(world, waiting, usable)

    def _not_tried(self, event: str) -> Answer:
        self._events.append(event)
        for row in self._pods.pending:
            listed = self._arranged.passed_over.get(row, Outcome.NOT_LOOKED_AT)
            outcome = Outcome.NOT_LOOKED_AT if listed is Outcome.EXPENDABLE else listed
            self._answers[row] = PodAnswer(row=row, outcome=outcome)
        return self._ended(Result.NOT_TRIED)

    def _begin(self) -> World:
        """The snapshot that the loop plays with, upcoming nodes included."""
        coming = [group for group in self._groups if group.upcoming > 0]
        started = {node.row for group in coming for node in group.not_started}
        kept = [row for row in map(ClusterRow, range(len(self._nodes))) if row not in started]
        prototypes = [pod for template in self._templates.values() for pod in template.pods]
        first = len(self._pods)
        self._new_nodes: dict[str, NewNode] = {}
        for name, template in self._templates.items():
            rows = tuple(range(first, first + len(template.pods)))
            first += len(rows)
            self._new_nodes[name] = NewNode(node=template.node, pods=rows)
        upcoming: list[tuple[str, NewNode]] = []
        for group in coming:
            if group.name in self._new_nodes:
                new = self._new_nodes[group.name]
                upcoming += [(group.name, renamed(new, f"{new.node.name}-upcoming-{i}")) for i in range(group.upcoming)]
        world, rows_of = world_of(
            self._setup.framework,
            kept,
            [new for _, new in upcoming],
            prototypes,
            self._nominations,
            np.array(self._expendable, dtype=np.int64),
            names_count=self._behaviour.pre_filter_leaves_nodes_out,
        )
        self._rows_of = rows_of
        self._real = len(rows_of)
        """Nodes of the world below this row are nodes of the snapshot, the others upcoming ones."""
        self._group_of_row = [self.states[row].group for row in kept] + [name for name, _ in upcoming]
        return world

    def settled(self) -> tuple[World, Mapping[ClusterRow, ClusterRow]]:
        """The cluster with what waits put where there is room, before any node is added; rows of the snapshot's nodes
        to those of the world's."""
        world = self._begin()
        self._waiting(world)
        return world, self._rows_of

    def _waiting(self, world: World) -> tuple[int, ...]:
        """The pods that the autoscaler wants to help, in its order; all others get their answers."""
        for row, outcome in self._arranged.passed_over.items():
            self._answers[row] = PodAnswer(row=row, outcome=outcome)
        for row in self._arranged.nominated:
            self._answers[row] = PodAnswer(row=row, outcome=Outcome.NOMINATED)
        left, placed = without_place(world, self._pods, self._arranged.unschedulable, self._kinds)
        for row, node in placed.items():
            self._answers[row] = PodAnswer(
                row=row,
                outcome=Outcome.SCHEDULABLE,
                node=world.node(node).name,
                is_on_upcoming=node >= self._real,
            )
        waiting = []
        for row in left:
            if self._kinds.is_of_daemon_set(row):
                self._answers[row] = PodAnswer(row=row, outcome=Outcome.DAEMON_SET)
            elif not old_enough(self._pods, row, self._flags, self._setup.now):
                self._answers[row] = PodAnswer(row=row, outcome=Outcome.TOO_YOUNG)
            else:
                waiting.append(row)
        return tuple(waiting)

    def _asks_for_gpu(self, row: int) -> bool:
        return asks_for_gpu(self._pods.requests(self._options)[row].amounts)

    def _checked(self, world: World, rows: Sequence[int]) -> dict[int, dict[str, Verdict]]:
        """Each pod against each group's template in the cluster as it is, before any packing.

        A template sees no other: they are all there at once, and what they bring is not counted for the others.
        """
        alike: dict[object, list[int]] = {}
        for row in rows:
            alike.setdefault(self._kinds.identity(row), []).append(row)
        self._seen = {}
        found: dict[int, dict[str, Verdict]] = {}
        with world.fork():
            new = world.bring(list(self._new_nodes.values()))
            for members in alike.values():
                looked = world.look(members[0], new) if new else ()
                seen = dict(zip(self._new_nodes, looked, strict=True))
                verdicts = {group: verdict_alone(one) for group, one in seen.items()}
                for row in members:
                    self._seen[row], found[row] = seen, verdicts
        return found

    def rejections(self, row: int) -> dict[str, tuple[Status, ...]]:
        """After the loop: each group with a template to every plugin that rejects the pod there, in order."""
        found = {}
        for group, new in self._new_nodes.items():
            with self._world.fork():
                found[group] = self._world.rejections(row, self._world.add(new))
        return found

    # --- scale-up

    def _scale_up(self, world: World, waiting: Sequence[int], usable: int) -> Answer:
        upcoming = sum(group.upcoming for group in self._groups)
        current = world.node_count if self._behaviour.counts_nodes_of_snapshot else usable + upcoming
        for group in self._groups:
            if group.upcoming > 0 and group.name not in self._templates:
                return self._failed(
                    waiting,
                    f"could not get upcoming nodes: failed to find template node for node group {group.name}",
                )
        try:
            limits = self._limits(world)
        except LoopError as error:
            return self._failed(waiting, str(error))
        for group in self._groups:
            reasons = skip_reasons(group, self._templates.get(group.name), limits, self._behaviour)
            if reasons:
                self._skipped[group.name] = reasons
        kinds = self._kinds.groups(waiting)
        fitting = {
            group.name: [i for i, kind in enumerate(kinds) if self._verdict(kind[0], group.name).fits]
            for group in self._groups
            if group.name not in self._skipped
        }
        options = [
            option for name in fitting if (option := self._option(world, name, kinds, fitting, current)) is not None
        ]
        helped = {i for some in fitting.values() for i in some}
        for i, kind in enumerate(kinds):
            if i not in helped:
                for row in kind:
                    self._tell(row, self._parts(kind[0]), is_told=not options)
        if not options:
            return self._ended(Result.NO_OPTIONS)
        nodes = {name: template.node for name, template in self._templates.items()}
        chosen = choose(options, self._flags.expanders, nodes, self._snapshot.config_maps.get(AUTOSCALER_PRIORITIES))
        self._events += chosen.events
        choices = [self._choice(option, kinds, fitting, current, limits) for option in chosen.options]
        if not choices:
            return self._filtered_out(kinds, helped, options)
        return self._ended(
            choices[0].result,
            error=choices[0].error,
            options=tuple(options),
            choices=tuple(choices),
            unknown_expanders=chosen.unknown,
        )

    def _failed(self, waiting: Sequence[int], error: str) -> Answer:
        """An error before any group is looked at."""
        if self._behaviour.failures_are_told:
            for row in waiting:
                self._tell(row, (), is_told=False)
        return self._ended(Result.ERROR, error=error)

    def _filtered_out(self, kinds: Sequence[tuple[int, ...]], helped: set[int], options: Sequence[Option]) -> Answer:
        """The expanders left no option."""
        for i in sorted(helped) if self._behaviour.failures_are_told else ():
            for row in kinds[i]:
                self._tell(row, self._parts(kinds[i][0], fitting=(events.FILTERED_OUT,)), is_told=True)
        for i, kind in enumerate(kinds):
            if i not in helped:
                for row in kind:
                    self._tell(row, self._parts(kind[0]), is_told=True)
        return self._ended(Result.NO_OPTIONS, options=tuple(options))

    def _limits(self, world: World) -> Limits:
        machines = Machines(
            cloud_provider=self._flags.cloud_provider,
            cloud=self._setup.cloud,
            counts_gpus=self._behaviour.limits_are_quotas
            or any(limit.resource not in ("cpu", "memory") for limit in self._flags.limits),
        )
        known = self._by_name
        if self._behaviour.limits_are_quotas:
            nodes = [
                (world.node(ClusterRow(row)), group if group in known else None)
                for row, group in enumerate(self._group_of_row)
            ]
            return Limits.of_snapshot(nodes, self._flags, machines, self._behaviour)
        outside = [self._nodes[state.row] for state in self.states if state.is_usable and state.group not in known]
        return Limits.of_targets(self._groups, self._templates, outside, self._flags, machines, self._behaviour)

    def _verdict(self, row: int, group: str) -> Verdict:
        return self._answers[row].verdicts[group]

    def _parts(self, first: int, fitting: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Why no group helps the pods of a kind, of which this is the first."""
        verdicts = self._answers[first].verdicts
        reasons = []
        for group in self._groups:
            skipped = self._skipped.get(group.name)
            verdict = verdicts.get(group.name)
            looked_at = skipped is None or self._flags.check_skipped_groups
            if looked_at and verdict is not None and not verdict.fits:
                reasons.append(verdict.reasons)
            elif skipped is not None:
                reasons.append(skipped)
            else:
                reasons.append(fitting)
        return events.parts_of(reasons)

    def _tell(self, row: int, parts: tuple[str, ...], *, is_told: bool) -> None:
        before = self._answers[row]
        self._answers[row] = PodAnswer(
            row=row,
            outcome=before.outcome,
            verdicts=before.verdicts,
            remains=True,
            parts=parts,
            is_told=is_told,
        )

    @cached_property
    def _similarity(self) -> Similarity:
        return Similarity(self._templates, self._flags, self._options)

    def _similar(self, name: str, fitting: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        if not self._flags.balance_similar_node_groups:
            return ()
        return similar_groups(name, self._groups, self._similarity, fitting)

    def _option(
        self,
        world: World,
        name: str,
        kinds: Sequence[tuple[int, ...]],
        fitting: Mapping[str, Sequence[int]],
        current: int,
    ) -> Option | None:
        mine = [kinds[i] for i in fitting[name]]
        if not mine:
            return None
        similar = self._similar(name, fitting)
        found = self._estimate(world, name, mine, similar, current)
        if not found.pods or not found.nodes:
            return None
        requests = self._pods.requests(self._options)
        amounts = [requests[row].amounts for row in found.pods]
        return Option(
            group=name,
            nodes=found.nodes,
            pods=found.pods,
            similar=similar,
            milli_cpu=sum(one.get("cpu", 0) for one in amounts),
            memory=sum(one.get("memory", 0) for one in amounts),
        )

    def _estimate(
        self, world: World, name: str, kinds: Sequence[tuple[int, ...]], similar: Sequence[str], current: int
    ) -> Estimate:
        headroom = None
        if self._behaviour.similar_groups_limit_the_estimate:
            headroom = sum(self._by_name[one].headroom for one in (name, *similar))
        limit = node_limit(self._flags.max_nodes_per_scale_up, headroom, self._flags.max_nodes_total, current)
        if limit < 0:
            return NOTHING
        requests = self._pods.requests(self._options)
        asked = {
            kind[0]: (requests[kind[0]].amounts.get("cpu", 0), requests[kind[0]].amounts.get("memory", 0))
            for kind in kinds
        }
        new = self._new_nodes[name]
        ordered = ordered_kinds(kinds, asked, new.node)
        fast = -1
        if self._flags.fast_path:
            fast = best_for_fast_path([(world.pod(kind.pods[0]), len(kind.pods)) for kind in ordered], new.node)
            if fast >= 0:
                ordered.append(ordered.pop(fast))
                fast = ordered[-1].number
        if self._counts(world, name, kinds):
            seen = [self._seen[kind[0]][name] for kind in kinds]
            bins = CountingBins(world, [kind[0] for kind in kinds], seen)
            return Estimator(bins, limit).estimate(ordered, fast)
        with world.fork():
            return Estimator(WorldBins(world, new, self._behaviour), limit).estimate(ordered, fast)

    def _counts(self, world: World, group: str, kinds: Sequence[tuple[int, ...]]) -> bool:
        """Whether an estimate can be made by counting."""
        return self._setup.counts and all(
            self._seen[kind[0]][group].room is not None
            and is_countable(world.pod(kind[0]), self._seen[kind[0]][group].filters)
            for kind in kinds
        )

    def _choice(
        self,
        option: Option,
        kinds: Sequence[tuple[int, ...]],
        fitting: Mapping[str, Sequence[int]],
        current: int,
        limits: Limits,
    ) -> Choice:
        count = option.nodes
        maximum = self._flags.max_nodes_total
        if 0 < maximum < count + current:
            count = maximum - current
            said = events.max_nodes_total_reached(maximum)
            if said not in self._events:
                self._events.append(said)
            if count < 1:
                return Choice(option=option, result=Result.ERROR, error="max node total count already reached")
        limits = limits.copy()
        count = limits.allowed(self._templates[option.group], count)
        groups = [self._by_name[name] for name in option.similar]
        resizes = resized(self._by_name[option.group], groups, count, self._templates, limits, self._behaviour)
        helped = {i for some in fitting.values() for i in some}
        return Choice(
            option=option,
            result=Result.SUCCESSFUL,
            resizes=tuple(resizes),
            triggered=option.pods,
            awaiting=tuple(row for i in sorted(helped - set(fitting[option.group])) for row in kinds[i]),
            event=events.triggered(resizes) if resizes else "",
        )

    def _ended(
        self,
        result: Result,
        *,
        error: str = "",
        options: tuple[Option, ...] = (),
        choices: tuple[Choice, ...] = (),
        unknown_expanders: tuple[str, ...] = (),
    ) -> Answer:
        return Answer(
            result=result,
            error=error,
            groups=tuple(
                GroupAnswer(
                    group=group,
                    template=self._templates.get(group.name),
                    skipped=self._skipped.get(group.name, ()),
                )
                for group in self._groups
            ),
            pods=tuple(self._answers[row] for row in self._pods.pending),
            options=options,
            choices=choices,
            events=tuple(self._events),
            unknown_expanders=unknown_expanders,
        )

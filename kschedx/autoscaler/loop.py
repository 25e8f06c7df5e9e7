"""One loop of cluster-autoscaler over a snapshot: what it does, and why.

Upstream: RunOnce in core/static_autoscaler.go, ScaleUp in core/scaleup/orchestrator/orchestrator.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.autoscaler.estimate import (
    CountingBins,
    Estimate,
    Estimator,
    SandboxBins,
    is_countable,
    rejections_by_others,
    rename_template,
    sort_classes,
)
from kschedx.autoscaler.node_groups import cluster_is_healthy
from kschedx.autoscaler.pods import Placements, PodOutcome, are_all_new, consumed_request, old_enough, place_pods
from kschedx.autoscaler.sandbox import FITS, AddedNode, NewNodeResult, Sandbox, TemplateVerdict
from kschedx.autoscaler.sizes import (
    AT_MAX_NODES_TOTAL,
    Limits,
    LoopError,
    Machines,
    Option,
    Similarity,
    choose,
    resize_groups,
    similar_groups,
    skip_reasons,
)
from kschedx.autoscaler.state import GroupChoice, GroupResult, LoopOutcome, LoopResult, LoopState, PodResult
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Status
from kschedx.kube.names import HOSTNAME
from kschedx.kube.quantity import ResourceList, parse_quantity
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import AUTOSCALER_PRIORITIES, Node, Pod
from kschedx.snapshot.columns import ClusterRow, ClusterRows, IntArray
from kschedx.snapshot.nodes import ClusterNodes

# `--fastpath-binpacking-enabled`: which equivalence class of pods is packed by arithmetic. Upstream:
# determineBestPEGToFastpath in estimator/binpacking_estimator.go.


def best_for_fast_path(classes: Sequence[tuple[Pod, int]], node: Node) -> int:
    """Return the index of the class, given as a pod and a count, that saves the most; the last of equal ones, or -1."""
    best, saved_by_best = -1, 0
    for index, (pod, count) in enumerate(classes):
        nodes = max(
            count if _has_self_anti_affinity(pod) else 0,
            _nodes_for(pod, count, node, "cpu"),
            _nodes_for(pod, count, node, "memory"),
        )
        saved = count - count // nodes if nodes > 0 else 0
        if saved >= saved_by_best and _is_simple(pod):
            best, saved_by_best = index, saved
    return best


def _nodes_for(pod: Pod, count: int, node: Node, resource: str) -> int:
    """Compute from the first container's request and the node's capacity."""
    requests: ResourceList = pod.spec.containers[0].resources.requests if pod.spec.containers else {}
    amount = _amount(requests, resource)
    there = _amount(node.status.capacity, resource)
    return 0 if there == 0 else math.ceil(float(count) * amount / there)


def _amount(resources: ResourceList, name: str) -> float:
    if name not in resources:
        return 0.0
    quantity = parse_quantity(resources[name])
    return float(quantity.mantissa) * 10.0**quantity.exponent


def _has_self_anti_affinity(pod: Pod) -> bool:
    return any(
        term.topology_key == HOSTNAME
        and term.label_selector is not None
        and compile_selector(term.label_selector).matches(pod.metadata.labels)
        for term in pod.spec.required_anti_affinity
    )


def _is_simple(pod: Pod) -> bool:
    """Return whether the result for one new node holds for all others."""
    if pod.spec.topology_spread_constraints:
        return False
    return all(term.topology_key == HOSTNAME for term in pod.spec.required_anti_affinity)


# How many new nodes of a group fit which pods. Upstream: ComputeExpansionOption in
# core/scaleup/orchestrator/orchestrator.go, estimator/.


_NOTHING = Estimate(nodes=0, pods=())


def _node_limit(max_nodes_per_scale_up: int, headroom: int | None, max_nodes_total: int, current_nodes: int) -> int:
    """Return how many nodes an estimate may add: -1 for none, 0 for no limit. `headroom` is what the group and similar
    ones have left; None if that is not evaluated."""
    limits = [max_nodes_per_scale_up]
    if headroom is not None:
        limits.append(headroom if headroom > 0 else -1)
    if max_nodes_total != 0:
        rest = max_nodes_total - current_nodes
        limits.append(rest if rest > 0 and max_nodes_total > 0 else -1)
    least = 0
    for limit in limits:
        if least < 0 or limit < 0:
            return -1
        if limit > 0 and (least == 0 or least > limit):
            least = limit
    return least


class _Packing(Struct, frozen=True, dict=True):
    """Packs pending pods on new nodes of one group; its changes of the sandbox are undone."""

    state: LoopState
    sandbox: Sandbox
    new_nodes: Mapping[str, AddedNode]
    seen: Mapping[int, Mapping[str, NewNodeResult]]  # the results for each pod on the template of each group

    @cached_property
    def _similarity(self) -> Similarity:
        return Similarity(self.state.templates, self.state.flags, self.state.options, self.state.behavior)

    def _similar(self, name: str, fitting: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        if not self.state.flags.balance_similar_node_groups:
            return ()
        return similar_groups(name, self.state.groups, self._similarity, fitting)

    def option(
        self,
        name: str,
        classes: Sequence[tuple[int, ...]],
        fitting: Mapping[str, Sequence[int]],
        current: int,
    ) -> Option | None:
        """Return the new nodes of a group for the classes of pods that fit it; `fitting` is group to indices of
        `classes`, `current` the number of nodes that count. None if no new node helps."""
        mine = [classes[i] for i in fitting[name]]
        if not mine:
            return None
        similar = self._similar(name, fitting)
        estimate = self._estimate(name, mine, similar, current)
        if not estimate.pods or not estimate.nodes:
            return None
        requests = self.state.pods.requests(self.state.options)
        amounts = [requests[row].amounts for row in estimate.pods]
        return Option(
            group=name,
            nodes=estimate.nodes,
            pods=estimate.pods,
            similar=similar,
            milli_cpu=sum(amount.get("cpu", 0) for amount in amounts),
            memory=sum(amount.get("memory", 0) for amount in amounts),
        )

    def _estimate(
        self, name: str, classes: Sequence[tuple[int, ...]], similar: Sequence[str], current: int
    ) -> Estimate:
        headroom = None
        if self.state.behavior.similar_groups_limit_the_estimate:
            headroom = sum(self.state.groups_by_name[group].headroom for group in (name, *similar))
        limit = _node_limit(
            self.state.flags.max_nodes_per_scale_up, headroom, self.state.flags.max_nodes_total, current
        )
        if limit < 0:
            return _NOTHING
        requests = self.state.pods.requests(self.state.options)
        sort_keys = {
            pod_class[0]: (
                requests[pod_class[0]].amounts.get("cpu", 0),
                requests[pod_class[0]].amounts.get("memory", 0),
            )
            for pod_class in classes
        }
        new = self.new_nodes[name]
        ordered = sort_classes(classes, sort_keys, new.node)
        fast = -1
        if self.state.flags.fast_path:
            fast = best_for_fast_path([(self.sandbox.pod(it.pods[0]), len(it.pods)) for it in ordered], new.node)
            if fast >= 0:
                ordered.append(ordered.pop(fast))
                fast = ordered[-1].number
        if self._counts(name, classes):
            seen = [self.seen[pod_class[0]][name] for pod_class in classes]
            bins = CountingBins(self.sandbox, [pod_class[0] for pod_class in classes], seen)
            return Estimator(bins, limit).estimate(ordered, fast)
        with self.sandbox.fork():
            return Estimator(SandboxBins(self.sandbox, new, self.state.behavior), limit).estimate(ordered, fast)

    def _counts(self, group: str, classes: Sequence[tuple[int, ...]]) -> bool:
        return self.state.counts and all(
            self.seen[pod_class[0]][group].room is not None
            and is_countable(self.sandbox.pod(pod_class[0]), self.seen[pod_class[0]][group])
            for pod_class in classes
        )


_CLUSTER_UNHEALTHY = "Warning ClusterUnhealthy: Cluster is unhealthy"


_FILTERED_OUT = "expansion options filtered out and no longer considered"


def _sandbox_of(
    framework: Framework,
    nodes: Sequence[ClusterRow],
    upcoming: Sequence[AddedNode],
    more: Sequence[Pod],
    places: Mapping[int, ClusterRow],
    gone: IntArray,
    *,
    names_count: bool,
) -> tuple[Sandbox, dict[ClusterRow, ClusterRow]]:
    """Return a sandbox with some of the snapshot's nodes, followed by new ones, and its rows by the snapshot's.
    `more` are pods that are first appended as rows; `places` assigns pods (rows of the snapshot) to nodes, `gone`
    removes pods from their nodes."""
    snapshot = framework.snapshot
    kept = {row: ClusterRow(index) for index, row in enumerate(nodes)}
    position = np.full(len(snapshot.cluster.nodes) + 1, -1, dtype=np.int64)
    position[list(kept)] = list(kept.values())
    pods = snapshot.pods
    node = position[pods.node]
    node[gone] = -1
    for pod, place in places.items():
        node[pod] = position[place]
    cluster_nodes = [snapshot.cluster.nodes[row] for row in nodes]
    scalars = frozenset(snapshot.cluster.resources.names)
    cluster = ClusterNodes([*cluster_nodes, *(new.node for new in upcoming)], snapshot.cluster.images, scalars)
    table = pods.moved(node, len(cluster.nodes)).with_pods(more)
    for index, new in enumerate(upcoming, start=len(nodes)):
        rows = np.array(new.pods, dtype=np.int64)
        table = table.with_copies(rows, ClusterRows(np.full(len(rows), index, dtype=np.int64)), len(cluster.nodes))
    devices = snapshot.devices.with_slices([each for new in upcoming for each in new.own_slices()])
    changed = replace(snapshot, cluster=cluster, pods=table, devices=devices, _tables={})
    return Sandbox(framework.on(changed), names_count=names_count), kept


def _verdict_alone(seen: NewNodeResult) -> TemplateVerdict:
    if seen.stopped is not None:
        return seen.stopped
    verdicts = [*seen.rejections, *rejections_by_others(seen)]
    return min(verdicts, key=lambda verdict: seen.filters.index(verdict.plugin), default=FITS)


class Loop:
    """A loop. It runs once and then explains its decisions about pods."""

    def __init__(self, state: LoopState) -> None:
        self.state = state
        self._answers: dict[int, PodResult] = {}
        self._events: list[str] = []
        self._skipped: dict[str, tuple[str, ...]] = {}
        self._begin_key: object = None
        """What the copy of the cluster begins with besides the snapshot; equal for equal copies."""
        self._seen: dict[int, dict[str, NewNodeResult]] = {}
        """For a considered pod, the result on the template of each group."""

    @cached_property
    def result(self) -> LoopResult:
        if not self.state.flags.scale_up_from_zero and not any(state.is_usable for state in self.state.states):
            what = "ready nodes" if self.state.nodes else "nodes"
            return self._skip(f"Warning ClusterUnhealthy: Cluster has no {what}.")
        if not cluster_is_healthy(self.state.states, self.state.flags):
            return self._skip(_CLUSTER_UNHEALTHY)
        self._sandbox = sandbox = self._begin()
        waiting = self._unplaced_pods(sandbox)
        for row in waiting:
            self._answers[row] = PodResult(row=row, outcome=PodOutcome.CONSIDERED)
        if not waiting:
            return self._result(LoopOutcome.NOT_NEEDED)
        usable = sum(state.is_usable for state in self.state.states)
        if 0 < self.state.flags.max_nodes_total <= usable:
            if self.state.behavior.max_nodes_total_is_reported:
                self._events.append(_max_nodes_total_reached(self.state.flags.max_nodes_total))
                for row in waiting:
                    self._record_result(row, (AT_MAX_NODES_TOTAL,), is_event_sent=True)
            return self._result(LoopOutcome.AT_MAX_NODES_TOTAL)
        if not self.state.flags.bypassed_schedulers and are_all_new(
            self.state.pods, waiting, self._requests_gpu, self.state.now
        ):
            for row in waiting:
                self._answers[row] = PodResult(row=row, outcome=PodOutcome.ALL_NEW)
            return self._result(LoopOutcome.IN_COOLDOWN)
        for row, verdicts in self._check_templates(sandbox, waiting).items():
            self._answers[row] = PodResult(row=row, outcome=PodOutcome.CONSIDERED, verdicts=verdicts)
        return self._scale_up(sandbox, waiting, usable)

    def _skip(self, event: str) -> LoopResult:
        self._events.append(event)
        for row in self.state.pods.pending:
            listed = self.state.pending_order.passed_over.get(row, PodOutcome.NOT_LOOKED_AT)
            outcome = PodOutcome.NOT_LOOKED_AT if listed is PodOutcome.EXPENDABLE else listed
            self._answers[row] = PodResult(row=row, outcome=outcome)
        return self._result(LoopOutcome.NOT_TRIED)

    def _begin(self) -> Sandbox:
        """Return the copy of the cluster for this loop, with upcoming nodes."""
        coming = [group for group in self.state.groups if group.upcoming > 0]
        started = {node.row for group in coming for node in group.unstarted_nodes}
        kept = [row for row in map(ClusterRow, range(len(self.state.nodes))) if row not in started]
        prototypes = [pod for template in self.state.templates.values() for pod in template.pods]
        first = len(self.state.pods)
        self._new_nodes: dict[str, AddedNode] = {}
        for name, template in self.state.templates.items():
            rows = tuple(range(first, first + len(template.pods)))
            first += len(rows)
            self._new_nodes[name] = AddedNode(node=template.node, pods=rows, slices=template.slices)
        upcoming: list[tuple[str, AddedNode]] = []
        for group in coming:
            if group.name in self._new_nodes:
                new = self._new_nodes[group.name]
                upcoming += [
                    (group.name, rename_template(new, f"{new.node.name}-upcoming-{i}")) for i in range(group.upcoming)
                ]
        sandbox, rows_of = _sandbox_of(
            self.state.framework,
            kept,
            [new for _, new in upcoming],
            prototypes,
            self.state.nominations,
            np.array(sorted(self.state.expendable), dtype=np.int64),
            names_count=self.state.behavior.pre_filter_leaves_nodes_out,
        )
        self._begin_key = (
            tuple(kept),
            tuple(new for _, new in upcoming),
            prototypes if upcoming else (),
            self.state.nominations,
            self.state.expendable,
        )
        self._rows_of = rows_of
        self._real = len(rows_of)  # lower rows of the sandbox are nodes of the snapshot, the others are upcoming nodes
        self._group_of_row = [self.state.states[row].group for row in kept] + [name for name, _ in upcoming]
        return sandbox

    def place_on_free_nodes(self) -> tuple[Sandbox, Mapping[ClusterRow, ClusterRow]]:
        """Return the cluster with pending pods placed on free nodes before any node is added, and the sandbox's rows by
        the snapshot's."""
        sandbox = self._begin()
        self._unplaced_pods(sandbox)
        return sandbox, self._rows_of

    def _unplaced_pods(self, sandbox: Sandbox) -> tuple[int, ...]:
        """Return the pods that need a node, in the autoscaler's order; the other pods get their results."""
        for row, outcome in self.state.pending_order.passed_over.items():
            self._answers[row] = PodResult(row=row, outcome=outcome)
        if not self.state.behavior.nominated_pods_are_placed and self._is_nominated_to_no_node():
            for row in self.state.pending_order.unschedulable:
                self._answers[row] = PodResult(row=row, outcome=PodOutcome.NOT_LOOKED_AT)
            return ()
        placements = self._placements(sandbox)
        for row, node in placements.placed.items():
            self._answers[row] = PodResult(
                row=row,
                outcome=PodOutcome.SCHEDULABLE,
                node=sandbox.node(node).name,
                is_on_upcoming=node >= self._real,
            )
        waiting = []
        for row in placements.left:
            if self.state.equivalence.is_of_daemon_set(row):
                self._answers[row] = PodResult(row=row, outcome=PodOutcome.DAEMON_SET)
            elif (
                self.state.flags.provisioning_requests
                and consumed_request(self.state.pods.annotations[row]) is not None
            ):
                self._answers[row] = PodResult(row=row, outcome=PodOutcome.CONSUMES_REQUEST)
            elif not old_enough(self.state.pods, row, self.state.flags, self.state.now):
                self._answers[row] = PodResult(row=row, outcome=PodOutcome.TOO_YOUNG)
            else:
                waiting.append(row)
        return tuple(waiting)

    def _placements(self, sandbox: Sandbox) -> Placements:
        """Place the pending pods like the loops of similar clusters did, as far as they are equal."""
        state, memory = self.state, self.state.memory
        earlier, changed = memory.placements(state.snapshot, self._begin_key)
        order = state.pending_order.unschedulable
        placements = place_pods(sandbox, state.pods, order, state.equivalence, earlier, changed)
        if earlier is None:
            memory.remember(state.snapshot, self._begin_key, placements)
        return placements

    def _is_nominated_to_no_node(self) -> bool:
        """Return whether a pod is nominated for a node that has not started and counts as upcoming. The autoscaler
        fails to place such a pod, and then helps no pod at all."""
        return any(node not in self._rows_of for node in self.state.nominations.values())

    def _requests_gpu(self, row: int) -> bool:
        amounts = self.state.pods.requests(self.state.options)[row].amounts
        return not amounts.keys().isdisjoint(self.state.behavior.gpu_resources)

    def _check_templates(self, sandbox: Sandbox, rows: Sequence[int]) -> dict[int, dict[str, TemplateVerdict]]:
        """Check each pod on each group's template in the current cluster, before packing. All templates are present at
        once, but none counts for another."""
        rows_by_identity: dict[object, list[int]] = {}
        for row in rows:
            rows_by_identity.setdefault(self.state.equivalence.identity(row), []).append(row)
        self._seen = {}
        verdicts_by_row: dict[int, dict[str, TemplateVerdict]] = {}
        with sandbox.fork():
            new = sandbox.bring(list(self._new_nodes.values()))
            for members in rows_by_identity.values():
                looked = sandbox.check_new_nodes(members[0], new) if new else ()
                seen = dict(zip(self._new_nodes, looked, strict=True))
                verdicts = {group: _verdict_alone(on_node) for group, on_node in seen.items()}
                for row in members:
                    self._seen[row], verdicts_by_row[row] = seen, verdicts
        return verdicts_by_row

    def rejections(self, row: int) -> dict[str, tuple[Status, ...]]:
        """Return, after the loop, every plugin that rejects the pod on each group's template, in order."""
        statuses = {}
        for group, new in self._new_nodes.items():
            seen = self._seen.get(row, {}).get(group)
            if seen is not None and seen.stopped is None and not any(rejections_by_others(seen)):
                statuses[group] = seen.statuses()
            else:
                with self._sandbox.fork():
                    statuses[group] = self._sandbox.rejections(row, self._sandbox.add(new))
        return statuses

    # --- scale-up

    def _scale_up(self, sandbox: Sandbox, waiting: Sequence[int], usable: int) -> LoopResult:
        upcoming = sum(group.upcoming for group in self.state.groups)
        current = sandbox.node_count if self.state.behavior.counts_nodes_of_snapshot else usable + upcoming
        for group in self.state.groups:
            if group.upcoming > 0 and group.name not in self.state.templates:
                return self._error_result(
                    waiting,
                    f"could not get upcoming nodes: failed to find template node for node group {group.name}",
                )
        try:
            limits = self._limits(sandbox)
        except LoopError as error:
            return self._error_result(waiting, str(error))
        for group in self.state.groups:
            reasons = skip_reasons(group, self.state.templates.get(group.name), limits, self.state.behavior)
            if reasons:
                self._skipped[group.name] = reasons
        classes = self.state.equivalence.groups(waiting)
        fitting = {
            group.name: [
                i for i, pod_class in enumerate(classes) if self._answers[pod_class[0]].verdicts[group.name].fits
            ]
            for group in self.state.groups
            if group.name not in self._skipped
        }
        packing = _Packing(self.state, sandbox, self._new_nodes, self._seen)
        options = [
            option for name in fitting if (option := packing.option(name, classes, fitting, current)) is not None
        ]
        helped = {i for some in fitting.values() for i in some}
        self._record_helpless(
            [pod_class for i, pod_class in enumerate(classes) if i not in helped], is_event_sent=not options
        )
        if not options:
            return self._result(LoopOutcome.NO_OPTIONS)
        nodes = {name: template.node for name, template in self.state.templates.items()}
        chosen = choose(
            options, self.state.flags.expanders, nodes, self.state.snapshot.config_maps.get(AUTOSCALER_PRIORITIES)
        )
        self._events += chosen.events
        choices = [self._choice(option, classes, fitting, current, limits) for option in chosen.options]
        if not choices:
            if self.state.behavior.failures_are_reported:
                some = [classes[i] for i in sorted(helped)]
                self._record_helpless(some, fitting=(_FILTERED_OUT,), is_event_sent=True)
            self._record_helpless(
                [pod_class for i, pod_class in enumerate(classes) if i not in helped], is_event_sent=True
            )
            return self._result(LoopOutcome.NO_OPTIONS, options=tuple(options))
        return self._result(
            choices[0].result,
            error=choices[0].error,
            options=tuple(options),
            choices=tuple(choices),
            unknown_expanders=chosen.unknown,
        )

    def _error_result(self, waiting: Sequence[int], error: str) -> LoopResult:
        """Return the result of an error before any group is evaluated."""
        if self.state.behavior.failures_are_reported:
            for row in waiting:
                self._record_result(row, (), is_event_sent=False)
        return self._result(LoopOutcome.ERROR, error=error)

    def _record_helpless(
        self, classes: Iterable[tuple[int, ...]], *, is_event_sent: bool, fitting: tuple[str, ...] = ()
    ) -> None:
        for pod_class in classes:
            parts = self._parts(pod_class[0], fitting)
            for row in pod_class:
                self._record_result(row, parts, is_event_sent=is_event_sent)

    def _limits(self, sandbox: Sandbox) -> Limits:
        machines = Machines(
            cloud_provider=self.state.flags.cloud_provider,
            cloud=self.state.cloud,
            gpu_resources=self.state.behavior.gpu_resources,
            counts_gpus=self.state.behavior.limits_are_quotas
            or any(limit.resource not in ("cpu", "memory") for limit in self.state.flags.limits),
        )
        known = self.state.groups_by_name
        if self.state.behavior.limits_are_quotas:
            nodes = [
                (sandbox.node(ClusterRow(row)), group if group in known else None)
                for row, group in enumerate(self._group_of_row)
            ]
            return Limits.of_snapshot(nodes, self.state.flags, machines, self.state.behavior)
        outside = [self.state.nodes[it.row] for it in self.state.states if it.is_usable and it.group not in known]
        groups = [
            group
            for group in self.state.groups
            if group.name in self.state.templates or self.state.cloud_is_known or group.status.target
        ]
        return Limits.of_targets(groups, self.state.templates, outside, self.state.flags, machines, self.state.behavior)

    def _parts(self, first: int, fitting: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return why no group helps the pods of a class, given by its first pod: the sorted parts after `pod didn't
        trigger scale-up: `."""
        verdicts = self._answers[first].verdicts
        reasons = []
        for group in self.state.groups:
            skipped = self._skipped.get(group.name)
            verdict = verdicts.get(group.name)
            looked_at = skipped is None or self.state.flags.check_skipped_groups
            if looked_at and verdict is not None and not verdict.fits:
                reasons.append(verdict.reasons)
            elif skipped is not None:
                reasons.append(skipped)
            else:
                reasons.append(fitting)
        counts = Counter(reason for group in reasons for reason in group)
        return tuple(sorted(f"{count} {reason}" for reason, count in counts.items()))

    def _record_result(self, row: int, parts: tuple[str, ...], *, is_event_sent: bool) -> None:
        self._answers[row] = replace(self._answers[row], remains=True, parts=parts, is_event_sent=is_event_sent)

    def _choice(
        self,
        option: Option,
        classes: Sequence[tuple[int, ...]],
        fitting: Mapping[str, Sequence[int]],
        current: int,
        limits: Limits,
    ) -> GroupChoice:
        count = option.nodes
        maximum = self.state.flags.max_nodes_total
        if 0 < maximum < count + current:
            count = maximum - current
            said = _max_nodes_total_reached(maximum)
            if said not in self._events:
                self._events.append(said)
            if count < 1:
                error = "max node total count already reached"
                return GroupChoice(option=option, result=LoopOutcome.ERROR, error=error)
        limits = limits.copy()
        count = limits.allowed_count(self.state.templates[option.group], count)
        groups = [self.state.groups_by_name[name] for name in option.similar]
        resizes = resize_groups(
            self.state.groups_by_name[option.group], groups, count, self.state.templates, limits, self.state.behavior
        )
        taken = set(fitting[option.group])
        later = [i for i, pod_class in enumerate(classes) if i not in taken and self._fits_another(pod_class[0])]
        return GroupChoice(
            option=option,
            result=LoopOutcome.SUCCESSFUL,
            resizes=tuple(resizes),
            triggered=option.pods,
            awaiting=tuple(row for i in later for row in classes[i]),
            event=f"pod triggered scale-up: [{' '.join(map(str, resizes))}]" if resizes else "",
        )

    def _fits_another(self, row: int) -> bool:
        """Return whether the autoscaler will evaluate a pod again that the chosen group does not fit. Skipped groups
        count if they were evaluated, although the pod is also reported as not helped."""
        return any(
            verdict.fits
            for group, verdict in self._answers[row].verdicts.items()
            if group not in self._skipped or self.state.flags.check_skipped_groups
        )

    def _result(
        self,
        result: LoopOutcome,
        *,
        error: str = "",
        options: tuple[Option, ...] = (),
        choices: tuple[GroupChoice, ...] = (),
        unknown_expanders: tuple[str, ...] = (),
    ) -> LoopResult:
        return LoopResult(
            result=result,
            error=error,
            groups=tuple(
                GroupResult(
                    group=group,
                    template=self.state.templates.get(group.name),
                    skipped=self._skipped.get(group.name, ()),
                )
                for group in self.state.groups
            ),
            pods=tuple(self._answers[row] for row in self.state.pods.pending),
            options=options,
            choices=choices,
            events=tuple(self._events),
            unknown_expanders=unknown_expanders,
        )


def _max_nodes_total_reached(maximum: int) -> str:
    return f"Warning MaxNodesTotalReached: Max total nodes in cluster reached: {maximum}"

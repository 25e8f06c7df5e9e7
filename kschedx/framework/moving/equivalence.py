"""What becomes of one pod in a cluster that moves."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from copy import copy
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import CycleState, Plugin, PostFilterResult, PreEnqueuePlugin, Touch
from kschedx.framework.moving.columns import Filtering, Scoring
from kschedx.framework.preemption import KEPT, KeptDryRuns
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import nothing_fits
from kschedx.kube.types import Pod, PodSpec
from kschedx.snapshot.columns import ClusterRow, ClusterRows, Column, IntArray, cluster_rows, distinct, each_cluster_row
from kschedx.snapshot.moving import Steps
from kschedx.snapshot.nodes import PodRows
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot


class Decision(Struct, frozen=True, kw_only=True):
    """What becomes of one pod: a Cycle without its trace."""

    outcome: Outcome
    message: str = ""
    best: ClusterRows = field(default_factory=lambda: cluster_rows([]))
    """(tie,) the nodes that share the highest total."""
    nominated: ClusterRow | None = None
    """The pod's nominated node, where it fits: kube-scheduler then looks at no other."""
    post_filter: PostFilterResult | None = None

    @classmethod
    def of(cls, cycle: Cycle) -> Decision:
        return cls(
            outcome=cycle.outcome,
            message=cycle.message,
            best=cluster_rows(cycle.best),
            nominated=cycle.nominated,
            post_filter=cycle.post_filter,
        )

    @property
    def choice(self) -> ClusterRows:
        """The nodes among which kube-scheduler picks."""
        return self.best if self.nominated is None else cluster_rows([self.nominated])


# Which pods are of one kind: equal in all that scheduling reads, so that they share columns.
#
# Left out of that are names and uids, the names of claims, for which every plugin says what it reads behind them
# (`Plugin.tells_apart`), and the labels that number the pods of a workload, unless a selector names them.

NUMBERING = (
    "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "batch.kubernetes.io/job-completion-index"
)  # fmt: skip
"""Labels that tell the pods of one workload apart."""

_READING_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")
_ENCODER = msgspec.json.Encoder(order="sorted")


class EquivalenceKey(NamedTuple):
    """Equal for the pods of a kind."""

    likeness: tuple[int, ...]
    """What pods are equal in whatever is behind their volumes."""
    apart: tuple[Hashable, ...]
    """For each of `Kinds.plugins` what it tells pods apart by; empty where nothing is behind the volumes."""


def shares_columns(spec: PodSpec) -> bool:
    """Whether pods of this spec can share columns: nothing about them depends on their name."""
    return not (spec.mounts_storage or spec.resource_claims or spec.scheduling_group)


class EquivalenceClasses:
    """The kinds of the pods of a cluster that moves."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pods = pods = snapshot.pods
        self._rest = (pods.namespaces, pods.owners, pods.statuses, pods.annotations)
        self._templates: dict[int, tuple[int, bool] | None] = {}
        self._template_codes: dict[bytes, int] = {}
        self._labels: dict[int, int] = {}
        self._label_codes: dict[bytes, int] = {}
        self._left_out = frozenset(NUMBERING) - frozenset(_named(snapshot))
        self._plugins: dict[str, tuple[Framework, list[Plugin]]] = {}

    def key(self, row: int, framework: Framework) -> EquivalenceKey | None:
        """Equal for the pods of a kind as things stand; None for a pod that is like no other."""
        pods = self._pods
        template = self._template(int(pods.specs.codes[row]))
        if template is None:
            return None
        rest = (int(column.codes[row]) for column in self._rest)
        likeness = (template[0], self._labelled(int(pods.labels.codes[row])), *rest)
        if not template[1]:
            return EquivalenceKey(likeness, ())
        pod = pods[row]
        return EquivalenceKey(likeness, tuple(plugin.tells_apart(pod) for plugin in self.plugins(framework)))

    def _template(self, code: int) -> tuple[int, bool] | None:
        """A number for all specs that are this one but for the names of claims, and whether it mounts storage."""
        if code not in self._templates:
            spec = self._pods.specs.values[code]
            if spec.resource_claims or spec.scheduling_group:
                self._templates[code] = None
            else:
                written = _ENCODER.encode(_without_names(spec))
                number = self._template_codes.setdefault(written, len(self._template_codes))
                self._templates[code] = number, spec.mounts_storage
        return self._templates[code]

    def _labelled(self, code: int) -> int:
        """A number for all labels that are these but for those that nobody reads."""
        if code not in self._labels:
            labels = self._pods.labels.values[code]
            written = _ENCODER.encode({key: value for key, value in labels.items() if key not in self._left_out})
            self._labels[code] = self._label_codes.setdefault(written, len(self._label_codes))
        return self._labels[code]

    def plugins(self, framework: Framework) -> list[Plugin]:
        """Those that look at pods and nodes."""
        name = framework.profile.scheduler_name
        if name not in self._plugins or self._plugins[name][0] is not framework:
            every = (plugin for point in _READING_POINTS for plugin in framework.plugins(point, Plugin))
            self._plugins[name] = framework, list(dict.fromkeys(every))
        return self._plugins[name][1]


def _without_names(spec: PodSpec) -> PodSpec:
    """The spec without the names of claims."""
    volumes = tuple(
        volume
        if volume.persistent_volume_claim is None
        else replace(volume, persistent_volume_claim=replace(volume.persistent_volume_claim, claim_name=""))
        for volume in spec.volumes
    )
    return replace(spec, volumes=volumes)


def _named(snapshot: Snapshot) -> Iterator[str]:
    """Of the labels that number pods those that a selector names which is held against pods."""
    pods = snapshot.pods
    concerned = [spec for spec in pods.specs.values if spec.affinity is not None or spec.topology_spread_constraints]
    written = [_ENCODER.encode((spec.affinity, spec.topology_spread_constraints)) for spec in concerned]
    controllers = (snapshot.services, snapshot.replication_controllers, snapshot.replica_sets, snapshot.stateful_sets)
    written += [_ENCODER.encode([one.spec.selector for one in some]) for some in controllers]
    yield from (key for key in NUMBERING if any(key.encode() in text for text in written))


def class_numbers(pods: PodTable, rows: IntArray) -> IntArray:
    """(row,) equal numbers for pods of one kind."""
    kinds = np.zeros(len(rows), dtype=np.int64)
    for column in _deciding_columns(pods):
        kinds = kinds * len(column.values) + column.codes[rows]
        kinds = np.searchsorted(distinct(kinds), kinds)
    return kinds


def _deciding_columns(pods: PodTable) -> tuple[Column[Any], ...]:
    return (pods.specs, pods.labels, pods.namespaces, pods.owners, pods.statuses, pods.annotations)


# The columns of one kind of pod: pods that are equal in everything that scheduling reads, name and uid aside.
#
# What `schedule` works out for a pod is kept per plugin, and after a move only what the plugin says that the move
# touches
# is evaluated anew (`Plugin.touches`). `None` in place of a decision means that the case is one of the rare ones
# which
# only `schedule` itself tells right: an internal error, a PreFilter that rejects.

_Counted = tuple[tuple[int, ...], tuple[int, ...]]
"""Nominated pods that count, and their nodes."""

_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")


class EquivalenceClass:
    """One kind of pod under one profile."""

    def __init__(self, framework: Framework, pod: Pod, steps: Steps) -> None:
        self._framework = framework
        self._steps = steps
        self._seen = -1
        self._pre_enqueue = framework.plugins("preEnqueue", PreEnqueuePlugin)
        self._pre_enqueue_touched = [p for p in self._pre_enqueue if p.touches(pod) is Touch.CLUSTER]
        self._entered = True
        self._state = CycleState()
        self._filtering = Filtering(framework, pod)
        self._scoring = Scoring(framework, pod)
        self._counted: _Counted = ((), ())
        self._decision: Decision | None = None
        self._decided_for = ""
        """The nominated node of the pod that `_decision` is about."""

    def like(self, pod: Pod, plugins: Collection[str]) -> EquivalenceClass | None:
        """A kind that differs from this one in what these plugins say; None where it has to be looked at by itself."""
        if self._seen < 0 or self._is_rare:
            return None
        other = copy(self)
        other._filtering, other._scoring = self._filtering.copy(), self._scoring.copy()
        other._state = self._state.clone()
        other._state.discard(KEPT)
        other._decision = None
        other._counted = ((), ())
        other._filtering.evaluate_plugins(other._state, pod, plugins)
        if not other._is_rare:
            other._scoring.evaluate_plugins(other._state, pod, plugins)
        return other

    def decide(self, pod: Pod) -> Decision | None:
        """What becomes of a pod of this kind now."""
        if not len(self._framework.nodes) or not self._may_enter(pod) or not self._is_ready(pod):
            return None
        if self._decision is None or self._decided_for != pod.status.nominated_node_name:
            self._decision = self._decide(pod)
            self._decided_for = pod.status.nominated_node_name
        return self._decision

    def cycle(self, pod: Pod) -> Cycle | None:
        """The decision about a pod of this kind with verdicts and scores; findings, and steps after the choice, are
        left out. None as for `decide`."""
        framework = self._framework
        if not len(framework.nodes) or not self._may_enter(pod) or not self._is_ready(pod):
            return None
        decision = self._decide(pod)
        if decision is None or decision.nominated is not None:
            return None
        cycle = Cycle(
            pod=pod,
            snapshot=framework.snapshot,
            profile=framework.profile,
            release=framework.release,
            all_nodes=framework.nodes,
            outcome=decision.outcome,
            message=decision.message,
            best=tuple(each_cluster_row(decision.best)),
            nodes=self._filtering.nodes,
            filter=self._filtering.outcome(),
            post_filter=decision.post_filter,
        )
        return cycle if not len(self._filtering.feasible) else replace(cycle, scores=self._scoring.scores())

    @property
    def _is_rare(self) -> bool:
        return self._filtering.is_rare or self._scoring.is_rare

    def _may_enter(self, pod: Pod) -> bool:
        asked = self._pre_enqueue if self._seen < 0 else self._pre_enqueue_touched
        entered = self._entered and all(plugin.pre_enqueue(pod).is_success for plugin in asked)
        if self._seen < 0:
            self._entered = entered
        return entered

    def _is_ready(self, pod: Pod) -> bool:
        """Whether the columns, which are brought up to date, say it all."""
        self._catch_up(pod)
        return not self._is_rare and self._count_nominated(pod)

    def _count_nominated(self, pod: Pod) -> bool:
        """Let the pods count that are nominated now. False where only `schedule` tells what that comes to."""
        framework = self._framework
        nobody = PodRows(pods=np.zeros(0, dtype=np.int64), nodes=cluster_rows([]))
        counted = framework.nominated_change(pod, framework.nodes) if framework.nominated else nobody
        if len(counted) and any(_may_read_nominations(plugin) for plugin in self._plugins()):
            return False
        now = tuple(counted.pods.tolist()), tuple(counted.nodes.tolist())
        if now != self._counted:
            self._decision = None
            if KEPT in self._state:
                self._state[KEPT].forget(ClusterRows(np.array([*self._counted[1], *now[1]], dtype=np.int64)))
            self._counted = now
        return self._decision is not None or self._filtering.count_nominated(self._state, pod, counted)

    def _plugins(self) -> Collection[Plugin]:
        framework = self._framework
        return {plugin for point in _POINTS for plugin in framework.plugins(point, Plugin)}

    def _decide(self, pod: Pod) -> Decision | None:
        nominated = None
        name = pod.status.nominated_node_name
        if name:
            row = self._framework.snapshot.cluster.index.get(name)
            if row is not None and not self._filtering.is_left(row):
                return None
            if row is not None and self._filtering.passes(row):
                nominated = row
        feasible = self._filtering.feasible
        if not len(feasible):
            return self._nothing_fits(pod)
        totals = self._scoring.totals(self._state, pod, feasible)
        if self._is_rare:
            return None
        best = ClusterRows(feasible[np.flatnonzero(totals == totals.max())])
        return Decision(outcome=Outcome.SCHEDULED, best=best, nominated=nominated)

    # --- what has moved

    def _catch_up(self, pod: Pod) -> None:
        if self._seen == len(self._steps):
            return
        self._decision = None
        if self._seen < 0 or self._is_rare:
            self._evaluate(pod)
        else:
            _, touched, signs = self._steps.since(self._seen)
            rows = distinct(touched)
            rows = rows[rows < len(self._framework.nodes)]  # others were of nodes that came and are no more
            self._evaluate_touched(pod, ClusterRows(rows), nodes_too=not signs.all())
        self._seen = len(self._steps)

    def _evaluate(self, pod: Pod) -> None:
        """Everything, for the first time."""
        self._state = CycleState()
        self._scoring.is_rare = False
        self._filtering.evaluate(self._state, pod)
        if not self._filtering.is_rare:
            self._scoring.evaluate(self._state, pod)

    def _evaluate_touched(self, pod: Pod, rows: ClusterRows, *, nodes_too: bool) -> None:
        """What pods that came to these nodes or left them can have changed. `nodes_too`: so have the nodes."""
        if nodes_too and pod.spec.mounts_storage:
            self._evaluate(pod)  # where volumes can be reached is worked out ahead, for all nodes
            return
        part = self._framework.nodes.at(rows)
        self._filtering.evaluate_touched(self._state, pod, part, nodes_too=nodes_too)
        self._scoring.touch(rows, nodes_too=nodes_too)
        if KEPT in self._state:
            self._state[KEPT].forget(rows)

    # --- where no node is feasible

    def _nothing_fits(self, pod: Pod) -> Decision:
        framework = self._framework
        everything = framework.nodes
        cycle = Cycle(
            pod=pod,
            snapshot=framework.snapshot,
            profile=framework.profile,
            release=framework.release,
            all_nodes=everything,
            outcome=Outcome.UNSCHEDULABLE,
        )
        filtering = self._filtering
        if filtering.reads_only_own_pods and KEPT not in self._state:
            # what a node would have to give up is its own affair; most kinds never need to know
            self._state[KEPT] = KeptDryRuns(len(everything))
        outcome, naming = filtering.outcome(), filtering.naming
        return Decision.of(nothing_fits(framework, self._state, cycle, filtering.nodes, outcome, naming))


def _may_read_nominations(plugin: Plugin) -> bool:
    """A plugin that says nothing of what it reads may read who is nominated, in whichever way it likes."""
    return type(plugin).touches is Plugin.touches

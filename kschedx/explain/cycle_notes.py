"""What a reader has to know to trust the answer of a finished cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kschedx.api.scheduler_plugins import NodeResourceTopology
from kschedx.api.types import Node
from kschedx.explain.bound_by_hand import bound_by_hand
from kschedx.explain.device_notes import device_notes
from kschedx.explain.missing import missing_notes
from kschedx.explain.notes import Note
from kschedx.explain.notes.cluster import FilesLeftOut, FinishedPods, OrphanedPods
from kschedx.explain.notes.cycle import (
    CycleNote,
    Gated,
    KeepsAccount,
    NominatedNodeFirst,
    NotMeasured,
    NotReadyNodes,
    Sampling,
    SingleFeasibleNode,
    Tie,
    UnknownPlugins,
)
from kschedx.explain.notes.recorded import RecordedEvent
from kschedx.explain.recorded import contrasts, recorded
from kschedx.explain.storage_notes import storage_notes
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.unheard import Kind, Stake, open_stake
from kschedx.snapshot.snapshot import Snapshot

MIN_FEASIBLE_NODES = 100
"""kube-scheduler evaluates every node of a cluster that is smaller than this."""
_OF_READINESS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MIN_PERCENTAGE = 5


def nodes_to_find(percentage: int | None, count: int) -> int:
    """How many feasible nodes end kube-scheduler's search (numFeasibleNodesToFind in pkg/scheduler/schedule_one.go).

    `percentage` is percentageOfNodesToScore; 0 or None adapts to the cluster's size.
    """
    if count < MIN_FEASIBLE_NODES:
        return count
    share = percentage or max(50 - count // 125, MIN_PERCENTAGE)
    return max(count * share // 100, MIN_FEASIBLE_NODES)


def notes(cycle: Cycle) -> tuple[Note, ...]:
    """In the order in which a reader needs them."""
    return (
        *_of_scheduler(cycle),
        *_of_recorded_event(cycle),
        *_of_cluster(cycle.snapshot),
        *_of_course(cycle),
        *_of_extenders(cycle),
        *missing_notes(cycle),
        *storage_notes(cycle.snapshot, cycle.pod),
        *device_notes(cycle.snapshot, cycle.pod, cycle.release),
    )


NUMA = "NodeResourceTopologyMatch"
ACCOUNTS = ("cacheResyncPeriodSeconds", "discardReservedNodes")
"""Its settings by which it remembers."""


def _accounts(cycle: Cycle) -> Iterator[CycleNote]:
    args = cycle.profile.args.get(NUMA)
    if NUMA in cycle.profile.points.get("filter", ()) and isinstance(args, Mapping):
        settings = [name for name in ACCOUNTS if args.get(name)]
        if settings and any(cycle.snapshot.of(NodeResourceTopology)):
            yield KeepsAccount(plugin=NUMA, setting=settings[-1])


def _of_scheduler(cycle: Cycle) -> Iterator[CycleNote]:
    left_out = tuple(one for one in cycle.unheard if one.kind is Kind.PLUGIN)
    if left_out:
        settled = cycle.has_no_choice and open_stake(cycle.unheard) is not Stake.FIT
        rejected = cycle.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR)
        yield UnknownPlugins(left_out=left_out, stands=rejected or settled)
    yield from _accounts(cycle)
    if not cycle.release.is_measured:
        yield NotMeasured(version=cycle.release.version)


def _of_recorded_event(cycle: Cycle) -> Iterator[RecordedEvent]:
    theirs = recorded(cycle.snapshot, cycle.pod)
    if theirs is not None:
        yield RecordedEvent(
            message=theirs.message,
            count=theirs.count,
            last_seen=theirs.last_seen,
            contrasts=contrasts(theirs, cycle.message, nominated=bool(cycle.pod.status.nominated_node_name)),
        )


def _of_cluster(snapshot: Snapshot) -> Iterator[Note]:
    """What was left out of the cluster that was read, and what counts for too much."""
    pods, orphans = snapshot.pods, snapshot.orphans
    if orphans:
        nodes = tuple(dict.fromkeys(pods.node_names[row] for row in orphans))
        yield OrphanedPods(pods=tuple(pods.key(row) for row in orphans), nodes=nodes)
    if snapshot.source.left_out:
        yield FilesLeftOut(files=tuple(snapshot.source.left_out))
    finished = _finished_pods(snapshot)
    if finished:
        yield FinishedPods(pods=finished)


def _finished_pods(snapshot: Snapshot) -> int:
    """How many pods that have finished, and no API server has stored, count on nodes: some releases do that."""
    pods = snapshot.pods
    if not pods.counts_finished:
        return 0
    return int(np.count_nonzero(pods.finished_unstored & (pods.node >= 0)))


def _of_course(cycle: Cycle) -> Iterator[CycleNote]:
    """Which nodes were looked at, and how one of them is chosen."""
    feasible = cycle.feasible
    if cycle.outcome is Outcome.GATED:
        gates = tuple(gate.name for gate in cycle.pod.spec.scheduling_gates)
        held = (status.plugin for status in cycle.pre_enqueue if not (status.is_success or status.is_skip))
        yield Gated(gates=gates or (next(held, ""),))
    if (bound := bound_by_hand(cycle)) is not None:
        yield bound
    elif cycle.nominated is not None:
        yield NominatedNodeFirst(node=cycle.pod.status.nominated_node_name)
    elif cycle.nodes is not None and feasible is not None and len(feasible):
        wanted = nodes_to_find(cycle.profile.percentage_of_nodes_to_score, len(cycle.nodes))
        if len(feasible) > wanted:
            yield Sampling(nodes_to_find=wanted, feasible=len(feasible))
        if len(feasible) == 1 and not cycle.release.behaviour.single_node_is_scored:
            yield SingleFeasibleNode()
    if len(cycle.choice) > 1:
        names = cycle.all_nodes.cluster.names
        tied = tuple(names[row] for row in cycle.choice)
        yield Tie(nodes=tied, takes_turns=cycle.release.behaviour.best_nodes_take_turns)
    nodes = cycle.all_nodes.cluster.nodes
    unready = tuple(nodes[row].name for row in cycle.choice if _is_untainted_though_not_ready(nodes[row]))
    if unready:
        yield NotReadyNodes(nodes=unready)


def _is_untainted_though_not_ready(node: Node) -> bool:
    """Its kubelet says nothing or is not ready, and nobody has tainted it so."""
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "True")
    return ready != "True" and not any(taint.key in _OF_READINESS for taint in node.spec.taints)


def _of_extenders(cycle: Cycle) -> Iterator[Note]:
    if cycle.extenders is None:
        return
    from kschedx.explain.extender_notes import extender_notes  # most configurations have none

    yield from extender_notes(cycle)

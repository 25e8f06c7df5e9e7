"""What a reader has to know to trust the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct, field

from kschedx.explain.device_notes import device_notes
from kschedx.explain.missing import missing_notes
from kschedx.explain.recorded import differences, recorded
from kschedx.explain.storage_notes import storage_notes
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.unheard import Kind, Stake, Unheard, open_stake
from kschedx.snapshot.events import FailedScheduling
from kschedx.snapshot.snapshot import Snapshot

SHOWN = 3
"""Names in a note."""
MIN_FEASIBLE_NODES = 100
"""kube-scheduler evaluates every node of a cluster that is smaller than this."""
MIN_PERCENTAGE = 5


class Note(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    facts: dict[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        return {"id": self.id, "text": self.text} | self.facts


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
    unread = (Note(id=name, text=text, facts=facts) for name, text, facts in missing_notes(cycle))
    extended = () if cycle.extenders is None else tuple(_of_extenders(cycle))
    return (
        *_notes(cycle),
        *extended,
        *unread,
        *(Note(id=name, text=text) for name, text in storage_notes(cycle.snapshot, cycle.pod)),
        *(Note(id=name, text=text) for name, text in device_notes(cycle.snapshot, cycle.pod, cycle.release)),
    )


def _of_extenders(cycle: Cycle) -> Iterator[Note]:
    from kschedx.explain.extender_notes import extender_notes  # most configurations have none

    return (Note(id=name, text=text, facts=facts) for name, text, facts in extender_notes(cycle))


def _finished_pods(cycle: Cycle) -> int:
    """How many pods that have finished, and no API server has stored, count on nodes: some releases do that."""
    pods = cycle.snapshot.pods
    if not pods.counts_finished:
        return 0
    return int(np.count_nonzero(pods.finished_unstored & (pods.node >= 0)))


def _recorded_note(theirs: FailedScheduling, differs: Sequence[str]) -> Note:
    times = f", {theirs.count:,} times" if theirs.count > 1 else ""
    whole, _, fraction = theirs.last_seen.partition(".")
    seen = f" (last seen {whole}{'Z' if fraction else ''}{times})" if theirs.last_seen else ""
    facts: dict[str, object] = {"count": theirs.count, "lastSeen": theirs.last_seen} if theirs.last_seen else {}
    text = f"the cluster's own event{seen} differs: {'; '.join(differs)}"
    return Note(
        id="recorded-event",
        text=text if differs else f"the cluster's own event{seen} says the same",
        facts={"message": theirs.message, "differences": list(differs)} | facts,
    )


def _unknown_plugins(cycle: Cycle) -> Iterator[Note]:
    """The plugins that were left out, named once, with what the answer is worth without them."""
    left_out = [one for one in cycle.unheard if one.kind is Kind.PLUGIN]
    if not left_out:
        return
    stands = cycle.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR)
    if stands:
        worth = ": the answer stands whatever they would say"
    elif all(one.is_waived for one in left_out):
        worth = ", as you asked"
    elif open_stake(left_out) is Stake.FIT:
        worth = " (--without-unknown-plugins: answer as if none of them rejected it)"
    else:
        worth = ""
    told = []
    for does, stake in (("could reject the pod", Stake.FIT), ("could prefer another node", Stake.NODE)):
        mattering = [one for one in left_out if one.stake is stake and not (stands or one.is_waived)]
        if mattering:
            told.append(f"{_placed(mattering)} {does}")
    if others := [one for one in left_out if stands or one.is_waived or one.stake is Stake.NOTHING]:
        told.append(_placed(others))
    text = f"plugins that kschedx does not have were left out{worth}: {'; '.join(told)}"
    yield Note(id="unknown-plugin", text=text, facts={"plugins": [one.name for one in left_out]})


def _placed(plugins: Iterable[Unheard]) -> str:
    """`LicenseSeats (filter), CarbonAware (score)`."""
    return ", ".join(f"{one.name} ({', '.join(one.where)})" for one in plugins)


def _cluster_notes(snapshot: Snapshot) -> Iterator[Note]:
    """What was left out of the cluster that was read."""
    pods, orphans = snapshot.pods, snapshot.orphans
    if orphans:
        nodes = tuple(dict.fromkeys(pods.node_names[row] for row in orphans))
        run, count = ("runs", "counts") if len(orphans) == 1 else ("run", "count")
        these = f"{len(orphans):,} pod{'' if len(orphans) == 1 else 's'}"
        text = f"{these} {run} on nodes that are not there and {count} nowhere: {_some(nodes)}"
        yield Note(id="orphans", text=text, facts={"pods": [pods.key(row) for row in orphans], "nodes": list(nodes)})
    left_out = snapshot.source.left_out
    if left_out:
        text = f"left out, since there are no Kubernetes objects in it: {_some(left_out)}"
        yield Note(id="left-out", text=text, facts={"files": list(left_out)})


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _notes(cycle: Cycle) -> list[Note]:
    found: list[Note] = [*_unknown_plugins(cycle)]
    if not cycle.release.is_measured:
        text = (
            f"kschedx was not measured against kube-scheduler {cycle.release.version}: its gates are as published, the "
            "rest is as in the release before"
        )
        found.append(Note(id="not-measured", text=text))
    theirs = recorded(cycle.snapshot, cycle.pod)
    if theirs is not None:
        found.append(
            _recorded_note(
                theirs, differences(theirs, cycle.message, nominated=bool(cycle.pod.status.nominated_node_name))
            )
        )
    found += _cluster_notes(cycle.snapshot)
    finished = _finished_pods(cycle)
    if finished:
        text = f"{finished:,} finished pods count on their nodes: leave them out of the input, as an API server does"
        found.append(Note(id="finished-pods", text=text, facts={"pods": finished}))
    names = cycle.all_nodes.cluster.names
    feasible = cycle.feasible
    if cycle.outcome is Outcome.GATED:
        held = (status.plugin for status in cycle.pre_enqueue if not (status.is_success or status.is_skip))
        gates = ", ".join(gate.name for gate in cycle.pod.spec.scheduling_gates) or next(held, "")
        found.append(Note(id="gated", text=f"gated by {gates}: the rest is evaluated as if the gates were lifted"))
    if cycle.nominated is not None:
        name = cycle.pod.status.nominated_node_name
        found.append(
            Note(id="nominated-node-first", text=f"nominated node {name} is tried first and fits: no other node counts")
        )
    elif cycle.nodes is not None and feasible is not None and len(feasible):
        wanted = nodes_to_find(cycle.profile.percentage_of_nodes_to_score, len(cycle.nodes))
        if len(feasible) > wanted:
            found.append(
                Note(
                    id="sampling",
                    text=f"kube-scheduler stops after {wanted:,} feasible nodes of {len(feasible):,}, from a start "
                    "that moves; kschedx evaluated all",
                    facts={"nodesToFind": wanted, "feasible": len(feasible)},
                )
            )
        if len(feasible) == 1 and not cycle.release.behaviour.single_node_is_scored:
            found.append(Note(id="single-feasible-node", text="one node is feasible: kube-scheduler takes it unscored"))
    if len(cycle.choice) > 1:
        tied = [names[row] for row in cycle.choice]
        turns = cycle.release.behaviour.best_nodes_take_turns
        told = "they take turns" if turns else "kube-scheduler picks one at random"
        found.append(
            Note(
                id="tie",
                text=f"{len(tied):,} nodes share the highest total: {told}",
                facts={"nodes": tied},
            )
        )
    return found

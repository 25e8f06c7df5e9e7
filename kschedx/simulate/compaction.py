"""Nodes that can be emptied together: they are drained one after the other, as long as every pod fits another node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from kschedx.explain.setup import Setup
from kschedx.kube.documents import Document, part_of
from kschedx.simulate.drain import STAYS, DrainOutcome
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot

MOST_TRIED = 100
"""Nodes, those with the fewest pods first."""


class PodMove(Document, frozen=True):
    pod: str
    source: str = field(name="from")
    to: str


class EmptiedDocument(Document, frozen=True):
    nodes: tuple[str, ...]
    moves: tuple[PodMove, ...]
    blocked: Mapping[str, str]
    not_tried: int
    price: str | None


class EmptiedTogether(Struct, frozen=True, kw_only=True):
    """Nodes that are drained one after the other, and stay cordoned."""

    nodes: tuple[str, ...]
    moves: Mapping[str, tuple[str, str]]
    """Pods, `namespace/name`, to their old and new nodes."""
    blocked: Mapping[str, str]
    """Other nodes that were tried, to why they are not emptied."""
    not_tried: int
    prices: Mapping[str, float | None]
    """Per hour; None if unknown."""

    @property
    def price(self) -> float | None:
        """The price of all nodes per hour; None if the price of one is unknown."""
        known = [price for price in self.prices.values() if price is not None]
        return sum(known) if known and len(known) == len(self.prices) else None

    @property
    def document(self) -> EmptiedDocument:
        moves = tuple(PodMove(pod, source, to) for pod, (source, to) in self.moves.items())
        return part_of(EmptiedDocument, self, moves=moves, price=None if self.price is None else f"{self.price:.4f}")


def empty_together(
    snapshot: Snapshot, setup: Setup, names: Sequence[str], price_of: Callable[[str], float | None]
) -> EmptiedTogether:
    """Drain these nodes within budgets, those with the fewest pods first. The drain of a node is undone if a pod would
    stay on it or stay pending. Nothing is preempted for a pod that moves."""
    simulator = Simulator(snapshot, setup, SimulationOptions(force=True, delete_emptydir_data=True))
    cluster = simulator.run.cluster
    index = cluster.snapshot.cluster.index
    order = sorted(names, key=lambda name: (len(cluster.pods.on_node(index[name])), name))[:MOST_TRIED]
    emptied: list[str] = []
    moves: dict[str, tuple[str, str]] = {}
    blocked: dict[str, str] = {}
    for name in order:
        mark, record = simulator.mark(), simulator.queue.mark()
        simulator.drain([name], comes_back=False)
        [drained] = simulator.drained
        simulator.drained.clear()
        stays = drained.of(*STAYS)
        lost = drained.of(DrainOutcome.DELETED)
        preempts = any(step.victims for step in simulator.queue.steps[record.steps :])
        why = ""
        if stays:
            why = f"PDB {stays[0].budget} blocks the eviction of {stays[0].pod}"
        elif lost:
            why = f"no controller recreates {lost[0].pod}"
        elif drained.pending:
            why = f"{drained.pending[0].pod} fits no other node"
        elif preempts:
            why = "its pods would preempt others"
        if why:
            blocked[name] = why
            simulator.revert(mark)
            simulator.queue.rewind(record)
            continue
        emptied.append(name)
        for pod in drained.of(DrainOutcome.EVICTED):
            source = moves.get(pod.pod, (name, ""))[0]
            moves[pod.pod] = source, pod.node
    prices = {name: price_of(name) for name in emptied}
    not_tried = len(names) - len(order)
    return EmptiedTogether(nodes=tuple(emptied), moves=moves, blocked=blocked, not_tried=not_tried, prices=prices)

"""How pods of one template take the place of those of another, step by step, each followed by the queue.

Sources of the rules: pkg/controller/deployment/rolling.go, pkg/controller/statefulset/stateful_set_control.go and
pkg/controller/daemon/update.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from kschedx.controllers.daemon_sets import home_node
from kschedx.controllers.update_strategy import (
    NEXT,
    DaemonSetUpdate,
    NoRollout,
    RollingUpdate,
    Rollout,
    StatefulSetUpdate,
    UpdateStrategy,
)
from kschedx.controllers.workloads import Workload, deletion_order, ordinal_of
from kschedx.explain.admission import Ledger
from kschedx.kube.resource_quota import not_created
from kschedx.kube.types import Pod
from kschedx.kube.workloads import pinned_to
from kschedx.simulate.simulator import Simulator


class RolloutResult(Struct, frozen=True, kw_only=True):
    """How far a rollout came."""

    workload: Workload
    strategy: UpdateStrategy
    old: int
    """Pods of the template before, those not counted that keep it."""
    replaced: int
    """How many of them are gone."""
    waiting: int
    """Pods of the new template that find no node."""
    refusal: str = ""
    """Why the API server takes no more of them, in the words of their controller."""

    @property
    def is_done(self) -> bool:
        return self.replaced == self.old and not self.waiting and not self.refusal

    def to_dict(self) -> dict[str, object]:
        return {
            "workload": self.workload.reference,
            "old": self.old,
            "replaced": self.replaced,
            "waiting": self.waiting,
            "done": self.is_done,
            **({"refusal": self.refusal} if self.refusal else {}),
        }


def roll_out(simulator: Simulator, rollout: Rollout, quotas: Ledger) -> RolloutResult:
    """Until all pods are replaced, or those that are made find no node, or quotas let no more in."""
    refusal = ""
    pods = simulator.run.cluster.pods
    old, new = ([pods.rows[key] for key in keys] for keys in (rollout.old, rollout.new))
    match rollout.strategy:
        case RollingUpdate():
            refusal = roll(simulator, rollout.workload, rollout.strategy, old, new, quotas)
        case StatefulSetUpdate():
            old = [row for row in old if ordinal_of(pods.names[row]) >= rollout.strategy.partition]
            refusal = update_stateful_set(simulator, rollout.strategy, old, new, quotas)
        case DaemonSetUpdate():
            _by_node(simulator, rollout.strategy, old, new)
        case NoRollout():
            old = []
        case _:
            assert_never(rollout.strategy)
    gone = simulator.left
    waiting = sum(simulator.run.cluster.pods.node[row] < 0 and row not in simulator.unmade for row in new)
    return RolloutResult(
        workload=rollout.workload,
        strategy=rollout.strategy,
        old=len(old),
        replaced=sum(row in gone for row in old),
        waiting=int(waiting),
        refusal=refusal,
    )


def roll(
    simulator: Simulator,
    workload: Workload,
    rolling: RollingUpdate,
    old: Sequence[int],
    new: Sequence[int],
    quotas: Ledger | None = None,
) -> str:
    """Replace the pods in the rows `old` by those in the rows `new`, which are as many as are wanted, until all are, or
    until those that are made find no node, or no more are made: why the API server refuses those, else empty."""
    cluster, queue = simulator.run.cluster, simulator.queue
    least = len(new) - rolling.unavailable
    left, unmade, made = list(old), list(new), list[int]()
    refusal = ""
    while True:
        more = min(max(len(new) + rolling.surge - len(left) - len(made), 0), len(unmade))
        if quotas is not None:
            more, refusal = _allowed([cluster.pods[row] for row in unmade[:more]], quotas)
        simulator.make(unmade[:more])
        made, unmade = made + unmade[:more], unmade[more:]
        queue.run(queue.order(row for row in made if cluster.pods.node[row] < 0))
        waiting = sum(int(cluster.pods.node[row] < 0) for row in made)
        here = len(left) + len(made)
        fewer = max(min(here - least - waiting, len(left)), 0)
        for row in deletion_order(simulator.run.snapshot, workload, left)[:fewer]:
            if quotas is not None:
                quotas.give(cluster.pods[row])
            simulator.take(row)
            left.remove(row)
        if not more and not fewer:
            return refusal


def _allowed(pods: Sequence[Pod], quotas: Ledger) -> tuple[int, str]:
    """How many of them quotas let in, and why not the next."""
    for number, pod in enumerate(pods):
        refusal = quotas.take(pod)
        if refusal is not None:
            return number, not_created(pod, refusal)
    return len(pods), ""


def update_stateful_set(
    simulator: Simulator,
    strategy: StatefulSetUpdate,
    old: Sequence[int],
    new: Sequence[int],
    quotas: Ledger | None = None,
) -> str:
    """Each new pod has the name of the one whose place it takes; those with a name of their own come first. As for
    `roll`, why the API server refuses one, else empty."""
    cluster, queue = simulator.run.cluster, simulator.queue
    if strategy.is_ordered and any(cluster.pods.node[row] < 0 for row in old):
        return ""
    names = {cluster.pods.names[row] for row in old}
    successor = {cluster.pods.names[row].removesuffix(NEXT): row for row in new}
    made = [row for name, row in successor.items() if name not in names]
    simulator.make(made)
    queue.run(queue.order(made))
    left = sorted(old, key=lambda row: -ordinal_of(cluster.pods.names[row]))
    while left:
        waiting = [row for row in made if cluster.pods.node[row] < 0]
        turn = left[: max(strategy.unavailable - len(waiting), 0)]
        if not turn:
            return ""
        for row in turn:
            name = cluster.pods.names[row]
            if quotas is not None:
                quotas.give(cluster.pods[row])
            simulator.take(row)
            queue.rename(successor[name], name)
            refusal = None if quotas is None else quotas.take(cluster.pods[successor[name]])
            if refusal is not None:
                return not_created(cluster.pods[successor[name]], refusal)
            simulator.make([successor[name]])
            made.append(successor[name])
        left = left[len(turn) :]
        queue.run(queue.order(row for row in made if cluster.pods.node[row] < 0))
    return ""


def _by_node(simulator: Simulator, strategy: DaemonSetUpdate, old: Sequence[int], new: Sequence[int]) -> None:
    """On each node a new pod for the old one: after it, or with a surge before it."""
    cluster, queue = simulator.run.cluster, simulator.queue
    pods = cluster.pods
    successor = {pinned_to(pods.specs[row]): row for row in new}
    left = {home_node(pods, row): row for row in old}
    made: dict[str, int] = {}
    while True:
        waiting = [name for name, row in made.items() if cluster.pods.node[row] < 0]
        ahead = [name for name in left if name not in made]
        lost = [name for name in ahead if cluster.pods.node[left[name]] < 0]
        free = max((strategy.surge or strategy.unavailable) - len(waiting) - (0 if strategy.surge else len(lost)), 0)
        turn = [*lost, *[name for name in ahead if name not in lost][:free]]
        for name in turn:
            if not strategy.surge or name not in successor:
                simulator.take(left.pop(name))
            if name in successor:
                simulator.make([successor[name]])
                made[name] = successor[name]
        queue.run(queue.order(row for row in made.values() if cluster.pods.node[row] < 0))
        for name in [name for name in left if name in made and cluster.pods.node[made[name]] >= 0]:
            simulator.take(left.pop(name))
        if not turn:
            return

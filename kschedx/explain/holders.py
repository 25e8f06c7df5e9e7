"""Who holds what a node lacks, and whether evicting somebody would make room."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from msgspec import Struct

from kschedx.explain.blockers import NodeAccount
from kschedx.findings import InsufficientResource
from kschedx.framework.cycle import Cycle
from kschedx.framework.outcome import Candidate
from kschedx.framework.status import Code
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.rows import ClusterRow, TableRow

PREEMPT_NEVER = "Never"


class Holder(Struct, frozen=True, kw_only=True):
    """A pod on a node."""

    pod: str
    """`namespace/name`."""
    priority: int
    amount: int
    """Of the resource in question, in the integers of plugins; 0 where it is not about one."""


class Holders(Struct, frozen=True, kw_only=True):
    """The pods that hold a resource on a node, largest first."""

    resource: str
    pods: tuple[Holder, ...]

    @property
    def total(self) -> int:
        return sum(pod.amount for pod in self.pods)


class Answer(StrEnum):
    """Whether evicting pods from a node helps."""

    HELPS = "helps"
    """The node is a preemption candidate."""
    UNRESOLVABLE = "unresolvable"
    """Whatever runs there: the node itself does not suit."""
    NOT_ALLOWED = "not-allowed"
    """The pod's preemptionPolicy is Never."""
    NO_LOWER_PRIORITY = "no-lower-priority"
    NOT_ENOUGH = "not-enough"
    """Even without all pods of lower priority the pod would not fit."""
    NOT_TRIED = "not-tried"
    """No PostFilter plugin looked at the node."""


class Eviction(Struct, frozen=True, kw_only=True):
    answer: Answer
    plugin: str = ""
    """The plugin that makes it unresolvable."""
    victims: tuple[Holder, ...] = ()
    """Where it helps: the pods that would go, most important first."""
    pdb_violations: int = 0
    lower: int = 0
    """How many pods on the node have a lower priority."""
    enough: tuple[Holder, ...] = ()
    """Pods of any priority that would make room by leaving alone; only where resources are all that is missing."""


def holders(cycle: Cycle, row: TableRow, resource: str) -> Holders:
    """The pods on a node (a row of `cycle.nodes`) that ask for a resource."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    column = nodes.resources.index.get(resource)
    if column is None:
        return Holders(resource=resource, pods=())
    rows = nodes.pods_on(row)
    amounts = nodes.requests.matrix[rows, column]
    order = np.argsort(-amounts, kind="stable")
    return Holders(
        resource=resource,
        pods=tuple(_holder(cycle, int(rows[i]), int(amounts[i])) for i in order if amounts[i] > 0),
    )


def _holder(cycle: Cycle, pod: int, amount: int) -> Holder:
    pods = cycle.snapshot.pods
    return Holder(pod=pods.key(pod), priority=int(pods.priorities[pod]), amount=amount)


def candidate_on(cycle: Cycle, node: ClusterRow) -> Candidate | None:
    """The preemption candidate on a node, a row of the whole cluster."""
    candidates = cycle.post_filter.candidates if cycle.post_filter else ()
    return next((candidate for candidate in candidates if candidate.node == node), None)


def victims(cycle: Cycle, candidate: Candidate) -> tuple[Holder, ...]:
    """The pods that a candidate would lose, most important first."""
    return tuple(_holder(cycle, row, 0) for row in candidate.victims)


def eviction(cycle: Cycle, account: NodeAccount) -> Eviction:
    """Whether evicting pods from a node would let the pod in, as preemption found by trying."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    candidate = candidate_on(cycle, nodes.cluster_row(account.row))
    rows = nodes.pods_on(account.row)
    lower = int(np.count_nonzero(nodes.pods.priorities[rows] < cycle.pod.priority))
    if candidate is not None:
        return Eviction(
            answer=Answer.HELPS,
            victims=victims(cycle, candidate),
            pdb_violations=candidate.pdb_violations,
            lower=lower,
        )
    unresolvable = next((one.plugin for one in account.blockers if one.code is not Code.UNSCHEDULABLE), "")
    if unresolvable:
        return Eviction(answer=Answer.UNRESOLVABLE, plugin=unresolvable)
    enough = _enough(cycle, account)
    if cycle.pod.spec.preemption_policy == PREEMPT_NEVER:
        return Eviction(answer=Answer.NOT_ALLOWED, lower=lower, enough=enough)
    if not lower:
        return Eviction(answer=Answer.NO_LOWER_PRIORITY, enough=enough)
    if cycle.post_filter is None or cycle.post_filter.dry_run is None:
        return Eviction(answer=Answer.NOT_TRIED, lower=lower, enough=enough)
    return Eviction(answer=Answer.NOT_ENOUGH, lower=lower, enough=enough)


def _enough(cycle: Cycle, account: NodeAccount) -> tuple[Holder, ...]:
    """Pods each of which frees every resource that is short, smallest first."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    short = [finding for finding in account.findings if isinstance(finding, InsufficientResource)]
    if not short or len(short) != len(account.findings):
        return ()
    if any(finding.resource not in nodes.resources.index for finding in short):
        return ()  # nobody in the cluster asks for it or offers it
    rows = nodes.pods_on(account.row)
    columns = [nodes.resources.index[finding.resource] for finding in short]
    held = nodes.requests.matrix[rows][:, columns]
    missing = np.array([finding.short_by for finding in short], dtype=np.int64)
    suffices: BoolArray = np.all(held >= missing, axis=1)
    order = np.argsort(held[:, 0], kind="stable")
    return tuple(_holder(cycle, int(rows[i]), int(held[i, 0])) for i in order if suffices[i])

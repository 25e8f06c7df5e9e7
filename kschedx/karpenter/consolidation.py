"""Which of its nodes Karpenter removes, alone and together, and what that saves: emptiness, drift, and consolidation
of several nodes and of one.

Upstream: controllers/disruption (emptiness.go, drift.go, consolidation.go, multinodeconsolidation.go,
singlenodeconsolidation.go; balanced.go since 1.14). That Karpenter validates a command again after 15 s, and its
timeouts, are left out: nothing changes meanwhile.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.karpenter.cluster import Karpenter
from kschedx.karpenter.disruption import (
    BALANCED_THRESHOLD,
    BLOCKED,
    NODE_COST,
    NodeDisruption,
    disruption_cost,
    disruptions,
    eviction_cost,
    is_active,
    is_invalid,
    is_reschedulable,
    pods_on,
    price_fractions,
)
from kschedx.karpenter.instance_types import InstanceType, min_values_unmet, too_few_text
from kschedx.karpenter.node_claims import NewNodeClaim
from kschedx.karpenter.nodes import StateNode
from kschedx.karpenter.requirements import RESERVED, LabelRequirement, Requirements
from kschedx.karpenter.scheduler import RoundResult
from kschedx.kube.autoscalers import BALANCED, CAPACITY_TYPE, NodeClaim, NodePool
from kschedx.kube.conditions import condition_of
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import INSTANCE_TYPE, ZONE
from kschedx.kube.scalars import parse_int64, scale_percent
from kschedx.kube.types import Pod

_SPOT, _ON_DEMAND = "spot", "on-demand"
_MOST_NODES = 100  # the maximum number of nodes that are consolidated together
_MOST_ALONE = 50
_MOST_LOOKS = 50_000
"""The maximum number of nodes that are tried alone, times the nodes of the cluster: each trial is a round over the
cluster."""
_SPOT_TYPES = 15  # the number of cheaper types that spot-to-spot consolidation requires
_NO_LIMIT = 2**31 - 1  # of a pool none of whose budgets applies
_OVER_BUDGET = "No allowed disruptions due to blocking budget"
NOT_TRIED = "not tried alone: name the node"
PRICES_UNKNOWN = "prices are not known: add them with --instance-types"
"""Why it is undecided whether a cheaper node replaces a node."""


class Method(StrEnum):
    """Disruption methods in Karpenter's order."""

    EMPTINESS = "emptiness"
    DRIFT = "drift"
    MULTI_NODE = "multi-node"
    SINGLE_NODE = "single-node"


_REASON = {
    Method.EMPTINESS: "Empty",
    Method.DRIFT: "Drifted",
    Method.MULTI_NODE: "Underutilized",
    Method.SINGLE_NODE: "Underutilized",
}
"""The names of the reasons in a NodePool's budgets."""

_TOGETHER = (Method.EMPTINESS, Method.MULTI_NODE)  # the methods of which a command takes several nodes


class CommandDocument(Document, frozen=True):
    """Prices are per hour, as texts because numbers in documents are integers; None if unknown."""

    method: Method
    action: Literal["delete", "replace"]
    nodes: tuple[str, ...]
    replacements: int
    types: tuple[str, ...] = field(name="instanceTypes")
    price: str | None
    new_price: str | None
    savings: str | None
    scores: Mapping[str, str]


class Command(Struct, frozen=True, kw_only=True):
    """Nodes that are deleted together, and the node that replaces them."""

    method: Method
    nodes: tuple[str, ...]
    replacements: int = 0  # the number of new nodes; more than one only for drift
    types: tuple[str, ...] = ()  # possible instance types of the replacement, cheapest first
    price: float | None = None  # the price of the nodes per hour; None if unknown
    new_price: float | None = None
    scores: Mapping[str, float] = {}
    """By the pools with the policy Balanced: the saved fraction of the pool's cost, divided by the fraction of the cost
    of disrupting the whole pool."""

    @property
    def savings(self) -> float | None:
        if self.price is None or (self.replacements and self.new_price is None):
            return None
        return self.price - (self.new_price or 0.0)

    @property
    def document(self) -> CommandDocument:
        return part_of(
            CommandDocument,
            self,
            action="replace" if self.replacements else "delete",
            price=_money(self.price),
            new_price=_money(self.new_price),
            savings=_money(self.savings),
            scores={pool: f"{score:.2f}" for pool, score in self.scores.items()},
        )


def _money(price: float | None) -> str | None:
    return None if price is None else f"{price:.4f}"


class ConsolidationDocument(Document, frozen=True):
    follows: str
    commands: tuple[CommandDocument, ...]
    kept: Mapping[str, str]
    prices: Mapping[str, str | None]
    by_chance: bool


class Consolidation(Struct, frozen=True, kw_only=True, dict=True):
    """Karpenter's commands, each computed as if it were the only one."""

    follows: str  # the version of Karpenter
    commands: tuple[Command, ...]  # by method; Karpenter runs the first one first
    kept: Mapping[str, str]  # candidates without a command to the reason, in Karpenter's words
    prices: Mapping[str, float | None]  # price per hour by node, for all nodes of pools
    budgets_at: str = ""  # the time at which scheduled budgets were evaluated; empty without any
    by_chance: bool = False

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes of all commands."""
        return frozenset(name for command in self.commands for name in command.nodes)

    @property
    def document(self) -> ConsolidationDocument:
        prices = {name: _money(price) for name, price in self.prices.items()}
        return part_of(ConsolidationDocument, self, commands=tuple(it.document for it in self.commands), prices=prices)


class _Candidate(Struct, frozen=True, kw_only=True):
    state: StateNode
    pool: NodePool
    price: float | None
    pods: tuple[Pod, ...]  # the pods that need another node
    is_consolidatable: bool
    is_drifted: bool
    drifted_since: str

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def instance_type(self) -> str:
        return self.state.labels.get(INSTANCE_TYPE, "")

    @property
    def eviction_cost(self) -> float:
        return sum(map(eviction_cost, self.pods))

    @property
    def disruption_cost(self) -> float:
        return disruption_cost(self.pods)


class Consolidator:
    """Karpenter's disruption controller on one cluster."""

    def __init__(self, karpenter: Karpenter, only: Collection[str] | None = None) -> None:
        """`only` are the nodes that are tried alone; by default the first ones."""
        self._karpenter = karpenter
        self._only = None if only is None else frozenset(only)
        self._snapshot = karpenter.snapshot
        self._now = karpenter.snapshot.moment()
        self._pools = karpenter.by_name
        both = (node for node in karpenter.cluster.staying if node.claim is not None and node.node is not None)
        self._states = {node.name: node for node in both if node.is_registered}
        self._prices = {name: self._price(node) for name, node in self._states.items()}
        self._kept: dict[str, str] = {}
        self._by_chance = False
        self._buffers = {pod.key for pod in karpenter.buffers}  # virtual pods of CapacityBuffers
        self._is_newer = karpenter.settings.behavior.moves_are_balanced
        self._candidates = [
            candidate
            for disruption in disruptions(self._snapshot, self._states)
            if (candidate := self._candidate(disruption)) is not None
        ]

    def run(self) -> Consolidation:
        """Run every method on the current cluster."""
        commands = [*self._emptiness(), *self._drift(), *self._multi_node(), *self._single_node()]
        taken = {name for command in commands for name in command.nodes}
        budgets = [budget for pool in self._pools.values() for budget in pool.spec.disruption.budgets]
        return Consolidation(
            follows=self._karpenter.settings.rules_version,
            commands=tuple(commands),
            kept={name: why for name, why in self._kept.items() if name not in taken},
            prices=self._prices,
            budgets_at=_text(self._now) if any(budget.schedule is not None for budget in budgets) else "",
            by_chance=self._by_chance,
        )

    # --- candidates

    def _candidate(self, disruption: NodeDisruption) -> _Candidate | None:
        state = self._states[disruption.node]
        pool = self._pools.get(state.pool)
        blocked = next((obstacle.text for obstacle in disruption.obstacles if obstacle.reason == BLOCKED), "")
        if blocked or pool is None or state.claim is None:
            self._kept[disruption.node] = blocked
            return None
        drifted = condition_of(state.claim.status.conditions, "Drifted")
        candidate = _Candidate(
            state=state,
            pool=pool,
            price=self._prices[disruption.node],
            pods=tuple(filter(is_reschedulable, pods_on(self._snapshot, state))),
            is_consolidatable=disruption.is_consolidatable,
            is_drifted=disruption.goes_by_drift and pool.spec.replicas is None,
            drifted_since="" if drifted is None else drifted.last_transition_time or "",
        )
        unfit = next((obstacle.text for obstacle in disruption.obstacles), "")
        if disruption.goes_by_drift:
            pass  # what only consolidation requires does not keep it
        elif unfit:
            self._kept[disruption.node] = unfit
        elif not disruption.is_consolidatable:
            self._kept[disruption.node] = "its NodeClaim is not Consolidatable"
        is_fit = not (unfit or disruption.guarded or disruption.protected)
        return replace(candidate, is_consolidatable=candidate.is_consolidatable and is_fit)

    def _price(self, state: StateNode) -> float | None:
        known = self._karpenter.known.get(state.pool)
        types = () if known is None else known.types
        named, place = state.labels.get(INSTANCE_TYPE), (state.labels.get(ZONE), state.labels.get(CAPACITY_TYPE))
        offerings = next((instance_type.offerings for instance_type in types if instance_type.name == named), ())
        prices = [it.price for it in offerings if (it.zone, it.capacity_type) == place and it.price is not None]
        return min(prices, default=None)

    def _allowed_disruptions(self, method: Method) -> Counter[str]:
        """Return how many nodes of each pool its budgets allow to disrupt, besides those that leave or are not ready
        (BuildDisruptionBudgetMapping in controllers/disruption/helpers.go)."""
        allowed, cluster = Counter[str](), self._karpenter.cluster
        for pool in self._pools.values():
            its = [
                node
                for node in (*cluster.staying, *cluster.leaving)
                if node.pool == pool.name and node.is_initialized and not node.is_terminated
            ]
            away = sum(node.is_leaving or not node.is_ready for node in its)
            limits = [
                0 if is_invalid(budget) else scale_percent(_number(budget.nodes), len(its), is_up=True) or 0
                for budget in pool.spec.disruption.budgets
                if (budget.reasons is None or _REASON[method] in budget.reasons)
                and (is_invalid(budget) or is_active(budget, self._now))
            ]
            allowed[pool.name] = max(min(limits, default=_NO_LIMIT) - away, 0)
        return allowed

    def _apply_budgets(self, candidates: Iterable[_Candidate], method: Method) -> list[_Candidate]:
        """Return the candidates that the budgets allow to disrupt: the first ones together, or any one of them if a
        command of the method takes one node."""
        allowed, allowed_candidates = self._allowed_disruptions(method), list[_Candidate]()
        for candidate in candidates:
            if allowed[candidate.pool.name]:
                allowed[candidate.pool.name] -= method in _TOGETHER
                allowed_candidates.append(candidate)
            else:
                self._kept.setdefault(candidate.name, _OVER_BUDGET)
        return allowed_candidates

    def _is_empty(self, candidate: _Candidate) -> bool:
        return candidate.disruption_cost <= NODE_COST if self._is_newer else not candidate.pods

    def _sort_candidates(self) -> list[_Candidate]:
        """Return the candidates of consolidation in the order in which they are tried."""
        policies = ("WhenEmptyOrUnderutilized", BALANCED) if self._is_newer else ("WhenEmptyOrUnderutilized",)
        candidates = [
            candidate
            for candidate in self._candidates
            if candidate.is_consolidatable and candidate.pool.spec.disruption.consolidation_policy in policies
            if not self._is_empty(candidate)  # the budgets for empty nodes decide about those
        ]
        if self._is_newer:
            return sorted(candidates, key=lambda candidate: -(candidate.price or 0.0) / candidate.disruption_cost)
        return sorted(candidates, key=lambda candidate: candidate.eviction_cost)

    # --- methods

    def _emptiness(self) -> list[Command]:
        empty = [it for it in self._candidates if it.is_consolidatable and self._is_empty(it)]
        if self._buffers:
            for candidate in empty:
                if self._buffers & {*self._karpenter.own.existing.get(candidate.name, ())}:
                    self._kept[candidate.name] = f'Node "{candidate.name}" has buffer pods'
            empty = [candidate for candidate in empty if candidate.name not in self._kept]
        going = self._apply_budgets(empty, Method.EMPTINESS)
        return [self._deletion_command(Method.EMPTINESS, going)] if going else []

    def _drift(self) -> list[Command]:
        """Take the first node that can be deleted: empty nodes first, then by the time of their drift. Every node is
        tried whose pool has a disruption left."""
        drifted = sorted(
            (candidate for candidate in self._candidates if candidate.is_drifted),
            key=lambda candidate: (bool(candidate.pods), candidate.drifted_since),
        )
        for candidate in self._apply_budgets(drifted, Method.DRIFT):
            result = self._simulate([candidate])
            if why := self._unplaced_reason(result, [candidate]):
                self._kept.setdefault(candidate.name, why)
            else:
                return [replace(self._deletion_command(Method.DRIFT, [candidate]), replacements=len(result.new))]
        return []

    def _multi_node(self) -> list[Command]:
        """Find the largest number of first candidates that can be deleted together, by binary search."""
        candidates = self._apply_budgets(self._sort_candidates(), Method.MULTI_NODE)[:_MOST_NODES]
        low, high, best = 1, len(candidates) - 1, list[Command]()
        while low <= high:
            middle = (low + high) // 2
            command = self._command(Method.MULTI_NODE, candidates[: middle + 1])
            if isinstance(command, Command) and self._is_approved(command):
                best, low = [command], middle + 1
            else:
                high = middle - 1
        return best

    def _single_node(self) -> list[Command]:
        """Return every candidate that can be deleted alone; Karpenter takes the first."""
        commands, ordered = [], self._apply_budgets(self._sort_candidates(), Method.SINGLE_NODE)
        most = min(_MOST_ALONE, max(_MOST_LOOKS // max(len(self._snapshot.cluster.nodes), 1), 1))
        only = {candidate.name for candidate in ordered[:most]} if self._only is None else self._only
        self._kept |= {candidate.name: NOT_TRIED for candidate in ordered if candidate.name not in only}
        for candidate in ordered:
            if candidate.name not in only:
                continue
            command = self._command(Method.SINGLE_NODE, [candidate])
            if isinstance(command, str):
                self._kept[candidate.name] = command
            elif not self._is_approved(command):
                score = min(command.scores.values())
                self._kept[candidate.name] = f"score {score:.2f} is below {BALANCED_THRESHOLD:.2f} (Balanced)"
            else:
                commands.append(command)
        return commands

    # --- one command

    def _deletion_command(self, method: Method, nodes: Sequence[_Candidate]) -> Command:
        prices = [node.price for node in nodes]
        known = [price for price in prices if price is not None]
        return Command(
            method=method,
            nodes=tuple(node.name for node in nodes),
            price=sum(known) if len(known) == len(prices) else None,
        )

    def _simulate(self, nodes: Sequence[_Candidate]) -> RoundResult:
        karpenter, leaving = self._karpenter, {node.state.claim.name for node in nodes if node.state.claim is not None}
        claims = []
        for claim in self._snapshot.of(NodeClaim):
            if claim.name in leaving:
                claim = replace(claim, metadata=replace(claim.metadata, deletion_timestamp="1970-01-01T00:00:00Z"))
            claims.append(claim)
        snapshot = replace(self._snapshot, objects={**self._snapshot.objects, NodeClaim: tuple(claims)})
        result = karpenter.provisioner.run(snapshot, karpenter.considered, leaving)
        self._by_chance |= result.by_chance
        return result

    def _unplaced_reason(self, result: RoundResult, nodes: Sequence[_Candidate]) -> str:
        """Return why a pod of the nodes has no other node, or an empty string."""
        own = [pod.key for node in nodes for pod in node.pods]
        failed = [(key, result.failures[key].text) for key in own if key in result.failures]
        if failed:
            phrase = ", ".join(f"{key} => {text}" for key, text in failed[:5])
            return f"Not all pods would schedule, {phrase}"
        starting = {node.name for node in self._karpenter.cluster.staying if not node.is_initialized}
        waits = [name for name, keys in result.existing.items() if name in starting and {*keys} & {*own}]
        return f"Not all pods would schedule, node {waits[0]} is not initialized" if waits else ""

    def _command(self, method: Method, nodes: Sequence[_Candidate]) -> Command | str:
        """Return the replacement of the nodes, or why there is none."""
        result = self._simulate(nodes)
        unplaced = self._unplaced_reason(result, nodes)
        if unplaced:
            return unplaced
        own = {pod.key for node in nodes for pod in node.pods}
        command = self._deletion_command(method, nodes)
        new = [claim for claim in result.new if (own | self._buffers) & {*claim.pods}]
        if not new:
            return self._score(command, nodes)
        if len(new) > 1:
            return f"Can't remove without creating {len(new)} candidates"
        if command.price is None:
            return PRICES_UNKNOWN
        [claim] = new
        is_spot = all(node.state.labels.get(CAPACITY_TYPE) == _SPOT for node in nodes)
        requirements = claim.requirements
        is_spot_again = is_spot and requirements.requirement(CAPACITY_TYPE).has(_SPOT)
        if is_spot_again:
            if not self._karpenter.settings.replaces_spot_with_spot:
                return "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
            requirements = requirements.together((LabelRequirement.of(CAPACITY_TYPE, "In", (_SPOT,)),))
        cheaper = self._cheaper(claim, requirements, command.price)
        if method is Method.MULTI_NODE:
            cheaper = self._cheaper(claim, requirements, min(command.price, self._same_type(cheaper, nodes)))
        if not cheaper:
            return "Can't replace with a cheaper node"
        if too_few := min_values_unmet(cheaper, requirements):
            return f"Filtering by price: {too_few_text(too_few)}"
        if is_spot_again and method is Method.SINGLE_NODE:
            if len(cheaper) < _SPOT_TYPES:
                return (
                    f"SpotToSpotConsolidation requires {_SPOT_TYPES} cheaper instance type options than the current "
                    f"candidate to consolidate, got {len(cheaper)}"
                )
            counts = range(_SPOT_TYPES, len(cheaper))
            enough = (most for most in counts if not min_values_unmet(cheaper[:most], requirements))
            cheaper = cheaper[: next(enough, len(cheaper))]
        prices = (_launch_price(instance_type, claim, requirements) for instance_type in cheaper)
        new_price = min(price for price in prices if price is not None)
        types = tuple(instance_type.name for instance_type in cheaper)
        return self._score(replace(command, replacements=1, types=types, new_price=new_price), nodes)

    @staticmethod
    def _cheaper(claim: NewNodeClaim, requirements: Requirements, price: float) -> list[InstanceType]:
        """Return the types whose most expensive possible offering costs less than `price`, cheapest first."""
        priced = [(_launch_price(instance_type, claim, requirements), instance_type) for instance_type in claim.types]
        known = [(its, instance_type) for its, instance_type in priced if its is not None and its < price]
        return [instance_type for _, instance_type in sorted(known, key=lambda it: (it[0], it[1].name))]

    @staticmethod
    def _same_type(types: Collection[InstanceType], nodes: Sequence[_Candidate]) -> float:
        """Return the price of the cheapest node with a type of the replacement: keeping that node is better."""
        names = {instance_type.name for instance_type in types}
        prices = [node.price for node in nodes if node.instance_type in names and node.price is not None]
        return min(prices, default=math.inf)

    # --- Balanced

    @cached_property
    def _costs(self) -> Mapping[str, float]:
        return {name: disruption_cost(pods_on(self._snapshot, state)) for name, state in self._states.items()}

    def _score(self, command: Command, nodes: Sequence[_Candidate]) -> Command | str:
        """Return the command with its scores, or why they are not known."""
        pools = {node.pool.name for node in nodes if node.pool.spec.disruption.consolidation_policy == BALANCED}
        scores = dict[str, float]()
        for name in sorted(pools):
            its = [node for node in nodes if node.pool.name == name]
            mates = [state for state in self._states.values() if state.pool == name]
            fractions = price_fractions(mates, self._prices)
            if not fractions or (command.savings is None and command.replacements):
                return PRICES_UNKNOWN
            total = sum(self._costs[state.name] for state in mates)
            saved = 1.0 if command.savings is None or not command.price else command.savings / command.price
            disruption = sum(self._costs[candidate.name] for candidate in its) / total
            scores[name] = saved * sum(fractions[candidate.name] for candidate in its) / disruption
        return replace(command, scores=scores)

    @staticmethod
    def _is_approved(command: Command) -> bool:
        return all(score >= BALANCED_THRESHOLD for score in command.scores.values())


def _launch_price(instance_type: InstanceType, claim: NewNodeClaim, requirements: Requirements) -> float | None:
    """WorstLaunchPrice: the most expensive offering of the capacity type to launch; None if no price is known."""
    allowed = claim.template.allowed
    for capacity_type in (RESERVED, _SPOT, _ON_DEMAND):
        offerings = (it for it in instance_type.offerings if it.is_available and it.capacity_type == capacity_type)
        prices = [it.price for it in offerings if requirements.is_compatible(it.requirements, allowed)]
        if prices:
            return None if None in prices else max(price for price in prices if price is not None)
    return None


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment // 10**9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _number(written: str) -> int | str:
    number = parse_int64(written)
    return written if number is None else number

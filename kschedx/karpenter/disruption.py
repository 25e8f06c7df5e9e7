"""Whether a node may be disrupted, and whether consolidation considers it, according to Karpenter's objects.

Whether a cheaper node could replace it depends on prices, which no cluster has. Upstream: ValidateNodeDisruptable and
ValidatePodsDisruptable in controllers/state/statenode.go, controllers/disruption (types.go, consolidation.go,
emptiness.go), utils/pdb. No object shows Karpenter's nominations of nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct, field

from kschedx.errors import InputError
from kschedx.karpenter.nodes import ClusterState, StateNode, is_of_daemon_set, is_static, tolerates_all
from kschedx.karpenter.scheduler import karpenter_version
from kschedx.kube.autoscalers import (
    BALANCED,
    CAPACITY_TYPE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    DisruptionBudget,
    NodeClaim,
    NodePool,
)
from kschedx.kube.conditions import condition_of
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import INSTANCE_TYPE, ZONE
from kschedx.kube.scalars import Duration, nanoseconds
from kschedx.kube.schedules import read_schedule
from kschedx.kube.types import Pod, PodDisruptionBudget, Taint, compile_budgets
from kschedx.releases.karpenter import KarpenterBehavior, karpenter_behavior
from kschedx.snapshot.snapshot import Snapshot

BLOCKED = "DisruptionBlocked"
_UNCONSOLIDATABLE = "Unconsolidatable"  # reasons of Karpenter's events
_DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
_NEVER = "Never"
_WHEN_EMPTY = "WhenEmpty"
BALANCED_THRESHOLD = 0.5  # 1 / BalancedK
NODE_COST = 1.0  # the disruption cost of a node without its pods
_PRICED_BY = (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)
_NOTHING = frozenset({"0", "0%"})


class Obstacle(Document, frozen=True):
    """Why a node is not disrupted: the event with Karpenter's message."""

    reason: str
    text: str


class Balance(Struct, frozen=True, kw_only=True):
    """Karpenter's score for the deletion of a node: its fraction of the pool's cost divided by its fraction of the
    pool's disruption cost. It has to be at least one half. Upstream: ScoreMove in controllers/disruption/balanced.go;
    designs/balanced-consolidation.md."""

    disruption: float  # the node's fraction of disruption: 1 plus the eviction costs of its pods
    savings: float | None
    """The node's fraction of the price; None if the pool's nodes may differ in price, and a price is not known."""

    @property
    def needed(self) -> float:
        """The smallest sufficient fraction of the price."""
        return self.disruption * BALANCED_THRESHOLD

    @property
    def rejects(self) -> bool:
        """Whether even a deletion without replacement saves too little. Together with others, the node may still be
        deleted."""
        return self.savings is not None and self.savings < self.needed

    @property
    def document(self) -> BalanceDocument:
        savings = None if self.savings is None else round(self.savings, 4)
        return BalanceDocument(round(self.disruption, 4), round(self.needed, 4), savings)


class BalanceDocument(Document, frozen=True, omit_defaults=True):
    disruption: float
    savings_needed: float
    savings: float | None = None


class DisruptionDocument(Document, frozen=True, omit_defaults=True):
    pool: str
    may_go: bool
    obstacles: tuple[Obstacle, ...]
    is_consolidatable: bool = field(name="consolidatable")
    is_drifted: bool = field(name="drifted")
    is_empty: bool = field(name="empty")
    balance: BalanceDocument | None = None


class NodeDisruption(Struct, frozen=True, kw_only=True):
    """A node, and what prevents Karpenter from disrupting it."""

    node: str
    pool: str
    obstacles: tuple[Obstacle, ...]
    """Karpenter reports the first one. A drifted node with a termination grace period goes in spite of its pods."""
    is_consolidatable: bool  # whether the node's pods have not changed for the pool's consolidateAfter
    is_drifted: bool
    goes_by_drift: bool  # whether the node is drifted, and a budget may allow to remove it for that reason
    is_empty: bool  # whether no pod has to move; from Karpenter 1.14 on, whether no pod has an eviction cost
    balance: Balance | None = None  # for a pool with the consolidation policy Balanced
    blocking: tuple[int, ...] = ()  # the indexes of the pool's budgets that allow no disruption now
    guarded: str = ""  # the first pod with the annotation that prevents disruption, such as `shop/train-0`
    is_guarded: bool = False  # whether the node has that annotation
    protected: tuple[str, ...] = ()  # the PodDisruptionBudgets that prevent the eviction of a pod, such as `shop/web`
    disabling: tuple[str, str] | None = None
    """The field below spec.disruption of the pool that disables the node's consolidation, and its value."""

    @property
    def may_go(self) -> bool:
        """Whether nothing known here prevents it. Drift does not depend on what only consolidation requires."""
        return not self.is_blocked if self.goes_by_drift else self.is_consolidatable and not self.obstacles

    @property
    def is_blocked(self) -> bool:
        """Whether Karpenter disrupts the node for no reason."""
        return any(obstacle.reason == BLOCKED for obstacle in self.obstacles)

    @property
    def document(self) -> DisruptionDocument:
        return part_of(DisruptionDocument, self, balance=None if self.balance is None else self.balance.document)


def disruptions(
    snapshot: Snapshot, names: Iterable[str], now: int | None = None, *, prices: Mapping[str, float | None] = {}
) -> list[NodeDisruption]:
    """Return the result for each of Karpenter's nodes. `now` is in nanoseconds; the default is the time of the
    snapshot. `prices` are those of nodes."""
    managed = managed_nodes(snapshot)
    if not managed:
        return []
    pools = _Pools(snapshot, prices, snapshot.moment() if now is None else now)
    return [pools.disruption(name) for name in names if name in managed]


def managed_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of Karpenter's nodes."""
    cluster = ClusterState.of(snapshot)
    states = (state for state in (*cluster.staying, *cluster.leaving) if state.claim is not None and state.pool)
    return frozenset(state.node.name for state in states if state.node is not None)


def price_fractions(nodes: Sequence[StateNode], prices: Mapping[str, float | None]) -> dict[str, float]:
    """Return each node's fraction of the price of all; empty if that is not known. Nodes of one type, zone, and
    capacity type cost the same."""
    known = [price for node in nodes if (price := prices.get(node.name)) is not None]
    if len(known) == len(nodes) and sum(known) > 0:
        return {node.name: price / sum(known) for node, price in zip(nodes, known, strict=True)}
    kinds = {tuple(node.labels.get(key) for key in _PRICED_BY) for node in nodes}
    is_same = len(kinds) == 1 and None not in next(iter(kinds))
    return {node.name: 1 / len(nodes) for node in nodes} if is_same else {}


class _Pools:
    """The nodes of a cluster with their NodePools."""

    def __init__(self, snapshot: Snapshot, prices: Mapping[str, float | None], now: int) -> None:
        self._snapshot, self._prices, self._now = snapshot, prices, now
        self._behavior = karpenter_behavior(karpenter_version(snapshot))
        self._pools = {pool.name: pool for pool in snapshot.of(NodePool)}
        cluster = ClusterState.of(snapshot)
        self._states = {state.row: state for state in (*cluster.staying, *cluster.leaving) if state.row >= 0}
        self._costs: dict[str, tuple[float, dict[str, float]]] = {}
        """Pool to its disruption cost, and each node's fraction of the price, as far as it is known."""
        self._budgets = compile_budgets(snapshot.disruption_budgets)

    def disruption(self, name: str) -> NodeDisruption:
        """Evaluate a node that Karpenter manages."""
        snapshot, behavior = self._snapshot, self._behavior
        state = self._states[snapshot.cluster.index[name]]
        claim, pool, pods = state.claim, self._pools.get(state.pool), pods_on(snapshot, state)
        assert claim is not None
        conditions = claim.status.conditions
        is_consolidatable = condition_of(conditions, "Consolidatable", "True") is not None
        is_drifted, is_empty = condition_of(conditions, "Drifted", "True") is not None, _is_empty(pods, behavior)
        disabling = None if pool is None or pool.spec.replicas is not None else self._disabling(pool, pods)
        reasons = {"Drifted"} if is_drifted else set()
        if not is_drifted or (is_consolidatable and disabling is None):
            reasons.add("Empty" if is_empty else "Underutilized")
        blocking = () if pool is None else _blocking_budgets(pool, reasons, self._now)
        goes_by_drift = is_drifted and (pool is None or not _blocking_budgets(pool, {"Drifted"}, self._now))
        is_of_drift = goes_by_drift or (is_drifted and bool(blocking))
        is_balanced = pool is not None and pool.spec.disruption.consolidation_policy == BALANCED
        return NodeDisruption(
            node=name,
            pool=state.pool,
            obstacles=tuple(self._obstacles(state, claim, pool, pods, blocking, is_drifted=is_of_drift)),
            is_consolidatable=is_consolidatable,
            is_drifted=is_drifted,
            goes_by_drift=goes_by_drift,
            is_empty=is_empty,
            balance=self._balance(state) if is_balanced and behavior.moves_are_balanced else None,
            blocking=blocking,
            guarded=next((pod.key for pod in pods if _is_guarded(pod, self._now)), ""),
            protected=self._protecting(pods),
            is_guarded=state.is_guarded,
            disabling=disabling,
        )

    def _balance(self, state: StateNode) -> Balance:
        if state.pool not in self._costs:
            mates = [node for node in self._states.values() if node.pool == state.pool]
            cost = sum(disruption_cost(pods_on(self._snapshot, mate)) for mate in mates)
            self._costs[state.pool] = cost, price_fractions(mates, self._prices)
        cost, fractions = self._costs[state.pool]
        own = disruption_cost(pods_on(self._snapshot, state))
        return Balance(disruption=own / cost, savings=fractions.get(state.name))

    def _obstacles(
        self,
        state: StateNode,
        claim: NodeClaim,
        pool: NodePool | None,
        pods: list[Pod],
        blocking: Sequence[int],
        *,
        is_drifted: bool,
    ) -> Iterator[Obstacle]:
        """Yield obstacles in Karpenter's order. For drift, a termination grace period ends the pods in any case
        (NewCandidate in controllers/disruption/types.go)."""
        ends_pods = is_drifted and claim.spec.termination_grace_period is not None
        for text in (*_node_blockers(state), *(() if ends_pods else self._pod_blockers(pods))):
            yield Obstacle(reason=BLOCKED, text=text[:1].upper() + text[1:])
        if pool is None:
            yield Obstacle(reason=BLOCKED, text=f"NodePool not found (NodePool={state.pool})")
            return
        if blocking:
            yield Obstacle(reason=BLOCKED, text="No allowed disruptions due to blocking budget")
        for label in (CAPACITY_TYPE, ZONE):
            if label not in state.labels:
                yield Obstacle(reason=_UNCONSOLIDATABLE, text=f'Node does not have label "{label}"')
        if (replicas := pool.spec.replicas) is not None:
            yield Obstacle(reason=_UNCONSOLIDATABLE, text=f'NodePool "{pool.name}" is static (replicas is {replicas})')
        elif (disabling := self._disabling(pool, pods)) is not None:
            text = 'NodePool "{pool}" has consolidation disabled' if _NEVER in disabling else self._behavior.not_empty
            yield Obstacle(reason=_UNCONSOLIDATABLE, text=text.format(pool=pool.name))

    def _disabling(self, pool: NodePool, pods: list[Pod]) -> tuple[str, str] | None:
        disruption = pool.spec.disruption
        if disruption.consolidate_after == _NEVER:
            return "consolidateAfter", _NEVER
        is_left = disruption.consolidation_policy == _WHEN_EMPTY and not _is_empty(pods, self._behavior)
        return ("consolidationPolicy", _WHEN_EMPTY) if is_left else None

    def _pod_blockers(self, pods: list[Pod]) -> Iterator[str]:
        """Yield the first pod that prevents disruption, then the first budget."""
        guarded = next((pod for pod in pods if _is_guarded(pod, self._now)), None)
        if guarded is not None:
            yield f'pod has "{DO_NOT_DISRUPT}" annotation (Pod={guarded.key})'
            return
        budgets = self._protecting(pods)
        if len(budgets) > 1:
            yield f"eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{' '.join(budgets)}])"
        elif budgets:
            yield f"pdb prevents pod evictions (PodDisruptionBudget=[{budgets[0]}])"

    def _protecting(self, pods: list[Pod]) -> tuple[str, ...]:
        """Return the budgets that prevent the eviction of the first such pod: one, or several that cover it."""
        for pod in pods:
            if not _is_evicted(pod, self._now):
                continue
            own = self._budgets.get(pod.metadata.namespace, ())
            budgets = [budget for budget, selector in own if selector.matches(pod.metadata.labels)]
            if len(budgets) > 1 or (budgets and not _lets_go(budgets[0], pod)):
                return tuple(budget.key for budget in budgets)
        return ()


def pods_on(snapshot: Snapshot, state: StateNode) -> list[Pod]:
    return [snapshot.pods[row] for row in snapshot.pods.on_node(state.row).tolist()]


def _blocking_budgets(pool: NodePool, reasons: Collection[str], now: int) -> tuple[int, ...]:
    """Return the indexes of the budgets that allow no disruption for these reasons; none if one of the reasons is left.
    An invalid budget counts for every reason. Upstream: GetAllowedDisruptionsByReason in pkg/apis/v1/nodepool.go."""
    blocked = {
        place: {*reasons} if is_invalid(budget) or budget.reasons is None else {*reasons} & {*budget.reasons}
        for place, budget in enumerate(pool.spec.disruption.budgets)
        if is_invalid(budget) or (budget.nodes in _NOTHING and is_active(budget, now))
    }
    is_blocked = set[str]().union(*blocked.values()) >= {*reasons}
    return tuple(place for place, its in blocked.items() if its) if is_blocked else ()


def _is_empty(pods: Iterable[Pod], behavior: KarpenterBehavior) -> bool:
    leaving = [pod for pod in pods if is_reschedulable(pod)]
    if behavior.cheap_pods_leave_nodes_empty:
        return all(eviction_cost(pod) <= 0 for pod in leaving)
    return not leaving


def eviction_cost(pod: Pod) -> float:
    """Return Karpenter's cost of a pod's eviction, -10 to 10: 1 plus parts for its deletion cost and its priority.
    Upstream: EvictionCost in pkg/utils/disruption/disruption.go."""
    try:
        deletion = float(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        deletion = 0.0  # Karpenter only logs it
    cost = 1.0 + deletion / 2**27 + (pod.spec.priority or 0) / 2**25
    return min(max(cost, -10.0), 10.0)


def disruption_cost(pods: Iterable[Pod]) -> float:
    """Return the cost of disrupting a node with these pods, for the policy Balanced."""
    return NODE_COST + sum(max(0.0, eviction_cost(pod)) for pod in pods if is_reschedulable(pod))


def is_reschedulable(pod: Pod) -> bool:
    owners = pod.metadata.owner_references
    return not (pod.metadata.deletion_timestamp or is_of_daemon_set(owners) or is_static(owners))


# A budget with a schedule is active for its duration after each scheduled time, in UTC. Upstream: IsActive in
# pkg/apis/v1/nodepool.go.


def is_active(budget: DisruptionBudget, now: int) -> bool:
    """Return whether the budget is active at a time in nanoseconds; an invalid one is not."""
    if budget.schedule is None and budget.duration is None:
        return True
    try:
        minutes, hours, days, months, weekdays = read_schedule(budget.schedule or "")
        lasts = timedelta(microseconds=Duration.parse(budget.duration or "0s") // 1000)
    except (ValueError, InputError):
        return False
    end = datetime.fromtimestamp(now // 10**9, UTC)
    start = end - min(lasts, timedelta(days=366))
    for back in range((end.date() - start.date()).days + 1):
        day = datetime.combine(end.date() - timedelta(days=back), time(), UTC)
        is_day, is_weekday = day.day in days, day.isoweekday() % 7 in weekdays
        either = len(days) < 31 and len(weekdays) < 7
        if day.month in months and ((is_day or is_weekday) if either else (is_day and is_weekday)):
            times = (day.replace(hour=hour, minute=minute) for hour in hours for minute in minutes)
            if any(start < moment <= end for moment in times):
                return True
    return False


def is_invalid(budget: DisruptionBudget) -> bool:
    """Return whether the schedule is invalid, in which case Karpenter disrupts nothing."""
    try:
        return budget.schedule is not None and not read_schedule(budget.schedule)
    except ValueError:
        return True


def _node_blockers(state: StateNode) -> Iterator[str]:
    if not state.is_initialized:
        yield "node isn't initialized"
    elif state.is_leaving:
        yield "node is deleting or marked for deletion"
    elif state.is_guarded:
        yield f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'


def _is_guarded(pod: Pod, now: int) -> bool:
    """Return whether the annotation protects the pod: always, or for a duration after its start."""
    written = pod.metadata.annotations.get(DO_NOT_DISRUPT)
    if written is None or pod.metadata.deletion_timestamp:
        return False
    if written == "true":
        return True
    try:
        lasts = Duration.parse(written)
        return lasts > 0 and (pod.status.start_time is None or now - nanoseconds(pod.status.start_time) < lasts)
    except (ValueError, InputError):
        return False


def _is_evicted(pod: Pod, now: int) -> bool:
    is_going = bool(pod.metadata.deletion_timestamp) or is_static(pod.metadata.owner_references)
    return not (is_going or tolerates_all(pod.spec.tolerations, (_DISRUPTED,)) or _is_guarded(pod, now))


def _lets_go(budget: PodDisruptionBudget, pod: Pod) -> bool:
    is_unready = condition_of(pod.status.conditions, "Ready", "False") is not None
    allows_unready = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and is_unready
    return allows_unready or bool(budget.status.disruptions_allowed)

"""Resource pools: the slices that a node can reach, whether a pool is complete, and the order in which devices are
tried.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go, and for
DeviceTaintRules resourceslice/tracker/tracker.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.findings import Finding, PluginMessage
from kschedx.kube.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceTaintRule,
    Features,
    ResourceClaim,
    ResourceSlice,
)
from kschedx.kube.quantity import value
from kschedx.kube.resources import nano_units
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_node_selector,
    terms_of,
)
from kschedx.kube.types import Node
from kschedx.releases import Release
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.devices import ClaimChange, Devices, MovingDevices, newest_slices

DeviceID = tuple[str, str, str]  # driver, pool and device
_PoolID = tuple[str, str]  # driver and pool, the order in which pools are tried


class PooledDevice(Struct, frozen=True, kw_only=True):
    id: DeviceID
    device: Device
    slice: ResourceSlice
    pool: _DevicePool


class _DevicePool(Struct, kw_only=True):
    """A pool from the view of a node."""

    id: _PoolID
    is_incomplete: bool = False  # whether its driver is replacing it, so that slices are missing
    invalid: str = ""
    devices: tuple[PooledDevice, ...] = ()  # the devices that the node can reach, in the order in which they are tried
    elsewhere: tuple[ResourceSlice, ...] = ()  # slices of other nodes whose devices consume the same counters
    counter_sets: Mapping[str, CounterSet] = {}

    @property
    def name(self) -> str:
        return self.id[1]

    @property
    def has_binding_conditions(self) -> bool:
        return any(device.device.binding_conditions for device in self.devices)

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.invalid

    def every_device(self) -> Iterator[tuple[DeviceID, Device]]:
        """Yield the devices that the node can reach, then the devices of `elsewhere`."""
        for own_device in self.devices:
            yield own_device.id, own_device.device
        for published in self.elsewhere:
            for device in published.spec.devices:
                yield device_id(published, device), device


class NodeDevices:
    """The pools that a node can reach."""

    def __init__(self, pools: Sequence[_DevicePool]) -> None:
        self.pools = pools
        """As GatherPools returns them: by driver and name, those with binding conditions last. Complete pools without
        devices for the node are left out."""
        self.devices = tuple(device for pool in pools for device in pool.devices)
        self.pool_names = tuple(dict.fromkeys(pool.name for pool in pools))
        self.is_alone = not any(pool.elsewhere for pool in pools) and not any(
            device.slice.spec.per_device_node_selection for device in self.devices
        )
        """Whether neither the node's name nor devices of other nodes affect what can be allocated."""


def device_id(published: ResourceSlice, device: Device) -> DeviceID:
    return published.spec.driver, published.spec.pool.name, device.name


def _apply_taint_rules(published: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    mine = [rule for rule in rules if _is_selected(published, rule)]
    if not mine:
        return published
    devices = []
    for device in published.spec.devices:
        more = tuple(rule.spec.taint for rule in mine if _names(rule, device))
        devices.append(replace(device, taints=device.taints + more) if more else device)
    return replace(published, spec=replace(published.spec, devices=tuple(devices)))


def _is_selected(published: ResourceSlice, rule: DeviceTaintRule) -> bool:
    chosen = rule.spec.device_selector
    if chosen is None:
        return True
    return chosen.driver in (None, published.spec.driver) and chosen.pool in (None, published.spec.pool.name)


def _names(rule: DeviceTaintRule, device: Device) -> bool:
    return rule.spec.device_selector is None or rule.spec.device_selector.device in (None, device.name)


class Slices:
    """All slices of a cluster, by node."""

    def __init__(self, slices: Sequence[ResourceSlice], *, partitionable: bool, judged_by_node: bool = False) -> None:
        self._partitionable = partitionable
        self._judged_by_node = judged_by_node
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._counters: dict[_PoolID, list[ResourceSlice]] = {}  # slices with counters; every node reaches them
        self._of_pool: dict[_PoolID, list[ResourceSlice]] = {}
        self._seen: dict[str, tuple[Node, NodeDevices]] = {}
        """Earlier results by node name, with the node object they are valid for."""
        self._made: dict[tuple[int, ...], _DevicePool] = {}
        """By the ids of the slices that a node reaches: nodes that reach the same slices share a pool."""
        for published in slices:
            spec = published.spec
            id_ = (spec.driver, spec.pool.name)
            self._of_pool.setdefault(id_, []).append(published)
            if spec.shared_counters:
                if partitionable:
                    self._counters.setdefault(id_, []).append(published)
            elif spec.node_name:
                self._of_node.setdefault(spec.node_name, []).append(published)
            else:
                self._shared.append(published)

    def on_node(self, node: Node) -> NodeDevices:
        known = self._seen.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        reached = self._reached_slices(node)
        pools = [pool for id_, slices in reached.items() if (pool := self._pool(id_, slices)) is not None]
        pools += [pool for pool in self._incomplete_pools if pool.id not in reached]
        here = NodeDevices(sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id)))
        self._seen[node.name] = node, here
        return here

    @cached_property
    def _incomplete_pools(self) -> list[_DevicePool]:
        """Unusable pools of a node that reaches only their counters."""
        newest = {id_: newest_slices(slices) for id_, slices in self._counters.items()}
        pools = (self._pool(id_, slices) for id_, slices in newest.items())
        return [pool for pool in pools if pool is not None and not pool.is_usable]

    def _reached_slices(self, node: Node) -> dict[_PoolID, list[ResourceSlice]]:
        """Return the newest slices that the node reaches, by pool, without pools of which it reaches only counters."""
        slices_by_pool: dict[_PoolID, list[ResourceSlice]] = {}
        for published in self._of_node.get(node.name, []) + self._shared:
            if self._is_reached(published, node):
                slices_by_pool.setdefault((published.spec.driver, published.spec.pool.name), []).append(published)
        return {id_: newest_slices([*slices, *self._counters.get(id_, ())]) for id_, slices in slices_by_pool.items()}

    def _is_reached(self, published: ResourceSlice, node: Node) -> bool:
        spec = published.spec
        if not self._partitionable and spec.per_device_node_selection is not None:
            return False
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return reaches(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)
        return bool(spec.per_device_node_selection) and any(device_reaches(node, device) for device in spec.devices)

    def _pool(self, id_: _PoolID, slices: list[ResourceSlice]) -> _DevicePool | None:
        """Build a pool, or return None if a newer generation is for other nodes."""
        key = tuple(map(id, slices))
        known = self._made.get(key)
        if known is None:
            known = self._gather(id_, slices)
            if known is not None:
                self._made[key] = known
        return known

    def _gather(self, id_: _PoolID, slices: list[ResourceSlice]) -> _DevicePool | None:
        wanted, generation = slices[0].spec.pool.resource_slice_count, slices[0].spec.pool.generation
        if len(slices) == wanted or self._judged_by_node:
            return self._built(id_, slices, slices, is_incomplete=len(slices) != wanted)
        all_slices = self._of_pool[id_]
        if any(published.spec.pool.generation > generation for published in all_slices):
            return None
        current = [published for published in all_slices if published.spec.pool.generation == generation]
        if len(current) != wanted:
            return _DevicePool(id=id_, is_incomplete=True)
        return self._built(id_, slices, current)

    def _built(
        self, id_: _PoolID, slices: list[ResourceSlice], current: list[ResourceSlice], *, is_incomplete: bool = False
    ) -> _DevicePool:
        """`slices` are those of `current` that the node reaches."""
        slices = sorted(slices, key=lambda published: published.name)
        with_devices = slices
        counter_sets: dict[str, CounterSet] = {}
        wrong = ""
        if self._partitionable:
            with_devices = [published for published in slices if not published.spec.shared_counters]
        wrong = _duplicate_device(with_devices)
        elsewhere: list[ResourceSlice] = []
        if self._partitionable and not wrong:
            counter_sets, wrong = _counter_sets(slices)
            wrong = wrong or _unknown_counter(counter_sets, slices)
            if not wrong and len(current) != len(slices):
                names = {published.name for published in slices}
                elsewhere = [published for published in current if published.name not in names]
                wrong = _unknown_counter(counter_sets, elsewhere)
        if wrong:
            return _DevicePool(id=id_, invalid=wrong, is_incomplete=is_incomplete)
        pool = _DevicePool(id=id_, elsewhere=tuple(elsewhere), counter_sets=counter_sets, is_incomplete=is_incomplete)
        pool.devices = tuple(
            PooledDevice(id=(*id_, device.name), device=device, slice=published, pool=pool)
            for published in with_devices
            for device in published.spec.devices
        )
        return pool


def reaches(node: Node, name: str | None, selector: NodeSelector | None, *, all_nodes: bool) -> bool:
    """Evaluate NodeMatches: first the name, then all nodes, then the selector."""
    if name:
        return name == node.name
    if all_nodes:
        return True
    return selector is not None and _compile_selector(selector).matches(node.metadata.labels, node.name)


def device_reaches(node: Node, device: Device) -> bool:
    return reaches(node, device.node_name, device.node_selector, all_nodes=device.all_nodes)


@lru_cache(maxsize=4096)
def _compile_selector(selector: NodeSelector) -> CompiledNodeSelector:
    try:
        return compile_node_selector(selector).check()
    except InputError as error:
        raise UndecidableError(f"a ResourceSlice has a node selector that the API server refuses: {error}") from None


def _duplicate_device(slices: Iterable[ResourceSlice]) -> str:
    names: set[str] = set()
    for published in slices:
        for device in published.spec.devices:
            if device.name in names:
                return f"duplicate device name {device.name}"
            names.add(device.name)
    return ""


def _counter_sets(slices: Iterable[ResourceSlice]) -> tuple[dict[str, CounterSet], str]:
    """Return the counter sets by name, and their error."""
    sets: dict[str, CounterSet] = {}
    for published in slices:
        for counters in published.spec.shared_counters:
            if counters.name in sets:
                return {}, f"duplicate counter set name {counters.name}"
            sets[counters.name] = counters
    return sets, ""


def _unknown_counter(counter_sets: Mapping[str, CounterSet], slices: Iterable[ResourceSlice]) -> str:
    """Return the error of a device that consumes a counter which the pool lacks."""
    for published in slices:
        for device in published.spec.devices:
            for consumed in device.consumes_counters:
                known = counter_sets.get(consumed.counter_set)
                if known is None:
                    return f"counter set {consumed.counter_set} not found"
                for name in consumed.counters:
                    if name not in known.counters:
                        return f"counter {name} not found in counter set {consumed.counter_set}"
    return ""


class DeviceFeatures(Struct, frozen=True, kw_only=True):
    """Feature gates by their effect."""

    admin_access: bool
    prioritized_list: bool
    partitionable: bool
    taints: bool
    taint_rules: bool
    binding_conditions: bool
    consumable_capacity: bool
    knows_consumable_capacity: bool  # whether this version has the feature, enabled or not
    list_attributes: bool
    knows_list_attributes: bool
    device_status: bool = False  # whether statuses of devices alone need the newest allocator
    rules_need_selectors: bool = False
    broken_pools_reject_nodes: bool = False
    """Whether a request for all devices rejects the node, instead of failing, if a pool is incomplete or invalid."""
    device_pools_are_judged_by_node: bool = False
    device_alternatives_share_matches: bool = False
    shared_devices_stay_shared: bool = False
    capacities_have_two_names: bool = False  # whether a capacity may be named with or without the driver's domain
    missing_attributes_have_a_hint: bool = False

    @classmethod
    def of(cls, release: Release) -> DeviceFeatures:
        taints = release.enabled("DRADeviceTaints")
        return cls(
            admin_access=release.enabled("DRAAdminAccess"),
            prioritized_list=release.enabled("DRAPrioritizedList"),
            partitionable=release.enabled("DRAPartitionableDevices"),
            taints=taints,
            # until 1.34, DeviceTaintRules had no separate gate
            taint_rules=taints and release.gates.get("DRADeviceTaintRules", True),
            binding_conditions=release.enabled("DRADeviceBindingConditions")
            and release.enabled("DRAResourceClaimDeviceStatus"),
            consumable_capacity=release.enabled("DRAConsumableCapacity"),
            knows_consumable_capacity="DRAConsumableCapacity" in release.gates,
            list_attributes=release.enabled("DRAListTypeAttributes"),
            knows_list_attributes="DRAListTypeAttributes" in release.gates,
            device_status=release.behavior.device_statuses_need_an_allocator
            and release.enabled("DRAResourceClaimDeviceStatus"),
            rules_need_selectors=not release.behavior.rule_without_selector_taints_every_device,
            broken_pools_reject_nodes=not release.behavior.broken_pools_fail_requests_for_all,
            device_pools_are_judged_by_node=release.behavior.device_pools_are_judged_by_node,
            device_alternatives_share_matches=release.behavior.device_alternatives_share_matches,
            shared_devices_stay_shared=not release.behavior.shared_devices_can_become_exclusive,
            capacities_have_two_names=not release.behavior.capacities_are_named_as_published,
            missing_attributes_have_a_hint=release.behavior.missing_attributes_have_a_hint,
        )

    @property
    def is_stable(self) -> bool:
        """Whether upstream uses its oldest allocator, which supports fewer features."""
        return not (self.binding_conditions or self.consumable_capacity or self.device_status)

    @property
    def cel(self) -> Features:
        return Features(
            multiple_allocations=self.knows_consumable_capacity,
            reads_multiple_allocations=not self.is_stable,
            includes=self.knows_list_attributes,
            list_attributes=self.list_attributes,
        )


_PUBLISHED = Memo[tuple[ResourceSlice, ...]]()
_SLICES = Memo[Slices]()


def published_slices(devices: Devices, features: DeviceFeatures) -> tuple[ResourceSlice, ...]:
    """Return the slices with the taints of DeviceTaintRules, if these are enabled."""
    rules = devices.taint_rules if features.taint_rules else ()
    if features.rules_need_selectors:
        rules = [rule for rule in rules if rule.spec.device_selector is not None]
    apart = features.taint_rules, features.rules_need_selectors
    return _PUBLISHED.of(
        devices.derived_from_slices,
        lambda: tuple(_apply_taint_rules(published, rules) for published in devices.slices),
        *apart,
    )


def slices(devices: Devices, features: DeviceFeatures) -> Slices:
    """Return the published slices by node."""
    return _SLICES.of(
        devices.derived_from_slices,
        lambda: Slices(
            published_slices(devices, features),
            partitionable=features.partitionable,
            judged_by_node=features.device_pools_are_judged_by_node,
        ),
        features.taint_rules,
        features.rules_need_selectors,
        features.partitionable,
        features.device_pools_are_judged_by_node,
    )


class FailureError(Exception):
    """A claim or class is invalid; `str()` is kube-scheduler's message."""

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.finding = finding or PluginMessage(text=text)


class UnavailableError(Exception):
    """The node cannot allocate anything, for a reason that kube-scheduler reports."""


class Pick(Struct, frozen=True, kw_only=True):
    request: str  # `request`, or `request/alternative`
    device: PooledDevice
    admin_access: bool = False
    share: Mapping[str, int] | None = None  # the consumed capacity of a shared device


Result = tuple[tuple[Pick, ...], ...]  # picks by claim


def allocation_reach(node: str, claim: ResourceClaim, picks: Sequence[Pick]) -> NodeSelector | None:
    """Return which nodes reach the devices of an allocation on a node: this node alone if any device is local to it or
    binds to it, and otherwise the nodes that all slices or devices select; None for all nodes. Raises `FailureError`.
    Upstream: createNodeSelector in structured/internal/incubating/allocator_incubating.go."""
    selected: list[NodeSelectorTerm] = []
    for pick in picks:
        spec = pick.device.slice.spec
        source = pick.device.device if spec.per_device_node_selection else spec
        if source.node_name is not None or pick.device.device.binds_to_node:
            here = SelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        terms = terms_of(source.node_selector)
        if len(terms) > 1:
            wrong = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise FailureError(f"create NodeSelector for claim {claim.metadata.name}: {wrong}")
        selected += terms
    every = NodeSelectorTerm(
        match_fields=tuple(dict.fromkeys(requirement for term in selected for requirement in term.match_fields)),
        match_expressions=tuple(dict.fromkeys(part for term in selected for part in term.match_expressions)),
    )
    return None if every.is_empty else NodeSelector(node_selector_terms=(every,))


# Consumable capacity: devices that several claims share, each with a part of the capacity. Amounts are exact, in
# nano-units. Upstream: structured/internal/incubating/consumable_capacity.go.

_NANO = 10**9

_Amounts = Mapping[str, int]  # capacity to nano-units


def fits_capacity(
    capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None, consumed: _Amounts, picked: _Amounts
) -> bool:
    """Return whether every capacity of the device suffices after existing claims and this search's picks."""
    if any(name not in capacity for name in _requests(wanted)):
        return False
    for name, device_capacity in capacity.items():
        amount = _consumption(device_capacity, _requests(wanted).get(name))
        if device_capacity.request_policy is not None and _violates(amount, device_capacity.request_policy):
            return False
        if consumed.get(name, 0) + amount + picked.get(name, 0) > nano_units(device_capacity.value):
            return False
    return True


def short_capacities(
    capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None, consumed: _Amounts
) -> Iterator[tuple[str, int, int]]:
    """Yield each capacity of which existing claims leave too little, with the needed amount and the rest."""
    for name, needed in consumption(capacity, wanted).items():
        left = nano_units(capacity[name].value) - consumed.get(name, 0)
        if needed > left:
            yield name, needed, max(left, 0)


def consumption(capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None) -> dict[str, int]:
    """Return what one share consumes of each capacity."""
    return {
        name: _consumption(device_capacity, _requests(wanted).get(name)) for name, device_capacity in capacity.items()
    }


def _requests(wanted: CapacityRequirements | None) -> Mapping[str, str | int | float]:
    return wanted.requests if wanted is not None else {}


def _consumption(capacity: DeviceCapacity, requested: str | int | float | None) -> int:
    """Round the request up to a value that the device's policy allows. Without a request, return the default or
    everything."""
    policy = capacity.request_policy
    if requested is None:
        default = None if policy is None else policy.default
        return nano_units(capacity.value if default is None else default)
    amount = nano_units(requested)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_to_step(amount, requested, policy.valid_range)
    larger = (nano_units(valid) for valid in policy.valid_values)
    return next((valid for valid in larger if amount <= valid), amount)


def _round_to_step(amount: int, requested: str | int | float, valid: CapacityRequestPolicyRange) -> int:
    """Round up to the next step from the range's minimum, in whole units."""
    least = valid.min if valid.min is not None else 0
    if amount < nano_units(least):
        return nano_units(least)
    if valid.step is None or not value(valid.step):
        return amount
    start, step = value(least), value(valid.step)
    steps = -((start - value(requested)) // step)
    return (start + step * steps) * _NANO


def _violates(amount: int, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == nano_units(policy.default):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > nano_units(valid.max):
            return True
        if valid.step is None or not value(valid.step):
            return False
        return (-(-amount // _NANO) - value(valid.min if valid.min is not None else 0)) % value(valid.step) != 0
    return bool(policy.valid_values) and amount not in {nano_units(valid_value) for valid_value in policy.valid_values}


# Devices that are allocated already (pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go).


class AllocatedState:
    """The allocated devices and capacities. Admin access does not count."""

    def __init__(self, claims: Iterable[ResourceClaim], *, shares: bool, seen: int = 0) -> None:
        """`shares`: devices may be shared. `seen`: how many changes the claims already include."""
        self._shares = shares
        self.devices: Counter[DeviceID] = Counter()  # devices that are allocated exclusively
        self.shared: Counter[DeviceID] = Counter()  # devices of which claims have shares
        self.capacity: dict[DeviceID, dict[str, int]] = {}  # the capacity that the shares consume
        self.moves: Counter[str] = Counter()  # by pool name, a number that grows with each change of an allocation
        self._consumers: Counter[DeviceID] = Counter()
        self._seen = seen
        for claim in claims:
            self._count(claim, 1)

    def follow(self, changes: Sequence[ClaimChange]) -> AllocatedState:
        """Apply all changes that are not included yet."""
        for before, after in changes[self._seen :]:
            if before is not None:
                self._count(before, -1)
            if after is not None:
                self._count(after, 1)
        self._seen = len(changes)
        return self

    def has(self, id_: DeviceID) -> bool:
        return id_ in self.devices or id_ in self.shared or id_ in self.capacity

    def version(self, here: NodeDevices) -> int:
        """Return a number that grows when an allocation from the node's pools changes."""
        moves = self.moves
        return sum([moves[name] for name in here.pool_names])

    def of(self, id_: DeviceID) -> Hashable:
        """Return the allocations of a device; None if it is free."""
        if not self.has(id_):
            return None
        return id_ in self.devices, id_ in self.capacity, tuple(sorted(self.capacity.get(id_, {}).items()))

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            id_ = (result.driver, result.pool, result.device)
            if result.admin_access:
                continue
            self.moves[result.pool] += 1
            if not self._shares or result.share_id is None:
                _add(self.devices, id_, sign)
                continue
            _add(self.shared, id_, sign)
            if result.consumed_capacity is not None:
                _add(self._consumers, id_, sign)
                amounts = self.capacity.setdefault(id_, {})
                for name, written in result.consumed_capacity.items():
                    amounts[name] = amounts.get(name, 0) + sign * nano_units(written)
                if id_ not in self._consumers:
                    del self.capacity[id_]


def _add(counter: Counter[DeviceID], id_: DeviceID, sign: int) -> None:
    counter[id_] += sign
    if not counter[id_]:
        del counter[id_]


_ALLOCATED = Memo[AllocatedState]()


def allocated_state(devices: Devices, *, shares: bool) -> AllocatedState:
    """Return the allocations of all claims. `shares`: devices may be shared. A moving cluster has a single object,
    which is up to date when it is returned."""
    changes = devices.changes if isinstance(devices, MovingDevices) else ()

    def counted() -> AllocatedState:
        return AllocatedState(devices.claims.values(), shares=shares, seen=len(changes))

    kept = devices.lasting if isinstance(devices, MovingDevices) else devices.derived
    return _ALLOCATED.of(kept, counted, shares).follow(changes)


# Counters that the devices of a pool share, as partitions of one device do. Amounts are exact, in nano-units. Upstream:
# checkAvailableCounters in structured/internal/incubating.

CounterID = tuple[str, str]


class Available:
    """What allocated devices leave of each pool's counters. As upstream, the key is only the pool's name: if two
    drivers have pools with the same name, the counters of the first one evaluated count for both."""

    def __init__(self, allocated: AllocatedState) -> None:
        self._allocated = allocated
        self._left: dict[str, tuple[int, dict[CounterID, int]]] = {}

    def of(self, pool: _DevicePool) -> dict[CounterID, int]:
        """Return the remaining counters; negative if more is allocated than exists."""
        moves = self._allocated.moves[pool.name]
        known, left = self._left.get(pool.name, (-1, {}))
        if known != moves:
            left = {
                (counters.name, name): nano_units(counter.value)
                for counters in pool.counter_sets.values()
                for name, counter in counters.counters.items()
            }
            for id_, device in pool.every_device():
                if device.consumes_counters and self._allocated.has(id_):
                    for counter, amount in drawn(device):
                        if counter in left:
                            left[counter] -= amount
            self._left[pool.name] = moves, left
        return left


def drawn(device: Device) -> Iterator[tuple[CounterID, int]]:
    """Yield what a device consumes of each counter."""
    for consumed in device.consumes_counters:
        for name, counter in consumed.counters.items():
            yield (consumed.counter_set, name), nano_units(counter.value)

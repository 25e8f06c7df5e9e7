"""Resource pools: which slices of them a node can reach, whether they are whole, and in which order devices are tried.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go, and for
DeviceTaintRules resourceslice/tracker/tracker.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import CounterSet, Device, DeviceTaintRule, ResourceSlice
from kschedx.api.selectors import CompiledNodeSelector, NodeSelector, compile_node_selector
from kschedx.api.types import Node
from kschedx.errors import InputError, UndecidableError

DeviceID = tuple[str, str, str]
"""Driver, pool and device."""
PoolID = tuple[str, str]
"""Driver and pool, the order in which pools are tried."""


class PooledDevice(Struct, frozen=True, kw_only=True):
    id: DeviceID
    device: Device
    slice: ResourceSlice
    pool: Pool


class Pool(Struct, kw_only=True):
    """A pool as a node sees it."""

    id: PoolID
    is_incomplete: bool = False
    """Its driver is replacing it: some of its slices are not there yet."""
    invalid: str = ""
    """What is wrong with it."""
    devices: tuple[PooledDevice, ...] = ()
    """Those that the node can reach, in the order in which they are tried."""
    elsewhere: tuple[ResourceSlice, ...] = ()
    """Slices of other nodes, whose devices draw on the same counters."""
    counter_sets: Mapping[str, CounterSet] = {}

    @property
    def name(self) -> str:
        return self.id[1]

    @property
    def has_binding_conditions(self) -> bool:
        return any(one.device.binding_conditions for one in self.devices)

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.invalid

    def every_device(self) -> Iterator[tuple[DeviceID, Device]]:
        """The node's own, then those of slices that it does not reach."""
        for one in self.devices:
            yield one.id, one.device
        for published in self.elsewhere:
            for device in published.spec.devices:
                yield device_id(published, device), device


def device_id(published: ResourceSlice, device: Device) -> DeviceID:
    return published.spec.driver, published.spec.pool.name, device.name


def tainted(slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]) -> tuple[ResourceSlice, ...]:
    """The slices with the taints that rules put on their devices."""
    return tuple(_tainted(published, rules) for published in slices)


def _tainted(published: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    mine = [rule for rule in rules if _is_meant(published, rule)]
    if not mine:
        return published
    devices = []
    for device in published.spec.devices:
        more = tuple(rule.spec.taint for rule in mine if _names(rule, device))
        devices.append(replace(device, taints=device.taints + more) if more else device)
    return replace(published, spec=replace(published.spec, devices=tuple(devices)))


def _is_meant(published: ResourceSlice, rule: DeviceTaintRule) -> bool:
    chosen = rule.spec.device_selector
    if chosen is None:
        return True
    return chosen.driver in (None, published.spec.driver) and chosen.pool in (None, published.spec.pool.name)


def _names(rule: DeviceTaintRule, device: Device) -> bool:
    return rule.spec.device_selector is None or rule.spec.device_selector.device in (None, device.name)


class Slices:
    """All slices of a cluster, by the node that they are for."""

    def __init__(self, slices: Sequence[ResourceSlice], *, partitionable: bool) -> None:
        self._partitionable = partitionable
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._seen: dict[str, tuple[Node, list[Pool]]] = {}
        """By name of a node, what was found for it as it then was."""
        self._made: dict[tuple[int, ...], Pool] = {}
        """By identity of the slices that a node reaches: nodes that reach the same ones share a pool."""
        for published in slices:
            spec = published.spec
            self._of_pool.setdefault((spec.driver, spec.pool.name), []).append(published)
            if spec.node_name and not spec.shared_counters:
                self._of_node.setdefault(spec.node_name, []).append(published)
            else:
                self._shared.append(published)

    def pools(self, node: Node) -> list[Pool]:
        """GatherPools: by driver and name, those with binding conditions last."""
        known = self._seen.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        found = [pool for id_, slices in self._reached(node).items() if (pool := self._pool(id_, slices)) is not None]
        pools = sorted(found, key=lambda pool: (pool.has_binding_conditions, pool.id))
        self._seen[node.name] = node, pools
        return pools

    def _reached(self, node: Node) -> dict[PoolID, list[ResourceSlice]]:
        """The slices of the newest generation that the node sees, by pool."""
        found: dict[PoolID, list[ResourceSlice]] = {}
        for published in self._of_node.get(node.name, []) + self._shared:
            if not self._is_reached(published, node):
                continue
            pool = published.spec.pool
            known = found.setdefault((published.spec.driver, pool.name), [published])
            generation = known[0].spec.pool.generation
            if pool.generation > generation:
                known[:] = [published]
            elif pool.generation == generation and known[0] is not published:
                known.append(published)
        return found

    def _is_reached(self, published: ResourceSlice, node: Node) -> bool:
        spec = published.spec
        if not self._partitionable and (spec.per_device_node_selection is not None or spec.shared_counters):
            return False
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return reaches(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)
        return bool(spec.per_device_node_selection) and any(device_reaches(node, one) for one in spec.devices)

    def _pool(self, id_: PoolID, slices: list[ResourceSlice]) -> Pool | None:
        """None where a newer generation is for other nodes."""
        key = tuple(map(id, slices))
        known = self._made.get(key)
        if known is None:
            known = self._gathered(id_, slices)
            if known is not None:
                self._made[key] = known
        return known

    def _gathered(self, id_: PoolID, slices: list[ResourceSlice]) -> Pool | None:
        wanted, generation = slices[0].spec.pool.resource_slice_count, slices[0].spec.pool.generation
        if len(slices) == wanted:
            return self._built(id_, slices, slices)
        all_slices = self._of_pool[id_]
        if any(published.spec.pool.generation > generation for published in all_slices):
            return None
        current = [published for published in all_slices if published.spec.pool.generation == generation]
        if len(current) != wanted:
            return Pool(id=id_, is_incomplete=True)
        return self._built(id_, slices, current)

    def _built(self, id_: PoolID, slices: list[ResourceSlice], current: list[ResourceSlice]) -> Pool:
        """`slices` are those that the node reaches of `current`."""
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
            return Pool(id=id_, invalid=wrong)
        pool = Pool(id=id_, elsewhere=tuple(elsewhere), counter_sets=counter_sets)
        pool.devices = tuple(
            PooledDevice(id=(*id_, device.name), device=device, slice=published, pool=pool)
            for published in with_devices
            for device in published.spec.devices
        )
        return pool


def reaches(node: Node, name: str | None, selector: NodeSelector | None, *, all_nodes: bool) -> bool:
    """NodeMatches: the name, then all nodes, then the selector decide."""
    if name:
        return name == node.name
    if all_nodes:
        return True
    return selector is not None and _compiled(selector).matches(node.metadata.labels, node.name)


def device_reaches(node: Node, device: Device) -> bool:
    return reaches(node, device.node_name, device.node_selector, all_nodes=device.all_nodes)


@lru_cache(maxsize=4096)
def _compiled(selector: NodeSelector) -> CompiledNodeSelector:
    try:
        return compile_node_selector(selector).checked()
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
    """The counter sets by name, and what is wrong with them."""
    found: dict[str, CounterSet] = {}
    for published in slices:
        for counters in published.spec.shared_counters:
            if counters.name in found:
                return {}, f"duplicate counter set name {counters.name}"
            found[counters.name] = counters
    return found, ""


def _unknown_counter(counter_sets: Mapping[str, CounterSet], slices: Iterable[ResourceSlice]) -> str:
    """What a device draws on that its pool does not have."""
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

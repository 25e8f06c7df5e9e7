"""Why a node cannot give a pod's claims their devices: request by request, what is there and who has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kschedx.api.devices import AllocationMode, DeviceAttribute, DeviceSelector, ResourceClaim
from kschedx.api.quantity import Unit, format_quantity, parse_quantity
from kschedx.api.types import Node
from kschedx.findings import CounterShortage, DeviceHolder, DeviceShortage, Finding, InsufficientDevices
from kschedx.plugins.dynamic_resources.allocator import Allocator, Search
from kschedx.plugins.dynamic_resources.claims import consumers
from kschedx.plugins.dynamic_resources.counters import drawn
from kschedx.plugins.dynamic_resources.picks import FailureError
from kschedx.plugins.dynamic_resources.pools import DeviceID, PooledDevice
from kschedx.plugins.dynamic_resources.requests import Checked
from kschedx.plugins.dynamic_resources.selectors import names_in
from kschedx.snapshot.devices import Devices

_SHOWN = 8
"""Counters of which it is told that they are short."""


def shortage(
    allocator: Allocator, devices: Devices, node: Node, claims: Sequence[ResourceClaim]
) -> tuple[Finding, ...]:
    """For a node on which nothing could be allocated."""
    search = Search(allocator, node, claims)
    try:
        search.check()
        found = [
            one
            for index, claim in enumerate(claims)
            for position, options in enumerate(search.requests[index])
            for one in _of_request(search, allocator, devices, claim, (index, position), options)
        ]
    except FailureError as failure:
        return (failure.finding,)
    return (
        InsufficientDevices(
            shortages=tuple(found),
            claims=tuple(claim.key for claim in claims),
            constraints=() if found else tuple(text for claim in claims for text in _constraints(claim)),
        ),
    )


def holders(devices: Devices) -> Mapping[DeviceID, tuple[ResourceClaim, ...]]:
    """Who has which device, admin access aside."""
    known: dict[DeviceID, tuple[ResourceClaim, ...]]
    found = devices.derived.get("holders")
    if isinstance(found, dict):
        known = found
        return known
    known = {}
    for claim in devices.claims.values():
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if not result.admin_access:
                id_ = (result.driver, result.pool, result.device)
                known[id_] = (*known.get(id_, ()), claim)
    devices.derived["holders"] = known
    return known


def _of_request(
    search: Search,
    allocator: Allocator,
    devices: Devices,
    claim: ResourceClaim,
    at: tuple[int, int],
    options: Sequence[Checked],
) -> list[DeviceShortage]:
    """Of each alternative; none where one of them could be met if it were alone."""
    found = [_Account(search, allocator, devices, (*at, number), one) for number, one in enumerate(options)]
    return [] if any(one.suffices for one in found) else [one.told(claim) for one in found]


class _Account:
    """One request, and what becomes of every device in reach."""

    def __init__(
        self, search: Search, allocator: Allocator, devices: Devices, at: tuple[int, int, int], checked: Checked
    ) -> None:
        self._search, self._allocator, self._devices, self._checked = search, allocator, devices, checked
        self._of_class: list[PooledDevice] = []
        self._matching: list[PooledDevice] = []
        self._free: list[PooledDevice] = []
        self._holders: list[DeviceHolder] = []
        self._taints: Counter[str] = Counter()
        self._counters: dict[tuple[str, str], CounterShortage] = {}
        self._capacity: list[str] = []
        for one in search.devices:
            if self._matches(checked.device_class.spec.selectors, one):
                self._of_class.append(one)
                if self._matches(checked.wanted.selectors, one) and search.is_selectable(at, checked, one):
                    self._matching.append(one)
                    self._look_at(one)

    def _matches(self, selectors: Sequence[DeviceSelector], one: PooledDevice) -> bool:
        """An expression that fails on a device that the search did not come to is as good as false."""
        try:
            return self._search.matches_all("", selectors, one)
        except FailureError:
            return False

    @property
    def suffices(self) -> bool:
        if self._checked.wanted.mode == AllocationMode.ALL:
            return bool(self._matching) and len(self._free) == len(self._matching)
        return len(self._free) >= self._checked.wanted.count

    def _look_at(self, one: PooledDevice) -> None:
        wanted, features = self._checked.wanted, self._allocator.features
        name = f"{one.id[1]}/{one.id[2]}"
        if one.id in self._allocator.allocated.devices and not wanted.admin_access:
            for claim in holders(self._devices).get(one.id, ()):
                self._holders.append(DeviceHolder(device=name, claim=claim.key, consumers=consumers(claim)))
        elif features.taints and not wanted.tolerates(one.device.taints):
            self._taints.update(str(taint) for taint in one.device.taints if not wanted.tolerates((taint,)))
        elif not self._search.has_capacity(wanted, one):
            self._capacity.append(name)
        elif not self._has_counters(one):
            pass
        else:
            self._free.append(one)

    def _has_counters(self, one: PooledDevice) -> bool:
        left = self._allocator.available.of(one.pool)
        short = {
            counter: (amount, left[counter])
            for counter, amount in drawn(one.device)
            if counter in left and amount > left[counter]
        }
        for counter, (needed, rest) in short.items():
            self._counters.setdefault(
                (one.pool.name, "/".join(counter)),
                CounterShortage(
                    pool=one.pool.name, counter="/".join(counter), needed=_quantity(needed), left=_quantity(rest)
                ),
            )
        return not short and all(amount >= 0 for amount in left.values() if one.device.consumes_counters)

    def told(self, claim: ResourceClaim) -> DeviceShortage:
        wanted, failing = self._checked.wanted, self._failing()
        return DeviceShortage(
            claim=claim.key,
            request=wanted.full_name,
            device_class=wanted.class_name,
            wanted=None if wanted.mode == AllocationMode.ALL else wanted.count,
            in_reach=len(self._search.devices),
            of_class=len(self._of_class),
            matching=len(self._matching),
            free=len(self._free),
            selectors=failing,
            values=self._values(failing),
            holders=tuple(self._holders),
            taints=tuple(f"{taint} on {number}" for taint, number in sorted(self._taints.items())),
            counters=tuple(self._counters.values())[:_SHOWN],
            capacity=tuple(self._capacity),
            updating=tuple("/".join(pool.id) for pool in self._search.pools if pool.is_incomplete),
        )

    def _values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        names = {name for one in expressions for name in names_in(one)}
        counted: Counter[str] = Counter()
        for one in self._of_class or self._search.devices:
            for name, attribute in one.device.attributes.items():
                if name.rpartition("/")[2] in names:
                    counted[f"{name}={_text(attribute)}"] += 1
            for name, capacity in one.device.capacity.items():
                if name.rpartition("/")[2] in names:
                    counted[f"{name}={capacity.value}"] += 1
        return tuple(f"{text} on {number}" for text, number in sorted(counted.items()))

    def _failing(self) -> tuple[str, ...]:
        """The class's selectors where no device is of the class, otherwise the request's that some device fails."""
        if not self._of_class:
            expressions = [one for one in self._checked.device_class.spec.selectors if one.cel is not None]
            candidates = self._search.devices
        else:
            expressions = [one for one in self._checked.wanted.selectors if one.cel is not None]
            candidates = self._of_class
        return tuple(
            each.cel.expression
            for each in expressions
            if each.cel is not None and not all(self._matches((each,), one) for one in candidates)
        )


def _constraints(claim: ResourceClaim) -> list[str]:
    texts = []
    for one in claim.spec.devices.constraints:
        whose = f" of {', '.join(one.requests)}" if one.requests else ""
        if one.match_attribute is not None:
            texts.append(f"all devices{whose} must have the same {one.match_attribute}")
        elif one.distinct_attribute is not None:
            texts.append(f"no two devices{whose} may have the same {one.distinct_attribute}")
    return texts


def _text(attribute: DeviceAttribute) -> str:
    values = (getattr(attribute, name) for name in attribute.__struct_fields__)
    value = next((value for value in values if value is not None), "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quantity(nano: int) -> str:
    """As a quantity; counters are bytes as often as counts."""
    whole, rest = divmod(nano, 10**9)
    return str(parse_quantity(f"{nano}n")) if rest else format_quantity(whole, Unit.BYTE)

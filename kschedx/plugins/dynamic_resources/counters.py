"""Counters that the devices of a pool share: partitions of one piece of hardware draw on what it has.

Amounts are exact, in nano-units. Upstream: checkAvailableCounters in structured/internal/incubating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kschedx.api.devices import Device
from kschedx.api.resources import nano_units
from kschedx.plugins.dynamic_resources.pools import DeviceID, Pool

CounterID = tuple[str, str]
"""Counter set and counter."""


class Available:
    """What allocated devices have left, for each pool.

    Upstream keeps this by the pool's name alone, so that of two drivers with a pool of one name the counters of the one
    that was asked for first count for both; so it is here.
    """

    def __init__(self, is_allocated: Callable[[DeviceID], bool]) -> None:
        self._is_allocated = is_allocated
        self._left: dict[str, dict[CounterID, int]] = {}

    def of(self, pool: Pool) -> dict[CounterID, int]:
        """May be negative, where more is allocated than there is."""
        left = self._left.get(pool.name)
        if left is None:
            left = self._left[pool.name] = {
                (counters.name, name): nano_units(counter.value)
                for counters in pool.counter_sets.values()
                for name, counter in counters.counters.items()
            }
            for id_, device in pool.every_device():
                if device.consumes_counters and self._is_allocated(id_):
                    for counter, amount in drawn(device):
                        if counter in left:
                            left[counter] -= amount
        return left


def drawn(device: Device) -> Iterator[tuple[CounterID, int]]:
    """What a device takes of each counter."""
    for consumed in device.consumes_counters:
        for name, counter in consumed.counters.items():
            yield (consumed.counter_set, name), nano_units(counter.value)

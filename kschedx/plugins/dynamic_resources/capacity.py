"""Consumable capacity: devices that several claims share, each with a part of what the device has.

Amounts are exact, in nano-units. Upstream: structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, DeviceCapacity
from kschedx.api.quantity import value
from kschedx.api.resources import nano_units

_NANO = 10**9

Amounts = Mapping[str, int]
"""Capacity to nano-units."""


def fits(
    capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None, consumed: Amounts, picked: Amounts
) -> bool:
    """Whether a device has enough left of everything, after what claims have and what this search has picked."""
    if any(name not in capacity for name in _requests(wanted)):
        return False
    for name, one in capacity.items():
        amount = _consumption(one, _requests(wanted).get(name))
        if one.request_policy is not None and _violates(amount, one.request_policy):
            return False
        if consumed.get(name, 0) + amount + picked.get(name, 0) > nano_units(one.value):
            return False
    return True


def consumption(capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None) -> dict[str, int]:
    """What a share of a device takes of each of its capacities."""
    return {name: _consumption(one, _requests(wanted).get(name)) for name, one in capacity.items()}


def _requests(wanted: CapacityRequirements | None) -> Mapping[str, str | int | float]:
    return wanted.requests if wanted is not None else {}


def _consumption(capacity: DeviceCapacity, requested: str | int | float | None) -> int:
    """What is asked for, rounded up to what the device's policy allows; its default, or all of it, where nothing is."""
    policy = capacity.request_policy
    if requested is None:
        default = None if policy is None else policy.default
        return nano_units(capacity.value if default is None else default)
    amount = nano_units(requested)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _in_range(amount, requested, policy.valid_range)
    larger = (nano_units(valid) for valid in policy.valid_values)
    return next((valid for valid in larger if amount <= valid), amount)


def _in_range(amount: int, requested: str | int | float, valid: CapacityRequestPolicyRange) -> int:
    """The next step from the range's lower end, in whole units."""
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
    return bool(policy.valid_values) and amount not in {nano_units(one) for one in policy.valid_values}

"""Exact amounts of resources, formatted as Karpenter formats them.

Upstream: pkg/utils/resources, and Quantity.Add of apimachinery: a sum has the format of its first summand that is not
zero.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.kube.names import is_hugepages
from kschedx.kube.quantity import Format, ResourceList, parse_quantity
from kschedx.kube.resources import nano_units
from kschedx.kube.types import Container, Pod

NODES = "nodes"
"""Every node counts as one; only limits name it."""
PODS = "pods"
_NANO = 10**9


class Amount(Struct, frozen=True):
    """An exact amount in nano-units, with its format."""

    nano: int
    format: Format = Format.DECIMAL_SI

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.format if self.nano else other.format)

    def __str__(self) -> str:
        return _text(self.nano, self.format)


@lru_cache(maxsize=4096)
def _text(nano: int, form: Format) -> str:
    return str(dataclasses.replace(parse_quantity(f"{nano}n"), format=form, canonical=""))


ZERO = Amount(0)
Amounts = Mapping[str, Amount]


def amounts_of(resources: ResourceList) -> dict[str, Amount]:
    """Raises `InputError` with the place `[resource]`."""
    amounts: dict[str, Amount] = {}
    for name, written in resources.items():
        try:
            amounts[name] = Amount(nano_units(written), parse_quantity(written).format)
        except InputError as error:
            raise error.at(Place(field=f"[{name}]")) from None
    return amounts


def merge_amounts(*lists: Amounts) -> dict[str, Amount]:
    total: dict[str, Amount] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def subtracted(amounts: Amounts, less: Amounts) -> dict[str, Amount]:
    """Subtract; only the resources of `amounts` are in the result."""
    return {name: amount - less[name] if name in less else amount for name, amount in amounts.items()}


def fits_within(requests: Amounts, offered: Amounts) -> bool:
    """Return whether the request fits. Nothing fits if an offered amount is negative."""
    if any(amount.nano < 0 for amount in offered.values()):
        return False
    return all(amount.nano <= offered.get(name, ZERO).nano for name, amount in requests.items())


def format_amounts(amounts: Amounts) -> str:
    """Format as JSON with sorted names."""
    return json.dumps({name: str(amounts[name]) for name in sorted(amounts)}, separators=(",", ":"))


def allocatable(capacity: Amounts, overhead: Amounts) -> dict[str, Amount]:
    """Return what an instance type offers to pods: reserved huge pages are subtracted from memory."""
    usable = subtracted(capacity, overhead)
    for name, amount in capacity.items():
        if is_hugepages(name):
            left = usable.get("memory", ZERO) - amount
            usable["memory"] = left if left.nano >= 0 else Amount(0, left.format)
    return usable


def pod_requests(pods: Iterable[Pod]) -> dict[str, Amount]:
    """Sum the requests of pods, with their number."""
    count = 0
    total: dict[str, Amount] = {}
    for pod in pods:
        count += 1
        total = merge_amounts(total, _of_pod(pod))
    return total | {PODS: Amount(count * _NANO, Format.DECIMAL_EXPONENT)}


def _of_pod(pod: Pod) -> dict[str, Amount]:
    """Return the larger of the running pod and the start of any init container (component-helpers/resource,
    PodRequests)."""
    running: dict[str, Amount] = {}
    for container in pod.spec.containers:
        running = merge_amounts(running, _of_container(container))
    sidecars: dict[str, Amount] = {}
    start: dict[str, Amount] = {}
    for container in pod.spec.init_containers:
        requested = _of_container(container)
        if container.is_restartable_init:
            running = merge_amounts(running, requested)
            sidecars = merge_amounts(sidecars, requested)
            requested = sidecars
        else:
            requested = merge_amounts(requested, sidecars)
        _raise_to(start, requested)
    _raise_to(running, start)
    if pod.spec.resources is not None:
        running |= {
            name: amount
            for name, amount in amounts_of(pod.spec.resources.requests).items()
            if name in ("cpu", "memory") or is_hugepages(name)
        }
    return merge_amounts(running, amounts_of(pod.spec.overhead)) if pod.spec.overhead else running


def _of_container(container: Container) -> dict[str, Amount]:
    """Limits replace missing requests: the API server sets this default for pods, Karpenter for a DaemonSet's
    template."""
    limits = amounts_of(container.resources.limits)
    return limits | amounts_of(container.resources.requests)


def _raise_to(total: dict[str, Amount], floor: Amounts) -> None:
    for name, amount in floor.items():
        if name not in total or amount.nano > total[name].nano:
            total[name] = amount

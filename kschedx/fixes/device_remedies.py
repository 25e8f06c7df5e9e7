"""Remedies for devices: pods whose claims have those that would do.

A claim itself cannot be changed, and kube-scheduler evicts nobody for a device, so that is all that can be tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from kschedx.findings import DeviceShortage, InsufficientDevices
from kschedx.fixes.remedy import Cost, Place, Remedy, delete_pods
from kschedx.fixes.resource_remedies import MOST_VICTIMS, pod_list

_TRIED = 3
"""Ways to free the devices of a node; which of them belong together is for the trial to say."""


def free_devices(finding: InsufficientDevices, place: Place) -> Iterator[Remedy]:
    """Delete the pod of the lowest priority that has enough of them, or the fewest pods."""
    if not finding.shortages or any(_lacking(one) is None for one in finding.shortages):
        return
    held: Counter[int] = Counter()
    for short in finding.shortages:
        for holder in short.holders:
            rows = _pods(holder.claim, holder.consumers, place)
            if len(rows) == 1:
                held[rows[0]] += 1
    wanted = sum(_lacking(one) or 0 for one in finding.shortages)
    priorities = place.cycle.snapshot.pods.priorities
    enough = sorted((row for row in held if held[row] >= wanted), key=lambda row: (priorities[row], held[row], row))
    ways: list[tuple[int, ...]] = [(row,) for row in enough[:_TRIED]]
    if not ways:
        most = sorted(held, key=lambda row: (priorities[row], -held[row], row))[:MOST_VICTIMS]
        sums = list(accumulate(held[row] for row in most))
        number = next((at + 1 for at, total in enumerate(sums) if total >= wanted), None)
        ways = [tuple(sorted(most[:number]))] if number else []
    for victims in ways:
        yield Remedy(title=f"delete {pod_list(victims, place)}", cost=Cost.OTHER_PODS, step=delete_pods(victims))


def _lacking(short: DeviceShortage) -> int | None:
    """How many devices would have to be given up; None where that would not do."""
    wanted = short.matching if short.wanted is None else short.wanted
    return wanted - short.free if short.stage == "taken" and wanted <= short.free + len(short.holders) else None


def _pods(claim: str, consumers: tuple[str, ...], place: Place) -> list[int]:
    """Rows of the pods that use a claim; none where one of them counts for more than the pod, or is not known."""
    pods = place.cycle.snapshot.pods
    namespace = claim.partition("/")[0]
    rows = []
    for consumer in consumers:
        kind, _, name = consumer.partition("/")
        row = pods.rows.get(f"{namespace}/{name}") if kind == "pods" else None
        if row is None or pods.priorities[row] > place.pod.priority:
            return []
        rows.append(row)
    return rows

"""How a Deployment's pods of one template take the place of those of another.

Source of the rules: pkg/controller/deployment/rolling.go, and MaxUnavailable and MaxSurge in its util.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kschedx.api.int_or_string import scaled
from kschedx.api.resource_quota import not_created
from kschedx.api.types import Pod
from kschedx.explain.quotas import Ledger
from kschedx.simulate.changes import Manifest
from kschedx.simulate.simulator import Simulator
from kschedx.simulate.workloads import Workload, first_to_go

_DEFAULT = "25%"


class Rolling(Struct, frozen=True, kw_only=True):
    """How many pods there may be too many, and too few."""

    surge: int
    unavailable: int

    @classmethod
    def of(cls, manifest: Manifest, wanted: int) -> Rolling:
        """`Recreate` is a rollout in which all pods may be missing and none may be too many."""
        spec = manifest.get("spec")
        strategy = spec.get("strategy") if isinstance(spec, dict) else None
        written = strategy if isinstance(strategy, dict) else {}
        if written.get("type") == "Recreate":
            return cls(surge=0, unavailable=wanted)
        numbers = written.get("rollingUpdate")
        given = numbers if isinstance(numbers, dict) else {}
        surge = _share(given.get("maxSurge", _DEFAULT), wanted, is_up=True)
        unavailable = _share(given.get("maxUnavailable", _DEFAULT), wanted, is_up=False)
        return cls(surge=surge, unavailable=min(unavailable, wanted) or int(not surge))


def roll(
    simulator: Simulator, workload: Workload, rolling: Rolling, old: Sequence[int], new: Sequence[int], quotas: Ledger
) -> str:
    """Replace the pods in the rows `old` by those in the rows `new`, which are as many as are wanted, until all are, or
    until those that are made find no node, or no more are made: why the API server refuses those, else empty."""
    cluster, queue = simulator.run.cluster, simulator.queue
    least = len(new) - rolling.unavailable
    left, unmade, made = list(old), list(new), list[int]()
    refusal = ""
    while True:
        wanted = min(max(len(new) + rolling.surge - len(left) - len(made), 0), len(unmade))
        more, refusal = _allowed([cluster.pods[row] for row in unmade[:wanted]], quotas)
        made, unmade = made + unmade[:more], unmade[more:]
        queue.run(queue.order(row for row in made if cluster.pods.node[row] < 0))
        waiting = sum(int(cluster.pods.node[row] < 0) for row in made)
        here = len(left) + len(made)
        fewer = max(min(here - least - waiting, len(left)), 0)
        for row in first_to_go(simulator.run.snapshot, workload, left)[:fewer]:
            quotas.give(cluster.pods[row])
            queue.depart(row, waits=False)
            left.remove(row)
        if not more and not fewer:
            return refusal


def _allowed(pods: Sequence[Pod], quotas: Ledger) -> tuple[int, str]:
    """How many of them quotas let in, and why not the next."""
    for number, pod in enumerate(pods):
        refusal = quotas.take(pod)
        if refusal is not None:
            return number, not_created(pod, refusal)
    return len(pods), ""


def _share(value: object, whole: int, *, is_up: bool) -> int:
    """A number, or a percentage of the whole, rounded as said; the default where it is neither."""
    found = scaled(value, whole, is_up=is_up) if isinstance(value, int | str) else None
    return max(found, 0) if found is not None else _share(_DEFAULT, whole, is_up=is_up)

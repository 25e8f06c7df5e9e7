"""Changes that let a drain continue that PodDisruptionBudgets stop: more replicas, or a budget that allows one more
eviction. Each is tried with the drain itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from kschedx.controllers import workloads
from kschedx.controllers.disruption_budgets import ALWAYS, BudgetStatus
from kschedx.controllers.workloads import Owners, Workload
from kschedx.errors import InputError
from kschedx.inquiry.simulation import Simulation
from kschedx.kube.types import OUT_OF_SERVICE
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.drain import STAYS, DrainedPod, DrainOutcome, DrainResult
from kschedx.snapshot.snapshot import Snapshot

MOST_DRAINED_NODES = 10
"""Each trial repeats the whole drain."""
MOST_BUDGETS = 4
MOST_WAYS = 2

Again: TypeAlias = Callable[[Sequence[SimulatedChange]], Simulation]
"""A function that repeats the drain after more changes. Raises `InputError` for a change that cannot be made."""


class MoreReplicas(Struct, frozen=True, kw_only=True):
    workload: Workload
    replicas: int

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.SCALE, text=f"{self.workload.reference}={self.replicas}"),)


class SmallerBudget(Struct, frozen=True, kw_only=True):
    """A budget that is lowered to allow one more eviction."""

    namespace: str
    name: str
    fields: Mapping[str, int | None]
    """Spec fields to set; None for a field that is removed."""
    before: Mapping[str, int | str] = {}
    manager: str = ""
    """`Cluster pg`, which creates the budget."""

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        target = f"{self.namespace}/pdb/{self.name}"
        return tuple(
            SimulatedChange(verb=ChangeVerb.SET, text=f"{target}:spec.{field}={json.dumps(value)}")
            for field, value in self.fields.items()
        )


class WithoutBudget(Struct, frozen=True, kw_only=True):
    """The deletion of one of several budgets of a pod, which the API server otherwise never evicts."""

    namespace: str
    name: str

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.DELETE, text=f"{self.namespace}/pdb/{self.name}"),)


class EvictUnhealthy(Struct, frozen=True, kw_only=True):
    """A budget that allows the eviction of pods that are not ready, whatever its numbers."""

    namespace: str
    name: str

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        field = f"spec.unhealthyPodEvictionPolicy={ALWAYS}"
        return (SimulatedChange(verb=ChangeVerb.SET, text=f"{self.namespace}/pdb/{self.name}:{field}"),)


class OutOfService(Struct, frozen=True, kw_only=True):
    """The taint that confirms the deletions on a node whose kubelet does not answer."""

    node: str

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.TAINT, text=f"{self.node}:{OUT_OF_SERVICE}=nodeshutdown:NoExecute"),)


class ReadyPods(Struct, frozen=True, kw_only=True):
    """Pods of a budget that run on other nodes and are not ready."""

    pods: tuple[str, ...]

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        ready = json.dumps([{"type": "Ready", "status": "True"}])
        keys = (pod.partition("/") for pod in self.pods)
        return tuple(
            SimulatedChange(verb=ChangeVerb.SET, text=f"{namespace}/pod/{name}:status.conditions={ready}")
            for namespace, _, name in keys
        )


class ReleasedByOperator(Struct, frozen=True, kw_only=True):
    """A budget that an operator removes by itself, once it has moved what the pod has."""

    namespace: str
    name: str
    wait: str
    """What to wait for: `KubeVirt has live-migrated shop/virt-launcher-db`."""

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.DELETE, text=f"{self.namespace}/pdb/{self.name}"),)


_OPERATORS = {
    "VirtualMachineInstance": "KubeVirt has live-migrated {pod}: the eviction starts that",
    "InstanceManager": "Longhorn releases {pod}: its volumes are detached, with healthy replicas elsewhere",
    "CephCluster": "Rook releases {pod}: the OSDs of other hosts run, and all placement groups are clean",
}
"""The kind that controls a pod or its budget, and when its operator removes the budget."""

BudgetStep: TypeAlias = (
    MoreReplicas | SmallerBudget | EvictUnhealthy | WithoutBudget | OutOfService | ReadyPods | ReleasedByOperator
)


class DrainFix(Struct, frozen=True, kw_only=True):
    """Steps after which the drain ends."""

    steps: tuple[BudgetStep, ...]
    done: int
    """The number of nodes that can then be drained."""
    of: int


def drain_fixes(simulation: Simulation, again: Again) -> tuple[DrainFix, ...]:
    """Return fixes for drains that budgets or lost nodes stop, those after which the most nodes can be drained first.
    Empty if nothing that was tried suffices."""
    drained = simulation.drained
    stopped = {pod.budget: pod for drain_result in drained for pod in drain_result.of(*STAYS)}
    silent = tuple(
        OutOfService(node=drain_result.node)
        for drain_result in drained
        if drain_result.is_silent and drain_result.is_unconfirmed
    )
    if silent and not stopped and len(drained) <= MOST_DRAINED_NODES:
        done = sum(drain_result.is_done for drain_result in _tried(again, silent))
        return (DrainFix(steps=silent, done=done, of=len(drained)),) if done else ()
    if not stopped or len(stopped) > MOST_BUDGETS or len(drained) > MOST_DRAINED_NODES:
        return ()
    held = {name: standing for drain_result in drained for name, standing in drain_result.held.items()}
    ways = [
        [step for step in _steps(simulation.start, pod, held) if _is_let_go(budget, _tried(again, [step]))]
        for budget, pod in stopped.items()
    ]
    if not all(ways):
        return ()
    fixes = []
    before = sum(drain_result.is_done for drain_result in drained)
    for number in range(min(max(map(len, ways)), MOST_WAYS)):
        steps = tuple(way[min(number, len(way) - 1)] for way in ways)
        after = _tried(again, steps)
        done = sum(drain_result.is_done for drain_result in after)
        is_released = any(isinstance(step, ReleasedByOperator) for step in steps)  # a pod of the node may stay pending
        if (done > before or is_released) and not _stopping(after):
            fixes.append(DrainFix(steps=steps, done=done, of=len(after)))
    return tuple(sorted(fixes, key=lambda fix: -fix.done))


def _tried(again: Again, steps: Sequence[BudgetStep]) -> Sequence[DrainResult]:
    """Return the results of the drain after the steps; empty if a step cannot be made."""
    try:
        return again([change for step in steps for change in step.changes]).drained
    except InputError:
        return ()


def _is_let_go(budget: str, drained: Sequence[DrainResult]) -> bool:
    return bool(drained) and budget not in _stopping(drained)


def _stopping(drained: Sequence[DrainResult]) -> set[str]:
    """Return the budgets that stop evictions, as the pods name them."""
    return {pod.budget for drain_result in drained for pod in drain_result.of(*STAYS)}


def _steps(start: Snapshot, pod: DrainedPod, held: Mapping[str, BudgetStatus]) -> Iterator[BudgetStep]:
    """Yield steps that could allow the eviction of a pod that a budget protects."""
    if pod.fate is DrainOutcome.BUDGETS:
        for budget_name in islice(pod.budget.split(", "), MOST_WAYS):
            namespace, _, name = budget_name.partition("/")
            yield WithoutBudget(namespace=namespace, name=name)
        return
    namespace, _, name = pod.budget.partition("/")
    known = {(budget.metadata.namespace, budget.metadata.name): budget for budget in start.disruption_budgets}
    metadata, spec, standing = known[namespace, name].metadata, known[namespace, name].spec, held[pod.budget]
    manager = "" if metadata.controller is None else f"{metadata.controller.kind} {metadata.controller.name}"
    workload = Owners(start).of(start.pods, start.pods.rows[pod.pod])
    operator = next((kind for kind in (workload.kind, manager.partition(" ")[0]) if kind in _OPERATORS), "")
    if operator:
        wait = _OPERATORS[operator].format(pod=pod.pod)
        yield ReleasedByOperator(namespace=namespace, name=name, wait=wait)
        return
    if standing.failure:
        was = {"maxUnavailable": spec.max_unavailable} if spec.max_unavailable is not None else {}
        fields: dict[str, int | None] = {**dict.fromkeys(was), "minAvailable": max(standing.healthy - 1, 0)}
        before = was if spec.min_available is None else {"minAvailable": spec.min_available}
        yield SmallerBudget(namespace=namespace, name=name, fields=fields, before=before)
        return
    if pod.pod in standing.unready and spec.unhealthy_pod_eviction_policy != ALWAYS:
        yield EvictUnhealthy(namespace=namespace, name=name)
    elif unready := tuple(other for other in standing.unready if other not in (pod.pod, *standing.pending)):
        yield ReadyPods(pods=unready)
    if spec.max_unavailable is None:
        manifest = workloads.manifest_of(start, workload)
        members = Owners(start).members(start.pods, workload)
        wanted = len(members) if manifest is None else workloads.wanted_replicas(manifest)
        yield MoreReplicas(workload=workload, replicas=wanted + max(standing.needed - standing.healthy, 0) + 1)
    if isinstance(spec.min_available, int):
        least = max(standing.healthy - 1, 0)
        if least < spec.min_available:  # a status that is behind its spec can stop the drain too
            before = {"minAvailable": spec.min_available}
            fewer = {"minAvailable": least}
            yield SmallerBudget(namespace=namespace, name=name, fields=fewer, before=before, manager=manager)
        return
    fields = {} if spec.min_available is None else {"minAvailable": None}
    fields["maxUnavailable"] = len(standing.unready) + 1
    known_fields = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    was = {field: value for field, value in known_fields.items() if value is not None}
    yield SmallerBudget(namespace=namespace, name=name, fields=fields, before=was, manager=manager)

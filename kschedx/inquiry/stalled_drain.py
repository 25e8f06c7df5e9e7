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
from kschedx.kube.documents import Document
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.types import OUT_OF_SERVICE
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.drain import STAYS, DrainedPod, DrainOutcome, DrainResult
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_DRAINED_NODES = 10
"""Each trial repeats the whole drain."""
_MOST_BUDGETS = 4
_MOST_WAYS = 2

_Again: TypeAlias = Callable[[Sequence[SimulatedChange]], Simulation]
"""A function that repeats the drain after more changes. Raises `InputError` for a change that cannot be made."""


class _MoreReplicas(Struct, frozen=True, kw_only=True):
    workload: Workload
    replicas: int

    @property
    def title(self) -> str:
        return f"scale {self.workload.reference} to {self.replicas:,}"

    @property
    def command(self) -> str:
        target = f"{self.workload.reference.split('/')[1]}/{self.workload.name}"
        return shell_command(
            "kubectl scale {} -n {} --replicas={}", target, self.workload.namespace, str(self.replicas)
        )

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.SCALE, text=f"{self.workload.reference}={self.replicas}"),)


class _OfBudget(Struct, frozen=True, kw_only=True):
    """A step about one budget."""

    namespace: str
    name: str

    @property
    def pdb(self) -> str:
        return f"PDB {self.namespace}/{self.name}"

    @property
    def deletion(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.DELETE, text=f"{self.namespace}/pdb/{self.name}"),)

    def patch(self, fields: Mapping[str, object]) -> str:
        template = "kubectl patch pdb {} -n {} --type merge -p {}"
        return shell_command(template, self.name, self.namespace, {"spec": fields})


class _SmallerBudget(_OfBudget, frozen=True, kw_only=True):
    """A budget that is lowered to allow one more eviction."""

    fields: Mapping[str, int | None]  # spec fields to set; None for a field that is removed
    before: Mapping[str, int | str] = {}
    manager: str = ""  # `Cluster pg`, which creates the budget

    @property
    def title(self) -> str:
        [(field, value)] = [(field, value) for field, value in self.fields.items() if value is not None]
        if field not in self.before:
            old = ", ".join(f"{field} {value}" for field, value in self.before.items())
            return f"replace {old} of {self.pdb} with {field} {value}"
        verb = "lower" if field == "minAvailable" else "raise"
        there = f", in {self.manager}, which manages the PDB and undoes other changes of it" if self.manager else ""
        return f"{verb} {field} of {self.pdb} from {self.before[field]} to {value}{there}"

    @property
    def command(self) -> str:
        return "" if self.manager else self.patch(self.fields)

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        target = f"{self.namespace}/pdb/{self.name}"
        return tuple(
            SimulatedChange(verb=ChangeVerb.SET, text=f"{target}:spec.{field}={json.dumps(value)}")
            for field, value in self.fields.items()
        )


class _WithoutBudget(_OfBudget, frozen=True, kw_only=True):
    """The deletion of one of several budgets of a pod, which the API server otherwise never evicts."""

    @property
    def title(self) -> str:
        return f"delete {self.pdb}, since another PDB covers the same pod"

    @property
    def command(self) -> str:
        return shell_command("kubectl delete pdb {} -n {}", self.name, self.namespace)

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return self.deletion


class _EvictUnhealthy(_OfBudget, frozen=True, kw_only=True):
    """A budget that allows the eviction of pods that are not ready, whatever its numbers."""

    @property
    def title(self) -> str:
        return f"set unhealthyPodEvictionPolicy of {self.pdb} to {ALWAYS}"

    @property
    def command(self) -> str:
        return self.patch({"unhealthyPodEvictionPolicy": ALWAYS})

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        field = f"spec.unhealthyPodEvictionPolicy={ALWAYS}"
        return (SimulatedChange(verb=ChangeVerb.SET, text=f"{self.namespace}/pdb/{self.name}:{field}"),)


class _OutOfService(Struct, frozen=True, kw_only=True):
    """The taint that confirms the deletions on a node whose kubelet does not answer."""

    node: str

    @property
    def title(self) -> str:
        return f"taint {self.node} out of service if it is shut down, else repair its kubelet"

    @property
    def command(self) -> str:
        return shell_command("kubectl taint node {} {}=nodeshutdown:NoExecute", self.node, OUT_OF_SERVICE)

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.TAINT, text=f"{self.node}:{OUT_OF_SERVICE}=nodeshutdown:NoExecute"),)


class _ReadyPods(Struct, frozen=True, kw_only=True):
    """Pods of a budget that are pending, or run on other nodes and are not ready."""

    pods: tuple[str, ...]
    is_pending: bool = False

    @property
    def title(self) -> str:
        names, verb = list_names(self.pods, 3, conjunction="and"), "is" if len(self.pods) == 1 else "are"
        if self.is_pending:
            return f"first find a node for {names}, which {verb} pending"
        return f"first repair {names}, which {verb} not ready"

    @property
    def command(self) -> str:
        return why_command(self.pods[0])

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        ready = json.dumps({"conditions": [{"type": "Ready", "status": "True"}]})
        keys = (pod.partition("/") for pod in self.pods)
        return tuple(
            SimulatedChange(verb=ChangeVerb.SET, text=f"{namespace}/pod/{name}:status={ready}")
            for namespace, _, name in keys
        )


class _ReleasedByOperator(_OfBudget, frozen=True, kw_only=True):
    """A budget that an operator removes, or moves to another pod, once it has moved what the pod has."""

    title: str  # what to wait for or to change: `wait until KubeVirt has live-migrated shop/virt-launcher-db`
    command: str = ""

    @property
    def changes(self) -> tuple[SimulatedChange, ...]:
        return self.deletion


_OPERATORS = {
    "VirtualMachineInstance": "KubeVirt has live-migrated {pod}: the eviction starts that",
    "InstanceManager": "Longhorn releases {pod}: its volumes are detached, with healthy replicas elsewhere",
    "CephCluster": "Rook releases {pod}: the OSDs of other hosts run, and all placement groups are clean",
}
"""The kind that controls a pod or its budget, and when its operator removes the budget."""
_CLOUD_NATIVE_PG = "postgresql.cnpg.io/"
_OF_PRIMARY = ("cnpg.io/instanceRole", "primary")

_BudgetStep: TypeAlias = (
    _MoreReplicas | _SmallerBudget | _EvictUnhealthy | _WithoutBudget | _OutOfService | _ReadyPods | _ReleasedByOperator
)


class BudgetFixDocument(Document, frozen=True):
    title: str
    commands: tuple[str, ...]
    drained: int
    of: int


class DrainFix(Struct, frozen=True, kw_only=True):
    """Steps after which the drain ends."""

    steps: tuple[_BudgetStep, ...]
    done: int  # the number of nodes that can then be drained
    of: int

    @property
    def title(self) -> str:
        return ", ".join(step.title for step in self.steps)

    @property
    def seen(self) -> str:
        """The result of trying it: `all 3 nodes can be drained`; empty if none can, though no budget stops it."""
        if not self.done:
            return ""
        if self.of == 1:
            return "the node can be drained"
        if self.done < self.of:
            return f"{self.done:,} of {count(self.of, 'node')} can be drained"
        return f"{'both' if self.of == 2 else f'all {self.of:,}'} nodes can be drained"

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(filter(None, (step.command for step in self.steps)))

    @property
    def document(self) -> BudgetFixDocument:
        return BudgetFixDocument(self.title, self.commands, self.done, self.of)


def drain_fixes(simulation: Simulation, again: _Again) -> tuple[DrainFix, ...]:
    """Return fixes for drains that budgets or lost nodes stop, those after which the most nodes can be drained first.
    Empty if nothing that was tried suffices."""
    drained = simulation.drained
    stopped = {pod.budget: pod for drain_result in drained for pod in drain_result.of(*STAYS)}
    silent = tuple(
        _OutOfService(node=drain_result.node)
        for drain_result in drained
        if drain_result.is_silent and drain_result.is_unconfirmed
    )
    if silent and not stopped and len(drained) <= _MOST_DRAINED_NODES:
        done = sum(drain_result.is_done for drain_result in _try(again, silent))
        return (DrainFix(steps=silent, done=done, of=len(drained)),) if done else ()
    if not stopped or len(stopped) > _MOST_BUDGETS or len(drained) > _MOST_DRAINED_NODES:
        return ()
    held = {name: standing for drain_result in drained for name, standing in drain_result.held.items()}
    ways = [
        [step for step in _steps(simulation.start, pod, held) if _is_let_go(budget, _try(again, [step]))]
        for budget, pod in stopped.items()
    ]
    if not all(ways):
        return ()
    fixes = []
    before = sum(drain_result.is_done for drain_result in drained)
    for number in range(min(max(map(len, ways)), _MOST_WAYS)):
        steps = tuple(way[min(number, len(way) - 1)] for way in ways)
        after = _try(again, steps)
        done = sum(drain_result.is_done for drain_result in after)
        # a pod of the node may then stay pending
        is_released = any(isinstance(step, _ReleasedByOperator | _ReadyPods) for step in steps)
        if (done > before or is_released) and not _stopping_budgets(after):
            fixes.append(DrainFix(steps=steps, done=done, of=len(after)))
    return tuple(sorted(fixes, key=lambda fix: -fix.done))


def _try(again: _Again, steps: Sequence[_BudgetStep]) -> Sequence[DrainResult]:
    """Return the results of the drain after the steps; empty if a step cannot be made."""
    try:
        return again([change for step in steps for change in step.changes]).drained
    except InputError:
        return ()


def _is_let_go(budget: str, drained: Sequence[DrainResult]) -> bool:
    return bool(drained) and budget not in _stopping_budgets(drained)


def _stopping_budgets(drained: Sequence[DrainResult]) -> set[str]:
    """Return the budgets that stop evictions, as the pods name them."""
    return {pod.budget for drain_result in drained for pod in drain_result.of(*STAYS)}


def _of_postgres(
    start: Snapshot, pod: DrainedPod, workload: Workload, cluster: str, budget: str
) -> _ReleasedByOperator:
    """Return what frees the primary of a Cluster of CloudNativePG: the operator moves it off a cordoned node, to
    another instance. It would undo a change of the budget."""
    title = f"wait until CloudNativePG has made another instance of {cluster} the primary: the cordon starts that"
    command = ""
    if len(Owners(start).members(start.pods, workload)) < 2:
        title = f"set enablePDB to false in {cluster}, which has no other instance: it is down until the pod runs again"
        template = "kubectl patch clusters.postgresql.cnpg.io {} -n {} --type merge -p {}"
        spec = {"spec": {"enablePDB": False}}
        command = shell_command(template, cluster.partition(" ")[2], workload.namespace, spec)
    return _ReleasedByOperator(namespace=workload.namespace, name=budget, title=title, command=command)


def _steps(start: Snapshot, pod: DrainedPod, held: Mapping[str, BudgetStatus]) -> Iterator[_BudgetStep]:
    """Yield steps that could allow the eviction of a pod that a budget protects."""
    if pod.fate is DrainOutcome.BUDGETS:
        for budget_name in islice(pod.budget.split(", "), _MOST_WAYS):
            namespace, _, name = budget_name.partition("/")
            yield _WithoutBudget(namespace=namespace, name=name)
        return
    namespace, _, name = pod.budget.partition("/")
    known = {(budget.metadata.namespace, budget.metadata.name): budget for budget in start.disruption_budgets}
    metadata, spec, standing = known[namespace, name].metadata, known[namespace, name].spec, held[pod.budget]
    manager = "" if metadata.controller is None else f"{metadata.controller.kind} {metadata.controller.name}"
    workload = Owners(start).of(start.pods, start.pods.rows[pod.pod])
    operator = next((kind for kind in (workload.kind, manager.partition(" ")[0]) if kind in _OPERATORS), "")
    if operator:
        title = f"wait until {_OPERATORS[operator].format(pod=pod.pod)}"
        yield _ReleasedByOperator(namespace=namespace, name=name, title=title)
        return
    is_of_postgres = metadata.controller is not None and metadata.controller.api_version.startswith(_CLOUD_NATIVE_PG)
    if is_of_postgres and _OF_PRIMARY in start.pods.labels[start.pods.rows[pod.pod]].items():
        yield _of_postgres(start, pod, workload, manager, name)
        return
    if standing.failure:
        was = {"maxUnavailable": spec.max_unavailable} if spec.max_unavailable is not None else {}
        fields: dict[str, int | None] = {**dict.fromkeys(was), "minAvailable": max(standing.healthy - 1, 0)}
        before = was if spec.min_available is None else {"minAvailable": spec.min_available}
        yield _SmallerBudget(namespace=namespace, name=name, fields=fields, before=before)
        return
    if pod.pod in standing.unready and spec.unhealthy_pod_eviction_policy != ALWAYS:
        yield _EvictUnhealthy(namespace=namespace, name=name)
    elif unready := tuple(other for other in standing.unready if other not in (pod.pod, *standing.pending)):
        yield _ReadyPods(pods=unready)
    elif standing.pending:
        yield _ReadyPods(pods=standing.pending, is_pending=True)
    if spec.max_unavailable is None:
        manifest = workloads.manifest_of(start, workload)
        members = Owners(start).members(start.pods, workload)
        wanted = len(members) if manifest is None else workloads.wanted_replicas(manifest)
        yield _MoreReplicas(workload=workload, replicas=wanted + max(standing.needed - standing.healthy, 0) + 1)
    if isinstance(spec.min_available, int):
        least = max(standing.healthy - 1, 0)
        if least < spec.min_available:  # a status that is behind its spec can stop the drain too
            before = {"minAvailable": spec.min_available}
            fewer = {"minAvailable": least}
            yield _SmallerBudget(namespace=namespace, name=name, fields=fewer, before=before, manager=manager)
        return
    fields = {} if spec.min_available is None else {"minAvailable": None}
    fields["maxUnavailable"] = len(standing.unready) + 1
    known_fields = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    was = {field: value for field, value in known_fields.items() if value is not None}
    yield _SmallerBudget(namespace=namespace, name=name, fields=fields, before=was, manager=manager)

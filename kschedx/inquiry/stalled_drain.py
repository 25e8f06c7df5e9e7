"""Changes that let a drain continue that PodDisruptionBudgets stop: more replicas, or a budget that allows one more
eviction. Each is tried with the drain itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.controllers.disruption_budgets import ALWAYS, BudgetStatus
from kschedx.controllers.pod_autoscaling import autoscaler_of
from kschedx.controllers.pod_lifecycle import is_node_lost, is_ready
from kschedx.controllers.workloads import Workload, member_rows, owners_in
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.grouping import group_pairs
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import drain_nodes
from kschedx.kube.conditions import ObjectStatus, condition_of
from kschedx.kube.decoding import decode
from kschedx.kube.documents import Document, Json, to_json
from kschedx.kube.escaping import add_cluster_options, shell_command, why_command
from kschedx.kube.kubectl import merge_patch, remove_finalizers, scale_workload
from kschedx.kube.resources import ValidatingWebhookConfiguration
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import OUT_OF_SERVICE
from kschedx.results import Shown
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.drain import STAYS, DrainedPod, DrainOutcome, DrainResult
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_MOST_DRAINED_NODES = 10  # each trial repeats the whole drain
_MOST_BUDGETS = 4
_MOST_WAYS = 2

_Changes: TypeAlias = Sequence[SimulatedChange]
_Again: TypeAlias = Callable[[_Changes], Simulation]
"""A function that repeats the drain after more changes. Raises `InputError` for a change that cannot be made."""


class _BudgetStep(Struct, frozen=True, kw_only=True):
    """A change that may let a drain continue."""

    title: str
    commands: tuple[str, ...] = ()
    changes: tuple[SimulatedChange, ...]
    is_release: bool = False  # whether a pod of the node may stay pending then
    is_repair: bool = False  # whether it repairs the pods that use up the budget


class _Budget(Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget, and the steps about it."""

    namespace: str
    name: str

    @property
    def _title(self) -> str:
        return f"PDB {self.namespace}/{self.name}"

    @property
    def _target(self) -> str:
        return f"{self.namespace}/pdb/{self.name}"

    @property
    def _deletion(self) -> tuple[SimulatedChange, ...]:
        return (SimulatedChange(verb=ChangeVerb.DELETE, text=self._target),)

    def _patch(self, fields: Mapping[str, object]) -> str:
        return merge_patch("pdb", self.namespace, self.name, {"spec": fields})

    def lowered(
        self, fields: Mapping[str, int | None], before: Mapping[str, int | str], manager: str = ""
    ) -> _BudgetStep:
        """Return the step to allow one more eviction. `fields` of the spec are set, those with None are removed;
        `manager` creates the budget: `Cluster pg`."""
        [(field, value)] = [(field, value) for field, value in fields.items() if value is not None]
        if field not in before:
            old = ", ".join(f"{field} {value}" for field, value in before.items())
            title = f"replace {old} of {self._title} with {field} {value}"
        else:
            verb = "lower" if field == "minAvailable" else "raise"
            there = f", in {manager}, which manages the PDB and undoes other changes of it" if manager else ""
            title = f"{verb} {field} of {self._title} from {before[field]} to {value}{there}"
        texts = (f"{self._target}:spec.{field}={json.dumps(value)}" for field, value in fields.items())
        changes = tuple(SimulatedChange(verb=ChangeVerb.SET, text=text) for text in texts)
        return _BudgetStep(title=title, commands=() if manager else (self._patch(fields),), changes=changes)

    def deleted(self) -> _BudgetStep:
        """Return the deletion of one of several budgets of a pod, which the API server otherwise never evicts."""
        return _BudgetStep(
            title=f"delete {self._title}, since another PDB covers the same pod",
            commands=(shell_command("kubectl delete pdb {} -n {}", self.name, self.namespace),),
            changes=self._deletion,
        )

    def evicting_unhealthy(self) -> _BudgetStep:
        """Return the step to allow the eviction of pods that are not ready, whatever the budget's numbers."""
        text = f"{self._target}:spec.unhealthyPodEvictionPolicy={ALWAYS}"
        return _BudgetStep(
            title=f"set unhealthyPodEvictionPolicy of {self._title} to {ALWAYS}",
            commands=(self._patch({"unhealthyPodEvictionPolicy": ALWAYS}),),
            changes=(SimulatedChange(verb=ChangeVerb.SET, text=text),),
        )

    def released(self, title: str, command: str = "") -> _BudgetStep:
        """Return the step after which an operator removes the budget, or moves it to another pod: `wait until KubeVirt
        has live-migrated shop/virt-launcher-db`."""
        commands = (command,) if command else ()
        return _BudgetStep(title=title, commands=commands, changes=self._deletion, is_release=True)


def _more_replicas(start: Snapshot, workload: Workload, replicas: int) -> _BudgetStep:
    """Return the step to more replicas. An autoscaler would undo it, unless it is about its own bounds."""
    if (hpa := autoscaler_of(start, workload)) is not None:
        namespace, name = hpa.metadata.namespace, hpa.metadata.name
        fields = ["minReplicas", *(["maxReplicas"] if (hpa.spec.max_replicas or replicas) < replicas else [])]
        texts = (f"{namespace}/hpa/{name}:spec.{field}={replicas}" for field in fields)
        return _BudgetStep(
            title=f"raise {' and '.join(fields)} of HorizontalPodAutoscaler {namespace}/{name} to {replicas:,}",
            commands=(merge_patch("hpa", namespace, name, {"spec": dict.fromkeys(fields, replicas)}),),
            changes=tuple(SimulatedChange(verb=ChangeVerb.SET, text=text) for text in texts),
        )
    kind = workload.reference.split("/")[1]
    return _BudgetStep(
        title=f"scale {workload.reference} to {replicas:,}",
        commands=(scale_workload(kind, workload.namespace, workload.name, replicas),),
        changes=(SimulatedChange(verb=ChangeVerb.SCALE, text=f"{workload.reference}={replicas}"),),
    )


def _nodes_like(node: str, number: int) -> _BudgetStep:
    return _BudgetStep(
        title=f"add {'a node' if number == 1 else f'{number:,} nodes'} like {node}",
        changes=(SimulatedChange(verb=ChangeVerb.ADD_NODES, text=f"{number}={node}"),),
    )


def _taint_out_of_service(node: str) -> _BudgetStep:
    """Return the taint that confirms the deletions on a node whose kubelet does not answer."""
    return _BudgetStep(
        title=f"taint {node} out of service if it is shut down, else repair its kubelet",
        commands=(shell_command("kubectl taint node {} {}=nodeshutdown:NoExecute", node, OUT_OF_SERVICE),),
        changes=(SimulatedChange(verb=ChangeVerb.TAINT, text=f"{node}:{OUT_OF_SERVICE}=nodeshutdown:NoExecute"),),
    )


def _without_finalizers(finalizers: Sequence[str], pods: Sequence[str]) -> _BudgetStep:
    """Return the step for pods that the same finalizers keep, tried as the deletion of the pods: the controllers of the
    finalizers are repaired, or the finalizers removed."""
    names = [pod.split("/") for pod in pods]
    noun, of = f"finalizer{'' if len(finalizers) == 1 else 's'}", list_names(pods, 3, conjunction="and")
    return _BudgetStep(
        title=f"repair the controller of {noun} {', '.join(finalizers)} of {of}, or remove the {noun} if it is gone",
        commands=tuple(remove_finalizers("pod", namespace, name) for namespace, name in names),
        changes=tuple(
            SimulatedChange(verb=ChangeVerb.DELETE, text=f"{namespace}/pod/{name}") for namespace, name in names
        ),
    )


def _ready_pods(pods: Sequence[str], start: Snapshot, *, are_pending: bool = False) -> _BudgetStep:
    """Return the step for pods of a budget that are pending, or run on other nodes and are not ready. If no kubelet
    responds for any of them, their nodes are repaired."""
    names, verb = list_names(pods, 3, conjunction="and"), "is" if len(pods) == 1 else "are"
    title = f"first repair {names}, which {verb} not ready"
    if are_pending:
        title = f"first find a node for {names}, which {verb} pending"
    on = dict.fromkeys(start.pods.node_names[start.pods.rows[pod]] for pod in pods)
    command = why_command(pods[0])
    if not are_pending and all(is_node_lost(start, node) for node in on):
        title = f"first repair {list_names([*on], 3, conjunction='and')}, where {names} {verb} not ready"
        command = add_cluster_options(shell_command("kschedx why node/{}", next(iter(on))))
    ready = json.dumps({"conditions": [{"type": "Ready", "status": "True"}]})
    texts = (f"{namespace}/pod/{name}:status={ready}" for namespace, _, name in (pod.partition("/") for pod in pods))
    changes = tuple(SimulatedChange(verb=ChangeVerb.SET, text=text) for text in texts)
    return _BudgetStep(title=title, commands=(command,), changes=changes, is_release=True, is_repair=True)


def _without_pods(pods: Sequence[str]) -> _BudgetStep:
    """Return the step for pods of a budget that are being deleted."""
    has = "has" if len(pods) == 1 else "have"
    targets = (pod.replace("/", "/pod/", 1) for pod in pods)
    return _BudgetStep(
        title=f"wait until {list_names(pods, 3, conjunction='and')} {has} terminated",
        changes=tuple(SimulatedChange(verb=ChangeVerb.DELETE, text=target) for target in targets),
        is_release=True,
        is_repair=True,
    )


_OPERATORS = {
    "VirtualMachineInstance": "KubeVirt has live-migrated {pod}: the eviction starts that",
    "InstanceManager": "Longhorn releases {pod}: its volumes are detached, with healthy replicas elsewhere",
    "CephCluster": "Rook releases {pod}: the OSDs of other hosts run, and all placement groups are clean",
}
"""The kind that controls a pod or its budget, and when its operator removes the budget."""
_CLOUD_NATIVE_PG = "postgresql.cnpg.io/"
_OF_PRIMARY = ("cnpg.io/instanceRole", "primary")
_SPILO = "spilo-role"  # of the pods of Zalando's operator; its budget selects the primary by this label


class BudgetFixDocument(Document, frozen=True):
    title: str
    commands: tuple[str, ...]
    drained: int
    of: int


class _DrainFix(Struct, frozen=True, kw_only=True):
    """Steps after which the drain ends."""

    steps: tuple[_BudgetStep, ...]
    done: int  # the number of nodes that can then be drained
    of: int
    needs_flags: bool = False  # whether kubectl refuses the drain without more flags

    @property
    def title(self) -> str:
        return ", ".join(step.title for step in self.steps)

    @property
    def seen(self) -> str:
        """The result of trying it: `all 3 nodes can be drained`; empty if none can, though no budget stops it."""
        if not self.done:
            return ""
        nodes = f"{'both' if self.of == 2 else f'all {self.of:,}'} nodes"
        if self.done < self.of:
            nodes = f"{self.done:,} of {count(self.of, 'node')}"
        which = "the node" if self.of == 1 else nodes
        return f"{'with these flags ' if self.needs_flags else ''}{which} can be drained"

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(command for step in self.steps for command in step.commands)

    @property
    def document(self) -> BudgetFixDocument:
        return BudgetFixDocument(self.title, self.commands, self.done, self.of)


class DrainRemedies(Struct, frozen=True):
    """What unblocks drains."""

    fixes: tuple[_DrainFix, ...] = ()
    forced: Sequence[DrainResult] = ()  # the drains that kubectl refuses, with the flags that it requires

    @property
    def document(self) -> Json:
        return {"budgetFixes": [to_json(fix.document) for fix in self.fixes]} if self.fixes else {}


class DrainPreview(Shown, Struct, frozen=True, kw_only=True):
    """Drains, and what unblocks them."""

    simulation: Simulation
    each: bool = False  # whether each node is drained by itself
    remedies: DrainRemedies = DrainRemedies()

    def to_dict(self) -> Json:
        return self.simulation.to_dict() | self.remedies.document


def preview_drain(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str] | None,
    changes: Sequence[SimulatedChange] = (),
    *,
    options: SimulationOptions,
    namespace: str = "default",
    each: bool = False,
    uncordons: bool = True,
) -> DrainPreview:
    """Drain nodes, as `drain_nodes`, and find out what unblocks them."""

    def drain(flags: SimulationOptions, more: Sequence[SimulatedChange] = (), only: Sequence[str] = ()) -> Simulation:
        return drain_nodes(
            snapshot,
            setup,
            only or nodes,
            (*changes, *more),
            options=flags,
            namespace=namespace,
            each=each,
            uncordons=uncordons,
        )

    simulation = drain(options)
    refused = [drain_result.node for drain_result in simulation.drained if drain_result.is_refused]
    again = partial(drain, only=refused if each else ())
    return DrainPreview(simulation=simulation, each=each, remedies=_remedies(simulation, options, again, each=each))


def simulated_drain_remedies(
    simulation: Simulation, options: SimulationOptions, run: Callable[[SimulationOptions, _Changes], Simulation]
) -> DrainRemedies:
    """Return what unblocks the first drains among the changes of a simulation, which `run` repeats."""
    if all(drain_result.is_done for drain_result in simulation.drained):
        return DrainRemedies()
    changes = simulation.changes
    first = next(number for number, change in enumerate(changes) if change.verb is ChangeVerb.DRAIN)
    drains = tuple(takewhile(lambda change: change.verb is ChangeVerb.DRAIN, changes[first:]))

    def again(flags: SimulationOptions, more: _Changes = ()) -> Simulation:
        return run(flags, (*changes[:first], *more, *drains))

    is_whole = len(changes) == first + len(drains)
    return _remedies(simulation if is_whole else again(options), options, again)


def _remedies(
    simulation: Simulation, options: SimulationOptions, again: Callable[..., Simulation], *, each: bool = False
) -> DrainRemedies:
    """Return what unblocks drains. `again` repeats them with other options, and after more changes."""
    with_flags = None
    if any(drain_result.is_refused for drain_result in simulation.drained):
        # the question is where the pods go, not which flags kubectl needs
        options = replace(options, force=True, delete_emptydir_data=True)
        with_flags = again(options)
    fixes = () if each else drain_fixes(with_flags or simulation, partial(again, options))
    forced = () if with_flags is None else with_flags.drained
    return DrainRemedies(tuple(replace(fix, needs_flags=bool(forced)) for fix in fixes), forced)


def drain_fixes(simulation: Simulation, again: _Again) -> tuple[_DrainFix, ...]:
    """Return fixes for drains that budgets, lost nodes, or finalizers stop: those that repair what uses up a budget
    first, then those after which the most nodes can be drained. Empty if nothing that was tried suffices."""
    drained = simulation.drained
    stopped = {pod.budget: pod for drain_result in drained for pod in drain_result.of(*STAYS)}
    silent = tuple(_taint_out_of_service(it.node) for it in drained if it.is_silent and it.is_unconfirmed)
    kept = ((finalizers, pod) for drain_result in drained for pod, finalizers in drain_result.finalizers.items())
    freed = tuple(_without_finalizers(*it) for it in group_pairs(islice(kept, _MOST_BUDGETS)).items())
    if (steps := (*freed, *silent)) and not stopped and len(drained) <= _MOST_DRAINED_NODES:
        done = sum(drain_result.is_done for drain_result in _try(again, steps))
        return (_DrainFix(steps=steps, done=done, of=len(drained)),) if done else ()
    if not stopped or len(stopped) > _MOST_BUDGETS or len(drained) > _MOST_DRAINED_NODES:
        return ()
    held = {name: standing for drain_result in drained for name, standing in drain_result.held.items()}
    before = sum(drain_result.is_done for drain_result in drained)
    fixes: list[_DrainFix] = []
    room: tuple[_BudgetStep, ...]
    for room in ((), (_nodes_like(drained[0].node, len(drained)),)):  # evicted pods without a node use up a budget
        ways = [
            [
                step
                for step in _steps(simulation.start, pod, held)
                if (after := _try(again, [*room, step])) and budget not in _stopping_budgets(after)
            ]
            for budget, pod in stopped.items()
        ]
        for number in range(min(max(map(len, ways)), _MOST_WAYS) if all(ways) else 0):
            steps = (*room, *(way[min(number, len(way) - 1)] for way in ways))
            after = _try(again, steps)
            done = sum(drain_result.is_done for drain_result in after)
            if (done > before or any(step.is_release for step in steps)) and not _stopping_budgets(after):
                fixes.append(_DrainFix(steps=steps, done=done, of=len(after)))
        if fixes:
            break
    return tuple(sorted(fixes, key=lambda fix: (not any(step.is_repair for step in fix.steps), -fix.done)))


def _try(again: _Again, steps: Sequence[_BudgetStep]) -> Sequence[DrainResult]:
    """Return the results of the drain after the steps; empty if a step cannot be made."""
    try:
        return again([change for step in steps for change in step.changes]).drained
    except InputError:
        return ()


def _stopping_budgets(drained: Sequence[DrainResult]) -> set[str]:
    """Return the budgets that stop evictions, as the pods name them."""
    return {pod.budget for drain_result in drained for pod in drain_result.of(*STAYS)}


def _of_postgres(start: Snapshot, budget: _Budget, workload: Workload, cluster: str) -> _BudgetStep:
    """Return what frees the primary of a Cluster of CloudNativePG: the operator moves it off a cordoned node, to
    another instance. It would undo a change of the budget."""
    title = f"wait until CloudNativePG has made another instance of {cluster} the primary: the cordon starts that"
    command = ""
    if len(member_rows(start, workload)) < 2:
        title = f"set enablePDB to false in {cluster}, which has no other instance: it is down until the pod runs again"
        resource, name = "clusters.postgresql.cnpg.io", cluster.partition(" ")[2]
        command = merge_patch(resource, workload.namespace, name, {"spec": {"enablePDB": False}})
    return budget.released(title, command)


def _released_by(operator: str, pod: str, budget: _Budget, start: Snapshot) -> _BudgetStep:
    """Return the wait until an operator removes the budget; Rook's waits until all storage daemons, which have the same
    `app` label, are ready."""
    pods, kind = start.pods, start.pods.labels[start.pods.rows[pod]].get("app")
    alike = pods.in_namespace(pod.partition("/")[0]) & pods.labels.where(lambda its: its.get("app") == kind)
    rows = alike.nonzero()[0].tolist() if operator == "CephCluster" else ()
    down = next((pods.key(row) for row in rows if not is_ready(pods[row])), "")
    repair = f"first repair {down}, which is not ready, then " if down else ""
    title = f"{repair}wait until {_OPERATORS[operator].format(pod=pod)}"
    return budget.released(title, why_command(down) if down else "")


def _has_drain_cleaner(start: Snapshot) -> bool:
    configurations = start.of(ValidatingWebhookConfiguration)
    return any("drain-cleaner.strimzi.io" in webhook.name for item in configurations for webhook in item.webhooks)


class _MachineInstance(Struct, frozen=True):
    status: ObjectStatus = ObjectStatus()


def _not_migratable(start: Snapshot, workload: Workload) -> str:
    """Return the reason for which KubeVirt does not live-migrate a VirtualMachineInstance; empty if it does."""
    raw = start.custom_resources.get((f"{workload.kind}.kubevirt.io", workload.namespace, workload.name), b"{}")
    blocked = condition_of(decode(raw, _MachineInstance).status.conditions, "LiveMigratable", "False")
    return "" if blocked is None else blocked.reason or "LiveMigratable=False"


def _step_of_operator(
    start: Snapshot, pod: str, budget: _Budget, workload: Workload, manager: str, *, is_of_postgres: bool
) -> _BudgetStep | None:
    """Return what frees a pod whose operator moves it or removes its budget; None if an operator does neither.
    `manager` owns the budget: `Cluster pg`."""
    operator = next((kind for kind in (workload.kind, manager.partition(" ")[0]) if kind in _OPERATORS), "")
    if workload.kind == "StrimziPodSet" and _has_drain_cleaner(start):
        return budget.released(f"wait until Strimzi has moved {pod}: its Drain Cleaner starts that")
    if operator and (reason := _not_migratable(start, workload)):
        title = f"stop VM {workload.name}: KubeVirt cannot live-migrate it ({reason})"
        return budget.released(title, shell_command("virtctl stop {} -n {}", workload.name, workload.namespace))
    if operator:
        return _released_by(operator, pod, budget, start)
    if is_of_postgres and _OF_PRIMARY in start.pods.labels[start.pods.rows[pod]].items():
        return _of_postgres(start, budget, workload, manager)
    return None


def _steps(start: Snapshot, pod: DrainedPod, held: Mapping[str, BudgetStatus]) -> Iterator[_BudgetStep]:
    """Yield steps that could allow the eviction of a pod that a budget protects."""
    if pod.fate is DrainOutcome.BUDGETS:
        for budget_name in islice(pod.budget.split(", "), _MOST_WAYS):
            namespace, _, name = budget_name.partition("/")
            yield _Budget(namespace=namespace, name=name).deleted()
        return
    namespace, _, name = pod.budget.partition("/")
    budget = _Budget(namespace=namespace, name=name)
    known = {(item.metadata.namespace, item.metadata.name): item for item in start.disruption_budgets}
    metadata, spec, standing = known[namespace, name].metadata, known[namespace, name].spec, held[pod.budget]
    owner = metadata.controller or next(iter(metadata.owner_references), None)
    manager = "" if owner is None else f"{owner.kind} {owner.name}"
    workload = owners_in(start).of(start.pods, start.pods.rows[pod.pod])
    is_of_postgres = metadata.controller is not None and metadata.controller.api_version.startswith(_CLOUD_NATIVE_PG)
    step = _step_of_operator(start, pod.pod, budget, workload, manager, is_of_postgres=is_of_postgres)
    if step is not None:
        yield step
        return
    if _SPILO in (spec.selector or LabelSelector()).match_labels:
        yield budget.released("wait until Zalando's operator has moved the primary: the cordon starts that")
        return
    if standing.failure:
        was = {"maxUnavailable": spec.max_unavailable} if spec.max_unavailable is not None else {}
        fields: dict[str, int | None] = {**dict.fromkeys(was), "minAvailable": max(standing.healthy - 1, 0)}
        before = was if spec.min_available is None else {"minAvailable": spec.min_available}
        yield budget.lowered(fields, before)
        return
    if pod.pod in standing.unready and spec.unhealthy_pod_eviction_policy != ALWAYS:
        yield budget.evicting_unhealthy()
    elif unready := tuple(other for other in standing.unready if other not in (pod.pod, *standing.pending)):
        rows = start.pods.rows
        leaving = [other for other in unready if other in rows and start.pods.deletion_timestamps[rows[other]]]
        yield _without_pods(leaving) if leaving else _ready_pods(unready, start)
    elif standing.pending:
        yield _ready_pods(standing.pending, start, are_pending=True)
    if spec.max_unavailable is None and (standing.healthy or not standing.unready):
        # if no pod becomes ready, another replica does not either
        manifest = start.manifest_of(workload)
        members = member_rows(start, workload)
        wanted = len(members) if manifest is None else workloads.wanted_replicas(manifest)
        yield _more_replicas(start, workload, wanted + max(standing.needed - standing.healthy, 0) + 1)
    if isinstance(spec.min_available, int):
        least = max(standing.healthy - 1, 0)
        if least < spec.min_available:  # a status that is behind its spec can stop the drain too
            before = {"minAvailable": spec.min_available}
            fewer = {"minAvailable": least}
            yield budget.lowered(fewer, before, manager)
        return
    fields = {} if spec.min_available is None else {"minAvailable": None}
    fields["maxUnavailable"] = len(standing.unready) + 1
    known_fields = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    was = {field: value for field, value in known_fields.items() if value is not None}
    yield budget.lowered(fields, was, manager)

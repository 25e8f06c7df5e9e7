"""Why a machine of Cluster API or OpenShift has no node, and why an object that creates machines lacks nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from kschedx.controllers import states
from kschedx.explain.advice import FixGroup
from kschedx.fixes.node_remedies import node_repairs
from kschedx.fixes.phrases import machine_repair
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.node import NodeAnswer
from kschedx.inquiry.node_scaling import autoscaler_fix
from kschedx.inquiry.object_answer import ObjectAnswer, ObjectQuestion, drain_facts, drain_fixes
from kschedx.kube.autoscalers import (
    CLUSTER_API_GROUP,
    OPENSHIFT_GROUP,
    PAUSED_MACHINES,
    Machine,
    OpenShiftMachine,
    OpenShiftMachineSet,
    Scalable,
)
from kschedx.kube.escaping import shell_command
from kschedx.kube.kubectl import merge_patch
from kschedx.wording import count
from kschedx.words.constraints import fault_text

_MOST = 3


def explain_machines(asked: ObjectQuestion) -> ObjectAnswer | None:
    """Return what a machine lacks to be a node, or how many of its nodes an object that creates machines lacks, and
    why; None for an object that does not exist."""
    match asked.object:
        case Machine() as machine:
            return _MachineAnswer(asked, machine).answer
        case Scalable() as scalable:
            return _scalable_answer(asked, scalable)
        case _:
            return None


class _MachineAnswer:
    def __init__(self, asked: ObjectQuestion, machine: Machine) -> None:
        self._asked, self._machine = asked, machine
        self._subject = f"{machine.metadata.namespace}/machine/{machine.name}"

    @property
    def _node(self) -> str:
        """The name of its node; empty if it has none, or if that does not exist."""
        name = self._machine.status.node
        return name if name in self._asked.snapshot.cluster.index else ""

    @property
    def _fault(self) -> str:
        """What is wrong with its node."""
        cluster = self._asked.snapshot.cluster
        return fault_text(cluster.nodes[cluster.index[self._node]], self._asked.snapshot.taken) if self._node else ""

    @property
    def does(self) -> str:
        """What it is or lacks, after its name."""
        machine = self._machine
        if machine.metadata.deletion_timestamp:
            return "is being deleted"
        if self._node:
            return f"has node {self._node}{f', which is {self._fault}' if self._fault else ''}"
        if machine.status.node:
            return f"has no node: {machine.status.node} does not exist"
        phase = f" (phase {machine.status.phase})" if machine.status.phase else ""
        return f"has no node{phase}"

    @property
    def text(self) -> str:
        """Its name, what it lacks, and why."""
        machine = self._machine
        why = machine.failure or ("" if self._node else machine.progress)
        return f"{machine.name} {self.does}{f': {why}' if why else ''}"

    @property
    def answer(self) -> ObjectAnswer:
        machine = self._machine
        if machine.metadata.deletion_timestamp:
            facts = (*machine.deletion, *(drain_facts(self._drained) if self._drained is not None else ()))
            state: states.Lifecycle = states.BeingDeleted(
                subject=self._subject, since=machine.metadata.deletion_timestamp, is_workload=True, facts=facts
            )
            return ObjectAnswer(state=state, fixes=partial(drain_fixes, self._drained) if self._drained else tuple)
        if self._node and not self._fault:
            return ObjectAnswer(state=states.ObjectState(subject=self._subject, does=self.does))
        facts = tuple(filter(None, (machine.failure or machine.progress,)))
        state = states.WithoutNode(subject=self._subject, does=self.does, facts=facts)
        return ObjectAnswer(state=state, fixes=self._fixes)

    @property
    def _drained(self) -> NodeAnswer | None:
        return NodeAnswer(self._asked.setup, self._asked.snapshot, self._node) if self._node else None

    def _fixes(self) -> Iterator[Fix]:
        machine, snapshot = self._machine, self._asked.snapshot
        if self._node:
            row = snapshot.cluster.index[self._node]
            for step in node_repairs(row, snapshot.cluster.nodes[row], snapshot):
                yield Fix.untried(step.title, *step.commands(), of_group=FixGroup.CAPACITY)
            return
        group = OPENSHIFT_GROUP if isinstance(machine, OpenShiftMachine) else CLUSTER_API_GROUP
        named = machine.name, machine.metadata.namespace
        command = shell_command(f"kubectl describe machines.{group} {{}} -n {{}}", *named)
        if machine.status.node:
            yield autoscaler_fix(f"delete machine {machine.name}, whose node no longer exists, for another", command)
        elif machine.failure:
            yield autoscaler_fix(machine_repair(machine), command)
        else:
            yield autoscaler_fix(f"wait until {machine.name} has a node, or see what its conditions lack", command)


# Objects that create machines: MachineDeployment, MachineSet, MachinePool.


def _scalable_answer(asked: ObjectQuestion, scalable: Scalable) -> ObjectAnswer:
    kind, wanted, missing = asked.reference.kind.name, scalable.spec.replicas or 0, scalable.missing_nodes
    subject = f"{scalable.metadata.namespace}/{kind.lower()}/{scalable.name}"
    if deleted := scalable.metadata.deletion_timestamp:
        return ObjectAnswer(state=states.BeingDeleted(subject=subject, since=deleted, is_workload=True))
    answers = [*_machines(asked, scalable)]
    lacking = [each for each in answers if isinstance(each.answer.state, states.WithoutNode | states.BeingDeleted)]
    facts = [f"machine {each.text}" for each in lacking[:_MOST]]
    facts += [count(len(lacking) - _MOST, "more machine")] if len(lacking) > _MOST else []
    facts += scalable.faults
    if scalable.is_paused:
        facts.append("it is paused: its controller creates and deletes no machine")
    if scalable.limit is not None:
        facts.append(f"an autoscaler scales it up to {count(scalable.limit[1], 'node')}")
    if scalable.status.ready_replicas is None and wanted:
        unknown = states.NotRead(subject=subject, unknown="how many nodes it has", because="its status is empty")
        return ObjectAnswer(state=unknown)
    if not missing:
        does = "is scaled to zero" if not wanted else f"has all of its {count(wanted, 'node')}"
        return ObjectAnswer(state=states.ObjectState(subject=subject, does=does, facts=tuple(facts)))
    if len(answers) < wanted and kind != "MachinePool":
        facts.append(f"{len(answers):,} of its {count(wanted, 'machine')} exist")
    does = f"lacks {missing:,} of {count(wanted, 'ready node')}"
    state = states.WithoutNode(subject=subject, does=does, facts=tuple(facts))
    return ObjectAnswer(state=state, fixes=partial(_scalable_fixes, asked, scalable, lacking))


def _machines(asked: ObjectQuestion, scalable: Scalable) -> Iterator[_MachineAnswer]:
    every = asked.snapshot.of(OpenShiftMachine if isinstance(scalable, OpenShiftMachineSet) else Machine)
    for machine in every:
        if machine.metadata.namespace == scalable.metadata.namespace and scalable.name in machine.scalables:
            yield _MachineAnswer(asked, machine)


def _scalable_fixes(asked: ObjectQuestion, scalable: Scalable, lacking: Sequence[_MachineAnswer]) -> Iterator[Fix]:
    if scalable.is_paused:
        resource, metadata = asked.reference.kind.resource, scalable.metadata
        command = merge_patch(resource, metadata.namespace, metadata.name, {"spec": {"paused": False}})
        if not scalable.spec.paused:
            template = f"kubectl annotate {resource} {{}} -n {{}} {PAUSED_MACHINES}-"
            command = shell_command(template, metadata.name, metadata.namespace)
        yield autoscaler_fix(f"resume the {asked.reference.kind.name}", command)
    for machine in lacking[:_MOST]:
        yield from machine.answer.fixes()
    if not (lacking or scalable.is_paused):
        named = scalable.name, scalable.metadata.namespace
        command = shell_command(f"kubectl describe {asked.reference.kind.resource} {{}} -n {{}}", *named)
        what = scalable.faults[0] if scalable.faults else "its conditions and events say what it waits for"
        yield autoscaler_fix(f"repair {asked.reference.kind.name} {scalable.name}: {what}", command)

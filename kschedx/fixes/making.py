"""A step done: from one proposal to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec.structs import replace

from kschedx.api.daemon_set_pods import without_node_names
from kschedx.api.devices import DeviceClass
from kschedx.api.priority import PREEMPT_LOWER_PRIORITY
from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.resources import RequestOptions
from kschedx.api.selectors import NodeSelectorRequirement
from kschedx.api.types import Node, ObjectMeta, Pod, Taint
from kschedx.findings import RequirementMatch
from kschedx.findings.node import CORDON_TAINT
from kschedx.fixes import pod_edits as edit
from kschedx.fixes import steps as s
from kschedx.fixes.proposal import Proposal
from kschedx.framework.cycle import Cycle
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot


class Ground:
    """What steps are done on: the cluster as it is, and how it counts requests."""

    def __init__(self, snapshot: Snapshot, options: RequestOptions) -> None:
        self.snapshot = snapshot
        self.options = options


def made(step: s.Step, proposal: Proposal, ground: Ground) -> Proposal:
    """The proposal with this done as well; a step that is among its steps already is the same step."""
    if step in proposal.steps:
        return proposal
    return replace(_made(step, proposal, ground), steps=(*proposal.steps, step))


def after_attempt(cycle: Cycle) -> Proposal:
    """The pod, and the cluster as kube-scheduler leaves it before the next attempt."""
    base, found = Proposal(pod=cycle.pod), cycle.post_filter
    if found is None or not found.released:
        return base
    released = tuple(found.released.items())
    return made(s.NextAttempt(released=released), base, Ground(cycle.snapshot, cycle.all_nodes.options))


def all_made(steps: Iterable[s.Step], proposal: Proposal, ground: Ground) -> Proposal:
    for step in steps:
        proposal = made(step, proposal, ground)
    return proposal


def _made(step: s.Step, proposal: Proposal, ground: Ground) -> Proposal:
    match step:
        case s.CreateClaim() | s.ShrinkClaim() | s.RecreateClaim() | s.GiveUpVolume() | s.BindClaim():
            return proposal.having(step.claim)
        case s.CreateStorageClass(storage_class=storage_class):
            return proposal.having(storage_class)
        case s.ReleaseVolume(volume=volume):
            return proposal.having(volume)
        case s.CreateVolume(volume=volume, claim=claim):
            return proposal.having(volume) if claim is None else proposal.having(volume, claim)
        case s.CreateDeviceClaim(claim=device_claim, status=status):
            return replace(proposal.having(device_claim), pod=edit.with_claim_status(proposal.pod, status))
        case s.AskForFewerDevices() | s.WidenDeviceClaim() | s.RecreateDeviceClaim():
            return proposal.having(step.claim)
        case s.NextAttempt(released=released):
            return replace(proposal, taken_back=dict(released))
        case s.CreateDeviceClass(name=name):
            return proposal.having(DeviceClass(metadata=ObjectMeta(name=name)))
        case s.DeletePods(victims=victims) | s.AwaitTermination(victims=victims) | s.StopWorkload(victims=victims):
            return replace(proposal, deleted=tuple(sorted({*proposal.deleted, *(one.row for one in victims)})))
        case s.TakeOldFirst(old=old):
            return replace(proposal, deleted=tuple(sorted({*proposal.deleted, old.row})))
        case s.Uncordon(row=row):
            return _on_node(proposal, row, ground, _uncordoned)
        case s.RemoveTaints(row=row, taints=taints):
            return _on_node(proposal, row, ground, lambda node: _without_taints(node, taints))
        case s.LabelNode(row=row, labels=labels):
            return _on_node(proposal, row, ground, lambda node: _labelled(node, dict(labels)))
        case s.RepairNode(row=row, faults=faults):
            return _on_node(proposal, row, ground, lambda node: _without_taints(node, (one.taint for one in faults)))
        case s.EnlargeNode(row=row, amounts=amounts) | s.OfferResource(row=row, amounts=amounts):
            return _on_node(proposal, row, ground, lambda node: _enlarged(node, amounts))
        case s.AddNode(node=node, slices=slices, csi_node=csi_node, taken=taken):
            after = proposal.having(*slices)
            return replace(after if csi_node is None else after.having(csi_node), added=node, taken=taken)
        case _:
            return replace(proposal, pod=_pod(step, proposal.pod, ground))


PodStep = (
    s.RemoveGates
    | s.AwaitController
    | s.Tolerate
    | s.SelectInstead
    | s.DropRequirements
    | s.DropNodeNames
    | s.DropNodeName
    | s.UseHostPort
    | s.HonorInSpread
    | s.RaiseMaxSkew
    | s.SpreadAnyway
    | s.PreferTerm
    | s.SelectPodsInstead
    | s.UseClaim
    | s.RaisePriority
    | s.RequestAtMost
    | s.RequestAsMeant
    | s.RequestInstead
)


def _pod(step: PodStep, pod: Pod, ground: Ground) -> Pod:
    match step:
        case s.RemoveGates() | s.AwaitController():
            return edit.with_spec(pod, replace(pod.spec, scheduling_gates=()))
        case s.Tolerate(taints=taints):
            return edit.tolerating(pod, taints)
        case s.SelectInstead(source=source, term=term, wrong=wrong, meant=meant):
            return _selecting(pod, source, term, wrong, meant)
        case s.DropRequirements(source=source, term=term, requirements=requirements):
            return _without(pod, source, term, requirements)
        case s.DropNodeNames():
            return without_node_names(pod)
        case s.DropNodeName():
            return edit.with_spec(pod, replace(pod.spec, node_name=""))
        case s.UseHostPort(port=port, protocol=protocol, instead=instead):
            return edit.with_host_port(pod, edit.HostPort(port=port, protocol=protocol), instead)
        case s.HonorInSpread(constraint=index, taints=taints):
            policy = {"node_taints_policy" if taints else "node_affinity_policy": "Honor"}
            return edit.with_constraint(pod, index, lambda one: replace(one, **policy))
        case s.RaiseMaxSkew(constraint=index, after=skew):
            return edit.with_constraint(pod, index, lambda one: replace(one, max_skew=skew))
        case s.SpreadAnyway(constraint=index):
            return edit.with_constraint(
                pod, index, lambda one: replace(one, when_unsatisfiable="ScheduleAnyway", min_domains=None)
            )
        case s.PreferTerm(rule=rule, anti=anti):
            return edit.preferring(pod, rule, anti=anti)
        case s.SelectPodsInstead(rule=rule, meant=meant_rule):
            return edit.with_pod_affinity(pod, rule, meant_rule)
        case s.RaisePriority(name=name, value=value):
            chosen = replace(
                pod.spec, priority_class_name=name, priority=value, preemption_policy=PREEMPT_LOWER_PRIORITY
            )
            return edit.with_spec(pod, chosen)
        case s.UseClaim(claim=claim, meant=name):
            return edit.with_claim(pod, claim, name)
        case s.RequestAtMost(amounts=amounts):
            for one in amounts:
                pod = edit.requesting(pod, one.resource, one.amount, ground.options) or pod
            return pod
        case s.RequestAsMeant(amounts=unlikely):
            return edit.with_likely_amounts(pod, unlikely)
        case s.RequestInstead(resource=resource, meant=meant):
            return edit.renaming_resource(pod, resource, meant)
        case _:
            assert_never(step)


# --- node affinity


def _selecting(pod: Pod, source: str, term: int, wrong: RequirementMatch, meant: RequirementMatch) -> Pod:
    if source == "nodeSelector":
        selector = {key: value for key, value in pod.spec.node_selector.items() if key != wrong.key}
        return edit.selecting(pod, selector | {meant.key: meant.values[0]})
    return edit.with_term(
        pod,
        term,
        tuple(
            NodeSelectorRequirement(key=meant.key, operator=one.operator, values=meant.values)
            if _is_same(one, wrong)
            else one
            for one in edit.expressions(pod, term)
        ),
    )


def _without(pod: Pod, source: str, term: int, requirements: tuple[RequirementMatch, ...]) -> Pod:
    if source == "nodeSelector":
        gone = {one.key for one in requirements}
        return edit.selecting(pod, {key: value for key, value in pod.spec.node_selector.items() if key not in gone})
    kept = tuple(one for one in edit.expressions(pod, term) if not any(_is_same(one, old) for old in requirements))
    return edit.with_term(pod, term, kept)


def _is_same(requirement: NodeSelectorRequirement, match: RequirementMatch) -> bool:
    return (requirement.key, requirement.operator, requirement.values) == (match.key, match.operator, match.values)


# --- nodes


def _on_node(proposal: Proposal, row: ClusterRow, ground: Ground, change: Callable[[Node], Node]) -> Proposal:
    before = proposal.nodes.get(row, ground.snapshot.cluster.nodes[row])
    return replace(proposal, nodes={**proposal.nodes, row: change(before)})


def _uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def _without_taints(node: Node, taints: Iterable[Taint]) -> Node:
    gone = frozenset(taints)
    return replace(node, spec=replace(node.spec, taints=tuple(t for t in node.spec.taints if t not in gone)))


def _enlarged(node: Node, amounts: Iterable[s.NodeAmount]) -> Node:
    more = {one.resource: format_quantity(one.after, Unit.of(one.resource)) for one in amounts}
    return replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **more}))


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **labels}))

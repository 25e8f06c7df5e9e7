"""Remedies for nodeSelector and node affinity: the value that was meant, one requirement less, or the label on the
node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.findings import HostPortConflict, NodeAffinityMismatch, RequirementMatch
from kschedx.findings.nodes import CORDON_TAINT
from kschedx.fixes import steps as s
from kschedx.fixes.eviction import delete_named
from kschedx.fixes.node_requirements import (
    NEW_NAMES,
    OF_CONTROL_PLANE,
    are_all_of_control_plane,
    contradiction,
    is_kept,
    taken_away_by,
)
from kschedx.fixes.pod_edits import expressions
from kschedx.fixes.trial import Candidate, Situation
from kschedx.kube.resources import pod_request
from kschedx.kube.selectors import NodeSelectorRequirement
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.kube.types import Taint
from kschedx.kube.typos import meant_by
from kschedx.snapshot.nodes import ClusterNodes

OWN_LABELS = ("kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/",
              "failure-domain.beta.kubernetes.io/")  # fmt: skip
"""Labels that the kubelet and the cloud provider own: nobody sets them by hand."""

MADE_FOR = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
"""What the image was built for: a pod that asks for it runs nowhere else."""

MARKS = frozenset({"", "true", "yes"})
"""Values of labels that say no more than that they are there; `node-role.kubernetes.io/worker` has the first."""

NODE_NAME_FIELD = "metadata.name"


def affinity_remedies(finding: NodeAffinityMismatch, place: Candidate) -> Iterator[s.Step]:
    """For the term that comes closest to matching the node."""
    term = min(finding.terms, key=lambda t: t.missing, default=None)
    if term is None:
        return
    # what the node has instead is no part of what is done: the same step on another node is the same
    unmatched = tuple(replace(r, actual=None) for r in term.requirements if not r.matched)
    if not term.requirements and finding.source == "nodeAffinity":
        unmatched = _invalid(term.index, place)
    if any(r.key in MADE_FOR and not list(_renamed(r, place.nodes.cluster)) for r in unmatched):
        return
    misspelled = False
    if finding.source != "addedAffinity":
        for requirement in unmatched:
            for meant in _meant(requirement, place.nodes.cluster):
                misspelled = True
                yield s.SelectInstead(source=finding.source, term=term.index, wrong=requirement, meant=meant)
        if any(r.key == NODE_NAME_FIELD for r in unmatched):
            yield s.DropNodeNames()
        elif unmatched:
            yield s.DropRequirements(source=finding.source, term=term.index, requirements=unmatched)
    labels = {r.key: r.values[0] if r.values else "true" for r in unmatched if _may_label(r)}
    if labels and len(labels) == len(unmatched) and not misspelled:
        is_first = not place.nodes.cluster.label_keys & labels.keys()
        yield s.LabelNode(row=place.node_row, node=place.node.name, labels=tuple(labels.items()), is_first=is_first)


def _invalid(term: int, place: Candidate) -> tuple[RequirementMatch, ...]:
    """What stands in a term that nothing can be compared with: one of its values is no label's."""
    return tuple(
        RequirementMatch(key=one.key, operator=one.operator, values=one.values, actual=None, matched=False)
        for one in expressions(place.pod, term)
    )


def _may_label(requirement: RequirementMatch) -> bool:
    return (
        requirement.operator in ("In", "=", "Exists")
        and not requirement.key.startswith(OWN_LABELS)
        and requirement.key not in OF_CONTROL_PLANE
        and requirement.key != NODE_NAME_FIELD
    )


def _meant(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[RequirementMatch]:
    """The value, or the key, that some node has and that is nearly what the pod says."""
    if requirement.operator not in ("In", "=", "Exists"):
        return
    for key, values in list(_renamed(requirement, cluster)) or _nearly(requirement, cluster):
        yield RequirementMatch(key=key, operator=requirement.operator, values=values, actual=None, matched=False)


def _renamed(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The label's new name, where nodes have that one alone, with the value that the pod asks for."""
    key = NEW_NAMES.get(requirement.key, "")
    if requirement.key in cluster.label_keys or key not in cluster.label_keys:
        return
    values = {value for value in cluster.label(key).values if value is not None}
    if not requirement.values or values.intersection(requirement.values):
        yield key, requirement.values


def _nearly(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    known = cluster.label_keys
    key = requirement.key if requirement.key in known else meant_by(requirement.key, known)
    if not key:
        return
    values = {value for value in cluster.label(key).values if value is not None}
    if not requirement.values or values.intersection(requirement.values):
        if key != requirement.key:
            yield key, requirement.values
        return
    if close := meant_by(requirement.values[0], sorted(values)):
        yield key, (close,)
    elif values <= MARKS and MARKS.issuperset(requirement.values):
        yield key, (min(values),)


def without_contradiction(situation: Situation) -> Iterator[s.DropRequirements]:
    """One of two requirements that no node has both of, where it is the pod's own."""
    for one in contradiction(situation) or ():
        if (value := situation.pod.spec.node_selector.get(one.key)) is not None and one.values == (value,):
            yield s.DropRequirements(source="nodeSelector", term=0, requirements=(_as_match(one, "="),))
        affinity = situation.pod.spec.affinity
        rules = affinity.node_affinity if affinity else None
        required = rules.required_during_scheduling_ignored_during_execution if rules else None
        for index, term in enumerate(required.node_selector_terms if required else ()):
            if one in term.match_expressions:
                yield s.DropRequirements(
                    source="nodeAffinity", term=index, requirements=(_as_match(one, one.operator),)
                )


def _as_match(one: NodeSelectorRequirement, operator: str) -> RequirementMatch:
    return RequirementMatch(key=one.key, operator=operator, values=one.values, actual=None, matched=False)


# Remedies for what a node itself says (cordon, taints) and for its host ports.

MOST_TAINTS = 50
"""A sentence that names more of them is no advice."""


def uncordon(place: Candidate) -> s.Step:
    return s.Uncordon(row=place.node_row, node=place.node.name)


def taint_remedies(place: Candidate) -> Iterator[s.Step]:
    """For all the taints of the node that the pod does not tolerate: to mend only the first helps nobody."""
    missing = _untolerated(place)
    if place.node.spec.unschedulable and any(taint.key == CORDON_TAINT for taint in missing):
        yield uncordon(place)
        missing = tuple(taint for taint in missing if taint.key != CORDON_TAINT)
        if not missing:
            return
    if len(missing) > MOST_TAINTS:
        return
    if all(map(taken_away_by, missing)):
        faults = tuple(s.NodeFault(taint=taint, by=taken_away_by(taint)) for taint in missing)
        yield s.RepairNode(row=place.node_row, node=place.node.name, faults=faults)
        return
    requested = pod_request(place.pod.spec, place.pod.status, place.situation.scheduler.nodes.options).amounts
    nobody_else = are_all_of_control_plane(iter(place.snapshot.cluster.nodes))
    open_ = [one for one in missing if not (nobody_else and one.key in OF_CONTROL_PLANE)]
    if any(is_kept(taint, place.node, place.pod, requested) for taint in open_):
        return
    if len(open_) == len(missing):
        yield s.Tolerate(taints=missing)
    if nobody_else or not any(taint.key in OF_CONTROL_PLANE for taint in missing):
        yield s.RemoveTaints(row=place.node_row, node=place.node.name, taints=missing)


def _untolerated(place: Candidate) -> tuple[Taint, ...]:
    comparison = place.situation.scheduler.release.enabled("TaintTolerationComparisonOperators")
    tolerations = Tolerations(place.pod.spec.tolerations, comparison=comparison)
    return tuple(
        taint for taint in place.node.spec.taints if taint.effect in DO_NOT_SCHEDULE and not tolerations.cover(taint)
    )


def host_port_remedies(finding: HostPortConflict, place: Candidate) -> Iterator[s.Step]:
    pods = place.snapshot.pods
    taken = {p.host_port for row in pods.with_host_ports for c in pods.specs[int(row)].containers for p in c.ports}
    taken |= {p.host_port for c in place.pod.spec.containers for p in c.ports}
    free = next((number for number in range(finding.port + 1, 65536) if number not in taken), None)
    if free is not None:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=free)
    if not place.pod.spec.host_network:
        yield s.UseHostPort(port=finding.port, protocol=finding.protocol, instead=0)
    yield from delete_named(finding.holder, place)

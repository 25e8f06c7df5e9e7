"""Remedies for nodeSelector and node affinity: the value that was meant, one requirement less, or the label on the
node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.api.selectors import NodeSelectorRequirement
from kschedx.api.spelling import meant_by
from kschedx.findings import NodeAffinityMismatch, RequirementMatch
from kschedx.fixes import steps as s
from kschedx.fixes.node_taints import OF_CONTROL_PLANE
from kschedx.fixes.pod_edits import expressions
from kschedx.fixes.required_labels import NEW_NAMES, contradiction
from kschedx.fixes.situation import Place, Situation
from kschedx.snapshot.cluster_nodes import ClusterNodes

OWN_LABELS = ("kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/",
              "failure-domain.beta.kubernetes.io/")  # fmt: skip
"""Labels that the kubelet and the cloud provider own: nobody sets them by hand."""

MADE_FOR = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
"""What the image was built for: a pod that asks for it runs nowhere else."""

MARKS = frozenset({"", "true", "yes"})
"""Values of labels that say no more than that they are there; `node-role.kubernetes.io/worker` has the first."""

NODE_NAME_FIELD = "metadata.name"


def affinity_remedies(finding: NodeAffinityMismatch, place: Place) -> Iterator[s.Step]:
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


def _invalid(term: int, place: Place) -> tuple[RequirementMatch, ...]:
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
            yield s.DropRequirements(source="nodeSelector", term=0, requirements=(_asked(one, "="),))
        affinity = situation.pod.spec.affinity
        rules = affinity.node_affinity if affinity else None
        required = rules.required_during_scheduling_ignored_during_execution if rules else None
        for index, term in enumerate(required.node_selector_terms if required else ()):
            if one in term.match_expressions:
                yield s.DropRequirements(source="nodeAffinity", term=index, requirements=(_asked(one, one.operator),))


def _asked(one: NodeSelectorRequirement, operator: str) -> RequirementMatch:
    return RequirementMatch(key=one.key, operator=operator, values=one.values, actual=None, matched=False)

"""Remedies for nodeSelector and node affinity: the value that was meant, one requirement less, or the label on the
node."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kschedx.findings import NodeAffinityMismatch, RequirementMatch
from kschedx.fixes import steps as s
from kschedx.fixes.pod_edits import expressions
from kschedx.fixes.situation import Place
from kschedx.snapshot.nodes import ClusterNodes

CLOSE = 0.6
"""difflib's ratio from which a label is taken for a misspelling of another."""

OWN_LABELS = ("kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/",
              "failure-domain.beta.kubernetes.io/")  # fmt: skip
"""Labels that the kubelet and the cloud provider own: nobody sets them by hand."""

MADE_FOR = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
"""What the image was built for: a pod that asks for it runs nowhere else."""

NEW_NAMES = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
"""What labels are called now that manifests still ask for under the name that they had."""

MARKS = frozenset({"", "true", "yes"})
"""Values of labels that say no more than that they are there; `node-role.kubernetes.io/worker` has the first."""

NODE_NAME_FIELD = "metadata.name"


def affinity_remedies(finding: NodeAffinityMismatch, place: Place) -> Iterator[s.Step]:
    """For the term that comes closest to matching the node."""
    term = min(finding.terms, key=lambda t: t.missing, default=None)
    if term is None:
        return
    unmatched = tuple(r for r in term.requirements if not r.matched)
    if not term.requirements and finding.source == "nodeAffinity":
        unmatched = _invalid(term.index, place)
    if any(r.key in MADE_FOR and not list(_renamed(r, place.nodes.cluster)) for r in unmatched):
        return
    if finding.source != "addedAffinity":
        for requirement in unmatched:
            for meant in _meant(requirement, place.nodes.cluster):
                yield s.SelectInstead(source=finding.source, term=term.index, wrong=requirement, meant=meant)
        if any(r.key == NODE_NAME_FIELD for r in unmatched):
            yield s.DropNodeNames()
        elif unmatched:
            yield s.DropRequirements(source=finding.source, term=term.index, requirements=unmatched)
    labels = {r.key: r.values[0] if r.values else "true" for r in unmatched if _may_label(r)}
    if labels and len(labels) == len(unmatched):
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
        and requirement.key != NODE_NAME_FIELD
    )


def _meant(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[RequirementMatch]:
    """The value, or the key, that some node has and that is nearly what the pod says."""
    if requirement.operator not in ("In", "=", "Exists"):
        return
    for key, values in (*_renamed(requirement, cluster), *_nearly(requirement, cluster)):
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
    if requirement.key in known:
        values = {value for value in cluster.label(requirement.key).values if value is not None}
        if requirement.values and not values.intersection(requirement.values):
            close = difflib.get_close_matches(requirement.values[0], sorted(values), n=1, cutoff=CLOSE)
            if close:
                yield requirement.key, (close[0],)
            elif values <= MARKS and MARKS.issuperset(requirement.values):
                yield requirement.key, (min(values),)
        return
    for key in difflib.get_close_matches(requirement.key, sorted(known), n=1, cutoff=CLOSE):
        values = {value for value in cluster.label(key).values if value is not None}
        if not requirement.values or values.intersection(requirement.values):
            yield key, requirement.values
        else:
            close = difflib.get_close_matches(requirement.values[0], sorted(values), n=1, cutoff=CLOSE)
            if close:
                yield key, (close[0],)

"""Remedies for nodeSelector and node affinity: the value that was meant, one requirement less, or the label on the
node."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from kschedx.api.selectors import NodeSelectorRequirement
from kschedx.api.types import Node, Pod
from kschedx.findings import NodeAffinityMismatch, RequirementMatch, TermMatch
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.remedy import Cost, Place, Remedy, change_pod
from kschedx.snapshot.nodes import ClusterNodes

CLOSE = 0.6
"""difflib's ratio from which a label is taken for a misspelling of another."""

OWN_LABELS = ("kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/",
              "failure-domain.beta.kubernetes.io/")  # fmt: skip
"""Labels that the kubelet and the cloud provider own: nobody sets them by hand."""


def affinity_remedies(finding: NodeAffinityMismatch, place: Place) -> Iterator[Remedy]:
    """For the term that comes closest to matching the node."""
    term = min(finding.terms, key=lambda t: t.missing, default=None)
    if term is None:
        return
    unmatched = [r for r in term.requirements if not r.matched]
    if finding.source != "addedAffinity":
        for requirement in unmatched:
            yield from _meant(finding, term, requirement, place)
        yield Remedy(
            title="drop " + " and ".join(requirement_text(r) for r in unmatched),
            cost=Cost.LESS,
            step=change_pod(lambda pod: _without(pod, finding, term, unmatched)),
        )
    labels = {r.key: r.values[0] if r.values else "true" for r in unmatched if _may_label(r)}
    if len(labels) == len(unmatched):
        text = ", ".join(f"{key}={value}" for key, value in labels.items())
        yield Remedy(
            title=f"label {place.node.name} {text}",
            cost=Cost.NODE,
            step=place.change_node(lambda node: _labelled(node, labels)),
        )


def _may_label(requirement: RequirementMatch) -> bool:
    return requirement.operator in ("In", "=", "Exists") and not requirement.key.startswith(OWN_LABELS)


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    metadata = replace(node.metadata, labels={**node.metadata.labels, **labels})
    return replace(node, metadata=metadata)


def requirement_text(requirement: RequirementMatch) -> str:
    """`disk=ssd`, `zone in (a, b)`, `gpu exists`."""
    values = ", ".join(requirement.values)
    match requirement.operator:
        case "=" | "==":
            return f"{requirement.key}={values}"
        case "In":
            return f"{requirement.key}={values}" if len(requirement.values) == 1 else f"{requirement.key} in ({values})"
        case "NotIn":
            return f"{requirement.key} not in ({values})"
        case "Exists":
            return f"{requirement.key} exists"
        case "DoesNotExist":
            return f"{requirement.key} does not exist"
        case operator:
            return f"{requirement.key} {'>' if operator == 'Gt' else '<'} {values}"


def _meant(
    finding: NodeAffinityMismatch, term: TermMatch, requirement: RequirementMatch, place: Place
) -> Iterator[Remedy]:
    """The value, or the key, that some node has and that is nearly what the pod says."""
    if requirement.operator not in ("In", "=", "Exists"):
        return
    cluster = place.nodes.cluster
    for key, values in _nearly(requirement, cluster):
        meant = RequirementMatch(key=key, operator=requirement.operator, values=values, actual=None, matched=False)
        yield Remedy(
            title=f"select {requirement_text(meant)} instead of {requirement_text(requirement)}",
            cost=Cost.TYPO,
            step=change_pod(partial(_with, finding, term, requirement, meant)),
        )


def _nearly(requirement: RequirementMatch, cluster: ClusterNodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    known = cluster.label_keys
    if requirement.key in known:
        values = {value for value in cluster.label(requirement.key).values if value is not None}
        if requirement.values and not values.intersection(requirement.values):
            close = difflib.get_close_matches(requirement.values[0], sorted(values), n=1, cutoff=CLOSE)
            if close:
                yield requirement.key, (close[0],)
        return
    for key in difflib.get_close_matches(requirement.key, sorted(known), n=1, cutoff=CLOSE):
        values = {value for value in cluster.label(key).values if value is not None}
        if not requirement.values or values.intersection(requirement.values):
            yield key, requirement.values
        else:
            close = difflib.get_close_matches(requirement.values[0], sorted(values), n=1, cutoff=CLOSE)
            if close:
                yield key, (close[0],)


def _with(
    finding: NodeAffinityMismatch, term: TermMatch, old: RequirementMatch, new: RequirementMatch, pod: Pod
) -> Pod:
    if finding.source == "nodeSelector":
        selector = {k: v for k, v in pod.spec.node_selector.items() if k != old.key}
        return edit.selecting(pod, selector | {new.key: new.values[0]})
    return edit.with_term(
        pod,
        term.index,
        tuple(
            NodeSelectorRequirement(key=new.key, operator=r.operator, values=new.values) if _same(r, old) else r
            for r in _expressions(pod, term.index)
        ),
    )


def _without(pod: Pod, finding: NodeAffinityMismatch, term: TermMatch, unmatched: list[RequirementMatch]) -> Pod:
    if finding.source == "nodeSelector":
        gone = {r.key for r in unmatched}
        return edit.selecting(pod, {k: v for k, v in pod.spec.node_selector.items() if k not in gone})
    kept = tuple(r for r in _expressions(pod, term.index) if not any(_same(r, old) for old in unmatched))
    return edit.with_term(pod, term.index, kept)


def _same(requirement: NodeSelectorRequirement, match: RequirementMatch) -> bool:
    return (requirement.key, requirement.operator, requirement.values) == (match.key, match.operator, match.values)


def _expressions(pod: Pod, index: int) -> tuple[NodeSelectorRequirement, ...]:
    rules = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = rules.required_during_scheduling_ignored_during_execution if rules else None
    if required is None or index >= len(required.node_selector_terms):
        return ()
    return required.node_selector_terms[index].match_expressions

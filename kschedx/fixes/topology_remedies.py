"""Remedies for spread constraints and for rules between pods."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.findings import (
    ExistingAntiAffinityConflict,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.fixes import pod_edits as edit
from kschedx.fixes import steps as s
from kschedx.fixes.situation import Place
from kschedx.fixes.victims import delete_all


def spread_remedies(finding: TopologySpreadSkew | TopologyLabelMissing, place: Place) -> Iterator[s.Step]:
    index, key = finding.constraint, finding.topology_key
    constraints = place.pod.spec.topology_spread_constraints
    if index >= len(constraints) or constraints[index].topology_key != key:
        return  # one of the profile's default constraints: not the pod's to change
    constraint = constraints[index]
    if constraint.node_taints_policy != "Honor":
        yield s.HonorInSpread(constraint=index, topology_key=key, taints=True)
    if constraint.node_affinity_policy == "Ignore":
        yield s.HonorInSpread(constraint=index, topology_key=key, taints=False)
    if isinstance(finding, TopologySpreadSkew):
        yield s.RaiseMaxSkew(constraint=index, topology_key=key, before=finding.max_skew, after=finding.skew)
    yield s.SpreadAnyway(constraint=index, topology_key=key)


def own_rule_remedies(finding: PodAffinityUnsatisfied | PodAntiAffinityConflict, place: Place) -> Iterator[s.Step]:
    anti = isinstance(finding, PodAntiAffinityConflict)
    rule = edit.required_term(place.pod, finding.term, anti=anti)
    if rule is not None:
        yield s.PreferTerm(number=finding.term + 1, selector=finding.selector, rule=rule, anti=anti)
    if isinstance(finding, PodAntiAffinityConflict):
        yield from delete_all(finding.pods, finding.pod_count, place)


def existing_rule_remedies(finding: ExistingAntiAffinityConflict, place: Place) -> Iterator[s.Step]:
    yield from delete_all(finding.pods, finding.pod_count, place)

"""Remedies for spread constraints and for rules between pods."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kschedx.api.selectors import compile_selector
from kschedx.api.spelling import meant_by
from kschedx.api.types import PodAffinityTerm
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
    if rule is not None and isinstance(finding, PodAffinityUnsatisfied):
        yield from _as_meant(finding, rule, place)
    if rule is not None:
        yield s.PreferTerm(number=finding.term + 1, selector=finding.selector, rule=rule, anti=anti)
    if isinstance(finding, PodAntiAffinityConflict):
        yield from delete_all(finding.pods, finding.pod_count, place)


def existing_rule_remedies(finding: ExistingAntiAffinityConflict, place: Place) -> Iterator[s.Step]:
    yield from delete_all(finding.pods, finding.pod_count, place)


def _as_meant(finding: PodAffinityUnsatisfied, rule: PodAffinityTerm, place: Place) -> Iterator[s.SelectPodsInstead]:
    """Where no pod is selected: the label that pods have, or the namespace in which they are."""
    pods, own = place.snapshot.pods, place.pod.metadata.namespace
    number, selector = finding.term + 1, finding.selector
    running = pods.node >= 0
    selected = running & pods.labels.where(compile_selector(rule.label_selector).matches)
    if selected.any():
        there = {pods.namespaces[int(row)] for row in np.flatnonzero(selected)}
        if len(there) == 1 and own not in there and finding.namespaces == (own,) and not rule.namespaces:
            meant = replace(rule, namespaces=tuple(there))
            yield s.SelectPodsInstead(number=number, selector=selector, rule=rule, meant=meant)
        return
    looked_at = running & pods.namespaces.where(lambda name: finding.every_namespace or name in finding.namespaces)
    labels = [pods.labels.values[int(code)] for code in np.unique(pods.labels.codes[looked_at])]
    wanted = rule.label_selector.match_labels if rule.label_selector is not None else None
    for key, value in (wanted or {}).items():
        keys = {name for one in labels for name in one}
        meant_key = key if key in keys else meant_by(key, sorted(keys))
        values = {one[meant_key] for one in labels if meant_key in one}
        meant_value = value if value in values else meant_by(value, sorted(values))
        if meant_key and meant_value and (meant_key, meant_value) != (key, value) and rule.label_selector is not None:
            rest = {name: text for name, text in (wanted or {}).items() if name != key}
            written = replace(rule.label_selector, match_labels={**rest, meant_key: meant_value})
            yield s.SelectPodsInstead(
                number=number,
                selector=selector,
                rule=rule,
                meant=replace(rule, label_selector=written),
                label=f"{key}={value}",
            )

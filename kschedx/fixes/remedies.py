"""Remedies for spread constraints and for rules between pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx import findings as f
from kschedx.findings import (
    ExistingAntiAffinityConflict,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.fixes import pod_edits as edit
from kschedx.fixes import steps as s
from kschedx.fixes.device_remedies import device_remedies
from kschedx.fixes.eviction import delete_all, stop_holder, take_from_holder
from kschedx.fixes.node_remedies import affinity_remedies, host_port_remedies, taint_remedies, uncordon
from kschedx.fixes.resource_remedies import larger_node, resource_remedies
from kschedx.fixes.storage_remedies import claim_remedies, give_up_volume, volume_remedies
from kschedx.fixes.trial import Candidate
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import PodAffinityTerm
from kschedx.kube.typos import meant_by


def spread_remedies(finding: TopologySpreadSkew | TopologyLabelMissing, place: Candidate) -> Iterator[s.Step]:
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
        yield from _lower_min_domains(finding, constraint.min_domains)
        yield s.RaiseMaxSkew(constraint=index, topology_key=key, before=finding.max_skew, after=finding.skew)
    yield s.SpreadAnyway(constraint=index, topology_key=key)


def own_rule_remedies(finding: PodAffinityUnsatisfied | PodAntiAffinityConflict, place: Candidate) -> Iterator[s.Step]:
    anti = isinstance(finding, PodAntiAffinityConflict)
    rule = edit.required_term(place.pod, finding.term, anti=anti)
    if rule is not None and isinstance(finding, PodAffinityUnsatisfied):
        yield from _as_meant(finding, rule, place)
    if rule is not None:
        yield s.PreferTerm(number=finding.term + 1, selector=finding.selector, rule=rule, anti=anti)
    if isinstance(finding, PodAntiAffinityConflict):
        yield from delete_all(finding.pods, finding.pod_count, place)


def existing_rule_remedies(finding: ExistingAntiAffinityConflict, place: Candidate) -> Iterator[s.Step]:
    yield from delete_all(finding.pods, finding.pod_count, place)


def _as_meant(
    finding: PodAffinityUnsatisfied, rule: PodAffinityTerm, place: Candidate
) -> Iterator[s.SelectPodsInstead]:
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


def _lower_min_domains(finding: TopologySpreadSkew, before: int | None) -> Iterator[s.LowerMinDomains]:
    """To as many domains as exist."""
    if before is not None and finding.min_domains is not None and 0 < finding.domain_count < before:
        yield s.LowerMinDomains(
            constraint=finding.constraint,
            topology_key=finding.topology_key,
            before=before,
            after=finding.domain_count,
        )


# What could be done about the findings on a node. Whether it helps is for the trial to say.


def last_remedies(found: Sequence[f.Finding], place: Candidate) -> tuple[tuple[s.Step, ...], ...]:
    """The same where no other node would do: what the pod is tied to stands on one that is too small, is where no node
    can be, or is in the hands of a more important pod."""
    short = [x for x in found if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    groups: list[tuple[s.Step, ...]] = [(larger_node(short, place),)] if short else []
    for one in found:
        if isinstance(one, f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch):
            groups.append(tuple(give_up_volume(one, place)))
        elif isinstance(one, f.ClaimInUse | f.DiskConflict):
            groups.append(tuple(stop_holder(one.holder, place) or take_from_holder(one.holder, place)))
        elif not isinstance(one, f.InsufficientResource | f.TooManyPods):
            groups.append(tuple(_for_one(one, place)))
    return tuple(groups)


def remedies(found: Sequence[f.Finding], place: Candidate) -> tuple[tuple[s.Step, ...], ...]:
    """For each thing that has to be mended on the node, the ways to do it. A thing without any makes the node
    hopeless."""
    groups: list[tuple[s.Step, ...]] = []
    short = [x for x in found if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    if short:
        groups.append(tuple(resource_remedies(short, place)))
    groups.extend(tuple(_for_one(x, place)) for x in found if not isinstance(x, f.InsufficientResource | f.TooManyPods))
    return tuple(groups)


def _for_one(finding: f.Finding, place: Candidate) -> Iterator[s.Step]:
    match finding:
        case f.NodeUnschedulable():
            yield uncordon(place)
        case f.UntoleratedTaint():
            yield from taint_remedies(place)
        case f.NodeAffinityMismatch():
            yield from affinity_remedies(finding, place)
        case f.NodeNameMismatch():
            yield s.DropNodeName(wanted=finding.wanted)
        case f.NodesExcluded():
            yield s.DropNodeNames()
        case f.HostPortConflict():
            yield from host_port_remedies(finding, place)
        case f.TopologySpreadSkew() | f.TopologyLabelMissing():
            yield from spread_remedies(finding, place)
        case f.PodAffinityUnsatisfied() | f.PodAntiAffinityConflict():
            yield from own_rule_remedies(finding, place)
        case f.ExistingAntiAffinityConflict():
            yield from existing_rule_remedies(finding, place)
        case f.ClaimInUse() | f.DiskConflict():
            yield from stop_holder(finding.holder, place)
        case (
            f.ClaimNotFound()
            | f.ClaimLost()
            | f.ClaimBeingDeleted()
            | f.ClaimNotOwned()
            | f.ClaimUnbound()
            | f.VolumeNotFound()
            | f.SelectedNodeMismatch()
        ):
            yield from claim_remedies(finding, place)
        case (
            f.NoMatchingVolume()
            | f.InsufficientStorageCapacity()
            | f.VolumeLimitExceeded()
            | f.ProvisioningTopologyMismatch()
        ):
            yield from volume_remedies(finding, place)
        case (
            f.InsufficientDevices()
            | f.DeviceClaimNotFound()
            | f.DeviceClaimNotCreated()
            | f.DeviceClaimBeingDeleted()
            | f.DeviceClaimNotOwned()
            | f.DeviceClassNotFound()
            | f.DeviceClaimOutOfReach()
        ):
            yield from device_remedies(finding, place)
        case _:
            return  # nothing that a change of the pod, its neighbours or its node would mend

"""Findings in words: a headline that stands alone, the facts under it, and what differs from node to node.

One function per finding; `describe` forks over all of them. Words for storage are in `storage_words`, for devices
in `device_words`. Text is data
still: whatever prints it makes it harmless first (`safe.visible`).
"""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.diagnosis import NodeDetail
from kschedx.explain.label_hints import LabelHint
from kschedx.findings import (
    ClaimBeingDeleted,
    ClaimInUse,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    ClaimUnbound,
    DeviceClaimBeingDeleted,
    DeviceClaimNotCreated,
    DeviceClaimNotFound,
    DeviceClaimNotOwned,
    DeviceClaimOutOfReach,
    DeviceClassNotFound,
    DeviceSelectorFailed,
    DevicesToAllocate,
    DiskConflict,
    DriverNotInstalled,
    ExistingAntiAffinityConflict,
    Finding,
    HostPortConflict,
    InsufficientDevices,
    InsufficientResource,
    InsufficientStorageCapacity,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeNameMismatch,
    NodesExcluded,
    NodeUnschedulable,
    NoMatchingVolume,
    PluginMessage,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    PodGroupIncomplete,
    ProvisioningTopologyMismatch,
    SchedulingGated,
    SelectedNodeMismatch,
    TooManyPods,
    TopologyLabelMissing,
    TopologySpreadSkew,
    UntoleratedTaint,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
    VolumeZoneMismatch,
)
from kschedx.render import device_words, storage_words, terms
from kschedx.render.units import Balance, balance, count, listed
from kschedx.render.wording import Brief, Fact, Words

SHOWN_VALUES = 3
SHOWN = 5
"""Names in a row before the rest is counted."""


def headline(finding: Finding) -> str:
    """One line in lower case with the number in it and no advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """A finding in words; `detail` adds what surrounds it on its node: parts of the request, holders."""
    match finding:
        case SchedulingGated():
            return _scheduling_gated(finding)
        case NodesExcluded():
            return _nodes_excluded(finding)
        case PodGroupIncomplete():
            return _pod_group_incomplete(finding)
        case NodeUnschedulable():
            return Words(headline="the node is cordoned (spec.unschedulable)")
        case NodeNameMismatch():
            return Words(headline=f"spec.nodeName wants {finding.wanted}")
        case UntoleratedTaint():
            return _untolerated_taint(finding)
        case NodeAffinityMismatch():
            return _node_affinity_mismatch(finding)
        case MissingNodeFeatures():
            return _missing_node_features(finding)
        case HostPortConflict():
            return _host_port_conflict(finding)
        case InsufficientResource():
            return _insufficient_resource(finding, detail)
        case TooManyPods():
            return _too_many_pods(finding)
        case TopologySpreadSkew():
            return _topology_spread_skew(finding)
        case TopologyLabelMissing():
            return Words(
                headline=f"no label {finding.topology_key}, which spread constraint {finding.constraint + 1} needs"
            )
        case PodAffinityUnsatisfied():
            return _pod_affinity_unsatisfied(finding)
        case PodAntiAffinityConflict():
            return _pod_anti_affinity_conflict(finding)
        case ExistingAntiAffinityConflict():
            return _existing_anti_affinity_conflict(finding)
        case ClaimNotFound():
            return storage_words.claim_not_found(finding)
        case ClaimLost():
            return storage_words.claim_lost(finding)
        case ClaimBeingDeleted():
            return storage_words.claim_being_deleted(finding)
        case ClaimNotOwned():
            return storage_words.claim_not_owned(finding)
        case ClaimUnbound():
            return storage_words.claim_unbound(finding)
        case VolumeNotFound():
            return storage_words.volume_not_found(finding)
        case VolumeNodeAffinityMismatch():
            return storage_words.volume_node_affinity_mismatch(finding)
        case VolumeZoneMismatch():
            return storage_words.volume_zone_mismatch(finding)
        case SelectedNodeMismatch():
            return storage_words.selected_node_mismatch(finding)
        case NoMatchingVolume():
            return storage_words.no_matching_volume(finding)
        case ProvisioningTopologyMismatch():
            return storage_words.provisioning_topology_mismatch(finding)
        case InsufficientStorageCapacity():
            return storage_words.insufficient_storage_capacity(finding)
        case DiskConflict():
            return storage_words.disk_conflict(finding)
        case ClaimInUse():
            return storage_words.claim_in_use(finding)
        case VolumeLimitExceeded():
            return storage_words.volume_limit_exceeded(finding)
        case DriverNotInstalled():
            return storage_words.driver_not_installed(finding)
        case VolumeToBind():
            return storage_words.volume_to_bind(finding)
        case VolumeToProvision():
            return storage_words.volume_to_provision(finding)
        case DeviceClaimNotFound():
            return device_words.claim_not_found(finding)
        case DeviceClaimNotCreated():
            return device_words.claim_not_created(finding)
        case DeviceClaimBeingDeleted():
            return device_words.claim_being_deleted(finding)
        case DeviceClaimNotOwned():
            return device_words.claim_not_owned(finding)
        case DeviceClassNotFound():
            return device_words.class_not_found(finding)
        case DeviceSelectorFailed():
            return device_words.selector_failed(finding)
        case DeviceClaimOutOfReach():
            return device_words.claim_out_of_reach(finding)
        case InsufficientDevices():
            return device_words.insufficient_devices(finding)
        case DevicesToAllocate():
            return device_words.devices_to_allocate(finding)
        case PluginMessage():
            return Words(headline=finding.text)
        case _:
            assert_never(finding)


# --- the pod as a whole


def _scheduling_gated(finding: SchedulingGated) -> Words:
    noun = "gate" if len(finding.gates) == 1 else "gates"
    return Words(headline=f"scheduling {noun} {', '.join(finding.gates)}")


def _nodes_excluded(finding: NodesExcluded) -> Words:
    if not finding.existing:
        return Words(headline=f"only {listed(finding.names, SHOWN)} would do, and the cluster has no such node")
    return Words(headline=f"only {listed(finding.existing, SHOWN)} can be considered")


def _pod_group_incomplete(finding: PodGroupIncomplete) -> Words:
    if not finding.exists:
        return Words(headline=f"pod group {finding.group} does not exist")
    return Words(headline=f"pod group {finding.group} has {finding.pods:,} of {count(finding.min_count, 'pod')}")


# --- a node's own properties


def _untolerated_taint(finding: UntoleratedTaint) -> Words:
    taint = f"{finding.key}={finding.value}" if finding.value else finding.key
    if finding.nearest_toleration is None:
        nearest = f"no toleration names the key {finding.key}"
    else:
        needed = {"value": f'"{finding.value}"', "effect": finding.effect}
        wrong = (one for one in finding.nearest_differs.split(" and ") if one)
        differences = [f"its {one} is not {needed[one]}" if one in needed else f"its {one} differs" for one in wrong]
        text = f"toleration {finding.nearest_toleration + 1} is for {finding.nearest_text}"
        nearest = ": ".join((text, " and ".join(differences))) if differences else text
    return Words(
        headline=f"untolerated taint {taint}:{finding.effect}", facts=(Fact(label="nearest", items=(nearest,)),)
    )


def _node_affinity_mismatch(finding: NodeAffinityMismatch) -> Words:
    number = len(finding.terms)
    match finding.source:
        case "nodeSelector":
            text, label = "nodeSelector does not match", "selector"
        case "addedAffinity":
            text, label = f"{_none_of(number)} that the profile adds {_matches(number)}", "term"
        case _:
            text, label = f"{_none_of(number)} {_matches(number)}", "term"
    return Words(headline=text, facts=terms.facts(finding.terms, label), brief=terms.brief(finding.terms))


def _none_of(terms_count: int) -> str:
    return "the required term" if terms_count == 1 else f"none of {terms_count} required terms"


def _matches(terms_count: int) -> str:
    return "does not match" if terms_count == 1 else "matches"


def hint_text(hint: LabelHint) -> str:
    """What a node selector asks for and no node has, and what comes close."""
    if not hint.values:
        close = f"; {hint.nearest} is on {count(hint.nearest_count, 'node')}" if hint.nearest else ""
        return f"no node has a label {hint.key}{close}"
    asked = f"={hint.values[0]}" if len(hint.values) == 1 else f" in [{', '.join(hint.values)}]"
    if hint.nearest:
        return f"no node has {hint.key}{asked}; {hint.nearest} is on {count(hint.nearest_count, 'node')}"
    in_use = listed([f"{value} ({number:,})" for value, number in hint.in_use], SHOWN_VALUES)
    return f"no node has {hint.key}{asked}; in use: {in_use}"


def _missing_node_features(finding: MissingNodeFeatures) -> Words:
    noun = "feature" if len(finding.missing) == 1 else "features"
    return Words(
        headline=f"the node does not declare {noun} {', '.join(finding.missing)}",
        facts=(Fact(label="asks", items=(", ".join(finding.required),)),),
    )


# --- what other pods hold


def _host_port_conflict(finding: HostPortConflict) -> Words:
    port = f"{finding.port}/{finding.protocol}"
    asked, held = _endpoint(finding.host_ip, finding.port), _endpoint(finding.holder_host_ip, finding.port)
    rule = f"this pod wants {asked}, taken is {held}: 0.0.0.0 means every address"
    return Words(
        headline=f"host port {port} is taken by {finding.holder}",
        facts=(Fact(label="rule", items=(rule,)),) if asked != held else (),
        brief=Brief(detail=port, tail=f" by {finding.holder}"),
    )


def _endpoint(host_ip: str, port: int) -> str:
    return f"{host_ip or '0.0.0.0'}:{port}"


def _insufficient_resource(finding: InsufficientResource, detail: NodeDetail | None) -> Words:
    sums = balance(finding.resource, asks=finding.requested, allocatable=finding.allocatable, used=finding.used)
    size = max(len(sums.asks), len(sums.offers))
    parts = detail.parts.get(finding.resource, ()) if detail else ()
    asks = sums.asks.rjust(size)
    if len(parts) == 1:
        asks += f" by {parts[0].label}"
    elif parts:
        texts = sums.alike(finding.resource, tuple(part.amount for part in parts))
        asks += " = " + " + ".join(f"{part.label} {text}" for part, text in zip(parts, texts, strict=True))
    facts = [
        Fact(label="asks", items=(asks,), whole=True),
        Fact(label="offers", items=_offers(finding, sums, size, detail), whole=True),
    ]
    held = detail.holders.get(finding.resource) if detail else None
    if held and held.pods:
        texts = sums.alike(finding.resource, tuple(holder.amount for holder in held.pods))
        facts.append(
            Fact(
                label="held by",
                items=tuple(
                    f"{text} {holder.pod} (priority {holder.priority})"
                    for text, holder in zip(texts, held.pods, strict=True)
                ),
                rest=tuple(
                    sums.alike(finding.resource, (sum(holder.amount for holder in held.pods[shown:]),))[0]
                    + f" in {count(len(held.pods) - shown, 'other')}"
                    for shown in range(len(held.pods))
                ),
            )
        )
    never = ", more than the whole node has" if finding.never_fits else ""
    return Words(
        headline=f"insufficient {finding.resource}, short by {sums.short_by}{never}",
        facts=tuple(facts),
        brief=Brief(lead="short by ", detail=f"{sums.short_by} {finding.resource}"),
    )


def _offers(finding: InsufficientResource, sums: Balance, size: int, detail: NodeDetail | None) -> tuple[str, ...]:
    if not finding.allocatable:
        return (f"{'0'.rjust(size)}, the node has no {finding.resource}",)
    by = f" by {count(detail.pods, 'pod')}" if detail else ""
    sums_text = f"{sums.offers.rjust(size)} = {sums.allocatable} allocatable - {sums.used} requested{by}"
    return (sums_text, "rounded to Mi") if sums.rounded else (sums_text,)


def _too_many_pods(finding: TooManyPods) -> Words:
    return Words(headline=f"too many pods, {finding.pods:,} of {finding.allowed:,} are there")


# --- topology


def _topology_spread_skew(finding: TopologySpreadSkew) -> Words:
    arithmetic = f"{finding.matching} matching + {finding.itself} this pod - {finding.minimum} minimum = {finding.skew}"
    domains = [f"{one.domain} {one.matching}" for one in finding.domains]
    items = [arithmetic, listed(domains, SHOWN, finding.domain_count)]
    if finding.min_domains is not None:
        exist = "domain exists" if finding.domain_count == 1 else "domains exist"
        items.append(f"minimum 0: {finding.domain_count:,} {exist}, minDomains is {finding.min_domains}")
    items.append(f"constraint {finding.constraint + 1}, per {finding.topology_key}")
    return Words(
        headline=f"skew {finding.skew} > maxSkew {finding.max_skew}",
        facts=(Fact(label="rule", items=tuple(items), whole=True),),
        brief=Brief(detail=f"skew {finding.skew}"),
    )


def _selector(text: str) -> str:
    """A label selector that stands in a sentence."""
    return {"": "any pod", "<none>": "no pod"}.get(text, text)


def _pod_affinity_unsatisfied(finding: PodAffinityUnsatisfied) -> Words:
    where = f"{finding.topology_key}={finding.domain}"
    if finding.domain is None:
        text = f"no label {finding.topology_key}, which podAffinity term {finding.term + 1} needs"
    else:
        text = f"no pod {_selector(finding.selector)} in {where}"
    namespaces = "all namespaces" if finding.every_namespace else listed(finding.namespaces, SHOWN)
    rule = f"podAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}, in {namespaces}"
    if not finding.matching_pods:
        found = "no pod in the cluster satisfies every term"
    else:
        domains = listed(finding.matching_domains, SHOWN)
        found = f"{count(finding.matching_pods, 'pod')}, such as {listed(finding.pods, 2)}, in {domains}"
        if not finding.matching_domains:
            found = f"{count(finding.matching_pods, 'pod')} on nodes without the label"
    return Words(headline=text, facts=(Fact(label="its rule", items=(rule,)), Fact(label="nearest", items=(found,))))


def _pod_anti_affinity_conflict(finding: PodAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    rule = (
        f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, "
        f"per {finding.topology_key}={finding.domain}"
    )
    return Words(
        headline=f"this pod keeps away from {_and_others(first, finding.pod_count)}",
        facts=(Fact(label="its rule", items=(rule,)), *_others(finding.pods, finding.pod_count)),
        brief=Brief(detail=first),
    )


def _existing_anti_affinity_conflict(finding: ExistingAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    verb = "keeps" if finding.pod_count == 1 else "keep"
    labels = ", ".join(finding.matched_labels)
    read = f"matches this pod's {'label' if len(finding.matched_labels) == 1 else 'labels'} {labels}"
    rule = f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}"
    return Words(
        headline=f"{_and_others(first, finding.pod_count)} {verb} this pod away",
        facts=(
            Fact(label="its rule", items=(f"{rule}; {read}" if labels else rule,)),
            *_others(finding.pods, finding.pod_count),
        ),
        brief=Brief(lead="by ", detail=first),
    )


def _and_others(first: str, number: int) -> str:
    return first if number <= 1 else f"{first} and {count(number - 1, 'other')}"


def _others(pods: tuple[str, ...], number: int) -> tuple[Fact, ...]:
    return (Fact(label="pods", items=(listed(pods, SHOWN, number),)),) if number > 1 else ()

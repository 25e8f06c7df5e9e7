"""Remedies for spread constraints and rules between pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx import findings as f
from kschedx.controllers.pod_autoscaling import rescaled
from kschedx.controllers.workloads import Workload, wanted_replicas
from kschedx.explain.pod_selectors import misses_pod
from kschedx.explain.root_causes import provider_zone
from kschedx.explain.setup import minor_version
from kschedx.fixes import pod_edits as edit
from kschedx.fixes import steps as s
from kschedx.fixes.eviction import delete_all, is_twin, stop_holder, take_from_holder
from kschedx.fixes.node_remedies import affinity_remedies, host_port_remedies, taint_remedies, uncordon
from kschedx.fixes.node_requirements import intended_key
from kschedx.fixes.owners import template_owner
from kschedx.fixes.resource_remedies import larger_node, resource_remedies
from kschedx.fixes.trial import RemedyCandidate
from kschedx.kube.decoding import map_at
from kschedx.kube.names import HOSTNAME, ZONE, ZONE_LABELS
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import PodAffinityTerm
from kschedx.kube.typos import nearest_name
from kschedx.kube.workloads import TEMPLATE_HASH
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import ClusterRow
from kschedx.wording import list_names

_TAINTS_POLICY_SINCE = (1, 26)  # older API servers drop nodeTaintsPolicy


def _spread_remedies(
    finding: f.TopologySpreadSkew | f.TopologyLabelMissing, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    index, key = finding.constraint, finding.topology_key
    if isinstance(finding, f.TopologyLabelMissing) and key in ZONE_LABELS and (zone := provider_zone(place.node)):
        title = f"label {place.node.name} with {key}={zone}, as its provider ID shows"
        labels = ((key, zone),)
        yield s.RepairLabels(row=place.node_row, node=place.node.name, labels=labels, title=title, is_by_hand=True)
    constraints = place.pod.spec.topology_spread_constraints
    if index >= len(constraints) or constraints[index].topology_key != key:
        return  # the profile's default constraints cannot be changed in the pod
    before = constraints[index]

    def changed(cost: s.Cost = s.Cost.CONSTRAINT, **fields: object) -> s.ChangeRule:
        after = replace(before, **fields)
        return s.ChangeRule(kind=s.RuleKind.SPREAD, index=index, before=before, after=after, cost=cost)

    # the API server refuses a second constraint with the same key and effect
    others = {(rule.topology_key, rule.when_unsatisfiable) for at, rule in enumerate(constraints) if at != index}
    for meant, cost in _known_topologies(key, place):
        if (meant, before.when_unsatisfiable) not in others:
            yield changed(cost, topology_key=meant)
    own = _own_labels(before.label_selector, place)
    if own is not None:
        yield changed(s.Cost.TYPO, label_selector=own)
    is_old = (1, 0) <= minor_version(place.node.status.node_info.kubelet_version) < _TAINTS_POLICY_SINCE
    if before.node_taints_policy != "Honor" and not is_old:
        yield changed(s.Cost.POD, node_taints_policy="Honor")
    if before.node_affinity_policy == "Ignore":
        yield changed(s.Cost.POD, node_affinity_policy="Honor")
    if isinstance(finding, f.TopologySpreadSkew):
        is_counted = TEMPLATE_HASH in place.pod.metadata.labels and TEMPLATE_HASH not in before.match_label_keys
        if is_counted and finding.min_domains is None:
            yield changed(s.Cost.POD, match_label_keys=(*before.match_label_keys, TEMPLATE_HASH))
        exist = finding.domain_count if finding.min_domains is not None else 0
        if 0 < exist < (before.min_domains or 0):
            yield changed(min_domains=exist if exist > 1 else None)
        yield changed(max_skew=finding.skew)
    if (key, "ScheduleAnyway") not in others:
        yield changed(when_unsatisfiable="ScheduleAnyway", min_domains=None)


def _add_replica(key: str, place: RemedyCandidate) -> Iterator[s.AddReplica]:
    """Yield one more replica of an existing pod's Deployment on the node, if no autoscaler sets their number."""
    snapshot, row = place.snapshot, place.snapshot.pods.rows[key]
    pod = snapshot.pods[row]
    owner, namespace = template_owner(snapshot, pod), pod.metadata.namespace
    if owner is None or owner.kind != "Deployment" or owner.above or is_twin(row, place.situation):
        return
    replicas = wanted_replicas(owner.manifest) + 1
    if rescaled(snapshot, Workload(owner.kind, namespace, owner.name), replicas) is None:
        metadata = replace(pod.metadata, name=f"{pod.metadata.name}-new", uid="", deletion_timestamp="")
        replica = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=place.node.name))
        yield s.AddReplica(workload=owner.target(namespace), replicas=replicas, replica=replica)


_OF_CONTROLLERS = lazy_pattern(r"\bkubevirt\.io/created-by=|\bapp\.kubernetes\.io/component=affinity-assistant\b")
"""Selectors of affinity terms that no template has: KubeVirt keeps a migrating VM off its own node, and Tekton the pods
of a run beside the pod that mounts its workspace."""


def _own_rule_remedies(
    finding: f.PodAffinityUnsatisfied | f.PodAntiAffinityConflict, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    anti = isinstance(finding, f.PodAntiAffinityConflict)
    if isinstance(finding, f.PodAffinityUnsatisfied) and finding.pods and finding.domain is not None:
        yield from _add_replica(finding.pods[0], place)
    rule = edit.required_term(place.pod, finding.term, anti=anti)
    if rule is not None and not _OF_CONTROLLERS.search(finding.selector):
        kind = s.RuleKind.ANTI_AFFINITY if anti else s.RuleKind.AFFINITY
        for after, cost in _intended_terms(finding, rule, place):
            yield s.ChangeRule(
                kind=kind, index=finding.term, before=rule, after=after, selector=finding.selector, cost=cost
            )
        yield s.PreferTerm(number=finding.term + 1, selector=finding.selector, rule=rule, anti=anti)
    if isinstance(finding, f.PodAntiAffinityConflict):
        yield from delete_all(finding.pods, finding.pod_count, place)


def _existing_rule_remedies(finding: f.ExistingAntiAffinityConflict, place: RemedyCandidate) -> Iterator[s.FixStep]:
    rule = edit.required_term(place.pod, finding.term, anti=True)
    if rule is not None and all(is_twin(place.snapshot.pods.rows[pod], place.situation) for pod in finding.pods):
        yield s.PreferTerm(number=finding.term + 1, selector=finding.selector, rule=rule, anti=True)
    yield from delete_all(finding.pods, finding.pod_count, place)


def _shared_hostname(finding: f.Finding, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield a host name of its own for nodes that share that of the node, and run none of the pods in the way."""
    cluster, pods = place.nodes.cluster, place.snapshot.pods
    shared = place.node.metadata.labels.get(HOSTNAME, "")
    nodes = [(row, node) for row, node in enumerate(cluster.nodes) if node.metadata.labels.get(HOSTNAME) == shared]
    if not shared or len(nodes) < 2:
        return
    in_the_way = finding.pods if isinstance(finding, f.PodAntiAffinityConflict | f.ExistingAntiAffinityConflict) else ()
    taken = {pods.node_names[pods.rows[pod]] for pod in in_the_way if pod in pods.rows}
    free = [(row, node) for row, node in nodes if node.name != shared and node.name not in taken]
    for row, node in free[:_MOST_HOSTS]:
        others = [other.name for _, other in nodes if other is not node]
        has = f"{list_names(others, 3)} {'has' if len(others) == 1 else 'have'} label {HOSTNAME}={shared}"
        title = f"give {node.name} a host name of its own: {has} as well"
        own = ((HOSTNAME, node.name),)  # the kubelet sets the label again when it starts
        yield s.RepairLabels(row=ClusterRow(row), node=node.name, labels=own, title=title)


_MOST_HOSTS = 3


def _known_topologies(key: str, place: RemedyCandidate) -> Iterator[tuple[str, s.Cost]]:
    """Yield a topology key that nodes have, if no node has this one: the key that was meant, or the zone or host."""
    known = place.nodes.cluster.label_keys
    if key in known:
        return
    if key.rpartition("/")[2].lower() in _EACH_NODE and HOSTNAME in known:
        yield HOSTNAME, s.Cost.TYPO
    elif meant := intended_key(key, known):
        yield meant, s.Cost.TYPO
    elif len(place.nodes.cluster.label_values(ZONE)) > 1:
        yield ZONE, s.Cost.POD
    elif HOSTNAME in known:
        yield HOSTNAME, s.Cost.POD


_EACH_NODE = frozenset({"host", "node", "nodename"})  # topology keys without a label that mean a domain for each node


def _own_labels(selector: LabelSelector | None, place: RemedyCandidate) -> LabelSelector | None:
    """Return the selector with the pod's own labels, if it now matches only labels of others. None if it matches the
    pod or cannot match it. Keys that the pod has stay."""
    labels = place.pod.metadata.labels
    if selector is None or not selector.match_labels or compile_selector(selector).matches(labels):
        return None
    keys = {key: key if key in labels else nearest_name(key, sorted(labels)) for key in selector.match_labels}
    wanted = {key: labels[key] for key in keys.values() if key}
    if not wanted:
        owner = template_owner(place.snapshot, place.pod)
        chosen = map_at(None if owner is None else owner.manifest, "spec", "selector", "matchLabels")
        wanted = {key: labels[key] for key in chosen if key in labels}
    own = replace(selector, match_labels=wanted)
    return own if wanted and compile_selector(own).matches(labels) else None


_APP_NAME = "app.kubernetes.io/name"


def _intended_terms(
    finding: f.PodAffinityUnsatisfied | f.PodAntiAffinityConflict, rule: PodAffinityTerm, place: RemedyCandidate
) -> Iterator[tuple[PodAffinityTerm, s.Cost]]:
    """Yield terms that were probably meant, with their costs. One has the topology key that nodes have. If a term
    selects no pod, one has the label or namespace of existing pods. If an anti-affinity term of several replicas
    selects only other pods, one has the pod's own labels."""
    for meant, cost in _known_topologies(rule.topology_key, place):
        yield replace(rule, topology_key=meant), cost
    if isinstance(finding, f.PodAntiAffinityConflict):
        owner = template_owner(place.snapshot, place.pod)
        has_others = owner is not None and map_at(owner.manifest, "spec").get("replicas") not in (0, 1, None)
        is_odd = has_others and misses_pod(place.pod, finding.term)
        if is_odd and (own := _own_labels(rule.label_selector, place)) is not None:
            yield replace(rule, label_selector=own), s.Cost.POD
        its = place.pod.metadata.namespace
        if finding.namespaces != (its,) and not any(key.startswith(f"{its}/") for key in finding.pods):
            yield replace(rule, namespaces=(), namespace_selector=None), s.Cost.CONSTRAINT
        return
    pods = place.snapshot.pods
    running = pods.node >= 0
    selected = running & pods.labels.where(compile_selector(rule.label_selector).matches)
    if selected.any():
        there = {pods.namespaces[int(row)] for row in np.flatnonzero(selected)}
        if len(there) == 1 and not finding.every_namespace and not there & {*finding.namespaces}:
            kept = rule.namespaces if rule.namespace_selector is not None else ()
            yield replace(rule, namespaces=(*kept, *there)), s.Cost.POD
        return
    looked_at = running & pods.namespaces.where(lambda name: finding.every_namespace or name in finding.namespaces)
    labels = [
        *(pods.labels.values[int(code)] for code in np.unique(pods.labels.codes[looked_at])),
        place.pod.metadata.labels,
    ]
    selector = rule.label_selector
    for key, value in selector.match_labels.items() if selector is not None else ():
        keys = {name for label in labels for name in label}
        its_key = key if key in keys else nearest_name(key, sorted(keys))
        values = {label[its_key] for label in labels if its_key in label}
        meant_value = value if value in values else nearest_name(value, sorted(values))
        if not meant_value:  # `app=redis`, while the pods have `app.kubernetes.io/name=redis`
            same = sorted({name for label in labels for name, text in label.items() if text == value})
            its_key, meant_value = _APP_NAME if _APP_NAME in same else same[0] if len(same) == 1 else "", value
        if its_key and meant_value and (its_key, meant_value) != (key, value) and selector is not None:
            rest = {name: text for name, text in selector.match_labels.items() if name != key}
            written = replace(selector, match_labels={**rest, its_key: meant_value})
            yield replace(rule, label_selector=written), s.Cost.TYPO


# Remedies for the findings on a node. The trial decides whether they help.


def last_remedies(findings: Sequence[f.Finding], place: RemedyCandidate) -> tuple[tuple[s.FixStep, ...], ...]:
    """Return last remedies, for when no other node would fit: the pod depends on a node that is too small, on a volume
    where no node can be, or on something that a pod with a higher priority uses."""
    short = [x for x in findings if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    groups: list[tuple[s.FixStep, ...]] = [(larger_node(short, place),)] if short else []
    for finding in findings:
        if isinstance(finding, f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch):
            from kschedx.fixes.storage_remedies import give_up_volume

            groups.append(tuple(give_up_volume(finding, place)))
        elif isinstance(finding, f.ClaimInUse | f.DiskConflict):
            groups.append(tuple(stop_holder(finding.holder, place) or take_from_holder(finding.holder, place)))
        elif not isinstance(finding, f.InsufficientResource | f.TooManyPods):
            groups.append(tuple(_finding_remedies(finding, place)))
    return tuple(groups)


def remedies(findings: Sequence[f.Finding], place: RemedyCandidate) -> tuple[tuple[s.FixStep, ...], ...]:
    """Return the alternative remedies for each problem on the node. If a problem has none, the node cannot be fixed."""
    groups: list[tuple[s.FixStep, ...]] = []
    short = [x for x in findings if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    if short:
        groups.append(tuple(resource_remedies(short, place)))
    groups.extend(
        tuple(_finding_remedies(x, place))
        for x in findings
        if not isinstance(x, f.InsufficientResource | f.TooManyPods)
    )
    return tuple(groups)


_PER_TOPOLOGY = (f.TopologySpreadSkew, f.PodAntiAffinityConflict, f.ExistingAntiAffinityConflict)
_OF_VOLUMES = (
    f.NoMatchingVolume,
    f.InsufficientStorageCapacity,
    f.VolumeLimitExceeded,
    f.VolumeNodeAffinityMismatch,
    f.ProvisioningTopologyMismatch,
)


def _finding_remedies(finding: f.Finding, place: RemedyCandidate) -> Iterator[s.FixStep]:
    if isinstance(finding, _PER_TOPOLOGY) and finding.topology_key == HOSTNAME:
        yield from _shared_hostname(finding, place)
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
            yield from _spread_remedies(finding, place)
        case f.PodAffinityUnsatisfied() | f.PodAntiAffinityConflict():
            yield from _own_rule_remedies(finding, place)
        case f.ExistingAntiAffinityConflict():
            yield from _existing_rule_remedies(finding, place)
        case f.ClaimInUse() | f.DiskConflict():
            yield from stop_holder(finding.holder, place)
        case _ if isinstance(finding, f.ClaimFinding | f.SelectedNodeMismatch):
            from kschedx.fixes.storage_remedies import claim_remedies

            yield from claim_remedies(finding, place)
        case _ if isinstance(finding, _OF_VOLUMES):
            from kschedx.fixes.storage_remedies import volume_remedies

            yield from volume_remedies(finding, place)
        case _ if isinstance(finding, f.DeviceFinding):
            from kschedx.fixes.device_remedies import device_remedies

            yield from device_remedies(finding, place)
        case _:
            return  # no change of the pod, its neighbors, or its node helps

"""Remedies for a resource that a node has but does not offer: its driver does not run, or no huge pages are
reserved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx.explain.hardware import (
    NODE_FEATURES,
    device_plugin_down,
    hardware_hint,
    nodes_with_unhealthy,
    partitioned_resources,
    unhealthy_devices,
)
from kschedx.explain.root_causes import allocated_amount, pending_resizes
from kschedx.findings import (
    ExistingAntiAffinityConflict,
    HostPortConflict,
    InsufficientResource,
    PodAntiAffinityConflict,
    TooManyPods,
)
from kschedx.fixes import steps as s
from kschedx.fixes.eviction import await_termination, can_evict, deletion, is_terminating, stay_deleted
from kschedx.fixes.owners import template_owner
from kschedx.fixes.pod_edits import INJECTED, OF_LIMIT, VERTICAL, ContainerRequest, rounded_down
from kschedx.fixes.trial import RemedyCandidate, Situation
from kschedx.kube.autoscalers import has_default, vertical_autoscaler
from kschedx.kube.names import EPHEMERAL_STORAGE, MEMORY
from kschedx.kube.quantity import resource_amount
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import Node
from kschedx.kube.typos import UnlikelyQuantity, excessive_amounts, nearest_name, unlikely_quantities
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import ClusterRow, clamp_int64

_HUGE_PAGES = "hugepages-"
_MOST_NODES = 4  # the limit is for each of these causes
_OF_OTHER_PODS = (
    ExistingAntiAffinityConflict | HostPortConflict | InsufficientResource | PodAntiAffinityConflict | TooManyPods
)
"""Findings that end once a terminating pod is gone."""


def _lacked_feature(node: Node, resource: str) -> str:
    """Return the setting of the machine without which a node offers 0 of a resource, or an empty string."""
    amounts = {str(of.get(resource, "0")) for of in (node.status.capacity, node.status.allocatable)}
    is_listed = resource in node.status.allocatable
    return NODE_FEATURES.get(resource, "") if is_listed and amounts == {"0"} else ""


def rows_of_interest(situation: Situation) -> Iterator[ClusterRow]:
    """Yield nodes that differ from others with the same shortage: their labels name hardware that the pod requests and
    no node offers, their devices are unhealthy, or one of their pods is terminating or waits for its resize."""
    cluster, pods = situation.snapshot.cluster, situation.snapshot.pods
    findings = situation.findings
    hints = [hint for finding in findings if (hint := hardware_hint(finding, cluster)) is not None]
    names = dict.fromkeys(name for hint in hints for name, _ in hint.nodes)
    yield from [cluster.index[name] for name in names][:_MOST_NODES]
    lacking = dict.fromkeys(finding.resource for finding in findings if isinstance(finding, InsufficientResource))
    ill = dict.fromkeys(cluster.index[name] for resource in lacking for name in nodes_with_unhealthy(cluster, resource))
    ill |= dict.fromkeys(
        cluster.index[node.name]
        for resource in lacking
        for node in (cluster.nodes if resource in NODE_FEATURES else ())
        if _lacked_feature(node, resource)
    )
    yield from [*ill][:_MOST_NODES]
    short = {finding.resource for finding in findings if isinstance(finding, InsufficientResource)}
    resized = {pending.pod for resource in sorted(short) for pending in pending_resizes(situation.snapshot, resource)}
    is_of_pods = any(isinstance(finding, _OF_OTHER_PODS) for finding in findings)
    terminating = np.flatnonzero(pods.terminating & (pods.node >= 0)) if is_of_pods else ()
    for rows in (map(pods.rows.__getitem__, resized), terminating):
        yield from map(ClusterRow, sorted({int(pods.node[row]) for row in rows})[:_MOST_NODES])


def _offer_resource(short: Sequence[InsufficientResource], place: RemedyCandidate) -> Iterator[s.OfferResource]:
    """Yield the step that makes the node offer the resources, if it lacks nothing else, and one repair suffices."""
    each = [step for finding in short for step in _offer_one(finding, place)]
    if each and len(each) == len(short) and len({step.title for step in each}) == 1:
        amounts = tuple(amount for step in each for amount in step.amounts)
        yield each[0] if len(each) == 1 else replace(each[0], amounts=amounts)


def _offer_one(finding: InsufficientResource, place: RemedyCandidate) -> Iterator[s.OfferResource]:
    more = s.NodeAmount(
        resource=finding.resource, before=finding.allocatable, after=finding.allocatable + finding.short_by
    )
    if finding.resource.startswith(_HUGE_PAGES):
        yield from _set_aside(more, place)
        return
    whole, _ = unhealthy_devices(place.node, finding.resource) or (0, 0)
    hint = hardware_hint(finding, place.nodes.cluster)
    label = "" if hint is None else dict(hint.nodes).get(place.node.name, "")
    feature = _lacked_feature(place.node, finding.resource)
    is_hidden = finding.resource == EPHEMERAL_STORAGE and not finding.allocatable
    if whole >= more.after or label or feature or is_hidden:
        name, is_unhealthy = place.node.name, whole >= more.after
        yield s.OfferResource(
            row=place.node_row,
            node=name,
            resource=finding.resource,
            amounts=(more,),
            label="" if is_unhealthy else label,
            is_unhealthy=is_unhealthy,
            feature=feature,
            plugin=device_plugin_down(place.snapshot, place.situation.scheduler.nodes.options, finding.resource, name),
        )


def _set_aside(more: s.NodeAmount, place: RemedyCandidate) -> Iterator[s.OfferResource]:
    """Yield the step that reserves huge pages; they reduce the node's memory."""
    index = place.nodes.resources.index.get(MEMORY)
    if index is None:
        return
    memory = int(place.nodes.allocatable[place.row, index])
    left = memory - (more.after - more.before)
    if left > 0:
        amounts = (more, s.NodeAmount(resource=MEMORY, before=memory, after=left))
        row, node = place.node_row, place.node.name
        yield s.OfferResource(row=row, node=node, resource=more.resource, amounts=amounts)


# Remedies for resources that are used up: lower the requests, or delete other pods.

_LEAST_REQUEST_SHARE = 10  # the divisor of a request below which no fix lowers it
MOST_VICTIMS = 5
_WITH_FIXED_LIMIT = ("gce:", "azure:")  # providers that set the limit of pods when they create a node pool


def resource_remedies(
    findings: Sequence[InsufficientResource | TooManyPods], place: RemedyCandidate
) -> Iterator[s.FixStep]:
    """Yield steps that each resolve all shortages on a node, since resolving a part does not help."""
    short = [finding for finding in findings if isinstance(finding, InsufficientResource)]
    crowded = len(short) < len(findings)
    unlikely = (*unlikely_quantities(place.pod.spec), *_excessive_amounts(short, place))
    if any(quantity.resource == finding.resource for quantity in unlikely for finding in short):
        yield s.CorrectQuantities(amounts=unlikely)
    yield from _misspelled_resource(short, place)
    has_limit = any(isinstance(finding, TooManyPods) and finding.allowed for finding in findings)
    if has_limit and not short and not place.node.spec.provider_id.startswith(_WITH_FIXED_LIMIT):
        is_of_eks = any(key.startswith("eks.amazonaws.com/") for key in place.node.metadata.labels)
        has_prefixes = is_of_eks or place.node.spec.provider_id.startswith("aws:")
        yield replace(larger_node(findings, place), is_of_kubelet=True, has_prefixes=has_prefixes)
    if not crowded:
        yield from _withdrawn_resizes(short, place)
        yield from _offer_resource(short, place)
    if not crowded and all(f.free * _LEAST_REQUEST_SHARE >= f.requested for f in short):
        amounts = {f.resource: rounded_down(f.resource, f.free) for f in short}
        lowered = s.LowerRequests.of(place.pod, amounts, place.situation.scheduler.nodes.options)
        if lowered is not None:
            requests = tuple(replace(request, source=_source(request, place)) for request in lowered.requests)
            is_chosen = any(not request.source or request.source.startswith(OF_LIMIT) for request in requests)
            is_unchosen = not is_chosen and all(finding.never_fits for finding in short)
            yield replace(lowered, requests=requests, is_unchosen=is_unchosen)
    going = [row for row in place.nodes.pods_on(place.row).tolist() if is_terminating(row, place.situation)]
    if going:
        waiting = await_termination(going, place.snapshot, node=place.node.name)
        stays_away = find_untolerated(
            place.node.spec.taints, place.pod.spec.tolerations, effects=DO_NOT_SCHEDULE, comparison=True
        )
        # the node has to be repaired for the pod, and its kubelet then confirms the deletions
        yield replace(waiting, lost_node="") if waiting.lost_node and stays_away is not None else waiting
    victims = _victims(short, crowded, place)
    if victims:
        yield deletion(victims, place.snapshot, node=place.node.name)


def larger_node(findings: Sequence[InsufficientResource | TooManyPods], place: RemedyCandidate) -> s.EnlargeNode:
    """Return the step that enlarges the node by what the pod lacks there."""
    amounts = [
        s.NodeAmount(
            resource=finding.resource, before=finding.allocatable, after=finding.allocatable + finding.short_by
        )
        if isinstance(finding, InsufficientResource)
        else s.NodeAmount(resource="pods", before=finding.allowed, after=finding.pods + 1)
        for finding in findings
    ]
    return s.EnlargeNode(row=place.node_row, node=place.node.name, amounts=tuple(amounts))


def _excessive_amounts(short: Sequence[InsufficientResource], place: RemedyCandidate) -> Iterator[UnlikelyQuantity]:
    cluster = place.nodes.cluster
    for finding in short:
        column = place.nodes.resources.index.get(finding.resource)
        if column is not None and finding.never_fits:
            yield from excessive_amounts(place.pod.spec, finding.resource, int(cluster.allocatable[:, column].max()))


def _misspelled_resource(short: Sequence[InsufficientResource], place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield a similarly named resource, if no node offers the requested one."""
    if len(short) != 1 or "/" not in short[0].resource:
        return
    cluster, name = place.nodes.cluster, short[0].resource
    offered = [resource for column, resource in enumerate(cluster.resources.names) if cluster.offers[:, column].any()]
    if name not in offered and (meant := nearest_name(name, offered)):
        yield s.RequestInstead(resource=name, meant=meant)
    for cause in partitioned_resources(place.snapshot, place.pod, short[0]):
        others = (resource for resource in cause.others if _is_alternative(resource, name))
        yield from (s.RequestInstead(resource=name, meant=other, is_part=True) for other in others)


_MIG_MEMORY = lazy_pattern(r"/mig-\d+g\.(\d+)gb")


def _is_alternative(resource: str, requested: str) -> bool:
    """Whether a resource can take the place of the requested one: a part of it, the whole of which it is a part, or a
    MIG device with at least its memory."""
    memory, needed = (_MIG_MEMORY.search(name) for name in (resource, requested))
    if memory is not None and needed is not None:
        return int(memory[1]) >= int(needed[1])
    return _is_part(resource, requested) or _is_part(requested, resource) or {resource, requested} in _BY_KERNEL_DRIVER


_BY_KERNEL_DRIVER = ({"gpu.intel.com/i915", "gpu.intel.com/xe"},)
"""Resources for the same devices, which a device plugin names after the node's kernel driver."""


def _is_part(resource: str, whole: str) -> bool:
    """Whether a resource is a part of the hardware of another one of the same vendor, such as a MIG device of a GPU."""
    return resource.startswith((f"{whole}.", f"{whole}-", f"{whole}_")) or ("/mig-" in resource) > ("/mig-" in whole)


def _withdrawn_resizes(short: Sequence[InsufficientResource], place: RemedyCandidate) -> Iterator[s.WithdrawResize]:
    """Yield steps that reset a pod's requests to what its node has allocated, if the node cannot meet them."""
    snapshot = place.snapshot
    pending = {
        pending.pod
        for it in short
        for pending in pending_resizes(snapshot, it.resource)
        if pending.node == place.node.name
    }
    for key in sorted(pending):
        pod = snapshot.pods[snapshot.pods.rows[key]]
        requests = tuple(
            ContainerRequest(container=container.name, resource=resource, before=requested, after=given)
            for container in pod.spec.containers
            for resource, written in container.resources.requests.items()
            if (given := allocated_amount(pod, resource, container.name)) > 0
            and given < (requested := resource_amount(resource, written))
        )
        if requests:
            yield s.WithdrawResize(pod=key, node=place.node.name, requests=requests)


def _source(request: ContainerRequest, place: RemedyCandidate) -> str:
    """Return the VerticalPodAutoscaler, LimitRange, injector, or limit that sets a container's request; empty if the
    pod's own manifest sets it."""
    if not request.container:
        return ""
    annotations = place.pod.metadata.annotations
    names = [container.name for container in place.pod.spec.containers]
    index = names.index(request.container) if request.container in names else -1
    if by := vertical_autoscaler(annotations, index, request.resource):
        return f"{VERTICAL} {by}"
    owner = template_owner(place.snapshot, place.pod)
    stated = None if owner is None else owner.resources_of(request.container)
    if stated is None:
        if owner is not None:
            return f"{INJECTED} {request.container}"
        if not has_default(annotations, request.container, request.resource):
            return ""
    elif request.resource in (stated.get("requests") or ()):
        return ""
    elif request.resource in (stated.get("limits") or ()):
        return f"{OF_LIMIT}{request.resource}" if request.resource in ("cpu", MEMORY) else ""
    for limit_range in place.snapshot.limit_ranges.get(place.pod.metadata.namespace, ()):
        for item in limit_range.spec.limits:
            written = item.default_request.get(request.resource) if item.type == "Container" else None
            if written is not None and resource_amount(request.resource, written) == request.before:
                return f"LimitRange {limit_range.metadata.name}"
    return ""


def _victims(short: Sequence[InsufficientResource], crowded: bool, place: RemedyCandidate) -> tuple[int, ...]:
    """Return pods whose deletion makes room on the node: if possible one, with the lowest priority and the best fit;
    otherwise the fewest, the largest first."""
    pods, requests = place.snapshot.pods, place.nodes.requests
    here = [row for row in place.nodes.pods_on(place.row).tolist() if can_evict(row, place.situation)]
    if not here:
        return ()
    columns = [place.nodes.resources.index[f.resource] for f in short if f.resource in place.nodes.resources.index]
    if len(columns) < len(short):
        return ()  # the pod requests a resource that no node offers
    missing = clamp_int64(finding.short_by for finding in short)
    freed = requests.matrix[np.array(here)][:, columns]
    enough = (freed >= missing).all(axis=1)
    ordered = sorted(np.flatnonzero(enough), key=lambda i: (pods.priorities[here[i]], int((freed[i] - missing).sum())))
    for best in ordered[:MOST_VICTIMS]:
        if stay_deleted([here[int(best)]], place.situation):
            return (here[int(best)],)
    if ordered:
        return ()
    order = sorted(range(len(here)), key=lambda i: (int(pods.priorities[here[i]]), *(-freed[i]).tolist()))
    taken: list[int] = []
    left = missing.copy()
    for index in order:
        if (left <= 0).all() and (not crowded or taken):
            break
        if (freed[index][left > 0] > 0).any() or not len(columns):
            taken.append(here[index])
            left = left - freed[index]
    if (left > 0).any() or len(taken) > MOST_VICTIMS or not stay_deleted(taken, place.situation):
        return ()
    return tuple(taken)

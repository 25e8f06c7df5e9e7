"""The words for what lies behind a rejection, and for what does not decide."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain import ranking
from kschedx.explain.root_causes import (
    Cause,
    DaemonSetsFillPodSlots,
    DevicePluginDown,
    MatchingPodPending,
    MembersNotCreated,
    NeverPreempts,
    NoDevicesPublished,
    NominatedNodeTaken,
    OutdatedRevision,
    PartitionedResource,
    PortOfService,
    ProvisioningFailed,
    Reported,
    ResizePending,
    SelectorMissesPod,
    SelectorOfNamespace,
    UnhealthyDevices,
    VolumeNotUsable,
)
from kschedx.kube.quantity import Unit, format_quantities
from kschedx.render.wording import count, listed


def root_cause_text(cause: Cause) -> str:
    """One sentence."""
    match cause:
        case ResizePending():
            unit = Unit.of(cause.resource)
            requested, allocated = format_quantities((cause.requested, cause.allocated), unit)
            name = "CPU" if cause.resource == "cpu" else cause.resource
            counts = ", which counts," if cause.reason != "Infeasible" else " in vain,"
            return (
                f"the resize of {cause.pod} on {cause.node} is {cause.reason}: it requests {requested} {name}"
                f"{counts} and has {allocated} allocated"
            )
        case DaemonSetsFillPodSlots():
            return (
                f"{cause.daemon_pods:,} of the {count(cause.pods, 'pod')} on {cause.node} belong to DaemonSets; "
                f"the node allows {cause.allowed:,}"
            )
        case NoDevicesPublished():
            driver = f" of driver {cause.driver}" if cause.driver else ""
            others = f"; drivers with ResourceSlices: {listed(cause.drivers, 3)}" if cause.drivers else ""
            return (
                f"no ResourceSlice{driver} exists: no driver publishes devices for class {cause.device_class}{others}"
            )
        case PartitionedResource():
            present = [f"{amount:,} {name} on {count(nodes, 'node')}" for name, amount, nodes in cause.others]
            return f"the nodes have {listed(present, 4)} instead of {cause.resource}"
        case UnhealthyDevices(resource=resource, node=node, capacity=capacity, allocatable=left, others=others):
            more = f" (and {count(others, 'more node')})" if others else ""
            amounts = f"capacity {capacity} {resource}, allocatable {left}"
            return f"{node}{more}: {amounts}; its device plugin reports unhealthy devices, or does not run"
        case DevicePluginDown(pod=pod, daemon_set=daemon_set, node=node):
            if pod:
                return f"its device plugin {pod} on {node} does not run: {cause.state}"
            why = f"it does not tolerate {cause.taint}" if cause.taint else "it does not select the node"
            return f"DaemonSet {daemon_set} creates no device plugin pod for {node}: {why}"
        case SelectorMissesPod():
            if cause.anti:
                rule = f"podAntiAffinity term {cause.index + 1} ({cause.selector})"
                return f"the labelSelector of {rule} does not match the pod itself: it avoids other pods"
            rule = f"the spread constraint over {cause.topology_key}"
            return f"the labelSelector of {rule} does not match the pod itself: it counts other pods"
        case OutdatedRevision(owner=owner):
            return f"{owner} has a newer revision, and replaces this pod only once it is ready (OrderedReady)"
        case MatchingPodPending(pod=pod, term=term, others=others):
            more = f" and {count(others, 'more pod')}" if others else ""
            verb = "have no node themselves" if others else "has no node itself"
            return f"podAffinity term {term + 1} selects {pod}{more}, which {verb}"
        case SelectorOfNamespace() | NominatedNodeTaken() | PortOfService() | NeverPreempts():
            return _of_others(cause)
        case MembersNotCreated(owner=owner, message=message):
            return f"{owner} cannot create the others: {message.removeprefix('Error creating: ')}"
        case ProvisioningFailed():
            return f"the last event of claim {cause.claim}: {cause.message}"
        case VolumeNotUsable():
            return _unusable(cause)
        case Reported(by=by, message=message):
            return f"{by} reports: {message}"
        case _:
            assert_never(cause)


def _of_others(cause: SelectorOfNamespace | NominatedNodeTaken | PortOfService | NeverPreempts) -> str:
    """What other objects than the pod and its nodes do to it."""
    match cause:
        case SelectorOfNamespace(selector=selector, is_default=True):
            return f"node selector {selector} is spec.defaultNodeSelector of OpenShift's Scheduler cluster"
        case SelectorOfNamespace(namespace=namespace, annotation=annotation, selector=selector):
            return f"node selector {selector} comes from annotation {annotation} of namespace {namespace}"
        case NeverPreempts(priority_class=name):
            named = f"PriorityClass {name} has" if name else "the pod has"
            return f"{named} preemptionPolicy Never, so that no pod of a lower priority is evicted"
        case NominatedNodeTaken(node=node, pod=pod, others=others):
            more = f" and {count(others, 'more pod')}" if others else ""
            return f"nominated node {node} was taken: {pod} (priority {cause.priority}){more} runs there and is newer"
        case PortOfService(ports=ports, service=service):
            noun = "host port" if len(ports) == 1 else "host ports"
            return f"k3s' load balancer (ServiceLB) uses {noun} {listed(map(str, ports), 4)} for Service {service}"
        case _:
            assert_never(cause)


def indecisive_text(one: ranking.Indecisive) -> str:
    """One sentence."""
    match one:
        case ranking.RuleSelectsNothing(rule=rule, selector=selector):
            return f"{rule} ({selector}) matches no pod, this pod included: it has no effect"
        case ranking.CountsOthers(topology_key=key):
            return f"the spread constraint over {key} does not match the pod itself: it counts other pods"
        case ranking.OnlyTolerates(taint=taint, node=node):
            return (
                f"the toleration of {taint} allows {node} and does not prefer it: "
                "the pod has no nodeSelector and no node affinity"
            )
        case ranking.SoftTaint(taint=taint, node=node):
            return f"the taint {taint} of {node} only lowers its score; effect NoSchedule would reject the pod"
        case ranking.UnreservedHardware(node=node, resource=resource):
            return f"{node} has {resource}, which the pod does not request; no taint keeps such pods off the node"
        case ranking.WithoutRequests(node=node, bare=bare, pods=pods):
            told = f"{bare:,} of {count(pods, 'pod')} on {node} request no CPU and no memory"
            return f"{told}: kube-scheduler counts requests, not usage"
        case ranking.FilterDisabled(profile=profile, plugins=plugins):
            return f"profile {profile} disables a filter of the default profile: {listed(plugins, 4)}"
        case ranking.EitherTerm(node=node, matched=matched, terms=terms):
            which = listed(map(str, matched), 3)
            return f"one of the {terms} nodeSelectorTerms is enough: {node} matches term {which}, not all of them"
        case ranking.LooseSpread(topology_key=key, max_skew=skew, domain=domain, pods=pods, least=least):
            told = f"{domain} has {count(pods, 'matching pod')}, the least of all domains is {least:,}"
            return f"maxSkew {skew} over {key} allows one more in {domain}: {told}"
        case ranking.OtherProfiles(used=used, others=others):
            return f"the pod's schedulerName is {used}, so that profile {listed(others, 3)} is not used"
        case _:
            assert_never(one)


def _unusable(cause: VolumeNotUsable) -> str:
    volume = cause.volume
    about = f"volume {volume.name}, which claim {cause.claim} names," if cause.is_named else f"volume {volume.name}"
    why = {
        "access-modes": f"has the access modes {volume.detail}",
        "bound-to-another-claim": f"is bound to claim {volume.detail}",
        "selector": "is not selected by the claim",
        "too-small": f"has only {format_quantities((volume.capacity,), Unit.BYTE)[0]}",
        "volume-mode": f"has volumeMode {volume.detail}",
    }
    return f"{about} {why[volume.lost]}"

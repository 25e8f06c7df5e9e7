"""The words for what lies behind a rejection."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain import root_causes
from kschedx.kube.quantity import Unit, format_quantities
from kschedx.render.wording import count, listed


def root_cause_text(cause: root_causes.Cause) -> str:
    """One sentence."""
    match cause:
        case root_causes.ResizePending():
            unit = Unit.of(cause.resource)
            requested, allocated = format_quantities((cause.requested, cause.allocated), unit)
            name = "CPU" if cause.resource == "cpu" else cause.resource
            counts = ", which counts," if cause.reason != "Infeasible" else " in vain,"
            return (
                f"the resize of {cause.pod} on {cause.node} is {cause.reason}: it requests {requested} {name}"
                f"{counts} and has {allocated} allocated"
            )
        case root_causes.DaemonSetsFillPodSlots():
            return (
                f"{cause.daemon_pods:,} of the {count(cause.pods, 'pod')} on {cause.node} belong to DaemonSets; "
                f"the node allows {cause.allowed:,}"
            )
        case root_causes.NoDevicesPublished():
            driver = f" of driver {cause.driver}" if cause.driver else ""
            others = f"; drivers with ResourceSlices: {listed(cause.drivers, 3)}" if cause.drivers else ""
            return (
                f"no ResourceSlice{driver} exists: no driver publishes devices for class {cause.device_class}{others}"
            )
        case root_causes.PartitionedResource():
            present = [f"{amount:,} {name} on {count(nodes, 'node')}" for name, amount, nodes in cause.others]
            return f"the nodes have {listed(present, 4)} instead of {cause.resource}"
        case root_causes.UnhealthyDevices(
            resource=resource, node=node, capacity=capacity, allocatable=left, others=others
        ):
            more = f" (and {count(others, 'more node')})" if others else ""
            amounts = f"capacity {capacity} {resource}, allocatable {left}"
            return f"{node}{more}: {amounts}; its device plugin reports unhealthy devices, or does not run"
        case root_causes.SelectorMissesPod():
            if cause.anti:
                rule = f"podAntiAffinity term {cause.index + 1} ({cause.selector})"
                return f"the labelSelector of {rule} does not match the pod itself: it avoids other pods"
            rule = f"the spread constraint over {cause.topology_key}"
            return f"the labelSelector of {rule} does not match the pod itself: it counts other pods"
        case root_causes.OutdatedRevision(owner=owner):
            return f"{owner} has a newer revision, and replaces this pod only once it is ready (OrderedReady)"
        case root_causes.MatchingPodPending(pod=pod, term=term, others=others):
            more = f" and {count(others, 'more pod')}" if others else ""
            verb = "have no node themselves" if others else "has no node itself"
            return f"podAffinity term {term + 1} selects {pod}{more}, which {verb}"
        case root_causes.NeverPreempts(priority_class=name):
            named = f"PriorityClass {name} has" if name else "the pod has"
            return f"{named} preemptionPolicy Never, so that no pod of a lower priority is evicted"
        case root_causes.MembersNotCreated(owner=owner, message=message):
            return f"{owner} cannot create the others: {message.removeprefix('Error creating: ')}"
        case root_causes.ProvisioningFailed():
            return f"the last event of claim {cause.claim}: {cause.message}"
        case root_causes.Reported(by=by, message=message):
            return f"{by} reports: {message}"
        case _:
            assert_never(cause)

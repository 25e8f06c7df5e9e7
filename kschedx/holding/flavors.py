"""A pod as if Kueue had admitted it with a flavor, on the nodes of that flavor.

Upstream: checkFlavorForPodSets in pkg/scheduler/flavorassigner, pkg/podset and pkg/controller/tas of
kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kschedx.api import kueue as api
from kschedx.api.kueue import ClusterQueue, PodSetAssignment, PodSetUpdate, ResourceFlavor, Workload
from kschedx.api.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, compile_node_selector, compile_selector
from kschedx.api.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.api.types import Pod
from kschedx.holding.attempt import Try
from kschedx.holding.model import FlavorFit
from kschedx.holding.quota import flavors_of
from kschedx.snapshot.snapshot import Snapshot


def fits(
    snapshot: Snapshot, pod: Pod, workload: Workload, queue: ClusterQueue | None, attempt: Try
) -> Iterator[FlavorFit]:
    """One for each flavor that the pod may come to: those that it was given, else all of its queue."""
    known = {one.metadata.name: one for one in snapshot.of(ResourceFlavor)}
    assigned = _assignments(pod, workload)
    given = [name for one in assigned for name in one.flavors.values()]
    offered = [flavor.name for flavor in flavors_of(queue)] if queue is not None and not assigned else []
    domains = _domains(assigned)
    updates = _updates(pod, workload)
    for name in dict.fromkeys((*given, *offered)):
        flavor = known.get(name)
        if flavor is None:
            yield FlavorFit(flavor=name, exists=False, nodes=0, feasible=())
            continue
        labels = flavor.spec.node_labels
        nodes = frozenset(
            node.name
            for node in snapshot.cluster.nodes
            if labels.items() <= node.metadata.labels.items() and _is_within(node.metadata.labels, domains)
        )
        refused = "" if given else why_not(pod, flavor)
        feasible, reasons = ((), ()) if refused else attempt(as_if_admitted(pod, flavor, updates), nodes)
        yield FlavorFit(
            flavor=name,
            exists=True,
            nodes=len(nodes),
            feasible=feasible,
            reasons=reasons,
            refused=refused,
            topology=flavor.spec.topology_name or "",
        )


def _assignments(pod: Pod, workload: Workload) -> Sequence[PodSetAssignment]:
    """Of the pod's set, where it says which that is."""
    every = workload.status.admission.pod_set_assignments if workload.status.admission is not None else ()
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    return [one for one in every if wanted in (None, one.name)] or every


def _updates(pod: Pod, workload: Workload) -> Sequence[PodSetUpdate]:
    """What admission checks that are ready add to the pod, of whose set they speak."""
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    ready = (check for check in workload.status.admission_checks if check.state == "Ready")
    every = [one for check in ready for one in check.pod_set_updates]
    is_only_set = wanted is None and len(workload.spec.pod_sets) <= 1
    return every if is_only_set else [one for one in every if one.name == wanted]


NO_MATCH = "its labels do not match the pod's node affinity"
Domains = Mapping[tuple[str, ...], Collection[tuple[str, ...]]]
"""Keys of labels to the values that they may have together."""


def _domains(assigned: Sequence[PodSetAssignment]) -> Domains:
    return {
        one.topology_assignment.levels: one.topology_assignment.values()
        for one in assigned
        if one.topology_assignment is not None and one.topology_assignment.levels
    }


def _is_within(labels: Mapping[str, str], domains: Domains) -> bool:
    return not domains or any(tuple(labels.get(level, "") for level in levels) in domains[levels] for levels in domains)


def why_not(pod: Pod, flavor: ResourceFlavor) -> str:
    """Why Kueue gives the pod's Workload no quota of a flavor; empty where it may."""
    labels = flavor.spec.node_labels
    tolerations = (*pod.spec.tolerations, *flavor.spec.tolerations)
    taint = Tolerations(tolerations, comparison=True).uncovered(flavor.spec.node_taints, DO_NOT_SCHEDULE)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return f"untolerated taint {taint.key}{value}:{taint.effect}"
    selector = {key: value for key, value in pod.spec.node_selector.items() if key in labels}
    if not compile_selector(LabelSelector(match_labels=selector)).matches(labels) and selector:
        return NO_MATCH
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    terms = [
        NodeSelectorTerm(match_expressions=tuple(one for one in term.match_expressions if one.key in labels))
        for term in (required.node_selector_terms if required is not None else ())
    ]
    if not terms or any(term.is_empty for term in terms):  # a term about other labels can hold with any flavor
        return ""
    matches = compile_node_selector(NodeSelector(node_selector_terms=tuple(terms))).matches(labels, "")
    return "" if matches else NO_MATCH


def as_if_admitted(pod: Pod, flavor: ResourceFlavor, updates: Sequence[PodSetUpdate] = ()) -> Pod:
    """Without Kueue's gates, and with what Kueue and its checks add to a pod; others' gates filter nothing."""
    gates = tuple(one for one in pod.spec.scheduling_gates if not one.name.startswith(f"{api.GROUP}/"))
    selector = {**pod.spec.node_selector, **flavor.spec.node_labels}
    tolerations = (*pod.spec.tolerations, *flavor.spec.tolerations)
    for update in updates:
        selector |= update.node_selector
        tolerations += update.tolerations
    spec = replace(pod.spec, scheduling_gates=gates, node_selector=selector, tolerations=tolerations)
    return replace(pod, spec=spec)

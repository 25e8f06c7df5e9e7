"""What a reader has to know to trust the answer of a finished cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kschedx.errors import InputError
from kschedx.explain.events import contrasts, recorded
from kschedx.explain.missing_kinds import missing_notes
from kschedx.explain.node_groups import account
from kschedx.explain.notes import (
    BoundByHand,
    CapacitySelectorInvalid,
    ClaimClassMissing,
    ClaimResizing,
    ClaimVolumeMissing,
    Consequence,
    CSINodesWithoutNode,
    CycleNote,
    EmptyKind,
    EqualVolumes,
    ExtenderFailed,
    ExtenderNote,
    ExtendersNotAsked,
    FilesLeftOut,
    FinishedPods,
    Gated,
    KeepsAccount,
    MissingKind,
    MixedArchitectures,
    NodesDroppedSilently,
    NodesWithoutCSINode,
    NominatedNodeFirst,
    Note,
    NotMeasured,
    NotReadyNodes,
    OrphanedPods,
    OtherOperatingSystem,
    RecordedEvent,
    Sampling,
    SelectedNodeMissing,
    SelectorRefusal,
    SelectorsRefused,
    SingleFeasibleNode,
    StorageNote,
    Tie,
    UnknownPlugins,
    UnlikelyAmount,
    VolumeBoundElsewhere,
    WholeNodesAnswered,
)
from kschedx.findings import HostPortConflict, InsufficientResource, NodeAffinityMismatch, TooManyPods
from kschedx.framework.cycle import Cycle, Outcome, Stake, UnevaluatedKind, open_stake
from kschedx.framework.extenders import Trace
from kschedx.kube.other_schedulers import NodeResourceTopology
from kschedx.kube.selectors import NodeSelector, compile_selector
from kschedx.kube.storage import RESIZING, PersistentVolume, PersistentVolumeClaim, claim_name, is_bound_to
from kschedx.kube.tolerations import NO_EXECUTE, untolerated
from kschedx.kube.types import Node, Pod
from kschedx.kube.typos import unlikely_quantities
from kschedx.plugins.node_volume_limits.attached import is_counted
from kschedx.releases import Release
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.snapshot import Snapshot

OS_LABEL, ARCH_LABEL = "kubernetes.io/os", "kubernetes.io/arch"

# Notes on amounts that are hardly meant.


def amount_notes(pod: Pod) -> Iterator[UnlikelyAmount]:
    for one in unlikely_quantities(pod.spec):
        yield UnlikelyAmount(
            container=one.container,
            resource=one.resource,
            amount=one.written,
            is_really=one.is_really,
            meant=one.meant,
        )


# Device selectors that the API server would not store, in objects that it has not stored yet.


def device_notes(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[SelectorsRefused]:
    """None for a pod without device claims."""
    if not pod.spec.resource_claims:
        return
    refusals = tuple(_selector_refusals(snapshot, pod, release))
    if refusals:
        yield SelectorsRefused(refusals=refusals)


def _selector_refusals(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[SelectorRefusal]:
    """What has a creation timestamp was admitted, by the API server that it comes from."""
    from kschedx.plugins.dynamic_resources.claims import claim_refusals, class_refusals  # most pods claim no device
    from kschedx.plugins.dynamic_resources.pools import DeviceFeatures

    features = DeviceFeatures.of(release).cel
    for one in snapshot.devices.classes.values():
        if not one.metadata.creation_timestamp:
            for field, told in class_refusals(one, features):
                yield SelectorRefusal(object=f"DeviceClass {one.name}", field=field, error=told)
    for claim in snapshot.devices.claims.values():
        if not claim.metadata.creation_timestamp and claim.metadata.namespace == pod.metadata.namespace:
            for field, told in claim_refusals(claim, features):
                yield SelectorRefusal(object=f"ResourceClaim {claim.key}", field=field, error=told)


# What does not fit together about the storage that a pod uses.


def storage_notes(snapshot: Snapshot, pod: Pod) -> tuple[StorageNote, ...]:
    """In the order of the pod's volumes, then what concerns the cluster; none for a pod without volumes."""
    if not any(map(is_counted, pod.spec.volumes)):
        return ()
    names = [claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes]
    found = [snapshot.storage.claim(pod.metadata.namespace, name) for name in dict.fromkeys(names) if name]
    claims = [claim for claim in found if claim is not None]
    return (
        *_missing_kinds(snapshot, pod, lacks_claims=None in found),
        *(note for claim in claims for note in _claim(snapshot, claim)),
        *_csi_nodes(snapshot),
        *_capacities(snapshot, claims),
    )


def _missing_kinds(snapshot: Snapshot, pod: Pod, *, lacks_claims: bool) -> Iterator[StorageNote]:
    """A dump without a kind looks like a cluster that has none of it, unless it says that it is complete."""
    source = snapshot.source
    if lacks_claims and not source.kinds.get("PersistentVolumeClaim"):
        is_known = source.is_complete("PersistentVolumeClaim", pod.metadata.namespace)
        yield (EmptyKind if is_known else MissingKind)(kind="PersistentVolumeClaim")
    if not source.kinds.get("CSINode"):
        yield (EmptyKind if source.is_complete("CSINode") else MissingKind)(kind="CSINode")


def _claim(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[StorageNote]:
    storage = snapshot.storage
    bound = claim.spec.volume_name
    if bound:
        volume = storage.volumes.get(bound)
        if volume is None:
            yield ClaimVolumeMissing(claim=claim.key, volume=bound)
        elif volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
            other = f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"
            yield VolumeBoundElsewhere(claim=claim.key, volume=bound, other=other)
    elif claim.storage_class and claim.storage_class not in storage.classes:
        yield ClaimClassMissing(claim=claim.key, storage_class=claim.storage_class, known=tuple(storage.classes))
    for one in claim.status.conditions:
        if bound and one.type in RESIZING and one.status == "True":
            size = str(claim.spec.resources.requests.get("storage", ""))
            yield ClaimResizing(claim=claim.key, size=size, condition=one.type, message=one.message)
    selected = claim.selected_node
    if not bound and selected is not None and selected not in snapshot.cluster.index:
        yield SelectedNodeMissing(claim=claim.key, node=selected)
    yield from _equal_volumes(snapshot, claim)


def _equal_volumes(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[StorageNote]:
    """kube-scheduler lists volumes in no order, so equal ones are a matter of chance."""
    storage_class = snapshot.storage.classes.get(claim.storage_class)
    if claim.spec.volume_name or storage_class is None or not storage_class.waits_for_first_consumer:
        return
    from kschedx.plugins.volume_binding.matching import SearchError, VolumeSearch  # most pods have no such claim

    try:
        search = VolumeSearch(claim, snapshot.storage, attributes_classes=True)
    except SearchError:
        return
    by_reach: dict[NodeSelector | None, list[PersistentVolume]] = {}
    for volume in search.fitting:
        by_reach.setdefault(volume.required_node_affinity, []).append(volume)
    for fitting in by_reach.values():
        equal = tuple(volume.name for volume in fitting if volume.size == fitting[0].size)
        if len(equal) > 1 and not search.prebound:
            yield EqualVolumes(claim=claim.key, volumes=equal)
            return


def _csi_nodes(snapshot: Snapshot) -> Iterator[StorageNote]:
    index, csi_nodes = snapshot.cluster.index, snapshot.storage.csi_nodes
    gone = tuple(name for name in csi_nodes if name not in index)
    if gone:
        yield CSINodesWithoutNode(csi_nodes=gone)
    bare = tuple(name for name in index if name not in csi_nodes)
    if bare and csi_nodes:
        yield NodesWithoutCSINode(nodes=bare)


def _capacities(snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim]) -> Iterator[StorageNote]:
    for name in dict.fromkeys(claim.storage_class for claim in claims if not claim.spec.volume_name):
        for capacity in snapshot.storage.capacities_of_class.get(name, ()):
            if capacity.node_topology is None:
                continue
            try:
                compile_selector(capacity.node_topology)
            except InputError as error:
                yield CapacitySelectorInvalid(capacity=capacity.key, error=str(error))


# What a reader has to know of the HTTP extenders of a configuration.


def extender_notes(cycle: Cycle) -> Iterator[ExtenderNote]:
    yield from _not_asked(cycle)
    trace = cycle.extenders
    if trace is not None and trace.called:
        yield from _failures(trace)
        if trace.silent:
            yield NodesDroppedSilently(nodes=tuple(trace.silent))
        yield from _whole(trace)


def _not_asked(cycle: Cycle) -> Iterator[ExtendersNotAsked]:
    """Who would have had a say; the sentence on the screen says it where that leaves the answer open."""
    unasked = [one for one in cycle.unheard if one.kind is UnevaluatedKind.EXTENDER]
    names = tuple(one.name for one in unasked)
    if not unasked:
        return
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        preempts = cycle.post_filter is not None and bool(cycle.post_filter.candidates)
        choosing = tuple(one.name for one in unasked if preempts and "preemptVerb" in one.where)
        yield ExtendersNotAsked(extenders=names, stands=True, choosing_victims=choosing)
    elif cycle.outcome is not Outcome.ERROR and any(one.stake is not Stake.NOTHING for one in unasked):
        yield ExtendersNotAsked(extenders=names, stands=False)


def _failures(trace: Trace) -> Iterator[ExtenderFailed]:
    for filtered in trace.filter:
        if filtered.error:
            then = Consequence.AS_IF_ABSENT if filtered.ignored else Consequence.ENDS_FILTER
            yield _failed(trace, filtered.extender, filtered.error, then)
    for scored in trace.scores:
        if scored.error:
            yield _failed(trace, scored.extender, scored.error, Consequence.NO_SCORES)
    for preempted in trace.preempt:
        if preempted.error:
            then = Consequence.CANDIDATES_STAY if preempted.ignored else Consequence.NO_EVICTION
            yield _failed(trace, preempted.extender, preempted.error, then)


def _failed(trace: Trace, extender: int, error: str, then: Consequence) -> ExtenderFailed:
    return ExtenderFailed(url=trace.urls[extender], extender=extender, error=error, consequence=then)


def _whole(trace: Trace) -> Iterator[WholeNodesAnswered]:
    by = [trace.urls[call.extender] for call in trace.filter if call.whole]
    if by and trace.left is not None and len(trace.left) > 1:
        yield WholeNodesAnswered(extender=by[-1])


# A pod that names its node itself: kube-scheduler never sees it, and the kubelet of that node decides.
#
# Upstream: AdmissionCheck in pkg/scheduler/eventhandlers.go, which pkg/kubelet/lifecycle/predicate.go asks, and whose
# reasons a refused pod gets in its status.


def bound_by_hand(cycle: Cycle) -> BoundByHand | None:
    """What is sure about a pod with spec.nodeName; None for all others."""
    name = cycle.pod.spec.node_name
    if not name:
        return None
    row = cycle.snapshot.cluster.index.get(name)
    if row is None:
        return BoundByHand(node=name, exists=False)
    refusals = dict.fromkeys(_kubelet_refusals(cycle, cycle.snapshot.cluster.nodes[row]))
    return BoundByHand(node=name, exists=True, refusals=tuple(refusals))


def _kubelet_refusals(cycle: Cycle, node: Node) -> Iterator[str]:
    """The reasons that the kubelet would write, in its order."""
    names = [cycle.nodes.name(TableRow(at)) for at in range(len(cycle.nodes))] if cycle.nodes is not None else []
    if cycle.filter is not None and node.name in names:
        findings = account(cycle, TableRow(names.index(node.name))).findings
        for one in findings:
            if isinstance(one, TooManyPods):
                yield "OutOfpods"
            elif isinstance(one, InsufficientResource):
                yield f"OutOf{one.resource}"
        if any(isinstance(one, NodeAffinityMismatch) and one.source != "addedAffinity" for one in findings):
            yield "NodeAffinity"
        if any(isinstance(one, HostPortConflict) for one in findings):
            yield "NodePorts"
    comparison = cycle.release.enabled("TaintTolerationComparisonOperators")
    tolerations = cycle.pod.spec.tolerations
    if untolerated(node.spec.taints, tolerations, effects=(NO_EXECUTE,), comparison=comparison) is not None:
        yield "TaintToleration"


MIN_FEASIBLE_NODES = 100
"""kube-scheduler evaluates every node of a cluster that is smaller than this."""
_OF_READINESS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MIN_PERCENTAGE = 5


def nodes_to_find(percentage: int | None, count: int) -> int:
    """How many feasible nodes end kube-scheduler's search (numFeasibleNodesToFind in pkg/scheduler/schedule_one.go).

    `percentage` is percentageOfNodesToScore; 0 or None adapts to the cluster's size.
    """
    if count < MIN_FEASIBLE_NODES:
        return count
    share = percentage or max(50 - count // 125, MIN_PERCENTAGE)
    return max(count * share // 100, MIN_FEASIBLE_NODES)


def notes(cycle: Cycle) -> tuple[Note, ...]:
    """In the order in which a reader needs them."""
    return (
        *_of_scheduler(cycle),
        *_of_recorded_event(cycle),
        *_of_cluster(cycle.snapshot),
        *_of_course(cycle),
        *_of_extenders(cycle),
        *missing_notes(cycle),
        *storage_notes(cycle.snapshot, cycle.pod),
        *device_notes(cycle.snapshot, cycle.pod, cycle.release),
    )


NUMA = "NodeResourceTopologyMatch"
ACCOUNTS = ("cacheResyncPeriodSeconds", "discardReservedNodes")
"""Its settings by which it remembers."""


def _accounts(cycle: Cycle) -> Iterator[CycleNote]:
    args = cycle.profile.args.get(NUMA)
    if NUMA in cycle.profile.points.get("filter", ()) and isinstance(args, Mapping):
        settings = [name for name in ACCOUNTS if args.get(name)]
        if settings and any(cycle.snapshot.of(NodeResourceTopology)):
            yield KeepsAccount(plugin=NUMA, setting=settings[-1])


def _of_scheduler(cycle: Cycle) -> Iterator[CycleNote]:
    left_out = tuple(one for one in cycle.unheard if one.kind is UnevaluatedKind.PLUGIN)
    if left_out:
        settled = cycle.has_no_choice and open_stake(cycle.unheard) is not Stake.FIT
        rejected = cycle.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR)
        yield UnknownPlugins(left_out=left_out, stands=rejected or settled)
    yield from _accounts(cycle)
    if not cycle.release.is_measured:
        yield NotMeasured(version=cycle.release.version)


def _of_recorded_event(cycle: Cycle) -> Iterator[RecordedEvent]:
    theirs = recorded(cycle.snapshot, cycle.pod)
    if theirs is not None:
        held = (status.message for status in cycle.pre_enqueue if not status.is_success)
        ours = theirs.message if cycle.outcome is Outcome.GATED and theirs.message in held else cycle.message
        yield RecordedEvent(
            message=theirs.message,
            count=theirs.count,
            last_seen=theirs.last_seen,
            contrasts=contrasts(theirs, ours, nominated=bool(cycle.pod.status.nominated_node_name)),
        )


def _of_cluster(snapshot: Snapshot) -> Iterator[Note]:
    """What was left out of the cluster that was read, and what counts for too much."""
    pods, orphans = snapshot.pods, snapshot.orphans
    if orphans:
        nodes = tuple(dict.fromkeys(pods.node_names[row] for row in orphans))
        yield OrphanedPods(pods=tuple(pods.key(row) for row in orphans), nodes=nodes)
    if snapshot.source.left_out:
        yield FilesLeftOut(files=tuple(snapshot.source.left_out))
    finished = _finished_pods(snapshot)
    if finished:
        yield FinishedPods(pods=finished)


def _finished_pods(snapshot: Snapshot) -> int:
    """How many pods that have finished, and no API server has stored, count on nodes: some releases do that."""
    pods = snapshot.pods
    if not pods.counts_finished:
        return 0
    return int(np.count_nonzero(pods.finished_unstored & (pods.node >= 0)))


def _of_course(cycle: Cycle) -> Iterator[CycleNote]:
    """Which nodes were evaluated, and how one of them is chosen."""
    feasible = cycle.feasible
    if cycle.outcome is Outcome.GATED:
        gates = tuple(gate.name for gate in cycle.pod.spec.scheduling_gates)
        held = (status.plugin for status in cycle.pre_enqueue if not (status.is_success or status.is_skip))
        yield Gated(gates=gates or (next(held, ""),))
    if (bound := bound_by_hand(cycle)) is not None:
        yield bound
    elif cycle.nominated is not None:
        yield NominatedNodeFirst(node=cycle.pod.status.nominated_node_name)
    elif cycle.nodes is not None and feasible is not None and len(feasible):
        wanted = nodes_to_find(cycle.profile.percentage_of_nodes_to_score, len(cycle.nodes))
        if len(feasible) > wanted:
            yield Sampling(nodes_to_find=wanted, feasible=len(feasible))
        if len(feasible) == 1 and not cycle.release.behaviour.single_node_is_scored:
            yield SingleFeasibleNode()
    if len(cycle.choice) > 1:
        names = cycle.all_nodes.cluster.names
        tied = tuple(names[row] for row in cycle.choice)
        yield Tie(nodes=tied, takes_turns=cycle.release.behaviour.best_nodes_take_turns)
    nodes = cycle.all_nodes.cluster.nodes
    unready = tuple(nodes[row].name for row in cycle.choice if _is_untainted_though_not_ready(nodes[row]))
    if unready:
        yield NotReadyNodes(nodes=unready)
    yield from _of_platform(cycle)


def _of_platform(cycle: Cycle) -> Iterator[CycleNote]:
    """What kube-scheduler leaves to the kubelet: operating system and architecture."""
    nodes, os = cycle.all_nodes.cluster, cycle.pod.spec.os
    for row in cycle.choice[:1] if os is not None and os.name else ():
        actual = nodes.nodes[row].metadata.labels.get(OS_LABEL, os.name if os else "")
        if os is not None and actual != os.name:
            yield OtherOperatingSystem(node=nodes.names[row], wanted=os.name, actual=actual)
    if cycle.feasible is not None and cycle.nodes is not None and len(cycle.choice):
        column = nodes.label(ARCH_LABEL)
        rows = {int(column.codes[cycle.nodes.cluster_row(row)]) for row in cycle.feasible}
        found = sorted(value for code in rows if (value := column.values[code]) is not None)
        if len(found) > 1:
            yield MixedArchitectures(architectures=tuple(found))


def _is_untainted_though_not_ready(node: Node) -> bool:
    """Its kubelet reports nothing or NotReady, and the taint for it is missing."""
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "True")
    return ready != "True" and not any(taint.key in _OF_READINESS for taint in node.spec.taints)


def _of_extenders(cycle: Cycle) -> Iterator[Note]:
    if cycle.extenders is None:
        return
    # moved  # most configurations have none

    yield from extender_notes(cycle)

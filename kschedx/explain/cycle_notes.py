"""Notes on how far to trust the answer of a finished cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from kschedx.errors import InputError, nearest
from kschedx.explain.events import contrasts, parse, recorded_event
from kschedx.explain.kubelet import ARCH_LABEL, OS_LABEL, bound_by_hand, start_obstacle
from kschedx.explain.missing_kinds import missing_notes
from kschedx.explain.notes import Note, note, unknown_plugins
from kschedx.explain.ranking import joined_later
from kschedx.framework.cycle import Cycle, Outcome, Stake, UnevaluatedKind, open_stake
from kschedx.framework.extenders import Trace
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import OF_OBJECTS
from kschedx.kube.conditions import reports_ready
from kschedx.kube.devices import ADMIN_ACCESS_LABEL, ResourceClaim
from kschedx.kube.kubectl import add_to_dump
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.other_schedulers import NodeResourceTopology
from kschedx.kube.scalars import elapsed
from kschedx.kube.selectors import compile_selector
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, is_bound_to, own_claims
from kschedx.kube.tolerations import stay_seconds
from kschedx.kube.types import LOST_TAINTS, Node, Pod, PodSpec
from kschedx.kube.typos import unlikely_quantities
from kschedx.plugins.node_volume_limits.attachments import is_counted
from kschedx.releases import Release
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

RECORDED = "recorded-event"  # the id of the note about the event that the cluster's own kube-scheduler wrote
CANNOT_START = "cannot-start"  # the id of the note about a node of the choice on which the pod cannot start
_SHOWN_OBJECTS = 3
_RESIZING = ("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError")
"""Conditions of a claim whose volume is being expanded."""


def amount_notes(pod: Pod) -> Iterator[Note]:
    for quantity in unlikely_quantities(pod.spec):
        if quantity.resource == "cpu":
            really = f"{quantity.is_really:,} processors"
        else:
            really = f"{quantity.is_really:,} bytes" if quantity.is_really else "less than a byte"
        text = f"container {quantity.container}: {quantity.written} of {quantity.resource} is {really}"
        yield note(
            "unlikely-amount",
            f"{text}: did you mean {quantity.meant}?",
            container=quantity.container,
            resource=quantity.resource,
            amount=quantity.written,
            meant=quantity.meant,
        )


FIELDS_OF_GATES: Sequence[tuple[str, str, Callable[[PodSpec], object]]] = (
    ("spec.schedulingGates", "PodSchedulingReadiness", lambda it: it.scheduling_gates),
    ("spec.resourceClaims", "DynamicResourceAllocation", lambda it: it.resource_claims),
    ("spec.resources", "PodLevelResources", lambda it: it.resources),
    (
        "restartPolicy of init containers",
        "SidecarContainers",
        lambda it: any(container.is_restartable_init for container in it.init_containers),
    ),
    (
        "minDomains",
        "MinDomainsInPodTopologySpread",
        lambda it: any(rule.min_domains for rule in it.topology_spread_constraints),
    ),
    (
        "matchLabelKeys",
        "MatchLabelKeysInPodTopologySpread",
        lambda it: any(rule.match_label_keys for rule in it.topology_spread_constraints),
    ),
    (
        "matchLabelKeys of pod affinity",
        "MatchLabelKeysInPodAffinity",
        lambda it: it.affinity is not None and any(term.match_label_keys for term in it.affinity.pod_terms),
    ),
    (
        "Gt and Lt of tolerations",
        "TaintTolerationComparisonOperators",
        lambda it: any(toleration.operator in ("Gt", "Lt") for toleration in it.tolerations),
    ),
)
"""Fields of a pod that an API server drops while a feature gate is off, the gate, and whether a pod has the field."""


def ignored_fields(pod: Pod, release: Release) -> Iterator[Note]:
    """Yield the fields of a pod that an API server drops, because their feature gates are off."""
    for field, gate, is_used in FIELDS_OF_GATES:
        if not release.enabled(gate) and is_used(pod.spec):
            text = f"{field}: ignored, because feature gate {gate} is off in Kubernetes {release.version}"
            yield note("ignored-field", text, field=field, gate=gate)


# New device claims and classes that the API server would refuse.

_ADMIN_ACCESS = f"adminAccess: admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the namespace"
"""AuthorizedForAdmin (pkg/registry/resource/utils.go); in 1.33, the label is in the domain resource.k8s.io."""


def _device_notes(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[Note]:
    """Yield nothing for a pod without device claims."""
    if not pod.spec.resource_claims:
        return
    rules = [rule.metadata.name for rule in snapshot.devices.taint_rules]
    if rules and release.enabled("DRADeviceTaints") and not release.gates.get("DRADeviceTaintRules", True):
        names = list_names(rules, _SHOWN_OBJECTS)
        are = "DeviceTaintRule {} is" if len(rules) == 1 else "DeviceTaintRules {} are"
        yield note("taint-rules-ignored", f"{are.format(names)} ignored: feature gate DRADeviceTaintRules is off")
    is_tainted = any(device.taints for item in snapshot.devices.slices for device in item.spec.devices)
    if is_tainted and release.gates.get("DRADeviceTaints") is False:
        yield note("taint-rules-ignored", "taints of devices are ignored: feature gate DRADeviceTaints is off")
    refusals = list(_device_refusals(snapshot, pod, release))
    if refusals:
        others = f"; and {len(refusals) - _SHOWN_OBJECTS} more" if len(refusals) > _SHOWN_OBJECTS else ""
        yield note("selector-refused", f"the API server refuses {'; '.join(refusals[:_SHOWN_OBJECTS])}{others}")


def _device_refusals(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[str]:
    """Yield the API server's errors. Objects with a creation timestamp were admitted before."""
    from kschedx.plugins.dynamic_resources.claims import class_refusals  # most pods have no device claims
    from kschedx.plugins.dynamic_resources.pools import DeviceFeatures

    features = DeviceFeatures.of(release).cel
    for device_class in snapshot.devices.classes.values():
        if not device_class.metadata.creation_timestamp:
            for field, phrase in class_refusals(device_class, features):
                yield f"DeviceClass {device_class.name}: {field}: {phrase.splitlines()[0]}"
    for claim in snapshot.devices.claims.values():
        if not claim.metadata.creation_timestamp and claim.metadata.namespace == pod.metadata.namespace:
            yield from (
                f"ResourceClaim {claim.key}: {text}" for text in device_claim_refusals(snapshot, claim, release)
            )


def device_claim_refusals(snapshot: Snapshot, claim: ResourceClaim, release: Release) -> Iterator[str]:
    """Yield the API server's errors about a new claim."""
    from kschedx.plugins.dynamic_resources.claims import claim_refusals
    from kschedx.plugins.dynamic_resources.pools import DeviceFeatures

    for field, phrase in claim_refusals(claim, DeviceFeatures.of(release).cel):
        yield f"{field}: {phrase.splitlines()[0]}"
    labels = snapshot.namespaces.get(claim.metadata.namespace)
    if labels is None or labels.get(ADMIN_ACCESS_LABEL) == "true" or not release.enabled("DRAAdminAccess"):
        return
    for number, request in enumerate(claim.spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            yield f"spec.devices.requests[{number}].exactly.{_ADMIN_ACCESS}"


# Inconsistencies of the storage that a pod uses.


def storage_notes(snapshot: Snapshot, pod: Pod) -> tuple[Note, ...]:
    """Return notes in the order of the pod's volumes, then about the cluster; none for a pod without volumes."""
    if not any(map(is_counted, pod.spec.volumes)):
        return ()
    claims = [*snapshot.storage.claims_of(pod)]
    return (
        *_missing_kinds(snapshot, pod, lacks_claims=len(claims) < len(own_claims(pod))),
        *(note for claim in claims for note in _claim(snapshot, claim)),
        *_csi_nodes(snapshot),
        *_left_data(snapshot, claims),
        *_capacities(snapshot, claims),
    )


def _missing_kinds(snapshot: Snapshot, pod: Pod, *, lacks_claims: bool) -> Iterator[Note]:
    """A dump without a kind looks like a cluster without its objects, unless the dump says that it is complete."""
    source = snapshot.source
    if lacks_claims and not source.kinds.get("PersistentVolumeClaim"):
        if source.is_complete("PersistentVolumeClaim", pod.metadata.namespace):
            yield note("empty-kind", "the cluster has no PersistentVolumeClaims, so those of the pod do not exist")
        else:
            yield note("missing-kind", "the snapshot has no PersistentVolumeClaims: the dump may lack them")
    if not source.kinds.get("CSINode"):
        if source.is_complete("CSINode"):
            yield note("empty-kind", "the cluster has no CSINodes: kube-scheduler applies no volume limit")
        else:
            yield note("missing-kind", "the snapshot has no CSINodes: no volume limit is applied")


def _claim(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[Note]:
    storage, key = snapshot.storage, claim.key
    bound = claim.spec.volume_name
    if bound:
        volume = storage.volumes.get(bound)
        if volume is None and not snapshot.source.may_lack("PersistentVolume"):
            text = f'claim {key} names volume "{bound}", which does not exist: pods that use it stay pending'
            yield note("claim-volume-missing", text)
        elif volume and claim.is_fully_bound and volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
            other = volume.spec.claim_ref.key
            whose = f"claim {other}" if other != key else "an earlier claim of that name (with another uid)"
            yield note(
                "volume-bound-elsewhere",
                f"claim {key} names volume {bound}, but the volume names {whose}: kube-scheduler trusts the claim; "
                "the volume controller will set the claim to Lost",
            )
    elif (
        claim.storage_class
        and claim.storage_class not in storage.classes
        and not snapshot.source.may_lack("StorageClass")
    ):
        hint = nearest(claim.storage_class, tuple(storage.classes))
        yield note(
            "claim-class-missing",
            f'claim {key} names storage class "{claim.storage_class}", which does not exist'
            f"{f' ({hint})' if hint else ''}: kube-scheduler waits until the claim is bound",
        )
    storage_class = storage.classes.get(claim.storage_class)
    if not bound and storage.waits(claim) and storage_class is not None and storage_class.refuses_modes(claim):
        yield note(
            "access-mode-refused",
            f"claim {key} requests ReadWriteMany, which {storage_class.provisioner} does not provide for file systems: "
            "it will not provision the volume, and the pod stays pending",
        )
    size = str(claim.spec.resources.requests.get("storage", ""))
    for kind, text in claim_expansions(claim) if bound else ():
        yield note("claim-resizing", f"claim {key} {text}", claim=key, size=size, condition=kind)
    yield from _equal_volumes(snapshot, claim)


def claim_expansions(claim: PersistentVolumeClaim) -> Iterator[tuple[str, str]]:
    """Yield the conditions of a claim about its expansion, each with a text: `is being expanded to 20Gi, Resizing`."""
    size = claim.spec.resources.requests.get("storage", "")
    for condition in claim.status.conditions:
        if condition.type in _RESIZING and condition.status == "True":
            is_mounted = condition.type != "FileSystemResizePending"
            message = condition.message or ("" if is_mounted else "its file system grows when a pod mounts it again")
            yield condition.type, f"is being expanded to {size}, {condition.type}{message and f': {message}'}"


def _equal_volumes(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[Note]:
    """kube-scheduler lists volumes in random order, so the choice among equal ones is random."""
    if claim.spec.volume_name or not snapshot.storage.waits(claim):
        return
    from kschedx.plugins.volume_binding.matching import SearchError, VolumeSearch

    try:
        search = VolumeSearch(claim, snapshot.storage, attributes_classes=True)
    except SearchError:
        return
    by_reach = group_pairs((volume.required_node_affinity, volume) for volume in search.fitting_volumes)
    for fitting in by_reach.values():
        equal = tuple(volume.name for volume in fitting if volume.size == fitting[0].size)
        if len(equal) > 1 and not search.prebound:
            names = list_names(equal, _SHOWN_OBJECTS)
            yield note(
                "equal-volumes",
                f"{len(equal):,} volumes of equal size fit claim {claim.key} ({names}): "
                "kube-scheduler may bind any of them",
            )
            return


def _unplaced_notes(cycle: Cycle) -> Iterator[Note]:
    """Yield what lets kube-scheduler choose before a driver, if the driver may choose a place without a node."""
    for unevaluated in cycle.unevaluated:
        if unevaluated.kind is UnevaluatedKind.VOLUME and unevaluated.stake is Stake.FIT and unevaluated.objects:
            name = cycle.snapshot.storage.claims[unevaluated.name].storage_class
            text = (
                f"class {name} binds claim {unevaluated.name} before kube-scheduler selects a node (Immediate); "
                "with a class of volumeBindingMode WaitForFirstConsumer, the volume follows the pod"
            )
            yield note("volume-before-node", text, claim=unevaluated.name, storage_class=name)


def released_volume(claim: str, snapshot: Snapshot) -> PersistentVolume | None:
    """Return the volume that a deleted claim of this name, `namespace/name`, has left with its data."""
    there = snapshot.storage.claims.get(claim)
    for volume in snapshot.storage.volumes.values():
        holder = volume.spec.claim_ref
        if holder is None or volume.status.phase != "Released" or holder.key != claim:
            continue
        if there is None or (holder.uid and there.metadata.uid != holder.uid):
            return volume
    return None


def _left_data(snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim]) -> Iterator[Note]:
    for claim in claims:
        storage_class = snapshot.storage.classes.get(claim.storage_class)
        if claim.spec.volume_name or storage_class is None or not storage_class.can_provision:
            continue
        if (volume := released_volume(claim.key, snapshot)) is not None:
            text = f"claim {claim.key} gets another volume: the data of an earlier claim of that name is on"
            yield note("data-on-released-volume", f"{text} {volume.name} (Released)")


def _csi_nodes(snapshot: Snapshot) -> Iterator[Note]:
    index, csi_nodes = snapshot.cluster.index, snapshot.storage.csi_nodes
    gone = tuple(name for name in csi_nodes if name not in index)
    if gone:
        named = f"{count(len(gone), 'CSINode')} without a node ({list_names(gone, _SHOWN_OBJECTS)})"
        yield note("csi-node-without-node", f"{named}: ignored by kube-scheduler")
    bare = tuple(name for name in index if name not in csi_nodes)
    if bare and csi_nodes:
        named = f"{count(len(bare), 'node')} without a CSINode ({list_names(bare, _SHOWN_OBJECTS)})"
        yield note("node-without-csi-node", f"{named}: kube-scheduler applies no volume limit there")


def _capacities(snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim]) -> Iterator[Note]:
    for name in dict.fromkeys(claim.storage_class for claim in claims if not claim.spec.volume_name):
        for capacity in snapshot.storage.capacities_of_class.get(name, ()):
            if capacity.node_topology is None:
                continue
            try:
                compile_selector(capacity.node_topology)
            except InputError as error:
                yield note(
                    "capacity-selector-invalid",
                    f"CSIStorageCapacity {capacity.key} has an invalid nodeTopology ({error}): kube-scheduler treats "
                    "it as accessible from no node",
                )


def _extender_notes(cycle: Cycle) -> Iterator[Note]:
    trace = cycle.extenders
    if trace is None:
        return
    yield from _unasked_extender_notes(cycle)
    if trace.called:
        for filtered in trace.filter:
            if filtered.error:
                then = "kube-scheduler ignores it (ignorable)" if filtered.ignored else "the attempt ends"
                yield _failure_note(trace, filtered.extender, filtered.error, then)
        for scored in trace.scores:
            if scored.error:
                yield _failure_note(trace, scored.extender, scored.error, "gives no scores")
        for preempted in trace.preempt:
            if preempted.error:
                kept = "kube-scheduler keeps the candidates (ignorable)"
                then = kept if preempted.ignored else "no pod is evicted"
                yield _failure_note(trace, preempted.extender, preempted.error, then)
        if trace.silent:
            omitted = count(len(trace.silent), "node")
            text = f"extenders omitted {omitted} without a reason: kube-scheduler counts such nodes under no reason"
            yield note("extender-silent", text, nodes=tuple(trace.silent))
        if trace.whole is not None and trace.left is not None and len(trace.left) > 1:
            by = trace.urls[trace.whole]
            yield note(
                "extender-whole-nodes",
                f"{by} returns whole nodes: score plugins then see them without pods and images "
                "(kubernetes/kubernetes issue 141781)",
                extender=by,
            )


def _unasked_extender_notes(cycle: Cycle) -> Iterator[Note]:
    """Extenders that were not called; the note says so if that leaves the answer open."""
    unasked = [unevaluated for unevaluated in cycle.unevaluated if unevaluated.kind is UnevaluatedKind.EXTENDER]
    names = tuple(unevaluated.name for unevaluated in unasked)
    if not unasked:
        return
    phrase = f"the extender at {', '.join(names)} was not called"
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        preempts = cycle.post_filter is not None and bool(cycle.post_filter.candidates)
        choosing = ", ".join(it.name for it in unasked if preempts and "preemptVerb" in it.where)
        victims = f"; {choosing} may select other pods to evict" if choosing else ""
        text = f"{phrase}: the answer does not depend on it{victims}"
    elif cycle.outcome is not Outcome.ERROR and any(unevaluated.stake is not Stake.NOTHING for unevaluated in unasked):
        text = f"{phrase}: --extenders call calls it from this machine; --extenders FILE reads its answers"
    else:
        return
    yield note("extender-not-asked", text, extenders=names)


def _failure_note(trace: Trace, extender: int, error: str, then: str) -> Note:
    """`extender` is its index in the configuration."""
    text = f"the extender at {trace.urls[extender]} failed and {then}: {error}"
    return note("extender-failed", text, extender=extender, error=error)


_MIN_FEASIBLE_NODES = 100  # kube-scheduler evaluates all nodes of a smaller cluster
_MIN_PERCENTAGE = 5


def _nodes_to_find(percentage: int | None, count: int) -> int:
    """Return how many feasible nodes end kube-scheduler's search (numFeasibleNodesToFind in
    pkg/scheduler/schedule_one.go). `percentage` is percentageOfNodesToScore; 0 or None adapts to the cluster's size."""
    if count < _MIN_FEASIBLE_NODES:
        return count
    share = percentage or max(50 - count // 125, _MIN_PERCENTAGE)
    return max(count * share // 100, _MIN_FEASIBLE_NODES)


def notes(cycle: Cycle) -> tuple[Note, ...]:
    """Return the notes, the most important first."""
    return (
        *_device_notes(cycle.snapshot, cycle.pod, cycle.release),
        *_scheduler_notes(cycle),
        *_event_notes(cycle),
        *_untried_note(cycle),
        *_cluster_notes(cycle.snapshot),
        *_course_notes(cycle),
        *_extender_notes(cycle),
        *missing_notes(cycle),
        *storage_notes(cycle.snapshot, cycle.pod),
        *_unplaced_notes(cycle),
    )


_NUMA = "NodeResourceTopologyMatch"
_ACCOUNTS = ("cacheResyncPeriodSeconds", "discardReservedNodes")
"""Arguments for which the plugin keeps state between cycles."""


def _scheduler_notes(cycle: Cycle) -> Iterator[Note]:
    left_out = tuple(unevaluated for unevaluated in cycle.unevaluated if unevaluated.kind is UnevaluatedKind.PLUGIN)
    if left_out:
        settled = cycle.has_no_choice and open_stake(cycle.unevaluated) is not Stake.FIT
        rejected = cycle.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR)
        yield unknown_plugins(left_out, stands=rejected or settled)
    args = cycle.profile.args.get(_NUMA)
    if _NUMA in cycle.profile.points.get("filter", ()) and isinstance(args, Mapping):
        settings = [name for name in _ACCOUNTS if args.get(name)]
        if settings and any(cycle.snapshot.of(NodeResourceTopology)):
            yield note(
                "plugin-keeps-account",
                f"{_NUMA} also reserves resources in its own cache ({settings[-1]}) until a node reports again; "
                "no snapshot holds that",
                plugin=_NUMA,
                setting=settings[-1],
            )
    marks = {**cycle.pod.metadata.annotations, **cycle.pod.metadata.labels}
    group, name = next((marks[key] for key in OF_OBJECTS if marks.get(key)), ""), cycle.pod.spec.scheduler_name
    if group and name == DEFAULT_SCHEDULER:
        text = f"PodGroup {group} has no effect with schedulerName {name}: each pod is scheduled alone"
        yield note("group-of-another-scheduler", text, group=group)
    if not cycle.release.is_measured:
        yield note(
            "not-measured",
            "published, not measured: kschedx uses what is published about kube-scheduler "
            f"{cycle.release.version}, and otherwise the rules of 1.36",
        )


def _event_notes(cycle: Cycle) -> Iterator[Note]:
    event = recorded_event(cycle.snapshot, cycle.pod)
    is_unevaluated = cycle.outcome is Outcome.UNSCHEDULABLE and not cycle.message
    if event is None or is_unevaluated or cycle.snapshot.source.may_lack("Node"):
        return
    if cycle.outcome is Outcome.UNSCHEDULABLE and (lacking := _lacking_nodes(cycle.snapshot, event)) is not None:
        yield lacking
    else:
        held = (status.message for status in cycle.pre_enqueue if not status.is_success)
        ours = event.message if cycle.outcome is Outcome.GATED and event.message in held else cycle.message
        different = contrasts(event, ours, nominated=bool(cycle.pod.status.nominated_node_name))
        whole, dot, _ = event.last_seen.partition(".")
        whole += "Z" if dot else ""
        times = f", {event.count:,} times" if event.count > 1 else ""
        seen = f" (last seen {whole}{times})" if event.last_seen else ""
        chosen = (cycle.all_nodes.cluster.nodes[row] for row in cycle.choice)
        if not ours and (joined := joined_later(chosen, whole)):
            different = (f"kschedx finds a node: {list_names(joined, _SHOWN_OBJECTS)} joined after the event",)
        elif not ours and (left_out := [it for it in cycle.unevaluated if it.kind is UnevaluatedKind.OBJECTS]):
            readers = {plugin for unevaluated in left_out for plugin in unevaluated.where}
            reasons = {part.reason for part in parse(event.message).parts if part.plugin in readers and part.reason}
            about = f"; about its cause: kschedx reason {reasons.pop()}" if len(reasons) == 1 else ""
            different = (f"kschedx finds a node without what the dump lacks{about}",)
        differs = f"differs: {'; '.join(different)}" if different else "is the same"
        when = {"count": event.count, "last_seen": event.last_seen} if event.last_seen else {}
        yield note(
            RECORDED, f"the recorded event{seen} {differs}", message=event.message, differences=different, **when
        )


LACKS_NODES = "lacks-nodes"
"""The id of the note about a dump that lacks a part of the nodes that kube-scheduler's event counts."""


def _lacking_nodes(snapshot: Snapshot, event: RecordedEvent) -> Note | None:
    """Return how many of the event's nodes a dump has, if it lacks some: pods run there, or it has less than half."""
    counted, known = parse(event.message).nodes or 0, len(snapshot.cluster.nodes)
    pods = snapshot.pods
    if not snapshot.source.is_dump or counted <= known:
        return None
    if 2 * known >= counted and not any(snapshot.left_out_node(pods[row]) for row in snapshot.orphans):
        return None
    text = f"the dump has {known:,} of the {counted:,} nodes that kube-scheduler's event counts"
    return note(LACKS_NODES, f"{text}: {add_to_dump('Node')}", message=event.message, counted=counted, known=known)


def _untried_note(cycle: Cycle) -> Iterator[Note]:
    """Yield that a pending pod which fits bears no trace of kube-scheduler: it may not run, or not see the pod."""
    minutes = untried_minutes(cycle.snapshot, cycle.pod) if cycle.outcome is Outcome.SCHEDULED else 0
    if minutes:
        yield note(UNTRIED, untried_text("the pod", minutes), minutes=minutes)


def untried_text(pods: str, minutes: int) -> str:
    text = f"no condition or event shows that kube-scheduler has tried {pods} in {minutes:,} minutes"
    return f"{text}: check that it runs"


def untried_minutes(snapshot: Snapshot, pod: Pod) -> int:
    """Return how long a pending pod bears no trace of kube-scheduler; 0 if it bears one, or if that is still normal."""
    row, created = snapshot.pods.rows.get(pod.key), pod.metadata.creation_timestamp
    if row is None or not created or pod.metadata.deletion_timestamp:
        return 0
    if snapshot.pods.node_names[row] or pod.key in snapshot.assigned:
        return 0
    if pod.status.conditions or pod.status.nominated_node_name or recorded_event(snapshot, pod) is not None:
        return 0
    minutes = (elapsed(created, snapshot.taken) or 0) // _MINUTE
    return minutes if minutes >= _UNTRIED_AFTER else 0


UNTRIED = "untried"  # the id of the note about a pending pod without a trace of kube-scheduler
_MINUTE = 60 * 10**9
_UNTRIED_AFTER = 5
"""Minutes after which kube-scheduler tries an unschedulable pod again
(podMaxInUnschedulablePodsDuration in pkg/scheduler/backend/queue)."""


def _cluster_notes(snapshot: Snapshot) -> Iterator[Note]:
    """Yield what is missing in the snapshot, and what counts too much."""
    pods, orphans = snapshot.pods, snapshot.orphans
    if orphans and not snapshot.source.may_lack("Node"):
        nodes = tuple(dict.fromkeys(pods.node_names[row] for row in orphans))
        run, are = ("runs", "is") if len(orphans) == 1 else ("run", "are")
        left_out = any(snapshot.left_out_node(pods[row]) for row in orphans)
        gone = "that the dump does not hold" if left_out else "that do not exist"
        where = f"{run} on nodes {gone} and {are} ignored: {list_names(nodes, _SHOWN_OBJECTS)}"
        keys = tuple(pods.key(row) for row in orphans)
        yield note("orphans", f"{count(len(orphans), 'pod')} {where}", pods=keys, nodes=nodes)
    if files := tuple(snapshot.source.left_out):
        text = f"ignored, no Kubernetes objects in it: {list_names(files, _SHOWN_OBJECTS)}"
        yield note("left-out", text, files=files)
    finished = _finished_pods(snapshot)
    if finished:
        text = f"{finished:,} finished pods count on their nodes: remove them from the input, as the API server does"
        yield note("finished-pods", text, pods=finished)


def _finished_pods(snapshot: Snapshot) -> int:
    """Count the finished pods, not stored by an API server, that count on nodes: some versions do that."""
    pods = snapshot.pods
    if not pods.counts_finished:
        return 0
    return int(np.count_nonzero(pods.finished_unstored & (pods.node >= 0)))


def _course_notes(cycle: Cycle) -> Iterator[Note]:
    """Yield which nodes were evaluated, and how one of them is chosen."""
    feasible = cycle.feasible
    if cycle.outcome is Outcome.GATED:
        gates = tuple(gate.name for gate in cycle.pod.spec.scheduling_gates)
        held = (status.plugin for status in cycle.pre_enqueue if not (status.is_success or status.is_skip))
        by = ", ".join(gates or (next(held, ""),))
        yield note("gated", f"gated by {by}: the rest is evaluated as if the gates were removed")
    if (bound := bound_by_hand(cycle)) is not None:
        yield note("bound-by-hand", bound.text)
    elif cycle.nominated is not None:
        node = cycle.pod.status.nominated_node_name
        yield note("nominated-node-first", f"kube-scheduler tries the nominated node {node} first, and it fits")
    elif cycle.nodes is not None and feasible is not None and len(feasible):
        wanted = _nodes_to_find(cycle.profile.percentage_of_nodes_to_score, len(cycle.nodes))
        if len(feasible) > wanted:
            sampled = f"kube-scheduler samples {wanted:,} of {len(feasible):,} feasible nodes"
            text = f"{sampled}; kschedx evaluated all of them"
            yield note("sampling", text, nodes_to_find=wanted, feasible=len(feasible))
        if len(feasible) == 1 and not cycle.release.behavior.single_node_is_scored:
            text = "one node is feasible: kube-scheduler selects it without scoring"
            yield note("single-feasible-node", text)
    if len(cycle.choice) > 1:
        names = cycle.all_nodes.cluster.names
        tied = tuple(names[row] for row in cycle.choice)
        takes_turns = cycle.release.behavior.best_nodes_take_turns
        how = "alternates between them" if takes_turns else "selects one at random"
        yield note("tie", f"{len(tied):,} nodes have the highest score: kube-scheduler {how}", nodes=tied)
    nodes = cycle.all_nodes.cluster.nodes
    unready = tuple(nodes[row].name for row in cycle.choice if _is_untainted_though_not_ready(nodes[row]))
    if unready:
        named = f"{unready[0]} is" if len(unready) == 1 else f"{list_names(unready, 2)} are"
        text = f"{named} not ready but not tainted: kube-scheduler checks only taints"
        yield note("not-ready-node", text, nodes=unready)
    compares = cycle.release.compares_taints
    given = cycle.pod.spec.tolerations
    stays = [stay_seconds(nodes[row].spec.taints, given, comparison=compares) for row in cycle.choice]
    limits = [seconds for seconds in stays if seconds is not None]
    if limits and len(limits) == len(stays):
        text = f"the pod is evicted after {min(limits)} s (tolerationSeconds), because of a NoExecute taint of its node"
        yield note("limited-stay", text, seconds=min(limits))
    yield from _platform_notes(cycle)


def _platform_notes(cycle: Cycle) -> Iterator[Note]:
    """Yield what kube-scheduler leaves to the kubelet: operating system, drivers, and architecture."""
    nodes = cycle.all_nodes.cluster
    for row in cycle.choice:
        name = nodes.names[row]
        if (obstacle := start_obstacle(cycle.snapshot, cycle.pod, name)) is not None:
            yield note(CANNOT_START, f"on {name}, it cannot start: {obstacle.why}", node=name)
            break
    if cycle.feasible is not None and cycle.nodes is not None and len(cycle.choice):
        for label, kind in ((OS_LABEL, "systems"), (ARCH_LABEL, "architectures")):
            column = nodes.label(label)
            rows = {int(column.codes[cycle.nodes.cluster_row(row)]) for row in cycle.feasible}
            values = sorted(value for code in rows if (value := column.values[code]) is not None)
            if len(values) > 1:
                fit = f"the nodes that fit are {list_names(values, 4)}"
                text = f"{fit}: an image built for one of them alone fails on the others"
                yield note(f"mixed-{kind}", text, **{kind: tuple(values)})


def _is_untainted_though_not_ready(node: Node) -> bool:
    """Return whether the node is not ready but lacks the taint for it."""
    return not reports_ready(node.status.conditions) and not any(taint.key in LOST_TAINTS for taint in node.spec.taints)

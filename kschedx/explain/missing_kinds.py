"""Kinds and objects that a snapshot lacks: which answers depend on them, and what would complete it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
from msgspec.structs import replace

from kschedx.apiserver.admission import PLUGIN_OF_ANNOTATION
from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES, PREEMPT_NEVER
from kschedx.errors import NotReadError
from kschedx.explain.events import recorded_event
from kschedx.explain.known_part import (
    OPTIMISTIC,
    is_about,
    is_cut_down,
    is_left_out,
    is_unread,
    known_part,
    selects_by_label,
    unique_names,
)
from kschedx.explain.notes import Note, note
from kschedx.explain.volume_places import claims_in_one_of_several_places, open_places
from kschedx.framework.args import LIST_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle, Outcome, Stake, Unevaluated, UnevaluatedKind, open_stake
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.status import Code
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import EVENTS, KINDS, READ_LIVE
from kschedx.kube.kubectl import add_to_dump, dump_objects
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, Gang
from kschedx.kube.storage import NO_PROVISIONER, claim_name, own_claims
from kschedx.kube.types import Pod
from kschedx.plugins.node_volume_limits.attachments import is_counted, where_unlimited
from kschedx.snapshot.snapshot import MissingCause, Snapshot, Source
from kschedx.wording import DOCUMENTATION, count, list_names, with_article

# Kinds that a snapshot could not read: which answers depend on them, and how to make them readable. A kind that the API
# server does not serve has no objects. A forbidden kind may have any.

UNKNOWN_PODS = "the dump does not hold any pod, so whether one is pending is unknown"
_MANY = 9  # forbidden kinds, too many for a command to name


def require_nodes_and_pods(snapshot: Snapshot, pod: Pod | None = None) -> None:
    """Raise `NotReadError` for a snapshot without nodes or pods."""
    for kind in ("Node", "Pod"):
        if kind in snapshot.source.missing:
            refuse(snapshot, kind, KINDS[kind].leaves, pod)


def require_nodes(snapshot: Snapshot, pod: Pod | None = None) -> None:
    """Raise `NotReadError` for a dump without nodes."""
    require_nodes_and_pods(snapshot, pod)
    if not snapshot.cluster.nodes and snapshot.source.is_dump and not snapshot.source.is_complete("Node"):
        kinds = ["Node"] if snapshot.source.kinds.get("Pod") else ["Pod", "Node"]
        leaves, key = ("where pods fit", "") if pod is None else ("where the pod fits", pod.key)
        _refuse_dump(kinds, leaves, key, only=snapshot.only_namespaces if kinds == ["Node"] else ())


def require_pods(snapshot: Snapshot) -> None:
    """Raise `NotReadError` for a dump without pods."""
    if snapshot.lacks_all_pods:
        _refuse_dump(["Pod"], "which pods the nodes run")


def require_for_admission(snapshot: Snapshot, pod: Pod, plugins: Sequence[str] = ()) -> None:
    """Raise `NotReadError` if the API server would read a missing kind to admit a new pod. `plugins` are enabled
    besides the default ones."""
    forbidden = _forbidden_kinds(snapshot)
    spec = pod.spec
    for plugin in PLUGIN_OF_ANNOTATION.values():
        if "Namespace" in forbidden and plugin in plugins:
            refuse(snapshot, "Namespace", f"which annotations for {plugin} the namespace has", pod)
    named = spec.priority_class_name if spec.priority is None else ""
    runtime = spec.runtime_class_name
    for kind, name, known, leaves in (
        ("PriorityClass", named, {**BUILT_IN_CLASSES, **snapshot.priority_classes}, f"the priority of {named}"),
        ("RuntimeClass", runtime, snapshot.runtime_classes, f"what RuntimeClass {runtime} adds to its pods"),
    ):
        if name and name not in known and _is_not_dumped(snapshot, kind):
            _refuse_dump([kind], leaves, pod.key)
        if name and name not in known and kind in forbidden:
            refuse(snapshot, kind, leaves, pod)
    if "PriorityClass" in forbidden and spec.priority is None and not named:
        refuse(snapshot, "PriorityClass", "the default priority", pod)
    if "LimitRange" in forbidden and any(
        not (container.resources.requests and container.resources.limits)
        for container in (*spec.init_containers, *spec.containers)
    ):
        refuse(snapshot, "LimitRange", "default requests and limits of containers", pod)


def _is_not_dumped(snapshot: Snapshot, kind: str) -> bool:
    source = snapshot.source
    has_none = not source.kinds.get(kind) and source.may_lack(kind) and not is_cut_down(snapshot)
    return has_none or (not source.is_complete(kind) and is_left_out(snapshot, kind))


def _refuse_dump(kinds: Sequence[str], leaves: str, pod: str = "", only: Sequence[str] = ()) -> NoReturn:
    """Raise the `NotReadError` for kinds without objects in a dump, and for pods if it has those of one namespace."""
    because = f"the dump holds no {' and no '.join(KINDS[kind].plural for kind in kinds)}"
    if len(only) == 1:
        because, kinds = f"{because}, and pods of namespace {only[0]} only", [*kinds, "Pod"]
    raise NotReadError(pod, leaves, because, add_to_dump(*kinds))


def require_for_decision(cycle: Cycle) -> None:
    """Raise `NotReadError` if a kind that may not be listed could change the cycle's result."""
    for kind in _forbidden_kinds(cycle.snapshot):
        if _matters(kind, cycle):
            refuse(cycle.snapshot, kind, KINDS[kind].leaves, cycle.pod)


def refuse(snapshot: Snapshot, kind: str, leaves: str, pod: Pod | None = None) -> NoReturn:
    """Raise the `NotReadError` with the kind and the command that reads it."""
    name, about = READ_LIVE[kind].resource, pod.key if pod else ""
    if snapshot.source.missing[kind] is MissingCause.ABSENT:
        raise NotReadError(about, leaves, f"the API server serves no {name}")
    others = [READ_LIVE[other].resource for other in _forbidden_kinds(snapshot) if other != kind]
    role = "kschedx" if others else f"kschedx-{kind.lower()}"
    besides = f", and so is listing {len(others)} more kind{'s' if len(others) > 1 else ''}" if others else ""
    create = f"kubectl create clusterrole {role} --verb=get,list --resource={','.join((name, *others))}"
    allow = create if len(others) < _MANY else f"the ClusterRole of {DOCUMENTATION}reference/permissions.html"
    raise NotReadError(about, leaves, f"listing {name} is forbidden{besides}", f"{allow}, bound to you, allows it")


# --- notes


def missing_notes(cycle: Cycle) -> Iterator[Note]:
    """Yield what was not read and, as far as known, does not affect this answer."""
    source = cycle.snapshot.source
    if source.namespaces:
        only = f"only namespace {', '.join(source.namespaces)} is in this snapshot"
        text = f"{only}: requests of pods in other namespaces do not count"
        yield note("other-namespaces", text, namespaces=tuple(source.namespaces))
    if source.may_lack("Pod"):
        yield _pods_lacking(source)
    elif cycle.outcome is Outcome.SCHEDULED:
        yield from _other_namespaces(cycle.snapshot)
    is_static = cycle.outcome is Outcome.UNSCHEDULABLE and bool(_static_volumes(cycle.snapshot, cycle.pod))
    if is_static and source.may_lack("PersistentVolume"):
        text = "the dump holds no PersistentVolumes: those that do not match are not shown"
        yield note("dump", text, formats=tuple(source.formats), kinds=("PersistentVolume",))
    if lacking := tuple(kind for kind in source.lacks if _matters(kind, cycle)):
        text = f"missing or incomplete in {_dumps(source)}: {_with_worth(lacking)}"
        yield note("dump", text, formats=tuple(source.formats), kinds=lacking)
    if forbidden := tuple(kind for kind in _forbidden_kinds(cycle.snapshot) if kind in MATTERS):
        text = f"listing is forbidden for {_with_worth(forbidden)}; this answer does not depend on it"
        yield note("unread-kind", text, kinds=forbidden, cause=MissingCause.FORBIDDEN)
    yield from _unread_events(source)
    absent = [kind for kind, cause in source.missing.items() if cause is MissingCause.ABSENT and _matters(kind, cycle)]
    if absent:
        text = f"the API server serves no {_names(absent)}, so there are none"
        yield note("unread-kind", text, kinds=tuple(absent), cause=MissingCause.ABSENT)


def missing_for_many(snapshot: Snapshot) -> Note | None:
    """Return a note about objects that may affect some pods' answers."""
    if snapshot.source.may_lack("Pod"):
        return _pods_lacking(snapshot.source)
    if (other := next(_other_namespaces(snapshot), None)) is not None:
        return other
    kinds = tuple(kind for kind in _forbidden_kinds(snapshot) if kind in MATTERS)
    if not kinds:
        return next(_unread_events(snapshot.source), None)
    text = f"listing is forbidden for {_names(kinds)}: pods that use them are undecided"
    return note("unread-kind", text, kinds=kinds, cause=MissingCause.FORBIDDEN)


def _other_namespaces(snapshot: Snapshot) -> Iterator[Note]:
    if snapshot.source.is_dump and not is_cut_down(snapshot) and len(spaces := snapshot.only_namespaces) == 1:
        text = f"the dump has pods of namespace {spaces[0]} only; those of others use the nodes too"
        yield note("other-namespaces", text, namespaces=spaces)


def _unread_events(source: Source) -> Iterator[Note]:
    if EVENTS.key in source.missing:
        yield note("unread-events", f"listing events is forbidden: {EVENTS.leaves} is unknown")


def _pods_lacking(source: Source) -> Note:
    held = f"{_dumps(source)} does not hold {source.lacks.get('Pod', '') or 'any pod'}"
    text = f"{held}: nodes may be fuller than shown (details: kschedx doctor)"
    return note("dump", text, formats=tuple(source.formats), kinds=("Pod",))


def _names(kinds: Iterable[str]) -> str:
    return ", ".join(READ_LIVE[kind].resource for kind in kinds)


def _with_worth(kinds: Iterable[str]) -> str:
    """List the kinds with what is unknown without them."""
    return ", ".join(f"{READ_LIVE[kind].resource} ({READ_LIVE[kind].leaves})" for kind in kinds)


def _dumps(source: Source) -> str:
    return " and ".join(map(with_article, source.formats)) or "the dump"


def _matters(kind: str, cycle: Cycle) -> bool:
    return kind in MATTERS and bool(MATTERS[kind](cycle))


def _forbidden_kinds(snapshot: Snapshot) -> list[str]:
    read = {kind for kind, row in READ_LIVE.items() if not row.is_on_demand}
    return [kind for kind, cause in snapshot.source.missing.items() if cause is MissingCause.FORBIDDEN and kind in read]


# --- when a kind affects the result


def _has_claims(cycle: Cycle) -> bool:
    return bool(own_claims(cycle.pod))


def _has_unbound_claims(cycle: Cycle) -> bool:
    """An unknown claim may be unbound."""
    claims = map(cycle.snapshot.storage.claims.get, own_claims(cycle.pod))
    return any(claim is None or not claim.spec.volume_name for claim in claims)


def _has_counted_volumes(cycle: Cycle) -> bool:
    """Return whether there are volumes that a driver may attach, which local disks are not."""
    pod, storage = cycle.pod, cycle.snapshot.storage
    for volume in filter(is_counted, pod.spec.volumes):
        claim = storage.claim(pod.metadata.namespace, claim_name(pod.metadata.name, volume) or "")
        if claim is None:
            return True
        bound = storage.volumes.get(claim.spec.volume_name)
        candidates = (bound,) if bound is not None else tuple(storage.volumes_of(claim.storage_class))
        storage_class = storage.classes.get(claim.storage_class)
        is_provisioned = bound is None and (storage_class is None or storage_class.can_provision)
        if is_provisioned or not candidates or not all(candidate.spec.is_on_node for candidate in candidates):
            return True
    return False


def _selects_namespaces(cycle: Cycle) -> bool:
    """Whether a term of the pod, or a term of another pod that matches its labels, selects namespaces by label."""
    affinity = cycle.pod.spec.affinity
    if affinity is not None and any(map(selects_by_label, affinity.pod_terms)):
        return True
    labels = cycle.pod.metadata.labels
    return any(
        selects_by_label(term) and is_about(term, labels)
        for spec in cycle.snapshot.pods.specs.values
        for term in (() if spec.affinity is None else spec.affinity.pod_terms)
    )


def _spreads_by_default(cycle: Cycle) -> bool:
    """Return whether default constraints affect the comparison or rejection of nodes."""
    if cycle.pod.spec.topology_spread_constraints:
        return False
    points = cycle.profile.points
    names = {name for plugins in points.values() for name in plugins}
    compared = cycle.scores is not None and len(cycle.scores.nodes) > 1
    if compared and any("SelectorSpread" in name or "Service" in name for name in names):
        return True
    if "PodTopologySpread" not in names:
        return "CheckServiceAffinity" in names
    args = cycle.profile.args_of(PodTopologySpreadArgs)
    if args.defaulting_type != LIST_DEFAULTING:
        return compared and "PodTopologySpread" in points.get("score", ())
    hard = any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in args.default_constraints)
    return bool(args.default_constraints) and (compared or hard)


def _owned_by(kind: str) -> Callable[[Cycle], bool]:
    def matters(cycle: Cycle) -> bool:
        owner = cycle.pod.metadata.controller
        return owner is not None and owner.kind == kind and _spreads_by_default(cycle)

    return matters


def _runs(cycle: Cycle, plugin: str) -> bool:
    return any(plugin in plugins for plugins in cycle.profile.points.values())


def _requests_extended_resources(cycle: Cycle) -> bool:
    if not cycle.release.gates.get("DRAExtendedResource", False):
        return False
    containers = (*cycle.pod.spec.init_containers, *cycle.pod.spec.containers)
    return any(
        "/" in name and "kubernetes.io/" not in name
        for container in containers
        for name in (*container.resources.requests, *container.resources.limits)
    )


def _has_device_class(cycle: Cycle) -> bool:
    """Return whether devices may provide an extended resource that the pod requests."""
    return _requests_extended_resources(cycle) and bool(cycle.snapshot.devices.classes)


def _has_claims_of_pod(cycle: Cycle) -> bool:
    """Return whether some of the pod's claims exist, or are created on each node, so that devices matter."""
    namespace = cycle.pod.metadata.namespace
    return _has_device_class(cycle) or any(
        claim.metadata.namespace == namespace and claim.status.allocation is None
        for claim in cycle.snapshot.devices.claims.values()
        if cycle.pod.spec.resource_claims
    )


def _has_future_claims(cycle: Cycle) -> bool:
    """Return whether a controller will create claims for the pod, which is not in the cluster yet, from templates that
    are not known."""
    if cycle.pod.key in cycle.snapshot.pods.rows:
        return False
    generated = {status.name for status in cycle.pod.status.resource_claim_statuses}
    future = (it.resource_claim_template_name for it in cycle.pod.spec.resource_claims if it.name not in generated)
    namespace, known = cycle.pod.metadata.namespace, cycle.snapshot.devices.templates
    return any(name and f"{namespace}/{name}" not in known for name in future)


_COSCHEDULING_GROUP = "PodGroup.scheduling.x-k8s.io"
MATTERS: Mapping[str, Callable[[Cycle], object]] = {
    "PersistentVolumeClaim": _has_claims,
    "PersistentVolume": _has_claims,
    "StorageClass": _has_unbound_claims,
    "CSIStorageCapacity": _has_unbound_claims,
    "CSINode": _has_counted_volumes,
    "CSIDriver": _has_counted_volumes,
    "VolumeAttachment": _has_counted_volumes,
    "Namespace": _selects_namespaces,
    "Service": _spreads_by_default,
    "ReplicationController": _owned_by("ReplicationController"),
    "ReplicaSet": _owned_by("ReplicaSet"),
    "StatefulSet": _owned_by("StatefulSet"),
    # a budget reprieves a victim first, and counts if it is violated
    "PodDisruptionBudget": lambda cycle: cycle.post_filter is not None and bool(cycle.post_filter.candidates),
    "PriorityClass": lambda cycle: cycle.pod.spec.has_unknown_priority,
    "PodGroup": lambda cycle: cycle.pod.spec.scheduling_group is not None,
    "Workload": lambda cycle: cycle.pod.spec.workload_ref is not None and cycle.release.behavior.gangs_are_of_workloads,
    _COSCHEDULING_GROUP: lambda cycle: POD_GROUP_LABEL in cycle.pod.metadata.labels and _runs(cycle, "Coscheduling"),
    "ElasticQuota.scheduling.x-k8s.io": lambda cycle: _runs(cycle, "CapacityScheduling"),
    "NodeResourceTopology": lambda cycle: _runs(cycle, "NodeResourceTopologyMatch"),
    "ResourceClaim": lambda cycle: bool(cycle.pod.spec.resource_claims) or _has_device_class(cycle),
    "ResourceSlice": _has_claims_of_pod,
    "ResourceClaimTemplate": _has_future_claims,
    "DeviceTaintRule": lambda cycle: (
        cycle.release.gates.get("DRADeviceTaintRules", False) and _has_claims_of_pod(cycle)
    ),
    "DeviceClass": lambda cycle: bool(cycle.pod.spec.resource_claims) or _requests_extended_resources(cycle),
}
"""Each kind that a plugin reads, with a function that returns whether it could change a finished cycle's result."""


def _unread_gang(snapshot: Snapshot, pod: Pod) -> dict[str, tuple[str, ...]]:
    """Return the Coscheduling group in the pod's label; the plugin binds no pod of a missing group."""
    name, namespace = pod.metadata.labels.get(POD_GROUP_LABEL, ""), pod.metadata.namespace
    groups = ((gang.metadata.namespace, gang.metadata.name) for gang in snapshot.of(Gang))
    if not name or (namespace, name) in groups or not is_unread(snapshot, _COSCHEDULING_GROUP, namespace):
        return {}
    return {_COSCHEDULING_GROUP: (name,)}


def cycle_of(scheduler: Scheduler, pod: Pod, profile: Profile) -> Cycle:
    """Return the pod's cycle; undecided if it depends on what a dump lacks. Raises as `require_for_decision` does."""
    snapshot = scheduler.snapshot
    if snapshot.has_only_event_of(pod):
        _refuse_dump(["Pod"], "where the pod fits", pod.key)
    part = known_part(snapshot, pod)
    cycle = scheduler.schedule(part.pod, profile)
    _require_allocatable(cycle)
    optimistic = {kind: () for kind in OPTIMISTIC if is_unread(snapshot, kind) and MATTERS[kind](cycle)}
    named = {**part.unread, **optimistic, **_unread_gang(snapshot, pod)}
    named |= {} if part.pod.spec.has_unknown_priority else _unread_priorities(cycle)
    stakes = {"CSINode": _stake_of_limits(cycle)} if "CSINode" in named else {}
    unread = {
        kind: names
        for kind, names in named.items()
        if _is_read_by_profile(kind, profile) and stakes.get(kind) is not Stake.NOTHING
    }
    volumes = (*part.unplaced, *claims_in_one_of_several_places(snapshot, part.pod))
    nodes, tried = cycle.nodes, cycle.filter if volumes else None
    fitting = () if nodes is None or tried is None else nodes.names_where(tried.passed)
    unplaced = tuple(open_places(snapshot, volumes, fitting))
    if unread or unplaced:
        command = _completing_command(snapshot, tuple(unread)) if unread else ""
        of_kinds = (
            Unevaluated(
                kind=UnevaluatedKind.OBJECTS,
                name=kind,
                objects=names,
                where=_readers(kind),
                stake=stakes.get(kind, Stake.FIT),
                lacking=(kind == "PersistentVolume" and not names and _static_volumes(snapshot, pod))
                or _lacking_objects(snapshot.source, kind),
                completed_by=command,
            )
            for kind, names in unread.items()
        )
        unevaluated = *of_kinds, *unplaced
        is_open = cycle.outcome is Outcome.SCHEDULED and open_stake(unevaluated) is Stake.FIT
        may_preempt = cycle.outcome is Outcome.UNSCHEDULABLE and "PriorityClass" in unread
        cycle = replace(
            cycle,
            outcome=Outcome.UNDECIDED if is_open or may_preempt else cycle.outcome,
            message="" if may_preempt else cycle.message,
            unevaluated=(*cycle.unevaluated, *unevaluated),
        )
    require_for_decision(cycle)
    return cycle


def _require_allocatable(cycle: Cycle) -> None:
    """Raise `NotReadError` for a dump in which a node has no allocatable, unless the node does not fit for another
    reason, or the cluster's own event says the same."""
    tried, nodes, event = cycle.filter, cycle.nodes, recorded_event(cycle.snapshot, cycle.pod)
    if (
        not cycle.snapshot.source.is_dump
        or cycle.outcome is not Outcome.UNSCHEDULABLE
        or tried is None
        or nodes is None
    ):
        return
    fits = np.ones(len(nodes.rows), dtype=bool)
    for plugin, verdicts in zip(tried.plugins, tried.verdicts, strict=True):
        fits &= ~verdicts.rejected | (plugin == "NodeResourcesFit")
    tried_nodes = map(cycle.snapshot.cluster.nodes.__getitem__, nodes.rows[fits].tolist())
    unknown = [node.name for node in tried_nodes if not node.status.allocatable]
    if unknown and (event is None or event.message != cycle.message):
        because = f"the dump has no status.allocatable of {list_names(unknown, 3)}, or no kubelet has reported it"
        show = f"{shell_command('kubectl get node {} -o yaml', unknown[0])} shows it"
        raise NotReadError(cycle.pod.key, f"the size of {count(len(unknown), 'node')}", because, show)


def _unread_priorities(cycle: Cycle) -> dict[str, tuple[str, ...]]:
    """Return the missing PriorityClasses of pods on nodes where preemption may help."""
    may_preempt = cycle.post_filter is not None and cycle.pod.spec.preemption_policy != PREEMPT_NEVER
    if not may_preempt or cycle.nodes is None or cycle.filter is None:
        return {}
    pods, worth = cycle.snapshot.pods, cycle.nodes.rows[cycle.filter.codes == Code.UNSCHEDULABLE]
    rows = np.flatnonzero(pods.has_unknown_priority & np.isin(pods.node, worth))
    return unique_names(("PriorityClass", pods.specs[row].priority_class_name) for row in rows.tolist())


def _stake_of_limits(cycle: Cycle) -> Stake:
    """What volume limits that a dump lacks leave open: nothing, the node, or whether the pod fits."""
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        return Stake.NOTHING
    if cycle.outcome is not Outcome.SCHEDULED or cycle.nodes is None or cycle.feasible is None:
        return Stake.FIT
    within = where_unlimited(cycle.pod.spec, cycle.nodes)[cycle.feasible]
    return Stake.NOTHING if within.all() else Stake.NODE if within.any() else Stake.FIT


def unread_by(plugins: Collection[str], cycle: Cycle) -> tuple[str, ...]:
    """Return the kinds that the dump lacks, that some of the plugins read, and that could change the cycle's result."""
    lacking = filter(cycle.snapshot.source.may_lack, MATTERS)
    return tuple(kind for kind in lacking if {*plugins} & {*KINDS[kind].read_by} and _matters(kind, cycle))


def depends_on_unread(snapshot: Snapshot, pod: Pod) -> bool:
    """Return whether the pod refers to objects that a dump lacks, or to volumes whose place is not known, so that no
    decision is known."""
    part = known_part(snapshot, pod)
    return bool(part.unread or part.unplaced or claims_in_one_of_several_places(snapshot, pod))


def may_be_open(snapshot: Snapshot, pod: Pod) -> bool:
    """Return whether a dump may lack objects or sizes of nodes that could reject the pod; `decide` checks it."""
    has_claims = pod.spec.mounts_storage or bool(pod.spec.resource_claims)
    is_optimistic = has_claims and any(is_unread(snapshot, kind) for kind in OPTIMISTIC)
    lacks_sizes = snapshot.source.is_dump and any(not node.status.allocatable for node in snapshot.cluster.nodes)
    is_known = not (is_optimistic or lacks_sizes or snapshot.has_only_event_of(pod))
    return not is_known or bool(snapshot.pods.has_unknown_priority.any()) or depends_on_unread(snapshot, pod)


def _completing_command(snapshot: Snapshot, kinds: Sequence[str]) -> str:
    """Return a command for a file that completes the dump; if the dump is partial, for the whole cluster."""
    if any(_lacking_objects(snapshot.source, kind) for kind in kinds):
        return "kschedx snapshot -o cluster.json"
    readers = {plugin for kind in kinds for plugin in KINDS[kind].read_by}
    # `kubectl get` fails if the API server does not serve one of the kinds
    served = {KINDS[kind].group for kind in kinds}
    listable = (key for key, kind in KINDS.items() if not kind.is_optional or kind.group in served)
    absent = (key for key in listable if not snapshot.source.kinds.get(key))
    more = (key for key in absent if readers & set(KINDS[key].read_by))
    return dump_objects(tuple(dict.fromkeys((*kinds, *more))))


def _is_read_by_profile(kind: str, profile: Profile) -> bool:
    """Return whether a plugin of the profile reads the kind; before the framework, plugins have other names."""
    names = {name for plugins in profile.points.values() for name in plugins}
    return "predicates" in profile.points or bool(names & set(_readers(kind)))


def _readers(kind: str) -> tuple[str, ...]:
    """Return the plugins for which a kind is left out. All of them read pods; of those that are left out, only one."""
    return KINDS[kind].read_by or ("InterPodAffinity",)


def _lacking_objects(source: Source, kind: str) -> str | None:
    """Return which objects of the kind a partial dump lacks, None if that is unknown; empty if it has none at all."""
    return source.lacks.get(kind) if source.kinds.get(kind) else ""


def _static_volumes(snapshot: Snapshot, pod: Pod) -> str:
    """Return which volumes the pod's claims need if their classes provision none; empty for other claims."""
    claims, classes = snapshot.storage.claims, snapshot.storage.classes
    own = (claims[key].storage_class for key in own_claims(pod) if key in claims)
    static = {name for name in own if name in classes and classes[name].provisioner == NO_PROVISIONER}
    return f"volumes of class {list_names(sorted(static), 3)}, which provisions none" if static else ""

"""Kinds and objects that a snapshot lacks: which answers depend on them, and what would complete it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NoReturn

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.admission import PLUGIN_OF_ANNOTATION
from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES, PREEMPT_NEVER
from kschedx.errors import InputError, NotReadError
from kschedx.explain.events import recorded_event, rejects_nodes
from kschedx.explain.notes import Note, note
from kschedx.explain.volume_places import claims_in_one_of_several_places, open_places, unplaced_claims
from kschedx.framework.args import LIST_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle, Outcome, Stake, Unevaluated, UnevaluatedKind, open_stake
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.status import Code
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.documents import with_spec
from kschedx.kube.escaping import shell_command
from kschedx.kube.kinds import EVENTS, KINDS, READ_LIVE
from kschedx.kube.kubectl import add_to_dump, dump_objects
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, Gang
from kschedx.kube.selectors import compile_selector
from kschedx.kube.storage import NO_PROVISIONER, PersistentVolumeClaim, claim_name, own_claims
from kschedx.kube.types import Container, Pod, PodAffinity, PodAffinityTerm, Volume
from kschedx.plugins.node_volume_limits.attachments import is_counted, where_unlimited
from kschedx.plugins.volume_binding.plugin import REASON_NO_VOLUME, REASON_UNBOUND_IMMEDIATE
from kschedx.snapshot.pods import find_group, group_name
from kschedx.snapshot.snapshot import MissingCause, Snapshot, Source
from kschedx.wording import DOCUMENTATION, count, list_names, with_article

# Kinds that a snapshot could not read: which answers depend on them, and how to make them readable. A kind that the API
# server does not serve has no objects. A forbidden kind may have any.

_MANY = 9  # forbidden kinds, too many for a command to name


def require_nodes_and_pods(snapshot: Snapshot, pod: Pod | None = None) -> None:
    """Raise `NotReadError` for a snapshot without nodes or pods."""
    for kind in ("Node", "Pod"):
        if kind in snapshot.source.missing:
            refuse(snapshot, kind, KINDS[kind].leaves, pod)


def require_nodes(snapshot: Snapshot, pod: Pod) -> None:
    """Raise `NotReadError` for pods without nodes."""
    require_nodes_and_pods(snapshot, pod)
    if not snapshot.cluster.nodes and snapshot.source.is_dump and not snapshot.source.is_complete("Node"):
        _refuse_dump(["Node"] if snapshot.source.kinds.get("Pod") else ["Pod", "Node"], "where the pod fits", pod.key)


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
    has_none = not source.kinds.get(kind) and source.may_lack(kind)
    return has_none or (not source.is_complete(kind) and _is_left_out(snapshot, kind))


def _refuse_dump(kinds: Sequence[str], leaves: str, pod: str = "") -> NoReturn:
    """Raise the `NotReadError` for kinds without objects in a dump."""
    because = f"the dump holds no {' and no '.join(KINDS[kind].plural for kind in kinds)}"
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
    if snapshot.source.is_dump and len(spaces := snapshot.only_namespaces) == 1:
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
    """Return whether a term of the pod, or a term of another pod that matches its labels, selects namespaces by
    label."""
    affinity = cycle.pod.spec.affinity
    if affinity is not None and any(map(_selects, affinity.pod_terms)):
        return True
    labels = cycle.pod.metadata.labels
    return any(
        _selects(term) and _is_about(term, labels)
        for spec in cycle.snapshot.pods.specs.values
        for term in (() if spec.affinity is None else spec.affinity.pod_terms)
    )


def _selects(term: PodAffinityTerm) -> bool:
    """An empty selector selects all namespaces, whatever their labels."""
    selector = term.namespace_selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _is_about(term: PodAffinityTerm, labels: dict[str, str]) -> bool:
    """Return whether a term's labelSelector matches these labels."""
    try:
        return compile_selector(term.label_selector).matches(labels)
    except InputError:
        return False


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
    """Return whether a controller will create claims for the pod, which is not in the cluster yet."""
    if cycle.pod.key in cycle.snapshot.pods.rows:
        return False
    generated = {status.name for status in cycle.pod.status.resource_claim_statuses}
    return any(
        claim.resource_claim_template_name and claim.name not in generated for claim in cycle.pod.spec.resource_claims
    )


_GANG = "PodGroup.scheduling.x-k8s.io"
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
    "Workload": lambda cycle: (
        cycle.pod.spec.workload_ref is not None and cycle.release.behaviour.gangs_are_of_workloads
    ),
    _GANG: lambda cycle: POD_GROUP_LABEL in cycle.pod.metadata.labels and _runs(cycle, "Coscheduling"),
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


# Objects that a pod needs and a dump lacks: they are left out, and what they could change is noted. A cluster that runs
# a pod has its claims, so a dump without any claims lacks them. What is left out here can only reject nodes, so
# rejections are valid without it.

_OPTIMISTIC = ("CSINode", "CSIStorageCapacity", "DeviceTaintRule")
"""Kinds whose absence only hides rejections; pods do not refer to their objects."""


class _Part(Struct, frozen=True, kw_only=True):
    """The part of a pod that can be decided, and the objects behind the rest: kind to names."""

    pod: Pod
    unread: Mapping[str, tuple[str, ...]] = {}
    unplaced: tuple[PersistentVolumeClaim, ...] = ()
    """New claims whose volumes are provisioned before the pod is scheduled, in a place that is not known yet."""


def cycle_of(scheduler: Scheduler, pod: Pod, profile: Profile) -> Cycle:
    """Return the pod's cycle; undecided if it depends on what a dump lacks. Raises as `require_for_decision` does."""
    snapshot = scheduler.snapshot
    part = _known_part(snapshot, pod)
    cycle = scheduler.schedule(part.pod, profile)
    _require_allocatable(cycle)
    optimistic = {kind: () for kind in _OPTIMISTIC if _is_unread(snapshot, kind) and MATTERS[kind](cycle)}
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
                where=KINDS[kind].read_by,
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
    return _unique_names(("PriorityClass", pods.specs[row].priority_class_name) for row in rows.tolist())


def _stake_of_limits(cycle: Cycle) -> Stake:
    """What volume limits that a dump lacks leave open: nothing, the node, or whether the pod fits."""
    if cycle.outcome is not Outcome.SCHEDULED or cycle.nodes is None or cycle.feasible is None:
        return Stake.FIT
    within = where_unlimited(cycle.pod.spec, cycle.nodes)[cycle.feasible]
    return Stake.NOTHING if within.all() else Stake.NODE if within.any() else Stake.FIT


def depends_on_unread(snapshot: Snapshot, pod: Pod) -> bool:
    """Return whether the pod refers to objects that a dump lacks, or to volumes whose place is not known, so that no
    decision is known."""
    part = _known_part(snapshot, pod)
    return bool(part.unread or part.unplaced or claims_in_one_of_several_places(snapshot, pod))


def may_be_open(snapshot: Snapshot, pod: Pod) -> bool:
    """Return whether a dump may lack objects that could reject the pod; `decide` checks it."""
    has_claims = pod.spec.mounts_storage or bool(pod.spec.resource_claims)
    is_optimistic = has_claims and any(_is_unread(snapshot, kind) for kind in _OPTIMISTIC)
    return is_optimistic or bool(snapshot.pods.has_unknown_priority.any()) or depends_on_unread(snapshot, pod)


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
    return "predicates" in profile.points or bool(names & set(KINDS[kind].read_by))


def _is_unread(snapshot: Snapshot, kind: str, namespace: str = "") -> bool:
    """Return whether the cluster may have objects of the kind that are not in the dump. Kinds that pods do not refer to
    often have none."""
    source = snapshot.source
    is_telling = kind not in _OPTIMISTIC or kind == "CSINode" or kind in source.lacks
    if is_telling and source.may_lack(kind, namespace):
        return True
    return not source.is_complete(kind, namespace) and _is_left_out(snapshot, kind, namespace)


def _is_left_out(snapshot: Snapshot, kind: str, namespace: str = "") -> bool:
    """Return whether a running pod uses an object of the kind, in the namespace if given, that the dump lacks: then the
    kind was left out. A claim in use cannot be removed, and a pod starts with its claims bound."""
    if kind not in _USED:
        return False
    left_out = _left_out.of(snapshot)
    if (kind, namespace) not in left_out:
        pods, used = snapshot.pods, _USED[kind]
        may_use = pods.specs.where(lambda spec: bool(spec.volumes or spec.resource_claims or spec.priority_class_name))
        runs = pods.phases.where(lambda phase: phase == "Running")
        rows = np.flatnonzero(may_use & pods.phases.where(lambda phase: phase in ("Running", "Pending")))
        left_out[kind, namespace] = any(
            namespace in ("", pods.namespaces[row])
            and used(snapshot, pods[row])
            and (runs[row] or _has_references(snapshot, pods[row], kind))
            for row in rows.tolist()
        )
    return left_out[kind, namespace]


class _LeftOut:
    """Results about the last dump: thousands of pods may lack their claims, and a moving cluster stays the same
    dump."""

    def __init__(self) -> None:
        self._about: tuple[object, ...] = ()
        self._found: dict[tuple[str, str], bool] = {}
        self._terms: tuple[PodAffinityTerm, ...] | None = None

    def of(self, snapshot: Snapshot) -> dict[tuple[str, str], bool]:
        about = (snapshot.pods.specs.values, snapshot.source, snapshot.priority_classes)
        if len(self._about) != len(about) or any(
            item is not other for item, other in zip(self._about, about, strict=True)
        ):
            self._about, self._found, self._terms = about, {}, None
        return self._found

    def terms_of(self, snapshot: Snapshot) -> tuple[PodAffinityTerm, ...]:
        """Return the required anti-affinity of its pods that selects namespaces by label."""
        self.of(snapshot)
        if self._terms is None:
            self._terms = tuple(
                term for spec in snapshot.pods.specs.values for term in spec.required_anti_affinity if _selects(term)
            )
        return self._terms


_left_out = _LeftOut()


def _has_references(snapshot: Snapshot, pod: Pod, kind: str) -> bool:
    """Return whether kube-scheduler's own event shows that the objects of the kind exist which the pod names: it
    rejects nodes one by one, so that PreFilter found all of them, or its claims, which are not bound."""
    event = recorded_event(snapshot, pod)
    if event is None:
        return False
    return rejects_nodes(event.message) or (
        kind == "PersistentVolumeClaim" and REASON_UNBOUND_IMMEDIATE in event.message
    )


def _lacks_device_class(snapshot: Snapshot, pod: Pod) -> bool:
    classes = snapshot.devices.classes
    return any(
        name not in classes
        for claim in _allocated_claims(snapshot, pod)
        for request in claim.spec.devices.requests
        for name in ((request.exactly or request).device_class_name,)
        if name
    )


def _allocated_claims(snapshot: Snapshot, pod: Pod) -> Iterator[ResourceClaim]:
    return (claim for claim in snapshot.devices.claims_of(pod) if claim.status.allocation is not None)


def _bound_claims(snapshot: Snapshot, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    return (claim for claim in snapshot.storage.claims_of(pod) if claim.spec.volume_name)


def _lacks_priority_class(snapshot: Snapshot, pod: Pod) -> bool:
    name = pod.spec.priority_class_name
    return bool(name) and name not in BUILT_IN_CLASSES and name not in snapshot.priority_classes


_USED: Mapping[str, Callable[[Snapshot, Pod], bool]] = {
    "PersistentVolumeClaim": lambda snapshot, pod: any(key not in snapshot.storage.claims for key in own_claims(pod)),
    "PersistentVolume": lambda snapshot, pod: not snapshot.storage.volumes and any(_bound_claims(snapshot, pod)),
    "StorageClass": lambda snapshot, pod: (
        not snapshot.storage.classes and any(claim.storage_class for claim in _bound_claims(snapshot, pod))
    ),
    "DeviceClass": _lacks_device_class,
    "ResourceSlice": lambda snapshot, pod: not snapshot.devices.slices and any(_allocated_claims(snapshot, pod)),
    "ResourceClaim": lambda snapshot, pod: any(
        key not in snapshot.devices.claims for key in pod.device_claims.values()
    ),
    "PriorityClass": _lacks_priority_class,
}
"""Kind to whether a running pod uses an object that is not in the dump."""


def _static_volumes(snapshot: Snapshot, pod: Pod) -> str:
    """Return which volumes the pod's claims need if their classes provision none; empty for other claims."""
    claims, classes = snapshot.storage.claims, snapshot.storage.classes
    own = (claims[key].storage_class for key in own_claims(pod) if key in claims)
    static = {name for name in own if name in classes and classes[name].provisioner == NO_PROVISIONER}
    return f"volumes of class {list_names(sorted(static), 3)}, which provisions none" if static else ""


def _lacking_objects(source: Source, kind: str) -> str | None:
    """Return which objects of the kind a partial dump lacks, None if that is unknown; empty if it has none at all."""
    return source.lacks.get(kind) if source.kinds.get(kind) else ""


def _known_part(snapshot: Snapshot, pod: Pod) -> _Part:
    own = (pod.spec.priority_class_name,)
    unread: dict[str, tuple[str, ...]] = {"PriorityClass": own} if pod.spec.has_unknown_priority else {}
    unplaced: tuple[PersistentVolumeClaim, ...] = ()
    for take in (_without_claims, _without_devices, _without_group, _without_namespaces):
        part = take(snapshot, pod)
        pod = part.pod
        unread.update(part.unread)
        unplaced += part.unplaced
    return _Part(pod=pod, unread=unread, unplaced=unplaced)


def _without_claims(snapshot: Snapshot, pod: Pod) -> _Part:
    """Leave out the volumes whose claim, bound volume, or class is missing, and those that a driver provisions first,
    in a place that is not known."""
    unplaced = unplaced_claims(snapshot, pod)
    names = {claim.name for claim in unplaced}
    lacking = [
        (volume, _unread_of_volume(snapshot, pod, volume))
        for volume in pod.spec.volumes
        if claim_name(pod.metadata.name, volume) not in names
    ]
    kept = tuple(volume for volume, unread in lacking if unread is None)
    if len(kept) == len(pod.spec.volumes):
        return _Part(pod=pod)
    unread = _unique_names(unread for _, unread in lacking if unread is not None)
    return _Part(pod=with_spec(pod, volumes=kept), unread=unread, unplaced=unplaced)


def _unread_of_volume(snapshot: Snapshot, pod: Pod, volume: Volume) -> tuple[str, str] | None:
    name = claim_name(pod.metadata.name, volume)
    if not name:
        return None
    namespace, storage = pod.metadata.namespace, snapshot.storage
    claim = storage.claim(namespace, name)
    if claim is None:
        return ("PersistentVolumeClaim", name) if _is_unread(snapshot, "PersistentVolumeClaim", namespace) else None
    if claim.metadata.deletion_timestamp or claim.status.phase == "Lost":
        return None  # VolumeBinding rejects it before it reads its volume or class
    bound, named = claim.spec.volume_name, claim.storage_class
    if bound:
        # an API server stored it, so the cluster has its volume: without it, the claim would be Lost
        has_volume = claim.status.phase == "Bound" and bool(claim.metadata.creation_timestamp)
        is_left_out = has_volume and not (storage.volumes or snapshot.source.is_complete("PersistentVolume"))
        is_there = bound in storage.volumes or not _is_unread(snapshot, "PersistentVolume")
        return None if is_there and not is_left_out else ("PersistentVolume", bound)
    if claim.spec.storage_class_name is None and not named and not claim.metadata.creation_timestamp:
        # it does not exist yet and gets the default class, if there is one
        return ("StorageClass", "") if not storage.classes and _is_unread(snapshot, "StorageClass") else None
    if named and named not in storage.classes:
        report = snapshot.failed_create("PersistentVolumeClaim", claim.metadata)
        is_missing = report is not None and f'"{named}" not found' in report.message
        event = recorded_event(snapshot, pod) if is_missing or storage.volumes_of(named) else None
        if event is not None and REASON_UNBOUND_IMMEDIATE in event.message:
            return None  # whether or not the class exists, a volume has to be bound first
        return ("StorageClass", named) if _is_unread(snapshot, "StorageClass") else None
    event = recorded_event(snapshot, pod)
    makes_none = named and storage.classes[named].provisioner == NO_PROVISIONER
    if storage.volumes or (event is not None and REASON_NO_VOLUME in event.message):
        return None  # if the dump lacks volumes, they do not match
    return ("PersistentVolume", "") if makes_none and _is_unread(snapshot, "PersistentVolume") else None


def _without_devices(snapshot: Snapshot, pod: Pod) -> _Part:
    """Leave out the device claims that refer to missing objects."""
    lacking = {claim.name: [*_unread_of_devices(snapshot, pod, claim.name)] for claim in pod.spec.resource_claims}
    gone = {name for name, unread in lacking.items() if unread}
    if not gone:
        return _Part(pod=pod)
    spec = replace(
        pod.spec,
        resource_claims=tuple(claim for claim in pod.spec.resource_claims if claim.name not in gone),
        containers=_without_container_claims(pod.spec.containers, gone),
        init_containers=_without_container_claims(pod.spec.init_containers, gone),
    )
    return _Part(pod=replace(pod, spec=spec), unread=_unique_names(chain.from_iterable(lacking.values())))


def _unique_names(unread: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return kinds to names without duplicates; an empty name means any object of the kind."""
    names: dict[str, dict[str, None]] = {}
    for kind, name in unread:
        names.setdefault(kind, {})[name] = None
    return {kind: tuple(filter(None, each)) for kind, each in names.items()}


def _without_container_claims(containers: Sequence[Container], gone: Collection[str]) -> tuple[Container, ...]:
    def kept(container: Container) -> Container:
        claims = tuple(claim for claim in container.resources.claims if claim.name not in gone)
        return replace(container, resources=replace(container.resources, claims=claims))

    return tuple(map(kept, containers))


def _unread_of_devices(snapshot: Snapshot, pod: Pod, name: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of missing objects for the pod's claim with this name."""
    namespace, devices = pod.metadata.namespace, snapshot.devices
    reference = next(claim for claim in pod.spec.resource_claims if claim.name == name)
    key = pod.device_claims.get(name)
    if key is None:
        template = reference.resource_claim_template_name
        is_generated = any(status.name == name for status in pod.status.resource_claim_statuses)
        is_new = not is_generated and pod.key not in snapshot.pods.rows
        if template and is_new and _is_unread(snapshot, "ResourceClaimTemplate", namespace):
            yield "ResourceClaimTemplate", template
        return
    claim = devices.claims.get(key)
    if claim is None:
        if _is_unread(snapshot, "ResourceClaim", namespace):
            yield "ResourceClaim", key.partition("/")[2]
        return
    if claim.status.allocation is not None:
        return
    requests = claim.spec.devices.requests
    classes = (
        subrequest.device_class_name
        for request in requests
        for subrequest in (request.exactly, *request.first_available)
        if subrequest
    )
    for device_class in dict.fromkeys(classes):
        if device_class not in devices.classes and _is_unread(snapshot, "DeviceClass"):
            yield "DeviceClass", device_class
    if not devices.slices and _is_unread(snapshot, "ResourceSlice"):
        yield "ResourceSlice", ""


def _without_group(snapshot: Snapshot, pod: Pod) -> _Part:
    namespace, spec = pod.metadata.namespace, pod.spec
    unread: dict[str, tuple[str, ...]] = {}
    for kind, name in (
        ("PodGroup", group_name(spec, of_workloads=False)),
        ("Workload", group_name(spec, of_workloads=True)),
    ):
        if name and find_group(snapshot.pod_groups, namespace, name) is None and _is_unread(snapshot, kind, namespace):
            unread[kind] = (name,)
    if not unread:
        return _Part(pod=pod)
    return _Part(pod=replace(pod, spec=replace(spec, scheduling_group=None, workload_ref=None)), unread=unread)


def _unread_gang(snapshot: Snapshot, pod: Pod) -> dict[str, tuple[str, ...]]:
    """Return the Coscheduling group in the pod's label; the plugin binds no pod of a missing group."""
    name, namespace = pod.metadata.labels.get(POD_GROUP_LABEL, ""), pod.metadata.namespace
    groups = ((gang.metadata.namespace, gang.metadata.name) for gang in snapshot.of(Gang))
    if not name or (namespace, name) in groups or not _is_unread(snapshot, _GANG, namespace):
        return {}
    return {_GANG: (name,)}


def _without_namespaces(snapshot: Snapshot, pod: Pod) -> _Part:
    """Leave out required terms that select namespaces by label, if the labels are unknown."""
    # a namespace with pods exists
    is_left_out = len(snapshot.pods) and not (snapshot.namespaces or snapshot.source.is_complete("Namespace"))
    if not (is_left_out or _is_unread(snapshot, "Namespace")):
        return _Part(pod=pod)
    others = any(_is_about(term, pod.metadata.labels) for term in _left_out.terms_of(snapshot))
    affinity = pod.spec.affinity
    known = affinity
    if affinity is not None:
        sides = _with_known_terms(affinity.pod_affinity), _with_known_terms(affinity.pod_anti_affinity)
        known = replace(affinity, pod_affinity=sides[0], pod_anti_affinity=sides[1])
    if known == affinity and not others:
        return _Part(pod=pod)
    return _Part(pod=with_spec(pod, affinity=known), unread={"Namespace": ()})


def _with_known_terms(side: PodAffinity | None) -> PodAffinity | None:
    if side is None:
        return None
    terms = side.required_during_scheduling_ignored_during_execution
    known = tuple(term for term in terms if not _selects(term))
    return replace(side, required_during_scheduling_ignored_during_execution=known)

"""The object in question, by its name: a pod, or a workload, which stands for the next pod that it would create."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.adoption import with_referenced_template
from kschedx.controllers.pod_autoscaling import pod_autoscalers
from kschedx.controllers.states import NotObserved, Paused, Refused, Suspended
from kschedx.controllers.workload_lifecycle import workload_lifecycle
from kschedx.controllers.workloads import Workload, first_ordinal, member_rows, owners_in, wanted_replicas, workload_of
from kschedx.errors import InputError, Place, closest, nearest
from kschedx.explain.missing_kinds import refuse
from kschedx.explain.notes import CLAIM_WITHOUT_POD, note
from kschedx.explain.root_causes import balanced_service
from kschedx.explain.setup import Setup, Subject, admit, stored_subject
from kschedx.inquiry.manifests import (
    PodInQuestion,
    key_of,
    knows_claims,
    read_as,
    title,
    workload_as_applied,
    written_from,
    written_from_custom_resource,
)
from kschedx.kube import custom_resources, kueue
from kschedx.kube.autoscalers import GROUP_NAMES, POD_AUTOSCALERS
from kschedx.kube.conditions import reports_ready
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import map_at, no_pod
from kschedx.kube.documents import Json
from kschedx.kube.kinds import KINDS, ResourceKind, kind_of, name_of
from kschedx.kube.kubectl import add_to_dump
from kschedx.kube.other_schedulers import POD_GROUP_LABEL, KaiPodGroup, VolcanoPodGroup
from kschedx.kube.resources import Service
from kschedx.kube.selectors import selector_from_set
from kschedx.kube.types import OwnerReference, Pod, PodSchedulingGate
from kschedx.kube.workloads import MAKING_PODS, SHORT_NAMES, foreign_pods, is_foreign
from kschedx.patterns import lazy_pattern
from kschedx.simulate.object_changes import NamedObject, find_object, object_reference
from kschedx.snapshot.edits import with_applied
from kschedx.snapshot.pods import PodTable, group_name
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources.files import no_such_file
from kschedx.sources.tree import SUFFIXES
from kschedx.wording import count

_NODE_NAMES = ("node", "nodes", "no")  # kubectl's names for a node


_ALIKE = ("Deployment", "ReplicaSet", "ReplicationController", "Job")  # kinds whose pods differ only in their names


def is_file(target: str) -> bool:
    """Return whether the target names manifests: standard input, an existing file, or a name that looks like one.
    `deploy/web` is an object even if there is such a file; `./deploy/web` is a file."""
    if target == "-" or target.endswith(SUFFIXES):
        return True
    return not is_object(target) and Path(target).exists()


def is_object(target: str) -> bool:
    """Return whether it has the form `deploy/NAME`, `node/NAME`, or `NAMESPACE/deploy/NAME`."""
    return bool(named_node(target)) or _parse_reference(target, "") is not None


def is_kind(word: str) -> bool:
    """Return whether it is one of kubectl's names of a kind that creates pods, of a pod, or of a node."""
    word = word.lower()
    if word in SHORT_NAMES or word in _NODE_NAMES:
        return True
    return any(word.partition(".")[0] in _words_for(kind) for _, kind in custom_resources.KINDS)


def named_node(target: str) -> str:
    """Return the name in `node/NAME`; empty for anything else."""
    kind, _, name = target.partition("/")
    return name if kind.lower() in _NODE_NAMES else ""


def named_namespace(snapshot: Snapshot, target: str) -> str:
    """Return the name in `ns/NAME`; empty for anything else. Raises `InputError` if the namespace does not exist."""
    kind, _, name = target.partition("/")
    known = snapshot.known_namespaces
    if kind.lower() not in ("ns", "namespace", "namespaces") or kind in known or "/" in name:
        return ""
    if name not in known:
        raise InputError(f'no namespace "{name}" in the snapshot', hint=nearest(name, known))
    return name


def find_target(snapshot: Snapshot, target: str, namespace: str = "default") -> PodInQuestion:
    """Return the first object of `find_targets`."""
    return find_targets(snapshot, target, namespace)[0]


def find_targets(snapshot: Snapshot, target: str, namespace: str = "default") -> Sequence[PodInQuestion]:
    """Return the cluster's object for `pod/NAME`, `deploy/NAME`, `NAMESPACE/deploy/NAME`, or the bare name of a pod.
    For a custom resource without pods, return a pod of each template.

    If the snapshot lacks the workload, return one of its pods. Raises `InputError` with the nearest name if the object
    does not exist.
    """
    referred = _parse_reference(target, namespace)
    if "." in target.rpartition("/")[0]:  # job.batch.volcano.sh/NAME is not a Job of Kubernetes
        custom = [*_stored_custom_resources(snapshot, _Reference.parsed(target, namespace))]
        referred = None if custom else referred
    if referred is not None:
        return [_named_object(snapshot, *referred)]
    return _bare_name_objects(snapshot, target, namespace)


def referred_kind(target: str) -> str | None:
    """Return the kind in `pod/NAME`, `deploy/NAME`, or `NAMESPACE/deploy/NAME`; None for anything else."""
    referred = _parse_reference(target, "")
    return None if referred is None else referred[0]


def namespace_of_pods(targets: Iterable[str]) -> str | None:
    """Return the namespace of pods and workloads, empty for the default one; None for other targets, and for several
    namespaces."""
    namespaces = set()
    for target in targets:
        kind, namespace, _ = _parse_reference(target, "") or ("Pod", target.rpartition("/")[0], "")
        is_of_pods = kind == "Pod" or (kind in KINDS and bool(KINDS[kind].template))
        if named_node(target) or not is_of_pods:
            return None
        namespaces.add(namespace)
    return namespaces.pop() if len(namespaces) == 1 else None


class _Reference(Struct, frozen=True, kw_only=True):
    """The object that a target names by its kind."""

    namespace: str
    word: str  # for its kind, such as `jobset` or `jobsets`; empty if the target has no kind
    group: str = ""  # the start of its API group
    name: str

    @classmethod
    def parsed(cls, target: str, namespace: str) -> _Reference:
        """Return the object of `NAMESPACE/jobset.jobset.x-k8s.io/NAME`, of which only word and name are required."""
        *space, kind, name = target.split("/") if target.count("/") in (1, 2) else ("", "")
        word, _, group = kind.lower().partition(".")
        return cls(namespace=space[0] if space else namespace, word=word, group=group, name=name)

    def is_named(self, kind: str, namespace: str, name: str) -> bool:
        return (namespace, name) == (self.namespace, self.name) and self.word in _words_for(kind)

    def is_among(self, owners: Iterable[OwnerReference]) -> bool:
        return any(self.is_named(owner.kind, self.namespace, owner.name) for owner in owners)


def _pending_or_last(pods: PodTable, rows: Sequence[int]) -> Iterator[PodInQuestion]:
    """Yield the pending ones of these pods, or else the last pod."""
    shown = [row for row in rows if row in pods.pending] or rows[-1:]
    return (PodInQuestion.of_cluster(pods[row]) for row in shown)


def _parse_reference(target: str, namespace: str) -> tuple[str, str, str] | None:
    """Return the kind, namespace, and name in `pod/NAME`, `deploy/NAME`, or `NAMESPACE/deploy/NAME`."""
    meant = _Reference.parsed(target, namespace)
    kind = SHORT_NAMES.get(meant.word)
    return None if kind is None or target.startswith(("/", ".", "~")) else (kind, meant.namespace, meant.name)


def _named_object(snapshot: Snapshot, kind: str, namespace: str, name: str) -> PodInQuestion:
    if kind == "Pod":
        row = snapshot.pods.rows.get(f"{namespace}/{name}")
        if row is None:
            row = _single_row(snapshot, name, namespace)
        if row is None and (not_created := _stateful_set_of(snapshot, name, namespace)) is not None:
            return not_created
        if row is None:
            past = (it for it in snapshot.preemptions if (it.namespace, it.name) == (namespace, name))
            hint = next((f"kube-scheduler preempted it{f' for {it.by}' if it.by else ''}" for it in past), "")
            hint = hint or _namespace_in_deletion(snapshot, namespace) or _nearest_pod(snapshot, name, namespace)
            raise InputError(f'no pod "{name}" in namespace "{namespace}"', hint=hint)
        return PodInQuestion.of_cluster(snapshot.pods[row])
    manifest = snapshot.manifest_of((kind, namespace, name))
    if manifest is None:
        if (pod := _representative_pod(snapshot, kind, namespace, name)) is not None:
            return PodInQuestion.of_cluster(pod)
        if kind in snapshot.source.missing:
            refuse(snapshot, kind, f'{kind} "{name}" in namespace "{namespace}"')
        known = [n for k, ns, n in snapshot.workloads if k == kind and ns == namespace]
        elsewhere = [ns for k, ns, n in snapshot.workloads if k == kind and n == name]
        there = f"there is one in namespace {elsewhere[0]}: -n {elsewhere[0]}" if elsewhere else nearest(name, known)
        hint = _namespace_in_deletion(snapshot, namespace) or there or _orphan_pods_text(snapshot, name, namespace)
        if not hint and kind in KINDS and snapshot.source.may_lack(kind):
            hint = f"the dump holds none: {add_to_dump(kind)}"
        raise InputError(f'no {kind} "{name}" in namespace "{namespace}"', hint=hint)
    return written_from(snapshot, manifest)


def _namespace_in_deletion(snapshot: Snapshot, namespace: str) -> str:
    return (
        f"the namespace is being deleted: ask about ns/{namespace}"
        if namespace in snapshot.terminating_namespaces
        else ""
    )


def _stateful_set_of(snapshot: Snapshot, name: str, namespace: str) -> PodInQuestion | None:
    """Return the StatefulSet of a pod that it has not created yet, by the name of the pod. Raises `InputError` if its
    replicas do not include the pod."""
    owner, dash, ordinal = name.rpartition("-")
    manifest = snapshot.manifest_of(("StatefulSet", namespace, owner)) if dash and ordinal.isdecimal() else None
    if manifest is None:
        return None
    first, number = first_ordinal(manifest), wanted_replicas(manifest)
    if number and not first <= int(ordinal) < first + number:
        last = "" if number == 1 else f" to {owner}-{first + number - 1}"
        hint = f"StatefulSet {owner} has {count(number, 'replica')}: {owner}-{first}{last}"
        raise InputError(f'no pod "{name}" in namespace "{namespace}"', hint=hint)
    return written_from(snapshot, manifest)


def _single_row(snapshot: Snapshot, name: str, namespace: str) -> int | None:
    """Return the row of the only pod whose name starts with `name-`, like the names of a workload's pods. Raises
    `InputError` if there are several."""
    pods = snapshot.pods
    rows = [
        row
        for row, other in enumerate(pods.names)
        if other.startswith(f"{name}-") and pods.namespaces[row] == namespace
    ]
    waiting = [row for row in rows if row in pods.pending]
    if len(rows) < 2 or len(waiting) == 1:
        return next(iter(waiting or rows), None)
    listed = ", ".join(pods.names[row] for row in rows[:3]) + (", …" if len(rows) > 3 else "")
    if (workload := _workloads_in(snapshot, namespace).get(name)) is not None:
        listed = f"did you mean {workload.reference}? {listed}"
    raise InputError(f'no pod "{name}" in namespace "{namespace}", but {len(rows)} that start with it', hint=listed)


def _representative_pod(snapshot: Snapshot, kind: str, namespace: str, name: str) -> Pod | None:
    """Return a pod of a workload that only its pods show: the first pending one if its pods are identical, otherwise
    its last."""
    rows = member_rows(snapshot, Workload(kind, namespace, name))
    waiting = [row for row in rows if row in snapshot.pods.pending]
    representative = waiting[:1] or (rows[-1:] if kind in _ALIKE else [])
    return snapshot.pods[representative[0]] if representative else None


def _orphan_pods_text(snapshot: Snapshot, name: str, namespace: str) -> str:
    """Return the text about the pod or workload of another kind with this name, or about pods that a workload seems to
    have in a dump without the workload."""
    pods = snapshot.pods
    if f"{namespace}/{name}" in pods.rows:
        return f"did you mean pod/{name}?"
    if (workload := _workloads_in(snapshot, namespace).get(name)) is not None:
        return f"did you mean {workload.reference}?"
    named = [other for row, other in enumerate(pods.names) if pods.namespaces[row] == namespace]
    pod_names = [f"pod/{other}" for other in named if other.startswith(f"{name}-")]
    return (
        f"pods that start with it: {', '.join(pod_names[:3])}{', …' if len(pod_names) > 3 else ''}" if pod_names else ""
    )


_NOT_CREATED = lazy_pattern(r".+-new\d*")  # the names that answers give to pods that a controller has yet to create


def _nearest_pod(snapshot: Snapshot, name: str, namespace: str) -> str:
    """Return the text about another namespace with a pod of this name, or the nearest pod or workload in this one: the
    workload for the name of a pod that it has replaced."""
    pods = snapshot.pods
    elsewhere = next((pods.namespaces[row] for row, other in enumerate(pods.names) if other == name), None)
    if elsewhere is not None:
        return f"there is one in namespace {elsewhere}: -n {elsewhere}"
    if name in snapshot.cluster.index:
        return f"did you mean node/{name}?"
    if not len(pods) and snapshot.source.may_lack("Pod"):
        return f"the dump has no pods: {add_to_dump('Pod')}"
    here = [other for row, other in enumerate(pods.names) if pods.namespaces[row] == namespace]
    if not here and namespace not in snapshot.namespaces:
        known = snapshot.known_namespaces
        close = nearest(namespace, known)
        return f'there is no namespace "{namespace}", {close}' if close else f'no pod is in namespace "{namespace}"'
    workloads = _workloads_in(snapshot, namespace)
    base = name.rpartition("-")[0]
    if _NOT_CREATED.fullmatch(name):
        creators = [other for other in workloads if base.startswith(other)]
        if creators:
            creator = max(creators, key=lambda other: (workloads[other].kind != "ReplicaSet", len(other)))
            return f"it is not created yet: ask about {workloads[creator].reference}, which creates such pods"
    if not any(other.startswith(f"{base}-") for other in here):
        owner = max((other for other in workloads if base.startswith(other)), key=len, default="")
        if owner:
            return f"did you mean {workloads[owner].reference}, which has such pods?"
    close = closest(name, (*here, *workloads))
    if close in workloads and close not in here:
        return f"did you mean {workloads[close].reference}?"
    return f'did you mean "{close}"?' if close else ""


def _meant_target(target: str) -> str:
    """Return how to write a target that is a kind without a name, or has a namespace between kind and name."""
    kind, *rest = target.rstrip("/").split("/")
    if not is_kind(kind):
        return ""
    if len(rest) == 2:
        return f"did you mean {kind}/{rest[1]} -n {rest[0]}?"
    return f"did you mean {kind}/{rest[0]}?" if rest else f"name one: {kind}/NAME"


def _workloads_in(snapshot: Snapshot, namespace: str) -> Mapping[str, Workload]:
    """Return the workloads of a namespace by name: those of its pods, and those that are stored."""
    pods = snapshot.pods
    stored = {name: Workload(kind, space, name) for kind, space, name in snapshot.workloads if space == namespace}
    rows = pods.in_namespace(namespace).nonzero()[0].tolist()
    of_pods = {workload.name: workload for workload in owners_in(snapshot).workloads_of(pods, rows)}
    return {**stored, **{name: workload for name, workload in of_pods.items() if workload.kind != "Pod"}}


def _held_by_kueue(snapshot: Snapshot, meant: _Reference) -> PodInQuestion | None:
    """Return a pod of `jobset/NAME` or `workload/NAME` that Kueue suspends: one of the first pod set, with Kueue's
    scheduling gate."""
    for workload in snapshot.of(kueue.Workload):
        metadata = workload.metadata
        is_meant = meant.is_named("Workload", metadata.namespace, metadata.name)
        is_owned = metadata.namespace == meant.namespace and meant.is_among(metadata.owner_references)
        if (is_meant or is_owned) and workload.spec.pod_sets:
            return pod_of_workload(workload)
    return None


def held_custom_resources(snapshot: Snapshot, within: str | None) -> Iterator[tuple[PodInQuestion, str, int]]:
    """Yield a pod, kind and name, and the number of pods of each custom resource without pods in a namespace, or in
    all: those that Kueue has not admitted, whose pods are refused, about which their controller reports a problem, or
    whose group is Pending in Volcano."""
    queued: set[tuple[str, str, str]] = set()
    for workload in snapshot.of(kueue.Workload):
        owner, namespace = workload.metadata.controller, workload.metadata.namespace
        if owner is not None:
            queued.add((owner.kind, namespace, owner.name))
        elif workload.metadata.owner_references:  # pods, which are listed themselves
            continue
        is_done = workload.has("Admitted") or workload.has("Finished")
        if is_done or not workload.spec.pod_sets or within not in (None, namespace):
            continue
        kind, name = ("Workload", workload.metadata.name) if owner is None else (owner.kind, owner.name)
        own = _Reference(namespace=namespace, word=kind.lower(), name=name)
        if kind not in (*MAKING_PODS, "Pod") and not _has_pods(snapshot, own):
            number = sum(pod_set.count for pod_set in workload.spec.pod_sets)
            yield pod_of_workload(workload), f"{kind} {name}", number
    groups = [it for it in snapshot.of(VolcanoPodGroup) if it.status.phase == "Pending"]
    grouped = {
        (owner.kind, it.metadata.namespace, owner.name) for it in groups for owner in it.metadata.owner_references
    }
    for (key, namespace, name), raw in snapshot.custom_resources.items():
        kind = key.partition(".")[0]
        metadata = stored_metadata(raw)
        if within not in (None, namespace) or (kind, namespace, name) in queued or metadata.controller is not None:
            continue
        manifest: Json = msgspec.json.decode(raw)
        state = workload_lifecycle(snapshot, manifest)
        is_held = isinstance(state, Refused | NotObserved) or (isinstance(state, Suspended) and bool(state.queue))
        is_held = is_held or (state is None and (kind, namespace, name) in grouped)
        own = _Reference(namespace=namespace, word=kind.lower(), name=name)
        if is_held and not _has_pods(snapshot, own):
            for written in written_from_custom_resource(with_referenced_template(snapshot, manifest)):
                number = 1 if written.count is None else written.count.number or 1
                yield written, f"{workload_of(manifest).kind} {name}", number


def pod_of_workload(workload: kueue.Workload) -> PodInQuestion:
    """Return a pod of the first pod set of a Workload of Kueue, with Kueue's scheduling gate until it is admitted."""
    pod_set, owners = workload.spec.pod_sets[0], workload.metadata.owner_references
    belonging = {} if owners else {kueue.GROUP_LABEL: workload.metadata.name}  # labels that mark its pods
    metadata = replace(
        pod_set.template.metadata,
        name=f"{owners[0].name if owners else workload.metadata.name}-{pod_set.name}".lower(),
        namespace=workload.metadata.namespace,
        owner_references=owners,
        labels={**pod_set.template.metadata.labels, **belonging, kueue.PODSET_LABEL: pod_set.name},
    )
    gate = PodSchedulingGate(name=kueue.ADMISSION_GATE)
    gates = () if workload.has("Admitted") and not workload.status.cluster_name else (gate,)
    pod = Pod(metadata=metadata, spec=replace(pod_set.template.spec, scheduling_gates=gates))
    return PodInQuestion(manifest={"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)})


def _scaled_by(snapshot: Snapshot, meant: _Reference) -> PodInQuestion | None:
    """Return the object that `hpa/NAME`, `vpa/NAME`, or `scaledobject/NAME` scales."""
    for item in pod_autoscalers(snapshot):
        if meant.is_named(type(item).__name__, item.metadata.namespace, item.metadata.name):
            scaled = item.spec.scale_target_ref
            whose = f"{type(item).__name__} {meant.namespace}/{meant.name} scales {scaled.kind} {scaled.name}"
            if scaled.kind in POD_AUTOSCALERS:
                raise InputError(f"{whose}, which has no pods of its own")
            try:
                return find_target(snapshot, f"{meant.namespace}/{scaled.kind.lower()}/{scaled.name}")
            except InputError as error:
                raise InputError(f"{whose}: {error}") from None
    return None


def _custom_resource_rows(snapshot: Snapshot, meant: _Reference) -> list[int]:
    """Return the rows of the pods that `jobset/NAME` or `lws/NAME` owns, directly or through a workload."""
    rows = np.flatnonzero(snapshot.pods.in_namespace(meant.namespace))
    owners = snapshot.pods.owners.take(rows)
    owned = owners.where(lambda its: meant.is_among((*its, *_owners_of(snapshot, meant.namespace, its))))
    result: list[int] = rows[owned].tolist()
    return result


def _marked_rows(snapshot: Snapshot, meant: _Reference) -> list[int]:
    """Return the rows of the pods with the label of a custom resource; the snapshot lacks what is between them."""
    labels = {
        row.label
        for (group, kind), row in custom_resources.KINDS.items()
        if row.label and group.startswith(meant.group) and meant.word in _words_for(kind)
    }
    rows = np.flatnonzero(snapshot.pods.in_namespace(meant.namespace))
    marked = snapshot.pods.labels.take(rows).where(lambda own: any(own.get(label) == meant.name for label in labels))
    result: list[int] = rows[marked].tolist()
    return result


def _has_pods(snapshot: Snapshot, meant: _Reference) -> bool:
    return bool(_custom_resource_rows(snapshot, meant) or _marked_rows(snapshot, meant))


def _of_group(snapshot: Snapshot, meant: _Reference) -> Sequence[PodInQuestion]:
    """Return a pod of `podgroup/NAME`: the first pending one, else the last; without pods, those of the custom resource
    for which its scheduler created the group. Raises `InputError` if there are none."""
    if meant.word not in _words_for("PodGroup"):
        return []
    pods, namespace, name = snapshot.pods, meant.namespace, meant.name
    marked = pods.labels.where(lambda labels: name in _group_marks(labels))
    marked |= pods.annotations.where(lambda annotations: name in _group_marks(annotations))
    marked |= pods.specs.where(
        lambda spec: name in (group_name(spec, of_workloads=False), group_name(spec, of_workloads=True))
    )
    rows = np.flatnonzero(marked & pods.in_namespace(namespace)).tolist()
    if rows:
        return [next(_pending_or_last(pods, rows))]
    groups = (group.metadata for kind in (VolcanoPodGroup, KaiPodGroup) for group in snapshot.of(kind))
    for metadata in groups:
        owner = metadata.controller
        if owner is not None and (metadata.namespace, metadata.name) == (namespace, name):
            group = owner.api_version.rpartition("/")[0]
            maker = _Reference(namespace=namespace, word=owner.kind.lower(), group=group, name=owner.name)
            if own := [*_stored_custom_resources(snapshot, maker)]:
                return own
    raise InputError(f'no pod of a PodGroup "{name}" in namespace "{namespace}"')


def _group_marks(marks: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(marks.get(key) for key in (POD_GROUP_LABEL, *GROUP_NAMES))


def _owners_of(snapshot: Snapshot, namespace: str, owners: Iterable[OwnerReference]) -> Iterator[OwnerReference]:
    """Yield the owners of these owners, through stored workloads, custom resources, and pods."""
    left, known = [*owners], set[OwnerReference]()
    while left:
        if (owner := left.pop()) in known:
            continue
        known.add(owner)
        above: Iterable[OwnerReference] = ()
        if owner.kind == "Pod":
            row = snapshot.pods.rows.get(f"{namespace}/{owner.name}")
            above = () if row is None else snapshot.pods.owners[row]
        else:
            key = f"{owner.kind}.{owner.api_version.rpartition('/')[0]}"
            raw = snapshot.workloads.get((owner.kind, namespace, owner.name))
            raw = raw or snapshot.custom_resources.get((key, namespace, owner.name))
            above = () if raw is None else stored_metadata(raw).owner_references
        yield from above
        left += above


_PREPARES = "cnpg.io/jobRole"
"""The label of a Job's pod that prepares an instance of CloudNativePG, which is not created before."""
_CALLED = {
    "Job": ("vcjob", "vj"),
    "Service": ("ksvc",),
    "Workflow": ("wf",),
    "SparkApplication": ("sparkapp",),
    "InferenceService": ("isvc",),
    "FlinkDeployment": ("flinkdep",),
    "Elasticsearch": ("es",),
    "CloneSet": ("clone",),
    "Workload": ("wl",),
}
"""Short names of the CustomResourceDefinitions that are not the kind's capital letters."""


def _words_for(kind: str) -> tuple[str, ...]:
    """Return the usual names of a resource: `leaderworkerset`, `leaderworkersets`, `lws`."""
    return kind.lower(), f"{kind.lower()}s", "".join(filter(str.isupper, kind)).lower(), *_CALLED.get(kind, ())


def _stored_custom_resources(snapshot: Snapshot, meant: _Reference) -> Iterator[PodInQuestion]:
    """Yield a pod for each template of the custom resource in `jobset/NAME` or `jobsets.jobset.x-k8s.io/NAME`."""
    for (key, namespace, name), raw in snapshot.custom_resources.items():
        kind, _, group = key.partition(".")
        if group.startswith(meant.group) and meant.is_named(kind, namespace, name):
            manifest = with_referenced_template(snapshot, msgspec.json.decode(raw))
            written, state = written_from_custom_resource(manifest), workload_lifecycle(snapshot, manifest)
            yield from written if state is None or state.is_open else islice(written, 1)
            return


def _refused_replicas(snapshot: Snapshot, meant: _Reference) -> Iterator[PodInQuestion]:
    """Yield the pod of each ReplicaSet or ReplicationController of a custom resource, such as a Rollout or a
    DeploymentConfig, whose pods the API server refuses."""
    for (kind, space, _), raw in snapshot.workloads.items():
        metadata = stored_metadata(raw)
        is_of_pods = kind in ("ReplicaSet", "ReplicationController") and space == meant.namespace
        if is_of_pods and meant.is_among(metadata.owner_references):
            manifest = msgspec.json.decode(raw)
            is_short = len(member_rows(snapshot, workload_of(manifest))) < wanted_replicas(manifest)
            is_reported = is_short and snapshot.failed_create(kind, metadata) is not None
            if is_reported or isinstance(workload_lifecycle(snapshot, manifest), Refused):
                yield written_from(snapshot, manifest)


def _bare_name_objects(snapshot: Snapshot, target: str, namespace: str) -> Sequence[PodInQuestion]:
    """Return the object for `web-0` or `shop/web-0`, short for `pod/web-0`, or for the custom resource `jobset/big`."""
    space, slash, name = target.partition("/")
    key = target if slash else f"{namespace}/{target}"
    row = snapshot.pods.rows.get(key)
    if row is None:
        row = _single_row(snapshot, name if slash else target, space if slash else namespace)
    if row is not None:
        return [PodInQuestion.of_cluster(snapshot.pods[row])]
    referred = _Reference.parsed(target, namespace)
    custom = [*_stored_custom_resources(snapshot, referred)]
    owned = _custom_resource_rows(snapshot, referred)
    if rows := owned or _marked_rows(snapshot, referred):
        created = [*_pending_or_last(snapshot.pods, rows)]
        lifecycle = workload_lifecycle(snapshot, custom[0].workload or {}) if custom else None
        if all(pod.stored is not None and pod.stored.spec.node_name for pod in created):
            if isinstance(lifecycle, Paused):
                return custom
            return [*_refused_replicas(snapshot, referred)] or created
        count = custom[0].count if lifecycle is None and len(custom) == len(created) == 1 else None
        if any(pod.stored is not None and _PREPARES in pod.stored.metadata.labels for pod in created):
            return created
        # the answer about the resource counts its other pods; one beyond them belongs to an update
        return custom if count is not None and 0 < len(owned) <= (count.number or 0) else created
    if of_group := _of_group(snapshot, referred):
        return of_group
    for find in (_held_by_kueue, _scaled_by):
        if (found := find(snapshot, referred)) is not None:
            return [found]
    is_namespace = space in snapshot.known_namespaces
    if custom:
        return custom
    not_created = _stateful_set_of(snapshot, *((name, space) if slash else (target, namespace)))
    if not_created is not None:
        return [not_created]
    is_reference = target.count("/") == 2 or not is_namespace
    if is_reference and (reference := object_reference(target, namespace, snapshot)) is not None:
        return [_user_of(snapshot, reference)]
    if target.count("/") == 1 and not is_namespace and not Path(space).exists():
        if kind := _unread_kind(snapshot, space):
            text = f'no pod has {kind} "{name}" as its owner, and the pod template of that kind is not known'
            raise InputError(text, hint="ask about the pods that its controller creates")
        hint = nearest(space.lower(), SHORT_NAMES)
        raise InputError(f'no kind "{space}", and no pod "{name}" in namespace "{space}"', hint=hint)
    if slash and space in ("", ".", ".."):
        raise no_such_file(target)
    meant = _meant_target(target)
    if target.count("/") == 2 and not meant and not Path(space).exists():
        kind = name.partition("/")[0]
        raise InputError(f'no kind "{kind}"', hint=nearest(kind.lower(), SHORT_NAMES))
    near = _nearest_pod(snapshot, name, space) if slash else _nearest_pod(snapshot, target, namespace)
    hint = meant or near
    raise InputError(f'no file "{target}", and no pod "{key}" in the snapshot', hint=hint)


def _unread_kind(snapshot: Snapshot, word: str) -> str:
    """Return the custom kind of which the dump has objects that are not read, such as `Foo (example.com)`; empty if the
    word names none."""
    for known in snapshot.source.kinds:
        kind, _, group = known.partition(".")
        plural = ResourceKind(name=kind, group=group).plural
        if group and word.lower().removesuffix(f".{group}") in (kind.lower(), plural):
            return f"{kind} ({group})"
    return ""


def _user_of(snapshot: Snapshot, reference: NamedObject) -> PodInQuestion:
    """Return a pod that uses a PersistentVolumeClaim: the first pending one, else the last, or one made up for a claim
    without pods; for a ResourceClaim, one of its pods; for a Service, `selected_pod`. Raises `InputError` for other
    kinds."""
    if (selected := selected_pod(snapshot, reference)) is not None:
        return selected
    if reference.kind.key == "ResourceClaim" and (rows := rows_with_devices(snapshot, reference)):
        return next(_pending_or_last(snapshot.pods, rows))
    if reference.kind.name != "PersistentVolumeClaim":
        from kschedx.fixes.phrases import join_phrases  # needed only for an error

        find_object(snapshot, reference)
        if reference.kind.is_subject:
            raise InputError(f"{reference} has no pods of its own", hint="ask about it alone")
        kinds = join_phrases(dict.fromkeys(kind.several for kind in KINDS.values() if kind.is_subject))
        hint = f"`kschedx why` explains pods, workloads, nodes, namespaces, {kinds}"
        hint = "`kschedx kueue` shows it" if reference.kind.addon == "Kueue" else hint
        hint = "`kschedx why nodepool/NAME` explains it" if reference.kind.name.endswith("NodeClass") else hint
        raise InputError(f"{reference} has no pods", hint=hint)
    rows = snapshot.pods.rows_with_claim(f"{reference.namespace}/{reference.name}")
    if not rows:
        claim = snapshot.storage.claim(reference.namespace, reference.name)
        if claim is None:
            keys = (key.partition("/") for key in snapshot.storage.claims)
            known = [name for namespace, _, name in keys if namespace == reference.namespace]
            raise InputError(f"there is no {reference}", hint=nearest(reference.name, known))
        metadata = {"name": f"{claim.name}-user", "namespace": claim.metadata.namespace}
        volumes = [{"name": "claim", "persistentVolumeClaim": {"claimName": claim.name}}]
        containers = [{"name": "user", "image": "user"}]
        manifest: dict[str, object] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        text = f"no pod uses claim {claim.key}: this is what a pod with it would meet"
        return PodInQuestion(
            manifest={**manifest, "spec": {"containers": containers, "volumes": volumes}},
            notes=(note(CLAIM_WITHOUT_POD, text, claim=claim.key),),
        )
    return next(_pending_or_last(snapshot.pods, rows))


def rows_with_devices(snapshot: Snapshot, claim: NamedObject) -> list[int]:
    """Return the rows of the pods that use a ResourceClaim."""
    key, pods = f"{claim.namespace}/{claim.name}", snapshot.pods
    rows = pods.rows_in_namespaces(claim.namespace.__eq__).tolist()
    return [row for row in rows if pods.specs[row].resource_claims and key in pods[row].device_claims.values()]


def selected_pod(snapshot: Snapshot, reference: NamedObject) -> PodInQuestion | None:
    """Return a pod of a Service: a pending one of its load balancer in k3s, a pending or unready one that it selects,
    or else the last; without pods, the next pod of a workload that it selects. None if it selects nothing."""
    named, pods = (reference.namespace, reference.name), snapshot.pods
    service = next((it for it in snapshot.services if name_of(it) == named), None)
    if service is None or reference.kind.key != "Service":
        return None
    key = f"{reference.namespace}/{reference.name}"
    for row in pods.pending:
        if balanced_service(pods.labels[row], pods.namespaces[row]) == key:
            return PodInQuestion.of_cluster(pods[row])
    if not service.spec.selector:
        return None
    selector, rows = selector_from_set(service.spec.selector), selected_rows(snapshot, service)
    if rows:
        unready = [row for row in rows if not reports_ready(pods.statuses[row].conditions)]
        return next(_pending_or_last(pods, [row for row in rows if row in pods.pending] or unready or rows))
    for (kind, namespace, name), raw in snapshot.workloads.items():
        labels = map_at(msgspec.json.decode(raw), "spec", "template", "metadata", "labels")
        is_top = namespace == reference.namespace and stored_metadata(raw).controller is None
        if is_top and selector.matches({key: str(value) for key, value in labels.items()}):
            return _named_object(snapshot, kind, namespace, name)
    return None


def selected_rows(snapshot: Snapshot, service: Service) -> list[int]:
    """Return the rows of the pods that a Service selects and that have not finished."""
    pods, selector = snapshot.pods, selector_from_set(service.spec.selector or {})
    marked = pods.labels.where(selector.matches) & pods.in_namespace(service.metadata.namespace) & ~pods.finished
    rows: list[int] = np.flatnonzero(marked).tolist()
    return rows


def pods_in_question(snapshot: Snapshot, names: Sequence[str], namespace: str) -> Collection[str]:
    """The pods, `namespace/name`, that are named or whose workload is; a workload that does not exist has none."""
    workloads: set[str] = set()
    owners = owners_in(snapshot)
    for target in names:
        referred = _parse_reference(target, namespace)
        if referred is None:
            workloads.add(target if "/" in target else f"{namespace}/{target}")
            continue
        workload = Workload(*referred)
        if workload.kind == "Pod":
            workloads.add(workload.key)
        else:
            workloads |= set(map(snapshot.pods.key, owners.members(snapshot.pods, workload)))
    return workloads


def workloads_in_question(names: Sequence[str], namespace: str) -> Collection[Workload]:
    """Return the named workloads, whether they exist or not."""
    named = (_parse_reference(name, namespace) for name in names)
    return {Workload(*referred) for referred in named if referred is not None and referred[0] != "Pod"}


def node_names(snapshot: Snapshot, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes named with --node. Raises `InputError` if one does not exist."""
    return tuple(dict.fromkeys(map(snapshot.cluster.known_name, wanted)))


# The subject of a question by a program: a name or a manifest.


class _NewPod(Struct, frozen=True, kw_only=True):
    subject: Subject
    workload: Json | None = None  # the workload that creates the pod, if that was given


def new_pod(snapshot: Snapshot, pod: str | Mapping[str, object], setup: Setup) -> _NewPod:
    """Return the pod for a name (`shop/web-0`, `deploy/web`, `shop/deploy/web`) or a manifest; for a workload, the next
    pod of its template.

    Raises `InputError` for objects that create no pods or pods of several templates, and the errors of `admitted`.
    """
    if isinstance(pod, str):
        if pod in snapshot.pods.rows or f"default/{pod}" in snapshot.pods.rows:
            return _NewPod(subject=stored_subject(snapshot, pod))
        _require_name(pod)
        if referred_kind(pod) is None:
            return _NewPod(subject=stored_subject(snapshot, pod))
        target = find_target(snapshot, pod)
        return _NewPod(subject=target.admit(snapshot, setup), workload=target.workload)
    manifest = dict(pod)
    kind, group = read_as(manifest)
    known = kind_of(kind, group)
    if not kind or (known is not None and known.name == "Pod"):
        return _NewPod(subject=admit(snapshot, manifest, setup))
    if known is not None and known.key in MAKING_PODS:
        manifest = _with_namespace(manifest)
        has_claims_unknown = (
            kind == "StatefulSet" and key_of(manifest) in snapshot.workloads and not knows_claims(snapshot)
        )
        snapshot = with_applied(snapshot, [manifest])
        applied = workload_as_applied(snapshot, manifest)
        others = () if has_claims_unknown else applied.others
        subject = admit(snapshot, applied.pod, setup, title=title(manifest), dependents=others, maker=manifest)
        return _NewPod(subject=subject, workload=manifest)
    pods = foreign_pods(manifest) if is_foreign(manifest) else []
    if len(pods) != 1:
        raise no_pod(manifest, tuple(pod.path for pod in pods))
    return _NewPod(subject=admit(snapshot, pods[0].manifest, setup, title=title(manifest)), workload=manifest)


def _require_name(given: str) -> None:
    """Raise `InputError` for a text that is not the name of a pod but looks like a manifest or a file."""
    if "\n" in given or given.endswith((".yaml", ".yml", ".json")):
        found = "several lines" if "\n" in given else f'"{given}"'
        text, hint = f"expected namespace/name, found {found}", "a manifest is given as a mapping"
        raise InputError(text, place=Place(object="pod"), hint=hint)


def written_in(snapshot: Snapshot, workload: Mapping[str, object]) -> tuple[Snapshot, PodInQuestion]:
    """Return the cluster with a workload's manifest applied, and its pod."""
    manifest = _with_namespace(dict(workload))
    applied = with_applied(snapshot, [manifest])
    return applied, written_from(applied, manifest)


def _with_namespace(manifest: Json) -> Json:
    own = map_at(manifest, "metadata")
    return {**manifest, "metadata": {**own, "namespace": own.get("namespace") or "default"}}

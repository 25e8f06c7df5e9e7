"""Pod Security admission of new pods in a snapshot's namespaces.

The API server's own configuration (defaults other than `privileged`, exempt namespaces, users, and RuntimeClasses) is
in no dump; the built-in one is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

import msgspec
from msgspec.structs import replace

from kschedx.apiserver.admission import (
    DEFAULT_TOLERATION_SECONDS,
    PLUGIN_OF_ANNOTATION,
    PRIORITY,
    AdmissionChange,
    AdmissionContext,
    AdmittedPod,
    PodSecurity,
    admit,
    check_plugins,
    limit_range_refusal_of_claim,
)
from kschedx.apiserver.defaulting import DEFAULT_NAMESPACE, default_pod
from kschedx.apiserver.pod_classes import resolve_priority
from kschedx.apiserver.pod_security import (
    KubeletFields,
    KubeletSpec,
    NamespacePolicy,
    PodSecurityLevel,
    Standards,
    kubelet_spec,
    policy_of,
)
from kschedx.apiserver.resource_quota import (
    ChargedObject,
    New,
    charge,
    claim_not_created,
    create_error_text,
    forbidden_text,
    owner_create_error_text,
    quota_refusal,
    release_usage,
    with_status,
)
from kschedx.errors import InputError, NotAdmittedError, Place
from kschedx.explain.missing_kinds import require_for_admission
from kschedx.explain.notes import ROUTINE, Note, note
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import LIMIT_RANGER, has_default
from kschedx.kube.controllers import stored_controller, stored_metadata
from kschedx.kube.decoding import Manifest, decode, encode, is_stored, map_at
from kschedx.kube.field_errors import ValidationOptions
from kschedx.kube.kinds import KINDS
from kschedx.kube.names import OF_OPENSHIFT
from kschedx.kube.resources import ClusterResourceQuota, ResourceQuota, ResourceQuotaStatus, SharedQuota
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import FINISHED, Container, Namespace, ObjectMeta, Pod, ServiceAccount
from kschedx.kube.typos import nearest_name, variables_hint
from kschedx.kube.workloads import ALWAYS_STORED
from kschedx.releases.api_versions import is_served, served_version
from kschedx.releases.dates import minor
from kschedx.releases.release import Release
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot

_FIRST = 23  # the first minor version that enforces the labels by default
_OWN_USERS = "UserNamespacesPodSecurityStandards"


UNREAD = "pod-security"
"""The id of the note that it is unknown whether a pod meets its namespace's Pod Security Standard."""


def enforced_standard(
    snapshot: Snapshot, namespace: str, release: Release, maker: Mapping[str, object] | None = None
) -> PodSecurity | Note | None:
    """Return the standard for a new pod; None if every pod is admitted. `maker` is the workload with its template."""
    standards, wanted = standards_of(release), _policy(snapshot, namespace).enforce
    if standards is None or wanted.level is PodSecurityLevel.PRIVILEGED:
        return None
    is_cut = snapshot.source.is_slim and maker is not None and _is_cut(maker)
    if is_cut or OF_OPENSHIFT in snapshot.cluster.label_keys:
        why = "SecurityContextConstraints, not evaluated here, change the pod first"
        if is_cut:
            why = "the snapshot lacks parts of the template"
        return note(
            UNREAD,
            f"namespace {namespace} enforces Pod Security {wanted.level}, and {why}: the API server may refuse the pod "
            "(--dry-run=server asks it)",
            namespace=namespace,
            level=str(wanted.level),
        )
    return PodSecurity(wanted=wanted, standards=standards)


def enforcing_namespaces(snapshot: Snapshot, release: Release) -> frozenset[str]:
    """Return the namespaces that may refuse pods: by Pod Security, or because they are being deleted."""
    ending = frozenset(
        namespace.metadata.name
        for namespace in snapshot.of(Namespace)
        if namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating"
    )
    if standards_of(release) is None:
        return ending
    return ending | frozenset(name for name in snapshot.namespaces if _policy(snapshot, name).enforce.level)


def _refused_by_template(snapshot: Snapshot, pod: Pod, release: Release) -> str | None:
    """Why Pod Security refuses another pod of a workload in the snapshot; None if it does not, or if it is unknown."""
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    maker = None if owner is None else snapshot.manifest_of((owner.kind, namespace, owner.name))
    if maker is None or _policy(snapshot, namespace).enforce.level is PodSecurityLevel.PRIVILEGED:
        return None
    standard = enforced_standard(snapshot, namespace, release, maker)
    if not isinstance(standard, PodSecurity):
        return None
    template = decode(msgspec.json.encode(_template(maker)), KubeletFields)
    return standard.refusal(pod, template.spec)


def admission_warning(
    snapshot: Snapshot, pod: Pod, kubelet: KubeletSpec, release: Release, maker: Mapping[str, object] | None = None
) -> str:
    """Return kubectl's warning when the manifest of a pod or of its `maker` is applied, or an empty string."""
    standards, wanted = standards_of(release), _policy(snapshot, pod.metadata.namespace).warn
    if standards is None or OF_OPENSHIFT in snapshot.cluster.label_keys or (maker is not None and is_stored(maker)):
        return ""
    return PodSecurity(wanted=wanted, standards=standards).warning(pod, kubelet, is_template=maker is not None)


def standards_of(release: Release) -> Standards | None:
    """None for versions before Pod Security."""
    minor = int(release.version.partition(".")[2])
    return Standards(minor=minor, relaxes_own_users=release.enabled(_OWN_USERS)) if minor >= _FIRST else None


def _policy(snapshot: Snapshot, namespace: str) -> NamespacePolicy:
    return policy_of(snapshot.namespaces.get(namespace, {}))


def _is_cut(maker: Mapping[str, object]) -> bool:
    """Return whether the template is reduced to what scheduling reads, as in a snapshot file."""
    spec = _template(maker).get("spec")
    return is_stored(maker) and isinstance(spec, dict) and ALWAYS_STORED not in spec


def _template(maker: Mapping[str, object]) -> Mapping[str, object]:
    """Return the pod template of a built-in workload."""
    kind = KINDS.get(str(maker.get("kind")))
    return {} if kind is None else map_at(maker, *kind.template)


# What the ResourceQuotas and LimitRanges of a snapshot admit, and the quotas' usage afterwards.

_POD_LEVEL = "PodLevelResources"
_Change = Callable[..., ResourceQuota]


def charged_object(kind: str, namespace: str, name: str) -> ChargedObject:
    """Return an object of a kind in the table."""
    return ChargedObject(metadata=ObjectMeta(name=name, namespace=namespace), resource=KINDS[kind].resource)


def _refused_by_quota(
    snapshot: Snapshot, new: New, release: Release, quotas: Sequence[ResourceQuota] | None = None
) -> str | None:
    """Return why one of the `quotas`, or of the snapshot's, refuses a new object, in the API server's words, or None.
    For a claim, LimitRanges are checked first."""
    if isinstance(new, PersistentVolumeClaim):
        for limit_range in snapshot.limit_ranges.get(new.metadata.namespace, ()):
            refusal = limit_range_refusal_of_claim(new, limit_range)
            if refusal is not None:
                return forbidden_text(new, refusal)
    on = release.gates.get(_POD_LEVEL, False)
    known = quotas_of(snapshot) if quotas is None else quotas
    own = _counted(snapshot, [quota for quota in known if quota.covers(new.metadata.namespace)], on)
    refusals = (
        quota_refusal(new, group, pod_level_resources=on)
        for is_shared in (False, True)  # the plugin for ClusterResourceQuotas is the last one
        if (group := [quota for quota in own if isinstance(quota, SharedQuota) is is_shared])
    )
    return next(filter(None, refusals), None)


def quotas_of(snapshot: Snapshot) -> tuple[ResourceQuota, ...]:
    """Return all ResourceQuotas, and ClusterResourceQuotas as quotas of the namespaces that they select."""
    return (*snapshot.of(ResourceQuota), *_shared_quotas(snapshot))


def _shared_quotas(snapshot: Snapshot) -> Iterator[SharedQuota]:
    """Yield the ClusterResourceQuotas, with their current usage if it was counted before; without a status if they
    select fewer namespaces since then. Upstream: pkg/admission/quota/clusterresourcequota and
    pkg/quota/clusterquotamapping of openshift/apiserver-library-go."""
    quotas, counted = snapshot.of(ClusterResourceQuota), {it.metadata.name: it for it in snapshot.of(SharedQuota)}
    selectors = tuple((quota.metadata.name, quota.spec.selector, quota.status.namespaces) for quota in quotas)
    basis = (selectors, snapshot.namespaces, snapshot.of(Namespace))
    is_same = all(known.basis == basis for known in islice(counted.values(), 1))  # one basis for all
    for quota in quotas:
        known, spec, status = counted.get(quota.metadata.name), quota.spec.quota, quota.status.total
        if known is not None and is_same:
            namespaces = known.namespaces
        else:
            namespaces = frozenset(_selected_namespaces(snapshot, quota))
        before = frozenset(each.namespace for each in quota.status.namespaces) or namespaces
        if known is not None:
            before = known.namespaces
            status = known.status if known.spec == spec else replace(known.status, hard=spec.hard)
            status = status if known.namespaces <= namespaces else ResourceQuotaStatus()
        yield SharedQuota(
            metadata=quota.metadata,
            spec=spec,
            status=status,
            namespaces=namespaces,
            basis=basis,
            uncounted=namespaces - before if status.hard else frozenset(),
        )


def _selected_namespaces(snapshot: Snapshot, quota: ClusterResourceQuota) -> Iterator[str]:
    """Yield the namespaces that a ClusterResourceQuota selects, and those in its status that the snapshot lacks."""
    selector = compile_selector(quota.spec.selector.labels or LabelSelector())
    annotations = {space.metadata.name: space.metadata.annotations for space in snapshot.of(Namespace)}
    for name, labels in snapshot.namespaces.items():
        if selector.matches(labels) and quota.spec.selector.annotations.items() <= annotations.get(name, {}).items():
            yield name
    yield from (each.namespace for each in quota.status.namespaces if each.namespace not in snapshot.namespaces)


def _with_quotas(snapshot: Snapshot, quotas: Iterable[ResourceQuota]) -> Snapshot:
    """Return the snapshot with the usage of these quotas, which are all."""
    every = tuple(quotas)
    shared = [quota for quota in every if isinstance(quota, SharedQuota)]
    if shared or snapshot.of(SharedQuota):
        snapshot = snapshot.with_records(SharedQuota, shared)
    own = [quota for quota in every if not isinstance(quota, SharedQuota)]
    return snapshot.with_records(ResourceQuota, own) if own else snapshot


class QuotaLedger:
    """The quotas of a cluster while objects are created and deleted."""

    def __init__(self, snapshot: Snapshot, release: Release) -> None:
        """The objects of the snapshot are counted."""
        self.release = release
        self._pod_level = release.gates.get(_POD_LEVEL, False)
        self._snapshot = _with_quotas(snapshot, _counted(snapshot, quotas_of(snapshot), self._pod_level))

    def apply_to(self, snapshot: Snapshot) -> Snapshot:
        """Return another snapshot of the cluster with the current quota usage."""
        return _with_quotas(snapshot, self._quotas)

    @property
    def _quotas(self) -> tuple[ResourceQuota, ...]:
        return (*self._snapshot.of(ResourceQuota), *self._snapshot.of(SharedQuota))

    def take(self, new: New) -> str | None:
        """Count an object, or return why it is refused, in the API server's words. For a pod whose controller exists,
        Pod Security is checked before the quotas."""
        refusal = _refused_by_namespace(self._snapshot, new)
        if refusal is None:
            violation = _refused_by_template(self._snapshot, new, self.release) if isinstance(new, Pod) else None
            refusal = (
                _refused_by_quota(self._snapshot, new, self.release, self._quotas)
                if violation is None
                else forbidden_text(new, violation)
            )
        if refusal is None:
            self._change(new, charge)
        return refusal

    def give(self, gone: New) -> None:
        """Stop counting an object."""
        self._change(gone, release_usage)

    def _change(self, item: New, by: _Change) -> None:
        changed = (
            by(quota, item, pod_level_resources=self._pod_level) if quota.covers(item.metadata.namespace) else quota
            for quota in self._quotas
        )
        self._snapshot = _with_quotas(self._snapshot, changed)


def require_quota(snapshot: Snapshot, pod: Pod, release: Release) -> None:
    """Raise `NotAdmittedError` if a quota refuses the pod, in the words of the API server or the controller. Existing
    pods, and pods whose controller already has pods that have not finished, are part of the usage and need no further
    quota. The same holds for a pod of a Deployment that replaces another."""
    refusal = None if pod.key in snapshot.pods.rows else _refused_by_quota(snapshot, pod, release)
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    is_counted = owner is not None and _unfinished(snapshot, _members(snapshot, owner.kind, namespace, owner.name))
    if refusal is not None and not is_counted:
        raise NotAdmittedError(create_error_text(pod, refusal))


def require_served(manifest: Manifest, release: Release) -> None:
    """Raise `NotAdmittedError` if the API server does not serve the API version of an object of Kubernetes."""
    version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    if not is_served(minor(release.version), version, kind):
        newer = served_version(minor(release.version), kind)
        refusal = f'no matches for kind "{kind}" in version "{version}"'
        raise NotAdmittedError(refusal, place=Place(field="apiVersion"), hint=f"use {newer}" if newer else "")


def require_owner_quota(snapshot: Snapshot, maker: ChargedObject, release: Release) -> None:
    """Raise `NotAdmittedError` if a quota refuses the object that creates the pod: a Deployment's new ReplicaSet, or a
    CronJob's Job."""
    refusal = _refused_by_quota(snapshot, maker, release)
    if refusal is not None:
        raise NotAdmittedError(owner_create_error_text(maker, refusal))


def require_quota_of_claims(before: Snapshot, after: Snapshot, pod: Pod, release: Release) -> None:
    """Raise `NotAdmittedError` if a quota refuses the claims that only `after` has, which the pod's StatefulSet creates
    first, one after the other."""
    if after.storage.claims is before.storage.claims:
        return
    ledger = QuotaLedger(before, release)
    for key, claim in after.storage.claims.items():
        refusal = None if key in before.storage.claims else ledger.take(claim)
        if refusal is not None:
            raise NotAdmittedError(claim_not_created(claim, pod, refusal))


def with_allowed(
    before: Snapshot, applied: Snapshot, new: Sequence[New], release: Release
) -> tuple[Snapshot, tuple[str | None, ...]]:
    """Return the `applied` cluster whose quotas count the claims and workloads that are `new`, and why each of these is
    refused. Refused objects are removed."""
    namespaces = {item.metadata.namespace for item in new}
    ruled = {*applied.limit_ranges} | applied.terminating_namespaces
    quotas = quotas_of(applied)
    if namespaces.isdisjoint(ruled) and not any(quota.covers(name) for quota in quotas for name in namespaces):
        return applied, (None,) * len(new)
    without = replace(applied.storage, claims=before.storage.claims)
    ledger = QuotaLedger(replace(applied, workloads=before.workloads, storage=without), release)
    refusals = tuple(map(ledger.take, new))
    gone = {
        item.key
        for item, refusal in zip(new, refusals, strict=True)
        if refusal is not None and isinstance(item, PersistentVolumeClaim)
    }
    held = ledger.apply_to(applied)
    if gone:
        claims = {key: claim for key, claim in applied.storage.claims.items() if key not in gone}
        held = held.with_storage(replace(held.storage, claims=claims))
    return held, refusals


def _counted(snapshot: Snapshot, quotas: Sequence[ResourceQuota], on: bool) -> tuple[ResourceQuota, ...]:
    """Count the usage of quotas without a status, and in namespaces that a quota selects since it was counted."""
    return tuple(_counted_quota(snapshot, quota, on) for quota in quotas)


def _counted_quota(snapshot: Snapshot, quota: ResourceQuota, on: bool) -> ResourceQuota:
    if not quota.status.hard:
        namespaces = quota.namespaces if isinstance(quota, SharedQuota) else frozenset([quota.metadata.namespace])
        return with_status(quota, _objects(snapshot, namespaces), pod_level_resources=on)
    if isinstance(quota, SharedQuota) and quota.uncounted:
        items, quota = _objects(snapshot, quota.uncounted), replace(quota, uncounted=frozenset())
        for item in items:
            quota = charge(quota, item, pod_level_resources=on)
    return quota


def _objects(snapshot: Snapshot, namespaces: frozenset[str]) -> Iterator[New]:
    for namespace in sorted(namespaces):
        yield from _objects_in(snapshot, namespace)


def _objects_in(snapshot: Snapshot, namespace: str) -> Iterator[New]:
    pods = snapshot.pods
    yield from (pods[row] for row in pods.rows_in_namespaces(namespace.__eq__).tolist())
    yield from (claim for claim in snapshot.storage.claims.values() if claim.metadata.namespace == namespace)
    yield from (claim for claim in snapshot.devices.claims.values() if claim.metadata.namespace == namespace)
    for kind, space, name in snapshot.workloads:
        if space == namespace and kind in KINDS:
            yield charged_object(kind, space, name)


def has_siblings(snapshot: Snapshot, pod: ObjectMeta) -> bool:
    """Return whether the controller of a pod, or the same Deployment with another template, has pods."""
    owner = pod.controller
    return owner is not None and bool(_members(snapshot, owner.kind, pod.namespace, owner.name))


def _unfinished(snapshot: Snapshot, rows: Iterable[int]) -> int:
    """Return how many of these pods have not finished: only those count against quotas."""
    return sum(snapshot.pods.phases[row] not in FINISHED for row in rows)


_ROWS_BY_CONTROLLER = Memo[Mapping[tuple[str, str], Sequence[int]]]()


def _members(snapshot: Snapshot, kind: str, namespace: str, name: str) -> list[int]:
    """Return the rows of a controller's pods, or of the same Deployment's with another template."""
    names = _sibling_replica_sets(snapshot, namespace, name) if kind == "ReplicaSet" else [name]
    rows = _rows_by_controller(snapshot, namespace)
    return [row for each in names for row in rows.get((kind, each), ())]


def _rows_by_controller(snapshot: Snapshot, namespace: str) -> Mapping[tuple[str, str], Sequence[int]]:
    """Return the pods of a namespace by the kind and name of their controllers, computed once for a snapshot."""

    def group() -> Mapping[tuple[str, str], Sequence[int]]:
        pods = snapshot.pods
        rows = pods.rows_in_namespaces(namespace.__eq__).tolist()
        pairs = ((owner, row) for row in rows for owner in pods.owners[row] if owner.controller)
        return group_pairs(((owner.kind, owner.name), row) for owner, row in pairs)

    return _ROWS_BY_CONTROLLER.of(snapshot.derived, group, namespace)


def _sibling_replica_sets(snapshot: Snapshot, namespace: str, name: str) -> list[str]:
    """Return the names of a ReplicaSet and of the others of its Deployment."""
    raw = snapshot.workloads.get(("ReplicaSet", namespace, name))
    owners = () if raw is None else stored_metadata(raw).owner_references
    deployments = (owner.name for owner in owners if owner.kind == "Deployment")
    siblings = [stored_metadata(each).name for own in deployments for each in snapshot.replica_sets_of(namespace, own)]
    return siblings or [name]


def admitted_pod(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    release: Release,
    plugins: Sequence[str] = (),
    maker: Mapping[str, object] | None = None,
) -> AdmittedPod:
    """Return the admitted pod. A manifest that an API server has stored was admitted before and is unchanged.

    `plugins` are enabled admission plugins besides the default ones; `maker` is the workload with the pod's template.
    If it exists and has pods, it is validated whether it gets another pod or not. Raises InputError if the API server
    would refuse the pod, and UndecidableError if that depends on a kind that the snapshot lacks.
    """
    check_plugins(plugins)
    written = encode(manifest, "pod")
    pod = decode(written, Pod)
    if pod.metadata.is_stored and maker is None:
        pod = default_pod(pod)
        spec = resolve_priority(pod.spec, snapshot.priority_classes)
        return AdmittedPod(pod=msgspec.structs.replace(pod, spec=spec))
    require_for_admission(snapshot, pod, plugins)
    _require_namespace(snapshot, pod)
    kubelet = decode(written, KubeletFields).spec
    _require_service_account(snapshot, pod, kubelet.service_account_name)
    standard = enforced_standard(snapshot, pod.metadata.namespace or DEFAULT_NAMESPACE, release, maker)
    is_there = maker is not None and is_stored(maker) and has_siblings(snapshot, pod.metadata)
    pod_security = standard if isinstance(standard, PodSecurity) and not is_there else None
    try:
        return admit(pod, _context(snapshot, release, plugins, pod_security), kubelet)
    except NotAdmittedError as error:
        raise NotAdmittedError(create_error_text(pod, error.message), place=error.place, hint=error.hint) from None


def readmitted(snapshot: Snapshot, pod: Pod, release: Release, plugins: Sequence[str]) -> Pod | None:
    """Return a stored pod as it would be admitted now, without what a RuntimeClass and LimitRanges had set; None if it
    would be refused, or if their kinds are not known."""
    spec, annotations = pod.spec, pod.metadata.annotations
    is_limited, name = LIMIT_RANGER in annotations, spec.runtime_class_name or ""
    is_unknown = is_limited and snapshot.source.may_lack("LimitRange", pod.metadata.namespace)
    if is_unknown or name not in ("", *snapshot.runtime_classes) or not (is_limited or name):
        return None

    def written(container: Container) -> Container:
        sides = {"request": container.resources.requests, "limit": container.resources.limits}
        kept = [
            {key: amounts[key] for key in amounts if not has_default(annotations, container.name, key, side)}
            for side, amounts in sides.items()
        ]
        return replace(container, resources=replace(container.resources, requests=kept[0], limits=kept[1]))

    containers, inits = (tuple(map(written, them)) for them in (spec.containers, spec.init_containers))
    bare = replace(spec, overhead={}, containers=containers, init_containers=inits)
    try:
        return admit(replace(pod, spec=bare), _context(snapshot, release, plugins, None)).pod
    except InputError:
        return None


_BUILT_IN_NAMESPACES = (DEFAULT_NAMESPACE, "kube-system", "kube-public", "kube-node-lease")
"""Every API server creates them."""


def _refused_by_namespace(snapshot: Snapshot, new: New) -> str | None:
    """Return why a namespace that is being deleted refuses a new object (NamespaceLifecycle)."""
    namespace = new.metadata.namespace or DEFAULT_NAMESPACE
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden_text(new, why) if namespace in snapshot.terminating_namespaces else None


def _require_namespace(snapshot: Snapshot, pod: Pod) -> None:
    """Raise `NotAdmittedError` for a namespace that does not exist or is being deleted."""
    if (refusal := _refused_by_namespace(snapshot, pod)) is not None:
        raise NotAdmittedError(create_error_text(pod, refusal))
    namespace, source = pod.metadata.namespace, snapshot.source
    known = ("", *_BUILT_IN_NAMESPACES, *snapshot.known_namespaces, *source.populated)
    if namespace in known:
        return
    are_dumped = source.is_dump and source.kinds.get("Namespace") and "Namespace" not in source.lacks
    if source.is_complete("Namespace", namespace) or are_dumped:
        hint = _did_you_mean(namespace, snapshot.namespaces) or variables_hint(namespace)
        raise NotAdmittedError(f'namespaces "{namespace}" not found', hint=hint)


def _require_service_account(snapshot: Snapshot, pod: Pod, name: str) -> None:
    """Raise `NotAdmittedError` for a service account that does not exist. Only a list with the namespace's account
    `default`, which its controller creates, is known to be complete."""
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    known = service_accounts(snapshot, namespace)
    if name and "default" in known and name not in known:
        missing = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise NotAdmittedError(create_error_text(pod, forbidden_text(pod, missing)), hint=_did_you_mean(name, known))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = nearest_name(name, known)
    return f'did you mean "{near}"?' if near else ""


def service_accounts(snapshot: Snapshot, namespace: str) -> set[str]:
    """Return the names of the known service accounts of a namespace."""
    accounts = (account.metadata for account in snapshot.of(ServiceAccount))
    return {account.name for account in accounts if account.namespace == namespace}


def _context(
    snapshot: Snapshot, release: Release, plugins: Sequence[str], pod_security: PodSecurity | None
) -> AdmissionContext:
    def enabled(gate: str) -> bool:
        return release.gates.get(gate, False)  # gates of the API server that the version lacks are off

    return AdmissionContext(
        limit_ranges=snapshot.limit_ranges,
        runtime_classes=snapshot.runtime_classes,
        priority_classes=snapshot.priority_classes,
        namespace_annotations=snapshot.namespace_annotations,
        default_node_selector=snapshot.default_node_selector,
        enabled_plugins=tuple(plugins),
        pod_security=pod_security,
        validation=ValidationOptions(
            pod_level_resources=enabled("PodLevelResources"),
            toleration_comparison_operators=enabled("TaintTolerationComparisonOperators"),
        ),
        merges_spread_label_keys=enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge"),
    )


def admission_notes(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    admitted: AdmittedPod,
    release: Release,
    plugins: Sequence[str],
    maker: Mapping[str, object] | None = None,
) -> tuple[Note, ...]:
    """Return what admission changed, one note per object that caused it, and what is unknown."""
    pod = admitted.pod
    security = () if pod.metadata.is_stored else _pod_security(snapshot, manifest, pod, release, maker)
    return (*_unknown(snapshot, pod, plugins), *security, *_changes(admitted))


def _unknown(snapshot: Snapshot, pod: Pod, plugins: Sequence[str]) -> Iterator[Note]:
    for annotation in snapshot.namespace_annotations.get(pod.metadata.namespace, {}):
        plugin = PLUGIN_OF_ANNOTATION.get(annotation, "")
        if plugin and plugin not in plugins:
            yield note(
                "admission-plugin-off",
                f"namespace {pod.metadata.namespace} has the annotation {annotation}: it applies only if the API "
                f"server runs {plugin}, which is off by default",
                plugin=plugin,
                annotation=annotation,
            )


def _pod_security(
    snapshot: Snapshot, manifest: Mapping[str, object], pod: Pod, release: Release, maker: Mapping[str, object] | None
) -> Iterator[Note]:
    namespace = pod.metadata.namespace
    standard = enforced_standard(snapshot, namespace, release, maker)
    if isinstance(standard, Note):
        yield standard
        return
    kubelet = kubelet_spec(manifest)
    refusal = None if standard is None else standard.refusal(pod, kubelet)
    if refusal is not None:
        yield note(
            "pod-security-refuses-more",
            f"namespace {namespace} refuses new pods of this template ({refusal}): the running pods are older than its "
            "label, or a webhook changes them",
            namespace=namespace,
            refusal=refusal,
        )
        return
    warning = admission_warning(snapshot, pod, kubelet, release, maker)
    if warning:
        yield security_warning(namespace, warning)


def security_warning(namespace: str, warning: str, workload: str = "") -> Note:
    """Return the API server's warning about a pod, or about a workload whose pods it will refuse."""
    if workload:
        text = f"kubectl apply only warns: it creates the {workload}, but its pods are refused"
    else:
        text = f"kubectl apply warns but admits the pod: {warning}"
    return note("pod-security-warning", text, namespace=namespace, warning=warning)


def _changes(admitted: AdmittedPod) -> Iterator[Note]:
    spec = admitted.pod.spec
    for (plugin, source), group in groupby(admitted.changes, key=lambda change: (change.plugin, change.source)):
        changes = tuple(group)
        if plugin == PRIORITY:
            if spec.priority_class_name:
                is_default = any(change.item == "priorityClassName" for change in changes)
                named, is_routine = f"PriorityClass {spec.priority_class_name}", not is_default
                phrase = f"{', the global default,' if is_default else ''} set priority {spec.priority}"
                yield _change_note(plugin, named, changes, phrase, is_routine=is_routine)
        else:
            phrase = f" {'; '.join(_clauses(changes))}"
            yield _change_note(plugin, source, changes, phrase, is_routine=plugin == DEFAULT_TOLERATION_SECONDS)


def _change_note(
    plugin: str, source: str, changes: Sequence[AdmissionChange], phrase: str, *, is_routine: bool
) -> Note:
    """Note a plugin's changes because of one object, such as `LimitRange shop/defaults`; empty without one."""
    changed = [{"container": it.container, "item": it.item, "before": it.before, "after": it.after} for it in changes]
    text = f"{source or plugin}{phrase}"
    return note(ROUTINE if is_routine else "admission", text, plugin=plugin, source=source, changes=changed)


def _clauses(changes: Sequence[AdmissionChange]) -> Iterator[str]:
    """Yield `set requests.cpu 100m, limits.cpu 500m on container web`, `added toleration kata:NoSchedule op=Exists`."""
    by_container = groupby(changes, key=lambda change: change.container)
    set_fields = (
        (", ".join(f"{change.item} {change.after}" for change in group if change.item != "toleration"), container)
        for container, group in by_container
    )
    for values, containers in group_pairs(item for item in set_fields if item[0]).items():
        names = ", ".join(filter(None, containers))
        where = f" on container{'s' if len(containers) > 1 else ''} {names}" if names else ""
        yield f"set {values}{where}"
    tolerations = [change for change in changes if change.item == "toleration"]
    for verb, texts in (
        ("added", [change.after for change in tolerations if change.after]),
        ("dropped", [change.before for change in tolerations if change.before]),
    ):
        if texts:
            yield f"{verb} toleration{'s' if len(texts) > 1 else ''} {', '.join(texts)}"


# Pods that could not be created, according to events of their controllers.


def recorded_refusal(snapshot: Snapshot, pod: Pod) -> RecordedEvent | None:
    """Return the controller's last refusal of such a pod; None if it has its pods or there is no event."""
    owner = pod.metadata.controller
    key = ("", "", "") if owner is None else (owner.kind, pod.metadata.namespace, owner.name)
    event = snapshot.failed_creates.get(key)
    if event is None or owner is None or _is_past(event, snapshot, *key):
        return None
    is_of_another = bool(event.uid and owner.uid) and event.uid != owner.uid
    return None if is_of_another else event


def _is_past(event: RecordedEvent, snapshot: Snapshot, kind: str, namespace: str, name: str) -> bool:
    """Return whether a controller has all of its pods, or has created any after its last refusal. Of a kind that keeps
    the refusal as a condition, one pod is enough."""
    raw = snapshot.workloads.get((kind, namespace, name)) if kind in _WITHOUT_CONDITION else None
    wanted = 1 if raw is None else stored_controller(raw).wanted_pods
    has_all = _unfinished(snapshot, _members(snapshot, kind, namespace, name)) >= wanted
    return has_all or has_created_since(event, snapshot, kind, namespace, name)


_WITHOUT_CONDITION = ("StatefulSet", "DaemonSet", "Job")
"""Kinds whose status does not say that the API server refuses pods."""


def has_created_since(event: RecordedEvent, snapshot: Snapshot, kind: str, namespace: str, name: str) -> bool:
    """Return whether a controller has created a pod after its last refusal."""
    stamps, rows = snapshot.pods.creation_timestamps, _members(snapshot, kind, namespace, name)
    return bool(event.last_seen) and any((stamps[row] or "") > event.last_seen for row in rows)


def without_pods(snapshot: Snapshot, within: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace, and name of owners in a namespace, or in all, that have no pods and whose controller
    reports why."""
    for (kind, namespace, name), event in snapshot.failed_creates.items():
        raw = snapshot.workloads.get((kind, namespace, name)) if within in (None, namespace) else None
        wants_pods = raw is not None and (kind == "CronJob" or stored_controller(raw).wants_pods)
        if wants_pods and not _is_past(event, snapshot, kind, namespace, name):
            yield kind, namespace, name

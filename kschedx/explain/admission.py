"""A manifest as the API server of a snapshot's cluster would store it, and what a reader should know about that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from kschedx.api.admission import (
    DEFAULT_TOLERATION_SECONDS,
    PRIORITY,
    AdmissionContext,
    Admitted,
    PodSecurity,
    admit,
    check_plugins,
)
from kschedx.api.decode import decode
from kschedx.api.defaulting import DEFAULT_NAMESPACE, default_pod
from kschedx.api.given import encoded
from kschedx.api.kubelet_fields import KubeletFields
from kschedx.api.optional_admission import PLUGIN_OF_ANNOTATION
from kschedx.api.priority import resolve_priority
from kschedx.api.resource_quota import not_created
from kschedx.api.stored import is_stored
from kschedx.api.types import Pod
from kschedx.api.validation_parts import ValidationOptions
from kschedx.errors import NotAdmittedError, nearest
from kschedx.explain.missing import require_for_admission
from kschedx.explain.notes import admission as notes
from kschedx.explain.notes.admission import AdmissionNote, PodSecurityUnread
from kschedx.explain.pod_security import enforced, warned
from kschedx.explain.quotas import has_siblings
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot


def admitted_pod(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    release: Release,
    plugins: Sequence[str] = (),
    maker: Mapping[str, object] | None = None,
) -> Admitted:
    """The typed pod. A manifest with a creation timestamp was admitted when it was created, and is not again.

    `plugins` are admission plugins that the API server runs beyond its default ones, `maker` is the workload whose
    template the pod has: one of the cluster with pods is looked at, whether it gets another one or not. Raises
    InputError where the API server would refuse the pod, and UndecidableError where it reads a kind that the snapshot
    could not.
    """
    check_plugins(plugins)
    written = encoded(manifest, "pod")
    pod = decode(written, Pod)
    if pod.metadata.creation_timestamp:
        pod = default_pod(pod)
        spec = resolve_priority(pod.spec, snapshot.priority_classes)
        return Admitted(pod=msgspec.structs.replace(pod, spec=spec))
    require_for_admission(snapshot, pod, plugins)
    _require_namespace(snapshot, pod.metadata.namespace)
    kubelet = decode(written, KubeletFields).spec
    standard = enforced(snapshot, pod.metadata.namespace or DEFAULT_NAMESPACE, release, maker)
    is_there = maker is not None and is_stored(maker) and has_siblings(snapshot, pod.metadata)
    pod_security = standard if isinstance(standard, PodSecurity) and not is_there else None
    try:
        return admit(pod, _context(snapshot, release, plugins, pod_security), kubelet)
    except NotAdmittedError as error:
        raise NotAdmittedError(not_created(pod, error.message), place=error.place, hint=error.hint) from None


def _require_namespace(snapshot: Snapshot, namespace: str) -> None:
    """Raise `NotAdmittedError` for one that is known not to be there (NamespaceLifecycle)."""
    source = snapshot.source
    lived_in = {*snapshot.pods.namespaces.values, *(space for _, space, _ in snapshot.workloads)}
    if namespace in ("", "default") or namespace in snapshot.namespaces or namespace in lived_in:
        return
    are_dumped = source.is_dump and source.kinds.get("Namespace") and "Namespace" not in source.lacks
    if source.is_complete("Namespace", namespace) or are_dumped:
        hint = nearest(namespace, snapshot.namespaces)
        raise NotAdmittedError(f'namespaces "{namespace}" not found', hint=hint)


def _context(
    snapshot: Snapshot, release: Release, plugins: Sequence[str], pod_security: PodSecurity | None
) -> AdmissionContext:
    def enabled(gate: str) -> bool:
        return release.gates.get(gate, False)  # gates of the API server that the release does not have are off

    return AdmissionContext(
        limit_ranges=snapshot.limit_ranges,
        runtime_classes=snapshot.runtime_classes if _knows_runtime_classes(snapshot) else None,
        priority_classes=snapshot.priority_classes,
        namespace_annotations=snapshot.namespace_annotations,
        enabled_plugins=tuple(plugins),
        pod_security=pod_security,
        validation=ValidationOptions(
            pod_level_resources=enabled("PodLevelResources"),
            toleration_comparison_operators=enabled("TaintTolerationComparisonOperators"),
        ),
        merges_spread_label_keys=enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge"),
    )


def _knows_runtime_classes(snapshot: Snapshot) -> bool:
    """A dump without the kind looks like a cluster without any."""
    return bool(snapshot.runtime_classes) or snapshot.source.is_complete("RuntimeClass")


def admission_notes(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    admitted: Admitted,
    release: Release,
    plugins: Sequence[str],
    maker: Mapping[str, object] | None = None,
) -> tuple[AdmissionNote, ...]:
    """What admission changed, a note for each object that wanted it, and what it could not know."""
    pod = admitted.pod
    security = () if pod.metadata.creation_timestamp else _pod_security(snapshot, manifest, pod, release, maker)
    return (*_unknown(snapshot, pod, plugins), *security, *_changes(admitted))


def _unknown(snapshot: Snapshot, pod: Pod, plugins: Sequence[str]) -> Iterator[AdmissionNote]:
    name = pod.spec.runtime_class_name
    if name is not None and not _knows_runtime_classes(snapshot) and not pod.metadata.creation_timestamp:
        yield notes.RuntimeClassUnknown(runtime_class=name)
    for annotation in snapshot.namespace_annotations.get(pod.metadata.namespace, {}):
        plugin = PLUGIN_OF_ANNOTATION[annotation]
        if plugin not in plugins:
            yield notes.AdmissionPluginOff(namespace=pod.metadata.namespace, annotation=annotation, plugin=plugin)


def _pod_security(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    pod: Pod,
    release: Release,
    maker: Mapping[str, object] | None,
) -> Iterator[AdmissionNote]:
    namespace = pod.metadata.namespace
    standard = enforced(snapshot, namespace, release, maker)
    if isinstance(standard, PodSecurityUnread):
        yield standard
        return
    kubelet = decode(encoded(manifest, "pod"), KubeletFields).spec
    refusal = None if standard is None else standard.refusal(pod, kubelet)
    if refusal is not None:
        yield notes.PodSecurityRefusesMore(namespace=namespace, refusal=refusal)
        return
    warning = warned(snapshot, pod, kubelet, release, maker)
    if warning:
        yield notes.PodSecurityWarning(namespace=namespace, warning=warning)


def _changes(admitted: Admitted) -> Iterator[AdmissionNote]:
    spec = admitted.pod.spec
    for (plugin, source), group in groupby(admitted.changes, key=lambda change: (change.plugin, change.source)):
        changes = tuple(group)
        if plugin == PRIORITY:
            if spec.priority_class_name:
                is_default = any(change.item == "priorityClassName" for change in changes)
                yield (notes.DefaultPriority if is_default else notes.NamedPriority)(
                    plugin=plugin,
                    source=f"PriorityClass {spec.priority_class_name}",
                    changes=changes,
                    priority=spec.priority,
                )
        elif plugin == DEFAULT_TOLERATION_SECONDS:
            yield notes.AdmittedAsEveryPod(plugin=plugin, source=source, changes=changes)
        else:
            yield notes.Admitted(plugin=plugin, source=source, changes=changes)

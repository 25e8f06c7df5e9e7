"""A manifest as the API server of a snapshot's cluster would store it, and what a reader should know about that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from kschedx.api.admission import (
    DEFAULT_TOLERATION_SECONDS,
    PRIORITY,
    AdmissionChange,
    AdmissionContext,
    Admitted,
    admit,
    check_plugins,
)
from kschedx.api.decode import decode
from kschedx.api.defaulting import default_pod
from kschedx.api.given import encoded
from kschedx.api.optional_admission import PLUGIN_OF_ANNOTATION
from kschedx.api.priority import resolve_priority
from kschedx.api.types import Pod
from kschedx.api.validation import ValidationOptions
from kschedx.errors import NotAdmittedError, nearest
from kschedx.explain.missing import require_for_admission
from kschedx.explain.notes import Note
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot

ADMISSION = "admission"
ROUTINE = "admission-routine"
"""The id of notes about what happens to every pod, or what the manifest itself asks for."""


def admitted_pod(
    snapshot: Snapshot, manifest: Mapping[str, object], release: Release, plugins: Sequence[str] = ()
) -> Admitted:
    """The typed pod. A manifest with a creation timestamp was admitted when it was created, and is not again.

    `plugins` are admission plugins that the API server runs beyond its default ones. Raises InputError where the API
    server would refuse the pod, and UndecidableError where it reads a kind that the snapshot could not.
    """
    check_plugins(plugins)
    pod = decode(encoded(manifest, "pod"), Pod)
    if pod.metadata.creation_timestamp:
        pod = default_pod(pod)
        spec = resolve_priority(pod.spec, snapshot.priority_classes)
        return Admitted(pod=msgspec.structs.replace(pod, spec=spec))
    require_for_admission(snapshot, pod, plugins)
    _require_namespace(snapshot, pod.metadata.namespace)
    return admit(pod, _context(snapshot, release, plugins))


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


def _context(snapshot: Snapshot, release: Release, plugins: Sequence[str]) -> AdmissionContext:
    def enabled(gate: str) -> bool:
        return release.gates.get(gate, False)  # gates of the API server that the release does not have are off

    return AdmissionContext(
        limit_ranges=snapshot.limit_ranges,
        runtime_classes=snapshot.runtime_classes if _knows_runtime_classes(snapshot) else None,
        priority_classes=snapshot.priority_classes,
        namespace_annotations=snapshot.namespace_annotations,
        enabled_plugins=tuple(plugins),
        validation=ValidationOptions(
            pod_level_resources=enabled("PodLevelResources"),
            toleration_comparison_operators=enabled("TaintTolerationComparisonOperators"),
        ),
        merges_spread_label_keys=enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge"),
    )


def _knows_runtime_classes(snapshot: Snapshot) -> bool:
    """A dump without the kind looks like a cluster without any."""
    return bool(snapshot.runtime_classes) or snapshot.source.is_complete("RuntimeClass")


def admission_notes(snapshot: Snapshot, admitted: Admitted, plugins: Sequence[str]) -> tuple[Note, ...]:
    """What admission changed, a note for each object that wanted it, and what it could not know."""
    return (*_unknown(snapshot, admitted.pod, plugins), *_changes(admitted))


def _unknown(snapshot: Snapshot, pod: Pod, plugins: Sequence[str]) -> Iterator[Note]:
    name = pod.spec.runtime_class_name
    if name is not None and not _knows_runtime_classes(snapshot) and not pod.metadata.creation_timestamp:
        yield Note(
            id="missing-kind",
            text=f"the snapshot holds no RuntimeClass: what {name} adds to its pods (overhead, node selector, "
            "tolerations) does not count",
        )
    for annotation in snapshot.namespace_annotations.get(pod.metadata.namespace, {}):
        plugin = PLUGIN_OF_ANNOTATION[annotation]
        if plugin not in plugins:
            yield Note(
                id="admission-plugin-off",
                text=f"namespace {pod.metadata.namespace} has the annotation {annotation}: it counts only where the "
                f"API server runs {plugin}, which is off unless enabled",
                facts={"plugin": plugin, "annotation": annotation},
            )


def _changes(admitted: Admitted) -> Iterator[Note]:
    for (plugin, source), group in groupby(admitted.changes, key=lambda change: (change.plugin, change.source)):
        changes = tuple(group)
        spec = admitted.pod.spec
        identifier = ADMISSION
        if plugin == PRIORITY:
            if not spec.priority_class_name:
                continue
            is_default = any(change.item == "priorityClassName" for change in changes)
            identifier = ADMISSION if is_default else ROUTINE
            source = f"PriorityClass {spec.priority_class_name}"
            text = f"{source}{', the global default,' if is_default else ''} set priority {spec.priority}"
        else:
            identifier = ROUTINE if plugin == DEFAULT_TOLERATION_SECONDS else ADMISSION
            text = f"{source or plugin} {'; '.join(_clauses(changes))}"
        yield Note(
            id=identifier,
            text=text,
            facts={"plugin": plugin, "source": source, "changes": [_fact(change) for change in changes]},
        )


def _fact(change: AdmissionChange) -> dict[str, str]:
    return {
        "container": change.container,
        "item": change.item,
        "before": change.before,
        "after": change.after,
    }


def _clauses(changes: Sequence[AdmissionChange]) -> Iterator[str]:
    """`set requests.cpu 100m, limits.cpu 500m on container web`, `added toleration kata:NoSchedule op=Exists`."""
    containers_of: dict[str, list[str]] = {}
    for container, group in groupby(changes, key=lambda change: change.container):
        values = ", ".join(f"{change.item} {change.after}" for change in group if change.item != "toleration")
        if values:
            containers_of.setdefault(values, []).append(container)
    for values, containers in containers_of.items():
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

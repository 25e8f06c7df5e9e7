"""What the API server changes on a manifest, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import assert_never

from kschedx.api.admission import AdmissionChange
from kschedx.explain.notes.admission import (
    AdmissionNote,
    AdmissionPluginOff,
    Admitted,
    AdmittedAsEveryPod,
    DefaultPriority,
    NamedPriority,
    PodSecurityRefusesMore,
    PodSecurityUnread,
    PodSecurityWarning,
    RuntimeClassUnknown,
)


def text(note: AdmissionNote) -> str:
    match note:
        case RuntimeClassUnknown(runtime_class=name):
            return (
                f"the snapshot holds no RuntimeClass: what {name} adds to its pods (overhead, node selector, "
                "tolerations) does not count"
            )
        case AdmissionPluginOff(plugin=plugin):
            return (
                f"namespace {note.namespace} has the annotation {note.annotation}: it counts only where the API server "
                f"runs {plugin}, which is off unless enabled"
            )
        case PodSecurityUnread(namespace=namespace, level=level, is_cut=is_cut):
            why = "which the snapshot does not hold enough of the template for"
            if not is_cut:
                why = "after SecurityContextConstraints, which are not known here, have filled in the pod"
            return (
                f"namespace {namespace} enforces Pod Security {level}, {why}: whether the API server takes the pod is "
                "open (--dry-run=server asks)"
            )
        case PodSecurityRefusesMore(namespace=namespace, refusal=refusal):
            return (
                f"namespace {namespace} would take no other pod of this template ({refusal}): those that run are older "
                "than its label, or something changes them on their way"
            )
        case PodSecurityWarning(warning=warning):
            return f"kubectl apply warns, and the pod is let in: {warning}"
        case DefaultPriority(source=source, priority=priority):
            return f"{source}, the global default, set priority {priority}"
        case NamedPriority(source=source, priority=priority):
            return f"{source} set priority {priority}"
        case AdmittedAsEveryPod() | Admitted():
            return f"{note.source or note.plugin} {'; '.join(_clauses(note.changes))}"
        case _:
            assert_never(note)


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

"""What the API server changes on a manifest before kube-scheduler sees the pod, and what of that is not known."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kschedx.api.admission import AdmissionChange
from kschedx.explain.notes.facts import NoteFacts

ROUTINE = "admission-routine"
"""The id of notes about what happens to every pod, or what the manifest itself asks for."""


class RuntimeClassUnknown(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "missing-kind"
    runtime_class: str


class AdmissionPluginOff(NoteFacts, frozen=True, kw_only=True):
    """An annotation of the namespace that counts only for an API server that runs an optional plugin."""

    id: ClassVar[str] = "admission-plugin-off"
    namespace: str
    annotation: str
    plugin: str

    @property
    def facts(self) -> dict[str, object]:
        return {"plugin": self.plugin, "annotation": self.annotation}


class PodSecurityUnread(NoteFacts, frozen=True, kw_only=True):
    """A namespace that enforces a Pod Security Standard, where it cannot be known if a pod keeps to it."""

    id: ClassVar[str] = "pod-security"
    namespace: str
    level: str
    """`baseline` or `restricted`, as its label says."""
    is_cut: bool
    """The pod's template is of a snapshot that holds what scheduling reads; otherwise SecurityContextConstraints fill
    in what the pod does not say."""

    @property
    def facts(self) -> dict[str, object]:
        return {"namespace": self.namespace, "level": self.level}


class PodSecurityRefusesMore(NoteFacts, frozen=True, kw_only=True):
    """A workload that has pods, and would get no other."""

    id: ClassVar[str] = "pod-security-refuses-more"
    namespace: str
    refusal: str
    """In the API server's words."""

    @property
    def facts(self) -> dict[str, object]:
        return {"namespace": self.namespace, "refusal": self.refusal}


class PodSecurityWarning(NoteFacts, frozen=True, kw_only=True):
    """What the API server warns of and lets in."""

    id: ClassVar[str] = "pod-security-warning"
    namespace: str
    warning: str
    """As kubectl prints it."""

    @property
    def facts(self) -> dict[str, object]:
        return {"namespace": self.namespace, "warning": self.warning}


class Admitted(NoteFacts, frozen=True, kw_only=True):
    """What one plugin changed because of one object."""

    id: ClassVar[str] = "admission"
    plugin: str
    source: str
    """`LimitRange shop/defaults`; empty where the plugin needs none."""
    changes: tuple[AdmissionChange, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {
            "plugin": self.plugin,
            "source": self.source,
            "changes": [
                {"container": one.container, "item": one.item, "before": one.before, "after": one.after}
                for one in self.changes
            ],
        }


class AdmittedAsEveryPod(Admitted, frozen=True, kw_only=True):
    id: ClassVar[str] = ROUTINE


class DefaultPriority(Admitted, frozen=True, kw_only=True):
    """The cluster's default PriorityClass, which the manifest does not name."""

    priority: int | None


class NamedPriority(Admitted, frozen=True, kw_only=True):
    """The PriorityClass that the manifest names."""

    id: ClassVar[str] = ROUTINE
    priority: int | None


AdmissionNote: TypeAlias = (
    RuntimeClassUnknown
    | AdmissionPluginOff
    | PodSecurityUnread
    | PodSecurityRefusesMore
    | PodSecurityWarning
    | Admitted
    | AdmittedAsEveryPod
    | DefaultPriority
    | NamedPriority
)

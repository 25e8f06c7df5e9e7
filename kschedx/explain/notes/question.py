"""How the question was understood: which manifest stands for a pod, what was done to it, what is hardly meant."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.explain.notes.facts import NoteFacts
from kschedx.framework.cycle import Outcome


class ForeignWorkload(NoteFacts, frozen=True, kw_only=True):
    """A pod template in an object that is no kind of Kubernetes' own."""

    id: ClassVar[str] = "foreign-workload"
    kind: str
    group: str
    api_version: object
    """As the manifest has it."""
    path: str
    """Where the template is."""

    @property
    def facts(self) -> dict[str, object]:
        return {"apiVersion": self.api_version, "path": self.path}


class ManifestLeftOut(NoteFacts, frozen=True, kw_only=True):
    """A file of a folder that holds no Kubernetes objects."""

    id: ClassVar[str] = "left-out"
    source: str
    why: str
    """As its reader says it."""

    @property
    def facts(self) -> dict[str, object]:
        return {"source": self.source}


class OldVersion(NoteFacts, frozen=True, kw_only=True):
    """A workload in a version that no API server serves any more."""

    id: ClassVar[str] = "old-api-version"
    kind: str
    api_version: str
    since: str

    @property
    def facts(self) -> dict[str, object]:
        return {"apiVersion": self.api_version, "since": self.since}


class AppliedTogether(NoteFacts, frozen=True, kw_only=True):
    """Other objects of the files."""

    id: ClassVar[str] = "applied-together"
    objects: tuple[str, ...]
    """`Service web`."""

    @property
    def facts(self) -> dict[str, object]:
        return {"objects": list(self.objects)}


class NotApplied(NoteFacts, frozen=True, kw_only=True):
    """An object of the files that the API server refuses."""

    id: ClassVar[str] = "not-applied"
    what: str
    """`PersistentVolumeClaim data`."""
    refusal: str
    """The API server's words."""

    @property
    def facts(self) -> dict[str, object]:
        return {"object": self.what, "refusal": self.refusal}


class UnlikelyAmount(NoteFacts, frozen=True, kw_only=True):
    """An amount with a suffix that is hardly meant."""

    id: ClassVar[str] = "unlikely-amount"
    container: str
    resource: str
    amount: str
    is_really: int
    """Processors or bytes; 0 for less than one."""
    meant: str

    @property
    def facts(self) -> dict[str, object]:
        return {
            "container": self.container,
            "resource": self.resource,
            "amount": self.amount,
            "meant": self.meant,
        }


class FieldDifference(Struct, frozen=True, kw_only=True):
    path: str
    """`spec.containers[0].image`."""
    theirs: str
    """JSON."""
    ours: str


class DryRun(NoteFacts, frozen=True, kw_only=True):
    """What the API server's dry run made of the manifest."""

    id: ClassVar[str] = "dry-run"
    differences: tuple[FieldDifference, ...]
    """From the pod that kschedx makes."""
    error: str = ""
    """Why kschedx could not admit it by itself."""


class Tried(NoteFacts, frozen=True, kw_only=True):
    """The pod with changes that somebody wants to try."""

    id: ClassVar[str] = "tried"
    changes: tuple[str, ...]
    """As they were typed."""
    before: Outcome
    """Without them."""

    @property
    def facts(self) -> dict[str, object]:
        return {"changes": list(self.changes), "before": self.before.value}


class AfterChanges(NoteFacts, frozen=True, kw_only=True):
    """The cluster after changes that somebody wants to try."""

    id: ClassVar[str] = "after-changes"
    changes: tuple[str, ...]
    """As they were typed: `scale deploy/web=10`."""
    moved: tuple[str, ...] = ()
    """Pods, `namespace/name`, that lost their nodes to them and found others."""
    waiting: tuple[str, ...] = ()
    """Those that found none."""
    gone: tuple[str, ...] = ()
    """Those that nobody makes anew."""

    @property
    def facts(self) -> dict[str, object]:
        lost = {"moved": self.moved, "waiting": self.waiting, "gone": self.gone}
        return {"changes": list(self.changes), **{name: list(pods) for name, pods in lost.items() if pods}}


class RunsAlready(NoteFacts, frozen=True, kw_only=True):
    """The pod has a node, and was looked at as if it had none."""

    id: ClassVar[str] = "runs-already"
    node: str


QuestionNote: TypeAlias = (
    ForeignWorkload
    | RunsAlready
    | ManifestLeftOut
    | OldVersion
    | AppliedTogether
    | NotApplied
    | UnlikelyAmount
    | DryRun
    | Tried
    | AfterChanges
)

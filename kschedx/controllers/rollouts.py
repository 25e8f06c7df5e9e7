"""How far workload controllers have come in replacing pods of older templates."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.controllers.deployment import NoRollout, UpdateStrategy
from kschedx.controllers.workloads import Workload
from kschedx.kube.documents import Document


class RolloutDocument(Document, frozen=True, omit_defaults=True):
    """How far a workload's controller has come in replacing pods of older templates."""

    reference: str = field(name="workload")
    old: int  # pods of older templates when the rollout began, without pods that keep their template
    replaced: int
    waiting: int  # pending pods of the new template
    is_done: bool = field(name="done")
    refusal: str = ""  # why the API server admits no more pods, in their controller's message
    kept: tuple[str, ...] = ()
    """Older pods, `namespace/name`, for which the rollout waits: no kubelet confirms their deletion."""


class Rollout(Struct, kw_only=True):
    workload: Workload
    strategy: UpdateStrategy
    old: int
    replaced: int = 0
    waiting: int = 0
    refusal: str = ""
    kept: tuple[str, ...] = ()
    unready: str = ""  # the pod, `namespace/name`, that has to be ready before the controller of a StatefulSet goes on
    lost_node: str = ""  # the node of `unready`, if it is lost

    @property
    def reference(self) -> str:
        return self.workload.reference

    @property
    def is_done(self) -> bool:
        return self.replaced == self.old and not (self.waiting or self.refusal or self.kept)

    @property
    def stalls(self) -> bool:
        return not self.is_done and not isinstance(self.strategy, NoRollout)

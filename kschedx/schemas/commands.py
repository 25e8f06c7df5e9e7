"""Documents with the keys that a command adds to those of the package that creates the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

from kschedx.autoscaler.cluster import AutoscalerGrowthDocument
from kschedx.autoscaler.scale_down import ScaleDownDocument
from kschedx.controllers.states import StateDocument
from kschedx.framework.config.advice import Advice
from kschedx.framework.cycle import Outcome
from kschedx.framework.registry import KnownPlugin
from kschedx.holding.model import Holding
from kschedx.inquiry.daemon_set import DaemonSetDocument
from kschedx.inquiry.document import ExplanationDocument, ExtensionPoints, FixDocument, KubeletDocument
from kschedx.inquiry.explanation import ReplicasDocument
from kschedx.inquiry.group_scaling import ScalingDocument
from kschedx.inquiry.pending_pods import SharedFixDocument
from kschedx.inquiry.pool_scaling import ProvisioningDocument
from kschedx.inquiry.profile_difference import ProfileDifferenceDocument, Shard
from kschedx.inquiry.simulation import SimulationDocument
from kschedx.inquiry.stalled_drain import BudgetFixDocument
from kschedx.karpenter.cluster import KarpenterGrowthDocument
from kschedx.karpenter.consolidation import ConsolidationDocument
from kschedx.karpenter.disruption import DisruptionDocument
from kschedx.kube.documents import Document, Json
from kschedx.simulate.repack import EmptiedDocument

# `kschedx why`.


class ScalingOutput(ScalingDocument, frozen=True, kw_only=True, omit_defaults=True):
    """In a cluster that has both autoscalers, Karpenter's answer stands in cluster-autoscaler's."""

    karpenter: ProvisioningDocument | None = None


def _holding_schema() -> Json:
    from kschedx.kueue.verdict import Verdict
    from kschedx.schemas.parts import facts_schema

    return facts_schema(Holding, {"Verdict": Verdict})


class ExplanationOutput(ExplanationDocument, frozen=True, kw_only=True, omit_defaults=True):
    autoscaler: ScalingOutput | ProvisioningDocument | None = None
    kubelet: KubeletDocument | None = None
    state: StateDocument = field(default_factory=dict)
    overall: Outcome | None = None
    replicas: ReplicasDocument | None = None
    holding: Annotated[Json, Meta(extra_json_schema=_holding_schema())] = field(default_factory=dict)
    daemon_set: DaemonSetDocument | None = None


class PodReason(Document, frozen=True):
    pod: str
    reason: str


class RefusedPod(PodReason, frozen=True, omit_defaults=True):
    fixes: tuple[FixDocument, ...] = ()


class ExplanationListDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    items: tuple[ExplanationOutput, ...]
    undecided: tuple[PodReason, ...]
    refused: tuple[RefusedPod, ...] = ()
    shard: Shard | None = None


class DifferenceOutput(ProfileDifferenceDocument, frozen=True, omit_defaults=True):
    shard: Shard | None = None


# `kschedx simulate`, `drain`, `fit`, and `scale-down`.


class GrowthOutput(AutoscalerGrowthDocument, frozen=True, omit_defaults=True):
    karpenter: KarpenterGrowthDocument | None = None


class SimulationOutput(SimulationDocument, frozen=True, kw_only=True, omit_defaults=True):
    states: tuple[StateDocument, ...]
    fixes: tuple[SharedFixDocument, ...] = ()
    budget_fixes: tuple[BudgetFixDocument, ...] = ()
    ties: str = ""
    autoscaler: GrowthOutput | KarpenterGrowthDocument | None = None


class FitListDocument(Document, frozen=True):
    items: tuple[Annotated[Json, Meta(extra_json_schema={"required": ["kind"]})], ...]
    """One Fit or Explanation per workload."""


class ScaleDownOutput(ScaleDownDocument, frozen=True, omit_defaults=True):
    karpenter: Mapping[str, DisruptionDocument] = {}
    consolidation: ConsolidationDocument | None = None
    together: EmptiedDocument | None = None


# The documents of commands about clusters, profiles, and plugins.


class ProfileListing(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Of a Policy the predicates and priorities, since nothing else of it is expanded."""

    name: str
    kubernetes_version: str
    configuration: Json = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    extension_points: ExtensionPoints = field(default_factory=dict)


class ProfileCheckDocument(Document, frozen=True):
    name: str
    kubernetes_version: str
    advice: tuple[Advice, ...]


class PluginListDocument(Document, frozen=True):
    kubernetes_version: str
    items: tuple[KnownPlugin, ...]

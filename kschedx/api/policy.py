"""Typed slim records of policy/v1."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32, Int64
from kschedx.api.selectors import LabelSelector
from kschedx.api.types import ObjectMeta


class BudgetMeta(ObjectMeta, frozen=True, kw_only=True, rename="camel"):
    generation: Int64 = 0


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    """A number of pods, or a percentage of them."""
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    disruptions_allowed: Int32 | None = None
    """None where no controller has looked at it; whoever reads it then takes it for 0."""
    current_healthy: Int32 | None = None
    desired_healthy: Int32 | None = None
    disrupted_pods: dict[str, str] = {}
    observed_generation: Int64 = 0


class PodDisruptionBudget(Struct, frozen=True, kw_only=True):
    metadata: BudgetMeta = BudgetMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

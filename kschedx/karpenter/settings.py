"""How Karpenter runs, as far as its answers depend on it. Upstream: pkg/operator/options."""

from __future__ import annotations

from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    prefers: bool = True
    """--preference-policy=Respect: preferences are demands until nothing else helps."""
    relaxes_min_values: bool = False
    """--min-values-policy=BestEffort."""
    ignores_devices: bool = True
    """--ignore-dra-requests."""

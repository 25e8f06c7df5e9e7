"""A change that makes Karpenter help, as facts. `render/words/karpenter.py` has its title."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from kschedx.autoscaler.remedies import RequestAtMost, TolerateTaints


class Limit(Struct, frozen=True, kw_only=True):
    """One of a pool's limits, as it is written."""

    resource: str
    before: str
    after: str


class RaiseLimits(Struct, frozen=True, kw_only=True):
    """All that keep a pool from another node: one alone would not help."""

    pool: str
    limits: tuple[Limit, ...]


class LabelPool(Struct, frozen=True, kw_only=True):
    """Its new nodes get a label that the pod asks for."""

    pool: str
    key: str
    value: str


class AllowValues(Struct, frozen=True, kw_only=True):
    """In a pool's requirement on a key."""

    pool: str
    key: str
    values: tuple[str, ...]


RemedyStep: TypeAlias = TolerateTaints | RequestAtMost | RaiseLimits | LabelPool | AllowValues


class KarpenterRemedy(Struct, frozen=True, kw_only=True):
    """A change, and what Karpenter does then."""

    step: RemedyStep
    pool: str
    """That gets a node."""
    types: tuple[str, ...]
    """That the node can be of; empty where the types that would do are not known."""

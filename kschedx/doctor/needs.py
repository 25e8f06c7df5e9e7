"""What each kind is needed for: which plugins ask for it, and what is unknown without it."""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.api.kinds import KINDS
from kschedx.doctor.findings import Weakness

UNKNOWN_PODS = (
    Weakness(plugins=("NodeResourcesFit", "NodePorts"), effect="optimistic: unknown pods hold nothing"),
    Weakness(plugins=("InterPodAffinity", "PodTopologySpread"), effect="unknown pods do not count"),
    Weakness(plugins=("DefaultPreemption",), effect="unknown pods are no victims"),
)
"""What is weaker where pods are missing."""


def weakness(kind: str) -> tuple[Weakness, ...]:
    """Of what depends on a kind that is missing."""
    if kind == "Pod":
        return UNKNOWN_PODS
    return (Weakness(plugins=KINDS[kind].read_by, effect=f"unknown: {KINDS[kind].leaves}"),)


def weakness_without(kinds: Iterable[str]) -> tuple[Weakness, ...]:
    """Of what depends on several kinds of which not everything is there: a line for the plugins that need the same."""
    found: list[Weakness] = []
    needing: dict[tuple[str, ...], list[str]] = {}
    for kind in dict.fromkeys(kinds):
        if kind == "Pod":
            found += UNKNOWN_PODS
        else:
            needing.setdefault(KINDS[kind].read_by, []).append(kind)
    for plugins, needed in sorted(needing.items(), key=lambda item: not item[0]):
        without = f"without {', '.join(needed)}"
        found.append(
            Weakness(plugins=plugins, effect=without if plugins else f"what admission makes of manifests, {without}")
        )
    return tuple(found)

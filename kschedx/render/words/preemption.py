"""Preemption's rules in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.ranking import Rule


def rule_text(rule: Rule) -> str:
    """What it prefers."""
    match rule:
        case Rule.PDB_VIOLATIONS:
            return "fewest PodDisruptionBudget violations"
        case Rule.HIGHEST_PRIORITY:
            return "lowest priority of the most important victim"
        case Rule.SUM_OF_PRIORITIES:
            return "lowest sum of the victims' priorities"
        case Rule.VICTIMS:
            return "fewest victims"
        case Rule.START:
            return "latest start of the most important victims"
        case _:
            assert_never(rule)

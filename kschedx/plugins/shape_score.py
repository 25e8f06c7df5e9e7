"""The score of a utilization on a configured shape (pkg/scheduler/framework/plugins/helper/shape_score.go)."""

from __future__ import annotations

from collections.abc import Sequence

from kschedx.api.integers import truncated_quotient
from kschedx.framework.args import UtilizationShapePoint
from kschedx.framework.outcome import MAX_NODE_SCORE

MAX_SHAPE_SCORE = 10
"""The highest score that a shape may name; it stands for `MAX_NODE_SCORE`."""


def shape_score(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """0..100 for a utilization in percent: level outside of the shape, a straight line between two of its points."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    before: UtilizationShapePoint | None = None
    for point in shape:
        if utilization <= point.utilization:
            if before is None:
                return point.score * scale
            rise, run = (point.score - before.score) * scale, point.utilization - before.utilization
            return before.score * scale + truncated_quotient(rise * (utilization - before.utilization), run)
        before = point
    return shape[-1].score * scale

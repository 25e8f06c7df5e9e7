"""The score of a utilization on a configured shape (pkg/scheduler/framework/plugins/helper/shape_score.go)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedx.framework.args import UtilizationShapePoint
from kschedx.framework.status import MAX_NODE_SCORE
from kschedx.kube.scalars import truncated_quotient
from kschedx.snapshot.columns import IntArray

MAX_SHAPE_SCORE = 10
"""It corresponds to `MAX_NODE_SCORE`."""


def shape_score(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """Return 0 to 100 for a utilization in percent: constant outside the shape, linear between two of its points."""
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


# Normalization that several plugins share (pkg/scheduler/framework/plugins/helper/normalize_score.go).


def default_normalize(scores: IntArray, *, reverse: bool = False, most: int = MAX_NODE_SCORE) -> IntArray:
    """Scale so that the highest score becomes `most`; with `reverse`, it becomes 0 and zero becomes `most`."""
    highest = max(int(scores.max(initial=0)), 0)
    if highest == 0:
        return np.full_like(scores, most) if reverse else scores
    scaled = most * scores // highest
    return most - scaled if reverse else scaled

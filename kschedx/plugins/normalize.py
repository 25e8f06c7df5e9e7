"""Normalization that several plugins share (pkg/scheduler/framework/plugins/helper/normalize_score.go)."""

from __future__ import annotations

import numpy as np

from kschedx.framework.outcome import MAX_NODE_SCORE
from kschedx.snapshot.columns import IntArray


def default_normalize(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale so that the highest score becomes 100; `reverse` makes it 0 and zero 100. Scores are not negative."""
    highest = max(int(scores.max(initial=0)), 0)
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = MAX_NODE_SCORE * scores // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled

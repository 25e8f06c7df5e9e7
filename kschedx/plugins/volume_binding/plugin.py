"""VolumeBinding (pkg/scheduler/framework/plugins/volumebinding)."""

from __future__ import annotations

import numpy as np

from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from kschedx.framework.state import CycleState
from kschedx.framework.status import SKIP, SUCCESS, Status, Verdicts
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable


class VolumeBinding(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    name = "VolumeBinding"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if not any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes):
            return PRE_FILTER_SKIP
        raise UndecidableError("pods with volumes are not decided yet")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return Verdicts.success(len(nodes))

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: CycleState, pod: Pod, node: int) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Pod, node: int) -> Status:
        return SKIP

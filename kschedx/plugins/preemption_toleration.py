"""PreemptionToleration of scheduler-plugins (pkg/preemptiontoleration), as of August 2026 with Kubernetes 1.35.4."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import partial

import numpy as np

from kschedx.errors import UndecidableError
from kschedx.framework.args import DefaultPreemptionArgs, args_of_another_project
from kschedx.framework.interface import WHOLE, CycleState, Handle
from kschedx.framework.preemption import DryRun, dry_run
from kschedx.kube.other_schedulers import MINIMUM_PREEMPTABLE_PRIORITY, TOLERATION_SECONDS
from kschedx.kube.types import Pod, PriorityClass
from kschedx.plugins.default_preemption import DefaultPreemption, no_victims_for
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable


class PreemptionToleration(DefaultPreemption):
    """DefaultPreemption that spares pods whose PriorityClass tolerates preemption. A pod with a node is assumed to have
    the condition PodScheduled, which binding sets."""

    name = "PreemptionToleration"
    prefix = ""

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args_of_another_project(args, DefaultPreemptionArgs, self.name), handle)

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE

    def _dry_run(self, state: CycleState, pod: Pod, nodes: NodeTable) -> DryRun:
        def exempt(pods: PodTable, rows: IntArray) -> BoolArray:
            return np.array([self._is_exempt(pods[int(row)], pod.priority) for row in rows], dtype=np.bool_)

        return dry_run(self.handle, state, pod, nodes, exempt=exempt, no_victims=partial(no_victims_for, pod))

    def _is_awaited(self, pod: Pod) -> bool:
        return bool(pod.metadata.deletion_timestamp)

    def _group_limit(self, pod: Pod) -> str:
        return ""

    def _is_exempt(self, victim: Pod, priority: int) -> bool:
        name = victim.spec.priority_class_name
        if not name:
            return False
        priority_class = self.handle.snapshot.priority_classes.get(name)
        if priority_class is None:
            raise UndecidableError(f"pod {victim.key}: its PriorityClass {name}, which may exempt it, is not here")
        policy = _policy(priority_class)
        if policy is None or priority >= policy[0]:
            return False
        if policy[1] > 0:
            raise UndecidableError(
                f"pod {victim.key}: whether the {policy[1]} seconds for which its PriorityClass {name} lets it run are "
                "over depends on the moment"
            )
        return policy[1] < 0


def _policy(priority_class: PriorityClass) -> tuple[int, int] | None:
    """The lowest priority that may preempt and the tolerated seconds, or None if an annotation is not a number."""
    minimum = priority_class.metadata.annotations.get(MINIMUM_PREEMPTABLE_PRIORITY, str(priority_class.value + 1))
    seconds = priority_class.metadata.annotations.get(TOLERATION_SECONDS, "0")
    if not all(re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) for text in (minimum, seconds)):
        return None
    return int(minimum), int(seconds)

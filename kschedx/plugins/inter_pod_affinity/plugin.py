"""The InterPodAffinity plugin: its place in the framework. The rules are in `filtering` and `scoring`."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.findings import PluginMessage
from kschedx.framework.args import InterPodAffinityArgs
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.state import CycleState
from kschedx.framework.status import SKIP, SUCCESS, Code, Status, Verdicts, error
from kschedx.plugins.inter_pod_affinity.accounts import Accounts
from kschedx.plugins.inter_pod_affinity.filtering import FILTER, FilterState
from kschedx.plugins.inter_pod_affinity.scoring import SCORES, has_preferred_terms, normalized, raw_scores
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, ExistingTerms, PodTerms
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """spec.affinity.podAffinity and podAntiAffinity, in both directions: the incoming pod's terms against the pods that
    run, and theirs against it (pkg/scheduler/framework/plugins/interpodaffinity)."""

    name = "InterPodAffinity"
    normalizes_by_extremes = True

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._read: tuple[tuple[object, ...], PodTerms] | None = None

    @cached_property
    def _existing(self) -> ExistingTerms:
        return ExistingTerms.of(self.handle.snapshot.pods)

    def _terms_of(self, pod: Pod) -> PodTerms:
        """The pod's own terms, kept for others like it. Raises `InputError`."""
        asked = (pod.spec.affinity, pod.metadata.namespace, self.handle.snapshot.namespaces)
        if self._read is None or any(one is not other for one, other in zip(asked, self._read[0], strict=True)):
            self._read = (asked, PodTerms.of_incoming(pod, asked[2]))
        return self._read[1]

    def touches(self, pod: Pod) -> Touch:
        namespaces = self.handle.snapshot.namespaces
        try:
            own = self._terms_of(pod)
        except InputError:
            return Touch.CLUSTER
        labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
        concerned = bool(own.every) or bool(self._existing.about_pod(pod, labels))
        return Touch.CLUSTER if concerned else Touch.NOTHING

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        namespaces = self.handle.snapshot.namespaces
        try:
            terms = self._terms_of(pod)
        except InputError as wrong:
            text = f"parsing pod: {wrong}"
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            return PreFilterResult(
                status=Status(code=code, reasons=(text,), findings=(PluginMessage(text=text),)),
            )
        counts = FilterState.of(pod, terms, self._existing, namespaces, nodes)
        state[FILTER] = counts
        return PRE_FILTER_SKIP if counts.decides_nothing else PreFilterResult()

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[FILTER] = state[FILTER].after(nodes, change, +1)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[FILTER] = state[FILTER].after(nodes, change, -1)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        counts = state[FILTER]
        accounts = Accounts(counts, pod, nodes)
        return Verdicts.first_of(
            # without a pod to be near, evicting pods cannot help
            (counts.lacks_affinity(nodes), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY),
            (counts.breaks_anti_affinity(nodes), Code.UNSCHEDULABLE, REASON_ANTI_AFFINITY),
            (counts.breaks_existing_anti_affinity(nodes), Code.UNSCHEDULABLE, REASON_EXISTING_ANTI_AFFINITY),
            explain=accounts,
            alike=accounts.alike,
        )

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        state[SCORES] = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        if self._args.ignore_preferred_terms_of_existing_pods and not has_preferred_terms(pod):
            return SKIP
        namespaces = self.handle.snapshot.namespaces
        try:
            terms = self._terms_of(pod)
        except InputError as wrong:
            return error(f"failed to parse pod: {wrong}", self.name)
        scores = raw_scores(pod, terms, self._existing, namespaces, nodes, self._args.hard_pod_affinity_weight)
        if scores is None:
            return SKIP
        state[SCORES] = scores
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return state[SCORES][nodes.rows]

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return normalized(scores)

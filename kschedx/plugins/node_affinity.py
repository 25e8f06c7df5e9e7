"""NodeAffinity (pkg/scheduler/framework/plugins/nodeaffinity)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import NodeAffinityMismatch, RequirementMatch, TermMatch
from kschedx.framework.args import NodeAffinityArgs
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import SKIP, SUCCESS, Code, Status, Verdicts, error, unresolvable
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    NodeSelector,
    PreferredSchedulingTerm,
    PreferredSchedulingTerms,
    RequiredNodeAffinity,
    RequirementResult,
    compile_node_selector,
    compile_preferred_terms,
    required_node_affinity,
)
from kschedx.kube.types import Node, Pod
from kschedx.kube.types import NodeAffinity as NodeAffinityRules
from kschedx.plugins.resource_allocation import default_normalize
from kschedx.snapshot.columns import IntArray, TableRow
from kschedx.snapshot.nodes import NodeTable, preferred_weights, where_required, where_selector

_REASON_POD = "node(s) didn't match Pod's node affinity/selector"
_REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
_REASON_CONFLICT = "pod affinity terms conflict"

_PREFERRED: StateKey[PreferredSchedulingTerms] = StateKey("PreScoreNodeAffinity")


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """spec.nodeSelector, spec.affinity.nodeAffinity, and the affinity that the profile adds to every pod."""

    name = "NodeAffinity"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"node-affinity-mismatch": (_REASON_POD, _REASON_ENFORCED, _REASON_CONFLICT)}
    normalizes_by_extremes = True
    scores_preferences = True

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity if isinstance(args, NodeAffinityArgs) else None
        required = None if added is None else added.required_during_scheduling_ignored_during_execution
        self._added = None if required is None else compile_node_selector(required)
        self._added_preferred = _preferred_terms(added)
        self._adds_preferences = bool(_preferences(added))

    def reads(self, pod: Pod) -> Hashable:
        return frozenset(pod.spec.node_selector.items()), _affinity(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        required = pod.spec.required_node_affinity
        if required is None and self._added is None and not pod.spec.node_selector:
            return PRE_FILTER_SKIP
        behavior = self.handle.release.behavior
        names = None if required is None else _named_nodes(required, every_term=behavior.contradictory_term_rejects)
        if names is not None and not names:
            return PreFilterResult(status=unresolvable(_REASON_CONFLICT, mismatch(_compile(pod), None)))
        return PreFilterResult(nodes=names)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        rules = _compile(pod)
        enforced = np.zeros(len(nodes), dtype=np.bool_) if self._added is None else ~where_selector(self._added, nodes)

        def explain(row: TableRow) -> tuple[NodeAffinityMismatch, ...]:
            node = nodes.node(row)
            if enforced[row] and self._added is not None:
                return (_terms("addedAffinity", self._added, node),)
            return (mismatch(rules, node),)

        refused = Code.UNSCHEDULABLE_AND_UNRESOLVABLE, _REASON_POD
        return Verdicts.first_of(
            (enforced, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, _REASON_ENFORCED),
            # both cases have the same message: a node that fails nodeSelector does not report the affinity
            (~where_required(replace(rules, node_selector=None), nodes), *refused),
            (~where_required(replace(rules, label_selector=None), nodes), *refused),
            explain=explain,
        )

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        affinity = _affinity(pod)
        try:
            state[_PREFERRED] = _preferred_terms(affinity)
        except InputError as wrong:
            return error(str(wrong))
        # an empty preference matches no node, but the plugin scores
        return SUCCESS if _preferences(affinity) or self._adds_preferences else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        preferred = state[_PREFERRED] if _PREFERRED in state else _preferred_terms(_affinity(pod))
        total = preferred_weights(preferred, nodes)
        return total + preferred_weights(self._added_preferred, nodes) if self._added_preferred.terms else total

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores)


def _affinity(pod: Pod) -> NodeAffinityRules | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _preferences(affinity: NodeAffinityRules | None) -> tuple[PreferredSchedulingTerm, ...]:
    return () if affinity is None else affinity.preferred_during_scheduling_ignored_during_execution


def _preferred_terms(affinity: NodeAffinityRules | None) -> PreferredSchedulingTerms:
    """Raises `InputError` for terms that cannot be parsed."""
    return compile_preferred_terms(_preferences(affinity))


def _compile(pod: Pod) -> RequiredNodeAffinity:
    return required_node_affinity(pod.spec.node_selector, pod.spec.required_node_affinity)


def _named_nodes(required: NodeSelector, *, every_term: bool) -> frozenset[str] | None:
    """Return the node names that the terms' matchFields allow, or None if a term has no matchFields.

    The fields of one term must all match, so their names are intersected. Terms are alternatives, so their names are
    united. With `every_term`, a term whose fields have no common name allows no node.
    """
    if not required.node_selector_terms:
        return None
    united: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        named = [frozenset(f.values) for f in term.match_fields if f.key == NODE_NAME_FIELD and f.operator == "In"]
        if not named:
            return None
        common = frozenset.intersection(*named)
        if not common and every_term:
            return common
        united |= common
    return united


def mismatch(rules: RequiredNodeAffinity, node: Node | None) -> NodeAffinityMismatch:
    """Find the pod's rule that does not match: nodeSelector first, because it is evaluated first."""
    labels = node.metadata.labels if node else {}
    if rules.label_selector is not None and not rules.label_selector.matches(labels):
        results = rules.label_selector.explain(labels)
        return NodeAffinityMismatch(
            source="nodeSelector", terms=(TermMatch(index=0, requirements=tuple(map(_requirement, results))),)
        )
    selector = rules.node_selector or CompiledNodeSelector(terms=())
    return _terms("nodeAffinity", selector, node)


def _terms(source: str, selector: CompiledNodeSelector, node: Node | None) -> NodeAffinityMismatch:
    return NodeAffinityMismatch(
        source=source,
        terms=term_matches(selector, node),
        error=str(selector.errors[0]) if selector.terms and all(term.errors for term in selector.terms) else "",
    )


def term_matches(selector: CompiledNodeSelector, node: Node | None) -> tuple[TermMatch, ...]:
    """Match the terms with a node; None is one without labels."""
    labels, name = (node.metadata.labels, node.metadata.name) if node else ({}, "")
    return tuple(
        TermMatch(index=term.index, requirements=tuple(map(_requirement, term.explain(labels, name))))
        for term in selector.terms
    )


def _requirement(result: RequirementResult) -> RequirementMatch:
    return RequirementMatch(
        key=result.requirement.key,
        operator=result.requirement.operator.value,
        values=result.requirement.values,
        actual=result.actual,
        matched=result.matched,
    )

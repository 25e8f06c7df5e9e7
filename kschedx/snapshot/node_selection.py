"""Node selectors on columns: a requirement is evaluated once per distinct value of its label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    CompiledTerm,
    NodeSelector,
    Operator,
    PreferredSchedulingTerms,
    RequiredNodeAffinity,
    Requirement,
    compile_node_selector,
)
from kschedx.snapshot.columns import BoolArray, IntArray, Memo, distinct, rows_by_group
from kschedx.snapshot.nodes import NodeTable


def _where_requirement(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether the labels meet a requirement."""
    key = requirement.key
    return nodes.label(key).where(lambda value: requirement.matches({} if value is None else {key: value}))


def _where_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether metadata.name meets a requirement; every other field is empty."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches({requirement.key: ""}), dtype=np.bool_)
    names = np.zeros(len(nodes.cluster.names), dtype=np.bool_)
    for value in requirement.values:
        row = nodes.cluster.index.get(value)
        if row is not None:
            names[row] = True
    wanted = requirement.matches({NODE_NAME_FIELD: requirement.values[0]})  # In selects these names, NotIn all others
    return names[nodes.home_rows] if wanted else ~names[nodes.home_rows]


def _where_term(term: CompiledTerm, nodes: NodeTable) -> BoolArray:
    """(node,) whether a term's expressions and fields all match; a term with errors matches nothing."""
    mask = np.full(len(nodes), not term.errors, dtype=np.bool_)
    for requirement in term.expressions:
        if not mask.any():
            break
        mask &= _where_requirement(requirement, nodes)
    for requirement in term.fields:
        mask &= _where_field(requirement, nodes)
    return mask


def where_selector(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(node,) whether any term matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= _where_term(term, nodes)
    return mask


def where_required(affinity: RequiredNodeAffinity, nodes: NodeTable) -> BoolArray:
    """(node,) whether nodeSelector and required node affinity both match."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    if affinity.label_selector is not None:
        for requirement in affinity.label_selector.requirements:
            if not mask.any():
                break
            mask &= _where_requirement(requirement, nodes)
    if affinity.node_selector is not None:
        mask &= where_selector(affinity.node_selector, nodes)
    return mask


def preferred_weights(terms: PreferredSchedulingTerms, nodes: NodeTable) -> IntArray:
    """(node,) int64 sum of the weights of matching terms."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for weighted in terms.terms:
        total += weighted.weight * _where_term(weighted.term, nodes)
    return total


# Nodes by label value, for many selectors that each select few nodes. `where_selector` evaluates every distinct value
# of a label, which is right for one selector. Ten thousand local volumes with one node each would evaluate ten thousand
# times five thousand names; here, each is a lookup.

_NONE = np.zeros(0, dtype=np.int64)


class NodeLookup:
    """Rows of a table by label, with cached lookups."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._all = np.arange(len(nodes), dtype=np.int64)
        self._by_label: dict[str, Mapping[str, IntArray]] = {}
        self._masks: dict[Requirement, BoolArray] = {}
        self._selectors: dict[NodeSelector, IntArray] = {}

    @classmethod
    def of(cls, nodes: NodeTable) -> NodeLookup:
        """Return the lookup of a table. That of the whole cluster is cached until a node is replaced."""
        return _LOOKUP.of(nodes.cluster.derived, lambda: cls(nodes)) if nodes.is_whole else cls(nodes)

    def selector(self, selector: NodeSelector | None) -> IntArray:
        """Return rows, ascending, whose labels match any term; None matches all. Fields are not evaluated, as for a
        node without a name (CheckNodeAffinity in component-helpers/storage/volume/helpers.go)."""
        if selector is None:
            return self._all
        rows = self._selectors.get(selector)
        if rows is None:
            terms = [self._term(term) for term in compile_node_selector(selector).terms]
            rows = terms[0] if len(terms) == 1 else distinct(np.concatenate([_NONE, *terms]))
            self._selectors[selector] = rows
        return rows

    def requirements(self, requirements: Iterable[Requirement]) -> IntArray:
        """Return rows, ascending, that meet all requirements."""
        looked_up: list[IntArray] = []
        masks: list[BoolArray] = []
        for requirement in requirements:
            if requirement.operator in (Operator.IN, Operator.EQUALS):
                looked_up.append(self._having(requirement))
            else:
                masks.append(self._mask(requirement))
        rows = min(looked_up, key=len, default=self._all)
        for others in looked_up:
            if others is not rows:
                rows = rows[np.isin(rows, others, assume_unique=True)]
        for mask in masks:
            rows = rows[mask[rows]]
        return rows

    def _term(self, term: CompiledTerm) -> IntArray:
        return _NONE if term.errors else self.requirements(term.expressions)

    def _having(self, requirement: Requirement) -> IntArray:
        """Return rows whose label has one of the requirement's values."""
        by_value = self._by_label.get(requirement.key)
        if by_value is None:
            column = self._nodes.label(requirement.key)
            order, start = rows_by_group(column.codes, len(column.values))
            by_value = self._by_label[requirement.key] = {
                value: order[start[code] : start[code + 1]]
                for code, value in enumerate(column.values)
                if value is not None
            }
        rows = [by_value[value] for value in set(requirement.values) if value in by_value]
        return rows[0] if len(rows) == 1 else np.sort(np.concatenate([_NONE, *rows]))

    def _mask(self, requirement: Requirement) -> BoolArray:
        mask = self._masks.get(requirement)
        if mask is None:
            mask = self._masks[requirement] = _where_requirement(requirement, self._nodes)
        return mask


_LOOKUP = Memo[NodeLookup]()

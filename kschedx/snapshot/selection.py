"""Node selectors over columns: a requirement is evaluated once per distinct value of its label."""

from __future__ import annotations

import numpy as np

from kschedx.api.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    CompiledTerm,
    PreferredSchedulingTerms,
    RequiredNodeAffinity,
    Requirement,
)
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable


def where_requirement(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether the labels meet a requirement."""
    key = requirement.key
    return nodes.label(key).where(lambda value: requirement.matches({} if value is None else {key: value}))


def where_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether metadata.name meets a requirement; every other field reads as empty."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches({requirement.key: ""}), dtype=np.bool_)
    names = np.zeros(len(nodes.cluster.names), dtype=np.bool_)
    for value in requirement.values:
        row = nodes.cluster.index.get(value)
        if row is not None:
            names[row] = True
    wanted = requirement.matches(
        {NODE_NAME_FIELD: requirement.values[0]}
    )  # In: the names themselves; NotIn: all others
    return names[nodes.home_rows] if wanted else ~names[nodes.home_rows]


def where_term(term: CompiledTerm, nodes: NodeTable) -> BoolArray:
    """(node,) whether a term's expressions and fields all match; a term with errors matches nothing."""
    mask = np.full(len(nodes), not term.errors, dtype=np.bool_)
    for requirement in term.expressions:
        if not mask.any():
            break
        mask &= where_requirement(requirement, nodes)
    for requirement in term.fields:
        mask &= where_field(requirement, nodes)
    return mask


def where_selector(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(node,) whether any term matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= where_term(term, nodes)
    return mask


def where_required(affinity: RequiredNodeAffinity, nodes: NodeTable) -> BoolArray:
    """(node,) whether nodeSelector and required node affinity both match."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    if affinity.label_selector is not None:
        for requirement in affinity.label_selector.requirements:
            if not mask.any():
                break
            mask &= where_requirement(requirement, nodes)
    if affinity.node_selector is not None:
        mask &= where_selector(affinity.node_selector, nodes)
    return mask


def preferred_weights(terms: PreferredSchedulingTerms, nodes: NodeTable) -> IntArray:
    """(node,) int64 sum of the weights of the terms that match."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for weighted in terms.terms:
        total += weighted.weight * where_term(weighted.term, nodes)
    return total

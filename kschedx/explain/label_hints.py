"""Whether a node selector asks for labels that no node has, and what was probably meant."""

from __future__ import annotations

import difflib
from collections import Counter

from msgspec import Struct

from kschedx.explain.grouping import NODE_NAME_FIELD
from kschedx.snapshot.nodes import ClusterNodes

LOOKED_AT = 5000
"""Distinct keys or values that are compared; a cluster has far fewer, a hostile one may not."""


class LabelHint(Struct, frozen=True, kw_only=True):
    """A requirement that no node of the cluster satisfies."""

    key: str
    values: tuple[str, ...]
    """What is asked for; empty where the key itself is on no node."""
    nearest: str
    """The label key or value that is in use and comes closest; empty where none is close."""
    nearest_count: int
    """Nodes that have it."""
    in_use: tuple[tuple[str, int], ...]
    """The values of the key with their number of nodes, most frequent first."""


def label_hint(key: str, operator: str, wanted: tuple[str, ...], cluster: ClusterNodes) -> LabelHint | None:
    """None where some node satisfies it, or where the operator asks for absence or compares numbers."""
    if operator not in ("In", "=", "Exists") or key == NODE_NAME_FIELD:
        return None
    column = cluster.label(key)
    counts = Counter(column.values[int(code)] for code in column.codes)
    in_use = tuple((value, count) for value, count in counts.most_common() if value is not None)
    if not in_use:
        return _unknown_key(key, cluster)
    if operator == "Exists" or any(value in counts for value in wanted):
        return None
    nearest = _nearest(wanted, [value for value, _ in in_use])
    return LabelHint(
        key=key,
        values=wanted,
        nearest=nearest,
        nearest_count=counts[nearest] if nearest else 0,
        in_use=in_use,
    )


def _unknown_key(key: str, cluster: ClusterNodes) -> LabelHint:
    counts = Counter(name for node in cluster.nodes for name in node.metadata.labels)
    nearest = _nearest((key,), list(counts))
    return LabelHint(key=key, values=(), nearest=nearest, nearest_count=counts[nearest] if nearest else 0, in_use=())


def _nearest(wanted: tuple[str, ...], known: list[str]) -> str:
    """The known text that is closest to one that is wanted; empty where none is close."""
    for text in wanted[:LOOKED_AT]:
        close = difflib.get_close_matches(text, known[:LOOKED_AT], n=1, cutoff=0.6)
        if close:
            return close[0]
    return ""

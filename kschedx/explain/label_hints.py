"""Whether a node selector asks for labels that no node has, and what was probably meant."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kschedx.explain.grouping import NODE_NAME_FIELD
from kschedx.snapshot.cluster_nodes import ClusterNodes

LOOKED_AT = 5000
"""Distinct keys or values that are compared; a cluster has far fewer, a hostile one may not."""
MOST_NEAR = 100
"""Requirements for which something near is looked for; nobody reads of more."""


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


def label_hints(
    requirements: Iterable[tuple[str, str, tuple[str, ...]]], cluster: ClusterNodes
) -> tuple[LabelHint, ...]:
    """Of requirements as key, operator and values, those that no node satisfies."""
    found: list[LabelHint] = []
    for key, operator, wanted in requirements:
        hint = label_hint(key, operator, wanted, cluster, search=len(found) < MOST_NEAR)
        if hint is not None:
            found.append(hint)
    return tuple(found)


def label_hint(
    key: str, operator: str, wanted: tuple[str, ...], cluster: ClusterNodes, *, search: bool = True
) -> LabelHint | None:
    """None where some node satisfies it, or where the operator asks for absence or compares numbers. `search`: look for
    something near."""
    if operator not in ("In", "=", "Exists") or key == NODE_NAME_FIELD:
        return None
    if key not in cluster.label_keys:
        return _unknown_key(key, cluster, search=search)
    column = cluster.label(key)
    counts = Counter(column.values[int(code)] for code in column.codes)
    in_use = tuple((value, count) for value, count in counts.most_common() if value is not None)
    if operator == "Exists" or any(value in counts for value in wanted):
        return None
    nearest = _nearest(wanted, [value for value, _ in in_use]) if search else ""
    return LabelHint(
        key=key,
        values=wanted,
        nearest=nearest,
        nearest_count=counts[nearest] if nearest else 0,
        in_use=in_use,
    )


def _unknown_key(key: str, cluster: ClusterNodes, *, search: bool) -> LabelHint:
    counts = Counter(name for node in cluster.nodes for name in node.metadata.labels) if search else Counter()
    nearest = _nearest((key,), list(counts))
    return LabelHint(key=key, values=(), nearest=nearest, nearest_count=counts[nearest] if nearest else 0, in_use=())


def _nearest(wanted: tuple[str, ...], known: list[str]) -> str:
    """The known text that is closest to one that is wanted; empty where none is close."""
    for text in wanted[:LOOKED_AT]:
        close = difflib.get_close_matches(text, known[:LOOKED_AT], n=1, cutoff=0.6)
        if close:
            return close[0]
    return ""

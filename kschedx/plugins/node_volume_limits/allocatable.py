"""Limits that nodes have among their allocatable resources, as `attachable-volumes-*`: until 1.31.

Upstream: volumeLimits in nodevolumelimits/utils.go.
"""

from __future__ import annotations

import numpy as np

from kschedx.api.attach_limits import PREFIX
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable


def allocatable_limit(nodes: NodeTable, key: str, absent: int) -> IntArray:
    """(node,) what the node's allocatable says for a key, `absent` where it does not name it."""
    column = nodes.resources.index.get(key)
    if column is None:
        return np.full(len(nodes), absent, dtype=np.int64)
    return np.where(nodes.offers[:, column], nodes.allocatable[:, column], absent)


def limits_any_volume(nodes: NodeTable) -> BoolArray:
    """(node,) whether the node's allocatable limits volumes of any kind."""
    limited = np.zeros(len(nodes), dtype=np.bool_)
    for name, column in nodes.resources.index.items():
        if name.startswith(PREFIX):
            limited |= nodes.offers[:, column]
    return limited

"""Limits that nodes have among their allocatable resources, as `attachable-volumes-*`: until 1.31.

Upstream: volumeLimits in nodevolumelimits/utils.go, pkg/volume/util/attach_limit.go.
"""

from __future__ import annotations

import hashlib

import numpy as np

from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable

PREFIX = "attachable-volumes-"
_CSI_PREFIX = f"{PREFIX}csi-"
_LONGEST = 63
"""The length that a resource's name must stay below."""


def csi_limit_key(driver: str) -> str:
    """The resource that limits a CSI driver's volumes; a long name is cut and made distinct by its hash."""
    key = f"{_CSI_PREFIX}{driver}"
    if len(key.encode()) < _LONGEST:
        return key
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{_CSI_PREFIX}{driver[:23]}{digest[:16]}"


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

"""ImageLocalityPriority (image_locality.go of both releases)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kschedx.api.types import Pod
from kschedx.legacy.priorities.base import MAX_PRIORITY, Priority
from kschedx.plugins.image_locality import normalized_image_name
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

_MIB = 1024 * 1024
SMALLEST = 23 * _MIB
LARGEST = 1000 * _MIB


class ImageLocalityPriority(Priority):
    """Images that the node has, by size and by how many nodes have them."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        held = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        for name, times in Counter(normalized_image_name(one.image) for one in pod.spec.containers).items():
            image = nodes.cluster.images.state(name)
            if image is not None:
                spread = len(image.nodes) / len(nodes.cluster.nodes)
                held[image.nodes] += times * int(float(image.size_bytes) * spread)
        sums = held[nodes.rows].clip(SMALLEST, LARGEST)
        return MAX_PRIORITY * (sums - SMALLEST) // (LARGEST - SMALLEST)


class EarlyImageLocalityPriority(Priority):
    """As 1.5 has it: images by the name that the pod writes and the size that the node reports, in ten steps."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        held = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        for name, times in Counter(container.image for container in pod.spec.containers).items():
            image = nodes.cluster.images.state(name)
            if image is not None:
                held[image.nodes] += times * image.sizes
        sums = held[nodes.rows]
        steps = 10 * (sums - SMALLEST) // (LARGEST - SMALLEST) + 1
        return np.where(sums < SMALLEST, 0, np.where(sums >= LARGEST, MAX_PRIORITY, steps))

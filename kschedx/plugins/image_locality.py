"""ImageLocality (pkg/scheduler/framework/plugins/imagelocality)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np

from kschedx.framework.interface import CycleState, ScorePlugin, Touch
from kschedx.framework.status import MAX_NODE_SCORE
from kschedx.kube.types import Container, Pod
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

_MIB = 1024 * 1024
MIN_THRESHOLD = 23 * _MIB
MAX_CONTAINER_THRESHOLD = 1000 * _MIB


class ImageLocality(ScorePlugin):
    """Prefers nodes that already have the pod's images. Larger and more widespread images count more."""

    name = "ImageLocality"
    touch = Touch.NOTHING

    def reads(self, pod: Pod) -> Hashable:
        images = self.handle.snapshot.cluster.images
        names = [name for name in map(normalized_image_name, self._references(pod)) if images.is_held(name)]
        return (len(self._containers(pod)), *names) if names else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        held = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        for name, times in Counter(map(normalized_image_name, self._references(pod))).items():
            image = nodes.cluster.images.state(name)
            if image is not None:
                # an image that only few nodes have counts less, so that these nodes do not attract every pod
                spread = len(image.nodes) / nodes.cluster.count
                held[image.nodes] += times * int(float(image.size_bytes) * spread)
        most = MAX_CONTAINER_THRESHOLD * len(self._containers(pod))
        # not `clip`: without containers the minimum exceeds the maximum
        sums = np.where(held < MIN_THRESHOLD, MIN_THRESHOLD, np.where(held > most, most, held))
        return MAX_NODE_SCORE * (sums[nodes.rows] - MIN_THRESHOLD) // (most - MIN_THRESHOLD)

    def _containers(self, pod: Pod) -> tuple[Container, ...]:
        with_init = self.handle.release.behavior.init_images_are_scored
        return (*pod.spec.init_containers, *pod.spec.containers) if with_init else tuple(pod.spec.containers)

    def _references(self, pod: Pod) -> Iterator[str]:
        for container in self._containers(pod):
            yield container.image
        if self.handle.release.behavior.image_volumes_are_scored:
            for volume in pod.spec.volumes:
                if volume.image is not None:
                    yield volume.image.reference


def normalized_image_name(name: str) -> str:
    """Return the name as nodes report it, with `:latest` if it has neither a tag nor a digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"

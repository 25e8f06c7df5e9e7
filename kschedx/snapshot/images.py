"""The images that nodes report, by name."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.decode import decode
from kschedx.api.types import ContainerImage
from kschedx.errors import InputError, Place
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.rows import ClusterRow, ClusterRows


class ImageState(Struct, frozen=True, kw_only=True):
    """An image that some node holds."""

    size_bytes: int
    nodes: ClusterRows
    """(holder,) the nodes that report it."""
    sizes: IntArray
    """(holder,) the size that each of them reports."""


class NodeImages:
    """Filled node by node while a cluster is loaded, then asked for images by name.

    kube-scheduler keeps one size for all nodes: what the first node that reports the image says.
    Upstream: addNodeImageStates in pkg/scheduler/backend/cache/cache.go.
    """

    def __init__(self) -> None:
        self._count = 0
        self._sizes: dict[str, array[int]] = {}
        self._holders: dict[str, array[int]] = {}

    def add(self, images: bytes) -> None:
        """The next node's `status.images` as JSON, empty where it has none. Raises `InputError` with the field."""
        for image in _decoded(images):
            for name in image.names:
                holders = self._holders.get(name)
                if holders is None:
                    self._sizes[name] = array("q", (image.size_bytes,))
                    self._holders[name] = array("q", (self._count,))
                elif holders[-1] != self._count:
                    self._sizes[name].append(image.size_bytes)
                    holders.append(self._count)
        self._count += 1

    def of(self, nodes: Sequence[ClusterRow]) -> NodeImages:
        """The images of some nodes, in ascending order of their rows."""
        new_row = {old: new for new, old in enumerate(nodes)}
        kept = NodeImages()
        kept._count = len(nodes)
        for name, holders in self._holders.items():
            pairs = [
                (new_row[row], size)
                for row, size in zip(map(ClusterRow, holders), self._sizes[name], strict=True)
                if row in new_row
            ]
            if pairs:
                kept._holders[name] = array("q", (row for row, _ in pairs))
                kept._sizes[name] = array("q", (size for _, size in pairs))
        return kept

    def by_node(self) -> dict[int, list[tuple[str, int]]]:
        """Rows of the nodes that report images, to these with their sizes."""
        found: dict[int, list[tuple[str, int]]] = {}
        for name, holders in self._holders.items():
            for row, size in zip(holders, self._sizes[name], strict=True):
                found.setdefault(row, []).append((name, size))
        return found

    def state(self, name: str) -> ImageState | None:
        """The image that nodes report under exactly this name, or None where no node does."""
        holders = self._holders.get(name)
        if holders is None:
            return None
        sizes = np.array(self._sizes[name], dtype=np.int64)
        nodes = ClusterRows(np.array(holders, dtype=np.int64))
        return ImageState(size_bytes=int(sizes[0]), nodes=nodes, sizes=sizes)


def _decoded(images: bytes) -> tuple[ContainerImage, ...]:
    try:
        return decode(images, tuple[ContainerImage, ...]) if images else ()
    except InputError as error:
        raise error.at(Place(field="status.images")) from None

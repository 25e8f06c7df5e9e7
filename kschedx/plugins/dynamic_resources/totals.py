"""How many devices a node has for an extended resource and how many are allocated, for scores.

Upstream: calculateDRAResourceTotals in pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kschedx.framework.interface import Handle
from kschedx.kube.devices import CompileError, Device, DeviceClass, EvaluationError, Features, ResourceSlice, language
from kschedx.kube.types import Node
from kschedx.plugins.dynamic_resources.pools import (
    AllocatedState,
    DeviceFeatures,
    allocated_state,
    device_id,
    device_reaches,
    published_slices,
    reaches,
)
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable


def device_totals(handle: Handle, nodes: NodeTable, device_class: DeviceClass) -> tuple[IntArray, IntArray]:
    """(node,) the devices of a class, and the allocated ones."""
    devices = handle.snapshot.devices
    features = DeviceFeatures.of(handle.release)
    resource_slices = published_slices(devices, features)
    allocated = allocated_state(devices, shares=features.consumable_capacity)
    counts = [
        _node_totals(nodes.node(row), resource_slices, device_class, allocated, features.cel) for row in nodes.each()
    ]
    table = np.array(counts, dtype=np.int64).reshape(len(nodes), 2)
    return table[:, 0], table[:, 1]


def _node_totals(
    node: Node, slices: tuple[ResourceSlice, ...], device_class: DeviceClass, allocated: AllocatedState, gates: Features
) -> tuple[int, int]:
    """Count the devices of a node; zero if a selector of the class cannot be evaluated."""
    total = taken = 0
    try:
        for resource_slice, device in _reached_devices(node, slices):
            if _is_of(device_class, device, resource_slice.spec.driver, gates):
                total += 1
                taken += allocated.has(device_id(resource_slice, device))
    except (CompileError, EvaluationError):
        return 0, 0
    return total, taken


def _reached_devices(node: Node, slices: tuple[ResourceSlice, ...]) -> Iterator[tuple[ResourceSlice, Device]]:
    """Yield the devices of every slice, whatever its generation, unlike the allocator. A slice without nodes counts."""
    for resource_slice in slices:
        spec = resource_slice.spec
        names_nodes = spec.node_name or spec.all_nodes or spec.node_selector is not None
        if spec.per_device_node_selection:
            yield from ((resource_slice, device) for device in spec.devices if device_reaches(node, device))
        elif not names_nodes or reaches(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes):
            yield from ((resource_slice, device) for device in spec.devices)


def _is_of(device_class: DeviceClass, device: Device, driver: str, gates: Features) -> bool:
    device = replace(device, allow_multiple_allocations=False)
    expressions = (selector.cel.expression for selector in device_class.spec.selectors if selector.cel is not None)
    return all(language().compile(expression, gates).matches(device, driver) for expression in expressions)

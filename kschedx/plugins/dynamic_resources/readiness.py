"""Claims that are allocated: whether their devices are made ready, and why a node cannot use them."""

from __future__ import annotations

from kschedx.api.devices import AllocationResult, ResourceClaim
from kschedx.api.selectors import CompiledNodeSelector
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import Node
from kschedx.findings import DeviceClaimOutOfReach
from kschedx.plugins.dynamic_resources.claims import consumers


def is_ready(claim: ResourceClaim) -> bool | None:
    """Whether all binding conditions of the claim's devices are true; None where one has failed."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.binding_conditions:
            continue
        id_ = (result.driver, result.pool, result.device)
        status = next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == id_), None)
        if status is None:
            return False
        if any(status.is_true(condition) for condition in result.binding_failure_conditions):
            return None
        if not all(status.is_true(condition) for condition in result.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, timeout: int, now: int) -> bool:
    """Whether its devices should be ready by now; `timeout` and `now` in nanoseconds."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    waits = any(result.binding_conditions for result in allocation.devices.results)
    return waits and nanoseconds(allocation.allocation_timestamp) + timeout < now


def out_of_reach(claim: ResourceClaim, node: Node, reachable: CompiledNodeSelector | None) -> DeviceClaimOutOfReach:
    """Of a claim that a node cannot use; `reachable` are the nodes that its allocation is for, None for all."""
    allocation = claim.status.allocation or AllocationResult()
    if reachable is not None and not reachable.matches(node.metadata.labels, node.name):
        cause = "elsewhere"
    else:
        cause = "binding-failed" if is_ready(claim) is None else "binding-late"
    terms = reachable.terms if reachable is not None else ()
    return DeviceClaimOutOfReach(
        claim=claim.key,
        cause=cause,
        devices=tuple(f"{one.driver}/{one.pool}/{one.device}" for one in allocation.devices.results),
        where=" or ".join(", ".join(map(str, (*term.expressions, *term.fields))) for term in terms),
        consumers=consumers(claim),
    )

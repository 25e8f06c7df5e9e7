"""What a NodeResourceTopology says of a node's NUMA nodes, and what pods ask of them (pluginhelpers.go,
numaresources.go, nodeconfig)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.resource_names import is_hugepages
from kschedx.api.resources import nano_units
from kschedx.api.scheduler_plugins import (
    MAX_NUMA_NODES_ATTRIBUTE,
    NUMA_PREFIX,
    NUMA_ZONE,
    POLICIES,
    POLICY_ATTRIBUTE,
    SCOPE_ATTRIBUTE,
    SCOPES,
    TOPOLOGY_POLICIES,
    NodeResourceTopology,
)
from kschedx.api.types import Container, Pod
from kschedx.plugins.qos import QOS

LARGEST_ID = 64
MAX_NUMA_NODES = 8
MOST_NUMA_NODES = 1024

Amounts = Mapping[str, int]
"""Resource to amount, in nano-units."""


class Numa(Struct, frozen=True, kw_only=True):
    """A NUMA node."""

    id: int
    available: dict[str, int]
    distances: Mapping[int, int]
    """To NUMA nodes, by id."""


class TopologyManager(Struct, frozen=True, kw_only=True):
    """How the node's kubelet aligns."""

    policy: str = "none"
    scope: str = "container"
    max_numa_nodes: int = MAX_NUMA_NODES


def topology_manager(topology: NodeResourceTopology) -> TopologyManager:
    """Attributes count more than the deprecated field, of which the first entry counts."""
    first = topology.topology_policies[0] if topology.topology_policies else ""
    policy, scope = TOPOLOGY_POLICIES.get(first, ("none", "container"))
    largest = MAX_NUMA_NODES
    for one in topology.attributes:
        if one.setting == SCOPE_ATTRIBUTE and one.choice in SCOPES:
            scope = one.choice
        elif one.setting == POLICY_ATTRIBUTE and one.choice in POLICIES:
            policy = one.choice
        elif one.setting == MAX_NUMA_NODES_ATTRIBUTE and re.fullmatch(r"[+-]?[0-9]{1,18}", one.choice):
            largest = min(int(one.choice), MOST_NUMA_NODES) if int(one.choice) > 1 else largest
    return TopologyManager(policy=policy, scope=scope, max_numa_nodes=largest)


def numas_of(topology: NodeResourceTopology) -> list[Numa]:
    """Anew at each call, since containers take from them."""
    zones = {_id(zone.numa): zone for zone in topology.zones if zone.zone_type == NUMA_ZONE}
    return [
        Numa(
            id=number,
            available={one.name: nano_units(one.available) for one in zone.resources},
            # of zones with the same id the last one's distances count
            distances={_id(cost.numa): cost.distance for cost in zones[number].costs if _id(cost.numa) >= 0},
        )
        for zone in topology.zones
        if zone.zone_type == NUMA_ZONE and (number := _id(zone.numa)) >= 0
    ]


def _id(name: str) -> int:
    """-1 where the name is none of a NUMA node."""
    digits = name.removeprefix(NUMA_PREFIX)
    if digits == name or not re.fullmatch(r"\+?[0-9]{1,18}", digits):
        return -1
    return int(digits) if int(digits) <= LARGEST_ID else -1


def requests_of(container: Container) -> Amounts:
    return {name: nano_units(written) for name, written in container.resources.requests.items()}


def effective_request(pod: Pod) -> Amounts:
    """All containers together, or an init container that asks for more, and overhead (GetPodEffectiveRequest)."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in requests_of(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in requests_of(container).items():
            total[name] = max(total.get(name, amount), amount)
    for name, written in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + nano_units(written)
    return total


def is_shared(name: str, qos: QOS) -> bool:
    """Only Guaranteed pods get cpus, memory and huge pages of their own."""
    return qos is not QOS.GUARANTEED and (name in ("cpu", "memory") or is_hugepages(name))

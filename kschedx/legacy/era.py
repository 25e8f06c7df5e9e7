"""What one of the two schedulers knows and says, as a frozen value."""

from __future__ import annotations

from msgspec import Struct

from kschedx.framework.status import Code
from kschedx.legacy.stored import Schema


class Texts(Struct, frozen=True, kw_only=True):
    """Reasons: sentences in 1.13, names in 1.5. An insufficient resource is worded alike in both."""

    host_name: str
    host_ports: str
    node_selector: str
    node_label: str
    taints: str
    disk_conflict: str
    volume_count: str
    volume_zone: str
    volume_binding: str
    volume_node_affinity: str
    service_affinity: str
    pod_affinity: str
    """Stands before the three that follow, where they are set."""
    own_affinity: str
    own_anti_affinity: str
    existing_anti_affinity: str
    memory_pressure: str
    disk_pressure: str
    pid_pressure: str
    unschedulable: str
    not_ready: str
    out_of_disk: str
    network_unavailable: str


class Era(Struct, frozen=True, kw_only=True):
    """One of the two schedulers, with its feature gates resolved."""

    order: tuple[str, ...] | None
    """The order of evaluation, which leaves out what it does not name; None where all are run in no order."""
    schema: Schema
    """What its API kept of a manifest."""
    texts: Texts
    fills_in_lists: bool
    """A Policy without a list gets that of the default provider; otherwise it has none."""
    reads_policy_settings: bool
    """hardPodAffinitySymmetricWeight and alwaysCheckAllPredicates of a Policy, and its extenders' managed resources."""
    has_ratio_argument: bool
    """A priority can be given a shape to score the requested share of a node by."""
    checks_claims_first: bool
    """A claim that is missing or being deleted is an error before any node is looked at."""
    lists_usable_nodes: bool
    """Nodes that are cordoned, not ready, out of disk or without a network are left out before any predicate."""
    preempts: bool
    percentage_of_nodes_to_score: int
    maximum_weight: int

    @property
    def unresolvable(self) -> Code:
        """The status of a rejection that no eviction can lift: who never evicts makes no difference."""
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE if self.preempts else Code.UNSCHEDULABLE

"""Typed records of the objects for which operators cordon nodes: upgrade plans and node maintenances.

Upstream: pkg/apis/upgrade.cattle.io/v1 of rancher/system-upgrade-controller, and api/v1beta1 of
medik8s/node-maintenance-operator.
"""

from __future__ import annotations

from msgspec import Struct

from kschedx.kube.types import KubernetesObject

UPGRADE_GROUP = "upgrade.cattle.io"
UPGRADED_NODE, UPGRADE_PLAN = f"{UPGRADE_GROUP}/node", f"{UPGRADE_GROUP}/plan"
"""The labels of a Job's pods with the node that it upgrades, and with its Plan."""
MAINTENANCE_GROUP, FORMER_MAINTENANCE_GROUP = "nodemaintenance.medik8s.io", "nodemaintenance.kubevirt.io"
MAINTENANCE_TAINTS = frozenset({"medik8s.io/drain", "kubevirt.io/drain"})
"""The taints that the Node Maintenance Operator sets with the cordon."""


class _Drain(Struct, frozen=True, kw_only=True):
    """How the node is drained, of which nothing is read."""


class _PlanSpec(Struct, frozen=True, kw_only=True):
    cordon: bool = False
    drain: _Drain | None = None


class _PlanStatus(Struct, frozen=True, kw_only=True):
    applying: tuple[str, ...] | None = None  # the host names of the nodes that it upgrades now


class UpgradePlan(KubernetesObject, frozen=True, kw_only=True):
    """An upgrade of nodes, one after the other, each by a Job."""

    spec: _PlanSpec = _PlanSpec()
    status: _PlanStatus = _PlanStatus()

    def cordons(self, host: str) -> bool:
        """Return whether it keeps the node with this host name cordoned."""
        return (self.spec.cordon or self.spec.drain is not None) and host in (self.status.applying or ())


class _MaintenanceSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    node_name: str = ""
    reason: str = ""


class _MaintenanceStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""


class NodeMaintenance(KubernetesObject, frozen=True, kw_only=True):
    """A node that is cordoned and drained until this object is deleted."""

    spec: _MaintenanceSpec = _MaintenanceSpec()
    status: _MaintenanceStatus = _MaintenanceStatus()

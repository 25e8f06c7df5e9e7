"""The component that keeps a node cordoned, by the node's labels, by objects that name the node, or by a pod on it.

A component whose mark is a label or annotation of the node has a row in `kschedx.findings.constraints`.
"""

from __future__ import annotations

from kschedx.findings.constraints import Maintenance
from kschedx.kube.maintenance import MAINTENANCE_TAINTS, UPGRADE_PLAN, NodeMaintenance, UpgradePlan
from kschedx.kube.names import HOSTNAME
from kschedx.kube.types import Node
from kschedx.snapshot.snapshot import Snapshot

_BY_OPERATOR = "maintenance by the Node Maintenance Operator"
_CORDONING_CONTAINERS = frozenset({"cordon", "drain"})  # the init containers of such a pod that cordon its node


def maintenance_of(snapshot: Snapshot, node: Node) -> Maintenance | None:
    """Return why a component keeps a node cordoned; None if none is known to."""
    marked = Maintenance.of(node.metadata.labels, node.metadata.annotations)
    if marked is not None:
        return marked
    if (ordered := ordered_maintenance(snapshot, node.name)) is not None:
        return Maintenance(title=_BY_OPERATOR, message=ordered.spec.reason)
    if any(taint.key in MAINTENANCE_TAINTS for taint in node.spec.taints):
        return Maintenance(title=_BY_OPERATOR)
    return _upgrade(snapshot, node)


def ordered_maintenance(snapshot: Snapshot, node: str) -> NodeMaintenance | None:
    """Return the NodeMaintenance of a node, whose deletion uncordons the node."""
    return next((each for each in snapshot.of(NodeMaintenance) if each.spec.node_name == node), None)


def _upgrade(snapshot: Snapshot, node: Node) -> Maintenance | None:
    """Return the upgrade by a Plan of system-upgrade-controller, which uncordons the node once its Job is complete."""
    host, pods = node.metadata.labels.get(HOSTNAME, node.name), snapshot.pods
    phases: dict[str, list[str]] = {}
    for row in snapshot.upgrading_rows.get(node.name, ()):
        if any(container.name in _CORDONING_CONTAINERS for container in pods.specs[row].init_containers):
            plan = f"{pods.namespaces[row]}/{pods.labels[row].get(UPGRADE_PLAN, '')}"
            phases.setdefault(plan, []).append(pods.phases[row])
    phases |= {plan.key: phases.get(plan.key, []) for plan in snapshot.of(UpgradePlan) if plan.cordons(host)}
    for plan, of_pods in phases.items():
        if "Succeeded" not in of_pods:
            is_failed = bool(of_pods) and all(phase == "Failed" for phase in of_pods)
            return Maintenance(title=f"upgrade by Plan {plan}", is_failed=is_failed)
    return None

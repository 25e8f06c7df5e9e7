"""Node groups: their nodes, which of these are ready, and the differences between clouds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.status import Health, NodeGroupStatus, ScaleUp
from kschedx.kube.autoscalers import MACHINE, NODE_POOL_ID, OWNER_KIND, OWNER_NAME, OWNER_NAMESPACE
from kschedx.kube.conditions import condition_of
from kschedx.kube.quantity import value
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.tolerations import DELETION_CANDIDATE, TO_BE_DELETED
from kschedx.kube.types import Node, Taint
from kschedx.releases.autoscaler import AutoscalerBehavior
from kschedx.snapshot.columns import ClusterRow

# Cloud-specific labels: the label of GPU nodes, and labels to ignore when groups are compared. Upstream: GPULabel of
# each cloud provider, processors/nodegroupset/*_nodegroups.go.

_GPU_LABELS: Mapping[str, str] = {
    "aws": "k8s.amazonaws.com/accelerator",
    "gce": "cloud.google.com/gke-accelerator",
    "azure": "kubernetes.azure.com/accelerator",
    "clusterapi": "cluster-api/accelerator",
}


def gpu_label(cloud_provider: str) -> str | None:
    return _GPU_LABELS.get(cloud_provider)


# Taints that a template does not keep, and taints of nodes that have not started. Upstream: utils/taints/taints.go.

_IGNORE_PREFIX = "ignore-taint.cluster-autoscaler.kubernetes.io/"
_STARTUP_PREFIX = "startup-taint.cluster-autoscaler.kubernetes.io/"
_STATUS_PREFIX = "status-taint.cluster-autoscaler.kubernetes.io/"

_DROPPED = frozenset({
    TO_BE_DELETED, DELETION_CANDIDATE,
    "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable", "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination", "NodeWithImpairedVolumes",
})  # fmt: skip
"""The autoscaler's own taints, and those for temporary conditions."""


class TaintRules(Struct, frozen=True, kw_only=True):
    """Which taints are temporary, according to the flags."""

    startup: frozenset[str]
    startup_prefixes: tuple[str, ...]
    status: frozenset[str]
    status_prefixes: tuple[str, ...]

    @classmethod
    def of(cls, flags: Flags, behavior: AutoscalerBehavior) -> TaintRules:
        named = behavior.startup_taints_are_named
        return cls(
            startup=frozenset(flags.startup_taints),
            startup_prefixes=(_IGNORE_PREFIX, *((_STARTUP_PREFIX,) if named else ()), *flags.startup_taint_prefixes),
            status=frozenset(flags.status_taints),
            status_prefixes=(_STATUS_PREFIX,) if named else (),
        )

    def is_startup(self, key: str) -> bool:
        """Return whether a node with this taint has not started."""
        return key in self.startup or key.startswith(self.startup_prefixes)

    def lasting_taints(self, taints: Iterable[Taint]) -> tuple[Taint, ...]:
        passing, prefixes = _DROPPED | self.startup | self.status, (*self.startup_prefixes, *self.status_prefixes)
        return tuple(taint for taint in taints if taint.key not in passing and not taint.key.startswith(prefixes))


# The group of each node, derived from labels and names that clouds set on nodes. The autoscaler gets it from the
# cloud's API. Every result states its source.

_POOL_LABELS: Mapping[str, str] = {
    "eks.amazonaws.com/nodegroup": r"eks-{}-(?:[0-9a-f-]+|(?:[0-9a-z]+-){{4}}[0-9a-z]+)",
    "alpha.eksctl.io/nodegroup-name": r"eksctl-.+-nodegroup-{}-NodeGroup-.+",
    "kops.k8s.io/instancegroup": r"{}\..+",
    "cloud.google.com/gke-nodepool": r".*/instanceGroups/gke-.+-{}-[0-9a-z]+-grp",
    "kubernetes.azure.com/agentpool": r"aks-{}-\d+-vmss",
    "agentpool": r"aks-{}-\d+-vmss",
    "worker.gardener.cloud/pool": r".*-{}(-z\d+)?",
    "cluster.x-k8s.io/deployment-name": r"MachineDeployment/[^/]+/{}",
    "node.openshift.io/machineset": r"MachineSet/[^/]+/{}",
}
"""A label with the name of a node's pool, and the pattern of the pool's group names."""


_Found = tuple[str, str]  # a group's name and its source


class Membership(Struct, frozen=True, kw_only=True):
    """The groups of the nodes, and their sources."""

    groups: Mapping[str, str]  # node to group; nodes without a group are absent
    sources: tuple[str, ...]  # the sources (such as labels), most frequent first
    ambiguous: tuple[str, ...] = ()  # nodes that match several groups; they count for none


def membership(
    nodes: Sequence[Node], names: Sequence[str], *, label: str = "", group_by_node: Mapping[str, str] | None = None
) -> Membership:
    """`names` are the groups'. `label` is a label whose value is the group's name; `group_by_node` is the user's.
    Without them, the clouds' conventions are tried, the most reliable first."""
    known = frozenset(names)
    if label or group_by_node:
        given = group_by_node or {}
        groups = {
            node.name: name
            for node in nodes
            if (name := given.get(node.name) or node.metadata.labels.get(label, "")) in known
        }
        return Membership(groups=groups, sources=(f"label {label}",) if label else ("the node groups file",))
    group_of_node: dict[str, str] = {}
    counts: dict[str, int] = {}
    ambiguous: list[str] = []
    rules = [
        *_rules_by_value(known),
        _provider_id_rule(names),
        _owner_rule(known),
        _pool_rule(names),
        _name_prefix_rule(names),
    ]
    for node in nodes:
        for rule in rules:
            matches = dict(rule(node))
            if len(matches) == 1:
                ((name, why),) = matches.items()
                group_of_node[node.name] = name
                counts[why] = counts.get(why, 0) + 1
                break
            if matches:
                ambiguous.append(node.name)
                break
    sources = sorted(counts, key=lambda why: -counts[why])
    return Membership(groups=group_of_node, sources=tuple(sources), ambiguous=tuple(ambiguous))


_Rule = Callable[[Node], Iterator[_Found]]


def _rules_by_value(known: frozenset[str]) -> tuple[_Rule, ...]:
    """A pool label or annotation whose value is the group's name."""

    def by_label(node: Node) -> Iterator[_Found]:
        for label in _POOL_LABELS:
            value = node.metadata.labels.get(label)
            if value in known:
                yield value, f"label {label}"

    def by_annotation(node: Node) -> Iterator[_Found]:
        value = node.metadata.annotations.get(NODE_POOL_ID)
        if value in known:
            yield value, f"annotation {NODE_POOL_ID}"

    return by_label, by_annotation


def _provider_id_rule(names: Sequence[str]) -> _Rule:
    """The group in the instance's path: `.../virtualMachineScaleSets/NAME/virtualMachines/0`."""
    by_lower = {name.lower(): name for name in names}

    def rule(node: Node) -> Iterator[_Found]:
        for part in node.spec.provider_id.lower().split("/")[:-1]:
            if part in by_lower:
                yield by_lower[part], "spec.providerID"

    return rule


def _owner_rule(known: frozenset[str]) -> _Rule:
    """Cluster API: the MachineSet, or the MachineDeployment with its prefix; OpenShift: the MachineSet."""

    def rule(node: Node) -> Iterator[_Found]:
        written = node.metadata.annotations
        machine_set = f"MachineSet/{written.get(MACHINE, '').rpartition('-')[0]}"
        if machine_set in known:
            yield machine_set, f"annotation {MACHINE}"
            return
        owner, namespace = written.get(OWNER_NAME, ""), written.get(OWNER_NAMESPACE, "")
        if not owner:
            return
        for name in (
            f"{written.get(OWNER_KIND)}/{namespace}/{owner}",
            f"MachineDeployment/{namespace}/{owner.rpartition('-')[0]}",
        ):
            if name in known:
                yield name, f"annotation {OWNER_NAME}"
                return

    return rule


def _pool_rule(names: Sequence[str]) -> _Rule:
    """The group name that the cloud derives from the pool. If a pool has a group per zone, the node's name decides."""
    cache: dict[tuple[str, str], tuple[str, ...]] = {}

    def groups_of(label: str, value: str) -> tuple[str, ...]:
        if (label, value) not in cache:
            cache[label, value] = groups_of_pools(names, [(label, value)])
        return cache[label, value]

    def rule(node: Node) -> Iterator[_Found]:
        for label in _POOL_LABELS:
            value = node.metadata.labels.get(label)
            if value is None:
                continue
            groups = groups_of(label, value)
            named = [name for name in groups if node.name.startswith(_base(name) + "-")]
            for name in named if len(named) == 1 else groups:
                yield name, f"label {label}"
            if groups:
                return

    return rule


def groups_of_pools(names: Sequence[str], labels: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the groups of the pools that labels name: `aks-gpu-1234-vmss` for agentpool=gpu."""
    patterns = [re.compile(_POOL_LABELS[key].format(re.escape(value))) for key, value in labels if key in _POOL_LABELS]
    return tuple(name for name in names if any(pattern.fullmatch(name) for pattern in patterns))


def group_title(name: str) -> str:
    """Return the name of a group for people: the URL of a group on Google Cloud without its project and zone."""
    return name.rpartition("/")[2] if name.startswith("https://") else name


def _base(name: str) -> str:
    """Return the common prefix of the names of a group's instances."""
    return name.rpartition("/")[2].rpartition(".")[2].removesuffix("-grp")


def _name_prefix_rule(names: Sequence[str]) -> _Rule:
    """Instances with the group's name as a prefix; the longest name wins."""
    bases = sorted(((_base(name) + "-", name) for name in names), key=lambda pair: -len(pair[0]))

    def rule(node: Node) -> Iterator[_Found]:
        for base, name in bases:
            if len(base) > 1 and node.name.startswith(base):
                yield name, "node names"
                return

    return rule


# The state of the groups: their nodes, which of them are ready, and how many are upcoming. Upstream:
# clusterstate/clusterstate.go, utils/kubernetes/ready.go, obtainNodeLists in core/static_autoscaler.go.

GroupOfNode = Callable[[Node], str | None]

_UNREADY_TAINTS = frozenset({
    "node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable",
})  # fmt: skip
_BAD: Mapping[str, tuple[str, ...]] = {
    "Ready": ("False", "Unknown"),
    "DiskPressure": ("True",),
    "NetworkUnavailable": ("True",),
}
"""The relevant conditions, and the statuses that make a node unready."""

_SUSPENDED = "Suspended"


class _NodeReadiness(StrEnum):
    READY = "ready"
    NOT_STARTED = "not started"
    UNREADY = "unready"
    DELETED = "being deleted"
    SUSPENDED = "suspended"


class NodeState(Struct, frozen=True, kw_only=True):
    """The autoscaler's view of a node."""

    row: ClusterRow
    group: str | None
    readiness: _NodeReadiness
    is_ready: bool  # whether its conditions, taints, startup taints, and GPUs are all ready
    lacks: str = ""  # its startup taint, or its GPU label without GPUs; empty if neither prevents readiness
    is_cordoned: bool = False
    stable_since: int = 0  # nanoseconds since 1970 of the last transition of a relevant condition

    @property
    def is_usable(self) -> bool:
        """Ready and not cordoned, as the autoscaler's list of ready nodes."""
        return self.is_ready and not self.is_cordoned

    @property
    def has_started(self) -> bool:
        return self.readiness is not _NodeReadiness.NOT_STARTED


class AutoscalerGroup(Struct, frozen=True, kw_only=True):
    """A group before any pod is evaluated."""

    status: NodeGroupStatus
    nodes: tuple[NodeState, ...]
    upcoming: int

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def headroom(self) -> int:
        """The number of nodes up to the maximum size."""
        return max(self.status.max_size - self.status.target, 0)

    @property
    def is_healthy(self) -> bool:
        return self.status.health is not Health.UNHEALTHY

    @property
    def is_backed_off(self) -> bool:
        return self.status.scale_up is ScaleUp.BACKOFF

    @property
    def unstarted_nodes(self) -> tuple[NodeState, ...]:
        return tuple(node for node in self.nodes if not node.has_started)


def node_states(
    nodes: Sequence[Node], group_of: GroupOfNode, flags: Flags, behavior: AutoscalerBehavior, now: int
) -> tuple[NodeState, ...]:
    """Return the state of every node in list order; `now` in nanoseconds since 1970."""
    judge = _Judge(
        rules=TaintRules.of(flags, behavior),
        gpu_label=gpu_label(flags.cloud_provider),
        flags=flags,
        behavior=behavior,
        now=now,
    )
    return tuple(judge.state(ClusterRow(row), node, group_of(node)) for row, node in enumerate(nodes))


class _Judge(Struct, frozen=True, kw_only=True):
    """Computes the state of a node."""

    rules: TaintRules
    gpu_label: str | None
    flags: Flags
    behavior: AutoscalerBehavior
    now: int

    def state(self, row: ClusterRow, node: Node, group: str | None) -> NodeState:
        is_ready, stable_since = _conditions(node)
        lacks = ""
        if is_ready and not node.spec.unschedulable:
            startup = (taint.key for taint in node.spec.taints if self.rules.is_startup(taint.key))
            lacks = _missing_gpu(node, self.gpu_label, self.behavior.gpus_that_show) or next(startup, "")
            is_ready = not lacks
        return NodeState(
            row=row,
            group=group,
            readiness=self._readiness(node, is_ready),
            is_ready=is_ready,
            lacks=lacks,
            is_cordoned=node.spec.unschedulable,
            stable_since=stable_since,
        )

    def _readiness(self, node: Node, is_ready: bool) -> _NodeReadiness:
        if any(taint.key == TO_BE_DELETED for taint in node.spec.taints):
            return _NodeReadiness.DELETED
        suspended = condition_of(node.status.conditions, _SUSPENDED, "True")
        if self.behavior.suspended_nodes_count and suspended is not None:
            return _NodeReadiness.SUSPENDED
        if is_ready:
            return _NodeReadiness.READY
        started_by = _time(node.metadata.creation_timestamp) + self.flags.max_node_startup_time
        return _NodeReadiness.NOT_STARTED if started_by > self.now else _NodeReadiness.UNREADY


def _conditions(node: Node) -> tuple[bool, int]:
    """Return whether the node's conditions and taints are ready, and the time of their last transition. A dump without
    any condition does not show that the node is not ready."""
    has_condition = not node.status.conditions
    is_ready = True
    since = 0
    for condition in node.status.conditions:
        bad = _BAD.get(condition.type)
        if bad is None:
            continue
        has_condition = has_condition or condition.type == "Ready"
        is_ready = is_ready and condition.status not in bad
        since = max(since, _time(condition.last_transition_time))
    if any(taint.key in _UNREADY_TAINTS for taint in node.spec.taints):
        is_ready = False
    return (is_ready, since) if has_condition else (False, 0)


def _missing_gpu(node: Node, label: str | None, resources: Sequence[str]) -> str:
    """Return the GPU label of a node without allocatable GPUs, or an empty string."""
    if label is None or label not in node.metadata.labels:
        return ""
    return "" if gpus_of(node, resources) is not None else label


def gpus_of(node: Node, resources: Sequence[str]) -> int | None:
    """Return the number of the first of these GPU resources that the node offers, or None."""
    for resource in resources:
        written = node.status.allocatable.get(resource)
        if written is not None and value(written) != 0:
            return value(written)
    return None


def _time(text: str | None) -> int:
    return nanoseconds(text) if text else 0


def cluster_is_healthy(nodes: Sequence[NodeState], flags: Flags) -> bool:
    """Return whether few enough nodes are unready, including nodes without a group."""
    unready = sum(node.readiness is _NodeReadiness.UNREADY for node in nodes)
    share = flags.max_total_unready_percentage / 100.0 * float(len(nodes))
    return not (unready > flags.ok_total_unready_count and float(unready) > share)


def autoscaler_groups(
    statuses: Sequence[NodeGroupStatus],
    nodes: Sequence[NodeState],
    behavior: AutoscalerBehavior,
) -> tuple[AutoscalerGroup, ...]:
    """Return the groups in the cloud's order."""
    members: dict[str, list[NodeState]] = {status.name: [] for status in statuses}
    for node in nodes:
        if node.group is not None and node.group in members:
            members[node.group].append(node)
    return tuple(
        AutoscalerGroup(status=status, nodes=tuple(mine), upcoming=_upcoming_count(status, mine, behavior))
        for status in statuses
        for mine in (members[status.name],)
    )


def _upcoming_count(status: NodeGroupStatus, nodes: Sequence[NodeState], behavior: AutoscalerBehavior) -> int:
    there = (_NodeReadiness.READY, _NodeReadiness.UNREADY, _NodeReadiness.SUSPENDED)
    missing = status.target - sum(node.readiness in there for node in nodes) - status.long_unregistered
    if missing <= 0 or (behavior.upcoming_needs_scale_up and status.scale_up is not ScaleUp.IN_PROGRESS):
        return 0
    return missing

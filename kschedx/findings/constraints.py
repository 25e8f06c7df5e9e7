"""Findings about a node: its own properties, its free resources, and the pod as a whole."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar, Self, TypeAlias

from kschedx.findings.facts import Facts
from kschedx.kube.documents import Document
from kschedx.kube.names import HOSTNAME

CONDITION_OF_TAINT = {
    "node.kubernetes.io/not-ready": "Ready",
    "node.kubernetes.io/unreachable": "Ready",
    "node.kubernetes.io/memory-pressure": "MemoryPressure",
    "node.kubernetes.io/disk-pressure": "DiskPressure",
    "node.kubernetes.io/pid-pressure": "PIDPressure",
    "node.kubernetes.io/network-unavailable": "NetworkUnavailable",
}
"""Each taint that the node lifecycle controller sets, with the node condition that it stands for."""
_CONTROL_PLANE = "node-role.kubernetes.io/"  # the prefix of taints that reserve nodes for the control plane
CORDON_TAINT = "node.kubernetes.io/unschedulable"


_MAINTENANCE: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("nvidia.com/gpu-driver-upgrade-state", "driver upgrade of the NVIDIA GPU operator", frozenset({"upgrade-done"})),
    ("machineconfiguration.openshift.io/state", "update of the Machine Config Operator", frozenset({"Done"})),
    ("weave.works/kured-reboot-in-progress", "reboot by kured", frozenset()),
    ("kured.dev/reboot-in-progress", "reboot by kured", frozenset()),
    ("flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress", "update of Flatcar", frozenset({"false"})),
    ("aws-node-termination-handler/action", "maintenance by aws-node-termination-handler", frozenset()),
)
"""A label or annotation of a node, the maintenance during which it is set, and its values at other times."""
MAINTENANCE_ANNOTATIONS = frozenset({*(key for key, _, _ in _MAINTENANCE), "machineconfiguration.openshift.io/reason"})
_STATES_OF_FAILURE = ("upgrade-failed", "Degraded", "Unreconcilable")


class Maintenance(Document, frozen=True, kw_only=True):
    """Why a component keeps a node cordoned, until the component uncordons it itself."""

    title: str  # `driver upgrade of the NVIDIA GPU operator`
    is_failed: bool = False
    message: str = ""

    @classmethod
    def of(cls, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Self | None:
        for key, title, idle in _MAINTENANCE:
            state = labels.get(key) or annotations.get(key) or ""
            if state and state not in idle:
                message = annotations.get("machineconfiguration.openshift.io/reason", "") if "openshift" in key else ""
                return cls(title=title, is_failed=state in _STATES_OF_FAILURE, message=message)
        return None


class NodeUnschedulable(Facts, frozen=True, kw_only=True):
    """The node is cordoned, and the pod does not tolerate node.kubernetes.io/unschedulable:NoSchedule."""

    optional: ClassVar[tuple[str, ...]] = ("maintenance",)
    constant_distance: ClassVar[float] = 0.5
    maintenance: Maintenance | None = None


class NodeNameMismatch(Facts, frozen=True, kw_only=True):
    wanted: str


class UntoleratedTaint(Facts, frozen=True, kw_only=True):
    """The first untolerated taint, and the most similar toleration with the same key, if any."""

    optional: ClassVar[tuple[str, ...]] = ("condition", "leftOverSince", "contradictedBy")
    key: str
    value: str
    effect: str
    nearest_toleration: int | None = None  # the index in spec.tolerations
    nearest_text: str = ""  # the toleration as kubectl prints it: `dedicated=cpu:NoSchedule`, `dedicated op=Exists`
    nearest_differs: tuple[str, ...] = ()  # the fields that differ: `key`, `value`, `effect`, or `operator`
    condition: str = ""  # if the taint stands for a node condition, the condition's message or reason
    left_over_since: str = ""  # when it was set, if what sets it should have removed it or the node long ago
    contradicted_by: str = ""
    """What the node reports instead of the condition for which the taint stands: `Ready is True`."""

    @property
    def is_left_over(self) -> bool:
        return bool(self.left_over_since or self.contradicted_by)

    @property
    def comes_with_cordon(self) -> bool:
        """Whether it is the taint of a cordoned node, which `NodeUnschedulable` reports already."""
        return self.key == CORDON_TAINT

    @property
    def is_of_role(self) -> bool:
        """Whether the taint reserves the node for a role, such as the control plane."""
        return self.key.startswith(_CONTROL_PLANE)

    @property
    def distance(self) -> float:
        if self.comes_with_cordon:
            return 0.0
        if self.is_of_role:
            return 2.0
        return 1.0 if self.nearest_toleration is None else 0.5

    def to_dict(self) -> dict[str, object]:
        return super().to_dict() | {"nearestDiffers": " and ".join(self.nearest_differs)}


class RequirementMatch(Document, frozen=True, kw_only=True):
    """The result of one requirement of a node selector term for a node."""

    key: str
    operator: str
    values: tuple[str, ...]
    actual: str | None  # None if the node lacks the label
    matched: bool

    @classmethod
    def unmatched(cls, key: str, operator: str, values: tuple[str, ...]) -> RequirementMatch:
        """Return a requirement that a node does not match, whatever its label."""
        return cls(key=key, operator=operator, values=values, actual=None, matched=False)


class TermMatch(Document, frozen=True, kw_only=True):
    index: int
    requirements: tuple[RequirementMatch, ...]

    @property
    def missing(self) -> int:
        """The number of requirements that keep the term from matching."""
        return sum(not requirement.matched for requirement in self.requirements)


class NodeAffinityMismatch(Facts, frozen=True, kw_only=True):
    """None of the terms matches. `source` is `nodeSelector` (a single term), `nodeAffinity`, or `addedAffinity`."""

    optional: ClassVar[tuple[str, ...]] = ("error",)
    source: str
    terms: tuple[TermMatch, ...]
    error: str = ""  # why no term is valid, so that none matches a node

    @property
    def same_as(self) -> Hashable:
        # the false expressions are more useful than the values that the nodes have instead
        return self.source, tuple(tuple(requirement.matched for requirement in it.requirements) for it in self.terms)

    @property
    def distance(self) -> float:
        return float(min((term.missing for term in self.terms), default=1))


class MissingNodeFeatures(Facts, frozen=True, kw_only=True):
    required: tuple[str, ...]
    missing: tuple[str, ...]


NodeFinding = NodeUnschedulable | NodeNameMismatch | UntoleratedTaint | NodeAffinityMismatch | MissingNodeFeatures


# Resources that other pods use: amounts, the number of pods, host ports.


class HostPortConflict(Facts, frozen=True, kw_only=True):
    shared: ClassVar[tuple[str, ...]] = ("port", "protocol")
    port: int
    protocol: str
    host_ip: str
    holder: str  # `namespace/name` of the pod that uses the port
    holder_host_ip: str


class InsufficientResource(Facts, frozen=True, kw_only=True):
    optional: ClassVar[tuple[str, ...]] = ("offeredNowhere",)
    resource: str
    requested: int
    used: int
    allocatable: int
    unit: str  # `m` for cpu, empty for everything else
    offered_nowhere: bool = False

    @property
    def free(self) -> int:
        return self.allocatable - self.used

    @property
    def short_by(self) -> int:
        return self.requested - self.free

    @property
    def never_fits(self) -> bool:
        """Whether the request exceeds the allocatable of the empty node."""
        return self.requested > self.allocatable

    @property
    def same_as(self) -> Hashable:
        return self.resource, self.never_fits, self.allocatable == 0

    @property
    def distance(self) -> float:
        """The missing amount as a share of the request."""
        return max(self.short_by, 0) / self.requested if self.requested > 0 else 1.0


class TooManyPods(Facts, frozen=True, kw_only=True):
    shared: ClassVar[tuple[str, ...]] = ("reason",)
    pods: int
    allowed: int


ResourceFinding = HostPortConflict | InsufficientResource | TooManyPods


# The pod as a whole.


class SchedulingGated(Facts, frozen=True, kw_only=True):
    gates: tuple[str, ...]


class NodesExcluded(Facts, frozen=True, kw_only=True):
    """PreFilter names the only possible nodes, as for a DaemonSet's pod; `existing` of them are in the cluster."""

    names: tuple[str, ...]
    existing: tuple[str, ...]


class PodGroupIncomplete(Facts, frozen=True, kw_only=True):
    """The pod's group does not exist, or has fewer pods than its gang needs (`pods` counts those in the snapshot)."""

    group: str
    exists: bool
    pods: int
    min_count: int


PodFinding = SchedulingGated | NodesExcluded | PodGroupIncomplete


# Findings about topology spread constraints, and affinity between pods.


def _domain(topology_key: str, domain: str | None) -> str | None:
    """Return the domain that nodes must share to share a headline; empty if each node is its own domain."""
    return "" if topology_key == HOSTNAME and domain is not None else domain


class DomainCount(Document, frozen=True, kw_only=True):
    domain: str
    matching: int


class TopologySpreadSkew(Facts, frozen=True, kw_only=True):
    """`matching` + `itself` - `minimum` > `max_skew` in the node's domain."""

    constraint: int  # the index in spec.topologySpreadConstraints, or in the default constraints
    topology_key: str
    domain: str
    matching: int
    itself: int
    minimum: int
    max_skew: int
    domains: tuple[DomainCount, ...]  # largest first; at most ten
    domain_count: int
    min_domains: int | None = None  # set if there are fewer domains than this, which makes the minimum 0

    @property
    def skew(self) -> int:
        return self.matching + self.itself - self.minimum

    @property
    def same_as(self) -> Hashable:
        return self.constraint, _domain(self.topology_key, self.domain)

    @property
    def distance(self) -> float:
        return float(self.skew - self.max_skew)


class TopologyLabelMissing(Facts, frozen=True, kw_only=True):
    constraint: int
    topology_key: str


class PodAffinityUnsatisfied(Facts, frozen=True, kw_only=True):
    """A required podAffinity term that no pod in the node's domain satisfies."""

    term: int
    topology_key: str
    domain: str | None  # the node's value of the topology key; None if it lacks the label
    selector: str
    """The label selector as kubectl prints it: `app=web,tier in (a,b)`; empty if it selects every pod, `<none>` if it
    selects none."""
    namespaces: tuple[str, ...]
    every_namespace: bool
    matches_itself: bool
    """Whether the pod satisfies all of its own terms, so that it could be first of its group if no other pod did."""
    pods: tuple[str, ...]  # up to five in the whole cluster that satisfy all terms, `namespace/name`
    matching_pods: int
    matching_domains: tuple[str, ...]  # up to five

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class PodAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """A required podAntiAffinity term of the pod matches a pod in the node's domain."""

    term: int
    topology_key: str
    domain: str
    selector: str
    pods: tuple[str, ...]  # up to five, `namespace/name`
    pod_count: int
    namespaces: tuple[str, ...] = ()
    every_namespace: bool = False

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class ExistingAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """A required podAntiAffinity term of a running pod matches the pod."""

    pods: tuple[str, ...]  # up to five with the term, `namespace/name`
    pod_count: int
    term: int  # the index of the term in the first pod's podAntiAffinity
    topology_key: str
    domain: str
    selector: str
    matched_labels: tuple[str, ...]  # the labels of the incoming pod that the selector reads, `key=value`

    @property
    def same_as(self) -> Hashable:
        return self.topology_key, _domain(self.topology_key, self.domain), self.selector


TopologyFinding = (
    TopologySpreadSkew
    | TopologyLabelMissing
    | PodAffinityUnsatisfied
    | PodAntiAffinityConflict
    | ExistingAntiAffinityConflict
)


# Findings with a plugin's own text.

Value: TypeAlias = str | int | bool | tuple[str, ...]


class PluginMessage(Facts, frozen=True, kw_only=True):
    """Only a text: an internal error, or a status without a finding."""

    text: str


class PluginFinding(Facts, frozen=True, kw_only=True):
    """A reason of a plugin from another package, with its facts and their text."""

    shared: ClassVar[tuple[str, ...]] = ("id", "headline")
    id: str  # the reason in the document
    headline: str
    lines: tuple[tuple[str, str], ...] = ()  # label and text of each line below the headline
    facts: tuple[tuple[str, Value], ...] = ()  # names, in camelCase, and values for the document
    shortfall: float = 1.0  # how far the node is from passing, compared with other nodes rejected for this reason

    @property
    def distance(self) -> float:
        return self.shortfall

    def to_dict(self) -> dict[str, object]:
        document: dict[str, object] = {"reason": self.id}
        document |= {name: list(value) if isinstance(value, tuple) else value for name, value in self.facts}
        return document


class Explained(Document, frozen=True, kw_only=True):
    """The explanation that `kschedx reason ID` prints for a plugin's own reason."""

    means: str
    arises: str
    fixes: tuple[str, ...] = ()  # cheapest first


# Pod groups and quotas of kubernetes-sigs/scheduler-plugins.


class GangTooSmall(Facts, frozen=True, kw_only=True):
    """A PodGroup has fewer pods, or fewer pods with a node, than its minMember; `gated` have scheduling gates."""

    group: str
    pods: int
    min_member: int
    gated: int


class ResourceGap(Document, frozen=True, kw_only=True):
    resource: str
    short_by: int  # in milli-units for cpu, in units for everything else


class GangResourcesShort(Facts, frozen=True, kw_only=True):
    """The free resources of all nodes together are less than the PodGroup's minResources."""

    group: str
    gaps: tuple[ResourceGap, ...]


class ElasticQuotaExceeded(Facts, frozen=True, kw_only=True):
    """The pod would let a namespace exceed its `max`, or `of_all` quotas together exceed the sum of `min`."""

    namespace: str
    of_all: bool
    resource: str
    requested: int
    used: int
    limit: int
    unit: str  # `m` for cpu, empty for everything else


class NumaMisfit(Facts, frozen=True, kw_only=True):
    """No single NUMA node has everything that a container requests, or the whole pod if `container` is empty."""

    container: str
    resource: str
    """The first resource of which no NUMA node has enough, among those with enough of the resources before it."""
    numa_nodes: int


SchedulerPluginsFinding = NumaMisfit | GangTooSmall | GangResourcesShort | ElasticQuotaExceeded


# Rejections by HTTP extenders.


class ExtenderRefused(Facts, frozen=True, kw_only=True):
    """An extender lists the node among the failed ones."""

    url: str
    message: str  # may be empty
    is_resolvable: bool  # whether evicting pods might help, according to the extender


class ExtenderDropped(Facts, frozen=True, kw_only=True):
    """An extender got the node and left it out of its response without a message."""

    url: str


ExtenderFinding = ExtenderRefused | ExtenderDropped

"""The cluster as the descheduler sees it during one run: an evicted pod is gone at once, and its resources are free.

Upstream: pkg/descheduler/pod, pkg/descheduler/node (NodeFit), pkg/utils, and pkg/registry/core/pod/storage/eviction.go
of Kubernetes for the budgets.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from kschedx.errors import InputError, Place
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.descheduling import NodeMetrics, PodMetrics, PodStatusFacts
from kschedx.kube.names import CPU, MEMORY, PODS
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import Exact, exact_request, nano_units, qos_of
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import RequiredNodeAffinity, Selector, compile_selector, required_node_affinity
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.kube.types import (
    FINISHED,
    Labels,
    Node,
    OwnerReference,
    PodAffinityTerm,
    PodDisruptionBudget,
    PodSpec,
    Taint,
    compile_budgets,
)
from kschedx.snapshot.snapshot import ManifestHead, ManifestName, Snapshot

_T = TypeVar("_T")
NANO, MILLI = 10**9, 10**6  # nano-units in a unit and in a thousandth


# --- facts about pods that scheduling does not read


class _Metadata(ManifestName, frozen=True, kw_only=True):
    annotations: Labels = field(default_factory=dict)


class _Spec(Struct, frozen=True, kw_only=True):
    priority: int | None = None


class _PodDetails(ManifestHead, frozen=True, kw_only=True, rename="camel"):
    metadata: _Metadata | None = None
    spec: _Spec = _Spec()
    status: PodStatusFacts = PodStatusFacts()


class PodFacts(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    key: str  # `namespace/name`
    name: str
    namespace: str
    uid: str
    node: str  # may not exist; empty without a node
    labels: Labels
    annotations: Labels
    owners: tuple[OwnerReference, ...]
    spec: PodSpec
    template: int  # a number that pods with equal specs share
    priority: int | None
    phase: str
    created: int | None  # nanoseconds since 1970
    started: int | None
    is_terminating: bool
    status: PodStatusFacts

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def is_running(self) -> bool:
        """Whether the pod is neither finished nor pending nor terminating, so that budgets count it."""
        return not (self.is_finished or self.phase == "Pending" or self.is_terminating)

    @property
    def is_ready(self) -> bool:
        return condition_of(self.status.conditions, "Ready", "True") is not None

    @property
    def is_daemon(self) -> bool:
        return any(owner.kind == "DaemonSet" for owner in self.owners)

    @property
    def qos(self) -> str:
        """The QoS class, computed if the status lacks it."""
        containers = (*self.spec.containers, *self.spec.init_containers)
        qos = qos_of(container.resources for container in containers)  # without pod-level resources, as upstream
        return self.status.qos_class or qos.name.title().replace("_", "")


def pods_of(snapshot: Snapshot) -> tuple[PodFacts, ...]:
    """Return every pod of a snapshot, in its order. Raises `InputError` if the snapshot lacks the pods' manifests."""
    pods = snapshot.pods
    if snapshot.manifests is None:
        hint = "kschedx.load(..., whole=True) keeps them"
        raise InputError("this snapshot lacks fields of pods that the descheduler reads", hint=hint)
    details = snapshot.manifests.records("Pod", _PodDetails)
    nothing = _PodDetails()
    times = _Times()
    templates = pods.specs.codes.tolist()
    converted = []
    for row in range(len(pods)):
        key = pods.key(row)
        more = details.get(key, nothing)
        converted.append(
            PodFacts(
                key=key,
                name=pods.names[row],
                namespace=pods.namespaces[row],
                uid=pods.uids[row],
                node=pods.node_names[row],
                labels=pods.labels[row],
                annotations=more.metadata.annotations if more.metadata else {},
                owners=pods.owners[row],
                spec=pods.specs[row],
                template=templates[row],
                priority=more.spec.priority,
                phase=pods.phases[row],
                created=times.of(pods.creation_timestamps[row], key, "metadata.creationTimestamp"),
                started=times.of(pods.start_times[row], key, "status.startTime"),
                is_terminating=bool(pods.deletion_timestamps[row]),
                status=more.status,
            )
        )
    return tuple(converted)


def lacks_details(pods: Sequence[PodFacts]) -> bool:
    """Return whether pods have neither a QoS class nor a container status, as in snapshots that keep fewer facts."""
    return bool(pods) and not any(pod.status.qos_class or pod.status.container_statuses for pod in pods)


class _Times:
    """Times in nanoseconds; each text is parsed once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, text: str | None, key: str, field: str) -> int | None:
        if not text:
            return None
        if text not in self._known:
            with Place(object=f"Pod {key}", field=field):
                self._known[text] = nanoseconds(text)
        return self._known[text]


class Metrics(Struct, frozen=True, kw_only=True):
    """The objects of `metrics.k8s.io`, by node name and by `namespace/name` of the pod."""

    nodes: Mapping[str, NodeMetrics]
    pods: Mapping[str, PodMetrics]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Metrics:
        nodes, pods = snapshot.objects.get(NodeMetrics, ()), snapshot.objects.get(PodMetrics, ())
        return cls(
            nodes={node.metadata.name: node for node in nodes if isinstance(node, NodeMetrics)},
            pods={pod.key: pod for pod in pods if isinstance(pod, PodMetrics)},
        )


# --- the cluster


class _Budget:
    """A PodDisruptionBudget during one run."""

    def __init__(self, budget: PodDisruptionBudget, selector: Selector) -> None:
        self._name = budget.metadata.name
        self._selector = selector
        status = budget.status
        self._allowed = status.disruptions_allowed or 0
        self._is_current = status.observed_generation >= budget.metadata.generation
        self._is_healthy = (status.current_healthy or 0) >= (status.desired_healthy or 0) > 0
        self._frees_unready = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"

    def covers(self, pod: PodFacts) -> bool:
        return self._selector.matches(pod.labels)

    def allows(self, pod: PodFacts) -> str:
        """Allow and count an eviction and return an empty string, or return the API server's refusal."""
        if not pod.is_ready and (self._frees_unready or self._is_healthy):
            return ""
        if self._is_current and self._allowed < 0:
            return f'poddisruptionbudget.policy "{self._name}" is forbidden: pod disruption budget is negative'
        if not self._is_current or self._allowed == 0:
            violates = "Cannot evict pod as it would violate the pod's disruption budget."
            return f'error when evicting pod (ignoring) "{pod.name}": {violates}'
        self._allowed -= 1
        return ""


_MORE_THAN_ONE_BUDGET = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


class PodIndex:
    """Pods by node, and the number of pods of each owner."""

    def __init__(self, pods: Sequence[PodFacts]) -> None:
        self.pods = pods
        self._on_node: dict[str, dict[str, PodFacts]] = defaultdict(dict)
        self.replicas: Counter[str] = Counter()  # by uid of the owner
        for pod in pods:
            if pod.node:
                self._on_node[pod.node][pod.key] = pod
            for uid in {owner.uid for owner in pod.owners}:
                self.replicas[uid] += 1

    def pods_by_node(self) -> dict[str, dict[str, PodFacts]]:
        """Return the pods of each node, by key, as a copy."""
        return {node: dict(pods) for node, pods in self._on_node.items()}


class Cluster:
    """Nodes, pods, and budgets while one run evicts."""

    def __init__(
        self,
        snapshot: Snapshot,
        pods: PodIndex,
        *,
        counts_budgets: bool,
        budgets: Sequence[PodDisruptionBudget] | None = None,
        nodes: Sequence[Node] | None = None,
        seed: int | None = None,
    ) -> None:
        """`counts_budgets`: the API server refuses evictions that a budget forbids. `budgets` and `nodes` replace those
        of the snapshot. `seed` is that of a random order, as the descheduler lists nodes and walks Go maps."""
        self.seed = seed
        self.nodes: tuple[Node, ...] = tuple(shuffle(snapshot.cluster.nodes if nodes is None else nodes, seed))
        self.node: Mapping[str, Node] = {node.name: node for node in self.nodes}
        self.pods = pods.pods
        self.namespaces: Mapping[str, Labels] = snapshot.namespaces
        self.claims: Mapping[str, PersistentVolumeClaim] = snapshot.storage.claims
        self.freed: list[str] = []  # the nodes of the evicted pods, in order
        self._on_node = pods.pods_by_node()
        self._replicas = pods.replicas.copy()
        compiled = compile_budgets(snapshot.disruption_budgets if budgets is None else budgets)
        self._budgets = {namespace: [_Budget(*pair) for pair in pairs] for namespace, pairs in compiled.items()}
        self._counts_budgets = counts_budgets
        self._requests: dict[int, Exact] = {}
        self._room: dict[str, _Room] = {}
        self.static_fit = _StaticFit(self.nodes)

    def pods_on(self, node: str) -> list[PodFacts]:
        """Return the pods on a node, including finished ones."""
        return list(self._on_node[node].values()) if node in self._on_node else []

    def unfinished_on(self, node: str) -> list[PodFacts]:
        pods = self._on_node.get(node)
        return [pod for pod in pods.values() if pod.phase not in FINISHED] if pods else []

    def replicas(self, uid: str) -> int:
        """Return the number of pods with this owner, in any phase."""
        return self._replicas[uid]

    def request(self, pod: PodFacts) -> Exact:
        known_request = self._requests.get(pod.template)
        if known_request is None:
            known_request = self._requests[pod.template] = exact_request(pod.spec)
        return known_request

    def budgets(self, pod: PodFacts) -> list[_Budget]:
        return [budget for budget in self._budgets.get(pod.namespace, ()) if budget.covers(pod)]

    def evict(self, pod: PodFacts) -> str:
        """Evict the pod and return an empty string, or return the API server's refusal."""
        if pod.key not in self._on_node.get(pod.node, ()):  # a pod with two owners can be a duplicate for both
            return f'pod not found when evicting "{pod.name}": pods "{pod.name}" not found'
        if self._counts_budgets and pod.is_running and pod.labels:
            covering = self.budgets(pod)
            if len(covering) > 1:
                return _MORE_THAN_ONE_BUDGET
            if covering and (refusal := covering[0].allows(pod)):
                return refusal
        self.freed.append(pod.node)
        del self._on_node[pod.node][pod.key]
        self._replicas.subtract({owner.uid for owner in pod.owners})
        if pod.node in self._room and not pod.is_finished:
            self._room[pod.node].free(self.request(pod))
        return ""

    # --- NodeFit

    def fits(self, pod: PodFacts, node: Node) -> bool:
        """Return whether NodeFit passes: some of kube-scheduler's filters, which reserve nothing for evicted pods."""
        return (
            not node.spec.unschedulable
            and self.static_fit.allows(pod, node)
            and not self._conflicts(pod, node)
            and (pod.node == node.name or self._room_of(node).has(self.request(pod)))
        )

    def _conflicts(self, pod: PodFacts, node: Node) -> bool:
        """Return whether a pod on this same node violates the pod's own required anti-affinity."""
        terms = pod.spec.required_anti_affinity
        if not terms:
            return False
        there = self.unfinished_on(node.name)
        for term in terms:
            try:
                selector = self.static_fit.selector(term)
            except InputError:
                return True
            if term.topology_key not in node.metadata.labels:
                continue
            namespaces = term.namespaces or (pod.namespace,)
            for other in there:
                if other.namespace in namespaces and other.name != pod.name and selector.matches(other.labels):
                    return True
        return False

    def _room_of(self, node: Node) -> _Room:
        room = self._room.get(node.name)
        if room is None:
            requests = [self.request(pod) for pod in self.unfinished_on(node.name)]
            room = self._room[node.name] = _Room(node.status.allocatable, requests)
        return room


class FitCheck:
    """Whether pods fit on any of some nodes. A run only frees resources, so a pod that fitted once fits again."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        self._cluster = cluster
        self._nodes = {node.name: node for node in nodes}
        self._fitting: dict[int, list[str]] = {}  # template to nodes that fit, at most two
        self._left: dict[int, tuple[int, list[str]]] = {}
        """Template to a number of evictions, and the nodes that were not yet evaluated after them."""

    def any(self, pod: PodFacts) -> bool:
        """Return whether the pod fits a node. Its own node counts too, without regard to its free resources."""
        own = self._nodes.get(pod.node)
        return (own is not None and self._cluster.fits(pod, own)) or self.other(pod)

    def other(self, pod: PodFacts) -> bool:
        """Return whether the pod fits a node other than its own."""
        fitting = self._fitting.setdefault(pod.template, [])
        if len(fitting) > 1 or (fitting and fitting[0] != pod.node):
            return True
        if pod.spec.required_anti_affinity:  # the result differs per pod: a pod of the same name does not count
            return any(name != pod.node and self._cluster.fits(pod, node) for name, node in self._nodes.items())
        freed = self._cluster.freed
        seen, left = self._left.get(pod.template, (len(freed), list(self._nodes)))
        left = [*left, *(name for name in freed[seen:] if name in self._nodes)]
        skipped = []
        for at, name in enumerate(left):
            if name == pod.node or name in fitting:
                skipped.append(name)
            elif self._cluster.fits(pod, self._nodes[name]):
                fitting.append(name)
                self._left[pod.template] = (len(freed), [*skipped, *left[at + 1 :]])
                return True
        self._left[pod.template] = (len(freed), skipped)
        return False


class _Room:
    """The free resources of a node."""

    def __init__(self, allocatable: ResourceList, requests: Iterable[Exact]) -> None:
        self._requested: Exact = defaultdict(int)
        self._pods = 0
        for request in requests:
            self._pods += 1
            for name, nano in request.items():
                self._requested[name] += nano
        self._most_pods = round_up(nano_units(allocatable.get(PODS, 0)), NANO)
        self._offered = {name: _milli_of(name, nano_units(written)) for name, written in allocatable.items()}

    def free(self, request: Exact) -> None:
        self._pods -= 1
        for name, nano in request.items():
            self._requested[name] -= nano

    def has(self, request: Exact) -> bool:
        """Return whether the request and one more pod fit; amounts are compared in thousandths, as upstream does."""
        if self._most_pods - self._pods <= 0:
            return False
        for name, nano in request.items():
            taken = _milli_of(name, self._requested.get(name, 0))
            left = self._offered[name] - taken if name in self._offered else (-taken if name in (CPU, MEMORY) else 0)
            if round_up(nano, MILLI) > left:
                return False
        return True


def _milli_of(name: str, nano: int) -> int:
    """Return an amount in thousandths; all resources but CPU are rounded to whole units first."""
    return round_up(nano, MILLI) if name == CPU else round_up(nano, NANO) * 1000


def unit_of(resource: str) -> int:
    """Return the unit to which upstream rounds amounts of a resource."""
    return MILLI if resource == CPU else NANO


def round_up(nano: int, unit: int) -> int:
    """Convert an amount to larger units, rounded away from zero."""
    return -(-nano // unit) if nano >= 0 else nano // unit


class _StaticFit:
    """The parts of NodeFit that do not change during a run; each rule runs once for equal templates and equal nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        codes: dict[tuple[Taint, ...], int] = {}
        self._taints = {node.name: codes.setdefault(node.spec.taints, len(codes)) for node in nodes}
        """Node to a number that nodes with equal taints share."""
        self._examples = {self._taints[node.name]: node for node in nodes}
        self._affinities: dict[int, RequiredNodeAffinity] = {}
        self._matching: dict[tuple[int, str], bool] = {}
        self._tolerations: dict[int, Tolerations] = {}
        self._tolerated: dict[tuple[int, int], bool] = {}
        self._selectors: dict[int, tuple[PodAffinityTerm, Selector]] = {}

    def allows(self, pod: PodFacts, node: Node) -> bool:
        return self.matches(pod, node) and self.tolerates(pod, node)

    def affinity(self, pod: PodFacts) -> RequiredNodeAffinity:
        known_affinity = self._affinities.get(pod.template)
        if known_affinity is None:
            required = pod.spec.required_node_affinity
            known_affinity = self._affinities[pod.template] = required_node_affinity(pod.spec.node_selector, required)
        return known_affinity

    def matches(self, pod: PodFacts, node: Node) -> bool:
        """Return whether the node matches the pod's nodeSelector and required node affinity."""
        if not self._selects_nodes(pod):
            return True
        key = (pod.template, node.name)
        if key not in self._matching:
            self._matching[key] = self.affinity(pod).matches(node.metadata.labels, node.name)
        return self._matching[key]

    def _selects_nodes(self, pod: PodFacts) -> bool:
        affinity = self.affinity(pod)
        return affinity.label_selector is not None or affinity.node_selector is not None

    def matching_nodes(self, pod: PodFacts, nodes: list[Node]) -> list[Node]:
        return [node for node in nodes if self.matches(pod, node)] if self._selects_nodes(pod) else nodes

    def tolerates(self, pod: PodFacts, node: Node) -> bool:
        """Return whether the pod tolerates the node's taints that reject pods."""
        taints = node.spec.taints
        if not taints:
            return True
        key = (pod.template, self._taints[node.name])
        if key not in self._tolerated:
            self._tolerated[key] = self.tolerations(pod).uncovered_taint(taints, DO_NOT_SCHEDULE) is None
        return self._tolerated[key]

    def tolerations(self, pod: PodFacts) -> Tolerations:
        if pod.template not in self._tolerations:
            self._tolerations[pod.template] = Tolerations(pod.spec.tolerations, comparison=True)
        return self._tolerations[pod.template]

    def tolerated_nodes(self, pod: PodFacts, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes whose taints do not reject the pod."""
        allowed = {code for code, node in self._examples.items() if self.tolerates(pod, node)}
        if len(allowed) == len(self._examples):
            return list(nodes)
        codes = self._taints
        return [node for node in nodes if codes[node.metadata.name] in allowed]

    def selector(self, term: PodAffinityTerm) -> Selector:
        """Return the term's compiled selector. Raises `InputError`."""
        known = self._selectors.get(id(term))
        if known is None:
            known = self._selectors[id(term)] = (term, compile_selector(term.label_selector))
        return known[1]


def shuffle(items: Iterable[_T], seed: int | None) -> list[_T]:
    """Return the items in the random order of a seed, or without one in their own order."""
    shuffled = [*items]
    if seed is not None:
        random.Random(seed).shuffle(shuffled)
    return shuffled


def nodes_for(cluster: Cluster, selector: Selector) -> tuple[Node, ...]:
    return tuple(
        node
        for node in cluster.nodes
        if selector.matches(node.metadata.labels) and reports_ready(node.status.conditions)
    )


def group_by_namespace(pods: Iterable[PodFacts]) -> dict[str, list[PodFacts]]:
    pods_by_namespace: dict[str, list[PodFacts]] = {}
    for pod in pods:
        pods_by_namespace.setdefault(pod.namespace, []).append(pod)
    return pods_by_namespace


def select_pods(pods: Iterable[PodFacts], selector: Selector) -> Iterator[PodFacts]:
    """Yield the pods that a selector selects; pods of one template share their labels, which are evaluated once."""
    known: dict[int, bool] = {}
    for pod in pods:
        labels = id(pod.labels)
        if labels not in known:
            known[labels] = selector.matches(pod.labels)
        if known[labels]:
            yield pod

"""Steps that change nodes, or add one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.advice import FixGroup
from kschedx.explain.hardware import TPU_TOPOLOGY, DevicePluginDown, hosts_of_slice
from kschedx.findings.constraints import CONDITION_OF_TAINT, CORDON_TAINT
from kschedx.fixes.phrases import amount_text, join_names, join_phrases, resource_name
from kschedx.fixes.proposal import ClusterObject, Cost, FixStep, Proposal
from kschedx.kube.autoscalers import OPENSHIFT_GROUP
from kschedx.kube.devices import ResourceSlice
from kschedx.kube.documents import with_spec
from kschedx.kube.escaping import shell_command, why_command
from kschedx.kube.maintenance import MAINTENANCE_TAINTS
from kschedx.kube.names import EPHEMERAL_STORAGE, HOSTNAME, REGION_LABELS
from kschedx.kube.quantity import Unit, format_quantities, format_quantity, resource_amount
from kschedx.kube.storage import CSINode
from kschedx.kube.tolerations import TO_BE_DELETED
from kschedx.kube.types import LOST_TAINTS, Node, Taint
from kschedx.patterns import lazy_pattern
from kschedx.simulate.changes import set_cordon
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

_SHOWN_LABELS = 4
_LEAST_BYTES = 1024  # the smallest amount of memory that says what a node needs
_OF_ZONE = lazy_pattern(r"^(?:topology\.[^/]+|failure-domain\.beta\.kubernetes\.io)/zone$")
_SHUT_DOWN = "node.cloudprovider.kubernetes.io/shutdown"


class NodeStep(FixStep, frozen=True, kw_only=True):
    """A step that changes an existing node."""

    _cost = Cost.NODE
    _group = FixGroup.CLUSTER
    row: ClusterRow
    node: str
    pool: str = ""  # the node pool whose template gives the next node what the step changes; empty if it keeps that

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.node,))

    @property
    def costs(self) -> tuple[str, ...]:
        lasting = f"only until {self.node} is replaced: change the template of node pool {self.pool} as well"
        return (lasting,) if self.pool else ()

    def edit(self, node: Node) -> Node:
        raise NotImplementedError

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        before = proposal.nodes.get(self.row, snapshot.cluster.nodes[self.row])
        return replace(proposal, nodes={**proposal.nodes, self.row: self.edit(before)})


class Uncordon(NodeStep, frozen=True, kw_only=True):
    _title = "uncordon {s.node}"
    _cost = Cost.REPAIR
    _group = FixGroup.CAPACITY

    def edit(self, node: Node) -> Node:
        return set_cordon(node, unschedulable=False)

    def commands(self) -> tuple[str, ...]:
        return (shell_command("kubectl uncordon {}", self.node),)


_STATES = {
    TO_BE_DELETED: "cluster-autoscaler has not removed",
    CORDON_TAINT: "is not cordoned",
    "node.kubernetes.io/memory-pressure": "is no longer short of memory",
    "node.kubernetes.io/disk-pressure": "is no longer short of disk",
    "node.kubernetes.io/pid-pressure": "is no longer short of process IDs",
    "node.kubernetes.io/network-unavailable": "has a network again",
}
"""Taints to the state of a node on which they are left over."""


class RemoveTaints(NodeStep, frozen=True, kw_only=True):
    taints: tuple[Taint, ...]
    is_left_over: bool = False  # whether what set the taints should have removed them
    is_of_openshift: bool = False  # whether the Machine Config Operator sets them, and would add them again

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if self.is_left_over else Cost.NODE

    @property
    def title(self) -> str:
        again = f", which {_STATES.get(self.taints[0].key, 'is ready again')}" if self.is_left_over else ""
        what = f"taint {' and '.join(map(str, self.taints))} from {self.node}{again}"
        if self.is_of_openshift:
            return f"set mastersSchedulable: true in Scheduler cluster, which removes {what}"
        return f"remove {what}"

    def edit(self, node: Node) -> Node:
        return _without_taints(node, lambda taint: taint in self.taints)

    def commands(self) -> tuple[str, ...]:
        if self.is_of_openshift:
            template = "oc patch schedulers.config.openshift.io cluster --type merge -p {}"
            return (shell_command(template, {"spec": {"mastersSchedulable": True}}),)
        return (
            shell_command(f"kubectl taint node {{}}{' {}-' * len(self.taints)}", self.node, *map(str, self.taints)),
        )


class LabelNode(NodeStep, frozen=True, kw_only=True):
    labels: tuple[tuple[str, str], ...]
    is_first: bool = False  # whether no node has a label with one of these keys
    is_overwritten: bool = False  # whether the node has another value, which no pod and no workload selects

    @property
    def cost(self) -> Cost:
        return Cost.LABEL if self.is_first else Cost.NODE

    @property
    def title(self) -> str:
        return f"label {self.node} {', '.join(f'{key}={value}' for key, value in self.labels)}"

    def edit(self, node: Node) -> Node:
        return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **dict(self.labels)}))

    def commands(self) -> tuple[str, ...]:
        template = "kubectl label node {}" + " {}={}" * len(self.labels) + " --overwrite" * self.is_overwritten
        return (shell_command(template, self.node, *(word for label in self.labels for word in label)),)


class RepairLabels(LabelNode, frozen=True, kw_only=True):
    """Labels that a node should have by itself: an agent, its kubelet, or its cloud provider sets them."""

    _cost = Cost.REPAIR
    title: str
    is_by_hand: bool = False  # whether you set the labels yourself

    @property
    def cost(self) -> Cost:
        return self._cost

    def commands(self) -> tuple[str, ...]:
        return super().commands() if self.is_by_hand else ()


_NO_NETWORK = lazy_pattern(r"NetworkPluginNotReady|cni (plugin|config)", re.IGNORECASE)


class NodeFault(Struct, frozen=True, kw_only=True):
    """A taint that stands for a fault of a node or an unfinished initialization."""

    taint: Taint
    by: str  # the component that removes it
    reported: str = ""  # the message or reason that the node reports in its condition
    agents: tuple[str, ...] = ()  # pods of DaemonSets, `namespace/name`, that are not ready on the node
    waiting: str = ""  # the first pod, `namespace/name`, of the component, if it has no node
    intolerant: str = ""  # the DaemonSet, `namespace/name`, of the agent, if it does not tolerate the taint
    ready: str = ""  # the agent, `namespace/name`, that is ready on the node and should have removed the taint
    is_absent: bool = False  # whether the cluster has no such agent
    pool: str = ""  # the Karpenter NodePool that sets the startup taint
    is_failed: bool = False  # whether the maintenance that keeps the node cordoned does not continue by itself
    is_ordered: bool = False  # whether a NodeMaintenance keeps the node cordoned until it is deleted
    maintenance: str = ""  # the name of that NodeMaintenance; empty if it is not known

    @property
    def comes_with_cordon(self) -> bool:
        return self.taint.key == CORDON_TAINT or self.taint.key in MAINTENANCE_TAINTS

    def title(self, node: str) -> str:
        """Return the title: `free memory on node-4`, `repair node-4: it is NotReady`."""
        agents = f" ({join_phrases(self.agents[:3])})" if self.agents else ""
        match self.taint.key:
            case _ if self.is_ordered:
                ordered = f"NodeMaintenance {self.maintenance}" if self.maintenance else "its NodeMaintenance"
                return f"delete {ordered} when {node} needs no more maintenance"
            case _ if self.comes_with_cordon and self.is_failed:
                return f"repair the {self.by} on {node}, which keeps it cordoned"
            case _ if self.comes_with_cordon:
                return f"wait for the {self.by} on {node}, which uncordons it"
            case "node.kubernetes.io/not-ready" if _NO_NETWORK.search(self.reported):
                return f"install or repair the CNI plugin on {node}{agents}: it is NotReady"
            case "node.kubernetes.io/not-ready" if "shutting down" in self.reported:
                return f"start {node} again: it is shutting down"
            case "node.kubernetes.io/not-ready":
                return f"repair {node}: it is NotReady"
            case "node.kubernetes.io/unreachable":
                return f"repair {node}: it is unreachable"
            case "node.kubernetes.io/disk-pressure":
                return f"free disk space on {node}"
            case "node.kubernetes.io/memory-pressure":
                return f"free memory on {node}"
            case "node.kubernetes.io/pid-pressure":
                return f"free process IDs on {node}"
            case "node.kubernetes.io/network-unavailable":
                return f"repair the network of {node}{agents}"
            case _ if self.taint.key == _SHUT_DOWN:
                return f"start {node}: it is shut down"
            case _ if self.waiting:
                return f"find a node for {self.waiting} first, which initializes {node}"
            case key if key.endswith(("/uninitialized", "/unregistered")):
                return f"repair {self.by}{agents}, so that it initializes {node}"
            case _ if self.intolerant:
                return f"tolerate {self.taint} in DaemonSet {self.intolerant}, which then removes it from {node}"
            case key if key.startswith("readiness.k8s.io/"):
                what = f", which reports {self.reported}" if self.reported else ", as its NodeReadinessRule requires"
                return f"repair {node}{what}: the Node Readiness Controller then removes its taint"
            case _ if self.ready:
                return f"restart {self.ready}, which is ready on {node} and has not removed its taint"
            case key if self.is_absent:
                return f"install the agent of {self.by}, or remove taint {key} from {node} if it is uninstalled"
            case _ if self.pool:
                by = f"NodePool {self.pool} sets it as a startup taint"
                return f"repair the agent{agents} that removes {self.taint.key} from {node}: {by}"
            case _:
                return f"repair the agent of {self.by} on {node}{agents}, which then removes its taint"


class RepairNode(NodeStep, frozen=True, kw_only=True):
    """The node is repaired; the components that set the taints then remove them."""

    _cost = Cost.REPAIR
    _group = FixGroup.CAPACITY
    faults: tuple[NodeFault, ...]

    @property
    def title(self) -> str:
        is_down = any(fault.taint.key == _SHUT_DOWN for fault in self.faults)
        titles = (fault.title(self.node) for fault in self.faults if not (is_down and fault.taint.key in LOST_TAINTS))
        return " and ".join(dict.fromkeys(titles))

    def edit(self, node: Node) -> Node:
        gone = {fault.taint for fault in self.faults}
        if any(taint.key == CORDON_TAINT for taint in gone):
            node = set_cordon(node, unschedulable=False)
        repaired = {CONDITION_OF_TAINT.get(taint.key) for taint in gone}
        conditions = (
            replace(it, status="True" if it.type == "Ready" else "False") if it.type in repaired else it
            for it in node.status.conditions
        )
        node = replace(node, status=replace(node.status, conditions=tuple(conditions)))
        return _without_taints(node, lambda taint: taint in gone)

    def commands(self) -> tuple[str, ...]:
        names = {fault.maintenance for fault in self.faults}
        waiting = dict.fromkeys(fault.waiting for fault in self.faults if fault.waiting)
        ended = (shell_command("kubectl delete nodemaintenance {}", name) for name in names if all(names))
        return (*map(why_command, waiting), *ended)

    def repairs(self) -> Iterator[tuple[ClusterRow, Taint, str]]:
        yield from ((self.row, fault.taint, fault.by) for fault in self.faults)


class NodeAmount(Struct, frozen=True, kw_only=True):
    """A node's amount of a resource before and after a change, in the resource's own unit; `pods` is the number of pods
    that the node can run."""

    resource: str
    before: int
    after: int

    def __str__(self) -> str:
        """Return the change as text: `4 CPU instead of 2`, `11 pods instead of 10`."""
        if self.resource == "pods":
            return f"{count(self.after, 'pod')} instead of {self.before}"
        before, after = format_quantities((self.before, self.after), Unit.of(self.resource))
        return f"{after} {resource_name(self.resource)} instead of {before}"


class EnlargeNode(NodeStep, frozen=True, kw_only=True):
    """A larger node in place of one that has too little of some resources."""

    _group = FixGroup.CAPACITY
    amounts: tuple[NodeAmount, ...]
    is_of_kubelet: bool = False  # whether only the kubelet's limit of pods is too low
    has_prefixes: bool = False  # whether its CNI plugin allows more pods with prefix delegation, as Amazon's does

    @property
    def cost(self) -> Cost:
        return Cost.MOVE if self.is_of_kubelet else Cost.NODE

    @property
    def title(self) -> str:
        if self.is_of_kubelet:
            [pods] = self.amounts
            by = (
                "kubelet's maxPods, with prefix delegation in the VPC CNI" if self.has_prefixes else "kubelet's maxPods"
            )
            return f"raise the maximum number of pods on {self.node} from {pods.before} to {pods.after} ({by})"
        return f"enlarge {self.node} to {' and '.join(map(str, self.amounts))}"

    def edit(self, node: Node) -> Node:
        return _with_allocatable(node, self.amounts)


class OfferResource(NodeStep, frozen=True, kw_only=True):
    """A node offers what it did not offer before: hardware that its labels name, or memory reserved as huge pages."""

    _group = FixGroup.CAPACITY
    resource: str
    amounts: tuple[NodeAmount, ...]
    label: str = ""  # `key=value`, which names the hardware; empty for huge pages
    is_unhealthy: bool = False  # whether the node's capacity includes the devices, so that they are unhealthy
    feature: str = ""  # the setting of the machine that it takes, such as `hardware virtualization (/dev/kvm)`
    plugin: DevicePluginDown | None = None  # None if the cause is unknown

    @property
    def cost(self) -> Cost:
        """Huge pages are set aside on a node that had none, mostly when it starts."""
        return Cost.REPAIR if self.label or self.is_unhealthy or self.feature or self.plugin is not None else Cost.NODE

    @property
    def title(self) -> str:
        if self.plugin is not None and self.plugin.repair and not (self.feature and self.plugin.finds_nothing):
            return self.plugin.repair
        if self.feature:
            return f"enable {self.feature} in the machine or hypervisor of {self.node}"
        if self.is_unhealthy:
            return (
                f"repair the device plugin for {self.resource} on {self.node}, or the devices that it reports unhealthy"
            )
        if self.label:
            return f"run the device plugin for {self.resource} on {self.node} ({self.label})"
        if self.resource == EPHEMERAL_STORAGE:
            return f"let the kubelet of {self.node} report {self.resource} (localStorageCapacityIsolation)"
        size = format_quantity(self.amounts[0].after, Unit.of(self.resource))
        return f"reserve {size} of the memory of {self.node} as {self.resource}, then restart its kubelet"

    def edit(self, node: Node) -> Node:
        return _with_allocatable(node, self.amounts)


class OfferDevices(FixStep, frozen=True, kw_only=True):
    """A driver that does not run on a node publishes the node's devices."""

    _cost = Cost.REPAIR
    _group = FixGroup.CAPACITY
    node: str
    label: str  # `key=value`, which names the hardware; may be empty if agents are known
    agents: tuple[str, ...] = ()  # pods of the driver, `namespace/name`, that are not ready there
    slices: tuple[ResourceSlice, ...]

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.node,))

    @property
    def title(self) -> str:
        drivers = join_names(sorted({resource_slice.spec.driver for resource_slice in self.slices}), _SHOWN_LABELS)
        verb, known = ("repair", join_phrases(self.agents)) if self.agents else ("run", self.label)
        return f"{verb} the DRA driver {drivers} on {self.node} ({known}), so that it publishes devices"

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return proposal.with_objects(*self.slices)

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        yield from ((resource_slice, resource_slice.spec.driver) for resource_slice in self.slices)


DOMAIN_OF_ITS_OWN = "new"  # the value of a label for a new node in a domain without nodes


class AddNode(FixStep, frozen=True, kw_only=True):
    """A new node; `model` is the one that it copies, empty for the smallest node that would fit."""

    _cost = Cost.NEW_NODE
    _group = FixGroup.CAPACITY
    node: Node
    model: str = ""
    slices: tuple[ResourceSlice, ...] = ()
    attributes: tuple[str, ...] = ()
    """Attributes of the node's devices, `name=value`, that claims select and no other device has."""
    csi_node: CSINode | None = None
    taken: Mapping[str, int] = {}
    """Requests of DaemonSets there before the pod runs; `pods` is the number of their pods."""
    without: tuple[str, ...] = ()
    """Labels that other nodes have and this one must not have: `gpu`, `kubernetes.io/os=linux`."""
    untainted: tuple[str, ...] = ()  # keys of the taints that all other nodes have and this one must not have
    more_pods_than: int = 0
    """The number of pods that the largest existing nodes can run, if that is too few; 0 otherwise."""
    scalable: str = ""  # what creates nodes like that one: `MachineSet openshift-machine-api/worker-a`
    replicas: int = 0  # its replicas
    missing: int = 0  # its machines without a ready node, which come before further ones
    failure: str = ""  # the title of the repair of a failed machine among them
    limit: tuple[str, int] | None = None  # the annotation with its maximum for an autoscaler, and that
    number: int = 1  # how many of them, if pods of a higher priority take the room of the first

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset((self.node.name,))

    @property
    def restores(self) -> str:
        """The host name without which the node does not help; empty if any new node may help."""
        host = self.node.metadata.labels.get(HOSTNAME, self.node.name)
        return "" if self.model or host == self.node.name else host

    @property
    def title(self) -> str:
        return self.title_of(self.number)

    def title_of(self, number: int, zones: Sequence[str] = ()) -> str:
        """Return the title for this number of nodes, in these zones or all in one."""
        added = "add a node" if number == 1 else f"add {number:,} nodes"
        if self.restores:
            added = f"restore node {self.restores}, or add a node with that host name"
        if self.is_first_machine:
            free = f", if its machines have {offers[-1]}" if (offers := [*self._free()]) else ""
            return f"scale {self.scalable} from {self.replicas} to {self.replicas + number}{free}"
        if self.missing >= number:
            if self.failure:
                return self.failure
            waits = "the node" if number == 1 else f"{number:,} nodes"
            return f"repair or wait for {waits} that {self.scalable} lacks: {self._ready}"
        if self.model and (hosts := hosts_of_slice(self.node)) > 1:
            pools = "another TPU node pool" if number <= hosts else f"{-(-number // hosts):,} more TPU node pools"
            topology = self.node.metadata.labels[TPU_TOPOLOGY]
            return f"add {pools} of topology {topology}, which is created whole: {hosts:,} nodes like {self.model}"
        if self.model and not self.slices:
            scale = f": {self._scaled(number)}" if self.scalable else ""
            return f"{added} like {self.model}{_zones_text(zones)}{'' if zones else scale}"
        phrases = [f"{added}{_zones_text(zones)}", *self._location(is_zone_known=bool(zones))]
        if offers := [*self._offers(), *self._devices()]:
            phrases.append(f"{'with' if number == 1 else 'each with'} {join_phrases(offers)}")
        return " ".join(phrases) + self._daemons()

    def _scaled(self, number: int) -> str:
        """Return what makes `scalable` create these nodes: its autoscaler does so up to its maximum."""
        to = self.replicas + number
        if self.limit is None or to <= self.limit[1]:
            return f"scale {self.scalable} from {self.replicas} to {to}"
        key, maximum = self.limit
        setting = "maxReplicas of the MachineAutoscaler" if OPENSHIFT_GROUP in key else f"annotation {key}"
        reached = ", which it has reached," if self.is_at_maximum else ""
        return f"raise {setting} of {self.scalable} from {maximum}{reached} to {to}"

    @property
    def is_at_maximum(self) -> bool:
        """Whether an autoscaler does not scale `scalable` further."""
        return self.limit is not None and self.replicas >= self.limit[1]

    @property
    def is_first_machine(self) -> bool:
        """Whether it is the first machine of an object that is scaled to zero."""
        return bool(self.scalable) and not self.model and not self.missing

    @property
    def cost(self) -> Cost:
        return Cost.POD if self.scalable and not self.model else self._cost

    @property
    def _ready(self) -> str:
        return f"{self.replicas - self.missing} of {count(self.replicas, 'machine')} ready"

    def commands(self) -> tuple[str, ...]:
        """Return the command that adds the machines, or those that show why one has no node: often its certificate
        request is not approved."""
        is_copied = bool(self.scalable and self.model) and not (self.slices or self.restores or self.limit)
        if self.is_first_machine or (is_copied and self.missing < self.number):
            kind, _, key = self.scalable.partition(" ")
            namespace, _, name = key.partition("/")
            template = f"kubectl scale {{}} {{}} -n {{}} --replicas={self.replicas + self.number}"
            return (shell_command(template, kind.lower(), name, namespace),)
        if self.missing < self.number:
            return ()
        return ("kubectl get machines -A",) if self.failure else ("kubectl get machines -A", "kubectl get csr")

    def _location(self, *, is_zone_known: bool) -> Iterator[str]:
        """Yield the location: `in zone eu-1c`, `in a new zone`."""
        if (zones := self._zones()) and not is_zone_known:
            yield "in a new zone" if DOMAIN_OF_ITS_OWN in zones else f"in zone {join_phrases(zones)}"
        if self.without:
            yield f"without label {join_names([*self.without], _SHOWN_LABELS)}"
        if self.untainted:
            yield f"without taint {join_names([*self.untainted], _SHOWN_LABELS)}"

    def _zones(self) -> list[str]:
        """Return the zones that the node's labels and those of its storage drivers name; mostly, they are the same."""
        labels = self.node.metadata.labels.items()
        return [*dict.fromkeys(value for key, value in labels if value and _OF_ZONE.search(key))]

    def _offers(self) -> Iterator[str]:
        own = self.node.metadata.labels
        implied = (*self._zones(), *(own.get(key) for key in REGION_LABELS if self._zones()), own.get(HOSTNAME))
        labels = {key: value for key, value in own.items() if value not in implied}
        named = [f"{key}={value}" for key, value in labels.items() if value != DOMAIN_OF_ITS_OWN]
        if named:
            yield f"label {join_names(named, _SHOWN_LABELS)}"
        if new := [key for key, value in labels.items() if value == DOMAIN_OF_ITS_OWN]:
            yield f"{'a new value' if len(new) == 1 else 'new values'} of label {join_names(new, _SHOWN_LABELS)}"
        if features := self.node.status.declared_features:
            yield f"declared feature{'s' if len(features) > 1 else ''} {join_phrases(features)}"
        free = [*self._free()]
        yield from free
        if self.more_pods_than:
            yield f"room for more than {count(self.more_pods_than, 'pod')}"
        elif not (free or self.slices or len({*own.values()}) > 1):
            yield "room for one pod"

    def _free(self) -> Iterator[str]:
        free = []
        for name, written in self.node.status.allocatable.items():
            left = resource_amount(name, written) - self.taken.get(name, 0)
            if name != "pods" and left >= (_LEAST_BYTES if Unit.of(name) is Unit.BYTE else 1):
                free.append(amount_text(name, left))
        if free:
            yield f"at least {join_phrases(free)} free"

    def _devices(self) -> Iterator[str]:
        if number := sum(len(resource_slice.spec.devices) for resource_slice in self.slices):
            drivers = join_names(sorted({resource_slice.spec.driver for resource_slice in self.slices}), _SHOWN_LABELS)
            selected = f" ({join_names(list(self.attributes), _SHOWN_LABELS)})" if self.attributes else ""
            yield f"{count(number, 'device')} of {drivers}{selected}"

    def _daemons(self) -> str:
        """Return what DaemonSets request: `; 3 DaemonSets take another 150m CPU and 200Mi memory`."""
        amounts = [amount_text(name, amount) for name, amount in self.taken.items() if name != "pods"]
        number = self.taken.get("pods", 0)
        if self.more_pods_than and number:
            return f": {count(number, 'DaemonSet')} {'runs' if number == 1 else 'run'} a pod on each node"
        take = "takes" if number == 1 else "take"
        return f"; {count(number, 'DaemonSet')} {take} another {join_phrases(amounts)}" if amounts else ""

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        after = proposal.with_objects(*self.slices)
        after = after if self.csi_node is None else after.with_objects(self.csi_node)
        return replace(after, added=self.node, taken=self.taken)


def _zones_text(zones: Sequence[str]) -> str:
    return f" in zones {join_names([*zones], _SHOWN_LABELS)}" if zones else ""


def _without_taints(node: Node, is_removed: Callable[[Taint], bool]) -> Node:
    taints = tuple(taint for taint in node.spec.taints if not is_removed(taint))
    return with_spec(node, taints=taints)


def _with_allocatable(node: Node, amounts: Iterable[NodeAmount]) -> Node:
    more = {amount.resource: format_quantity(amount.after, Unit.of(amount.resource)) for amount in amounts}
    return replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **more}))

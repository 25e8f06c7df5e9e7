"""The node that would do: labels, amounts and devices of a smallest new node on which the pod passes.

What the pod asks of a node is read from the pod and its volumes. In which zone the node is to stand is taken from the
nodes that are there; which of them is right is for the trial to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, product

from msgspec.structs import replace

from kschedx.api.devices import ResourceSlice
from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.resource_names import is_extended_resource
from kschedx.api.resources import pod_request
from kschedx.api.storage import CSINode, CSINodeDriver, CSINodeSpec
from kschedx.api.types import Node, NodeStatus, ObjectMeta, Pod, PodAffinity
from kschedx.findings import (
    DriverNotInstalled,
    ExistingAntiAffinityConflict,
    Finding,
    MissingNodeFeatures,
    PodAntiAffinityConflict,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.findings.topology import HOSTNAME
from kschedx.fixes import steps as s
from kschedx.fixes.new_devices import (
    MOST_OF_A_SLICE,
    described_devices,
    device_kinds,
    needs_devices,
    slices_with,
    wanted_devices,
)
from kschedx.fixes.node_taints import OF_CONTROL_PLANE, is_of_the_kind
from kschedx.fixes.required_labels import labels_for, requirements_of
from kschedx.fixes.situation import Place, Situation

MOST_MODELS = 6
"""Nodes after which a new one is modelled: each stands in another domain, or has other devices."""
MOST_COPIES = 4
"""Nodes of which one more is tried."""
PODS = "110"
"""kubelet's own default of how many pods a node takes."""


def one_more_node(place: Place) -> s.AddNode:
    """An empty node of the same kind."""
    return _one_more(place.node, place.situation)


def _one_more(node: Node, situation: Situation) -> s.AddNode:
    """Under a name of its own; annotations, instance, times, and what is wrong with it now are those of the old one."""
    name = _free_name(f"{node.name}-new", situation)
    labels = {**node.metadata.labels, HOSTNAME: name}
    conditions = tuple(replace(one, last_transition_time=None, reason="", message="") for one in node.status.conditions)
    taints = tuple(filter(is_of_the_kind, node.spec.taints))
    new = replace(
        node,
        metadata=ObjectMeta(name=name, labels=labels),
        spec=replace(node.spec, provider_id="", unschedulable=False, taints=taints),
        status=replace(node.status, conditions=conditions),
    )
    return s.AddNode(node=new, like=node.name, taken=situation.taken_by_daemons(new))


def nodes_that_would_do(situation: Situation) -> Iterator[s.AddNode]:
    """Candidates: one more of those that there are, then the most plain ones."""
    pod = situation.pod
    keys = tuple(sorted({*_topology_keys(pod), *_topology_keys_of_profile(situation), *_keys_of_all(situation)}))
    if needs_devices(situation):
        yield from _with_devices(situation, keys)
    else:
        yield from islice(_copies(situation), MOST_COPIES)
    yield from _plain(situation, keys)


def _copies(situation: Situation) -> Iterator[s.AddNode]:
    """Of the nearest node of each group that has as much as the pod asks for, and nothing special besides."""
    cluster = situation.snapshot.cluster
    asked = pod_request(situation.pod.spec, situation.pod.status, situation.scheduler.nodes.options).amounts
    known = {name: column for column, name in enumerate(cluster.resources.names)}
    if any(amount > 0 and name not in known for name, amount in asked.items()):
        return
    for group in situation.groups:
        row = situation.nodes.cluster_row(group.exemplar.row)
        enough = all(cluster.allocatable[row, known[name]] >= amount for name, amount in asked.items() if amount > 0)
        node = cluster.nodes[row]
        of_control_plane = any(taint.key in OF_CONTROL_PLANE for taint in node.spec.taints)
        special = any(
            is_extended_resource(name) and str(amount) != "0" and not asked.get(name)
            for name, amount in node.status.allocatable.items()
        )
        if enough and not of_control_plane and not special:
            yield _one_more(node, situation)


def _with_devices(situation: Situation, keys: tuple[str, ...]) -> Iterator[s.AddNode]:
    """A node with enough of every kind of device, or with those that claims describe; `fewer_devices` takes away what
    is not needed."""
    kinds = device_kinds(situation)
    count = min(wanted_devices(situation), MOST_OF_A_SLICE // max(len(kinds), 1))
    described = described_devices(situation)
    for kinds_and_counts in (dict.fromkeys(kinds, count), described):
        for step in islice(_plain(situation, keys), 3) if kinds_and_counts else ():
            yield replace(step, like="", slices=tuple(slices_with(kinds_and_counts, step.node.name)))


def fewer_devices(step: s.AddNode) -> Iterator[s.AddNode]:
    """The node with one kind of device less, or with one device less of a kind."""
    for position, one in enumerate(step.slices):
        kinds: dict[str, int] = {}
        for device in one.spec.devices:
            kinds[repr(replace(device, name=""))] = kinds.get(repr(replace(device, name="")), 0) + 1
        for kind, count in kinds.items():
            for kept in dict.fromkeys((0, count - 1)):
                left = [device for device in one.spec.devices if repr(replace(device, name="")) != kind]
                left += [device for device in one.spec.devices if repr(replace(device, name="")) == kind][:kept]
                slices = [replace(one, spec=replace(one.spec, devices=tuple(left)))] if left else []
                yield replace(step, slices=(*step.slices[:position], *slices, *step.slices[position + 1 :]))


def _plain(situation: Situation, keys: tuple[str, ...]) -> Iterator[s.AddNode]:
    wanted = list(requirements_of(situation))
    taken = {value for value in situation.snapshot.cluster.label(HOSTNAME).values if value is not None}
    for model, requirements in product(_models(situation, keys), wanted):
        labels = {key: _domain(model, key) for key in keys if key != HOSTNAME}
        named = labels_for(labels, requirements)
        if named is None:
            continue
        name, labels = named
        if name in situation.snapshot.cluster.index or labels.get(HOSTNAME, "") in taken:
            continue  # what is on that machine's disks is not on another's
        yield _node(situation, name or _free_name("new-node", situation), labels, model)


def _node(situation: Situation, name: str, labels: Mapping[str, str], model: Node | None) -> s.AddNode:
    options = situation.scheduler.nodes.options
    amounts = pod_request(situation.pod.spec, situation.pod.status, options).amounts
    labels = {**labels, HOSTNAME: labels.get(HOSTNAME, name)}
    taken = situation.taken_by_daemons(Node(metadata=ObjectMeta(name=name, labels=labels)))
    asked = Counter({resource: amount for resource, amount in amounts.items() if amount > 0})
    asked.update({one.resource: one.amount for one in taken if one.resource != "pods"})
    allocatable = {resource: format_quantity(amount, Unit.of(resource)) for resource, amount in asked.items()}
    findings = _findings(situation)
    features = next((one.required for one in findings if isinstance(one, MissingNodeFeatures)), ())
    drivers = sorted({one.driver for one in findings if isinstance(one, DriverNotInstalled)})
    node = Node(
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(
            allocatable={"cpu": "0", "memory": "0", **allocatable, "pods": PODS}, declared_features=features
        ),
    )
    csi_node = CSINode(
        metadata=ObjectMeta(name=name),
        spec=CSINodeSpec(drivers=tuple(CSINodeDriver(name=driver) for driver in drivers)),
    )
    slices = tuple(_slices_of(situation, model, name)) if model is not None else ()
    return s.AddNode(
        node=node,
        like=model.name if slices and model is not None else "",
        slices=slices,
        csi_node=csi_node if drivers else None,
        taken=taken,
    )


def _free_name(name: str, situation: Situation) -> str:
    while name in situation.snapshot.cluster.index:
        name += "-1"
    return name


# --- where it stands


def _topology_keys(pod: Pod) -> Iterator[str]:
    """Labels that the node must have for the pod's rules to apply to it."""
    for constraint in pod.spec.topology_spread_constraints:
        yield constraint.topology_key
    affinity = pod.spec.affinity
    for rules in (affinity.pod_affinity,) if affinity else ():
        for term in (rules or PodAffinity()).required_during_scheduling_ignored_during_execution:
            yield term.topology_key


def _topology_keys_of_profile(situation: Situation) -> Iterator[str]:
    """Those of the profile's default spread constraints."""
    for finding in _findings(situation):
        if isinstance(finding, TopologySpreadSkew | TopologyLabelMissing):
            yield finding.topology_key


def _keys_of_all(situation: Situation) -> Iterator[str]:
    """Those over which pods keep away from each other, where every node has the label: so would a new one."""
    rules = (PodAntiAffinityConflict, ExistingAntiAffinityConflict)
    keys = dict.fromkeys(one.topology_key for one in _findings(situation) if isinstance(one, rules))
    nodes = situation.snapshot.cluster.nodes
    yield from (key for key in keys if all(key in node.metadata.labels for node in nodes))


def _models(situation: Situation, keys: tuple[str, ...]) -> Iterator[Node | None]:
    """A node in each domain, nearest first, with the devices that nodes there have; None for a domain of its own."""
    yield from islice(_distinct_models(situation, keys), MOST_MODELS)
    yield None


def _distinct_models(situation: Situation, keys: tuple[str, ...]) -> Iterator[Node]:
    seen: set[object] = set()
    cluster = situation.snapshot.cluster
    near = [situation.nodes.node(row) for group in situation.groups for row in group.rows[:1]]
    has_claims = bool(situation.pod.spec.resource_claims)
    for node in (*near, *cluster.nodes):
        labels = node.metadata.labels
        devices = _shape(situation, node.name) if has_claims else ()
        kind = (tuple(labels.get(key, "") for key in keys if key != HOSTNAME), devices)
        if kind not in seen:
            seen.add(kind)
            yield node


def _domain(model: Node | None, key: str) -> str:
    return s.DOMAIN_OF_ITS_OWN if model is None else model.metadata.labels.get(key, s.DOMAIN_OF_ITS_OWN)


def _slices_of(situation: Situation, model: Node, name: str) -> Iterator[ResourceSlice]:
    """The model's devices once more, for the new node."""
    if not situation.pod.spec.resource_claims:
        return
    for number, one in enumerate(situation.snapshot.devices.slices):
        if one.spec.node_name == model.name:
            pool = replace(one.spec.pool, name=f"{name}-{one.spec.pool.name}")
            spec = replace(one.spec, node_name=name, pool=pool)
            metadata = ObjectMeta(name=f"{name}-{one.metadata.name or number}")
            yield ResourceSlice(metadata=metadata, spec=spec)


def _shape(situation: Situation, node: str) -> tuple[object, ...]:
    return tuple(
        (one.spec.driver, repr(one.spec.devices))
        for one in situation.snapshot.devices.slices
        if one.spec.node_name == node
    )


def _findings(situation: Situation) -> tuple[Finding, ...]:
    return tuple(finding for group in situation.groups for finding in group.exemplar.findings)

"""The node that would do: labels, amounts and devices of a smallest new node on which the pod passes.

What the pod asks of a node is read from the pod and its volumes. In which zone the node is to stand is taken from the
nodes that are there; which of them is right is for the trial to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product

from msgspec.structs import replace

from kschedx.api.devices import ResourceSlice
from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.resources import pod_request
from kschedx.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kschedx.api.storage import CSINode, CSINodeDriver, CSINodeSpec, claim_name
from kschedx.api.types import Node, NodeStatus, ObjectMeta, Pod, PodAffinity
from kschedx.findings import (
    DriverNotInstalled,
    Finding,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    TermMatch,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.findings.topology import HOSTNAME
from kschedx.fixes import steps as s
from kschedx.fixes.new_devices import device_kinds, slices_with, wanted_devices
from kschedx.fixes.situation import Place, Situation

NODE_NAME_FIELD = "metadata.name"
MOST_MODELS = 6
"""Nodes after which a new one is modelled: each stands in another domain, or has other devices."""
MOST_TERMS = 3
PODS = "110"
"""kubelet's own default of how many pods a node takes."""
FRESH = "new"
"""The domain of a node that stands where none does."""


def one_more_node(place: Place) -> s.AddNode:
    """An empty node of the same kind under a name of its own; annotations, instance and times are those of the old
    one."""
    node = place.node
    name = f"{node.name}-new"
    labels = {**node.metadata.labels, HOSTNAME: name}
    conditions = tuple(replace(one, last_transition_time=None, reason="", message="") for one in node.status.conditions)
    new = replace(
        node,
        metadata=ObjectMeta(name=name, labels=labels),
        spec=replace(node.spec, provider_id=""),
        status=replace(node.status, conditions=conditions),
    )
    return s.AddNode(node=new, like=node.name)


def nodes_that_would_do(situation: Situation) -> Iterator[s.AddNode]:
    """Candidates, the most plain first."""
    pod = situation.pod
    keys = tuple(sorted({*_topology_keys(pod), *_topology_keys_of_profile(situation)}))
    if pod.spec.resource_claims and situation.snapshot.devices.slices:
        yield from _with_devices(situation, keys)
    yield from _plain(situation, keys)


def _with_devices(situation: Situation, keys: tuple[str, ...]) -> Iterator[s.AddNode]:
    """A node with enough of every kind of device; `fewer_devices` takes away what is not needed."""
    kinds = device_kinds(situation)
    count = wanted_devices(situation)
    for step in islice(_plain(situation, keys), 3):
        name = step.node.name
        yield replace(step, like="", slices=tuple(slices_with(dict.fromkeys(kinds, count), name)))


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
    pod = situation.pod
    asked = product(_own_terms(pod), _terms_of_profile(situation), _volume_terms(situation))
    wanted = list(islice(asked, MOST_TERMS * MOST_TERMS))
    for model, terms in product(_models(situation, keys), wanted):
        labels = {key: _domain(model, key) for key in keys if key != HOSTNAME}
        named = _satisfied(labels, (*_selector(pod), *(one for term in terms if term for one in _requirements(term))))
        if named is None:
            continue
        name, labels = named
        if name in situation.snapshot.cluster.index:
            continue
        yield _node(situation, name or _free_name(situation), labels, model)


def _node(situation: Situation, name: str, labels: Mapping[str, str], model: Node | None) -> s.AddNode:
    options = situation.scheduler.nodes.options
    amounts = pod_request(situation.pod.spec, situation.pod.status, options).amounts
    allocatable = {resource: format_quantity(n, Unit.of(resource)) for resource, n in amounts.items() if n > 0}
    findings = _findings(situation)
    features = next((one.required for one in findings if isinstance(one, MissingNodeFeatures)), ())
    drivers = sorted({one.driver for one in findings if isinstance(one, DriverNotInstalled)})
    node = Node(
        metadata=ObjectMeta(name=name, labels={**labels, HOSTNAME: labels.get(HOSTNAME, name)}),
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
    )


def _free_name(situation: Situation) -> str:
    name = "new-node"
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
    return FRESH if model is None else model.metadata.labels.get(key, FRESH)


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


# --- what it must have


def _selector(pod: Pod) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in pod.spec.node_selector.items()
    )


def _own_terms(pod: Pod) -> tuple[NodeSelectorTerm | None, ...]:
    """Each required term of the node affinity would do."""
    rules = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = rules.required_during_scheduling_ignored_during_execution if rules else None
    return (None,) if required is None else required.node_selector_terms[:MOST_TERMS]


def _terms_of_profile(situation: Situation) -> tuple[NodeSelectorTerm | None, ...]:
    """Each term of the affinity that the profile adds would do."""
    for finding in _findings(situation):
        if isinstance(finding, NodeAffinityMismatch) and finding.source == "addedAffinity":
            return tuple(map(_term, finding.terms[:MOST_TERMS])) or (None,)
    return (None,)


def _term(term: TermMatch) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values) for one in term.requirements
        )
    )


def _findings(situation: Situation) -> tuple[Finding, ...]:
    return tuple(finding for group in situation.groups for finding in group.exemplar.findings)


def _volume_terms(situation: Situation) -> list[NodeSelectorTerm | None]:
    """Terms from which the pod's volumes can be reached: one of each volume, all in one."""
    storage = situation.snapshot.storage
    of_each: list[tuple[NodeSelectorTerm, ...]] = []
    for volume in situation.pod.spec.volumes:
        name = claim_name(situation.pod.metadata.name, volume)
        claim = storage.claim(situation.pod.metadata.namespace, name) if name else None
        if claim is None:
            continue
        bound = storage.volumes.get(claim.spec.volume_name)
        if bound is not None:
            of_each.append(_terms(bound.required_node_affinity))
            of_each.append(tuple(_zone_terms(bound.metadata.labels)))
        else:
            storage_class = storage.classes.get(claim.storage_class)
            of_each.append(
                tuple(
                    NodeSelectorTerm(
                        match_expressions=tuple(
                            NodeSelectorRequirement(key=one.key, operator="In", values=one.values)
                            for one in term.match_label_expressions
                        )
                    )
                    for term in (storage_class.allowed_topologies if storage_class else ())
                )
            )
    joined = islice(product(*(terms for terms in of_each if terms)), MOST_TERMS)
    return [
        NodeSelectorTerm(
            match_expressions=tuple(one for term in terms for one in term.match_expressions),
            match_fields=tuple(one for term in terms for one in term.match_fields),
        )
        for terms in joined
    ] or [None]


def _terms(selector: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return () if selector is None else selector.node_selector_terms


_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def _zone_terms(labels: Mapping[str, str]) -> Iterator[NodeSelectorTerm]:
    """The zones that a volume's own labels name (VolumeZone)."""
    found = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=tuple(labels[key].split("__")))
        for key in _ZONES
        if key in labels
    )
    if found:
        yield NodeSelectorTerm(match_expressions=found)


def _requirements(term: NodeSelectorTerm) -> Iterator[NodeSelectorRequirement]:
    yield from term.match_expressions
    for one in term.match_fields:
        yield replace(one, key=NODE_NAME_FIELD)


def _satisfied(
    labels: Mapping[str, str], requirements: tuple[NodeSelectorRequirement, ...]
) -> tuple[str, dict[str, str]] | None:
    """A name (empty for any) and labels that satisfy all requirements; None where they contradict each other."""
    made: dict[str, str] = dict(labels)
    decided: dict[str, str | None] = {}
    for one in requirements:
        value = decided.get(one.key, made.get(one.key))
        if one.key in decided and not _holds(one, value):
            return None
        if not _holds(one, value):
            value = _value(one)
        if not _holds(one, value):
            return None
        decided[one.key] = value
    made |= {key: value for key, value in decided.items() if value is not None}
    made = {key: value for key, value in made.items() if decided.get(key, value) is not None}
    return made.pop(NODE_NAME_FIELD, ""), made


def contradiction(situation: Situation) -> tuple[NodeSelectorRequirement, NodeSelectorRequirement] | None:
    """Two requirements that no label satisfies, where every combination of terms has such a pair."""
    pod = situation.pod
    found: tuple[NodeSelectorRequirement, NodeSelectorRequirement] | None = None
    asked = product(_own_terms(pod), _terms_of_profile(situation), _volume_terms(situation))
    for terms in islice(asked, MOST_TERMS * MOST_TERMS):
        requirements = (*_selector(pod), *(one for term in terms if term for one in _requirements(term)))
        if _satisfied({}, requirements) is not None:
            return None
        pairs = ((one, two) for number, two in enumerate(requirements) for one in requirements[:number])
        apart = (pair for pair in pairs if pair[0].key == pair[1].key and _satisfied({}, pair) is None)
        found = found or next(apart, None)
    return found


def _value(one: NodeSelectorRequirement) -> str | None:
    match one.operator:
        case "In":
            return one.values[0] if one.values else None
        case "Exists":
            return "true"
        case "Gt" | "Lt" if one.values and one.values[0].lstrip("-").isdigit():
            return str(int(one.values[0]) + (1 if one.operator == "Gt" else -1))
        case _:
            return None


def _holds(one: NodeSelectorRequirement, value: str | None) -> bool:
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or not value.lstrip("-").isdigit() or not one.values[0].lstrip("-").isdigit():
                return False
            wanted = int(one.values[0])
            return int(value) > wanted if one.operator == "Gt" else int(value) < wanted
        case _:
            return False

"""Nodes that would fit the pod, and their devices: copies of the cluster's devices, or devices as claims describe them,
as few as suffice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, permutations, product

from msgspec import Struct
from msgspec.structs import replace

from kschedx import findings as f
from kschedx.explain.hardware import driver_of, hosts_of_slice, is_of_existing_slice, slice_pool
from kschedx.explain.node_groups import NodeGroup, account_of
from kschedx.explain.root_causes import lacks_cluster_autoscaler
from kschedx.findings.constraints import CORDON_TAINT
from kschedx.fixes import steps as s
from kschedx.fixes.node_requirements import ABOUT_TO_BE_REMOVED, labels_for, required_terms, taint_remover
from kschedx.fixes.phrases import machine_repair
from kschedx.fixes.trial import Situation
from kschedx.kube.autoscalers import (
    MACHINE,
    MAX_SIZES,
    OWNER_NAME,
    OWNER_NAMESPACE,
    Machine,
    MachineDeployment,
    MachineSet,
    OpenShiftMachine,
    OpenShiftMachineSet,
    Scalable,
    node_labels,
)
from kschedx.kube.devices import (
    MAX_DEVICES_OF_CLAIM,
    AllocationMode,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceRequest,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kschedx.kube.names import (
    ARCH_LABELS,
    HOSTNAME,
    INSTANCE_TYPE_LABELS,
    OF_CONTROL_PLANE,
    POOL_LABELS,
    ZONE,
    first_label,
    is_extended_resource,
)
from kschedx.kube.quantity import Unit, format_quantity, parse_quantity, resource_amount
from kschedx.kube.selectors import SelectorRequirement
from kschedx.kube.storage import CSINode, CSINodeDriver, CSINodeSpec
from kschedx.kube.types import Node, NodeStatus, ObjectMeta, Pod, Taint
from kschedx.kube.typos import nearest_name, nearest_product
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import Memo, TableRow
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.snapshot import Snapshot

_MOST_KINDS = 6
_MOST_OF_A_KIND = 2 * MAX_DEVICES_OF_CLAIM
_MOST_OF_A_SLICE = 128  # the most devices that the API server accepts in one ResourceSlice


class _DeviceKind:
    """Devices that differ only in their names."""

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device

    @property
    def key(self) -> str:
        return repr((self.driver, self.device))


def _needs_devices(situation: Situation) -> bool:
    """Whether the pod has claims, or requests extended resources that devices provide."""
    lacks_devices = any(isinstance(finding, f.InsufficientDevices) for finding in situation.findings)
    return bool(situation.pod.spec.resource_claims) or lacks_devices


def _known(situation: Situation) -> Iterator[_DeviceKind]:
    for resource_slice in situation.snapshot.devices.slices:
        for device in resource_slice.spec.devices:
            plain = replace(
                device,
                name="",
                node_name=None,
                node_selector=None,
                all_nodes=False,
                taints=(),
                consumes_counters=(),
                binds_to_node=False,
                binding_conditions=(),
                binding_failure_conditions=(),
            )
            yield _DeviceKind(resource_slice.spec.driver, plain)


def _count(request: DeviceRequest) -> int:
    if request.exactly is not None:
        return max(int(request.exactly.count), 1)
    return max((max(int(subrequest.count), 1) for subrequest in request.first_available), default=1)


def slices_with(kinds: Mapping[_DeviceKind, int], node: str) -> Iterator[ResourceSlice]:
    """Yield what the drivers of a node would publish for these numbers of devices."""
    by_driver: dict[str, list[Device]] = {}
    for kind, count in kinds.items():
        devices = by_driver.setdefault(kind.driver, [])
        devices += [replace(kind.device, name=f"device-{len(devices) + at}") for at in range(count)]
    for driver, devices in by_driver.items():
        if devices:
            yield ResourceSlice(
                metadata=ObjectMeta(name=f"{node}-{driver}"),
                spec=ResourceSliceSpec(
                    driver=driver,
                    pool=ResourcePool(name=node, generation=1, resource_slice_count=1),
                    node_name=node,
                    devices=tuple(devices),
                ),
            )


# --- devices as claims describe them

_STRING = r"""["']([^"']*)["']"""
_MEMBER = rf"\[{_STRING}\]\s*(?:\.\s*(\w+)|\[{_STRING}\])"
_ATTRIBUTE = lazy_pattern(rf"device\.attributes{_MEMBER}\s*(?:==|in)\s*\[?\s*(?:{_STRING}|(-?\d+)|(true|false))")
_SHARED = lazy_pattern(r"device\.allowMultipleAllocations(?!\s*==\s*false)")
_CAPACITY = lazy_pattern(rf"device\.capacity{_MEMBER}\s*\.\s*(?:compareTo|isGreaterThan)\(\s*quantity\({_STRING}\)")


class _DeviceNeed(Struct, frozen=True, kw_only=True):
    """The attributes and capacity with which a request compares devices, and the number that it requests."""

    driver: str
    device: Device
    count: int
    takes_all: bool
    """Whether the request is for all matching devices, so that the devices of other requests must not match it."""


def described_devices(situation: Situation) -> dict[_DeviceKind, int]:
    """Return one device for each request, with the values that the request and its class compare devices with, and the
    requested number. It is a guess: the trial decides whether the request matches the device."""
    wanted = tuple(_device_needs(situation))
    kinds: dict[str, tuple[_DeviceKind, int]] = {}
    for need in wanted:
        base = _base(need.driver, wanted, situation)
        apart = {
            key: _other(value)
            for other in wanted
            if other.takes_all and other is not need
            for key, value in other.device.attributes.items()
        }
        device = replace(
            base,
            attributes=base.attributes | apart | need.device.attributes,
            capacity=base.capacity | need.device.capacity,
            allow_multiple_allocations=base.allow_multiple_allocations or need.device.allow_multiple_allocations,
        )
        kind = _DeviceKind(need.driver, device)
        kinds[kind.key] = (kind, kinds.get(kind.key, (kind, 0))[1] + need.count)
    return dict(kinds.values())


def _other(value: DeviceAttribute) -> DeviceAttribute:
    if value.string is not None:
        return DeviceAttribute(string="other")
    if value.int_value is not None:
        return DeviceAttribute(int_value=value.int_value + 1)
    return DeviceAttribute(bool_value=not value.bool_value)


def _device_needs(situation: Situation) -> Iterator[_DeviceNeed]:
    for claim in situation.snapshot.devices.claims_of(situation.pod):
        for request in claim.spec.devices.requests:
            subrequest = request.exactly or next(iter(request.first_available), None)
            if subrequest is not None:
                driver, device = _compared_attributes(subrequest.device_class_name, subrequest.selectors, situation)
                takes_all = subrequest.allocation_mode == AllocationMode.ALL
                yield _DeviceNeed(
                    driver=driver, device=device, count=max(int(subrequest.count), 1), takes_all=takes_all
                )
    if not situation.pod.spec.resource_claims:
        for name in situation.snapshot.devices.class_of_resource.values():
            driver, device = _compared_attributes(name, (), situation)
            yield _DeviceNeed(driver=driver, device=device, count=1, takes_all=False)


def _compared_attributes(
    device_class: str, selectors: tuple[DeviceSelector, ...], situation: Situation
) -> tuple[str, Device]:
    of_class = situation.snapshot.devices.classes.get(device_class)
    every = (*(of_class.spec.selectors if of_class else ()), *selectors)
    text = _expressions(every)
    domains = [match[0] for pattern in (_ATTRIBUTE, _CAPACITY) for match in pattern.findall(text)]
    name = driver_of(every) or next(iter(domains), device_class)
    attributes = {
        _qualify(domain, item or other, name): DeviceAttribute(
            string=string or None,
            int_value=int(number) if number else None,
            bool_value=truth == "true" if truth else None,
        )
        for domain, item, other, string, number, truth in _ATTRIBUTE.findall(text)
    }
    capacity = {
        _qualify(domain, item or other, name): DeviceCapacity(value=amount)
        for domain, item, other, amount in _CAPACITY.findall(text)
    }
    shared = _SHARED.search(text) is not None
    return name, Device(attributes=attributes, capacity=capacity, allow_multiple_allocations=shared)


def _expressions(selectors: Iterable[DeviceSelector]) -> str:
    return " && ".join(selector.cel.expression for selector in selectors if selector.cel is not None)


def intended_values(
    selectors: Iterable[DeviceSelector], devices: Sequence[tuple[str, Device]]
) -> Iterator[tuple[str, str]]:
    """Yield each string that selectors compare an attribute with, and the value of these devices, with their drivers,
    that was probably meant."""
    for domain, item, other, written, _, _ in _ATTRIBUTE.findall(_expressions(selectors)):
        known = {
            value.string
            for driver, device in devices
            if (value := device.attributes.get(_qualify(domain, item or other, driver))) and value.string
        }
        if written and written not in known:
            meant = nearest_product(written, sorted(known)) or nearest_name(written, sorted(known))
            if meant:
                yield written, meant


def _qualify(domain: str, name: str, driver: str) -> str:
    return name if domain == driver else f"{domain}/{name}"


def _base(driver: str, wanted: Sequence[_DeviceNeed], situation: Situation) -> Device:
    """Return a device of the driver with every attribute that expressions need: an existing one, or one with all
    compared values."""
    for known in _known(situation):
        if known.driver == driver:
            return known.device
    of_driver = [need.device for need in wanted if need.driver == driver]
    return Device(
        attributes={key: value for device in of_driver for key, value in device.attributes.items()},
        capacity={key: value for device in of_driver for key, value in device.capacity.items()},
    )


# The node that would fit: labels, amounts, and devices of a smallest new node on which the pod passes. The requirements
# are read from the pod and its volumes. The zone is taken from existing nodes, and the trial decides which one is
# right.

_MOST_MODELS = 6  # existing nodes that serve as models: each is in another domain, or has other devices
_MOST_COPIES = 4
_PODS = "110"  # the kubelet's default for the number of pods on a node


_FULLNESS = (
    f.InsufficientResource,
    f.TooManyPods,
    f.HostPortConflict,
    f.VolumeLimitExceeded,
    f.InsufficientDevices,
    f.InsufficientStorageCapacity,
)


def _never_attaches(findings: Iterable[f.Finding]) -> bool:
    """Whether the pod alone has more volumes than the node can attach."""
    return any(isinstance(it, f.VolumeLimitExceeded) and it.wanted_count > it.limit for it in findings)


def is_only_full(findings: Iterable[f.Finding]) -> bool:
    """Whether an empty node like this one would fit the pod, as far as the kinds of the findings show: only other pods
    on this node are in the way. A node without any of a resource does not count."""
    return all(
        (
            isinstance(finding, _FULLNESS)
            and not (isinstance(finding, f.InsufficientResource) and not finding.allocatable)
            and not _never_attaches((finding,))
        )
        or (
            isinstance(finding, f.PodAntiAffinityConflict | f.ExistingAntiAffinityConflict)
            and finding.topology_key == HOSTNAME
        )
        for finding in findings
    )


def copies_of_full_nodes(situation: Situation) -> Iterator[s.AddNode]:
    """Yield empty nodes like those that meet every constraint of the pod and are only full. Nodes without resources
    that the pod does not request come first. If DaemonSets leave no room on any of them, yield a larger node."""
    requested = situation.requested
    usual = (account_of(situation.nodes, situation.outcome, _usual(group, situation)) for group in situation.groups)
    full = [
        situation.nodes.node(account.row)
        for account in usual
        if is_only_full(account.findings)
        and not any(isinstance(finding, f.InsufficientResource) and finding.never_fits for finding in account.findings)
    ]
    full = [node for node in full if not _is_of_control_plane(node)]
    usual_first = sorted(full, key=lambda node: _is_special(node, requested))
    copies = [_copy_node(node, situation) for node in usual_first[:_MOST_COPIES]]
    copies = [step for step in copies if situation.leaves_ports(step.node)]
    yield from copies
    if copies and all(_is_filled_by_daemons(step, requested) for step in copies):
        yield from islice(_plain(situation, _domain_keys(situation)), 1)


def machines_without_nodes(situation: Situation) -> Iterator[s.AddNode]:
    """Yield the first machine of each MachineSet or MachineDeployment that is scaled to zero, if no autoscaler may
    scale it, or none of whose machines has a ready node. Its size is not known: the node has what the pod requests."""
    snapshot = situation.snapshot
    is_autoscaled = "MachineAutoscaler.autoscaling.openshift.io" in snapshot.source.kinds
    for kind, record in (("MachineSet", OpenShiftMachineSet), ("MachineDeployment", MachineDeployment)):
        for item in snapshot.of(record):
            template, replicas, missing = item.spec.template, item.spec.replicas, item.missing_nodes
            is_scaled = is_autoscaled or not item.metadata.annotations.keys().isdisjoint(MAX_SIZES)
            if missing == replicas and (missing or (replicas == 0 and not is_scaled)):
                name = _free_name(f"{item.metadata.name}-new", situation)
                is_of_openshift = kind == "MachineSet"
                copied = template.spec.metadata.labels if is_of_openshift else node_labels(template.metadata.labels)
                step = _node(situation, name, {"kubernetes.io/os": "linux", **copied}, None)
                node = replace(step.node, spec=replace(step.node.spec, taints=template.spec.taints))
                yield replace(
                    step,
                    node=node,
                    scalable=f"{kind} {item.key}",
                    replicas=replicas or 0,
                    missing=missing,
                    failure=_machine_failure(snapshot, item),
                    taken=situation.daemon_requests(node),
                )


def _is_filled_by_daemons(step: s.AddNode, requested: Mapping[str, int]) -> bool:
    wanted = {**requested, "pods": 1}
    return any(
        taken + wanted.get(name, 0) > resource_amount(name, step.node.status.allocatable.get(name))
        for name, taken in step.taken.items()
    )


def _usual(group: NodeGroup, situation: Situation) -> TableRow:
    """Return the nearest node of the machines that most nodes of the group are: an image may not run on others."""
    machines = [
        tuple(
            first_label(situation.nodes.node(row).metadata.labels, keys) for keys in (ARCH_LABELS, INSTANCE_TYPE_LABELS)
        )
        for row in group.rows
    ]
    return group.rows[machines.index(Counter(machines).most_common(1)[0][0])]


def _is_of_control_plane(node: Node) -> bool:
    return any(taint.key in OF_CONTROL_PLANE for taint in node.spec.taints)


def _is_special(node: Node, requested: Mapping[str, int]) -> bool:
    """Whether the node offers an extended resource that the pod does not request."""
    return any(
        is_extended_resource(name) and str(amount) != "0" and not requested.get(name)
        for name, amount in node.status.allocatable.items()
    )


def _copy_node(node: Node, situation: Situation) -> s.AddNode:
    """Return a copy of the node under a new name, without its annotations, instance, times, and current faults."""
    name, named = _free_name(f"{node.name}-new", situation), situation.snapshot.cluster.is_named_by
    labels = {key: name if named(key) else value for key, value in node.metadata.labels.items()} | {HOSTNAME: name}
    if pool := slice_pool(node):  # a slice cannot grow: another one is another node pool
        labels |= {key: f"{pool}-new" for key in POOL_LABELS if labels.get(key) == pool}
    conditions = tuple(replace(it, last_transition_time=None, reason="", message="") for it in node.status.conditions)
    taints = tuple(filter(_is_of_the_kind, node.spec.taints))
    new = replace(
        node,
        metadata=ObjectMeta(name=name, labels=labels),
        spec=replace(node.spec, provider_id="", unschedulable=False, taints=taints),
        status=replace(node.status, conditions=conditions),
    )
    scalable = _scalable(node, situation.snapshot)
    return s.AddNode(
        node=new,
        number=max(hosts_of_slice(node), 1),
        model=node.name,
        taken=situation.daemon_requests(new),
        scalable="" if scalable is None else f"{scalable[0]} {scalable[1].key}",
        replicas=0 if scalable is None else scalable[1].spec.replicas or 0,
        missing=0 if scalable is None else scalable[1].missing_nodes,
        failure="" if scalable is None else _machine_failure(situation.snapshot, scalable[1]),
        limit=None if scalable is None or lacks_cluster_autoscaler(situation.snapshot) else scalable[1].limit,
    )


def _is_of_the_kind(taint: Taint) -> bool:
    """Whether a new node like this one has the taint as well: it does not describe the node's present state."""
    return not taint_remover(taint) and taint.key != CORDON_TAINT and not taint.key.startswith(ABOUT_TO_BE_REMOVED)


def _machine_failure(snapshot: Snapshot, scalable: Scalable) -> str:
    """What repairs the first machine of the MachineSet or MachineDeployment that has failed; empty without one."""
    namespace, name = scalable.metadata.namespace, scalable.metadata.name
    is_of_openshift = isinstance(scalable, OpenShiftMachineSet)
    machines: Iterable[OpenShiftMachine | Machine]
    machines = snapshot.of(OpenShiftMachine) if is_of_openshift else snapshot.of(Machine)
    failures = (
        machine_repair(machine)
        for machine in machines
        if machine.failure and machine.metadata.namespace == namespace and name in machine.scalables
    )
    return next(failures, "")


def _scalable(node: Node, snapshot: Snapshot) -> tuple[str, Scalable] | None:
    """Return the MachineSet or MachineDeployment that creates nodes like this one, and its kind."""
    annotations = node.metadata.annotations
    namespace, _, machine = annotations.get(MACHINE, "").rpartition("/")
    of_capi = annotations.get(OWNER_NAMESPACE, ""), annotations.get(OWNER_NAME, "")
    wanted = (
        ("MachineSet", OpenShiftMachineSet, (namespace, machine.rpartition("-")[0])),
        ("MachineDeployment", MachineDeployment, (of_capi[0], of_capi[1].rpartition("-")[0])),
        ("MachineSet", MachineSet, of_capi),
    )
    for kind, record, key in wanted:
        for item in snapshot.of(record) if all(key) else ():
            if (item.metadata.namespace, item.metadata.name) == key:
                return kind, item
    return None


def nodes_of_a_pool(situation: Situation, node: Node) -> Iterator[s.AddNode]:
    """Yield nodes that an autoscaler adds like `node`: one in each zone of the cluster if the zone is open. If the size
    is open, the node has what the pod requests."""
    name = _free_name(f"{node.name}-new", situation)
    labels = {**node.metadata.labels, HOSTNAME: name}
    zones = sorted(situation.snapshot.cluster.label_values(ZONE))
    places = [{}] if ZONE in labels or not zones else [{ZONE: zone} for zone in zones]
    for place in places:
        sized = _node(situation, name, {**labels, **place}, None)
        status = node.status if node.status.allocatable else sized.node.status
        new = replace(sized.node, spec=node.spec, status=status)
        yield replace(sized, node=new, model=node.name, taken=situation.daemon_requests(new))


def nodes_that_would_do(situation: Situation) -> Iterator[s.AddNode]:
    """Yield candidates: copies of existing nodes first, then the plainest nodes. None of those is known to attach more
    volumes than the cluster's nodes, so that a pod with more of them gets copies alone."""
    keys = _domain_keys(situation)
    special = _with_devices(situation, keys) if _needs_devices(situation) else islice(_copies(situation), _MOST_COPIES)
    steps: Iterator[s.AddNode] = chain(special, _plain(situation, keys))
    if any(_never_attaches(group.exemplar.findings) for group in situation.groups):
        attaching = situation.snapshot.storage.csi_nodes
        steps = (step for step in _copies(situation) if step.model in attaching)
    for step in steps:
        if situation.leaves_ports(step.node) and not is_of_existing_slice(situation.snapshot, step.node):
            yield step


def _copies(situation: Situation) -> Iterator[s.AddNode]:
    """Yield a copy of the nearest node of each group that has as much as the pod requests, and no other extended
    resource."""
    cluster = situation.snapshot.cluster
    requested = situation.requested
    known = {name: column for column, name in enumerate(cluster.resources.names)}
    if any(amount > 0 and name not in known for name, amount in requested.items()):
        return
    for group in situation.groups:
        row = situation.nodes.cluster_row(group.exemplar.row)
        enough = all(
            cluster.allocatable[row, known[name]] >= amount for name, amount in requested.items() if amount > 0
        )
        node = cluster.nodes[row]
        enough = enough and not _never_attaches(group.exemplar.findings)
        if enough and not _is_of_control_plane(node) and not _is_special(node, requested):
            yield _copy_node(node, situation)


def _with_devices(situation: Situation, keys: tuple[str, ...]) -> Iterator[s.AddNode]:
    """Yield nodes with enough devices of every kind, or with those that claims describe; `fewer_devices` removes those
    that are not needed."""
    kinds = tuple({kind.key: kind for kind in _known(situation)}.values())[:_MOST_KINDS]
    total = sum(
        _count(request)
        for claim in situation.snapshot.devices.claims_of(situation.pod)
        for request in claim.spec.devices.requests
    )
    count = min(max(1, min(total, _MOST_OF_A_KIND)), _MOST_OF_A_SLICE // max(len(kinds), 1))
    described = described_devices(situation)
    for kinds_and_counts in (dict.fromkeys(kinds, count), described):
        for step in islice(_plain(situation, keys), 3) if kinds_and_counts else ():
            slices = tuple(slices_with(kinds_and_counts, step.node.name))
            is_one = kinds_and_counts is described and len([*_device_needs(situation)]) == 1
            attributes = tuple(_new_attributes(situation)) if is_one else ()
            yield replace(step, model="", slices=slices, attributes=attributes)


def _new_attributes(situation: Situation) -> Iterator[str]:
    """Yield values that selectors compare devices with and that no device of the cluster has: `productName=H100`."""
    known = [kind.device for kind in _known(situation)]
    for need in _device_needs(situation):
        for key, value in need.device.attributes.items():
            if not any(device.attributes.get(key) == value for device in known):
                number, truth = value.int_value, str(value.bool_value).lower()
                yield f"{key}={value.string or (truth if number is None else number)}"
        for key, amount in need.device.capacity.items():
            least = parse_quantity(str(amount.value))
            offered = (parse_quantity(str(each.capacity[key].value)) for each in known if key in each.capacity)
            if all(quantity < least for quantity in offered):
                yield f"{key}={amount.value}"


def _plain(situation: Situation, keys: tuple[str, ...]) -> Iterator[s.AddNode]:
    wanted = list(required_terms(situation))
    cluster = situation.snapshot.cluster
    taken = {*cluster.index, *cluster.label(HOSTNAME).values}
    models = (*islice(_distinct_models(situation, keys), _MOST_MODELS), None)  # None for a new domain
    for model, requirements in product(models, wanted):
        labels = {key: _domain(model, key) for key in keys if key != HOSTNAME}
        named = labels_for(labels, requirements)
        if named is None:
            continue
        name, labels = named
        hosts = {value for key, value in labels.items() if cluster.is_named_by(key)} - {s.DOMAIN_OF_ITS_OWN}
        if name in taken or not taken.isdisjoint(hosts):
            continue  # data on the disks of that machine is not on another one
        if labels.get(ZONE) == s.DOMAIN_OF_ITS_OWN and (zone := _zone_of_driver(labels, cluster)):
            labels = {**labels, ZONE: zone}
        if not _is_in_one_zone(labels, cluster):
            continue
        labels = {HOSTNAME: host, **labels} if (host := next(iter(hosts), "")) else labels
        step = _node(situation, name or _free_name("new-node", situation), labels, model)
        without = tuple(dict.fromkeys(_excluded_labels(situation, requirements)))
        yield replace(
            step, without=without, untainted=tuple(dict.fromkeys(reserving_taints(situation, of_resources=True)))
        )


def _is_in_one_zone(labels: Mapping[str, str], cluster: ClusterNodes) -> bool:
    """Return whether the labels with the node's zone, among them those of storage drivers, go together as on the
    cluster's nodes."""
    for key, other in permutations([key for key in labels if key.endswith(_OF_ZONES)], 2):
        its, others = cluster.label(key), cluster.label(other)
        codes = {code for code, value in enumerate(its.values) if value == labels[key]}
        together = {others[row] for row, code in enumerate(its.codes.tolist()) if code in codes} - {None}
        is_same_name = not together and labels[key] in others.values  # both keys name zones in the same way
        if (together and labels[other] not in together) or (is_same_name and labels[key] != labels[other]):
            return False
    return True


def _zone_of_driver(labels: Mapping[str, str], cluster: ClusterNodes) -> str:
    """The zone that the label of a storage driver names, if nodes have equal values in both labels; else empty."""
    keys = [key for key in labels if key.endswith(_OF_ZONES) and key != ZONE]
    both = ((node.metadata.labels.get(ZONE), node.metadata.labels.get(keys[0])) for node in cluster.nodes if keys)
    return labels[keys[0]] if keys and all(zone == own for zone, own in both if zone and own) else ""


_OF_ZONES = "/zone"  # the end of labels such as `topology.ebs.csi.aws.com/zone`


def _excluded_labels(situation: Situation, requirements: Iterable[SelectorRequirement]) -> Iterator[str]:
    """Yield labels of the cluster's nodes that a new one must not have."""
    for requirement in requirements:
        values = situation.snapshot.cluster.label_values(requirement.key)
        if requirement.operator == "DoesNotExist" and values:
            yield requirement.key
        elif requirement.operator == "NotIn":
            yield from (f"{requirement.key}={value}" for value in requirement.values if value in values)


def reserving_taints(situation: Situation, *, of_resources: bool = False) -> Iterator[str]:
    """Yield the keys of the taints that reserve nodes, if such taints reject the pod from every node outside the
    control plane, with `of_resources` from those that have the requested resources: another node of these pools would
    not help."""
    keys = []
    for group in situation.groups:
        lacks = any(isinstance(it, f.InsufficientResource) and not it.allocatable for it in group.exemplar.findings)
        if of_resources and lacks:
            continue
        taints = [finding for finding in group.exemplar.findings if isinstance(finding, f.UntoleratedTaint)]
        if not taints:
            return
        keys += [
            taint.key
            for taint in taints
            if not taint_remover(Taint(key=taint.key))
            and not taint.key.startswith((CORDON_TAINT, *OF_CONTROL_PLANE, *ABOUT_TO_BE_REMOVED))
        ]
    yield from keys


def _node(situation: Situation, name: str, labels: Mapping[str, str], model: Node | None) -> s.AddNode:
    labels = {**labels, HOSTNAME: labels.get(HOSTNAME, name)}
    taken = situation.daemon_requests(Node(metadata=ObjectMeta(name=name, labels=labels)))
    requested = Counter({resource: amount for resource, amount in situation.requested.items() if amount > 0})
    requested.update({name: amount for name, amount in taken.items() if name != "pods"})
    allocatable = {resource: format_quantity(amount, Unit.of(resource)) for resource, amount in requested.items()}
    findings = situation.findings
    features = next((finding.required for finding in findings if isinstance(finding, f.MissingNodeFeatures)), ())
    drivers = sorted({finding.driver for finding in findings if isinstance(finding, f.DriverNotInstalled)})
    node = Node(
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(
            allocatable={"cpu": "0", "memory": "0", **allocatable, "pods": _PODS}, declared_features=features
        ),
    )
    csi_node = CSINode(
        metadata=ObjectMeta(name=name),
        spec=CSINodeSpec(drivers=tuple(CSINodeDriver(name=driver) for driver in drivers)),
    )
    slices = tuple(_slices_of(situation, model, name)) if model is not None else ()
    crowded = [finding.allowed for finding in findings if isinstance(finding, f.TooManyPods)]
    return s.AddNode(
        node=node,
        model=model.name if slices and model is not None else "",
        slices=slices,
        csi_node=csi_node if drivers else None,
        taken=taken,
        more_pods_than=max((number for number in crowded if number <= taken.get("pods", 0)), default=0),
    )


def _free_name(name: str, situation: Situation) -> str:
    while name in situation.snapshot.cluster.index:
        name += "-1"
    return name


# --- topology of the new node


def _domain_keys(situation: Situation) -> tuple[str, ...]:
    of_profile, of_most = _topology_keys_of_profile(situation), _keys_of_most(situation)
    return tuple(sorted({*_topology_keys(situation.pod), *of_profile, *of_most}))


def _topology_keys(pod: Pod) -> Iterator[str]:
    """Yield the labels that the node must have for the pod's rules to apply to it."""
    for constraint in pod.spec.topology_spread_constraints:
        yield constraint.topology_key
    for term in pod.spec.required_pod_affinity:
        yield term.topology_key


def _topology_keys_of_profile(situation: Situation) -> Iterator[str]:
    """Yield the topology keys of the profile's default spread constraints."""
    for finding in situation.findings:
        if isinstance(finding, f.TopologySpreadSkew | f.TopologyLabelMissing):
            yield finding.topology_key


def _keys_of_most(situation: Situation) -> Iterator[str]:
    """Yield the topology keys of anti-affinity conflicts that most nodes have as a label: a new node would have them as
    well. Control planes and virtual nodes often lack them."""
    rules = (f.PodAntiAffinityConflict, f.ExistingAntiAffinityConflict)
    keys = dict.fromkeys(finding.topology_key for finding in situation.findings if isinstance(finding, rules))
    nodes = situation.snapshot.cluster.nodes
    yield from (key for key in keys if 2 * sum(key in node.metadata.labels for node in nodes) > len(nodes))


def _distinct_models(situation: Situation, keys: tuple[str, ...]) -> Iterator[Node]:
    seen: set[object] = set()
    cluster = situation.snapshot.cluster
    near = [situation.nodes.node(row) for group in situation.groups for row in group.rows[:1]]
    shapes = _shapes(situation.snapshot.devices) if situation.pod.spec.resource_claims else {}
    for node in (*near, *cluster.nodes):
        labels = node.metadata.labels
        devices = shapes.get(node.name, ())
        kind = (tuple(labels.get(key, "") for key in keys if key != HOSTNAME), devices)
        if kind not in seen:
            seen.add(kind)
            yield node


def _domain(model: Node | None, key: str) -> str:
    return s.DOMAIN_OF_ITS_OWN if model is None else model.metadata.labels.get(key, s.DOMAIN_OF_ITS_OWN)


def _slices_of(situation: Situation, model: Node, name: str) -> Iterator[ResourceSlice]:
    """Yield copies of the model's devices for the new node."""
    if not situation.pod.spec.resource_claims:
        return
    for number, resource_slice in enumerate(situation.snapshot.devices.slices_by_node.get(model.name, ())):
        pool = replace(resource_slice.spec.pool, name=f"{name}-{resource_slice.spec.pool.name}")
        spec = replace(resource_slice.spec, node_name=name, pool=pool)
        metadata = ObjectMeta(name=f"{name}-{resource_slice.metadata.name or number}")
        yield ResourceSlice(metadata=metadata, spec=spec)


_SHAPES = Memo[Mapping[str, tuple[object, ...]]]()


def _shapes(devices: Devices) -> Mapping[str, tuple[object, ...]]:
    """Return the devices of each node, equal for nodes with equal devices."""
    return _SHAPES.of(
        devices.derived_from_slices,
        lambda: {
            node: tuple((each.spec.driver, repr(each.spec.devices)) for each in slices)
            for node, slices in devices.slices_by_node.items()
        },
    )

"""Remedies for devices: delete pods whose claims have suitable ones, request fewer, create or recreate a claim.

kube-scheduler evicts no pod for a device, and the spec of a ResourceClaim cannot be changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice

from msgspec.structs import replace

from kschedx import findings as f
from kschedx.controllers.daemon_set import agents_down
from kschedx.controllers.pod_lifecycle import controller_manager_down
from kschedx.explain.device_classes import device_claim_refusal
from kschedx.explain.hardware import driver_named, driver_of, hardware_label, unpublished_devices
from kschedx.fixes import steps as s
from kschedx.fixes.eviction import can_evict, deletion, stay_deleted
from kschedx.fixes.new_node import described_devices, intended_values, slices_with
from kschedx.fixes.proposal import CONTROLLER_MANAGER, is_replaced
from kschedx.fixes.resource_remedies import MOST_VICTIMS
from kschedx.fixes.trial import RemedyCandidate, Situation
from kschedx.grouping import group_pairs
from kschedx.kube.devices import (
    AllocationMode,
    CELDeviceSelector,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourceSlice,
)
from kschedx.kube.documents import with_spec
from kschedx.kube.types import Node, ObjectMeta, OwnerReference, Pod, PodResourceClaimStatus
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_TRIED = 3
"""The most ways to free the devices of a node, and the most device classes for a claim of which only the name is known.
The trial decides which of them help."""


def device_remedies(finding: f.DeviceFinding, place: RemedyCandidate) -> Iterator[s.FixStep]:
    devices = place.snapshot.devices
    match finding:
        case f.InsufficientDevices():
            yield from _publish_devices(finding, place)
            yield from _complete_pools(finding, place)
            yield from _repair_devices(finding, place)
            taints = _taints(finding)
            rules = [rule for rule in place.snapshot.devices.taint_rules if str(rule.spec.taint) in taints]
            if rules:
                names = tuple(rule.metadata.name for rule in rules)
                yield s.DeleteTaintRules(names=names, api_version="resource.k8s.io/v1beta2")
            yield from _fewer(finding, place)
            yield from _correct_guarded_names(finding, place)
            yield from _correct_product(finding, place)
            yield from _wider(finding, place)
            yield from _wider_classes(finding, place)
            yield from _free(finding, place)
        case f.DeviceClaimNotFound():
            name = finding.claim.partition("/")[2]
            if meant := _nearly_called(finding.claim, devices.claims):
                yield s.UseDeviceClaim(claim=name, meant=meant.partition("/")[2])
            same = [claim for key, claim in devices.claims.items() if key.partition("/")[2] == name]
            for model in same[:1]:
                yield s.CreateDeviceClaim(claim=_claim(finding.claim, model.spec), source=f", like {model.key}")
            for spec in () if same else _guesses(place):
                (request,) = spec.devices.requests
                source = (
                    "" if request.exactly is None else f" with 1 device of class {request.exactly.device_class_name}"
                )
                yield s.CreateDeviceClaim(claim=_claim(finding.claim, spec), source=source)
        case f.DeviceClaimNotCreated():
            yield from _create_from_template(finding, place)
        case f.DeviceSelectorFailed():
            yield from _correct_names(finding, place)
        case f.DeviceClassNotFound():
            claim = devices.claims.get(finding.claim)
            known, domain = sorted(devices.classes), finding.device_class.partition(".")[2]
            close = nearest_name(finding.device_class, known)
            related = [name for name in known if not domain or name.partition(".")[2] == domain]
            for name in [close] if close else related[:_TRIED]:
                if claim is not None:
                    spec = _with_class(claim.spec, finding.device_class, name)
                    yield _recreate(claim, spec, place, f" with class {name}")
            if driver := driver_named(place.snapshot, finding.device_class):
                class_spec = DeviceClassSpec(selectors=(_of_driver(driver),))
                device_class = DeviceClass(metadata=ObjectMeta(name=finding.device_class), spec=class_spec)
                title = f"create device class {finding.device_class} for devices of driver {driver}"
                yield s.ObjectStep(title=title, group=s.FixGroup.CLUSTER, objects=(device_class,))
        case _:
            claim = devices.claims.get(finding.claim)
            if claim is None:
                return
            if _is_used_by_others(claim, place):
                yield from _delete_users(claim, place)
                return
            owner = place.owner_reference if isinstance(finding, f.DeviceClaimNotOwned) else None
            yield _recreate(claim, claim.spec, place, owner=owner)


def _recreate(
    claim: ResourceClaim,
    spec: ResourceClaimSpec,
    place: RemedyCandidate,
    named: str = "",
    owner: OwnerReference | None = None,
) -> s.FixStep:
    title = f"delete and recreate {{}}{named}"
    return _recreate_step(title, claim, spec, place, s.Cost.AROUND, owner, noun="resource claim")


def _recreate_step(
    title: str,
    claim: ResourceClaim,
    spec: ResourceClaimSpec,
    place: RemedyCandidate,
    cost: s.Cost,
    owner: OwnerReference | None = None,
    noun: str = "claim",
) -> s.FixStep:
    """Return the step that deletes and recreates a claim. If it was created from a template, only the template is
    recreated by hand: its controller creates the claims of all pending pods again. `title` has room for the object."""
    template = _template_of(claim, place)
    if template is None or spec == claim.spec:
        return s.ObjectStep(
            title=title.format(f"{noun} {claim.key}"), cost=cost, objects=(_as_new_claim(claim, spec, owner),)
        )
    users = (place.snapshot.pods[row] for row in place.snapshot.pods.pending)
    claims = [
        place.snapshot.devices.claims.get(key)
        for pod in (place.pod, *users)
        for key in _claims_from_template(template, pod)
    ]
    same = {it.key: it for it in (claim, *claims) if it is not None and it.spec == claim.spec}
    recreated = tuple(_as_new_claim(claim, spec) for claim in same.values())
    owners = (claim.metadata.controller for claim in recreated)
    keys = (f"{claim.metadata.namespace}/{owner.name}" for owner in owners if owner is not None)
    replaced = sum(is_replaced(place.snapshot.pods, key) for key in keys)
    then = f", then delete {count(replaced, 'pending pod')}" if replaced else ""
    return s.ObjectStep(
        title=title.format(f"ResourceClaimTemplate {template}") + then,
        costs=(_YOUNG_CLAIM,) if replaced < len(recreated) else (),
        cost=cost,
        objects=(_template(template, spec), *recreated),
        made=tuple((claim, CONTROLLER_MANAGER) for claim in recreated),
    )


_YOUNG_CLAIM = "if a claim was created within the last hour, recreate its pod instead of the claim"
"""kube-controller-manager keeps claims that it created in a cache for an hour, and takes deleted ones for existing.
Upstream: pkg/controller/resourceclaim/controller.go (claimCache)."""


def _template_of(claim: ResourceClaim, place: RemedyCandidate) -> str | None:
    """Return the template, `namespace/name`, from which the pod's claim was created."""
    names = (claim.resource_claim_template_name for claim in place.pod.spec.resource_claims)
    known = (f"{claim.metadata.namespace}/{name}" for name in names if name)
    specs = place.snapshot.devices.templates
    owner = claim.metadata.controller
    is_own = owner is not None and (owner.kind, owner.name) == ("Pod", place.pod.metadata.name)
    return next((key for key in known if is_own and specs.get(key) == claim.spec), None)


def _claims_from_template(template: str, pod: Pod) -> Iterator[str]:
    """Yield the claims, `namespace/name`, that were created from a template for a pod."""
    namespace, _, name = template.partition("/")
    for claim in pod.spec.resource_claims if pod.metadata.namespace == namespace else ():
        if claim.resource_claim_template_name == name and claim.name in pod.device_claims:
            yield pod.device_claims[claim.name]


def _is_used_by_others(claim: ResourceClaim, place: RemedyCandidate) -> bool:
    return any(not _is_own(consumer_reference, place) for consumer_reference in claim.status.reserved_for)


def _is_own(consumer: ResourceClaimConsumerReference, place: RemedyCandidate) -> bool:
    """Whether the consumer is the pod itself, its group, or a deleted pod, whose reservation kube-controller-manager
    removes."""
    pod = place.pod
    if consumer.resource == "podgroups":
        group = pod.spec.scheduling_group
        return group is not None and group.pod_group_name == consumer.name
    known = place.snapshot.source.is_complete("Pod", pod.metadata.namespace)
    is_gone = known and f"{pod.metadata.namespace}/{consumer.name}" not in place.snapshot.pods.rows
    return consumer.resource == "pods" and (consumer.name == pod.metadata.name or is_gone)


def _delete_users(claim: ResourceClaim, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the deletion of the other pods that use the claim, which has to come first."""
    others = tuple(f"{it.resource}/{it.name}" for it in claim.status.reserved_for if not _is_own(it, place))
    rows = _pods(claim.key, others, place)
    if rows and stay_deleted(rows, place.situation):
        yield deletion(rows, place.snapshot)


# --- claims


def _claim(key: str, spec: ResourceClaimSpec, owner: OwnerReference | None = None) -> ResourceClaim:
    namespace, _, name = key.partition("/")
    owners = () if owner is None else (owner,)
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace, owner_references=owners), spec=spec)


def _as_new_claim(claim: ResourceClaim, spec: ResourceClaimSpec, owner: OwnerReference | None = None) -> ResourceClaim:
    """Return the claim as a new one: not allocated."""
    new_claim = _claim(claim.key, spec, owner or claim.metadata.controller)
    return replace(new_claim, metadata=replace(new_claim.metadata, uid="", labels=claim.metadata.labels))


def _nearly_called(key: str, known: Iterable[str]) -> str:
    """Return an object of the same namespace with a similar name, as `namespace/name`; empty if there is none."""
    namespace = key.partition("/")[0]
    return nearest_name(key, sorted(name for name in known if name.startswith(f"{namespace}/")))


def _guesses(place: RemedyCandidate) -> Iterator[ResourceClaimSpec]:
    """Yield specs with one device of each existing class."""
    for name in sorted(place.snapshot.devices.classes)[:_TRIED]:
        exactly = ExactDeviceRequest(device_class_name=name, allocation_mode=AllocationMode.EXACT_COUNT, count=1)
        yield ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="device", exactly=exactly),)))


def _create_from_template(finding: f.DeviceClaimNotCreated, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield nothing for a claim that the API server refuses, or while no controller creates it."""
    refusals = device_claim_refusal(place.snapshot, place.pod, finding, place.situation.scheduler.release)
    if any(refusals) or controller_manager_down(place.snapshot, ""):
        return
    templates = place.snapshot.devices.templates
    meant = finding.template if finding.template in templates else _nearly_called(finding.template, templates)
    spec, wrong = templates.get(meant), finding.template.partition("/")[2]
    name = f"{place.pod.metadata.name}-{finding.pod_claim}"
    while f"{place.pod.metadata.namespace}/{name}" in place.snapshot.devices.claims:
        name += "-1"
    status = PodResourceClaimStatus(name=finding.pod_claim, resource_claim_name=name)
    for claim_spec in (spec,) if spec is not None else islice(_guesses(place), 1):
        claim = _claim(f"{place.pod.metadata.namespace}/{name}", claim_spec, place.owner_reference)
        yield s.CreateDeviceClaim(
            claim=claim,
            template=meant or finding.template,
            new_template=None if spec is not None else _template(finding.template, claim_spec),
            wrong_template=wrong if meant not in ("", finding.template) else "",
            status=status,
        )


def _template(key: str, spec: ResourceClaimSpec) -> ResourceClaimTemplate:
    namespace, _, name = key.partition("/")
    template_spec = ResourceClaimTemplateSpec(spec=spec)
    return ResourceClaimTemplate(metadata=ObjectMeta(name=name, namespace=namespace), spec=template_spec)


def _unshared_claim(key: str, place: RemedyCandidate) -> ResourceClaim | None:
    """Return a claim that no other pod uses; None if there is none."""
    claim = place.snapshot.devices.claims.get(key)
    return None if claim is None or _is_used_by_others(claim, place) else claim


def _with_requests(spec: ResourceClaimSpec, change: Callable[[DeviceRequest], DeviceRequest]) -> ResourceClaimSpec:
    return replace(spec, devices=replace(spec.devices, requests=tuple(map(change, spec.devices.requests))))


def _change_requests(
    key: str,
    change: Callable[[DeviceRequest], DeviceRequest],
    title: str,
    place: RemedyCandidate,
    cost: s.Cost = s.Cost.CONSTRAINT,
) -> Iterator[s.FixStep]:
    """Yield a claim with changed requests; nothing if other pods use it. `title` has room for the object."""
    claim = _unshared_claim(key, place)
    if claim is not None and (spec := _with_requests(claim.spec, change)) != claim.spec:
        yield _recreate_step(title, claim, spec, place, cost)


def _with_exactly(
    request: DeviceRequest, change: Callable[[ExactDeviceRequest], ExactDeviceRequest], name: str = ""
) -> DeviceRequest:
    """Return the request with what it requests exactly changed, unless it has another name or only alternatives."""
    if request.exactly is None or name not in ("", request.name):
        return request
    return replace(request, exactly=change(request.exactly))


def _with_class(spec: ResourceClaimSpec, wrong: str, meant: str) -> ResourceClaimSpec:
    def corrected(exactly: ExactDeviceRequest) -> ExactDeviceRequest:
        return replace(exactly, device_class_name=meant) if exactly.device_class_name == wrong else exactly

    return _with_requests(spec, partial(_with_exactly, change=corrected))


def _fewer(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield claims that request only as many devices as are free, or one device instead of all if another request needs
    some of them as well."""
    short = finding.shortages[0] if len(finding.shortages) == 1 else None
    if short is not None and short.wanted is not None and 0 < short.free < short.wanted:
        yield from _request_devices(short.claim, short.request, short.free, place)
    left = [part for part in short.capacities if part.device == short.capacities[0].device] if short is not None else ()
    if short is not None and left and all(part.left != "0" for part in left):
        amounts = {part.capacity: part.left for part in left}
        lower = ", ".join(f"{part.capacity} from {part.needed} to {part.left}" for part in left)
        title = f"lower {lower} in request {short.request} of {{}}"
        change = partial(_with_capacity, amounts=amounts)
        changed = partial(_with_exactly, change=change, name=short.request)
        yield from _change_requests(short.claim, changed, title, place)
    if finding.shortages:
        return
    for key in finding.claims:
        claim = place.snapshot.devices.claims.get(key)
        for request in claim.spec.devices.requests if claim is not None else ():
            if request.exactly is not None and request.exactly.allocation_mode == AllocationMode.ALL:
                yield from _request_devices(key, request.name, 1, place)


def _request_devices(key: str, name: str, number: int, place: RemedyCandidate) -> Iterator[s.FixStep]:
    change = partial(replace, allocation_mode=AllocationMode.EXACT_COUNT, count=number)
    changed = partial(_with_exactly, change=change, name=name)
    yield from _change_requests(key, changed, f"request {count(number, 'device')} in request {name} of {{}}", place)


def _wider(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield claims with fewer conditions: any device of the class, for one request or for all that lack devices, or
    devices without constraints between them."""
    lacking = group_pairs((short.claim, short.request) for short in finding.shortages if short.stage != "none")
    for key, requests in lacking.items():
        for some in dict.fromkeys((*((request,) for request in requests), tuple(requests))):
            title = f"remove the selectors of request {', '.join(some)} from {{}}"
            yield from _change_requests(key, partial(_unselective, names=some), title, place)
    for short in finding.shortages:
        if short.capacity:
            title = f"remove the capacity of request {short.request} from {{}}"
            changed = partial(_with_exactly, change=partial(replace, capacity=None), name=short.request)
            yield from _change_requests(short.claim, changed, title, place)
    for key in finding.claims if finding.constraints else ():
        claim = _unshared_claim(key, place)
        if claim is not None and claim.spec.devices.constraints:
            spec = replace(claim.spec, devices=replace(claim.spec.devices, constraints=()))
            yield _recreate_step("remove the constraints from {}", claim, spec, place, s.Cost.CONSTRAINT)


def _correct_product(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield claims whose selectors compare a string with the value of the node's devices for the same product."""
    here = [(it.spec.driver, device) for it in _slices_of_node(place) for device in it.spec.devices]
    for short in finding.shortages:
        claim = _unshared_claim(short.claim, place)
        if claim is None:
            continue
        for request in claim.spec.devices.requests:
            exactly = request.exactly if request.name == short.request else None
            for wrong, meant in intended_values(() if exactly is None else exactly.selectors, here):
                spec = _with_selectors(claim.spec, request, wrong, meant)
                title = f"select {meant} instead of {wrong} in request {request.name} of {{}}"
                yield _recreate_step(title, claim, spec, place, s.Cost.TYPO)


_NAME_OF_DEVICE = lazy_pattern(r"""device\.(attributes|capacity)\[(["'])([^"']+)\2\]\.([A-Za-z_]\w*)""")
_MISSING_KEY = "no such key: "
_QUOTES = ('"', "'")


def _correct_names(failed: f.DeviceSelectorFailed, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the claim or the class whose failing selector reads what the devices publish: under another domain, by
    another name, or only where they publish it."""
    wanted, title = _corrected_expression(failed, place)
    if wanted:
        yield from _with_expression(failed.owner, failed.expression, wanted, title, place)


def _correct_guarded_names(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the claim or the class whose selector asks first whether a device has what no device publishes, so that it
    is false for all of them."""
    lacking = frozenset(_unpublished_drivers(finding, place.snapshot))
    for short in finding.shortages:
        owner = f"class {short.device_class}" if short.stage == "other-class" else f"claim {short.claim}"
        for expression in short.selectors if short.stage in ("other-class", "no-match") else ():
            wanted, title = _with_published_names(expression, place, lacking)
            if wanted:
                yield from _with_expression(owner, expression, wanted, title, place)


def _with_expression(
    owner: str, expression: str, wanted: str, title: str, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    """Yield a claim or class with another expression; `owner` is its kind and key."""
    kind, _, key = owner.partition(" ")
    if kind == "class":
        if (device_class := place.snapshot.devices.classes.get(key)) is not None:
            selectors = _reworded(device_class.spec.selectors, expression, wanted)
            changed = with_spec(device_class, selectors=selectors)
            where = title.format(f"device class {key}")
            yield s.ObjectStep(title=where, cost=s.Cost.TYPO, group=s.FixGroup.CLUSTER, objects=(changed,))
        return

    def reworded(exactly: ExactDeviceRequest) -> ExactDeviceRequest:
        return replace(exactly, selectors=_reworded(exactly.selectors, expression, wanted))

    yield from _change_requests(key, partial(_with_exactly, change=reworded), title, place, s.Cost.TYPO)


def _corrected_expression(failed: f.DeviceSelectorFailed, place: RemedyCandidate) -> tuple[str, str]:
    """Return the expression that reads what the driver's devices publish, and the title of the change, which has room
    for the object. Both are empty if nothing similar is published."""
    missing, driver = failed.error.partition(_MISSING_KEY)[2], failed.device.partition("/")[0]
    read_names = (match for match in _NAME_OF_DEVICE.findall(failed.expression) if match[3] == missing)
    table, quote, domain, name = next(read_names, ("", "", "", ""))
    published = _published(table, place.snapshot, driver)
    if (domain, name) in published:
        wanted = f"{quote}{name}{quote} in device.{table}[{quote}{domain}{quote}] && ({failed.expression})"
        return wanted, f"check that a device has {name} before it is compared in {{}}"
    other = "capacity" if table == "attributes" else "attributes"
    if table and (domain, name) in _published(other, place.snapshot, driver):
        wrong, meant = (f"device.{each}[{quote}{domain}{quote}].{name}" for each in (table, other))
        return failed.expression.replace(wrong, meant), f"read {name} from device.{other} in {{}}"
    return _renamed(failed.expression, table, domain, name, published)


def _with_published_names(expression: str, place: RemedyCandidate, lacking: Collection[str]) -> tuple[str, str]:
    """Return the expression with the first name that no device publishes corrected, and the title of the change. Both
    are empty if there is none. A name of a `lacking` driver, which publishes no devices, is not misspelled."""
    for table, _, domain, name in _NAME_OF_DEVICE.findall(expression):
        published = _published(table, place.snapshot)
        if (domain, name) not in published and domain not in lacking:
            return _renamed(expression, table, domain, name, published)
    return "", ""


def _published(table: str, snapshot: Snapshot, driver: str = "") -> frozenset[tuple[str, str]]:
    """Return the domains and names of the attributes or capacities that the devices of a driver, or all, publish."""
    return frozenset(
        (domain, name) if slash else (each.spec.driver, item)
        for each in snapshot.devices.slices
        if driver in ("", each.spec.driver)
        for device in each.spec.devices
        for item in (device.attributes if table == "attributes" else device.capacity)
        for domain, slash, name in (item.partition("/"),)
    )


def _renamed(
    expression: str, table: str, domain: str, name: str, published: Collection[tuple[str, str]]
) -> tuple[str, str]:
    """Return the expression with the domain or the name that is published, and the title of the change; both are empty
    if nothing similar is."""
    domains = sorted(other for other, item in published if item == name)
    names = sorted(item for other, item in published if other == domain)
    reads = [f"device.{table}[{quote}{domain}{quote}]" for quote in _QUOTES]
    if len(domains) == 1:
        for read in reads:
            expression = expression.replace(read, read.replace(domain, domains[0]))
        return expression, f"read {name} of domain {domains[0]} instead of {domain} in {{}}"
    if name and (meant := nearest_name(name, names) or _only_longer(name, names)):
        for read in reads:
            expression = expression.replace(f"{read}.{name}", f"{read}.{meant}")
            for quote in _QUOTES:
                guard, corrected = (f"{quote}{each}{quote} in {read}" for each in (name, meant))
                expression = expression.replace(guard, corrected)
        return expression, f"read {meant} instead of {name} in {{}}"
    return "", ""


def _selector(expression: str) -> DeviceSelector:
    return DeviceSelector(cel=CELDeviceSelector(expression=expression))


def _of_driver(driver: str) -> DeviceSelector:
    return _selector(f'device.driver == "{driver}"')


def _only_longer(name: str, names: Iterable[str]) -> str:
    longer = [other for other in names if other.casefold().startswith(name.casefold())]
    return longer[0] if len(longer) == 1 else ""


def _reworded(selectors: Iterable[DeviceSelector], wrong: str, meant: str) -> tuple[DeviceSelector, ...]:
    """Return the selectors with another expression in place of one."""
    other = _selector(meant)
    return tuple(other if each.cel is not None and each.cel.expression == wrong else each for each in selectors)


def _with_selectors(spec: ResourceClaimSpec, changed: DeviceRequest, wrong: str, meant: str) -> ResourceClaimSpec:
    """Return the spec with another string in the selectors of a request."""

    def corrected(selector: DeviceSelector) -> DeviceSelector:
        text = "" if selector.cel is None else selector.cel.expression
        for quote in _QUOTES:
            text = text.replace(f"{quote}{wrong}{quote}", f"{quote}{meant}{quote}")
        return _selector(text)

    assert changed.exactly is not None, "the selectors of its alternatives are not corrected"
    selectors = tuple(map(corrected, changed.exactly.selectors))
    request = replace(changed, exactly=replace(changed.exactly, selectors=selectors))
    return _with_requests(spec, lambda known: request if known is changed else known)


def _wider_classes(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield a class without selectors except for its driver, if devices are in reach but none belongs to the class."""
    devices = place.snapshot.devices
    for name in dict.fromkeys(it.device_class for it in finding.shortages if it.stage == "other-class"):
        before = devices.classes.get(name)
        if before is None:
            continue
        driver = driver_of(before.spec.selectors)
        after = with_spec(before, selectors=(_of_driver(driver),) if driver else ())
        if after != before:
            kept = f" but driver {driver}" if driver else ""
            yield s.ObjectStep(
                title=f"remove the selectors of device class {name}{kept}: no device matches them",
                cost=s.Cost.STOPGAP,
                costs=("every claim of the class may get other devices",),
                group=s.FixGroup.CLUSTER,
                objects=(after,),
            )


def _publish_devices(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.OfferDevices]:
    """Yield the devices of a driver that publishes none, on a node whose labels name the driver's hardware, or where a
    pod of the driver's vendor is not ready."""
    lacking = _unpublished_drivers(finding, place.snapshot, place.node.name)
    label, agents = _driver_traces(lacking, place.node, place.snapshot)
    if label or agents:
        slices = tuple(slices_with(described_devices(place.situation), place.node.name))
        yield s.OfferDevices(node=place.node.name, label=label, agents=agents, slices=slices)


def rows_of_drivers(situation: Situation) -> Iterator[ClusterRow]:
    """Yield the nodes that show a driver whose devices the pod requests and that publishes none."""
    snapshot = situation.snapshot
    lacking = (finding for finding in situation.findings if isinstance(finding, f.InsufficientDevices))
    drivers = dict.fromkeys(driver for finding in lacking for driver in _unpublished_drivers(finding, snapshot))
    shown = (at for at, node in enumerate(snapshot.cluster.nodes) if any(_driver_traces(drivers, node, snapshot)))
    return map(ClusterRow, islice(shown if drivers else (), _TRIED))


def _unpublished_drivers(finding: f.InsufficientDevices, snapshot: Snapshot, on: str = "") -> Iterator[str]:
    """Yield the drivers of the classes that the claim requests, if they publish no devices: on a node, or at all."""
    classes = dict.fromkeys(short.device_class for short in finding.shortages if short.stage in ("none", "other-class"))
    for name in classes:
        yield from filter(None, (published.driver for published in unpublished_devices(snapshot, name)))
        known_class = snapshot.devices.classes.get(name)
        driver = driver_of(known_class.spec.selectors) if known_class is not None and on else ""
        if driver and all(
            each.spec.node_name not in ("", on) for each in snapshot.devices.slices if each.spec.driver == driver
        ):
            yield driver


def _driver_traces(drivers: Iterable[str], node: Node, snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """Return the label that names the hardware of one of the drivers on a node, and the pods of their vendors that are
    not ready there."""
    drivers = tuple(drivers)
    label = next(filter(None, (hardware_label(driver, node) for driver in drivers)), "")
    vendors = {driver.split(".")[-2] for driver in drivers if "." in driver}
    down = agents_down(snapshot, node.name) if vendors else ()
    return label, tuple(agent for agent in down if any(vendor in agent for vendor in vendors))


def _complete_pools(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the pools whose driver has not published every ResourceSlice, with the devices that are known."""
    for key in dict.fromkeys(pool for short in finding.shortages for pool in short.updating):
        driver, _, name = key.partition("/")
        kept = place.snapshot.devices.slices_of_pool(key)
        whole = tuple(with_spec(it, pool=replace(it.spec.pool, resource_slice_count=len(kept))) for it in kept)
        title = f"repair DRA driver {driver}, so that it publishes all ResourceSlices of pool {name}"
        yield _driver_step(title, driver, whole)


def _taints(finding: f.InsufficientDevices) -> set[str]:
    return {phrase.rpartition(" on ")[0] for short in finding.shortages for phrase in short.taints}


def _slices_of_node(place: RemedyCandidate) -> list[ResourceSlice]:
    return [each for each in place.snapshot.devices.slices if each.spec.node_name == place.node.name]


def _repair_devices(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the devices on the node without the taints that their driver sets."""
    taints, here = _taints(finding), _slices_of_node(place)
    for driver in dict.fromkeys(resource_slice.spec.driver for resource_slice in here):
        before = [resource_slice for resource_slice in here if resource_slice.spec.driver == driver]
        after = tuple(_without_taints(resource_slice, taints) for resource_slice in before)
        changed = tuple(new for old, new in zip(before, after, strict=True) if new != old)
        if changed:
            title = (
                f"repair the devices of {place.node.name} that driver {driver} taints {list_names(sorted(taints), 2)}"
            )
            yield _driver_step(title, driver, changed)


def _without_taints(resource_slice: ResourceSlice, taints: Collection[str]) -> ResourceSlice:
    def without(device: Device) -> Device:
        return replace(device, taints=tuple(taint for taint in device.taints if str(taint) not in taints))

    return with_spec(resource_slice, devices=tuple(map(without, resource_slice.spec.devices)))


def _driver_step(title: str, driver: str, slices: tuple[ResourceSlice, ...]) -> s.FixStep:
    made = tuple((each, driver) for each in slices)
    return s.ObjectStep(title=title, cost=s.Cost.REPAIR, group=s.FixGroup.CAPACITY, objects=slices, made=made)


def _with_capacity(exactly: ExactDeviceRequest, amounts: Mapping[str, str]) -> ExactDeviceRequest:
    """Return the request with other amounts of capacities, which it may name with the domain of their driver."""
    if exactly.capacity is None:
        return exactly
    known = exactly.capacity.requests.items()
    requests = {key: amounts.get(key, amounts.get(key.rpartition("/")[2], amount)) for key, amount in known}
    return replace(exactly, capacity=replace(exactly.capacity, requests=requests))


def _unselective(request: DeviceRequest, names: Sequence[str]) -> DeviceRequest:
    """Return the request without selectors, if it or its alternative (`request/alternative`) is among the names."""
    exactly = request.exactly
    if exactly is not None and request.name in names:
        exactly = replace(exactly, selectors=())
    alternatives = tuple(
        replace(subrequest, selectors=()) if f"{request.name}/{subrequest.name}" in names else subrequest
        for subrequest in request.first_available
    )
    return replace(request, exactly=exactly, first_available=alternatives)


# --- pods that use devices


def _free(finding: f.InsufficientDevices, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the deletion of the pod with the lowest priority that uses enough devices, or of the fewest pods."""
    if not finding.shortages or any(_count_to_free(shortage) is None for shortage in finding.shortages):
        return
    held: Counter[int] = Counter()
    for short in finding.shortages:
        for holder in short.holders:
            rows = _pods(holder.claim, holder.consumers, place)
            if len(rows) == 1:
                held[rows[0]] += 1
    wanted = sum(_count_to_free(shortage) or 0 for shortage in finding.shortages)
    priorities = place.snapshot.pods.priorities
    enough = sorted((row for row in held if held[row] >= wanted), key=lambda row: (priorities[row], held[row], row))
    ways: list[tuple[int, ...]] = [(row,) for row in enough[:_TRIED]]
    if not ways:
        most = sorted(held, key=lambda row: (priorities[row], -held[row], row))[:MOST_VICTIMS]
        sums = list(accumulate(held[row] for row in most))
        number = next((at + 1 for at, total in enumerate(sums) if total >= wanted), None)
        ways = [tuple(sorted(most[:number]))] if number else []
    for victims in ways:
        if stay_deleted(victims, place.situation):
            yield deletion(victims, place.snapshot, node=place.node.name)


def _count_to_free(short: f.DeviceShortage) -> int | None:
    """Return how many devices have to be freed; None if freeing devices does not suffice."""
    wanted = short.matching if short.wanted is None else short.wanted
    return wanted - short.free if short.stage == "taken" and wanted <= short.free + len(short.holders) else None


def _pods(claim: str, consumers: tuple[str, ...], place: RemedyCandidate) -> list[int]:
    """Return the rows of the pods that use a claim; empty if one of them may not be evicted or is unknown."""
    pods = place.snapshot.pods
    namespace = claim.partition("/")[0]
    rows = []
    for consumer in consumers:
        kind, _, name = consumer.partition("/")
        row = pods.rows.get(f"{namespace}/{name}") if kind == "pods" else None
        if row is None or not can_evict(row, place.situation):
            return []
        rows.append(row)
    return rows

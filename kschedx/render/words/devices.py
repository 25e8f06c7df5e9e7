"""Devices and their claims in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.errors import nearest
from kschedx.findings import (
    DeviceClaimBeingDeleted,
    DeviceClaimNotCreated,
    DeviceClaimNotFound,
    DeviceClaimNotOwned,
    DeviceClaimOutOfReach,
    DeviceClassNotFound,
    DeviceFinding,
    DeviceHolder,
    DeviceSelectorFailed,
    DeviceShortage,
    DevicesToAllocate,
    InsufficientDevices,
)
from kschedx.render.wording import Brief, Fact, Reason, Words, count, listed

SHOWN = 4


DEVICE_REASONS: dict[str, Reason] = {}


def describe_device(finding: DeviceFinding) -> Words:
    match finding:
        case DeviceClaimNotFound():
            return _device_claim_not_found(finding)
        case DeviceClaimNotCreated():
            return _device_claim_not_created(finding)
        case DeviceClaimBeingDeleted():
            return _device_claim_being_deleted(finding)
        case DeviceClaimNotOwned():
            return _device_claim_not_owned(finding)
        case DeviceClassNotFound():
            return _device_class_not_found(finding)
        case DeviceSelectorFailed():
            return _device_selector_failed(finding)
        case DeviceClaimOutOfReach():
            return _device_claim_out_of_reach(finding)
        case InsufficientDevices():
            return _insufficient_devices(finding)
        case DevicesToAllocate():
            return _devices_to_allocate(finding)
        case _:
            assert_never(finding)


DEVICE_REASONS[DeviceClaimNotFound.reason] = Reason(
    plugins=("DynamicResources",),
    means="The pod names a ResourceClaim that does not exist.",
    causes=(
        "resourceClaimName is misspelled",
        "the claim has not been created",
        "the claim is in another namespace",
    ),
    fixes=("correct resourceClaimName", "create the ResourceClaim in the pod's namespace"),
)


def _device_claim_not_found(finding: DeviceClaimNotFound) -> Words:
    return Words(
        headline=f"resource claim {finding.claim} does not exist",
        facts=(Fact(label="needed by", items=(f"spec.resourceClaims {finding.pod_claim}",)),),
    )


DEVICE_REASONS[DeviceClaimNotCreated.reason] = Reason(
    plugins=("DynamicResources",),
    means="The ResourceClaim from the pod's template does not exist yet, so the pod is not queued.",
    causes=(
        "the pod is new, and kube-controller-manager creates the claim in a moment",
        "the ResourceClaimTemplate does not exist",
        "a quota or an admission webhook refuses the claim",
    ),
    fixes=("look at the pod's events and at the ResourceClaimTemplate", "create the template"),
)


def _device_claim_not_created(finding: DeviceClaimNotCreated) -> Words:
    doubt = {True: (), False: ("does not exist",), None: ("not in the snapshot",)}
    return Words(
        headline=f"no resource claim has been created for {finding.pod_claim}",
        facts=(
            Fact(label="template", items=(finding.template, *doubt[finding.template_exists])),
            Fact(label="created by", items=("kube-controller-manager, which writes its name to the pod's status",)),
        ),
    )


DEVICE_REASONS[DeviceClaimBeingDeleted.reason] = Reason(
    plugins=("DynamicResources",),
    means="The pod's ResourceClaim is being deleted; a new pod cannot use it.",
    causes=("the claim was deleted while pods still used it; it is removed with the last of them",),
    fixes=("wait until it is gone, and create it again",),
)


def _device_claim_being_deleted(finding: DeviceClaimBeingDeleted) -> Words:
    return Words(headline=f"resource claim {finding.claim} is being deleted (since {finding.since})")


DEVICE_REASONS[DeviceClaimNotOwned.reason] = Reason(
    plugins=("DynamicResources",),
    means="The pod's status names a ResourceClaim that was not created for it.",
    causes=(
        "a claim of the generated name existed before",
        "the pod was recreated under its old name",
    ),
    fixes=("delete the claim, so that the controller creates its own",),
)


def _device_claim_not_owned(finding: DeviceClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "it has no owner"
    return Words(headline=f"resource claim {finding.claim} was not created for this pod: {owner}")


DEVICE_REASONS[DeviceClassNotFound.reason] = Reason(
    plugins=("DynamicResources",),
    means="A request of a ResourceClaim is for a DeviceClass that does not exist.",
    causes=(
        "the driver, whose chart creates the class, is not installed",
        "deviceClassName is misspelled",
    ),
    fixes=("correct deviceClassName", "install the driver or create the DeviceClass"),
)


def _device_class_not_found(finding: DeviceClassNotFound) -> Words:
    known = listed(finding.classes, SHOWN) if finding.classes else "none"
    hint = nearest(finding.device_class, finding.classes)
    return Words(
        headline=f"device class {finding.device_class} does not exist",
        facts=(
            Fact(label="needed by", items=(f"request {finding.request} of claim {finding.claim}",)),
            Fact(label="existing", items=(known, hint) if hint else (known,)),
        ),
    )


DEVICE_REASONS[DeviceSelectorFailed.reason] = Reason(
    plugins=("DynamicResources",),
    means="A CEL expression of a DeviceClass or ResourceClaim fails on a device. kube-scheduler retries the pod.",
    causes=(
        "the expression reads an attribute that a device does not have",
        "it reads an attribute of another driver's device",
        "it compares values of different types",
    ),
    fixes=(
        "test that the attribute exists: has(...), or .?name.orValue(...)",
        "compare the driver first: device.driver == 'NAME' &&",
    ),
)


def _device_selector_failed(finding: DeviceSelectorFailed) -> Words:
    return Words(
        headline=f"a selector of {finding.owner} fails on a device: {finding.error.splitlines()[0]}",
        facts=(
            Fact(label="selector", items=(finding.expression,)),
            Fact(label="device", items=(finding.device,)),
        ),
    )


DEVICE_REASONS[DeviceClaimOutOfReach.reason] = Reason(
    plugins=("DynamicResources",),
    means=(
        "The ResourceClaim has devices that this node cannot use: they are on other nodes, or their "
        "driver did not prepare them in time."
    ),
    causes=(
        "pods share a claim whose devices belong to one node",
        "the claim is still allocated from an earlier pod",
        "the driver did not prepare the devices in time",
    ),
    fixes=(
        "free room for the pod on the node with the devices",
        "give the pod a claim of its own, with a ResourceClaimTemplate",
        "delete the pods that reserve the claim, so that it is allocated again",
    ),
)


def _device_claim_out_of_reach(finding: DeviceClaimOutOfReach) -> Words:
    match finding.cause:
        case "elsewhere":
            text = f"claim {finding.claim} has devices that this node cannot use"
        case "binding-failed":
            text = f"the devices of claim {finding.claim} could not be prepared"
        case _:
            text = f"the devices of claim {finding.claim} were not ready in time"
    facts = [Fact(label="devices", items=(listed(finding.devices, SHOWN),))] if finding.devices else []
    if finding.where:
        facts.append(Fact(label="usable on", items=(finding.where,)))
    if finding.consumers:
        facts.append(Fact(label="used by", items=(listed(finding.consumers, SHOWN),)))
    return Words(headline=text, facts=tuple(facts))


DEVICE_REASONS[InsufficientDevices.reason] = Reason(
    plugins=("DynamicResources",),
    means="The node does not have the devices that the pod's claims request.",
    causes=(
        "other claims use all matching devices",
        "the node has no such device",
        "the selectors are too narrow",
        "the devices are tainted",
        "the counters or the capacity of the devices are used up",
    ),
    fixes=(
        "free devices that match: delete claims that no pod uses",
        "request fewer devices, widen the selectors, or list alternatives with firstAvailable",
        "delete pods whose claims have matching devices",
        "add nodes with such devices",
    ),
)


def _insufficient_devices(finding: InsufficientDevices) -> Words:
    if not finding.shortages:
        claims = f"{'claim' if len(finding.claims) == 1 else 'claims'} {listed(finding.claims, SHOWN)}"
        facts = [Fact(label="rule", items=(text,)) for text in finding.constraints]
        return Words(
            headline=f"no combination of its devices satisfies {claims}",
            facts=tuple(facts),
        )
    first = finding.shortages[0]
    requests = [_base(one) for one in finding.shortages]
    options, others = requests.count(_base(first)), len(set(requests)) - 1
    fails = "fails" if options == 2 else "fail"
    more = f"; its {count(options - 1, 'alternative')} {fails} too" if options > 1 else ""
    if others:
        more += f"; {count(others, 'other request')} {'lacks' if others == 1 else 'lack'} devices too"
    several = len({one.claim for one in finding.shortages}) > 1
    facts = []
    for one in finding.shortages:
        request = f"{one.claim} {one.request}" if several else one.request
        facts += _facts(one, f"{request}: " if len(finding.shortages) > 1 else "")
    return Words(headline=f"{_headline(first)}{more}", shared=_wants(first), facts=tuple(facts), brief=_brief(first))


def _base(short: DeviceShortage) -> tuple[str, str]:
    """Alternatives are of one request."""
    return short.claim, short.request.partition("/")[0]


def _headline(short: DeviceShortage) -> str:
    wants = _wants(short)
    match short.stage:
        case "none":
            return f"{wants}; the node has no devices"
        case "other-class":
            return f"{wants}; none of its {count(short.in_reach, 'device')} is of the class"
        case "no-match":
            return f"{wants}; none of {short.of_class:,} matches request {short.request}"
        case _:
            return f"{wants}; {short.free:,} of {short.matching:,} {'is' if short.free == 1 else 'are'} free"


def shortage_text(short: DeviceShortage, nodes: str, has: str) -> str:
    """`2 nodes have too few free devices for claim ml/gpus (2 of class gpu.nvidia.com)`; `has` is the verb."""
    wanted = "all" if short.wanted is None else f"{short.wanted:,}"
    match short.stage:
        case "none":
            return f"{nodes} {has} no devices for claim {short.claim} ({wanted} of class {short.device_class})"
        case "other-class":
            return f"{nodes} {has} no devices of class {short.device_class} for claim {short.claim}"
        case "no-match":
            return f"no device of {nodes} matches request {short.request} of claim {short.claim}"
        case _:
            free = f"{nodes} {has} too few free devices for claim {short.claim}"
            tainted = f", with tainted devices: {listed(short.taints, 2)}" if short.taints else ""
            return f"{free} ({wanted} of class {short.device_class}){tainted}"


def _wants(short: DeviceShortage) -> str:
    return f"claim {short.claim} requests {_wanted(short)} of class {short.device_class}"


def _wanted(short: DeviceShortage) -> str:
    return "all devices" if short.wanted is None else count(short.wanted, "device")


def _brief(short: DeviceShortage) -> Brief | None:
    match short.stage:
        case "none":
            return None
        case "other-class":
            return Brief(detail=f"none of {count(short.in_reach, 'device')}")
        case "no-match":
            return Brief(detail=f"none of {short.of_class:,} matches")
        case _:
            return Brief(detail=f"{short.free:,} of {short.matching:,} free")


def _facts(short: DeviceShortage, lead: str) -> list[Fact]:
    if short.stage == "none":
        return _updating(short)
    taken = short.matching - short.free
    sums = f"{short.in_reach:,} accessible, {short.of_class:,} of the class, {short.matching:,} matching"
    if taken:
        sums += f", {taken:,} in use or unusable, {short.free:,} free"
    facts = [Fact(label="devices", items=(f"{lead}{sums}",), whole=True)]
    facts += [Fact(label="selector", items=(expression,)) for expression in short.selectors[:SHOWN]]
    if short.values and not short.free:
        facts.append(Fact(label="values", items=(listed(short.values, SHOWN),)))
    if short.holders:
        held = tuple(_held(one) for one in short.holders)
        rest = tuple(f"{len(held) - shown:,} more" for shown in range(len(held)))
        facts.append(Fact(label="used by", items=held, rest=rest))
    if short.taints:
        facts.append(Fact(label="tainted", items=(listed(short.taints, SHOWN),)))
    if short.capacity:
        facts.append(Fact(label="capacity", items=(listed(short.capacity, SHOWN),)))
    for one in short.counters[:SHOWN]:
        facts.append(
            Fact(label="counter", items=(f"{one.counter} of {one.pool}: needs {one.needed}, {one.left} left",))
        )
    return facts + _updating(short)


def _updating(short: DeviceShortage) -> list[Fact]:
    if not short.updating:
        return []
    return [Fact(label="updating", items=(f"ResourceSlices of pool {listed(short.updating, SHOWN)} are incomplete",))]


def _held(holder: DeviceHolder) -> str:
    by = f" for {listed(holder.consumers, 2)}" if holder.consumers else ""
    return f"{holder.device} by {holder.claim}{by}"


DEVICE_REASONS[DevicesToAllocate.reason] = Reason(
    plugins=("DynamicResources",),
    means="On the selected node the claim would be allocated these devices. Nothing is wrong.",
    causes=("the claim's first pod is being scheduled, which allocates the claim",),
    fixes=("nothing has to be fixed: the claim is allocated when the pod is scheduled",),
)


def _devices_to_allocate(finding: DevicesToAllocate) -> Words:
    devices_of: dict[str, list[str]] = {}
    for device, request in zip(finding.devices, finding.requests, strict=True):
        devices_of.setdefault(request, []).append(device.partition("/")[2])
    parts = [f"{listed(devices, SHOWN)} for {request}" for request, devices in devices_of.items()]
    return Words(headline=f"claim {finding.claim} would be allocated {listed(parts, SHOWN)}")

"""Devices and their claims in words."""

from __future__ import annotations

from kschedx import findings
from kschedx.grouping import group_pairs
from kschedx.kube.devices import IN_MEMORY
from kschedx.kube.typos import nearest_name
from kschedx.wording import Brief, Fact, Words, count, in_words, list_names, register_templates

_SHOWN = 4

register_templates(
    {
        findings.DeviceClaimNotFound: (
            "resource claim {f.claim} does not exist",
            ("needed by", "spec.resourceClaims {f.pod_claim}"),
        ),
        findings.DeviceClaimBeingDeleted: ("resource claim {f.claim} is being deleted (since {f.since})",),
    }
)


@in_words.register
def _device_claim_not_created(finding: findings.DeviceClaimNotCreated) -> Words:
    doubt = {True: (), False: ("does not exist",), None: ("not in the snapshot",)}
    return Words(
        headline=f"no resource claim has been created for {finding.pod_claim}",
        facts=(
            Fact.of("template", finding.template, *doubt[finding.template_exists]),
            Fact.of("created by", "kube-controller-manager, which writes its name to the pod's status"),
        ),
    )


@in_words.register
def _device_claim_not_owned(finding: findings.DeviceClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "it has no owner"
    return Words(headline=f"resource claim {finding.claim} was not created for this pod: {owner}")


@in_words.register
def _device_class_not_found(finding: findings.DeviceClassNotFound) -> Words:
    known = list_names(finding.classes, _SHOWN) if finding.classes else "none"
    meant = nearest_name(finding.device_class, finding.classes)
    hint = f' (did you mean "{meant}"?)' if meant else ""
    return Words(
        headline=f"device class {finding.device_class} does not exist{hint}",
        facts=(Fact.of("needed by", f"request {finding.request} of claim {finding.claim}"), Fact.of("existing", known)),
    )


@in_words.register
def _device_selector_failed(finding: findings.DeviceSelectorFailed) -> Words:
    return Words(
        headline=f"a selector of {finding.owner} fails on a device: {finding.error.splitlines()[0]}",
        facts=(Fact.of("selector", finding.expression), Fact.of("device", finding.device)),
    )


@in_words.register
def _device_claim_out_of_reach(finding: findings.DeviceClaimOutOfReach) -> Words:
    match finding.cause:
        case "elsewhere":
            where = finding.where.removeprefix("metadata.name In [").removesuffix("]")
            shared = f"claim {finding.claim} is allocated for {where} only" if where else ""
            text = shared or f"claim {finding.claim} has devices that this node cannot use"
        case "binding-failed":
            text = f"the devices of claim {finding.claim} could not be prepared"
        case _:
            text = f"the devices of claim {finding.claim} were not ready in time"
    facts = [Fact.of("devices", list_names(finding.devices, _SHOWN))] if finding.devices else []
    if finding.where:
        facts.append(Fact.of("usable on", finding.where))
    if finding.consumers:
        facts.append(Fact.of("used by", list_names(finding.consumers, _SHOWN)))
    return Words(headline=text, facts=tuple(facts))


@in_words.register
def _insufficient_devices(finding: findings.InsufficientDevices) -> Words:
    if not finding.shortages:
        claims = f"{'claim' if len(finding.claims) == 1 else 'claims'} {list_names(finding.claims, _SHOWN)}"
        rules = f": {', and '.join(finding.constraints)}" if finding.constraints else ""
        return Words(headline=f"no combination of its devices satisfies {claims}{rules}")
    first = finding.shortages[0]
    requests = [_base(shortage) for shortage in finding.shortages]
    options, others = requests.count(_base(first)), len(set(requests)) - 1
    fails = "fails" if options == 2 else "fail"
    more = f"; its {count(options - 1, 'alternative')} {fails} too" if options > 1 else ""
    if others:
        more += f"; {count(others, 'other request')} {'lacks' if others == 1 else 'lack'} devices too"
    several = len({shortage.claim for shortage in finding.shortages}) > 1
    facts = []
    for shortage in finding.shortages:
        request = f"{shortage.claim} {shortage.request}" if several else shortage.request
        facts += _facts(shortage, f"{request}: " if len(finding.shortages) > 1 else "")
    return Words(
        headline=f"{_headline(first)}{more}",
        shared=_request_text(first),
        general=_class_shortage_text(first),
        facts=tuple(facts),
        brief=_brief(first),
    )


def _base(short: findings.DeviceShortage) -> tuple[str, str]:
    """Return a key that all alternatives of one request share."""
    return short.claim, short.request.partition("/")[0]


def _headline(short: findings.DeviceShortage) -> str:
    wants = _request_text(short)
    match short.stage:
        case "none":
            return f"{wants}; the node has no devices"
        case "other-class":
            return f"{wants}; none of its {count(short.in_reach, 'device')} is of the class"
        case "no-match":
            return f"{wants}; none of {short.of_class:,} matches request {short.request}"
        case _:
            return f"{wants}; {short.free:,} of {short.matching:,} {'is' if short.free == 1 else 'are'} free"


def _class_shortage_text(short: findings.DeviceShortage) -> str:
    """Return what is true for every pod that requests the class, for any name of its claim."""
    match short.stage:
        case "none" | "other-class":
            return f"no devices of class {short.device_class} within reach"
        case "no-match":
            return f"no device of class {short.device_class} matches the request"
        case _:
            return f"too few free devices of class {short.device_class}"


def shortage_text(short: findings.DeviceShortage, nodes: str, has: str) -> str:
    """Return `2 nodes have too few free devices for claim ml/gpus (2 of class gpu.nvidia.com)`. `has` is the verb."""
    wanted = "all" if short.wanted is None else f"{short.wanted:,}"
    match short.stage:
        case "none":
            return f"{nodes} {has} no devices for {_claim(short)} ({wanted} of class {short.device_class})"
        case "other-class":
            return f"{nodes} {has} no devices of class {short.device_class} for {_claim(short)}"
        case "no-match":
            return f"no device of {nodes} matches request {short.request} of {_claim(short)}"
        case _:
            free = f"{nodes} {has} too few free devices for {_claim(short)}"
            tainted = f", with tainted devices: {list_names(short.taints, 2)}" if short.taints else ""
            return f"{free} ({wanted} of class {short.device_class}){tainted}"


def _request_text(short: findings.DeviceShortage) -> str:
    verb = "request" if short.claim.endswith(IN_MEMORY) else "requests"
    wanted = "all devices" if short.wanted is None else count(short.wanted, "device")
    return f"{_claim(short)} {verb} {wanted} of class {short.device_class}"


def _claim(short: findings.DeviceShortage) -> str:
    """Return the claim's name. kube-scheduler itself creates the claim of extended resources, and names it only once
    the pod has a node."""
    return "its extended resources" if short.claim.endswith(IN_MEMORY) else f"claim {short.claim}"


def _brief(short: findings.DeviceShortage) -> Brief | None:
    match short.stage:
        case "none":
            return None
        case "other-class":
            return Brief(detail=f"none of {count(short.in_reach, 'device')}")
        case "no-match":
            return Brief(detail=f"none of {short.of_class:,} matches")
        case _:
            return Brief(detail=f"{short.free:,} of {short.matching:,} free")


def _facts(short: findings.DeviceShortage, lead: str) -> list[Fact]:
    if short.stage == "none":
        return _updating_facts(short)
    taken = short.matching - short.free
    sums = f"{short.in_reach:,} accessible, {short.of_class:,} of the class, {short.matching:,} matching"
    if taken:
        sums += f", {taken:,} in use or unusable, {short.free:,} free"
    facts = [Fact.of("devices", f"{lead}{sums}", whole=True)]
    facts += [Fact.of("selector", expression) for expression in short.selectors[:_SHOWN]]
    if short.values and not short.free:
        facts.append(Fact.of("values", list_names(short.values, _SHOWN)))
    if short.holders:
        held = tuple(_held(holder) for holder in short.holders)
        rest = tuple(f"{len(held) - shown:,} more" for shown in range(len(held)))
        facts.append(Fact.of("used by", *held, rest=rest))
    if short.taints:
        facts.append(Fact.of("tainted", list_names(short.taints, _SHOWN)))
    left = [f"{it.capacity} of {it.device}: needs {it.needed}, {it.left} left" for it in short.capacities[:_SHOWN]]
    if left or short.capacity:
        facts.append(Fact.of("capacity", *(tuple(left) or (list_names(short.capacity, _SHOWN),))))
    for counter in short.counters[:_SHOWN]:
        facts.append(
            Fact.of("counter", f"{counter.counter} of {counter.pool}: needs {counter.needed}, {counter.left} left")
        )
    return facts + _updating_facts(short)


def _updating_facts(short: findings.DeviceShortage) -> list[Fact]:
    if not short.updating:
        return []
    return [Fact.of("updating", f"ResourceSlices of pool {list_names(short.updating, _SHOWN)} are incomplete")]


def _held(holder: findings.DeviceHolder) -> str:
    by = f" for {list_names(holder.consumers, 2)}" if holder.consumers else ""
    return f"{holder.device} by {holder.claim}{by}"


@in_words.register
def _devices_to_allocate(finding: findings.DevicesToAllocate) -> Words:
    pairs = zip(finding.devices, finding.requests, strict=True)
    devices_of = group_pairs((request, device.partition("/")[2]) for device, request in pairs)
    parts = [f"{list_names(devices, _SHOWN)} for {request}" for request, devices in devices_of.items()]
    waits = ""
    if finding.binding_conditions:
        named = list_names(finding.binding_conditions, _SHOWN, conjunction="and")
        waits = f"; the pod waits up to {finding.binding_timeout:,} s until its driver reports {named}"
    return Words(headline=f"claim {finding.claim} would be allocated {list_names(parts, _SHOWN)}{waits}")

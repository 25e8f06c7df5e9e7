"""Why a NodePool of Karpenter does not help a pod, or no pod, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import assert_never

from kschedx.karpenter.cluster import Karpenter, LaunchCertainty, PoolVerdict, matching_types
from kschedx.karpenter.devices import OF_DEVICES, NoDevices
from kschedx.karpenter.instance_types import InstanceType, NoInstanceType
from kschedx.karpenter.rejections import (
    CheapestAreTooFew,
    Incompatible,
    LimitReached,
    NodeLimitReached,
    NotTolerated,
    PortTaken,
)
from kschedx.karpenter.requirements import (
    NODES,
    ZERO,
    Amount,
    Amounts,
    LabelRequirement,
    NothingInCommon,
    RequirementConflict,
    UnknownLabel,
)
from kschedx.karpenter.scheduler import ONLY_DEVICES
from kschedx.karpenter.topology import TopologyType, Unsatisfiable
from kschedx.kube.names import NVIDIA_GPU, ZONE
from kschedx.kube.quantity import Unit
from kschedx.kube.types import Pod
from kschedx.wording import Fact, amount, count, list_names

_MOST_NAMES = 3
_SHOWN_RESOURCES = ("cpu", "memory", NVIDIA_GPU, "amd.com/gpu", "pods")
"""The resources of an instance type that are shown, in this order."""


def pool_headline(verdict: PoolVerdict) -> str:
    """Return why a NodePool does not help, in lower case and with the number."""
    rejection = verdict.rejection
    match rejection:
        case NotTolerated(taints=taints):
            return f"untolerated taint {' and '.join(map(str, taints))}"
        case PortTaken(port=port, by=by):
            return f"host port {port.port}/{port.protocol} is in use by {by}, which runs on every new node"
        case Incompatible():
            return "; ".join(_conflict(it, is_about_volumes=rejection.is_about_volumes) for it in rejection.conflicts)
        case Unsatisfiable():
            allowed = f"{rejection.key} {_values(rejection.of_node)}"
            match rejection.kind:
                case TopologyType.SPREAD:
                    return f"the pod's spread constraint permits no {rejection.key} of a new node: {_counts(rejection)}"
                case TopologyType.AFFINITY:
                    return f"no pod that matches the pod affinity runs where a new node can be ({allowed})"
                case TopologyType.ANTI_AFFINITY:
                    return f"the pod anti-affinity excludes every place of a new node ({allowed})"
                case _:
                    assert_never(rejection.kind)
        case LimitReached():
            return f"limit reached: {', '.join(_limits(verdict, rejection))}"
        case NodeLimitReached(limit=limit):
            return f"limit reached: {count(limit, 'node')} of {limit}"
        case NoInstanceType():
            return _no_type(verdict, rejection)
        case CheapestAreTooFew(most=most, too_few=too_few):
            phrase = ", ".join(_too_few(verdict, too_few))
            return f"Karpenter requests the {most} cheapest instance types only, too few: {phrase}"
        case NoDevices(text=text, is_known=is_known):
            phrase = text.removeprefix(OF_DEVICES)
            return phrase if is_known else "the devices of its instance types are not known (--instance-types can say)"
        case _:
            assert_never(rejection)


def untried_text(reason: str, karpenter: Karpenter) -> str:
    """Return why Karpenter tries no NodePool for a pod."""
    if reason == ONLY_DEVICES:
        return "ResourceClaims are not supported"
    if not karpenter.templates:
        return "no NodePool has an instance type that meets its own requirements"
    return reason.removeprefix(OF_DEVICES)


def _conflict(conflict: RequirementConflict, *, is_about_volumes: bool) -> str:
    match conflict:
        case UnknownLabel(key=key, typo_of=meant):
            hint = f", did you mean {meant}?" if meant else ""
            return f"its nodes have no label {key}{hint}"
        case NothingInCommon(key=key, incoming=incoming, existing=existing):
            who = "the pod's volume is in" if is_about_volumes else "the pod requires"
            return f"{who} {_values(incoming)}, the NodePool {_has(existing)} ({key})"
        case _:
            assert_never(conflict)


def _values(requirement: LabelRequirement) -> str:
    named = list_names(sorted(requirement.values), _MOST_NAMES)
    bounds = [f">= {requirement.at_least}"] if requirement.at_least is not None else []
    bounds += [f"<= {requirement.at_most}"] if requirement.at_most is not None else []
    if bounds:
        return " and ".join(bounds)
    match requirement.operator:
        case "In":
            return named
        case "NotIn":
            return f"any but {named}"
        case "DoesNotExist":
            return "none"
        case _:
            return "any"


def _has(requirement: LabelRequirement) -> str:
    return "has none" if requirement.operator == "DoesNotExist" else f"has {_values(requirement)}"


def _counts(rejection: Unsatisfiable) -> str:
    return list_names((f"{domain} {number}" for domain, number in sorted(rejection.counts.items())), _MOST_NAMES)


def _limits(verdict: PoolVerdict, rejection: LimitReached) -> Iterator[str]:
    """Yield `64 of at most 64 cpu in use` for each limit that leaves no room for the smallest type."""
    smallest = min(verdict.known, key=lambda instance_type: instance_type.size, default=None)
    needed = smallest.capacity if smallest is not None else {}
    full = [name for name in sorted(rejection.limits) if rejection.remaining[name].nano < needed.get(name, ZERO).nano]
    for name in full or sorted(rejection.limits):
        limit, left = rejection.limits[name], rejection.remaining[name]
        used = (limit - left) if limit.nano else Amount(-left.nano, limit.format)
        text = f"{_resource_amount(name, used)} of {_resource_amount(name, limit)} {name} in use"
        wanted = needed.get(name, ZERO)
        yield text if left.nano <= 0 or not wanted.nano else f"{text}, {_resource_amount(name, wanted)} requested"


def _resource_amount(resource: str, quantity: Amount) -> str:
    """Return an amount as users write it."""
    unit = Unit.of(resource)
    if resource == NODES:
        return str(quantity.nano // 10**9)
    return amount(resource, quantity.nano // (10**6 if unit is Unit.MILLI else 10**9))


def _no_type(verdict: PoolVerdict, rejection: NoInstanceType) -> str:
    if rejection.too_few:
        return f"too few instance types are left: {', '.join(_too_few(verdict, rejection.too_few))}"
    requirement = rejection.requirements.requirement(ZONE)
    if verdict.zones and not any(map(requirement.has, verdict.zones)):
        zones = list_names(verdict.zones, _MOST_NAMES, conjunction="and")
        return f"its node class has subnets in {zones} only, and the pod requires {_values(requirement)}"
    if (allowed := rejection.without_gpus) is not None:
        return f"no instance type with {allowed.key} {_values(allowed)} has {NVIDIA_GPU}"
    if not verdict.known:
        return "none of its instance types is known here"
    if verdict.lacks_a_reservation:
        return "its node class has no capacity reservation, and the pod requires reserved capacity"
    nearest = _nearest_type(verdict, rejection)
    which = "no instance type" if verdict.certainty is LaunchCertainty.REJECTS else "no known instance type"
    if nearest is not None:
        shorts = ", ".join(_short(nearest, rejection.requests))
        return f"{which} is large enough: {nearest.name}, the largest match, is short by {shorts}"
    lacking = _missing_of_type(verdict, rejection)
    return f"{which} meets the requirements{f': {lacking}' if lacking else ''}"


def _too_few(verdict: PoolVerdict, too_few: Mapping[str, int]) -> Iterator[str]:
    for key, number in sorted(too_few.items()):
        yield f"{number} of at least {verdict.minimum(key)} for {key}"


def _missing_of_type(verdict: PoolVerdict, rejection: NoInstanceType) -> str:
    """Return what the nearest type lacks: `m6i.xlarge has no karpenter.k8s.aws/instance-gpu-name`."""
    conflicts = ((it, it.requirements.conflicts_with(rejection.requirements)) for it in verdict.known)
    nearest, lacks = min(conflicts, key=lambda pair: (len(pair[1]), pair[0].name))
    if not lacks:
        return "" if verdict.template is None else f"{nearest.name} is not available there"
    texts = (
        f"{lack.key} {_values(lack.existing)}, not {_values(lack.incoming)}"
        if lack.existing.operator == "In"
        else f"no {lack.key}"
        for lack in lacks
        if isinstance(lack, NothingInCommon)
    )
    return f"{nearest.name} has {' and '.join(texts)}"


def _nearest_type(verdict: PoolVerdict, rejection: NoInstanceType) -> InstanceType | None:
    """Return the nearest type that meets all requirements and is only too small; the largest of equally near ones."""
    matching = () if verdict.template is None else matching_types(verdict.template, rejection)
    shorts = ((len(list(_short(each, rejection.requests))), each) for each in matching)
    return min((pair for pair in shorts if pair[0]), key=itemgetter(0), default=(0, None))[1]


def _short(instance_type: InstanceType, requests: Amounts) -> Iterator[str]:
    for name, requested in sorted(requests.items()):
        left = instance_type.allocatable.get(name, ZERO)
        if requested.nano > left.nano:
            yield f"{_resource_amount(name, Amount(requested.nano - left.nano))} {name}"


def pool_facts(verdict: PoolVerdict) -> Iterator[Fact]:
    """Yield the numbers behind a NodePool's headline."""
    rejection = verdict.rejection
    if isinstance(rejection, NoInstanceType) and verdict.known and not rejection.too_few:
        nearest = _nearest_type(verdict, rejection)
        if nearest is not None:
            yield Fact.of("requests", *_listed_amounts(rejection.pod_requests))
            yield Fact.of(nearest.name, _offer(nearest))
            overhead = None if verdict.template is None else verdict.template.overhead(nearest.name)
            if overhead is not None and overhead.pods:
                names = list_names(map(_owner, overhead.pods), _MOST_NAMES)
                text = ", ".join(_listed_amounts(overhead.requests))
                where = "every new node" if overhead.types is None else f"a new {nearest.name}"
                yield Fact.of("DaemonSets", f"{text} requested on {where}: {names}")
    elif isinstance(rejection, LimitReached) and verdict.known:
        smallest = min(verdict.known, key=lambda instance_type: instance_type.size)
        yield Fact.of("smallest", f"{smallest.name}: {resources_text(smallest.capacity)}")


def _owner(pod: Pod) -> str:
    controller = pod.metadata.controller
    return controller.name if controller is not None else pod.metadata.name or "a template"


def _listed_amounts(amounts: Amounts) -> Iterator[str]:
    for name in (*_SHOWN_RESOURCES, *sorted(set(amounts) - set(_SHOWN_RESOURCES))):
        if name in amounts and amounts[name].nano and name != "pods":
            yield f"{_resource_amount(name, amounts[name])} {name}"


def _offer(instance_type: InstanceType) -> str:
    text = ", ".join(
        _listed_amounts(
            {name: instance_type.allocatable[name] for name in _SHOWN_RESOURCES if name in instance_type.allocatable}
        )
    )
    where = f", as on {instance_type.seen_on}" if instance_type.seen_on else ""
    return f"{text} allocatable{where}"


def resources_text(amounts: Amounts) -> str:
    return ", ".join(_listed_amounts({name: amounts[name] for name in _SHOWN_RESOURCES if name in amounts}))

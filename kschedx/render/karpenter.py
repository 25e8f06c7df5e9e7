"""Karpenter's decision about a pod that fits no node: NodePools, limits, and instance types, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, assert_never

from kschedx.grouping import group_pairs
from kschedx.inquiry.node_scaling import NodeRemedy
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType, unready_text
from kschedx.karpenter.cluster import (
    Karpenter,
    KarpenterGrowth,
    LaunchCertainty,
    PodProvisioning,
    PoolVerdict,
    matching_types,
)
from kschedx.karpenter.devices import NoDevices
from kschedx.karpenter.instance_types import InstanceType, NoInstanceType
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import (
    CheapestAreTooFew,
    Incompatible,
    LimitReached,
    NodeLimitReached,
    NotTolerated,
    PortTaken,
    is_same_karpenter_event,
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
    amounts_of,
    subtract,
)
from kschedx.karpenter.scheduler import SkippedPool
from kschedx.karpenter.topology import TopologyType, Unsatisfiable
from kschedx.kube.autoscalers import NodeClaim, NodeOverlay
from kschedx.kube.names import ZONE
from kschedx.kube.quantity import Unit
from kschedx.kube.types import Pod
from kschedx.patterns import lazy_pattern
from kschedx.releases.karpenter import MEASURED
from kschedx.render.terminal import StyledLine, columns
from kschedx.snapshot.events import RecordedEvent
from kschedx.wording import Fact, amount, count, list_names
from kschedx.words.growth import MOST_NAMES, OUTCOMES, DecisionWords, GrowthWords, PlaceWords

if TYPE_CHECKING:
    from kschedx.inquiry.pool_scaling import PoolScaling

_RESERVED = lazy_pattern(r"using label (?P<key>\S+) is not allowed")

_SHOWN_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "pods")
"""The resources of an instance type that are shown, in this order."""


def _sentence(karpenter: Karpenter, provisioning: PodProvisioning) -> str:
    """Return the pod's outcome."""
    outcome = provisioning.looked.outcome
    if outcome is PodEligibility.WAITING:
        claims = karpenter.cluster.not_launched
        text = f"waits for the cloud to launch NodeClaim {list_names(claims, MOST_NAMES)}"
        return f"{text}{_conditions(karpenter, claims)}"
    if outcome is PodEligibility.REFUSED:
        match = _RESERVED.search(reason := provisioning.looked.reason)
        why = f"it does not allow pods to select nodes by label {match['key']}" if match else reason
        return f"ignores the pod: {why}"
    if outcome is not PodEligibility.CONSIDERED:
        return OUTCOMES[outcome][0]
    if provisioning.pool:
        return _adds(karpenter, provisioning)
    if provisioning.existing:
        kind = "NodeClaim" if provisioning.is_claim else "node"
        text = f"adds no node: it expects the pod on {kind} {provisioning.existing}"
        return f"{text}{_conditions(karpenter, [provisioning.existing])}" if provisioning.is_claim else text
    unsure = [pool for pool in provisioning.pools if pool.certainty is LaunchCertainty.UNKNOWN]
    if unsure:
        names = list_names([pool.name for pool in unsure], MOST_NAMES)
        if not any(pool.known for pool in unsure):
            return f"may add a node of {names}, whose instance types are not known here"
        if all(isinstance(pool.rejection, LimitReached) for pool in unsure):
            return f"adds no node: no known instance type fits the limits of {names}"
        return f"adds no node with the known instance types; other types of {names} may help"
    if not provisioning.pools:
        return "adds no node: no NodePool has an instance type that meets its own requirements"
    is_single = len(provisioning.pools) == 1
    helps = (
        "its only usable NodePool does not help" if is_single else f"none of {len(provisioning.pools)} NodePools helps"
    )
    return f"adds no node: {helps}"


def _conditions(karpenter: Karpenter, names: Sequence[str]) -> str:
    """Return the first condition with a message that is not True of these NodeClaims: `; Launched=False (LaunchFailed):
    no capacity`."""
    for claim in karpenter.snapshot.of(NodeClaim):
        if claim.name in names:
            for condition in claim.status.conditions:
                if condition.status != "True" and condition.message:
                    reason = f" ({condition.reason})" if condition.reason else ""
                    return f"; {condition.type}={condition.status}{reason}: {condition.message}"
    return ""


def _adds(karpenter: Karpenter, provisioning: PodProvisioning) -> str:
    names = [instance_type.name for instance_type in provisioning.types]
    which = "such as" if not provisioning.types_are_known else "one of" if len(names) > 1 else "of type"
    types = list_names(names, MOST_NAMES, conjunction="or")
    text = f"adds a node to NodePool {provisioning.pool}, {which} {types}, if the cloud has capacity"
    weights = {pool.name: pool.spec.weight or 0 for pool in karpenter.pools}
    if later := [name for name, weight in weights.items() if weight < weights.get(provisioning.pool, 0)]:
        text += f"; its weight {weights[provisioning.pool]} puts it before {list_names(later, MOST_NAMES)}"
    if provisioning.companions:
        fit = "fits" if provisioning.companions == 1 else "fit"
        text += f"; {count(provisioning.companions, 'other pending pod')} {fit} there too"
    if provisioning.unsure_before:
        names_before = list_names(provisioning.unsure_before, MOST_NAMES)
        text += f"; or to {names_before}, tried first, with instance types not known here"
    if provisioning.by_chance:
        text += "; its zone is random"
    return f"{text}; without one of the pod's preferences" if provisioning.has_relaxed else text


def _pool_headline(verdict: PoolVerdict) -> str:
    """Return why a NodePool does not help, in lower case and with the number."""
    rejection = verdict.rejection
    match rejection:
        case NotTolerated(taints=taints):
            return f"untolerated taint {' and '.join(map(str, taints))}"
        case PortTaken(port=port, by=by):
            return f"host port {port.port}/{port.protocol} is in use by {by}, which runs on every new node"
        case Incompatible():
            return "; ".join(
                _conflict(conflict, is_about_volumes=rejection.is_about_volumes) for conflict in rejection.conflicts
            )
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
            phrase = text.removeprefix("allocating dynamic resources, ")
            return phrase if is_known else "the devices of its instance types are not known (--instance-types can say)"
        case _:
            assert_never(rejection)


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
    named = list_names(sorted(requirement.values), MOST_NAMES)
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
    return list_names((f"{domain} {number}" for domain, number in sorted(rejection.counts.items())), MOST_NAMES)


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
        zones = list_names(verdict.zones, MOST_NAMES, conjunction="and")
        return f"its node class has subnets in {zones} only, and the pod requires {_values(requirement)}"
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
    conflicts = (
        (instance_type, instance_type.requirements.conflicts_with(rejection.requirements))
        for instance_type in verdict.known
    )
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


def _pool_facts(verdict: PoolVerdict) -> Iterator[Fact]:
    """Yield the numbers behind a NodePool's headline."""
    rejection = verdict.rejection
    if isinstance(rejection, NoInstanceType) and verdict.known and not rejection.too_few:
        nearest = _nearest_type(verdict, rejection)
        if nearest is not None:
            yield Fact(label="requests", items=tuple(_listed_amounts(rejection.pod_requests)))
            yield Fact(label=nearest.name, items=(_offer(nearest),))
            overhead = None if verdict.template is None else verdict.template.overhead(nearest.name)
            if overhead is not None and overhead.pods:
                names = list_names(map(_owner, overhead.pods), MOST_NAMES)
                text = ", ".join(_listed_amounts(overhead.requests))
                where = "every new node" if overhead.types is None else f"a new {nearest.name}"
                yield Fact(label="DaemonSets", items=(f"{text} requested on {where}: {names}",))
    elif isinstance(rejection, LimitReached) and verdict.known:
        smallest = min(verdict.known, key=lambda instance_type: instance_type.size)
        yield Fact(label="smallest", items=(f"{smallest.name}: {_resources_text(smallest.capacity)}",))


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


def _resources_text(amounts: Amounts) -> str:
    return ", ".join(_listed_amounts({name: amounts[name] for name in _SHOWN_RESOURCES if name in amounts}))


def _skipped_pool_text(skipped_pool: SkippedPool, karpenter: Karpenter) -> str:
    """Return why a NodePool is used for no pod."""
    match skipped_pool.why:
        case "static":
            return f"is static: {count(skipped_pool.pool.spec.replicas or 0, 'node')}"
        case "not-ready":
            return ": ".join(filter(None, ("is not ready", unready_text(karpenter.snapshot, skipped_pool.pool))))
        case "deleting":
            return "is being deleted"
        case _:
            return "no instance type meets its own requirements"


def _basis(karpenter: Karpenter) -> str:
    """Return what the answer is based on, and what is not evaluated."""
    if karpenter.options.catalogue is not None:
        types = f"{count(len(karpenter.options.catalogue.instance_types), 'instance type')} from --instance-types"
    else:
        seen = {instance_type.name for known in karpenter.known.values() for instance_type in known.types}
        types = f"{count(len(seen), 'instance type')} seen in the cluster (more: --instance-types FILE)"
    overlays = karpenter.snapshot.of(NodeOverlay)
    for is_applied, phrase in ((True, "applied"), (False, "ignored: not valid for Karpenter")):
        names = sorted(overlay.name for overlay in overlays if overlay.is_ready is is_applied)
        if names:
            types += f" · NodeOverlay {list_names(names, MOST_NAMES)} {phrase}"
    return f"{types} · availability and prices not evaluated"


def growth_words(growth: KarpenterGrowth) -> GrowthWords:
    pools, refused = growth.rejected
    reasons = group_pairs((_pool_headline(pool), pool.name) for pool in sorted(pools, key=lambda pool: pool.distance))
    return GrowthWords(
        added=tuple(
            f"{count(step.nodes, 'node')} of NodePool {step.pool}, {step.instance_type}"
            + (f" or {count(step.choices - 1, 'other type')}" if step.choices > 1 else "")
            for step in growth.grown
        ),
        how=", if the cloud has capacity",
        no_help=f"no NodePool helps {{}}{'' if growth.types_are_known else ' with the known instance types'}",
        expected=(f"it expects {count(growth.expected, 'pod')} on existing nodes",) if growth.expected else (),
        reasons=reasons,
        refused=refused,
    )


def decision_words(of_pools: PoolScaling, recorded: RecordedEvent | None) -> DecisionWords:
    karpenter, provisioning = of_pools.autoscaler, of_pools.decision
    message = "" if recorded is None else recorded.message
    version = karpenter.settings.rules_version
    measured = "" if version in MEASURED else ", as published and not measured"
    return DecisionWords(
        sentence=_sentence(karpenter, provisioning),
        places=_places(of_pools),
        noun="NodePool",
        event=provisioning.event,
        recorded=message,
        is_same=is_same_karpenter_event(message, provisioning.event),
        settings="types and settings",
        reports=tuple(of_pools.reports.values()),
        basis=(_basis(karpenter), f"rules of Karpenter {version}{measured}"),
    )


def trial_result(remedy: NodeRemedy) -> str:
    """Return the result of trying a remedy."""
    return f"adds a node of {remedy.place}, {list_names(remedy.types, MOST_NAMES) or 'if a type fits'}"


def _places(of_pools: PoolScaling) -> Iterator[PlaceWords]:
    """Yield NodePools. Those that a change makes help are the nearest; the skipped ones come last."""
    karpenter, provisioning = of_pools.autoscaler, of_pools.decision
    if (
        provisioning.looked.outcome not in (PodEligibility.CONSIDERED, PodEligibility.NO_POOLS)
        or provisioning.pool
        or provisioning.existing
    ):
        return
    helped = {remedy.place for remedy in of_pools.remedies}
    for pool in provisioning.pools:
        yield PlaceWords(
            name=pool.name,
            text=f"{'?' if pool.certainty is LaunchCertainty.UNKNOWN else '✗'} {_pool_headline(pool)}",
            order=(pool.name not in helped, pool.distance),
            facts=partial(_pool_facts, pool),
            is_brief=not isinstance(pool.rejection, NoInstanceType),
        )
    for skipped in karpenter.skipped:
        yield PlaceWords(name=skipped.pool.name, text=f"✗ {_skipped_pool_text(skipped, karpenter)}", order=(2,))


# The screen of a catalog of instance types.


def catalogue_lines(catalogue: InstanceTypes) -> list[StyledLine]:
    head = ("name", "capacity", "allocatable", "offered in")
    return columns([head, *map(_row, catalogue.instance_types)], header=True)


def _row(written_type: WrittenType) -> tuple[str, str, str, str]:
    capacity = amounts_of(written_type.capacity)
    left = subtract(capacity, amounts_of(written_type.overhead))
    zones = sorted({offering.zone for offering in written_type.offerings if offering.available})
    where = count(len(zones), "zone") if written_type.offerings else "every zone of its NodePool"
    return written_type.name, _resources_text(capacity), _resources_text(left), where

"""Karpenter's decision about a pod that fits no node: NodePools, limits, and instance types, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kschedx.grouping import group_pairs
from kschedx.inquiry.node_scaling import NodeRemedy
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType, unmet_requirements, unready_text
from kschedx.karpenter.cluster import Karpenter, KarpenterGrowth, LaunchCertainty, PodProvisioning
from kschedx.karpenter.headlines import pool_facts, pool_headline, resources_text, untried_text
from kschedx.karpenter.instance_types import NoInstanceType
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import LimitReached, is_same_karpenter_event
from kschedx.karpenter.requirements import amounts_of, subtract
from kschedx.karpenter.scheduler import SkippedPool
from kschedx.kube.autoscalers import NodeClaim, NodeOverlay
from kschedx.kube.conditions import condition_text
from kschedx.patterns import lazy_pattern
from kschedx.releases.karpenter import MEASURED
from kschedx.render.terminal import StyledLine, columns
from kschedx.snapshot.events import RecordedEvent
from kschedx.wording import count, list_names
from kschedx.words.growth import MOST_NAMES, OUTCOMES, DecisionWords, GrowthWords, PlaceWords

if TYPE_CHECKING:
    from kschedx.inquiry.pool_scaling import PoolScaling

_RESERVED = lazy_pattern(r"using label (?P<key>\S+) is not allowed")


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
        if unknown := [pool.name for pool in unsure if not pool.known]:
            return f"may add a node of {list_names(unknown, MOST_NAMES)}, whose instance types are not known here"
        names = list_names([pool.name for pool in unsure], MOST_NAMES)
        if all(isinstance(pool.rejection, LimitReached) for pool in unsure):
            return f"adds no node: no known instance type fits the limits of {names}"
        return f"adds no node with the known instance types; other types of {names} may help"
    if not provisioning.pools:
        return f"adds no node: {untried_text(provisioning.untried, karpenter)}"
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
                    return f"; {condition_text(condition)}"
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
    reasons = group_pairs((pool_headline(pool), pool.name) for pool in sorted(pools, key=lambda pool: pool.distance))
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
    denied = "reports that it adds no node; by the cluster's objects it " if of_pools.denial else ""
    return DecisionWords(
        sentence=f"{denied}{_sentence(karpenter, provisioning)}",
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
    return f"adds a node of {remedy.place}, {list_names(remedy.types, MOST_NAMES) or 'if a type fits'}"


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
            unmet = unmet_requirements(karpenter.snapshot, skipped_pool.pool)
            return "; ".join(("no instance type meets its own requirements", *unmet.values()))


def _places(of_pools: PoolScaling) -> Iterator[PlaceWords]:
    """Yield NodePools. Those at their limit, or that a change makes help, are nearest; the skipped ones come last."""
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
            text=f"{'?' if pool.certainty is LaunchCertainty.UNKNOWN else '✗'} {pool_headline(pool)}",
            order=(bool(pool.distance) and pool.name not in helped, pool.distance),
            facts=partial(pool_facts, pool),
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
    return written_type.name, resources_text(capacity), resources_text(left), where

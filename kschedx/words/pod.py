"""Findings about the pod as a whole, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx import findings
from kschedx.framework.cycle import Stake, Unevaluated, UnevaluatedKind
from kschedx.kube.kinds import KINDS
from kschedx.wording import Fact, Words, amount, amounts, count, in_words, list_names, register_templates

_SHOWN_NODES = 5

register_templates(
    {
        findings.ExtenderDropped: ("the extender {f.url} omits the node without a reason",),
        findings.PluginMessage: ("{f.text}",),
    }
)


@in_words.register
def _scheduling_gated(finding: findings.SchedulingGated) -> Words:
    noun = "gate" if len(finding.gates) == 1 else "gates"
    return Words(headline=f"scheduling {noun} {', '.join(finding.gates)}")


@in_words.register
def _nodes_excluded(finding: findings.NodesExcluded) -> Words:
    if not finding.existing:
        return Words(
            headline=f"the pod names only {list_names(finding.names, _SHOWN_NODES)}, and the cluster has no such node"
        )
    return Words(headline=f"the pod names only {list_names(finding.existing, _SHOWN_NODES)}")


@in_words.register
def _pod_group_incomplete(finding: findings.PodGroupIncomplete) -> Words:
    if not finding.exists:
        return Words(headline=f"pod group {finding.group} does not exist")
    return Words(headline=f"pod group {finding.group} has {finding.pods:,} of {count(finding.min_count, 'pod')}")


# Pod groups and quotas of scheduler-plugins in words.


@in_words.register
def _gang_too_small(finding: findings.GangTooSmall) -> Words:
    held = f", {finding.gated} of them gated" if finding.gated else ""
    return Words(headline=f"pod group {finding.group} has {finding.pods} of {finding.min_member} pods{held}")


@in_words.register
def _gang_resources_short(finding: findings.GangResourcesShort) -> Words:
    gaps = ", ".join(f"{amount(gap.resource, gap.short_by)} {gap.resource}" for gap in finding.gaps)
    return Words(headline=f"minResources of pod group {finding.group} exceeds what all nodes have free by {gaps}")


@in_words.register
def _elastic_quota_exceeded(finding: findings.ElasticQuotaExceeded) -> Words:
    requested, used, limit, total = amounts(
        finding.resource, (finding.requested, finding.used, finding.limit, finding.requested + finding.used)
    )
    whose = "the sum of all min" if finding.of_all else f"max of ElasticQuota {finding.namespace}"
    return Words(
        headline=f"{finding.resource} {total} > {limit}, {whose}",
        facts=(Fact.of("rule", f"{requested} requested + {used} used = {total} > {limit}", whole=True),),
    )


@in_words.register
def _numa_misfit(finding: findings.NumaMisfit) -> Words:
    who = f"container {finding.container}" if finding.container else "the pod"
    where = f"none of {count(finding.numa_nodes, 'NUMA node')}"
    return Words(headline=f"{where} has enough {finding.resource} for {who}")


# HTTP extenders in words.


@in_words.register
def _extender_refusal(finding: findings.ExtenderRefused) -> Words:
    words = f'"{finding.message}"' if finding.message else "without a reason"
    says = () if finding.is_resolvable else (Fact.of("note", "the extender reports that eviction does not help"),)
    return Words(headline=f"refused by the extender {finding.url}: {words}", facts=says)


# Findings that exist only as text: from a plugin of another package, or from an event.


@in_words.register
def _plugin_finding(finding: findings.PluginFinding) -> Words:
    facts = tuple(Fact.of(label, line) for label, line in finding.lines)
    return Words(headline=finding.headline, facts=facts)


# Participants of a decision that were not evaluated, in words.

_SHOWN_PLUGINS, _SHOWN_PLACES = 3, 4


def could_reject(unevaluated: Iterable[Unevaluated]) -> str:
    """Return why a pod that fits is undecided: `the plugin Foo, not available to kschedx, could reject it`."""
    return _unevaluated_text(unevaluated, Stake.FIT, "could reject it")


def could_prefer(unevaluated: Iterable[Unevaluated]) -> str:
    """Return why only the node is undecided, for a pod that fits."""
    return _unevaluated_text(unevaluated, Stake.NODE, "could prefer another of the nodes that fit")


def _unevaluated_text(unevaluated: Iterable[Unevaluated], stake: Stake, does: str) -> str:
    deciding = [item for item in unevaluated if item.stake is stake and not item.is_waived]
    phrases = []
    for kind in dict.fromkeys(unevaluated.kind for unevaluated in deciding):
        of_kind = [unevaluated for unevaluated in deciding if unevaluated.kind is kind]
        names = [unevaluated.name for unevaluated in of_kind]
        match kind:
            case UnevaluatedKind.PLUGIN:
                noun = "the plugin" if len(names) == 1 else "the plugins"
                phrases.append(f"{noun} {list_names(names, _SHOWN_PLUGINS)}, not available to kschedx, {does}")
            case UnevaluatedKind.EXTENDER:
                noun = "the extender" if len(names) == 1 else "the extenders"
                phrases.append(f"{noun} at {list_names(names, _SHOWN_PLUGINS)}, not called, {does}")
            case UnevaluatedKind.SCHEDULER:
                phrases.append(f"the scheduler {names[0]} decides, not kube-scheduler")
            case UnevaluatedKind.OBJECTS:
                phrases += map(missing_from_dump, of_kind)
            case UnevaluatedKind.VOLUME:
                phrases += map(_place_text, of_kind)
            case _:
                assert_never(kind)
    return "; ".join(phrases)


def _place_text(unevaluated: Unevaluated) -> str:
    """Return what is known about the place of a volume that a driver provisions before the pod is scheduled."""
    (driver,), volume = unevaluated.where, f"the volume of claim {unevaluated.name}"
    places = list_names(unevaluated.objects, _SHOWN_PLACES, conjunction="or")
    if not places:
        absent = f", and no {unevaluated.lacking} lists it" if unevaluated.lacking else ""
        return f"where {driver} provisions {volume} is not known{absent}"
    if unevaluated.stake is Stake.FIT:
        return f"{driver} may provision {volume} in {places}, where no node fits"
    return f"{driver} provisions {volume} first, in {places}, and so decides the node"


def missing_from_dump(unevaluated: Unevaluated) -> str:
    """Return `PersistentVolumeClaim data-0 is not in this dump: it has no persistentvolumeclaims`."""
    kind = KINDS[unevaluated.name]
    if kind.name == "Pod":
        names = list_names(unevaluated.objects, _SHOWN_PLUGINS)
        return f"pods of {f'namespace {names}' if names else 'other namespaces'} are not in this dump"
    holds = f"it lacks {unevaluated.lacking}" if unevaluated.lacking else f"it has no {kind.plural}"
    named = f"{kind.name} {list_names(unevaluated.objects, _SHOWN_PLUGINS)}" if unevaluated.objects else kind.leaves
    verb = "are" if len(unevaluated.objects) > 1 else "is"
    return f"{named} {verb} not in this dump" + ("" if unevaluated.lacking is None else f": {holds}")

"""Why a pod fits no node, with one phrase for each cause: `4 nodes are not in zone eu-1b`."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from kschedx import findings
from kschedx.explain.diagnosis import Diagnosis, FaultyNodes, OfferedNowhere
from kschedx.explain.node_groups import NodeGroup, only_repeats_cordon, selects_nodes
from kschedx.explain.root_causes import root_causes
from kschedx.findings.constraints import TermMatch
from kschedx.framework.status import Code
from kschedx.grouping import group_pairs
from kschedx.kube.names import HOSTNAME
from kschedx.wording import balance, count, list_names
from kschedx.words import describe
from kschedx.words.constraints import (
    faulty_nodes_text,
    is_of_leaving_node,
    maintenance_text,
    node_condition,
    requirement_text,
)
from kschedx.words.devices import shortage_text
from kschedx.words.resources import offered_nowhere
from kschedx.words.volumes import nearest_text, placed_volume

_MOST_CAUSES = 3


def because(diagnosis: Diagnosis, most: int | None = _MOST_CAUSES) -> tuple[str, ...]:
    """Return the causes, most common first. What rejects the pod as a whole comes before what rejects nodes."""
    return _first([*dict.fromkeys(_stops(diagnosis)), *_group_phrases(diagnosis)], most)


def causes_of(groups: Sequence[NodeGroup]) -> tuple[str, ...]:
    """Return the causes that reject a part of the nodes, most common first."""
    return _first([*map(_phrase, _causes(groups))], _MOST_CAUSES)


def _first(phrases: Sequence[str], most: int | None) -> tuple[str, ...]:
    if most is None or len(phrases) <= most:
        return tuple(phrases)
    return (*phrases[:most], count(len(phrases) - most, "other cause"))


def main_findings(diagnosis: Diagnosis) -> Iterator[findings.Finding]:
    """Yield a finding for each cause: of what rejects the pod as a whole, otherwise of the nodes, most common first."""
    if diagnosis.stops:
        yield from (finding for stop in diagnosis.stops for finding in stop.status.findings)
        return
    yield from (cause.finding for cause in _causes(diagnosis.groups))


NO_NODES = "the cluster has no nodes"


def shared_headlines(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return headlines that are true for each of several pods with the same cause, or what lies behind a rejection
    without findings."""
    if not diagnosis.total:
        return (NO_NODES,)
    if diagnosis.stops:
        shared = dict.fromkeys(map(_shared_headline, main_findings(diagnosis)))
    else:
        shared = dict.fromkeys(map(_group_headline, _causes(diagnosis.groups)))
    return tuple(shared) or tuple(cause.text for cause in root_causes(diagnosis)[:1])


def _group_headline(cause: _Cause) -> str:
    """Return the headline of a cause; what is wrong with a node names it."""
    finding = cause.finding
    if isinstance(finding, findings.NodeUnschedulable) and cause.number > 1:
        return _phrase(cause)
    if isinstance(finding, findings.UntoleratedTaint) and node_condition(finding, cause.number):
        name = cause.groups[0].exemplar.name
        return faulty_nodes_text(FaultyNodes(fault=finding, nodes=cause.number, first=name))
    return _shared_headline(finding)


def _shared_headline(finding: findings.Finding) -> str:
    words = describe(finding)
    return words.general or words.headline


def _stops(diagnosis: Diagnosis) -> Iterator[str]:
    for stop in diagnosis.stops:
        if stop.point == "PreEnqueue" and diagnosis.cycle.pod.spec.scheduling_gates:
            continue  # the headline names the gates
        for finding in stop.status.findings:
            yield describe(finding).headline
        if not stop.status.findings and stop.status.message:
            yield stop.status.message


def _group_phrases(diagnosis: Diagnosis) -> Iterator[str]:
    whole = diagnosis.cause
    if isinstance(whole, OfferedNowhere):
        yield offered_nowhere(whole)
    for cause in _causes(diagnosis.groups):
        if _offered_nowhere(cause.finding):
            continue
        if isinstance(whole, FaultyNodes) and any(whole.fault in group.exemplar.findings for group in cause.groups):
            yield faulty_nodes_text(whole)
        else:
            yield _phrase(cause)


class _Cause(Struct, frozen=True):
    """Groups of nodes with the same cause, and its rejection of each of them."""

    groups: tuple[NodeGroup, ...]  # nearest first
    rejections: tuple[findings.Finding, ...]
    common: Collection[Hashable] = ()  # the keys of the causes that reject all nodes

    @property
    def finding(self) -> findings.Finding:
        return self.rejections[0]

    @property
    def number(self) -> int:
        return sum(group.count for group in self.groups)


def _causes(node_groups: Sequence[NodeGroup]) -> list[_Cause]:
    """Return the causes, those that no eviction resolves on any node first, then the most common ones. Nodes of the
    control plane and cordoned nodes come last, because they explain least: pods are not meant for them. The same holds
    for nodes that the pod does not select, if it selects others."""
    unresolvable = [_unresolvable(group) for group in node_groups]
    common = [key for key in unresolvable[0] if all(key in it for it in unresolvable)] if unresolvable else []
    pairs = [(_key(finding), (group, finding)) for group in node_groups if (finding := _main(group)) is not None]
    others = [
        _Cause(tuple(group for group, _ in alike), tuple(finding for _, finding in alike), common)
        for key, alike in group_pairs(pairs).items()
        if key not in common
    ]
    return [
        *(_Cause(tuple(node_groups), tuple(it[key] for it in unresolvable)) for key in common),
        *sorted(others, key=partial(_rank, selects=selects_nodes(node_groups))),
    ]


def _unresolvable(group: NodeGroup) -> dict[Hashable, findings.Finding]:
    """Return the findings that no eviction resolves, by cause; not the state of a node that passes."""
    return {
        _key(finding): finding
        for blocker in group.exemplar.blockers
        if blocker.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        for finding in blocker.findings
        if (finding.never_fits if isinstance(finding, findings.InsufficientResource) else not _passes(finding))
    }


def _rank(cause: _Cause, *, selects: bool) -> tuple[bool, bool, bool, bool, int]:
    finding, groups = cause.finding, cause.groups
    is_of_role = isinstance(finding, findings.UntoleratedTaint) and finding.is_of_role
    is_cordoned = any(isinstance(each, findings.NodeUnschedulable) for each in groups[0].exemplar.findings)
    is_going = is_cordoned or is_of_leaving_node(finding)
    is_left_out = selects and all(group.is_left_out for group in groups)
    return is_left_out, is_going, is_of_role, not _offered_nowhere(finding), -cause.number


def _offered_nowhere(finding: findings.Finding | None) -> bool:
    return isinstance(finding, findings.InsufficientResource) and finding.offered_nowhere


def _main(group: NodeGroup) -> findings.Finding | None:
    """Return the finding of the plugin at which kube-scheduler stops, or one that no eviction resolves if that one can
    be resolved. A resource that the nodes do not have at all comes before those that are used up."""
    blockers = group.exemplar.findings
    first = next((finding for finding in blockers if not only_repeats_cordon(finding)), next(iter(blockers), None))
    if isinstance(first, findings.NodeUnschedulable):  # those who remove a node often cordon it as well
        faults = () if first.maintenance else filter(_is_of_condition, blockers)
        return next(filter(is_of_leaving_node, blockers), next(iter(faults), first))
    if first is None or _is_of_condition(first):
        return first
    if isinstance(first, findings.InsufficientResource):
        short = (finding for finding in blockers if isinstance(finding, findings.InsufficientResource))
        first = next((finding for finding in short if not finding.allocatable), first)
    unresolvable = _unresolvable(group)
    return first if _key(first) in unresolvable else next(iter(unresolvable.values()), first)


def _passes(finding: findings.Finding) -> bool:
    """Whether it is about a node that is unhealthy, cordoned, or being removed."""
    is_of_cordon = isinstance(finding, findings.NodeUnschedulable) or only_repeats_cordon(finding)
    return is_of_cordon or _is_of_condition(finding) or is_of_leaving_node(finding)


def _is_of_condition(finding: findings.Finding) -> bool:
    """Whether the node is unhealthy, so that it is no use to uncordon it alone."""
    return isinstance(finding, findings.UntoleratedTaint) and bool(node_condition(finding, 1))


def _key(finding: findings.Finding) -> tuple[str, object]:
    match finding:
        case findings.InsufficientResource(resource=resource):
            return finding.reason, resource
        case findings.NodeAffinityMismatch() if (failed := _unmet_requirement(finding)) is not None:
            return finding.reason, failed
        case findings.NodeAffinityMismatch():
            return finding.reason, None
        case findings.UntoleratedTaint():
            value = finding.is_left_over if node_condition(finding, 1) else finding.value
            return finding.reason, (finding.key, value, finding.effect)
        case findings.TopologySpreadSkew(constraint=constraint):
            return finding.reason, constraint
        case findings.PodAntiAffinityConflict(term=term):
            return finding.reason, term
        case findings.PodAffinityUnsatisfied():
            return finding.reason, (str(finding.selector), finding.topology_key, finding.domain is None)
        case _:
            return finding.reason, finding.same_as


def _allowed_domains(terms: Sequence[TermMatch]) -> str:
    """Return the zones, or other topology domains, to which a storage class is restricted."""
    unmet = [requirement for term in terms for requirement in term.requirements if not requirement.matched]
    values = dict.fromkeys(value for finding in unmet if finding.key == unmet[0].key for value in finding.values)
    return f" (only in {unmet[0].key.rpartition('/')[2]} {list_names([*values], 3)})" if values else ""


def _phrase(cause: _Cause) -> str:
    number, finding = cause.number, cause.finding
    nodes = count(number, "node")
    if isinstance(finding, findings.UntoleratedTaint) and (condition := node_condition(finding, number)):
        return condition
    if (predicate := _predicate(cause)) is not None:
        singular, plural, rest = predicate
        return f"{nodes} {singular if number == 1 else plural} {rest}"
    match finding:
        case findings.HostPortConflict():
            return f"host port {finding.port}/{finding.protocol} is in use on {nodes}"
        case findings.TopologySpreadSkew(min_domains=int()):
            exist = f"{count(finding.domain_count, 'domain')} exist{'s' if finding.domain_count == 1 else ''}"
            return f"minDomains {finding.min_domains} over {finding.topology_key} excludes {nodes}: {exist}"
        case findings.TopologySpreadSkew():
            return f"maxSkew {finding.max_skew} over {finding.topology_key} excludes {nodes}"
        case findings.PodAffinityUnsatisfied():
            where = "on" if finding.topology_key == HOSTNAME else f"in the {finding.topology_key} of"
            return f"no pod {finding.selector or ''} runs {where} {nodes} (podAffinity)".replace("  ", " ")
        case findings.PodAntiAffinityConflict():
            over = "" if finding.topology_key == HOSTNAME else f" over {finding.topology_key}"
            return f"the pod's anti-affinity{over} excludes {nodes}"
        case findings.ExistingAntiAffinityConflict():
            return f"the anti-affinity of {_repelling_pods(cause)} excludes {nodes}"
        case findings.VolumeNodeAffinityMismatch():
            return f"{placed_volume(finding)} is not accessible from {nodes}"
        case findings.NoMatchingVolume():
            return f"no volume matches claim {finding.claim.claim} on {nodes}{_nearest_volume(cause)}"
        case findings.ProvisioningTopologyMismatch():
            return (
                f"class {finding.claim.storage_class} provisions no volume for {nodes}{_allowed_domains(finding.terms)}"
            )
        case findings.ClaimInUse():
            return f"claim {finding.claim} (ReadWriteOncePod) is in use by {finding.holder} on {finding.holder_node}"
        case findings.InsufficientDevices(shortages=(first, *_)):
            return shortage_text(first, nodes, "has" if number == 1 else "have")
        case findings.ExtenderRefused():
            why = f': "{finding.message}"' if finding.message else ", without a reason"
            return f"the extender {finding.url} rejects {nodes}{why}"
        case _:
            words = describe(finding)
            return f"{nodes}: {words.headline if number == 1 else words.shared or words.headline}"


def _predicate(cause: _Cause) -> tuple[str, str, str] | None:
    """Return what is said of the nodes, as the verb for one, the verb for several, and the rest; None if the phrase has
    another subject."""
    groups, finding = cause.groups, cause.finding
    match finding:
        case findings.InsufficientResource():
            return "lacks", "lack", _least_shortfall(groups, finding.resource)
        case findings.TooManyPods():
            return "runs its", "run their", "maximum number of pods"
        case findings.NodeUnschedulable():
            return "is", "are", f"cordoned{maintenance_text(finding.maintenance)}"
        case findings.NodeNameMismatch():
            return "does", "do", f"not match spec.nodeName {finding.wanted}"
        case findings.UntoleratedTaint():
            value = f"={finding.value}" if finding.value else ""
            taint = f"the taint {finding.key}{value}:{finding.effect}"
            return "has", "have", f"{taint}{_also_lacking(cause)}"
        case findings.NodeAffinityMismatch():
            return "does", "do", f"not match {_affinity(finding)}"
        case findings.TopologyLabelMissing():
            return "has", "have", f"no label {finding.topology_key}"
        case findings.PodAffinityUnsatisfied(domain=None):
            return "has", "have", f"no label {finding.topology_key} (podAffinity)"
        case findings.VolumeLimitExceeded(limit=limit, wanted_count=wanted):
            more = "more volumes" if wanted <= limit else f"more than {limit:,} volumes, and the pod has {wanted:,}"
            return "cannot", "cannot", f"attach {more} of {finding.driver}"
        case _:
            return None


_INVALID = re.compile(r'Invalid value: ("[^"]+")')


def _affinity(finding: findings.NodeAffinityMismatch) -> str:
    """Return what does not match, and its source if it is not the pod."""
    by = " (addedAffinity of the scheduler's profile)" if finding.source == "addedAffinity" else ""
    requested = _unmet_requirement(finding) or "the node affinity"
    if finding.error:
        value = _INVALID.search(finding.error)
        requested = "the node affinity, " + (f"whose value {value[1]} is" if value else "which is") + " not valid"
    return f"{requested}{by}"


def _repelling_pods(cause: _Cause) -> str:
    """Return the running pods whose anti-affinity matches the pod."""
    conflicts = [each for each in cause.rejections if isinstance(each, findings.ExistingAntiAffinityConflict)]
    pods = dict.fromkeys(pod for conflict in conflicts for pod in conflict.pods)
    is_all = all(conflict.pod_count == len(conflict.pods) for conflict in conflicts)
    is_all &= all(group.count == 1 for group in cause.groups)
    return list_names([*pods], 2) if is_all else f"{next(iter(pods))} and others"


def _nearest_volume(cause: _Cause) -> str:
    """Return what the one volume of the class lacks on all nodes."""
    nearest = {nearest_text(each) for each in cause.rejections if isinstance(each, findings.NoMatchingVolume)}
    return "".join(f": {phrase}" for phrase in nearest if phrase) if len(nearest) == 1 else ""


def _also_lacking(cause: _Cause) -> str:
    """Return which resource tainted nodes also lack, so that a toleration alone would not help. Empty for a role's
    taint, which pods should not tolerate."""
    taint, groups = cause.finding, cause.groups
    if isinstance(taint, findings.UntoleratedTaint) and taint.is_of_role:
        return ""
    lacking = [
        next((it for it in group.exemplar.findings if isinstance(it, findings.InsufficientResource)), None)
        for group in groups
    ]
    first = lacking[0]
    if (
        first is None
        or _key(first) in cause.common
        or any(finding is None or finding.resource != first.resource for finding in lacking)
    ):
        return ""
    return f" and {'lacks' if cause.number == 1 else 'lack'} {_least_shortfall(groups, first.resource)}"


def _least_shortfall(groups: Sequence[NodeGroup], resource: str) -> str:
    """Return `600m CPU`, with `each` if all nodes lack as much, else with `or more`."""
    short = [
        finding
        for group in groups
        for finding in group.exemplar.findings
        if isinstance(finding, findings.InsufficientResource) and finding.resource == resource
    ]
    least = min(short, key=lambda finding: finding.short_by)
    is_same = all(group.is_uniform for group in groups) and len({finding.short_by for finding in short}) == 1
    number = sum(group.count for group in groups)
    sums = balance(least.resource, requested=least.requested, allocatable=least.allocatable, used=least.used)
    return f"{sums.short_by} {'CPU' if least.resource == 'cpu' else least.resource}" + (
        "" if number == 1 else " each" if is_same else " or more"
    )


def _unmet_requirement(finding: findings.NodeAffinityMismatch) -> str | None:
    """Return the first unmet requirement of the only term: `zone=eu-1b`; None if several terms are alternatives."""
    if len(finding.terms) != 1:
        return None
    failed = [requirement for requirement in finding.terms[0].requirements if not requirement.matched]
    return requirement_text(failed[0]) if failed else None

"""Which node wins, by how much, which plugin decides it, and which rules of the pod or the node do not decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.hardware import VENDOR_LABELS
from kschedx.explain.node_groups import account
from kschedx.explain.notes import RunsAlready
from kschedx.findings import NodeAffinityMismatch, TopologySpreadSkew
from kschedx.framework.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.cycle import Cycle, Scores
from kschedx.framework.preemption import ranks
from kschedx.framework.status import Candidate, Code
from kschedx.kube.autoscalers import MIRROR
from kschedx.kube.decoding import map_at
from kschedx.kube.names import DEFAULT_SCHEDULER, HOSTNAME, OF_CONTROL_PLANE, ZONE_LABELS, first_label
from kschedx.kube.selectors import (
    CompiledTerm,
    compile_node_selector,
    compile_preferred_terms,
    compile_selector,
    required_node_affinity,
)
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, PREFER_NO_SCHEDULE, stay_seconds, tolerates
from kschedx.kube.types import Affinity, Node, NodeAffinity, Pod, PodAffinityTerm
from kschedx.kube.typos import nearest_name
from kschedx.plugins.pod_topology_spread import default_selector
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.snapshot.columns import ClusterRow, TableRow, TableRows, each_row, rows_where
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names


class Contribution(Struct, frozen=True, kw_only=True):
    """What one plugin adds to a node's total: `normalized` (0 to 100) times `weight`. An extender's score has the same
    form, with weight 1 and any number."""

    plugin: str
    weight: int
    raw: int
    normalized: int

    @property
    def weighted(self) -> int:
        return self.normalized * self.weight


class ScoredNode(Struct, frozen=True, kw_only=True):
    name: str
    total: int
    contributions: tuple[Contribution, ...]


class _Lead(Struct, frozen=True, kw_only=True):
    """One plugin's preference for the winner over the runner-up; negative if it prefers the runner-up."""

    plugin: str
    difference: int


class Ranking(Struct, frozen=True, kw_only=True):
    """The feasible nodes, best first."""

    nodes: tuple[ScoredNode, ...]  # up to the requested number, always including the winners
    count: int  # the number of scored nodes
    winners: int  # the number of nodes with the highest total
    leads: tuple[_Lead, ...]
    """The winner against the runner-up, largest lead first, without plugins that score both equally."""

    @property
    def runner_up(self) -> ScoredNode | None:
        """The best node that does not win."""
        return self.nodes[self.winners] if len(self.nodes) > self.winners else None

    @property
    def margin(self) -> int | None:
        """The winner's total minus the runner-up's; None without a runner-up."""
        return self.nodes[0].total - self.runner_up.total if self.runner_up else None


def rank_nodes(cycle: Cycle, limit: int | None = None) -> Ranking | None:
    """Return the best `limit` nodes, always with winners and runner-up; None without scores."""
    scores = cycle.scores
    if scores is None:
        return None
    order = np.argsort(-scores.totals, kind="stable")
    winners = int(np.count_nonzero(scores.totals == scores.totals.max()))
    shown = order if limit is None else order[: max(limit, winners + 1)]
    nodes = tuple(scored_node(scores, row) for row in each_row(TableRows(shown)))
    leads: tuple[_Lead, ...] = ()
    if len(nodes) > winners:
        leads = compare_scores(nodes[0], nodes[winners])
    return Ranking(nodes=nodes, count=len(scores.nodes), winners=winners, leads=leads)


def scored_node(scores: Scores, row: TableRow) -> ScoredNode:
    """Return one node's scores. `row` is a row of `scores.nodes`."""
    return ScoredNode(
        name=scores.nodes.name(row),
        total=int(scores.totals[row]),
        contributions=tuple(
            Contribution(
                plugin=plugin,
                weight=weight,
                raw=int(scores.raw[plugin][row]),
                normalized=int(scores.normalized[plugin][row]),
            )
            for plugin, weight in scores.weights.items()
        )
        + tuple(
            Contribution(plugin=name, weight=1, raw=int(column[row]), normalized=int(column[row]))
            for name, column in scores.added.items()
        ),
    )


def compare_scores(first: ScoredNode, second: ScoredNode) -> tuple[_Lead, ...]:
    """By which plugins the first node's total exceeds the second's, largest difference first, without equal scores."""
    leads = (
        _Lead(plugin=mine.plugin, difference=mine.weighted - other.weighted)
        for mine, other in zip(first.contributions, second.contributions, strict=True)
    )
    return tuple(sorted((lead for lead in leads if lead.difference), key=lambda lead: -lead.difference))


_PREFERRED = (
    "fewest PodDisruptionBudget violations",
    "lowest priority of the most important victim",
    "lowest sum of the victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)
"""What each of preemption's rules prefers, in their order."""


def deciding_rule(candidates: tuple[Candidate, ...], best: tuple[int, ...], pods: PodTable) -> str:
    """What the rule prefers that leaves only the `best` candidates (node rows); empty with a single candidate."""
    left = np.arange(len(candidates))
    for preferred, numbers in zip(_PREFERRED, ranks(candidates, pods), strict=True):
        remaining = left[numbers[left] == min(numbers[left], default=0)]
        if len(remaining) == len(best) and len(remaining) < len(left):
            return preferred
        left = remaining
    return ""


# Rules that do not decide, although users may expect it: why a pod is on an unexpected node.

_LEAST_BARE_PODS = 3
"""The number of pods without requests on a node from which its usage may exceed what kube-scheduler counts."""


def indecisive(cycle: Cycle, profiles: Sequence[str] = ()) -> Iterator[str]:
    """Yield sentences about a schedulable pod; nothing for other pods. `profiles` are those of the configuration."""
    if not cycle.choice or cycle.nodes is None:
        return
    used = cycle.profile.scheduler_name
    if used == DEFAULT_SCHEDULER and (others := tuple(profile for profile in profiles if profile != used)):
        yield f"the pod's schedulerName is {used}, so that profile {list_names(others, 3)} is not used"
    yield from _disabled_filters(cycle)
    yield from _rules_without_pods(cycle)
    winners = [cycle.all_nodes.cluster.nodes[row] for row in cycle.choice]
    node, spec = winners[0], cycle.pod.spec
    comparison = cycle.release.compares_taints
    if not spec.node_selector and not (spec.affinity or Affinity()).node_affinity:
        each = ({taint.key for taint in winner.spec.taints} for winner in winners)
        yield from _tolerated_elsewhere(cycle, set.intersection(*each))
    for taint in node.spec.taints:
        if taint.effect == PREFER_NO_SCHEDULE and not any(
            tolerates(toleration, taint, comparison=comparison) for toleration in spec.tolerations
        ):
            yield f"the taint {taint} of {node.name} only lowers its score; effect NoSchedule would reject the pod"
        keys = {it.key for it in spec.tolerations if tolerates(it, taint, comparison=comparison)}
        if taint.effect in DO_NOT_SCHEDULE and keys == {""}:
            yield f"a toleration without a key covers the taint {taint} of {node.name}"
    yield from _unmet_preference(cycle, winners)
    yield from _replaced_defaults(cycle)
    yield from _either_term(cycle, node)
    if len(winners) == 1:
        yield from _loose_spread(cycle, node)
        yield from _narrow_spread(cycle)
        yield from _unreserved_reasons(cycle, cycle.choice[0])
        yield from _bare_pods(cycle, cycle.choice[0])


def _disabled_filters(cycle: Cycle) -> Iterator[str]:
    release, enabled = cycle.release, cycle.profile.points.get("filter", ())
    usual = [it.name for it in release.default_plugins if "filter" in release.plugin_points.get(it.name, ())]
    if lacking := tuple(plugin for plugin in usual if plugin not in enabled):
        profile = cycle.profile.scheduler_name
        yield f"profile {profile} disables a filter of the default profile: {list_names(lacking, 4)}"


def _rules_without_pods(cycle: Cycle) -> Iterator[str]:
    pod, affinity = cycle.pod, cycle.pod.spec.affinity or Affinity()
    for kind, rules in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        for number, term in enumerate(rules.terms if rules is not None else (), start=1):
            if not _selects_any(cycle, pod, term):
                selector = compile_selector(term.label_selector)
                yield f"{kind} term {number} ({selector}) {_matches_none(cycle, pod, term)}: it has no effect"
            elif term.topology_key not in {HOSTNAME, *cycle.all_nodes.cluster.label_keys}:
                yield f"{kind} term {number} has no effect: no node has the label {term.topology_key}"
    for constraint in pod.spec.topology_spread_constraints:
        selector, over = (
            compile_selector(constraint.label_selector),
            f"the spread constraint over {constraint.topology_key}",
        )
        if constraint.topology_key not in {HOSTNAME, *(keys := cycle.all_nodes.cluster.label_keys)}:
            near = nearest_name(constraint.topology_key, keys)
            yield f"{over} has no effect: no node has the label{f'; did you mean {near}?' if near else ''}"
        elif not selector.matches(pod.metadata.labels):
            if constraint.label_selector is None:
                yield f"{over} has no labelSelector: it counts no pods, so it has no effect"
            else:
                counts = "other pods" if cycle.snapshot.pods.labels.where(selector.matches).any() else "no pods"
                yield f"{over} ({selector}) does not match the pod itself: it counts {counts}"


def _matches_none(cycle: Cycle, pod: Pod, term: PodAffinityTerm) -> str:
    """Return that a term matches no pod, and the namespaces in which it would match some."""
    own, pods = term.namespaces or (pod.metadata.namespace,), cycle.snapshot.pods
    matching = pods.labels.where(compile_selector(term.label_selector).matches) & (pods.node >= 0)
    others = sorted({pods.namespaces[row] for row in matching.nonzero()[0].tolist()})
    if not others:
        return "matches no pod, this pod included"
    return f"matches no pod of {list_names(own, 3)}, only of {list_names(others, 3)} (see its namespaces)"


def _selects_any(cycle: Cycle, pod: Pod, term: PodAffinityTerm) -> bool:
    """Return whether the term's selector matches some pod, if its namespaces are known to be the pod's."""
    selector, pods = compile_selector(term.label_selector), cycle.snapshot.pods
    namespaces = term.namespaces or (pod.metadata.namespace,)
    if term.namespace_selector is not None or selector.matches(pod.metadata.labels):
        return True
    return bool((pods.labels.where(selector.matches) & pods.namespaces.where(lambda name: name in namespaces)).any())


def _tolerated_elsewhere(cycle: Cycle, taken: set[str]) -> Iterator[str]:
    """`taken` are the keys of the taints that all winners have."""
    chosen = [it for it in cycle.pod.spec.tolerations if it.key and not it.key.startswith("node.kubernetes.io/")]
    if not chosen or cycle.feasible is None or cycle.nodes is None:
        return
    comparison = cycle.release.compares_taints
    for row in each_row(cycle.feasible):
        node = cycle.nodes.node(row)
        for taint in node.spec.taints:
            if taint.effect not in DO_NOT_SCHEDULE or taint.key in taken:
                continue
            if any(tolerates(toleration, taint, comparison=comparison) for toleration in chosen):
                allows = f"the toleration of {taint} allows {node.name} and does not prefer it"
                yield f"{allows}: the pod has no nodeSelector and no node affinity"
                return


def _either_term(cycle: Cycle, node: Node) -> Iterator[str]:
    required = cycle.pod.spec.required_node_affinity
    if required is None or len(required.node_selector_terms) < 2:
        return
    terms = compile_node_selector(required).terms
    matched = tuple(
        number for number, term in enumerate(terms, start=1) if term.matches(node.metadata.labels, node.name)
    )
    if len(matched) < len(terms):
        which = f"{node.name} matches term {list_names(map(str, matched), 3)}, not all of them"
        yield f"one of the {len(terms)} nodeSelectorTerms is enough: {which}"


def _unmet_preference(cycle: Cycle, winners: Sequence[Node]) -> Iterator[str]:
    """Yield the node affinity term of the highest weight that no winner meets, if no node that meets it fits."""
    affinity = (cycle.pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()
    terms = compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution).terms
    unmet = [each for each in terms if not any(each.term.matches(it.metadata.labels, it.name) for it in winners)]
    if not unmet or cycle.feasible is None or cycle.nodes is None:
        return
    first = max(unmet, key=lambda each: each.weight)
    if any(each.weight >= first.weight for each in terms if each not in unmet):
        return
    matching = [it.name for it in cycle.all_nodes.cluster.nodes if first.term.matches(it.metadata.labels, it.name)]
    prefers = f"preferred node affinity ({', '.join(map(str, (*first.term.expressions, *first.term.fields)))})"
    if not matching:
        yield f"{prefers} matches no node: it has no effect{_meant(cycle, first.term)}"
    elif not set(matching) & {cycle.nodes.name(row) for row in each_row(cycle.feasible)}:
        unfit = "which does not fit" if len(matching) == 1 else "none of which fits"
        yield f"{prefers} matches {list_names(matching, 3)}, {unfit}"


def _replaced_defaults(cycle: Cycle) -> Iterator[str]:
    """Yield that the pod's own constraints replace the profile's, if these would spread its group over zones."""
    own, args = cycle.pod.spec.topology_spread_constraints, cycle.profile.args.get("PodTopologySpread")
    if not own or not isinstance(args, PodTopologySpreadArgs) or cycle.feasible is None or cycle.nodes is None:
        return
    spreads = args.defaulting_type == SYSTEM_DEFAULTING
    spreads |= any(each.topology_key in ZONE_LABELS for each in args.default_constraints)
    if not spreads or any(each.topology_key in ZONE_LABELS for each in own):
        return
    selector = default_selector(cycle.pod, cycle.snapshot)
    if selector.empty:
        return  # no default constraint applies to the pod
    pods, cluster = cycle.snapshot.pods, cycle.all_nodes.cluster
    inside = pods.labels.where(selector.matches) & (pods.node >= 0)
    inside &= pods.in_namespace(cycle.pod.metadata.namespace)
    zones = [first_label(cluster.nodes[int(row)].metadata.labels, ZONE_LABELS) for row in pods.node[inside]]
    others = {first_label(cycle.nodes.node(row).metadata.labels, ZONE_LABELS) for row in each_row(cycle.feasible)}
    if len(zones) > 1 and len({*zones}) == 1 and zones[0] and others - {zones[0], ""}:
        group = f"{f'all {len(zones):,}' if len(zones) > 2 else 'both'} matching pods are in {zones[0]}"
        yield f"its own spread constraints replace the default one over zones: {group}"


def _meant(cycle: Cycle, term: CompiledTerm) -> str:
    """Return a question for the label whose key or value the term probably misspells; empty if there is none."""
    cluster = cycle.all_nodes.cluster
    for requirement in term.expressions:
        if requirement.key not in cluster.label_keys:
            meant = nearest_name(requirement.key, cluster.label_keys)
        else:
            known = cluster.label_values(requirement.key)
            meant = next((near for value in requirement.values if (near := nearest_name(value, known))), "")
        if meant:
            return f"; did you mean {meant}?"
    return ""


def _loose_spread(cycle: Cycle, node: Node) -> Iterator[str]:
    pod, pods, cluster = cycle.pod, cycle.snapshot.pods, cycle.all_nodes.cluster
    for constraint in pod.spec.topology_spread_constraints:
        domain = node.metadata.labels.get(constraint.topology_key)
        if constraint.when_unsatisfiable != "DoNotSchedule" or constraint.max_skew < 2 or domain is None:
            continue
        selector = compile_selector(constraint.label_selector)
        inside = pods.labels.where(selector.matches) & (pods.node >= 0)
        inside &= pods.in_namespace(pod.metadata.namespace)
        counts = dict.fromkeys(cluster.label_values(constraint.topology_key), 0)
        for row in np.flatnonzero(inside).tolist():
            value = cluster.nodes[int(pods.node[row])].metadata.labels.get(constraint.topology_key)
            if value is not None:
                counts[value] += 1
        least = min(counts.values())
        if counts[domain] > least:
            has = f"{domain} has {count(counts[domain], 'matching pod')}, another domain has {least:,}"
            yield f"maxSkew {constraint.max_skew} over {constraint.topology_key} allows one more in {domain}: {has}"


def _narrow_spread(cycle: Cycle) -> Iterator[str]:
    """Yield a required spread constraint over several domains, of which the pod's node affinity selects only one."""
    spec, nodes = cycle.pod.spec, cycle.all_nodes.cluster.nodes
    selects = required_node_affinity(spec.node_selector, spec.required_node_affinity)
    for constraint in spec.topology_spread_constraints:
        key, is_honored = constraint.topology_key, constraint.node_affinity_policy in (None, "Honor")
        there = [node for node in nodes if key in node.metadata.labels]
        own = {it.metadata.labels[key] for it in there if selects.matches(it.metadata.labels, it.name)}
        others = {it.metadata.labels[key] for it in there} - own
        if constraint.when_unsatisfiable == "DoNotSchedule" and is_honored and others and len(own) == 1:
            yield f"the spread constraint over {key} has one domain, {own.pop()}: the pod selects nodes of no other"


def _unreserved_reasons(cycle: Cycle, row: ClusterRow) -> Iterator[str]:
    cluster = cycle.all_nodes.cluster
    node = cluster.nodes[row]
    if any(taint.effect in DO_NOT_SCHEDULE for taint in node.spec.taints):
        return
    of_control_plane = [not each.metadata.labels.keys().isdisjoint(OF_CONTROL_PLANE) for each in cluster.nodes]
    if of_control_plane[row] and not all(of_control_plane):
        yield f"{node.name} is a control plane node, and no taint keeps pods off the node"
        return
    resources = {name for it in cycle.pod.spec.containers for name in (*it.resources.requests, *it.resources.limits)}
    for name in node.status.allocatable:
        column, vendor = cluster.resources.index.get(name), name.partition("/")[0]
        if (
            column is None
            or vendor not in VENDOR_LABELS
            or any(resource.startswith(f"{vendor}/") for resource in resources)
        ):
            continue
        offered = cluster.allocatable[: len(cluster.names), column]
        if offered[row] > 0 and (offered == 0).any():
            yield f"{node.name} has {name}, which the pod does not request; no taint keeps such pods off the node"
            return


def _bare_pods(cycle: Cycle, row: ClusterRow) -> Iterator[str]:
    result, pods, nodes = rank_nodes(cycle, 1), cycle.snapshot.pods, cycle.all_nodes
    of_requests = plugins_with(Trait.SCORES_REQUESTS)
    if result is None or not any(lead.plugin in of_requests and lead.difference > 0 for lead in result.leads):
        return
    columns = [nodes.resources.index[name] for name in ("cpu", "memory") if name in nodes.resources.index]
    rows = [item for item in pods.on_node(row).tolist() if all(it.kind != "DaemonSet" for it in pods.owners[item])]
    bare = sum(not nodes.requests.matrix[row, columns].any() for row in rows)
    if bare >= _LEAST_BARE_PODS and 2 * bare >= len(rows):
        bare_pods = f"{bare:,} of {count(len(rows), 'pod')} on {nodes.cluster.names[row]}"
        yield f"{bare_pods} request no CPU and no memory: kube-scheduler counts requests, not usage"


# A pod with a node that was evaluated as if it had none.


def namer_of(snapshot: Snapshot, pod: Pod, node: str) -> str:
    """Return the pod's controller, such as `ReplicaSet web-1`, if its template has the node as its nodeName."""
    if (owner := pod.metadata.controller) is None:
        return ""
    raw = snapshot.workloads.get((owner.kind, pod.metadata.namespace, owner.name), b"{}")
    names = map_at(msgspec.json.decode(raw), "spec", "template", "spec").get("nodeName") == node
    return f"{owner.kind} {owner.name}" if names else ""


def _restarts(pod: Pod) -> str:
    """Return which container of a pod has restarted most, and how it last ended; empty if none has often."""
    often = (it for it in (*pod.status.container_statuses, *pod.status.init_container_statuses) if it.restart_count)
    status = max(often, key=lambda each: each.restart_count, default=None)
    ended = None if status is None or status.last_state is None else status.last_state.terminated
    if status is None or ended is None:
        return ""
    why = ", ".join(filter(None, (ended.reason, f"exit code {ended.exit_code}")))
    return f"container {status.name} has restarted {status.restart_count:,} times; it last ended with {why}"


def running_verdict(cycle: Cycle, node: str, not_ready: str, assigned: str) -> RunsAlready:
    """`node` is the pod's node, `assigned` the time since when; `not_ready` is why the pod is not ready, according to
    its kubelet."""
    state = f" and is not ready: {not_ready}" if not_ready else ""
    cluster, pod = cycle.all_nodes.cluster, cycle.pod
    runs = "is assigned to" if pod.status.phase == "Pending" else "runs on"
    owner, namer = pod.metadata.controller, namer_of(cycle.snapshot, pod, node)
    then = "" if namer else "; this shows what scheduling it now would give"
    named = f", which the template of {namer} names (spec.nodeName)" if namer else ""
    if is_of_daemon_set := owner is not None and owner.kind == "DaemonSet":
        named = f", for which {owner.kind} {owner.name} created it"
    text = f"it {runs} {node}{named}{state}{then}"
    is_static = MIRROR in pod.metadata.annotations
    if is_static:
        text = f"it is a static pod, which the kubelet of {node} runs without kube-scheduler{state}"
    row, is_recreated = cluster.index[node], owner is not None and owner.kind in RECREATING
    again = f"; {owner.kind} {owner.name} creates it again" if is_recreated and owner is not None else ""
    eviction = "" if is_static else _eviction(cycle, cluster.nodes[row], again)
    at = None if cycle.nodes is None else cycle.nodes.row_of(row)
    if row in (*cycle.choice, *cycle.best) or at is None or cycle.filter is None:
        return RunsAlready(
            text=text, node=node, not_ready=not_ready, restarts=_restarts(pod), is_static=is_static, eviction=eviction
        )
    findings = account(cycle, at).findings
    behind = None
    if cycle.scores is not None and (scored_at := cycle.scores.nodes.row_of(row)) is not None:
        behind = int(cycle.scores.totals.max() - cycle.scores.totals[scored_at])
    better = [cluster.nodes[cluster_row] for cluster_row in cycle.choice] if assigned else []
    later = joined_later(better, assigned)
    moves = bool(cycle.choice) and is_recreated and not namer
    return RunsAlready(
        text=text,
        restarts=_restarts(pod),
        node=node,
        not_ready=not_ready,
        rejected_by=findings[:1],
        behind=behind,
        joined_later=later,
        ready_later=_ready_later(better, assigned),
        recreated_by=f"{owner.kind} {owner.name}" if moves and owner is not None else "",
        eviction=eviction,
        is_deleted=bool(findings) and isinstance(findings[0], NodeAffinityMismatch) and is_of_daemon_set,
        is_static=is_static,
    )


def _eviction(cycle: Cycle, node: Node, again: str) -> str:
    """Return which NoExecute taint of its node evicts the pod first, and when; empty for none. `again` is who recreates
    it."""
    tolerations, comparison = cycle.pod.spec.tolerations, cycle.release.compares_taints
    limits = [(stay_seconds((taint,), tolerations, comparison=comparison), str(taint)) for taint in node.spec.taints]
    for seconds, taint in sorted((seconds, taint) for seconds, taint in limits if seconds is not None):
        when = f"{seconds:,} s after {node.name} got the taint" if seconds else "at once"
        return f"the taint {taint} evicts it {when}{again}"
    return ""


def replicas_verdict(cycle: Cycle, verdict: RunsAlready) -> RunsAlready:
    """Add the best nodes for one more replica that joined or became ready after all others were assigned, and a spread
    constraint that the replicas exceed."""
    chosen, since = [cycle.all_nodes.cluster.nodes[row] for row in cycle.choice], verdict.assigned
    joined, ready = joined_later(chosen, since), _ready_later(chosen, since)
    return replace(verdict, joined_later=joined, ready_later=ready, uneven=_uneven_spread(cycle))


def _uneven_spread(cycle: Cycle) -> TopologySpreadSkew | None:
    """Return a constraint whose skew is above maxSkew even without the pod."""
    outcome, constraints = cycle.filter, cycle.pod.spec.topology_spread_constraints
    hard = sum(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in constraints)
    seen: set[int] = set()
    for plugin, verdicts in () if outcome is None else zip(outcome.plugins, outcome.verdicts, strict=True):
        if plugin != "PodTopologySpread":
            continue
        for row in each_row(rows_where(verdicts.codes != Code.SUCCESS)):
            for finding in verdicts.status(row, plugin).findings:
                if not isinstance(finding, TopologySpreadSkew):
                    continue
                if finding.min_domains is None and finding.domains[0].matching - finding.minimum > finding.max_skew:
                    return finding
                seen.add(finding.constraint)
            if len(seen) == hard > 0:  # the default constraints of a profile may be several
                break
    return None


def joined_later(nodes: Iterable[Node], since: str) -> tuple[str, ...]:
    """Return the nodes that were created after a time; none if the time is unknown."""
    return tuple(node.name for node in nodes if since and (node.metadata.creation_timestamp or "") > since)


def _ready_later(nodes: Iterable[Node], since: str) -> tuple[str, ...]:
    """Return the nodes that became ready after a time, though they were created before."""
    return tuple(
        node.name
        for node in nodes
        if since
        and (node.metadata.creation_timestamp or "") <= since
        and any(
            condition.type == "Ready" and (condition.last_transition_time or "") > since
            for condition in node.status.conditions
        )
    )


RECREATING = ("ReplicaSet", "StatefulSet", "ReplicationController")
"""Controllers that recreate a deleted pod, and lose no work by its eviction."""

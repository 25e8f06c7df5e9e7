"""The calls of a configuration's extenders in one cycle.

Upstream: findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go, callExtenders in
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.extenders.answers import (
    AnsweredNode,
    AnsweredVictims,
    CrashError,
    ExtenderError,
    filter_answer,
    preemption_answer,
    priorities,
)
from kschedx.extenders.client import Objects
from kschedx.findings import ExtenderDropped, ExtenderRefused, Finding
from kschedx.framework.columns import ScoreFailedError, Scoring
from kschedx.framework.config.decoding import Extender
from kschedx.framework.cycle import Cycle, Outcome, Scores
from kschedx.framework.extenders import (
    Ask,
    ExtenderRequest,
    ExtenderVerb,
    FilterCall,
    PreemptCall,
    PreemptResult,
    Reply,
    ScoreCall,
    Trace,
    Victims,
    call_order,
    path_of,
)
from kschedx.framework.interface import CycleState, Touch
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import Decision
from kschedx.framework.status import (
    MAX_NODE_SCORE,
    SUCCESS,
    ByExtenders,
    Candidate,
    Code,
    FilterOutcome,
    Status,
    Verdicts,
)
from kschedx.kube.documents import Json
from kschedx.kube.field_errors import quote_go
from kschedx.kube.scalars import wrap_int64
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import (
    ClusterRow,
    IntArray,
    TableRows,
    cluster_rows,
    each_cluster_row,
    each_row,
    rows_where,
)
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import StoredManifests

_MAX_EXTENDER_PRIORITY = 10


class _Feasible(Struct, frozen=True, kw_only=True):
    """A node that is still feasible. An extender can name a node several times."""

    row: ClusterRow
    name: str
    answered: AnsweredNode | None = None
    """As an extender answered it. From then on it replaces the cluster's own node, and has no pods."""


class _FilteredByExtenders(Struct, frozen=True, kw_only=True):
    calls: tuple[FilterCall, ...] = ()
    left: tuple[_Feasible, ...] = ()
    statuses: Mapping[str, Status] = {}  # name to status; a name that is not a node's is possible
    whole: int | None = None
    error: str = ""  # the error that ended the cycle


def _filter_request(pod: Json, names: Sequence[str], nodes: Sequence[Mapping[str, object]] | None) -> bytes:
    """Return ExtenderArgs for filter and prioritize; `nodes` is None for an extender that caches nodes."""
    whole = None if nodes is None else {"metadata": {}, "items": nodes}
    return msgspec.json.encode({"Pod": pod, "Nodes": whole, "NodeNames": list(names) if nodes is None else None})


def _preempt_request(
    pod: Json, victims: Mapping[str, Victims], pods: Mapping[str, Json] | None, uids: Mapping[str, str]
) -> bytes:
    """Return ExtenderPreemptionArgs; `pods` is None for an extender that knows pods by UID."""

    def each(pods_of: object, violations: int) -> Json:
        return {"Pods": pods_of, "NumPDBViolations": violations}

    whole, meta = None, None
    if pods is None:
        meta = {n: each([{"UID": uids[key]} for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    else:
        whole = {n: each([pods[key] for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta})


class HTTPExtenders:
    """The extenders of one configuration, the objects for their requests, and the source of their answers."""

    def __init__(
        self, configured: tuple[Extender, ...], ask: Ask | None = None, manifests: StoredManifests | None = None
    ) -> None:
        """`configured` is in the order of the configuration. Without `ask`, no extender is called."""
        self.configured = configured
        self._ask = ask
        self._objects = Objects(manifests)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs as they can be shown."""
        return tuple(str(extender.url) for extender in self.configured)

    @property
    def are_asked(self) -> bool:
        return self._ask is not None

    def trace(self, pod: Pod) -> Trace:
        """Return which extenders are called, or would be."""
        return Trace(
            order=call_order(self.configured),
            urls=self.urls,
            interested=tuple(extender.is_interested(pod) for extender in self.configured),
            called=self.are_asked,
        )

    def called_indexes(self, verb: ExtenderVerb, pod: Pod) -> tuple[int, ...]:
        """Return the indexes of the extenders that are called about this pod, in the order of the calls."""
        order = call_order(self.configured)
        return tuple(i for i in order if path_of(self.configured[i], verb) and self.configured[i].is_interested(pod))

    def take_part_in_preemption(self, pod: Pod) -> bool:
        return bool(self.called_indexes(ExtenderVerb.PREEMPT, pod))

    def filter(self, pod: Pod, nodes: NodeTable) -> _FilteredByExtenders:
        """Call extenders one after another, each with the nodes that the earlier ones left."""
        index = nodes.cluster.index
        left = tuple(_Feasible(row=row, name=nodes.cluster.names[row]) for row in each_cluster_row(nodes.rows))
        calls: list[FilterCall] = []
        statuses: dict[str, Status] = {}
        whole: int | None = None
        for number in self.called_indexes(ExtenderVerb.FILTER, pod):
            if not left:
                break
            extender = self.configured[number]
            names = tuple(node.name for node in left)
            question = self._node_request(ExtenderVerb.FILTER, number, pod, left, nodes)
            try:
                answer = filter_answer(question, *self._send((question,)))
                kept = _kept_by_extenders(extender, left, answer.node_names, answer.whole_nodes(), index)
            except ExtenderError as failed:
                ignored = extender.ignorable
                call = FilterCall(
                    extender=number, asked=names, left=names if ignored else (), failed={}, failed_and_unresolvable={},
                    error=str(failed), ignored=ignored,
                )  # fmt: skip
                calls.append(call)
                if not ignored:
                    return _FilteredByExtenders(calls=tuple(calls), statuses=statuses, whole=whole, error=str(failed))
                continue
            for code, failures in (
                (Code.UNSCHEDULABLE, answer.failed_nodes),
                (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, answer.failed_and_unresolvable_nodes),
            ):
                statuses |= {name: Status(code=code, reasons=(message,)) for name, message in failures.items()}
            calls.append(
                FilterCall(
                    extender=number,
                    asked=names,
                    left=tuple(node.name for node in kept),
                    failed=answer.failed_nodes,
                    failed_and_unresolvable=answer.failed_and_unresolvable_nodes,
                )
            )
            whole = number if any(node.answered is not None for node in kept) else whole
            left = kept
        return _FilteredByExtenders(calls=tuple(calls), left=left, statuses=statuses, whole=whole)

    def prioritize(self, pod: Pod, left: Sequence[_Feasible], nodes: NodeTable) -> tuple[ScoreCall, ...]:
        """Call extenders at the same time, with the same nodes; one that fails gives no scores."""
        numbers = self.called_indexes(ExtenderVerb.PRIORITIZE, pod)
        questions = tuple(self._node_request(ExtenderVerb.PRIORITIZE, number, pod, left, nodes) for number in numbers)
        replies = self._send(questions) if questions else ()
        names = {node.name for node in left}
        calls: list[ScoreCall] = []
        for number, question, reply in zip(numbers, questions, replies, strict=True):
            weight = self.configured[number].weight
            try:
                raw = priorities(question, reply)
            except ExtenderError as failed:
                calls.append(ScoreCall(extender=number, raw=(), weight=weight, added={}, error=str(failed)))
                continue
            added: dict[str, int] = {}
            for each in raw:
                if each.host in names:
                    scaled = wrap_int64(each.score * weight * (MAX_NODE_SCORE // _MAX_EXTENDER_PRIORITY))
                    added[each.host] = wrap_int64(added.get(each.host, 0) + scaled)
            calls.append(ScoreCall(extender=number, weight=weight, raw=raw, added=added))
        return tuple(sorted(calls, key=lambda call: call.extender))

    def preempt(self, pod: Pod, candidates: tuple[Candidate, ...], nodes: NodeTable) -> PreemptResult:
        """Call extenders one after another; each answer replaces the candidates. `nodes` are all of the cluster."""
        calls: list[PreemptCall] = []
        for number in self.called_indexes(ExtenderVerb.PREEMPT, pod):
            extender = self.configured[number]
            victims = _victims_by_node(candidates, nodes)
            question = self._victim_request(number, pod, candidates, victims, nodes)
            try:
                answered = preemption_answer(question, *self._send((question,)))
                named_candidates = [_candidate(extender, name, answered[name], nodes) for name in sorted(answered)]
                empty = next((candidate for candidate in named_candidates if not candidate.victims), None)
            except CrashError:
                raise UndecidableError(
                    f"the extender {extender.url} returns null instead of the victims of a node: "
                    "kube-scheduler crashes and makes no decision"
                ) from None
            except ExtenderError as failed:
                ignored = extender.ignorable
                calls.append(PreemptCall(extender=number, asked=victims, left=None, error=str(failed), ignored=ignored))
                if not ignored:
                    return PreemptResult(calls=tuple(calls), candidates=(), error=str(failed))
                continue
            left = _victims_by_node(named_candidates, nodes)
            calls.append(PreemptCall(extender=number, asked=victims, left=left))
            if empty is not None and not extender.ignorable:
                name = nodes.cluster.names[empty.node]
                text = f"expected at least one victim pod on node {quote_go(name)}"
                return PreemptResult(calls=tuple(calls), candidates=(), error=text)
            harmed = (candidate for candidate in named_candidates if candidate.victims)
            candidates = tuple(sorted(harmed, key=lambda candidate: candidate.node))
            if not candidates:
                break
        return PreemptResult(calls=tuple(calls), candidates=candidates)

    # --- calls

    def _send(self, questions: tuple[ExtenderRequest, ...]) -> tuple[Reply, ...]:
        assert self._ask is not None
        return self._ask(questions)

    def _node_request(
        self, verb: ExtenderVerb, number: int, pod: Pod, left: Sequence[_Feasible], nodes: NodeTable
    ) -> ExtenderRequest:
        extender = self.configured[number]
        names = tuple(node.name for node in left)

        def body() -> bytes:
            objects = self._objects
            whole = None
            if not extender.node_cache_capable:
                whole = [
                    objects.node(nodes.cluster.nodes[node.row]) if node.answered is None else node.answered.manifest
                    for node in left
                ]
            return _filter_request(objects.incoming_pod(pod), names, whole)

        return self._question(verb, number, pod, names, body)

    def _victim_request(
        self,
        number: int,
        pod: Pod,
        candidates: tuple[Candidate, ...],
        asked_victims: Mapping[str, Victims],
        nodes: NodeTable,
    ) -> ExtenderRequest:
        extender = self.configured[number]
        about = tuple(
            f"{name}: {', '.join(victims.pods)} ({victims.pdb_violations})" for name, victims in asked_victims.items()
        )

        def body() -> bytes:
            objects = self._objects
            rows = {row for candidate in candidates for row in candidate.victims}
            uids = {nodes.pods.key(row): nodes.pods.uids[row] for row in rows}
            whole = None
            if not extender.node_cache_capable:
                whole = {nodes.pods.key(row): objects.pod(nodes.pods[row]) for row in rows}
            return _preempt_request(objects.incoming_pod(pod), asked_victims, whole, uids)

        return self._question(ExtenderVerb.PREEMPT, number, pod, about, body)

    def _question(
        self, verb: ExtenderVerb, number: int, pod: Pod, about: tuple[str, ...], body: Callable[[], bytes]
    ) -> ExtenderRequest:
        extender = self.configured[number]
        url = extender.url / path_of(extender, verb)
        return ExtenderRequest(extender=extender, index=number, verb=verb, url=url, pod=pod.key, about=about, body=body)


def _victims_by_node(candidates: Sequence[Candidate], nodes: NodeTable) -> dict[str, Victims]:
    """Return candidates by node name, as in requests and answers."""
    return {
        nodes.cluster.names[candidate.node]: Victims(
            pods=tuple(nodes.pods.key(row) for row in candidate.victims), pdb_violations=candidate.pdb_violations
        )
        for candidate in candidates
    }


def _kept_by_extenders(
    extender: Extender,
    before: Sequence[_Feasible],
    names: tuple[str, ...] | None,
    whole: tuple[AnsweredNode, ...],
    index: Mapping[str, ClusterRow],
) -> tuple[_Feasible, ...]:
    """Return the nodes that an answer leaves. Whole nodes are accepted as they are, even if the request lacked them."""
    if extender.node_cache_capable and names is not None:
        known = {node.name: node for node in before}
        strange = next((name for name in names if name not in known), None)
        if strange is not None:
            raise ExtenderError(
                f"extender {quote_go(str(extender.url))} claims a filtered node {quote_go(strange)} which is not found "
                "in the input node list"
            )
        return tuple(known[name] for name in names)
    feasible: list[_Feasible] = []
    for answered in whole:
        node = answered.node
        row = index.get(node.name)
        if row is None:
            raise UndecidableError(
                f'the extender {extender.url} returns node "{node.name}", which the cluster does not have: '
                "what kube-scheduler then does with the pod is not known"
            )
        feasible.append(_Feasible(row=row, name=node.name, answered=answered))
    return tuple(feasible)


def _candidate(extender: Extender, name: str, answered: AnsweredVictims, nodes: NodeTable) -> Candidate:
    row = nodes.cluster.index.get(name)
    if row is None:
        raise ExtenderError(f"nodeinfo not found for node name {quote_go(name)}")
    on_node: dict[str, int] = {}
    for pod in nodes.pods.on_node(row).tolist():
        on_node.setdefault(nodes.pods.uids[pod], pod)
    strange = next((uid for uid in answered.uids if uid not in on_node), None)
    if strange is not None:
        raise ExtenderError(
            f"extender: {extender.url} claims to preempt pod (UID: &{{{strange}}}) on node: {name}, but the pod "
            "is not found on that node"
        )
    victims = tuple(on_node[uid] for uid in answered.uids)
    return Candidate(node=row, victims=victims, pdb_violations=answered.pdb_violations)


# Extenders' rejections as the verdicts of an additional plugin, so readers of verdicts include them.

_EXTENDER = "Extender"  # kube-scheduler's name for all extenders together (framework.ExtenderName)


def _with_refusals(outcome: FilterOutcome, nodes: NodeTable, trace: Trace) -> FilterOutcome:
    """Add the extenders' rejections to `outcome`, the plugins' outcome on `nodes`.

    A node that stays feasible to the end has no verdict here, whatever an answer reports about it.
    """
    left = frozenset(trace.left or ())
    statuses = [SUCCESS if name in left else _status(name, trace) for name in nodes.names]
    refused = np.array([not status.is_success for status in statuses], dtype=np.bool_)
    if not refused.any():
        return outcome
    verdicts = Verdicts.of_rows(statuses)
    codes, plugin = outcome.codes.copy(), outcome.plugin.copy()
    codes[refused], plugin[refused] = verdicts.codes[refused], len(outcome.plugins)
    nominated_statuses = {row: status for row, status in outcome.with_nominated.items() if not refused[row]}
    return replace(
        outcome,
        plugins=(*outcome.plugins, _EXTENDER),
        verdicts=(*outcome.verdicts, verdicts),
        codes=codes,
        plugin=plugin,
        with_nominated=nominated_statuses,
    )


def _status(name: str, trace: Trace) -> Status:
    status = trace.statuses.get(name)
    if status is not None:
        return replace(status, plugin=_EXTENDER, findings=(_refusal_finding(name, status, trace),))
    if name not in trace.silent:
        return SUCCESS
    by = next((call.extender for call in trace.filter if name in call.asked and name not in call.left), None)
    finding = ExtenderDropped(url="" if by is None else trace.urls[by])
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, plugin=_EXTENDER, findings=(finding,))


def _refusal_finding(name: str, status: Status, trace: Trace) -> Finding:
    """Return the finding for the last extender that named the node, which decides."""
    named = [call.extender for call in trace.filter if name in call.failed or name in call.failed_and_unresolvable]
    return ExtenderRefused(
        url=trace.urls[named[-1]],
        message=", ".join(status.reasons),
        is_resolvable=status.code is Code.UNSCHEDULABLE,
    )


# The nodes that extenders left, as score plugins see them, and the scores that extenders add. A whole node from an
# answer is scored as answered: it has the answer's labels, taints, and allocatable, and no pods and no images. This
# does not affect what PreScore collects from the whole cluster.


def _scoring_framework(framework: Framework, left: Sequence[_Feasible]) -> tuple[Framework, NodeTable]:
    """Return the framework that scores the remaining nodes, and their table in the same order."""
    answered = [node.answered.node for node in left if node.answered is not None]
    if not answered:
        return framework, framework.nodes.at(cluster_rows([node.row for node in left]))
    scoring = framework.on(framework.snapshot.with_answered_nodes(answered))
    following = map(ClusterRow, range(len(framework.nodes), len(framework.nodes) + len(answered)))
    rows = [node.row if node.answered is None else next(following) for node in left]
    return scoring, scoring.nodes.at(cluster_rows(rows))


def _with_extenders(scores: Scores, calls: Sequence[ScoreCall], urls: Sequence[str]) -> Scores:
    """Add each extender's scores to the totals. `urls` are the extenders' URLs as they can be shown."""
    names = scores.nodes.names
    added: dict[str, IntArray] = {}
    for call in calls:
        if not call.error:
            name = f"extender {urls[call.extender]}"
            column = np.array([call.added.get(node, 0) for node in names], dtype=np.int64)
            added[name] = column + added[name] if name in added else column
    # beyond int64, sums wrap around as in Go
    return replace(scores, totals=sum(added.values(), start=scores.totals), added=added)


# The extenders' part of one scheduling cycle, between the plugins' filters and PostFilter. Upstream:
# findNodesThatFitPod, evaluateNominatedNode, and prioritizeNodes in pkg/scheduler/schedule_one.go.


def _run_scores(framework: Framework, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
    """Run PreScore, Score, and NormalizeScore on the feasible nodes. Raises `ScoreFailedError`."""
    scoring = Scoring(framework, lambda plugin: Touch.CLUSTER)
    scoring.totals(state, pod, lambda: nodes, TableRows(np.arange(len(nodes))))
    return scoring.scores(lambda: nodes)


class HTTPExtenderCycle:
    """The extenders' part of a cycle, filled step by step; `judged` adds it to the finished cycle."""

    def __init__(self, framework: Framework, extenders: HTTPExtenders, pod: Pod) -> None:
        self._framework = framework
        self._extenders = extenders
        self._pod = pod
        self._trace = extenders.trace(pod)
        self._calls: tuple[FilterCall, ...] = ()
        self._whole: int | None = None
        self._scores: tuple[ScoreCall, ...] = ()
        self._of_nominated: dict[str, Status] = {}
        """Statuses from the evaluation of the nominated node; the plugins' rejections override them."""
        self._statuses: dict[str, Status] = {}
        self._passed: tuple[str, ...] = ()
        self.left: tuple[_Feasible, ...] | None = None
        """The nodes that passed plugins and extenders; None if no extender was called."""
        self.error = ""

    def pass_nominated(self, node: ClusterRow) -> bool:
        """Return whether the extenders leave the nominated node, which is evaluated alone, before all others.

        If an extender fails, kube-scheduler logs that and evaluates all nodes.
        """
        if not self._extenders.are_asked:
            return True
        alone = self._framework.nodes.at(cluster_rows([node]))
        tried = self._extenders.filter(self._pod, alone)
        self._calls += tried.calls
        self._whole = tried.whole
        self._of_nominated = dict(tried.statuses)
        return not tried.error and bool(tried.left)

    def filter(self, feasible: NodeTable) -> None:
        """Call extenders for the nodes that passed the plugins, if there are both."""
        self._passed = feasible.names
        if not self._extenders.are_asked or not len(feasible):
            return
        filtered = self._extenders.filter(self._pod, feasible)
        self._calls += filtered.calls
        self._whole = self._whole if filtered.whole is None else filtered.whole
        self._statuses = dict(filtered.statuses)
        self.error = filtered.error
        self.left = filtered.left

    def score(self, state: CycleState) -> tuple[Decision, Scores | None]:
        """Return the end of the cycle if nodes remain: the plugins' scores on the answered nodes plus the extenders'
        scores."""
        assert self.left
        framework, left = self._framework, self.left
        scoring, nodes = _scoring_framework(framework, left)
        try:
            scores = _run_scores(scoring, state, self._pod, nodes)
        except ScoreFailedError as failed:
            if len(left) > 1:
                return Decision(outcome=Outcome.ERROR, message=failed.status.message), None
            return Decision(outcome=Outcome.SCHEDULED, best=cluster_rows([left[0].row])), None
        if len(left) > 1:
            self._scores = self._extenders.prioritize(self._pod, left, framework.nodes)
            scores = _with_extenders(scores, self._scores, self._extenders.urls)
        best = [left[index].row for index in np.flatnonzero(scores.totals == scores.totals.max()).tolist()]
        return Decision(outcome=Outcome.SCHEDULED, best=cluster_rows(list(dict.fromkeys(best)))), scores

    def diagnosed(self, nodes: NodeTable, outcome: FilterOutcome) -> tuple[FilterOutcome, Counter[str], int]:
        """Return the outcome as PostFilter sees it, the number of nodes for each reason, and the number of names with a
        status. `outcome` is the plugins' outcome on `nodes`."""
        rejected = dict.fromkeys(nodes.names[index] for index in np.flatnonzero(~outcome.passed).tolist())
        statuses = {
            **{name: status for name, status in self._of_nominated.items() if name not in rejected},
            **self._statuses,
        }
        index = self._framework.snapshot.cluster.index
        by_row = {index[name]: status for name, status in statuses.items() if name in index}
        counts = outcome.count_reasons(np.array([name not in statuses for name in nodes.names], dtype=np.bool_))
        for status in statuses.values():
            counts.update(status.reasons)
        silent = tuple(
            nodes.cluster_row(row) for row in each_row(rows_where(outcome.passed)) if nodes.name(row) not in statuses
        )
        outcome = replace(outcome, by_extenders=ByExtenders(statuses=by_row, silent=silent))
        return outcome, counts, len({*rejected, *statuses})

    def judged(self, cycle: Cycle) -> Cycle:
        """Return the finished cycle with the extenders' part."""
        trace = self._trace
        if not trace.called:
            return replace(cycle, extenders=trace)
        left = None if self.left is None or self.error else tuple(node.name for node in self.left)
        silent = [name for name in self._passed if left is not None and name not in {*left, *self._statuses}]
        trace = replace(
            trace,
            passed_plugins=self._passed,
            filter=self._calls,
            whole=self._whole,
            left=left,
            statuses={} if self.error else self._of_nominated | self._statuses,
            silent=tuple(silent),
            scores=self._scores,
        )
        if left is not None and cycle.filter is not None and cycle.nodes is not None:
            outcome = _with_refusals(cycle.filter, cycle.nodes, trace)
            cycle = replace(cycle, filter=outcome, filter_plugins=cycle.filter)
        return replace(cycle, extenders=self._with_preemption(trace, cycle))

    def _with_preemption(self, trace: Trace, cycle: Cycle) -> Trace:
        preempted = None if cycle.post_filter is None else cycle.post_filter.preempted
        if preempted is None:
            return trace
        return replace(
            trace,
            preempt=preempted.calls,
            candidates=_victims_by_node(preempted.candidates, self._framework.nodes),
            candidates_error=preempted.error,
        )

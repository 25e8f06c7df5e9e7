"""The extenders of a configuration, asked in one cycle.

Upstream: findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go, callExtenders in
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kschedx.api.field_errors import quoted
from kschedx.api.integers import wrap_int64
from kschedx.api.types import Pod
from kschedx.api.urls import without_password
from kschedx.errors import UndecidableError
from kschedx.framework.config.document import Extender
from kschedx.framework.extended_by import call_order, is_interested
from kschedx.framework.extenders.answers import (
    AnsweredNode,
    AnsweredVictims,
    CrashError,
    ExtenderError,
    filter_answer,
    preemption_answer,
    priorities,
)
from kschedx.framework.extenders.calls import (
    Ask,
    FilterCall,
    PreemptCall,
    Question,
    Reply,
    ScoreCall,
    Trace,
    Verb,
    Victims,
    path_of,
)
from kschedx.framework.extenders.requests import Objects, filter_request, preempt_request
from kschedx.framework.outcome import MAX_NODE_SCORE, Candidate
from kschedx.framework.status import Code, Status
from kschedx.snapshot.manifests import Manifests
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow, each_cluster_row

MAX_EXTENDER_PRIORITY = 10


class Feasible(Struct, frozen=True, kw_only=True):
    """A node that is still in the running. An extender can name one several times."""

    row: ClusterRow
    """Of the whole cluster's nodes."""
    name: str
    answered: AnsweredNode | None = None
    """The node as an extender answered it: from then on it stands for the cluster's own, and has no pods."""


class Filtered(Struct, frozen=True, kw_only=True):
    """What filtering by extenders came to."""

    calls: tuple[FilterCall, ...] = ()
    left: tuple[Feasible, ...] = ()
    statuses: Mapping[str, Status] = {}
    """By name, whatever the name is: it may be no node."""
    error: str = ""
    """What ended the cycle."""


class Preempted(Struct, frozen=True, kw_only=True):
    """What extenders made of the candidates for preemption."""

    calls: tuple[PreemptCall, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    error: str = ""


class Extenders:
    """The extenders of one configuration, with what they are asked and who asks them."""

    def __init__(
        self, configured: tuple[Extender, ...], ask: Ask | None = None, manifests: Manifests | None = None
    ) -> None:
        """`configured` is in the order of the configuration. Without `ask` nobody is asked."""
        self.configured = configured
        self._ask = ask
        self._objects = Objects(manifests)

    @property
    def urls(self) -> tuple[str, ...]:
        """As they may be shown."""
        return tuple(without_password(extender.url_prefix) for extender in self.configured)

    @property
    def are_asked(self) -> bool:
        return self._ask is not None

    def trace(self, pod: Pod) -> Trace:
        """Who is asked, or would be."""
        return Trace(
            order=call_order(self.configured),
            urls=self.urls,
            interested=tuple(is_interested(extender, pod) for extender in self.configured),
            called=self.are_asked,
        )

    def serving(self, verb: Verb, pod: Pod) -> tuple[int, ...]:
        """Indexes of those that are asked about this pod, in the order of the calls."""
        order = call_order(self.configured)
        return tuple(i for i in order if path_of(self.configured[i], verb) and is_interested(self.configured[i], pod))

    def have_a_say_in_preemption(self, pod: Pod) -> bool:
        return bool(self.serving(Verb.PREEMPT, pod))

    # --- filter

    def filter(self, pod: Pod, nodes: NodeTable) -> Filtered:
        """One after the other, each about the nodes that those before it have left."""
        index = nodes.cluster.index
        left = tuple(Feasible(row=row, name=nodes.cluster.names[row]) for row in each_cluster_row(nodes.rows))
        calls: list[FilterCall] = []
        statuses: dict[str, Status] = {}
        for number in self.serving(Verb.FILTER, pod):
            if not left:
                break
            extender = self.configured[number]
            asked = tuple(node.name for node in left)
            question = self._about_nodes(Verb.FILTER, number, pod, left, nodes)
            try:
                answer = filter_answer(question, self._one(question))
                kept = _kept(extender, left, answer.names, answer.nodes, index)
            except ExtenderError as failed:
                ignored = extender.ignorable
                calls.append(
                    FilterCall(
                        extender=number, asked=asked, left=asked if ignored else (), error=str(failed), ignored=ignored
                    )
                )
                if not ignored:
                    return Filtered(calls=tuple(calls), statuses=statuses, error=str(failed))
                continue
            for name, message in answer.failed_and_unresolvable.items():
                statuses[name] = Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(message,))
            for name, message in answer.failed.items():
                if name not in answer.failed_and_unresolvable:
                    statuses[name] = Status(code=Code.UNSCHEDULABLE, reasons=(message,))
            calls.append(
                FilterCall(
                    extender=number,
                    asked=asked,
                    left=tuple(node.name for node in kept),
                    failed=answer.failed,
                    failed_and_unresolvable=answer.failed_and_unresolvable,
                    whole=any(node.answered is not None for node in kept),
                )
            )
            left = kept
        return Filtered(calls=tuple(calls), left=left, statuses=statuses)

    # --- prioritize

    def prioritize(self, pod: Pod, left: Sequence[Feasible], nodes: NodeTable) -> tuple[ScoreCall, ...]:
        """All at the same time, about the same nodes; one that fails gives no scores."""
        numbers = self.serving(Verb.PRIORITIZE, pod)
        questions = tuple(self._about_nodes(Verb.PRIORITIZE, number, pod, left, nodes) for number in numbers)
        replies = self._asked(questions) if questions else ()
        names = {node.name for node in left}
        calls: list[ScoreCall] = []
        for number, question, reply in zip(numbers, questions, replies, strict=True):
            weight = self.configured[number].weight
            try:
                raw = priorities(question, reply)
            except ExtenderError as failed:
                calls.append(ScoreCall(extender=number, weight=weight, error=str(failed)))
                continue
            added: dict[str, int] = {}
            for host, score in raw:
                if host in names:
                    scaled = wrap_int64(score * weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY))
                    added[host] = wrap_int64(added.get(host, 0) + scaled)
            calls.append(ScoreCall(extender=number, weight=weight, raw=raw, added=added))
        return tuple(sorted(calls, key=lambda call: call.extender))

    # --- preempt

    def preempt(self, pod: Pod, candidates: tuple[Candidate, ...], nodes: NodeTable) -> Preempted:
        """One after the other; each one's answer takes the candidates' place. `nodes` are all of the cluster."""
        calls: list[PreemptCall] = []
        for number in self.serving(Verb.PREEMPT, pod):
            extender = self.configured[number]
            asked = as_victims(candidates, nodes)
            question = self._about_victims(number, pod, candidates, asked, nodes)
            try:
                answered = preemption_answer(question, self._one(question))
                found = [_candidate(extender, name, answered[name], nodes) for name in sorted(answered)]
                empty = next((candidate for candidate in found if not candidate.victims), None)
            except CrashError:
                raise UndecidableError(
                    f"the extender {extender.url_prefix} answers null where the victims of a node should be: "
                    "kube-scheduler crashes there, and decides nothing"
                ) from None
            except ExtenderError as failed:
                ignored = extender.ignorable
                calls.append(PreemptCall(extender=number, asked=asked, error=str(failed), ignored=ignored))
                if not ignored:
                    return Preempted(calls=tuple(calls), candidates=(), error=str(failed))
                continue
            left = as_victims(found, nodes)
            calls.append(PreemptCall(extender=number, asked=asked, left=left))
            if empty is not None and not extender.ignorable:
                name = nodes.cluster.names[empty.node]
                text = f"expected at least one victim pod on node {quoted(name)}"
                return Preempted(calls=tuple(calls), candidates=(), error=text)
            candidates = tuple(sorted((one for one in found if one.victims), key=lambda one: one.node))
            if not candidates:
                break
        return Preempted(calls=tuple(calls), candidates=candidates)

    # --- asking

    def _one(self, question: Question) -> Reply:
        return self._asked((question,))[0]

    def _asked(self, questions: tuple[Question, ...]) -> tuple[Reply, ...]:
        assert self._ask is not None
        return self._ask(questions)

    def _about_nodes(self, verb: Verb, number: int, pod: Pod, left: Sequence[Feasible], nodes: NodeTable) -> Question:
        extender = self.configured[number]
        names = tuple(node.name for node in left)

        def body() -> bytes:
            objects = self._objects
            whole = None
            if not extender.node_cache_capable:
                whole = [_whole(node, objects, nodes) for node in left]
            return filter_request(objects.incoming(pod), names, whole)

        return self._question(verb, number, pod, names, body)

    def _about_victims(
        self,
        number: int,
        pod: Pod,
        candidates: tuple[Candidate, ...],
        asked: Mapping[str, Victims],
        nodes: NodeTable,
    ) -> Question:
        extender = self.configured[number]
        about = tuple(
            f"{name}: {', '.join(victims.pods)} ({victims.pdb_violations})" for name, victims in asked.items()
        )

        def body() -> bytes:
            objects = self._objects
            rows = {row for candidate in candidates for row in candidate.victims}
            uids = {nodes.pods.key(row): nodes.pods.uids[row] for row in rows}
            whole = None
            if not extender.node_cache_capable:
                whole = {nodes.pods.key(row): objects.pod(nodes.pods[row]) for row in rows}
            return preempt_request(objects.incoming(pod), asked, whole, uids)

        return self._question(Verb.PREEMPT, number, pod, about, body)

    def _question(
        self, verb: Verb, number: int, pod: Pod, about: tuple[str, ...], body: Callable[[], bytes]
    ) -> Question:
        extender = self.configured[number]
        url = f"{extender.url_prefix.rstrip('/')}/{path_of(extender, verb)}"
        return Question(extender=extender, index=number, verb=verb, url=url, pod=pod.key, about=about, body=body)


def _whole(node: Feasible, objects: Objects, nodes: NodeTable) -> Mapping[str, object]:
    return objects.node(nodes.cluster.nodes[node.row]) if node.answered is None else node.answered.manifest


def as_victims(candidates: Sequence[Candidate], nodes: NodeTable) -> dict[str, Victims]:
    """Candidates by name, as requests and answers have them."""
    return {
        nodes.cluster.names[candidate.node]: Victims(
            pods=tuple(nodes.pods.key(row) for row in candidate.victims), pdb_violations=candidate.pdb_violations
        )
        for candidate in candidates
    }


def _kept(
    extender: Extender,
    asked: Sequence[Feasible],
    names: tuple[str, ...] | None,
    whole: tuple[AnsweredNode, ...] | None,
    index: Mapping[str, ClusterRow],
) -> tuple[Feasible, ...]:
    """The nodes that an answer leaves. Whole ones are taken as they are, asked about or not."""
    if extender.node_cache_capable and names is not None:
        known = {node.name: node for node in asked}
        strange = next((name for name in names if name not in known), None)
        if strange is not None:
            raise ExtenderError(
                f"extender {quoted(extender.url_prefix)} claims a filtered node {quoted(strange)} which is not found "
                "in the input node list"
            )
        return tuple(known[name] for name in names)
    found: list[Feasible] = []
    for answered in whole or ():
        node = answered.node
        row = index.get(node.name)
        if row is None:
            raise UndecidableError(
                f'the extender {extender.url_prefix} answers with node "{node.name}", which the cluster does not have: '
                "kube-scheduler takes it as it is, and what becomes of a pod there is not known"
            )
        found.append(Feasible(row=row, name=node.name, answered=answered))
    return tuple(found)


def _candidate(extender: Extender, name: str, answered: AnsweredVictims, nodes: NodeTable) -> Candidate:
    row = nodes.cluster.index.get(name)
    if row is None:
        raise ExtenderError(f"nodeinfo not found for node name {quoted(name)}")
    on_node: dict[str, int] = {}
    for pod in nodes.pods.on_node(row).tolist():
        on_node.setdefault(nodes.pods.uids[pod], pod)
    strange = next((uid for uid in answered.uids if uid not in on_node), None)
    if strange is not None:
        raise ExtenderError(
            f"extender: {extender.url_prefix} claims to preempt pod (UID: &{{{strange}}}) on node: {name}, but the pod "
            "is not found on that node"
        )
    victims = tuple(on_node[uid] for uid in answered.uids)
    return Candidate(node=row, victims=victims, pdb_violations=answered.pdb_violations)

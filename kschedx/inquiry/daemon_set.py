"""The nodes on which a DaemonSet runs, and why it does not run on others.

The DaemonSet controller creates a pod for each node that the template's node selector, node affinity, and tolerations
allow, and names the node in the pod. kube-scheduler then evaluates that node alone. Upstream: NodeShouldRunDaemonPod
and Predicates in pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import filterfalse

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.resource_quota import create_error_text
from kschedx.controllers.deployment import NoRollout
from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.rollouts import Rollout, RolloutDocument
from kschedx.controllers.state_causes import causes
from kschedx.controllers.states import BeingDeleted, Contradicted
from kschedx.explain.admission import QuotaLedger
from kschedx.explain.advice import FixGroup
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.kubelet import may_lack_node_support, start_obstacle
from kschedx.explain.node_groups import Blocker, NodeGroup
from kschedx.explain.root_causes import virtual_node
from kschedx.explain.setup import Setup, Subject, stored_subject
from kschedx.findings import Finding, UntoleratedTaint
from kschedx.fixes.owners import template_owner
from kschedx.framework.cycle import Outcome
from kschedx.grouping import group_pairs
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.pod import explain, no_scheduler, objection, start_failure, with_first_profile
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Document, part_of, to_json
from kschedx.kube.tolerations import NO_SCHEDULE
from kschedx.kube.workloads import pin_to_node, pinned_to
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.results import Shown
from kschedx.snapshot.columns import TableRow, each_row
from kschedx.snapshot.snapshot import Snapshot

_LEAVES_OUT = plugins_with(Trait.DAEMON_SET_CONTROLLER)


class DaemonSetDocument(Document, frozen=True, omit_defaults=True):
    name: str
    runs: tuple[str, ...]
    waits: tuple[tuple[str, ...], ...]
    left_out: tuple[tuple[str, ...], ...]
    cannot_start: Mapping[str, str] = {}  # node to the reason
    refused: int = 0
    refusal: str = ""
    rollout: RolloutDocument | None = None
    blocked_deletions: Mapping[str, str] = {}  # node to the reason why its pod is not gone yet
    misscheduled: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class DaemonSetAnswer(Shown, Struct, frozen=True, kw_only=True, dict=True):
    """The outcome of a DaemonSet's pods that do not run yet."""

    name: str  # `namespace/name`
    explanation: Explanation  # the answer about a pod that is not tied to a node
    subject: Subject
    cluster: Snapshot  # with the pods of the DaemonSet, which the subject's lacks
    setup: Setup
    has_pod: frozenset[str] = frozenset()  # the nodes on which a pod of the DaemonSet runs, which quotas count
    awaited: Mapping[str, Subject] = {}  # the nodes for which a pod of the DaemonSet is pending, with the pod
    reported: Mapping[str, Subject] = {}  # the same in the cluster's own state, before other pods are placed
    deleted: Mapping[str, Subject] = {}  # the nodes on which a pod of the DaemonSet is being deleted, with the pod
    rollout: Rollout | None = None
    node: str = ""  # the node whose pod is shown; empty if all are

    def __repr__(self) -> str:
        where = f" on {self.node}" if self.node else ""
        return f"<DaemonSetAnswer of {self.name}{where}: {self.outcome.value}>"

    def records(self) -> list[dict[str, object]]:
        """Return a row for each node."""
        rejected = [("pending", group) for group in self.waits] + [("not eligible", group) for group in self.left_out]
        rows = [(node, "fits", "") for node in self.runs]
        rows += [(node, "undecided", "") for node in self.disputed]
        rows += [(node, "cannot start", "") for node in self.cannot_start]
        rows += [(node, "being deleted", "") for node in self.blocked_deletions]
        for state, group in rejected:
            plugins = ", ".join(blocker.plugin for blocker in group.exemplar.blockers)
            rows += [(node, state, plugins) for node in self.names(group)]
        return [{"node": node, "state": state, "plugins": plugins} for node, state, plugins in rows]

    @cached_property
    def _admitted_count(self) -> tuple[int, str]:
        """The number of pods that quotas admit, and why they refuse the next one."""
        nodes = {*self._feasible, *self.kept, *(name for group in self.waits for name in self.names(group))}
        quotas = QuotaLedger(self.subject.snapshot, self.setup.release)
        number = len(self.has_pod.intersection(nodes))
        for _ in range(len(nodes) - number):
            refusal = quotas.take(self.subject.pod)
            if refusal is not None:
                return number, create_error_text(self.subject.pod, refusal)
            number += 1
        return number, ""

    @property
    def refused(self) -> int:
        """The number of nodes for which the API server refuses the pod, whichever nodes they are."""
        return self.eligible - self._admitted_count[0]

    @property
    def refusal(self) -> str:
        """Why pods are refused, as the event reports it; empty if all are admitted."""
        return self._admitted_count[1]

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return self.explanation.diagnosis

    @cached_property
    def _feasible(self) -> tuple[str, ...]:
        return tuple(name for name in self._feasible_alone if name not in self._rejected_by_own)

    @cached_property
    def _feasible_alone(self) -> Mapping[str, TableRow]:
        """The nodes on which its pod fits without the pods of the DaemonSet on other nodes, with their rows."""
        cycle = self.explanation.cycle
        if self.diagnosis.stops or cycle.nodes is None or cycle.feasible is None:
            return {}
        return {cycle.nodes.name(row): row for row in each_row(cycle.feasible)}

    @property
    def _concerns_own_pods(self) -> bool:
        """Whether a rule of its pod may count its pods on other nodes."""
        spec = self.subject.pod.spec
        spread = (constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spec.topology_spread_constraints)
        return bool(spec.required_pod_affinity or spec.required_anti_affinity) or any(spread)

    @property
    def awaits_own_pods(self) -> bool:
        """Whether pods without a node, or that its controller has not created yet, may reject each other."""
        return self._concerns_own_pods and not self.has_pod.issuperset(self._feasible_alone)

    @cached_property
    def _rejected_by_own(self) -> Mapping[str, Explanation]:
        """Nodes whose pending pod is rejected because of pods of the DaemonSet on other nodes, with the answers."""
        pending = (name for name in self._feasible_alone if name in self.awaited and self._concerns_own_pods)
        answers = ((name, explain(self.awaited[name], self.setup)) for name in pending)
        return {name: answer for name, answer in answers if answer.outcome is Outcome.UNSCHEDULABLE}

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The eligible nodes whose pod keeps the previous template until it is deleted (OnDelete)."""
        if self.rollout is None or not isinstance(self.rollout.strategy, NoRollout):
            return ()
        created = (group for group in self.diagnosis.groups if not _is_left_out(group))
        eligible = {*self._feasible, *(name for group in created for name in self.names(group))}
        return tuple(sorted(self.has_pod.difference(self.deleted).intersection(eligible)))

    @cached_property
    def cannot_start(self) -> Mapping[str, str]:
        """Nodes on which its pod fits and cannot start, with the reasons."""
        pod, snapshot = self.subject.pod, self.subject.snapshot
        names = self._feasible if may_lack_node_support(pod.spec) else ()
        obstacles = ((name, start_obstacle(snapshot, pod, name)) for name in names if name not in self.has_pod)
        return {name: obstacle.why for name, obstacle in obstacles if obstacle is not None} | self._start_failures

    @cached_property
    def _start_failures(self) -> dict[str, str]:
        """The nodes whose pending pod fits and does not start, according to the cluster's own reports."""
        pending = ((name, self.awaited[name]) for name in self._feasible if name in self.awaited)
        failures = ((name, start_failure(subject.snapshot, subject.pod, name)) for name, subject in pending)
        return {name: why for name, why in failures if why}

    @cached_property
    def disputed(self) -> tuple[str, ...]:
        """The nodes on which its pending pod fits, contrary to what the cluster itself reports."""
        pending = ((name, self.reported[name]) for name in self._feasible if name in self.reported)
        could_start = ((name, subject) for name, subject in pending if name not in self.cannot_start)
        nodes = tuple(name for name, it in could_start if objection(it.snapshot, it.pod, self.setup, name))
        is_open = bool(nodes) and isinstance(explain(self.reported[nodes[0]], self.setup).lifecycle, Contradicted)
        return nodes if is_open else ()

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The nodes on which its pod fits and can start."""
        others = {*self.cannot_start, *self.blocked_deletions, *self.disputed, *self.kept}
        return tuple(name for name in self._feasible if name not in others)

    @cached_property
    def blocked_deletions(self) -> Mapping[str, str]:
        """Nodes whose pod is being deleted and stays, with the reasons: of a finalizer, or of a lost node. The
        controller creates no other pod there, and counts a pod on a node that is not eligible as misscheduled."""
        states = ((node, pod_lifecycle(subject.snapshot, subject.pod)) for node, subject in self.deleted.items())
        return {
            node: next(causes(state))
            for node, state in states
            if isinstance(state, BeingDeleted) and (state.finalizers or state.is_node_lost)
        }

    @cached_property
    def misscheduled(self) -> tuple[str, ...]:
        """Nodes that are not eligible and run a pod, which the controller deletes. It keeps one on a node with another
        NoSchedule taint by now."""
        evicting = (group for group in self.left_out if not _keeps_pods(group))
        running = self.has_pod.difference(self.deleted)
        return tuple(name for group in evicting for name in self.names(group) if name in running)

    @cached_property
    def waits(self) -> tuple[NodeGroup, ...]:
        """Nodes for which a pod is created or exists that does not fit, by the plugins that reject it."""
        groups = self.diagnosis.groups
        awaited = (self._part(group, is_awaited=True) for group in groups if _is_left_out(group))
        created = map(self._without_kept, filterfalse(_is_left_out, groups))
        return (*(it for it in (*created, *awaited) if it.rows), *self._groups_rejected_by_own())

    def _groups_rejected_by_own(self) -> Iterator[NodeGroup]:
        rejections = [
            replace(group.exemplar, row=self._feasible_alone[name])
            for name, answer in self._rejected_by_own.items()
            for group in answer.diagnosis.groups
            if group.exemplar.name == name
        ]
        for alike in group_pairs((rejection.blockers, rejection) for rejection in rejections).values():
            yield NodeGroup(rows=tuple(rejection.row for rejection in alike), exemplar=alike[0])

    @property
    def first_pending(self) -> Explanation | None:
        """The answer about the pod of the first node where it does not fit."""
        return self.answer_on(self.names(self.waits[0])[0]) if self.waits else None

    @cached_property
    def left_out(self) -> tuple[NodeGroup, ...]:
        """Nodes for which no pod is created; other rejections there do not matter."""
        groups: dict[tuple[Blocker, ...], NodeGroup] = {}
        for group in map(self._part, filter(_is_left_out, self.diagnosis.groups)):
            blockers = tuple(blocker for blocker in group.exemplar.blockers if blocker.plugin in _LEAVES_OUT)
            key = tuple(replace(blocker, is_verdict=True) for blocker in blockers)
            rows = groups[key].rows if key in groups else ()
            if group.rows:
                groups[key] = NodeGroup(rows=(*rows, *group.rows), exemplar=replace(group.exemplar, blockers=blockers))
        return tuple(groups.values())

    def _part(self, group: NodeGroup, *, is_awaited: bool = False) -> NodeGroup:
        """Return the group's nodes for which no pod is pending, or those with one that the controller keeps
        (nodeShouldRunDaemonPod in pkg/controller/daemon/daemon_controller.go)."""
        if not self.awaited or not _keeps_pods(group):
            return replace(group, rows=()) if is_awaited else group
        names = zip(group.rows, self.names(group), strict=True)
        return replace(group, rows=tuple(row for row, name in names if (name in self.awaited) is is_awaited))

    def _without_kept(self, group: NodeGroup) -> NodeGroup:
        names = zip(group.rows, self.names(group), strict=True)
        return replace(group, rows=tuple(row for row, name in names if name not in self.kept)) if self.kept else group

    def names(self, group: NodeGroup) -> tuple[str, ...]:
        nodes = self.explanation.cycle.nodes
        assert nodes is not None, "only nodes that were evaluated are in groups"
        return tuple(nodes.name(row) for row in group.rows)

    def answer_on(self, node: str) -> Explanation:
        """Return the answer about the pod that the controller creates for one node, or about the one there whose
        deletion is blocked."""
        if node not in self._answers_by_node:
            self._answers_by_node[node] = self._answer_on(node)
        return self._answers_by_node[node]

    def _answer_on(self, node: str) -> Explanation:
        if node in self.blocked_deletions:
            return explain(self.deleted[node], self.setup)
        subject = replace(self.subject, pod=pin_to_node(self.subject.pod, node), first=None)
        if self._concerns_own_pods and node not in self.has_pod:
            subject = replace(subject, snapshot=self.cluster)
        if node in self.disputed:
            return explain(self.reported[node], self.setup)
        keeps_pod = node in self._start_failures or (node in self.awaited and self._is_on_delete)
        answer = explain(self.awaited[node] if keeps_pod else subject, self.setup)
        answer = self._rejected_by_own.get(node, answer)
        runs = node in self.has_pod  # whatever would keep another pod from starting
        return replace(answer, lifecycle=None, remedies=None) if runs else answer

    @property
    def _is_on_delete(self) -> bool:
        """Whether its pods keep their template until they are deleted."""
        owner = template_owner(self.subject.snapshot, self.subject.pod)
        return owner is not None and map_at(owner.manifest, "spec", "updateStrategy").get("type") == "OnDelete"

    @cached_property
    def _answers_by_node(self) -> dict[str, Explanation]:
        return {}

    @property
    def unable(self) -> Mapping[str, Sequence[str]]:
        """The reasons for which its pod cannot start, with their nodes."""
        return group_pairs((why, name) for name, why in self.cannot_start.items())

    @property
    def by_blocker(self) -> Mapping[str, Sequence[str]]:
        """The reasons for which pods that are being deleted stay, with their nodes."""
        return group_pairs((why, name) for name, why in self.blocked_deletions.items())

    @property
    def is_one_answer(self) -> bool:
        """Whether all pods have the same outcome, whatever their nodes."""
        decided = self.explanation.outcome in (Outcome.SCHEDULED, Outcome.UNSCHEDULABLE)
        return bool(self.diagnosis.stops) or not decided

    @property
    def eligible(self) -> int:
        """The number of nodes for which its controller creates a pod."""
        return len({*self._feasible, *self.kept}) + sum(group.count for group in self.waits)

    @property
    def outcome(self) -> Outcome:
        """The outcome of all pods: scheduled if every pod that is created fits. With a node, that of its pod."""
        if self.node:
            return Outcome.SCHEDULED if self.node in self.kept else self.answer_on(self.node).overall
        outcome = self.explanation.outcome
        if outcome in (Outcome.SCHEDULED, Outcome.UNSCHEDULABLE):
            stalls = self.rollout is not None and self.rollout.stalls
            is_blocked = not self.blocked_deletions.keys().isdisjoint(self._feasible)
            if self.waits or self.cannot_start or self.refused or stalls or is_blocked:
                return Outcome.UNSCHEDULABLE
            fits = Outcome.SCHEDULED if self.runs or self.kept else Outcome.UNSCHEDULABLE
            return Outcome.UNDECIDED if self.disputed else fits
        return outcome

    def _fix_of(self, group: NodeGroup) -> Fix | None:
        """Return the first fix that was tried for the pod of the first of these nodes. If the DaemonSet skips the node,
        fixes of the workload come first, and only a taint of a node that it selects and can run on calls for a fix."""
        is_left_out, name = group in self.left_out, self.names(group)[0]
        is_tainted = all(isinstance(finding, UntoleratedTaint) for finding in _excluding_findings(group))
        cluster = self.subject.snapshot.cluster
        if is_left_out and (not is_tainted or virtual_node(cluster.nodes[cluster.index[name]])):
            return None
        fixes = self.answer_on(name).fixes
        if is_left_out:
            return min(fixes, key=lambda fix: fix.group is not FixGroup.WORKLOAD, default=None)
        return next(iter(fixes), None)

    @cached_property
    def fixes_by_node(self) -> tuple[tuple[Fix, str], ...]:
        """The first fix of each group of nodes, and the node on which it was tried; pending pods come first."""
        firsts = [(self._fix_of(group), self.names(group)[0]) for group in self.waits]
        stuck = (nodes[0] for nodes in (*self.unable.values(), *self.by_blocker.values()))
        firsts += [(next(iter(self.answer_on(node).fixes), None), node) for node in stuck]
        firsts += [(self._fix_of(group), self.names(group)[0]) for group in self.left_out]
        fixes: dict[str, tuple[Fix, str]] = {}
        for fix, node in firsts:
            if fix is not None:
                fixes.setdefault(fix.title, (fix, node))
        return tuple(fixes.values())

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes of the DaemonSet as a whole, or the first one of each group of nodes. With a node, its pod's."""
        if self.node:
            return self.answer_on(self.node).fixes
        if self.is_one_answer or not self.eligible:
            return self.explanation.fixes
        return tuple(fix for fix, _ in self.fixes_by_node)

    def to_dict(self) -> dict[str, object]:
        """Return the Explanation of a pod that is not tied to a node, with the DaemonSet's nodes and fixes. With a
        node, return that of its pod."""
        if self.node:
            return self.answer_on(self.node).to_dict()
        waits, left_out = (tuple(map(self.names, groups)) for groups in (self.waits, self.left_out))
        document = self.explanation.to_dict() | {"fixes": [fix.to_dict() for fix in self.fixes]}
        if self.outcome is not self.explanation.outcome:
            document["overall"] = self.outcome.value
        daemon_set = part_of(DaemonSetDocument, self, waits=waits, left_out=left_out)
        return {**document, "daemonSet": to_json(daemon_set)}


def explain_daemon_set(name: str, subject: Subject, setup: Setup) -> DaemonSetAnswer:
    """Explain a DaemonSet by its name. `subject` is the pod of its template. Raises the errors of `explain`."""
    namespace = subject.pod.metadata.namespace
    pods = subject.snapshot.pods
    is_own = pods.owners.where(
        lambda owners: any(owner.controller and owner.kind == "DaemonSet" and owner.name == name for owner in owners)
    ) & pods.in_namespace(namespace)
    rows = np.flatnonzero(is_own).tolist()
    alone = replace(subject, snapshot=subject.snapshot.without_pods(rows), first=None) if rows else subject
    awaited = {
        pinned_to(pods.specs[row]): stored_subject(subject.snapshot, pods[row])
        for row in sorted({*rows}.intersection(pods.pending))
    }
    answer = DaemonSetAnswer(
        name=f"{namespace}/{name}",
        explanation=explain(alone, setup),
        subject=alone,
        cluster=subject.snapshot,
        setup=setup,
        has_pod=frozenset(pods.node_names[row] for row in rows if pods.node[row] >= 0),
        deleted={
            pods.node_names[row]: stored_subject(subject.snapshot, pods[row])
            for row in rows
            if pods.node[row] >= 0 and pods.terminating[row]
        },
        awaited=awaited,
        reported=awaited,
    )
    if answer.outcome is not Outcome.UNDECIDED:
        return answer
    for pod in (pods[row] for row in rows if not pods.node_names[row]):  # another kube-scheduler may report about one
        unknown = no_scheduler(subject.snapshot, pod, setup)
        if unknown is not None and (first := with_first_profile(alone, setup, unknown)) is not None:
            reported = replace(answer, subject=first[0], setup=first[1], explanation=explain(*first))
            return reported if reported.outcome is Outcome.UNSCHEDULABLE else answer
    return answer


def _is_left_out(group: NodeGroup) -> bool:
    return any(blocker.plugin in _LEAVES_OUT for blocker in group.exemplar.blockers)


def _keeps_pods(group: NodeGroup) -> bool:
    """Whether the controller keeps a pod on these nodes though it creates none: only a NoSchedule taint is in the
    way."""
    return all(isinstance(it, UntoleratedTaint) and it.effect == NO_SCHEDULE for it in _excluding_findings(group))


def _excluding_findings(group: NodeGroup) -> Iterator[Finding]:
    """Yield why the controller creates no pod for these nodes."""
    for blocker in group.exemplar.blockers:
        if blocker.plugin in _LEAVES_OUT:
            yield from blocker.findings

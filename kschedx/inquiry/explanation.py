"""The answer about one pod: its outcome, state, notes, and document; and the outcome of its other replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.states import (
    ComponentDown,
    Contradicted,
    ExitCode,
    Lifecycle,
    StateRow,
    decision_name,
    row_named,
    row_of,
    state_document,
)
from kschedx.errors import UndecidableError
from kschedx.explain.cycle_notes import RECORDED
from kschedx.explain.cycle_notes import notes as notes_of_cycle
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.kubelet import bound_by_hand
from kschedx.explain.notes import AFTER_CHANGES, TRIED, Note, RunsAlready, note
from kschedx.framework.cycle import Cycle, Outcome, UnevaluatedKind
from kschedx.framework.scheduler import Scheduler
from kschedx.inquiry.autoscalers import autoscaler_document, scalings_of
from kschedx.kube.documents import Document, part_of, to_json
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.storage import own_claims
from kschedx.results import Shown
from kschedx.snapshot.events import TRIGGERED_SCALE_UP
from kschedx.wording import count

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.holding import Holding
    from kschedx.holding.model import GangStatus
    from kschedx.inquiry.autoscalers import NodeAutoscaler, NodeScaling
    from kschedx.inquiry.document import FixCoverage
    from kschedx.inquiry.fix import Fix
    from kschedx.kube.types import Pod
    from kschedx.snapshot.snapshot import Snapshot

# The outcome of the replicas that a workload lacks, placed one after the other.


class ReplicasDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    workload: str  # `shop/deploy/web`
    wanted: int
    running: int  # the number of its pods that already had a node
    placed: Mapping[str, str]  # `namespace/name` to node, in the order of the queue
    pending: tuple[str, ...]  # replicas that get no node; if a rollout stalls, also those that are not created
    evicted: tuple[str, ...]  # preemption evicts them
    replaced: int  # the number of pods of the previous template that run until a rollout deletes them
    kubelet: str = ""
    """The node in spec.nodeName, whose kubelet admits or rejects them; empty if kube-scheduler decides."""
    undecided: str = ""  # why there may be more pods than these, or pods with larger requests
    refused: tuple[str, ...] = ()  # replicas that the API server refuses, so that kube-scheduler never sees them
    refusal: str = ""  # as the event about the first of `refused` reports it


class Replicas(ReplicasDocument, frozen=True, kw_only=True):
    """The outcome of all replicas, in addition to the explanation of one of them: the first without a node, else the
    first that evicts others, else the first."""

    evicted: tuple[str, ...] = ()
    replaced: int = 0
    outdated: int = 0  # the number of replaced pods that still exist
    disputed: tuple[str, ...] = ()  # placed pods that do not start, as the cluster reports or their node shows

    @property
    def total(self) -> int:
        """The number of replicas in question."""
        return len(self.placed) + len(self.pending) + len(self.refused)

    @property
    def fits(self) -> bool:
        return not self.pending and not self.refused


_OF_TEMPLATE = ("deploy", "rs", "rc", "sts", "job")
"""Workloads whose pods all use the claims of one template; an operator may give each pod its own."""

# The answer about one pod, as the library returns it and as `-o json` prints it.

_OVERALL = {
    ExitCode.SCHEDULABLE: Outcome.SCHEDULED,
    ExitCode.UNSCHEDULABLE: Outcome.UNSCHEDULABLE,
    ExitCode.UNDECIDED: Outcome.UNDECIDED,
}


class Explanation(Shown, Struct, frozen=True, dict=True):
    """Why kube-scheduler assigns a pod to a node, or to none. Everything is read from `cycle`; fixes are tried on
    request."""

    cycle: Cycle
    scheduler: Scheduler
    first_notes: tuple[Note, ...] = ()
    """How the question was understood, and how the API server would change the pod's manifest."""
    autoscalers: tuple[NodeAutoscaler, ...] = ()  # the cluster's autoscalers that have a decision to make about the pod
    fix_search: Callable[[Explanation], Iterable[Fix]] | None = None
    """Tries fixes of this answer, in the order in which they are shown; None if only the outcome matters."""
    replicas: Replicas | None = None  # the outcome of the workload's other replicas, if there were several in question
    covering: Callable[[Explanation, Fix], FixCoverage | None] | None = None
    """Tries a fix of this pod for the other pending replicas; None for a single pod."""
    lifecycle: Lifecycle | None = None
    """Why no decision of kube-scheduler answers the question. If a cycle was run, it shows what kube-scheduler would
    decide."""
    remedies: Callable[[], tuple[Fix, ...]] | None = None
    """Return the fixes of a `lifecycle`, or of replicas that the API server refuses beside others."""
    setup: Setup | None = None  # with a setup, fixes may create pods, and are tried on the whole cluster
    before: Snapshot | None = None  # the cluster without the manifests in question; None if there are none
    drained: frozenset[str] = frozenset()  # nodes that the question drains or cordons, which no fix uncordons

    @property
    def is_run(self) -> bool:
        """Whether the pod went through a scheduling cycle."""
        return bool(self.cycle.pre_enqueue or self.cycle.pre_filter or self.cycle.nodes or self.cycle.message)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return Diagnosis(self.cycle)

    @cached_property
    def state(self) -> StateRow:
        """The row of the table of states that answers the question."""
        return row_of(self.lifecycle) if self.lifecycle is not None else row_named(self._decision())

    def _decision(self) -> str:
        outcome = self.overall
        if self.holding.scheduler is not None:
            return "OtherScheduler"
        if outcome is Outcome.UNSCHEDULABLE and self.gang is not None and self.gang.is_short:
            return "WaitingForGang"
        if outcome is Outcome.UNSCHEDULABLE and self.is_nominated:
            return "Nominated"
        return "ScaleUp" if outcome is Outcome.UNSCHEDULABLE and self.is_scaled_up else decision_name(outcome)

    @property
    def exit_code(self) -> ExitCode:
        return self.state.exit_code

    @property
    def gang(self) -> GangStatus | None:
        """The pod's group, if the profile starts all of its pods or none."""
        pod = self.cycle.pod
        spec = pod.spec
        if not (spec.scheduling_group or spec.workload_ref or POD_GROUP_LABEL in pod.metadata.labels):
            return None
        group = self.holding.group
        return group if group is not None and group.is_heeded else None

    @property
    def is_nominated(self) -> bool:
        """Whether victims of the pod are still terminating on its nominated node."""
        return bool(self.victims)

    @cached_property
    def victims(self) -> tuple[str, ...]:
        return self.cycle.snapshot.terminating_victims(self.cycle.pod)

    @property
    def nominated_text(self) -> str:
        """What a pod with victims waits for."""
        victims, node = count(len(self.victims), "victim"), self.cycle.pod.status.nominated_node_name
        return f"waits for {victims} to terminate on its nominated node {node}"

    @property
    def is_scaled_up(self) -> bool:
        """Whether an autoscaler adds a node for the pod, or reports that it does."""
        event = None if self.autoscalers else self.cycle.snapshot.autoscaler_events.get(self.cycle.pod.key)
        is_reported = event is not None and event.reason == TRIGGERED_SCALE_UP
        return (is_reported or any(scaling.adds_node for scaling in self.scalings)) and self.autoscaler_down is None

    @cached_property
    def autoscaler_down(self) -> ComponentDown | None:
        """The autoscaler that would help, if the cluster shows its pods but none of them runs."""
        from kschedx.controllers.pod_lifecycle import add_on_down

        if not self.scalings:
            return None
        return add_on_down(self.cycle.snapshot, self.cycle.pod.key, self.scalings[0].autoscaler.name)

    def __repr__(self) -> str:
        return f"<Explanation of {self.cycle.pod.key}: {self.outcome.value}>"

    @property
    def outcome(self) -> Outcome:
        return self.cycle.outcome

    @cached_property
    def runs_on(self) -> str:
        """The node of a pod that has one already and was evaluated as if it had none; empty for any other."""
        return next((each.node for each in self.first_notes if isinstance(each, RunsAlready)), "")

    @cached_property
    def becomes(self) -> Outcome:
        """The pod's outcome. If spec.nodeName has bound it already, the known checks of the kubelet decide. A static
        pod never needs kube-scheduler."""
        if any(isinstance(each, RunsAlready) and each.is_static for each in self.first_notes):
            return Outcome.SCHEDULED
        if (bound := bound_by_hand(self.cycle)) is None:
            return self.outcome
        return Outcome.SCHEDULED if bound.is_taken else Outcome.UNSCHEDULABLE

    @property
    def alone(self) -> Outcome:
        """The outcome of the pod without its replicas, but with its gang."""
        if self.outcome is Outcome.SCHEDULED and self.gang is not None and self.gang.lacks_room:
            return Outcome.UNSCHEDULABLE
        return self.becomes

    @property
    def overall(self) -> Outcome:
        """The outcome of everything in question: of all replicas, and of a pod's group. A pod with victims is
        unschedulable until they are gone."""
        if self.lifecycle is not None:
            return _OVERALL[row_of(self.lifecycle).exit_code]
        if self.replicas is None:
            return self.alone
        if self.replicas.fits:
            now = Outcome.UNSCHEDULABLE if self.replicas.evicted else Outcome.SCHEDULED
            return Outcome.UNDECIDED if self.replicas.undecided else now
        return Outcome.UNSCHEDULABLE if self.becomes is Outcome.SCHEDULED else self.becomes

    @property
    def best_nodes(self) -> tuple[str, ...]:
        """The nodes with the highest total."""
        return tuple(self.cycle.all_nodes.cluster.names[row] for row in self.cycle.best)

    @property
    def chosen_nodes(self) -> tuple[str, ...]:
        """The nodes from which kube-scheduler chooses: `best_nodes`, unless the pod's nominated node fits."""
        return tuple(self.cycle.all_nodes.cluster.names[row] for row in self.cycle.choice)

    @property
    def message(self) -> str:
        """kube-scheduler's FailedScheduling text; empty if the pod can be scheduled."""
        return self.cycle.message

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """Changes that were tried on an overlay of the snapshot, cheapest first; first those after which Kueue admits
        the pod's Workload."""
        return tuple(self.each_fix())

    def each_fix(self) -> Iterator[Fix]:
        """Yield the fixes. Most are tried on the whole cluster only when they are needed, and the clusters in which
        they are tried are freed with the iterator."""
        if "fixes" in self.__dict__:
            yield from self.fixes
            return
        is_placed = self.becomes is Outcome.SCHEDULED and self.overall is Outcome.SCHEDULED
        if is_placed and self.remedies is None and self.holding.kueue is None and self.holding.scheduler is None:
            return
        fixes: list[Fix] = []
        for fix in () if self.fix_search is None else self.fix_search(self):
            fixes.append(fix)
            yield fix
        self.__dict__["fixes"] = tuple(fixes)

    def coverage(self, fix: Fix) -> FixCoverage | None:
        """Return the number of pending replicas that a fix helps; None if that was not tried."""
        if fix.helps is not None and self.replicas is not None and len(pending := self.replicas.pending) > 1:
            from kschedx.inquiry.document import FixCoverage

            return FixCoverage(title=fix.title, pods=sum(key in fix.helps for key in pending), of=len(pending))
        return None if self.covering is None else self.covering(self, fix)

    @cached_property
    def scalings(self) -> tuple[NodeScaling, ...]:
        """The decision of each autoscaler about a pod that fits no node; none if the pod fits."""
        is_changed = any(each.id in (AFTER_CHANGES, TRIED) for each in self.first_notes)
        return tuple(scalings_of(self.autoscalers, self._rejected_pod, is_changed=is_changed))

    @property
    def _rejected_pod(self) -> Pod:
        """The pod as an autoscaler sees it after this attempt: kube-scheduler stores that it is unschedulable together
        with the node that preemption nominates, and clears an earlier one if it finds no victims. Upstream: Preempt in
        preemption.go, and handleSchedulingFailure in schedule_one.go."""
        pod, preemption = self.cycle.pod, self.cycle.post_filter
        if preemption is None or (preemption.dry_run is None and not preemption.best):
            return pod
        node = self.cycle.all_nodes.cluster.names[preemption.best[0]] if preemption.best else ""
        return replace(pod, status=replace(pod.status, nominated_node_name=node))

    @cached_property
    def no_fix(self) -> str:
        """Why there is no fix; empty if there is a complete fix, or nothing to fix."""
        of_worker = self.holding.kueue is not None and self.holding.kueue.is_dispatched
        if self.becomes is Outcome.SCHEDULED or self.lifecycle is not None or of_worker:
            return ""
        from kschedx.fixes import FixCertainty, why_no_fix
        from kschedx.words import headline

        if any(fix.certainty is not FixCertainty.PARTIAL or fix.of_group is not None for fix in self.fixes):
            return ""
        end = why_no_fix(self.scheduler, self.cycle)
        is_open = self.fix_search is None or any(fix.feasible_nodes for fix in self.fixes)
        if end is None or (end.is_untold and is_open):
            return ""  # no change was tried, or another component decides about the tried ones
        return ": ".join(filter(None, (end.text, "; ".join(map(headline, end.findings)))))

    @cached_property
    def holding(self) -> Holding:
        """The component that holds the pod before kube-scheduler sees it, or decides instead of kube-scheduler."""
        from kschedx.holding import find_holding

        return find_holding(self.scheduler, self.cycle)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the limits of the answer, such as sampling, ties, and missing objects."""
        of_cycle = notes_of_cycle(self.cycle)
        facts = self.lifecycle
        is_partial = isinstance(facts, Contradicted) and bool(
            facts.kinds or facts.namespaces or facts.counted > facts.known
        )
        # the pod's message is from another scheduler, or what the dump lacks explains it
        if self.holding.scheduler is not None or is_partial:
            of_cycle = tuple(each for each in of_cycle if each.id != RECORDED)
        return (*self.first_notes, *self._own_rejection(), *self._shared_claims(), *of_cycle)

    def _own_rejection(self) -> Iterator[Note]:
        """Yield what kube-scheduler would report if it finds no node for a pod of another scheduler: most others have
        its filters."""
        is_of_other = any(each.kind is UnevaluatedKind.SCHEDULER for each in self.cycle.unevaluated)
        if not is_of_other or self.is_run or not self.cycle.snapshot.cluster.nodes:
            return
        with contextlib.suppress(UndecidableError):
            message = self.scheduler.schedule(self.cycle.pod, self.scheduler.config.profiles[0]).message
            if message:
                yield note("own-rejection", f"kube-scheduler would report: {message.partition('. ')[0]}")

    def _shared_claims(self) -> Iterator[Note]:
        """Yield the claims for one node that replicas on several nodes share, which kube-scheduler does not compare."""
        workload = "" if self.replicas is None else self.replicas.workload.split("/")[1]
        nodes = set(self.replicas.placed.values()) if self.replicas is not None and workload in _OF_TEMPLATE else ()
        pod, storage = self.cycle.pod, self.cycle.snapshot.storage
        for claim in storage.claims_of(pod) if len(nodes) > 1 else ():
            is_own = own_claims(pod)[claim.key] or claim.key.endswith(f"-{pod.metadata.name}")  # of a StatefulSet
            if not is_own and set(claim.spec.access_modes) == {"ReadWriteOnce"}:
                text = f"the replicas share claim {claim.key} (ReadWriteOnce): pods on a second node may not start"
                yield note("shared-claim", text, claim=claim.key)

    def after_fix(self, fix: Fix) -> Explanation:
        """Return the answer about the same pod after a fix of this answer. Raises `UndecidableError`."""
        if (then := fix.then) is not None:
            cycle = then.scheduler.schedule(then.pod, then.profile)
            return Explanation(cycle, then.scheduler, self.first_notes, fix_search=self.fix_search)
        from kschedx.fixes.proposal import Proposal, apply_steps

        before = self.cycle.snapshot
        proposal = apply_steps(fix.steps, Proposal(pod=self.cycle.pod), before)
        snapshot = proposal.cluster(before)
        scheduler = self.scheduler if snapshot is before else self.scheduler.on(snapshot)
        cycle = scheduler.schedule(proposal.pod, self.cycle.profile)
        return Explanation(cycle, scheduler, self.first_notes, autoscalers=self.autoscalers, fix_search=self.fix_search)

    def records(self) -> list[dict[str, object]]:
        """Return a row for each node that reached Filter, with its total if the pod fits. Nodes with a total come
        first, since polars infers a column's type from its first rows."""
        cycle = self.cycle
        if cycle.filter is None or cycle.nodes is None:
            return []
        scores = cycle.scores
        totals = {} if scores is None else dict(zip(scores.nodes.names, scores.totals.tolist(), strict=True))
        all_records: list[dict[str, object]] = []
        for row, name in zip(cycle.nodes.each(), cycle.nodes.names, strict=True):
            status = cycle.filter.status(row)
            all_records.append(
                {
                    "node": name,
                    "code": status.code.text,
                    "plugin": status.plugin,
                    "reasons": "; ".join(status.reasons),
                    "total": totals.get(name),
                }
            )
        return sorted(all_records, key=lambda record: record["total"] is None)

    def to_dict(self) -> dict[str, object]:
        """Return the Explanation document as plain dicts, lists, strings, and integers."""
        from kschedx.inquiry.document import KubeletDocument, explanation_document

        hopeless = (Note(id="no-fix", text=self.no_fix),) if self.no_fix else ()
        fixes = [fix.document(self.coverage(fix) if self.covering is not None else None) for fix in self.fixes]
        document = explanation_document(self.cycle, fixes, [item.document for item in (*self.notes, *hopeless)])
        scaled = autoscaler_document(scaling.document for scaling in self.scalings)
        if scaled.get("kind") == "cluster-autoscaler":  # it stands before the state, Karpenter's behind
            document["autoscaler"] = scaled
        if (bound := bound_by_hand(self.cycle)) is not None:
            document["kubelet"] = to_json(part_of(KubeletDocument, bound))
        document["state"] = self.state_document
        if self.overall is not self.outcome:
            document["overall"] = self.overall.value
        if self.replicas is not None:
            document["replicas"] = to_json(part_of(ReplicasDocument, self.replicas))
        if scaled:
            document["autoscaler"] = scaled
        if self.holding:
            from kschedx.inquiry.document import holding_document

            document["holding"] = holding_document(self.holding)
        return document

    @property
    def state_document(self) -> dict[str, object]:
        return {"name": self.state.name} if self.lifecycle is None else state_document(self.lifecycle)

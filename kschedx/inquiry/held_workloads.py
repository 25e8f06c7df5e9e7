"""Why pods of a cluster are in no queue of kube-scheduler: Kueue does not admit their Workload, they are being deleted,
or nothing creates them because a workload is paused or suspended."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress

import msgspec

from kschedx.controllers.due_deletions import rows_awaited, rows_to_be_deleted
from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.states import BeingDeleted, OfEndedJob, Paused, Suspended, headline
from kschedx.controllers.workload_lifecycle import workload_lifecycle
from kschedx.controllers.workloads import Workload
from kschedx.errors import KschedxError
from kschedx.explain.setup import Setup, stored_subject
from kschedx.inquiry.autoscalers import AutoscalingOptions
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.manifests import written_from
from kschedx.inquiry.pod import WithoutDecision, answer_with_fixes, explain
from kschedx.inquiry.target import pod_of_workload
from kschedx.kube import kueue
from kschedx.kube.controllers import stored_metadata
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

_MOST_NAMED = 3
_MOST_OF_KUEUE = 10  # explained Workloads; with hundreds of them in a queue, each takes a tenth of a second
_MOST_OF_GATES = 3
_IS_HELD = lazy_pattern(rb'"(?:paused|suspend)":\s*true')


def held_by_kueue(
    snapshot: Snapshot, pending: Container[str], setup: Setup, autoscaling: AutoscalingOptions | None
) -> Iterator[Explanation]:
    """Yield the answer about the pending Workloads of Kueue, `namespace/name`: about the suspended workload, the first
    pod that is gated, or else a pod of its template. Of equal Workloads the first is explained, and of different ones
    the first ten."""
    different = dict[object, kueue.Workload]()
    for workload in (each for each in snapshot.of(kueue.Workload) if each.key in pending):
        spec = workload.spec
        requested = msgspec.json.encode([(each.count, each.min_count, each.template.spec) for each in spec.pod_sets])
        queue = workload.metadata.namespace, spec.queue_name, spec.priority, spec.active
        different.setdefault((*queue, requested), workload)
    for workload in [*different.values()][:_MOST_OF_KUEUE]:
        try:
            yield _kueue_answer(snapshot, workload, setup, autoscaling)
        except KschedxError:  # kschedx cannot decide about its pods, and Kueue's message has the cause
            continue


def _kueue_answer(
    snapshot: Snapshot, workload: kueue.Workload, setup: Setup, autoscaling: AutoscalingOptions | None
) -> Explanation:
    namespace, owners = workload.metadata.namespace, workload.metadata.owner_references
    manifests = (snapshot.manifest_of((owner.kind, namespace, owner.name)) for owner in owners)
    keys = (f"{namespace}/{owner.name}" for owner in owners if owner.kind == "Pod")
    row = next((snapshot.pods.rows[key] for key in keys if key in snapshot.pods.rows), None)
    if row is not None:
        return explain(stored_subject(snapshot, snapshot.pods[row]), setup, autoscaling)
    manifest = next(filter(None, manifests), None)
    written = pod_of_workload(workload) if manifest is None else written_from(snapshot, dict(manifest))
    decision = WithoutDecision(
        written=written, before=snapshot, snapshot=snapshot, setup=setup, autoscaling=autoscaling
    )
    return decision.answer() or explain(written.admit(snapshot, setup), setup, autoscaling)


def held_by_gates(snapshot: Snapshot, gated: Iterable[str], setup: Setup) -> Iterator[Explanation]:
    """Yield the answer about the first pod of each set of scheduling gates, without those of Kueue's Workloads."""
    pods, first = snapshot.pods, dict[object, int]()
    for row in map(pods.rows.__getitem__, gated):
        gates = pods.specs[row].scheduling_gates
        if kueue.ADMISSION_GATE not in {gate.name for gate in gates}:
            first.setdefault(gates, row)
    for row in [*first.values()][:_MOST_OF_GATES]:
        with suppress(KschedxError):
            yield explain(stored_subject(snapshot, pods[row]), setup)


def selecting_no_node(
    snapshot: Snapshot, workloads: Iterable[Workload], setup: Setup
) -> Iterator[tuple[str, Explanation]]:
    """Yield those of the workloads without pods that are DaemonSets, with the answers about their templates."""
    for workload in workloads:
        manifest = snapshot.manifest_of(workload) if workload.kind == "DaemonSet" else None
        if manifest is not None:
            with suppress(KschedxError):
                yield workload.reference, explain(written_from(snapshot, manifest).admit(snapshot, setup), setup)


def being_deleted(snapshot: Snapshot, setup: Setup) -> Iterator[Explanation]:
    """Yield the answer about each pod without a node that is being deleted, or that the Job controller deletes, and
    about each pod that stays terminating while its controller waits until it is gone."""
    pods = snapshot.pods
    for row in sorted({*rows_to_be_deleted(snapshot, pods.pending), *rows_awaited(snapshot)}):
        if isinstance(facts := pod_lifecycle(snapshot, pods[row]), BeingDeleted | OfEndedJob):
            yield answer_with_fixes(stored_subject(snapshot, pods[row]), setup, facts)


def idle_text(snapshot: Snapshot, within: str | None = None) -> str:
    """Return which workloads of one namespace or of all wait for their users, who paused or suspended them; empty if
    there are none."""
    reads = list[str]()
    for (kind, namespace, name), raw in snapshot.workloads.items():
        is_part = kind == "CronJob" or stored_metadata(raw).controller is not None
        if is_part or within not in (None, namespace) or not _IS_HELD.search(raw):
            continue
        manifest = snapshot.manifest_of((kind, namespace, name))
        state = None if manifest is None else workload_lifecycle(snapshot, manifest)
        if isinstance(state, Paused) or (isinstance(state, Suspended) and not state.queue):
            reads.append(headline(state))
    more = len(reads) - _MOST_NAMED
    others = (f"{count(more, 'other workload')} {'is' if more == 1 else 'are'} paused or suspended",)
    return "; ".join((*reads[:_MOST_NAMED], *(others if more > 0 else ())))

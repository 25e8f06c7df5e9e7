"""`kschedx why` for many pods of the cluster: those that wait, and those that have some labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli.options import namespace_of_many
from kschedx.cli.output import Format, write
from kschedx.cli.question import Question, shard_of
from kschedx.cli.wanted import Wanted
from kschedx.cli.why_many import Asked, Item, command_of

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import Autoscaler
    from kschedx.cli.connection import Reached
    from kschedx.explain.setup import Setup
    from kschedx.karpenter.cluster import Karpenter


def why_pods_of_cluster(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> int:
    """A row for each reason, or every document."""
    from kschedx.answer.run import autoscaler_of, explain, karpenter_of
    from kschedx.answer.subject import stored
    from kschedx.cli import connection
    from kschedx.explain.failed_creates import without_pods
    from kschedx.explain.many import alike, owner_of
    from kschedx.render.many import evicted_note, without_pods_note
    from kschedx.render.words.notes import note_text
    from kschedx.simulate.in_turn import InTurn

    snapshot = reached.snapshot
    rows = _rows(question, wanted, reached, setup)
    connection.tell_missing(snapshot)
    connection.tell_left_out(setup)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))

    waits = not wanted.alone and not {*snapshot.pods.pending}.isdisjoint(rows)
    in_turn = InTurn.of(snapshot, setup) if waits else None
    kinds = {} if setup.scheduler.config.extenders else alike(snapshot, rows)

    def item(row: int) -> Item:
        pod = snapshot.pods[row]
        owner = owner_of(snapshot, pod)
        alone = Item(
            pod=pod.key,
            owner=owner,
            priority=int(snapshot.pods.priorities[row]),
            command=command_of(pod.metadata.namespace, owner, pod.metadata.name),
            explain=lambda: explain(stored(snapshot, snapshot.pods[row]), setup, autoscaler, karpenter),
            like=kinds.get(row),
        )
        if in_turn is None or not in_turn.is_queued(pod.key):
            return alone
        return replace(
            alone,
            explain=lambda: in_turn.explanation(pod.key),
            node=in_turn.node(pod.key),
            taken=in_turn.taken(pod.key),
            waits=in_turn.message(pod.key),
            like=(kinds[row], in_turn.message(pod.key)) if row in kinds else None,
        )

    autoscaler, said = autoscaler_of(snapshot, question.autoscaling, setup.scheduler) if rows else (None, ())
    karpenter, unread = karpenter_of(snapshot, question.provisioning) if rows else (None, ())
    said = (*said, *unread)
    within = _namespace(question, wanted, reached)
    unmade = () if wanted.selector else without_pods_note(tuple(without_pods(snapshot, within)))
    notes = (*unmade, *evicted_note(() if in_turn is None else in_turn.evicted), *map(note_text, said))
    if part is None:  # what is added is for all pods, and no part has them
        notes = (*notes, *_growth(autoscaler, karpenter))
    mended = None if in_turn is None else in_turn.mended
    nothing = "; ".join((_nothing(wanted), *unmade))
    items = [item(row) for row in rows]
    asked = Asked(items, jobs=question.jobs(), notes=notes, nothing=nothing, mended=mended)
    report = asked.report()
    write(report if part is None else report.marked(part), wanted.output)
    return asked.exit_code


def _rows(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> list[int]:
    """The pods that are asked about, in the order of the queue."""
    from kschedx.api.label_query import parse_label_query
    from kschedx.explain.many import rows_in_queue_order

    return rows_in_queue_order(
        reached.snapshot,
        setup.scheduler,
        namespace=_namespace(question, wanted, reached),
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
    )


def _namespace(question: Question, wanted: Wanted, reached: Reached) -> str | None:
    """The one that is asked about; None for all."""
    return namespace_of_many(
        question.namespace, reached.namespace, everywhere=wanted.all_namespaces, by_labels=not wanted.all_pending
    )


def _growth(autoscaler: Autoscaler | None, karpenter: Karpenter | None) -> Iterator[str]:
    """What is added for all pods that wait."""
    if autoscaler is None and karpenter is None:
        return
    from kschedx.autoscaler.growth import grow
    from kschedx.karpenter.growth import grow as provisioned
    from kschedx.render.growth import growth_texts

    yield from growth_texts(
        None if autoscaler is None else grow(autoscaler), None if karpenter is None else provisioned(karpenter)
    )


def _nothing(wanted: Wanted) -> str:
    """What is said where there are no such pods."""
    if not wanted.selector:
        return "no pod is waiting for a node"
    return "no pod with these labels is waiting for a node" if wanted.all_pending else "no pod has these labels"

"""`kschedx why` for many pods: those of manifests, and those of the cluster that wait or have some labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kschedx.cli.output import Format, write
from kschedx.cli.question import Question, shard_of
from kschedx.cli.wanted import Wanted
from kschedx.cli.why_one import place_of, subject_of

if TYPE_CHECKING:
    from kschedx.api.types import Pod
    from kschedx.cli.connection import Reached
    from kschedx.cli.manifests import Written
    from kschedx.explain.setup import Setup
    from kschedx.snapshot.snapshot import Snapshot


def why_several(
    question: Question, wanted: Wanted, snapshot: Snapshot, setup: Setup, found: Sequence[Pod | Written]
) -> int:
    """Every pod of some manifests, by what keeps them out."""
    from kschedx.answer.run import explain
    from kschedx.api.types import Pod
    from kschedx.cli.manifests import Written
    from kschedx.cli.why_many import Asked, Item
    from kschedx.errors import InputError
    from kschedx.explain.many import owner_of

    about_one = {
        "watch": wanted.watch,
        "dry-run=server": wanted.dry_run,
        "fix": wanted.fix,
        "try": wanted.tries,
    }
    for name, is_asked in about_one.items():
        if is_asked:
            raise InputError(f"--{name} is about one pod, and there are several")
    items = []
    for one in found:
        subject = subject_of(question, snapshot, setup, one, wanted)
        pod = subject.pod
        owner = one.title if isinstance(one, Written) and one.workload else owner_of(snapshot, pod)
        items.append(
            Item(
                pod=pod.key,
                owner=owner,
                priority=pod.spec.priority or 0,
                command=_command(pod.metadata.namespace, owner, pod.metadata.name, wanted.files),
                explain=partial(explain, subject, setup),
                place=place_of(one),
            )
        )
    asked = Asked(items, competing=any(not isinstance(one, Pod) for one in found))
    write(asked.report(), wanted.output)
    return asked.exit_code


def _command(namespace: str, owner: str, name: str, files: Sequence[str] = ()) -> str:
    """What tells one pod's whole story."""
    from kschedx.api.workloads import SHORT_NAMES

    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if files and short else f"pod/{name}"
    return f"kschedx why {target} -n {namespace}" + "".join(f" -f {file}" for file in files)


def why_pods_of_cluster(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> int:
    """A row for each reason, or every document."""
    from kschedx.answer.run import autoscaler_of, explain
    from kschedx.answer.subject import stored
    from kschedx.api.label_query import parse_label_query
    from kschedx.cli import connection
    from kschedx.cli.why_many import Asked, Item
    from kschedx.explain.many import owner_of, rows_in_queue_order
    from kschedx.render.many import evicted_note
    from kschedx.render.words.notes import note_text
    from kschedx.simulate.in_turn import InTurn

    snapshot, namespace = reached.snapshot, question.namespace
    is_everywhere = wanted.all_namespaces or (namespace is None and wanted.all_pending)
    rows = rows_in_queue_order(
        snapshot,
        namespace=None if is_everywhere else namespace or reached.namespace,
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
    )
    connection.tell_missing(snapshot)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))

    in_turn = InTurn.of(snapshot, setup) if wanted.all_pending and not wanted.alone and rows else None

    def item(row: int) -> Item:
        pod = snapshot.pods[row]
        owner = owner_of(snapshot, pod)
        if in_turn is not None and in_turn.is_queued(pod.key):
            return Item(
                pod=pod.key,
                owner=owner,
                priority=int(snapshot.pods.priorities[row]),
                command=_command(pod.metadata.namespace, owner, pod.metadata.name),
                explain=lambda: in_turn.explanation(pod.key),
                node=in_turn.node(pod.key),
                taken=in_turn.taken(pod.key),
            )
        return Item(
            pod=pod.key,
            owner=owner,
            priority=int(snapshot.pods.priorities[row]),
            command=_command(pod.metadata.namespace, owner, pod.metadata.name),
            explain=lambda: explain(stored(snapshot, snapshot.pods[row]), setup, autoscaler),
        )

    autoscaler, said = autoscaler_of(snapshot, question.autoscaling, setup.scheduler) if rows else (None, ())
    notes = (*evicted_note(() if in_turn is None else in_turn.evicted), *map(note_text, said))
    if autoscaler is not None and part is None:
        from kschedx.autoscaler.growth import grow
        from kschedx.render.autoscaler import growth_text

        notes = (*notes, growth_text(grow(autoscaler)))
    asked = Asked([item(row) for row in rows], jobs=question.jobs(), notes=notes)
    report = asked.report()
    write(report if part is None else report.marked(part), wanted.output)
    return asked.exit_code

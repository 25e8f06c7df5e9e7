"""The cluster after the changes of a command line, for commands whose question comes after them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from kschedx.cli.connection import Reached
from kschedx.cli.question import Question

if TYPE_CHECKING:
    from kschedx.explain.notes.question import AfterChanges
    from kschedx.explain.setup import Setup
    from kschedx.simulate.changes import Change
    from kschedx.simulate.workloads import Workload
    from kschedx.snapshot.snapshot import Snapshot


_SHOWN = 3


def changed(
    question: Question,
    reached: Reached,
    setup: Setup,
    asked: Callable[[Snapshot], Collection[str]] | None = None,
    theirs: Collection[Workload] = (),
) -> tuple[Reached, tuple[AfterChanges, ...]]:
    """The cluster after the changes, with everything placed that they made or evicted, but for the pods that are asked
    about, `namespace/name`; `theirs` are the workloads that are, whose new templates are not rolled out. And a note
    about the changes, where there are any. A drain or a rollout that is not done is told on stderr. Raises
    `InputError`."""
    if not question.changes:
        return reached, ()
    from kschedx.explain.notes.question import AfterChanges
    from kschedx.render.changes import rollout_text
    from kschedx.render.drain import verdict
    from kschedx.render.safe import visible
    from kschedx.simulate.simulator import Options
    from kschedx.simulate.what_if import settled

    tell_foreign(question.changes)
    options = Options(force=question.force, delete_emptydir_data=question.delete_emptydir_data)
    namespace = question.namespace or reached.namespace
    done = settled(reached.snapshot, setup, question.changes, options, namespace, asked=asked, theirs=theirs)
    for drained in (drained for stage in done.stages for drained in stage.drained):
        if not drained.is_done:
            typer.echo(visible(f"note: drain {drained.node}: {verdict(drained)}"), err=True)
    for rolled in done.rolled_out:
        if not rolled.is_done:
            typer.echo(visible(f"note: {rollout_text(rolled)}"), err=True)
    lost = done.simulation(setup, reached.snapshot, question.changes).displaced
    note = AfterChanges(
        changes=tuple(map(str, question.changes)), moved=lost.moved, waiting=lost.waiting, gone=lost.gone
    )
    return replace(reached, snapshot=done.last.after), (note,)


def tell_foreign(changes: Sequence[Change]) -> None:
    """A line on stderr about workloads of others that are applied, whose pods no change makes."""
    from kschedx.answer.made import title
    from kschedx.api.foreign_workloads import foreign_pods, is_foreign
    from kschedx.render.safe import visible
    from kschedx.render.units import listed

    objects = [dict(manifest) for change in changes for manifest, _ in change.objects]
    names = [title(one) for one in objects if is_foreign(one) and foreign_pods(one)]
    if names:
        told = f"not counted, since only their controllers make their pods: {listed(names, _SHOWN)}"
        typer.echo(visible(f"note: {told} (kschedx why -f FILE looks at their templates)"), err=True)

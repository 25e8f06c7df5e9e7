"""The cluster after the changes of a command line, for commands whose question comes after them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from kschedx.cli.connection import Reached
from kschedx.cli.question import Question

if TYPE_CHECKING:
    from kschedx.explain.notes.question import AfterChanges
    from kschedx.explain.setup import Setup
    from kschedx.simulate.workloads import Workload
    from kschedx.snapshot.snapshot import Snapshot


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

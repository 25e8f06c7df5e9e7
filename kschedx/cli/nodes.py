"""`kschedx nodes`: every node with what is requested, what is free, and the largest pod that fits; and `kschedx why
node/NAME`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from kschedx.cli import completion
from kschedx.cli.options import INTERVAL, READS, Command, OptionGroup, flag, value
from kschedx.cli.output import ALL, Answer, ExitCode, Format, Report, option
from kschedx.cli.question import Question
from kschedx.cli.streams import print_note, reader_left
from kschedx.errors import InputError, KschedxError
from kschedx.kube.selectors import parse_label_query
from kschedx.progress import silence
from kschedx.wording import count, visible

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.node import NodeRow
    from kschedx.snapshot.snapshot import Snapshot

_COLUMNS = ("name", "status", "zone", "pool", "type", "price", "pods", "free")  # the values of `Sort`
COMMAND = Command(
    "Show all nodes with requests and free resources",
    (*READS, OptionGroup.RELEASE),
    help="""Show all nodes: what their pods request, what is free, and the largest pod that still fits.

\b
Examples:
  kschedx nodes
  kschedx nodes -l karpenter.sh/nodepool=gpu --sort nvidia.com/gpu
  kschedx nodes -s dump.tar.gz -o wide
  kschedx nodes --watch --sort free

--sort takes a resource (most requested first), or name, status, zone, pool, type, price, pods, or free (the largest
pod first). With --instance-types, a column shows the price of an hour.

Exit codes: 0 a node can take a pod, 1 none can, 2 usage or input error, 3 undecided.
""",
)


def nodes(
    selector: str | None = value("LABELS", "Select nodes by labels.", "--selector", "-l"),
    sort: str = value("COLUMN", "The column to sort by.", complete=completion.words(*_COLUMNS), default="name"),
    instance_types: str | None = value("FILE", "Instance types with their prices, as for `kschedx why`."),
    watch: bool = flag("Read the cluster again and again, until Ctrl-C.", "--watch", "-w"),
    interval: int = INTERVAL,
    output: Format | None = option(
        *ALL, text="wide shows every node and column; json and yaml the whole document; name the nodes"
    ),
    *,
    question: Question,
) -> Answer | int:
    from kschedx.cli.instance_types import prices_of
    from kschedx.inquiry.node import Sort, node_rows, sorted_rows

    labels = None if selector is None else parse_label_query(selector)
    price_of = None if instance_types is None else prices_of(instance_types)

    def look() -> tuple[Snapshot, tuple[NodeRow, ...]]:
        snapshot = question.read_to_decide().snapshot
        table = question.setup(snapshot).scheduler_on(snapshot).nodes
        return snapshot, sorted_rows(node_rows(table, labels, price_of), sort)

    if watch:
        if question.snapshot or output not in (None, Format.WIDE):
            raise InputError("--watch needs the live cluster, and prints text: leave out --snapshot and -o")
        return _watch(look, interval, sort, wide=output is Format.WIDE)
    snapshot, rows = look()
    if not rows and sort == Sort.NAME and labels is not None and snapshot.cluster.count:
        print_note(f"no node has the labels {selector}")
    return Answer.of(_report(snapshot, rows, sort), any(row.is_open for row in rows))


def _watch(look: Callable[[], tuple[Snapshot, tuple[NodeRow, ...]]], interval: int, sort: str, *, wide: bool) -> int:
    """Print the screen repeatedly: in place in a terminal, one below the other in a pipe. The first failing request is
    an error. A later one is retried, and a line below the table, or on standard error, reports it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from kschedx.render import terminal
    from kschedx.render.nodes import nodes_lines

    out = terminal.console()
    is_in_place = out.file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    rows = look()[1]
    silence()

    def screen(failure: str = "") -> Text:
        now = time.strftime("%H:%M:%S")
        lines = nodes_lines(rows, out.width, wide=wide, sort=sort)
        below = terminal.paragraph(failure, out.width, first="  ", style=terminal.OPEN) if failure else []
        below.append(terminal.text(f"  at {now}, every {interval} s; Ctrl-C ends", terminal.DIM))
        room = drawn.height - len(below) - 1
        if is_in_place and len(lines) > room > 0:
            left_out = terminal.text(f"  {count(len(lines) - room, 'more line')} in a taller window", terminal.DIM)
            lines = [*lines[:room], left_out]
        lines += below
        return Text("\n").join(Text.assemble(*drawn_line.parts) for drawn_line in lines)

    drawn = Console(
        file=out.file,
        width=out.width,
        force_terminal=is_in_place,
        no_color=not out.has_color,
        color_system="standard" if out.has_color else None,
        legacy_windows=False,
        _environ={},
    )
    with Live(console=drawn, auto_refresh=False) if is_in_place else nullcontext() as live:

        def show(failure: str = "") -> None:
            if live is not None:
                live.update(screen(failure), refresh=True)
            elif failure:
                typer.echo(failure, err=True)
            else:
                drawn.print(screen(), soft_wrap=True)
                out.file.flush()

        show()
        while not reader_left():
            time.sleep(interval)
            try:
                rows = look()[1]
            except KschedxError as error:
                show(f"warning: {visible(str(error))}; kschedx tries again")
            else:
                show()
    return ExitCode.SCHEDULABLE


def _report(snapshot: Snapshot, rows: tuple[NodeRow, ...], sort: str) -> Report:
    from kschedx.inquiry.node import nodes_document
    from kschedx.render.nodes import nodes_lines, nodes_page

    return Report(
        screen=lambda width, wide: nodes_lines(rows, width, wide=wide, sort=sort),
        document=lambda: nodes_document(rows),
        names=lambda: [f"node/{row.name}" for row in rows],
        page=lambda _: nodes_page(rows, snapshot),
    )


# `kschedx why node/NAME`: a node's allocatable resources, what uses them, and which pending pods fit it.


def why_node(snapshot: Snapshot, setup: Setup, name: str) -> Answer:
    """Explain a node. The exit code is 0: a node is neither schedulable nor unschedulable. Raises `InputError` if it
    does not exist."""
    from kschedx.inquiry.node import NodeAnswer
    from kschedx.inquiry.target import node_names

    (known,) = node_names(snapshot, [name])
    answer = NodeAnswer(setup, snapshot, known)
    report = Report.of(answer, names=lambda: [verdict.pod for verdict in answer.verdicts if verdict.fits])
    return Answer(report, ExitCode.SCHEDULABLE)

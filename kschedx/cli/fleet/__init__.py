"""`kschedx fleet`: one question over many clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer
from msgspec.structs import replace

from kschedx.cli.output import Answer, Format, Report, answer_to, option
from kschedx.errors import InputError, nearest

HELP = """Ask many clusters one question, each in its own process with a time limit.

\b
Examples:
  kschedx fleet --all-contexts why --all-pending
  kschedx fleet --snapshots dumps/ --out night.jsonl doctor
  kschedx fleet -s fleet.list diff-profiles default binpack --all

QUESTION is a kschedx command line without its cluster: why --all-pending, why -l LABELS, doctor, diff-profiles A B
--all, drain --each, simulate, fit TARGET. A cluster that cannot be reached is a row in the answer. With --out, every
answer is a line of JSON; a second run asks only the clusters that gave none.

Exit codes: 0 nothing found, 1 something found in a cluster, 2 usage or input error, 3 a cluster gave no answer.
"""
SUMMARY = "Ask many clusters one question"

QUESTIONS = ("why", "doctor", "diff-profiles", "drain", "simulate", "fit")


def fleet(
    program: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="QUESTION...", show_default=False)],
    snapshot: Annotated[
        list[str] | None,
        typer.Option(
            "--snapshot",
            "-s",
            metavar="PATH",
            help="A snapshot, or a .list file with a path or context:NAME per line. Repeatable.",
        ),
    ] = None,
    snapshots: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="A folder of snapshots. Repeatable."),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A context of the kubeconfig. Repeatable.")
    ] = None,
    all_contexts: Annotated[bool, typer.Option("--all-contexts", help="Every context of the kubeconfig.")] = False,
    kubeconfig: Annotated[str | None, typer.Option(metavar="FILE", help="The kubeconfig file.")] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, max=64, metavar="N", help="How many clusters at a time.")
    ] = 2,
    limit: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="The time limit per cluster.")] = 300,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a line of JSON per cluster; an existing file is continued."),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write a table. Needs the extra parquet."),
    ] = None,
    output: Annotated[
        Format | None,
        option(
            *(Format.JSON, Format.YAML, Format.HTML, Format.MARKDOWN, Format.SVG),
            text="json and yaml every document; html, markdown, and svg one page that sums up.",
        ),
    ] = None,
) -> Answer:
    from kschedx.cli.fleet import survey as summary
    from kschedx.cli.fleet.survey import ask, members, results, resumed

    if words[0] not in QUESTIONS:
        hint = nearest(words[0], QUESTIONS) or f"one of {', '.join(QUESTIONS)}"
        raise InputError(f'"{words[0]}" cannot be asked of several clusters', hint=hint)
    fleet_members = members(
        snapshots=snapshot or (),
        folders=snapshots or (),
        contexts=context or (),
        all_contexts=all_contexts,
        kubeconfig=kubeconfig,
    )
    done = resumed(out, words)
    is_documented = out is not None or parquet is not None or output in (Format.JSON, Format.YAML)
    answer = partial(answer_to if is_documented else _summary_of, program.obj)
    with results(out) as keep:
        rows = ask(fleet_members, words, answer, jobs=jobs, limit=limit, done=done, see=keep)
    if parquet is not None:
        summary.write_parquet(rows, parquet)

    report = Report(
        screen=lambda width, _: summary.screen(rows, width),
        document=lambda: summary.document(rows),
        page=lambda _: summary.page(rows),
    )
    return Answer(report, summary.exit_code(rows))


def _summary_of(program: Callable[[Sequence[str]], int], words: Sequence[str]) -> Answer | int:
    """Return the answer of a command line with an empty document, since only its first line is shown."""
    answer = answer_to(program, words)
    return answer if isinstance(answer, int) else replace(answer, report=replace(answer.report, document=dict))

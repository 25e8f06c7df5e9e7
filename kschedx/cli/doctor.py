"""`kschedx doctor`: what is in a dump, what is missing, and which answers that weakens."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from kschedx.cli import connection
from kschedx.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from kschedx.doctor.diagnosis import Diagnosis

HELP = """What is in a dump, what is missing, which answers that weakens, and how to complete it.

It goes on where `kschedx why` refuses a dump, and tells everything that it finds: files and objects that cannot be
read, objects that are there twice, pods on unknown nodes, two clusters or two times in one dump.

Without --snapshot it looks at the cluster that kubectl would talk to.

Exit codes: 0 nothing was found that weakens an answer, 1 something was, 2 nothing can be read.
"""


class Output(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


@connection.reads_a_cluster
def doctor(
    snapshot: Annotated[
        list[str] | None,
        typer.Option(
            "--snapshot",
            "-s",
            metavar="PATH",
            help="The dump: a file, a folder, an archive, or - for standard input. Repeatable.  [default: the "
            "cluster that kubectl would talk to]",
        ),
    ] = None,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="wide shows everything; json and yaml the whole document.")
    ] = None,
    *,
    where: connection.Connection,
) -> int:
    """The command; its help is HELP."""
    diagnosis = _of_files(snapshot, where) if snapshot else _of_cluster(where)
    match output:
        case Output.JSON:
            from kschedx.render.document import to_json

            typer.echo(to_json(diagnosis.to_dict()))
        case Output.YAML:
            from kschedx.render.document import to_yaml

            typer.echo(to_yaml(diagnosis.to_dict()), nl=False)
        case Output.WIDE | None:
            from kschedx.render.doctor_screen import print_diagnosis

            print_diagnosis(diagnosis, wide=output is Output.WIDE)
        case _:
            assert_never(output)
    return ExitCode.UNSCHEDULABLE if diagnosis.weakening else ExitCode.SCHEDULABLE


def _of_files(paths: list[str], where: connection.Connection) -> Diagnosis:
    from kschedx.doctor.diagnosis import diagnose
    from kschedx.doctor.reading import contents_of
    from kschedx.errors import InputError

    if where.given:
        raise InputError(f"{where.given} is about a live cluster, and --snapshot names files")
    return diagnose(contents_of(paths), paths)


def _of_cluster(where: connection.Connection) -> Diagnosis:
    from kschedx.doctor.diagnosis import diagnose
    from kschedx.doctor.reading import contents_of_cluster

    server, source, _ = connection.connect(where)
    progress = connection.ReadingProgress(source)
    try:
        contents = contents_of_cluster(server, source, progress.see)
    finally:
        progress.end()
    return diagnose(contents)

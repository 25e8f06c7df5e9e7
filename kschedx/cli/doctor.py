"""`kschedx doctor`: what is in a dump, what is missing, and which answers that affects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kschedx.cli import connection
from kschedx.cli.options import READS, Command, argument
from kschedx.cli.output import SHARED, Answer, Format, Report, option
from kschedx.cli.question import Question
from kschedx.errors import InputError

if TYPE_CHECKING:
    from kschedx.doctor.diagnosis import DumpDiagnosis

COMMAND = Command(
    "Report what a dump holds and what it lacks",
    READS,
    help="""Report what is in a dump, what is missing, which answers that weakens, and how to complete it.

\b
Examples:
  kschedx doctor must-gather.tar.gz              # a dump that you received
  kschedx doctor nodes.json pods.json            # several files are one dump

DUMP is what other commands take with --snapshot: files, folders, and archives. Without one, kschedx examines the live
cluster. It goes on where `kschedx why` refuses a dump: unreadable files and objects, duplicate objects, pods on unknown
nodes, and two clusters or two times in one dump.

Exit codes: 0 nothing weakens an answer, 1 something does, 2 nothing can be read.
""",
)


def doctor(
    dump: list[str] = argument("[DUMP]...", default=[]),
    output: Format | None = option(
        *(Format.WIDE, Format.JSON, Format.YAML, *SHARED),
        text="wide shows everything; json and yaml the whole document",
    ),
    *,
    question: Question,
) -> Answer:
    where = question.where
    paths = [*question.snapshot, *dump]
    diagnosis = _diagnose_files(paths, where) if paths else _diagnose_cluster(where)
    connection.note_time(lambda: diagnosis.inventory.time)
    return Answer.of(Report.of(diagnosis), not diagnosis.weakening)


def _diagnose_files(paths: Sequence[str], where: connection.Connection) -> DumpDiagnosis:
    from kschedx.doctor.contents import contents_of
    from kschedx.doctor.diagnosis import diagnose

    if where.live_option:
        raise InputError(f"{where.live_option} applies to a live cluster, and a dump consists of files")
    return diagnose(contents_of(paths), paths)


def _diagnose_cluster(where: connection.Connection) -> DumpDiagnosis:
    from kschedx.doctor.contents import contents_of_cluster
    from kschedx.doctor.diagnosis import diagnose

    server, source, _ = connection.connect(where)
    return diagnose(contents_of_cluster(server, source, connection.Reading(source).see))

"""`kschedx why node/NAME`: what a node offers, who holds it, and which pods that wait it would take."""

from __future__ import annotations

from kschedx.answer.node import NodeAnswer, Verdict, document
from kschedx.cli.exit_codes import ExitCode
from kschedx.cli.output import Format, Report, write
from kschedx.cli.target import node_names
from kschedx.errors import ConfigError, UndecidableError
from kschedx.explain.many import rows_in_queue_order
from kschedx.explain.setup import Setup
from kschedx.snapshot.snapshot import Snapshot


def why_node(snapshot: Snapshot, setup: Setup, name: str, output: Format | None) -> int:
    """Exit code 0: a node is neither schedulable nor not. Raises `InputError` for one that is not there."""
    from kschedx.cli.parallel import processors, results

    (known,) = node_names(snapshot, [name])
    answer = NodeAnswer(setup, snapshot, known)

    def look(row: int) -> Verdict:
        try:
            return answer.verdict(row)
        except (UndecidableError, ConfigError) as error:
            pods = snapshot.pods
            return Verdict(pod=pods.key(row), priority=int(pods.priorities[row]), findings=(), undecided=str(error))

    verdicts = list(results(look, rows_in_queue_order(snapshot, setup.scheduler), processors()))

    def screen(wide: bool) -> None:
        from kschedx.render.node import print_node

        print_node(answer, verdicts, wide=wide)

    report = Report(
        screen=screen,
        document=lambda: document(answer, verdicts),
        names=lambda: [one.pod for one in verdicts if one.fits],
    )
    write(report, output)
    return ExitCode.SCHEDULABLE

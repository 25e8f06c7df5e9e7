"""`kschedx why` for a pod that the API server does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kschedx.cli.output import Format, Report
from kschedx.cli.wanted import Wanted

if TYPE_CHECKING:
    from kschedx.cli.manifests import Written
    from kschedx.errors import NotAdmittedError
    from kschedx.explain.setup import Setup
    from kschedx.snapshot.snapshot import Snapshot


def refusal_report(
    wanted: Wanted, setup: Setup, found: Written, before: Snapshot, applied: Snapshot, error: NotAdmittedError
) -> Report | None:
    """What Pod Security has against a pod, or what would help; None where something else refuses it, or it is asked
    for in a form that holds decisions. `applied` is the cluster with the files, `before` the one without."""
    is_screen = wanted.fix is None and wanted.output in (None, Format.WIDE)
    if not (is_screen or wanted.fix) or wanted.interactive or wanted.watch or wanted.tries:
        return None
    from kschedx.answer.pod_security import pod_security_answer

    answer = pod_security_answer(applied, found.manifest, setup, error.message, maker=found.workload, made=found.made)
    if answer is None:
        return None
    if wanted.fix is not None:
        from kschedx.cli.apply import numbered, report

        fix = numbered(answer.fixes, wanted.fix)
        return report(fix.changes, (), found, answer.pod, applied, before, document=fix.to_dict)

    def screen(_: bool) -> None:
        from kschedx.render.pod_security import print_pod_security

        print_pod_security(answer)

    return Report(screen=screen, document=dict)

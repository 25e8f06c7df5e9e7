"""What the exit code tells a script."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    SCHEDULABLE = 0
    UNSCHEDULABLE = 1
    USAGE = 2
    """Usage or input error."""
    UNDECIDED = 3
    """kschedx cannot decide, and says what it would need."""
    INTERNAL = 70
    """A defect of kschedx: no answer at all (EX_SOFTWARE of sysexits.h)."""


def exit_code_of(outcome: str) -> ExitCode:
    """Of a pod's `framework.cycle.Outcome`; only what is decided has the codes 0 and 1."""
    match outcome:
        case "Scheduled":
            return ExitCode.SCHEDULABLE
        case "Undecided":
            return ExitCode.UNDECIDED
        case _:
            return ExitCode.UNSCHEDULABLE

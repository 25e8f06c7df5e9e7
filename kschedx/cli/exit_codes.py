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

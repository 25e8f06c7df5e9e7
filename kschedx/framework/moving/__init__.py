"""Decisions on a cluster that moves: what `schedule` says, for the price of what has changed since the last look."""

from kschedx.framework.moving.kind import Decision
from kschedx.framework.moving.run import Run

__all__ = ["Decision", "Run"]

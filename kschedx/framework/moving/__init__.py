"""Decisions on a cluster that moves: what `schedule` says, for the price of what has changed since the last look."""

from kschedx.framework.moving.equivalence import shares_columns
from kschedx.framework.moving.run import Run
from kschedx.framework.schedule import Decision

__all__ = ["Decision", "Run", "shares_columns"]

"""Decisions on a moving cluster: the results of `schedule`, at the cost of what has changed since the last
evaluation."""

from kschedx.framework.moving.run import Run, shares_columns
from kschedx.framework.schedule import Decision

__all__ = ["Decision", "Run", "shares_columns"]

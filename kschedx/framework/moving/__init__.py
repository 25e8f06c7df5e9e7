"""Decisions on a cluster that moves: what `schedule` says, for the price of what has changed since the last look."""

from kschedx.framework.moving.as_if_new import AsIfNew, Outlook, Profiles
from kschedx.framework.moving.decision import Decision
from kschedx.framework.moving.kinds import is_a_kind, kinds_of
from kschedx.framework.moving.one_less import Rejected
from kschedx.framework.moving.run import Run

__all__ = ["AsIfNew", "Decision", "Outlook", "Profiles", "Rejected", "Run", "is_a_kind", "kinds_of"]

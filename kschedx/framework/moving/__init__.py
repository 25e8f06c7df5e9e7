"""Decisions on a cluster that moves: what `schedule` says, for the price of what has changed since the last look."""

from kschedx.framework.moving.as_if_new import AsIfNew, Outlook, Profiles
from kschedx.framework.moving.decision import Decision, is_a_kind
from kschedx.framework.moving.one_less import Rejected
from kschedx.framework.moving.run import Run, kinds_of

__all__ = ["AsIfNew", "Decision", "Outlook", "Profiles", "Rejected", "Run", "is_a_kind", "kinds_of"]

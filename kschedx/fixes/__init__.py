"""Changes that would let the pod be scheduled, each tried in an overlay of the snapshot before it is told."""

from kschedx.fixes.model import Change, Fix, Target
from kschedx.fixes.search import find_fixes

__all__ = ["Change", "Fix", "Target", "find_fixes"]

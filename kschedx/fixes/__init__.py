"""Changes that would let the pod be scheduled, each tried in an overlay of the snapshot before it is told."""

from kschedx.fixes.changes import Change, Target
from kschedx.fixes.hopeless import why_no_fix
from kschedx.fixes.model import Certainty, Fix
from kschedx.fixes.search import find_fixes

__all__ = ["Certainty", "Change", "Fix", "Target", "find_fixes", "why_no_fix"]

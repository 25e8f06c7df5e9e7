"""Changes that would let the pod be scheduled, each tried in an overlay of the snapshot before it is proposed."""

from kschedx.fixes.dead_end import why_no_fix
from kschedx.fixes.ranking import FixCertainty, TriedFix
from kschedx.fixes.search import find_fix_by_autoscaler, find_fixes

__all__ = ["FixCertainty", "TriedFix", "find_fix_by_autoscaler", "find_fixes", "why_no_fix"]

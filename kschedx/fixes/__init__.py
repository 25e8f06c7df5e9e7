"""Changes that would let the pod be scheduled, each tried in an overlay of the snapshot before it is proposed."""

from kschedx.fixes.changes import Change
from kschedx.fixes.dead_end import why_no_fix
from kschedx.fixes.ranking import FixCertainty, TriedFix
from kschedx.fixes.search import find_fix_by_autoscaler, find_fixes
from kschedx.kube.documents import Target

__all__ = ["Change", "FixCertainty", "Target", "TriedFix", "find_fix_by_autoscaler", "find_fixes", "why_no_fix"]

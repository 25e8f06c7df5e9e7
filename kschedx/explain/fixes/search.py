"""The search for fixes."""

from __future__ import annotations

from kschedx.explain.fixes.model import Fix
from kschedx.framework.cycle import Cycle
from kschedx.framework.runtime import Framework


def find_fixes(framework: Framework, cycle: Cycle) -> tuple[Fix, ...]:
    """Cheapest first: changes to the pod, then to what is around it, then to nodes."""
    return ()

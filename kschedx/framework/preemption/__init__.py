"""Which pods would have to go: a dry run of preemption on every node where it could help.

`victims` says whom a node could give up and in which order it would rather not, `dry_run` finds the smallest set on
each node, and `selection` picks the node. Upstream: pkg/scheduler/framework/preemption, and the parts of
pkg/scheduler/framework/plugins/defaultpreemption that it calls.
"""

from kschedx.framework.preemption.dry_run import NOT_HELPFUL, DryRun, dry_run
from kschedx.framework.preemption.selection import best_candidates
from kschedx.framework.preemption.victims import exceeding, in_turn

__all__ = ["NOT_HELPFUL", "DryRun", "best_candidates", "dry_run", "exceeding", "in_turn"]

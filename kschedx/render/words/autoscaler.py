"""What makes the autoscaler help, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.api.quantity import Unit, format_quantity
from kschedx.autoscaler.remedy import (
    RaiseMaximum,
    RaisePriority,
    RemedyStep,
    RequestAtMost,
    TolerateTaints,
    UncordonNode,
)


def remedy_title(step: RemedyStep) -> str:
    """`raise the maximum of workers from 3 to 4`."""
    match step:
        case RaisePriority(at_least=priority):
            return f"give it a priority of at least {priority}"
        case TolerateTaints(taints=taints):
            return f"tolerate {' and '.join(map(str, taints))}"
        case RequestAtMost(amounts=amounts):
            told = (f"{format_quantity(one.amount, Unit.of(one.resource))} {one.resource}" for one in amounts)
            return f"request at most {' and '.join(told)}"
        case UncordonNode(node=node):
            return f"uncordon {node}, so that new nodes do not count as cordoned"
        case RaiseMaximum(group=group, before=before, after=after):
            return f"raise the maximum of {group} from {before} to {after}"
        case _:
            assert_never(step)

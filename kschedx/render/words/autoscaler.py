"""What makes the autoscaler help, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.api.quantity import Unit, format_quantity
from kschedx.autoscaler.remedy import (
    AddGroup,
    RaiseMaximum,
    RaisePriority,
    Remedy,
    RemedyStep,
    RequestAtMost,
    SetFlag,
    TolerateTaints,
    UncordonNode,
)
from kschedx.render.units import count


def remedy_title(step: RemedyStep) -> str:
    """`raise the maximum of workers from 3 to 4`."""
    match step:
        case RaisePriority(at_least=priority):
            return f"give it a priority of at least {priority}"
        case TolerateTaints() | RequestAtMost():
            return change_of_pod(step)
        case UncordonNode(node=node):
            return f"uncordon {node}, so that new nodes do not count as cordoned"
        case RaiseMaximum(group=group, before=before, after=after):
            return f"raise the maximum of {group} from {before} to {after}"
        case SetFlag(name=name):
            return f"give cluster-autoscaler --{name}"
        case AddGroup(like=like):
            return f"add a group like {like} {_but_for(step)}"
        case _:
            assert_never(step)


def change_of_pod(step: TolerateTaints | RequestAtMost) -> str:
    """`request at most 1650m cpu`; Karpenter's remedies have the same steps."""
    match step:
        case TolerateTaints(taints=taints):
            return f"tolerate {' and '.join(map(str, taints))}"
        case RequestAtMost(amounts=amounts):
            told = (f"{format_quantity(one.amount, Unit.of(one.resource))} {one.resource}" for one in amounts)
            return f"request at most {' and '.join(told)}"
        case _:
            assert_never(step)


def _but_for(step: AddGroup) -> str:
    """`with label disktype=ssd and without taint dedicated=gpu:NoSchedule`."""
    differences = (
        ("with label", [f"{key}={value}" for key, value in step.labels]),
        ("without label", step.without_labels),
        ("without taint", list(map(str, step.without_taints))),
    )
    return " and ".join(f"{what} {', '.join(names)}" for what, names in differences if names)


def remedy_text(remedy: Remedy) -> str:
    """The title, and what was found when it was tried."""
    where = "it" if isinstance(remedy.step, AddGroup) else remedy.group
    then = f"adds {count(remedy.nodes, 'node')} to {where}" if remedy.nodes else f"it fits {where} then, and is next"
    return f"{remedy_title(remedy.step)} (verified: {then})"

"""How the cycle went, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.explain.notes.cycle import (
    AutoscalerUnreadable,
    BoundByHand,
    CycleNote,
    Gated,
    KarpenterUnreadable,
    KeepsAccount,
    NominatedNodeFirst,
    NotMeasured,
    NotReadyNodes,
    Sampling,
    SingleFeasibleNode,
    Tie,
    UnknownPlugins,
)
from kschedx.framework.unheard import Stake, Unheard, open_stake
from kschedx.render.units import listed


def text(note: CycleNote) -> str:
    match note:
        case UnknownPlugins():
            return _unknown_plugins(note)
        case KeepsAccount(plugin=plugin, setting=setting):
            return (
                f"{plugin} keeps an account of its own ({setting}): what it gave away since a node reported last is "
                "held back there too, and is in no snapshot"
            )
        case NotMeasured(version=version):
            return (
                f"kschedx was not measured against kube-scheduler {version}: its gates are as published, the rest is "
                "as in the release before"
            )
        case Gated(gates=gates):
            return f"gated by {', '.join(gates)}: the rest is evaluated as if the gates were lifted"
        case BoundByHand():
            return by_hand(note)
        case NominatedNodeFirst(node=node):
            return f"nominated node {node} is tried first and fits: no other node counts"
        case Sampling():
            return (
                f"kube-scheduler stops after {note.nodes_to_find:,} feasible nodes of {note.feasible:,}, from a start "
                "that moves; kschedx evaluated all"
            )
        case SingleFeasibleNode():
            return "one node is feasible: kube-scheduler takes it unscored"
        case Tie():
            how = "they take turns" if note.takes_turns else "kube-scheduler picks one at random"
            return f"{len(note.nodes):,} nodes share the highest total: {how}"
        case NotReadyNodes(nodes=nodes):
            named = f"{nodes[0]} is" if len(nodes) == 1 else f"{listed(nodes, 2)} are"
            return f"{named} not ready, and no taint says so: kube-scheduler looks at taints alone"
        case AutoscalerUnreadable(error=error):
            return f"what cluster-autoscaler would do is not known: {error}"
        case KarpenterUnreadable(error=error):
            return f"what Karpenter would do is not known: {error}"
        case _:
            assert_never(note)


def _unknown_plugins(note: UnknownPlugins) -> str:
    """The plugins by what they could do, with what the answer is worth without them."""
    left_out, stands = note.left_out, note.stands
    if stands:
        worth = ": the answer stands whatever they would say"
    elif all(one.is_waived for one in left_out):
        worth = ", as you asked"
    elif open_stake(left_out) is Stake.FIT:
        worth = " (--without-unknown-plugins: answer as if none of them rejected it)"
    else:
        worth = ""
    told = []
    for does, stake in (("could reject the pod", Stake.FIT), ("could prefer another node", Stake.NODE)):
        mattering = [one for one in left_out if one.stake is stake and not (stands or one.is_waived)]
        if mattering:
            told.append(f"{_placed(mattering)} {does}")
    if others := [one for one in left_out if stands or one.is_waived or one.stake is Stake.NOTHING]:
        told.append(_placed(others))
    return f"plugins that kschedx does not have were left out{worth}: {'; '.join(told)}"


def _placed(plugins: Iterable[Unheard]) -> str:
    """`LicenseSeats (filter), CarbonAware (score)`."""
    return ", ".join(f"{one.name} ({', '.join(one.where)})" for one in plugins)


def by_hand(note: BoundByHand) -> str:
    """`spec.nodeName binds it to n1: kube-scheduler never sees it, and the kubelet would refuse it (OutOfcpu)`."""
    bound = f"spec.nodeName binds it to {note.node}: kube-scheduler never sees it"
    if not note.exists:
        return f"{bound}, and there is no such node"
    if note.refusals:
        return f"{bound}, and the kubelet there would refuse it ({', '.join(note.refusals)})"
    return f"{bound}, and of resources, ports, node affinity and NoExecute taints nothing makes the kubelet refuse it"

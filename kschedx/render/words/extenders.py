"""HTTP extenders in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import DroppedByExtender, ExtenderFinding, RefusedByExtender
from kschedx.render.wording import Fact, Reason, Words

REASONS: dict[str, Reason] = {}


def describe(finding: ExtenderFinding) -> Words:
    match finding:
        case RefusedByExtender():
            return _refused(finding)
        case DroppedByExtender():
            return _dropped(finding)
        case _:
            assert_never(finding)


REASONS[RefusedByExtender.reason] = Reason(
    plugins=("Extender",),
    means=(
        "All plugins accept the pod there, and an HTTP extender of the scheduler's configuration does not. "
        "kube-scheduler tells its words as a reason of their own, without saying whose they are."
    ),
    arises=(
        "The extender answered with the node in FailedNodes, or in FailedAndUnresolvableNodes: a GPU, storage or "
        "topology extender that counts what kube-scheduler does not."
    ),
    fixes=("ask the extender's own logs and objects", "look at what it counts on that node"),
)


def _refused(finding: RefusedByExtender) -> Words:
    words = f'"{finding.message}"' if finding.message else "without a reason"
    says = () if finding.is_resolvable else (Fact(label="it says", items=("evicting pods would not help",)),)
    return Words(headline=f"refused by the extender {finding.url}: {words}", facts=says)


REASONS[DroppedByExtender.reason] = Reason(
    plugins=("Extender",),
    means=(
        "All plugins accept the pod there, and an HTTP extender left the node out of its answer without a word. "
        "kube-scheduler counts such a node under no reason."
    ),
    arises=(
        "The extender answers with fewer nodes than it was asked about, or in the field that it is not configured for: "
        "NodeNames is read only from an extender with nodeCacheCapable, Nodes from the others."
    ),
    fixes=("ask the extender's own logs", "compare nodeCacheCapable with what it answers"),
)


def _dropped(finding: DroppedByExtender) -> Words:
    return Words(headline=f"left out by the extender {finding.url}, without a word")

"""Which nodes cluster-autoscaler and Karpenter remove, and why they keep the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from kschedx.autoscaler.cluster import AutoscalerOptions
from kschedx.autoscaler.scale_down import Removal, ScaleDown, scale_down_document
from kschedx.explain.setup import Setup
from kschedx.inquiry.autoscalers import AutoscalingOptions
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions
from kschedx.karpenter.consolidation import Consolidation, Consolidator
from kschedx.karpenter.disruption import NodeDisruption, disruptions, managed_nodes
from kschedx.kube.documents import Json, to_json
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.simulate.repack import EmptiedNodes, empty_nodes
from kschedx.snapshot.snapshot import Snapshot


class NodeRemovals(Shown, Struct, frozen=True, kw_only=True):
    """What the autoscalers do about nodes, each by itself, and which of these can be removed together."""

    snapshot: Snapshot
    setup: Setup
    scale_down: ScaleDown | None = None  # None if cluster-autoscaler has none of the nodes
    removals: Sequence[Removal] = ()
    disruptions: Sequence[NodeDisruption] = ()  # Karpenter's nodes
    consolidation: Consolidation | None = None
    together: EmptiedNodes | None = None  # None if fewer than two nodes can be removed

    def to_dict(self) -> Json:
        autoscaler = None if self.scale_down is None else self.scale_down.autoscaler
        document = scale_down_document(autoscaler, self.removals, self.setup.release)
        if self.disruptions:
            document["karpenter"] = {its.node: to_json(its.document) for its in self.disruptions}
        if self.consolidation is not None:
            document["consolidation"] = to_json(self.consolidation.document)
        if self.together is not None:
            document["together"] = to_json(self.together.document)
        return document


def remove_nodes(
    snapshot: Snapshot,
    setup: Setup,
    names: Sequence[str],
    options: AutoscalingOptions,
    price_of: Callable[[str], float | None],
    *,
    are_all: bool,
) -> NodeRemovals:
    """Evaluate these nodes. If they `are_all` nodes of a cluster with Karpenter, cluster-autoscaler's are left out.
    `price_of` returns the price of a node by its name."""
    karpenters, consolidation = managed_nodes(snapshot).intersection(names), None
    if karpenters and (karpenter := Karpenter.of(snapshot, options.pools or KarpenterOptions())) is not None:
        consolidation = Consolidator(karpenter, None if are_all else names).run()
    kept = disruptions(snapshot, names, prices={} if consolidation is None else consolidation.prices)
    others = [name for name in names if name not in karpenters]
    scale_down, removals = None, list[Removal]()
    if others and not (are_all and kept):
        scale_down = ScaleDown.of(snapshot, options.groups or AutoscalerOptions(), setup.scheduler_on(snapshot))
        each = count_items(others, Phase.DECIDING, len(others), "nodes")
        removals = [scale_down.evaluate(name, is_one_of_many=are_all) for name in each]
    removable = [removal.node for removal in removals if removal.is_removable]
    return NodeRemovals(
        snapshot=snapshot,
        setup=setup,
        scale_down=scale_down,
        removals=removals,
        disruptions=kept,
        consolidation=consolidation,
        together=empty_nodes(snapshot, setup, removable, price_of) if len(removable) > 1 else None,
    )

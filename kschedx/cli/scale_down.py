"""`kschedx scale-down`: why cluster-autoscaler does not remove a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, Command
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question
from kschedx.kube.documents import to_json
from kschedx.progress import Phase, count_items

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.render.page.model import Page
    from kschedx.simulate.repack import EmptiedNodes
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Explain why the autoscaler keeps a node",
    DECIDES,
    help="""Explain why cluster-autoscaler or Karpenter keeps a node, or that it removes it.

\b
Examples:
  kschedx scale-down node-7
  kschedx scale-down                      # which nodes it would remove
  kschedx scale-down node-7 \\
    --autoscaler-flag skip-nodes-with-local-storage=false

For cluster-autoscaler: the node's utilization, the pods that keep it and by which rule, the pod that finds no other
node, the minimum of the node group, annotations, and PodDisruptionBudgets. The autoscaler stops at the first reason;
kschedx lists all of them. Without NODE, every node is examined by itself, then which of them can go together. For
Karpenter: what blocks disruption, and what emptiness, drift, multi-node, and single-node consolidation do, with prices
from --instance-types.

Exit codes: 0 it is removed (without NODE: some are), 1 it stays, 2 usage or input error, 3 undecided.
""",
)


def scale_down(
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="[NODE]...", show_default=False, autocompletion=completion.nodes)
    ] = None,
    output: Annotated[
        Format | None,
        option(
            *ALL, text="wide shows every node and pod; json and yaml the whole document; name the nodes that it removes"
        ),
    ] = None,
    *,
    question: Question,
) -> Answer:
    from kschedx.autoscaler.cluster import AutoscalerOptions
    from kschedx.autoscaler.scale_down import ScaleDown, scale_down_document
    from kschedx.inquiry.target import node_names
    from kschedx.karpenter.disruption import disruptions
    from kschedx.render.scale_down import scale_down_screen, scale_down_view
    from kschedx.render.view import Tone

    reached = question.read_to_decide()
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    names = node_names(snapshot, [name.removeprefix("node/") for name in nodes or snapshot.cluster.names])
    kept = disruptions(snapshot, names)
    karpenters = {disruption.node for disruption in kept}
    others = [name for name in names if name not in karpenters]
    connection.print_notes(snapshot, setup)
    consolidation = None
    if kept:
        from kschedx.karpenter.cluster import Karpenter, KarpenterOptions
        from kschedx.karpenter.consolidation import Consolidator

        karpenter = Karpenter.of(snapshot, question.autoscaling.pools or KarpenterOptions())
        if karpenter is not None:
            consolidation = Consolidator(karpenter, names if nodes else None).run()
            kept = disruptions(snapshot, names, prices=consolidation.prices)
    down, removals = None, []
    if others and (nodes or not kept):
        down = ScaleDown.of(snapshot, question.autoscaling.groups or AutoscalerOptions(), setup.scheduler_on(snapshot))
        each = count_items(others, Phase.DECIDING, len(others), "nodes")
        removals = [down.evaluate(name, is_one_of_many=not nodes) for name in each]
    together = _together(snapshot, setup, question, [removal.node for removal in removals if removal.is_removable])

    def document() -> Mapping[str, object]:
        return {
            **scale_down_document(None if down is None else down.autoscaler, removals, setup.release),
            **({"karpenter": {disruption.node: to_json(disruption.document) for disruption in kept}} if kept else {}),
            **({} if consolidation is None else {"consolidation": to_json(consolidation.document)}),
            **({} if together is None else {"together": to_json(together.document)}),
        }

    def page(_: bool) -> Page:
        from kschedx.render.page.model import SCREEN_WIDTH, page_of
        from kschedx.render.scale_down import MOST_NODES

        lines = scale_down_screen(snapshot.cluster.names, *answer, width=SCREEN_WIDTH)
        return page_of(scale_down_view(*answer, most=MOST_NODES), lines, snapshot=snapshot)

    answer = (down, removals, kept, consolidation, together)
    view = scale_down_view(*answer, wide=False)
    going = [f"node/{item.title}" for item in view.items if item.tone is Tone.GOOD]
    report = Report(
        screen=lambda width, wide: scale_down_screen(snapshot.cluster.names, *answer, width=width, wide=wide),
        document=document,
        names=lambda: going,
        page=page,
    )
    done = bool(going) if not nodes else len(going) == len(names)
    stays = any(item.tone is Tone.BAD for item in view.items) if nodes else view.tone is Tone.BAD
    return Answer.of(report, done, is_undecided=not done and not stays)


def _together(snapshot: Snapshot, setup: Setup, question: Question, names: list[str]) -> EmptiedNodes | None:
    """Return which of the nodes that can be removed alone can be removed together; None for fewer than two nodes."""
    from kschedx.cli.instance_types import prices_by_node
    from kschedx.simulate.repack import empty_nodes

    if len(names) < 2:
        return None
    return empty_nodes(snapshot, setup, names, prices_by_node(question.instance_types, snapshot))

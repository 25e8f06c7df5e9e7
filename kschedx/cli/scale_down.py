"""`kschedx scale-down`: why cluster-autoscaler does not remove a node."""

from __future__ import annotations

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, Command, argument
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question

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
    nodes: list[str] = argument("[NODE]...", complete=completion.nodes, default=[]),
    output: Format | None = option(
        *ALL, text="wide shows every node and pod; json and yaml the whole document; name the nodes that it removes"
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.instance_types import prices_by_node
    from kschedx.inquiry.scale_down import remove_nodes
    from kschedx.inquiry.target import node_names
    from kschedx.render.scale_down import scale_down_view
    from kschedx.render.view import Tone

    reached = question.read_to_decide()
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    names = node_names(snapshot, [name.removeprefix("node/") for name in nodes or snapshot.cluster.names])
    connection.print_notes(snapshot, setup)
    prices = prices_by_node(question.instance_types, snapshot)
    answer = remove_nodes(snapshot, setup, names, question.autoscaling, prices, are_all=not nodes)
    view = scale_down_view(answer, wide=False)
    going = [f"node/{item.title}" for item in view.items if item.tone is Tone.GOOD]
    report = Report.of(answer, names=lambda: going)
    done = bool(going) if not nodes else len(going) == len(names)
    stays = any(item.tone is Tone.BAD for item in view.items) if nodes else view.tone is Tone.BAD
    return Answer.of(report, done, is_undecided=not done and not stays)

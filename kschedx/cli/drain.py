"""`kschedx drain`: what `kubectl drain` would do, and where the pods would be rescheduled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, OUT, Command, OptionGroup, argument, flag, hidden, value
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question
from kschedx.cli.streams import print_note
from kschedx.errors import InputError
from kschedx.kube.selectors import parse_label_query

if TYPE_CHECKING:
    from kschedx.simulate.drain import DrainResult
    from kschedx.snapshot.snapshot import Snapshot

MANY = 1_000  # more nodes than this, each drained by itself, take minutes, as a note states
COMMAND = Command(
    "Preview a node drain, and where the pods go",
    (*DECIDES, OptionGroup.CHANGES),
    help="""Preview `kubectl drain`: which pods are evicted, what stops it, and where each pod goes.

\b
Examples:
  kschedx drain node-7
  kschedx drain node-1 node-2 node-3      # one after another
  kschedx drain node-1 node-2 --together  # cordon all of them first
  kschedx drain --each                    # which nodes can be drained today
  kschedx drain --each $(kubectl get nodes -l pool=spot -o name)
  kschedx simulate --drain node-7 --autoscale  # with new nodes

kschedx decides as kubectl does. DaemonSet pods are ignored (--ignore-daemonsets), and static pods stay. A pod without
a controller needs --force; a pod with an emptyDir needs --delete-emptydir-data. PodDisruptionBudgets limit how many
pods are evicted at a time. Evicted pods are recreated by their controllers and scheduled. kubectl's other flags, such
as --timeout and --grace-period, are accepted and do not change the answer.

Several nodes are drained one after another, as in an upgrade: each node is back, and empty, before the next one.
--each of 5,000 nodes takes about 5 minutes: name the nodes of one pool or zone for an answer sooner.

Exit codes: 0 drained, 1 something stops the drain or a pod stays pending, 2 usage or input error, 3 undecided.
""",
)


def drain(
    nodes: list[str] = argument("[NODE]...", complete=completion.nodes, default=[]),
    each: bool = flag("Drain every node alone, or each of those named.", "--each"),
    together: bool = flag("Cordon all nodes first; none returns before the next one is drained.", "--together"),
    is_forced: bool = flag("Delete pods without a controller.", "--force"),
    loses_data: bool = flag("Evict pods with an emptyDir.", "--delete-emptydir-data"),
    disables_eviction: bool = flag("Delete pods without asking PodDisruptionBudgets.", "--disable-eviction"),
    pod_selector: str | None = value("LABELS", "Evict only pods with these labels."),
    selector: str | None = value("LABELS", "Drain the nodes with these labels.", "--selector", "-l"),
    ignore_daemonsets: bool = hidden("--ignore-daemonsets", default=True),
    grace_period: int | None = hidden(),
    timeout: str | None = hidden(),
    skip_wait_for_delete_timeout: int | None = hidden(),
    chunk_size: int | None = hidden(),
    dry_run: str | None = hidden(),
    out: str | None = OUT,
    output: Format | None = option(
        *ALL, text="wide shows every pod; json and yaml the whole document; name the nodes that can be drained"
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.files import check_name, write_snapshot
    from kschedx.inquiry.stalled_drain import preview_drain
    from kschedx.inquiry.target import node_names
    from kschedx.simulate.simulator import SimulationOptions

    if out is not None:
        check_name("--out", out)
        if each:
            raise InputError("--out writes the cluster after the drains, and --each drains every node alone")
    if each and together:
        raise InputError("--each drains every node alone, and --together cordons all of them first")
    if nodes and selector is not None:
        raise InputError("name nodes, or select them with -l, not both")
    if not nodes and not each and selector is None:
        raise InputError("name a NODE, or use --each for every node")
    reached = question.read_to_decide()
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    if selector is not None:
        labels = parse_label_query(selector)
        nodes = [node.name for node in snapshot.cluster.nodes if labels.matches(node.metadata.labels)]
        if not nodes:
            raise InputError(f"no node has the labels {selector}")
    shown = tuple(dict.fromkeys(name.removeprefix("node/") for name in nodes))
    if not question.changes:
        shown = node_names(snapshot, shown)
    options = SimulationOptions(
        force=is_forced,
        delete_emptydir_data=loses_data,
        disable_eviction=disables_eviction,
        pod_selector=None if pod_selector is None else parse_label_query(pod_selector),
    )
    connection.print_notes(snapshot, setup)

    count = len(shown) if nodes else len(snapshot.cluster.names)
    if each and count > MANY:
        hint = "for an answer sooner, name the nodes of one pool or zone"
        print_note(f"--each drains {count:,} nodes by themselves, which takes minutes; {hint}")
    preview = preview_drain(
        snapshot,
        setup,
        shown if nodes else None,
        question.changes,
        options=options,
        namespace=reached.namespace,
        each=each,
        uncordons=not together,
    )
    simulation = preview.simulation
    simulation.autoscaling = question.autoscaling
    if len(simulation.drained) > 1 and not (each or together) and any(each.is_done for each in simulation.drained):
        print_note("each node returns, empty, before the next is drained; --together cordons all first, as kubectl")
    if not disables_eviction:
        _print_doubts(snapshot, simulation.drained)
    if out is not None:
        write_snapshot(out, simulation.after)
    done = [drained.node for drained in simulation.drained if drained.is_done]
    report = Report.of(preview, names=lambda: [f"node/{name}" for name in done])
    is_good = len(done) == len(simulation.drained) and (each or not simulation.pending)
    return Answer.of(report, is_good, is_undecided=bool(simulation.undecided))


def _print_doubts(snapshot: Snapshot, drained: Iterable[DrainResult]) -> None:
    """Print a note about each webhook that is called about the evictions, and about budgets that a dump lacks."""
    from kschedx.kube.resources import ValidatingWebhookConfiguration
    from kschedx.simulate.drain import EVICTIONS

    evicted = [pod.pod for each in drained for pod in each.of(*EVICTIONS)]
    if evicted and snapshot.source.may_lack("PodDisruptionBudget"):
        print_note("the dump holds no PodDisruptionBudgets: those of the cluster may stop a drain")
    namespaces = [snapshot.namespaces.get(name) for name in {key.partition("/")[0] for key in evicted}]
    for configuration in snapshot.of(ValidatingWebhookConfiguration):
        for webhook in configuration.webhooks:
            if webhook.may_refuse_evictions(namespaces):
                print_note(f"webhook {webhook.name} decides about evictions too, and may refuse them")

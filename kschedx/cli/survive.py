"""`kschedx survive`: what remains if a zone, a node pool, a rack, or some nodes fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, Command, OptionGroup, argument, flag, value
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question, print_open_counts
from kschedx.cli.streams import print_note
from kschedx.errors import InputError
from kschedx.wording import count

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.survive import Failure, Survival
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Show what survives when a zone or nodes are gone",
    (*DECIDES, OptionGroup.CHANGES_BESIDE_DRAIN),
    help="""Show which workloads survive when a zone, a node pool, a rack, or some nodes are gone.

\b
Examples:
  kschedx survive --each zone             # one zone after the other
  kschedx survive zone=eu-west-1b         # this zone
  kschedx survive nodepool=spot --drain
  kschedx survive --each topology.example.com/rack -o json
  kschedx survive --busiest 3             # the 3 fullest nodes at once
  kschedx survive --each zone --add-nodes 2=node-1

TARGET is a node, zone=NAME, nodepool=NAME, or LABEL=VALUE; several are gone together. Without TARGET, --each zone.
In an outage all pods of the nodes are lost at once, with the volumes that only these nodes reach; the Node objects stay
and are unreachable. With --drain, pods are evicted within their PodDisruptionBudgets. Controllers recreate what is
lost, and kube-scheduler places it on the other nodes.

The answer shows which workloads are down, short of replicas, or restarted, why pods stay pending, which nodes would
have to be added, and when the node lifecycle controller evicts.

Exit codes: 0 every workload survives, 1 one that ran is down or has fewer replicas, or a budget blocks the drain,
2 usage or input error, 3 undecided.
""",
)


def survive(
    targets: list[str] = argument("[TARGET]...", complete=completion.failures, default=[]),
    each: str | None = value(
        "zone|nodepool|node|LABEL",
        "Try each zone, node pool, node, or value of a label by itself.",
        complete=completion.words("zone", "nodepool", "node"),
    ),
    busiest: int | None = value("N", "The N nodes with the largest requests are gone.", min=1),
    is_outage: bool = flag(
        "Pods are lost at once, or evicted within budgets.  [default: --outage]",
        "--outage/--drain",
        default=True,
    ),
    output: Format | None = option(
        *ALL,
        text="wide shows every failure and workload; json and yaml the whole document; name the workloads that do "
        "not survive",
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.inquiry.survive import OutageMode
    from kschedx.inquiry.survive import survive as survived

    if each is not None and (targets or busiest):
        raise InputError("--each tries failures one by one; TARGET and --busiest name one failure")
    reached = question.read_to_decide()
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    failures = _failures(snapshot, setup, targets, each, busiest or 0)
    connection.print_notes(snapshot, setup)
    survival = survived(
        snapshot,
        setup,
        failures,
        question.changes,
        mode=OutageMode.OUTAGE if is_outage else OutageMode.DRAIN,
        namespace=reached.namespace,
    )
    print_open_counts(survival.simulation)
    report = Report.of(survival, names=lambda: _names(survival))
    return Answer.of(report, survival.survives, is_undecided=survival.is_undecided)


def _failures(
    snapshot: Snapshot, setup: Setup, targets: list[str], each: str | None, busiest: int
) -> tuple[Failure, ...]:
    """Return the failures to evaluate. Raises `InputError`."""
    from kschedx.inquiry.survive import ZONE, each_failure, failure_of

    if targets or busiest:
        return (failure_of(setup.scheduler_on(snapshot).nodes, targets, busiest),)
    key = each or ZONE
    failures = each_failure(snapshot, key)
    left = len(snapshot.cluster.nodes) - sum(len(failure.nodes) for failure in failures)
    if left:
        print_note(f"{count(left, 'node')} without a {key} {'does' if left == 1 else 'do'} not fail")
    return failures


def _names(survival: Survival) -> list[str]:
    """Return the workloads that do not survive."""
    from kschedx.inquiry.survive import BROKEN

    broken = (loss.workload for result in survival.results for loss in result.of(*BROKEN))
    return list(dict.fromkeys(f"{workload.namespace} {workload.reference.partition('/')[2]}" for workload in broken))

"""`kschedx kueue`: the queues of Kueue, their usage, and why workloads are pending."""

from __future__ import annotations

from kschedx.cli.options import NOW, READS, Command, OptionGroup
from kschedx.cli.output import SHARED, Answer, Format, Report, option
from kschedx.cli.question import Question

COMMAND = Command(
    "Show Kueue's queues and why Workloads are pending",
    (*READS, OptionGroup.KUEUE),
    help="""Show Kueue's ClusterQueues, cohorts, and flavors with their usage, and why each Workload is pending.

Kueue 0.19's rules run over the snapshot, cycle after cycle, until nothing changes: flavor assignment, borrowing,
preemption, fair sharing, partial admission, admission checks, and topology. No Workload finishes meanwhile.

\b
Examples:
  kschedx kueue
  kschedx kueue -s dump.tar.gz -o wide
  kschedx kueue --kueue-config kueue.yaml -o json    # every cycle

Kueue's Configuration comes from --kueue-config (also a ConfigMap), else from the cluster's ConfigMap
kueue-manager-config.

Exit codes: 0 no Workload is pending or waits for admission checks, 1 some do, 2 usage or input error.
""",
)


def kueue(
    now: str | None = NOW,
    output: Format | None = option(
        *(Format.WIDE, Format.JSON, Format.YAML, *SHARED),
        text="wide shows every Workload and cause; json and yaml every cycle",
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.kueue.overview import overview
    from kschedx.kueue.settings import settings_of

    snapshot = question.read().snapshot
    queues = overview(snapshot, settings_of(snapshot), now=now)
    return Answer.of(Report.of(queues), not (queues.waiting or queues.checking))

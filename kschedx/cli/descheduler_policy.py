"""`kschedx descheduler-policy`: advice on a policy of the descheduler."""

from __future__ import annotations

import typer

from kschedx.cli import connection
from kschedx.cli.help import HelpCommand, HelpGroup
from kschedx.cli.options import DECIDES, EVICTIONS, NOW, Command, value
from kschedx.cli.output import SHARED, Answer, Format, Report, option
from kschedx.cli.question import Question, asks
from kschedx.errors import require_one_of

COMMAND = Command(
    "Advise a policy for the descheduler",
    help="""Advise a DeschedulerPolicy for the descheduler (0.36).

\b
Examples:
  kschedx descheduler-policy advise
  kschedx descheduler-policy advise --goal compaction --config binpack
""",
)

_ADVISE = """Show which plugins of the descheduler (0.36) evict anything, and the policy that reaches a goal.

Every plugin runs by itself, for several rounds: controllers recreate the evicted pods, kube-scheduler places them, and
the next round shows which pods bounce. Then policies for the goal are tried with several thresholds and limits. The
one with the fewest evictions wins; one that bounces pods or leaves one pending is never advised.

balance: the fullest and the emptiest node, by requested CPU and memory, are as close as possible. compaction: as many
nodes as possible run nothing but DaemonSets. Only nodes that take any pod count.

\b
Examples:
  kschedx descheduler-policy advise
  kschedx descheduler-policy advise --goal balance --target 20
  kschedx descheduler-policy advise --goal compaction --config binpack
  kschedx descheduler-policy advise -o yaml > policy.yaml

Exit codes: 0 a policy reaches the goal, 1 none does, 2 usage or input error.
"""

app = typer.Typer(cls=HelpGroup, help=COMMAND.help, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def descheduler_policy() -> None:
    """The group of the commands about a policy."""


@app.command(help=_ADVISE, short_help="Advise a policy that reaches a goal with the fewest evictions.", cls=HelpCommand)
@asks(*DECIDES)
def advise(
    goal: str = value("balance|compaction", "What the policy is for.", default="balance"),
    target: int | None = value(
        "N",
        "balance: percentage points between the fullest and the emptiest node. compaction: empty nodes.  "
        "[default: the best that a policy reaches]",
        min=0,
    ),
    rounds: int = value("N", "Rounds of each trial.", min=1, max=50, default=3),
    evictions: str = EVICTIONS,
    now: str | None = NOW,
    output: Format | None = option(
        *(Format.WIDE, Format.JSON, Format.YAML, *SHARED),
        text="wide shows every plugin and policy; json the whole document; yaml the policy",
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.descheduler.advice import PolicyGoal
    from kschedx.descheduler.advice import advise as advised
    from kschedx.render.descheduling import advice_lines, advice_page
    from kschedx.render.manifests import to_yaml

    require_one_of("--goal", goal, PolicyGoal)
    reached = question.read_to_decide(whole=True)
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    connection.print_notes(snapshot, setup)
    advice = advised(snapshot, setup, PolicyGoal(goal), target=target, rounds=rounds, evictions=evictions, now=now)

    report = Report(
        screen=lambda width, wide: advice_lines(advice, width, wide=wide),
        document=advice.to_dict,
        yaml=lambda: to_yaml({} if advice.chosen is None else advice.chosen.policy),
        page=lambda _: advice_page(advice, snapshot),
    )
    return Answer.of(report, advice.is_reached and (advice.chosen is not None or target is not None))

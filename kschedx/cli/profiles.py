"""`kschedx profiles`: the profiles that come with kschedx, and the content of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import typer

from kschedx.cli import completion, connection
from kschedx.cli.help import HelpCommand, HelpGroup
from kschedx.cli.options import DECIDES, Command, OptionGroup, argument, value
from kschedx.cli.output import SHARED, Answer, ExitCode, Format, Report, option
from kschedx.cli.question import Question, asks
from kschedx.errors import require_one_of
from kschedx.kube.documents import document

if TYPE_CHECKING:
    from kschedx.framework.config import Profile
    from kschedx.releases import Release

COMMAND = Command(
    "List, show, check, and tune scheduler profiles",
    help="""List scheduler profiles, show one in full, check a file, or search for a better one.

\b
Examples:
  kschedx profiles
  kschedx profiles show binpack
  kschedx profiles check scheduler.yaml
  kschedx profiles tune --goal fewest-nodes
""",
)

_SHOW = """Show a profile in full: plugins, weights, arguments, and where each setting comes from.

-o yaml prints an equivalent KubeSchedulerConfiguration in which nothing is left to defaults. Secrets of extenders (the
user part and query of a URL, keyData) are printed as ***.

\b
Examples:
  kschedx profiles show binpack
  kschedx profiles show scheduler.yaml -o yaml
"""

_CHECK = """Validate a KubeSchedulerConfiguration as kube-scheduler does, and warn of common mistakes.

\b
Examples:
  kschedx profiles check scheduler.yaml
  kschedx profiles check config-map.yaml --kube-version 1.28

Exit codes: 0 the released kube-scheduler accepts it, 1 it lacks a plugin and does not start,
2 it refuses it.
"""

_TUNE = """Search for the profile that reaches a goal on a cluster, and print it with its difference from today's.

Each candidate places all running pods again, but for those of DaemonSets. Candidates differ in the scoring strategy of
NodeResourcesFit, its weights of cpu and memory, the weights of score plugins, and spreading by default; the plugins
that follow what pods prefer keep their weights. Many candidates are tried on a tenth of the nodes, the best on a third,
and the best of these on all. --config or --profile names today's profile.

fewest-nodes: nodes that run more than DaemonSets. least-fragmentation: free capacity on nodes where no further pod
fits. spread: differences between nodes. cost: prices of --instance-types for the nodes in use.

\b
Examples:
  kschedx profiles tune --goal fewest-nodes
  kschedx profiles tune --goal spread --config scheduler.yaml -s cluster.json
  kschedx profiles tune --goal cost --instance-types types.yaml

Exit codes: 0 a profile is better than today's, 1 none is, 2 usage or input error.
"""

app = typer.Typer(cls=HelpGroup, help=COMMAND.help, invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def profiles(context: typer.Context) -> int:
    """Lists them where nothing else is asked for."""
    return ExitCode.SCHEDULABLE if context.invoked_subcommand else _list_profiles()


@app.command(name="list", help="List profiles and what each is for.", cls=HelpCommand)
@asks()
def _list_profiles() -> Answer:
    from kschedx.cli.files import DEFAULT, purposes
    from kschedx.render.catalogue import list_lines
    from kschedx.wording import count

    default = (DEFAULT, "What kube-scheduler does without a configuration, in the emulated version")
    known = [default, *purposes().items()]
    title = count(len(known), "profile")
    return Answer.of_lines(partial(list_lines, title, known))


@app.command(help=_SHOW, short_help="Show a profile in full, point by point.", cls=HelpCommand)
@asks(OptionGroup.RELEASE, OptionGroup.GATES)
def show(
    name: str = argument("NAME|FILE", complete=completion.profiles),
    output: Format | None = option(Format.YAML, Format.JSON, text="Print an equivalent configuration."),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.files import configuration, error_places, version_of
    from kschedx.framework.config.origins import without_secrets
    from kschedx.releases import resolve
    from kschedx.render.catalogue import profile_lines
    from kschedx.render.manifests import commented_yaml
    from kschedx.schedulers import expanded_configuration, scheduler_of

    release = resolve(question.kube_version or version_of(name), question.gates)
    config = configuration(name)
    with error_places(name):
        expanded = expanded_configuration(config, release)
        scheduler = scheduler_of(config, release).config
    if expanded is None:
        return _show_policy(name, release, scheduler.profiles[0])

    shown = without_secrets(expanded.configuration)
    report = Report(
        screen=lambda width, _: profile_lines(name, release.title, scheduler, expanded, width),
        document=lambda: _profile_document(name, release, configuration=shown, origins=expanded.origins),
        yaml=lambda: commented_yaml(shown, expanded.origins),
    )
    return Answer(report, ExitCode.SCHEDULABLE)


def _profile_document(name: str, release: Release, **fields: object) -> dict[str, object]:
    from kschedx.schemas.commands import ProfileListing

    return document("Profile", ProfileListing, name=name, kubernetes_version=release.version, **fields)


def _show_policy(name: str, release: Release, profile: Profile) -> Answer:
    from kschedx.inquiry.document import extension_points
    from kschedx.render.catalogue import policy_lines

    report = Report(
        screen=lambda width, _: policy_lines(name, release.version, profile, width),
        document=lambda: _profile_document(name, release, extension_points=extension_points(profile)),
    )
    return Answer(report, ExitCode.SCHEDULABLE)


@app.command(help=_CHECK, short_help="Report what kube-scheduler refuses, and common mistakes.", cls=HelpCommand)
@asks(OptionGroup.RELEASE, OptionGroup.GATES)
def check(
    file: str = argument("FILE|NAME"),
    output: Format | None = option(
        *(Format.JSON, Format.YAML, Format.JUNIT, Format.SARIF), text="junit and sarif for CI."
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.checks import advice_checks
    from kschedx.cli.files import error_places, version_of, with_zero_weights
    from kschedx.framework.config.advice import Advice
    from kschedx.releases import resolve
    from kschedx.render.catalogue import advice_lines
    from kschedx.schedulers import advice_on
    from kschedx.schemas.commands import ProfileCheckDocument

    release = resolve(question.kube_version or version_of(file), question.gates)
    config, zero_weights = with_zero_weights(file)
    with error_places(file):
        warnings = advice_on(config, release)
    zeros = tuple(
        Advice(id="zero-weight", path=path, text="a weight of 0 counts as 1: to ignore a score, disable the plugin")
        for path in zero_weights
    )
    advice = (*zeros, *warnings)
    report = Report(
        screen=lambda width, _: advice_lines(file, release.title, advice, width),
        document=lambda: document(
            "ProfileCheck", ProfileCheckDocument, name=file, kubernetes_version=release.version, advice=advice
        ),
        checks=lambda: advice_checks(file, advice),
    )
    return Answer(report, ExitCode.UNSCHEDULABLE if any(each.needs for each in advice) else ExitCode.SCHEDULABLE)


@app.command(help=_TUNE, short_help="Search for the profile that reaches a goal on a cluster.", cls=HelpCommand)
@asks(*DECIDES)
def tune(
    goal: str = value("fewest-nodes|least-fragmentation|spread|cost", "What to reach.", default="fewest-nodes"),
    candidates: int = value("N", "Profiles to try.", min=2, max=10_000, default=200),
    seconds: int = value("N", "The time that the search may take.", min=1, default=60),
    seed: int = value("N", "The seed of the candidates: the same seed tries the same ones.", default=0),
    jobs: int | None = value("N", "Processes.  [default: one per processor]", min=1),
    output: Format | None = option(
        *(Format.WIDE, Format.JSON, Format.YAML, *SHARED),
        text="wide shows every trial of the front; json the whole document; yaml the configuration",
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.instance_types import prices_by_node
    from kschedx.parallel import FEW, results
    from kschedx.render.manifests import to_yaml
    from kschedx.simulate.tuning import ProfileTrial, TuningGoal, Work, base_of
    from kschedx.simulate.tuning import tune as tuned

    require_one_of("--goal", goal, TuningGoal)
    reached = question.read_to_decide(whole=True)
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    connection.print_notes(snapshot, setup)
    base = base_of(question.configuration, setup)
    number = question.jobs(jobs)

    def run(work: Work, count: int) -> Iterator[ProfileTrial]:
        return results(work, range(count), number, weights=[FEW] * count)

    prices = prices_by_node(question.instance_types, snapshot)
    tuning = tuned(
        snapshot, setup, base, TuningGoal(goal), most=candidates, seed=seed, seconds=seconds, price_of=prices, run=run
    )
    report = Report.of(tuning, yaml=lambda: to_yaml(tuning.configuration))
    return Answer.of(report, tuning.is_better)

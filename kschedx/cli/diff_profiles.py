"""The two profiles that `kschedx diff-profiles` compares: how they are named, and in which versions they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kschedx.cli import completion, connection
from kschedx.cli.options import (
    ALL_NAMESPACES,
    SELECTOR,
    SHARD,
    Command,
    OptionGroup,
    argument,
    flag,
    namespace_of_many,
    value,
)
from kschedx.cli.output import SHARED, Answer, Format, Report, option
from kschedx.cli.question import Question, cluster_after_changes, shard_of
from kschedx.cli.streams import print_note
from kschedx.errors import ConfigError, InputError, Place
from kschedx.kube.selectors import parse_label_query
from kschedx.kube.types import Pod
from kschedx.progress import Phase, count_items

if TYPE_CHECKING:
    from kschedx.cli.connection import LoadedCluster
    from kschedx.explain.difference import Summary
    from kschedx.explain.profile_changes import Pair, ProfileChange
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.manifests import Manifests
    from kschedx.inquiry.profile_difference import SetupComparison
    from kschedx.snapshot.snapshot import Snapshot


def _profiles_and_target(
    arguments: Sequence[str], *, is_range: bool, names_cluster: bool, may_have_target: bool
) -> tuple[list[str], str]:
    """Return the profiles and the target, which comes last. A range of versions needs no second profile.

    With a range, a single argument is the profile, unless it has the form of a target, or the command line names a
    cluster and the argument is no profile.
    """
    from kschedx.cli.files import is_profile
    from kschedx.inquiry.target import referred_kind

    names = list(arguments)
    most = 1 if is_range else 2
    is_alone = (
        is_range
        and len(names) == 1
        and (referred_kind(names[0]) is not None or (names_cluster and not is_profile(names[0])))
    )
    target = names.pop() if may_have_target and (len(names) > most or is_alone) else ""
    allowed = "--kube-version OLD..NEW needs one profile or none" if is_range else "name two profiles, A and B"
    if len(names) > most or (not is_range and len(names) < most):
        hint = "for two versions: --kube-version OLD..NEW; for pods: --all, --all-pending, -l, or TARGET"
        raise InputError(f"{allowed}; found {', '.join(names) or 'none'}", hint=hint)
    return names, target


class _ProfileSide(NamedTuple):
    """One of the two profiles, before its version is final."""

    name: str
    config: Mapping[str, object] | None
    version: str | None  # the requested version, else that of the profile


def _named_sides(profiles: Sequence[str], kube_version: str | None) -> tuple[_ProfileSide, _ProfileSide]:
    """Return both with the version of `--kube-version`, which may be a range, else with that of each profile."""
    from kschedx.cli.files import DEFAULT, configuration, version_of

    old, dots, new = (kube_version or "").partition("..")
    if dots and not (old and new):
        raise ConfigError(f'--kube-version: found "{kube_version}", allowed is VERSION or OLD..NEW')
    names = [*profiles, DEFAULT] if not profiles else list(profiles)
    if dots:
        names = [names[0], names[0]]
    versions = (old or None, new or None) if dots else (kube_version, kube_version)
    first, second = (
        _ProfileSide(name, configuration(name), version or version_of(name))
        for name, version in zip(names, versions, strict=True)
    )
    return first, second


def _setups(
    both: tuple[_ProfileSide, _ProfileSide], question: Question, cluster: Snapshot | None
) -> tuple[Setup, Setup]:
    """Return both setups, with the requested versions, else those of the profiles, else the cluster's."""
    from kschedx.cli.files import error_places
    from kschedx.explain.setup import Setup, inferred_gates, release_to_emulate
    from kschedx.releases import resolve

    own = None if cluster is None else release_to_emulate(cluster, None)

    def setup(item: _ProfileSide) -> Setup:
        version = item.version or own
        gates = question.gates if cluster is None else inferred_gates(cluster, version, question.gates)
        with error_places(item.name):
            return Setup.of(
                item.name,
                item.config,
                resolve(version, gates),
                question.ask,
                without_unknown_plugins=question.without_unknown_plugins,
            )

    first, second = map(setup, both)
    return first, second


def _print_missing_profiles(before: Setup, after: Setup) -> None:
    """Print a note if the only profile of the second configuration is compared instead of one that it lacks."""
    missing = sorted(before.scheduler_names - after.scheduler_names)
    if missing and len(after.profiles) == 1:
        only = after.profiles[0].scheduler_name
        left = f"{after.name} has no profile for {', '.join(missing)}, whose pods it would leave Pending"
        print_note(f"{left}; {only} is compared instead")


_MOST_REPACKED = 5_000  # how many running pods are rescheduled by default
COMMAND = Command(
    "Compare scheduler profiles or versions",
    (
        OptionGroup.CLUSTER,
        OptionGroup.NAMESPACE,
        OptionGroup.ORPHANS,
        OptionGroup.UNKNOWN,
        OptionGroup.GATES,
        OptionGroup.EXTENDERS,
        OptionGroup.CONNECTION,
        OptionGroup.CHANGES,
        OptionGroup.DRAINING,
        OptionGroup.BASELINE,
    ),
    help="""Compare two scheduler profiles, or two Kubernetes versions, and where pods go with each.

\b
Examples:
  kschedx diff-profiles default binpack               # configurations
  kschedx diff-profiles default new.yaml --all        # every running pod
  kschedx diff-profiles --kube-version 1.33..1.36 --all-pending
  kschedx diff-profiles default binpack --pod shop/web-0
  kschedx diff-profiles default binpack --all --add-nodes 3=node-1

A and B are profiles: names that `kschedx profiles` lists, or files. With --kube-version OLD..NEW, one profile (the
default if you name none) is compared with itself under two versions. TARGET, --all-pending, --all, and -l select pods;
each is decided as if it were scheduled now. Without any of them, only the configurations are compared.

Exit codes: 0 same, 1 different, 2 usage or input error, 3 a pod is undecided, and no other pod differs.
""",
)


def diff_profiles(
    arguments: list[str] = argument("[A [B]] [TARGET]", complete=completion.profiles, default=[]),
    all_pending: bool = flag("Compare all pending pods.", "--all-pending"),
    all_running: bool = flag("Compare all running pods, each without itself.", "--all"),
    selector: str | None = SELECTOR,
    all_namespaces: bool = ALL_NAMESPACES,
    pod: str | None = value("NAMESPACE/NAME", "Compare one pod in detail, side by side."),
    output: Format | None = option(
        *(Format.WIDE, Format.JSON, Format.YAML, *SHARED, Format.JUNIT, Format.SARIF),
        text="wide shows every pod that differs; json and yaml the whole document; "
        "html, markdown, and svg to share it; junit and sarif for CI.",
    ),
    kube_version: str | None = value(
        "[OLD..]NEW",
        "The Kubernetes version to emulate, or two: OLD..NEW.  [default: the cluster's]",
        complete=completion.releases,
    ),
    jobs: int | None = value("N", "Processes.  [default: one per CPU]", "--jobs", "-j", min=1),
    nodes: bool | None = flag(
        "Place all running pods again with each profile and compare how full nodes are.  "
        f"[default: up to {_MOST_REPACKED:,} pods]",
        "--nodes/--no-nodes",
        default=None,
    ),
    shard: str | None = SHARD,
    *,
    question: Question,
) -> Answer:
    from kschedx.explain.profile_changes import Pair, changes
    from kschedx.inquiry.manifests import Manifests
    from kschedx.inquiry.profile_difference import SetupComparison
    from kschedx.inquiry.target import is_file

    many = all_pending or all_running or selector is not None
    part = shard_of(shard, is_json=output is Format.JSON)
    if part is not None and not many:
        raise InputError("--shard needs several pods: --all, --all-pending or -l")
    profiles, target = _profiles_and_target(
        arguments,
        is_range=".." in (kube_version or ""),
        names_cluster=question.names_cluster,
        may_have_target=not many and pod is None,
    )
    if pod is not None:
        if many:
            raise InputError("--pod selects one pod, and --all, --all-pending, and -l many", hint="omit one of them")
        target = pod
    both = _named_sides(profiles, kube_version)
    manifests = Manifests.read([target]) if target and is_file(target) else None
    reached = question.read_to_decide() if many or target else None
    before, after = _setups(both, question, reached.snapshot if reached else None)
    differences = changes(before, after)
    _print_missing_profiles(before, after)
    if question.what_if and reached is None:
        hint = "name the pods with --all, --all-pending, -l, or TARGET"
        raise InputError(f"--{question.what_if[0][0].replace('_', '-')} applies to pods in a cluster", hint=hint)
    if reached is None:
        comparison = SetupComparison(before=before, after=after, changes=differences)
        return Answer.of(_report(comparison), not differences)
    reached, _ = cluster_after_changes(question, reached, before)
    if target:
        connection.print_unknown_plugins(before, after)
        pair, pods = _pods(before, after, reached, target, question.namespace, manifests)
        return _compare_pod(pair, differences, pods, in_detail=pod is not None and output in (None, Format.WIDE))
    pair = Pair(reached.snapshot, before, after)
    rows, left_out = pair.choose(
        namespace=namespace_of_many(
            question.namespace, reached.namespace, everywhere=all_namespaces, by_labels=not (all_pending or all_running)
        ),
        labels=None if selector is None else parse_label_query(selector),
        pending=all_pending,
        running=all_running,
    )
    if selector is not None and not rows and not left_out:
        raise InputError(f'no pod has the labels "{selector}"', hint="-A searches every namespace")
    connection.print_notes(pair.snapshot, pair.before, pair.after)
    positions, rows = rows, rows if part is None else list(part.part(rows))
    summary = _compare(pair, rows, left_out, question.jobs(jobs))
    if part is None or part.index == 1:
        summary = _with_nodes(pair, positions, summary, question.jobs(jobs), nodes)  # one part reports it for all
    report = _report(_setup_comparison(pair, differences, summary))
    report = report if part is None else report.name_shard(part)
    is_same = not summary.differences
    return Answer.of(report, is_same, is_undecided=is_same and bool(summary.undecided))


def _compare_pod(pair: Pair, changes: tuple[ProfileChange, ...], pods: tuple[Pod, Pod], *, in_detail: bool) -> Answer:
    """Return the answer about a single pod; `in_detail` shows the explanations of both sides next to each other."""
    from kschedx.explain.difference import Summary, compare

    stories = pair.stories(*pods)
    difference = compare(*stories)
    summary = Summary(compared=1, differences=(difference,) if difference else ())
    report = _report(_setup_comparison(pair, changes, summary))
    if in_detail:
        from kschedx.render.comparison import story_lines

        names = (pair.before.name, pair.after.name)
        report = replace(report, screen=lambda width, _: story_lines(*stories, names, width=width))
    return Answer.of(report, not difference)


def _pods(
    before: Setup, after: Setup, reached: LoadedCluster, target: str, namespace: str | None, manifests: Manifests | None
) -> tuple[Pair, tuple[Pod, Pod]]:
    """Both profiles on the cluster, and the pod on both sides. The API server of each version admits a manifest."""
    from kschedx.explain.profile_changes import Pair
    from kschedx.inquiry.target import find_target

    snapshot = reached.snapshot
    if manifests is None:
        pod = find_target(snapshot, target, reached.namespace)
    else:
        manifests.set_namespaces(namespace, reached.namespace)
        snapshot = manifests.apply_to(snapshot)
        snapshot = manifests.apply_admitted(reached.snapshot, snapshot, after.release)
        pod, *others = manifests.pods(reached.snapshot, snapshot)
        if others:
            text = f"holds {len(others) + 1} pods and workloads, and two configurations are compared on one"
            raise InputError(text, source=target)
    subjects = [pod.admit(snapshot, setup) for setup in (before, after)]
    first, second = (subject.pod for subject in subjects)
    snapshot = subjects[-1].snapshot
    pair = Pair(snapshot, before, after)
    if not pair.knows(second.spec.scheduler_name):
        known = sorted(pair.before.scheduler_names | pair.after.scheduler_names)
        raise ConfigError(
            f'neither side schedules pods of "{second.spec.scheduler_name}"',
            place=Place(object=f"Pod {second.key}", field="spec.schedulerName"),
            hint=f"they have {', '.join(known)}",
        )
    return pair, (first, second)


def _compare(pair: Pair, rows: list[int], left_out: Mapping[str, int], jobs: int) -> Summary:
    """Compare the pods in several processes."""
    from kschedx.inquiry.profile_difference import compare_pods
    from kschedx.parallel import results

    return compare_pods(
        pair,
        rows,
        left_out,
        lambda work, parts: results(work, range(len(parts)), jobs, weights=[len(part.rows) for part in parts]),
    )


def _with_nodes(pair: Pair, rows: list[int], summary: Summary, jobs: int, wanted: bool | None) -> Summary:
    """Add how the profiles use the nodes, if that is `wanted` (None: if there are not too many pods) and every pod is
    decided."""
    from kschedx.parallel import results
    from kschedx.simulate.repack import compare_repacking, measure_filling, repack

    pods = pair.snapshot.pods
    running = [row for row in rows if pods.node[row] >= 0]
    if not running or summary.undecided or wanted is False:
        return summary
    if wanted is None and len(running) > _MOST_REPACKED:
        return replace(summary, not_repacked=len(running))
    sides = (pair.before, pair.after)
    sizes = [len(running)] * 2
    packed = results(lambda side: repack(pair.snapshot, sides[side], running), range(2), jobs, weights=sizes)
    before, after = count_items(packed, Phase.SCHEDULING, 2, "profiles")
    now = measure_filling(pair.before.scheduler.on_cluster(pair.snapshot).nodes)
    return replace(summary, repacking=compare_repacking(now, before, after))


def _setup_comparison(pair: Pair, changes: tuple[ProfileChange, ...], summary: Summary) -> SetupComparison:
    from kschedx.inquiry.profile_difference import SetupComparison

    return SetupComparison(
        before=pair.before, after=pair.after, changes=changes, summary=summary, snapshot=pair.snapshot
    )


def _report(comparison: SetupComparison) -> Report:
    from kschedx.cli.checks import summary_checks

    summary = comparison.summary
    return replace(Report.of(comparison), checks=lambda: [] if summary is None else [*summary_checks(summary)])

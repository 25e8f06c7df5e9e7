"""`kschedx fit`: how many more replicas fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, OUT, Command, OptionGroup, argument, value
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question, cluster_after_changes
from kschedx.cli.streams import print_note, print_note_if_file
from kschedx.errors import InputError, NotAdmittedError, NotReadError
from kschedx.kube.documents import API_VERSION
from kschedx.kube.types import Pod

if TYPE_CHECKING:
    from kschedx.cli.connection import LoadedCluster
    from kschedx.errors import Place
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.ask import Clusters
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.fit import Fit
    from kschedx.inquiry.manifests import PodInQuestion
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Count how many more pods fit",
    (*DECIDES, OptionGroup.CHANGES, OptionGroup.DRAINING),
    help="""Count how many more pods of a template fit, where, and what stops the next one.

\b
Examples:
  kschedx fit deploy/web -n shop
  kschedx fit gpu-job.yaml --replicas 8
  kschedx fit deploy/web --add-nodes 2=node-1

TARGET is a workload (deploy/web), a pod, or a manifest, as for `kschedx why`. Of a file with several workloads, each is
counted by itself. Its pods are placed one after the other.
Nothing is evicted for them. With --replicas N, kschedx reports whether N more fit, and how many nodes are missing.

Exit codes: 0 one more fits, or all of --replicas, 1 not, 2 usage or input error, 3 undecided.
""",
)


def fit(
    target: str = argument("TARGET", complete=completion.targets),
    replicas: int | None = value("N", "Report whether N more fit.", min=1, max=1_000_000),
    out: str | None = OUT,
    output: Format | None = option(
        *ALL, text="wide shows every node; json and yaml the whole document; name the nodes with their numbers"
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.cli.files import check_name, write_snapshot
    from kschedx.inquiry.ask import Clusters
    from kschedx.inquiry.fit import Fit
    from kschedx.kube.decoding import decode, encode

    if out is not None:
        check_name("--out", out)
    reached = question.read_to_decide()
    setup = question.setup(reached.snapshot)
    after, changes = cluster_after_changes(question, reached, setup)
    setup = replace(setup, notes=(*setup.notes, *changes))
    applied, targets = _targets(question, after, setup, target)
    if scaled := [it for it in targets if it.workload is None or it.workload.get("kind") != "DaemonSet"]:
        if len(scaled) < len(targets):
            print_note("DaemonSets are not counted: each has one pod on an eligible node")
        targets = scaled
    clusters = Clusters(read=after.snapshot, before=after.snapshot, applied=applied)
    connection.print_notes(applied, setup)
    if applied.pod_groups:
        pods = (target.stored or decode(encode(target.manifest, "pod"), Pod) for target in targets)
        connection.print_ignored_groups(applied, setup, pods)
    if len(targets) > 1 and out is not None:
        raise InputError(f"--out needs one workload, and {target} has {len(targets)}")
    answers = [_answer(clusters, setup, pod, _title(pod, target, len(targets)), replicas) for pod in targets]
    if out is not None and isinstance(answers[0], Fit):
        write_snapshot(out, answers[0].cluster_after)
    reports = [_report(item, of.place) for item, of in zip(answers, targets, strict=True)]
    return Answer(reports[0] if len(reports) == 1 else _several(reports), max(it.state.exit_code for it in answers))


def _answer(
    clusters: Clusters, setup: Setup, asked_pod: PodInQuestion, title: str, wanted: int | None
) -> Fit | Explanation:
    """Return how many more fit, or the answer of `why` if no number answers the question."""
    from kschedx.explain.missing_kinds import depends_on_unread
    from kschedx.inquiry.ask import UNCOUNTED, Inquiry, state_of_more
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.fit import fit as fitted
    from kschedx.inquiry.manifests import has_unknown_pods
    from kschedx.inquiry.pod import explain, no_scheduler

    inquiry, manifest = Inquiry(clusters=clusters, setup=setup), asked_pod.workload
    if manifest is not None and has_unknown_pods(manifest):
        return inquiry.answer(asked_pod, [asked_pod])
    try:
        subject = asked_pod.admit(clusters.applied, setup)
    except (NotAdmittedError, NotReadError):
        return inquiry.answer(asked_pod, [asked_pod])
    snapshot, pod = subject.snapshot, subject.pod
    if depends_on_unread(snapshot, pod) or no_scheduler(snapshot, pod, setup) is not None:
        return explain(subject, setup)
    state = state_of_more(clusters.before, subject, setup, manifest)
    if isinstance(state, Explanation):
        return state
    if isinstance(state, UNCOUNTED):
        return inquiry.answer(asked_pod, [asked_pod])
    result = fitted(snapshot, setup, pod, manifest=manifest, title=title, wanted=wanted)
    return result if state is None else replace(result, lifecycle=state)


def _title(pod: PodInQuestion, target: str, count: int) -> str:
    from kschedx.controllers.workloads import workload_of
    from kschedx.kube.decoding import map_at

    if pod.stored is not None or count == 1:
        return target
    name = str(map_at(pod.manifest, "metadata").get("name")).removesuffix("-new")
    return workload_of(pod.workload or pod.manifest).reference + (f" ({name})" if pod.is_one_of_several else "")


def _targets(
    question: Question, reached: LoadedCluster, setup: Setup, target: str
) -> tuple[Snapshot, list[PodInQuestion]]:
    """Return the cluster with the objects that the targets need, and the targets, each of which counts by itself."""
    from kschedx.inquiry.manifests import Manifests
    from kschedx.inquiry.target import find_target, is_file

    if not is_file(target):
        print_note_if_file(target)
        return reached.snapshot, [find_target(reached.snapshot, target, reached.namespace)]
    manifests = Manifests.read([target])
    manifests.set_namespaces(question.namespace, reached.namespace)
    before, snapshot = reached.snapshot, manifests.apply_to(reached.snapshot)
    snapshot = manifests.apply_admitted(before, snapshot, setup.release)
    return snapshot, [*manifests.pods(before, snapshot)]


def _report(answer: Fit | Explanation, place: Place) -> Report:
    from kschedx.cli.why_pod import explanation_report
    from kschedx.inquiry.fit import Fit

    if not isinstance(answer, Fit):
        return explanation_report(answer, place=place)
    return Report.of(answer, names=lambda: [f"node/{name} {number}" for name, number in answer.nodes.items()])


def _several(reports: Sequence[Report]) -> Report:
    """Combine the reports, one below the other."""

    from kschedx.render.terminal import BLANK

    return Report(
        screen=lambda width, wide: [line for report in reports for line in (BLANK, *report.screen(width, wide))][1:],
        document=lambda: {
            "apiVersion": API_VERSION,
            "kind": "FitList",
            "items": [report.document() for report in reports],
        },
        names=lambda: chain.from_iterable(report.names() for report in reports if report.names is not None),
    )

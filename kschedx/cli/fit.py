"""`kschedx fit`: how many more of it fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kschedx.cli import completion, connection
from kschedx.cli.options import DECIDES, OUT, Part
from kschedx.cli.output import Answer, ExitCode, Format, Report, option
from kschedx.cli.question import Question

if TYPE_CHECKING:
    from rich.text import Text

    from kschedx.errors import NotAdmittedError
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.manifests import Written
    from kschedx.kube.types import Pod
    from kschedx.render.page.model import Page
    from kschedx.simulate.fit import Fit
    from kschedx.snapshot.snapshot import Snapshot

HELP = """Count how many more pods of a template fit, where, and what stops the next one.

\b
Examples:
  kschedx fit deploy/web -n shop
  kschedx fit gpu-job.yaml --replicas 8
  kschedx fit deploy/web --add-nodes 2=node-1

TARGET is a workload (deploy/web), a pod, or a manifest, as for `kschedx why`. Its pods are placed one after the other.
Nothing is evicted for them. With --replicas N, kschedx reports whether N more fit, and how many nodes are missing.

Exit codes: 0 one more fits, or all of --replicas, 1 not, 2 usage or input error, 3 undecided.
"""
SUMMARY = "Count how many more pods fit"
PARTS = (*DECIDES, Part.CHANGES, Part.DRAINING)


def fit(
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, autocompletion=completion.targets)],
    replicas: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, metavar="N", help="Report whether N more fit.", show_default=False),
    ] = None,
    out: OUT = None,
    output: Annotated[
        Format | None,
        option(
            *(Format.WIDE, Format.JSON, Format.YAML, Format.NAME, Format.HTML, Format.MARKDOWN, Format.SVG),
            text="wide shows every node; json and yaml the whole document; name the nodes with their numbers; "
            "html, markdown and svg to share it.",
        ),
    ] = None,
    *,
    question: Question,
) -> Answer:
    """The command; its help is HELP."""
    from msgspec.structs import replace

    from kschedx.cli.files import check_name, write_snapshot
    from kschedx.cli.question import cluster_after_changes
    from kschedx.cli.why_pod import explanation_report, place_of
    from kschedx.errors import NotAdmittedError, Place
    from kschedx.explain.missing_kinds import depends_on_unread
    from kschedx.explain.subject import Subject
    from kschedx.inquiry.lifecycle import no_scheduler
    from kschedx.inquiry.pod import explain
    from kschedx.kube.types import Pod
    from kschedx.simulate.fit import fit as fitted

    if out is not None:
        check_name("--out", out)
    reached = question.read_to_decide()
    setup = question.setup(reached.snapshot)
    namespace = question.namespace or reached.namespace
    after, changes = cluster_after_changes(question, reached, setup)
    setup = replace(setup, notes=(*setup.notes, *changes))
    snapshot, one = _target(question, after.snapshot, setup, target, namespace)
    pod: Pod
    manifest: Mapping[str, object] | None = None
    if isinstance(one, Pod):
        pod = one
    else:
        try:
            subject = one.admitted(snapshot, setup)
        except NotAdmittedError as error:
            return _refused(after.snapshot, snapshot, setup, one, error)
        snapshot, pod, manifest = subject.snapshot, subject.pod, one.workload
    if depends_on_unread(snapshot, pod) or no_scheduler(snapshot, pod, setup) is not None:
        place = Place() if isinstance(one, Pod) else place_of(one)
        answer = explain(Subject(snapshot=snapshot, pod=pod, is_new=not isinstance(one, Pod)), setup)
        return Answer(explanation_report(answer, (), place, all_nodes=False), answer.exit_code)
    connection.tell_missing(snapshot)
    connection.tell_left_out(setup)
    connection.tell_ignored_groups(snapshot, setup)
    found = fitted(snapshot, setup, pod, manifest=manifest, title=target, wanted=replicas)
    if out is not None:
        write_snapshot(out, found.after)
    if found.could_reject and not found.is_enough:
        return Answer(_report(found), ExitCode.UNDECIDED)
    return Answer(_report(found), ExitCode.SCHEDULABLE if found.is_enough else ExitCode.UNSCHEDULABLE)


def _refused(before: Snapshot, snapshot: Snapshot, setup: Setup, one: Written, error: NotAdmittedError) -> Answer:
    """The answer of `why` about a pod that the API server refuses."""
    from kschedx.cli.why_pod import explanation_report, place_of
    from kschedx.inquiry.ask import Clusters, Inquiry

    clusters = Clusters(read=before, before=before, applied=snapshot)
    explanation = Inquiry(clusters=clusters, setup=setup).refused(one, error)
    return Answer(explanation_report(explanation, (), place_of(one), all_nodes=False), explanation.exit_code)


def _target(
    question: Question, snapshot: Snapshot, setup: Setup, target: str, namespace: str
) -> tuple[Snapshot, Pod | Written]:
    """The cluster with what the target needs, and the target."""
    from kschedx.errors import InputError
    from kschedx.inquiry.manifests import Manifests
    from kschedx.inquiry.target import find_target, is_file

    if not is_file(target):
        return snapshot, find_target(snapshot, target, question.namespace, default_namespace=namespace)
    manifests = Manifests.read([target])
    manifests.placed(question.namespace, namespace)
    before, snapshot = snapshot, manifests.applied(snapshot)
    snapshot = manifests.allowed(before, snapshot, setup.release)
    pods = manifests.pods(before, snapshot)
    if len(pods) != 1:
        raise InputError(f"{target} makes {len(pods)} different pods; expected one", hint="-f applies the others")
    return snapshot, pods[0]


def _report(found: Fit) -> Report:
    def screen(width: int, wide: bool) -> Sequence[Text]:
        from kschedx.render.simulation import fit_lines

        return fit_lines(found, width=width, wide=wide)

    def page(_: bool) -> Page:
        from kschedx.render.page.reports import fit_page

        return fit_page(found)

    return Report(
        screen=screen,
        document=found.to_dict,
        page=page,
        names=lambda: [f"node/{name} {number}" for name, number in found.nodes.items()],
    )

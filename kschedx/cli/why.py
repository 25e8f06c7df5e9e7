"""`kschedx why`: one pod's whole story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from kschedx.cli import completion
from kschedx.cli.exit_codes import exit_code_of
from kschedx.cli.output import Format, Report, option, write
from kschedx.cli.question import DECIDES, Question, asks

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.cli.connection import Reached
    from kschedx.cli.target import Written
    from kschedx.explain.setup import Setup
    from kschedx.render.page.model import Page
    from kschedx.snapshot.snapshot import Snapshot

HELP = """Why kube-scheduler puts a pod there, or nowhere.

TARGET is a manifest (a file, or - for standard input), a pod of the snapshot (pod/NAME, or just NAME), or a workload
whose template makes the pod (deploy/NAME, sts/NAME, ds/NAME, job/NAME, ...). A pod that runs already is explained as if
it were scheduled now.

Without TARGET, --all-pending or -l asks for many pods: equal reasons are told together, in the order of the queue.

With --watch, what changes is printed below, until the pod has a node (0) or is gone (1).

\b
Examples:
  kschedx why pod/web-0 -n shop                  # a pod that waits
  kschedx why deploy.yaml                        # before it is applied
  kschedx why --all-pending                      # every pod that waits, by reason
  kschedx why pod/web-0 -s cluster.json.gz       # in a cluster that was saved

Exit codes: 0 it can be scheduled, 1 it cannot, 2 usage or input error, 3 kschedx cannot decide.
"""
SUMMARY = "Why a pod is put on a node, or nowhere."


class Wanted(Struct, frozen=True, kw_only=True):
    """What the command line asks for, beside the cluster and its scheduler."""

    target: str | None = None
    all_pending: bool = False
    selector: str | None = None
    all_namespaces: bool = False
    node: list[str] = []
    nodes: str | None = None
    output: Format | None = None
    dry_run: str | None = None
    watch: bool = False

    @property
    def is_many(self) -> bool:
        return self.all_pending or self.selector is not None

    def check(self, question: Question) -> None:
        """Raises `InputError` for what does not go together."""
        from kschedx.errors import InputError

        if self.watch and (self.is_many or self.output or "-" in question.snapshot):
            other = "many pods" if self.is_many else f"-o {self.output}" if self.output else "--snapshot -"
            raise InputError(f"--watch is about one pod, as text, and does not go with {other}")
        if self.is_many == (self.target is not None):
            raise InputError("name one TARGET, or ask for many with --all-pending or -l")
        if "-" in question.snapshot and self.target == "-":
            raise InputError("standard input cannot be both the target and the snapshot")
        if self.nodes not in (None, "all"):
            raise InputError(f'--nodes: found "{self.nodes}", allowed is "all"', hint="--node NAME shows one")
        if self.dry_run not in (None, "server"):
            raise InputError(f'--dry-run: found "{self.dry_run}", allowed is "server"')
        if self.dry_run and (question.snapshot or self.is_many):
            raise InputError("--dry-run=server is about one manifest and a live cluster")


@asks(*DECIDES)
def why(
    target: Annotated[
        str | None, typer.Argument(metavar="[TARGET]", show_default=False, autocompletion=completion.targets)
    ] = None,
    all_pending: Annotated[bool, typer.Option("--all-pending", help="Every pod that waits for a node.")] = False,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", metavar="LABELS", help="Pods with these labels, as kubectl's -l.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="With --all-pending or -l: pods of every namespace.")
    ] = False,
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One node's whole story. Repeatable.", autocompletion=completion.nodes),
    ] = None,
    nodes: Annotated[str | None, typer.Option(metavar="all", help="`all`: a row for every node.")] = None,
    output: Annotated[
        Format | None,
        option(
            *(Format.WIDE, Format.JSON, Format.YAML, Format.NAME, Format.HTML, Format.MARKDOWN, Format.SVG),
            text="wide shows everything; json and yaml the whole document; html, markdown and svg to share it.",
        ),
    ] = None,
    dry_run: Annotated[
        str | None,
        typer.Option(
            "--dry-run",
            metavar="server",
            help="`server`: the live API server admits a manifest, and stores nothing. Needs the verb create on pods.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print what changes, until the pod has a node or is gone.")
    ] = False,
    interval: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="With --watch: the time between two looks at the cluster.")
    ] = 10,
    *,
    question: Question,
) -> int:
    """The command; its help is HELP."""
    wanted = Wanted(
        target=target,
        all_pending=all_pending,
        selector=selector,
        all_namespaces=all_namespaces,
        node=node or [],
        nodes=nodes,
        output=output,
        dry_run=dry_run,
        watch=watch,
    )
    wanted.check(question)
    reached = question.read_to_decide()
    setup = question.setup(reached.snapshot)
    if target is None:
        return _many(question, wanted, reached, setup)
    return _one(question, wanted, reached, setup, interval)


def _one(question: Question, wanted: Wanted, reached: Reached, setup: Setup, interval: int) -> int:
    """One pod's story, and what becomes of it where it is watched."""
    from kschedx.answer.run import explain
    from kschedx.api.types import Pod
    from kschedx.cli.target import find_target, node_names
    from kschedx.errors import ConfigError, InputError, Place

    target = wanted.target or ""
    found = find_target(reached.snapshot, target, question.namespace, default_namespace=reached.namespace)
    shown = node_names(reached.snapshot, wanted.node)
    if wanted.watch and not isinstance(found, Pod):
        raise InputError(f'--watch: "{target}" is no pod of the cluster', hint="name one: pod/NAME")
    try:
        explanation = explain(_subject(question, reached.snapshot, setup, found, wanted), setup)
    except ConfigError as error:
        raise (error.at(Place(source=target)) if error.place.object else error) from None
    write(_report(explanation, shown, all_nodes=wanted.nodes == "all"), wanted.output)
    if wanted.watch and isinstance(found, Pod):
        return _watched(question, found, explanation, interval)
    return exit_code_of(explanation.outcome)


def _watched(question: Question, pod: Pod, first: Explanation, interval: int) -> int:
    """The same question again and again."""
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.cli.watch import Watch

    def again(snapshot: Snapshot, pod: Pod) -> Explanation:
        return explain(stored(snapshot, pod), question.setup(snapshot))

    return Watch(pod, again, lambda: question.read_to_decide().snapshot, interval=interval).run(first)


def _subject(question: Question, snapshot: Snapshot, setup: Setup, found: Pod | Written, wanted: Wanted) -> Subject:
    """The pod as it is, or its manifest as the API server would store it, or says that it would."""
    from msgspec.structs import replace

    from kschedx.answer.subject import stored
    from kschedx.api.types import Pod

    if isinstance(found, Pod):
        return stored(snapshot, found)
    if not wanted.dry_run:
        return found.admitted(snapshot, setup)
    from kschedx.cli.dry_run import server_side

    manifest, notes = server_side(
        question.where, found.manifest, lambda manifest: found.admitted(snapshot, setup, manifest).pod
    )
    subject = found.admitted(snapshot, setup, manifest)
    return replace(subject, notes=(*notes, *subject.notes))


def _report(explanation: Explanation, nodes: tuple[str, ...], *, all_nodes: bool) -> Report:
    def screen(wide: bool) -> None:
        from kschedx.render.screen import print_why

        print_why(explanation, nodes=nodes, all_nodes=all_nodes, wide=wide)

    def page() -> Page:
        from kschedx.render.page.explanation import page_of

        return page_of(explanation)

    return Report(
        screen=screen,
        document=explanation.to_dict,
        page=page,
        names=lambda: [f"node/{name}" for name in explanation.chosen_nodes],
    )


def _many(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> int:
    """A row for each reason, or every document."""
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.api.label_query import parse_label_query
    from kschedx.cli import connection
    from kschedx.cli.why_many import Asked
    from kschedx.explain.many import rows_in_queue_order

    snapshot, namespace = reached.snapshot, question.namespace
    is_everywhere = wanted.all_namespaces or (namespace is None and wanted.all_pending)
    rows = rows_in_queue_order(
        snapshot,
        namespace=None if is_everywhere else namespace or reached.namespace,
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
    )
    connection.tell_missing(snapshot)
    asked = Asked(snapshot, rows, lambda pod: explain(stored(snapshot, pod), setup))
    write(asked.report(), wanted.output)
    return asked.exit_code

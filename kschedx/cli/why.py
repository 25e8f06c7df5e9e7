"""`kschedx why`: one pod's whole story."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from kschedx.cli import completion
from kschedx.cli.exit_codes import exit_code_of
from kschedx.cli.output import Format, Report, option, write
from kschedx.cli.question import DECIDES, SHARD, Question, asks, shard_of

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.cli.connection import Reached
    from kschedx.cli.manifests import Written
    from kschedx.errors import Place
    from kschedx.explain.setup import Setup
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page
    from kschedx.snapshot.snapshot import Snapshot

HELP = """Why kube-scheduler puts a pod there, or nowhere.

TARGET is a pod (pod/NAME, pod NAME, or just NAME), a workload whose template makes the pod (deploy/NAME, sts/NAME,
ds/NAME, job/NAME, ...), a node (node/NAME) for what it offers and whom it would take, or manifests: a file, a folder,
or - for standard input. What is in the files counts as if it were applied. A pod that runs already is explained as if
it were scheduled now.

Several pods and workloads, --all-pending or -l are told by what keeps them out, the largest group first. Pods of
--all-pending are placed one after the other, as the queue would take them.

With --watch, what changes is printed below, until the pod has a node (0) or is gone (1).

\b
Examples:
  kschedx why pod/web-0 -n shop                  # a pod that waits
  kschedx why deploy.yaml                        # before it is applied
  helm template shop ./chart | kschedx why -     # everything that a chart makes
  kschedx why --all-pending                      # every pod that waits, by reason
  kschedx why pod/web-0 -s cluster.json.gz       # in a cluster that was saved

Exit codes: 0 it can be scheduled, 1 it cannot, 2 usage or input error, 3 kschedx cannot decide.
"""
SUMMARY = "Why a pod is put on a node, or nowhere."


class Wanted(Struct, frozen=True, kw_only=True):
    """What the command line asks for, beside the cluster and its scheduler."""

    names: list[str] = []
    """Of what the cluster has, or will have with `files` applied."""
    files: list[str] = []
    """Manifests. Without `names` everything in them is asked about."""
    all_pending: bool = False
    selector: str | None = None
    all_namespaces: bool = False
    alone: bool = False
    node: list[str] = []
    nodes: str | None = None
    output: Format | None = None
    dry_run: str | None = None
    watch: bool = False
    interactive: bool = False
    fix: int | None = None
    """Which one to apply, from 1."""
    tries: list[str] = []
    """Changes of the pod."""
    shard: str | None = None

    @classmethod
    def targets(cls, arguments: list[str], files: list[str]) -> tuple[list[str], list[str]]:
        """Names and files; `pod web-0` in two words is `pod/web-0`."""
        from kschedx.api.workloads import SHORT_NAMES
        from kschedx.cli.target import NODE_NAMES, is_file

        match arguments:
            case [kind, name] if (kind.lower() in SHORT_NAMES or kind.lower() in NODE_NAMES) and "/" not in name:
                if not is_file(kind) and not is_file(name):
                    return [f"{kind}/{name}"], files
        return [one for one in arguments if not is_file(one)], [
            *files,
            *(one for one in arguments if is_file(one)),
        ]

    @property
    def is_plain(self) -> bool:
        """Nothing is asked for that is about one pod's own story."""
        formats = (None, Format.WIDE, Format.JSON, Format.YAML, Format.NAME)
        alone = self.node or self.nodes or self.interactive or self.fix or self.tries
        return self.output in formats and not alone

    @property
    def is_many(self) -> bool:
        return self.all_pending or self.selector is not None

    def check(self, question: Question) -> None:
        """Raises `InputError` for what does not go together."""
        from kschedx.errors import InputError

        if self.watch and (self.is_many or self.output or "-" in question.snapshot):
            other = "many pods" if self.is_many else f"-o {self.output}" if self.output else "--snapshot -"
            raise InputError(f"--watch is about one pod, as text, and does not go with {other}")
        if self.interactive and (self.is_many or self.output or self.watch or not sys.stdout.isatty()):
            others = {"many pods": self.is_many, f"-o {self.output}": self.output, "--watch": self.watch}
            other = next((name for name, given in others.items() if given), "a standard output that is no terminal")
            raise InputError(f"--interactive is about one pod, in a terminal, and does not go with {other}")
        if self.shard is not None and not self.is_many:
            raise InputError("--shard is about many pods: --all-pending or -l")
        if self.is_many == bool(self.names or self.files):
            raise InputError("name a TARGET or a file with -f, or ask for many with --all-pending or -l")
        if "-" in question.snapshot and "-" in self.files:
            raise InputError("standard input cannot be both the target and the snapshot")
        if self.nodes not in (None, "all"):
            raise InputError(f'--nodes: found "{self.nodes}", allowed is "all"', hint="--node NAME shows one")
        if self.dry_run not in (None, "server"):
            raise InputError(f'--dry-run: found "{self.dry_run}", allowed is "server"')
        if (self.output is Format.PATCH) > (self.fix is not None):
            raise InputError("-o patch prints a fix", hint="which one says --fix N")
        if self.fix is not None and self.output not in (Format.PATCH, Format.YAML):
            raise InputError("--fix prints a fix to apply", hint="-o patch or -o yaml")
        if (self.fix is not None or self.tries) and (self.is_many or self.watch):
            raise InputError(f"--{'try' if self.tries else 'fix'} is about one pod")
        if self.dry_run and (question.snapshot or self.is_many):
            raise InputError("--dry-run=server is about one manifest and a live cluster")


@asks(*DECIDES)
def why(
    target: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", show_default=False, autocompletion=completion.targets)
    ] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Manifests as if applied: a file, a folder, or - for standard input. Without TARGET, everything in "
            "them is asked about. Repeatable.",
        ),
    ] = None,
    all_pending: Annotated[bool, typer.Option("--all-pending", help="Every pod that waits for a node.")] = False,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", metavar="LABELS", help="Pods with these labels, as kubectl's -l.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="With --all-pending or -l: pods of every namespace.")
    ] = False,
    alone: Annotated[
        bool, typer.Option("--alone", help="With --all-pending: each as if it came next, whatever the others take.")
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
            *(Format.JUNIT, Format.SARIF, Format.PATCH),
            text="wide shows everything; json and yaml the whole document; html, markdown and svg to share it; junit "
            "and sarif for CI; with --fix: patch for kubectl's commands, yaml for the manifests as they would be.",
        ),
    ] = None,
    fix: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The N-th fix, to apply: -o patch or -o yaml. Nothing is ever sent."),
    ] = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="CHANGE",
            help="Try a change of the pod and say what it does: spec.nodeSelector.disk=ssd, spec.nodeSelector.disk- to "
            "remove it, or a file with a JSON patch or a merge patch. Repeatable.",
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
    interactive: Annotated[
        bool,
        typer.Option("--interactive", "-i", help="Walk through one pod's answer. Needs the extra interactive."),
    ] = False,
    shard: SHARD = None,
    interval: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="With --watch: the time between two looks at the cluster.")
    ] = 10,
    *,
    question: Question,
) -> int:
    """The command; its help is HELP."""
    from kschedx.cli.manifests import Manifests
    from kschedx.cli.target import find_target, named_node
    from kschedx.cli.why_node import why_node
    from kschedx.errors import InputError

    names, files = Wanted.targets(target or [], filename or [])
    wanted = Wanted(
        names=names,
        files=files,
        all_pending=all_pending,
        selector=selector,
        all_namespaces=all_namespaces,
        alone=alone,
        node=node or [],
        nodes=nodes,
        output=output,
        dry_run=dry_run,
        watch=watch,
        interactive=interactive,
        fix=fix,
        tries=tries or [],
        shard=shard,
    )
    wanted.check(question)
    manifests = Manifests.read(files) if files else None
    reached = question.read_to_decide()
    snapshot = reached.snapshot
    if manifests is not None:
        manifests.placed(question.namespace, reached.namespace)
        snapshot = manifests.applied(snapshot)
    setup = question.setup(snapshot)
    if wanted.is_many:
        return _many(question, wanted, reached, setup)
    if len(names) == 1 and (node_name := named_node(names[0])):
        if not wanted.is_plain or wanted.watch or wanted.dry_run:
            raise InputError(f"{names[0]} is no pod", hint="a node is shown as text, wide, json, yaml or name")
        return why_node(snapshot, setup, node_name, output)
    found: list[Pod | Written]
    if manifests is not None and not names:
        found = [*manifests.pods(reached.snapshot, snapshot)]
    else:
        found = []
        for name in names:
            of_files = manifests.named(name, reached.snapshot, snapshot) if manifests is not None else []
            found += of_files or [find_target(snapshot, name, question.namespace, default_namespace=reached.namespace)]
    if len(found) > 1:
        return _several(question, wanted, snapshot, setup, found)
    return _one(question, wanted, snapshot, setup, found[0], interval)


def _one(
    question: Question, wanted: Wanted, snapshot: Snapshot, setup: Setup, found: Pod | Written, interval: int
) -> int:
    """One pod's story, and what becomes of it where it is watched."""
    from kschedx.answer.run import explain
    from kschedx.api.types import Pod
    from kschedx.cli.extras import needs
    from kschedx.cli.manifests import Written
    from kschedx.cli.target import node_names
    from kschedx.errors import ConfigError, InputError

    shown = node_names(snapshot, wanted.node)
    if wanted.watch and not isinstance(found, Pod):
        asked = (wanted.names or wanted.files)[0]
        raise InputError(f'--watch: "{asked}" is no pod of the cluster', hint="name one: pod/NAME")
    try:
        subject = _subject(question, snapshot, setup, found, wanted)
        if isinstance(found, Written) and found.is_daemon and wanted.is_plain:
            return _daemon_set(subject, setup, found, wanted.output)
        explanation = explain(subject, setup, question.autoscaling)
        if wanted.tries:
            explanation = _tried(wanted.tries, snapshot, setup, found, explanation)
    except ConfigError as error:
        if isinstance(found, Pod) or found.document is None or not error.place.object:
            raise
        raise found.document.fault(error, below=found.template) from None
    if wanted.interactive:
        with needs("interactive"):
            from kschedx.cli.interactive import Why
        Why(explanation).run()
        return exit_code_of(explanation.outcome)
    if wanted.fix is not None:
        write(_fix_report(explanation, wanted.fix, found), wanted.output)
        return exit_code_of(explanation.outcome)
    write(_report(explanation, shown, place_of(found), all_nodes=wanted.nodes == "all"), wanted.output)
    if wanted.watch and isinstance(found, Pod):
        return _watched(question, found, explanation, interval)
    return exit_code_of(explanation.outcome)


def _daemon_set(subject: Subject, setup: Setup, found: Written, output: Format | None) -> int:
    """The nodes of a DaemonSet."""
    from kschedx.answer.daemon_set import explain_daemon_set
    from kschedx.cli.manifests import title

    name = title(found.workload or {}).partition(" ")[2]
    answer = explain_daemon_set(f"{subject.pod.metadata.namespace}/{name}", subject, setup)

    def screen(wide: bool) -> None:
        from kschedx.render.daemon_set import print_daemon_set

        print_daemon_set(answer, wide=wide)

    report = Report(screen=screen, document=answer.to_dict, names=lambda: [f"node/{node}" for node in answer.runs])
    write(report, output)
    return exit_code_of(answer.outcome)


def _several(
    question: Question, wanted: Wanted, snapshot: Snapshot, setup: Setup, found: Sequence[Pod | Written]
) -> int:
    """Every pod of some manifests, by what keeps them out."""
    from kschedx.answer.run import explain
    from kschedx.api.types import Pod
    from kschedx.cli.manifests import Written
    from kschedx.cli.why_many import Asked, Item
    from kschedx.errors import InputError
    from kschedx.explain.many import owner_of

    about_one = {
        "watch": wanted.watch,
        "dry-run=server": wanted.dry_run,
        "fix": wanted.fix,
        "try": wanted.tries,
    }
    for name, is_asked in about_one.items():
        if is_asked:
            raise InputError(f"--{name} is about one pod, and there are several")
    items = []
    for one in found:
        subject = _subject(question, snapshot, setup, one, wanted)
        pod = subject.pod
        owner = one.title if isinstance(one, Written) and one.workload else owner_of(snapshot, pod)
        items.append(
            Item(
                pod=pod.key,
                owner=owner,
                priority=pod.spec.priority or 0,
                command=_command(pod.metadata.namespace, owner, pod.metadata.name, wanted.files),
                explain=partial(explain, subject, setup),
                place=place_of(one),
            )
        )
    asked = Asked(items, competing=any(not isinstance(one, Pod) for one in found))
    write(asked.report(), wanted.output)
    return asked.exit_code


def _command(namespace: str, owner: str, name: str, files: Sequence[str] = ()) -> str:
    """What tells one pod's whole story."""
    from kschedx.api.workloads import SHORT_NAMES

    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if files and short else f"pod/{name}"
    return f"kschedx why {target} -n {namespace}" + "".join(f" -f {file}" for file in files)


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


def _tried(
    changes: Sequence[str], snapshot: Snapshot, setup: Setup, found: Pod | Written, before: Explanation
) -> Explanation:
    """The same question about the pod as somebody thinks that it should be."""
    import msgspec

    from kschedx.answer import trying
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.api.types import Pod
    from kschedx.explain.notes import Note

    manifest = trying.as_manifest(found) if isinstance(found, Pod) else dict(found.manifest)
    for change in changes:
        patch = _patch_of(change)
        manifest = trying.with_change(manifest, change) if patch is None else trying.with_patch(manifest, patch)
    if isinstance(found, Pod):
        subject = stored(snapshot, trying.as_pod(manifest))
    else:
        subject = found.admitted(snapshot, setup, manifest)
    text = f"tried with {', '.join(changes)}; without it: {before.outcome.value}"
    note = Note(id="tried", text=text, facts={"changes": list(changes), "before": before.outcome.value})
    return explain(msgspec.structs.replace(subject, notes=(note, *subject.notes)), setup)


def _patch_of(change: str) -> object | None:
    """What a file with a patch holds; None where the change is no file."""
    from pathlib import Path

    import yaml

    from kschedx.errors import InputError, Place

    if not Path(change).is_file():
        return None
    try:
        found: object = yaml.safe_load(Path(change).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {str(error).splitlines()[0]}", place=Place(source=change)) from None
    return found


def _fix_report(explanation: Explanation, number: int, found: Pod | Written) -> Report:
    """One fix, to apply."""
    from kschedx.cli.apply import known_manifest
    from kschedx.errors import InputError

    fixes = explanation.fixes
    if number > len(fixes):
        there = f"there {'is' if len(fixes) == 1 else 'are'} {len(fixes)}" if fixes else "there is none"
        raise InputError(f"no fix {number}: {there}")
    fix = fixes[number - 1]

    def yaml() -> str:
        from kschedx.render.apply import manifests

        return manifests(fix.apply, known_manifest(explanation.cycle.snapshot, found))

    def patch() -> str:
        from kschedx.render.apply import commands

        return commands(fix.apply)

    return Report(screen=lambda _: None, document=fix.to_dict, yaml=yaml, patch=patch)


def place_of(found: Pod | Written) -> Place:
    """Where in a file a pod is from."""
    from kschedx.api.types import Pod
    from kschedx.errors import Place

    return Place() if isinstance(found, Pod) or found.document is None else found.document.place


def _report(explanation: Explanation, nodes: tuple[str, ...], place: Place, *, all_nodes: bool) -> Report:
    def screen(wide: bool) -> None:
        from kschedx.render.screen import print_why

        print_why(explanation, nodes=nodes, all_nodes=all_nodes, wide=wide)

    def page(whole: bool) -> Page:
        from kschedx.render.page.explanation import page_of

        return page_of(explanation, every_node=whole)

    def checks() -> list[Check]:
        from kschedx.cli.checks import of_explanation

        return [of_explanation(explanation, place)]

    return Report(
        screen=screen,
        document=explanation.to_dict,
        page=page,
        checks=checks,
        names=lambda: [f"node/{name}" for name in explanation.chosen_nodes],
    )


def _many(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> int:
    """A row for each reason, or every document."""
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.api.label_query import parse_label_query
    from kschedx.cli import connection
    from kschedx.cli.why_many import Asked, Item
    from kschedx.explain.many import owner_of, rows_in_queue_order
    from kschedx.simulate.in_turn import InTurn

    snapshot, namespace = reached.snapshot, question.namespace
    is_everywhere = wanted.all_namespaces or (namespace is None and wanted.all_pending)
    rows = rows_in_queue_order(
        snapshot,
        namespace=None if is_everywhere else namespace or reached.namespace,
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
    )
    connection.tell_missing(snapshot)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))

    in_turn = InTurn.of(snapshot, setup) if wanted.all_pending and not wanted.alone and rows else None

    def item(row: int) -> Item:
        pod = snapshot.pods[row]
        owner = owner_of(snapshot, pod)
        if in_turn is not None and in_turn.is_queued(pod.key):
            return Item(
                pod=pod.key,
                owner=owner,
                priority=int(snapshot.pods.priorities[row]),
                command=_command(pod.metadata.namespace, owner, pod.metadata.name),
                explain=lambda: in_turn.explanation(pod.key),
                node=in_turn.node(pod.key),
                taken=in_turn.taken(pod.key),
            )
        return Item(
            pod=pod.key,
            owner=owner,
            priority=int(snapshot.pods.priorities[row]),
            command=_command(pod.metadata.namespace, owner, pod.metadata.name),
            explain=lambda: explain(stored(snapshot, snapshot.pods[row]), setup),
        )

    notes = () if in_turn is None else in_turn.notes()
    asked = Asked([item(row) for row in rows], jobs=question.jobs(), notes=notes)
    report = asked.report()
    write(report if part is None else report.marked(part), wanted.output)
    return asked.exit_code

"""The arguments of `kschedx why`, besides the cluster and its scheduler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli import completion
from kschedx.cli.options import ALL_NAMESPACES, INTERVAL, SELECTOR, SHARD, Arguments, argument, flag, value, values
from kschedx.cli.output import ALL, Answer, Format, Report, option, write
from kschedx.cli.question import Question
from kschedx.cli.streams import print_note, print_note_if_file
from kschedx.controllers.states import decision_name, row_named
from kschedx.errors import ConfigError, InputError, NotAdmittedError, Place
from kschedx.kube.types import Pod

if TYPE_CHECKING:
    from kschedx.cli.interactive import Try
    from kschedx.explain.setup import Setup, Subject
    from kschedx.inquiry.ask import Clusters, Inquiry
    from kschedx.inquiry.daemon_set import DaemonSetAnswer
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.manifest_edit import Edit
    from kschedx.inquiry.manifests import PodInQuestion
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page
    from kschedx.render.terminal import StyledLine
    from kschedx.snapshot.snapshot import Snapshot


class WhyArguments(Arguments, frozen=True, kw_only=True):
    """The arguments on the command line, besides the cluster and its scheduler."""

    target: list[str] = argument("[TARGET]...", complete=completion.targets, default=[])
    filename: list[str] = values(
        "FILE",
        "Manifests that count as applied: a file, a folder, or - for standard input. Without TARGET, "
        "everything in them is explained. Repeatable.",
        "--filename",
        "-f",
    )
    names: Sequence[str] = ()  # names of objects that the cluster has, or will have with `files` applied
    files: Sequence[str] = ()  # manifests. Without `names`, the question is about everything in them
    all_pending: bool = flag("Explain all pending pods by cause.", "--all-pending")
    selector: str | None = SELECTOR
    all_namespaces: bool = ALL_NAMESPACES
    alone: bool = flag("Explain each pod as if it were next; for a workload, one pod.", "--alone")
    node: list[str] = values("NAME", "Show everything about one node. Repeatable.", complete=completion.nodes)
    nodes: str | None = value("all", "Show a row for every node.")
    output: Format | None = option(
        *ALL,
        *(Format.JUNIT, Format.SARIF, Format.PATCH),
        text="wide shows everything; json and yaml the whole document; html, markdown, and svg to share it; junit "
        "and sarif for CI; with --fix: patch for kubectl's commands, yaml for the manifests as they would be.",
    )
    fix: int | None = value("N", "Print the N-th fix with -o patch or -o yaml. Nothing is sent.", min=1)
    tries: list[str] = values(
        "CHANGE",
        "Try a change of the pod: spec.nodeSelector.disk=ssd, spec.nodeSelector.disk- to "
        "remove it, or a file with a JSON patch or a merge patch. Repeatable.",
        "--try",
    )
    dry_run: str | None = value(
        "server", "Let the live API server admit the manifest without storing it. Needs `create` on pods."
    )
    watch: bool = flag("Print changes until the pod has a node or is gone.", "--watch", "-w")
    interactive: bool = flag("Browse the answer. Needs the extra interactive.", "--interactive", "-i")
    shard: str | None = SHARD
    interval: int = INTERVAL

    def with_names(self) -> WhyArguments:
        """Return the arguments with names and files; `pod web-0` as two words is `pod/web-0`."""
        from kschedx.inquiry.target import is_file, is_kind, is_object

        match self.target:
            case [kind, name] if is_kind(kind) and "/" not in name:
                if not is_file(kind) and not is_file(name):
                    return replace(self, names=[f"{kind}/{name}"], files=self.filename)
        for name in filter(is_object, self.target):
            print_note_if_file(name)
        files = [text for text in self.target if is_file(text)]
        names = [text for text in self.target if not is_file(text)]
        return replace(self, names=names, files=[*self.filename, *files])

    @property
    def is_plain(self) -> bool:
        """Whether the question is about the manifest as it is, on all nodes."""
        return not (self.node or self.nodes or self.interactive or self.tries)

    @property
    def is_about_node(self) -> bool:
        """Whether the question is about one node."""
        return len(self.node) == 1 and not (self.nodes or self.interactive or self.tries)

    @property
    def is_many(self) -> bool:
        return self.all_pending or self.selector is not None

    def check(self, question: Question) -> None:
        """Raise `InputError` for arguments that cannot be combined."""
        if self.watch and (self.is_many or self.output or "-" in question.snapshot):
            other = "many pods" if self.is_many else f"-o {self.output}" if self.output else "--snapshot -"
            raise InputError(f"--watch prints one pod as text and cannot be combined with {other}")
        if self.watch and question.what_if:
            raise InputError("--watch follows the cluster as it is and cannot be combined with changes")
        others = {f"-o {self.output}": self.output, "--watch": self.watch, "--shard": self.shard}
        other = next((name for name, given in others.items() if given), "")
        if self.interactive and other:
            raise InputError(f"--interactive cannot be combined with {other}")
        if self.interactive and not sys.stdout.isatty():
            raise InputError("--interactive needs a terminal, and standard output is none")
        if self.shard is not None and not self.is_many:
            raise InputError("--shard needs several pods: --all-pending or -l")
        if self.is_many == bool(self.names or self.files):
            raise InputError("name a TARGET or a file with -f, or select pods with --all-pending or -l")
        if "-" in question.snapshot and "-" in self.files:
            raise InputError("standard input cannot be both the target and the snapshot")
        if self.nodes not in (None, "all"):
            raise InputError(f'--nodes: found "{self.nodes}", allowed is "all"', hint="--node NAME shows one")
        if self.dry_run not in (None, "server"):
            raise InputError(f'--dry-run: found "{self.dry_run}", allowed is "server"')
        if (self.output is Format.PATCH) > (self.fix is not None):
            raise InputError("-o patch prints a fix", hint="name one with --fix N")
        if self.fix is not None and self.output not in (Format.PATCH, Format.YAML):
            raise InputError("--fix prints a fix to apply", hint="-o patch or -o yaml")
        if (self.fix is not None or self.tries) and (self.is_many or self.watch):
            raise InputError(f"--{'try' if self.tries else 'fix'} needs one pod")
        if self.dry_run and (question.snapshot or self.is_many):
            raise InputError("--dry-run=server needs one manifest and a live cluster")


def explain_target(
    question: Question,
    wanted: WhyArguments,
    clusters: Clusters,
    setup: Setup,
    pod: PodInQuestion,
    queue: Sequence[PodInQuestion],
) -> Answer | int:
    """Explain one pod, and what happens to it while it is watched. `queue` are the pod and the others in the files, in
    order."""
    from kschedx.cli.fix_output import fix_report
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.target import node_names

    shown = node_names(clusters.applied, wanted.node)
    if wanted.watch and pod.stored is None:
        target = (wanted.names or wanted.files)[0]
        raise InputError(f'--watch: "{target}" is not a pod of the cluster', hint="name one: pod/NAME")
    answer = _explain(wanted, inquiry_of(question, wanted, clusters, setup), pod, queue)
    if not isinstance(answer, Explanation):
        return _daemon_set_answer(answer, pod, wanted, clusters.before)
    if wanted.interactive:
        from kschedx.cli.interactive import Why, show

        show(Why(answer, typed_change(question, setup)), answer.cycle.all_nodes.cluster.names)
        return answer.exit_code
    if wanted.fix is not None:
        return Answer(fix_report(answer, answer.fixes, wanted.fix, pod, clusters.before), answer.exit_code)
    report = explanation_report(answer, shown, place=pod.place, all_nodes=wanted.nodes == "all")
    if wanted.watch and pod.stored is not None:
        write(report, wanted.output)
        return _watch(question, pod.stored, answer, wanted.interval)
    return Answer(report, answer.exit_code)


def _explain(
    wanted: WhyArguments, inquiry: Inquiry, pod: PodInQuestion, queue: Sequence[PodInQuestion]
) -> Explanation | DaemonSetAnswer:
    from kschedx.inquiry.target import node_names

    cluster = inquiry.clusters.applied
    try:
        if wanted.tries:
            return inquiry.explain_edited(pod, queue, list(map(_edit, wanted.tries)))
        if pod.is_daemon:
            if cluster.cluster.nodes and replace(wanted, nodes=None).is_plain and not inquiry.is_held(pod):
                return inquiry.explain_daemon_set(pod, (pod,) if wanted.alone else queue)
            if wanted.is_about_node and not inquiry.is_stopped(pod):
                answer = inquiry.explain_daemon_set(pod, (pod,))
                return replace(answer, node=node_names(cluster, wanted.node)[0])
        return inquiry.answer(pod, queue)
    except NotAdmittedError as error:
        if pod.stored is not None or wanted.interactive or wanted.tries:
            raise
        return inquiry.refused(pod, error)
    except ConfigError as error:
        if pod.document is None or not error.place.object:
            raise
        raise pod.document.fault(error, below=pod.template) from None


def _watch(question: Question, pod: Pod, explanation: Explanation, interval: int) -> int:
    from kschedx.cli.watch import Watch
    from kschedx.explain.setup import stored_subject
    from kschedx.inquiry.pod import explain

    def again(snapshot: Snapshot, pod: Pod) -> Explanation:
        return explain(stored_subject(snapshot, pod), question.setup(snapshot))

    sys.stdout.flush()  # a pipe shows the answer before the first wait, too
    if not pod.spec.node_name:
        read = ", ".join(question.snapshot) or "the cluster"
        print_note(f"every {interval} s, --watch reads {read} again; Ctrl-C ends")
    return Watch(pod, again, lambda: question.read_to_decide().snapshot, interval=interval).run(explanation)


def inquiry_of(question: Question, wanted: WhyArguments, clusters: Clusters, setup: Setup) -> Inquiry:
    from kschedx.inquiry.ask import Inquiry

    return Inquiry(
        clusters=clusters,
        setup=setup,
        autoscaling=question.autoscaling,
        is_alone=wanted.alone,
        is_written=bool(wanted.tries or wanted.dry_run),
        admission=_server_admission(question, setup) if wanted.dry_run else None,
    )


def _daemon_set_answer(
    answer: DaemonSetAnswer, target: PodInQuestion, wanted: WhyArguments, before: Snapshot
) -> Answer:
    from kschedx.cli.fix_output import fix_report

    node, code = answer.node, row_named(decision_name(answer.outcome)).exit_code
    if wanted.fix is not None:
        return Answer(fix_report(answer.explanation, answer.fixes, wanted.fix, target, before), code)
    nodes = answer.answer_on(node).chosen_nodes if node else answer.runs
    report = Report.of(answer, names=lambda: [f"node/{name}" for name in nodes])
    if wanted.nodes:
        screen = report.screen
        report = replace(report, screen=lambda width, _: screen(width, True))
    return Answer(replace(report, checks=lambda: [_check(answer, target)]), code)


def _check(answer: DaemonSetAnswer, target: PodInQuestion) -> Check:
    from kschedx.cli.checks import pod_check
    from kschedx.render.subjects import daemon_set_view
    from kschedx.render.view import Tone

    name, view = f"{answer.name} on {answer.node}" if answer.node else answer.name, daemon_set_view(answer)
    rows = [item.title for item in view.items if item.tone is not Tone.GOOD]
    fixes = (*view.fixes, *(fix for item in view.items for fix in item.fixes))
    phrases = (view.headline, *view.because, *rows, *(f"fix: {fix.text}" for fix in fixes[:1]))
    return pod_check(name, answer.outcome, phrases, target.place)


def _server_admission(question: Question, setup: Setup) -> Callable[[PodInQuestion, Snapshot], Subject]:
    """Return a function that lets the API server admit a manifest by a dry run, once for each cluster."""
    known: list[tuple[PodInQuestion, Snapshot, Subject]] = []

    def admit(target: PodInQuestion, snapshot: Snapshot) -> Subject:
        from kschedx.cli.dry_run import server_side
        from kschedx.explain.admission import UNREAD

        if target.stored is not None:
            return target.admit(snapshot, setup)
        for other, cluster, subject in known:
            if other is target and cluster is snapshot:
                return subject
        manifest, note = server_side(
            question.where, target.manifest, lambda manifest: target.admit(snapshot, setup, manifest).pod
        )
        subject = target.admit(snapshot, setup, manifest)
        others = (note for note in subject.notes if note.id != UNREAD)  # the server has evaluated them
        subject = replace(subject, notes=(note, *others))
        known.append((target, snapshot, subject))
        return subject

    return admit


def typed_change(question: Question, setup: Setup) -> Try:
    """The function that `why -i` calls with a change of the displayed pod, which includes the fixes tried before."""
    from kschedx.explain.setup import stored_subject
    from kschedx.inquiry.manifest_edit import Edit
    from kschedx.inquiry.manifests import decode_pod, pod_manifest

    def tried(before: Explanation, change: str) -> Explanation:
        from kschedx.inquiry.pod import explain

        pod = decode_pod(Edit(change).apply(pod_manifest(before.cycle.pod), source=change))
        return explain(stored_subject(before.cycle.snapshot, pod), setup, question.autoscaling)

    return tried


def _edit(change: str) -> Edit:
    from kschedx.cli.files import single_document
    from kschedx.inquiry.manifest_edit import Edit

    return Edit(change, single_document(change) if Path(change).is_file() else None)


def explanation_report(
    explanation: Explanation, nodes: tuple[str, ...] = (), *, place: Place | None = None, all_nodes: bool = False
) -> Report:
    def screen(width: int, wide: bool) -> Sequence[StyledLine]:
        from kschedx.render.screen import why_lines

        return why_lines(explanation, width=width, nodes=nodes, all_nodes=all_nodes, wide=wide)

    def page(whole: bool) -> Page:
        from kschedx.render.page.explanation import explanation_page

        return explanation_page(explanation, nodes=nodes, every_node=whole)

    def checks() -> list[Check]:
        from kschedx.cli.checks import explanation_check

        return [explanation_check(explanation, place or Place())]

    def names() -> list[str]:
        replicas = explanation.replicas
        if explanation.lifecycle is not None:
            node = getattr(explanation.lifecycle, "node", "")
            return [f"node/{node}"] if node else []
        if replicas is None:
            return [f"node/{name}" for name in explanation.chosen_nodes]
        return [f"{pod} node/{node}" for pod, node in replicas.placed.items()] + [*replicas.pending, *replicas.refused]

    return Report(screen=screen, document=explanation.to_dict, page=page, checks=checks, names=names)

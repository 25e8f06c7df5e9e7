"""`kschedx why` for one pod: its story, what becomes of it, what a change would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.cli.exit_codes import ExitCode, exit_code_of
from kschedx.cli.output import Format, Report, write
from kschedx.cli.question import Question
from kschedx.cli.wanted import Wanted
from kschedx.cli.why_queue import gather_queue
from kschedx.cli.why_refused import refusal_report
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.cli.interactive import Try
    from kschedx.cli.manifests import Written
    from kschedx.errors import Place
    from kschedx.explain.setup import Setup
    from kschedx.framework.cycle import Outcome
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page


class Clusters(Struct, frozen=True, kw_only=True):
    """What is asked about is in the second."""

    read: Snapshot
    """As it is."""
    before: Snapshot
    """With the changes that come first."""
    applied: Snapshot
    """With the manifests that are asked about."""


def why_one(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    found: Pod | Written,
    interval: int,
    queue: Sequence[Pod | Written],
) -> int:
    """One pod's story, and what becomes of it where it is watched; `queue` are it and what is beside it in the files,
    in their order."""
    from kschedx.api.types import Pod
    from kschedx.cli.extras import needs
    from kschedx.cli.manifests import Written
    from kschedx.cli.target import node_names
    from kschedx.errors import ConfigError, InputError, NotAdmittedError

    shown = node_names(clusters.applied, wanted.node)
    if wanted.watch and not isinstance(found, Pod):
        asked = (wanted.names or wanted.files)[0]
        raise InputError(f'--watch: "{asked}" is no pod of the cluster', hint="name one: pod/NAME")
    try:
        if wanted.tries:
            untried = _before(question, wanted, clusters, setup, found, queue)
            explanation = explained(
                question,
                wanted,
                clusters,
                setup,
                found,
                lambda snapshot: _tried(wanted.tries, snapshot, setup, found, untried),
                queue,
            )
        else:
            subject = subject_of(question, clusters.applied, setup, found, wanted)
            if isinstance(found, Written) and found.is_daemon and wanted.is_plain:
                return _daemon_set(clusters, subject, setup, found, wanted.output, (found,) if wanted.alone else queue)

            def admit(snapshot: Snapshot) -> Subject:
                return subject if len(queue) == 1 else subject_of(question, snapshot, setup, found, wanted)

            explanation = explained(question, wanted, clusters, setup, found, admit, queue)
    except NotAdmittedError as error:
        before, applied = clusters.before, clusters.applied
        report = None if isinstance(found, Pod) else refusal_report(wanted, setup, found, before, applied, error)
        if report is None:
            raise
        write(report, wanted.output)
        return ExitCode.UNSCHEDULABLE
    except ConfigError as error:
        if isinstance(found, Pod) or found.document is None or not error.place.object:
            raise
        raise found.document.fault(error, below=found.template) from None
    if wanted.interactive:
        with needs("interactive"):
            from kschedx.cli.interactive import Why
        Why(explanation, _typed_change(question, setup)).run()
        return exit_code_of(explanation.overall)
    if wanted.fix is not None:
        write(_fix_report(explanation, wanted.fix, found, clusters.before), wanted.output)
        return exit_code_of(explanation.overall)
    write(_report(explanation, shown, place_of(found), all_nodes=wanted.nodes == "all"), wanted.output)
    if wanted.watch and isinstance(found, Pod):
        return _watched(question, found, explanation, interval)
    return exit_code_of(explanation.overall)


def explained(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    found: Pod | Written,
    admit: Callable[[Snapshot], Subject],
    queue: Sequence[Pod | Written],
) -> Explanation:
    """The story of a pod, or of the replicas that a workload lacks, which are placed with the others of `queue`."""
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.api.types import Pod

    workload = None if isinstance(found, Pod) else found.workload
    is_alone = wanted.alone or len(queue) == 1
    if wanted.alone or (is_alone and workload is None):
        return explain(admit(clusters.applied), setup, question.autoscaling, question.provisioning)
    from kschedx.simulate.lacking import Bound, Gathering  # a pod by itself needs no queue
    from kschedx.simulate.workloads import has_new_template, has_replicas

    if is_alone and workload is not None and not has_replicas(workload):
        return explain(admit(clusters.applied), setup, question.autoscaling, question.provisioning)
    is_changed = False
    if not isinstance(found, Pod) and found.document is None and workload is not None:
        is_changed = has_new_template(clusters.read, workload)
    gathering = Gathering(clusters.read if is_changed else clusters.before, clusters.applied, setup)
    is_written = bool(wanted.tries or wanted.dry_run) or is_changed
    own = gather_queue(gathering, setup, queue, found, admit, is_written=is_written)
    if isinstance(own, Bound):
        return own.explanation
    if not is_alone or len(own.pods) > 1 or own.old or own.refused:
        return gathering.place().explain(own, question.autoscaling, question.provisioning)
    if own.pods[0] in clusters.applied.pods.rows:
        return explain(stored(clusters.applied, own.pods[0]), setup, question.autoscaling, question.provisioning)
    return explain(own.subject, setup, question.autoscaling, question.provisioning)


def _before(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    found: Pod | Written,
    queue: Sequence[Pod | Written],
) -> Outcome:
    """What becomes of the pod without the changes that are tried."""
    from kschedx.errors import NotAdmittedError
    from kschedx.framework.cycle import Outcome

    def admit(snapshot: Snapshot) -> Subject:
        return subject_of(question, snapshot, setup, found, wanted)

    try:
        return explained(question, wanted, clusters, setup, found, admit, queue).overall
    except NotAdmittedError:
        return Outcome.UNSCHEDULABLE


def _daemon_set(
    clusters: Clusters,
    subject: Subject,
    setup: Setup,
    found: Written,
    output: Format | None,
    queue: Sequence[Pod | Written],
) -> int:
    """The nodes of a DaemonSet, after the others of `queue` have theirs."""
    from kschedx.answer.daemon_set import explain_daemon_set
    from kschedx.answer.made import title

    name = title(found.workload or {}).partition(" ")[2]
    answer = explain_daemon_set(f"{subject.pod.metadata.namespace}/{name}", subject, setup)
    if len(queue) > 1:
        from kschedx.simulate.lacking import Gathering
        from kschedx.simulate.together import Group

        gathering = Gathering(clusters.before, clusters.applied, setup)
        own = gather_queue(gathering, setup, queue, found, lambda snapshot: found.admitted(snapshot, setup))
        if isinstance(own, Group):
            answer = gathering.place().daemon_set(own)

    def screen(wide: bool) -> None:
        from kschedx.render.daemon_set import print_daemon_set

        print_daemon_set(answer, wide=wide)

    report = Report(screen=screen, document=answer.to_dict, names=lambda: [f"node/{node}" for node in answer.runs])
    write(report, output)
    return exit_code_of(answer.outcome)


def _watched(question: Question, pod: Pod, first: Explanation, interval: int) -> int:
    """The same question again and again."""
    from kschedx.answer.run import explain
    from kschedx.answer.subject import stored
    from kschedx.cli.watch import Watch

    def again(snapshot: Snapshot, pod: Pod) -> Explanation:
        return explain(stored(snapshot, pod), question.setup(snapshot))

    return Watch(pod, again, lambda: question.read_to_decide().snapshot, interval=interval).run(first)


def subject_of(question: Question, snapshot: Snapshot, setup: Setup, found: Pod | Written, wanted: Wanted) -> Subject:
    """The pod as it is, or its manifest as the API server would store it, or says that it would."""
    from msgspec.structs import replace

    from kschedx.answer.subject import stored
    from kschedx.api.types import Pod

    if isinstance(found, Pod):
        return stored(snapshot, found)
    if not wanted.dry_run:
        return found.admitted(snapshot, setup)
    from kschedx.cli.dry_run import server_side
    from kschedx.explain.notes.admission import PodSecurityUnread

    manifest, note = server_side(
        question.where, found.manifest, lambda manifest: found.admitted(snapshot, setup, manifest).pod
    )
    subject = found.admitted(snapshot, setup, manifest)
    others = (one for one in subject.notes if not isinstance(one, PodSecurityUnread))  # which the server has looked at
    return replace(subject, notes=(note, *others))


def _tried(changes: Sequence[str], snapshot: Snapshot, setup: Setup, found: Pod | Written, before: Outcome) -> Subject:
    """The pod as somebody thinks that it should be."""
    import msgspec

    from kschedx.answer import trying
    from kschedx.answer.subject import stored
    from kschedx.api.types import Pod
    from kschedx.explain.notes.question import Tried

    manifest = trying.as_manifest(found) if isinstance(found, Pod) else dict(found.manifest)
    for change in changes:
        patch = _patch_of(change)
        manifest = trying.with_change(manifest, change) if patch is None else trying.with_patch(manifest, patch)
        _refuse_faults(manifest, f"--try {change}")
    if isinstance(found, Pod):
        subject = stored(snapshot, trying.as_pod(manifest))
    else:
        subject = found.admitted(snapshot, setup, manifest)
    note = Tried(changes=tuple(changes), before=before)
    return msgspec.structs.replace(subject, notes=(note, *subject.notes))


def _refuse_faults(manifest: Mapping[str, object], change: str) -> None:
    """Raises `InputError` for a field that no API server would take; of a stored pod too, since somebody has written
    the change."""
    from kschedx.api.stored import as_new
    from kschedx.apiserver.strict import faults
    from kschedx.errors import Place

    for fault in faults(as_new(manifest)):
        raise fault.at(Place(object=change))


def _typed_change(question: Question, setup: Setup) -> Try:
    """What `why -i` asks for: a change to the pod as it is there, fixes that were tried included."""
    from kschedx.answer import trying
    from kschedx.answer.subject import stored

    def tried(before: Explanation, change: str) -> Explanation:
        from kschedx.answer.run import explain

        manifest = trying.with_change(trying.as_manifest(before.cycle.pod), change)
        _refuse_faults(manifest, change)
        pod = trying.as_pod(manifest)
        return explain(stored(before.cycle.snapshot, pod), setup, question.autoscaling, question.provisioning)

    return tried


def _patch_of(change: str) -> object | None:
    """What a file with a patch holds; None where the change is no file."""
    from pathlib import Path

    from kschedx.cli.one_document import one_document

    return one_document(change) if Path(change).is_file() else None


def _fix_report(explanation: Explanation, number: int, found: Pod | Written, before: Snapshot) -> Report:
    from kschedx.cli.apply import numbered, report

    fix, cycle = numbered(explanation.fixes, number), explanation.cycle
    followed = [one for one in fix.changes if one.by]
    return report(fix.apply, followed, found, cycle.pod, cycle.snapshot, before, document=fix.to_dict)


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

    def names() -> list[str]:
        replicas = explanation.replicas
        if replicas is None:
            return [f"node/{name}" for name in explanation.chosen_nodes]
        return [f"{pod} node/{node}" for pod, node in replicas.placed.items()] + [*replicas.pending, *replicas.refused]

    return Report(
        screen=screen,
        document=explanation.to_dict,
        page=page,
        checks=checks,
        names=names,
    )

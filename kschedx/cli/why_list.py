"""`kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli import connection
from kschedx.cli.options import namespace_of_many
from kschedx.cli.output import Answer, Format, Report
from kschedx.cli.question import Question, shard_of
from kschedx.cli.why_pod import WhyArguments, inquiry_of, typed_change
from kschedx.controllers.due_deletions import rows_awaited
from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.states import BeingDeleted, NotRead, WaitingForKubelet
from kschedx.errors import InputError, nearest
from kschedx.explain.causes import rows_in_queue_order
from kschedx.explain.missing_kinds import UNKNOWN_PODS
from kschedx.explain.setup import Setup
from kschedx.inquiry.ask import Clusters
from kschedx.inquiry.explanation_list import ExplanationList, ListInquiry
from kschedx.inquiry.manifests import PodInQuestion
from kschedx.kube.escaping import add_cluster_options, shell_command
from kschedx.kube.selectors import parse_label_query
from kschedx.kube.types import Namespace
from kschedx.kube.workloads import SHORT_NAMES
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.cli.connection import LoadedCluster
    from kschedx.render.checks import Check
    from kschedx.snapshot.snapshot import Snapshot


def command_of(wanted: WhyArguments, namespace: str, owner: str, name: str) -> str:
    """Return the command that explains a pod or, if it has no name, its workload, with the same cluster and files."""
    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if not name or (wanted.files and short) else f"pod/{name}"
    pattern = "kschedx why {} -n {}" + " -f {}" * len(wanted.files)
    return add_cluster_options(shell_command(pattern, target, namespace, *map(Path, wanted.files)))


def _inquiry(question: Question, wanted: WhyArguments, clusters: Clusters, setup: Setup) -> ListInquiry:
    return ListInquiry(
        inquiry=inquiry_of(question, wanted, clusters, setup),
        command=partial(command_of, wanted),
        jobs=question.jobs(),
    )


def why_several(
    question: Question,
    wanted: WhyArguments,
    clusters: Clusters,
    setup: Setup,
    pods_in_question: Sequence[PodInQuestion],
    queue: Sequence[PodInQuestion],
) -> Answer:
    """Explain every pod of some manifests, with all replicas, by cause. `queue` are these pods and the others in the
    files, in order."""
    for name, value in {"watch": wanted.watch, "fix": wanted.fix, "try": wanted.tries}.items():
        if value:
            raise InputError(f"--{name} needs one pod, and there are several")
    connection.print_unknown_plugins(setup)
    answer = _inquiry(question, wanted, clusters, setup).explain_manifests(pods_in_question, queue)
    return Answer(_report(answer), answer.exit_code)


def _unstarted_rows(snapshot: Snapshot) -> list[int]:
    """Return the rows of pods that have a node and are Pending, as `kubectl get pods` shows, or that stay terminating
    while their controller waits."""
    pods = snapshot.pods
    is_pending = pods.phases.where(lambda phase: phase == "Pending") & pods.node_names.where(bool)
    rows, states = is_pending.nonzero()[0].tolist(), WaitingForKubelet | BeingDeleted | NotRead
    unstarted = (row for row in rows if isinstance(pod_lifecycle(snapshot, pods[row]), states))
    return sorted({*unstarted, *rows_awaited(snapshot)})


def why_pods_of_cluster(question: Question, wanted: WhyArguments, reached: LoadedCluster, setup: Setup) -> Answer | int:
    """Explain pending pods, or pods with certain labels: a row for each cause, or every document."""
    snapshot = reached.snapshot
    named, by_labels = question.namespace, not wanted.all_pending
    within = namespace_of_many(named, reached.namespace, everywhere=wanted.all_namespaces, by_labels=by_labels)
    if named is not None:
        within = _known(within, snapshot)
    rows = rows_in_queue_order(
        snapshot,
        setup.scheduler,
        namespace=within,
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
        also=_unstarted_rows(snapshot) if wanted.all_pending else (),
    )
    connection.print_notes(snapshot, setup)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))
    if wanted.interactive:
        from kschedx.cli.interactive import show_undecided

        show_undecided(snapshot, rows)
    clusters = Clusters(read=snapshot, before=snapshot, applied=snapshot)
    answer = _inquiry(question, wanted, clusters, setup).explain_cluster(
        rows,
        within=within,
        is_part=part is not None,
        has_workloads=wanted.all_pending and not wanted.selector,
    )
    answer = replace(answer, if_empty=_if_empty(wanted, snapshot, within))
    if wanted.interactive and answer.items:
        from kschedx.cli.interactive import show_answers

        show_answers(answer.answers, answer.explanation, typed_change(question, setup), snapshot.cluster.names)
        return answer.exit_code
    return Answer(_report(answer) if part is None else _report(answer).name_shard(part), answer.exit_code)


def _report(answer: ExplanationList) -> Report:
    def names() -> list[str]:
        each = answer.answers
        return [f"{own.pod} {' '.join(f'node/{name}' for name in own.nodes)}".rstrip() for own in each]

    def checks() -> list[Check]:
        from kschedx.cli.checks import answers_check

        pairs = zip(answer.items, answer.answers_by_item, strict=True)
        return [answers_check(answers, item.workload, item.place) for item, answers in pairs]

    return replace(Report.of(answer, names=names), entries=answer.entries, sample=answer.sample, checks=checks)


def _if_empty(wanted: WhyArguments, snapshot: Snapshot, namespace: str | None) -> str:
    if snapshot.lacks_all_pods:
        return UNKNOWN_PODS
    title = "no pod is pending"
    if wanted.selector:
        title = "no pod with these labels is pending" if wanted.all_pending else "no pod has these labels"
    return title if namespace is None else f"{title} in namespace {namespace}"


def _known(namespace: str | None, snapshot: Snapshot) -> str | None:
    """Return the namespace. Raises InputError if the input has namespaces, and neither it nor a pod in it."""
    names = {held.metadata.name for held in snapshot.of(Namespace)}
    if namespace is None or not names or namespace in names or snapshot.pods.namespaces.where(namespace.__eq__).any():
        return namespace
    raise InputError(f'no namespace "{namespace}"', hint=nearest(namespace, names))

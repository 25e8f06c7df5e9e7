"""`kschedx why`: the whole explanation of one pod."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli.options import DECIDES, Command, OptionGroup
from kschedx.cli.output import SHARED, Answer, needs
from kschedx.cli.question import Question, cluster_after_changes
from kschedx.cli.why_pod import WhyArguments
from kschedx.errors import InputError, NotAdmittedError, NotChangedError
from kschedx.kube.types import ObjectMeta, Pod

if TYPE_CHECKING:
    from kschedx.cli.connection import LoadedCluster
    from kschedx.explain.notes import Note
    from kschedx.explain.setup import Setup
    from kschedx.inquiry.ask import Clusters
    from kschedx.inquiry.manifests import Manifests, PodInQuestion
    from kschedx.simulate.object_changes import NamedObject
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Explain why a pod is Pending, or where it goes",
    (*DECIDES, OptionGroup.KUEUE, OptionGroup.CHANGES_BESIDE_FILES, OptionGroup.DRAINING, OptionGroup.BASELINE),
    no_args_is_help=True,
    help="""Explain why a pod is Pending, or why it goes to that node.

\b
Examples:
  kschedx why pod/web-0 -n shop                # a pod
  kschedx why deploy.yaml                      # before you apply it
  kschedx why --all-pending                    # all, grouped by cause
  helm template shop ./chart | kschedx why -   # a whole chart
  kschedx why pod/web-0 -s cluster.json.gz     # from a snapshot
  kschedx why deploy/web --scale deploy/web=20 --drain node-7

TARGET is a pod (pod/NAME, pod NAME, or NAME), a workload (deploy/NAME, sts/NAME, ds/NAME, job/NAME, ..., also
NAMESPACE/deploy/NAME), a node (node/NAME), what provides nodes (nodepool/NAME, nodeclaim/NAME, machine/NAME,
machinedeployment/NAME, machineset/NAME), an object on which pods depend (pvc/NAME, pdb/NAME, hpa/NAME, ns/NAME), or
manifests: a file, a folder, or - for standard input. Files count as if they were applied. A running pod is explained as
if it were scheduled now.

For a workload, kschedx places the replicas that are missing, one after the other, and explains the first one that
does not fit. A new manifest lacks all replicas; a complete workload gets one more. --alone looks at one pod only.

The options under "What if" change the cluster first. Pods that they evict or create are placed before the
question; a pending pod keeps its turn before a drain.

--watch prints what changes until the pod has a node (exit code 0) or is gone (1).

Exit codes: 0 it can be scheduled, 1 it cannot, 2 usage or input error, 3 undecided.
""",
)


def why(wanted: WhyArguments, *, question: Question) -> Answer | int:
    from kschedx.inquiry.target import namespace_of_pods

    wanted = wanted.with_names()
    wanted.check(question)
    if not wanted.interactive:
        is_about_cluster = len(wanted.names) == 1 or wanted.is_many
        needs_nodes = bool(wanted.files) or not is_about_cluster
        own = None if wanted.files or wanted.watch else namespace_of_pods(wanted.names)
        return _answer(question, wanted, partial(question.read_to_decide, needs_nodes=needs_nodes, or_namespace=own))
    with needs("interactive"):
        from kschedx.cli.interactive import browse
    if question.snapshot and "-" not in question.snapshot:
        return browse(lambda: _answer(question, wanted, question.read_to_decide))
    reached = question.read_to_decide()  # a login may need the terminal
    return browse(lambda: _answer(question, wanted, lambda: reached))


def _answer(question: Question, wanted: WhyArguments, reading: Callable[[], LoadedCluster]) -> Answer | int:
    """Answer about many pods, a node, several pods, or one."""
    from kschedx.cli.fix_output import fix_report
    from kschedx.cli.why_pod import explain_target, explanation_report
    from kschedx.inquiry.ask import Clusters, notes_about, waiting_member_of
    from kschedx.inquiry.manifests import Manifests, PodInQuestion
    from kschedx.inquiry.target import named_namespace, named_node
    from kschedx.loading import refuse_without_nodes
    from kschedx.simulate.object_changes import object_reference

    manifests = Manifests.read(wanted.files, has_target=bool(wanted.names)) if wanted.files else None
    read = reading()
    try:
        reached, changes = _apply_changes(question, wanted, read)
    except NotAdmittedError as error:
        return _refused_change(question, read.snapshot, error)
    if manifests is not None:
        reached = _with_queued_jobs(question, wanted, reached, manifests)
    snapshot = reached.snapshot if manifests is None else manifests.apply_to(reached.snapshot)
    setup = question.setup(snapshot)
    setup = replace(setup, notes=(*setup.notes, *changes))
    if manifests is not None:
        snapshot = manifests.apply_admitted(reached.snapshot, snapshot, setup.release)
    if wanted.is_many:
        from kschedx.cli.why_list import why_pods_of_cluster

        return why_pods_of_cluster(question, wanted, reached, setup)
    names = wanted.names
    if any(named_node(name) or named_namespace(snapshot, name) for name in names):
        refuse_without_nodes(snapshot)
    if len(names) == 1 and (node_name := named_node(names[0])):
        as_text = replace(wanted, output=None) if wanted.output in SHARED else wanted
        if not as_text.is_plain or wanted.fix or wanted.watch or wanted.dry_run:
            raise InputError(f"{names[0]} is not a pod", hint="leave out the options that explain pods")
        from kschedx.cli.nodes import why_node

        return why_node(snapshot, setup, node_name)
    if len(names) == 1 and not wanted.files and (namespace := named_namespace(snapshot, names[0])):
        return _explain_namespace(replace(question, namespace=namespace), wanted, reached, setup)
    reference = object_reference(names[0], reached.namespace, snapshot) if len(names) == 1 else None
    if reference is not None and reference.kind.is_subject:
        from kschedx.inquiry.objects import explain_object

        if (answer := explain_object(snapshot, setup, reference, question.autoscaling)) is not None:
            if wanted.fix is not None:
                subject = PodInQuestion.of_cluster(answer.cycle.pod)
                return Answer(fix_report(answer, answer.fixes, wanted.fix, subject, snapshot), answer.exit_code)
            return Answer(explanation_report(answer), answer.exit_code)
    clusters = Clusters(read=read.snapshot, before=reached.snapshot, applied=snapshot)
    written = manifests.pods(clusters.before, clusters.applied) if manifests is not None else []
    pods = _find_targets(question, wanted, written, clusters, reached.namespace)
    queue = [*(pod for pod in pods if all(pod is not other for other in written)), *written]
    if len(pods) > 1:
        from kschedx.cli.why_list import why_several

        return why_several(question, wanted, clusters, setup, pods, queue)
    beside = manifests.notes() if manifests is not None and pods[0].stored is not None else ()
    beside = (*beside, *_room_to_maximum(snapshot, setup, reference, pods[0]))
    setup = replace(setup, notes=(*setup.notes, *notes_about(pods[0], snapshot), *beside))
    if (member := waiting_member_of(pods[0], clusters.applied)) is not None and not wanted.tries:
        pods = queue = [member]
    return explain_target(question, wanted, clusters, setup, pods[0], queue)


def _room_to_maximum(
    snapshot: Snapshot, setup: Setup, reference: NamedObject | None, target: PodInQuestion
) -> tuple[Note, ...]:
    """Return how much of its maximum fits, for a question about a HorizontalPodAutoscaler."""
    if reference is None or reference.kind.name != "HorizontalPodAutoscaler":
        return ()
    from kschedx.inquiry.fit import room_to_maximum

    return room_to_maximum(snapshot, setup, target)


def _explain_namespace(question: Question, wanted: WhyArguments, reached: LoadedCluster, setup: Setup) -> Answer | int:
    """Explain why a namespace stays in deletion; for another one, explain its pending pods."""
    from kschedx.cli.why_list import why_pods_of_cluster
    from kschedx.cli.why_pod import explanation_report
    from kschedx.inquiry.objects import explain_namespace

    answer = explain_namespace(reached.snapshot, setup, question.namespace or "")
    if answer is None:
        return why_pods_of_cluster(question, replace(wanted, names=[], all_pending=True), reached, setup)
    return Answer(explanation_report(answer), answer.exit_code)


def _refused_change(question: Question, snapshot: Snapshot, error: NotAdmittedError) -> Answer:
    """Return the answer about a change that the API server refuses: it is not made."""
    from kschedx.cli.why_pod import explanation_report
    from kschedx.controllers.states import Refused
    from kschedx.controllers.workload_lifecycle import refusal_state
    from kschedx.controllers.workloads import Workload
    from kschedx.explain.setup import Subject
    from kschedx.inquiry.pod import answer_without_cycle

    kind, _, key = error.place.object.partition(" ")
    namespace, _, name = key.rpartition("/")
    pod = Pod(metadata=ObjectMeta(name=name or kind, namespace=namespace or "default"))
    subject = pod.key if kind in ("", "Pod") else Workload(kind, pod.metadata.namespace, name).reference
    lifecycle = refusal_state(
        subject, error.message, source=str(error.place), hint=error.hint, is_workload=subject != pod.key
    )
    if isinstance(error, NotChangedError) and isinstance(lifecycle, Refused):
        lifecycle = lifecycle.of_update
    answer = answer_without_cycle(Subject(snapshot=snapshot, pod=pod, is_new=True), question.setup(snapshot), lifecycle)
    return Answer(explanation_report(answer, place=error.place), answer.exit_code)


def _apply_changes(
    question: Question, wanted: WhyArguments, reached: LoadedCluster
) -> tuple[LoadedCluster, tuple[Note, ...]]:
    """Return the cluster after the changes of the question, and a note about them."""
    if not question.changes:
        return reached, ()
    from kschedx.inquiry.target import pods_in_question, workloads_in_question

    def asked(snapshot: Snapshot) -> Collection[str]:
        return snapshot.pods.rows if wanted.is_many else pods_in_question(snapshot, wanted.names, reached.namespace)

    workloads = workloads_in_question(wanted.names, reached.namespace)
    return cluster_after_changes(question, reached, question.setup(reached.snapshot), asked, workloads)


def _with_queued_jobs(
    question: Question, wanted: WhyArguments, reached: LoadedCluster, manifests: Manifests
) -> LoadedCluster:
    """Set the namespaces of the manifests, and return the cluster with the Workloads of their Jobs in Kueue."""
    manifests.set_namespaces(question.namespace, reached.namespace, is_only=not wanted.names)
    return replace(reached, snapshot=manifests.queue_in_kueue(reached.snapshot))


def _find_targets(
    question: Question, wanted: WhyArguments, written: Sequence[PodInQuestion], clusters: Clusters, namespace: str
) -> list[PodInQuestion]:
    """Return the pods in question: from the files if they are there, else from the cluster. Raises `InputError`."""
    from kschedx.inquiry.manifests import named_pods
    from kschedx.inquiry.target import find_targets

    if not wanted.names:
        return [*written]
    pods: list[PodInQuestion] = []
    for name in wanted.names:
        of_files = named_pods(name, written, question.namespace)
        pods += of_files or find_targets(clusters.applied, name, namespace)
    return pods

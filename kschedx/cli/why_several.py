"""`kschedx why` for many pods: those of manifests, and those of the cluster that wait or have some labels."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli.options import namespace_of_many
from kschedx.cli.output import Format, write
from kschedx.cli.question import Question, shard_of
from kschedx.cli.wanted import Wanted
from kschedx.cli.why_one import Clusters, place_of, subject_of
from kschedx.cli.why_queue import gather, gather_beside
from kschedx.errors import NotAdmittedError

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.autoscaler.cluster import Autoscaler
    from kschedx.cli.connection import Reached
    from kschedx.cli.manifests import Written
    from kschedx.cli.why_many import Asked, Item
    from kschedx.explain.setup import Setup
    from kschedx.karpenter.cluster import Karpenter
    from kschedx.simulate.together import Group, Together
    from kschedx.snapshot.snapshot import Snapshot


def why_several(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    found: Sequence[Pod | Written],
    queue: Sequence[Pod | Written],
) -> int:
    """Every pod of some manifests, with all replicas, by what keeps them out; `queue` are they and what is beside them
    in the files, in their order."""
    from kschedx.api.types import Pod
    from kschedx.cli import connection
    from kschedx.cli.why_many import Asked
    from kschedx.errors import InputError

    about_one = {
        "watch": wanted.watch,
        "dry-run=server": wanted.dry_run,
        "fix": wanted.fix,
        "try": wanted.tries,
    }
    for name, is_asked in about_one.items():
        if is_asked:
            raise InputError(f"--{name} is about one pod, and there are several")
    connection.tell_left_out(setup)
    if wanted.alone:
        items = [item for one in found for item in _alone(question, wanted, clusters.applied, setup, one)]
        asked = Asked(items, competing=any(not isinstance(one, Pod) for one in found))
    else:
        asked = _together(question, wanted, clusters, setup, found, queue)
    write(asked.report(), wanted.output)
    return asked.exit_code


def _alone(
    question: Question, wanted: Wanted, snapshot: Snapshot, setup: Setup, one: Pod | Written
) -> tuple[Item, ...]:
    """As if it came next, whatever others take; a DaemonSet's pods are each on a node of their own."""
    from kschedx.answer.run import explain
    from kschedx.cli.manifests import Written

    try:
        subject = subject_of(question, snapshot, setup, one, wanted)
    except NotAdmittedError as error:
        return (_refused(wanted, one, error),)
    if isinstance(one, Written) and one.is_daemon:
        return tuple(_of_daemon_set(wanted, subject, setup, one))
    return (_item(wanted, subject, one, partial(explain, subject, setup)),)


def _of_daemon_set(wanted: Wanted, subject: Subject, setup: Setup, one: Written) -> Iterator[Item]:
    """Its pods that fit, and those that do not for each reason; nodes for which none is made are left out."""
    from kschedx.answer.daemon_set import explain_daemon_set
    from kschedx.answer.made import title
    from kschedx.cli.why_many import Replica

    name = f"{subject.pod.metadata.namespace}/{title(one.workload or {}).partition(' ')[2]}"
    answer = explain_daemon_set(name, subject, setup)
    whole = _item(wanted, subject, one, lambda: answer.explanation)
    if answer.refused:
        yield _refused_replicas(whole, (whole.pod,) * answer.refused, answer.refusal)
    if runs := answer.runs[: max(len(answer.runs) - answer.refused, 0)]:  # whichever they are
        fit = tuple(Replica(pod=whole.pod, node=node) for node in runs)
        yield replace(whole, replicas=fit, workload=name)
    for group in answer.waits:
        nodes = answer.names(group)
        waiting = tuple(Replica(pod=whole.pod) for _ in nodes)
        yield replace(whole, replicas=waiting, workload=name, explain=partial(answer.on, nodes[0]))
    if not answer.runs and not answer.waits:
        yield whole


def _together(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    found: Sequence[Pod | Written],
    queue: Sequence[Pod | Written],
) -> Asked:
    """One after the other, in the order of the queue; what no queue takes is looked at alone."""
    from kschedx.api.types import Pod
    from kschedx.cli.why_many import Asked
    from kschedx.render.many import evicted_note
    from kschedx.simulate.lacking import Bound, Gathering

    gathering = Gathering(clusters.before, clusters.applied, setup)
    groups: dict[int, Group] = {}
    items: dict[int, tuple[Item, ...]] = {}
    numbers = {id(one): number for number, one in enumerate(found)}
    for one in queue:
        if (number := numbers.get(id(one))) is None:
            gather_beside(gathering, setup, one)
            continue
        if isinstance(one, Pod) and one.spec.node_name:
            items[number] = _alone(question, wanted, clusters.applied, setup, one)
            continue
        try:
            taken = gather(gathering, subject_of(question, gathering.snapshot, setup, one, wanted), one)
        except NotAdmittedError as error:
            items[number] = (_refused(wanted, one, error),)
            continue
        if isinstance(taken, Bound):
            item = _item(wanted, taken.subject, one, partial(_same, taken.explanation))
            items[number] = (_replicas_of(item, taken.explanation),)
        else:
            groups[number] = taken
    together = gathering.place()
    for number, group in groups.items():
        if not group.pods and not group.kept and not group.refused:  # a DaemonSet for which no node is
            items[number] = _alone(question, wanted, clusters.applied, setup, found[number])
        else:
            items[number] = tuple(_of_group(wanted, together, group, found[number]))
    return Asked(
        [item for number in range(len(found)) for item in items[number]],
        notes=evicted_note(together.evicted),
        mended=together.mended,
    )


def _same(explanation: Explanation) -> Explanation:
    return explanation


def _of_group(wanted: Wanted, together: Together, group: Group, one: Pod | Written) -> Iterator[Item]:
    """Those of its pods that are there, and those that nobody makes."""
    from kschedx.cli.manifests import Written
    from kschedx.cli.why_many import Replica

    item = _item(wanted, group.subject, one, partial(together.explain, group))
    nodes = together.nodes(group)
    replicas = tuple(
        Replica(pod=pod, node=node, taken=None if node else together.taken(pod)) for pod, node in nodes.items()
    )
    refused = together.refused(group)
    if isinstance(one, Written) and one.is_daemon and group.workload is not None:
        name = group.workload.key
        if placed := tuple(replica for replica in replicas if replica.node):
            yield replace(item, replicas=placed, workload=name)
        for pods in together.waiting(group):
            waiting = tuple(replica for replica in replicas if replica.pod in pods)
            yield replace(item, replicas=waiting, workload=name, explain=partial(together.story, pods[0]))
    elif nodes:
        if together.is_queued(group) or len(nodes) > 1:
            name = group.workload.reference if group.workload is not None and len(group.pods) > 1 else ""
            item = replace(item, replicas=replicas, workload=name)
        yield item
    if refused:
        yield _refused_replicas(item, refused, together.refusal(group))


def _item(wanted: Wanted, subject: Subject, one: Pod | Written, explain: Callable[[], Explanation]) -> Item:
    from kschedx.answer.made import title
    from kschedx.cli.manifests import Written
    from kschedx.cli.why_many import Item
    from kschedx.explain.many import owner_of

    pod = subject.pod
    workload = one.workload if isinstance(one, Written) else None
    owner = owner_of(subject.snapshot, pod) if workload is None else title(workload)
    if isinstance(one, Written) and one.is_one_of_several:
        owner = ""
    return Item(
        pod=pod.key,
        owner=owner,
        priority=pod.spec.priority or 0,
        command=_command(pod.metadata.namespace, owner, "" if owner and workload else pod.metadata.name, wanted.files),
        explain=explain,
        place=place_of(one),
    )


def _replicas_of(item: Item, explanation: Explanation) -> Item:
    """With each replica of an answer that tells of several."""
    from kschedx.cli.why_many import Replica

    found = explanation.replicas
    if found is None:
        return replace(item, explain=lambda: explanation)
    replicas = (Replica(pod=pod, node=found.placed.get(pod, "")) for pod in (*found.placed, *found.pending))
    return replace(item, replicas=tuple(replicas), workload=found.workload, explain=lambda: explanation)


def _refused(wanted: Wanted, one: Pod | Written, error: NotAdmittedError) -> Item:
    """What the API server lets nobody make: as many pods as are wanted, none of which comes to be."""
    from kschedx.answer.made import title
    from kschedx.api.types import Pod
    from kschedx.cli.why_many import Item, Replica
    from kschedx.simulate.workloads import has_replicas, wanted_replicas, workload_of

    if isinstance(one, Pod):  # it is in the cluster: nobody admits it again
        raise error
    metadata = one.manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    namespace = str(named.get("namespace") or "default")
    name = str(named.get("name") or named.get("generateName") or "")
    workload = one.workload
    owner = "" if workload is None else title(workload)
    count = 1
    if workload is not None and has_replicas(workload) and not wanted.alone:
        count = wanted_replicas(workload)

    def explain() -> Explanation:
        raise error

    return Item(
        pod=f"{namespace}/{name}",
        owner=owner,
        priority=0,
        command=_command(namespace, owner, "" if owner else name, wanted.files),
        explain=explain,
        place=place_of(one),
        workload=workload_of(workload).reference if workload is not None and count > 1 else "",
        replicas=(Replica(pod=f"{namespace}/{name}"),) * count if count > 1 else (),
    )


def _refused_replicas(others: Item, pods: Sequence[str], refusal: str) -> Item:
    """Those of a workload's replicas that nobody makes, whatever becomes of the others."""
    from kschedx.cli.why_many import Replica

    def explain() -> Explanation:
        raise NotAdmittedError(refusal)

    return replace(others, pod=pods[0], explain=explain, replicas=tuple(Replica(pod=pod) for pod in pods))


def _command(namespace: str, owner: str, name: str, files: Sequence[str] = ()) -> str:
    """What tells the whole story of a pod, or without its name, of what makes it."""
    from kschedx.api.workloads import SHORT_NAMES

    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if not name or (files and short) else f"pod/{name}"
    return f"kschedx why {target} -n {namespace}" + "".join(f" -f {shlex.quote(file)}" for file in files)


def _rows(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> list[int]:
    """The pods that are asked about, in the order of the queue."""
    from kschedx.api.label_query import parse_label_query
    from kschedx.explain.many import rows_in_queue_order

    return rows_in_queue_order(
        reached.snapshot,
        setup.scheduler,
        namespace=_namespace(question, wanted, reached),
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
    )


def _namespace(question: Question, wanted: Wanted, reached: Reached) -> str | None:
    """The one that is asked about; None for all."""
    return namespace_of_many(
        question.namespace, reached.namespace, everywhere=wanted.all_namespaces, by_labels=not wanted.all_pending
    )


def _growth(autoscaler: Autoscaler | None, karpenter: Karpenter | None) -> Iterator[str]:
    """What is added for all pods that wait."""
    if autoscaler is None and karpenter is None:
        return
    from kschedx.autoscaler.growth import grow
    from kschedx.karpenter.growth import grow as provisioned
    from kschedx.render.growth import growth_texts

    yield from growth_texts(
        None if autoscaler is None else grow(autoscaler), None if karpenter is None else provisioned(karpenter)
    )


def why_pods_of_cluster(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> int:
    """A row for each reason, or every document."""
    from kschedx.answer.run import autoscaler_of, explain, karpenter_of
    from kschedx.answer.subject import stored
    from kschedx.cli import connection
    from kschedx.cli.why_many import Asked, Item
    from kschedx.explain.failed_creates import without_pods
    from kschedx.explain.many import alike, owner_of
    from kschedx.render.many import evicted_note, without_pods_note
    from kschedx.render.words.notes import note_text
    from kschedx.simulate.in_turn import InTurn

    snapshot = reached.snapshot
    rows = _rows(question, wanted, reached, setup)
    connection.tell_missing(snapshot)
    connection.tell_left_out(setup)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))

    waits = not wanted.alone and not {*snapshot.pods.pending}.isdisjoint(rows)
    in_turn = InTurn.of(snapshot, setup) if waits else None
    kinds = {} if setup.scheduler.config.extenders else alike(snapshot, rows)

    def item(row: int) -> Item:
        pod = snapshot.pods[row]
        owner = owner_of(snapshot, pod)
        alone = Item(
            pod=pod.key,
            owner=owner,
            priority=int(snapshot.pods.priorities[row]),
            command=_command(pod.metadata.namespace, owner, pod.metadata.name),
            explain=lambda: explain(stored(snapshot, snapshot.pods[row]), setup, autoscaler, karpenter),
            like=kinds.get(row),
        )
        if in_turn is None or not in_turn.is_queued(pod.key):
            return alone
        return replace(
            alone,
            explain=lambda: in_turn.explanation(pod.key),
            node=in_turn.node(pod.key),
            taken=in_turn.taken(pod.key),
            waits=in_turn.message(pod.key),
            like=(kinds[row], in_turn.message(pod.key)) if row in kinds else None,
        )

    autoscaler, said = autoscaler_of(snapshot, question.autoscaling, setup.scheduler) if rows else (None, ())
    karpenter, unread = karpenter_of(snapshot, question.provisioning) if rows else (None, ())
    said = (*said, *unread)
    within = _namespace(question, wanted, reached)
    unmade = () if wanted.selector else without_pods_note(tuple(without_pods(snapshot, within)))
    notes = (*unmade, *evicted_note(() if in_turn is None else in_turn.evicted), *map(note_text, said))
    if part is None:  # what is added is for all pods, and no part has them
        notes = (*notes, *_growth(autoscaler, karpenter))
    mended = None if in_turn is None else in_turn.mended
    nothing = "; ".join((_nothing(wanted), *unmade))
    items = [item(row) for row in rows]
    asked = Asked(items, jobs=question.jobs(), notes=notes, nothing=nothing, mended=mended)
    report = asked.report()
    write(report if part is None else report.marked(part), wanted.output)
    return asked.exit_code


def _nothing(wanted: Wanted) -> str:
    """What is said where there are no such pods."""
    if not wanted.selector:
        return "no pod is waiting for a node"
    return "no pod with these labels is waiting for a node" if wanted.all_pending else "no pod has these labels"

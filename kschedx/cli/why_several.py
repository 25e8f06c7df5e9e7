"""`kschedx why` for several pods and workloads, that are named or in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.cli.output import write
from kschedx.cli.question import Question
from kschedx.cli.wanted import Wanted
from kschedx.cli.why_many import Asked, Item, Replica, command_of
from kschedx.cli.why_one import Clusters, place_of, subject_of
from kschedx.cli.why_queue import gather, gather_beside
from kschedx.errors import NotAdmittedError

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.answer.subject import Subject
    from kschedx.api.types import Pod
    from kschedx.cli.manifests import Written
    from kschedx.explain.setup import Setup
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
        command=command_of(
            pod.metadata.namespace, owner, "" if owner and workload else pod.metadata.name, wanted.files
        ),
        explain=explain,
        place=place_of(one),
    )


def _replicas_of(item: Item, explanation: Explanation) -> Item:
    """With each replica of an answer that tells of several."""
    found = explanation.replicas
    if found is None:
        return replace(item, explain=lambda: explanation)
    replicas = (Replica(pod=pod, node=found.placed.get(pod, "")) for pod in (*found.placed, *found.pending))
    return replace(item, replicas=tuple(replicas), workload=found.workload, explain=lambda: explanation)


def _refused(wanted: Wanted, one: Pod | Written, error: NotAdmittedError) -> Item:
    """What the API server lets nobody make: as many pods as are wanted, none of which comes to be."""
    from kschedx.answer.made import title
    from kschedx.api.types import Pod
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
        command=command_of(namespace, owner, "" if owner else name, wanted.files),
        explain=explain,
        place=place_of(one),
        workload=workload_of(workload).reference if workload is not None and count > 1 else "",
        replicas=(Replica(pod=f"{namespace}/{name}"),) * count if count > 1 else (),
    )


def _refused_replicas(others: Item, pods: Sequence[str], refusal: str) -> Item:
    """Those of a workload's replicas that nobody makes, whatever becomes of the others."""

    def explain() -> Explanation:
        raise NotAdmittedError(refusal)

    return replace(others, pod=pods[0], explain=explain, replicas=tuple(Replica(pod=pod) for pod in pods))

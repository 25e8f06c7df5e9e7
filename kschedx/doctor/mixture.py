"""Evidence that a dump holds two clusters, or one cluster at two times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kschedx.doctor.contents import Copy, DumpContents
from kschedx.doctor.findings import (
    Certainty,
    Clouds,
    Copies,
    Finding,
    NodesOfTwoTimes,
    ObjectDifference,
    OtherOwner,
    PodsAfterNodes,
    Reaction,
    Skew,
    TakenTwice,
    TwoClusters,
    Weakness,
    YoungNodes,
)
from kschedx.doctor.objects import DumpNode, DumpObject, DumpPod, key_of, minor_of
from kschedx.errors import InputError
from kschedx.kube.kinds import kind_of
from kschedx.kube.scalars import nanoseconds

_MINUTE = 60 * 1_000_000_000
APART = 10 * _MINUTE
"""A kubelet reports every five minutes if nothing changes (nodeStatusReportFrequency), and may be late."""
MOST_PAIRS = 2
"""The number of pairs of files that are listed one by one."""
SOONER = _MINUTE
"""A pod may start this long before its node was created, since clocks differ."""
WIDER_SKEW = (1, 28)
"""Since this version, a kubelet may be three minor versions older than the API server; before, two."""
_ALIASES = {"eks-hybrid": "aws"}
"""Clouds that count as another one, since both occur in the same cluster."""

_EVERYTHING = (Weakness(plugins=(), effect="every verdict: nodes and pods are not of one cluster"),)
_MOMENTS = (Weakness(plugins=("NodeResourcesFit",), effect="pods created or deleted in between are counted wrong"),)


def mixture_findings(contents: DumpContents) -> Iterator[Finding]:
    """Yield findings, the strongest evidence first."""
    yield from _copies(contents)
    if not contents.is_of_one_moment:
        yield from _other_owners(contents)
        yield from _clouds(contents)
        yield from _taken_twice(contents)
        yield from _times(contents)
        yield from _young_nodes(contents)
    yield from _skew(contents)


# --- two objects of one name


_SURE = {
    ObjectDifference.NONE: Certainty.CERTAIN,
    ObjectDifference.UNKNOWN: Certainty.CERTAIN,
    ObjectDifference.STATE: Certainty.CERTAIN,
    ObjectDifference.OBJECT: Certainty.LIKELY,
}
_WEAKENED = {
    ObjectDifference.NONE: (),
    ObjectDifference.UNKNOWN: (Weakness(plugins=(), effect="which of the two counts is not known"),),
    ObjectDifference.STATE: _MOMENTS,
    ObjectDifference.OBJECT: (
        Weakness(plugins=(), effect="every verdict, unless the objects were recreated in between"),
    ),
}


def _copies(contents: DumpContents) -> Iterator[TwoClusters | Copies]:
    for twice in contents.kube_systems:
        yield TwoClusters(
            certainty=Certainty.CERTAIN,
            reaction=Reaction.REFUSES,
            weakens=_EVERYTHING,
            first=twice[0].place,
            second=twice[1].place,
            first_uid=twice[0].uid,
            second_uid=twice[1].uid,
        )
    for difference in (
        ObjectDifference.OBJECT,
        ObjectDifference.STATE,
        ObjectDifference.UNKNOWN,
        ObjectDifference.NONE,
    ):
        copies = [copy for copy in contents.copies.values() if copy.difference is difference]
        copies.sort(key=lambda copy: -copy.kinds.total())
        if len(copies) <= MOST_PAIRS:
            yield from (_told([copy]) for copy in copies)
        else:
            yield _told(copies)


def _told(copies: Sequence[Copy]) -> Copies:
    """Return one finding for copies with the same difference; the pair of files with the most copies comes first."""
    most = copies[0]
    kinds = sum((copy.kinds for copy in copies), Counter[str]())
    return Copies(
        certainty=_SURE[most.difference],
        reaction=Reaction.REFUSES,
        weakens=_WEAKENED[most.difference],
        difference=most.difference,
        pairs=len(copies),
        kinds=dict(kinds.most_common()),
        example=most.first.title,
        first=most.first.place,
        second=most.second.place,
        first_value=_value(most.difference, most.first),
        second_value=_value(most.difference, most.second),
    )


def _value(difference: ObjectDifference, dump_object: DumpObject) -> str:
    match difference:
        case ObjectDifference.OBJECT:
            return dump_object.uid
        case ObjectDifference.STATE:
            return dump_object.version
    return ""


def _other_owners(contents: DumpContents) -> Iterator[OtherOwner]:
    """Yield a finding if an owner is present with another uid: garbage collection deletes the objects of a deleted
    owner."""
    first: tuple[DumpObject, DumpObject] | None = None
    number = 0
    for kind in contents.objects.values():
        for dump_object in kind.values():
            owner = dump_object.owner
            owners = kind_of(owner.kind or "", owner.group)
            if owners is None or not owner.uid:
                continue
            there = contents.objects[owners.key]
            owning = there.get(f"{dump_object.namespace}/{owner.name}") or there.get(owner.name or "")
            if owning is not None and owning.uid and owning.uid != owner.uid:
                number += 1
                first = first or (dump_object, owning)
    if first is not None:
        dump_object, owning = first
        yield OtherOwner(
            certainty=Certainty.LIKELY,
            weakens=_EVERYTHING,
            objects=number,
            example=dump_object.title,
            place=dump_object.place,
            owner=owning.title,
            owner_place=owning.place,
            named_uid=dump_object.owner.uid or "",
            found_uid=owning.uid,
        )


# --- inconsistent nodes


def _clouds(contents: DumpContents) -> Iterator[Clouds]:
    of: dict[str, list[DumpNode]] = {}
    for node in contents.nodes.values():
        if node.cloud:
            of.setdefault(_ALIASES.get(node.cloud, node.cloud), []).append(node)
    if len(of) > 1:
        most = sorted(of.items(), key=lambda item: (-len(item[1]), item[0]))
        yield Clouds(
            certainty=Certainty.LIKELY,
            weakens=_EVERYTHING,
            nodes={cloud: len(nodes) for cloud, nodes in most},
            examples={cloud: nodes[0].name for cloud, nodes in most},
            places={cloud: nodes[0].origin.source for cloud, nodes in most},
        )


def _skew(contents: DumpContents) -> Iterator[Skew]:
    nodes = [node for node in contents.nodes.values() if minor_of(node.kubelet) != (0, 0)]
    if not nodes:
        return
    newest, oldest = (pick(nodes, key=lambda node: key_of(node.kubelet)) for pick in (max, min))
    server = contents.header.server_version
    bound = minor_of(server) if minor_of(server) != (0, 0) else minor_of(newest.kubelet)
    allowed = 3 if bound >= WIDER_SKEW else 2
    if minor_of(newest.kubelet) > bound or minor_of(oldest.kubelet) < (bound[0], bound[1] - allowed):
        yield Skew(
            certainty=Certainty.POSSIBLE,
            weakens=(Weakness(plugins=(), effect="the version is in doubt: name it with --kube-version"),),
            server=server,
            newest=newest.kubelet,
            newest_node=newest.name,
            oldest=oldest.kubelet,
            oldest_node=oldest.name,
            allowed=allowed,
        )


# --- two times


def _time(text: str) -> int | None:
    try:
        return nanoseconds(text)
    except InputError:
        return None


def _taken_twice(contents: DumpContents) -> Iterator[TakenTwice]:
    times = ((time, header) for header in contents.headers if (time := _time(header.taken)) is not None)
    taken = sorted(times, key=lambda pair: pair[0])
    if taken and taken[-1][0] - taken[0][0] > APART:
        first, second = taken[0][1], taken[-1][1]
        yield TakenTwice(
            certainty=Certainty.CERTAIN,
            weakens=_MOMENTS,
            first=first.taken,
            first_source=first.source,
            second=second.taken,
            second_source=second.source,
        )


def _times(contents: DumpContents) -> Iterator[NodesOfTwoTimes | PodsAfterNodes]:
    beats = [(time, node) for node in contents.nodes.values() if (time := _time(node.heartbeat)) is not None]
    if not beats:
        return
    latest, newest = max(beats, key=lambda beat: beat[0])
    older = [(time, node) for time, node in beats if node.is_ready and latest - time > APART]
    if older:
        oldest = min(older, key=lambda beat: beat[0])[1]
        yield NodesOfTwoTimes(
            certainty=Certainty.LIKELY,
            weakens=_MOMENTS,
            newest=newest.heartbeat,
            newest_node=newest.name,
            newest_place=newest.place,
            oldest=oldest.heartbeat,
            oldest_node=oldest.name,
            oldest_place=oldest.place,
            older=len(older),
        )
    pod = max(contents.pods.values(), key=lambda pod: pod.seen, default=None)
    seen = _time(pod.seen) if pod else None
    if pod is not None and seen is not None and seen - latest > APART:
        yield PodsAfterNodes(
            certainty=Certainty.LIKELY,
            weakens=_MOMENTS,
            pod=pod.key,
            pod_time=pod.seen,
            pod_place=pod.place,
            node=newest.name,
            node_time=newest.heartbeat,
            node_place=newest.place,
        )


def _young_nodes(contents: DumpContents) -> Iterator[YoungNodes]:
    """Yield nodes that are younger than their pods. This also happens if a Node is deleted while its kubelet runs,
    which registers it again."""
    odd = [pod for pod in contents.pods.values() if _is_older(pod, contents.nodes.get(pod.node))]
    if odd:
        nodes = Counter(pod.node for pod in odd)
        first = min(odd, key=lambda pod: pod.started)
        yield YoungNodes(
            certainty=Certainty.POSSIBLE,
            weakens=_MOMENTS,
            nodes=len(nodes),
            pods=len(odd),
            node=first.node,
            created=contents.nodes[first.node].created,
            pod=first.key,
            started=first.started,
        )


def _is_older(pod: DumpPod, node: DumpNode | None) -> bool:
    """Return whether the pod started on the node before the node was created. Static pods are exempt, since a kubelet
    starts them earlier."""
    if node is None or pod.is_finished or pod.is_static or not pod.started or pod.started >= node.created:
        return False
    started, created = _time(pod.started), _time(node.created)
    return started is not None and created is not None and started < created - SOONER

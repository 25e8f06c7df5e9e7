"""The diagnosis of a dump: what it holds, what is wrong with it, and how to complete it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.doctor import findings as f
from kschedx.doctor.contents import Copy, DumpContents, DumpNode, DumpObject, DumpPod, key_of, minor_of
from kschedx.doctor.gaps import autoscaler_findings, missing_kinds, pod_findings, pointed_to
from kschedx.errors import InputError
from kschedx.grouping import group_pairs
from kschedx.kube.documents import document
from kschedx.kube.kinds import KINDS, kind_of
from kschedx.kube.kubectl import added_file, dump_objects
from kschedx.kube.scalars import nanoseconds, newest
from kschedx.results import Shown

# Evidence that a dump holds two clusters, or one cluster at two times.

_MINUTE = 60 * 1_000_000_000
_APART = 10 * _MINUTE
"""A kubelet reports every five minutes if nothing changes (nodeStatusReportFrequency), and may be late."""
_MOST_PAIRS = 2  # the number of pairs of files that are listed one by one
_SOONER = _MINUTE  # a pod may start this long before its node was created, since clocks differ
_WIDER_SKEW = (1, 28)  # the version from which a kubelet may be three minor versions older than the API server, not two
_ALIASES = {"eks-hybrid": "aws"}  # clouds that count as another one, since both occur in the same cluster

_EVERYTHING = (f.Weakness(plugins=(), effect="every verdict: nodes and pods are not of one cluster"),)
_MOMENTS = (f.Weakness(plugins=("NodeResourcesFit",), effect="pods created or deleted in between are counted wrong"),)


def _mixture_findings(contents: DumpContents) -> Iterator[f.Finding]:
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
    f.ObjectDifference.NONE: f.Certainty.CERTAIN,
    f.ObjectDifference.UNKNOWN: f.Certainty.CERTAIN,
    f.ObjectDifference.STATE: f.Certainty.CERTAIN,
    f.ObjectDifference.OBJECT: f.Certainty.LIKELY,
}
_WEAKENED = {
    f.ObjectDifference.NONE: (),
    f.ObjectDifference.UNKNOWN: (f.Weakness(plugins=(), effect="which of the two counts is not known"),),
    f.ObjectDifference.STATE: _MOMENTS,
    f.ObjectDifference.OBJECT: (
        f.Weakness(plugins=(), effect="every verdict, unless the objects were recreated in between"),
    ),
}


def _copies(contents: DumpContents) -> Iterator[f.TwoClusters | f.Copies]:
    for twice in contents.kube_systems:
        yield f.TwoClusters(
            certainty=f.Certainty.CERTAIN,
            reaction=f.Reaction.REFUSES,
            weakens=_EVERYTHING,
            first=twice[0].place,
            second=twice[1].place,
            first_uid=twice[0].uid,
            second_uid=twice[1].uid,
        )
    for difference in (
        f.ObjectDifference.OBJECT,
        f.ObjectDifference.STATE,
        f.ObjectDifference.UNKNOWN,
        f.ObjectDifference.NONE,
    ):
        copies = [copy for copy in contents.copies.values() if copy.difference is difference]
        copies.sort(key=lambda copy: -copy.kinds.total())
        if len(copies) <= _MOST_PAIRS:
            yield from (_copies_finding([copy]) for copy in copies)
        else:
            yield _copies_finding(copies)


def _copies_finding(copies: Sequence[Copy]) -> f.Copies:
    """Return one finding for copies with the same difference; the pair of files with the most copies comes first."""
    most = copies[0]
    kinds = sum((copy.kinds for copy in copies), Counter[str]())
    return f.Copies(
        certainty=_SURE[most.difference],
        reaction=f.Reaction.REFUSES,
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


def _value(difference: f.ObjectDifference, dump_object: DumpObject) -> str:
    match difference:
        case f.ObjectDifference.OBJECT:
            return dump_object.uid
        case f.ObjectDifference.STATE:
            return dump_object.version
    return ""


def _other_owners(contents: DumpContents) -> Iterator[f.OtherOwner]:
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
        yield f.OtherOwner(
            certainty=f.Certainty.LIKELY,
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


def _clouds(contents: DumpContents) -> Iterator[f.Clouds]:
    of = group_pairs((_ALIASES.get(node.cloud, node.cloud), node) for node in contents.nodes.values() if node.cloud)
    if len(of) > 1:
        most = sorted(of.items(), key=lambda item: (-len(item[1]), item[0]))
        yield f.Clouds(
            certainty=f.Certainty.LIKELY,
            weakens=_EVERYTHING,
            nodes={cloud: len(nodes) for cloud, nodes in most},
            examples={cloud: nodes[0].name for cloud, nodes in most},
            places={cloud: nodes[0].origin.source for cloud, nodes in most},
        )


def _skew(contents: DumpContents) -> Iterator[f.Skew]:
    nodes = [node for node in contents.nodes.values() if minor_of(node.kubelet) != (0, 0)]
    if not nodes:
        return
    newest, oldest = (pick(nodes, key=lambda node: key_of(node.kubelet)) for pick in (max, min))
    server = contents.header.server_version
    bound = minor_of(server) if minor_of(server) != (0, 0) else minor_of(newest.kubelet)
    allowed = 3 if bound >= _WIDER_SKEW else 2
    if minor_of(newest.kubelet) > bound or minor_of(oldest.kubelet) < (bound[0], bound[1] - allowed):
        yield f.Skew(
            certainty=f.Certainty.POSSIBLE,
            weakens=(f.Weakness(plugins=(), effect="the version is in doubt: name it with --kube-version"),),
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


def _taken_twice(contents: DumpContents) -> Iterator[f.TakenTwice]:
    times = ((time, header) for header in contents.headers if (time := _time(header.taken)) is not None)
    taken = sorted(times, key=lambda pair: pair[0])
    if taken and taken[-1][0] - taken[0][0] > _APART:
        first, second = taken[0][1], taken[-1][1]
        yield f.TakenTwice(
            certainty=f.Certainty.CERTAIN,
            weakens=_MOMENTS,
            first=first.taken,
            first_source=first.source,
            second=second.taken,
            second_source=second.source,
        )


def _times(contents: DumpContents) -> Iterator[f.NodesOfTwoTimes | f.PodsAfterNodes]:
    beats = [(time, node) for node in contents.nodes.values() if (time := _time(node.heartbeat)) is not None]
    if not beats:
        return
    latest, newest = max(beats, key=lambda beat: beat[0])
    older = [(time, node) for time, node in beats if node.is_ready and latest - time > _APART]
    if older:
        oldest = min(older, key=lambda beat: beat[0])[1]
        yield f.NodesOfTwoTimes(
            certainty=f.Certainty.LIKELY,
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
    if pod is not None and seen is not None and seen - latest > _APART:
        yield f.PodsAfterNodes(
            certainty=f.Certainty.LIKELY,
            weakens=_MOMENTS,
            pod=pod.key,
            pod_time=pod.seen,
            pod_place=pod.place,
            node=newest.name,
            node_time=newest.heartbeat,
            node_place=newest.place,
        )


def _young_nodes(contents: DumpContents) -> Iterator[f.YoungNodes]:
    """Yield nodes that are younger than their pods. This also happens if a Node is deleted while its kubelet runs,
    which registers it again."""
    odd = [pod for pod in contents.pods.values() if _is_older(pod, contents.nodes.get(pod.node))]
    if odd:
        nodes = Counter(pod.node for pod in odd)
        first = min(odd, key=lambda pod: pod.started)
        yield f.YoungNodes(
            certainty=f.Certainty.POSSIBLE,
            weakens=_MOMENTS,
            nodes=len(nodes),
            pods=len(odd),
            node=first.node,
            created=contents.nodes[first.node].creation_time,
            pod=first.key,
            started=first.started,
        )


def _is_older(pod: DumpPod, node: DumpNode | None) -> bool:
    """Return whether the pod started on the node before the node was created. Static pods are exempt, since a kubelet
    starts them earlier."""
    if node is None or pod.is_finished or pod.is_static or not pod.started or pod.started >= node.creation_time:
        return False
    started, created = _time(pod.started), _time(node.creation_time)
    return started is not None and created is not None and started < created - _SOONER


class Inventory(Struct, frozen=True, kw_only=True, rename="camel"):
    """The contents of a dump."""

    source: str
    files: int
    kinds: Mapping[str, int]  # the number of objects of each kind that scheduling reads
    not_read: Mapping[str, int]  # the number of objects of each other kind
    running: int
    pending: int
    finished: int
    namespaces: int  # the number of namespaces with pods
    server_version: str  # empty if unknown
    oldest_kubelet: str
    newest_kubelet: str
    taken: str  # RFC 3339; empty if unknown
    formats: tuple[str, ...]  # the recognized dumps of other tools
    not_applied: tuple[str, ...]  # what these dumps hold besides objects
    origin: str  # the source of a snapshot, from its header
    is_anonymized: bool
    newest: str  # the newest time in a node or pod: the dump was taken at that time or later

    @property
    def time(self) -> str:
        """When the dump was taken, as far as it says; empty if it has no time."""
        return self.taken or (f"{self.newest} or later" if self.newest else "")


class Way(StrEnum):
    """A command that gets what is missing."""

    ADD = "add"  # add files to the present ones
    ANEW = "anew"  # replace the present files
    ALLOW = "allow"  # grant permission to list kinds in a live cluster


class Completion(Struct, frozen=True, kw_only=True, rename="camel"):
    """How to get what is missing."""

    way: Way
    command: str
    snapshots: tuple[str, ...] = ()  # the values of --snapshot afterwards


class DumpDiagnosis(Shown, Struct, frozen=True, kw_only=True, rename="camel"):
    """All findings, the most important first."""

    inventory: Inventory
    findings: tuple[f.Finding, ...]
    completion: Completion | None

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.weakening):,} gaps>"

    @property
    def weakening(self) -> tuple[f.Finding, ...]:
        """Findings that may make an answer wrong or impossible."""
        return tuple(finding for finding in self.findings if finding.counts)

    def records(self) -> list[dict[str, object]]:
        """Return one row per finding."""
        return [
            {
                "id": str(type(finding).__struct_config__.tag),
                "certainty": finding.certainty.value,
                "reaction": finding.reaction.value,
                "plugins": ", ".join(dict.fromkeys(name for part in finding.weakens for name in part.plugins)),
                "effect": "; ".join(part.effect for part in finding.weakens),
            }
            for finding in self.findings
        ]

    def to_dict(self) -> dict[str, object]:
        return document("Diagnosis", DumpDiagnosis, self)


def diagnose(contents: DumpContents, paths: Sequence[str] = ()) -> DumpDiagnosis:
    """Return the diagnosis. `paths` are the files; empty for a live cluster."""
    pods = tuple(pod_findings(contents))
    missing = tuple(missing_kinds(contents))
    certain = [finding for finding in missing if isinstance(finding, f.MissingKind)]
    lacking = [finding for finding in missing if isinstance(finding, f.IncompleteDump)]
    perhaps = [finding for finding in missing if isinstance(finding, f.PerhapsNone)]
    mixture = tuple(_mixture_findings(contents))
    sure = [finding for finding in mixture if finding.certainty is not f.Certainty.POSSIBLE]
    unsure = [finding for finding in mixture if finding.certainty is f.Certainty.POSSIBLE]
    cut = tuple(_cut(contents))
    hints = (*autoscaler_findings(contents), *_secrets(contents))
    findings = (*_unreadable(contents), *sure, *cut, *lacking, *pods, *certain, *unsure, *perhaps, *hints)
    return DumpDiagnosis(
        inventory=_inventory(contents, ", ".join(paths) or contents.header.source),
        findings=findings,
        completion=_completion(findings, contents, paths) if paths else _permission(findings),
    )


def _cut(contents: DumpContents) -> Iterator[f.Cut]:
    """Compare the numbers in snapshots' headers with the objects that are present. Copies and other files can only add
    objects."""
    stated: Counter[str] = Counter()
    for header in contents.headers:
        stated |= Counter(header.complete)
    there = {kind: contents.number(kind) for kind in stated}
    fewer = {kind: number for kind, number in stated.items() if there[kind] < number}
    if fewer:
        yield f.Cut(
            certainty=f.Certainty.CERTAIN,
            weakens=f.weakness_without(fewer),
            kinds=fewer,
            there={kind: there[kind] for kind in fewer},
        )


def _unreadable(contents: DumpContents) -> Iterator[f.Unreadable]:
    if contents.problems:
        yield f.Unreadable(
            certainty=f.Certainty.CERTAIN,
            reaction=f.Reaction.REFUSES,
            problems=tuple(f.Problem(place=it.place, message=it.message, hint=it.hint) for it in contents.problems),
            number=contents.problem_count,
        )


def _secrets(contents: DumpContents) -> Iterator[f.Secrets]:
    if contents.secrets:
        files = tuple(sorted(contents.secrets))
        yield f.Secrets(certainty=f.Certainty.CERTAIN, secrets=contents.secrets.total(), files=files)


def _inventory(contents: DumpContents, source: str) -> Inventory:
    phases: Counter[str] = Counter()
    for pod in contents.pods.values():
        phases["finished" if pod.is_finished else "running" if pod.node else "pending"] += 1
    kubelets = sorted((node.kubelet for node in contents.nodes.values() if any(key_of(node.kubelet))), key=key_of)
    times = [node.heartbeat for node in contents.nodes.values()] + [pod.seen for pod in contents.pods.values()]
    return Inventory(
        source=source,
        files=len(contents.files),
        kinds={kind: len(objects) for kind, objects in contents.objects.items() if objects},
        not_read=dict(contents.not_read.most_common()),
        running=phases["running"],
        pending=phases["pending"],
        finished=phases["finished"],
        namespaces=len({pod.namespace for pod in contents.pods.values()}),
        server_version=contents.header.server_version,
        oldest_kubelet=kubelets[0] if kubelets else "",
        newest_kubelet=kubelets[-1] if kubelets else "",
        taken=contents.header.taken,
        formats=tuple(dict.fromkeys(dump.format for dump in contents.dumps)),
        not_applied=tuple(dict.fromkeys((*(hold for it in contents.dumps for hold in it.holds), *contents.left_out))),
        origin=contents.header.source,
        is_anonymized=contents.header.anonymized,
        newest=newest(times),
    )


# --- how to complete it

_GIVEN_TWICE = (f.ObjectDifference.NONE, f.ObjectDifference.UNKNOWN)
_ANEW = "cluster.yaml"


def _completion(findings: Sequence[f.Finding], contents: DumpContents, paths: Sequence[str]) -> Completion | None:
    """Return how to complete the dump. Kinds that are missing as a whole are added. If a kind is present in part,
    everything is taken again, since each object may be given only once."""
    amiss = [finding for finding in findings if finding.counts and not _is_repaired_in_files(finding)]
    if not amiss:
        return None
    whole = [item.kind for item in amiss if isinstance(item, f.MissingKind) and not item.present]
    if all(isinstance(item, f.MissingKind) and not item.present for item in amiss):
        perhaps = (kind for finding in findings if isinstance(finding, f.PerhapsNone) for kind in finding.kinds)
        kinds = [*whole, *(kind for kind in perhaps if not KINDS[kind].is_optional)]
        return Completion(way=Way.ADD, command=dump_objects(kinds), snapshots=(*paths, added_file(kinds)))
    used = {*whole, *(key for key, objects in contents.objects.items() if objects), *pointed_to(contents)}
    kinds = [key for key, kind in KINDS.items() if key in used or (kind.leaves and not kind.is_optional)]
    return Completion(way=Way.ANEW, command=dump_objects(kinds, _ANEW), snapshots=(_ANEW,))


def _is_repaired_in_files(finding: f.Finding) -> bool:
    """Whether the fix is to repair the present files, or to leave one of them out."""
    return isinstance(finding, f.Unreadable) or (isinstance(finding, f.Copies) and finding.difference in _GIVEN_TWICE)


def _permission(findings: Sequence[f.Finding]) -> Completion | None:
    """Return the command that allows listing the forbidden kinds."""
    kinds = [finding.kind for finding in findings if isinstance(finding, f.MissingKind) and finding.is_forbidden]
    if not kinds:
        return None
    resources = ",".join(KINDS[kind].resource for kind in kinds)
    return Completion(
        way=Way.ALLOW, command=f"kubectl create clusterrole kschedx --verb=get,list --resource={resources}"
    )

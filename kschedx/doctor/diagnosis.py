"""What doctor says of a dump: what it holds, what is amiss, and how to complete it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.doctor.contents import Contents
from kschedx.doctor.findings import (
    Certainty,
    Copies,
    Cut,
    Difference,
    Finding,
    Lacking,
    MissingKind,
    PerhapsNone,
    Problem,
    Reaction,
    Secrets,
    Unreadable,
    weakness_without,
)
from kschedx.doctor.missing import autoscaler_findings, missing_kinds, pod_findings, pointed_to
from kschedx.doctor.mixture import mixture_findings
from kschedx.doctor.objects import key_of
from kschedx.errors import InputError
from kschedx.explain.missing_kinds import ADDED, get_command
from kschedx.kube.documents import document
from kschedx.kube.kinds import KINDS
from kschedx.kube.scalars import nanoseconds
from kschedx.results import Shown


class Inventory(Struct, frozen=True, kw_only=True, rename="camel"):
    """The contents of a dump."""

    source: str
    files: int
    kinds: Mapping[str, int]
    """The kinds that scheduling reads, and how many objects of each."""
    not_read: Mapping[str, int]
    """The others."""
    running: int
    pending: int
    finished: int
    namespaces: int
    """In which there are pods."""
    server_version: str
    """Empty where nothing says it."""
    oldest_kubelet: str
    newest_kubelet: str
    taken: str
    """RFC 3339; empty where nothing says it."""
    formats: tuple[str, ...]
    """The dumps of other tools that were recognized."""
    not_applied: tuple[str, ...]
    """What these hold besides objects."""
    origin: str
    """What a snapshot says it was taken of."""
    is_anonymized: bool
    newest: str
    """The newest time in a node or pod: the dump was taken then or later."""


class Way(StrEnum):
    """A command that gets what is missing."""

    ADD = "add"
    """Beside what is there."""
    ANEW = "anew"
    """In place of it."""
    ALLOW = "allow"
    """What may not be listed in a live cluster."""


class Completion(Struct, frozen=True, kw_only=True, rename="camel"):
    """How to get what is missing."""

    way: Way
    command: str
    snapshots: tuple[str, ...] = ()
    """What to name with --snapshot then."""


class Diagnosis(Shown, Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that was found, the most important first."""

    inventory: Inventory
    findings: tuple[Finding, ...]
    completion: Completion | None

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.weakening):,} gaps>"

    @property
    def weakening(self) -> tuple[Finding, ...]:
        """Findings for which an answer may be wrong or impossible."""
        return tuple(found for found in self.findings if found.counts)

    def records(self) -> list[dict[str, object]]:
        """A row per finding."""
        return [
            {
                "id": str(type(one).__struct_config__.tag),
                "certainty": one.certainty.value,
                "reaction": one.reaction.value,
                "plugins": ", ".join(dict.fromkeys(name for part in one.weakens for name in part.plugins)),
                "effect": "; ".join(part.effect for part in one.weakens),
            }
            for one in self.findings
        ]

    def to_dict(self) -> dict[str, object]:
        """The document."""
        return document("Diagnosis", Diagnosis, self)


def diagnose(contents: Contents, paths: Sequence[str] = ()) -> Diagnosis:
    """`paths` are the files; none for a live cluster."""
    pods = tuple(pod_findings(contents))
    missing = tuple(missing_kinds(contents))
    certain = [found for found in missing if isinstance(found, MissingKind)]
    lacking = [found for found in missing if isinstance(found, Lacking)]
    perhaps = [found for found in missing if isinstance(found, PerhapsNone)]
    mixture = tuple(mixture_findings(contents))
    sure = [found for found in mixture if found.certainty is not Certainty.POSSIBLE]
    unsure = [found for found in mixture if found.certainty is Certainty.POSSIBLE]
    cut = tuple(_cut(contents))
    told = (*autoscaler_findings(contents), *_secrets(contents))
    found = (*_unreadable(contents), *sure, *cut, *lacking, *pods, *certain, *unsure, *perhaps, *told)
    return Diagnosis(
        inventory=_inventory(contents, ", ".join(paths) or contents.header.source),
        findings=found,
        completion=_completion(found, contents, paths) if paths else _permission(found),
    )


def _cut(contents: Contents) -> Iterator[Cut]:
    """The numbers that snapshots state, against those that are there; copies and other files can only add to these."""
    said: Counter[str] = Counter()
    for header in contents.headers:
        said |= Counter(header.complete)
    there = {kind: contents.number(kind) for kind in said}
    fewer = {kind: number for kind, number in said.items() if there[kind] < number}
    if fewer:
        yield Cut(
            certainty=Certainty.CERTAIN,
            weakens=weakness_without(fewer),
            kinds=fewer,
            there={kind: there[kind] for kind in fewer},
        )


def _unreadable(contents: Contents) -> Iterator[Unreadable]:
    if contents.problems:
        yield Unreadable(
            certainty=Certainty.CERTAIN,
            reaction=Reaction.REFUSES,
            problems=tuple(
                Problem(place=error.place, message=error.message, hint=error.hint) for error in contents.problems
            ),
            number=contents.problem_count,
        )


def _secrets(contents: Contents) -> Iterator[Secrets]:
    if contents.secrets:
        files = tuple(sorted(contents.secrets))
        yield Secrets(certainty=Certainty.CERTAIN, secrets=contents.secrets.total(), files=files)


def _inventory(contents: Contents, source: str) -> Inventory:
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
        not_applied=tuple(dict.fromkeys((*(one for dump in contents.dumps for one in dump.holds), *contents.left_out))),
        origin=contents.header.source,
        is_anonymized=contents.header.anonymized,
        newest=next(filter(_is_time, sorted(set(times), reverse=True)), ""),
    )


def _is_time(text: str) -> bool:
    try:
        return bool(nanoseconds(text))
    except InputError:
        return False


# --- how to complete it

_GIVEN_TWICE = (Difference.NONE, Difference.UNKNOWN)
ANEW = "cluster.yaml"


def _completion(found: Sequence[Finding], contents: Contents, paths: Sequence[str]) -> Completion | None:
    """Kinds that are missing altogether are added. What is there in part is taken again: an object is given once."""
    amiss = [one for one in found if one.counts and not _is_mended_here(one)]
    if not amiss:
        return None
    whole = [one.kind for one in amiss if isinstance(one, MissingKind) and not one.present]
    if all(isinstance(one, MissingKind) and not one.present for one in amiss):
        perhaps = (kind for one in found if isinstance(one, PerhapsNone) for kind in one.kinds)
        kinds = [*whole, *(kind for kind in perhaps if not KINDS[kind].is_optional)]
        return Completion(way=Way.ADD, command=get_command(kinds, ADDED), snapshots=(*paths, ADDED))
    used = {*whole, *(key for key, objects in contents.objects.items() if objects), *pointed_to(contents)}
    kinds = [key for key, kind in KINDS.items() if key in used or (kind.leaves and not kind.is_optional)]
    return Completion(way=Way.ANEW, command=get_command(kinds, ANEW), snapshots=(ANEW,))


def _is_mended_here(found: Finding) -> bool:
    """It is mended in the files that are there, or by leaving one of them out."""
    return isinstance(found, Unreadable) or (isinstance(found, Copies) and found.difference in _GIVEN_TWICE)


def _permission(found: Sequence[Finding]) -> Completion | None:
    """To list what is forbidden."""
    kinds = [one.kind for one in found if isinstance(one, MissingKind) and one.is_forbidden]
    if not kinds:
        return None
    resources = ",".join(KINDS[kind].resource for kind in kinds)
    return Completion(
        way=Way.ALLOW, command=f"kubectl create clusterrole kschedx --verb=get,list --resource={resources}"
    )

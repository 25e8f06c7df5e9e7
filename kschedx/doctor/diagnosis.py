"""The diagnosis of a dump: what it holds, what is wrong with it, and how to complete it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.doctor.contents import DumpContents
from kschedx.doctor.findings import (
    Certainty,
    Copies,
    Cut,
    Finding,
    Lacking,
    MissingKind,
    ObjectDifference,
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
from kschedx.explain.missing_kinds import ADDED, get_command
from kschedx.kube.documents import document
from kschedx.kube.kinds import KINDS
from kschedx.kube.scalars import newest
from kschedx.results import Shown


class Inventory(Struct, frozen=True, kw_only=True, rename="camel"):
    """The contents of a dump."""

    source: str
    files: int
    kinds: Mapping[str, int]
    """By kind, for the kinds that scheduling reads."""
    not_read: Mapping[str, int]
    """By kind, for all other kinds."""
    running: int
    pending: int
    finished: int
    namespaces: int
    """The number of namespaces with pods."""
    server_version: str
    """Empty if unknown."""
    oldest_kubelet: str
    newest_kubelet: str
    taken: str
    """RFC 3339; empty if unknown."""
    formats: tuple[str, ...]
    """The recognized dumps of other tools."""
    not_applied: tuple[str, ...]
    """What these dumps hold besides objects."""
    origin: str
    """The source of a snapshot, from its header."""
    is_anonymized: bool
    newest: str
    """The newest time in a node or pod: the dump was taken at that time or later."""

    @property
    def time(self) -> str:
        """When the dump was taken, as far as it says; empty if it has no time."""
        return self.taken or (f"{self.newest} or later" if self.newest else "")


class Way(StrEnum):
    """A command that gets what is missing."""

    ADD = "add"
    """Add files to the present ones."""
    ANEW = "anew"
    """Replace the present files."""
    ALLOW = "allow"
    """Grant permission to list kinds in a live cluster."""


class Completion(Struct, frozen=True, kw_only=True, rename="camel"):
    """How to get what is missing."""

    way: Way
    command: str
    snapshots: tuple[str, ...] = ()
    """The values of --snapshot afterwards."""


class Diagnosis(Shown, Struct, frozen=True, kw_only=True, rename="camel"):
    """All findings, the most important first."""

    inventory: Inventory
    findings: tuple[Finding, ...]
    completion: Completion | None

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.weakening):,} gaps>"

    @property
    def weakening(self) -> tuple[Finding, ...]:
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
        return document("Diagnosis", Diagnosis, self)


def diagnose(contents: DumpContents, paths: Sequence[str] = ()) -> Diagnosis:
    """Return the diagnosis. `paths` are the files; empty for a live cluster."""
    pods = tuple(pod_findings(contents))
    missing = tuple(missing_kinds(contents))
    certain = [finding for finding in missing if isinstance(finding, MissingKind)]
    lacking = [finding for finding in missing if isinstance(finding, Lacking)]
    perhaps = [finding for finding in missing if isinstance(finding, PerhapsNone)]
    mixture = tuple(mixture_findings(contents))
    sure = [finding for finding in mixture if finding.certainty is not Certainty.POSSIBLE]
    unsure = [finding for finding in mixture if finding.certainty is Certainty.POSSIBLE]
    cut = tuple(_cut(contents))
    hints = (*autoscaler_findings(contents), *_secrets(contents))
    findings = (*_unreadable(contents), *sure, *cut, *lacking, *pods, *certain, *unsure, *perhaps, *hints)
    return Diagnosis(
        inventory=_inventory(contents, ", ".join(paths) or contents.header.source),
        findings=findings,
        completion=_completion(findings, contents, paths) if paths else _permission(findings),
    )


def _cut(contents: DumpContents) -> Iterator[Cut]:
    """Compare the numbers in snapshots' headers with the objects that are present. Copies and other files can only add
    objects."""
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


def _unreadable(contents: DumpContents) -> Iterator[Unreadable]:
    if contents.problems:
        yield Unreadable(
            certainty=Certainty.CERTAIN,
            reaction=Reaction.REFUSES,
            problems=tuple(
                Problem(place=error.place, message=error.message, hint=error.hint) for error in contents.problems
            ),
            number=contents.problem_count,
        )


def _secrets(contents: DumpContents) -> Iterator[Secrets]:
    if contents.secrets:
        files = tuple(sorted(contents.secrets))
        yield Secrets(certainty=Certainty.CERTAIN, secrets=contents.secrets.total(), files=files)


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
        not_applied=tuple(
            dict.fromkeys((*(hold for dump in contents.dumps for hold in dump.holds), *contents.left_out))
        ),
        origin=contents.header.source,
        is_anonymized=contents.header.anonymized,
        newest=newest(times),
    )


# --- how to complete it

_GIVEN_TWICE = (ObjectDifference.NONE, ObjectDifference.UNKNOWN)
ANEW = "cluster.yaml"


def _completion(findings: Sequence[Finding], contents: DumpContents, paths: Sequence[str]) -> Completion | None:
    """Return how to complete the dump. Kinds that are missing as a whole are added. If a kind is present in part,
    everything is taken again, since each object may be given only once."""
    amiss = [finding for finding in findings if finding.counts and not _is_mended_here(finding)]
    if not amiss:
        return None
    whole = [item.kind for item in amiss if isinstance(item, MissingKind) and not item.present]
    if all(isinstance(item, MissingKind) and not item.present for item in amiss):
        perhaps = (kind for finding in findings if isinstance(finding, PerhapsNone) for kind in finding.kinds)
        kinds = [*whole, *(kind for kind in perhaps if not KINDS[kind].is_optional)]
        return Completion(way=Way.ADD, command=get_command(kinds, ADDED), snapshots=(*paths, ADDED))
    used = {*whole, *(key for key, objects in contents.objects.items() if objects), *pointed_to(contents)}
    kinds = [key for key, kind in KINDS.items() if key in used or (kind.leaves and not kind.is_optional)]
    return Completion(way=Way.ANEW, command=get_command(kinds, ANEW), snapshots=(ANEW,))


def _is_mended_here(finding: Finding) -> bool:
    """Whether the fix is to repair the present files, or to leave one of them out."""
    return isinstance(finding, Unreadable) or (isinstance(finding, Copies) and finding.difference in _GIVEN_TWICE)


def _permission(findings: Sequence[Finding]) -> Completion | None:
    """Return the command that allows listing the forbidden kinds."""
    kinds = [finding.kind for finding in findings if isinstance(finding, MissingKind) and finding.is_forbidden]
    if not kinds:
        return None
    resources = ",".join(KINDS[kind].resource for kind in kinds)
    return Completion(
        way=Way.ALLOW, command=f"kubectl create clusterrole kschedx --verb=get,list --resource={resources}"
    )

"""The `extenders` of an Explanation document: their requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap

from msgspec import field

from kschedx.framework.extenders import Trace
from kschedx.framework.status import Code, CodeText
from kschedx.kube.documents import Document, part_of


class FilterCallDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    extender: int
    asked: tuple[str, ...] = field(name="in")
    left: tuple[str, ...] = field(name="out")
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]
    error: str = ""
    ignored: bool = False


class HostScore(Document, frozen=True):
    host: str
    score: int


class ScoreCallDocument(Document, frozen=True, omit_defaults=True):
    extender: int
    raw: tuple[HostScore, ...]
    weight: int
    added: Mapping[str, int]
    error: str = ""


class VictimsDocument(Document, frozen=True):
    pods: tuple[str, ...]
    pdb_violations: int = field(name="numPDBViolations")


class PreemptCallDocument(Document, frozen=True, omit_defaults=True):
    extender: int
    asked: Mapping[str, VictimsDocument] = field(name="in")
    left: Mapping[str, VictimsDocument] | None = field(name="out")
    error: str = ""
    ignored: bool = False


class RefusalDocument(Document, frozen=True):
    """Of a node, or of preemption as a whole."""

    code: CodeText
    reasons: tuple[str, ...]


class CandidateDocument(Document, frozen=True):
    node: str
    victims: tuple[str, ...]
    pdb_violations: int


class ExtendersDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Extenders are identified by their index in the configuration."""

    order: tuple[int, ...] = ()
    interested: tuple[bool, ...]
    called: bool
    passed_plugins: tuple[str, ...] = ()
    filter: tuple[FilterCallDocument, ...] = ()
    statuses: Mapping[str, RefusalDocument] = {}
    silent: tuple[str, ...] = ()
    scores: tuple[ScoreCallDocument, ...] = ()
    preempt: tuple[PreemptCallDocument, ...] = ()
    candidates: tuple[CandidateDocument, ...] = ()
    candidates_status: RefusalDocument | None = None


def extenders_document(trace: Trace) -> ExtendersDocument:
    error = trace.candidates_error
    return part_of(
        ExtendersDocument,
        trace,
        statuses={name: RefusalDocument(status.code.text, status.reasons) for name, status in trace.statuses.items()},
        scores=tuple(
            part_of(ScoreCallDocument, call, raw=tuple(starmap(HostScore, call.raw))) for call in trace.scores
        ),
        candidates=tuple(
            CandidateDocument(node, own.pods, own.pdb_violations) for node, own in trace.candidates.items()
        ),
        candidates_status=RefusalDocument(Code.ERROR.text, (error,)) if error else None,
    )

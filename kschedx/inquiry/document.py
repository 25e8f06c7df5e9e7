"""The Explanation document (`-o json`), and that of many clusters' answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, field

from kschedx.controllers.states import ExitCode
from kschedx.explain.difference import Preemption
from kschedx.findings.facts import FindingDocument
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle, Outcome, Scores, UnevaluatedDocument
from kschedx.framework.extenders import FilterCall, PreemptCall, ScoreCall, Trace
from kschedx.framework.status import Code, CodeText, Status, StatusDocument
from kschedx.kube.documents import Change, Document, Json, Part, camel, document, part_of, to_json
from kschedx.snapshot.columns import each_row, rows_where
from kschedx.snapshot.snapshot import SourceDocument

if TYPE_CHECKING:
    from kschedx.holding import Holding


def holding_document(holding: Holding) -> Json:
    """Return what holds the pod before kube-scheduler sees it, or decides about it instead of kube-scheduler, without
    empty fields. Amounts are in milli-units for cpu, in units for everything else."""
    plain = _plain(holding)
    assert isinstance(plain, dict)
    if holding.kueue is not None and holding.kueue.verdict is not None:
        plain["kueue"]["verdict"] = to_json(holding.kueue.verdict)
    return plain


def _plain(value: object) -> object:
    match value:
        case Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            named = {name: _plain(field) for name, field in fields.items() if not callable(field)}
            return {camel(name): item for name, item in named.items() if item not in (None, "", [], {})}
        case tuple():
            return [_plain(item) for item in value]
        case Enum():
            return value.value
        case _:
            return value


class PodDocument(Document, frozen=True):
    namespace: str
    name: str
    scheduler_name: str
    priority: int


class PluginWeight(Document, frozen=True):
    name: str
    weight: int


ExtensionPoints = Mapping[str, tuple[str | PluginWeight, ...]]


class PodProfileDocument(Document, frozen=True):
    scheduler_name: str
    extension_points: ExtensionPoints


class PluginStatusDocument(Document, frozen=True):
    plugin: str
    code: CodeText
    reasons: tuple[str, ...]
    findings: tuple[FindingDocument, ...]


class PreFilterDocument(PluginStatusDocument, frozen=True):
    nodes: tuple[str, ...] | None  # the allowed nodes; None for all


class VerdictDocument(Document, frozen=True):
    code: CodeText
    plugin: str | None
    reasons: tuple[str, ...]


class NodeVerdict(Document, frozen=True):
    verdict: VerdictDocument
    rejected_by: Mapping[str, StatusDocument]


class FilterDocument(Document, frozen=True):
    skipped: tuple[str, ...]
    nodes: Mapping[str, NodeVerdict]


class NodeScores(Document, frozen=True):
    raw: Mapping[str, int]
    normalized: Mapping[str, int]
    weighted: Mapping[str, int]
    total: int


class ScoresDocument(Document, frozen=True):
    skipped: tuple[str, ...]
    weights: Mapping[str, int]
    nodes: Mapping[str, NodeScores]


class RefusalDocument(Document, frozen=True):
    """An extender's refusal of a node, or of preemption as a whole."""

    code: CodeText
    reasons: tuple[str, ...]


class ExtendersDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Extenders are identified by their index in the configuration."""

    order: tuple[int, ...] = ()
    interested: tuple[bool, ...]
    called: bool
    passed_plugins: tuple[str, ...] = ()
    filter: tuple[FilterCall, ...] = ()
    statuses: Mapping[str, RefusalDocument] = {}
    silent: tuple[str, ...] = ()
    scores: tuple[ScoreCall, ...] = ()
    preempt: tuple[PreemptCall, ...] = ()
    candidates: tuple[Preemption, ...] = ()
    candidates_status: RefusalDocument | None = None


class PreemptionDocument(Document, frozen=True):
    code: CodeText
    reasons: tuple[str, ...]
    nominated_node: str | None
    best_candidates: tuple[str, ...]
    candidates: tuple[Preemption, ...]


class KubeletDocument(Document, frozen=True):
    node: str
    exists: bool
    is_taken: bool = field(name="takes")
    refusals: tuple[str, ...]


_NoteDocument = Annotated[
    Json,
    Meta(
        extra_json_schema={
            "required": ["id", "text"],
            "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
        }
    ),
]


class FixCoverage(Document, frozen=True, omit_defaults=True):
    """The number of pending replicas that a fix of one of them covers."""

    title: str  # the fix for all of them, if it takes more than one node
    pods: int  # the number of replicas with a node then, placed one after the other
    of: int
    commands: tuple[str, ...] = ()  # those of the fix for all of them, if it takes more than one node


class FixDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    title: str
    certainty: Literal["verified", "partial", "untried"]
    group: Literal["capacity", "workload", "cluster"]
    costs: tuple[str, ...] = ()
    changes: tuple[Change, ...]
    feasible_nodes: tuple[str, ...]
    apply: tuple[Change, ...] | None = None
    replicas: FixCoverage | None = None


class ExplanationDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Numbers are integers."""

    kubernetes_version: str
    source: SourceDocument
    pod: PodDocument
    profile: PodProfileDocument
    outcome: Outcome
    unheard: tuple[UnevaluatedDocument, ...] = ()
    best_nodes: tuple[str, ...]
    message: str
    pre_enqueue: tuple[PluginStatusDocument, ...]
    pre_filter: tuple[PreFilterDocument, ...]
    filter: FilterDocument | None
    score: ScoresDocument | None
    post_filter: PreemptionDocument | None
    fixes: tuple[FixDocument, ...]
    notes: tuple[_NoteDocument, ...]
    extenders: ExtendersDocument | None = None


def explanation_document(cycle: Cycle, fixes: Iterable[FixDocument], notes: Iterable[_NoteDocument]) -> Json:
    pod, names = cycle.pod, cycle.all_nodes.cluster.names
    return document(
        "Explanation",
        ExplanationDocument,
        cycle,
        kubernetes_version=cycle.release.version,
        source=cycle.snapshot.source.document,
        pod=PodDocument(pod.metadata.namespace, pod.metadata.name, pod.spec.scheduler_name, pod.priority),
        profile=PodProfileDocument(cycle.profile.scheduler_name, extension_points(cycle.profile)),
        unheard=tuple(unevaluated.document for unevaluated in cycle.unevaluated),
        best_nodes=tuple(names[row] for row in cycle.best),
        pre_enqueue=tuple(_step(PluginStatusDocument, status) for status in cycle.pre_enqueue),
        pre_filter=tuple(
            _step(PreFilterDocument, step.status, nodes=None if step.nodes is None else sorted(step.nodes))
            for step in cycle.pre_filter
        ),
        filter=_filter(cycle),
        score=_score(cycle.scores),
        post_filter=_post_filter(cycle),
        fixes=tuple(fixes),
        notes=tuple(notes),
        extenders=None if cycle.extenders is None else _extenders(cycle.extenders),
    )


def extension_points(profile: Profile) -> ExtensionPoints:
    return {
        point: tuple(PluginWeight(plugin, profile.weights[plugin]) for plugin in plugins)
        if point in ("score", "priorities")
        else plugins
        for point, plugins in profile.points.items()
    }


def _step(record: type[Part], status: Status, **more: object) -> Part:
    status_document = status.document
    return part_of(record, status, code=status_document.code, findings=status_document.findings, **more)


def _filter(cycle: Cycle) -> FilterDocument | None:
    """Return the plugins' results, before extenders: those are in `extenders`."""
    outcome = cycle.filter_plugins or cycle.filter
    if outcome is None or cycle.nodes is None:
        return None
    rejected_by: list[dict[str, StatusDocument]] = [{} for _ in range(len(cycle.nodes))]
    for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True):
        for rejected in each_row(rows_where(verdicts.rejected)):
            rejected_by[rejected][plugin] = verdicts.status(rejected, plugin).document
    verdict_by_node = {}
    for row, name in zip(cycle.nodes.each(), cycle.nodes.names, strict=True):
        status = outcome.status(row)
        verdict = VerdictDocument(status.code.text, status.plugin or None, status.reasons)
        verdict_by_node[name] = NodeVerdict(verdict, rejected_by[row])
    return FilterDocument(cycle.filter_skipped, verdict_by_node)


def _score(scores: Scores | None) -> ScoresDocument | None:
    if scores is None:
        return None
    plugins = list(scores.weights)
    raw, normalized, weighted = (
        {plugin: of(plugin).tolist() for plugin in plugins}
        for of in (scores.raw.__getitem__, scores.normalized.__getitem__, scores.weighted_scores)
    )
    totals = scores.totals.tolist()
    nodes = {
        name: NodeScores(
            {plugin: raw[plugin][row] for plugin in plugins},
            {plugin: normalized[plugin][row] for plugin in plugins},
            {plugin: weighted[plugin][row] for plugin in plugins},
            totals[row],
        )
        for row, name in enumerate(scores.nodes.names)
    }
    return ScoresDocument(scores.skipped, scores.weights, nodes)


def _post_filter(cycle: Cycle) -> PreemptionDocument | None:
    result = cycle.post_filter
    if result is None:
        return None
    names, pods = cycle.all_nodes.cluster.names, cycle.snapshot.pods
    return PreemptionDocument(
        code=result.status.code.text,
        reasons=result.status.reasons,
        nominated_node=None if result.nominated_node is None else names[result.nominated_node],
        best_candidates=tuple(names[row] for row in result.best),
        candidates=tuple(
            Preemption(names[candidate.node], tuple(map(pods.key, candidate.victims)), candidate.pdb_violations)
            for candidate in result.candidates
        ),
    )


def _extenders(trace: Trace) -> ExtendersDocument:
    error = trace.candidates_error
    return part_of(
        ExtendersDocument,
        trace,
        statuses={name: RefusalDocument(status.code.text, status.reasons) for name, status in trace.statuses.items()},
        candidates=tuple(Preemption(node, own.pods, own.pdb_violations) for node, own in trace.candidates.items()),
        candidates_status=RefusalDocument(Code.ERROR.text, (error,)) if error else None,
    )


# The answers of many clusters to one question, and a line of the results.


class ClusterAnswerDocument(Document, frozen=True):
    cluster: str
    question: tuple[str, ...]
    exit_code: int
    seconds: float
    summary: str  # the headline of the answer, or the first line of the error
    errors: str
    taken: str  # when the cluster was read; empty if that is not known
    document: Mapping[str, object] | None  # the command's document for this cluster

    @property
    def is_answered(self) -> bool:
        """Whether the cluster was read and the question answered; if so, it is not asked again."""
        return self.document is not None and self.exit_code in (ExitCode.SCHEDULABLE, ExitCode.UNSCHEDULABLE)


class FleetDocument(Document, frozen=True):
    clusters: tuple[ClusterAnswerDocument, ...]

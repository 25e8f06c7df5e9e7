"""Statuses that plugins return, for the pod as a whole and for all nodes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from kschedx.findings import Finding, PluginMessage
from kschedx.findings.facts import FindingDocument
from kschedx.kube.documents import Document
from kschedx.snapshot.columns import BoolArray, ClusterRow, Column, IntArray, TableRow, distinct


class Code(IntEnum):
    """The framework's codes, with upstream's numbers (staging/src/k8s.io/kube-scheduler/framework/interface.go)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def text(self) -> str:
        """The name that kube-scheduler prints: `UnschedulableAndUnresolvable`."""
        return self.name.title().replace("_", "")

    @property
    def is_rejection(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


CodeText = Annotated[str, Meta(extra_json_schema={"enum": [code.text for code in Code]})]


class StatusDocument(Document, frozen=True):
    code: CodeText
    reasons: tuple[str, ...]
    findings: tuple[FindingDocument, ...]


class Status(Struct, frozen=True, kw_only=True):
    """A plugin's result for the pod as a whole, or for one node."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()  # kube-scheduler's own strings
    plugin: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejection(self) -> bool:
        return self.code.is_rejection

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def document(self) -> StatusDocument:
        return StatusDocument(self.code.text, self.reasons, tuple(finding.to_dict() for finding in self.findings))

    def by(self, plugin: str) -> Status:
        """Return the same status with the plugin's name, unless it has one; the framework sets it this way."""
        if self.plugin or (self.is_success and not self.findings):
            return self if self.plugin else Status(plugin=plugin)
        return Status(code=self.code, reasons=self.reasons, plugin=plugin, findings=self.findings)


SUCCESS = Status()
SKIP = Status(code=Code.SKIP)


def error(text: str, plugin: str = "", *findings: Finding) -> Status:
    """Return an internal error, which ends the cycle without a verdict."""
    return Status(code=Code.ERROR, reasons=(text,), plugin=plugin, findings=findings)


def worded_error(text: str) -> Status:
    """Return an internal error whose only finding is its text."""
    return error(text, "", PluginMessage(text=text))


def unschedulable(text: str, *findings: Finding) -> Status:
    """Return a rejection that the eviction of pods may end."""
    return Status(code=Code.UNSCHEDULABLE, reasons=(text,), findings=findings)


def unresolvable(text: str, *findings: Finding) -> Status:
    """Return a rejection that no eviction ends."""
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(text,), findings=findings)


_Explain = Callable[[TableRow], tuple[Finding, ...]]
"""Returns the findings of a row of the filtered table; called only for rows whose code is not Success."""


def _nothing(_: TableRow) -> tuple[Finding, ...]:
    return ()


class Verdicts(Struct, frozen=True, kw_only=True):
    """One plugin's Filter status on every node of a table.

    `codes` are (node,) Code numbers, `reasons` the strings of the same rows. `explain` builds a row's findings on
    demand.
    """

    codes: IntArray
    reasons: Column[tuple[str, ...]]
    explain: _Explain = field(default=_nothing)
    finding_groups: Callable[[], IntArray] | None = None
    """Returns (node,) codes that are equal only for nodes whose findings share a headline (`same_as`) and that are
    equally far from passing. For plugins whose findings are few and expensive."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def rejected(self) -> BoolArray:
        """(node,) whether the code is not Success."""
        rejected: BoolArray = self.codes != 0
        return rejected

    def status(self, row: TableRow, plugin: str = "") -> Status:
        """Return a row's status with its findings."""
        code = Code(int(self.codes[row]))
        if code is Code.SUCCESS:
            return SUCCESS
        return Status(code=code, reasons=self.reasons[row], plugin=plugin, findings=self.explain(row))

    def count_reasons(self, rows: BoolArray) -> Counter[str]:
        """Return the number of nodes for each reason, among the nodes in the mask (node,)."""
        counts: Counter[str] = Counter()
        times = np.bincount(self.reasons.codes[rows], minlength=len(self.reasons.values))
        for code in np.flatnonzero(times).tolist():
            for reason in self.reasons.values[code]:
                counts[reason] += int(times[code])
        return counts

    @classmethod
    def success(cls, count: int) -> Self:
        """Return verdicts that pass every node."""
        return cls.first_of(count=count)

    @classmethod
    def first_of(
        cls,
        *cases: tuple[BoolArray, Code, str],
        count: int | None = None,
        explain: _Explain = _nothing,
        finding_groups: Callable[[], IntArray] | None = None,
    ) -> Self:
        """Return, for each node, the status of the first case whose mask (node,) includes it, else Success.

        A case is (mask, code, reason). `count` is needed only if there are no cases.
        """
        size = len(cases[0][0]) if cases else count or 0
        case = np.zeros(size, dtype=np.int64)
        for number, (mask, _, _) in reversed(list(enumerate(cases, start=1))):
            case[mask] = number
        codes = np.array([0, *(int(code) for _, code, _ in cases)], dtype=np.int64)  # numpy is slow with enum members
        reasons: list[tuple[str, ...]] = [(), *((reason,) for _, _, reason in cases)]
        return cls(codes=codes[case], reasons=Column(case, reasons), explain=explain, finding_groups=finding_groups)

    @classmethod
    def everywhere(cls, count: int, status: Status) -> Self:
        """Return the same status, which rejects, on every node."""
        case = (np.ones(count, dtype=np.bool_), status.code, status.message)
        return cls.first_of(case, explain=lambda _: status.findings)

    @classmethod
    def of_rows(cls, statuses: list[Status]) -> Self:
        """Return the verdicts with these statuses, one per node, for rules that are written node by node."""
        return cls(
            codes=np.array([status.code for status in statuses], dtype=np.int64),
            reasons=Column.of(status.reasons for status in statuses),
            explain=lambda row: statuses[row].findings,
        )


MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0


class ByExtenders(Struct, frozen=True, kw_only=True):
    """The extenders' changes to the plugins' verdicts."""

    statuses: Mapping[ClusterRow, Status]
    silent: tuple[ClusterRow, ...]  # nodes that passed the plugins, did not pass the extenders, and have no status


class FirstRejection(Struct, frozen=True):
    """Why the first plugin that rejects a node does so."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]


class FilterOutcome(Struct, frozen=True, kw_only=True, dict=True):
    """kube-scheduler's verdict on each node: that of the first plugin, in order, that rejects it.

    All arrays are (node,). `plugin` is an index into `plugins`, -1 if the node passes.
    """

    plugins: tuple[str, ...]
    verdicts: tuple[Verdicts, ...]  # one per entry of `plugins`, evaluated on every node, without nominated pods
    codes: IntArray
    plugin: IntArray
    with_nominated: Mapping[TableRow, Status] = field(default_factory=dict)
    """Rows whose verdict comes from the first pass, which counts nominated pods, with the status of that pass."""
    by_extenders: ByExtenders | None = None  # the extenders' changes, which PostFilter sees as well

    @classmethod
    def of(cls, verdicts: Mapping[str, Verdicts], count: int) -> Self:
        """Return the outcome of each plugin's verdicts on `count` nodes, in order."""
        codes = np.zeros(count, dtype=np.int64)
        first = np.full(count, -1, dtype=np.int64)
        for number, answer in enumerate(verdicts.values()):
            rejected = answer.rejected
            if not rejected.any():
                continue
            news = (codes == 0) & rejected
            np.copyto(codes, answer.codes, where=news)  # a third of the time of codes[news] = ...
            np.copyto(first, number, where=news)
        return cls(plugins=tuple(verdicts), verdicts=tuple(verdicts.values()), codes=codes, plugin=first)

    def overrule(self, with_nominated: Mapping[TableRow, Status]) -> Self:
        """Return the outcome with the verdicts of the first pass in some rows."""
        codes, plugin = self.codes.copy(), self.plugin.copy()
        for row, status in with_nominated.items():
            codes[row] = status.code
            plugin[row] = self.plugins.index(status.plugin)
        return replace(self, codes=codes, plugin=plugin, with_nominated=with_nominated)

    @property
    def passed(self) -> BoolArray:
        passed: BoolArray = self.codes == 0
        return passed

    def status(self, row: TableRow) -> Status:
        """Return the verdict on a node."""
        nominated = self.with_nominated.get(row)
        if nominated is not None:
            return nominated
        index = int(self.plugin[row])
        return SUCCESS if index < 0 else self.verdicts[index].status(row, self.plugins[index])

    @cached_property
    def rejections(self) -> tuple[IntArray, tuple[FirstRejection, ...]]:
        """(node,) indices into the distinct rejections, -1 for a node that passes; and these rejections."""
        numbers = np.full(len(self.codes), -1, dtype=np.int64)
        number_of: dict[FirstRejection, int] = {}
        by_plugins = np.ones(len(self.codes), dtype=np.bool_)
        by_plugins[list(self.with_nominated)] = False
        for index in distinct(self.plugin[(self.plugin >= 0) & by_plugins]).tolist():
            verdicts, plugin = self.verdicts[index], self.plugins[index]
            rows = np.flatnonzero(by_plugins & (self.plugin == index))
            _, first, which = np.unique(
                verdicts.reasons.codes[rows] << 8 | verdicts.codes[rows], return_index=True, return_inverse=True
            )
            all_rejections = (
                FirstRejection(plugin, Code(int(verdicts.codes[row])), verdicts.reasons[row])
                for row in rows[first].tolist()
            )
            known = [number_of.setdefault(rejection, len(number_of)) for rejection in all_rejections]
            numbers[rows] = np.array(known, dtype=np.int64)[which]
        for row, status in self.with_nominated.items():
            rejected = FirstRejection(status.plugin, status.code, status.reasons)
            numbers[row] = number_of.setdefault(rejected, len(number_of))
        return numbers, tuple(number_of)

    def count_reasons(self, among: BoolArray | None = None) -> Counter[str]:
        """Return the number of nodes for each reason of the verdicts; with `among` (node,), only for these nodes."""
        return self._reason_counts.copy() if among is None else self._count(among.copy())

    @cached_property
    def _reason_counts(self) -> Counter[str]:
        return self._count(np.ones(len(self.codes), dtype=np.bool_))

    def _count(self, mask: BoolArray) -> Counter[str]:
        reasons: Counter[str] = Counter()
        for row, status in self.with_nominated.items():
            if mask[row]:
                reasons.update(status.reasons)
        mask[list(self.with_nominated)] = False
        occurring = np.bincount(self.plugin + 1, minlength=len(self.verdicts) + 1)[1:]
        for index in np.flatnonzero(occurring).tolist():
            reasons += self.verdicts[index].count_reasons(mask & (self.plugin == index))
        return reasons


class Candidate(Struct, frozen=True, kw_only=True):
    """A node on which preemption would make room for the pod."""

    node: ClusterRow
    victims: tuple[int, ...]  # rows of the PodTable, most important first
    pdb_violations: int

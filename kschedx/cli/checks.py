"""Answers of commands as checks for CI."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.cli.streams import print_note
from kschedx.controllers.states import ExitCode
from kschedx.errors import InputError, KschedxError, NotAdmittedError, Place, SeveralConfigError
from kschedx.explain.causes import PodAnswer, decisive
from kschedx.explain.difference import Summary
from kschedx.framework.config.advice import Advice
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from kschedx.render.checks import FINGERPRINT, Check, Result, Since


def pod_check(
    name: str, outcome: Outcome | None, text: Sequence[str], place: Place, reasons: tuple[str, ...] = ()
) -> Check:
    """Return the check that a pod is schedulable. If it is not, `text` explains why; `reasons` are the IDs of the
    rejections."""
    if outcome is Outcome.SCHEDULED:
        return Check(name=name, result=Result.PASSED, rule="unschedulable", place=place)
    check = Check(name=name, result=Result.FAILED, rule="", text="\n".join(filter(None, text)), place=place)
    match outcome:
        case Outcome.UNSCHEDULABLE:
            return replace(check, rule="unschedulable", reasons=reasons)
        case Outcome.GATED | Outcome.ERROR:
            return replace(check, rule=outcome.value.lower())
        case None | Outcome.UNDECIDED:
            return replace(check, result=Result.UNDECIDED, rule="undecided")
        case _:
            assert_never(outcome)


def explanation_check(explanation: Explanation, place: Place) -> Check:
    from kschedx.explain.ranking import rank_nodes
    from kschedx.render.outcome import outcome_sentence, replicas_sentence

    cycle, replicas = explanation.cycle, explanation.replicas
    reasons: tuple[str, ...] = ()
    phrases = [] if replicas is None else [replicas_sentence(replicas, explanation.overall), replicas.refusal]
    if explanation.lifecycle is not None:
        from kschedx.controllers.state_causes import causes
        from kschedx.controllers.states import headline

        phrases += [headline(explanation.lifecycle), *causes(explanation.lifecycle)]
    else:
        diagnosis = explanation.diagnosis
        phrases += [outcome_sentence(diagnosis, rank_nodes(cycle, 2)), explanation.message]
        reasons = tuple(dict.fromkeys(finding.reason for finding in decisive(diagnosis)))
    if explanation.overall is not Outcome.SCHEDULED:
        phrases += [f"fix: {fix.title} ({fix.certainty.value})" for fix in explanation.fixes[:1]]
    name = cycle.pod.key if replicas is None else replicas.workload
    return pod_check(name, explanation.overall, phrases, place, reasons)


def answers_check(answers: Sequence[PodAnswer], workload: str, place: Place) -> Check:
    """Return a check of a pod, or of all replicas of a workload. Its text is about the first one that does not fit."""
    bad = [answer for answer in answers if answer.outcome is not Outcome.SCHEDULED]
    first = (bad or answers)[0]
    phrases = ["; ".join(first.headlines), first.message]
    if workload and bad:
        phrases.insert(0, f"{len(answers) - len(bad):,} of {len(answers):,} replicas can be placed")
    return pod_check(workload or first.pod, first.outcome, phrases, place, first.reasons)


def advice_checks(file: str, advice: Sequence[Advice]) -> list[Check]:
    """Return a check for each warning, or one for a configuration without warnings."""
    from kschedx.sources.line_numbers import line_of

    place = Place(source=file, document=1) if Path(file).is_file() else Place()
    if not advice:
        return [Check(name=file, result=Result.PASSED, rule="configuration", place=place)]
    return [
        Check(
            name=hint.path,
            result=Result.FAILED,
            rule="configuration",
            text=hint.text,
            place=replace(place, line=line_of(hint.path, place)),
        )
        for hint in advice
    ]


def summary_checks(summary: Summary) -> Iterator[Check]:
    """Yield a check for each pod that differs or cannot be decided, and one for all others."""
    from kschedx.render.comparison import change_text, pod_texts

    if summary.same:
        phrase = f"{summary.same:,} pods are the same"
        yield Check(name=phrase, result=Result.PASSED, rule="other-placement")
    for difference in summary.differences:
        before, after, facts = pod_texts(difference)
        text = "\n".join((change_text(before, after), *facts))
        yield Check(name=difference.pod, result=Result.FAILED, rule="other-placement", text=text)
    for pod, reason in summary.undecided.items():
        yield Check(name=pod, result=Result.UNDECIDED, rule="undecided", text=reason)


# A baseline: findings of an earlier run, which do not fail CI again.


class Baseline:
    """The findings of a file that `-o sarif` wrote."""

    def __init__(self, path: str, known: Collection[str]) -> None:
        self._path = path
        self._known = known

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Read the file. Raises `InputError`."""
        from kschedx.sources.compression import read_content

        try:
            sarif = msgspec.json.decode(read_content(path), type=_Sarif)
        except msgspec.MsgspecError:
            hint = "write one with -o sarif"
            raise InputError("--baseline: this is not a SARIF file", source=path, hint=hint) from None
        known = {
            result.partial_fingerprints[FINGERPRINT]
            for run in sarif.runs
            for result in run.results
            if FINGERPRINT in result.partial_fingerprints
        }
        return cls(path, known)

    def mark_new(self, checks: Sequence[Check], code: int) -> tuple[tuple[Check, ...], int]:
        """Return the checks, with new ones marked, and the exit code: known findings do not count. Their number is
        printed on standard error."""
        marked = tuple(self._mark(check) for check in checks)
        new = sum(check.since is Since.NEW for check in marked)
        unchanged = sum(check.since is Since.UNCHANGED for check in marked)
        if unchanged:
            text = f"{unchanged:,} finding{'s' * (unchanged > 1)} of {self._path} ignored, {new:,} new"
            print_note(text)
            code = code if new else ExitCode.SCHEDULABLE
        return marked, code

    def _mark(self, check: Check) -> Check:
        if check.result is Result.PASSED:
            return check
        return replace(check, since=Since.UNCHANGED if check.fingerprint in self._known else Since.NEW)


class _SarifResult(Struct, rename="camel"):
    partial_fingerprints: dict[str, str] = {}


class _SarifRun(Struct):
    results: list[_SarifResult]


class _Sarif(Struct):
    version: str
    runs: list[_SarifRun]


def error_checks(error: KschedxError) -> Iterator[Check]:
    """Yield a check for each error of the input, on its line, or an undecided one if information is missing."""
    from kschedx.sources.line_numbers import locate

    if isinstance(error, SeveralConfigError):
        for config_error in error.errors:
            yield from error_checks(config_error)
        return
    if not isinstance(error, InputError):
        yield Check(name="kschedx", result=Result.UNDECIDED, rule="undecided", text=str(error))
        return
    rule = "not-admitted" if isinstance(error, NotAdmittedError) else "input"
    for fault in map(locate, error.each):
        name = fault.place.field or fault.place.object or fault.place.source or "kschedx"
        text = f"{fault.message} ({fault.hint})" if fault.hint else fault.message
        yield Check(name=name, result=Result.FAILED, rule=rule, text=text, place=fault.place)

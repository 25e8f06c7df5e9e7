"""Answers as checks, in formats that CI systems read: JUnit XML, and SARIF 2.1.0 for annotations on a line."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from kschedx.errors import Place
from kschedx.wording import DOCUMENTATION, visible
from kschedx.words.reasons import reason_page


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Since(StrEnum):
    """The state of a finding compared with an earlier run, in SARIF's words."""

    NEW = "new"
    UNCHANGED = "unchanged"


class Check(Struct, frozen=True, kw_only=True):
    """The result for one subject, such as a pod or a setting."""

    name: str
    result: Result
    rule: str  # an identifier: `unschedulable`
    text: str = ""  # why it failed; may have several lines
    place: Place = Place()  # its position in a file, if it comes from one
    reasons: tuple[str, ...] = ()  # IDs that `kschedx reason` explains
    since: Since | None = None  # whether the baseline has it; None without a baseline

    @property
    def fingerprint(self) -> str:
        """An identifier that is the same in other runs, even if the text or line changes."""
        return f"{self.rule}:{visible(self.name)}"


RULES = {
    "unschedulable": "No node fits the pod",
    "gated": "The pod is not in kube-scheduler's queue",
    "error": "kube-scheduler fails with an internal error",
    "undecided": "kschedx cannot decide, because something is missing",
    "other-placement": "The change assigns the pod to another node, or to none",
    "input": "The input cannot be used",
    "not-admitted": "The API server would refuse the object",
    "configuration": "The configuration has a common mistake",
}


FINGERPRINT = "kschedx/v1"


def junit(checks: Sequence[Check]) -> str:
    """Return a test suite with a case for each check. A check that cannot be decided is an error, not a failure."""
    known = sum(check.since is Since.UNCHANGED for check in checks)
    new = [check for check in checks if check.since is not Since.UNCHANGED]
    count = {result: sum(check.result is result for check in new) for result in Result}
    root = ElementTree.Element(
        "testsuite",
        name="kschedx",
        tests=str(len(checks)),
        failures=str(count[Result.FAILED]),
        errors=str(count[Result.UNDECIDED]),
    )
    if known:
        root.set("skipped", str(known))
    for check in checks:
        case = ElementTree.SubElement(
            root, "testcase", classname=visible(check.place.source) or "kschedx", name=visible(check.name)
        )
        if check.place.line is not None:
            case.set("line", str(check.place.line))
        if check.result is Result.PASSED:
            continue
        lines = [visible(line) for line in check.text.splitlines()]
        if check.since is Since.UNCHANGED:
            ElementTree.SubElement(case, "skipped", message=f"known: {lines[0] if lines else RULES[check.rule]}")
            continue
        tag = "failure" if check.result is Result.FAILED else "error"
        fault = ElementTree.SubElement(case, tag, type=check.rule, message=lines[0] if lines else RULES[check.rule])
        fault.text = "\n".join(lines)
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"


def sarif(checks: Sequence[Check], version: str) -> str:
    """Return a run of this version of kschedx, with a result for each check that did not pass."""
    amiss = [check for check in checks if check.result is not Result.PASSED]
    rules = sorted({check.rule for check in amiss})
    page = f"{DOCUMENTATION}reference/states.html"
    driver = {
        "name": "kschedx",
        "version": version,
        "informationUri": DOCUMENTATION,
        "rules": [
            {
                "id": rule,
                "shortDescription": {"text": RULES[rule]},
                "fullDescription": {"text": f"{RULES[rule]}."},  # code scanning requires it, and the help
                "help": {"text": f"{page} explains every state, its cause, and its fixes."},
                "helpUri": page,
            }
            for rule in rules
        ],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(check) for check in amiss]}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _result(check: Check) -> dict[str, object]:
    text = "\n".join(visible(line) for line in check.text.splitlines()) or RULES[check.rule]
    result: dict[str, object] = {
        "ruleId": check.rule,
        "level": "error" if check.result is Result.FAILED and check.rule != "configuration" else "warning",
        "message": {"text": text if text.startswith(visible(check.name)) else f"{visible(check.name)}: {text}"},
        "partialFingerprints": {FINGERPRINT: check.fingerprint},
    }
    if check.since is not None:
        result["baselineState"] = check.since.value
    if check.place.source not in ("", "-"):
        location: dict[str, object] = {"artifactLocation": {"uri": quote(check.place.source.removeprefix("./"))}}
        if check.place.line is not None:
            location["region"] = {"startLine": check.place.line}
        result["locations"] = [{"physicalLocation": location}]
    if check.reasons:
        result["properties"] = {"reasons": {name: reason_page(name) for name in check.reasons}}
    return result

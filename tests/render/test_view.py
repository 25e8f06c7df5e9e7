"""What one form of an answer shows, all show: terminal, page, Markdown, picture, MCP, and notebook."""

from __future__ import annotations

import html as entities
import re
import shlex
from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

import kschedx
from kschedx.cli.app import run
from kschedx.cli.mcp.server import Detail, _result
from kschedx.cli.mcp.tools import MOST, bounded, tool
from kschedx.cli.output import Answer, Report, answer_to
from kschedx.cli.worker import captured
from kschedx.render.page.html import html
from kschedx.render.page.markdown import markdown
from kschedx.render.page.model import Items, Page, PageFix
from kschedx.render.page.svg import MOST_FIXES, svg
from kschedx.render.terminal import short_node_names, shown
from tests.command import ROOT
from tests.golden.stories import STORIES, Story

ASKED = [
    *(shlex.join(story.arguments) for story in STORIES),
    *(
        f"{ask.read_text(encoding='utf-8').strip()} -s {ask.parent.relative_to(ROOT)}/cluster.yaml"
        for ask in sorted(ROOT.glob("fixtures/*/ask.txt"))
    ),
    "drain --each -s fixtures/zone-full/cluster",
    "simulate --drain lab-worker-01 -s fixtures/tie/cluster.yaml",
    "survive --each zone -s fixtures/zone-full/cluster",
    "survive --each node -s fixtures/zone-full/cluster",
    "survive node/node-1 --drain -s fixtures/drain-budget/cluster.yaml",
    "scale-down -s fixtures/scale-down-blocked/cluster.yaml",
    "scale-down -s fixtures/autoscaler-grows/cluster.yaml",
    "scale-down -s fixtures/karpenter-grows/cluster.yaml",
    "why --all-pending -s fixtures/two-more-nodes/cluster.yaml",
    "why --all-pending -s fixtures/karpenter-limit-reached/cluster.yaml",
    "simulate -s fixtures/autoscaler-at-maximum/cluster.yaml",
    "diff-profiles default binpack --all -s fixtures/web-rollout/cluster",
    "doctor fixtures/zone-full/cluster",
]
CAUSES = ("because", "effect", "also", "kept by", "blocked", "refused", "pending", "forced", "again", "down", "short")
"""Facts of a row that say why; the others are its numbers."""
_LABELLED = re.compile(
    r" +(?:because|(?P<fix>fix(?: 1)?)|no fix) {2,}(?P<told>.*)| +\d  +(?P<next>.*)|[✗✓?‖] (?P<title>.*)"
)
"""The lines of a screen that hold a cause, a fix, or a verdict."""


def letters(text: str) -> str:
    """Text without blanks and markup, which lines break; with short node names."""
    return re.sub(r"[\s\\*`#|]|&#64;|<br>", "", entities.unescape(shown(text)))


def answered(asked: str) -> Answer:
    answer = answer_to(run, shlex.split(asked))
    assert isinstance(answer, Answer), asked
    assert answer.exit_code in (0, 1, 3), asked
    return answer


def reported(asked: str) -> Report | None:
    """None for an answer that has no page."""
    report = answered(asked).report
    return report if report.page is not None else None


def told_by_mcp(answer: Answer) -> str:
    """The text of a tool's answer and every text of its document."""
    found = captured(lambda: answer)
    assert found.document is not None
    document, left_out = bounded(found.document, MOST)
    whole = replace(found, document={"document": document, "leftOut": left_out})
    result = _result(tool("pod_explain"), whole, Detail.FULL)
    return " ".join(" ".join([*texts(result.structured_content), *texts(result.model_dump()["content"])]).split())


def screen_of(report: Report) -> str:
    return "\n".join(line.plain for line in report.screen(100_000, True))


def strings(page: Page) -> str:
    """Every text that an HTML page holds beside the screen."""
    data = re.search(r'<script type="application/json" id="page">(.*?)</script>', html(page), re.DOTALL)
    assert data is not None
    return " ".join(texts(msgspec.json.decode(data[1])))


def texts(document: object) -> Iterator[str]:
    todo = [document]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)


def required(page: Page) -> Iterator[str]:
    """The headline, causes, fixes, and verdicts that no form may leave out."""
    head = page.head
    yield from (head.headline, *head.because, *(text for _, text in head.facts), head.no_fix)
    fixes: list[PageFix] = [*head.fixes]
    for decider in head.deciders:
        yield from (decider.sentence, *(text for text, _ in decider.rows))
        fixes += decider.fixes
    for section in page.sections:
        if isinstance(section, Items):
            for detail in section.details:
                yield from (*(text for label, text in detail.facts if label in CAUSES), detail.no_fix)
                fixes += detail.fixes
    for fix in fixes:
        yield from (fix.title, *fix.seen.split(" · "))  # whose business it is comes in a line of its own


def verdicts_in(screen: str) -> Iterator[str]:
    are_fixes = False
    for line in screen.splitlines():
        found = _LABELLED.fullmatch(line)
        are_fixes &= bool(line)
        if found is None:
            continue
        if found["title"]:  # what stands in columns is a table, and a verdict follows what it is about
            yield from found["title"].partition("  ")[0].rpartition(": ")[2].split(", ")
        elif found["told"] or are_fixes:
            yield from (found["told"] or found["next"]).split(" · ")
        are_fixes = bool(found["fix"] or (are_fixes and found["next"]))


@pytest.mark.parametrize("asked", ASKED)
def test_causes_fixes_and_verdicts_are_in_every_form(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    answer = answered(asked)
    report = answer.report
    if report.page is None:
        return
    page, screen = replace(report.page(True), screen=""), screen_of(report)
    path = re.search(r"(?:-s|--snapshot|doctor) (\S+)", asked)
    assert path is not None
    with short_node_names(kschedx.load(path[1]).cluster.names):
        forms = {
            "terminal": letters(screen),
            "html": letters(strings(page)),
            "markdown": letters(markdown(replace(report.page(False), screen=""))),
        }
        told = [*required(page), *verdicts_in(screen)]
        missing = [(form, one) for form, text in forms.items() for one in told if letters(one) not in text]
        assert not missing
        assert not [one for one in card(page) if one not in pictured(svg(page))]
        head, mcp = page.head, letters(told_by_mcp(answer))
        deciders = [text for one in head.deciders for text in (one.sentence, *(fix.title for fix in one.fixes))]
        of_head = [head.headline, *head.because, head.no_fix, *deciders, *(fix.title for fix in head.fixes)]
        assert not [one for one in of_head if letters(one) not in mcp]


def card(page: Page) -> list[str]:
    """What no picture may leave out."""
    told = [page.head.headline, *page.head.because, *(fix.title for fix in page.head.fixes[:MOST_FIXES])]
    return [letters(re.sub("<[^>]*>", "", one)) for one in told]


def pictured(picture: str) -> str:
    return letters(re.sub("<[^>]*>", "", letters(picture)))


@pytest.mark.parametrize("story", [one for one in STORIES if one.manifest["kind"] == "Pod"], ids=lambda one: one.name)
def test_a_notebook_has_the_card_of_the_command(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report = reported(shlex.join(story.arguments))
    if report is None or story.extenders is not None:
        return
    assert report.page is not None
    snapshot = kschedx.load(str(story.cluster))
    shown = kschedx.explain(snapshot, story.manifest, config=story.configuration)._repr_html_()
    with short_node_names(snapshot.cluster.names):
        assert not [one for one in card(report.page(True)) if one not in pictured(shown)]


def test_a_fix_of_a_cause_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = "fixtures/label-typo"
    report = reported(f"why --all-pending -s {folder}/cluster.yaml -s {folder}/pod.yaml")
    assert report is not None
    assert report.page is not None
    [causes] = [one for one in report.page(False).sections if isinstance(one, Items)]
    copied = [fix.copy for detail in causes.details for fix in detail.fixes]
    assert copied
    assert all("kind: Pod" in one for one in copied)


def test_a_sample_of_pending_pods_has_one_of_each_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report = reported("why --all-pending -s fixtures/autoscaler-grows/cluster.yaml")
    assert report is not None
    assert report.page is not None
    assert report.sample is not None
    [causes] = [one for one in report.page(False).sections if isinstance(one, Items)]
    document, count = report.sample()
    items, every = document["items"], report.document()["items"]
    assert isinstance(items, list)
    assert isinstance(every, list)
    assert len(items) == len(causes.rows) < count == len(every)

"""All forms of an answer have the same content: terminal, page, Markdown, picture, MCP, and notebook."""

from __future__ import annotations

import html as entities
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
import yaml
from msgspec.structs import replace

import kschedx
from kschedx.cli.app import run
from kschedx.cli.mcp.server import _result
from kschedx.cli.mcp.tools import Detail, apply_detail, tool
from kschedx.cli.output import Answer, Report, answer_to
from kschedx.cli.worker import capture
from kschedx.explain.setup import Setup
from kschedx.inquiry.node import node_rows
from kschedx.render.nodes import nodes_lines, nodes_page
from kschedx.render.page.html import html
from kschedx.render.page.markdown import markdown
from kschedx.render.page.model import Items, Page, PageFix, page_of
from kschedx.render.page.svg import MOST_FIXES, svg
from kschedx.render.terminal import short_node_names, shown
from kschedx.render.view import ItemList, Tone, View, ViewItem
from kschedx.results import Shown
from kschedx.wording import Fact
from tests.command import ROOT
from tests.command import kschedx as kschedx_command
from tests.golden.stories import OF_PODS, STORIES, Story, explained

QUESTIONS = [
    *(shlex.join(story.arguments) for story in STORIES),
    *(
        f"{ask.read_text(encoding='utf-8').strip()} -s {ask.parent.relative_to(ROOT)}/cluster.yaml"
        for ask in sorted(ROOT.glob("fixtures/*/ask.txt"))
    ),
    "drain --each -s fixtures/zone-full/cluster",
    "simulate --drain lab-worker-01 -s fixtures/tie/cluster.yaml",
    "drain lab-worker-01 lab-worker-02 -s fixtures/tie/cluster.yaml",
    "deschedule --policy fixtures/descheduler-fight/policy.yaml -s fixtures/zone-full/cluster",
    "fit fixtures/zone-full/pod.yaml --replicas 3 -s fixtures/zone-full/cluster",
    "fit fixtures/tie/pod.yaml -s fixtures/tie/cluster.yaml",
    "simulate --apply fixtures/zone-full/pod.yaml -s fixtures/zone-full/cluster",
    "simulate --drain node-1 -s fixtures/drain-budget/cluster.yaml",
    "simulate --autoscale -s fixtures/autoscaler-grows/cluster.yaml",
    "simulate --scale deploy/checkout=12 -n shop -s fixtures/replicas-preempt/cluster.yaml",
    "simulate -s fixtures/kueue-queues/cluster.yaml",
    "drain node-1 -s fixtures/drain-zonal-volume/cluster.yaml",
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
    "kueue -s fixtures/kueue-queue-inactive/cluster.yaml",
    "why node/lab-worker-01 -s fixtures/tie/cluster.yaml",
    "why tests/manifests/workload/daemon-set-some-full.yaml -s tests/manifests/cluster.yaml",
    "why tests/manifests/workload/daemon-set-some-full.yaml --node worker-b -s tests/manifests/cluster.yaml",
]
CAUSES = ("because", "effect", "also", "kept by", "blocked", "refused", "pending", "forced", "again", "down", "short")
"""Facts of a row that give its reason; the others are its numbers."""
_LABELLED = re.compile(
    r" +(?:because|(?P<fix>fix(?: 1)?)|no fix) {2,}(?P<text>.*)| +\d  +(?P<next>.*)|[✗✓?‖] (?P<title>.*)"
)
"""Labels of the lines with a cause, a fix, or a verdict."""


def letters(text: str) -> str:
    """Return a text without blanks and markup, which line breaks change, and with short node names."""
    return re.sub(r"[\s\\*`#|]|&#64;|<br>", "", entities.unescape(shown(text)))


@cache
def answered(question: str) -> Answer:
    answer = answer_to(run, shlex.split(question))
    assert isinstance(answer, Answer), question
    assert answer.exit_code in (0, 1, 3), question
    return answer


def reported(question: str) -> Report | None:
    """Return the page of an answer, or None if it has none."""
    report = answered(question).report
    return report if report.page is not None else None


def told_by_mcp(answer: Answer) -> str:
    """Return the text of a tool's answer and every text of its document."""
    captured_result = capture(lambda: apply_detail(answer, Detail.FULL))
    result = _result(tool("pod_explain"), captured_result, Detail.FULL)
    return " ".join(" ".join([*texts(result.structured_content), *texts(result.model_dump()["content"])]).split())


def screen_of(report: Report) -> str:
    return "\n".join(line.plain for line in report.screen(100_000, True))


def strings(page: Page) -> str:
    """Return every text of an HTML page beside the screen."""
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
    """Return the headline, causes, fixes, and verdicts, which every form must contain."""
    head = page.head
    yield from (head.headline, *head.because, *(text for _, text in head.facts), head.no_fix)
    fixes: list[PageFix] = [*head.fixes]
    for decider in head.deciders:
        yield from (decider.sentence, *(text for text, _ in decider.rows))
        fixes += decider.fixes
    for section in page.sections:
        if isinstance(section, Items):
            for _, _, _, detail in section.shown():
                yield from (*(text for label, text in detail.facts if label in CAUSES), detail.no_fix)
                fixes += detail.fixes
    for fix in fixes:
        yield from (fix.title, *fix.seen.split(" · "))  # whose business it is comes in a line of its own


def verdicts_in(screen: str) -> Iterator[str]:
    are_fixes = False
    for line in screen.splitlines():
        result = _LABELLED.fullmatch(line)
        are_fixes &= bool(line)
        if result is None:
            continue
        if result["title"] and not result["title"].endswith(
            (" rejects it", " reject it")
        ):  # what stands in columns is a table, and a verdict follows what it is about
            yield from result["title"].partition("  ")[0].rpartition(": ")[2].split(", ")
        elif result["text"] or are_fixes:
            yield from (result["text"] or result["next"]).split(" · ")
        are_fixes = bool(result["fix"] or (are_fixes and result["next"]))


@pytest.mark.sample(10)
@pytest.mark.parametrize("question", QUESTIONS)
def test_causes_fixes_and_verdicts_are_in_every_form(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    answer = answered(question)
    report = answer.report
    if report.page is None:
        return
    page, screen = replace(report.page(True), screen=""), screen_of(report)
    path = re.search(r"(?:-s|--snapshot|doctor) (\S+)", question)
    assert path is not None
    with short_node_names(kschedx.load(path[1]).cluster.names):
        forms = {
            "terminal": letters(screen),
            "html": letters(strings(page)),
            "markdown": letters(markdown(replace(report.page(False), screen=""))),
        }
        result = [*required(page), *verdicts_in(screen)]
        missing = [(form, item) for form, text in forms.items() for item in result if letters(item) not in text]
        assert not missing
        assert not [item for item in card(page) if item not in pictured(svg(page))]
        mcp = letters(told_by_mcp(answer))
        assert not [item for result in required(page) for item in result.split(" · ") if letters(item) not in mcp]


def card(page: Page) -> list[str]:
    """Return the texts that every picture must contain."""
    text = [page.head.headline, *page.head.because, *(fix.title for fix in page.head.fixes[:MOST_FIXES])]
    return [letters(re.sub("<[^>]*>", "", item)) for item in text]


def pictured(picture: str) -> str:
    return letters(re.sub("<[^>]*>", "", letters(picture)))


@pytest.mark.sample(9)
@pytest.mark.parametrize("story", OF_PODS, ids=lambda story: story.name)
def test_a_notebook_has_the_card_of_the_command(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report = reported(shlex.join(story.arguments))
    if report is None or story.extenders is not None:
        return
    assert report.page is not None
    explanation = explained(story)
    shown = explanation._repr_html_()
    with short_node_names(explanation.cycle.all_nodes.names):
        assert not [item for item in card(report.page(True)) if item not in pictured(shown)]


TIE, FULL = "fixtures/tie/cluster.yaml", "fixtures/zone-full/cluster"
DAEMON_SET, FEW = "tests/manifests/workload/daemon-set-some-full.yaml", "tests/manifests/cluster.yaml"
QUEUES = "fixtures/kueue-queues/cluster.yaml"
POLICY = "fixtures/descheduler-fight/policy.yaml"
WEB = "fixtures/two-more-nodes/cluster.yaml"


def parsed(path: str) -> dict[str, object]:
    document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


IN_NOTEBOOKS: dict[str, Callable[[], Shown]] = {
    f"simulate --drain lab-worker-01 -s {TIE}": lambda: kschedx.simulate(
        kschedx.load(TIE), changes=[{"drain": "lab-worker-01"}]
    ),
    f"drain lab-worker-01 lab-worker-02 -s {TIE}": lambda: kschedx.drain(
        kschedx.load(TIE), "lab-worker-01", "lab-worker-02"
    ),
    f"drain --each -s {FULL}": lambda: kschedx.drain(kschedx.load(FULL)),
    f"fit deploy/web --replicas 12 -n shop -s {WEB}": lambda: kschedx.fit(
        kschedx.load(WEB), "shop/deploy/web", replicas=12
    ),
    f"survive --each zone -s {FULL}": lambda: kschedx.survive(kschedx.load(FULL), each="zone"),
    f"doctor {FULL}": lambda: kschedx.doctor(FULL),
    f"why {DAEMON_SET} -s {FEW}": lambda: kschedx.explain_daemon_set(kschedx.load(FEW), parsed(DAEMON_SET)),
    f"why {DAEMON_SET} --node worker-b -s {FEW}": lambda: kschedx.explain_daemon_set(
        kschedx.load(FEW), parsed(DAEMON_SET), node="worker-b"
    ),
    f"deschedule --policy {POLICY} -s {FULL}": lambda: kschedx.deschedule(
        kschedx.load(FULL, whole=True), parsed(POLICY), rounds=1
    ),
    f"kueue -s {QUEUES}": lambda: kschedx.kueue(kschedx.load(QUEUES)),
    f"diff-profiles default binpack --all -s {WEB}": lambda: kschedx.diff_profiles(
        kschedx.load(WEB), after=parsed("profiles/binpack.yaml")
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("question", IN_NOTEBOOKS)
def test_a_notebook_shows_what_the_command_shows(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report, result = reported(question), IN_NOTEBOOKS[question]()
    assert report is not None
    assert report.page is not None
    with short_node_names(kschedx.load(question.split()[-1]).cluster.names):
        text = (  # the library names the namespace, and has no name for a profile
            item.removeprefix("deploy/web").replace("→binpack", "→after") for item in card(report.page(True))
        )
        assert not [item for item in text if item not in pictured(result._repr_html_())]


def test_a_page_cites_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = ["fixtures/tie/cluster.yaml", "fixtures/tie/pod.yaml"]
    digest = sha256(b"".join((ROOT / file).read_bytes() for file in files)).hexdigest()[:16]
    for form in ("html", "markdown"):
        result = kschedx_command("why", files[1], "-s", files[0], "-o", form).out
        assert digest in result
        assert "2026-" in result.rpartition("taken")[2]


def test_a_question_about_a_node_is_answered_in_every_form() -> None:
    tie = ROOT / "fixtures/tie"
    answer = ("why", tie / "pod.yaml", "-s", tie / "cluster.yaml", "--node", "lab-worker-04")
    headline = kschedx_command(*answer).out.partition("\n")[0]
    assert headline == "✓ lab-worker-04: sandbox/jupyter-mhuber fits, total 448, 10 behind lab-worker-01"
    for form in ("markdown", "html", "svg"):
        assert headline in kschedx_command(*answer, "-o", form).out.replace("✓</span>", "✓")
    assert max(map(len, kschedx_command(*answer, columns=80).out.splitlines())) <= 80
    wrong = kschedx_command(*answer[:-1], "lab-worker-4", "-o", "markdown")
    assert (wrong.code, 'no node "lab-worker-4"' in wrong.err) == (2, True)


def test_identical_nodes_are_one_row_in_every_form() -> None:
    nodes = [
        {"metadata": {"name": f"node-{number}"}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}
        | {"apiVersion": "v1", "kind": "Node"}
        for number, cpu in enumerate(["4"] * 30 + ["8"] * 3)
    ]
    snapshot = kschedx.Snapshot.from_objects(nodes)
    rows = node_rows(Setup.of_cluster(snapshot).scheduler_on(snapshot).nodes)
    page = nodes_page(rows, snapshot)
    [items] = [section for section in page.sections if isinstance(section, Items)]
    assert len(items.rows) == 33
    assert [(group.size, len(group.rows)) for group in items.groups] == [(30, 30), (3, 3)]
    assert sorted(row for group in items.groups for row in group.rows) == list(range(33))
    for text in (markdown(page), svg(page)):
        assert "node-0 and 29 more" in text.replace("\\", "")
        assert "node-1 " not in text
    screen = "\n".join(line.plain for line in nodes_lines(rows, 80))
    assert re.search(r"^  node-0 +30  ", screen, re.MULTILINE)
    assert re.search(r"^  node-30 +3  ", screen, re.MULTILINE)
    assert len(nodes_lines(rows, 80, wide=True)) > 33


def test_nodes_that_differ_in_their_last_taint_are_two_rows() -> None:
    taints = ("gpu=true:NoSchedule", "team=a:NoSchedule"), ("gpu=true:NoSchedule", "team=b:NoSchedule")
    nodes = [
        {"metadata": {"name": f"node-{number}"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}
        | {"apiVersion": "v1", "kind": "Node"}
        | {
            "spec": {
                "taints": [
                    dict(zip(("key", "value", "effect"), re.split("[=:]", taint), strict=True))
                    for taint in taints[number % 2]
                ]
            }
        }
        for number in range(40)
    ]
    snapshot = kschedx.Snapshot.from_objects(nodes)
    rows = node_rows(Setup.of_cluster(snapshot).scheduler_on(snapshot).nodes)
    screen = " ".join(line.plain for line in nodes_lines(rows, 80))
    assert all(", ".join(each) in re.sub(r"\s+", " ", screen) for each in taints)


def test_numbers_of_identical_rows_are_a_range() -> None:
    values = [(2, "8 of 10"), (5, "8 of 10"), (3, "9 of 10")]
    items = tuple(
        ViewItem(title=f"n{number}", values=value, own=(Fact.of("has", f"{number}"),), members=(f"pod-{number}",))
        for number, value in enumerate(values)
    )
    columns = (("pods", True), ("used", False))
    view = View(
        command="kschedx",
        headline="all",
        tone=Tone.GOOD,
        lists=(ItemList(columns=columns, items=tuple(items), identical_rows=True),),
    )
    [section] = page_of(view, ()).sections
    assert isinstance(section, Items)
    shown = [(title, values, detail.members, detail.facts) for _, title, values, detail in section.shown()]
    assert shown == [
        ("n0 and 1 more", ("2 to 5", "8 of 10"), ("n0", "n1"), ()),
        ("n2", (3, "9 of 10"), ("pod-2",), (("has", "2"),)),
    ]


def test_a_fix_of_a_cause_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = "fixtures/label-typo"
    report = reported(f"why --all-pending -s {folder}/cluster.yaml -s {folder}/pod.yaml")
    assert report is not None
    assert report.page is not None
    [causes] = [section for section in report.page(False).sections if isinstance(section, Items)]
    copied = [fix.copy for detail in causes.details for fix in detail.fixes]
    assert copied
    assert all("kind: Pod" in section for section in copied)
    commands = [section for detail in causes.details for section in detail.commands]
    assert all(section.startswith("kschedx why ") for section in commands)
    assert len(commands) == len(causes.details)


def test_a_sample_of_pending_pods_has_one_of_each_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report = reported("why --all-pending -s fixtures/autoscaler-grows/cluster.yaml")
    assert report is not None
    assert report.page is not None
    assert report.sample is not None
    [causes] = [section for section in report.page(False).sections if isinstance(section, Items)]
    document, count = report.sample()
    items, every = document["items"], report.document()["items"]
    assert isinstance(items, list)
    assert isinstance(every, list)
    assert len(items) == len(causes.rows) < count == len(every)

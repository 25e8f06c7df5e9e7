"""Pages as HTML, Markdown, and SVG: their content, without markup from the cluster."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import metadata
from importlib.resources import files
from xml.etree import ElementTree

import pytest

import kschedx
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.render.page import explanation
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.html import html
from kschedx.render.page.markdown import markdown
from kschedx.render.page.model import Items, ScoreSection, Table, VerdictSection, page_of
from kschedx.render.page.simulation import simulation_page
from kschedx.render.page.svg import svg
from kschedx.render.view import FixView, ItemList, TableView, Tone, View, ViewItem
from kschedx.wording import Fact
from tests.golden.stories import OF_PODS, Story, explained

EVIL = "</script><img src=x onerror=alert(1)>`` | @team \u202e\"'"
SVG = "{http://www.w3.org/2000/svg}"

each_story = pytest.mark.parametrize("story", OF_PODS, ids=lambda story: story.name)


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, object]:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(cpu: str = "1", **selector: str) -> dict[str, object]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [container], "nodeSelector": selector},
    }


class Elements(HTMLParser):
    """The elements of a page, and the text in some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""


def test_a_page_has_one_script_that_its_policy_names() -> None:
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("a", disk=EVIL)]), pod(disk="ssd"))
    text = html(explanation_page(explanation, every_node=True))
    elements = Elements(text)
    assert elements.tags.count("script") == 2
    assert "img" not in elements.tags
    assert "default-src 'none'" in elements.policy
    assert "unsafe" not in elements.policy
    assert "http" not in elements.policy
    assert "\u202e" not in text


@pytest.mark.sample(6)
@each_story
def test_a_page_stays_small_beside_its_data(story: Story) -> None:
    page = explanation_page(explained(story), every_node=True)
    text = html(page)
    data = re.search(r'id="page">(.*?)</script>', text, re.DOTALL)
    assert data
    assert len(text) - len(data[1]) - len(page.screen) < 300_000


def test_the_verdict_map_has_every_node_once() -> None:
    nodes = [node(f"n{number}", str(number % 4 + 1)) for number in range(12)]
    page = explanation_page(kschedx.explain(kschedx.Snapshot.from_objects(nodes), pod("2500m")), every_node=True)
    verdicts = next(section for section in page.sections if isinstance(section, VerdictSection))
    assert sorted(row for group in verdicts.groups for row in group) == list(range(12))
    for row, name in enumerate(verdicts.nodes):
        cells = [verdicts.codes[cell] for cell in verdicts.patterns[verdicts.pattern_of[row]]]
        fits = int(name[1:]) % 4 + 1 >= 3
        assert (verdicts.verdict_of[row] < 0) == fits
        assert cells.count("Success") == len(verdicts.plugins) - (not fits)
    scores = next(section for section in page.sections if isinstance(section, ScoreSection))
    assert len(scores.nodes) == 6
    for row, total in enumerate(scores.totals):
        assert total == sum(s * w for s, w in zip(scores.normalized[row], scores.weights, strict=True))


def test_a_large_page_has_details_of_the_first_node_of_each_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(explanation, "MOST_OF_STORIES", 900)
    nodes = [node(f"n{number}", f"{number}m") for number in range(20)]
    page = explanation_page(kschedx.explain(kschedx.Snapshot.from_objects(nodes), pod()), every_node=True)
    verdicts = next(section for section in page.sections if isinstance(section, VerdictSection))
    facts = [verdicts.stories[story][0].facts for story in verdicts.story_of]
    assert all(facts)
    for group in verdicts.groups:
        assert facts[group[0]] != explanation.LEFT_OUT
    assert 10 < facts.count(explanation.LEFT_OUT) < 20


def _luminance(color: str) -> float:
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_bars_have_a_contrast_of_three_on_light_and_dark_pages() -> None:
    folder = files("kschedx.render.page")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    papers = re.findall(r"--(?:paper|band): (#[0-9a-f]{6})", style)
    bars = re.findall(r"#[0-9a-f]{6}", script) + re.findall(r"(?:stroke|background): (#[0-9a-f]{6})", style)
    assert len(papers) == 4
    assert len(bars) > 12
    for bar in bars:
        for paper in papers:
            dark, light = sorted(map(_luminance, (bar, paper)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (bar, paper)


def test_markdown_has_no_markup_from_the_cluster() -> None:
    tainted = {**node("a"), "spec": {"taints": [{"key": "team", "value": EVIL, "effect": "NoSchedule"}]}}
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([tainted]), pod())
    outside = markdown(explanation_page(explanation, every_node=True)).partition("<details>")[0]
    assert not re.search(r"(?<!\\)<(?!br>)", outside)
    assert "@" not in outside
    assert r"\<img" in outside


def test_long_markdown_is_cut_with_a_count() -> None:
    facts = (Fact.of("because", "x" * 9_000),)
    items = tuple(ViewItem(title=f"row {number}", facts=facts) for number in range(30))
    view = View(
        command="kschedx why",
        headline="much",
        tone=Tone.BAD,
        lists=(ItemList(title="Rows", items=items),),
    )
    text = markdown(page_of(view, ()))
    assert len(text) < 65_536
    assert text.endswith("more lines left out.\n")


@pytest.mark.sample(3)
@each_story
def test_a_picture_is_well_formed_and_fits_its_frame(story: Story) -> None:
    page = explanation_page(explained(story), every_node=True)
    root = ElementTree.fromstring(svg(page))
    assert root.tag == f"{SVG}svg"
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in root.iter(f"{SVG}rect"):
        if "x" in box.attrib:
            assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
            assert float(box.attrib["y"]) + float(box.attrib["height"]) <= height


def test_a_picture_of_many_rows_has_their_fixes_and_whole_texts() -> None:
    items = tuple(
        ViewItem(title=f"{'long ' * 20}{number}", fixes=(FixView(title=f"fix of {number}"),)) for number in range(20)
    )
    view = View(
        command="kschedx why",
        headline="much",
        tone=Tone.BAD,
        lists=(ItemList(title="Rows", items=items),),
    )
    lines = [item.text or "" for item in ElementTree.fromstring(svg(page_of(view, ()))).iter(f"{SVG}text")]
    assert lines[1:5] == [
        "  fix 1     fix of 0",
        "  fix 2     fix of 1",
        "  fix 3     fix of 2",
        f"  {'':10}17 more fixes",
    ]
    assert [line.split()[-1] for line in lines[6:-1:2]] == [str(number) for number in range(12)]
    assert lines[-1] == "8 more rows"


def test_a_simulation_as_markdown() -> None:
    simulation = kschedx.simulate(
        kschedx.Snapshot.from_objects([node("a"), pod("1"), pod("9") | {"metadata": {"name": "big"}}])
    )
    result = markdown(simulation_page(SimulationAnswer(simulation=simulation)))
    assert result.startswith("## ✗ 1 of 2 pods are scheduled, 1 stays pending\n")
    assert "### Nodes before and after\n\n| node | cpu | memory | pods |\n" in result
    assert re.search(r"^\| a \| 0\S* of \S+ → ", result, re.MULTILINE)
    assert "0/1 nodes are available: 1 Insufficient cpu." in result


@pytest.mark.sample(3)
@pytest.mark.parametrize(("rows", "members"), [(5_000, 30), (150_000, 1), (3, 50_000)])
def test_a_page_of_150000_pods_stays_below_3_mb(rows: int, members: int) -> None:
    names = tuple(f"team-{number}/a-deployment-00000000f0-{number:05} → ip-10-0-0-120" for number in range(members))
    items = tuple(
        ViewItem(title=f"ip-10-0-{row}.eu-west-1.compute.internal", values=(members,), members=names)
        for row in range(rows)
    )
    rows_of_table = tuple((f"{name} " * 4,) for name in names * rows)
    table = TableView(title="Pods", columns=(("pod", False),), rows=rows_of_table)
    view = View(
        command="kschedx",
        headline="all",
        tone=Tone.GOOD,
        lists=(ItemList(columns=(("pods", True),), items=items),),
        tables=(table,),
    )
    page = page_of(view, [])
    assert len(html(page)) < 3_000_000
    shown, bounded = page.sections
    assert isinstance(shown, Items)
    assert isinstance(bounded, Table)
    assert (len(shown.rows) + shown.left_out, len(bounded.rows) + bounded.left_out) == (rows, rows * members)
    assert {len(detail.members) + detail.left_out for detail in shown.details} == {members}


def test_a_page_needs_no_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    page = page_of(View(command="why", subject="", headline="fits", tone=Tone.GOOD), [])
    assert ("kschedx", kschedx.__version__) in page.footer

"""The HTML file of an answer, in a real browser. Run by `pytest -m browser`; needs Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import kschedx
from kschedx.inquiry.explanation import Explanation
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.html import html
from kschedx.render.page.reports import simulation_page
from tests.browser.chromium import Page, chromium
from tests.command import ROOT

pytestmark = pytest.mark.browser

NODES = 5_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    browser.complaints.clear()
    browser.requests.clear()
    return browser


def written(folder: Path, explanation: Explanation) -> Path:
    path = folder / "answer.html"
    path.write_text(html(explanation_page(explanation)), encoding="utf-8")
    return path


def story(name: str) -> Explanation:
    folder = ROOT / "fixtures" / name
    cluster = next(path for path in (folder / "cluster", folder / "cluster.yaml") if path.exists())
    return kschedx.explain(kschedx.load(str(cluster)), yaml.safe_load((folder / "pod.yaml").read_text()))


def node(name: str, cpu: str, labels: dict[str, str] | None = None) -> dict[str, object]:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str, **spec: object) -> dict[str, object]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


@pytest.mark.parametrize("name", ["zone-full", "tie", "preemption-pdb", "gated", "volume-statefulset-no-claim"])
@pytest.mark.parametrize("width", [1400, 420])
def test_it_opens_without_a_complaint_and_asks_nobody(page: Page, tmp_path: Path, name: str, width: int) -> None:
    page.resize(width, 900)
    path = written(tmp_path, story(name))
    page.open(path)
    assert page.complaints == []
    assert page.requests == [path.as_uri()]
    assert page.text("h1")[0]
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"


def test_without_scripts_the_first_screen_can_be_read(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, story("zone-full")), scripts=False)
    page.send("Emulation.setScriptExecutionDisabled", value=False)
    assert "insufficient cpu, short by 600m" in page.text("details pre")[0]


def test_a_row_is_a_group_and_a_click_tells_its_story(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    page.open(written(tmp_path, story("zone-full")))
    rows = page.text(".row.body")
    assert len(rows) == 2
    page.click(".row.body:nth-child(2)")
    assert "nodeSelector does not match" in page.text(".story")[0]
    page.click(".tools button[aria-pressed]")
    assert len(page.text(".row.body")) == 6


def test_rows_are_sorted_and_filtered(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    snapshot = kschedx.Snapshot.from_objects([node("small", "1"), node("large", "64"), node("middle", "8")])
    page.open(written(tmp_path, kschedx.explain(snapshot, pod("web", "500m"))))
    scores = "[aria-label=scores]"
    page.click(f"{scores} .row.head > :nth-child(1) button")
    assert [row.split("\n")[0] for row in page.text(f"{scores} .row.body")] == ["large", "middle", "small"]
    page.click(f"{scores} .row.head > :nth-child(1) button")
    assert [row.split("\n")[0] for row in page.text(f"{scores} .row.body")] == ["small", "middle", "large"]
    page.run(
        "const box = document.querySelector('[aria-label=\"filter scores\"]');"
        "box.value = 'DDL'; box.dispatchEvent(new Event('input'))"
    )
    assert [row.split("\n")[0] for row in page.text(f"{scores} .row.body")] == ["middle"]


def test_scores_are_bars_raw_normalized_and_weighted(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    snapshot = kschedx.Snapshot.from_objects([node("small", "4"), node("large", "64")])
    page.open(written(tmp_path, kschedx.explain(snapshot, pod("web", "1"))))
    names = page.text("[aria-label=scores] .row.head button")
    at = names.index("NodeResourcesFit × 1") - 3  # the node, its total and the contributions come before
    widths = (
        "Array.from(document.querySelectorAll('[aria-label=scores] .row.body'), (row) => row.querySelectorAll('.score')"
        f"[{at}]).map((one) => one.querySelector('.bar span').style.width + ' ' + "
        "one.querySelector('.number').textContent)"
    )
    for unit in ("raw", "normalized", "weighted"):
        page.run(f"Array.from(document.querySelectorAll('button')).find((one) => one.textContent === '{unit}').click()")
        bars = page.run(widths)
        assert isinstance(bars, list)
        assert len(bars) == 2, unit
        for bar in bars:
            width, value = bar.split("% ")
            assert 0 < float(width) <= 100, unit
            assert unit != "normalized" or float(width) == float(value)


def test_what_the_cluster_says_is_text(page: Page, tmp_path: Path) -> None:
    evil = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
    snapshot = kschedx.Snapshot.from_objects([node("n", "4", {"disk": evil})])
    page.open(written(tmp_path, kschedx.explain(snapshot, pod("web", "1", nodeSelector={"disk": "ssd"}))))
    assert page.run("document.title") == "default/web · kschedx why"
    assert page.complaints == []
    assert evil in page.text(".story")[0]
    assert page.run("document.querySelectorAll('img').length") == 0


def test_a_large_cluster_has_only_the_rows_in_sight(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    nodes = [node(f"node-{number:05}", str(1 + number % 7)) for number in range(NODES)]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(nodes), pod("web", "4500m"))
    page.open(written(tmp_path, explanation))
    assert page.text("[aria-label=scores] ~ *, .tools .count")[-1] == "2,142 nodes"
    assert 0 < len(page.text("[aria-label=scores] .row.body")) < 100
    page.run("document.querySelector('[aria-label=scores]').scrollTop = 1e9")
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.text("[aria-label=scores] .row.body")[-1]
    assert page.run("document.querySelectorAll('*').length < 3000")


def test_the_keyboard_walks_through_the_nodes(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, story("zone-full")))
    page.run(
        "document.querySelector('[aria-label=verdicts]').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))"
    )
    assert page.text("[aria-selected=true]") != []
    assert "NodeAffinity" in page.text(".story")[0]


def test_nodes_before_and_after_a_simulation(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    nodes = [node(f"n{number}", "4") for number in range(3)]
    simulation = kschedx.simulate(kschedx.Snapshot.from_objects([*nodes, pod("web", "2")]))
    path = tmp_path / "simulation.html"
    path.write_text(html(simulation_page(simulation)), encoding="utf-8")
    page.open(path)
    assert page.complaints == []
    (changed,) = page.text("[aria-label=nodes] .row.body")
    assert "0% → 50%" in changed
    page.run("document.querySelector('[aria-label=nodes]').parentElement.querySelector('button[aria-pressed]').click()")
    assert len(page.text("[aria-label=nodes] .row.body")) == 3
    assert "default/web → n0, one of 3 tied nodes" in page.text("main")[-1]


def test_a_long_path_in_the_footer_wraps(page: Page, tmp_path: Path) -> None:
    page.resize(420, 900)
    folder = tmp_path / ("m" * 80)
    folder.mkdir()
    cluster = folder / "cluster.yaml"
    cluster.write_text((ROOT / "fixtures/gated/cluster.yaml").read_text())
    manifest = yaml.safe_load((ROOT / "fixtures/gated/pod.yaml").read_text())
    page.open(written(tmp_path, kschedx.explain(kschedx.load(str(cluster)), manifest)))
    assert page.run("document.documentElement.scrollWidth <= innerWidth")

"""The HTML file of an answer in a real browser. Run by `pytest -m browser`; needs Chromium."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import kschedx
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.html import html
from kschedx.render.page.simulation import simulation_page
from kschedx.render.view import Tone
from tests.browser.chromium import Page
from tests.command import ROOT
from tests.command import kschedx as kschedx_command
from tests.conftest import Golden
from tests.test_docs import build_module

pytestmark = pytest.mark.browser

NODES = 5_000


@pytest.fixture
def page(browser: Page) -> Page:
    browser.complaints.clear()
    browser.requests.clear()
    return browser


def written(folder: Path, explanation: Explanation) -> Path:
    path = folder / "answer.html"
    path.write_text(html(explanation_page(explanation, every_node=True)), encoding="utf-8")
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
def test_a_page_opens_without_errors_and_requests(page: Page, tmp_path: Path, name: str, width: int) -> None:
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


def test_a_row_is_a_group_and_a_click_shows_its_details(page: Page, tmp_path: Path) -> None:
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


def test_texts_of_the_cluster_are_not_markup(page: Page, tmp_path: Path) -> None:
    evil = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
    snapshot = kschedx.Snapshot.from_objects([node("n", "4", {"disk": evil})])
    page.open(written(tmp_path, kschedx.explain(snapshot, pod("web", "1", nodeSelector={"disk": "ssd"}))))
    assert page.run("document.title") == "default/web · kschedx why"
    assert page.complaints == []
    assert evil in page.text(".story")[0]
    assert page.run("document.querySelectorAll('img').length") == 0


def test_a_large_cluster_has_only_the_visible_rows(page: Page, tmp_path: Path) -> None:
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


def press(page: Page, key: str) -> None:
    page.send("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": key} if len(key) == 1 else {}))
    page.send("Input.dispatchKeyEvent", type="keyUp", key=key)
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_keys_work_on_the_whole_page(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.resize(1400, 900)
    page.open(answered(tmp_path, "nodes", "-s", str(cluster)))
    arrow = "getComputedStyle(document.querySelector('[aria-sort=%s] button'), '::after').content.trim()"
    press(page, "2")
    assert page.run(arrow % "descending") == '" ↓"'
    cells = page.text(".row.body > :nth-child(2)")
    amounts = [float(cell.split("/")[0]) for cell in cells]
    assert amounts == sorted(amounts, reverse=True)
    press(page, "2")
    assert page.run(arrow % "ascending") == '" ↑"'
    press(page, "j")
    assert page.text("[aria-selected=true]")
    press(page, "/")
    for key in "gpu-0":
        press(page, key)
    assert page.run("location.hash.includes('nodes.q=gpu-0')")
    press(page, "Escape")
    assert page.run("document.activeElement.getAttribute('role')") == "grid"
    press(page, "?")
    assert page.text("dialog[open] dt")


def test_values_of_a_column_are_chips(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.open(answered(tmp_path, "nodes", "-s", str(cluster)))
    page.click("[aria-label=zone] button[data-name=eu-west-1b]")
    page.click("[aria-label=pool] button[data-name=gpu]")
    page.run("new Promise((done) => requestAnimationFrame(done))")
    assert set(page.text(".row.body > [title^=eu-west]")) == {"eu-west-1b"}
    assert all(name.strip("✓ \n").startswith("gpu-") for name in page.text(".row.body > :first-child"))


def test_nodes_before_and_after_a_simulation(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    nodes = [node(f"n{number}", "4") for number in range(3)]
    simulation = kschedx.simulate(kschedx.Snapshot.from_objects([*nodes, pod("web", "2")]))
    path = tmp_path / "simulation.html"
    path.write_text(html(simulation_page(SimulationAnswer(simulation=simulation))), encoding="utf-8")
    page.open(path)
    assert page.complaints == []
    (changed,) = page.text("[aria-label=usage] .row.body")
    assert "0% → 50%" in changed
    page.run("document.querySelector('[aria-label=usage]').parentElement.querySelector('button[aria-pressed]').click()")
    assert len(page.text("[aria-label=usage] .row.body")) == 3
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


POOLS = {"general": "8", "batch": "16", "gpu": "48"}
SIZES = ("250m", "500m", "1", "2", "4")


def generated(count: int, pods: int = 4) -> list[dict[str, object]]:
    """Return nodes of three pools in three zones with `pods` pods each, and a pending pod per ten nodes."""
    names = list(POOLS)
    objects: list[dict[str, object]] = []
    for at in range(count):
        pool = names[at % 7 % 3]
        labels = {"karpenter.sh/nodepool": pool, "topology.kubernetes.io/zone": f"eu-west-1{'abc'[at % 3]}"}
        objects.append(node(f"{pool}-{at:04}", POOLS[pool], labels))
        for number in range(pods):
            size = SIZES[(at * 4 + number) * 7 % 5] if pool != "general" else SIZES[(at + number) % 3]
            objects.append(owned(pod(f"app-{at:04}-{number}", size, nodeName=f"{pool}-{at:04}")))
        if at % 10 == 0:
            objects.append(owned(pod(f"waits-{at:04}", "64" if at % 20 else "6")))
    return objects


def owned(built: dict[str, object]) -> dict[str, object]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "1", "controller": True}
    metadata = built["metadata"]
    assert isinstance(metadata, dict)
    return {**built, "metadata": {**metadata, "uid": metadata["name"], "ownerReferences": [owner]}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": generated(500)}))
    return path


def answered(folder: Path, *question: str) -> Path:
    path = folder / "answer.html"
    path.write_text(kschedx_command(*question, "-o", "html").out, encoding="utf-8")
    return path


def test_pods_flow_between_pools(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.resize(1280, 900)
    page.open(answered(tmp_path, "diff-profiles", "default", "binpack", "--all", "-s", str(cluster)))
    assert page.complaints == []
    assert page.run("document.querySelectorAll('.flow .band').length > 2")
    rows = [row.split("\t") for row in page.text(".flow ~ div tbody tr")]
    assert [row[0] for row in rows] == sorted(POOLS)
    assert all("nodes in use" in cell for row in rows for cell in row[1:])
    for column in (0, 1, 2):
        sides = "[...document.querySelectorAll('.row')].map((row) => row.children[%d].getBoundingClientRect().x)"
        assert page.run(f"new Set({sides % column}).size") == 1, "the cells are not below their heading"
    page.click("[aria-label=pool] button")
    assert "flow.pool=" in str(page.run("location.hash"))
    assert page.run("document.querySelectorAll('.flow .band.off').length > 0")


def test_fragmentation_counts_every_node_once(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.open(answered(tmp_path, "nodes", "-s", str(cluster)))
    assert page.complaints == []
    for plot in page.text("figure"):
        assert sum(int(word) for word in re.findall(r"^\d+$", plot, re.MULTILINE)) == 500


def test_utilization_is_counted_before_and_after(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.open(answered(tmp_path, "simulate", "-s", str(cluster)))
    assert page.complaints == []
    assert len(page.text("figure")) == 3
    assert page.text(".legend")[0].split("\n") == ["nodes before", "nodes after"]


QUESTIONS: dict[str, tuple[str, ...]] = {
    "unschedulable": ("why", "fixtures/zone-full/pod.yaml", "-s", "fixtures/zone-full/cluster"),
    "fits": ("why", "fixtures/tie/pod.yaml", "-s", "fixtures/tie/cluster.yaml"),
    "preemption": ("why", "fixtures/preemption-pdb/pod.yaml", "-s", "fixtures/preemption-pdb/cluster"),
    "pending": ("why", "--all-pending", "-s", "fixtures/two-more-nodes/cluster.yaml"),
    "simulate": ("simulate", "--drain", "lab-worker-01", "-s", "fixtures/tie/cluster.yaml"),
    "drain": ("drain", "--each", "-s", "fixtures/zone-full/cluster"),
    "diff-profiles": ("diff-profiles", "default-1.35", "default-1.36", "--all", "-s", "fixtures/web-rollout/cluster"),
    "fit": ("fit", "fixtures/web-rollout/pod.yaml", "-s", "fixtures/web-rollout/cluster"),
    "scale-down": ("scale-down", "-s", "fixtures/scale-down-blocked/cluster.yaml"),
    "nodes": ("nodes", "-s", "fixtures/gpu-pool-taints/cluster.yaml"),
    "survive": ("survive", "--each", "zone", "-s", "fixtures/zone-full/cluster"),
    "flow": ("diff-profiles", "default", "binpack", "--all", "-s", "SMALL"),
    "many nodes": ("nodes", "-s", "SMALL"),
    "many pending": ("why", "--all-pending", "-s", "SMALL"),
    "doctor": ("doctor", "fixtures/zone-full/cluster"),
    "autoscaler": (
        "why",
        "fixtures/karpenter-limit-reached/pod.yaml",
        "-s",
        "fixtures/karpenter-limit-reached/cluster.yaml",
    ),
    "daemon set": ("why", "tests/manifests/workload/daemon-set-some-full.yaml", "-s", "tests/manifests/cluster.yaml"),
    "node": ("why", "node/lab-worker-01", "-s", "fixtures/tie/cluster.yaml"),
    "kueue": ("kueue", "-s", "fixtures/kueue-queues/cluster.yaml"),
    "deschedule": (
        *("deschedule", "--policy", "fixtures/descheduler-fight/policy.yaml", "-s", "fixtures/zone-full/cluster"),
    ),
    "advice": ("descheduler-policy", "advise", "-s", "fixtures/zone-full/cluster"),
    "tuning": ("profiles", "tune", "--candidates", "4", "--jobs", "1", "-s", "fixtures/web-rollout/cluster"),
    "fleet": ("fleet", "-s", "fixtures/zone-full/cluster", "-s", "fixtures/tie/cluster.yaml", "why", "--all-pending"),
}
"""A question of each kind of page."""


DOCUMENTED: dict[str, tuple[str, int]] = build_module().HTML_PAGES


@pytest.mark.parametrize("command", [command for command, _ in DOCUMENTED.values()], ids=DOCUMENTED)
def test_the_pages_in_frames_of_the_documentation(page: Page, tmp_path: Path, command: str) -> None:
    page.resize(760, 640)
    page.open(answered(tmp_path, *shlex.split(command)))
    assert page.text("h1")[0]
    assert page.complaints == []
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than its frame"


def test_a_phone_shows_rows_as_cards(page: Page, tmp_path: Path) -> None:
    page.resize(400, 900)
    page.open(written(tmp_path, story("zone-full")))
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run("[...document.querySelectorAll('.row.body .extra')].every((one) => !one.offsetHeight)")
    (first, second, *_) = page.text(".row.body")
    assert first.split("\n")[1:] != second.split("\n")[1:]
    assert page.run("document.querySelector('.row.body [data-label=why]').offsetHeight > 0")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize(
    "items", [("why", "--all-pending"), ("nodes",), ("diff-profiles", "default", "binpack", "--all")]
)
def test_no_text_of_a_row_is_cut(page: Page, tmp_path: Path, items: tuple[str, ...], width: int) -> None:
    page.resize(width, 900)
    page.open(answered(tmp_path, *items, "-s", "fixtures/web-rollout/cluster", "-s", "fixtures/zone-full/pod.yaml"))
    cut = "[...document.querySelectorAll('.row.body, .row.body > *')].filter((one) => one.offsetHeight && "
    cut += "(one.scrollHeight > one.offsetHeight || one.scrollWidth > one.offsetWidth)).map((one) => one.innerText)"
    assert page.text(".row.body")
    assert page.run(cut) == []


def test_a_heat_map_by_zone_or_pool_has_one_color_for_each_plugin(page: Page, tmp_path: Path, cluster: Path) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod("web", "12", nodeSelector={"karpenter.sh/nodepool": "gpu"})))
    page.open(answered(tmp_path, "why", str(tmp_path / "pod.yaml"), "-s", str(cluster)))
    assert len(page.text(".heatrow")) == 3
    page.click("[aria-label='heat map by'] button:nth-of-type(2)")
    assert sorted(row.split(" ")[0] for row in page.text(".heatrow > .label")) == sorted(POOLS)
    color = "[...document.querySelectorAll('.heatbar button')].find((one) => one.innerText.startsWith('%s'))"
    color += ".style.borderBottomColor"
    assert page.run(color % "NodeAffinity") == "rgb(176, 118, 0)"
    page.click("[aria-label=zone] button")
    many = int(page.text("[aria-label=zone] button[aria-pressed=true]")[0].split()[-1].replace(",", ""))
    shown = sum(int(row.replace(",", "")) for row in page.text("[aria-label=verdicts] .row.body > :nth-child(2)"))
    assert shown == many < 500


PAPER = (717, 1046)
"""The printable area of A4 in Chromium, in CSS pixels."""
ROWS = "[...document.querySelectorAll('.grid')].map((one) => [Number(one.getAttribute('aria-rowcount')) - 1, "
ROWS += "one.querySelectorAll('.row.body').length])"
CUT = """[...document.querySelectorAll('body *')].filter((one) => one.checkVisibility()
  && getComputedStyle(one).overflowX !== 'visible' && one.tagName !== 'svg'
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map((one) => one.outerHTML.slice(0, 90))"""
"""Elements whose content is larger than their box."""
OVERLAP = """[...document.querySelectorAll('section *')].filter((one) => one.checkVisibility()
  && one.getBoundingClientRect().bottom > one.parentElement.getBoundingClientRect().bottom + 3)
  .map((one) => one.outerHTML.slice(0, 90))"""
"""Elements that exceed their box and overlap the next one."""


def unsaid(document: object) -> Iterator[str]:
    """Return every readable text of a section."""
    match document:
        case str():
            yield document
        case list():
            for value in document:
                yield from unsaid(value)
        case dict():
            for key, value in document.items():
                if key not in ("kind", "kinds", "noun", "columns", "codes", "states", "tone", "commands"):
                    yield from unsaid(value)
        case _:
            pass


@pytest.mark.parametrize("items", QUESTIONS.values(), ids=QUESTIONS)
def test_print_shows_everything(page: Page, tmp_path: Path, files: dict[str, str], items: tuple[str, ...]) -> None:
    page.resize(*PAPER)
    page.open(answered(tmp_path, *(files.get(word, word) for word in items)))
    page.send("Emulation.setEmulatedMedia", media="print")
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    counts, cut, overlap, high = map(page.run, (ROWS, CUT, OVERLAP, "document.documentElement.scrollHeight"))
    body, data = str(page.run("document.body.innerText")), json.loads(str(page.run("JSON.stringify(page)")))
    is_narrow = page.run("document.documentElement.scrollWidth <= innerWidth")
    page.run("window.dispatchEvent(new Event('afterprint'))")
    page.send("Emulation.setEmulatedMedia", media="")
    sheets = len(re.findall(rb"/Type /Page\b", base64.b64decode(str(page.send("Page.printToPDF")["data"]))))
    assert isinstance(counts, list)
    assert all(there == shown > 0 for there, shown in counts)
    assert (cut, overlap, is_narrow) == ([], [], True)
    assert isinstance(high, int)
    assert sheets >= high / PAPER[1] - 1
    flat = re.sub(r"\s", "", body)
    texts = {*unsaid([data["head"], data["sections"]])}.difference(Tone)
    assert not [text for text in texts if re.sub(r"\s", "", text) not in flat]


def test_a_dark_page_is_printed_on_white(page: Page, tmp_path: Path) -> None:
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.open(answered(tmp_path, "why", "fixtures/tie/pod.yaml", "-s", "fixtures/tie/cluster.yaml"))
    papers = []
    for media in ("screen", "print"):
        page.send("Emulation.setEmulatedMedia", media=media, features=dark)
        papers.append(page.run("getComputedStyle(document.body).backgroundColor"))
    page.send("Emulation.setEmulatedMedia", media="", features=[])
    assert papers == ["rgb(16, 20, 24)", "rgb(255, 255, 255)"]


def test_the_address_opens_the_same_view_again(page: Page, tmp_path: Path) -> None:
    page.resize(1400, 900)
    path = written(tmp_path, story("tie"))
    page.open(path)
    state = (
        "JSON.stringify([...document.querySelectorAll('[aria-pressed=true], [aria-sort=ascending], .count, .story h3')]"
    )
    state += ".map((one) => one.innerText))"
    page.run("for (const one of document.querySelectorAll('.tools button')) "
             "if (['raw', 'every node'].includes(one.innerText)) one.click()")  # fmt: skip
    page.run("document.querySelectorAll('.row.head button')[0].click()")
    page.run("document.querySelector('[aria-label=verdicts]').dispatchEvent("
             "new KeyboardEvent('keydown', {key: 'j', bubbles: true}))")  # fmt: skip
    before, address = page.run(state), str(page.run("location.hash"))
    page.open(path, address=address)
    assert page.run(state) == before
    assert {"scores.unit", "verdicts.each", "verdicts.sort", "verdicts.open"} <= set(
        re.findall(r"[a-z.]+(?==)", address)
    )


CHOICES = (
    ".chips button[aria-pressed=false]:nth-of-type(2)", ".tools button[aria-pressed=false]", ".chip + details summary",
    ".row.head > :nth-child(2) button", ".row.body:nth-child(2)", "th button", "#screen summary",
)  # fmt: skip
"""Everything on a page that reacts to a click; the last element of each kind is clicked."""
STATE = """JSON.stringify([
  [...document.querySelectorAll('button, th, [role=columnheader], .row.body')].map((one) => [one.innerText,
    one.ariaPressed, one.ariaSort, one.ariaSelected]),
  [...document.querySelectorAll('details')].map((one) => one.open),
  [...document.querySelectorAll('input')].map((one) => one.value),
  [...document.querySelectorAll('.story, .count, output')].map((one) => one.innerText)])"""


@pytest.mark.parametrize(
    "answer",
    [
        ("why", "fixtures/zone-full/pod.yaml", "-s", "fixtures/zone-full/cluster"),
        ("why", "fixtures/tie/pod.yaml", "-s", "fixtures/tie/cluster.yaml"),
        ("why", "--all-pending", "-s", "CLUSTER"),
        ("why", "--all-pending", "-s", "fixtures/autoscaler-grows/cluster.yaml"),
        ("simulate", "-s", "CLUSTER"),
        ("drain", "--each", "-s", "CLUSTER"),
        ("nodes", "-s", "CLUSTER"),
        ("survive", "--each", "zone", "-s", "CLUSTER"),
        ("diff-profiles", "default", "binpack", "--all", "-s", "CLUSTER"),
        ("doctor", "CLUSTER"),
    ],
    ids=" ".join,
)
def test_every_state_has_an_address(page: Page, tmp_path: Path, cluster: Path, answer: tuple[str, ...]) -> None:
    page.resize(1400, 900)
    path = answered(tmp_path, *(str(cluster) if word == "CLUSTER" else word for word in answer))
    page.open(path)
    first = page.run(STATE)
    for choice in CHOICES:
        page.run(f"[...document.querySelectorAll({json.dumps(choice)})].at(-1)?.click()")
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.run(
        "for (const one of document.querySelectorAll('input')) "
        "{ one.value = one.type === 'range' ? 1 : 'a'; one.dispatchEvent(new Event('input')); }"
    )
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    state, address = page.run(STATE), str(page.run("location.hash"))
    assert state != first
    page.open(path, address=address)
    assert page.run(STATE) == state
    assert page.complaints == []


def test_identical_nodes_are_one_row_until_expanded(page: Page, tmp_path: Path, cluster: Path) -> None:
    page.resize(1400, 900)
    page.open(answered(tmp_path, "drain", "--each", "-s", str(cluster)))
    (text,) = page.text(".count")
    assert text.startswith("500 nodes in ")
    sizes = page.text(".row.body > :nth-child(2)")
    assert len(sizes) < 40
    assert sum(int(size) for size in sizes) == 500
    filtered = "for (const box of document.querySelectorAll('[type=search]')) "
    filtered += "{ box.value = '%s'; box.dispatchEvent(new Event('input')); }"
    page.run(filtered % "general-000")
    left = sum(int(size) for size in page.text(".row.body > :nth-child(2)"))
    assert 1 < left < 500
    assert page.text(".count")[0].startswith(f"{left} of 500 nodes")
    page.run(filtered % "")
    page.click(".tools button[aria-pressed]")
    assert page.text(".count") == ["500 nodes"]


BROKEN_WORDS = """[...document.querySelectorAll('.row.body [role=gridcell]')].flatMap((cell) => [...cell.childNodes])
.filter((part) => part.nodeType === Node.TEXT_NODE).filter((part) => {
  const range = document.createRange(); range.selectNodeContents(part); return range.getClientRects().length > 1;
}).map((part) => part.data)"""
"""The words of a table that are on two lines."""


def test_a_table_of_nodes_fits_the_window_and_has_short_names(page: Page, tmp_path: Path) -> None:
    domain = ".eu-west-1.compute.internal"
    labels = {
        "topology.kubernetes.io/zone": "eu-west-1a",
        "eks.amazonaws.com/nodegroup": "workers-1",
        "node.kubernetes.io/instance-type": "g5.12xlarge",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
    }
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    nodes = [
        node(f"ip-10-0-0-{at}{domain}", f"{at}750m", labels) | {"spec": {"taints": [taint]}} for at in range(1, 40)
    ]
    cluster = tmp_path / "nodes.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    for width in (1100, 1200, 1280):
        page.resize(width, 900)
        page.open(answered(tmp_path, "nodes", "-s", str(cluster)))
        assert page.run("document.querySelector('.grid').scrollWidth <= document.querySelector('.grid').clientWidth")
        assert page.run(BROKEN_WORDS) == []
    assert "✓ip-10-0-0-7" in page.text(".row.body > :first-child")
    page.run("document.querySelector('input[type=search]').value = 'ip-10-0-0-7.eu-west-1'")
    page.run("document.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
    assert page.text(".row.body > :first-child") == ["✓ip-10-0-0-7"]
    page.click(".row.body")
    assert page.text(".story h3") == [f"ip-10-0-0-7{domain}"]


PICTURES = {
    "page-nodes-5000": (5_000, ("nodes",)),
    "page-flow-500": (500, ("diff-profiles", "default", "binpack", "--all")),
}
"""Pictures of the documentation, with the size of the cluster and the question."""


@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_large_clusters(page: Page, tmp_path: Path, golden: Golden, name: str) -> None:
    """`pytest -m browser --update-golden` renews the pictures."""
    nodes, question = PICTURES[name]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": generated(nodes, pods=2)}))
    page.resize(1100, 720)
    page.open(answered(tmp_path, *question, "-s", str(cluster)))
    assert not page.complaints
    picture = ROOT / "docs/pages/assets" / f"{name}.webp"
    if golden.updating:
        page.run("(document.querySelector('.flow')?.closest('section') || document.body).scrollIntoView()")
        page.screenshot(picture, whole=False)
    assert 5_000 < picture.stat().st_size < 100_000

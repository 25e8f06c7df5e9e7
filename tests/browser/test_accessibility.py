"""axe-core reports nothing, also for 5,000 nodes. AXE_CORE is its axe.min.js, which `.ci/run` installs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.test_page import QUESTIONS, answered

SCRIPT = os.environ.get("AXE_CORE", "")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SCRIPT, reason="AXE_CORE is not set: npm install axe-core"),
]

LARGE = {
    "fits nowhere": ("why", "POD", "-s", "CLUSTER"),
    "many pending": ("why", "--all-pending", "-s", "CLUSTER"),
    "simulate": ("simulate", "-s", "CLUSTER"),
    "nodes": ("nodes", "-s", "CLUSTER"),
}
"""Questions about 5,000 nodes and 10,000 running pods."""

MAX_SIZE, MAX_SECONDS = 3_000_000, 1.0
WINDOWS = ((1280, "light"), (1280, "dark"), (400, "light"))


def violations(browser: Page) -> list[tuple[str, list[str]]]:
    """Return what axe-core reports on the open page, with every `details` open."""
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.run(Path(SCRIPT).read_text(encoding="utf-8") + ";0")
    result = browser.run("axe.run().then((found) => JSON.stringify(found.violations))")
    assert isinstance(result, str)
    return [(load["id"], [node["html"][:120] for node in load["nodes"][:3]]) for load in json.loads(result)]


def opened(browser: Page, path: Path, width: int, scheme: str) -> float:
    """Open a page; return the seconds from its navigation until its tables are drawn."""
    browser.resize(width, 900)
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(path)
    return float(str(browser.run("performance.now()"))) / 1000


@pytest.mark.parametrize("items", QUESTIONS.values(), ids=QUESTIONS)
def test_axe_reports_nothing(browser: Page, tmp_path: Path, files: dict[str, str], items: tuple[str, ...]) -> None:
    path = answered(tmp_path, *(files.get(word, word) for word in items))
    for width, scheme in WINDOWS:
        opened(browser, path, width, scheme)
        assert not violations(browser), (width, scheme)


@pytest.mark.parametrize("items", LARGE.values(), ids=LARGE)
def test_a_page_of_5000_nodes(browser: Page, tmp_path: Path, files: dict[str, str], items: tuple[str, ...]) -> None:
    path = answered(tmp_path, *(files.get(word, word) for word in items))
    assert path.stat().st_size < MAX_SIZE
    browser.complaints.clear()
    seconds = []
    for width, scheme in WINDOWS:
        seconds.append(opened(browser, path, width, scheme))
        assert browser.text("[role=row], tbody tr"), "the page has no table"
        assert not violations(browser), (width, scheme)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert browser.complaints == []
    assert min(seconds) < MAX_SECONDS  # the fastest, as other work on the machine slows single openings

"""axe-core finds nothing on a page, in either color scheme. AXE_CORE names its axe.min.js, which `.ci/run` installs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Page, chromium
from tests.browser.test_page import generated
from tests.command import kschedx

SCRIPT = os.environ.get("AXE_CORE", "")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SCRIPT, reason="AXE_CORE is not set: npm install axe-core"),
]

ASKED = {
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
    "flow": ("diff-profiles", "default", "binpack", "--all", "-s", "CLUSTER"),
    "many nodes": ("nodes", "-s", "CLUSTER"),
    "many pending": ("why", "--all-pending", "-s", "CLUSTER"),
    "doctor": ("doctor", "fixtures/zone-full/cluster"),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_axe_finds_nothing(browser: Page, tmp_path: Path, asked: tuple[str, ...]) -> None:
    path, cluster = tmp_path / "answer.html", tmp_path / "cluster.json"
    if "CLUSTER" in asked:
        cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": generated(500)}))
    words = [str(cluster) if word == "CLUSTER" else word for word in asked]
    path.write_text(kschedx(*words, "-o", "html").out, encoding="utf-8")
    browser.resize(1280, 900)
    for scheme in ("light", "dark"):
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(path)
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        browser.run(Path(SCRIPT).read_text(encoding="utf-8") + ";0")
        found = browser.run("axe.run().then((found) => JSON.stringify(found.violations))")
        assert isinstance(found, str)
        told = [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in json.loads(found)]
        assert not told, scheme

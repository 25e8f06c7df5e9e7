"""The pytest plugin in a repository of a team, with placement rules as tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.command import ROOT

RULES = """
def test_where_web_goes(kschedx_snapshot, placement):
    snapshot = kschedx_snapshot("cluster")
    assert snapshot is kschedx_snapshot("cluster")
    web = placement(snapshot, "shop/search-api-wpn7dxsnmv-jdk92"CONFIG)
    assert web.nodes
    assert not web.message
    web.matches("expected/NAME.json")
"""
FAILING = """
def test_placement(kschedx_snapshot, placement):
    assert not placement(kschedx_snapshot("cluster"), "shop/search-api-wpn7dxsnmv-jdk92").nodes


def test_drain(kschedx_snapshot, drained):
    assert not drained(kschedx_snapshot("cluster"), "ip-10-20-96-71.eu-west-1.compute.internal").is_done
"""
FILE = Path("expected/rules.json")


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Write a repository with a dump of its cluster and a rule."""
    shutil.copytree(ROOT / "fixtures/web-rollout/cluster", tmp_path / "cluster")
    shutil.copy(ROOT / "profiles/binpack.yaml", tmp_path / "binpack.yaml")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write_rule(tmp_path, "rules")
    return tmp_path


def write_rule(folder: Path, name: str, config: str = "") -> None:
    rule = RULES.replace("CONFIG", config).replace("NAME", name)
    (folder / f"test_{name}.py").write_text(rule, encoding="utf-8")


ALONE = ("--disable-plugin-autoload", "-p", "kschedx.pytest_plugin")
"""Options to load no other plugin, which takes less time."""


def run(folder: Path, *options: str, plugin: tuple[str, ...] = ALONE) -> tuple[int, str]:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def test_a_rule_passes_and_fails(team: Path) -> None:
    code, text = run(team)
    assert (code, f"{FILE} does not exist; pytest --kschedx-update writes it" in text) == (1, True)

    code, text = run(team, "--kschedx-update")
    assert code == 0, text
    document = json.loads((team / FILE).read_text(encoding="utf-8"))
    assert document["kind"] == "Story"

    write_rule(team, "other_profile", ', config="binpack.yaml"')
    write_rule(team, "edited")
    (team / "expected/edited.json").write_text(json.dumps({**document, "nodes": ["another"]}), encoding="utf-8")
    write_rule(team, "no_story")
    (team / "expected/no_story.json").write_text('{"kind": "Pod"}', encoding="utf-8")
    shutil.copy(team / FILE, team / "expected/other_profile.json")
    code, text = run(team, "-v")
    assert code == 1
    assert "test_rules.py::test_where_web_goes PASSED" in text
    by_rule = dict(
        zip(("edited", "no_story", "other_profile"), text.split("___ test_where_web_goes ___")[1:], strict=True)
    )

    broken = by_rule["other_profile"]
    assert "shop/search-api-wpn7dxsnmv-jdk92 differs: " in broken
    assert "NodeResourcesBalancedAllocation" in broken
    assert "If this is correct: pytest --kschedx-update" in broken
    # a story, and no document
    assert not {"{", '"kind"', "Traceback", "test_other_profile.py:"} & set(broken.partition("=====")[0].split())

    # what does not differ is left out
    [marked] = [line for line in by_rule["edited"].splitlines() if line.startswith("≠")]
    assert marked.split() == ["≠", "assigned", "to", "another", "ip-10-20-96-71.eu-west-1.compute.internal"]

    assert "expected kschedx/v1, Story" in by_rule["no_story"]


def test_a_failed_assertion_shows_the_screen(team: Path) -> None:
    (team / "test_rules.py").write_text(FAILING, encoding="utf-8")
    code, text = run(team)
    assert code == 1
    assert "✓ shop/search-api-wpn7dxsnmv-jdk92 would be assigned to" in text
    assert "✓ ip-10-20-96-71: can be drained" in text


@pytest.mark.long
def test_the_example_of_the_guide_works(team: Path) -> None:
    guide = (ROOT / "docs/pages/guides/ci.md").read_text(encoding="utf-8")
    example = guide.partition("<!-- example: placement -->\n```python\n")[2].partition("```")[0]
    folder = team / "placement"
    folder.mkdir()
    (folder / "test_placement.py").write_text(example, encoding="utf-8")
    (team / "test_rules.py").unlink()
    (team / "binpack.yaml").rename(team / "scheduler.yaml")
    (team / "manifests").mkdir()
    shutil.copy(ROOT / "fixtures/web-rollout/pod.yaml", team / "manifests/web.yaml")
    plugin = () if entry_points(group="pytest11", name="kschedx") else ALONE
    code, text = run(team, "--kschedx-update", "placement/", plugin=plugin)
    assert (code, (folder / "expected/web.json").exists()) == (0, True), text
    code, text = run(team, "placement/", plugin=plugin)
    assert (code, "2 passed" in text) == (0, True), text

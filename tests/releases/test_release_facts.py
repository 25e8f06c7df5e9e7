"""Every release resolved, in a file each: an edit of a fact shows which releases move (`pytest --update-golden`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kschedx.framework.config import load_profiles
from kschedx.framework.registry import IN_TREE
from kschedx.releases import EMULATED, POINTS, Release, resolve
from kschedx.releases.gates import HISTORY, specs
from tests.conftest import ROOT, Golden

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("version", EMULATED)
def test_a_release_resolves_to_its_file(version: str, golden: Golden) -> None:
    golden.check(FOLDER / f"{version}.txt", "".join(f"{line}\n" for line in described(resolve(version))))


def described(release: Release) -> Iterator[str]:
    """What the release does, a fact a line."""
    yield f"Kubernetes {release.version}"
    yield f"reads {', '.join(release.config_versions)}"
    for version, fields in release.missing_fields.items():
        yield from (f"  {version} has no {field}" for field in fields)
    yield ""
    for api_version in release.config_versions:
        yield f"default profile of {api_version}"
        config = {"apiVersion": api_version, "kind": "KubeSchedulerConfiguration"}
        (profile,) = load_profiles(config, release).profiles
        for point in POINTS:
            weights = profile.weights if point == "score" else {}
            plugins = [f"{name} {weights[name]}" if name in weights else name for name in profile.points[point]]
            yield f"  {point}: {', '.join(plugins) or '-'}"
        yield ""
    yield "in-tree plugins"
    for plugin, points in sorted(release.plugin_points.items()):
        yield f"  {plugin}: {', '.join(sorted(points))}"
    yield f"filter every pod: {', '.join(sorted(release.never_skips_filter)) or '-'}"
    yield f"score every pod: {', '.join(sorted(release.never_skips_score)) or '-'}"
    yield f"not in v1: {', '.join(release.removed_plugins) or '-'}"
    for title, facts in (
        ("behavior", release.behaviour),
        ("messages", release.messages),
        ("arguments", release.arguments),
    ):
        yield ""
        yield title
        yield from (f"  {name}: {value!r}" for name, value in facts)
    yield ""
    yield "feature gates"
    for gate, spec in sorted(specs(release.version).items()):
        yield f"  {gate}: {spec.stage} {'on' if spec.default else 'off'}{' locked' if spec.locked else ''}"


@pytest.mark.parametrize("version", EMULATED)
def test_every_default_plugin_can_be_made(version: str) -> None:
    release = resolve(version, {"AllAlpha": False})
    assert {plugin.name for plugin in release.default_plugins} <= IN_TREE.keys()


def test_the_product_asks_only_for_gates_that_exist() -> None:
    """A misspelt name would simply be off."""
    asked = {
        gate
        for path in sorted((ROOT / "kschedx").rglob("*.py"))
        if not {"legacy", "kueue"} & set(path.parts)  # gates of other programs
        for gate in re.findall(r'\benabled\(\s*"(\w+)"', Path(path).read_text(encoding="utf-8"))
    }
    assert asked
    assert asked <= HISTORY.keys()


@pytest.mark.parametrize("version", EMULATED)
def test_a_fact_of_a_release_cannot_be_changed(version: str) -> None:
    with pytest.raises(AttributeError, match="is a fact of a release"):
        resolve(version).behaviour.sidecars_are_known = True

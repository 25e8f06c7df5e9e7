"""The profiles that come with kschedx: what they say, and that the defaults are those of the releases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedx.cli import files
from kschedx.framework.config import Profile, load_profiles
from kschedx.framework.config.advice import advice
from kschedx.framework.config.origins import expand_config
from kschedx.releases import VERSIONS, Release, resolve
from kschedx.render.manifests import commented_yaml
from tests.command import ROOT, kschedx
from tests.conftest import Golden

FOLDER = ROOT / "profiles"
RELEASES = [version for version in VERSIONS if resolve(version).has_framework]
WRITTEN = sorted(path for path in FOLDER.glob("*.yaml") if not path.stem.startswith(("default-", "policy-")))


def header(version: str) -> str:
    return f"""\
# What kube-scheduler {version} does without a configuration. Spelled out point by point, to be read, compared and
# changed. `pytest --update-golden` writes this file from the facts of the release.
"""


def read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return result


def meaning(profile: Profile) -> tuple[object, ...]:
    """Everything in a profile that decides anything."""
    scores = [(name, profile.weights[name]) for name in profile.points["score"]]
    args = {name: value for name, value in profile.args.items() if value}
    return profile.scheduler_name, profile.percentage_of_nodes_to_score, profile.points, scores, args


def meanings(config: Mapping[str, object] | None, release: Release) -> list[tuple[object, ...]]:
    return [meaning(profile) for profile in load_profiles(config, release).profiles]


@pytest.mark.parametrize("version", RELEASES)
def test_a_releases_default_is_spelled_out(version: str, golden: Golden) -> None:
    release = resolve(version)
    path = FOLDER / f"default-{version}.yaml"
    golden.check(path, header(version) + commented_yaml(expand_config(None, release).configuration, {}))
    assert meanings(read(path), release) == meanings(None, release)


def test_every_release_has_its_default_and_no_other() -> None:
    assert {path.stem.removeprefix("default-") for path in FOLDER.glob("default-*.yaml")} == set(RELEASES)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("version", RELEASES)
def test_a_profile_is_accepted_by_every_release_without_remark(path: Path, version: str) -> None:
    assert advice(read(path), resolve(version)) == ()


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_profile_says_what_it_is_for(path: Path) -> None:
    purpose = files.purposes()[path.stem]
    assert 20 < len(purpose) < 200
    assert purpose in " ".join(kschedx("profiles").out.split())


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_profile_differs_from_the_default(path: Path) -> None:
    assert kschedx("diff-profiles", "default", path.stem).code == 1


@pytest.mark.parametrize("path", [*WRITTEN, *sorted(FOLDER.glob("default-*.yaml"))], ids=lambda path: path.stem)
def test_what_show_prints_means_the_same(path: Path) -> None:
    release = resolve(files.version_of(path.stem))
    shown = yaml.safe_load(kschedx("profiles", "show", path.stem, "-o", "yaml").out)
    assert meanings(shown, release) == meanings(read(path), release)


def test_an_installed_kschedx_has_them_too() -> None:
    import tomllib

    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert wheel["wheel"]["force-include"] == {"profiles": f"kschedx/{files.INSTALLED}"}

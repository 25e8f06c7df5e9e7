"""The profiles of kschedx: their effects, and defaults equal to those of the versions."""

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
PROFILE_FILES = sorted(path for path in FOLDER.glob("*.yaml") if not path.stem.startswith(("default-", "policy-")))


def header(version: str) -> str:
    return f"""\
# What kube-scheduler {version} does without a configuration. Spelled out point by point, to be read, compared and
# changed. `pytest --update-golden` writes this file from the facts of the release.
"""


def read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return result


def effect_of(profile: Profile) -> tuple[object, ...]:
    """Return everything in a profile that affects decisions."""
    scores = [(name, profile.weights[name]) for name in profile.points["score"]]
    args = {name: value for name, value in profile.args.items() if value}
    return profile.scheduler_name, profile.percentage_of_nodes_to_score, profile.points, scores, args


def effects_of(config: Mapping[str, object] | None, release: Release) -> list[tuple[object, ...]]:
    return [effect_of(profile) for profile in load_profiles(config, release).profiles]


@pytest.mark.parametrize("version", RELEASES)
def test_the_default_of_a_version_is_a_file(version: str, golden: Golden) -> None:
    release = resolve(version)
    path = FOLDER / f"default-{version}.yaml"
    golden.check(path, header(version) + commented_yaml(expand_config(None, release).configuration, {}))
    assert effects_of(read(path), release) == effects_of(None, release)


def test_every_version_has_one_default() -> None:
    assert {path.stem.removeprefix("default-") for path in FOLDER.glob("default-*.yaml")} == set(RELEASES)


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", PROFILE_FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("version", RELEASES)
def test_a_profile_has_no_advice_in_any_version(path: Path, version: str) -> None:
    assert advice(read(path), resolve(version)) == ()


@pytest.mark.parametrize("path", PROFILE_FILES, ids=lambda path: path.stem)
def test_a_profile_has_a_purpose(path: Path) -> None:
    purpose = files.purposes()[path.stem]
    assert 20 < len(purpose) < 200
    assert purpose in " ".join(kschedx("profiles").out.split())


@pytest.mark.parametrize("path", PROFILE_FILES, ids=lambda path: path.stem)
def test_a_profile_differs_from_the_default(path: Path) -> None:
    assert kschedx("diff-profiles", "default", path.stem).code == 1


@pytest.mark.parametrize("path", [*PROFILE_FILES, *sorted(FOLDER.glob("default-*.yaml"))], ids=lambda path: path.stem)
def test_profiles_show_prints_an_equal_configuration(path: Path) -> None:
    release = resolve(files.version_of(path.stem))
    configuration = yaml.safe_load(kschedx("profiles", "show", path.stem, "-o", "yaml").out)
    assert effects_of(configuration, release) == effects_of(read(path), release)


def test_the_wheel_contains_the_profiles() -> None:
    import tomllib

    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert wheel["wheel"]["force-include"] == {name: f"kschedx/_{name}" for name in ("completions", "profiles")}

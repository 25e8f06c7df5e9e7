"""The facts of each version in a file: an edit shows the first version with a fact (`pytest --update-golden`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice, pairwise
from pathlib import Path

import pytest

from kschedx.framework.config import load_profiles
from kschedx.framework.registry import IN_TREE
from kschedx.releases import EMULATED, POINTS, Release, resolve
from kschedx.releases.api_versions import is_served, served_version
from kschedx.releases.dates import minor
from kschedx.releases.gates import HISTORY, specs
from kschedx.releases.plugins import NOT_SIMULATED, PLUGINS
from tests.conftest import ROOT, Golden

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("previous", "version"), [*pairwise(("", *reversed(EMULATED)))])
def test_the_facts_of_a_version_equal_its_file(previous: str, version: str, golden: Golden) -> None:
    """The first file has all facts; each other file has the differences from the version before."""
    lines = list(facts_of(resolve(version)))
    if previous:
        changes = unified_diff(list(facts_of(resolve(previous))), lines, n=0, lineterm="")
        lines = [line for line in islice(changes, 2, None) if not line.startswith("@@")]
    golden.check(FOLDER / f"{version}.txt", "".join(f"{line}\n" for line in lines))


def facts_of(release: Release) -> Iterator[str]:
    """Yield one fact per line, so that a new plugin changes one line of its first version."""
    for version, fields in release.missing_fields.items():
        yield from (f"{version} has no {field}" for field in fields)
    for version in release.config_versions:
        yield f"reads {version}"
        config = {"apiVersion": version, "kind": "KubeSchedulerConfiguration"}
        (profile,) = load_profiles(config, release).profiles
        for point in POINTS:
            weights = profile.weights if point == "score" else {}
            for name in profile.points[point]:
                yield f"default of {version}, {point}: {name} {weights.get(name, '')}".rstrip()
    for plugin, points in sorted(release.plugin_points.items()):
        yield from (f"plugin {plugin}: {point}" for point in sorted(points))
    yield from (f"filters every pod: {name}" for name in sorted(release.never_skips_filter))
    yield from (f"scores every pod: {name}" for name in sorted(release.never_skips_score))
    yield from (f"not in v1: {name}" for name in release.removed_plugins)
    for title, facts in (
        ("behavior", release.behavior),
        ("message", release.messages),
        ("argument", release.arguments),
    ):
        yield from (f"{title} {name}: {value!r}" for name, value in facts)
    for gate, spec in sorted(specs(release.version).items()):
        yield f"gate {gate}: {spec.stage} {'on' if spec.default else 'off'}{' locked' if spec.locked else ''}"


@pytest.mark.parametrize("version", EMULATED)
def test_every_default_plugin_is_implemented(version: str) -> None:
    release = resolve(version, {"AllAlpha": False})
    assert {plugin.name for plugin in release.default_plugins} <= IN_TREE.keys()


def test_a_plugin_with_a_row_is_not_listed_as_unknown() -> None:
    assert not {row.name for row in PLUGINS} & NOT_SIMULATED.keys()


def test_the_package_reads_only_known_gates() -> None:
    """A misspelled gate would be off without an error."""
    gates = {
        gate
        for path in sorted((ROOT / "kschedx").rglob("*.py"))
        if not {"legacy", "kueue"} & set(path.parts)  # gates of other programs
        for gate in re.findall(r'\benabled\(\s*"(\w+)"', Path(path).read_text(encoding="utf-8"))
    }
    assert gates
    assert gates <= HISTORY.keys()


@pytest.mark.parametrize("version", EMULATED)
def test_facts_of_a_version_are_immutable(version: str) -> None:
    with pytest.raises(AttributeError, match="is a fact of a release"):
        resolve(version).behavior.sidecars_are_known = True


@pytest.mark.parametrize(
    ("version", "names_taints", "sidecar_ports", "local_nodes"),
    [
        ("1.31", True, False, True),  # without a patch version, the first release
        ("v1.31.2", True, False, True),
        ("v1.31.3", True, False, False),
        ("v1.33.5-eks-1a2b3c4", True, False, False),
        ("v1.33.6-gke.1000", True, True, False),
        ("1.34", True, True, False),
        ("1.34.1", True, True, False),
        ("v1.34.2+k3s1", False, True, False),
        ("v1.34.10", False, True, False),
        ("1.35.0", False, True, False),
    ],
)
def test_facts_that_a_patch_version_changed(
    version: str, names_taints: bool, sidecar_ports: bool, local_nodes: bool
) -> None:
    release = resolve(version)
    assert ("{key}" in release.messages.untolerated_taint) == names_taints
    assert release.behavior.sidecar_ports_are_occupied == sidecar_ports
    assert release.behavior.local_volumes_name_their_nodes == local_nodes


@pytest.mark.parametrize(
    ("kind", "api_version", "first", "last"),
    [
        ("ResourceClaim", "resource.k8s.io/v1alpha3", "1.31", "1.33"),
        ("VolumeAttributesClass", "storage.k8s.io/v1alpha1", "1.29", "1.34"),
        ("CSIStorageCapacity", "storage.k8s.io/v1alpha1", "1.19", "1.23"),
        ("CSIStorageCapacity", "storage.k8s.io/v1beta1", "1.21", "1.26"),
        ("VolumeAttachment", "storage.k8s.io/v1alpha1", "", "1.22"),
        ("ClusterRole", "rbac.authorization.k8s.io/v1alpha1", "", "1.22"),
    ],
)
def test_the_api_versions_of_a_version(kind: str, api_version: str, first: str, last: str) -> None:
    major, number = minor(last)
    assert is_served((major, number), api_version, kind)
    assert not is_served((major, number + 1), api_version, kind)
    if first:
        major, number = minor(first)
        assert is_served((major, number), api_version, kind)
        assert not is_served((major, number - 1), api_version, kind)
    assert served_version(minor("1.36"), kind).endswith("/v1")

"""A package of somebody else with plugins of its own, installed for real, and kschedx as it is then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.builders import Manifest, node, pod
from tests.conftest import ROOT

PACKAGE = ROOT / "tests" / "plugin_package" / "package"
MATLAB = {"acme.io/licence": "matlab"}


class CommandResult(Struct, frozen=True):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed to."""
    target = tmp_path_factory.mktemp("site")
    command = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run(
        [sys.executable, *command, "--no-build-isolation", "--target", str(target), str(PACKAGE)], check=True
    )
    return target


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Path:
    """A folder with a cluster, its scheduler's configuration, and the package in reach."""
    objects: list[Manifest] = [
        node("desk-1", labels={"acme.io/seats": "1", "acme.io/clean-power": "20"}),
        node("desk-2", labels={"acme.io/seats": "1", "acme.io/clean-power": "90"}),
        node("rack-1"),
        pod("solver-0", labels=MATLAB, on="desk-1"),
        pod("solver-1", labels=MATLAB),
        pod("web"),
    ]
    # enough that processes share the work
    objects += [pod(f"batch-{number}", labels=MATLAB) for number in range(200)]
    write(tmp_path / "cluster.json", {"apiVersion": "v1", "kind": "List", "items": objects})
    write(tmp_path / "scheduler.json", configuration("LicenseSeats", "CarbonAware"))
    (tmp_path / "site").symlink_to(installed)
    return tmp_path


def configuration(*plugins: str) -> Manifest:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": name, "weight": 10} for name in plugins]}}}],
    }


def write(path: Path, document: Manifest) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def kschedx(folder: Path, *arguments: str) -> CommandResult:
    result = subprocess.run(
        [sys.executable, "-c", "import sys; from kschedx.cli import main; sys.exit(main())", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    return CommandResult(result.returncode, result.stdout, result.stderr)


def why(folder: Path, *arguments: str) -> CommandResult:
    return kschedx(folder, "why", "-s", "cluster.json", "--config", "scheduler.json", *arguments)


def test_it_decides_and_is_told_in_its_own_words(run: Path) -> None:
    result = why(run, "pod/solver-1")
    assert (result.code, result.err) == (0, "")
    assert "solver-1 would be assigned to desk-2" in result.out
    assert "desk-1 ✗ LicenseSeats: no free seat of matlab: 1 of 1 taken" in result.out
    assert "taken by  default/solver-0" in why(run, "pod/solver-1", "--node", "desk-1").out
    document = json.loads(why(run, "pod/solver-1", "-o", "json").out)
    rejection = document["filter"]["nodes"]["desk-1"]["rejectedBy"]["LicenseSeats"]
    assert rejection["findings"] == [
        {"reason": "no-free-seat", "licence": "matlab", "seats": 1, "takenBy": ["default/solver-0"]}
    ]
    assert document["profile"]["extensionPoints"]["filter"][-1] == "LicenseSeats"
    assert "unheard" not in document


def test_by_columns_it_scores(run: Path) -> None:
    document = json.loads(why(run, "pod/web", "-o", "json").out)
    assert document["score"]["weights"]["CarbonAware"] == 10
    assert document["score"]["nodes"]["desk-2"]["weighted"]["CarbonAware"] == 900
    assert document["bestNodes"] == ["desk-2"]


def test_a_fix_is_tried_with_it(run: Path) -> None:
    full = json.loads((run / "cluster.json").read_text(encoding="utf-8"))
    full["items"] = [*full["items"][:1], full["items"][3], full["items"][4]]  # desk-1 and who sits there
    full["items"][1]["spec"]["priority"] = 0
    full["items"][2]["spec"]["priority"] = 100
    write(run / "cluster.json", full)
    result = why(run, "pod/solver-1")
    assert result.code == 1
    assert "preemption makes room on desk-1" in " ".join(result.out.split())


def test_many_pods_are_shared_between_processes(run: Path) -> None:
    result = why(run, "--all-pending")
    assert (result.code, result.err) == (1, "")
    # one licence is taken, the pod that comes first takes the other
    assert "202 pods: 2 can be scheduled, 200 unschedulable" in result.out
    assert "✗ 200 pods: no free seat of matlab: 1 of 1 taken" in result.out
    assert "default/batch-0 → desk-2" in result.out


def test_it_takes_part_in_a_comparison(run: Path) -> None:
    result = kschedx(run, "diff-profiles", "default", "scheduler.json", "-s", "cluster.json")
    assert result.code == 1
    assert "LicenseSeats" in result.out


def test_it_takes_part_in_a_simulation(run: Path) -> None:
    result = kschedx(run, "simulate", "-s", "cluster.json", "--config", "scheduler.json", "-o", "json")
    assert (result.code, result.err) == (1, "")
    decided = {step["pod"]: step for step in json.loads(result.out)["steps"]}
    assert decided["default/batch-0"]["node"] == "desk-2"
    assert decided["default/web"]["outcome"] == "Scheduled"
    assert "3 node(s) had no free seat of matlab" in decided["default/solver-1"]["message"]


def test_it_is_listed_with_its_package(run: Path) -> None:
    result = kschedx(run, "plugins")
    assert result.code == 0
    *_, theirs, _ = result.out.split("\n\n")
    lines = theirs.splitlines()
    assert lines[0] == "acme-scheduling 1.2.0"
    assert [line.split()[1:] for line in lines[1:4]] == [
        ["CarbonAware", "score"],
        ["Faulty", "filter"],
        ["LicenseSeats", "preFilter,", "filter"],
    ]
    assert "cannot be imported: ModuleNotFoundError" in " ".join(theirs.split())


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("plugin", "code", "expected"),
    [
        ("Missing", 2, 'plugin "Missing" of the package acme-scheduling cannot be imported: ModuleNotFoundError'),
        ("Thing", 2, "plugin \"Thing\" is registered as 'no plugin at all', which is not a kschedx Plugin"),
        ("Faulty", 70, "LookupError: no such licence server (a defect of the plugin Faulty;"),
    ],
)
def test_a_plugin_that_does_not_work_is_an_error_with_its_name(
    run: Path, plugin: str, code: int, expected: str
) -> None:
    write(run / "scheduler.json", configuration(plugin))
    result = why(run, "pod/web")
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert expected in result.err


def test_its_reasons_are_explained(run: Path) -> None:
    for what in ("no-free-seat", "LicenseSeats"):
        result = kschedx(run, "reason", what)
        assert result.code == 0
        assert "Every licence seat of the node is taken" in result.out

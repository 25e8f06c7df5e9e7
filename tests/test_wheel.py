"""The wheel, installed without a checkout, as README.md describes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.command import ROOT

RULE = """
SPEC = {"containers": [{"name": "c", "image": "x"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}

def test_the_pod_goes_somewhere(kschedx_snapshot, placement):
    assert placement(kschedx_snapshot("cluster.yaml"), POD).nodes
"""
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")


class Installed(Struct, frozen=True):
    """An environment with the installed wheel."""

    folder: Path
    """The empty folder in which commands run."""
    site: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command with the wheel and its dependencies, without a path to a checkout."""
        env = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME")}
        packages = [path for path in sys.path if path.endswith("-packages")]
        return subprocess.run(
            [sys.executable, "-S", *map(str, command)],
            cwd=self.folder,
            env={**env, "PYTHONPATH": os.pathsep.join([str(self.site), *packages]), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    site = tmp_path_factory.mktemp("site")
    build = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--target", str(site))
    subprocess.run([sys.executable, *PIP, "install", *build, f"{ROOT}[pytest]"], check=True, capture_output=True)
    return Installed(folder=tmp_path_factory.mktemp("empty"), site=site)


def test_no_module_comes_from_the_checkout(installed: Installed) -> None:
    result = installed.run("-c", "import kschedx; print(kschedx.__file__)")
    assert Path(result.stdout.strip()).is_relative_to(installed.site), result.stderr


def test_a_pod_is_explained(installed: Installed) -> None:
    story = ROOT / "fixtures" / "gpu-pool-taints"
    result = installed.run("-m", "kschedx", "why", story / "pod.yaml", "-s", story / "cluster.yaml")
    assert (result.returncode, result.stderr) == (1, "")
    assert "unschedulable" in result.stdout


READING = """
import sys
from kschedx.cli.app import run
for line in sys.argv[1:]:
    sys.argv = ["kschedx", *line.split()]
    print(line, int(run()), flush=True)
"""


def test_data_files_are_installed(installed: Installed) -> None:
    """Each command reads another file; one process runs them all."""
    texts = {
        "profiles": "default",
        "profiles show binpack": "MostAllocated",
        "completion bash": "complete",
        "reason insufficient-resource": "NodeResourcesFit",
        "schema Explanation": "$schema",
    }
    result = installed.run("-c", READING, *texts)
    assert (result.returncode, result.stderr) == (0, "")
    rest = result.stdout
    for line, text in texts.items():
        answer, _, rest = rest.partition(f"{line} 0\n")
        assert text in answer, line


def test_the_commands_are_installed(installed: Installed) -> None:
    assert {path.name for path in (installed.site / "bin").iterdir()} >= {"kschedx", "kubectl-kschedx"}


@pytest.mark.long
def test_placement_rules_are_tested(installed: Installed) -> None:
    story = ROOT / "fixtures" / "gpu-pool-taints" / "cluster.yaml"
    (installed.folder / "cluster.yaml").write_bytes(story.read_bytes())
    (installed.folder / "test_rule.py").write_text(RULE, encoding="utf-8")
    result = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_readme_installs_kschedx_from_a_file() -> None:
    """kschedx is not published: the readme installs a folder or a file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not re.findall(r"(?:pip|pipx|uv tool) install [\"']?kschedx", readme)

"""kschedx as a plugin of kubectl: its name in usage lines, and kubectl's completions."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

from kschedx.cli import COMPLETER
from kschedx.cli.completion import PLUGIN, program_name
from tests.builders import node
from tests.command import ROOT, kschedx
from tests.test_project import PYPROJECT

CLUSTER = "fixtures/zone-full/cluster"
MAIN = "import sys\nsys.argv = sys.argv[1:]\nfrom kschedx.cli import main\nmain()"
NO_FILES = ":4"


def run_as(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kschedx under a name, as kubectl runs a program of PATH."""
    command = [sys.executable, "-c", MAIN, f"/usr/local/bin/{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def candidates(*words: str) -> list[str]:
    result = run_as(COMPLETER, *words)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


@pytest.mark.parametrize("name", [PLUGIN, COMPLETER])
def test_pip_installs_the_plugin(name: str) -> None:
    main = PYPROJECT["project"]["scripts"]["kschedx"]
    assert PYPROJECT["project"]["scripts"][name] == main
    assert callable(EntryPoint(name=name, value=main, group="console_scripts").load())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kschedx", "kschedx"),
        ("/usr/local/bin/kschedx", "kschedx"),
        ("/home/me/.krew/bin/kubectl-kschedx", "kubectl kschedx"),
        ("kubectl-kschedx.exe", "kubectl kschedx"),
        ("/opt/kubectl-kschedx/kschedx", "kschedx"),
    ],
)
def test_usage_lines_repeat_the_command(path: str, name: str) -> None:
    assert program_name(path) == name


def test_help_and_errors_have_the_name_of_the_plugin() -> None:
    assert "Usage: kubectl kschedx why " in run_as(PLUGIN, "why", "--help").stdout
    wrong = run_as(PLUGIN, "why", "--wrong")
    assert (wrong.returncode, wrong.stderr.splitlines()[-1]) == (2, "See 'kubectl kschedx why --help' for usage.")
    assert "Usage: kschedx why " in run_as("kschedx", "why", "--help").stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "-s", CLUSTER, "-n", "pay"], ["payments", NO_FILES]),
        (["why", "-o", "js"], ["json", NO_FILES]),
        (["why", "-s", ""], []),
        (["why", "-s", "a file's name", "--node", ""], []),
        (["reason", "insufficient-r"], ["insufficient-resource", NO_FILES]),
        (["--versio"], ["--version\tPrint the version.", NO_FILES]),
        (["--version"], ["--version\tPrint the version.", NO_FILES]),
    ],
    ids=" ".join,
)
def test_completions_of_kubectl(words: list[str], expected: list[str]) -> None:
    assert candidates(*words) == expected


def test_kubectl_completes_commands_with_their_summary() -> None:
    commands = dict(line.split("\t") for line in candidates("")[:-1])
    assert {"why", "reason", "profiles"} <= set(commands)
    assert all(commands.values())


def test_krew_can_install_the_built_archive(tmp_path: Path) -> None:
    for platform in ("linux-amd64", "darwin-arm64"):
        (tmp_path / f"kubectl-kschedx-1.2.3-{platform}.tar.gz").write_bytes(platform.encode())
    archives = sorted(map(str, tmp_path.iterdir()))
    command = [sys.executable, ".ci/krew_manifest.py", "1.2.3", "https://example.com/v1.2.3/", *archives]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    manifest = yaml.safe_load(result.stdout)
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("kschedx", "v1.2.3")
    darwin, linux = manifest["spec"]["platforms"]
    assert linux == {
        "selector": {"matchLabels": {"os": "linux", "arch": "amd64"}},
        "uri": "https://example.com/v1.2.3/kubectl-kschedx-1.2.3-linux-amd64.tar.gz",
        "sha256": hashlib.sha256(b"linux-amd64").hexdigest(),
        "bin": PLUGIN,
        "files": [{"from": "kubectl-kschedx/*", "to": "."}],
    }
    assert darwin["selector"]["matchLabels"] == {"os": "darwin", "arch": "arm64"}


def test_options_of_kubectl_may_stand_before_the_command(tmp_path: Path) -> None:
    shop = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), shop]}))
    after = kschedx("why", "--namespace", "shop", "web", "-s", "cluster.json", cwd=tmp_path)
    before = kschedx("--namespace", "shop", "why", "web", "-s", "cluster.json", cwd=tmp_path)
    assert (before.code, before.out) == (after.code, after.out)
    assert kschedx("--namespace=shop", "why", "web", "-s", "cluster.json", cwd=tmp_path).code == after.code == 0

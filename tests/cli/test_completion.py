"""Completions of the shells, and the scripts that request them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from kschedx.cli.shells import Shell
from kschedx.inquiry.node import Sort
from tests.api_server import FakeApiServer, kubeconfig, served
from tests.builders import Manifest, node, pod
from tests.cli.manifests import write
from tests.command import ROOT, kschedx
from tests.fork_server import fork_server

CLUSTER = "fixtures/zone-full/cluster"
ZONE_A = "gke-prod-euw4-general-a6794389-2vkf"
BIN = Path(sys.executable).parent


Offered = Callable[..., list[str]]


def completions(command: str | Path, *words: str, cwd: Path = ROOT) -> list[str]:
    """Return the completions of the last word of `kschedx WORDS`."""
    questions = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "_KSCHEDX_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["kschedx", *words]),
        "COMP_CWORD": str(len(words)),
    }
    result = subprocess.run([command], env=questions, capture_output=True, text=True, check=False, cwd=cwd)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.split()


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Offered]:
    with fork_server(tmp_path_factory.mktemp("bin")) as script:
        yield partial(completions, script)


@pytest.mark.parametrize("shell", Shell)
def test_the_command_prints_the_files(shell: Shell) -> None:
    printed = kschedx("completion", str(shell))
    assert (printed.code, printed.out, printed.err) == (0, script(shell), "")


def script(shell: Shell) -> str:
    return (ROOT / "completions" / shell.file).read_text(encoding="utf-8")


def test_every_shell_has_a_file() -> None:
    assert {path.name for path in (ROOT / "completions").iterdir()} == {shell.file for shell in Shell}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "-s", CLUSTER, "-n", "pay"], ["payments"]),
        (["why", "-s", CLUSTER, "--node", "gke-prod-euw4-general-a6794389-2"], ["gke-prod-euw4-general-a6794389-2vkf"]),
        (["why", "-s", CLUSTER, "--node", "nope"], []),
        (["why", "-o", "js"], ["json"]),
        (["why", "--kube"], ["--kube-version", "--kubeconfig"]),
        (["why", "-s", "missing.yaml", "--node", ""], []),
        (["why", "-s", "README.md", "--node", ""], []),
        (["why", "-s", "-", "--node", ""], []),
        (["why", "--node", ""], []),
        (["reason", "insufficient-r"], ["insufficient-resource"]),
        (["reason", "NodeResourcesF"], ["NodeResourcesFit"]),
        (["completion", "z"], ["zsh"]),
        (["nodes", "--sort", ""], list(Sort)),
        (["survive", "--each", "z"], ["zone"]),
        (["survive", "-s", CLUSTER, "zone="], [f"zone=europe-west4-{zone}" for zone in "abc"]),
        (["survive", "-s", CLUSTER, "nodepool="], ["nodepool=general"]),
        (["simulate", "-s", CLUSTER, "--cordon", "gke-prod-euw4-general-a6794389-2"], [ZONE_A]),
        (["drain", "-s", CLUSTER, "--taint", "gke-prod-euw4-general-a6794389-2"], [ZONE_A]),
    ],
    ids=" ".join,
)
def test_completions(words: list[str], expected: list[str], offered: Offered) -> None:
    assert offered(*words) == expected


def test_commands_are_completed() -> None:
    assert {"why", "reason", "completion"} <= set(completions("kschedx", ""))


def test_targets_are_the_pods_and_workloads_of_the_namespace(tmp_path: Path, offered: Offered) -> None:
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
    }
    of_karpenter: Manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}}
    cluster = write(tmp_path, node("a"), pod("web-0", namespace="shop"), pod("web-1"), deployment, of_karpenter)
    assert offered("why", "-s", str(cluster), "-n", "shop", "") == ["deploy/web", "node/a", "pod/web-0"]
    assert offered("why", "-s", str(cluster), "pod/") == ["pod/web-1"]
    assert offered("why", "-s", str(cluster), "no") == ["node/a", "nodepool/general"]


def test_a_name_that_a_shell_might_run_is_not_completed(tmp_path: Path, offered: Offered) -> None:
    names = ["web-0", "$(touch owned)", "`id`", "a b", "a;b", "'", '"', "\x1b[31m", "-rf", "*", "a\\b", "a\nb", "a:b"]
    cluster = write(tmp_path, *map(node, names), *(pod(name) for name in names))
    assert offered("why", "-s", str(cluster), "--node", "") == ["web-0"]
    assert offered("why", "-s", str(cluster), "") == ["node/web-0", "pod/web-0"]


def test_a_large_snapshot_is_not_read_for_completion(tmp_path: Path, offered: Offered) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    start = time.monotonic()
    assert offered("why", "-s", str(huge), "--node", "") == []
    assert time.monotonic() - start < 5


BASH = r"""
source completions/kschedx.bash
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_kschedx_completion kschedx
printf '%s\n' "${{COMPREPLY[@]}}"
"""


KUBECONFIG = {
    "contexts": [
        {"name": name, "context": {"cluster": "here", "user": "me"}}
        for name in ("prod", "arn:aws:eks:eu-west-1:1:cluster/prod", "$(id)", "a b")
    ],
    "clusters": [{"name": "here", "cluster": {"server": "https://192.0.2.1"}}],
    "users": [{"name": "me", "user": {}}],
}


def test_names_of_the_kubeconfig(tmp_path: Path, offered: Offered) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(KUBECONFIG))
    contexts = ["arn:aws:eks:eu-west-1:1:cluster/prod", "prod"]
    assert offered("why", "--kubeconfig", str(config), "--context", "") == contexts
    assert offered("why", "--kubeconfig", str(config), "--user", "") == ["me"]
    assert offered("why", "--kubeconfig", str(config), "--cluster", "h") == ["here"]
    assert offered("why", "--kubeconfig", "missing", "--context", "") == []


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (f"kschedx why -s {CLUSTER} -n pay", ["payments"]),
        (f"kschedx why --snapshot = {CLUSTER} --namespace = pay", ["payments"]),
        (f"kschedx why -s {CLUSTER} --namespace = pay", ["payments"]),
        (f"kschedx survive -s {CLUSTER} zone = europe-west4-a", ["europe-west4-a"]),
        (f"kschedx survive -s {CLUSTER} zone =", [f"europe-west4-{zone}" for zone in "abc"]),
        (f"kschedx simulate -s {CLUSTER} --scale deploy/web = 3 --cordon {ZONE_A[:-3]}", [ZONE_A]),
        ("kschedx why --kubeconfig $CONFIG --context arn : aws : e", ["eks:eu-west-1:1:cluster/prod"]),
    ],
)
def test_bash_completes(words: str, expected: list[str], tmp_path: Path) -> None:
    """Words are split as bash splits --option=value and names with colons."""
    bash = shutil.which("bash")
    assert bash
    config = tmp_path / "config"
    config.write_text(json.dumps(KUBECONFIG))
    env = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": "/", "CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [bash, "--norc", "-c", BASH.format(words=words)], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.stdout.split(), result.stderr) == (expected, "")


@pytest.mark.parametrize("shell", Shell)
def test_the_shell_evaluates_no_completion(shell: Shell) -> None:
    assert "eval" not in script(shell)


def test_names_in_an_archive_and_a_folder_with_circular_links(tmp_path: Path, offered: Offered) -> None:
    (tmp_path / "cluster").mkdir()
    cluster = write(tmp_path / "cluster", node("node-a"))
    for name in "abc":
        (cluster.parent / name).symlink_to(".")
    assert offered("why", "-s", "cluster", "--node", "", cwd=tmp_path) == ["node-a"]
    with zipfile.ZipFile(tmp_path / "cluster.zip", "w") as archive:
        archive.write(cluster, cluster.name)
    assert offered("why", "-s", "cluster.zip", "--node", "", cwd=tmp_path) == ["node-a"]


def test_names_of_the_live_cluster(tmp_path: Path, offered: Offered) -> None:
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
    }
    shop: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    api = FakeApiServer([node("node-a"), pod("web-0", namespace="shop"), pod("api-0"), deployment, shop])
    with served(api) as url:
        live = ("why", "--kubeconfig", str(kubeconfig(tmp_path, url)))
        assert offered(*live, "") == ["deploy/web", "node/node-a", "pod/web-0"]
        api.requests.clear()
        assert offered(*live, "-n", "default", "pod/") == ["pod/api-0"]
        assert [(request.method, request.path) for request in api.requests] == [
            ("GET", "/api/v1/namespaces/default/pods")
        ]
        assert offered(*live, "--node", "node") == ["node-a"]
        assert offered(*live, "-n", "sh") == ["shop"]
    assert offered(*live, "pod/") == []

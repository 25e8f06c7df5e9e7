"""The screens of `kschedx doctor`, compared with expected files, and rules of every screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.command import CommandResult, kschedx
from tests.conftest import Golden
from tests.doctor.dumps import Cluster, add_pod, save, whole
from tests.sources.dumps import forms

FOLDER = Path(__file__).parent
MOST_LINES = 40


def _whole(folder: Path) -> None:
    save(folder / "cluster.json", whole().values())


def _inspected(folder: Path) -> None:
    forms.folder(folder / "must-gather", forms.must_gather())


def _support_bundle(folder: Path) -> None:
    (folder / "bundle.tar").write_bytes(forms.tar(forms.support_bundle()))


def _simulator(folder: Path) -> None:
    (folder / "export.json").write_bytes(forms.as_json(forms.simulator_export()))


def _system_only(folder: Path) -> None:
    """Return a file per kind, with pods of system namespaces only."""
    cluster = whole()
    for number in range(40):
        cluster.put("v1", "Namespace", f"team-{number:02}")
        name = f"team-{number:02}/api-{number:x}d7b9"
        cluster.put("apps/v1", "ReplicaSet", name, spec={"replicas": 3}, status={"replicas": 3})
    for title in [title for title in cluster if title.startswith("Pod shop/")]:
        del cluster[title]
    cluster.put("v1", "ConfigMap", "kube-system/kube-proxy", data={})
    for kind in ("Node", "Namespace", "ReplicaSet", "StatefulSet", "DaemonSet", "Service", "ConfigMap", "Pod"):
        save(folder / "dump" / f"{kind.lower()}s.json", cluster.of(kind))


def _two_clusters(folder: Path) -> None:
    save(folder / "nodes.json", whole(prefix="gke-pool", cloud="gce").of("Node", "CSINode"))
    other = whole()
    del other["Node node-3"], other["Node node-2"]
    other.change("Namespace kube-system", "metadata.uid", "9a8b7c6d")
    save(folder / "rest.json", other.values())
    save(folder / "spaces.json", whole().of("Namespace"))


def _two_times(folder: Path) -> None:
    before, after = whole(), whole()
    for number in (1, 2, 3):
        before.change(f"Node node-{number}", "status.conditions.0.lastHeartbeatTime", "2026-11-18T16:21:09Z")
    save(folder / "nodes.json", before.of("Node", "CSINode"))
    for title in after:
        after.change(title, "metadata.resourceVersion", "2077")
    save(folder / "cluster.json", [item for item in after.values() if item["kind"] not in ("Node", "CSINode")])
    save(folder / "pods.json", before.of("Pod"))


def _broken_file(folder: Path) -> None:
    cluster = whole()
    cluster.change("Pod shop/db-0", "spec.containers.0.resources.requests.cpu", "1 core")
    save(folder / "dump" / "cluster.json", cluster.values())
    (folder / "dump" / "notes.yaml").write_text("NAME    STATUS   AGE\nnode-01   Ready   3d\n", encoding="utf-8")
    (folder / "dump" / "policies.json").write_text('{"apiVersion": "v1", "kind": "List", "items": [\n', "utf-8")


def _orphans(folder: Path) -> None:
    cluster = whole()
    for number in range(8):
        add_pod(cluster, f"shop/web-5d7b9-x{number}", "ReplicaSet web-5d7b9", f"nodes-{number}")
    save(folder / "cluster.json", cluster.values())


def _everything(folder: Path) -> None:
    """Return a dump with more findings than fit on a screen."""
    _two_times(folder)
    other = whole(prefix="gke-pool", cloud="gce")
    other.change("Namespace kube-system", "metadata.uid", "9a8b7c6d")
    other.change("Node gke-pool-1", "status.nodeInfo.kubeletVersion", "v1.29.1")
    other.put("v1", "Secret", "shop/token", data={})
    for number in range(30):
        add_pod(other, f"shop/lost-{number}", "ReplicaSet lost", f"unknown-{number}")
        other.put("example.org/v1", f"Widget{number}", f"shop/{number}")
    save(folder / "other.json", other.values())
    (folder / "broken.yaml").write_text("kind: [\n", encoding="utf-8")
    _without(other, "Service", "StorageClass", "PriorityClass")


def _without(cluster: Cluster, *kinds: str) -> None:
    for title in [title for title in cluster if title.split(" ")[0] in kinds]:
        del cluster[title]


STORIES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "whole": (_whole, ("cluster.json",)),
    "system-only": (_system_only, ("dump",)),
    "must-gather": (_inspected, ("must-gather",)),
    "support-bundle": (_support_bundle, ("bundle.tar",)),
    "simulator": (_simulator, ("export.json",)),
    "two-clusters": (_two_clusters, ("nodes.json", "rest.json", "spaces.json")),
    "two-times": (_two_times, ("nodes.json", "cluster.json", "pods.json")),
    "broken-file": (_broken_file, ("dump",)),
    "orphans": (_orphans, ("cluster.json",)),
    "everything": (_everything, ("cluster.json", "pods.json", "nodes.json", "other.json", "broken.yaml")),
}
"""Expected file to the function that writes the dump, and the values of --snapshot."""


def run_doctor(name: str, folder: Path, *arguments: str, columns: int = 80) -> CommandResult:
    make, paths = STORIES[name]
    make(folder)
    named = [word for path in paths for word in ("--snapshot", path)]
    return kschedx("doctor", *named, *arguments, columns=columns, cwd=folder)


@pytest.mark.parametrize("name", STORIES)
def test_screen(name: str, tmp_path: Path, golden: Golden) -> None:
    result = run_doctor(name, tmp_path)
    assert (result.code, result.err) == (0 if name == "whole" else 1, "")
    golden.check(FOLDER / f"{name}.txt", result.out)


@pytest.mark.parametrize("output", ["json", "yaml", "wide"])
def test_other_outputs(output: str, tmp_path: Path, golden: Golden) -> None:
    result = run_doctor("two-clusters", tmp_path, "-o", output)
    assert (result.code, result.err) == (1, "")
    golden.check(FOLDER / f"two-clusters-{output}.txt", result.out)


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_screen_fits(name: str, columns: int, tmp_path: Path) -> None:
    lines = run_doctor(name, tmp_path, columns=columns).out.splitlines()
    rows = sum(max(-(-cell_len(line) // columns), 1) for line in lines)
    is_command = ("  kubectl get ", "  kschedx ")
    assert all(cell_len(line) <= columns for line in lines if not line.startswith(is_command))
    assert columns < 80 or rows <= MOST_LINES

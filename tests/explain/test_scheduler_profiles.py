"""Profiles of further kube-schedulers, which ConfigMaps of the cluster hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import write
from tests.command import kschedx

PACKED = """
- schedulerName: packer
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
"""
SORTED = """
- schedulerName: packer
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    permit: {enabled: [{name: Coscheduling}]}
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}
"""
EXTENDED = f"{PACKED}extenders: [{{urlPrefix: 'http://localhost:1'}}]"
ROOMY = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def cpu(amount: str) -> list[Manifest]:
    return [{"name": "main", "image": "app", "resources": {"requests": {"cpu": amount}}}]


CLUSTER = [
    node("n1", allocatable=ROOMY),
    node("n2", allocatable=ROOMY),
    pod("a", on="n1", containers=cpu("2")),
    pod("x", containers=cpu("1"), schedulerName="packer"),
    pod("y", containers=cpu("1")),
]


def config_map(profiles: str, name: str = "packing", key: str = "scheduler.yaml") -> Manifest:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:"
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: head + profiles}}


@pytest.mark.parametrize(
    ("config_maps", "answer"),
    [
        ([], "? default/x: no scheduler"),
        ([config_map(PACKED)], "✓ default/x would be assigned to n1"),
        ([config_map(SORTED)], "✓ default/x would be assigned to n2"),
        ([config_map(PACKED), config_map(PACKED, "older")], "? default/x: no scheduler"),
        ([config_map(EXTENDED)], "? default/x: no scheduler"),
        ([config_map(PACKED.replace("MostAllocated", "Most"))], "? default/x: no scheduler"),
        ([config_map("\n- [", key="broken")], "? default/x: no scheduler"),
    ],
    ids=["none", "packed", "with a queue of its own", "two", "with an extender", "invalid", "no YAML"],
)
def test_a_config_map_shows_the_profile_of_another_scheduler(
    config_maps: list[Manifest], answer: str, tmp_path: Path
) -> None:
    write(tmp_path, *CLUSTER, *config_maps, name="cluster.yaml")
    result = kschedx("why", "x", "-s", "cluster.yaml", cwd=tmp_path, columns=200)
    assert result.out.startswith(answer)
    is_found = answer.startswith("✓")
    assert ("profile packer is that of ConfigMap kube-system/packing; --config FILE" in result.out) is is_found
    assert "ConfigMap" not in kschedx("why", "y", "-s", "cluster.yaml", cwd=tmp_path).out
    simulated = kschedx("simulate", "-s", "cluster.yaml", cwd=tmp_path).out
    assert ("✓ default/po/x" in simulated) is is_found
    assert kschedx("snapshot", "-s", "cluster.yaml", "-o", "small.json", cwd=tmp_path).code == 0
    assert kschedx("why", "x", "-s", "small.json", cwd=tmp_path).out.startswith(answer)


def test_the_profile_of_openshift_is_the_default_one(tmp_path: Path) -> None:
    own = config_map(PACKED.replace("packer", "default-scheduler"), "config")
    write(tmp_path, *CLUSTER, own, config_map(PACKED), name="cluster.yaml")
    assert "would be assigned to n2" in kschedx("why", "y", "-s", "cluster.yaml", cwd=tmp_path).out
    own = {**own, "metadata": {"name": "config", "namespace": "openshift-kube-scheduler"}}
    write(tmp_path, *CLUSTER, own, config_map(PACKED), name="cluster.yaml")
    result = kschedx("why", "y", "-s", "cluster.yaml", cwd=tmp_path, columns=200)
    assert result.out.startswith("✓ default/y would be assigned to n1")
    assert "profile default-scheduler is that of ConfigMap openshift-kube-scheduler/config" in result.out


def test_a_snapshot_has_only_the_configurations_of_such_a_config_map(tmp_path: Path) -> None:
    packing = config_map(PACKED)
    at(packing, "data")["token"] = "hunter2"
    write(tmp_path, *CLUSTER, packing, name="cluster.yaml")
    assert kschedx("snapshot", "-s", "cluster.yaml", "-o", "small.json", cwd=tmp_path).code == 0
    written = (tmp_path / "small.json").read_text()
    assert ("KubeSchedulerConfiguration" in written, "hunter2" in written) == (True, False)


@pytest.mark.parametrize("flags", [["--config=/etc/s.yaml"], ["--config", "/etc/s.yaml"], ["--leader-elect=true"]])
def test_a_note_names_the_file_of_kube_scheduler_that_was_not_read(flags: list[str], tmp_path: Path) -> None:
    runs = [{"name": "main", "command": ["kube-scheduler", *flags]}]
    write(
        tmp_path, *CLUSTER, pod("kube-scheduler-n1", namespace="kube-system", on="n1", containers=runs), name="c.yaml"
    )
    assert kschedx("snapshot", "-s", "c.yaml", "-o", "small.json", cwd=tmp_path).code == 0
    for file in ("c.yaml", "small.json"):
        result = kschedx("why", "y", "-s", file, cwd=tmp_path, columns=200)
        is_noted = "kube-scheduler runs with --config=/etc/s.yaml, which was not read" in result.out
        assert is_noted is ("--config" in flags[0])
    (tmp_path / "config.yaml").write_text(at(config_map(PACKED), "data")["scheduler.yaml"])
    given = kschedx("why", "x", "-s", "c.yaml", "--config", "config.yaml", cwd=tmp_path)
    assert (given.code, "not read" in given.out) == (0, False)


def test_a_scheduler_that_does_not_run_comes_before_its_profile(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "packer", "uid": "s", "controller": True}
    waits = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [waits]}
    down = pod("packer-0", on="n2", metadata={"ownerReferences": [owner]}, status=status)
    write(tmp_path, *CLUSTER, config_map(PACKED), down, name="cluster.yaml")
    for command in ("why x", "why --all-pending", "simulate"):
        result = kschedx(*command.split(), "-s", "cluster.yaml", cwd=tmp_path, columns=200)
        assert (result.code, "packer-scheduler does not run" in result.out) == (1, True), result.out

"""The screens of `kschedx diff-profiles`, compared with expected files, and rules of every screen."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from kschedx.explain.difference import Effect
from tests.builders import node
from tests.command import CommandResult, kschedx
from tests.conftest import Golden
from tests.device_builders import claim, claiming, device, device_class, resource_slice

FOLDER = Path(__file__).parent
MOST_LINES = 40

WEB = ("-s", "fixtures/web-rollout/cluster")

COMMANDS: dict[str, tuple[str, ...]] = {
    "weight": ("default", "balanced", *WEB, "--all"),
    "binpack": ("default", "binpack", "-s", "fixtures/bin-packing/cluster.yaml", "--all"),
    "own-file": (
        "default",
        "fixtures/bin-packing/scheduler.yaml",
        "fixtures/bin-packing/pod.yaml",
        "-s",
        "fixtures/bin-packing/cluster.yaml",
    ),
    "filter": ("default", "hard-zone-spread", "-s", "fixtures/volume-local-cordoned/cluster.yaml", "--all"),
    "feasible-nodes": ("default", "hard-zone-spread", *WEB, "-l", "app=web", "-A"),
    "preemption": (
        "default",
        "no-preemption",
        "fixtures/preemption-pdb/pod.yaml",
        "-s",
        "fixtures/preemption-pdb/cluster",
    ),
    "release-rejects": (
        "--kube-version",
        "1.26..1.36",
        "fixtures/volume-attach-limit/pod.yaml",
        "-s",
        "fixtures/volume-attach-limit/cluster",
    ),
    "release-message": (
        "--kube-version",
        "1.30..1.36",
        "no-preemption",
        "fixtures/gpu-pool-taints/pod.yaml",
        "-s",
        "fixtures/gpu-pool-taints/cluster.yaml",
    ),
    "release-scores": ("default-1.35", "default-1.36", *WEB, "--all", "--all-pending"),
    "nothing": ("default", "no-image-locality", "fixtures/tie/pod.yaml", "-s", "fixtures/tie/cluster.yaml"),
    "same": ("default", "default-1.36", *WEB, "--all"),
    "configuration": ("default", "spread-first"),
    "two-profiles": ("default", "two-profiles"),
    "policies": ("policy-1.0", "policy-1.13", "-s", "fixtures/tie/cluster.yaml", "--all"),
    "stories": ("default", "balanced", *WEB, "--pod", "shop/search-api-wpn7dxsnmv-jdk92"),
    "stories-rejected": (
        "--kube-version",
        "1.26..1.36",
        "--pod",
        "fixtures/volume-attach-limit/pod.yaml",
        "-s",
        "fixtures/volume-attach-limit/cluster",
    ),
}
"""Name of the expected file to the arguments of `kschedx diff-profiles`."""

OTHER_OUTPUTS = [("weight", "wide"), ("filter", "markdown"), ("filter", "yaml")]

each_command = pytest.mark.parametrize("name", COMMANDS)
each_of_pods = pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if "-s" in command and "--pod" not in command]
)


@cache
def run(name: str, *options: str) -> CommandResult:
    return kschedx("diff-profiles", *COMMANDS[name], *options)


def screen(name: str, *options: str) -> str:
    result = run(name, *options)
    typed = " ".join(("$ kschedx diff-profiles", *COMMANDS[name], *options))
    return f"{typed}\n{result.out}{result.err}--- exit code {result.code}\n"


@each_command
def test_the_screen_is_as_expected(name: str, golden: Golden) -> None:
    golden.check(FOLDER / f"{name}.txt", screen(name))


@pytest.mark.parametrize(("name", "output"), OTHER_OUTPUTS)
def test_other_outputs_are_as_expected(name: str, output: str, golden: Golden) -> None:
    golden.check(FOLDER / f"{name}-{output}.txt", screen(name, "-o", output))


def test_every_expected_file_has_its_command() -> None:
    outputs = {f"{name}-{output}" for name, output in OTHER_OUTPUTS}
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*COMMANDS, *outputs}


@each_command
def test_a_screen_fits(name: str) -> None:
    lines = run(name).out.splitlines()
    assert not [line for line in lines if cell_len(line) > 100 or line != line.rstrip()]
    assert len(lines) <= MOST_LINES or "--pod" in COMMANDS[name]


@each_of_pods
def test_the_exit_code_shows_whether_pods_differ(name: str) -> None:
    pods = json.loads(run(name, "-o", "json").out)["pods"]
    assert run(name).code == (1 if pods["different"] else 0)


@pytest.mark.parametrize(("version", "code"), [("1.33", 3), ("1.34", 0)])
def test_pods_with_devices_are_undecided_where_a_simulation_leaves_them(
    version: str, code: int, tmp_path: Path
) -> None:
    cluster = [node("a"), resource_slice("a", device("d0")), device_class(), claim("gpu"), claiming("gpu")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": cluster}))
    where = ("-s", tmp_path / "cluster.json", "--kube-version", version)
    assert kschedx("simulate", *where).code == code
    assert kschedx("diff-profiles", "default", "default", "--all-pending", *where).code == code


@each_of_pods
def test_the_numbers_of_the_document_add_up(name: str) -> None:
    pods = json.loads(run(name, "-o", "json").out)["pods"]
    listed = [pod for group in pods["groups"] for pod in group["pods"]]
    assert pods["compared"] == pods["same"] + pods["different"] + len(pods["undecided"])
    assert len(listed) == pods["different"] == len({pod["pod"] for pod in listed})
    order = [effect.value for effect in Effect]
    effects = [order.index(group["effect"]) for group in pods["groups"]]
    assert effects == sorted(effects)
    for pod in listed:
        turned = {turn["plugin"]: turn for turn in pod["turnedBy"]}
        assert all(turn["swing"] == turn["after"] - turn["before"] for turn in turned.values())
        if turned and pod["effects"][0] == "other-node":
            # the old node led before and the new one leads now, so the swing is more than nothing
            assert sum(turn["swing"] for turn in turned.values()) > 0


@pytest.mark.sample(3)
@each_command
def test_the_reverse_comparison_has_the_same_differences(name: str) -> None:
    """A comparison of B with A finds the same differences as one of A with B."""
    command = list(COMMANDS[name])
    if command[0] == "--kube-version":
        old, _, new = command[1].partition("..")
        command[1] = f"{new}..{old}"
    else:
        command[:2] = command[1::-1]
    assert kschedx("diff-profiles", *command).code == run(name).code


def test_several_processes_give_the_same_result() -> None:
    snapshot = ("-s", "fixtures/web-rollout/cluster", "-s", "fixtures/fragmentation/cluster")
    command = ("diff-profiles", "default", "binpack", *snapshot, "--all", "-o", "json")
    assert kschedx(*command, "-j", "1").out == kschedx(*command, "-j", "3").out


@pytest.mark.parametrize(
    ("names", "is_noted"), [(["batch"], True), (["batch", "default-scheduler"], False), (["default-scheduler"], False)]
)
def test_a_missing_profile_is_noted(names: list[str], is_noted: bool, tmp_path: Path) -> None:
    profiles = [{"schedulerName": name} for name in names]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    (tmp_path / "new.json").write_text(json.dumps(configuration))
    result = kschedx("diff-profiles", "default", "new.json", cwd=tmp_path)
    note = "new.json has no profile for default-scheduler, whose pods it would leave Pending; batch is compared instead"
    assert (note in result.err) is is_noted

"""--extenders on the command line: called, recorded, read again, and nobody asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import kschedx
from tests.extenders.conftest import GpuShare

CLUSTER = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"team": "ml"}, "annotations": {"acme.example/rack": "r1"}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }
        for name in ("node-a", "node-b")
    ]
    + [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "infer", "namespace": "ml", "uid": "1", "annotations": {"acme.example/why": "x"}},
            "spec": {"containers": [{"name": "c", "command": ["serve"], "resources": {"limits": {"gpu/mem": "2"}}}]},
            "status": {"phase": "Pending"},
        },
    ],
}


@pytest.fixture
def files(tmp_path: Path, gpu_share: GpuShare) -> tuple[str, str]:
    """The cluster, and a configuration with the extender."""
    cluster, config = tmp_path / "cluster.json", tmp_path / "scheduler.json"
    cluster.write_text(json.dumps(CLUSTER))
    extender = {
        "urlPrefix": gpu_share.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "gpu/mem", "ignoredByScheduler": True}],
    }
    manifest = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    config.write_text(json.dumps(manifest))
    return str(cluster), str(config)


def why(files: tuple[str, str], *options: str) -> Any:
    return kschedx("why", "infer", "-n", "ml", "-s", files[0], "--config", files[1], *options)


def test_nobody_is_asked_unless_somebody_says_so(files: tuple[str, str], gpu_share: GpuShare) -> None:
    ran = why(files)
    assert ran.code == 3
    assert f"the extender at {gpu_share.url}, not called, could reject it" in " ".join(ran.out.split())
    assert not gpu_share.asked


def test_an_extender_that_is_not_interested_changes_nothing(files: tuple[str, str], gpu_share: GpuShare) -> None:
    plain = json.loads(json.dumps(CLUSTER).replace("gpu/mem", "memory"))
    Path(files[0]).write_text(json.dumps(plain))
    ran = why(files, "-o", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["extenders"] == {"order": [0], "interested": [False], "called": False}


def test_what_the_plugins_reject_stands_without_the_extender(files: tuple[str, str]) -> None:
    Path(files[0]).write_text(json.dumps(CLUSTER).replace('"cpu": "4"', '"cpu": "0"').replace('"10"', '"0"'))
    ran = why(files)
    assert ran.code == 1
    assert "was not called: the answer does not depend on it" in " ".join(ran.out.split())


def test_called(files: tuple[str, str], gpu_share: GpuShare) -> None:
    gpu_share.refused = {"node-a": "no card"}
    ran = why(files, "--extenders", "call")
    assert ran.code == 0, ran.err
    assert f'refused by the extender {gpu_share.url}: "no card"' in " ".join(ran.out.split())
    ((path, question),) = gpu_share.asked
    assert path == "/gpu/filter"
    assert question["NodeNames"] == ["node-a", "node-b"]
    sent = question["Pod"]
    assert sent["metadata"]["annotations"] == {"acme.example/why": "x"}
    assert sent["spec"]["containers"][0]["command"] == ["serve"]


def test_recorded_and_read_again(files: tuple[str, str], gpu_share: GpuShare, tmp_path: Path) -> None:
    gpu_share.preferred = {"node-b": 7}
    recording = str(tmp_path / "answers.json")
    first = why(files, "--extenders", f"record={recording}", "-o", "json")
    assert first.code == 0, first.err
    items = list(gpu_share.asked)
    assert {path for path, _ in items} == {"/gpu/filter", "/gpu/prioritize"}, "bound is nothing"
    assert [path for path, _ in items] == ["/gpu/filter", "/gpu/prioritize"]
    again = why(files, "--extenders", recording, "-o", "json")
    assert again.out == first.out
    assert gpu_share.asked == items
    assert json.loads(again.out)["bestNodes"] == ["node-b"]


def test_a_recording_without_the_question(files: tuple[str, str], tmp_path: Path) -> None:
    recording = tmp_path / "answers.json"
    recording.write_text(json.dumps({"apiVersion": "kschedx/v1", "kind": "ExtenderAnswers", "answers": []}))
    ran = why(files, "--extenders", str(recording))
    assert ran.code == 3
    assert "has no answer of" in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kind": "List", "apiVersion": "v1", "items": []}', "holds no ExtenderAnswers"),
        (
            '{"kind": "ExtenderAnswers", "apiVersion": "kschedx/v1", "answers": [{"url": 1}]}',
            "no recording of extenders",
        ),
        ("{", "not valid"),
    ],
)
def test_what_is_no_recording(files: tuple[str, str], tmp_path: Path, text: str, words: str) -> None:
    recording = tmp_path / "answers.json"
    recording.write_text(text)
    ran = why(files, "--extenders", str(recording))
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_answers_in_a_snapshot(files: tuple[str, str], gpu_share: GpuShare, tmp_path: Path) -> None:
    gpu_share.refused = {"node-a": "no card", "node-b": "no card"}
    kept = str(tmp_path / "kept.json.gz")
    ran = kschedx("snapshot", "-s", files[0], "-o", kept, "--config", files[1], "--extenders", "record")
    assert ran.code == 0, ran.err
    count = len(gpu_share.asked)
    ran = why((kept, files[1]), "--extenders", kept)
    assert ran.code == 1
    assert "2 no card" in ran.out
    assert len(gpu_share.asked) == count


@pytest.mark.parametrize(
    "options",
    [
        ("--extenders", "call", "--config", "x"),
        ("--extenders", "record"),
        ("--config", "x"),
        ("--extenders", "record", "--config", "x", "--anonymize"),
    ],
    ids=" ".join,
)
def test_options_of_a_snapshot_that_do_not_go_together(files: tuple[str, str], options: tuple[str, ...]) -> None:
    ran = kschedx("snapshot", "-s", files[0], "-o", "-", *options)
    assert (ran.code, ran.out) == (2, "")


def test_many_pods_and_both_sides_of_a_change(files: tuple[str, str], gpu_share: GpuShare) -> None:
    gpu_share.refused = {"node-a": "no card", "node-b": "no card"}
    many = kschedx("why", "--all-pending", "-s", files[0], "--config", files[1])
    assert many.code == 3
    assert "undecided" in many.out
    many = kschedx("why", "--all-pending", "-s", files[0], "--config", files[1], "--extenders", "call")
    assert many.code == 1
    assert "no card" in many.out
    sides = ("diff-profiles", "default", files[1], "-s", files[0], "--all-pending")
    assert kschedx(*sides).code == 3
    assert kschedx(*sides, "--extenders", "call").code == 1

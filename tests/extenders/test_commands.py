"""The option --extenders: call, record, replay, and no call."""

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
    """Return the paths of the cluster and of a configuration with the extender."""
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


def test_extenders_are_not_called_by_default(files: tuple[str, str], gpu_share: GpuShare) -> None:
    answer = why(files)
    assert answer.code == 3
    assert f"the extender at {gpu_share.url}, not called, could reject it" in " ".join(answer.out.split())
    assert not gpu_share.requests


def test_an_uninterested_extender_changes_nothing(files: tuple[str, str], gpu_share: GpuShare) -> None:
    cluster_without_gpu = json.loads(json.dumps(CLUSTER).replace("gpu/mem", "memory"))
    Path(files[0]).write_text(json.dumps(cluster_without_gpu))
    answer = why(files, "-o", "json")
    assert answer.code == 0
    assert json.loads(answer.out)["extenders"] == {"order": [0], "interested": [False], "called": False}


def test_a_rejection_by_plugins_needs_no_extender(files: tuple[str, str]) -> None:
    Path(files[0]).write_text(json.dumps(CLUSTER).replace('"cpu": "4"', '"cpu": "0"').replace('"10"', '"0"'))
    answer = why(files)
    assert answer.code == 1
    assert "was not called: the answer does not depend on it" in " ".join(answer.out.split())


def test_an_extender_is_called(files: tuple[str, str], gpu_share: GpuShare) -> None:
    gpu_share.rejections = {"node-a": "no card"}
    answer = why(files, "--extenders", "call")
    assert answer.code == 0, answer.err
    assert f'refused by the extender {gpu_share.url}: "no card"' in " ".join(answer.out.split())
    ((path, body),) = gpu_share.requests
    assert path == "/gpu/filter"
    assert body["NodeNames"] == ["node-a", "node-b"]
    sent = body["Pod"]
    assert sent["metadata"]["annotations"] == {"acme.example/why": "x"}
    assert sent["spec"]["containers"][0]["command"] == ["serve"]


def test_recorded_answers_are_replayed(files: tuple[str, str], gpu_share: GpuShare, tmp_path: Path) -> None:
    gpu_share.scores = {"node-b": 7}
    recording = str(tmp_path / "answers.json")
    recorded = why(files, "--extenders", f"record={recording}", "-o", "json")
    assert recorded.code == 0, recorded.err
    items = list(gpu_share.requests)
    assert {path for path, _ in items} == {"/gpu/filter", "/gpu/prioritize"}, "nothing is bound"
    assert [path for path, _ in items] == ["/gpu/filter", "/gpu/prioritize"]
    replayed = why(files, "--extenders", recording, "-o", "json")
    assert replayed.out == recorded.out
    assert gpu_share.requests == items
    assert json.loads(replayed.out)["bestNodes"] == ["node-b"]


def test_a_recording_without_the_request(files: tuple[str, str], tmp_path: Path) -> None:
    recording = tmp_path / "answers.json"
    recording.write_text(json.dumps({"apiVersion": "kschedx/v1", "kind": "ExtenderAnswers", "answers": []}))
    answer = why(files, "--extenders", str(recording))
    assert answer.code == 3
    assert "has no answer of" in answer.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "List", "apiVersion": "v1", "items": []}', "holds no ExtenderAnswers"),
        (
            '{"kind": "ExtenderAnswers", "apiVersion": "kschedx/v1", "answers": [{"url": 1}]}',
            "no recording of extenders",
        ),
        ("{", "not valid"),
    ],
)
def test_invalid_recordings(files: tuple[str, str], tmp_path: Path, text: str, expected: str) -> None:
    recording = tmp_path / "answers.json"
    recording.write_text(text)
    answer = why(files, "--extenders", str(recording))
    assert answer.code == 2
    assert expected in answer.err
    assert "Traceback" not in answer.err


def test_a_snapshot_contains_answers(files: tuple[str, str], gpu_share: GpuShare, tmp_path: Path) -> None:
    gpu_share.rejections = {"node-a": "no card", "node-b": "no card"}
    snapshot = str(tmp_path / "kept.json.gz")
    answer = kschedx("snapshot", "-s", files[0], "-o", snapshot, "--config", files[1], "--extenders", "record")
    assert answer.code == 0, answer.err
    count = len(gpu_share.requests)
    answer = why((snapshot, files[1]), "--extenders", snapshot)
    assert answer.code == 1
    assert "2 no card" in answer.out
    assert len(gpu_share.requests) == count


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
def test_conflicting_options_of_snapshot(files: tuple[str, str], options: tuple[str, ...]) -> None:
    answer = kschedx("snapshot", "-s", files[0], "-o", "-", *options)
    assert (answer.code, answer.out) == (2, "")


def test_extenders_with_all_pending_and_diff_profiles(files: tuple[str, str], gpu_share: GpuShare) -> None:
    gpu_share.rejections = {"node-a": "no card", "node-b": "no card"}
    answer = kschedx("why", "--all-pending", "-s", files[0], "--config", files[1])
    assert answer.code == 3
    assert "undecided" in answer.out
    answer = kschedx("why", "--all-pending", "-s", files[0], "--config", files[1], "--extenders", "call")
    assert answer.code == 1
    assert "no card" in answer.out
    arguments = ("diff-profiles", "default", files[1], "-s", files[0], "--all-pending")
    assert kschedx(*arguments).code == 3
    assert kschedx(*arguments, "--extenders", "call").code == 1

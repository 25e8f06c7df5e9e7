"""A question in parts: `--shard` and `kschedx merge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kschedx.inquiry.profile_difference import Shard
from tests.cli.manifests import NODE, changed, small_pod, write
from tests.command import kschedx

WHY = ("why", "--all-pending", "-o", "json")
DIFF = ("diff-profiles", "default", "no-preemption", "--all-pending", "-o", "json")
MOVED = ("diff-profiles", "default", "binpack", "--all", "-o", "json")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    nodes = [NODE, changed(NODE, "metadata.name", "node-02")]
    pending = [small_pod(f"web-{number}", "99" if number % 5 == 4 else "1") for number in range(11)]
    running = [changed(small_pod(f"run-{number}"), "spec.nodeName", "node-01") for number in range(3)]
    return write(tmp_path, *nodes, *pending, *running)


@pytest.mark.sample(4)
@pytest.mark.parametrize("question", [WHY, DIFF, MOVED], ids=" ".join)
@pytest.mark.parametrize("of", [3, 1, 20])
def test_merged_parts_equal_the_whole(cluster: Path, tmp_path: Path, question: tuple[str, ...], of: int) -> None:
    whole = kschedx(*question, "-s", cluster)
    parts = []
    for index in range(1, of + 1):
        part = tmp_path / f"{index:02}.json"
        part.write_text(kschedx(*question, "-s", cluster, "--shard", f"{index}/{of}").out)
        parts.append(part)
    merged = kschedx("merge", *reversed(parts))
    assert merged.out == whole.out
    assert merged.code == 0


@pytest.mark.parametrize("of", range(1, 12))
def test_every_row_is_in_exactly_one_part(of: int) -> None:
    for rows in map(list, map(range, range(12))):
        check_parts(rows, of)


def check_parts(rows: list[int], of: int) -> None:
    parts = [Shard(index=index, of=of).part(rows) for index in range(1, of + 1)]
    assert [row for part in parts for row in part] == rows
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_parts_of_different_answers_are_refused(cluster: Path, tmp_path: Path) -> None:
    def part(name: str, *arguments: str) -> Path:
        path = tmp_path / name
        path.write_text(kschedx(*arguments, "-s", cluster).out)
        return path

    first = part("1.json", *WHY, "--shard", "1/3")
    third = part("3.json", *WHY, "--shard", "3/3")
    again = part("again.json", *WHY, "--shard", "1/3")
    other = part("other.json", *DIFF, "--shard", "2/3")
    whole = part("whole.json", *WHY)
    text = tmp_path / "text.json"
    text.write_text("[")
    for files, result in [
        ((first, third), "error: parts are missing: 2/3\n"),
        ((first, other, third), f"error: {other}: is a part of another answer than {first}\n"),
        ((whole,), f"error: {whole}: not a part of an answer as --shard writes it\n"),
        ((tmp_path / "nowhere",), f"error: {tmp_path / 'nowhere'}: cannot be read: no such file or directory\n"),
    ]:
        outcome = kschedx("merge", *files)
        assert (outcome.code, outcome.err) == (2, result)
    assert "not valid JSON" in kschedx("merge", text).err
    second = part("2.json", *WHY, "--shard", "2/3")
    assert kschedx("merge", first, second, third, again).err.endswith(f"the same part as {first}: 1/3\n")
    assert json.loads(second.read_text())["shard"] == {"index": 2, "of": 3}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((*WHY, "--shard", "0/3"), '--shard: found "0/3", allowed is I/N, with I from 1 to N'),
        ((*WHY, "--shard", "4"), '--shard: found "4", allowed is I/N, with I from 1 to N'),
        (("why", "--all-pending", "--shard", "1/2"), "--shard needs -o json, for kschedx merge"),
        (("why", "pod/web-0", "-o", "json", "--shard", "1/2"), "--shard needs several pods: --all-pending or -l"),
    ],
)
def test_bad_input(cluster: Path, arguments: tuple[str, ...], expected: str) -> None:
    result = kschedx(*arguments, "-s", cluster)
    assert (result.code, result.err) == (2, f"error: {expected}\n")

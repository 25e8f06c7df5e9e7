"""A question to many clusters."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.cli.manifests import BIG_POD, NODE, POD, write
from tests.command import kschedx


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    folder = tmp_path / "fleet"
    folder.mkdir()
    write(folder, NODE, POD, name="a.yaml")
    write(folder, NODE, BIG_POD, name="b.yaml")
    (folder / "c.yaml").write_text("kind: Nothing\n")
    return folder


def test_a_cluster_that_cannot_be_read_is_a_row(fleet: Path) -> None:
    result = kschedx("fleet", "--snapshots", fleet, "-j", "1", "-o", "json", "why", "--all-pending")
    rows = json.loads(result.out)["clusters"]
    assert [(Path(row["cluster"]).name, row["exitCode"]) for row in rows] == [
        ("a.yaml", 0),
        ("b.yaml", 1),
        ("c.yaml", 2),
    ]
    assert result.code == 3
    assert rows[0]["document"]["items"][0]["outcome"] == "Scheduled"
    assert [row["summary"] for row in rows[:2]] == ["1 pod can be scheduled", "1 pod is unschedulable"]
    assert rows[2]["summary"].startswith("error: ")


def test_clusters_with_problems_come_first(fleet: Path) -> None:
    result = kschedx("fleet", "--snapshots", fleet, "-j", "1", "why", "--all-pending")
    marks = [line[0] for line in result.out.splitlines() if line[:1] in "✓✗?" and line[:1]]
    assert marks == ["?", "?", "✗", "✓"]
    assert result.out.startswith("? 3 clusters: 1 with findings, 1 without an answer\n")


def test_a_second_run_asks_only_clusters_without_an_answer(fleet: Path, tmp_path: Path) -> None:
    out = tmp_path / "night.jsonl"
    question = ("--snapshots", fleet, "-j", "1", "--out", out, "why", "--all-pending")
    assert kschedx("fleet", *question).code == 3
    assert len(out.read_text().splitlines()) == 3
    write(fleet, NODE, POD, name="c.yaml")
    (fleet / "a.yaml").write_text("kind: Nothing\n")  # is not asked again
    assert kschedx("fleet", *question).code == 1
    assert [Path(json.loads(line)["cluster"]).name for line in out.read_text().splitlines()[3:]] == ["c.yaml"]
    # another question is another answer
    assert kschedx("fleet", *question[:-1], "-l", "app=web").code != 1


def test_a_time_limit_ends_one_cluster_alone(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kschedx.cli.worker import Worker

    question = Worker.ask
    monkeypatch.setattr(
        Worker,
        "ask",
        lambda self, words, limit, see: question(self, words, 0.001 if "a.yaml" in str(words) else limit, see),
    )
    result = kschedx("fleet", "--snapshots", fleet, "-j", "1", "-o", "json", "why", "--all-pending")
    rows = json.loads(result.out)["clusters"]
    assert rows[0]["summary"] == "error: no answer within 0.001 s (name fewer nodes or pods, or raise --limit)"
    assert rows[1]["exitCode"] == 1


def test_lists_name_snapshots_and_contexts(fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "all.list").write_text(f"# all\n{fleet / 'a.yaml'}\n\ncontext:prod\n")
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    result = kschedx(
        "fleet", "-s", tmp_path / "all.list", "--kubeconfig", kubeconfig, "-j", "1", "-o", "json", "doctor"
    )
    rows = json.loads(result.out)["clusters"]
    assert [row["cluster"] for row in rows] == [str(fleet / "a.yaml"), "prod"]
    assert 'context "prod"' in rows[1]["errors"]


def test_parquet_and_pages(fleet: Path, tmp_path: Path) -> None:
    import pyarrow.parquet  # takes 0.3 s, which every process that collects tests would pay

    path = tmp_path / "night.parquet"
    result = kschedx("fleet", "--snapshots", fleet, "-j", "1", "--parquet", path, "-o", "markdown", "doctor")
    table = pyarrow.parquet.read_table(path)
    assert table.column("exitCode").to_pylist() == [1, 1, 1]
    assert json.loads(table.column("document")[0].as_py())["kind"] == "Diagnosis"
    assert "| cluster | answer | taken | exit code |" in result.out
    assert f"clusters {str(fleet)[:4]}" in result.out
    content = b"".join(file.read_bytes() for file in sorted(fleet.iterdir()))
    assert f"input sha256 {hashlib.sha256(content).hexdigest()[:16]}" in result.out
    behind = kschedx("fleet", "--snapshots", fleet, "-j", "1", "doctor", "--output=markdown").out
    assert untimed(behind) == untimed(result.out)


def untimed(page: str) -> list[str]:
    """Return the lines without the seconds of each cluster, and without the last one, which cites the command."""
    return [re.sub(r"\| \d+ \|  \|$", "|", line) for line in page.splitlines()[:-1]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("why",), "name the clusters: --snapshot, --snapshots, --context or --all-contexts"),
        (
            ("why", "--all-pending", "--snapshots=d"),
            "--snapshots belongs before the question (kschedx fleet --snapshots ... why)",
        ),
        (("-s", "nowhere.yaml", "why"), "nowhere.yaml: no such file or folder"),
        (("--snapshots", "README.md", "why"), "README.md: no such folder"),
        (("-s", "README.md", "whyy"), '"whyy" cannot be asked of several clusters (did you mean "why"?)'),
        (("-s", "README.md", "--out", "README.md", "doctor"), "not a row of kschedx fleet"),
        (("-s", "README.md", "--out", "/dev/full", "doctor"), "/dev/full: cannot be written: no space left on device"),
        (("-s", "README.md", "--out", "tests", "doctor"), "tests: cannot be written: is a directory"),
    ],
)
def test_bad_input_is_a_one_line_error(arguments: tuple[str, ...], expected: str) -> None:
    result = kschedx("fleet", *arguments)
    assert result.code == 2
    assert expected in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("-s", "README.md", "--out", "rows.jsonl"), ("-s", "clusters.list")])
def test_a_file_that_is_too_large_is_an_error(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedx.sources.compression._LARGEST_WHOLE", 10)
    for name in ("rows.jsonl", "clusters.list", "README.md"):
        (tmp_path / name).write_text("x" * 11, encoding="utf-8")
    result = kschedx("fleet", *arguments, "doctor", cwd=tmp_path)
    assert (result.code, "file too large" in result.err) == (2, True)

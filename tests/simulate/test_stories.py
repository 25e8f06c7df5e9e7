"""Fixtures of simulations: a cluster, and the command line in ask.txt."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.command import ROOT, CommandResult, check_document, kschedx
from tests.conftest import Golden

FOLDER = Path(__file__).parent / "golden"
ASKS = sorted((ROOT / "fixtures").glob("*/ask.txt"))

each_story = pytest.mark.parametrize("ask", ASKS, ids=lambda path: path.parent.name)


def run_story(ask: Path, *options: str, columns: int = 100) -> tuple[str, CommandResult]:
    cluster = str((ask.parent / "cluster.yaml").relative_to(ROOT))
    arguments = (*shlex.split(ask.read_text(encoding="utf-8")), "--snapshot", cluster, *options)
    return " ".join(("$ kschedx", *arguments)), kschedx(*arguments, columns=columns)


@each_story
@pytest.mark.parametrize("columns", [pytest.param(80, marks=pytest.mark.long), 100])
def test_the_screen_is_as_expected(ask: Path, columns: int, golden: Golden) -> None:
    typed, result = run_story(ask, columns=columns)
    golden.check(
        FOLDER / f"{ask.parent.name}-{columns}.txt", f"{typed}\n{result.out}--- exit code {result.code}\n{result.err}"
    )
    lines = result.out.splitlines()
    assert len(lines) <= 30
    assert not [line for line in lines if cell_len(line) > columns or line != line.rstrip()]


@pytest.mark.sample(3)
@each_story
def test_the_document_is_valid(ask: Path) -> None:
    _, result = run_story(ask, "-o", "json")
    check_document(json.loads(result.out))


def test_every_expected_file_has_a_story() -> None:
    names = {path.name.rpartition("-")[0] for path in FOLDER.glob("*.txt")}
    assert names == {path.parent.name for path in ASKS}

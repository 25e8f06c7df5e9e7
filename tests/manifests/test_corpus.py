"""Manifests as people write them, each with the answer that was reasoned by hand before it was asked for.

A file begins with the reasoning, the exit code (`# exit: 1`) and what the answer says (`# says: ...`, wherever its
lines are wrapped). The whole screen is beside it, written by `pytest --update-golden`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import ROOT, kschedx
from tests.conftest import Golden

FOLDER = Path(__file__).resolve().parent
CLUSTER = FOLDER / "cluster.yaml"
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path != CLUSTER)


def answer_lines(path: Path, what: str) -> list[str]:
    return re.findall(rf"^# {what}: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(FOLDER).with_suffix("")) for path in FILES])
def test_the_answer_is_as_expected(path: Path, golden: Golden) -> None:
    name = str(path.relative_to(ROOT))
    result = kschedx("why", name, "-s", str(CLUSTER.relative_to(ROOT)))
    screen = f"$ kschedx why {name}\n{result.out}{result.err}exit code {result.code}\n"
    message = " ".join(screen.split())
    assert [str(result.code)] == answer_lines(path, "exit"), screen
    missing = [text for text in answer_lines(path, "says") if text not in message]
    assert not missing, screen
    golden.check(path.with_suffix(".txt"), screen)


def test_there_are_many_manifests() -> None:
    assert len(FILES) >= 60

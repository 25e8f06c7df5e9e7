"""The short, deterministic form of the fuzz runs; CONTRIBUTING.md describes the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import expressions, files, hostile, network, targets

ROOT = Path(__file__).resolve().parents[2]

seeds = st.integers(0, 2**32)


@given(seeds)
def test_random_clusters(seed: int) -> None:
    files.answers(hostile.as_json(hostile.cluster(Random(seed))))


@given(seeds, st.integers(1, 4))
def test_damaged_stories(seed: int, times: int) -> None:
    random = Random(seed)
    story = random.choice(hostile.stories())
    objects = random.sample(story, min(len(story), 12))
    for _ in range(times):
        objects = hostile.damage(objects, random)
    files.answers(hostile.as_json(objects))


PIECES = [
    b"", b"\n", b"- ", b"  ", b"\t", b"{", b"[", b"]", b"}", b'"', b"'", b":", b",", b"#", b"&a ", b"*a", b"<<: ",
    b"!!str ", b"|\n", b"---\n", b"? ", b"@", b"\xff", b"\0", b"\b", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"0x1", b"1_0",
    b"yes", b"~", b".inf", b"1e999", b"9" * 30, b"\r\n", b"\\u0000",
]  # fmt: skip


@st.composite
def damaged_texts(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from([text for text in hostile.texts() if len(text) < 3000]))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.sampled_from([0, 0, 1, 1, 5, 100]))
        text = text[:start] + draw(st.sampled_from(PIECES)) + text[end:]
    return text


TEXT_TARGETS = (files.json_pieces, files.yaml_readers, files.configurations, files.config_maps)


@settings(max_examples=settings().max_examples * 2)
@given(damaged_texts(), st.sampled_from(TEXT_TARGETS))
def test_damaged_texts(text: bytes, target: Callable[[bytes], None]) -> None:
    target(text)


@settings(max_examples=settings().max_examples * 2)
@given(st.lists(st.sampled_from(expressions.TOKENS), max_size=12).map("".join))
def test_random_selectors(text: str) -> None:
    expressions.selectors(text.encode())


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_seeds(name: str) -> None:
    """Every target accepts the seeds of its corpus."""
    target = targets.target_of(name)
    for seed in islice(target.seeds(), 40):
        target.run(seed)


@given(st.data())
@pytest.mark.parametrize("name", [target.run.__name__ for target in targets.FAMILIES["network"]])
def test_damaged_answers(name: str, data: st.DataObject) -> None:
    target = targets.target_of(name)
    seed = data.draw(st.sampled_from(list(target.seeds())))
    start = data.draw(st.integers(0, len(seed)))
    length, piece = data.draw(st.sampled_from([0, 1, 5, 30])), data.draw(st.sampled_from([*PIECES, network.SEPARATOR]))
    target.run(seed[:start] + piece + seed[start + length :])


@settings(max_examples=settings().max_examples * 2)
@given(st.binary(max_size=12))
def test_random_objects_of_a_program(data: bytes) -> None:
    files.library(data)


@pytest.mark.long
def test_with_coverage_as_a_guide(tmp_path: Path) -> None:
    """Run one process for all targets, because instrumenting kschedx takes most of the time. Its peak memory begins
    with that of this process, from which it is forked, so that only the limit of one allocation is strict."""
    limits = ["-runs=600", "-seed=1", "-max_len=2000", "-rss_limit_mb=4096", "-malloc_limit_mb=1024", "-timeout=20"]
    command = [sys.executable, "-m", "tests.fuzz", targets.ALL, *limits, f"-artifact_prefix={tmp_path}/", "corpus"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    result = process.stderr.decode(errors="replace")
    assert process.returncode == 0, result[-3000:]
    assert "DONE" in result

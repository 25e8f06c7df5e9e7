"""The short form of the fuzz runs, the same at every time; CONTRIBUTING.md has the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import hostile, targets

ROOT = Path(__file__).resolve().parents[2]

short = settings(max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32)


@short
@given(seeds)
def test_clusters_by_chance(seed: int) -> None:
    targets.answers(hostile.as_json(hostile.cluster(Random(seed))))


@short
@given(seeds, st.integers(1, 4))
def test_damaged_stories(seed: int, times: int) -> None:
    random = Random(seed)
    story = random.choice(hostile.stories())
    objects = random.sample(story, min(len(story), 12))
    for _ in range(times):
        objects = hostile.damaged(objects, random)
    targets.answers(hostile.as_json(objects))


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


@settings(short, max_examples=150)
@given(damaged_texts(), st.sampled_from([targets.json_pieces, targets.yaml_readers, targets.configurations]))
def test_damaged_texts(text: bytes, target: Callable[[bytes], None]) -> None:
    target(text)


TOKENS = [
    *'.()[]{}!?:,<>=-+*%/&|"\'\\ \n', "==", "&&", "||", "in", "r'", "b'", "x", "device", ".attributes", ".capacity",
    ".driver", '["gpu.example.com"]', '["e"]', ".a", ".b", ".v", ".m", "1", "-9223372036854775808", "9u", "1e400",
    "'a'", "'\\ud800'", "null", "true", "has(", "cel.bind(x, ", ".map(x, ", ".all(x, ", ".exists_one(x, ",
    ".matches('(a*)*b')", ".sum()", ".sorted()", ".format([", "semver('1.0.0')", "quantity('1Ki')",
    "cidr('10.0.0.0/8')", "ip('::1')",
    "url('http://a')", "duration('1h')", "timestamp('2024-01-01T00:00:00Z')", "optional.of(", "sets.contains(", "type(",
]  # fmt: skip


@settings(short, max_examples=150)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_selectors_by_chance(text: str) -> None:
    targets.selectors(text.encode())


KUBECONFIG = """
current-context: c
clusters:
- name: k
  cluster: {server: "https://h:6443", insecure-skip-tls-verify: false, proxy-url: "http://p:1"}
contexts:
- name: c
  context: {cluster: k, user: u}
users:
- name: u
  user:
    token: abc
    exec: {apiVersion: client.authentication.k8s.io/v1, command: f, env: [{name: A, value: b}], interactiveMode: Never}
    auth-provider: {name: oidc, config: {id-token: x}}
"""


@settings(short, max_examples=100)
@given(st.integers(0, len(KUBECONFIG)), st.sampled_from([0, 1, 5, 30]), st.sampled_from(PIECES))
def test_damaged_kubeconfigs(start: int, length: int, piece: bytes) -> None:
    whole = KUBECONFIG.encode()
    targets.kubeconfigs(whole[:start] + piece + whole[start + length :])


def test_with_coverage_as_a_guide(tmp_path: Path) -> None:
    limits = ["-runs=200", "-seed=1", "-max_len=2000", "-rss_limit_mb=1024", "-timeout=20"]
    command = [sys.executable, "-m", "tests.fuzz", "readers", *limits, f"-artifact_prefix={tmp_path}/", "corpus"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    told = ran.stderr.decode(errors="replace")
    assert ran.returncode == 0, told[-3000:]
    assert "DONE" in told

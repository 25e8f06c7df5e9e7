"""The line about a cluster that takes long to read."""

from __future__ import annotations

import io

import pytest

from kschedx.cli.connection import ReadingProgress
from kschedx.sources.live.cluster import Tick


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "delay", "shown"), [(Terminal, 0.0, True), (Terminal, 9.0, False), (io.StringIO, 0.0, False)]
)
def test_it_is_for_terminals_and_slow_clusters(
    stream: type[io.StringIO], delay: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = stream()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(ReadingProgress, "DELAY", delay)
    progress = ReadingProgress("context \x1b[31mtest")
    progress.see(Tick())
    assert ("reading context " in stderr.getvalue()) == shown
    assert "\x1b[31m" not in stderr.getvalue()
    progress.end()
    assert stderr.getvalue().endswith("\r\x1b[K") == shown

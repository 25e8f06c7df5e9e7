"""The fixtures, and the commands of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import kschedx as library
from kschedx.inquiry.explanation import Explanation
from tests.command import ROOT, CommandResult, kschedx

FIXTURES = ROOT / "fixtures"
CLUSTERS = tuple(path for path in sorted(FIXTURES.glob("*/cluster*")) if path.stem == "cluster")


@dataclass(frozen=True, slots=True)
class Story:
    """A folder with a cluster and a pod."""

    name: str

    @property
    def folder(self) -> Path:
        """Relative to the root of the repository, so that screens do not depend on its location."""
        return (FIXTURES / self.name).relative_to(ROOT)

    @property
    def cluster(self) -> Path:
        return next(path for path in CLUSTERS if path.parent.name == self.name).relative_to(ROOT)

    @property
    def pod(self) -> Path:
        return self.folder / "pod.yaml"

    @property
    def config(self) -> Path | None:
        path = self.folder / "scheduler.yaml"
        return path if (ROOT / path).exists() else None

    @property
    def extenders(self) -> Path | None:
        """The recorded answers of the extenders."""
        path = self.folder / "extenders.json"
        return path if (ROOT / path).exists() else None

    @property
    def manifest(self) -> dict[str, Any]:
        """The pod, or the workload that creates it."""
        return _yaml(self.pod)

    @property
    def configuration(self) -> dict[str, Any] | None:
        return None if self.config is None else _yaml(self.config)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `kschedx`."""
        config = () if self.config is None else ("--config", str(self.config))
        extenders = () if self.extenders is None else ("--extenders", str(self.extenders))
        return ("why", str(self.pod), "--snapshot", str(self.cluster), *config, *extenders)

    @property
    def first_node(self) -> str:
        return library.load(str(ROOT / self.cluster)).cluster.names[0]


def _yaml(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = yaml.load((ROOT / path).read_bytes(), yaml.CSafeLoader)
    return result


@cache
def explained(story: Story) -> Explanation:
    """Return the library's explanation of a fixture whose manifest is a pod."""
    return library.explain(library.load(str(ROOT / story.cluster)), story.manifest, config=story.configuration)


STORIES = tuple(Story(path.parent.name) for path in sorted(FIXTURES.glob("*/pod.yaml")))
OF_PODS = tuple(story for story in STORIES if story.manifest["kind"] == "Pod")
"""Fixtures with a pod; the others have workloads."""


@cache
def tell(story: Story, *options: str, columns: int = 100) -> CommandResult:
    """Run the command of a fixture, which always answers."""
    result = kschedx(*story.arguments, *options, columns=columns)
    assert result.code in (0, 1, 3), result.err
    return result


def screen(story: Story, *options: str, columns: int = 100) -> str:
    """Return what a user of the command sees."""
    result = tell(story, *options, columns=columns)
    typed = " ".join(("$ kschedx", *story.arguments, *options))
    notes = f"--- stderr\n{result.err}" if result.err else ""
    return f"{typed}\n{result.out}{notes}--- exit code {result.code}\n"

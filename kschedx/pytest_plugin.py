"""Fixtures for pytest that test where pods go, registered as the plugin `kschedx`.

def test_web_stays_off_gpu_nodes(kschedx_snapshot, placement): snapshot = kschedx_snapshot("cluster/")
placement(snapshot, "shop/web-0").matches("golden/web-0.json")

`pytest --kschedx-update` writes the files again. A failure shows the differences side by side, and the screen of the
test's last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kschedx.explain.difference import Story
    from kschedx.inquiry.explanation import Explanation
    from kschedx.simulate.drain import DrainResult
    from kschedx.snapshot.snapshot import Snapshot

_UPDATE = "--kschedx-update"
_WIDTH = 120
_LAST_ANSWER = pytest.StashKey[object]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kschedx", "placement rules (kschedx)")
    group.addoption(_UPDATE, action="store_true", help="update expected placements; review the difference")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed and _LAST_ANSWER in item.stash:
        report.sections.append(("kschedx", str(item.stash[_LAST_ANSWER])))
    return report


class Placement:
    """Where a pod goes and why, to be compared with a file."""

    def __init__(self, explanation: Explanation, folder: Path, *, updating: bool) -> None:
        self.explanation = explanation
        self._folder = folder
        self._updating = updating

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes among which kube-scheduler chooses; empty if the pod is unschedulable."""
        return self.explanation.chosen_nodes

    @property
    def message(self) -> str:
        """The event's message if the pod is unschedulable."""
        return self.explanation.message

    @property
    def story(self) -> Story:
        from kschedx.explain.difference import Story

        return Story.of(self.explanation.cycle)

    def matches(self, file: str | Path) -> None:
        """Fail if the answer differs from the one in `file` (JSON, relative to the test's folder)."""
        __tracebackhide__ = True
        path = self._folder / file
        actual = self.story
        if self._updating:
            from kschedx.render.manifests import to_json

            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(to_json(actual.to_dict()) + "\n", encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{file} does not exist; pytest {_UPDATE} writes it", pytrace=False)
        from kschedx.explain.difference import Story
        from kschedx.sources.files import load_documents

        ((document, _),) = load_documents(str(path))
        phrase = _difference(Story.from_dict(document, str(path)), actual)
        if phrase:
            pytest.fail(f"{phrase}\n\nIf this is correct: pytest {_UPDATE}", pytrace=False)


@pytest.fixture(scope="session")
def kschedx_snapshot(pytestconfig: pytest.Config) -> Callable[..., Snapshot]:
    """`kschedx_snapshot("cluster.yaml", "more/")`: loads files and folders, relative to pytest's rootdir, once."""
    loaded: dict[tuple[str, ...], Snapshot] = {}

    def load(*paths: str | Path) -> Snapshot:
        import kschedx

        key = tuple(str(pytestconfig.rootpath / path) for path in paths)
        if key not in loaded:
            loaded[key] = kschedx.load(*key)
        return loaded[key]

    return load


@pytest.fixture
def placement(request: pytest.FixtureRequest) -> Callable[..., Placement]:
    """`placement(snapshot, pod, config=..., kube_version=...)`, with the arguments of `kschedx.explain`.

    A manifest can also be a Deployment or another workload; it stands for the pod of its template. `config` can also be
    the path of a KubeSchedulerConfiguration, relative to pytest's rootdir.
    """
    root = request.config.rootpath
    folder = request.path.parent
    updating = bool(request.config.getoption(_UPDATE))

    def explain(
        snapshot: Snapshot,
        pod: str | Mapping[str, object],
        *,
        config: str | Path | Mapping[str, object] | None = None,
        **options: Any,
    ) -> Placement:
        import kschedx

        parsed = config if config is None or isinstance(config, Mapping) else _configuration(root / config)
        explanation = request.node.stash[_LAST_ANSWER] = kschedx.explain(snapshot, pod, config=parsed, **options)
        return Placement(explanation, folder, updating=updating)

    return explain


@pytest.fixture
def drained(request: pytest.FixtureRequest) -> Callable[..., DrainResult]:
    """`drained(snapshot, node, force=False, delete_emptydir_data=False)`: returns the result of `kubectl drain`."""

    def drain(
        snapshot: Snapshot, node: str, *, force: bool = False, delete_emptydir_data: bool = False, **options: Any
    ) -> DrainResult:
        from kschedx.explain.setup import Setup
        from kschedx.inquiry.what_if import drain_nodes
        from kschedx.simulate.simulator import SimulationOptions

        setup = Setup.of_cluster(snapshot, **options)
        flags = SimulationOptions(force=force, delete_emptydir_data=delete_emptydir_data)
        simulation = drain_nodes(snapshot, setup, [node], options=flags)
        request.node.stash[_LAST_ANSWER] = simulation
        return simulation.drained[0]

    return drain


def _configuration(path: Path) -> Mapping[str, object]:
    from kschedx.sources.configurations import read_configuration

    return read_configuration(str(path))


def _difference(expected: Story, actual: Story) -> str:
    """Return the differences of both answers side by side; empty if they are equal."""
    from kschedx.explain.difference import compare
    from kschedx.render.comparison import story_lines

    if compare(expected, actual) is None:
        return ""
    lines = story_lines(expected, actual, ("expected", "actual"), width=_WIDTH, only_differences=True)
    return "\n".join(line.plain for line in lines)

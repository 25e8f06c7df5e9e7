"""Options and fixtures of all tests. `pytest --update-golden` rewrites the expected files."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# how fast a machine is says nothing about a law; a run of the suite tries the same examples every time, `.ci/run` more
settings.register_profile(
    "kschedx",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("more", settings.get_profile("kschedx"), max_examples=60)
settings.register_profile("random", settings.get_profile("kschedx"), derandomize=False)
settings.register_profile("long", settings.get_profile("random"), max_examples=2000)
settings.load_profile("kschedx")

ROOT = Path(__file__).resolve().parent.parent

if sys.dont_write_bytecode:  # many tests start Python, where compiling kschedx takes longer than the answer
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="update expected files; review the difference")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each n-th case of a test marked `sample(n)` in every run; the others run with `-m long`."""
    cases: Counter[str] = Counter()
    for item in items:
        if (marker := item.get_closest_marker("sample")) is not None:
            name = item.nodeid.partition("[")[0]
            if cases[name] % marker.args[0]:
                item.add_marker("long")
            cases[name] += 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the objects of thousands of collected tests from garbage collection, which is idle until then."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
    return collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Run the tests of a module in one process, so that shared values are computed once."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped] # xdist declares no types

    return LoadFileScheduling(config, log)


@dataclass(frozen=True, slots=True)
class Golden:
    """Compares texts with expected files."""

    updating: bool

    def check(self, path: Path, actual: str) -> None:
        """Fail with a unified diff if the file differs; write the file when updating."""
        if self.updating:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if actual != expected:
            name = str(path.relative_to(ROOT))
            lines = difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), f"expected {name}", f"actual {name}", n=2, lineterm=""
            )
            result = "\n".join(lines) or "They differ in the end of a line."
            pytest.fail(f"{result}\n\nIf this is correct: pytest --update-golden", pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(updating=bool(request.config.getoption("--update-golden")))

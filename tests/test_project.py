"""README.md, pyproject.toml, the locks, and the documentation agree."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from kschedx import __version__
from kschedx.cli.app import NAMES
from kschedx.cli.mcp.tools import TOOLS
from kschedx.cli.options import OptionGroup

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = (ROOT / "docs/pages/contributing/setup.md").read_text(encoding="utf-8")
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", "requirements-dev.lock", ".ci/requirements-binary.lock")

# Where the name to import is not the name to install.
DISTRIBUTION = {"cel_expr_python": "cel-expr-python", "re2": "google-re2", "yaml": "pyyaml"}


def dependencies() -> dict[str, Requirement]:
    return {canonicalize_name(item.name): item for item in map(Requirement, PYPROJECT["project"]["dependencies"])}


def group(name: str) -> list[Requirement]:
    """Return a dependency group, with the groups that it includes."""
    result: list[Requirement] = []
    for entry in PYPROJECT["dependency-groups"][name]:
        result += [Requirement(entry)] if isinstance(entry, str) else group(entry["include-group"])
    return result


def locked(lock: str) -> dict[str, str]:
    """Return each package of a lock with its version."""
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def command(name: str) -> str:
    """Return the command of README.md that is marked `run: NAME`."""
    result = re.search(rf"^<!-- run: {name} -->\n```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert result, f"README.md has no command marked run: {name}"
    return result[1]


def test_the_docs_give_a_reason_for_each_dependency_and_no_other() -> None:
    section = SETUP.partition("## Dependencies\n")[2].partition("\n## ")[0]
    reasons = re.findall(r"^\| `([\w-]+)` \| (\S.*) \|$", section, re.MULTILINE)
    assert sorted(name for name, _ in reasons) == sorted(dependencies())


def optional() -> set[str]:
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    return {canonicalize_name(Requirement(item).name) for extra in extras for item in extra}


def test_the_readme_names_the_oldest_python() -> None:
    oldest = SpecifierSet(PYPROJECT["project"]["requires-python"])
    (named,) = set(re.findall(r"Python (3\.\d+) or newer", README))
    assert str(oldest) == f">={named}"


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    loose = [
        str(dependency)
        for dependency in [*dependencies().values(), *group("dev"), *group("binary")]
        if {limit.operator for limit in dependency.specifier} != {">=", "<"}
    ]
    assert not loose


@pytest.mark.parametrize(
    ("lock", "groups"), [(LOCKS[0], ["build"]), (LOCKS[1], ["build", "dev"]), (LOCKS[2], ["build", "binary"])]
)
def test_a_lock_satisfies_pyproject(lock: str, groups: list[str]) -> None:
    versions = locked(lock)
    wanted = [*dependencies().values(), *(item for name in groups for item in group(name))]
    assert not [str(item) for item in wanted if versions.get(canonicalize_name(item.name), "0") not in item.specifier]


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_the_other_locks_extend_the_first(lock: str) -> None:
    assert locked(LOCKS[0]).items() <= locked(lock).items()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_by_content_and_names_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.findall(r"^[\w.-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+$", text, re.MULTILINE)
    assert len(pins) == len(locked(lock))


@pytest.mark.parametrize("name", ["demo", "test"])
def test_files_in_commands_of_the_readme_exist(name: str) -> None:
    words = shlex.split(command(name))
    files = [word for word in words if not word.startswith((".venv", "-")) and ("/" in word or word.endswith(".lock"))]
    assert files
    assert not [file for file in files if not (ROOT / file).exists()]


def test_readme_and_contributing_are_short() -> None:
    lines = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in ("README.md", "CONTRIBUTING.md")
    }
    assert lines["README.md"] <= 150
    assert lines["CONTRIBUTING.md"] <= 120


PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/pages/contributing").glob("*.md"))]
CODE_PATH = re.compile(r"`((?:[a-z_<>.-]+/)+(?:[a-z_<>-]+\.(?:py|md|yaml|json))?)`")


def paths_named() -> list[tuple[str, str]]:
    """Return the paths in backquotes with their page; `<...>` is any name."""
    return [(page.name, path) for page in PAGES for path in CODE_PATH.findall(page.read_text(encoding="utf-8"))]


def test_files_named_in_the_docs_exist() -> None:
    named = paths_named()
    assert len(named) > 30
    missing = [
        f"{page}: {path}"
        for page, path in named
        if not any(any(base.glob(re.sub(r"<[^>]+>", "*", path).rstrip("/"))) for base in (ROOT, ROOT / "kschedx"))
    ]
    assert not missing


ARCHITECTURE = (ROOT / "docs/pages/contributing/architecture.md").read_text(encoding="utf-8")


def test_the_architecture_shows_every_package() -> None:
    shown = set(re.findall(r"`([a-z]+)`", ARCHITECTURE.partition("## Packages")[2].partition("Imports point")[0]))
    packages = {path.name for path in (ROOT / "kschedx").iterdir() if (path / "__init__.py").is_file()}
    assert not packages - shown - {"integrations", "schemas"}


def test_the_table_of_stories_has_every_story() -> None:
    result = re.findall(
        r"^\| \[([\w-]+)\]\(\1/\) \| \S", (ROOT / "fixtures" / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(result) == sorted(path.parent.name for path in (ROOT / "fixtures").glob("*/README.md"))
    assert len(result) == sum(path.is_dir() for path in (ROOT / "fixtures").iterdir())


def test_the_changelog_names_the_version() -> None:
    versions = re.findall(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[:2] == ["Unreleased", __version__]


def test_tests_named_in_security_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), (file, test)


def test_every_answer_about_a_cluster_has_a_size_limit() -> None:
    """`benchmarks/bounds.py` measures the sizes, and the documentation lists the same limits."""
    spec = spec_from_file_location("bounds", ROOT / "benchmarks" / "bounds.py")
    assert spec is not None
    assert spec.loader is not None
    bounds = module_from_spec(spec)
    spec.loader.exec_module(bounds)
    measured = {line.split()[0] for line in bounds.COMMANDS}
    modules = {name: import_module(f"kschedx.cli.{name.replace('-', '_')}") for name in NAMES if name != "completion"}
    about_clusters = {name for name, module in modules.items() if OptionGroup.CLUSTER in module.COMMAND.options}
    assert about_clusters
    assert about_clusters <= measured
    assert {tool.name for tool in TOOLS} <= set(bounds.TOOLS)
    documented = (ROOT / "docs" / "pages" / "concepts" / "performance.md").read_text(encoding="utf-8")
    every = {*bounds.COMMANDS.values(), bounds.TOOL_BOUND, *bounds.TOOL_BOUNDS.values()}
    assert [bound.row for bound in every if bound.row not in documented] == []

"""Rules of the code: imports point one way, and packages that load slowly are imported late."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from kschedx.kube.kinds import KINDS
from kschedx.satellites import PROVIDERS, provider
from tests.test_project import DISTRIBUTION, dependencies, optional

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kschedx"

# The project's parts, and what each may import besides itself; `errors` may be imported by all of them.
# A part is a package or module directly inside kschedx; TOP is kschedx/__init__.py.
TOP = "kschedx"
ORDER = (
    "patterns",
    "version",
    "grouping",
    "errors",
    "progress",
    "parallel",
    "results",
    "integrations",
    "satellites",
    "kube",
    "wording",
    "releases",
    "findings",
    "apiserver",
    "sources",
    "snapshot",
    "framework",
    "plugin",
    "plugins",
    "export",
    "cel",
    "extenders",
    "legacy",
    "loading",
    "schedulers",
    "explain",
    "growth",
    "autoscaler",
    "karpenter",
    "words",
    "kueue",
    "holding",
    "controllers",
    "simulate",
    "fixes",
    "inquiry",
    "descheduler",
    "doctor",
    "render",
    "schemas",
    TOP,
    "pytest_plugin",
    "cli",
    "__main__",
)
"""The parts, in order: each may import only earlier ones."""

# Who may import a package at all. Findings hold plain values, so numpy ends below them; one module quotes for a shell.
ONLY_IN = {
    "typer": {"cli"},
    "shlex": {"kube"},
    "textual": {"cli"},
    "rich": {"cli", "render"},
    "numpy": {
        "autoscaler",
        "controllers",
        "explain",
        "extenders",
        "fixes",
        "framework",
        "growth",
        "holding",
        "inquiry",
        "karpenter",
        "kueue",
        "legacy",
        "plugin",
        "plugins",
        "simulate",
        "snapshot",
    },
}

# Start-up is felt at every call, so these are imported inside the functions that need them.
NEVER_AT_MODULE_LEVEL = {"cel_expr_python", "re2", "jsonschema", "yaml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module, as written: `from kschedx.api import pods` names `kschedx.api.pods`."""

    path: Path
    line: int
    module: str
    at_start: bool
    """Whether it runs when the module is imported: outside functions and `if TYPE_CHECKING`."""

    @property
    def distribution(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target(self) -> str:
        """The imported part of kschedx."""
        return part_of_module(self.module)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: imports {self.module}"


@cache
def part_of_module(module: str) -> str:
    name = [*module.split("."), ""][1]
    is_part = name and ((PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file())
    return name if is_part else TOP


@cache
def part_of_file(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return TOP if first == "__init__" else first


def type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in {getattr(test, "id", ""), getattr(test, "attr", "")}


def statements_below(node: ast.AST) -> Iterator[ast.AST]:
    """Return the statements, exception handlers, and cases directly in a statement."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        inner = getattr(node, name, ())
        yield from inner if isinstance(inner, list) else ()


def imports_below(path: Path, node: ast.AST, at_start: bool = True) -> Iterator[Import]:
    match node:
        case ast.Import(names=names, lineno=line):
            for alias in names:
                yield Import(path=path, line=line, module=alias.name, at_start=at_start)
            return
        case ast.ImportFrom(module=str(module), names=names, level=0, lineno=line):
            for alias in names:
                yield Import(path=path, line=line, module=f"{module}.{alias.name}", at_start=at_start)
            return
        case ast.ImportFrom(lineno=line):
            raise AssertionError(f"{path}:{line}: a relative import")
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            at_start = False
        case ast.If(test=test, body=body, orelse=orelse) if type_checking(test):
            for statement in body:
                yield from imports_below(path, statement, at_start=False)
            for statement in orelse:
                yield from imports_below(path, statement, at_start)
            return
    for child in statements_below(node):
        yield from imports_below(path, child, at_start)


FILES = sorted(PACKAGE.rglob("*.py"))


def bodies(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Return the functions of a module with their number of lines, without parameters and docstring."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        nodes += statements_below(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            yield node.name, node.end_lineno - first.lineno + 1


@cache
def all_modules() -> Mapping[Path, tuple[list[Import], list[tuple[str, int]]]]:
    """Return the imports and functions of each module, parsed once and not at collection."""
    trees = ((path, ast.parse(path.read_text(encoding="utf-8"), str(path))) for path in FILES)
    return {path: (list(imports_below(path, tree)), list(bodies(tree))) for path, tree in trees}


@cache
def all_imports() -> Mapping[Path, list[Import]]:
    return {path: imports for path, (imports, _) in all_modules().items()}


def listed(result: Iterator[Import]) -> str:
    return "\n".join(map(str, result))


def test_every_part_is_in_the_order() -> None:
    assert {part_of_file(path) for path in FILES} == set(ORDER)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def edges() -> dict[str, set[str]]:
    """Return the modules that each module imports at any place."""
    modules = {module_of(path) for path in FILES}
    result: dict[str, set[str]] = {}
    for path, imports in all_imports().items():
        named = {item.module for item in imports} | {item.module.rpartition(".")[0] for item in imports}
        result[module_of(path)] = (named & modules) - {module_of(path)}
    return result


ONLY_FOR_MYPY = "_typeshed"
"""mypy's own stubs, which do not exist at runtime."""


def test_the_package_imports_what_it_declares() -> None:
    imported = {match.distribution for imports in all_imports().values() for match in imports}
    third_party = imported - set(sys.stdlib_module_names) - {"kschedx", ONLY_FOR_MYPY}
    assert {DISTRIBUTION.get(name, name) for name in third_party} <= set(dependencies()) | optional()


KNOWN_CIRCLES = {
    "kschedx.snapshot.build",
    "kschedx.snapshot.snapshot",
}
"""Modules that import each other inside functions. Do not add any."""


def test_no_module_imports_itself_through_others() -> None:
    # a package is what its modules are imported through, so the package of a module is no import of its own
    waiting = {
        source: {target for target in targets if not source.startswith(f"{target}.")} - KNOWN_CIRCLES
        for source, targets in edges().items()
    }
    while ready := {source for source, targets in waiting.items() if not targets & waiting.keys()}:
        waiting = {source: targets for source, targets in waiting.items() if source not in ready}
    assert not waiting, f"in a circle, or importing what is in one: {sorted(waiting)}"


def test_imports_point_one_way() -> None:
    rank = {part: place for place, part in enumerate(ORDER)}
    wrong = {
        (part_of_file(path), result.target)
        for path, imports in all_imports().items()
        for result in imports
        if result.distribution == TOP and rank[result.target] > rank[part_of_file(path)]
    }
    assert not wrong


SATELLITES = {
    "autoscaler": {TOP, "cli", "inquiry", "render", "schemas"},
    "cel": {"autoscaler"},
    "descheduler": {TOP, "cli", "render"},
    "extenders": {TOP, "cli"},
    "holding": {"inquiry", "render", "schemas", "simulate"},
    "karpenter": {"cli", "inquiry", "render", "schemas"},
    "kueue": {TOP, "cli", "controllers", "holding", "inquiry", "render", "schemas", "simulate"},
    "legacy": {"schemas"},
}
"""The importers of a satellite. The core uses satellites only through `satellites`."""


@pytest.mark.parametrize("satellite", SATELLITES)
def test_the_core_imports_no_satellite(satellite: str) -> None:
    importing = {
        part_of_file(path)
        for path, imports in all_imports().items()
        for result in imports
        if result.target == satellite
    }
    assert importing - {satellite} == SATELLITES[satellite]


def test_satellites_provide_what_their_table_names() -> None:
    assert all(provider(name) is not None for name in PROVIDERS)


WHICH_SCHEDULER = {
    "has_framework": ("releases/", "schedulers.py"),
    "FrameworkScheduler": ("framework/scheduler.py", "schedulers.py"),
    "PredicateScheduler": ("legacy/scheduler.py", "satellites.py"),
}
"""Names that distinguish one `Scheduler` from another, and the modules that may use them."""


@pytest.mark.parametrize("name", WHICH_SCHEDULER)
def test_no_other_module_distinguishes_schedulers(name: str) -> None:
    known = {path.relative_to(PACKAGE).as_posix() for path in FILES if name in path.read_text(encoding="utf-8")}
    assert not [path for path in known if not path.startswith(WHICH_SCHEDULER[name])]
    assert known


@pytest.mark.parametrize("package", sorted(ONLY_IN))
def test_a_package_is_imported_only_by_its_layer(package: str) -> None:
    wrong = (
        result
        for path, imports in all_imports().items()
        for result in imports
        if result.distribution == package and part_of_file(path) not in ONLY_IN[package]
    )
    assert not (text := listed(wrong)), f"{package} belongs in {sorted(ONLY_IN[package])} alone:\n{text}"


def test_every_listed_layer_imports_the_package() -> None:
    importing = {
        (result.distribution, part_of_file(path)) for path, imports in all_imports().items() for result in imports
    }
    assert not {(package, part) for package, parts in ONLY_IN.items() for part in parts} - importing


def test_slow_packages_are_imported_inside_functions() -> None:
    wrong = (
        result
        for imports in all_imports().values()
        for result in imports
        if result.at_start and result.distribution in NEVER_AT_MODULE_LEVEL
    )
    assert not (text := listed(wrong)), f"import these where they are used:\n{text}"


# Facts only: what is said of them stands in `render`. An error says itself what is wrong.
WITHOUT_SENTENCES = ("explain", "fixes")
FIX_TEXTS = (
    *(
        PACKAGE / "fixes" / f"{module}.py"
        for module in (
            "changed_volumes",
            "dead_end",
            "device_remedies",
            "node_remedies",
            "owners",
            "phrases",
            "provisioning",
            "raised_quota",
            "ranking",
            "remedies",
            "storage_remedies",
        )
    ),
    *(PACKAGE / "fixes" / "steps").glob("*.py"),
)
NOTES = (
    "admission",
    "agent_labels",
    "claim_causes",
    "device_classes",
    "creators",
    "elastic_quotas",
    "cycle_notes",
    "events",
    "hardware",
    "kubelet",
    "missing_kinds",
    "notes",
    "pod_selectors",
    "preemption_causes",
    "profile_changes",
    "ranking",
    "root_causes",
    "scheduler_profiles",
    "score_reasons",
    "setup",
)
WITH_SENTENCES = {*(PACKAGE / "explain" / f"{module}.py" for module in NOTES), *FIX_TEXTS}
"""Notes, fixes, and steps, each created and worded in one place."""
SENTENCE = re.compile(r"(?!kubectl |kschedx ).*\b[a-z']{2,}[,:]? [a-z']{2,}", re.DOTALL)
"""Two consecutive words, except of a command line."""


def sentences(source: str) -> Iterator[str]:
    """Return the literals of a module that users read: no docstrings, errors, assertions, and types."""
    tree = ast.parse(source)
    aside = set[ast.AST]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Raise() | ast.Assert():
                aside |= set(ast.walk(node))
            case ast.FunctionDef(returns=ast.Name(id="NoReturn")):
                aside |= set(ast.walk(node))
            case ast.Call(func=ast.Name(id=name)) if name == "cast" or name.lstrip("_").startswith("refuse"):
                aside |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in aside and SENTENCE.match(str(node.value)):
            yield f"{node.lineno}: {node.value!r}"


@pytest.mark.parametrize("part", WITHOUT_SENTENCES)
def test_only_words_and_render_have_sentences(part: str) -> None:
    files = [path for path in FILES if part_of_file(path) == part and path not in WITH_SENTENCES]
    message = [
        f"{path.relative_to(ROOT)}:{text}" for path in files for text in sentences(path.read_text(encoding="utf-8"))
    ]
    assert not message, "sentences belong in words:\n" + "\n".join(message)


def test_a_sentence_is_distinguished_from_other_literals() -> None:
    source = """
'''What it is about.'''
def refuse(kind: str) -> NoReturn:
    about = "of another kind"
    raise InputError(about)
def told(pod):
    assert pod, "asked for a pod"
    if not pod.name:
        raise InputError(f"{pod} has no name")
    refuse("what they are")
    command = f"kubectl get {pod} -A"
    return cast("tuple[int, str]", pod), "PersistentVolumeClaim", "label:", f"the pod of {pod}"
"""
    assert list(sentences(source)) == ["12: 'the pod of '"]


LONGEST = 800
LONGER: dict[str, str] = {}
"""Longer modules, and the reason why they are not divided."""


def test_a_kind_is_named_as_its_table_names_it() -> None:
    """`may_lack("ResourceFlavor")` is true of every dump, since the kind's key has its group."""
    asked = re.compile(r"""\.(?:may_lack|is_complete)\(\s*["']([^"']*)["']""")
    named = {kind for path in FILES for kind in asked.findall(path.read_text(encoding="utf-8"))}
    assert {"Namespace"} <= named <= KINDS.keys()


def test_modules_have_a_maximum_length() -> None:
    longer = {path.relative_to(PACKAGE).as_posix() for path in FILES if len(path.read_text().splitlines()) > LONGEST}
    assert longer == LONGER.keys()


LONGEST_BODY = 60
LONGER_BODIES: dict[str, str] = {}
"""Longer functions, without options and docstring, and the reason why they are not divided."""


def test_functions_have_a_maximum_length() -> None:
    longer = {
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for path, (_, functions) in all_modules().items()
        for name, lines in functions
        if lines > LONGEST_BODY
    }
    assert longer == LONGER_BODIES.keys()


WITH_ANY = {
    "apiserver/unknown_fields.py": "the schema of each kind, as JSON",
    "cel/regex.py": "re2 has no types",
    "cli/help.py": "click is typer's, and no dependency of its own",
    "cli/man.py": "click is typer's, and no dependency of its own",
    "cli/mcp/server.py": "documents, as JSON",
    "cli/mcp/tools.py": "documents, as JSON",
    "cli/options.py": "declarations of options, which are the defaults of parameters of any type",
    "cli/output.py": "the declaration of -o, as in cli/options.py",
    "cli/question.py": "documents, as JSON",
    "export/slim.py": "structs that are generated",
    "inquiry/profile_difference.py": "documents, as JSON",
    "kube/decoding.py": "manifests, as JSON",
    "pytest_plugin.py": "arguments that are handed on",
    "schemas/__init__.py": "records, by their names",
    "snapshot/wire.py": "structs that are generated",
}
"""Modules outside of sources that use `Any`, and the values without a type."""


def test_any_is_used_only_for_untyped_input() -> None:
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path, imports in all_imports().items()
        for result in imports
        if result.module == "typing.Any" and part_of_file(path) != "sources"
    }
    assert naming == WITH_ANY.keys()


SILENCED = re.compile(r"# (?:type: ignore\b(?:\[[\w, -]+\])?+|noqa\b(?:: [A-Z]+\d++)?+)(?! (?:#|-) \w)")
"""A comment that silences mypy or ruff without a reason."""
ABOUT_MYPY = {"tests/snapshot/test_rows.py": "mypy refuses each of its lines, which is what it tests"}


def test_a_silenced_check_has_a_reason() -> None:
    files = [path for folder in ("kschedx", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
    silent = [
        f"{name}:{number}"
        for path in files
        if (name := path.relative_to(ROOT).as_posix()) not in ABOUT_MYPY
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SILENCED.search(line)
    ]
    assert not silent, f"without a reason: {silent}"


@pytest.mark.parametrize(
    ("comment", "is_silent"),
    [
        ("type: " + "ignore", True),
        ("type: " + "ignore[attr-defined]", True),
        ("type: ignore[attr-defined] # inspect reads it", False),
        ("no" + "qa: N815", True),
        ("noqa: N815 - http.server's names", False),
    ],
)
def test_a_silenced_check_is_found(comment: str, is_silent: bool) -> None:
    assert bool(SILENCED.search(f"x = 1  # {comment}")) is is_silent


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("kschedx", TOP),
        ("kschedx.__version__", TOP),
        ("kschedx.errors.InputError", "errors"),
        ("kschedx.kube", "kube"),
        ("kschedx.kube.types.Pod", "kube"),
        ("kschedx.words.constraints", "words"),
        ("kschedx.wording.count", "wording"),
        ("kschedx.render.screen.why_lines", "render"),
    ],
)
def test_the_part_of_an_import(module: str, part: str) -> None:
    assert part_of_module(module) == part


def test_imports_are_found_at_every_place() -> None:
    source = """
import json, yaml.parser
if TYPE_CHECKING:
    import rich
else:
    import numpy
try:
    from kschedx.kube import quantity
except ImportError:
    pass
class C:
    import typer
    def method(self):
        from jsonschema import validators
"""
    result = imports_below(PACKAGE / "cli" / "x.py", ast.parse(source))
    assert [(each.module, each.at_start) for each in result] == [
        ("json", True),
        ("yaml.parser", True),
        ("rich", False),
        ("numpy", True),
        ("kschedx.kube.quantity", True),
        ("typer", True),
        ("jsonschema.validators", False),
    ]


START = """
import json, sys
from kschedx.cli import main
try:
    status = main()
except SystemExit as end:
    status = end.code
print(json.dumps([status or 0, sorted(sys.modules)]))
"""


def started(*words: str) -> tuple[str, int, list[str]]:
    """Return the output of a command, its exit code, and the modules that it loads."""
    result = subprocess.run(
        [sys.executable, "-c", START, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    *written, last = result.stdout.splitlines() or [""]
    assert last, result.stderr
    status, loaded = json.loads(last)
    assert result.returncode == status  # the process ends with the code of its answer
    return "\n".join(written), status, loaded


def below(loaded: Iterable[str], packages: Iterable[str]) -> list[str]:
    """Return the modules that are one of `packages`, or in one."""
    return [module for module in loaded if any(f"{module}.".startswith(f"{package}.") for package in packages)]


def test_startup_imports_nothing_slow() -> None:
    version, status, loaded = started("--version")
    assert (status, version.startswith("kschedx ")) == (0, True)
    assert not below(loaded, NEVER_AT_MODULE_LEVEL | {"numpy", "rich"})


# What a cluster without devices, autoscaler, and extenders does not need.
RARELY_NEEDED = (
    "jsonschema",
    "re2",
    "urllib.request",
    "http.client",
    "kschedx.extenders.client",
    "kschedx.autoscaler",
    "kschedx.cel",
    "kschedx.descheduler",
    "kschedx.holding.kueue",
    "kschedx.kueue.run",
    "kschedx.render.autoscaler",
    "kschedx.inquiry.simulation",
)


def test_rarely_needed_modules_can_be_imported() -> None:
    modules = {module_of(path) for path in FILES}
    assert not [name for name in RARELY_NEEDED if name.startswith(TOP) and name not in modules]


def test_a_plain_answer_imports_only_what_its_cluster_needs() -> None:
    screen, status, loaded = started("why", "fixtures/zone-full/pod.yaml", "-s", "fixtures/zone-full/cluster")
    assert (status, bool(below(loaded, ["kschedx.fixes"]))) == (1, True), screen
    assert not below(loaded, RARELY_NEEDED)


def test_a_pod_that_fits_needs_no_fixes() -> None:
    screen, status, loaded = started("why", "fixtures/tie/pod.yaml", "-s", "fixtures/tie/cluster.yaml")
    assert (status, below(loaded, ["kschedx.fixes"])) == (0, []), screen


def test_every_pattern_compiles() -> None:
    """Patterns are compiled on first use, so that an import does not test them."""
    for path in FILES:
        if "lazy_pattern(" not in path.read_text(encoding="utf-8") or path.stem == "patterns":
            continue
        for name, value in vars(import_module(module_of(path))).items():
            for each in value if isinstance(value, tuple) else (value,):
                for pattern in each if isinstance(each, tuple) else (each,):
                    if type(pattern).__name__ == "lazy_pattern":
                        assert pattern.pattern, f"{path}: {name}"

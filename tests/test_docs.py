"""The pictures of the documentation equal the program's output, and its words are those of the field."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from types import ModuleType

import pytest

import kschedx
from kschedx.controllers.states import STATES
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.simulation import Simulation
from kschedx.simulate.changes import ChangeVerb
from kschedx.wording import DOCUMENTATION
from kschedx.words.reasons import reasons
from tests.command import ROOT
from tests.conftest import Golden


def build_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_readme_is_the_output_of_the_program(golden: Golden) -> None:
    for path, svg in build_module().pictures():
        golden.check(path, svg)


def test_every_state_has_an_example_without_placeholders() -> None:
    rows = [line.split(" | ") for line in build_module().states().splitlines() if line.startswith("| `")]
    assert len(rows) == len(STATES)
    assert not [headline for _, headline, _ in rows if len(headline) < 20 or re.search(r"[{}*]|\s$", headline)]


def public(kind: object) -> set[str]:
    """Return the names of attributes, also of those that only instances have."""
    return {*dir(kind), *getattr(kind, "__annotations__", ())}


def test_the_reference_has_every_change() -> None:
    text = (ROOT / "docs/pages/reference/changes.md").read_text(encoding="utf-8")
    assert not [verb for verb in ChangeVerb if f"`{verb}`" not in text]


def test_the_python_guide_names_attributes_that_exist() -> None:
    guide = (ROOT / "docs/pages/guides/python.md").read_text(encoding="utf-8")
    kinds = {"kschedx": kschedx, "result": Explanation, "simulation": Simulation}
    names = re.findall(rf"\b({'|'.join(kinds)})\.(\w+)", guide)
    assert {name for name, _ in names} == kinds.keys()
    assert not [f"{name}.{attribute}" for name, attribute in names if attribute not in public(kinds[name])]


# Words, as far as they can be checked with a pattern.

REPLACED = re.compile(
    r"""
    \b(?:
        (?:made\s)?anew | (?:is|are|was|were|be)\stold | tells | nobody | somebody | whoever
        | what\sbecomes\sof | comes?\sof | heed(?:s|ed)? | in\sone\spiece | in\ssum | held\sby | to\sbe\shad | let\sgo
        | who\s(?:has|have|is|are|waits?|finds?) | finds?\sno\snode | kinds\sof\spods | not\slooked\sat | left\salone
        | (?<!there\s)(?:is|are)\sno\s(?!longer|more|other|such|one|need|room)\w+
        | makes?\s(?:no\s)?pods | takes?\s(?:no\s)?part
        | begins?\sso | worked\sout | counts?\sfor\snothing | (?:does|do)\snot\sgo\swith | alike | it\scomes\sto
        | anybody | made\s(?:by|of) | is\sabout\s(?:one|many|a) | is\sthere\stwice | without\send
        | nothing\sto\sremark | by\slot | draws?\slots | whole\sstory | asks?\sfor | asked\sfor
        | colours? | behaviours? | catalogues? | licences? | utilisation | normalised
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that the documentation and the screens do not use, and British spelling."""

SCREENS = [
    path
    for folder in ("golden", "cli/golden", "simulate/golden", "manifests")
    for path in (ROOT / "tests" / folder).rglob("*.txt")
]
WRITTEN = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")),
    *(ROOT / "docs/pages").rglob("*.md"),
    *(ROOT / "fixtures").rglob("README.md"),
    *(ROOT / "profiles").glob("*.yaml"),
    *(path for path in (ROOT / "kschedx/integrations").iterdir() if path.suffix in (".yaml", ".md", ".txt")),
    *(path for path in (ROOT / ".github").rglob("*") if path.suffix in (".yml", ".md")),
    *SCREENS,
]
"""Files that readers see. Manifests of a fixture are data, and its README is text."""


UPSTREAM = ("asks for all devices, but resource pool", "0 nodes are available: Insufficient cpu")
"""Texts of the real components, which stay unchanged."""


JOINT = re.compile(r"""["']\s*\n\s*f?["']""")
"""Where a literal continues on the next line."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Return the texts of several words in a module with their lines, without docstrings; none if nothing in the
    module is to be replaced, which is cheaper to see."""
    source = path.read_text(encoding="utf-8")
    if not REPLACED.search(JOINT.sub("", source)):
        return
    tree = ast.parse(source)
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in alone and " " in node.value:
            yield node.lineno, node.value


def replaced_words(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    for number, line in lines:
        for match in REPLACED.finditer(line):
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r} in {line.strip()[:100]!r}"


def test_documentation_uses_the_words_of_the_field() -> None:
    items = [
        text
        for path in sorted(WRITTEN)
        for text in replaced_words(path, enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
        if not any(own in text for own in UPSTREAM)
    ]
    assert not items, "\n".join(items)


@pytest.mark.parametrize("part", sorted(path.name for path in (ROOT / "kschedx").iterdir() if path.is_dir()))
def test_screens_use_the_words_of_the_field(part: str) -> None:
    paths = sorted((ROOT / "kschedx" / part).rglob("*.py"))
    items = [
        text
        for path in paths
        for text in replaced_words(path, literals(path))
        if not any(own in text for own in UPSTREAM)
    ]
    assert not items, "\n".join(items)


LONGEST_SENTENCE = 25
LONGEST_ON_SCREEN = 15
"""Words, without names and quantities."""


def test_sentences_of_the_reasons_are_short() -> None:
    texts = [
        text
        for reason in reasons().values()
        for text in (*reason.means.split(". "), *reason.causes, *reason.fixes, *reason.useless)
    ]
    assert not [text for text in texts if len(text.split()) > LONGEST_SENTENCE]


def test_the_address_of_the_documentation_is_everywhere_the_same() -> None:
    config = (ROOT / "docs/mkdocs.yml").read_text(encoding="utf-8")
    assert f"site_url: {DOCUMENTATION}" in config


NO_SENTENCE = re.compile(r"```.*?```|^\|.*?$|^\s*[-\d].*?$|^#.*?$", re.DOTALL | re.MULTILINE)
"""Code, tables, lists, and headings."""


def test_sentences_of_the_guides_are_short() -> None:
    long = [
        f"{path.name}: {' '.join(sentence.split())}"
        for path in sorted((ROOT / "docs/pages").rglob("*.md"))
        for sentence in re.split(r"(?<=[.!?:;])\s+", NO_SENTENCE.sub("", path.read_text(encoding="utf-8")))
        if len(sentence.split()) > LONGEST_SENTENCE
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("text", ["it is made anew", "nobody waits", "the colour", "held by 2 pods"])
def test_a_replaced_word_is_found(text: str) -> None:
    assert list(replaced_words(ROOT / "README.md", [(1, text)]))


WIDTH = 100  # of the recorded screens
MARK = re.compile(r"^[✓✗‖?] ")
LABELLED = re.compile(r"  \S+( \S+)?  +\S")
BALANCE = re.compile(r"^  free\s+(\S+) = (\S+) allocatable - (\S+) requested", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLAIN = re.compile(r"(?<!\S)[A-Za-z'-]+[,.:;)]?(?!\S)")


def headlines(screen: str) -> Iterator[str]:
    """Return the first sentence of an answer, joined from its lines up to the first labeled one."""
    lines = screen.splitlines()[1:]
    if lines and MARK.match(lines[0]):
        rest = takewhile(lambda line: re.match(r"  \S", line) and not LABELLED.match(line), lines[1:])
        joined = lines[0]
        for before, line in pairwise((lines[0], *rest)):  # a line that had room for the next word ends a sentence
            is_wrapped = len(before) + 1 + len(line.split()[0]) > WIDTH
            joined += f"{' ' if is_wrapped else ' · '}{line.strip()}"
        yield joined


def test_a_headline_is_short_and_has_no_period() -> None:
    for path in SCREENS:
        for headline in headlines(path.read_text(encoding="utf-8")):
            assert not headline.endswith("."), path
            for sentence in re.split(r"(?<=[.:;!?])\s+| · ", headline):
                assert len(PLAIN.findall(sentence)) <= LONGEST_ON_SCREEN, (path, sentence)
            assert not re.match(r"[A-Z][a-z]*\b", headline[2:]), path


SENTENCE = re.compile(
    r"^  (?:note|fix 1|    \d)\s+(?P<first>\S.*)\n(?P<rest>(?:(?! *to apply:) {12,}[^\s$].*\n)*)", re.MULTILINE
)
"""A note, or a fix, with the lines that continue it."""


def test_sentences_of_notes_and_fixes_are_short() -> None:
    for path in SCREENS:
        for match in SENTENCE.finditer(path.read_text(encoding="utf-8")):
            text = " ".join([match["first"], *match["rest"].split()])
            for sentence in re.split(r"(?<=[.:;!?])\s+| · ", text):
                assert len(PLAIN.findall(sentence)) <= LONGEST_ON_SCREEN, (path, sentence)


def test_the_amounts_of_a_screen_have_one_unit() -> None:
    for path in SCREENS:
        for amounts in BALANCE.findall(path.read_text(encoding="utf-8")):
            units = {re.sub(r"^[\d.]+", "", amount) for amount in amounts if amount != "0"}
            assert len(units) <= 1, (path, amounts)


NAMES = re.compile(
    r"`.*?`|\b(?:GPUs|CI|CPU|Python|Kueue|Kubernetes|Karpenter|Pending|ResourceQuota|PodDisruptionBudgets?|Jobs?|Workloads?|ClusterQueues?|StrictFIFO|StatefulSet|ReadWriteOncePod|API|JSON|HTML|MCP|I)\b"
)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/pages").rglob("*.md")), ids=lambda path: path.stem)
def test_headings_are_in_sentence_case(path: Path) -> None:
    for heading in HEADING.findall(re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)):
        _, _, rest = NAMES.sub("x", heading).partition(" ")
        assert not re.search(r"(?<![:.?] )\b[A-Z]", rest), heading
        assert not heading.endswith(".")

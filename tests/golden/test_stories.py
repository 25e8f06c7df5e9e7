"""Every story of `fixtures/` prints what the expected files here hold, and every screen keeps to its laws."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import kschedx as library
from tests.command import ROOT, kschedx
from tests.conftest import Golden
from tests.golden.stories import CLUSTERS, STORIES, Story, screen, tell

FOLDER = Path(__file__).parent
Json = dict[str, Any]
MOST_LINES = {100: 30, 80: 34}
"""The maximum number of lines of a first screen, by the columns of the window."""

WHOLE = ("zone-full", "tie", "preemption-pdb")
"""Fixtures with expected files in every form. The others have only the first screen: a new plugin changes few files."""

SCREENS: dict[str, tuple[int, tuple[str, ...]]] = {
    "why-80": (80, ()),
    "nodes": (100, ("--nodes", "all")),
    "wide": (100, ("-o", "wide")),
    "name": (100, ("-o", "name")),
}
"""Name of the expected file to the columns of the window and the options."""

each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
each_whole = pytest.mark.parametrize(
    "story", [story for story in STORIES if story.name in WHOLE], ids=lambda story: story.name
)


@each_story
def test_the_first_screen_is_as_expected(story: Story, golden: Golden) -> None:
    golden.check(FOLDER / story.name / "why.txt", screen(story, columns=100))


@each_whole
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_expected(story: Story, name: str, golden: Golden) -> None:
    columns, options = SCREENS[name]
    golden.check(FOLDER / story.name / f"{name}.txt", screen(story, *options, columns=columns))


@each_whole
def test_a_node_in_detail_is_as_expected(story: Story, golden: Golden) -> None:
    golden.check(FOLDER / story.name / "node.txt", screen(story, "--node", story.first_node))


@each_whole
def test_the_document_is_as_expected(story: Story, golden: Golden) -> None:
    golden.check(FOLDER / story.name / "document.json", tell(story, "-o", "json").out)


def test_every_expected_file_has_a_story(golden: Golden) -> None:
    strays = {path for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("__")}
    strays -= {FOLDER / story.name for story in STORIES}
    if golden.updating:
        for path in strays:
            shutil.rmtree(path)
    else:
        assert not strays


# --- laws of every screen


def fits_its_window(story: Story, document: Json) -> None:
    for columns, most in MOST_LINES.items():
        result = tell(story, columns=columns)
        lines = (result.out + result.err).splitlines()
        assert len(lines) <= most
        assert not [line for line in lines if cell_len(line) > columns]


def ends_with_its_footer(story: Story, document: Json) -> None:
    """However long it is: the version and how to see more are not cut."""
    if "Undecided" in (document["outcome"], document.get("overall")):
        return
    for columns in MOST_LINES:
        footer = tell(story, columns=columns).out.rpartition("\n\n")[2].replace("\n", " ")
        assert footer.startswith(f"kube-scheduler {document['kubernetesVersion']}, profile ")
        assert "more: " in footer


def has_no_line_that_ends_in_blanks(story: Story, document: Json) -> None:
    for options in ((), ("-o", "wide"), *((("--nodes", "all"),) if story.name in WHOLE else ())):
        assert not [line for line in tell(story, *options).out.splitlines() if line != line.rstrip()]


def writes_no_escapes_to_a_pipe(story: Story, document: Json) -> None:
    assert "\x1b" not in tell(story).out + tell(story, "-o", "wide").out


def names_its_subject_first(story: Story, document: Json) -> None:
    subject = document["replicas"]["workload"] if "replicas" in document else document["pod"]["name"]
    assert subject in tell(story).out.partition("\n")[0]


def quotes_kube_schedulers_message_once(story: Story, document: Json) -> None:
    message = document["message"]
    words = " ".join(tell(story, "-o", "wide").out.split())
    narrow = " ".join(tell(story, columns=60).out.split())
    assert (" ".join(message.split()) in narrow) is (" ".join(message.split()) in words)
    # of a pod that does not come to the queue kube-scheduler says nothing
    times = 0 if document["outcome"] == "Gated" else 1
    assert words.count(" ".join(message.split())) == times or not message


def ends_with_the_code_of_its_outcome(story: Story, document: Json) -> None:
    assert tell(story).code == {"Scheduled": 0, "Undecided": 3}.get(document["outcome"], 1)


def is_the_same_as_yaml_and_names(story: Story, document: Json) -> None:
    import yaml

    assert story.name not in WHOLE or yaml.safe_load(tell(story, "-o", "yaml").out) == document
    lines = [f"node/{name}" for name in document["bestNodes"]]
    if "replicas" in document:
        placed = document["replicas"]["placed"]
        lines = [f"{pod} node/{node}" for pod, node in placed.items()] + document["replicas"]["pending"]
    assert tell(story, "-o", "name").out.splitlines() == lines


def is_the_librarys_document(story: Story, document: Json) -> None:
    if story.manifest["kind"] != "Pod":
        return
    snapshot = library.load(str(story.cluster))
    extenders = None if story.extenders is None else json.loads((ROOT / story.extenders).read_text(encoding="utf-8"))
    explanation = library.explain(snapshot, story.manifest, config=story.configuration, extenders=extenders)
    assert document == json.loads(json.dumps(explanation.to_dict()))


def has_the_event_that_its_readme_quotes(story: Story, document: Json) -> None:
    lines = (ROOT / story.folder / "README.md").read_text(encoding="utf-8").splitlines()
    quoted = [line.removeprefix("> ") for line in lines if line.startswith("> 0/")]
    assert quoted in ([], [document["message"]])


LAWS = (
    fits_its_window,
    ends_with_its_footer,
    has_no_line_that_ends_in_blanks,
    writes_no_escapes_to_a_pipe,
    names_its_subject_first,
    quotes_kube_schedulers_message_once,
    ends_with_the_code_of_its_outcome,
    is_the_same_as_yaml_and_names,
    is_the_librarys_document,
    has_the_event_that_its_readme_quotes,
)


@pytest.mark.sample(6)
@each_story
def test_every_output_obeys_the_laws(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """All laws are in a single test, so that each output is computed once."""
    monkeypatch.chdir(ROOT)
    document = json.loads(tell(story, "-o", "json").out)
    for law in LAWS:
        law(story, document)


# --- other screens of the same clusters

IN_TURN = (
    ("simulate",),
    ("drain", "--each"),
    ("survive", "--each", "node"),
    ("diff-profiles", "default", "binpack", "--all"),
    ("nodes",),
    ("scale-down",),
    ("doctor",),
)


@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(len(CLUSTERS)), ids=[path.parent.name for path in CLUSTERS])
def test_no_screen_is_wider_than_the_window(number: int) -> None:
    """Except for lines of one word. Each cluster answers for its pending pods, and one of the other questions."""
    cluster = CLUSTERS[number].relative_to(ROOT)
    wide = ("-o", "wide") if number % 2 else ()
    for question in (("why", "--all-pending", *wide), IN_TURN[number % len(IN_TURN)]):
        where = (cluster,) if question == ("doctor",) else ("-s", cluster)
        result = kschedx(*question, *where, columns=80)
        long = [line for line in result.out.splitlines() if cell_len(line) > 80 and " " in line.strip(" \\")]
        assert not long, question

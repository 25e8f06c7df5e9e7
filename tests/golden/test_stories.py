"""Every story of `fixtures/` is told as the expected files here say, and every screen keeps to its laws."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len

import kschedx as library
from tests.command import ROOT, kschedx
from tests.conftest import Golden
from tests.golden.stories import CLUSTERS, STORIES, Story, screen, tell

FOLDER = Path(__file__).parent
MOST_LINES = {100: 30, 80: 34}
"""Of a first screen, by the columns of the window."""

WHOLE = ("zone-full", "tie", "preemption-pdb")
"""Stories shown in every form; of the others the first screen stands for all, so that a new plugin moves few files."""

SCREENS: dict[str, tuple[int, tuple[str, ...]]] = {
    "why-80": (80, ()),
    "nodes": (100, ("--nodes", "all")),
    "wide": (100, ("-o", "wide")),
    "name": (100, ("-o", "name")),
}
"""Name of the expected file to the window's columns and the options."""

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


@each_story
@pytest.mark.parametrize("columns", [80, 100])
def test_the_first_screen_fits(story: Story, columns: int) -> None:
    ran = tell(story, columns=columns)
    lines = (ran.out + ran.err).splitlines()
    assert len(lines) <= MOST_LINES[columns]
    assert not [line for line in lines if cell_len(line) > columns]


QUICK = (("why", "--all-pending"), ("why", "--all-pending", "-o", "wide"), ("nodes",), ("scale-down",))
SLOW = (
    ("simulate",),
    ("drain", "--each"),
    ("survive", "--each", "node"),
    ("diff-profiles", "default", "binpack", "--all"),
)


@pytest.mark.parametrize("number", range(len(CLUSTERS)), ids=[path.parent.name for path in CLUSTERS])
def test_no_screen_is_wider_than_the_window(number: int) -> None:
    """Unless a line is one word; each fixture is asked every quick question, and one of the slow ones in turn."""
    cluster = CLUSTERS[number].relative_to(ROOT)
    for question in (*QUICK, SLOW[number % len(SLOW)]):
        ran = kschedx(*question, "-s", cluster, columns=80)
        long = [line for line in ran.out.splitlines() if cell_len(line) > 80 and " " in line.strip(" \\")]
        assert not long, question
    assert not [line for line in kschedx("doctor", cluster, columns=80).out.splitlines() if cell_len(line) > 80]


@each_story
@pytest.mark.parametrize("options", [(), ("-o", "wide"), ("--nodes", "all")], ids=" ".join)
def test_no_line_ends_in_blanks(story: Story, options: tuple[str, ...]) -> None:
    assert not [line for line in tell(story, *options).out.splitlines() if line != line.rstrip()]


@each_story
def test_a_pipe_gets_no_escapes(story: Story) -> None:
    assert "\x1b" not in tell(story).out + tell(story, "-o", "wide").out


@each_story
def test_the_outcome_is_the_first_line(story: Story) -> None:
    document = json.loads(tell(story, "-o", "json").out)
    first = tell(story).out.partition("\n")[0]
    subject = document["replicas"]["workload"] if "replicas" in document else document["pod"]["name"]
    assert subject in first


@each_story
def test_kube_schedulers_message_is_quoted_once(story: Story) -> None:
    document = json.loads(tell(story, "-o", "json").out)
    message = document["message"]
    words = " ".join(tell(story, "-o", "wide").out.split())
    # of a pod that does not come to the queue kube-scheduler says nothing
    times = 0 if document["outcome"] == "Gated" else 1
    assert words.count(" ".join(message.split())) == times or not message


@each_story
def test_the_exit_code_tells_the_outcome(story: Story) -> None:
    outcome = json.loads(tell(story, "-o", "json").out)["outcome"]
    assert tell(story).code == {"Scheduled": 0, "Undecided": 3}.get(outcome, 1)


@each_story
def test_all_outputs_agree(story: Story) -> None:
    """JSON, YAML, -o name and the library say the same."""
    import yaml

    document = json.loads(tell(story, "-o", "json").out)
    assert yaml.safe_load(tell(story, "-o", "yaml").out) == document
    lines = [f"node/{name}" for name in document["bestNodes"]]
    if "replicas" in document:
        placed = document["replicas"]["placed"]
        lines = [f"{pod} node/{node}" for pod, node in placed.items()] + document["replicas"]["pending"]
    assert tell(story, "-o", "name").out.splitlines() == lines


@pytest.mark.parametrize(
    "story", [one for one in STORIES if one.manifest["kind"] == "Pod"], ids=lambda story: story.name
)
def test_the_command_prints_the_librarys_document(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    snapshot = library.load(str(story.cluster))
    extenders = None if story.extenders is None else json.loads((ROOT / story.extenders).read_text(encoding="utf-8"))
    explanation = library.explain(snapshot, story.manifest, config=story.configuration, extenders=extenders)
    assert json.loads(tell(story, "-o", "json").out) == json.loads(json.dumps(explanation.to_dict()))


# --- what a story's README says


def quoted(story: Story) -> list[str]:
    """The event texts that its README quotes."""
    lines = (ROOT / story.folder / "README.md").read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("> ") for line in lines if line.startswith("> 0/")]


@pytest.mark.parametrize("story", [one for one in STORIES if quoted(one)], ids=lambda story: story.name)
def test_the_event_that_the_readme_quotes_is_the_message(story: Story) -> None:
    assert quoted(story) == [json.loads(tell(story, "-o", "json").out)["message"]]

"""What one form of an answer shows, all can show."""

from __future__ import annotations

import html as entities
import re
from collections.abc import Sequence

import msgspec
import pytest

import kschedx
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.html import html
from kschedx.render.page.markdown import markdown
from kschedx.render.page.model import Page
from kschedx.render.page.reports import drains_page, drains_view, simulation_page, simulation_view
from kschedx.render.page.svg import MOST_FIXES, svg
from kschedx.render.screen import explanation_view, why_lines
from kschedx.render.simulation import drains_lines, simulation_lines
from kschedx.render.terminal import short_node_names, shown
from kschedx.render.view import View
from tests.command import ROOT
from tests.golden.stories import STORIES, Story

each_pod = pytest.mark.parametrize(
    "story", [one for one in STORIES if one.manifest["kind"] == "Pod"], ids=lambda story: story.name
)


def letters(text: str) -> str:
    """Text without blanks, markup, and the domains of nodes, which lines break and shorten."""
    return re.sub(r"[\s\\*`#|]|&#64;|<br>", "", entities.unescape(text))


def required(view: View) -> list[str]:
    """What no form may leave out."""
    deciders = [text for one in view.deciders for text in (one.sentence, *(row.text for row in one.rows))]
    return [view.headline, *view.because, *(fix.title for fix in view.every_fix), *deciders]


def shown_in(page: Page) -> dict[str, str]:
    data = re.search(r'<script type="application/json" id="page">(.*?)</script>', html(page), re.DOTALL)
    assert data is not None
    strings: list[str] = []
    todo: list[object] = [msgspec.json.decode(data[1])]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return {"html": " ".join(strings), "markdown": markdown(page)}


def explained(story: Story) -> tuple[View, Page, str, Sequence[str]]:
    snapshot = kschedx.load(str(ROOT / story.cluster))
    explanation = kschedx.explain(snapshot, story.manifest, config=story.configuration)
    lines = why_lines(explanation, width=100_000, wide=True)
    screen = "\n".join(line.plain for line in lines)
    return explanation_view(explanation), explanation_page(explanation), screen, snapshot.cluster.names


@each_pod
def test_causes_fixes_and_autoscalers_are_in_every_form(story: Story) -> None:
    view, page, screen, names = explained(story)
    for form, text in shown_in(page).items():
        missing = [one for one in required(view) if letters(one) not in letters(text)]
        assert not missing, form
    with short_node_names(names):
        assert not [one for one in required(view) if letters(shown(one)) not in letters(screen)]
    picture = re.sub("<[^>]*>", "", letters(svg(page)))
    card = [view.headline, *view.because, *(fix.title for fix in view.every_fix[:MOST_FIXES])]
    assert not [
        one for one in card if letters(re.sub("<[^>]*>", "", one)) not in letters(re.sub("<[^>]*>", "", picture))
    ]


def node(name: str, cpu: str) -> dict[str, object]:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str, **spec: object) -> dict[str, object]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


@pytest.mark.parametrize("change", [{}, {"drain": "a"}], ids=["simulate", "drain"])
def test_fixes_of_simulations_and_drains_are_in_every_form(change: dict[str, str]) -> None:
    objects = [node("a", "4"), node("b", "1"), pod("one", "3", nodeName="a"), pod("two", "9")]
    simulation = kschedx.simulate(kschedx.Snapshot.from_objects(objects), changes=[change] if change else [])
    if change:
        view, page = drains_view(simulation, each=False), drains_page(simulation, each=False)
        lines = drains_lines(simulation, width=100_000, each=False, wide=True)
    else:
        view, page = simulation_view(simulation), simulation_page(simulation)
        lines = simulation_lines(simulation, width=100_000, wide=True)
    assert view.every_fix
    screen = "\n".join(line.plain for line in lines)
    for form, text in {**shown_in(page), "terminal": screen}.items():
        assert not [fix.title for fix in view.every_fix if letters(fix.title) not in letters(text)], form


def test_what_changes_do_is_in_every_form() -> None:
    bare = {**pod("bare", "1", nodeName="a"), "metadata": {"name": "bare", "uid": "bare"}}
    snapshot = kschedx.Snapshot.from_objects([node("a", "4"), node("b", "1"), bare, pod("two", "9")])
    simulation = kschedx.simulate(snapshot, changes=[{"drain": "a"}])
    view, page = simulation_view(simulation), simulation_page(simulation)
    told = [item for fact in view.facts for item in fact.items]
    assert any("declare no controller" in one for one in told)
    screen = "\n".join(line.plain for line in simulation_lines(simulation, width=100_000, wide=True))
    for form, text in {**shown_in(page), "terminal": screen}.items():
        assert not [one for one in told if letters(one) not in letters(text)], form

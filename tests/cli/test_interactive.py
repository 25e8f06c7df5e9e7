"""`kschedx why -i`, with textual's pilot."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import anyio
import pytest
import yaml
from msgspec.structs import replace
from textual.coordinate import Coordinate
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static, TabbedContent

import kschedx as library
from kschedx.cli.interactive import Browser, Listing, PendingPage, TablePage, Why, browse
from kschedx.errors import UndecidableError
from kschedx.explain.causes import CauseGroup, PodAnswer, groups
from kschedx.framework.cycle import Outcome
from kschedx.inquiry import manifest_edit as trying
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.manifests import pod_manifest
from kschedx.progress import Phase, ProgressStep
from kschedx.render.terminal import short_node_names
from kschedx.render.view import Tone
from tests.command import ROOT, kschedx


def changed(before: Explanation, change: str) -> Explanation:
    return library.explain(before.cycle.snapshot, trying.with_change(pod_manifest(before.cycle.pod), change))


def walked(
    name: str, walk: Callable[[Browser, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (140, 40)
) -> None:
    """Run a session with the answer of a fixture."""
    folder = ROOT / "fixtures" / name
    cluster = next(path for path in (folder / "cluster", folder / "cluster.yaml") if path.exists())
    manifest = yaml.safe_load((folder / "pod.yaml").read_text())

    async def run() -> None:
        app = Browser(Why(library.explain(library.load(str(cluster)), manifest), changed))
        app.animation_level = "none"
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await walk(app, pilot)

    anyio.run(run)


def names(app: Browser) -> list[str]:
    table = app.screen.query_one(DataTable)
    return [str(key.value) for key in table.rows]


def page(app: Browser) -> str:
    return type(app.screen).__name__


def shown(app: Browser, selector: str) -> str:
    return str(app.screen.query_one(selector, Static).render())


def test_every_node_has_a_row_with_its_details() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        assert len(names(app)) == 6
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.screen.query_one(TabbedContent).active == "node"
        assert names(app)[1] in shown(app, "#story")

    walked("zone-full", walk)


def test_typing_filters_by_name_plugin_or_reason() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"affin")
        await pilot.pause()
        assert len(names(app)) == 4
        await pilot.press("enter", "f")
        await pilot.pause()
        assert app.screen.query_one(TabbedContent).active == "fixes"

    walked("zone-full", walk)


def test_a_fix_is_tried_and_undone() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("f")
        await pilot.pause()
        assert "kind: Node" in shown(app, "#fix-text")
        await pilot.press("enter")
        await pilot.pause()
        assert "Scheduled" in shown(app, "#tried")
        assert str(app.screen.query_one(DataTable).get_row_at(0)[1]) == "fits"
        await pilot.press("u")
        await pilot.pause()
        assert not app.screen.query_one("#tried", Static).display
        assert str(app.screen.query_one(DataTable).get_row_at(0)[1]) != "fits"

    walked("zone-full", walk)


def test_a_fix_of_a_node_is_the_command_that_the_screen_has() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("f", "down")
        await pilot.pause()
        assert "kubectl taint node ip-10-20-33-12" in shown(app, "#fix-text")
        assert "kubectl patch" not in shown(app, "#fix-text")

    walked("gpu-pool-taints", walk)


def test_a_change_is_typed_and_tried() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("t")
        await pilot.pause()  # until the input has the focus
        await pilot.press(*"spec.nodeSelector-", "enter")
        await pilot.pause()
        assert "there is no" in next(iter(app._notifications)).message  # the error is shown, and the answer stays
        assert not app.screen.query_one("#tried", Static).display
        app.screen.query_one("#change", Input).value = 'spec.nodeSelector={"disk":"none"}'
        await pilot.press("enter")
        await pilot.pause()
        assert "Unschedulable" in shown(app, "#tried")

    walked("tie", walk)


def test_feasible_nodes_come_first_with_their_totals() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        assert names(app)[-1] == "lab-cp-01"
        assert str(app.screen.query_one(DataTable).get_cell("lab-worker-01", "total")) == "458"

    walked("tie", walk)


def test_a_row_is_sorted_copied_and_explained() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        first = names(app)
        await pilot.press("s")
        await pilot.pause()
        assert names(app) == sorted(first)
        await pilot.press("c")
        assert app.clipboard == names(app)[0]
        await pilot.press("f", "c")
        assert app.clipboard.startswith("# create a node like this")

    walked("zone-full", walk)


def test_the_keys_are_listed_over_the_page() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        for close in ("escape", "question_mark", "q"):
            await pilot.press("question_mark")
            await pilot.pause()
            listed = shown(app, "#keys Static")
            assert "Show the verdict on the chosen node" in listed
            assert "Undo" not in listed, "nothing was tried"
            await pilot.press(close)
            await pilot.pause()
            assert page(app) == "Why"

    walked("zone-full", walk)


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
def test_no_line_of_an_answer_is_broken_twice(width: int) -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        nodes, side = app.screen.query_one("#nodes").region, app.screen.query_one("#side").region
        is_below = width < 110
        assert (side.y >= nodes.bottom, side.x >= nodes.right) == (is_below, not is_below)
        assert side.width == (width if is_below else pytest.approx(width * 3 / 5, abs=1))
        for key, selector in (("a", "#whole"), ("n", "#story")):
            await pilot.press(key)
            await pilot.pause()
            content = app.screen.query_one(selector, Static)
            assert content.size.height == len(shown(app, selector).splitlines())

    walked("zone-full", walk, (width, 24))


def test_the_answer_is_wrapped_again_in_another_window() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        lines = shown(app, "#whole").splitlines()
        await pilot.resize_terminal(60, 24)
        await pilot.pause()
        narrow = shown(app, "#whole").splitlines()
        assert max(map(len, narrow)) <= 60 < max(map(len, lines))

    walked("zone-full", walk)


def test_letters_move_and_commands_have_full_names() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("j", "j", "k", "enter")
        await pilot.pause()
        assert names(app)[1].removeprefix("gke-prod-euw4-") in shown(app, "#story")
        await pilot.press("f", "j")
        await pilot.pause()
        assert "kubectl cordon gke-prod-euw4-general-a6794389-5xcb" in shown(app, "#fix-text")

    with short_node_names(library.load(str(ROOT / "fixtures/zone-full/cluster")).cluster.names) as short:
        assert short
        walked("zone-full", walk)


def test_an_error_of_the_program_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual prints the variables of every function instead."""
    monkeypatch.setattr(Browser, "run", lambda self: self._handle_exception(ZeroDivisionError()))
    monkeypatch.setattr("kschedx.cli.interactive._end_with_terminal", lambda: None)
    with pytest.raises(ZeroDivisionError):
        browse(lambda: None)


def test_node_names_stay_short_after_each_key() -> None:
    async def walk(app: Browser, pilot: Pilot[None]) -> None:
        for keys in ((), ("s",), ("f", "enter"), ("u",)):
            await pilot.press(*keys)
            await pilot.pause()
            listing = app.screen.query_one(Listing)
            cells = [str(listing.get_cell_at(Coordinate(row, 0))) for row in range(listing.row_count)]
            assert "general-a6794389-2vkf" in cells, keys

    with short_node_names(library.load(str(ROOT / "fixtures/zone-full/cluster")).cluster.names):
        walked("zone-full", walk)


def test_from_causes_to_pods_to_nodes_and_back() -> None:
    snapshot = library.load(str(ROOT / "fixtures/zone-full/cluster"))
    manifest = yaml.safe_load((ROOT / "fixtures/zone-full/pod.yaml").read_text())
    result = library.explain(snapshot, manifest)
    texts = PodAnswer(
        pod=result.cycle.pod.key, owner="", priority=0, outcome=result.outcome, command="kschedx why pod/a -n shop",
        headlines=("insufficient cpu",),
    )  # fmt: skip
    many = CauseGroup(answers=(texts, *(replace(texts, pod=f"shop/b{number}") for number in range(300))))

    async def run() -> None:
        app = Browser(PendingPage("301 pods", Tone.BAD, [many], lambda _: Why(result, changed)))
        app.animation_level = "none"
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            await pilot.press("slash", *"shop/b299", "enter")
            await pilot.pause()
            assert len(names(app)) == 1  # a cause is found by each of its pods
            await pilot.press("enter")
            await pilot.pause()
            await pilot.pause()
            assert len(names(app)) == 301  # also those that are not in the first paint
            await pilot.press("c")
            assert app.clipboard == "kschedx why pod/a -n shop"
            await pilot.press("enter")
            await pilot.pause()
            assert page(app) == "Why"
            await pilot.press("escape", "escape")
            await pilot.pause()
            assert page(app) == "PendingPage"
            await pilot.press("escape")
            assert page(app) == "PendingPage"
            assert app.screen.query_one(Listing).has_focus

    anyio.run(run)


def test_pods_are_listed_before_they_are_decided() -> None:
    """The list shows progress, then each answer in its row; the filter stays."""
    waiting = PodAnswer(pod="shop/a", priority=0, outcome=None, message="not decided yet")
    other = replace(waiting, pod="lab/b", cause=("lab",))
    decided = replace(waiting, outcome=Outcome.UNSCHEDULABLE, message="", headlines=("insufficient cpu",))

    def undecided(pod: str) -> TablePage:
        raise UndecidableError(f"{pod} is not decided yet")

    async def run() -> None:
        app = Browser()
        async with app.run_test(size=(100, 30)) as pilot:
            app.see(ProgressStep(Phase.READING, 1, 4, "MB", of="cluster.json"))
            app._show_step()
            assert shown(app, "#step").startswith("reading cluster.json · 1 of 4 MB · ")
            others = [replace(other, cause=(number,)) for number in range(60)]
            app.present(PendingPage("61 pods", Tone.OPEN, groups([waiting, *others]), undecided))
            await pilot.pause()
            assert not app.screen.max_scroll_y, "a long table scrolls by itself; headline and progress stay in sight"
            await pilot.press("slash", *"shop", "enter", "enter", "enter")
            await pilot.pause()
            assert page(app) == "Pods"
            assert next(iter(app._notifications)).message == "shop/a is not decided yet"
            await pilot.press("escape")
            app.present(PendingPage("1 pod is unschedulable", Tone.BAD, groups([decided, other]), undecided))
            app.finish()
            app.see(ProgressStep(Phase.TRYING_FIXES))
            app._show_step()
            await pilot.pause()
            assert shown(app, "#head") == "✗ 1 pod is unschedulable"
            assert app.screen.query_one(DataTable).get_row_at(0)[2].plain == "✗ insufficient cpu"
            assert len(names(app)) == 1
            assert not app.screen.query_one("#step", Static).display

    anyio.run(run)


@pytest.mark.parametrize(
    ("snapshot", "keys", "code"), [("fixtures/nowhere", "", 2), ("fixtures/tie/cluster.yaml", "q", 0)]
)
def test_an_error_is_printed_after_the_screen_closes(snapshot: str, keys: str, code: int) -> None:
    command = [sys.executable, "-m", "kschedx", "why", "fixtures/tie/pod.yaml", "-i", "-s", snapshot]
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
    with subprocess.Popen(command, cwd=ROOT, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        text, ends = b"", time.monotonic() + 60
        while time.monotonic() < ends and select.select([ours], [], [], 30)[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:
                break
            if keys and b"lab-worker-01" in text:
                os.write(ours, keys.encode())
        process.terminate()
        assert process.wait(30) == code
    os.close(ours)
    assert (b"error: fixtures/nowhere: no such file" in text.rpartition(b"\x1b[?1049l")[2]) == (code == 2)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("fixtures/tie/pod.yaml",), "needs a terminal, and standard output is none"),
        (("--all-pending", "--shard", "1/2"), "cannot be combined with --shard"),
        (("fixtures/tie/pod.yaml", "-o", "json"), "cannot be combined with -o json"),
    ],
)
def test_interactive_needs_a_terminal(arguments: tuple[str, ...], texts: str) -> None:
    result = kschedx("why", *arguments, "-i", "-s", "fixtures/tie/cluster.yaml")
    assert result.code == 2
    assert result.err == f"error: --interactive {texts}\n"

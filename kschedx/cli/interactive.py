"""`kschedx why -i`: an answer to walk through in the terminal. Needs the extra interactive.

Everything shown is text that was made harmless already; nothing is markup.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import DataTable, Footer, Input, OptionList, Static, TabbedContent, TabPane

from kschedx.errors import KschedxError
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.ranking import ranking
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix
from kschedx.render.blocks import shown_findings
from kschedx.render.manifests import kubectl_commands
from kschedx.render.scores import node_verdict_lines
from kschedx.render.screen import why_lines
from kschedx.render.terminal import text
from kschedx.render.wording import visible
from kschedx.render.words import describe

LEAST_WIDTH = 60
"""Columns that a story is laid out for at least."""
FRAME = 7
"""Columns beside a story's text: border, padding, scroll bar."""
_WATCHED = 0.5
"""Seconds between two looks at whether the terminal is there."""
SHOWN = 4
"""Nodes that are named beside a fix."""


Try = Callable[[Explanation, str], Explanation]
"""The answer about the same pod with a change that somebody typed; raises `KschedxError`."""


HUNG_UP = 128 + signal.SIGHUP


def end_with_terminal() -> None:
    """Let this process end as soon as its terminal is gone: there is nobody to show anything to."""
    terminal = 0

    def watch() -> None:
        with contextlib.suppress(termios.error, OSError):
            while True:
                termios.tcgetattr(terminal)
                time.sleep(_WATCHED)
        os._exit(HUNG_UP)

    signal.signal(signal.SIGHUP, lambda *_: os._exit(HUNG_UP))
    threading.Thread(target=watch, daemon=True).start()


class Row:
    """A node as the table has it."""

    def __init__(self, name: str, verdict: str, why: str, total: int | None) -> None:
        self.name = name
        self.verdict = verdict
        self.why = why
        self.total = total
        self.words = f"{name} {verdict} {why}".lower()

    @property
    def told_total(self) -> str:
        return "" if self.total is None else f"{self.total:,}"


class View:
    """An answer, and what was changed to get it."""

    def __init__(self, explanation: Explanation, changes: tuple[str, ...] = ()) -> None:
        self.explanation = explanation
        self.changes = changes
        self.ranking = ranking(explanation.cycle)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return Diagnosis(self.explanation.cycle)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The nodes that fit, best first, then the others, nearest first."""
        cycle = self.explanation.cycle
        found = [Row(node.name, "fits", "", node.total) for node in self.ranking.nodes] if self.ranking else []
        if cycle.nodes is None or cycle.filter is None:
            return tuple(found)
        seen = {row.name for row in found}
        passed = cycle.nodes.names_where(cycle.filter.passed)
        found += [Row(name, "fits", "", None) for name in passed if name not in seen]
        for group in self.diagnosis.groups:
            for row in group.rows:
                blockers = self.diagnosis.detail(row).account.blockers
                headline = describe(shown_findings(blockers[0])[0]).headline
                found.append(Row(cycle.nodes.name(row), blockers[0].plugin, headline, None))
        return tuple(found)

    @property
    def labels(self) -> tuple[str, ...]:
        return ("node", "verdict", *(("total",) if self.ranking is not None else ()), "why")

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.explanation.fixes

    def story(self, node: str, width: int) -> list[Text]:
        return node_verdict_lines(self.diagnosis, self.ranking, node, width)


class Why(App[None]):
    """The node table, filtered by typing; a node's story beside it; the answer; fixes and own changes to try.

    What is tried changes the answer, the nodes and the fixes, until it is taken back; nothing is ever sent.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "kschedx why"
    CSS = """
    #nodes { width: 2fr; }
    #side { width: 3fr; border-left: solid $primary; padding: 0 1; }
    #filter { dock: top; }
    #tried { height: auto; padding: 0 1; background: $boost; }
    #fixes-list { height: auto; max-height: 50%; }
    #fix { height: 1fr; padding: 1 1 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("escape", "nodes", "nodes"),
        Binding("a", "show('answer')", "answer"),
        Binding("n", "show('node')", "node"),
        Binding("f", "fixes", "fixes"),
        Binding("t", "change", "try a change"),
        Binding("u", "undo", "undo"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, explanation: Explanation, tried: Try) -> None:
        super().__init__()
        self._views = [View(explanation)]
        self._try = tried
        self._chosen = ""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="filter: name, plugin or reason", id="filter")
        yield Static(id="tried")
        with Horizontal():
            yield DataTable[Text](id="nodes", cursor_type="row", zebra_stripes=True)
            with TabbedContent(id="side", initial="answer"):
                with TabPane("answer", id="answer"), VerticalScroll():
                    yield Static(id="whole")
                with TabPane("node", id="node"), VerticalScroll():
                    yield Static(id="story")
                with TabPane("fixes", id="fixes"), Vertical():
                    yield OptionList(id="fixes-list")
                    with VerticalScroll(id="fix"):
                        yield Static(id="fix-told")
                    yield Input(placeholder="try: spec.nodeSelector.disk=ssd", id="change")
        yield Footer()

    def on_mount(self) -> None:
        self._show_view()
        self._table.focus()

    @property
    def _view(self) -> View:
        return self._views[-1]

    @property
    def _width(self) -> int:
        return max(LEAST_WIDTH, self.size.width * 3 // 5 - FRAME)

    @property
    def _table(self) -> DataTable[Text]:
        found: DataTable[Text] = self.query_one("#nodes", DataTable)
        return found

    def _show_view(self) -> None:
        """Everything anew: the answer is another one."""
        banner = self.query_one("#tried", Static)
        banner.display = bool(self._view.changes)
        banner.update(text(f"tried: {', '.join(self._view.changes)} · {self._view.explanation.outcome.value}", "bold"))
        self._table.clear(columns=True)
        for label in self._view.labels:
            self._table.add_column(label, key=label)
        self._fill(self.query_one("#filter", Input).value)
        self._list_fixes()
        self.on_resize()

    def _list_fixes(self) -> None:
        offered = self.query_one("#fixes-list", OptionList)
        offered.clear_options()
        offered.add_options([text(f"{fix.title} ({fix.certainty.value})") for fix in self._view.fixes])
        offered.display = bool(self._view.fixes)
        self._tell_fix(self._view.fixes[0] if self._view.fixes else None)
        if self._view.fixes:
            offered.highlighted = 0

    def _tell_fix(self, fix: Fix | None) -> None:
        if fix is None:
            fits = bool(self._view.explanation.chosen_nodes)
            none = "The pod fits; there is nothing to fix." if fits else "No fix that was tried helps."
            lines = [text(none)]
        else:
            nodes = ", ".join(fix.feasible_nodes[:SHOWN]) + (", …" if len(fix.feasible_nodes) > SHOWN else "")
            lines = [text(f"enter tries it; it fits {nodes}" if nodes else "enter tries it"), text("")]
            lines += [text(visible(line), "dim") for line in kubectl_commands(fix.apply).splitlines()]
        self.query_one("#fix-told", Static).update(_joined(lines))

    def _fill(self, typed: str) -> None:
        table = self._table
        table.clear()
        wanted = typed.lower().split()
        for row in self._view.rows:
            if all(word in row.words for word in wanted):
                cells = {"node": row.name, "verdict": row.verdict, "total": row.told_total, "why": row.why}
                table.add_row(*(text(cells[label]) for label in self._view.labels), key=row.name)

    def _tell(self) -> None:
        """The chosen node's story. A node that a fix added is gone when the fix is undone."""
        if not any(row.name == self._chosen for row in self._view.rows):
            self._chosen = ""
        if self._chosen:
            self.query_one("#story", Static).update(_joined(self._view.story(self._chosen, self._width)))

    def _push(self, explanation: Explanation, change: str) -> None:
        self._views.append(View(explanation, (*self._view.changes, change)))
        self._show_view()
        self.action_show("answer")
        self._table.focus()

    def on_resize(self) -> None:
        self.query_one("#whole", Static).update(_joined(why_lines(self._view.explanation, width=self._width)))
        self._tell()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._table.focus()
        elif event.value.strip():
            try:
                after = self._try(self._view.explanation, event.value.strip())
            except KschedxError as error:
                self.notify(visible(str(error)), severity="error", markup=False)
                return
            event.input.clear()
            self._push(after, event.value.strip())

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._tell_fix(self._view.fixes[event.option_index])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        fix = self._view.fixes[event.option_index]
        self._push(self._view.explanation.after(fix), fix.title)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._chosen = event.row_key.value or ""
        self._tell()

    def on_data_table_row_selected(self) -> None:
        self.action_show("node")

    def action_filter(self) -> None:
        self.query_one("#filter", Input).focus()

    def action_nodes(self) -> None:
        self._table.focus()

    def action_show(self, pane: str) -> None:
        self.query_one("#side", TabbedContent).active = pane

    def action_fixes(self) -> None:
        self.action_show("fixes")
        if self._view.fixes:
            self.query_one("#fixes-list", OptionList).focus()

    def action_change(self) -> None:
        self.action_show("fixes")
        self.query_one("#change", Input).focus()

    def action_undo(self) -> None:
        if len(self._views) > 1:
            self._views.pop()
            self._show_view()


def _joined(lines: list[Text]) -> Text:
    return Text("\n").join(lines)

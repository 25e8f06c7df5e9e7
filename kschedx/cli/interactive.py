"""`kschedx why -i`: an answer to walk through in the terminal. Needs the extra interactive.

Everything shown is text that was made harmless already; nothing is markup.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane

from kschedx.answer.explanation import Explanation
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.ranking import ranking
from kschedx.render.blocks import told
from kschedx.render.layout import text
from kschedx.render.node_story import node_story
from kschedx.render.safe import visible
from kschedx.render.screen import why
from kschedx.render.words import describe

LEAST_WIDTH = 60
"""Columns that a story is laid out for at least."""
FRAME = 7
"""Columns beside a story's text: border, padding, scroll bar."""


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


def rows(explanation: Explanation) -> list[Row]:
    """The nodes that fit, best first, then the others, nearest first."""
    cycle = explanation.cycle
    diagnosis = Diagnosis(cycle)
    ranked = ranking(cycle)
    found = [Row(node.name, "fits", "", node.total) for node in ranked.nodes] if ranked is not None else []
    if cycle.nodes is None or cycle.filter is None:
        return found
    seen = {row.name for row in found}
    for row in cycle.filter.passed.nonzero()[0].tolist():
        name = cycle.nodes.name(row)
        if name not in seen:
            found.append(Row(name, "fits", "", None))
    for group in diagnosis.groups:
        for row in group.rows:
            blockers = diagnosis.detail(row).account.blockers
            headline = describe(told(blockers[0])[0]).headline
            found.append(Row(cycle.nodes.name(row), blockers[0].plugin, headline, None))
    return found


class Why(App[None]):
    """The node table, filtered by typing; a node's story beside it; the answer, and the fixes that were tried."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "kschedx why"
    CSS = """
    #nodes { width: 2fr; }
    #side { width: 3fr; border-left: solid $primary; padding: 0 1; }
    #filter { dock: top; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("escape", "nodes", "nodes"),
        Binding("a", "show('answer')", "answer"),
        Binding("n", "show('node')", "node"),
        Binding("f", "show('fixes')", "fixes"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, explanation: Explanation) -> None:
        super().__init__()
        self._explanation = explanation
        self._diagnosis = Diagnosis(explanation.cycle)
        self._ranking = ranking(explanation.cycle)
        self._rows = rows(explanation)
        self._chosen = ""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="filter: name, plugin or reason", id="filter")
        with Horizontal():
            yield DataTable[Text](id="nodes", cursor_type="row", zebra_stripes=True)
            with TabbedContent(id="side", initial="answer"):
                with TabPane("answer", id="answer"), VerticalScroll():
                    yield Static(id="whole")
                with TabPane("node", id="node"), VerticalScroll():
                    yield Static(id="story")
                with TabPane("fixes", id="fixes"), VerticalScroll():
                    yield Static(_joined(self._fixes()))
        yield Footer()

    def on_mount(self) -> None:
        table = self._table
        for label in self._labels:
            table.add_column(label, key=label)
        self._fill("")
        table.focus()

    @property
    def _labels(self) -> tuple[str, ...]:
        return ("node", "verdict", *(("total",) if self._ranking is not None else ()), "why")

    @property
    def _width(self) -> int:
        return max(LEAST_WIDTH, self.size.width * 3 // 5 - FRAME)

    def on_resize(self) -> None:
        self.query_one("#whole", Static).update(_joined(why(self._explanation, width=self._width)))
        self._tell()

    @property
    def _table(self) -> DataTable[Text]:
        found: DataTable[Text] = self.query_one("#nodes", DataTable)
        return found

    def _fill(self, typed: str) -> None:
        table = self._table
        table.clear()
        wanted = typed.lower().split()
        for row in self._rows:
            if all(word in row.words for word in wanted):
                cells = {"node": row.name, "verdict": row.verdict, "total": row.told_total, "why": row.why}
                table.add_row(*(text(cells[label]) for label in self._labels), key=row.name)

    def _fixes(self) -> list[Text]:
        found = self._explanation.to_dict()["fixes"]
        assert isinstance(found, list)
        if not found:
            return [text("Nothing that was tried helps.")]
        lines: list[Text] = []
        for number, fix in enumerate(found, start=1):
            nodes = ", ".join(fix["feasibleNodes"][:4])
            lines += [text(f"{number}. {fix['title']} ({fix['certainty']})", "bold"), text(f"   fits {nodes}")]
            for change in fix["changes"]:
                lines += [text(f"   {visible(str(change))}", "dim")]
        return lines

    def on_input_changed(self, event: Input.Changed) -> None:
        self._fill(event.value)

    def on_input_submitted(self) -> None:
        self._table.focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._chosen = event.row_key.value or ""
        self._tell()

    def _tell(self) -> None:
        if self._chosen:
            lines = node_story(self._diagnosis, self._ranking, self._chosen, self._width)
            self.query_one("#story", Static).update(_joined(lines))

    def on_data_table_row_selected(self) -> None:
        self.action_show("node")

    def action_filter(self) -> None:
        self.query_one("#filter", Input).focus()

    def action_nodes(self) -> None:
        self._table.focus()

    def action_show(self, pane: str) -> None:
        self.query_one("#side", TabbedContent).active = pane


def _joined(lines: list[Text]) -> Text:
    return Text("\n").join(lines)

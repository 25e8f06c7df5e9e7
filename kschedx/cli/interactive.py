"""`kschedx why -i`: an answer, or the answers about many pods, to browse in the terminal. Needs the extra interactive.

`--all-pending -i` begins with the causes. Each cause opens its pods, and a pod opens its nodes and fixes. All displayed
text was made harmless before; nothing is markup.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import chain, islice
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, TypeVar, assert_never

from msgspec import Struct
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.events import Print
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Input, OptionList, Static, TabbedContent, TabPane

from kschedx.cli.output import command_line
from kschedx.cli.streams import HUNG_UP
from kschedx.errors import KschedxError, UndecidableError
from kschedx.explain.causes import CauseGroup, PodAnswer, groups, owner_of
from kschedx.explain.ranking import rank_nodes
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.fix import Fix
from kschedx.kube.names import short_names
from kschedx.progress import UPDATE_INTERVAL, Phase, ProgressStep, listen_to_progress, silence
from kschedx.render.blocks import shown_findings
from kschedx.render.manifests import kubectl_commands, node_commands
from kschedx.render.pending import cause_text, cause_title, cause_tone, pending_sentence, pending_tone
from kschedx.render.scores import node_verdict_lines
from kschedx.render.screen import why_lines
from kschedx.render.terminal import StyledLine, short_node_names, text, title_lines
from kschedx.render.view import Tone
from kschedx.wording import count, list_names, visible
from kschedx.words import describe

if TYPE_CHECKING:
    from kschedx.snapshot.snapshot import Snapshot

_T = TypeVar("_T")

_LEAST_WIDTH = 20  # columns of an explanation
_WIDE = 110  # columns from which the answer is beside the nodes instead of below them
_FRAME = 4  # the columns around an explanation's text in its tab: padding and scroll bar
_WATCHED = 0.5  # seconds between checks that the terminal still exists
_SHOWN = 4  # how many nodes are named beside a fix


Try = Callable[[Explanation, str], Explanation]
"""Returns the answer about the same pod with a typed change; raises `KschedxError`."""


def _end_with_terminal() -> None:
    """Let this process end as soon as its terminal is gone."""
    terminal = 0

    def watch() -> None:
        with contextlib.suppress(termios.error, OSError):
            while True:
                termios.tcgetattr(terminal)
                time.sleep(_WATCHED)
        os._exit(HUNG_UP)

    signal.signal(signal.SIGHUP, lambda *_: os._exit(HUNG_UP))
    Thread(target=watch, daemon=True).start()


_BROWSER: ContextVar[Browser] = ContextVar("browser")


def browse(work: Callable[[], _T]) -> _T:
    """Return the result of `work`, which runs while a screen shows its progress, and which passes pages to `show`.

    Ends when the user quits, when the terminal is gone, or with an error of `work`.
    """
    _end_with_terminal()
    silence()
    browser, done = Browser(), Future[_T]()

    def run() -> None:
        _BROWSER.set(browser)
        try:
            with listen_to_progress(browser.see):
                done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by `browse`
            done.set_exception(error)
            browser.call_from_thread(browser.exit)
        else:
            browser.call_from_thread(browser.finish)

    with short_node_names(()) as browser.short_names:
        browser.begin = Thread(target=copy_context().run, args=(run,), daemon=True).start
        browser.run()
    for note in browser.notes:
        sys.stderr.write(note)
    if browser.error is not None:
        raise browser.error
    if not done.done():  # the user quit before the answer
        raise KeyboardInterrupt
    return done.result()


def show(page: TablePage, nodes: Sequence[str]) -> None:
    """Show a page, or its content in the current page of the same class; `nodes` are shown by their short names."""
    browser = _BROWSER.get()
    browser.short_names.update(short_names(nodes))
    browser.call_from_thread(browser.present, page)


def show_undecided(snapshot: Snapshot, rows: Sequence[int]) -> None:
    """Show pods by their owners, before they are decided."""

    def answer(row: int) -> PodAnswer:
        pod, owner = snapshot.pods[row], owner_of(snapshot, snapshot.pods[row])
        said, priority = "not decided yet", int(snapshot.pods.priorities[row])
        cause = (pod.metadata.namespace, owner or pod.metadata.name)
        return PodAnswer(pod=pod.key, owner=owner, priority=priority, outcome=None, message=said, cause=cause)

    def undecided(pod: str) -> TablePage:
        raise UndecidableError(f"{pod} is not decided yet")

    if rows:
        show(
            PendingPage(count(len(rows), "pod"), Tone.OPEN, groups(map(answer, rows)), undecided),
            snapshot.cluster.names,
        )


def show_answers(
    answers: Sequence[PodAnswer], explanation: Callable[[str], Explanation], tried: Try, nodes: Sequence[str]
) -> None:
    """Show the causes of decided pods; `explanation` returns that of a pod, given as `namespace/name`."""

    def open_pod(pod: str) -> TablePage:
        return Why(explanation(pod), tried)

    show(PendingPage(pending_sentence(answers), pending_tone(answers), groups(answers), open_pod), nodes)


class _TableEntry(Struct, frozen=True):
    """A row of a table, with the key of its object."""

    key: str
    cells: tuple[str | int | None, ...]
    hidden: tuple[str, ...] = ()  # other words by which the row is found

    def has(self, words: Sequence[str]) -> bool:
        text = " ".join(map(str, (*self.cells, *self.hidden))).lower()
        return all(word in text for word in words)


_LETTERS: list[BindingType] = [
    Binding("j", "cursor_down", "down", show=False),
    Binding("k", "cursor_up", "up", show=False),
]


class FixList(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = _LETTERS


class Listing(DataTable[Text]):
    """Rows that are filtered by words and sorted by one column."""

    BINDINGS: ClassVar[list[BindingType]] = _LETTERS
    AT_ONCE = 200  # the rows of the first paint; as many follow after each pause
    PAUSE = 0.05

    def __init__(self, name: str) -> None:
        super().__init__(id=name, cursor_type="row", zebra_stripes=True)
        self._labels: tuple[str, ...] = ()
        self._entries: list[_TableEntry] = []
        self._coming: Iterator[_TableEntry] = iter(())
        self._shown: Iterator[_TableEntry] = iter(())
        self._wanted: list[str] = []
        self._by: int | None = None

    def show(self, labels: Sequence[str], rows: Iterable[_TableEntry]) -> None:
        """Show other rows; the filter stays, and so does the order if the columns are the same."""
        if self._labels != tuple(labels):
            self._labels, self._by = tuple(labels), None
        self._entries, self._coming = [], iter(rows)
        self._fill()

    def only(self, typed: str) -> None:
        self._wanted = typed.lower().split()
        self._fill()

    def sort_next(self) -> str:
        """Sort by the next column, numbers in descending order, and return its label; empty for the original order."""
        self._by = 0 if self._by is None else self._by + 1
        if self._by == len(self._labels):
            self._by = None
        self._fill()
        return "" if self._by is None else self._labels[self._by]

    def _fill(self) -> None:
        self.clear(columns=True)
        for number, label in enumerate(self._labels):
            self.add_column(f"{label} ▾" if number == self._by else label, key=label)
        if self._wanted or self._by is not None:
            self._entries += self._coming
        rows = [row for row in self._entries if row.has(self._wanted)]
        if (by := self._by) is not None:
            rows.sort(key=lambda row: _order(row.cells[by]))
        self._shown = chain(rows, self._new_entries())
        self._add(self._shown)

    def _new_entries(self) -> Iterator[_TableEntry]:
        for row in self._coming:
            self._entries.append(row)
            yield row

    def _add(self, rows: Iterator[_TableEntry]) -> None:
        if rows is not self._shown:  # the filter has changed
            return
        number = 0
        for number, row in enumerate(islice(rows, self.AT_ONCE), start=1):  # noqa: B007 - counted
            self.add_row(*(_cell(cell) for cell in row.cells), key=row.key)
        if number == self.AT_ONCE:
            self.set_timer(self.PAUSE, partial(self._add, rows))


def _order(cell: str | int | None) -> tuple[int, int | str]:
    match cell:
        case int():
            return (0, -cell)
        case str():
            return (1, cell)
        case None:
            return (2, 0)
        case _:
            assert_never(cell)


def _cell(cell: str | int | None) -> Text:
    return Text(f"{cell:,}", justify="right") if isinstance(cell, int) else _text(cell or "")


class TablePage(Screen[None]):
    """A screen with a table that can be filtered and sorted, and something to copy."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip="Show only rows with the words that you type"),
        Binding("s", "sort", "sort", tooltip="Sort by the next column"),
        Binding("c", "copy", "copy", tooltip="Copy a command, or the name of the node"),
        Binding("escape", "back", "back", tooltip="Back to the table, or to the page before"),
    ]

    @property
    def listing(self) -> Listing:
        return self.query_one(Listing)

    def title_text(self, content: str, tone: Tone) -> Text:
        """Return the text in the form of a screen's first line."""
        return _join_lines(title_lines(content, tone, self.app.size.width - 2))

    def copy_text(self) -> str:
        """Return what `c` copies: a command."""
        raise NotImplementedError

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.listing.only(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self.listing.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action has an effect; the footer shows only those that have one."""
        return action != "back" or self._can_go_back

    @property
    def _can_go_back(self) -> bool:
        return self.focused is not self.listing or len(self.app.screen_stack) > 2  # the first is the app's own, empty

    def action_filter(self) -> None:
        self.query_one("#filter", Input).focus()

    def action_sort(self) -> None:
        label = self.listing.sort_next()
        self.notify(f"sorted by {label}" if label else "in the first order", timeout=1)

    def action_copy(self) -> None:
        copied = self.copy_text()
        if copied:
            self.app.copy_to_clipboard(copied)
            self.notify(visible(copied), title="copied", timeout=2, markup=False)

    def action_back(self) -> None:
        if self.focused is not self.listing:
            self.listing.focus()
        else:
            self.app.pop_screen()


_MOVES = (
    ("↑ ↓ j k", "Move to another row"),
    ("enter", "Open the row, or try the fix"),
    ("tab", "Go to the next part of the page"),
)
_TEXTUALS_QUIT = "ctrl+q"


class Keys(ModalScreen[None]):
    """The keys of a page, over it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter", "dismiss", "close")]

    def __init__(self, page: Screen[object]) -> None:
        super().__init__()
        known = (active.binding for key, active in page.active_bindings.items() if key != _TEXTUALS_QUIT)
        uses = ((page.app.get_key_display(binding), binding.tooltip) for binding in known if binding.tooltip)
        self._rows = (*_MOVES, *uses)

    def compose(self) -> ComposeResult:
        room = max(len(key) for key, _ in self._rows)
        with VerticalScroll(id="keys"):
            yield Static("\n".join(f"{key:{room}}  {use}" for key, use in self._rows), markup=False)
        yield Footer(compact=True)


class Browser(App[None]):
    """A stack of pages. Nothing is ever sent to a cluster."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "kschedx why"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012 - textual declares no class variable
    CSS = """
    #panes { layout: horizontal; }
    #nodes { width: 2fr; }
    #side { width: 3fr; border-left: solid $primary; padding: 0 1; }
    .-narrow #panes { layout: vertical; }
    .-narrow #nodes { width: 1fr; height: auto; max-height: 40%; }
    .-narrow #side { width: 1fr; height: 1fr; border-left: none; border-top: solid $primary; }
    #filter { dock: top; }
    #filter, #change { background: $surface-lighten-1; padding: 0 1; }
    Keys { align: center middle; }
    #keys { width: auto; max-width: 100%; height: auto; max-height: 100%; border: round $primary; padding: 0 1; }
    #keys Static { width: auto; }
    Listing { height: 1fr; }
    #tried, #head, #step, #cause { height: auto; padding: 0 1; background: $boost; }
    #fixes-list { height: auto; max-height: 50%; }
    #fix { height: 1fr; padding: 1 1 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", tooltip="Show these keys"),
        Binding("q", "quit", "quit", tooltip="Quit"),
    ]

    def __init__(self, first: TablePage | None = None) -> None:
        super().__init__()
        self._first: TablePage | Start = first or Start()
        self._step = ProgressStep(Phase.STARTING)
        self._since = time.monotonic()
        self.short_names: dict[str, str] = {}  # the short names of nodes, which all pages show
        self.begin: Callable[[], None] = lambda: None  # starts the work that makes the pages
        self.notes: list[str] = []  # what the work printed on stderr, to be printed when the terminal is free
        self.error: Exception | None = None

    def on_mount(self) -> None:
        self.begin_capture_print(self, stdout=False)
        self.push_screen(self._first)
        self.set_interval(UPDATE_INTERVAL, self._show_step)
        self.call_after_refresh(self.begin)

    def _handle_exception(self, error: Exception) -> None:
        """End with an error of the program itself, which `browse` raises, instead of printing all variables."""
        self.error = error
        if self.is_headless:
            super()._handle_exception(error)
        self.exit()

    def on_print(self, event: Print) -> None:
        self.notes.append(event.text)

    def see(self, step: ProgressStep) -> None:
        """Keep the progress of the work until it is done; another thread draws it."""
        if not self._step.phase:
            return
        if step.phase != self._step.phase:
            self._since = time.monotonic()
        self._step = step

    def finish(self) -> None:
        """End the progress. If there is no page, exit: the answer is for the terminal itself."""
        self.see(ProgressStep(Phase.NOTHING))
        self._show_step()
        if self._first is self.screen_stack[1] and isinstance(self._first, Start):
            self.exit()

    def present(self, page: TablePage) -> None:
        """Show a page, or its content in the current page of the same class."""
        if isinstance(self._first, PendingPage) and isinstance(page, PendingPage):
            self._first.become(page)
        else:
            self._first = page
            self.switch_screen(page)

    def _show_step(self) -> None:
        for widget in self._first.query("#step").results(Static):
            widget.update(_text(_step_text(self._step, time.monotonic() - self._since)))
            widget.display = bool(self._step.phase)

    def action_help(self) -> None:
        if not isinstance(self.screen, Keys):
            self.push_screen(Keys(self.screen))


def _step_text(step: ProgressStep, seconds: float) -> str:
    """Return `reading cluster.json · 43 of 686 MB · 2 s left`; `seconds` is the duration of the phase so far."""
    left = f"{seconds / step.share - seconds:.0f} s left" if step.share else ""
    return visible(" · ".join(filter(None, (f"{step.phase} {step.of}".strip(), step.amount, left))))


class Start(Screen[None]):
    """The screen before anything is known about the cluster."""

    def compose(self) -> ComposeResult:
        yield Static(visible(command_line()), id="head")
        yield Static(id="step")
        yield Footer(compact=True)


class PendingPage(TablePage):
    """Pending pods by cause, the largest group first; enter opens the pods of a cause, then a pod's nodes."""

    def __init__(
        self, headline: str, tone: Tone, groups: Sequence[CauseGroup], open_pod: Callable[[str], TablePage]
    ) -> None:
        """`open_pod` returns the page of a pod, given as `namespace/name`; raises `KschedxError`."""
        super().__init__()
        self._headline, self._tone = headline, tone
        self._groups = groups
        self._open_pod = open_pod

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="step")
        yield Input(placeholder="filter", id="filter", compact=True)
        yield Listing("causes")
        yield Static(id="cause")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self._show()
        self.listing.focus()

    def become(self, other: PendingPage) -> None:
        """Show the content of another page; the filter and the order stay."""
        self._headline, self._tone = other._headline, other._tone
        self._groups, self._open_pod = other._groups, other._open_pod
        self._show()

    def _show(self) -> None:
        self.query_one("#head", Static).update(self.title_text(self._headline, self._tone))
        rows = [
            _TableEntry(
                str(number),
                (
                    len(group.answers),
                    list_names(dict.fromkeys(answer.owner or answer.pod for answer in group.answers), 1),
                    cause_tone(group).mark + cause_text(group.first),
                    ", ".join(group.namespaces[:_SHOWN]),
                    max(answer.priority for answer in group.answers),
                ),
                tuple(f"{answer.pod} {answer.owner}" for answer in group.answers),
            )
            for number, group in enumerate(self._groups)
        ]
        self.listing.show(("pods", "of", "cause", "namespaces", "highest priority"), rows)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the whole cause, which the table cuts in a narrow terminal."""
        group = self._groups[int(event.row_key.value or 0)]
        self.query_one("#cause", Static).update(self.title_text(cause_title(group), cause_tone(group)))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.app.push_screen(Pods(self._groups[int(event.row_key.value or 0)], self._open_pod))

    def copy_text(self) -> str:
        return re.sub(r" (?:-i|--interactive)\b", "", command_line())


class Pods(TablePage):
    def __init__(self, group: CauseGroup, open_pod: Callable[[str], TablePage]) -> None:
        super().__init__()
        self._group = group
        self._open_pod = open_pod
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Static(self.title_text(cause_title(self._group), cause_tone(self._group)), id="head")
        yield Input(placeholder="filter", id="filter", compact=True)
        yield Listing("pods")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        rows = [
            _TableEntry(str(number), (answer.pod, answer.owner, answer.priority, ", ".join(answer.nodes[:_SHOWN])))
            for number, answer in enumerate(self._group.answers)
        ]
        self.listing.show(("pod", "owner", "priority", "node"), rows)
        self.listing.focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._at = int(event.row_key.value or 0)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        pod = self._group.answers[int(event.row_key.value or 0)].pod
        try:
            page = self._open_pod(pod)
        except KschedxError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
            return
        self.app.push_screen(page)

    def copy_text(self) -> str:
        return self._group.answers[self._at].command


class _AnswerView:
    def __init__(self, explanation: Explanation, changes: tuple[str, ...] = ()) -> None:
        self.explanation = explanation
        self.changes = changes
        self.ranking = rank_nodes(explanation.cycle)

    def rows(self) -> Iterator[_TableEntry]:
        """Yield the nodes that fit, best first, then the others, nearest first."""
        cycle = self.explanation.cycle
        has_totals = self.ranking is not None

        def row_of(name: str, verdict: str, why: str, total: int | None = None) -> _TableEntry:
            return _TableEntry(name, (name, verdict, *((total,) if has_totals else ()), why))

        ranked = self.ranking.nodes if self.ranking is not None else ()
        yield from (row_of(node.name, "fits", "", node.total) for node in ranked)
        if cycle.nodes is None or cycle.filter is None:
            return
        seen = {node.name for node in ranked}
        passed = cycle.nodes.names_where(cycle.filter.passed)
        yield from (row_of(name, "fits", "") for name in passed if name not in seen)
        diagnosis = self.explanation.diagnosis
        for group in diagnosis.groups:
            for row in group.rows:
                blockers = diagnosis.detail(row).account.blockers
                headline = describe(shown_findings(blockers[0])[0]).headline
                yield row_of(cycle.nodes.name(row), blockers[0].plugin, headline)

    @property
    def labels(self) -> tuple[str, ...]:
        return ("node", "verdict", *(("total",) if self.ranking is not None else ()), "why")

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.explanation.fixes


class _Side(TabbedContent):
    """The tabs beside the nodes, or below them in a narrow terminal."""

    def on_resize(self) -> None:
        if isinstance(self.screen, Why):
            self.screen.show_texts()


class Why(TablePage):
    """The node table with a filter, the chosen node's explanation, the answer, and fixes and own changes to try.

    A tried change updates the answer, the nodes, and the fixes, until it is undone. Nothing is ever sent to a cluster.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "show('answer')", "answer", show=False, tooltip="Show the answer about the pod"),
        Binding("n", "show('node')", "node", show=False, tooltip="Show the verdict on the chosen node"),
        Binding("f", "fixes", "fixes", tooltip="List the fixes"),
        Binding("t", "change", "try", tooltip="Type a change of the pod and try it"),
        Binding("u", "undo", "undo", tooltip="Undo the last change that was tried"),
    ]

    def __init__(self, explanation: Explanation, tried: Try) -> None:
        super().__init__()
        self._views = [_AnswerView(explanation)]
        self._try = tried
        self._chosen = ""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="filter: name, plugin, or reason", id="filter", compact=True)
        yield Static(id="tried")
        with Container(id="panes"):
            yield Listing("nodes")
            with _Side(id="side", initial="answer"):
                with TabPane("answer", id="answer"), VerticalScroll():
                    yield Static(id="whole")
                with TabPane("node", id="node"), VerticalScroll():
                    yield Static(id="story")
                with TabPane("fixes", id="fixes"), Vertical():
                    yield FixList(id="fixes-list", compact=True)
                    with VerticalScroll(id="fix"):
                        yield Static(id="fix-text")
                    yield Input(placeholder="try: spec.nodeSelector.disk=ssd", id="change", compact=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self._show_view()
        self.listing.focus()

    @property
    def _view(self) -> _AnswerView:
        return self._views[-1]

    @property
    def _width(self) -> int:
        return max(_LEAST_WIDTH, self.query_one("#side", TabbedContent).size.width - _FRAME)

    def _show_view(self) -> None:
        """Draw everything again: the answer has changed."""
        banner = self.query_one("#tried", Static)
        banner.display = bool(self._view.changes)
        banner.update(_text(f"tried: {', '.join(self._view.changes)} · {self._view.explanation.outcome.value}", "bold"))
        self._shorten_nodes()
        self.listing.show(self._view.labels, self._view.rows())
        self._list_fixes()
        self.show_texts()

    def _shorten_nodes(self) -> None:
        """Shorten the names of nodes that a change or fix adds, too."""
        if isinstance(self.app, Browser) and self.app.short_names:
            added = (node for fix in self._view.fixes for node in fix.feasible_nodes)
            names = dict.fromkeys((*self._view.explanation.cycle.all_nodes.cluster.names, *added))
            self.app.short_names.update(short_names(tuple(names)))

    def _list_fixes(self) -> None:
        offered = self.query_one("#fixes-list", OptionList)
        offered.clear_options()
        offered.add_options([_text(f"{fix.title} ({fix.certainty.value})") for fix in self._view.fixes])
        offered.display = bool(self._view.fixes)
        self._show_fix(self._view.fixes[0] if self._view.fixes else None)
        if self._view.fixes:
            offered.highlighted = 0

    def _show_fix(self, fix: Fix | None) -> None:
        if fix is None:
            fits = bool(self._view.explanation.chosen_nodes)
            none = "The pod fits; there is nothing to fix." if fits else "No fix that was tried helps."
            lines = [text(none)]
        else:
            nodes = ", ".join(fix.feasible_nodes[:_SHOWN]) + (", …" if len(fix.feasible_nodes) > _SHOWN else "")
            lines = [text(f"enter tries it; it fits {nodes}" if nodes else "enter tries it"), text("")]
            lines += [text(line, "dim", exact=True) for line in _script(fix).splitlines()]
        self.query_one("#fix-text", Static).update(_join_lines(lines))

    def _show_node(self) -> None:
        """Show the chosen node's explanation. A node that a fix added disappears when the fix is undone."""
        if self._chosen not in self._view.explanation.cycle.all_nodes.cluster.index:
            self._chosen = ""
        if self._chosen:
            view = self._view
            story = node_verdict_lines(view.explanation.diagnosis, view.ranking, self._chosen, self._width)
            self.query_one("#story", Static).update(_join_lines(story))

    def _push(self, explanation: Explanation, change: str) -> None:
        self._views.append(_AnswerView(explanation, (*self._view.changes, change)))
        self._show_view()
        self.action_show("answer")
        self.listing.focus()

    def show_texts(self) -> None:
        """Show the answer and the chosen node in the width of their tab."""
        self.query_one("#whole", Static).update(_join_lines(why_lines(self._view.explanation, width=self._width)))
        self._show_node()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        super().on_input_submitted(event)
        if event.input.id == "change" and event.value.strip():
            try:
                after = self._try(self._view.explanation, event.value.strip())
            except KschedxError as error:
                self.notify(visible(str(error)), severity="error", markup=False)
                return
            event.input.clear()
            self._push(after, event.value.strip())

    def copy_text(self) -> str:
        """Return the commands of the displayed fix, else the chosen node's name."""
        if self.query_one("#side", TabbedContent).active == "fixes" and self._view.fixes:
            at = self.query_one("#fixes-list", OptionList).highlighted or 0
            return _script(self._view.fixes[at]).strip()
        return self._chosen

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_fix(self._view.fixes[event.option_index])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        fix = self._view.fixes[event.option_index]
        self._push(self._view.explanation.after_fix(fix), fix.title)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._chosen = event.row_key.value or ""
        self._show_node()

    def on_data_table_row_selected(self) -> None:
        self.action_show("node")

    def action_show(self, pane: str) -> None:
        self.query_one("#side", TabbedContent).active = pane

    def action_fixes(self) -> None:
        self.action_show("fixes")
        if self._view.fixes:
            self.query_one("#fixes-list", OptionList).focus()

    def action_change(self) -> None:
        self.action_show("fixes")
        self.query_one("#change", Input).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return len(self._views) > 1 if action == "undo" else super().check_action(action, parameters)

    def action_undo(self) -> None:
        if len(self._views) > 1:
            self._views.pop()
            self._show_view()


def _script(fix: Fix) -> str:
    """Return what `-o patch` prints."""
    return node_commands(fix.apply, fix.commands) or kubectl_commands(fix.apply)


def _text(content: str, style: str = "") -> Text:
    return _join_lines([text(content, style)])


def _join_lines(lines: Iterable[StyledLine]) -> Text:
    """Return lines as textual shows them."""
    return Text("\n").join(Text.assemble(*content_line.parts) for content_line in lines)

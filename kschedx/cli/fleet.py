"""`kschedx fleet`: one question over many clusters."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace

from kschedx.cli.connection import every_context, known_contexts
from kschedx.cli.options import Command, argument, flag, value, values
from kschedx.cli.output import Answer, ExitCode, Format, Report, answer_to, input_digest, needs, option
from kschedx.cli.worker import CapturedAnswer, Worker
from kschedx.errors import InputError, Place, nearest, system_reason
from kschedx.inquiry.document import ClusterAnswerDocument, FleetDocument
from kschedx.kube import documents
from kschedx.progress import UPDATE_INTERVAL, Phase, ProgressStep, begin, count_items
from kschedx.wording import Fact, count, list_names

if TYPE_CHECKING:
    from kschedx.render.page.model import Page
    from kschedx.render.terminal import StyledLine
    from kschedx.render.view import Tone

COMMAND = Command(
    "Ask many clusters one question",
    allow_interspersed_args=False,  # later words belong to the question
    help="""Ask many clusters one question, each in its own process with a time limit.

\b
Examples:
  kschedx fleet --all-contexts why --all-pending
  kschedx fleet --snapshots dumps/ --out night.jsonl doctor
  kschedx fleet -s fleet.list diff-profiles default binpack --all

QUESTION is a kschedx command line without its cluster: why --all-pending, why -l LABELS, doctor, diff-profiles A B
--all, drain --each, simulate, fit TARGET. A cluster that cannot be reached is a row in the answer. With --out, every
answer is a line of JSON; a second run asks only the clusters that gave none.

Exit codes: 0 nothing found, 1 something found in a cluster, 2 usage or input error, 3 a cluster gave no answer.
""",
)

_QUESTIONS = ("why", "doctor", "diff-profiles", "drain", "simulate", "fit")
_CLUSTER_OPTIONS = ("--snapshot", "-s", "--snapshots", "--context", "--all-contexts", "--kubeconfig")


def fleet(
    program: typer.Context,
    words: list[str] = argument("QUESTION..."),
    snapshot: list[str] = values(
        "PATH", "A snapshot, or a .list file with a path or context:NAME per line. Repeatable.", "--snapshot", "-s"
    ),
    snapshots: list[str] = values("FOLDER", "A folder of snapshots. Repeatable."),
    context: list[str] = values("NAME", "A context of the kubeconfig. Repeatable."),
    all_contexts: bool = flag("Every context of the kubeconfig.", "--all-contexts"),
    kubeconfig: str | None = value("FILE", "The kubeconfig file."),
    jobs: int = value("N", "How many clusters at a time.", "--jobs", "-j", min=1, max=64, default=2),
    limit: int = value("SECONDS", "The time limit per cluster.", min=1, default=300),
    out: str | None = value("FILE", "Write a line of JSON per cluster; an existing file is continued."),
    parquet: str | None = value("FILE", "Also write a table. Needs the extra parquet."),
    output: Format | None = option(
        *(Format.JSON, Format.YAML, Format.HTML, Format.MARKDOWN, Format.SVG),
        text="json and yaml every document; html, markdown, and svg one page that sums up.",
    ),
) -> Answer:
    if words[0] not in _QUESTIONS:
        hint = nearest(words[0], _QUESTIONS) or f"one of {', '.join(_QUESTIONS)}"
        raise InputError(f'"{words[0]}" cannot be asked of several clusters', hint=hint)
    _require_options_first(words)
    fleet_members = _members(
        snapshots=snapshot, folders=snapshots, contexts=context, all_contexts=all_contexts, kubeconfig=kubeconfig
    )
    done = _resume(out, words)
    is_documented = out is not None or parquet is not None or output in (Format.JSON, Format.YAML)
    answer = partial(answer_to if is_documented else _summary_of, program.obj)
    with _results(out) as keep:
        rows = _ask_clusters(fleet_members, words, answer, jobs=jobs, limit=limit, done=done, see=keep)
    if parquet is not None:
        _write_parquet(rows, parquet)

    report = Report(
        screen=lambda width, _: _screen(rows, width),
        document=lambda: documents.document("FleetAnswer", FleetDocument, clusters=tuple(rows)),
        page=lambda _: _page(rows, () if done else [Path(member.name) for member in fleet_members]),
    )
    return Answer(report, _exit_code(rows))


def _require_options_first(words: Sequence[str]) -> None:
    """Raise `InputError` for an option behind the question that names clusters."""
    names = {word.partition("=")[0] for word in words[1:]}
    if late := next((name for name in _CLUSTER_OPTIONS if name in names), None):
        raise InputError(f"{late} belongs before the question", hint=f"kschedx fleet {late} ... {words[0]}")


def _summary_of(program: Callable[[Sequence[str]], int], words: Sequence[str]) -> Answer | int:
    """Return the answer of a command line with an empty document, since only its headline is shown."""
    answer = answer_to(program, words)
    return answer if isinstance(answer, int) else replace(answer, report=replace(answer.report, document=dict))


# The clusters of a fleet: contexts of a kubeconfig, and snapshots.

_LIST = ".list"  # the suffix of a file with a snapshot's path, or `context:NAME`, on each line
_CONTEXT = "context:"
_MOST_CITED = 20  # clusters in the footer of a page; its table has all


class _Member(Struct, frozen=True, kw_only=True):
    """One cluster, and the options by which a command reads it."""

    name: str
    options: tuple[str, ...]


def _members(
    *,
    snapshots: Sequence[str],
    folders: Sequence[str],
    contexts: Sequence[str],
    all_contexts: bool,
    kubeconfig: str | None,
) -> tuple[_Member, ...]:
    """Return every cluster once, in the order in which they are named. Raises `InputError`."""
    by_name = {member.name: member for path in snapshots for member in _path_members(path, kubeconfig)}
    by_name |= {member.name: member for folder in folders for member in _folder_members(folder)}
    named = every_context(kubeconfig) if all_contexts else known_contexts(contexts, kubeconfig)
    by_name |= {member.name: member for member in (_context_member(name, kubeconfig) for name in named)}
    if not by_name and all_contexts:
        raise InputError("--all-contexts: the kubeconfig has no context")
    if not by_name:
        raise InputError("name the clusters: --snapshot, --snapshots, --context or --all-contexts")
    return tuple(by_name.values())


def _path_members(path: str, kubeconfig: str | None) -> Iterator[_Member]:
    from kschedx.sources.compression import read_content

    place = Path(path)
    if not place.exists():
        raise InputError("no such file or folder", source=path)
    if place.suffix == _LIST:
        try:
            text = read_content(path).decode()
        except UnicodeDecodeError:
            raise InputError("not valid UTF-8", source=path) from None
        for line in text.splitlines():
            name = line.strip()
            if name.startswith(_CONTEXT):
                yield _context_member(name.removeprefix(_CONTEXT), kubeconfig)
            elif name and not name.startswith("#"):
                yield _snapshot_member(name)
    else:
        yield _snapshot_member(path)


def _folder_members(folder: str) -> Iterator[_Member]:
    if not Path(folder).is_dir():
        raise InputError("no such folder", source=folder)
    inside = sorted(path for path in Path(folder).iterdir() if not path.name.startswith("."))
    if not inside:
        raise InputError("the folder is empty", source=folder)
    yield from (_snapshot_member(str(path)) for path in inside)


def _snapshot_member(path: str) -> _Member:
    return _Member(name=path, options=(f"--snapshot={path}",))


def _context_member(name: str, kubeconfig: str | None) -> _Member:
    more = () if kubeconfig is None else (f"--kubeconfig={kubeconfig}",)
    return _Member(name=name, options=(*more, f"--context={name}"))


# One question to every cluster, in separate processes with a time limit each.


def _ask_clusters(
    members: Sequence[_Member],
    question: Sequence[str],
    answer: Callable[[Sequence[str]], Answer | int],
    *,
    jobs: int,
    limit: float,
    done: Mapping[str, ClusterAnswerDocument],
    see: Callable[[ClusterAnswerDocument], None],
) -> tuple[ClusterAnswerDocument, ...]:
    """Return the rows of all clusters, in the order of the clusters. `answer` answers a command line, `done` are known
    rows, and `see` is called with each new one."""
    rows = dict(done)
    pending = [member for member in members if member.name not in rows]
    works = [Work(member.name) for member in pending]
    with _Workers(answer) as workers, ThreadPoolExecutor(jobs) as pool:
        waiting = [
            pool.submit(_row, workers, member, question, limit, work.see)
            for member, work in zip(pending, works, strict=True)
        ]
        try:
            for row in count_items(_finished_rows(waiting, works), Phase.ASKING, len(waiting), "clusters"):
                rows[row.cluster] = row
                see(row)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers.stop()
            raise
    return tuple(rows[member.name] for member in members)


class Work:
    """How much of one cluster's question is answered. A phase may be followed by others, so each fills half of the
    rest."""

    def __init__(self, name: str) -> None:
        self.name = Path(name).name
        self.share = 0.0
        self.phase = Phase.NOTHING
        self._before = 0.0

    def see(self, step: ProgressStep) -> None:
        if step.phase != self.phase:
            self.phase, self._before = step.phase, self.share
        self.share = self._before + (1 - self._before) * step.share / 2


def _finished_rows(
    futures: Sequence[Future[ClusterAnswerDocument]], works: Sequence[Work]
) -> Iterator[ClusterAnswerDocument]:
    """Yield the rows as they are finished, and report the progress of the others meanwhile."""
    left = dict(zip(futures, works, strict=True))
    while left:
        for future in wait(left, UPDATE_INTERVAL, FIRST_COMPLETED).done:
            del left[future]
            yield future.result()
        current = next((work for work in left.values() if work.phase), None)
        begin(sum(work.share for work in left.values()), "" if current is None else f"{current.name} ({current.phase})")


class _Workers:
    """One process for each thread that asks."""

    def __init__(self, answer: Callable[[Sequence[str]], Answer | int]) -> None:
        self._answer = answer
        self._own = threading.local()
        self._all: list[Worker[Sequence[str]]] = []
        self._is_stopped = False

    def stop(self) -> None:
        """End every process."""
        self._is_stopped = True
        for worker in self._all:
            worker.stop()

    def own_worker(self) -> Worker[Sequence[str]]:
        worker: Worker[Sequence[str]] | None = getattr(self._own, "worker", None)
        if worker is None or not worker.is_alive:
            worker = self._own.worker = Worker(self._answer)
            self._all.append(worker)
            if self._is_stopped:
                worker.stop()
        return worker

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.end()


def _row(
    workers: _Workers, member: _Member, question: Sequence[str], limit: float, see: Callable[[ProgressStep], None]
) -> ClusterAnswerDocument:
    begun = time.monotonic()
    command, *more = question
    answer = workers.own_worker().ask([command, *member.options, *more], limit, see)
    return ClusterAnswerDocument(
        cluster=member.name,
        question=tuple(question),
        exit_code=int(answer.exit_code),
        seconds=round(time.monotonic() - begun, 2),
        summary=_summary(answer),
        errors=answer.errors.strip(),
        taken=answer.taken,
        document=answer.document,
    )


def _summary(answer: CapturedAnswer) -> str:
    if answer.document is not None:
        return answer.headline
    return next((line.strip() for line in answer.errors.splitlines() if line.strip()), "")


def _resume(path: str | None, question: Sequence[str]) -> dict[str, ClusterAnswerDocument]:
    """Return the answered rows of an earlier run of this question. Raises `InputError`."""
    if path is None or not Path(path).is_file():  # a device or pipe has no earlier rows, and no end
        return {}
    from kschedx.sources.compression import read_content

    rows: dict[str, ClusterAnswerDocument] = {}
    for number, line in enumerate(read_content(path).splitlines(), start=1):
        try:
            row = msgspec.json.decode(line, type=ClusterAnswerDocument)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            place = Place(source=path, document=number)
            raise InputError(f"not a row of kschedx fleet: {error}", place=place, hint="name another file") from None
        if row.question == tuple(question) and row.is_answered:
            rows[row.cluster] = row
    return rows


@contextmanager
def _named_in_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {system_reason(error)}", source=path) from None


@contextmanager
def _results(path: str | None) -> Iterator[Callable[[ClusterAnswerDocument], None]]:
    """Yield a function that writes a line for each row at once, after those of an earlier run."""
    if path is None:
        yield lambda row: None
        return
    with ExitStack() as stack:
        with _named_in_errors(path):
            file = stack.enter_context(Path(path).open("ab", buffering=0))

        def write(row: ClusterAnswerDocument) -> None:
            line = memoryview(msgspec.json.encode(row) + b"\n")
            with _named_in_errors(path):
                while line:
                    line = line[file.write(line) or 0 :]

        yield write


# All answers on one page: a row for each cluster, those that need attention first.


def _tone_of(code: int) -> Tone:
    """Return the tone of an exit code; other codes than 0 and 1 mean that the cluster could not be read or decided."""
    from kschedx.render.view import Tone

    return {ExitCode.SCHEDULABLE: Tone.GOOD, ExitCode.UNSCHEDULABLE: Tone.BAD}.get(ExitCode(code), Tone.OPEN)


def _exit_code(rows: Sequence[ClusterAnswerDocument]) -> ExitCode:
    """Return 3 if a cluster could not be read or decided, 1 if one has findings, else 0."""
    codes = {row.exit_code for row in rows}
    if codes - {ExitCode.SCHEDULABLE, ExitCode.UNSCHEDULABLE}:
        return ExitCode.UNDECIDED
    return ExitCode.UNSCHEDULABLE if ExitCode.UNSCHEDULABLE in codes else ExitCode.SCHEDULABLE


_NOTHING, _AMISS, _UNDECIDED, _NO_ANSWER = "nothing found", "amiss", "undecided", "no answer"


def _kind(row: ClusterAnswerDocument) -> str:
    match row.exit_code:
        case ExitCode.SCHEDULABLE:
            return _NOTHING
        case ExitCode.UNSCHEDULABLE:
            return _AMISS
        case ExitCode.UNDECIDED if row.document is not None:
            return _UNDECIDED
        case _:
            return _NO_ANSWER


def _headline(rows: Sequence[ClusterAnswerDocument]) -> str:
    kinds = Counter(map(_kind, rows))
    texts = {_AMISS: "with findings", _UNDECIDED: "undecided", _NO_ANSWER: "without an answer"}
    parts = [f"{kinds[kind]:,} {text}" for kind, text in texts.items() if kinds[kind]]
    return f"{count(len(rows), 'cluster')}: {', '.join(parts) or 'nothing found'}"


def _sort_by_need(rows: Sequence[ClusterAnswerDocument]) -> list[ClusterAnswerDocument]:
    """Return the rows without an answer first, then those with findings, then the others; each in the order of the
    clusters."""
    order = {ExitCode.UNSCHEDULABLE: 1, ExitCode.SCHEDULABLE: 2}
    return sorted(rows, key=lambda row: order.get(ExitCode(row.exit_code), 0))


def _screen(rows: Sequence[ClusterAnswerDocument], width: int) -> list[StyledLine]:
    from kschedx.render.terminal import BLANK, paragraph, title_lines

    lines = [*title_lines(_headline(rows), _tone_of(_exit_code(rows)), width), BLANK]
    for row in _sort_by_need(rows):
        lines += title_lines(row.cluster, _tone_of(row.exit_code), width)
        lines += paragraph(row.summary, width, indent=4, first="    ")
    return lines


def _page(rows: Sequence[ClusterAnswerDocument], inputs: Sequence[Path]) -> Page:
    """Return the page. `inputs` are the members' files; a digest is in the footer if all of them exist, which a cluster
    read live does not."""
    from kschedx.render.page.model import SCREEN_WIDTH, page_of
    from kschedx.render.view import ItemList, View, ViewItem

    items = tuple(
        ViewItem(
            title=row.cluster,
            tone=_tone_of(row.exit_code),
            kind=_kind(row),
            values=(row.summary, row.taken or "unknown", row.exit_code, round(row.seconds)),
            facts=(Fact.of("errors", row.errors),) if row.errors else (),
        )
        for row in _sort_by_need(rows)
    )
    view = View(
        command="kschedx fleet",
        headline=_headline(rows),
        tone=_tone_of(_exit_code(rows)),
        lists=(
            ItemList(
                title="Clusters",
                noun="cluster",
                columns=(("answer", False), ("taken", False), ("exit code", True), ("seconds", True)),
                items=items,
            ),
        ),
    )
    times = sorted({row.taken for row in rows if row.taken})
    cited = (
        ("clusters", list_names([row.cluster for row in rows], _MOST_CITED)),
        ("taken", " to ".join(dict.fromkeys((times[0], times[-1]))) if times else "unknown"),
    )
    digest = (("input sha256", input_digest(inputs)),) if inputs and all(path.exists() for path in inputs) else ()
    return page_of(view, _screen(rows, SCREEN_WIDTH), cited=(*cited, *digest))


def _write_parquet(rows: Sequence[ClusterAnswerDocument], path: str) -> None:
    """Write the rows as a table; a document is its JSON. Needs the extra parquet. Raises `InputError`."""
    with needs("parquet"):
        import pyarrow
        import pyarrow.parquet

    columns = {
        "cluster": [row.cluster for row in rows],
        "question": [" ".join(row.question) for row in rows],
        "exitCode": [row.exit_code for row in rows],
        "seconds": [row.seconds for row in rows],
        "summary": [row.summary for row in rows],
        "errors": [row.errors for row in rows],
        "taken": [row.taken for row in rows],
        "document": [None if row.document is None else msgspec.json.encode(row.document).decode() for row in rows],
    }
    with _named_in_errors(path):
        pyarrow.parquet.write_table(pyarrow.table(columns), Path(path))

"""One question to every cluster, in processes of their own with a time limit each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from kschedx.cli.captured import Captured, Run, Worker
from kschedx.cli.exit_codes import ExitCode
from kschedx.cli.fleet.clusters import Member
from kschedx.errors import InputError, Place


class Row(Struct, frozen=True, kw_only=True, rename="camel"):
    """One cluster's answer; a line of the results."""

    cluster: str
    question: tuple[str, ...]
    exit_code: int
    seconds: float
    summary: str
    """The first line of the screen, or of what went wrong."""
    errors: str = ""
    document: Mapping[str, object] | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the cluster could be read and the question put; it is not asked again."""
        return self.document is not None and self.exit_code in (ExitCode.SCHEDULABLE, ExitCode.UNSCHEDULABLE)


def ask(
    members: Sequence[Member],
    question: Sequence[str],
    run: Run,
    *,
    jobs: int,
    limit: float,
    done: Mapping[str, Row],
    see: Callable[[Row], None],
) -> tuple[Row, ...]:
    """Every cluster's row in the order of the clusters; `run` is
    `cli.app`'s, `done` are known, and `see` is called with each new one."""
    rows = dict(done)
    with _Workers(run) as workers, ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_row, workers, one, question, limit) for one in members if one.name not in rows]
        for future in as_completed(waiting):
            row = future.result()
            rows[row.cluster] = row
            see(row)
    return tuple(rows[one.name] for one in members)


class _Workers:
    """A process for each thread that asks."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._own = threading.local()
        self._all: list[Worker] = []

    def mine(self) -> Worker:
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None or not worker.is_alive:
            worker = self._own.worker = Worker(self._run)
            self._all.append(worker)
        return worker

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.end()


def _row(workers: _Workers, member: Member, question: Sequence[str], limit: float) -> Row:
    begun = time.monotonic()
    command, *more = question
    answer = workers.mine().ask([command, *member.options, *more], limit)
    return Row(
        cluster=member.name,
        question=tuple(question),
        exit_code=int(answer.exit_code),
        seconds=round(time.monotonic() - begun, 2),
        summary=_summary(answer),
        errors=answer.errors.strip(),
        document=answer.document,
    )


def _summary(answer: Captured) -> str:
    told = answer.screen if answer.document is not None else answer.errors
    return next((line.strip() for line in told.splitlines() if line.strip()), "")


def resumed(path: str | None, question: Sequence[str]) -> dict[str, Row]:
    """The rows of an earlier run of this question that were answered. Raises `InputError`."""
    if path is None or not Path(path).exists():
        return {}
    found: dict[str, Row] = {}
    for number, line in enumerate(Path(path).read_bytes().splitlines(), start=1):
        try:
            row = msgspec.json.decode(line, type=Row)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            place = Place(source=path, document=number)
            raise InputError(f"no row of kschedx fleet: {error}", place=place, hint="name another file") from None
        if row.question == tuple(question) and row.is_answered:
            found[row.cluster] = row
    return found


@contextmanager
def results(path: str | None) -> Iterator[Callable[[Row], None]]:
    """Writes a line for each row as soon as it is there, after those of an earlier run."""
    if path is None:
        yield lambda row: None
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("ab"))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", place=Place(source=path)) from None

        def write(row: Row) -> None:
            file.write(msgspec.json.encode(row) + b"\n")
            file.flush()

        yield write

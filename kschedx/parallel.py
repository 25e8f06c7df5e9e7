"""The same work on many items in several processes; everything that the parent has loaded is available in them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

from kschedx.progress import UPDATE_INTERVAL, Phase, ProgressStep, begin, has_listener, listen, report_progress, silence

if TYPE_CHECKING:
    from multiprocessing.pool import IMapIterator
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.sharedctypes import SynchronizedArray as Array

_T = TypeVar("_T")

FEW = 64  # fewer items than this are not worth a process
_CHUNK = 16

_WATCHED = 0.5  # seconds between checks that the parent still runs

_work: Callable[[int], object] | None = None
"""The work of a forked process, which inherits it, so that only results have to be pickled."""


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results(
    work: Callable[[int], _T], items: Sequence[int], processes: int, *, weights: Sequence[int] | None = None
) -> Iterator[_T]:
    """Yield `work(item)` for every item, in order. An exception of the work is raised here.

    `weights` are the numbers of things that the items are about; one each by default.
    """
    processes = min(processes, (len(items) if weights is None else sum(weights)) // FEW)
    # a worker starts no workers
    is_worker = multiprocessing.current_process().daemon
    if processes < 2 or is_worker or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, items)
        return
    global _work
    _work = work
    gc.collect()
    gc.freeze()  # a collection in a child would write to all loaded objects, and so copy them
    forks = multiprocessing.get_context("fork")
    shares, number = forks.Array("d", processes), forks.Value("i", 0)
    try:
        with forks.Pool(processes, initializer=_start, initargs=(os.getpid(), shares, number)) as pool:
            if weights is None:
                yield from cast("Iterator[_T]", pool.imap(_do, items, chunksize=_CHUNK))
            else:
                yield from _await_results(cast("IMapIterator[_T]", pool.imap(_do, items)), shares)
    finally:
        gc.unfreeze()
        _work = None


def _await_results(done: IMapIterator[_T], shares: Array[float]) -> Iterator[_T]:
    """Yield the results in order, and report the progress until the next one is available."""
    with suppress(StopIteration):
        while True:
            try:
                yield done.next(UPDATE_INTERVAL)
            except multiprocessing.TimeoutError:
                begin(sum(shares[:]))


def end_with(parent: int) -> None:
    """Let this process end as soon as its parent has ended, for any reason."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _start(parent: int, shares: Array[float], number: Synchronized[int]) -> None:
    """Prepare a worker, which keeps its progress in its own entry of `shares`."""
    is_told = has_listener()
    silence()
    with number.get_lock():
        mine, number.value = number.value % len(shares), number.value + 1

    def keep(step: ProgressStep) -> None:
        shares[mine] = step.share % 1  # completed work is reported as a result

    if is_told:
        listen(keep)
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the pool, with SIGTERM
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def _do(item: int) -> object:
    assert _work is not None
    result = _work(item)
    report_progress(Phase.NOTHING)
    return result

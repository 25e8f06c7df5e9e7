"""The same work on many items, shared between processes; what the parent has loaded is there in all of them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from kschedx.progress import silence

T = TypeVar("T")

FEW = 64
"""Items that are not worth a process."""
CHUNK = 16

_WATCHED = 0.5
"""Seconds between two looks at whether the parent is there."""

_work: Callable[[int], object] | None = None
"""What a forked process does; it inherits it, so nothing has to be pickled but results."""


def processors() -> int:
    """How many of them this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results(
    work: Callable[[int], T], items: Sequence[int], processes: int, *, weights: Sequence[int] | None = None
) -> Iterator[T]:
    """`work(item)` for every item, in their order. An exception of the work is raised here.

    `weights` says how many things an item is about, where that is not one.
    """
    processes = min(processes, (len(items) if weights is None else sum(weights)) // FEW)
    # a worker has no workers of its own
    is_worker = multiprocessing.current_process().daemon
    if processes < 2 or is_worker or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, items)
        return
    global _work
    _work = work
    gc.collect()
    gc.freeze()  # a collection in a child would write to, and so copy, all that was loaded
    try:
        with multiprocessing.get_context("fork").Pool(processes, initializer=_start, initargs=(os.getpid(),)) as pool:
            done = pool.imap(_do, items, chunksize=CHUNK if weights is None else 1)
            yield from cast("Iterator[T]", done)
    finally:
        gc.unfreeze()
        _work = None


def end_with(parent: int) -> None:
    """Let this process end as soon as its parent has, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _start(parent: int) -> None:
    silence()
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the pool, with SIGTERM
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def _do(item: int) -> object:
    assert _work is not None
    return _work(item)

"""The same work on many items, shared between processes; what the parent has loaded is there in all of them."""

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

from kschedx.progress import Phase, Step, begin, is_heard, listen, say, silence

if TYPE_CHECKING:
    from multiprocessing.pool import IMapIterator
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.sharedctypes import SynchronizedArray as Array

T = TypeVar("T")

FEW = 64
"""Items that are not worth a process."""
CHUNK = 16

_TOLD = 0.2
"""Seconds between two looks at how far the processes are."""
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
    forks = multiprocessing.get_context("fork")
    shares, number = forks.Array("d", processes), forks.Value("i", 0)
    try:
        with forks.Pool(processes, initializer=_start, initargs=(os.getpid(), shares, number)) as pool:
            if weights is None:
                yield from cast("Iterator[T]", pool.imap(_do, items, chunksize=CHUNK))
            else:
                yield from _awaited(cast("IMapIterator[T]", pool.imap(_do, items)), shares)
    finally:
        gc.unfreeze()
        _work = None


def _awaited(done: IMapIterator[T], shares: Array[float]) -> Iterator[T]:
    """The results in their order; until the next is there, it says how far the work is."""
    with suppress(StopIteration):
        while True:
            try:
                yield done.next(_TOLD)
            except multiprocessing.TimeoutError:
                begin(sum(shares[:]))


def end_with(parent: int) -> None:
    """Let this process end as soon as its parent has, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _start(parent: int, shares: Array[float], number: Synchronized[int]) -> None:
    """In a worker, which keeps in its own one of `shares` how far its work is."""
    is_told = is_heard()
    silence()
    with number.get_lock():
        mine, number.value = number.value % len(shares), number.value + 1

    def keep(step: Step) -> None:
        shares[mine] = step.share % 1  # what is done is told as a result

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
    say(Phase.NOTHING)
    return result

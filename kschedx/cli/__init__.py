"""The command line: one module per command. The only package that uses exit codes and the environment."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

COMPLETER = "kubectl_complete-kschedx"
"""The program that kubectl runs to complete a command line (`kschedx.cli.completion`)."""
COMPLETE = "_KSCHEDX_COMPLETE"  # the variable that a shell sets to complete a command line


def main() -> None:
    """The entry point of the `kschedx` command, and of kubectl's plugin (`kschedx.cli.kubectl`)."""
    import signal

    begun = time.monotonic()
    interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules load, Ctrl-C has nothing to clean up
    from kschedx.cli.streams import OutputError, ending_in_order, guard

    guard()
    if sys.argv[1:] == ["--version"] and not sys.argv[0].endswith(COMPLETER):
        # scripts and prompts often ask for the version: nothing else is loaded for it
        from kschedx import __version__

        try:
            sys.stdout.write(f"kschedx {__version__}\n")
            sys.stdout.flush()
        except OutputError as error:
            sys.stderr.write(f"error: write: {error}\n")
            sys.exit(2)
        return
    import atexit
    import gc
    from contextlib import nullcontext

    from kschedx.cli import progress

    is_completion = COMPLETE in os.environ or sys.argv[0].endswith(COMPLETER)  # the user types at the terminal

    # numpy would start a thread for each processor, for linear algebra that kschedx does not use
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # while modules load, there is no garbage
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first registered function is called last
    try:
        with ending_in_order(), nullcontext() if is_completion else progress.shown(begun):
            from kschedx.cli.app import run

            signal.signal(signal.SIGINT, interrupted)
            code = run()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        code = 130
    codes.append(code)
    sys.exit(code)


def _leave(codes: Sequence[int]) -> None:
    """End the process with the exit code of its answer. The system frees the memory: freeing tens of thousands of
    objects one by one takes 20 ms."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])

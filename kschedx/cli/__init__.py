"""The command line: a module per command. The only place with exit codes and the environment."""

from __future__ import annotations

import sys

_COMPLETER = "kubectl_complete-kschedx"
"""`kschedx.cli.kubectl.COMPLETER`: asked about a command line, not to run one."""


def main() -> None:
    """The entry point of the `kschedx` command, and of kubectl's plugin (`kschedx.cli.kubectl`)."""
    if sys.argv[1:] == ["--version"] and not sys.argv[0].endswith(_COMPLETER):
        # asked often, by scripts and prompts: nothing else is loaded for it
        from kschedx import __version__

        sys.stdout.write(f"kschedx {__version__}\n")
        return
    import gc
    import os

    from kschedx.cli.app import run

    # numpy would start a thread for each processor, for linear algebra that nobody here does
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    gc.disable()  # a process that lives for seconds frees its memory by ending
    sys.exit(run())

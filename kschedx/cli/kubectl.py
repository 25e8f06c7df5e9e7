"""kschedx as a plugin of kubectl's: `kubectl kschedx why ...`.

kubectl runs `kubectl-kschedx` for it, and asks `kubectl_complete-kschedx` for the words that can follow; both are
kschedx under another name (pkg/cmd/plugin/plugin_completion.go in kubectl).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

PLUGIN = "kubectl-kschedx"
COMPLETER = "kubectl_complete-kschedx"

_NO_FILES = ":4"
"""ShellCompDirectiveNoFileComp of cobra's, which kubectl reads from the last line."""


def called_as(path: str) -> str:
    """The name that a path to kschedx's program was run under."""
    return PurePath(path).name.removesuffix(".exe")


def program_name(path: str) -> str:
    """What a person types, for usage lines."""
    return "kubectl kschedx" if called_as(path) == PLUGIN else "kschedx"


def candidates(app: typer.Typer, words: Sequence[str]) -> Iterator[str]:
    """Lines for kubectl: what the last of `words` can become, with a description behind a tab.

    Where there is nothing to offer, kubectl is left to complete the names of files.
    """
    from typer._completion_classes import FishComplete
    from typer.main import get_command

    *before, incomplete = words or [""]
    offered = FishComplete(get_command(app), {}, "kschedx", "").get_completions(before, incomplete)
    for item in offered:
        description = " ".join((item.help or "").split())
        yield f"{item.value}\t{description}" if description else item.value
    if offered:
        yield _NO_FILES

"""`kschedx reason`: what a reason means, and what an event's text is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.output import ExitCode

HELP = """Explain a reason: what it means, its usual causes, how to confirm it, and what fixes it.

\b
Examples:
  kschedx reason insufficient-resource           # a reason by its ID
  kschedx reason NodeResourcesFit                # every reason of a plugin
  kschedx reason '0/5 nodes are available: ...'  # the text of an event

WHAT is the ID of a reason, a plugin, or the text of a FailedScheduling event, which is split into its reasons.
Without WHAT, all IDs are listed.
"""
SUMMARY = "Explain a reason or an event's text"


def reason(
    what: Annotated[
        list[str] | None, typer.Argument(metavar="[WHAT]", show_default=False, autocompletion=completion.reasons)
    ] = None,
) -> int:
    """The command; its help is HELP."""
    from kschedx.render.catalogue import print_reason, print_reasons

    if not what:
        print_reasons()
    else:
        print_reason(" ".join(what))
    return ExitCode.SCHEDULABLE

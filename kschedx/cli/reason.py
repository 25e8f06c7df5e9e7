"""`kschedx reason`: what a reason means, and what an event's text is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.output import ExitCode

HELP = """What a reason means, when it arises and what usually fixes it.

WHAT is the id of a reason (insufficient-resource), a plugin (NodeResourcesFit), or the whole text of a FailedScheduling
event ("0/5 nodes are available: ..."), which is taken apart. Without WHAT, every id is listed.

\b
Examples:
  kschedx reason insufficient-resource           # what kschedx found
  kschedx reason NodeResourcesFit                # every reason of a plugin
  kschedx reason '0/5 nodes are available: ...'  # the text of an event
"""
SUMMARY = "What a reason, a plugin or an event's text means."


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

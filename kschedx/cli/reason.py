"""`kschedx reason`: what a reason means, and which reasons an event's text contains."""

from __future__ import annotations

from functools import partial

from kschedx.cli import completion
from kschedx.cli.options import Command, argument
from kschedx.cli.output import Answer
from kschedx.errors import InputError

_LONGEST_INPUT = 1 << 20  # bytes of standard input that are read
COMMAND = Command(
    "Explain a reason or an event's text",
    help="""Explain a reason: what it means, its usual causes, how to confirm it, and what fixes it.

\b
Examples:
  kschedx reason insufficient-resource           # a reason by its ID
  kschedx reason NodeResourcesFit                # every reason of a plugin
  kschedx reason '0/5 nodes are available: ...'  # the text of an event
  kubectl describe pod web-0 | kschedx reason -  # every event in a text

WHAT is the ID of a reason, a plugin, or the text of an event, which is split into its reasons. Events of
kube-scheduler, the API server, controllers, kubelets, cluster-autoscaler, Karpenter, and Kueue are known. With - the
text is read from standard input.
Without WHAT, all IDs are listed.
""",
)


def reason(what: list[str] = argument("[WHAT]", complete=completion.reasons, default=[])) -> Answer:
    if what != ["-"]:
        return explain_reason(" ".join(what))
    from kschedx.sources.files import standard_input

    given = standard_input().read(_LONGEST_INPUT).decode(errors="replace").strip()
    if not given:
        raise InputError("standard input is empty")
    return explain_reason(given)


def explain_reason(what: str) -> Answer:
    """Return the meaning of a text; all IDs if it is empty."""
    from kschedx.render.catalogue import reason_lines

    return Answer.of_lines(partial(reason_lines, what))

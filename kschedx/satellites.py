"""What the parts that the core never imports provide, each under a name of its own.

A satellite is a module, imported when what it provides is first asked for. To add one, or to drop one, takes a line
here: nothing else in the core names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from kschedx.errors import UndecidableError

DEVICE_EXPRESSIONS = "device expressions"
"""`kube.device_expressions.ExpressionLanguage`: the Common Expression Language."""
ANONYMOUS_EXPRESSIONS = "anonymous device expressions"
"""A function of an expression and `export.anonymous.values.Names` that replaces the names in it."""
EARLIER_SCHEDULER = "schedulers before the framework"
"""A `Scheduler` that is made with `of`, for releases without the scheduling framework."""

EXTENDERS = "HTTP extenders"
"""The `framework.extenders.Extenders` of a configuration, who asks them, and the manifests of the cluster."""
EXTENDED_CYCLE = "the part of HTTP extenders in a cycle"
"""A `framework.schedule.ExtendedCycle` of a framework, its extenders, and a pod."""

PROVIDERS: Mapping[str, str] = {
    DEVICE_EXPRESSIONS: "kschedx.cel.devices:LANGUAGE",
    ANONYMOUS_EXPRESSIONS: "kschedx.cel.anonymous:expression",
    EXTENDERS: "kschedx.extenders.run:Extenders",
    EXTENDED_CYCLE: "kschedx.extenders.run:Extended",
    EARLIER_SCHEDULER: "kschedx.legacy.scheduler:PredicateScheduler",
}
"""What is provided to `module:name`."""


@cache
def provided(name: str) -> object:
    """What a satellite provides. Raises `UndecidableError` where there is none."""
    module, _, attribute = PROVIDERS.get(name, "").partition(":")
    if not module:
        raise UndecidableError(f"this kschedx has no {name}")
    found: object = getattr(import_module(module), attribute)
    return found

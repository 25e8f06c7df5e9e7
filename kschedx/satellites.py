"""What the packages that the core never imports provide, each by its own name.

A satellite is a module that is imported when it is first used. Adding or removing one takes a line here: nothing else
in the core names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from kschedx.errors import UndecidableError

DEVICE_EXPRESSIONS = "device expressions"  # `kube.devices.ExpressionLanguage`: the Common Expression Language
ANONYMOUS_EXPRESSIONS = "anonymous device expressions"
"""A function that replaces the names in an expression, given `export.anonymous.values.Names`."""
EARLIER_SCHEDULER = "schedulers before the framework"
"""A `Scheduler`, created by `of`, for versions before the scheduling framework."""

EXTENDERS = "HTTP extenders"
"""The `framework.extenders.Extenders` of a configuration, created from its extenders, an `Ask`, and the cluster's
manifests."""
EXTENDED_CYCLE = "the part of HTTP extenders in a cycle"
"""A `framework.schedule.ExtendedCycle` of a framework, its extenders, and a pod."""

PROVIDERS: Mapping[str, str] = {
    DEVICE_EXPRESSIONS: "kschedx.cel.devices:LANGUAGE",
    ANONYMOUS_EXPRESSIONS: "kschedx.cel.anonymous:expression",
    EXTENDERS: "kschedx.extenders.run:HTTPExtenders",
    EXTENDED_CYCLE: "kschedx.extenders.run:HTTPExtenderCycle",
    EARLIER_SCHEDULER: "kschedx.legacy.scheduler:PredicateScheduler",
}
"""Name to the provided object, as `module:name`."""


@cache
def provider(name: str) -> object:
    """Return what a satellite provides. Raises `UndecidableError` if there is none."""
    module, _, attribute = PROVIDERS.get(name, "").partition(":")
    if not module:
        raise UndecidableError(f"this kschedx has no {name}")
    value: object = getattr(import_module(module), attribute)
    return value

"""Plugin names to classes: the in-tree plugins, and those that other packages register by entry point."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from kschedx.errors import ConfigError, is_a_letter_away, nearest
from kschedx.framework import interface
from kschedx.framework.interface import Plugin
from kschedx.releases.plugins import PLUGINS, Row

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def _module(row: Row) -> str:
    return f"kschedx.plugins.{row.module or re.sub(r'(?<!^)(?=[A-Z])', '_', row.name).lower()}"


IN_TREE: Mapping[str, str] = {row.name: _module(row) for row in PLUGINS if row.module != "none"}
"""Upstream's name to the module that holds the class of the same name."""

ENTRY_POINTS = "kschedx.plugins"
"""The entry point group in which another package registers `Name = module:Class`."""

POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": interface.PreEnqueuePlugin,
    "queueSort": interface.QueueSortPlugin,
    "preFilter": interface.PreFilterPlugin,
    "filter": interface.FilterPlugin,
    "postFilter": interface.PostFilterPlugin,
    "preScore": interface.PreScorePlugin,
    "score": interface.ScorePlugin,
    "reserve": interface.ReservePlugin,
    "permit": interface.PermitPlugin,
    "preBind": interface.PreBindPlugin,
    "bind": interface.BindPlugin,
    "postBind": interface.PostBindPlugin,
}
"""Extension point, as a configuration spells it, to the class that a plugin of it extends."""


@cache
def plugin_class(name: str) -> type[Plugin]:
    """The class of a plugin. Raises `ConfigError` for a name that nobody registered, or that cannot be imported."""
    module = IN_TREE.get(name)
    if module:
        found: object = getattr(import_module(module), name)
    elif name in third_party():
        found = _loaded(third_party()[name])
    else:
        raise ConfigError(f'plugin "{name}" is not known', hint=nearest(name, [*IN_TREE, *third_party()]))
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise ConfigError(f'plugin "{name}" is registered as {found!r}, which is no kschedx Plugin')
    return found


@cache
def third_party() -> Mapping[str, EntryPoint]:
    """The plugins that other packages register, by name; nothing of theirs is imported."""
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _loaded(point: EntryPoint) -> object:
    """The registered object. Whatever the import of another package raises is told with the plugin's name."""
    try:
        return point.load()
    except Exception as error:
        package = f" of the package {point.dist.name}" if point.dist else ""
        text = f'plugin "{point.name}"{package} cannot be imported: {type(error).__name__}: {error}'
        raise ConfigError(text, hint=f"it is registered as {point.value}") from error


def points_of_others(names: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The extension points of those of these plugins that a package registers. Raises `ConfigError` for what cannot be
    imported; what nobody names is not even tried."""
    return {name: points_of(plugin_class(name)) for name in sorted(names) if name in third_party()} if names else {}


def misnamed(name: str) -> str:
    """Why a name that a release does not have can be no plugin of another project; empty where it may be one.

    It is Kubernetes' own in another release, or a letter away from one.
    """
    for row in PLUGINS:
        if row.name == name:
            first, _, last = row.releases.partition("..")
            when = f"from {first} to {last}" if first and last else f"since {first}" if first else f"up to {last}"
            return f"Kubernetes has it {when}"
    near = next((row.name for row in PLUGINS if is_a_letter_away(name, row.name)), None)
    return f'did you mean "{near}"?' if near else ""


def points_of(plugin: type[Plugin]) -> frozenset[str]:
    """The extension points that a class implements."""
    return frozenset(point for point, base in POINTS.items() if issubclass(plugin, base))

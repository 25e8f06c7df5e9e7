"""Plugin names to classes: the in-tree plugins, and those that other packages register by entry point."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field

from kschedx.errors import ConfigError, nearest
from kschedx.framework import interface
from kschedx.framework.interface import Plugin
from kschedx.kube.documents import Document
from kschedx.releases import PLACEMENT_POINTS, Release
from kschedx.releases import POINTS as RELEASE_POINTS
from kschedx.releases.dates import minor
from kschedx.releases.plugins import KUBERNETES, OF_KOORDINATOR, PLUGINS, SCHEDULER_PLUGINS, PluginRow, points_in

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def _module(row: PluginRow) -> str:
    return f"kschedx.plugins.{row.module or re.sub(r'(?<!^)(?=[A-Z])', '_', row.name).lower()}"


_ROWS: Mapping[str, PluginRow] = {row.name: row for row in PLUGINS}

IN_TREE: Mapping[str, str] = {row.name: _module(row) for row in PLUGINS if row.module != "none"}
"""Names of the plugins in kschedx, each with the module that has the class of the same name."""

_ENTRY_POINTS = "kschedx.plugins"  # the entry point group in which another package registers `Name = module:Class`

_POINTS: Mapping[str, type[Plugin]] = {
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
"""Extension point, as a configuration spells it, to the base class of its plugins."""


@cache
def plugin_class(name: str) -> type[Plugin]:
    """Return the class of a plugin. Raises `ConfigError` if the name is not registered or cannot be imported."""
    is_kubernetes = name in _ROWS and _ROWS[name].project == KUBERNETES
    if not is_kubernetes and name in third_party():  # if a package is installed, its plugin is meant
        loaded = _load(third_party()[name])
    elif name in IN_TREE:
        loaded = getattr(import_module(IN_TREE[name]), name)
    else:
        raise ConfigError(f'plugin "{name}" is not known', hint=nearest(name, [*IN_TREE, *third_party()]))
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise ConfigError(f'plugin "{name}" is registered as {loaded!r}, which is not a kschedx Plugin')
    return loaded


@cache
def third_party() -> Mapping[str, EntryPoint]:
    """Return the plugins that other packages register, by name, without importing them."""
    if not any(map(_may_register, sys.path)):
        return {}
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return {point.name: point for point in entry_points(group=_ENTRY_POINTS)}


def _may_register(place: str) -> bool:
    """Return whether a package in a directory of `sys.path` may have entry points of the group. False only if all files
    that could define them were read."""
    folder = Path(place or ".")
    try:
        files = [path / "entry_points.txt" for path in folder.iterdir() if path.suffix in (".dist-info", ".egg-info")]
        return any(_ENTRY_POINTS.encode() in file.read_bytes() for file in files if file.exists())
    except OSError:
        return folder.exists()  # packages in an archive


def _load(point: EntryPoint) -> object:
    """Return the registered object. An error while importing another package is reported with the plugin's name."""
    try:
        return point.load()
    except Exception as error:
        package = f" of the package {point.dist.name}" if point.dist else ""
        text = f'plugin "{point.name}"{package} cannot be imported: {type(error).__name__}: {error}'
        raise ConfigError(text, hint=f"it is registered as {point.value}") from error


def points_of_others(named: Mapping[str, Collection[str]]) -> Mapping[str, frozenset[str]]:
    """Return the extension points of these plugins, except Kubernetes' own: plugins of other projects, as far as
    kschedx has them, and of installed packages. `named` has the points at which a configuration enables each plugin.
    Raises `ConfigError` if a plugin cannot be imported; only the named ones are imported."""
    # Koordinator has plugins of the same names that decide differently
    projects = () if OF_KOORDINATOR & named.keys() else (SCHEDULER_PLUGINS,)
    others = {
        row.name for row in PLUGINS if row.project in projects and row.name in named and _is_same_plugin(row, named)
    }
    others |= {name for name in named if name in third_party() and name not in _ROWS} if named else set()
    return {name: _points_of_other(name) for name in sorted(others)}


def _is_same_plugin(row: PluginRow, named: Mapping[str, Collection[str]]) -> bool:
    """Return whether the name means this project's plugin: if it is enabled at a point that this one lacks, it is
    another plugin of that name."""
    return row.name in third_party() or set(named[row.name]) <= {*points_in(row, ()), "multiPoint"}


def _points_of_other(name: str) -> frozenset[str]:
    return _points_of(plugin_class(name)) if name in third_party() else points_in(_ROWS[name], ())


def missing_points(name: str) -> frozenset[str]:
    """Return the extension points of a plugin that kschedx does not implement."""
    row = _ROWS.get(name)
    return frozenset(row.lacks.split(", ")) if row and row.lacks and name not in third_party() else frozenset()


def packaged_plugins() -> Iterator[tuple[str, type[Plugin] | ConfigError]]:
    """Yield the plugins of installed packages by name, with their class or the error that prevents its use."""
    for name in sorted(third_party()):
        if name not in _ROWS or _ROWS[name].project != KUBERNETES:
            try:
                yield name, plugin_class(name)
            except ConfigError as error:
                yield name, error


class KnownPlugin(Document, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin that kschedx has."""

    name: str
    origin: str  # Kubernetes, another project, or a package, with the version
    points: tuple[str, ...]
    by_default: bool = field(name="default")  # in the version's default profile
    defect: str = ""  # why it cannot be used; empty if it can


def known_plugins(release: Release) -> Iterator[KnownPlugin]:
    """Yield Kubernetes' own plugins in the default profile's order, those of other projects, then those of packages."""
    defaults = {plugin.name for plugin in release.default_plugins}
    for row in PLUGINS:
        if row.name in third_party() and row.project != KUBERNETES:
            continue
        if row.project != KUBERNETES:
            yield KnownPlugin(
                name=row.name,
                origin=f"{row.project} {row.follows}",
                points=_order_points(points_in(row, minor(release.version))),
                by_default=False,
            )
        elif row.name in release.plugin_points and row.module != "none":
            yield KnownPlugin(
                name=row.name,
                origin=f"{KUBERNETES} {release.title}",
                points=_order_points(release.plugin_points[row.name]),
                by_default=row.name in defaults,
            )
    for name, loaded in packaged_plugins():
        point = third_party()[name]
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        if isinstance(loaded, ConfigError):
            yield KnownPlugin(name=name, origin=origin, points=(), by_default=False, defect=loaded.message)
        else:
            yield KnownPlugin(name=name, origin=origin, points=_order_points(_points_of(loaded)), by_default=False)


def _order_points(points: frozenset[str]) -> tuple[str, ...]:
    return tuple(point for point in (*RELEASE_POINTS, *PLACEMENT_POINTS) if point in points)


def plugin_at_fault(error: BaseException) -> str:
    """Return the plugin of another package in which an exception was raised; empty if there is none."""
    frame, location = error.__traceback__, ""
    while frame is not None:
        plugin = frame.tb_frame.f_locals.get("self")
        if isinstance(plugin, Plugin) and not type(plugin).__module__.startswith("kschedx."):
            location = plugin.name
        frame = frame.tb_next
    return location


def _points_of(plugin: type[Plugin]) -> frozenset[str]:
    """Return the extension points that a class implements."""
    return frozenset(point for point, base in _POINTS.items() if issubclass(plugin, base))

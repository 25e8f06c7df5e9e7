"""From the plugin lists of a profile to the plugins of each extension point.

There are three layers, in order of precedence: the profile's list for a point, its MultiPoint list, and the version's
default MultiPoint list. Upstream: mergePlugins in pkg/scheduler/apis/config/v1/default_plugins.go, then NewFramework
and expandMultiPointPlugins in pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.errors import ConfigError, differs_by_one_letter
from kschedx.framework.config.decoding import Faults, Plugins, PluginSet, refuse, shown
from kschedx.framework.registry import missing_points
from kschedx.releases import PLACEMENT_POINTS, POINTS, V1BETA2, DefaultPlugin, Release
from kschedx.releases.plugins import KUBERNETES, PLUGINS

PluginPoints = Mapping[str, frozenset[str]]  # plugin to the extension points that it implements

_ORDER_OF_CHECKS = (
    "preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind", "bind", "postBind", "permit",
    "preEnqueue", "queueSort", *PLACEMENT_POINTS,
)  # fmt: skip
"""Upstream's order of the points, which determines the error that is reported first."""


class EnabledPlugin(Struct, frozen=True, kw_only=True):
    """An enabled plugin, and where the configuration enables it (empty: by default)."""

    name: str
    weight: int
    path: str = ""


class MergedSet(Struct, frozen=True, kw_only=True):
    """A PluginSet with the defaults merged in."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[str, ...] = ()

    def requested_plugins(self) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
        """Return what the set enables, with weights, and what it disables, without paths."""
        return tuple((entry.name, entry.weight) for entry in self.enabled), self.disabled


def merge_plugins(plugins: Plugins, api_version: str, release: Release, path: str) -> dict[str, MergedSet]:
    """The sets by point, MultiPoint included, for a configuration of `api_version`. `path` is that of `plugins`."""
    defaults = _defaults(api_version, release)
    written = plugins.sets_by_point()
    if api_version == V1BETA2:
        written["preEnqueue"] = PluginSet()  # v1beta2 has the field, but kube-scheduler never merges it
    return {
        point: _merge(
            tuple(EnabledPlugin(name=p.name, weight=p.weight) for p in defaults.get(point, ())),
            custom,
            f"{path}.{point}",
        )
        for point, custom in written.items()
    }


def _defaults(api_version: str, release: Release) -> Mapping[str, tuple[DefaultPlugin, ...]]:
    """Return the default profile: one MultiPoint list, or in v1beta2 a list for each extension point."""
    if api_version == V1BETA2:
        return release.v1beta2_default_plugins
    return {"multiPoint": release.default_plugins}


def _merge(defaults: Sequence[EnabledPlugin], custom: PluginSet, path: str) -> MergedSet:
    """Merge the defaults into a custom set. A default that is enabled again keeps its position; the rest of the custom
    list follows the defaults.

    If a plugin is listed twice, the last entry replaces the default. The other entry stays, and a later check reports
    it.
    """
    disabled = tuple(plugin.name for plugin in custom.disabled)
    entries = [
        EnabledPlugin(name=plugin.name, weight=plugin.weight, path=f"{path}.enabled[{i}]")
        for i, plugin in enumerate(custom.enabled)
    ]
    by_name = {entry.name: entry for entry in entries}
    kept = [] if "*" in disabled else [by_name.get(d.name, d) for d in defaults if d.name not in disabled]
    return MergedSet(enabled=(*kept, *(entry for entry in entries if entry not in kept)), disabled=disabled)


class Expansion(Struct, frozen=True, kw_only=True):
    """The plugins of every point in order, and the weight of each score plugin, also those that `score` disables."""

    points: Mapping[str, tuple[str, ...]]
    placement: Mapping[str, int]  # the plugins that generate or score the placements of pod groups, with their weights
    weights: Mapping[str, int]
    unknown: Mapping[str, tuple[str, ...]]
    """Plugins that kschedx does not have, at some points or at all, with the places that enable them: points, or
    `multiPoint`."""
    queue_sort: str
    """The only plugin that sorts the queue, known or unknown; empty if an unknown plugin in multiPoint does."""


def expand(
    merged: Mapping[str, MergedSet], implements: PluginPoints, scheduler_name: str, path: str, faults: Faults
) -> Expansion:
    """Expand the sets of a profile. Errors with which no kube-scheduler would start, whatever plugins it has, are added
    to `faults`. `path` is the profile's.

    A plugin that `implements` lacks may belong to another project. It then runs at each point that enables it, unless
    no project can have a plugin of that name.
    """
    unknown = _unknown(merged, implements)
    faults.extend(_misnamed_plugins(merged, unknown))
    implements = {**implements, **{name: frozenset(points) for name, points in unknown.items()}}
    multi_point = merged["multiPoint"].enabled
    for point in _ORDER_OF_CHECKS:
        faults.extend(_point_errors(point, merged[point].enabled, implements))
    points = {point: _expand_point(point, merged[point], multi_point, implements, faults) for point in _ORDER_OF_CHECKS}
    may_bring_more = any("multiPoint" in where for where in unknown.values())
    faults.extend(_wrong_numbers(points, scheduler_name, f"{path}.plugins", may_bring_more))
    weights: dict[str, int] = {}
    for entry in (*merged["score"].enabled, *multi_point):
        if "score" in implements[entry.name]:
            weights.setdefault(entry.name, entry.weight or 1)
    given: dict[str, int] = {}
    for entry in (*merged["placementScore"].enabled, *multi_point):
        given.setdefault(entry.name, entry.weight or 1)
    placement = {name: given.get(name, 1) for point in PLACEMENT_POINTS for name in points[point]}
    return Expansion(
        points={point: points[point] for point in POINTS},
        placement=placement,
        weights=weights,
        unknown={**unknown, **_known_by_name(points, implements.keys() - unknown.keys())},
        queue_sort="".join(points["queueSort"]),
    )


def _unknown(merged: Mapping[str, MergedSet], implements: PluginPoints) -> dict[str, tuple[str, ...]]:
    """Return the enabled plugins that are unknown, with the places that enable them."""
    unknown: dict[str, tuple[str, ...]] = {}
    for point in ("multiPoint", *POINTS, *PLACEMENT_POINTS):
        for entry in merged[point].enabled:
            if entry.name not in implements:
                unknown[entry.name] = (*unknown.get(entry.name, ()), point)
    return unknown


def _misnamed_hint(name: str) -> str:
    """Return why a name that a version lacks cannot be a plugin of another project; empty if it may be one.

    Such a name is Kubernetes' own in another version, or differs from one by a letter.
    """
    for row in PLUGINS:
        if row.name == name and row.project == KUBERNETES:
            first, _, last = row.releases.partition("..")
            when = f"from {first} to {last}" if first and last else f"since {first}" if first else f"up to {last}"
            return f"Kubernetes has it {when}"
    near = next(
        (row.name for row in PLUGINS if differs_by_one_letter(name, row.name) and row.project == KUBERNETES), None
    )
    return f'did you mean "{near}"?' if near else ""


def _misnamed_plugins(merged: Mapping[str, MergedSet], unknown: Collection[str]) -> Iterator[ConfigError]:
    for point in (*_ORDER_OF_CHECKS, "multiPoint"):
        for entry in merged[point].enabled:
            if entry.name in unknown and (hint := _misnamed_hint(entry.name)):
                kind = "plugin" if point == "multiPoint" else _interface(point)
                yield refuse(f"{entry.path}.name", f"{kind} {shown(entry.name)} does not exist", hint)


def _wrong_numbers(
    points: Mapping[str, Sequence[str]], scheduler_name: str, path: str, may_bring_more: bool
) -> Iterator[ConfigError]:
    """Yield errors for points with too many plugins or none. `may_bring_more`: whether an unknown plugin is in
    multiPoint."""
    profile = f"for profile with scheduler name {shown(scheduler_name)}"
    number = len(points["queueSort"])
    if number != 1 and not (may_bring_more and not number):
        yield refuse(f"{path}.queueSort", f"only one queue sort plugin required {profile}, but got {number}")
    if not points["bind"] and not may_bring_more:
        yield refuse(f"{path}.bind", f"at least one bind plugin is needed {profile}")
    if len(points["placementGenerate"]) > 1:
        yield refuse(f"{path}.placementGenerate", f"at most one placement generate plugin is allowed {profile}")


def _known_by_name(points: Mapping[str, Sequence[str]], known: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return known plugins with the points at which they are enabled and which kschedx does not implement."""
    names_by_type: dict[str, tuple[str, ...]] = {}
    for point in POINTS:
        for name in points[point]:
            if name in known and point in missing_points(name):
                names_by_type[name] = (*names_by_type.get(name, ()), point)
    return names_by_type


def _expand_point(
    point: str, merged: MergedSet, multi_point: Iterable[EnabledPlugin], implements: PluginPoints, faults: Faults
) -> tuple[str, ...]:
    """Return first the plugins enabled at both the point and MultiPoint, then MultiPoint's, then the point's own."""
    named = [entry.name for entry in merged.enabled]
    if "*" in merged.disabled:
        return tuple(named)
    overrides: set[str] = set()
    expanded: list[str] = []
    for entry in multi_point:
        if point not in implements[entry.name] or entry.name in merged.disabled:
            continue
        if entry.name in named:
            overrides.add(entry.name)
        elif entry.name in expanded:
            faults.add(_already_registered(point, entry))
        else:
            expanded.append(entry.name)
    first = [name for name in named if name in overrides]
    return (*first, *expanded, *(name for name in named if name not in overrides))


def _point_errors(point: str, enabled: Iterable[EnabledPlugin], implements: PluginPoints) -> Iterator[ConfigError]:
    kind = _interface(point)
    seen: set[str] = set()
    for entry in enabled:
        if point not in implements[entry.name]:
            hint = f"it has {', '.join(sorted(implements[entry.name]))}"
            yield refuse(f"{entry.path}.name", f"plugin {shown(entry.name)} does not extend {kind} plugin", hint)
        if entry.name in seen:
            yield _already_registered(point, entry)
        seen.add(entry.name)


def _already_registered(point: str, entry: EnabledPlugin) -> ConfigError:
    return refuse(f"{entry.path}.name", f"plugin {shown(entry.name)} already registered as {shown(_interface(point))}")


def _interface(point: str) -> str:
    """Return the Go interface of a point, which kube-scheduler's errors name: `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"

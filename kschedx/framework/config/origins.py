"""A configuration with all defaults, and the origin of each of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, structs

from kschedx.framework.args import PluginArgs
from kschedx.framework.config.decoding import KIND, ConfigurationDocument, Profile
from kschedx.framework.config.expansion import EnabledPlugin, MergedSet, merge_plugins
from kschedx.framework.config.loading import decode_document, load_profiles
from kschedx.kube.escaping import MASK, Url
from kschedx.kube.scalars import Duration
from kschedx.releases import POINTS, Release


def format_args(args: PluginArgs) -> dict[str, object]:
    """Return the fields under their own names, without empty ones."""
    plain = _format_value(args)
    assert isinstance(plain, dict)
    return plain


def _format_value(value: object) -> object:
    match value:
        case Duration():
            return str(value)
        case Struct():
            fields = {field.encode_name: getattr(value, field.name) for field in structs.fields(value)}
            return {name: _format_value(item) for name, item in fields.items() if item is not None and item != ()}
        case Mapping():
            return {str(name): _format_value(item) for name, item in value.items()}
        case list() | tuple():
            return [_format_value(item) for item in value]
        case _:
            return value


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of a document with their field paths. An empty value has none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        named = all(isinstance(item, Mapping) and item.get("name") for item in value)
        for number, item in enumerate(value):
            key = item["name"] if named and isinstance(item, Mapping) else number
            yield from flat(item, f"{path}[{key}]")
    elif value is not None:
        yield path, value


_UNSET = "1 where no weight is set"


class ExpandedConfig(Struct, frozen=True, kw_only=True):
    """The settings with which kube-scheduler runs."""

    configuration: dict[str, object]
    """An equivalent KubeSchedulerConfiguration that relies on no defaults and lists the plugins of each point."""
    arguments: tuple[Mapping[str, Mapping[str, object]], ...]
    """Plugin to its arguments, for each profile, in the order of its pluginConfig."""
    origins: Mapping[str, str]
    """Field path in `configuration` to the origin of the setting: `default of 1.36`, or a path in the original."""


def expand_config(config: Mapping[str, object] | None, release: Release) -> ExpandedConfig:
    """Return the configuration with all settings. Raises `ConfigError` if kube-scheduler would refuse it."""
    scheduler = load_profiles(config, release)
    document = decode_document(config, release)
    origins: dict[str, str] = {}
    arguments: list[dict[str, dict[str, object]]] = []
    profiles = []
    for index, profile in enumerate(scheduler.profiles):
        source = _Source(index, document, release)
        path = f"profiles[{index}]"
        plugins: dict[str, object] = {"multiPoint": {"disabled": [{"name": "*"}]} | source.unknown_plugins(profile)}
        for point in POINTS:
            entries = [_entry(point, name, profile) for name in profile.enabled[point]]
            plugins[point] = {"enabled": entries}
            for number, name in enumerate(profile.enabled[point]):
                where = f"{path}.plugins.{point}.enabled[{number}]"
                origins[f"{where}.name"] = source.plugin(point, name)
                if point == "score":
                    origins[f"{where}.weight"] = source.weight(name)
        args = _arguments(profile, release)
        arguments.append(args)
        for number, (name, plain) in enumerate(args.items()):
            for field, _ in flat(plain):
                origins[f"{path}.pluginConfig[{number}].args.{field}"] = source.argument(name, field)
        profiles.append(_profile(profile, plugins, args))
    configuration = _configuration(config, release, profiles)
    return ExpandedConfig(configuration=configuration, arguments=tuple(arguments), origins=origins)


def _arguments(profile: Profile, release: Release) -> dict[str, dict[str, object]]:
    """Return each plugin's arguments that a configuration of the version can set."""
    missing = release.missing_fields[release.config_versions[0]]
    arguments: dict[str, dict[str, object]] = {}
    for name, args in profile.args.items():
        plain = format_args(args)
        kept = {
            key: value
            for key, value in plain.items()
            if f"profiles[].pluginConfig[]{{{name}}}.args.{key}" not in missing
        }
        if kept:
            arguments[name] = kept
    return arguments


def _configuration(
    config: Mapping[str, object] | None, release: Release, profiles: list[dict[str, object]]
) -> dict[str, object]:
    kept = {key: value for key, value in (config or {}).items() if key not in ("apiVersion", "kind", "profiles")}
    return {"apiVersion": release.config_versions[0], "kind": KIND, **kept, "profiles": profiles}


def without_secrets(configuration: Mapping[str, object]) -> dict[str, object]:
    """Return the configuration with possible secrets of its extenders masked: parts of the URL, and the key."""

    def masked(key: str, value: object) -> object:
        match value:
            case str() if key == "urlPrefix":
                return str(Url(value))
            case str() if key == "keyData" and value:
                return MASK
            case Mapping():
                return {name: masked(name, item) for name, item in value.items()}
            case list():
                return [masked("", item) for item in value]
            case _:
                return value

    extenders = {key: masked(key, value) for key, value in configuration.items() if key == "extenders"}
    return {**configuration, **extenders}


def _profile(
    profile: Profile, plugins: dict[str, object], args: Mapping[str, Mapping[str, object]]
) -> dict[str, object]:
    percentage = profile.percentage_of_nodes_to_score
    return {
        "schedulerName": profile.scheduler_name,
        **({"percentageOfNodesToScore": percentage} if percentage else {}),
        "plugins": plugins,
        "pluginConfig": [{"name": name, "args": dict(plain)} for name, plain in args.items()],
    }


def _entry(point: str, name: str, profile: Profile) -> dict[str, object]:
    return {"name": name, "weight": profile.weights[name]} if point == "score" else {"name": name}


class _Source:
    """The profile as it is written."""

    def __init__(self, index: int, document: ConfigurationDocument, release: Release) -> None:
        self._path = f"profiles[{index}]"
        self._profile = document.profiles[index]
        self._has_extenders = bool(document.extenders)
        self._default = f"default of {release.version}"
        self._merged: Mapping[str, MergedSet] = merge_plugins(
            self._profile.plugins, document.api_version, release, f"{self._path}.plugins"
        )

    def unknown_plugins(self, profile: Profile) -> dict[str, list[dict[str, object]]]:
        """Return the plugins in multiPoint that kschedx does not have; their points are unknown."""
        unseen = [entry for entry in self._merged["multiPoint"].enabled if entry.name in profile.unknown]
        entries = [{"name": entry.name, **({"weight": entry.weight} if entry.weight else {})} for entry in unseen]
        return {"enabled": entries} if entries else {}

    def plugin(self, point: str, name: str) -> str:
        """Return what enables the plugin at the point: the path in the point's own list or MultiPoint's, or the
        version's default."""
        entry = next(self._entries(point, name))
        return entry.path or self._default

    def weight(self, name: str) -> str:
        entry = next(self._entries("score", name))
        if not entry.weight:
            return f"{entry.path or self._default}, {_UNSET}"
        return f"{entry.path}.weight" if entry.path else self._default

    def _entries(self, point: str, name: str) -> Iterator[EnabledPlugin]:
        for entry in (*self._merged[point].enabled, *self._merged["multiPoint"].enabled):
            if entry.name == name:
                yield entry

    def argument(self, plugin: str, field: str) -> str:
        for number, config in enumerate(self._profile.plugin_config):
            if config.name == plugin and field in dict(flat(config.args)):
                return f"{self._path}.pluginConfig[{number}].args.{field}"
        if self._has_extenders and plugin == "NodeResourcesFit" and field.startswith("ignoredResources["):
            return "extenders"
        return self._default

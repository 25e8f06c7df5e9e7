"""The scheduler's configuration: labels and resources that it names are replaced as those of the cluster are.

Plugins, profiles and everything else that is Kubernetes' own stay; what scheduling does not read is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kschedx.export.anonymous import changes
from kschedx.export.anonymous.changes import Json, Names, is_map

_LEFT_OUT = frozenset(
    {
        *("clientConnection", "leaderElection", "metricsBindAddress", "healthzBindAddress", "metadata"),
        *("tlsConfig", "enableProfiling", "enableContentionProfiling"),
    }
)

_Change = Callable[[str, Names], str]


def _resource(written: str, names: Names) -> str:
    return changes.resource(written, names)


_BY_KEY: Mapping[str, _Change] = {
    "topologyKey": changes.label_key,
    "key": changes.label_key,
    "label": changes.label_key,
    "urlPrefix": lambda _, __: "https://extender.invalid",
}
"""A text of one of these keys."""
_IN_LIST: Mapping[str, _Change] = {
    "labels": changes.label_key,
    "matchLabelKeys": changes.label_key,
    "ignoredResources": _resource,
    "ignoredResourceGroups": lambda written, names: names.name(written),
}
"""The texts in a list of one of these keys."""
_OF_RESOURCES = ("resources", "managedResources")


def change_configuration(config: Mapping[str, object], names: Names) -> Json:
    names.begin("the configuration")
    return {key: _changed(key, value, names) for key, value in config.items() if key not in _LEFT_OUT}


def _changed(key: str, value: object, names: Names) -> object:
    if is_map(value):
        if "key" in value and "operator" in value:
            return _requirement(value, names)
        if key == "matchLabels":
            return {changes.label_key(one, names): names.value(one, str(text)) for one, text in value.items()}
        return {one: _changed(one, item, names) for one, item in value.items() if one not in _LEFT_OUT}
    if isinstance(value, list):
        if key in _OF_RESOURCES:
            return [_of_resource(item, names) for item in value]
        of_text = _IN_LIST.get(key)
        return [
            of_text(item, names) if of_text is not None and isinstance(item, str) else _changed(key, item, names)
            for item in value
        ]
    change = _BY_KEY.get(key)
    return change(value, names) if change is not None and isinstance(value, str) else value


def _of_resource(value: object, names: Names) -> object:
    if not is_map(value) or not isinstance(value.get("name"), str):
        return value
    return {**value, "name": _resource(str(value["name"]), names)}


def _requirement(value: Mapping[str, object], names: Names) -> Json:
    """Of labels, or of a node's name."""
    key, listed = str(value["key"]), value.get("values")
    values = listed if isinstance(listed, list) else []
    if key == "metadata.name":
        return {**value, "values": [names.name(str(one)) for one in values]}
    if value["operator"] in ("Gt", "Lt"):
        names.compared(key)
    changed = {**value, "key": changes.label_key(key, names)}
    if values:
        changed["values"] = [names.value(key, str(one)) for one in values]
    return changed

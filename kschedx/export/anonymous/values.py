"""How a value is anonymized, depending on what it holds: names, flags, devices, queues, configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeGuard

import msgspec

from kschedx.apiserver.pod_security import PREFIX
from kschedx.errors import InputError
from kschedx.export.anonymous.vocabulary import WORD
from kschedx.kube import autoscalers as autoscaler_command
from kschedx.kube.decoding import list_at
from kschedx.kube.documents import Json
from kschedx.kube.other_schedulers import QUEUES_FILE
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import Operator
from kschedx.patterns import lazy_pattern
from kschedx.releases.plugins import PLUGINS

DNS_SUBDOMAIN = 253
DNS_LABEL = 63
LABEL_VALUE = 63
PORT_NAME = 15  # the maximum length of a port's name in bytes
ANY_LENGTH = 2**31


class Names:
    """Collects or replaces names; this class does neither."""

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        """Replace a text of at most `limit` bytes that is compared with other names, as a whole or as a part."""
        return text

    def value(self, key: str, text: str) -> str:
        """Replace the value of a label or taint with this key."""
        return text

    def note_compared(self, key: str) -> None:
        """Note that values of labels or taints with this key are compared as numbers."""

    def ordinal(self, number: int) -> None:
        """Note that a name with this number at its end will be formed from another name."""

    def keep(self, text: str) -> None:
        """Keep every word of the text, wherever it occurs."""

    def is_kept(self, text: str) -> bool:
        return False

    def begin(self, owner: str) -> None:
        """Begin an object: the following calls belong to it."""

    def note_text_operation(self, why: str) -> None:
        """Note the operation by which the object's selector depends on a text's content."""

    def uid(self, text: str) -> str:
        return text

    def ip(self, text: str) -> str:
        return text

    def message(self, text: str) -> str:
        """Replace the names in a message of kube-scheduler."""
        return text

    def statement(self, text: str) -> str | None:
        """Replace the names in a message of another program. Returns None if it has other words that are not public:
        nobody could read what remains."""
        return self.message(text)


Replacement = Callable[[object, Names], object]  # returns a field's value with its names replaced, or None to omit it


def is_map(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


# --- strings


def text(change: Callable[[str, Names], str | None]) -> Replacement:
    """Return the replacement for strings; other types are omitted. An empty string may have a meaning, such as no
    storage class."""

    def changed(value: object, names: Names) -> object:
        if not isinstance(value, str):
            return None
        return change(value, names) if value else value

    return changed


def name(limit: int = DNS_SUBDOMAIN) -> Replacement:
    return text(lambda written, names: names.name(written, limit))


def _keep(written: str, _: Names) -> str:
    return written


def label_key(written: str, names: Names) -> str:
    """Replace the key of a label or taint, or the name of a resource: `name` or `example.com/name`."""
    return names.name(written, DNS_LABEL)


_HUGEPAGES = lazy_pattern(r"(?:requests\.)?hugepages-[0-9.]+[a-zA-Z]{0,2}")


def resource(written: str, names: Names) -> str:
    return written if _HUGEPAGES.fullmatch(written) else label_key(written, names)


def time(written: str, _: Names) -> str | None:
    """Keep a time: start times decide which pods become victims, and times of events decide which note is last."""
    try:
        nanoseconds(written)
    except InputError:
        return None
    return written


_VERSION = lazy_pattern(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+)?(?![0-9])", re.ASCII)


def version(written: str, _: Names) -> str | None:
    """Return `v1.36.2` for `v1.36.2-gke.1282001`: the version without its vendor."""
    match = _VERSION.match(written)
    return match[0] if match else None


_CORE = lazy_pattern(r"[0-9]{1,20}\.[0-9]{1,20}\.[0-9]{1,20}(?![0-9.])", re.ASCII)


def semver(written: str, names: Names) -> str:
    """Return `1.2.3-a1+b1` for `1.2.3-acme+rack`: a device's version keeps its numbers."""
    core = _CORE.match(written)
    if core is None:
        return names.name(written, ANY_LENGTH)

    def replaced(word: re.Match[str]) -> str:
        is_number = word[0].isascii() and word[0].isdigit() and len(word[0]) < 10
        return word[0] if is_number else names.name(word[0], ANY_LENGTH)

    return core[0] + WORD.sub(replaced, written[core.end() :])


def revision(written: str, _: Names) -> str | None:
    """Keep a number in a string."""
    return written if written.isascii() and written.isdigit() and len(written) < 10 else None


def label_pairs(written: str, names: Names) -> str:
    """Replace the names in `key=value,other=value`."""
    pairs = [[part.strip() for part in pair.split("=")] for pair in written.split(",")]
    return ",".join(
        f"{label_key(pair[0], names)}={names.value(pair[0], pair[1])}" if len(pair) == 2 else names.name("=".join(pair))
        for pair in pairs
    )


def taint_list(written: str, names: Names) -> str:
    """Replace the names in `key=value:effect,key:effect`."""

    def replaced(text: str) -> str:
        named, colon, effect = text.partition(":")
        key, equals, value = named.partition("=")
        known = label_key(key, names)
        phrase = f"{known}={names.value(key, value)}" if equals else known
        return f"{phrase}:{effect}" if colon and effect in _EFFECTS else phrase

    return ",".join(map(replaced, written.split(",")))


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def json_text(change: Replacement) -> Replacement:
    """Return the replacement for JSON in a string; invalid JSON is omitted."""

    def changed(written: str, names: Names) -> str | None:
        try:
            value = change(msgspec.json.decode(written), names)
        except (msgspec.DecodeError, RecursionError):
            return None
        return None if value is None else msgspec.json.encode(value).decode()

    return text(changed)


# --- numbers


def number(value: object, _: Names) -> object:
    return value if isinstance(value, bool | int | float) else None


def ordinal(value: object, names: Names) -> object:
    if isinstance(value, int):
        names.ordinal(value)
    return number(value, names)


_QUANTITY = lazy_pattern(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+|[numkKMGTPE]?i?)")


def quantity(value: object, names: Names) -> object:
    if isinstance(value, str) and _QUANTITY.fullmatch(value) is None:
        return names.name(value)
    return value if isinstance(value, str | int | float) else None


# --- lists and maps


def list_of(change: Replacement) -> Replacement:
    return _ListOf(change)


class _ListOf:
    """The replacement for a list, all of whose items have the same form."""

    def __init__(self, item: Replacement) -> None:
        self.item = item

    def __call__(self, value: object, names: Names) -> object:
        if not isinstance(value, list):
            return None
        return [new for item in value if (new := self.item(item, names)) is not None]


def labels(value: object, names: Names) -> object:
    if not is_map(value):
        return None
    return {
        label_key(key, names): _label_value(key, item, names) for key, item in value.items() if isinstance(item, str)
    }


_STANDARD = lazy_pattern(r"v1\.[0-9]{1,3}")


def _label_value(key: str, value: str, names: Names) -> str:
    """Replace the value of a label. The version of a Pod Security Standard stays."""
    return value if key.startswith(PREFIX) and _STANDARD.fullmatch(value) else names.value(key, value)


def amounts(value: object, names: Names) -> object:
    """Replace a map of resources to quantities."""
    if not is_map(value):
        return None
    return {resource(key, names): quantity(amount, names) for key, amount in value.items()}


def map_by_name(change: Replacement) -> Replacement:
    """Return the replacement for a map of qualified names to records."""

    def changed(value: object, names: Names) -> object:
        if not is_map(value):
            return None
        changed_amounts = {resource(key, names): change(item, names) for key, item in value.items()}
        return {key: item for key, item in changed_amounts.items() if item is not None}

    return changed


def times(value: object, names: Names) -> object:
    """Replace a map of names to times."""
    if not is_map(value):
        return None
    return {names.name(key): time(item, names) or "" for key, item in value.items() if isinstance(item, str)}


class Record:
    """The replacement for a map with known fields."""

    def __init__(self, fields: Mapping[str, Replacement]) -> None:
        self.fields = dict(fields)

    def __call__(self, value: object, names: Names) -> Json | None:
        if not is_map(value):
            return None
        document: Json = {}
        for key, item in value.items():
            change = self.fields.get(key)
            if change is not None and (changed := change(item, names)) is not None:
                document[key] = changed
        return document

    def both(self, other: Mapping[str, Replacement]) -> Record:
        fields = dict(self.fields)
        for key, change in other.items():
            own = fields.get(key)
            fields[key] = change if own is None else _both(own, change)
        return Record(fields)


def _both(replacement: Replacement, other: Replacement) -> Replacement:
    """Merge the fields of two records, or of the records in two lists. Otherwise return the other replacement, but no
    record of what is a map, such as a ReplicationController's selector."""
    if isinstance(replacement, Record) and isinstance(other, Record):
        return replacement.both(other.fields)
    if isinstance(replacement, _ListOf) and isinstance(other, _ListOf):
        return _ListOf(_both(replacement.item, other.item))
    return replacement if isinstance(other, Record) else other


_BOUNDS = (Operator.GT, Operator.LT, "Gte", "Lte")  # operators that compare numbers; the last two are Karpenter's


def requirement(fields: Mapping[str, Replacement]) -> Replacement:
    """Return the replacement for a requirement, taint, or toleration: its key decides how its value is replaced."""
    record = Record({key: change for key, change in fields.items() if key not in ("value", "values")})

    def changed(value: object, names: Names) -> object:
        document = record(value, names)
        if document is None or not is_map(value):
            return None
        key = value.get("key")
        label = key if isinstance(key, str) else ""
        if value.get("operator") in _BOUNDS:
            names.note_compared(label)
        single, several = value.get("value"), value.get("values")
        if isinstance(single, str):
            document["value"] = names.value(label, single)
        if isinstance(several, list):
            document["values"] = [names.value(label, item) for item in several if isinstance(item, str)]
        return document

    return changed


def condition(fields: Mapping[str, Replacement]) -> Replacement:
    """Return the replacement for a pod's condition, whose message is kube-scheduler's or another program's."""
    record = Record(fields)
    by_others = Record({**fields, "message": text(lambda written, names: names.statement(written))})

    def changed(value: object, names: Names) -> object:
        by_scheduler = is_map(value) and value.get("type") == "PodScheduled"
        return (record if by_scheduler else by_others)(value, names)

    return changed


# The flags of cluster-autoscaler's Deployment. Keys in them are replaced as everywhere; anything else that could be a
# name is omitted.

_KEYS = frozenset({"balancing-label", "balancing-ignore-label", "startup-taint", "ignore-taint", "status-taint"})
"""Flags whose value is the key of a label or taint."""
_SCHEDULERS = frozenset({"bypassed-scheduler-names", "allowed-scheduler-names"})
"""Flags with the names of schedulers, between commas."""
_KEPT_FLAGS = frozenset({"cloud-provider", "expander"})  # flags whose names stay
_SOME_FILE = "scheduler.yaml"  # replaces the path of a file, which could contain a name
_AMOUNT = lazy_pattern(r"[0-9.:+-]+(?:ns|us|ms|[smh0-9.])*|true|false")


def keep_flags(deployment: Mapping[str, object], changed: Json, names: Names) -> None:
    """Add the flags to an anonymized Deployment that runs cluster-autoscaler."""
    for position, flags in autoscaler_command.flags_of_containers(deployment):
        at: object = changed
        for part in ("spec", "template", "spec", "containers"):
            at = at.get(part) if is_map(at) else None
        if isinstance(at, list) and position < len(at) and isinstance(at[position], dict):
            kept = {name: [*_values(name, values, names)] for name, values in flags.items()}
            at[position] |= autoscaler_command.command(kept)


def _values(name: str, values: list[str], names: Names) -> Iterator[str]:
    for value in values:
        if name in _KEYS:
            yield label_key(value, names)
        elif name in _SCHEDULERS:
            yield ",".join(map(names.name, value.split(",")))
        elif name == autoscaler_command.SCHEDULER_CONFIG:
            yield _SOME_FILE
        elif name in _KEPT_FLAGS or _AMOUNT.fullmatch(value):
            yield value


# Attributes of devices.
#
# They are replaced like names, except those whose content a kept selector depends on.

_VALUES: dict[str, Replacement] = {
    "int": number,
    "bool": number,
    "string": name(ANY_LENGTH),
    "version": text(semver),
    "ints": list_of(number),
    "bools": list_of(number),
    "strings": list_of(name(ANY_LENGTH)),
    "versions": list_of(text(semver)),
}
_KEPT_ATTRIBUTES: dict[str, Replacement] = _VALUES | {"string": text(_keep), "strings": list_of(text(_keep))}


def attributes(value: object, names: Names) -> object:
    """Replace a map of qualified names to attributes."""
    if not is_map(value):
        return None
    document: Json = {}
    for key, item in value.items():
        changes = _KEPT_ATTRIBUTES if names.is_kept(key.rpartition("/")[2]) else _VALUES
        if is_map(item):
            changed = {kind: changes[kind](attribute, names) for kind, attribute in item.items() if kind in changes}
            document[label_key(key, names)] = {kind: item for kind, item in changed.items() if item is not None}
    return document


# YAML in ConfigMaps: YuniKorn's queues with their maximum resources, and Kueue's Configuration.

_MOST_LEVELS = 12


def _queues(levels: int) -> Replacement:
    below = {"queues": list_of(_queues(levels - 1))} if levels else {}
    return Record({"name": name(), "resources": Record({"max": amounts}), **below})


_SETTING = lazy_pattern(r"[A-Z][A-Za-z]+|[0-9.]+(?:ms|[hms])(?:[0-9]+[hms])*")
"""The name of an enumeration's value, or a duration."""


def _plain_setting(value: object, _: Names) -> object:
    is_known = isinstance(value, (bool, int, float)) or (isinstance(value, str) and _SETTING.fullmatch(value))
    return value if is_known else None


def _settings(value: object, names: Names) -> object:
    """Replace a map of gates to settings."""
    if is_map(value):
        return {key: _plain_setting(item, names) for key, item in value.items() if _SETTING.fullmatch(key)}
    return None


_TRANSFORMATION = {
    "input": text(resource),
    "strategy": _plain_setting,
    "outputs": amounts,
    "multiplyBy": text(resource),
}
_CONFIG_GROUP = "config.kueue.x-k8s.io"
_DOCUMENTS: Mapping[str, Record] = {
    QUEUES_FILE: Record({"partitions": list_of(Record({"queues": list_of(_queues(_MOST_LEVELS))}))}),
    _CONFIG_GROUP: Record(
        {
            "apiVersion": text(lambda written, _: written if written.startswith(_CONFIG_GROUP) else None),
            "kind": _plain_setting,
            "fairSharing": Record({"enable": _plain_setting, "preemptionStrategies": list_of(_plain_setting)}),
            "admissionFairSharing": Record(
                {
                    "usageHalfLifeTime": _plain_setting,
                    "usageSamplingInterval": _plain_setting,
                    "resourceWeights": amounts,
                }
            ),
            "resources": Record(
                {
                    "excludeResourcePrefixes": list_of(text(resource)),
                    "transformations": list_of(Record(_TRANSFORMATION)),
                    "quotaCheckStrategy": _plain_setting,
                }
            ),
            "featureGates": _settings,
            "waitForPodsReady": Record(
                {
                    "enable": _plain_setting,
                    "blockAdmission": _plain_setting,
                    "requeuingStrategy": Record({"timestamp": _plain_setting}),
                }
            ),
        }
    ),
}
"""The kept fields of a document, by the name of its file or by a text that it contains."""


def config_map(value: object, names: Names) -> object:
    """Replace the data of a ConfigMap: texts with names in them, and known documents."""
    if not is_map(value):
        return None
    document: Json = {}
    for key, item in value.items():
        if isinstance(item, str):
            known = next((record for mark, record in _DOCUMENTS.items() if mark == key or mark in item), None)
            document[label_key(key, names)] = names.message(item) if known is None else _document(item, known, names)
    return document


def _document(written: str, record: Record, names: Names) -> str:
    from kschedx.sources import yaml

    try:
        document = yaml.value_in(written)
    except InputError:
        return ""
    return msgspec.json.encode(record(document, names) or {}).decode()


# The scheduler's configuration. Its labels, resources, and schedulers' names are replaced like those of the cluster.
# Plugins and everything else that Kubernetes defines stay; what scheduling does not read is omitted, as are the args of
# plugins from other packages.

_LEFT_OUT = frozenset(
    {
        *("clientConnection", "leaderElection", "metricsBindAddress", "healthzBindAddress", "metadata"),
        *("tlsConfig", "enableProfiling", "enableContentionProfiling"),
    }
)

_IN_TREE = frozenset(plugin.name for plugin in PLUGINS)

_Change = Callable[[str, Names], str]


_BY_KEY: Mapping[str, _Change] = {
    "topologyKey": label_key,
    "key": label_key,
    "label": label_key,
    "schedulerName": lambda written, names: names.name(written),
    "urlPrefix": lambda _, __: "https://extender.invalid",
}
_IN_LIST: Mapping[str, _Change] = {
    "labels": label_key,
    "matchLabelKeys": label_key,
    "ignoredResources": resource,
    "ignoredResourceGroups": lambda written, names: names.name(written),
}
"""The change of each list, by its key."""
_OF_RESOURCES = ("resources", "managedResources")


def change_configuration(config: Mapping[str, object], names: Names) -> Json:
    names.begin("the configuration")
    return {key: _changed_configuration(key, value, names) for key, value in config.items() if key not in _LEFT_OUT}


def _changed_configuration(key: str, value: object, names: Names) -> object:
    if is_map(value):
        if key == "pluginConfig" and value.get("name") not in _IN_TREE:  # their args may hold anything
            return {field: item for field, item in value.items() if field != "args"}
        if "key" in value and "operator" in value:
            return _requirement(value, names)
        if key == "matchLabels":
            return {label_key(key, names): names.value(key, str(text)) for key, text in value.items()}
        return {key: _changed_configuration(key, item, names) for key, item in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        if key in _OF_RESOURCES:
            return [_named_resource(item, names) for item in value]
        of_text = _IN_LIST.get(key)
        return [
            of_text(item, names)
            if of_text is not None and isinstance(item, str)
            else _changed_configuration(key, item, names)
            for item in value
        ]
    change = _BY_KEY.get(key)
    return change(value, names) if change is not None and isinstance(value, str) else value


def _named_resource(value: object, names: Names) -> object:
    if not is_map(value) or not isinstance(value.get("name"), str):
        return value
    return {**value, "name": resource(str(value["name"]), names)}


def _requirement(value: Mapping[str, object], names: Names) -> Json:
    """Replace a requirement on labels, or on a node's name."""
    key, values = str(value["key"]), list_at(value, "values")
    if key == "metadata.name":
        return {**value, "values": [names.name(str(value)) for value in values]}
    if value["operator"] in ("Gt", "Lt"):
        names.note_compared(key)
    changed = {**value, "key": label_key(key, names)}
    if values:
        changed["values"] = [names.value(key, str(value)) for value in values]
    return changed

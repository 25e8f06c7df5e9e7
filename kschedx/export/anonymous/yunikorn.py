"""YuniKorn's queues, as its ConfigMap has them in YAML: their names, and what they may use at most."""

from __future__ import annotations

import msgspec

from kschedx.api.other_schedulers import QUEUES_FILE
from kschedx.export.anonymous import changes
from kschedx.export.anonymous.changes import Change, Names, Record, is_map

_MOST_LEVELS = 12


def _queues(levels: int) -> Change:
    below = {"queues": changes.list_of(_queues(levels - 1))} if levels else {}
    return Record({"name": changes.name(), "resources": Record({"max": changes.amounts}), **below})


_DOCUMENT = Record({"partitions": changes.list_of(Record({"queues": changes.list_of(_queues(_MOST_LEVELS))}))})


def config_map(value: object, names: Names) -> object:
    """The data of a ConfigMap: texts with names in them, but for the queues."""
    if not is_map(value):
        return None
    written = value.get(QUEUES_FILE)
    found = changes.texts({key: item for key, item in value.items() if key != QUEUES_FILE}, names)
    if not isinstance(written, str) or not is_map(found):
        return found
    return {**found, changes.label_key(QUEUES_FILE, names): _changed(written, names)}


def _changed(written: str, names: Names) -> str:
    import yaml

    try:
        document = yaml.safe_load(written)
    except (yaml.YAMLError, RecursionError):
        return ""
    return msgspec.json.encode(_DOCUMENT(document, names) if is_map(document) else {}).decode()

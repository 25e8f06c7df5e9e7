"""The flags of cluster-autoscaler's Deployment: keys in them are replaced as everywhere, what could be a name goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kschedx.api import autoscaler_command
from kschedx.export.anonymous.changes import Json, Names, is_map, label_key

_KEYS = frozenset({"balancing-label", "balancing-ignore-label", "startup-taint", "ignore-taint", "status-taint"})
"""Flags whose value is the key of a label or taint."""
_KEPT = frozenset({"bypassed-scheduler-names", "allowed-scheduler-names", "cloud-provider", "expander"})
"""Flags whose names stay, as a scheduler's does everywhere."""
_SOME_FILE = "scheduler.yaml"
"""Stands for the path of a file, which could name something."""
_AMOUNT = re.compile(r"[0-9.:+-]+(?:ns|us|ms|[smh0-9.])*|true|false")


def keep_flags(deployment: Mapping[str, object], changed: Json, names: Names) -> None:
    """Gives an anonymized Deployment that runs cluster-autoscaler its flags."""
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
        elif name == autoscaler_command.SCHEDULER_CONFIG:
            yield _SOME_FILE
        elif name in _KEPT or _AMOUNT.fullmatch(value):
            yield value

"""The choice among options. Upstream: expander/ (factory, waste, mostpods, leastnodes, priority)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.quantity import milli_value, value
from kschedx.kube.types import AUTOSCALER_PRIORITIES, ConfigMap, Node

if TYPE_CHECKING:
    from kschedx.cel.regex import Pattern

_KEY = "priorities"
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
"""Numbers with few enough digits to fit an int64."""


class Option(Struct, frozen=True, kw_only=True):
    """New nodes of a group, with their pods."""

    group: str
    nodes: int
    pods: tuple[int, ...]
    similar: tuple[str, ...] = ()
    milli_cpu: int = 0
    """Requests of the pods."""
    memory: int = 0


class ExpanderChoice(Struct, frozen=True, kw_only=True):
    """The options that the expanders keep, and their warnings."""

    options: tuple[Option, ...]
    events: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Expanders that kschedx does not support; they are skipped."""


Filter = Callable[[Sequence[Option]], tuple[Sequence[Option], Sequence[str]]]


def choose(
    options: Sequence[Option], names: Sequence[str], nodes: Mapping[str, Node], priorities: ConfigMap | None
) -> ExpanderChoice:
    """Apply the expanders one after the other until one option is left; `nodes` are the groups' templates."""
    filters: Mapping[str, Filter] = {
        "least-waste": lambda left: (_least_waste(left, nodes), ()),
        "most-pods": lambda left: (most_pods(left), ()),
        "least-nodes": lambda left: (_least_nodes(left), ()),
        "priority": lambda left: by_priority(left, priorities),
        "random": lambda left: (left, ()),
    }
    left: Sequence[Option] = options
    events: list[str] = []
    unknown: list[str] = []
    for name in names:
        if name not in filters:
            unknown.append(name)
            continue
        left, said = filters[name](left)
        events += said
        if len(left) == 1:
            break
    return ExpanderChoice(options=tuple(left), events=tuple(events), unknown=tuple(unknown))


def waste(option: Option, node: Node) -> tuple[float, float]:
    """Return the fractions of the new nodes' cpu and memory that no pod requests."""
    cpu = milli_value(node.status.capacity.get("cpu", 0)) * option.nodes
    memory = value(node.status.capacity.get("memory", 0)) * option.nodes
    return _share(cpu - option.milli_cpu, cpu), _share(memory - option.memory, memory)


def _share(part: int, whole: int) -> float:
    """Divide as Go divides doubles."""
    if whole:
        return float(part) / float(whole)
    return math.nan if part == 0 else math.copysign(math.inf, part)


def _least_waste(options: Sequence[Option], nodes: Mapping[str, Node]) -> list[Option]:
    least = 0.0
    best: list[Option] = []
    for option in options:
        score = sum(waste(option, nodes[option.group]))
        if score == least:
            best.append(option)
        if not best or score < least:
            least, best = score, [option]
    return best


def most_pods(options: Sequence[Option]) -> list[Option]:
    most = max((len(option.pods) for option in options), default=0)
    return [option for option in options if len(option.pods) == most]


def _least_nodes(options: Sequence[Option]) -> list[Option]:
    least = min((option.nodes for option in options if option.nodes), default=0)
    return [option for option in options if option.nodes == least]


def by_priority(options: Sequence[Option], config: ConfigMap | None) -> tuple[list[Option], list[str]]:
    """Return the options with the highest priority whose regular expression matches the group's name."""
    if config is None:
        return list(options), []
    priorities = _read_priorities(config)
    if isinstance(priorities, str):
        return list(options), [f"Warning PriorityConfigMapInvalid: {priorities}"]
    highest = -1
    best: list[Option] = []
    events: list[str] = []
    for option in options:
        mine = [number for number, patterns in priorities.items() if any(p.matches(option.group) for p in patterns)]
        if not mine:
            events.append(
                f"Warning PriorityConfigMapNotMatchedGroup: Priority expander: node group {option.group} not found in "
                "priority expander configuration. The group won't be used."
            )
            continue
        number = max(mine)
        if number > highest:
            highest, best = number, []
        if number == highest:
            best.append(option)
    if not best:
        events.append(
            "Warning PriorityConfigMapNoGroupMatched: Priority expander: no priorities info found for any of the "
            "expansion options. No options filtered."
        )
        return list(options), events
    return best, events


def _read_priorities(config: ConfigMap) -> dict[int, list[Pattern]] | str:
    """Return the regular expressions by priority, or the autoscaler's error for an invalid ConfigMap."""
    text = config.data.get(_KEY)
    if text is None:
        return f"Wrong configmap for priority expander, doesn't contain {_KEY} key. Ignoring update."
    wrong = "Wrong configuration for priority expander: {}. Ignoring update."
    if not text:
        name = AUTOSCALER_PRIORITIES.rpartition("/")[2]
        return wrong.format(f"priority configuration in {name} configmap is empty; please provide valid configuration")
    from kschedx.cel.regex import compiled
    from kschedx.cel.values import Fault
    from kschedx.sources import yaml as yaml_text

    try:
        document = yaml_text.value_in(text)
    except InputError as error:
        return wrong.format(f"Can't parse YAML with priorities in the configmap: {error.message}")
    unreadable = "Can't parse YAML with priorities in the configmap: not a map of numbers to lists of texts"
    if not isinstance(document, dict):
        return {} if document is None else wrong.format(unreadable)
    patterns_by_priority: dict[int, list[Pattern]] = {}
    for key, patterns in document.items():
        if not _NUMBER.fullmatch(key):
            return wrong.format(unreadable)
        if not isinstance(patterns, list):
            return wrong.format(unreadable)
        for pattern in patterns:
            if not isinstance(pattern, str):
                return wrong.format(unreadable)
            compiled_pattern = compiled(pattern)
            if isinstance(compiled_pattern, Fault):
                return wrong.format(
                    f"Can't compile regexp rule for priority {key} and rule {pattern}: {compiled_pattern.message}"
                )
            patterns_by_priority.setdefault(int(key), []).append(compiled_pattern)
    return patterns_by_priority

"""cluster-autoscaler's status ConfigMap: its groups with their sizes and states.

Upstream: clusterstate/api/types.go; before 1.30 the text of clusterstate/utils/status.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.decoding import map_at
from kschedx.patterns import lazy_pattern


class Health(StrEnum):
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = ""


class ScaleUp(StrEnum):
    """The scale-up state of a group."""

    NO_ACTIVITY = "NoActivity"
    IN_PROGRESS = "InProgress"
    BACKOFF = "Backoff"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = ""


_State = TypeVar("_State", Health, ScaleUp)

_INITIALIZING = "Initializing"


class NodeGroupStatus(Struct, frozen=True, kw_only=True):
    name: str
    target: int  # the size requested from the cloud
    min_size: int = 0
    max_size: int = 0
    health: Health = Health.UNKNOWN
    scale_up: ScaleUp = ScaleUp.UNKNOWN
    backoff_code: str = ""
    backoff_message: str = ""
    long_unregistered: int = 0


class AutoscalerStatus(Struct, frozen=True, kw_only=True):
    """The content of the ConfigMap."""

    groups: tuple[NodeGroupStatus, ...]  # in the cloud's order
    state: str = ""  # `Running` or `Initializing`
    health: Health = Health.UNKNOWN  # the health of the whole cluster
    unknown: tuple[str, ...] = ()  # unknown states of groups, as another version may write

    @property
    def is_initializing(self) -> bool:
        """Whether no loop has run yet. A cluster without groups has `Running`."""
        return self.state == _INITIALIZING and not self.groups

    def with_errors(self, errors: Mapping[str, str]) -> AutoscalerStatus:
        """Return it with the errors of groups in backoff, if it has none: versions before 1.30 do not write them."""
        groups = (
            replace(group, backoff_message=errors[group.name])
            if group.scale_up is ScaleUp.BACKOFF and not group.backoff_message and group.name in errors
            else group
            for group in self.groups
        )
        return replace(self, groups=tuple(groups))

    def with_sizes(self, sizes: Mapping[str, int]) -> AutoscalerStatus:
        """Return it after these groups have grown to other sizes, with all of their nodes ready."""
        groups = (
            replace(group, target=sizes[group.name], scale_up=ScaleUp.NO_ACTIVITY) if group.name in sizes else group
            for group in self.groups
        )
        return replace(self, groups=tuple(groups))

    def group(self, name: str) -> NodeGroupStatus | None:
        return next((group for group in self.groups if group.name == name), None)


_MOST_NODES = 100_000  # the maximum size of a group: twenty times Kubernetes' limit, and what a loop holds in memory


def read_status(text: str) -> AutoscalerStatus:
    """Parse either format. Raises `InputError` for any other text."""
    status = _read(text)
    for group in status.groups:
        if group.target > _MOST_NODES:
            message = f"node group {group.name} has a target of {group.target:,} nodes, more than {_MOST_NODES:,}"
            raise InputError(message, place=_PLACE)
    return status


def _read(text: str) -> AutoscalerStatus:
    if text.lstrip().startswith("Cluster-autoscaler status at"):
        return _read_text(text)
    from kschedx.sources import yaml as yaml_text

    try:
        document = yaml_text.value_in(text)
    except InputError as error:
        raise error.at(_PLACE) from None
    if not isinstance(document, dict) or ("nodeGroups" not in document and "autoscalerStatus" not in document):
        raise InputError("this is not a cluster-autoscaler status", place=_PLACE)
    groups = document.get("nodeGroups") or ()
    if not isinstance(groups, list | tuple):
        raise InputError("nodeGroups is not a list", place=_PLACE)
    return AutoscalerStatus(
        groups=tuple(_group(item, index) for index, item in enumerate(groups)),
        state=str(document.get("autoscalerStatus") or ""),
        health=_known(Health, _text(map_at(document, "clusterWide", "health"), "status")),
        unknown=_unknown(groups),
    )


def _unknown(groups: Iterable[object]) -> tuple[str, ...]:
    """Return unknown states in the order of the groups."""
    unknown: dict[str, None] = {}
    for entry in groups:
        for part, known in (("health", Health), ("scaleUp", ScaleUp)):
            word = _text(map_at(entry, part), "status") if isinstance(entry, dict) else ""
            if word not in set(known):
                unknown[word] = None
    return tuple(unknown)


_PLACE = Place(object="ConfigMap kube-system/cluster-autoscaler-status", field="data.status")


def _group(entry: object, index: int) -> NodeGroupStatus:
    if not isinstance(entry, dict) or not entry.get("name"):
        raise InputError(f"nodeGroups[{index}] has no name", place=_PLACE)
    health, scale_up = map_at(entry, "health"), map_at(entry, "scaleUp")
    counts = map_at(health, "nodeCounts")
    backoff = map_at(scale_up, "backoffInfo")
    return NodeGroupStatus(
        name=str(entry["name"]),
        target=_number(health, "cloudProviderTarget"),
        min_size=_number(health, "minSize"),
        max_size=_number(health, "maxSize"),
        health=_known(Health, _text(health, "status")),
        scale_up=_known(ScaleUp, _text(scale_up, "status")),
        backoff_code=_text(backoff, "errorCode"),
        backoff_message=_text(backoff, "errorMessage"),
        long_unregistered=_number(counts, "longUnregistered"),
    )


def _text(value: Mapping[str, object], key: str) -> str:
    entry = value.get(key)
    return "" if entry is None else str(entry)


def _number(value: Mapping[str, object], key: str) -> int:
    number = value.get(key, 0)
    if number is None:
        return 0
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"{key} is not a number: {number!r}", place=_PLACE)
    return number


def _known(states: type[_State], text: str) -> _State:
    return states(text) if text in set(states) else states("")


# --- before 1.30

_HEAD = lazy_pattern(r"Cluster-autoscaler status at .+?:\s*$", re.MULTILINE)
_NAME = lazy_pattern(r"^  Name:\s+(\S+)\s*$", re.MULTILINE)
_LINE = lazy_pattern(r"^\s+(Health|ScaleUp):\s+(\S+)(?: \((.*)\))?\s*$", re.MULTILINE)
_FACT = lazy_pattern(r"(\w+)=(-?[0-9]{1,18})")


def _read_text(text: str) -> AutoscalerStatus:
    """Parse `Name:`, `Health: Healthy (ready=2 ... cloudProviderTarget=2 (minSize=1, maxSize=8))`, `ScaleUp: ...`."""
    before, *parts = _NAME.split(text)
    if _HEAD.search(text) is None:
        raise InputError("the status has no time in its first line", place=_PLACE)
    groups = []
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = {label: (state, facts or "") for label, state, facts in _LINE.findall(body)}
        if "Health" not in lines:
            raise InputError(f"the group {name} has no Health line", place=_PLACE)
        state, facts = lines["Health"]
        numbers = {key: int(number) for key, number in _FACT.findall(facts)}
        groups.append(
            NodeGroupStatus(
                name=name,
                target=numbers.get("cloudProviderTarget", 0),
                min_size=numbers.get("minSize", 0),
                max_size=numbers.get("maxSize", 0),
                health=_known(Health, state),
                scale_up=_known(ScaleUp, lines.get("ScaleUp", ("", ""))[0]),
                long_unregistered=numbers.get("longUnregistered", 0),
            )
        )
    whole = {label: state for label, state, _ in _LINE.findall(before)}
    return AutoscalerStatus(
        groups=tuple(groups),
        state=_INITIALIZING if text.rstrip().endswith(f"\n{_INITIALIZING}") else "Running",
        health=_known(Health, whole.get("Health", "")),
    )

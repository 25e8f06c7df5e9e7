"""How two setups differ as configuration, point by point."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto

from msgspec import Struct

from kschedx.explain.setup import Setup
from kschedx.framework.args import PluginArgs
from kschedx.framework.config import Profile
from kschedx.framework.config.written import flat, written
from kschedx.releases import POINTS, Release

WEIGHED = frozenset({"score", "priorities"})
"""The points whose plugins have a weight; a Policy has priorities."""


class Unspelled(Enum):
    """What a configuration has no text for."""

    PROFILE = auto()
    """There is one."""
    BY_CLUSTER_SIZE = auto()
    """No percentageOfNodesToScore."""


class Change(Struct, frozen=True, kw_only=True):
    """One setting; a side that lacks it is empty."""

    profile: str
    """The schedulerName; empty for what concerns all of them."""
    place: str
    """An extension point, `args`, `release`, `gate`, `message`, `behaviour` or `scheduler`."""
    subject: str
    """The plugin, the gate, or the setting."""
    setting: str = ""
    """`weight`, `position`, the path of an argument; empty where the subject itself comes or goes."""
    before: str | Unspelled = ""
    after: str | Unspelled = ""


def changes(before: Setup, after: Setup) -> tuple[Change, ...]:
    """The release first, then what all profiles share, then profile by profile in the order of the framework."""
    return (
        *_release(before.release, after.release),
        *_shared(before, after),
        *(change for name in _names(before, after) for change in _profile(name, before, after)),
    )


def _release(before: Release, after: Release) -> Iterator[Change]:
    if before.version != after.version:
        yield Change(profile="", place="release", subject="Kubernetes", before=before.version, after=after.version)
    if not before.shares_facts_with(after):
        return
    for gate in sorted({*before.gates, *after.gates}):
        first, second = before.gates.get(gate), after.gates.get(gate)
        # a gate that one release does not know is either not there yet, or no longer a choice
        if first is not second and None not in (first, second):
            yield Change(profile="", place="gate", subject=gate, before=_text(first), after=_text(second))
    yield from _facts("message", before.messages, after.messages)
    yield from _facts("behaviour", before.behaviour, after.behaviour)


def _facts(place: str, before: Iterable[tuple[str, object]], after: Iterable[tuple[str, object]]) -> Iterator[Change]:
    """What the releases word or do differently, by the name of the fact."""
    others = dict(after)
    for name, fact in before:
        if fact != others[name]:
            subject = name.replace("_", " ")
            yield Change(profile="", place=place, subject=subject, before=_text(fact), after=_text(others[name]))


def _shared(before: Setup, after: Setup) -> Iterator[Change]:
    first = [extender.url_prefix for extender in before.scheduler.config.extenders]
    second = [extender.url_prefix for extender in after.scheduler.config.extenders]
    if before.scheduler.config.extenders != after.scheduler.config.extenders:
        yield Change(
            profile="", place="scheduler", subject="extenders", before=", ".join(first), after=", ".join(second)
        )


def _names(before: Setup, after: Setup) -> list[str]:
    """The schedulerNames to compare; a single profile on either side stands for those of the other."""
    first, second = ([profile.scheduler_name for profile in setup.profiles] for setup in (before, after))
    if len(first) == 1:
        return second
    return first if len(second) == 1 else list(dict.fromkeys((*first, *second)))


def _profile(name: str, before: Setup, after: Setup) -> Iterator[Change]:
    first, second = before.profile_compared(name), after.profile_compared(name)
    if first is None or second is None:
        yield Change(
            profile=name,
            place="scheduler",
            subject="profile",
            before=Unspelled.PROFILE if first else "",
            after=Unspelled.PROFILE if second else "",
        )
        return
    if first.percentage_of_nodes_to_score != second.percentage_of_nodes_to_score:
        yield Change(
            profile=name,
            place="scheduler",
            subject="percentageOfNodesToScore",
            before=_percentage(first),
            after=_percentage(second),
        )
    for point in dict.fromkeys((*POINTS, *first.enabled, *second.enabled)):
        yield from _point(name, point, first, second)
    for plugin in sorted({*first.args, *second.args}):
        yield from _args(name, plugin, first.args.get(plugin), second.args.get(plugin))


def _percentage(profile: Profile) -> str | Unspelled:
    share = profile.percentage_of_nodes_to_score
    return f"{share}%" if share else Unspelled.BY_CLUSTER_SIZE


def _point(name: str, point: str, before: Profile, after: Profile) -> Iterator[Change]:
    first, second = before.enabled.get(point, ()), after.enabled.get(point, ())
    for plugin in dict.fromkeys((*first, *second)):
        sides = [_entry(point, plugin, profile) for profile in (before, after)]
        if "" in sides:
            yield Change(profile=name, place=point, subject=plugin, before=sides[0], after=sides[1])
        elif sides[0] != sides[1]:
            yield Change(
                profile=name,
                place=point,
                subject=plugin,
                setting="weight",
                before=str(before.weights[plugin]),
                after=str(after.weights[plugin]),
            )
    if point not in WEIGHED:  # a sum has no order
        yield from _order(name, point, first, second)


def _entry(point: str, plugin: str, profile: Profile) -> str:
    if plugin not in profile.enabled.get(point, ()):
        return ""
    return f"weight {profile.weights[plugin]}" if point in WEIGHED else "enabled"


def _order(name: str, point: str, first: Sequence[str], second: Sequence[str]) -> Iterator[Change]:
    """The plugins that left their place among those that both sides have."""
    old, new = [one for one in first if one in second], [one for one in second if one in first]
    kept = {
        old[start + offset]
        for start, _, size in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_matching_blocks()
        for offset in range(size)
    }
    for plugin in old:
        if plugin not in kept:
            yield Change(
                profile=name,
                place=point,
                subject=plugin,
                setting="position",
                before=_position(first, plugin),
                after=_position(second, plugin),
            )


def _position(plugins: Sequence[str], plugin: str) -> str:
    return f"{plugins.index(plugin) + 1} of {len(plugins)}"


def _args(name: str, plugin: str, before: PluginArgs | None, after: PluginArgs | None) -> Iterator[Change]:
    if before is None or after is None:
        return  # of a plugin that one side does not have, which its points say
    first, second = (dict(flat(written(args))) for args in (before, after))
    for path in dict.fromkeys((*first, *second)):
        if first.get(path) != second.get(path):
            yield Change(
                profile=name,
                place="args",
                subject=plugin,
                setting=path,
                before=_text(first.get(path)),
                after=_text(second.get(path)),
            )


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list() | tuple():
            return ", ".join(map(_text, value))
        case _:
            return str(value)

"""The cause behind a rejection, and advice against it that no trial can show."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kschedx.kube.documents import Change


class FixGroup(StrEnum):
    """The area of responsibility to which a fix belongs."""

    CAPACITY = "capacity"
    WORKLOAD = "workload"
    CLUSTER = "cluster"


class Advice(Struct, frozen=True, kw_only=True):
    """An untried fix for an operator."""

    title: str
    node: str = ""  # a node that the fix repairs and that, if it is cordoned, has to be uncordoned as well
    why: str = ""  # what follows the title and the uncordoning
    changes: tuple[Change, ...] = ()
    commands: tuple[str, ...] = ()
    group: FixGroup | None = None  # None for the group of the changed objects
    by_default: FixGroup = FixGroup.WORKLOAD  # the group if no object is changed
    is_second_to_nodes: bool = False  # whether it comes after a new node


class RootCause(Struct, frozen=True, kw_only=True):
    text: str
    advice: tuple[Advice, ...] = ()
    leaves_no_node: bool = False  # whether no node helps, neither another one nor a new one


def root_cause(
    text: str,
    title: str = "",
    *commands: str,
    group: FixGroup | None = None,
    by_default: FixGroup = FixGroup.WORKLOAD,
    leaves_no_node: bool = False,
) -> RootCause:
    """Return a cause with the title and the commands of one piece of advice; without a title, there is none."""
    advice = (Advice(title=title, commands=commands, group=group, by_default=by_default),) if title else ()
    return RootCause(text=text, advice=advice, leaves_no_node=leaves_no_node)

"""The view model: the content of an answer, in order, as plain data.

Terminal, HTML, Markdown, SVG, notebook, and MCP render it, so all of them can show the same content. Text is not
escaped here; each renderer makes it harmless before it prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.grouping import group_pairs
from kschedx.wording import Fact

if TYPE_CHECKING:
    from kschedx.inquiry.node_usage import NodeUse


class Tone(StrEnum):
    """The mark and color of a headline."""

    GOOD = "good"
    BAD = "bad"
    HELD = "held"
    OPEN = "open"
    PLAIN = "plain"

    @property
    def mark(self) -> str:
        """The mark before the headline, with a space."""
        return _MARKS[self]


_MARKS = {Tone.GOOD: "✓ ", Tone.BAD: "✗ ", Tone.HELD: "‖ ", Tone.OPEN: "? ", Tone.PLAIN: ""}


class FixView(Struct, frozen=True, kw_only=True):
    """A change that was tried."""

    title: str
    seen: str = ""  # the result of trying it: `fits node-1 and 2 more`, `adds 1 node to workers`
    commands: tuple[str, ...] = ()  # kubectl commands that apply the whole fix
    changes: tuple[Mapping[str, object], ...] = ()  # patches and manifests to copy if there are no commands
    group: str = ""  # `capacity`; empty if all fixes have the same one

    @property
    def text(self) -> str:
        return " · ".join(filter(None, (self.title, self.seen)))

    @property
    def brief(self) -> FixView:
        """The fix without what a reader copies."""
        return FixView(title=self.title, seen=self.seen, group=self.group)


class DeciderRow(Struct, frozen=True, kw_only=True):
    """Node groups or NodePools that one reason excludes."""

    text: str
    facts: tuple[Fact, ...] = ()
    is_brief: bool = True  # whether details are omitted unless everything is shown or the row comes first
    is_cause: bool = False  # whether the reason is a cause of the answer, which the first screen does not repeat

    @property
    def names(self) -> str:
        return re.split(" [✗?] ", self.text, maxsplit=1)[0]


class Decider(Struct, frozen=True, kw_only=True):
    """The decision of cluster-autoscaler or Karpenter about the pod."""

    name: str
    sentence: str
    rows: tuple[DeciderRow, ...] = ()
    event: str = ""
    recorded: str = ""  # the event that it recorded in the cluster, or that it is the same
    reports: tuple[str, ...] = ()  # the autoscaler's own reports, if kschedx cannot determine what it does
    fixes: tuple[FixView, ...] = ()
    basis: tuple[str, ...] = ()


class ViewItem(Struct, frozen=True, kw_only=True):
    """One row of an answer about several things: a cause, a workload, a node, or a gap of a dump."""

    title: str
    tone: Tone = Tone.PLAIN
    kind: str = ""  # the group in which rows are counted and shown: `pending`, `blocked`
    values: tuple[str | int, ...] = ()
    facts: tuple[Fact, ...] = ()
    own: tuple[Fact, ...] = ()  # facts in which identical rows may differ
    event: str = ""
    fixes: tuple[FixView, ...] = ()
    no_fix: str = ""
    members: tuple[str, ...] = ()  # identical pods or nodes that this row stands for

    @property
    def group_key(self) -> tuple[object, ...]:
        """Equal for rows that differ only in title, numbers, and members."""
        texts = (value for value in self.values if isinstance(value, str))
        fixes = ((fix.text, fix.commands) for fix in self.fixes)
        return self.tone, self.kind, *texts, self.facts, self.event, *fixes, self.no_fix


def identical(items: Sequence[ViewItem]) -> list[list[ViewItem]]:
    """Return the groups of rows that differ only in title, numbers, and members, in the order of their first rows."""
    return list(group_pairs((item.group_key, item) for item in items).values())


def shared_value(values: Sequence[str | int]) -> str | int:
    """Return the value that rows share, or a range of numbers."""
    numbers = sorted({value for value in values if isinstance(value, int)})
    return f"{numbers[0]:,} to {numbers[-1]:,}" if len(numbers) > 1 else values[0]


class ItemList(Struct, frozen=True, kw_only=True):
    """Rows of one kind."""

    title: str = ""
    noun: str = "row"
    columns: tuple[tuple[str, bool], ...] = ()  # the label of each of an item's values, and whether it is a number
    items: tuple[ViewItem, ...]
    identical_rows: bool = False
    """Whether rows that differ only in title, numbers, and members are one row until each is wanted."""


class TableView(Struct, frozen=True, kw_only=True):
    """Short texts in columns."""

    title: str
    columns: tuple[tuple[str, bool], ...]  # the label of each column, and whether it is a number
    rows: tuple[tuple[str | int, ...], ...]


class UsageRow(Struct, frozen=True, kw_only=True):
    """The resources of a node, or of all nodes; a node that does not exist has none."""

    name: str
    before: NodeUse | None
    after: NodeUse | None

    @property
    def is_changed(self) -> bool:
        return self.before is None or self.after is None or self.before.requested != self.after.requested


class UsageView(Struct, frozen=True, kw_only=True):
    """The utilization of nodes before and after."""

    resources: tuple[str, ...]
    nodes: tuple[UsageRow, ...]
    total: UsageRow


class Timeline(Struct, frozen=True, kw_only=True, tag="timeline", tag_field="kind"):
    """The queue, decision by decision."""

    pending: tuple[int, ...]  # (decision,) the number of pods that are still pending after it
    placed: tuple[int, ...]
    evicted: tuple[int, ...]
    pods: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    """What a decision says before and after the pod's name. Thousands of decisions share a text."""
    pod_of: tuple[int, ...]
    text_of: tuple[int, ...]  # (decision,) indices into `pods` and `texts`

    @property
    def decisions(self) -> Iterator[str]:
        """What each decision says."""
        for pod, text in zip(self.pod_of, self.text_of, strict=True):
            before, after = self.texts[text]
            yield f"{before}{self.pods[pod]}{after}"


class View(Struct, frozen=True, kw_only=True):
    """An answer: headline, causes, fixes, facts, and event, then the autoscalers' decisions, the rows, and tables."""

    command: str  # `kschedx why`
    subject: str = ""
    headline: str
    tone: Tone
    details: tuple[str, ...] = ()  # sentences below the headline
    because: tuple[str, ...] = ()  # causes, most common first
    roots: tuple[str, ...] = ()  # root causes, one sentence each
    facts: tuple[Fact, ...] = ()
    fixes: tuple[FixView, ...] = ()
    no_fix: str = ""
    event: str = ""  # kube-scheduler's exact text
    deciders: tuple[Decider, ...] = ()
    lists: tuple[ItemList, ...] = ()
    tables: tuple[TableView, ...] = ()
    usage: UsageView | None = None
    timeline: Timeline | None = None
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[ViewItem, ...]:
        return tuple(item for rows in self.lists for item in rows.items)

"""What a predicate is, and how the answers of several are put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from kschedx.api.types import Pod
from kschedx.findings import Finding
from kschedx.framework.interface import FilterPlugin, Handle, PreFilterPlugin
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.era import Era
from kschedx.snapshot.columns import Column
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import TableRow, TableRows, each_row


class Context(Handle, Protocol):
    """What predicates and priorities may ask of the scheduler."""

    @property
    def era(self) -> Era: ...

    @property
    def hard_pod_affinity_weight(self) -> int:
        """What a required affinity of a pod that runs is worth to a pod that it matches."""
        ...

    @property
    def ignored_resources(self) -> frozenset[str]:
        """Extended resources that an extender accounts for."""
        ...


class Told:
    """What a predicate is told before and between its checks; most need none of it."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        """Called once per cycle with all nodes of the cluster (upstream's predicate metadata)."""

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """`change` has been added to `nodes`, each pod seen by its own node alone: write to `state` what follows."""

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """The reverse of `add_pods`."""


class Predicate(Told, ABC):
    """A rule about nodes. `argument` is what a Policy gives to a predicate of its own; most have none."""

    def __init__(self, context: Context, argument: object = None) -> None:
        self.context = context
        self.argument = argument

    @abstractmethod
    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """A status for each row of `nodes`."""


class PluginPredicate(Predicate):
    """A predicate whose rule a Filter plugin still has, with a reason of its own."""

    plugin_class: ClassVar[type[FilterPlugin]]
    text: ClassVar[str]
    """The field of `Texts` with the reason."""
    resolvable: ClassVar[bool] = False

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        self._plugin = self.plugin_class(None, context)
        self._state: StateKey[CycleState | None] = StateKey(type(self).__name__)
        """What the plugin remembers, for this predicate alone; None where it has nothing to check."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        own = CycleState()
        skipped = isinstance(self._plugin, PreFilterPlugin) and self._plugin.pre_filter(own, pod, nodes).status.is_skip
        state[self._state] = None if skipped else own

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = state[self._state]
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            state[self._state] = own = own.clone()
            self._plugin.add_pods(own, pod, nodes, change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = state[self._state]
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            state[self._state] = own = own.clone()
            self._plugin.remove_pods(own, pod, nodes, change)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        own = state[self._state]
        if own is None:
            return Verdicts.success(len(nodes))
        found = self._plugin.filter(own, pod, nodes)
        reason: str = getattr(self.context.era.texts, self.text)
        code = Code.UNSCHEDULABLE if self.resolvable else self.context.era.unresolvable
        return Verdicts.first_of((found.rejected, code, reason), explain=found.explain)


def joined(parts: Sequence[Verdicts]) -> Verdicts:
    """All reasons of several checks in their order. One that cannot be lifted makes the whole so, and the first error
    hides everything else."""
    codes = np.column_stack([part.codes for part in parts])
    failed = codes == Code.ERROR
    told = np.column_stack([codes, *(part.reasons.codes for part in parts)])
    group = np.unique(told, axis=0, return_inverse=True)[1]
    examples = np.unique(group.ravel(), return_index=True)[1]

    def reasons(row: TableRow) -> tuple[str, ...]:
        if failed[row].any():
            return parts[int(failed[row].argmax())].reasons[row]
        return tuple(reason for part in parts for reason in part.reasons[row])

    def explain(row: TableRow) -> tuple[Finding, ...]:
        if failed[row].any():
            return parts[int(failed[row].argmax())].explain(row)
        return tuple(finding for part in parts if part.codes[row] for finding in part.explain(row))

    return Verdicts(
        codes=np.where(failed.any(axis=1), Code.ERROR, codes.max(axis=1)).astype(np.int64),
        reasons=Column(group.ravel().astype(np.int64), [reasons(row) for row in each_row(TableRows(examples))]),
        explain=explain,
    )

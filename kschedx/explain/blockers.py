"""What keeps the pod off a node.

Two truths are kept: the *verdict* is the first plugin that rejects a node, which is all that kube-scheduler says; the
*blockers* are all plugins that reject it, which is all that has to change.
"""

from __future__ import annotations

from msgspec import Struct

from kschedx.findings import Finding, UntoleratedTaint
from kschedx.framework.cycle import Cycle
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.status import Code, Status
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow


class Blocker(Struct, frozen=True, kw_only=True):
    """One plugin that rejects a node."""

    plugin: str
    code: Code
    findings: tuple[Finding, ...]
    is_verdict: bool
    """kube-scheduler stops here; it never comes to the plugins after it."""
    with_nominated: bool = False
    """Only because pods that are nominated for the node count as if they ran there."""


class NodeAccount(Struct, frozen=True, kw_only=True):
    """Everything that rejects one node. `row` is the node's in the nodes that PreFilter left in (`cycle.nodes`)."""

    row: TableRow
    name: str
    blockers: tuple[Blocker, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for blocker in self.blockers for finding in blocker.findings)

    @property
    def is_resolvable(self) -> bool:
        """No verdict or further blocker says that evicting pods is of no use."""
        return all(blocker.code is Code.UNSCHEDULABLE for blocker in self.blockers)


def account(cycle: Cycle, row: TableRow) -> NodeAccount:
    """All blockers of a node in the order of the plugins; none where the pod fits. The cycle came to Filter."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    return account_of(cycle.nodes, cycle.filter, row)


def account_of(nodes: NodeTable, outcome: FilterOutcome, row: TableRow) -> NodeAccount:
    """The same of what Filter said, `row` being one of `nodes`."""
    nominated = outcome.with_nominated.get(row)
    blockers = [
        _blocker(verdicts.status(row, plugin), is_verdict=nominated is None and index == int(outcome.plugin[row]))
        for index, (plugin, verdicts) in enumerate(zip(outcome.plugins, outcome.verdicts, strict=True))
        if verdicts.codes[row] != Code.SUCCESS
    ]
    if nominated is not None:
        blockers = [one for one in blockers if one.plugin != nominated.plugin]
        blockers.insert(0, _blocker(nominated, is_verdict=True, with_nominated=True))
    return NodeAccount(row=row, name=nodes.name(row), blockers=tuple(blockers))


def _blocker(status: Status, *, is_verdict: bool, with_nominated: bool = False) -> Blocker:
    return Blocker(
        plugin=status.plugin,
        code=status.code,
        findings=status.findings,
        is_verdict=is_verdict,
        with_nominated=with_nominated,
    )


def only_repeats_cordon(finding: Finding) -> bool:
    """The taint that comes with a cordon; NodeUnschedulable says the same."""
    return isinstance(finding, UntoleratedTaint) and finding.comes_with_cordon

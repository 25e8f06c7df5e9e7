"""A question about an object that creates no pods, and its answer; what the drain of a node waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.controllers import states
from kschedx.controllers.pod_lifecycle import add_on_down, is_node_lost
from kschedx.controllers.workloads import stays_with_node
from kschedx.explain.advice import FixGroup
from kschedx.explain.setup import Setup, Subject
from kschedx.fixes.phrases import budgets_by_drain
from kschedx.inquiry.autoscalers import AutoscalingOptions, autoscalers_of
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.node import NodeAnswer
from kschedx.kube.kinds import name_of
from kschedx.kube.kubectl import delete_pod
from kschedx.simulate.object_changes import NamedObject
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

if TYPE_CHECKING:
    from kschedx.karpenter.cluster import Karpenter

_MOST = 3


class ObjectAnswer(Struct, frozen=True, kw_only=True):
    """The state of an object, and the fixes for it, which are tried only if they are shown."""

    state: states.Lifecycle
    fixes: Callable[[], Iterable[Fix]] = tuple


class ObjectQuestion(Struct, frozen=True, kw_only=True, dict=True):
    """A question about one object of a cluster."""

    subject: Subject
    setup: Setup
    reference: NamedObject
    autoscaling: AutoscalingOptions | None = None

    @property
    def snapshot(self) -> Snapshot:
        return self.subject.snapshot

    @cached_property
    def object(self) -> Struct | None:
        """The object as it was read; None if it does not exist."""
        record, named = self.reference.kind.record, (self.reference.namespace, self.reference.name)
        every = () if record is None else self.snapshot.of(record)
        return next((it for it in every if name_of(it) == named), None)

    @cached_property
    def karpenter(self) -> Karpenter | None:
        """Karpenter with the cluster's NodePools; None if they cannot be read."""
        scheduler = self.setup.scheduler_on(self.snapshot)
        autoscalers = autoscalers_of(self.snapshot, self.autoscaling, scheduler)[0]
        return next((each for each in autoscalers if each.name == "Karpenter"), None)

    @cached_property
    def karpenter_down(self) -> states.ComponentDown | None:
        return add_on_down(self.snapshot, str(self.reference), "Karpenter")


def drain_facts(node: NodeAnswer) -> Iterator[str]:
    """Yield how many pods of a node that is drained are left, and the PodDisruptionBudgets that keep them."""
    pods = node.snapshot.pods
    left = sum(not stays_with_node(pods, int(row)) for row in pods.on_node(node.row))
    yield f"{node.name} is drained, and has {count(left, 'pod')} left"
    for name, status in [*node.blocking_budgets.items()][:_MOST]:
        yield f"PDB {name} allows no eviction: it {status.text}"
    if stuck := _unconfirmed(node):
        names, verb = list_names(stuck, _MOST, conjunction="and"), "is" if len(stuck) == 1 else "are"
        yield f"{names} {verb} being deleted, and no kubelet answers for {node.name}"


def _unconfirmed(node: NodeAnswer) -> list[str]:
    """Return the pods, `namespace/name`, that are being deleted on a node whose kubelet does not answer."""
    pods, is_lost = node.snapshot.pods, is_node_lost(node.snapshot, node.name)
    rows = pods.on_node(node.row).tolist() if is_lost else ()
    return [pods.key(row) for row in rows if pods.deletion_timestamps[row]]


def drain_fixes(node: NodeAnswer) -> Iterator[Fix]:
    if node.blocking_budgets:
        yield Fix.of_advice(budgets_by_drain(node.name, [*node.blocking_budgets]))
    if stuck := _unconfirmed(node):
        names = list_names(stuck, _MOST, conjunction="and")
        title = f"force the deletion of {names} if node {node.name} is gone for good"
        commands = tuple(delete_pod(pod, force=True) for pod in stuck[:_MOST])
        yield Fix.untried(title, *commands, of_group=FixGroup.CLUSTER)

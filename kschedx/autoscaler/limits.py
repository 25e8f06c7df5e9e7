"""The limits on the whole cluster, and the groups that are left out before any pod is looked at.

Upstream: resourcequotas/ since 1.35, core/scaleup/resource/manager.go before, filterValidScaleUpNodeGroups in
core/scaleup/orchestrator/orchestrator.go, processors/customresources/gpu_processor.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kschedx.api.quantity import value
from kschedx.api.types import Node
from kschedx.autoscaler.clouds import gpu_label
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.groups import Group, gpus_of
from kschedx.autoscaler.templates import CloudTemplate, Template
from kschedx.releases.autoscaler import AutoscalerBehaviour

NOT_READY = "not ready for scale-up"
BACKED_OFF = "in backoff after failed scale-up"
AT_MAXIMUM = "max node group size reached"

CPU, MEMORY = "cpu", "memory"

Amounts = Mapping[str, int]
"""Cores, bytes of memory, and GPUs by the value of the label that announces them."""


class LoopError(Exception):
    """The autoscaler's own error, which ends the scale-up."""


class Machines(Struct, frozen=True, kw_only=True):
    """What nodes count for in the limits: their capacity, in whole cores and bytes, and their GPUs."""

    cloud_provider: str
    cloud: Mapping[str, CloudTemplate]
    gpu_resources: tuple[str, ...]
    counts_gpus: bool = True
    """Whether GPUs are looked at; with quotas they always are, before only where a limit is about them."""

    def of(self, node: Node, group: str | None) -> dict[str, int]:
        """Raises `LoopError` where the GPUs that a label announces cannot be told."""
        amounts = {name: _capacity(node, name) for name in (CPU, MEMORY)}
        kind, count = self.gpus(node, group)
        if kind and count > 0:
            amounts[kind] = count
        return amounts

    def gpus(self, node: Node, group: str | None) -> tuple[str, int]:
        """The type and the number; a node that does not offer them yet has those of the cloud's template."""
        label = gpu_label(self.cloud_provider)
        if not self.counts_gpus or label is None or label not in node.metadata.labels:
            return "", 0
        kind = node.metadata.labels[label]
        offered = gpus_of(node, self.gpu_resources)
        if offered is not None:
            return kind, offered
        if group is None:
            raise LoopError("node without with gpu label, without capacity not belonging to autoscaled node group")
        if group not in self.cloud:
            raise LoopError("Not implemented")
        capacity = self.cloud[group].node.status.capacity
        return next(((kind, value(capacity[name])) for name in self.gpu_resources if name in capacity), ("", 0))


def _capacity(node: Node, resource: str) -> int:
    written = node.status.capacity.get(resource)
    return max(value(written), 0) if written is not None else 0


def is_virtual(node: Node) -> bool:
    """Nodes of virtual kubelets are not counted."""
    return node.metadata.labels.get("type") == "virtual-kubelet"


class Limits:
    """What is left of the limits, and what one more node of each group takes."""

    def __init__(
        self,
        left: Mapping[str, int],
        machines: Machines,
        known: dict[str, dict[str, int]],
        behaviour: AutoscalerBehaviour,
    ) -> None:
        self.left = dict(left)
        self._machines = machines
        self._known = known
        self._behaviour = behaviour

    @classmethod
    def of_snapshot(
        cls, nodes: Sequence[tuple[Node, str | None]], flags: Flags, machines: Machines, behaviour: AutoscalerBehaviour
    ) -> Limits:
        """Limits less what the nodes of the snapshot are; all nodes of a group count like the first of them."""
        known: dict[str, dict[str, int]] = {}
        used: dict[str, int] = {}
        for node, group in nodes:
            if is_virtual(node):
                continue
            try:
                amounts = known[group] if group in known else machines.of(node, group)
            except LoopError as error:
                raise LoopError(f"could not create quotas tracker: failed to get custom resources: {error}") from None
            if group is not None:
                known[group] = amounts
            for name, amount in amounts.items():
                used[name] = used.get(name, 0) + amount
        left = {limit.resource: max(limit.maximum - used.get(limit.resource, 0), 0) for limit in flags.limits}
        return cls(left, machines, known, behaviour)

    @classmethod
    def of_targets(
        cls,
        groups: Sequence[Group],
        templates: Mapping[str, Template],
        outside: Sequence[Node],
        flags: Flags,
        machines: Machines,
        behaviour: AutoscalerBehaviour,
    ) -> Limits:
        """Limits less the target sizes of the groups times their templates and the nodes outside of them.

        Raises `LoopError` for a group without template.
        """
        used: dict[str, int] = {}
        counted: list[tuple[Node, str | None, int]] = []
        for group in groups:
            if group.name in templates:
                counted.append((templates[group.name].node, group.name, group.status.target))
            elif any(limit.maximum > 0 for limit in flags.limits if limit.resource in (CPU, MEMORY)):
                raise LoopError(f"could not compute total resources: No node info for: {group.name}")
        counted += [(node, None, 1) for node in outside if not is_virtual(node)]
        unknown_gpus = False
        for node, name, count in counted:
            if count <= 0:
                continue
            amounts = {resource: _capacity(node, resource) for resource in (CPU, MEMORY)}
            try:
                kind, gpus = machines.gpus(node, name)
            except LoopError:
                unknown_gpus = True
            else:
                amounts[kind] = gpus
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, 0) + amount * count
        left = {
            limit.resource: max(limit.maximum - used.get(limit.resource, 0), 0)
            for limit in flags.limits
            if limit.maximum > 0
        }
        if unknown_gpus:
            left.update({name: 0 for name in left if name not in (CPU, MEMORY)})
        return cls(left, machines, {}, behaviour)

    def copy(self) -> Limits:
        return Limits(self.left, self._machines, self._known, self._behaviour)

    def machine(self, template: Template) -> dict[str, int]:
        """What one more node of the template's group counts for."""
        if template.group in self._known:
            return self._known[template.group]
        amounts = self._machines.of(template.node, template.group)
        if self._behaviour.limits_are_quotas:
            self._known[template.group] = amounts
        return amounts

    def exceeded(self, template: Template, count: int = 1) -> tuple[str, ...]:
        """The resources of which more nodes need more than is left. Raises `LoopError`."""
        return tuple(
            sorted(
                name
                for name, amount in self.machine(template).items()
                if amount > 0 and name in self.left and self.left[name] < amount * count
            )
        )

    def allowed(self, template: Template, count: int) -> int:
        """How many of so many new nodes the limits allow."""
        for name, amount in self.machine(template).items():
            if amount > 0 and name in self.left and self.left[name] < amount * count:
                count = min(count, self.left[name] // amount)
        return count

    def take(self, template: Template, count: int) -> None:
        for name, amount in self.machine(template).items():
            if name in self.left:
                self.left[name] = max(self.left[name] - amount * count, 0)


def skip_reasons(
    group: Group, template: Template | None, limits: Limits, behaviour: AutoscalerBehaviour
) -> tuple[str, ...]:
    """Why a group is left out, or nothing."""
    if not group.is_healthy:
        return (NOT_READY,)
    if group.is_backed_off and template is not None:
        return (BACKED_OFF,)
    if group.status.target >= group.status.max_size:
        return (AT_MAXIMUM,)
    if template is None:
        return (NOT_READY,)
    try:
        exceeded = limits.exceeded(template)
    except LoopError:
        return (NOT_READY,)
    return (behaviour.limit_text.format(resources=", ".join(exceeded)),) if exceeded else ()

"""The limits of the whole cluster, and the groups that are skipped before any pod is evaluated.

Upstream: resourcequotas/ since 1.35, core/scaleup/resource/manager.go before, filterValidScaleUpNodeGroups in
core/scaleup/orchestrator/orchestrator.go, processors/customresources/gpu_processor.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import AutoscalerGroup, gpu_label, gpus_of
from kschedx.autoscaler.templates import CloudTemplate, Template
from kschedx.errors import InputError
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.quantity import ResourceList, milli_value, parse_quantity, value
from kschedx.kube.resources import RequestOptions, pod_request
from kschedx.kube.types import AUTOSCALER_PRIORITIES, ConfigMap, Node
from kschedx.patterns import lazy_pattern
from kschedx.releases.autoscaler import AutoscalerBehavior
from kschedx.snapshot.events import BACKED_OFF

if TYPE_CHECKING:
    from kschedx.cel.regex import Pattern

NOT_READY = "not ready for scale-up"
AT_MAXIMUM = "max node group size reached"

_CPU, _MEMORY = "cpu", "memory"
_IGNORED_LABELS = frozenset({
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
})  # fmt: skip
"""Labels to ignore in every cloud."""
_IGNORED_LABELS_OF: Mapping[str, frozenset[str]] = {
    "aws": frozenset({
        "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id",
    }),
    "azure": frozenset({
        "agentpool", "kubernetes.azure.com/agentpool", "topology.disk.csi.azure.com/zone", "aksEngineVersion",
        "creationSource", "poolName", "resourceNameSuffix", "kubernetes.azure.com/node-image-version",
        "kubernetes.azure.com/consolidated-additional-properties",
    }),
    "gce": frozenset({"topology.gke.io/zone"}),
}  # fmt: skip
_SAME_POOL_LABELS: Mapping[str, tuple[str, ...]] = {"azure": ("kubernetes.azure.com/agentpool", "agentpool")}
"""Nodes with the same value of one of these are similar, whatever else differs."""


class LoopError(Exception):
    """The autoscaler's error that ends the scale-up."""


class Machines(Struct, frozen=True, kw_only=True):
    """How nodes count for the limits: their capacity in whole cores and bytes, and their GPUs."""

    cloud_provider: str
    cloud: Mapping[str, CloudTemplate]
    gpu_resources: tuple[str, ...]
    counts_gpus: bool = True  # whether GPUs are counted: always with quotas, before only if a limit names them

    def of(self, node: Node, group: str | None) -> dict[str, int]:
        """Raises `LoopError` if a node has the GPU label but its GPUs are unknown."""
        amounts = {name: _capacity(node, name) for name in (_CPU, _MEMORY)}
        kind, count = self.gpus(node, group)
        if kind and count > 0:
            amounts[kind] = count
        return amounts

    def gpus(self, node: Node, group: str | None) -> tuple[str, int]:
        """Return type and number; a node that does not offer GPUs yet has those of the cloud's template."""
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


def _is_virtual(node: Node) -> bool:
    """Return whether it is a virtual kubelet's node, which is not counted."""
    return node.metadata.labels.get("type") == "virtual-kubelet"


class Limits(Struct, kw_only=True):
    """The remainder of the limits, and how one more node of each group counts."""

    left: dict[str, int]
    machines: Machines
    known: dict[str, dict[str, int]]
    behavior: AutoscalerBehavior

    @classmethod
    def of_snapshot(
        cls, nodes: Sequence[tuple[Node, str | None]], flags: Flags, machines: Machines, behavior: AutoscalerBehavior
    ) -> Limits:
        """Limits minus the nodes of the snapshot; all nodes of a group count like its first one."""
        known: dict[str, dict[str, int]] = {}
        used: dict[str, int] = {}
        for node, group in nodes:
            if _is_virtual(node):
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
        return cls(left=left, machines=machines, known=known, behavior=behavior)

    @classmethod
    def of_targets(
        cls,
        groups: Sequence[AutoscalerGroup],
        templates: Mapping[str, Template],
        outside: Sequence[Node],
        flags: Flags,
        machines: Machines,
        behavior: AutoscalerBehavior,
    ) -> Limits:
        """Limits minus the groups' target sizes times their templates and minus nodes without a group. Raises
        `LoopError` for a group without a template."""
        used: dict[str, int] = {}
        counted: list[tuple[Node, str | None, int]] = []
        for group in groups:
            if group.name in templates:
                counted.append((templates[group.name].node, group.name, group.status.target))
            elif any(limit.maximum > 0 for limit in flags.limits if limit.resource in (_CPU, _MEMORY)):
                raise LoopError(f"could not compute total resources: No node info for: {group.name}")
        counted += [(node, None, 1) for node in outside if not _is_virtual(node)]
        unknown_gpus = False
        for node, name, count in counted:
            if count <= 0:
                continue
            amounts = {resource: _capacity(node, resource) for resource in (_CPU, _MEMORY)}
            try:
                kind, gpus = machines.gpus(node, name)
            except LoopError:
                unknown_gpus = True
            else:
                amounts[kind] = gpus
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, 0) + amount * count
        left = {it.resource: max(it.maximum - used.get(it.resource, 0), 0) for it in flags.limits if it.maximum > 0}
        if unknown_gpus:
            left.update({name: 0 for name in left if name not in (_CPU, _MEMORY)})
        return cls(left=left, machines=machines, known={}, behavior=behavior)

    def copy(self) -> Limits:
        return replace(self, left=dict(self.left))

    def machine(self, template: Template) -> dict[str, int]:
        """Return how one more node of the template's group counts."""
        if template.group in self.known:
            return self.known[template.group]
        amounts = self.machines.of(template.node, template.group)
        if self.behavior.limits_are_quotas:
            self.known[template.group] = amounts
        return amounts

    def exceeded_resources(self, template: Template) -> tuple[str, ...]:
        """Return the resources of which a new node needs more than remains. Raises `LoopError`."""
        return tuple(
            sorted(
                name
                for name, amount in self.machine(template).items()
                if amount > 0 and name in self.left and self.left[name] < amount
            )
        )

    def allowed_count(self, template: Template, count: int) -> int:
        """Return how many of `count` new nodes the limits allow."""
        for name, amount in self.machine(template).items():
            if amount > 0 and name in self.left and self.left[name] < amount * count:
                count = min(count, self.left[name] // amount)
        return count

    def take(self, template: Template, count: int) -> None:
        for name, amount in self.machine(template).items():
            if name in self.left:
                self.left[name] = max(self.left[name] - amount * count, 0)


def skip_reasons(
    group: AutoscalerGroup, template: Template | None, limits: Limits, behavior: AutoscalerBehavior
) -> tuple[str, ...]:
    """Return why a group is skipped; empty if it is not."""
    if not group.is_healthy:
        return (NOT_READY,)
    if group.is_backed_off:
        return (BACKED_OFF,)
    if group.status.target >= group.status.max_size:
        return (AT_MAXIMUM,)
    if template is None:
        return (NOT_READY,)
    try:
        exceeded = limits.exceeded_resources(template)
    except LoopError:
        return (NOT_READY,)
    return (behavior.limit_text.format(resources=", ".join(exceeded)),) if exceeded else ()


# The new sizes of the groups: similar groups share new nodes, and limits reduce them. Upstream:
# processors/nodegroupset/, balanceScaleUps and capScaleUpsByQuota in core/scaleup/orchestrator.


class Resize(Struct, kw_only=True):
    """A group's new size."""

    group: str
    before: int = field(name="from")
    after: int = field(name="to")
    maximum: int = field(name="max")

    def __str__(self) -> str:
        """Format as in events."""
        return f"{{{self.group} {self.before}->{self.after} (max: {self.maximum})}}"


class Similarity(Struct, frozen=True, dict=True):
    """Decides whether two groups are similar enough to share new nodes."""

    templates: Mapping[str, Template]
    flags: Flags
    options: RequestOptions
    behavior: AutoscalerBehavior

    @cached_property
    def _ignored(self) -> frozenset[str]:
        own = _IGNORED_LABELS_OF.get(self.flags.cloud_provider, frozenset()) - self.behavior.labels_still_compared
        return _IGNORED_LABELS | own | frozenset(self.flags.balancing_ignore_labels)

    def are_similar(self, first: str, second: str) -> bool:
        if first not in self.templates or second not in self.templates:
            return False
        template, other = self.templates[first], self.templates[second]
        labels, others = template.node.metadata.labels, other.node.metadata.labels
        if self.flags.balancing_labels:
            return all(key in labels and labels[key] == others.get(key) for key in self.flags.balancing_labels)
        for key in _SAME_POOL_LABELS.get(self.flags.cloud_provider, ()):
            if labels.get(key) and labels[key] == others.get(key):
                return True
        return self._same_machine(template, other) and self._labels(template) == self._labels(other)

    def _labels(self, template: Template) -> dict[str, str]:
        return {key: text for key, text in template.node.metadata.labels.items() if key not in self._ignored}

    def _same_machine(self, template: Template, other: Template) -> bool:
        capacity, others = template.node.status.capacity, other.node.status.capacity
        if capacity.keys() != others.keys():
            return False
        for name in capacity:
            if name == "memory":
                pair = (milli_value(capacity[name]), milli_value(others[name]))
                if not _is_within_ratio(*pair, self.flags.memory_difference_ratio):
                    return False
            elif parse_quantity(capacity[name]) != parse_quantity(others[name]):
                return False
        offered, theirs = _thousandths(template.node.status.allocatable), _thousandths(other.node.status.allocatable)
        if not _all_within(offered, theirs, self.flags.max_allocatable_difference_ratio):
            return False
        return _all_within(self._free(template), self._free(other), self.flags.max_free_difference_ratio)

    def _free(self, template: Template) -> dict[str, int]:
        """Return what the template's pods leave, in thousandths; for other resources, only what they request."""
        requested: dict[str, int] = {"cpu": 0, "memory": 0, "ephemeral-storage": 0, "pods": 0}
        for pod in template.pods:
            for name, amount in pod_request(pod.spec, pod.status, self.options).amounts.items():
                requested[name] = requested.get(name, 0) + (amount if name == "cpu" else amount * 1000)
        offered = template.node.status.allocatable
        return {
            name: (milli_value(offered[name]) if name in offered else 0) - amount for name, amount in requested.items()
        }


def _thousandths(amounts: ResourceList) -> dict[str, int]:
    return {name: milli_value(written) for name, written in amounts.items()}


def _is_within_ratio(first: int, second: int, ratio: float) -> bool:
    larger, smaller = float(max(first, second)), float(min(first, second))
    return larger - smaller <= larger * ratio


def _all_within(first: Mapping[str, int], second: Mapping[str, int], ratio: float) -> bool:
    return first.keys() == second.keys() and all(_is_within_ratio(first[name], second[name], ratio) for name in first)


def similar_groups(
    name: str, groups: Sequence[AutoscalerGroup], similarity: Similarity, fitting: Mapping[str, Collection[int]]
) -> tuple[str, ...]:
    """Return the similar groups that can grow and fit every class of pods that this one fits. `fitting`: each group
    that is not skipped to the classes that fit it."""
    if not fitting.get(name):
        return ()
    return tuple(
        group.name
        for group in groups
        if group.name != name
        and similarity.are_similar(name, group.name)
        and group.is_healthy
        and not group.is_backed_off
        and group.name in fitting
        and set(fitting[name]) <= set(fitting[group.name])
    )


def _balance(groups: Sequence[AutoscalerGroup], count: int) -> list[Resize]:
    """Distribute new nodes over the groups, always to the smallest one. Unchanged groups are left out."""
    resizes = [
        Resize(group=group.name, before=group.status.target, after=group.status.target, maximum=group.status.max_size)
        for group in groups
        if group.status.target != group.status.max_size
    ]
    count = min(count, sum(max(resize.maximum - resize.before, 0) for resize in resizes))
    sort_slice(resizes, lambda a, b: a.before < b.before)
    start = current = 0
    while count > 0:
        current_resize = resizes[current]
        if current_resize.after < current_resize.maximum:
            current_resize.after += 1
            count -= 1
        else:  # full: it is moved to the front and skipped
            resizes[start], resizes[current] = resizes[current], resizes[start]
            start += 1
        if current < len(resizes) - 1 and resizes[current].after > resizes[current + 1].after:
            current += 1
        else:
            current = start
    return [resize for resize in resizes if resize.after != resize.before]


def _cap_by_quotas(resizes: Sequence[Resize], templates: Mapping[str, Template], limits: Limits) -> list[Resize]:
    """Reduce each group in turn to what the ones before it leave."""
    for resize in resizes:
        template = templates[resize.group]
        allowed = limits.allowed_count(template, resize.after - resize.before)
        resize.after = resize.before + allowed
        limits.take(template, allowed)
    return [resize for resize in resizes if resize.after != resize.before]


def resize_groups(
    option_group: AutoscalerGroup,
    similar: Sequence[AutoscalerGroup],
    count: int,
    templates: Mapping[str, Template],
    limits: Limits,
    behavior: AutoscalerBehavior,
) -> list[Resize]:
    """Return the new sizes for `count` nodes; `limits` are consumed."""
    if not behavior.balanced_sizes_heed_quotas:
        return _balance((option_group, *similar), count)
    sharing = [group for group in similar if not limits.exceeded_resources(templates[group.name])]
    return _cap_by_quotas(_balance((option_group, *sharing), count), templates, limits)


# The messages of the autoscaler's events. Upstream: processors/status/eventing_scale_up_processor.go,
# core/static_autoscaler.go.

AT_MAX_NODES_TOTAL = "max total nodes in cluster reached"


# The choice among options. Upstream: expander/ (factory, waste, mostpods, leastnodes, priority).

_KEY = "priorities"
_NUMBER = lazy_pattern(r"[+-]?[0-9]{1,18}")  # numbers with few enough digits to fit an int64


class Option(Struct, frozen=True, kw_only=True):
    """New nodes of a group, with their pods."""

    group: str
    nodes: int
    pods: tuple[int, ...]
    similar: tuple[str, ...] = ()
    milli_cpu: int = 0  # requests of the pods
    memory: int = 0


class _ExpanderChoice(Struct, frozen=True, kw_only=True):
    """The options that the expanders keep, and their warnings."""

    options: tuple[Option, ...]
    events: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # expanders that kschedx does not support; they are skipped


_Filter = Callable[[Sequence[Option]], tuple[Sequence[Option], Sequence[str]]]


def choose(
    options: Sequence[Option], names: Sequence[str], nodes: Mapping[str, Node], priorities: ConfigMap | None
) -> _ExpanderChoice:
    """Apply the expanders one after the other until one option is left; `nodes` are the groups' templates."""
    filters: Mapping[str, _Filter] = {
        "least-waste": lambda left: (_least_waste(left, nodes), ()),
        "most-pods": lambda left: (_most_pods(left), ()),
        "least-nodes": lambda left: (_least_nodes(left), ()),
        "priority": lambda left: prioritize(left, priorities),
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
    return _ExpanderChoice(options=tuple(left), events=tuple(events), unknown=tuple(unknown))


def _waste(option: Option, node: Node) -> tuple[float, float]:
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
        score = sum(_waste(option, nodes[option.group]))
        if score == least:
            best.append(option)
        if not best or score < least:
            least, best = score, [option]
    return best


def _most_pods(options: Sequence[Option]) -> list[Option]:
    most = max((len(option.pods) for option in options), default=0)
    return [option for option in options if len(option.pods) == most]


def _least_nodes(options: Sequence[Option]) -> list[Option]:
    least = min((option.nodes for option in options if option.nodes), default=0)
    return [option for option in options if option.nodes == least]


def prioritize(options: Sequence[Option], config: ConfigMap | None) -> tuple[list[Option], list[str]]:
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
    from kschedx.cel.regex import compile_pattern
    from kschedx.cel.values import Fault
    from kschedx.sources import yaml as yaml_text

    try:
        document = yaml_text.value_in(text)
    except InputError as error:
        return wrong.format(f"Can't parse YAML with priorities in the configmap: {error.message}")
    unreadable = wrong.format(
        "Can't parse YAML with priorities in the configmap: not a map of numbers to lists of texts"
    )
    if not isinstance(document, dict):
        return {} if document is None else unreadable
    patterns_by_priority: dict[int, list[Pattern]] = {}
    for key, patterns in document.items():
        if not _NUMBER.fullmatch(key) or not isinstance(patterns, list | None):
            return unreadable
        for item in patterns or ():
            if isinstance(item, dict | list):
                return unreadable
            pattern = "" if item is None else yaml_text.mapping_key(item)
            compiled_pattern = compile_pattern(pattern)
            if isinstance(compiled_pattern, Fault):
                rule = f"priority {key} and rule {pattern}"
                return wrong.format(f"Can't compile regexp rule for {rule}: {compiled_pattern.message}")
            patterns_by_priority.setdefault(int(key), []).append(compiled_pattern)
    return patterns_by_priority

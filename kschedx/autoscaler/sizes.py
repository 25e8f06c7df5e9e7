"""To what sizes the groups are set: similar groups share the nodes, and limits cut them.

Upstream: processors/nodegroupset/, balanceScaleUps and capScaleUpsByQuota in core/scaleup/orchestrator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from kschedx.api.go_sort import sort_slice
from kschedx.api.quantity import ResourceList, milli_value, parse_quantity
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.autoscaler.clouds import IGNORED_LABELS, IGNORED_LABELS_OF, SAME_POOL_LABELS
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.groups import Group
from kschedx.autoscaler.limits import Limits
from kschedx.autoscaler.templates import Template
from kschedx.releases.autoscaler import AutoscalerBehaviour


class Resize(Struct, kw_only=True):
    """A group's new size."""

    group: str
    before: int
    after: int
    maximum: int

    def __str__(self) -> str:
        """As events have it."""
        return f"{{{self.group} {self.before}->{self.after} (max: {self.maximum})}}"


class Similarity:
    """Whether two groups are alike enough to share new nodes."""

    def __init__(
        self, templates: Mapping[str, Template], flags: Flags, options: RequestOptions, behaviour: AutoscalerBehaviour
    ) -> None:
        self._templates = templates
        self._flags = flags
        self._options = options
        own = IGNORED_LABELS_OF.get(flags.cloud_provider, frozenset())
        own -= behaviour.labels_still_compared
        self._ignored = IGNORED_LABELS | own | frozenset(flags.balancing_ignore_labels)

    def alike(self, first: str, second: str) -> bool:
        if first not in self._templates or second not in self._templates:
            return False
        one, other = self._templates[first], self._templates[second]
        labels, others = one.node.metadata.labels, other.node.metadata.labels
        if self._flags.balancing_labels:
            return all(key in labels and labels[key] == others.get(key) for key in self._flags.balancing_labels)
        for key in SAME_POOL_LABELS.get(self._flags.cloud_provider, ()):
            if labels.get(key) and labels[key] == others.get(key):
                return True
        return self._same_machine(one, other) and self._labels(one) == self._labels(other)

    def _labels(self, template: Template) -> dict[str, str]:
        return {key: text for key, text in template.node.metadata.labels.items() if key not in self._ignored}

    def _same_machine(self, one: Template, other: Template) -> bool:
        capacity, others = one.node.status.capacity, other.node.status.capacity
        if capacity.keys() != others.keys():
            return False
        for name in capacity:
            if name == "memory":
                pair = (milli_value(capacity[name]), milli_value(others[name]))
                if not _within(*pair, self._flags.memory_difference_ratio):
                    return False
            elif parse_quantity(capacity[name]) != parse_quantity(others[name]):
                return False
        ratio = self._flags.max_allocatable_difference_ratio
        if not _all_within(
            _thousandths(one.node.status.allocatable), _thousandths(other.node.status.allocatable), ratio
        ):
            return False
        return _all_within(self._free(one), self._free(other), self._flags.max_free_difference_ratio)

    def _free(self, template: Template) -> dict[str, int]:
        """In thousandths, what the pods of the template leave; of other resources than these only what they ask for."""
        asked: dict[str, int] = {"cpu": 0, "memory": 0, "ephemeral-storage": 0, "pods": 0}
        for pod in template.pods:
            for name, amount in pod_request(pod.spec, pod.status, self._options).amounts.items():
                asked[name] = asked.get(name, 0) + (amount if name == "cpu" else amount * 1000)
        offered = template.node.status.allocatable
        return {name: (milli_value(offered[name]) if name in offered else 0) - amount for name, amount in asked.items()}


def _thousandths(amounts: ResourceList) -> dict[str, int]:
    return {name: milli_value(written) for name, written in amounts.items()}


def _within(first: int, second: int, ratio: float) -> bool:
    larger, smaller = float(max(first, second)), float(min(first, second))
    return larger - smaller <= larger * ratio


def _all_within(first: Mapping[str, int], second: Mapping[str, int], ratio: float) -> bool:
    return first.keys() == second.keys() and all(_within(first[name], second[name], ratio) for name in first)


def similar_groups(
    name: str, groups: Sequence[Group], similarity: Similarity, fitting: Mapping[str, Collection[int]]
) -> tuple[str, ...]:
    """Groups that are alike, can grow, and take every kind of pods that this one takes.

    `fitting`: each group that is not left out to the kinds that fit there.
    """
    if not fitting.get(name):
        return ()
    return tuple(
        group.name
        for group in groups
        if group.name != name
        and similarity.alike(name, group.name)
        and group.is_healthy
        and not group.is_backed_off
        and group.name in fitting
        and set(fitting[name]) <= set(fitting[group.name])
    )


def balanced(groups: Sequence[Group], count: int) -> list[Resize]:
    """So many new nodes for these groups, each to the smallest one; groups that stay as they are are left out."""
    resizes = [
        Resize(group=group.name, before=group.status.target, after=group.status.target, maximum=group.status.max_size)
        for group in groups
        if group.status.target != group.status.max_size
    ]
    count = min(count, sum(max(one.maximum - one.before, 0) for one in resizes))
    sort_slice(resizes, lambda a, b: a.before < b.before)
    start = current = 0
    while count > 0:
        one = resizes[current]
        if one.after < one.maximum:
            one.after += 1
            count -= 1
        else:  # full: it moves to the front, out of the way
            resizes[start], resizes[current] = resizes[current], resizes[start]
            start += 1
        if current < len(resizes) - 1 and resizes[current].after > resizes[current + 1].after:
            current += 1
        else:
            current = start
    return [one for one in resizes if one.after != one.before]


def within_quotas(resizes: Sequence[Resize], templates: Mapping[str, Template], limits: Limits) -> list[Resize]:
    """Each group in turn is cut to what the ones before it leave."""
    for one in resizes:
        template = templates[one.group]
        allowed = limits.allowed(template, one.after - one.before)
        one.after = one.before + allowed
        limits.take(template, allowed)
    return [one for one in resizes if one.after != one.before]


def resized(
    option_group: Group,
    similar: Sequence[Group],
    count: int,
    templates: Mapping[str, Template],
    limits: Limits,
    behaviour: AutoscalerBehaviour,
) -> list[Resize]:
    """The new sizes for so many nodes; `limits` are used up."""
    if not behaviour.balanced_sizes_heed_quotas:
        return balanced((option_group, *similar), count)
    sharing = [group for group in similar if not limits.exceeded(templates[group.name])]
    return within_quotas(balanced((option_group, *sharing), count), templates, limits)

"""Label requirements as sets of values: intersections, and the labels that Karpenter knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.autoscalers import (
    AWS,
    AZURE,
    CAPACITY_TYPE,
    COMPUTE_TYPE,
    EKS_AUTO_MODE,
    KARPENTER_GROUP,
    NODE_POOL,
    NodeClassReference,
)
from kschedx.kube.names import HOSTNAME, INSTANCE_TYPE, REGION, ZONE, is_hugepages
from kschedx.kube.quantity import QuantityFormat, ResourceList, parse_quantity
from kschedx.kube.resources import nano_units
from kschedx.kube.scalars import MAX_INT64, parse_int64
from kschedx.kube.selectors import SelectorRequirement
from kschedx.kube.types import Container, Pod

# The labels that Karpenter knows: well-known and restricted ones, and their aliases. Upstream: pkg/apis/v1/labels.go of
# karpenter, karpenter-provider-aws, and karpenter-provider-azure.

ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
_WINDOWS_BUILD = "node.kubernetes.io/windows-build"

RESERVED = "reserved"
CAPACITY_TYPES = ("on-demand", RESERVED, "spot")

_RESTRICTED = frozenset({HOSTNAME})  # labels that no requirement may use and no message names

NORMALIZED: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "topology.disk.csi.azure.com/zone": ZONE,
}
"""The aliases of CSI drivers are added by the cloud providers."""

_EVERYWHERE = frozenset({NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, _WINDOWS_BUILD})

RESERVATION_ID = f"{AWS}/capacity-reservation-id"
RESERVATION_TYPE = f"{AWS}/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = f"{AWS}/capacity-reservation-interruptible"
FLEX = f"{AWS}/instance-capability-flex"

AWS_LABELS = frozenset(
    f"{AWS}/{name}"
    for name in (
        "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
        "instance-hypervisor", "instance-capability-flex", "instance-tenancy", "placement-group-id",
        "placement-group-partition",
        "instance-encryption-in-transit-supported", "instance-category", "instance-family", "instance-generation",
        "instance-size", "instance-local-nvme", "instance-cpu", "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz", "instance-memory", "instance-ebs-bandwidth",
        "instance-network-bandwidth", "instance-gpu-name", "instance-gpu-manufacturer", "instance-gpu-count",
        "instance-gpu-memory", "instance-accelerator-name", "instance-accelerator-manufacturer",
        "instance-accelerator-count",
    )
) | {"topology.k8s.aws/zone-id"}  # fmt: skip


AZURE_LABELS = frozenset(
    f"{AZURE}/{name}"
    for name in (
        "sku-name", "sku-family", "sku-version", "sku-cpu", "sku-memory", "sku-gpu-name", "sku-gpu-manufacturer",
        "sku-gpu-count", "sku-networking-accelerated", "sku-storage-premium-capable",
        "sku-storage-ephemeralos-maxsize",
    )
)  # fmt: skip

EKS_LABELS = frozenset(label.replace(AWS, EKS_AUTO_MODE) for label in AWS_LABELS) | {COMPUTE_TYPE}
"""EKS Auto Mode's Karpenter has AWS's labels in a domain of its own."""

_OF_CLOUD: Mapping[str, frozenset[str]] = {AWS: AWS_LABELS, AZURE: AZURE_LABELS, EKS_AUTO_MODE: EKS_LABELS}


def well_known(group: str) -> frozenset[str]:
    """Return the labels that a new node may have without a definition, by the group of its node class."""
    return _EVERYWHERE | _OF_CLOUD.get(group, frozenset())


def is_reserved_label(key: str, group: str) -> bool:
    """Whether a label is in the domain of Karpenter or the cloud and not well-known: a pod may not require it."""
    if key in well_known(group):
        return False
    domain, slash, _ = key.partition("/")
    owners = reserved_domains(group)
    is_owned = bool(slash) and any(domain == owner or domain.endswith(f".{owner}") for owner in owners)
    return is_owned or key in _RESTRICTED


def reserved_domains(group: str) -> tuple[str, ...]:
    return tuple(sorted({KARPENTER_GROUP, group} if group in (AWS, AZURE) else {KARPENTER_GROUP}))


def class_label(reference: NodeClassReference) -> str:
    """Return the node label with the name of its node class."""
    return f"{reference.api_group}/{reference.kind.lower()}"


# Label requirements as sets of values: intersections, and Karpenter's message if one is empty. Upstream:
# pkg/scheduling/requirement.go, requirements.go. Where upstream iterates a Go map in random order, the order here is
# that of the names.

_MOST_VALUES = 5  # the maximum number of values in a message


class LabelRequirement(Struct, frozen=True, kw_only=True):
    """A key with its allowed values: `values`, or with `is_complement` all others within the bounds."""

    key: str
    is_complement: bool = False
    values: frozenset[str] = frozenset()
    at_least: int | None = None
    at_most: int | None = None
    min_values: int | None = None  # the number of distinct values that the remaining instance types must have

    @classmethod
    def of(cls, key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> LabelRequirement:
        """Bounds are integers, validated before."""
        key = NORMALIZED.get(key, key)
        match operator:
            case "In":
                return cls(key=key, values=frozenset(values), min_values=min_values)
            case "NotIn":
                return cls(key=key, is_complement=True, values=frozenset(values), min_values=min_values)
            case "DoesNotExist":
                return cls(key=key, min_values=min_values)
            case "Gt" | "Lt" | "Gte" | "Lte":
                bound = parse_int64(next(iter(values), "")) or 0
                if operator == "Gt" and bound == MAX_INT64:
                    return cls(key=key)
                least = {"Gt": bound + 1, "Gte": bound}.get(operator)
                most = {"Lt": bound - 1, "Lte": bound}.get(operator)
                return cls(key=key, is_complement=True, at_least=least, at_most=most, min_values=min_values)
            case _:
                return cls(key=key, is_complement=True, min_values=min_values)

    @property
    def operator(self) -> str:
        """Bounds count as `Exists`."""
        if self.is_complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    @property
    def is_negative(self) -> bool:
        return self.operator in ("NotIn", "DoesNotExist")

    def has(self, value: str) -> bool:
        return (value in self.values) != self.is_complement and self._is_within(value)

    def _is_within(self, value: str) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        number = parse_int64(value)
        if number is None or (self.at_least is not None and number < self.at_least):
            return False
        return self.at_most is None or number <= self.at_most

    def intersection(self, other: LabelRequirement) -> LabelRequirement:
        least = _larger(self.at_least, other.at_least)
        most = _smaller(self.at_most, other.at_most)
        min_values = _larger(self.min_values, other.min_values)
        if least is not None and most is not None and least > most:
            return LabelRequirement(key=self.key, min_values=min_values)
        if self.is_complement and other.is_complement:
            values = self.values | other.values
        elif self.is_complement:
            values = other.values - self.values
        elif other.is_complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        bounded = LabelRequirement(key=self.key, is_complement=True, at_least=least, at_most=most)
        values = frozenset(filter(bounded._is_within, values))
        if self.is_complement and other.is_complement:
            return replace(bounded, values=values, min_values=min_values)
        return LabelRequirement(key=self.key, values=values, min_values=min_values)

    def intersects(self, other: LabelRequirement) -> bool:
        if self.is_complement and other.is_complement:
            least, most = _larger(self.at_least, other.at_least), _smaller(self.at_most, other.at_most)
            return least is None or most is None or least <= most
        few, many = (other, self) if self.is_complement else (self, other)
        return any(few.has(value) and many.has(value) for value in few.values)

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            text = f"{self.key} {self.operator}"
        else:
            values = sorted(self.values)
            if len(values) > _MOST_VALUES:
                values = [*values[:_MOST_VALUES], f"and {len(values) - _MOST_VALUES} others"]
            text = f"{self.key} {self.operator} [{' '.join(values)}]"
        if self.at_least is not None:
            text += f" >={self.at_least}"
        if self.at_most is not None:
            text += f" <={self.at_most}"
        return text if self.min_values is None else f"{text} minValues {self.min_values}"


def is_bound(values: Sequence[str]) -> bool:
    """Return whether these are the values of an operator that compares numbers: a single one, which is not negative."""
    bound = parse_int64(values[0]) if len(values) == 1 else None
    return bound is not None and bound >= 0


def _larger(item: int | None, other: int | None) -> int | None:
    return max((bound for bound in (item, other) if bound is not None), default=None)


def _smaller(item: int | None, other: int | None) -> int | None:
    return min((bound for bound in (item, other) if bound is not None), default=None)


class UnknownLabel(Struct, frozen=True, kw_only=True):
    """A label that new nodes would not have, because nothing defines it."""

    key: str
    typo_of: str = ""  # a known label with a similar name

    def __str__(self) -> str:
        hint = f' (typo of "{self.typo_of}"?)' if self.typo_of else ""
        return f'label "{self.key}" does not have known values{hint}'


class NothingInCommon(Struct, frozen=True, kw_only=True):
    """Two requirements on a key without a common value."""

    key: str
    incoming: LabelRequirement
    existing: LabelRequirement

    def __str__(self) -> str:
        return f"key {self.key}, {self.incoming} not in {self.existing}"


RequirementConflict = UnknownLabel | NothingInCommon


class Requirements(Mapping[str, LabelRequirement]):
    """Requirements by key; several on one key are intersected."""

    __slots__ = ("_by_key", "_signature")

    def __init__(self, requirements: Iterable[LabelRequirement] = ()) -> None:
        self._signature: frozenset[LabelRequirement] | None = None
        self._by_key: dict[str, LabelRequirement] = {}
        for requirement in requirements:
            known = self._by_key.get(requirement.key)
            self._by_key[requirement.key] = requirement if known is None else requirement.intersection(known)

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Requirements:
        return cls(LabelRequirement.of(key, "In", (value,)) for key, value in labels.items())

    @classmethod
    def of_expressions(cls, expressions: Iterable[SelectorRequirement]) -> Requirements:
        return cls(LabelRequirement.of(it.key, it.operator, it.values) for it in expressions)

    def __getitem__(self, key: str) -> LabelRequirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def requirement(self, key: str) -> LabelRequirement:
        """Return the requirement of a key; without one, every value is allowed."""
        return self._by_key.get(key) or LabelRequirement(key=key, is_complement=True)

    def together(self, more: Iterable[LabelRequirement]) -> Requirements:
        requirements = Requirements()
        requirements._by_key = dict(self._by_key)
        for requirement in more:
            known = requirements._by_key.get(requirement.key)
            requirements._by_key[requirement.key] = requirement if known is None else requirement.intersection(known)
        return requirements

    def replace_requirement(self, label_requirement: LabelRequirement) -> Requirements:
        return Requirements((*(kept for kept in self.values() if kept.key != label_requirement.key), label_requirement))

    def with_min_values(self, counts: Mapping[str, int]) -> Requirements:
        requirements = Requirements()
        requirements._by_key = dict(self._by_key)
        for key, count in counts.items():
            requirements._by_key[key] = replace(requirements._by_key[key], min_values=count)
        return requirements

    @property
    def signature(self) -> frozenset[LabelRequirement]:
        """Equal for requirements that mean the same to an instance type, which has no host name."""
        if self._signature is None:
            self._signature = frozenset(
                requirement for key, requirement in self._by_key.items() if key not in _RESTRICTED
            )
        return self._signature

    @property
    def has_min_values(self) -> bool:
        return any(requirement.min_values is not None for requirement in self._by_key.values())

    def overlaps(self, other: Requirements) -> bool:
        """Return whether `conflicts_with` finds nothing, faster."""
        few, many = (self, other) if len(self) <= len(other) else (other, self)
        return all(
            requirement.intersects(many._by_key[key]) or (requirement.is_negative and many._by_key[key].is_negative)
            for key, requirement in few._by_key.items()
            if key in many._by_key
        )

    def conflicts_with(self, incoming: Requirements) -> tuple[RequirementConflict, ...]:
        """Return the keys without a common value; two exclusions do not conflict."""
        return tuple(
            NothingInCommon(key=key, incoming=incoming[key], existing=self[key])
            for key in sorted(self._by_key.keys() & incoming._by_key.keys())
            if not self[key].intersects(incoming[key]) and not (self[key].is_negative and incoming[key].is_negative)
        )

    def conflicts(
        self, incoming: Requirements, allowed: frozenset[str] = frozenset()
    ) -> tuple[RequirementConflict, ...]:
        """Return why `incoming` cannot be met as well: its labels must be defined or `allowed` to be undefined."""
        for key in sorted(incoming):
            if key not in allowed and key not in self._by_key and not incoming[key].is_negative:
                return (UnknownLabel(key=key, typo_of=self._similar_key(key, allowed)),)
        return self.conflicts_with(incoming)

    def is_compatible(self, incoming: Requirements, allowed: frozenset[str] = frozenset()) -> bool:
        for key, requirement in incoming._by_key.items():
            if key not in allowed and key not in self._by_key and not requirement.is_negative:
                return False
        return self.overlaps(incoming)

    def _similar_key(self, key: str, allowed: frozenset[str]) -> str:
        suffix = key.partition("/")[2] if "/" in key else key
        known = (*sorted(allowed), *sorted(self._by_key))
        similar = [known_key for known_key in known if key in known_key or known_key.endswith(suffix)]
        return min(similar, key=lambda key: not key.endswith(f"/{suffix}"), default="")

    def __str__(self) -> str:
        return ", ".join(
            sorted(str(requirement) for key, requirement in self._by_key.items() if key not in _RESTRICTED)
        )


# Exact amounts of resources, formatted as Karpenter formats them.
# Upstream: pkg/utils/resources, and Quantity.Add of apimachinery: a sum has the format of its first summand that is
# not zero.

NODES = "nodes"  # every node counts as one; only limits name it
PODS = "pods"
_NANO = 10**9


class Amount(Struct, frozen=True):
    """An exact amount in nano-units, with its format."""

    nano: int
    format: QuantityFormat = QuantityFormat.DECIMAL_SI

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.format if self.nano else other.format)

    def __str__(self) -> str:
        return _text(self.nano, self.format)


@lru_cache(maxsize=4096)
def _text(nano: int, form: QuantityFormat) -> str:
    return str(replace(parse_quantity(f"{nano}n"), format=form, canonical=""))


ZERO = Amount(0)
Amounts = Mapping[str, Amount]


def amounts_of(resources: ResourceList) -> dict[str, Amount]:
    """Raises `InputError` with the place `[resource]`."""
    amounts: dict[str, Amount] = {}
    for name, written in resources.items():
        try:
            amounts[name] = Amount(nano_units(written), parse_quantity(written).format)
        except InputError as error:
            raise error.at(Place(field=f"[{name}]")) from None
    return amounts


def merge_amounts(*lists: Amounts) -> dict[str, Amount]:
    total: dict[str, Amount] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def subtract(amounts: Amounts, less: Amounts) -> dict[str, Amount]:
    """Subtract; only the resources of `amounts` are in the result."""
    return {name: amount - less[name] if name in less else amount for name, amount in amounts.items()}


def pod_requests(pods: Iterable[Pod]) -> dict[str, Amount]:
    """Sum the requests of pods, with their number."""
    count = 0
    total: dict[str, Amount] = {}
    for pod in pods:
        count += 1
        total = merge_amounts(total, _pod_requests(pod))
    return total | {PODS: Amount(count * _NANO, QuantityFormat.DECIMAL_EXPONENT)}


def _pod_requests(pod: Pod) -> dict[str, Amount]:
    """The larger of the running pod and the start of any init container (component-helpers/resource, PodRequests)."""
    running: dict[str, Amount] = {}
    for container in pod.spec.containers:
        running = merge_amounts(running, _container_requests(container))
    sidecars: dict[str, Amount] = {}
    start: dict[str, Amount] = {}
    for container in pod.spec.init_containers:
        requested = _container_requests(container)
        if container.is_restartable_init:
            running = merge_amounts(running, requested)
            sidecars = merge_amounts(sidecars, requested)
            requested = sidecars
        else:
            requested = merge_amounts(requested, sidecars)
        _raise_to(start, requested)
    _raise_to(running, start)
    if pod.spec.resources is not None:
        running |= {
            name: amount
            for name, amount in amounts_of(pod.spec.resources.requests).items()
            if name in ("cpu", "memory") or is_hugepages(name)
        }
    return merge_amounts(running, amounts_of(pod.spec.overhead)) if pod.spec.overhead else running


def _container_requests(container: Container) -> dict[str, Amount]:
    """Limits replace missing requests: the API server sets this default for pods, Karpenter for a DaemonSet's
    template."""
    limits = amounts_of(container.resources.limits)
    return limits | amounts_of(container.resources.requests)


def _raise_to(total: dict[str, Amount], floor: Amounts) -> None:
    for name, amount in floor.items():
        if name not in total or amount.nano > total[name].nano:
            total[name] = amount

"""The devices that a pod's claims would get on a node: requests, constraints, shared counters, and the search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from enum import Enum, unique

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from kschedx.errors import UndecidableError
from kschedx.findings import DeviceSelectorFailed
from kschedx.kube.devices import (
    MAX_DEVICES_OF_CLAIM,
    AllocationMode,
    CapacityRequirements,
    CompileError,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    EvaluationError,
    ExactDeviceRequest,
    ResourceClaim,
    language,
)
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import Node, Taint
from kschedx.plugins.dynamic_resources import pools as capacity
from kschedx.plugins.dynamic_resources.pools import (
    AllocatedState,
    Available,
    CounterID,
    DeviceFeatures,
    DeviceID,
    FailureError,
    NodeDevices,
    Pick,
    PooledDevice,
    Result,
    Slices,
    UnavailableError,
    allocated_state,
    allocation_reach,
    device_reaches,
    drawn,
    slices,
)
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.devices import Devices

# Constraints over all devices of a claim: an attribute with one common value, or with distinct values. Upstream:
# structured/internal/incubating/constraint.go, allocator_incubating.go.


class _AllocationConstraint(ABC):
    """A constraint. Devices are added as they are picked and removed in reverse order; a device that violates it is not
    added."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)  # names of requests, or `request/alternative`; empty for all requests

    def add(self, request: str, alternative: str, picked: PooledDevice) -> bool:
        """Add a picked device and return whether the constraint allows it."""
        if not self._applies(request, alternative):
            return True
        value = _attribute_of(picked, self.attribute)
        return value is not None and self._add(request, value)

    def remove(self, request: str, alternative: str) -> None:
        if self._applies(request, alternative):
            self._remove(request)

    def _applies(self, request: str, alternative: str) -> bool:
        named = request in self._requests or (bool(alternative) and f"{request}/{alternative}" in self._requests)
        return named or not self._requests

    @abstractmethod
    def _add(self, request: str, value: DeviceAttribute) -> bool: ...

    @abstractmethod
    def _remove(self, request: str) -> None: ...


class _MatchAttribute(_AllocationConstraint):
    """All devices have the attribute value of the first one."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._value: DeviceAttribute | None = None
        self._count = 0

    def _add(self, request: str, value: DeviceAttribute) -> bool:
        if self._count == 0:
            self._value = value
        elif self._value is None or not _equal(value, self._value):
            return False
        self._count += 1
        return True

    def _remove(self, request: str) -> None:
        self._count -= 1


class _DistinctAttribute(_AllocationConstraint):
    """All devices have different values. Upstream keeps one value per request, that of its last device."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, DeviceAttribute] = {}
        self._count = 0

    def _add(self, request: str, value: DeviceAttribute) -> bool:
        if self._count > 0 and any(_clashes(value, other) for other in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def _remove(self, request: str) -> None:
        self._values.pop(request, None)
        self._count -= 1


def _attribute_of(picked: PooledDevice, name: str) -> DeviceAttribute | None:
    """Find the attribute by its full name, or without the domain if that is the driver's."""
    attribute = picked.device.attributes.get(name)
    domain, slash, own = name.partition("/")
    if attribute is not None or not slash or domain != picked.id[0]:
        return attribute
    return picked.device.attributes.get(own)


_SCALARS = ("string", "int_value", "bool_value", "version")


def _equal(device_attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    """Return whether both have the same type and value. An attribute of an unknown type equals nothing."""
    for name in _SCALARS:
        if getattr(device_attribute, name) is not None:
            return bool(getattr(device_attribute, name) == getattr(other, name))
    return False


def _clashes(attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    return _equal(attribute, other) or all(getattr(attribute, name) is None for name in _SCALARS)


class RequestAlternative(ExactDeviceRequest, frozen=True, kw_only=True):
    """A request, or one alternative in its `firstAvailable`."""

    name: str  # its own name, without the name of its request
    parent: str = ""  # the request of which it is an alternative

    @property
    def base(self) -> str:
        """The name of the whole request."""
        return self.parent or self.name

    @property
    def alternative(self) -> str:
        return self.name if self.parent else ""

    @property
    def full_name(self) -> str:
        """The name in allocation results: `request`, or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Return whether the request tolerates all taints that prevent allocation (resourceclaim.ToleratesTaint)."""
        return find_untolerated(taints, self.tolerations, effects=DO_NOT_SCHEDULE, comparison=False) is None


class CheckedRequest(Struct, kw_only=True):
    """A request with its class, on one node."""

    wanted: RequestAlternative
    device_class: DeviceClass
    count: int
    everything: tuple[int, ...] = ()  # positions of all matching devices, for a request with `allocationMode: All`


def alternatives(request: DeviceRequest) -> Iterator[RequestAlternative]:
    """Yield the request itself, or its alternatives, best first."""
    if request.first_available:
        yield from (RequestAlternative(parent=request.name, **asdict(each)) for each in request.first_available)
    elif request.exactly is not None:
        yield RequestAlternative(name=request.name, **asdict(request.exactly))


# Which devices claims would get on a node: the first solution of a search that tries devices in a fixed order. The
# search goes claim by claim, request by request, device by device. If nothing is left to try, it takes the last choice
# back. The order decides which solution is found, and so does what upstream forgets to take back; both are kept.
# Upstream: structured/internal/incubating/allocator_incubating.go, of which stable is a part.

_MOST_STEPS = 50_000
_MOST_STEPS_OF_CYCLE = 1_000_000
"""kube-scheduler gives up on a node after ten seconds. Whether a search with more steps takes that long is unknown."""


_MISSING_ATTRIBUTE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
"""The end of the error of a selector that reads an attribute which the device lacks."""

_Solution = tuple[tuple[tuple[str, int, bool, Mapping[str, int] | None], ...], ...]
"""Picks by claim: request, the device's position on the node, admin access, and the share of a shared device."""
_MOST_SOLUTIONS = 200_000
_ENCODE = msgspec.json.Encoder().encode


class _ClaimClass(Struct, frozen=True):
    """An equivalence class of claims: a node gives all of them the same result."""

    number: int
    expressions: tuple[str, ...]  # CEL, of all selectors
    attributes: tuple[str, ...]  # in constraints
    lens: int  # a number for these expressions and attributes; they decide which devices are equivalent


class Solutions:
    """Results of searches, keyed by everything that a search depends on: the claims, the properties of a node's devices
    that they can read, and which of these devices are allocated. Names make no difference, so equivalent nodes share a
    search."""

    def __init__(self, classes: Mapping[str, DeviceClass], features: DeviceFeatures) -> None:
        self._classes, self._features = classes, features
        self._numbers: dict[Hashable, int] = {}
        self._claim_classes: dict[bytes, _ClaimClass] = {}
        self._matches: dict[tuple[str, int], bool | None] = {}
        self._traits: dict[tuple[int, int], int] = {}
        self._layouts: dict[tuple[int, int], tuple[NodeDevices, int]] = {}
        self._states: dict[int, tuple[NodeDevices, AllocatedState, int, int]] = {}
        self._found: dict[tuple[int, int, int], _Solution | None] = {}

    def claim_class(self, claims: Sequence[ResourceClaim]) -> _ClaimClass:
        """Return the equivalence class of claims that need devices."""
        written = _ENCODE([claim.spec for claim in claims])
        known = self._claim_classes.get(written)
        if known is None:
            wanted = [wish for it in claims for request in it.spec.devices.requests for wish in alternatives(request)]
            classes = [
                device_class
                for wish in wanted
                if (device_class := self._classes.get(wish.device_class_name)) is not None
            ]
            selectors = [selector for some in wanted for selector in some.selectors]
            selectors += [selector for some in classes for selector in some.spec.selectors]
            constraints = [constraint for claim in claims for constraint in claim.spec.devices.constraints]
            names = (name for it in constraints for name in (it.match_attribute, it.distinct_attribute) if name)
            expressions = tuple(dict.fromkeys(it.cel.expression for it in selectors if it.cel is not None))
            seen = expressions, tuple(dict.fromkeys(names))
            known = self._claim_classes[written] = _ClaimClass(len(self._claim_classes), *seen, self._number(seen))
        return known

    def matches(self, expression: str, pooled_device: PooledDevice) -> bool | None:
        """Evaluate a selector on a device; None if it fails or cannot be evaluated."""
        key = expression, id(pooled_device.device)
        if key not in self._matches:
            try:
                program = language().compile(expression, self._features.cel)
                self._matches[key] = program.matches(pooled_device.device, pooled_device.id[0])
            except (CompileError, EvaluationError, UndecidableError):
                self._matches[key] = None
        return self._matches[key]

    def key(
        self, here: NodeDevices, allocated: AllocatedState, claim_class: _ClaimClass
    ) -> tuple[int, int, int] | None:
        """Return a key that is equal for searches with the same result, or None if a search depends on more."""
        if not here.is_alone:
            return None
        layout = self._layouts.get((claim_class.lens, id(here)))
        if layout is None:
            layout = self._layouts[claim_class.lens, id(here)] = here, self._layout(here, claim_class)
        return claim_class.number, layout[1], self._state(here, allocated)

    def get(self, key: tuple[int, int, int]) -> tuple[_Solution | None] | None:
        """Return the result of an earlier search, if any; it holds None if there was no solution."""
        return (self._found[key],) if key in self._found else None

    def put(self, key: tuple[int, int, int], here: NodeDevices, result: Result | None) -> None:
        if len(self._found) >= _MOST_SOLUTIONS:
            self._found.clear()
        if result is None:
            self._found[key] = None
            return
        position = {device.id: place for place, device in enumerate(here.devices)}
        self._found[key] = tuple(
            tuple((pick.request, position[pick.device.id], pick.admin_access, pick.share) for pick in picks)
            for picks in result
        )

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _layout(self, here: NodeDevices, claim_class: _ClaimClass) -> int:
        names = here.pool_names
        return self._number(
            tuple(
                (
                    names.index(pool.name),
                    pool.is_incomplete,
                    bool(pool.invalid),
                    _ENCODE(pool.counter_sets) if pool.counter_sets else b"",
                    tuple([self._trait(device, claim_class) for device in pool.devices]),
                )
                for pool in here.pools
            )
        )

    def _trait(self, device: PooledDevice, claim_class: _ClaimClass) -> int:
        """Return a number for the properties of a device that claims of this class can read."""
        key = claim_class.lens, id(device.device)
        known = self._traits.get(key)
        if known is None:
            spec = device.slice.spec
            terms = len(spec.node_selector.node_selector_terms) if spec.node_selector is not None else 0
            matches = tuple(self.matches(expression, device) for expression in claim_class.expressions)
            values = tuple(_ENCODE(_attribute_of(device, name)) for name in claim_class.attributes)
            rest = self._number(_ENCODE(replace(device.device, name="", attributes={})))
            known = self._number((device.id[0], spec.node_name is None, terms, rest, matches, values))
            self._traits[key] = known
        return known

    def _state(self, here: NodeDevices, allocated: AllocatedState) -> int:
        version = allocated.version(here)
        known = self._states.get(id(here))
        if known is not None and known[1] is allocated and known[2] == version:
            return known[3]
        number = self._number(tuple([allocated.of(device.id) for device in here.devices]))
        self._states[id(here)] = here, allocated, version, number
        return number


_SOLUTIONS = Memo[Solutions]()


def solutions(devices: Devices, features: DeviceFeatures) -> Solutions:
    """Return the results of searches in these slices, for any allocations."""
    classes = devices.classes
    return _SOLUTIONS.of(devices.derived_from_slices, lambda: Solutions(classes, features), features, id(classes))


class Allocator:
    """Allocates devices during one scheduling cycle, one node at a time."""

    def __init__(
        self,
        features: DeviceFeatures,
        allocated: AllocatedState,
        classes: Mapping[str, DeviceClass],
        slices: Slices,
        solutions: Solutions,
    ) -> None:
        self.features = features
        self.allocated = allocated
        self.classes = classes
        self.slices = slices
        self.solutions = solutions
        self.available = Available(allocated)
        self.steps = 0  # of all searches

    @classmethod
    def of(cls, devices: Devices, features: DeviceFeatures) -> Allocator:
        allocated = allocated_state(devices, shares=features.consumable_capacity)
        return cls(features, allocated, devices.classes, slices(devices, features), solutions(devices, features))

    def version(self, node: Node) -> int:
        """Return a number that grows when an allocation from the node's pools changes."""
        return self.allocated.version(self.slices.on_node(node))

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Result | None:
        """Allocate all claims on the node, or return None. Raises `FailureError` and `UnavailableError`."""
        here = self.slices.on_node(node)
        key = self.solutions.key(here, self.allocated, self.solutions.claim_class(claims))
        known = None if key is None else self.solutions.get(key)
        if known is not None:
            return None if known[0] is None else tuple(tuple(_picks(here, picks)) for picks in known[0])
        result = self.search(node, claims)
        if key is not None:
            self.solutions.put(key, here, result)
        return result

    def search(self, node: Node, claims: Sequence[ResourceClaim]) -> Result | None:
        """Search as `allocate` does, without earlier results."""
        try:
            return AllocationSearch(self, node, claims).run()
        except RecursionError:
            raise UndecidableError("the pod's claims request more devices than kschedx evaluates") from None


def _picks(here: NodeDevices, picks: Sequence[tuple[str, int, bool, Mapping[str, int] | None]]) -> Iterator[Pick]:
    for request, place, admin_access, share in picks:
        yield Pick(request=request, device=here.devices[place], admin_access=admin_access, share=share)


@unique
class SearchOutcome(Enum):
    DONE = "done"
    FAILED = "failed"
    TOO_MANY = "too many"  # the claim would exceed the maximum number of devices: only another alternative may help


def _named_as_published(
    capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None, driver: str
) -> CapacityRequirements | None:
    """Rename the requested capacities as the device publishes them, with or without the driver's domain."""
    if wanted is None:
        return None

    def name_of(name: str) -> str:
        domain, slash, own = name.partition("/")
        other = own if slash and domain == driver else f"{driver}/{name}"
        return other if name not in capacity and other in capacity else name

    return replace(wanted, requests={name_of(name): amount for name, amount in wanted.requests.items()})


class AllocationSearch:
    """A search on one node. `requests`, `pools`, and `devices` explain why there is no solution."""

    def __init__(self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> None:
        self._allocator = allocator
        self._features = allocator.features
        self._node = node
        self._claims = claims
        here = allocator.slices.on_node(node)
        self.pools, self.devices = here.pools, here.devices
        self.requests: list[list[list[CheckedRequest]]] = []  # by claim, request, and alternative
        self._constraints: list[list[_AllocationConstraint]] = []
        self._matches: dict[tuple[DeviceID, int, int, int], bool] = {}
        self._in_use: dict[DeviceID, set[int]] = {}  # picked devices to the indexes of their claims
        self._drawn: dict[str, dict[CounterID, int]] = {}  # pool to what picked devices consume of its counters
        self._shares: dict[DeviceID, dict[str, int]] = {}
        self._picks: list[list[Pick]] = []
        self._steps = 0

    def run(self) -> Result | None:
        self.check()
        if not self.finds_all():
            for pool in self.pools:
                if pool.invalid and self._features.device_pools_are_judged_by_node:
                    raise FailureError(f"pool {pool.name} is invalid: {pool.invalid}")
                if pool.invalid:
                    raise UnavailableError("invalid resource pools were encountered")
            return None
        for index, picks in enumerate(self._picks):
            allocation_reach(self._node.name, self._claims[index], picks)  # it may be refused
        return tuple(tuple(picks) for picks in self._picks)

    def finds_all(self) -> bool:
        """Pick devices for all claims, and return whether there are enough."""
        return self._next(0, 0) is SearchOutcome.DONE

    # --- requests

    def check(self) -> None:
        """Read the claims. Raises `FailureError`."""
        for index, claim in enumerate(self._claims):
            self._check(index, claim)

    def _check(self, index: int, claim: ResourceClaim) -> None:
        requests: list[list[CheckedRequest]] = []
        self.requests.append(requests)
        least = 0
        for position, request in enumerate(claim.spec.devices.requests):
            if request.first_available and not self._features.prioritized_list:
                gate = "DRAPrioritizedList feature is disabled"
                raise FailureError(f"claim {claim.key}, request {request.name}: has subrequests, but the {gate}")
            options = list(alternatives(request))
            for wanted in options:
                if wanted.capacity is not None and not self._features.consumable_capacity:
                    kind = "subrequest" if wanted.parent else "request"
                    gate = "DRAConsumableCapacity feature is disabled"
                    phrase = f"claim {claim.key}, {kind} {wanted.name}: has capacity requests, but the {gate}"
                    if not self._features.is_stable:
                        raise FailureError(phrase)
            checked: list[CheckedRequest] = []
            requests.append(checked)
            for alternative, wanted in enumerate(options):
                remembered = max(alternative - self._features.device_alternatives_share_matches, 0)
                checked.append(self._check_request(claim, wanted, (index, position, remembered)))
            least += min((request.count for request in checked), default=0)
        if least > MAX_DEVICES_OF_CLAIM:
            self.too_many(claim, requests, least)
        self._picks.append([])
        self._constraints.append([self._constraint(claim, at) for at in range(len(claim.spec.devices.constraints))])

    def too_many(self, claim: ResourceClaim, requests: Sequence[Sequence[CheckedRequest]], devices: int) -> None:
        """Raise `FailureError` if a claim requests more devices than a claim can have."""
        limit = f"exceeds the claim limit of {MAX_DEVICES_OF_CLAIM}"
        raise FailureError(f"claim {claim.key}: number of requested devices {devices} {limit}")

    def _check_request(
        self, claim: ResourceClaim, wanted: RequestAlternative, at: tuple[int, int, int]
    ) -> CheckedRequest:
        named = f"claim {claim.key}, request {wanted.name}"
        for position, selector in enumerate(wanted.selectors):
            if selector.cel is None:
                unsupported = "CEL expression empty (unsupported selector type?)"
                raise FailureError(f"{named}, selector #{position}: {unsupported}")
        if wanted.admin_access is not None and not self._features.admin_access:
            raise FailureError(f"{named}: admin access is requested, but the feature is disabled")
        if not wanted.device_class_name:
            raise FailureError(f"{named}: missing device class name (unsupported request type?)")
        device_class = self._allocator.classes.get(wanted.device_class_name)
        if device_class is None:
            missing = f'deviceclass.resource.k8s.io "{wanted.device_class_name}" not found'
            raise FailureError(f"{named}: could not retrieve device class {wanted.device_class_name}: {missing}")
        if wanted.allocation_mode == AllocationMode.EXACT_COUNT:
            return CheckedRequest(wanted=wanted, device_class=device_class, count=wanted.count)
        if wanted.allocation_mode != AllocationMode.ALL:
            raise FailureError(f"{named}: unsupported count mode {wanted.allocation_mode}")
        return self._everything(named, wanted, device_class, at)

    def _everything(
        self, named: str, wanted: RequestAlternative, device_class: DeviceClass, at: tuple[int, int, int]
    ) -> CheckedRequest:
        checked = CheckedRequest(wanted=wanted, device_class=device_class, count=0)
        places: list[int] = []
        position = 0
        for pool in self.pools:
            for reason, state in ((pool.is_incomplete, "being updated"), (pool.invalid, "invalid")):
                if reason and self._features.broken_pools_reject_nodes:
                    return checked
                if reason:
                    phrase = f"asks for all devices, but resource pool {'/'.join(pool.id)} is currently {state}"
                    raise FailureError(f"{named}: {phrase}")
            for device in pool.devices:
                if self.is_selectable(at, checked, device) and self.has_capacity(wanted, device):
                    places.append(position)
                position += 1
        checked.everything = tuple(places)
        checked.count = len(places)
        return checked

    def _constraint(self, claim: ResourceClaim, position: int) -> _AllocationConstraint:
        constraint = claim.spec.devices.constraints[position]
        if constraint.match_attribute is not None:
            return _MatchAttribute(constraint.match_attribute, constraint.requests)
        if constraint.distinct_attribute is not None and not self._features.is_stable:
            return _DistinctAttribute(constraint.distinct_attribute, constraint.requests)
        empty = "empty constraint (unsupported constraint type?)"
        raise FailureError(f"claim {claim.key}, constraint #{position}: {empty}")

    # --- the search

    def _next(self, claim: int, request: int) -> SearchOutcome:
        self._count_step()
        if claim >= len(self._claims):
            return SearchOutcome.DONE
        requests = self.requests[claim]
        if request >= len(requests):
            outcome = self._next(claim + 1, 0)
            # another claim without a solution may have one after other picks
            return SearchOutcome.FAILED if outcome is SearchOutcome.TOO_MANY else outcome
        options = requests[request]
        if not options[0].wanted.parent:
            return self._devices_of((claim, request, 0), 0, 0)
        outcome = SearchOutcome.TOO_MANY
        for alternative in range(len(options)):
            tried = self._devices_of((claim, request, alternative), 0, 0)
            if tried is SearchOutcome.DONE:
                return tried
            if tried is SearchOutcome.FAILED:
                outcome = tried
        return outcome

    def _devices_of(self, at: tuple[int, int, int], number: int, start: int) -> SearchOutcome:
        """Allocate from device `number` of a request on. For this device, positions from `start` on are tried."""
        self._count_step()
        claim, request, alternative = at
        checked = self.requests[claim][request][alternative]
        wants_all = checked.wanted.allocation_mode == AllocationMode.ALL
        if wants_all and not checked.everything:
            return SearchOutcome.FAILED
        if number >= checked.count:
            return self._next(claim, request + 1)
        if len(self._picks[claim]) + checked.count - number > MAX_DEVICES_OF_CLAIM:
            return SearchOutcome.TOO_MANY
        if wants_all:
            # for all devices, the order does not matter, so there is nothing else to try
            device = self.devices[checked.everything[number]]
            if not self._pick(at, checked, device, must=True):
                return SearchOutcome.FAILED
            outcome = self._devices_of(at, number + 1, 0)
            if outcome is not SearchOutcome.DONE:
                self._take_back(at, checked, device)
            return outcome
        for position in range(start, len(self.devices)):
            device = self.devices[position]
            if not self._is_free(claim, checked.wanted, device):
                continue
            if not self.is_selectable(at, checked, device) or not self.has_capacity(checked.wanted, device):
                continue
            if not self._pick(at, checked, device, must=False):
                continue
            outcome = self._devices_of(at, number + 1, position + 1)
            if outcome is SearchOutcome.DONE:
                return outcome
            self._take_back(at, checked, device)
            if outcome is SearchOutcome.TOO_MANY:
                return outcome
        return SearchOutcome.FAILED

    def _count_step(self) -> None:
        self._steps += 1
        self._allocator.steps += 1
        if self._steps > _MOST_STEPS or self._allocator.steps > _MOST_STEPS_OF_CYCLE:
            claims = ", ".join(claim.key for claim in self._claims)
            raise UndecidableError(
                f"the claims {claims} have too many possible allocations on node {self._node.name} to try them all: "
                "kube-scheduler may find one, or give up after its filterTimeout"
            )

    def _is_free(self, claim: int, wanted: RequestAlternative, device: PooledDevice) -> bool:
        if wanted.admin_access:
            return claim not in self._in_use.get(device.id, ())
        allocated = self._allocator.allocated
        if (
            self._features.shared_devices_stay_shared
            and not self._is_shared(device.device)
            and allocated.has(device.id)
        ):
            return False
        return device.id not in allocated.devices and not self._in_use.get(device.id)

    def is_selectable(self, at: tuple[int, int, int], checked: CheckedRequest, device: PooledDevice) -> bool:
        if device.device.binding_conditions and not self._features.binding_conditions:
            return False
        key = (device.id, *at)
        known = self._matches.get(key)
        if known is None:
            known = self._matches[key] = self._selects(at[0], checked, device)
        return known

    def _selects(self, claim: int, checked: CheckedRequest, device: PooledDevice) -> bool:
        device_class = checked.device_class
        if not self.matches_all(f"class {device_class.name}", device_class.spec.selectors, device):
            return False
        if not self.matches_all(f"claim {self._claims[claim].key}", checked.wanted.selectors, device):
            return False
        return not device.slice.spec.per_device_node_selection or device_reaches(self._node, device.device)

    def matches_all(self, whose: str, selectors: Sequence[DeviceSelector], device: PooledDevice) -> bool:
        for position, each in enumerate(selectors):
            expression = each.cel.expression if each.cel is not None else ""
            known = self._allocator.solutions.matches(expression, device)
            if known:
                continue
            if known is False:
                return False
            try:
                matches = language().compile(expression, self._features.cel).matches(device.device, device.id[0])
            except (CompileError, EvaluationError) as error:
                kind = "compile" if isinstance(error, CompileError) else "runtime"
                failed = DeviceSelectorFailed(
                    owner=whose, expression=expression, device="/".join(device.id), error=str(error)
                )
                is_missing = self._features.missing_attributes_have_a_hint and "no such key:" in str(error)
                hint = _MISSING_ATTRIBUTE if is_missing else ""
                raise FailureError(f"{whose}: selector #{position}: CEL {kind} error: {error}{hint}", failed) from None
            except UndecidableError as error:
                raise UndecidableError(f"{whose}: selector #{position}: {error}") from None
            if not matches:
                return False
        return True

    def has_capacity(self, wanted: RequestAlternative, device: PooledDevice) -> bool:
        if not self._features.consumable_capacity:
            return True
        consumed = self._allocator.allocated.capacity.get(device.id, {})
        amounts = self._amounts(wanted, device)
        return capacity.fits_capacity(device.device.capacity, amounts, consumed, self._shares.get(device.id, {}))

    def short_capacities(self, wanted: RequestAlternative, device: PooledDevice) -> Iterator[tuple[str, int, int]]:
        consumed = self._allocator.allocated.capacity.get(device.id, {})
        return capacity.short_capacities(device.device.capacity, self._amounts(wanted, device), consumed)

    def _amounts(self, wanted: RequestAlternative, device: PooledDevice) -> CapacityRequirements | None:
        if self._features.capacities_have_two_names:
            return _named_as_published(device.device.capacity, wanted.capacity, device.id[0])
        return wanted.capacity

    # --- picking a device and taking it back

    def _pick(self, at: tuple[int, int, int], checked: CheckedRequest, picked: PooledDevice, *, must: bool) -> bool:
        """Pick a device and return whether that is possible after earlier picks. With `must`, a violated constraint is
        an error."""
        claim, wanted, device = at[0], checked.wanted, picked.device
        is_shared = self._is_shared(device)
        if not (is_shared and wanted.admin_access) and not self._is_free(claim, wanted, picked):
            return False
        if device.consumes_counters:
            if not self._features.partitionable:
                return False
            has_shares = is_shared and (picked.id in self._allocator.allocated.capacity or picked.id in self._shares)
            if not has_shares and not self._draw(picked):
                return False
        # from here on, upstream does not return consumed counters
        if self._features.taints and not wanted.tolerates(device.taints):
            return False
        for position, constraint in enumerate(self._constraints[claim]):
            if not constraint.add(wanted.base, wanted.alternative, picked):
                if must:
                    phrase = (
                        f"cannot add device {'/'.join(picked.id)} because a claim constraint would not be satisfied"
                    )
                    raise FailureError(f"claim {self._claims[claim].key}, request {wanted.name}: {phrase}")
                for earlier in self._constraints[claim][:position]:
                    earlier.remove(wanted.base, wanted.alternative)
                return False
        if not is_shared:
            self._in_use.setdefault(picked.id, set()).add(claim)
        if not self.has_capacity(wanted, picked):
            return False
        share = capacity.consumption(device.capacity, self._amounts(wanted, picked)) if is_shared else None
        if share is not None:
            shares = self._shares.setdefault(picked.id, {})
            for name, amount in share.items():
                shares[name] = shares.get(name, 0) + amount
        pick = Pick(request=wanted.full_name, device=picked, admin_access=bool(wanted.admin_access), share=share)
        self._picks[claim].append(pick)
        return True

    def _take_back(self, at: tuple[int, int, int], checked: CheckedRequest, device: PooledDevice) -> None:
        claim, wanted = at[0], checked.wanted
        for constraint in self._constraints[claim]:
            constraint.remove(wanted.base, wanted.alternative)
        self._in_use.get(device.id, set()).discard(claim)
        share = self._picks[claim].pop().share
        if not self._is_shared(device.device):
            if device.device.consumes_counters:
                self._give_back(device)
        elif share and (shares := self._shares.get(device.id)) is not None:  # picks that consume nothing leave no entry
            for name, amount in share.items():
                shares[name] -= amount
            if not any(shares.values()):
                del self._shares[device.id]

    def _is_shared(self, device: Device) -> bool:
        return self._features.consumable_capacity and device.allow_multiple_allocations

    def _draw(self, device: PooledDevice) -> bool:
        """Consume the pool's counters and return whether they suffice: all, not only those that the device uses."""
        taken = self._drawn.setdefault(device.pool.name, {})
        for counter, amount in drawn(device.device):
            taken[counter] = taken.get(counter, 0) + amount
        left = self._allocator.available.of(device.pool)
        if any(amount < taken.get(counter, 0) for counter, amount in left.items()):
            self._give_back(device)
            return False
        return True

    def _give_back(self, device: PooledDevice) -> None:
        taken = self._drawn[device.pool.name]
        for counter, amount in drawn(device.device):
            taken[counter] -= amount

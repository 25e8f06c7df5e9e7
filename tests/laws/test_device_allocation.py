"""A node can allocate devices to claims exactly if a solution exists, and its allocation is one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.devices import ResourceClaim
from kschedx.kube.types import Node
from kschedx.plugins.dynamic_resources.allocator import Allocator
from kschedx.plugins.dynamic_resources.pools import (
    DeviceFeatures,
    FailureError,
    Result,
    UnavailableError,
    allocated_state,
)
from kschedx.releases import resolve
from kschedx.snapshot.devices import MovingDevices
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node
from tests.device_builders import DRIVER, allocated, claim, device, device_class, request, resource_slice

Gpu = tuple[int, int]
"""Model and NUMA node."""
DeviceRequest = tuple[int, int]
"""Count and model of a request; model 2 stands for any."""

gpus = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=5)
requests = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=2)
claims = st.lists(st.tuples(requests, st.booleans()), min_size=1, max_size=2)


@given(gpus_of_node=gpus, requests_by_claim=claims, busy=st.sets(st.integers(0, 4), max_size=2))
def test_a_node_allocates_devices_exactly_if_a_solution_exists(
    gpus_of_node: list[Gpu], requests_by_claim: list[tuple[list[DeviceRequest], bool]], busy: set[int]
) -> None:
    allocated_devices = [at for at in sorted(busy) if at < len(gpus_of_node)]
    objects = [
        node("a"),
        device_class(),
        resource_slice("a", *(_device(at, item) for at, item in enumerate(gpus_of_node))),
    ]
    objects += [_claim(f"c{at}", *item) for at, item in enumerate(requests_by_claim)]
    objects += [allocated("busy", "a", *(f"d{at}" for at in allocated_devices))] if allocated_devices else []
    snapshot = Snapshot.from_objects(objects)
    devices = snapshot.devices
    allocator = Allocator.of(devices, DeviceFeatures.of(resolve()))
    resource_claims: list[ResourceClaim] = [devices.claims[f"default/c{at}"] for at in range(len(requests_by_claim))]
    result = allocator.allocate(snapshot.cluster.nodes[0], resource_claims)

    free = [at for at in range(len(gpus_of_node)) if at not in allocated_devices]
    assert (result is not None) == any(_solutions(gpus_of_node, free, list(_flat(requests_by_claim))))
    if result is not None:
        _check(result, gpus_of_node, requests_by_claim, allocated_devices)


def _device(at: int, gpu: Gpu) -> Manifest:
    return device(f"d{at}", model=gpu[0], numa=gpu[1])


def _claim(name: str, device_requests: list[DeviceRequest], same_numa: bool) -> Manifest:
    expression = f'device.attributes["{DRIVER}"].model == '
    requests = [
        request(f"r{at}", count=count, select=[] if model == 2 else [f"{expression}{model}"])
        for at, (count, model) in enumerate(device_requests)
    ]
    return claim(name, *requests, constraints=[{"matchAttribute": f"{DRIVER}/numa"}] if same_numa else [])


def _flat(requests_by_claim: list[tuple[list[DeviceRequest], bool]]) -> Iterator[tuple[int, DeviceRequest, bool]]:
    for number, (requests, same_numa) in enumerate(requests_by_claim):
        for item in requests:
            yield number, item, same_numa


def _solutions(
    gpus_of_node: Sequence[Gpu],
    free: list[int],
    pending_requests: list[tuple[int, DeviceRequest, bool]],
    numa: dict[int, int] | None = None,
) -> Iterator[bool]:
    """Yield once for every combination of devices that meets the requests in order."""
    if not pending_requests:
        yield True
        return
    numa = numa or {}
    number, (count, model), same_numa = pending_requests[0]
    for allocation in combinations([at for at in free if model in (2, gpus_of_node[at][0])], count):
        nodes = {gpus_of_node[at][1] for at in allocation} | ({numa[number]} if number in numa else set())
        if same_numa and len(nodes) > 1:
            continue
        remaining = [at for at in free if at not in allocation]
        yield from _solutions(
            gpus_of_node, remaining, pending_requests[1:], numa | {number: nodes.pop()} if same_numa else numa
        )


def _check(
    result: Result,
    gpus_of_node: list[Gpu],
    requests_by_claim: list[tuple[list[DeviceRequest], bool]],
    allocated_devices: list[int],
) -> None:
    used = [int(pick.device.id[2][1:]) for picks in result for pick in picks]
    assert len(used) == len(set(used))
    assert not set(used) & set(allocated_devices)
    for picks, (requests, same_numa) in zip(result, requests_by_claim, strict=True):
        for at, (count, model) in enumerate(requests):
            devices = [int(pick.device.id[2][1:]) for pick in picks if pick.request == f"r{at}"]
            assert len(devices) == count
            assert all(model in (2, gpus_of_node[item][0]) for item in devices)
        if same_numa:
            assert len({gpus_of_node[int(pick.device.id[2][1:])][1] for pick in picks}) <= 1


# --- results kept between nodes and claims


@given(seed=st.integers(0, 2**32))
def test_a_kept_allocation_equals_a_fresh_search(seed: int) -> None:
    """Other claims change in between; devices have shares, counters, taints, and serial numbers."""
    dice = random.Random(seed)
    names = [f"n{at}" for at in range(4)]
    claim_manifests = [_chosen_claim(dice, f"c{at}") for at in range(4)]
    objects = [device_class(), *(node(name) for name in names), *claim_manifests]
    for name in names:
        objects += _chosen_slices(dice, name)
    snapshot = Snapshot.from_objects(objects)
    devices = MovingDevices.moving(snapshot.devices)
    features = DeviceFeatures.of(resolve(feature_gates={"DRAPartitionableDevices": True}))
    allocator = Allocator.of(devices, features)
    claims = [devices.claims[f"default/c{at}"] for at in range(len(claim_manifests))]
    for step in range(8):
        name, selected_claims = dice.choice(names), dice.sample(claims, dice.randint(1, 2))
        on = snapshot.cluster.nodes[snapshot.cluster.index[name]]
        allocated_state(devices, shares=features.consumable_capacity)
        fresh = Allocator.of(devices.frozen(), features)
        assert _outcome(allocator.allocate, on, selected_claims) == _outcome(fresh.search, on, selected_claims)
        busy_node, busy_devices = dice.choice(names), dice.sample(["d0", "d1", "d2"], 2)
        if dice.random() < 0.5:
            holder = allocated("busy", busy_node, *busy_devices, shareID=f"{step}", consumedCapacity={"memory": "1Gi"})
        else:
            holder = allocated("busy", busy_node, *busy_devices)
        busy_claim = Snapshot.from_objects([holder]).devices.claims["default/busy"]
        devices.put({f"default/busy-{step % 3}": busy_claim if dice.random() < 0.8 else None})


def _outcome(
    search: Callable[[Node, Sequence[ResourceClaim]], Result | None], on: Node, claims: list[ResourceClaim]
) -> object:
    try:
        result = search(on, claims)
    except (FailureError, UnavailableError) as error:
        return str(error)
    return result and [
        [(pick.request, pick.device.id, pick.share, pick.admin_access) for pick in picks] for picks in result
    ]


def _chosen_claim(dice: random.Random, name: str) -> Manifest:
    expression = f'device.attributes["{DRIVER}"].model == '
    select = [] if dice.random() < 0.5 else [f"{expression}{dice.randint(0, 1)}"]
    fields: dict[str, object] = {"count": dice.randint(1, 2)}
    if dice.random() < 0.2:
        fields = {"allocationMode": "All"}
    if dice.random() < 0.3:
        fields["capacity"] = {"requests": {"memory": dice.choice(["1Gi", "2Gi"])}}
    constraints: list[Manifest] = [{"matchAttribute": f"{DRIVER}/numa"}] if dice.random() < 0.3 else []
    result = request(select=select)
    return claim(name, {**result, "exactly": {**_fields(result), **fields}}, constraints=constraints)


def _fields(manifest: Manifest) -> Manifest:
    fields = manifest["exactly"]
    assert isinstance(fields, dict)
    return fields


def _chosen_slices(dice: random.Random, name: str) -> Iterator[Manifest]:
    has_counters = dice.random() < 0.3
    devices = []
    for at in range(dice.randint(1, 3)):
        fields: dict[str, object] = {}
        if has_counters:
            fields["ConsumesCounters"] = [{"counterSet": "s", "counters": {"n": {"value": str(dice.randint(1, 2))}}}]
        elif dice.random() < 0.3:
            fields["AllowMultipleAllocations"] = True
        if dice.random() < 0.15:
            fields["Taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        model, numa = dice.randint(0, 1), dice.randint(0, 1)
        devices.append(
            device(
                f"d{at}", memory=dice.choice(["2Gi", "3Gi"]), model=model, numa=numa, serial=f"{name}-{at}", **fields
            )
        )
    slice_count = 2 if has_counters or dice.random() < 0.1 else 1
    pool = {"name": name, "generation": 1, "resourceSliceCount": slice_count}
    yield resource_slice(name, *devices, pool=pool)
    if has_counters:
        counters = [{"name": "s", "counters": {"n": {"value": "3"}}}]
        yield resource_slice(name, name=f"counters-{name}", pool=pool, devices=None, sharedCounters=counters)

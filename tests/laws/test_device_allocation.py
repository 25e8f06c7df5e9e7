"""A node can give claims their devices exactly if there is some way to do it, and what it gives is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.devices import ResourceClaim
from kschedx.plugins.dynamic_resources.allocator import Allocator
from kschedx.plugins.dynamic_resources.pools import DeviceFeatures, Result, allocated_state, slices
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node
from tests.device_builders import DRIVER, allocated, claim, device, device_class, request, resource_slice

Gpu = tuple[int, int]
"""Model and NUMA node."""
Wanted = tuple[int, int]
"""How many, and of which model; 2 for any."""

gpus = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=5)
requests = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=2)
claims = st.lists(st.tuples(requests, st.booleans()), min_size=1, max_size=2)


@given(found=gpus, wanted=claims, busy=st.sets(st.integers(0, 4), max_size=2))
def test_a_solution_is_found_where_there_is_one(
    found: list[Gpu], wanted: list[tuple[list[Wanted], bool]], busy: set[int]
) -> None:
    taken = [at for at in sorted(busy) if at < len(found)]
    objects = [node("a"), device_class(), resource_slice("a", *(_device(at, one) for at, one in enumerate(found)))]
    objects += [_claim(f"c{at}", *one) for at, one in enumerate(wanted)]
    objects += [allocated("busy", "a", *(f"d{at}" for at in taken))] if taken else []
    snapshot = Snapshot.from_objects(objects)
    features = DeviceFeatures.of(resolve())
    devices = snapshot.devices
    allocator = Allocator(features, allocated_state(devices, shares=True), devices.classes, slices(devices, features))
    asked: list[ResourceClaim] = [devices.claims[f"default/c{at}"] for at in range(len(wanted))]
    result = allocator.allocate(snapshot.cluster.nodes[0], asked)

    free = [at for at in range(len(found)) if at not in taken]
    assert (result is not None) == any(_solutions(found, free, list(_flat(wanted))))
    if result is not None:
        _check(result, found, wanted, taken)


def _device(at: int, gpu: Gpu) -> Manifest:
    return device(f"d{at}", model=gpu[0], numa=gpu[1])


def _claim(name: str, wanted: list[Wanted], same_numa: bool) -> Manifest:
    expression = f'device.attributes["{DRIVER}"].model == '
    asked = [
        request(f"r{at}", count=count, select=[] if model == 2 else [f"{expression}{model}"])
        for at, (count, model) in enumerate(wanted)
    ]
    return claim(name, *asked, constraints=[{"matchAttribute": f"{DRIVER}/numa"}] if same_numa else [])


def _flat(wanted: list[tuple[list[Wanted], bool]]) -> Iterator[tuple[int, Wanted, bool]]:
    for number, (asked, same_numa) in enumerate(wanted):
        for one in asked:
            yield number, one, same_numa


def _solutions(
    found: Sequence[Gpu], free: list[int], wanted: list[tuple[int, Wanted, bool]], numa: dict[int, int] | None = None
) -> Iterator[bool]:
    """Every way to meet the requests one after the other."""
    if not wanted:
        yield True
        return
    numa = numa or {}
    number, (count, model), same_numa = wanted[0]
    for chosen in combinations([at for at in free if model in (2, found[at][0])], count):
        nodes = {found[at][1] for at in chosen} | ({numa[number]} if number in numa else set())
        if same_numa and len(nodes) > 1:
            continue
        left = [at for at in free if at not in chosen]
        yield from _solutions(found, left, wanted[1:], numa | {number: nodes.pop()} if same_numa else numa)


def _check(result: Result, found: list[Gpu], wanted: list[tuple[list[Wanted], bool]], taken: list[int]) -> None:
    used = [int(pick.device.id[2][1:]) for picks in result for pick in picks]
    assert len(used) == len(set(used))
    assert not set(used) & set(taken)
    for picks, (asked, same_numa) in zip(result, wanted, strict=True):
        for at, (count, model) in enumerate(asked):
            mine = [int(pick.device.id[2][1:]) for pick in picks if pick.request == f"r{at}"]
            assert len(mine) == count
            assert all(model in (2, found[one][0]) for one in mine)
        if same_numa:
            assert len({found[int(pick.device.id[2][1:])][1] for pick in picks}) <= 1

"""What a pod asks for and a node offers, as kube-scheduler counts it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.names import is_extended_resource, is_scalar_resource
from kschedx.kube.quantity import milli_value, value
from kschedx.kube.resources import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    PodRequest,
    RequestOptions,
    container_limits,
    container_requests,
    node_allocatable,
    pod_request,
    request_parts,
)
from kschedx.kube.types import PodSpec, PodStatus

Json = dict[str, object]

RELEASE = RequestOptions(use_status_resources=True, pod_level_resources=True, pod_level_in_place=True)
GI = 1024**3


def container(name: str, *, sidecar: bool = False, limits: Json | None = None, **requests: str) -> Json:
    """Underscores in the names of resources stand for dashes."""
    policy: Json = {"restartPolicy": "Always"} if sidecar else {}
    written = {resource.replace("_", "-"): amount for resource, amount in requests.items()}
    return {"name": name, "resources": {"requests": written, "limits": limits or {}}, **policy}


def spec_of(
    *containers: Mapping[str, object], init: tuple[Mapping[str, object], ...] = (), **fields: object
) -> PodSpec:
    return msgspec.convert({"containers": containers, "initContainers": init, **fields}, PodSpec)


def request_of(spec: PodSpec, status: Json | None = None, options: RequestOptions = RELEASE) -> PodRequest:
    return pod_request(spec, msgspec.convert(status or {}, PodStatus), options)


def parts_of(spec: PodSpec, resource: str = "cpu") -> list[tuple[str, int]]:
    return [(part.label, part.amount) for part in request_parts(spec, PodStatus(), RELEASE, resource)]


WEB = container("web", cpu="1500m", memory="1Gi")


@pytest.mark.parametrize(
    ("spec", "cpu", "parts"),
    [
        pytest.param(spec_of(WEB), 1500, [("web", 1500)], id="one container"),
        pytest.param(
            spec_of(WEB, container("log", cpu="500m")), 2000, [("web", 1500), ("log", 500)], id="containers add up"
        ),
        pytest.param(spec_of(WEB, container("log")), 1500, [("web", 1500)], id="nothing asked is no part"),
        pytest.param(spec_of(container("web", cpu="0")), 0, [], id="zero is no part"),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="1"),)), 1500, [("web", 1500)], id="a small start is free"
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="4"), container("seed", cpu="3"))),
            4000,
            [("init migrate", 4000)],
            id="the largest start counts, starts do not add up",
        ),
        pytest.param(
            spec_of(WEB, init=(container("proxy", sidecar=True, cpu="250m"),)),
            1750,
            [("web", 1500), ("proxy", 250)],
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            spec_of(WEB, init=(container("proxy", sidecar=True, cpu="1"), container("migrate", cpu="2"))),
            3000,
            [("init migrate", 2000), ("proxy", 1000)],
            id="a sidecar before a start runs beside it",
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="2"), container("proxy", sidecar=True, cpu="1"))),
            2500,
            [("web", 1500), ("proxy", 1000)],
            id="a sidecar after a start does not",
        ),
        pytest.param(
            spec_of(
                WEB,
                init=(
                    container("first", sidecar=True, cpu="100m"),
                    container("migrate", cpu="8"),
                    container("second", sidecar=True, cpu="200m"),
                ),
            ),
            8100,
            [("init migrate", 8000), ("first", 100)],
            id="only the sidecars before it",
        ),
        pytest.param(
            spec_of(WEB, overhead={"cpu": "250m"}), 1750, [("web", 1500), ("overhead", 250)], id="overhead is added"
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="4"),), overhead={"cpu": "250m"}),
            4250,
            [("init migrate", 4000), ("overhead", 250)],
            id="overhead is added to a start",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "3"}}, overhead={"cpu": "250m"}),
            3250,
            [("pod-level resources", 3000), ("overhead", 250)],
            id="the pod level replaces the containers, not the overhead",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"memory": "3Gi"}}), 1500, [("web", 1500)], id="of that resource alone"
        ),
        pytest.param(
            spec_of(WEB, resources={"limits": {"cpu": "3"}}), 1500, [("web", 1500)], id="a pod-level limit asks nothing"
        ),
    ],
)
def test_the_request_and_what_it_is_made_of(spec: PodSpec, cpu: int, parts: list[tuple[str, int]]) -> None:
    assert request_of(spec).amounts["cpu"] == cpu
    assert parts_of(spec) == parts


def test_each_resource_has_its_own_largest_moment() -> None:
    spec = spec_of(WEB, init=(container("migrate", cpu="4", memory="512Mi"),))

    assert request_of(spec).amounts == {"cpu": 4000, "memory": GI}
    assert parts_of(spec, "memory") == [("web", GI)]


@pytest.mark.parametrize(
    ("resources", "counted"),
    [
        (
            {"cpu": "100m", "memory": "1Ki", "ephemeral-storage": "1Gi"},
            {"cpu": 100, "memory": 1024, "ephemeral-storage": GI},
        ),
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": 2}),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": 4 * 1024**2}),
        ({"attachable-volumes-csi-x": "3"}, {"attachable-volumes-csi-x": 3}),
        ({"pods": "5", "storage": "1Gi", "gpu": "1", "requests.acme.io/x": "1"}, {}),
        ({"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": 0}),
    ],
)
def test_only_resources_that_the_scheduler_counts(resources: dict[str, str], counted: dict[str, int]) -> None:
    spec = spec_of({"name": "web", "resources": {"requests": resources}})

    assert request_of(spec).amounts == counted
    assert node_allocatable(dict(resources))[0] == counted


def test_amounts_are_summed_exactly_and_rounded_up_once() -> None:
    spec = spec_of(*(container(name, cpu="100u", memory="100m") for name in "abc"))

    assert request_of(spec).amounts == {"cpu": 1, "memory": 1}
    assert parts_of(spec) == [("a", 1)]


def test_a_sum_beyond_int64_wraps_around() -> None:
    spec = spec_of(*(container(name, memory="8Ei") for name in "ab"))

    assert request_of(spec).amounts["memory"] == -2


DEFAULTS = (DEFAULT_MILLI_CPU, DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("spec", "nonzero", "without_pod_level"),
    [
        pytest.param(spec_of(WEB), (1500, GI), (1500, GI), id="nothing is missing"),
        pytest.param(
            spec_of(container("a"), container("b", cpu="1")),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="the default for each container without",
        ),
        pytest.param(spec_of(container("a", cpu="0", memory="0")), (0, 0), (0, 0), id="an explicit zero is zero"),
        pytest.param(
            spec_of(container("a", cpu="1", memory="1Gi"), init=(container("proxy", sidecar=True),)),
            (1000 + DEFAULT_MILLI_CPU, GI + DEFAULT_MEMORY),
            (1000 + DEFAULT_MILLI_CPU, GI + DEFAULT_MEMORY),
            id="for sidecars too",
        ),
        pytest.param(
            spec_of(container("a", cpu="10m", memory="1Mi"), init=(container("start"),)),
            DEFAULTS,
            DEFAULTS,
            id="a start without requests needs the default",
        ),
        pytest.param(
            spec_of(container("a"), resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
            (1000, GI),
            DEFAULTS,
            id="the pod level leaves nothing missing",
        ),
        pytest.param(
            spec_of(container("a"), container("b"), resources={"requests": {"memory": "1Gi"}}),
            (2 * DEFAULT_MILLI_CPU, GI),
            (2 * DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="what the pod level lacks is missing in each container",
        ),
        pytest.param(
            spec_of(container("a", cpu="1"), container("b"), resources={"requests": {"memory": "1Gi"}}),
            (1000, GI),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="unless one container has it",
        ),
    ],
)
def test_defaults_for_scores(spec: PodSpec, nonzero: tuple[int, int], without_pod_level: tuple[int, int]) -> None:
    request = request_of(spec)
    without = request_of(spec, options=replace(RELEASE, pod_level_resources=False))

    assert (request.nonzero_cpu, request.nonzero_memory) == nonzero
    assert (without.nonzero_cpu, without.nonzero_memory) == without_pod_level


RESIZED: Json = {
    "containerStatuses": [
        {"name": "web", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3", "memory": "2Gi"}}
    ]
}
INFEASIBLE: Json = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED: Json = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
POD_LEVEL_RESIZED: Json = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"memory": "4Gi"}}


@pytest.mark.parametrize(
    ("spec", "status", "amounts"),
    [
        pytest.param(spec_of(WEB), RESIZED, {"cpu": 3000, "memory": 2 * GI}, id="the largest of the three"),
        pytest.param(
            spec_of(container("web", cpu="4", memory="1Gi")),
            RESIZED | DEFERRED,
            {"cpu": 4000, "memory": 2 * GI},
            id="what is wanted counts while it is deferred",
        ),
        pytest.param(
            spec_of(container("web", cpu="4", memory="1Gi")),
            RESIZED | INFEASIBLE,
            {"cpu": 3000, "memory": 2 * GI},
            id="what cannot be had does not count",
        ),
        pytest.param(
            spec_of(WEB),
            {"containerStatuses": [{"name": "web", "allocatedResources": {"cpu": "3"}}]},
            {"cpu": 1500, "memory": GI},
            id="without actuated resources the status says nothing",
        ),
        pytest.param(
            spec_of(container("app"), init=(container("web", cpu="1"),)),
            {"initContainerStatuses": RESIZED["containerStatuses"]},
            {"cpu": 1000},
            id="an init container is not resized",
        ),
        pytest.param(
            spec_of(container("app"), init=(container("web", sidecar=True, cpu="1"),)),
            {"initContainerStatuses": RESIZED["containerStatuses"]},
            {"cpu": 3000, "memory": 2 * GI},
            id="a sidecar is",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "4", "memory": "1Gi"}}),
            POD_LEVEL_RESIZED,
            {"cpu": 5000, "memory": 4 * GI},
            id="the pod level",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "6", "memory": "1Gi"}}),
            POD_LEVEL_RESIZED | INFEASIBLE,
            {"cpu": 5000, "memory": 4 * GI},
            id="the pod level, infeasible",
        ),
    ],
)
def test_a_resize_in_place(spec: PodSpec, status: Json, amounts: dict[str, int]) -> None:
    assert request_of(spec, status).amounts == amounts


def test_each_part_has_its_gate() -> None:
    spec = spec_of(WEB, resources={"requests": {"cpu": "4"}})
    no_status = replace(RELEASE, use_status_resources=False)

    assert request_of(spec, POD_LEVEL_RESIZED).amounts["cpu"] == 5000
    assert request_of(spec, POD_LEVEL_RESIZED, no_status).amounts["cpu"] == 4000
    assert request_of(spec, POD_LEVEL_RESIZED, replace(RELEASE, pod_level_in_place=False)).amounts["cpu"] == 4000
    assert request_of(spec, POD_LEVEL_RESIZED, replace(RELEASE, pod_level_resources=False)).amounts["cpu"] == 1500
    assert request_of(spec_of(WEB), RESIZED, no_status).amounts["cpu"] == 1500


def test_what_the_containers_ask_for_is_written_as_they_wrote_it() -> None:
    spec = spec_of(
        container("a", cpu="0", memory="1536Mi", limits={"hugepages-2Mi": "2Mi"}),
        container("b", cpu="1500m", memory="512Mi", limits={"hugepages-2Mi": "4Mi"}),
        overhead={"cpu": "8"},
        resources={"requests": {"cpu": "9"}},
    )

    assert {name: str(amount) for name, amount in container_requests(spec).items()} == {"cpu": "1500m", "memory": "2Gi"}
    assert {name: str(amount) for name, amount in container_limits(spec).items()} == {"hugepages-2Mi": "6Mi"}


def test_the_larger_moment_is_written_as_its_own_container_wrote_it() -> None:
    spec = spec_of(container("a", memory="134217728"), init=(container("b", memory="1Gi"),))

    assert {name: str(amount) for name, amount in container_requests(spec).items()} == {"memory": "1Gi"}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("cpu", False, False),
        ("gpu", False, False),
        ("kubernetes.io/thing", False, True),
        ("example.kubernetes.io/thing", False, True),
        ("hugepages-1Gi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("requests.acme.io/gpu", False, False),
        ("acme.io/gpu/a100", False, False),
        ("Acme.io/gpu", False, False),
        ("acme.io/", False, False),
        ("acme.io/" + "g" * 63, True, True),
        ("acme.io/" + "g" * 64, False, False),
        (".".join(["a" * 60] * 4) + "/gpu", True, True),
        (".".join(["a" * 61] * 4) + "/gpu", False, False),
    ],
)
def test_kinds_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar


def test_a_node_offers_amounts_and_a_number_of_pods() -> None:
    offered = node_allocatable({"cpu": "3920m", "memory": "15.5Gi", "pods": 110, "nvidia.com/gpu": "4", "gpu": "1"})

    assert offered == ({"cpu": 3920, "memory": 31 * GI // 2, "nvidia.com/gpu": 4}, 110)
    assert node_allocatable({}) == ({}, 0)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (spec_of(WEB, container("log", cpu="much")), "spec.containers[1].resources.requests[cpu]"),
        (spec_of(WEB, init=(container("start", memory="1 GB"),)), "spec.initContainers[0].resources.requests[memory]"),
        (spec_of(WEB, overhead={"cpu": "?"}), "spec.overhead[cpu]"),
        (spec_of(WEB, resources={"requests": {"cpu": ""}}), "spec.resources.requests[cpu]"),
    ],
)
def test_a_bad_quantity_is_named_by_its_field(spec: PodSpec, field: str) -> None:
    with pytest.raises(InputError, match="quantit") as caught:
        request_of(spec)
    assert caught.value.place.field == field


def test_a_bad_quantity_of_a_node_is_named_by_its_resource() -> None:
    with pytest.raises(InputError) as caught:
        node_allocatable({"acme.io/gpu": "two"})
    assert caught.value.place.field == "[acme.io/gpu]"


def test_a_huge_exponent_takes_no_time() -> None:
    assert request_of(spec_of(container("web", memory="1e2000000000"))).amounts == {"memory": 0}


AMOUNTS = st.sampled_from(["0", "1u", "1m", "250m", "1", "1500m", "3", "64", "1Ki", "1.5Gi"])
CONTAINERS = st.lists(
    st.dictionaries(st.sampled_from(["cpu", "memory", "acme.io/gpu", "hugepages-2Mi"]), AMOUNTS), min_size=1, max_size=4
)
INIT_CONTAINERS = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from(["cpu", "memory", "acme.io/gpu"]), AMOUNTS)), max_size=4
)
LISTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS, max_size=2)


@st.composite
def pod_specs(draw: st.DrawFn, *, pod_level: bool = True) -> PodSpec:
    return spec_of(
        *({"name": f"c{index}", "resources": {"requests": item}} for index, item in enumerate(draw(CONTAINERS))),
        init=tuple(
            {"name": f"i{index}", "resources": {"requests": item}, "restartPolicy": "Always" if sidecar else None}
            for index, (sidecar, item) in enumerate(draw(INIT_CONTAINERS))
        ),
        overhead=draw(LISTS),
        resources={"requests": draw(LISTS)} if pod_level else None,
    )


@given(pod_specs())
def test_the_parts_add_up_to_the_request(spec: PodSpec) -> None:
    for resource, amount in request_of(spec).amounts.items():
        parts = request_parts(spec, PodStatus(), RELEASE, resource)
        assert sum(part.amount for part in parts) == amount


@given(pod_specs(pod_level=False))
def test_a_pod_asks_for_at_least_as_much_as_each_of_its_containers(spec: PodSpec) -> None:
    amounts = request_of(spec).amounts
    for item in (*spec.containers, *spec.init_containers):
        for resource, written in item.resources.requests.items():
            assert amounts[resource] >= (milli_value(written) if resource == "cpu" else value(written))


@given(pod_specs())
def test_defaults_for_scores_never_lower_a_request(spec: PodSpec) -> None:
    request = request_of(spec)

    assert request.nonzero_cpu >= request.amounts.get("cpu", 0)
    assert request.nonzero_memory >= request.amounts.get("memory", 0)


@given(pod_specs(pod_level=False))
def test_a_sidecar_costs_least_when_it_starts_last(spec: PodSpec) -> None:
    sidecars = tuple(init_container for init_container in spec.init_containers if init_container.is_restartable_init)
    starts = tuple(init_container for init_container in spec.init_containers if not init_container.is_restartable_init)
    last = request_of(msgspec.structs.replace(spec, init_containers=starts + sidecars)).amounts
    first = request_of(msgspec.structs.replace(spec, init_containers=sidecars + starts)).amounts

    for resource, amount in request_of(spec).amounts.items():
        assert last[resource] <= amount <= first[resource]

"""Requests of pods and allocatable of nodes, as kube-scheduler counts them."""

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
    """Return a container with these requests; underscores in names mean dashes."""
    policy: Json = {"restartPolicy": "Always"} if sidecar else {}
    quantities = {resource.replace("_", "-"): amount for resource, amount in requests.items()}
    return {"name": name, "resources": {"requests": quantities, "limits": limits or {}}, **policy}


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
            spec_of(WEB, container("log", cpu="500m")), 2000, [("web", 1500), ("log", 500)], id="containers are summed"
        ),
        pytest.param(
            spec_of(WEB, container("log")), 1500, [("web", 1500)], id="a container without a request is no part"
        ),
        pytest.param(spec_of(container("web", cpu="0")), 0, [], id="zero is no part"),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="1"),)),
            1500,
            [("web", 1500)],
            id="a small init container adds nothing",
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="4"), container("seed", cpu="3"))),
            4000,
            [("init migrate", 4000)],
            id="the largest init container counts; init containers are not summed",
        ),
        pytest.param(
            spec_of(WEB, init=(container("proxy", sidecar=True, cpu="250m"),)),
            1750,
            [("web", 1500), ("proxy", 250)],
            id="a sidecar is added to the containers",
        ),
        pytest.param(
            spec_of(WEB, init=(container("proxy", sidecar=True, cpu="1"), container("migrate", cpu="2"))),
            3000,
            [("init migrate", 2000), ("proxy", 1000)],
            id="a sidecar is added to later init containers",
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="2"), container("proxy", sidecar=True, cpu="1"))),
            2500,
            [("web", 1500), ("proxy", 1000)],
            id="a sidecar is not added to earlier init containers",
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
            id="only earlier sidecars are added",
        ),
        pytest.param(
            spec_of(WEB, overhead={"cpu": "250m"}), 1750, [("web", 1500), ("overhead", 250)], id="overhead is added"
        ),
        pytest.param(
            spec_of(WEB, init=(container("migrate", cpu="4"),), overhead={"cpu": "250m"}),
            4250,
            [("init migrate", 4000), ("overhead", 250)],
            id="overhead is added to an init container",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "3"}}, overhead={"cpu": "250m"}),
            3250,
            [("pod-level resources", 3000), ("overhead", 250)],
            id="pod-level requests replace the containers, not the overhead",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"memory": "3Gi"}}),
            1500,
            [("web", 1500)],
            id="pod-level requests of another resource",
        ),
        pytest.param(
            spec_of(WEB, resources={"limits": {"cpu": "3"}}),
            1500,
            [("web", 1500)],
            id="a pod-level limit is no request",
        ),
    ],
)
def test_the_request_of_a_pod_and_its_parts(spec: PodSpec, cpu: int, parts: list[tuple[str, int]]) -> None:
    assert request_of(spec).amounts["cpu"] == cpu
    assert parts_of(spec) == parts


def test_each_resource_has_its_own_maximum() -> None:
    spec = spec_of(WEB, init=(container("migrate", cpu="4", memory="512Mi"),))

    assert request_of(spec).amounts == {"cpu": 4000, "memory": GI}
    assert parts_of(spec, "memory") == [("web", GI)]


@pytest.mark.parametrize(
    ("resources", "amounts"),
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
def test_resources_that_the_scheduler_counts(resources: dict[str, str], amounts: dict[str, int]) -> None:
    spec = spec_of({"name": "web", "resources": {"requests": resources}})

    assert request_of(spec).amounts == amounts
    assert node_allocatable(dict(resources))[0] == amounts


def test_requests_are_summed_and_rounded_up_once() -> None:
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
        pytest.param(spec_of(WEB), (1500, GI), (1500, GI), id="no missing request"),
        pytest.param(
            spec_of(container("a"), container("b", cpu="1")),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="the default for each container without a request",
        ),
        pytest.param(spec_of(container("a", cpu="0", memory="0")), (0, 0), (0, 0), id="an explicit zero is zero"),
        pytest.param(
            spec_of(container("a", cpu="1", memory="1Gi"), init=(container("proxy", sidecar=True),)),
            (1000 + DEFAULT_MILLI_CPU, GI + DEFAULT_MEMORY),
            (1000 + DEFAULT_MILLI_CPU, GI + DEFAULT_MEMORY),
            id="the default for a sidecar",
        ),
        pytest.param(
            spec_of(container("a", cpu="10m", memory="1Mi"), init=(container("start"),)),
            DEFAULTS,
            DEFAULTS,
            id="the default for an init container",
        ),
        pytest.param(
            spec_of(container("a"), resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
            (1000, GI),
            DEFAULTS,
            id="pod-level requests replace defaults",
        ),
        pytest.param(
            spec_of(container("a"), container("b"), resources={"requests": {"memory": "1Gi"}}),
            (2 * DEFAULT_MILLI_CPU, GI),
            (2 * DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="the default for each container if pod-level requests lack the resource",
        ),
        pytest.param(
            spec_of(container("a", cpu="1"), container("b"), resources={"requests": {"memory": "1Gi"}}),
            (1000, GI),
            (1000 + DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY),
            id="no default if one container requests the resource",
        ),
    ],
)
def test_default_requests_for_scores(
    spec: PodSpec, nonzero: tuple[int, int], without_pod_level: tuple[int, int]
) -> None:
    request = request_of(spec)
    without_pod_resources = request_of(spec, options=replace(RELEASE, pod_level_resources=False))

    assert (request.nonzero_cpu, request.nonzero_memory) == nonzero
    assert (without_pod_resources.nonzero_cpu, without_pod_resources.nonzero_memory) == without_pod_level


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
            id="the desired request counts while the resize is deferred",
        ),
        pytest.param(
            spec_of(container("web", cpu="4", memory="1Gi")),
            RESIZED | INFEASIBLE,
            {"cpu": 3000, "memory": 2 * GI},
            id="the desired request does not count if the resize is infeasible",
        ),
        pytest.param(
            spec_of(WEB),
            {"containerStatuses": [{"name": "web", "allocatedResources": {"cpu": "3"}}]},
            {"cpu": 1500, "memory": GI},
            id="a status without actuated resources does not count",
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
            id="a sidecar is resized",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "4", "memory": "1Gi"}}),
            POD_LEVEL_RESIZED,
            {"cpu": 5000, "memory": 4 * GI},
            id="pod-level resources",
        ),
        pytest.param(
            spec_of(WEB, resources={"requests": {"cpu": "6", "memory": "1Gi"}}),
            POD_LEVEL_RESIZED | INFEASIBLE,
            {"cpu": 5000, "memory": 4 * GI},
            id="pod-level resources, infeasible",
        ),
    ],
)
def test_requests_during_a_resize(spec: PodSpec, status: Json, amounts: dict[str, int]) -> None:
    assert request_of(spec, status).amounts == amounts


def test_gates_of_resizes_and_pod_level_resources() -> None:
    spec = spec_of(WEB, resources={"requests": {"cpu": "4"}})
    no_status = replace(RELEASE, use_status_resources=False)

    assert request_of(spec, POD_LEVEL_RESIZED).amounts["cpu"] == 5000
    assert request_of(spec, POD_LEVEL_RESIZED, no_status).amounts["cpu"] == 4000
    assert request_of(spec, POD_LEVEL_RESIZED, replace(RELEASE, pod_level_in_place=False)).amounts["cpu"] == 4000
    assert request_of(spec, POD_LEVEL_RESIZED, replace(RELEASE, pod_level_resources=False)).amounts["cpu"] == 1500
    assert request_of(spec_of(WEB), RESIZED, no_status).amounts["cpu"] == 1500


def test_sums_keep_the_format_of_the_containers() -> None:
    spec = spec_of(
        container("a", cpu="0", memory="1536Mi", limits={"hugepages-2Mi": "2Mi"}),
        container("b", cpu="1500m", memory="512Mi", limits={"hugepages-2Mi": "4Mi"}),
        overhead={"cpu": "8"},
        resources={"requests": {"cpu": "9"}},
    )

    assert {name: str(amount) for name, amount in container_requests(spec).items()} == {"cpu": "1500m", "memory": "2Gi"}
    assert {name: str(amount) for name, amount in container_limits(spec).items()} == {"hugepages-2Mi": "6Mi"}


def test_a_maximum_keeps_the_format_of_its_container() -> None:
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
def test_extended_and_scalar_resources(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar


def test_allocatable_of_a_node() -> None:
    allocatable = node_allocatable({"cpu": "3920m", "memory": "15.5Gi", "pods": 110, "nvidia.com/gpu": "4", "gpu": "1"})

    assert allocatable == ({"cpu": 3920, "memory": 31 * GI // 2, "nvidia.com/gpu": 4}, 110)
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
def test_an_error_names_the_field_of_an_invalid_quantity(spec: PodSpec, field: str) -> None:
    with pytest.raises(InputError, match="quantit") as error:
        request_of(spec)
    assert error.value.place.field == field


def test_an_error_names_the_resource_of_an_invalid_quantity() -> None:
    with pytest.raises(InputError) as error:
        node_allocatable({"acme.io/gpu": "two"})
    assert error.value.place.field == "[acme.io/gpu]"


def test_a_huge_exponent_is_not_expanded() -> None:
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
def test_the_parts_sum_to_the_request(spec: PodSpec) -> None:
    for resource, amount in request_of(spec).amounts.items():
        parts = request_parts(spec, PodStatus(), RELEASE, resource)
        assert sum(part.amount for part in parts) == amount


@given(pod_specs(pod_level=False))
def test_a_pod_requests_at_least_as_much_as_each_container(spec: PodSpec) -> None:
    amounts = request_of(spec).amounts
    for item in (*spec.containers, *spec.init_containers):
        for resource, quantity in item.resources.requests.items():
            assert amounts[resource] >= (milli_value(quantity) if resource == "cpu" else value(quantity))


@given(pod_specs())
def test_defaults_for_scores_never_lower_a_request(spec: PodSpec) -> None:
    request = request_of(spec)

    assert request.nonzero_cpu >= request.amounts.get("cpu", 0)
    assert request.nonzero_memory >= request.amounts.get("memory", 0)


@given(pod_specs(pod_level=False))
def test_a_sidecar_that_starts_last_has_the_lowest_request(spec: PodSpec) -> None:
    sidecars = tuple(init_container for init_container in spec.init_containers if init_container.is_restartable_init)
    init_containers = tuple(
        init_container for init_container in spec.init_containers if not init_container.is_restartable_init
    )
    sidecars_last = request_of(msgspec.structs.replace(spec, init_containers=init_containers + sidecars)).amounts
    sidecars_first = request_of(msgspec.structs.replace(spec, init_containers=sidecars + init_containers)).amounts

    for resource, amount in request_of(spec).amounts.items():
        assert sidecars_last[resource] <= amount <= sidecars_first[resource]

"""LimitRanges: their defaults, and the messages of their refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.apiserver.admission import apply_limit_range, default_limit_range, limit_range_refusal
from kschedx.errors import InputError
from kschedx.kube.types import LimitRange, PodSpec

Json = dict[str, Any]


def limit_range(*items: Json) -> LimitRange:
    manifest = {"metadata": {"name": "bounds", "namespace": "shop"}, "spec": {"limits": list(items)}}
    return default_limit_range(msgspec.convert(manifest, LimitRange))


def container_limit_range(**bounds: Json) -> LimitRange:
    return limit_range({"type": "Container", **bounds})


def spec_of(*containers: Json, init: tuple[Json, ...] = (), **fields: object) -> PodSpec:
    """Return the spec of containers and init containers with these resources."""
    manifest = {
        "containers": [{"name": f"c{index}", "resources": resources} for index, resources in enumerate(containers)],
        "initContainers": [{"name": f"i{index}", "resources": resources} for index, resources in enumerate(init)],
        **fields,
    }
    return msgspec.convert(manifest, PodSpec)


def resources_with(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {"requests": requests or {}, "limits": limits or {}}


# --- defaults of a LimitRange


@pytest.mark.parametrize(
    ("bounds", "default", "default_request"),
    [
        pytest.param({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}, id="max is the limit and the request"),
        pytest.param({"min": {"cpu": "1"}}, {}, {"cpu": "1"}, id="min is the request only"),
        pytest.param(
            {"max": {"cpu": "4"}, "default": {"cpu": "2"}, "min": {"cpu": "1"}},
            {"cpu": "2"},
            {"cpu": "2"},
            id="the default limit precedes both",
        ),
        pytest.param(
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}},
            {"cpu": "2"},
            {"cpu": "500m"},
            id="all fields set",
        ),
        pytest.param({"default": {"cpu": "0.0001"}}, {"cpu": "1m"}, {"cpu": "1m"}, id="rounded up to a thousandth"),
        pytest.param(
            {"max": {"cpu": "2"}, "default": {"memory": "1Gi"}},
            {"cpu": "2", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
            id="each resource separately",
        ),
    ],
)
def test_defaults_of_an_item_for_containers(bounds: Json, default: Json, default_request: Json) -> None:
    (item,) = container_limit_range(**bounds).spec.limits
    assert (item.default, item.default_request) == (default, default_request)


def test_items_of_other_types_have_no_defaults() -> None:
    (item,) = limit_range({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}}).spec.limits
    assert (item.default, item.default_request) == ({}, {})


def test_an_error_names_the_field_of_an_invalid_quantity() -> None:
    with pytest.raises(InputError, match=r"^spec\.limits\[1\]\.max\[cpu\]: quantities must match"):
        limit_range({"type": "Pod"}, {"type": "Container", "max": {"cpu": "two"}})


# --- defaults of containers


@pytest.mark.parametrize(
    ("items", "before", "after"),
    [
        pytest.param(
            [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "200m", "memory": "64Mi"}}],
            resources_with(),
            resources_with({"cpu": "200m", "memory": "64Mi"}, {"cpu": "500m"}),
            id="no resources",
        ),
        pytest.param(
            [{"type": "Container", "default": {"cpu": "500m"}}],
            resources_with({"cpu": "1"}),
            resources_with({"cpu": "1"}, {"cpu": "500m"}),
            id="a limit below the request, which validation refuses",
        ),
        pytest.param(
            [{"type": "Container", "default": {"cpu": "1"}}, {"type": "Container", "default": {"cpu": "2"}}],
            resources_with(),
            resources_with({"cpu": "2"}, {"cpu": "2"}),
            id="the last item",
        ),
        pytest.param(
            [{"type": "Pod", "max": {"cpu": "1"}}, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}],
            resources_with(),
            resources_with(),
            id="not for containers",
        ),
    ],
)
def test_defaults_of_a_container(items: list[Json], before: Json, after: Json) -> None:
    result = apply_limit_range(spec_of(before, init=(before,)), limit_range(*items))
    assert result == spec_of(after, init=(after,))


@given(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "0"])))
def test_defaulting_twice_equals_defaulting_once(own_requests: dict[str, str]) -> None:
    bounds = container_limit_range(default={"cpu": "2"}, min={"memory": "1"})
    defaulted = apply_limit_range(spec_of(resources_with(own_requests)), bounds)
    assert apply_limit_range(defaulted, bounds) == defaulted
    assert own_requests.items() <= defaulted.containers[0].resources.requests.items()


# --- refusals

RESOURCES = "spec.containers[0].resources"


def refusal(spec: PodSpec, bounds: LimitRange) -> str:
    return str(limit_range_refusal(spec, bounds))


@pytest.mark.parametrize(
    ("bounds", "resources", "field", "text_of_violation"),
    [
        pytest.param(
            {"min": {"cpu": "50m"}},
            resources_with({"cpu": "20m"}),
            "requests[cpu]",
            "minimum cpu usage per Container is 50m, but request is 20m",
            id="a request below the minimum",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            resources_with({"cpu": "60m"}, {"cpu": "40m"}),
            "limits[cpu]",
            "minimum cpu usage per Container is 50m, but limit is 40m",
            id="a limit below the minimum",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            resources_with(),
            "requests[cpu]",
            "minimum cpu usage per Container is 50m.  No request is specified",
            id="no request",
        ),
        pytest.param(
            {"max": {"memory": "1Gi"}},
            resources_with({"memory": "1Gi"}, {"memory": "1025Mi"}),
            "limits[memory]",
            "maximum memory usage per Container is 1Gi, but limit is 1025Mi",
            id="a limit above the maximum",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            resources_with({"cpu": "2001m"}, {"cpu": "2"}),
            "requests[cpu]",
            "maximum cpu usage per Container is 2, but request is 2001m",
            id="a request above the maximum",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            resources_with({"cpu": "1"}),
            "limits[cpu]",
            "maximum cpu usage per Container is 2.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            resources_with({"cpu": "300m"}, {"cpu": "2"}),
            "limits[cpu]",
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 6.666667",
            id="a ratio",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            resources_with({"cpu": "0"}, {"cpu": "2"}),
            "requests[cpu]",
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="a ratio to a request of 0",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            resources_with({"cpu": "1"}),
            "limits[cpu]",
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="a ratio without a limit",
        ),
        pytest.param(
            {"max": {"memory": "9300000000000000"}},
            resources_with({}, {"memory": "9300000000000001"}),
            "limits[memory]",
            "maximum memory usage per Container is 9300T, but limit is 9300000000000001",
            id="quantities whose thousandths exceed int64",
        ),
    ],
)
def test_a_violation_of_a_bound(bounds: Json, resources: Json, field: str, text_of_violation: str) -> None:
    text = f"{RESOURCES}.{field}: {text_of_violation} (LimitRange shop/bounds)"
    assert refusal(spec_of(resources), container_limit_range(**bounds)) == text


@pytest.mark.parametrize(
    ("bounds", "resources"),
    [
        (
            {"min": {"cpu": "1"}, "max": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "4"}},
            resources_with({"cpu": "1"}, {"cpu": "4"}),
        ),
        ({"max": {"memory": "9300T"}}, resources_with(limits={"memory": "9299999999999999500m"})),
    ],
    ids=["at the bounds", "rounded up to whole units if thousandths exceed int64"],
)
def test_resources_within_the_bounds_are_accepted(bounds: Json, resources: Json) -> None:
    assert limit_range_refusal(spec_of(resources), container_limit_range(**bounds)) is None


def test_several_violations_are_one_list() -> None:
    item = {"type": "Container", "max": {"memory": "1Gi", "cpu": "1"}, "min": {"cpu": "500m"}}
    spec = spec_of(
        resources_with({"cpu": "100m"}, {"cpu": "2"}),
        init=(resources_with({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),),
    )
    assert refusal(spec, limit_range(item)) == (
        "spec: [minimum cpu usage per Container is 500m, but request is 100m, "
        "maximum cpu usage per Container is 1, but limit is 2, "
        "maximum memory usage per Container is 1Gi.  No limit is specified] "
        f"(LimitRange shop/bounds refuses {RESOURCES}.requests[cpu], {RESOURCES}.limits[cpu], "
        f"{RESOURCES}.limits[memory], spec.initContainers[0].resources.limits[cpu])"
    )


@pytest.mark.parametrize(
    ("spec", "used"),
    [
        pytest.param(
            spec_of(resources_with(limits={"cpu": "2"}), resources_with(limits={"cpu": "1500m"})), "3500m", id="the sum"
        ),
        pytest.param(
            spec_of(resources_with(limits={"cpu": "1"}), init=(resources_with(limits={"cpu": "5"}),)),
            "5",
            id="an init container with a higher limit",
        ),
        pytest.param(
            spec_of(resources_with(limits={"cpu": "1"}), resources=resources_with(limits={"cpu": "4"})),
            "4",
            id="the pod level",
        ),
        pytest.param(
            spec_of(resources_with(limits={"cpu": "4"}), resources=resources_with(limits={"memory": "4"})),
            "4",
            id="pod-level resources without CPU",
        ),
    ],
)
def test_bounds_of_a_whole_pod(spec: PodSpec, used: str) -> None:
    bounds = limit_range({"type": "Pod", "max": {"cpu": "3"}})
    text_of_violation = f"maximum cpu usage per Pod is 3, but limit is {used}"
    assert refusal(spec, bounds) == f"spec.containers: {text_of_violation} (LimitRange shop/bounds)"


def test_a_sidecar_counts_with_the_containers() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": resources_with(limits={"cpu": "2"})}
    spec = spec_of(resources_with(limits={"cpu": "2"}), initContainers=[sidecar])
    bounds = limit_range({"type": "Pod", "max": {"cpu": "3"}})
    assert "but limit is 4" in refusal(spec, bounds)

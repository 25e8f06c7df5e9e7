"""What LimitRanges fill in, and what they refuse in which words."""

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
    written = {"metadata": {"name": "bounds", "namespace": "shop"}, "spec": {"limits": list(items)}}
    return default_limit_range(msgspec.convert(written, LimitRange))


def of_containers(**bounds: Json) -> LimitRange:
    return limit_range({"type": "Container", **bounds})


def spec_of(*containers: Json, init: tuple[Json, ...] = (), **more: object) -> PodSpec:
    """Containers by their resources."""
    written = {
        "containers": [{"name": f"c{index}", "resources": resources} for index, resources in enumerate(containers)],
        "initContainers": [{"name": f"i{index}", "resources": resources} for index, resources in enumerate(init)],
        **more,
    }
    return msgspec.convert(written, PodSpec)


def asking(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {"requests": requests or {}, "limits": limits or {}}


# --- what a LimitRange is by default


@pytest.mark.parametrize(
    ("written", "default", "default_request"),
    [
        pytest.param({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}, id="max is the limit and the request"),
        pytest.param({"min": {"cpu": "1"}}, {}, {"cpu": "1"}, id="min is the request only"),
        pytest.param(
            {"max": {"cpu": "4"}, "default": {"cpu": "2"}, "min": {"cpu": "1"}},
            {"cpu": "2"},
            {"cpu": "2"},
            id="the default limit comes before both",
        ),
        pytest.param(
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}}, {"cpu": "2"}, {"cpu": "500m"}, id="all said"
        ),
        pytest.param({"default": {"cpu": "0.0001"}}, {"cpu": "1m"}, {"cpu": "1m"}, id="rounded up to a thousandth"),
        pytest.param(
            {"max": {"cpu": "2"}, "default": {"memory": "1Gi"}},
            {"cpu": "2", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
            id="each resource for itself",
        ),
    ],
)
def test_defaults_of_an_item_for_containers(written: Json, default: Json, default_request: Json) -> None:
    (item,) = of_containers(**written).spec.limits
    assert (item.default, item.default_request) == (default, default_request)


def test_items_of_other_types_have_no_defaults() -> None:
    (item,) = limit_range({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}}).spec.limits
    assert (item.default, item.default_request) == ({}, {})


def test_a_bad_quantity_is_told_with_its_field() -> None:
    with pytest.raises(InputError, match=r"^spec\.limits\[1\]\.max\[cpu\]: quantities must match"):
        limit_range({"type": "Pod"}, {"type": "Container", "max": {"cpu": "two"}})


# --- what it fills in


@pytest.mark.parametrize(
    ("items", "before", "after"),
    [
        pytest.param(
            [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "200m", "memory": "64Mi"}}],
            asking(),
            asking({"cpu": "200m", "memory": "64Mi"}, {"cpu": "500m"}),
            id="nothing said",
        ),
        pytest.param(
            [{"type": "Container", "default": {"cpu": "500m"}}],
            asking({"cpu": "1"}),
            asking({"cpu": "1"}, {"cpu": "500m"}),
            id="a limit below the request, for validation to refuse",
        ),
        pytest.param(
            [{"type": "Container", "default": {"cpu": "1"}}, {"type": "Container", "default": {"cpu": "2"}}],
            asking(),
            asking({"cpu": "2"}, {"cpu": "2"}),
            id="the last item",
        ),
        pytest.param(
            [{"type": "Pod", "max": {"cpu": "1"}}, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}],
            asking(),
            asking(),
            id="not for containers",
        ),
    ],
)
def test_what_a_container_gets(items: list[Json], before: Json, after: Json) -> None:
    changed = apply_limit_range(spec_of(before, init=(before,)), limit_range(*items))
    assert changed == spec_of(after, init=(after,))


@given(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "0"])))
def test_filling_in_again_changes_nothing(own: dict[str, str]) -> None:
    bounds = of_containers(default={"cpu": "2"}, min={"memory": "1"})
    once = apply_limit_range(spec_of(asking(own)), bounds)
    assert apply_limit_range(once, bounds) == once
    assert own.items() <= once.containers[0].resources.requests.items()


# --- what it refuses

RESOURCES = "spec.containers[0].resources"


def refusal(spec: PodSpec, bounds: LimitRange) -> str:
    return str(limit_range_refusal(spec, bounds))


@pytest.mark.parametrize(
    ("bounds", "resources", "field", "sentence"),
    [
        pytest.param(
            {"min": {"cpu": "50m"}},
            asking({"cpu": "20m"}),
            "requests[cpu]",
            "minimum cpu usage per Container is 50m, but request is 20m",
            id="a request below the minimum",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            asking({"cpu": "60m"}, {"cpu": "40m"}),
            "limits[cpu]",
            "minimum cpu usage per Container is 50m, but limit is 40m",
            id="a limit below the minimum",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            asking(),
            "requests[cpu]",
            "minimum cpu usage per Container is 50m.  No request is specified",
            id="no request",
        ),
        pytest.param(
            {"max": {"memory": "1Gi"}},
            asking({"memory": "1Gi"}, {"memory": "1025Mi"}),
            "limits[memory]",
            "maximum memory usage per Container is 1Gi, but limit is 1025Mi",
            id="a limit above the maximum",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            asking({"cpu": "2001m"}, {"cpu": "2"}),
            "requests[cpu]",
            "maximum cpu usage per Container is 2, but request is 2001m",
            id="a request above the maximum",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            asking({"cpu": "1"}),
            "limits[cpu]",
            "maximum cpu usage per Container is 2.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            asking({"cpu": "300m"}, {"cpu": "2"}),
            "limits[cpu]",
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 6.666667",
            id="a ratio",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            asking({"cpu": "0"}, {"cpu": "2"}),
            "requests[cpu]",
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="a ratio to nothing",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            asking({"cpu": "1"}),
            "limits[cpu]",
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="a ratio of nothing",
        ),
        pytest.param(
            {"max": {"memory": "9300000000000000"}},
            asking({}, {"memory": "9300000000000001"}),
            "limits[memory]",
            "maximum memory usage per Container is 9300T, but limit is 9300000000000001",
            id="amounts whose thousandths are beyond int64",
        ),
    ],
)
def test_one_violation(bounds: Json, resources: Json, field: str, sentence: str) -> None:
    text = f"{RESOURCES}.{field}: {sentence} (LimitRange shop/bounds)"
    assert refusal(spec_of(resources), of_containers(**bounds)) == text


@pytest.mark.parametrize(
    ("bounds", "resources"),
    [
        (
            {"min": {"cpu": "1"}, "max": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "4"}},
            asking({"cpu": "1"}, {"cpu": "4"}),
        ),
        ({"max": {"memory": "9300T"}}, asking(limits={"memory": "9299999999999999500m"})),
    ],
    ids=["at the bounds", "rounded up to whole units where thousandths are beyond int64"],
)
def test_what_keeps_the_bounds_is_not_refused(bounds: Json, resources: Json) -> None:
    assert limit_range_refusal(spec_of(resources), of_containers(**bounds)) is None


def test_several_violations_are_one_list_in_the_api_servers_order() -> None:
    item = {"type": "Container", "max": {"memory": "1Gi", "cpu": "1"}, "min": {"cpu": "500m"}}
    spec = spec_of(asking({"cpu": "100m"}, {"cpu": "2"}), init=(asking({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),))
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
        pytest.param(spec_of(asking(limits={"cpu": "2"}), asking(limits={"cpu": "1500m"})), "3500m", id="the sum"),
        pytest.param(
            spec_of(asking(limits={"cpu": "1"}), init=(asking(limits={"cpu": "5"}),)), "5", id="a start that needs more"
        ),
        pytest.param(
            spec_of(asking(limits={"cpu": "1"}), resources=asking(limits={"cpu": "4"})), "4", id="the pod level"
        ),
        pytest.param(
            spec_of(asking(limits={"cpu": "4"}), resources=asking(limits={"memory": "4"})),
            "4",
            id="a pod level without",
        ),
    ],
)
def test_a_pod_as_a_whole(spec: PodSpec, used: str) -> None:
    bounds = limit_range({"type": "Pod", "max": {"cpu": "3"}})
    sentence = f"maximum cpu usage per Pod is 3, but limit is {used}"
    assert refusal(spec, bounds) == f"spec.containers: {sentence} (LimitRange shop/bounds)"


def test_a_sidecar_counts_with_the_containers() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": asking(limits={"cpu": "2"})}
    spec = spec_of(asking(limits={"cpu": "2"}), initContainers=[sidecar])
    bounds = limit_range({"type": "Pod", "max": {"cpu": "3"}})
    assert "but limit is 4" in refusal(spec, bounds)

"""Defaults of the API server."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.apiserver.defaulting import (
    default_namespace,
    default_node,
    default_pod,
    default_pod_spec,
    default_priority_class,
    merge_label_keys,
    uses_label_keys,
)
from kschedx.errors import InputError
from kschedx.kube.selectors import LabelSelector, SelectorRequirement
from kschedx.kube.types import Namespace, Node, ObjectMeta, Pod, PodSpec, PriorityClass

Json = dict[str, object]


def pod_of(spec: Json, **metadata: object) -> Pod:
    return msgspec.convert({"metadata": {"name": "web", **metadata}, "spec": spec}, Pod)


def default_spec(spec: Json) -> PodSpec:
    return default_pod_spec(msgspec.convert(spec, PodSpec))


def with_resources(**resources: Json) -> Json:
    return {"name": "web", "resources": resources}


def test_defaults_of_a_pod() -> None:
    pod = default_pod(pod_of({"containers": [{"name": "web"}]}))

    assert pod.metadata.namespace == "default"
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.restart_policy == "Always"
    assert pod.spec.termination_grace_period_seconds == 30
    assert pod.spec.priority is None


def test_a_negative_grace_period_becomes_1_second() -> None:
    assert default_spec({"terminationGracePeriodSeconds": -5}).termination_grace_period_seconds == 1


def test_fields_that_are_set_stay() -> None:
    pod = pod_of(
        {
            "containers": [{"name": "web", "ports": [{"containerPort": 53, "hostPort": 5353, "protocol": "UDP"}]}],
            "schedulerName": "mine",
            "restartPolicy": "Never",
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 5,
        },
        namespace="shop",
    )

    assert default_pod(pod) is pod


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "1"}}, {"cpu": "1"}),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0"}}, {"cpu": "0", "memory": "1Gi"}),
        ({"limits": {"nvidia.com/gpu": 2}}, {"nvidia.com/gpu": 2}),
        ({"requests": {"cpu": "1"}}, {"cpu": "1"}),
    ],
)
def test_requests_default_to_limits(field: str, resources: dict[str, Json], requests: Json) -> None:
    spec = default_spec({field: [with_resources(**resources)]})

    assert (spec.containers + spec.init_containers)[0].resources.requests == requests


@pytest.mark.parametrize(
    ("host_network", "port", "protocol", "host_port"),
    [
        (False, {"containerPort": 80}, "TCP", 0),
        (False, {"containerPort": 80, "hostPort": 8080, "protocol": "SCTP"}, "SCTP", 8080),
        (True, {"containerPort": 80}, "TCP", 80),
        (True, {"containerPort": 80, "hostPort": 8080}, "TCP", 8080),
    ],
)
def test_defaults_of_ports(host_network: bool, port: Json, protocol: str, host_port: int) -> None:
    container: Json = {"name": "web", "ports": [port]}
    spec = default_spec({"containers": [container], "initContainers": [container], "hostNetwork": host_network})

    for item in (*spec.containers, *spec.init_containers):
        assert (item.ports[0].protocol, item.ports[0].host_port) == (protocol, host_port)


@pytest.mark.parametrize(
    ("pod_level", "containers", "requests", "limits"),
    [
        pytest.param({}, [{"requests": {"cpu": "1"}}], {}, {}, id="no pod-level resources"),
        pytest.param(
            {"requests": {"cpu": "2"}}, [{"requests": {"memory": "1Gi"}}], {"cpu": "2"}, {}, id="requests alone stay"
        ),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"requests": {"memory": "1Gi"}}], {"cpu": "4", "memory": "1Gi"}, {"cpu": "4"},
            id="requests of the containers, or the limit",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"requests": {"cpu": "1500m"}}, {"requests": {"cpu": "1"}}], {"cpu": "2500m"},
            {"cpu": "4"}, id="the sum of the containers",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"limits": {"cpu": "1"}}], {"cpu": "1"}, {"cpu": "4"},
            id="a container's request from its limit counts",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}, "requests": {"cpu": "3"}}, [{"requests": {"cpu": "1"}}], {"cpu": "3"},
            {"cpu": "4"}, id="an explicit request stays",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"requests": {"ephemeral-storage": "1Gi", "nvidia.com/gpu": "1"}}],
            {"cpu": "4"}, {"cpu": "4"}, id="only resources that the pod level supports",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}}, [{"limits": {"hugepages-2Mi": "2Mi"}}, {"limits": {"hugepages-2Mi": "4Mi"}}],
            {"cpu": "1", "hugepages-2Mi": "6Mi"}, {"hugepages-2Mi": "6Mi"}, id="hugepages limits of the containers",
        ),
        pytest.param(
            {"requests": {"hugepages-2Mi": "8Mi"}}, [{"limits": {"hugepages-2Mi": "2Mi"}}], {"hugepages-2Mi": "8Mi"},
            {}, id="a hugepages request without a limit stays alone",
        ),
    ],
)  # fmt: skip
def test_defaults_of_pod_level_resources(
    pod_level: Json, containers: list[dict[str, Json]], requests: Json, limits: Json
) -> None:
    spec = default_spec(
        {"containers": [with_resources(**container) for container in containers], "resources": pod_level}
    )

    assert spec.resources is not None
    assert (spec.resources.requests, spec.resources.limits) == (requests, limits)


@pytest.mark.parametrize(
    ("quantity", "stored"),
    [("100u", "1m"), ("1.0001", "1001m"), ("-100u", "-1m"), ("0.5", "0.5"), ("1500m", "1500m"), (0.0001, "1m"), (2, 2)],
)
def test_quantities_are_rounded_up_to_thousandths(quantity: str | float, stored: str | float) -> None:
    resources: dict[str, Json] = {"requests": {"cpu": quantity}}
    pod = default_pod(
        msgspec.convert(
            {
                "spec": {"containers": [with_resources(**resources)], "overhead": {"cpu": quantity}},
                "status": {"containerStatuses": [with_resources(**resources)], "resources": resources},
            },
            Pod,
        )
    )
    node = default_node(msgspec.convert({"status": {"capacity": {"cpu": quantity}}}, Node))

    assert pod.spec.containers[0].resources.requests["cpu"] == stored
    assert pod.spec.overhead["cpu"] == stored
    assert pod.status.resources is not None
    assert pod.status.resources.requests["cpu"] == stored
    status_resources = pod.status.container_statuses[0].resources
    assert status_resources is not None
    assert status_resources.requests["cpu"] == stored
    assert node.status.capacity["cpu"] == stored


def test_the_sum_of_requests_is_rounded_once() -> None:
    container = with_resources(requests={"cpu": "400u"})
    spec = default_spec({"containers": [container, container | {"name": "log"}], "resources": {"limits": {"cpu": "1"}}})

    assert spec.resources is not None
    assert spec.resources.requests == {"cpu": "1m"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": [with_resources(limits={"cpu": "1 cpu"})]}, "spec.containers[0].resources.limits[cpu]"),
        (
            {"containers": [with_resources(requests={"cpu": "1 cpu"})], "resources": {"limits": {"cpu": "1"}}},
            "spec.containers[0].resources.requests[cpu]",
        ),
        ({"initContainers": [with_resources(requests={"cpu": ""})]}, "spec.initContainers[0].resources.requests[cpu]"),
        ({"overhead": {"memory": "x"}}, "spec.overhead[memory]"),
        ({"resources": {"limits": {"memory": "x"}}}, "spec.resources.limits[memory]"),
    ],
)
def test_an_error_names_the_field_of_an_invalid_quantity(spec: Json, field: str) -> None:
    with pytest.raises(InputError) as error:
        default_spec(spec)
    assert error.value.place.field == field


SELECTOR: Json = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
IN_V2 = SelectorRequirement(key="version", operator="In", values=("v2",))
NOT_IN_V2 = SelectorRequirement(key="version", operator="NotIn", values=("v2",))
LABELS: dict[str, str] = {"app": "web", "version": "v2"}


@pytest.mark.parametrize(
    ("keys", "added"),
    [
        ({"matchLabelKeys": ["version"]}, (IN_V2,)),
        ({"mismatchLabelKeys": ["version"]}, (NOT_IN_V2,)),
        ({"matchLabelKeys": ["absent"]}, ()),
        ({}, ()),
    ],
)
@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
def test_label_keys_extend_affinity_terms(side: str, keys: Json, added: tuple[SelectorRequirement, ...]) -> None:
    term = SELECTOR | keys
    affinity = {
        side: {
            "requiredDuringSchedulingIgnoredDuringExecution": [term],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": term}],
        }
    }
    pod = pod_of({"affinity": affinity}, labels=LABELS)
    assert uses_label_keys(pod.spec) is bool(keys)

    affinity_with_labels = default_pod(pod).spec.affinity
    assert affinity_with_labels is not None
    item = affinity_with_labels.pod_affinity or affinity_with_labels.pod_anti_affinity
    assert item is not None
    expected = LabelSelector(match_labels={"app": "web"}, match_expressions=added)
    assert item.required_during_scheduling_ignored_during_execution[0].label_selector == expected
    preferred_term = item.preferred_during_scheduling_ignored_during_execution[0]
    assert (preferred_term.weight, preferred_term.pod_affinity_term.label_selector) == (7, expected)


def test_label_keys_need_a_selector() -> None:
    term = {"topologyKey": "zone", "matchLabelKeys": ["version"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = pod_of({"affinity": affinity}).spec

    assert uses_label_keys(spec)
    assert merge_label_keys(spec, LABELS) is spec


def test_merged_label_keys_are_not_merged_again() -> None:
    term = SELECTOR | {"matchLabelKeys": ["version"], "mismatchLabelKeys": ["app"]}
    spec: Json = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    defaulted_pod = default_pod(pod_of(spec, labels=LABELS))

    assert defaulted_pod != pod_of(spec, labels=LABELS)
    assert default_pod(defaulted_pod) is defaulted_pod


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        ({"capacity": {"cpu": "4"}}, {"cpu": "4"}),
        ({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}, {"cpu": "3"}),
        ({"allocatable": {"cpu": "3"}}, {"cpu": "3"}),
        ({}, {}),
    ],
)
def test_allocatable_defaults_to_capacity(status: Json, allocatable: Json) -> None:
    node = default_node(msgspec.convert({"status": status}, Node))

    assert node.status.allocatable == allocatable
    assert default_node(node) is node


def test_a_namespace_has_a_label_with_its_name() -> None:
    namespace = default_namespace(Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a"})))

    assert namespace.metadata.labels == {"team": "a", "kubernetes.io/metadata.name": "shop"}
    assert default_namespace(namespace) is namespace


def test_a_priority_class_preempts_by_default() -> None:
    assert default_priority_class(PriorityClass()).preemption_policy == "PreemptLowerPriority"
    assert default_priority_class(PriorityClass(preemption_policy="Never")).preemption_policy == "Never"


QUANTITIES = st.sampled_from(["1", "100u", "1500m", "2Mi", "4Mi", "0.0001"])
LISTS = st.dictionaries(st.sampled_from(["cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu"]), QUANTITIES, max_size=3)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": LISTS, "limits": LISTS})
PORTS = st.lists(st.fixed_dictionaries({"containerPort": st.just(80)}, optional={"hostPort": st.just(81)}), max_size=2)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.just("c"), "resources": RESOURCES, "ports": PORTS}), min_size=1, max_size=3
)
KEYS = st.lists(st.sampled_from(["app", "version", "absent"]), max_size=3)
TERMS = st.lists(
    st.builds(lambda match, mismatch: SELECTOR | {"matchLabelKeys": match, "mismatchLabelKeys": mismatch}, KEYS, KEYS),
    max_size=2,
)


@given(CONTAINERS, CONTAINERS, st.none() | RESOURCES, LISTS, st.booleans(), TERMS)
def test_defaulting_twice_equals_defaulting_once(
    containers: list[Json],
    init_containers: list[Json],
    resources: Json | None,
    overhead: Json,
    host_network: bool,
    terms: list[Json],
) -> None:
    spec: Json = {
        "containers": containers,
        "initContainers": init_containers,
        "resources": resources,
        "overhead": overhead,
        "hostNetwork": host_network,
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "topologySpreadConstraints": [
            {key: value for key, value in t.items() if key != "mismatchLabelKeys"} for t in terms
        ],
    }
    defaulted_pod = default_pod(pod_of(spec, labels=LABELS))

    assert default_pod(defaulted_pod) is defaulted_pod

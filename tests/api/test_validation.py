"""The API server's validation of pods, with its messages."""

from __future__ import annotations

import msgspec
import pytest

from kschedx.apiserver.defaulting import default_pod, merge_spread_label_keys
from kschedx.apiserver.pod_security import KubeletFields
from kschedx.apiserver.validation import validate_kubelet_fields, validate_pod
from kschedx.kube.field_errors import ValidationOptions
from kschedx.kube.types import Pod

Json = dict[str, object]

LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DNS_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def container(name: str = "web", **fields: object) -> Json:
    return {"name": name, "image": "web:1"} | fields


def requests(limits: Json | None = None, **amounts: object) -> Json:
    """Return a container with these requests; underscores in names mean dashes."""
    quantities = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return container(resources={"requests": quantities, "limits": limits or {}})


def errors_of(spec: Json, metadata: Json | None = None, options: ValidationOptions | None = None) -> list[str]:
    manifest = {"metadata": metadata or {"name": "web-0"}, "spec": {"containers": [container()]} | spec}
    pod = default_pod(msgspec.convert(manifest, Pod))
    pod = msgspec.structs.replace(pod, spec=merge_spread_label_keys(pod.spec, pod.metadata.labels))
    return [str(error) for error in validate_pod(pod, options or ValidationOptions())]


def test_a_whole_pod_is_valid() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["version"], "namespaces": ["shop"]}
    pod_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}],
    }
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["version"]}
    spec: Json = {
        "containers": [
            container(
                resources={
                    "requests": {"cpu": "1", "nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"},
                    "limits": {"cpu": "2", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"},
                },
                ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP", "hostPort": 80}],
            ),
            container("log", restartPolicy="OnFailure"),
        ],
        "initContainers": [container("proxy", restartPolicy="Always"), container("start")],
        "overhead": {"cpu": "100m"},
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "1Gi"}},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
            },
            "podAffinity": pod_affinity,
            "podAntiAffinity": pod_affinity,
        },
        "tolerations": [
            {"operator": "Exists"},
            {"key": "gpu", "value": "a", "effect": "NoSchedule"},
            {"key": "acme.io/x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        ],
        "topologySpreadConstraints": [
            spread | {"whenUnsatisfiable": "DoNotSchedule", "minDomains": 3, "nodeTaintsPolicy": "Honor"},
            spread | {"whenUnsatisfiable": "ScheduleAnyway", "nodeAffinityPolicy": "Ignore"},
        ],
        "schedulingGates": [{"name": "acme.io/quota"}, {"name": "ready"}],
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "runtimeClassName": "kata",
    }

    assert errors_of(spec, {"name": "web-0", "labels": {"version": "v1"}, "annotations": {"Acme.io/Note": "!"}}) == []


@pytest.mark.parametrize(
    ("metadata", "errors"),
    [
        ({}, ["metadata.name: Required value: name or generateName is required"]),
        ({"generateName": "web-"}, []),
        ({"generateName": "w-"}, []),
        ({"generateName": "Web-"}, [f'metadata.generateName: Invalid value: "Web-": {DNS_SUBDOMAIN}']),
        ({"name": "web_0"}, [f'metadata.name: Invalid value: "web_0": {DNS_SUBDOMAIN}']),
        ({"name": "a.b", "namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"name": "a", "labels": {"-a": "b"}}, [f'metadata.labels: Invalid value: "-a": {LABEL_KEY}']),
        ({"name": "a", "labels": {"a": "b "}}, [f'metadata.labels: Invalid value: "b ": {LABEL_VALUE}']),
        ({"name": "a", "annotations": {"a ": ""}}, [f'metadata.annotations: Invalid value: "a ": {LABEL_KEY}']),
        (
            {"name": "a", "annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
    ],
)  # fmt: skip
def test_errors_of_metadata(metadata: Json, errors: list[str]) -> None:
    assert errors_of({}, metadata or {"uid": "1"}) == errors


PORT = "spec.containers[0].ports[0]"


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"containers": []}, ["spec.containers: Required value"]),
        ({"containers": [container("")]}, ["spec.containers[0].name: Required value"]),
        ({"containers": [container("Web")]}, [f'spec.containers[0].name: Invalid value: "Web": {DNS_LABEL}']),
        ({"containers": [container(image="")]}, ["spec.containers[0].image: Required value"]),
        (
            {"containers": [container(image="web ")]},
            ['spec.containers[0].image: Invalid value: "web ": must not have leading or trailing whitespace'],
        ),
        ({"containers": [container(), container()]}, ['spec.containers[1].name: Duplicate value: "web"']),
        ({"initContainers": [container()]}, ['spec.initContainers[0].name: Duplicate value: "web"']),
        (
            {"containers": [container(restartPolicy="Sometimes")]},
            [
                ('spec.containers[0].restartPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "Never", "OnFailure"')
            ],
        ),
        (
            {"containers": [container(restartPolicyRules=[{"action": "Stop"}])]},
            [
                ("spec.containers[0].restartPolicy: Required value: "
                "must specify restartPolicy when restart rules are used"),
                ('spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Stop": '
                'supported values: "Restart", "RestartAllContainers"'),
            ],
        ),
        (
            {"initContainers": [container("i", restartPolicyRules=[{"action": "Stop"}])]},
            [
                ("spec.initContainers[0].restartPolicy: Required value: "
                "must specify restartPolicy when restart rules are used")
            ],
        ),
        (
            {"restartPolicy": "always"},
            ['spec.restartPolicy: Unsupported value: "always": supported values: "Always", "OnFailure", "Never"'],
        ),
        ({"nodeName": "n1", "schedulingGates": [{"name": "a"}]},
         ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]),
        ({"nodeName": "N1"}, [f'spec.nodeName: Invalid value: "N1": {DNS_SUBDOMAIN}']),
        ({"priorityClassName": "a_b"}, [f'spec.priorityClassName: Invalid value: "a_b": {DNS_SUBDOMAIN}']),
        ({"runtimeClassName": ""}, [f'spec.runtimeClassName: Invalid value: "": {DNS_SUBDOMAIN}']),
        ({"preemptionPolicy": ""}, ["spec.preemptionPolicy: Required value"]),
        (
            {"preemptionPolicy": "Always"},
            ['spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"'],
        ),
        ({"nodeSelector": {"disk": "fast disk"}}, [f'spec.nodeSelector: Invalid value: "fast disk": {LABEL_VALUE}']),
        ({"hostUsers": False, "hostNetwork": True}, ["spec.hostNetwork: Forbidden: when `hostUsers` is false"]),
        (
            {"schedulingGates": [{"name": "a"}, {"name": ""}, {"name": "a"}]},
            [
                "spec.schedulingGates[1]: Invalid value: \"\": name part must be non-empty",
                f'spec.schedulingGates[1]: Invalid value: "": {LABEL_KEY}',
                'spec.schedulingGates[2]: Duplicate value: "a"',
            ],
        ),
    ],
)  # fmt: skip
def test_errors_of_a_pod_and_its_containers(spec: Json, errors: list[str]) -> None:
    assert errors_of(spec) == errors


@pytest.mark.parametrize(
    ("ports", "errors"),
    [
        ([{}], [f"{PORT}.containerPort: Required value"]),
        (
            [{"containerPort": 65536}],
            [f"{PORT}.containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"],
        ),
        (
            [{"containerPort": 80, "hostPort": -1}],
            [f"{PORT}.hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"],
        ),
        (
            [{"containerPort": 80, "protocol": "tcp"}],
            [f'{PORT}.protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'],
        ),
        (
            [{"containerPort": 80, "name": "a-very-long-name-"}],
            [
                f'{PORT}.name: Invalid value: "a-very-long-name-": must be no more than 15 characters',
                f'{PORT}.name: Invalid value: "a-very-long-name-": must not begin or end with a hyphen',
            ],
        ),
        (
            [{"containerPort": 80, "name": "8--0"}],
            [
                f'{PORT}.name: Invalid value: "8--0": must contain at least one letter (a-z)',
                f'{PORT}.name: Invalid value: "8--0": must not contain consecutive hyphens',
            ],
        ),
        (
            [{"containerPort": 80, "name": "Http"}],
            [
                (
                    f'{PORT}.name: Invalid value: "Http": '
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                )
            ],
        ),
        (
            [{"containerPort": 80, "name": "http"}, {"containerPort": 81, "name": "http"}],
            ['spec.containers[0].ports[1].name: Duplicate value: "http"'],
        ),
        (
            [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}],
            ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"'],
        ),
        ([{"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}], []),
    ],
)
def test_errors_of_ports(ports: list[Json], errors: list[str]) -> None:
    assert errors_of({"containers": [container(ports=ports)]}) == errors


def test_host_ports_conflict_between_containers_but_not_init_containers() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    containers = [container(ports=ports), container("b", ports=ports)]

    assert errors_of({"containers": containers}) == ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"']
    assert errors_of({"initContainers": [container("a", ports=ports), container("b", ports=ports)]}) == []


def test_ports_are_equal_on_the_host_network() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]

    assert errors_of({"containers": [container(ports=ports)], "hostNetwork": True}) == [
        (
            "spec.containers[0].ports[1].hostPort: Invalid value: 8081: "
            "must match `containerPort` when `hostNetwork` is true"
        )
    ]


RESOURCES = "spec.containers[0].resources"


@pytest.mark.parametrize(
    ("item", "errors"),
    [
        (requests(cpu="-1"), [f'{RESOURCES}.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0']),
        (
            requests({"cpu": "500m", "memory": "1Gi"}, cpu="1500m", memory="2048Mi"),
            [
                f'{RESOURCES}.requests: Invalid value: "1500m": must be less than or equal to cpu limit of 500m',
                f'{RESOURCES}.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi',
            ],
        ),
        (
            container(resources={"requests": {"acme.io/gpu": "1"}, "limits": {"acme.io/gpu": "2"}}),
            [f'{RESOURCES}.requests: Invalid value: "1": must be equal to acme.io/gpu limit of 2'],
        ),
        (
            container(resources={"requests": {"acme.io/gpu": "1"}}),
            [f"{RESOURCES}.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            container(resources={"limits": {"acme.io/gpu": "1500m"}}),
            [
                f'{RESOURCES}.limits[acme.io/gpu]: Invalid value: "1500m": must be an integer',
                f'{RESOURCES}.requests[acme.io/gpu]: Invalid value: "1500m": must be an integer',
            ],
        ),
        (
            requests(gpu="1"),
            [
                f'{RESOURCES}.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
                f'{RESOURCES}.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
        ),
        (
            requests(storage="1Gi"),
            [f'{RESOURCES}.requests[storage]: Invalid value: "storage": must be a standard resource for containers'],
        ),
        (
            container(resources={"limits": {"requests.acme.io/gpu": "1"}, "requests": {"cpu": "1"}}),
            [
                f'{RESOURCES}.{side}[requests.acme.io/gpu]: Invalid value: "requests.acme.io/gpu": '
                "doesn't follow extended resource name standard"
                for side in ("limits", "requests")
            ],
        ),
        (
            requests({"hugepages-2Mi": "3Mi"}, cpu="1", hugepages_2Mi="3Mi"),
            [
                f'{RESOURCES}.{side}[hugepages-2Mi]: Invalid value: "3Mi": '
                "3Mi is not positive integer multiple of hugepages-2Mi"
                for side in ("limits", "requests")
            ],
        ),
        (
            requests({"hugepages-big": "3Mi"}, cpu="1", hugepages_big="3Mi"),
            [
                f'{RESOURCES}.{side}[hugepages-big]: Invalid value: "3Mi": '
                "3Mi is not positive integer multiple of hugepages-big"
                for side in ("limits", "requests")
            ],
        ),
        (requests({"hugepages-2Mi": "2Mi"}), [f"{RESOURCES}: Forbidden: HugePages require cpu or memory"]),
    ],
)
def test_errors_of_requests_and_limits(item: Json, errors: list[str]) -> None:
    assert errors_of({"containers": [item]}) == errors


def test_overhead_follows_the_rules_of_limits() -> None:
    assert errors_of({"overhead": {"cpu": "-1", "gpu": "1"}}) == [
        'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        'spec.overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
        'spec.overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
    ]


@pytest.mark.parametrize(
    ("pod_level", "errors"),
    [
        ({"requests": {"cpu": "4", "memory": "4Gi"}}, []),
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            [
                (
                    'spec.resources.requests[cpu]: Invalid value: "1": '
                    "must be greater than or equal to aggregate container requests of 2500m"
                ),
                (
                    'spec.resources.requests[memory]: Invalid value: "1Gi": '
                    "must be greater than or equal to aggregate container requests of 2Gi"
                ),
            ],
        ),
        (
            {"requests": {"cpu": "4"}, "limits": {"cpu": "3"}},
            ['spec.resources.requests: Invalid value: "4": must be less than or equal to cpu limit of 3'],
        ),
        (
            {"requests": {"cpu": "3"}, "limits": {"cpu": "3", "memory": "2Gi"}},
            [
                (
                    'spec.resources.containers[0][memory].limits: Invalid value: "3Gi": '
                    "must be less than or equal to pod limits of 2Gi"
                )
            ],
        ),
        (
            {"requests": {"acme.io/gpu": "1"}, "limits": {"acme.io/gpu": "1"}},
            [
                f'spec.resources.{side}[acme.io/gpu]: Unsupported value: "acme.io/gpu": '
                'supported values: "cpu", "hugepages-", "memory"'
                for side in ("limits", "requests")
            ],
        ),
    ],
)
def test_errors_of_pod_level_resources(pod_level: Json, errors: list[str]) -> None:
    containers = [
        requests({"memory": "3Gi"}, cpu="1500m", memory="1Gi"),
        container("log", resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
    ]
    spec: Json = {"containers": containers, "resources": pod_level}

    assert errors_of(spec) == errors
    assert errors_of(spec, options=ValidationOptions(pod_level_resources=False)) == []


def test_an_invalid_quantity_before_defaulting() -> None:
    pod = msgspec.convert({"metadata": {"name": "a", "namespace": "b"}, "spec": {"restartPolicy": "Always"}}, Pod)
    invalid = msgspec.convert(
        {"containers": [requests(cpu="1 core")], "resources": {"requests": {"cpu": "5GB"}}}, type(pod.spec)
    )
    invalid = msgspec.structs.replace(invalid, restart_policy="Always")

    errors = [str(error) for error in validate_pod(msgspec.structs.replace(pod, spec=invalid))]
    assert errors == [
        f"{RESOURCES}.requests[cpu]: {QUANTITY} (found '1 core')",
        f"spec.resources.requests[cpu]: {QUANTITY} (found '5GB', did you mean '5G'?)",
    ]


TOLERATION = "spec.tolerations[0]"


@pytest.mark.parametrize(
    ("toleration", "errors"),
    [
        (
            {"key": "a", "operator": "Equals"},
            [f'{TOLERATION}.operator: Unsupported value: "Equals": supported values: "Equal", "Exists"'],
        ),
        (
            {"operator": "Equal", "value": "x"},
            [
                (
                    f'{TOLERATION}.operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                    'which means "match all values and all keys"'
                )
            ],
        ),
        (
            {"key": "a", "operator": "Exists", "value": "x"},
            [f"{TOLERATION}.operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"],
        ),
        ({"key": "a", "value": "x y"}, [f'{TOLERATION}.operator: Invalid value: "x y": {LABEL_VALUE}']),
        ({"key": "a b", "operator": "Exists"}, [f'{TOLERATION}.key: Invalid value: "a b": {LABEL_KEY}']),
        (
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 0},
            [
                (
                    f'{TOLERATION}.effect: Invalid value: "NoSchedule": '
                    "effect must be 'NoExecute' when `tolerationSeconds` is set"
                )
            ],
        ),
        (
            {"key": "a", "effect": "Evict"},
            [
                (
                    f'{TOLERATION}.effect: Unsupported value: "Evict": '
                    'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
                )
            ],
        ),
        (
            {"key": "a", "operator": "Gt", "value": "5"},
            [f'{TOLERATION}.operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'],
        ),
    ],
)
def test_errors_of_tolerations(toleration: Json, errors: list[str]) -> None:
    assert errors_of({"tolerations": [toleration]}) == errors


@pytest.mark.parametrize(
    ("value", "details"),
    [
        ("5", []),
        ("-5", []),
        ("0", []),
        ("", ["must be non-empty", 'strconv.ParseInt: parsing "": invalid syntax']),
        ("007", ["must be a valid decimal integer in canonical form"]),
        ("-0", ["must be a valid decimal integer in canonical form"]),
        ("9" * 20, [f'strconv.ParseInt: parsing "{"9" * 20}": value out of range']),
        (
            "high",
            ["must be a valid decimal integer in canonical form", 'strconv.ParseInt: parsing "high": invalid syntax'],
        ),
    ],
)
def test_tolerations_with_comparison_operators(value: str, details: list[str]) -> None:
    options = ValidationOptions(toleration_comparison_operators=True)
    toleration = {"key": "a", "operator": "Lt", "value": value}

    expected = [f'{TOLERATION}.value: Invalid value: "{value}": {detail}' for detail in details]
    assert errors_of({"tolerations": [toleration]}, options=options) == expected


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PREFERENCE = f"{PREFERRED}[0].preference.matchFields[0]"
TERM = f"spec.affinity.podAffinity.{REQUIRED}[0]"
SELECTOR: Json = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("term", "errors"),
    [
        (
            {"labelSelector": SELECTOR},
            [
                f"{TERM}.topologyKey: Required value: can not be empty",
                f'{TERM}.topologyKey: Invalid value: "": name part must be non-empty',
                f'{TERM}.topologyKey: Invalid value: "": {LABEL_KEY}',
            ],
        ),
        (
            {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}},
            [f'{TERM}.labelSelector.matchExpressions[0].operator: Invalid value: "in": not a valid selector operator'],
        ),
        (
            {"topologyKey": "zone", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            [
                (
                    f"{TERM}.namespaceSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
        ),
        ({"topologyKey": "zone", "namespaces": ["Shop"]}, [f'{TERM}.namespace: Invalid value: "Shop": {DNS_LABEL}']),
        (
            {"topologyKey": "zone", "matchLabelKeys": ["app"]},
            [f"{TERM}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        ),
        (
            {"topologyKey": "zone", "mismatchLabelKeys": ["a b"], "labelSelector": {}},
            [f'{TERM}.mismatchLabelKeys[0]: Invalid value: "a b": {LABEL_KEY}'],
        ),
        (
            {"topologyKey": "zone", "matchLabelKeys": ["version", "app"], "labelSelector": SELECTOR},
            [f'{TERM}[1]: Invalid value: "app": exists in both matchLabelKeys and labelSelector'],
        ),
        (
            {"topologyKey": "zone", "matchLabelKeys": ["gone"], "mismatchLabelKeys": ["gone"], "labelSelector": {}},
            [f'{TERM}.matchLabelKeys[0]: Invalid value: "gone": exists in both matchLabelKeys and mismatchLabelKeys'],
        ),
        ({"topologyKey": "zone", "mismatchLabelKeys": ["app"], "labelSelector": SELECTOR}, []),
    ],
)
def test_errors_of_pod_affinity_terms(term: Json, errors: list[str]) -> None:
    metadata_with_labels: Json = {"name": "web-0", "labels": {"app": "web", "version": "v1"}}
    assert errors_of({"affinity": {"podAffinity": {REQUIRED: [term]}}}, metadata_with_labels) == errors

    weighted = {"weight": 0, "podAffinityTerm": term}
    path = f"spec.affinity.podAntiAffinity.{PREFERRED}[0]"
    assert errors_of({"affinity": {"podAntiAffinity": {PREFERRED: [weighted]}}}, metadata_with_labels) == [
        f"{path}.weight: Invalid value: 0: must be in the range 1-100",
        *(error.replace(TERM, f"{path}.podAffinityTerm") for error in errors),
    ]


@pytest.mark.parametrize(
    ("node_affinity", "errors"),
    [
        (
            {REQUIRED: {"nodeSelectorTerms": []}},
            [f"{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"],
        ),
        (
            {PREFERRED: [{"weight": 101, "preference": {"matchFields": [{"key": "spec.x", "operator": "Gt"}]}}]},
            [
                f"{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
                f'{PREFERENCE}.operator: Invalid value: "Gt": not a valid selector operator',
                f'{PREFERENCE}.key: Invalid value: "spec.x": not a valid field selector key',
            ],
        ),
    ],
)
def test_errors_of_node_affinity(node_affinity: Json, errors: list[str]) -> None:
    expected = [f"spec.affinity.nodeAffinity.{error}" for error in errors]
    assert errors_of({"affinity": {"nodeAffinity": node_affinity}}) == expected


SPREAD = "spec.topologySpreadConstraints[0]"
CONSTRAINT: Json = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"maxSkew": 0}, [f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"]),
        ({"topologyKey": ""}, [f"{SPREAD}.topologyKey: Required value: can not be empty"]),
        (
            {"whenUnsatisfiable": "Never"},
            [
                (
                    f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Never": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                )
            ],
        ),
        ({"minDomains": 0}, [f"{SPREAD}.minDomains: Invalid value: 0: must be greater than zero"]),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            [
                (
                    f"{SPREAD}.minDomains: Invalid value: 2: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
        ),
        (
            {"nodeAffinityPolicy": "honor", "nodeTaintsPolicy": ""},
            [
                f'{SPREAD}.nodeAffinityPolicy: Unsupported value: "honor": supported values: "Honor", "Ignore"',
                f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "": supported values: "Honor", "Ignore"',
            ],
        ),
        (
            {"matchLabelKeys": ["app"], "labelSelector": SELECTOR},
            [f'{SPREAD}[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector'],
        ),
        (
            {"matchLabelKeys": ["app"], "labelSelector": None},
            [f"{SPREAD}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        ),
        (
            {"labelSelector": {"matchLabels": {"app": "a b"}}},
            [f'{SPREAD}.labelSelector.matchLabels: Invalid value: "a b": {LABEL_VALUE}'],
        ),
    ],
)
def test_errors_of_topology_spread_constraints(change: Json, errors: list[str]) -> None:
    metadata_with_labels: Json = {"name": "web-0", "labels": {"app": "web"}}

    assert errors_of({"topologySpreadConstraints": [CONSTRAINT | change]}, metadata_with_labels) == errors


def test_a_spread_constraint_is_unique_by_key_and_action() -> None:
    assert errors_of({"topologySpreadConstraints": [CONSTRAINT, CONSTRAINT | {"maxSkew": 2}]}) == [
        f'{SPREAD}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"'
    ]


def test_control_characters_are_escaped() -> None:
    errors = errors_of({"priorityClassName": "\x1b[31mred"})

    assert errors == [f'spec.priorityClassName: Invalid value: "\\x1b[31mred": {DNS_SUBDOMAIN}']


# --- volumes and mounts


def mounting(*names: str, path: str = "/data") -> Json:
    return container(volumeMounts=[{"name": name, "mountPath": f"{path}/{name}"} for name in names])


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {"name": "c"}}], "containers": [mounting("v")]},
            [],
            id="valid",
        ),
        pytest.param({"containers": [mounting("kube-api-access")]}, ['Not found: "kube-api-access"'], id="no volume"),
        pytest.param(
            {"volumes": [{"name": "config", "emptyDir": {}}], "containers": [mounting("confg")]},
            ['Not found: "confg" (did you mean "config"?)'],
            id="misspelled",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/var"}}], "containers": [mounting("v")]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type", 'Not found: "v"'],
            id="two sources",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
            id="no claim name",
        ),
        pytest.param(
            {"volumes": [{"name": "v"}, {"name": "v"}, {"name": "V"}, {}]},
            [
                'spec.volumes[1].name: Duplicate value: "v"',
                f'spec.volumes[2].name: Invalid value: "V": {DNS_LABEL}',
                "spec.volumes[3].name: Required value",
            ],
            id="names",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v"}],
                "initContainers": [container(volumeMounts=[{"name": "v", "mountPath": "/a"}] * 2 + [{"name": "v"}])],
            },
            [
                'spec.initContainers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
                "spec.initContainers[0].volumeMounts[2].mountPath: Required value",
            ],
            id="paths",
        ),
        pytest.param(
            {"hostUsers": False, "hostPID": True, "hostIPC": True},
            [
                "spec.HostPID: Forbidden: when `hostUsers` is false",
                "spec.HostIPC: Forbidden: when `hostUsers` is false",
            ],
            id="user namespaces",
        ),
    ],
)
def test_volumes_and_mounts(spec: Json, errors: list[str]) -> None:
    manifest = {"metadata": {"name": "web-0"}, "spec": {"containers": [container()]} | spec}
    pod, kubelet = msgspec.convert(manifest, Pod), msgspec.convert(manifest, KubeletFields).spec
    found = [str(error) for error in validate_kubelet_fields(pod, kubelet)]
    assert [text.removeprefix("spec.containers[0].volumeMounts[0].name: ") for text in found] == errors


def test_a_mount_may_name_a_volume_that_the_controller_adds() -> None:
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    manifest = {"metadata": {"name": "db-0"}, "spec": {"containers": [mounting("data")]}}
    pod = msgspec.convert(manifest | {"spec": {"volumes": claims}}, Pod)
    assert not list(validate_kubelet_fields(pod, msgspec.convert(manifest, KubeletFields).spec))

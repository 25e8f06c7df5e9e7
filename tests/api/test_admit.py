"""Admission as a whole: order of plugins, reported changes, and errors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kschedx.apiserver.admission import (
    DEFAULT_TOLERATIONS,
    NODE_SELECTOR,
    OPTIONAL_PLUGINS,
    TOLERATIONS_WHITELIST,
    AdmissionChange,
    AdmissionContext,
    admit,
    check_plugins,
    default_limit_range,
)
from kschedx.errors import InputError, NotAdmittedError
from kschedx.kube.field_errors import ValidationOptions
from kschedx.kube.types import LimitRange, Pod, PriorityClass, RuntimeClass, Toleration

Json = dict[str, Any]

NOT_READY = "node.kubernetes.io/not-ready:NoExecute op=Exists"
UNREACHABLE = "node.kubernetes.io/unreachable:NoExecute op=Exists"


def limit_range(name: str, **item: Json) -> LimitRange:
    manifest = {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", **item}]},
    }
    return default_limit_range(msgspec.convert(manifest, LimitRange))


KATA = msgspec.convert(
    {
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
    RuntimeClass,
)
USUAL = msgspec.convert({"metadata": {"name": "usual"}, "value": 10, "globalDefault": True}, PriorityClass)
CLUSTER = AdmissionContext(
    limit_ranges={"shop": [limit_range("defaults", default={"cpu": "500m"}, max={"cpu": "2"})]},
    runtime_classes={"kata": KATA},
    priority_classes={"usual": USUAL},
    namespace_annotations={"shop": {NODE_SELECTOR: "team=shop", DEFAULT_TOLERATIONS: '[{"operator": "Exists"}]'}},
)
EMPTY = AdmissionContext()


def pod(*containers: Json, namespace: str = "shop", labels: Json | None = None, **spec: object) -> Pod:
    named = [{"name": f"c{index}", "image": "app", **item} for index, item in enumerate(containers or ({},))]
    metadata = {"name": "web-0", "namespace": namespace, "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": named, **spec}}, Pod)


def requests_of(cpu: str) -> Json:
    return {"resources": {"requests": {"cpu": cpu}}}


def facts_of(changes: tuple[AdmissionChange, ...]) -> list[tuple[str, str, str, str]]:
    return [(change.source or change.plugin, change.container, change.item, change.after) for change in changes]


def refusal(pod: Pod, context: AdmissionContext = CLUSTER) -> str:
    with pytest.raises(InputError) as error:
        admit(pod, context)
    return str(error.value)


def test_changes_of_admission_have_source_and_order() -> None:
    admission = admit(pod(runtimeClassName="kata"), CLUSTER)
    assert facts_of(admission.changes) == [
        ("LimitRange shop/defaults", "c0", "requests.cpu", "500m"),
        ("LimitRange shop/defaults", "c0", "limits.cpu", "500m"),
        ("Priority", "", "priorityClassName", "usual"),
        ("Priority", "", "priority", "10"),
        ("Priority", "", "preemptionPolicy", "PreemptLowerPriority"),
        ("DefaultTolerationSeconds", "", "toleration", NOT_READY),
        ("DefaultTolerationSeconds", "", "toleration", UNREACHABLE),
        ("RuntimeClass kata", "", "overhead.cpu", "250m"),
        ("RuntimeClass kata", "", "nodeSelector.runtime", "kata"),
        ("RuntimeClass kata", "", "toleration", "kata:NoSchedule op=Exists"),
    ]
    spec = admission.pod.spec
    assert spec.containers[0].resources.requests == {"cpu": "500m"}
    assert (spec.priority, spec.overhead, spec.node_selector) == (10, {"cpu": "250m"}, {"runtime": "kata"})


def test_plugins_of_a_namespace_skip_other_namespaces() -> None:
    admission = admit(pod(namespace="blog"), CLUSTER)
    assert {change.plugin for change in admission.changes} == {"Priority", "DefaultTolerationSeconds"}


def test_an_admitted_pod_is_not_changed_again() -> None:
    first = admit(pod(runtimeClassName="kata"), CLUSTER)
    second = admit(first.pod, CLUSTER)
    assert (second.pod, second.changes) == (first.pod, ())


def test_optional_plugins_run_if_they_are_enabled() -> None:
    context = msgspec.structs.replace(CLUSTER, enabled_plugins=OPTIONAL_PLUGINS)
    admission = admit(pod({"resources": {"limits": {"example.com/gpu": "1"}}}), context)
    facts = facts_of(admission.changes)
    assert ("Namespace shop", "", "nodeSelector.team", "shop") in facts
    assert ("Namespace shop", "", "toleration", "op=Exists") in facts
    assert ("ExtendedResourceToleration", "", "toleration", "example.com/gpu:NoSchedule op=Exists") in facts
    dropped = [change.before for change in admission.changes if change.item == "toleration" and not change.after]
    assert dropped == [NOT_READY, UNREACHABLE]


def test_an_unknown_optional_plugin() -> None:
    check_plugins(OPTIONAL_PLUGINS)
    with pytest.raises(InputError, match=r'"PodNodeSelecter" \(did you mean "PodNodeSelector"\?\)'):
        check_plugins(["PodNodeSelecter"])
    with pytest.raises(InputError, match=r"known are PodNodeSelector, "):
        check_plugins(["x"])


@pytest.mark.parametrize(
    ("tolerations", "new_tolerations"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}], [UNREACHABLE]),
        ([{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}], [NOT_READY]),
        (
            [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
        ),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
    ],
)
def test_default_tolerations_of_not_ready_and_unreachable(tolerations: list[Json], new_tolerations: list[str]) -> None:
    admission = admit(pod(tolerations=tolerations), EMPTY)
    assert [change.after for change in admission.changes if change.item == "toleration"] == new_tolerations
    new = admission.pod.spec.tolerations[len(tolerations) :]
    assert {toleration.toleration_seconds for toleration in new} == ({300} if new_tolerations else set())


@pytest.mark.parametrize(
    ("invalid_pod", "message"),
    [
        pytest.param(
            pod(priorityClassName="usal", runtimeClassName="ghost"),
            'spec.priorityClassName: pods "web-0" is forbidden: no PriorityClass with name usal was found '
            '(did you mean "usual"?)',
            id="Priority runs before RuntimeClass",
        ),
        pytest.param(
            pod({"image": ""}, runtimeClassName="ghost"),
            'spec.runtimeClassName: pods "web-0" is forbidden: pod rejected: RuntimeClass "ghost" not found',
            id="mutating plugins run before validation",
        ),
        pytest.param(
            pod(priority=7),
            'spec.priority: pods "web-0" is forbidden: the integer value of priority (7) must not be provided in '
            "pod spec; priority admission controller computed 10 from the given PriorityClass name",
            id="a priority of its own",
        ),
        pytest.param(
            pod(requests_of("3")),
            'spec.containers[0].resources.requests: Pod "web-0" is invalid: spec.containers[0].resources.requests: '
            'Invalid value: "3": must be less than or equal to cpu limit of 500m '
            "(after the changes of LimitRange shop/defaults)",
            id="validation of the defaults of a LimitRange precedes its refusal",
        ),
        pytest.param(
            pod(requests_of("1"), {"image": ""}),
            '[spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit of '
            "500m, spec.containers[1].image: Required value]",
            id="several errors",
        ),
        pytest.param(
            pod({"resources": {"limits": {"cpu": "3"}}}),
            'spec.containers[0].resources.limits[cpu]: pods "web-0" is forbidden: maximum cpu usage per Container is '
            "2, but limit is 3 (LimitRange shop/defaults)",
            id="a LimitRange",
        ),
        pytest.param(
            pod(overhead={"cpu": "1"}),
            'spec.overhead: pods "web-0" is forbidden: pod rejected: Pod Overhead set without corresponding '
            "RuntimeClass defined Overhead",
            id="an overhead of its own",
        ),
        pytest.param(
            pod(requests_of("1 core")),
            "spec.containers[0].resources.requests[cpu]: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' (found '1 core')",
            id="an invalid quantity",
        ),
    ],
)
def test_errors_of_admission(invalid_pod: Pod, message: str) -> None:
    assert refusal(invalid_pod) == message


def test_an_error_has_the_generate_name_of_a_pod_without_a_name() -> None:
    unnamed = pod(priorityClassName="ghost")
    unnamed = replace(unnamed, metadata=replace(unnamed.metadata, name="", generate_name="web-"))
    assert 'pods "web-" is forbidden: ' in refusal(unnamed)


def test_a_refusal_by_the_tolerations_whitelist() -> None:
    annotations = {"shop": {TOLERATIONS_WHITELIST: '[{"key": "spot", "operator": "Exists"}]'}}
    context = AdmissionContext(namespace_annotations=annotations, enabled_plugins=OPTIONAL_PLUGINS)
    with pytest.raises(NotAdmittedError, match=r"^spec\.tolerations\[0\]: pod tolerations \(possibly merged"):
        admit(pod(), context)


def test_the_first_violated_limit_range_is_reported() -> None:
    ranges = [
        limit_range("a", max={"cpu": "4"}),
        limit_range("b", max={"cpu": "2"}),
        limit_range("c", max={"cpu": "1"}),
    ]
    context = AdmissionContext(limit_ranges={"shop": ranges})
    assert refusal(pod({"resources": {"limits": {"cpu": "3"}}}), context).endswith("(LimitRange shop/b)")


def test_unknown_runtime_classes_are_refused() -> None:
    context = msgspec.structs.replace(CLUSTER, runtime_classes={})
    ghost = pod(runtimeClassName="ghost", overhead={"cpu": "1"})
    assert 'RuntimeClass "ghost" not found' in refusal(ghost, context)
    assert "Pod Overhead set without" in refusal(pod(overhead={"cpu": "1"}), context)


@pytest.mark.parametrize("merges", [True, False])
def test_merging_label_keys_of_spread_constraints(merges: bool) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash"],
    }
    new_pod = pod(labels={"hash": "abc"}, topologySpreadConstraints=[constraint])
    (after,) = admit(new_pod, AdmissionContext(merges_spread_label_keys=merges)).pod.spec.topology_spread_constraints
    assert after.label_selector is not None
    assert [
        (match_expression.key, match_expression.values) for match_expression in after.label_selector.match_expressions
    ] == ([("hash", ("abc",))] if merges else [])


def test_a_gate_allows_comparison_operators() -> None:
    greater = Toleration(key="cores", operator="Gt", value="8")
    new_pod = pod(tolerations=[msgspec.to_builtins(greater)])
    assert 'spec.tolerations[0].operator: Unsupported value: "Gt"' in refusal(new_pod, EMPTY)
    context = AdmissionContext(validation=ValidationOptions(toleration_comparison_operators=True))
    assert greater in admit(new_pod, context).pod.spec.tolerations

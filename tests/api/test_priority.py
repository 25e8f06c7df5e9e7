"""The priority that admission sets on a pod."""

from __future__ import annotations

import pytest

from kschedx.apiserver.pod_classes import priority_conflicts, resolve_priority
from kschedx.errors import InputError
from kschedx.kube.types import ObjectMeta, PodSpec, PriorityClass


def priority_class(name: str, value: int, policy: str | None = None, *, default: bool = False) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=policy, global_default=default)


def by_name(*classes: PriorityClass) -> dict[str, PriorityClass]:
    return {item.metadata.name: item for item in classes}


HIGH = priority_class("high", 1000)
POLITE = priority_class("polite", 500, "Never")
USUAL = priority_class("usual", 10, default=True)
LOW = priority_class("low", -5, default=True)


@pytest.mark.parametrize(
    ("spec", "classes", "resolved"),
    [
        pytest.param(PodSpec(), by_name(HIGH), ("", 0, "PreemptLowerPriority"), id="no class"),
        pytest.param(PodSpec(), by_name(HIGH, USUAL), ("usual", 10, "PreemptLowerPriority"), id="the global default"),
        pytest.param(PodSpec(), by_name(USUAL, LOW), ("low", -5, "PreemptLowerPriority"), id="the lower of two"),
        pytest.param(
            PodSpec(priority_class_name="high"),
            by_name(HIGH, USUAL),
            ("high", 1000, "PreemptLowerPriority"),
            id="named",
        ),
        pytest.param(PodSpec(priority_class_name="polite"), by_name(POLITE), ("polite", 500, "Never"), id="its policy"),
        pytest.param(
            PodSpec(priority_class_name="polite", preemption_policy="Never"),
            by_name(POLITE),
            ("polite", 500, "Never"),
            id="the same policy as its class",
        ),
        pytest.param(
            PodSpec(priority_class_name="system-node-critical"),
            {},
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="built in, most critical",
        ),
        pytest.param(
            PodSpec(priority_class_name="system-cluster-critical"),
            {},
            ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
            id="built in",
        ),
    ],
)
def test_priority_comes_from_the_class(
    spec: PodSpec, classes: dict[str, PriorityClass], resolved: tuple[str, int, str]
) -> None:
    after = resolve_priority(spec, classes)

    assert (after.priority_class_name, after.priority, after.preemption_policy) == resolved
    assert not list(priority_conflicts(after, classes))


@pytest.mark.parametrize("spec", [PodSpec(priority=0), PodSpec(priority=7, priority_class_name="gone")])
def test_an_admitted_pod_keeps_its_priority(spec: PodSpec) -> None:
    assert resolve_priority(spec, by_name(USUAL)) is spec


def test_an_unknown_class_has_a_suggestion() -> None:
    spec = PodSpec(priority_class_name="hihg")

    with pytest.raises(InputError) as error:
        resolve_priority(spec, by_name(HIGH, USUAL))
    expected = 'spec.priorityClassName: no PriorityClass with name hihg was found (did you mean "high"?)'
    assert str(error.value) == expected
    assert [str(error) for error in priority_conflicts(spec, by_name(HIGH, USUAL))] == [expected]


@pytest.mark.parametrize(
    ("spec", "conflict"),
    [
        (
            PodSpec(priority_class_name="high", priority=5),
            ("spec.priority", "the integer value of priority (5)", "1000"),
        ),
        (
            PodSpec(priority_class_name="high", priority=1000, preemption_policy="Never"),
            ("spec.preemptionPolicy", "the string value of PreemptionPolicy (Never)", "PreemptLowerPriority"),
        ),
    ],
)
def test_conflicts_with_a_priority_class(spec: PodSpec, conflict: tuple[str, str, str]) -> None:
    field, value, computed = conflict
    message = (
        f"{field}: {value} must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )
    assert [str(error) for error in priority_conflicts(spec, by_name(HIGH))] == [message]


def test_a_policy_without_a_class_is_an_error() -> None:
    with pytest.raises(InputError, match="computed PreemptLowerPriority"):
        resolve_priority(PodSpec(preemption_policy="Never"), {})

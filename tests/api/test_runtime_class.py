"""RuntimeClasses: changes to a pod, conflicts, and merged tolerations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.apiserver.pod_classes import apply_runtime_class, check_overhead, check_runtime_class, find_runtime_class
from kschedx.errors import InputError
from kschedx.kube.tolerations import covers, merge_tolerations, tolerates
from kschedx.kube.types import PodSpec, RuntimeClass, Taint, Toleration

Json = dict[str, Any]

OVERHEAD = {"overhead": {"podFixed": {"cpu": "250m", "memory": "1Gi"}}}


def runtime_class(**fields: Json) -> RuntimeClass:
    return msgspec.convert({"metadata": {"name": "kata"}, **fields}, RuntimeClass)


def spec_of(**fields: object) -> PodSpec:
    return msgspec.convert({"runtimeClassName": "kata", **fields}, PodSpec)


@pytest.mark.parametrize(
    ("fields", "before", "after"),
    [
        pytest.param({}, {"overhead": {"cpu": "1"}}, {"overhead": {"cpu": "1"}}, id="nothing to add"),
        pytest.param(OVERHEAD, {}, {"overhead": {"cpu": "250m", "memory": "1Gi"}}, id="overhead"),
        pytest.param(
            OVERHEAD,
            {"overhead": {"cpu": "0.25", "memory": "1024Mi"}},
            {"overhead": {"cpu": "250m", "memory": "1Gi"}},
            id="the same overhead in other words",
        ),
        pytest.param(
            {"scheduling": {"nodeSelector": {"runtime": "kata", "disk": "ssd"}}},
            {"nodeSelector": {"disk": "ssd", "zone": "a"}},
            {"nodeSelector": {"disk": "ssd", "zone": "a", "runtime": "kata"}},
            id="node selector",
        ),
        pytest.param(
            {"scheduling": {"tolerations": [{"key": "kata", "operator": "Exists"}]}},
            {"tolerations": [{"key": "kata", "operator": "Equal", "value": "x"}, {"key": "gpu", "operator": "Exists"}]},
            {"tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "kata", "operator": "Exists"}]},
            id="tolerations",
        ),
        pytest.param(
            {"scheduling": {}},
            {"tolerations": [{"key": "gpu", "operator": "Exists"}] * 2},
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            id="a pod's own tolerations, once each",
        ),
    ],
)
def test_changes_by_a_runtime_class(fields: Json, before: Json, after: Json) -> None:
    assert apply_runtime_class(spec_of(**before), runtime_class(**fields)) == spec_of(**after)


@pytest.mark.parametrize(
    ("fields", "spec", "message"),
    [
        (
            OVERHEAD,
            {"overhead": {"cpu": "250m"}},
            "spec.overhead: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"scheduling": {"nodeSelector": {"runtime": "kata"}}},
            {"nodeSelector": {"runtime": "runc"}},
            (
                "spec.nodeSelector[runtime]: conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; "
                "pod.spec.nodeSelector[runtime] = runc"
            ),
        ),
    ],
)
def test_conflicts_with_a_runtime_class(fields: Json, spec: Json, message: str) -> None:
    with pytest.raises(InputError) as error:
        apply_runtime_class(spec_of(**spec), runtime_class(**fields))
    assert str(error.value) == message


def test_an_unknown_class_has_a_suggestion() -> None:
    with pytest.raises(InputError) as error:
        find_runtime_class(spec_of(runtimeClassName="katta"), {"kata": runtime_class()})
    assert str(error.value) == (
        'spec.runtimeClassName: pod rejected: RuntimeClass "katta" not found (did you mean "kata"?)'
    )


def test_a_pod_without_a_runtime_class() -> None:
    assert find_runtime_class(PodSpec(), {"kata": runtime_class()}) is None


@pytest.mark.parametrize("runtime_class_or_none", [None, runtime_class()], ids=["no class", "a class without overhead"])
def test_the_overhead_of_a_pod_needs_its_runtime_class(runtime_class_or_none: RuntimeClass | None) -> None:
    check_overhead(PodSpec(), runtime_class_or_none)
    with pytest.raises(InputError, match=r"^spec\.overhead: pod rejected: Pod Overhead set without corresponding"):
        check_overhead(PodSpec(overhead={"cpu": "1"}), runtime_class_or_none)


def test_an_error_names_the_field_of_an_invalid_overhead() -> None:
    with pytest.raises(InputError, match=r"^overhead\.podFixed\[cpu\]: quantities must match"):
        check_runtime_class(runtime_class(overhead={"podFixed": {"cpu": "much"}}))


# --- merging tolerations


def toleration(text: str) -> Toleration:
    """Return the toleration `key operator value effect seconds`, with a dash for each missing field."""
    key, operator, value, effect, seconds = ("" if part == "-" else part for part in text.split())
    return Toleration(
        key=key, operator=operator, value=value, effect=effect, toleration_seconds=int(seconds) if seconds else None
    )


@pytest.mark.parametrize(
    ("general", "specific", "is_covered"),
    [
        ("a Equal x NoSchedule -", "a Equal x NoSchedule -", True),
        ("a Exists - NoSchedule -", "a Equal x NoSchedule -", True),
        ("a Equal x NoSchedule -", "a Exists - NoSchedule -", False),
        ("a Equal x NoSchedule -", "a Equal y NoSchedule -", False),
        ("a - x NoSchedule -", "a Equal x NoSchedule -", True),
        ("a Equal x NoSchedule -", "a - x NoSchedule -", False),
        ("a - x - -", "a - x - -", True),
        ("a Exists - - -", "a Exists - NoExecute 5", True),
        ("a Exists - NoSchedule -", "a Exists - - -", False),
        ("a Exists - NoSchedule -", "a Exists - NoExecute -", False),
        ("- Exists - - -", "b Equal x NoSchedule -", True),
        ("a Exists - - -", "b Exists - - -", False),
        ("a Exists - NoExecute 10", "a Exists - NoExecute 5", True),
        ("a Exists - NoExecute 5", "a Exists - NoExecute 10", False),
        ("a Exists - NoExecute 5", "a Exists - NoExecute -", False),
        ("a Exists - NoExecute -", "a Exists - NoExecute 5", True),
        ("a Gt 5 - -", "a Gt 6 - -", False),
        ("a Exists - - -", "a Gt 6 - -", True),
    ],
)
def test_a_general_toleration_covers_a_specific_one(general: str, specific: str, is_covered: bool) -> None:
    assert covers(toleration(general), toleration(specific)) is is_covered


TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["Equal", "Exists"]),
    value=st.sampled_from(["", "x"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
TAINTS = [
    Taint(key=key, value=value, effect=effect)
    for key in "ab"
    for value in ("", "x")
    for effect in ("NoSchedule", "NoExecute")
]


@given(st.lists(TOLERATIONS), st.lists(TOLERATIONS))
def test_merged_tolerations_are_equivalent_and_unique(first: list[Toleration], second: list[Toleration]) -> None:
    merged = merge_tolerations(first, second)
    assert len(set(merged)) == len(merged)
    assert set(merged) <= {*first, *second}
    for item in merged:
        assert not [other for other in merged if other != item and covers(other, item) and not covers(item, other)]
    for taint in TAINTS:
        before, after = (
            any(tolerates(item, taint, comparison=False) for item in tolerations if _is_valid(item))
            for tolerations in ((*first, *second), merged)
        )
        assert before == after or not all(map(_is_valid, (*first, *second)))


def _is_valid(item: Toleration) -> bool:
    """Tell whether the API server would accept the toleration."""
    return (bool(item.key) or item.operator == "Exists") and not (item.operator == "Exists" and item.value)

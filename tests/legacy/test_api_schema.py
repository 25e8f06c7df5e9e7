"""Fields that old API servers stored, and verdicts joined from several checks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.framework.status import Code, Status, Verdicts
from kschedx.kube.selectors import SelectorRequirement
from kschedx.legacy.api_schema import Schema, stored_snapshot, stored_spec
from kschedx.legacy.interface import join_verdicts
from kschedx.legacy.scheduler import PROVIDERS
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

SCHEMAS = {version: provider(resolve(version)).schema for version, provider in PROVIDERS.items()}

TERM: Manifest = {
    "topologyKey": "zone",
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "own", "operator": "In", "values": ["a"]}],
    },
    "matchLabelKeys": ["version"],
    "mismatchLabelKeys": ["tenant"],
    "namespaceSelector": {},
}
MODERN_SPEC: Manifest = {
    "containers": [{"name": "main", "resources": {"requests": {"cpu": "1500u", "memory": "100m", "acme.io/gpu": "1"}}}],
    "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
    "overhead": {"cpu": "1"},
    "resources": {"requests": {"cpu": "4"}},
    "schedulingGates": [{"name": "later"}],
    "priorityClassName": "patient",
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "volumes": [{"name": "scratch", "ephemeral": {}}],
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
}
PRIORITY_CLASS: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "patient"},
    "value": 7,
    "preemptionPolicy": "Never",
}
WEB = pod("web", labels={"version": "2", "tenant": "t"}, spec=MODERN_SPEC)
SNAPSHOT = Snapshot.from_objects([node("a"), PRIORITY_CLASS, WEB])
SPEC = SNAPSHOT.pods[0].spec


@pytest.mark.parametrize("version", SCHEMAS)
def test_fields_of_later_versions_are_dropped(version: str) -> None:
    spec = stored_spec(SPEC, SCHEMAS[version])
    assert spec.overhead == {}
    assert spec.resources is None
    assert (SPEC.preemption_policy, spec.preemption_policy, spec.priority) == ("Never", None, 7)
    assert not spec.scheduling_gates
    assert not spec.topology_spread_constraints
    assert spec.volumes[0].ephemeral is None
    assert not any(container.is_restartable_init for container in spec.init_containers)
    assert len(spec.init_containers) == (1 if version == "1.13" else 0)


def test_quantities_are_rounded_for_each_container() -> None:
    requests = {
        version: stored_spec(SPEC, schema).containers[0].resources.requests for version, schema in SCHEMAS.items()
    }
    assert requests["1.13"] == {"cpu": "2m", "memory": "1", "acme.io/gpu": "1"}
    assert requests["1.5"] == {"cpu": "2m", "memory": "1"}


def test_a_term_lacks_the_merged_label_keys() -> None:
    affinity = stored_spec(SPEC, SCHEMAS["1.13"]).affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    (term,) = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert term.label_selector is not None
    assert term.label_selector.match_expressions == (SelectorRequirement(key="own", operator="In", values=("a",)),)
    assert (term.namespace_selector, term.match_label_keys, term.mismatch_label_keys) == (None, (), ())


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_a_stored_snapshot_is_stored_unchanged(schema: Schema) -> None:
    stored = stored_snapshot(SNAPSHOT, schema)
    assert stored_snapshot(stored, schema).pods.specs.values == stored.pods.specs.values


# --- several checks

STATUSES = st.builds(
    lambda code, reasons: Status(code=code, reasons=tuple(reasons) if code else ()),
    st.sampled_from([Code.SUCCESS, Code.ERROR, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE]),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=2),
)
TABLES = st.integers(1, 4).flatmap(
    lambda nodes: st.lists(st.lists(STATUSES, min_size=nodes, max_size=nodes), min_size=1, max_size=4)
)


@given(TABLES)
def test_joined_verdicts_equal_those_of_each_node(table: list[list[Status]]) -> None:
    result = join_verdicts([Verdicts.of_rows(checks) for checks in table])
    for row in range(len(table[0])):
        statuses = [checks[row] for checks in table]
        error = next((status for status in statuses if status.code is Code.ERROR), None)
        if error is not None:
            expected = (Code.ERROR, error.reasons)
        else:
            expected = (
                max(status.code for status in statuses),
                tuple(reason for status in statuses for reason in status.reasons),
            )
        assert (Code(int(result.codes[row])), result.reasons[row]) == expected
    assert result.codes.dtype == np.int64

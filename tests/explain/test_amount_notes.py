"""Quantities with a suffix that is probably wrong, and fields that a version ignores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kschedx
from kschedx.explain.cycle_notes import amount_notes, ignored_fields
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", "500M", "500M of cpu is 500,000,000 processors: did you mean 500m?"),
        ("cpu", "100Mi", "100Mi of cpu is 104,857,600 processors: did you mean 100m?"),
        ("cpu", "500m", None),
        ("cpu", "20k", "20k of cpu is 20,000 processors: did you mean 20m?"),
        ("cpu", "64", None),
        ("memory", "128m", "128m of memory is less than a byte: did you mean 128Mi?"),
        ("memory", "512", "512 of memory is 512 bytes: did you mean 512Mi?"),
        ("memory", "128M", None),
        ("memory", "1073741824", None),
        ("memory", "0", None),
        ("ephemeral-storage", "2000m", "2000m of ephemeral-storage is 2 bytes: did you mean 2000Mi?"),
    ],
)
def test_the_probable_quantity_is_named(resource: str, amount: str, expected: str | None) -> None:
    containers = [{"name": "main", "resources": {"requests": {resource: amount}, "limits": {resource: amount}}}]
    snapshot = Snapshot.from_objects([pod("web", containers=containers)])
    assert [note.text.removeprefix("container main: ") for note in amount_notes(snapshot.pods[0])] == (
        [expected] if expected else []
    )


_BY_LABEL = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"]}


@pytest.mark.parametrize(
    ("spec", "ignored", "last", "first"),
    [
        ({"schedulingGates": [{"name": "a.b/c"}]}, "spec.schedulingGates", "1.26", "1.27"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}, "spec.resourceClaims", "1.33", "1.34"),
        ({"topologySpreadConstraints": [_BY_LABEL]}, "matchLabelKeys", "1.26", "1.27"),
        ({"resources": {"requests": {"cpu": "1"}}}, "spec.resources", "1.33", "1.34"),
    ],
)
def test_a_field_whose_feature_gate_is_off_is_named(
    spec: dict[str, object], ignored: str, last: str, first: str
) -> None:
    web = Snapshot.from_objects([pod("web", spec={"containers": [{"name": "main"}], **spec})]).pods[0]
    (note,) = ignored_fields(web, resolve(last))
    assert note.text.startswith(f"{ignored}: ignored, because feature gate ")
    assert not [*ignored_fields(web, resolve(first))]


@pytest.mark.parametrize(
    ("metadata", "version", "is_on"),
    [
        ({"uid": "u", "creationTimestamp": "2026-01-02T00:00:00Z"}, None, True),
        ({"uid": "u", "creationTimestamp": "2026-01-02T00:00:00Z"}, "1.26", False),
        ({}, None, False),
    ],
    ids=["stored", "another version", "written by hand"],
)
def test_a_field_of_a_stored_pod_proves_its_feature_gate(
    metadata: Manifest, version: str | None, tmp_path: Path, *, is_on: bool
) -> None:
    stored = node("a", labels={"zone": "a"})
    at(stored, "metadata")["creationTimestamp"] = "2026-01-01T00:00:00Z"
    at(stored, "status")["nodeInfo"] = {"kubeletVersion": "v1.26.3"}
    web = pod("web", metadata=metadata, topologySpreadConstraints=[_BY_LABEL])
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [stored, web]}))
    answer = kschedx.explain(kschedx.load(str(tmp_path / "cluster.json")), "default/web", kube_version=version)
    assert (not any(each.id == "ignored-field" for each in answer.notes)) is is_on
    assert answer.setup is not None
    assert answer.setup.release.enabled("MatchLabelKeysInPodTopologySpread") is is_on


@pytest.mark.parametrize(
    ("spec", "more", "gates"),
    [
        ({"schedulingGroup": {"podGroupName": "a"}}, [], ("GenericWorkload", "GangScheduling")),
        ({"workloadRef": {"name": "a", "podGroup": "b"}}, [], ("GenericWorkload", "GangScheduling")),
        ({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}, [], ("TaintTolerationComparisonOperators",)),
        ({}, [("DeviceTaintRule", "resource.k8s.io/v1beta2", {})], ("DRADeviceTaintRules",)),
        (
            {},
            [("PodGroup", "scheduling.k8s.io/v1alpha2", {"schedulingConstraints": {"topology": [{"key": "rack"}]}})],
            ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling"),
        ),
        (
            {},
            [("PodGroup", "scheduling.k8s.io/v1alpha2", {"disruptionMode": "PodGroup"})],
            ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"),
        ),
    ],
)
def test_stored_objects_prove_alpha_gates(
    spec: Manifest, more: list[tuple[str, str, Manifest]], gates: tuple[str, ...], tmp_path: Path
) -> None:
    stored = {"uid": "u", "creationTimestamp": "2026-01-02T00:00:00Z"}
    of_default = {"name": "a", "namespace": "default", **stored}
    others = [{"apiVersion": api, "kind": kind, "metadata": of_default, "spec": body} for kind, api, body in more]
    items = [node("a"), pod("web", metadata=stored, spec={"containers": [{"name": "main"}], **spec}), *others]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    answer = kschedx.explain(kschedx.load(str(tmp_path / "cluster.json")), "default/web")
    assert answer.setup is not None
    default, inferred = resolve(None), answer.setup.release
    assert [gate for gate in inferred.gates if inferred.enabled(gate) and not default.enabled(gate)] == sorted(gates)

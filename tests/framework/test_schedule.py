"""Outcome and message of a whole scheduling cycle."""

from __future__ import annotations

import pytest

from kschedx.framework.cycle import Outcome
from tests.builders import Manifest, evaluate, node, pod

NOT_PREPARED = {
    "profiles": [{"plugins": {"preFilter": {"disabled": [{"name": "PodTopologySpread"}]}}}],
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
WITH_GATE = {"schedulingGates": [{"name": "example.com/wait"}]}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ]
}


def on_node_only(name: str) -> Manifest:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        (SPREAD, Outcome.ERROR),
        ({**WITH_GATE, **SPREAD}, Outcome.ERROR),
    ],
    ids=["open", "gated"],
)
def test_an_internal_error_precedes_a_gate(spec: Manifest, outcome: Outcome) -> None:
    assert evaluate([node("a"), pod("p", spec=spec)], "default/p", config=NOT_PREPARED).outcome is outcome


@pytest.mark.parametrize(
    ("nominated", "expected"),
    [
        ("", "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."),
        ("full", "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]."),
        ("gone", "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."),
        (
            "other",
            (
                "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
                "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
            ),
        ),
    ],
    ids=["none", "kept by PreFilter", "missing node", "removed by PreFilter"],
)
def test_the_nominated_node_has_its_own_status(nominated: str, expected: str) -> None:
    spec = {**on_node_only("full"), "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    objects = [
        node("full", allocatable={"cpu": "1", "memory": "1Gi", "pods": "10"}),
        node("other"),
        node("third"),
        pod("p", spec=spec, status={"nominatedNodeName": nominated}),
    ]
    assert evaluate(objects, "default/p").message.startswith(f"0/3 nodes are available: {expected} ")


@pytest.mark.parametrize(
    ("nodes", "nominated", "outcome"),
    [
        (["a"], "", Outcome.SCHEDULED),
        (["a", "b"], "", Outcome.ERROR),
        (["a", "b"], "b", Outcome.SCHEDULED),
    ],
    ids=["one node fits", "two fit", "the nominated node fits"],
)
def test_scoring_fails_only_where_nodes_are_scored(nodes: list[str], nominated: str, outcome: Outcome) -> None:
    invalid = {"weight": 1, "preference": {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["x"]}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [invalid]}}
    pending = pod("p", spec={"affinity": affinity}, status={"nominatedNodeName": nominated})
    cycle = evaluate([*map(node, nodes), pending], "default/p")
    assert cycle.outcome is outcome
    assert [cycle.all_nodes.names[row] for row in cycle.best] == ([nodes[-1]] if outcome is Outcome.SCHEDULED else [])

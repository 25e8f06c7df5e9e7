"""The obstacles that keep Karpenter from disrupting a node, in its words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kschedx.explain.setup import Setup
from kschedx.inquiry.scale_down import NodeRemovals
from kschedx.karpenter.disruption import disruptions, is_active, is_invalid
from kschedx.kube.autoscalers import DisruptionBudget, NodeClaim
from kschedx.kube.scalars import nanoseconds
from kschedx.render.scale_down import scale_down_lines, scale_down_view
from kschedx.render.view import Tone
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]
NOW = nanoseconds("2026-06-20T12:00:00Z")
GUARD = "karpenter.sh/do-not-disrupt"
LABELS = {
    "karpenter.sh/nodepool": "general",
    "node.kubernetes.io/instance-type": "m6i.large",
    "karpenter.sh/initialized": "true",
    "karpenter.sh/registered": "true",
    "karpenter.sh/capacity-type": "spot",
    "topology.kubernetes.io/zone": "eu-1a",
}


def cluster(
    *objects: Json,
    annotations: Json | None = None,
    on_pod: Json | None = None,
    labels: Json | None = None,
    replicas: int | None = None,
    **policy: Any,
) -> Snapshot:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "labels": LABELS if labels is None else labels, "annotations": annotations or {}},
        "spec": {"providerID": "aws:///one"},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "pods": "10"}},
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-x", "labels": {"karpenter.sh/nodepool": "general"}},
        "status": {"providerID": "aws:///one", "conditions": [{"type": "Consolidatable", "status": "True"}]},
    }
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {"disruption": {"consolidateAfter": "1m", **policy}, "replicas": replicas},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": on_pod or {}},
        "spec": {"nodeName": "one", "containers": [{"name": "main", "image": "web"}]},
        "status": {"phase": "Running", "startTime": "2026-06-20T11:00:00Z"},
    }
    return Snapshot.from_objects([node, claim, pool, pod, *objects])


def budget(name: str, allowed: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (cluster(), ""),
        (cluster(annotations={GUARD: "true"}), f'Disruption is blocked through the "{GUARD}" annotation'),
        (cluster(on_pod={GUARD: "true"}), f'Pod has "{GUARD}" annotation (Pod=shop/web)'),
        (cluster(on_pod={GUARD: "2h"}), f'Pod has "{GUARD}" annotation (Pod=shop/web)'),
        (cluster(on_pod={GUARD: "30m"}), ""),
        (cluster(on_pod={GUARD: "often"}), ""),
        (cluster(budget("web", 1)), ""),
        (cluster(budget("web", 0)), "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"),
        (
            cluster(budget("web", 1), budget("all", 1)),
            "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/web shop/all])",
        ),
        (
            cluster(labels={**LABELS, "karpenter.sh/initialized": ""}),
            "Node isn't initialized",
        ),
        (cluster(budgets=[{"nodes": "0"}]), "No allowed disruptions due to blocking budget"),
        (
            cluster(budgets=[{"nodes": "0", "reasons": ["Underutilized"]}]),
            "No allowed disruptions due to blocking budget",
        ),
        (cluster(budgets=[{"nodes": "0", "reasons": ["Drifted", "Empty"]}, {"nodes": "1"}]), ""),
        (cluster(replicas=2, consolidateAfter="Never"), 'NodePool "general" is static (replicas is 2)'),
        (cluster(consolidateAfter="Never"), 'NodePool "general" has consolidation disabled'),
        (cluster(consolidationPolicy="WhenEmpty"), 'NodePool "general" has non-empty consolidation disabled'),
    ],
)
def test_the_first_obstacle_has_karpenters_text(snapshot: Snapshot, expected: str) -> None:
    [result] = disruptions(snapshot, ["one"], NOW)
    assert [obstacle.text for obstacle in result.obstacles[:1]] == ([expected] if expected else [])
    assert result.pool == "general"
    assert result.is_consolidatable
    assert not result.is_empty


def answer(snapshot: Snapshot) -> NodeRemovals:
    setup = Setup.of_cluster(snapshot)
    return NodeRemovals(snapshot=snapshot, setup=setup, disruptions=disruptions(snapshot, ["one"], NOW))


def test_a_fix_names_the_blocking_budget() -> None:
    (fix,) = scale_down_view(answer(cluster(budgets=[{"nodes": "50%"}, {"nodes": "0%"}]))).items[0].fixes
    assert fix.title == "allow 1 node in disruption budget 2 of NodePool general"
    assert "/spec/disruption/budgets/1/nodes" in fix.commands[0]


def test_a_fix_reports_the_next_obstacle() -> None:
    snapshot = cluster(budgets=[{"nodes": "0"}], consolidateAfter="Never")
    budget, consolidation = scale_down_view(answer(snapshot)).items[0].fixes
    assert budget.seen == 'then NodePool "general" has consolidation disabled'
    assert consolidation.title == "set consolidateAfter of NodePool general from Never to 30s"


@pytest.mark.parametrize(
    ("spec", "policy", "on_pod", "phrase"),
    [
        ({}, {"consolidateAfter": "Never"}, {}, "Karpenter removes it: its NodeClaim is Drifted"),
        ({"terminationGracePeriod": "1h"}, {}, {GUARD: "true"}, "Karpenter removes it: its NodeClaim is Drifted"),
        ({}, {}, {GUARD: "true"}, f'Karpenter keeps it, Pod has "{GUARD}" annotation (Pod=shop/web)'),
        ({}, {"budgets": [{"nodes": "0"}]}, {}, "Karpenter keeps it, No allowed disruptions due to blocking budget"),
    ],
)
def test_what_keeps_a_drifted_node(spec: Json, policy: Json, on_pod: Json, phrase: str) -> None:
    snapshot = cluster(on_pod=on_pod, **policy)
    (claim,) = snapshot.of(NodeClaim)
    drifted = {
        "spec": spec,
        "status": {"providerID": "aws:///one", "conditions": [{"type": "Drifted", "status": "True"}]},
    }
    metadata = {"name": claim.name, "labels": {"karpenter.sh/nodepool": "general"}}
    changed = msgspec.convert({"metadata": metadata, **drifted}, NodeClaim)
    item = scale_down_view(answer(snapshot.with_records(NodeClaim, [changed]))).items[0]
    assert item.facts[0].items[0] == phrase
    assert (item.tone is Tone.GOOD) is phrase.endswith("Drifted")


def test_identical_nodes_share_a_row() -> None:
    alone = answer(cluster(budgets=[{"nodes": "0"}]))
    result = [replace(alone.disruptions[0], node=f"node-{number}") for number in range(40)]
    lines = [line.plain for line in scale_down_lines(replace(alone, disruptions=result), width=80)]
    assert lines[1] == "  because   No allowed disruptions due to blocking budget: 40 nodes"
    assert "  node-0 and 39 more  No allowed disruptions due to blocking budget" in lines
    assert len(lines) <= 30


@pytest.mark.parametrize(
    ("schedule", "duration", "at", "active"),
    [
        (None, None, "2026-06-20T12:00:00Z", True),
        ("0 9 * * *", "8h", "2026-06-20T08:59:59Z", False),
        ("0 9 * * *", "8h", "2026-06-20T09:00:00Z", True),
        ("0 9 * * *", "8h", "2026-06-20T16:59:59Z", True),
        ("0 9 * * *", "8h", "2026-06-20T17:00:00Z", False),
        ("0 9 * * mon-fri", "8h", "2026-06-20T12:00:00Z", False),  # a Saturday
        ("0 9 * * MON-FRI", "8h", "2026-06-19T12:00:00Z", True),
        ("0 22 * * 5", "10h", "2026-06-20T07:00:00Z", True),  # since Friday evening
        ("0 0 1 * 6", "1h", "2026-06-20T00:30:00Z", True),  # the first of the month, or a Saturday
        ("0 0 1 * *", "1h", "2026-06-20T00:30:00Z", False),
        ("*/15 * * * *", "5m", "2026-06-20T12:19:00Z", True),
        ("*/15 * * * *", "5m", "2026-06-20T12:20:00Z", False),
        ("10-20/5 12 ? jun *", "1m", "2026-06-20T12:15:30Z", True),
        ("@daily", "10m", "2026-06-20T00:05:00Z", True),
        ("@monthly", "10m", "2026-06-20T00:05:00Z", False),
        ("0 9 * * 7", "24h", "2026-06-21T12:00:00Z", False),  # Karpenter rejects day 7
    ],
)
def test_a_budget_is_active_during_its_schedule(
    schedule: str | None, duration: str | None, at: str, active: bool
) -> None:
    budget_with_schedule = DisruptionBudget(nodes="0", schedule=schedule, duration=duration)
    assert is_active(budget_with_schedule, nanoseconds(at)) is active


def test_an_invalid_schedule_blocks_disruption() -> None:
    unreadable = ("61 * * * *", "* * *", "0 9 * * 7", "9-3 * * * *", "a * * * *")
    assert all(is_invalid(DisruptionBudget(schedule=item, duration="1h")) for item in unreadable)

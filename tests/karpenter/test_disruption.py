"""What keeps Karpenter from taking a node away, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.karpenter.disruption import disruption
from kschedx.kube.scalars import nanoseconds
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
    *more: Json, annotations: Json | None = None, on_pod: Json | None = None, labels: Json | None = None, **policy: Any
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
        "spec": {"disruption": {"consolidateAfter": "1m", **policy}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": on_pod or {}},
        "spec": {"nodeName": "one", "containers": [{"name": "main", "image": "web"}]},
        "status": {"phase": "Running", "startTime": "2026-06-20T11:00:00Z"},
    }
    return Snapshot.from_objects([node, claim, pool, pod, *more])


def budget(name: str, allowed: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("snapshot", "told"),
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
        (cluster(consolidateAfter="Never"), 'NodePool "general" has consolidation disabled'),
        (cluster(consolidationPolicy="WhenEmpty"), 'NodePool "general" has non-empty consolidation disabled'),
    ],
)
def test_the_first_obstacle_is_karpenters(snapshot: Snapshot, told: str) -> None:
    found = disruption(snapshot, "one", NOW)
    assert [one.text for one in found.obstacles[:1]] == ([told] if told else [])
    assert found.pool == "general"
    assert found.is_consolidatable
    assert not found.is_empty

"""A partial fix takes a blocker away, and names all that remain."""

from __future__ import annotations

import kschedx
from tests.builders import node, pod

ZONE = "topology.kubernetes.io/zone"


def test_what_hides_behind_the_first_verdict_is_named() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    full = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    nodes = [node(f"node-{number}", allocatable=full, unschedulable=True) for number in range(2)]
    running = [pod(f"pod-{number}", labels={"app": "web"}, on=f"node-{number}") for number in range(2)]
    asks = [{"name": "main", "image": "app:v1", "resources": {"requests": {"memory": "2Gi"}}}]
    wants = {"containers": asks, "topologySpreadConstraints": [spread], "nodeSelector": {"disk": "nvme"}}
    target = pod("target", labels={"app": "web"}, spec=wants)
    snapshot = kschedx.Snapshot.from_objects([*nodes, *running, target])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/target").fixes]
    left = "NodeUnschedulable on 2 nodes, NodeResourcesFit on 2 nodes, PodTopologySpread on 2 nodes"
    assert f"drop disk=nvme (then still {left})" in titles
    assert not [title for title in titles if "honor node taints" in title]  # it changes nothing here

"""What cluster-autoscaler or Karpenter adds for all pending pods, to node groups or NodePools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.types import Node, NodeCondition, Pod, PodStatus
from kschedx.snapshot.snapshot import Snapshot

READY = (NodeCondition(type="Ready", status="True"),)


class NodeGrowth(Struct, frozen=True, kw_only=True):
    """All nodes that an autoscaler adds."""

    snapshot: Snapshot  # the cluster with the new nodes and the pods on them
    helped: int  # the number of pods for which nodes are added
    left: int  # the number of pods that no node group or NodePool helps
    by_chance: bool  # whether several choices were equally good somewhere; the first was taken


def with_new_nodes(snapshot: Snapshot, nodes: Sequence[tuple[Node, Sequence[Pod]]]) -> Snapshot:
    """Append nodes, with copies of pods that run on them."""
    cluster = snapshot.cluster
    new_pods: list[Pod] = []
    places: list[int] = []
    for node, pods in nodes:
        row = len(cluster.nodes)
        cluster = cluster.with_added(node)
        new_pods += [_copy_to_node(pod, node) for pod in pods]
        places += [row] * len(pods)
    table = snapshot.pods.with_pods(new_pods)
    where = np.concatenate([snapshot.pods.node, np.array(places, dtype=np.int64)])
    return replace(snapshot, cluster=cluster, pods=table.moved(where, len(cluster.nodes)), _tables={})


def _copy_to_node(pod: Pod, node: Node) -> Pod:
    return replace(
        pod,
        metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{node.name}", uid=""),
        spec=replace(pod.spec, node_name=node.name),
        status=PodStatus(),
    )

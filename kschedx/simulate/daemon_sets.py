"""The pods that a DaemonSet's controller makes: one for each node that its template allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kschedx.answer.subject import admitted
from kschedx.api.daemon_set_pods import pinned, pinned_to, runs_on
from kschedx.api.types import Node, Pod
from kschedx.api.workloads import made_of
from kschedx.explain.setup import Setup
from kschedx.simulate.workloads import like_pod, title
from kschedx.snapshot.daemon_sets import daemon_pods
from kschedx.snapshot.edits import with_pods
from kschedx.snapshot.snapshot import Snapshot


def missing_pods(
    snapshot: Snapshot, setup: Setup, manifest: Mapping[str, object], rows: Iterable[int]
) -> tuple[Snapshot, list[Pod]]:
    """The pods, which wait, for nodes without one, and the cluster with what is made for them.

    `rows` are the pods that the DaemonSet has. Raises `InputError` with it.
    """
    made = made_of(manifest)
    subject = admitted(snapshot, made.pod, setup, title=title(manifest), made=made.others)
    has_one = {snapshot.pods.node_names[row] or pinned_to(snapshot.pods.specs[row]) for row in rows}
    comparison = compares_taints(setup)
    names = [
        node.name
        for node in snapshot.cluster.nodes
        if node.name not in has_one and runs_on(subject.pod.spec, node, comparison=comparison)
    ]
    if not names:
        return snapshot, []
    snapshot, pods = like_pod(subject.snapshot, subject.pod, len(names))
    return snapshot, [pinned(pod, name) for pod, name in zip(pods, names, strict=True)]


def with_daemons_on(snapshot: Snapshot, setup: Setup, nodes: Iterable[Node]) -> Snapshot:
    """The cluster with the pods of its DaemonSets on nodes that have been added."""
    daemons = daemon_pods(snapshot, setup.scheduler_on(snapshot).nodes.options)
    comparison = compares_taints(setup)
    for one in daemons:
        names = [node.name for node in nodes if runs_on(one.spec, node, comparison=comparison)]
        snapshot, made = like_pod(snapshot, one.pod, len(names))
        pods = [pinned(pod, name) for pod, name in zip(made, names, strict=True)]
        on_nodes = [replace(pod, spec=replace(pod.spec, node_name=name)) for pod, name in zip(pods, names, strict=True)]
        snapshot = with_pods(snapshot, on_nodes) if on_nodes else snapshot
    return snapshot


def compares_taints(setup: Setup) -> bool:
    """Whether taints and tolerations know `Lt` and `Gt`."""
    return setup.release.enabled("TaintTolerationComparisonOperators")

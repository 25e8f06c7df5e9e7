"""A pod that runs already, looked at as if it were new."""

from __future__ import annotations

import msgspec

from kschedx.api.types import Pod
from kschedx.snapshot.snapshot import Snapshot


def as_if_new(snapshot: Snapshot, pod: Pod) -> tuple[Snapshot, Pod]:
    """A pod that runs already as if it were scheduled now: a cluster without it, and the pod bound to no node."""
    row = snapshot.pods.rows.get(pod.key)
    if row is None or snapshot.pods.node_names[row] not in snapshot.cluster.index:
        return snapshot, pod
    unbound = msgspec.structs.replace(pod.spec, node_name="")
    without = snapshot.without_pods([row])
    if snapshot.devices.claims:
        without = without.with_devices(snapshot.devices.without_consumers({pod.key}))
    return without, msgspec.structs.replace(pod, spec=unbound)

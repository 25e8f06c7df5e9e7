"""NoDiskConflict (pkg/scheduler/algorithm/predicates/predicates.go)."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.framework.state import CycleState
from kschedx.legacy.predicates.base import PluginPredicate
from kschedx.plugins.volume_restrictions import VolumeRestrictions
from kschedx.snapshot.nodes import NodeTable


class NoDiskConflict(PluginPredicate):
    """Disks that two pods of a node cannot share. Claims that belong to a single pod came later."""

    plugin_class = VolumeRestrictions
    text = "disk_conflict"
    resolvable = True

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        own = tuple(volume for volume in pod.spec.volumes if volume.persistent_volume_claim is None)
        super().prepare(state, replace(pod, spec=replace(pod.spec, volumes=own)), nodes)

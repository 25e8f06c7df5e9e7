"""NodeVolumeLimits (pkg/scheduler/framework/plugins/nodevolumelimits)."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.interface import PRE_FILTER_SKIP, FilterPlugin, PreFilterPlugin, PreFilterResult
from kschedx.framework.state import CycleState
from kschedx.framework.status import Verdicts
from kschedx.snapshot.nodes import NodeTable


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    name = "NodeVolumeLimits"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if not any(v.persistent_volume_claim or v.ephemeral or v.gce_persistent_disk or v.aws_elastic_block_store
                   or v.azure_disk or v.azure_file or v.cinder or v.vsphere_volume or v.portworx_volume
                   for v in pod.spec.volumes):
            return PRE_FILTER_SKIP
        raise UndecidableError("pods with volumes are not decided yet")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return Verdicts.success(len(nodes))

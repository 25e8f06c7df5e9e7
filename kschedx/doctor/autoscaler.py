"""What is missing to tell whether the cluster would grow."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.autoscaler_command import PROGRAM
from kschedx.api.karpenter import GROUP
from kschedx.api.kinds import key_of
from kschedx.api.types import AUTOSCALER_STATUS
from kschedx.doctor.contents import Contents
from kschedx.doctor.findings import AutoscalerFlags, Certainty, NoAutoscalerStatus, NoNodePools, Weakness

_GROWS = (Weakness(plugins=(), effect="whether the cluster would grow for a pod that fits nowhere"),)


def autoscaler_findings(contents: Contents) -> Iterator[NoAutoscalerStatus | AutoscalerFlags | NoNodePools]:
    """Of cluster-autoscaler and of Karpenter, in clusters that have one."""
    yield from _cluster_autoscaler(contents)
    made = [node for node in contents.nodes.values() if node.owner.kind == "NodeClaim"]
    if made and not contents.objects[key_of("NodePool", GROUP)]:
        yield NoNodePools(certainty=Certainty.CERTAIN, weakens=_GROWS, nodes=len(made), example=made[0].name)


def _cluster_autoscaler(contents: Contents) -> Iterator[NoAutoscalerStatus | AutoscalerFlags]:
    """It is known by the names of its pod and Deployment, as its charts have them."""
    if AUTOSCALER_STATUS in contents.objects["ConfigMap"]:
        if not any(PROGRAM in one.name for one in contents.objects["Deployment"].values()):
            yield AutoscalerFlags(certainty=Certainty.LIKELY, config_map=AUTOSCALER_STATUS)
        return
    pod = next((one for one in contents.pods.values() if PROGRAM in one.name), None)
    if pod is not None:
        yield NoAutoscalerStatus(
            certainty=Certainty.LIKELY,
            weakens=_GROWS,
            pod=pod.key,
            config_map=AUTOSCALER_STATUS,
        )

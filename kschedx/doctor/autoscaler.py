"""What is missing to tell whether the cluster would grow."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.autoscaler_command import PROGRAM
from kschedx.api.types import AUTOSCALER_STATUS
from kschedx.doctor.contents import Contents
from kschedx.doctor.findings import AutoscalerFlags, Certainty, NoAutoscalerStatus, Weakness


def autoscaler_findings(contents: Contents) -> Iterator[NoAutoscalerStatus | AutoscalerFlags]:
    """cluster-autoscaler is known by the names of its pod and Deployment, as its charts have them."""
    if AUTOSCALER_STATUS in contents.objects["ConfigMap"]:
        if not any(PROGRAM in one.name for one in contents.objects["Deployment"].values()):
            yield AutoscalerFlags(certainty=Certainty.LIKELY, config_map=AUTOSCALER_STATUS)
        return
    pod = next((one for one in contents.pods.values() if PROGRAM in one.name), None)
    if pod is not None:
        yield NoAutoscalerStatus(
            certainty=Certainty.LIKELY,
            weakens=(Weakness(plugins=(), effect="whether the cluster would grow for a pod that fits nowhere"),),
            pod=pod.key,
            config_map=AUTOSCALER_STATUS,
        )

"""What a HorizontalPodAutoscaler or KEDA's ScaledObject does to the replicas of a workload."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kschedx.controllers.states import NotScaled, ScaledToZero
from kschedx.controllers.workloads import Workload
from kschedx.kube.autoscalers import PAUSED_REPLICAS, HorizontalPodAutoscaler, ScaledObject, ScaleTarget
from kschedx.kube.conditions import condition_of
from kschedx.kube.controllers import convert
from kschedx.kube.decoding import map_at
from kschedx.kube.types import ObjectMeta
from kschedx.snapshot.snapshot import Snapshot


def scaled_to_zero(snapshot: Snapshot, workload: Workload, manifest: Mapping[str, object]) -> ScaledToZero:
    """Return the state of a workload at zero replicas, with the controller or autoscaler that keeps it there. A
    HorizontalPodAutoscaler with minReplicas of at least 1 ignores a workload at zero
    (pkg/controller/podautoscaler/horizontal.go)."""
    state = ScaledToZero(subject=workload.reference, field="spec.replicas")
    for keda in snapshot.of(ScaledObject):
        unready = condition_of(keda.status.conditions, "Ready", "False")
        if _scales(keda.spec.scale_target_ref, keda.metadata.namespace, workload):
            why = "no trigger is active, and minReplicaCount is 0"
            if keda.metadata.annotations.get(PAUSED_REPLICAS) == "0":
                why = f"annotation {PAUSED_REPLICAS} is 0"
            elif keda.spec.idle_replica_count == 0:
                why = "no trigger is active, and idleReplicaCount is 0"
            elif keda.spec.min_replica_count:
                continue
            elif unready is not None:
                why = f"it is not ready: {unready.message or unready.reason}"
            return replace(state, autoscaler=f"ScaledObject {keda.metadata.name}", why=why)
    for hpa in snapshot.of(HorizontalPodAutoscaler):
        if _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload) and hpa.spec.min_replicas == 0:
            named = f"HorizontalPodAutoscaler {hpa.metadata.name}"
            return replace(state, autoscaler=named, why="its metrics call for no pods, and minReplicas is 0")
        if _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload):
            return replace(state, disabled=f"HorizontalPodAutoscaler {hpa.metadata.name}")
    owner = convert(map_at(manifest, "metadata"), ObjectMeta).controller
    return state if owner is None else replace(state, owner=f"{owner.kind} {owner.name}")


def rescaled(snapshot: Snapshot, workload: Workload, replicas: int) -> str:
    """Return what a HorizontalPodAutoscaler does if a workload is scaled beyond its bounds; empty if it does
    nothing."""
    for hpa in snapshot.of(HorizontalPodAutoscaler):
        least, most = 1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas, hpa.spec.max_replicas
        if not replicas or most is None or not _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload):
            continue
        field, number = ("maxReplicas", most) if replicas > most else ("minReplicas", least)
        if replicas > most or replicas < least:
            named = f"HorizontalPodAutoscaler {hpa.metadata.name}"
            return f"{named} scales {workload.reference} to {number:,} again: its {field} is {number:,}"
    return ""


def _scales(target: ScaleTarget, namespace: str, workload: Workload) -> bool:
    return (target.kind or "Deployment", target.name, namespace) == (workload.kind, workload.name, workload.namespace)


def not_scaled(snapshot: Snapshot, workload: Workload, replicas: int) -> NotScaled | None:
    """Return the state according to the conditions of the autoscalers that scale the workload."""
    state = NotScaled(subject=workload.reference, replicas=replicas, autoscaler="", why="")
    for hpa in snapshot.of(HorizontalPodAutoscaler):
        if not _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload):
            continue
        named, most = f"HorizontalPodAutoscaler {hpa.metadata.name}", hpa.spec.max_replicas or 0
        if (broken := condition_of(hpa.status.conditions, "ScalingActive", "False")) is not None:
            return replace(state, autoscaler=named, why=f"does not scale ({broken.reason})", message=broken.message)
        limited = condition_of(hpa.status.conditions, "ScalingLimited", "True")
        if limited is not None and limited.reason == "TooManyReplicas" and replicas >= most:
            why = f"is at maxReplicas {most}"
            return replace(state, autoscaler=named, why=why, message=limited.message, most=most)
    for keda in snapshot.of(ScaledObject):
        unready = condition_of(keda.status.conditions, "Ready", "False")
        if unready is not None and _scales(keda.spec.scale_target_ref, keda.metadata.namespace, workload):
            named = f"ScaledObject {keda.metadata.name}"
            return replace(state, autoscaler=named, why=f"is not ready ({unready.reason})", message=unready.message)
    return None

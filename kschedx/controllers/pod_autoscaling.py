"""What a HorizontalPodAutoscaler or KEDA's ScaledObject does to the replicas of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.adoption import template_user
from kschedx.controllers.pod_lifecycle import add_on_down
from kschedx.controllers.states import ComponentDown, NotScaled, ObjectState, ScaledToZero
from kschedx.controllers.workloads import Workload, wanted_replicas, with_replicas, workload_of
from kschedx.kube.autoscalers import (
    PAUSED_REPLICAS,
    POD_AUTOSCALERS,
    HorizontalPodAutoscaler,
    PodAutoscaler,
    ScaledObject,
    ScaleTarget,
)
from kschedx.kube.conditions import condition_of
from kschedx.kube.controllers import convert
from kschedx.kube.custom_resources import stop_of
from kschedx.kube.decoding import map_at
from kschedx.kube.types import ObjectMeta
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot


def stopped_state(workload: Workload, manifest: Mapping[str, object]) -> ScaledToZero:
    """Return the state of a custom resource without pods: it is stopped, or its number of pods is 0."""
    if (stop := stop_of(manifest)) is not None:
        value = stop.value_in(manifest)
        text = "false" if value is False else str(value) or '""'
        return ScaledToZero(subject=workload.reference, field=stop.field, value=text)
    is_own = map_at(manifest, "spec").get("replicas") == 0
    return ScaledToZero(subject=workload.reference, field="spec.replicas" if is_own else "its number of pods")


def scaled_to_zero(
    snapshot: Snapshot, workload: Workload, manifest: Mapping[str, object]
) -> ScaledToZero | ObjectState:
    """Return the state of a workload at zero replicas, with the controller or autoscaler that keeps it there. One that
    only holds the template of an Argo Rollout is to stay there. A HorizontalPodAutoscaler with minReplicas of at least
    1 ignores a workload at zero (pkg/controller/podautoscaler/horizontal.go)."""
    if user := template_user(snapshot, workload):
        return ObjectState(subject=workload.reference, does=f"has no pods of its own: {user} uses its template")
    state = ScaledToZero(subject=workload.reference, field="spec.replicas")
    for keda in snapshot.of(ScaledObject):
        unready = condition_of(keda.status.conditions, "Ready", "False")
        if _scales(keda.spec.scale_target_ref, keda.metadata.namespace, workload):
            why = "no trigger is active, and minReplicaCount is 0"
            pausing = keda.pausing_annotation
            value = keda.metadata.annotations.get(pausing, "")
            if pausing and (pausing != PAUSED_REPLICAS or value == "0"):
                state, why = replace(state, idle=pausing), f"annotation {pausing} is {value}"
            elif (down := _any_down(snapshot, "keda-operator")) is not None:
                state, why = replace(state, down=down), down.report
            elif keda.spec.idle_replica_count == 0:
                state, why = replace(state, idle="idleReplicaCount"), "no trigger is active, and idleReplicaCount is 0"
            elif keda.spec.min_replica_count:
                continue
            elif unready is not None:
                state = replace(state, is_unready=True)
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


class _Rescaling(Struct, frozen=True, kw_only=True):
    """What a HorizontalPodAutoscaler does to a number of replicas beyond its bounds, whatever its metrics are."""

    autoscaler: str
    workload: str
    replicas: int
    bound: str

    def text(self, *, again: bool = False) -> str:
        """`HorizontalPodAutoscaler web scales shop/deploy/web to 5: its maxReplicas is 5`; `again` if a change of the
        replicas is undone."""
        number = f"{self.replicas:,}"
        scales = f"HorizontalPodAutoscaler {self.autoscaler} scales {self.workload} to {number}"
        return f"{scales}{' again' if again else ''}: its {self.bound} is {number}"


def rescaled(snapshot: Snapshot, workload: Workload, replicas: int) -> _Rescaling | None:
    """Return None for replicas within the bounds, and for none, which disable the autoscaler."""
    for hpa in snapshot.of(HorizontalPodAutoscaler):
        least, most = 1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas, hpa.spec.max_replicas
        if not replicas or most is None or not _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload):
            continue
        field, number = ("maxReplicas", most) if replicas > most else ("minReplicas", least)
        if replicas > most or replicas < least:
            named = hpa.metadata.name
            return _Rescaling(autoscaler=named, workload=workload.reference, replicas=number, bound=field)
    return None


def autoscaled(
    snapshot: Snapshot, manifest: Mapping[str, object], before: Mapping[str, object] | None = None
) -> tuple[Mapping[str, object], str]:
    """Return an applied workload with the replicas that its HorizontalPodAutoscaler sets, and how; `before` is the
    stored one."""
    change = rescaled(snapshot, workload_of(manifest), wanted_replicas(manifest, before))
    return (manifest, "") if change is None else (with_replicas(manifest, change.replicas), change.text())


def autoscaled_workloads(snapshot: Snapshot, manifests: Iterable[Mapping[str, object]]) -> Iterator[Workload]:
    """Yield the workloads that applied HorizontalPodAutoscalers scale."""
    applied = [map_at(item, "metadata") for item in manifests if item.get("kind") == "HorizontalPodAutoscaler"]
    written = {(metadata.get("namespace"), metadata.get("name")) for metadata in applied}
    for hpa in snapshot.of(HorizontalPodAutoscaler) if written else ():
        if (hpa.metadata.namespace, hpa.metadata.name) in written:
            target = hpa.spec.scale_target_ref
            yield Workload(target.kind or "Deployment", hpa.metadata.namespace, target.name)


def _scales(target: ScaleTarget, namespace: str, workload: Workload) -> bool:
    return (target.kind or "Deployment", target.name, namespace) == (workload.kind, workload.name, workload.namespace)


def autoscaler_of(snapshot: Snapshot, workload: Workload) -> HorizontalPodAutoscaler | None:
    """Return the HorizontalPodAutoscaler of a workload."""
    every = snapshot.of(HorizontalPodAutoscaler)
    return next((hpa for hpa in every if _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload)), None)


def pod_autoscalers(snapshot: Snapshot) -> Iterator[PodAutoscaler]:
    for record in POD_AUTOSCALERS.values():
        yield from snapshot.of(record)


def not_scaled(snapshot: Snapshot, workload: Workload, replicas: int) -> NotScaled | None:
    """Return the state according to the conditions of the autoscalers that scale the workload."""
    state = NotScaled(subject=workload.reference, replicas=replicas, autoscaler="", why="")
    for hpa in snapshot.of(HorizontalPodAutoscaler):
        if not _scales(hpa.spec.scale_target_ref, hpa.metadata.namespace, workload):
            continue
        named, most = f"HorizontalPodAutoscaler {hpa.metadata.name}", hpa.spec.max_replicas or 0
        for condition in ("AbleToScale", "ScalingActive"):
            if (broken := condition_of(hpa.status.conditions, condition, "False")) is not None:
                why, down = f"does not scale ({broken.reason})", _metrics_server_down(snapshot, broken.message)
                return replace(state, autoscaler=named, why=why, message=broken.message, down=down)
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


NO_METRICS = lazy_pattern(r"(?P<of>custom\.|external\.)?metrics\.k8s\.io|resource metrics API|did not receive metrics")
_METRICS_SERVERS = {
    "": ("metrics-server",),
    "custom.": ("prometheus-adapter",),
    "external.": ("keda-operator-metrics-apiserver", "prometheus-adapter"),
}
"""Groups of metrics, and what usually serves them."""


def _metrics_server_down(snapshot: Snapshot, message: str) -> ComponentDown | None:
    """Return what serves the metrics that an autoscaler does not get, if the cluster has it and it does not run."""
    match = NO_METRICS.search(message)
    return None if match is None else _any_down(snapshot, *_METRICS_SERVERS[match["of"] or ""])


def _any_down(snapshot: Snapshot, *names: str) -> ComponentDown | None:
    """Return the first of these components that the cluster has and that does not run."""
    return next(filter(None, (add_on_down(snapshot, "", name) for name in names)), None)


_KEEPS: Mapping[tuple[str, str], str] = {
    ("AbleToScale", "ScaleDownStabilized"): "keeps the highest number of its stabilization window",
    ("AbleToScale", "ScaleUpStabilized"): "keeps the lowest number of its stabilization window",
    ("ScalingLimited", "TooFewReplicas"): "is at minReplicas {least}",
    ("ScalingLimited", "ScaleUpLimit"): "scales up no faster than its behavior allows",
    ("ScalingLimited", "ScaleDownLimit"): "scales down no faster than its behavior allows",
}
"""Types and reasons of a HorizontalPodAutoscaler's conditions to why the workload keeps its replicas. Upstream:
pkg/controller/podautoscaler/horizontal.go."""


def kept_by(snapshot: Snapshot, workload: Workload) -> str:
    """Return `HorizontalPodAutoscaler web is at minReplicas 2`; empty if no autoscaler keeps the replicas."""
    if (hpa := autoscaler_of(snapshot, workload)) is None:
        return ""
    least = 1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas
    for (kind, reason), text in _KEEPS.items():
        condition = condition_of(hpa.status.conditions, kind, "True")
        if condition is not None and condition.reason == reason:
            return f"HorizontalPodAutoscaler {hpa.metadata.name} {text.format(least=least)}"
    return ""

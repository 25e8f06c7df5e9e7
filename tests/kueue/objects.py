"""Objects of small clusters with Kueue."""

from __future__ import annotations

from typing import Any

import kschedx
from kschedx.kueue.document import Admissions
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


def flavor(name: str = "f", **spec: Any) -> Json:
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def quota(flavor: str, nominal: str, **limits: str) -> Json:
    return {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": nominal, **limits}]}


def queue(name: str, *flavors: Json, **spec: Any) -> Json:
    """Return a ClusterQueue of CPU, with the flavor `f` by default."""
    groups = [{"coveredResources": ["cpu"], "flavors": list(flavors) or [quota("f", "4")]}]
    fields = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": fields}


def deleted(manifest: Json) -> Json:
    """Return an object that is deleted when its finalizers are gone."""
    return manifest | {"metadata": manifest["metadata"] | {"deletionTimestamp": "2026-06-01T08:00:00Z"}}


def cohort(name: str, **spec: Any) -> Json:
    return {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def local(name: str, of: str = "", **spec: Any) -> Json:
    fields = {"clusterQueue": of or name, **spec}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": name, "namespace": "ml"}, "spec": fields}


def check(name: str, *, is_active: bool = True) -> Json:
    active = {"type": "Active", "status": "True" if is_active else "False", "reason": "R", "message": "M"}
    spec = {"controllerName": "example.com/check"}
    meta = {"name": name}
    return {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": meta, "spec": spec} | {
        "status": {"conditions": [active]}
    }


def workload(
    name: str,
    queue: str = "q",
    cpu: str = "1",
    *,
    count: int = 1,
    minimum: int | None = None,
    priority: int = 0,
    minute: int = 0,
    reserved_flavor: str = "",
    pod: Json | None = None,
    **status: Any,
) -> Json:
    """Return a Workload, with quota of `reserved_flavor` in the ClusterQueue that has the name of its queue."""
    created = f"2026-06-01T08:{minute:02}:00Z"
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})}}
    pods: Json = {"name": "main", "count": count, "template": template}
    if minimum is not None:
        pods["minCount"] = minimum
    if reserved_flavor:
        usage = {"cpu": str(int(cpu) * count)}
        assigned = {"name": "main", "count": count, "flavors": {"cpu": reserved_flavor}, "resourceUsage": usage}
        is_true = {"status": "True", "message": "", "lastTransitionTime": created}
        status |= {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assigned]},
            "conditions": [{"type": kind, "reason": kind, **is_true} for kind in ("QuotaReserved", "Admitted")],
        }
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": created},
        "spec": {"queueName": queue, "priority": priority, "podSets": [pods]},
        "status": status,
    }


NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "ml"}}}


def snapshot(*objects: Json) -> Snapshot:
    """Return a snapshot with the namespace `ml` and, unless given, the flavor `f`."""
    has_flavor = any(item["kind"] == "ResourceFlavor" for item in objects)
    return Snapshot.from_objects([NAMESPACE, *([] if has_flavor else [flavor()]), *objects])


def admit(*objects: Json, **options: Any) -> Admissions:
    return kschedx.kueue(snapshot(*objects), now="2026-06-01T09:00:00Z", **options)


def outcomes(admissions: Admissions) -> list[tuple[str, str]]:
    """Return the outcomes of all cycles in order, with names without the namespace."""
    return [
        (name.removeprefix("ml/"), head.outcome) for cycle in admissions.cycles for name, head in cycle.heads.items()
    ]


def message(admissions: Admissions, name: str) -> str:
    """Return Kueue's last message about a Workload."""
    return [head.message for cycle in admissions.cycles for key, head in cycle.heads.items() if key == f"ml/{name}"][-1]

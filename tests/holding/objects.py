"""Objects and answers for the tests of `holding`."""

from __future__ import annotations

from typing import Any

import kschedx

Json = dict[str, Any]


KUEUE = "kueue.x-k8s.io"


def node(name: str, cpu: str = "8", **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
    }


def pod(name: str = "p", *, cpu: str = "4", gates: tuple[str, ...] = (f"{KUEUE}/admission",), **fields: Any) -> Json:
    labels = fields.pop("labels", {f"{KUEUE}/queue-name": "lq"})
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        "schedulingGates": [{"name": gate} for gate in gates],
        **fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels},
        "spec": spec,
    }


def event_about(kind: str, name: str, reason: str, message: str, *, component: str) -> Json:
    involved_object = {"kind": kind, "namespace": "ml", "name": name}
    metadata = {"name": f"{name}.{reason}", "namespace": "ml"}
    event = {
        "involvedObject": involved_object,
        "reason": reason,
        "message": message,
        "source": {"component": component},
    }
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event}


def holding_of(*objects: Json, target: Json | None = None, **options: Any) -> Json:
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), target or pod(), **options).to_dict()
    holding: Any = result.get("holding", {})
    return {"outcome": result["outcome"], "fixes": result["fixes"], **holding}

"""A snapshot, anonymized or not, holds all that the descheduler reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

import kschedx
from kschedx.export.anonymous import Anonymous
from kschedx.export.slim import Slim
from kschedx.snapshot.build import Dicts
from tests.builders import Manifest
from tests.descheduler.clusters import NOW, budget, node, pod, policy, restarted

WAITING = {
    "phase": "Running",
    "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
}
ENDED = {
    "phase": "Failed",
    "reason": "Evicted",
    "containerStatuses": [{"name": "app", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}],
}
UNREADY = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-06-01T10:00:00Z"}],
}
FORCED = {"descheduler.alpha.kubernetes.io/evict": "yes"}


def usage(kind: str, name: str, **fields: object) -> Manifest:
    space = {"namespace": "default"} if kind == "PodMetrics" else {}
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": {"name": name, **space}, **fields}


OBJECTS = [
    *(node(name) for name in ("a", "b")),
    pod("waits", "a", status=WAITING),
    pod("ended", "a", owner="batch", status=ENDED),
    pod("restarts", "a", status=restarted(7)),
    pod("unready", "b", owner="api", status=UNREADY),
    pod("forced", "b", owner="", annotations=FORCED),
    budget("api", 0),
    *(usage("NodeMetrics", name, usage={"cpu": cpu, "memory": "1Gi"}) for name, cpu in (("a", "3"), ("b", "100m"))),
    usage("PodMetrics", "restarts", containers=[{"name": "app", "usage": {"cpu": "2", "memory": "1Gi"}}]),
]
POLICIES = {
    "states": policy("PodLifeTime", {"states": ["CrashLoopBackOff", "OOMKilled"]}),
    "reason": policy("PodLifeTime", {"states": ["Evicted"]}),
    "exit codes": policy("PodLifeTime", {"exitCodes": [137]}),
    "conditions": policy(
        "PodLifeTime",
        {"conditions": [{"type": "Ready", "status": "False", "minTimeSinceLastTransitionSeconds": 3600}]},
    ),
    "restarts": policy("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 7}),
    "annotation": policy("PodLifeTime", {"maxPodLifeTimeSeconds": 60}),
    "usage": policy(
        "LowNodeUtilization",
        {
            "thresholds": {"cpu": 20},
            "targetThresholds": {"cpu": 50},
            "metricsUtilization": {"source": "KubernetesMetrics"},
        },
    )
    | {"metricsProviders": [{"source": "KubernetesMetrics"}]},
}


def evicted(objects: Sequence[Manifest], written: Manifest) -> list[str]:
    descheduling = kschedx.deschedule(kschedx.Snapshot.from_objects(objects), written, now=NOW)
    assert not descheduling.loop.errors
    return [item.pod.key for item in descheduling.loop.evicted]


@pytest.mark.parametrize("written", POLICIES.values(), ids=POLICIES)
def test_the_descheduler_evicts_the_same_of_a_snapshot(written: Manifest) -> None:
    slim = Slim()
    slim.add(Dicts(msgspec.json.encode(OBJECTS)))
    kept = [msgspec.json.decode(line) for line in slim.lines()]
    names = evicted(OBJECTS, written)
    assert names
    assert evicted(kept, written) == names
    anonymous = Anonymous.of(kept)
    changed = [new for item in kept if (new := anonymous.anonymize(item)) is not None]
    assert evicted(changed, written) == [anonymous.name(name) for name in names]

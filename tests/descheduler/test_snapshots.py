"""A snapshot, anonymized or not, contains everything that the descheduler reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

import kschedx
from kschedx.export.anonymous import Anonymous
from kschedx.export.slim import Slim
from kschedx.snapshot.build import Dicts
from tests.builders import Manifest
from tests.descheduler.clusters import NOW, budget, node, pod, policy, restarted_status

CRASH_LOOP = {
    "phase": "Running",
    "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
}
FAILED = {
    "phase": "Failed",
    "reason": "Evicted",
    "containerStatuses": [{"name": "app", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}],
}
NOT_READY = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-06-01T10:00:00Z"}],
}
FORCE_EVICTION = {"descheduler.alpha.kubernetes.io/evict": "yes"}


def usage(kind: str, name: str, **fields: object) -> Manifest:
    namespace = {"namespace": "default"} if kind == "PodMetrics" else {}
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": {"name": name, **namespace}, **fields}


OBJECTS = [
    *(node(name) for name in ("a", "b")),
    pod("waits", "a", status=CRASH_LOOP),
    pod("ended", "a", owner="batch", status=FAILED),
    pod("restarts", "a", status=restarted_status(7)),
    pod("unready", "b", owner="api", status=NOT_READY),
    pod("forced", "b", owner="", annotations=FORCE_EVICTION),
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


def evicted_keys(objects: Sequence[Manifest], policy_manifest: Manifest) -> list[str]:
    descheduling = kschedx.deschedule(kschedx.Snapshot.from_objects(objects), policy_manifest, now=NOW)
    assert not descheduling.loop.errors
    return [item.pod.key for item in descheduling.loop.evicted]


@pytest.mark.parametrize("policy_manifest", POLICIES.values(), ids=POLICIES)
def test_the_descheduler_evicts_the_same_pods_from_a_snapshot(policy_manifest: Manifest) -> None:
    slim = Slim()
    slim.add(Dicts(msgspec.json.encode(OBJECTS)))
    slim_objects = [msgspec.json.decode(line) for line in slim.lines()]
    names = evicted_keys(OBJECTS, policy_manifest)
    assert names
    assert evicted_keys(slim_objects, policy_manifest) == names
    anonymous = Anonymous.of(slim_objects)
    anonymized = [new for item in slim_objects if (new := anonymous.anonymize(item)) is not None]
    assert evicted_keys(anonymized, policy_manifest) == [anonymous.name(name) for name in names]

"""One loop of the descheduler over a cluster of `big_cluster.py`, with eight plugins and nodeFit, part by part.

python benchmarks/descheduler.py FILE
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import kschedx
from kschedx.descheduler.cluster import Cluster, Metrics, PodIndex, pods_of
from kschedx.descheduler.evictor import DefaultEvictor
from kschedx.descheduler.policy import read_policy
from kschedx.descheduler.run import run_loop
from kschedx.kube.scalars import nanoseconds
from kschedx.loading import without_collection

DESCHEDULE = {
    "RemoveFailedPods": {},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    "RemovePodsViolatingNodeTaints": {},
}
BALANCE = {
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {},
    "LowNodeUtilization": {"thresholds": {"cpu": 30, "memory": 30}, "targetThresholds": {"cpu": 50, "memory": 50}},
}
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "all",
            "pluginConfig": [
                {"name": name, "args": args}
                for name, args in {"DefaultEvictor": {"nodeFit": True}, **DESCHEDULE, **BALANCE}.items()
            ],
            "plugins": {"deschedule": {"enabled": [*DESCHEDULE]}, "balance": {"enabled": [*BALANCE]}},
        }
    ],
}


def main() -> None:
    snapshot = kschedx.load(sys.argv[1], whole=True)
    now = nanoseconds("2026-11-22T12:00:00Z")
    policy = read_policy(POLICY, snapshot.priority_classes)
    with without_collection():
        begun = time.process_time()
        pods, metrics = PodIndex(pods_of(snapshot)), Metrics.of(snapshot)
        read = time.process_time()
        cluster = Cluster(snapshot, pods, counts_budgets=True)
        evictor = DefaultEvictor(policy.profiles[0], cluster, now, lambda *_: None)
        for pod in pods.pods:
            evictor.verdict(pod)
        judged = time.process_time()
        loop = run_loop(Cluster(snapshot, pods, counts_budgets=True), policy, metrics, now)
        done = time.process_time()
    for what, seconds in (
        ("facts about pods", read - begun),
        ("both looks of the evictor at every pod", judged - read),
        ("the loop, those looks included", done - judged),
        ("facts and loop", read - begun + done - judged),
    ):
        print(f"{what:40} {seconds:5.1f} s")
    print(f"{loop.total:,} pods evicted", dict(Counter(item.plugin for item in loop.evicted)))


if __name__ == "__main__":
    main()

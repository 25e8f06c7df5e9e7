"""Size, time and memory of answers: `python benchmarks/bounds.py CLUSTER.json NODE [COMMAND|TOOL...]`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
from mcp import Client

from kschedx.cli.mcp.server import Answers, Clusters, server

POD = """
apiVersion: v1
kind: Pod
metadata: {name: new}
spec: {containers: [{name: app, image: app, resources: {requests: {cpu: "64", memory: 1Gi}}}]}
"""
LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "uid": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}
GROUPS = [
    {
        "name": f"group-{number}",
        "health": {"status": "Healthy", "cloudProviderTarget": 300, "minSize": 0, "maxSize": 600},
        "scaleUp": {"status": "NoActivity"},
    }
    for number in range(17)
]
"""The node groups of `big_cluster.py`."""
STATUS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
    "data": {"status": json.dumps({"autoscalerStatus": "Running", "nodeGroups": GROUPS})},
}
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 30, memory: 30, pods: 30}, targetThresholds: {cpu: 40, memory: 40, pods: 40}}
  plugins:
    balance: {enabled: [LowNodeUtilization, RemoveDuplicates]}
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
"""
QUEUES = 10
KUEUE: list[dict[str, object]] = [
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
    *(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": kind,
            "metadata": {"name": f"queue-{number}", **metadata},
            "spec": spec,
        }
        for number in range(QUEUES)
        for kind, metadata, spec in (
            (
                "ClusterQueue",
                {},
                {
                    "namespaceSelector": {},
                    "cohortName": "all",
                    "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                    "resourceGroups": [
                        {
                            "coveredResources": ["cpu"],
                            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "100"}]}],
                        }
                    ],
                },
            ),
            ("LocalQueue", {"namespace": "ml"}, {"clusterQueue": f"queue-{number}"}),
        )
    ),
    *(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": f"job-{number}", "namespace": "ml", "creationTimestamp": "2026-06-01T00:00:00Z"},
            "spec": {
                "queueName": f"queue-{number % QUEUES}",
                "priority": number % 3,
                "podSets": [{"name": "main", "count": 1, "template": TEMPLATE}],
            },
        }
        for number in range(2_000)
    ),
]
"""Ten ClusterQueues of a cohort, with 2,000 pending Workloads."""
MORE = {"--scale": "web.json", "kueue": "kueue.json"}
"""What else is in the cluster for a command line that has this word."""
COMMANDS = (
    ("why", "POD"),
    *(("why", "POD", "-o", form) for form in ("wide", "json", "yaml", "html", "markdown", "svg", "sarif", "junit")),
    ("why", "--all-pending"),
    ("why", "--all-pending", "-o", "html"),
    ("fit", "POD", "--replicas", "1000000"),
    ("fit", "POD", "-o", "json"),
    ("fit", "POD", "-o", "html"),
    ("simulate",),
    ("simulate", "-o", "json"),
    ("simulate", "-o", "html"),
    ("simulate", "--scale", "deploy/web=1000000"),
    ("drain", "NODE"),
    ("drain", "NODE", "-o", "json"),
    ("drain", "NODE", "-o", "html"),
    ("drain", "--each"),
    ("drain", "--each", "-o", "json"),
    ("drain", "--each", "-o", "html"),
    ("nodes",),
    ("nodes", "-o", "json"),
    ("nodes", "-o", "html"),
    ("survive", "--each", "zone"),
    ("survive", "--each", "zone", "-o", "json"),
    ("survive", "--each", "zone", "-o", "html"),
    ("diff-profiles", "default", "binpack", "--all-pending"),
    ("diff-profiles", "default", "binpack", "--all"),
    ("diff-profiles", "default", "binpack", "--all", "-o", "json"),
    ("diff-profiles", "default", "binpack", "--all", "-o", "html"),
    ("deschedule", "--policy", "POLICY"),
    ("deschedule", "--policy", "POLICY", "-o", "json"),
    ("deschedule", "--policy", "POLICY", "-o", "html"),
    ("descheduler-policy", "advise"),
    ("descheduler-policy", "advise", "-o", "html"),
    ("profiles", "tune"),
    ("profiles", "tune", "-o", "html"),
    ("kueue",),
    ("kueue", "-o", "json"),
    ("kueue", "-o", "html"),
    ("scale-down",),
    ("scale-down", "NODE"),
    ("scale-down", "NODE", "-o", "html"),
    ("doctor",),
    ("doctor", "-o", "html"),
    ("snapshot", "-o", "x.json.zst"),
    ("snapshot", "--anonymize", "-o", "x.json.zst"),
)
TOOLS: Mapping[str, dict[str, object]] = {
    "pod_explain": {"manifest": POD},
    "pending_explain": {},
    "changes_simulate": {"cordon": ["NODE"]},
    "node_drain_preview": {"nodes": ["NODE"]},
    "capacity_check": {"manifest": POD, "replicas": 1_000_000},
    "profiles_compare": {"before": "default", "after": "binpack", "pods": "pending"},
    "dump_check": {},
    "scale_down_explain": {"nodes": ["NODE"]},
    "nodes_list": {},
    "failure_simulate": {"each": "zone"},
    "clusters_list": {},
    "event_decode": {"text": "0/5 nodes are available: 5 Insufficient cpu."},
}
LONG = TOOLS.keys() - {"clusters_list"}
"""Tools that take `detail`."""


def main(cluster: str, node: str, folder: Path, only: tuple[str, ...]) -> None:
    """Commands and tools, or those that are named."""
    (folder / "pod.yaml").write_text(POD)
    (folder / "web.json").write_text(json.dumps(DEPLOYMENT))
    (folder / "kueue.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": KUEUE}))
    (folder / "status.json").write_text(json.dumps(STATUS))
    whole = str(folder / "cluster.json")
    saved = ("snapshot", "-s", cluster, "-s", str(folder / "status.json"), "-o", whole)
    subprocess.run([sys.executable, "-m", "kschedx", *saved], check=True, stdout=subprocess.DEVNULL)
    cluster = whole
    (folder / "policy.yaml").write_text(POLICY)
    words = {"POD": str(folder / "pod.yaml"), "POLICY": str(folder / "policy.yaml"), "NODE": node}
    print("| command | size | processor | memory at most |\n| --- | --- | --- | --- |")
    for asked in COMMANDS:
        if only and asked[0] not in only and " ".join(asked) not in only:
            continue
        arguments = [str(folder / word) if word.startswith("x.") else words.get(word, word) for word in asked]
        out = folder / "out"
        with out.open("wb") as written:
            more = [word for key, file in MORE.items() if key in asked for word in ("-s", str(folder / file))]
            command = [sys.executable, "-m", "kschedx", *arguments, "-s", cluster, *more]
            child = subprocess.Popen(command, stdout=written, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
        seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        size = out.stat().st_size / 1000
        code = os.waitstatus_to_exitcode(status)
        print(f"| `{' '.join(asked)}` ({code}) | {size:,.0f} kB | {seconds:.1f} s | {memory:,.0f} MB |", flush=True)
    print("\n| tool | summary | nodes | full | first, then again | memory at most |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tool, arguments in TOOLS.items():
        if only and tool not in only:
            continue
        named = {key: [node] if value == ["NODE"] else value for key, value in arguments.items()}
        anyio.run(_measure_tool, cluster, tool, named)


async def _measure_tool(cluster: str, tool: str, arguments: dict[str, object]) -> None:
    """The characters of an answer are those of its text and its document as JSON."""
    answers = Answers(Clusters(snapshots=(cluster,)), limit=600)
    try:
        async with Client(server(answers)) as client:
            times, sizes = [], []
            for detail in ("summary", "nodes", "full"):
                begun = time.monotonic()
                result = await client.call_tool(tool, {**arguments, **({"detail": detail} if tool in LONG else {})})
                times.append(time.monotonic() - begun)
                sizes.append(f"{len(result.model_dump_json()):,}")
        worker = answers._worker
        status = Path(f"/proc/{worker._process.pid}/status").read_text() if worker is not None else ""
        memory = next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)
        failed = " (error)" if result.is_error else ""
        took = f"{times[0]:.1f} s, {times[1]:.1f} s"
        print(f"| `{tool}`{failed} | {' | '.join(sizes)} | {took} | {memory:,.0f} MB |", flush=True)
    finally:
        answers.end()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        main(*sys.argv[1:3], Path(made), tuple(sys.argv[3:]))

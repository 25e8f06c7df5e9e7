"""Size, time and memory of answers about 5,000 nodes and 150,000 pods, each against its bound.

    python benchmarks/bounds.py CLUSTER.json NODE [COMMAND|TOOL...]

The exit code is 1 if a command or a tool fails or exceeds its bound.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import anyio
from mcp import Client

from kschedx.cli.mcp.server import Answers, KnownClusters, server

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
  - {name: RemoveDuplicates, args: {}}
  - {name: RemovePodsViolatingNodeTaints, args: {}}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 30, memory: 30, pods: 30}, targetThresholds: {cpu: 40, memory: 40, pods: 40}}
  plugins:
    balance: {enabled: [LowNodeUtilization, RemoveDuplicates]}
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
"""
MANIFESTS = [
    {"apiVersion": "v1", "kind": "Pod", **TEMPLATE, "metadata": {"name": f"pod-{number}"}} for number in range(1_000)
]
QUEUES = 10


def _of_kueue(kind: str, name: str, spec: dict[str, object], **metadata: str) -> dict[str, object]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


QUOTA: dict[str, object] = {
    "namespaceSelector": {},
    "cohortName": "all",
    "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    "resourceGroups": [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "100"}]}],
        }
    ],
}
POD_SETS = [{"name": "main", "count": 1, "template": TEMPLATE}]
KUEUE = [
    _of_kueue("ResourceFlavor", "default", {}),
    *(_of_kueue("ClusterQueue", f"queue-{number}", QUOTA) for number in range(QUEUES)),
    *(
        _of_kueue("LocalQueue", f"queue-{number}", {"clusterQueue": f"queue-{number}"}, namespace="ml")
        for number in range(QUEUES)
    ),
    *(
        _of_kueue(
            "Workload",
            f"job-{number}",
            {"queueName": f"queue-{number % QUEUES}", "priority": number % 3, "podSets": POD_SETS},
            namespace="ml",
            creationTimestamp="2026-06-01T00:00:00Z",
        )
        for number in range(2_000)
    ),
]
"""Ten ClusterQueues of a cohort, with 2,000 pending Workloads."""
MORE = {"--scale": "web.json", "kueue": "kueue.json"}
"""What else is in the cluster for a command line that has this word."""


class Bound(NamedTuple):
    """At most so much, on a machine that is busy with other work."""

    kilobytes: int
    seconds: int
    """Of the processor; of a tool, when it is asked again."""
    megabytes: int

    @property
    def row(self) -> str:
        """As docs/pages/concepts/performance.md writes it."""
        return f"| {self.kilobytes:,} kB | {self.seconds:,} s | {self.megabytes:,} MB |"

    def exceeded(self, kilobytes: float, seconds: float, megabytes: float) -> bool:
        return kilobytes > self.kilobytes or seconds > self.seconds or megabytes > self.megabytes


def _each(bound: Bound, *commands: str) -> dict[str, Bound]:
    return dict.fromkeys(commands, bound)


COMMANDS = {
    **_each(
        Bound(50, 15, 500),
        *("why POD", *(f"why POD -o {form}" for form in ("markdown", "svg", "sarif", "junit"))),
        *("why --all-pending", "fit POD", "fit POD -o json"),
        *("simulate", "drain NODE", "nodes", "diff-profiles default binpack --all-pending", "doctor"),
    ),
    **_each(Bound(100, 15, 500), "why --all-pending -o html", "fit POD -o html", "doctor -o html"),
    **_each(
        Bound(10_000, 15, 500),
        *(f"why POD -o {form}" for form in ("wide", "json", "yaml", "html")),
        *(f"{command} -o {form}" for command in ("simulate", "drain NODE", "nodes") for form in ("json", "html")),
    ),
    **_each(Bound(10_000, 20, 500), "kueue", "kueue -o json"),
    **_each(Bound(1_000, 30, 800), "scale-down NODE", "scale-down NODE -o html"),
    **_each(Bound(50, 60, 500), "why -f MANIFESTS"),
    **_each(Bound(50, 500, 2_000), "simulate --scale deploy/web=600000"),
    **_each(Bound(50_000, 80, 1_000), "scale-down", "scale-down -o json", "scale-down -o html"),
    **_each(
        Bound(50, 40, 1_300),
        *("snapshot -o x.json.zst", "snapshot --anonymize -o x.json.zst", "fit POD --replicas 1000000"),
    ),
    **_each(Bound(50, 150, 500), "diff-profiles default binpack --all"),
    **_each(
        Bound(500_000, 150, 2_500), *(f"diff-profiles default binpack --all -o {form}" for form in ("json", "html"))
    ),
    **_each(
        Bound(100_000, 150, 1_000),
        *("survive --each zone", "survive --each zone -o json", "survive --each zone -o html"),
    ),
    **_each(
        Bound(40_000, 150, 2_000),
        *("deschedule --policy POLICY", "deschedule --policy POLICY -o json", "deschedule --policy POLICY -o html"),
        *("descheduler-policy advise", "descheduler-policy advise -o html"),
    ),
    **_each(Bound(50, 250, 1_500), "profiles tune"),
    **_each(
        Bound(150_000, 500, 1_000),
        *("drain --each", "drain --each -o json", "drain --each -o html"),
    ),
}
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
LIMIT = 3_600
"""Seconds of wall time for an MCP tool: on a busy machine it takes many times what it takes of the processor."""
TOOL_BOUND = Bound(60, 15, 600)
TOOL_BOUNDS = {
    "capacity_check": Bound(60, 60, 800),
    "dump_check": Bound(60, 60, 800),
    "scale_down_explain": Bound(60, 15, 700),
    "failure_simulate": Bound(60, 60, 1_000),
}
"""Those that differ from the others'."""
LONG = TOOLS.keys() - {"clusters_list"}
"""Tools that take `detail`."""


def main(cluster: str, node: str, folder: Path, only: tuple[str, ...]) -> int:
    """Commands and tools, or those that are named. Returns 1 if one exceeds its bound."""
    files = {
        "POD": ("pod.yaml", POD),
        "POLICY": ("policy.yaml", POLICY),
        "MANIFESTS": ("manifests.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": MANIFESTS})),
        "web.json": ("web.json", json.dumps(DEPLOYMENT)),
        "kueue.json": ("kueue.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": KUEUE})),
        "status.json": ("status.json", json.dumps(STATUS)),
    }
    words = {"NODE": node, "x.json.zst": str(folder / "x.json.zst")}
    for word, (name, text) in files.items():
        (folder / name).write_text(text)
        words[word] = str(folder / name)
    whole = str(folder / "cluster.json")
    saved = ("snapshot", "-s", cluster, "-s", words["status.json"], "-o", whole)
    subprocess.run([sys.executable, "-m", "kschedx", *saved], check=True, stdout=subprocess.DEVNULL)
    print("| command | size | processor | memory at most |\n| --- | --- | --- | --- |")
    exceeded = False
    for asked, bound in COMMANDS.items():
        if only and asked.split()[0] not in only and asked not in only:
            continue
        typed = asked.split()
        more = [word for key, file in MORE.items() if key in typed for word in ("-s", words[file])]
        command = [sys.executable, "-m", "kschedx", *(words.get(word, word) for word in typed), "-s", whole, *more]
        out = folder / "out"
        with out.open("wb") as written:
            child = subprocess.Popen(command, stdout=written, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
        seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        size = out.stat().st_size / 1000
        code = os.waitstatus_to_exitcode(status)
        too_much = bound.exceeded(size, seconds, memory) or code not in (0, 1)
        exceeded |= too_much
        figures = f"{size:,.0f} kB | {seconds:.1f} s | {memory:,.0f} MB{' (too much)' if too_much else ''}"
        print(f"| `{asked}` ({code}) | {figures} |", flush=True)
    print("\n| tool | summary | nodes | full | processor, of each | memory at most |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tool, arguments in TOOLS.items():
        if only and tool not in only:
            continue
        named = {key: [node] if value == ["NODE"] else value for key, value in arguments.items()}
        exceeded |= anyio.run(_measure_tool, whole, tool, named)
    return exceeded


async def _measure_tool(cluster: str, tool: str, arguments: dict[str, object]) -> bool:
    """Whether it exceeds its bound. The characters of an answer are those of its text and its document as JSON."""
    answers = Answers(KnownClusters(snapshots=(cluster,)), limit=LIMIT)
    try:
        async with Client(server(answers)) as client:
            sizes, seconds, failed, status = [], [0.0], False, ""
            for detail in ("summary", "nodes", "full"):
                result = await client.call_tool(tool, {**arguments, **({"detail": detail} if tool in LONG else {})})
                failed |= result.is_error
                sizes.append(len(result.model_dump_json()))
                worker = answers._worker
                if worker is not None and worker.is_alive:
                    process = Path(f"/proc/{worker._process.pid}")
                    used = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
                    seconds.append(sum(map(int, used)) / os.sysconf("SC_CLK_TCK"))
                    status = (process / "status").read_text()
        memory = next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)
        times = [after - before for before, after in itertools.pairwise(seconds)] or [0.0]
        bound = TOOL_BOUNDS.get(tool, TOOL_BOUND)
        too_much = failed or bound.exceeded(max(sizes) / 1000, max(times[1:], default=0), memory)
        written = f"{' | '.join(f'{size:,}' for size in sizes)} | {', '.join(f'{took:.1f} s' for took in times)}"
        print(f"| `{tool}` | {written} | {memory:,.0f} MB{' (too much)' if too_much else ''} |", flush=True)
        return too_much
    finally:
        answers.end()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        cluster, node, *only = sys.argv[1:]
        sys.exit(main(cluster, node, Path(made), tuple(only)))

"""Every command on a large cluster: `python benchmarks/commands.py CLUSTER.json`.

CLUSTER.json is a file of `big_cluster.py`, or a snapshot of it. Beside it 600 kinds of pods wait, most of them in vain
for one of eight reasons, and two Deployments want replicas. Every command is a process of its own; what is told is the
processor's time, and the most memory that it had, start and loading included.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

Manifest = dict[str, object]

KINDS = 600
NAMESPACE = "team-3"


def faulty(kind: int) -> tuple[dict[str, object], dict[str, str]]:
    """The fields of a pod's spec, and its requests, by which most kinds find no node."""
    own = {"matchLabels": {"app": f"kind-{kind}"}}
    nobody = {"matchLabels": {"app": f"nobody-{kind}"}}
    zone = "topology.kubernetes.io/zone"
    near = [{"labelSelector": nobody, "topologyKey": "kubernetes.io/hostname"}]
    apart = [{"labelSelector": own, "topologyKey": zone}]
    spread = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"missing-{kind}"}}
    small = {"cpu": "500m", "memory": "1Gi"}
    faults: tuple[tuple[dict[str, object], dict[str, str]], ...] = (
        ({}, {"cpu": f"{200 + kind}"}),
        ({"nodeSelector": {"disk": f"ssd-{kind}"}}, small),
        ({"nodeSelector": {"pool": "gpu"}}, small),
        ({}, {"memory": f"{400 + kind}Gi"}),
        ({"topologySpreadConstraints": [spread]}, small),
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}}, small),
        ({"volumes": [claim]}, small),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}}, small),
    )
    return faults[kind % len(faults)]


def waiting() -> Iterator[Manifest]:
    dice = random.Random(7)
    for kind in range(KINDS):
        fields, requests = faulty(kind)
        container = {"name": "app", "image": "app", "resources": {"requests": requests}}
        priority = dice.choice([0, 0, 0, 1000])
        for number in range(dice.choice([1, 1, 2, 6])):
            name = f"kind-{kind}-{number}"
            metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": {"app": f"kind-{kind}"}}
            spec = {"containers": [container], "priority": priority, **fields}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployments() -> Iterator[Manifest]:
    labels = {"app": "apart"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    for name, replicas, more in (("plain", 2_000, {}), ("apart", 6_000, apart)):
        container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **more}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        metadata = {"name": name, "namespace": NAMESPACE, "uid": name}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def written(folder: Path, name: str, items: Iterator[Manifest]) -> str:
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items]}))
    return str(path)


def measure(*arguments: str) -> tuple[float, float]:
    """The processor's seconds, and MB."""
    command = [sys.executable, "-m", "kschedx", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(cluster: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        many = ("-s", cluster, "-s", written(folder, "waiting.json", waiting()))
        few = ("-s", cluster, "-n", NAMESPACE)
        wanted = (*few, "-s", written(folder, "deployments.json", deployments()))
        asked = (
            ("why", "pending", *few),
            ("why", "pending", "-o", "json", *few),
            ("why", "deploy/plain", *wanted),
            ("why", "deploy/apart", *wanted),
            ("fit", "deploy/plain", *wanted),
            ("fit", "pending", *few),
            ("why", "--all-pending", *many),
            ("why", "--all-pending", "--alone", *many),
            ("simulate", *many),
            ("diff-profiles", "default", "binpack", "--all-pending", *many),
            ("doctor", "-s", cluster),
            ("snapshot", "-s", cluster, "-o", str(folder / "x.json")),
            ("snapshot", "--anonymize", "-s", cluster, "-o", str(folder / "x.json")),
        )
        for arguments in asked:
            seconds, memory = measure(*arguments)
            command = " ".join(arguments[: arguments.index("-s")])
            print(f"{seconds:7.1f} s {memory:7,.0f} MB  {command}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

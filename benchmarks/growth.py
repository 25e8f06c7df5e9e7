"""How cost grows with nodes, pods, and distinct pods: `python benchmarks/growth.py CLUSTER.json...`.

Each cluster is a file of `big_cluster.py`. In a process of its own it is read, its pending pod is explained, and queues
of different length and variety are decided. The table is of the processor's seconds; the fit below it is the least
squares of those figures, each weighted by its own size.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import kschedx
from benchmarks import moving
from kschedx.explain.setup import Setup
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.edits import with_pods

DISTINCT = (1, 100, 500)
"""How many pods of a queue are distinct; there are ten for three nodes."""


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(path: str) -> dict[str, float]:
    """The figures of one cluster, in this process."""
    gc.disable()  # as the commands do
    start = time.process_time()
    snapshot = kschedx.load(path)
    loaded = time.process_time()
    result = kschedx.explain(snapshot, "team-3/pending")
    _ = result.fixes, result.to_dict()
    explained = time.process_time()
    figures: dict[str, float] = {
        "nodes": len(snapshot.cluster.names),
        "pods": len(snapshot.pods),
        "MB": Path(path).stat().st_size / 1e6,
        "load": loaded - start,
        "why": explained - loaded,
        "memory": memory(),
    }
    setup = Setup.of_cluster(snapshot)
    for kinds in DISTINCT:
        new = moving.pods(len(snapshot.cluster.names) * 10 // 3, kinds=kinds)
        world = with_pods(snapshot, new)
        gc.collect()
        start = time.process_time()
        simulator = Simulator(world, setup, SimulationOptions(recreate=False))
        simulator.queue.run(range(len(snapshot.pods), len(world.pods)))
        figures[f"queue, {kinds} distinct"] = time.process_time() - start
        figures[f"pods in it, {kinds} distinct"] = len(simulator.queue.steps)
        del world, simulator, new
    return figures | {"memory with queues": memory()}


def fit(label: str, seconds: list[float], terms: dict[str, list[float]]) -> None:
    """Print the cost of each term, and how far the fit is from any of the figures at most."""
    wanted, sizes = np.array(seconds), np.array(list(terms.values())).T
    costs, *_ = np.linalg.lstsq(sizes / wanted[:, None], np.ones(len(wanted)), rcond=None)
    off = np.abs(sizes @ costs / wanted - 1).max()
    written = " + ".join(f"{cost * 1e6:.3g} us x {name}" for name, cost in zip(terms, costs, strict=True))
    print(f"{label} = {written}; at most {off:.0%} off")


def main(paths: list[str]) -> None:
    runs = []
    for path in paths:
        command = [sys.executable, __file__, "--one", path]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(runs[-1], flush=True)
    fit("load", [item["load"] for item in runs], {"pods": [item["pods"] for item in runs]})
    queues = [(item, kinds) for item in runs for kinds in DISTINCT]
    terms = {
        "pods": [item[f"pods in it, {kinds} distinct"] for item, kinds in queues],
        "distinct pods": [kinds for _, kinds in queues],
        "nodes x distinct pods": [item["nodes"] * kinds for item, kinds in queues],
    }
    fit("queue", [item[f"queue, {kinds} distinct"] for item, kinds in queues], terms)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(measured(sys.argv[2])))
    else:
        main(sys.argv[1:])

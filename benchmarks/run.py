"""How fast kschedx loads, explains and starts.

    python benchmarks/run.py [FILE ...] [--pod team-3/pending] [--repeat N]

A FILE is a dump of a cluster with a pending pod, as big_cluster.py writes it. Without any, only what a small cluster
takes is measured. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORY = ROOT / "fixtures" / "fragmentation"
KSCHEDX = Path(sys.executable).parent / "kschedx"

LOAD = """
import sys, time
start = time.perf_counter()
import kschedx
kschedx.load(sys.argv[1])
took = time.perf_counter() - start
# getrusage's maximum would count the process that started this one
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, int(peak) * 1024)
"""


@dataclass(frozen=True)
class Row:
    cluster: str
    what: str
    figure: str


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def median(action: Callable[[], object], repeat: int) -> float:
    return statistics.median(seconds(action) for _ in range(repeat))


def milliseconds(value: float) -> str:
    return f"{value * 1000:,.0f} ms"


def of_dump(path: Path, pod: str, repeat: int) -> Iterator[Row]:
    """Loading in a process of its own, the rest in this one, the whole command in another."""
    import kschedx
    from kschedx.inquiry.explanation import Explanation

    size = path.stat().st_size
    name = f"{path.name}, {size / 1e6:,.0f} MB"
    # the first reading fills the file system's cache and does not count
    runs = [_run(sys.executable, "-c", LOAD, str(path)).split() for _ in range(min(repeat, 3) + 1)][1:]
    loading = statistics.median(float(took) for took, _ in runs)
    memory = max(int(peak) for _, peak in runs)
    yield Row(name, "load", f"{loading:.2f} s, {size / 1e6 / loading:,.0f} MB/s")
    yield Row(name, "peak memory of loading, to the file's size", f"{memory / size:.2f}")

    snapshot = kschedx.load(str(path))
    size_text = f"{len(snapshot.cluster.nodes):,} nodes, {len(snapshot.pods):,} pods"
    name = f"{name}, {size_text}"

    def explain() -> Explanation:
        return kschedx.explain(snapshot, pod)

    yield Row(name, "explain, the first time", milliseconds(seconds(explain)))
    yield Row(name, f"explain, median of {repeat}", milliseconds(median(explain, repeat)))
    explained = [explain() for _ in range(repeat)]
    looking = [seconds(partial(getattr, item, "fixes")) for item in explained]
    yield Row(name, "looking for fixes", milliseconds(statistics.median(looking)))
    document = median(explained[0].to_dict, repeat)
    yield Row(name, "materializing every finding and score", milliseconds(document))

    namespace, _, own = pod.partition("/")
    arguments = ("why", f"pod/{own}", "-n", namespace, "--snapshot", str(path))
    wall = median(lambda: _run(KSCHEDX, *arguments), min(repeat, 3))
    yield Row(name, "`kschedx why`, start to exit", f"{wall:.2f} s")


def of_small(repeat: int) -> Iterator[Row]:
    cluster = next(path for path in (STORY / "cluster", STORY / "cluster.yaml") if path.exists())
    arguments = ("why", str(STORY / "pod.yaml"), "--snapshot", str(cluster))
    name = f"fixtures/{STORY.name}"
    yield Row(name, "`kschedx why`, start to exit", milliseconds(median(lambda: _run(KSCHEDX, *arguments), repeat)))
    yield Row("none", "`kschedx --version`", milliseconds(median(lambda: _run(KSCHEDX, "--version"), repeat)))
    yield Row("none", "`kschedx --help`", milliseconds(median(lambda: _run(KSCHEDX, "--help"), repeat)))


def _run(*command: str | Path) -> str:
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode not in (0, 1) or ran.stderr:
        sys.exit(f"{' '.join(map(str, command))} failed: {ran.stderr}")
    return ran.stdout


def machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    return f"{model or 'unknown CPU'}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pod", default="team-3/pending", help="namespace/name of the pod to explain")
    parser.add_argument("--repeat", type=int, default=7)
    asked = parser.parse_args()
    print(f"{machine()}\n\n| cluster | what | figure |\n| --- | --- | --- |")
    for path in asked.files:
        for row in of_dump(path.resolve(), asked.pod, asked.repeat):
            print(f"| {row.cluster} | {row.what} | {row.figure} |", flush=True)
    for row in of_small(asked.repeat):
        print(f"| {row.cluster} | {row.what} | {row.figure} |", flush=True)


if __name__ == "__main__":
    main()

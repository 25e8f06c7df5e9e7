"""How many pods a second `kschedx diff-profiles` compares.

    python benchmarks/diff_profiles.py FILE [--sample N] [--jobs N] [--before PROFILE] [--after PROFILE]

FILE is a dump of a cluster, as big_cluster.py writes it. Every running pod is compared, or with --sample so many of
them, evenly chosen; then the time for all is extrapolated, and said to be. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time

from kschedx.cli.files import configuration
from kschedx.explain.difference import Difference
from kschedx.explain.profile_changes import Pair
from kschedx.explain.setup import Setup
from kschedx.loading import load
from kschedx.parallel import processors, results
from kschedx.releases import resolve


def processor_time() -> float:
    """Seconds of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--jobs", type=int, default=processors())
    parser.add_argument("--before", default="default")
    parser.add_argument("--after", default="binpack")
    options = parser.parse_args()

    gc.disable()  # as the command does
    start = time.perf_counter()
    snapshot = load([options.file])
    loading = time.perf_counter() - start
    setups = [Setup.of(name, configuration(name), resolve()) for name in (options.before, options.after)]
    pair = Pair(snapshot, *setups)
    rows, _ = pair.choose(pending=False, running=True)
    compared = rows if options.sample is None else rows[:: max(len(rows) // options.sample, 1)][: options.sample]

    def compare(part: int) -> list[Difference]:
        return [result for _, result in pair.differences(parts[part]) if isinstance(result, Difference)]

    start, spent = time.perf_counter(), processor_time()
    pair.prepare()
    parts = pair.parts(compared)
    weights = [len(part.rows) for part in parts]
    result = sum(map(len, results(compare, range(len(parts)), options.jobs, weights=weights)))
    took, spent = time.perf_counter() - start, processor_time() - spent

    rate = len(compared) / took
    cluster = f"{len(snapshot.cluster.nodes):,} nodes, {len(rows):,} running pods"
    print(f"| {cluster} | {options.before} → {options.after}, {options.jobs} processes |")
    print("| --- | --- |")
    print(f"| loaded in | {loading:.1f} s |")
    print(f"| compared | {len(compared):,} pods in {took:.1f} s, {rate:,.0f} a second |")
    print(f"| time of the processor | {spent:.1f} s |")
    print(f"| different | {result:,} |")
    if len(compared) < len(rows):
        print(f"| all pods, extrapolated from this sample | {len(rows) / rate / 60:.0f} min |")


if __name__ == "__main__":
    main()

"""How many unschedulable pods of recorded decisions get a verified fix, and why the others get none.

    python benchmarks/fixes.py [--every N] [--show N] FILE.jsonl.gz ...

Each line of a file is a recorded decision, as tests/conformance/README.md describes it. `--every N` takes every Nth.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kschedx


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="reasons that are printed")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    without: dict[str, list[str]] = {}
    for file in options.files:
        for case in decisions(file, options.every):
            fixes = of_case(case)
            if fixes is None:
                continue
            outcomes["verified" if "verified" in fixes.values() else "partial" if fixes else "none"] += 1
            if "verified" not in fixes.values():
                without.setdefault(reason(case), []).append(case["name"])
    number = sum(outcomes.values())
    share = 100 * outcomes["verified"] / number if number else 0
    print(f"{outcomes['verified']} of {number} unschedulable pods have a verified fix: {share:.1f} % {dict(outcomes)}")
    for why, names in sorted(without.items(), key=lambda item: -len(item[1]))[: options.show]:
        print(f"{len(names):5}  {why}  ({', '.join(names[:4])})")


def decisions(file: Path, every: int) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(gzip.decompress(file.read_bytes()).splitlines()):
        if number % every == 0:
            yield json.loads(line)


def of_case(case: dict[str, Any]) -> dict[str, str] | None:
    """The titles of the fixes to their certainty; None for a pod that can be scheduled."""
    snapshot = kschedx.Snapshot.from_objects(case["objects"])
    gates = case.get("featureGates") or {}
    result = kschedx.explain(snapshot, case["pod"], config=case.get("config"), feature_gates=gates)
    if result.outcome.value != "Unschedulable":
        return None
    case["why"] = result.no_fix or result.message
    return {fix.title: fix.certainty.value for fix in result.fixes}


def reason(case: dict[str, Any]) -> str:
    return str(case["why"])[:110]


if __name__ == "__main__":
    main()

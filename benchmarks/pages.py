"""How fast a browser opens pages: `python benchmarks/pages.py PAGE.html...`. Needs Chromium; prints a Markdown table.

A page is opened when its first frame after the load event is drawn, with every table filled. "Processor" is what the
page's main thread needs for that, whatever else the machine does. The memory is that of its scripts, after a
collection.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.chromium import Page, chromium


def busy(page: Page) -> float:
    """Seconds of the processor that the page's main thread has used."""
    metrics = page.send("Performance.getMetrics")["metrics"]
    assert isinstance(metrics, list)
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def main(paths: list[Path]) -> None:
    print("| page | size | opened | processor | filtered | memory |\n| --- | --- | --- | --- | --- | --- |")
    for path in paths:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, chromium(Path(folder)) as page:
            page.resize(1400, 900)
            page.open(Path(__file__).parents[1] / "docs/pages/assets/architecture.svg")  # the browser itself is warm
            page.send("Performance.enable", timeDomain="threadTicks")
            before, begun = busy(page), time.monotonic()
            page.open(path.resolve())
            opened, processor = time.monotonic() - begun, busy(page) - before
            begun = time.monotonic()
            page.run(
                "for (const box of document.querySelectorAll('input[type=search]')) "
                "{ box.value = 'a 1'; box.dispatchEvent(new Event('input')); }"
            )
            filtered = time.monotonic() - begun
            page.send("HeapProfiler.collectGarbage")
            used = float(str(page.send("Runtime.getHeapUsage")["usedSize"])) / 1e6
            size = path.stat().st_size / 1e6
            assert page.complaints == [], page.complaints
            times = " | ".join(f"{seconds:.2f} s" for seconds in (opened, processor, filtered))
            print(f"| {path.stem} | {size:.2f} MB | {times} | {used:.0f} MB |", flush=True)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])

"""How fast a browser opens pages: `python benchmarks/pages.py PAGE.html...`. Needs Chromium; prints a Markdown table.

A page is opened when its first frame after the load event is drawn, with every table filled. The memory is that of its
scripts, after a collection.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.chromium import chromium


def main(paths: list[Path]) -> None:
    print("| page | size | opened | filtered | memory |\n| --- | --- | --- | --- | --- |")
    for path in paths:
        with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as page:
            page.resize(1400, 900)
            page.open(Path(__file__).parents[1] / "docs/pages/assets/architecture.svg")  # the browser itself is warm
            begun = time.monotonic()
            page.open(path.resolve())
            opened = time.monotonic() - begun
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
            print(f"| {path.stem} | {size:.2f} MB | {opened:.2f} s | {filtered:.2f} s | {used:.0f} MB |", flush=True)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])

"""Every form of one answer: how large it is, and how long it takes to write once the answer is there.

    python benchmarks/forms.py FILE

FILE is a dump as big_cluster.py writes it, or a snapshot of it. One answer is of a pod that fits, one of the same pod
with a request that no node can give. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import kschedx
from kschedx import __version__
from kschedx.cli.checks import explanation_check
from kschedx.errors import Place
from kschedx.inquiry.explanation import Explanation
from kschedx.render.checks import junit, sarif
from kschedx.render.manifests import to_json, to_yaml
from kschedx.render.page.explanation import explanation_page
from kschedx.render.page.html import html
from kschedx.render.page.markdown import markdown
from kschedx.render.page.svg import svg
from kschedx.render.screen import why_lines


def _screen(answer: Explanation) -> str:
    return "\n".join(line.plain for line in why_lines(answer, width=100))


FORMS: Mapping[str, Callable[[Explanation], str]] = {
    "first screen": _screen,
    "json": lambda answer: to_json(answer.to_dict()),
    "yaml": lambda answer: to_yaml(answer.to_dict()),
    "html": lambda answer: html(explanation_page(answer)),
    "markdown": lambda answer: markdown(explanation_page(answer, every_node=False)),
    "svg": lambda answer: svg(explanation_page(answer, every_node=False)),
    "junit": lambda answer: junit([explanation_check(answer, Place())]),
    "sarif": lambda answer: sarif([explanation_check(answer, Place())], __version__),
}


def _pod(cpu: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asked", "namespace": "default"},
        "spec": {"containers": [container]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file")
    snapshot = kschedx.load(parser.parse_args().file)
    answers = {
        "fits": kschedx.explain(snapshot, _pod("500m")),
        "fits nowhere": kschedx.explain(snapshot, _pod("10k")),
    }
    print(f"| {len(snapshot.cluster.nodes):,} nodes | " + " | ".join(f"{name}: size | time" for name in answers) + " |")
    print("| --- |" + " --- | --- |" * len(answers))
    for answer in answers.values():
        _ = answer.fixes, answer.notes  # the answer itself is no part of its form
    for form, write in FORMS.items():
        cells = []
        for answer in answers.values():
            begun = time.perf_counter()
            size = len(write(answer).encode())
            took = time.perf_counter() - begun
            cells.append(f"{_size(size)} | {took:.2f} s")
        print(f"| {form} | {' | '.join(cells)} |")


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


if __name__ == "__main__":
    main()

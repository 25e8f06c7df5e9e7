"""The long form: `python -m tests.fuzz TARGET [libFuzzer's options] CORPUS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["kschedx.sources", "kschedx.api"]):
    from tests.fuzz import targets

from tests.fuzz import hostile


def main() -> None:
    """Seeds an empty corpus from the fixtures, and runs."""
    name, arguments = sys.argv[1], sys.argv[2:]
    for argument in arguments:
        if not argument.startswith("-") and not Path(argument).is_file():
            _seed(Path(argument), name)
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[name], custom_mutator=_mutated)
    atheris.Fuzz()


def _seed(corpus: Path, name: str) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    seeds = {
        "answers": [hostile.as_json(hostile.cluster(Random(seed))) for seed in range(100)],
        "scalars": [json.dumps(leaf).encode() for leaf in (*hostile.LEAVES, *hostile.WORDS)],
    }.get(name, list(hostile.texts()))
    for number, seed in enumerate(seeds):
        (corpus / f"{number:03}").write_bytes(seed)


def _mutated(data: bytes, max_size: int, seed: int) -> bytes:
    """Half of the time libFuzzer's mutation of bytes, otherwise another value somewhere in the JSON."""
    random = Random(seed)
    if random.random() < 0.5:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict | list):
            damaged = json.dumps(hostile.damaged(value, random)).encode()
            if len(damaged) <= max_size:
                return damaged
    return bytes(atheris.Mutate(data, max_size))


main()

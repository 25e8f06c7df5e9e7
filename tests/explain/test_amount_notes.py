"""Quantities with a suffix that is probably wrong."""

from __future__ import annotations

import pytest

from kschedx.explain.cycle_notes import amount_notes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import pod


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", "500M", "500M of cpu is 500,000,000 processors: did you mean 500m?"),
        ("cpu", "100Mi", "100Mi of cpu is 104,857,600 processors: did you mean 100m?"),
        ("cpu", "500m", None),
        ("cpu", "20k", "20k of cpu is 20,000 processors: did you mean 20m?"),
        ("cpu", "64", None),
        ("memory", "128m", "128m of memory is less than a byte: did you mean 128Mi?"),
        ("memory", "512", "512 of memory is 512 bytes: did you mean 512Mi?"),
        ("memory", "128M", None),
        ("memory", "1073741824", None),
        ("memory", "0", None),
        ("ephemeral-storage", "2000m", "2000m of ephemeral-storage is 2 bytes: did you mean 2000Mi?"),
    ],
)
def test_the_probable_quantity_is_named(resource: str, amount: str, expected: str | None) -> None:
    containers = [{"name": "main", "resources": {"requests": {resource: amount}, "limits": {resource: amount}}}]
    snapshot = Snapshot.from_objects([pod("web", containers=containers)])
    assert [note.text.removeprefix("container main: ") for note in amount_notes(snapshot.pods[0])] == (
        [expected] if expected else []
    )

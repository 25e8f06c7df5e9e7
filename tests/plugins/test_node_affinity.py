"""NodeAffinity: which pods it scores."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, evaluate, node, only, pod

_EMPTY: Manifest = {"weight": 5, "preference": {}}
_SSD: Manifest = {
    "weight": 5,
    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
}


@pytest.mark.parametrize(
    ("preferred", "added", "scores"),
    [
        ([], [], None),
        ([_SSD], [], [5, 0]),
        ([_EMPTY], [], [0, 0]),  # it matches no node, but the pod has a preference
        ([], [_EMPTY], [0, 0]),
        ([_EMPTY, _SSD], [_SSD], [10, 0]),
    ],
)
def test_a_pod_with_preferences_is_scored(
    preferred: list[Manifest], added: list[Manifest], scores: list[int] | None
) -> None:
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    new = pod("new", affinity={"nodeAffinity": {key: preferred}})
    config = only("NodeAffinity", {"addedAffinity": {key: added}})
    cycle = evaluate([new, node("a", labels={"disk": "ssd"}), node("b")], "default/new", config)
    assert cycle.scores is not None
    raw = {name: list(map(int, values)) for name, values in cycle.scores.raw.items()}
    assert raw == ({} if scores is None else {"NodeAffinity": scores})

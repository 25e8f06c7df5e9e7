"""kschedx decides what Karpenter decided, in every recorded round: nodes, pods on them, and every text."""

from __future__ import annotations

import json

import pytest

from tests.karpenter.rounds import Json, decided, in_any_order, recorded


@pytest.mark.parametrize("case", recorded(), ids=lambda case: case["name"])
def test_the_round_is_karpenters(case: Json) -> None:
    document = json.loads(json.dumps(decided(case)))
    assert in_any_order(document) == in_any_order(case["expect"])

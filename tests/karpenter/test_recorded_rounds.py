"""kschedx decides every recorded round as Karpenter did: nodes, their pods, and every text."""

from __future__ import annotations

import json

import pytest

from tests.karpenter.rounds import Json, decide_round, recorded_rounds, sort_texts


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", recorded_rounds(), ids=lambda case: case["name"])
def test_a_round_equals_the_recorded_one(case: Json) -> None:
    document = json.loads(json.dumps(decide_round(case)))
    assert sort_texts(document) == sort_texts(case["expect"])

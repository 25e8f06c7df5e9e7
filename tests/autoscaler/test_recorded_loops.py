"""kschedx decides every recorded loop as cluster-autoscaler did, in every part."""

from __future__ import annotations

import json

import pytest

import kschedx
from tests.autoscaler.loops import Json, arguments, cases, differences, recorded_part


def autoscale(case: Json) -> Json:
    scaling = kschedx.autoscale(kschedx.Snapshot.from_objects(case["objects"]), **arguments(case))
    result: Json = json.loads(json.dumps(scaling.to_dict()))
    return result


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_a_loop_equals_the_recorded_one(case: Json) -> None:
    recorded = case["expect"]
    items = list(differences("", recorded_part(recorded, recorded), recorded_part(autoscale(case), recorded)))
    if items:
        pytest.fail(f"{case['name']}: {len(items)} differences\n" + "\n".join(items), pytrace=False)

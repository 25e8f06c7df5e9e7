"""kschedx decides what cluster-autoscaler decided, in every recorded loop and every part of it."""

from __future__ import annotations

import json

import pytest

import kschedx
from tests.autoscaler.loops import Json, cases, differences, lean


def autoscale(case: Json) -> Json:
    scaling = kschedx.autoscale(
        kschedx.Snapshot.from_objects(case["objects"]),
        group_label=case["groups"]["label"],
        templates=case.get("templates"),
        flags=case["flags"],
        config=case.get("config"),
        kube_version=case["kubeVersion"],
        now=case["now"],
    )
    result: Json = json.loads(json.dumps(scaling.to_dict()))
    return result


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_loop_is_the_autoscalers(case: Json) -> None:
    recorded = case["expect"]
    items = list(differences("", lean(recorded, recorded), lean(autoscale(case), recorded)))
    if items:
        pytest.fail(f"{case['name']}: {len(items)} differences\n" + "\n".join(items), pytrace=False)

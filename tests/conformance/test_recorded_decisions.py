"""kschedx decides what kube-scheduler 1.36 decided, in every recorded case and every part of the decision."""

from __future__ import annotations

import pytest

import kschedx
from tests.conformance.decisions import Case, Json, cases, differences, explained, recorded


def explain(case: Case) -> Json:
    snapshot = kschedx.Snapshot.from_objects(case.record["objects"])
    gates = case.record.get("featureGates")
    return kschedx.explain(snapshot, case.record["pod"], config=case.record["config"], feature_gates=gates).to_dict()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_decision_is_kube_schedulers(case: Case) -> None:
    items = list(differences(recorded(case.record["expect"]), explained(explain(case))))
    if items:
        text = "\n".join(map(str, items))
        pytest.fail(f"{case.name}: {len(items)} differences from kube-scheduler's decision\n{text}", pytrace=False)

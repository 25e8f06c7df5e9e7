"""kschedx decides every recorded case as kube-scheduler 1.36 did, in every part of the decision."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.inquiry.document import explanation_document
from tests.conformance.decisions import Case, Json, cases, differences, explained_sections, recorded_sections


def explain(case: Case, *, has_fixes: bool) -> Json:
    """Return the document; fixes are optional, because they take long and do not change the decision."""
    snapshot = kschedx.Snapshot.from_objects(case.record["objects"])
    gates = case.record.get("featureGates")
    explanation = kschedx.explain(snapshot, case.record["pod"], config=case.record["config"], feature_gates=gates)
    return explanation.to_dict() if has_fixes else explanation_document(explanation.cycle, (), ())


@pytest.mark.sample(10)
@pytest.mark.parametrize(("number", "case"), list(enumerate(cases())), ids=lambda value: getattr(value, "name", ""))
def test_a_decision_equals_the_recorded_one(number: int, case: Case) -> None:
    items = list(
        differences(
            recorded_sections(case.record["expect"]), explained_sections(explain(case, has_fixes=number % 4 == 0))
        )
    )
    if items:
        text = "\n".join(map(str, items))
        pytest.fail(f"{case.name}: {len(items)} differences from kube-scheduler's decision\n{text}", pytrace=False)

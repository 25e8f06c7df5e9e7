"""kschedx decides what kube-scheduler 1.36 decided, in every recorded case and every part of the decision."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.inquiry.document import explanation_document
from tests.conformance.decisions import Case, Json, cases, differences, explained, recorded


def explain(case: Case, *, has_fixes: bool) -> Json:
    """The document; the search for fixes takes longer than the decision, which it does not change."""
    snapshot = kschedx.Snapshot.from_objects(case.record["objects"])
    gates = case.record.get("featureGates")
    explanation = kschedx.explain(snapshot, case.record["pod"], config=case.record["config"], feature_gates=gates)
    return explanation.to_dict() if has_fixes else explanation_document(explanation.cycle, (), ())


@pytest.mark.sample(5)
@pytest.mark.parametrize(("number", "case"), list(enumerate(cases())), ids=lambda value: getattr(value, "name", ""))
def test_the_decision_is_kube_schedulers(number: int, case: Case) -> None:
    items = list(differences(recorded(case.record["expect"]), explained(explain(case, has_fixes=number % 4 == 0))))
    if items:
        text = "\n".join(map(str, items))
        pytest.fail(f"{case.name}: {len(items)} differences from kube-scheduler's decision\n{text}", pytrace=False)

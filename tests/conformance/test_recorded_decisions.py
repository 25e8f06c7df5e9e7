"""kschedx decides what kube-scheduler 1.36 decided, in every recorded case and every part of the decision."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.errors import UndecidableError
from tests.conformance.decisions import Case, Json, cases, differences, explained, recorded


def claims_devices(case: Case) -> bool:
    """DynamicResources would have to allocate devices."""
    return b'"resourceClaims"' in case.line and bool(case.pod["spec"].get("resourceClaims"))


CASES = cases()
CLAIMING = [case for case in CASES if claims_devices(case)]
DECIDED = [case for case in CASES if not claims_devices(case)]


def explain(case: Case) -> Json:
    snapshot = kschedx.Snapshot.from_objects(case.record["objects"])
    gates = case.record.get("featureGates")
    return kschedx.explain(snapshot, case.record["pod"], config=case.record["config"], feature_gates=gates).to_dict()


@pytest.mark.parametrize("case", DECIDED, ids=lambda case: case.name)
def test_the_decision_is_kube_schedulers(case: Case) -> None:
    found = list(differences(recorded(case.record["expect"]), explained(explain(case))))
    if found:
        told = "\n".join(map(str, found))
        pytest.fail(f"{case.name}: {len(found)} differences from kube-scheduler's decision\n{told}", pytrace=False)


@pytest.mark.parametrize("case", CLAIMING, ids=lambda case: case.name)
def test_a_pod_with_device_claims_is_not_guessed_at(case: Case) -> None:
    claims = ", ".join(claim["name"] for claim in case.pod["spec"]["resourceClaims"])
    with pytest.raises(UndecidableError, match=rf"devices by spec\.resourceClaims \({claims}\)"):
        explain(case)

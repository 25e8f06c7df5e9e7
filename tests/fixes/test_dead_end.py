"""The reason why there is no fix."""

from __future__ import annotations

import pytest

import kschedx
from tests.builders import Manifest, node, pod
from tests.storage_builders import ZONE, claim, in_term, volume

DATA = [{"name": item, "persistentVolumeClaim": {"claimName": item}} for item in ("a", "b")]
APART = [
    *(claim(item, volume=f"pv-{item}") for item in ("a", "b")),
    *(volume(f"pv-{item}", claim_ref=item, node_affinity=in_term(ZONE, item)) for item in ("a", "b")),
]
USERS = [pod(f"user-{item['name']}", on="n", volumes=[item]) for item in DATA]
SINGLE = [claim("a", modes=["ReadWriteOncePod"], volume="pv-a"), volume("pv-a", claim_ref="a")]
IN_USE = pod("holder", on="n", priority=2_000_000_000, volumes=DATA[:1])


@pytest.mark.parametrize(
    ("target", "objects", "expected"),
    [
        (
            pod("me", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
            [],
            "Kueue removes the gate kueue.x-k8s.io/admission once it admits the pod",
        ),
        (pod("me", volumes=DATA), [*APART, *USERS], f"no node can have both {ZONE}=a and {ZONE}=b"),
        (
            pod("me", volumes=DATA[:1]),
            [*SINGLE, IN_USE],
            "one pod at a time may use the claim default/a, and default/holder uses it",
        ),
    ],
    ids=["gate", "volumes", "claim"],
)
def test_the_reason_is_shown(target: Manifest, objects: list[Manifest], expected: str) -> None:
    explanation = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), target, *objects]), "default/me")
    assert not [fix for fix in explanation.fixes if fix.certainty == "verified"]
    assert explanation.no_fix == expected
    notes = explanation.to_dict()["notes"]
    assert isinstance(notes, list)
    assert {"id": "no-fix", "text": expected} in notes


def test_a_verified_fix_needs_no_reason() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("n", unschedulable=True), pod("me")])
    assert kschedx.explain(snapshot, "default/me").no_fix == ""


def test_a_fix_that_another_controller_decides_needs_no_reason() -> None:
    acme = {"filter": {"enabled": [{"name": "Acme"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": acme}],
    }
    snapshot = kschedx.Snapshot.from_objects([node("n", unschedulable=True), pod("me")])
    explanation = kschedx.explain(snapshot, "default/me", config=config)
    (fix,) = explanation.fixes
    assert (fix.certainty, fix.feasible_nodes) == ("partial", ("n",))
    assert explanation.no_fix == ""

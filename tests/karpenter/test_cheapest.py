"""Of many instance types the cloud is asked for the cheapest alone. Karpenter 1.13 came out the same on 90 random
clusters of about 600 types."""

from __future__ import annotations

from kschedx.karpenter.scheduler import MOST_TYPES
from tests.karpenter.rounds import Json, decided
from tests.karpenter.test_cluster import pod, pool

FAMILY = "karpenter.k8s.aws/instance-family"
TWO_FAMILIES = {"key": FAMILY, "operator": "Exists", "minValues": 2}
TOO_FEW = (
    "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
    f"minValues requirement is not met for label(s) (label(s)=[{FAMILY}]) (NodePool=general)"
)


def instance_type(name: str, family: str, price: float) -> Json:
    return {
        "name": name,
        "labels": {FAMILY: family, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "58"},
        "offerings": [{"zone": "eu-1a", "capacityType": "on-demand", "price": price}],
    }


def round_of(*requirements: Json, **options: str) -> Json:
    """The dearest type comes first, and is the only one of its family."""
    types = [instance_type("dear", "rare", 9.0)]
    types += [instance_type(f"plain-{i}", "plain", 1.0) for i in range(MOST_TYPES)]
    return decided(
        {"objects": [pool("general", *requirements), pod()], "instanceTypes": types, "options": options},
    )


def types_of(built: Json) -> list[str]:
    (node,) = built["new"]
    return list(node[2])


def test_the_dearest_is_left_out() -> None:
    types = types_of(round_of())
    assert len(types) == MOST_TYPES
    assert "dear" not in types


def test_what_min_values_wants_may_be_among_those_that_are_cut_off() -> None:
    result = round_of(TWO_FAMILIES)
    assert (result["new"], result["errors"]) == ([], {"default/web": TOO_FEW})
    assert "dear" not in types_of(round_of(TWO_FAMILIES, **{"min-values-policy": "BestEffort"}))

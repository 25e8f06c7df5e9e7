"""Numbers that do not fit Go's types are refused where they are decoded."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.errors import InputError
from tests.builders import Manifest, node, pod


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"priority": 2**31}, "spec.priority", id="a priority beyond int32"),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 2**70, "topologyKey": "zone"}]},
            "spec.topologySpreadConstraints[0].maxSkew",
            id="a skew of twenty-two digits",
        ),
        pytest.param(
            {"containers": [{"name": "main", "ports": [{"hostPort": -(2**40)}]}]},
            "spec.containers[0].ports[0].hostPort",
            id="a port below int32",
        ),
    ],
)
def test_numbers_beyond_their_type_are_refused_by_field(changed: Manifest, field: str) -> None:
    with pytest.raises(InputError) as refused:
        kschedx.Snapshot.from_objects([node("n1"), pod("web", spec=changed)])

    assert refused.value.place.field.replace("[...]", "[0]").replace("[*]", "[0]") == field

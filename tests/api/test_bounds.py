"""Numbers out of the range of Go's types are errors where they are decoded."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.errors import InputError
from tests.builders import Manifest, node, pod


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({"labels": {"zone": "a", "rack": 5}}, "metadata.labels.rack"),
        ({"labels": {"example.com/rack": 5}}, "metadata.labels[example.com/rack]"),
    ],
)
def test_an_error_names_the_key_of_a_map(manifest: Manifest, field: str) -> None:
    with pytest.raises(InputError) as error:
        kschedx.Snapshot.from_objects([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", **manifest}}])
    assert error.value.place.field == field


@pytest.mark.parametrize(
    ("spec", "field"),
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
def test_an_error_names_the_field_of_a_number_out_of_range(spec: Manifest, field: str) -> None:
    with pytest.raises(InputError) as error:
        kschedx.Snapshot.from_objects([node("n1"), pod("web", spec=spec)])

    assert error.value.place.field.replace("[...]", "[0]").replace("[*]", "[0]") == field

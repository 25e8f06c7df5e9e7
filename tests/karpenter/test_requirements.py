"""Requirements on labels: their intersections, conflicts, and texts."""

from __future__ import annotations

import pytest

from kschedx.karpenter.requirements import LabelRequirement, Requirements

A, NOT_A = LabelRequirement.of("k", "In", ("a",)), LabelRequirement.of("k", "NotIn", ("a",))
AB = LabelRequirement.of("k", "In", ("a", "b"))
ANY, NONE = LabelRequirement.of("k", "Exists"), LabelRequirement.of("k", "DoesNotExist")
OVER_3, UNDER_8 = LabelRequirement.of("k", "Gt", ("3",)), LabelRequirement.of("k", "Lt", ("8",))


@pytest.mark.parametrize(
    ("label_requirement", "other", "expected"),
    [
        (AB, A, "k In [a]"),
        (AB, NOT_A, "k In [b]"),
        (A, NOT_A, "k DoesNotExist"),
        (NOT_A, ANY, "k NotIn [a]"),
        (ANY, NONE, "k DoesNotExist"),
        (OVER_3, UNDER_8, "k Exists >=4 <=7"),
        (UNDER_8, LabelRequirement.of("k", "Gte", ("8",)), "k DoesNotExist"),
        (OVER_3, LabelRequirement.of("k", "In", ("2", "4", "big")), "k In [4]"),
        (OVER_3, LabelRequirement.of("k", "NotIn", ("2", "5")), "k NotIn [5] >=4"),
        (LabelRequirement.of("k", "Gt", (str(2**63 - 1),)), ANY, "k DoesNotExist"),
        (LabelRequirement.of("k", "Exists", min_values=2), AB, "k In [a b] minValues 2"),
        (LabelRequirement.of("k", "In", tuple("gfedcba")), ANY, "k In [a b c d e and 2 others]"),
    ],
)
def test_intersection_of_two_requirements(
    label_requirement: LabelRequirement, other: LabelRequirement, expected: str
) -> None:
    assert str(label_requirement.intersection(other)) == str(other.intersection(label_requirement)) == expected
    assert label_requirement.intersects(other) is (label_requirement.intersection(other).operator != "DoesNotExist")


def test_a_deprecated_label_is_replaced() -> None:
    assert LabelRequirement.of("topology.ebs.csi.aws.com/zone", "In", ("eu-1a",)).key == "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("own_requirement", "incoming_requirement", "allowed", "expected"),
    [
        (A, AB, "", ""),
        (A, NOT_A, "", "key k, k NotIn [a] not in k In [a]"),
        (NOT_A, NONE, "", ""),
        (A, LabelRequirement.of("zone", "In", ("x",)), "", 'label "zone" does not have known values'),
        (A, LabelRequirement.of("zone", "DoesNotExist"), "", ""),
        (A, LabelRequirement.of("zone", "In", ("x",)), "zone", ""),
        (
            A,
            LabelRequirement.of("zone", "Exists"),
            "topology.kubernetes.io/zone",
            'label "zone" does not have known values (typo of "topology.kubernetes.io/zone"?)',
        ),
    ],
)
def test_conflicts_of_requirements(
    own_requirement: LabelRequirement, incoming_requirement: LabelRequirement, allowed: str, expected: str
) -> None:
    own, incoming, known = (
        Requirements((own_requirement,)),
        Requirements((incoming_requirement,)),
        frozenset(filter(None, (allowed,))),
    )
    assert "; ".join(map(str, own.conflicts(incoming, known))) == expected
    assert own.is_compatible(incoming, known) is not bool(expected)

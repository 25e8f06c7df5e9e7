"""Sets of label values: what they have in common, and how they are written."""

from __future__ import annotations

import pytest

from kschedx.karpenter.requirements import Requirement, Requirements

A, NOT_A = Requirement.of("k", "In", ("a",)), Requirement.of("k", "NotIn", ("a",))
AB = Requirement.of("k", "In", ("a", "b"))
ANY, NONE = Requirement.of("k", "Exists"), Requirement.of("k", "DoesNotExist")
OVER_3, UNDER_8 = Requirement.of("k", "Gt", ("3",)), Requirement.of("k", "Lt", ("8",))


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [
        (AB, A, "k In [a]"),
        (AB, NOT_A, "k In [b]"),
        (A, NOT_A, "k DoesNotExist"),
        (NOT_A, ANY, "k NotIn [a]"),
        (ANY, NONE, "k DoesNotExist"),
        (OVER_3, UNDER_8, "k Exists >=4 <=7"),
        (UNDER_8, Requirement.of("k", "Gte", ("8",)), "k DoesNotExist"),
        (OVER_3, Requirement.of("k", "In", ("2", "4", "big")), "k In [4]"),
        (OVER_3, Requirement.of("k", "NotIn", ("2", "5")), "k NotIn [5] >=4"),
        (Requirement.of("k", "Gt", (str(2**63 - 1),)), ANY, "k DoesNotExist"),
        (Requirement.of("k", "Exists", min_values=2), AB, "k In [a b] minValues 2"),
        (Requirement.of("k", "In", tuple("gfedcba")), ANY, "k In [a b c d e and 2 others]"),
    ],
)
def test_what_two_leave(one: Requirement, other: Requirement, left: str) -> None:
    assert str(one.intersection(other)) == str(other.intersection(one)) == left
    assert one.intersects(other) is (one.intersection(other).operator != "DoesNotExist")


def test_an_old_name_of_a_label_is_its_new_one() -> None:
    assert Requirement.of("topology.ebs.csi.aws.com/zone", "In", ("eu-1a",)).key == "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("has", "asks", "allowed", "told"),
    [
        (A, AB, "", ""),
        (A, NOT_A, "", "key k, k NotIn [a] not in k In [a]"),
        (NOT_A, NONE, "", ""),
        (A, Requirement.of("zone", "In", ("x",)), "", 'label "zone" does not have known values'),
        (A, Requirement.of("zone", "DoesNotExist"), "", ""),
        (A, Requirement.of("zone", "In", ("x",)), "zone", ""),
        (
            A,
            Requirement.of("zone", "Exists"),
            "topology.kubernetes.io/zone",
            'label "zone" does not have known values (typo of "topology.kubernetes.io/zone"?)',
        ),
    ],
)
def test_what_cannot_be_met_too(has: Requirement, asks: Requirement, allowed: str, told: str) -> None:
    own, incoming, known = Requirements((has,)), Requirements((asks,)), frozenset(filter(None, (allowed,)))
    assert "; ".join(map(str, own.conflicts(incoming, known))) == told
    assert own.is_compatible(incoming, known) is not bool(told)

"""Amounts on both sides of an inequality have one unit, and their sums are correct as printed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kschedx
from kschedx.kube.names import short_names
from kschedx.wording import amount, balance, count, list_names

GI, MI, KI = 2**30, 2**20, 2**10


@pytest.mark.parametrize(
    ("resource", "asks", "allocatable", "used", "expected"),
    [
        ("cpu", 2000, 8000, 7650, ("2000m", "350m", "8000m", "7650m", "1650m")),
        ("cpu", 2000, 8000, 7000, ("2", "1", "8", "7", "1")),
        ("memory", 4 * GI, 16 * GI, 14 * GI, ("4Gi", "2Gi", "16Gi", "14Gi", "2Gi")),
        ("memory", 4 * GI, 15075324 * KI, 11 * GI, ("4096Mi", "3457Mi", "14721Mi", "11264Mi", "639Mi")),
        # a whole number of gibibytes is shown as such, and the other side in the same unit
        ("cpu", 64000, 31850, 14100, ("64000m", "17750m", "31850m", "14100m", "46250m")),
        ("memory", 400 * GI, 64 * GI, 512 * MI, ("400Gi", "63.5Gi", "64Gi", "0.5Gi", "336.5Gi")),
        ("memory", 48 * GI, 15075324 * KI, 11 * GI, ("48Gi", "3.3Gi", "14.3Gi", "11Gi", "44.7Gi")),
        ("nvidia.com/gpu", 2, 0, 0, ("2", "0", "0", "0", "2")),
    ],
)
def test_one_unit(resource: str, asks: int, allocatable: int, used: int, expected: tuple[str, ...]) -> None:
    units = balance(resource, requested=asks, allocatable=allocatable, used=used)
    assert (units.requested, units.free, units.allocatable, units.used, units.short_by) == expected


@given(st.integers(1, 2**43), st.integers(0, 2**43), st.integers(0, 2**43))
def test_rounded_sums_are_correct_and_never_look_like_a_fit(asks: int, allocatable: int, used: int) -> None:
    units = balance("memory", requested=asks, allocatable=allocatable, used=used)
    if units.rounded:
        texts = (units.requested, units.free, units.allocatable, units.used, units.short_by)
        numbers = [Decimal(text.removesuffix("Mi").removesuffix("Gi")) for text in texts]
        assert numbers[1] == numbers[2] - numbers[3]
        assert numbers[4] == numbers[0] - numbers[1]
        assert (numbers[0] > numbers[1]) or asks <= allocatable - used


def test_other_amounts_keep_the_unit() -> None:
    units = balance("cpu", requested=2250, allocatable=7910, used=6260)
    assert units.in_same_unit("cpu", (3000, 110)) == ("3000m", "110m")


@pytest.mark.parametrize(("number", "text"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (1640, "1,640 nodes")])
def test_counts(number: int, text: str) -> None:
    assert count(number, "node") == text


def test_lists_count_omitted_items() -> None:
    assert list_names(["a", "b"], 3) == "a, b"
    assert list_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert list_names(["a"], 5, 1200) == "a and 1,199 more"
    assert list_names(["a", "b"], 3, conjunction="or") == "a or b"
    assert amount("memory", 512 * MI) == "512Mi"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["a.eu.local", "b.eu.local"], {"a.eu.local": "a", "b.eu.local": "b"}),
        (["a.eu.local", "b.us.local"], {}),
        (["a", "b"], {}),
        (["10.0.0.1"], {}),
        (["10.0.0.1", "11.0.0.1"], {}),
    ],
)
def test_names_of_one_domain(names: list[str], short: dict[str, str]) -> None:
    assert short_names(names) == short
    manifests = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in dict.fromkeys(names)]
    cluster = kschedx.Snapshot.from_objects(manifests).cluster
    assert {name: cluster.full_name(shown) for name, shown in short.items()} == {name: name for name in short}

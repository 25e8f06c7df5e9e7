"""The table of kinds."""

from __future__ import annotations

import pytest

from kschedx.explain.missing_kinds import MATTERS
from kschedx.framework.registry import IN_TREE
from kschedx.kube.kinds import KINDS, ResourceKind, key_of, kind_of


def test_kinds_are_unique_by_group() -> None:
    assert all(kind_of(kind.name, kind.group) is kind for kind in KINDS.values())
    assert len({kind.resource for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize(
    ("name", "group", "key"),
    [
        ("Node", "", "Node"),
        ("ReplicaSet", "apps", "ReplicaSet"),
        ("PodGroup", "scheduling.k8s.io", "PodGroup"),
        ("PodGroup", "scheduling.x-k8s.io", "PodGroup.scheduling.x-k8s.io"),
        ("PodGroup", "scheduling.volcano.sh", "PodGroup.scheduling.volcano.sh"),
        ("Node", "management.cattle.io", "Node.management.cattle.io"),
    ],
)
def test_the_kind_of_another_group_has_another_key(name: str, group: str, key: str) -> None:
    assert key_of(name, group) == key
    assert (kind_of(name, group) is not None) == (key in KINDS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.read_by], ids=lambda kind: kind.key)
def test_kinds_that_plugins_read_can_matter(kind: ResourceKind) -> None:
    assert set(kind.read_by) <= set(IN_TREE)
    assert kind.leaves
    assert kind.key in MATTERS

"""The kinds that are listed are those that a snapshot reads, and the ClusterRole of README.md allows them."""

from __future__ import annotations

import re

import yaml

from kschedx.explain.missing import RULES, resource_name
from kschedx.snapshot import kinds
from kschedx.snapshot.kinds import GROUPS
from kschedx.sources.live.resources import CLUSTER_SCOPED, RESOURCES
from tests.command import ROOT


def test_every_kind_that_is_read_is_listed() -> None:
    assert {resource.kind: resource.group for resource in RESOURCES} == dict(GROUPS)


def test_a_kind_has_one_name_everywhere() -> None:
    assert {resource.kind: resource.name for resource in RESOURCES} == {kind: resource_name(kind) for kind in GROUPS}
    assert set(RULES) <= set(GROUPS)


def test_the_readme_gives_the_smallest_cluster_role() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(apiVersion: rbac\..*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert found
    role = yaml.safe_load(found[1])
    allowed = {
        (group, plural): rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    assert allowed == {(resource.group, resource.plural): ["get", "list"] for resource in RESOURCES}


def test_kinds_without_namespaces_are_known_alike() -> None:
    assert kinds.CLUSTER_SCOPED | {"Node"} == CLUSTER_SCOPED

"""Every finding has words: a headline with its number, and facts with a correct sum."""

from __future__ import annotations

import typing

import msgspec
import pytest

from kschedx import findings
from kschedx.explain.events import explained_reasons, parse
from kschedx.findings import (
    ClaimFacts,
    ClaimUnbound,
    DomainCount,
    ExistingAntiAffinityConflict,
    Finding,
    HostPortConflict,
    InsufficientResource,
    NodeAffinityMismatch,
    RequirementMatch,
    TermMatch,
    TooManyPods,
    TopologySpreadSkew,
    UntoleratedTaint,
    VolumeLimitExceeded,
)
from kschedx.wording import in_words
from kschedx.words import describe, headline
from kschedx.words.reasons import reasons

ZONE = RequirementMatch(key="zone", operator="In", values=("eu-1a", "eu-1b"), actual="eu-1a", matched=True)
DISK = RequirementMatch(key="acme.io/disk", operator="In", values=("nvme",), actual="ssd", matched=False)
SKEW = TopologySpreadSkew(
    constraint=0,
    topology_key="topology.kubernetes.io/zone",
    domain="eu-1a",
    matching=6,
    itself=1,
    minimum=4,
    max_skew=1,
    domains=(
        DomainCount(domain="eu-1a", matching=6),
        DomainCount(domain="eu-1b", matching=4),
        DomainCount(domain="eu-1c", matching=4),
    ),
    domain_count=3,
)
CPU = InsufficientResource(resource="cpu", requested=2000, used=7650, allocatable=8000, unit="m")
CLAIM = ClaimFacts(
    claim="shop/data-web-0", storage_class="fast", requested=2**30, access_modes=("ReadWriteOnce",), volume_mode=""
)


def facts(finding: Finding) -> list[str]:
    return [f"{fact.label}: {' · '.join(fact.items)}" for fact in describe(finding).facts]


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (CPU, "insufficient cpu, short by 1650m"),
        (
            InsufficientResource(resource="cpu", requested=64000, used=100, allocatable=31850, unit="m"),
            "insufficient cpu, short by 32250m, more than the node's allocatable",
        ),
        (TooManyPods(pods=110, allowed=110), "too many pods, 110 of 110 run there"),
        (
            UntoleratedTaint(key="dedicated", value="gpu", effect="NoSchedule"),
            "untolerated taint dedicated=gpu:NoSchedule",
        ),
        (UntoleratedTaint(key="spot", value="", effect="NoExecute"), "untolerated taint spot:NoExecute"),
        (SKEW, "skew 3 > maxSkew 1"),
        (
            NodeAffinityMismatch(source="nodeAffinity", terms=(TermMatch(index=0, requirements=(ZONE, DISK)),) * 2),
            "none of 2 required terms matches",
        ),
        (
            HostPortConflict(port=443, protocol="TCP", host_ip="", holder="web/nginx", holder_host_ip="127.0.0.1"),
            "host port 443/TCP is in use by web/nginx",
        ),
        (
            ExistingAntiAffinityConflict(
                pods=("cache/redis-2",),
                pod_count=1,
                term=0,
                topology_key="kubernetes.io/hostname",
                domain="node-09",
                selector="app=web",
                matched_labels=("app=web",),
            ),
            "the anti-affinity of cache/redis-2 matches this pod",
        ),
        (
            ClaimUnbound(claim=CLAIM, cause="immediate", provisioner="", persistent_volume=""),
            "claim shop/data-web-0 is not bound",
        ),
        (
            VolumeLimitExceeded(driver="d", attached=4, limit=4, volumes=("a",), holders=()),
            "too many volumes, 5 > limit 4",
        ),
    ],
)
def test_headlines(finding: Finding, expected: str) -> None:
    assert headline(finding) == expected


def test_both_sides_of_the_inequality() -> None:
    assert facts(CPU) == ["requests: 2000m", "free:  350m = 8000m allocatable - 7650m requested"]


def test_the_sum_of_the_spread_rule_is_correct() -> None:
    [rule] = describe(SKEW).facts
    assert rule.items == (
        "6 matching + 1 this pod - 4 minimum = 3",
        "eu-1a 6, eu-1b 4, eu-1c 4",
        "constraint 1, per topology.kubernetes.io/zone",
    )


def test_the_nearest_term_is_shown_by_expression() -> None:
    finding = NodeAffinityMismatch(source="nodeAffinity", terms=(TermMatch(index=0, requirements=(ZONE, DISK)),))
    assert facts(finding) == [
        'term: zone In [eu-1a, eu-1b] ✓ eu-1a · acme.io/disk In [nvme] ✗ the node has "ssd" · only one expression fails'
    ]


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        (("value",), 'toleration 3 is for dedicated=cpu: its value is not "gpu"'),
        (("effect",), "toleration 3 is for dedicated=cpu: its effect is not NoSchedule"),
        (
            ("value", "effect"),
            'toleration 3 is for dedicated=cpu: its value is not "gpu" and its effect is not NoSchedule',
        ),
        (("operator",), 'toleration 3 is for dedicated=cpu: its operator does not match "gpu"'),
    ],
)
def test_the_nearest_toleration(differs: tuple[str, ...], expected: str) -> None:
    finding = UntoleratedTaint(
        key="dedicated",
        value="gpu",
        effect="NoSchedule",
        nearest_toleration=2,
        nearest_text="dedicated=cpu",
        nearest_differs=differs,
    )
    assert facts(finding) == [f"nearest: {expected}"]


def test_every_finding_is_explained() -> None:
    ids = {kind.reason for kind in typing.get_args(findings.Finding)}
    assert ids <= reasons().keys()


def test_every_finding_has_words() -> None:
    for kind in set(typing.get_args(findings.Finding)) - {findings.InsufficientResource}:
        assert in_words.dispatch(kind) is not in_words.dispatch(object), kind


def test_every_explanation_of_a_reason_is_used() -> None:
    ids = {kind.reason for kind in typing.get_args(findings.Finding)}
    assert reasons().keys() <= ids | explained_reasons()
    assert explained_reasons() <= reasons().keys()


def test_explanations_are_sentences() -> None:
    for reason in reasons().values():
        assert reason.means.endswith(".")
        assert reason.causes
        assert reason.confirm
        assert reason.useless
        assert reason.links
        assert not any(cause.endswith(".") for cause in reason.causes)
        assert not any(fix.endswith(".") for fix in reason.fixes)
        assert parse(reason.means).nodes is None


def test_the_condition_of_a_node_is_the_headline() -> None:
    finding = UntoleratedTaint(key="node.kubernetes.io/not-ready", value="", effect="NoSchedule")
    assert headline(finding) == "the node is not ready"
    result = msgspec.structs.replace(finding, condition="cni plugin not initialized\nmore")
    assert headline(result) == "the node is not ready: cni plugin not initialized"
    assert facts(result) == ["taint: untolerated taint node.kubernetes.io/not-ready:NoSchedule"]

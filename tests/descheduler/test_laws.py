"""Laws of descheduling with any policy: it respects budgets and limits, loses no pod, and reports what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import kschedx
from kschedx.descheduler.descheduling import Descheduling, deschedule
from kschedx.explain.setup import Setup
from kschedx.render.descheduling import descheduling_lines
from tests.builders import Manifest
from tests.command import check_document
from tests.descheduler.clusters import NOW, budget, node, pod, policy, restarted_status

NODES = ("a", "b", "c")
APPS = ("web", "api")

POLICIES = (
    policy("PodLifeTime", {"maxPodLifeTimeSeconds": 60}),
    policy("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 3}),
    policy("RemoveDuplicates", evictor={"nodeFit": True}),
    policy("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}),
    policy("HighNodeUtilization", {"thresholds": {"cpu": 40}}, {"minReplicas": 2}),
)

pods = st.lists(
    st.builds(
        lambda on, app, cpu, restarts: {
            "on": on,
            "owner": app,
            "cpu": f"{cpu}00m",
            "status": restarted_status(restarts),
        },
        st.sampled_from(NODES),
        st.sampled_from(APPS),
        st.integers(1, 12),
        st.integers(0, 6),
    ),
    max_size=12,
)


def cluster(items: Sequence[dict[str, object]], allowed: Mapping[str, int]) -> list[Manifest]:
    return [
        *(node(name) for name in NODES),
        *(pod(f"p{number}", **item) for number, item in enumerate(items)),  # type: ignore[arg-type] # of any field
        *(budget(app, count) for app, count in allowed.items()),
    ]


def deschedule_rounds(objects: Sequence[Manifest], policy_manifest: Manifest, rounds: int = 1) -> Descheduling:
    snapshot = kschedx.Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot, kube_version="1.36")
    return deschedule(snapshot, policy_manifest, now=NOW, setup=setup, rounds=rounds)


@given(pods, st.fixed_dictionaries({app: st.integers(0, 3) for app in APPS}), st.sampled_from(POLICIES))
def test_a_round_respects_budgets_and_loses_no_pod(
    pod_fields: list[dict[str, object]], allowed: Mapping[str, int], policy_manifest: Manifest
) -> None:
    result = deschedule_rounds(cluster(pod_fields, allowed), policy_manifest)
    evicted = Counter(item.pod.owners[0].name for item in result.loop.evicted)
    assert all(evicted[app] <= allowed[app] for app in APPS)
    for landings in result.landings:
        assert [item.eviction for item in landings] == list(result.loop.evicted)
        assert all(item.node in NODES or item.is_pending for item in landings)  # a controller recreates every one
        assert sorted(item.key for item in result.pods) == sorted(
            f"default/p{number}" for number in range(len(pod_fields))
        )
    check_document(result.to_dict())
    lines = descheduling_lines(result, 80)
    assert len(lines) <= 30
    assert all(cell_len(line.plain) <= 80 for line in lines)


@given(pods, st.sampled_from(POLICIES), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
def test_no_limit_is_exceeded(
    pod_fields: list[dict[str, object]], policy_manifest: Manifest, total: int, per_node: int, per_namespace: int
) -> None:
    limits = {
        "maxNoOfPodsToEvictTotal": total,
        "maxNoOfPodsToEvictPerNode": per_node,
        "maxNoOfPodsToEvictPerNamespace": per_namespace,
    }
    snapshot = kschedx.Snapshot.from_objects(cluster(pod_fields, {}))
    descheduling = kschedx.deschedule(snapshot, policy_manifest | limits, evictions="dry-run", now=NOW)
    nodes = Counter(item.pod.node for item in descheduling.loop.evicted)
    assert len(descheduling.loop.evicted) == descheduling.loop.total <= min(total, per_namespace)
    assert max(nodes.values(), default=0) <= per_node
    assert not {item.pod.key for item in descheduling.loop.evicted} & {
        item.pod.key for item in descheduling.loop.refused
    }


@given(pods, st.sampled_from(POLICIES))
@settings(max_examples=settings().max_examples // 2)
def test_a_second_round_continues_the_first(pod_fields: list[dict[str, object]], policy_manifest: Manifest) -> None:
    """Two rounds begin with the single round; a settled result evicts nothing more."""
    one_round, two_rounds = (
        deschedule_rounds(cluster(pod_fields, {}), policy_manifest),
        deschedule_rounds(cluster(pod_fields, {}), policy_manifest, rounds=2),
    )
    assert (
        [(landing.fate, landing.node) for landing in one_round.landings[0]]
        == [(landing.fate, landing.node) for landing in two_rounds.landings[0]]
        if one_round.landings
        else not two_rounds.landings
    )
    assert two_rounds.is_settled == (not two_rounds.loops[-1].evicted)
    if one_round.is_settled:
        assert two_rounds.is_settled

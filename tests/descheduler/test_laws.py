"""Whatever the policy: budgets hold, limits hold, no pod is lost, and what was recorded is what happens."""

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
from tests.descheduler.clusters import NOW, budget, node, pod, policy, restarted

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
        lambda on, app, cpu, restarts: {"on": on, "owner": app, "cpu": f"{cpu}00m", "status": restarted(restarts)},
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


def moved(objects: Sequence[Manifest], written: Manifest, rounds: int = 1) -> Descheduling:
    snapshot = kschedx.Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot, kube_version="1.36")
    return deschedule(snapshot, written, now=NOW, setup=setup, rounds=rounds)


@given(pods, st.fixed_dictionaries({app: st.integers(0, 3) for app in APPS}), st.sampled_from(POLICIES))
@settings(max_examples=60, deadline=None)
def test_a_round_breaks_no_budget_and_loses_no_pod(
    made: list[dict[str, object]], allowed: Mapping[str, int], written: Manifest
) -> None:
    result = moved(cluster(made, allowed), written)
    evicted = Counter(item.pod.owners[0].name for item in result.loop.evicted)
    assert all(evicted[app] <= allowed[app] for app in APPS)
    for landed in result.landings:
        assert [item.eviction for item in landed] == list(result.loop.evicted)
        assert all(item.node in NODES or item.is_pending for item in landed)  # a controller recreates every one
        assert sorted(item.key for item in result.pods) == sorted(f"default/p{number}" for number in range(len(made)))
    check_document(result.to_dict())
    lines = descheduling_lines(result, 80)
    assert len(lines) <= 30
    assert all(cell_len(line.plain) <= 80 for line in lines)


@given(pods, st.sampled_from(POLICIES), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_no_limit_is_exceeded(
    made: list[dict[str, object]], written: Manifest, total: int, per_node: int, per_namespace: int
) -> None:
    limits = {
        "maxNoOfPodsToEvictTotal": total,
        "maxNoOfPodsToEvictPerNode": per_node,
        "maxNoOfPodsToEvictPerNamespace": per_namespace,
    }
    snapshot = kschedx.Snapshot.from_objects(cluster(made, {}))
    descheduling = kschedx.deschedule(snapshot, written | limits, evictions="dry-run", now=NOW)
    nodes = Counter(item.pod.node for item in descheduling.loop.evicted)
    assert len(descheduling.loop.evicted) == descheduling.loop.total <= min(total, per_namespace)
    assert max(nodes.values(), default=0) <= per_node
    assert not {item.pod.key for item in descheduling.loop.evicted} & {
        item.pod.key for item in descheduling.loop.refused
    }


@given(pods, st.sampled_from(POLICIES))
@settings(max_examples=30, deadline=None)
def test_the_rounds_go_on_from_each_other(made: list[dict[str, object]], written: Manifest) -> None:
    """Two rounds begin with the one round; what is settled evicts nothing more."""
    item, two = moved(cluster(made, {}), written), moved(cluster(made, {}), written, rounds=2)
    assert (
        [(each.fate, each.node) for each in item.landings[0]] == [(each.fate, each.node) for each in two.landings[0]]
        if item.landings
        else not two.landings
    )
    assert two.is_settled == (not two.loops[-1].evicted)
    if item.is_settled:
        assert two.is_settled

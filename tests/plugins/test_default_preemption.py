"""DefaultPreemption: eligibility, victims, and the best candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kschedx
from kschedx.errors import InputError
from kschedx.framework.config import load_profiles
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import CycleState, PostFilterResult
from kschedx.framework.preemption import best_candidates, ranks
from kschedx.framework.runtime import Framework
from kschedx.framework.status import SUCCESS, Candidate, Code, FilterOutcome, Status, Verdicts, error
from kschedx.kube.types import Pod
from kschedx.plugins.default_preemption import DefaultPreemption
from kschedx.releases import resolve
from kschedx.snapshot.columns import ClusterRow, TableRow, cluster_rows, each_cluster_row
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, framework, node, pod

HELPLESS = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
START = "2026-01-01T{:02d}:00:00Z"


def requesting(cpu: int) -> Manifest:
    """Return spec fields with a request of this many milli-CPUs."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}]}


def small_node(name: str, cpu: int = 1000, *, unschedulable: bool = False) -> Manifest:
    labels = {"zone": name, "kubernetes.io/hostname": name}
    return node(
        name, labels=labels, allocatable={"cpu": f"{cpu}m", "memory": "8Gi", "pods": "20"}, unschedulable=unschedulable
    )


def running_pod(
    name: str,
    on: str,
    cpu: int = 0,
    *,
    priority: int = 0,
    hour: int | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Manifest:
    """Return a running pod that started at an hour of one day, or has no start time."""
    status = {"phase": "Running"} | ({} if hour is None else {"startTime": START.format(hour)})
    return pod(name, on=on, status=status, labels=labels, spec={"priority": priority, **requesting(cpu), **spec})


def pending_pod(
    cpu: int = 1000,
    *,
    name: str = "me",
    priority: int = 100,
    labels: Mapping[str, str] | None = None,
    nominated: str = "",
    **spec: object,
) -> Manifest:
    status = {"nominatedNodeName": nominated}
    return pod(name, status=status, labels=labels, spec={"priority": priority, **requesting(cpu), **spec})


def budget(name: str, allowed: int, selector: Mapping[str, object] | None, **status: object) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {} if selector is None else {"selector": dict(selector)},
        "status": {"disruptionsAllowed": allowed, **status},
    }


def post_filter(cycle: Cycle) -> PostFilterResult:
    assert cycle.post_filter is not None, cycle.message
    return cycle.post_filter


def preempt(*objects: Manifest, gates: Mapping[str, bool] | None = None, config: Manifest | None = None) -> Cycle:
    return evaluate(objects, "default/me", config=config, gates=gates)


def victims(cycle: Cycle) -> dict[str, list[str]]:
    """Return the names of the victims of each candidate node."""
    pods, names = cycle.snapshot.pods, cycle.snapshot.cluster.names
    return {
        names[candidate.node]: [pods.names[row] for row in candidate.victims]
        for candidate in post_filter(cycle).candidates
    }


def violations(cycle: Cycle) -> int:
    (candidate,) = post_filter(cycle).candidates
    return candidate.pdb_violations


def best(cycle: Cycle) -> list[str]:
    return [cycle.snapshot.cluster.names[row] for row in post_filter(cycle).best]


# --- eligibility


def test_a_pod_with_preemption_policy_never() -> None:
    cycle = preempt(small_node("a"), running_pod("low", "a", 1000), pending_pod(preemptionPolicy="Never"))
    assert cycle.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert post_filter(cycle).dry_run is None


@pytest.mark.parametrize(
    ("condition", "deleted", "priority", "is_waiting"),
    [
        ({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}, True, 0, True),
        ({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}, True, 100, False),
        ({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}, False, 0, False),
        ({"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}, True, 0, False),
        ({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}, True, 0, False),
        ({"type": "Ready", "status": "True", "reason": "PreemptionByScheduler"}, True, 0, False),
    ],
    ids=["victim", "not-lower", "not-deleted", "condition-false", "other-reason", "other-condition"],
)
def test_a_pod_waits_for_terminating_victims_on_its_nominated_node(
    condition: Mapping[str, str], deleted: bool, priority: int, is_waiting: bool
) -> None:
    terminating = pod(
        "leaving",
        on="a",
        metadata={"deletionTimestamp": START.format(9)} if deleted else {},
        status={"phase": "Running", "conditions": [condition]},
        spec={"priority": priority, **requesting(500)},
    )
    me = pending_pod(nominated="a")
    cycle = preempt(small_node("a"), small_node("b"), terminating, running_pod("other", "b", 1000), me)
    if is_waiting:
        text = "preemption: not eligible due to a terminating pod on the nominated node."
        assert post_filter(cycle).status.reasons == ("no new claims to deallocate", text)
    else:
        assert "b" in victims(cycle)


def test_a_pod_does_not_wait_for_an_unresolvable_nominated_node() -> None:
    terminating = pod(
        "leaving",
        on="a",
        metadata={"deletionTimestamp": START.format(9)},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    )
    nodes = [small_node("a", unschedulable=True), small_node("b")]
    cycle = preempt(*nodes, terminating, running_pod("other", "b", 1000), pending_pod(nominated="a"))
    assert best(cycle) == ["b"]


POD_GROUP: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "gang", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}
PLACED_GROUP: Manifest = {
    **POD_GROUP,
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "schedulingConstraints": {"topology": [{"key": "zone"}]}},
}
WORKLOAD_GATES = ("GenericWorkload", "GangScheduling")


@pytest.mark.parametrize(
    ("gates", "group", "expected"),
    [
        (["WorkloadAwarePreemption"], [POD_GROUP], "not eligible due to workload aware preemption enabled"),
        (["WorkloadAwarePreemption"], [], "not eligible due to workload aware preemption enabled"),
        (["TopologyAwareWorkloadScheduling"], [POD_GROUP], None),
        (["TopologyAwareWorkloadScheduling"], [], "pod group for pod not found"),
        (
            ["TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"],
            [PLACED_GROUP],
            "not eligible due to placement-based pod group scheduling limitation",
        ),
        ([], [PLACED_GROUP], None),
    ],
)
def test_preemption_by_pods_of_a_group(gates: list[str], group: list[Manifest], expected: str | None) -> None:
    me = pending_pod(schedulingGroup={"podGroupName": "gang"})
    enabled = dict.fromkeys([*WORKLOAD_GATES, *gates], True)
    result = post_filter(preempt(small_node("a"), running_pod("low", "a", 1000), me, *group, gates=enabled))
    if expected is None:
        assert result.status.is_success
    else:
        assert result.status.reasons[-1] == f"preemption: {expected}"
        assert result.nominated_node is None


def test_pre_enqueue_passes() -> None:
    assert all(status.is_success for status in preempt(small_node("a"), pending_pod()).pre_enqueue)


# --- tried nodes


def test_the_dry_run_has_a_status_for_every_node() -> None:
    cycle = preempt(
        small_node("cordoned", unschedulable=True),
        small_node("tiny", cpu=500),
        small_node("important"),
        small_node("mixed"),
        small_node("candidate"),
        running_pod("high", "important", 1000, priority=100),
        running_pod("higher", "mixed", 500, priority=101),
        running_pod("lower", "mixed", 500),
        running_pod("victim", "candidate", 1000),
        pending_pod(),
    )
    dry_run = post_filter(cycle).dry_run
    assert dry_run is not None
    messages = {name: dry_run.status(TableRow(row)).message for row, name in enumerate(cycle.snapshot.cluster.names)}
    assert messages == {
        "cordoned": HELPLESS,
        "tiny": HELPLESS,
        "important": NO_VICTIMS,
        "mixed": "Insufficient cpu",
        "candidate": "",
    }
    assert [finding.reason for finding in dry_run.status(TableRow(3)).findings] == ["insufficient-resource"]
    assert victims(cycle) == {"candidate": ["victim"]}
    assert cycle.message.endswith("1 node(s) were unschedulable, 4 Insufficient cpu.")  # no part about preemption


def test_the_message_counts_every_node() -> None:
    cycle = preempt(
        small_node("cordoned", unschedulable=True),
        small_node("important"),
        small_node("mixed"),
        running_pod("high", "important", 1000, priority=100),
        running_pod("higher", "mixed", 500, priority=101),
        running_pod("lower", "mixed", 500),
        pending_pod(),
    )
    assert post_filter(cycle).status.reasons[-1] == (
        f"preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}, 1 {HELPLESS}."
    )


def test_nodes_that_pre_filter_removes_are_not_tried() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]},
                ]
            }
        }
    }
    cycle = preempt(
        small_node("a"),
        small_node("b"),
        running_pod("1", "a", 1000),
        running_pod("2", "b", 1000),
        pending_pod(affinity=affinity),
    )
    assert victims(cycle) == {"b": ["2"]}


def test_a_pre_filter_rejection_applies_to_every_node() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "ghost"}}
    cycle = preempt(small_node("a"), running_pod("1", "a", 1000), pending_pod(volumes=[claim]))
    assert cycle.message == ('0/1 nodes are available: persistentvolumeclaim "ghost" not found. not found')


# --- victims


def test_the_least_important_pods_are_victims() -> None:
    cycle = preempt(
        small_node("a", cpu=3000),
        running_pod("low-late", "a", 1000, priority=1, hour=2),
        running_pod("low-early", "a", 1000, priority=1, hour=1),
        running_pod("high", "a", 1000, priority=50, hour=3),
        pending_pod(2000),
    )
    assert victims(cycle) == {"a": ["low-early", "low-late"]}


def test_the_latest_pod_of_equal_priority_is_the_victim() -> None:
    pods = [running_pod("2h", "a", 1000, hour=2), running_pod("1h", "a", 1000, hour=1)]
    assert victims(preempt(small_node("a", cpu=2000), *pods, pending_pod())) == {"a": ["2h"]}
    assert victims(preempt(small_node("a", cpu=3000), running_pod("new", "a", 1000), *pods, pending_pod())) == {
        "a": ["new"]
    }


@pytest.mark.parametrize(
    ("count", "hour", "victim_names"),
    [
        (14, None, ["p4", "p8", "p6"]),
        (30, None, ["p2", "p14", "p8"]),
        (14, 1, ["p8", "p4", "p2"]),
        (30, 1, ["p4", "p28", "p2"]),
    ],
)
def test_victims_of_many_equal_pods_follow_gos_sort(count: int, hour: int | None, victim_names: list[str]) -> None:
    """The victims are those of kube-scheduler 1.36.2, whose sort is no insertion sort for 13 or more pods."""
    large_node = node("a", allocatable={"cpu": f"{count}", "memory": "8Gi", "pods": "200"})
    pods = [running_pod(f"p{number}", "a", 1000, priority=number % 2, hour=hour) for number in range(count)]
    assert victims(preempt(large_node, *pods, pending_pod(3000))) == {"a": victim_names}


def test_start_times_are_compared_as_times() -> None:
    zoned = pod("zoned", on="a", status={"startTime": "2026-01-01T01:00:00+05:00"}, spec=requesting(1000))
    fraction = pod("fraction", on="a", status={"startTime": "2025-12-31T20:00:00.5Z"}, spec=requesting(1000))
    assert victims(preempt(small_node("a", cpu=2000), zoned, fraction, pending_pod())) == {"a": ["fraction"]}


def test_a_smaller_pod_is_reprieved() -> None:
    cycle = preempt(
        small_node("a", cpu=2000),
        running_pod("big", "a", 1800, priority=9),
        running_pod("small", "a", 200, priority=1),
        pending_pod(1500),
    )
    assert victims(cycle) == {"a": ["big"]}


def test_a_pod_whose_requests_exceed_int64_is_not_reprieved() -> None:
    # the sum of its requests overflows in kube-scheduler, and so does the free memory of the node with it
    memory = [
        {"name": name, "resources": {"requests": {"memory": size}}} for name, size in (("a", "8Ei"), ("b", "1Ki"))
    ]
    overflowing = running_pod("over", "a", containers=memory)
    containers = [{"name": "main", "resources": {"requests": {"memory": "1Gi"}}}]
    cycle = preempt(small_node("a"), running_pod("small", "a", 100), overflowing, pending_pod(containers=containers))
    assert victims(cycle) == {"a": ["over"]}


@pytest.mark.parametrize(
    ("spread_app", "avoided_app", "victim_names"),
    [
        ("web", "nobody", ["second", "big"]),
        ("nobody", "web", ["first", "second", "big"]),
        ("nobody", "nobody", ["big"]),
    ],
)
def test_constraints_of_the_incoming_pod_add_victims(
    spread_app: str, avoided_app: str, victim_names: list[str]
) -> None:
    web = {"app": "web"}
    cycle = preempt(
        small_node("a", cpu=3000),
        small_node("b", cpu=0),
        running_pod("first", "a", 100, priority=5, labels=web),
        running_pod("second", "a", 100, priority=1, labels=web),
        running_pod("big", "a", 2500),
        pending_pod(1500, affinity=_anti_affinity(avoided_app), topologySpreadConstraints=_spread(spread_app)),
    )
    assert victims(cycle) == {"a": victim_names}


def test_nominated_pods_keep_their_resources() -> None:
    nominated = pending_pod(name="first", nominated="a")
    pods = [running_pod("p", "a", 1000, priority=2), running_pod("q", "a", 1000, priority=1)]
    assert victims(preempt(small_node("a", cpu=2000), *pods, pending_pod())) == {"a": ["q"]}
    assert victims(preempt(small_node("a", cpu=2000), *pods, nominated, pending_pod())) == {"a": ["p", "q"]}


def test_victims_of_another_node_stay() -> None:
    rule = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "one"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    nodes = [node(name, labels={"one": "zone"}) for name in ("a", "b", "c")]
    web = [running_pod(f"on-{name}", name, labels={"app": "web"}) for name in ("a", "b")]
    cycle = preempt(*nodes, *web, pending_pod(affinity=anti))
    assert victims(cycle) == {}
    assert victims(preempt(*nodes, web[0], pending_pod(affinity=anti))) == {"a": ["on-a"]}


# --- disruption budgets

WEB = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("budgets", "expected", "count"),
    [
        ([], ["late"], 0),
        ([budget("b", 0, WEB)], ["late"], 1),
        ([budget("b", 1, WEB)], ["early"], 0),
        ([budget("b", 2, WEB)], ["late"], 0),
        ([budget("b", 2, WEB), budget("tight", 0, WEB)], ["late"], 1),
        ([budget("b", 0, WEB, disruptedPods={"late": START.format(0)})], ["late"], 0),
        ([budget("b", 1, WEB, disruptedPods={"early": START.format(0)})], ["late"], 0),
        ([budget("b", 0, {})], ["late"], 0),
        ([budget("b", 0, None)], ["late"], 0),
        ([budget("b", 0, {"matchExpressions": [{"key": "app", "operator": "In"}]})], ["late"], 0),
        ([budget("b", 0, {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]})], ["late"], 1),
        ([{**budget("b", 0, WEB), "metadata": {"name": "b", "namespace": "other"}}], ["late"], 0),
    ],
    ids=[
        "none", "all-forbidden", "one-allowed", "enough", "the-tighter-counts", "counted-already",
        "counted-already-leaves-budget", "empty-selector", "no-selector", "broken-selector", "negative-selector",
        "other-namespace",
    ],
)  # fmt: skip
def test_budgets_change_the_victims(budgets: Sequence[Manifest], expected: list[str], count: int) -> None:
    pods = [
        running_pod(name, "a", 1000, hour=hour, labels={"app": "web"}) for name, hour in (("early", 1), ("late", 2))
    ]
    cycle = preempt(small_node("a", cpu=2000), *pods, *budgets, pending_pod())
    assert victims(cycle) == {"a": expected}
    assert violations(cycle) == count


def test_a_pod_without_labels_has_no_budget() -> None:
    matches_all = budget("b", 0, {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]})
    assert violations(preempt(small_node("a"), running_pod("bare", "a", 1000), matches_all, pending_pod())) == 0


def test_victims_are_listed_by_importance() -> None:
    cycle = preempt(
        small_node("a", cpu=2000),
        running_pod("guarded", "a", 1000, priority=1, labels={"app": "web"}),
        running_pod("high", "a", 1000, priority=9),
        budget("b", 0, WEB),
        pending_pod(2000),
    )
    assert victims(cycle) == {"a": ["high", "guarded"]}


# --- the best candidate


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Victims of each node as (priority, hour); a budget protects the pods of `protected` nodes."""

    nodes: Mapping[str, Sequence[tuple[int, int | None]]]
    expected: Sequence[str]
    protected: Sequence[str] = ()


@pytest.mark.parametrize(
    "contest",
    [
        Contest(nodes={"a": [(1, 1)], "b": [(9, 1)]}, protected=["a"], expected=["b"]),
        Contest(nodes={"a": [(5, 1), (5, 1)], "b": [(6, 1)]}, expected=["a"]),
        Contest(nodes={"a": [(5, 1), (4, 1)], "b": [(5, 1), (3, 1)]}, expected=["b"]),
        Contest(nodes={"a": [(-5, 1), (-5, 1)], "b": [(-5, 1)]}, expected=["b"]),
        Contest(nodes={"a": [(5, 1), (1, 9)], "b": [(5, 2), (1, 1)]}, expected=["b"]),
        Contest(nodes={"a": [(5, 9), (5, 1)], "b": [(5, 2), (5, 2)]}, expected=["b"]),
        Contest(nodes={"a": [(5, None)], "b": [(5, 23)]}, expected=["a"]),
        Contest(nodes={"a": [(5, 1)], "b": [(5, 1)], "c": [(6, 1)]}, expected=["a", "b"]),
    ],
    ids=[
        "fewest-violations", "lowest-highest-priority", "smallest-sum", "fewest-of-negative-priority",
        "latest-start-of-the-highest", "earliest-of-equals", "not-started-is-latest", "tie",
    ],
)  # fmt: skip
def test_rules_for_the_best_candidate(contest: Contest) -> None:
    objects: list[Manifest] = []
    for name, pods in contest.nodes.items():
        share = 1000 // len(pods)
        objects.append(small_node(name, cpu=share * len(pods)))
        labels = {"app": "web"} if name in contest.protected else {}
        objects += [
            running_pod(f"{name}{index}", name, share, priority=priority, hour=hour, labels=labels)
            for index, (priority, hour) in enumerate(pods)
        ]
    cycle = preempt(*objects, budget("b", 0, WEB), pending_pod())
    assert len(post_filter(cycle).candidates) == len(contest.nodes)
    assert best(cycle) == contest.expected
    nominated = post_filter(cycle).nominated_node
    assert nominated == (post_filter(cycle).best[0] if len(contest.expected) == 1 else None)


def test_fewer_victims_win_over_an_equal_sum() -> None:
    low = -(2**31)
    pods = Snapshot.from_objects([running_pod("x", "a", priority=low + 1), running_pod("y", "a", priority=low)]).pods
    # only the lowest priority adds 0 to the sum, so only it gives different numbers of victims an equal sum
    one_victim = Candidate(node=ClusterRow(0), victims=(0,), pdb_violations=0)
    two_victims = Candidate(node=ClusterRow(1), victims=(0, 1), pdb_violations=0)
    assert best_candidates([two_victims, one_victim], ranks([two_victims, one_victim], pods)) == (one_victim,)


def test_sampled_candidates_leave_the_nominated_node_open() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config: Manifest = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}],
    }
    objects = [
        small_node("a"),
        small_node("b"),
        running_pod("x", "a", 1000, priority=1),
        running_pod("y", "b", 1000),
        pending_pod(),
    ]
    with_limit, without_limit = post_filter(preempt(*objects, config=config)), post_filter(preempt(*objects))
    assert (with_limit.candidate_limit, with_limit.best, with_limit.nominated_node) == (1, (1,), None)
    assert (without_limit.candidate_limit, without_limit.best, without_limit.nominated_node) == (2, (1,), 1)


# --- errors in the dry run


def _with_filter(answer: Callable[[str, int], Status]) -> PostFilterResult:
    """Return the preemption on nodes a and b with one victim each; `answer` is Filter by node name and pod count."""
    handle = framework([small_node("a"), small_node("b"), running_pod("x", "a", 1000), running_pod("y", "b", 1000)])

    def passes_filters(state: CycleState, incoming: Pod, nodes: NodeTable) -> FilterOutcome:
        answers = [answer(name, int(count)) for name, count in zip(nodes.names, nodes.pod_count, strict=True)]
        verdicts = Verdicts.of_rows(answers)
        plugin = np.where(verdicts.rejected, 0, -1)
        return FilterOutcome(plugins=("Fit",), verdicts=(verdicts,), codes=verdicts.codes, plugin=plugin)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handle, "passes_filters", passes_filters)
        patch.setattr(handle, "room", lambda *_: None)
        me, state = Snapshot.from_objects([pending_pod()]).pods[0], CycleState()
        handle.run_pre_filter(state, me)
        rejection = Status(code=Code.UNSCHEDULABLE, reasons=("full",))
        return DefaultPreemption(None, handle).post_filter(state, me, handle.nodes, rejection)


def test_errors_on_all_nodes_are_the_status() -> None:
    equal_errors = _with_filter(lambda name, count: error("broken"))
    assert equal_errors.status == error('preemption: running "Fit" filter plugin: broken')
    different_errors = _with_filter(lambda name, count: error(f"broken {name}"))
    assert different_errors.status.message == (
        'preemption: [running "Fit" filter plugin: broken a, running "Fit" filter plugin: broken b]'
    )


def test_an_error_on_one_node_keeps_the_others() -> None:
    full = Status(code=Code.UNSCHEDULABLE, reasons=("full",))
    result = _with_filter(lambda name, count: error("broken") if name == "a" else full if count else SUCCESS)
    assert result.status.is_success
    assert [candidate.node for candidate in result.candidates] == [1]
    assert result.dry_run is not None
    assert result.dry_run.codes.tolist() == [Code.ERROR, Code.SUCCESS]


def test_a_candidate_without_victims_is_an_error() -> None:
    result = _with_filter(lambda name, count: SUCCESS)
    assert result.status.code is Code.ERROR
    assert 'expected at least one victim pod on node "a"' in result.status.message


def test_an_invalid_start_time_names_its_pod() -> None:
    invalid_pod = pod("odd", on="a", status={"startTime": "yesterday"}, spec=requesting(1000))
    with pytest.raises(InputError, match=r'^Pod default/odd: status\.startTime: "yesterday" is not a time'):
        preempt(small_node("a"), invalid_pod, pending_pod())


# --- laws

PODS = st.lists(
    st.fixed_dictionaries(
        {
            "on": st.sampled_from("abc"),
            "cpu": st.sampled_from([100, 300, 700, 1200]),
            "priority": st.sampled_from([0, 5, 50, 99]),
            "app": st.sampled_from(["web", "db", "me"]),
            "hates_me": st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)


def _anti_affinity(app: str) -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(app: str) -> list[Manifest]:
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


@given(
    pods=PODS,
    cpu=st.sampled_from([1500, 2500]),
    avoided_app=st.sampled_from(["web", "db", "nobody"]),
    spread_app=st.sampled_from(["me", "web", "nobody"]),
    nominated=st.sampled_from([None, "a", "b"]),
    allowed=st.integers(min_value=0, max_value=2),
)
def test_candidates_equal_the_reference_of_each_node(
    pods: list[dict[str, object]], cpu: int, avoided_app: str, spread_app: str, nominated: str | None, allowed: int
) -> None:
    """The reference evaluates one node at a time, in snapshots without the victims."""
    objects = [small_node(name, cpu=3000) for name in "abc"]
    for number, pod_facts in enumerate(pods):
        objects.append(
            running_pod(
                f"p{number:02d}",
                str(pod_facts["on"]),
                int(str(pod_facts["cpu"])),
                priority=int(str(pod_facts["priority"])),
                hour=number,
                labels={"app": str(pod_facts["app"])},
                affinity=_anti_affinity("me") if pod_facts["hates_me"] else {},
            )
        )
    if nominated:
        objects.append(pending_pod(800, name="first", priority=60, nominated=nominated, labels={"app": "me"}))
    objects.append(budget("b", allowed, WEB))
    affinity, constraints = _anti_affinity(avoided_app), _spread(spread_app)
    me = pending_pod(cpu, priority=50, labels={"app": "me"}, affinity=affinity, topologySpreadConstraints=constraints)
    cycle = preempt(*objects, me)
    if cycle.post_filter is None:
        return
    outcome = {candidate.node: candidate for candidate in cycle.post_filter.candidates}
    assert cycle.nodes is not None
    assert cycle.filter is not None
    for row in each_cluster_row(cycle.all_nodes.rows):
        expected = None
        if cycle.filter.codes[row] == Code.UNSCHEDULABLE:
            expected = _reference_candidate(cycle, row, allowed)
        assert outcome.get(row) == expected


def _reference_candidate(cycle: Cycle, row: ClusterRow, allowed: int) -> Candidate | None:
    """Return the candidate of one node by the documented rule, or None."""
    table = cycle.snapshot.pods

    def fits(removed: set[int]) -> bool:
        return _status_without(cycle.snapshot, cycle, row, removed).is_success

    lower = [int(p) for p in table.on_node(row) if table.priorities[p] < cycle.pod.priority]
    lower.sort(key=lambda p: (-table.priorities[p], table.start_times[p]))
    if not lower or not fits(set(lower)):
        return None
    protected = [p for p in lower if table.labels[p]["app"] == "web"][allowed:]
    removed = set(lower)
    for p in [*protected, *(p for p in lower if p not in protected)]:
        if fits(removed - {p}):
            removed.remove(p)
    return Candidate(
        node=row, victims=tuple(p for p in lower if p in removed), pdb_violations=sum(p in removed for p in protected)
    )


def _status_without(snapshot: Snapshot, cycle: Cycle, row: ClusterRow, removed: set[int]) -> Status:
    release = resolve()
    config = load_profiles(None, release)
    handle = Framework(cycle.profile, config, snapshot.without_pods(removed) if removed else snapshot, release)
    state = CycleState()
    handle.run_pre_filter(state, cycle.pod)
    return handle.passes_filters(state, cycle.pod, handle.nodes.at(cluster_rows([row]))).status(TableRow(0))


@pytest.mark.parametrize(("started", "victim"), [((None, None), "p1"), (("2026-01-01T00:00:00Z", None), "p2")])
def test_pods_without_a_start_time_rank_by_their_order(started: tuple[str | None, ...], victim: str) -> None:
    """kube-scheduler compares the times at which it reads the pods."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    running = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": "n", "priority": 0, "containers": containers},
            "status": {"phase": "Running"} | ({"startTime": start} if start else {}),
        }
        for name, start in zip(("p1", "p2"), started, strict=True)
    ]
    single_node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}},
    }
    target = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"priority": 10, "containers": containers},
    }
    cycle = kschedx.explain(kschedx.Snapshot.from_objects([single_node, *running, target]), "default/x").cycle
    assert cycle.post_filter is not None
    (candidate,) = cycle.post_filter.candidates
    assert [cycle.snapshot.pods[row].metadata.name for row in candidate.victims] == [victim]

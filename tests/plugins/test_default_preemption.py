"""DefaultPreemption: who may preempt, who would have to go, and where it hurts least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
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


def asking(cpu: int) -> Manifest:
    """Spec fields of a pod that asks for this many milli-CPUs."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}]}


def small(name: str, cpu: int = 1000, *, unschedulable: bool = False) -> Manifest:
    labels = {"zone": name, "kubernetes.io/hostname": name}
    return node(
        name, labels=labels, allocatable={"cpu": f"{cpu}m", "memory": "8Gi", "pods": "20"}, unschedulable=unschedulable
    )


def running(
    name: str,
    on: str,
    cpu: int = 0,
    *,
    priority: int = 0,
    hour: int | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Manifest:
    """A pod on a node that started at an hour of one day, or has not started."""
    status = {"phase": "Running"} | ({} if hour is None else {"startTime": START.format(hour)})
    return pod(name, on=on, status=status, labels=labels, spec={"priority": priority, **asking(cpu), **spec})


def waiting(
    cpu: int = 1000,
    *,
    name: str = "me",
    priority: int = 100,
    labels: Mapping[str, str] | None = None,
    nominated: str = "",
    **spec: object,
) -> Manifest:
    status = {"nominatedNodeName": nominated}
    return pod(name, status=status, labels=labels, spec={"priority": priority, **asking(cpu), **spec})


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
    """Candidate node to the names of its victims."""
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


# --- who may preempt


def test_never() -> None:
    cycle = preempt(small("a"), running("low", "a", 1000), waiting(preemptionPolicy="Never"))
    assert cycle.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert post_filter(cycle).dry_run is None


@pytest.mark.parametrize(
    ("condition", "deleted", "priority", "waits"),
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
def test_waits_for_victims_that_terminate_on_the_nominated_node(
    condition: Mapping[str, str], deleted: bool, priority: int, waits: bool
) -> None:
    leaving = pod(
        "leaving",
        on="a",
        metadata={"deletionTimestamp": START.format(9)} if deleted else {},
        status={"phase": "Running", "conditions": [condition]},
        spec={"priority": priority, **asking(500)},
    )
    me = waiting(nominated="a")
    cycle = preempt(small("a"), small("b"), leaving, running("other", "b", 1000), me)
    if waits:
        text = "preemption: not eligible due to a terminating pod on the nominated node."
        assert post_filter(cycle).status.reasons == ("no new claims to deallocate", text)
    else:
        assert "b" in victims(cycle)


def test_a_nominated_node_that_became_unresolvable_is_not_waited_for() -> None:
    leaving = pod(
        "leaving",
        on="a",
        metadata={"deletionTimestamp": START.format(9)},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    )
    nodes = [small("a", unschedulable=True), small("b")]
    cycle = preempt(*nodes, leaving, running("other", "b", 1000), waiting(nominated="a"))
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
def test_pods_of_a_group(gates: list[str], group: list[Manifest], expected: str | None) -> None:
    me = waiting(schedulingGroup={"podGroupName": "gang"})
    enabled = dict.fromkeys([*WORKLOAD_GATES, *gates], True)
    result = post_filter(preempt(small("a"), running("low", "a", 1000), me, *group, gates=enabled))
    if expected is None:
        assert result.status.is_success
    else:
        assert result.status.reasons[-1] == f"preemption: {expected}"
        assert result.nominated_node is None


def test_pre_enqueue_holds_nobody_back() -> None:
    assert all(status.is_success for status in preempt(small("a"), waiting()).pre_enqueue)


# --- which nodes are tried


def test_every_node_says_why_it_is_no_candidate() -> None:
    cycle = preempt(
        small("cordoned", unschedulable=True),
        small("tiny", cpu=500),
        small("important"),
        small("mixed"),
        small("candidate"),
        running("high", "important", 1000, priority=100),
        running("higher", "mixed", 500, priority=101),
        running("lower", "mixed", 500),
        running("victim", "candidate", 1000),
        waiting(),
    )
    dry_run = post_filter(cycle).dry_run
    assert dry_run is not None
    told = {name: dry_run.status(TableRow(row)).message for row, name in enumerate(cycle.snapshot.cluster.names)}
    assert told == {
        "cordoned": HELPLESS,
        "tiny": HELPLESS,
        "important": NO_VICTIMS,
        "mixed": "Insufficient cpu",
        "candidate": "",
    }
    assert [finding.reason for finding in dry_run.status(TableRow(3)).findings] == ["insufficient-resource"]
    assert victims(cycle) == {"candidate": ["victim"]}
    assert cycle.message.endswith("1 node(s) were unschedulable, 4 Insufficient cpu.")  # nothing about preemption


def test_the_message_counts_all_nodes() -> None:
    cycle = preempt(
        small("cordoned", unschedulable=True),
        small("important"),
        small("mixed"),
        running("high", "important", 1000, priority=100),
        running("higher", "mixed", 500, priority=101),
        running("lower", "mixed", 500),
        waiting(),
    )
    assert post_filter(cycle).status.reasons[-1] == (
        f"preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}, 1 {HELPLESS}."
    )


def test_nodes_that_pre_filter_left_out_are_not_tried() -> None:
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
        small("a"), small("b"), running("1", "a", 1000), running("2", "b", 1000), waiting(affinity=affinity)
    )
    assert victims(cycle) == {"b": ["2"]}


def test_a_pre_filter_rejection_is_every_nodes_status() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "ghost"}}
    cycle = preempt(small("a"), running("1", "a", 1000), waiting(volumes=[claim]))
    assert cycle.message == ('0/1 nodes are available: persistentvolumeclaim "ghost" not found. not found')


# --- the victims


def test_the_least_important_go() -> None:
    cycle = preempt(
        small("a", cpu=3000),
        running("low-late", "a", 1000, priority=1, hour=2),
        running("low-early", "a", 1000, priority=1, hour=1),
        running("high", "a", 1000, priority=50, hour=3),
        waiting(2000),
    )
    assert victims(cycle) == {"a": ["low-early", "low-late"]}


def test_of_equal_priority_the_latest_goes_and_one_that_has_not_started_is_later_than_all() -> None:
    pods = [running("2h", "a", 1000, hour=2), running("1h", "a", 1000, hour=1)]
    assert victims(preempt(small("a", cpu=2000), *pods, waiting())) == {"a": ["2h"]}
    assert victims(preempt(small("a", cpu=3000), running("new", "a", 1000), *pods, waiting())) == {"a": ["new"]}


@pytest.mark.parametrize(
    ("count", "hour", "gone"),
    [
        (14, None, ["p4", "p8", "p6"]),
        (30, None, ["p2", "p14", "p8"]),
        (14, 1, ["p8", "p4", "p2"]),
        (30, 1, ["p4", "p28", "p2"]),
    ],
)
def test_of_many_equal_pods_those_go_that_kube_schedulers_sort_leaves_last(
    count: int, hour: int | None, gone: list[str]
) -> None:
    """kube-scheduler 1.36.2's own victims. Its sort is no insertion sort from 13 pods on."""
    offered = node("a", allocatable={"cpu": f"{count}", "memory": "8Gi", "pods": "200"})
    pods = [running(f"p{number}", "a", 1000, priority=number % 2, hour=hour) for number in range(count)]
    assert victims(preempt(offered, *pods, waiting(3000))) == {"a": gone}


def test_start_times_are_compared_as_times() -> None:
    zoned = pod("zoned", on="a", status={"startTime": "2026-01-01T01:00:00+05:00"}, spec=asking(1000))
    fraction = pod("fraction", on="a", status={"startTime": "2025-12-31T20:00:00.5Z"}, spec=asking(1000))
    assert victims(preempt(small("a", cpu=2000), zoned, fraction, waiting())) == {"a": ["fraction"]}


def test_a_smaller_pod_stays_where_a_more_important_one_had_to_go() -> None:
    cycle = preempt(
        small("a", cpu=2000),
        running("big", "a", 1800, priority=9),
        running("small", "a", 200, priority=1),
        waiting(1500),
    )
    assert victims(cycle) == {"a": ["big"]}


def test_a_pod_whose_requests_exceed_int64_does_not_make_room() -> None:
    # kube-scheduler's sum of its requests is negative, and so is what the node has left with it
    memory = [
        {"name": name, "resources": {"requests": {"memory": size}}} for name, size in (("a", "8Ei"), ("b", "1Ki"))
    ]
    over = running("over", "a", containers=memory)
    asks = [{"name": "main", "resources": {"requests": {"memory": "1Gi"}}}]
    cycle = preempt(small("a"), running("small", "a", 100), over, waiting(containers=asks))
    assert victims(cycle) == {"a": ["over"]}


@pytest.mark.parametrize(
    ("spreads", "avoids", "gone"),
    [
        ("web", "nobody", ["second", "big"]),
        ("nobody", "web", ["first", "second", "big"]),
        ("nobody", "nobody", ["big"]),
    ],
)
def test_a_small_pod_goes_if_the_incoming_pods_rules_count_it(spreads: str, avoids: str, gone: list[str]) -> None:
    web = {"app": "web"}
    cycle = preempt(
        small("a", cpu=3000),
        small("b", cpu=0),
        running("first", "a", 100, priority=5, labels=web),
        running("second", "a", 100, priority=1, labels=web),
        running("big", "a", 2500),
        waiting(1500, affinity=_anti_affinity(avoids), topologySpreadConstraints=_spread(spreads)),
    )
    assert victims(cycle) == {"a": gone}


def test_pods_nominated_for_the_node_keep_their_room() -> None:
    nominated = waiting(name="first", nominated="a")
    pods = [running("p", "a", 1000, priority=2), running("q", "a", 1000, priority=1)]
    assert victims(preempt(small("a", cpu=2000), *pods, waiting())) == {"a": ["q"]}
    assert victims(preempt(small("a", cpu=2000), *pods, nominated, waiting())) == {"a": ["p", "q"]}


def test_another_nodes_victims_stay_for_this_node() -> None:
    rule = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "one"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    nodes = [node(name, labels={"one": "zone"}) for name in ("a", "b", "c")]
    web = [running(f"on-{name}", name, labels={"app": "web"}) for name in ("a", "b")]
    cycle = preempt(*nodes, *web, waiting(affinity=anti))
    assert victims(cycle) == {}
    assert victims(preempt(*nodes, web[0], waiting(affinity=anti))) == {"a": ["on-a"]}


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
def test_budgets(budgets: Sequence[Manifest], expected: list[str], count: int) -> None:
    pods = [running(name, "a", 1000, hour=hour, labels={"app": "web"}) for name, hour in (("early", 1), ("late", 2))]
    cycle = preempt(small("a", cpu=2000), *pods, *budgets, waiting())
    assert victims(cycle) == {"a": expected}
    assert violations(cycle) == count


def test_a_pod_without_labels_belongs_to_no_budget() -> None:
    everything = budget("b", 0, {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]})
    assert violations(preempt(small("a"), running("bare", "a", 1000), everything, waiting())) == 0


def test_victims_are_listed_by_importance_whether_or_not_a_budget_is_violated() -> None:
    cycle = preempt(
        small("a", cpu=2000),
        running("guarded", "a", 1000, priority=1, labels={"app": "web"}),
        running("high", "a", 1000, priority=9),
        budget("b", 0, WEB),
        waiting(2000),
    )
    assert victims(cycle) == {"a": ["high", "guarded"]}


# --- the best candidate


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Victims as (priority, hour) per node; the pods of `guarded` nodes are protected."""

    nodes: Mapping[str, Sequence[tuple[int, int | None]]]
    expected: Sequence[str]
    guarded: Sequence[str] = ()


@pytest.mark.parametrize(
    "contest",
    [
        Contest(nodes={"a": [(1, 1)], "b": [(9, 1)]}, guarded=["a"], expected=["b"]),
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
def test_rules(contest: Contest) -> None:
    objects: list[Manifest] = []
    for name, pods in contest.nodes.items():
        share = 1000 // len(pods)
        objects.append(small(name, cpu=share * len(pods)))
        labels = {"app": "web"} if name in contest.guarded else {}
        objects += [
            running(f"{name}{index}", name, share, priority=priority, hour=hour, labels=labels)
            for index, (priority, hour) in enumerate(pods)
        ]
    cycle = preempt(*objects, budget("b", 0, WEB), waiting())
    assert len(post_filter(cycle).candidates) == len(contest.nodes)
    assert best(cycle) == contest.expected
    nominated = post_filter(cycle).nominated_node
    assert nominated == (post_filter(cycle).best[0] if len(contest.expected) == 1 else None)


def test_fewer_victims_win_over_an_equal_sum() -> None:
    low = -(2**31)
    pods = Snapshot.from_objects([running("x", "a", priority=low + 1), running("y", "a", priority=low)]).pods
    # the lowest priority adds nothing to the sum: only with it do different numbers of victims sum up to the same
    item = Candidate(node=ClusterRow(0), victims=(0,), pdb_violations=0)
    two = Candidate(node=ClusterRow(1), victims=(0, 1), pdb_violations=0)
    assert best_candidates([two, item], ranks([two, item], pods)) == (item,)


def test_nobody_is_nominated_where_the_sampling_of_candidates_decides() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config: Manifest = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}],
    }
    objects = [small("a"), small("b"), running("x", "a", 1000, priority=1), running("y", "b", 1000), waiting()]
    sampled, whole = post_filter(preempt(*objects, config=config)), post_filter(preempt(*objects))
    assert (sampled.candidate_limit, sampled.best, sampled.nominated_node) == (1, (1,), None)
    assert (whole.candidate_limit, whole.best, whole.nominated_node) == (2, (1,), 1)


# --- what goes wrong in the dry run


def _with_filter(answer: Callable[[str, int], Status]) -> PostFilterResult:
    """Preemption on nodes a and b, with one victim each, where Filter answers by node name and number of pods."""
    handle = framework([small("a"), small("b"), running("x", "a", 1000), running("y", "b", 1000)])

    def passes_filters(state: CycleState, incoming: Pod, nodes: NodeTable) -> FilterOutcome:
        answers = [answer(name, int(count)) for name, count in zip(nodes.names, nodes.pod_count, strict=True)]
        verdicts = Verdicts.of_rows(answers)
        plugin = np.where(verdicts.rejected, 0, -1)
        return FilterOutcome(plugins=("Fit",), verdicts=(verdicts,), codes=verdicts.codes, plugin=plugin)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handle, "passes_filters", passes_filters)
        patch.setattr(handle, "room", lambda *_: None)
        me, state = Snapshot.from_objects([waiting()]).pods[0], CycleState()
        handle.run_pre_filter(state, me)
        rejection = Status(code=Code.UNSCHEDULABLE, reasons=("full",))
        return DefaultPreemption(None, handle).post_filter(state, me, handle.nodes, rejection)


def test_errors_end_it_where_no_node_is_left() -> None:
    same = _with_filter(lambda name, count: error("broken"))
    assert same.status == error('preemption: running "Fit" filter plugin: broken')
    differing = _with_filter(lambda name, count: error(f"broken {name}"))
    assert differing.status.message == (
        'preemption: [running "Fit" filter plugin: broken a, running "Fit" filter plugin: broken b]'
    )


def test_an_error_on_one_node_leaves_the_others() -> None:
    full = Status(code=Code.UNSCHEDULABLE, reasons=("full",))
    result = _with_filter(lambda name, count: error("broken") if name == "a" else full if count else SUCCESS)
    assert result.status.is_success
    assert [candidate.node for candidate in result.candidates] == [1]
    assert result.dry_run is not None
    assert result.dry_run.codes.tolist() == [Code.ERROR, Code.SUCCESS]


def test_a_node_where_nobody_has_to_go_is_an_error() -> None:
    result = _with_filter(lambda name, count: SUCCESS)
    assert result.status.code is Code.ERROR
    assert 'expected at least one victim pod on node "a"' in result.status.message


def test_a_start_time_that_is_none_names_its_pod() -> None:
    odd = pod("odd", on="a", status={"startTime": "yesterday"}, spec=asking(1000))
    with pytest.raises(InputError, match=r'^Pod default/odd: status\.startTime: "yesterday" is not a time'):
        preempt(small("a"), odd, waiting())


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


@settings(max_examples=25, deadline=None)
@given(
    pods=PODS,
    cpu=st.sampled_from([1500, 2500]),
    avoids=st.sampled_from(["web", "db", "nobody"]),
    spreads=st.sampled_from(["me", "web", "nobody"]),
    nominated=st.sampled_from([None, "a", "b"]),
    allowed=st.integers(min_value=0, max_value=2),
)
def test_all_nodes_at_once_say_what_each_says_alone(
    pods: list[dict[str, object]], cpu: int, avoids: str, spreads: str, nominated: str | None, allowed: int
) -> None:
    """The reference takes one node at a time, in snapshots from which the victims are really gone."""
    objects = [small(name, cpu=3000) for name in "abc"]
    for number, facts in enumerate(pods):
        objects.append(
            running(
                f"p{number:02d}",
                str(facts["on"]),
                int(str(facts["cpu"])),
                priority=int(str(facts["priority"])),
                hour=number,
                labels={"app": str(facts["app"])},
                affinity=_anti_affinity("me") if facts["hates_me"] else {},
            )
        )
    if nominated:
        objects.append(waiting(800, name="first", priority=60, nominated=nominated, labels={"app": "me"}))
    objects.append(budget("b", allowed, WEB))
    affinity, constraints = _anti_affinity(avoids), _spread(spreads)
    me = waiting(cpu, priority=50, labels={"app": "me"}, affinity=affinity, topologySpreadConstraints=constraints)
    cycle = preempt(*objects, me)
    if cycle.post_filter is None:
        return
    outcome = {candidate.node: candidate for candidate in cycle.post_filter.candidates}
    assert cycle.nodes is not None
    assert cycle.filter is not None
    for row in each_cluster_row(cycle.all_nodes.rows):
        expected = None
        if cycle.filter.codes[row] == Code.UNSCHEDULABLE:
            expected = _alone(cycle, row, allowed)
        assert outcome.get(row) == expected


def _alone(cycle: Cycle, row: ClusterRow, allowed: int) -> Candidate | None:
    """The candidate that a node is, by the rule as a person would follow it."""
    table = cycle.snapshot.pods

    def fits(gone: set[int]) -> bool:
        return _status_without(cycle.snapshot, cycle, row, gone).is_success

    lower = [int(p) for p in table.on_node(row) if table.priorities[p] < cycle.pod.priority]
    lower.sort(key=lambda p: (-table.priorities[p], table.start_times[p]))
    if not lower or not fits(set(lower)):
        return None
    guarded = [p for p in lower if table.labels[p]["app"] == "web"][allowed:]
    gone = set(lower)
    for p in [*guarded, *(p for p in lower if p not in guarded)]:
        if fits(gone - {p}):
            gone.remove(p)
    return Candidate(
        node=row, victims=tuple(p for p in lower if p in gone), pdb_violations=sum(p in gone for p in guarded)
    )


def _status_without(snapshot: Snapshot, cycle: Cycle, row: ClusterRow, gone: set[int]) -> Status:
    release = resolve()
    config = load_profiles(None, release)
    alone = Framework(cycle.profile, config, snapshot.without_pods(gone) if gone else snapshot, release)
    state = CycleState()
    alone.run_pre_filter(state, cycle.pod)
    return alone.passes_filters(state, cycle.pod, alone.nodes.at(cluster_rows([row]))).status(TableRow(0))


@pytest.mark.parametrize(("started", "victim"), [((None, None), "p1"), (("2026-01-01T00:00:00Z", None), "p2")])
def test_of_pods_that_have_not_started_the_last_one_is_the_most_important(
    started: tuple[str | None, ...], victim: str
) -> None:
    """kube-scheduler compares the moments at which it looks at them."""
    asking = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    running = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": "n", "priority": 0, "containers": asking},
            "status": {"phase": "Running"} | ({"startTime": start} if start else {}),
        }
        for name, start in zip(("p1", "p2"), started, strict=True)
    ]
    machine = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}},
    }
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"priority": 10, "containers": asking},
    }
    cycle = kschedx.explain(kschedx.Snapshot.from_objects([machine, *running, about]), "default/x").cycle
    assert cycle.post_filter is not None
    (candidate,) = cycle.post_filter.candidates
    assert [cycle.snapshot.pods[row].metadata.name for row in candidate.victims] == [victim]

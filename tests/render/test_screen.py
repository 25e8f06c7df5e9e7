"""The screens: at most as wide as the terminal, and the first one complete in at most 40 lines."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedx import explain as explain_pod
from kschedx.errors import InputError
from kschedx.inquiry.explanation import Explanation
from kschedx.render.layout import MOST_LINES
from kschedx.render.scores import _initials
from kschedx.render.screen import why_lines
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod
from tests.golden.stories import OF_PODS, Story, explained
from tests.storage_builders import claim, storage_class, using


def of_objects(*objects: Manifest, name: str = "default/new") -> Explanation:
    return explain_pod(Snapshot.from_objects(list(objects)), name)


def plain(explanation: Explanation, width: int = 100, *, wide: bool = False) -> list[str]:
    return [line.plain for line in why_lines(explanation, width=width, wide=wide)]


def asking(cpu: str = "1", **spec: object) -> Manifest:
    result = pod("new")
    result["spec"] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return result


@pytest.mark.sample(4)
@pytest.mark.parametrize("story", OF_PODS, ids=lambda story: story.name)
def test_stories_fit_their_screens(story: Story) -> None:
    explanation = explained(story)
    for width in (80, 100):
        first = why_lines(explanation, width=width)
        assert len(first) <= MOST_LINES
        for lines in (first, why_lines(explanation, width=width, all_nodes=True)):
            assert all(line.cell_len <= width for line in lines)
    assert len(why_lines(explanation, width=80, wide=True)) > len(why_lines(explanation, width=80)) // 2
    for name in explanation.cycle.all_nodes.names:
        assert why_lines(explanation, width=80, nodes=[name])[0].plain.startswith((f"✓ {name}:", f"✗ {name}:"))


def test_the_event_is_quoted_once_and_whole() -> None:
    explanation = of_objects(node("n", taints=["a=b:NoSchedule"]), asking())
    screen = " ".join(" ".join(plain(explanation, 80)).split())
    assert screen.count(explanation.message) == 1


def test_the_first_screen_has_both_sides_of_the_inequality() -> None:
    full = pod("full", on="n", containers=[{"name": "c", "resources": {"requests": {"cpu": "3500m"}}}])
    screen = plain(of_objects(node("n", allocatable={"cpu": "4", "pods": "9"}), full, asking("2")))
    assert "n ✗ NodeResourcesFit: insufficient cpu, short by 1500m" in screen
    assert "  requests  2000m = main" in screen
    assert "  free       500m = 4000m allocatable - 3500m requested by 1 pod" in screen
    assert "  used by   3500m default/full (priority 0)" in screen


def test_groups_count_their_nodes() -> None:
    screen = plain(of_objects(*(node(f"n{i}", taints=["a=b:NoSchedule"]) for i in range(1200)), asking()))
    assert any(line.startswith("n0 ✗ TaintToleration") and line.endswith("(1,200 nodes)") for line in screen)


@example([("500m", [], "[" * 7 + "\x1b" * 4 + "\u202e" * 6)], 60, 0)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["500m", "1", "8"]),
            st.lists(st.sampled_from(["a=b:NoSchedule", "c:NoExecute", "d:PreferNoSchedule"]), max_size=2, unique=True),
            st.text("x名[]\x1b\u202e", min_size=1, max_size=250),
        ),
        max_size=30,
    ),
    st.integers(60, 120),
    st.integers(0, 20),
)
def test_any_cluster_fits_the_first_screen(nodes: list[tuple[str, list[str], str]], width: int, priority: int) -> None:
    objects = [
        node(f"n{i}{name}", allocatable={"cpu": cpu, "pods": "9"}, taints=taints)
        for i, (cpu, taints, name) in enumerate(nodes)
    ]
    busy = [
        pod(f"p{i}", on=f"n{i}{name}", containers=[{"name": "c", "resources": {"requests": {"cpu": "500m"}}}])
        for i, (_, _, name) in enumerate(nodes)
    ]
    lines = why_lines(of_objects(*objects, *busy, asking("2", priority=priority)), width=width)
    assert len(lines) <= MOST_LINES
    assert all(line.cell_len <= width for line in lines)
    assert not any(mark in line.plain for line in lines for mark in "\x1b\u202e")


def test_the_chosen_node_has_its_margin() -> None:
    busy = pod("busy", on="b", containers=[{"name": "c", "resources": {"requests": {"cpu": "32"}}}])
    screen = plain(of_objects(node("a"), node("b"), busy, asking()))
    assert screen[0] == "✓ default/new would be assigned to a"
    assert "leads b by" in screen[1]


def test_a_tie_has_no_winner() -> None:
    screen = plain(of_objects(node("a"), node("b"), asking()))
    assert screen[0] == "✓ default/new would be assigned to one of 2 nodes with equal scores, at random: a, b"


def test_a_pod_whose_volume_is_being_provisioned_has_its_node() -> None:
    selected = {"volume.kubernetes.io/selected-node": "a"}
    data = claim("data", annotations=selected)
    waits = using("new", "data", status={"phase": "Pending", "nominatedNodeName": "a"})
    screen = plain(of_objects(node("a"), node("b"), storage_class(provisioner="csi.example.com"), data, waits))
    assert screen[0] == "✓ default/new is assigned to a as soon as claim default/data has its volume"


def test_a_gated_pod_has_its_answer_without_gates() -> None:
    gated = plain(of_objects(node("a"), asking(schedulingGates=[{"name": "wait"}])))
    start = "‖ default/new is gated by scheduling gate wait; without the gate it would be assigned to"
    assert gated[0].startswith(start)


def test_preemption_names_its_victims() -> None:
    cheap = pod("cheap", on="n", containers=[{"name": "c", "resources": {"requests": {"cpu": "4"}}}])
    screen = plain(of_objects(node("n", allocatable={"cpu": "4", "pods": "9"}), cheap, asking("2", priority=9)))
    assert "preemption makes room on n" in screen[0]
    assert any(line.endswith("evicts    default/cheap (priority 0)") for line in screen)


def test_a_host_name_that_is_not_the_node_name_is_shown_in_full() -> None:
    nodes = [node(f"ip-{at}.ec2.internal", labels={"kubernetes.io/hostname": f"ip-{at}"}) for at in (1, 2)]
    lines = plain(of_objects(*nodes, asking(nodeSelector={"kubernetes.io/hostname": "ip-1.ec2.internal"})), 160)
    fix = "select kubernetes.io/hostname=ip-1 instead of kubernetes.io/hostname=ip-1.ec2.internal"
    assert any(fix in line for line in lines)


def test_an_empty_cluster() -> None:
    assert plain(of_objects(asking()))[0] == "✗ default/new is unschedulable: the cluster has no nodes"


def test_the_verdict_table_shows_every_plugin_that_rejects() -> None:
    tainted = node("n", taints=["a=b:NoSchedule"], allocatable={"cpu": "1", "pods": "9"})
    screen = plain(of_objects(tainted, asking("2")), wide=True)
    header = next(line.split() for line in screen if line.split()[:1] == ["node"])
    row = next(line.split() for line in screen if line.split()[:1] == ["n"] and line.split()[-1] == "TaintToleration")
    marks = dict(zip(header, row, strict=True))
    assert (marks["TT"], marks["NRF"], marks["NU"]) == ("✗", "✗", "✓")


def test_details_of_a_node_have_all_verdicts_and_facts() -> None:
    tainted = node("n", taints=["a=b:NoSchedule"], allocatable={"cpu": "1", "pods": "9"})
    explanation = of_objects(tainted, node("other"), asking("2"))
    texts = [line.plain for line in why_lines(explanation, width=100, nodes=["n"])]
    assert texts[0] == "✗ n: default/new does not fit: 2 plugins reject it"
    assert "  ✗ TaintToleration (the verdict): untolerated taint a=b:NoSchedule" in texts
    assert "  ✗ NodeResourcesFit: insufficient cpu, short by 1 CPU, more than the node's allocatable" in texts


def test_an_unknown_node_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match='did you mean "node-1"'):
        why_lines(of_objects(node("node-1"), asking()), width=100, nodes=["node-l"])


def test_a_node_that_shares_the_highest_total() -> None:
    explanation = of_objects(*(node(name) for name in "abc"), asking())
    first, *others = [line.plain for line in why_lines(explanation, width=200, nodes=["b"])]
    assert first.endswith(", the highest, as 2 other nodes: one is picked at random")
    assert not any("the winner is" in line for line in others)


def test_a_pod_that_pre_enqueue_rejects_is_not_named_gated() -> None:
    claiming = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
    explanation = explain_pod(Snapshot.from_objects([node("a"), claiming]), "default/me")
    lines = [line.plain for line in why_lines(explanation, width=100)]
    assert lines[0].startswith("‖ default/me is not in the queue, held back by DynamicResources")
    assert "gate" not in " ".join(lines)
    # kube-scheduler writes no event about such a pod; the cause and its block name the claim, PreFilter adds nothing
    assert not [line for line in lines if "event" in line]
    assert len([line for line in lines if "no resource claim has been created" in line]) == 2


def test_plugins_with_the_same_capitals_have_different_titles() -> None:
    names = ["TaintToleration", "TT", "TopologyTable", "To"]
    assert _initials(names) == {"TaintToleration": "TT", "TT": "TT2", "TopologyTable": "To", "To": "T"}


def test_excluded_nodes_are_counted_among_hidden_groups() -> None:
    nodes = [node(f"n{number}", taints=[f"k{number}=v:NoSchedule"]) for number in range(9)]
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{number}"]}]} for number in range(8)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    screen = plain(of_objects(*nodes, node("m"), asking(affinity={"nodeAffinity": required})))
    assert sum("✗ TaintToleration" in line for line in screen) == 8
    assert "1 more group of 2 nodes: NodeAffinity" in screen

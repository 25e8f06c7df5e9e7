"""InterPodAffinity: verdicts, scores, and findings of required and preferred terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.findings import ExistingAntiAffinityConflict, PodAffinityUnsatisfied, PodAntiAffinityConflict
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import Pod, PodAffinityTerm
from kschedx.plugins.inter_pod_affinity import InterPodAffinity
from kschedx.plugins.inter_pod_affinity.plugin import FILTER
from kschedx.snapshot.columns import ClusterRow, ClusterRows, TableRow, cluster_rows
from kschedx.snapshot.nodes import PodRows
from tests.builders import Manifest, evaluate, framework, node, only, pod

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
OK = ""


def four_nodes() -> list[Manifest]:
    """Return two nodes in zone a, one in zone b, and one without a zone."""
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    zoned = [node(name, labels={HOST: name, ZONE: zone}) for name, zone in zones.items()]
    return [*zoned, node("lone", labels={HOST: "lone"})]


def namespace(name: str, **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def term(key: str, app: str | None = "web", **fields: object) -> Manifest:
    """Return a term that selects app=web, or every pod if `app` is None."""
    selector: Manifest = {} if app is None else {"matchLabels": {"app": app}}
    return {"topologyKey": key, "labelSelector": selector, **fields}


def weighted_term(weight: int, manifest: Manifest) -> Manifest:
    return {"weight": weight, "podAffinityTerm": manifest}


def rules(
    *,
    affinity: Iterable[Manifest] = (),
    anti_affinity: Iterable[Manifest] = (),
    preferred_affinity: Iterable[Manifest] = (),
    preferred_anti_affinity: Iterable[Manifest] = (),
) -> Manifest:
    """Return spec.affinity with required and preferred podAffinity and podAntiAffinity."""
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    return {
        "podAffinity": {required: list(affinity), preferred: list(preferred_affinity)},
        "podAntiAffinity": {required: list(anti_affinity), preferred: list(preferred_anti_affinity)},
    }


def schedule(*objects: Manifest, args: Mapping[str, object] | None = None, key: str = "default/new") -> Cycle:
    return evaluate([*four_nodes(), *objects], key, only("InterPodAffinity", args))


def reasons(cycle: Cycle) -> dict[str, str]:
    """Return the reason of each node, empty if the node passes."""
    assert cycle.nodes is not None
    assert cycle.filter is not None
    return {name: cycle.filter.status(TableRow(row)).message for row, name in enumerate(cycle.nodes.names)}


def raw_scores(cycle: Cycle) -> dict[str, int] | None:
    if cycle.scores is None or "InterPodAffinity" not in cycle.scores.raw:
        return None
    return dict(zip(cycle.scores.nodes.names, cycle.scores.raw["InterPodAffinity"].tolist(), strict=True))


# --- Filter


@pytest.mark.parametrize(
    ("running", "affinity", "expected"),
    [
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1")],
            rules(affinity=[term(ZONE)]),
            {"a1": OK, "a2": OK, "b1": AFFINITY, "lone": AFFINITY},
            id="affinity allows the domain of the pod; a node without the label has no domain",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("db", labels={"app": "db"}, on="a1")],
            rules(affinity=[term(ZONE), term(HOST, "db")]),
            {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "lone": AFFINITY},
            id="one pod must satisfy all terms",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            rules(affinity=[term(ZONE)]),
            {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "lone": AFFINITY},
            id="a pod outside every domain does not count",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1")],
            rules(anti_affinity=[term(ZONE)]),
            {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY, "b1": OK, "lone": OK},
            id="anti-affinity rejects the domain of the pod",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("db", labels={"app": "db"}, on="b1")],
            rules(anti_affinity=[term(HOST), term(HOST, "db")]),
            {"a1": ANTI_AFFINITY, "a2": OK, "b1": ANTI_AFFINITY, "lone": OK},
            id="one violated anti-affinity term rejects",
        ),
        pytest.param(
            [pod("hermit", on="a1", affinity=rules(anti_affinity=[term(ZONE, "new")]))],
            {},
            {"a1": EXISTING, "a2": EXISTING, "b1": OK, "lone": OK},
            id="anti-affinity of a running pod rejects",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1", affinity=rules(anti_affinity=[term(HOST, "new")]))],
            rules(affinity=[term(ZONE)], anti_affinity=[term(HOST)]),
            {"a1": ANTI_AFFINITY, "a2": OK, "b1": AFFINITY, "lone": AFFINITY},
            id="the first rule that fails is the reason",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1", status={"phase": "Succeeded"})],
            rules(anti_affinity=[term(ZONE)]),
            {"a1": OK, "a2": OK, "b1": OK, "lone": OK},
            id="a finished pod does not count",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1")],
            rules(anti_affinity=[{"topologyKey": ZONE}]),
            {"a1": OK, "a2": OK, "b1": OK, "lone": OK},
            id="a term without selector selects no pod",
        ),
    ],
)
def test_verdicts_of_affinity_and_anti_affinity(
    running: list[Manifest], affinity: Manifest, expected: dict[str, str]
) -> None:
    cycle = schedule(*running, pod("new", labels={"app": "new"}, affinity=affinity))
    assert reasons(cycle) == expected


def test_only_anti_affinity_can_be_resolved_by_eviction() -> None:
    web = pod("web", labels={"app": "web"}, on="a1")
    cycle = schedule(web, pod("new", affinity=rules(affinity=[term(ZONE)], anti_affinity=[term(HOST)])))
    assert cycle.filter is not None
    assert [Code(int(code)) for code in cycle.filter.codes] == [
        Code.UNSCHEDULABLE,
        Code.SUCCESS,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ]


@pytest.mark.parametrize(
    ("running", "labels", "expected"),
    [
        pytest.param(
            [], "web", {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY}, id="the pod is the first of its group"
        ),
        pytest.param([], "db", dict.fromkeys(("a1", "a2", "b1", "lone"), AFFINITY), id="the pod is not of the group"),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="b1")],
            "web",
            {"a1": AFFINITY, "a2": AFFINITY, "b1": OK, "lone": AFFINITY},
            id="the second pod needs the domain of the first",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            "web",
            {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY},
            id="a first pod without a domain does not count",
        ),
        pytest.param(
            [pod("web", namespace="other", labels={"app": "web"}, on="b1")],
            "web",
            {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY},
            id="a pod in another namespace does not count",
        ),
    ],
)
def test_the_first_pod_of_a_group_is_feasible(running: list[Manifest], labels: str, expected: dict[str, str]) -> None:
    cycle = schedule(*running, pod("new", labels={"app": labels}, affinity=rules(affinity=[term(ZONE)])))
    assert reasons(cycle) == expected


# --- namespaces

NAMESPACES = [namespace("red", team="x"), namespace("blue", team="y"), namespace("default")]
TEAM_X: Manifest = {"matchLabels": {"team": "x"}}
NO_TEAM: Manifest = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
NOT_TEAM_X: Manifest = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        pytest.param({}, {"default"}, id="the default is the pod's own namespace"),
        pytest.param({"namespaces": ["red"]}, {"red"}, id="names alone"),
        pytest.param({"namespaceSelector": TEAM_X}, {"red"}, id="a selector alone"),
        pytest.param({"namespaceSelector": TEAM_X, "namespaces": ["blue"]}, {"red", "blue"}, id="names and selector"),
        pytest.param(
            {"namespaceSelector": {}},
            {"default", "red", "blue", "unknown"},
            id="an empty selector selects every namespace",
        ),
        pytest.param(
            {"namespaceSelector": NO_TEAM},
            {"default", "red", "blue", "unknown"},
            id="a selector that no labels satisfy selects every namespace, as upstream",
        ),
        pytest.param(
            {"namespaceSelector": NOT_TEAM_X},
            {"default", "red", "blue", "unknown"},
            id="NotIn selects namespaces without the label",
        ),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "z"}}}, set(), id="a selector without a match"),
    ],
)
def test_namespaces_of_the_pods_own_terms(fields: Manifest, selected: set[str]) -> None:
    anti_affinity_rules = rules(anti_affinity=[term(HOST, None, **fields)])
    for name in ("default", "red", "blue", "unknown"):
        cycle = schedule(*NAMESPACES, pod("old", namespace=name, on="a1"), pod("new", affinity=anti_affinity_rules))
        assert reasons(cycle)["a1"] == (ANTI_AFFINITY if name in selected else OK), name


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        pytest.param({}, {"red"}, id="the default is the namespace of the running pod"),
        pytest.param({"namespaces": ["blue"]}, {"blue"}, id="names alone"),
        pytest.param({"namespaceSelector": TEAM_X}, {"red"}, id="a selector alone"),
        pytest.param({"namespaceSelector": {}}, {"default", "red", "blue", "unknown"}, id="an empty selector"),
        pytest.param({"namespaceSelector": NO_TEAM}, {"default", "unknown"}, id="an unknown namespace has no labels"),
        pytest.param({"namespaceSelector": NOT_TEAM_X}, {"default", "blue", "unknown"}, id="NotIn reads the labels"),
    ],
)
def test_namespaces_of_a_running_pods_terms(fields: Manifest, selected: set[str]) -> None:
    old = pod("old", namespace="red", on="a1", affinity=rules(anti_affinity=[term(HOST, None, **fields)]))
    for name in ("default", "red", "blue", "unknown"):
        cycle = schedule(*NAMESPACES, old, pod("new", namespace=name), key=f"{name}/new")
        assert reasons(cycle)["a1"] == (EXISTING if name in selected else OK), name


# --- Skip and errors


@pytest.mark.parametrize(
    ("objects", "skipped"),
    [
        pytest.param([pod("new")], True, id="no required terms"),
        pytest.param(
            [pod("new", affinity=rules(preferred_affinity=[weighted_term(1, term(ZONE))]))], True, id="a preference"
        ),
        pytest.param([pod("new", affinity=rules(affinity=[term(ZONE)]))], False, id="required affinity"),
        pytest.param([pod("new", affinity=rules(anti_affinity=[term(ZONE)]))], False, id="required anti-affinity"),
        pytest.param(
            [pod("new"), pod("old", on="lone", affinity=rules(anti_affinity=[term(ZONE, None)]))],
            True,
            id="a rule of a pod without a domain",
        ),
        pytest.param(
            [pod("new"), pod("old", affinity=rules(anti_affinity=[term(ZONE, None)]))],
            True,
            id="a rule of a pending pod",
        ),
        pytest.param(
            [pod("new"), pod("old", on="a1", affinity=rules(affinity=[term(ZONE, None)]))],
            True,
            id="affinity of a running pod rejects nothing",
        ),
    ],
)
def test_pre_filter_skips(objects: list[Manifest], skipped: bool) -> None:
    assert ("InterPodAffinity" in schedule(*objects).filter_skipped) == skipped


INVALID_TERM = term(ZONE, None, labelSelector={"matchExpressions": [{"key": "app", "operator": "Is"}]})


def test_an_invalid_selector_rejects_the_pod() -> None:
    cycle = schedule(
        pod("new", affinity=rules(affinity=[INVALID_TERM], preferred_anti_affinity=[weighted_term(1, INVALID_TERM)]))
    )
    text = '"Is" is not a valid label selector operator'
    assert cycle.pre_filter_status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert cycle.pre_filter_status.reasons == (
        f"parsing pod: [requiredAffinityTerms: {text}, preferredAntiAffinityTerms: {text}]",
    )


def test_an_invalid_list_of_a_running_pod_counts_as_empty() -> None:
    invalid_pod = pod(
        "old",
        on="a1",
        affinity=rules(
            anti_affinity=[term(HOST, None), INVALID_TERM], preferred_affinity=[weighted_term(3, term(ZONE, None))]
        ),
    )
    cycle = schedule(invalid_pod, pod("new"))
    assert "InterPodAffinity" in cycle.filter_skipped
    assert raw_scores(cycle) == {"a1": 3, "a2": 3, "b1": 0, "lone": 0}


# --- Score


@pytest.mark.parametrize(
    ("running", "affinity", "expected"),
    [
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("web-2", labels={"app": "web"}, on="a1")],
            rules(
                preferred_affinity=[weighted_term(10, term(ZONE))],
                preferred_anti_affinity=[weighted_term(7, term(HOST))],
            ),
            {"a1": 6, "a2": 20, "b1": 0, "lone": 0},
            id="every pod in a domain adds or subtracts the weight",
        ),
        pytest.param(
            [pod("old", on="b1", affinity=rules(preferred_affinity=[weighted_term(4, term(ZONE, None))]))],
            {},
            {"a1": 0, "a2": 0, "b1": 4, "lone": 0},
            id="a running pod's preference",
        ),
        pytest.param(
            [pod("old", on="b1", affinity=rules(preferred_anti_affinity=[weighted_term(4, term(ZONE, None))]))],
            {},
            {"a1": 0, "a2": 0, "b1": -4, "lone": 0},
            id="a running pod's preferred anti-affinity",
        ),
        pytest.param(
            [pod("old", on="a1", affinity=rules(affinity=[term(ZONE, None)]))],
            {},
            {"a1": 1, "a2": 1, "b1": 0, "lone": 0},
            id="a running pod's required term has hardPodAffinityWeight",
        ),
        pytest.param(
            [
                pod("fond", on="a1", affinity=rules(preferred_affinity=[weighted_term(4, term(ZONE, None))])),
                pod("shy", on="a2", affinity=rules(preferred_anti_affinity=[weighted_term(4, term(ZONE, None))])),
            ],
            {},
            {"a1": 0, "a2": 0, "b1": 0, "lone": 0},
            id="weights with the sum 0 are scored",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            rules(preferred_affinity=[weighted_term(10, term(ZONE))]),
            None,
            id="no matching pod in a domain: skipped",
        ),
        pytest.param([pod("web", labels={"app": "web"}, on="a1")], {}, None, id="no preferred terms: skipped"),
    ],
)
def test_raw_scores(running: list[Manifest], affinity: Manifest, expected: dict[str, int] | None) -> None:
    assert raw_scores(schedule(*running, pod("new", labels={"app": "new"}, affinity=affinity))) == expected


@pytest.mark.parametrize(
    ("args", "affinity", "expected"),
    [
        ({"hardPodAffinityWeight": 30}, {}, 32),
        ({"hardPodAffinityWeight": 0}, {}, 2),
        ({"ignorePreferredTermsOfExistingPods": True}, {}, None),
        ({"ignorePreferredTermsOfExistingPods": True}, rules(affinity=[term(HOST, None)]), None),
        (
            {"ignorePreferredTermsOfExistingPods": True},
            rules(preferred_anti_affinity=[weighted_term(9, term(RACK, None))]),
            3,
        ),
    ],
)
def test_arguments_change_scores(args: Manifest, affinity: Manifest, expected: int | None) -> None:
    running_rules = rules(affinity=[term(ZONE, None)], preferred_affinity=[weighted_term(2, term(ZONE, None))])
    scores = raw_scores(schedule(pod("old", on="a1", affinity=running_rules), pod("new", affinity=affinity), args=args))
    assert (scores and scores["a1"]) == expected


def test_a_weight_of_0_ignores_required_terms_of_running_pods() -> None:
    old = pod("old", on="a1", affinity=rules(affinity=[term(ZONE, None)]))
    assert raw_scores(schedule(old, pod("new"), args={"hardPodAffinityWeight": 0})) is None


def test_pods_on_rejected_nodes_count() -> None:
    web = pod("web", labels={"app": "web"}, on="a1")
    rules_of_new = rules(anti_affinity=[term(HOST)], preferred_affinity=[weighted_term(5, term(ZONE))])
    assert raw_scores(schedule(web, pod("new", affinity=rules_of_new))) == {"a2": 5, "b1": 0, "lone": 0}


def test_normalized_scores_range_from_0_to_100() -> None:
    running = [
        pod("old-1", on="a1", affinity=rules(preferred_anti_affinity=[weighted_term(1, term(HOST, None))])),
        pod("old-2", on="b1", affinity=rules(preferred_affinity=[weighted_term(2, term(HOST, None))])),
    ]
    cycle = schedule(*running, pod("new"))
    assert cycle.scores is not None
    assert cycle.scores.normalized["InterPodAffinity"].tolist() == [0, 33, 100, 33]


# --- findings

CONFLICTS = (PodAffinityUnsatisfied, PodAntiAffinityConflict, ExistingAntiAffinityConflict)


def findings(cycle: Cycle, name: str) -> tuple[object, ...]:
    assert cycle.nodes is not None
    assert cycle.filter is not None
    return cycle.filter.status(TableRow(cycle.nodes.names.index(name))).findings


def test_the_finding_of_affinity_lists_matching_pods_and_domains() -> None:
    web = [pod(f"web-{i}", labels={"app": "web"}, on="b1") for i in range(7)]
    cycle = schedule(*web, pod("new", affinity=rules(affinity=[term(ZONE)])))
    assert findings(cycle, "a1") == (
        PodAffinityUnsatisfied(
            term=0,
            topology_key=ZONE,
            domain="a",
            selector="app=web",
            namespaces=("default",),
            every_namespace=False,
            matches_itself=False,
            pods=tuple(f"default/web-{i}" for i in range(5)),
            matching_pods=7,
            matching_domains=("b",),
        ),
    )
    (without_label,) = findings(cycle, "lone")
    assert isinstance(without_label, PodAffinityUnsatisfied)
    assert without_label.domain is None


def test_findings_of_anti_affinity_list_every_violated_term() -> None:
    selector: Manifest = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "new"]}]}
    repelling_rules = rules(anti_affinity=[term(HOST, "other"), term(ZONE, labelSelector=selector), term(HOST, None)])
    running = [
        pod(f"shy-{i}", labels={"app": "shy"}, on=place, affinity=repelling_rules)
        for i, place in enumerate(("a1", "a2"))
    ]
    new = pod("new", labels={"app": "new", "tier": "1"}, affinity=rules(anti_affinity=[term(HOST, "shy")]))
    cycle = schedule(*running, new)
    both_pods = ("default/shy-0", "default/shy-1")
    by_zone = ExistingAntiAffinityConflict(
        pods=both_pods,
        pod_count=2,
        term=1,
        topology_key=ZONE,
        domain="a",
        selector="app in (new,web)",
        matched_labels=("app=new",),
    )
    by_host = ExistingAntiAffinityConflict(
        pods=both_pods[1:], pod_count=1, term=2, topology_key=HOST, domain="a2", selector="", matched_labels=()
    )
    own = PodAntiAffinityConflict(
        term=0,
        topology_key=HOST,
        domain="a2",
        selector="app=shy",
        pods=both_pods[1:],
        pod_count=1,
        namespaces=("default",),
    )
    assert findings(cycle, "a2") == (own, by_zone, by_host)


# --- laws

APPS = ["web", "db"]
SELECTORS: list[Manifest | None] = [
    None,
    {},
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
]


@st.composite
def terms(draw: st.DrawFn) -> Manifest:
    manifest: Manifest = {"topologyKey": draw(st.sampled_from([HOST, ZONE, RACK]))}
    if (selector := draw(st.sampled_from(SELECTORS))) is not None:
        manifest["labelSelector"] = selector
    manifest["namespaces"] = draw(st.sampled_from([[], [], ["red"], ["red", "unknown"]]))
    if (namespaces := draw(st.sampled_from([None, None, {}, TEAM_X, NO_TEAM]))) is not None:
        manifest["namespaceSelector"] = namespaces
    return manifest


@st.composite
def affinities(draw: st.DrawFn) -> Manifest:
    term_lists = st.lists(terms(), max_size=2)
    preferred = st.lists(st.builds(weighted_term, st.integers(1, 100), terms()), max_size=2)
    return rules(
        affinity=draw(term_lists),
        anti_affinity=draw(term_lists),
        preferred_affinity=draw(preferred),
        preferred_anti_affinity=draw(preferred),
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """Return a few nodes with some labels, pods on them, and the pod red/new."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    labels = st.fixed_dictionaries({HOST: st.sampled_from("pq")}, optional={ZONE: st.just("a"), RACK: st.just("")})
    nodes = [node(name, labels=draw(labels)) for name in names]
    nothing: Manifest = {}
    optional_affinity = st.one_of(st.just(nothing), affinities())

    def drawn_pod(name: str, namespace: str, on: str | None) -> Manifest:
        app = {"app": draw(st.sampled_from(APPS))} if draw(st.booleans()) else {}
        return pod(name, namespace=namespace, labels=app, on=on, affinity=draw(optional_affinity))

    running = [
        drawn_pod(f"p{i}", draw(st.sampled_from(["red", "default", "unknown"])), draw(st.sampled_from(names)))
        for i in range(draw(st.integers(0, 5)))
    ]
    return [*NAMESPACES, *nodes, *running, drawn_pod("new", "red", None)]


class Reference:
    """The plugin's rules for one node and one pod at a time."""

    def __init__(self, fw: Framework, removed: frozenset[int] = frozenset()) -> None:
        snapshot = fw.snapshot
        self.namespaces = snapshot.namespaces
        self.labels = [item.metadata.labels for item in snapshot.cluster.nodes]
        self.running = [
            (snapshot.pods[row], self.labels[node_row])
            for row, node_row in enumerate(snapshot.pods.node.tolist())
            if node_row >= 0 and row not in removed
        ]
        self.new = snapshot.pods[snapshot.pods.rows["red/new"]]

    @staticmethod
    def names(term: PodAffinityTerm, own: str) -> set[str]:
        return set(term.namespaces) or ({own} if term.namespace_selector is None else set())

    @staticmethod
    def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
        return compile_selector(selector).matches(labels)

    def selects_other(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Tell whether a term of the new pod selects another pod."""
        names = self.names(term, self.new.metadata.namespace)
        names |= {name for name, labels in self.namespaces.items() if self.selects(term.namespace_selector, labels)}
        covered = other.metadata.namespace in names or self.selects(term.namespace_selector, {})
        return covered and self.selects(term.label_selector, other.metadata.labels)

    def selects_new(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Tell whether a term of another pod selects the new pod."""
        labels = self.namespaces.get(self.new.metadata.namespace, {})
        is_named = self.new.metadata.namespace in self.names(term, other.metadata.namespace)
        covered = is_named or self.selects(term.namespace_selector, labels)
        return covered and self.selects(term.label_selector, self.new.metadata.labels)

    @staticmethod
    def required(pod: Pod, kind: str) -> tuple[PodAffinityTerm, ...]:
        result = getattr(pod.spec.affinity, kind, None)
        return result.required_during_scheduling_ignored_during_execution if result else ()

    @staticmethod
    def preferred(pod: Pod) -> list[tuple[PodAffinityTerm, int]]:
        return [
            (item.pod_affinity_term, sign * item.weight)
            for kind, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1))
            if (result := getattr(pod.spec.affinity, kind, None))
            for item in result.preferred_during_scheduling_ignored_during_execution
        ]

    def reason(self, place: int) -> str:
        labels = self.labels[place]

        def shares_domain(term: PodAffinityTerm, other: Mapping[str, str]) -> bool:
            key = term.topology_key
            return key in labels and labels[key] == other.get(key)

        affinity_terms = self.required(self.new, "pod_affinity")
        matching_domains = [
            domains
            for other, domains in self.running
            if affinity_terms and all(self.selects_other(term, other) for term in affinity_terms)
        ]
        has_no_match = not any(term.topology_key in domains for term in affinity_terms for domains in matching_domains)
        is_first = has_no_match and all(self.selects_other(term, self.new) for term in affinity_terms)
        if any(term.topology_key not in labels for term in affinity_terms):
            return AFFINITY
        if not is_first and not all(
            any(shares_domain(term, domains) for domains in matching_domains) for term in affinity_terms
        ):
            return AFFINITY
        anti_affinity_terms = self.required(self.new, "pod_anti_affinity")
        if any(
            self.selects_other(term, other) and shares_domain(term, domains)
            for term in anti_affinity_terms
            for other, domains in self.running
        ):
            return ANTI_AFFINITY
        if any(
            self.selects_new(term, other) and shares_domain(term, domains)
            for other, domains in self.running
            for term in self.required(other, "pod_anti_affinity")
        ):
            return EXISTING
        return OK

    def scores(self, hard_weight: int) -> list[int] | None:
        """Return the sums of weights, or None if no term selects a running pod in a domain."""
        weighted_domains = [
            (term.topology_key, domains[term.topology_key], weight)
            for other, domains in self.running
            for term, weight, matches in (
                *((term, weight, self.selects_other(term, other)) for term, weight in self.preferred(self.new)),
                *((term, weight, self.selects_new(term, other)) for term, weight in self.preferred(other)),
                *(
                    (term, hard_weight, self.selects_new(term, other))
                    for term in self.required(other, "pod_affinity")
                    if hard_weight
                ),
            )
            if matches and term.topology_key in domains
        ]
        if not weighted_domains:
            return None
        return [sum(w for key, domain, w in weighted_domains if labels.get(key) == domain) for labels in self.labels]


def pre_filter(objects: list[Manifest]) -> tuple[Framework, InterPodAffinity, CycleState, Pod, bool]:
    """Return the plugin after PreFilter for the pod red/new, and whether PreFilter skipped."""
    fw = framework(objects, only("InterPodAffinity", {"hardPodAffinityWeight": 3}))
    (plugin,) = fw.plugins("filter", InterPodAffinity)
    new = fw.snapshot.pods[fw.snapshot.pods.rows["red/new"]]
    state = CycleState()
    return fw, plugin, state, new, plugin.pre_filter(state, new, fw.nodes).status.is_skip


def reasons_of(verdicts: Verdicts) -> list[str]:
    return ["".join(verdicts.reasons[row]) for row in range(len(verdicts))]


@given(clusters())
@settings(max_examples=settings().max_examples * 3)
def test_columns_equal_the_reference_on_each_node(objects: list[Manifest]) -> None:
    fw, plugin, state, new, skipped = pre_filter(objects)
    reference = Reference(fw)
    expected = [reference.reason(place) for place in range(len(fw.nodes))]
    verdicts = Verdicts.success(len(fw.nodes)) if skipped else plugin.filter(state, new, fw.nodes)
    assert reasons_of(verdicts) == expected
    for row in range(len(verdicts)):
        assert bool(verdicts.status(TableRow(row)).findings) == (expected[row] != OK)

    is_scored = plugin.pre_score(state, new, fw.nodes).is_success
    assert (plugin.score(state, new, fw.nodes).tolist() if is_scored else None) == reference.scores(3)


@given(clusters(), st.data())
@settings(max_examples=settings().max_examples * 3)
def test_removed_pods_change_only_their_own_node(objects: list[Manifest], data: st.DataObject) -> None:
    fw, plugin, state, new, skipped = pre_filter(objects)
    running = [row for row, place in enumerate(fw.snapshot.pods.node.tolist()) if place >= 0]
    if skipped or not running:
        return
    before = state[FILTER]
    removed = data.draw(st.lists(st.sampled_from(running), unique=True))
    rows = np.array(removed, dtype=np.int64)
    change = PodRows(pods=rows, nodes=ClusterRows(fw.snapshot.pods.node[rows]))

    plugin.remove_pods(state, new, fw.nodes, change)
    verdicts = plugin.filter(state, new, fw.nodes.remove_pods(change))
    for place, reason in enumerate(reasons_of(verdicts)):
        removed_there = frozenset(row for row in removed if fw.snapshot.pods.node[row] == place)
        assert reason == Reference(fw, removed=removed_there).reason(place)
        result = verdicts.status(TableRow(place)).findings
        assert bool(result) == (reason != OK)
        finding_pods = {key for item in result if isinstance(item, CONFLICTS) for key in item.pods}
        assert not finding_pods & {fw.snapshot.pods.key(row) for row in removed_there}

    plugin.add_pods(state, new, fw.nodes.remove_pods(change), change)
    for sums, after_add in (
        (before.affinity, state[FILTER].affinity),
        (before.anti_affinity, state[FILTER].anti_affinity),
        (before.existing_anti_affinity, state[FILTER].existing_anti_affinity),
    ):
        assert sums.everywhere.tolist() == after_add.everywhere.tolist()
        assert {k: v.tolist() for k, v in sums.sums.items()} == {k: v.tolist() for k, v in after_add.sums.items()}


def test_an_added_pod_changes_only_its_own_node() -> None:
    pending = pod("web", labels={"app": "web"})
    fw, plugin, state, new, _ = pre_filter(
        [
            *four_nodes(),
            pending,
            pod("new", namespace="red", affinity=rules(anti_affinity=[term(ZONE, namespaces=["default"])])),
        ]
    )
    change = PodRows(pods=np.array([fw.snapshot.pods.rows["default/web"]]), nodes=cluster_rows([ClusterRow(0)]))
    plugin.add_pods(state, new, fw.nodes, change)
    verdicts = plugin.filter(state, new, fw.nodes.add_pods(change))
    assert reasons_of(verdicts) == [ANTI_AFFINITY, OK, OK, OK]
    (finding,) = verdicts.explain(TableRow(0))
    assert isinstance(finding, PodAntiAffinityConflict)
    assert finding.pods == ("default/web",)

"""InterPodAffinity: who may stand beside whom, who would like to, and the account of a rejection."""

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


def places() -> list[Manifest]:
    """Two nodes in zone a, one in zone b, one in no zone."""
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    zoned = [node(name, labels={HOST: name, ZONE: zone}) for name, zone in zones.items()]
    return [*zoned, node("lone", labels={HOST: "lone"})]


def namespace(name: str, **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def term(key: str, app: str | None = "web", **fields: object) -> Manifest:
    """A term that selects app=web; with None as `app`, every pod."""
    selector: Manifest = {} if app is None else {"matchLabels": {"app": app}}
    return {"topologyKey": key, "labelSelector": selector, **fields}


def weighted(weight: int, manifest: Manifest) -> Manifest:
    return {"weight": weight, "podAffinityTerm": manifest}


def rules(
    *,
    near: Iterable[Manifest] = (),
    apart: Iterable[Manifest] = (),
    likes: Iterable[Manifest] = (),
    shuns: Iterable[Manifest] = (),
) -> Manifest:
    """spec.affinity: required and preferred podAffinity (near, likes) and podAntiAffinity (apart, shuns)."""
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    return {
        "podAffinity": {required: list(near), preferred: list(likes)},
        "podAntiAffinity": {required: list(apart), preferred: list(shuns)},
    }


def schedule(*objects: Manifest, args: Mapping[str, object] | None = None, key: str = "default/new") -> Cycle:
    return evaluate([*places(), *objects], key, only("InterPodAffinity", args))


def reasons(cycle: Cycle) -> dict[str, str]:
    """Node to the reason why it was rejected."""
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
            rules(near=[term(ZONE)]),
            {"a1": OK, "a2": OK, "b1": AFFINITY, "lone": AFFINITY},
            id="near a pod means in its domain; a node without the label is in none",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("db", labels={"app": "db"}, on="a1")],
            rules(near=[term(ZONE), term(HOST, "db")]),
            {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "lone": AFFINITY},
            id="one and the same pod must satisfy all terms",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            rules(near=[term(ZONE)]),
            {"a1": AFFINITY, "a2": AFFINITY, "b1": AFFINITY, "lone": AFFINITY},
            id="a pod outside of every domain is near nobody",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1")],
            rules(apart=[term(ZONE)]),
            {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY, "b1": OK, "lone": OK},
            id="apart from a pod means outside of its domain",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("db", labels={"app": "db"}, on="b1")],
            rules(apart=[term(HOST), term(HOST, "db")]),
            {"a1": ANTI_AFFINITY, "a2": OK, "b1": ANTI_AFFINITY, "lone": OK},
            id="any anti-affinity term is enough",
        ),
        pytest.param(
            [pod("hermit", on="a1", affinity=rules(apart=[term(ZONE, "new")]))],
            {},
            {"a1": EXISTING, "a2": EXISTING, "b1": OK, "lone": OK},
            id="a running pod keeps this one away",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1", affinity=rules(apart=[term(HOST, "new")]))],
            rules(near=[term(ZONE)], apart=[term(HOST)]),
            {"a1": ANTI_AFFINITY, "a2": OK, "b1": AFFINITY, "lone": AFFINITY},
            id="the first rule that fails is the reason",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1", status={"phase": "Succeeded"})],
            rules(apart=[term(ZONE)]),
            {"a1": OK, "a2": OK, "b1": OK, "lone": OK},
            id="a finished pod stands nowhere",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1")],
            rules(apart=[{"topologyKey": ZONE}]),
            {"a1": OK, "a2": OK, "b1": OK, "lone": OK},
            id="a term without selector selects no pod",
        ),
    ],
)
def test_where_a_pod_may_run(running: list[Manifest], affinity: Manifest, expected: dict[str, str]) -> None:
    cycle = schedule(*running, pod("new", labels={"app": "new"}, affinity=affinity))
    assert reasons(cycle) == expected


def test_eviction_can_help_against_anti_affinity_but_not_for_want_of_affinity() -> None:
    web = pod("web", labels={"app": "web"}, on="a1")
    cycle = schedule(web, pod("new", affinity=rules(near=[term(ZONE)], apart=[term(HOST)])))
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
        pytest.param([], "web", {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY}, id="the first of its group"),
        pytest.param([], "db", dict.fromkeys(("a1", "a2", "b1", "lone"), AFFINITY), id="it is none of the group"),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="b1")],
            "web",
            {"a1": AFFINITY, "a2": AFFINITY, "b1": OK, "lone": AFFINITY},
            id="the second must follow the first",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            "web",
            {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY},
            id="a first one in no domain does not count",
        ),
        pytest.param(
            [pod("web", namespace="other", labels={"app": "web"}, on="b1")],
            "web",
            {"a1": OK, "a2": OK, "b1": OK, "lone": AFFINITY},
            id="nor does one in another namespace",
        ),
    ],
)
def test_a_group_that_stays_together_can_begin(running: list[Manifest], labels: str, expected: dict[str, str]) -> None:
    cycle = schedule(*running, pod("new", labels={"app": labels}, affinity=rules(near=[term(ZONE)])))
    assert reasons(cycle) == expected


# --- namespaces

NAMESPACES = [namespace("red", team="x"), namespace("blue", team="y"), namespace("default")]
TEAM_X: Manifest = {"matchLabels": {"team": "x"}}
NO_TEAM: Manifest = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
NOT_TEAM_X: Manifest = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({}, {"default"}, id="silence means the pod's own namespace"),
        pytest.param({"namespaces": ["red"]}, {"red"}, id="names alone"),
        pytest.param({"namespaceSelector": TEAM_X}, {"red"}, id="a selector alone"),
        pytest.param({"namespaceSelector": TEAM_X, "namespaces": ["blue"]}, {"red", "blue"}, id="names and selector"),
        pytest.param(
            {"namespaceSelector": {}}, {"default", "red", "blue", "unknown"}, id="an empty selector is everything"
        ),
        pytest.param(
            {"namespaceSelector": NO_TEAM},
            {"default", "red", "blue", "unknown"},
            id="what no labels satisfy covers every namespace, as upstream has it",
        ),
        pytest.param(
            {"namespaceSelector": NOT_TEAM_X}, {"default", "red", "blue", "unknown"}, id="NotIn is satisfied too"
        ),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "z"}}}, set(), id="a selector that finds none"),
    ],
)
def test_namespaces_of_the_pods_own_terms(fields: Manifest, seen: set[str]) -> None:
    apart = rules(apart=[term(HOST, None, **fields)])
    for name in ("default", "red", "blue", "unknown"):
        cycle = schedule(*NAMESPACES, pod("old", namespace=name, on="a1"), pod("new", affinity=apart))
        assert reasons(cycle)["a1"] == (ANTI_AFFINITY if name in seen else OK), name


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({}, {"red"}, id="silence means the namespace of the pod whose term it is"),
        pytest.param({"namespaces": ["blue"]}, {"blue"}, id="names alone"),
        pytest.param({"namespaceSelector": TEAM_X}, {"red"}, id="a selector alone"),
        pytest.param({"namespaceSelector": {}}, {"default", "red", "blue", "unknown"}, id="an empty selector"),
        pytest.param({"namespaceSelector": NO_TEAM}, {"default", "unknown"}, id="an unknown namespace has no labels"),
        pytest.param({"namespaceSelector": NOT_TEAM_X}, {"default", "blue", "unknown"}, id="NotIn reads the labels"),
    ],
)
def test_namespaces_of_a_running_pods_terms(fields: Manifest, seen: set[str]) -> None:
    old = pod("old", namespace="red", on="a1", affinity=rules(apart=[term(HOST, None, **fields)]))
    for name in ("default", "red", "blue", "unknown"):
        cycle = schedule(*NAMESPACES, old, pod("new", namespace=name), key=f"{name}/new")
        assert reasons(cycle)["a1"] == (EXISTING if name in seen else OK), name


# --- Skip and errors


@pytest.mark.parametrize(
    ("objects", "skipped"),
    [
        pytest.param([pod("new")], True, id="nobody requires anything"),
        pytest.param([pod("new", affinity=rules(likes=[weighted(1, term(ZONE))]))], True, id="a preference"),
        pytest.param([pod("new", affinity=rules(near=[term(ZONE)]))], False, id="required affinity"),
        pytest.param([pod("new", affinity=rules(apart=[term(ZONE)]))], False, id="required anti-affinity"),
        pytest.param(
            [pod("new"), pod("old", on="lone", affinity=rules(apart=[term(ZONE, None)]))],
            True,
            id="a rule of a pod in no domain",
        ),
        pytest.param(
            [pod("new"), pod("old", affinity=rules(apart=[term(ZONE, None)]))], True, id="a rule of a waiting pod"
        ),
        pytest.param(
            [pod("new"), pod("old", on="a1", affinity=rules(near=[term(ZONE, None)]))],
            True,
            id="affinity of a running pod forbids nothing",
        ),
    ],
)
def test_pre_filter_skips(objects: list[Manifest], skipped: bool) -> None:
    assert ("InterPodAffinity" in schedule(*objects).filter_skipped) == skipped


WRONG = term(ZONE, None, labelSelector={"matchExpressions": [{"key": "app", "operator": "Is"}]})


def test_a_selector_that_cannot_be_parsed_rejects_the_pod() -> None:
    cycle = schedule(pod("new", affinity=rules(near=[WRONG], shuns=[weighted(1, WRONG)])))
    text = '"Is" is not a valid label selector operator'
    assert cycle.pre_filter_status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert cycle.pre_filter_status.reasons == (
        f"parsing pod: [requiredAffinityTerms: {text}, preferredAntiAffinityTerms: {text}]",
    )


def test_a_running_pods_broken_list_counts_as_empty_and_its_other_lists_count() -> None:
    broken = pod("old", on="a1", affinity=rules(apart=[term(HOST, None), WRONG], likes=[weighted(3, term(ZONE, None))]))
    cycle = schedule(broken, pod("new"))
    assert "InterPodAffinity" in cycle.filter_skipped
    assert raw_scores(cycle) == {"a1": 3, "a2": 3, "b1": 0, "lone": 0}


# --- Score


@pytest.mark.parametrize(
    ("running", "affinity", "expected"),
    [
        pytest.param(
            [pod("web", labels={"app": "web"}, on="a1"), pod("web-2", labels={"app": "web"}, on="a1")],
            rules(likes=[weighted(10, term(ZONE))], shuns=[weighted(7, term(HOST))]),
            {"a1": 6, "a2": 20, "b1": 0, "lone": 0},
            id="every pod in a domain adds or takes the weight",
        ),
        pytest.param(
            [pod("old", on="b1", affinity=rules(likes=[weighted(4, term(ZONE, None))]))],
            {},
            {"a1": 0, "a2": 0, "b1": 4, "lone": 0},
            id="a running pod's preference",
        ),
        pytest.param(
            [pod("old", on="b1", affinity=rules(shuns=[weighted(4, term(ZONE, None))]))],
            {},
            {"a1": 0, "a2": 0, "b1": -4, "lone": 0},
            id="a running pod's aversion",
        ),
        pytest.param(
            [pod("old", on="a1", affinity=rules(near=[term(ZONE, None)]))],
            {},
            {"a1": 1, "a2": 1, "b1": 0, "lone": 0},
            id="a running pod's requirement is worth hardPodAffinityWeight",
        ),
        pytest.param(
            [
                pod("fond", on="a1", affinity=rules(likes=[weighted(4, term(ZONE, None))])),
                pod("shy", on="a2", affinity=rules(shuns=[weighted(4, term(ZONE, None))])),
            ],
            {},
            {"a1": 0, "a2": 0, "b1": 0, "lone": 0},
            id="weights that cancel out are scored all the same",
        ),
        pytest.param(
            [pod("web", labels={"app": "web"}, on="lone")],
            rules(likes=[weighted(10, term(ZONE))]),
            None,
            id="nothing in any domain: skipped",
        ),
        pytest.param([pod("web", labels={"app": "web"}, on="a1")], {}, None, id="nobody prefers anything: skipped"),
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
        ({"ignorePreferredTermsOfExistingPods": True}, rules(near=[term(HOST, None)]), None),
        ({"ignorePreferredTermsOfExistingPods": True}, rules(shuns=[weighted(9, term(RACK, None))]), 3),
    ],
)
def test_arguments(args: Manifest, affinity: Manifest, expected: int | None) -> None:
    its = rules(near=[term(ZONE, None)], likes=[weighted(2, term(ZONE, None))])
    scores = raw_scores(schedule(pod("old", on="a1", affinity=its), pod("new", affinity=affinity), args=args))
    assert (scores and scores["a1"]) == expected


def test_requirements_of_running_pods_are_not_even_looked_at_without_a_weight() -> None:
    old = pod("old", on="a1", affinity=rules(near=[term(ZONE, None)]))
    assert raw_scores(schedule(old, pod("new"), args={"hardPodAffinityWeight": 0})) is None


def test_pods_on_nodes_that_were_filtered_out_count() -> None:
    web = pod("web", labels={"app": "web"}, on="a1")
    both = rules(apart=[term(HOST)], likes=[weighted(5, term(ZONE))])
    assert raw_scores(schedule(web, pod("new", affinity=both))) == {"a2": 5, "b1": 0, "lone": 0}


def test_normalized_scores_span_0_to_100_between_the_lowest_and_the_highest() -> None:
    running = [
        pod("old-1", on="a1", affinity=rules(shuns=[weighted(1, term(HOST, None))])),
        pod("old-2", on="b1", affinity=rules(likes=[weighted(2, term(HOST, None))])),
    ]
    cycle = schedule(*running, pod("new"))
    assert cycle.scores is not None
    assert cycle.scores.normalized["InterPodAffinity"].tolist() == [0, 33, 100, 33]


# --- the account of a rejection

CONFLICTS = (PodAffinityUnsatisfied, PodAntiAffinityConflict, ExistingAntiAffinityConflict)


def findings(cycle: Cycle, name: str) -> tuple[object, ...]:
    assert cycle.nodes is not None
    assert cycle.filter is not None
    return cycle.filter.status(TableRow(cycle.nodes.names.index(name))).findings


def test_affinity_that_nobody_meets_names_who_would_do_and_where() -> None:
    web = [pod(f"web-{i}", labels={"app": "web"}, on="b1") for i in range(7)]
    cycle = schedule(*web, pod("new", affinity=rules(near=[term(ZONE)])))
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


def test_a_conflict_names_the_pods_on_both_sides_and_every_rule() -> None:
    apart: Manifest = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "new"]}]}
    shy = rules(apart=[term(HOST, "other"), term(ZONE, labelSelector=apart), term(HOST, None)])
    running = [pod(f"shy-{i}", labels={"app": "shy"}, on=place, affinity=shy) for i, place in enumerate(("a1", "a2"))]
    new = pod("new", labels={"app": "new", "tier": "1"}, affinity=rules(apart=[term(HOST, "shy")]))
    cycle = schedule(*running, new)
    both = ("default/shy-0", "default/shy-1")
    by_zone = ExistingAntiAffinityConflict(
        pods=both,
        pod_count=2,
        term=1,
        topology_key=ZONE,
        domain="a",
        selector="app in (new,web)",
        matched_labels=("app=new",),
    )
    by_host = ExistingAntiAffinityConflict(
        pods=both[1:], pod_count=1, term=2, topology_key=HOST, domain="a2", selector="", matched_labels=()
    )
    own = PodAntiAffinityConflict(
        term=0, topology_key=HOST, domain="a2", selector="app=shy", pods=both[1:], pod_count=1
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
    written: Manifest = {"topologyKey": draw(st.sampled_from([HOST, ZONE, RACK]))}
    if (selector := draw(st.sampled_from(SELECTORS))) is not None:
        written["labelSelector"] = selector
    written["namespaces"] = draw(st.sampled_from([[], [], ["red"], ["red", "unknown"]]))
    if (namespaces := draw(st.sampled_from([None, None, {}, TEAM_X, NO_TEAM]))) is not None:
        written["namespaceSelector"] = namespaces
    return written


@st.composite
def affinities(draw: st.DrawFn) -> Manifest:
    some = st.lists(terms(), max_size=2)
    preferred = st.lists(st.builds(weighted, st.integers(1, 100), terms()), max_size=2)
    return rules(near=draw(some), apart=draw(some), likes=draw(preferred), shuns=draw(preferred))


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """A few nodes with some labels, pods on them, and the pod red/new."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    labels = st.fixed_dictionaries({HOST: st.sampled_from("pq")}, optional={ZONE: st.just("a"), RACK: st.just("")})
    nodes = [node(name, labels=draw(labels)) for name in names]
    nothing: Manifest = {}
    maybe = st.one_of(st.just(nothing), affinities())

    def drawn_pod(name: str, namespace: str, on: str | None) -> Manifest:
        app = {"app": draw(st.sampled_from(APPS))} if draw(st.booleans()) else {}
        return pod(name, namespace=namespace, labels=app, on=on, affinity=draw(maybe))

    running = [
        drawn_pod(f"p{i}", draw(st.sampled_from(["red", "default", "unknown"])), draw(st.sampled_from(names)))
        for i in range(draw(st.integers(0, 5)))
    ]
    return [*NAMESPACES, *nodes, *running, drawn_pod("new", "red", None)]


class Reference:
    """The plugin's rules, a node and a pod at a time."""

    def __init__(self, fw: Framework, without: frozenset[int] = frozenset()) -> None:
        snapshot = fw.snapshot
        self.namespaces = snapshot.namespaces
        self.labels = [item.metadata.labels for item in snapshot.cluster.nodes]
        self.running = [
            (snapshot.pods[row], self.labels[place])
            for row, place in enumerate(snapshot.pods.node.tolist())
            if place >= 0 and row not in without
        ]
        self.new = snapshot.pods[snapshot.pods.rows["red/new"]]

    @staticmethod
    def names(term: PodAffinityTerm, own: str) -> set[str]:
        return set(term.namespaces) or ({own} if term.namespace_selector is None else set())

    @staticmethod
    def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
        return compile_selector(selector).matches(labels)

    def mine(self, term: PodAffinityTerm, other: Pod) -> bool:
        """A term of the new pod matches another pod."""
        names = self.names(term, self.new.metadata.namespace)
        names |= {name for name, labels in self.namespaces.items() if self.selects(term.namespace_selector, labels)}
        covered = other.metadata.namespace in names or self.selects(term.namespace_selector, {})
        return covered and self.selects(term.label_selector, other.metadata.labels)

    def theirs(self, term: PodAffinityTerm, other: Pod) -> bool:
        """A term of another pod matches the new pod."""
        labels = self.namespaces.get(self.new.metadata.namespace, {})
        named = self.new.metadata.namespace in self.names(term, other.metadata.namespace)
        covered = named or self.selects(term.namespace_selector, labels)
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

        def together(term: PodAffinityTerm, other: Mapping[str, str]) -> bool:
            key = term.topology_key
            return key in labels and labels[key] == other.get(key)

        near = self.required(self.new, "pod_affinity")
        friends = [where for other, where in self.running if near and all(self.mine(term, other) for term in near)]
        alone = not any(term.topology_key in where for term in near for where in friends)
        first = alone and all(self.mine(term, self.new) for term in near)
        if any(term.topology_key not in labels for term in near):
            return AFFINITY
        if not first and not all(any(together(term, where) for where in friends) for term in near):
            return AFFINITY
        apart = self.required(self.new, "pod_anti_affinity")
        if any(self.mine(term, other) and together(term, where) for term in apart for other, where in self.running):
            return ANTI_AFFINITY
        if any(
            self.theirs(term, other) and together(term, where)
            for other, where in self.running
            for term in self.required(other, "pod_anti_affinity")
        ):
            return EXISTING
        return OK

    def scores(self, hard: int) -> list[int] | None:
        """None where no term meets a running pod in a domain."""
        met = [
            (term.topology_key, where[term.topology_key], weight)
            for other, where in self.running
            for term, weight, matches in (
                *((term, weight, self.mine(term, other)) for term, weight in self.preferred(self.new)),
                *((term, weight, self.theirs(term, other)) for term, weight in self.preferred(other)),
                *((term, hard, self.theirs(term, other)) for term in self.required(other, "pod_affinity") if hard),
            )
            if matches and term.topology_key in where
        ]
        if not met:
            return None
        return [sum(w for key, domain, w in met if labels.get(key) == domain) for labels in self.labels]


def prepared(objects: list[Manifest]) -> tuple[Framework, InterPodAffinity, CycleState, Pod, bool]:
    """The plugin after PreFilter for the pod red/new; the last is whether it skipped."""
    fw = framework(objects, only("InterPodAffinity", {"hardPodAffinityWeight": 3}))
    (plugin,) = fw.plugins("filter", InterPodAffinity)
    new = fw.snapshot.pods[fw.snapshot.pods.rows["red/new"]]
    state = CycleState()
    return fw, plugin, state, new, plugin.pre_filter(state, new, fw.nodes).status.is_skip


def told(verdicts: Verdicts) -> list[str]:
    return ["".join(verdicts.reasons[row]) for row in range(len(verdicts))]


@given(clusters())
@settings(max_examples=200, deadline=None)
def test_columns_say_what_the_rules_say_node_by_node(objects: list[Manifest]) -> None:
    fw, plugin, state, new, skipped = prepared(objects)
    reference = Reference(fw)
    expected = [reference.reason(place) for place in range(len(fw.nodes))]
    verdicts = Verdicts.success(len(fw.nodes)) if skipped else plugin.filter(state, new, fw.nodes)
    assert told(verdicts) == expected
    for row in range(len(verdicts)):
        assert bool(verdicts.status(TableRow(row)).findings) == (expected[row] != OK)

    scored = plugin.pre_score(state, new, fw.nodes).is_success
    assert (plugin.score(state, new, fw.nodes).tolist() if scored else None) == reference.scores(3)


@given(clusters(), st.data())
@settings(max_examples=200, deadline=None)
def test_every_node_stands_in_its_own_world(objects: list[Manifest], data: st.DataObject) -> None:
    fw, plugin, state, new, skipped = prepared(objects)
    running = [row for row, place in enumerate(fw.snapshot.pods.node.tolist()) if place >= 0]
    if skipped or not running:
        return
    before = state[FILTER]
    gone = data.draw(st.lists(st.sampled_from(running), unique=True))
    rows = np.array(gone, dtype=np.int64)
    change = PodRows(pods=rows, nodes=ClusterRows(fw.snapshot.pods.node[rows]))

    plugin.remove_pods(state, new, fw.nodes, change)
    verdicts = plugin.filter(state, new, fw.nodes.remove_pods(change))
    for place, said in enumerate(told(verdicts)):
        here = frozenset(row for row in gone if fw.snapshot.pods.node[row] == place)
        assert said == Reference(fw, without=here).reason(place)
        result = verdicts.status(TableRow(place)).findings
        assert bool(result) == (said != OK)
        named = {key for item in result if isinstance(item, CONFLICTS) for key in item.pods}
        assert not named & {fw.snapshot.pods.key(row) for row in here}

    plugin.add_pods(state, new, fw.nodes.remove_pods(change), change)
    for sums, again in (
        (before.affinity, state[FILTER].affinity),
        (before.anti_affinity, state[FILTER].anti_affinity),
        (before.existing_anti_affinity, state[FILTER].existing_anti_affinity),
    ):
        assert sums.everywhere.tolist() == again.everywhere.tolist()
        assert {k: v.tolist() for k, v in sums.sums.items()} == {k: v.tolist() for k, v in again.sums.items()}


def test_a_pod_that_is_added_is_seen_by_its_own_node_alone() -> None:
    waiting = pod("web", labels={"app": "web"})
    fw, plugin, state, new, _ = prepared(
        [*places(), waiting, pod("new", namespace="red", affinity=rules(apart=[term(ZONE, namespaces=["default"])]))]
    )
    change = PodRows(pods=np.array([fw.snapshot.pods.rows["default/web"]]), nodes=cluster_rows([ClusterRow(0)]))
    plugin.add_pods(state, new, fw.nodes, change)
    verdicts = plugin.filter(state, new, fw.nodes.add_pods(change))
    assert told(verdicts) == [ANTI_AFFINITY, OK, OK, OK]
    (finding,) = verdicts.explain(TableRow(0))
    assert isinstance(finding, PodAntiAffinityConflict)
    assert finding.pods == ("default/web",)

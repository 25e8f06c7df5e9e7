"""The exact effect of each step on the pod and on a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kschedx.findings import RequirementMatch
from kschedx.fixes import steps as s
from kschedx.fixes.pod_edits import required_term, with_claim_status
from kschedx.fixes.proposal import Proposal, apply_step
from kschedx.framework.runtime import request_options
from kschedx.kube.types import Pod, PodAffinityTerm, PodResourceClaimStatus, Taint
from kschedx.releases import resolve
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

HONOR = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
APART = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
BESIDE = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
SSD: Manifest = {"key": "disk", "operator": "In", "values": ["ssd"]}
OPTIONS = request_options(resolve())
ARM: Manifest = {"key": "arch", "operator": "In", "values": ["arm"]}
NO_ARM = RequirementMatch(key="arch", operator="In", values=("arm",), actual="amd", matched=False)
AMD = RequirementMatch(key="arch", operator="In", values=("amd",), actual="amd", matched=True)


def asking(**resources: Manifest) -> Manifest:
    return {"name": "main", "image": "i", "resources": resources}


def cpu(amount: str, **more: object) -> Manifest:
    return {**asking(requests={"cpu": amount}), **more}


def at_most(resource: str, amount: int) -> Callable[[Pod], s.FixStep | None]:
    amounts = {resource: amount}
    return lambda pod: s.LowerRequests.of(pod, amounts, OPTIONS)


def spread(index: int, **changed: object) -> Callable[[Pod], s.FixStep | None]:
    def step(pod: Pod) -> s.FixStep:
        before = pod.spec.topology_spread_constraints[index]
        return s.ChangeRule(kind=s.RuleKind.SPREAD, index=index, before=before, after=replace(before, **changed))

    return step


def ports(*numbers: tuple[int, int]) -> list[Manifest]:
    return [{"name": "c", "ports": [{"containerPort": port, "hostPort": host} for port, host in numbers]}]


def required(*expressions: Manifest, **more: object) -> Manifest:
    terms = [{"matchExpressions": list(expressions), **more}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {"matchFields": []}}]}
SIDECAR = cpu("1", name="sidecar", restartPolicy="Always")
MOVE = s.UseHostPort(port=80, protocol="TCP", instead=8080)
DROP_ARM = s.DropRequirements(source="nodeAffinity", term=0, requirements=(NO_ARM,))


@pytest.mark.parametrize(
    ("before", "step", "after"),
    [
        pytest.param(
            {"containers": [cpu("3"), cpu("2", name="other")]},
            at_most("cpu", 4000),
            {"containers": [cpu("2"), cpu("2", name="other")]},
            id="the largest container gives way",
        ),
        pytest.param(
            {"containers": [cpu("1")], "initContainers": [cpu("5", name="a"), cpu("4", name="b")]},
            at_most("cpu", 4000),
            {"containers": [cpu("1")], "initContainers": [cpu("4", name="a"), cpu("4", name="b")]},
            id="init containers that ask for more",
        ),
        pytest.param(
            {
                "containers": [cpu("4")],
                "initContainers": [SIDECAR],
                "overhead": {"cpu": "500m"},
            },
            at_most("cpu", 4000),
            {
                "containers": [cpu("2500m")],
                "initContainers": [SIDECAR],
                "overhead": {"cpu": "500m"},
            },
            id="sidecars and overhead count",
        ),
        pytest.param(
            {"containers": [asking(requests={"acme.io/gpu": "4"}, limits={"acme.io/gpu": "4", "cpu": "9"})]},
            at_most("acme.io/gpu", 1),
            {"containers": [asking(requests={"acme.io/gpu": "1"}, limits={"acme.io/gpu": "1", "cpu": "9"})]},
            id="what may not be overcommitted",
        ),
        pytest.param(
            {"containers": [asking(requests={"cpu": "4"}, limits={"cpu": "4"})]},
            at_most("cpu", 1000),
            {"containers": [asking(requests={"cpu": "1"}, limits={"cpu": "4"})]},
            id="a limit of cpu stays",
        ),
        pytest.param(
            {"containers": ports((80, 80), (81, 81))}, MOVE, {"containers": ports((80, 8080), (81, 81))}, id="host port"
        ),
        pytest.param(
            {"containers": ports((80, 80)), "hostNetwork": True},
            MOVE,
            {"containers": ports((8080, 8080)), "hostNetwork": True},
            id="host port of the host's network",
        ),
        pytest.param(
            {"containers": ports((80, 80))},
            replace(MOVE, instead=0),
            {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
            id="host port given up",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            s.Tolerate(taints=(Taint(key="b", effect="NoExecute"), Taint(key="c", value="d", effect="NoSchedule"))),
            {
                "tolerations": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "b", "operator": "Exists", "effect": "NoExecute"},
                    {"key": "c", "operator": "Equal", "value": "d", "effect": "NoSchedule"},
                ]
            },
            id="tolerations are added",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": required(ARM, SSD)}},
            s.SelectInstead(source="nodeAffinity", term=0, wrong=NO_ARM, meant=AMD),
            {"affinity": {"nodeAffinity": required({**ARM, "values": ["amd"]}, SSD)}},
            id="an expression as it was meant",
        ),
        pytest.param(
            {"nodeSelector": {"arch": "arm", "disk": "ssd"}},
            s.SelectInstead(source="nodeSelector", term=0, wrong=NO_ARM, meant=AMD),
            {"nodeSelector": {"disk": "ssd", "arch": "amd"}},
            id="a label as it was meant",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": required(ARM, SSD)}},
            DROP_ARM,
            {"affinity": {"nodeAffinity": required(SSD)}},
            id="one expression less",
        ),
        pytest.param({"affinity": {"nodeAffinity": required(ARM)}}, DROP_ARM, {}, id="the last expression"),
        pytest.param(
            {"affinity": {"nodeAffinity": {**required(ARM), **PREFERRED}}},
            DROP_ARM,
            {"affinity": {"nodeAffinity": PREFERRED}},
            id="preferences stay",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{**HONOR, "topologyKey": "host"}, HONOR]},
            spread(1, node_taints_policy="Honor"),
            {"topologySpreadConstraints": [{**HONOR, "topologyKey": "host"}, {**HONOR, "nodeTaintsPolicy": "Honor"}]},
            id="taints count in a spread",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{**HONOR, "nodeAffinityPolicy": "Ignore"}]},
            spread(0, node_affinity_policy="Honor"),
            {"topologySpreadConstraints": [{**HONOR, "nodeAffinityPolicy": "Honor"}]},
            id="node affinity counts in a spread",
        ),
        pytest.param(
            {"topologySpreadConstraints": [HONOR]},
            spread(0, when_unsatisfiable="ScheduleAnyway", min_domains=None),
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            id="spread anyway",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{**HONOR, "minDomains": 3}]},
            spread(0, min_domains=2),
            {"topologySpreadConstraints": [HONOR]},
            id="fewer domains",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            s.RemoveGates(gates=("a",)),
            {"nodeName": "n"},
            id="gates",
        ),
        pytest.param({"nodeName": "n"}, s.DropNodeName(wanted="n"), {}, id="the name of a node"),
        pytest.param(
            {"containers": [asking(requests={"acme.io/gpus": "1", "cpu": "1"}, limits={"acme.io/gpus": "1"})]},
            s.RequestInstead(resource="acme.io/gpus", meant="acme.io/gpu"),
            {"containers": [asking(requests={"acme.io/gpu": "1", "cpu": "1"}, limits={"acme.io/gpu": "1"})]},
            id="a resource under another name",
        ),
    ],
)
def test_the_pod(before: Any, step: s.FixStep | Callable[[Pod], s.FixStep | None], after: Any) -> None:
    assert changed(before, step) == Snapshot.from_objects([pod("p", spec=after)]).pods[0].spec


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_a_required_term_becomes_a_preference_of_the_highest_weight(kind: str) -> None:
    rule, kept = "requiredDuringSchedulingIgnoredDuringExecution", [{"weight": 5, "podAffinityTerm": BESIDE}]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    before = {"affinity": {kind: {rule: [APART, BESIDE], preferred: kept}}}
    after = {"affinity": {kind: {rule: [BESIDE], preferred: [*kept, {"weight": 100, "podAffinityTerm": APART}]}}}
    anti = kind == "podAntiAffinity"
    term = required_term(Snapshot.from_objects([pod("p", spec=before)]).pods[0], 0, anti=anti)
    assert isinstance(term, PodAffinityTerm)
    step = s.PreferTerm(number=1, selector="app=web", rule=term, anti=anti)
    assert changed(before, step) == Snapshot.from_objects([pod("p", spec=after)]).pods[0].spec


HAS_RULE = Snapshot.from_objects([pod("p", spec={"topologySpreadConstraints": [HONOR]})]).pods[0]


@pytest.mark.parametrize(
    "step",
    [spread(0, min_domains=2)(HAS_RULE), replace(DROP_ARM, term=1)],
    ids=["spread constraint", "node affinity term"],
)
def test_a_pod_of_an_earlier_template_lacks_the_rule_and_stays_the_same(step: s.FixStep) -> None:
    arm: Manifest = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    spec: Manifest = {"affinity": {"nodeAffinity": required(arm)}}
    assert changed(spec, step) == Snapshot.from_objects([pod("p", spec=spec)]).pods[0].spec


def changed(spec: Any, step: s.FixStep | Callable[[Pod], s.FixStep | None]) -> object:
    snapshot = Snapshot.from_objects([pod("p", spec=spec)])
    before = snapshot.pods[0]
    made = step if isinstance(step, s.FixStep) else step(before)
    assert made is not None
    return apply_step(made, Proposal(pod=before), snapshot).pod.spec


CORDON = "node.kubernetes.io/unschedulable:NoSchedule"
ROW = ClusterRow(0)


@pytest.mark.parametrize(
    ("before", "step", "after"),
    [
        pytest.param(
            node("n", taints=["a=b:NoSchedule", CORDON], unschedulable=True),
            s.Uncordon(row=ROW, node="n"),
            node("n", taints=["a=b:NoSchedule"]),
            id="uncordoned",
        ),
        pytest.param(
            node("n", taints=["a=b:NoSchedule", "a=b:NoExecute"]),
            s.RemoveTaints(row=ROW, node="n", taints=(Taint(key="a", value="b", effect="NoSchedule"),)),
            node("n", taints=["a=b:NoExecute"]),
            id="a taint less",
        ),
        pytest.param(
            node("n", labels={"a": "b"}),
            s.LabelNode(row=ROW, node="n", labels=(("c", "d"),)),
            node("n", labels={"a": "b", "c": "d"}),
            id="a label more",
        ),
    ],
)
def test_the_node(before: Any, step: s.FixStep, after: Any) -> None:
    snapshot = Snapshot.from_objects([before, pod("p")])
    result = apply_step(step, Proposal(pod=snapshot.pods[0]), snapshot)
    assert result.nodes == {ROW: Snapshot.from_objects([after]).cluster.nodes[0]}
    assert apply_step(step, result, snapshot) == result, "a step is made once"


@pytest.mark.parametrize(
    ("taints", "command"),
    [
        (
            (Taint(key="a", value="b", effect="NoSchedule"), Taint(key="c", effect="NoExecute")),
            "kubectl taint node n a=b:NoSchedule- c:NoExecute-",
        ),
        ((Taint(key="d"),), '# no command: "d:" is not a name that Kubernetes accepts'),
    ],
    ids=["with and without a value", "without an effect, which only a dump can have"],
)
def test_the_command_that_removes_taints(taints: tuple[Taint, ...], command: str) -> None:
    assert s.RemoveTaints(row=ROW, node="n", taints=taints).commands() == (command,)


def test_the_status_of_a_claim_replaces_the_former_one() -> None:
    old, other = ({"name": name, "resourceClaimName": f"{name}-1"} for name in ("gpu", "nic"))
    before = Snapshot.from_objects([pod("p", status={"resourceClaimStatuses": [old, other]})]).pods[0]
    made_anew = PodResourceClaimStatus(name="gpu", resource_claim_name="gpu-2")
    result = with_claim_status(before, made_anew).status.resource_claim_statuses
    assert [(item.name, item.resource_claim_name) for item in result] == [("nic", "nic-1"), ("gpu", "gpu-2")]


def test_the_status_of_the_pod_does_not_change_a_node() -> None:
    snapshot = Snapshot.from_objects([node("n", unschedulable=True), pod("p")])
    before = snapshot.pods[0]
    proposal = apply_step(s.Uncordon(row=ROW, node="n"), Proposal(pod=before), snapshot)
    status = PodResourceClaimStatus(name="gpu", resource_claim_name="gpu-1")
    proposal = replace(proposal, pod=with_claim_status(proposal.pod, status))
    targets = [(change.target.kind, change.target.name) for change in proposal.changes(before, snapshot)]
    assert targets == [("Node", "n"), ("Pod", "p")]

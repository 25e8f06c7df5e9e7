"""The words of fixes, step by step."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.findings import RequirementMatch
from kschedx.fixes import FixCertainty, TriedFix
from kschedx.fixes import steps as s
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.types import Taint
from kschedx.snapshot.columns import ClusterRow

TEAM = Taint(key="team", value="a", effect="NoSchedule")
ROW = ClusterRow(0)


def requirement(key: str, operator: str, *values: str) -> RequirementMatch:
    return RequirementMatch(key=key, operator=operator, values=values, actual=None, matched=False)


def dropped(*requirements: RequirementMatch) -> s.FixStep:
    return s.DropRequirements(source="nodeSelector", term=0, requirements=requirements)


def victims(*names: str) -> tuple[s.Victim, ...]:
    return tuple(s.Victim(pod=name, priority=row) for row, name in enumerate(names))


def repair(*keys: str) -> s.RepairNode:
    faults = tuple(s.NodeFault(taint=Taint(key=key, effect="NoSchedule"), by="x") for key in keys)
    return s.RepairNode(row=ROW, node="n", faults=faults)


def gpus(before: int, after: int) -> s.NodeAmount:
    return s.NodeAmount(resource="a.b/gpu", before=before, after=after)


def huge(before: int, after: int) -> s.NodeAmount:
    return s.NodeAmount(resource="hugepages-1Gi", before=before, after=after)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (s.RemoveGates(gates=("a", "b")), "remove scheduling gates a and b"),
        (s.Tolerate(taints=(TEAM, Taint(key="b", effect="NoExecute"))), "tolerate team=a:NoSchedule and b:NoExecute"),
        (dropped(requirement("disk", "=", "ssd")), "stop requiring disk=ssd"),
        (
            dropped(requirement("disk", "In", "ssd"), requirement("zone", "In", "a", "b")),
            "stop requiring disk=ssd and zone in (a, b)",
        ),
        (dropped(requirement("zone", "NotIn", "a", "b")), "stop requiring zone not in (a, b)"),
        (
            dropped(requirement("gpu", "Exists"), requirement("old", "DoesNotExist")),
            "stop requiring gpu exists and old does not exist",
        ),
        (
            dropped(requirement("cores", "Gt", "8"), requirement("age", "Lt", "3")),
            "stop requiring cores > 8 and age < 3",
        ),
        (
            s.SelectInstead(
                source="nodeSelector",
                term=0,
                wrong=requirement("disk", "=", "sdd"),
                meant=requirement("disk", "=", "ssd"),
            ),
            "select disk=ssd instead of disk=sdd",
        ),
        (s.UseHostPort(port=80, protocol="TCP", instead=81), "use host port 81 instead of 80"),
        (s.UseHostPort(port=80, protocol="TCP", instead=0), "remove host port 80"),
        (s.Uncordon(row=ROW, node="n"), "uncordon n"),
        (s.RemoveTaints(row=ROW, node="n", taints=(TEAM,)), "remove taint team=a:NoSchedule from n"),
        (s.LabelNode(row=ROW, node="n", labels=(("a", "1"), ("b", "2"))), "label n a=1, b=2"),
        (s.DeletePods(victims=victims("x/a", "x/b")), "delete x/a and x/b (priority 1)"),
        (
            s.DeletePods(victims=victims("x/a"), node="n", by_preemption=True, or_elsewhere=2),
            "wait for preemption to evict x/a (priority 0) from n, or pods on 2 other nodes",
        ),
        (repair("node.kubernetes.io/not-ready"), "repair n: it is NotReady"),
        (repair("node.kubernetes.io/unreachable"), "repair n: it is unreachable"),
        (repair("node.kubernetes.io/disk-pressure"), "free disk space on n"),
        (
            repair("node.kubernetes.io/memory-pressure", "node.kubernetes.io/not-ready"),
            "free memory on n and repair n: it is NotReady",
        ),
        (repair("node.kubernetes.io/pid-pressure"), "free process IDs on n"),
        (repair("node.kubernetes.io/network-unavailable"), "repair the network of n"),
        (repair("node.cloudprovider.kubernetes.io/shutdown"), "start n: it is shut down"),
        (repair("node.cloudprovider.kubernetes.io/uninitialized"), "repair x, so that it initializes n"),
        (repair("node.cilium.io/agent-not-ready"), "repair the agent of x on n, which then removes its taint"),
        (
            s.TakeOldFirst(owner="web", victims=victims("x/a"), is_single=True),
            "set strategy Recreate on Deployment web, so that x/a goes first",
        ),
        (
            s.AwaitController(gates=("kueue.x-k8s.io/admission",), controller="Kueue"),
            "then wait for Kueue to admit the pod",
        ),
        (
            s.NextAttempt(released=(("a/b", ResourceClaim()),)),
            "wait: kube-scheduler deallocates resource claim a/b and retries",
        ),
        (
            s.OfferResource(row=ROW, node="n", resource="a.b/gpu", amounts=(gpus(0, 2),), label="a.b/gpu.present=true"),
            "run the device plugin for a.b/gpu on n (a.b/gpu.present=true)",
        ),
        (
            s.OfferResource(row=ROW, node="n", resource="hugepages-1Gi", amounts=(huge(0, 2 << 30),)),
            "reserve 2Gi of the memory of n as hugepages-1Gi, then restart its kubelet",
        ),
        (
            s.DeletePods(victims=victims("x/a", "x/b", "x/c", "x/d", "x/e"), node="n"),
            "delete x/a (priority 0), x/b (priority 1), x/c (priority 2), and 2 more on n",
        ),
    ],
)
def test_a_step(step: s.FixStep, words: str) -> None:
    assert step.title == words


def fix(
    *steps: s.FixStep,
    remaining: Mapping[str, int] | None = None,
    deciding: tuple[str, ...] = (),
    extender: bool = False,
) -> TriedFix:
    return TriedFix(
        steps=steps,
        certainty=FixCertainty.VERIFIED,
        changes=(),
        feasible_nodes=(),
        remaining=remaining or {},
        deciding=deciding,
        extender_decides=extender,
    )


UNCORDON = s.Uncordon(row=ROW, node="n")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (fix(s.Tolerate(taints=(TEAM,)), UNCORDON), "tolerate team=a:NoSchedule, uncordon n"),
        (
            fix(UNCORDON, remaining={"NodePorts": 1, "NodeAffinity": 2}),
            "uncordon n (then still NodePorts on 1 node, NodeAffinity on 2 nodes)",
        ),
        (fix(UNCORDON, deciding=("Acme",)), "uncordon n, then Acme decides"),
        (fix(UNCORDON, deciding=("Acme",), extender=True), "uncordon n, then Acme and the extender decide"),
    ],
)
def test_a_title_has_every_step_and_the_rest(value: TriedFix, words: str) -> None:
    assert value.title == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (fix(UNCORDON), ("kubectl uncordon n",)),
        (
            fix(s.RemoveTaints(row=ROW, node="n", taints=(TEAM,)), UNCORDON),
            ("kubectl taint node n team=a:NoSchedule-", "kubectl uncordon n"),
        ),
        (
            fix(s.LabelNode(row=ROW, node="n", labels=(("disk", "a b"),))),
            ('# no command: "a b" is not a name that Kubernetes accepts',),
        ),
        (
            fix(s.DeletePods(victims=victims("shop/a", "ml/b"))),
            ("kubectl delete pod a -n shop", "kubectl delete pod b -n ml"),
        ),
        # what nobody types: a patch, and what kube-scheduler is about to do
        (fix(s.Tolerate(taints=(TEAM,)), UNCORDON), ()),
        (fix(s.DeletePods(victims=victims("shop/a"), by_preemption=True)), ()),
    ],
)
def test_commands_cover_all_steps_or_are_left_out(value: TriedFix, words: tuple[str, ...]) -> None:
    assert value.commands == words

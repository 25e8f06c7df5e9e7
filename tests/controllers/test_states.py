"""The table of states: precedence, headline, and exit code."""

from __future__ import annotations

from typing import get_args

import pytest

from kschedx.controllers import states
from kschedx.controllers.state_causes import causes

WEB = "shop/deploy/web"

READS: list[tuple[states.Lifecycle, str, int]] = [
    (states.NamespaceTerminating(subject=WEB, namespace="shop"), "gets no pods: namespace shop is being deleted", 1),
    (
        states.BeingDeleted(subject=WEB, since="2026-01-02T00:00:00Z"),
        "is being deleted (since 2026-01-02T00:00:00Z)",
        1,
    ),
    (states.Finished(subject=WEB, phase="Succeeded"), "has finished: Succeeded", 0),
    (states.Failed(subject=WEB, reason="Evicted", node="n"), "has failed on n: Evicted", 1),
    (
        states.WaitingForKubelet(
            subject=WEB, node="w0", waits=states.Waits.SANDBOX, container="app", reason="ContainerCreating"
        ),
        "is scheduled to w0 and waits for its volumes or network: ContainerCreating",
        0,
    ),
    (
        states.WaitingForKubelet(subject=WEB, node="w0", waits=states.Waits.INIT, container="migrate"),
        "is scheduled to w0 and waits for init container migrate",
        0,
    ),
    (states.ScaledToZero(subject=WEB, field="spec.replicas"), "is scaled to zero: spec.replicas is 0", 0),
    (states.Suspended(subject=WEB, kind="Job"), "is suspended: spec.suspend is true", 1),
    (states.Suspended(subject=WEB, kind="Job", queue="q"), "is suspended: it waits for quota in Kueue (queue q)", 1),
    (
        states.Paused(subject=WEB, kind="Deployment", has_pods=True),
        "is paused: its changed pod template is not rolled out",
        1,
    ),
    (states.Refused(subject=WEB, message="", by="LimitRange"), "is not created: LimitRange refuses the pod", 1),
    (
        states.Refused(subject=WEB, message="", by="ResourceQuota", is_workload=True, has_pods=True),
        "gets no other pods: ResourceQuota refuses them",
        1,
    ),
]


@pytest.mark.parametrize(("facts", "reads", "code"), READS, ids=[type(item[0]).__name__ for item in READS])
def test_the_headline_of_a_state(facts: states.Lifecycle, reads: str, code: int) -> None:
    assert (states.headline(facts), states.row_of(facts).exit_code) == (f"{WEB} {reads}", code)


@pytest.mark.parametrize(
    ("message", "is_itself"),
    [
        ('namespaces "shop" not found', True),
        ('deployments.apps "web" is forbidden: exceeded quota', True),
        ('pods "web" is forbidden: exceeded quota', False),
        ('namespaces "other" not found', False),
        ('namespaces is forbidden: User "a" cannot list resource "namespaces"', False),
    ],
)
def test_a_refusal_is_of_the_workload_or_of_its_pods(message: str, *, is_itself: bool) -> None:
    refused = states.Refused(subject=WEB, message=message, by="the API server", is_workload=True)
    what = "is not created: the API server refuses it" if is_itself else "gets no pods: the API server refuses them"
    assert states.headline(refused) == f"{WEB} {what}"


def test_an_unknown_scheduler() -> None:
    runs = states.NoScheduler(subject=WEB, scheduler="mine", profiles=(), others=3)
    assert states.headline(runs) == f"{WEB}: scheduler mine decides about it, and its configuration is not known"
    assert states.row_of(runs).exit_code == 3


def test_an_ordinal_names_its_predecessor() -> None:
    waits = states.WaitingForOrdinal(subject="shop/sts/db", pod="db-2", predecessor="db-1", because="is not ready")
    assert states.headline(waits) == "shop/sts/db: db-2 is not created, because db-1 is not ready"


def test_every_state_has_one_row() -> None:
    named = {facts.__name__ for facts in get_args(states.Lifecycle)}
    rows = [row.name for row in states.STATES]
    assert len(rows) == len(set(rows))
    assert named == {row.name for row in states.STATES if "{s.verdict}" not in row.reads}


@pytest.mark.parametrize("is_bound_by_hand", [True, False])
def test_a_message_does_not_decide_which_component_assigns_the_next_pod(is_bound_by_hand: bool) -> None:
    state = states.RejectedByKubelet(
        subject=WEB,
        reason="NodeAffinity",
        message="denied by a policy about spec.nodeName",
        nodes=("n",),
        pods=2,
        is_bound_by_hand=is_bound_by_hand,
    )
    assert ("kube-scheduler assigns the next" in " ".join(causes(state))) is not is_bound_by_hand

"""Every command reports the same state of a pod or workload, with its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.cli.mcp.tools import ToolCall, answer
from kschedx.cli.output import Answer
from kschedx.cli.question import Question
from kschedx.controllers.states import STATES
from kschedx.controllers.workloads import Owners, Workload
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx
from tests.inquiry.test_lifecycle import (
    CASES,
    COSCHEDULING,
    DUMPED,
    FAILURE,
    LARGE,
    OF_KUEUE,
    OLD,
    ROLLED_OUT,
    SINCE,
    SMALL,
    USING,
    owned,
    replica,
    reports,
    workload,
)
from tests.storage_builders import claim, csi_node, storage_class

NODE = {**node("n", allocatable={"cpu": "8", "memory": "8Gi", "pods": "20"})}
UNFIT = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 x.",
}
WHOLE: Manifest = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}
HALF: Manifest = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}
STALLED: Manifest = {**FAILURE, "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
UNAVAILABLE: Manifest = {**FAILURE, "type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}
GROUP: Manifest = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "pg", "namespace": "default"},
    "spec": {"minMember": 2},
}
MEMBERS = [pod(f"w-{each}", labels={"scheduling.x-k8s.io/pod-group": "pg"}, spec=LARGE) for each in "ab"]
HALVES = [{**each, "spec": {**at(each, "spec"), **HALF}} for each in MEMBERS]
LATE = storage_class("late", provisioner="disk.example.com")
RUNS = pod(
    "low",
    on="n",
    metadata={"creationTimestamp": SINCE},
    spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]},
)
GOING: Manifest = {**RUNS, "metadata": {**at(RUNS, "metadata"), "deletionTimestamp": SINCE}}
HIGH = pod("high", priority=1000, spec=SMALL)
NOMINATED: Manifest = {**HIGH, "status": {"phase": "Pending", "nominatedNodeName": "n"}}

REPLICATED = {"rs": "ReplicaSet", "sts": "StatefulSet", "job": "Job"}
FAILING = [
    *(claim("d", storage_class="late"), LATE, csi_node("n")),
    reports("PersistentVolumeClaim", "d", "ProvisioningFailed", "disk full"),
]
PINNED: Manifest = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
            }
        }
    }
}


def replicas_using(kind: str, spec: Manifest, status: Manifest | None = None) -> list[Manifest]:
    """Return a workload with two pending pods; a DaemonSet has one."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**SMALL, **spec}}
    counts = {"Job": {"parallelism": 2, "completions": 2}, "DaemonSet": {}}.get(kind, {"replicas": 2})
    made = workload(kind, template=template)
    at(made, "spec").update(counts)
    names = [f"web-{number}" for number in range(1 if kind == "DaemonSet" else 2)]
    pods = [
        pod(
            name,
            labels={"app": "web"},
            metadata=owned(kind, "web"),
            spec={**SMALL, **spec},
            status={"phase": "Pending", **(status or {})},
        )
        for name in names
    ]
    return [made, *pods]


BY_SECOND: Manifest = {
    **reports("Pod", "x", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
    "source": {"component": "second"},
}
OF_SECOND = pod("my-scheduler-x", on="n", metadata=owned("ReplicaSet", "my-scheduler"), status={"phase": "Running"})

DECIDED: list[tuple[str, str, list[Manifest]]] = [
    ("Schedulable", "pod/x", [pod("x", spec=SMALL)]),
    ("Unschedulable", "pod/x", [pod("x", spec=LARGE)]),
    ("Unschedulable", "pod/high", [RUNS, HIGH]),
    ("Nominated", "pod/high", [GOING, NOMINATED]),
    ("Gated", "pod/x", [pod("x", spec={"schedulingGates": [{"name": "example.com/gate"}]})]),
    ("NoScheduler", "pod/x", [pod("x", spec={"schedulerName": "default-schedulr"})]),
    ("NoScheduler", "pod/x", [OF_SECOND, pod("x", spec={"schedulerName": "my-scheduler", **SMALL})]),
    *(
        ("Unschedulable", "pod/x", [pod("x", spec={"schedulerName": name, **LARGE}), *events])
        for name, events in (
            ("gke.io/optimize-utilization-scheduler", []),
            ("second", [BY_SECOND]),
        )
    ),
    ("OtherScheduler", "pod/x", [pod("x", spec={"schedulerName": "volcano"})]),
    ("WaitingForGang", "pod/w-a", [GROUP, *MEMBERS]),
    ("WaitingForGang", "pod/w-a", [GROUP, *HALVES]),
    (
        "WaitingForGang",
        "pod/w-a",
        [GROUP, *({**each, "status": {"phase": "Pending", "conditions": [UNFIT]}} for each in HALVES)],
    ),
    ("Contradicted", "pod/x", [pod("x", status={"phase": "Pending", "conditions": [UNFIT]})]),
    (
        "Contradicted",
        "rs/web",
        [
            workload("ReplicaSet", replicas=1),
            pod("web-x", metadata=owned("ReplicaSet", "web"), status={"phase": "Pending", "conditions": [UNFIT]}),
        ],
    ),
    (
        "NotBound",
        "pod/x",
        [
            *(claim("d", storage_class="late"), LATE, csi_node("n"), pod("x", spec=USING)),
            reports("Pod", "x", "FailedScheduling", 'running PreBind plugin "VolumeBinding": timed out'),
        ],
    ),
    *(("NotBound", f"{short}/web", [*FAILING, *replicas_using(kind, USING)]) for short, kind in REPLICATED.items()),
    ("NotBound", "ds/web", [*FAILING, *replicas_using("DaemonSet", {**USING, **PINNED})]),
    *(
        ("Contradicted", f"{short}/web", replicas_using(kind, SMALL, {"conditions": [UNFIT]}))
        for short, kind in REPLICATED.items()
    ),
    (
        "CannotStart",
        "pod/x",
        [
            *(claim("d", storage_class="fast"), storage_class("fast", provisioner="disk.csi.example.com")),
            *(csi_node("n"), pod("x", spec=USING)),
        ],
    ),
    (
        "RolloutStalled",
        "deploy/web",
        [
            {**workload("Deployment"), "status": {"conditions": [STALLED]}},
            *(ROLLED_OUT, replica("web-1-x", "ReplicaSet", "web-1", ready=False)),
        ],
    ),
    (
        "NotAvailable",
        "deploy/web",
        [
            {**workload("Deployment"), "status": {"conditions": [UNAVAILABLE]}},
            *(ROLLED_OUT, replica("web-1-x", "ReplicaSet", "web-1", ready=False)),
        ],
    ),
]  # fmt: skip
KNOWN = [*DECIDED, *(("", target, objects) for target, objects, _, _ in (*CASES, *OF_KUEUE))]
PENDING = frozenset({
    "BeingDeleted", "BoundToMissingNode", "CannotStart", "ComponentDown", "Contradicted", "Gated",
    "NamespaceTerminating", "NoScheduler", "Nominated", "NotBound", "NotObserved", "OfEndedJob", "OtherScheduler",
    "Refused", "RejectedByKubelet", "Schedulable", "Unschedulable", "WaitingForGang", "WaitingForKubelet",
    "WaitingForOldPods", "WaitingForOrdinal",
})  # fmt: skip
"""States of pods that `kubectl get pods` shows as Pending, and of workloads that lack pods."""
NO_PODS = ("NotObserved", "Refused", "RejectedByKubelet", "WaitingForOldPods", "WaitingForOrdinal")
SKIPPED = PENDING - {
    "BoundToMissingNode",
    "CannotStart",
    "ComponentDown",
    "Contradicted",
    "NotBound",
    "RejectedByKubelet",
    "Schedulable",
    "WaitingForGang",
    "WaitingForKubelet",
}
"""States in which a simulation gives the pod a node only by preemption."""
AGREED = frozenset({
    "CannotStart", "ComponentDown", "Contradicted", "Gated", "NoScheduler", "NotBound", "OtherScheduler",
    "RejectedByKubelet", "Unschedulable", "WaitingForGang",
})  # fmt: skip
"""States at the end of a simulation without changes."""
OF_ONE_POD = frozenset({
    "BeingDeleted", "BoundToMissingNode", "Failed", "Finished", "KeptBySidecar", "Nominated", "OfEndedJob",
    "OnLostNode", "ResizeHeld", "WaitingForKubelet",
})  # fmt: skip
"""States of a pod that do not apply to more replicas."""
ELSEWHERE = {"Error", "NotChanged", "Running", "ScaleUp", "Undecided", "UnknownPods", "WithoutNode"}
"""States that do not occur in a small stored cluster; each has its own test."""


def write(folder: Path, name: str, objects: list[Manifest]) -> tuple[str, ...]:
    """Write a cluster, and return the options for it."""
    (folder / "config.yaml").write_text(json.dumps(COSCHEDULING))
    nodes = [] if DUMPED in objects else [NODE]
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *objects]}))
    return ("--config", "config.yaml") if name == "WaitingForGang" else ()


def test_pods_of_a_deployment_belong_to_its_replica_set() -> None:
    pods = [replica("web-1-a", "ReplicaSet", "web-1"), replica("web-0-a", "ReplicaSet", "web-0")]
    snapshot = Snapshot.from_objects([workload("Deployment"), ROLLED_OUT, OLD, *pods])
    owned_rows = (
        Owners(snapshot).members(snapshot.pods, Workload(kind, "default", name))
        for kind, name in (("ReplicaSet", "web-1"), ("ReplicaSet", "web-0"), ("Deployment", "web"))
    )
    assert [*owned_rows] == [[0], [1], [0, 1]]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "target", "objects"), KNOWN)
def test_every_command_reports_the_same_state(tmp_path: Path, name: str, target: str, objects: list[Manifest]) -> None:
    gang = write(tmp_path, name, objects)

    def requested(*command: str) -> tuple[int, dict[str, Any]]:
        outcome = kschedx(*command, "-s", "cluster.json", *gang, "-o", "json", cwd=tmp_path)
        result: dict[str, Any] = json.loads(outcome.out)
        return outcome.code, result

    code, alone = requested("why", target)
    state = alone["state"]["name"]
    row = next(item for item in STATES if item.name == state)
    assert (name or state, int(row.exit_code)) == (state, code)

    many_code, many = requested("why", "--all-pending")
    of_all = {item["state"]["name"] for item in many["items"]} | ({"Refused"} if many.get("refused") else set())
    if many.get("undecided"):
        of_all.add(state)
    is_running = (state, target) == ("BeingDeleted", "sts/web")  # its pod is not Pending while its containers stop
    if (state in PENDING and not is_running and not target.startswith(("deploy/web", "ns/"))) or state in NO_PODS:
        assert (state in of_all, many_code) == (True, code)

    config = str(tmp_path / "config.yaml") if gang else None
    question = Question(snapshot=(str(tmp_path / "cluster.json"),), config=config)
    if name:  # a case of each state is enough for a tool that calls the command
        by_mcp = answer(ToolCall("pod_explain", question, {"target": target, "detail": "full"}, tmp_path))
        assert isinstance(by_mcp, Answer)
        assert (by_mcp.exit_code, at(by_mcp.report.document(), "document.state")["name"]) == (code, state)

    key = f"default/{target.partition('/')[2]}"
    simulated_code, simulated = requested("simulate")
    if state in SKIPPED and not simulated["evicted"]:
        assert key not in simulated["placed"]
    is_custom = target.startswith("rollout/")  # a simulation creates no pods of custom resources
    agreed = AGREED if target.startswith("pod/") else () if is_custom else NO_PODS
    if state in agreed and not simulated["evicted"]:
        assert simulated_code == code
    if DUMPED in objects:
        return
    _, here = requested("why", "node/n")
    assert [item["name"] for item in here["states"] if item.get("subject") == key] in ([], [state])
    fits = [item["pod"] for item in here["pending"] if item["fits"]]
    assert (key in fits) <= (state == "Schedulable")
    if target.startswith("ns/"):
        return
    fit_code, fit = requested("fit", target)
    of_more = fit["state"]["name"]
    assert fit_code == next(item for item in STATES if item.name == of_more).exit_code
    assert of_more == state or (state in OF_ONE_POD and of_more in ("Schedulable", "Unschedulable"))
    if name:
        by_mcp = answer(ToolCall("capacity_check", question, {"target": target}, tmp_path))
        assert isinstance(by_mcp, Answer)
        assert by_mcp.exit_code == fit_code


@pytest.mark.parametrize("command", [("simulate",), ("why", "--all-pending"), ("why", "rs/web")])
def test_a_refusal_is_an_answer_though_a_dump_has_no_pods(tmp_path: Path, command: tuple[str, ...]) -> None:
    items = [NODE, {**workload("ReplicaSet", replicas=1), "status": {"conditions": [FAILURE]}}]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    assert kschedx(*command, "-s", "cluster.json", cwd=tmp_path).code == 1


def test_every_state_is_tested(tmp_path: Path) -> None:
    names = set()
    for name, target, objects in KNOWN:
        gang = write(tmp_path, name, objects)
        result = kschedx("why", target, "-s", "cluster.json", *gang, "-o", "json", cwd=tmp_path)
        names.add(json.loads(result.out)["state"]["name"])
    assert {state.name for state in STATES} - names == ELSEWHERE

"""Why a NodePool adds no node, and why a NodeClaim has none: the state, its causes, and the fixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kschedx.karpenter.scheduler import MOST_TYPES
from tests.builders import at
from tests.cli.manifests import changed, write
from tests.command import kschedx
from tests.inquiry.objects import answer_of
from tests.karpenter.test_cluster import READY, ZONE, Json, node, node_class, pod, pool
from tests.karpenter.test_devices import claim as device_claim
from tests.karpenter.test_instance_type_limit import TWO_FAMILIES, instance_type

ARCH, TYPE = "kubernetes.io/arch", "node.kubernetes.io/instance-type"
CLAIM_STAGES = ("Launched", "Registered", "Initialized")
ID = "aws:///eu-1a/i-0abc"
POOL = pool("general", {"key": TYPE, "operator": "In", "values": ["m6i.xlarge"]})
SINCE = "2026-01-01T00:00:00Z"
DELETED: Json = {"deletionTimestamp": SINCE}
BUDGET: Json = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
}
EC2 = node_class("eu-1a")


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def unready(*conditions: Json, name: str = "default") -> Json:
    stored = changed(POOL, "spec.template.spec.nodeClassRef.name", name)
    ready = condition("Ready", "False", "UnhealthyDependents", "NodeClassReady=False")
    kept = [it for it in READY if it["type"] not in {"Ready", *(other["type"] for other in conditions)}]
    return {**stored, "status": {"conditions": [*kept, *conditions, ready]}}


def claim(*conditions: Json, stages: int = 0, name: str = "general-x", **metadata: Any) -> Json:
    """Return a NodeClaim that has reached this number of stages."""
    reached = [condition(kind, "True") for kind in CLAIM_STAGES[:stages]]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "general", TYPE: "m6i.xlarge"}, **metadata},
        "spec": {},
        "status": {"conditions": [*reached, *conditions], **({"providerID": ID} if stages else {})},
    }


def machine(**spec: Any) -> Json:
    """Return the node of the NodeClaim."""
    made = {**node(), "spec": {"providerID": ID, **spec}}
    return changed(made, "metadata.name", "ip-1")


def running(name: str = "db-0", **metadata: Any) -> Json:
    made = pod(nodeName="ip-1")
    return {**made, "metadata": {**at(made, "metadata"), "name": name, **metadata}, "status": {"phase": "Running"}}


def no_capacity(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name},
        "reason": "InsufficientCapacityError",
        "message": "UnfulfillableCapacity: none left",
        "source": {"component": "karpenter"},
    }


def of_devices() -> Json:
    made = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    return changed(made, "spec.containers.0.resources.claims", [{"name": "gpu"}])


OF_DEVICES = of_devices()
FULL = [node(), changed(claim(stages=3), "status.providerID", "aws:///one")]


@pytest.mark.parametrize(
    ("objects", "code", "does", "cause", "fix"),
    [
        ([POOL, EC2], 0, "adds no node: no pod is pending", "it has 0 nodes", ""),
        ([POOL, EC2, *FULL, pod()], 0, "adds 1 node for 1 pending pod", "if the cloud has capacity: default/web", ""),
        (
            [
                unready(
                    condition("NodeClassReady", "False", "NodeClassNotFound", "NodeClass not found"), name="defalt"
                ),
                EC2,
            ],
            1,
            "adds no node: it is not ready",
            "there is no EC2NodeClass defalt (did you mean default?)",
            "set nodeClassRef.name of NodePool general to default instead of defalt",
        ),
        (
            [
                unready(condition("NodeClassReady", "False", "SubnetsNotFound", "none")),
                {**EC2, "status": {"conditions": [condition("SubnetsReady", "False", "SubnetsNotFound", "no match")]}},
            ],
            1,
            "adds no node: it is not ready",
            "EC2NodeClass default: SubnetsReady=False (SubnetsNotFound): no match",
            "repair EC2NodeClass default: SubnetsReady=False (SubnetsNotFound): no match",
        ),
        (
            [unready(condition("ValidationSucceeded", "False", "NodePoolValidationFailed", "label x is restricted"))],
            1,
            "adds no node: it is not ready",
            "ValidationSucceeded=False (NodePoolValidationFailed): label x is restricted",
            "correct NodePool general: label x is restricted",
        ),
        (
            [changed(POOL, "metadata.deletionTimestamp", SINCE), *FULL],
            1,
            "is being deleted",
            "Karpenter drains its 1 node and adds no others to it",
            "create a NodePool to replace general",
        ),
        (
            [{**POOL, "spec": {**POOL["spec"], "replicas": 2}}, EC2, *FULL],
            1,
            "lacks 1 of its 2 nodes",
            "it is static: pending pods do not change its 2 replicas",
            "see in the logs of Karpenter why it creates no NodeClaim",
        ),
        (
            [{**POOL, "spec": {**POOL["spec"], "replicas": 2}}, EC2],
            1,
            "lacks 2 of its 2 nodes",
            "Karpenter has created no NodeClaim for 2 nodes",
            "set feature gate StaticCapacity=true of Karpenter",
        ),
        (
            [{**POOL, "spec": {**POOL["spec"], "replicas": 2, "limits": {"nodes": "1"}}}, EC2, *FULL],
            1,
            "lacks 1 of its 2 nodes",
            "Karpenter has created no NodeClaim for 1 node",
            "raise the limit of NodePool general from 1 to 2 nodes",
        ),
        (
            [changed(POOL, "metadata.deletionTimestamp", SINCE)],
            1,
            "is being deleted",
            "Karpenter adds no node to it",
            "create",
        ),
        (
            [{**POOL, "spec": {**POOL["spec"], "limits": {"cpu": "4"}}}, EC2, *FULL, pod()],
            1,
            "adds no node: its limit leaves no room for another node",
            "default/web: limit reached: 4 of 4 cpu in use",
            "raise the limit of NodePool general from 4 to 8 cpu",
        ),
        (
            [
                pool("general", *({"key": ARCH, "operator": "In", "values": [it]} for it in ("amd64", "arm64"))),
                EC2,
                pod(),
            ],
            1,
            "adds no node: no instance type meets all of its requirements",
            f"its requirements of {ARCH} exclude each other",
            f"correct the requirements of NodePool general ({ARCH})",
        ),
        (
            [pool("general", {"key": ZONE, "operator": "In", "values": ["eu-1c"]}), EC2, pod()],
            1,
            "adds no node: no instance type meets all of its requirements",
            f"it requires {ZONE} eu-1c, and EC2NodeClass default has subnets in eu-1a only",
            "add a subnet in eu-1c to EC2NodeClass default",
        ),
        (
            [pool(), EC2, pod()],
            3,
            "is undecided: whether an instance type fits 1 pending pod is not known",
            "default/web: none of its instance types is known here",
            "",
        ),
        (
            [POOL, EC2, *FULL, pod(), no_capacity("general-abcde")],
            1,
            "adds no node: the cloud has no capacity for it",
            "it has 1 node",
            "let NodePool general use other instance types, zones, or capacity types",
        ),
        (
            [POOL, {**POOL, "metadata": {"name": "spot"}, "spec": {**POOL["spec"], "weight": 9}}, EC2, *FULL, pod()],
            0,
            "adds no node: the pending pods get nodes of NodePool spot",
            "Karpenter tries spot first: its weight is 9, that of general is 0",
            "",
        ),
        (
            [POOL, EC2, pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])],
            3,
            "is undecided: which pods need its nodes is not known",
            "the dump holds no PersistentVolumeClaims and PersistentVolumes",
            "",
        ),
        (
            [POOL, EC2, claim(condition("Launched", "Unknown", "LaunchFailed", "not authorized")), pod()],
            1,
            "adds no node: Karpenter waits until a NodeClaim is launched",
            "NodeClaim general-x has no node: its instance is not launched",
            "repair what keeps NodeClaim general-x from launching: not authorized",
        ),
        (
            [POOL, EC2, *FULL, OF_DEVICES, device_claim("gpu")],
            1,
            "adds no node: Karpenter tries it for no pending pod",
            "default/web: ResourceClaims are not supported",
            "",
        ),
    ],
)
def test_a_node_pool_is_answered_by_what_karpenter_checks_first(
    objects: list[Json], code: int, does: str, cause: str, fix: str
) -> None:
    answer = answer_of("nodepool/general", *objects)
    assert answer.headline.startswith(f"nodepool/general {does}")
    assert (answer.code, cause) == (code, next((it for it in answer.causes if it == cause), answer.causes))
    assert any(title.startswith(fix) for title in answer.fixes) if fix else not answer.fixes


def test_a_static_node_pool_repeats_no_fix_for_claims_that_wait_for_the_same() -> None:
    refused = condition("Launched", "Unknown", "LaunchFailed", "not authorized")
    claims = [claim(refused, name=f"general-{letter}") for letter in "abcde"]
    answer = answer_of("nodepool/general", {**POOL, "spec": {**POOL["spec"], "replicas": 6}}, EC2, *FULL, *claims)
    assert answer.causes[-1] == "2 more NodeClaims"
    assert answer.fixes == ["repair what keeps NodeClaim general-a from launching: not authorized"]


def test_a_node_pool_is_not_tried_after_one_that_fails_at_the_end(tmp_path: Path) -> None:
    types = [instance_type("dear", "rare", 9.0), *(instance_type(f"t-{i}", "plain", 1.0) for i in range(MOST_TYPES))]
    catalogue: Json = {"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": types}
    known = write(tmp_path, catalogue, name="types.yaml")
    cluster = write(tmp_path, pool("general", TWO_FAMILIES, weight=5), pool("other"), EC2, node(), pod())
    result = kschedx("why", "nodepool/other", "-s", cluster, "--instance-types", known, columns=200)
    assert "adds no node: Karpenter tries it for no pending pod" in result.out
    assert "Karpenter tries NodePool general first: Karpenter requests the 600 cheapest" in result.out


LAUNCHED = condition("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster")
TAINT: Json = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
LEAVING = changed(
    machine(taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]),
    "metadata.deletionTimestamp",
    "2026-01-01T00:00:00Z",
)
DRIFTED = condition("Drifted", "True", "AMIDrift", "AMIDrift")
GUARD = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.mark.parametrize(
    ("objects", "code", "does", "cause", "fix"),
    [
        (
            [claim(condition("Launched", "Unknown", "LaunchFailed", "VcpuLimitExceeded"))],
            1,
            "has no node: its instance is not launched",
            "Launched=Unknown (LaunchFailed): VcpuLimitExceeded",
            "raise the quota of the cloud account, or use instance types or zones with quota left: VcpuLimitExceeded",
        ),
        (
            [claim(condition("Launched", "Unknown", "LaunchFailed", "not authorized"))],
            1,
            "has no node: its instance is not launched",
            "Launched=Unknown (LaunchFailed): not authorized",
            "repair what keeps NodeClaim general-x from launching: not authorized",
        ),
        (
            [claim(), no_capacity("general-x")],
            1,
            "has no node: its instance is not launched",
            "Karpenter deletes it if it is not launched after 5 minutes, and creates another",
            "let NodePool general use other instance types, zones, or capacity types",
        ),
        (
            [claim(labels={}), no_capacity("general-x")],
            1,
            "has no node: its instance is not launched",
            "Karpenter deletes it if it is not launched after 5 minutes, and creates another",
            "let a NodePool use other instance types, zones, or capacity types",
        ),
        (
            [claim(LAUNCHED, stages=1)],
            1,
            "has no node: its instance has not joined the cluster",
            "Registered=Unknown (NodeNotFound): Node not registered with cluster",
            "find out why the kubelet of i-0abc does not join",
        ),
        (
            [
                claim(condition("Registered", "False", "MultipleNodesFound", "matched multiple nodes"), stages=1),
                machine(),
            ],
            1,
            "has no node: its instance has not joined the cluster",
            "Registered=False (MultipleNodesFound): matched multiple nodes",
            "delete the node of an earlier name",
        ),
        (
            [
                claim(condition("Initialized", "Unknown", "StartupTaintsExist", "it exists"), stages=2),
                machine(taints=[TAINT]),
            ],
            1,
            "has node ip-1, which is not initialized: it exists",
            "until then, Karpenter expects pods on it, but neither consolidates nor replaces it",
            "repair the agent of node.cilium.io on ip-1",
        ),
        (
            [claim(condition("Initialized", "Unknown", "ResourceNotRegistered", "no gpu"), stages=2), machine()],
            1,
            "has node ip-1, which is not initialized: no gpu",
            "until then, Karpenter expects pods on it, but neither consolidates nor replaces it",
            "repair what registers it: no gpu",
        ),
        ([claim(stages=3)], 1, "has no node: its node does not exist", None, "delete NodeClaim general-x"),
        ([claim(stages=3), machine()], 0, "has node ip-1", None, ""),
        (
            [claim(DRIFTED, stages=3), machine(), POOL],
            0,
            "has node ip-1, and is drifted (AMIDrift)",
            "Karpenter replaces it as the disruption budgets of its NodePool permit",
            "",
        ),
        (
            [claim(DRIFTED, stages=3), machine(), POOL, running(annotations=GUARD)],
            0,
            "has node ip-1, and is drifted (AMIDrift)",
            'Karpenter does not replace it: Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/db-0)',
            "remove karpenter.sh/do-not-disrupt from default/db-0",
        ),
        (
            [claim(DRIFTED, stages=3), changed(machine(), "metadata.annotations", GUARD), POOL],
            0,
            "has node ip-1, and is drifted (AMIDrift)",
            'Karpenter does not replace it: Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
            "remove karpenter.sh/do-not-disrupt from node ip-1",
        ),
        (
            [claim(stages=3), machine(), changed(POOL, "metadata.name", "other")],
            0,
            "has node ip-1",
            "its NodePool general does not exist: Karpenter does not replace or consolidate it",
            "",
        ),
        (
            [claim(stages=3, **DELETED), LEAVING, running(labels={"app": "db"}), BUDGET],
            1,
            "is being deleted",
            "no terminationGracePeriod ends this",
            "let PDB default/db allow a disruption",
        ),
        (
            [
                claim(stages=3, **DELETED),
                changed(LEAVING, "status.conditions", [{"type": "Ready", "status": "Unknown"}]),
                running(deletionTimestamp=SINCE),
            ],
            1,
            "is being deleted",
            "default/db-0 is being deleted, and no kubelet answers for ip-1",
            "force the deletion of default/db-0 if node ip-1 is gone for good",
        ),
        (
            [claim(stages=3, **DELETED), LEAVING, running(annotations=GUARD)],
            1,
            "is being deleted",
            "karpenter.sh/do-not-disrupt keeps default/db-0 from being evicted",
            "remove karpenter.sh/do-not-disrupt from default/db-0",
        ),
        (
            [
                claim(*(condition(it, "True") for it in ("Drained", "InstanceTerminating")), stages=3, **DELETED),
                LEAVING,
            ],
            1,
            "is being deleted",
            "its node is drained, and the cloud terminates its instance",
            "",
        ),
    ],
)
def test_a_node_claim_is_answered_by_its_stage(
    objects: list[Json], code: int, does: str, cause: str | None, fix: str
) -> None:
    answer = answer_of("nodeclaim/general-x", *objects)
    assert answer.headline.startswith(f"nodeclaim/general-x {does}")
    assert answer.code == code
    assert cause in answer.causes if cause else not answer.causes
    assert any(title.startswith(fix) for title in answer.fixes) if fix else not answer.fixes


def test_a_fix_of_a_node_pool_is_printed_to_be_applied(tmp_path: Path) -> None:
    limited = {**POOL, "spec": {**POOL["spec"], "limits": {"cpu": "4"}}}
    cluster = write(tmp_path, limited, EC2, *FULL, pod())
    result = kschedx("why", "nodepool/general", "-s", cluster, "--fix", "1", "-o", "patch")
    command = """kubectl patch nodepool.karpenter.sh general --type=merge --patch='{"spec":{"limits":{"cpu":"8"}}}'"""
    assert (result.out.strip(), result.err) == (command, "")


def test_a_dump_without_node_claims_does_not_say_that_there_are_none(tmp_path: Path) -> None:
    static = changed({**POOL, "spec": {**POOL["spec"], "replicas": 2}}, "metadata.creationTimestamp", SINCE)
    result = kschedx("why", "nodepool/general", "-s", write(tmp_path, static, EC2, pod()))
    assert "kubectl get nodeclaims -l karpenter.sh/nodepool=general" in result.out
    assert "StaticCapacity" not in result.out


def test_a_dump_of_node_pools_alone_is_read_as_one_without_pods(tmp_path: Path) -> None:
    cluster = write(tmp_path, changed(POOL, "metadata.creationTimestamp", SINCE), EC2)
    result = kschedx("why", "nodepool/general", "-s", cluster)
    assert (result.code, "the dump holds no Pods" in result.out) == (3, True)


def test_a_claim_without_a_capacity_names_no_node_pool_if_it_has_no_label(tmp_path: Path) -> None:
    refused = claim(condition("Launched", "False", "InsufficientCapacity", "no capacity"), labels={})
    result = kschedx("why", "pod/web", "-s", write(tmp_path, POOL, EC2, node(), refused, pod()), columns=200)
    assert "let a NodePool use other instance types, zones, or capacity types" in result.out


def test_a_node_class_is_explained_by_its_node_pools(tmp_path: Path) -> None:
    result = kschedx("why", "ec2nodeclass/default", "-s", write(tmp_path, POOL, EC2, node(), pod()))
    assert (result.code, "`kschedx why nodepool/NAME` explains it" in result.err) == (2, True)

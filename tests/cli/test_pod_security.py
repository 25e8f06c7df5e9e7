"""Pods that Pod Security refuses: the screen, fixes, and undecided cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedx.fixes.pod_edits import secure_fields
from tests.builders import Manifest
from tests.cli.manifests import NODE, POD, changed, write
from tests.command import ROOT, CommandResult, kschedx
from tests.conftest import Golden

STORY = ROOT / "fixtures" / "pod-security" / "cluster.yaml"
CLUSTER: list[dict[str, Any]] = [*yaml.safe_load_all(STORY.read_text(encoding="utf-8"))]
SPACE, _, _, DEPLOYMENT, REPLICA_SET = CLUSTER
QUESTION = ("why", "deploy/ledger", "-n", "payments", "-s", "cluster.yaml")
WORDS = 'Error creating: pods "ledger-6d9f5c7b8-new" is forbidden: violates PodSecurity "restricted:v1.33": '


def run_why(folder: Path, cluster: Sequence[Manifest], *options: str, columns: int = 400) -> CommandResult:
    write(folder, *cluster)
    return kschedx(*QUESTION, *options, cwd=folder, columns=columns)


def running(count: int) -> list[Manifest]:
    """Return running pods of the ReplicaSet."""
    owner = {key: REPLICA_SET[key] for key in ("apiVersion", "kind")}
    owner |= {"name": REPLICA_SET["metadata"]["name"], "uid": REPLICA_SET["metadata"]["uid"], "controller": True}
    template = REPLICA_SET["spec"]["template"]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"ledger-6d9f5c7b8-{number}",
                "namespace": "payments",
                "uid": f"{number}",
                "creationTimestamp": "2026-03-01T00:00:00Z",
                "labels": template["metadata"]["labels"],
                "ownerReferences": [owner],
            },
            "spec": {**template["spec"], "nodeName": "node-a"},
            "status": {"phase": "Running"},
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("columns", [80, 100])
def test_the_screen(columns: int, golden: Golden) -> None:
    cluster = str(STORY.relative_to(ROOT))
    result = kschedx("why", "deploy/ledger", "-n", "payments", "-s", cluster, columns=columns)
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= columns
    golden.check(Path(__file__).parent / "golden" / f"pod-security-{columns}.txt", result.out)


def test_a_fix_is_admitted(tmp_path: Path) -> None:
    for number in ("1", "2"):
        result = run_why(tmp_path, CLUSTER, "--fix", number, "-o", "yaml")
        assert result.code == 1
        (fixed,) = yaml.safe_load_all(result.out)
        others = [
            item
            for item in CLUSTER[:4]
            if (item["kind"], item["metadata"]["name"]) != (fixed["kind"], fixed["metadata"]["name"])
        ]
        after = run_why(tmp_path, [*others, fixed])
        assert (after.code, after.out.splitlines()[0]) == (
            0,
            "✓ payments/deploy/ledger: all 3 replicas can be scheduled",
        )
    assert run_why(tmp_path, CLUSTER, "--fix", "3", "-o", "yaml").err == "error: no fix 3: there are 2\n"


def test_a_setting_that_the_pod_needs_is_removed_last(tmp_path: Path) -> None:
    cluster = changed(DEPLOYMENT, "spec.template.spec.hostNetwork", True)
    result = run_why(tmp_path, [*CLUSTER[:3], cluster])
    assert "fix 1     enforce privileged in namespace payments, for all its pods · fits node-a" in result.out
    removed = "remove what restricted forbids from the pod template (host namespaces and hostPort), and set what"
    assert f" 2 {removed} it requires · not tried" in " ".join(result.out.split())
    assert "$ kubectl label namespace payments pod-security.kubernetes.io/enforce=privileged --overwrite" in result.out
    assert "set the securityContext" not in result.out


def test_the_order_of_fields_does_not_matter() -> None:
    fields: Manifest = {"runAsUser": 1000, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}
    patches = []
    for context in (fields, {key: fields[key] for key in reversed(fields)}):
        result = secure_fields({"spec": {"containers": [{"name": "main", "securityContext": context}]}})
        assert result is not None
        patches.append(json.dumps(result.change.patch))
    assert patches[0] == patches[1]


def test_the_next_obstacle_after_the_fix_is_shown(tmp_path: Path) -> None:
    path = "spec.template.spec.containers.0.resources.requests.cpu"
    result = run_why(tmp_path, [*CLUSTER[:3], changed(DEPLOYMENT, path, "9")])
    assert "; then add a node in zone eu-1a with at least 9 CPU" in result.out
    hard = {"pods": "0"}
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "payments"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": {"pods": "0"}},
    }
    assert (
        "; what refuses the pod then: Pod payments/ledger-6d9f5c7b8-new: Error creating: pods "
        in run_why(tmp_path, [*CLUSTER, quota]).out
    )


def test_the_fix_is_untried_in_a_dump_without_nodes(tmp_path: Path) -> None:
    message = 'pods "ledger-x" is forbidden: violates PodSecurity "restricted:v1.33": runAsNonRoot != true'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    stuck = {**REPLICA_SET, "status": {"replicas": 0, "conditions": [condition]}}
    result = run_why(tmp_path, [SPACE, DEPLOYMENT, stuck])
    assert "set the securityContext that restricted requires in the pod template · not tried" in result.out


def test_kubectl_only_warns_about_a_workload(tmp_path: Path) -> None:
    new = {**DEPLOYMENT, "metadata": {"name": "new", "namespace": "payments"}}
    write(tmp_path, *CLUSTER)
    write(tmp_path, new, name="new.yaml")
    result = kschedx("why", "-f", "new.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert result.code == 1
    assert "note      kubectl apply only warns: it creates the Deployment, but its pods are refused" in result.out
    other = {**new, "metadata": {"name": "other", "namespace": "payments"}}
    write(tmp_path, new, other, name="both.yaml")
    both = kschedx("why", "-f", "both.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert (both.code, both.out.splitlines()[0]) == (1, "✗ 6 pods are not created")
    document = kschedx("why", "-f", "new.yaml", "-s", "cluster.yaml", "-o", "json", cwd=tmp_path)
    state = json.loads(document.out)["state"]
    assert (document.code, state["name"], state["by"]) == (1, "Refused", "Pod Security")
    assert 'pods "new-new" is forbidden: violates PodSecurity' in state["message"]


@pytest.mark.parametrize(
    ("labels", "warns"),
    [({"warn": "privileged"}, False), ({"warn": "restricted"}, True), ({"enforce": "x"}, False)],
)
def test_the_warning_of_kubectl_is_that_of_the_namespace(tmp_path: Path, labels: dict[str, str], warns: bool) -> None:
    own = {f"pod-security.kubernetes.io/{key}": value for key, value in ({"enforce": "baseline"} | labels).items()}
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "payments", "labels": own}}
    new = changed(DEPLOYMENT, "spec.template.spec.hostPID", True)
    write(tmp_path, space, *(item for item in CLUSTER if item["kind"] == "Node"))
    write(tmp_path, {**new, "metadata": {"name": "new", "namespace": "payments"}}, name="new.yaml")
    result = kschedx("why", "-f", "new.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert result.code == 1
    assert ("kubectl apply only warns" in result.out) is warns


def test_running_pods_are_not_refused(tmp_path: Path) -> None:
    """They may be older than the label; only missing replicas are refused."""
    all_there = run_why(tmp_path, [*CLUSTER, *running(3)])
    assert all_there.code == 0
    assert "namespace payments refuses new pods of this template (violates PodSecurity" in all_there.out
    one_lacks = run_why(tmp_path, [*CLUSTER, *running(2)])
    assert one_lacks.code == 1
    assert one_lacks.out.startswith(
        "✗ payments/deploy/ledger has 2 of 3 pods and gets no others: Pod Security refuses them\n"
    )
    assert WORDS in one_lacks.out


def test_a_slim_template_is_undecided(tmp_path: Path) -> None:
    write(tmp_path, *CLUSTER)
    assert kschedx("snapshot", "-s", "cluster.yaml", "-o", "cut.json", cwd=tmp_path).code == 0
    result = kschedx("why", "deploy/ledger", "-n", "payments", "-s", "cut.json", cwd=tmp_path, columns=400)
    assert result.code == 0
    assert "namespace payments enforces Pod Security restricted, and the snapshot lacks parts" in result.out


def test_an_anonymized_namespace_enforces_the_same_level(tmp_path: Path) -> None:
    write(tmp_path, *CLUSTER)
    assert kschedx("snapshot", "-s", "cluster.yaml", "--anonymize", "-o", "hidden.json", cwd=tmp_path).code == 0
    items = json.loads((tmp_path / "hidden.json").read_text(encoding="utf-8"))["items"]
    (space,) = [item for item in items if item["kind"] == "Namespace"]
    its = {key: value for key, value in space["metadata"]["labels"].items() if "pod-security" in key}
    assert its == {key: value for key, value in SPACE["metadata"]["labels"].items() if "pod-security" in key}


def test_versions_before_pod_security_ignore_the_labels(tmp_path: Path) -> None:
    assert run_why(tmp_path, CLUSTER, "--kube-version", "1.13").code == 0


def test_a_pod_without_a_workload(tmp_path: Path) -> None:
    write(tmp_path, NODE, changed(SPACE, "metadata.name", "shop"))
    write(tmp_path, POD, name="pod.yaml")
    result = kschedx("why", "pod.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=200)
    assert result.out.splitlines()[0] == "✗ shop/web-0 is not created: Pod Security refuses the pod"
    assert 'pods "web-0" is forbidden: violates PodSecurity "restricted:v1.33": allowPrivilegeEscalation' in result.out
    own: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    patch = {"spec": {"containers": [{"name": "main", "image": "registry.example/app:v1", "securityContext": own}]}}
    (tmp_path / "try.yaml").write_text(json.dumps(patch), encoding="utf-8")
    question = ("why", "pod.yaml", "-s", "cluster.yaml", "--try", "try.yaml")
    tried = kschedx(*question, cwd=tmp_path)
    assert (tried.code, "runAsNonRoot" in tried.err, "seccompProfile (pod or" in tried.err) == (1, False, True)
    whole = kschedx(
        *question, "--try", "spec.securityContext.seccompProfile.type=RuntimeDefault", cwd=tmp_path, columns=400
    )
    assert (whole.code, "without it: Unschedulable" in whole.out) == (0, True)

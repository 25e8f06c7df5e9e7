"""`kschedx deschedule` on a live cluster: the policy of a ConfigMap, and measured usage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.api_server import FakeApiServer, Reply, failure, kubeconfig, served
from tests.builders import Manifest, disruption_budget
from tests.command import CommandResult, kschedx
from tests.descheduler.clusters import NOW, node, pod, policy

LOW = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
MEASURED = policy("LowNodeUtilization", {**LOW, "metricsUtilization": {"source": "KubernetesMetrics"}}) | {
    "metricsProviders": [{"source": "KubernetesMetrics"}]
}


def usage(kind: str, name: str, **fields: object) -> Manifest:
    space = {"namespace": "default"} if kind == "PodMetrics" else {}
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": {"name": name, **space}, **fields}


def config_map(written: Manifest) -> Reply:
    data = {"policy.yaml": yaml.safe_dump(written)}
    entries = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "descheduler"}, "data": data}
    return Reply(body=json.dumps(entries).encode())


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer(
        [
            *(node(name) for name in ("a", "b")),
            *(pod(f"web-{number}", "a", cpu="100m") for number in range(3)),
            usage("NodeMetrics", "a", usage={"cpu": "3", "memory": "1Gi"}),
            usage("NodeMetrics", "b", usage={"cpu": "100m", "memory": "1Gi"}),
            *(
                usage(
                    "PodMetrics", f"web-{number}", containers=[{"name": "c", "usage": {"cpu": "1", "memory": "64Mi"}}]
                )
                for number in range(3)
            ),
        ]
    )


@pytest.fixture
def url(api: FakeApiServer) -> Iterator[str]:
    with served(api) as result:
        yield result


def deschedule(folder: Path, url: str, *arguments: str) -> CommandResult:
    return kschedx("deschedule", "--now", NOW, "--kubeconfig", kubeconfig(folder, url), *arguments)


def test_the_policy_is_read_from_the_config_map(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/namespaces/kube-system/configmaps/descheduler", config_map(MEASURED), forever=True)
    result = deschedule(tmp_path, url, "--policy", "configmap/kube-system/descheduler", "-o", "json")
    document = json.loads(result.out)
    assert document["utilization"][0]["nodes"]["a"] == {
        "category": "overutilized",
        "usage": {"cpu": "3", "memory": "1Gi", "pods": "3"},
        "percent": {"cpu": 75, "memory": 6, "pods": 15},
    }
    assert [item["pod"] for item in document["evicted"]] == ["default/web-2"]
    assert {request.method for request in api.requests} == {"GET"}


def test_usage_is_read_only_for_a_policy_that_needs_it(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy("LowNodeUtilization", LOW)))
    assert deschedule(tmp_path, url, "--policy", str(file)).code == 0
    assert not [request.path for request in api.requests if "metrics.k8s.io/" in request.path]


def test_a_missing_config_map_is_an_error(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    api.fail("/configmaps/other", failure(404, "not found"), forever=True)
    result = deschedule(tmp_path, url, "--policy", "configmap/other")
    assert (result.code, result.out) == (2, "")
    assert "ConfigMap kube-system/other: there is none" in result.err


@pytest.mark.parametrize(
    "held",
    [
        {"deschedulerPolicy": {"profiles": []}},
        {"descheduler": {"deschedulerPolicy": {"profiles": []}}},
        {"kind": "HelmRelease", "spec": {"values": {"deschedulerPolicy": {"profiles": []}}}},
    ],
    ids=["values", "values of a parent chart", "HelmRelease"],
)
def test_values_of_the_helm_chart_are_a_policy(held: Manifest, url: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(held))
    result = deschedule(tmp_path, url, "--policy", str(file))
    assert result.out.startswith("✓ the descheduler evicts no pod")


def test_a_budget_is_named_as_the_cause_of_a_refusal(tmp_path: Path) -> None:
    status = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}
    budget = disruption_budget("web", labels={"app": "web"}, status=status, maxUnavailable=0)
    objects = [node("a"), node("b"), pod("web-0", "a"), pod("web-1", "a"), budget]
    cluster, file = tmp_path / "cluster.json", tmp_path / "policy.yaml"
    cluster.write_text(json.dumps({"kind": "List", "items": objects}))
    file.write_text(yaml.safe_dump(policy("RemoveDuplicates", {})))
    result = kschedx("deschedule", "--now", NOW, "-s", str(cluster), "--policy", str(file))
    assert "1 eviction refused: the API server refuses because of PodDisruptionBudgets" in result.out


@pytest.mark.parametrize(
    ("bound", "headline", "note"),
    [("one", "evicts 1 pod", "more or fewer pods; no eviction is certain"), ("two", "evicts no pod", "evict pods in")],
)
def test_a_note_says_that_another_order_evicts_another_number(
    bound: str, headline: str, note: str, tmp_path: Path
) -> None:
    """The pod listed last is the duplicate, and stays if it can run on one node only."""
    on_a = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
    pods = [pod(name, "a", spec=on_a if name == bound else {}) for name in ("one", "two")]
    cluster, file = tmp_path / "cluster.json", tmp_path / "policy.yaml"
    cluster.write_text(json.dumps({"kind": "List", "items": [node("a"), node("b"), *pods]}))
    file.write_text(yaml.safe_dump(policy("RemoveDuplicates", {})))
    result = kschedx("deschedule", "--now", NOW, "-s", str(cluster), "--policy", str(file))
    assert headline in result.out
    assert note in " ".join(result.out.split())

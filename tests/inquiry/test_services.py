"""Which pod answers a question about a Service, and what is said of one that selects none."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kschedx.inquiry.target import find_target
from kschedx.kube.decoding import map_at
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at
from tests.cli.manifests import write
from tests.command import kschedx
from tests.inquiry.objects import answer_of

OF_K3S = {"svccontroller.k3s.cattle.io/svcname": "web", "svccontroller.k3s.cattle.io/svcnamespace": "default"}
NODE: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {}}


def service(**selector: str) -> Manifest:
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}


def pod(name: str, node: str = "", *, namespace: str = "default", ready: bool = True, **labels: str) -> Manifest:
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "app", "image": "app"}]}
    conditions = [{"type": "Ready", "status": str(ready), "reason": "ContainersNotReady"}] if node else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending", "conditions": conditions},
    }


DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}},
    },
}
BALANCER = {**pod("svclb-web", namespace="kube-system"), "metadata": {"name": "svclb-web", "labels": OF_K3S}}
RUNNING, UNREADY = pod("a", "n1", app="web"), pod("b", "n1", ready=False, app="web")


@pytest.mark.parametrize(
    ("objects", "name"),
    [
        ([RUNNING, pod("other", app="db")], "a"),
        ([RUNNING, UNREADY, pod("c", "n1", app="web")], "b"),
        ([UNREADY, pod("pending", app="web")], "pending"),
        ([RUNNING, BALANCER], "svclb-web"),
        ([pod("elsewhere", app="web", namespace="kube-system"), DEPLOYMENT], "shop-new"),
    ],
)
@pytest.mark.parametrize("target", ["svc/web", "default/service/web"])
def test_a_service_is_answered_by_a_pod_that_it_selects(objects: list[Manifest], name: str, target: str) -> None:
    snapshot = Snapshot.from_objects(deepcopy([NODE, service(app="web"), *objects]))
    assert map_at(find_target(snapshot, target).manifest, "metadata")["name"] == name


@pytest.mark.parametrize(
    ("selector", "does", "cause"),
    [
        ({"app": "wbe"}, "selects no pods", "no pod in namespace default has app=wbe (did you mean app=web?)"),
        ({}, "has no selector", "its endpoints are not pods that it selects"),
    ],
)
def test_a_service_without_pods_is_answered_by_its_selector(selector: dict[str, str], does: str, cause: str) -> None:
    answer = answer_of("svc/web", NODE, service(**selector), RUNNING)
    assert (answer.headline, answer.causes) == (f"default/svc/web {does}", [cause])


@pytest.mark.parametrize("others", [[], [pod("other", "n1", app="db")]])
def test_a_service_of_finished_pods_names_one(others: list[Manifest]) -> None:
    finished = {**RUNNING, "status": {"phase": "Succeeded"}}
    answer = answer_of("svc/web", NODE, service(app="web"), finished, *others)
    assert (answer.headline, answer.causes) == (
        "default/svc/web selects no pods",
        ["only finished pods match, such as default/a"],
    )


def test_a_service_whose_pods_are_all_ready_is_answered_by_their_number() -> None:
    answer = answer_of("svc/web", NODE, service(app="web"), RUNNING, pod("c", "n1", app="web"), pod("other", "n1"))
    assert answer.headline == "default/svc/web selects 2 pods: none is pending or reported as not ready"
    assert (answer.code, answer.causes) == (0, ["default/a on n1", "default/c on n1"])


@pytest.mark.parametrize(
    ("labels", "fixes"),
    [
        ({"app": "wbe"}, ["select app=web in {kind} web"]),
        ({"app": "wbe", "tier": "frnt"}, ["select app=web, tier=front in {kind} web"]),
        ({"app": "wbe", "tier": "db"}, []),
        ({"app": "payments"}, []),
    ],
    ids=["one label", "two labels", "a pod has one of them", "another name"],
)
def test_a_misspelled_selector_is_corrected(labels: dict[str, str], fixes: list[str]) -> None:
    pods = [pod("a", "n1", app="web", tier="front"), pod("b", "n1", app="sql", tier="db")]
    budget: Manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": service()["metadata"]}
    budget = {**budget, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
    for target, item in (("svc/web", service(**labels)), ("pdb/web", budget)):
        assert answer_of(target, NODE, item, *pods).fixes == [fix.format(kind=item["kind"]) for fix in fixes]


SYSTEM = pod("kube-proxy", "n1", namespace="kube-system")
CLOUD = {**NODE, "spec": {"providerID": "aws:///a/i-1"}}
FAILED = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Service", "name": "web", "namespace": "default", "uid": "s"},
    "reason": "SyncLoadBalancerFailed",
    "message": "no subnet",
}


@pytest.mark.parametrize(
    ("objects", "cause", "fix"),
    [
        ([NODE, SYSTEM], "nothing in this cluster gives", "install a load balancer controller"),
        ([NODE], "no controller has given", "find out whether a load balancer controller runs"),
        ([CLOUD, SYSTEM], "no controller has given", "find out whether a load balancer controller runs"),
        ([NODE, SYSTEM, FAILED], "its controller reports: SyncLoadBalancerFailed: no subnet", "correct what its load"),
    ],
    ids=["bare metal", "few pods", "a cloud", "an event"],
)
def test_a_load_balancer_without_an_address_is_named(objects: list[Manifest], cause: str, fix: str) -> None:
    spec = {"selector": {"app": "web"}, "type": "LoadBalancer"}
    waits = {**service(), "metadata": {"name": "web", "namespace": "default", "uid": "s"}, "spec": spec}
    answer = answer_of("svc/web", *objects, waits, RUNNING)
    assert answer.headline.endswith("selects 1 pod, and has no external address: type LoadBalancer is pending")
    assert (answer.code, len(answer.fixes)) == (0, 2)
    assert answer.causes[0].startswith(cause)
    assert answer.fixes[0].startswith(fix)
    given = {**waits, "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}
    assert "external" not in answer_of("svc/web", *objects, given, RUNNING).headline


def test_a_service_that_knative_creates_is_answered_by_the_pods_of_knative(tmp_path: Path) -> None:
    spec = {"template": at(DEPLOYMENT, "spec.template")}
    custom = {**service(), "apiVersion": "serving.knative.dev/v1", "spec": spec}
    result = kschedx("why", "service/web", "-s", write(tmp_path, NODE, service(), custom))
    assert "has no selector" not in result.out
    assert result.code in (0, 1)

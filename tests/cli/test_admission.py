"""Pods that the API server refuses, on the command line: of a manifest, and of a cluster file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, at, pod
from tests.cli.manifests import NODE, POD, changed, small_pod, write
from tests.command import kschedx
from tests.device_builders import claim, device, device_class, request, resource_slice

LIMITS: Manifest = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "bounds", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]},
}
DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"template": {"spec": changed(POD, "spec.containers.0.resources.limits", {"memory": "2Gi"})["spec"]}},
}
FIELD = "spec.containers[0].resources.limits[memory]"
TOO_MUCH = "is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi"


def refused(folder: Path, target: str, *cluster: Manifest, code: int = 1) -> str:
    write(folder, *cluster)
    result = kschedx("why", target, "-n", "shop", "-s", "cluster.yaml", cwd=folder)
    assert (result.code, result.out) == (code, "")
    (line,) = result.err.splitlines()
    return line


def test_a_limit_range_refuses_a_manifest(tmp_path: Path) -> None:
    write(tmp_path, changed(POD, "spec.containers.0.resources.limits", {"memory": "2Gi"}), name="pod.yaml")
    write(tmp_path, NODE, LIMITS)
    result = kschedx("why", "pod.yaml", "-n", "shop", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert (result.code, result.out.splitlines()) == (
        1,
        [
            "✗ shop/web-0 is not created: LimitRange refuses the pod",
            f'  because   pods "web-0" {TOO_MUCH}',
            f"            pod.yaml:19: Pod shop/web-0: {FIELD}, LimitRange shop/bounds",
            "  fix 1     lower limits.memory of container main to 1Gi · fits node-01",
            "      2     raise max.memory of LimitRange bounds from 1Gi to 2Gi · fits node-01",
            "            this workload: 1 · cluster configuration: 2 · to apply: --fix N -o patch",
        ],
    )


def test_a_limit_range_refuses_a_workloads_pods(tmp_path: Path) -> None:
    write(tmp_path, NODE, LIMITS, DEPLOYMENT)
    question = ("why", "deploy/web", "-n", "shop", "-s", "cluster.yaml")
    result = kschedx(*question, cwd=tmp_path, columns=400)
    assert (result.code, result.out.splitlines()[:2]) == (
        1,
        [
            "✗ shop/deploy/web gets no pods: LimitRange refuses them",
            f'  because   Error creating: pods "web-new" {TOO_MUCH}',
        ],
    )
    document = json.loads(kschedx(*question, "-o", "json", cwd=tmp_path).out)
    assert (document["outcome"], document["state"]["name"], len(document["fixes"])) == ("Unschedulable", "Refused", 2)


def test_a_refusal_precedes_an_empty_status(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, **at(DEPLOYMENT, "spec.template")}
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "r"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"replicas": 0},
    }
    for bounds, says in (
        ([LIMITS], "gets no pods: LimitRange refuses them"),
        ([], "gets no new pods: no controller has observed it"),
    ):
        write(tmp_path, NODE, *bounds, replica_set)
        result = kschedx("why", "rs/web-1", "-n", "shop", "-s", "cluster.yaml", cwd=tmp_path)
        assert (result.code, result.out.startswith(f"✗ shop/rs/web-1 {says}")) == (1, True)


@pytest.mark.parametrize(
    ("amounts", "fix"),
    [
        (
            [{"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}],
            "lower limits.cpu of containers a and b to 1500m · fits node-01",
        ),
        (
            [{"limits": {"cpu": "5"}, "requests": {"cpu": "4"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "10m"}}],
            (
                "lower limits.cpu of container a to 2500m, requests.cpu of container a to 2500m, limits.cpu of "
                "container b to 500m · fits node-01"
            ),
        ),
    ],
)
def test_a_limit_range_bounds_the_pod_as_a_whole(tmp_path: Path, amounts: list[Manifest], fix: str) -> None:
    bounds = changed(LIMITS, "spec.limits", [{"type": "Pod", "max": {"cpu": "3"}}])
    containers = [{"name": name, "image": "app:1", "resources": each} for name, each in zip("ab", amounts, strict=True)]
    write(tmp_path, NODE, bounds)
    write(tmp_path, changed(POD, "spec.containers", containers), name="pod.yaml")
    result = kschedx("why", "pod.yaml", "-n", "shop", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    first = next(line for line in result.out.splitlines() if line.startswith("  fix"))
    assert first.removeprefix("  fix 1").strip() == fix


def test_optional_plugins_are_named_on_the_command_line(tmp_path: Path) -> None:
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": "team=shop"}
    namespace: Manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "annotations": annotations},
    }
    write(tmp_path, NODE, namespace)
    write(tmp_path, POD, name="pod.yaml")
    command = ("why", "pod.yaml", "-s", "cluster.yaml")
    assert kschedx(*command, cwd=tmp_path).code == 0
    result = kschedx(*command, "--enable-admission-plugins", "PodTolerationRestriction,PodNodeSelector", cwd=tmp_path)
    assert result.code == 1
    assert "Namespace shop set nodeSelector.team shop" in result.out
    wrong = kschedx(*command, "--enable-admission-plugins", "NodeSelector", cwd=tmp_path)
    assert (wrong.code, 'did you mean "PodNodeSelector"?' in wrong.err) == (2, True)


# --- what people wrote into a cluster's files

BAD = {"key": "app", "operator": "in", "values": ["web"]}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [BAD]}]}
POD_TERM = {"labelSelector": {"matchExpressions": [BAD]}, "topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedul"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CPU = "containers.0.resources.requests.cpu"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("nodeSelector", {"disk": "a b"}, 'spec.nodeSelector: Invalid value: "a b"'),
        ("affinity", {"nodeAffinity": {REQUIRED: TERMS}}, "nodeSelectorTerms[0].matchExpressions[0].operator"),
        ("affinity", {"podAntiAffinity": {REQUIRED: [POD_TERM]}}, "labelSelector.matchExpressions[0].operator"),
        (
            "topologySpreadConstraints",
            [SPREAD],
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value",
        ),
        (
            "tolerations",
            [{"key": "a", "operator": "Exist"}],
            'spec.tolerations[0].operator: Unsupported value: "Exist"',
        ),
        ("tolerations", [{"key": "a", "effect": "NoSchedul"}], "spec.tolerations[0].effect: Unsupported value"),
        (CPU, "-1", 'requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
        (CPU, "1 core", "requests[cpu]: quantities must match"),
    ],
)
def test_a_pod_of_a_cluster_file(path: str, value: object, says: str, tmp_path: Path) -> None:
    wrong = changed(small_pod("bad", namespace="shop"), f"spec.{path}", value)
    line = refused(tmp_path, "web-0", NODE, POD, wrong, code=2)
    assert line.startswith("error: cluster.yaml")
    assert "Pod shop/bad: spec." in line
    assert says in line


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.taints", [{"key": "a", "effect": "NoSchedul"}], 'spec.taints[0].effect: Unsupported value: "NoSchedul"'),
        ("status.allocatable.memory", "-8Gi", "status.allocatable.memory: Invalid value"),
    ],
)
def test_a_node_of_a_cluster_file(path: str, value: object, says: str, tmp_path: Path) -> None:
    line = refused(tmp_path, "web-0", changed(NODE, path, value), POD, code=2)
    assert line.startswith("error: cluster.yaml")
    assert f"Node node-01: {says}" in line


def test_a_cluster_file_may_omit_fields(tmp_path: Path) -> None:
    write(tmp_path, NODE, POD, pod("Web_1", namespace="shop", containers=[]))
    assert kschedx("why", "web-0", "-n", "shop", "-s", "cluster.yaml", cwd=tmp_path).code == 0


VALID_DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": at(POD, "spec")},
    },
}


@pytest.mark.parametrize("written", [POD, VALID_DEPLOYMENT])
def test_a_misspelled_namespace_is_corrected_in_the_manifest(tmp_path: Path, written: Manifest) -> None:
    stored = changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    write(tmp_path, stored, namespace(), pod("old", namespace="shop", on="node-01"), name="dump.yaml")
    write(tmp_path, changed(written, "metadata.namespace", "shpo"), name="web.yaml")
    question = ("why", "web.yaml", "-s", "dump.yaml")
    result = kschedx(*question, cwd=tmp_path)
    assert "fix 1     set metadata.namespace to shop in the manifest" in result.out
    assert "      2     create namespace shpo" in result.out
    script = kschedx(*question, "--fix", "1", "-o", "patch", cwd=tmp_path).out
    assert "namespace: shop\n" in script
    assert "shpo" not in script


def test_stored_pods_are_not_validated(tmp_path: Path) -> None:
    stored = changed(POD, "spec.nodeSelector", {"disk": "a b"})
    write(tmp_path, NODE, changed(stored, "metadata.creationTimestamp", "2026-01-01T00:00:00Z"))
    assert kschedx("why", "web-0", "-n", "shop", "-s", "cluster.yaml", cwd=tmp_path).code == 1


def namespace(**labels: str) -> Manifest:
    own = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": own}}


def test_a_namespace_that_only_warns_refuses_no_pod(tmp_path: Path) -> None:
    write(tmp_path, POD, name="pod.yaml")
    for level, is_told in (("restricted", True), ("baseline", False)):
        write(tmp_path, NODE, namespace(warn=level))
        result = kschedx("why", "pod.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=200)
        assert result.code == 0
        warning = 'but admits the pod: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
        assert (warning in result.out) is is_told


def test_security_context_constraints_come_before_pod_security(tmp_path: Path) -> None:
    write(tmp_path, POD, name="pod.yaml")
    write(
        tmp_path,
        changed(NODE, "metadata.labels", {"node.openshift.io/os_id": "rhcos"}),
        namespace(enforce="restricted"),
    )
    result = kschedx("why", "pod.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=300)
    assert result.code == 0
    assert "namespace shop enforces Pod Security restricted, and SecurityContextConstraints" in result.out


def test_a_refusal_in_one_namespace_leaves_the_others(tmp_path: Path) -> None:
    """One is not there, in one a LimitRange's limit lies below what the pod requests, one pod names no class, and one
    fits."""
    defaults: Manifest = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "tight", "namespace": "tight"},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "1Mi"}}]},
    }
    names = ("shop", "tight")
    spaces: list[Manifest] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    classes: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low"},
        "value": 1,
    }
    stored = changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    write(tmp_path, stored, defaults, classes, *spaces, name="dump.yaml")
    bare = changed(POD, "spec.containers.0.resources", {"requests": {"memory": "2Mi"}})
    pods = [
        bare,
        changed(bare, "metadata.namespace", "gone"),
        changed(bare, "metadata.namespace", "tight"),
        changed(changed(bare, "metadata.name", "important"), "spec.priorityClassName", "high"),
    ]
    write(tmp_path, *pods, name="pods.yaml")
    result = kschedx("why", "-f", "pods.yaml", "-s", "dump.yaml", cwd=tmp_path, columns=200)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("✗ 4 pods: 1 can be scheduled, 3 not created\n")
    assert '✗ namespaces "gone" not found' in result.out
    limit = "must be less than or equal to memory limit of 1Mi (after the changes of LimitRange tight/tight)"
    assert f'Pod "web-0" is invalid: spec.containers[0].resources.requests: Invalid value: "2Mi": {limit}' in result.out
    assert '✗ pods "important" is forbidden: no PriorityClass with name high was found' in result.out


@pytest.mark.parametrize(("name", "is_misspelled"), [("defualt", True), ("batch", False)])
def test_a_misspelled_service_account_is_corrected_first(tmp_path: Path, name: str, is_misspelled: bool) -> None:
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount"}
    write(tmp_path, NODE, {**account, "metadata": {"name": "default", "namespace": "shop"}}, name="dump.yaml")
    write(tmp_path, changed(POD, "spec.serviceAccountName", name), name="web.yaml")
    result = kschedx("why", "web.yaml", "-s", "dump.yaml", cwd=tmp_path)
    assert ("fix 1     set serviceAccountName to default" in result.out) is is_misspelled
    assert f"create service account {name}" in result.out


def test_the_next_refusal_follows_the_fix_for_the_first(tmp_path: Path) -> None:
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount"}
    high: Manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    stored = {**account, "metadata": {"name": "default", "namespace": "shop"}}
    write(tmp_path, NODE, stored, {**high, "value": 1}, name="dump.yaml")
    web = changed(changed(POD, "spec.serviceAccountName", "batch"), "spec.priorityClassName", "hihg")
    write(tmp_path, web, name="web.yaml")
    result = kschedx("why", "web.yaml", "-s", "dump.yaml", cwd=tmp_path)
    assert "fix       create service account batch; then set priorityClassName to high\n" in result.out


@pytest.mark.parametrize(
    ("selector", "labels", "code", "fix"),
    [
        ("true", {}, 1, "label namespace shop resource.kubernetes.io/admin-access=true"),
        ("true", {"resource.kubernetes.io/admin-access": "true"}, 0, ""),
        ("device.", {"resource.kubernetes.io/admin-access": "true"}, 1, ".devices.requests[0].exactly"),
    ],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_refused_device_claim_of_a_file(
    tmp_path: Path, selector: str, labels: dict[str, str], code: int, fix: str, kind: str
) -> None:
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
    wanted = claim("gpu", request(select=[selector], adminAccess=True), namespace="shop")
    if kind == "ResourceClaimTemplate":
        wanted = {**wanted, "kind": kind, "spec": {"spec": wanted["spec"]}}
    used = changed(POD, "spec.resourceClaims", [{"name": "gpu", f"r{kind[1:]}Name": "gpu"}])
    devices = [resource_slice("n", device("gpu-0")), device_class(created="2026-01-01T00:00:00Z")]
    write(tmp_path, {**NODE, "metadata": {"name": "n"}}, space, *devices, name="dump.yaml")
    write(tmp_path, wanted, used, name="web.yaml")
    result = kschedx("why", "web.yaml", "-s", "dump.yaml", "--kube-version", "1.35", cwd=tmp_path, columns=200)
    assert result.code == code
    refused = f"stays pending: the API server refuses its {kind}"
    assert (refused in result.out.splitlines()[0], fix in result.out) == (bool(fix), True)


@pytest.mark.parametrize(("labels", "code"), [({}, 1), ({"resource.kubernetes.io/admin-access": "true"}, 0)])
@pytest.mark.parametrize("used", ["0", "1"])
def test_a_refused_device_claim_of_a_template(tmp_path: Path, labels: dict[str, str], code: int, used: str) -> None:
    """kube-controller-manager creates the claim, so that `why` and `fit` count no room for the pod."""
    metadata, hard = {"name": "gpu", "namespace": "shop"}, {"count/resourceclaims.resource.k8s.io": "1"}
    wanted = {"spec": {"devices": {"requests": [request(adminAccess=True)]}}}
    counted = {"hard": hard, "used": {"count/resourceclaims.resource.k8s.io": used}}
    objects: list[Manifest] = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": wanted},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}, "status": counted},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}},
        {**NODE, "metadata": {"name": "n"}},
        resource_slice("n", device("gpu-0")),
        device_class(),
    ]
    write(tmp_path, *objects, name="dump.yaml")
    web = changed(POD, "spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    write(tmp_path, web, name="web.yaml")
    for command in ("why", "fit"):
        result = kschedx(command, "web.yaml", "-s", "dump.yaml", "--kube-version", "1.35", cwd=tmp_path, columns=200)
        assert result.code == (1 if used == "1" else code)
        assert ("raise ResourceQuota gpu, or delete claims that it counts" in result.out) is (used == "1")

"""Objects in a snapshot keep every field that decides, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given

import kschedx
from kschedx.errors import KschedxError
from kschedx.export.anonymous import anonymize
from kschedx.export.slim import ANNOTATIONS, SHAPES, Slim
from kschedx.framework.cycle import Outcome
from kschedx.kube.custom_resources import KINDS as CUSTOM_KINDS
from kschedx.kube.kinds import KINDS
from kschedx.kube.workloads import MAKING_PODS, foreign_pods, pod_from_workload
from kschedx.sources.files import read
from kschedx.sources.lists import from_objects
from tests.builders import Manifest, at, node, pod
from tests.conformance.decisions import Case, cases
from tests.golden.stories import STORIES, Story
from tests.laws.clusters import TARGET, Cluster, clusters


def slim(objects: Iterable[Manifest], namespaces: Iterable[str] = ()) -> list[dict[str, Any]]:
    keep = Slim(frozenset(namespaces))
    keep.add(from_objects(list(objects)))
    return [json.loads(line) for line in keep.lines()]


def explained(objects: Iterable[Mapping[str, object]], target: Any, **options: Any) -> dict[str, Any]:
    if isinstance(target, dict) and target["kind"] in MAKING_PODS:
        target = pod_from_workload(target)
    document: dict[str, Any] = kschedx.explain(kschedx.Snapshot.from_objects(objects), target, **options).to_dict()
    return document


def workload(kind: str, spec: Manifest, status: Manifest, *, generation: int = 1) -> Manifest:
    """Return a stored workload `web`, as an API server returns it."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": generation},
        "spec": {**spec, **selector, "template": template},
        "status": status,
    }


# --- all that decides


@pytest.mark.sample(9)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_fixture_has_the_same_answer(story: Story) -> None:
    objects = [item for batch in read(str(story.cluster)) for item in json.loads(bytes(batch.items))]
    texts = {"config": story.configuration}
    assert explained(slim(objects), story.manifest, **texts) == explained(objects, story.manifest, **texts)


@given(clusters())
def test_a_random_cluster_has_the_same_answer(cluster: Cluster) -> None:
    assert explained(slim(cluster.objects), TARGET) == explained(cluster.objects, TARGET)


@pytest.mark.sample(9)
@pytest.mark.parametrize("case", cases()[::15], ids=lambda case: case.name)
def test_a_recorded_decision_is_the_same(case: Case) -> None:
    record = case.record
    options = {"config": record["config"], "feature_gates": record.get("featureGates")}
    try:
        whole = explained(record["objects"], record["pod"], **options)
    except KschedxError as error:
        with pytest.raises(type(error)):
            explained(slim(record["objects"]), record["pod"], **options)
    else:
        assert explained(slim(record["objects"]), record["pod"], **options) == whole


DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "u", "controller": True}
STATUS: Manifest = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 0}
WORKLOAD_STATES: dict[str, tuple[str, list[Manifest]]] = {
    "a change that no controller has observed": (
        "deploy/web",
        [workload("Deployment", {"replicas": 2}, STATUS, generation=2)],
    ),
    "a ScaledObject that pauses": (
        "deploy/web",
        [
            workload("Deployment", {"replicas": 0}, STATUS),
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": "web", "annotations": {"autoscaling.keda.sh/paused-replicas": "0"}},
                "spec": {"scaleTargetRef": {"name": "web"}},
            },
        ],
    ),
    "a rollout of daemons that a lost node stalls": (
        "ds/web",
        [
            workload("DaemonSet", {}, {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1}),
            {**node("lost"), "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            pod("web-x", on="lost", metadata={"ownerReferences": [DAEMON_SET]}, status={"phase": "Running"}),
            pod("web-y", on="a", metadata={"ownerReferences": [DAEMON_SET]}, status={"phase": "Running"}),
        ],
    ),
    "a Job that its controller has observed and that has no pods": (
        "job/web",
        [workload("Job", {"parallelism": 1, "completions": 1}, {"startTime": "2026-01-01T00:00:00Z"})],
    ),
    "a Job that has its pods": (
        "job/web",
        [
            workload(
                "Job", {"parallelism": 1, "completions": 3}, {"active": 1, "completionTime": "2026-01-01T00:00:00Z"}
            )
        ],
    ),
}


@pytest.mark.parametrize("name", WORKLOAD_STATES)
def test_the_state_of_a_workload_is_the_same(name: str) -> None:
    target, objects = WORKLOAD_STATES[name]
    objects = [node("a"), *objects]
    whole, kept = (kschedx.explain(kschedx.Snapshot.from_objects(items), target) for items in (objects, slim(objects)))
    assert kept.to_dict() == whole.to_dict()


MESSAGES = ("PodScheduled", "DisruptionTarget", "PodResizePending", "Ready")


def test_the_messages_of_a_pods_conditions_are_kept() -> None:
    conditions = [{"type": kind, "status": "True", "message": "why"} for kind in MESSAGES]
    (kept,) = slim([{**pod("web"), "status": {"conditions": conditions}}])
    assert kept["status"]["conditions"] == conditions


def test_a_workload_creates_the_same_pod() -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "app:v1", "resources": {"requests": {"cpu": "1"}}}]},
    }
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    for kind, path in ((kind, KINDS[kind].template) for kind in MAKING_PODS):
        spec: Any = {
            "selector": {"app": "a"} if kind == "ReplicationController" else {"matchLabels": {"app": "a"}},
            "ordinals": {"start": 3},
            "volumeClaimTemplates": [claim],
        }
        inner = spec
        for part in path[1:-1]:
            inner = inner.setdefault(part, {})
        inner["template"] = template
        group = KINDS[kind].api_version
        made = {"apiVersion": group, "kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": spec}
        (each,) = slim([made])
        assert explained([node("n"), each], each) == explained([node("n"), made], made), kind


# --- and nothing else

CANARY = "canary"


def hidden(kind: str) -> Manifest:
    """Return an object with the canary in every field that scheduling does not read."""
    namespace, _, name = (KINDS[kind].only or ("default/one",))[0].partition("/")
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": "1",
        "managedFields": [{"manager": CANARY}],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": CANARY,
            next(iter(sorted(ANNOTATIONS))): "x",
        },
        "selfLink": CANARY,
        "finalizers": [CANARY],
    }
    container = {
        "name": "main",
        "image": "app:v1",
        "command": [CANARY],
        "args": [CANARY],
        "env": [{"name": CANARY, "value": CANARY}],
        "envFrom": [{"secretRef": {"name": CANARY}}],
        "livenessProbe": {"httpGet": {"path": CANARY}},
        "workingDir": CANARY,
        "ports": [{"containerPort": 1, CANARY: CANARY}],
    }
    spec = {
        "containers": [container],
        "initContainers": [container],
        "ephemeralContainers": [container],
        "serviceAccountName": CANARY,
        "imagePullSecrets": [{"name": CANARY}],
        "hostAliases": [{"ip": CANARY}],
        "volumes": [
            {"name": "v", "secret": {"secretName": CANARY}},
            {"name": "w", "csi": {"volumeAttributes": {CANARY: CANARY}}},
        ],
        "template": {"metadata": metadata, "spec": {"containers": [container]}},
        "data": CANARY,
    }
    status = {
        "phase": "Pending",
        "podIP": CANARY,
        "message": CANARY,
        # the messages of conditions and of waiting containers are kept: answers quote them
        "conditions": [{"type": "Ready", "message": "not ready"}, {"type": "DisruptionTarget", CANARY: CANARY}],
        "containerStatuses": [{"name": "main", "imageID": CANARY, "state": {"waiting": {CANARY: CANARY}}}],
    }
    group = KINDS[kind].api_version
    kind = KINDS[kind].name
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec, "status": status, CANARY: CANARY}


@pytest.mark.parametrize("kind", [key for key, kind in KINDS.items() if not (kind.only or kind.addon)])
def test_fields_without_effect_are_not_written(kind: str) -> None:
    (each,) = slim([{**hidden(kind), "kind": KINDS[kind].name}])
    assert CANARY not in json.dumps(each)
    assert each["kind"] == KINDS[kind].name
    assert each["metadata"]["name"] == (KINDS[kind].only or ("default/one",))[0].partition("/")[2]


@pytest.mark.parametrize("key", [key for key, kind in KINDS.items() if kind.addon])
def test_only_known_fields_of_other_queues_are_written(key: str) -> None:
    (each,) = slim([{**hidden(key), "kind": KINDS[key].name, "status": {"unread": CANARY}}])
    assert CANARY not in json.dumps(each)
    assert each["metadata"]["name"] == "one"


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "Endpoints"])
def test_other_kinds_are_not_written(kind: str) -> None:
    assert slim([{"apiVersion": "v1", "kind": kind, "metadata": {"name": "one"}, "data": {"a": CANARY}}]) == []


@pytest.mark.parametrize(("group", "kind"), CUSTOM_KINDS)
def test_only_custom_resources_that_create_pods_are_written(group: str, kind: str) -> None:
    container = {"name": "main", "image": "app", "args": [CANARY], "env": [{"name": "A", "value": CANARY}]}
    template = {"spec": {"containers": [container]}}
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    driver = {"tolerations": [toleration], "affinity": {"nodeAffinity": {}}, "javaOptions": CANARY}
    spec = {"replicas": 2, "template": template, "driver": driver, "script": container, "config": {"a": [CANARY]}}
    (kept,) = slim([{"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "one"}, "spec": spec}])
    assert CANARY not in json.dumps(kept)
    assert at(kept, "spec.replicas") == 2
    assert at(kept, "spec.driver") == {"tolerations": [toleration], "affinity": {"nodeAffinity": {}}}
    assert at(kept, "spec.template.spec.containers")[0]["name"] == "main"


def test_the_volumes_of_a_template_are_not_refused_without_the_fields_of_the_kubelet() -> None:
    sources = {"hostPath": {"path": "/var"}, "secret": {"secretName": "s"}, "csi": {"driver": "d"}, "emptyDir": {}}
    volumes = [{"name": source.lower(), source: fields} for source, fields in sources.items()]
    made = workload("ReplicaSet", {"replicas": 1}, {})
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    at(made, "spec.template")["spec"] = {
        "containers": [{"name": "c", "image": "c", "volumeMounts": mounts}],
        "volumes": volumes,
    }
    snapshot = kschedx.Snapshot.from_objects(slim([node("n"), made]))
    assert kschedx.explain(snapshot, "rs/web").outcome is Outcome.SCHEDULED


def test_the_pods_of_a_custom_resource_are_the_same() -> None:
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    job = {"spec": {"parallelism": 2, "completions": 2, "template": template}}
    spec = {"replicatedJobs": [{"name": "a", "replicas": 3, "template": job}]}
    head = {"apiVersion": "jobset.x-k8s.io/v1", "kind": "JobSet"}
    job_set: Manifest = {**head, "metadata": {"name": "train"}, "spec": spec}
    (kept,) = slim([job_set])
    assert foreign_pods(kept) == foreign_pods(job_set)


def test_a_kind_of_another_group_is_not_written() -> None:
    assert slim([{"apiVersion": "example.com/v1", "kind": "Node", "metadata": {"name": "one"}}]) == []
    assert slim([{"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "one"}}]) == []


def test_only_events_about_scheduling_are_written() -> None:
    def event(reason: str) -> Manifest:
        about = {"kind": "Pod", "namespace": "default", "name": "web-0"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": reason},
            "reason": reason,
            "involvedObject": about,
        }

    assert [each["reason"] for each in slim([event("Pulled"), event("FailedScheduling"), event("Created")])] == [
        "FailedScheduling"
    ]


def test_only_flags_of_the_autoscaler_that_decide_are_written() -> None:
    words = [
        "./cluster-autoscaler",
        "--cloud-config=/etc/key",
        "--expander=random",
        "--startup-taint",
        "acme.example/boot",
        "--allowed-scheduler-names=default-scheduler,acme",
        "--v=4",
    ]
    containers = [{"name": "proxy", "image": "proxy"}, {"name": "it", "image": "ca", "command": words}]
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "autoscaler", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    (kept,) = slim([manifest])
    first, second = kept["spec"]["template"]["spec"]["containers"]
    assert "args" not in first
    assert second["command"] == ["cluster-autoscaler"]
    schedulers = "--allowed-scheduler-names=default-scheduler,acme"
    assert second["args"] == [schedulers, "--expander=random", "--startup-taint=acme.example/boot"]
    assert slim([kept]) == [kept]
    anonymous: Any = anonymize([kept])[0]
    args = anonymous["spec"]["template"]["spec"]["containers"][1]["args"]
    assert args[1] == "--expander=random"
    assert args[2].startswith("--startup-taint=")
    assert args[0].startswith("--allowed-scheduler-names=default-scheduler,")
    assert "acme" not in str(args)


def test_every_kind_that_is_read_has_a_shape() -> None:
    assert SHAPES.keys() | {"Pod"} == KINDS.keys() | {"Event"}


# --- which, and in which order


def test_a_snapshot_of_one_namespace() -> None:
    everything: list[Manifest] = [
        node("n"),
        pod("here", namespace="shop"),
        pod("there", namespace="other"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "other"}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}},
    ]
    assert [each["metadata"]["name"] for each in slim(everything, ["shop"])] == ["shop", "disk", "n", "here"]


def test_general_kinds_come_first_and_names_are_sorted() -> None:
    objects: list[Manifest] = [
        pod("b"),
        node("2"),
        pod("a"),
        node("1"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "z"}},
    ]
    assert [each["metadata"]["name"] for each in slim(objects)] == ["z", "2", "1", "b", "a"]


def test_a_kind_is_forgotten() -> None:
    keep = Slim()
    keep.add(from_objects([node("n"), pod("a")]))
    keep.forget("Pod")
    assert (keep.count(), keep.count("Pod"), keep.count("Node")) == (1, 0, 1)
